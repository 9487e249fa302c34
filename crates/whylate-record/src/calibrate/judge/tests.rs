//! Backends whose error is known, judged.

use whylate_model::directory::RunDir;

use super::super::kept::too_few;
use super::super::planted::Tail;
use super::*;
use crate::storage::Limits;

/// One tick is a nanosecond.
const RATE: Hertz = Hertz(1e9);
/// Between two messages.
const APART: u64 = 100_000;
const SEED: u64 = 7;

fn rng(number: u64) -> u64 {
    whylate_stats::rng::Rng::stream(3, number).below(200)
}

/// What the client planted into the message of this number.
fn planted(plant: Option<Plant>, number: u64) -> u64 {
    plant.filter(|plant| plant.is_in(number, SEED)).map_or(0, |plant| plant.as_tail().by.0)
}

/// A pool of this many parts, each with so many messages of an error of 5 us and a little more.
fn pooled(parts: u64, messages: u64, plant: Option<Plant>) -> (Pooled, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create(home.path().join("run")).unwrap();
    let mut storage = Storage::open(directory, Ticks(0), Limits::default()).unwrap();
    let mut pooled = Pooled::new("xdp spin", plant.map(|plant| (plant, SEED)));
    for part in 0..parts {
        let length = Nanos(messages * APART);
        let mut intake = pooled.part(RATE, length);
        for number in 0..messages {
            let truth = 10_000 + rng(number) / 20;
            let error = 5_000 + rng(number + 1_000_000 * (part + 1));
            intake.take(&Joined {
                number,
                sent: Ticks(1_000 + number * APART),
                measured: TicksDelta(truth + error + planted(plant, number)),
                truth: TicksDelta(truth),
            });
        }
        let met = Met { requests: messages, passed: messages, joined: messages, ..Met::default() };
        let medians = intake.finish(&met, (Nanos(0), length), &mut storage);
        let (measured, truth) = (medians.measured.unwrap().0, medians.truth.unwrap().0);
        let most = if matches!(plant, Some(Plant::Bias(_))) { 15_800 } else { 15_300 };
        assert!((15_000..most).contains(&measured) && (10_000..10_020).contains(&truth));
    }
    (pooled, home)
}

fn judged(pooled: &Pooled, base: Option<u64>) -> Judged {
    let mut values = Histogram::new();
    values.record_n(base.unwrap_or(1), 1_000);
    pooled.judge(&Facts {
        from: "here".to_owned(),
        to: "there".to_owned(),
        definition: "one-way",
        frame_bytes: Some(110),
        asked_pps: 10_000.0,
        achieved_pps: 9_999.0,
        base: base.map(|_| &values),
        tolerance: Nanos(1_000),
        resolution_ns: 1.0,
        seed: SEED,
    })
}

#[test]
fn a_constant_error_leaves_no_raw_limit_and_with_the_base_taken_off_the_sample_ends_trust() {
    let (pooled, _home) = pooled(4, 50_000, None);
    let Judged { backend, series, planted } = judged(&pooled, Some(5_000));
    assert_eq!((backend.n, backend.runs, backend.base), (200_000, 4, Some(Nanos(5_000))));
    assert_eq!((backend.limit_raw.percent, backend.limit_raw.ended_by), (None, LimitEnd::Error));
    assert_eq!(backend.limit_compensated.percent, Some(99.99));
    assert_eq!(backend.limit_compensated.ended_by, LimitEnd::Sample);
    let median = backend.errors_raw[0];
    let error = median.error_ns.unwrap();
    assert!((5_050.0..5_150.0).contains(&error), "{median:?}");
    assert!(median.low_ns.unwrap() <= error && error <= median.high_ns.unwrap());
    assert!((5_000..5_010).contains(&backend.error_min_ns), "{}", backend.error_min_ns);
    assert_eq!(backend.error_quantiles.len(), PERCENTS.len());
    assert!(backend.notes.is_empty() && planted.is_none());
    assert_eq!(series.iter().map(|series| series.n).collect::<Vec<_>>(), [200_000, 200_000]);
    let bare = judged(&pooled, None).backend;
    assert_eq!(bare.limit_compensated, bare.limit_raw, "nothing was taken off");
}

/// Three runs of 20 000 messages through a line, of which one in so many is 50 us late; a client that drops
/// those has them in no row of its own.
fn with_a_late_tail(one_in: u64, drops: bool) -> CalibratedBackend {
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create(home.path().join("run")).unwrap();
    let mut storage = Storage::open(directory, Ticks(0), Limits::default()).unwrap();
    let mut pooled = Pooled::new("udp spin", None);
    for part in 0..3 {
        let length = Nanos(20_000 * APART);
        let mut intake = pooled.part(RATE, length);
        let mut lost = 0;
        for number in 0..20_000 {
            let is_late = number % one_in == 7;
            if is_late && drops {
                lost += 1;
                continue;
            }
            let error = rng(number + 1_000_000 * part) + if is_late { 50_000 } else { 0 };
            intake.take(&Joined {
                number,
                sent: Ticks(number * APART),
                measured: TicksDelta(10_000 + error),
                truth: TicksDelta(10_000),
            });
        }
        let met = Met {
            requests: 20_000,
            passed: 20_000,
            joined: 20_000 - lost,
            lost_behind: lost,
            ..Met::default()
        };
        intake.finish(&met, (Nanos(0), length), &mut storage);
    }
    judged(&pooled, None).backend
}

