//! How close each backend comes to the truth.

mod parts;
mod section;

use whylate_model::Nanos;
use whylate_model::calibration::{
    CalibratedBackend, Calibration, Emulator, ErrorAtPercent, ForeignReading, ForeignTool, Limit,
    LimitEnd, Slope,
};
use whylate_model::series::Quantile;
use whylate_stats::by_run::{FEWEST_BEYOND, FEWEST_RUNS};

use crate::doc::Table;
use crate::numbers::{ABSENT, Cell, Value, between, count, difference, rate};
use crate::series::at_least;
use crate::svg::error_curve::{At, Line};

use parts::{planted, rates, slopes, told};
pub(crate) use section::{figure, section};

/// The title of the section.
pub(crate) const TITLE: &str = "How close each backend comes to the truth";
/// How the numbers are to be read.
const HOW: &str = "Error: a percentile of what the client measured less the same percentile of the \
     truth, message by message the same ones; above zero is too slow. Its 95% interval assumes nothing of \
     how the two depend on each other. A percentile holds when its error lies within the tolerance of zero \
     with its whole interval; the limit is the largest up to which all hold. Less the path: with the median \
     measured back to back, without the line, taken off; a constant can be taken off, a tail cannot. Nothing \
     is taken off anywhere else. Later results of a backend are shown grey beyond its second limit.";

/// How emulators beside each other are to be read.
const EMULATED: &str = "The line: from when a frame is due to when it is handed over, frames of \
     memory through its own loop, by its own reading, before the first real one. Netem: from before a datagram \
     is sent to after it is received, over loopback in a namespace of its own, less what was set and the median \
     that it takes with no delay set.";

/// The backend that may be trusted furthest, and among how many; none where none was measured.
pub(crate) fn furthest(of: &Calibration) -> Option<(&CalibratedBackend, usize)> {
    let reach = |one: &&CalibratedBackend| one.limit_compensated.percent.unwrap_or(0.0);
    // A client of somebody else is asked about by itself: ours is only beside it.
    let asked = match &of.backends[..] {
        [tool, ..] if tool.foreign.is_some() => std::slice::from_ref(tool),
        all => all,
    };
    // The first of those that reach as far.
    let best = asked.iter().rev().max_by(|a, b| reach(a).total_cmp(&reach(b)));
    best.map(|best| (best, asked.len()))
}

/// Where the truth comes from.
fn line(of: &Calibration) -> String {
    let line = &of.line;
    format!(
        "The truth is what the delay line wrote down of each frame ({}, set to {}): it keeps a frame for {} \
         with no delay set, and what it is set to within {}, by its own measurement over {} frames in steps \
         of {}.",
        line.transport,
        line.delay,
        Value::from(line.base),
        Value::from(line.error),
        count(line.frames),
        crate::svg::resolution_label(line.resolution_ns),
    )
}

/// Both limits of every backend.
fn limits(of: &Calibration) -> Table {
    let head = ["backend", "runs", "n", "rate", "as it is", "path", "less the path"];
    let limit = |limit: &Limit| limit.percent.map_or("none".to_owned(), |of| format!("p{of}"));
    let row = |one: &CalibratedBackend| {
        vec![
            one.backend.clone(),
            one.runs.to_string(),
            count(one.n),
            rate(one.achieved_pps),
            limit(&one.limit_raw),
            Value::from(one.base).to_string(),
            limit(&one.limit_compensated),
        ]
    };
    Table::new(format!("Trusted within {} up to", of.tolerance), &head)
        .with(of.backends.iter().map(row))
}

/// The error of one backend at each percentile.
fn errors(of: &CalibratedBackend, tolerance: Nanos) -> Table {
    let head = ["", "measured", "truth", "error", "95% interval", "less the path", ""];
    let caption = format!("{}: errors, n = {}", of.backend, count(of.n));
    let row = |raw: &ErrorAtPercent| {
        let compensated = at(&of.errors_compensated, raw.percent);
        vec![
            format!("p{}", raw.percent),
            measured(&of.measured, raw.percent),
            quantile(&of.truth, raw.percent),
            error(raw),
            interval(raw.low_ns, raw.high_ns),
            compensated.map_or(ABSENT.to_owned(), error),
            judged(compensated.unwrap_or(raw), tolerance, of).to_owned(),
        ]
    };
    Table::new(caption, &head).words(&[6]).with(of.errors_raw.iter().map(row))
}

