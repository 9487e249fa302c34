//! Does a set of tasks meet its deadlines, and if not, why?

use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::threads::{Deadlines, Miss, ThreadSummary};
use whylate_model::{Nanos, Printable};

use super::layout::{COLUMNS, short};
use super::{Screen, missed, series};
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Sentence, sentence};

/// Sets of more threads show those that missed most first.
const IN_ORDER: usize = 4;
/// Deadlines of two jobs that lie no further apart, in nanoseconds, are as long: each end is rounded to a tick.
const SAME: u64 = 1_000;
/// Threads that the answer names at most.
const NAMED: usize = 2;

/// Is it a recording of tasks with deadlines, without a prediction of them?
pub(super) fn is_it(run: &Run) -> bool {
    !run.only_wakes()
        && run.prediction.is_none()
        && !run.is_merged()
        && run
            .threads
            .iter()
            .filter_map(|thread| thread.deadlines.as_ref())
            .any(|of| judged(of) > 0)
}

/// Jobs of which it is known whether they met their deadline.
pub(super) fn judged(of: &Deadlines) -> u64 {
    of.hits.saturating_add(of.misses)
}

/// The threads that have deadlines, each with what came of them.
pub(super) fn with_deadlines(run: &Run) -> Vec<(&ThreadSummary, &Deadlines)> {
    let known = run.threads.iter().filter_map(|thread| Some((thread, thread.deadlines.as_ref()?)));
    known.filter(|(_, of)| judged(of) > 0).collect()
}

/// How many deadlines were missed, of how many.
pub(super) fn sums(run: &Run) -> (u64, u64) {
    let add = |(missed, jobs): (u64, u64), (_, of): &(&ThreadSummary, &Deadlines)| {
        (missed.saturating_add(of.misses), jobs.saturating_add(judged(of)))
    };
    with_deadlines(run).iter().fold((0, 0), add)
}

/// The share of misses with its interval.
pub(super) fn share(of: &Deadlines) -> Cell {
    let share = of.misses as f64 / (judged(of) as f64).max(1.0);
    let ends = of.miss_share_interval.map(|(low, high)| (Value::Share(low), Value::Share(high)));
    Cell::from(Value::Share(share)).within(ends)
}

pub(super) fn screen(run: &Run) -> Screen {
    let (threads, worst) = (shown_first(run), worst_first(run));
    let answer = std::iter::once(headline(run, &worst)).chain(missed::main_cause(run, &worst));
    let skipped = threads.iter().any(|(_, of)| of.skipped > 0).then(|| SKIPPED.to_owned());
    Screen {
        answer: answer.collect(),
        tables: std::iter::once(deadlines(&threads)).chain(behind(run, &threads)).collect(),
        notes: skipped.into_iter().collect(),
        more: vec![TIMELINE.to_owned()],
        ..Screen::default()
    }
}

/// What shows more of a set.
pub(super) const TIMELINE: &str = "whylate report {directory} --timeline  draws who had the CPU";
/// What the column of skipped jobs counts.
const SKIPPED: &str = "Skipped jobs (due before the job before them was done) count as missed.";

/// Threads with deadlines, those that missed most first.
fn worst_first(run: &Run) -> Vec<(&ThreadSummary, &Deadlines)> {
    let mut threads = with_deadlines(run);
    threads.sort_by_key(|(_, of)| std::cmp::Reverse(of.misses));
    threads
}

/// A few in the order of the set, of more those first that missed most.
pub(super) fn shown_first(run: &Run) -> Vec<(&ThreadSummary, &Deadlines)> {
    let threads = with_deadlines(run);
    if threads.len() > IN_ORDER { worst_first(run) } else { threads }
}

fn deadlines(threads: &[(&ThreadSummary, &Deadlines)]) -> Table {
    let mut table = Table::new("", &["deadlines", "jobs", "missed", "share", "95% CI", "skipped"]);
    for (thread, of) in threads {
        let share = share(of);
        table.row([
            Cell::from(format!("{}  {}", Printable(&thread.name), Printable(&thread.workload))),
            Value::Count(judged(of)).into(),
            Value::Count(of.misses).into(),
            share.clone(),
            share.ends(),
            Value::Count(of.skipped).into(),
        ]);
    }
    table
}

