//! Several flows at once, in both directions, and messages that ask for no reply.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use whylate_model::flow::{Direction, Flow};
use whylate_model::run::Run;
use whylate_model::warning::Warning;

use crate::needs;
use crate::program::{self, recorded, said, until};
use crate::requests::{Bed, series};

fn flow<'a>(run: &'a Run, name: &str) -> &'a Flow {
    run.flows.iter().find(|flow| flow.name == name).expect("the flow is there")
}

#[test]
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
        "200ms",
        "--warmup",
        "10ms",
        "--wait",
        "block",
        "--flow",
        "load: rate=4kpps size=1400 one-way",
        "--flow",
        "back: rate=500pps back",
    ];
    let recorded = program::recorded_words(&words);
    let run = &recorded.run;
    for (name, intended) in [("rtt", 200), ("load", 800), ("back", 100)] {
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
fn what_asks_for_no_reply_is_counted_where_it_comes_and_its_rate_there_is_told() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    // The farewell is sent three times, 100 ms apart: an end that is stopped for longer gives no account.
    let recorded = until("an account comes", || {
        let words = "rtt --one-way --rate 5kpps --duration 200ms --warmup 10ms";
        let recorded = recorded(words);
        flow(&recorded.run, "rtt").other_end.is_some().then_some(recorded)
    });
    let flow = flow(&recorded.run, "rtt");
    assert!(flow.asked.one_way && flow.packets.add_up(), "{:?}", flow.packets);
    assert_eq!((flow.departures.intended, flow.packets.unaccounted), (1_000, 0));
    assert!(flow.service.is_none() && flow.response.is_none() && flow.lateness.is_some());
    let receptions = flow.other_end.unwrap().receptions.unwrap();
    assert!(
        receptions.gap_min <= receptions.gap_median && receptions.gap_p99 <= receptions.gap_max
    );
    let text = said(&recorded.output);
    assert!(text.contains("came") && text.contains("in the median"), "{text}");
}

#[test]
fn an_end_that_gives_no_account_leaves_messages_unaccounted_and_says_so() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    // Answers the greeting, and counts nothing: a server of an echo that knows no account.
    let echo = Echo::start();
    let words =
        format!("rtt {} --one-way --rate 1kpps --duration 100ms --warmup 10ms", echo.address);
    let recorded = recorded(&words);
    let flow = flow(&recorded.run, "rtt");
    let packets = flow.packets;
    assert_eq!((packets.unaccounted, packets.lost), (packets.sent, 0), "{packets:?}");
    assert_eq!(packets.sent + packets.never_sent + packets.refused, 100, "{packets:?}");
    let told = |warning: &Warning| matches!(warning, Warning::NoAccount { .. });
    assert!(recorded.run.warnings.iter().any(told), "{:?}", recorded.run.warnings);
}

/// Requests of the account over a bed, and how many a second.
const PACKETS: u64 = 20_000;
const A_SECOND: u64 = 50_000;

#[test]
fn the_account_of_many_packets_through_a_bed_adds_up() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let Some(bed) = Bed::up("many") else { return };
    let wanted = std::env::var("WHYLATE_TESTS_PACKETS").ok().map(|text| text.parse().unwrap());
    let packets: u64 = wanted.unwrap_or(PACKETS);
    let rate = format!("{A_SECOND}pps");
    let duration = format!("{}ms", packets * 1_000 / A_SECOND);
    let words = ["rtt", "--bed", &bed.0, "--rate", &rate, "--duration", &duration];
    let words: Vec<&str> = words.into_iter().chain(["--warmup", "100ms", "--no-trace"]).collect();
    let recorded = program::recorded_words(&words);
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
