//! Losses, duplicates, order and limits, exactly, over many frames.

use whylate_model::Nanos;
use whylate_model::delay::Fate;
use whylate_stats::rng::Rng;

use super::flow::Flow;
use super::{Sums, capacity, line_of, nothing};
use crate::delay::law::Law;
use crate::forward::memory::Shared;

/// What came out of a line that so many frames went into.
struct Through {
    /// Numbers of those that left, in their order.
    sent: Vec<u64>,
    counts: whylate_model::delay::DelayCounts,
    /// Numbers of those with a fate that is not to leave.
    lost: Vec<u64>,
    /// Are the dues of what left in its order never falling, but for those let past?
    dues_rise: bool,
}

/// Sends frames through, 16 with a look, until all have left or are lost.
fn through(law: &Law, frames: u64, room: u64) -> Through {
    let clock = Shared::default();
    let a = Flow::new(&clock, 1, (frames, 16), 200);
    let b = Flow::new(&clock, 2, (0, 1), 200);
    let (mut line, mut truths) = line_of((a, b), &clock, law, capacity(room), nothing());
    let (mut sums, mut lost) = (Sums::default(), Vec::new());
    let (mut dues_rise, mut last_due) = (true, 0);
    line.begin();
    let longest = law.longest().0;
    let mut idle_since = None;
    loop {
        assert_eq!(line.round(), None);
        truths.drain(|truth| {
            sums.take(&truth);
            match truth.fate {
                Fate::Lost => lost.push(truth.ordinal),
                Fate::Released if truth.due != truth.arrival || longest == 0 => {
                    dues_rise &= truth.due.0 >= last_due;
                    last_due = truth.due.0;
                }
                _ => (),
            }
        });
        let counts = line.account().directions[0].counts;
        if counts.received == frames {
            let since = *idle_since.get_or_insert(line.hand.last.0);
            if counts.waiting_at_the_end == 0 {
                break;
            }
            assert!(line.hand.last.0 - since < 10 * longest + 1_000_000_000, "{counts:?}");
        }
    }
    line.finish();
    truths.drain(|truth| sums.take(&truth));
    assert_eq!(truths.missed(), 0);
    sums.check(&line);
    assert_eq!(line.ports.second.changed, 0);
    let sent = line.ports.second.sent.iter().map(|(number, _)| *number).collect();
    Through { sent, counts: line.account().directions[0].counts, lost, dues_rise }
}

/// How a receiver accounts for numbers: each once, those that came again, those that came after a later one
/// (RFC 4737), and those that are missing.
fn received(sent: &[u64], frames: u64) -> (u64, u64, u64, Vec<u64>) {
    let mut seen = vec![false; frames as usize];
    let (mut once, mut again, mut reordered, mut next) = (0, 0, 0, 0);
    for &number in sent {
        if std::mem::replace(&mut seen[number as usize], true) {
            again += 1;
            continue;
        }
        once += 1;
        reordered += u64::from(number < next);
        next = next.max(number + 1);
    }
    let missing = (0..).zip(&seen).filter(|(_, seen)| !**seen).map(|(number, _)| number);
    (once, again, reordered, missing.collect())
}

/// The same as the line counts it, with what a second reader of the same seed draws.
fn losses_duplicates_and_order_are_exact(frames: u64) {
    let law = Law {
        delay: "uniform:5us..25us".parse().unwrap(),
        loss: 0.01,
        duplicate: 0.02,
        reorder: 0.03,
        rate: None,
        seed: 77,
    };
    let through = through(&law, frames, 1 << 12);
    let (once, again, reordered, missing) = received(&through.sent, frames);
    let counts = through.counts;
    assert_eq!((counts.received, counts.passed_on), (frames, once));
    assert_eq!((counts.duplicated, counts.reordered), (again, reordered));
    assert_eq!((counts.lost_on_purpose, &missing), (missing.len() as u64, &through.lost));
    assert_eq!((counts.overflow, counts.ring_full, counts.duplicates_lost), (0, 0, 0));
    // Which ones, by the seed alone.
    let mut losing = Rng::stream(77, 1);
    let drawn: Vec<u64> = (0..frames).filter(|_| losing.unit() < 0.01).collect();
    assert_eq!(missing, drawn);
    let mut doubling = Rng::stream(77, 2);
    let doubled = (0..frames - drawn.len() as u64).filter(|_| doubling.unit() < 0.02).count();
    assert_eq!(again, doubled as u64);
    let mut letting = Rng::stream(77, 3);
    let let_past =
        (0..frames - drawn.len() as u64).filter(|_| letting.unit() < 0.03).count() as u64;
    // Some found nobody to be let past.
    assert!(counts.let_past <= let_past && counts.let_past > let_past / 2, "{counts:?}");
    assert!(counts.reordered >= counts.let_past, "{counts:?}");
}

