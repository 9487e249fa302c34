//! Several queues at each end of a bed's links, and one CPU that sends by each (XPS).
//!
//! [`Documentation/networking/scaling.rst`](https://docs.kernel.org/networking/scaling.html).

use std::num::NonZeroU32;
use std::path::Path;

use whylate_host::bed::Role;
use whylate_model::CpuId;
use whylate_sys::sysfs::Sysfs;

use super::bed::inside;
use crate::error::NetError;

/// Bits of one group of the kernel's masks.
const GROUP: u32 = 32;

/// Refuses more queues than there are CPUs to send by them.
pub(super) fn checked(queues: NonZeroU32, cpus: &[CpuId]) -> Result<(), NetError> {
    let known = cpus.len() as u32;
    // One queue is that of all.
    if queues.get() == 1 || queues.get() <= known {
        return Ok(());
    }
    Err(NetError::QueuesWithoutCpus { queues: queues.get(), cpus: known })
}

/// What `ip` is to be told of an end of a link; nothing for the one queue that a link has.
pub(super) fn words(queues: NonZeroU32) -> String {
    match queues.get() {
        1 => String::new(),
        n => format!("numtxqueues {n} numrxqueues {n}"),
    }
}

/// Maps the queues of a link inside the bed to the first CPUs, one to each.
pub(super) fn map(
    name: &str,
    (role, link): (Role, &str),
    queues: NonZeroU32,
    cpus: &[CpuId],
) -> Result<(), NetError> {
    if queues.get() == 1 {
        return Ok(());
    }
    inside(name, role, || {
        let failed = |source: std::io::Error| NetError::Bed {
            what: format!("map the queues of {link} to CPUs"),
            source,
        };
        let sysfs = Sysfs::of_this_namespace().map_err(|errno| failed(errno.into()))?;
        for (queue, cpu) in (0..queues.get()).zip(cpus) {
            write(&sysfs.path(), link, queue, *cpu).map_err(failed)?;
        }
        Ok(())
    })
}

fn write(sys: &Path, link: &str, queue: u32, cpu: CpuId) -> std::io::Result<()> {
    let queue = sys.join("class/net").join(link).join(format!("queues/tx-{queue}"));
    std::fs::write(queue.join("xps_cpus"), mask(cpu))
}

/// The mask of one CPU: groups of 32 bits in hex, highest first.
fn mask(CpuId(cpu): CpuId) -> String {
    let below = vec!["00000000"; (cpu / GROUP) as usize];
    let first = format!("{:08x}", 1_u32 << (cpu % GROUP));
    std::iter::once(first.as_str()).chain(below).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    #[test]
    fn a_queue_has_a_cpu_of_its_own_and_more_queues_than_cpus_are_refused() {
        let cpus = [0, 1, 40].map(CpuId);
        assert!(checked(queues(3), &cpus).is_ok() && checked(queues(1), &[]).is_ok());
        let error = checked(queues(4), &cpus).unwrap_err().to_string();
        assert!(error.contains("4 queues") && error.contains('3'), "{error}");
        assert_eq!(words(queues(1)), "");
        assert_eq!(words(queues(2)), "numtxqueues 2 numrxqueues 2");
        assert_eq!(cpus.map(mask), ["00000001", "00000002", "00000100,00000000"]);
        let missing = Path::new("/nonexistent");
        assert!(write(missing, "client0", 1, cpus[2]).is_err(), "there is no such queue");
    }
}
