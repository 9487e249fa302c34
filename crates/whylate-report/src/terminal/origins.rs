//! What a merged run is the sum of.

use std::collections::BTreeMap;

use whylate_model::Nanos;
use whylate_model::Printable;
use whylate_model::origin::{Measure, Origin, Share, Spread};
use whylate_model::run::{Run, Verdict};

use crate::numbers::{count, percent, rate};
use crate::render::terminal::Page;

/// Origins shown of each series: those with the largest values.
const MOST_SHOWN: usize = 8;
/// Quantiles whose spread is shown, in percent; the others are in the JSON.
const SPREADS_SHOWN: [f64; 3] = [50.0, 99.0, 99.9];

pub(super) fn sections(page: &mut Page, run: &Run) {
    page.section(&format!("The sum of {} recordings", run.origins.len()));
    page.paragraph(
        "Counts are added; percentiles are those of the sum, never averages. Each recording keeps \
         its own clock.",
    );
    for series in &run.series {
        shares(page, run, &series.name);
        spreads(page, run, &series.name);
    }
    if !run.spreads.is_empty() {
        page.paragraph(
            "within: as if the recordings were one; between: from the spread of their own numbers, \
             12.7 standard errors to each side for two recordings, 4.3 for three, 2.8 for five. The \
             wider one stands above. Ratio: variance between over variance within, about 1 when \
             the recordings differ by chance alone.",
        );
    }
    not_everywhere(page, run);
    left_out(page, run);
    worst(page, run);
    let distrusted: Vec<&Origin> =
        run.origins.iter().filter(|o| matches!(o.verdict, Verdict::Untrustworthy { .. })).collect();
    if !distrusted.is_empty() {
        page.note(&format!(
            "{} of the recordings are not trustworthy by themselves",
            distrusted.len()
        ));
    }
    for warning in &run.warnings {
        page.note(&warning.to_string());
        page.advice(&warning.advice());
    }
}

/// The spread between the recordings of one series, the largest first.
fn shares(page: &mut Page, run: &Run, name: &str) {
    let mut shares: Vec<(&Origin, &Share)> = run
        .origins
        .iter()
        .flat_map(|origin| origin.series.iter().map(move |share| (origin, share)))
        .filter(|(_, share)| share.series == name)
        .collect();
    if shares.is_empty() {
        return;
    }
    shares.sort_by_key(|(origin, share)| (std::cmp::Reverse(share.max), origin.directory.clone()));
    let mut rows: Vec<Vec<String>> = vec![vec![
        format!("{name}, lowest to highest"),
        range(&shares, |share| share.p50),
        range(&shares, |share| share.p99),
        range(&shares, |share| share.p999),
        range(&shares, |share| share.max),
        String::new(),
        String::new(),
    ]];
    rows.extend(shares.iter().take(MOST_SHOWN).map(|(origin, share)| {
        let cell = |value: Option<Nanos>| value.map_or("-".to_owned(), |v| v.to_string());
        vec![
            format!("{} ({})", Printable(&origin.directory), Printable(&origin.host.hostname)),
            cell(share.p50),
            cell(share.p99),
            cell(share.p999),
            cell(share.max),
            count(share.n),
            share.lost_share.map_or("-".to_owned(), percent),
        ]
    }));
    page.blank();
    page.table(&["", "p50", "p99", "p99.9", "max", "n", "lost"], &rows, &[]);
    if shares.len() > MOST_SHOWN {
        page.item(&format!("{} more recordings are in the JSON", shares.len() - MOST_SHOWN));
    }
}

/// Both intervals of the numbers of one series, and the ratio of their variances.
fn spreads(page: &mut Page, run: &Run, name: &str) {
    let shown = |spread: &&Spread| match spread.of {
        Measure::Quantile { percent } => SPREADS_SHOWN.iter().any(|p| (p - percent).abs() < 1e-9),
        Measure::LostShare | Measure::Rate { .. } => true,
    };
    let of_series = run.spreads.iter().filter(|spread| spread.series == name);
    let rows: Vec<Vec<String>> = of_series.filter(shown).map(spread).collect();
    if !rows.is_empty() {
        page.blank();
        page.table(&["", "sum", "95 % within", "95 % between", "ratio"], &rows, &[]);
    }
}

