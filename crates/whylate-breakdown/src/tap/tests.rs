//! Captures whose truth was planted: numbered, in streams cut and joined, lost, doubled.

use proptest::prelude::*;
use whylate_model::tap::HEADING_BYTES;

use super::*;

const CLIENT: &str = "198.18.0.1:4000";
const SERVER: &str = "198.18.0.2:11111";
const MARK: u8 = 0xa5;

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A message of the tests: a mark, which way, how long, its number; 24 bytes at least.
fn message(leg: Leg, number: u64, length: usize) -> Vec<u8> {
    let mut message = vec![MARK, u8::from(leg == Leg::Reply)];
    message.extend((length as u16).to_be_bytes());
    message.extend(number.to_be_bytes());
    message.resize(length, 0x11);
    message
}

fn read(bytes: &[u8]) -> Option<Heading> {
    let &[MARK, way @ 0..=1, high, low, ref rest @ ..] = bytes.get(..HEADING_BYTES)? else {
        return None;
    };
    let (number, _) = rest.split_first_chunk::<8>()?;
    let number = u64::from_be_bytes(*number);
    let leg = if way == 1 { Leg::Reply } else { Leg::Request };
    let length = u32::from(u16::from_be_bytes([high, low]));
    Some(Heading { leg, number: (number < u64::MAX).then_some(number), length })
}

/// What is told of the messages that pass: number, way, time.
type Told = Vec<(u64, Leg, u64)>;

struct Tap {
    pairing: Pairing,
    told: Told,
}

impl Tap {
    fn new(settings: Settings) -> Self {
        Self { pairing: Pairing::new(settings, read), told: Vec::new() }
    }

    fn numbered() -> Self {
        Self::new(Settings::numbered(Some(at(SERVER))))
    }

    fn cross(&mut self, at_ns: u64, leg: Leg, content: Content<'_>) {
        let (from, to) = match leg {
            Leg::Request => (at(CLIENT), at(SERVER)),
            Leg::Reply => (at(SERVER), at(CLIENT)),
        };
        let crossing = Crossing { at: Nanos(at_ns), from, to, content };
        self.pairing.crossing(&crossing, &mut |number, point, at| {
            assert_eq!(point.station, Station::Tap);
            self.told.push((number, point.leg, at.0));
        });
    }

    fn datagram(&mut self, at_ns: u64, leg: Leg, number: u64) {
        let bytes = message(leg, number, 64);
        self.cross(at_ns, leg, Content::Datagram { bytes: &bytes, length: 64 });
    }

    fn segment(&mut self, at_ns: u64, leg: Leg, sequence: u32, bytes: &[u8]) {
        let length = bytes.len() as u32;
        self.cross(at_ns, leg, Content::Segment { sequence, begins: false, bytes, length });
    }

    fn syn(&mut self, leg: Leg, sequence: u32) {
        self.cross(0, leg, Content::Segment { sequence, begins: true, bytes: &[], length: 0 });
    }
}

#[test]
fn requests_and_replies_meet_by_their_numbers_and_the_rest_is_counted() {
    let mut tap = Tap::numbered();
    tap.datagram(5, Leg::Request, u64::MAX);
    tap.datagram(10, Leg::Request, 1);
    tap.datagram(20, Leg::Request, 3);
    tap.datagram(25, Leg::Request, 2);
    tap.datagram(26, Leg::Request, 2);
    tap.datagram(40, Leg::Reply, 3);
    tap.datagram(45, Leg::Reply, 1);
    tap.datagram(46, Leg::Reply, 1);
    tap.datagram(50, Leg::Reply, 9);
    let cut = message(Leg::Request, 4, 64);
    tap.cross(60, Leg::Request, Content::Datagram { bytes: &cut, length: 63 });
    tap.cross(61, Leg::Reply, Content::Datagram { bytes: &cut, length: 64 });
    let stranger = Crossing {
        at: Nanos(1),
        from: at(CLIENT),
        to: at("198.18.0.2:9"),
        content: Content::Datagram { bytes: &cut, length: 64 },
    };
    tap.pairing.crossing(&stranger, &mut |_, _, _| panic!("it is a stranger's"));
    let (request, reply) = (Leg::Request, Leg::Reply);
    let expected = [
        (1, request, 10),
        (3, request, 20),
        (2, request, 25),
        (3, reply, 40),
        (1, reply, 45),
        (9, reply, 50),
    ];
    assert_eq!(tap.told, expected);
    let Paired { counts, distances } = tap.pairing.finish();
    let expected = TapCounts {
        requests: 3,
        replies: 3,
        paired: 2,
        unanswered: 1,
        unasked: 1,
        requests_twice: 1,
        replies_twice: 1,
        reordered: 2,
        beside: 1,
        foreign: 3,
        ..TapCounts::default()
    };
    assert_eq!(counts, expected);
    assert_eq!((distances.len(), distances.min(), distances.max()), (2, Some(20), Some(35)));
}

