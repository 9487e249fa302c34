//! Clocks of network cards (PTP hardware clocks).
//!
//! [`linux/ptp_clock.h`](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/ptp_clock.h)
//! and [ptp](https://docs.kernel.org/driver-api/ptp.html). Capability: none, but to open `/dev/ptpN`,
//! which is root's on most systems. Nothing here sets a clock.
//!
//! A card's clock is read beside the system's in the best way that it has: both at once by the hardware
//! (`PTP_SYS_OFFSET_PRECISE`), the system's read by the driver just before and after the one register
//! (`_EXTENDED`), or by the kernel round the whole call (plain), which takes in the bus as well.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::io::Errno;

use crate::error::{SysError, last_errno};

/// `PTP_MAX_SAMPLES`.
const MOST_SAMPLES: usize = 25;
/// Readings of which the narrowest is taken: a register behind the bus takes a microsecond.
const SAMPLES: u32 = 10;
/// Clocks that are looked for at most.
const MOST_CLOCKS: u32 = 64;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// `struct ptp_clock_time`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct RawTime {
    seconds: i64,
    nanos: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<RawTime>() == 16, "the kernel's structure has 16 bytes");

/// `struct ptp_clock_caps`.
#[repr(C)]
#[derive(Default)]
struct RawCapabilities {
    most_adjustment: i32,
    alarms: i32,
    stamp_channels: i32,
    signals: i32,
    pulse: i32,
    pins: i32,
    cross_timestamping: i32,
    adjusts_phase: i32,
    reserved: [i32; 12],
}

const _: () = assert!(size_of::<RawCapabilities>() == 80, "the kernel's structure has 20 words");

/// `struct ptp_sys_offset_precise`.
#[repr(C)]
#[derive(Default)]
struct RawPrecise {
    device: RawTime,
    realtime: RawTime,
    raw: RawTime,
    reserved: [u32; 4],
}

const _: () = assert!(size_of::<RawPrecise>() == 64, "the kernel's structure has 64 bytes");

/// `struct ptp_sys_offset_extended`.
#[repr(C)]
struct RawExtended {
    samples: u32,
    reserved: [u32; 3],
    /// System, card, system.
    times: [[RawTime; 3]; MOST_SAMPLES],
}

const _: () = assert!(size_of::<RawExtended>() == 1_216, "the kernel's structure has 1216 bytes");

/// `struct ptp_sys_offset`.
#[repr(C)]
struct RawPlain {
    samples: u32,
    reserved: [u32; 3],
    /// System and card by turns, the system's last.
    times: [RawTime; 2 * MOST_SAMPLES + 1],
}

const _: () = assert!(size_of::<RawPlain>() == 832, "the kernel's structure has 832 bytes");

// `linux/ptp_clock.h`: the letter `=`, numbers 1, 8, 9 and 5, the structures above.
const GET_CAPABILITIES: libc::Ioctl = 0x8050_3d01;
const PRECISE: libc::Ioctl = 0xc040_3d08;
const EXTENDED: libc::Ioctl = 0xc4c0_3d09;
const PLAIN: libc::Ioctl = 0x4340_3d05;

/// How a card's clock is read beside the system's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The hardware reads both at once.
    Precise,
    /// The driver reads the system's before and after the card's register.
    Extended,
    /// The kernel reads the system's before and after it asks the driver.
    Plain,
}

impl Reading {
    /// The kernel's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Precise => "PTP_SYS_OFFSET_PRECISE",
            Self::Extended => "PTP_SYS_OFFSET_EXTENDED",
            Self::Plain => "PTP_SYS_OFFSET",
        }
    }
}

/// What a card's clock can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockCapabilities {
    /// Its rate can be changed by so many parts per billion.
    pub most_adjustment_ppb: i32,
    /// The hardware reads it and the system's at once.
    pub cross_timestamping: bool,
    /// It can stamp so many external signals.
    pub stamp_channels: i32,
    /// It can give so many periodic signals.
    pub signals: i32,
}

/// A card's clock between two readings of `CLOCK_REALTIME`, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cross {
    /// The card's.
    pub card_ns: u64,
    /// The system's before.
    pub low_ns: u64,
    /// And after; the same where the hardware read both at once.
    pub high_ns: u64,
}

impl Cross {
    /// From before to after; endless where the system's clock went back.
    fn width(&self) -> u64 {
        self.high_ns.checked_sub(self.low_ns).unwrap_or(u64::MAX)
    }
}

/// An open clock of a card.
#[derive(Debug)]
pub struct PtpClock {
    file: File,
    index: u32,
    capabilities: ClockCapabilities,
    reading: Reading,
}

