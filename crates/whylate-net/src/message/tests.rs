//! Headers of both forms, byte by byte: what is written comes back, and nothing else is a message.

use proptest::prelude::*;

use super::*;

#[test]
fn a_header_has_the_documented_bytes() {
    let mut message = [0xff; HEADER_BYTES];
    let header = Header { kind: Kind::Probe, cookie: Cookie(0x0102), sequence: 3 };
    header.write(&mut message);
    let expected = b"wlat\x02\x05\0\x18\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x03";
    assert_eq!(&message, expected);
}

#[test]
fn a_compact_header_has_the_documented_bytes_and_the_lower_parts_of_its_numbers() {
    let mut message = [0xff; COMPACT_BYTES];
    let cookie = Cookie(0xaaaa_aaaa_0000_0102);
    let header = Header { kind: Kind::Probe, cookie, sequence: 0x0001_0000_0000_0003 };
    header.write(&mut message);
    assert_eq!(&message, b"wlac\x02\x05\0\x12\0\0\x01\x02\0\0\0\0\0\x03");
    let read = Header { cookie: Cookie(0x0102), sequence: 3, ..header };
    assert_eq!(Header::parse(&message), Some(read), "numbers begin again after 2^48");
    assert_eq!((cookie.of_size(18), cookie.of_size(23)), (read.cookie, read.cookie));
    assert_eq!(cookie.of_size(24), cookie);
}

#[test]
fn what_has_no_room_for_the_header_is_compact_and_nothing_is_of_both_forms() {
    let header = Header { kind: Kind::Probe, cookie: Cookie(9), sequence: 3 };
    for length in COMPACT_BYTES..=64 {
        let mut message = vec![0; length];
        header.write(&mut message);
        let own = if length < HEADER_BYTES { b"wlac" } else { b"wlat" };
        let other = if length < HEADER_BYTES { b"wlat" } else { b"wlac" };
        assert_eq!(&message[..4], own, "{length} bytes");
        assert_eq!(Header::parse(&message), Some(header), "{length} bytes");
        assert_eq!(frame(&message), Frame::Length(length));
        message[..4].copy_from_slice(other);
        assert_eq!(Header::parse(&message), None, "{length} bytes");
        assert_eq!((frame(&message), other_version(&message)), (Frame::Broken, None));
        message[..4].copy_from_slice(own);
        message[4] = VERSION + 1;
        assert_eq!(other_version(&message), Some(VERSION + 1), "{length} bytes");
    }
    assert_eq!((frame(b"wla"), frame(b"wlac\x02\x05\0")), (Frame::Unknown, Frame::Unknown));
    assert_eq!(frame(b"wlac\x02\x05\0\x11"), Frame::Broken, "17 bytes are no message");
}

#[test]
fn a_change_of_any_byte_that_marks_a_message_makes_it_foreign() {
    for size in [COMPACT_BYTES, 64] {
        let mut message = vec![0; size];
        Header { kind: Kind::Probe, cookie: Cookie(9), sequence: 3 }.write(&mut message);
        for at in 0..8 {
            let mut changed = message.clone();
            changed[at] ^= 0x80;
            assert_eq!(Header::parse(&changed), None, "byte {at} of {size}");
        }
        for length in 0..message.len() {
            assert_eq!(Header::parse(&message[..length]), None, "{length} bytes of {size}");
        }
    }
}

#[test]
fn a_stream_is_cut_where_its_messages_end_and_is_broken_by_anything_else() {
    let mut message = [0; 100];
    Header { kind: Kind::Probe, cookie: Cookie(9), sequence: 3 }.write(&mut message);
    for length in 0..message.len() {
        let expected = if length < 8 { Frame::Unknown } else { Frame::Length(100) };
        assert_eq!(frame(&message[..length]), expected, "{length} bytes");
    }
    for at in 0..5 {
        let mut broken = message;
        broken[at] ^= 1;
        assert_eq!(frame(&broken[..=at]), Frame::Broken, "byte {at}");
    }
    for length in [0, 23, 65_508, 65_535_u16] {
        message[6..8].copy_from_slice(&length.to_be_bytes());
        assert_eq!(frame(&message), Frame::Broken, "{length}");
    }
}

