//! `whylate device --captures`: two captures with planted latency, loss and duplicates, in every format
//! that is read, tell of the box what was planted.

use std::path::Path;
use std::process::Output;

use whylate_model::Nanos;
use whylate_model::device::{CapturedWay, Device, PacketPoint};
use whylate_model::flow::Direction;
use whylate_model::run::Run;
use whylate_model::series::Definition;

use crate::program::{read, said, whylate};
use crate::requests::{logged, series};

/// A second of 2026, where the captures begin.
const BEGIN: u64 = 1_790_000_000;

/// A packet and when it was seen, in nanoseconds after [`BEGIN`].
type Seen = (u64, Vec<u8>);

/// A datagram from one host to another with a number in it, and this time to live.
fn frame(from: u8, to: u8, number: u64, ttl: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
    frame.extend([0x45, 0, 0, 60, 0, 0, 0, 0, ttl, 17, 0, u8::MAX - ttl]);
    frame.extend([198, 18, 0, from, 198, 18, 0, to, 0, 7, 0, 7, 0, 40, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(14 + 60, 0x5a);
    frame
}

/// A pcap in nanoseconds, or in microseconds.
fn pcap(seen: &[Seen], nanos: bool) -> Vec<u8> {
    let magic: u32 = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = magic.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    for number in [0_u32, 0, 65_535, 1] {
        file.extend(number.to_le_bytes());
    }
    for (at, bytes) in seen {
        let part = at % 1_000_000_000 / if nanos { 1 } else { 1_000 };
        let (second, length) = ((BEGIN + at / 1_000_000_000) as u32, bytes.len() as u32);
        for number in [second, part as u32, length, length] {
            file.extend(number.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}

/// The same as a capture card of Endace writes it.
fn erf(seen: &[Seen]) -> Vec<u8> {
    let mut file = Vec::new();
    for (at, bytes) in seen {
        let (second, rest) = (BEGIN + at / 1_000_000_000, at % 1_000_000_000);
        // Rounded up: reading rounds down to whole nanoseconds.
        let part = (rest << 32).div_ceil(1_000_000_000);
        file.extend(((second << 32) | part).to_le_bytes());
        let record = (16 + 2 + bytes.len()) as u16;
        file.extend([2, 4]);
        file.extend(record.to_be_bytes());
        file.extend([0, 0]);
        file.extend((bytes.len() as u16).to_be_bytes());
        file.extend([0, 0]);
        file.extend(bytes);
    }
    file
}

/// The same as a pcapng whose one interface counts in nanoseconds.
fn pcapng(seen: &[Seen]) -> Vec<u8> {
    let block = |kind: u32, content: &[u8]| {
        let mut block = kind.to_le_bytes().to_vec();
        let padded = content.len().next_multiple_of(4);
        let length = (padded as u32 + 12).to_le_bytes();
        block.extend(length);
        block.extend(content);
        block.resize(8 + padded, 0);
        block.extend(length);
        block
    };
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    let mut file = block(0x0a0d_0d0a, &section);
    // Ethernet, whole packets, and the option for steps of 10^-9 s.
    file.extend(block(1, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]));
    for (at, bytes) in seen {
        let at = BEGIN * 1_000_000_000 + at;
        let length = bytes.len() as u32;
        let mut packet = Vec::new();
        for number in [0, (at >> 32) as u32, at as u32, length, length] {
            packet.extend(number.to_le_bytes());
        }
        packet.extend(bytes);
        file.extend(block(6, &packet));
    }
    file
}

fn ended(home: &Path, (before, behind): (&str, &str), words: &str) -> Output {
    let mut command = whylate(["device", "--captures"]);
    command.arg(home.join(before)).arg(home.join(behind));
    command.args(words.split_whitespace()).arg("-o").arg(home.join("run"));
    command.output().unwrap()
}

/// Both files, judged: the run and what was printed.
fn judged(
    before: (&str, &[u8]),
    behind: (&str, &[u8]),
    words: &str,
) -> (tempfile::TempDir, Run, String) {
    let home = tempfile::tempdir().unwrap();
    for (name, content) in [before, behind] {
        std::fs::write(home.path().join(name), content).unwrap();
    }
    let output = ended(home.path(), (before.0, behind.0), words);
    // Sentences, however they were wrapped.
    let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(matches!(output.status.code(), Some(0 | 4)), "{text}");
    let run = read(&home.path().join("run"));
    (home, run, text)
}

fn device(run: &Run) -> &Device {
    run.device.as_deref().expect("a device")
}

fn way(run: &Run, direction: Direction) -> &CapturedWay {
    let ways = &device(run).captures.as_ref().expect("two captures").ways;
    ways.iter().find(|way| way.direction == direction).expect("this way")
}

/// A thousand packets 10 us apart that take 2 us and 500 ns there, and as many that take 3 us back.
fn planted() -> (Vec<Seen>, Vec<Seen>) {
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    for number in 0..1_000 {
        let at = number * 10_000;
        let there = frame(1, 2, number, 64);
        before.push((at, there.clone()));
        behind.push((at + 2_500, there));
        let back = frame(2, 1, number, 64);
        behind.push((at + 5_000, back.clone()));
        before.push((at + 8_000, back));
    }
    (before, behind)
}

#[test]
fn a_planted_latency_is_found_in_both_ways_in_every_format() {
    let (before, behind) = planted();
    let files = [
        (("in.pcap", pcap(&before, true)), ("out.pcap", pcap(&behind, true))),
        (("in.erf", erf(&before)), ("out.erf", erf(&behind))),
        (("in.pcapng", pcapng(&before)), ("out.pcapng", pcapng(&behind))),
        (("in.pcap", pcap(&before, true)), ("out.erf", erf(&behind))),
    ];
    for ((before, one), (behind, other)) in &files {
        let (home, run, text) = judged((before, one), (behind, other), "");
        for (direction, took) in [(Direction::There, 2_500), (Direction::Back, 3_000)] {
            let way = way(&run, direction);
            let rest = (way.lost, way.duplicates, way.only_out, way.ambiguous, way.backwards);
            assert_eq!((way.matched, rest), (1_000, (0, 0, 0, 0, 0)), "{before} {behind}: {way:?}");
            let name = way.series.as_deref().expect("a series");
            let of = series(&run, name).unwrap();
            assert_eq!((of.definition, of.n), (Definition::Residence, 1_000));
            // Stamps of 2^-32 s are read down to whole nanoseconds.
            let (min, max) = (of.min.unwrap().0, of.max.unwrap().0);
            assert!(min >= took - 1 && max <= took + 1, "{before} {behind}: {min} {max}");
            assert_eq!(logged(&home.path().join("run"), name).len(), 1_000);
        }
        assert!(text.contains("2,000 frames are in both captures"), "{text}");
        assert!(text.contains("clocks: that of whoever captured each file"), "{text}");
    }
}

#[test]
fn the_point_of_a_packet_is_told_by_whoever_knows_it_and_else_not_known() {
    let (before, behind) = planted();
    let (one, other) = (pcap(&before, true), erf(&behind));
    let points = |words: &str| {
        let (_home, run, text) = judged(("in.pcap", &one), ("out.erf", &other), words);
        (way(&run, Direction::There).point, way(&run, Direction::Back).point, text)
    };
    let (there, back, text) = points("");
    assert_eq!((there, back), (PacketPoint::Unknown, PacketPoint::Unknown));
    assert!(text.contains("was not told (--stamped)"), "{text}");
    let (there, back, text) = points("--stamped end");
    assert_eq!((there, back), (PacketPoint::EndToEnd, PacketPoint::EndToEnd));
    assert!(text.contains("as it was told: end of the packet to its end"), "{text}");
    let (there, back, _) = points("--stamped start,end");
    assert_eq!((there, back), (PacketPoint::StartToEnd, PacketPoint::EndToStart));
    let home = tempfile::tempdir().unwrap();
    let refused = ended(home.path(), ("in.pcap", "out.erf"), "--stamped end,end,end");
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
}

#[test]
fn planted_losses_and_duplicates_are_counted_exactly_and_give_no_latency() {
    let (before, mut behind) = planted();
    // Every tenth of those there is gone, and five of them are there twice.
    let there = |bytes: &[u8]| bytes[29] == 1;
    let mut number = 0;
    behind.retain(|(_, bytes)| {
        number += u64::from(there(bytes));
        !there(bytes) || number % 10 != 4
    });
    let copies: Vec<Seen> = behind
        .iter()
        .filter(|(_, bytes)| there(bytes))
        .take(5)
        .map(|(at, bytes)| (at + 900, bytes.clone()))
        .collect();
    behind.extend(copies);
    behind.sort_by_key(|(at, _)| *at);
    let files = (("in.pcap", pcap(&before, true)), ("out.pcap", pcap(&behind, true)));
    let ((before, one), (behind, other)) = &files;
    let (_home, run, text) = judged((before, one), (behind, other), "");
    let there = way(&run, Direction::There);
    assert_eq!((there.matched, there.lost, there.duplicates), (900, 100, 5), "{there:?}");
    let of = series(&run, there.series.as_deref().unwrap()).unwrap();
    assert_eq!((of.min, of.max), (Some(Nanos(2_500)), Some(Nanos(2_500))));
    assert_eq!(of.lost, 100);
    let back = way(&run, Direction::Back);
    assert_eq!((back.matched, back.lost, back.duplicates), (1_000, 0, 0), "{back:?}");
    assert!(text.contains("100 went in and did not come out"), "{text}");
}

#[test]
fn what_a_router_changes_is_left_out_where_that_is_said() {
    let before: Vec<Seen> = (0..100).map(|n| (n * 10_000, frame(1, 2, n, 64))).collect();
    let routed = |n: u64| {
        let mut bytes = frame(1, 2, n, 63);
        bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        bytes
    };
    let behind: Vec<Seen> = (0..100).map(|n| (n * 10_000 + 700, routed(n))).collect();
    let (one, other) = (pcap(&before, true), pcap(&behind, true));
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("in.pcap"), &one).unwrap();
    std::fs::write(home.path().join("out.pcap"), &other).unwrap();
    let refused = ended(home.path(), ("in.pcap", "out.pcap"), "");
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("no packet in common"), "{}", said(&refused));
    let (_home, run, _) = judged(("in.pcap", &one), ("out.pcap", &other), "--ignore mac,ttl");
    assert_eq!(way(&run, Direction::There).matched, 100);
    let captures = device(&run).captures.as_ref().unwrap();
    assert_eq!(captures.left_out, ["mac", "ttl"]);
}

#[test]
fn what_lies_below_the_step_of_a_file_is_told_as_that() {
    let before: Vec<Seen> = (0..400).map(|n| (n * 10_000, frame(1, 2, n, 64))).collect();
    let behind: Vec<Seen> = before.iter().map(|(at, bytes)| (at + 400, bytes.clone())).collect();
    let (one, other) = (pcap(&before, false), pcap(&behind, false));
    let (_home, run, text) = judged(("in.pcap", &one), ("out.pcap", &other), "");
    let captures = device(&run).captures.as_ref().unwrap();
    assert!((captures.resolution_ns - 1_000.0).abs() < 1e-9, "{captures:?}");
    let of = series(&run, "captured-there").unwrap();
    assert!((of.resolution_ns - 1_000.0).abs() < 1e-9);
    assert_eq!((of.n, of.max), (400, Some(Nanos(0))), "{of:?}");
    assert!(
        text.replace('µ', "u").contains("<1 us"),
        "a time below the step has no other number: {text}"
    );
}

#[test]
fn files_that_are_no_captures_or_cut_short_are_refused_with_the_reason() {
    let (before, behind) = planted();
    let (one, mut other) = (pcap(&before, true), pcap(&behind, true));
    other.truncate(other.len() - 10);
    let home = tempfile::tempdir().unwrap();
    for (name, content) in
        [("in.pcap", &one[..]), ("cut.pcap", &other[..]), ("text.pcap", b"no capture at all")]
    {
        std::fs::write(home.path().join(name), content).unwrap();
    }
    for (behind, expected) in [
        ("cut.pcap", "truncated"),
        ("text.pcap", "begins like neither pcap nor pcapng"),
        ("gone.pcap", "cannot read the capture"),
    ] {
        let refused = ended(home.path(), ("in.pcap", behind), "");
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(said(&refused).contains(expected), "{}", said(&refused));
        assert!(!home.path().join("run").exists(), "{behind}: something is left of nothing");
    }
    let taken = ended(home.path(), ("in.pcap", "cut.pcap"), "--cut");
    assert!(matches!(taken.status.code(), Some(0 | 4)), "{}", said(&taken));
    let run = read(&home.path().join("run"));
    assert!(device(&run).notes.iter().any(|note| note.contains("ends in the middle of a packet")));
}
