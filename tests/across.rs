//! One-way times of a client that has both ports of a bed: by every backend, one way and both ways, and what
//! is refused or comes to nothing.

use std::process::{Child, Command, Stdio};

use whylate_model::Pid;
use whylate_model::directory::RunDir;
use whylate_model::flow::Flow;
use whylate_model::packet::Outcome;
use whylate_model::run::{Run, RunState};
use whylate_model::segments::read_packets;
use whylate_model::series::Definition;
use whylate_sys::signal::send_to_process;

use crate::needs;
use crate::program::{self, Recorded, recorded, said, until, whylate};
use crate::requests::{Bed, SIGKILL, flow, logged, series};

/// Enough to see that everything comes, in a fraction of a second: fewer than any ring, link or socket on
/// the way has room for, so that none is lost however long a host keeps the client from running.
const SHORT: &str = "--rate 500pps --duration 200ms --warmup 20ms --timeout 30s --no-trace";
/// The same of long messages, of which a socket has room for few.
const FEW: &str = "--rate 50pps --duration 200ms --warmup 20ms --timeout 30s --no-trace";
/// Messages of one way of the first.
const OF_SHORT: u64 = 100;
/// Goes on until it is ended.
const LONG: &str = "--rate 200pps --duration 60s --warmup 50ms --no-trace";
/// Messages that leave in such a run before something happens to it.
const BEFORE: u64 = 60;
const SIGINT: i32 = 2;

/// A bed of this kind; none where this machine cannot have one.
fn bed(what: &str, kind: &str) -> Option<Bed> {
    needs::cpus(2)?;
    if !needs::root() || needs::program("ip").is_none() {
        return None;
    }
    let bed = Bed(format!("t{}-{what}", std::process::id()));
    let up = whylate(["lab", "up", "--kind", kind, "--name", &bed.0]).output().unwrap();
    assert_eq!(up.status.code(), Some(0), "{}", said(&up));
    Some(bed)
}

/// Something that runs in a part of the bed.
fn inside(bed: &Bed, part: &str, words: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("whylate-{}-{part}", bed.0)]);
    command.args(words.split_whitespace()).stdin(Stdio::null());
    command
}

fn ip(bed: &Bed, part: &str, words: &str) {
    let output = inside(bed, part, &format!("ip {words}")).output().unwrap();
    assert!(output.status.success(), "{words}: {}", said(&output));
}

/// Frames that an interface of this part of the bed has sent.
fn sent_by(bed: &Bed, part: &str, interface: &str) -> u64 {
    const SENT: usize = 9;
    let shown = inside(bed, part, "cat /proc/net/dev").output().unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let named = |line: &&str| line.trim_start().starts_with(&format!("{interface}:"));
    let line = text.lines().find(named).expect("the interface is there");
    let numbers = line.split(':').nth(1).unwrap().split_whitespace();
    numbers.map(|number| number.parse().unwrap()).nth(SENT).unwrap()
}

/// Frames that the device of a bridge has passed on to the server.
fn passed(bed: &Bed) -> u64 {
    sent_by(bed, "device", "to-server")
}

fn across(bed: &Bed, words: &str) -> Recorded {
    recorded(&format!("rtt --bed {} --across {words}", bed.0))
}

/// Everything came, once each, and the account says so.
fn whole(flow: &Flow, what: &str) {
    let packets = flow.packets;
    assert!(packets.add_up(), "{what}: {packets:?}");
    assert!(packets.sent > 0, "{what}: {packets:?}");
    let came = (packets.received, packets.lost, packets.duplicates, packets.reordered);
    assert_eq!(came, (packets.sent, 0, 0, 0), "{what}: {packets:?}");
}