/// An error with the digits that its interval supports.
fn error(at: &ErrorAtPercent) -> String {
    let ends = at.low_ns.zip(at.high_ns).map(|(low, high)| (Value::Time(low), Value::Time(high)));
    Cell::from(at.error_ns.map(Value::Time)).within(ends).signed().alone().to_string()
}

/// Does this percentile hold, and if not, what it lacks.
fn judged(at: &ErrorAtPercent, tolerance: Nanos, of: &CalibratedBackend) -> &'static str {
    let within = |ns: f64| ns.abs() <= tolerance.0 as f64;
    match (at.error_ns, at.low_ns, at.high_ns) {
        (Some(_), Some(low), Some(high)) if within(low) && within(high) => "holds",
        (Some(error), Some(_), Some(_)) if within(error) => "interval",
        (Some(_), Some(_), Some(_)) => "error",
        (Some(_), _, _) if few_runs(of.runs) => "few runs",
        _ => "n too small",
    }
}

/// What is to be said of a backend beside its table.
fn remarks(of: &CalibratedBackend) -> Vec<String> {
    let asked = of.asked_pps.map_or("as fast as replies came".to_owned(), rate);
    let frame = of.frame_bytes.map_or(String::new(), |bytes| format!(", frames of {bytes} bytes"));
    let mut said = vec![
        format!(
            "{}, from {} to {}; asked {asked}, came about {}{frame}",
            of.definition,
            of.from,
            of.to,
            rate(of.achieved_pps)
        ),
        format!("as it is: {}", ended(&of.limit_raw, of, &of.errors_raw)),
    ];
    match of.base {
        Some(base) => said.push(format!(
            "less the path of {} (median of {} messages back to back): {}",
            Value::from(base),
            count(of.base_n),
            ended(&of.limit_compensated, of, &of.errors_compensated)
        )),
        None => {
            said.push(
                "its path was not measured back to back: nothing can be taken off".to_owned(),
            );
        }
    }
    said.push(smallest(of));
    if of.without_truth + of.without_measurement > 0 {
        said.push(format!(
            "{} messages that the line has no truth of, and {} that left it and were never had, are in no \
             number",
            count(of.without_truth),
            count(of.without_measurement)
        ));
    }
    said.extend(of.notes.iter().cloned());
    if let Some(tool) = &of.foreign {
        said.extend(foreign(&of.backend, tool));
    }
    said
}

/// The error message by message: what bounds of a device are made from.
fn smallest(of: &CalibratedBackend) -> String {
    let shown = of
        .error_quantiles
        .iter()
        .filter_map(|at| Some(format!("{} at p{}", difference(at.value_ns?), at.percent)));
    let shown: Vec<String> = shown.collect();
    let shown = if shown.is_empty() { String::new() } else { format!(", {}", shown.join(", ")) };
    format!("message by message it adds {} at least{shown}", difference(of.error_min_ns as f64))
}

