//! Two threads, each of which has one direction: a receiving ring of its own, and a sending one.

use std::thread;

use whylate_dpdk::open_divisible;
use whylate_model::Nanos;
use whylate_port::passing::{Counts, Room};
use whylate_port::{Frames, PortError};

use crate::{device, frame, send, setup};

const FRAMES: usize = 64;
const LOOKS: u32 = 200_000;

/// Passes on what comes, for so many looks.
fn carry(from: &mut dyn Frames, to: &mut dyn Frames) -> Counts {
    let (room, mut counts) = (Room::between(from.facts(), to.facts()), Counts::default());
    for _ in 0..LOOKS {
        if from.pass(to, room, &mut counts).unwrap() == 0 {
            thread::yield_now();
        }
    }
    counts
}

fn left(ring: &mut dyn Frames) -> usize {
    let mut left = 0;
    loop {
        match ring.receive(Nanos(0)).unwrap().count {
            0 => return left,
            count => left += count,
        }
    }
}

/// How often a half tells what its device missed.
fn told(half: &mut dyn Frames) -> usize {
    half.drops().unwrap().iter().filter(|drops| drops.counter == "imissed").count()
}

#[test]
fn two_threads_forward_a_direction_each_between_devices_with_one_queue() {
    let words = ["net_ring40", "net_ring41"];
    let [mut near, mut far] = words.map(|words| open_divisible(&device(words), setup()).unwrap());
    let (mut to_near, mut to_far) = (near.divide().unwrap(), far.divide().unwrap());
    assert!(matches!(near.divide(), Err(PortError::NotDivisible { .. })));
    assert!(near.put(60).is_none(), "this half only receives");
    for number in 0..FRAMES {
        send(to_near.as_mut(), &frame(number));
        send(to_far.as_mut(), &frame(number));
    }
    let (there, back) = thread::scope(|scope| {
        let there = scope.spawn(|| carry(&mut near, to_far.as_mut()));
        let back = carry(&mut far, to_near.as_mut());
        (there.join().unwrap(), back)
    });
    for counts in [there, back] {
        assert!(counts.received >= FRAMES as u64 && counts.closes(), "{counts:?}");
        assert_eq!(counts.received, counts.forwarded, "{counts:?}");
    }
    assert_eq!(left(&mut near) + left(&mut far), 2 * FRAMES);
    // What the device counts is told once.
    assert_eq!((told(&mut near), told(to_near.as_mut())), (1, 0));
}