/// What a flow between two ports of one client says of itself.
fn one_way(run: &Run, number: usize, what: &str) {
    let flow = &run.flows[number];
    let name = ["there", "back"][number];
    let ends = [("client0", "server0"), ("server0", "client0")][number];
    let ports = flow.way.across.as_ref().expect("two ports of one client");
    assert_eq!(flow.name, name, "{what}");
    assert_eq!((ports.out.as_str(), ports.back.as_str()), ends, "{what}");
    assert!(flow.other_end.is_none() && flow.breakdown.is_none(), "{what}");
    let of = |series_name: &Option<String>| series(run, series_name.as_ref().unwrap()).unwrap();
    let (service, response) = (of(&flow.service), of(&flow.response));
    assert_eq!(service.name, format!("{name}-service"), "{what}");
    let definitions = (service.definition, response.definition);
    assert_eq!(definitions, (Definition::OneWay, Definition::OneWayResponse), "{what}");
    // Intended send, actual send, reception: each time begins or ends at the same points, by one clock.
    let late = of(&flow.lateness);
    assert_eq!((&late.from, &late.to), (&response.from, &service.from), "{what}");
    assert_eq!(late.definition, Definition::SendLateness, "{what}");
    assert!(service.to == response.to && service.clock == response.clock, "{what}");
    assert_eq!(service.clock, late.clock, "{what}");
    assert_eq!((service.n, response.n), (flow.packets.sent, flow.departures.intended), "{what}");
    if let Some(frames) = &flow.way.frames {
        assert_eq!(frames.interface, ends.1, "{what}: frames are lost where they come in");
        let seen = frames.seen.expect("counted at the end");
        assert!(seen.messages >= flow.packets.received, "{what}: {seen:?}");
    }
}

const BACKENDS: [(&str, &str); 6] = [
    ("udp", "spin"),
    ("udp", "block"),
    ("udp", "epoll"),
    ("packet", "spin"),
    ("packet", "block"),
    ("xdp", "spin"),
];

fn by_every_backend(kind: &str) {
    let _alone = program::alone();
    let Some(bed) = bed("across", kind) else { return };
    for (port, wait) in BACKENDS {
        if needs::lacks(port) {
            continue;
        }
        let what = format!("{kind} {port} {wait}");
        let before = (kind == "bridge").then(|| passed(&bed));
        let recorded = across(&bed, &format!("--port {port} --wait {wait} {SHORT}"));
        let run = &recorded.run;
        assert_eq!(run.flows.len(), 1, "{what}");
        whole(flow(run), &what);
        one_way(run, 0, &what);
        if let Some(before) = before {
            let through = passed(&bed) - before;
            assert!(through >= flow(run).packets.sent, "{what}: {through} went through the bridge");
        }
        let printed = said(&recorded.output);
        assert!(printed.contains("client0 to server0"), "{what}: {printed}");
        assert!(!printed.contains("Response time"), "{what}: {printed}");
    }
}

#[test]
fn all_that_is_sent_by_one_port_comes_to_the_other_back_to_back_by_every_backend() {
    by_every_backend("direct");
}

#[test]
fn all_that_is_sent_by_one_port_comes_to_the_other_through_a_bridge_by_every_backend() {
    by_every_backend("bridge");
}

#[test]
fn both_ways_are_two_flows_over_the_same_two_ports_on_one_thread_where_it_spins() {
    let _alone = program::alone();
    let Some(bed) = bed("both-ways", "bridge") else { return };
    for (port, wait) in BACKENDS {
        if needs::lacks(port) {
            continue;
        }
        let what = format!("{port} {wait}");
        let words = format!("--both-ways --arrivals poisson --port {port} --wait {wait} {SHORT}");
        let run = across(&bed, &words).run;
        assert_eq!(run.flows.len(), 2, "{what}");
        for (number, of) in run.flows.iter().enumerate() {
            whole(of, &what);
            one_way(&run, number, &what);
            assert_eq!(of.packets.foreign, 0, "{what}: each flow hears its own");
            let ports = of.way.across.as_ref().unwrap();
            assert_eq!(ports.one_thread, wait == "spin", "{what}");
        }
        // Two processes of arrivals, and no copies of one.
        let [there, back] = &run.flows[..] else { panic!("two flows") };
        assert_ne!(there.departures.process.distribution, back.departures.process.distribution);
    }
}

