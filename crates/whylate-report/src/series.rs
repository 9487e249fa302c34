//! The table of what was measured, laid out as Table 1 of the PAM paper, and percentiles with their intervals.

use whylate_model::Nanos;
use whylate_model::run::Run;
use whylate_model::series::{Quantile, Series};

use crate::doc::{Block, Table, Where};
use crate::footnote;
use crate::numbers::{ABSENT, Cell, Value, count, p_value};
use crate::svg::resolution_label;
use crate::trusted::{self, MAX};

/// Blocks of time are printed one by one for so many series; of more, for those with a trend.
const MOST_OVER_TIME: usize = 4;
/// A trend is one below this p-value.
const TREND: f64 = 0.01;

/// Percentiles that the page has columns for, in percent.
pub(crate) const ON_THE_PAGE: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// The table with its footnotes. Intervals and blocks of time stand beside their figures on the page.
pub(crate) fn blocks(run: &Run, percents: &[f64]) -> Vec<Block> {
    if run.series.is_empty() {
        let none = Block::Text("No series is stored in this run.".to_owned());
        return vec![Block::Only(Where::Page, vec![none])];
    }
    let mut blocks = vec![Block::Table(table(run, percents))];
    blocks.extend(Block::items(run.series.iter().filter_map(footnote::of).collect()));
    blocks.extend(trusted::said(run).into_iter().map(Block::Note));
    let mut beside = vec![Block::Table(intervals(run, percents))];
    let said = [without(run), over_time(run)].concat();
    beside.extend(Block::items(said));
    blocks.push(Block::Only(Where::Terminal, beside));
    blocks
}

fn table(run: &Run, percents: &[f64]) -> Table {
    let last = percents.len() + 5;
    Table::new("Percentiles of each series", &["", "min"])
        .columns(names(percents))
        .columns(["max", "n", "resolution", "class"])
        .captioned_on_the_page()
        .words(&[last])
        .page_columns(&[last - 1])
        .with(run.series.iter().map(|series| row(run, series, percents)))
}

/// What columns of percentiles are called.
fn names(percents: &[f64]) -> impl Iterator<Item = String> + '_ {
    percents.iter().map(|percent| format!("p{percent}"))
}

fn row(run: &Run, series: &Series, percents: &[f64]) -> Vec<Cell> {
    let beyond = |percent: f64| trusted::is_beyond(run, &series.name, percent);
    let label = match &series.paper_row {
        Some(row) => format!("{} [{row}]", series.label),
        None => series.label.clone(),
    };
    let mut cells = vec![label.into(), value(series, series.min)];
    cells.extend(percents.iter().map(|percent| {
        // Of one that the sample does not support the lower bound, never the maximum in disguise.
        at_percent(series, *percent).resolved(series.resolution_ns).marked(beyond(*percent))
    }));
    cells.push(value(series, series.max).marked(beyond(MAX)));
    cells.push(Value::Count(series.n).into());
    cells.push(resolution_label(series.resolution_ns).into());
    cells.push(series.class.map(|class| class.to_string()).into());
    cells
}

fn find(series: &Series, percent: f64) -> Option<&Quantile> {
    series.quantiles.iter().find(|quantile| (quantile.percent - percent).abs() < 1e-9)
}

/// A value; one below the clock's resolution says so.
fn value(series: &Series, value: Option<Nanos>) -> Cell {
    Cell::from(value).resolved(series.resolution_ns)
}

fn intervals(run: &Run, percents: &[f64]) -> Table {
    // Each percentile has its own; that of the highest is the one to be careful with.
    let worth = format!("n_eff {}", names(percents).last().unwrap_or_default());
    let mut table = Table::new("", &["95% intervals"]).columns(names(percents)).columns([worth]);
    for series in run.series.iter().filter(|series| NoInterval::of(series).is_none()) {
        let cell = |percent: &f64| {
            let beyond = trusted::is_beyond(run, &series.name, *percent);
            interval(series, *percent).marked(beyond)
        };
        let highest = percents.last().and_then(|percent| find(series, *percent));
        let worth = highest.map(|quantile| match quantile.n_eff {
            _ if is_dependence_unknown(quantile) => Value::Absent,
            n_eff => Value::Count(n_eff.round() as u64),
        });
        let label = Cell::from(series.label.as_str());
        let cells = [label].into_iter().chain(percents.iter().map(cell));
        table.row(cells.chain([Cell::from(worth)]));
    }
    table
}

