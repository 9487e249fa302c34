//! A network card that stamps, in a guest: the kernel's own driver of an igb card (82576) that QEMU emulates,
//! with a clock of its own and one register for the stamps of what is sent.
//!
//! Two cards are joined by a wire, and the other end has its own in a namespace. The guest's processor is
//! emulated, so no time is judged: that stamps come, what is counted, and what sums up.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use whylate_model::breakdown::{Breakdown, PartShare, Point, Probed, Source, Station};
use whylate_model::run::Run;

use crate::needs;
use crate::program::{self, Started};
use crate::requests::flow;

mod archive;

use archive::Archive;

/// Where `xtask/get-guest.sh` puts QEMU and a kernel, or says why not.
const GUEST: &str = "/var/cache/whylate-tests/guest";
/// From the start of the guest to its end.
const LONGEST: Duration = Duration::from_secs(120);
const EACH_LOOK: Duration = Duration::from_millis(100);
/// Programs of this host that the guest has.
const PROGRAMS: [&str; 8] = ["dash", "mount", "ip", "insmod", "unshare", "nsenter", "sleep", "cat"];
const MODULES: [&str; 3] = ["dca.ko", "i2c-algo-bit.ko", "igb.ko"];
const TRANSPORTS: [&str; 2] = ["udp", "tcp"];
/// The emulated processor hands this host's counter on and does not say that it is invariant. The program
/// refuses counters that are not, and it has seen this host's.
const PROCESSOR: &str = "max,x-force-features=on,+invtsc";
const WORDS: &str = "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable";

/// The root file system of the guest; none where this host lacks a part of it.
fn root() -> Option<Archive> {
    let mut root = Archive::default();
    for directory in ["proc", "sys", "dev", "run", "tmp"] {
        root.directory(directory);
    }
    for name in PROGRAMS {
        root.program(&needs::program(name)?, &format!("/bin/{name}"));
    }
    for module in MODULES {
        root.file(&format!("/lib/{module}"), std::fs::read(Path::new(GUEST).join(module)).unwrap());
    }
    root.file("/init", include_bytes!("guest/init.sh").to_vec());
    Some(root)
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

/// What became of a guest: its runs, in the order of the transports, each with its directory.
struct Measured {
    home: TempDir,
    runs: Vec<Run>,
}

impl Measured {
    /// Starts the guest and waits for its end; none where this host cannot have one.
    fn here() -> Option<Self> {
        if !Path::new(GUEST).join("ready").exists() {
            let why = std::fs::read_to_string(Path::new(GUEST).join("why-not"));
            let why = why.unwrap_or_else(|_| "xtask/get-guest.sh was not run".to_owned());
            needs::left_out(&format!("no guest with a card that stamps: {}", why.trim_end()));
            return None;
        }
        let mut root = root()?;
        let home = tempfile::tempdir().unwrap();
        root.program(&stripped(home.path()), "/bin/whylate");
        std::fs::write(home.path().join("root"), root.bytes()).unwrap();
        let mut qemu = qemu(home.path());
        let said = File::create(home.path().join("qemu")).unwrap();
        qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let mut guest = Started(qemu.spawn().unwrap());
        let looks = LONGEST.as_millis() / EACH_LOOK.as_millis();
        let ended = (0..looks).find_map(|_| {
            std::thread::sleep(EACH_LOOK);
            guest.0.try_wait().unwrap()
        });
        let text = |name| std::fs::read_to_string(home.path().join(name)).unwrap_or_default();
        let (console, said) = (text("console"), text("qemu"));
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {said}\n{console}");
        let runs = TRANSPORTS.map(|transport| {
            let directory = home.path().join(format!("{transport}-run"));
            std::fs::create_dir(&directory).unwrap();
            let json = text(transport);
            assert!(!json.is_empty(), "no run by {transport}: {said}\n{console}");
            std::fs::write(directory.join("run.json"), json).unwrap();
            program::read(&directory)
        });
        Some(Self { runs: runs.into(), home })
    }
}

fn breakdown(run: &Run) -> &Breakdown {
    flow(run).breakdown.as_deref().expect("requests were taken apart")
}

fn probed<'a>(of: &'a Breakdown, stamp: &str) -> &'a Probed {
    of.probes.iter().find(|probed| probed.stamp == stamp).expect("each kind is probed")
}

