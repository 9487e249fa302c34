//! Kernel stamps of what a socket sends and receives.
//!
//! [`linux/net_tstamp.h`](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/net_tstamp.h),
//! [`linux/errqueue.h`](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/errqueue.h),
//! [timestamping](https://docs.kernel.org/networking/timestamping.html). Capability: none.
//!
//! `SO_TIMESTAMPING` with times of 64 bits (Linux 5.1), before that its older number, which is the same
//! where a `long` has 64 bits. The stamp of a reception comes beside the message; those of a sending
//! come later, by the socket's error queue. That the kernel takes a flag does not mean that stamps come.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::SocketAddrAny;

use crate::error::last_errno;

const SO_TIMESTAMPING_OLD: libc::c_int = 37;
const SO_TIMESTAMPING_NEW: libc::c_int = 65;
/// Linux 6.13.
const SCM_TS_OPT_ID: libc::c_int = 81;
const SO_RXQ_OVFL: libc::c_int = 40;
const IP_RECVERR: libc::c_int = 11;
const IPV6_RECVERR: libc::c_int = 25;
const SO_EE_ORIGIN_TIMESTAMPING: u8 = 4;
/// Bytes of `struct sock_extended_err`.
const EXTENDED_BYTES: usize = 16;
/// Bytes of three times of two words of 64 bits each.
const TIMES_BYTES: usize = 48;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Room for what comes beside a message: times (64 with the header), an error with an address of IPv6
/// (60), a count (20).
const CONTROL_BYTES: usize = 256;
/// Length, level and kind.
const HEADER: usize = size_of::<usize>() + 2 * size_of::<libc::c_int>();
/// Reports that one system call takes.
pub const AT_ONCE: usize = 16;

/// What is asked of `SO_TIMESTAMPING`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u32);

impl Flags {
    /// The card stamps what is sent.
    pub const TX_HARDWARE: Self = Self(1);
    /// The driver is given what is sent.
    pub const TX_SOFTWARE: Self = Self(1 << 1);
    /// The card stamps what is received.
    pub const RX_HARDWARE: Self = Self(1 << 2);
    /// The stack takes in what is received.
    pub const RX_SOFTWARE: Self = Self(1 << 3);
    /// Stamps by the system's clock are told.
    pub const SOFTWARE: Self = Self(1 << 4);
    /// Stamps by the card's clock are told.
    pub const RAW_HARDWARE: Self = Self(1 << 6);
    /// Each stamp of a sending carries an id.
    pub const OPT_ID: Self = Self(1 << 7);
    /// What is sent is given to the queueing discipline.
    pub const TX_SCHED: Self = Self(1 << 8);
    /// The other end has said that it has all of it: TCP alone.
    pub const TX_ACK: Self = Self(1 << 9);
    /// Stamps come without the packet that they are of.
    pub const OPT_TSONLY: Self = Self(1 << 11);
    /// A stamp of the driver comes also where the card makes one.
    pub const OPT_TX_SWHW: Self = Self(1 << 14);
    /// Ids of TCP count from what was written, not from what was acknowledged, when the flag is set
    /// (Linux 6.2).
    pub const OPT_ID_TCP: Self = Self(1 << 16);
    /// The card has told that what was sent is out (Linux 6.15).
    pub const TX_COMPLETION: Self = Self(1 << 18);
    /// Those that can be asked for message by message.
    pub const RECORDS: Self = Self(
        Self::TX_HARDWARE.0
            | Self::TX_SOFTWARE.0
            | Self::TX_SCHED.0
            | Self::TX_ACK.0
            | Self::TX_COMPLETION.0,
    );

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without the others.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Are all of the others among them?
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Asks for stamps. A kernel that does not know one of the flags takes none of them; but where nothing is on
/// its way, one before Linux 6.2 is asked without [`Flags::OPT_ID_TCP`]: ids begin at the same byte then.
pub fn set(socket: impl AsFd, flags: Flags) -> Result<(), Errno> {
    let socket = socket.as_fd();
    match set_all(socket, flags) {
        Err(Errno::INVAL) if flags.has(Flags::OPT_ID_TCP) && unacknowledged(socket) == Some(0) => {
            set_all(socket, flags.without(Flags::OPT_ID_TCP))
        }
        answer => answer,
    }
}

/// Bytes that were written and that the other end has not said it has; none of what is no connection.
fn unacknowledged(socket: BorrowedFd<'_>) -> Option<libc::c_int> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one integer at the pointer.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    (answer == 0).then_some(bytes)
}

fn set_all(socket: BorrowedFd<'_>, flags: Flags) -> Result<(), Errno> {
    match set_option(socket, SO_TIMESTAMPING_NEW, flags.0 as libc::c_int) {
        Err(Errno::NOPROTOOPT) => set_option(socket, SO_TIMESTAMPING_OLD, flags.0 as libc::c_int),
        answer => answer,
    }
}

/// What the kernel says it has been asked for.
pub fn get(socket: impl AsFd) -> Result<Flags, Errno> {
    let socket = socket.as_fd();
    let answer = match get_option(socket, SO_TIMESTAMPING_NEW) {
        Err(Errno::NOPROTOOPT) => get_option(socket, SO_TIMESTAMPING_OLD),
        answer => answer,
    };
    answer.map(|flags| Flags(flags as u32))
}

/// Has the number of messages that found no room told beside each message (`SO_RXQ_OVFL`).
pub fn count_dropped(socket: impl AsFd) -> Result<(), Errno> {
    set_option(socket.as_fd(), SO_RXQ_OVFL, 1)
}

/// What is asked of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// These of [`Flags::RECORDS`], rather than those of the socket.
    pub records: Option<Flags>,
    /// Its stamps carry this id, rather than one that the kernel counts: not for TCP.
    pub id: Option<u32>,
}