/// A limit in words, and what ended it.
fn ended(limit: &Limit, of: &CalibratedBackend, errors: &[ErrorAtPercent]) -> String {
    let reach = match limit.percent {
        Some(percent) => format!("trusted up to p{percent}"),
        None => "nothing is trusted".to_owned(),
    };
    let next = limit.fails_at.map_or(String::new(), |percent| format!("p{percent}"));
    let runs = of.runs;
    // However many runs they came in, so few are too few.
    let beyond = |percent: f64| of.n as f64 * (1.0 - percent / 100.0);
    let enough = limit.fails_at.is_none_or(|percent| beyond(percent) >= FEWEST_BEYOND);
    let few = (few_runs(runs) && enough)
        .then(|| format!("too few runs: {runs}, and {FEWEST_RUNS} are needed"));
    match (limit.ended_by, few) {
        (LimitEnd::Nothing, _) => format!("{reach}, the last one that was looked at"),
        (LimitEnd::Error, _) => format!("{reach}; the error of {next} is beyond the tolerance"),
        (LimitEnd::Interval, Some(few)) => format!(
            "{reach}; the error of {next} is within the tolerance and its interval reaches beyond: {few}"
        ),
        (LimitEnd::Interval, None) => format!(
            "{reach}; the error of {next} is within the tolerance and its interval reaches beyond: more \
             runs may tell, and more messages"
        ),
        (LimitEnd::Sample, _) if next.is_empty() && of.n > 0 => {
            format!("{reach}: it tells no percentile")
        }
        (LimitEnd::Sample, _) if next.is_empty() => format!("{reach}: there are no messages"),
        (LimitEnd::Sample, Some(few)) => format!("{reach}; for {next} there are {few}"),
        (LimitEnd::Sample, None) => {
            let worth = limit.fails_at.and_then(|percent| at(errors, percent)).map_or(
                String::new(),
                |of| {
                    format!(
                        ": those of {runs} runs are worth {} independent ones",
                        count(of.n_eff.round() as u64)
                    )
                },
            );
            format!("{reach}; for {next} there are too few messages{worth}")
        }
    }
}

/// Are these too few to see how far runs lie apart?
fn few_runs(runs: u32) -> bool {
    (runs as usize) < FEWEST_RUNS
}

/// How a tool that is not ours follows the delay, and the halving where it halves.
fn foreign(name: &str, of: &ForeignTool) -> Vec<String> {
    let mut said = vec![format!("{}: `{}`, its number by `{}`", name, of.command, of.metric)];
    let Some(slope) = &of.slope else {
        said.push(
            "too few settings of the line to tell how its number follows the delay".to_owned(),
        );
        return said;
    };
    let rises = format!(
        "its number rises by {} for each nanosecond that its messages spent in the line",
        slope_in_words(slope)
    );
    if !of.halves() {
        let one = slope.low.zip(slope.high).is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high);
        let verdict = if one { "it follows the delay" } else { "that is neither one nor one half" };
        said.push(format!("{rises}: {verdict}"));
        return said;
    }
    let doubled = of.readings.last().map_or(String::new(), |last| {
        format!(
            "; at a delay of {} it said {}, twice that is {}, and the line held its messages for {}",
            Value::from(last.delay),
            difference(last.reported_ns),
            difference(2.0 * last.reported_ns),
            Value::from(last.truth)
        )
    });
    said.push(format!(
        "{rises}: it HALVES what it measured, a round trip divided by two and printed as a latency{doubled}. \
         Half a round trip is a one-way time only where both ways take the same, and never in the tail: one \
         late way shows with half its size. Our numbers are not halved, so the two differ by that factor"
    ));
    said
}

/// What a delay line says of netem beside it.
pub(crate) fn netem(of: &Emulator) -> String {
    let off = |percent: f64| {
        let at = of.errors.iter().find(|at| same(at.percent, percent));
        at.and_then(|at| at.value_ns).map_or(ABSENT.to_owned(), difference)
    };
    match &of.missing {
        Some(why) => format!("Netem is not beside it: {why}."),
        None => format!(
            "Beside it, netem of this kernel is off by {} in the median at {}, and by {} at p99 ({} datagrams, \
             from before the send to after the reception over loopback, less what they take with no delay; the \
             line's own error is from when a frame is due to when it is handed over).",
            off(50.0),
            Value::from(of.delay),
            off(99.0),
            count(of.n)
        ),
    }
}

fn slope_in_words(of: &Slope) -> String {
    match (of.low, of.high) {
        (Some(low), Some(high)) => {
            let ends = between(Some(Value::Ratio(low)), Some(Value::Ratio(high)));
            format!("{} ({ends}; {}, {} points)", slope_value(of), of.method, of.points)
        }
        _ => format!("{} ({} points, too few for an interval)", slope_value(of), of.points),
    }
}

/// A slope with the digits that its interval supports.
fn slope_value(of: &Slope) -> String {
    let ends = of.low.zip(of.high).map(|(low, high)| (Value::Ratio(low), Value::Ratio(high)));
    Cell::from(Value::Ratio(of.value)).within(ends).said()
}

