//! Requests one by one: written in segments, read back in order, never trusted; and what others make
//! of a capture file.

use std::path::Path;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whylate_model::packet::{Outcome, StoredPacket};
use whylate_model::pcapng::{Carrier, Direction, PACKETS_FILE, Packet, PacketFile};
use whylate_model::segments::{Limits, Writer, decode_jobs, decode_packets, import, read_packets};
use whylate_model::{Nanos, RunDir, Ticks};

use crate::segments::segment_files;

fn new_run() -> (tempfile::TempDir, RunDir) {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    (place, directory)
}

fn any_packet() -> impl Strategy<Value = StoredPacket> {
    let outcome = prop_oneof![
        Just(Outcome::Answered),
        Just(Outcome::Unanswered),
        Just(Outcome::Refused),
        Just(Outcome::NeverSent),
        Just(Outcome::OneWay),
    ];
    let ticks = || option::of(any::<u64>().prop_map(Ticks));
    let time = || option::of(any::<u64>().prop_map(Nanos));
    let numbers = (any::<u16>(), option::of(any::<u64>()), any::<u64>().prop_map(Ticks));
    (numbers, (ticks(), ticks()), outcome, (time(), time(), time())).prop_map(
        |((flow, number, at), (intended, sent), outcome, (service, response, lateness))| {
            StoredPacket { flow, number, intended, sent, at, outcome, service, response, lateness }
        },
    )
}

/// A segment with a few rows.
fn whole_segment() -> Vec<u8> {
    let (_place, directory) = new_run();
    let mut writer = Writer::new(&directory, Ticks(5), Limits::default());
    for number in 0..40 {
        writer
            .push_packet(&StoredPacket {
                flow: 0,
                number: Some(number),
                intended: Some(Ticks(number * 10)),
                sent: Some(Ticks(number * 10 + 1)),
                at: Ticks(number * 10 + 5),
                outcome: Outcome::Answered,
                service: Some(Nanos(4)),
                response: Some(Nanos(5)),
                lateness: Some(Nanos(1)),
            })
            .unwrap();
    }
    writer.checkpoint().unwrap();
    std::fs::read(&segment_files(&directory)[0]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_requests_come_back_as_they_were_pushed_and_are_taken_over_by_a_sum(
        packets in vec(any_packet(), 1..60),
        rows in 1_usize..20,
    ) {
        let (_place, directory) = new_run();
        let limits = Limits { gap_rows: rows, ..Limits::default() };
        let mut writer = Writer::new(&directory, Ticks(7), limits);
        for packet in &packets {
            writer.push_packet(packet).unwrap();
        }
        writer.checkpoint().unwrap();
        let back: Vec<_> = read_packets(&directory).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&back, &packets);
        let (_other, sum) = new_run();
        for (number, segment) in (1..).zip(writer.segments()) {
            let taken = import(&directory, &segment, &sum, number).unwrap();
            prop_assert_eq!(taken.rows, segment.rows);
        }
        prop_assert_eq!(read_packets(&sum).unwrap().count(), packets.len());
    }

    #[test]
    fn changed_bytes_of_requests_give_rows_or_an_error(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut content = whole_segment();
        for (place, value) in &changes {
            let at = place.index(content.len());
            content[at] = *value;
        }
        let _ = decode_packets(Path::new("packets"), content);
    }

    #[test]
    fn any_messages_make_a_capture_of_whole_blocks(
        messages in vec((any::<u64>(), any::<bool>(), vec(any::<u8>(), 0..300), 0_usize..70_000), 0..9),
        six: bool,
        stream: bool,
    ) {
        let end = |port: u16| {
            let address = if six { "::1" } else { "127.0.0.1" };
            (address.parse::<std::net::IpAddr>().unwrap(), port).into()
        };
        let (client, server) = (end(1), end(2));
        let carrier =
            if stream { Carrier::Tcp { client, server } } else { Carrier::Udp { client, server } };
        let mut file = PacketFile::new("made up");
        let interface = file.interface("rtt", carrier);
        for (at_ns, out, message, more) in &messages {
            let direction = if *out { Direction::Outbound } else { Direction::Inbound };
            let (length, comment) = (message.len() + more, "odd");
            let packet = Packet { at_ns: *at_ns, direction, message, length, comment };
            file.packet(interface, &packet);
        }
        let mut rest = file.bytes();
        let mut blocks = 0;
        while !rest.is_empty() {
            let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
            prop_assert!(length.is_multiple_of(4) && rest[length - 4..length] == rest[4..8]);
            rest = &rest[length..];
            blocks += 1;
        }
        prop_assert_eq!(blocks, 2 + messages.len());
    }
}

#[test]
fn a_segment_of_requests_is_told_from_others_and_one_that_is_cut_is_refused() {
    let content = whole_segment();
    let path = Path::new("packets-0001.parquet");
    assert_eq!(decode_packets(path, content.clone()).unwrap().len(), 40);
    assert!(decode_jobs(path, content.clone()).is_err());
    for length in (0..content.len()).step_by(7) {
        assert!(decode_packets(path, content[..length].to_vec()).is_err(), "{length} bytes");
    }
}

#[test]
fn a_capture_file_stands_in_its_run_as_a_whole() {
    let (_place, directory) = new_run();
    let mut file = PacketFile::new("made up");
    let interface = file.interface("rtt", Carrier::Local);
    let direction = Direction::Inbound;
    let packet = Packet { at_ns: 1, direction, message: b"abc", length: 3, comment: "odd" };
    file.packet(interface, &packet);
    directory.write_packets(&file).unwrap();
    assert_eq!(std::fs::read(directory.path().join(PACKETS_FILE)).unwrap(), file.bytes());
}
