//! Proofs with ports of memory: every frame is accounted for and none is changed, planted times are
//! found again, and ports that fail end or are counted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use whylate_model::{Nanos, Ticks};
use whylate_port::frame::{Mac, Tag, TagKind};
use whylate_port::frames::{Amount, Frames};
use whylate_port::{BusyPolling, PortError};

use super::memory::{Came, Memory, RATE, Shared, came};
use super::ports::Intervals;
use super::probe::{self, Joined, Pair};
use super::run::{Account, Forwarder, Halt, Settings, Told, Why};
use super::stamps::{Stamps, Times};
use crate::conversation::Scale;

fn settings(stamps: Stamps, work: u64, duration: Option<Nanos>) -> Settings {
    // Interfaces that nobody has.
    let interfaces = [u32::MAX, u32::MAX - 1];
    let interval = Nanos::SECOND;
    let (work, nap) = (Nanos(work), Nanos(0));
    Settings { stamps, work, interval, duration, rate: RATE, nap, interfaces }
}

/// What a forwarder of both directions came to: why it ended, its account, and its times by direction.
fn forwarded(a: Memory, b: Memory, settings: Settings) -> (Why, Account, [Times; 2]) {
    let clock = a.clock.clone();
    let stop = [&a, &b].into_iter().find_map(|port| port.last.clone()).unwrap_or_default();
    let mut times = [Times::default(), Times::default()];
    let mut last = None;
    let mut forwarder = Forwarder::new((a, b), &[0, 1], clock, settings);
    let mut watch = |told: Told<'_>| {
        for (way, direction) in told.ways.iter_mut().zip(told.directions) {
            times[*direction].residence.add(&way.stamped.times.residence);
            times[*direction].kernel.add(&way.stamped.times.kernel);
            way.stamped.times.clear();
        }
        last = Some(told.account);
    };
    let why = forwarder.run(&Halt::new(&stop), &mut watch);
    let account = last.expect("one is told at the end");
    (why, account, times)
}

/// Bytes of all of these frames.
fn bytes_of(frames: &[Vec<u8>]) -> u64 {
    frames.iter().map(|frame| frame.len() as u64).sum()
}

fn pair() -> (Shared, Memory, Memory) {
    let clock = Shared::default();
    let (mut a, b) = (Memory::new(&clock, 1), Memory::new(&clock, 2));
    a.last = Some(Arc::default());
    (clock, a, b)
}

#[test]
fn every_frame_is_accounted_for_and_none_is_changed() {
    let (_, mut a, mut b) = pair();
    let tag = Tag { kind: TagKind::Customer, control: 0x6007 };
    let service = Tag { kind: TagKind::Service, control: 7 };
    let mut tagged_inside = came(1_518, 3);
    tagged_inside.bytes[12..14].copy_from_slice(&[0x81, 0]);
    let burst = vec![
        came(60, 1),
        came(13, 2),
        came(1_514, 4),
        came(1_515, 5),
        tagged_inside.clone(),
        Came { stripped: Some(tag), ..came(1_514, 6) },
        Came { stripped: Some(service), ..came(1_514, 7) },
        Came { stripped: Some(service), ..came(60, 8) },
        came(0, 9),
        came(14, 10),
    ];
    a.coming = VecDeque::from([Ok(burst), Ok(vec![came(64, 11); 64])]);
    b.coming = VecDeque::from([Ok(vec![came(100, 12)])]);
    let (to_b, to_a) = (Arc::clone(&b.sent), Arc::clone(&a.sent));
    let (why, account, _) = forwarded(a, b, settings(Stamps::Every, 0, None));
    assert_eq!(why, Why::Stopped);
    let [there, back] = &account.directions[..] else { panic!("{account:?}") };
    let counts = there.counts;
    assert_eq!((counts.received, counts.bursts), (74, 2));
    assert_eq!((counts.runts, counts.too_long, counts.ring_full), (2, 2, 0));
    assert_eq!(counts.forwarded, 70);
    assert!(counts.closes() && back.counts.closes());
    assert_eq!((back.counts.forwarded, back.counts.forwarded_bytes), (1, 100));
    let mut with_tag = vec![6; 1_518];
    with_tag[12..16].copy_from_slice(&[0x81, 0, 0x60, 7]);
    let mut with_service = vec![8; 64];
    with_service[12..16].copy_from_slice(&[0x88, 0xa8, 0, 7]);
    let expected =
        [vec![1; 60], vec![4; 1_514], tagged_inside.bytes, with_tag, with_service, vec![10; 14]];
    let sent = to_b.lock().unwrap();
    assert_eq!(sent[..6], expected);
    assert!(sent[6..].iter().all(|frame| *frame == [11; 64]) && sent.len() == 70);
    assert_eq!(counts.forwarded_bytes, bytes_of(&sent));
    assert_eq!(*to_a.lock().unwrap(), [vec![12; 100]]);
}

