//! What is written is read; what was damaged is not; and no bytes whatever do harm.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;

use super::*;

const FROM: Mac = Mac([2, 0, 0, 0, 0, 1]);
const TO: Mac = Mac([2, 0, 0, 0, 0, 2]);

fn flow(from: SocketAddr, to: SocketAddr, tags: Tags) -> Flow {
    Flow { link: (FROM, TO), tags, from, to, class: 0x2e << 2, hops: 64 }
}

fn written(flow: &Flow, message: &[u8]) -> Vec<u8> {
    let template = Template::new(flow).unwrap();
    let mut frame = vec![0; template.bytes() + message.len()];
    template.write(&mut frame, message);
    frame
}

fn v4(tags: Tags, message: &[u8]) -> Vec<u8> {
    let (from, to) = ("198.18.0.1:7000".parse().unwrap(), "198.18.0.2:11111".parse().unwrap());
    written(&flow(from, to, tags), message)
}

fn v6(tags: Tags, message: &[u8]) -> Vec<u8> {
    let (from, to) = ("[fd00::1]:7000".parse().unwrap(), "[fd00::2]:11111".parse().unwrap());
    written(&flow(from, to, tags), message)
}

/// IPv4's header with its checksum made anew.
fn mended(mut frame: Vec<u8>) -> Vec<u8> {
    let header = usize::from(frame[14] & 0xf) * 4;
    frame[24..26].fill(0);
    let checksum = checksum::Sum::default().bytes(&frame[14..14 + header]).checksum();
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

fn endpoints() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>())
        .prop_map(|(a, b)| -> (IpAddr, IpAddr) { (a.into(), b.into()) });
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>())
        .prop_map(|(a, b)| -> (IpAddr, IpAddr) { (a.into(), b.into()) });
    let hosts = prop_oneof![v4, v6];
    (hosts, any::<u16>(), any::<u16>()).prop_map(|((a, b), c, d): ((IpAddr, IpAddr), _, _)| {
        (SocketAddr::new(a, c), SocketAddr::new(b, d))
    })
}

fn networks() -> impl Strategy<Value = Tags> {
    let two = (1_u16..4_095, 1_u16..4_095).prop_map(|(a, b)| Tags::two(a, b));
    prop_oneof![Just(Tags::default()), (1_u16..4_095).prop_map(Tags::one), two]
}

proptest! {
    #[test]
    fn what_a_template_writes_is_read_as_it_was_meant(
        (from, to) in endpoints(),
        tags in networks(),
        message in prop::collection::vec(any::<u8>(), 0..1_600),
        padding in 0_usize..40,
    ) {
        let mut frame = written(&flow(from, to, tags), &message);
        prop_assert_eq!(frame.len(), header_bytes(from, tags.count()) + message.len());
        frame.resize(frame.len() + padding, 0xaa);
        let seen = parse(&frame, None).unwrap();
        prop_assert_eq!((seen.link.source, seen.link.destination), (FROM, TO));
        prop_assert_eq!(seen.link.tags, tags);
        let verified = Verified::Right;
        let meant = Datagram { from, to, verified, message: &message };
        prop_assert_eq!(seen.packet, Packet::Datagram(meant));
    }

    #[test]
    fn a_tag_that_the_kernel_took_out_counts_as_if_it_were_there(
        id in 1_u16..4_095,
        message in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let tag = Tag { kind: TagKind::Customer, control: id };
        let (with, without) = (v4(Tags::one(id), &message), v4(Tags::default(), &message));
        prop_assert_eq!(parse(&without, Some(tag)), parse(&with, None));
    }

    #[test]
    fn no_bytes_whatever_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(defect) = parse(&bytes, None) {
            prop_assert!(defect.to_string().chars().all(|c| !c.is_control()));
        }
    }

    #[test]
    fn damaged_frames_do_no_harm_and_a_changed_message_is_never_taken(
        message in prop::collection::vec(any::<u8>(), 1..200),
        (place, bits) in (any::<prop::sample::Index>(), 1_u8..),
        cut in any::<prop::sample::Index>(),
        tags in networks(),
    ) {
        for whole in [v4(tags, &message), v6(tags, &message)] {
            // A frame that was cut off anywhere says so.
            let kept = cut.index(whole.len());
            let short = matches!(parse(&whole[..kept], None), Err(Defect::Truncated(_)));
            prop_assert!(short, "{:?}", parse(&whole[..kept], None));
            let mut frame = whole.clone();
            let at = place.index(message.len());
            let first = whole.len() - message.len();
            frame[first + at] ^= bits;
            // One sum in 65 536 looks like one left to a card, which proves nothing and says so.
            let told = match parse(&frame, None).map(|seen| seen.packet) {
                Err(defect) => defect == Defect::Checksum("UDP"),
                Ok(Packet::Datagram(datagram)) => datagram.verified == Verified::LeftToCard,
                Ok(_) => false,
            };
            prop_assert!(told, "{:?}", parse(&frame, None));
            // Anywhere: no harm.
            let mut frame = whole.clone();
            let at = place.index(frame.len());
            frame[at] ^= bits;
            let _ = parse(&frame, None);
        }
    }
}

