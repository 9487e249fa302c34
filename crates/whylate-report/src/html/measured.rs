//! Tables of what was measured: series, gaps of each CPU, rates, self-test.

use serde::Serialize;
use whylate_model::Nanos;
use whylate_model::load::LoadFacts;
use whylate_model::run::{GapSummary, Run};
use whylate_model::series::{Quantile, Series};

use crate::footnote;
use crate::numbers::{Cell, Value, count, percent};
use crate::svg::{Table, resolution_label};
use crate::terminal::loads;
use crate::trusted::{self, MAX, marked};

/// Rows of a table; what is more is counted in the last.
const MOST_ROWS: usize = 64;
/// Columns of the table of rates: one for each CPU.
const MOST_CPUS: usize = 8;

/// The tables of the page's section.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    series: Option<Table>,
    loads: Option<Table>,
    tails: Vec<String>,
    trusted: Vec<String>,
    gaps: Option<Table>,
    rates: Option<Table>,
    selftest: Option<Table>,
    skipped: Vec<String>,
    validation: Option<Table>,
}

pub(super) fn of(run: &Run) -> Measured {
    Measured {
        series: (!run.series.is_empty()).then(|| series(run)),
        loads: loads(run),
        tails: run.series.iter().take(MOST_ROWS).filter_map(footnote).collect(),
        trusted: trusted::said(run),
        gaps: (!run.gaps.is_empty()).then(|| gaps(run)),
        rates: rates(run),
        selftest: selftest(run),
        skipped: run
            .selftest
            .iter()
            .flat_map(|t| &t.skipped)
            .map(|(k, w)| format!("{k}: {w}"))
            .collect(),
        validation: validation(run),
    }
}

/// Load that was made on purpose beside it.
fn loads(run: &Run) -> Option<Table> {
    let mut table = Table::new("Load beside it", &loads::HEAD);
    table.head.push("what".to_owned());
    table.left = vec![2, 6];
    let row = |load: &LoadFacts| {
        let mut cells = loads::cells(load);
        cells.push(loads::sentence(load));
        cells
    };
    table.rows = capped(run.loads.iter().map(row).collect(), MOST_ROWS);
    (!run.loads.is_empty()).then_some(table)
}

/// Keeps the first rows and counts the others.
pub(super) fn capped(mut rows: Vec<Vec<String>>, most: usize) -> Vec<Vec<String>> {
    let all = rows.len();
    if all > most {
        let columns = rows[0].len();
        rows.truncate(most);
        let mut last = vec![String::new(); columns];
        last[0] = format!("and {} more, in run.json", all - most);
        rows.push(last);
    }
    rows
}

