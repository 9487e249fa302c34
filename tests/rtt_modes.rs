//! Requests and replies in other ways than by a pattern: closed loop, replay; what is kept of single
//! requests; ends that die.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapError, create_reader};
use whylate_model::directory::RunDir;
use whylate_model::flow::ProcessVerdict;
use whylate_model::packet::Outcome;
use whylate_model::run::RunState;
use whylate_model::segments::read_packets;
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Pid};
use whylate_net::protocol::{Answer, Incoming, Phase};
use whylate_net::{Cookie, Protocol, Raw};
use whylate_stats::Histogram;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::signal::send_to_process;

use crate::needs;
use crate::program::{self, Beside, recorded, said, until, whylate};
use crate::requests::{SIGKILL, both_ends_spin, flow, logged, lowest, series};

/// A started `whylate WORDS`, killed with the test.
struct Started(Child);

impl Started {
    fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut command = whylate(words);
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn pid(&self) -> Pid {
        Pid(self.0.id() as i32)
    }

    /// Of a reflector: where it listens.
    fn listens(&mut self) -> String {
        let lines = BufReader::new(self.0.stderr.take().unwrap()).lines();
        let line = lines.map_while(Result::ok).find(|line| line.starts_with("listening on "));
        line.unwrap().split(' ').nth(2).unwrap().to_owned()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_closed_loop_has_service_times_alone_and_says_what_it_hides() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let recorded = recorded("rtt --arrivals closed --duration 200ms --warmup 50ms");
    let (run, flow) = (&recorded.run, flow(&recorded.run));
    assert_eq!(flow.departures.process.verdict, ProcessVerdict::ClosedLoop);
    assert_eq!(
        (flow.asked.per_second, flow.response.as_ref(), flow.lateness.as_ref()),
        (None, None, None)
    );
    assert_eq!(series(run, "rtt-response"), None);
    assert!(flow.packets.add_up() && flow.packets.sent > 0, "{:?}", flow.packets);
    let service = logged(&recorded.directory, "rtt-service");
    assert_eq!(service.len(), flow.packets.sent);
    let text = said(&recorded.output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("hides what"), "{text}");
}

/// A pcap of nanoseconds with packets at these.
fn pcap(at: &[u64]) -> Vec<u8> {
    let mut file = Vec::new();
    for number in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(number.to_le_bytes());
    }
    for &at in at {
        let at = 1_700_000_000_000_000_000 + at;
        for number in [at / 1_000_000_000, at % 1_000_000_000, 20, 60] {
            file.extend((number as u32).to_le_bytes());
        }
        file.extend([7; 20]);
    }
    file
}

/// Packets 1 ms and 3 ms apart in turn.
fn uneven(packets: u64) -> Vec<u64> {
    (0..packets).map(|number| number / 2 * 4_000_000 + number % 2 * 1_000_000).collect()
}

#[test]
fn a_capture_is_replayed_at_its_times_and_again_from_the_first_packet() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("uneven.pcap");
    std::fs::write(&path, pcap(&uneven(100))).unwrap();
    let words =
        format!("rtt --arrivals capture({}) --duration 500ms --warmup 100ms", path.display());
    let recorded = recorded(&words);
    let (run, flow) = (&recorded.run, flow(&recorded.run));
    // 197 ms and the mean distance of 1.99 ms: twice whole, and 102.02 ms of a third.
    assert_eq!(flow.departures.intended, 252, "{flow:?}");
    let rate = flow.asked.per_second.unwrap();
    assert!((rate - 99.0 / 0.197).abs() < 0.01, "{rate}");
    assert_eq!(flow.asked.repeats_after.unwrap().0 / 1_000, 198_989);
    assert_eq!(run.settings["capture"].to_string(), path.display().to_string());
    assert_eq!(run.settings["packets of the capture"], 100_u64.into());
    assert_eq!(run.settings["length of the capture"], Nanos(197_000_000).into());
    let gaps = logged(&recorded.directory, "rtt-departures");
    // 49 of 3 ms in each whole turn, and 25 of the third. Of what a disturbed host lets leave too late
    // the distances to both neighbours are others: so many as the run itself says.
    let (long, due) = (gaps.count_above(2_400_000), 49 + 49 + 25);
    let late = logged(&recorded.directory, "rtt-lateness").count_above(400_000);
    eprintln!("{long} of {} are long, {late} left late", gaps.len());
    assert!(long.abs_diff(due) <= 2 * late, "{long} of {} are long, {late} late", gaps.len());
    assert!(said(&recorded.output).contains("began again from the first"));
}

