//! Which capabilities the calling thread may use.
//!
//! [`capabilities(7)`](https://man7.org/linux/man-pages/man7/capabilities.7.html),
//! [`capget(2)`](https://man7.org/linux/man-pages/man2/capget.2.html). Capability: none to read.

use rustix::thread::CapabilitySet;

/// A capability that some part of whylate can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cap {
    /// Real-time priorities, affinity and niceness of any task.
    SysNice,
    /// Locking memory beyond `RLIMIT_MEMLOCK`.
    IpcLock,
    /// Mounting, and a good part of tracing.
    SysAdmin,
    /// Performance counters of the kernel and of other users.
    Perfmon,
    /// Loading BPF programs.
    Bpf,
    /// Network devices, namespaces' addresses, routes.
    NetAdmin,
    /// Packet sockets.
    NetRaw,
    /// Raw access to machine registers.
    SysRawio,
    /// Raising resource limits.
    SysResource,
    /// Signals to processes of other users.
    Kill,
    /// Reading files whatever their mode.
    DacReadSearch,
    /// Writing files whatever their mode.
    DacOverride,
    /// Looking into processes of other users.
    SysPtrace,
}

/// All of them, in the order of their names.
pub const ALL: [Cap; 13] = [
    Cap::Bpf,
    Cap::DacOverride,
    Cap::DacReadSearch,
    Cap::IpcLock,
    Cap::Kill,
    Cap::NetAdmin,
    Cap::NetRaw,
    Cap::Perfmon,
    Cap::SysAdmin,
    Cap::SysNice,
    Cap::SysPtrace,
    Cap::SysRawio,
    Cap::SysResource,
];

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities(CapabilitySet);

/// The calling thread's effective set; empty where the kernel does not tell.
#[must_use]
pub fn effective() -> Capabilities {
    Capabilities(
        rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective),
    )
}

/// What whylate does with a capability, and how a user gives it.
#[must_use]
pub fn explain(cap: Cap) -> String {
    let purpose = match cap {
        Cap::SysNice => "real-time priority and binding tasks of other users",
        Cap::IpcLock => "locking its memory so that no page fault is measured",
        Cap::SysAdmin => "mounting tracefs privately and creating a trace instance",
        Cap::Perfmon => "reading the kernel's own counter constants and performance counters",
        Cap::Bpf => "loading its packet programs",
        Cap::NetAdmin => "setting up network devices and namespaces",
        Cap::NetRaw => "sending and receiving raw frames",
        Cap::SysRawio => "reading the count of system-management interrupts",
        Cap::SysResource => "raising its own resource limits",
        Cap::Kill => "sending the signals that a user asked for to other users' processes",
        Cap::DacReadSearch => "reading trace files that only root may read",
        Cap::DacOverride => "writing kernel settings that only root may write",
        Cap::SysPtrace => "naming the threads of other users' processes",
    };
    let name = cap.name();
    let file = name.to_ascii_lowercase();
    format!("{name} is for {purpose}; run as root or give it: setcap {file}+ep WHYLATE")
}

impl Capabilities {
    /// Whether `cap` is among them.
    #[must_use]
    pub fn has(self, cap: Cap) -> bool {
        self.0.bits() & cap.bit() != 0
    }
}

impl Cap {
    /// The kernel's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SysNice => "CAP_SYS_NICE",
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::SysRawio => "CAP_SYS_RAWIO",
            Self::SysResource => "CAP_SYS_RESOURCE",
            Self::Kill => "CAP_KILL",
            Self::DacReadSearch => "CAP_DAC_READ_SEARCH",
            Self::DacOverride => "CAP_DAC_OVERRIDE",
            Self::SysPtrace => "CAP_SYS_PTRACE",
        }
    }

    /// Its bit in a set.
    pub(crate) fn bit(self) -> u64 {
        let flag = match self {
            Self::SysNice => CapabilitySet::SYS_NICE,
            Self::IpcLock => CapabilitySet::IPC_LOCK,
            Self::SysAdmin => CapabilitySet::SYS_ADMIN,
            Self::Perfmon => CapabilitySet::PERFMON,
            Self::Bpf => CapabilitySet::BPF,
            Self::NetAdmin => CapabilitySet::NET_ADMIN,
            Self::NetRaw => CapabilitySet::NET_RAW,
            Self::SysRawio => CapabilitySet::SYS_RAWIO,
            Self::SysResource => CapabilitySet::SYS_RESOURCE,
            Self::Kill => CapabilitySet::KILL,
            Self::DacReadSearch => CapabilitySet::DAC_READ_SEARCH,
            Self::DacOverride => CapabilitySet::DAC_OVERRIDE,
            Self::SysPtrace => CapabilitySet::SYS_PTRACE,
        };
        flag.bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_is_the_one_that_proc_shows() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        let shown = u64::from_str_radix(line.trim(), 16).unwrap();
        let effective = effective();
        for cap in ALL {
            assert_eq!(effective.has(cap), shown & cap.bit() != 0, "{}", cap.name());
        }
    }

    #[test]
    fn each_capability_is_explained_by_its_name() {
        for cap in ALL {
            assert!(explain(cap).starts_with(cap.name()));
        }
        assert!(explain(Cap::SysNice).contains("setcap cap_sys_nice+ep"));
    }
}
