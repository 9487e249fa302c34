//! Counting overruns of `SCHED_DEADLINE`, which the kernel tells by a signal that would otherwise
//! end the process.
//!
//! [`sched(7)`](https://man7.org/linux/man-pages/man7/sched.7.html), `SCHED_FLAG_DL_OVERRUN`;
//! `SIGXCPU` of [`signal(7)`](https://man7.org/linux/man-pages/man7/signal.7.html). Capability:
//! none beyond that of the policy.
//!
//! The signal is sent to the process, and the kernel prefers the thread that overran to take it. So
//! a count is that of the overruns *told on* a thread: it is too small where several came before one
//! was delivered, and a thread that blocks the signal leaves it to others, which is counted in
//! [`told_elsewhere`]. The kernel looks for overruns at its timer tick: shorter ones may go untold.
//!
//! `SIGXCPU` is handled from the first [`OverrunCounter`] to the end of the last; before and after
//! it does what it did. Should an overrun be told after that, it ends the process: a thread keeps
//! its counter for as long as it has the policy.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use whylate_model::Pid;

use crate::error::{SysError, last_errno};
use crate::process;

/// Threads that can be counted at once; a task set has a few dozen.
pub const MOST_THREADS: usize = 1024;

/// One thread that is counted.
struct Slot {
    /// 0 where the slot is free.
    tid: AtomicI32,
    told: AtomicU64,
}

static SLOTS: [Slot; MOST_THREADS] =
    [const { Slot { tid: AtomicI32::new(0), told: AtomicU64::new(0) } }; MOST_THREADS];
static ELSEWHERE: AtomicU64 = AtomicU64::new(0);
static HANDLING: Mutex<Handling> = Mutex::new(Handling { holders: 0, former: None });

/// Who needs the handler, and what the signal did before.
struct Handling {
    holders: usize,
    former: Option<libc::sigaction>,
}

/// The overruns of the thread that made it.
#[derive(Debug)]
pub struct OverrunCounter {
    slot: usize,
    thread: Pid,
}

impl OverrunCounter {
    /// Begins to count those of the calling thread, in which the signal is unblocked. Make it
    /// before the policy is set, and keep it until the thread has another one or ends.
    pub fn of_this_thread() -> Result<Self, SysError> {
        let mut handling = handling();
        let thread = process::tid();
        let free = SLOTS.iter().position(|slot| slot.tid.load(Ordering::Relaxed) == 0);
        let Some(slot) = free else {
            return Err(SysError::invalid(
                format!("count the overruns of task {thread}"),
                format!("{MOST_THREADS} threads are counted already"),
            ));
        };
        if handling.former.is_none() {
            handling.former = Some(install()?);
        }
        SLOTS[slot].told.store(0, Ordering::Relaxed);
        SLOTS[slot].tid.store(thread.0, Ordering::Release);
        handling.holders += 1;
        drop(handling);
        let counter = Self { slot, thread };
        unblock()?;
        Ok(counter)
    }

    /// The thread.
    #[must_use]
    pub fn thread(&self) -> Pid {
        self.thread
    }

    /// Overruns told on it so far; from any thread.
    #[must_use]
    pub fn told(&self) -> u64 {
        SLOTS[self.slot].told.load(Ordering::Relaxed)
    }
}

impl Drop for OverrunCounter {
    fn drop(&mut self) {
        let mut handling = handling();
        SLOTS[self.slot].tid.store(0, Ordering::Release);
        handling.holders -= 1;
        if handling.holders == 0
            && let Some(former) = handling.former.take()
        {
            // SAFETY: the former action is the one that the kernel gave; it was valid before.
            let _ =
                unsafe { libc::sigaction(libc::SIGXCPU, &raw const former, std::ptr::null_mut()) };
        }
    }
}

/// Overruns told so far on `thread`; `None` where it has no counter.
#[must_use]
pub fn told_on(thread: Pid) -> Option<u64> {
    let slot = SLOTS.iter().find(|slot| slot.tid.load(Ordering::Acquire) == thread.0);
    slot.filter(|_| thread.0 > 0).map(|slot| slot.told.load(Ordering::Relaxed))
}

/// Overruns told so far on threads of this process without a counter.
#[must_use]
pub fn told_elsewhere() -> u64 {
    ELSEWHERE.load(Ordering::Relaxed)
}

/// `RLIMIT_RTTIME` in microseconds, the CPU time that a real-time thread may use without blocking
/// before the same signal is sent; `None` is unlimited.
#[must_use]
pub fn real_time_limit_us() -> Option<u64> {
    getrlimit(Resource::Rttime).current
}

fn handling() -> MutexGuard<'static, Handling> {
    HANDLING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs on whatever thread takes the signal, anywhere in its code: reads and writes atomics only.
extern "C" fn count(_: i32) {
    let tid = process::tid().0;
    let slot = SLOTS.iter().find(|slot| slot.tid.load(Ordering::Relaxed) == tid);
    slot.map_or(&ELSEWHERE, |slot| &slot.told).fetch_add(1, Ordering::Relaxed);
}

