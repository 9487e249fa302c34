//! Servers in another language, who asks them, and watches that go on: what tests and figures of watching
//! have in common.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use whylate_model::Pid;
use whylate_model::breakdown::Watched;
use whylate_model::run::Run;
use whylate_model::trust::NO_REQUEST;
use whylate_sys::signal::send_to_process;

use crate::lines::Lines;
use crate::needs;
use crate::program::{self, said, until, whylate};

pub const SIGINT: i32 = 2;
const SIGUSR1: i32 = 10;
/// What a foreign server does with each message before it answers, in seconds.
pub const WORK: &str = "0.0002";

/// No reply is longer on its way.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server in another language, which answers what it is sent and knows nothing of us.
pub struct Foreign {
    pub child: Child,
    pub port: u16,
}

/// Answers datagrams; with threads several, each with its own reading of the same socket.
pub const UDP: &str = r#"
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
pub const TCP: &str = r#"
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
    pub fn start(program: &str, threads: &str) -> Option<Self> {
        let python = needs::program("python3")?;
        let mut child = Command::new(python)
            .args(["-c", program, WORK, threads])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let port = Lines::of(child.stdout.take().unwrap()).line().expect("it tells its port");
        Some(Self { child, port: port.parse().unwrap() })
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a watch says how far it is, beside its run.
const SAID: &str = "said";

/// A watch that goes on.
pub struct Watch {
    pub child: Option<Child>,
    pub directory: PathBuf,
    home: tempfile::TempDir,
}

impl Watch {
    /// Begins to watch, and waits until it says so: its trace is on, and it has looked what waits.
    pub fn start(words: &str) -> Self {
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

    pub fn signal(&self, signal: i32) {
        let id = self.child.as_ref().unwrap().id();
        send_to_process(Pid(id as i32), signal).unwrap();
    }

    /// Waits for its end; what it recorded and said. Whether it saw a request is for the test to ask.
    pub fn end(self) -> (Run, String, Self) {
        self.end_but_for(&[NO_REQUEST])
    }

    /// The same where the test itself gave it these reasons for poor trust.
    pub fn end_but_for(mut self, planted: &[&str]) -> (Run, String, Self) {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        let text = format!("{}{}", said(&output), self.said());
        assert!(matches!(output.status.code(), Some(0 | 4)), "{text}");
        let run = program::read(&self.directory);
        program::ended_but_for(output.status.code(), &run, planted);
        (run, text, self)
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
pub fn ask_datagrams(port: u16, times: u32) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reply = [0; 64];
    for _ in 0..times {
        socket.send(&[7; 64]).unwrap();
        assert_eq!(socket.recv(&mut reply).unwrap(), 64);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Asks a server of streams so many times, over one connection.
pub fn ask_stream(port: u16, times: u32) {
    ask_by(&mut connected(port), times);
}

/// A connection that sends what it is given at once.
pub fn connected(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The same by one that is there.
pub fn ask_by(stream: &mut TcpStream, times: u32) {
    let mut reply = [0; 64];
    for _ in 0..times {
        stream.write_all(&[7; 64]).unwrap();
        stream.read_exact(&mut reply).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn watched(run: &Run) -> &Watched {
    run.watched.as_deref().expect("who was watched")
}

/// Connections of which each has a thread that ends with it.
pub const SHORT: u32 = 60;

/// A watch of a server that was asked once by each of so many connections, and the last word of it; none
/// where this machine cannot.
pub fn asked_by_short_connections() -> Option<(Run, String)> {
    let server = Foreign::start(TCP, "1")?;
    let watch = Watch::start(&format!("pid:{}", server.child.id()));
    for _ in 0..SHORT {
        ask_stream(server.port, 1);
    }
    watch.signal(SIGINT);
    let (run, text, _watch) = watch.end();
    Some((run, text))
}

/// Messages that wait before the watch begins, and as many that come before they are read; then so many
/// that come one after the other.
pub const QUEUED: usize = 5;
pub const ALONE: u32 = 40;
const EACH: Duration = Duration::from_millis(5);

/// A watch of a server in whose queue datagrams waited.
pub fn behind_queued_datagrams() -> Option<(Run, String)> {
    let server = Foreign::start(LATE, &EACH.as_secs_f64().to_string())?;
    let [before, then] = [0; 2].map(|_| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", server.port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
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
    let (run, text, _watch) = watch.end();
    Some((run, text))
}

/// A watch of a server in whose connection bytes waited.
pub fn behind_queued_bytes() -> Option<(Run, String)> {
    let server = Foreign::start(LATE_STREAM, &EACH.as_secs_f64().to_string())?;
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
    let (run, text, _watch) = watch.end();
    Some((run, text))
}