impl Asked {
    /// Writes it as the kernel reads it; gives the number of bytes.
    fn write(self, control: &mut [u8]) -> usize {
        let words = [
            self.records.map(|records| (SO_TIMESTAMPING_NEW, records.0)),
            self.id.map(|id| (SCM_TS_OPT_ID, id)),
        ];
        let mut used = 0;
        for (kind, word) in words.into_iter().flatten() {
            let Some(place) = control.get_mut(used..used + aligned(HEADER + size_of::<u32>()))
            else {
                return used;
            };
            let (length, rest) = place.split_at_mut(size_of::<usize>());
            length.copy_from_slice(&(HEADER + size_of::<u32>()).to_ne_bytes());
            rest[..4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
            rest[4..8].copy_from_slice(&kind.to_ne_bytes());
            rest[8..12].copy_from_slice(&word.to_ne_bytes());
            used += place.len();
        }
        used
    }
}

/// Sends one message, or as much of it as a stream takes. `flags` are those of `sendmsg(2)`.
pub fn send(
    socket: impl AsFd,
    message: &[u8],
    to: Option<&SocketAddrAny>,
    flags: u32,
    asked: Asked,
) -> Result<usize, Errno> {
    let mut control = Control::EMPTY;
    let used = asked.write(&mut control.0);
    let mut piece =
        libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    // SAFETY: numbers and null pointers: zeros are valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    if let Some(to) = to {
        header.msg_name = to.as_ptr().cast_mut().cast();
        header.msg_namelen = to.addr_len();
    }
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    if used > 0 {
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = used as _;
    }
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads what the header points to, all of which outlives the call.
    let sent = unsafe { libc::sendmsg(fd, &raw const header, flags as libc::c_int) };
    if sent < 0 { Err(last_errno()) } else { Ok(sent as usize) }
}

/// When something happened to a packet, in nanoseconds since 1970; none where nobody said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// By the system's clock.
    pub software: Option<u64>,
    /// By the card's clock.
    pub hardware: Option<u64>,
}

/// A message that came.
#[derive(Debug)]
pub struct Came {
    /// Its length; with `MSG_TRUNC` more than the buffer holds when its end was cut off.
    pub length: usize,
    /// Whose it is, where the socket tells.
    pub from: Option<SocketAddrAny>,
    /// When it was received; of a stream: the last of its bytes.
    pub times: Times,
    /// Messages that found no room so far, where that was asked for and there were any.
    pub dropped: Option<u32>,
}

/// Receives one message. `flags` are those of `recvmsg(2)`.
pub fn receive(socket: impl AsFd, buffer: &mut [u8], flags: u32) -> Result<Came, Errno> {
    let mut control = Control::EMPTY;
    // SAFETY: bytes without a meaning of their own: zeros are valid.
    let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: numbers and null pointers: zeros are valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = (&raw mut name).cast();
    header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes to what the header points to, within the lengths that it names.
    let length = unsafe { libc::recvmsg(fd, &raw mut header, flags as libc::c_int) };
    if length < 0 {
        return Err(last_errno());
    }
    let family = size_of::<libc::sa_family_t>() as libc::socklen_t;
    let from = (header.msg_namelen > family).then(|| {
        let length = header.msg_namelen.min(size_of_val(&name) as libc::socklen_t);
        // SAFETY: the kernel has written an address of this length.
        unsafe { SocketAddrAny::read((&raw const name).cast(), length) }
    });
    let used = (header.msg_controllen as usize).min(CONTROL_BYTES);
    let beside = Beside::read(&control.0[..used]);
    Ok(Came { length: length as usize, from, times: beside.times, dropped: beside.dropped })
}

/// What a stamp of a sending says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// It was given to the driver, or the card sent it.
    Sent,
    /// It was given to the queueing discipline.
    Scheduled,
    /// The other end has it.
    Acknowledged,
    /// The card told that it is out.
    Completed,
    /// A kind that is not known here.
    Other(u32),
}

/// What lay in an error queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// A stamp of a sending.
    Stamp {
        /// What happened.
        sending: Sending,
        /// Which message: the kernel's count or the caller's id; of TCP the number of its last byte.
        id: u32,
        /// When.
        times: Times,
    },
    /// An error of the network, which the socket has told nobody yet.
    Error(Errno),
    /// Something that cannot be read.
    Unreadable,
}

