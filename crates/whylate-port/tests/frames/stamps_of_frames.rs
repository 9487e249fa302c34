//! Stamps of frames over AF_XDP: those of the program that takes them, and of when they have left.

use std::time::Duration;

use whylate_clock::{Calibrator, Counter, HardwareCounter, Relation, Unrelated};
use whylate_model::{Hertz, Nanos, Ticks};
use whylate_port::bpf::{Mode, Wanted};
use whylate_port::link::Copying;
use whylate_port::{
    End, FrameStamping, FrameStamps, Frames, LinkOptions, PortError, SentStamp, StampKind,
    StampWish, StampedBy, Threads, Transport, Wait,
};
use whylate_suite::absent;

use crate::place::{Bed, Place};
use crate::{LIMIT, by, connect, received, setup, soon, until};

/// Frames that are sent, one at a time.
const MANY: u64 = 60;

/// A frame from one end to the other, and all that was read of it.
struct Trip {
    /// Before it was put, and after it was seen.
    before: Ticks,
    after: Ticks,
    kernel: Option<Nanos>,
    card: Option<Nanos>,
}

/// What was sent, what is known of when it left (with a reading after that was told), and who stamps.
struct Sent {
    trips: Vec<Trip>,
    left: Vec<(SentStamp, Ticks)>,
    relation: Relation,
    rate: Hertz,
    of_far: FrameStamps,
    of_near: FrameStamps,
}

fn open(place: &Place, name: &str, link: &LinkOptions) -> End {
    let opened = place.inside(|| {
        End::open(Transport::Xdp, name, link, Threads::One, setup(Wait::Spin))
            .map_err(|e| e.to_string())
    });
    opened.unwrap()
}

/// A broadcast of a kind that no kernel takes for its own, with a number.
fn frame(number: u64) -> Vec<u8> {
    let mut bytes = vec![0xff; 6];
    bytes.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    bytes.extend(number.to_be_bytes());
    bytes.resize(60, 0);
    bytes
}

fn send(near: &mut End, far: &mut End) -> Sent {
    let mut counter = HardwareCounter::open().expect("looked at before");
    let rate = Calibrator::of_this_host(counter).quick().unwrap().hz;
    let mut relation = Relation::new(rate);
    let pause = || std::thread::sleep(Duration::from_millis(3));
    let (mut trips, mut left) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        relation.observe(&mut counter);
        pause();
    }
    for number in 0..MANY {
        let bytes = frame(number);
        let before = counter.read_ordered().0;
        near.out().put(bytes.len()).expect("there is room").copy_from_slice(&bytes);
        near.out().flush().unwrap();
        loop {
            let (trip, ours) = next(far, &bytes, before).expect("a frame comes in time");
            if ours {
                trips.push(trip);
                break;
            }
        }
        near.out().urge().unwrap();
        let mut told = Vec::new();
        near.out().take_sent(&mut |stamp| told.push(stamp));
        let now = counter.read_ordered().0;
        left.extend(told.into_iter().map(|stamp| (stamp, now)));
        relation.observe(&mut counter);
        pause();
    }
    if near.receiving.stamps().sent.is_some() {
        until("each frame that was sent is told or said to be untold", || {
            near.out().urge().unwrap();
            let mut told = Vec::new();
            near.out().take_sent(&mut |stamp| told.push(stamp));
            let now = counter.read_ordered().0;
            left.extend(told.into_iter().map(|stamp| (stamp, now)));
            relation.observe(&mut counter);
            left.len() as u64 + near.receiving.stamps().untold == MANY
        });
    }
    for _ in 0..10 {
        relation.observe(&mut counter);
        pause();
    }
    let (of_far, of_near) = (far.receiving.stamps(), near.receiving.stamps());
    Sent { trips, left, relation, rate, of_far, of_near }
}

/// The next frame that the far end sees, and whether it is ours; none where none comes in time.
fn next(far: &mut End, bytes: &[u8], before: Ticks) -> Option<(Trip, bool)> {
    let burst = far.receiving.receive(LIMIT).unwrap();
    let ours = |at: &usize| far.receiving.frame(*at).bytes == bytes;
    let at = (0..burst.count).find(ours).or((burst.count > 0).then_some(0))?;
    let arrival = far.receiving.frame(at);
    let (kernel, card) = (arrival.kernel, far.receiving.card_stamp(at));
    Some((Trip { before, after: burst.at, kernel, card }, arrival.bytes == bytes))
}

impl Sent {
    /// The system's clock, where it was not set while the test ran.
    fn is_steady(&self) -> bool {
        if self.relation.steps() > 0 {
            absent("the clock was set in the test");
        }
        self.relation.steps() == 0
    }

    /// Does a stamp lie between two readings, within its bound?
    fn lies_between(&self, at: Nanos, from: Ticks, to: Ticks) -> Result<bool, Unrelated> {
        let (ticks, bound) = self.relation.ticks_of(at)?;
        let slack = bound.to_ticks(self.rate);
        Ok(from <= ticks + slack && ticks <= to + slack)
    }

    fn all_received_lie_between(&self) {
        assert_eq!(self.trips.len() as u64, MANY, "each frame came");
        for trip in &self.trips {
            let at = trip.kernel.expect("the program stamps each frame that it takes");
            assert_eq!(self.lies_between(at, trip.before, trip.after), Ok(true), "{at}");
            // No card has seen a frame of a virtual link.
            assert_eq!(trip.card, None);
        }
    }
}

