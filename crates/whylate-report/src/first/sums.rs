//! What several recordings of latencies, of switches or of whatever has samples say together, and how they differ.

use std::cmp::Reverse;

use whylate_model::flow::{Flow, Packets};
use whylate_model::origin::{Origin, Share};
use whylate_model::run::Run;
use whylate_model::series::{Definition, Series};
use whylate_model::{Nanos, Printable};

use super::merge::{between, headline, left_out, recordings};
use super::{COMPARE, Screen, checkup, compare, rtt, series, switch_cost, trusted};
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::render::shorter;
use crate::spans::{Name, Sentence, Told, sentence};
use crate::terminal::Style;
use crate::trusted::{MAX, is_beyond, is_beyond_in};

/// Percentiles by which recordings of requests are told apart: the first that all of them show.
const PERCENTS: [f64; 2] = [99.0, 50.0];
const MEDIAN: f64 = 50.0;

/// Is it a sum of check-ups?
pub(super) fn is_of_checkups(run: &Run) -> bool {
    run.is_merged() && run.holds_latencies()
}

pub(super) fn of_checkups(run: &Run, style: Style) -> Screen {
    let worst = run.gaps.iter().max_by(|a, b| a.lost_share.total_cmp(&b.lost_share));
    let Some(worst) = worst else { return Screen::default() };
    let answer = std::iter::once(headline(run, worst)).chain(between(run, worst)).collect();
    let notes = checkup::skipped(run).into_iter().chain(left_out(run)).collect();
    let tables = vec![checkup::latency(run, style), recordings(run, worst)];
    Screen { answer, tables, notes, more: vec![COMPARE.to_owned()], ..Screen::default() }
}

/// Is it a sum of recordings of requests that are answered, or of messages from port to port?
pub(super) fn is_of_requests(run: &Run) -> bool {
    run.is_merged() && rtt::holds_times(run)
}

pub(super) fn of_requests(run: &Run, style: Style) -> Screen {
    let Some((flow, (times, what))) =
        run.flows.first().and_then(|flow| Some((flow, rtt::times(run, flow)?)))
    else {
        return Screen::default();
    };
    let over = sentence![rtt::capital(what), " over ", runs(run), ": "];
    // Flows of other sizes or rates may be added up to one series.
    let together: Vec<&Flow> = run.flows.iter().filter(|of| of.has_series(&times.name)).collect();
    let lost = match together.as_slice() {
        [] | [_] => rtt::lost(&flow.packets),
        several => {
            let mut packets = Packets::default();
            for of in several {
                packets.add(&of.packets);
            }
            Sentence::from(Told::of(rtt::lost(&packets).said()))
        }
    };
    let first = sentence![over, series::said_in(run, times), "; ", lost, "."];
    let answer = std::iter::once(first).chain(apart(run, times, &PERCENTS, None)).collect();
    let tables = vec![rtt::latency(run, style), of_each(run, times)];
    let departures = rtt::departures(run, flow).map(|of| of.said());
    let notes = rtt::beyond(&tables).into_iter().chain(departures).collect();
    Screen { answer, tables, notes, more: vec![COMPARE.to_owned()], ..Screen::default() }
}

/// Is it a sum of recordings of what switches cost?
pub(super) fn is_of_switches(run: &Run) -> bool {
    let of_switches = |series: &Series| series.definition == Definition::ContextSwitch;
    run.is_merged()
        && run.gaps.is_empty()
        && run.flows.is_empty()
        && run.series.iter().any(|series| series.n > 0)
        && run.series.iter().all(of_switches)
}