#[test]
fn a_ring_that_is_full_drops_what_it_has_no_room_for_and_the_account_closes() {
    let (_, mut a, mut b) = pair();
    a.coming = (0..10).map(|_| Ok(vec![came(60, 1); 50])).collect();
    b.slots = 20;
    let sent = Arc::clone(&b.sent);
    let (_, account, times) = forwarded(a, b, settings(Stamps::Every, 0, None));
    let counts = account.directions[0].counts;
    assert_eq!((counts.received, counts.forwarded, counts.ring_full), (500, 200, 300));
    assert!(counts.closes());
    assert_eq!(sent.lock().unwrap().len(), 200);
    // Only what left has stayed for a time.
    assert_eq!(times[0].residence.len(), 200);
}

#[test]
fn what_still_waits_in_a_sending_ring_at_the_end_is_counted_apart_from_what_left() {
    for (stamps, stuck) in [(Stamps::Every, 4), (Stamps::Off, 4), (Stamps::Off, 0)] {
        let (_, mut a, mut b) = pair();
        a.coming = (0..3).map(|_| Ok(vec![came(60, 1), came(13, 2), came(90, 3)])).collect();
        b.coming = VecDeque::from([Ok(vec![came(60, 4); 5])]);
        b.stuck = stuck;
        let sent = Arc::clone(&b.sent);
        let (_, account, _) = forwarded(a, b, settings(stamps, 0, None));
        let [there, back] = &account.directions[..] else { panic!("{account:?}") };
        let counts = there.counts;
        let (left, stuck) = (sent.lock().unwrap().len() as u64, stuck as u64);
        assert_eq!((counts.received, counts.runts, counts.waiting), (9, 3, stuck), "{stamps:?}");
        assert_eq!((counts.forwarded, counts.closes()), (left, true), "{stamps:?}");
        assert_eq!(counts.forwarded_bytes, bytes_of(&sent.lock().unwrap()), "{stamps:?}");
        // What waits at one port is none of what left by the other.
        assert_eq!((back.counts.forwarded, back.counts.waiting), (5, 0), "{stamps:?}");
    }
}

#[test]
fn work_for_each_frame_shows_in_the_residence_and_in_the_ticks_of_work_alone() {
    let measured = |work: u64, frames: usize| {
        let (_, mut a, mut b) = pair();
        a.coming = (0..100).map(|_| Ok(vec![came(60, 1); frames])).collect();
        b.call = 5_000;
        let (_, account, times) = forwarded(a, b, settings(Stamps::Every, work, None));
        let parts = account.directions[0].parts.all();
        assert_eq!((parts.bursts, parts.frames), (100, 100 * frames as u64));
        assert!(parts.ticks() <= account.elapsed.0);
        let residence = times[0].residence.value_at(50.0).unwrap();
        (residence, parts.work / parts.frames, parts.transmit / parts.bursts)
    };
    for frames in [1, 8] {
        let (idle, idle_work, idle_call) = measured(0, frames);
        let (busy, busy_work, busy_call) = measured(10_000, frames);
        let expected = 10_000 * frames as u64;
        // Bins of the histogram are as fine as 1 in 1000 at least.
        assert!((busy - idle).abs_diff(expected) <= expected / 500, "{idle} {busy}");
        assert!((busy_work - idle_work).abs_diff(10_000) <= 20, "{idle_work} {busy_work}");
        assert!(
            idle_call >= 5_000 && busy_call.abs_diff(idle_call) <= 2,
            "{idle_call} {busy_call}"
        );
    }
}

