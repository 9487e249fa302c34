//! A memory barrier on all running threads of this process, which interrupts their CPUs.
//!
//! [`membarrier(2)`](https://man7.org/linux/man-pages/man2/membarrier.2.html). Capability: none.

use rustix::thread::{MembarrierCommand, membarrier};

use crate::SysError;

/// Announces that this process will call [`private_expedited`]; once is enough.
pub fn register_private_expedited() -> Result<(), SysError> {
    command(MembarrierCommand::RegisterPrivateExpedited, "register for expedited barriers")
}

/// Sends each CPU that runs another thread of this process an interrupt, and waits for them.
pub fn private_expedited() -> Result<(), SysError> {
    command(MembarrierCommand::PrivateExpedited, "send an expedited barrier")
}

fn command(command: MembarrierCommand, what: &str) -> Result<(), SysError> {
    membarrier(command).map_err(|errno| {
        let advice = match errno {
            rustix::io::Errno::PERM => "register_private_expedited comes first",
            rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL => {
                "this kernel is older than 4.14 or built without CONFIG_MEMBARRIER"
            }
            _ => "",
        };
        SysError::advised("membarrier", what, errno, advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_process_may_send_barriers() {
        if let Err(refusal) = register_private_expedited() {
            return crate::tests::skip(&refusal);
        }
        private_expedited().unwrap();
    }
}
