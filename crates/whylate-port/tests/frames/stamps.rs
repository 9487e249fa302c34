//! Stamps of the kernel over a virtual link, as over loopback: each sending's in the order of its way.

use whylate_port::{Options, Received, Stamp, StampKind, StampWish, Transport, Wait};
use whylate_suite::absent;

use super::place::Bed;
use super::{LIMIT, connect, listen, until};

const WISH: StampWish =
    StampWish { sched: true, software: true, receive: true, ..StampWish::NOTHING };
const SERVER: &str = "198.18.0.2:4100";
const MESSAGES: usize = 20;

fn of(stamps: &[Stamp], kind: StampKind) -> Vec<Stamp> {
    stamps.iter().copied().filter(|stamp| stamp.kind == kind).collect()
}

#[test]
fn a_message_over_a_virtual_link_is_scheduled_then_given_to_the_driver_then_received() {
    let Some(bed) = Bed::new() else { return };
    let udp = Transport::Udp;
    let mut server =
        bed.far.inside(|| listen(udp, SERVER, Options::default(), Wait::Spin)).unwrap();
    let mut client =
        bed.near.inside(|| connect(udp, ("", SERVER), Options::default(), Wait::Spin)).unwrap();
    if let Err(refusal) = client.stamp(&WISH).and_then(|()| server.stamp(&WISH)) {
        return absent(&refusal);
    }
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let mut messages = 0;
    // The kernel begins to stamp receptions some time after it was asked.
    until("so many receptions are stamped", || {
        messages += 1;
        client.send(&[8; 64]).unwrap();
        let came = server.receive(&mut [0; 64], LIMIT).unwrap();
        assert!(matches!(came, Received::Message { .. }), "{came:?}");
        server.take_stamps(&mut |stamp| received.push(stamp)).unwrap();
        client.take_stamps(&mut |stamp| sent.push(stamp)).unwrap();
        received.len() >= MESSAGES
    });
    until("each sending has both of its stamps", || {
        client.take_stamps(&mut |stamp| sent.push(stamp)).unwrap();
        sent.len() >= 2 * messages
    });
    let (scheduled, given) = (of(&sent, StampKind::Sched), of(&sent, StampKind::Software));
    for stamps in [&scheduled, &given] {
        let numbers: Vec<u64> = stamps.iter().map(|stamp| stamp.message).collect();
        assert!(numbers.into_iter().eq(0..messages as u64), "{stamps:?}");
    }
    assert!(scheduled.iter().zip(&given).all(|(first, then)| first.at <= then.at));
    let received = of(&received, StampKind::ReceivedSoftware);
    assert_eq!(received.len(), MESSAGES, "{:?}", server.stamp_counts());
    for came in received {
        assert!(given[came.message as usize].at <= came.at, "{came:?}");
    }
}