#[test]
fn without_stamps_only_counts_remain_and_samples_are_of_one_burst_in_so_many() {
    let measured = |stamps| {
        let (_, mut a, b) = pair();
        a.coming = (0..100).map(|_| Ok(vec![came(60, 1); 3])).collect();
        let (_, account, times) = forwarded(a, b, settings(stamps, 0, None));
        let direction = &account.directions[0];
        assert_eq!(direction.counts.forwarded, 300);
        (direction.parts.all().frames, times[0].residence.len())
    };
    assert_eq!(measured(Stamps::Off), (0, 0));
    assert_eq!(measured(Stamps::Every), (300, 300));
    assert_eq!(measured(Stamps::Sampled(10)), (300, 30));
}

#[test]
fn the_kernels_stamps_are_a_second_residence_and_those_that_cannot_be_are_counted() {
    let (_, mut a, b) = pair();
    let with = |kernel| Came { kernel: Some(Nanos(kernel)), ..came(60, 1) };
    let now = super::stamps::wall();
    // A millisecond ago, an hour hence, and from another time.
    let burst = vec![with(now - 1_000_000), with(now + 3_600_000_000_000), with(1)];
    a.coming = VecDeque::from([Ok(burst)]);
    let (_, account, times) = forwarded(a, b, settings(Stamps::Every, 0, None));
    assert_eq!((times[0].kernel.len(), account.directions[0].unfit), (1, 2));
    assert!(times[0].kernel.min() >= Some(1_000_000));
    assert_eq!(times[0].residence.len(), 3);
}

#[test]
fn a_link_that_is_down_for_a_while_is_counted_and_one_that_is_deleted_ends_it() {
    let (_, mut a, mut b) = pair();
    let down = a.lost("went down");
    a.coming = VecDeque::from([Ok(vec![came(60, 1)]), Err(down), Ok(vec![came(60, 2)])]);
    b.refusing = VecDeque::from([b.lost("went down")]);
    let sent = Arc::clone(&b.sent);
    let (why, account, _) = forwarded(a, b, settings(Stamps::Every, 0, None));
    assert_eq!((why, account.downs), (Why::Stopped, [1, 1]));
    assert_eq!(*sent.lock().unwrap(), [vec![2; 60]]);

    let (_, mut a, b) = pair();
    let deleted = a.lost("was deleted");
    a.coming = VecDeque::from([Ok(vec![came(60, 1)]), Err(deleted), Ok(vec![came(60, 2)])]);
    let (why, account, times) = forwarded(a, b, settings(Stamps::Every, 0, None));
    assert!(matches!(&why, Why::Lost { port: 0, why } if why.contains("was deleted")), "{why:?}");
    // What was measured until then is there.
    assert_eq!((account.directions[0].counts.forwarded, times[0].residence.len()), (1, 1));

    let (_, a, mut b) = pair();
    let deleted = b.lost("was deleted");
    b.coming = VecDeque::from([Ok(vec![came(60, 1)]), Err(deleted)]);
    let mut a = a;
    a.last = None;
    let (why, ..) = forwarded(a, b, settings(Stamps::Off, 0, None));
    assert!(matches!(why, Why::Lost { port: 1, .. }), "{why:?}");
}

#[test]
fn what_fails_in_one_direction_costs_the_other_no_turn() {
    const TURNS: usize = 20;
    let (_, mut a, mut b) = pair();
    // Nothing but failures by the first port, and a frame at each look by the other.
    a.coming = (0..TURNS).map(|_| Err(a.lost("went down"))).collect();
    b.coming = (0..TURNS).map(|_| Ok(vec![came(60, 1)])).collect();
    let (why, account, _) = forwarded(a, b, settings(Stamps::Every, 0, None));
    assert_eq!((why, account.downs[0]), (Why::Stopped, 1));
    let back = account.directions[1].counts;
    assert_eq!((back.received, back.forwarded), (TURNS as u64, TURNS as u64));

    // What came by the other port while the first one went for good is not left behind either.
    let (_, mut a, mut b) = pair();
    a.coming = VecDeque::from([Err(a.lost("was deleted"))]);
    b.coming = VecDeque::from([Ok(vec![came(60, 1); 3])]);
    let (why, account, _) = forwarded(a, b, settings(Stamps::Off, 0, None));
    assert!(matches!(why, Why::Lost { port: 0, .. }), "{why:?}");
    assert_eq!(account.directions[1].counts.forwarded, 3);
}

