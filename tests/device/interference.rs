//! Do bounds hold what a forwarder itself wrote down while something takes its CPU? A thread of real-time
//! priority does so by the clock alone, or whenever so many frames more have passed the box.
//!
//! Bursts are counted: a run without them proves nothing and fails. Frames are seen inside the bed alone, and
//! are left as they are.

use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RawProtocol, RecvFlags, SocketFlags, SocketType, recv, socket_with,
};
use whylate_host::bed::{Role, mount_point};
use whylate_model::CpuId;
use whylate_model::run::Run;
use whylate_sys::nanosleep::{Clock, clock_ns};
use whylate_sys::{affinity, namespace, sched};

use super::trials::Trials;
use super::{
    EXCUSED_NS, FEWEST_CLAIMED, MEASURED, adds_up, judged, log_is_of_what_was_measured, possible,
};
use crate::needs;
use crate::pairs::say;
use crate::program::{self, Started, whylate};

/// What a burst takes, and the time between two of those by the clock, which is in step with no rate.
const BURST_NS: u64 = 100_000;
const BETWEEN: Duration = Duration::from_micros(4_370);
/// Frames that a burst by frames comes after: each is seen at both links, so that a burst begins as one comes
/// and as one leaves in turns.
const FRAMES: u64 = 37;
/// How often it is looked whether the bed is there, and whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// Fewer bursts are no interference.
const FEWEST_BURSTS: u64 = 1_000;
/// Every protocol: `ETH_P_ALL` of `linux/if_ether.h`.
const ALL: u16 = 3;
const WORDS: &str = "device --rate 2kpps --rounds 3 --warmup 50ms --no-throughput";
/// A box whose time is so short that bounds from below are hardly ever above zero.
const FORWARDER: &str = "forward:packet";
/// A box whose time is long enough for bounds from below, and whose log is as well known.
const LONG: &str = "delay:100us";
/// Sizes of ten trials, both ways of each.
const FEW: &str = "64,256,512,1024,1518 --duration 300ms";
/// Sizes of fifty-four; of both kinds of bursts together a hundred have to claim something.
const MANY: &str = "64,96,128,160,192,256,320,384,448,512,576,640,704,768,832,896,960,1024,1088,1152,1216,\
                    1280,1344,1400,1440,1480,1518 --duration 200ms";
const HUNDRED: u64 = 100;
/// Sizes of eight trials of the longer time, and of twenty-four.
const FEW_LONG: &str = "64,512,1024,1518 --duration 300ms";
const MANY_LONG: &str = "64,192,320,448,576,704,832,960,1088,1216,1344,1518 --duration 200ms";
/// Of eight trials of the longer time so many have to be two-sided at least.
const FEWEST_TWO_SIDED: u64 = 3;

/// What takes the CPU of the box.
#[derive(Debug, Clone, Copy)]
enum Hog {
    /// By the clock alone: no frame has to do with it.
    ByTheClock,
    /// After so many frames: its bursts begin with one.
    ByFrames,
}

/// Takes the CPU for a burst.
fn burst() {
    let now = || clock_ns(Clock::Monotonic);
    let until = now() + BURST_NS;
    while now() < until {
        std::hint::spin_loop();
    }
}

/// Bursts by the clock until it is told to stop; how many there were.
fn by_the_clock(stop: &AtomicBool) -> u64 {
    let mut bursts = 0;
    while !stop.load(Ordering::Relaxed) {
        burst();
        bursts += 1;
        thread::sleep(BETWEEN);
    }
    bursts
}

/// Bursts by the frames at the links of the box that the process with this id set up.
fn by_frames(pid: u32, stop: &AtomicBool) -> u64 {
    let place = mount_point(&format!("device-{pid}-box"), Role::Device);
    // Its file is there before the namespace is mounted on it.
    while namespace::enter_network(&place).is_err() {
        if stop.load(Ordering::Relaxed) {
            return 0;
        }
        thread::sleep(LOOK);
    }
    let socket = tap();
    let (mut seen, mut bursts, mut bytes) = (0_u64, 0, [0_u8; 64]);
    while !stop.load(Ordering::Relaxed) {
        // A look in vain ends after a while.
        if recv(&socket, &mut bytes, RecvFlags::empty()).is_err() {
            continue;
        }
        seen += 1;
        if seen.is_multiple_of(FRAMES) {
            burst();
            bursts += 1;
        }
    }
    bursts
}

/// A socket that sees every frame of this namespace, coming and going.
fn tap() -> OwnedFd {
    let all = RawProtocol::new(u32::from(ALL.to_be())).map(Protocol::from_raw);
    let (family, flags) = (AddressFamily::PACKET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::RAW, flags, all).unwrap();
    set_socket_timeout(&socket, Timeout::Recv, Some(LOOK)).unwrap();
    socket
}

