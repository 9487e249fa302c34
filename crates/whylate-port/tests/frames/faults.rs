//! What cannot be opened, what is dropped, and what goes away in the run.

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use whylate_model::Nanos;
use whylate_port::frames::{Counted, Ring};
use whylate_port::link::Copying;
use whylate_port::{LinkOptions, Port, PortError, Received, Transport, Wait};
use whylate_suite::absent;

use crate::place::Bed;
use crate::{by, connect, counts, listen, soon, until};

const AT: &str = "198.18.0.11:7000";
const BOTH: [Transport; 2] = [Transport::Packet, Transport::Xdp];

fn refused(transport: Transport, interface: &str, at: &str, link: LinkOptions) -> PortError {
    match listen(transport, at, by(interface, link), Wait::Poll) {
        Ok(port) => panic!("opened: {:?}", port.facts()),
        Err(error) => error,
    }
}

#[test]
fn frames_that_cannot_be_had_are_refused_by_name() {
    let Some(bed) = Bed::new() else { return };
    bed.near.inside(|| {
        for transport in BOTH {
            let plain = LinkOptions::default;
            let error = refused(transport, "nosuchport", AT, plain());
            assert!(matches!(error, PortError::InterfaceMissing { .. }), "{error}");
            let error = refused(transport, "lo", AT, plain());
            assert!(matches!(error, PortError::InterfaceDown { .. }), "{error}");
            let error = refused(transport, "near", "239.1.1.1:7000", plain());
            assert!(matches!(error, PortError::WrongTarget { .. }), "{error}");
            let link = LinkOptions { ring: Some(3), ..plain() };
            let error = refused(transport, "near", AT, link);
            assert!(matches!(error, PortError::RingUnfit { .. }), "{error}");
            let wait = listen(transport, AT, by("near", plain()), Wait::IoUring).err().unwrap();
            assert!(wait.to_string().contains("io-uring: choose"), "{wait}");
        }
        let link = LinkOptions { buffer: Some(1_024), ..LinkOptions::default() };
        let error = refused(Transport::Packet, "near", AT, link);
        assert!(matches!(error, PortError::BufferTooSmall { mtu: 1_500, .. }), "{error}");
        let packet = by("near", LinkOptions::default());
        let wait = listen(Transport::Packet, AT, packet, Wait::BusyPoll).err().unwrap();
        assert!(wait.to_string().contains("af_packet cannot wait by busy-poll"), "{wait}");
        let link = LinkOptions { queues: vec![63], ..LinkOptions::default() };
        let error = refused(Transport::Xdp, "near", AT, link);
        assert!(error.to_string().contains("no such queue"), "{error}");
    });
    assert!(bed.near.ip("link set near mtu 9000"));
    let error = bed.near.inside(|| refused(Transport::Xdp, "near", AT, LinkOptions::default()));
    assert!(matches!(error, PortError::BufferTooSmall { mtu: 9_000, .. }), "{error}");
}

#[test]
fn copies_that_cannot_be_done_without_and_a_queue_that_is_taken_are_refused_by_name() {
    let Some(bed) = Bed::new() else { return };
    bed.near.inside(|| {
        let link = LinkOptions { copying: Copying::ZeroCopy, ..LinkOptions::default() };
        let error = refused(Transport::Xdp, "near", AT, link);
        assert!(error.to_string().contains("cannot do without copies"), "{error}");
        let first = listen(Transport::Xdp, AT, by("near", LinkOptions::default()), Wait::Poll);
        let first = match first {
            Ok(first) => first,
            Err(error) => panic!("{error}"),
        };
        let other = "198.18.0.12:7000";
        let error = refused(Transport::Xdp, "near", other, LinkOptions::default());
        let told = error.to_string();
        assert!(told.contains("queue 0") || told.contains("runs a program already"), "{told}");
        drop(first);
        let open = || listen(Transport::Xdp, other, by("near", LinkOptions::default()), Wait::Poll);
        let again = soon(open);
        assert!(again.is_ok(), "{:?}", again.err());
    });
}

#[test]
fn without_the_capability_there_are_no_frames_and_it_is_named() {
    let Some(bed) = Bed::new() else { return };
    bed.near.inside(|| {
        let mut sets = capabilities(None).unwrap();
        sets.effective &= !CapabilitySet::NET_RAW;
        set_capabilities(None, sets).unwrap();
        for transport in BOTH {
            let error = refused(transport, "near", AT, LinkOptions::default());
            assert!(matches!(error, PortError::FramesDenied { .. }), "{error}");
            assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
        }
    });
}

/// Frames that the rings of a port had no room for.
fn lost(port: &mut dyn Port) -> u64 {
    let seen = counts(port);
    let frames = seen.drops.iter().filter(|drops| drops.of == Counted::Frames);
    frames.map(|drops| drops.count).sum()
}