#[test]
fn what_the_kernel_refuses_to_send_is_counted_and_forwarding_goes_on() {
    let (_, mut a, mut b) = pair();
    a.coming = (0..5).map(|_| Ok(vec![came(60, 1)])).collect();
    let refused = || PortError::Send { backend: "memory", bytes: 60, errno: Errno::INVAL };
    b.refusing = VecDeque::from([refused(), refused()]);
    let sent = Arc::clone(&b.sent);
    let (why, account, times) = forwarded(a, b, settings(Stamps::Every, 0, None));
    let direction = &account.directions[0];
    assert_eq!((why, direction.refusals), (Why::Stopped, 2));
    assert!(direction.first_refusal.as_ref().is_some_and(|why| why.contains("cannot send 60")));
    let (counts, left) = (direction.counts, sent.lock().unwrap().len() as u64);
    assert_eq!((counts.received, counts.forwarded, counts.refused), (5, left, 2));
    assert!(counts.closes() && left == 3, "{counts:?}");
    let bytes = bytes_of(&sent.lock().unwrap());
    assert_eq!((counts.forwarded_bytes, counts.refused_bytes), (bytes, 120), "{counts:?}");
    // What never left has stayed for no time.
    assert_eq!(times[0].residence.len(), left);
}

#[test]
fn what_a_ring_gives_up_later_is_taken_off_what_was_forwarded_and_what_it_gave_up_before_is_not() {
    for stamps in [Stamps::Off, Stamps::Every] {
        let (_, mut a, mut b) = pair();
        a.coming = (0..3).map(|_| Ok(vec![came(60, 1), came(70, 2), came(80, 3)])).collect();
        // Two frames of the first burst still wait when the second flush fails, and go with its three.
        (b.stuck, b.taken_back) = (2, Amount { frames: 7, bytes: 700 });
        b.late = Some(PortError::Send { backend: "memory", bytes: 60, errno: Errno::INVAL });
        let sent = Arc::clone(&b.sent);
        let (_, account, _) = forwarded(a, b, settings(stamps, 0, None));
        let counts = account.directions[0].counts;
        let left = sent.lock().unwrap().len() as u64;
        assert_eq!((counts.forwarded, counts.refused, counts.waiting), (left, 5, 2), "{stamps:?}");
        // Those that were given up are the first burst's last two and all of the second, by their lengths.
        assert_eq!(counts.forwarded_bytes, bytes_of(&sent.lock().unwrap()), "{stamps:?}");
        assert_eq!(counts.refused_bytes, 70 + 80 + 60 + 70 + 80, "{stamps:?}");
        assert!(counts.closes() && (counts.received, left) == (9, 2), "{counts:?}");
        assert_eq!(account.directions[0].refusals, 1);
    }
}

#[test]
fn busy_polling_is_told_of_both_ports_whichever_a_thread_begins_with() {
    for directions in [&[0, 1][..], &[1][..]] {
        let (clock, mut a, mut b) = pair();
        (a.polling, b.polling) = (BusyPolling::Queue(7), BusyPolling::NoQueue);
        let stop = AtomicBool::new(true);
        let settings = settings(Stamps::Off, 0, None);
        let ports = if directions[0] == 0 { (a, b) } else { (b, a) };
        let mut forwarder = Forwarder::new(ports, directions, clock, settings);
        let mut told = None;
        let mut watch = |of: Told<'_>| told = Some(of.account.busy_polling);
        forwarder.run(&Halt::new(&stop), &mut watch);
        assert_eq!(told, Some([BusyPolling::Queue(7), BusyPolling::NoQueue]), "{directions:?}");
    }
}

