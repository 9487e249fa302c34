//! `whylate reflect`: our own clients and Debian's sockperf, every port and wait, groups, ends that
//! die, and words that cannot be served. Everything stays on loopback and inside beds.

use std::fs::File;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use whylate_clock::HardwareCounter;
use whylate_model::reflect::{Reflected, ReflectedEnd};
use whylate_model::{Hertz, Nanos, Pid};
use whylate_net::lab::{Bed, Role};
use whylate_net::protocol::{Incoming, Phase};
use whylate_net::{ClosedLoop, Cookie, Ended, Protocol, Raw, Sockperf};
use whylate_port::{Client, Options, Port, Received, Setup, Target, Transport, Wait};
use whylate_sys::ring_receive::RingReceive;
use whylate_sys::signal::send_to_process;
use whylate_sys::socket_options;

use crate::lines::Lines;
use crate::needs;
use crate::program::{self, said, until, whylate};

const SIGINT: i32 = 2;
const SECOND: u64 = 1_000_000_000;

/// A started reflector, killed with the test.
pub(crate) struct Started {
    child: Child,
    stderr: Lines,
    at: String,
}

impl Started {
    /// Starts `whylate reflect WORDS` and waits until it listens.
    pub(crate) fn new(words: &str) -> Self {
        let mut command = whylate(["reflect", "--format", "json"]);
        command.args(words.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = Lines::of(child.stderr.take().unwrap());
        let said = stderr.until("listening on ");
        let (_, at) = said.rsplit_once("listening on ").unwrap();
        let at = at.trim_end().split(" (").next().unwrap().to_owned();
        Self { child, stderr, at }
    }

    pub(crate) fn port(&self) -> &str {
        self.at.rsplit(':').next().unwrap()
    }

    /// Where it listens.
    pub(crate) fn at(&self) -> &str {
        &self.at
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it and reads what it did; a noisy machine may end it with 4.
    pub(crate) fn stop(self) -> Reflected {
        self.stop_by(SIGINT)
    }

    /// The same by this signal.
    pub(crate) fn stop_by(mut self, signal: i32) -> Reflected {
        send_to_process(Pid(self.id() as i32), signal).unwrap();
        self.end()
    }

    /// Waits for an end of its own with this status, and reads what it did.
    pub(crate) fn ended(mut self, status: i32) -> Reflected {
        self.end_with(&[status])
    }

    /// The same of an end for which no reason but noise makes its numbers useless.
    fn end(&mut self) -> Reflected {
        let told = self.end_with(&[0, 4]);
        program::doubted(self.child.wait().unwrap().code(), &told.warnings, &[]);
        told
    }

    /// Waits for its end and reads what it did.
    fn end_with(&mut self, statuses: &[i32]) -> Reflected {
        let stdout = self.child.stdout.take().unwrap();
        let told = serde_json::from_reader(stdout);
        let rest = self.stderr.rest();
        let status = self.child.wait().unwrap().code();
        assert!(status.is_some_and(|status| statuses.contains(&status)), "{status:?}: {rest}");
        told.unwrap()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn setup() -> Setup<HardwareCounter> {
    let counter = HardwareCounter::open().unwrap();
    Setup { counter, rate: Hertz(1e10), wait: Wait::Block }
}

fn connect(transport: Transport, at: &str, protocol: &dyn Protocol) -> Box<dyn Port> {
    let target = match transport {
        Transport::Unix => Target::Path(at.into()),
        _ => Target::Address(at.parse().unwrap()),
    };
    let client = Client { transport, target, from: None, options: Options::default() };
    client.open(setup(), protocol.framing()).unwrap()
}

fn closed_loop(requests: u64) -> ClosedLoop {
    ClosedLoop {
        requests,
        warmup_requests: 5,
        timeout: Nanos(20 * SECOND),
        duration: Nanos(60 * SECOND),
        ..ClosedLoop::new(Hertz(1e10))
    }
}

/// Asks so many times; every answer comes. Did the account come, too? It is of exactly these; an end that is kept
/// from its CPU as the client says farewell gives none in time.
fn asked(port: &mut dyn Port, requests: u64) -> bool {
    let settings = closed_loop(requests);
    let outcome = settings.run(port, &AtomicBool::new(false), &mut |_| ()).unwrap();
    assert!(matches!(outcome.why, Ended::Requests), "{:?}", outcome.why);
    assert_eq!(outcome.accounting.received, requests);
    let told = outcome.reflector.map(|report| report.echoed);
    assert!(told.is_none_or(|echoed| echoed == requests), "{told:?} of {requests}");
    told.is_some()
}

/// Runs sockperf as a client; how many of its requests it counts as sent and answered.
fn sockperf(words: &str) -> (u64, u64) {
    let output = Command::new("sockperf").args(words.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "sockperf {words}: {}", said(&output));
    let text = said(&output);
    let line = text.lines().find(|line| line.contains("[Total Run]"));
    let line = line.unwrap_or_else(|| panic!("sockperf {words}: {text}"));
    let number = |name: &str| {
        let (_, rest) = line.split_once(name).unwrap();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    (number("SentMessages="), number("ReceivedMessages="))
}

#[test]
fn debians_sockperf_client_is_answered_over_udp_and_tcp() {
    let _alone = program::alone();
    if needs::program("sockperf").is_none() {
        return;
    }
    let answered = |(ours, theirs): (&str, &str)| {
        let words = format!("--listen 127.0.0.1:0 --port {ours} --protocol sockperf");
        let started = Started::new(&words);
        let at = format!("-i 127.0.0.1 -p {} -t 1 -m 100 {theirs}", started.port());
        let (sent, received) = sockperf(&format!("ping-pong {at}"));
        assert!(received > 0 && sent - received <= 1, "{sent} {received}");
        // So few that a socket has room for all of them.
        let every = format!("under-load {at} --mps 100 --reply-every 10");
        let (load, answered) = sockperf(&every);
        assert!(answered > 0 && answered <= load / 10 + 2, "{load} {answered}");
        let told = started.stop();
        assert_eq!((told.foreign, told.unsent), (0, 0), "{ours} {told:?}");
        assert!(told.answered >= received + answered, "{ours} {told:?}");
        assert!(told.answered <= sent + load / 10 + 2, "{ours} {told:?}");
        assert!(told.unasked >= load - load / 10 - 2, "{ours} {told:?}");
        let residence = told.residence.unwrap();
        assert_eq!(residence.samples, told.answered);
        assert!(residence.min.0 > 0 && residence.percentiles.iter().any(|p| p.value.is_some()));
        // Without a cookie clients are told apart by their ports.
        assert_eq!(told.clients.len(), 2, "{:?}", told.clients);
    };
    // Sockperf takes seconds for each, and what is counted is who was answered: both at once.
    std::thread::scope(|scope| {
        for transport in [("udp", ""), ("tcp", "--tcp")] {
            scope.spawn(move || answered(transport));
        }
    });
}

/// Another's process, killed with the test.
struct Theirs(Child);

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn debians_sockperf_server_answers_our_client_over_udp_and_tcp() {
    let _alone = program::alone();
    if needs::program("sockperf").is_none() {
        return;
    }
    for (transport, flag) in [(Transport::Udp, None), (Transport::Tcp, Some("--tcp"))] {
        let mut buffer = vec![0; 2_000];
        let mut message = vec![0; 200];
        Sockperf.prepare(&mut message);
        let begin = || {
            let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let mut command = Command::new("sockperf");
            command.args(["server", "-i", "127.0.0.1", "-p", &free.port().to_string()]).args(flag);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            (Theirs(command.spawn().unwrap()), Target::Address(free))
        };
        let (mut theirs, mut target) = begin();
        let mut port = until("sockperf listens", || {
            // Somebody may have taken the port meanwhile: then it has ended.
            if theirs.0.try_wait().unwrap().is_some() {
                (theirs, target) = begin();
            }
            let target = target.clone();
            let client = Client { transport, target, from: None, options: Options::default() };
            let mut port = client.open(setup(), Sockperf.framing()).ok()?;
            port.send(&message).ok()?;
            let got = port.receive(&mut buffer, Nanos(SECOND / 5)).ok()?;
            matches!(got, Received::Message { .. }).then_some(port)
        });
        for number in 0..200 {
            let phase = if number % 2 == 0 { Phase::WarmUp } else { Phase::Measured };
            Sockperf.number(phase, number, &mut message);
            port.send(&message).unwrap();
            let got = port.receive(&mut buffer, Nanos(20 * SECOND)).unwrap();
            let Received::Message { length, .. } = got else { panic!("{transport} {number}") };
            let read = Sockperf.read(&buffer[..length], message.len());
            assert_eq!(read, Incoming::Reply(phase, number), "{transport}");
        }
    }
}

/// Why this kernel cannot serve at this place in this way; none where it can.
pub(crate) fn lacking(place: &str, wait: Wait) -> Option<String> {
    if place.starts_with("[::1]") && UdpSocket::bind("[::1]:0").is_err() {
        return Some("this machine has no IPv6".to_owned());
    }
    match wait {
        Wait::IoUring => RingReceive::new().err().map(|error| error.to_string()),
        Wait::BusyPoll => {
            let refusal = socket_options::set_busy_poll(UdpSocket::bind("127.0.0.1:0").ok()?, 50);
            refusal.err().map(|errno| format!("no busy polling of sockets here: {errno}"))
        }
        _ => None,
    }
}

#[test]
fn every_port_is_served_by_every_wait_that_fits_it() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("reflector").display().to_string();
    let udp = Wait::ALL.map(|wait| (Transport::Udp, "127.0.0.1:0", wait));
    let others = [
        (Transport::Udp, "[::1]:0", Wait::Block),
        (Transport::Tcp, "127.0.0.1:0", Wait::Epoll),
        (Transport::Tcp, "127.0.0.1:0", Wait::Poll),
        (Transport::Unix, path.as_str(), Wait::Block),
    ];
    for (transport, place, wait) in udp.into_iter().chain(others) {
        let words = format!("--listen {place} --port {transport} --wait {wait}");
        if let Some(reason) = lacking(place, wait) {
            needs::absent(&reason);
            continue;
        }
        let started = Started::new(&words);
        let mut port = connect(transport, &started.at, &Raw::new(Cookie(1)));
        let accounted = asked(&mut *port, 50);
        let told = started.stop();
        assert_eq!((told.answered, told.foreign, told.unsent), (50, 0, 0), "{words}");
        assert_eq!((told.wait, told.ended), (wait.to_string(), ReflectedEnd::Stopped));
        assert_eq!(told.busy_polling.is_some(), wait == Wait::BusyPoll);
        assert_eq!(told.residence.map(|residence| residence.samples), Some(50));
        assert_eq!(told.clients[0].answered, 50);
        assert!(told.clients[0].finished || !accounted, "{:?}", told.clients);
    }
    assert!(!Path::new(&path).exists(), "its path goes with it");
}

/// A client in another process that asks in sockperf's words, again and again, and says so to a file.
fn asks_for_ever(transport: Transport, port: &str, said: &File) -> Child {
    let script = format!(
        r"exec 3<>/dev/{transport}/127.0.0.1/{port}
        while :; do
            printf '\0\0\0\0\0\0\0\1\0\3\0\0\0\16' >&3
            head -c 14 <&3 >/dev/null && echo answered
        done"
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).stdout(said.try_clone().unwrap()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn clients_at_once_and_clients_that_are_killed_cost_the_others_nothing() {
    let _alone = program::alone();
    if needs::program("bash").is_none() {
        return;
    }
    for transport in [Transport::Udp, Transport::Tcp] {
        let list = tempfile::NamedTempFile::new().unwrap();
        let letter = if transport == Transport::Tcp { 'T' } else { 'U' };
        std::fs::write(list.path(), format!("# one\n{letter}:127.0.0.1:0\n")).unwrap();
        let words = format!("--feed {} --protocol sockperf", list.path().display());
        let started = Started::new(&words);
        let said = tempfile::NamedTempFile::new().unwrap();
        let killed = Theirs(asks_for_ever(transport, started.port(), said.as_file()));
        let mut port = connect(transport, &started.at, &Sockperf);
        let mut message = [0; 64];
        let mut ask = |number| {
            Sockperf.number(Phase::Measured, number, &mut message);
            port.send(&message).unwrap();
            let got = port.receive(&mut [0; 64], Nanos(20 * SECOND)).unwrap();
            assert!(matches!(got, Received::Message { length: 64, .. }), "{got:?}");
        };
        for number in 0..100 {
            ask(number);
        }
        until("the other one is answered", || {
            let said = std::fs::read_to_string(said.path()).unwrap();
            said.starts_with("answered\n").then_some(())
        });
        drop(killed);
        for number in 100..200 {
            ask(number);
        }
        let told = started.stop();
        let own = told.clients.iter().filter(|client| client.answered == 200).count();
        assert_eq!((own, told.clients.len()), (1, 2), "{:?}", told.clients);
        assert_eq!(told.foreign, 0);
    }
}

#[test]
fn a_reflector_that_is_killed_is_told_as_gone_and_its_path_is_in_the_way_by_name() {
    let _alone = program::alone();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("reflector").display().to_string();
    for (transport, place) in [(Transport::Udp, "127.0.0.1:0"), (Transport::Unix, &*path)] {
        let started = Started::new(&format!("--listen {place} --port {transport}"));
        let mut port = connect(transport, &started.at, &Raw::new(Cookie(1)));
        asked(&mut *port, 10);
        drop(started);
        // The kernel says it to so many in a second, of all hosts together.
        let gone = (0..6_000).any(|_| {
            let sent = port.send(&[0; 64]).map(drop);
            let got = sent.and_then(|()| port.receive(&mut [0; 64], Nanos(SECOND / 100)).map(drop));
            got.is_err_and(|error| error.is_peer_gone())
        });
        assert!(gone, "{transport}");
    }
    let words = ["reflect", "--port", "unix", "--listen", &path];
    let output = whylate(words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("has ended"), "{}", said(&output));
}

#[test]
fn garbage_is_counted_and_idle_and_once_end_it() {
    let _alone = program::alone();
    let mut idle = Started::new("--listen 127.0.0.1:0 --idle 3s");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..50_u8 {
        stranger.send_to(&vec![number; usize::from(number) * 20], &idle.at).unwrap();
    }
    stranger.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(stranger.recv(&mut [0; 2_000]).is_err(), "garbage is not answered");
    let told = idle.end();
    assert_eq!((told.foreign, told.answered, told.ended), (50, 0, ReflectedEnd::Idle));
    assert_eq!((told.residence, told.clients.len()), (None, 0));
    let mut once = Started::new("--listen 127.0.0.1:0 --once");
    asked(&mut *connect(Transport::Udp, &once.at, &Raw::new(Cookie(1))), 10);
    let told = once.end();
    assert_eq!((told.answered, told.ended), (10, ReflectedEnd::ClientFinished));
}

#[test]
fn what_cannot_be_listened_at_is_refused_by_name() {
    let _alone = program::alone();
    let held = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = held.local_addr().unwrap().to_string();
    for (words, told) in [
        (format!("--listen {at}"), "in use by process"),
        ("--listen 192.0.2.1:7000".to_owned(), "no interface here has it"),
        ("--listen 127.0.0.1:0 --interface nosuchport".to_owned(), "`nosuchport`"),
        ("--listen 239.77.7.1:7000".to_owned(), "--interface NAME"),
        ("--listen 127.0.0.1:0 --port tcp --wait block".to_owned(), "choose poll, epoll"),
        ("--listen no-such-name.invalid:7000".to_owned(), "no-such-name.invalid"),
        ("--bed never-was".to_owned(), "whylate lab up --name never-was"),
        ("--feed /nowhere/at/all".to_owned(), "/nowhere/at/all"),
    ] {
        let output = whylate(["reflect"]).args(words.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {}", said(&output));
        assert!(said(&output).contains(told), "{words}: {}", said(&output));
    }
}

/// A bed of a test, taken down with it.
struct Lab(String);

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = whylate(["lab", "down", "--name", &self.0]).output();
    }
}

#[test]
fn a_group_on_a_bed_is_answered_by_the_server_inside() {
    let _alone = program::alone();
    if !needs::root() || needs::program("ip").is_none() {
        return;
    }
    let lab = Lab(format!("t{}-group", std::process::id()));
    let up = whylate(["lab", "up", "--name", &lab.0]).output().unwrap();
    assert_eq!(up.status.code(), Some(0), "{}", said(&up));
    let own = Started::new(&format!("--bed {} --idle 30s", lab.0));
    assert_eq!(own.at, "198.18.0.2:11111");
    let words = format!("--bed {} --listen 239.77.7.1:7777 --interface server0", lab.0);
    let group = Started::new(&words);
    std::thread::scope(|scope| {
        let inside = || {
            Bed::open(&lab.0).unwrap().enter(Role::Client).unwrap();
            let raw = Raw::new(Cookie(1));
            asked(&mut *connect(Transport::Udp, "198.18.0.2:11111", &raw), 20);
            let target = Target::Address("239.77.7.1:7777".parse().unwrap());
            let options = Options { interface: Some("client0".into()), ..Options::default() };
            let client = Client { transport: Transport::Udp, target, from: None, options };
            asked(&mut *client.open(setup(), raw.framing()).unwrap(), 30);
        };
        scope.spawn(inside).join().unwrap();
    });
    let told = [own, group].map(Started::stop);
    assert_eq!((told[0].answered, told[1].answered), (20, 30));
    assert!(told[1].clients[0].from.as_ref().unwrap().starts_with("198.18.0.1:"));
}
