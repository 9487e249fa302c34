//! How far the numbers of a sum may lie from the truth: within its recordings and between them.

use std::path::PathBuf;

use whylate_model::Nanos;
use whylate_model::origin::{Measure, Spread};
use whylate_model::run::Run;

use crate::directories::{Planted, steady};
use crate::merge::merged;
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
    assert!(text.contains("95% between") && text.contains("ratio"), "{text}");
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
