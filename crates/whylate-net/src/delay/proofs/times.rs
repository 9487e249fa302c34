//! The delay is the one that was set, to a turn of the line; and what a line says of itself is so.

use std::collections::VecDeque;
use std::sync::Arc;

use whylate_clock::Counter;
use whylate_model::delay::{DelayBase, Fate, Truth};
use whylate_model::{Nanos, Ticks};
use whylate_port::frame::{Tag, TagKind};
use whylate_port::frames::Frames;

use super::flow::Flow;
use super::{Sums, capacity, constant, line_of, nothing};
use crate::Cookie;
use crate::delay::base;
use crate::delay::law::{Amount, Law};
use crate::forward::memory::{Came, Memory, RATE, Shared, came};
use crate::forward::probe::{Joined, Pair};
use crate::protocol::{Phase, Speaks, tap};

/// Ticks before each look: two looks and a few readings are a turn.
const PAUSE: u64 = 50;
const TURN: u64 = 2 * PAUSE + 10;

/// Truths of so many frames, one with a look, and the median residence.
fn one_by_one(law: &Law, frames: u64) -> (Vec<Truth>, u64) {
    let clock = Shared::default();
    let a = Flow::new(&clock, 1, (frames, 1), PAUSE);
    let b = Flow::new(&clock, 2, (0, 1), PAUSE);
    let (mut line, mut truths) = line_of((a, b), &clock, law, capacity(1 << 10), nothing());
    let (mut told, mut sums) = (Vec::new(), Sums::default());
    line.begin();
    while line.account().directions[0].counts.passed_on < frames {
        assert_eq!(line.round(), None);
        truths.drain(|truth| told.push(truth));
    }
    line.finish();
    for truth in &told {
        sums.take(truth);
    }
    sums.check(&line);
    for ((number, at), truth) in line.ports.second.sent.iter().zip(&told) {
        // The truth is what the port saw.
        assert_eq!((truth.ordinal, truth.departure), (*number, Some(*at)));
    }
    let median = line.lanes[0].times.residence.value_at(50.0).unwrap();
    assert_eq!(line.lanes[0].times.lateness.len(), frames);
    (told, median)
}

fn residence(truth: &Truth) -> u64 {
    truth.departure.unwrap().0 - truth.arrival.0
}

#[test]
fn from_a_microsecond_to_ten_milliseconds_frames_leave_within_a_turn_of_their_time_with_slope_1() {
    let mut means = Vec::new();
    for delay in [0, 1_000, 3_000, 10_000, 100_000, 1_000_000, 10_000_000] {
        // As many as find room while the first one waits.
        let frames = if delay > 50_000 { 500 } else { 2_000 };
        let (told, median) = one_by_one(&constant(delay), frames);
        for truth in &told {
            assert_eq!(truth.due, Ticks(truth.arrival.0 + delay), "{truth:?}");
            let late = residence(truth) - delay;
            assert!(late <= TURN, "{delay}: {late}");
            assert_eq!((truth.fate, truth.direction, truth.bytes), (Fate::Released, 0, 64));
        }
        // Bins of the histogram are as fine as 1 in 1000.
        assert!(median.abs_diff(delay) <= TURN + delay / 1_000, "{delay}: {median}");
        let mean = told.iter().map(residence).sum::<u64>() as f64 / told.len() as f64;
        means.push((delay as f64, mean));
    }
    let (first, last) = (means[1], means[means.len() - 1]);
    let slope = (last.1 - first.1) / (last.0 - first.0);
    assert!((slope - 1.0).abs() < 0.001, "{slope}");
}

#[test]
fn a_planted_slow_turn_is_in_the_lateness_and_not_in_what_was_due() {
    let late = |pause: u64| {
        let clock = Shared::default();
        let a = Flow::new(&clock, 1, (1_000, 1), pause);
        let b = Flow::new(&clock, 2, (0, 1), pause);
        let (mut line, mut truths) =
            line_of((a, b), &clock, &constant(100), capacity(256), nothing());
        line.begin();
        for _ in 0..1_100 {
            assert_eq!(line.round(), None);
        }
        truths.drain(|truth| assert_eq!(truth.due.0, truth.arrival.0 + 100));
        line.lanes[0].times.lateness.value_at(50.0).unwrap()
    };
    // A frame is due soon after it came, and leaves a turn later.
    let (usual, slow) = (late(500), late(5_000));
    assert!((slow - usual).abs_diff(9_000) <= 20, "{usual} {slow}");
}

