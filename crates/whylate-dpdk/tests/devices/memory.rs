//! Devices in memory: null, ring, memif, vhost with virtio-user.

use std::sync::atomic::AtomicBool;

use whylate_clock::Counter;
use whylate_dpdk::io::{Course, Stamps, pass};
use whylate_dpdk::open_halves;
use whylate_model::{Nanos, TicksDelta};
use whylate_port::frames::{BURST, Copies};
use whylate_port::passing::{Counts, Room};
use whylate_port::{Frames, PortError};

use crate::{device, frame, opened, received, send, setup};

#[test]
fn a_null_device_always_has_frames_takes_all_and_says_what_it_is() {
    let mut null = opened("net_null10,size=100").unwrap();
    let facts = null.facts().clone();
    assert_eq!((facts.backend, facts.interface.as_str()), ("dpdk", "net_null10"));
    assert_eq!((facts.mtu, facts.buffer, facts.copies), (1_500, 2_048, Copies::Nobody));
    for _ in 0..100 {
        let burst = null.receive(Nanos(0)).unwrap();
        assert_eq!(burst.count, BURST);
        assert_eq!(null.frame(burst.count - 1).bytes.len(), 100);
        for number in 0..BURST {
            null.put(60 + number).unwrap().fill(1);
        }
        null.flush().unwrap();
    }
    assert!(null.put(facts.room + 1).is_none());
    assert!(null.drops().unwrap().iter().all(|drops| drops.count == 0));
}

#[test]
fn a_null_device_shows_nothing_of_what_was_sent_by_it() {
    let mut null = opened("net_null13").unwrap();
    // More frames than there are buffers, several times.
    for _ in 0..400 {
        for _ in 0..BURST {
            null.put(64).unwrap().fill(7);
        }
        null.flush().unwrap();
        let burst = null.receive(Nanos(0)).unwrap();
        assert!((0..burst.count).all(|at| null.frame(at).bytes == [0; 64]));
    }
}

#[test]
fn what_goes_into_a_ring_comes_back_in_order_to_the_byte_and_no_buffer_is_lost() {
    let mut ring = opened("net_ring10").unwrap();
    let mut free = None;
    for _ in 0..3 {
        for start in (0..1_920).step_by(96) {
            for number in start..start + 96 {
                send(&mut ring, &frame(number));
            }
            let back = received(&mut ring, 96);
            let sent: Vec<Vec<u8>> = (start..start + 96).map(frame).collect();
            assert_eq!(back.len(), 96);
            assert!(back == sent, "frames from {start} on are others than were sent");
        }
        assert_eq!(ring.receive(Nanos(0)).unwrap().count, 0, "each came once");
        // Where nothing is under way, all but what the sending side holds is in the pool.
        let now = ring.free_buffers();
        assert!(free.replace(now).is_none_or(|before| before.abs_diff(now) <= 32), "{now}");
    }
}

#[test]
fn a_ring_that_nobody_empties_fills_up_and_what_went_and_waits_adds_up() {
    let mut ring = opened("net_ring11").unwrap();
    let mut put = 0_usize;
    // Nothing is received meanwhile.
    while put < 100_000 {
        let bytes = frame(put);
        let Some(place) = ring.put(bytes.len()) else { break };
        place.copy_from_slice(&bytes);
        put += 1;
        ring.flush().unwrap();
    }
    assert!((1_000..100_000).contains(&put), "{put}");
    assert!(ring.urge().is_ok() && ring.put(60).is_none(), "it stays full, and says so");
    let back = received(&mut ring, put);
    assert_eq!(back.len(), put);
    assert!(back.iter().enumerate().all(|(number, bytes)| *bytes == frame(number)));
}

#[test]
fn a_device_with_two_queues_is_divided_once_and_one_with_a_single_queue_never() {
    let whole = open_halves(&device("net_null11"), setup()).unwrap();
    let mut half = whole.divide().unwrap();
    assert!(matches!(whole.divide(), Err(PortError::NotDivisible { .. })));
    half.put(60).unwrap().fill(3);
    half.flush().unwrap();
    assert_eq!(half.receive(Nanos(0)).unwrap().count, 0, "it only sends");
    drop(half);
    assert!(whole.divide().is_ok(), "the other half is gone");
    let single = opened("net_null12").unwrap();
    assert!(matches!(single.divide(), Err(PortError::NotDivisible { .. })));
}

