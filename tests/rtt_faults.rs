//! Faults of the way and of the other end, through the command line: each is named with what to do, and
//! nothing is left behind.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use whylate_model::run::{Run, RunState, Verdict};
use whylate_model::warning::Warning;
use whylate_net::protocol::Answer;
use whylate_net::{Cookie, Protocol, Raw};
use whylate_sys::signal::send_to_process;

use crate::needs;
use crate::program::{self, Started, recorded, said, until, whylate};
use crate::requests::{Bed, flow, logged, series};
use crate::tasks::Task;

const SIGINT: i32 = 2;
/// How long the slow server thinks about each request.
const SLOW: Duration = Duration::from_millis(20);

/// A server on a thread of its own that does something with each message, and ends with this.
struct Peer {
    at: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    /// Answers with what `answer` makes of a message; not at all where that is empty.
    fn new(mut answer: impl FnMut(&mut [u8]) -> Vec<u8> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let at = socket.local_addr().unwrap().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut message = [0; 2_048];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut message) else { continue };
                let answer = answer(&mut message[..length]);
                if !answer.is_empty() {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        Self { at, stop, thread: Some(thread) }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The command cannot measure, says why, and leaves nothing behind; what it said.
fn refused(mut command: Command, directory: &Path, why: &[&str]) -> String {
    command.args(["--duration", "100ms", "--warmup", "10ms", "--no-trace", "-o"]).arg(directory);
    command.env("NO_COLOR", "1").env("XDG_STATE_HOME", program::state()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in why {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
    assert!(!directory.exists(), "{text}");
    text
}

/// The namespace of a bed's client.
fn client_of(bed: &Bed) -> String {
    format!("whylate-{}-client", bed.0)
}

/// Runs `ip WORDS` inside it.
fn ip(bed: &Bed, words: &str) {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &client_of(bed), "ip"]).args(words.split_whitespace());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words}: {}", said(&output));
}

/// Packets that the client's interface has sent.
fn sent(bed: &Bed) -> Option<u64> {
    let mut command = Command::new("ip");
    let counter = "/sys/class/net/client0/statistics/tx_packets";
    command.args(["netns", "exec", &client_of(bed), "cat", counter]);
    String::from_utf8(command.output().ok()?.stdout).ok()?.trim().parse().ok()
}

#[test]
fn a_peer_that_is_silent_or_answers_garbage_is_named_with_the_time_tried() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let silent = Peer::new(|_| Vec::new());
    let garbage = Peer::new(|_| vec![0xa5; 300]);
    let named = |(peer, directory): (&Peer, &str)| {
        let mut command = Command::new(program::path());
        command.args(["rtt", &peer.at]);
        let directory = home.path().join(directory);
        let text = refused(command, &directory, &["no reflector answered", &peer.at]);
        // On a busy machine the last look comes later.
        let (_, tried) = text.split_once(" within ").expect("how long it was tried");
        let (seconds, _) = tried.split_once("s:").expect("seconds");
        assert!(seconds.parse::<f64>().is_ok_and(|seconds| seconds >= 5.0), "{text}");
    };
    // Nothing is measured: both are tried at once.
    thread::scope(|scope| {
        for tried in [(&silent, "silent"), (&garbage, "garbage")] {
            scope.spawn(move || named(tried));
        }
    });
    let directory = home.path().join("run");
    let mut command = Command::new(program::path());
    command.args(["rtt", &silent.at, "--interface", "nosuchport"]);
    refused(command, &directory, &["`nosuchport`", "ip link"]);
}

#[test]
fn a_slow_peer_is_measured_as_slow_as_it_is() {
    let _alone = program::alone();
    let slow = Peer::new(|message| {
        let raw = Raw::new(Cookie(0));
        if !matches!(raw.answer(message), Answer::Reply(_)) {
            return Vec::new();
        }
        thread::sleep(SLOW);
        message.to_vec()
    });
    let words = format!("rtt {} --rate 20pps --duration 500ms --warmup 50ms --no-trace", slow.at);
    let recorded = recorded(&words);
    let flow = flow(&recorded.run);
    assert!(flow.packets.add_up() && flow.departures.intended == 10, "{flow:?}");
    let service = logged(&recorded.directory, "rtt-service");
    let shortest = service.min().expect("something was answered");
    assert!(u128::from(shortest) >= SLOW.as_nanos() * 999 / 1_000, "{shortest}");
}

#[test]
fn interfaces_routes_and_mtus_that_will_not_do_are_named_with_what_to_do() {
    let _alone = program::alone();
    let Some(bed) = Bed::up("faults") else { return };
    let inside = client_of(&bed);
    let ip = |words: &str| ip(&bed, words);
    // They go with the bed.
    ip("link add off type veth peer name off-peer");
    ip("addr add 198.18.7.1/24 dev off");
    ip("link add bare type veth peer name bare-peer");
    ip("link set bare up");
    ip("link set bare-peer up");
    ip("link set client0 mtu 1280");
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    for (words, why) in [
        ("198.18.7.2:7000 --interface off", "ip link set off up"),
        ("198.18.0.2:7000 --interface bare", "no ipv4 address"),
        ("203.0.113.7:7000", "203.0.113.7:7000"),
        ("198.18.0.2:7000 --size 1400 --dont-fragment", "MTU 1280"),
    ] {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &inside]).arg(program::path());
        command.arg("rtt").args(words.split_whitespace());
        refused(command, &directory, &[why]);
    }
}

