//! A mutex that does something about priority inversion, or on purpose does not.
//!
//! [`pthread_mutexattr_setprotocol(3p)`](https://man7.org/linux/man-pages/man3/pthread_mutexattr_setprotocol.3p.html),
//! [`pthread_mutex_timedlock(3p)`](https://man7.org/linux/man-pages/man3/pthread_mutex_timedlock.3p.html).
//! Capability: none for [`Protocol::None`] and [`Protocol::Inherit`], whose boost the kernel gives;
//! with [`Protocol::Ceiling`] the C library raises the locking thread itself, which takes
//! `CAP_SYS_NICE` or `RLIMIT_RTPRIO`.
//!
//! It guards no data: it is what synthetic threads wait for. Misuse (locking twice, unlocking what
//! another thread holds) is an error, never undefined.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;

use rustix::io::Errno;

use crate::SysError;
use crate::nanosleep::{Clock, clock_ns};
use crate::timespec;

/// What happens to the thread that holds the mutex while a more urgent one waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Nothing: priorities may be inverted for any length of time.
    None,
    /// It inherits the waiter's priority (`PTHREAD_PRIO_INHERIT`).
    Inherit,
    /// Whoever locks runs at this `SCHED_FIFO` priority, 1 to 99, from then on
    /// (`PTHREAD_PRIO_PROTECT`). Only real-time threads whose priority is not above it can lock,
    /// and they get their policy before their first lock: the C library remembers it.
    Ceiling(u8),
}

/// Whether a wait for the mutex ended with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquired {
    /// The calling thread holds it.
    Yes,
    /// The instant came first.
    TimedOut,
}

/// A mutex with a protocol.
pub struct PriorityMutex {
    /// In a box, since the C library knows it by its address.
    mutex: Box<UnsafeCell<libc::pthread_mutex_t>>,
    protocol: Protocol,
}

// SAFETY: a pthread mutex is made to be used by several threads at once; its address does not
// change, for it lies in a box.
unsafe impl Sync for PriorityMutex {}
// SAFETY: it may be destroyed by another thread than the one that made it.
unsafe impl Send for PriorityMutex {}

/// A wait is made of pieces of this length, by the wall clock that the C library waits by: should
/// that be set back meanwhile, a waiter notices its instant late by the step within one piece only.
const PIECE_NS: u64 = 100_000_000;

// Missing in the bindings, present in the GNU C library.
// SAFETY: declared as in its pthread.h.
unsafe extern "C" {
    fn pthread_mutexattr_setprioceiling(
        attributes: *mut libc::pthread_mutexattr_t,
        ceiling: libc::c_int,
    ) -> libc::c_int;
}

impl PriorityMutex {
    /// Makes one, unlocked.
    pub fn new(protocol: Protocol) -> Result<Self, SysError> {
        if let Protocol::Ceiling(ceiling) = protocol
            && !(1..=99).contains(&ceiling)
        {
            let what = format!("make a mutex with ceiling {ceiling}");
            return Err(SysError::invalid(what, "real-time priorities go from 1 to 99"));
        }
        let attributes = Attributes::of(protocol)?;
        let mutex = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: the mutex is nobody else's yet, the attributes are initialised.
        let answer = unsafe { libc::pthread_mutex_init(mutex.get(), &raw const attributes.0) };
        checked("pthread_mutex_init", answer, protocol)?;
        Ok(Self { mutex, protocol })
    }

    /// The protocol it was made with.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Waits for it without end.
    pub fn lock(&self) -> Result<(), SysError> {
        // SAFETY: the mutex was initialised and lives as long as `self`.
        let answer = unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        checked("pthread_mutex_lock", answer, self.protocol)
    }

    /// Takes it if nobody holds it.
    pub fn try_lock(&self) -> Result<Acquired, SysError> {
        // SAFETY: the mutex was initialised and lives as long as `self`.
        let answer = unsafe { libc::pthread_mutex_trylock(self.mutex.get()) };
        match answer {
            libc::EBUSY => Ok(Acquired::TimedOut),
            _ => checked("pthread_mutex_trylock", answer, self.protocol).map(|()| Acquired::Yes),
        }
    }

