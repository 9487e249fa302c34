//! The check-up.

use std::sync::OnceLock;

use whylate_model::series::{Definition, Quantile};
use whylate_stats::quantile;

use crate::needs;
use crate::program::{self, Recorded};

fn checkup() -> &'static Recorded {
    static RUN: OnceLock<Recorded> = OnceLock::new();
    RUN.get_or_init(|| program::record("--quick --format json", 0))
}

#[test]
fn the_checkup_fills_every_row_of_the_table() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let run = &checkup().run;
    for wanted in
        [Definition::ReadDelta, Definition::Gap, Definition::DispatchLatency, Definition::RoundTrip]
    {
        let rows = run.series.iter().filter(|series| series.definition == wanted).count();
        let least = if wanted == Definition::RoundTrip { 3 } else { 1 };
        assert!(rows >= least, "{rows} rows of {wanted}");
    }
    for series in &run.series {
        assert!(series.n > 0, "{} is empty", series.name);
        // The class is by p99.9, which too few samples do not have.
        let enough = series.n >= quantile::smallest_n(0.999);
        let (name, n) = (&series.name, series.n);
        assert!(series.class.is_some() || !enough, "{name} has no class with n = {n}");
        assert!(!series.from.is_empty() && !series.to.is_empty(), "{}: points", series.name);
    }
}

#[test]
fn the_quantiles_of_the_checkup_are_in_order() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    for series in &checkup().run.series {
        let at = |percent: f64| {
            let found = series.quantiles.iter().find(|q: &&Quantile| q.percent == percent);
            found.and_then(|quantile| quantile.value)
        };
        let row = [series.min, at(50.0), at(99.0), at(99.9), series.max];
        let known: Vec<_> = row.iter().flatten().collect();
        assert!(known.len() >= 3, "{}: {row:?}", series.name);
        assert!(known.is_sorted(), "{}: {row:?}", series.name);
    }
}

#[test]
fn the_printed_json_is_the_stored_run() {
    let _alone = program::alone();
    if needs::cpus(2).is_none() {
        return;
    }
    let checkup = checkup();
    let printed: serde_json::Value = serde_json::from_slice(&checkup.output.stdout).unwrap();
    let stored = std::fs::read(checkup.directory.join("run.json")).unwrap();
    assert_eq!(printed, serde_json::from_slice::<serde_json::Value>(&stored).unwrap());
}
