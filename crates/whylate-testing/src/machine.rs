//! The guest: its root file system, its processor and its cards, and the runs that it leaves.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use whylate_model::breakdown::{Breakdown, CountedStamps, Point, PointFacts, Probed, Station};
use whylate_model::run::Run;

use crate::archive::Archive;
use crate::needs;
use crate::program::{self, Started};
use crate::requests::flow;

/// Where `xtask/get-guest.sh` puts QEMU and a kernel, or says why not: in [`NO_SUCH`] that this system has none, in
/// [`NOT_FETCHED`] that it was not to be had.
const GUEST: &str = "/var/cache/whylate-tests/guest";
const NO_SUCH: &str = "why-not";
const NOT_FETCHED: &str = "not-fetched";
/// From the start of the guest to its end, within the limit of a test.
const LONGEST: Duration = Duration::from_secs(240);
/// CPU time that others took meanwhile which excuses a guest that has not ended: a quarter of what there was
/// for its two processors.
const EXCUSED_NS: f64 = 120e9;
const EACH_LOOK: Duration = Duration::from_millis(100);
/// Programs of this host that the guest has.
pub const PROGRAMS: [&str; 8] =
    ["dash", "mount", "ip", "insmod", "unshare", "nsenter", "sleep", "cat"];
const MODULES: [&str; 3] = ["dca.ko", "i2c-algo-bit.ko", "igb.ko"];
const TRANSPORTS: [&str; 2] = ["udp", "tcp"];
/// The emulated processor hands this host's counter on and does not say that it is invariant. The program
/// refuses counters that are not, and it has seen this host's.
const PROCESSOR: &str = "max,x-force-features=on,+invtsc";
const WORDS: &str = "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable";

/// The root file system of the guest.
fn root() -> Archive {
    let mut root = Archive::default();
    for directory in ["proc", "sys", "dev", "run", "tmp"] {
        root.directory(directory);
    }
    for name in PROGRAMS {
        let program = needs::program(name).expect("it was asked for");
        root.program(&program, &format!("/bin/{name}"));
    }
    for module in MODULES {
        root.file(&format!("/lib/{module}"), std::fs::read(Path::new(GUEST).join(module)).unwrap());
    }
    root.file("/init", include_bytes!("init.sh").to_vec());
    root
}

/// The program without what only debuggers read, which is most of it.
fn stripped(home: &Path) -> PathBuf {
    let to = home.join("whylate");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&to).arg(program::path()).stderr(Stdio::null());
    if strip.status().is_ok_and(|status| status.success()) {
        to
    } else {
        program::path().to_path_buf()
    }
}

/// The guest, about to start; its serial ports are files of `home`.
fn qemu(home: &Path) -> Command {
    let unpacked = Path::new(GUEST).join("unpacked");
    let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
    let libraries = libraries.map(|directory| unpacked.join(directory));
    let mut qemu = Command::new(unpacked.join("usr/bin/qemu-system-x86_64"));
    qemu.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).unwrap());
    for data in ["usr/share/qemu", "usr/share/seabios"] {
        qemu.arg("-L").arg(unpacked.join(data));
    }
    qemu.args(["-M", "q35", "-accel", "tcg,thread=multi", "-cpu", PROCESSOR, "-m", "1024"]);
    qemu.args(["-smp", "2", "-nodefaults", "-display", "none", "-no-reboot"]);
    for port in ["console", "udp", "tcp"] {
        qemu.arg("-serial").arg(format!("file:{}", home.join(port).display()));
    }
    qemu.arg("-kernel").arg(Path::new(GUEST).join("vmlinuz"));
    qemu.arg("-initrd").arg(home.join("root")).args(["-append", WORDS]);
    // A card is several functions, which need a slot of their own.
    for card in ["1", "2"] {
        qemu.args(["-netdev", &format!("hubport,id=wire{card},hubid=0")]);
        qemu.args(["-device", &format!("pcie-root-port,id=slot{card},chassis={card},slot={card}")]);
        let device = format!("igb,bus=slot{card},netdev=wire{card},mac=02:00:00:00:00:0{card}");
        qemu.args(["-device", &format!("{device},romfile=")]);
    }
    qemu
}

/// Why this host has no guest, where it has none.
pub fn is_there() -> Result<(), String> {
    let at = Path::new(GUEST);
    if !at.join("ready").exists() {
        let said = [NO_SUCH, NOT_FETCHED].map(|file| std::fs::read_to_string(at.join(file)));
        let why = said.into_iter().find_map(Result::ok);
        let why = why.unwrap_or_else(|| "xtask/get-guest.sh was not run".to_owned());
        return Err(format!("no guest with a card that stamps: {}", why.trim_end()));
    }
    Ok(())
}

/// Has this system no such guest at all? Where it has one, a test that needs it is left out for want of what the
/// test machines offer.
pub fn is_none_of_this_system() -> bool {
    Path::new(GUEST).join(NO_SUCH).exists()
}

/// Starts the guest and waits for its end: its runs, in the order of the transports. None where this host was
/// too busy for it to end.
pub fn runs() -> Option<Vec<Run>> {
    let mut root = root();
    let home = tempfile::tempdir().unwrap();
    root.program(&stripped(home.path()), "/bin/whylate");
    std::fs::write(home.path().join("root"), root.bytes()).unwrap();
    let mut qemu = qemu(home.path());
    let said = File::create(home.path().join("qemu")).unwrap();
    qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    let taken = needs::Taken::now(&whylate_sys::affinity::get());
    let mut guest = Started(qemu.spawn().unwrap());
    let looks = LONGEST.as_millis() / EACH_LOOK.as_millis();
    let ended = (0..looks).find_map(|_| {
        std::thread::sleep(EACH_LOOK);
        guest.0.try_wait().unwrap()
    });
    let text = |name| std::fs::read_to_string(home.path().join(name)).unwrap_or_default();
    let (console, said) = (text("console"), text("qemu"));
    if ended.is_none() && taken.ns() >= EXCUSED_NS {
        let seconds = LONGEST.as_secs();
        needs::spoilt(&format!("the host or others took the CPUs: no end within {seconds} s"));
        return None;
    }
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {said}\n{console}");
    let runs = TRANSPORTS.map(|transport| {
        let directory = home.path().join(format!("{transport}-run"));
        std::fs::create_dir(&directory).unwrap();
        let json = text(transport);
        assert!(!json.is_empty(), "no run by {transport}: {said}\n{console}");
        std::fs::write(directory.join("run.json"), json).unwrap();
        program::read(&directory)
    });
    Some(runs.into())
}

/// The requests of a run, taken apart.
pub fn breakdown(run: &Run) -> &Breakdown {
    flow(run).breakdown.as_deref().expect("requests were taken apart")
}

/// What the probe found of a kind of stamps.
pub fn probed<'a>(of: &'a Breakdown, stamp: &str) -> &'a Probed {
    of.probes.iter().find(|probed| probed.stamp == stamp).expect("each kind is probed")
}

/// What became of a kind of stamps.
pub fn counted<'a>(of: &'a Breakdown, stamp: &str) -> &'a CountedStamps {
    of.stamps.iter().find(|stamps| stamps.stamp == stamp).expect("each kind is counted")
}

/// The wire, where the card of this end stamps.
pub fn wire(of: &Breakdown) -> &PointFacts {
    let wire = Point::there(Station::WireOut);
    of.points.iter().find(|facts| facts.point == wire).expect("the wire is a point")
}