#[test]
fn headers_of_ipv4_that_break_the_rules_have_a_name_each() {
    let whole = v4(Tags::default(), b"message");
    let with = |at: usize, byte: u8| {
        let mut frame = whole.clone();
        frame[at] = byte;
        parse(&mended(frame), None).map(|_| ())
    };
    assert_eq!(with(14, 0x65), Err(Defect::Version(6)));
    assert_eq!(with(16, 0xff), Err(Defect::Truncated("IPv4")));
    assert_eq!(with(20, 0x20), Err(Defect::Fragment), "more follow");
    assert_eq!(with(21, 0x01), Err(Defect::Fragment), "not the first");
    assert_eq!(with(23, 6), Err(Defect::OtherProtocol(6)));
    assert_eq!(with(22, 1), Ok(()), "hops");
    let mut frame = whole.clone();
    frame[22] ^= 1;
    assert_eq!(parse(&frame, None), Err(Defect::HeaderChecksum));
    frame[14] = 0x44;
    assert_eq!(parse(&frame, None), Err(Defect::Length("IPv4")));
}

#[test]
fn options_of_ipv4_are_skipped() {
    let mut frame = v4(Tags::default(), b"message");
    for byte in [1, 1, 1, 0] {
        frame.insert(34, byte);
    }
    frame[14] = 0x46;
    frame[17] += 4;
    let frame = mended(frame);
    let Ok(Seen { packet: Packet::Datagram(datagram), .. }) = parse(&frame, None) else {
        panic!("{:?}", parse(&frame, None));
    };
    assert_eq!((datagram.message, datagram.verified), (&b"message"[..], Verified::Right));
}

#[test]
fn extensions_of_ipv6_are_skipped_in_bounds_and_fragments_refused() {
    let with = |headers: &[(u8, u8)]| {
        // Each of eight bytes; the first one's number stands in IPv6's own header.
        let mut frame = v6(Tags::default(), b"message");
        let mut inserted = Vec::new();
        for (at, (_, eighths)) in headers.iter().enumerate() {
            let next = headers.get(at + 1).map_or(17, |(kind, _)| *kind);
            inserted.extend([next, *eighths, 1, 4, 0, 0, 0, 0]);
        }
        frame[20] = headers[0].0;
        let length = u16::from_be_bytes([frame[18], frame[19]]) + inserted.len() as u16;
        frame[18..20].copy_from_slice(&length.to_be_bytes());
        frame.splice(54..54, inserted);
        parse(&frame, None).map(|_| ())
    };
    assert_eq!(with(&[(0, 0)]), Ok(()));
    assert_eq!(with(&[(0, 0), (60, 0)]), Ok(()));
    assert_eq!(with(&[(44, 0)]), Err(Defect::Fragment));
    assert_eq!(with(&[(0, 0), (44, 0)]), Err(Defect::Fragment));
    assert_eq!(with(&[(0, 0xff)]), Err(Defect::Truncated("IPv6")));
    assert_eq!(with(&[(60, 0); 8]), Ok(()));
    assert_eq!(with(&[(60, 0); 9]), Err(Defect::TooManyHeaders(8)));
    assert_eq!(with(&[(43, 0)]), Err(Defect::OtherProtocol(43)));
}

#[test]
fn a_checksum_may_be_absent_over_ipv4_only_and_one_left_to_a_card_is_told() {
    let mut frame = v4(Tags::default(), b"message");
    frame[40..42].fill(0);
    let verified = |frame: &[u8]| match parse(frame, None)?.packet {
        Packet::Datagram(datagram) => Ok(datagram.verified),
        other => panic!("{other:?}"),
    };
    assert_eq!(verified(&frame), Ok(Verified::Absent));
    let mut frame = v6(Tags::default(), b"message");
    frame[60..62].fill(0);
    assert_eq!(verified(&frame), Err(Defect::ChecksumMissing));
    // What the kernel leaves: the sum of the addresses, the protocol and the length.
    let (from, to): (IpAddr, IpAddr) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    let left = checksum::pseudo_header(from, to, protocol::UDP).word(15).folded();
    frame[60..62].copy_from_slice(&left.to_be_bytes());
    assert_eq!(verified(&frame), Ok(Verified::LeftToCard));
    frame[60] ^= 1;
    assert_eq!(verified(&frame), Err(Defect::Checksum("UDP")));
}