    /// Waits for it until `CLOCK_MONOTONIC` shows `abs_ns`.
    pub fn lock_until(&self, abs_ns: u64) -> Result<Acquired, SysError> {
        loop {
            let left = abs_ns.saturating_sub(clock_ns(Clock::Monotonic));
            let limit = timespec::raw(clock_ns(Clock::Realtime) + left.min(PIECE_NS));
            // SAFETY: the mutex was initialised and lives as long as `self`; the limit is whole.
            let answer =
                unsafe { libc::pthread_mutex_timedlock(self.mutex.get(), &raw const limit) };
            match answer {
                libc::ETIMEDOUT if left == 0 => return Ok(Acquired::TimedOut),
                libc::ETIMEDOUT => {}
                _ => {
                    checked("pthread_mutex_timedlock", answer, self.protocol)?;
                    return Ok(Acquired::Yes);
                }
            }
        }
    }

    /// Gives it up. Refused for a thread that does not hold it.
    pub fn unlock(&self) -> Result<(), SysError> {
        // SAFETY: the mutex was initialised and lives as long as `self`; being of the checking
        // kind it refuses a thread that does not hold it.
        let answer = unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
        checked("pthread_mutex_unlock", answer, self.protocol)
    }
}

impl Drop for PriorityMutex {
    fn drop(&mut self) {
        // SAFETY: nobody else can reach it any more. Where a thread ended without unlocking it the
        // call refuses, and what is left of the mutex is plain memory.
        let _ = unsafe { libc::pthread_mutex_destroy(self.mutex.get()) };
    }
}

impl fmt::Debug for PriorityMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PriorityMutex").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Inherit => f.write_str("inherit"),
            Self::Ceiling(ceiling) => write!(f, "ceiling({ceiling})"),
        }
    }
}

struct Attributes(libc::pthread_mutexattr_t);

