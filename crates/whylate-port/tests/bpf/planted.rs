//! Planted frames, tried on loaded programs: verdict, bytes and counts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::net::{AddressFamily, SocketType};
use whylate_port::bpf::{Messages, Mode, Reflector, Steering, Take, Verdict};
use whylate_suite::absent;

use crate::frames::{
    Checksum, FAR_V4, FAR_V6, Ip, NEAR_V4, NEAR_V6, PLAIN_V4, PLAIN_V6, PORT, Planted, arp,
    compact, message, neighbour,
};
use crate::judge::{self, Reflected};
use crate::{form, ready};

const PASS: u32 = 2;
const SEND_BACK: u32 = 3;
const REDIRECT: u32 = 4;

fn owned() -> Messages {
    let addresses = vec![FAR_V4.into(), NEAR_V6.into(), FAR_V6.into()];
    Messages { ports: vec![7, PORT], neighbours: addresses.clone(), addresses }
}

/// A program that steers, its first queue given to a socket.
fn steering(take: &Take) -> Option<(Steering, OwnedFd)> {
    let steering = ready(Steering::load(take, 2))?;
    let socket = match rustix::net::socket(AddressFamily::XDP, SocketType::RAW, None) {
        Ok(socket) => socket,
        Err(errno) => {
            absent(&format!("no socket of AF_XDP: {errno}"));
            return None;
        }
    };
    steering.give(0, socket.as_fd()).unwrap();
    Some((steering, socket))
}

/// Frames, each with the verdict that it was made for.
fn for_steering() -> Vec<(&'static str, Vec<u8>, Verdict)> {
    use Verdict::{Fragment, Handed, Options, Passed, Short};
    let plain = |ip: Ip| Planted::new(ip, b"anything at all".to_vec());
    let foreign = |ip| Planted { port: PORT + 1, ..plain(ip) }.bytes();
    let tagged = |ip, tags: &[u16]| Planted { tags: tags.to_vec(), ..plain(ip) }.bytes();
    let v4 = |options, fragment| plain(Ip::V4 { options, fragment }).bytes();
    let cut = |frame: Vec<u8>, length: usize| frame[..length].to_vec();
    let changed = |mut frame: Vec<u8>, at: usize, byte: u8| {
        frame[at] = byte;
        frame
    };
    vec![
        ("IPv4", v4(0, 0), Handed),
        ("IPv4 that may not be cut", v4(0, 0x4000), Handed),
        ("IPv4, its first fragment", v4(0, 0x2000), Fragment),
        ("IPv4, a later fragment", v4(0, 1), Fragment),
        ("IPv4 with an option", v4(1, 0), Handed),
        ("IPv4 with all options", v4(10, 0), Handed),
        ("IPv4 to another port", foreign(PLAIN_V4), Passed),
        ("IPv4 of TCP", changed(v4(0, 0), 23, 6), Passed),
        ("IPv4 that says it is IPv5", changed(v4(0, 0), 14, 0x55), Passed),
        ("IPv4 with half a header", changed(v4(0, 0), 14, 0x44), Passed),
        ("IPv4, cut in UDP", cut(v4(0, 0), 41), Short),
        ("IPv4, cut in its header", cut(v4(0, 0), 33), Short),
        ("IPv4, cut in its options", cut(v4(10, 0), 70), Short),
        ("IPv6", plain(PLAIN_V6).bytes(), Handed),
        ("IPv6 to another port", foreign(PLAIN_V6), Passed),
        ("IPv6 with an option", plain(Ip::V6 { extension: Some(60) }).bytes(), Options),
        ("IPv6, a fragment", plain(Ip::V6 { extension: Some(44) }).bytes(), Options),
        ("IPv6 of TCP", changed(plain(PLAIN_V6).bytes(), 20, 6), Passed),
        ("IPv6 that says it is IPv4", changed(plain(PLAIN_V6).bytes(), 14, 0x45), Passed),
        ("IPv6, cut in UDP", cut(plain(PLAIN_V6).bytes(), 61), Short),
        ("IPv6, cut in its header", cut(plain(PLAIN_V6).bytes(), 53), Short),
        ("IPv4 in a VLAN", tagged(PLAIN_V4, &[0x8100]), Handed),
        ("IPv6 in a VLAN", tagged(PLAIN_V6, &[0x8100]), Handed),
        ("IPv4 in two VLANs", tagged(PLAIN_V4, &[0x88a8, 0x8100]), Handed),
        ("IPv6 in two VLANs", tagged(PLAIN_V6, &[0x88a8, 0x8100]), Handed),
        ("IPv4 in three VLANs", tagged(PLAIN_V4, &[0x88a8, 0x8100, 0x8100]), Passed),
        ("a tag, cut", cut(tagged(PLAIN_V4, &[0x8100]), 17), Short),
        ("Ethernet and no more", cut(v4(0, 0), 14), Short),
        ("something else", changed(v4(0, 0), 12, 0x09), Passed),
    ]
}

