//! What a tap saw: planted bytes of every format, cut, damaged, and beside an independent reader.

use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use proptest::prelude::*;

use super::super::tests::{Order, block, enhanced, interface, pcap, section};
use super::*;

const SECOND: u64 = 1_700_000_000;
const AT: u64 = SECOND * 1_000_000_000;

type Seen = (u64, u16, Vec<u8>, u32);

fn read(name: &str, file: &[u8], cut: Cut) -> Result<(CaptureFacts, Vec<Seen>), CaptureError> {
    let mut seen = Vec::new();
    let facts = packets_of(Path::new(name), file, cut, &mut |packet| {
        seen.push((packet.at.0, packet.link, packet.bytes.to_vec(), packet.length));
    })?;
    Ok((facts, seen))
}

/// A record of ERF: its time in seconds and 2^-32 of one, and everything behind.
fn erf(
    seconds: u64,
    part: u32,
    kind: u8,
    flags: u8,
    lost: u16,
    frame: &[u8],
    ext: &[u8],
) -> Vec<u8> {
    let mut record = (seconds << 32 | u64::from(part)).to_le_bytes().to_vec();
    let padding = if [2, 11, 16, 20].contains(&(kind & 0x7f)) { 2 } else { 0 };
    let whole = (16 + ext.len() + padding + frame.len()).next_multiple_of(8);
    record.extend([kind, flags]);
    record.extend((whole as u16).to_be_bytes());
    record.extend(lost.to_be_bytes());
    record.extend((frame.len() as u16).to_be_bytes());
    record.extend(ext);
    record.extend(vec![0xee; padding]);
    record.extend(frame);
    record.resize(whole, 0xdd);
    record
}

#[test]
fn nanoseconds_and_bytes_of_a_pcap_are_those_planted_in_either_order() {
    let planted = [(AT + 1, 60), (AT + 999_999_999, 1), (AT + 3_000_000_007, 1_514)];
    for order in [Order::Little, Order::Big] {
        let (facts, seen) = read("x", &pcap(order, true, &planted), Cut::Refused).unwrap();
        let expected: Vec<Seen> =
            planted.iter().map(|&(at, n)| (at, 1, vec![7; n as usize], n)).collect();
        assert_eq!(seen, expected, "{order:?}");
        assert_eq!((facts.format, facts.resolution_ps, facts.packets), ("pcap", 1_000, 3));
        let (facts, seen) = read("x", &pcap(order, false, &planted), Cut::Refused).unwrap();
        assert_eq!((facts.resolution_ps, seen[0].0), (1_000_000, AT), "whole microseconds");
    }
}

#[test]
fn losses_that_a_pcapng_tells_are_counted_once_though_it_tells_them_again() {
    for order in [Order::Little, Order::Big] {
        let told = |lost: u64| {
            let mut content = [order.u32(0), order.u32(1), order.u32(2)].concat();
            content.extend([order.u16(5), order.u16(8)].concat());
            content.extend(order.u64(lost));
            content.extend([0; 4]);
            block(order, 5, &content)
        };
        let mut file = [section(order), interface(order, Some(9), None)].concat();
        file.extend(told(3));
        file.extend(enhanced(order, 0, AT + 5, 61));
        file.extend(enhanced(order, 0, AT + 4, 2));
        file.extend(told(10));
        let (facts, seen) = read("x", &file, Cut::Refused).unwrap();
        assert_eq!((facts.lost, facts.packets, facts.back), (10, 2, 1), "{order:?}");
        assert_eq!((facts.format, facts.resolution_ps), ("pcapng", 1_000));
        assert_eq!(seen[0], (AT + 5, 1, vec![9; 61], 61));
    }
}

#[test]
fn records_of_erf_are_read_with_their_fractions_extensions_and_losses() {
    let half = 1 << 31;
    let mut file = erf(SECOND, half, 2, 4, 0, &[1; 60], &[]);
    // One extension header, then two; what is in them is passed over.
    file.extend(erf(SECOND, half + 43, 0x82, 4, 5, &[2; 61], &[3, 9, 9, 9, 9, 9, 9, 9]));
    let two = [0x83, 0, 0, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0, 0, 0];
    file.extend(erf(SECOND + 1, 0, 0x82, 4, 2, &[3; 62], &two));
    // A colour is no loss; another type, and a frame with an error, are counted and passed over.
    file.extend(erf(SECOND + 2, 0, 11, 4, 999, &[4; 70], &[]));
    file.extend(erf(SECOND + 3, 0, 1, 4, 999, &[5; 90], &[]));
    file.extend(erf(SECOND + 4, 0, 2, 0x14, 1, &[6; 90], &[]));
    let (facts, seen) = read("tap.ERF", &file, Cut::Refused).unwrap();
    let expected: [Seen; 4] = [
        (AT + 500_000_000, 1, vec![1; 60], 60),
        // 43 / 2^32 s are 10.01 ns.
        (AT + 500_000_010, 1, vec![2; 61], 61),
        (AT + 1_000_000_000, 1, vec![3; 62], 62),
        (AT + 2_000_000_000, 1, vec![4; 70], 70),
    ];
    assert_eq!(seen, expected);
    assert_eq!((facts.format, facts.packets, facts.lost, facts.skipped), ("ERF", 4, 8, 2));
    assert_eq!(facts.resolution_ps, 233);
    let other = read("tap.bin", &file, Cut::Refused).unwrap_err();
    assert!(matches!(other, CaptureError::Unknown { .. }), "nothing but its name tells: {other}");
    let replayed = super::super::Capture::parse(Path::new("tap.erf"), &file[..], Cut::Refused);
    let lasts = replayed.unwrap().lasts();
    assert_eq!(lasts, Nanos(1_500_000_000));
}