#[test]
fn losses_duplicates_and_order_are_exact_over_a_million_frames_and_ten_with_optimization() {
    let millions = if cfg!(debug_assertions) { 1 } else { 10 };
    losses_duplicates_and_order_are_exact(millions * 1_000_000);
}

#[test]
fn frames_keep_their_order_whatever_they_are_delayed_unless_reordering_is_asked_for() {
    for delay in ["10us", "uniform:0ns..100us", "normal:20us,20us", "exponential:1us,20us"] {
        let law = Law { delay: delay.parse().unwrap(), seed: 3, ..Law::default() };
        let through = through(&law, 50_000, 1 << 14);
        let rising = through.sent.iter().copied().eq(0..50_000);
        assert!(rising && through.dues_rise, "{delay}");
        assert_eq!((through.counts.reordered, through.counts.let_past), (0, 0), "{delay}");
    }
}

#[test]
fn everything_lost_everything_doubled_and_nothing_at_all_are_exact_too() {
    let with = |loss, duplicate| Law { loss, duplicate, ..super::constant(1_000) };
    let lost = through(&with(1.0, 1.0), 10_000, 256);
    assert_eq!((lost.sent.len(), lost.counts.lost_on_purpose), (0, 10_000));
    let doubled = through(&with(0.0, 1.0), 10_000, 256);
    assert_eq!((doubled.counts.passed_on, doubled.counts.duplicated), (10_000, 10_000));
    // Each right behind its first.
    assert!(doubled.sent.chunks(2).all(|pair| pair[0] == pair[1]));
    let plain = through(&with(0.0, 0.0), 10_000, 256);
    assert!(plain.sent.into_iter().eq(0..10_000));
}

#[test]
fn a_seed_makes_the_same_frames_suffer_and_another_one_others() {
    let with = |seed, delay: &str| {
        let delay = delay.parse().unwrap();
        through(&Law { delay, loss: 0.1, seed, ..Law::default() }, 20_000, 1 << 12).lost
    };
    let first = with(1, "5us");
    assert_eq!(first, with(1, "uniform:1us..9us"));
    assert_ne!(first, with(2, "5us"));
}

#[test]
fn what_finds_no_room_is_counted_and_what_found_some_leaves() {
    let law = super::constant(1_000_000_000);
    let clock = Shared::default();
    let a = Flow::new(&clock, 1, (1_000, 16), 200);
    let b = Flow::new(&clock, 2, (0, 1), 200);
    let (mut line, mut truths) = line_of((a, b), &clock, &law, capacity(100), nothing());
    let mut sums = Sums::default();
    line.begin();
    for _ in 0..100 {
        assert_eq!(line.round(), None);
    }
    let counts = line.account().directions[0].counts;
    assert_eq!((counts.received, counts.overflow), (1_000, 900));
    assert_eq!((counts.waiting_at_the_end, counts.closes()), (100, true));
    clock.pass(Nanos::SECOND.0);
    for _ in 0..10 {
        assert_eq!(line.round(), None);
    }
    line.finish();
    truths.drain(|truth| sums.take(&truth));
    sums.check(&line);
    let sent: Vec<u64> = line.ports.second.sent.iter().map(|(number, _)| *number).collect();
    assert!(sent.into_iter().eq(0..100));
}

#[test]
fn a_limit_of_the_rate_spaces_frames_and_drops_what_it_does_not_keep() {
    // A frame of 64 bytes has 88 on the wire with what is around it: 704 bits, 704 ns.
    for (rate, each, passed) in
        [("1Gbit/s", 704, 1_000), ("1Gbit/s@L2", 544, 1_000), ("10kpps", 100_000, 101)]
    {
        let rate: crate::schedule::Rate = rate.parse().unwrap();
        let law = Law { rate: Some(rate.into()), ..super::constant(5_000) };
        let clock = Shared::default();
        let a = Flow::new(&clock, 1, (1_000, 50), 0);
        let b = Flow::new(&clock, 2, (0, 1), 0);
        let (mut line, mut truths) = line_of((a, b), &clock, &law, capacity(1_000), nothing());
        let mut dues = Vec::new();
        let (mut sums, mut first) = (Sums::default(), u64::MAX);
        line.begin();
        for _ in 0..20 {
            assert_eq!(line.round(), None);
        }
        clock.pass(1_000_000_000);
        for _ in 0..20 {
            assert_eq!(line.round(), None);
        }
        line.finish();
        truths.drain(|truth| {
            sums.take(&truth);
            first = first.min(truth.arrival.0);
            if truth.fate == Fate::Released {
                dues.push(truth.due.0);
            }
        });
        sums.check(&line);
        let counts = line.account().directions[0].counts;
        assert_eq!((counts.passed_on, counts.rate_dropped), (passed, 1_000 - passed), "{rate}");
        // The first passes when it is through, and each other one as much later.
        let expected = (1..).map(|count| first + count * each + 5_000);
        assert!(dues.into_iter().zip(expected).all(|(due, expected)| due == expected), "{rate}");
    }
}
