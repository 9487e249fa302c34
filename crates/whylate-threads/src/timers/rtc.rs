//! The periodic interrupt of the real-time clock: the better timer of 2002.
//!
//! The clock interrupts at a power of two per second; the thread sleeps until the first interrupt at
//! or after its instant, so it is released up to one period late. One thread of one program can use
//! it. The rate is put back when the timer is dropped.

use whylate_model::Nanos;
use whylate_sys::SysError;
use whylate_sys::rtc::{Chip, Device, Periodic};

use super::{MONOTONIC, now};
use crate::error::ThreadsError;
use crate::timer::{Timer, TimerFacts, TimerNanos};

const NAME: &str = "/dev/rtc periodic";
/// Interrupts per second unless asked otherwise; as in the paper, 976 us apart.
pub const RATE_HZ: u32 = 1024;

/// The clock, not yet interrupting or interrupting.
#[derive(Debug)]
enum State<C: Chip> {
    Open(C),
    Interrupting(Periodic<C>),
    Failed,
}

/// Waiting for the interrupts of a real-time clock.
#[derive(Debug)]
pub struct Rtc<C: Chip = Device> {
    state: State<C>,
    rate_hz: u32,
}

impl Rtc<Device> {
    /// Opens the clock of this machine.
    pub fn open(rate_hz: u32) -> Result<Self, ThreadsError> {
        Device::open().map(|device| Self::on(device, rate_hz)).map_err(refused)
    }
}

impl<C: Chip> Rtc<C> {
    /// By the interrupts of `chip`.
    pub fn on(chip: C, rate_hz: u32) -> Self {
        Self { state: State::Open(chip), rate_hz }
    }

    fn interrupting(&mut self) -> Result<&mut Periodic<C>, ThreadsError> {
        self.state = match std::mem::replace(&mut self.state, State::Failed) {
            State::Open(chip) => {
                State::Interrupting(Periodic::begin(chip, self.rate_hz).map_err(refused)?)
            }
            other => other,
        };
        match &mut self.state {
            State::Interrupting(periodic) => Ok(periodic),
            State::Open(_) | State::Failed => {
                Err(ThreadsError::TimerNotHere { timer: NAME, why: "it could not be started" })
            }
        }
    }
}

fn refused(source: SysError) -> ThreadsError {
    ThreadsError::Timer { timer: NAME, source }
}

impl<C: Chip> Timer for Rtc<C> {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        self.interrupting().map(|_| ())
    }

    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        let periodic = self.interrupting()?;
        while now() < at {
            periodic.wait().map_err(refused)?;
        }
        Ok(())
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        now()
    }

    fn facts(&self) -> TimerFacts {
        TimerFacts { name: NAME, clock: MONOTONIC, slack: Some(Nanos(0)) }
    }
}

#[cfg(test)]
mod tests {
    use whylate_sys::nanosleep::{Clock, sleep_until};

    use super::*;

    /// A chip that interrupts by the kernel's clock.
    struct Imitation {
        rate_hz: u32,
        on: bool,
        last: u64,
    }

    impl Imitation {
        fn new() -> Self {
            Self { rate_hz: 64, on: false, last: 0 }
        }

        fn period(&self) -> u64 {
            Nanos::SECOND.0 / u64::from(self.rate_hz)
        }
    }

    impl Chip for Imitation {
        fn rate_hz(&self) -> Result<u32, SysError> {
            Ok(self.rate_hz)
        }
        fn set_rate_hz(&mut self, hz: u32) -> Result<(), SysError> {
            self.rate_hz = hz;
            Ok(())
        }
        fn begin(&mut self) -> Result<(), SysError> {
            self.on = true;
            self.last = now().0 / self.period();
            Ok(())
        }
        fn end(&mut self) -> Result<(), SysError> {
            self.on = false;
            Ok(())
        }
        fn wait(&mut self) -> Result<u64, SysError> {
            assert!(self.on, "nobody waits for a clock that does not interrupt");
            sleep_until(Clock::Monotonic, (self.last + 1) * self.period())?;
            let interrupts = now().0 / self.period() - self.last;
            self.last += interrupts;
            Ok(interrupts)
        }
    }

    #[test]
    fn a_thread_is_woken_by_an_interrupt_and_never_early() {
        let mut rtc = Rtc::on(Imitation::new(), RATE_HZ);
        rtc.prepare().unwrap();
        let mut woken = 0;
        for _ in 0..20 {
            let at = now() + Nanos(1_700_000);
            let State::Interrupting(periodic) = &rtc.state else { panic!("it was prepared") };
            let before = periodic.chip().last;
            rtc.wait_until(at).unwrap();
            assert!(now() >= at);
            let State::Interrupting(periodic) = &rtc.state else { panic!("it was prepared") };
            woken += u32::from(periodic.chip().last > before);
        }
        assert!(woken > 0, "no wait ended by an interrupt");
    }

    #[test]
    fn a_rate_that_no_chip_knows_is_refused_and_stays_refused() {
        let mut rtc = Rtc::on(Imitation::new(), 1000);
        assert!(rtc.prepare().unwrap_err().to_string().contains("powers of two"));
        assert!(rtc.wait_until(now()).is_err());
    }
}
