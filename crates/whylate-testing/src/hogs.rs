//! A thread of real-time priority that takes the CPU of a box, by the clock alone, or whenever so many frames
//! more have passed the box. Its bursts are counted. Frames are seen inside the bed alone, and are left as
//! they are.

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

use crate::program::{self, Started, whylate};

/// What a burst takes, and the time between two of those by the clock, which is in step with no rate.
const BURST_NS: u64 = 100_000;
const BETWEEN: Duration = Duration::from_micros(4_370);
/// Frames that a burst by frames comes after: each is seen at both links, so that a burst begins as one comes
/// and as one leaves in turns.
pub const FRAMES: u64 = 37;
/// How often it is looked whether the bed is there, and whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// Every protocol: `ETH_P_ALL` of `linux/if_ether.h`.
const ALL: u16 = 3;

/// What takes the CPU of the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hog {
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
pub fn disturbed(words: &str, hog: Hog, (cpu, client): (CpuId, CpuId)) -> (Run, u64) {
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
    assert!(matches!(status, Some(0 | 4)), "{words}: {status:?}");
    (program::read(&directory), bursts)
}
