//! Does a set of tasks meet its deadlines, and if not, why?

use whylate_model::Printable;
use whylate_model::cause::Cause;
use whylate_model::run::Run;
use whylate_model::threads::{Deadlines, ThreadSummary};

use super::layout::name;
use super::{Screen, series};
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};

/// Sets of more threads show those that missed most first.
const IN_ORDER: usize = 4;
/// Threads that the answer names.
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
    let mut threads = with_deadlines(run);
    let mut worst = threads.clone();
    worst.sort_by_key(|(_, of)| std::cmp::Reverse(of.misses));
    if threads.len() > IN_ORDER {
        threads.clone_from(&worst);
    }
    let mut answer = vec![headline(run, &worst)];
    answer.extend(worst.first().and_then(|(thread, of)| why(thread, of)));
    let mut deadlines =
        Table::new("", &["deadlines", "jobs", "missed", "share", "95% CI", "skipped"]);
    let mut responses = Table::new("", &["response time", "min", "p50", "max", "worst overrun"]);
    for (thread, of) in &threads {
        let share = share(of);
        deadlines.row([
            Cell::from(format!("{}  {}", Printable(&thread.name), Printable(&thread.workload))),
            Value::Count(judged(of)).into(),
            Value::Count(of.misses).into(),
            share.clone(),
            share.ends(),
            Value::Count(of.skipped).into(),
        ]);
        let Some(response) = series::named(run, &format!("response-{}", thread.name)) else {
            continue;
        };
        let overrun = series::named(run, &format!("tardiness-{}", thread.name));
        responses.row([
            Cell::from(Printable(&thread.name).to_string()),
            series::min(response),
            series::at(response, 50.0),
            series::max(response),
            overrun.map_or(Value::Absent.into(), series::max),
        ]);
    }
    let skipped = threads.iter().any(|(_, of)| of.skipped > 0).then(|| {
        "A skipped job (its deadline was over before the job before it was done) is among the missed."
            .to_owned()
    });
    Screen {
        answer,
        tables: vec![deadlines, responses],
        notes: skipped.into_iter().collect(),
        more: vec!["whylate report {directory} --timeline  draws who had the CPU".to_owned()],
        ..Screen::default()
    }
}

fn headline(run: &Run, worst: &[(&ThreadSummary, &Deadlines)]) -> String {
    let (missed, jobs) = sums(run);
    if missed == 0 {
        return format!("All {} deadlines were met.", count(jobs));
    }
    let share = Cell::from(Value::Share(missed as f64 / (jobs as f64).max(1.0))).in_table(None);
    let missing = worst.iter().filter(|(_, of)| of.misses > 0);
    let named: Vec<String> = missing
        .clone()
        .take(NAMED)
        .map(|(thread, of)| format!("{} by thread {}", count(of.misses), name(&thread.name)))
        .collect();
    let others = missing.count().saturating_sub(NAMED);
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    let (missed, jobs) = (count(missed), count(jobs));
    format!("{missed} of {jobs} deadlines were missed ({share}): {}{others}.", named.join(", "))
}

/// Why a thread missed most of its deadlines; none where it missed none or nobody knows.
fn why(thread: &ThreadSummary, of: &Deadlines) -> Option<String> {
    let most = of.causes.iter().max_by_key(|of| of.misses)?;
    let because = because(&most.cause)?;
    let (missed, all) = (count(most.misses), count(of.misses));
    let name = name(&thread.name);
    Some(format!("Thread {name} missed most often because {because} ({missed} of {all})."))
}

fn because(cause: &Cause) -> Option<String> {
    Some(match cause {
        Cause::Thread { comm, .. } | Cause::Member { comm, .. } => {
            format!("{} preempted it", name(comm))
        }
        Cause::Whylate => "whylate itself preempted it".to_owned(),
        Cause::Throttled => "real-time throttling or its reservation stopped it".to_owned(),
        Cause::OwnDemand => "it needs more than there is before its deadline".to_owned(),
        Cause::LeftOver => "its job before ended too late".to_owned(),
        Cause::TimerLate => "its timer fired late".to_owned(),
        Cause::IdleExit => "its CPU left idle late".to_owned(),
        Cause::Host | Cause::Firmware => "it lost time that has no kernel event".to_owned(),
        Cause::Hypervisor => "the hypervisor took the CPU".to_owned(),
        Cause::Interrupt { name } if name == "local_timer" => "of timer interrupts".to_owned(),
        Cause::Unknown => return None,
        other => format!("of {other}"),
    })
}
