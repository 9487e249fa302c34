//! What looking costs: the same requests unlooked at, stamped, traced, and both, in turns.
//!
//! In each round every way of looking is measured once, and nothing twice, in an order that the seed draws;
//! each second round has that of the one before the other way round, so that of any two ways each comes
//! first as often. Each measurement opens its ends anew and looks as the recording did: stamps are taken
//! in, events read and followed, requests composed. So what is told is what a recording pays, not what a
//! flag of the kernel does. What nothing differs from itself by is told beside it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use whylate_model::breakdown::{LookedAt, LookingCost, More, Probed, Untold};
use whylate_model::{Nanos, Pid, Ticks};
use whylate_net::Cookie;
use whylate_net::open_loop::settled::{self, Settlements};
use whylate_net::open_loop::{Ended, Latencies, OpenOutcome, Tell};
use whylate_stats::rng::Rng;
use whylate_stats::{Histogram, bootstrap};
use whylate_sys::process;
use whylate_threads::Placement;

use super::Recording;
use super::breakdown::{self, Apart, Sources, TakeApart};
use super::ends::{self, Wish};
use super::pace::Pace;
use super::request::Request;
use crate::RecordError;
use crate::attend::{Attendant, Part};
use crate::progress::Progress;

/// A round of fewer round trips has no 99th percentile.
const LEAST_FOR_P99: u64 = 100;
/// The percentiles that are set against each other.
const PERCENTS: [f64; 2] = [50.0, 99.0];

/// A way of looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    name: &'static str,
    stamps: bool,
    trace: bool,
}

/// All of them: the first is what the others are set against, the second the same again.
const WAYS: [Way; 5] = [
    Way { name: "nothing", stamps: false, trace: false },
    Way { name: "nothing, again", stamps: false, trace: false },
    Way { name: "stamps", stamps: true, trace: false },
    Way { name: "trace", stamps: false, trace: true },
    Way { name: "stamps and trace", stamps: true, trace: true },
];

/// What has come of one way.
struct Row {
    way: Way,
    /// Why it cannot be had here; none where it can.
    missing: Option<&'static str>,
    all: Histogram,
    /// By round: the percentiles that are known.
    rounds: BTreeMap<u32, [f64; 2]>,
}

/// Why a way has no number.
const NOT_ASKED: &str = "it was not asked for: see --breakdown";
const NO_STAMPS: &str = "no stamps can be had here";
const NO_TRACE: &str = "the kernel's trace cannot be had here";
const NOTHING_CAME: &str = "no request was answered";
/// Rounds that an interval is made from, at least.
const FEWEST_ROUNDS: usize = 2;

/// What stamps come is found out before the measurement, and not again here.
const UNPROBED: &[Probed] = &[];

/// One measurement.
enum One {
    Done(Box<OpenOutcome>),
    /// There is no such way of looking here, and why.
    NotToBeHad(&'static str),
    Stopped,
}

/// How many measurements a round has, of what is asked for.
#[must_use]
pub fn measurements(asked: &TakeApart) -> u32 {
    WAYS.iter().filter(|way| is_asked(asked, **way)).count() as u32
}

fn is_asked(asked: &TakeApart, way: Way) -> bool {
    (asked.stamps || !way.stamps) && (asked.trace || !way.trace)
}

/// What looking costs the first flow, in so many rounds, as long together as the measurement was; none
/// where it was stopped before anything could be told.
pub(super) fn cost(
    recording: &mut Recording<'_>,
    rounds: u32,
    progress: &mut dyn Progress,
) -> Result<Option<LookingCost>, RecordError> {
    let asked = recording.request;
    let Some(of) = &asked.take_apart else { return Ok(None) };
    let parts = u64::from(rounds) * u64::from(measurements(of));
    let share = |time: Nanos| Nanos(time.0 / parts.max(1));
    let request = Request {
        flows: asked.flows.iter().take(1).cloned().collect(),
        warmup: share(asked.warmup),
        duration: share(asked.duration),
        log_packets: false,
        ..asked.clone()
    };
    let (ways, others): (Vec<Way>, Vec<Way>) = WAYS.into_iter().partition(|way| is_asked(of, *way));
    let mut rows: Vec<Row> = ways.into_iter().map(Row::new).collect();
    let mut order: Vec<Vec<String>> = Vec::new();
    'rounds: for round in 0..rounds {
        let what = format!("what looking costs, round {} of {rounds}", round + 1);
        order.push(Vec::new());
        for row in order_of(round, rows.len(), request.seed) {
            if rows[row].missing.is_some() {
                continue;
            }
            match one(recording, &request, rows[row].way, (round, &what), progress)? {
                One::Done(outcome) => {
                    rows[row].take(round, &outcome);
                    if let Some(measured) = order.last_mut() {
                        measured.push(rows[row].way.name.to_owned());
                    }
                }
                One::NotToBeHad(why) => rows[row].missing = Some(why),
                One::Stopped => break 'rounds,
            }
        }
    }
    // Stopped before the first of a round was over.
    order.retain(|round| !round.is_empty());
    let unasked = others.into_iter().map(|way| untold(way, NOT_ASKED));
    Ok(told(&rows, request.seed).map(|mut cost| {
        cost.untold.extend(unasked);
        LookingCost { order, ..cost }
    }))
}