/// What a foreign tool said at each setting of the line.
fn readings(of: &CalibratedBackend) -> Option<Table> {
    let tool = of.foreign.as_ref().filter(|tool| !tool.readings.is_empty())?;
    // Of a tool that prints a mean no percentile is known.
    let truth = if of.errors_raw.is_empty() { "truth, mean" } else { "truth, median" };
    let head = ["delay", truth, "reported", "reported / truth", "readings"];
    let row = |at: &ForeignReading| {
        let ratio = (at.truth.0 > 0).then(|| at.reported_ns / at.truth.0 as f64);
        [
            Value::from(at.delay).to_string(),
            Value::from(at.truth).to_string(),
            difference(at.reported_ns),
            Value::from(ratio.map(Value::Ratio)).to_string(),
            at.readings.to_string(),
        ]
    };
    let caption = format!("{} at each setting of the line", of.backend);
    Some(Table::new(caption, &head).with(tool.readings.iter().map(row)))
}

/// The line beside other emulators of delay.
fn emulators(of: &Calibration) -> Option<Table> {
    let head = ["emulator", "set to", "n", "p50 off by", "p99 off by", "p99.9 off by"];
    let row = |one: &Emulator| {
        let off = |percent: f64| {
            let of = one.errors.iter().find(|of| same(of.percent, percent));
            of.and_then(|of| of.value_ns).map_or(ABSENT.to_owned(), difference)
        };
        let n = if one.missing.is_some() { ABSENT.to_owned() } else { count(one.n) };
        vec![
            one.name.clone(),
            Value::from(one.delay).to_string(),
            n,
            off(50.0),
            off(99.0),
            off(99.9),
        ]
    };
    Table::new("Delay achieved minus delay set", &head).with(of.emulators.iter().map(row)).filled()
}

/// What is missing, and why.
fn missing(of: &Calibration) -> Vec<String> {
    let backends =
        of.missing.iter().map(|one| format!("{} was not calibrated: {}", one.backend, one.why));
    let emulators = of.emulators.iter().filter_map(|one| {
        let why = one.missing.as_ref()?;
        Some(format!("{} was not measured: {}", one.name, why))
    });
    backends.chain(emulators).collect()
}

/// The two curves of a backend's figure.
fn curves(of: &CalibratedBackend) -> Vec<Line> {
    let points = |errors: &[ErrorAtPercent]| -> Vec<At> {
        let at = |of: &ErrorAtPercent| {
            let interval = of.low_ns.zip(of.high_ns);
            Some(At { percent: of.percent, ns: of.error_ns?, interval })
        };
        errors.iter().filter_map(at).collect()
    };
    let raw = Line {
        label: "as it is".to_owned(),
        points: points(&of.errors_raw),
        limit: of.limit_raw.percent,
    };
    let compensated = of.base.map(|base| Line {
        label: format!("less the path of {}", Value::from(base)),
        points: points(&of.errors_compensated),
        limit: of.limit_compensated.percent,
    });
    std::iter::once(raw).chain(compensated).collect()
}

fn at(errors: &[ErrorAtPercent], percent: f64) -> Option<&ErrorAtPercent> {
    errors.iter().find(|of| same(of.percent, percent))
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

pub(crate) fn quantile(of: &[Quantile], percent: f64) -> String {
    let found = of.iter().find(|of| same(of.percent, percent));
    found.map_or(Value::Absent, at_least).to_string()
}

/// What was measured: of several readings that are not one sample, from the least to the most.
fn measured(of: &[Quantile], percent: f64) -> String {
    let found = of.iter().find(|of| same(of.percent, percent) && of.value.is_none());
    match found.and_then(|of| of.low.zip(of.high)) {
        Some((least, most)) => between(Some(least.into()), Some(most.into())),
        None => quantile(of, percent),
    }
}

/// An interval of signed times, one without an upper end too.
pub(crate) fn interval(low: Option<f64>, high: Option<f64>) -> String {
    let ends = Some((Value::from(low.map(Value::Time)), Value::from(high.map(Value::Time))));
    Cell::from(Value::Absent).within(ends).signed().ends().to_string()
}

#[cfg(test)]
pub(crate) mod tests;