#[test]
fn records_of_erf_that_cannot_be_or_are_cut_are_refused_with_the_packets_before_them() {
    let good = erf(SECOND, 0, 2, 4, 0, &[1; 60], &[]);
    let mut short = good.clone();
    short[10..12].copy_from_slice(&15_u16.to_be_bytes());
    let mut no_room = good.clone();
    no_room[10..12].copy_from_slice(&17_u16.to_be_bytes());
    let mut endless = good.clone();
    endless[8] |= 0x80;
    endless[16] |= 0x80;
    endless[24..].fill(0xff);
    for (damaged, words) in
        [(short, "15 bytes"), (no_room, "17 bytes"), (endless, "bytes, too few")]
    {
        let file = [good.clone(), damaged].concat();
        let told = read("x.erf", &file, Cut::Refused).unwrap_err().to_string();
        assert!(told.contains(words) && told.contains("after 1 whole"), "{told}");
    }
    let two = [good.clone(), good.clone()].concat();
    for length in [good.len() + 1, good.len() + 17, two.len() - 1] {
        let told = read("x.erf", &two[..length], Cut::Refused).unwrap_err();
        assert!(matches!(told, CaptureError::Truncated { packets: 1, .. }), "{told}");
        let (facts, _) = read("x.erf", &two[..length], Cut::Taken).unwrap();
        assert_eq!((facts.packets, facts.was_cut), (1, true));
    }
}

#[test]
fn a_file_that_is_cut_anywhere_says_how_many_of_its_bytes_were_not_taken() {
    let planted = [(AT, 60), (AT + 5, 33), (AT + 9, 1_500)];
    let ng = |order| {
        let mut file = [section(order), interface(order, Some(9), None)].concat();
        for (at, length) in planted {
            file.extend(enhanced(order, 0, at, length));
        }
        file
    };
    let one = erf(SECOND, 0, 2, 4, 0, &[1; 60], &[]);
    let files = [
        ("x", pcap(Order::Little, true, &planted)),
        ("x", pcap(Order::Big, true, &planted)),
        ("x", ng(Order::Little)),
        ("x", ng(Order::Big)),
        ("x.erf", [one.clone(), one.clone(), one].concat()),
    ];
    for (name, file) in files {
        let mut taken = 0;
        // Enough for its first four bytes to tell what it is.
        for length in 4..=file.len() {
            let (facts, seen) = read(name, &file[..length], Cut::Taken).unwrap();
            assert_eq!(facts.packets, seen.len() as u64);
            let whole = length - facts.cut_bytes as usize;
            assert_eq!(facts.was_cut, whole < length, "{name} {length}");
            assert!(whole >= taken, "{name} {length}");
            taken = whole;
            // Those bytes alone are a capture that nobody cut, with the same packets.
            if whole > 0 {
                let (again, same) = read(name, &file[..whole], Cut::Refused).unwrap();
                assert_eq!((again.was_cut, again.cut_bytes, same), (false, 0, seen));
            }
        }
        assert_eq!(taken, file.len());
    }
}

#[test]
fn a_packet_of_no_possible_time_is_refused() {
    let mut file = [section(Order::Little), interface(Order::Little, Some(9), Some(-9))].concat();
    file.extend(enhanced(Order::Little, 0, 5, 3));
    let told = read("x", &file, Cut::Refused).unwrap_err().to_string();
    assert!(told.contains("before 1970"), "{told}");
}

/// What the crate pcap-parser finds: the bytes of each packet.
fn bytes_by_another(file: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = create_reader(1 << 17, file).unwrap();
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                match block {
                    PcapBlockOwned::Legacy(packet) => found.push(packet.data.to_vec()),
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        found.push(packet.data[..packet.caplen as usize].to_vec());
                    }
                    _ => (),
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return found,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

proptest! {
    #[test]
    fn bytes_of_packets_are_those_that_another_reader_finds(
        lengths in proptest::collection::vec(0_u32..2_000, 1..20),
        big: bool,
        ng: bool,
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let file = if ng {
            let mut file = [section(order), interface(order, Some(9), None)].concat();
            for &length in &lengths {
                file.extend(enhanced(order, 0, AT, length));
            }
            file
        } else {
            let packets: Vec<(u64, u32)> = lengths.iter().map(|&length| (AT, length)).collect();
            pcap(order, true, &packets)
        };
        let (_, seen) = read("x", &file, Cut::Refused).unwrap();
        let ours: Vec<Vec<u8>> = seen.into_iter().map(|(_, _, bytes, _)| bytes).collect();
        prop_assert_eq!(ours, bytes_by_another(&file));
    }

    #[test]
    fn any_records_of_erf_are_packets_or_a_reason(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        kind in 0_u8..=255,
    ) {
        let file = [erf(SECOND, 0, 2, 4, 0, &[1; 60], &[]), bytes].concat();
        if let Ok((facts, seen)) = read("x.erf", &file, Cut::Taken) {
            prop_assert_eq!(facts.packets, seen.len() as u64);
            prop_assert!(seen.iter().all(|(_, _, bytes, length)| bytes.len() <= *length as usize));
        }
        let mut changed = erf(SECOND, 0, 2, 4, 0, &[1; 60], &[0; 8]);
        changed[8] = kind;
        let _ = read("x.erf", &changed, Cut::Taken);
    }
}