/// The rows of a round in their order: each second round has that of the one before the other way round.
fn order_of(round: u32, rows: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    Rng::stream(seed, u64::from(round / 2)).shuffle(&mut order);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

fn untold(way: Way, why: impl Into<String>) -> Untold {
    Untold { by: way.name.to_owned(), why: why.into() }
}

impl Row {
    fn new(way: Way) -> Self {
        Self { way, missing: None, all: Histogram::new(), rounds: BTreeMap::new() }
    }

    fn take(&mut self, round: u32, outcome: &OpenOutcome) {
        let (values, above) = (&outcome.latencies.service, outcome.given_up.service_above);
        self.all.add(values);
        if values.len() < LEAST_FOR_P99 {
            return;
        }
        let known = PERCENTS.map(|percent| {
            values.value_at(percent).filter(|value| above.is_none_or(|above| *value < above.0))
        });
        if let [Some(median), Some(p99)] = known {
            self.rounds.insert(round, [median as f64, p99 as f64]);
        }
    }
}

impl Way {
    /// How requests are taken apart by it.
    fn asked(self, request: &Request) -> TakeApart {
        TakeApart {
            stamps: self.stamps,
            trace: self.trace,
            told: false,
            bed_tap: false,
            tap: None,
            stamp_every: request.take_apart.as_ref().map_or(1, |of| of.stamp_every),
            cost_rounds: None,
        }
    }
}

/// One way of looking in one round.
fn one(
    recording: &mut Recording<'_>,
    request: &Request,
    way: Way,
    (round, what): (u32, &str),
    progress: &mut dyn Progress,
) -> Result<One, RecordError> {
    if recording.is_stopped() {
        return Ok(One::Stopped);
    }
    let Some(flow) = request.flows.first() else { return Ok(One::NotToBeHad(NOTHING_CAME)) };
    let asked = way.asked(request);
    let looks = way.stamps || way.trace;
    let cookie = Cookie::fresh();
    let protocol = flow.protocol.with(cookie);
    let (bench, warnings) = (&recording.bench, &mut recording.warnings);
    let Sources { far_stamps: stamps, metadata: frames, .. } = asked.sources(flow);
    let wish = Wish { stalls: false, visits: stamps, stamps, frames };
    let mut ends = ends::open(request, flow, (bench, wish), protocol.framing())?;
    let by = (bench, cookie, UNPROBED);
    let opened =
        looks.then(|| breakdown::open::open(request, &asked, (0, flow), by, &mut ends, warnings));
    let (parts, hand) = opened.unzip();
    let hand = hand.flatten();
    let mut apart =
        Apart::begin(request, (bench, &asked), None, parts.into_iter().collect(), warnings);
    let traced = apart.as_ref().is_some_and(Apart::is_traced);
    if way.stamps && hand.is_none() {
        return Ok(One::NotToBeHad(NO_STAMPS));
    }
    if way.trace && !traced {
        return Ok(One::NotToBeHad(NO_TRACE));
    }
    let mut settings = request.open_loop(flow, bench.rate);
    settings.plan.seed = request.seed.wrapping_add(u64::from(round));
    settings.interval = settings.duration;
    let (cpus, watched) = (request.cpus(), ends.watched());
    let duration = Nanos(request.warmup.0 + request.duration.0);
    let part = Part { what, duration, cpus: &cpus, watched: &watched };
    let (stop, halt) = (recording.stop, AtomicBool::new(false));
    // As in the recording, or nobody looks in as often.
    let pace = Pace::beside_an_end(looks, 0.0);
    let placement = Placement { cpu: Some(flow.cpu), fifo: flow.fifo };
    let mut counter = recording.bench.counter;
    let near = &mut *ends.near;
    let (to, coming) = channel::<Settlements>();
    let mut settlements = None;
    let (own, storage) = (process::tid(), &mut recording.storage);
    let mut beside = |now: Ticks| {
        if stop.load(Ordering::Relaxed) {
            halt.store(true, Ordering::Relaxed);
        }
        let Some(apart) = &mut apart else { return };
        if let Ok(of) = coming.try_recv() {
            settlements = Some(of);
            apart.threads(0, &other_threads(own));
        }
        apart.look(now);
        if let Some(settlements) = &mut settlements {
            settlements.drain(|settled| apart.request(0, &settled));
        }
        apart.meet(now, storage);
    };
    let mut attendant = Attendant {
        bench: &mut recording.bench,
        progress,
        warnings: &mut recording.warnings,
        every: pace.wake,
        host_every: pace.host,
        beside: &mut beside,
    };
    let done = attendant.attend(&part, || -> Result<_, RecordError> {
        let (_, warnings) = placement.settle()?;
        let mut nobody = |_, latencies: &mut Latencies| latencies.clear();
        let mut settling = looks.then(|| {
            let (settling, settlements) = settled::between();
            // The recording's thread waits for the end of this one.
            let _ = to.send(settlements);
            settling
        });
        let mut stamping = hand.as_ref().map(breakdown::Hand::begin);
        let tell = Tell {
            intervals: &mut nobody,
            requests: settling.as_mut(),
            stalls: None,
            stamps: stamping.as_mut(),
        };
        let outcome = settings.run(near, &mut counter, &*protocol, &halt, tell)?;
        Ok((outcome, warnings))
    })?;
    let (outcome, warnings) = done?;
    recording.warnings.extend(warnings);
    if let Some(apart) = apart {
        let found = apart.finish(&mut recording.storage);
        recording.warnings.extend(found.warnings);
    }
    if recording.is_stopped() || matches!(outcome.why, Ended::Stopped) {
        return Ok(One::Stopped);
    }
    match ends.cut_short(&outcome.why, outcome.account.is_some()) {
        Some(reason) => Err(RecordError::Flow { flow: flow.name.clone(), reason }),
        None => Ok(One::Done(Box::new(outcome))),
    }
}

/// Threads of this process but for this one: there is one client, and they are its.
fn other_threads(own: Pid) -> Vec<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let all = tasks.filter_map(|task| Some(Pid(task.file_name().to_str()?.parse().ok()?)));
    all.filter(|tid| *tid != own).collect()
}