/// A recording through a bed whose path becomes too narrow once something was measured, and what it said.
fn narrowed(bed: &Bed, way: &str, directory: &Path) -> (Run, String) {
    let words = format!(
        "rtt --bed {} --rate 800pps --size 1400 --dont-fragment --duration 1s --warmup 100ms \
         --no-trace {way}",
        bed.0
    );
    let _ = std::fs::remove_dir_all(directory);
    let mut command = whylate(words.split_whitespace());
    command.arg("-o").arg(directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let before = sent(bed).expect("the interface of the client");
    let child = command.spawn().unwrap();
    // Those of the warm-up, and some that are measured.
    program::until("something is measured", || (sent(bed)? > before + 100).then_some(()));
    ip(bed, "link set client0 mtu 1000");
    let output = child.wait_with_output().unwrap();
    ip(bed, "link set client0 mtu 1500");
    let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(matches!(output.status.code(), Some(0 | 4)), "{way}: {text}");
    let run = program::read(directory);
    program::ended(output.status.code(), &run);
    (run, text)
}

#[test]
fn a_path_that_becomes_too_narrow_refuses_messages_which_are_counted_and_the_run_goes_on() {
    let _alone = program::alone();
    // One for each end that spins.
    if needs::cpus(2).is_none() {
        return;
    }
    let Some(bed) = Bed::up("narrow") else { return };
    let home = tempfile::tempdir().unwrap();
    for way in ["--wait spin", "--wait block", "--wait block --one-way"] {
        let directory = home.path().join(way.replace(' ', ""));
        let (run, text) = program::until("a message that had left a wide path is refused", || {
            let (run, text) = narrowed(&bed, way, &directory);
            // Where the path was narrowed behind the last one, it was too late.
            (flow(&run).packets.refused > 0).then_some((run, text))
        });
        assert_eq!(run.state, RunState::Complete, "{way}");
        assert!(matches!(run.verdict, Verdict::Untrustworthy { .. }), "{way}: {:?}", run.verdict);
        let (flow, packets) = (flow(&run), &flow(&run).packets);
        assert!(packets.add_up(), "{way}: {packets:?}");
        let tried = packets.sent + packets.refused + packets.never_sent;
        assert_eq!((tried, flow.departures.intended), (800, 800), "{way}: {packets:?}");
        assert!(packets.refused > 0 && packets.sent > 0, "{way}: {packets:?}");
        assert_eq!(packets.abandoned, 0, "{way}: {packets:?}");
        let told = run.warnings.iter().find_map(|warning| match warning {
            Warning::MessagesRefused { refused, reason, .. } => Some((*refused, reason.as_str())),
            _ => None,
        });
        let (refused, reason) = told.expect("a warning");
        assert_eq!(refused, packets.refused, "{way}");
        assert!(reason.contains("does not fit the path"), "{way}: {reason}");
        assert!(text.contains("the kernel did not take"), "{way}: {text}");
        // They stay in the sample: of each it is known that it is later than whatever is waited for.
        let late = series(&run, "rtt-lateness").expect("something was intended");
        assert_eq!(late.n, 800, "{way}");
        let censored = late.censored.expect("what never left");
        assert!(censored.count >= refused, "{way}: {censored:?}");
        // What was due as the run ended, and had not left, is known to be less late.
        let timed_out = flow.asked.timeout.is_some_and(|timeout| censored.above >= timeout);
        let waited = packets.never_sent > 0 || timed_out;
        assert!(waited, "{way}: {censored:?}");
    }
}

#[test]
fn ctrl_c_in_the_warm_up_of_requests_ends_with_1_and_leaves_nothing_behind() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    for more in ["", "--wait block --port tcp", "--compare-backends udp:spin,udp:block --rounds 2"]
    {
        let directory = home.path().join("run");
        let words = format!("rtt --rate 1kpps --warmup 300s --duration 1s {more}");
        let mut command = whylate(words.split_whitespace());
        command.arg("-o").arg(&directory);
        let mut started = Started::new(command);
        program::reflector_of(started.0.id());
        send_to_process(started.pid(), SIGINT).unwrap();
        assert_eq!(started.status(), Some(1), "{words}");
        assert!(!directory.exists(), "{words}");
    }
}

#[test]
fn a_reflector_that_was_started_ends_with_whoever_started_it() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let mut command = whylate("rtt --rate 1kpps --duration 5m --warmup 50ms".split(' '));
    command.arg("-o").arg(home.path().join("run"));
    let mut started = Started::new(command);
    let reflector = program::reflector_of(started.0.id());
    let words = std::fs::read(format!("/proc/{reflector}/cmdline")).unwrap();
    let ends_with_it = words.split(|byte| *byte == 0).any(|word| word == b"--until-eof");
    assert!(ends_with_it, "{}", String::from_utf8_lossy(&words));
    started.0.kill().unwrap();
    until("the reflector has ended", || {
        matches!(Task::first(reflector).state(), None | Some('Z' | 'X')).then_some(())
    });
}

#[test]
fn a_reflector_that_waits_for_ever_ends_when_its_standard_input_does() {
    let _alone = program::alone();
    for wait in ["spin", "block"] {
        let words = format!("reflect --listen 127.0.0.1:0 --until-eof --idle never --wait {wait}");
        let mut command = whylate(words.split_whitespace());
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        drop(child.stdin.take());
        let status = until("it ends", || child.try_wait().unwrap());
        assert!(status.success(), "{wait}: {status}");
    }
}
