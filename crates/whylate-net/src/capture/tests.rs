//! Captures of every kind, whole and otherwise, and what an independent reader makes of them.

use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    pub(super) fn u16(self, value: u16) -> [u8; 2] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(super) fn u32(self, value: u32) -> [u8; 4] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(super) fn u64(self, value: u64) -> [u8; 8] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }
}

/// A pcap whose packets were seen at these nanoseconds, and have so many bytes.
pub(super) fn pcap(order: Order, nanos: bool, packets: &[(u64, u32)]) -> Vec<u8> {
    let magic = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = order.u32(magic).to_vec();
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    for number in [0, 0, 65_535, 1] {
        file.extend(order.u32(number));
    }
    for &(at, bytes) in packets {
        let part = at % 1_000_000_000 / if nanos { 1 } else { 1_000 };
        for number in [(at / 1_000_000_000) as u32, part as u32, bytes, bytes] {
            file.extend(order.u32(number));
        }
        file.extend(vec![7; bytes as usize]);
    }
    file
}

pub(super) fn block(order: Order, kind: u32, content: &[u8]) -> Vec<u8> {
    let padded = content.len().next_multiple_of(4);
    let length = order.u32(padded as u32 + 12);
    let mut block = order.u32(kind).to_vec();
    block.extend(length);
    block.extend(content);
    block.resize(8 + padded, 0);
    block.extend(length);
    block
}

pub(super) fn section(order: Order) -> Vec<u8> {
    let mut content = order.u32(0x1a2b_3c4d).to_vec();
    content.extend([order.u16(1), order.u16(0)].concat());
    content.extend(order.u64(u64::MAX));
    block(order, 0x0a0d_0d0a, &content)
}

pub(super) fn interface(order: Order, resolution: Option<u8>, offset: Option<i64>) -> Vec<u8> {
    let mut content = [order.u16(1), order.u16(0)].concat();
    content.extend(order.u32(65_535));
    let mut option = |code: u16, value: &[u8]| {
        content.extend(order.u16(code));
        content.extend(order.u16(value.len() as u16));
        content.extend(value);
        content.resize(content.len().next_multiple_of(4), 0);
    };
    option(2, b"lo");
    if let Some(resolution) = resolution {
        option(9, &[resolution]);
    }
    if let Some(offset) = offset {
        option(14, &order.u64(offset.cast_unsigned()));
    }
    option(0, &[]);
    block(order, 1, &content)
}

pub(super) fn enhanced(order: Order, interface: u32, units: u64, bytes: u32) -> Vec<u8> {
    let mut content = Vec::new();
    for number in [interface, (units >> 32) as u32, units as u32, bytes, bytes] {
        content.extend(order.u32(number));
    }
    content.extend(vec![9; bytes as usize]);
    block(order, 6, &content)
}

fn parse(file: &[u8]) -> Result<Capture, CaptureError> {
    Capture::parse(Path::new("replay.pcap"), file, Cut::Refused)
}

fn nanos(capture: &Capture) -> Vec<u64> {
    capture.instants.iter().map(|at| at.0 / 1_000).collect()
}

fn refusal(file: &[u8]) -> String {
    parse(file).unwrap_err().to_string()
}

const AT: u64 = 1_700_000_000_000_000_000;
const PACKETS: [(u64, u32); 4] =
    [(AT + 999_000, 60), (AT + 1_007_000, 1), (AT + 1_007_000, 0), (AT + 3_000_000_000, 1_500)];

