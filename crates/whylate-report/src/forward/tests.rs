//! What a forwarder did is told, of frames and of datagrams.

use whylate_model::CpuId;
use whylate_model::forward::{
    FORWARD_VERSION, ForwardDirection, ForwardEnd, ForwardPort, ForwardThread, ForwardTicks,
    InterfaceCounts, RingDrops, Stamping, TicksPerFrame,
};
use whylate_model::reflect::{Residence, ResidencePercentile};
use whylate_model::warning::Warning;

use super::*;
use crate::terminal::{Style, full_of_account};

fn full(of: &Forward) -> String {
    full_of_account(of, Style::default())
}

fn port(interface: &str, index: u32) -> ForwardPort {
    ForwardPort {
        interface: interface.to_owned(),
        index,
        mtu: 1_500,
        queues: vec![0, 1],
        ring: 2_048,
        copies: "copy".to_owned(),
        attachment: Some("driver".to_owned()),
        instead: vec!["the kernel copies frames".to_owned()],
        downs: 0,
        drops: vec![
            RingDrops {
                queue: 1,
                ring: "receive".to_owned(),
                counter: "rx_ring_full".to_owned(),
                count: 1_234,
                frames: true,
            },
            RingDrops {
                queue: 1,
                ring: "fill".to_owned(),
                counter: "rx_fill_ring_empty_descs".to_owned(),
                count: 7,
                frames: false,
            },
        ],
        interface_counts: Some(InterfaceCounts { send_dropped: 55, ..Default::default() }),
    }
}

fn direction(from: &str, to: &str) -> ForwardDirection {
    let value = |percent, ns| ResidencePercentile { percent, value: Some(Nanos(ns)), low: None };
    let ticks = TicksPerFrame {
        from: 1,
        to: 64,
        bursts: 250,
        frames: 1_000,
        receive: 120.4,
        work: 80.0,
        transmit: 900.6,
    };
    ForwardDirection {
        from: from.to_owned(),
        to: to.to_owned(),
        received: 1_019,
        received_bytes: 64_640,
        forwarded: 1_000,
        forwarded_bytes: 64_000,
        waiting: 4,
        ring_full: 7,
        too_long: 2,
        runts: 1,
        refused: 5,
        bursts: 250,
        refusals: 3,
        first_refusal: Some("no\u{1b}[31m".to_owned()),
        residence: Some(Residence {
            samples: 1_000,
            resolution_ns: 9.6,
            frequency_bound_ppm: 0.123,
            min: Nanos(300),
            percentiles: vec![value(50.0, 420), value(99.0, 900)],
            max: Nanos(4_000),
        }),
        kernel_residence: None,
        kernel_stamps_unfit: 0,
        ticks: Some(ForwardTicks {
            all: ticks,
            by_burst: vec![TicksPerFrame { from: 3, to: 4, ..ticks }],
        }),
    }
}

pub(crate) fn forwarded() -> Forward {
    Forward {
        format_version: FORWARD_VERSION,
        backend: "af_xdp".to_owned(),
        wait: "spin".to_owned(),
        busy_polling: None,
        stamps: "every".to_owned(),
        stamping: Some(Stamping { per_burst_ns: 31.25, per_frame_ns: 0.5, bursts: 100 }),
        ticks_hz: 2_596_120_000.0,
        work: Nanos(250),
        since_ns: 951_827_696_000_000_000,
        lasted: Nanos(2_000_000_000),
        ended: ForwardEnd::Duration,
        ports: vec![port("eth1", 3), port("eth2", 4)],
        directions: vec![direction("eth1", "eth2"), direction("eth2", "eth1")],
        threads: vec![ForwardThread {
            cpu: Some(CpuId(2)),
            looks: 10_000,
            in_vain: 9_500,
            busy: Some(0.25),
        }],
        warnings: vec![Warning::LinkDown { interface: "eth1".to_owned(), times: 2 }],
    }
}

