//! The number and the cookie of our own messages, read out of frames on their way.
//!
//! Frames are looked at as far as that needs: Ethernet with up to two tags, IPv4 or IPv6, UDP. Checksums
//! are not: a frame passes whatever they are, and summing a message up would take longer than passing it
//! on. What is not ours, or cannot be read, has no number, and nothing else happens to it.

use whylate_port::frame::{ETHERNET, IPV4, IPV6, TAG, TagKind, UDP, kind, protocol};

/// A message of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Its number, as its client counts; none of one that is not measured.
    pub number: Option<u64>,
    /// Whose it is; none where its protocol has no cookies.
    pub cookie: Option<u64>,
}

/// What a protocol lends to tell its messages ([`numbers`](crate::protocol::tap::numbers)): from the first
/// bytes of one. None where it is no message of its.
pub type Tells = Box<dyn Fn(&[u8]) -> Option<Mark> + Send>;

/// Fragments that are not the first, or have others behind them.
const FRAGMENT: u16 = 0x3fff;
/// Where the kind stands that says what a frame carries.
const KIND: usize = 12;

/// What a frame's datagram carries; none where it carries none. A tag that the kernel took out is no matter.
#[inline]
pub(super) fn message(frame: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| {
        let two = frame.get(at..at + 2)?;
        Some(u16::from_be_bytes([two[0], two[1]]))
    };
    let mut at = KIND;
    let mut carried = number(at)?;
    for _ in 0..2 {
        if TagKind::of(carried).is_none() {
            break;
        }
        at += TAG;
        carried = number(at)?;
    }
    let packet = at + (ETHERNET - KIND);
    let datagram = match carried {
        kind::IPV4 => {
            let first = *frame.get(packet)?;
            let whole = first >> 4 == 4 && number(packet + 6)? & FRAGMENT == 0;
            let header = usize::from(first & 0xf) * 4;
            let udp = *frame.get(packet + 9)? == protocol::UDP;
            (whole && udp && header >= IPV4).then_some(packet + header)?
        }
        kind::IPV6 => {
            let six = *frame.get(packet)? >> 4 == 6;
            (six && *frame.get(packet + 6)? == protocol::UDP).then_some(packet + IPV6)?
        }
        _ => return None,
    };
    // A short frame is padded behind its message.
    let length = usize::from(number(datagram + 4)?);
    frame.get(datagram + UDP..(datagram + length).min(frame.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame of UDP by hand, with so many tags.
    fn udp(tags: usize, six: bool, message: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in 0..tags {
            frame.extend(if tag + 1 < tags { [0x88, 0xa8, 0, 9] } else { [0x81, 0, 0, 7] });
        }
        let length = (message.len() + UDP) as u16;
        if six {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([17, 64]);
            frame.extend([1; 32]);
        } else {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((length + 20).to_be_bytes());
            frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
            frame.extend([127, 0, 0, 1, 127, 0, 0, 2]);
        }
        frame.extend([0x10, 0, 0x10, 1]);
        frame.extend(length.to_be_bytes());
        frame.extend([0xff, 0xff]);
        frame.extend(message);
        frame.resize(frame.len().max(60), 0);
        frame
    }

    #[test]
    fn a_message_is_found_under_any_tags_and_addresses_and_without_its_padding() {
        for tags in 0..3 {
            for six in [false, true] {
                let frame = udp(tags, six, b"hello");
                assert_eq!(message(&frame), Some(&b"hello"[..]), "{tags} {six}");
                for length in 0..frame.len() {
                    // One that is cut short is found as far as it goes.
                    let found = message(&frame[..length]).unwrap_or_default();
                    assert!(b"hello".starts_with(found), "{length}");
                }
            }
        }
        assert_eq!(message(&udp(3, false, b"hello")), None);
        let mut other = udp(0, false, b"hello");
        other[23] = 6;
        assert_eq!(message(&other), None);
        let mut fragment = udp(0, false, b"hello");
        fragment[20] = 0x20;
        assert_eq!(message(&fragment), None);
        assert_eq!(message(&[0xff; 60]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_whatever_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = message(&bytes);
        }

        #[test]
        fn no_change_of_a_frame_makes_it_panic(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            tags in 0_usize..3,
            six: bool,
        ) {
            let mut frame = udp(tags, six, &[7; 40]);
            for (place, value) in &changes {
                let at = place.index(frame.len());
                frame[at] = *value;
            }
            let _ = message(&frame);
        }
    }
}
