//! Options of sockets that few libraries know.
//!
//! [socket(7)](https://man7.org/linux/man-pages/man7/socket.7.html): `SO_BINDTODEVICE`,
//! `SO_BUSY_POLL`, `SO_PREFER_BUSY_POLL` (Linux 5.11), `SO_INCOMING_NAPI_ID` (Linux 4.12),
//! `SO_INCOMING_CPU` (Linux 3.19).
//! Capability: `CAP_NET_RAW` to change an interface once bound to, `CAP_NET_ADMIN` to busy-poll for
//! longer than the system does.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use whylate_model::CpuId;

use crate::error::last_errno;

/// Longest name of an interface that the kernel has room for, with the byte that ends it.
const INTERFACE_BYTES: usize = 16;

/// Only what comes and goes by this interface passes the socket.
pub fn bind_to_interface(socket: impl AsFd, name: &str) -> Result<(), Errno> {
    if name.is_empty() || name.len() >= INTERFACE_BYTES {
        return Err(Errno::NODEV);
    }
    let length = name.len() as libc::socklen_t;
    // SAFETY: the kernel reads as many bytes as the name has.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTODEVICE,
            name.as_ptr().cast(),
            length,
        )
    };
    if answer < 0 { Err(last_errno()) } else { Ok(()) }
}

/// Asks the kernel to look at the receiving queue of the network port itself, for so many
/// microseconds, where a reader finds nothing.
pub fn set_busy_poll(socket: impl AsFd, microseconds: u32) -> Result<(), Errno> {
    set(socket, libc::SO_BUSY_POLL, microseconds as libc::c_int)
}

/// For how many microseconds a reader looks at the queue itself.
pub fn busy_poll(socket: impl AsFd) -> Result<u32, Errno> {
    get(socket, libc::SO_BUSY_POLL).map(|value| value.max(0) as u32)
}

/// Asks the kernel to leave the queue to the reader that looks at it, rather than to interrupts.
pub fn prefer_busy_poll(socket: impl AsFd) -> Result<(), Errno> {
    set(socket, libc::SO_PREFER_BUSY_POLL, 1)
}

/// How many frames one look at the queue takes at most (`SO_BUSY_POLL_BUDGET`, Linux 5.11).
pub fn set_busy_poll_budget(socket: impl AsFd, frames: u16) -> Result<(), Errno> {
    set(socket, libc::SO_BUSY_POLL_BUDGET, libc::c_int::from(frames))
}

/// The receiving queue that the last message came through; none where it came through none that can
/// be polled, as on loopback, or nothing came yet.
pub fn incoming_napi(socket: impl AsFd) -> Result<Option<u32>, Errno> {
    get(socket, libc::SO_INCOMING_NAPI_ID).map(|id| (id != 0).then_some(id as u32))
}

/// The CPU on which the kernel took in the last message; none where nothing came yet, and of a socket
/// of UDP that is not connected.
pub fn incoming_cpu(socket: impl AsFd) -> Result<Option<CpuId>, Errno> {
    get(socket, libc::SO_INCOMING_CPU).map(|cpu| u32::try_from(cpu).ok().map(CpuId))
}

fn set(socket: impl AsFd, option: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
    // SAFETY: the kernel reads one integer.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if answer < 0 { Err(last_errno()) } else { Ok(()) }
}

fn get(socket: impl AsFd, option: libc::c_int) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes one integer and its length.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    if answer < 0 { Err(last_errno()) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_refused_and_loopback_is_taken() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for name in ["", "nosuchport", "a-name-of-sixteen"] {
            assert_eq!(bind_to_interface(&socket, name), Err(Errno::NODEV), "{name}");
        }
        if let Err(errno) = bind_to_interface(&socket, "lo") {
            crate::tests::skip(&errno);
        }
    }

    #[test]
    fn busy_polling_is_read_back_and_loopback_has_no_queue() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        if let Err(errno) = set_busy_poll(&socket, 50) {
            return crate::tests::skip(&errno);
        }
        assert_eq!(busy_poll(&socket), Ok(50));
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        socket.recv(&mut [0; 8]).unwrap();
        assert_eq!(incoming_napi(&socket), Ok(None));
    }

    #[test]
    fn a_connected_socket_tells_the_cpu_on_which_its_last_message_was_taken_in() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        assert_eq!(incoming_cpu(&socket), Ok(None));
        socket.send(b"x").unwrap();
        socket.recv(&mut [0; 8]).unwrap();
        let cpu = incoming_cpu(&socket).unwrap().expect("something came");
        assert!(crate::affinity::get().contains(&cpu), "{cpu}");
    }
}
