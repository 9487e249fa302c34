//! Memory of a process, moved from node to node.
//!
//! [migrate_pages(2)](https://man7.org/linux/man-pages/man2/migrate_pages.2.html). Capability: none for a process
//! of the same user, `CAP_SYS_NICE` for another one, for pages that it shares with others, and for a node that
//! its cpuset has not.

use rustix::io::Errno;
use whylate_model::Pid;

use crate::SysError;
use crate::error::last_errno;

/// Nodes that a set has room for, as many as any kernel is built for.
const MOST_NODES: u32 = 1_024;
/// Bits of a word of a set.
const BITS: u32 = libc::c_ulong::BITS;
const WORDS: usize = (MOST_NODES / BITS) as usize;

/// Brings what a process has on some nodes to another one. Gives the number of pages that the kernel could
/// not move: those that are pinned, as what cards write to is.
///
/// What it takes from now on is not asked: that comes from where its threads run, or from its cpuset. To a node
/// that is not there the kernel moves nothing, and need not say so: read back where the memory lies.
///
/// # Errors
/// A number that no node has, a missing capability, a process that has ended, a kernel without nodes.
pub fn move_pages(pid: Pid, from: &[u32], to: u32) -> Result<u64, SysError> {
    let what = || format!("move the memory of process {pid} to node {to}");
    let set = |nodes: &[u32]| -> Result<[libc::c_ulong; WORDS], SysError> {
        let mut set: [libc::c_ulong; WORDS] = [0; WORDS];
        for node in nodes {
            let word = set.get_mut((node / BITS) as usize);
            let word = word.ok_or_else(|| SysError::invalid(what(), "no machine has this node"))?;
            *word |= 1 << (node % BITS);
        }
        Ok(set)
    };
    let (old, new) = (set(from)?, set(&[to])?);
    // The kernel takes one less than it is told.
    let most = libc::c_ulong::from(MOST_NODES) + 1;
    // SAFETY: the kernel reads `MOST_NODES` bits of each set, and both have as many.
    let left =
        unsafe { libc::syscall(libc::SYS_migrate_pages, pid.0, most, old.as_ptr(), new.as_ptr()) };
    u64::try_from(left).map_err(|_| {
        let errno = last_errno();
        let advice = match errno {
            Errno::NOSYS => "this kernel is built without CONFIG_NUMA",
            Errno::PERM => {
                "the process is somebody else's, or its cpuset has not this node: run as root"
            }
            _ => "",
        };
        SysError::advised("migrate_pages", what(), errno, advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_moves_to_the_node_that_is_there_and_no_number_beyond_all_nodes_is_one() {
        let own = crate::process::pid();
        // From nowhere to the first node: there is nothing to move.
        match move_pages(own, &[], 0) {
            Ok(left) => assert_eq!(left, 0),
            Err(refusal) => return crate::tests::skip(&refusal),
        }
        assert!(move_pages(own, &[0], 0).is_ok());
        let gone = move_pages(Pid(i32::MAX), &[0], 0).unwrap_err();
        assert_eq!(gone.errno(), Some(Errno::SRCH), "{gone}");
        for node in [MOST_NODES, u32::MAX] {
            let error = move_pages(own, &[0], node).unwrap_err().to_string();
            assert!(error.contains(&format!("to node {node}")), "{error}");
        }
    }
}