pub(super) fn of_switches(run: &Run) -> Screen {
    let named = |between: &str, how: &str| series::named(run, &format!("switch-{between}-{how}"));
    let kinds = switch_cost::KINDS.map(|(how, what)| (how.name(), what));
    let known: Vec<Sentence> = kinds
        .iter()
        .take(2)
        .filter_map(|(how, _)| {
            let median = series::at(named("threads", how)?, MEDIAN);
            Some(sentence![median, " (", *how, ")"])
        })
        .collect();
    let over = sentence!["Over ", runs(run)];
    let first = if known.is_empty() {
        sentence![over, " no switch of threads was measured."]
    } else {
        sentence![over, " a thread switch costs ", Sentence::joined(known, " or "), ", p50."]
    };
    let yielded = kinds.first().and_then(|(how, _)| Some((named("threads", how)?, how)));
    let second = yielded.and_then(|(of, how)| apart(run, of, &[MEDIAN], Some(*how)));
    let mut table =
        Table::new("", &["p50 of a switch", "threads", "95% CI", "processes", "95% CI"]);
    for (how, what) in &kinds {
        let of = ["threads", "processes"].map(|between| named(between, how));
        if of.iter().all(Option::is_none) {
            continue;
        }
        let cells = of.into_iter().flat_map(|of| match of {
            Some(of) => [series::at(of, MEDIAN), series::ends(of, MEDIAN)],
            None => [Value::Absent.into(), Value::Absent.into()],
        });
        table.row([Cell::from(*what)].into_iter().chain(cells));
    }
    let head = ["runs, threads, p50", "yield", "hand-off", "time slice"];
    let mut each = Table::new("", &head);
    for origin in &run.origins {
        let of = |how: &str| {
            let share = share(origin, &format!("switch-threads-{how}"));
            share.map_or(Value::Absent.into(), |share| {
                series::of_quantiles(&share.quantiles, MEDIAN)
            })
        };
        let cells = kinds.iter().map(|(how, _)| of(how));
        each.row([Cell::from(Printable(&origin.directory).to_string())].into_iter().chain(cells));
    }
    let answer = std::iter::once(first).chain(second).collect();
    Screen {
        answer,
        tables: vec![table, each],
        more: vec![COMPARE.to_owned()],
        ..Screen::default()
    }
}

/// The series with samples, that first which a user asks about most; of parts of requests the longest.
fn with_samples(run: &Run) -> Vec<&Series> {
    let mut all: Vec<&Series> = run.series.iter().filter(|of| of.n > 0).collect();
    let is_part = |of: &Series| of.definition == Definition::PartOfRequest;
    let length =
        |of: &Series| Reverse(series::at_percent(&of.quantiles, MEDIAN).filter(|_| is_part(of)));
    all.sort_by_key(|of| (compare::place(of.definition, &of.name), length(of)));
    all
}

/// Letters of a label in a sentence.
const SAID: usize = 48;

/// What the first of them is called, at the beginning of a sentence.
pub(super) fn first_label(run: &Run) -> Option<String> {
    with_samples(run).first().map(|of| trusted::upper(&shorter(&label(of), SAID)))
}

fn label(of: &Series) -> String {
    Printable(of.label.trim()).to_string()
}

/// Recordings of anything else: that of their series which a user asks about first, beside all others.
pub(super) fn of_others(run: &Run, style: Style) -> Screen {
    let all = with_samples(run);
    let Some(first) = all.first() else {
        let nothing = vec!["Nothing was measured.".into()];
        return Screen { answer: nothing, more: vec![COMPARE.to_owned()], ..Screen::default() };
    };
    let over = run.is_merged().then(|| sentence![", over ", runs(run)]);
    let came = run.flows.first().filter(|flow| flow.asked.one_way);
    let said = if let Some(flow) = came {
        sentence!["Over ", runs(run), ", ", rtt::headline(run, flow)]
    } else {
        let what = Name::cut(first.label.trim(), SAID).begins(trusted::upper);
        sentence![what, over, ": ", series::said_in(run, first), "."]
    };
    let apart = apart(run, first, &PERCENTS, None).filter(|_| came.is_none());
    let answer = std::iter::once(said).chain(apart).collect();
    let percents: Vec<f64> = style.percentiles.percents().collect();
    let names = percents.iter().map(|percent| series::name(*percent));
    let head = ["time", "min"].map(str::to_owned).into_iter().chain(names);
    let head: Vec<String> = head.chain(["max", "samples"].map(str::to_owned)).collect();
    let heads: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new("", &heads);
    for of in &all {
        let marked = |cell: Cell, percent| cell.marked(is_beyond(run, &of.name, percent));
        let values = percents.iter().map(|percent| marked(series::at(of, *percent), *percent));
        let ends = [marked(series::max(of), MAX), Value::Count(of.n).into()];
        table.row([label(of).into(), series::min(of)].into_iter().chain(values).chain(ends));
    }
    let tables = vec![table, of_each(run, first)];
    let notes = rtt::beyond(&tables).into_iter().collect();
    Screen { answer, tables, notes, more: vec![COMPARE.to_owned()], ..Screen::default() }
}

