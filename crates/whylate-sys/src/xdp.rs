//! Programs on the receiving path of an interface, by `rtnetlink`.
//!
//! [rtnetlink(7)](https://man7.org/linux/man-pages/man7/rtnetlink.7.html) with `IFLA_XDP` of
//! [`linux/if_link.h`](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/include/uapi/linux/if_link.h).
//! Capability: none to ask, `CAP_NET_ADMIN` to attach.
//!
//! What is attached this way stays when its process dies, so [`link_xdp`](crate::bpf::link_xdp) goes
//! first; this is for kernels that have no such link, and for the reason that a driver gives in words,
//! which only `rtnetlink` passes on. A program that is attached already is never replaced.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType};

use crate::error::SysError;

/// Attach only where nothing is attached.
const UPDATE_IF_NOEXIST: u32 = 1;
/// Run a program in the network stack.
pub const GENERIC_MODE: u32 = 2;
/// Run a program in the driver.
pub const NATIVE_MODE: u32 = 4;
/// Do it only while a certain program is attached.
const REPLACE: u32 = 16;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const NLMSG_ERROR: u16 = 2;
const REQUEST_WITH_ANSWER: u16 = 1 | 4;
/// The words of an answer stand behind it.
const WITH_WORDS: u16 = 0x200;
/// An answer repeats the header of the request alone.
const CAPPED: u16 = 0x100;

/// Header of a message, and of what is said of an interface.
const HEADER: usize = 16;
const INTERFACE: usize = 16;

const IFLA_XDP: u16 = 43;
const NESTED: u16 = 0x8000;
const XDP_FD: u16 = 1;
const XDP_ATTACHED: u16 = 2;
const XDP_FLAGS: u16 = 3;
const XDP_PROGRAM: u16 = 4;
const XDP_NATIVE_PROGRAM: u16 = 5;
const XDP_GENERIC_PROGRAM: u16 = 6;
const XDP_OFFLOADED_PROGRAM: u16 = 7;
const XDP_EXPECTED_FD: u16 = 8;
const ERROR_WORDS: u16 = 1;

const SOL_NETLINK: libc::c_int = 270;
const NETLINK_EXT_ACK: libc::c_int = 11;

/// Room for all that is said of one interface.
const ANSWER_BYTES: usize = 64 * 1024;

/// Why the kernel did not attach or detach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its answer.
    pub errno: Errno,
    /// The reason in the words of driver or kernel, where one was given.
    pub words: Option<String>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.words {
            Some(words) => write!(f, "{words} ({})", self.errno),
            None => self.errno.fmt(f),
        }
    }
}

/// A way to ask about the interfaces of the namespace in which it was opened, and to change them.
#[derive(Debug)]
pub struct Interfaces {
    socket: OwnedFd,
}

impl Interfaces {
    /// Opens it in the calling thread's namespace.
    pub fn open() -> Result<Self, SysError> {
        let socket = rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None)
            .map_err(|errno| SysError::call("socket", "open a socket of rtnetlink", errno))?;
        let on: libc::c_int = 1;
        // Kernels before 4.12 give no reasons; nothing else depends on it.
        // SAFETY: the kernel reads one integer.
        let _ = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                SOL_NETLINK,
                NETLINK_EXT_ACK,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        Ok(Self { socket })
    }

    /// The number of the program that is attached to the interface of this index; none where none is.
    pub fn attached(&self, interface: u32) -> Result<Option<u32>, Refusal> {
        let answer = self.ask(&request(RTM_GETLINK, interface, &[]))?;
        Ok(program_of(&answer))
    }

    /// Attaches a program where none is, in the mode of `flags`. It stays until it is taken away.
    pub fn attach(&self, interface: u32, program: impl AsFd, mode: u32) -> Result<(), Refusal> {
        let program = program.as_fd().as_raw_fd();
        let flags = mode | UPDATE_IF_NOEXIST;
        self.change(interface, &[(XDP_FD, program as u32), (XDP_FLAGS, flags)])
    }

    /// Takes `program` away, whose number is `id`, and no other one.
    pub fn detach(
        &self,
        interface: u32,
        program: impl AsFd,
        id: u32,
        mode: u32,
    ) -> Result<(), Refusal> {
        let none = (XDP_FD, u32::MAX);
        let expected = (XDP_EXPECTED_FD, program.as_fd().as_raw_fd() as u32);
        let done = self.change(interface, &[none, (XDP_FLAGS, mode | REPLACE), expected]);
        match done {
            // Kernels before 5.7 know no such condition.
            Err(refusal) if refusal.errno == Errno::INVAL => {
                if self.attached(interface)? == Some(id) {
                    self.change(interface, &[none, (XDP_FLAGS, mode)])
                } else {
                    Ok(())
                }
            }
            done => done,
        }
    }

    fn change(&self, interface: u32, fields: &[(u16, u32)]) -> Result<(), Refusal> {
        self.ask(&request(RTM_SETLINK, interface, fields)).map(|_| ())
    }

    /// Sends a request; what comes back is what is said of the interface, or nothing.
    fn ask(&self, request: &[u8]) -> Result<Vec<u8>, Refusal> {
        let failed = |errno| Refusal { errno, words: None };
        rustix::net::send(&self.socket, request, SendFlags::empty()).map_err(failed)?;
        let mut room = vec![0; ANSWER_BYTES];
        let mut said = Vec::new();
        // The answer to a question is two messages: what is said, and that it was said. Both are made
        // while the question is sent, so there is nothing to wait for.
        loop {
            let received = rustix::io::retry_on_intr(|| {
                rustix::net::recv(&self.socket, room.as_mut_slice(), RecvFlags::DONTWAIT)
            });
            let (length, _) = received.map_err(failed)?;
            for message in Messages(&room[..length.min(ANSWER_BYTES)]) {
                match message.kind {
                    NLMSG_ERROR => return verdict(&message).map(|()| said),
                    RTM_NEWLINK => said = message.body.get(INTERFACE..).unwrap_or(&[]).to_vec(),
                    _ => {}
                }
            }
        }
    }
}

