//! What the sources of a fan-in send: datagrams in a bed of ours, and between real ports frames of Ethernet
//! alone, so that no address of the host has to do with it.
//!
//! The frames' EtherType is the first of those that IEEE 802 leaves to experiments (802-2014, 9.2.4): nobody's stack
//! answers it, and a switch passes it by hardware addresses as any other. Each names the measurement that it
//! is of, and a frame the port that sent it, so that what is late from the one before is counted nowhere.

use whylate_port::frame::Mac;

/// Local experimental EtherType 1.
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];
/// What a datagram of ours begins with, and a frame behind its head.
const MARK: [u8; 8] = *b"whylate\x01";
/// Bytes of the check sequence, which the card adds.
const CHECK: u32 = 4;
/// Head, mark, number of the measurement, number of the place.
const LEAST: usize = 14 + 8 + 8 + 4;

/// A datagram of a measurement; of so many bytes, and no shorter than what it says.
pub(super) fn datagram(measurement: u64, bytes: usize) -> Vec<u8> {
    let mut datagram = [MARK, measurement.to_be_bytes()].concat();
    datagram.resize(bytes.max(datagram.len()), 0x5a);
    datagram
}

/// Is it a datagram of this measurement?
pub(super) fn is_of(datagram: &[u8], measurement: u64) -> bool {
    let number = datagram.strip_prefix(&MARK).and_then(<[u8]>::first_chunk);
    number.is_some_and(|of| u64::from_be_bytes(*of) == measurement)
}

/// A frame of one of the senders; `frame_bytes` with its check sequence, and no shorter than what it says.
pub(super) fn frame(to: Mac, from: Mac, measurement: u64, place: u32, frame_bytes: u32) -> Vec<u8> {
    let mut frame = Vec::with_capacity(frame_bytes as usize);
    frame.extend(to.0);
    frame.extend(from.0);
    frame.extend(ETHER_TYPE);
    frame.extend(MARK);
    frame.extend(measurement.to_be_bytes());
    frame.extend(place.to_be_bytes());
    frame.resize((frame_bytes.saturating_sub(CHECK) as usize).max(LEAST), 0x5a);
    frame
}

/// Which of the senders of this measurement sent it; none of what is not ours, or of another one.
pub(super) fn place_of(frame: &[u8], measurement: u64) -> Option<usize> {
    let rest = frame.get(12..)?.strip_prefix(&ETHER_TYPE)?.strip_prefix(&MARK)?;
    let (of, rest) = rest.split_first_chunk::<8>()?;
    let (place, _) = rest.split_first_chunk::<4>()?;
    (u64::from_be_bytes(*of) == measurement).then_some(u32::from_be_bytes(*place) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_place_that_they_name_or_nobodys(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            measurement in any::<u64>(),
        ) {
            // Behind the head of ours, and without one.
            let mut ours = frame(Mac::BROADCAST, Mac::NONE, measurement, 1, 0);
            prop_assert_eq!(place_of(&ours, measurement), Some(1));
            ours.truncate(LEAST - 12);
            ours.extend(&bytes);
            for frame in [&bytes, &ours] {
                let named = frame.get(22..34).map(|of| of.split_at(8));
                let told = place_of(frame, measurement);
                let expected = named.is_some_and(|(of, _)| *of == measurement.to_be_bytes());
                prop_assert!(told.is_none() || expected, "{:?}", frame);
            }
        }
    }

    #[test]
    fn a_datagram_names_its_measurement_and_what_is_late_from_another_is_nobodys() {
        let ours = datagram(7, 82);
        assert_eq!(ours.len(), 82);
        assert!(is_of(&ours, 7) && !is_of(&ours, 8));
        assert!(is_of(&datagram(7, 0), 7), "never shorter than what it says");
        assert!(!is_of(&[0x5a; 82], 7), "not ours");
        for cut in 0..16 {
            assert!(!is_of(&ours[..cut], 7), "{cut} bytes of it");
        }
    }

    #[test]
    fn a_frame_between_real_ports_names_its_measurement_and_its_sender_and_others_are_nobodys() {
        let (to, from) = (Mac([2, 0, 0, 0, 0, 9]), Mac([2, 0, 0, 0, 0, 1]));
        let ours = frame(to, from, 7, 3, 512);
        assert_eq!(ours.len(), 508, "the card adds the check sequence");
        assert_eq!((&ours[..6], &ours[6..12]), (&to.0[..], &from.0[..]));
        assert_eq!(place_of(&ours, 7), Some(3));
        assert_eq!(place_of(&ours, 8), None, "late from another measurement");
        assert_eq!(
            place_of(&frame(to, from, 7, 3, 0), 7),
            Some(3),
            "never shorter than what it says"
        );
        let mut other = ours.clone();
        other[13] = 0xb6;
        assert_eq!(place_of(&other, 7), None, "another EtherType");
        for cut in 0..LEAST {
            assert_eq!(place_of(&ours[..cut], 7), None, "{cut} bytes of it");
        }
    }
}
