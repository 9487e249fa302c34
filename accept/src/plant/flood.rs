//! Frames that trafgen sends as fast as it can through a forwarder, on the first CPU; the forwarder has the
//! last one. What counts is what the server's interface received, by the kernel's counters inside its
//! namespace. On a machine of two CPUs the sender also does a part of the forwarder's work in its
//! interrupts: whatever is compared gets the same.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::NamedTempFile;
use whylate_model::{CpuId, Pid};
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::signal::send_to_process;

use crate::between::{Bed, Place, SIGINT, closes};
use crate::program::until;
use crate::told::{packets_received, trafgens_outgoing};

/// Before what counts: caches and rings are filled.
const WARM: Duration = Duration::from_millis(200);
/// What is under way has arrived by then; the kernel has given back the queues of one that ended.
pub(crate) const SETTLED: Duration = Duration::from_millis(200);
/// 64 bytes: UDP from the client, with the addresses of the server for all but its hardware. Its
/// interface counts them, and nobody answers. The sum over the header is that of these bytes.
const FRAME: &str = "{ 0x02, fill(0, 4), 0x03, 0x02, fill(0, 4), 0x01, c16(0x0800), \
    0x45, 0, c16(50), fill(0, 4), 64, 17, c16(0xee93), 198, 18, 0, 1, 198, 18, 0, 2, \
    c16(7000), c16(7000), c16(30), c16(0), fill(0x5a, 22) }";
/// Frames and seconds after which programs of others end by themselves, also where this test was killed.
const MOST_FRAMES: &str = "5000000";
const MOST_SECONDS: &str = "60";

/// The part of a flood that counts.
const WINDOW: Duration = Duration::from_millis(700);

/// Another's program in a namespace, ended with the test. It is run by timeout, which hands signals on
/// to all processes of it.
pub(crate) struct Theirs {
    child: Child,
    output: NamedTempFile,
}

impl Theirs {
    pub(crate) fn new(place: &Place, words: &[&str]) -> Self {
        let output = NamedTempFile::new().unwrap();
        let mut command = Command::new("timeout");
        command.args(["--signal=INT", "--kill-after=3", MOST_SECONDS]).args(words);
        command.stdin(Stdio::piped());
        let file = output.reopen().unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let child = place.inside(move || command.spawn()).unwrap();
        Self { child, output }
    }

    pub(crate) fn said(&self) -> String {
        let bytes = std::fs::read(self.output.path()).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How it ended and what it said; none while it runs.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().unwrap()?;
        Some(format!("{status}: {}", self.said()))
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(&mut self) {
        send_to_process(Pid(self.child.id() as i32), SIGINT).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.said());
    }

    /// Ends one that ends with its input.
    pub(crate) fn hang_up(&mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.said());
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // Of one that ended, the number may be another's by now.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = send_to_process(Pid(self.child.id() as i32), SIGINT);
            let _ = self.child.wait();
        }
    }
}

/// What arrived of what was sent, and how many a second in the part that counts.
pub(crate) struct Carried {
    pub(crate) arrived: u64,
    pub(crate) rate: f64,
}

/// What the server's interface has received so far, and when that was in nanoseconds.
pub(crate) fn received(bed: &Bed) -> (u64, u64) {
    bed.server.inside(|| {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let now = clock_ns(Clock::Monotonic);
        (packets_received(&text, "server0").expect("the server's interface"), now)
    })
}

/// Waits until messages pass; none of them is under way then.
pub(crate) fn passes(bed: &Bed, mut ended: impl FnMut() -> Option<String>) {
    let (client, server) = bed.sockets();
    server.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut number = 0_u32;
    until("frames pass", || {
        if let Some(said) = ended() {
            panic!("it does not forward, {said}");
        }
        number += 1;
        // A link that is not up yet refuses it: there is another one.
        let _ = client.send_to(&number.to_be_bytes(), "198.18.0.2:7000");
        let mut bytes = [0; 4];
        // They keep their order: those before the last one have come or never will.
        while server.recv(&mut bytes).is_ok() {
            if u32::from_be_bytes(bytes) == number {
                return Some(());
            }
        }
        None
    });
}

/// Has trafgen send through the forwarder, and counts.
pub(crate) fn flooded(bed: &Bed) -> Carried {
    let (before, _) = received(bed);
    let mut words = vec!["trafgen", "-o", "client0", "-P", "1", "-n", MOST_FRAMES];
    // Whatever it would change of the host is left as it is.
    words.extend(["--no-sock-mem", "--notouch-irq", FRAME]);
    let mut sender = Theirs::new(&bed.client, &words);
    until("frames arrive", || {
        assert_eq!(sender.ended(), None, "trafgen");
        (received(bed).0 > before).then_some(())
    });
    thread::sleep(WARM);
    let (first, begun) = received(bed);
    thread::sleep(WINDOW);
    let (last, ended) = received(bed);
    assert_eq!(sender.ended(), None, "it sent until here");
    sender.interrupt();
    thread::sleep(SETTLED);
    let arrived = received(bed).0 - before;
    let said = sender.said();
    let sent =
        trafgens_outgoing(&said).unwrap_or_else(|| panic!("trafgen tells no number: {said}"));
    assert!(last > first && arrived <= sent, "{arrived} of {sent} arrived, {first} to {last}");
    Carried { arrived, rate: (last - first) as f64 * 1e9 / (ended - begun) as f64 }
}

/// What `whylate forward` carries.
pub(crate) fn ours(bed: &Bed, cpu: CpuId, words: &str) -> Carried {
    let words = format!("--cpus {cpu} --stamps off --duration {MOST_SECONDS}s {words}");
    let forwarding = bed.forward(&words);
    passes(bed, || None);
    let carried = flooded(bed);
    let told = forwarding.stop();
    closes(&told);
    let forwarded = told.directions[0].forwarded;
    assert!(forwarded >= carried.arrived, "{} arrived: {told:?}", carried.arrived);
    thread::sleep(SETTLED);
    carried
}
