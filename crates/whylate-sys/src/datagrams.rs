//! Several datagrams by one call, and what a socket dropped.
//!
//! [`recvmmsg(2)`](https://man7.org/linux/man-pages/man2/recvmmsg.2.html) and
//! [`sendmmsg(2)`](https://man7.org/linux/man-pages/man2/sendmmsg.2.html); `SO_MEMINFO` (Linux 4.12,
//! `include/uapi/linux/sock_diag.h`). Capability: none.
//!
//! Nothing here waits, and nothing is allocated but by [`Inbox::new`]. A datagram is received whole: there is
//! room for the longest one that UDP has.

use std::fmt;
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::error::last_errno;

/// Datagrams of one call at most.
pub const AT_ONCE: usize = 64;
/// Bytes of a buffer: more than the length in a header of UDP can say.
pub const ROOM: usize = 1 << 16;
/// From one buffer to the next: were they a power of two apart, the beginnings of all of them would share
/// the few places that a cache has for such addresses.
const STRIDE: usize = ROOM + 576;
/// Letters that are sent by way of small tables: to clear large ones takes longer than to fill in one.
const FEW: usize = 8;
/// What the kernel tells of a socket's memory; not in the C library's headers.
const SO_MEMINFO: libc::c_int = 55;
/// Words of the answer, and the place of the datagrams dropped.
const MEMINFO_WORDS: usize = 9;
const DROPPED: usize = 8;

/// An address of the internet as the kernel reads and writes it.
#[derive(Clone, Copy)]
pub struct Name {
    raw: RawName,
    length: libc::socklen_t,
}

/// `struct sockaddr_in6`, in which one of IPv4 (`struct sockaddr_in`) lies as well: family and port in the
/// same places, its address in that of the flow, and nothing behind it.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawName {
    family: u16,
    port: u16,
    flow: u32,
    address: [u8; 16],
    scope: u32,
}

const NOBODY: RawName = RawName { family: 0, port: 0, flow: 0, address: [0; 16], scope: 0 };
const LENGTH_V4: libc::socklen_t = size_of::<libc::sockaddr_in>() as libc::socklen_t;
const LENGTH_V6: libc::socklen_t = size_of::<RawName>() as libc::socklen_t;

const _: () = assert!(
    size_of::<RawName>() == size_of::<libc::sockaddr_in6>()
        && align_of::<RawName>() == align_of::<libc::sockaddr_in6>()
        && offset_of!(RawName, port) == offset_of!(libc::sockaddr_in, sin_port)
        && offset_of!(RawName, flow) == offset_of!(libc::sockaddr_in, sin_addr)
        && offset_of!(RawName, address) == offset_of!(libc::sockaddr_in6, sin6_addr)
        && offset_of!(RawName, scope) == offset_of!(libc::sockaddr_in6, sin6_scope_id)
);

impl Name {
    /// Of this address.
    #[must_use]
    pub fn of(address: SocketAddr) -> Self {
        let mut raw = NOBODY;
        raw.port = address.port().to_be();
        match address {
            SocketAddr::V4(v4) => {
                raw.family = libc::AF_INET as u16;
                raw.flow = u32::from(*v4.ip()).to_be();
                Self { raw, length: LENGTH_V4 }
            }
            SocketAddr::V6(v6) => {
                raw.family = libc::AF_INET6 as u16;
                raw.address = v6.ip().octets();
                raw.scope = v6.scope_id();
                Self { raw, length: LENGTH_V6 }
            }
        }
    }

    /// The address; none where it is of no internet protocol.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        address(&self.raw)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Name").field(&self.address()).finish()
    }
}

/// What the kernel wrote there.
fn address(raw: &RawName) -> Option<SocketAddr> {
    let port = u16::from_be(raw.port);
    match libc::c_int::from(raw.family) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(u32::from_be(raw.flow));
            Some(SocketAddr::new(IpAddr::V4(ip), port))
        }
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(raw.address);
            Some(SocketAddrV6::new(ip, port, 0, raw.scope).into())
        }
        _ => None,
    }
}

/// Room for the datagrams of one call, with those that the last one brought.
pub struct Inbox {
    bytes: Vec<u8>,
    names: Vec<RawName>,
    /// Where the kernel writes a datagram: read by the kernel alone.
    _pieces: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    came: usize,
}