#[test]
fn a_forwarder_ends_when_its_time_is_over_and_tells_every_interval() {
    let (clock, mut a, b) = pair();
    (a.last, a.pause) = (None, 1_000_000);
    let stop = AtomicBool::new(false);
    let settings = settings(Stamps::Every, 0, Some(Nanos(3_500_000_000)));
    let mut forwarder = Forwarder::new((a, b), &[0, 1], clock, settings);
    let mut told = Vec::new();
    let mut watch = |of: Told<'_>| told.push((of.index, of.account.elapsed.0 >= 500_000_000));
    let why = forwarder.run(&Halt::new(&stop), &mut watch);
    assert_eq!(why, Why::Duration);
    assert_eq!(told, [(0, true), (1, true), (2, true), (3, true)]);
}

#[test]
fn intervals_are_as_long_as_asked_and_rings_are_asked_by_the_second() {
    let (clock, mut a, b) = pair();
    (a.last, a.pause) = (None, 1_000_000);
    let stop = AtomicBool::new(false);
    let settings = Settings {
        interval: Nanos(500_000_000),
        ..settings(Stamps::Every, 0, Some(Nanos(3_250_000_000)))
    };
    let mut forwarder = Forwarder::new((a, b), &[0, 1], clock, settings);
    let mut told = Vec::new();
    let mut watch = |of: Told<'_>| told.push(of.index);
    forwarder.run(&Halt::new(&stop), &mut watch);
    assert_eq!(told, [0, 1, 2, 3, 4, 5, 6]);
    let second = |length_ms: u64, at_ms: u64| {
        let ticks = |ms: u64| ms * 1_000_000;
        let (begin, scale) = (Ticks(0), Scale::new(RATE));
        let length = Nanos(ticks(length_ms));
        let mut intervals = Intervals::of_length(length, begin, None, scale);
        intervals.open(Ticks(ticks(at_ms)));
        intervals.second()
    };
    assert_eq!((second(500, 0), second(500, 600), second(500, 2_100)), (Some(0), None, Some(2)));
    assert_eq!(second(1_000, 3_100), Some(3));
}

#[test]
fn one_that_may_sleep_does_so_where_nothing_came_by_either_port_and_no_sleep_is_a_burst_s() {
    const NAP: u64 = 10_000_000;
    let of = |nap: u64| {
        let (_, mut a, mut b) = pair();
        // By none, by one port, by the other, by both; then it is told to end.
        let (none, one) = (|| Ok(Vec::new()), || Ok(vec![came(60, 1)]));
        a.coming = VecDeque::from([none(), one(), none(), one()]);
        b.coming = VecDeque::from([none(), none(), one(), one()]);
        let naps = Arc::clone(&a.naps);
        let settings = Settings { nap: Nanos(nap), ..settings(Stamps::Every, 0, None) };
        let (why, account, _) = forwarded(a, b, settings);
        assert_eq!(why, Why::Stopped);
        let ticks = account.directions.iter().map(|of| of.parts.all().ticks()).sum::<u64>();
        assert!(account.directions.iter().all(|of| of.counts.forwarded == 2), "{account:?}");
        (naps.load(Ordering::Relaxed), ticks, account.elapsed.0)
    };
    let ((none, awake, short), (naps, asleep, long)) = (of(0), of(NAP));
    // The first round, and the one that ends it.
    assert_eq!((none, naps), (0, 2));
    assert!(long >= short + 2 * NAP && asleep < awake + NAP / 1_000, "{awake} {asleep}");
}

