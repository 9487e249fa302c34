//! Scheduling policies and priorities.
//!
//! [`sched_setattr(2)`](https://man7.org/linux/man-pages/man2/sched_setattr.2.html),
//! [`sched(7)`](https://man7.org/linux/man-pages/man7/sched.7.html). Capability: `CAP_SYS_NICE`
//! for real-time policies above `RLIMIT_RTPRIO`, for negative niceness below `RLIMIT_NICE`, for
//! `SCHED_DEADLINE` and for tasks of other users.

use std::fmt;

use rustix::io::Errno;
use whylate_model::{Nanos, Pid};

use crate::affinity::name;
use crate::capability::{self, Cap};
use crate::error::{SysError, last_errno};
use crate::limits;

/// A scheduling policy with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`, the default.
    Other {
        /// -20 (favoured) to 19.
        nice: i8,
    },
    /// `SCHED_BATCH`.
    Batch {
        /// -20 (favoured) to 19.
        nice: i8,
    },
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO` with a priority of 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with a priority of 1 to 99.
    RoundRobin(u8),
    /// `SCHED_DEADLINE`.
    Deadline {
        /// Time on a CPU in each period.
        runtime: Nanos,
        /// By when, from the start of a period.
        deadline: Nanos,
        /// The period.
        period: Nanos,
        /// What the kernel does beyond enforcing that.
        flags: DeadlineFlags,
    },
    /// One that this program does not know; it can be read, not set.
    Unknown(u32),
}

/// Options of [`Policy::Deadline`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeadlineFlags(u64);

impl DeadlineFlags {
    /// The run time is a strict upper bound, and nothing is told.
    pub const NONE: Self = Self(0);
    /// `SCHED_FLAG_RECLAIM`: run time that other reservations leave unused may be had on top.
    pub const RECLAIM: Self = Self(libc::SCHED_FLAG_RECLAIM as u64);
    /// `SCHED_FLAG_DL_OVERRUN`: a job that overruns its run time is told by `SIGXCPU`, which ends
    /// the process unless it is handled ([`crate::overrun`]).
    pub const DL_OVERRUN: Self = Self(libc::SCHED_FLAG_DL_OVERRUN as u64);

    /// These and those.
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// Are all of `wanted` among these?
    #[must_use]
    pub const fn has(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

/// Why the kernel refused a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// `RLIMIT_RTPRIO` is below the priority and `CAP_SYS_NICE` is not effective.
    RealTimeLimit {
        /// The limit.
        limit: u64,
        /// The priority asked for.
        wanted: u8,
    },
    /// `RLIMIT_NICE` does not allow the niceness and `CAP_SYS_NICE` is not effective.
    NiceLimit {
        /// The lowest niceness allowed.
        lowest: i64,
        /// The niceness asked for.
        wanted: i8,
    },
    /// `CAP_SYS_NICE` is not effective and no limit would do.
    NoCapability,
    /// The task's cgroup has no real-time run time (`CONFIG_RT_GROUP_SCHED`).
    GroupWithoutRuntime {
        /// The file that holds the 0.
        file: String,
    },
    /// A task under `SCHED_DEADLINE` must be free to run on all CPUs of its root domain.
    NarrowAffinity,
    /// The deadlines already granted leave no room.
    NoBandwidth,
    /// The task has ended.
    NoTask,
    /// Another reason.
    Other(Errno),
}

/// Gives the calling thread `SCHED_FIFO` with `priority`, 1 to 99.
pub fn set_fifo(priority: u8) -> Result<(), SysError> {
    set_for(CALLER, Policy::Fifo(priority))
}

/// Gives the calling thread `SCHED_OTHER` with `nice`.
pub fn set_other(nice: i8) -> Result<(), SysError> {
    set_for(CALLER, Policy::Other { nice })
}

/// Gives the calling thread `policy`.
pub fn set(policy: Policy) -> Result<(), SysError> {
    set_for(CALLER, policy)
}

/// Gives thread `pid` `policy`; 0 is the caller.
pub fn set_for(pid: Pid, policy: Policy) -> Result<(), SysError> {
    let attributes = Attributes::of(policy)
        .map_err(|why| SysError::invalid(format!("give {} {policy}", name(pid)), why))?;
    set_attributes(pid, &attributes).map_err(|errno| SysError::Scheduling {
        thread: name(pid),
        policy: policy.to_string(),
        denial: denial(pid, policy, errno),
    })
}

/// The calling thread's policy.
///
/// # Panics
///
/// Where a sandbox forbids a thread to ask for its own policy; [`policy_of`] returns that as an
/// error.
#[must_use]
pub fn policy() -> Policy {
    policy_of(CALLER).expect("invariant: a thread may read its own policy")
}

/// The policy of thread `pid`; 0 is the caller.
pub fn policy_of(pid: Pid) -> Result<Policy, SysError> {
    get_attributes(pid).map(|attributes| attributes.policy()).map_err(|errno| {
        SysError::call("sched_getattr", format!("read the policy of {}", name(pid)), errno)
    })
}

const CALLER: Pid = Pid(0);
/// The real-time priorities of Linux.
const PRIORITIES: std::ops::RangeInclusive<u8> = 1..=99;
const NICENESSES: std::ops::RangeInclusive<i8> = -20..=19;

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other { nice } => write!(f, "SCHED_OTHER nice {nice}"),
            Self::Batch { nice } => write!(f, "SCHED_BATCH nice {nice}"),
            Self::Idle => f.write_str("SCHED_IDLE"),
            Self::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Self::RoundRobin(priority) => write!(f, "SCHED_RR {priority}"),
            Self::Deadline { runtime, deadline, period, flags } => {
                write!(f, "SCHED_DEADLINE {runtime} by {deadline} of {period}{flags}")
            }
            Self::Unknown(number) => write!(f, "policy {number}"),
        }
    }
}

impl fmt::Display for DeadlineFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(Self::RECLAIM, " reclaiming"), (Self::DL_OVERRUN, " with overrun signals")];
        names.iter().filter(|(flag, _)| self.has(*flag)).try_for_each(|(_, name)| f.write_str(name))
    }
}

impl Denial {
    /// The kernel's answer that this explains.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::NoBandwidth => Errno::BUSY,
            Self::NoTask => Errno::SRCH,
            Self::Other(errno) => *errno,
            _ => Errno::PERM,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTimeLimit { limit, wanted } => {
                write!(
                    f,
                    "RLIMIT_RTPRIO is {limit}; give CAP_SYS_NICE, or raise `rtprio` to {wanted} in limits.conf as root"
                )
            }
            Self::NiceLimit { lowest, wanted } => write!(
                f,
                "RLIMIT_NICE allows {lowest} and above; give CAP_SYS_NICE, or set `nice` to {wanted} in limits.conf as root"
            ),
            Self::NoCapability => {
                f.write_str("it needs CAP_SYS_NICE, which is not effective; run as root or give it")
            }
            Self::GroupWithoutRuntime { file } => write!(
                f,
                "its cgroup has no real-time run time ({file} is 0); write some there or move the \
                 task to the root cgroup"
            ),
            Self::NarrowAffinity => f.write_str(
                "it is bound to fewer CPUs than its root domain has; free it, or pin it by an \
                 exclusive cpuset",
            ),
            Self::NoBandwidth => f.write_str(
                "the deadlines already granted leave too little; ask for less run time in each \
                 period",
            ),
            Self::NoTask => f.write_str("the task has ended"),
            Self::Other(errno) => write!(f, "{errno}; a sandbox may forbid it"),
        }
    }
}

/// `struct sched_attr` of `linux/sched/types.h`, as first published: all kernels take it.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const _: () = assert!(size_of::<Attributes>() == 48);

impl Attributes {
    fn of(policy: Policy) -> Result<Self, &'static str> {
        let mut attributes = Self { size: size_of::<Self>() as u32, ..Self::default() };
        match policy {
            Policy::Other { nice } | Policy::Batch { nice } if !NICENESSES.contains(&nice) => {
                return Err("niceness goes from -20 to 19");
            }
            Policy::Fifo(priority) | Policy::RoundRobin(priority)
                if !PRIORITIES.contains(&priority) =>
            {
                return Err("real-time priorities go from 1 to 99");
            }
            Policy::Unknown(_) => return Err("this program does not know its parameters"),
            Policy::Other { nice } | Policy::Batch { nice } => attributes.nice = i32::from(nice),
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
                attributes.priority = u32::from(priority);
            }
            Policy::Idle => {}
            Policy::Deadline { runtime, deadline, period, flags } => {
                attributes.flags = flags.0;
                attributes.runtime = runtime.0;
                attributes.deadline = deadline.0;
                attributes.period = period.0;
            }
        }
        attributes.policy = policy.number();
        Ok(attributes)
    }

    fn policy(&self) -> Policy {
        let (nice, priority) = (self.nice as i8, self.priority as u8);
        match self.policy.cast_signed() {
            libc::SCHED_OTHER => Policy::Other { nice },
            libc::SCHED_BATCH => Policy::Batch { nice },
            libc::SCHED_IDLE => Policy::Idle,
            libc::SCHED_FIFO => Policy::Fifo(priority),
            libc::SCHED_RR => Policy::RoundRobin(priority),
            SCHED_DEADLINE => Policy::Deadline {
                runtime: Nanos(self.runtime),
                deadline: Nanos(self.deadline),
                period: Nanos(self.period),
                flags: DeadlineFlags(self.flags & DEADLINE_FLAGS),
            },
            _ => Policy::Unknown(self.policy),
        }
    }
}

/// Of `linux/sched.h`; not every libc has it.
const SCHED_DEADLINE: i32 = 6;
/// The flags that concern deadlines; the kernel may add others when it is asked.
const DEADLINE_FLAGS: u64 = DeadlineFlags::RECLAIM.with(DeadlineFlags::DL_OVERRUN).0;

impl Policy {
    fn number(self) -> u32 {
        match self {
            Self::Other { .. } => libc::SCHED_OTHER.cast_unsigned(),
            Self::Batch { .. } => libc::SCHED_BATCH.cast_unsigned(),
            Self::Idle => libc::SCHED_IDLE.cast_unsigned(),
            Self::Fifo(_) => libc::SCHED_FIFO.cast_unsigned(),
            Self::RoundRobin(_) => libc::SCHED_RR.cast_unsigned(),
            Self::Deadline { .. } => SCHED_DEADLINE.cast_unsigned(),
            Self::Unknown(number) => number,
        }
    }
}

fn set_attributes(pid: Pid, attributes: &Attributes) -> Result<(), Errno> {
    // SAFETY: the kernel reads `attributes.size` bytes at the pointer, the size of the struct.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_setattr, pid.0, &raw const *attributes, 0_u32) };
    if answer < 0 { Err(last_errno()) } else { Ok(()) }
}

fn get_attributes(pid: Pid) -> Result<Attributes, Errno> {
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: the kernel writes at most `size` bytes at the pointer, the size of the struct.
    let answer = unsafe {
        libc::syscall(libc::SYS_sched_getattr, pid.0, &raw mut attributes, size as u32, 0_u32)
    };
    if answer < 0 { Err(last_errno()) } else { Ok(attributes) }
}

fn denial(pid: Pid, policy: Policy, errno: Errno) -> Denial {
    let privileged = capability::effective().has(Cap::SysNice);
    match (errno, policy) {
        (Errno::SRCH, _) => Denial::NoTask,
        (Errno::BUSY, Policy::Deadline { .. }) => Denial::NoBandwidth,
        (Errno::PERM, Policy::Deadline { .. }) if privileged => Denial::NarrowAffinity,
        (Errno::PERM, Policy::Fifo(_) | Policy::RoundRobin(_)) if privileged => {
            match group_without_runtime(pid) {
                Some(file) => Denial::GroupWithoutRuntime { file },
                None => Denial::Other(errno),
            }
        }
        (Errno::PERM, _) if privileged => Denial::Other(errno),
        (Errno::PERM, Policy::Fifo(wanted) | Policy::RoundRobin(wanted)) => {
            match limits::real_time_priority() {
                Some(limit) if limit < u64::from(wanted) => Denial::RealTimeLimit { limit, wanted },
                _ => Denial::NoCapability,
            }
        }
        (Errno::PERM | Errno::ACCESS, Policy::Other { nice } | Policy::Batch { nice }) => {
            match limits::niceness() {
                Some(lowest) if i64::from(nice) < lowest => {
                    Denial::NiceLimit { lowest, wanted: nice }
                }
                _ => Denial::NoCapability,
            }
        }
        (Errno::PERM, _) => Denial::NoCapability,
        _ => Denial::Other(errno),
    }
}

/// The file by which `pid`'s cgroup (version 1, controller `cpu`) forbids real-time tasks.
fn group_without_runtime(pid: Pid) -> Option<String> {
    let task = if pid == CALLER { "self".to_owned() } else { pid.to_string() };
    let groups = std::fs::read_to_string(format!("/proc/{task}/cgroup")).ok()?;
    let path = cpu_group(&groups)?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = cpu_mount(&mounts)?;
    let file = format!("{mount}{}/cpu.rt_runtime_us", path.trim_end_matches('/'));
    let runtime = std::fs::read_to_string(&file).ok()?;
    (runtime.trim() == "0").then_some(file)
}

/// The path of the `cpu` controller in a `/proc/PID/cgroup`.
fn cpu_group(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == "cpu").then_some(path)
    })
}

/// Where the `cpu` controller of version 1 is mounted.
fn cpu_mount(mounts: &str) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup" && options.split(',').any(|name| name == "cpu")).then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overrun::{self, OverrunCounter};
    use crate::{affinity, process};

    /// Runs `body` on a thread of its own, so that no policy outlives the test.
    fn apart(body: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            let thread = scope.spawn(body);
            thread.join().unwrap();
        });
    }

    #[test]
    fn a_policy_that_was_set_is_read_back() {
        let deadline = Policy::Deadline {
            runtime: Nanos(1_000_000),
            deadline: Nanos(50_000_000),
            period: Nanos(100_000_000),
            flags: DeadlineFlags::NONE,
        };
        let policies = [
            Policy::Fifo(7),
            Policy::RoundRobin(3),
            Policy::Other { nice: 5 },
            Policy::Batch { nice: 6 },
            Policy::Idle,
            deadline,
        ];
        for policy_to_set in policies {
            apart(|| match set(policy_to_set) {
                Ok(()) => assert_eq!(policy(), policy_to_set),
                Err(refusal) => crate::tests::skip(&refusal),
            });
        }
    }

    #[test]
    fn the_flags_of_a_deadline_are_read_back() {
        let _alone = overrun::tests::alone();
        for flags in [DeadlineFlags::RECLAIM, DeadlineFlags::DL_OVERRUN] {
            let policy_to_set = Policy::Deadline {
                runtime: Nanos(1_000_000),
                deadline: Nanos(100_000_000),
                period: Nanos(100_000_000),
                flags,
            };
            apart(|| {
                // Should it overrun before the policy goes, that would end the process.
                let _told = OverrunCounter::of_this_thread().unwrap();
                match set(policy_to_set) {
                    Ok(()) => {
                        assert_eq!(policy(), policy_to_set);
                        set_other(0).unwrap();
                    }
                    Err(refusal) => crate::tests::skip(&refusal),
                }
            });
        }
        let both = DeadlineFlags::RECLAIM.with(DeadlineFlags::DL_OVERRUN);
        assert!(both.has(DeadlineFlags::RECLAIM) && !DeadlineFlags::NONE.has(both));
        assert_eq!(both.to_string(), " reclaiming with overrun signals");
    }

    #[test]
    fn a_thread_is_set_by_its_id_as_by_itself() {
        apart(|| {
            set_for(process::tid(), Policy::Other { nice: 3 }).unwrap();
            assert_eq!(policy(), Policy::Other { nice: 3 });
            set_other(4).unwrap();
            assert_eq!(policy_of(process::tid()).unwrap(), Policy::Other { nice: 4 });
        });
    }

    #[test]
    fn without_the_capability_the_limit_is_named() {
        crate::tests::without(Cap::SysNice, || {
            let limit = limits::real_time_priority();
            let refusal = set_fifo(99).err();
            match limit {
                Some(limit) if limit < 99 => {
                    let refusal = refusal.unwrap();
                    let expected = Denial::RealTimeLimit { limit, wanted: 99 };
                    assert!(
                        matches!(&refusal, SysError::Scheduling { denial, .. } if *denial == expected),
                        "{refusal}"
                    );
                    assert!(refusal.to_string().contains("raise `rtprio` to 99"), "{refusal}");
                }
                _ => crate::tests::skip(&"RLIMIT_RTPRIO allows everything"),
            }
        });
    }

    #[test]
    fn without_the_capability_niceness_and_deadlines_are_explained() {
        crate::tests::without(Cap::SysNice, || {
            let deadline = Policy::Deadline {
                runtime: Nanos(1_000_000),
                deadline: Nanos(10_000_000),
                period: Nanos(10_000_000),
                flags: DeadlineFlags::NONE,
            };
            let refusal = set(deadline).unwrap_err();
            let no_capability = Denial::NoCapability;
            assert!(
                matches!(&refusal, SysError::Scheduling { denial, .. } if *denial == no_capability),
                "{refusal}"
            );
            match set_other(-20) {
                Ok(()) => crate::tests::skip(&"RLIMIT_NICE allows everything"),
                Err(refusal) => {
                    assert!(refusal.to_string().contains("set `nice` to -20"), "{refusal}");
                    assert!(refusal.to_string().contains("SCHED_OTHER nice -20"), "{refusal}");
                }
            }
        });
    }

    #[test]
    fn a_deadline_on_a_bound_thread_is_refused_for_its_affinity() {
        apart(|| {
            let cpus = affinity::get();
            if cpus.len() < 2 || !capability::effective().has(Cap::SysNice) {
                return crate::tests::skip(&"it takes CAP_SYS_NICE and two CPUs");
            }
            let runtime = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
            if runtime.is_ok_and(|runtime| runtime.trim() == "-1") {
                return crate::tests::skip(&"without a limit of real-time threads none is refused");
            }
            affinity::set(&cpus[..1]).unwrap();
            let deadline = Policy::Deadline {
                runtime: Nanos(1_000_000),
                deadline: Nanos(100_000_000),
                period: Nanos(100_000_000),
                flags: DeadlineFlags::NONE,
            };
            let refusal = set(deadline).unwrap_err();
            assert!(refusal.to_string().contains("exclusive cpuset"), "{refusal}");
        });
    }

    #[test]
    fn impossible_parameters_are_refused_before_the_kernel_is_asked() {
        let impossible = [
            Policy::Fifo(0),
            Policy::RoundRobin(100),
            Policy::Other { nice: 20 },
            Policy::Batch { nice: -21 },
            Policy::Unknown(7),
        ];
        for policy in impossible {
            assert!(matches!(set(policy), Err(SysError::Invalid { .. })), "{policy}");
        }
    }

    #[test]
    fn a_task_that_does_not_exist_has_no_policy() {
        let absent = Pid(i32::MAX);
        assert_eq!(policy_of(absent).unwrap_err().errno(), Some(Errno::SRCH));
        let refusal = set_for(absent, Policy::Idle).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "cannot give task 2147483647 SCHED_IDLE: the task has ended"
        );
    }

    #[test]
    fn the_group_that_denies_run_time_is_found_by_its_controller() {
        let groups = "5:cpuset:/a\n4:cpu,cpuacct:/b/c\n0::/d\n";
        assert_eq!(cpu_group(groups), Some("/b/c"));
        assert_eq!(cpu_group("0::/d\n"), None);
        let mounts = "cgroup /cg/cpuset cgroup rw,cpuset 0 0\n\
            cgroup /cg/cpu cgroup rw,nosuid,cpu,cpuacct 0 0\n\
            none /cg/two cgroup2 rw,cpu 0 0\n";
        assert_eq!(cpu_mount(mounts), Some("/cg/cpu"));
    }
}