#[test]
fn a_capture_is_read_in_either_order_and_resolution_with_its_times_from_the_first_packet() {
    let expected = [0, 8_000, 8_000, 2_999_001_000];
    for order in [Order::Little, Order::Big] {
        for nanos_kept in [false, true] {
            let capture = parse(&pcap(order, nanos_kept, &PACKETS)).unwrap();
            assert_eq!(nanos(&capture), expected, "{order:?} {nanos_kept}");
        }
        // Powers of ten and of two, a resolution left out, and one interface of an hour later.
        for (resolution, per_second) in
            [(None, 1_000_000), (Some(9), 1_000_000_000), (Some(3), 1_000), (Some(0x94), 1 << 20)]
        {
            let mut file = section(order);
            file.extend(interface(order, resolution, None));
            file.extend(interface(order, resolution, Some(3_600)));
            file.extend(block(order, 5, b"statistics, passed over"));
            file.extend(enhanced(order, 0, 5_000 * per_second, 61));
            file.extend(enhanced(order, 0, 5_001 * per_second, 0));
            file.extend(enhanced(order, 1, 1_401 * per_second + per_second / 2, 4));
            let capture = parse(&file).unwrap();
            let expected = [0, 1_000_000_000, 1_500_000_000];
            assert_eq!(nanos(&capture), expected, "{order:?} {resolution:?}");
        }
    }
}

#[test]
fn a_second_section_has_an_order_and_interfaces_of_its_own() {
    let mut file = section(Order::Little);
    file.extend(interface(Order::Little, Some(9), None));
    file.extend(enhanced(Order::Little, 0, 5_000, 3));
    file.extend(section(Order::Big));
    let without = [file.clone(), enhanced(Order::Big, 0, 6, 3)].concat();
    assert!(refusal(&without).contains("interface 0, which was not described, after 1 whole"));
    file.extend(interface(Order::Big, Some(6), None));
    file.extend(enhanced(Order::Big, 0, 6, 3));
    assert_eq!(nanos(&parse(&file).unwrap()), [0, 1_000]);
}

