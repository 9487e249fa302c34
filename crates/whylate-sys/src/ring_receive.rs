//! Receiving a message by `io_uring`.
//!
//! [`io_uring(7)`](https://man7.org/linux/man-pages/man7/io_uring.7.html), `IORING_OP_RECVMSG`
//! (Linux 5.3) with `IORING_OP_LINK_TIMEOUT` (Linux 5.5) behind it: one system call hands both over
//! and waits. Capability: none, except where `/proc/sys/kernel/io_uring_disabled` says so.

use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::squeue::Flags;
use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;
use rustix::net::SocketAddrAny;

use crate::SysError;
use crate::io_uring::refusal;
use crate::timespec::NANOS_PER_SECOND;

/// A reception and its time-out are in flight at a time.
const ENTRIES: u32 = 2;
const RECEPTION: u64 = 1;
const TIME_OUT: u64 = 2;

/// A ring that receives one message at a time.
pub struct RingReceive {
    ring: IoUring,
    /// The kernel refused to take what was handed over, which lies in the ring for good.
    broken: bool,
}

/// A message that came.
#[derive(Debug)]
pub struct RingReceived {
    /// Its length; with `MSG_TRUNC` more than the buffer holds when its end was cut off.
    pub length: usize,
    /// Whose it is, where the socket tells.
    pub from: Option<SocketAddrAny>,
}

impl RingReceive {
    /// Sets the ring up.
    pub fn new() -> Result<Self, SysError> {
        IoUring::new(ENTRIES)
            .map(|ring| Self { ring, broken: false })
            .map_err(|error| refusal("io_uring_setup", "set up an io_uring", &error))
    }

    /// Waits for one message, for `limit_ns` at most; none when nothing came. A signal does not end
    /// the wait. `flags` are those of `recvmsg(2)`.
    pub fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        buffer: &mut [u8],
        flags: u32,
        limit_ns: u64,
    ) -> Result<Option<RingReceived>, Errno> {
        if self.broken {
            return Err(Errno::IO);
        }
        // SAFETY: bytes without a meaning of their own: zeros are valid.
        let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: numbers and null pointers: zeros are valid.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        let limit = types::Timespec::new()
            .sec(limit_ns / NANOS_PER_SECOND)
            .nsec((limit_ns % NANOS_PER_SECOND) as u32);
        let reception = opcode::RecvMsg::new(types::Fd(socket.as_raw_fd()), &raw mut header)
            .flags(flags)
            .build()
            .flags(Flags::IO_LINK)
            .user_data(RECEPTION);
        let time_out = opcode::LinkTimeout::new(&raw const limit).build().user_data(TIME_OUT);
        // SAFETY: what the entries point to lives until this function returns, which it does not
        // before the kernel is done with every entry that it took.
        let pushed = unsafe { self.ring.submission().push_multiple(&[reception, time_out]) };
        pushed.map_err(|_| Errno::BUSY)?;
        let result = self.complete()?;
        if result < 0 {
            return match Errno::from_raw_os_error(-result) {
                Errno::CANCELED | Errno::INTR | Errno::AGAIN | Errno::TIME => Ok(None),
                errno => Err(errno),
            };
        }
        let family = size_of::<libc::sa_family_t>() as libc::socklen_t;
        let from = (header.msg_namelen > family).then(|| {
            let length = header.msg_namelen.min(size_of_val(&name) as libc::socklen_t);
            // SAFETY: the kernel has written an address of this length.
            unsafe { SocketAddrAny::read((&raw const name).cast(), length) }
        });
        Ok(Some(RingReceived { length: result as usize, from }))
    }

    /// Hands the entries over and waits until the kernel is done with those that it took; what came
    /// of the reception.
    fn complete(&mut self) -> Result<i32, Errno> {
        let (mut done, mut result) = (0, -libc::ECANCELED);
        loop {
            let refused = match self.ring.submit_and_wait(ENTRIES as usize - done) {
                Ok(_) => None,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => None,
                Err(error) => Some(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            };
            for entry in self.ring.completion() {
                done += 1;
                if entry.user_data() == RECEPTION {
                    result = entry.result();
                }
            }
            let left = self.ring.submission().len();
            match refused {
                Some(errno) if left > 0 && done + left >= ENTRIES as usize => {
                    self.broken = true;
                    return Err(errno);
                }
                _ if done >= ENTRIES as usize => return Ok(result),
                _ => {}
            }
        }
    }
}

impl std::fmt::Debug for RingReceive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingReceive").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;
    use crate::nanosleep::{Clock, clock_ns};

    #[test]
    fn a_message_comes_whole_with_its_sender_and_a_wait_without_one_ends() {
        let mut ring = match RingReceive::new() {
            Ok(ring) => ring,
            Err(refusal) => return crate::tests::skip(&refusal),
        };
        let here = UdpSocket::bind("127.0.0.1:0").unwrap();
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut buffer = [0; 8];
        for _ in 0..3 {
            let before = clock_ns(Clock::Monotonic);
            let nothing = ring.receive(here.as_fd(), &mut buffer, 0, 2_000_000).unwrap();
            assert!(nothing.is_none());
            assert!(clock_ns(Clock::Monotonic) - before >= 2_000_000);
            there.send_to(b"twelve bytes", here.local_addr().unwrap()).unwrap();
            let flags = libc::MSG_TRUNC as u32;
            let got = ring.receive(here.as_fd(), &mut buffer, flags, 60_000_000_000).unwrap();
            let got = got.expect("a message is there");
            assert_eq!((got.length, &buffer), (12, b"twelve b"));
            let from: std::net::SocketAddr = got.from.unwrap().try_into().unwrap();
            assert_eq!(from, there.local_addr().unwrap());
        }
    }

    #[test]
    fn what_the_socket_refuses_is_told() {
        let Ok(mut ring) = RingReceive::new() else { return };
        let file = std::fs::File::open("/dev/null").unwrap();
        let refused = ring.receive(file.as_fd(), &mut [0; 8], 0, 1_000_000).unwrap_err();
        assert_eq!(refused, Errno::NOTSOCK);
    }
}
