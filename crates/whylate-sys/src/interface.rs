//! The network interfaces of the calling thread's namespace.
//!
//! [getifaddrs(3)](https://man7.org/linux/man-pages/man3/getifaddrs.3.html) and
//! [netdevice(7)](https://man7.org/linux/man-pages/man7/netdevice.7.html) (`SIOCGIFMTU`,
//! `SIOCGIFFLAGS`). Capability:
//! none. `/sys/class/net` is not asked: it shows the namespace in which it was mounted.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::{AddressFamily, SocketType};

use crate::error::{SysError, last_errno};

/// Interfaces that are listed at most.
const MOST: usize = 4_096;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number in this namespace.
    pub index: u32,
    /// It was switched on.
    pub up: bool,
    /// Packets pass: it is on, and there is a carrier.
    pub running: bool,
    /// It can carry multicast.
    pub multicast: bool,
    /// Its addresses of IPv4 and IPv6.
    pub addresses: Vec<IpAddr>,
    /// Its hardware address, where that has six bytes; loopback's are zero.
    pub hardware: Option<[u8; 6]>,
    /// The longest packet of IP in bytes; none where the kernel does not say.
    pub mtu: Option<u32>,
}

/// The list that the library allocated.
struct List(*mut libc::ifaddrs);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the list came from `getifaddrs` and is freed once.
        unsafe { libc::freeifaddrs(self.0) }
    }
}

/// All interfaces, in the order of the kernel.
pub fn all() -> Result<Vec<Interface>, SysError> {
    let mut first = std::ptr::null_mut();
    // SAFETY: the library writes one pointer.
    if unsafe { libc::getifaddrs(&raw mut first) } < 0 {
        return Err(SysError::call("getifaddrs", "list the network interfaces", last_errno()));
    }
    let list = List(first);
    let mut found: Vec<Interface> = Vec::new();
    let mut next = list.0;
    // SAFETY: each entry is valid as long as the list, and the last one points to none.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: the name of an entry is a string of its own that ends.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
        let (address, hardware) = (address(entry.ifa_addr), hardware(entry.ifa_addr));
        if let Some(known) = found.iter_mut().find(|known| known.name == name) {
            known.addresses.extend(address);
            known.hardware = known.hardware.or(hardware);
            continue;
        }
        if found.len() == MOST {
            break;
        }
        let has = |flag: libc::c_int| entry.ifa_flags & flag as u32 != 0;
        // SAFETY: the name is a string that ends.
        let index = unsafe { libc::if_nametoindex(entry.ifa_name) };
        let (up, running) = (has(libc::IFF_UP), has(libc::IFF_RUNNING));
        let multicast = has(libc::IFF_MULTICAST);
        let (addresses, mtu) = (address.into_iter().collect(), mtu(&name));
        found.push(Interface { name, index, up, running, multicast, addresses, hardware, mtu });
    }
    Ok(found)
}

/// The interface of this name; none where there is none in this namespace.
pub fn named(name: &str) -> Result<Option<Interface>, SysError> {
    Ok(all()?.into_iter().find(|interface| interface.name == name))
}

fn address(at: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: an entry has no address or a valid one, of which the family comes first.
    let family = unsafe { at.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: an address of this family has this shape; it may lie unaligned.
            let raw = unsafe { at.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(raw.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: an address of this family has this shape; it may lie unaligned.
            let raw = unsafe { at.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(raw.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// [packet(7)](https://man7.org/linux/man-pages/man7/packet.7.html): the list has one entry of this
/// family for each interface.
fn hardware(at: *const libc::sockaddr) -> Option<[u8; 6]> {
    // SAFETY: an entry has no address or a valid one, of which the family comes first.
    let family = unsafe { at.as_ref() }?.sa_family;
    if i32::from(family) != libc::AF_PACKET {
        return None;
    }
    // SAFETY: an address of this family has this shape; it may lie unaligned.
    let raw = unsafe { at.cast::<libc::sockaddr_ll>().read_unaligned() };
    (raw.sll_halen == 6).then(|| raw.sll_addr[..6].try_into().ok()).flatten()
}

fn mtu(name: &str) -> Option<u32> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    let mut request = request(name)?;
    // SAFETY: the request outlives the call, which writes one integer into it.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    if done < 0 {
        return None;
    }
    // SAFETY: the kernel has just written this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).ok()
}

/// Is the interface of this name switched on? Asked is the namespace that `socket` was made in, wherever the
/// calling thread is (`SIOCGIFFLAGS`). None where there is none of this name.
#[must_use]
pub fn is_up(socket: BorrowedFd<'_>, name: &str) -> Option<bool> {
    let mut request = request(name)?;
    // SAFETY: the request outlives the call, which writes the flags into it.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) };
    if done < 0 {
        return None;
    }
    // SAFETY: the kernel has just written this member.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Some(libc::c_int::from(flags) & libc::IFF_UP != 0)
}

/// A request about the interface of this name; none where no interface can have it.
fn request(name: &str) -> Option<libc::ifreq> {
    // SAFETY: all bytes zero are a valid `ifreq`: names and numbers, and a null pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays zero: the name ends there.
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = std::ffi::c_char::from_ne_bytes([from]);
    }
    Some(request)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn loopback_is_there_with_its_address_and_mtu() {
        let found = match named("lo") {
            Ok(Some(found)) => found,
            Ok(None) => return crate::tests::skip(&"no loopback interface here"),
            Err(refusal) => return crate::tests::skip(&refusal),
        };
        assert!(found.index > 0 && found.up && found.running, "{found:?}");
        assert!(found.addresses.contains(&Ipv4Addr::LOCALHOST.into()), "{found:?}");
        assert!(found.mtu.is_some_and(|mtu| mtu >= 1_500), "{found:?}");
        assert_eq!(found.hardware, Some([0; 6]), "{found:?}");
        assert_eq!(named("nosuchport").unwrap(), None);
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        assert_eq!(is_up(socket.as_fd(), "lo"), Some(true));
        assert_eq!(is_up(socket.as_fd(), "nosuchport"), None);
        assert_eq!(is_up(socket.as_fd(), "a name that is too long"), None);
    }

    #[test]
    fn no_interface_is_listed_twice() {
        let Ok(all) = all() else { return };
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other.name != one.name), "{}", one.name);
        }
    }
}