/// The probe sees what the card has: stamps of what is sent, and none of ordinary messages that come.
fn the_probe_says_what_the_card_stamps(of: &Breakdown) {
    let sent = probed(of, "tx hardware");
    assert!(sent.accepted && sent.delivered * 10 >= sent.sent * 9 && sent.sent > 0, "{sent:?}");
    let received = probed(of, "rx hardware");
    assert!(received.accepted && received.sent > 0 && received.delivered == 0, "{received:?}");
    assert!(received.reason.as_ref().is_some_and(|why| why.contains("PTP")), "{received:?}");
}

/// Each that was asked for came or is missing; of the card no more are asked for than it has room for.
fn counts_close(run: &Run) {
    let (of, packets) = (breakdown(run), &flow(run).packets);
    for stamps in &of.stamps {
        assert!(stamps.adds_up() && stamps.skipped <= stamps.missing, "{stamps:?}");
        assert_eq!(stamps.unknown, 0, "{stamps:?}");
    }
    let counted = |name: &str| of.stamps.iter().find(|stamps| stamps.stamp == name).expect(name);
    let (software, card) = (counted("tx software"), counted("tx hardware"));
    assert!(software.asked >= packets.sent && card.asked <= software.asked, "{:?}", of.stamps);
    assert!(software.came * 10 >= software.asked * 9, "{software:?}");
    // All but those that were lost on their way through an emulated interrupt.
    assert!(card.came > 0 && card.came * 10 >= card.asked * 9, "{card:?}");
}

/// The card's stamps lie between the driver's and the reply's, by its own clock, which began at another
/// time than the system's: they have a bound, and are one end of parts.
fn the_cards_stamps_are_parts(of: &Breakdown) {
    let wire = Point::there(Station::WireOut);
    let facts = of.points.iter().find(|facts| facts.point == wire).expect("the wire is a point");
    assert_eq!(facts.source, Source::Hardware, "{facts:?}");
    assert_eq!(facts.came + facts.missing + facts.not_asked, of.requests, "{facts:?}");
    assert!(facts.came > 0 && facts.bound.0 > 0, "{facts:?}");
    assert!(facts.contradicted * 10 <= facts.came, "{facts:?}");
    let to_wire = |part: &&PartShare| part.part.to == wire;
    let parts: Vec<_> = of.all.parts.iter().filter(to_wire).collect();
    let requests: u64 = parts.iter().map(|part| part.requests).sum();
    assert_eq!(requests, facts.came - facts.contradicted, "{parts:#?}");
    assert!(parts.iter().any(|part| part.part.from == Point::there(Station::Driver)), "{parts:#?}");
}

/// The parts sum to the whole.
fn parts_sum(of: &Breakdown) {
    assert!(of.requests > 0, "{of:?}");
    let sum: f64 = of.all.parts.iter().map(|part| part.mean_ns).sum();
    assert!((sum + of.all.residual_ns - of.all.total_mean_ns).abs() < 1.0, "{:?}", of.all);
}

#[test]
#[ignore = "live figure: to accept"]
fn a_cards_stamps_come_by_its_own_driver_and_counts_close_and_parts_sum_to_the_total() {
    let _alone = program::alone();
    let Some(measured) = Measured::here() else { return };
    for run in &measured.runs {
        the_probe_says_what_the_card_stamps(breakdown(run));
        counts_close(run);
        the_cards_stamps_are_parts(breakdown(run));
        parts_sum(breakdown(run));
    }
    drop(measured.home);
}