#[test]
fn a_reply_before_its_request_is_no_distance() {
    let mut tap = Tap::numbered();
    tap.datagram(50, Leg::Reply, 1);
    tap.datagram(60, Leg::Request, 1);
    let Paired { counts, distances } = tap.pairing.finish();
    assert_eq!((counts.paired, counts.backwards, distances.len()), (1, 1, 0));
}

#[test]
fn messages_of_a_stream_pass_with_their_last_byte_however_it_is_cut() {
    let mut tap = Tap::numbered();
    let first = u32::MAX - 70;
    tap.syn(Leg::Request, first);
    let bytes: Vec<u8> =
        (0..4).flat_map(|number| message(Leg::Request, number, 50 + number as usize)).collect();
    // In the middle of a header, at an end, and two at once; the numbers wrap on the way.
    let mut sequence = first.wrapping_add(1);
    let mut from = 0;
    for (time, to) in [(10, 60), (20, 101), (30, bytes.len())] {
        tap.segment(time, Leg::Request, sequence, &bytes[from..to]);
        sequence = sequence.wrapping_add((to - from) as u32);
        from = to;
    }
    let request = Leg::Request;
    assert_eq!(tap.told, [(0, request, 10), (1, request, 20), (2, request, 30), (3, request, 30)]);
    assert_eq!(tap.pairing.counts().gaps + tap.pairing.counts().unframed, 0);
}

#[test]
fn retransmissions_gaps_and_late_segments_of_a_stream_are_counted_and_never_guessed() {
    let mut tap = Tap::numbered();
    tap.syn(Leg::Request, 0);
    let message_of = |number| message(Leg::Request, number, 50);
    tap.segment(10, Leg::Request, 1, &message_of(0));
    tap.segment(11, Leg::Request, 1, &message_of(0));
    // Number 1 is missing, then comes after number 2.
    tap.segment(20, Leg::Request, 101, &message_of(2));
    tap.segment(21, Leg::Request, 51, &message_of(1));
    tap.segment(22, Leg::Request, 51, &message_of(1));
    // Half of 3 is missing: what follows is found again at the next beginning.
    tap.segment(30, Leg::Request, 176, &message_of(3)[25..]);
    tap.segment(31, Leg::Request, 201, &message_of(4));
    // The end of 4 once more, with all of 5.
    let again = [message_of(4)[40..].to_vec(), message_of(5)].concat();
    tap.segment(32, Leg::Request, 241, &again);
    let told: Vec<(u64, u64)> = tap.told.iter().map(|told| (told.0, told.2)).collect();
    assert_eq!(told, [(0, 10), (2, 20), (4, 31), (5, 32)]);
    let counts = tap.pairing.finish().counts;
    assert_eq!((counts.retransmitted, counts.reordered, counts.gaps), (3, 1, 2));
    assert_eq!((counts.unframed, counts.requests, counts.unanswered), (2, 4, 4));
}