#[test]
fn messages_to_the_ports_go_to_the_socket_and_all_others_to_the_host() {
    let messages = Messages::to_ports(&[7, PORT, 9]);
    let Some((steering, _socket)) = steering(&Take::Messages(messages.clone())) else { return };
    let mut expected: HashMap<Verdict, u64> = HashMap::new();
    for (what, frame, verdict) in for_steering() {
        let tried = steering.try_on(&frame).unwrap();
        let returned = if verdict == Verdict::Handed { REDIRECT } else { PASS };
        assert_eq!(tried.returned, returned, "{what}");
        assert_eq!(tried.frame, frame, "{what}: a frame that is handed on is not changed");
        assert_eq!(judge::steered(&frame, &messages), verdict, "{what}, by the judge");
        *expected.entry(verdict).or_default() += 1;
        let counts = steering.counts().unwrap();
        assert_eq!(counts.occurred().collect::<HashMap<_, _>>(), expected, "{what}");
    }
    for verdict in [Verdict::Handed, Verdict::Short, Verdict::Fragment, Verdict::Options] {
        assert!(expected.contains_key(&verdict), "no frame was planted for {verdict}");
    }
}

#[test]
fn what_comes_by_a_queue_without_a_socket_is_left_to_the_host_and_counted() {
    let messages = Messages::to_ports(&[PORT]);
    let Some(steering) = ready(Steering::load(&Take::Messages(messages), 1)) else { return };
    let frame = Planted::new(PLAIN_V4, vec![1; 40]).bytes();
    assert_eq!(steering.try_on(&frame).unwrap().returned, PASS);
    let counts = steering.counts().unwrap();
    assert_eq!((counts.of(Verdict::NoSocket), counts.seen()), (1, 1));
    let Some((everything, socket)) = self::steering(&Take::Everything) else { return };
    assert_eq!(everything.try_on(&[0xff; 14]).unwrap().returned, REDIRECT);
    drop(socket);
    assert_eq!(everything.try_on(&[0xff; 14]).unwrap().returned, PASS, "the map forgets a socket");
    let counts = everything.counts().unwrap();
    assert_eq!((counts.of(Verdict::Handed), counts.of(Verdict::NoSocket)), (1, 1));
}