/// The tables behind the deadlines: why some were missed, and response times where there is room for them.
pub(super) fn behind(run: &Run, threads: &[(&ThreadSummary, &Deadlines)]) -> Vec<Table> {
    let causes = missed::table(run, threads);
    let room = threads.len() <= IN_ORDER || causes.is_none();
    let responses = room.then(|| responses(run, threads));
    responses.into_iter().chain(causes).collect()
}

fn responses(run: &Run, threads: &[(&ThreadSummary, &Deadlines)]) -> Table {
    let head = ["response time", "min", "p50", "max", "deadline", "worst overrun"];
    let mut table = Table::new("", &head);
    for (thread, of) in threads {
        let Some(response) = series::named(run, &format!("response-{}", thread.name)) else {
            continue;
        };
        let deadline = deadline(run, thread, of);
        table.row([
            Cell::from(Printable(&thread.name).to_string()),
            series::min(response),
            series::at(response, 50.0),
            series::max(response),
            Value::from(deadline).into(),
            overrun(run, thread, response, deadline),
        ]);
    }
    table
}

/// How long a job of a thread may take from its release. A run that did not keep that tells it by its misses,
/// and of a thread that missed nothing by the command line, where no clause gives a deadline other than the period.
fn deadline(run: &Run, thread: &ThreadSummary, of: &Deadlines) -> Option<Nanos> {
    let of_miss = |miss: &Miss| miss.deadline.since(miss.release).to_nanos(run.clock.hz);
    let of_words = || {
        let own = |word: &&String| word.starts_with(thread.workload.as_str());
        let mut clauses = run.command_line.iter().filter(own).peekable();
        let period = || thread.workload.split(' ').nth(2)?.parse().ok();
        (clauses.peek().is_some() && !clauses.any(|clause| clause.contains("deadline")))
            .then(period)
            .flatten()
    };
    let (least, most) = (of.first.iter().map(of_miss).min(), of.first.iter().map(of_miss).max());
    // Of frames that follow each other at once each has one of its own.
    let of_all = least.zip(most).filter(|(least, most)| most.0 - least.0 <= SAME);
    of.deadline.or_else(|| of_all.map(|(least, _)| least)).or_else(of_words)
}

/// How far the latest job ended after its deadline: as recorded, and where no such series is kept what its response
/// time exceeds the deadline by. A dash where none was late.
fn overrun(run: &Run, thread: &ThreadSummary, response: &Series, deadline: Option<Nanos>) -> Cell {
    if let Some(tardiness) = series::named(run, &format!("tardiness-{}", thread.name)) {
        return series::max(tardiness);
    }
    let over = response.max.zip(deadline).and_then(|(max, deadline)| max.0.checked_sub(deadline.0));
    over.filter(|over| *over > 0).map(Nanos).into()
}

fn headline(run: &Run, worst: &[(&ThreadSummary, &Deadlines)]) -> Sentence {
    let (missed, jobs) = sums(run);
    if missed == 0 {
        return sentence!["All ", Value::Count(jobs), " deadlines were met."];
    }
    let missing: Vec<_> = worst.iter().filter(|(_, of)| of.misses > 0).collect();
    // The share of the only thread has an interval, which the table has, too.
    let share = match worst {
        [(_, only)] => Sentence::from(share(only)),
        _ => crate::threads::share(missed, jobs).into(),
    };
    let were = if missed == 1 { " deadlines was missed (" } else { " deadlines were missed (" };
    let said = sentence![missed_of(missed, jobs), were, share, ")"];
    if let [(thread, _)] = missing.as_slice() {
        let by = if missed == 1 { ", by thread " } else { ", all by thread " };
        return sentence![said, by, short(&thread.name), "."];
    }
    let named = missing.iter().map(|(thread, of)| {
        let name = short(&thread.name);
        sentence![Value::Count(of.misses), " by thread ", name]
    });
    let by_name = sentence![said.clone(), ": ", Sentence::joined(named, ", "), "."];
    if missing.len() <= NAMED && by_name.said().chars().count() <= COLUMNS {
        return by_name;
    }
    sentence![said, ", by ", missing.len(), " of ", worst.len(), " threads."]
}

/// So many of so many.
pub(super) fn missed_of(missed: u64, jobs: u64) -> Sentence {
    sentence![Value::Count(missed), " of ", Value::Count(jobs)]
}
