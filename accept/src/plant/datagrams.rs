//! Datagrams that keep the softirq busy that takes them in.

use std::time::Duration;

use whylate_model::CpuId;

use crate::foreign::{Foreign, python_in};
use crate::requests::Bed;

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

/// Makes datagrams to one port of the server's end expensive to take in.
pub(crate) fn heavy(bed: &Bed, cpu: CpuId) -> Foreign {
    let words = [cpu.to_string(), SOCKETS.to_string()];
    let mut heavy = Foreign::start(python_in(bed, "server").unwrap(), HEAVY, &words);
    assert_eq!(heavy.line(), "ready");
    heavy
}

/// Datagrams that are expensive to take in, so far apart, from the client's end.
pub(crate) struct Flood {
    program: Foreign,
    /// What taking one in keeps a CPU busy for.
    pub(crate) each: Duration,
}

impl Flood {
    /// It has measured what one costs, and waits.
    pub(crate) fn ready(bed: &Bed, cpu: CpuId, apart: Duration) -> Self {
        let words = [cpu.to_string(), apart.as_secs_f64().to_string()];
        let mut program = Foreign::start(python_in(bed, "client").unwrap(), FLOOD, &words);
        let each = Duration::from_secs_f64(program.line().parse().unwrap());
        Self { program, each }
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