#[test]
fn a_client_that_drops_what_is_late_is_trusted_no_further_than_the_share_that_it_had() {
    let late = with_a_late_tail(40, false);
    let dropped = with_a_late_tail(40, true);
    assert_eq!((late.n, dropped.n, dropped.without_measurement), (60_000, 58_500, 1_500));
    // 2.5 % were late: told or dropped, p90 holds and p99 does not.
    for of in [&late, &dropped] {
        for limit in [of.limit_raw, of.limit_compensated] {
            assert_eq!((limit.percent, limit.fails_at), (Some(90.0), Some(99.0)), "{of:?}");
            assert_eq!(limit.ended_by, LimitEnd::Error);
        }
    }
    assert!(dropped.notes.iter().any(|note| note.contains("97.5000 % came")), "{dropped:?}");
    // Nobody knows how late what never came would have been.
    let p99 = dropped.error_quantiles.iter().find(|of| of.percent > 98.0).unwrap();
    assert_eq!((p99.value_ns, p99.high_ns), (None, None), "{p99:?}");
    assert!(dropped.error_quantiles[0].value_ns.is_some_and(|median| median < 1_000.0));
    // A little more than one in a thousand: between p99 and p99.9.
    let few = with_a_late_tail(900, true);
    assert_eq!(
        (few.limit_raw.percent, few.limit_raw.fails_at),
        (Some(99.0), Some(99.9)),
        "{few:?}"
    );
}

#[test]
fn what_has_fewer_than_three_runs_is_shown_and_not_kept_which_is_said() {
    for (runs, kept) in [(1, false), (2, false), (3, true), (4, true)] {
        let (pooled, _home) = pooled(runs, 2_000, None);
        let backend = judged(&pooled, Some(5_000)).backend;
        let why = too_few(&backend);
        assert_eq!((backend.runs, why.is_none()), (u32::try_from(runs).unwrap(), kept));
        assert!(backend.limit_compensated.percent.is_some(), "{backend:?}");
        if let Some(why) = why {
            assert!(why.contains(&format!("{runs} runs")) && why.contains("not kept"), "{why}");
        }
    }
}

#[test]
fn a_planted_bias_is_found_between_messages_that_have_it_and_those_that_have_not() {
    let (pooled, _home) = pooled(2, 20_000, Some(Plant::Bias(Nanos(500))));
    let Judged { backend, planted, .. } = judged(&pooled, Some(5_000));
    let planted = planted.unwrap();
    assert_eq!((planted.planted, planted.unplanted), (20_000, 20_000));
    let (low, high) = planted.interval_ns.unwrap();
    assert!(low <= 500.0 && 500.0 <= high && low > 0.0, "{planted:?}");
    // What is said of the backend is what was recorded, plants and all: half of it is later.
    let error = backend.errors_raw[0].error_ns.unwrap();
    assert!((5_150.0..5_550.0).contains(&error), "{error}");
}

#[test]
fn a_planted_tail_of_one_in_ten_thousand_moves_the_limit_below_the_99_99th_percentile() {
    let tail = Tail { one_in: 10_000, by: Nanos(20_000) };
    let (pooled, _home) = pooled(4, 50_000, Some(Plant::Tail(tail)));
    let Judged { backend, planted, .. } = judged(&pooled, Some(5_000));
    let planted = planted.unwrap();
    assert_eq!((planted.planted, planted.unplanted), (20, 199_980));
    assert_eq!(planted.limit_without.percent, Some(99.99));
    assert!(planted.limit_with.percent.is_some_and(|percent| percent < 99.99), "{planted:?}");
    assert_eq!(
        backend.limit_compensated.percent, planted.limit_with.percent,
        "it is of all numbers"
    );
}

