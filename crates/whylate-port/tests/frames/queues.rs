//! AF_XDP over several queues of an interface: each frame once, by the queue that it came by.
//!
//! What a socket of AF_XDP sends goes by the queue that it is bound to, and comes at the other end of a
//! virtual link by the queue with the same number: so where a frame has to come is known.

use whylate_model::Nanos;
use whylate_port::link::Copying;
use whylate_port::{End, LinkOptions, PortError, Received, Threads, Transport, Wait};

use crate::place::{Bed, Place};
use crate::{LIMIT, by, counts, listen, received, setup, soon};

const TWO: &str = "link add near numrxqueues 2 numtxqueues 2 type veth peer name far numrxqueues 2 \
                   numtxqueues 2";
/// More than a virtual link and its rings hold at once.
const FRAMES: u16 = 3_000;
/// For local experiments.
const KIND: [u8; 2] = [0x88, 0xb5];
const SILENCE: Nanos = Nanos(50_000_000);

fn options(queues: &[u32]) -> LinkOptions {
    // Virtual links have nothing but copies.
    LinkOptions { copying: Copying::Copy, queues: queues.to_vec(), ..LinkOptions::default() }
}

fn end(place: &Place, name: &str, queues: &[u32]) -> Result<End, PortError> {
    let options = options(queues);
    let open = || End::open(Transport::Xdp, name, &options, Threads::One, setup(Wait::Spin));
    place.inside(open)
}

fn frame(number: u16) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[12..14].copy_from_slice(&KIND);
    frame[14..16].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Our frames of the next burst, by queue and number; none of them where it has others, or where nothing
/// comes in this time.
fn looked(end: &mut End, limit: Nanos) -> Option<Vec<(u32, u16)>> {
    let count = end.receiving.receive(limit).unwrap().count;
    let arrivals = (0..count).map(|at| end.receiving.frame(at));
    // What the kernels tell each other comes as well.
    let ours = arrivals.filter(|arrival| arrival.bytes[12..14] == KIND);
    let ours = ours.map(|of| (of.queue, u16::from_be_bytes([of.bytes[14], of.bytes[15]])));
    let ours: Vec<(u32, u16)> = ours.collect();
    (count > 0).then_some(ours)
}

#[test]
fn several_queues_of_an_af_xdp_end_take_each_frame_once_by_the_queue_it_came_by() {
    let Some(bed) = Bed::with(TWO) else { return };
    // None named are all of them.
    let mut near = end(&bed.near, "near", &[]).unwrap();
    assert_eq!(near.facts().queues, [0, 1]);
    for queue in [0, 1] {
        let mut far = soon(|| end(&bed.far, "far", &[queue])).unwrap();
        let mut came: Vec<(u32, u16)> = Vec::new();
        for number in 0..FRAMES {
            let out = far.out();
            out.put(60).expect("the one before has come").copy_from_slice(&frame(number));
            out.flush().unwrap();
            // One at a time: what is lost is lost by a queue, and not by a ring that is full.
            while came.last().is_none_or(|(_, last)| *last != number) {
                let ours = looked(&mut near, LIMIT);
                came.extend(ours.unwrap_or_else(|| panic!("queue {queue}: {number} did not come")));
            }
            out_of_the_way(&mut far);
        }
        while let Some(ours) = looked(&mut near, SILENCE) {
            came.extend(ours);
        }
        let expected: Vec<(u32, u16)> = (0..FRAMES).map(|number| (queue, number)).collect();
        assert!(came == expected, "queue {queue}: {} came", came.len());
    }
    let drops = near.receiving.drops().unwrap();
    for queue in [0, 1] {
        let of_queue = drops.iter().filter(|of| of.queue == queue && of.counter == "rx_dropped");
        assert_eq!(of_queue.map(|of| of.count).collect::<Vec<_>>(), [0], "{drops:?}");
    }
}

/// Takes back the buffers of what has left, and drops what came.
fn out_of_the_way(end: &mut End) {
    end.out().urge().unwrap();
    let _ = looked(end, Nanos(0));
}

#[test]
fn a_queue_that_an_interface_has_not_is_refused_by_name_and_leaves_the_others_free() {
    let Some(bed) = Bed::with(TWO) else { return };
    let refused = end(&bed.near, "near", &[0, 1, 2]).err().unwrap().to_string();
    assert!(refused.contains("no such queue"), "{refused}");
    let again = soon(|| end(&bed.near, "near", &[0, 1]));
    assert!(again.is_ok(), "{:?}", again.err());
}

#[test]
fn several_queues_of_an_af_xdp_port_take_each_message_of_many_hosts_once() {
    const AT: &str = "198.18.0.11:7000";
    let Some(bed) = Bed::with(TWO) else { return };
    let options = by("near", options(&[0, 1]));
    let open = || listen(Transport::Xdp, AT, options, Wait::Epoll).unwrap();
    let mut server = bed.near.inside(open);
    // Many flows, so that queues are chosen by chance.
    for number in 0..32_u32 {
        let client = bed.far.socket("198.18.0.2:0");
        client.send_to(&number.to_be_bytes(), AT).unwrap();
        let message = received(server.as_mut());
        assert_eq!(message.as_deref(), Some(&number.to_be_bytes()[..]));
    }
    let left = server.receive(&mut [0; 64], SILENCE).unwrap();
    assert!(matches!(left, Received::Nothing { .. }), "{left:?}");
    let seen = counts(server.as_mut());
    assert_eq!(seen.host.messages, 32, "each once: {seen:?}");
    let told = seen.drops.iter().filter(|drops| drops.counter == "rx_dropped");
    assert_eq!(told.map(|drops| drops.queue).collect::<Vec<_>>(), [0, 1], "{seen:?}");
}