#[test]
fn every_message_is_in_the_log_with_its_number_its_sending_and_its_reception() {
    let _alone = program::alone();
    let Some(bed) = bed("log", "direct") else { return };
    let recorded = across(&bed, &format!("--both-ways --log-packets --wait spin {SHORT}"));
    let run = &recorded.run;
    let directory = RunDir::open(&recorded.directory).unwrap();
    let rows: Vec<_> = read_packets(&directory).unwrap().map(Result::unwrap).collect();
    for (index, of) in run.flows.iter().enumerate() {
        let mut own: Vec<_> = rows.iter().filter(|row| usize::from(row.flow) == index).collect();
        own.sort_by_key(|row| row.number);
        assert_eq!((of.departures.intended, own.len() as u64), (OF_SHORT, OF_SHORT), "{}", of.name);
        for (number, row) in (0_u64..).zip(&own) {
            assert_eq!((row.number, row.outcome), (Some(number), Outcome::Answered));
            let sent = row.sent.unwrap();
            assert!(row.intended.unwrap() <= sent && sent < row.at, "{row:?}");
            let took = row.at.since(sent).to_nanos(run.clock.hz);
            assert!(row.service.unwrap().0.abs_diff(took.0) <= 1, "{row:?}");
        }
        let name = of.service.as_ref().unwrap();
        assert_eq!(logged(&recorded.directory, name).len(), of.packets.received, "{name}");
    }
}

#[test]
fn sizes_and_patterns_come_through_and_frames_are_as_long_as_is_told() {
    let _alone = program::alone();
    let Some(bed) = bed("sizes", "direct") else { return };
    for (port, size, arrivals) in [
        ("packet", 24, "burst(4)"),
        ("packet", 18, "constant"),
        ("xdp", 18, "burst(4)"),
        ("udp", 23, "poisson"),
        ("packet", 1_472, "constant"),
        ("xdp", 512, "train(4,20us)"),
        ("udp", 1_472, "pair(20us)"),
        ("udp", 8_000, "poisson"),
    ] {
        if needs::lacks(port) {
            continue;
        }
        let how_many = if size > 1_000 { FEW } else { SHORT };
        let words = format!("--port {port} --size {size} --arrivals {arrivals} {how_many}");
        let run = across(&bed, &words).run;
        let what = format!("{port} {size} {arrivals}");
        whole(flow(&run), &what);
        assert_eq!(flow(&run).asked.bytes, size, "{what}");
        assert_eq!(flow(&run).asked.frame_bytes, Some((size + 46).max(64)), "{what}");
    }
}

#[test]
fn two_interfaces_of_one_host_with_addresses_that_the_kernel_has_not() {
    let _alone = program::alone();
    let Some(bed) = bed("two", "direct") else { return };
    ip(&bed, "client", "link add near type veth peer name far");
    for link in ["near", "far"] {
        ip(&bed, "client", &format!("link set {link} up"));
    }
    for (port, from, to) in [
        ("packet", "198.18.7.1", "198.18.7.2"),
        ("xdp", "198.18.7.1", "198.18.7.2"),
        ("packet", "fd00:7::1", "fd00:7::2"),
    ] {
        if needs::lacks(port) {
            continue;
        }
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let mut command = inside(&bed, "client", "");
        let words = format!(
            "rtt --interface near --across far --from {from} --to {to} --port {port} --both-ways {SHORT}"
        );
        command.arg(program::path()).args(words.split_whitespace()).arg("-o").arg(&directory);
        command.env("NO_COLOR", "1").env("XDG_STATE_HOME", program::state());
        let output = command.output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{words}: {}", said(&output));
        let run = program::read(&directory);
        program::ended(output.status.code(), &run);
        for of in &run.flows {
            whole(of, &words);
        }
        let ports = run.flows[0].way.across.as_ref().unwrap();
        assert_eq!((ports.out.as_str(), ports.back.as_str()), ("near", "far"), "{port}");
        let frame = u32::from(from.contains(':')) * 20 + 110;
        assert_eq!(run.flows[0].asked.frame_bytes, Some(frame), "{port} {from}");
    }
}

