//! Tables of the phases of programs: what their passes asked for and received, what came of their
//! timers and of the steps that keep busy by the clock, and how all of it adds up.

use whylate_model::run::Run;
use whylate_model::threads::{PhaseSummary, ThreadSummary};

use super::{MOST_ROWS, shown};
use crate::doc::Table;
use crate::numbers::{ABSENT, Value, count, percent};

const PASSES: &str = "run: what a pass received for its run steps, by its blocks, beside what the \
                      file asks for; pass: from begin to begin, beside what run, runtime and sleep \
                      steps come to where they alone decide; lost: the thread wanted the CPU and did \
                      not have it; means.";
const TIMERS: &str = "period: mean distance of the wake-ups by a timer; put off: periods that \
                      began late, because the instant before was over when the thread came to it, \
                      and by how much in all. Without a number: threads share the timer.";
const RUNTIMES: &str = "runtime steps are busy by the clock, whatever they receive. lasted: from \
                        their begin to their end; over: how far one went beyond its end, at most, \
                        for want of the CPU; received: by its blocks; means of the passes.";
const STEPS: &str = "received: as in the table of CPU time; other: memory written, the way from step \
                     to step, recordings, and the pass that had not ended. They add up.";

/// A table with what its columns mean.
type Explained = (Table, &'static str);

/// What came of the phases of programs; empty where no thread has some.
pub(super) fn phases(run: &Run) -> Vec<Explained> {
    [passes(run), timers(run), runtimes(run), steps(run)].into_iter().flatten().collect()
}

/// A table with a row for each phase of which there is something to say.
fn table<'a>(
    run: &'a Run,
    (title, head, how): (&str, &[&str], &'static str),
    row: impl Fn(&'a PhaseSummary) -> Option<Vec<String>>,
) -> Option<Explained> {
    let rows = shown(run).iter().flat_map(|thread: &ThreadSummary| {
        thread.phases.iter().filter_map(|phase| {
            let names = [&thread.name, &phase.name].map(String::clone);
            Some(names.into_iter().chain(row(phase)?))
        })
    });
    let table = Table::new(title, head).words(&[1]).with(rows.take(MOST_ROWS)).filled()?;
    Some((table, how))
}

fn mean(ns: Option<f64>) -> String {
    Value::from(ns.map(Value::Time)).to_string()
}

fn passes(run: &Run) -> Option<Explained> {
    let head = ["thread", "phase", "passes", "run asked", "run", "pass asked", "pass", "lost"];
    table(run, ("Phases", &head, PASSES), |phase| {
        Some(vec![
            count(phase.passes),
            Value::from(phase.run_asked).to_string(),
            mean(phase.run_ns),
            Value::from(phase.length_asked).to_string(),
            mean(phase.period_ns),
            mean(phase.lost_ns),
        ])
    })
}

fn timers(run: &Run) -> Option<Explained> {
    let head = ["thread", "phase", "period asked", "wake-ups", "period", "put off", "by"];
    table(run, ("Timers", &head, TIMERS), |phase| {
        let asked = Value::from(phase.period_asked?).to_string();
        Some(match phase.activations {
            Some(of) => vec![
                asked,
                count(of.count),
                mean(of.distance_ns),
                count(of.put_off),
                Value::from(of.put_off_by).to_string(),
            ],
            None => {
                std::iter::once(asked).chain(std::iter::repeat_n(ABSENT.to_owned(), 4)).collect()
            }
        })
    })
}

fn runtimes(run: &Run) -> Option<Explained> {
    let head = ["thread", "phase", "busy asked", "lasted", "over", "received", "share"];
    table(run, ("Busy by the clock", &head, RUNTIMES), |phase| {
        let of = phase.runtime?;
        let share = of.lasted_ns.zip(of.received_ns).map(|(lasted, had)| had / lasted.max(1.0));
        Some(vec![
            Value::from(of.asked).to_string(),
            mean(of.lasted_ns),
            Value::from(of.longest_over).to_string(),
            mean(of.received_ns),
            share.map_or(ABSENT.to_owned(), percent),
        ])
    })
}

fn steps(run: &Run) -> Option<Explained> {
    let head = ["thread", "received", "run", "runtime", "other"];
    let rows = shown(run).iter().filter_map(|thread| {
        let of = thread.steps?;
        let times = [thread.received, of.run, of.runtime, of.other].map(Value::from);
        Some([Value::from(thread.name.as_str())].into_iter().chain(times))
    });
    let table = Table::new("What steps received", &head).with(rows).filled()?;
    Some((table, STEPS))
}

#[cfg(test)]
mod tests;
