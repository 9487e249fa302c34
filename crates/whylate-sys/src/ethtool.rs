//! What a network port says about itself: coalescing and offloads.
//!
//! [`netdevice(7)`](https://man7.org/linux/man-pages/man7/netdevice.7.html) and
//! [`linux/ethtool.h`](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/ethtool.h),
//! by the ioctl `SIOCETHTOOL`. Capability: none to read, `CAP_NET_ADMIN` to set.
//!
//! A driver that does not know a question answers `EOPNOTSUPP`: that is no setting of zero.

use std::os::fd::AsRawFd;

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType};

use crate::error::{SysError, last_errno};

const GET_SETTINGS: u32 = 0x01;
const GET_DRIVER: u32 = 0x03;
const GET_COALESCE: u32 = 0x0e;
const SET_COALESCE: u32 = 0x0f;
const SET_TX_CHECKSUM: u32 = 0x17;
const GET_TSO: u32 = 0x1e;
const GET_GSO: u32 = 0x23;
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
const GET_GRO: u32 = 0x2b;

/// The bit of large receive offload in the answer to `GET_FLAGS`.
const FLAG_LRO: u32 = 1 << 15;
/// The bit of VLAN tags that are taken out of what is received.
const FLAG_RX_VLAN: u32 = 1 << 8;
/// The kernel may leave the tag of a frame that is sent to the driver.
const FLAG_TX_VLAN: u32 = 1 << 7;

/// `struct ethtool_coalesce`.
#[repr(C)]
#[derive(Default)]
struct RawCoalesce {
    command: u32,
    rx_usecs: u32,
    rx_frames: u32,
    rx_irq: [u32; 2],
    tx_usecs: u32,
    tx_frames: u32,
    tx_irq: [u32; 2],
    stats_block_usecs: u32,
    adaptive_rx: u32,
    adaptive_tx: u32,
    by_rate: [u32; 11],
}

const _: () = assert!(size_of::<RawCoalesce>() == 92, "the kernel's structure has 23 words");

/// `struct ethtool_value`.
#[repr(C)]
struct RawValue {
    command: u32,
    data: u32,
}

const _: () = assert!(size_of::<RawValue>() == 8, "the kernel's structure has 2 words");

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct RawDriver {
    command: u32,
    driver: [u8; 32],
    versions_and_bus: [u8; 128],
    rest: [u8; 32],
}

const _: () = assert!(size_of::<RawDriver>() == 196, "the kernel's structure has 196 bytes");

/// `struct ethtool_cmd`.
#[repr(C)]
#[derive(Default)]
struct RawSettings {
    command: u32,
    supported_and_advertised: [u32; 2],
    speed: u16,
    duplex_to_mdio: [u8; 6],
    packets: [u32; 2],
    speed_high: u16,
    crossover: [u8; 2],
    rest: [u32; 3],
}

const _: () = assert!(size_of::<RawSettings>() == 44, "the kernel's structure has 44 bytes");

/// Where the name of its bus lies behind a driver's two versions, and how long it is at most.
const BUS: std::ops::Range<usize> = 64..96;
/// Drivers of ports that are memory, whatever speed they tell.
const OF_MEMORY: [&str; 14] = [
    "veth",
    "tun",
    "bridge",
    "virtio_net",
    "dummy",
    "macvlan",
    "ipvlan",
    "vxlan",
    "openvswitch",
    "netdevsim",
    "vif",
    "hv_netvsc",
    "vmxnet3",
    "bonding",
];

/// How long a port holds packets back to announce several at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalescing {
    /// Microseconds after a received packet, at most.
    pub rx_usecs: u32,
    /// Microseconds after a sent packet, at most.
    pub tx_usecs: u32,
    /// The driver changes the former with the load.
    pub adaptive_rx: bool,
    /// The driver changes the latter with the load.
    pub adaptive_tx: bool,
}

/// What a port or its driver does to packets in bulk; `None` where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offloads {
    /// Generic receive offload: received segments are merged by the kernel.
    pub gro: Option<bool>,
    /// Large receive offload: received segments are merged by the port.
    pub lro: Option<bool>,
    /// TCP segmentation offload: the port cuts what is sent.
    pub tso: Option<bool>,
    /// Generic segmentation offload: the kernel cuts what is sent, late.
    pub gso: Option<bool>,
}

/// Coalescing of the port `name`.
pub fn coalescing(name: &str) -> Result<Coalescing, SysError> {
    let socket = socket(name)?;
    let mut raw = RawCoalesce { command: GET_COALESCE, ..RawCoalesce::default() };
    ask(&socket, name, (&raw mut raw).cast(), "coalescing")?;
    Ok(Coalescing {
        rx_usecs: raw.rx_usecs,
        tx_usecs: raw.tx_usecs,
        adaptive_rx: raw.adaptive_rx != 0,
        adaptive_tx: raw.adaptive_tx != 0,
    })
}