#[test]
fn jittered_delays_lie_where_they_were_asked_for_and_only_those_before_a_frame_make_it_wait_longer()
{
    let law = Law { delay: "uniform:5us..15us".parse().unwrap(), seed: 8, ..Law::default() };
    let (told, _) = one_by_one(&law, 5_000);
    let mut last = 0;
    for truth in &told {
        let asked = truth.due.0 - truth.arrival.0;
        assert!((5_000..=15_000).contains(&asked) || truth.due.0 == last, "{truth:?}");
        assert!(truth.due.0 >= last && residence(truth) - asked <= TURN, "{truth:?}");
        last = truth.due.0;
    }
    // Frames come every turn: nearly all of them wait for one that drew more.
    let own = told.windows(2).filter(|pair| pair[0].due != pair[1].due).count();
    assert!(own > 100 && own < 4_900, "{own}");
}

#[test]
fn a_schedule_changes_the_delay_at_its_steps_and_order_is_kept_where_it_falls() {
    let delay = Amount::schedule("0 10us\n50us 30us\n100us 1us").unwrap();
    let (told, _) = one_by_one(&Law { delay, ..Law::default() }, 2_000);
    // The law begins with the line: its first reading.
    let mut last = 0;
    let mut waits = 0;
    for truth in &told {
        let asked = match truth.arrival.0 - 1 {
            ..50_000 => 10_000,
            50_000..100_000 => 30_000,
            _ => 1_000,
        };
        let due = (truth.arrival.0 + asked).max(last);
        waits += u64::from(due == last);
        assert_eq!(truth.due.0, due, "{truth:?}");
        last = due;
    }
    // Those that came in the 29 us after the fall wait for those before it.
    assert!((250..300).contains(&waits), "{waits}");
}

#[test]
fn no_byte_is_changed_tags_go_back_and_our_own_messages_are_told_by_number_and_cookie() {
    let clock = Shared::default();
    let (mut a, b) = (Memory::new(&clock, 1), Memory::new(&clock, 2));
    let raw = Speaks::Raw.with(Cookie(0xfeed));
    let message = |phase, number| {
        let mut message = [0; 64];
        raw.prepare(&mut message);
        raw.number(phase, number, &mut message);
        datagram(&message)
    };
    let measured = message(Phase::Measured, 41);
    let warm = message(Phase::WarmUp, 42);
    let tag = Tag { kind: TagKind::Customer, control: 0x6007 };
    let with_tag = |bytes: &Vec<u8>| [&bytes[..12], &[0x81, 0, 0x60, 7], &bytes[12..]].concat();
    let tagged = with_tag(&measured);
    let stripped = Came { bytes: measured.clone(), stripped: Some(tag), kernel: None };
    let plain = |bytes: &Vec<u8>| Came { bytes: bytes.clone(), ..Came::default() };
    let foreign = datagram(&[7; 40]);
    let burst = vec![
        plain(&measured),
        stripped,
        plain(&tagged),
        plain(&warm),
        plain(&foreign),
        came(60, 0xee),
        came(13, 1),
        came(1_515, 2),
    ];
    a.coming = VecDeque::from([Ok(burst)]);
    let sent = Arc::clone(&b.sent);
    let tells = [tap::numbers(Speaks::Raw), tap::numbers(Speaks::Raw)];
    let (mut line, mut truths) = line_of((a, b), &clock, &constant(1_000), capacity(64), tells);
    line.begin();
    assert_eq!(line.round(), None);
    assert_eq!(line.lanes[0].fifo.len(), 6);
    clock.pass(1_000);
    assert_eq!(line.round(), None);
    let (mut told, mut sums) = (Vec::new(), Sums::default());
    truths.drain(|truth| {
        sums.take(&truth);
        told.push((truth.ordinal, truth.number, truth.flow, truth.fate, truth.bytes));
    });
    sums.check(&line);
    let (cookie, length) = (Some(0xfeed), measured.len() as u32);
    let expected = [
        (6, None, None, Fate::Runt, 13),
        (7, None, None, Fate::TooLong, 1_515),
        (0, Some(41), cookie, Fate::Released, length),
        (1, Some(41), cookie, Fate::Released, length + 4),
        (2, Some(41), cookie, Fate::Released, length + 4),
        (3, None, cookie, Fate::Released, length),
        (4, None, None, Fate::Released, foreign.len() as u32),
        (5, None, None, Fate::Released, 60),
    ];
    assert_eq!(told, expected);
    let left = [measured, tagged.clone(), tagged, warm, foreign, vec![0xee; 60]];
    assert_eq!(*sent.lock().unwrap(), left);
}

