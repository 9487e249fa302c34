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

const GET_COALESCE: u32 = 0x0e;
const SET_TX_CHECKSUM: u32 = 0x17;
const GET_TSO: u32 = 0x1e;
const GET_GSO: u32 = 0x23;
const GET_FLAGS: u32 = 0x25;
const GET_GRO: u32 = 0x2b;

/// The bit of large receive offload in the answer to `GET_FLAGS`.
const FLAG_LRO: u32 = 1 << 15;

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

/// Has the kernel make checksums itself of what the port `name` sends. Needs `CAP_NET_ADMIN`.
pub fn make_checksums_early(name: &str) -> Result<(), SysError> {
    let socket = socket(name)?;
    let mut raw = RawValue { command: SET_TX_CHECKSUM, data: 0 };
    ask(&socket, name, (&raw mut raw).cast(), "checksums")
}

fn socket(name: &str) -> Result<OwnedFd, SysError> {
    rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).map_err(|errno| {
        SysError::call("socket", format!("open a socket to ask the port {name}"), errno)
    })
}

/// Has the kernel fill in what `data` points to, which begins with the number of the question.
fn ask(
    socket: &OwnedFd,
    name: &str,
    data: *mut libc::c_char,
    question: &str,
) -> Result<(), SysError> {
    let what = || format!("read the {question} of the port {name}");
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
    // SAFETY: the request outlives the call; `data` points to one of the structures above, of the
    // size that the kernel has for the question it begins with.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
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
            make_checksums_early("nosuchport").err(),
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
    fn loopback_has_offloads_and_no_coalescing() {
        match offloads("lo") {
            Ok(offloads) => assert!(offloads.gro.is_some(), "{offloads:?}"),
            Err(refusal) => return crate::tests::skip(&refusal),
        }
        assert_eq!(coalescing("lo").unwrap_err().errno(), Some(Errno::OPNOTSUPP));
    }
}