/// Has the port `name` hold packets back for `rx_usecs` after a received one and `tx_usecs` after a
/// sent one, and leaves what else it says of coalescing as it is. Needs `CAP_NET_ADMIN`. Drivers
/// round: read it back.
pub fn set_coalescing(name: &str, rx_usecs: u32, tx_usecs: u32) -> Result<(), SysError> {
    let socket = socket(name)?;
    let mut raw = RawCoalesce { command: GET_COALESCE, ..RawCoalesce::default() };
    ask(&socket, name, (&raw mut raw).cast(), "coalescing")?;
    raw.command = SET_COALESCE;
    (raw.rx_usecs, raw.tx_usecs) = (rx_usecs, tx_usecs);
    let what = || format!("set the coalescing of the port {name}");
    request(&socket, name, libc::SIOCETHTOOL, (&raw mut raw).cast(), what)
}

/// Offloads of the port `name`.
pub fn offloads(name: &str) -> Result<Offloads, SysError> {
    let socket = socket(name)?;
    let value = |command| {
        let mut raw = RawValue { command, data: 0 };
        ask(&socket, name, (&raw mut raw).cast(), "offloads").map(|()| raw.data)
    };
    let known = |command| value(command).ok();
    let gro = value(GET_GRO)?;
    Ok(Offloads {
        gro: Some(gro != 0),
        lro: known(GET_FLAGS).map(|flags| flags & FLAG_LRO != 0),
        tso: known(GET_TSO).map(|data| data != 0),
        gso: known(GET_GSO).map(|data| data != 0),
    })
}

/// May the port `name` hand over the outer VLAN tag of a frame that it receives beside the frame, and not in
/// it? `ethtool -k` calls it rx-vlan-offload.
pub fn keeps_tags_beside(name: &str) -> Result<bool, SysError> {
    let socket = socket(name)?;
    let mut raw = RawValue { command: GET_FLAGS, data: 0 };
    ask(&socket, name, (&raw mut raw).cast(), "offload of VLAN tags")?;
    Ok(raw.data & FLAG_RX_VLAN != 0)
}

/// Has the port `name` hand over the outer VLAN tag of a frame beside the frame, or in it, and leaves its
/// other flags as they are. Needs `CAP_NET_ADMIN`. A driver may not keep it: read it back.
pub fn set_tags_beside(name: &str, beside: bool) -> Result<(), SysError> {
    let socket = socket(name)?;
    let mut raw = RawValue { command: GET_FLAGS, data: 0 };
    ask(&socket, name, (&raw mut raw).cast(), "offload of VLAN tags")?;
    raw.command = SET_FLAGS;
    raw.data = if beside { raw.data | FLAG_RX_VLAN } else { raw.data & !FLAG_RX_VLAN };
    let what = || format!("set the offload of VLAN tags of the port {name}");
    request(&socket, name, libc::SIOCETHTOOL, (&raw mut raw).cast(), what)
}

/// Has the kernel put VLAN tags into the frames that the port `name` sends, rather than leave them beside for
/// the driver, and leaves its other flags as they are. Needs `CAP_NET_ADMIN`. `ethtool -K` calls it txvlan off.
pub fn put_tags_early(name: &str) -> Result<(), SysError> {
    let socket = socket(name)?;
    let mut raw = RawValue { command: GET_FLAGS, data: 0 };
    ask(&socket, name, (&raw mut raw).cast(), "offload of VLAN tags")?;
    (raw.command, raw.data) = (SET_FLAGS, raw.data & !FLAG_TX_VLAN);
    let what = || format!("set the offload of VLAN tags of the port {name}");
    request(&socket, name, libc::SIOCETHTOOL, (&raw mut raw).cast(), what)
}

/// The name of the driver of the port `name`: `igb`, `veth`.
pub fn driver(name: &str) -> Result<String, SysError> {
    driver_and_bus(name).map(|(driver, _)| driver)
}

/// The driver of a port, and where its device lies: `0000:03:00.0`.
fn driver_and_bus(name: &str) -> Result<(String, String), SysError> {
    let socket = socket(name)?;
    let (driver, versions_and_bus, rest) = ([0; 32], [0; 128], [0; 32]);
    let mut raw = RawDriver { command: GET_DRIVER, driver, versions_and_bus, rest };
    ask(&socket, name, (&raw mut raw).cast(), "driver")?;
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Ok((text(&raw.driver), text(&raw.versions_and_bus[BUS])))
}

/// Bits a second of the link of the port `name` in the network namespace of this thread, where a device that
/// lies on a bus has one. None where the port is memory (ends of veth, taps, bridges, paravirtual ports):
/// such drivers tell numbers too, of no link. None where there is no such port, or no link.
#[must_use]
pub fn link_bps(name: &str) -> Option<f64> {
    let (driver, bus) = driver_and_bus(name).ok()?;
    if !is_of_a_device(&driver, &bus) {
        return None;
    }
    let socket = socket(name).ok()?;
    let mut raw = RawSettings { command: GET_SETTINGS, ..RawSettings::default() };
    ask(&socket, name, (&raw mut raw).cast(), "speed").ok()?;
    let megabits = (u32::from(raw.speed_high) << 16) | u32::from(raw.speed);
    // All bits set: not known.
    (megabits > 0 && megabits < u32::MAX).then(|| f64::from(megabits) * 1e6)
}

