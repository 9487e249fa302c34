//! Signals: blocking them, sending one to a thread, handling a real-time one.
//!
//! [`sigaction(2)`](https://man7.org/linux/man-pages/man2/sigaction.2.html),
//! [`tgkill(2)`](https://man7.org/linux/man-pages/man2/tgkill.2.html),
//! [`pthread_sigmask(3)`](https://man7.org/linux/man-pages/man3/pthread_sigmask.3.html).
//! Capability: `CAP_KILL` for processes of other users.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use whylate_model::Pid;

use crate::error::{SysError, last_errno};

/// The `n`th real-time signal that the C library leaves to programs, from 0; the last one where
/// there are fewer.
#[must_use]
pub fn real_time(n: u8) -> i32 {
    (libc::SIGRTMIN() + i32::from(n)).min(libc::SIGRTMAX())
}

/// Blocks every signal that can be blocked in the calling thread and in those it starts.
pub fn block_all() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the library writes one set at the pointer.
    let _ = unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: the set was filled above, and where the old one goes may be null.
    let _ = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut()) };
}

/// Sends `signal` to thread `tid` of process `pid`.
pub fn send_to_thread(pid: Pid, tid: Pid, signal: i32) -> Result<(), SysError> {
    // SAFETY: the call takes numbers only.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, pid.0, tid.0, signal) };
    if answer < 0 { Err(refusal("tgkill", tid, signal)) } else { Ok(()) }
}

/// Sends `signal` to process `pid`, which must be a single process: ids of groups are refused.
pub fn send_to_process(pid: Pid, signal: i32) -> Result<(), SysError> {
    if pid.0 <= 0 {
        return Err(SysError::invalid(
            format!("send signal {signal} to {pid}"),
            "a process id is above 0",
        ));
    }
    // SAFETY: the call takes numbers only.
    let answer = unsafe { libc::kill(pid.0, signal) };
    if answer < 0 { Err(refusal("kill", pid, signal)) } else { Ok(()) }
}

/// A handler in force; the former one returns when this is dropped.
#[derive(Debug)]
pub struct Handler {
    number: i32,
    former: libc::sigaction,
}

/// The signals that have a [`Handler`], as bits.
static TAKEN: AtomicU64 = AtomicU64::new(0);

impl Handler {
    /// Runs `handler` whenever a thread of this process gets real-time signal `number`; system
    /// calls that it interrupts go on where the kernel can do that (`SA_RESTART`).
    ///
    /// `handler` interrupts its thread anywhere: it may touch atomics and memory of its own, and
    /// must neither allocate, lock, print nor panic
    /// ([`signal-safety(7)`](https://man7.org/linux/man-pages/man7/signal-safety.7.html)).
    pub fn install(number: i32, handler: extern "C" fn(i32)) -> Result<Self, SysError> {
        let (first, last) = (libc::SIGRTMIN(), libc::SIGRTMAX());
        if !(first..=last).contains(&number) {
            return Err(SysError::NotRealTimeSignal { number, first, last });
        }
        if TAKEN.fetch_or(bit(number), Ordering::AcqRel) & bit(number) != 0 {
            return Err(SysError::SignalTaken(number));
        }
        let action = action(handler);
        let mut former = action;
        // SAFETY: both point to whole actions; what the handler may do is its documented duty.
        let answer = unsafe { libc::sigaction(number, &raw const action, &raw mut former) };
        if answer < 0 {
            let errno = last_errno();
            TAKEN.fetch_and(!bit(number), Ordering::AcqRel);
            return Err(SysError::call("sigaction", format!("handle signal {number}"), errno));
        }
        Ok(Self { number, former })
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: the former action is the one that the kernel gave; it was valid before.
        let _ =
            unsafe { libc::sigaction(self.number, &raw const self.former, std::ptr::null_mut()) };
        TAKEN.fetch_and(!bit(self.number), Ordering::AcqRel);
    }
}

