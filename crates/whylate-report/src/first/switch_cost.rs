//! What a context switch costs.

use whylate_model::Nanos;
use whylate_model::run::Run;
use whylate_model::switch_cost::{Between, Direct, How, IndirectRow, SwitchCost};

use super::Screen;
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::spans::{Sentence, Told, sentence};
use crate::switch_cost::size;

/// Kinds of switches with what they are called.
pub(super) const KINDS: [(How, &str); 3] = [
    (How::Yield, "sched_yield"),
    (How::HandOff, "hand-off (wake + sleep)"),
    (How::Involuntary, "end of time slice"),
];

/// Is it a recording of what switches cost?
pub(super) fn is_it(run: &Run) -> bool {
    run.switch_cost.is_some() && !run.is_merged()
}

pub(super) fn screen(run: &Run) -> Screen {
    let Some(of) = &run.switch_cost else { return Screen::default() };
    let mut answer = vec![headline(of)];
    answer.extend(through_caches(of));
    Screen {
        answer,
        tables: vec![direct(of), indirect(of)],
        notes: apart(of).into_iter().collect(),
        more: vec!["whylate rta --task \"3ms 8ms\" --overhead {directory}  uses it".to_owned()],
        ..Screen::default()
    }
}

/// The cost to be expected with its interval; none of a kind whose times do not lie together.
fn cost(of: &Direct) -> Cell {
    let ends = of.interval().map(|(low, high)| (Value::from(low), Value::from(high)));
    let expected = of.times.cluster_median;
    Cell::from(expected).within(expected.and(ends))
}

/// Kinds of switches that were seen, and whose times are too few or too far apart for a number.
fn apart(of: &SwitchCost) -> Option<String> {
    let between = [(Between::Threads, "threads"), (Between::Processes, "processes")];
    let kinds = KINDS.iter().flat_map(|kind| between.iter().map(move |between| (kind, between)));
    let without = kinds.filter_map(|((how, name), (between, whom))| {
        let times = &of.measured(*between, *how)?.times;
        let switches = count(times.n);
        (times.cluster_median.is_none() && times.n > 0)
            .then(|| format!("{name} of {whom} ({switches})"))
    });
    let without: Vec<String> = without.collect();
    (!without.is_empty())
        .then(|| format!("Too few or too scattered samples: {}.", without.join(", ")))
}

fn headline(of: &SwitchCost) -> Sentence {
    let said = |how, name: &'static str| {
        let cost = cost(of.measured(Between::Threads, how)?);
        cost.is_known().then(|| sentence![cost, " (", name, ")"])
    };
    let known = [said(How::Yield, "yield"), said(How::HandOff, "hand-off")];
    let known: Vec<Sentence> = known.into_iter().flatten().collect();
    let switch = sentence!["thread switch on CPU ", Told::of(of.cpu)];
    if known.is_empty() {
        return sentence!["The cost of a ", switch, " was not measured."];
    }
    sentence!["A ", switch, " costs ", Sentence::joined(known, " or "), "."]
}

/// The largest cost through the caches that is shown to be one.
fn through_caches(of: &SwitchCost) -> Option<Sentence> {
    let shown = of.indirect.iter().filter_map(|row| Some((row, row.penalty.as_ref()?)));
    let shown = shown.filter(|(_, penalty)| penalty.interval_ns.0 > 0.0);
    let most = shown.max_by(|a, b| a.1.mean_ns.total_cmp(&b.1.mean_ns));
    let Some((row, _)) = most else {
        let tried = of.indirect.iter().any(|row| row.penalty.is_some());
        return tried.then(|| "A cost of refilling caches is not shown.".into());
    };
    let set = sentence![" (", Told::of(size(row.bytes)), " working set)."];
    Some(sentence!["With caches to refill it costs up to ", penalty(row), set])
}

/// The mean penalty with its interval; none where it may be none.
fn penalty(row: &IndirectRow) -> Cell {
    let Some(of) = &row.penalty else { return Value::Absent.into() };
    let (low, high) = of.interval_ns;
    let mean = if low > 0.0 { Value::Time(of.mean_ns) } else { Value::Absent };
    Cell::from(mean).within(Some((Value::Time(low), Value::Time(high))))
}

fn direct(of: &SwitchCost) -> Table {
    let mut table = Table::new("", &["direct cost", "threads", "95% CI", "processes", "95% CI"]);
    for (how, name) in KINDS {
        let cells = [Between::Threads, Between::Processes].map(|between| {
            of.measured(between, how).map_or_else(|| Cell::from(None::<Nanos>), cost)
        });
        let ends = |cell: &Cell| cell.ends();
        let [threads, processes] = &cells;
        table.row([
            Cell::from(name),
            threads.clone(),
            ends(threads),
            processes.clone(),
            ends(processes),
        ]);
    }
    table
}

fn indirect(of: &SwitchCost) -> Table {
    let head = ["cost through caches", "per switch", "95% CI", "significant"];
    let mut table = Table::new("", &head).words(&[3]);
    for row in &of.indirect {
        let cell = penalty(row);
        let shown = match &row.penalty {
            Some(of) if of.interval_ns.0 > 0.0 => "yes",
            Some(_) => "no",
            None => "not measured",
        };
        table.row([Cell::from(size(row.bytes)), cell.clone(), cell.ends(), shown.into()]);
    }
    table
}