#[test]
fn where_nothing_comes_through_it_is_said_what_to_look_at_and_nothing_is_left() {
    let _alone = program::alone();
    let Some(bed) = bed("nothing", "bridge") else { return };
    // Up at both ends, and joined by nothing.
    ip(&bed, "device", "link set to-server nomaster");
    let tried = |words: &str| {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let all = format!("rtt --bed {} --across {words} {SHORT}", bed.0);
        let output = whylate(all.split_whitespace()).arg("-o").arg(&directory).output().unwrap();
        let told = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(1), "{words}: {told}");
        assert!(told.contains("does not come to the other"), "{words}: {told}");
        assert!(told.contains("whylate forward"), "{words}: {told}");
        assert!(!directory.exists(), "{words}: something was left behind");
    };
    // Nothing is measured: both are tried at once.
    std::thread::scope(|scope| {
        for words in ["--port udp", "--port packet --both-ways"] {
            scope.spawn(move || tried(words));
        }
    });
}

/// A started `whylate WORDS`, killed with the test.
struct Going(Child);

impl Going {
    fn new(words: &str, directory: &std::path::Path) -> Self {
        let mut command = whylate(words.split_whitespace());
        command.arg("-o").arg(directory).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn send(&self, signal: i32) {
        send_to_process(Pid(self.0.id() as i32), signal).unwrap();
    }

    fn ends(&mut self) -> Option<i32> {
        until("it ends", || self.0.try_wait().unwrap()).code()
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_box_that_stops_in_the_middle_is_lost_messages_and_the_accounts_close() {
    let _alone = program::alone();
    let Some(bed) = bed("stops", "bridge") else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words =
        format!("rtt --bed {} --across --both-ways --port packet {LONG} --timeout 200ms", bed.0);
    let mut going = Going::new(&words, &directory);
    let begun = passed(&bed);
    until("messages go through", || (passed(&bed) > begun + BEFORE).then_some(()));
    ip(&bed, "device", "link set to-server nomaster");
    // It goes on without.
    let both = || ["client", "server"].map(|part| sent_by(&bed, part, &format!("{part}0")));
    let stopped = both();
    until("both ways send on", || {
        let more = both().iter().zip(stopped).all(|(now, then)| *now > then + BEFORE);
        more.then_some(())
    });
    going.send(SIGINT);
    let status = going.ends();
    let run = program::read(&directory);
    program::ended(status, &run);
    for of in &run.flows {
        let packets = of.packets;
        assert!(packets.add_up() && packets.received > 0 && packets.lost > 0, "{packets:?}");
        // Of those that were given up some may have come behind a client that was kept from its CPU.
        assert!(packets.given_up >= packets.lost, "{packets:?}");
    }
    assert_eq!(run.state, RunState::Stopped);
}

#[test]
fn a_client_that_is_stopped_tells_both_ways_and_one_that_is_killed_leaves_a_readable_run() {
    let _alone = program::alone();
    let Some(bed) = bed("killed", "direct") else { return };
    let words = format!("rtt --bed {} --across --both-ways {LONG} --checkpoint 300ms", bed.0);
    for (signal, state) in [(SIGINT, RunState::Stopped), (SIGKILL, RunState::Running)] {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let begun = sent_by(&bed, "client", "client0");
        let mut going = Going::new(&words, &directory);
        until("messages leave", || {
            (sent_by(&bed, "client", "client0") > begun + BEFORE).then_some(())
        });
        if signal == SIGKILL {
            until("there is a checkpoint of both ways", || {
                let run = RunDir::open(&directory).ok()?.read_run().ok()?;
                let ways = ["there-service", "back-service"];
                ways.iter().all(|name| series(&run, name).is_some()).then_some(())
            });
        }
        going.send(signal);
        let code = going.ends();
        let run = program::read(&directory);
        assert_eq!(run.state, state);
        if signal == SIGINT {
            program::ended(code, &run);
            for of in &run.flows {
                assert!(of.packets.add_up() && of.packets.received > 0, "{:?}", of.packets);
            }
        }
        assert!(series(&run, "there-service").is_some());
        assert!(series(&run, "back-service").is_some());
    }
}

#[test]
fn several_runs_add_up_way_by_way_and_two_runs_are_compared() {
    let _alone = program::alone();
    let Some(bed) = bed("sum", "direct") else { return };
    let home = tempfile::tempdir().unwrap();
    let runs = home.path().join("runs");
    let words = format!("rtt --bed {} --across --runs 2 --both-ways {SHORT}", bed.0);
    let output = whylate(words.split_whitespace()).arg("-o").arg(&runs).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let sum = program::read(&runs.join("sum"));
    program::closes(&sum);
    assert_eq!(sum.flows.len(), 2, "the ways are not added to each other");
    for (number, of) in sum.flows.iter().enumerate() {
        whole(of, "of both runs");
        assert_eq!(of.departures.intended, 2 * OF_SHORT);
        one_way(&sum, number, "of both runs");
    }
    let (one, other) = (across(&bed, SHORT), across(&bed, SHORT));
    // Beside each other, also where a busy host kept one of them from its rate.
    let compared = whylate(["compare", "--side-by-side"])
        .args([&one.directory, &other.directory])
        .output()
        .unwrap();
    assert!(matches!(compared.status.code(), Some(0 | 4)), "{}", said(&compared));
    assert!(said(&compared).contains("there-service"), "{}", said(&compared));
}

#[test]
fn what_two_ports_of_one_client_cannot_do_is_refused_by_name() {
    let _alone = program::alone();
    let two = "--interface a --across b --from 198.18.0.1 --to 198.18.0.2";
    for (words, told) in [
        ("--across".to_owned(), "--bed"),
        ("--across b --from 198.18.0.1 --to 198.18.0.2 --port packet".to_owned(), "--interface"),
        ("--interface a --across b --from 198.18.0.1 --port packet".to_owned(), "add --to"),
        (two.to_owned(), "nothing would leave this machine"),
        (format!("{two} --port tcp"), "no two ports"),
        (format!("{two} --port unix"), "--interface"),
        (format!("{two} --port packet --arrivals closed"), "closed loop"),
        (format!("{two} --port packet --mac 02:00:00:00:00:01"), "--mac"),
        (format!("{two} --port packet --wait busy-poll"), "busy-poll"),
        (format!("{two} --port packet --wait io-uring"), "io-uring"),
        (format!("{two} --port xdp --wait block --both-ways"), "cannot be divided between them"),
        (format!("{two} --port packet --one-way"), "--one-way"),
        (format!("{two} --port packet --breakdown"), "--breakdown"),
        (format!("{two} --port packet --compare-backends"), "--compare-backends"),
        ("127.0.0.1:9 --across b".to_owned(), "--across"),
        ("--both-ways".to_owned(), "--across"),
        (
            "--interface a --across a --from 198.18.0.1 --to 198.18.0.2 --port packet".to_owned(),
            "one port",
        ),
        (
            "--interface a --across b --from 198.18.0.1 --to 198.18.0.1 --port packet".to_owned(),
            "its own address",
        ),
        (
            "--interface a --across b --from 198.18.0.1 --to fd00::2 --port packet".to_owned(),
            "different versions of IP",
        ),
    ] {
        let output =
            whylate(format!("rtt {words} --duration 100ms").split_whitespace()).output().unwrap();
        let shown = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{words}: {shown}");
        assert!(shown.contains(told), "{words}: {shown}");
    }
}