fn bit(number: i32) -> u64 {
    1 << (number - 1)
}

fn action(handler: extern "C" fn(i32)) -> libc::sigaction {
    // SAFETY: integers, a mask of integers and an optional function: zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    action
}

fn refusal(call: &'static str, to: Pid, signal: i32) -> SysError {
    let errno = last_errno();
    let advice = match errno {
        Errno::SRCH => "it has ended",
        Errno::PERM => "it belongs to another user: give CAP_KILL",
        Errno::INVAL => "signals are numbered 1 to 64",
        Errno::AGAIN => "its queue of signals is full: see RLIMIT_SIGPENDING",
        _ => "",
    };
    SysError::advised(call, format!("send signal {signal} to {to}"), errno, advice)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI32;
    use std::time::Duration;

    use super::*;
    use crate::process;

    #[test]
    fn a_handler_runs_on_the_thread_the_signal_was_sent_to() {
        static RAN_ON: AtomicI32 = AtomicI32::new(0);
        extern "C" fn note(_: i32) {
            RAN_ON.store(process::tid().0, Ordering::Relaxed);
        }
        let number = real_time(6);
        let _installed = Handler::install(number, note).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn(move || {
            tell.send(process::tid()).unwrap();
            while RAN_ON.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let tid = told.recv().unwrap();
        send_to_thread(process::pid(), tid, number).unwrap();
        waiter.join().unwrap();
        assert_eq!(RAN_ON.load(Ordering::Relaxed), tid.0);
    }

    #[test]
    fn dropping_a_handler_brings_back_the_former_one() {
        extern "C" fn nothing(_: i32) {}
        let number = real_time(7);
        let before = current(number);
        let installed = Handler::install(number, nothing).unwrap();
        assert_ne!(current(number), before);
        assert_eq!(Handler::install(number, nothing).unwrap_err(), SysError::SignalTaken(number));
        drop(installed);
        assert_eq!(current(number), before);
        drop(Handler::install(number, nothing).unwrap());
    }

    fn current(number: i32) -> usize {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: the kernel writes one action at the pointer.
        let answer = unsafe { libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) };
        assert_eq!(answer, 0);
        // SAFETY: zeros are valid, and so is what the kernel wrote.
        unsafe { action.assume_init() }.sa_sigaction
    }

    #[test]
    fn only_real_time_signals_are_taken() {
        extern "C" fn nothing(_: i32) {}
        let refusal = Handler::install(libc::SIGTERM, nothing).unwrap_err();
        assert!(matches!(refusal, SysError::NotRealTimeSignal { number: 15, .. }), "{refusal}");
        assert!(Handler::install(65, nothing).is_err());
        assert_eq!(real_time(200), libc::SIGRTMAX());
    }

    #[test]
    fn a_thread_that_blocks_all_signals_does_not_run_the_handler() {
        static RUNS: AtomicI32 = AtomicI32::new(0);
        extern "C" fn count(_: i32) {
            RUNS.fetch_add(1, Ordering::Relaxed);
        }
        let number = real_time(8);
        let _installed = Handler::install(number, count).unwrap();
        std::thread::spawn(move || {
            send_to_thread(process::pid(), process::tid(), number).unwrap();
            assert_eq!(RUNS.load(Ordering::Relaxed), 1);
            block_all();
            send_to_thread(process::pid(), process::tid(), number).unwrap();
        })
        .join()
        .unwrap();
        assert_eq!(RUNS.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_process_gets_only_what_was_meant_for_it_alone() {
        send_to_process(process::pid(), 0).unwrap();
        assert!(matches!(send_to_process(Pid(0), 0), Err(SysError::Invalid { .. })));
        assert!(matches!(send_to_process(Pid(-1), 0), Err(SysError::Invalid { .. })));
        assert_eq!(send_to_process(Pid(i32::MAX), 0).unwrap_err().errno(), Some(Errno::SRCH));
    }
}