#[test]
fn with_addresses_of_its_own_a_socket_gets_what_is_about_them_and_nothing_of_the_hosts() {
    use Verdict::{Handed, Neighbour, Passed, Short};
    let Some((steering, _socket)) = steering(&Take::Messages(owned())) else { return };
    let to = |ip: Ip| Planted::new(ip, vec![1; 40]).bytes();
    let elsewhere = |mut frame: Vec<u8>, last: usize| {
        frame[last] ^= 0x40;
        frame
    };
    let cases = [
        ("IPv4 to it", to(PLAIN_V4), Handed),
        ("IPv4 to the host", elsewhere(to(PLAIN_V4), 33), Passed),
        ("IPv6 to it", to(PLAIN_V6), Handed),
        ("IPv6 to the host", elsewhere(to(PLAIN_V6), 53), Passed),
        ("who has its address?", arp(1, FAR_V4), Neighbour),
        ("it is I, to its address", arp(2, FAR_V4), Neighbour),
        ("who has the host's address?", arp(1, NEAR_V4), Passed),
        ("ARP, cut", arp(1, FAR_V4)[..41].to_vec(), Short),
        ("ARP of something else", elsewhere(arp(1, FAR_V4), 16), Passed),
        ("solicitation", neighbour(135, [0xff; 16], FAR_V6), Neighbour),
        ("solicitation of the host", neighbour(135, FAR_V6, [0xfe; 16]), Passed),
        ("advertisement", neighbour(136, FAR_V6, [0xfe; 16]), Neighbour),
        ("advertisement to the host", neighbour(136, [0xfe; 16], FAR_V6), Passed),
        ("advertisement, cut", neighbour(136, FAR_V6, FAR_V6)[..70].to_vec(), Short),
        ("ICMPv6, cut", neighbour(136, FAR_V6, FAR_V6)[..60].to_vec(), Short),
        ("an echo of IPv6", neighbour(128, FAR_V6, FAR_V6), Passed),
    ];
    let mut before = steering.counts().unwrap();
    for (what, frame, verdict) in cases {
        let tried = steering.try_on(&frame).unwrap();
        let taken = matches!(verdict, Handed | Neighbour);
        assert_eq!(tried.returned, if taken { REDIRECT } else { PASS }, "{what}");
        assert_eq!(judge::steered(&frame, &owned()), verdict, "{what}, by the judge");
        let counts = steering.counts().unwrap();
        assert_eq!(counts.of(verdict), before.of(verdict) + 1, "{what}");
        before = counts;
    }
}

/// Frames for a reflector, each with the verdict that it was made for.
fn for_reflector() -> Vec<(&'static str, Vec<u8>, Verdict)> {
    use Verdict::{
        Account, Answered, AnsweredBeside, Foreign, Fragment, OneWay, OneWayBeside, Options,
        Passed, Short,
    };
    let plain = |ip: Ip, kind| Planted::new(ip, message(kind, 64));
    let v4 = |kind| plain(PLAIN_V4, kind).bytes();
    let v6 = |kind| plain(PLAIN_V6, kind).bytes();
    let checksum = |ip, checksum| Planted { checksum, ..plain(ip, 5) }.bytes();
    let changed = |mut frame: Vec<u8>, at: usize, byte: u8| {
        frame[at] = byte;
        frame
    };
    let tagged = Planted { tags: vec![0x88a8, 0x8100], ..plain(PLAIN_V6, 5) }.bytes();
    let padded = Planted { padding: 6, ..plain(PLAIN_V4, 5) }.bytes();
    let odd = Planted::new(PLAIN_V4, message(5, 63)).bytes();
    let shortest = Planted::new(PLAIN_V4, message(5, 24)).bytes();
    let longest = Planted::new(PLAIN_V6, message(5, 1_400)).bytes();
    let header = Planted::new(PLAIN_V4, message(5, 24)[..23].to_vec()).bytes();
    let short = |ip: Ip, payload| Planted::new(ip, payload).bytes();
    let smallest = short(PLAIN_V4, compact(5, 18));
    assert_eq!(smallest.len(), 60, "64 bytes with the check sequence");
    let cut = plain(PLAIN_V4, 5).bytes()[..105].to_vec();
    let options = plain(Ip::V4 { options: 1, fragment: 0 }, 5).bytes();
    let fragment = plain(Ip::V4 { options: 0, fragment: 0x2000 }, 5).bytes();
    let other = Planted { port: PORT + 1, ..plain(PLAIN_V4, 5) }.bytes();
    vec![
        ("a request", v4(5), Answered),
        ("a request over IPv6", v6(5), Answered),
        ("a request in two VLANs", tagged, Answered),
        ("a request in a padded frame", padded, Answered),
        ("a request of odd length", odd, Answered),
        ("the shortest request", shortest, Answered),
        ("a compact request", smallest.clone(), Answered),
        ("the longest compact request, over IPv6", short(PLAIN_V6, compact(5, 23)), Answered),
        ("a compact greeting", short(PLAIN_V4, compact(1, 18)), AnsweredBeside),
        ("a compact message one-way", short(PLAIN_V4, compact(10, 18)), OneWay),
        ("a compact request, cut", smallest[..59].to_vec(), Short),
        ("as long as others, and compact", short(PLAIN_V4, compact(5, 24)), Foreign),
        ("too short to be compact", short(PLAIN_V4, compact(5, 17)), Foreign),
        ("as short as compact ones, and none", short(PLAIN_V4, message(5, 23)), Foreign),
        ("a long request", longest, Answered),
        ("a request without a checksum", checksum(PLAIN_V4, Checksum::Absent), Answered),
        ("the same over IPv6", checksum(PLAIN_V6, Checksum::Absent), Foreign),
        ("a greeting", v4(1), AnsweredBeside),
        ("the end", v6(7), Account),
        ("one-way", v4(10), OneWay),
        ("one-way, in the warm-up", v6(9), OneWayBeside),
        ("an answer", v4(6), Foreign),
        ("a kind that does not exist", v4(77), Foreign),
        ("another version", changed(v4(5), 46, 1), Foreign),
        ("another protocol", changed(v4(5), 42, b'W'), Foreign),
        ("a wrong length", changed(v4(5), 49, 63), Foreign),
        ("a wrong length of IPv4", changed(v4(5), 17, 93), Foreign),
        ("a wrong length of UDP", changed(v4(5), 39, 71), Foreign),
        ("less than a header", header, Foreign),
        ("to a group of stations", changed(v4(5), 0, 3), Foreign),
        ("from a group of stations", changed(v4(5), 6, 3), Foreign),
        ("a request, cut", cut, Short),
        ("a request with options", options, Options),
        ("a fragment", fragment, Fragment),
        ("a request to another port", other, Passed),
    ]
}