/// Why a series has no interval at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoInterval {
    /// It has no percentile either.
    NoPercentiles,
    TooFew,
    /// How its samples depend on each other.
    DependenceUnknown,
}

impl NoInterval {
    /// None where it has one.
    fn of(series: &Series) -> Option<Self> {
        if series.quantiles.is_empty() {
            return Some(Self::NoPercentiles);
        }
        let has = series.quantiles.iter().any(|of| of.low.is_some());
        let unknown = series.quantiles.iter().any(is_dependence_unknown);
        (!has).then_some(if unknown { Self::DependenceUnknown } else { Self::TooFew })
    }
}

/// So many series without an interval are named.
const MOST_NAMED: usize = 3;

/// Series without an interval, and why they have none.
fn without(run: &Run) -> Vec<String> {
    let of = |why: NoInterval, reason: &str| {
        let all = run.series.iter().filter(|series| NoInterval::of(series) == Some(why));
        let labels: Vec<&str> = all.map(|series| &*series.label).collect();
        let (named, others) = labels.split_at(labels.len().min(MOST_NAMED));
        let more =
            if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        (!named.is_empty())
            .then(|| format!("No 95% interval of {}{more}: {reason}.", named.join("; ")))
    };
    let too_few = of(NoInterval::TooFew, "too few samples");
    let unknown =
        of(NoInterval::DependenceUnknown, "how their samples depend on each other is not known");
    too_few.into_iter().chain(unknown).collect()
}

/// A percentile of a series; of one that the sample does not support the lower bound.
pub(crate) fn at_percent(series: &Series, percent: f64) -> Cell {
    let Some(quantile) = find(series, percent) else { return Value::Absent.into() };
    at_least(quantile).into()
}

/// The value, or the lower bound where that is all that is known.
pub(crate) fn at_least(of: &Quantile) -> Value {
    match (of.value, of.low) {
        (Some(value), _) => value.into(),
        (None, Some(low)) => Value::AtLeast(low.0 as f64),
        (None, None) => Value::Absent,
    }
}

fn interval(series: &Series, percent: f64) -> Cell {
    let Some(quantile) = find(series, percent) else { return Value::Absent.into() };
    match (quantile.low, quantile.high) {
        (Some(_), _) => {
            let ends = Some((Value::from(quantile.low), Value::from(quantile.high)));
            Cell::from(quantile.value).within(ends).ends()
        }
        _ => Value::Absent.into(),
    }
}

/// Percentiles with their intervals: the numbers beside a CCDF.
pub(crate) fn quantiles(run: &Run, series: &[&Series]) -> Table {
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
    let mut table = Table::new("Percentiles with their 95% intervals and n_eff", &["", "n"])
        .columns(names(&percents))
        .columns(["max"]);
    for series in series {
        let beyond = |percent: f64| trusted::is_beyond(run, &series.name, percent);
        let cell = |percent: &f64| with_interval(series, *percent).marked(beyond(*percent));
        let n = [Cell::from(series.label.as_str()), Value::Count(series.n).into()];
        let max = value(series, series.max).marked(beyond(MAX));
        table.row(n.into_iter().chain(percents.iter().map(cell)).chain([max]));
    }
    table
}

fn with_interval(series: &Series, percent: f64) -> Cell {
    let Some(quantile) = find(series, percent) else { return Value::Absent.into() };
    if quantile.value.is_none() {
        return at_least(quantile).into();
    }
    // Each percentile has its own: samples that hang together do so at some height.
    let worth =
        if quantile.n_eff.is_finite() { count(quantile.n_eff as u64) } else { "?".to_owned() };
    // The digits are those that it has in every other table.
    let found = value(series, quantile.value);
    let ends = Some((Value::from(quantile.low), Value::from(quantile.high)));
    let ends = found.clone().within(ends).ends();
    Cell::from(format!("{found} ({ends}; n_eff\u{a0}{worth})"))
}

