//! A server in another language that takes its time before it answers, and says how much.

use std::time::Duration;

use whylate_model::CpuId;

use crate::foreign::{Foreign, python};

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

/// A server that waits before each answer.
pub(crate) struct LateServer {
    program: Foreign,
    /// Where it listens.
    pub(crate) at: String,
}

impl LateServer {
    /// One that sleeps or is busy for so long.
    pub(crate) fn start(how: &str, wait: Duration, cpu: CpuId) -> Self {
        let words = [how.to_owned(), wait.as_secs_f64().to_string(), cpu.to_string()];
        let mut program = Foreign::start(python().unwrap(), SERVER, &words);
        let port = program.line();
        Self { program, at: format!("127.0.0.1:{port}") }
    }

    /// Nanoseconds that it had each of its next requests for, so many of them, as it says.
    pub(crate) fn had(&mut self, requests: usize) -> Vec<f64> {
        (0..requests).map(|_| self.program.line().parse::<f64>().unwrap() * 1e9).collect()
    }
}