/// What a program made of a frame is what the judge says, to the byte; checksums are as right as they
/// were.
fn is_as_judged(frame: &[u8], tried: &whylate_port::bpf::Tried, judged: &Reflected) -> String {
    if tried.returned != judged.returned {
        return format!("returned {}, expected {}", tried.returned, judged.returned);
    }
    let (mut got, mut expected) = (tried.frame.clone(), judged.frame.clone());
    if judged.returned == SEND_BACK {
        let (header, datagram) = judge::checksums(&expected);
        let (before, after) = (judge::sums(frame), judge::sums(&got));
        let same = |one: u64, other: u64| one % 65_535 == other % 65_535;
        if !same(before.0.unwrap_or(0), after.0.unwrap_or(0)) {
            return "the checksum of IPv4 does not follow".to_owned();
        }
        let dropped = expected[datagram..datagram + 2] == [0, 0];
        if dropped && got[datagram..datagram + 2] != [0, 0] {
            return "a checksum where there can be none".to_owned();
        }
        if !dropped && (!same(before.1, after.1) || got[datagram..datagram + 2] == [0, 0]) {
            return "the checksum of UDP does not follow".to_owned();
        }
        for at in header.into_iter().chain([datagram]) {
            got[at..at + 2].fill(0);
            expected[at..at + 2].fill(0);
        }
    }
    if got == expected { String::new() } else { format!("{got:02x?}, expected {expected:02x?}") }
}

#[test]
fn requests_go_back_with_everything_exchanged_and_nothing_else_does() {
    let messages = Messages::to_ports(&[PORT]);
    for mode in [Mode::Native, Mode::Generic] {
        let Some(reflector) = ready(Reflector::load(&messages, &form(), mode)) else { return };
        let mut expected: HashMap<Verdict, u64> = HashMap::new();
        for (what, frame, verdict) in for_reflector() {
            let tried = reflector.try_on(&frame).unwrap();
            let judged = judge::reflected(&frame, &messages, &form(), mode);
            assert_eq!(judged.verdict, verdict, "{what}, by the judge");
            assert_eq!(is_as_judged(&frame, &tried, &judged), "", "{what}");
            *expected.entry(verdict).or_default() += 1;
            let counts = reflector.counts().unwrap();
            assert_eq!(counts.occurred().collect::<HashMap<_, _>>(), expected, "{what}");
        }
    }
}

