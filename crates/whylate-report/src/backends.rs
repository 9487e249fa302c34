//! The section of several backends in turns.

use whylate_model::backends::{BackendRole, BackendRow, Backends, Claim, Saved};
use whylate_model::run::Run;
use whylate_model::series::{Quantile, Series};

use crate::doc::{Block, Picture, Section, Table};
use crate::numbers::{ABSENT, Value, between, count, percent, rate, with_ends};
use crate::series::at_least;
use crate::trusted;

/// The title of the section.
const TITLE: &str = "What each backend saves";
/// How the tables are to be read.
const HOW: &str = "Round trips: from before the send to after the reception, all rounds together; \
     95% intervals. Saved: the first less this one in each round, in the mean of the rounds; ratio: this \
     one over the first, in their geometric mean; 95% intervals by a studentised bootstrap over the \
     rounds. Within a round all were measured next to each other, in an order that the seed drew, and the \
     first one twice: how far its two measurements differ is the control. Nothing is claimed where that \
     is wider than +-3%; neither: the ratio's interval holds 1.";

/// The percentiles that are compared.
pub(crate) const PERCENTS: [f64; 2] = [50.0, 99.0];

/// The section of several backends, with their picture where there is one.
pub(crate) fn section(run: &Run, of: &Backends, svg: Option<String>) -> Section {
    let picture = svg.map(|svg| Block::Figure(Picture::still(svg, "")));
    let mut blocks: Vec<Block> = picture.into_iter().collect();
    blocks.push(Block::Table(round_trips(run, of)));
    blocks.extend(savings(run, of).map(Block::Table));
    blocks.extend([Block::How(HOW.to_owned()), Block::Items(remarks(run, of))]);
    Section::new("backends", TITLE, blocks).headed()
}

/// Round trips by backend.
pub(crate) fn round_trips(run: &Run, of: &Backends) -> Table {
    let head = ["backend", "n", "p50", "interval", "p99", "interval"];
    Table::new("Round trips by backend", &head)
        .with(of.rows.iter().map(|row| round_trips_row(run, row)))
}

fn round_trips_row(run: &Run, row: &BackendRow) -> Vec<String> {
    let mut cells = vec![name(row)];
    let Some(measured) = &row.measured else {
        cells.extend([ABSENT; 5].map(str::to_owned));
        return cells;
    };
    let series = series(run, &measured.service);
    cells.push(series.map_or_else(|| ABSENT.to_owned(), |series| count(series.n)));
    for percent in PERCENTS {
        let beyond = trusted::is_beyond(run, &measured.service, percent);
        let quantile = series.and_then(|series| quantile(series, percent));
        let value = quantile.map_or(Value::Absent, at_least).to_string();
        cells.push(trusted::marked(value, beyond));
        let (low, high) = quantile.map_or((None, None), |of| (of.low, of.high));
        let interval = between(low.map(Value::from), high.map(Value::from));
        cells.push(trusted::marked(interval, beyond));
    }
    cells
}

/// What a row saves at the percentiles that both its sample and that of the first support.
pub(crate) fn supported<'a>(
    run: &'a Run,
    of: &'a Backends,
    row: &'a BackendRow,
) -> impl Iterator<Item = &'a Saved> {
    let is_known = move |of: &BackendRow, percent: f64| {
        let series = of.measured.as_ref().and_then(|measured| series(run, &measured.service));
        series.and_then(|series| quantile(series, percent)?.value).is_some()
    };
    row.saved.iter().filter(move |saved| {
        let first = of.first().is_some_and(|first| is_known(first, saved.percent));
        first && is_known(row, saved.percent)
    })
}

/// What each saves against the first; none where nothing was compared.
fn savings(run: &Run, of: &Backends) -> Option<Table> {
    let head = ["backend", "of", "saved", "interval", "ratio", "interval", "claim"];
    let first = of.first().map_or(ABSENT, |row| row.backend.as_str());
    let row = |row| supported(run, of, row).map(move |saved| savings_row(row, saved));
    let rows = of.rows.iter().flat_map(row);
    Table::new(format!("Saved against {first}"), &head).with(rows).filled()
}