/// A run of the box on this CPU with a hog beside it, and how many bursts there were.
fn disturbed(words: &str, hog: Hog, (cpu, client): (CpuId, CpuId)) -> (Run, u64) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("run");
    let words = format!("{words} --box-cpu {cpu} --cpus {client}");
    let mut command = whylate(words.split_whitespace());
    command.arg("-o").arg(&directory).stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = Started(command.spawn().unwrap());
    let (pid, stop) = (started.0.id(), AtomicBool::new(false));
    let (status, bursts) = thread::scope(|scope| {
        let hogging = scope.spawn(|| {
            affinity::set(&[cpu]).unwrap();
            sched::set_fifo(50).unwrap();
            match hog {
                Hog::ByTheClock => by_the_clock(&stop),
                Hog::ByFrames => by_frames(pid, &stop),
            }
        });
        let status = started.status();
        stop.store(true, Ordering::Relaxed);
        (status, hogging.join().unwrap())
    });
    assert!(status.is_some_and(|status| MEASURED.contains(&status)), "{words}: {status:?}");
    (program::read(&directory), bursts)
}

impl Hog {
    const BOTH: [Self; 2] = [Self::ByTheClock, Self::ByFrames];

    fn words(self) -> &'static str {
        match self {
            Self::ByTheClock => "by the clock",
            Self::ByFrames => "by frames",
        }
    }
}

/// Trials of this box at these sizes under bursts of one kind.
fn under(hog: Hog, (the_box, sizes): (&str, &str), seats: (CpuId, CpuId)) -> Trials {
    let words = format!("{WORDS} --box {the_box} --sizes {sizes}");
    let (run, bursts) = disturbed(&words, hog, seats);
    let what = hog.words();
    assert!(bursts >= FEWEST_BURSTS, "{bursts} bursts {what}");
    let mut trials = Trials::default();
    judged(run.device.as_deref().expect("a device"), &mut trials);
    say(&format!("{the_box} with {bursts} bursts {what}: {}", trials.words()));
    trials
}

/// The CPUs of box and client, which are two.
fn seats() -> Option<(CpuId, CpuId)> {
    let cpus = affinity::get();
    possible().then(|| cpus.first().copied().zip(cpus.last().copied())).flatten()
}

#[test]
#[ignore = "live figure: to accept"]
fn of_twenty_trials_under_bursts_of_both_kinds_no_more_bounds_miss_than_chance_has_it() {
    let _alone = program::alone();
    let Some(seats) = seats() else { return };
    needs::unless_much_taken(&affinity::get(), EXCUSED_NS, || {
        let mut all = Trials::default();
        for hog in Hog::BOTH {
            all.add(under(hog, (FORWARDER, FEW), seats));
        }
        all.no_more_missed_than_chance_has_it(FEWEST_CLAIMED)
    });
}

#[test]
#[ignore = "live figure: to accept"]
fn bounds_from_both_sides_hold_the_log_of_a_longer_time_under_bursts_as_often_as_chance_has_it() {
    let _alone = program::alone();
    let Some(seats) = seats() else { return };
    needs::unless_much_taken(&affinity::get(), EXCUSED_NS, || {
        let trials = under(Hog::ByTheClock, (LONG, FEW_LONG), seats);
        trials.enough_two_sided(FEWEST_TWO_SIDED)?;
        trials.no_more_missed_than_chance_has_it(FEWEST_TWO_SIDED)
    });
}

#[test]
#[ignore = "takes some minutes of a quiet host: `make bench` runs it"]
fn bounds_hold_the_log_of_a_forwarder_under_bursts_of_both_kinds_in_95_of_100_trials() {
    let _alone = program::alone();
    let Some(seats) = seats() else { return };
    let held = needs::unless_much_taken(&affinity::get(), EXCUSED_NS, || {
        let mut all = Trials::default();
        for (of, least) in [((FORWARDER, MANY), HUNDRED / 3), ((LONG, MANY_LONG), FEWEST_CLAIMED)] {
            for hog in Hog::BOTH {
                let trials = under(hog, of, seats);
                // Neither kind hides behind the other one.
                let alone = trials.no_more_missed_than_chance_has_it(least);
                alone.map_err(|why| format!("{} {}: {why}", of.0, hog.words()))?;
                all.add(trials);
            }
        }
        all.at_least_95_of_100(HUNDRED)?;
        Ok(all)
    });
    if let Some(trials) = held {
        say(&format!("under bursts of both kinds: {}", trials.words()));
    }
}

#[test]
#[ignore = "live figure: to accept"]
fn frames_of_a_box_set_off_bursts_on_its_cpu_and_all_are_accounted_for() {
    let _alone = program::alone();
    if !possible() {
        return;
    }
    let cpus = affinity::get();
    let (Some(&cpu), Some(&client)) = (cpus.first(), cpus.last()) else { return };
    let words = "device --box forward:packet --sizes 128 --rate 2kpps --rounds 2 --duration 300ms --warmup \
                 50ms --no-throughput";
    let (run, bursts) = disturbed(words, Hog::ByFrames, (cpu, client));
    let sizes = &run.device.as_deref().expect("a device").sizes;
    assert_eq!(sizes.len(), 2, "both ways");
    sizes.iter().for_each(adds_up);
    sizes.iter().for_each(log_is_of_what_was_measured);
    // Each frame of the box, and of the line in its place, is seen at both links.
    let passed: u64 = sizes.iter().map(|at| at.received).sum();
    assert!(
        bursts >= 2 * passed / FRAMES / 2,
        "{bursts} bursts of {passed} frames through the box"
    );
}
