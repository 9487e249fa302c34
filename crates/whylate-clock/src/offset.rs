//! How far the counters of two CPUs are apart.
//!
//! Two threads, each bound to its CPU, throw one cache line to and fro. The first reads its
//! counter, throws, and reads again when the line is back; the second reads its own in between.
//! Whatever the way there and the way back took, the second reading was made between the first
//! thread's two, so the offset is known to half the round trip; of thousands of round trips the
//! shortest is taken, as NTP does.
//!
//! Stamps of two CPUs that are closer than the bound have no order, and [`order`] says so.

use std::cmp::Ordering as Sequence;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use whylate_model::run::CpuOffset;
use whylate_model::{CpuId, Ticks, TicksDelta};
use whylate_sys::affinity;

use crate::{ClockError, Counter, cost};

/// Round trips of which the shortest counts: some milliseconds.
const ROUNDS: u64 = 20_000;

/// How long to wait for a CPU that something else keeps busy.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long a thread may take to notice that it is to stop.
const GRACE: Duration = Duration::from_millis(200);

/// Looks at the line, some tens of nanoseconds each, after which a thread gives up by itself: one
/// under a real-time policy could keep the caller from stopping it.
const LOOKS: u32 = 1 << 24;

/// The answer of a thread that found itself on another CPU than its own.
const ASTRAY: u64 = u64::MAX;

/// Measures the offset of `cpu` against `reference`: the bound holds for the offset in ticks.
///
/// Both CPUs are kept busy for some milliseconds by threads that end with the call. It comes back
/// within a second even if they get nothing of a CPU; such a thread then ends as soon as it
/// runs.
///
/// # Errors
/// [`ClockError::Affinity`] when a thread may not run on its CPU, [`ClockError::Busy`] when not one
/// round trip came about. With few of them the bound is wide, not wrong.
pub fn measure<C>(counter: &C, reference: CpuId, cpu: CpuId) -> Result<CpuOffset, ClockError>
where
    C: Counter + Clone + 'static,
{
    let step = cost::resolution_ticks(&mut counter.clone());
    between(counter.clone(), reference, counter.clone(), cpu, step)
}

/// Measures again at the end of a run, into the same record: its bound then holds for both ends,
/// and for all between them if the offset went from one to the other.
///
/// # Errors
/// As [`measure`].
pub fn repeat<C>(counter: &C, at_start: &CpuOffset) -> Result<CpuOffset, ClockError>
where
    C: Counter + Clone + 'static,
{
    Ok(joined(at_start, &measure(counter, at_start.reference, at_start.cpu)?))
}

/// Which of two stamps was first, by offsets that were all measured against the same reference.
///
/// None when they are closer than the bounds allow to tell, or when nothing is known about one of
/// the CPUs.
#[must_use]
pub fn order(offsets: &[CpuOffset], a: (CpuId, Ticks), b: (CpuId, Ticks)) -> Option<Sequence> {
    if a.0 == b.0 {
        return Some(a.1.cmp(&b.1));
    }
    let on_reference = |(cpu, ticks): (CpuId, Ticks)| {
        let reference = offsets.first()?.reference;
        let (offset, bound) = if cpu == reference {
            (0, 0)
        } else {
            let known = offsets.iter().find(|o| o.cpu == cpu && o.reference == reference)?;
            (known.offset_ticks, known.bound.0)
        };
        Some((i128::from(ticks.0) - i128::from(offset), i128::from(bound)))
    };
    let ((a, a_bound), (b, b_bound)) = (on_reference(a)?, on_reference(b)?);
    ((a - b).abs() > a_bound + b_bound).then(|| a.cmp(&b))
}

fn joined(start: &CpuOffset, end: &CpuOffset) -> CpuOffset {
    let moved = TicksDelta(end.offset_ticks.abs_diff(start.offset_ticks));
    CpuOffset {
        bound: start.bound.max(moved + end.bound),
        offset_ticks_at_end: Some(end.offset_ticks),
        ..*start
    }
}

/// The cache line that is thrown, with its neighbour that processors fetch along with it.
#[repr(align(128))]
#[derive(Default)]
struct Line {
    /// Odd when thrown, even when thrown back.
    ball: AtomicU64,
    /// The second thread's reading.
    stamp: AtomicU64,
}

