//! How far the numbers of a sum may lie from the truth: within its recordings and between them.

use std::path::PathBuf;

use whylate_model::Nanos;
use whylate_model::origin::{Measure, Spread};
use whylate_model::run::Run;

use crate::directories::{Planted, steady};
use crate::merge::{log, merge, merged};
use crate::program;

fn spread(run: &Run, of: Measure) -> &Spread {
    run.spreads.iter().find(|spread| spread.of == of).unwrap()
}

#[test]
fn intervals_of_a_sum_take_in_the_spread_between_its_recordings() {
    let home = tempfile::tempdir().unwrap();
    let planted = [(1_374, 902.0), (1_630, 661.0), (2_133, 561.0)];
    let directories: Vec<PathBuf> = planted
        .iter()
        .zip(0u64..)
        .map(|((per_second, level), number)| {
            let run = Planted::new("host", number * 60);
            let values = steady(number + 1, *per_second, *level * 0.6);
            run.gaps(1, Nanos(100), &values).write(home.path(), &format!("run-{number}"))
        })
        .collect();
    let alone: Vec<Run> = directories.iter().map(|path| program::read(path)).collect();
    let run = merged(&directories, &home.path().join("sum"));

    // Student's t with two degrees of freedom around the pooled rate, worked out by hand.
    let rate = |run: &Run| run.gaps[0].rates[0];
    let rates: Vec<f64> = alone.iter().map(|run| rate(run).per_second).collect();
    let mean = rates.iter().sum::<f64>() / 3.0;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 2.0 / 3.0;
    let half = 4.302_653 * variance.sqrt();
    let found = rate(&run);
    assert!((found.interval.1 - (mean + half)).abs() < 0.01, "{found:?} {mean} {half}");
    assert!((found.interval.0 - (mean - half).max(0.0)).abs() < 0.01, "{found:?}");
    for rate in rates {
        assert!(found.interval.0 < rate && rate < found.interval.1, "{rate} {found:?}");
    }
    let of_rate = spread(&run, Measure::Rate { at_least: Nanos(1_000) });
    let (low, high) = of_rate.within.unwrap();
    assert!((high - low) / 2.0 < half / 5.0, "{of_rate:?}");
    let ratio = variance / ((high - low) / 2.0 / 1.959_964).powi(2);
    assert!((of_rate.ratio.unwrap() / ratio - 1.0).abs() < 1e-6, "{of_rate:?} {ratio}");

    let at = |run: &Run, percent: f64| {
        let quantiles = &run.series[0].quantiles;
        *quantiles.iter().find(|q| (q.percent - percent).abs() < 1e-9).unwrap()
    };
    for percent in [50.0, 99.0] {
        let found = at(&run, percent);
        for alone in &alone {
            let own = at(alone, percent).value;
            assert!(found.low < own && own < found.high, "{percent}: {own:?} {found:?}");
        }
        assert!(spread(&run, Measure::Quantile { percent }).ratio.unwrap() > 20.0);
    }
    let (low, high) = run.gaps[0].lost_share_interval.unwrap();
    assert!(alone.iter().all(|run| low < run.gaps[0].lost_share && run.gaps[0].lost_share < high));

    // The report prints both intervals and the ratio, and the page is there.
    let text = program::whylate(["report"]).arg(home.path().join("sum")).output().unwrap();
    let text = program::said(&text);
    assert!(text.contains("95 % between") && text.contains("ratio"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page = std::fs::read_to_string(home.path().join("sum/report.html")).unwrap();
    assert!(page.contains("run-2"), "the page names its recordings");
}

#[test]
fn recordings_that_do_not_differ_keep_the_interval_within_or_one_near_it() {
    let home = tempfile::tempdir().unwrap();
    let directories: Vec<PathBuf> = (0..8u64)
        .map(|number| {
            let run = Planted::new("host", number * 60);
            let run = run.gaps(1, Nanos(100), &steady(number + 1, 500, 2_000.0));
            run.write(home.path(), &format!("run-{number}"))
        })
        .collect();
    let run = merged(&directories, &home.path().join("sum"));
    let p50 = spread(&run, Measure::Quantile { percent: 50.0 });
    let ((low, high), ratio) = (p50.within.unwrap(), p50.ratio.unwrap());
    assert!(ratio < 4.0, "{p50:?}");
    let headline = p50.headline().unwrap();
    assert!(headline.1 - headline.0 < 3.0 * (high - low), "{p50:?}");
}

#[test]
fn a_quantile_that_single_recordings_are_too_short_for_knows_how_much_they_differ() {
    let home = tempfile::tempdir().unwrap();
    let sum = |name: &str, level: fn(u64) -> f64| {
        let directories: Vec<PathBuf> = (0..12u64)
            .map(|number| {
                let values = steady(number + 1, 100, level(number));
                let run = Planted::new("host", number * 60).gaps(1, Nanos(100), &values);
                run.write(home.path(), &format!("{name}-{number}"))
            })
            .collect();
        let run = merged(&directories, &home.path().join(name));
        let quantiles = &run.series[0].quantiles;
        *quantiles.iter().find(|q| (q.percent - 99.9).abs() < 1e-9).unwrap()
    };
    // 36 000 values, 3 000 in each: enough for a p99.9 together.
    let alike = sum("alike", |_| 2_000.0);
    assert!(alike.value.is_some() && alike.n_eff > 20_000.0, "{alike:?}");
    // All that is above the p99.9 comes from one recording of twelve: its chance to be there decides.
    let unlike = sum("unlike", |number| if number == 5 { 20_000.0 } else { 1_000.0 });
    assert!(unlike.value.is_none() && unlike.n_eff < 3_000.0, "{unlike:?}");
}

#[test]
fn a_recording_alone_keeps_its_intervals_and_two_add_up() {
    let words = "gaps --cpus 1 --duration 1s --warmup 200ms";
    let recorded: Vec<program::Recorded> = {
        let _alone = program::alone();
        (0..2).map(|_| program::record_ending(words, &[0, 4])).collect()
    };
    let directories: Vec<PathBuf> = recorded.iter().map(|one| one.directory.clone()).collect();
    let home = tempfile::tempdir().unwrap();
    let output = merge(&[], &directories[..1], &home.path().join("one"));
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", program::said(&output));
    let (own, alone) = (&recorded[0].run, program::read(&home.path().join("one")));
    for (own, of_sum) in own.gaps[0].rates.iter().zip(&alone.gaps[0].rates) {
        assert_eq!((own.at_least, own.count), (of_sum.at_least, of_sum.count));
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * own.per_second.max(1.0);
        assert!(near(own.interval.0, of_sum.interval.0), "{own:?} {of_sum:?}");
        assert!(near(own.interval.1, of_sum.interval.1), "{own:?} {of_sum:?}");
    }
    let ends = |run: &Run| run.gaps[0].lost_share_interval.unwrap();
    let (own_ends, ends) = (ends(own), ends(&alone));
    assert!((own_ends.0 - ends.0).abs() < 1e-9 && (own_ends.1 - ends.1).abs() < 1e-9);
    for (own, of_sum) in own.series[0].quantiles.iter().zip(&alone.series[0].quantiles) {
        assert_eq!((own.value, own.low, own.high), (of_sum.value, of_sum.low, of_sum.high));
    }
    assert!(alone.spreads.is_empty());

    let output = merge(&[], &directories, &home.path().join("two"));
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", program::said(&output));
    let sum = program::read(&home.path().join("two"));
    // The larger threshold of the two is that of the sum.
    let counted: u64 = recorded.iter().map(|one| one.run.series[0].n).sum();
    let left_out: u64 = sum.origins.iter().map(|origin| origin.series[0].left_out).sum();
    assert_eq!(sum.series[0].n + left_out, counted);
    assert_eq!(log(&home.path().join("two"), "gap-cpu1").0.len(), sum.series[0].n);
    assert_eq!(sum.gaps[0].gaps, sum.series[0].n);
    let longest = recorded.iter().map(|one| one.run.series[0].max).max().unwrap();
    assert_eq!(sum.series[0].max, longest);
}
