//! Watching servers that know nothing of it: over UDP and TCP, with one thread and with several, that end
//! in the middle; who is meant by a number, and who may not watch.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use whylate_model::Pid;
use whylate_model::breakdown::{Point, Station, Watched};
use whylate_model::directory::RunDir;
use whylate_model::run::{Run, RunState};
use whylate_model::segments::read_journeys;
use whylate_model::warning::Warning;
use whylate_sys::signal::send_to_process;

use crate::needs;
use crate::program::{self, Beside, said, until, whylate};
use crate::requests::SIGKILL;

const SIGINT: i32 = 2;
const SIGUSR1: i32 = 10;
/// What a foreign server does with each message before it answers, in seconds.
const WORK: &str = "0.0002";

/// A server in another language, which answers what it is sent and knows nothing of us.
struct Foreign {
    child: Child,
    port: u16,
}

/// Answers datagrams; with threads several, each with its own reading of the same socket.
const UDP: &str = r#"
import socket, sys, threading, time
work, threads = float(sys.argv[1]), int(sys.argv[2])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
def serve():
    while True:
        data, peer = s.recvfrom(2048)
        end = time.perf_counter() + work
        while time.perf_counter() < end:
            pass
        s.sendto(data, peer)
for _ in range(threads - 1):
    threading.Thread(target=serve, daemon=True).start()
print(s.getsockname()[1], flush=True)
serve()
"#;

/// Answers messages of 64 bytes on each connection, a thread for each.
const TCP: &str = r#"
import socket, sys, threading, time
work = float(sys.argv[1])
l = socket.socket()
l.bind(("127.0.0.1", 0))
l.listen()
def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        data = c.recv(64)
        if not data:
            return
        end = time.perf_counter() + work
        while time.perf_counter() < end:
            pass
        c.sendall(data)