#[test]
fn what_a_forwarder_did_is_told_with_losses_by_place_and_ticks_by_part() {
    let text = full(&forwarded());
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Forwarded between eth1 and eth2 by af_xdp",
        "Forwarded 2,000 of 2,038 frames in 2 s; 30 were dropped here.",
        "until --duration ended",
        "eth1 -> eth2: 4 frames still waited in the sending ring at the end.",
        "On CPU 2: 10,000 polls, 95% of them empty; 25% of its time in bursts.",
        "Stamps (every) cost 31.2 ns a burst and 0.5 ns for each of its frames.",
        "Busy work of 250 ns",
        "Ticks are those of the counter, 2.60 in a nanosecond, whatever clock the CPU ran at",
        "500/s",
        "0.26 Mbit/s",
        "4.08",
        "eth1 -> eth2 refused 5",
        "eth1, receive ring 1",
        "rx_ring_full",
        "1,234",
        "send drop",
        "rx_fill_ring_empty_descs 7 times",
        "3 to 4",
        "901",
        "eth1 -> eth2",
        "Resolution 10 ns",
        "What it waited in the receiving ring before is not in it",
        "went down 2 times during the run",
    ] {
        assert!(flat.contains(words), "no `{words}` in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn one_between_sockets_tells_of_datagrams_and_makes_up_no_link_and_no_ring() {
    let mut of = forwarded();
    of.backend = "udp".to_owned();
    for port in &mut of.ports {
        (port.mtu, port.index, port.ring) = (0, 0, 0);
        (port.copies, port.attachment) = ("sockets".to_owned(), None);
        (port.queues, port.instead, port.interface_counts) = (Vec::new(), Vec::new(), None);
    }
    of.warnings.clear();
    of.ports[0].drops.truncate(1);
    of.ports[1].drops.remove(0);
    of.ports[1].drops[0].counter = "answers that nobody is there (ICMP)".to_owned();
    let text = full(&of);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Forwarded between eth1 and eth2 by udp",
        "Forwarded 2,000 of 2,038 datagrams in 2 s; 30 were dropped here.",
        "eth1: by ordinary sockets of the kernel",
        "eth1, receive queue rx_ring_full 1,234",
        "eth2: answers that nobody is there (ICMP), 7 times.",
        "Frames are datagrams here",
        "from taken from one socket to handed over to the other",
        "A datagram stayed from when",
    ] {
        assert!(flat.contains(words), "no `{words}` in\n{text}");
    }
    for words in ["MTU 0", "frames in a ring", "the host sees", "receiving ring"] {
        assert!(!flat.contains(words), "`{words}` in\n{text}");
    }
    for direction in &mut of.directions {
        direction.received = 0;
    }
    assert!(full(&of).contains("No datagram came in"));
}

#[test]
fn occasions_are_told_also_where_no_frame_was_lost() {
    let mut of = forwarded();
    for direction in &mut of.directions {
        (direction.ring_full, direction.too_long) = (0, 0);
        (direction.runts, direction.refused) = (0, 0);
    }
    for port in &mut of.ports {
        port.interface_counts = None;
        port.drops.retain(|drops| !drops.frames);
    }
    let text = full(&of);
    assert!(!text.contains("Frames lost"), "{text}");
    for interface in ["eth1", "eth2"] {
        let said = format!("{interface}, queue 1: rx_fill_ring_empty_descs 7 times");
        assert!(text.contains(&said), "no `{said}` in\n{text}");
    }
}

#[test]
fn one_without_stamps_or_frames_says_so_and_claims_no_time() {
    let mut of = forwarded();
    of.stamping = None;
    for direction in &mut of.directions {
        (direction.residence, direction.ticks) = (None, None);
    }
    let text = full(&of);
    assert!(text.contains("only counts are known") && !text.contains("Residence"), "{text}");
    assert!(!text.contains("Ticks"), "{text}");
    for direction in &mut of.directions {
        *direction = ForwardDirection { received: 0, forwarded: 0, ..direction.clone() };
    }
    assert!(full(&of).contains("No frame came in"));
}