#[test]
fn stamps_of_frames_lie_between_the_readings_of_sender_and_receiver() {
    let Some(bed) = Bed::new() else { return };
    let link = LinkOptions { stamping: FrameStamping::Asked, ..LinkOptions::default() };
    let (mut near, mut far) = (open(&bed.near, "near", &link), open(&bed.far, "far", &link));
    if !far.receiving.stamps().received {
        return absent(&format!("{:?}", far.receiving.stamps().instead));
    }
    let sent = send(&mut near, &mut far);
    if !sent.is_steady() {
        return;
    }
    sent.all_received_lie_between();
    if sent.of_near.sent.is_none() {
        return absent(&format!("{:?}", sent.of_near.instead));
    }
    // Frames of others, such as those by which neighbours are found, are not sent by this end.
    assert_eq!(sent.of_near.sent, Some(StampedBy::Kernel));
    assert_eq!(sent.left.len() as u64 + sent.of_near.untold, MANY);
    assert!(!sent.left.is_empty(), "{:?}", sent.of_near);
    for (stamp, told) in &sent.left {
        let from = sent.trips[stamp.number as usize].before;
        assert_eq!(sent.lies_between(stamp.at, from, *told), Ok(true), "{stamp:?}");
    }
    let in_order = sent.left.windows(2).all(|pair| pair[0].0.number < pair[1].0.number);
    assert!(in_order, "{:?}", sent.left);
}

#[test]
fn a_program_behind_the_driver_stamps_too_and_says_why_no_card_is_asked() {
    let Some(bed) = Bed::new() else { return };
    let attaching = Wanted::Only(Mode::Generic);
    let link = LinkOptions { stamping: FrameStamping::Asked, attaching, ..LinkOptions::default() };
    let mut near = open(&bed.near, "near", &LinkOptions::default());
    let mut far = open(&bed.far, "far", &link);
    let stamps = far.receiving.stamps();
    assert!(!stamps.received_by_card, "{stamps:?}");
    assert!(stamps.instead.iter().any(|said| said.contains("network stack")), "{stamps:?}");
    if !stamps.received {
        return absent(&format!("{:?}", stamps.instead));
    }
    let sent = send(&mut near, &mut far);
    if sent.is_steady() {
        sent.all_received_lie_between();
    }
    assert_eq!((sent.of_far.received, sent.left.len()), (true, 0));
}

#[test]
fn without_a_wish_nobody_stamps() {
    let Some(bed) = Bed::new() else { return };
    let link = LinkOptions::default();
    let (mut near, mut far) = (open(&bed.near, "near", &link), open(&bed.far, "far", &link));
    let sent = send(&mut near, &mut far);
    assert_eq!((&sent.of_far, &sent.of_near), (&FrameStamps::default(), &FrameStamps::default()));
    assert_eq!(sent.trips.len() as u64, MANY);
    assert!(sent.trips.iter().all(|trip| trip.kernel.is_none() && trip.card.is_none()));
    assert_eq!(sent.left.len(), 0);
}

#[test]
fn messages_over_af_xdp_have_each_stamp_that_was_asked_for_once_and_without_the_wish_none() {
    let Some(bed) = Bed::new() else { return };
    let (from, to) = ("198.18.0.11:7000", "198.18.0.2:11111");
    let far = bed.far.socket(to);
    let open = |stamping| {
        let link = LinkOptions { stamping, copying: Copying::Copy, ..LinkOptions::default() };
        bed.near.inside(|| connect(Transport::Xdp, (from, to), by("near", link), Wait::Spin))
    };
    let wish = StampWish { completion: true, receive: true, ..StampWish::NOTHING };
    let mut client = open(FrameStamping::Off).unwrap();
    let refusal = client.stamp(&wish).unwrap_err();
    assert!(matches!(refusal, PortError::FramesNotStamped { .. }), "{refusal}");
    assert_eq!((client.numbers(), client.stamp_counts()), (None, None));
    drop(client);
    let mut client = soon(|| open(FrameStamping::Asked)).unwrap();
    if let Err(refusal) = client.stamp(&wish) {
        return absent(&refusal);
    }
    let mut taken = Vec::new();
    for number in 0..MANY {
        client.send(&number.to_be_bytes()).unwrap();
        let mut buffer = [0; 2_000];
        let (length, asked) = far.recv_from(&mut buffer).unwrap();
        far.send_to(&buffer[..length], asked).unwrap();
        assert_eq!(received(client.as_mut()).as_deref(), Some(&number.to_be_bytes()[..]));
        client.take_stamps(&mut |stamp| taken.push(stamp)).unwrap();
    }
    assert_eq!(client.numbers(), Some((MANY, MANY)));
    let counts = client.stamp_counts().unwrap();
    for kind in [StampKind::Completion, StampKind::ReceivedSoftware] {
        let of = taken.iter().filter(|stamp| stamp.kind == kind);
        let messages: Vec<u64> = of.map(|stamp| stamp.message).collect();
        let told = counts.of(kind);
        assert_eq!((told.expected, told.delivered), (MANY, messages.len() as u64), "{kind}");
        assert!(messages.windows(2).all(|pair| pair[0] < pair[1]), "{kind}: {messages:?}");
        // What a program stamps it stamps of every frame.
        if kind == StampKind::ReceivedSoftware && !messages.is_empty() {
            assert_eq!(messages.len() as u64, MANY);
        }
    }
    let asked = [StampKind::Completion, StampKind::ReceivedSoftware];
    assert!(taken.iter().all(|stamp| asked.contains(&stamp.kind)), "{taken:?}");
}
