//! Numbers of a series as a first screen shows them.

use whylate_model::Nanos;
use whylate_model::run::Run;
use whylate_model::series::{Quantile, Series};

use crate::numbers::{Cell, Value};
pub(super) use crate::series::at_least as value;
use crate::series::at_least;
use crate::spans::{Sentence, sentence};
use crate::trusted;

/// The series of that name, where it has samples.
pub(super) fn named<'a>(run: &'a Run, name: &str) -> Option<&'a Series> {
    run.series.iter().find(|series| series.name == name && series.n > 0)
}

/// Is it that percentile?
pub(super) fn is(of: &Quantile, percent: f64) -> bool {
    (of.percent - percent).abs() < 1e-9
}

fn quantile(of: &[Quantile], percent: f64) -> Option<&Quantile> {
    of.iter().find(|of| is(of, percent))
}

/// The value at a percentile; none where the sample does not show it.
pub(super) fn at_percent(of: &[Quantile], percent: f64) -> Option<Nanos> {
    quantile(of, percent)?.value
}

/// A percentile; of one that the sample does not support the lower bound.
pub(super) fn of_quantiles(all: &[Quantile], percent: f64) -> Cell {
    Cell::from(quantile(all, percent).map_or(Value::Absent, at_least))
}

/// The same of a series, whose clock has a resolution.
pub(super) fn at(series: &Series, percent: f64) -> Cell {
    of_quantiles(&series.quantiles, percent).resolved(series.resolution_ns)
}

/// The interval of a percentile.
pub(super) fn ends(series: &Series, percent: f64) -> Cell {
    let of = quantile(&series.quantiles, percent);
    let ends = of.map(|of| (Value::from(of.low), Value::from(of.high)));
    Cell::from(of.and_then(|of| of.value)).within(ends).ends()
}

/// The largest value; of one beyond what was waited for its lower bound.
pub(super) fn max(series: &Series) -> Cell {
    let beyond = series.censored.map(|of| Value::AtLeast(of.above.0 as f64));
    Cell::from(series.max.map(Value::from).or(beyond)).resolved(series.resolution_ns)
}

/// The smallest value.
pub(super) fn min(series: &Series) -> Cell {
    Cell::from(series.min).resolved(series.resolution_ns)
}

/// The median, the p99 and the worst, in a sentence.
pub(super) fn said(series: &Series) -> Sentence {
    sentence!["p50 ", at(series, 50.0), ", p99 ", at(series, 99.0), ", worst ", max(series)]
}

/// The same, with its mark where a calibration does not support one.
pub(super) fn said_in(run: &Run, series: &Series) -> Sentence {
    let marked = |cell: Cell, percent| cell.marked(trusted::is_beyond(run, &series.name, percent));
    let [p50, p99] = [50.0, 99.0].map(|percent| marked(at(series, percent), percent));
    sentence!["p50 ", p50, ", p99 ", p99, ", worst ", marked(max(series), trusted::MAX)]
}

/// How a percentile is called.
pub(super) fn name(percent: f64) -> String {
    format!("p{percent}")
}