/// Frames that the link itself, which holds some, had no room for on their way from the far end.
fn dropped_on_the_way(bed: &Bed) -> u64 {
    let told = bed.far.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let line = told.lines().find_map(|line| line.trim().strip_prefix("far:")).unwrap();
    // Eight words of what was received, then bytes, packets, errors and drops of what was sent.
    line.split_whitespace().nth(11).unwrap().parse().unwrap()
}

/// Sends to a port that does not look until it has told a loss, then looks: what came and what was dropped
/// are all.
fn dropped(transport: Transport, ring: u32) {
    let Some(bed) = Bed::new() else { return };
    // So that nobody but us says anything.
    let quiet = || std::fs::write("/proc/sys/net/ipv6/conf/far/disable_ipv6", "1");
    if bed.far.inside(quiet).is_err() {
        return absent("IPv6 cannot be switched off here");
    }
    let copying = if transport == Transport::Xdp { Copying::Copy } else { Copying::Auto };
    let link = LinkOptions { ring: Some(ring), copying, ..LinkOptions::default() };
    let open = || listen(transport, AT, by("near", link), Wait::Poll).unwrap();
    let mut server = bed.near.inside(open);
    // So that nobody has to be asked for the address in between.
    let mac = server.facts().frames.clone().unwrap().mac;
    assert!(bed.far.ip(&format!("neigh add 198.18.0.11 lladdr {mac} dev far nud permanent")));
    let client = bed.far.socket("198.18.0.2:0");
    let (before, mut sent, mut got) = (dropped_on_the_way(&bed), 0, 0);
    until("the ring is full", || {
        for _ in 0..50 {
            client.send_to(b"flood", AT).unwrap();
        }
        sent += 50;
        lost(server.as_mut()) > 0
    });
    until("what came, and what was dropped by the ring and on the way to it, are all", || {
        while let Received::Message { .. } = server.receive(&mut [0; 64], Nanos(0)).unwrap() {
            got += 1;
        }
        got + lost(server.as_mut()) + dropped_on_the_way(&bed) - before == sent
    });
    let seen = counts(server.as_mut());
    assert_eq!(seen.host.messages, got, "{seen:?}");
    assert!(got >= u64::from(ring) / 2, "{seen:?}");
    let located = [Ring::Receive, Ring::Fill];
    let mut where_lost = seen.drops.iter().filter(|drops| drops.count > 0);
    assert!(where_lost.all(|drops| located.contains(&drops.ring)), "{seen:?}");
    // Asked again, the kernel's counter that forgets is not forgotten.
    assert_eq!(counts(server.as_mut()).drops, seen.drops);
}

#[test]
fn what_a_full_ring_drops_is_counted_by_ring_and_adds_up_to_what_was_sent() {
    dropped(Transport::Packet, 32);
    dropped(Transport::Xdp, 64);
}

#[test]
fn an_interface_that_goes_away_in_the_run_is_told_with_what_became_of_it() {
    let cases = [("link set near down", "went down"), ("link delete near", "was deleted")];
    for transport in BOTH {
        for wait in [Wait::Poll, Wait::Spin] {
            for (words, told) in cases {
                let Some(bed) = Bed::new() else { return };
                let _peer = bed.far.socket("198.18.0.2:11111");
                let ends = (AT, "198.18.0.2:11111");
                let open = || connect(transport, ends, by("near", LinkOptions::default()), wait);
                let mut client = bed.near.inside(open).unwrap();
                client.send(b"there").unwrap();
                assert!(bed.near.ip(words));
                // Used from elsewhere, the port still asks where it was opened.
                let error = gone(client.as_mut());
                assert!(matches!(error, PortError::LinkLost { .. }), "{transport} {wait} {error}");
                assert!(error.to_string().contains(told), "{transport} {wait}: {error}");
            }
        }
    }
}

/// Goes on as a client does, until it is told.
fn gone(port: &mut dyn Port) -> PortError {
    for _ in 0..200 {
        if let Err(error) = port.send(b"still there?") {
            return error;
        }
        if let Err(error) = port.receive(&mut [0; 64], Nanos(10_000_000)) {
            return error;
        }
    }
    panic!("200 messages went nowhere, and nothing was said");
}

#[test]
fn an_interface_that_is_renamed_in_the_run_costs_nothing() {
    for transport in BOTH {
        let Some(bed) = Bed::new() else { return };
        let peer = bed.far.socket("198.18.0.2:11111");
        let ends = (AT, "198.18.0.2:11111");
        let open = || connect(transport, ends, by("near", LinkOptions::default()), Wait::Poll);
        let mut client = bed.near.inside(open).unwrap();
        // Kernels from 6.3 on rename an interface that is up.
        if !bed.near.ip("link set near name other") {
            return absent("an interface that is up is not renamed here");
        }
        client.send(b"there").unwrap();
        let mut buffer = [0; 64];
        let (length, from) = peer.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], from), (&b"there"[..], AT.parse().unwrap()));
    }
}