/// A frame that is worked out by hand, so that no mistake is shared by program and judge.
#[test]
fn a_request_over_ipv4_becomes_the_answer_that_was_worked_out_by_hand() {
    let messages = Messages::to_ports(&[PORT]);
    let Some(reflector) = ready(Reflector::load(&messages, &form(), Mode::Native)) else { return };
    // 10.0.0.1:1000 asks 10.0.0.2:41000 with 24 bytes: cookie 1, sequence 2.
    let request = [
        0x02, 0, 0, 0, 0, 0x0b, 0x02, 0, 0, 0, 0, 0x0a, 0x08, 0x00, // Ethernet
        0x45, 0, 0, 52, 0, 0, 0x40, 0, 1, 17, 0x65, 0xb7, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
        0x03, 0xe8, 0xa0, 0x28, 0, 32, 0x6c, 0x9a, // UDP
        b'w', b'l', b'a', b't', 2, 5, 0, 24, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2,
    ];
    // The checksum of IPv4 loses 63 << 8, that of UDP the 1 by which the kind grows.
    let answer = [
        0x02, 0, 0, 0, 0, 0x0a, 0x02, 0, 0, 0, 0, 0x0b, 0x08, 0x00, // Ethernet
        0x45, 0, 0, 52, 0, 0, 0x40, 0, 64, 17, 0x26, 0xb7, 10, 0, 0, 2, 10, 0, 0, 1, // IPv4
        0xa0, 0x28, 0x03, 0xe8, 0, 32, 0x6c, 0x99, // UDP
        b'w', b'l', b'a', b't', 2, 6, 0, 24, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2,
    ];
    let tried = reflector.try_on(&request).unwrap();
    assert_eq!(tried.returned, SEND_BACK);
    assert_eq!(tried.frame, answer);
}

#[test]
fn a_checksum_that_was_never_finished_is_left_out_or_left_to_the_host() {
    let messages = Messages::to_ports(&[PORT]);
    let cases = [
        (PLAIN_V4, Mode::Native, SEND_BACK),
        (PLAIN_V4, Mode::Generic, PASS),
        (PLAIN_V6, Mode::Native, PASS),
        (PLAIN_V6, Mode::Generic, PASS),
    ];
    for (ip, mode, returned) in cases {
        let Some(reflector) = ready(Reflector::load(&messages, &form(), mode)) else { return };
        let plain = Planted::new(ip.clone(), message(5, 64));
        let frame = Planted { checksum: Checksum::Unfinished, ..plain }.bytes();
        let tried = reflector.try_on(&frame).unwrap();
        let judged = judge::reflected(&frame, &messages, &form(), mode);
        assert_eq!((tried.returned, judged.returned), (returned, returned), "{ip:?} {mode}");
        assert_eq!(is_as_judged(&frame, &tried, &judged), "", "{ip:?} {mode}");
        let counts = reflector.counts().unwrap();
        let verdict = if returned == PASS { Verdict::Unfinished } else { Verdict::Answered };
        assert_eq!((counts.of(verdict), counts.seen()), (1, 1));
    }
}