/// What the two threads share.
#[derive(Default)]
struct Court {
    line: Line,
    stop: AtomicBool,
}

impl Court {
    /// Waits until the ball lies there as `expected`; false when told to stop or tired of waiting.
    #[inline]
    fn wait_for(&self, expected: u64) -> bool {
        for _ in 0..LOOKS {
            if self.line.ball.load(Ordering::Acquire) == expected {
                return true;
            }
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            hint::spin_loop();
        }
        false
    }
}

/// The shortest round trip so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shortest {
    thrown: Ticks,
    answered: Ticks,
    back: Ticks,
    rounds: u64,
}

impl Shortest {
    const NONE: Self =
        Self { thrown: Ticks(0), answered: Ticks(0), back: Ticks(u64::MAX), rounds: 0 };

    fn with(self, thrown: Ticks, answered: Ticks, back: Ticks) -> Self {
        let rounds = self.rounds + 1;
        if back.since(thrown) < self.back.since(self.thrown) {
            Self { thrown, answered, back, rounds }
        } else {
            Self { rounds, ..self }
        }
    }

    /// The offset and its bound, by counters that move by `step`: a reading stands for any time
    /// until the next step.
    fn offset(self, step: TicksDelta) -> (i64, TicksDelta) {
        let round_trip = self.back.since(self.thrown).0;
        let middle = i128::from(self.thrown.0) + i128::from(round_trip / 2);
        let offset = i128::from(self.answered.0) - middle;
        let offset = offset.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        (offset, TicksDelta(round_trip.div_ceil(2)) + step)
    }
}

/// What a thread reports.
enum Report {
    /// It may not run on its CPU.
    Refused(ClockError),
    /// The first thread has thrown all it wanted or was told to stop.
    Thrown(Shortest),
    /// The second thread has stopped.
    Answered,
}