#[test]
fn frames_are_passed_on_both_ways_with_and_without_stamps_and_add_up() {
    let (mut near, mut far) = (opened("net_ring12").unwrap(), opened("net_ring13").unwrap());
    for number in 0..64 {
        send(&mut near, &frame(number));
        send(&mut far, &frame(100 + number));
    }
    let mut counter = setup().counter;
    let stop = AtomicBool::new(false);
    for stamps in [Stamps::Off, Stamps::Burst, Stamps::Packet] {
        let mut round = [0; 2];
        // However little of the CPU it gets at once: all of them have gone round.
        while round.iter().any(|frames| *frames <= 64) {
            let end = counter.read_ordered().0 + TicksDelta(20_000_000);
            let course = Course { burst: 32, end, stop: &stop };
            let outcome = pass((&mut near, &mut far), &course, stamps, &mut counter).unwrap();
            assert!(outcome.cached);
            for (way, frames) in outcome.passed.iter().zip(&mut round) {
                assert_eq!(way.received, way.sent, "{way:?}");
                *frames += way.received;
            }
            let stamped = if stamps == Stamps::Off { 0 } else { outcome.frames() };
            assert_eq!(outcome.residence.len(), stamped, "{stamps:?}");
        }
    }
    // They are all still there: each ring has one half of them, whichever.
    near.receive(Nanos(0)).unwrap();
    let mut left = 0;
    for ring in [&mut near, &mut far] {
        let mut burst = ring.receive(Nanos(0)).unwrap().count;
        while burst > 0 {
            left += burst;
            burst = ring.receive(Nanos(0)).unwrap().count;
        }
    }
    assert!((128 - BURST..=128).contains(&left), "{left}");
}

#[test]
fn frames_go_from_one_device_to_another_in_the_buffers_that_they_came_in() {
    let (mut near, mut far) = (opened("net_ring14").unwrap(), opened("net_ring15").unwrap());
    let room = Room::between(near.facts(), far.facts());
    let (mut counts, free) = (Counts::default(), near.free_buffers());
    let mut number = 0;
    for round in 0..50 {
        let sent: Vec<Vec<u8>> = (number..number + 20).map(frame).collect();
        number += 20;
        for bytes in &sent {
            send(&mut near, bytes);
        }
        let burst = near.receive(Nanos(0)).unwrap().count;
        assert_eq!(burst, 20);
        let places: Vec<*const u8> = (0..burst).map(|at| near.frame(at).bytes.as_ptr()).collect();
        let leaving = near.carry(burst, &mut far, room, &mut counts);
        assert_eq!(leaving, (1 << 20) - 1);
        far.flush().unwrap();
        assert_eq!(far.receive(Nanos(0)).unwrap().count, burst, "{round}");
        for (at, bytes) in sent.iter().enumerate() {
            let arrival = far.frame(at);
            assert!(arrival.bytes == bytes.as_slice() && arrival.bytes.as_ptr() == places[at]);
        }
    }
    // The same in one call, which takes half a burst at most.
    let sent: Vec<Vec<u8>> = (0..20).map(frame).collect();
    for bytes in &sent {
        send(&mut near, bytes);
    }
    assert_eq!(near.pass(&mut far, room, &mut counts).unwrap(), 20);
    assert_eq!(near.pass(&mut far, room, &mut counts).unwrap(), 0);
    assert!(received(&mut far, 20) == sent);
    assert_eq!(far.receive(Nanos(0)).unwrap().count, 0);
    let bytes: usize = (0..number).chain(0..20).map(|number| frame(number).len()).sum();
    let (frames, bytes) = (number as u64 + 20, bytes as u64);
    assert_eq!((counts.received, counts.forwarded, counts.bursts), (frames, frames, 51));
    assert_eq!((counts.received_bytes, counts.forwarded_bytes), (bytes, bytes));
    // All that this side still has is what it writes the next frames into.
    assert!(near.free_buffers().abs_diff(free) <= 32, "{} {free}", near.free_buffers());
}

