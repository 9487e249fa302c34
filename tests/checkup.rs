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
        // The class is by p99.9, which too few independent samples do not have.
        let p999 = series.quantiles.iter().find(|quantile| is(quantile, 99.9)).unwrap();
        let enough = p999.n_eff >= quantile::smallest_n(0.999) as f64;
        assert!(series.class.is_some() || !enough, "{} has no class: {p999:?}", series.name);
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
        let at =
            |percent: f64| series.quantiles.iter().find(|quantile| is(quantile, percent))?.value;
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

fn is(quantile: &Quantile, percent: f64) -> bool {
    (quantile.percent - percent).abs() < 1e-9
}