/// What each way costs, or why that is not told; none where not even a median is known of any.
fn told(rows: &[Row], seed: u64) -> Option<LookingCost> {
    let (first, again) = (rows.first()?, rows.get(1)?);
    let (mut ways, mut without) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let Some(median) = row.all.value_at(50.0) else {
            without.push(untold(row.way, row.missing.unwrap_or(NOTHING_CAME)));
            continue;
        };
        let compared = match number {
            0 => None,
            1 => Some(more(row, |round| first.rounds.get(&round).copied(), seed)),
            _ => Some(more(
                row,
                |round| {
                    let (a, b) = (first.rounds.get(&round)?, again.rounds.get(&round)?);
                    Some([f64::midpoint(a[0], b[0]), f64::midpoint(a[1], b[1])])
                },
                seed,
            )),
        };
        let more = match compared {
            Some(Ok(more)) => Some(more),
            Some(Err(why)) => {
                without.push(untold(row.way, why));
                None
            }
            None => None,
        };
        ways.push(LookedAt { by: row.way.name.to_owned(), median: Nanos(median), more });
    }
    let rounds = first.rounds.len() as u64;
    let cost = LookingCost { rounds, ways, order: Vec::new(), untold: without };
    (!cost.ways.is_empty()).then_some(cost)
}

