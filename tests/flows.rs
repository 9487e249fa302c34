//! Several flows at once, in both directions, and messages that ask for no reply.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use whylate_model::flow::{Direction, Flow};
use whylate_model::run::Run;
use whylate_model::warning::Warning;

use crate::needs::{self, unless_taken};
use crate::program::{self, record_ending, said};
use crate::requests::{Bed, series};

fn flow<'a>(run: &'a Run, name: &str) -> &'a Flow {
    run.flows.iter().find(|flow| flow.name == name).expect("the flow is there")
}

/// A buffer of messages overflows where an end is stopped for longer, in nanoseconds.
const BUFFERED: f64 = 2e7;

/// Nine of ten came, or how many did.
fn most_came(flow: &Flow, intended: u64) -> Result<(), String> {
    let came = flow.packets.received;
    (came > intended * 9 / 10).then_some(()).ok_or(format!("{}: {:?}", flow.name, flow.packets))
}

#[test]
#[ignore = "live figure: to accept"]
fn a_latency_flow_a_load_flow_and_one_back_share_a_bed_and_each_has_its_own_account() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let Some(bed) = Bed::up("flows") else { return };
    let name = &bed.0;
    let words = [
        "rtt",
        "--bed",
        name,
        "--rate",
        "1kpps",
        "--duration",
        "1s",
        "--warmup",
        "100ms",
        "--wait",
        "block",
        "--flow",
        "load: rate=4kpps size=1400 one-way",
        "--flow",
        "back: rate=500pps back",
    ];
    let flows = [("rtt", 1_000), ("load", 4_000), ("back", 500)];
    // A host that stops this machine may cost some.
    let recorded = unless_taken(&whylate_sys::affinity::get(), BUFFERED, || {
        let recorded = program::record_words(&words, &[0, 4]);
        for (name, intended) in flows {
            most_came(flow(&recorded.run, name), intended)?;
        }
        Ok(recorded)
    });
    let Some(recorded) = recorded else { return };
    let run = &recorded.run;
    for (name, intended) in flows {
        let flow = flow(run, name);
        assert!(flow.packets.add_up(), "{name}: {:?}", flow.packets);
        assert_eq!(flow.departures.intended, intended, "{name}");
        assert!(series(run, &format!("{name}-lateness")).is_some());
        assert_eq!(series(run, &format!("{name}-service")).is_some(), name != "load");
    }
    let (load, back) = (flow(run, "load"), flow(run, "back"));
    assert_eq!((load.asked.direction, back.asked.direction), (Direction::There, Direction::Back));
    assert!(load.way.path.starts_with("198.18.0.1:"), "{}", load.way.path);
    assert!(back.way.path.starts_with("198.18.0.2:"), "{}", back.way.path);
    let text = said(&recorded.output);
    assert!(text.contains("sent from the server's end of the bed"), "{text}");
}

#[test]
#[ignore = "live figure: to accept"]
fn what_asks_for_no_reply_is_counted_where_it_comes_and_its_rate_there_is_told() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    // The farewell is sent three times, 100 ms apart: who is stopped for longer gives no account.
    let recorded = unless_taken(&whylate_sys::affinity::get(), BUFFERED, || {
        let words = "rtt --one-way --rate 5kpps --duration 1s --warmup 100ms";
        let recorded = record_ending(words, &[0, 4]);
        let flow = flow(&recorded.run, "rtt");
        most_came(flow, 5_000)?;
        let receptions = flow.other_end.and_then(|of| of.receptions).ok_or("no account")?;
        let came = receptions.per_second.ok_or("no rate of receptions")?;
        let left = flow.departures.per_second.ok_or("no rate of departures")?;
        let alike = (0.9..1.1).contains(&(came / left));
        if alike { Ok(recorded) } else { Err(format!("{came} a second came, {left} left")) }
    });
    let Some(recorded) = recorded else { return };
    let flow = flow(&recorded.run, "rtt");
    assert!(flow.asked.one_way && flow.packets.add_up(), "{:?}", flow.packets);
    assert_eq!((flow.departures.intended, flow.packets.unaccounted), (5_000, 0));
    assert!(flow.service.is_none() && flow.response.is_none() && flow.lateness.is_some());
    let receptions = flow.other_end.unwrap().receptions.unwrap();
    assert!(
        receptions.gap_min <= receptions.gap_median && receptions.gap_p99 <= receptions.gap_max
    );
    let text = said(&recorded.output);
    assert!(text.contains("came") && text.contains("in the median"), "{text}");
}

#[test]
#[ignore = "live figure: to accept"]
fn an_end_that_gives_no_account_leaves_messages_unaccounted_and_says_so() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    // Answers the greeting, and counts nothing: a server of an echo that knows no account.
    let echo = Echo::start();
    let words =
        format!("rtt {} --one-way --rate 1kpps --duration 300ms --warmup 50ms", echo.address);
    let recorded = record_ending(&words, &[0, 4]);
    let flow = flow(&recorded.run, "rtt");
    assert_eq!((flow.packets.unaccounted, flow.packets.lost), (300, 0), "{:?}", flow.packets);
    let told = |warning: &Warning| matches!(warning, Warning::NoAccount { .. });
    assert!(recorded.run.warnings.iter().any(told), "{:?}", recorded.run.warnings);
}

/// Requests of the account over a bed, and how many a second.
const PACKETS: u64 = 20_000;
const A_SECOND: u64 = 50_000;

#[test]
#[ignore = "live figure: to accept"]
fn the_account_of_many_packets_through_a_bed_adds_up() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2) else { return };
    let Some(bed) = Bed::up("many") else { return };
    let wanted = std::env::var("WHYLATE_TESTS_PACKETS").ok().map(|text| text.parse().unwrap());
    let packets: u64 = wanted.unwrap_or(PACKETS);
    let rate = format!("{A_SECOND}pps");
    let duration = format!("{}ms", packets * 1_000 / A_SECOND);
    let words = ["rtt", "--bed", &bed.0, "--rate", &rate, "--duration", &duration];
    let words: Vec<&str> = words.into_iter().chain(["--warmup", "100ms", "--no-trace"]).collect();
    let recorded = unless_taken(&cpus, BUFFERED, || {
        let recorded = program::record_words(&words, &[0, 4]);
        most_came(flow(&recorded.run, "rtt"), packets)?;
        Ok(recorded)
    });
    let Some(recorded) = recorded else { return };
    let flow = flow(&recorded.run, "rtt");
    eprintln!("{:?}", flow.packets);
    assert!(flow.packets.add_up(), "{:?}", flow.packets);
    assert_eq!(flow.departures.intended, packets);
    assert_eq!(flow.packets.sent + flow.packets.never_sent + flow.packets.refused, packets);
    let n = |name: &str| series(&recorded.run, name).map(|of| of.n);
    assert_eq!(n("rtt-response"), Some(packets));
    assert_eq!(n("rtt-service"), Some(flow.packets.sent));
}

/// A socket that turns warm-up requests into their replies, and ignores the rest.
struct Echo {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut message = [0; 2_048];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut message) else { continue };
                // Byte 5 is the kind: 3 a request of the warm-up, 4 its reply.
                if message[5] == 3 {
                    message[5] = 4;
                    let _ = socket.send_to(&message[..length], from);
                }
            }
        });
        Self { address, stop, thread: Some(thread) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
