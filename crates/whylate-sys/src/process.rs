//! Which process this is, and whether another still lives.
//!
//! [`proc_pid_stat(5)`](https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html),
//! [`gettid(2)`](https://man7.org/linux/man-pages/man2/gettid.2.html). Capability: none.
//!
//! Process ids are used again; an id together with its start time is not.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use whylate_model::Pid;

use crate::SysError;

/// The calling thread.
#[must_use]
pub fn tid() -> Pid {
    Pid(rustix::thread::gettid().as_raw_nonzero().get())
}

/// The calling process.
#[must_use]
pub fn pid() -> Pid {
    Pid(rustix::process::getpid().as_raw_nonzero().get())
}

/// When process or thread `pid` began, in clock ticks since boot.
pub fn start_time(pid: Pid) -> Result<u64, SysError> {
    stat(pid).map(|stat| stat.start_time)
}

/// Whether the process that had this id at this start time still runs; one that has ended and was
/// not yet reaped does not.
#[must_use]
pub fn alive(pid: Pid, start_time: u64) -> bool {
    stat(pid).is_ok_and(|stat| stat.start_time == start_time && !matches!(stat.state, 'Z' | 'X'))
}

/// The calling process is killed when the thread that started it ends. One whose parent was gone
/// before is left as it is: ask for the parent afterwards.
///
/// [`PR_SET_PDEATHSIG(2const)`](https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html).
pub fn die_with_parent() -> Result<(), SysError> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|errno| SysError::call("prctl", "ask to be killed with the parent", errno))
}

/// What this command starts is told to end, with SIGTERM, when the thread that starts it ends, however that
/// comes about. A program that gains rights as it begins (`ping`) loses the wish.
///
/// [`PR_SET_PDEATHSIG(2const)`](https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html).
pub fn end_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let ask = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
        // It may have ended before it was asked for.
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: between fork and exec two system calls are made; nothing allocates or takes a lock.
    unsafe { command.pre_exec(ask) };
}

/// The process that started this one; none where that lies outside of what this one can see.
#[must_use]
pub fn parent() -> Option<Pid> {
    rustix::process::getppid().map(|pid| Pid(pid.as_raw_nonzero().get()))
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    start_time: u64,
}

fn stat(pid: Pid) -> Result<Stat, SysError> {
    let path = format!("/proc/{pid}/stat");
    let what = || format!("read {path}");
    let text = std::fs::read(&path).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let advice =
            if errno == Errno::NOENT { "no such process, or /proc is not mounted" } else { "" };
        SysError::advised("open", what(), errno, advice)
    })?;
    parse(&String::from_utf8_lossy(&text))
        .ok_or_else(|| SysError::invalid(what(), "it does not look like a stat file"))
}

/// The command name may hold spaces and brackets: what follows the last bracket is counted.
fn parse(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    // Field 3 is the state, field 22 the start time.
    let start_time = fields.nth(22 - 3 - 1)?.parse().ok()?;
    Some(Stat { state, start_time })
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn this_process_is_alive_at_its_start_time_and_no_other() {
        let started = start_time(pid()).unwrap();
        assert!(alive(pid(), started));
        assert!(!alive(pid(), started + 1));
        assert!(!alive(Pid(i32::MAX), started));
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_though_nobody_reaped_it() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let id = Pid(child.id() as i32);
        let started = start_time(id).unwrap();
        assert!(alive(id, started));
        drop(child.stdin.take());
        // Not reaped before `wait`: the entry stays, as that of a zombie.
        while stat(id).unwrap().state != 'Z' {
            std::thread::yield_now();
        }
        assert!(!alive(id, started));
        child.wait().unwrap();
        assert!(start_time(id).is_err());
    }

    #[test]
    fn a_command_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let text = "7 (a) R 1 (b c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0\n";
        assert_eq!(parse(text), Some(Stat { state: 'S', start_time: 4242 }));
        assert_eq!(parse("7 (a) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn threads_have_ids_of_their_own() {
        let other = std::thread::spawn(tid).join().unwrap();
        assert_ne!(other, tid());
        assert!(start_time(tid()).is_ok());
    }
}
