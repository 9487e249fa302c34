//! Which device of DPDK a port goes by: the same words for all who use one.

use clap::{Args, ValueEnum};
use whylate_port::Transport;
use whylate_port::device::{Device, DeviceName, Pages};

use crate::parse;

/// A DPDK device; only with --transport dpdk, where whylate was built with the feature dpdk.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "DPDK")]
pub(crate) struct DeviceArgs {
    /// Virtual DPDK device with its arguments, such as net_memif0,role=client,socket=/run/m.sock
    #[arg(
        help = "Virtual DPDK device with its arguments",
        long_help,
        long,
        value_name = "DEVICE",
        conflicts_with = "pci"
    )]
    pub(crate) vdev: Option<String>,
    /// Network card for DPDK, by its address on the bus: 0000:03:00.0
    #[arg(help = "Network card for DPDK: 0000:03:00.0", long_help, long, value_name = "ADDRESS")]
    pub(crate) pci: Option<String>,
    /// What its memory is made of
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
}

/// The memory of DPDK; only with --transport dpdk.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "DPDK")]
pub(crate) struct MemoryArgs {
    /// Memory for DPDK, once per process [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    pub(crate) dpdk_memory: Option<u64>,
    /// Pages of that memory: auto (huge ones where enough are free), ordinary, or huge (an error
    /// where they are not free) [default: auto]
    #[arg(
        help = "Pages of DPDK's memory [auto]",
        long_help,
        long,
        value_name = "KIND",
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) pages: Option<PageKind>,
}

/// Which pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageKind {
    /// Huge ones where enough are free.
    Auto,
    /// Ordinary ones.
    Ordinary,
    /// Huge ones.
    Huge,
}

impl DeviceArgs {
    /// What it is to the ports.
    pub(crate) fn of_port(&self) -> Device {
        let pci = self.pci.clone().map(DeviceName::Pci);
        let name = self.vdev.clone().map(DeviceName::Virtual).or(pci);
        Device { name, ..self.memory.of_port() }
    }

    /// The first option that these ports have no use for, where none of them is one of DPDK.
    pub(crate) fn refused(&self, ports: &[Transport]) -> Option<String> {
        let given = [(self.vdev.is_some(), "--vdev"), (self.pci.is_some(), "--pci")];
        unless_dpdk(&given, ports).or_else(|| self.memory.refused(ports))
    }
}

impl MemoryArgs {
    /// What it is to the ports, whose device is named elsewhere.
    pub(crate) fn of_port(&self) -> Device {
        Device {
            name: None,
            // What no memory can be is refused as the largest of all.
            memory_mb: self.dpdk_memory.map(|bytes| u32::try_from(bytes >> 20).unwrap_or(u32::MAX)),
            pages: match self.pages {
                None | Some(PageKind::Auto) => Pages::Auto,
                Some(PageKind::Ordinary) => Pages::Ordinary,
                Some(PageKind::Huge) => Pages::Huge,
            },
        }
    }

    /// The first option that these ports have no use for, where none of them is one of DPDK.
    pub(crate) fn refused(&self, ports: &[Transport]) -> Option<String> {
        let given =
            [(self.dpdk_memory.is_some(), "--dpdk-memory"), (self.pages.is_some(), "--pages")];
        unless_dpdk(&given, ports)
    }
}

/// The first of these options that was given, where no port is one of DPDK.
fn unless_dpdk(given: &[(bool, &str)], ports: &[Transport]) -> Option<String> {
    let (_, name) = given.iter().find(|(given, _)| *given)?;
    (!ports.contains(&Transport::Dpdk))
        .then(|| format!("{name} is for --transport dpdk: leave {name} out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_dpdk_are_for_ports_of_dpdk_alone() {
        let none = DeviceArgs::default();
        assert_eq!((none.refused(&[Transport::Udp]), none.of_port()), (None, Device::default()));
        let vdev = Some("net_null0".to_owned());
        let memory = MemoryArgs { dpdk_memory: Some(64 << 20), ..MemoryArgs::default() };
        let some = DeviceArgs { vdev, memory: memory.clone(), ..DeviceArgs::default() };
        let told = some.refused(&[Transport::Xdp]).unwrap_or_default();
        assert!(told.contains("--vdev"), "{told}");
        assert_eq!(some.refused(&[Transport::Dpdk]), None);
        let device = some.of_port();
        assert_eq!(device.name, Some(DeviceName::Virtual("net_null0".to_owned())));
        assert_eq!((device.memory_mb, device.pages), (Some(64), Pages::Auto));
        // Who names devices elsewhere has their memory all the same.
        let of_none = memory.of_port();
        assert_eq!((of_none.name, of_none.memory_mb), (None, Some(64)));
        let pages = MemoryArgs { pages: Some(PageKind::Huge), ..MemoryArgs::default() };
        assert_eq!(pages.of_port().pages, Pages::Huge);
        for (args, name) in [(memory, "--dpdk-memory"), (pages, "--pages")] {
            let told = args.refused(&[Transport::Packet]).unwrap_or_default();
            assert!(told.contains(name), "{told}");
            assert_eq!(args.refused(&[Transport::Dpdk]), None);
        }
    }
}