/// A frame of UDP over IPv4 around a message.
fn datagram(message: &[u8]) -> Vec<u8> {
    let length = (message.len() + 8) as u16;
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((length + 20).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x10, 0, 0x10, 1]);
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(message);
    frame
}

#[test]
fn a_line_says_of_itself_what_its_turns_take() {
    let measured = |pause: u64| measured(pause, false).0;
    let (quick, slow) = (measured(20), measured(200));
    for (base, turn) in [(quick, 2 * 20 + 8), (slow, 2 * 200 + 8)] {
        assert_eq!((base.frames, base.at), (base::FRAMES, Nanos(10_000)));
        // One that is not held back leaves with the turn that brought it, after some readings.
        assert!(base.base.0 >= 1 && base.base.0 <= 4, "{base:?}");
        // One that is leaves by the next look: within a turn. Of those that were held for long it says twice that.
        assert!(base.error_median.0 <= turn && base.error_max.0 <= 2 * turn, "{base:?}");
        assert!(base.error_median <= base.error && base.error <= base.error_max, "{base:?}");
        assert!(base.resolution.0 >= 1 && base.error >= base.resolution, "{base:?}");
    }
}

#[test]
fn a_line_looks_whether_its_ports_are_joined_while_it_measures_itself_and_waits_no_longer() {
    let (_, joined, took) = measured(200, false);
    assert_eq!(joined, None);
    // Frames that are held for 10 us each, and some for 10 ms: a probe may be under way for 0.2 s of that.
    assert!(took > Nanos(200_000_000) && took < Nanos(300_000_000), "{took:?}");
    assert_eq!(measured(200, true).1, Some(Joined::Probe { out: 0, back: 1 }));
}

/// Two ports; where they are joined, what leaves by the first comes by the second.
struct Outside {
    ports: [Memory; 2],
    joined: bool,
}

impl Pair for Outside {
    fn out(&mut self, at: usize) -> &mut dyn Frames {
        &mut self.ports[at]
    }

    fn receiving(&mut self, at: usize) -> &mut dyn Frames {
        &mut self.ports[at]
    }

    fn both(&mut self) -> [&mut dyn Frames; 2] {
        let [first, second] = &mut self.ports;
        if self.joined {
            let left: Vec<Vec<u8>> = std::mem::take(&mut *first.sent.lock().unwrap());
            let burst = left.into_iter().map(|bytes| Came { bytes, ..Came::default() }).collect();
            second.coming.push_back(Ok(burst));
        }
        [first, second]
    }
}

/// What a line says of itself between ports whose looks take so long, how they are joined, and how long it
/// measured.
fn measured(pause: u64, joined: bool) -> (DelayBase, Option<Joined>, Nanos) {
    let clock = Shared::default();
    let (mut a, mut b) = (Memory::new(&clock, 1), Memory::new(&clock, 2));
    (a.pause, b.pause) = (pause, pause);
    let begin = clock.clone().read();
    let mut outside = Outside { ports: [a, b], joined };
    let (base, joined) = base::measure_apart(clock.clone(), RATE, &mut outside, true).unwrap();
    (base, joined, clock.clone().read().since(begin).to_nanos(RATE))
}