/// A message about the interface of this index, with these fields of `IFLA_XDP`.
fn request(kind: u16, interface: u32, fields: &[(u16, u32)]) -> Vec<u8> {
    let nested = 4 + 8 * fields.len();
    let length = HEADER + INTERFACE + if fields.is_empty() { 0 } else { nested };
    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    // One request at a time, each answered before the next one: no number, and no address.
    message.extend([0; 8]);
    // Family and kind of device are of no matter; then the index, and no flags to change.
    message.extend([0; 4]);
    message.extend(interface.to_ne_bytes());
    message.extend([0; 8]);
    if !fields.is_empty() {
        message.extend((nested as u16).to_ne_bytes());
        message.extend((IFLA_XDP | NESTED).to_ne_bytes());
        for (field, value) in fields {
            message.extend(8_u16.to_ne_bytes());
            message.extend(field.to_ne_bytes());
            message.extend(value.to_ne_bytes());
        }
    }
    message
}

struct Message<'a> {
    kind: u16,
    flags: u16,
    body: &'a [u8],
}

/// The messages of one datagram.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let length = u32_at(self.0, 0)? as usize;
        let (kind, flags) = (u16_at(self.0, 4)?, u16_at(self.0, 6)?);
        let body = self.0.get(HEADER..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Message { kind, flags, body })
    }
}

/// The fields of a message or of a field that holds others.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let length = usize::from(u16_at(self.0, 0)?);
        let kind = u16_at(self.0, 2)? & !NESTED;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    }
}

/// The program that is attached, from what is said of an interface.
fn program_of(said: &[u8]) -> Option<u32> {
    let (_, xdp) = Fields(said).find(|(kind, _)| *kind == IFLA_XDP)?;
    let attached = Fields(xdp).any(|(kind, value)| kind == XDP_ATTACHED && value != [0]);
    let id = |wanted: u16| {
        let mut of_kind = Fields(xdp).filter(|(kind, _)| *kind == wanted);
        of_kind.find_map(|(_, value)| u32_at(value, 0)).filter(|&id| id != 0)
    };
    let one = [XDP_PROGRAM, XDP_NATIVE_PROGRAM, XDP_GENERIC_PROGRAM, XDP_OFFLOADED_PROGRAM];
    // One that has no number is one all the same.
    one.into_iter().find_map(id).or(attached.then_some(0))
}

