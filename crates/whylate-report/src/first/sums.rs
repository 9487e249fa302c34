//! What several recordings of latencies or of switches say together, and how they differ.

use whylate_model::origin::{Origin, Share};
use whylate_model::run::Run;
use whylate_model::series::{Definition, Series};

use super::layout::name;
use super::merge::{between, headline, left_out, recordings};
use super::{COMPARE, Screen, checkup, rtt, series, switch_cost};
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Name, Sentence, sentence};
use crate::terminal::Style;

/// Percentiles by which recordings of requests are told apart: the first that all of them show.
const PERCENTS: [f64; 2] = [99.0, 50.0];
const MEDIAN: f64 = 50.0;

/// Is it a sum of check-ups?
pub(super) fn is_of_checkups(run: &Run) -> bool {
    run.is_merged() && checkup::holds_latencies(run)
}

pub(super) fn of_checkups(run: &Run, style: Style) -> Screen {
    let worst = run.gaps.iter().max_by(|a, b| a.lost_share.total_cmp(&b.lost_share));
    let Some(worst) = worst else { return Screen::default() };
    let answer = std::iter::once(headline(run, worst)).chain(between(run, worst)).collect();
    let notes = checkup::skipped(run).into_iter().chain(left_out(run)).collect();
    let tables = vec![checkup::latency(run, style), recordings(run, worst)];
    Screen { answer, tables, notes, more: vec![COMPARE.to_owned()], ..Screen::default() }
}

/// Is it a sum of recordings of requests that are answered?
pub(super) fn is_of_requests(run: &Run) -> bool {
    run.is_merged() && rtt::holds_requests(run)
}

pub(super) fn of_requests(run: &Run, style: Style) -> Screen {
    let Some((flow, (times, what))) =
        run.flows.first().and_then(|flow| Some((flow, rtt::times(run, flow)?)))
    else {
        return Screen::default();
    };
    let over = sentence![rtt::capital(what), " over ", runs(run), ": "];
    let first = sentence![over, series::said(times), "; ", rtt::lost(&flow.packets), "."];
    let answer = std::iter::once(first).chain(apart(run, times, &PERCENTS, None)).collect();
    let notes = rtt::departures(run, flow).iter().map(Sentence::said).collect();
    let tables = vec![rtt::latency(run, style), of_each(run, times)];
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
        each.row([Cell::from(name(&origin.directory))].into_iter().chain(cells));
    }
    let answer = std::iter::once(first).chain(second).collect();
    Screen {
        answer,
        tables: vec![table, each],
        more: vec![COMPARE.to_owned()],
        ..Screen::default()
    }
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
    let [low, high] = [values.iter().min()?, values.iter().max()?].map(|of| Cell::from(*of));
    let how = how.map(|how| sentence![" (", how, ")"]);
    let what = sentence![Name::of(series::name(*percent)), how];
    Some(if low.said() == high.said() {
        sentence!["Each run by itself has a ", what, " of ", low, "."]
    } else {
        sentence!["The ", what, " of the runs lies between ", low, " and ", high, "."]
    })
}

/// A row for each recording, the slowest first.
fn of_each(run: &Run, of: &Series) -> Table {
    let mut rows = shares(run, &of.name);
    rows.sort_by_key(|(_, share)| {
        let tail = share.quantiles.iter().find(|of| series::is(of, PERCENTS[0]));
        std::cmp::Reverse((tail.and_then(|of| of.value.or(of.low)), share.max))
    });
    let mut table = Table::new("", &["runs", "samples", "p50", "p99", "max"]);
    for (origin, share) in rows {
        let at = |percent| series::of_quantiles(&share.quantiles, percent);
        table.row([
            Cell::from(name(&origin.directory)),
            Value::Count(share.n).into(),
            at(MEDIAN),
            at(PERCENTS[0]),
            share.max.into(),
        ]);
    }
    table
}