fn between<C>(
    first: C,
    reference: CpuId,
    second: C,
    cpu: CpuId,
    step: TicksDelta,
) -> Result<CpuOffset, ClockError>
where
    C: Counter + 'static,
{
    if reference == cpu {
        return Ok(record(reference, cpu, (0, TicksDelta(0))));
    }
    let court = Arc::new(Court::default());
    let (sender, reports) = channel();
    let thrower = player(&court, reference, &sender, move |court| {
        Report::Thrown(throw(first, court, reference))
    });
    let answerer = player(&court, cpu, &sender, move |court| {
        answer(second, court, cpu);
        Report::Answered
    });
    drop(sender);
    let shortest = match (thrower, answerer) {
        (Ok(()), Ok(())) => referee(&court, &reports),
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    court.stop.store(true, Ordering::Relaxed);
    // Threads that still run would disturb whatever is measured next.
    while reports.recv_timeout(GRACE).is_ok() {}
    match shortest? {
        Shortest { rounds: 0, .. } => Err(ClockError::Busy { reference, cpu }),
        // However few rounds there were: the bound is that of the shortest.
        shortest => Ok(record(reference, cpu, shortest.offset(step))),
    }
}

fn record(reference: CpuId, cpu: CpuId, (offset_ticks, bound): (i64, TicksDelta)) -> CpuOffset {
    CpuOffset { reference, cpu, offset_ticks, bound, offset_ticks_at_end: None }
}

/// Starts a thread that binds itself to `cpu`, plays, and reports.
fn player(
    court: &Arc<Court>,
    cpu: CpuId,
    sender: &Sender<Report>,
    play: impl FnOnce(&Court) -> Report + Send + 'static,
) -> Result<(), ClockError> {
    let (court, sender) = (Arc::clone(court), sender.clone());
    let body = move || {
        let report = match affinity::set(&[cpu]) {
            Ok(()) => play(&court),
            Err(source) => Report::Refused(ClockError::Affinity { cpu, source }),
        };
        // The referee may have gone.
        let _ = sender.send(report);
    };
    match thread::Builder::new().name(format!("offset/{cpu}")).spawn(body) {
        Ok(_detached) => Ok(()),
        Err(source) => Err(ClockError::Thread { source }),
    }
}

/// Waits for the first thread, and stops both when it takes too long.
fn referee(court: &Court, reports: &Receiver<Report>) -> Result<Shortest, ClockError> {
    let mut patience = PATIENCE;
    loop {
        match reports.recv_timeout(patience) {
            Ok(Report::Thrown(shortest)) => return Ok(shortest),
            Ok(Report::Refused(error)) => return Err(error),
            Ok(Report::Answered) => {}
            Err(_) if !court.stop.swap(true, Ordering::Relaxed) => patience = GRACE,
            Err(_) => return Ok(Shortest::NONE),
        }
    }
}

fn throw<C: Counter>(mut counter: C, court: &Court, own: CpuId) -> Shortest {
    let Line { ball, stamp } = &court.line;
    let mut shortest = Shortest::NONE;
    for round in 1..=ROUNDS {
        let (thrown, cpu_before) = counter.read_ordered();
        ball.store(2 * round - 1, Ordering::Release);
        if !court.wait_for(2 * round) {
            break;
        }
        let (back, cpu_after) = counter.read_ordered();
        let answered = stamp.load(Ordering::Relaxed);
        if answered != ASTRAY && cpu_before == own && cpu_after == own {
            shortest = shortest.with(thrown, Ticks(answered), back);
        }
    }
    shortest
}

fn answer<C: Counter>(mut counter: C, court: &Court, own: CpuId) {
    let Line { ball, stamp } = &court.line;
    for round in 1..=ROUNDS {
        if !court.wait_for(2 * round - 1) {
            break;
        }
        let (ticks, cpu) = counter.read_ordered();
        stamp.store(if cpu == own { ticks.0 } else { ASTRAY }, Ordering::Relaxed);
        ball.store(2 * round, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;
    use crate::HardwareCounter;
    use crate::testing;

    /// The hardware's counter with a planted offset.
    #[derive(Clone)]
    struct Shifted(HardwareCounter, u64);

    impl Counter for Shifted {
        const KIND: &'static str = "shifted";

        fn read(&mut self) -> Ticks {
            Ticks(self.0.read().0.wrapping_add(self.1))
        }

        fn read_ordered(&mut self) -> (Ticks, CpuId) {
            let (ticks, cpu) = self.0.read_ordered();
            (Ticks(ticks.0.wrapping_add(self.1)), cpu)
        }

        fn cpu(&mut self) -> CpuId {
            self.0.cpu()
        }
    }

    /// Asks again while something else keeps a CPU from the two threads.
    fn patiently(
        mut ask: impl FnMut() -> Result<CpuOffset, ClockError>,
    ) -> Result<CpuOffset, ClockError> {
        let mut answer = ask();
        for _ in 1..60 {
            if !matches!(answer, Err(ClockError::Busy { .. })) {
                break;
            }
            answer = ask();
        }
        answer
    }

    fn ways(length: Range<u64>) -> impl Strategy<Value = Vec<(u64, u64)>> {
        proptest::collection::vec((length.clone(), length), 1..50)
    }

    fn offset(cpu: u32, offset_ticks: i64, bound: u64) -> CpuOffset {
        record(CpuId(0), CpuId(cpu), (offset_ticks, TicksDelta(bound)))
    }

    #[test]
    fn a_planted_offset_is_found_on_top_of_the_real_one() {
        let Some((counter, [a, b])) = testing::hardware_on_two_cpus() else { return };
        let step = cost::resolution_ticks(&mut { counter });
        let shifted_by = |planted: i64| {
            let shifted = Shifted(counter, planted as u64);
            patiently(|| between(Shifted(counter, 0), a, shifted.clone(), b, step)).unwrap()
        };
        let real = shifted_by(0);
        for planted in [1_000_000i64, -1_000_000] {
            let found = shifted_by(planted);
            let off = found.offset_ticks - real.offset_ticks - planted;
            let allowed = found.bound + real.bound;
            assert!(off.unsigned_abs() <= allowed.0, "{found:?} beside {real:?}");
        }
    }

    #[test]
    fn the_offset_in_one_direction_is_the_negative_of_the_other() {
        let Some((counter, [a, b])) = testing::hardware_on_two_cpus() else { return };
        let there = patiently(|| measure(&counter, a, b)).unwrap();
        let back = patiently(|| measure(&counter, b, a)).unwrap();
        let off = there.offset_ticks + back.offset_ticks;
        assert!(off.unsigned_abs() <= (there.bound + back.bound).0, "{there:?}, {back:?}");
        let again = patiently(|| repeat(&counter, &there)).unwrap();
        assert!(again.offset_ticks_at_end.is_some());
        assert!(again.bound >= there.bound);
    }

    #[test]
    fn a_cpu_has_no_offset_against_itself() {
        let Some(counter) = testing::hardware() else { return };
        let own = measure(&counter, CpuId(0), CpuId(0)).unwrap();
        assert_eq!((own.offset_ticks, own.bound), (0, TicksDelta(0)));
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let Some(counter) = testing::hardware() else { return };
        let (here, absent) = (affinity::get()[0], CpuId(100_000));
        for (reference, cpu) in [(here, absent), (absent, here)] {
            match patiently(|| measure(&counter, reference, cpu)) {
                Err(ClockError::Affinity { cpu, .. }) => assert_eq!(cpu, absent),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_thread_that_always_finds_itself_astray_counts_no_round() {
        let court = Court::default();
        let Some(counter) = testing::hardware() else { return };
        let shortest = thread::scope(|scope| {
            scope.spawn(|| answer(counter, &court, CpuId(u32::MAX)));
            let stop = scope.spawn(|| {
                let shortest = throw(counter, &court, CpuId(u32::MAX));
                court.stop.store(true, Ordering::Relaxed);
                shortest
            });
            stop.join().unwrap()
        });
        assert_eq!(shortest, Shortest::NONE);
    }

    #[test]
    fn a_partner_that_never_comes_is_not_waited_for_longer_than_stated() {
        let Some(counter) = testing::hardware() else { return };
        let court = Arc::new(Court::default());
        let (sender, reports) = channel();
        let report = sender.clone();
        let alone = Arc::clone(&court);
        thread::spawn(move || report.send(Report::Thrown(throw(counter, &alone, CpuId(0)))));
        let shortest = referee(&court, &reports).unwrap();
        assert_eq!(shortest.rounds, 0);
    }

    #[test]
    fn stamps_closer_than_the_bounds_have_no_order() {
        let offsets = [offset(1, 100, 20), offset(2, -50, 30)];
        let order = |a: (u32, u64), b: (u32, u64)| {
            order(&offsets, (CpuId(a.0), Ticks(a.1)), (CpuId(b.0), Ticks(b.1)))
        };
        assert_eq!(order((1, 1_000), (1, 1_001)), Some(Sequence::Less), "one CPU: always");
        assert_eq!(order((0, 1_000), (1, 1_121)), Some(Sequence::Less));
        assert_eq!(order((0, 1_000), (1, 1_120)), None);
        assert_eq!(order((0, 1_000), (1, 1_079)), Some(Sequence::Greater));
        assert_eq!(order((1, 1_100), (2, 950)), None, "both are 1 000 by the reference");
        assert_eq!(order((1, 1_100), (2, 1_001)), Some(Sequence::Less));
        assert_eq!(order((1, 1_100), (2, 1_000)), None);
        assert_eq!(order((0, 0), (7, 1 << 60)), None, "nothing is known of CPU 7");
    }

    #[test]
    fn a_repeated_measurement_widens_the_bound_to_hold_both() {
        let joined = joined(&offset(1, 100, 20), &offset(1, 140, 15));
        assert_eq!(joined.offset_ticks_at_end, Some(140));
        assert_eq!((joined.offset_ticks, joined.bound), (100, TicksDelta(55)));
    }

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_bound_whatever_the_ways_take(
            truth in -1_000_000_000i64..1_000_000_000,
            start in (1u64 << 40)..1 << 60,
            // Ways there and back, of any asymmetry, in 1/16 ticks; the counter moves by 8 ticks.
            ways in prop_oneof![ways(1..100_000), ways(1..100)],
        ) {
            let shown = |now: u128, offset: i64| {
                Ticks(((now / 16) as u64).wrapping_add_signed(offset) & !7)
            };
            let mut shortest = Shortest::NONE;
            let mut now = u128::from(start) * 16;
            for (there, back) in ways {
                let thrown = shown(now, 0);
                now += u128::from(there);
                let answered = shown(now, truth);
                now += u128::from(back);
                shortest = shortest.with(thrown, answered, shown(now, 0));
                now += 1_000;
            }
            let (offset, bound) = shortest.offset(TicksDelta(8));
            prop_assert!(offset.abs_diff(truth) <= bound.0, "{offset} +- {}", bound.0);
        }
    }
}