/// How much longer requests took than at `before`, from the rounds that both have; the reason where too few
/// have both for an interval.
fn more(row: &Row, before: impl Fn(u32) -> Option<[f64; 2]>, seed: u64) -> Result<More, String> {
    let pairs: Vec<([f64; 2], [f64; 2])> =
        row.rounds.iter().filter_map(|(round, of)| Some((before(*round)?, *of))).collect();
    let of = |index: usize| {
        let differences: Vec<f64> =
            pairs.iter().map(|(before, of)| of[index] - before[index]).collect();
        let interval = bootstrap::of_mean(&differences, seed);
        interval.is_bounded().then(|| [bootstrap::mean(&differences), interval.low, interval.high])
    };
    match (of(0), of(1)) {
        (Some(median_ns), Some(p99_ns)) => Ok(More { median_ns, p99_ns }),
        _ => Err(format!(
            "rounds with {LEAST_FOR_P99} answered requests each, with it and without it, are {}, and \
             {FEWEST_ROUNDS} are needed for an interval",
            pairs.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(way: usize, rounds: &[[f64; 2]]) -> Row {
        let mut row = Row::new(WAYS[way]);
        row.all.record(10_000);
        row.rounds = (0..).zip(rounds.iter().copied()).collect();
        row
    }

    /// Rounds of a host whose round trips wander by 3 us, and what a way adds to them.
    fn rounds(added: [f64; 2], own: f64) -> Vec<[f64; 2]> {
        let wander = |round: u32| f64::from(round % 7) * 500.0;
        let noise = |round: u32| (f64::from((round * 31) % 11) - 5.0) * own;
        let one = |round| [10_000.0, 30_000.0].map(|base| base + wander(round) + noise(round));
        (0..20).map(one).map(|[a, b]| [a + added[0], b + added[1]]).collect()
    }

    #[test]
    fn what_a_way_adds_is_found_again_with_an_interval_though_the_host_wanders_by_more() {
        let nothing = rounds([0.0, 0.0], 1.0);
        let again = rounds([0.0, 0.0], 2.0);
        let stamped = rounds([700.0, 1_500.0], 1.0);
        let rows = [row(0, &nothing), row(1, &again), row(2, &stamped)];
        let cost = told(&rows, 7).unwrap();
        assert_eq!((cost.rounds, cost.ways.len()), (20, 3));
        assert_eq!(cost.ways[0].more, None);
        let control = cost.ways[1].more.unwrap();
        assert!(control.median_ns[1] <= 0.0 && control.median_ns[2] >= 0.0, "{control:?}");
        let stamps = cost.ways[2].more.unwrap();
        let [estimate, low, high] = stamps.median_ns;
        assert!((estimate - 700.0).abs() < 10.0 && low <= 700.0 && high >= 700.0, "{stamps:?}");
        let [estimate, low, high] = stamps.p99_ns;
        assert!((estimate - 1_500.0).abs() < 10.0 && low > 1_400.0 && high < 1_600.0, "{stamps:?}");
    }

    #[test]
    fn rounds_that_one_of_both_lacks_are_not_compared_and_one_round_claims_nothing() {
        let nothing = rounds([0.0, 0.0], 1.0);
        let rows = [row(0, &nothing), row(1, &nothing), row(2, &nothing[..1])];
        let cost = told(&rows, 7).unwrap();
        assert_eq!(cost.ways[2].more, None);
        let [untold] = &cost.untold[..] else { panic!("{:?}", cost.untold) };
        assert_eq!(untold.by, "stamps");
        assert!(untold.why.contains("without it, are 1, and 2 are needed"), "{untold:?}");
        assert!(told(&rows[..1], 7).is_none());
    }

    #[test]
    fn a_way_that_cannot_be_had_or_brought_nothing_has_its_reason_in_place_of_a_number() {
        let nothing = rounds([0.0, 0.0], 1.0);
        let mut traced = Row::new(WAYS[3]);
        traced.missing = Some(NO_TRACE);
        let rows = [row(0, &nothing), row(1, &nothing), Row::new(WAYS[2]), traced];
        let cost = told(&rows, 7).unwrap();
        assert_eq!(cost.ways.len(), 2);
        let expected = [untold(WAYS[2], NOTHING_CAME), untold(WAYS[3], NO_TRACE)];
        assert_eq!(cost.untold, expected);
    }

    #[test]
    fn of_any_two_ways_each_comes_first_in_as_many_rounds_and_orders_differ() {
        for rows in [2, 3, 5] {
            for seed in 0..20 {
                let orders: Vec<Vec<usize>> =
                    (0..20).map(|round| order_of(round, rows, seed)).collect();
                let place = |order: &[usize], row| order.iter().position(|of| *of == row).unwrap();
                for (one, other) in (0..rows).flat_map(|one| (0..one).map(move |of| (one, of))) {
                    let first =
                        orders.iter().filter(|of| place(of, one) < place(of, other)).count();
                    assert_eq!(first, 10, "{one} and {other}: {orders:?}");
                }
                let mut distinct = orders.clone();
                distinct.sort();
                distinct.dedup();
                assert!(distinct.len() >= 2, "{orders:?}");
            }
        }
    }

    #[test]
    fn only_what_is_asked_for_is_measured() {
        let asked = |stamps, trace| TakeApart {
            stamps,
            trace,
            told: true,
            bed_tap: false,
            tap: None,
            stamp_every: 1,
            cost_rounds: Some(2),
        };
        assert_eq!(measurements(&asked(true, true)), 5);
        assert_eq!(measurements(&asked(true, false)), 3);
        assert_eq!(measurements(&asked(false, true)), 3);
        assert_eq!(measurements(&asked(false, false)), 2);
    }
}