/// Is that a driver of a device, at a place where one lies?
fn is_of_a_device(driver: &str, bus: &str) -> bool {
    let is_place = !matches!(bus, "" | "N/A" | "tap" | "tun") && !bus.starts_with("virtio");
    is_place && !OF_MEMORY.contains(&driver)
}

/// Has the kernel make checksums itself of what the port `name` sends. Needs `CAP_NET_ADMIN`.
pub fn make_checksums_early(name: &str) -> Result<(), SysError> {
    let socket = socket(name)?;
    let mut raw = RawValue { command: SET_TX_CHECKSUM, data: 0 };
    ask(&socket, name, (&raw mut raw).cast(), "checksums")
}

pub(crate) fn socket(name: &str) -> Result<OwnedFd, SysError> {
    rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(|errno| {
        SysError::call("socket", format!("open a socket to ask the port {name}"), errno)
    })
}

/// Has the kernel fill in what `data` points to, which begins with the number of the question.
pub(crate) fn ask(
    socket: &OwnedFd,
    name: &str,
    data: *mut libc::c_char,
    question: &str,
) -> Result<(), SysError> {
    let what = || format!("read the {question} of the port {name}");
    // The data is one of the structures above, or of another file's, of the size that the kernel has
    // for the question it begins with.
    request(socket, name, libc::SIOCETHTOOL, data, what)
}

/// One of the ioctls on a port that are given the port's name and an address. What is there must be of
/// the size that the kernel has for the request.
pub(crate) fn request(
    socket: &OwnedFd,
    name: &str,
    number: libc::Ioctl,
    data: *mut libc::c_char,
    what: impl Fn() -> String,
) -> Result<(), SysError> {
    // SAFETY: all bytes zero are a valid `ifreq`: names and numbers, and a null pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays zero: the name ends there.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(SysError::invalid(what(), "no port has a name of this length"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = std::ffi::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_data = data;
    // SAFETY: the request outlives the call; `data` points to a structure of the size that the kernel
    // has for it, as every caller in this crate sees to.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), number, &raw mut request) };
    if done == 0 { Ok(()) } else { Err(SysError::call("ioctl", what(), last_errno())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Errno;

    #[test]
    fn a_port_that_does_not_exist_is_named() {
        let refusals = [
            coalescing("nosuchport").err(),
            offloads("nosuchport").err(),
            driver("nosuchport").err(),
            make_checksums_early("nosuchport").err(),
            set_tags_beside("nosuchport", false).err(),
        ];
        for refusal in refusals {
            let refusal = refusal.unwrap();
            if refusal.errno() == Some(Errno::NOSYS) {
                // An emulator that has no such question.
                return crate::tests::skip(&refusal);
            }
            assert_eq!(refusal.errno(), Some(Errno::NODEV), "{refusal}");
            assert!(refusal.to_string().contains("nosuchport"), "{refusal}");
        }
    }

    #[test]
    fn a_name_that_no_port_can_have_is_refused_before_the_kernel_is_asked() {
        for name in ["", "a-name-of-sixteen"] {
            assert!(matches!(coalescing(name), Err(SysError::Invalid { .. })), "{name}");
        }
    }

    #[test]
    fn only_ports_of_devices_have_a_speed_and_not_what_is_memory() {
        for (driver, bus) in [
            ("veth", ""),
            ("tun", "tap"),
            ("bridge", "N/A"),
            ("virtio_net", "0000:00:03.0"),
            ("virtio_net", "virtio0"),
            ("something", ""),
        ] {
            assert!(!is_of_a_device(driver, bus), "{driver} at `{bus}`");
        }
        assert!(
            is_of_a_device("ixgbe", "0000:03:00.0")
                && is_of_a_device("r8152", "usb-0000:00:14.0-1")
        );
        assert_eq!(link_bps("lo"), None);
        assert_eq!(link_bps("nosuchport"), None);
    }

    #[test]
    fn loopback_keeps_no_tags_beside_frames() {
        match keeps_tags_beside("lo") {
            Ok(keeps) => assert!(!keeps),
            Err(refusal) => crate::tests::skip(&refusal),
        }
    }

    #[test]
    fn loopback_has_offloads_and_no_coalescing() {
        match offloads("lo") {
            Ok(offloads) => assert!(offloads.gro.is_some(), "{offloads:?}"),
            Err(refusal) => return crate::tests::skip(&refusal),
        }
        assert_eq!(coalescing("lo").unwrap_err().errno(), Some(Errno::OPNOTSUPP));
    }
}
