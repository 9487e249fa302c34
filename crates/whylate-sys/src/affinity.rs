//! On which CPUs a thread may run.
//!
//! [`sched_setaffinity(2)`](https://man7.org/linux/man-pages/man2/sched_setaffinity.2.html).
//! Capability: none for one's own threads; `CAP_SYS_NICE` for those of other users.
//!
//! Masks have as many bits as the machine has CPUs: nothing stops at 1024. After `Ok` exactly the
//! CPUs asked for are in force: the kernel silently drops those that are offline or outside the
//! cpuset, so each change is read back.

use rustix::io::Errno;
use whylate_model::{CpuId, Pid};

use crate::error::{SysError, last_errno};

/// Bits in one word of a mask.
const WORD_BITS: u32 = u64::BITS;
/// The first guess at the kernel's mask: 1024 CPUs.
const WORDS_FIRST: usize = 16;
/// Where growing ends: half a million CPUs, 64 times what any kernel can be built for.
const WORDS_MAX: usize = 8192;

const _: () = assert!(size_of::<libc::c_ulong>() == size_of::<u64>(), "masks are kept in u64");

/// Binds the calling thread to `cpus`.
pub fn set(cpus: &[CpuId]) -> Result<(), SysError> {
    set_of(CALLER, cpus)
}

/// The CPUs the calling thread may run on, ascending.
///
/// # Panics
///
/// Where a sandbox forbids a thread to ask for its own affinity; [`get_of`] returns that as an
/// error.
#[must_use]
pub fn get() -> Vec<CpuId> {
    get_of(CALLER).expect("invariant: a thread may read its own affinity")
}

/// Binds thread `pid` to `cpus`; 0 is the caller.
pub fn set_of(pid: Pid, cpus: &[CpuId]) -> Result<(), SysError> {
    let mut wanted = cpus.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let what = || format!("bind {} to CPUs", name(pid));
    let Some(last) = wanted.last() else {
        return Err(SysError::invalid(what(), "no CPU is named"));
    };
    if last.0 >= WORDS_MAX as u32 * WORD_BITS {
        return Err(SysError::invalid(what(), format!("no machine has a CPU {last}")));
    }
    set_mask(pid, &to_mask(&wanted, *last)).map_err(|errno| refusal(pid, &wanted, errno))?;
    let got = get_of(pid)?;
    if got == wanted {
        Ok(())
    } else {
        Err(SysError::AffinityPartial { thread: name(pid), wanted, got })
    }
}

/// The CPUs thread `pid` may run on, ascending; 0 is the caller.
pub fn get_of(pid: Pid) -> Result<Vec<CpuId>, SysError> {
    let mut words = WORDS_FIRST;
    loop {
        match get_mask(pid, words) {
            Ok(mask) => return Ok(from_mask(&mask)),
            // The mask was too short for this kernel.
            Err(Errno::INVAL) if words < WORDS_MAX => words *= 2,
            Err(errno) => {
                let what = format!("read the affinity of {}", name(pid));
                return Err(SysError::call("sched_getaffinity", what, errno));
            }
        }
    }
}

/// The CPU the calling thread runs on at this moment.
#[must_use]
pub fn current() -> CpuId {
    CpuId(rustix::thread::sched_getcpu() as u32)
}

const CALLER: Pid = Pid(0);

/// How an error calls a thread.
pub(crate) fn name(pid: Pid) -> String {
    if pid == CALLER { "this thread".to_owned() } else { format!("task {pid}") }
}

fn refusal(pid: Pid, wanted: &[CpuId], errno: Errno) -> SysError {
    let cpus = wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let what = format!("bind {} to CPUs {cpus}", name(pid));
    let advice = match errno {
        Errno::INVAL => {
            "none of them is online and inside the task's cpuset: compare \
             /sys/devices/system/cpu/online and Cpus_allowed_list in /proc/self/status"
        }
        Errno::PERM => {
            "the task belongs to another user (give CAP_SYS_NICE) or is under SCHED_DEADLINE"
        }
        Errno::SRCH => "the task has ended",
        _ => "",
    };
    SysError::advised("sched_setaffinity", what, errno, advice)
}