#[test]
fn a_thread_that_panics_ends_the_other_one() {
    let stop = AtomicBool::new(false);
    let halt = Halt::new(&stop);
    let forwarder = |direction: usize| {
        let clock = Shared::default();
        let (mut a, b) = (Memory::new(&clock, 1), Memory::new(&clock, 2));
        a.pause = 1_000_000;
        // So long that it cannot be over before the other one was heard of.
        let settings = settings(Stamps::Off, 0, Some(Nanos(100_000 * Nanos::SECOND.0)));
        Forwarder::new((a, b), &[direction], clock, settings)
    };
    let (mut first, mut second) = (forwarder(0), forwarder(1));
    let (panicked, why) = std::thread::scope(|scope| {
        let first = scope.spawn(|| first.run(&halt, &mut |_: Told<'_>| panic!("planted")));
        let second = scope.spawn(|| second.run(&halt, &mut |_: Told<'_>| ()));
        (first.join().is_err(), second.join())
    });
    assert!(panicked);
    assert_eq!(why.ok(), Some(Why::Stopped));
}

/// Two ports that a cable joins, or a hub, or nothing.
struct Cabled {
    ports: [Memory; 2],
    /// To whom what leaves by each port comes.
    joined: [Option<usize>; 2],
    /// How long a look takes.
    look: Nanos,
    /// Looks that are over before something comes.
    late: u32,
}

impl Cabled {
    fn new(ports: [Memory; 2], joined: [Option<usize>; 2]) -> Self {
        Self { ports, joined, look: Nanos(1_000_000), late: 0 }
    }
}

impl Pair for Cabled {
    fn out(&mut self, at: usize) -> &mut dyn Frames {
        &mut self.ports[at]
    }

    fn receiving(&mut self, at: usize) -> &mut dyn Frames {
        let is_late = self.late > 0;
        self.late = self.late.saturating_sub(1);
        for from in [0, 1].into_iter().filter(|_| !is_late) {
            let left: Vec<Vec<u8>> = std::mem::take(&mut *self.ports[from].sent.lock().unwrap());
            let Some(to) = self.joined[from] else { continue };
            let burst = left.into_iter().map(|bytes| Came { bytes, ..Came::default() }).collect();
            self.ports[to].coming.push_back(Ok(burst));
        }
        // Looks pass the time.
        self.ports[at].clock.pass(self.look.0);
        &mut self.ports[at]
    }

    fn both(&mut self) -> [&mut dyn Frames; 2] {
        let [first, second] = &mut self.ports;
        [first, second]
    }
}

#[test]
fn ports_that_are_joined_outside_are_found_and_others_are_not() {
    let looped = |joined| {
        let (_, a, b) = pair();
        let mut cabled = Cabled::new([a, b], joined);
        probe::looped(&mut cabled, RATE).unwrap()
    };
    let probe = |out, back| Some(Joined::Probe { out, back });
    assert_eq!(looped([None, None]), None);
    assert_eq!(looped([Some(1), None]), probe(0, 1));
    assert_eq!(looped([None, Some(0)]), probe(1, 0));
    assert!(looped([Some(1), Some(0)]).is_some());
    // An echo of one port ends at the other; echoes of both go round.
    assert_eq!(looped([Some(0), None]), None);
    assert_eq!(looped([Some(0), Some(1)]), probe(0, 0));
}

#[test]
fn a_probe_that_came_while_nobody_looked_is_found_all_the_same() {
    let (_, a, b) = pair();
    let mut cabled = Cabled::new([a, b], [Some(1), None]);
    // The thread had no CPU for longer than a probe is waited for, and what hands frames over had none, too.
    (cabled.look, cabled.late) = (Nanos(250_000_000), 8);
    let found = probe::looped(&mut cabled, RATE).unwrap();
    assert_eq!(found, Some(Joined::Probe { out: 0, back: 1 }));
}

#[test]
fn ports_that_one_host_is_heard_by_both_of_are_joined_though_no_probe_comes_through() {
    let heard = |[first, second]: [u8; 2]| {
        let (_, mut a, mut b) = pair();
        for (port, host) in [(&mut a, first), (&mut b, second)] {
            let mut frame = came(60, 1);
            frame.bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 9, host]);
            port.coming.push_back(Ok(vec![frame]));
        }
        probe::looped(&mut Cabled::new([a, b], [None, None]), RATE).unwrap()
    };
    assert_eq!(heard([1, 2]), None);
    assert_eq!(heard([7, 7]), Some(Joined::Host(Mac([2, 0, 0, 0, 9, 7]))));
}