#[test]
fn answers_are_never_answered() {
    for kind in (0..=255).filter_map(Kind::from_byte) {
        if let Some(answer) = kind.answer() {
            assert_eq!(answer.answer(), None);
        }
    }
}

#[test]
fn a_program_in_the_kernel_is_told_what_a_server_does() {
    use crate::protocol::{Answer, Phase, Protocol, Raw};
    let form = wire_form();
    for (kind, size) in (0..=255).flat_map(|kind| [(kind, 64), (kind, COMPACT_BYTES)]) {
        let mut message = vec![0; size];
        Header { kind: Kind::Probe, cookie: Cookie(9), sequence: 3 }.write(&mut message);
        message[5] = kind;
        let answer = Raw::new(Cookie(9)).answer(&mut message);
        let told = form.kinds.iter().find(|(known, _)| *known == kind).map(|(_, told)| *told);
        let expected = match answer {
            Answer::Reply(Phase::Measured) => Some(Treatment::Answer(message[5])),
            Answer::Reply(Phase::WarmUp) => Some(Treatment::AnswerBeside(message[5])),
            Answer::OneWay(Phase::Measured, _) => Some(Treatment::Count),
            Answer::OneWay(Phase::WarmUp, _) => Some(Treatment::CountBeside),
            Answer::Farewell => Some(Treatment::Leave),
            Answer::Nothing | Answer::Foreign => None,
        };
        assert_eq!(told, expected, "kind {kind}");
    }
    let mut message = [0; 24];
    Header { kind: Kind::Probe, cookie: Cookie(9), sequence: 3 }.write(&mut message);
    assert_eq!((form.magic, form.version), (*b"wlat", message[4]));
    assert_eq!(usize::from(form.shortest), message.len());
    assert_eq!((form.compact.magic, form.compact.shortest), (*b"wlac", 18));
}

#[test]
fn fresh_cookies_differ() {
    assert_ne!(Cookie::fresh(), Cookie::fresh());
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_parsed_to_what_writes_them_again_or_to_nothing(
        bytes in proptest::collection::vec(any::<u8>(), 0..100),
        forged in prop_oneof![Just(None), Just(Some(b't')), Just(Some(b'c'))],
        kind in 0_u8..12,
    ) {
        let mut bytes = bytes;
        if let Some(last) = forged && bytes.len() >= COMPACT_BYTES {
            let length = bytes.len() as u8;
            bytes[..8].copy_from_slice(&[b'w', b'l', b'a', last, VERSION, kind, 0, length]);
        }
        let _ = frame(&bytes);
        if let Some(header) = Header::parse(&bytes) {
            let mut again = bytes.clone();
            header.write(&mut again);
            prop_assert_eq!(again, bytes.clone());
        }
        let _ = ReflectorReport::parse(&bytes);
    }

    #[test]
    fn a_header_comes_back_as_far_as_its_message_has_room_for_it(
        (kind, cookie, sequence) in (0..Kind::ALL.len(), any::<u64>(), any::<u64>()),
        size in COMPACT_BYTES..200,
    ) {
        let header = Header { kind: Kind::ALL[kind], cookie: Cookie(cookie), sequence };
        let mut message = vec![0xff; size];
        header.write(&mut message);
        let sequence = if size < HEADER_BYTES { sequence & ((1 << 48) - 1) } else { sequence };
        let read = Header { cookie: header.cookie.of_size(size), sequence, ..header };
        prop_assert_eq!(Header::parse(&message), Some(read));
        prop_assert_eq!(frame(&message), Frame::Length(size));
    }

    #[test]
    fn a_report_comes_back_as_it_was_sent(numbers in any::<[u64; NUMBERS]>()) {
        let report = ReflectorReport::of(numbers);
        let mut bytes = [0; FAREWELL_BYTES];
        report.write(&mut bytes);
        prop_assert_eq!(ReflectorReport::parse(&bytes), Some(report));
        prop_assert_eq!(ReflectorReport::parse(&bytes[..FAREWELL_BYTES - 1]), None);
    }
}
