//! Proofs of what a burst costs: calls of its ports, however many frames it has; and that all ways of
//! carrying it count the same.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use whylate_model::{Nanos, Ticks};
use whylate_port::PortError;
use whylate_port::frame::{Tag, TagKind};
use whylate_port::frames::{Amount, Arrival, Burst, Drops, Frames, FramesFacts};
use whylate_port::passing::{Carried, Counts, Failure, Room};

use super::memory::{Came, Memory, RATE, Shared, came};
use super::run::{Account, Forwarder, Halt, Settings, Told};
use super::stamps::Stamps;

/// A port of which each call is counted: behind a table they would be dynamic ones.
struct Counting {
    inner: Memory,
    calls: Arc<AtomicU64>,
}

impl Counting {
    fn called(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl Frames for Counting {
    fn receive(&mut self, limit: Nanos) -> Result<Burst, PortError> {
        self.called();
        self.inner.receive(limit)
    }

    fn frame(&self, at: usize) -> Arrival<'_> {
        self.called();
        self.inner.frame(at)
    }

    fn put(&mut self, length: usize) -> Option<&mut [u8]> {
        self.called();
        self.inner.put(length)
    }

    fn flush(&mut self) -> Result<Ticks, PortError> {
        self.called();
        self.inner.flush()
    }

    fn urge(&mut self) -> Result<Ticks, PortError> {
        self.called();
        self.inner.urge()
    }

    fn facts(&self) -> &FramesFacts {
        self.inner.facts()
    }

    fn drops(&mut self) -> Result<Vec<Drops>, PortError> {
        self.inner.drops()
    }

    fn waiting(&mut self) -> Amount {
        self.inner.waiting()
    }

    fn taken_back(&self) -> Amount {
        self.inner.taken_back()
    }

    fn carry(
        &mut self,
        frames: usize,
        to: &mut dyn Frames,
        room: Room,
        counts: &mut Counts,
    ) -> u64 {
        self.called();
        self.inner.carry(frames, to, room, counts)
    }

    fn take_in(&mut self, burst: &[Carried<'_>], room: Room, counts: &mut Counts) -> u64 {
        self.called();
        self.inner.take_in(burst, room, counts)
    }

    fn pass(
        &mut self,
        to: &mut dyn Frames,
        room: Room,
        counts: &mut Counts,
    ) -> Result<usize, Failure> {
        self.called();
        self.inner.pass(to, room, counts)
    }

    fn kernel_stamps(&self, into: &mut [Option<Nanos>]) {
        self.called();
        self.inner.kernel_stamps(into);
    }
}

/// What forwarding these bursts came to: calls of both ports, the account, and what left by the second.
fn forwarded(
    bursts: Vec<Vec<Came>>,
    slots: usize,
    stamps: Stamps,
    work: u64,
) -> (u64, Account, Vec<Vec<u8>>) {
    let (clock, stop) = (Shared::default(), Arc::new(AtomicBool::new(false)));
    let (mut a, mut b) = (Memory::new(&clock, 1), Memory::new(&clock, 2));
    a.coming = bursts.into_iter().map(Ok).collect::<VecDeque<_>>();
    (a.last, b.slots) = (Some(Arc::clone(&stop)), slots);
    let (sent, calls) = (Arc::clone(&b.sent), Arc::new(AtomicU64::new(0)));
    let [a, b] = [a, b].map(|inner| Counting { inner, calls: Arc::clone(&calls) });
    // Interfaces that nobody has.
    let interfaces = [u32::MAX, u32::MAX - 1];
    let (work, interval) = (Nanos(work), Nanos::SECOND);
    let (nap, duration) = (Nanos(0), None);
    let settings = Settings { stamps, work, interval, duration, rate: RATE, nap, interfaces };
    let mut forwarder = Forwarder::new((a, b), &[0, 1], clock, settings);
    let mut last = None;
    let mut watch = |told: Told<'_>| last = Some(told.account);
    forwarder.run(&Halt::new(&stop), &mut watch);
    let account = last.expect("one is told at the end");
    let sent = sent.lock().unwrap().clone();
    (calls.load(Ordering::Relaxed), account, sent)
}

#[test]
fn a_burst_takes_as_many_calls_whatever_it_has() {
    const BURSTS: u64 = 100;
    let now = super::stamps::wall();
    let calls = |stamps, frames, kernel| {
        let frame = Came { kernel, ..came(60, 1) };
        let bursts = vec![vec![frame; frames]; if frames == 0 { 0 } else { BURSTS as usize }];
        let (calls, account, sent) = forwarded(bursts, usize::MAX, stamps, 0);
        assert_eq!(account.directions[0].counts.forwarded, sent.len() as u64);
        calls
    };
    let stamped = Some(Nanos(now));
    // Pass, take in and hand over in one; with stamps receive, look at the first frame, carry, take in and
    // hand over, and the kernel's stamps where it has some; and a look the other way.
    for (stamps, kernel, each) in
        [(Stamps::Off, None, 4), (Stamps::Every, None, 6), (Stamps::Every, stamped, 7)]
    {
        let (none, one) = (calls(stamps, 0, kernel), calls(stamps, 1, kernel));
        assert_eq!(one - none, each * BURSTS, "{stamps:?}, {kernel:?}");
        for frames in [2, 8, 9, 63, 64] {
            assert_eq!(calls(stamps, frames, kernel), one, "{stamps:?} of {frames} frames");
        }
    }
}

#[test]
fn what_is_counted_and_what_leaves_is_the_same_with_stamps_without_them_and_with_work() {
    let tag = |kind| Some(Tag { kind, control: 7 });
    let mut inside = came(1_518, 3);
    inside.bytes[12..14].copy_from_slice(&[0x81, 0]);
    let kinds = [
        came(60, 1),
        came(13, 2),
        inside,
        came(1_514, 4),
        came(1_515, 5),
        Came { stripped: tag(TagKind::Customer), ..came(1_514, 6) },
        Came { stripped: tag(TagKind::Service), ..came(1_514, 7) },
        came(0, 8),
    ];
    // Bursts of all sizes, each beginning with another kind.
    let kind = |at: usize| kinds[at % kinds.len()].clone();
    let burst = |frames: usize| (frames..2 * frames).map(kind).collect::<Vec<Came>>();
    let bursts: Vec<Vec<Came>> = (1..=64).map(burst).collect();
    let all: u64 = bursts.iter().map(|burst| burst.len() as u64).sum();
    for slots in [usize::MAX, 20] {
        let of = |stamps, work| forwarded(bursts.clone(), slots, stamps, work);
        let (_, expected, left) = of(Stamps::Every, 0);
        let counts = expected.directions[0].counts;
        assert!(counts.closes() && counts.received == all && counts.bursts == 64, "{counts:?}");
        assert!(counts.runts > 0 && counts.too_long > 0 && counts.forwarded > 0, "{counts:?}");
        assert_eq!(counts.ring_full > 0, slots == 20, "{counts:?}");
        for (stamps, work) in
            [(Stamps::Off, 0), (Stamps::Sampled(3), 0), (Stamps::Off, 5), (Stamps::Every, 5)]
        {
            let (_, account, sent) = of(stamps, work);
            assert_eq!(account.directions[0].counts, counts, "{stamps:?} {work}");
            assert!(sent == left, "{stamps:?} {work}");
        }
    }
}
