//! Sending over AF_XDP as fast as it goes, beside Debian's testpmd over `net_af_xdp` and trafgen, on the
//! same virtual link and CPU in turn, with frames of the same bytes.
//!
//! What counts is what arrived, by the kernel's counter at the link's far end: a sender's own count also
//! holds what the kernel threw away. All frames are for a station that is not there, so that the far end
//! throws them away at the same early place.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use whylate_clock::HardwareCounter;
use whylate_host::guard::Settings;
use whylate_host::journal::Journal;
use whylate_model::{CpuId, Hertz, Nanos, Pid};
use whylate_port::{End, Frames, LinkOptions, Setup, Threads, Transport, Wait};
use whylate_sys::affinity;
use whylate_sys::signal::send_to_process;

use crate::pairs::{self, Promise};
use crate::peer::{Testpmd, installed, missing};
use crate::place::{Bed, Place};
use crate::{ALONE, CLAIMED, cpus, hold, now_s};

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
/// What is promised of the ratio to either of them.
const AS_MANY: Promise = Promise::AtLeast(1.0);
const SIGINT: i32 = 2;
/// What counts of a part of a round, and what we send before it: where rounds are asked for, and otherwise,
/// so that enough of them for a claim are made in any case.
const LONG: Lengths =
    Lengths { before: Duration::from_millis(200), counted: Duration::from_millis(500) };
const SHORT: Lengths =
    Lengths { before: Duration::from_millis(100), counted: Duration::from_millis(250) };
/// Programs of others end by themselves after that.
const MOST_SECONDS: &str = "30";
const PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
/// Of 2 MB: testpmd's memory.
const NEEDED: u64 = 160;

/// How long we send before what counts, and what counts of either.
#[derive(Clone, Copy)]
struct Lengths {
    before: Duration,
    counted: Duration,
}

impl Lengths {
    fn now() -> Self {
        if pairs::wanted().is_some() { LONG } else { SHORT }
    }
}

/// Huge pages for testpmd: on small ones its driver sends from beyond the memory that it has told the
/// kernel of, and two frames of five go nowhere.
/// They are given back with this, and by the next start of whylate where this test was killed.
struct HugePages {
    _settings: Settings,
}

impl HugePages {
    /// Says why not where the kernel has none.
    fn reserve() -> Result<Self, String> {
        let told = std::fs::read_to_string(PAGES).map_err(|error| error.to_string())?;
        let before: u64 = told.trim().parse().map_err(|_| told.clone())?;
        let journal = Journal::open().map_err(|error| error.to_string())?;
        let mut settings = Settings::new(&journal);
        let wanted = (before + NEEDED).to_string();
        settings.set(Path::new(PAGES), &wanted).map_err(|error| error.to_string())?;
        Ok(Self { _settings: settings })
    }
}

/// Frames that the far end has received.
fn arrived(far: &Place) -> u64 {
    let text = far.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let line = text.lines().find_map(|line| line.trim().strip_prefix("far:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Frames a second that arrive from now on, while somebody sends.
fn rate(far: &Place) -> f64 {
    let (first, before) = (arrived(far), now_s());
    thread::sleep(Lengths::now().counted);
    let (last, after) = (arrived(far), now_s());
    (last - first) as f64 / (after - before)
}

/// Waits until somebody sends, 10 s at most.
fn begun(far: &Place) -> bool {
    let first = arrived(far);
    for _ in 0..1_000 {
        if arrived(far) > first + 10_000 {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
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
        let Lengths { before, counted } = Lengths::now();
        send_for(port, before);
        let (from, before) = (arrived(&bed.far), now_s());
        send_for(port, counted);
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
    assert!(begun(&bed.far), "testpmd sends nothing");
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
    assert!(begun(&bed.far), "trafgen sends nothing");
    rate(&bed.far)
}

#[test]
#[ignore = "live figure: to accept"]
fn frames_are_sent_by_af_xdp_beside_testpmd_and_trafgen() {
    let _alone = ALONE.lock();
    let Some(cpus) = cpus().filter(|_| installed()) else { return };
    if Command::new("trafgen").arg("--version").stdout(Stdio::null()).status().is_err() {
        return missing("trafgen is not installed (package netsniff-ng)");
    }
    let _pages = match HugePages::reserve() {
        Ok(pages) => pages,
        Err(why) => return missing(&format!("there are no {NEEDED} huge pages of 2 MB: {why}")),
    };
    let Some(bed) = Bed::new() else { return };
    // Nothing of the kernel's own comes between.
    assert!(bed.near.ip("link set near addrgenmode none"));
    // Each beside its own control: how far testpmd agrees with itself says nothing of trafgen.
    let peers: [(&str, &dyn Fn() -> f64); 2] =
        [("testpmd", &|| testpmds(&bed, cpus)), ("trafgen", &|| trafgens(&bed, cpus.0))];
    for (peer, theirs) in peers {
        let round = || [theirs(), ours(&bed, cpus.0), theirs()];
        hold("sent by xdp", (peer, AS_MANY), (cpus, CLAIMED), round);
    }
}
