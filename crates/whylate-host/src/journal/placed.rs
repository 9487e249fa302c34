//! Threads and processes of a box, put back: their niceness, and the cgroup that they came from.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use whylate_model::Pid;
use whylate_sys::sched::{self, Policy};
use whylate_sys::{Errno, SysError};

use super::{Bound, Home, Outcome};
use crate::kernel;
use crate::tasks::Task;

/// Lists the processes of a cgroup, and takes one in.
pub(crate) const PROCESSES: &str = "cgroup.procs";

/// How names of cgroups that whylate makes begin.
const OWN_GROUP: &str = "whylate-";

/// A process that is just starting another may do so while it is moved: those left are looked for
/// again, this often at most.
const LOOKS: usize = 8;

/// Is this a name that whylate gives to a cgroup?
pub(super) fn is_own_group(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.len() > OWN_GROUP.len() && name.starts_with(OWN_GROUP))
}

/// Gives a thread its niceness back, where it still has the one that whylate gave it.
pub(super) fn restore_niceness(pid: Pid, start_time: u64, nice: i8, ours: i8) -> Outcome {
    if !Task::alive(pid, start_time) {
        return Outcome::Gone;
    }
    match sched::policy_of(pid) {
        Ok(Policy::Other { nice: now }) if now == nice => return Outcome::AsBefore,
        Ok(Policy::Other { nice: now }) if now == ours => {}
        Ok(now) => return Outcome::ChangedSince { now: now.to_string() },
        Err(error) => return gone_or_failed(&error),
    }
    match sched::set_for(pid, Policy::Other { nice }) {
        Ok(()) => Outcome::Restored,
        Err(error) => gone_or_failed(&error),
    }
}

fn gone_or_failed(error: &SysError) -> Outcome {
    if error.errno() == Some(Errno::SRCH) {
        Outcome::Gone
    } else {
        Outcome::Failed { why: error.to_string() }
    }
}

/// Moves everybody out of a cgroup: who was moved in to where they came from, others to
/// `otherwise`; then threads run on what they could run on before they entered.
pub(super) fn empty_group(
    group: &Path,
    homes: &[Home],
    threads: &[Bound],
    otherwise: &Path,
) -> Outcome {
    let list = group.join(PROCESSES);
    let mut moved = 0_usize;
    let mut failed = None;
    for _ in 0..LOOKS {
        let inside = match std::fs::read_to_string(&list) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Outcome::Gone,
            Err(error) => return Outcome::Failed { why: error.to_string() },
        };
        let inside: Vec<Pid> =
            inside.lines().filter_map(|line| line.trim().parse().ok().map(Pid)).collect();
        if inside.is_empty() {
            break;
        }
        failed = None;
        for pid in inside {
            let known =
                homes.iter().find(|home| home.pid == pid && Task::alive(pid, home.start_time));
            let to = known.map_or(otherwise, |home| Path::new(&home.cgroup));
            match kernel::write_setting(&to.join(PROCESSES), &pid.to_string()) {
                Ok(()) => moved += 1,
                Err(error) if kernel::is_gone(&error) => {}
                Err(error) => failed = Some(format!("process {pid}: {error}")),
            }
        }
    }
    for thread in threads.iter().filter(|one| Task::alive(one.pid, one.start_time)) {
        // Its CPUs before that are another change, which is taken back after this one.
        let _ = kernel::set_affinity(thread.pid, &thread.cpus);
    }
    match failed {
        Some(why) => Outcome::Failed { why },
        None if moved > 0 => Outcome::Restored,
        None => Outcome::AsBefore,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Task {
        Task::read(whylate_sys::process::tid()).unwrap()
    }

    #[test]
    fn a_thread_gets_its_niceness_back_where_it_has_ours() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let me = me();
                // Upwards is allowed to everybody.
                let Policy::Other { nice } = sched::policy() else { return };
                let ours = (nice + 3).min(19);
                sched::set_other(ours).unwrap();
                let back = |nice, ours| restore_niceness(me.tid, me.start_time, nice, ours);
                assert!(matches!(back(nice, nice - 1), Outcome::ChangedSince { .. }));
                assert_eq!(back(ours, 0), Outcome::AsBefore);
                match back(nice, ours) {
                    Outcome::Failed { why } => return crate::tree::skip(&why),
                    outcome => assert_eq!(outcome, Outcome::Restored),
                }
                assert_eq!(sched::policy(), Policy::Other { nice });
                assert_eq!(restore_niceness(me.tid, me.start_time + 1, nice, ours), Outcome::Gone);
            });
        });
    }

    #[test]
    fn everybody_goes_home_and_who_began_inside_goes_to_the_cgroup_above() {
        let dir = tempfile::tempdir().unwrap();
        let (group, home, above) =
            (dir.path().join("whylate-1-box0"), dir.path().join("home"), dir.path().join("above"));
        for each in [&group, &home, &above] {
            std::fs::create_dir(each).unwrap();
            std::fs::write(each.join(PROCESSES), "").unwrap();
        }
        let me = Task::this_process().unwrap();
        let homes =
            [Home { pid: me.tid, start_time: me.start_time, cgroup: home.display().to_string() }];
        let empty = || empty_group(&group, &homes, &[], &above);
        assert_eq!(empty(), Outcome::AsBefore);
        // A planted cgroup keeps its list: what is written elsewhere tells who was sent there.
        std::fs::write(group.join(PROCESSES), format!("{}\n1\n", me.tid)).unwrap();
        assert_eq!(empty(), Outcome::Restored);
        let says = |dir: &Path| std::fs::read_to_string(dir.join(PROCESSES)).unwrap();
        assert_eq!((says(&home), says(&above)), (me.tid.to_string(), "1".to_owned()));
        std::fs::remove_dir_all(&group).unwrap();
        assert_eq!(empty(), Outcome::Gone);
    }

    #[test]
    fn only_cgroups_with_our_name_are_emptied() {
        for other in ["/sys/fs/cgroup", "/sys/fs/cgroup/whylate-", "/", "/sys/x/user.slice"] {
            assert!(!is_own_group(Path::new(other)), "{other}");
        }
        assert!(is_own_group(Path::new("/sys/fs/cgroup/cpuset/whylate-7-box0")));
    }
}