#[test]
fn a_client_that_drops_what_was_planted_has_no_limit_beyond_what_it_had() {
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create(home.path().join("run")).unwrap();
    let mut storage = Storage::open(directory, Ticks(0), Limits::default()).unwrap();
    let plant = Plant::Tail(Tail { one_in: 50, by: Nanos(20_000) });
    let mut pooled = Pooled::new("udp spin", Some((plant, SEED)));
    for part in 0..3 {
        let length = Nanos(20_000 * APART);
        let mut intake = pooled.part(RATE, length);
        let came = (0..20_000).filter(|number| !plant.is_in(*number, SEED));
        let mut joined = 0;
        for number in came {
            joined += 1;
            intake.take(&Joined {
                number,
                sent: Ticks(number * APART),
                measured: TicksDelta(10_000 + rng(number + 1_000_000 * part)),
                truth: TicksDelta(10_000),
            });
        }
        let met = Met {
            requests: 20_000,
            passed: 20_000,
            joined,
            lost_behind: 20_000 - joined,
            ..Met::default()
        };
        intake.finish(&met, (Nanos(0), length), &mut storage);
    }
    let Judged { backend, planted, .. } = judged(&pooled, None);
    let planted = planted.unwrap();
    assert_eq!((planted.planted, planted.unplanted), (0, 58_800));
    // 98 of 100 came: p90 holds, and p99 is of messages that never did.
    for limit in [planted.limit_with, planted.limit_without, backend.limit_compensated] {
        assert_eq!((limit.percent, limit.ended_by), (Some(90.0), LimitEnd::Error), "{planted:?}");
    }
}

/// Five runs of 2 000 messages with errors of 5 us; 12 of them are 50 us and more late, as many in each run as
/// is said.
fn with_late_ones(runs: [u64; 5]) -> Judged {
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create(home.path().join("run")).unwrap();
    let mut storage = Storage::open(directory, Ticks(0), Limits::default()).unwrap();
    let mut pooled = Pooled::new("udp spin", None);
    let mut number_late = 0;
    for late in runs {
        let length = Nanos(2_000 * APART);
        let mut intake = pooled.part(RATE, length);
        for number in 0..2_000_u64 {
            // Each in a block of its own: no block shows that there are more in one run than in another.
            let (block, apart) = (number / 100, 20 / late.max(1));
            let is_late = number % 100 == 50 && block.is_multiple_of(apart) && block / apart < late;
            let error = if is_late { 50_000 + 5_000 * number_late } else { 5_000 };
            number_late += u64::from(is_late);
            intake.take(&Joined {
                number,
                sent: Ticks(number * APART),
                measured: TicksDelta(10_000 + error),
                truth: TicksDelta(10_000),
            });
        }
        let met = Met { requests: 2_000, passed: 2_000, joined: 2_000, ..Met::default() };
        intake.finish(&met, (Nanos(0), length), &mut storage);
    }
    judged(&pooled, None)
}

#[test]
fn a_tail_of_one_run_alone_is_worth_what_runs_are_and_not_their_blocks() {
    let spread = with_late_ones([3, 3, 2, 2, 2]).backend;
    let alone = with_late_ones([0, 0, 12, 0, 0]).backend;
    let tail = |of: &CalibratedBackend| of.errors_raw[3];
    assert!((tail(&spread).percent - 99.9).abs() < 1e-9);
    assert!(
        tail(&spread).n_eff > 5_000.0 && tail(&spread).high_ns.is_some(),
        "{:?}",
        tail(&spread)
    );
    // By hand: 10 of 10 000 lie above, all in one run of five: q = 0.001, p of runs 0 (4) and 0.005:
    // F = sum t (p - q)^2 / (q (1 - q)) / 4 = 2 000 * 20e-6 / 0.001 / 4 = 10. With 9 above it is 9.
    assert!((900.0..1_200.0).contains(&tail(&alone).n_eff), "{:?}", tail(&alone));
    // A sample worth a thousand has nothing that lies beyond its p99.9 for sure.
    assert_eq!(tail(&alone).high_ns, None);
    let of_errors = |of: &CalibratedBackend| of.error_quantiles[3].n_eff;
    assert!(of_errors(&alone) < 1_200.0 && of_errors(&spread) > 5_000.0);
    // In the middle every run has its own: how far they lie apart is in the interval.
    assert!(alone.errors_raw[0].n_eff > 2_000.0, "{:?}", alone.errors_raw[0]);
}

#[test]
fn runs_that_lie_apart_widen_the_interval_and_can_end_trust() {
    let home = tempfile::tempdir().unwrap();
    let directory = RunDir::create(home.path().join("run")).unwrap();
    let mut storage = Storage::open(directory, Ticks(0), Limits::default()).unwrap();
    let mut pooled = Pooled::new("udp spin", None);
    for part in 0..3 {
        let length = Nanos(5_000 * APART);
        let mut intake = pooled.part(RATE, length);
        for number in 0..5_000 {
            intake.take(&Joined {
                number,
                sent: Ticks(number * APART),
                measured: TicksDelta(10_000 + 400 * part),
                truth: TicksDelta(10_000),
            });
        }
        let met = Met { requests: 5_000, passed: 5_000, joined: 5_000, ..Met::default() };
        intake.finish(&met, (Nanos(0), length), &mut storage);
    }
    let backend = judged(&pooled, None).backend;
    let median = backend.errors_raw[0];
    // Means of 0, 400 and 800 ns: 400 and 4.3 standard errors of 231 ns.
    assert!(median.high_ns.unwrap() > 1_300.0 && median.low_ns.unwrap() < -500.0, "{median:?}");
    assert_eq!((backend.limit_raw.percent, backend.limit_raw.ended_by), (None, LimitEnd::Interval));
}
