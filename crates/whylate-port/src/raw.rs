//! Options of sockets that no library knows, and addresses of packet sockets.
//!
//! [setsockopt(2)](https://man7.org/linux/man-pages/man2/setsockopt.2.html),
//! [packet(7)](https://man7.org/linux/man-pages/man7/packet.7.html),
//! [socket(7)](https://man7.org/linux/man-pages/man7/socket.7.html) (`SO_ATTACH_FILTER`).

#![expect(unsafe_code, reason = "options and addresses are handed to the kernel by pointer")]

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::error::PortError;
use crate::frame::Mac;

/// What options are made of: integers and structures of integers, of which any bytes are a value.
///
/// # Safety
///
/// Without padding that must not be read, and without pointers that the kernel would write through.
// SAFETY: each implementation says beside it why that holds.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for libc::c_int {}
// SAFETY: four integers, without padding.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: two integers, without padding.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: integers and an array of them, without padding.
unsafe impl Plain for libc::packet_mreq {}

/// Sets an option.
pub(crate) fn set<T: Plain>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> Result<(), Errno> {
    let length = size_of::<T>() as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads as many bytes as the value has.
    let answer = unsafe {
        libc::setsockopt(socket, level, option, std::ptr::from_ref(value).cast(), length)
    };
    if answer < 0 { Err(last_errno()) } else { Ok(()) }
}

/// Reads an option; `value` is what the kernel may read before.
pub(crate) fn get<T: Plain>(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    mut value: T,
) -> Result<T, Errno> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most as many bytes as the value has, and any bytes are a value.
    let answer = unsafe {
        libc::getsockopt(socket, level, option, (&raw mut value).cast(), &raw mut length)
    };
    if answer < 0 { Err(last_errno()) } else { Ok(value) }
}

/// A packet socket that receives nothing yet. Capability: `CAP_NET_RAW`.
pub(crate) fn packet_socket(backend: &'static str) -> Result<OwnedFd, PortError> {
    let (family, flags) = (AddressFamily::PACKET, SocketFlags::CLOEXEC);
    socket_with(family, SocketType::RAW, flags, None).map_err(|errno| refused(backend, errno))
}

/// Why there is no socket for frames.
pub(crate) fn refused(backend: &'static str, errno: Errno) -> PortError {
    match errno {
        Errno::PERM | Errno::ACCESS => PortError::FramesDenied { backend },
        errno => PortError::Create { what: backend, errno },
    }
}

/// Binds a packet socket to an interface; from then on it receives frames of this EtherType (0 is
/// none).
pub(crate) fn bind_packet(socket: &OwnedFd, index: u32, kind: u16) -> Result<(), Errno> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::sa_family_t,
        sll_protocol: kind.to_be(),
        sll_ifindex: index as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads as many bytes as the address has.
    let answer = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if answer < 0 { Err(last_errno()) } else { Ok(()) }
}

/// From now on the interface receives what is sent to this hardware address, for as long as the
/// packet socket is open.
pub(crate) fn hear(socket: &OwnedFd, index: u32, mac: Mac) -> Result<(), Errno> {
    let kind = if mac.is_group() { libc::PACKET_MR_MULTICAST } else { libc::PACKET_MR_UNICAST };
    let mut address = [0; 8];
    address[..6].copy_from_slice(&mac.0);
    let request = libc::packet_mreq {
        mr_ifindex: index as libc::c_int,
        mr_type: kind as libc::c_ushort,
        mr_alen: 6,
        mr_address: address,
    };
    set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// From now on the interface receives what is sent to anybody, for as long as the packet socket is
/// open.
pub(crate) fn hear_everything(socket: &OwnedFd, index: u32) -> Result<(), Errno> {
    let request = libc::packet_mreq {
        mr_ifindex: index as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// From now on the socket receives nothing: a program of one instruction drops it all.
pub(crate) fn deafen(socket: &OwnedFd) -> Result<(), Errno> {
    let code = (libc::BPF_RET | libc::BPF_K) as u16;
    let mut nothing = libc::sock_filter { code, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
    let length = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: the kernel reads the program and its one instruction, both alive until the call ends.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            length,
        )
    };
    if answer < 0 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