/// What the crate pcap-parser takes for the times of a file's packets, in nanoseconds.
fn read_by_another(file: &[u8]) -> Vec<u64> {
    let mut reader = create_reader(1 << 16, file).unwrap();
    let (mut times, mut nanos, mut resolutions) = (Vec::new(), false, Vec::new());
    loop {
        match reader.next() {
            Ok((offset, found)) => {
                match found {
                    PcapBlockOwned::LegacyHeader(header) => {
                        nanos = header.is_nanosecond_precision();
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        let part = u64::from(packet.ts_usec) * if nanos { 1 } else { 1_000 };
                        times.push(u64::from(packet.ts_sec) * 1_000_000_000 + part);
                    }
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        resolutions.push(interface.ts_resolution().unwrap());
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let per_second = resolutions[packet.if_id as usize];
                        let (seconds, part) = packet.decode_ts(0, per_second);
                        let part = u64::from(part) * (1_000_000_000 / per_second);
                        times.push(u64::from(seconds) * 1_000_000_000 + part);
                    }
                    PcapBlockOwned::NG(_) => (),
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return times,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn a_truncated_capture_is_refused_with_its_whole_packets_or_taken_up_to_there_when_asked() {
    let whole = pcap(Order::Little, true, &PACKETS);
    for (length, packets) in [(whole.len() - 1, 3), (24 + 16 + 60 + 5, 1), (24 + 3, 0), (20, 0)] {
        let cut = &whole[..length];
        let told = refusal(cut);
        assert!(told.contains("truncated"), "{told}");
        assert!(told.contains(&format!("after {packets} whole packets")), "{told}");
        let taken = Capture::parse(Path::new("x"), cut, Cut::Taken);
        match packets {
            3 => assert_eq!(
                (nanos(taken.as_ref().unwrap()).len(), taken.unwrap().was_cut),
                (3, true)
            ),
            _ => assert!(matches!(taken, Err(CaptureError::NoDistance { .. })), "{length}"),
        }
    }
    let mut file = section(Order::Big);
    file.extend(interface(Order::Big, None, None));
    file.extend(enhanced(Order::Big, 0, 7, 30));
    file.extend(enhanced(Order::Big, 0, 9, 30));
    for length in [file.len() - 1, file.len() - 40] {
        let told = refusal(&file[..length]);
        assert!(told.contains("after 1 whole packets"), "{told}");
    }
    assert!(!parse(&file).unwrap().was_cut);
}

#[test]
fn times_going_back_are_refused_by_the_number_of_their_packet() {
    let back = [(AT, 5), (AT + 9_000, 5), (AT + 4_000, 5)];
    let told = refusal(&pcap(Order::Big, false, &back));
    assert!(told.contains("packet 3 was seen 5.00us before"), "{told}");
}

#[test]
fn what_cannot_be_is_refused_by_name_and_costs_no_memory() {
    let mut huge = pcap(Order::Little, false, &PACKETS[..1]);
    huge.extend([1, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let mut late = pcap(Order::Little, false, &PACKETS[..1]);
    late.extend([1, 0, 0, 0, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut ng = section(Order::Little);
    let mut odd = ng.clone();
    odd.extend([6, 0, 0, 0, 13, 0, 0, 0]);
    let mut simple = ng.clone();
    simple.extend(block(Order::Little, 3, &[0; 16]));
    ng.extend(interface(Order::Little, Some(31), None));
    let mut uneven = section(Order::Little);
    let last = uneven.len() - 1;
    uneven[last] = 1;
    for (file, words) in [
        (&b""[..], "neither pcap nor pcapng"),
        (b"\x1f\x8b\x08\x00", "if it is compressed"),
        (b"\xd4\xc3", "truncated"),
        (&huge, "4294967295 bytes"),
        (&late, "a packet 1000000 of 1000000 into a second"),
        (&odd, "a block of 13 bytes"),
        (&simple, "which has no time"),
        (&ng, "a resolution of 0x1f"),
        (&uneven, "ends as one of"),
        (&pcap(Order::Little, false, &[]), "0 packets and no distance"),
        (&pcap(Order::Little, false, &PACKETS[..1]), "1 packets and no distance"),
        (&pcap(Order::Little, false, &PACKETS[1..3]), "2 packets and no distance"),
    ] {
        let told = refusal(file);
        assert!(told.contains(words), "no `{words}` in {told}");
    }
    let told = Capture::read(Path::new("/dev/zero"), Cut::Refused).unwrap_err().to_string();
    assert!(told.contains("no plain file"), "{told}");
    let told = Capture::read(Path::new("/nosuchfile"), Cut::Refused).unwrap_err().to_string();
    assert!(told.contains("/nosuchfile"), "{told}");
}

proptest! {
    #[test]
    fn what_another_reader_finds_in_a_capture_is_what_is_replayed(
        gaps in proptest::collection::vec((0_u64..5_000_000, 0_u32..200), 2..40),
        big: bool,
        kind in 0..3,
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let mut at = AT;
        // Whole microseconds, which every kind can tell.
        let packets: Vec<(u64, u32)> = gaps.iter().map(|&(gap, bytes)| {
            at += gap * 1_000;
            (at, bytes)
        }).collect();
        prop_assume!(packets[0].0 != at);
        let file = match kind {
            0 => pcap(order, false, &packets),
            1 => pcap(order, true, &packets),
            _ => {
                let mut file = [section(order), interface(order, Some(9), None)].concat();
                for &(at, bytes) in &packets {
                    file.extend(enhanced(order, 0, at, bytes));
                }
                file
            }
        };
        let theirs = read_by_another(&file);
        let since: Vec<u64> = theirs.iter().map(|at| at - theirs[0]).collect();
        prop_assert_eq!(nanos(&parse(&file).unwrap()), since);
    }

    #[test]
    fn any_bytes_are_a_capture_or_refused_and_instants_never_go_back(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        magic in 0..4,
        big: bool,
        cut: bool,
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let begin = match magic {
            0 => Vec::new(),
            1 => pcap(order, true, &[]),
            2 => section(order),
            _ => [section(order), interface(order, Some(9), None)].concat(),
        };
        let file = [begin, bytes].concat();
        let cut = if cut { Cut::Taken } else { Cut::Refused };
        if let Ok(capture) = Capture::parse(Path::new("x"), &file[..], cut) {
            prop_assert!(capture.instants.is_sorted());
            prop_assert_eq!(capture.instants[0], Picos(0));
        }
    }
}