fn spread(spread: &Spread) -> Vec<String> {
    let (name, print): (String, fn(f64) -> String) = match spread.of {
        Measure::Quantile { percent } => {
            (format!("p{percent}"), |ns| Nanos(ns.round() as u64).to_string())
        }
        Measure::LostShare => ("lost".to_owned(), percent),
        Measure::Rate { at_least } => (format!("gaps of {at_least} or more"), rate),
    };
    let interval = |interval: Option<(f64, f64)>| match interval {
        Some((low, high)) => format!("{} .. {}", print(low), print(high)),
        None => "-".to_owned(),
    };
    let ratio = spread.ratio.map_or("-".to_owned(), |ratio| match ratio {
        ..99.95 => format!("{ratio:.1}x"),
        _ => format!("{ratio:.0}x"),
    });
    vec![name, print(spread.value), interval(spread.within), interval(spread.between), ratio]
}

/// Series that not every recording has: their numbers are those of some recordings.
fn not_everywhere(page: &mut Page, run: &Run) {
    let mut having: BTreeMap<&str, usize> = BTreeMap::new();
    for share in run.origins.iter().flat_map(|origin| &origin.series) {
        *having.entry(&share.series).or_default() += 1;
    }
    for (name, recordings) in having.into_iter().filter(|(_, n)| *n < run.origins.len()) {
        page.note(&format!(
            "{name} is in {recordings} of {} recordings: its numbers are of those alone",
            run.origins.len()
        ));
    }
}

/// Gaps below the threshold of the sum.
fn left_out(page: &mut Page, run: &Run) {
    for gaps in &run.gaps {
        let shares = || {
            let all = run.origins.iter().flat_map(|origin| &origin.series);
            all.filter(|share| share.series == gaps.series)
        };
        let left_out: u64 = shares().map(|share| share.left_out).sum();
        let Some(lowest) = shares().filter_map(|share| share.threshold).min() else { continue };
        let threshold = gaps.threshold.to_nanos(run.clock.hz);
        if lowest < threshold {
            page.note(&format!(
                "{}: the recordings have thresholds from {lowest} to {threshold}. The sum counts \
                 gaps from {threshold} on; the {} shorter ones of those with a lower threshold are \
                 left out, as noise below the threshold. Causes, longest gaps and tables are of all \
                 gaps that were recorded",
                gaps.series,
                count(left_out),
            ));
        }
    }
}

fn range(shares: &[(&Origin, &Share)], pick: fn(&Share) -> Option<Nanos>) -> String {
    let values: Vec<Nanos> = shares.iter().filter_map(|(_, share)| pick(share)).collect();
    match (values.iter().min(), values.iter().max()) {
        (Some(low), Some(high)) if low == high => low.to_string(),
        (Some(low), Some(high)) => format!("{low} .. {high}"),
        _ => "-".to_owned(),
    }
}

/// The longest gaps of all recordings, each by its own clock.
fn worst(page: &mut Page, run: &Run) {
    let mut worst: Vec<_> = run
        .origins
        .iter()
        .flat_map(|origin| origin.worst.iter().map(move |gap| (origin, gap)))
        .collect();
    if worst.is_empty() {
        return;
    }
    worst.sort_by_key(|(origin, gap)| (std::cmp::Reverse(gap.length), origin.directory.clone()));
    let rows: Vec<Vec<String>> = worst
        .iter()
        .map(|(origin, gap)| {
            let at = gap.start.since(origin.clock.epoch).to_nanos(origin.clock.hz);
            vec![
                Printable(&origin.host.hostname).to_string(),
                format!("{:.6}s", at.0 as f64 / 1e9),
                gap.length.to_string(),
                gap.cpu_before.to_string(),
                gap.cause.to_string(),
            ]
        })
        .collect();
    page.section(&format!("The {} longest gaps", rows.len()));
    page.table(&["host", "at", "length", "CPU", "cause"], &rows, &[4]);
}