impl Attributes {
    fn of(protocol: Protocol) -> Result<Self, SysError> {
        let mut empty = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        // SAFETY: the library initialises what the pointer leads to.
        let answer = unsafe { libc::pthread_mutexattr_init(empty.as_mut_ptr()) };
        checked("pthread_mutexattr_init", answer, protocol)?;
        // SAFETY: initialised by the call above.
        let mut attributes = Self(unsafe { empty.assume_init() });
        let to = &raw mut attributes.0;
        // SAFETY: the attributes are initialised.
        let answer = unsafe { libc::pthread_mutexattr_settype(to, libc::PTHREAD_MUTEX_ERRORCHECK) };
        checked("pthread_mutexattr_settype", answer, protocol)?;
        let number = match protocol {
            Protocol::None => libc::PTHREAD_PRIO_NONE,
            Protocol::Inherit => libc::PTHREAD_PRIO_INHERIT,
            Protocol::Ceiling(_) => libc::PTHREAD_PRIO_PROTECT,
        };
        // SAFETY: the attributes are initialised.
        let answer = unsafe { libc::pthread_mutexattr_setprotocol(to, number) };
        checked("pthread_mutexattr_setprotocol", answer, protocol)?;
        if let Protocol::Ceiling(ceiling) = protocol {
            // SAFETY: the attributes are initialised.
            let answer = unsafe { pthread_mutexattr_setprioceiling(to, i32::from(ceiling)) };
            checked("pthread_mutexattr_setprioceiling", answer, protocol)?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: the attributes were initialised, and this is their end.
        let _ = unsafe { libc::pthread_mutexattr_destroy(&raw mut self.0) };
    }
}

fn checked(call: &'static str, answer: i32, protocol: Protocol) -> Result<(), SysError> {
    if answer == 0 { Ok(()) } else { Err(refusal(call, answer, protocol)) }
}

#[cold]
fn refusal(call: &'static str, answer: i32, protocol: Protocol) -> SysError {
    let errno = Errno::from_raw_os_error(answer);
    let what = format!("use a mutex with protocol {protocol}");
    let advice = match (errno, protocol) {
        (Errno::DEADLK, _) => "this thread holds it already, or a circle of threads wait for it",
        (Errno::PERM, _) if call == "pthread_mutex_unlock" => "this thread does not hold it",
        (Errno::INVAL, Protocol::Ceiling(_)) => {
            "a thread that locks it needs SCHED_FIFO or SCHED_RR with a priority not above the \
             ceiling"
        }
        (Errno::PERM, Protocol::Ceiling(_)) => {
            "raising a thread to the ceiling takes CAP_SYS_NICE or RLIMIT_RTPRIO: run as root"
        }
        (Errno::NOTSUP | Errno::NOSYS, Protocol::Inherit) => {
            "this kernel was built without CONFIG_FUTEX_PI"
        }
        _ => "",
    };
    SysError::advised(call, what, errno, advice)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::sched::{self, Policy};
    use crate::{process, tests::skip};

    const UNPRIVILEGED: [Protocol; 2] = [Protocol::None, Protocol::Inherit];

    #[test]
    fn a_mutex_keeps_others_out_until_it_is_unlocked() {
        for protocol in UNPRIVILEGED {
            let mutex = PriorityMutex::new(protocol).unwrap();
            let inside = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            mutex.lock().unwrap();
                            assert!(!inside.swap(true, Ordering::Relaxed), "{protocol}");
                            inside.store(false, Ordering::Relaxed);
                            mutex.unlock().unwrap();
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn a_waiter_is_released_by_its_instant_and_not_before() {
        for protocol in UNPRIVILEGED {
            let mutex = PriorityMutex::new(protocol).unwrap();
            mutex.lock().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!(mutex.try_lock().unwrap(), Acquired::TimedOut);
                    let until = clock_ns(Clock::Monotonic) + PIECE_NS + 20_000_000;
                    assert_eq!(mutex.lock_until(until).unwrap(), Acquired::TimedOut);
                    assert!(clock_ns(Clock::Monotonic) >= until, "{protocol}");
                });
            });
            mutex.unlock().unwrap();
            assert_eq!(mutex.lock_until(0).unwrap(), Acquired::Yes, "nobody holds it");
            mutex.unlock().unwrap();
        }
    }

    #[test]
    fn misuse_is_an_error() {
        for protocol in UNPRIVILEGED {
            let mutex = PriorityMutex::new(protocol).unwrap();
            let refusal = mutex.unlock().unwrap_err();
            assert_eq!(refusal.errno(), Some(Errno::PERM), "{refusal}");
            mutex.lock().unwrap();
            let refusal = mutex.lock().unwrap_err();
            assert_eq!(refusal.errno(), Some(Errno::DEADLK), "{refusal}");
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(mutex.unlock().is_err()));
            });
            mutex.unlock().unwrap();
        }
        assert!(matches!(PriorityMutex::new(Protocol::Ceiling(0)), Err(SysError::Invalid { .. })));
    }

    /// The priority that a thread runs at now, boosts included: field 18 of its stat file is
    /// -1 minus the priority for real-time threads.
    fn effective_priority() -> i64 {
        let path = format!("/proc/self/task/{}/stat", process::tid());
        let text = std::fs::read_to_string(path).unwrap();
        let (_, rest) = text.rsplit_once(") ").unwrap();
        -1 - rest.split_whitespace().nth(15).unwrap().parse::<i64>().unwrap()
    }

    #[test]
    fn a_ceiling_raises_who_locks_and_refuses_who_stands_above() {
        std::thread::spawn(|| {
            if let Err(refusal) = sched::set_fifo(3) {
                return skip(&refusal);
            }
            let mutex = PriorityMutex::new(Protocol::Ceiling(9)).unwrap();
            assert_eq!(effective_priority(), 3);
            mutex.lock().unwrap();
            assert_eq!(effective_priority(), 9);
            mutex.unlock().unwrap();
            assert_eq!(effective_priority(), 3);
            let low = PriorityMutex::new(Protocol::Ceiling(2)).unwrap();
            let refusal = low.lock().unwrap_err();
            assert!(refusal.to_string().contains("not above the ceiling"), "{refusal}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_holder_inherits_the_priority_of_who_waits() {
        let mutex = PriorityMutex::new(Protocol::Inherit).unwrap();
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let mutex = &mutex;
            let waiter = scope.spawn(move || {
                told.recv().unwrap();
                if let Err(refusal) = sched::set(Policy::Fifo(8)) {
                    skip(&refusal);
                    return;
                }
                let acquired = mutex.lock_until(clock_ns(Clock::Monotonic) + 60_000_000_000);
                assert_eq!(acquired.unwrap(), Acquired::Yes);
                mutex.unlock().unwrap();
            });
            mutex.lock().unwrap();
            assert!(effective_priority() < 0);
            tell.send(()).unwrap();
            let give_up = clock_ns(Clock::Monotonic) + 30_000_000_000;
            let mut raised = false;
            while !raised && !waiter.is_finished() && clock_ns(Clock::Monotonic) < give_up {
                raised = effective_priority() == 8;
                std::thread::yield_now();
            }
            assert!(raised || waiter.is_finished());
            mutex.unlock().unwrap();
        });
    }
}