/// What the kernel says of a request.
fn verdict(message: &Message<'_>) -> Result<(), Refusal> {
    let number = u32_at(message.body, 0).map(|number| number as i32);
    let errno = match number {
        Some(0) => return Ok(()),
        // What is no error's number is an answer cut short.
        Some(number @ -4095..0) => Errno::from_raw_os_error(-number),
        _ => Errno::IO,
    };
    let repeated = if message.flags & CAPPED != 0 {
        HEADER
    } else {
        u32_at(message.body, 4).map_or(HEADER, |length| length as usize)
    };
    let at = repeated.saturating_add(4).checked_next_multiple_of(4).unwrap_or(usize::MAX);
    let behind = message.body.get(at..).filter(|_| message.flags & WITH_WORDS != 0);
    let words = Fields(behind.unwrap_or(&[])).find(|(kind, _)| *kind == ERROR_WORDS);
    let words = words
        .map(|(_, text)| String::from_utf8_lossy(text).trim_end_matches('\0').trim().to_owned());
    Err(Refusal { errno, words: words.filter(|words| !words.is_empty()) })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::from(((4 + value.len()) as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_request_has_the_documented_bytes() {
        assert_eq!(request(RTM_GETLINK, 7, &[]).len(), 32);
        let message = request(RTM_SETLINK, 7, &[(XDP_FD, u32::MAX), (XDP_FLAGS, 4)]);
        assert_eq!(u32_at(&message, 0), Some(message.len() as u32));
        assert_eq!((u16_at(&message, 4), u16_at(&message, 6)), (Some(19), Some(5)));
        assert_eq!(u32_at(&message, 20), Some(7), "the index");
        let fields: Vec<_> = Fields(&message[32..]).collect();
        assert_eq!(fields.len(), 1);
        assert_eq!(fields[0].0, IFLA_XDP);
        let inner: Vec<_> = Fields(fields[0].1).collect();
        assert_eq!(inner, [(XDP_FD, &[0xff; 4][..]), (XDP_FLAGS, &4_u32.to_ne_bytes()[..])]);
    }

    #[test]
    fn the_attached_program_is_found_among_what_is_said() {
        let mut xdp = field(XDP_ATTACHED, &[1]);
        xdp.extend(field(XDP_PROGRAM, &77_u32.to_ne_bytes()));
        let mut said = field(3, b"near\0");
        said.extend(field(IFLA_XDP | NESTED, &xdp));
        assert_eq!(program_of(&said), Some(77));
        let nothing = field(IFLA_XDP, &field(XDP_ATTACHED, &[0]));
        assert_eq!(program_of(&nothing), None);
        let several = field(IFLA_XDP, &field(XDP_ATTACHED, &[4]));
        assert_eq!(program_of(&several), Some(0), "attached, and not named");
    }

    #[test]
    fn a_refusal_brings_the_words_of_the_driver() {
        for capped in [false, true] {
            let asked = request(RTM_SETLINK, 7, &[(XDP_FD, 3)]);
            let mut body = Vec::from((-libc::ERANGE).to_ne_bytes());
            body.extend(if capped { &asked[..HEADER] } else { &asked[..] });
            body.extend(field(ERROR_WORDS, b"Peer MTU is too large to set XDP\0"));
            let flags = WITH_WORDS | if capped { CAPPED } else { 0 };
            let refusal = verdict(&Message { kind: NLMSG_ERROR, flags, body: &body }).unwrap_err();
            assert_eq!(refusal.errno, Errno::RANGE);
            assert!(refusal.to_string().starts_with("Peer MTU is too large"), "{refusal}");
        }
    }

    #[test]
    fn whatever_is_cut_or_claims_too_much_is_no_panic() {
        let xdp = field(XDP_PROGRAM, &77_u32.to_ne_bytes());
        let said = field(IFLA_XDP, &xdp);
        for at in 0..said.len() {
            for value in [0, 1, 3, 4, 7, 0x7f, 0xff] {
                let mut broken = said.clone();
                broken[at] = value;
                let _ = program_of(&broken);
                let _ = program_of(&broken[..at]);
                let _ = Messages(&broken).count();
                let message = Message { kind: NLMSG_ERROR, flags: WITH_WORDS, body: &broken };
                let _ = verdict(&message);
            }
        }
    }

    #[test]
    fn loopback_has_no_program_and_an_interface_that_is_not_there_is_an_answer() {
        let interfaces = match Interfaces::open() {
            Ok(interfaces) => interfaces,
            Err(refusal) => return crate::tests::skip(&refusal),
        };
        let lo = crate::interface::named("lo").unwrap().unwrap();
        match interfaces.attached(lo.index) {
            Ok(program) => assert_eq!(program, None),
            Err(refusal) => return crate::tests::skip(&refusal),
        }
        let refusal = interfaces.attached(i32::MAX as u32).unwrap_err();
        assert_eq!(refusal.errno, Errno::NODEV, "{refusal}");
    }
}