fn to_mask(cpus: &[CpuId], last: CpuId) -> Vec<u64> {
    let mut mask = vec![0_u64; (last.0 / WORD_BITS) as usize + 1];
    for cpu in cpus {
        mask[(cpu.0 / WORD_BITS) as usize] |= 1 << (cpu.0 % WORD_BITS);
    }
    mask
}

fn from_mask(mask: &[u64]) -> Vec<CpuId> {
    let bits = (0_u32..).zip(mask).flat_map(|(index, word)| {
        (0..WORD_BITS)
            .filter(move |bit| word & (1 << bit) != 0)
            .map(move |bit| CpuId(index * WORD_BITS + bit))
    });
    bits.collect()
}

fn set_mask(pid: Pid, mask: &[u64]) -> Result<(), Errno> {
    // SAFETY: the kernel reads `size_of_val(mask)` bytes at the pointer, which `mask` has.
    let answer = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, pid.0, size_of_val(mask), mask.as_ptr())
    };
    if answer < 0 { Err(last_errno()) } else { Ok(()) }
}

fn get_mask(pid: Pid, words: usize) -> Result<Vec<u64>, Errno> {
    let mut mask = vec![0_u64; words];
    let bytes = words * size_of::<u64>();
    // SAFETY: the kernel writes at most `bytes` bytes at the pointer, which `mask` has.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, pid.0, bytes, mask.as_mut_ptr()) };
    if answer < 0 { Err(last_errno()) } else { Ok(mask) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `body` on a thread of its own, so that no binding outlives the test.
    fn apart(body: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            scope.spawn(body);
        });
    }

    #[test]
    fn a_bound_thread_runs_where_it_was_bound() {
        apart(|| {
            for cpu in get() {
                set(&[cpu]).unwrap();
                assert_eq!(get(), [cpu]);
                assert_eq!(current(), cpu);
            }
        });
    }

    #[test]
    fn a_thread_is_bound_by_its_id_as_by_itself() {
        apart(|| {
            let tid = crate::process::tid();
            let cpus = get();
            set_of(tid, &cpus[..1]).unwrap();
            assert_eq!(get(), cpus[..1]);
            assert_eq!(get_of(tid).unwrap(), cpus[..1]);
            set_of(tid, &cpus).unwrap();
            assert_eq!(get(), cpus);
        });
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused_even_beside_one_that_does() {
        apart(|| {
            let here = get()[0];
            let absent = CpuId(300_000);
            let alone = set(&[absent]).unwrap_err();
            assert_eq!(alone.errno(), Some(Errno::INVAL), "{alone}");
            let beside = set(&[absent, here]).unwrap_err();
            assert_eq!(
                beside,
                SysError::AffinityPartial {
                    thread: "this thread".to_owned(),
                    wanted: vec![here, absent],
                    got: vec![here],
                }
            );
            assert!(matches!(set(&[]), Err(SysError::Invalid { .. })));
            assert!(matches!(set(&[CpuId(u32::MAX)]), Err(SysError::Invalid { .. })));
        });
    }

    #[test]
    fn masks_hold_cpus_above_1024() {
        let cpus = [CpuId(0), CpuId(63), CpuId(64), CpuId(1024), CpuId(8191)];
        let mask = to_mask(&cpus, CpuId(8191));
        assert_eq!(mask.len(), 128);
        assert_eq!(from_mask(&mask), cpus);
    }

    #[test]
    fn a_mask_too_short_for_the_kernel_is_told_apart_from_a_refusal() {
        // Less than one word never holds a kernel's mask.
        assert_eq!(get_mask(CALLER, 0), Err(Errno::INVAL));
    }

    #[test]
    fn a_task_that_does_not_exist_has_no_affinity() {
        assert_eq!(get_of(Pid(i32::MAX)).unwrap_err().errno(), Some(Errno::SRCH));
    }
}