fn savings_row(row: &BackendRow, saved: &Saved) -> Vec<String> {
    let ends = saved.interval_ns.map(|(low, high)| (Value::Time(low), Value::Time(high)));
    let [mean, interval] = with_ends(Value::Time(saved.mean_ns), ends);
    let [ratio, of_ratio] = ratio(saved);
    vec![
        name(row),
        format!("p{}", saved.percent),
        mean,
        interval,
        ratio,
        of_ratio,
        match &saved.claim {
            None => ABSENT,
            Some(Claim::Saves) => "saves",
            Some(Claim::Costs) => "costs",
            Some(Claim::NoDifference) => "neither",
            Some(Claim::Nothing { .. }) => "none",
        }
        .to_owned(),
    ]
}

/// What is to be said beside the tables.
fn remarks(run: &Run, of: &Backends) -> Vec<String> {
    let sent = match of.asked.per_second {
        Some(per_second) => format!("{} ({})", rate(per_second), of.asked.arrivals),
        None => of.asked.arrivals.clone(),
    };
    let mut said = vec![
        format!("the other end: {}", of.other_end),
        format!(
            "the same of each: {sent}, {} bytes, {} after a warm-up of {} in each of {} rounds",
            of.asked.bytes, of.length, of.warmup, of.rounds
        ),
    ];
    let controls = of.control().into_iter();
    let controls = controls.flat_map(|row| supported(run, of, row).map(move |saved| (row, saved)));
    for (row, saved) in controls {
        let half = saved.half_width().map_or(ABSENT.to_owned(), percent);
        let [ratio, ends] = ratio(saved);
        said.push(format!(
            "control: p{} of {} over that of {}: {ratio} ({ends}), that is ±{half}, {} rounds",
            saved.percent,
            name(row),
            row.backend,
            saved.rounds
        ));
    }
    for row in &of.rows {
        if let Some(reason) = &row.reason {
            let (name, reason) = (name(row), reason);
            said.push(match row.measured.as_ref().map(|measured| measured.rounds.len()) {
                None => format!("{name} was not measured: {reason}"),
                Some(rounds) => format!("{name} ended after {rounds} rounds: {reason}"),
            });
        }
        if let Some(packets) = row.measured.as_ref().map(|of| of.packets).filter(|of| of.lost > 0) {
            let (lost, sent) = (count(packets.lost), count(packets.sent));
            said.push(format!("{lost} of {sent} requests by {} were never answered", name(row)));
        }
        let nothing = supported(run, of, row).filter_map(|saved| match &saved.claim {
            Some(Claim::Nothing { why }) => Some((saved.percent, why)),
            _ => None,
        });
        said.extend(
            nothing.map(|(percent, why)| {
                format!("no claim of the p{percent} of {}: {}", name(row), why)
            }),
        );
    }
    said.extend(of.rows.iter().filter_map(|row| {
        let way = &row.measured.as_ref()?.way;
        let (backend, path) = (&way.backend, &way.path);
        (row.role != BackendRole::Control)
            .then(|| format!("{}: {backend}, {path}, waits by {}", name(row), way.wait))
    }));
    said
}

/// What a row is called.
pub(crate) fn name(row: &BackendRow) -> String {
    match row.role {
        BackendRole::Control => format!("{} again", row.backend),
        BackendRole::First | BackendRole::Compared => row.backend.clone(),
    }
}

/// The series of that name.
pub(crate) fn series<'a>(run: &'a Run, name: &str) -> Option<&'a Series> {
    run.series.iter().find(|series| series.name == name)
}

/// One of its quantiles.
pub(crate) fn quantile(series: &Series, percent: f64) -> Option<&Quantile> {
    series.quantiles.iter().find(|of| (of.percent - percent).abs() < 1e-9)
}

/// How much of the first one this one is, and the interval.
fn ratio(saved: &Saved) -> [String; 2] {
    let ends = saved.ratio_interval.map(|(low, high)| (Value::Ratio(low), Value::Ratio(high)));
    with_ends(Value::Ratio(saved.ratio), ends)
}

#[cfg(test)]
pub(crate) mod tests;
