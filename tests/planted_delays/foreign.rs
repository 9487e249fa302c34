//! Programs of others: a server that knows nothing of this tool, and what keeps a softirq busy.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use whylate_model::CpuId;

use crate::needs;
use crate::requests::Bed;

/// Answers requests as a reflector does, whatever they ask: sleeps or is busy for so long before. Of each it
/// says then by its own clock how many seconds it had it for.
const SERVER: &str = r#"
import os, socket, sys, time
how, seconds = sys.argv[1], float(sys.argv[2])
os.sched_setaffinity(0, {int(sys.argv[3])})
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    m, a = s.recvfrom(2048)
    began = time.perf_counter()
    if len(m) < 24 or m[5] not in (1, 3, 5):
        continue
    if how == "sleep":
        time.sleep(seconds)
    end = time.perf_counter() + (seconds if how == "spin" else 0)
    while time.perf_counter() < end:
        pass
    had = time.perf_counter() - began
    s.sendto(m[:5] + bytes([m[5] + 1]) + m[6:], a)
    print(f"{had:.7f}", flush=True)
"#;

/// Filters of packet sockets at the server's end that take long for datagrams to one port, and for no
/// others: each such datagram keeps the softirq that takes it in busy.
const HEAVY: &str = r#"
import ctypes, os, socket, struct, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
def ins(code, yes, no, k):
    return struct.pack("HBBI", code, yes, no, k)
work = (ins(0x24, 0, 0, 2654435761) + ins(0x04, 0, 0, 12345)) * 2040
prog = ins(0x28, 0, 0, 36) + ins(0x15, 1, 0, 9999) + ins(0x06, 0, 0, 0) + work + ins(0x06, 0, 0, 0)
code = ctypes.create_string_buffer(prog)
kept = []
for _ in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    s.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HxxxxxxP", len(prog) // 8, ctypes.addressof(code)))
    s.setsockopt(263, 23, 1)
    s.bind(("server0", 0x0800))
    kept.append(s)
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("198.18.0.2", 9999))
print("ready", flush=True)
sys.stdin.read()
"#;

/// Sends such datagrams until its input ends. First, where the CPU that sends takes them in itself, how
/// long one of them takes; at the end, how many it sent in which time.
const FLOOD: &str = r#"
import os, random, select, socket, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
random.seed(5)
apart = float(sys.argv[2])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("198.18.0.2", 9999))
def send():
    began = time.perf_counter()
    s.send(b"x" * 64)
    return time.perf_counter() - began
took = []
for _ in range(60):
    took.append(send())
    time.sleep(0.002)
print(sorted(took)[30], flush=True)
sys.stdin.readline()
began, sent = time.perf_counter(), 0
# Of no period: else it falls into step with a sender of about the same on its CPU.
while not select.select([sys.stdin], [], [], apart * random.uniform(0.5, 1.5))[0] and sent < 20000:
    send()
    sent += 1
print(sent, time.perf_counter() - began, flush=True)
"#;

/// Packet sockets with a filter.
const SOCKETS: usize = 150;

/// Another's program, ended with the test, and what it says.
pub(crate) struct Foreign {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Foreign {
    /// A program in the language of the interpreter that `command` starts.
    pub(crate) fn start(mut command: Command, program: &str, words: &[String]) -> Self {
        command.arg("-c").arg(program).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// Its next line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it ended without a word");
        line.trim_end().to_owned()
    }

    /// Nanoseconds that it had each of its next requests for, so many of them, as a server says.
    pub(crate) fn had(&mut self, requests: usize) -> Vec<f64> {
        (0..requests).map(|_| self.line().parse::<f64>().unwrap() * 1e9).collect()
    }

    /// Ends what it waits for.
    fn go_on(&mut self) {
        use std::io::Write;
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The interpreter; none where this machine has none.
pub(crate) fn python() -> Option<Command> {
    Some(Command::new(needs::program("python3")?))
}

/// The interpreter at one end of a bed.
pub(crate) fn python_in(bed: &Bed, end: &str) -> Option<Command> {
    let python = needs::program("python3")?;
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("whylate-{}-{end}", bed.0)]).arg(python);
    Some(command)
}

/// A server that waits before each answer, and where it listens.
pub(crate) fn server(how: &str, wait: Duration, cpu: CpuId) -> Option<(Foreign, String)> {
    let words = [how.to_owned(), wait.as_secs_f64().to_string(), cpu.to_string()];
    let mut server = Foreign::start(python()?, SERVER, &words);
    let port = server.line();
    Some((server, format!("127.0.0.1:{port}")))
}

/// Makes datagrams to one port of the server's end expensive to take in.
pub(crate) fn heavy(bed: &Bed, cpu: CpuId) -> Option<Foreign> {
    let words = [cpu.to_string(), SOCKETS.to_string()];
    let mut heavy = Foreign::start(python_in(bed, "server")?, HEAVY, &words);
    assert_eq!(heavy.line(), "ready");
    Some(heavy)
}

/// Datagrams that are expensive to take in, so far apart, from the client's end.
pub(crate) struct Flood {
    program: Foreign,
    /// What taking one in keeps a CPU busy for.
    pub(crate) each: Duration,
}

impl Flood {
    /// It has measured what one costs, and waits.
    pub(crate) fn ready(bed: &Bed, cpu: CpuId, apart: Duration) -> Option<Self> {
        let words = [cpu.to_string(), apart.as_secs_f64().to_string()];
        let mut program = Foreign::start(python_in(bed, "client")?, FLOOD, &words);
        let each = Duration::from_secs_f64(program.line().parse().unwrap());
        Some(Self { program, each })
    }

    pub(crate) fn begin(&mut self) {
        self.program.go_on();
    }

    /// Ends it; datagrams a second that it sent.
    pub(crate) fn end(mut self) -> f64 {
        self.program.go_on();
        let line = self.program.line();
        let (sent, seconds) = line.split_once(' ').unwrap();
        sent.parse::<f64>().unwrap() / seconds.parse::<f64>().unwrap()
    }
}

/// A command at one end of a bed, which must end well.
pub(crate) fn at(bed: &Bed, end: &str, words: &[&str]) {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("whylate-{}-{end}", bed.0)]).args(words);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", crate::program::said(&output));
}
