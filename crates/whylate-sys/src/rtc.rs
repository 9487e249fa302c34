//! The real-time clock's periodic interrupt.
//!
//! [`rtc(4)`](https://man7.org/linux/man-pages/man4/rtc.4.html). Capability: read access to the
//! device, which is root's on most systems; `CAP_SYS_RESOURCE` for rates above
//! `/proc/sys/dev/rtc/max-user-freq` (64 Hz unless raised). Since Linux 2.6.38 the kernel imitates
//! the interrupt by its own high-resolution timer; the chip's is no longer used. Virtual machines
//! often have no such device.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

use crate::error::{SysError, last_errno};

/// The device.
pub const DEVICE: &str = "/dev/rtc";

/// The rates that a chip knows: powers of two in this range.
pub const RATES_HZ: std::ops::RangeInclusive<u32> = 2..=8192;

/// What can be asked of a real-time clock.
pub trait Chip: Send {
    /// Interrupts per second.
    fn rate_hz(&self) -> Result<u32, SysError>;
    /// Sets the interrupts per second.
    fn set_rate_hz(&mut self, hz: u32) -> Result<(), SysError>;
    /// Begins to interrupt.
    fn begin(&mut self) -> Result<(), SysError>;
    /// Ends it.
    fn end(&mut self) -> Result<(), SysError>;
    /// Sleeps until the next interrupt, or returns at once when there were some since the last
    /// call; gives how many.
    fn wait(&mut self) -> Result<u64, SysError>;
}

/// The clock of this machine. One program can have it open.
#[derive(Debug)]
pub struct Device(File);

impl Device {
    /// Opens it.
    pub fn open() -> Result<Self, SysError> {
        File::open(DEVICE).map(Self).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let advice = match errno {
                Errno::NOENT | Errno::NODEV | Errno::NXIO => {
                    "this machine has none (virtual machines often do not): load rtc_cmos, or use \
                     another timer"
                }
                Errno::ACCESS | Errno::PERM => "run as root, or let your group read the device",
                Errno::BUSY => "another program, or another thread of this one, has it open",
                _ => "",
            };
            SysError::advised("open", format!("open {DEVICE}"), errno, advice)
        })
    }

    /// One of the ioctls that take a number or nothing.
    fn tell(
        &self,
        what: &str,
        request: libc::Ioctl,
        argument: libc::c_ulong,
    ) -> Result<(), SysError> {
        // SAFETY: these requests take their argument by value.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) };
        if answer < 0 { Err(refusal(what)) } else { Ok(()) }
    }
}

// `linux/rtc.h`: the letter `p`, numbers 5, 6, 11 and 12, of which the last two pass a `long`.
const PIE_ON: libc::Ioctl = 0x7005;
const PIE_OFF: libc::Ioctl = 0x7006;
const RATE_READ: libc::Ioctl = 0x8008_700b;
const RATE_SET: libc::Ioctl = 0x4008_700c;

const _: () = assert!(size_of::<libc::c_ulong>() == 8, "the requests above pass eight bytes");

impl Chip for Device {
    fn rate_hz(&self) -> Result<u32, SysError> {
        let mut hz: libc::c_ulong = 0;
        // SAFETY: the kernel writes one `long` at the pointer.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), RATE_READ, &raw mut hz) };
        if answer < 0 { Err(refusal("read the rate of")) } else { Ok(hz as u32) }
    }

    fn set_rate_hz(&mut self, hz: u32) -> Result<(), SysError> {
        self.tell(&format!("set {hz} interrupts a second of"), RATE_SET, libc::c_ulong::from(hz))
    }

    fn begin(&mut self) -> Result<(), SysError> {
        self.tell("begin the interrupts of", PIE_ON, 0)
    }

    fn end(&mut self) -> Result<(), SysError> {
        self.tell("end the interrupts of", PIE_OFF, 0)
    }

    fn wait(&mut self) -> Result<u64, SysError> {
        let mut word = [0; 8];
        loop {
            match self.0.read(&mut word) {
                // The lowest byte says which interrupts, the rest how many.
                Ok(8) => return Ok(u64::from_ne_bytes(word) >> 8),
                Ok(n) => {
                    let why = format!("{n} bytes came instead of 8");
                    return Err(SysError::invalid(format!("wait for {DEVICE}"), why));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                    return Err(SysError::call("read", format!("wait for {DEVICE}"), errno));
                }
            }
        }
    }
}

