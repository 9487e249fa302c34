//! Memory: a pool of buffers is there for as long as anybody can have one of them, and no longer.

use whylate_dpdk::pools;
use whylate_port::Frames;
use whylate_port::passing::{Counts, Room};

use crate::{frame, opened, received, send};

#[test]
fn pools_of_a_chain_of_three_devices_live_as_long_as_their_frames_can() {
    let words = ["net_ring30", "net_ring31", "net_ring32"];
    let [mut near, mut mid, mut far] = words.map(|words| opened(words).unwrap());
    let there = || words.map(|words| pools(&format!("-{words}")).unwrap());
    assert_eq!(there(), [1; 3]);
    let room = Room::between(near.facts(), far.facts());
    let mut counts = Counts::default();
    // The end of the chain begins: what it is passed on from the beginning came later.
    assert_eq!(mid.pass(&mut far, room, &mut counts).unwrap(), 0);
    let sent: Vec<Vec<u8>> = (0..16).map(frame).collect();
    for bytes in &sent {
        send(&mut near, bytes);
    }
    assert_eq!(near.pass(&mut mid, room, &mut counts).unwrap(), 16);
    assert_eq!(mid.pass(&mut far, room, &mut counts).unwrap(), 16);
    drop(near);
    drop(mid);
    assert_eq!(there(), [1; 3], "frames of the first one lie in the ring of the last");
    assert!(received(&mut far, 16) == sent);
    drop(far);
    assert_eq!(there(), [0; 3]);
}
