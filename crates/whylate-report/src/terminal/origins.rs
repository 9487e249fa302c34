//! What a merged run is the sum of.

use whylate_model::Nanos;
use whylate_model::Printable;
use whylate_model::origin::{Origin, Share};
use whylate_model::run::{Run, Verdict};

use super::text::{Page, percent, short_count};

/// Origins shown of each series: those with the largest values.
const MOST_SHOWN: usize = 8;

pub(super) fn sections(page: &mut Page, run: &Run) {
    page.section(&format!("The sum of {} recordings", run.origins.len()));
    page.paragraph(
        "Counts are added; percentiles are those of the sum, never averages. Each recording keeps \
         its own clock.",
    );
    for series in &run.series {
        shares(page, run, &series.name);
    }
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
            short_count(share.n),
            share.lost_share.map_or("-".to_owned(), percent),
        ]
    }));
    page.blank();
    page.table(&["", "p50", "p99", "p99.9", "max", "n", "lost"], &rows, &[]);
    if shares.len() > MOST_SHOWN {
        page.item(&format!("{} more recordings are in the JSON", shares.len() - MOST_SHOWN));
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
