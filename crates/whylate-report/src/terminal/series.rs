//! The table of what was measured, laid out as Table 1 of the PAM paper.

use whylate_model::Nanos;
use whylate_model::run::Run;
use whylate_model::series::{Class, Denominator, Quantile, Series};

use super::text::{Page, percent, short_count};

/// Quantiles of the table's columns, in percent.
const COLUMNS: [f64; 3] = [50.0, 99.0, 99.9];

pub(super) fn table(page: &mut Page, run: &Run) {
    if run.series.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = run.series.iter().map(row).collect();
    page.blank();
    let head = ["", "min", "p50", "p99", "p99.9", "max", "n", "class"];
    page.table(&head, &rows, &[7]);
    for series in &run.series {
        if let Some(text) = footnote(series) {
            page.item(&text);
        }
    }
    intervals(page, run);
    over_time(page, run);
}

fn row(series: &Series) -> Vec<String> {
    let label = match &series.paper_row {
        Some(row) => format!("{} [{row}]", series.label),
        None => series.label.clone(),
    };
    let mut cells = vec![label, value(series, series.min)];
    cells.extend(COLUMNS.iter().map(|percent| quantile(series, *percent)));
    cells.push(value(series, series.max));
    cells.push(short_count(series.n));
    cells.push(series.class.map_or("-", class).to_owned());
    cells
}

pub(super) fn class(class: Class) -> &'static str {
    match class {
        Class::Good => "Good",
        Class::Bad => "Bad",
        Class::Ugly => "Ugly",
    }
}

fn find(series: &Series, percent: f64) -> Option<&Quantile> {
    series.quantiles.iter().find(|quantile| (quantile.percent - percent).abs() < 1e-9)
}

/// A quantile; one that the sample does not support is left out, never the maximum in disguise.
fn quantile(series: &Series, percent: f64) -> String {
    match find(series, percent).and_then(|quantile| quantile.value) {
        Some(found) => value(series, Some(found)),
        None => "-".to_owned(),
    }
}

/// A value; one below the clock's resolution says so.
fn value(series: &Series, value: Option<Nanos>) -> String {
    match value {
        None => "-".to_owned(),
        Some(found) if (found.0 as f64) < series.resolution_ns => {
            format!("<{}", Nanos(series.resolution_ns.ceil() as u64))
        }
        Some(found) => found.to_string(),
    }
}

/// The tail beside the class, and what was lost.
fn footnote(series: &Series) -> Option<String> {
    let mut words = Vec::new();
    if let Some(tail) = series.tail.filter(|tail| tail.count > 0) {
        let of = match tail.denominator {
            Denominator::Elapsed => "of the elapsed time",
            Denominator::Measured => "of the measured time",
        };
        words.push(format!("{} over 100us ({} {of})", tail.count, percent(tail.share)));
    }
    if series.lost > 0 {
        words.push(format!("{} lost or censored", series.lost));
    }
    if let Some(by) = series.class_by.filter(|_| series.paper_row.is_none()) {
        words.push(format!("class by {by}"));
    }
    (!words.is_empty()).then(|| format!("{}: {}", series.label, words.join("; ")))
}

fn intervals(page: &mut Page, run: &Run) {
    let rows: Vec<Vec<String>> = run
        .series
        .iter()
        .filter(|series| !series.quantiles.is_empty())
        .map(|series| {
            let mut cells = vec![series.label.clone()];
            cells.extend(COLUMNS.iter().map(|percent| interval(series, *percent)));
            cells.push(
                find(series, 99.9).map_or("-".to_owned(), |q| short_count(q.n_eff.round() as u64)),
            );
            cells
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    page.blank();
    let head = ["95 % intervals", "p50", "p99", "p99.9", "n_eff p99.9"];
    page.table(&head, &rows, &[]);
}

/// Signal-to-noise in both readings, and ten blocks of time with the tests for a trend.
fn over_time(page: &mut Page, run: &Run) {
    for series in &run.series {
        let mut words = Vec::new();
        if let Some(snr) = series.snr {
            let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |r| format!("{r:.1}"));
            words.push(format!(
                "below p99.9 over above: {} by count (999 by construction), {} by time",
                ratio(snr.by_count),
                ratio(snr.by_time),
            ));
        }
        if let Some(blocks) = &series.stationarity {
            let list = |values: &[Option<Nanos>]| {
                let shown = values.iter().map(|v| v.map_or("-".to_owned(), |v| v.to_string()));
                shown.collect::<Vec<_>>().join(" ")
            };
            let p = |value: Option<f64>| value.map_or("-".to_owned(), |p| format!("{p:.3}"));
            words.push(format!(
                "p50 of ten blocks {} (trend p={}), p99 {} (trend p={})",
                list(&blocks.p50),
                p(blocks.trend_p50),
                list(&blocks.p99),
                p(blocks.trend_p99),
            ));
        }
        if !words.is_empty() {
            page.item(&format!("{}: {}", series.label, words.join("; ")));
        }
    }
}

fn interval(series: &Series, percent: f64) -> String {
    let Some(quantile) = find(series, percent) else { return "-".to_owned() };
    match (quantile.low, quantile.high) {
        (Some(low), Some(high)) => format!("{low} .. {high}"),
        (Some(low), None) => format!("{low} .. >max"),
        _ => "n too small".to_owned(),
    }
}
