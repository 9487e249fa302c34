//! What can go wrong with DPDK and its devices.

use crate::words::Start;

/// Why there is no port over DPDK.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DpdkError {
    /// The words name no device.
    #[error("`{words}` is no device of DPDK: {why}")]
    NoDevice {
        /// What was given.
        words: String,
        /// Why not.
        why: &'static str,
    },
    /// DPDK could not be started.
    #[error("cannot start DPDK: {reason}{}", last(said))]
    Start {
        /// The system's word for it.
        reason: String,
        /// What DPDK said last.
        said: String,
    },
    /// DPDK is started once in a process.
    #[error(
        "DPDK runs in this process already, with {running}, and cannot be started a second time \
         with {asked}: open all devices of a run with the same memory and pages, and cards first"
    )]
    OtherEal {
        /// With what it was started.
        running: Start,
        /// With what it was to be started.
        asked: Start,
    },
    /// Huge pages were demanded.
    #[error(
        "DPDK was to have {wanted_mb} MB of huge pages, and {free_mb} MB are free: \
         `sysctl vm.nr_hugepages={}`, or let it take ordinary ones (--pages ordinary)",
        wanted_mb.div_ceil(2)
    )]
    NoHugepages {
        /// Megabytes asked for.
        wanted_mb: u32,
        /// Megabytes that are free.
        free_mb: u64,
    },
    /// The device could not be opened.
    #[error("cannot open the device `{device}` of DPDK: {reason}{}", last(said))]
    Device {
        /// Its words.
        device: String,
        /// The system's word for it.
        reason: String,
        /// What DPDK said last.
        said: String,
    },
    /// A capability that opening it needs is absent.
    #[error("cannot open the device `{device}` of DPDK: {advice}")]
    Denied {
        /// Its words.
        device: String,
        /// Which capability, and how it is given.
        advice: String,
    },
    /// Somebody of this process has the device.
    #[error(
        "the device `{device}` of DPDK is open already in this process: give it another number"
    )]
    Taken {
        /// Its name.
        device: String,
    },
    /// The memory does not hold the buffers.
    #[error(
        "the device `{device}` needs {buffers} buffers of {bytes} bytes each, {needed_mb} MB, and \
         DPDK was given {memory_mb} MB: give it more (--dpdk-memory), or smaller rings{}",
        last(said)
    )]
    Pool {
        /// Its words.
        device: String,
        /// Buffers.
        buffers: u32,
        /// Bytes of one.
        bytes: u32,
        /// What they take.
        needed_mb: u32,
        /// All there is.
        memory_mb: u32,
        /// What DPDK said last.
        said: String,
    },
}

fn last(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; DPDK said: {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_their_numbers_and_what_dpdk_said() {
        let told = DpdkError::NoHugepages { wanted_mb: 255, free_mb: 4 }.to_string();
        assert!(told.contains("255 MB") && told.contains("4 MB"), "{told}");
        assert!(told.contains("vm.nr_hugepages=128"), "{told}");
        let device = "net_nul0".to_owned();
        let error = |said: &str| {
            let (device, reason) = (device.clone(), "no such device".to_owned());
            DpdkError::Device { device, reason, said: said.to_owned() }.to_string()
        };
        assert!(error("no driver").ends_with("DPDK said: no driver"), "{}", error("no driver"));
        assert!(error("").ends_with("no such device"), "{}", error(""));
    }
}
