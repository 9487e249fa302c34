//! How a thread waits: the trait that every timer implements.

use std::ops::Add;

use whylate_model::Nanos;

use crate::error::ThreadsError;

/// An instant on the clock that a timer counts by, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TimerNanos(pub u64);

impl TimerNanos {
    /// The distance from `earlier` to `self`; zero when `self` is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for TimerNanos {
    type Output = Self;

    fn add(self, length: Nanos) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

/// A way to wait for an instant.
///
/// A timer belongs to one thread: [`Timer::prepare`] is called on it first, and may change that
/// thread's own settings. A timer that can only wait for a length takes it from [`Timer::now`].
pub trait Timer: Send {
    /// Sets up what belongs to the calling thread, such as its timer slack.
    fn prepare(&mut self) -> Result<(), ThreadsError>;

    /// Waits until the clock shows `at`, or returns at once when it does already.
    ///
    /// May return early only with an error; interruptions by signals are waited through.
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError>;

    /// Would a wait until `at`, begun now, keep the CPU?
    fn keeps_cpu(&mut self, _at: TimerNanos) -> bool {
        false
    }

    /// When a wait until `at`, begun now, is to end: later only for a clock that is coarse by
    /// design.
    fn fires_at(&mut self, at: TimerNanos) -> TimerNanos {
        at
    }

    /// What the clock shows. Never called between a wake-up and its stamp.
    fn now(&mut self) -> TimerNanos;

    /// What a reader must know of this timer; complete after [`Timer::prepare`].
    fn facts(&self) -> TimerFacts;
}

/// A timer chosen at run time.
impl<T: Timer + ?Sized> Timer for Box<T> {
    fn prepare(&mut self) -> Result<(), ThreadsError> {
        (**self).prepare()
    }

    #[inline]
    fn wait_until(&mut self, at: TimerNanos) -> Result<(), ThreadsError> {
        (**self).wait_until(at)
    }

    #[inline]
    fn keeps_cpu(&mut self, at: TimerNanos) -> bool {
        (**self).keeps_cpu(at)
    }

    #[inline]
    fn fires_at(&mut self, at: TimerNanos) -> TimerNanos {
        (**self).fires_at(at)
    }

    #[inline]
    fn now(&mut self) -> TimerNanos {
        (**self).now()
    }

    fn facts(&self) -> TimerFacts {
        (**self).facts()
    }
}

/// What a reader must know of a timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerFacts {
    /// The call, such as `clock_nanosleep absolute`.
    pub name: &'static str,
    /// The clock it counts by, such as `CLOCK_MONOTONIC`.
    pub clock: &'static str,
    /// How much later than asked the kernel may let it fire to save wake-ups, as read back; none
    /// where it cannot be read. The kernel uses 0 for real-time threads, whatever was set.
    pub slack: Option<Nanos>,
}