/// Lets the calling thread take the signal.
fn unblock() -> Result<(), SysError> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the library writes one set at the pointer.
    let _ = unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was emptied above.
    let _ = unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGXCPU) };
    // SAFETY: the set is whole, and where the old one goes may be null.
    let answer =
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut()) };
    match answer {
        0 => Ok(()),
        errno => {
            let errno = Errno::from_raw_os_error(errno);
            Err(SysError::call("pthread_sigmask", "unblock SIGXCPU in this thread", errno))
        }
    }
}

fn install() -> Result<libc::sigaction, SysError> {
    // SAFETY: integers, a mask of integers and an optional function: zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = count as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    let mut former = action;
    // SAFETY: both point to whole actions; the handler touches atomics only.
    let answer = unsafe { libc::sigaction(libc::SIGXCPU, &raw const action, &raw mut former) };
    if answer < 0 {
        return Err(SysError::call("sigaction", "handle SIGXCPU", last_errno()));
    }
    Ok(former)
}

#[cfg(test)]
pub(crate) mod tests {
    use whylate_model::Nanos;

    use super::*;
    use crate::sched::{self, DeadlineFlags, Policy};
    use crate::signal::send_to_thread;
    use crate::tests::skip;
    use crate::thread_clock;

    /// Tests that look at what the signal does may not run beside those that change it.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn action_now() -> usize {
        // SAFETY: integers, a mask of integers and an optional function: zeros are valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one action at the pointer.
        let answer = unsafe { libc::sigaction(libc::SIGXCPU, std::ptr::null(), &raw mut action) };
        assert_eq!(answer, 0);
        action.sa_sigaction
    }

    #[test]
    fn signals_are_counted_on_the_thread_that_takes_them_and_end_nothing() {
        let _alone = alone();
        let before = action_now();
        std::thread::spawn(|| {
            crate::signal::block_all();
            let counter = OverrunCounter::of_this_thread().unwrap();
            let elsewhere = told_elsewhere();
            for n in 1..=3 {
                send_to_thread(process::pid(), process::tid(), libc::SIGXCPU).unwrap();
                assert_eq!(counter.told(), n);
            }
            assert_eq!(told_on(counter.thread()), Some(3));
            std::thread::spawn(|| {
                // It inherited what is blocked, and what is not.
                send_to_thread(process::pid(), process::tid(), libc::SIGXCPU).unwrap();
            })
            .join()
            .unwrap();
            assert_eq!(told_elsewhere(), elsewhere + 1);
            let thread = counter.thread();
            drop(counter);
            assert_eq!(told_on(thread), None);
        })
        .join()
        .unwrap();
        assert_eq!(action_now(), before, "the signal does what it did");
    }

    #[test]
    fn the_handler_stays_until_the_last_counter_goes() {
        let _alone = alone();
        let before = action_now();
        let mine = OverrunCounter::of_this_thread().unwrap();
        std::thread::spawn(|| drop(OverrunCounter::of_this_thread().unwrap())).join().unwrap();
        assert_ne!(action_now(), before);
        drop(mine);
        assert_eq!(action_now(), before);
    }

    /// Is this program run by another one, which hides itself less well from here?
    fn emulated() -> bool {
        let shown = |link: &str| std::fs::read_link(link).ok();
        shown("/proc/self/exe") != shown("/proc/thread-self/exe")
    }

    #[test]
    fn a_thread_that_overruns_its_reservation_is_told() {
        let _alone = alone();
        std::thread::spawn(|| {
            let counter = OverrunCounter::of_this_thread().unwrap();
            // The kernel tells at a tick that finds the thread running: with a period of whole ticks
            // the 2 ms that it runs might never meet one.
            let policy = Policy::Deadline {
                runtime: Nanos(2_000_000),
                deadline: Nanos(17_300_000),
                period: Nanos(17_300_000),
                flags: DeadlineFlags::DL_OVERRUN,
            };
            if let Err(refusal) = sched::set(policy) {
                return skip(&refusal);
            }
            let used = thread_clock::cpu_time();
            // Another thread of the process that handles a signal just then may be told instead.
            let told = || counter.told() + told_elsewhere();
            while told() == 0 && thread_clock::cpu_time().0 - used.0 < 100_000_000 {}
            sched::set_other(0).unwrap();
            if told() == 0 && emulated() {
                return skip(&"an emulator of another processor does not pass the signal on");
            }
            assert!(told() > 0);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_limit_is_the_one_that_proc_shows() {
        let shown = std::fs::read_to_string("/proc/self/limits").unwrap();
        let line = shown.lines().find_map(|line| line.strip_prefix("Max realtime timeout"));
        let soft = line.unwrap().split_whitespace().next().unwrap();
        assert_eq!(real_time_limit_us(), soft.parse().ok());
    }
}