#[test]
fn frames_that_do_not_fit_or_find_no_room_are_released_and_counted_and_the_rest_goes_on() {
    let (mut near, mut far) = (opened("net_ring16").unwrap(), opened("net_ring17").unwrap());
    let room = Room::between(near.facts(), far.facts());
    let free = near.free_buffers();
    let mut customers = vec![3; 1_518];
    customers[12..14].copy_from_slice(&[0x81, 0]);
    let odd = [vec![1; 60], vec![2; 13], vec![4; 1_515], customers.clone(), vec![5; 1_514]];
    for by_one_call in [false, true] {
        let mut counts = Counts::default();
        for bytes in &odd {
            send(&mut near, bytes);
        }
        if by_one_call {
            assert_eq!(near.pass(&mut far, room, &mut counts).unwrap(), 5);
        } else {
            let burst = near.receive(Nanos(0)).unwrap().count;
            assert_eq!(near.carry(burst, &mut far, room, &mut counts), 0b11001);
            far.flush().unwrap();
        }
        assert_eq!((counts.received, counts.forwarded, counts.bursts), (5, 3, 1));
        assert_eq!((counts.runts, counts.too_long, counts.ring_full), (1, 1, 0));
        assert_eq!((counts.received_bytes, counts.forwarded_bytes), (4_620, 3_092));
        let left = received(&mut far, 3);
        assert!(left == [vec![1; 60], customers.clone(), vec![5; 1_514]], "{by_one_call}");
        assert_eq!(far.receive(Nanos(0)).unwrap().count, 0);
    }
    // Nobody empties it: the device's ring fills up, then the slots before it.
    let mut counts = Counts::default();
    for number in 0..3_000 {
        send(&mut near, &frame(number));
        assert_eq!(near.pass(&mut far, room, &mut counts).unwrap(), 1);
    }
    assert!(counts.closes() && counts.ring_full > 0, "{counts:?}");
    assert_eq!(counts.received, 3_000);
    let left = received(&mut far, counts.forwarded as usize);
    let first: Vec<Vec<u8>> = (0..left.len()).map(frame).collect();
    assert!(left.len() as u64 == counts.forwarded && left == first, "{counts:?} {}", left.len());
    assert_eq!(far.receive(Nanos(0)).unwrap().count, 0);
    assert!(near.free_buffers().abs_diff(free) <= 32, "{} {free}", near.free_buffers());
}

#[test]
fn frames_that_were_passed_on_outlive_the_device_that_they_came_by() {
    let mut far = opened("net_ring18").unwrap();
    for name in ["net_ring19", "net_ring20", "net_ring21"] {
        let mut near = opened(name).unwrap();
        let room = Room::between(near.facts(), far.facts());
        let (mut counts, sent) = (Counts::default(), (0..16).map(frame).collect::<Vec<_>>());
        for bytes in &sent {
            send(&mut near, bytes);
        }
        assert_eq!(near.pass(&mut far, room, &mut counts).unwrap(), 16);
        drop(near);
        assert!(received(&mut far, 16) == sent);
    }
}

/// Two devices that share memory, one made by this side and one by that.
fn shared(made: &str, joined: &str) {
    let mut near = opened(made).unwrap();
    let mut far = opened(joined).unwrap();
    for _ in 0..6_000 {
        if near.is_up() && far.is_up() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(near.is_up() && far.is_up(), "{made} and {joined} have no link");
    assert_eq!(near.facts().copies, Copies::Driver);
    // Who reads a ring puts empty buffers there when it first looks.
    assert_eq!(far.receive(Nanos(0)).unwrap().count, 0);
    assert_eq!(near.receive(Nanos(0)).unwrap().count, 0);
    for number in 0..200 {
        send(&mut near, &frame(number));
        assert_eq!(received(&mut far, 1), [frame(number)], "{made} -> {joined}");
        send(&mut far, &frame(number + 1));
        assert_eq!(received(&mut near, 1), [frame(number + 1)], "{joined} -> {made}");
    }
}

#[test]
fn frames_go_through_shared_memory_both_ways() {
    let socket = format!("whylate-memif-{}", std::process::id());
    shared(
        &format!("net_memif10,role=server,id=1,socket={socket}"),
        &format!("net_memif11,role=client,id=1,socket={socket}"),
    );
}

#[test]
fn frames_go_between_a_virtual_machines_card_and_its_host() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("v").display().to_string();
    shared(
        &format!("net_vhost10,iface={socket}"),
        &format!("net_virtio_user10,path={socket},queues=1"),
    );
}