print(l.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
"#;

/// Answers datagrams one by one, each after so long, once it is told to begin.
const LATE: &str = r#"
import signal, socket, sys, time
work = float(sys.argv[2])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
signal.sigwait({signal.SIGUSR1})
while True:
    data, peer = s.recvfrom(2048)
    time.sleep(work)
    s.sendto(data, peer)
"#;

/// The same for messages of 64 bytes on one connection, which it has accepted before.
const LATE_STREAM: &str = r#"
import signal, socket, sys, time
work = float(sys.argv[2])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
l = socket.socket()
l.bind(("127.0.0.1", 0))
l.listen()
print(l.getsockname()[1], flush=True)
c = l.accept()[0]
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
signal.sigwait({signal.SIGUSR1})
while True:
    data = c.recv(64)
    if not data:
        break
    time.sleep(work)
    c.sendall(data)
"#;

impl Foreign {
    fn start(program: &str, threads: &str) -> Option<Self> {
        let python = needs::program("python3")?;
        let mut child = Command::new(python)
            .args(["-c", program, WORK, threads])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let out = child.stdout.as_mut().unwrap();
        let mut byte = [0];
        while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            said.push(char::from(byte[0]));
        }
        Some(Self { child, port: said.parse().unwrap() })
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Root and the kernel's tracing.
fn may_watch() -> bool {
    needs::root() && needs::tracefs().is_some()
}

/// Where a watch says how far it is, beside its run.
const SAID: &str = "said";

/// A watch that goes on.
struct Watch {
    child: Option<Child>,
    directory: PathBuf,
    home: tempfile::TempDir,
}

impl Watch {
    /// Begins to watch, and waits until it says so: its trace is on, and it has looked what waits.
    fn start(words: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("run");
        let mut command = whylate(["watch"]);
        command.args(words.split_whitespace()).arg("-o").arg(&directory);
        let said = File::create(home.path().join(SAID)).unwrap();
        let child = command.stdout(Stdio::piped()).stderr(said).spawn().unwrap();
        let watch = Self { child: Some(child), directory, home };
        until("it watches", || watch.said().contains("watching ").then_some(()));
        watch
    }

    /// What it said of its progress.
    fn said(&self) -> String {
        std::fs::read_to_string(self.home.path().join(SAID)).unwrap()
    }

    /// Waits for a checkpoint that is as is wanted: the first is written with the first request, and others
    /// now and then.
    fn checkpoint(&self, what: &str, wanted: impl Fn(&Run) -> bool) -> Run {
        until(what, || {
            let there = self.directory.join("run.json").exists();
            there.then(|| program::read(&self.directory)).filter(|run| wanted(run))
        })
    }

    fn signal(&self, signal: i32) {
        let id = self.child.as_ref().unwrap().id();
        send_to_process(Pid(id as i32), signal).unwrap();
    }

    /// Waits for its end, with one of these statuses; what it recorded and said.
    fn end(mut self, statuses: &[i32]) -> (Run, String, Self) {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        let text = format!("{}{}", said(&output), self.said());
        assert!(output.status.code().is_some_and(|code| statuses.contains(&code)), "{text}");
        (program::read(&self.directory), text, self)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asks a server of datagrams so many times, one after the other.
fn ask_datagrams(port: u16, times: u32) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut reply = [0; 64];
    for _ in 0..times {
        socket.send(&[7; 64]).unwrap();
        assert_eq!(socket.recv(&mut reply).unwrap(), 64);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Asks a server of streams so many times, over one connection.
fn ask_stream(port: u16, times: u32) {
    ask_by(&mut connected(port), times);
}

/// A connection that sends what it is given at once.
fn connected(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

/// The same by one that is there.
fn ask_by(stream: &mut TcpStream, times: u32) {
    let mut reply = [0; 64];
    for _ in 0..times {
        stream.write_all(&[7; 64]).unwrap();
        stream.read_exact(&mut reply).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn watched(run: &Run) -> &Watched {
    run.watched.as_deref().expect("who was watched")
}

/// Requests were seen, their parts sum to the whole, and the server's work is in the part between reading
/// and answering: no less than it worked.
fn check(run: &Run, asked: u32) {
    let of = &watched(run).breakdown;
    assert!(of.requests > 0, "{:?}", of.left_out);
    assert!(of.requests <= u64::from(asked) + 2, "{of:?}");
    // How each got its reply, in an account that closes: all by the server's own socket.
    let pairs = of.pairs.as_deref().expect("the trace was followed");
    assert!(pairs.adds_up(), "{pairs:#?}");
    assert!(pairs.by_socket + pairs.by_order >= of.requests, "{pairs:#?}");
    assert!(pairs.by_socket > 0, "{pairs:#?}");
    let sum: f64 = of.all.parts.iter().map(|part| part.mean_ns).sum();
    assert!((sum - of.all.total_mean_ns).abs() < 1.0, "{:?}", of.all);
    let work = of.all.parts.iter().find(|part| {
        part.part.from == Point::there(Station::Read) && part.part.to == Point::back(Station::Sent)
    });
    let work = work.unwrap_or_else(|| panic!("{:#?}", of.all));
    let planted: f64 = WORK.parse::<f64>().unwrap() * 1e9;
    assert!(work.mean_ns >= planted * 0.9, "{work:?}");
}

/// Every request of the log has its points in their order.
fn in_order(directory: &Path, least: u64) {
    let directory = RunDir::open(directory).unwrap();
    let mut requests = 0;
    for journey in read_journeys(&directory).unwrap().map(Result::unwrap) {
        let known: Vec<_> = journey.passed.iter().flatten().map(|(at, _)| *at).collect();
        assert!(known.is_sorted(), "{journey:?}");
        requests += 1;
    }
    assert!(requests >= least, "{requests} of {least}");
}

#[test]
fn a_foreign_server_of_datagrams_is_taken_apart_by_its_port_with_one_thread_and_with_several() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    for threads in ["1", "3"] {
        let Some(server) = Foreign::start(UDP, threads) else { return };
        let watch = Watch::start(&format!("udp:{} --log-requests", server.port));
        ask_datagrams(server.port, 200);
        watch.signal(SIGINT);
        let (run, text, watch) = watch.end(&[0, 4]);
        assert_eq!(run.state, RunState::Complete, "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("were followed by their socket"), "{text}");
        check(&run, 200);
        in_order(&watch.directory, watched(&run).breakdown.requests);
        let process = &watched(&run).process;
        assert_eq!((process.pid.0 as u32, process.port), (server.child.id(), Some(server.port)));
        assert!(!process.threads.is_empty(), "{process:?}");
        let report = whylate(["report", &watch.directory.display().to_string()]).output().unwrap();
        assert_eq!(report.status.code(), Some(0), "{}", said(&report));
        assert!(watch.directory.join("report.html").exists());
    }
}

#[test]
fn a_foreign_server_of_streams_is_taken_apart_by_its_number_threads_that_it_starts_meanwhile_too() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(server) = Foreign::start(TCP, "1") else { return };
    let watch = Watch::start(&format!("pid:{} --log-requests", server.child.id()));
    // Each connection has a thread that was not there when watching began. Each is asked until it was seen.
    let threads = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", server.child.id())).unwrap();
        tasks.count()
    };
    let clients = [0, 1].map(|_| {
        let port = server.port;
        Beside::begin(move |stop| {
            let mut stream = connected(port);
            while !stop.load(Ordering::Relaxed) {
                ask_by(&mut stream, 1);
            }
        })
    });
    until("both have their threads", || (threads() > 2).then_some(()));
    watch.checkpoint("both are seen", |run| watched(run).process.threads.len() >= 2);
    for client in clients {
        client.end();
    }
    watch.signal(SIGINT);
    let (run, _, watch) = watch.end(&[0, 4]);
    let of = &watched(&run).breakdown;
    let pairs = of.pairs.as_deref().expect("the trace was followed");
    assert!(pairs.adds_up() && pairs.by_socket > 0, "{pairs:#?}");
    let sum: f64 = of.all.parts.iter().map(|part| part.mean_ns).sum();
    assert!((sum - of.all.total_mean_ns).abs() < 1.0, "{:?}", of.all);
    assert!(watched(&run).process.threads.len() >= 2, "{:?}", watched(&run).process);
    in_order(&watch.directory, of.requests);
}

#[test]
fn a_server_that_ends_in_the_middle_is_said_to_and_what_it_did_is_kept() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(mut server) = Foreign::start(UDP, "1") else { return };
    let watch = Watch::start(&format!("{} --log-requests --duration 60s", server.port));
    ask_datagrams(server.port, 100);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let (run, text, watch) = watch.end(&[0, 4]);
    check(&run, 100);
    in_order(&watch.directory, watched(&run).breakdown.requests);
    let ended = |warning: &Warning| matches!(warning, Warning::PartEndedEarly { reason, .. } if reason.contains("ended"));
    assert!(run.warnings.iter().any(ended), "{:?}", run.warnings);
    assert!(text.contains("the process ended"), "{text}");
}

#[test]
fn a_watch_that_is_killed_leaves_a_run_up_to_its_last_checkpoint_and_no_trace() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(server) = Foreign::start(UDP, "1") else { return };
    let watch = Watch::start(&format!("{}", server.port));
    ask_datagrams(server.port, 100);
    watch.checkpoint("there is a checkpoint", |_| true);
    watch.signal(SIGKILL);
    let directory = watch.directory.clone();
    let id = watch.child.as_ref().unwrap().id();
    until("it is gone", || {
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        (status.is_empty() || status.contains(") Z")).then_some(())
    });
    let run = program::read(&directory);
    assert_eq!(run.state, RunState::Running);
    assert!(watched(&run).breakdown.requests > 0);
    // The next start puts back what it left.
    let other = Watch::start(&format!("{}", server.port));
    other.signal(SIGINT);
    let (_, _, _other) = other.end(&[0, 4]);
    let left = needs::tracefs().unwrap().instances().unwrap();
    assert!(!left.contains(&format!("whylate-{id}-way")), "{left:?}");
}

/// Connections of which each has a thread that ends with it.
const SHORT: u32 = 60;

#[test]
fn that_requests_of_threads_that_end_before_they_are_found_are_missed_is_said() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(server) = Foreign::start(TCP, "1") else { return };
    let watch = Watch::start(&format!("pid:{}", server.child.id()));
    for _ in 0..SHORT {
        ask_stream(server.port, 1);
    }
    watch.signal(SIGINT);
    let (run, text, _watch) = watch.end(&[0, 4]);
    let of = &watched(&run).breakdown;
    assert!(of.requests <= u64::from(SHORT), "{} of {SHORT}: {text}", of.requests);
    let told = &run.settings["threads looked for"];
    assert!(told.starts_with("every 200ms: ") && told.contains("is not among"), "{told}");
    // The list holds none that was never found.
    let seen: usize = run.settings["threads"].parse().unwrap();
    assert!(watched(&run).process.threads.len() <= seen, "{:?}", watched(&run).process);
}

/// Datagrams that wait before the watch begins, and as many that come before they are read; then so many
/// that come one after the other.
const QUEUED: usize = 5;
const ALONE: u32 = 40;
const EACH: Duration = Duration::from_millis(5);

#[test]
fn datagrams_that_were_queued_before_the_watch_are_taken_for_none_of_the_requests_that_it_sees() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(server) = Foreign::start(LATE, &EACH.as_secs_f64().to_string()) else { return };
    let [before, then] = [0; 2].map(|_| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", server.port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    });
    let send = |by: &UdpSocket| {
        for _ in 0..QUEUED {
            assert_eq!(by.send(&[7; 64]).unwrap(), 64);
        }
    };
    send(&before);
    let watch = Watch::start(&format!("udp:{} --log-requests", server.port));
    send(&then);
    send_to_process(Pid(server.child.id() as i32), SIGUSR1).unwrap();
    for _ in 0..QUEUED {
        assert_eq!(then.recv(&mut [0; 64]).unwrap(), 64);
    }
    ask_datagrams(server.port, ALONE);
    watch.signal(SIGINT);
    let (run, text, _watch) = watch.end(&[0, 4]);
    let of = &watched(&run).breakdown;
    // Those that came behind what nobody saw are left out, unless the kernel told of the buffers, and so
    // are a few until the queue is known to be empty: no request has the reading of another.
    assert!(of.requests <= u64::from(ALONE), "{}: {text}", of.requests);
}

#[test]
fn bytes_that_were_queued_before_the_watch_are_taken_for_none_of_the_requests_that_it_sees() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let each = EACH.as_secs_f64().to_string();
    let Some(server) = Foreign::start(LATE_STREAM, &each) else { return };
    let mut stream = connected(server.port);
    let send = |by: &mut TcpStream| {
        for _ in 0..QUEUED {
            by.write_all(&[7; 64]).unwrap();
        }
    };
    send(&mut stream);
    let watch = Watch::start(&format!("tcp:{}", server.port));
    send(&mut stream);
    send_to_process(Pid(server.child.id() as i32), SIGUSR1).unwrap();
    stream.read_exact(&mut [0; 2 * QUEUED * 64]).unwrap();
    ask_by(&mut stream, ALONE);
    watch.signal(SIGINT);
    let (run, text, _watch) = watch.end(&[0, 4]);
    let of = &watched(&run).breakdown;
    // As of datagrams: those that came behind what nobody saw are left out, and a few until the queue is
    // known to be empty; were they read by the calls of before, they would be more than these.
    assert!(of.requests <= u64::from(ALONE), "{}: {text}", of.requests);
}

#[test]
fn a_quiet_server_is_told_to_have_been_quiet() {
    let _alone = program::alone();
    if !may_watch() {
        return;
    }
    let Some(server) = Foreign::start(UDP, "1") else { return };
    let watch = Watch::start(&format!("{}", server.port));
    watch.signal(SIGINT);
    let (run, text, _watch) = watch.end(&[0, 4]);
    assert_eq!(watched(&run).breakdown.requests, 0);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("none of its threads read a message"), "{text}");
}

#[test]
fn who_is_not_there_is_refused_with_who_listens_and_who_may_not_watch_with_the_remedy() {
    let _alone = program::alone();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let stream = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = std::process::id();
    let refused = |words: &str, status: i32, part: &str| {
        let output = whylate(["watch", words, "--duration", "100ms"]).output().unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(status), "{words}: {text}");
        assert!(text.contains(part), "{words}: {text}");
    };
    refused("nginx", 2, "pid:812");
    refused("2147483647", 1, "there is no process 2147483647");
    // A socket that is not the other kind.
    let port = socket.local_addr().unwrap().port();
    refused(&format!("tcp:{port}"), 1, &format!("nobody listens at port {port}"));
    let port = stream.local_addr().unwrap().port();
    refused(&format!("udp:{port}"), 1, &format!("nobody listens at port {port}"));
    if let Some(setpriv) = needs::program("setpriv").filter(|_| needs::root()) {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(home.path(), Some(65_534), Some(65_534)).unwrap();
        let output = Command::new(setpriv)
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(program::path())
            .args(["watch", &format!("pid:{own}"), "--duration", "100ms", "-o"])
            .arg(home.path().join("run"))
            .env("XDG_STATE_HOME", home.path())
            .current_dir(home.path())
            .output()
            .unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("cannot watch") && text.contains("run as root"), "{text}");
        assert!(!home.path().join("run").exists(), "nothing is left behind: {text}");
    }
}