#[test]
fn bytes_that_were_not_kept_are_not_guessed() {
    let mut tap = Tap::numbered();
    tap.syn(Leg::Request, 0);
    let two = [message(Leg::Request, 1, 200), message(Leg::Request, 2, 200)].concat();
    let content = |sequence, kept| Content::Segment {
        sequence,
        begins: false,
        bytes: &two[..kept],
        length: 400,
    };
    tap.cross(5, Leg::Request, content(1, 100));
    tap.cross(9, Leg::Request, content(401, 400));
    let told: Vec<(u64, u64)> = tap.told.iter().map(|told| (told.0, told.2)).collect();
    assert_eq!(told[0], (1, 5), "the first one's beginning was kept, and its end is known");
    let counts = *tap.pairing.counts();
    assert_eq!((counts.unframed, counts.requests, counts.requests_twice), (1, 2, 1));
}

/// A frame of Ethernet with so many tags around a packet.
fn frame(kind: u16, tags: usize, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for _ in 0..tags {
        frame.extend([0x81, 0, 0, 5]);
    }
    frame.extend(kind.to_be_bytes());
    frame.extend(packet);
    frame
}

fn ipv4(protocol: u8, content: &[u8]) -> Vec<u8> {
    let whole = (20 + content.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(whole.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
    packet.extend(content);
    packet
}

fn udp(message: &[u8]) -> Vec<u8> {
    let mut datagram = [4000_u16.to_be_bytes(), 11_111_u16.to_be_bytes()].concat();
    datagram.extend((8 + message.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(message);
    datagram
}

fn tcp(sequence: u32, flags: u8, message: &[u8]) -> Vec<u8> {
    let mut segment = [4000_u16.to_be_bytes(), 11_111_u16.to_be_bytes()].concat();
    segment.extend(sequence.to_be_bytes());
    // Six words: one of options.
    segment.extend([0, 0, 0, 0, 0x60, flags, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
    segment.extend(message);
    segment
}

#[test]
fn packets_of_every_kind_of_link_are_read_with_padding_tags_and_cut_ends() {
    let packet = ipv4(17, &udp(b"abcdefgh"));
    let expected = |kept: usize| Crossing {
        at: Nanos(3),
        from: at(CLIENT),
        to: at(SERVER),
        content: Content::Datagram { bytes: &b"abcdefgh"[..kept], length: 8 },
    };
    let read =
        |link, bytes: &[u8]| wire::crossing(Nanos(3), link, bytes).map(|seen| seen == expected(8));
    let mut padded = frame(0x0800, 0, &packet);
    padded.resize(60, 0);
    assert_eq!(read(1, &padded), Ok(true));
    assert_eq!(read(1, &frame(0x0800, 2, &packet)), Ok(true));
    assert_eq!(read(101, &packet), Ok(true));
    assert_eq!(read(228, &packet), Ok(true));
    assert_eq!(read(0, &[vec![2, 0, 0, 0], packet.clone()].concat()), Ok(true));
    assert_eq!(read(113, &[vec![0; 14], vec![8, 0], packet.clone()].concat()), Ok(true));
    assert_eq!(read(276, &[vec![8, 0], vec![0; 18], packet.clone()].concat()), Ok(true));
    assert_eq!(wire::crossing(Nanos(3), 101, &packet[..31]), Ok(expected(3)));
    assert_eq!(read(127, &packet), Err(Unread::Link));
    assert_eq!(read(1, &frame(0x0806, 0, &[0; 28])), Err(Unread::Protocol));
    assert_eq!(read(101, &ipv4(1, &[0; 8])), Err(Unread::Protocol));
    assert_eq!(read(101, &packet[..25]), Err(Unread::Damaged));
    let mut fragment = packet.clone();
    fragment[6] = 0x20;
    assert_eq!(read(101, &fragment), Err(Unread::Fragment));
    let mut long = packet;
    long[25] = 200;
    assert_eq!(read(101, &long), Err(Unread::Damaged), "a datagram longer than its packet");
}

#[test]
fn segments_and_packets_of_the_sixth_version_are_read() {
    let packet = ipv4(6, &tcp(7, 0x18, b"abc"));
    let content = Content::Segment { sequence: 7, begins: false, bytes: b"abc", length: 3 };
    assert_eq!(wire::crossing(Nanos(1), 101, &packet).unwrap().content, content);
    let packet = ipv4(6, &tcp(7, 0x02, b""));
    let content = Content::Segment { sequence: 7, begins: true, bytes: b"", length: 0 };
    assert_eq!(wire::crossing(Nanos(1), 101, &packet).unwrap().content, content);
    let datagram = udp(b"abc");
    for (next, between) in [(17, vec![]), (60, vec![17, 0, 1, 4, 0, 0, 0, 0])] {
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(((between.len() + datagram.len()) as u16).to_be_bytes());
        packet.extend([next, 64]);
        packet.extend([0xfd; 16]);
        packet.extend([0xfe; 16]);
        packet.extend(between);
        packet.extend(&datagram);
        let framed = frame(0x86dd, 1, &packet);
        let seen = wire::crossing(Nanos(1), 1, &framed).unwrap();
        assert_eq!(seen.content, Content::Datagram { bytes: b"abc", length: 3 });
        assert!(seen.from.is_ipv6() && seen.from.port() == 4000 && seen.to.port() == 11_111);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_crossing_or_a_reason(
        link in prop_oneof![Just(0_u16), Just(1), Just(101), Just(113), Just(276), any::<u16>()],
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
        version in prop_oneof![Just(0x45_u8), Just(0x60)],
    ) {
        if link == 101 && !bytes.is_empty() {
            bytes[0] = version;
        }
        if let Ok(crossing) = wire::crossing(Nanos(1), link, &bytes) {
            let (Content::Datagram { bytes: kept, length }
                | Content::Segment { bytes: kept, length, .. }) = crossing.content;
            prop_assert!(kept.len() <= length as usize);
        }
    }

    #[test]
    fn a_stream_cut_anywhere_and_sent_again_tells_each_message_once(
        lengths in proptest::collection::vec(24_usize..200, 1..30),
        cuts in proptest::collection::vec((1_usize..300, any::<bool>()), 1..60),
        first: u32,
    ) {
        let bytes: Vec<u8> = lengths.iter().enumerate()
            .flat_map(|(number, &length)| message(Leg::Request, number as u64, length))
            .collect();
        let mut tap = Tap::numbered();
        tap.syn(Leg::Request, first);
        let (mut from, mut time, mut again) = (0, 0, 0);
        let mut ends = Vec::new();
        for (step, doubled) in cuts.into_iter().chain([(bytes.len(), false)]) {
            let to = (from + step).min(bytes.len());
            if to == from {
                break;
            }
            time += 1;
            let sequence = first.wrapping_add(1).wrapping_add(from as u32);
            tap.segment(time, Leg::Request, sequence, &bytes[from..to]);
            if doubled {
                again += 1;
                tap.segment(time, Leg::Request, sequence, &bytes[from..to]);
            }
            ends.push((to, time));
            from = to;
        }
        let mut end = 0;
        let expected: Told = lengths.iter().enumerate().map(|(number, length)| {
            end += length;
            let (_, time) = *ends.iter().find(|(to, _)| *to >= end).unwrap();
            (number as u64, Leg::Request, time)
        }).collect();
        prop_assert_eq!(&tap.told, &expected);
        let counts = *tap.pairing.counts();
        prop_assert_eq!((counts.retransmitted, counts.gaps, counts.unframed), (again, 0, 0));
    }

    #[test]
    fn whatever_comes_by_each_message_counts_once_and_all_of_them_add_up(
        messages in proptest::collection::vec((any::<bool>(), 0_u64..20, 0_u64..1_000), 0..200),
    ) {
        let mut tap = Tap::numbered();
        for &(reply, number, time) in &messages {
            tap.datagram(time, if reply { Leg::Reply } else { Leg::Request }, number);
        }
        let told = tap.told.len() as u64;
        let Paired { counts, distances } = tap.pairing.finish();
        prop_assert_eq!(counts.requests + counts.replies, told);
        prop_assert_eq!(told + counts.requests_twice + counts.replies_twice, messages.len() as u64);
        prop_assert_eq!(counts.requests, counts.paired + counts.unanswered);
        prop_assert_eq!(counts.replies, counts.paired + counts.unasked);
        prop_assert_eq!(distances.len() + counts.backwards, counts.paired);
    }
}