impl PtpClock {
    /// Opens `/dev/ptpINDEX` and finds the best way to read it.
    pub fn open(index: u32) -> Result<Self, SysError> {
        let device = format!("/dev/ptp{index}");
        let file = File::open(Path::new(&device)).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let advice = match errno {
                Errno::NOENT | Errno::NODEV | Errno::NXIO => {
                    "there is no such clock: does the card have one, and its driver support it \
                     (`ethtool -T`)?"
                }
                Errno::ACCESS | Errno::PERM => "run as root, or let your group read the device",
                _ => "",
            };
            SysError::advised("open", format!("open {device}"), errno, advice)
        })?;
        let capabilities = capabilities(&file, index)?;
        let mut clock = Self { file, index, capabilities, reading: Reading::Plain };
        for way in [Reading::Precise, Reading::Extended] {
            // Some drivers know the precise way and cannot always go it.
            if way == Reading::Precise && !capabilities.cross_timestamping {
                continue;
            }
            if clock.read(way).is_ok() {
                clock.reading = way;
                return Ok(clock);
            }
        }
        clock.read(Reading::Plain).map(|_| clock)
    }

    /// Its number: that of `/dev/ptpN`.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// What it can.
    #[must_use]
    pub fn capabilities(&self) -> ClockCapabilities {
        self.capabilities
    }

    /// How it is read.
    #[must_use]
    pub fn reading(&self) -> Reading {
        self.reading
    }

    /// Its name as a clock of `clock_gettime(2)` (`FD_TO_CLOCKID`).
    #[must_use]
    pub fn clock_id(&self) -> libc::clockid_t {
        (!self.file.as_raw_fd() << 3) | 3
    }

    /// What it shows, without the system's clock.
    pub fn now_ns(&self) -> Result<u64, SysError> {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes one time at the pointer.
        let done = unsafe { libc::clock_gettime(self.clock_id(), &raw mut now) };
        if done < 0 {
            let what = format!("read /dev/ptp{}", self.index);
            return Err(SysError::call("clock_gettime", what, last_errno()));
        }
        Ok(nanos(now.tv_sec, now.tv_nsec as u32))
    }

    /// Reads it beside the system's clock: the narrowest of ten, or the one where the hardware reads both.
    pub fn cross(&mut self) -> Result<Cross, SysError> {
        self.read(self.reading)
    }

    fn read(&self, way: Reading) -> Result<Cross, SysError> {
        let narrowest = match way {
            Reading::Precise => {
                let mut raw = RawPrecise::default();
                self.ask(PRECISE, &mut raw, way)?;
                let (card_ns, at) = (in_nanos(raw.device), in_nanos(raw.realtime));
                Some(Cross { card_ns, low_ns: at, high_ns: at })
            }
            Reading::Extended => {
                let times = [[RawTime::default(); 3]; MOST_SAMPLES];
                let mut raw = RawExtended { samples: SAMPLES, reserved: [0; 3], times };
                self.ask(EXTENDED, &mut raw, way)?;
                narrowest_extended(&raw)
            }
            Reading::Plain => {
                let times = [RawTime::default(); 2 * MOST_SAMPLES + 1];
                let mut raw = RawPlain { samples: SAMPLES, reserved: [0; 3], times };
                self.ask(PLAIN, &mut raw, way)?;
                narrowest_plain(&raw)
            }
        };
        narrowest.ok_or_else(|| {
            let what = format!("read /dev/ptp{} by {}", self.index, way.name());
            SysError::invalid(what, "the driver gave no reading")
        })
    }

    /// One of the requests above; `raw` is the structure that it is about.
    fn ask<T>(&self, request: libc::Ioctl, raw: &mut T, way: Reading) -> Result<(), SysError> {
        // The kernel writes as much as the request says.
        debug_assert_eq!(((request >> 16) & 0x3fff) as usize, size_of::<T>());
        // SAFETY: the request is about a structure of this size, which is all integers.
        let done = unsafe { libc::ioctl(self.file.as_raw_fd(), request, &raw mut *raw) };
        if done < 0 {
            let what = format!("read /dev/ptp{} by {}", self.index, way.name());
            return Err(SysError::call("ioctl", what, last_errno()));
        }
        Ok(())
    }
}

fn capabilities(file: &File, index: u32) -> Result<ClockCapabilities, SysError> {
    let mut raw = RawCapabilities::default();
    // SAFETY: the request is about a structure of this size, which is all integers.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), GET_CAPABILITIES, &raw mut raw) };
    if done < 0 {
        let what = format!("ask /dev/ptp{index} what it can");
        return Err(SysError::advised("ioctl", what, last_errno(), "is that a PTP clock?"));
    }
    Ok(ClockCapabilities {
        most_adjustment_ppb: raw.most_adjustment,
        cross_timestamping: raw.cross_timestamping != 0,
        stamp_channels: raw.stamp_channels,
        signals: raw.signals,
    })
}

/// The numbers of the clocks that this machine has; empty where it has none.
#[must_use]
pub fn clocks() -> Vec<u32> {
    clocks_in(Path::new("/dev"))
}

fn clocks_in(devices: &Path) -> Vec<u32> {
    (0..MOST_CLOCKS).filter(|index| devices.join(format!("ptp{index}")).exists()).collect()
}