/// Reads error queues.
#[derive(Debug)]
pub struct ErrorQueue {
    controls: Box<[Control; AT_ONCE]>,
}

impl Default for ErrorQueue {
    fn default() -> Self {
        Self { controls: Box::new([Control::EMPTY; AT_ONCE]) }
    }
}

impl ErrorQueue {
    /// Takes what lies there, [`AT_ONCE`] reports at most, and never waits. Gives how many there were.
    pub fn read(
        &mut self,
        socket: impl AsFd,
        mut each: impl FnMut(Report),
    ) -> Result<usize, Errno> {
        // SAFETY: numbers and null pointers: zeros are valid.
        let mut headers: [libc::mmsghdr; AT_ONCE] = unsafe { std::mem::zeroed() };
        for (header, control) in headers.iter_mut().zip(self.controls.iter_mut()) {
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL_BYTES as _;
        }
        let fd = socket.as_fd().as_raw_fd();
        let flags = (libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) as _;
        let (most, forever) = (AT_ONCE as libc::c_uint, std::ptr::null_mut());
        // SAFETY: the kernel writes to so many headers, and to the control bytes that each points to,
        // which outlive the call.
        let came = unsafe { libc::recvmmsg(fd, headers.as_mut_ptr(), most, flags, forever) };
        if came < 0 {
            return match last_errno() {
                Errno::AGAIN | Errno::INTR => Ok(0),
                errno => Err(errno),
            };
        }
        let came = came as usize;
        for (header, control) in headers.iter().zip(self.controls.iter()).take(came) {
            let used = header.msg_hdr.msg_controllen.min(CONTROL_BYTES);
            each(Beside::read(&control.0[..used]).report());
        }
        Ok(came)
    }
}

/// Aligned as the kernel wants it.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

impl Control {
    const EMPTY: Self = Self([0; CONTROL_BYTES]);
}

/// What came beside a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Beside {
    times: Times,
    dropped: Option<u32>,
    extended: Option<Extended>,
}

/// `struct sock_extended_err`, as far as it is of use here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extended {
    errno: u32,
    origin: u8,
    info: u32,
    data: u32,
}

impl Beside {
    /// Never reads beyond the bytes, whatever stands in them.
    fn read(control: &[u8]) -> Self {
        let mut beside = Self::default();
        let mut rest = control;
        while let Some(length) = rest.first_chunk().map(|bytes| usize::from_ne_bytes(*bytes)) {
            let (Some(level), Some(kind), Some(data)) = (
                word(rest, size_of::<usize>()),
                word(rest, size_of::<usize>() + 4),
                rest.get(HEADER..length),
            ) else {
                break;
            };
            beside.take(level as libc::c_int, kind as libc::c_int, data);
            rest = rest.get(aligned(length)..).unwrap_or_default();
        }
        beside
    }

    fn take(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, SO_TIMESTAMPING_NEW | SO_TIMESTAMPING_OLD)
                if data.len() >= TIMES_BYTES =>
            {
                self.times = Times { software: time(data, 0), hardware: time(data, 32) };
            }
            (libc::SOL_SOCKET, SO_RXQ_OVFL) => self.dropped = word(data, 0),
            (libc::SOL_IP, IP_RECVERR) | (libc::SOL_IPV6, IPV6_RECVERR) => {
                if data.len() < EXTENDED_BYTES {
                    return;
                }
                if let (Some(errno), Some(info), Some(id)) =
                    (word(data, 0), word(data, 8), word(data, 12))
                {
                    self.extended = Some(Extended { errno, origin: data[4], info, data: id });
                }
            }
            _ => {}
        }
    }

    fn report(&self) -> Report {
        let Some(Extended { errno, origin, info, data }) = self.extended else {
            return Report::Unreadable;
        };
        if origin == SO_EE_ORIGIN_TIMESTAMPING {
            let sending = match info {
                0 => Sending::Sent,
                1 => Sending::Scheduled,
                2 => Sending::Acknowledged,
                3 => Sending::Completed,
                other => Sending::Other(other),
            };
            return Report::Stamp { sending, id: data, times: self.times };
        }
        match i32::try_from(errno) {
            Ok(errno @ 1..4096) => Report::Error(Errno::from_raw_os_error(errno)),
            _ => Report::Unreadable,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// Seconds and nanoseconds; 0 is none.
fn time(bytes: &[u8], at: usize) -> Option<u64> {
    let half = |at: usize| bytes.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
    let (seconds, nanos) = (half(at)?, half(at + 8)?);
    let at = seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos)?;
    (at > 0).then_some(at)
}

const fn aligned(length: usize) -> usize {
    length.saturating_add(size_of::<usize>() - 1) & !(size_of::<usize>() - 1)
}

fn set_option(socket: impl AsFd, option: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
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

fn get_option(socket: impl AsFd, option: libc::c_int) -> Result<libc::c_int, Errno> {
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
mod tests;
