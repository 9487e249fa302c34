//! How late the kernel may wake the calling thread to save wake-ups.
//!
//! [`PR_SET_TIMERSLACK(2const)`](https://man7.org/linux/man-pages/man2/PR_SET_TIMERSLACK.2const.html).
//! Capability: none. Threads under a real-time policy have no slack whatever is set here.

use std::num::NonZeroU64;

use crate::SysError;

/// Sets the slack of the calling thread; 0 restores what it was born with.
pub fn set_ns(slack_ns: u64) -> Result<(), SysError> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(slack_ns)).map_err(|errno| {
        SysError::call("prctl", format!("set this thread's timer slack to {slack_ns} ns"), errno)
    })
}

/// The slack of the calling thread.
pub fn get_ns() -> Result<u64, SysError> {
    rustix::thread::current_timer_slack()
        .map_err(|errno| SysError::call("prctl", "read this thread's timer slack", errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_set_and_restored() {
        std::thread::spawn(|| {
            let born_with = match get_ns() {
                Ok(slack) => slack,
                Err(refusal) => return crate::tests::skip(&refusal),
            };
            set_ns(1).unwrap();
            assert_eq!(get_ns().unwrap(), 1);
            set_ns(0).unwrap();
            assert_eq!(get_ns().unwrap(), born_with);
        })
        .join()
        .unwrap();
    }
}