#[test]
fn a_capture_that_is_cut_or_goes_back_is_refused_by_its_packets_and_nothing_is_left() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let (path, run) = (home.path().join("cut.pcap"), home.path().join("run"));
    let attempt = |file: &[u8], word: &str, status: i32| {
        std::fs::write(&path, file).unwrap();
        let arrivals = format!("capture({}{word})", path.display());
        let words =
            ["rtt", "--duration", "100ms", "--warmup", "10ms", "--arrivals", &arrivals, "-o"];
        let output = whylate(words).arg(&run).output().unwrap();
        let text = said(&output);
        let found = output.status.code();
        assert!(found == Some(status) || (status == 0 && found == Some(4)), "{found:?} {text}");
        if status == 0 {
            program::ended(found, &program::read(&run));
        }
        (text, run.exists())
    };
    let whole = pcap(&uneven(40));
    let (text, left) = attempt(&whole[..whole.len() - 7], "", 1);
    assert!(text.contains("truncated") && text.contains("after 39 whole packets"), "{text}");
    assert!(text.contains(",cut)") && !left, "{text}");
    let (text, left) = attempt(&pcap(&[5_000, 9_000, 2_000]), "", 1);
    assert!(text.contains("packet 3 was seen 7.00us before") && !left, "{text}");
    let (text, left) = attempt(b"\x1f\x8b", "", 1);
    assert!(!left, "{text}");
    if needs::cpus(2).is_some() {
        let (text, left) = attempt(&whole[..whole.len() - 7], ",cut", 0);
        assert!(left, "{text}");
        let settings = program::read(&run).settings;
        assert_eq!(settings["packets of the capture"], 39_u64.into());
        assert_eq!(settings["cut capture"], true.into());
    }
}

/// Of the measured requests: one that is answered twice, one that is not, and one whose answer has a
/// foreign message behind it.
const TWICE: u64 = 5;
const NEVER: u64 = 11;
const FOREIGN: u64 = 17;

/// A server that deals with the measured requests as planted, and tells which of them it met.
fn planting_server() -> (String, Beside<Vec<u64>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let at = socket.local_addr().unwrap().to_string();
    let serve = move |stop: &AtomicBool| {
        let raw = Raw::new(Cookie(0));
        let (mut buffer, mut met) = ([0; 2_048], Vec::new());
        while !stop.load(Ordering::Relaxed) {
            let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
            let message = &mut buffer[..length];
            let answer = raw.answer(message);
            // The client's own cookie reads the reply.
            let cookie = Cookie(raw.flow(message).unwrap_or(0));
            let number = match Raw::new(cookie).read(message, length) {
                Incoming::Reply(Phase::Measured, number) => Some(number),
                _ => None,
            };
            met.extend(number.filter(|number| [TWICE, NEVER, FOREIGN].contains(number)));
            if !matches!(answer, Answer::Reply(_)) || number == Some(NEVER) {
                continue;
            }
            let _ = socket.send_to(message, client);
            match number {
                Some(TWICE) => {
                    std::thread::sleep(Duration::from_millis(2));
                    let _ = socket.send_to(message, client);
                }
                Some(FOREIGN) => drop(socket.send_to(&[0xa5; 300], client)),
                _ => (),
            }
        }
        met
    };
    (at, Beside::begin(serve))
}

/// A packet of a capture file, as another reader sees it.
struct Seen {
    at_ns: u64,
    bytes: Vec<u8>,
    length: u32,
}