/// Ten blocks of time with the tests for a trend.
fn over_time(run: &Run) -> Vec<String> {
    let mut said = Vec::new();
    let steady: Vec<&Series> = match run.series.len() {
        ..=MOST_OVER_TIME => Vec::new(),
        _ => run.series.iter().filter(|series| shows_no_trend(series)).collect(),
    };
    let all = run.series.iter();
    for series in all.filter(|series| !steady.iter().any(|of| of.name == series.name)) {
        let mut words = Vec::new();
        if let Some(blocks) = &series.stationarity {
            words.push(of_blocks("p50", &blocks.p50, blocks.trend_p50));
            words.push(of_blocks("p99", &blocks.p99, blocks.trend_p99));
        }
        if !words.is_empty() {
            said.push(format!("{}: {}", series.label, words.join("; ")));
        }
    }
    if !steady.is_empty() {
        said.push(format!(
            "{} series show no trend over their ten blocks (p of {TREND} and more), which are in \
             run.json",
            steady.len()
        ));
    }
    said
}

/// A percentile in ten blocks, and whether it moves.
fn of_blocks(name: &str, values: &[Option<Nanos>], trend: Option<f64>) -> String {
    if values.iter().all(Option::is_none) {
        return format!("no block supports {name}");
    }
    let shown = values.iter().map(|value| Value::from(*value).to_string());
    let p = trend.map_or(ABSENT.to_owned(), p_value);
    format!("{name} of ten blocks {} (trend p {p})", shown.collect::<Vec<_>>().join(", "))
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

#[cfg(test)]
mod tests {
    use whylate_model::calibration::Trust;

    use super::*;
    use crate::doc::Document;
    use crate::render::terminal::write;
    use crate::terminal::{Percentiles, Style};
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
        shown(&run, "50,99.9", style)
    }

    /// The blocks of a run with these percentiles.
    fn shown(run: &Run, percents: &str, style: Style) -> String {
        let percentiles: Percentiles = percents.parse().unwrap();
        let blocks = blocks(run, &percentiles.percents().collect::<Vec<_>>());
        write(&Document::new("What was measured").with(blocks), style)
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
        for (percents, head, worth) in
            [("50,99.9", "n_eff p99.9", "4,444"), ("50,99.99", "n_eff p99.99", "5,555")]
        {
            let text = shown(&run, percents, Style::default());
            let mut lines = text.lines().skip_while(|line| !line.contains("95% intervals"));
            assert!(lines.next().unwrap().ends_with(head), "{text}");
            assert!(lines.next().unwrap().ends_with(worth), "{text}");
        }
    }

    /// A quantile: percent, value, both ends, `n_eff`.
    type Of = (f64, Option<u64>, Option<u64>, Option<u64>, f64);

    /// The recorded series with a name of its own and these quantiles.
    fn series(name: &str, of: &[Of]) -> Series {
        let quantile = |&(percent, value, low, high, n_eff): &Of| {
            let [value, low, high] = [value, low, high].map(|at: Option<u64>| at.map(Nanos));
            Quantile { percent, value, low, high, n_eff }
        };
        Series {
            name: name.to_owned(),
            label: name.to_owned(),
            quantiles: of.iter().map(quantile).collect(),
            resolution_ns: 1.0,
            stationarity: None,
            n: 1_000,
            max: Some(Nanos(9_000)),
            ..crate::timeline::tests::recorded().series[0].clone()
        }
    }

    #[test]
    fn an_interval_is_told_as_far_as_it_is_known() {
        let mut run = crate::timeline::tests::recorded();
        let some = Some;
        run.series = vec![
            series("both", &[(50.0, some(20), some(10), some(30), 444.4)]),
            series("open", &[(50.0, None, some(10), None, 5.0)]),
            series("few", &[(50.0, None, None, None, 5.0)]),
            series("unknown", &[(50.0, some(20), None, None, 0.0)]),
            series("other", &[(90.0, some(20), some(10), some(30), 5.0)]),
        ];
        let table = intervals(&run, &[50.0]);
        let cells = |row: usize| [1, 2].map(|at| table.rows[row][at].to_string());
        assert_eq!(cells(0), ["10–30 ns", "444"]);
        assert_eq!(cells(1), ["≥10 ns", "5"]);
        assert_eq!((cells(2), table.rows.len()), (["–", "–"].map(str::to_owned), 3));
        let told = [
            "No 95% interval of few: too few samples.",
            "No 95% interval of unknown: how their samples depend on each other is not known.",
        ];
        assert_eq!(without(&run), told);
        let few = run.series[2].clone();
        run.series.extend(std::iter::repeat_n(few, 4));
        assert_eq!(
            without(&run)[0],
            "No 95% interval of few; few; few and 2 more: too few samples."
        );
    }

    #[test]
    fn the_percentiles_of_several_series_have_a_column_each_and_no_number_that_is_not_known() {
        let run = crate::timeline::tests::recorded();
        let one =
            series("one", &[(50.0, Some(20), Some(10), None, 5.9), (90.0, None, None, None, 1.0)]);
        let other = series(
            "other",
            &[
                (50.0, Some(1), Some(1), Some(2), f64::INFINITY),
                (99.0, Some(7), None, Some(8), 3.0),
            ],
        );
        let table = quantiles(&run, &[&one, &other]);
        let heads: Vec<&str> = table.columns.iter().map(|of| of.head.as_str()).collect();
        assert_eq!(heads, ["", "n", "p50", "p99", "max"]);
        let cells = |row: usize| {
            let text = table.rows[row].iter().map(ToString::to_string);
            text.map(|text| text.replace('\u{a0}', " ")).collect::<Vec<_>>()
        };
        assert_eq!(cells(0), ["one", "1,000", "20 ns (≥10 ns; n_eff 5)", "–", "9 µs"]);
        let p50 = "1 ns (1.0–2.0 ns; n_eff ?)";
        assert_eq!(cells(1), ["other", "1,000", p50, "7 ns (≤8 ns; n_eff 3)", "9 µs"]);
    }

    #[test]
    fn blocks_of_time_are_told_of_few_series_and_of_more_where_one_has_a_trend() {
        use whylate_model::series::Stationarity;
        let with = |name: &str, p50: f64, p99: Option<f64>| Series {
            stationarity: Some(Stationarity {
                p50: vec![Some(Nanos(10)), None],
                p99: vec![Some(Nanos(90)), Some(Nanos(80))],
                trend_p50: Some(p50),
                trend_p99: p99,
                blocks_differ: None,
            }),
            ..series(name, &[])
        };
        let mut run = crate::timeline::tests::recorded();
        run.series = vec![with("a", 0.5, None), with("b", 0.01, Some(0.01))];
        let of = |name: &str, p50: &str, p99: &str| {
            format!(
                "{name}: p50 of ten blocks 10 ns, – (trend p {p50}); p99 of ten blocks 90 ns, 80 ns \
                 (trend p {p99})"
            )
        };
        assert_eq!(over_time(&run), [of("a", "0.500", "–"), of("b", "0.010", "0.010")]);
        run.series.extend([with("c", 0.009, Some(0.5)), with("d", 0.5, Some(0.009))]);
        assert_eq!(over_time(&run).len(), 4);
        run.series.push(series("without", &[]));
        let steady = "2 series show no trend over their ten blocks (p of 0.01 and more), which are in \
                      run.json";
        let expected = [of("c", "0.009", "0.500"), of("d", "0.500", "0.009"), steady.to_owned()];
        assert_eq!(over_time(&run), expected);
    }

    #[test]
    fn numbers_beyond_trust_are_grey_and_no_others() {
        let text = planted(Style { colour: true, ..Style::default() });
        for cell in ["~60 µs", "~900 µs", "~59.9–60.1 µs"] {
            assert!(text.contains(&format!("\u{1b}[2m{cell}\u{1b}[0m")), "{cell}: {text:?}");
        }
        assert_eq!(text.matches("\u{1b}[2m").count(), 3, "{text:?}");
        assert!(text.contains("That calibration is STALE: "), "{text}");
    }
}