#[cold]
fn refusal(what: &str) -> SysError {
    let errno = last_errno();
    let advice = match errno {
        Errno::ACCESS | Errno::PERM => {
            "a rate above /proc/sys/dev/rtc/max-user-freq takes CAP_SYS_RESOURCE: raise that file \
             to 1024, or run as root"
        }
        Errno::INVAL | Errno::NOTTY => {
            "the clock has no periodic interrupt at this rate: rates are powers of two, 2 to 8192"
        }
        _ => "",
    };
    SysError::advised("ioctl", format!("{what} {DEVICE}"), errno, advice)
}

/// A clock that interrupts; its rate is put back when this is dropped, and the interrupts end.
#[derive(Debug)]
pub struct Periodic<C: Chip> {
    chip: C,
    /// The rate before, where it was another.
    before: Option<u32>,
    rate_hz: u32,
}

impl<C: Chip> Periodic<C> {
    /// Makes `chip` interrupt `rate_hz` times a second and reads the rate back.
    pub fn begin(mut chip: C, rate_hz: u32) -> Result<Self, SysError> {
        if !rate_hz.is_power_of_two() || !RATES_HZ.contains(&rate_hz) {
            let what = format!("set {rate_hz} interrupts a second of {DEVICE}");
            return Err(SysError::invalid(what, "rates are powers of two, 2 to 8192"));
        }
        let found = chip.rate_hz()?;
        let before = (found != rate_hz).then_some(found);
        if before.is_some() {
            chip.set_rate_hz(rate_hz)?;
        }
        // From here on dropping takes it back.
        let mut periodic = Self { chip, before, rate_hz };
        periodic.rate_hz = periodic.chip.rate_hz()?;
        periodic.chip.begin()?;
        Ok(periodic)
    }

    /// Interrupts per second, as read back.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// The chip.
    #[must_use]
    pub fn chip(&self) -> &C {
        &self.chip
    }

    /// Sleeps until the next interrupt; see [`Chip::wait`].
    pub fn wait(&mut self) -> Result<u64, SysError> {
        self.chip.wait()
    }
}

impl<C: Chip> Drop for Periodic<C> {
    fn drop(&mut self) {
        let _ = self.chip.end();
        if let Some(before) = self.before {
            let _ = self.chip.set_rate_hz(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Default)]
    struct Recorded {
        rate_hz: u32,
        on: bool,
        calls: Vec<String>,
    }

    struct Mock(Arc<Mutex<Recorded>>);

    impl Chip for Mock {
        fn rate_hz(&self) -> Result<u32, SysError> {
            Ok(self.0.lock().unwrap().rate_hz)
        }
        fn set_rate_hz(&mut self, hz: u32) -> Result<(), SysError> {
            let mut state = self.0.lock().unwrap();
            state.rate_hz = hz;
            state.calls.push(format!("rate {hz}"));
            Ok(())
        }
        fn begin(&mut self) -> Result<(), SysError> {
            self.0.lock().unwrap().on = true;
            Ok(())
        }
        fn end(&mut self) -> Result<(), SysError> {
            self.0.lock().unwrap().on = false;
            Ok(())
        }
        fn wait(&mut self) -> Result<u64, SysError> {
            Ok(1)
        }
    }

    #[test]
    fn the_rate_is_set_and_put_back_and_the_interrupts_end() {
        let state = Arc::new(Mutex::new(Recorded { rate_hz: 64, ..Recorded::default() }));
        let mut periodic = Periodic::begin(Mock(Arc::clone(&state)), 1024).unwrap();
        assert_eq!((periodic.rate_hz(), periodic.wait().unwrap()), (1024, 1));
        assert!(state.lock().unwrap().on);
        drop(periodic);
        let state = state.lock().unwrap();
        assert_eq!((state.rate_hz, state.on), (64, false));
        assert_eq!(state.calls, ["rate 1024", "rate 64"]);
    }

    #[test]
    fn rates_that_no_chip_knows_are_refused_before_it_is_asked() {
        for hz in [0, 1, 1000, 16_384] {
            let state = Arc::new(Mutex::new(Recorded::default()));
            assert!(Periodic::begin(Mock(Arc::clone(&state)), hz).is_err(), "{hz}");
            assert_eq!(state.lock().unwrap().calls, Vec::<String>::new());
        }
    }

    #[test]
    fn this_machine_s_clock_interrupts_or_its_absence_is_explained() {
        match Device::open() {
            Ok(device) => match Periodic::begin(device, 64) {
                Ok(mut periodic) => assert!(periodic.wait().unwrap() > 0),
                Err(refusal) => crate::tests::skip(&refusal),
            },
            Err(refusal) => {
                assert!(refusal.to_string().contains(DEVICE), "{refusal}");
                crate::tests::skip(&refusal);
            }
        }
    }
}