/// How many recordings.
fn runs(run: &Run) -> Sentence {
    let many = run.origins.len();
    sentence![many, if many == 1 { " run" } else { " runs" }]
}

fn share<'a>(origin: &'a Origin, series: &str) -> Option<&'a Share> {
    origin.series.iter().find(|share| share.series == series && share.n > 0)
}

/// What each recording added to a series, with the recording.
fn shares<'a>(run: &'a Run, series: &str) -> Vec<(&'a Origin, &'a Share)> {
    run.origins.iter().filter_map(|origin| Some((origin, share(origin, series)?))).collect()
}

/// Between what the recordings lie by themselves, at the first of these percentiles that all of them show; none of
/// one alone, or where one shows no percentile.
fn apart(run: &Run, of: &Series, percents: &[f64], how: Option<&'static str>) -> Option<Sentence> {
    let shares = shares(run, &of.name);
    let values = |percent: f64| -> Option<Vec<_>> {
        shares.iter().map(|(_, share)| series::at_percent(&share.quantiles, percent)).collect()
    };
    let known = percents.iter().find_map(|percent| Some((percent, values(*percent)?)));
    let (percent, values) = known.filter(|(_, values)| values.len() > 1)?;
    let of_shares = shares.iter().map(|(_, share)| is_beyond_in(share, *percent));
    let mut all: Vec<(Nanos, bool)> = values.into_iter().zip(of_shares).collect();
    all.sort_unstable();
    let marked = |(value, beyond): &(Nanos, bool)| Cell::from(*value).marked(*beyond);
    let [low, high] = [all.first().map(marked)?, all.last().map(marked)?];
    let how = how.map(|how| sentence![" (", how, ")"]);
    let what = sentence![Told::of(series::name(*percent)), how];
    Some(if low.said() == high.said() {
        // Of two that are equal the one that is marked comes last.
        sentence!["Each run by itself has a ", what, " of ", high, "."]
    } else {
        sentence!["The ", what, " of the runs lies between ", low, " and ", high, "."]
    })
}

/// A row for each recording, the slowest first.
fn of_each(run: &Run, of: &Series) -> Table {
    let mut rows = shares(run, &of.name);
    rows.sort_by_key(|(_, share)| {
        let tail = share.quantiles.iter().find(|of| series::is(of, PERCENTS[0]));
        Reverse((tail.and_then(|of| of.value.or(of.low)), share.max))
    });
    let mut table = Table::new("", &["runs", "samples", "p50", "p99", "max"]);
    for (origin, share) in rows {
        let beyond = |percent: f64| is_beyond_in(share, percent);
        let at = |percent| series::of_quantiles(&share.quantiles, percent).marked(beyond(percent));
        table.row([
            Cell::from(Printable(&origin.directory).to_string()),
            Value::Count(share.n).into(),
            at(MEDIAN),
            at(PERCENTS[0]),
            Cell::from(share.max).marked(beyond(MAX)),
        ]);
    }
    table
}