// SAFETY: its pointers lead into its own vectors, whose memory stays where it is when they move, and nobody
// else has any of them.
unsafe impl Send for Inbox {}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("came", &self.came).finish_non_exhaustive()
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Inbox {
    /// An empty one, whose memory has been touched.
    #[must_use]
    pub fn new() -> Self {
        let mut bytes = vec![0x5a_u8; AT_ONCE * STRIDE];
        let mut names = vec![NOBODY; AT_ONCE];
        let buffer = |at: usize| bytes.as_mut_ptr().wrapping_add(at * STRIDE);
        let piece = |iov_base: *mut u8| libc::iovec { iov_base: iov_base.cast(), iov_len: ROOM };
        let mut pieces: Vec<libc::iovec> = (0..AT_ONCE).map(buffer).map(piece).collect();
        let headers = (0..AT_ONCE)
            .map(|at| {
                // SAFETY: numbers and null pointers: zeros are valid.
                let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
                header.msg_hdr.msg_name = names.as_mut_ptr().wrapping_add(at).cast();
                header.msg_hdr.msg_namelen = LENGTH_V6;
                header.msg_hdr.msg_iov = pieces.as_mut_ptr().wrapping_add(at);
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Self { bytes, names, _pieces: pieces, headers, came: 0 }
    }

    /// Takes what has come, [`AT_ONCE`] datagrams at most, and forgets those of the call before. Gives how
    /// many there are; an error is one that the network told the socket of, and what has come is still there.
    #[inline]
    pub fn receive(&mut self, socket: impl AsFd) -> Result<usize, Errno> {
        for header in &mut self.headers[..self.came] {
            header.msg_hdr.msg_namelen = LENGTH_V6;
        }
        self.came = 0;
        let fd = socket.as_fd().as_raw_fd();
        let (most, flags) = (AT_ONCE as libc::c_uint, libc::MSG_DONTWAIT as _);
        let (headers, forever) = (self.headers.as_mut_ptr(), std::ptr::null_mut());
        // SAFETY: there are so many headers, each with a buffer and a name of the lengths that it tells,
        // which this inbox has and nobody else reads or writes meanwhile.
        let came = unsafe { libc::recvmmsg(fd, headers, most, flags, forever) };
        if came < 0 {
            return match last_errno() {
                Errno::AGAIN | Errno::INTR => Ok(0),
                errno => Err(errno),
            };
        }
        self.came = came as usize;
        Ok(self.came)
    }

    /// A datagram of the last call, which has to have brought that many.
    #[must_use]
    #[inline]
    pub fn bytes(&self, at: usize) -> &[u8] {
        let length = self.headers[..self.came][at].msg_len as usize;
        &self.bytes[at * STRIDE..][..length.min(ROOM)]
    }

    /// Who sent it; none where that is no address of the internet.
    #[must_use]
    #[inline]
    pub fn sender(&self, at: usize) -> Option<SocketAddr> {
        address(&self.names[..self.came][at])
    }
}

/// A datagram to send.
#[derive(Debug, Clone, Copy)]
pub struct Letter<'a> {
    /// What is in it.
    pub bytes: &'a [u8],
    /// To whom; none is whom the socket is connected to.
    pub to: Option<&'a Name>,
}

/// Sends the first of these, as many as the kernel takes without waiting and [`AT_ONCE`] at most. Gives how
/// many that were; an error is of the first one, and `EAGAIN` where there is no room for it.
#[inline]
pub fn send_many(socket: impl AsFd, letters: &[Letter<'_>]) -> Result<usize, Errno> {
    if letters.len() <= FEW {
        send::<FEW>(socket.as_fd(), letters)
    } else {
        send::<AT_ONCE>(socket.as_fd(), letters)
    }
}

fn send<const MOST: usize>(socket: BorrowedFd<'_>, letters: &[Letter<'_>]) -> Result<usize, Errno> {
    // SAFETY: numbers and null pointers: zeros are valid.
    let mut headers: [libc::mmsghdr; MOST] = unsafe { std::mem::zeroed() };
    let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
    for ((header, piece), letter) in headers.iter_mut().zip(&mut pieces).zip(letters) {
        // The kernel only reads what these lead to.
        piece.iov_base = letter.bytes.as_ptr().cast_mut().cast();
        piece.iov_len = letter.bytes.len();
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
        if let Some(name) = letter.to {
            header.msg_hdr.msg_name = (&raw const name.raw).cast_mut().cast();
            header.msg_hdr.msg_namelen = name.length;
        }
    }
    let count = letters.len().min(MOST) as libc::c_uint;
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _;
    // SAFETY: so many headers are filled in, and what they lead to outlives the call; the kernel writes to
    // their lengths alone.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, flags) };
    if sent < 0 { Err(last_errno()) } else { Ok(sent as usize) }
}

/// Datagrams that found no room at this socket, or were damaged, since it was made.
pub fn dropped(socket: impl AsFd) -> Result<u32, Errno> {
    let mut words = [0_u32; MEMINFO_WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes so many bytes at most, and how many they are.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if answer < 0 {
        return Err(last_errno());
    }
    let told = length as usize / size_of::<u32>();
    words[..told.min(MEMINFO_WORDS)].get(DROPPED).copied().ok_or(Errno::NOPROTOOPT)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use rustix::net::sockopt;

    use super::*;
    use crate::nanosleep::{Clock, clock_ns};

    /// What comes at all comes within it, however busy the machine is.
    const LONG_NS: u64 = 60_000_000_000;

    fn bound(at: &str) -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind(at).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in ["127.0.0.1:4100", "198.51.100.7:1", "[::1]:65535", "[fe80::1%7]:9"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Name::of(address).address(), Some(address));
        }
        assert_eq!(address(&NOBODY), None);
    }

    #[test]
    fn datagrams_of_every_length_come_whole_and_in_order_with_who_sent_them() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = UdpSocket::bind(at) else {
                crate::tests::skip(&"no IPv6 here");
                continue;
            };
            let to = socket.local_addr().unwrap();
            let (sender, from) = bound(at);
            let name = Name::of(to);
            let lengths = [0, 1, 13, 1_472, 9_000, 60_000];
            let all: Vec<Vec<u8>> =
                lengths.iter().map(|length| vec![*length as u8; *length]).collect();
            let letters: Vec<Letter<'_>> =
                all.iter().map(|bytes| Letter { bytes, to: Some(&name) }).collect();
            let mut inbox = Inbox::new();
            // Twice: what the first call left behind is nothing to the second.
            for _ in 0..2 {
                assert_eq!(inbox.receive(&socket), Ok(0));
                assert_eq!(send_many(&sender, &letters), Ok(all.len()));
                let mut came = Vec::new();
                while came.len() < all.len() {
                    for slot in 0..inbox.receive(&socket).unwrap() {
                        assert_eq!(inbox.sender(slot), Some(from));
                        came.push(inbox.bytes(slot).to_vec());
                    }
                }
                assert!(came == all, "{at}");
            }
        }
    }

    #[test]
    fn a_call_takes_sixty_four_at_most_and_leaves_the_others() {
        let (socket, to) = bound("127.0.0.1:0");
        let (sender, _) = bound("127.0.0.1:0");
        sender.connect(to).unwrap();
        let letters = [Letter { bytes: b"one", to: None }; AT_ONCE + 6];
        let mut inbox = Inbox::new();
        let mut in_two_calls = || {
            let first = send_many(&sender, &letters).unwrap();
            assert_eq!(first, AT_ONCE);
            assert_eq!(send_many(&sender, &letters[first..]), Ok(6));
            let calls = [inbox.receive(&socket).unwrap(), inbox.receive(&socket).unwrap()];
            let mut came: usize = calls.iter().sum();
            let end = clock_ns(Clock::Monotonic) + LONG_NS;
            while came < letters.len() && clock_ns(Clock::Monotonic) < end {
                came += inbox.receive(&socket).unwrap();
            }
            assert_eq!((came, inbox.receive(&socket)), (letters.len(), Ok(0)));
            calls == [AT_ONCE, 6]
        };
        // Loopback may bring some of them later, when the CPU is free for it.
        assert!((0..100).any(|_| in_two_calls()));
    }

    #[test]
    fn what_finds_no_room_is_counted_by_its_socket_and_by_no_other() {
        let (socket, to) = bound("127.0.0.1:0");
        let (sender, _) = bound("127.0.0.1:0");
        sockopt::set_socket_recv_buffer_size(&socket, 1).unwrap();
        let bytes = [7; 1_000];
        let name = Name::of(to);
        for _ in 0..200 {
            assert_eq!(send_many(&sender, &[Letter { bytes: &bytes, to: Some(&name) }]), Ok(1));
        }
        let mut inbox = Inbox::new();
        let end = clock_ns(Clock::Monotonic) + LONG_NS;
        let (mut came, mut lost) = (0, 0);
        while came + lost < 200 && clock_ns(Clock::Monotonic) < end {
            came += inbox.receive(&socket).unwrap() as u32;
            lost = match dropped(&socket) {
                Err(Errno::NOPROTOOPT) if std::env::var_os("WHYLATE_EMULATED").is_some() => {
                    return crate::tests::skip(&"the emulator does not tell what a socket dropped");
                }
                lost => lost.unwrap(),
            };
        }
        assert!(lost > 0 && came + lost == 200, "{came} and {lost}");
        assert_eq!(dropped(&sender), Ok(0));
    }

    #[test]
    fn an_answer_that_nobody_listens_is_told_once_and_what_is_sent_again_goes() {
        let (sender, _) = bound("127.0.0.1:0");
        // At an address of its own: no other test's socket gets the port that becomes free.
        let (gone, to) = bound("127.0.0.77:0");
        sender.connect(to).unwrap();
        drop(gone);
        let letter = [Letter { bytes: b"anybody", to: None }];
        assert_eq!(send_many(&sender, &letter), Ok(1));
        // Loopback answers at once, or as soon as the CPU is free for it.
        let mut inbox = Inbox::new();
        let end = clock_ns(Clock::Monotonic) + LONG_NS;
        let mut told = Ok(0);
        while told == Ok(0) && clock_ns(Clock::Monotonic) < end {
            told = inbox.receive(&sender);
        }
        assert_eq!(told, Err(Errno::CONNREFUSED));
        assert_eq!(inbox.receive(&sender), Ok(0), "once");
        let mut sent = Ok(1);
        while sent == Ok(1) && clock_ns(Clock::Monotonic) < end {
            sent = send_many(&sender, &letter);
        }
        assert_eq!(sent, Err(Errno::CONNREFUSED));
        let again = (0..1_000).find_map(|_| send_many(&sender, &letter).ok());
        assert_eq!(again, Some(1));
    }
}
