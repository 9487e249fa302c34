//! The table of what was measured, laid out as Table 1 of the PAM paper.

use whylate_model::Nanos;
use whylate_model::run::Run;
use whylate_model::series::{Class, Quantile, Series};

use super::Percentiles;
use crate::footnote;
use crate::numbers::{Cell, count};
use crate::render::terminal::Page;
use crate::trusted::{self, MAX, marked};

/// Blocks of time are printed one by one for so many series; of more, for those with a trend.
const MOST_OVER_TIME: usize = 4;
/// A trend is one below this p-value.
const TREND: f64 = 0.01;

pub(super) fn table(page: &mut Page, run: &Run, percentiles: Percentiles) {
    if run.series.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> =
        run.series.iter().map(|series| row(run, series, percentiles)).collect();
    page.blank();
    let columns: Vec<String> =
        percentiles.percents().map(|percent| format!("p{percent}")).collect();
    let mut head = vec!["", "min"];
    head.extend(columns.iter().map(String::as_str));
    head.extend(["max", "n", "class"]);
    page.table(&head, &rows, &[head.len() - 1]);
    for series in &run.series {
        if let Some(text) = footnote::of(series) {
            page.item(&text);
        }
    }
    for said in &trusted::said(run) {
        page.note(said);
    }
    intervals(page, run, percentiles, &columns);
    over_time(page, run);
}

fn row(run: &Run, series: &Series, percentiles: Percentiles) -> Vec<String> {
    let beyond = |percent: f64| trusted::is_beyond(run, &series.name, percent);
    let label = match &series.paper_row {
        Some(row) => format!("{} [{row}]", series.label),
        None => series.label.clone(),
    };
    let mut cells = vec![label, value(series, series.min)];
    let cell = |percent: f64| marked(quantile(series, percent), beyond(percent));
    cells.extend(percentiles.percents().map(cell));
    cells.push(marked(value(series, series.max), beyond(MAX)));
    cells.push(count(series.n));
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
    Cell::from(value).resolved(series.resolution_ns).to_string()
}

fn intervals(page: &mut Page, run: &Run, percentiles: Percentiles, columns: &[String]) {
    let highest = percentiles.percents().last();
    let rows: Vec<Vec<String>> = run
        .series
        .iter()
        .filter(|series| !series.quantiles.is_empty())
        .map(|series| {
            let mut cells = vec![series.label.clone()];
            let cell = |percent: f64| {
                let beyond = trusted::is_beyond(run, &series.name, percent);
                marked(interval(series, percent), beyond)
            };
            cells.extend(percentiles.percents().map(cell));
            cells.push(highest.and_then(|percent| find(series, percent)).map_or(
                "-".to_owned(),
                |quantile| match quantile.n_eff {
                    _ if is_dependence_unknown(quantile) => "not known".to_owned(),
                    n_eff => count(n_eff.round() as u64),
                },
            ));
            cells
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    page.blank();
    let mut head = vec!["95 % intervals"];
    head.extend(columns.iter().map(String::as_str));
    // Each percentile has its own; that of the highest is the one to be careful with.
    let worth = format!("n_eff {}", columns.last().map_or("", String::as_str));
    head.push(&worth);
    page.table(&head, &rows, &[]);
}

/// Signal-to-noise in both readings, and ten blocks of time with the tests for a trend.
fn over_time(page: &mut Page, run: &Run) {
    let steady: Vec<&Series> = match run.series.len() {
        ..=MOST_OVER_TIME => Vec::new(),
        _ => run.series.iter().filter(|series| shows_no_trend(series)).collect(),
    };
    let all = run.series.iter();
    for series in all.filter(|series| !steady.iter().any(|of| of.name == series.name)) {
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
    if !steady.is_empty() {
        page.item(&format!(
            "{} series show no trend over their ten blocks (p of {TREND} and more), which are in \
             run.json",
            steady.len()
        ));
    }
}

/// No test for a trend speaks against a series.
fn shows_no_trend(series: &Series) -> bool {
    series.stationarity.as_ref().is_some_and(|blocks| {
        let tests = [blocks.trend_p50, blocks.trend_p99];
        tests.iter().flatten().all(|p| *p >= TREND)
    })
}

/// There are samples, and nothing was learned of how they depend on each other.
fn is_dependence_unknown(quantile: &Quantile) -> bool {
    quantile.value.is_some() && quantile.n_eff <= 0.0
}

fn interval(series: &Series, percent: f64) -> String {
    let Some(quantile) = find(series, percent) else { return "-".to_owned() };
    match (quantile.low, quantile.high) {
        (Some(low), Some(high)) => format!("{low} .. {high}"),
        (Some(low), None) => format!("{low} .. >max"),
        _ if is_dependence_unknown(quantile) => "not known".to_owned(),
        _ => "n too small".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::calibration::Trust;

    use super::*;
    use crate::terminal::Style;
    use crate::trusted::tests::{calibrated, trust};

    /// The table of one flow that a planted calibration of this host in another state trusts up to p99.
    fn planted(style: Style) -> String {
        let mut run = calibrated(Some(99.0));
        let changed = "kernel was 6.12.1 and is 6.12.2".to_owned();
        run.flows[0].trust = Some(Trust { stale: Some(changed), ..trust(Some(99.0)) });
        let series = &mut run.series[0];
        series.paper_row = None;
        (series.class, series.class_by, series.tail, series.snr) = (None, None, None, None);
        (series.lost, series.stationarity) = (0, None);
        let mut page = Page::new(style);
        page.title("What was measured");
        table(&mut page, &run, "50,99.9".parse().unwrap());
        page.finish()
    }

    #[test]
    fn numbers_beyond_trust_and_a_stale_calibration_read_as_recorded() {
        insta::assert_snapshot!(planted(Style::default()));
    }

    #[test]
    fn independent_samples_are_told_of_the_highest_percentile_that_is_shown() {
        let mut run = crate::timeline::tests::recorded();
        let series = &mut run.series[0];
        for (quantile, worth) in series.quantiles.iter_mut().zip([1.0, 2.0, 3.0, 4_444.0, 5_555.0])
        {
            quantile.n_eff = worth;
        }
        let shown = |percents: &str| {
            let mut page = Page::new(Style::default());
            page.title("What was measured");
            table(&mut page, &run, percents.parse().unwrap());
            page.finish()
        };
        for (percents, head, worth) in
            [("50,99.9", "n_eff p99.9", "4,444"), ("50,99.99", "n_eff p99.99", "5,555")]
        {
            let text = shown(percents);
            let mut lines = text.lines().skip_while(|line| !line.contains("95 % intervals"));
            assert!(lines.next().unwrap().ends_with(head), "{text}");
            assert!(lines.next().unwrap().ends_with(worth), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_trust_are_grey_and_no_others() {
        let text = planted(Style { colour: true, ..Style::default() });
        for cell in ["~60.0us", "~900us", "~59.9us .. 60.1us"] {
            assert!(text.contains(&format!("\u{1b}[2m{cell}\u{1b}[0m")), "{cell}: {text:?}");
        }
        assert_eq!(text.matches("\u{1b}[2m").count(), 3, "{text:?}");
        assert!(text.contains("STALE: kernel was 6.12.1"), "{text}");
    }
}