fn narrowest_extended(raw: &RawExtended) -> Option<Cross> {
    let samples = raw.times.iter().take(raw.samples as usize);
    let crosses = samples.map(|[low, card, high]| Cross {
        card_ns: in_nanos(*card),
        low_ns: in_nanos(*low),
        high_ns: in_nanos(*high),
    });
    crosses.min_by_key(Cross::width)
}

fn narrowest_plain(raw: &RawPlain) -> Option<Cross> {
    let used = (2 * raw.samples as usize + 1).min(raw.times.len());
    let crosses = raw.times[..used].windows(3).step_by(2).map(|three| Cross {
        card_ns: in_nanos(three[1]),
        low_ns: in_nanos(three[0]),
        high_ns: in_nanos(three[2]),
    });
    crosses.min_by_key(Cross::width)
}

fn in_nanos(time: RawTime) -> u64 {
    nanos(time.seconds, time.nanos)
}

/// A clock that was never set may be before 1970: it counts as standing there.
fn nanos(seconds: i64, nanos: u32) -> u64 {
    u64::try_from(seconds).unwrap_or(0).saturating_mul(NANOS_PER_SECOND) + u64::from(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(ns: u64) -> RawTime {
        let seconds = (ns / NANOS_PER_SECOND) as i64;
        RawTime { seconds, nanos: (ns % NANOS_PER_SECOND) as u32, reserved: 0 }
    }

    #[test]
    fn of_several_readings_the_narrowest_is_taken() {
        let mut raw =
            RawExtended { samples: 3, reserved: [0; 3], times: [[time(0); 3]; MOST_SAMPLES] };
        raw.times[0] = [time(5_000_000_000), time(77), time(5_000_002_000)];
        raw.times[1] = [time(5_000_010_000), time(10_077), time(5_000_010_900)];
        // The system's clock was set back in this one.
        raw.times[2] = [time(5_000_020_000), time(20_077), time(4_000_020_900)];
        let cross = narrowest_extended(&raw).unwrap();
        let expected = Cross { card_ns: 10_077, low_ns: 5_000_010_000, high_ns: 5_000_010_900 };
        assert_eq!(cross, expected);
        raw.samples = 0;
        assert_eq!(narrowest_extended(&raw), None);

        let mut plain =
            RawPlain { samples: 2, reserved: [0; 3], times: [time(0); 2 * MOST_SAMPLES + 1] };
        for (to, ns) in plain.times.iter_mut().zip([1_000, 50, 4_000, 3_050, 6_500]) {
            *to = time(ns);
        }
        let cross = narrowest_plain(&plain).unwrap();
        assert_eq!(cross, Cross { card_ns: 3_050, low_ns: 4_000, high_ns: 6_500 });
    }

    #[test]
    fn requests_have_the_numbers_of_the_kernels_header() {
        let number = |direction: u64, bytes: usize, number: u64| {
            (direction << 30) | ((bytes as u64) << 16) | (u64::from(b'=') << 8) | number
        };
        assert_eq!(GET_CAPABILITIES, number(2, size_of::<RawCapabilities>(), 1));
        assert_eq!(PLAIN, number(1, size_of::<RawPlain>(), 5));
        assert_eq!(PRECISE, number(3, size_of::<RawPrecise>(), 8));
        assert_eq!(EXTENDED, number(3, size_of::<RawExtended>(), 9));
    }

    #[test]
    fn a_clock_that_is_not_there_is_refused_by_name_and_one_that_is_none_too() {
        let refusal = PtpClock::open(4_711).unwrap_err();
        assert_eq!(refusal.errno(), Some(Errno::NOENT));
        assert!(refusal.to_string().contains("/dev/ptp4711"), "{refusal}");
        let null = File::open("/dev/null").unwrap();
        let refusal = capabilities(&null, 7).unwrap_err();
        if refusal.errno() == Some(Errno::NOSYS) {
            return crate::tests::skip(&"an emulator that knows no calls of clocks");
        }
        assert_eq!(refusal.errno(), Some(Errno::NOTTY), "{refusal}");
    }

    #[test]
    fn this_machines_clocks_can_be_read_or_their_absence_is_said() {
        let Some(&index) = clocks().first() else {
            return crate::tests::skip(&"hardware: not present (no /dev/ptpN)");
        };
        let mut clock = match PtpClock::open(index) {
            Ok(clock) => clock,
            Err(refusal) => return crate::tests::skip(&refusal),
        };
        let (before, cross) = (clock.now_ns().unwrap(), clock.cross().unwrap());
        assert!(cross.low_ns <= cross.high_ns, "{cross:?}");
        assert!(before <= cross.card_ns && cross.card_ns <= clock.now_ns().unwrap(), "{cross:?}");
    }

    #[test]
    fn clocks_are_found_by_their_files() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(clocks_in(directory.path()), Vec::<u32>::new());
        for name in ["ptp0", "ptp3", "ptp", "ptpx"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(clocks_in(directory.path()), [0, 3]);
    }
}
