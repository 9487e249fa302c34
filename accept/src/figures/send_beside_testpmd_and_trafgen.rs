//! Sending over AF_XDP as fast as it goes, beside Debian's testpmd over `net_af_xdp` and beside trafgen, on the
//! same virtual link and CPU in turn, with frames of the same bytes.
//!
//! What counts is what arrived, by the kernel's counter at the link's far end: a sender's own count also
//! holds what the kernel threw away. All frames are for a station that is not there, so that the far end
//! throws them away at the same early place.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use accept::figure::{Bound, Figure, Reading, Round, Row};
use whylate_clock::HardwareCounter;
use whylate_model::{CpuId, Hertz, Nanos, Pid};
use whylate_port::{End, Frames, LinkOptions, Setup, Threads, Transport, Wait};
use whylate_sys::affinity;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::signal::send_to_process;

use crate::huge_pages;
use crate::needed;
use crate::over_dpdk::{bed, cpus};
use crate::peer::Testpmd;
use crate::place::{Bed, Place};
use crate::program::until;
use crate::told::packets_received;

/// Frames that arrive before anybody is said to send.
const SENDS: u64 = 10_000;
/// What all three hand over at once.
const BURST: usize = 32;
/// As testpmd makes them: to a station that nobody is, 64 bytes with their checksum.
const FRAME: [u8; 60] = {
    let mut frame = [0; 60];
    (frame[0], frame[6], frame[11]) = (2, 2, 9);
    (frame[12], frame[13]) = (8, 0);
    frame[14] = 0x45;
    frame
};
/// The same to trafgen.
const WORDS: &str = "{ 0x02, fill(0, 5), 0x02, fill(0, 4), 9, c16(0x0800), 0x45, fill(0, 45) }";
const SIGINT: i32 = 2;
/// How long we send before what counts, and what counts of either.
const BEFORE: Duration = Duration::from_millis(200);
const COUNTED: Duration = Duration::from_millis(400);
/// Programs of others end by themselves after that.
const MOST_SECONDS: &str = "30";

const fn row(claim: &'static str) -> Row {
    Row { claim, unit: "ratio", bound: Bound::AtLeast(1.0) }
}

pub(crate) const FIGURE: Figure = Figure {
    name: "send_beside_testpmd_and_trafgen",
    method: "64-byte frames sent by xdp as fast as it goes, between two runs of testpmd and of trafgen",
    rows: &[
        row("frames a second that arrive, by xdp over testpmd's"),
        row("frames a second that arrive, by xdp over trafgen's"),
    ],
    rounds: 6,
    seconds: 7.0,
    most_taken: Some(0.05),
    needs: || {
        needed::two_ends(&["ip", "timeout", "trafgen", "dpdk-testpmd"])?;
        huge_pages::can_be_had()
    },
    round,
};

fn round(_: Round) -> Result<Vec<Reading>, String> {
    let cpus = cpus();
    let _pages = huge_pages::reserve()?;
    let bed = bed()?;
    // Nothing of the kernel's own comes between.
    assert!(bed.near.ip("link set near addrgenmode none"));
    // Each beside its own control: how far testpmd agrees with itself says nothing of trafgen.
    let [testpmd, trafgen] = [testpmds(&bed, cpus), trafgens(&bed, cpus.0)];
    let ours = ours(&bed, cpus.0);
    let [testpmd_again, trafgen_again] = [testpmds(&bed, cpus), trafgens(&bed, cpus.0)];
    Ok(vec![
        Reading::Beside { peer: testpmd, ours, again: testpmd_again },
        Reading::Beside { peer: trafgen, ours, again: trafgen_again },
    ])
}

fn now_s() -> f64 {
    clock_ns(Clock::Monotonic) as f64 / 1e9
}

/// Frames that the far end has received.
fn arrived(far: &Place) -> u64 {
    let text = far.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    packets_received(&text, "far").expect("the far end")
}

/// Frames a second that arrive from now on, while somebody sends.
fn rate(far: &Place) -> f64 {
    let (first, before) = (arrived(far), now_s());
    thread::sleep(COUNTED);
    let (last, after) = (arrived(far), now_s());
    (last - first) as f64 / (after - before)
}

/// Waits until somebody sends.
fn begun(far: &Place, who: &str) {
    let first = arrived(far);
    until(who, || (arrived(far) > first + SENDS).then_some(()));
}

/// The same by us, on this thread's CPU: the frames that arrived, a second.
fn ours(bed: &Bed, cpu: CpuId) -> f64 {
    let (from, before, after, to) = bed.near.inside(|| {
        affinity::set(&[cpu]).unwrap();
        let counter = HardwareCounter::open().unwrap();
        let setup = Setup { counter, rate: Hertz(2e9), wait: Wait::Spin };
        let options = LinkOptions::default();
        let mut end = End::open(Transport::Xdp, "near", &options, Threads::One, setup).unwrap();
        let port = &mut *end.receiving;
        send_for(port, BEFORE);
        let (from, before) = (arrived(&bed.far), now_s());
        send_for(port, COUNTED);
        (from, before, now_s(), arrived(&bed.far))
    });
    (to - from) as f64 / (after - before)
}

/// Sends bursts without a pause.
fn send_for(port: &mut dyn Frames, time: Duration) {
    let end = now_s() + time.as_secs_f64();
    while now_s() < end {
        for _ in 0..64 {
            for _ in 0..BURST {
                let Some(room) = port.put(FRAME.len()) else { break };
                room.copy_from_slice(&FRAME);
            }
            port.flush().unwrap();
        }
        // What came meanwhile is nobody's.
        while port.receive(Nanos(0)).unwrap().count > 0 {}
    }
}

fn testpmds(bed: &Bed, cpus: (CpuId, CpuId)) -> f64 {
    let device = "net_af_xdp0,iface=near,force_copy=1";
    let words = ["--forward-mode=txonly", "--txpkts=60", "--burst=32", "--nb-cores=1"];
    let start = || {
        Testpmd::start_with(&["-m", "256", "--in-memory"], (cpus.1.0, cpus.0.0), &[device], &words)
    };
    let peer = bed.near.inside(start);
    begun(&bed.far, "testpmd sends");
    let rate = rate(&bed.far);
    drop(peer);
    // One that is killed leaves its program there.
    assert!(bed.near.ip("link set dev near xdp off"));
    rate
}

/// trafgen, ended with this. It is run by timeout, which hands the signal on: one that was killed would
/// leave it there, and it would send on beside whoever is next.
struct Trafgen(Child);

impl Drop for Trafgen {
    fn drop(&mut self) {
        let _ = send_to_process(Pid(self.0.id() as i32), SIGINT);
        let _ = self.0.wait();
    }
}

fn trafgens(bed: &Bed, cpu: CpuId) -> f64 {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), WORDS).unwrap();
    let start = || {
        affinity::set(&[cpu]).unwrap();
        let mut command = Command::new("timeout");
        command.args(["--signal=INT", "--kill-after=3", MOST_SECONDS]);
        // Whatever it would change of the host is left as it is.
        command.args(["trafgen", "--no-sock-mem", "--notouch-irq", "-o", "near", "-P", "1", "-i"]);
        command.arg(file.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Trafgen(command.spawn().unwrap())
    };
    let _peer = bed.near.inside(start);
    begun(&bed.far, "trafgen sends");
    rate(&bed.far)
}