/// The packets of a file by their comments.
fn read_by_another(path: &Path) -> BTreeMap<String, Seen> {
    let file = std::fs::read(path).unwrap();
    let mut reader = create_reader(1 << 16, &file[..]).unwrap();
    let mut seen = BTreeMap::new();
    loop {
        match reader.next() {
            Ok((offset, found)) => {
                match found {
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        assert_eq!(interface.linktype.0, 101, "packets of IP");
                        assert_eq!(interface.ts_resolution(), Some(1_000_000_000));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let comment = |code| {
                            let found = packet.options.iter().find(|option| option.code == code);
                            let value = found.and_then(|option| option.as_bytes().ok());
                            String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
                        };
                        let (high, low) = (u64::from(packet.ts_high), u64::from(packet.ts_low));
                        let bytes = packet.data[..packet.caplen as usize].to_vec();
                        let one = Seen { at_ns: high << 32 | low, bytes, length: packet.origlen };
                        seen.insert(comment(OptionCode::Comment), one);
                    }
                    PcapBlockOwned::NG(_) => (),
                    _ => panic!("not pcapng"),
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return seen,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn odd_messages_stand_in_a_capture_that_another_reader_opens_each_with_its_comment() {
    let _alone = program::alone();
    let (at, server) = planting_server();
    let before = clock_ns(Clock::Realtime);
    // So few that a socket has room for all of them.
    let words = format!("rtt {at} --rate 100pps --duration 300ms --warmup 50ms --timeout 1s");
    let recorded = recorded(&words);
    let after = clock_ns(Clock::Realtime);
    assert_eq!(server.end(), [TWICE, NEVER, FOREIGN], "{}", said(&recorded.output));
    let kept = flow(&recorded.run).anomalies.as_ref().expect("something was odd");
    let seen = read_by_another(&recorded.directory.join(&kept.file));
    let comments: Vec<&String> = seen.keys().collect();
    assert_eq!(seen.len() as u64, kept.messages, "{comments:?}");
    let find = |words: &str| {
        let found = seen.iter().find(|(comment, _)| comment.starts_with(words));
        found.unwrap_or_else(|| panic!("no `{words}` in {comments:?}")).1
    };
    let port: u16 = at.rsplit(':').next().unwrap().parse().unwrap();
    let twice = find("request 5: second reply, ");
    assert_eq!((twice.bytes[9], twice.length), (17, 28 + 64), "UDP");
    assert_eq!(twice.bytes[20..22], port.to_be_bytes(), "from the server");
    let lost = find("request 11: no reply within 1.00s");
    assert_eq!(lost.bytes[22..24], port.to_be_bytes(), "to the server");
    assert_eq!(lost.bytes[28..32], *b"wlat", "the request as it left");
    assert_eq!(lost.bytes[28 + 16..28 + 24], 11_u64.to_be_bytes());
    let foreign = find("foreign: 300 bytes");
    assert_eq!((foreign.bytes.len(), foreign.length), (28 + 256, 28 + 300), "kept in part");
    for (comment, packet) in &seen {
        assert!((before..after).contains(&packet.at_ns), "{comment}: {}", packet.at_ns);
    }
    assert!(said(&recorded.output).contains("anomalies.pcapng"));
}

#[test]
fn every_request_is_in_the_log_that_was_asked_for_with_the_times_of_the_histograms() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let recorded = recorded("rtt --rate 2kpps --duration 500ms --warmup 50ms --log-packets");
    let (run, flow) = (&recorded.run, flow(&recorded.run));
    let directory = RunDir::open(&recorded.directory).unwrap();
    let rows: Vec<_> = read_packets(&directory).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len() as u64, flow.departures.intended);
    let answered = rows.iter().filter(|row| row.outcome == Outcome::Answered);
    let given_up = flow.packets.given_up;
    assert_eq!(answered.clone().count() as u64, flow.packets.sent - given_up);
    let mut service = Histogram::new();
    for row in answered {
        let took = row.at.since(row.sent.unwrap()).to_nanos(run.clock.hz);
        // One rounds to the nearest nanosecond, the other down.
        assert!(row.service.unwrap().0.abs_diff(took.0) <= 1, "{row:?}");
        assert!(row.response >= row.service && row.lateness.is_some(), "{row:?}");
        service.record(row.service.unwrap().0);
    }
    if given_up == 0 {
        let (sum, logged) = (&service, logged(&recorded.directory, "rtt-service"));
        for percent in [0.1, 50.0, 99.0] {
            let (one, other) = (sum.value_at(percent).unwrap(), logged.value_at(percent).unwrap());
            assert!(one.abs_diff(other) <= 1 + other / 64, "p{percent}: {one} {other}");
        }
    }
    assert!(run.segments.iter().any(|segment| segment.file == "packets-0001.parquet"));
    let unlogged = |warning: &Warning| matches!(warning, Warning::PacketsUnlogged { .. });
    assert!(!run.warnings.iter().any(unlogged));
}

/// Has a checkpoint of this run some requests?
fn has_measured(directory: &Path) -> bool {
    let stored = RunDir::open(directory).ok().and_then(|directory| directory.read_run().ok());
    stored.and_then(|run| Some(series(&run, "rtt-service")?.n)).is_some_and(|n| n > 50)
}

#[test]
fn a_client_that_is_killed_leaves_a_readable_run_and_no_reflector() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = "rtt --rate 1kpps --duration 60s --warmup 50ms --log-packets --checkpoint 300ms -o";
    let path = directory.display().to_string();
    let client = Started::new(words.split(' ').chain([path.as_str()]));
    let reflector = program::reflector_of(client.0.id());
    until("a checkpoint has some", || has_measured(&directory).then_some(()));
    send_to_process(client.pid(), SIGKILL).unwrap();
    drop(client);
    let run = program::read(&directory);
    assert_eq!(run.state, RunState::Running);
    let service = series(&run, "rtt-service").expect("something was measured");
    assert!(service.n > 0 && logged(&directory, "rtt-service").len() >= service.n);
    let rows = read_packets(&RunDir::open(&directory).unwrap()).unwrap();
    assert!(rows.map(Result::unwrap).count() > 0);
    let report = whylate(["report", &path]).output().unwrap();
    assert!(said(&report).contains("service"), "{}", said(&report));
    until("the reflector ends with its client", || {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", reflector.0));
        // Nobody may have reaped it.
        let gone = status.map_or(true, |stat| stat.contains(") Z "));
        gone.then_some(())
    });
}

#[test]
fn what_a_recording_that_shares_its_cpu_with_an_end_takes_in_late_is_all_there() {
    let _alone = program::alone();
    let Some(cpus) = needs::cpus(2).filter(|_| needs::program("taskset").is_some()) else { return };
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = "--duration 300ms --warmup 10ms";
    let output = both_ends_spin([cpus[0], cpus[1]], words, &directory).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    let run = program::read(&directory);
    program::ended(output.status.code(), &run);
    let service = series(&run, "rtt-service").unwrap();
    assert_eq!(logged(&directory, "rtt-service").len(), service.n);
    assert_eq!(series(&run, "rtt-response").unwrap().n, 1_500);
    let tail = flow(&run).tail.as_ref().expect("the slow ones were looked at");
    let told = tail.requests + tail.left_aside + tail.by_whylate;
    let dropped = |warning: &Warning| matches!(warning, Warning::RecordsDropped { .. });
    let dropped = run.warnings.iter().any(dropped);
    assert!(told == 1_500 || (dropped && told < 1_500), "{told}: {tail:?}");
}

#[test]
fn another_hosts_reflector_tells_its_share_in_nanoseconds_and_its_end_ends_the_run() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let mut reflector = Started::new("reflect --listen 127.0.0.1:0".split(' '));
    let at = reflector.listens();
    // An end that is kept from its CPU as the client says farewell gives no account.
    let recorded = until("a farewell is answered", || {
        let words = format!("rtt {at} --rate 1kpps --duration 100ms --warmup 10ms --timeout 60s");
        let recorded = recorded(&words);
        flow(&recorded.run).other_end.is_some().then_some(recorded)
    });
    let (run, flow) = (&recorded.run, flow(&recorded.run));
    let other = flow.other_end.unwrap();
    assert_eq!(other.answered, flow.packets.received, "{:?}", flow.packets);
    // None was away for a shorter time than it stayed there.
    let service = series(run, "rtt-service").unwrap();
    assert!(other.residence_min.0 > 0 && other.residence_min <= service.min.unwrap(), "{other:?}");
    let median = lowest(&service.quantiles);
    assert!(median.is_none_or(|median| other.residence_median <= median), "{other:?} {median:?}");
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("run").display().to_string();
    let words = format!("rtt {at} --duration 4m --warmup 10ms --checkpoint 300ms -o {path}");
    let mut client = Started::new(words.split(' '));
    until("it is measured", || has_measured(Path::new(&path)).then_some(()));
    drop(reflector);
    let status = until("the run ends", || client.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(4));
    let run = program::read(Path::new(&path));
    // The test ended its server.
    program::ended_but_for(status.code(), &run, &[" ended before its time: "]);
    let early = |warning: &Warning| matches!(warning, Warning::PartEndedEarly { .. });
    assert!(run.warnings.iter().any(early), "{:?}", run.warnings);
    assert!(self::flow(&run).packets.received > 0 && self::flow(&run).packets.add_up());
}

#[test]
fn what_is_asked_of_the_clients_socket_is_read_back_and_printed() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let words = "rtt --duration 100ms --warmup 10ms --dscp 46 --hops 7 --dont-fragment \
                 --send-buffer 64k --receive-buffer 32k --interface lo";
    let recorded = recorded(words);
    let socket = flow(&recorded.run).way.socket.clone().expect("a socket");
    assert_eq!((socket.traffic_class, socket.hops), (Some(46 << 2), Some(7)));
    assert_eq!(socket.whole_packets, Some(true));
    // The kernel counts its bookkeeping, too, and has a least size.
    assert!(socket.send_buffer >= Some(64 << 10) && socket.receive_buffer >= Some(32 << 10));
    assert_eq!(socket.interface.as_deref(), Some("lo"));
    let text = said(&recorded.output);
    assert!(text.contains("DSCP 46") && text.contains("7 hops"), "{text}");
}