/// Frames as they should be, as they hardly are, and as they never are.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let ip = prop_oneof![
        4 => Just(PLAIN_V4),
        4 => Just(PLAIN_V6),
        1 => (0_u8..=10, any::<u16>()).prop_map(|(options, fragment)| Ip::V4 { options, fragment }),
        1 => any::<u8>().prop_map(|extension| Ip::V6 { extension: Some(extension) }),
    ];
    let checksum = prop_oneof![
        4 => Just(Checksum::Complete),
        1 => Just(Checksum::Absent),
        1 => Just(Checksum::Unfinished),
    ];
    let payload = prop_oneof![
        4 => (0_u8..12, 24_usize..200).prop_map(|(kind, length)| message(kind, length)),
        2 => (0_u8..12, 16_usize..26).prop_map(|(kind, length)| compact(kind, length)),
        1 => proptest::collection::vec(any::<u8>(), 0..64),
    ];
    let tags = proptest::collection::vec(prop_oneof![Just(0x8100), Just(0x88a8)], 0..4);
    let port = prop_oneof![4 => Just(PORT), 1 => any::<u16>()];
    let planted = (tags, ip, port, checksum, payload, 0_usize..8).prop_map(
        |(tags, ip, port, checksum, payload, padding)| {
            Planted { tags, ip, port, checksum, payload, padding }.bytes()
        },
    );
    let broken = (planted, proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4));
    let broken = (broken, proptest::option::weighted(0.2, any::<usize>()));
    let broken = broken.prop_map(|((mut frame, changes), cut)| {
        for (at, byte) in changes {
            let at = at % frame.len().min(90);
            frame[at] = byte;
        }
        if let Some(cut) = cut {
            frame.truncate(14 + cut % frame.len());
        }
        frame
    });
    let garbage = proptest::collection::vec(any::<u8>(), 14..120);
    let neighbours = prop_oneof![
        (0_u8..4, any::<bool>())
            .prop_map(|(operation, far)| { arp(operation, if far { FAR_V4 } else { NEAR_V4 }) }),
        (134_u8..138, any::<bool>(), any::<bool>()).prop_map(|(kind, to, target)| {
            let pick = |far| if far { FAR_V6 } else { [0x20; 16] };
            neighbour(kind, pick(to), pick(target))
        }),
    ];
    prop_oneof![8 => broken, 1 => garbage, 1 => neighbours]
}

/// As many frames as are tried on each program.
const CASES: u32 = 1_500;

#[test]
fn any_frame_is_steered_as_the_judge_says() {
    for messages in [Messages::to_ports(&[7, PORT]), owned()] {
        let Some((steering, _socket)) = steering(&Take::Messages(messages.clone())) else { return };
        let expected: RefCell<HashMap<Verdict, u64>> = RefCell::default();
        let mut runner = TestRunner::new(Config { cases: CASES, ..Config::default() });
        let outcome = runner.run(&any_frame(), |frame| {
            let tried = steering.try_on(&frame).unwrap();
            let verdict = judge::steered(&frame, &messages);
            *expected.borrow_mut().entry(verdict).or_default() += 1;
            let taken = matches!(verdict, Verdict::Handed | Verdict::Neighbour);
            prop_assert_eq!(tried.returned, if taken { REDIRECT } else { PASS });
            prop_assert_eq!(tried.frame, frame);
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
        let expected = expected.into_inner();
        let counts = steering.counts().unwrap();
        assert_eq!(counts.occurred().collect::<HashMap<_, _>>(), expected);
        assert!(expected.len() >= 5, "too few kinds of frames: {expected:?}");
    }
}

#[test]
fn any_frame_is_reflected_as_the_judge_says() {
    let to_addresses = Messages { neighbours: Vec::new(), ..owned() };
    for (messages, mode) in
        [(Messages::to_ports(&[7, PORT]), Mode::Native), (to_addresses, Mode::Generic)]
    {
        let Some(reflector) = ready(Reflector::load(&messages, &form(), mode)) else { return };
        let expected: RefCell<HashMap<Verdict, u64>> = RefCell::default();
        let mut runner = TestRunner::new(Config { cases: CASES, ..Config::default() });
        let outcome = runner.run(&any_frame(), |frame| {
            let tried = reflector.try_on(&frame).unwrap();
            let judged = judge::reflected(&frame, &messages, &form(), mode);
            *expected.borrow_mut().entry(judged.verdict).or_default() += 1;
            let fault = is_as_judged(&frame, &tried, &judged);
            prop_assert!(fault.is_empty(), "{} {}", judged.verdict, fault);
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
        let expected = expected.into_inner();
        let counts = reflector.counts().unwrap();
        assert_eq!(counts.occurred().collect::<HashMap<_, _>>(), expected);
        assert!(expected.contains_key(&Verdict::Answered), "{expected:?}");
    }
}