fn series(run: &Run) -> Table {
    let head =
        ["", "n", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max", "resolution", "class"];
    let mut table = Table::new("Percentiles of each series", &head);
    table.left = vec![10];
    let rows = run.series.iter().map(|series| {
        let beyond = |percent: f64| trusted::is_beyond(run, &series.name, percent);
        let mut cells = vec![series.label.clone(), count(series.n), value(series, series.min)];
        for wanted in [50.0, 90.0, 99.0, 99.9, 99.99] {
            let found = quantile(series, wanted).and_then(|quantile| quantile.value);
            cells.push(marked(value(series, found), beyond(wanted)));
        }
        cells.push(marked(value(series, series.max), beyond(MAX)));
        cells.push(resolution_label(series.resolution_ns));
        cells.push(series.class.map_or("-".to_owned(), |class| class.to_string()));
        cells
    });
    table.rows = capped(rows.collect(), MOST_ROWS);
    table
}

/// Percentiles with their intervals: the numbers beside a CCDF.
pub(super) fn quantiles(run: &Run, series: &[&Series], caption: &str) -> Table {
    let percents: Vec<f64> = series
        .iter()
        .flat_map(|series| series.quantiles.iter())
        .filter(|quantile| quantile.value.is_some())
        .map(|quantile| quantile.percent)
        .fold(Vec::new(), |mut known, percent| {
            if !known.contains(&percent) {
                known.push(percent);
            }
            known
        });
    let mut table = Table::new(caption, &["", "n"]);
    table.head.extend(percents.iter().map(|percent| format!("p{percent}")));
    table.head.push("max".to_owned());
    let rows = series.iter().map(|series| {
        let beyond = |percent: f64| trusted::is_beyond(run, &series.name, percent);
        let cell = |percent: &f64| marked(with_interval(series, *percent), beyond(*percent));
        let mut cells = vec![series.label.clone(), count(series.n)];
        cells.extend(percents.iter().map(cell));
        cells.push(marked(value(series, series.max), beyond(MAX)));
        cells
    });
    table.rows = capped(rows.collect(), MOST_ROWS);
    table
}

fn quantile(series: &Series, percent: f64) -> Option<&Quantile> {
    series.quantiles.iter().find(|quantile| (quantile.percent - percent).abs() < 1e-9)
}

fn with_interval(series: &Series, percent: f64) -> String {
    let Some(quantile) = quantile(series, percent).filter(|q| q.value.is_some()) else {
        return "-".to_owned();
    };
    let end = |end: Option<Nanos>| end.map_or("?".to_owned(), |ns| ns.to_string());
    // Each percentile has its own: samples that hang together do so at some height.
    let worth =
        if quantile.n_eff.is_finite() { count(quantile.n_eff as u64) } else { "?".to_owned() };
    format!(
        "{} ({}\u{a0}..\u{a0}{}; n_eff\u{a0}{worth})",
        value(series, quantile.value),
        end(quantile.low),
        end(quantile.high)
    )
}

/// A value; one below the clock's resolution says so.
fn value(series: &Series, value: Option<Nanos>) -> String {
    Cell::from(value).resolved(series.resolution_ns).to_string()
}

fn footnote(series: &Series) -> Option<String> {
    footnote::of(series).map(|said| format!("{said}."))
}

fn gaps(run: &Run) -> Table {
    let head = [
        "thread",
        "elapsed",
        "gaps",
        "lost",
        "95% interval",
        "threshold",
        "period",
        "below it",
        "closure",
    ];
    let mut table = Table::new("What a busy thread did not get", &head);
    table.left = vec![8];
    table.rows = capped(run.gaps.iter().map(|gaps| gap_row(run, gaps)).collect(), MOST_ROWS);
    table
}

fn gap_row(run: &Run, gaps: &GapSummary) -> Vec<String> {
    let interval = gaps
        .lost_share_interval
        .map_or("-".to_owned(), |(low, high)| format!("{} .. {}", percent(low), percent(high)));
    vec![
        run.thread_name(gaps),
        gaps.end.since(gaps.start).to_nanos(run.clock.hz).to_string(),
        count(gaps.gaps),
        percent(gaps.lost_share),
        interval,
        gaps.threshold.to_nanos(run.clock.hz).to_string(),
        format!("{:.2}ns", gaps.period_ticks * 1e9 / run.clock.hz.0),
        percent(gaps.noise_below_threshold),
        gaps.closure.to_string(),
    ]
}

fn rates(run: &Run) -> Option<Table> {
    let first = run.gaps.iter().max_by_key(|gaps| gaps.rates.len())?;
    if first.rates.is_empty() {
        return None;
    }
    let shown: Vec<&GapSummary> = run.gaps.iter().take(MOST_CPUS).collect();
    let mut table = Table::new("Gaps per second, with 95% intervals", &["at least"]);
    table.head.extend(shown.iter().map(|gaps| run.thread_name(gaps)));
    table.rows = first
        .rates
        .iter()
        .take(MOST_ROWS)
        .map(|wanted| {
            let mut cells = vec![wanted.at_least.to_string()];
            cells.extend(shown.iter().map(|gaps| {
                let found = gaps.rates.iter().find(|rate| rate.at_least == wanted.at_least);
                found.map_or("-".to_owned(), |found| {
                    let (low, high) = found.interval;
                    let interval = Some((Value::Rate(low), Value::Rate(high)));
                    Cell::from(Value::Rate(found.per_second)).within(interval).to_string()
                })
            }));
            cells
        })
        .collect();
    Some(table)
}

fn selftest(run: &Run) -> Option<Table> {
    let test = run.selftest.as_ref()?;
    let head =
        ["kind", "injected", "found", "ascribed", "rightly", "named right", "length error (p99)"];
    let mut table = Table::new("Self-test: known interruptions", &head);
    let rows = test.kinds.iter().map(|kind| {
        let known = |value: u64| if kind.with_trace { count(value) } else { "-".to_owned() };
        let length = match (kind.length_error_ns, kind.length_error_p99_ns) {
            (Some(median), Some(p99)) => format!("{median:+.0}ns ({p99:.0}ns)"),
            _ => "not known".to_owned(),
        };
        vec![
            kind.kind.clone(),
            count(kind.injected),
            count(kind.found),
            known(kind.ascribed),
            known(kind.ascribed_rightly),
            known(kind.named_right),
            length,
        ]
    });
    table.rows = capped(rows.collect(), MOST_ROWS);
    Some(table)
}

fn validation(run: &Run) -> Option<Table> {
    let found = run.validation.as_ref()?;
    let share = |share: Option<f64>| share.map_or("not known".to_owned(), percent);
    let head = ["evidence B says", "truth: switch", "truth: none", "recall", "precision"];
    let mut table = Table::new("Evidence B judged by evidence A", &head);
    table.rows = vec![
        vec![
            "context switch".to_owned(),
            count(found.switch_as_switch),
            count(found.none_as_switch),
            share(found.switch_recall()),
            share(found.switch_precision()),
        ],
        vec![
            "no context switch".to_owned(),
            count(found.switch_as_none),
            count(found.none_as_none),
            share(found.none_recall()),
            share(found.none_precision()),
        ],
        vec![
            "undecided".to_owned(),
            count(found.undecided),
            String::new(),
            String::new(),
            String::new(),
        ],
    ];
    Some(table)
}