#[test]
fn lengths_of_udp_that_cannot_be_have_a_name() {
    let with = |length: u16| {
        let mut frame = v4(Tags::default(), b"message");
        frame[38..40].copy_from_slice(&length.to_be_bytes());
        parse(&frame, None).map(|_| ())
    };
    assert_eq!(with(7), Err(Defect::Length("UDP")));
    assert_eq!(with(16), Err(Defect::Truncated("UDP")));
    assert_eq!(with(14), Err(Defect::Checksum("UDP")));
    let third = Tag { kind: TagKind::Customer, control: 1 };
    let tagged = v4(Tags::two(1, 2), b"");
    assert_eq!(parse(&tagged, Some(third)), Err(Defect::TooManyTags));
    let mut other = v4(Tags::default(), b"");
    other[12..14].copy_from_slice(&[0x88, 0xcc]);
    assert_eq!(parse(&other, None), Err(Defect::OtherKind(0x88cc)));
    assert!(!Defect::OtherKind(0x88cc).is_damage() && Defect::Checksum("UDP").is_damage());
}

#[test]
fn a_question_of_arp_is_read_and_answered() {
    let mut frame = [0; 60];
    let header = write_link(&mut frame, Mac::BROADCAST, FROM, Tags::default(), kind::ARP);
    let question =
        Arp::question((FROM, "198.18.0.1".parse().unwrap()), "198.18.0.2".parse().unwrap());
    frame[header..header + arp::BYTES].copy_from_slice(&question.bytes());
    assert_eq!(parse(&frame, None).map(|seen| seen.packet), Ok(Packet::Arp(question)));
    let answer = question.answered(TO);
    assert_eq!(Arp::parse(&answer.bytes()), Ok(answer));
    assert_eq!((answer.operation, answer.sender.0), (arp::Operation::Reply, TO));
    assert_eq!(answer.target, question.sender);
    for (at, byte) in [(0, 1), (2, 9), (4, 5), (5, 16), (7, 3)] {
        let mut odd = question.bytes();
        odd[at] = byte;
        assert_eq!(Arp::parse(&odd), Err(Defect::OtherArp), "{at}");
    }
    assert_eq!(Arp::parse(&question.bytes()[..27]), Err(Defect::Truncated("ARP")));
}

fn solicitation(hops: u8, change: impl Fn(&mut [u8])) -> Result<Neighbour, Defect> {
    let own: Ipv6Addr = "fd00::1".parse().unwrap();
    let wanted: Ipv6Addr = "fd00::12:3456".parse().unwrap();
    let group = neighbour::solicited_group(wanted);
    assert_eq!(group.to_string(), "ff02::1:ff12:3456");
    let mut message = neighbour::question(FROM, own, wanted);
    change(&mut message);
    // The sum is made anew: what is refused is refused for what it says.
    message[2..4].fill(0);
    let sum = checksum::pseudo_header(own.into(), group.into(), protocol::ICMPV6);
    let sum = sum.word(message.len() as u16).bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut packet = write_v6((own, group), (protocol::ICMPV6, hops, 0), 32).to_vec();
    packet.extend(message);
    let ip = Ip::parse_v6(&packet)?;
    let (from, heard) = neighbour::parse(&ip)?;
    assert_eq!(from, own);
    Ok(heard)
}

#[test]
fn a_question_of_neighbour_discovery_is_read_and_one_against_the_rules_refused() {
    let target = "fd00::12:3456".parse().unwrap();
    let asked = Neighbour::Solicitation { target, source: Some(FROM) };
    assert_eq!(solicitation(255, |_| ()), Ok(asked));
    let other = |kind| solicitation(255, move |message| message[24] = kind);
    assert_eq!(other(14), Ok(Neighbour::Solicitation { target, source: None }));
    let broken = |hops, at: usize, byte| {
        let answer = solicitation(hops, move |message| message[at] = byte);
        matches!(answer, Err(Defect::Neighbour(_)))
    };
    assert!(broken(64, 24, 1), "it passed a router");
    assert!(broken(255, 25, 0), "an option without length");
    assert!(broken(255, 25, 2), "an option beyond the end");
    assert!(broken(255, 8, 0xff), "a group as target");
    assert!(broken(255, 1, 1), "a code");
    let echo = solicitation(255, |message| message[0] = 128);
    assert_eq!(echo, Err(Defect::OtherIcmp(128)));
}

#[test]
fn an_answer_of_neighbour_discovery_is_read_and_its_checksum_counts() {
    let target: Ipv6Addr = "fd00::2".parse().unwrap();
    for asked in ["fd00::1", "::"] {
        let (to, message) = neighbour::answer(TO, target, asked.parse().unwrap());
        let mut packet = write_v6((target, to), (protocol::ICMPV6, 255, 0), 32).to_vec();
        packet.extend(message);
        let read = |packet: &[u8]| neighbour::parse(&Ip::parse_v6(packet).unwrap());
        let told = Neighbour::Advertisement { target, mac: Some(TO) };
        assert_eq!(read(&packet), Ok((target, told)));
        assert_eq!(to.is_multicast(), asked == "::");
        assert_eq!(packet[44] & 0x40 != 0, asked != "::", "solicited");
        packet[70] ^= 1;
        assert_eq!(read(&packet), Err(Defect::Checksum("ICMPv6")));
    }
}
