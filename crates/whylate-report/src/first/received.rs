//! How much CPU time do threads without deadlines receive, and what takes the rest?

use whylate_model::run::Run;
use whylate_model::threads::ThreadSummary;
use whylate_model::{Nanos, Printable};

use super::taken::{self, by_class};
use super::{Screen, threads};
use crate::doc::Table;
use crate::numbers::{Cell, Value};
use crate::spans::{Name, Sentence, sentence};

/// Sets of more threads show those first that lost most of their time.
const IN_ORDER: usize = 8;

/// Is it a recording of threads of which none has a deadline, and of more than wake-ups?
pub(super) fn is_it(run: &Run) -> bool {
    let ran = |thread: &ThreadSummary| thread.received.0 > 0 || thread.lost.0 > 0;
    !run.only_wakes()
        && run.prediction.is_none()
        && !run.is_merged()
        && run.threads.iter().any(ran)
        && threads::with_deadlines(run).is_empty()
}

pub(super) fn screen(run: &Run) -> Screen {
    let taken = by_class(run, None);
    let mut answer = vec![headline(run)];
    answer.extend(taken::sentence(&taken, &"Of the lost time, ".into()));
    Screen {
        answer,
        tables: vec![received(run), taken::table_of_threads(&taken)],
        notes: vec!["Waited: asleep or blocked. Lost: runnable, but not running.".to_owned()],
        more: vec![threads::TIMELINE.to_owned()],
        ..Screen::default()
    }
}

fn headline(run: &Run) -> Sentence {
    let sum = |of: fn(&ThreadSummary) -> Nanos| {
        Nanos(run.threads.iter().map(|thread| of(thread).0).fold(0, u64::saturating_add))
    };
    let (received, lost) = (sum(|thread| thread.received), sum(|thread| thread.lost));
    let received = sentence![" received ", received, " of CPU time"];
    match run.threads.as_slice() {
        [one] => {
            let who = sentence!["Thread ", Name::of(&one.name)];
            sentence![who, received, " in ", elapsed(run, one), ", and lost ", lost, "."]
        }
        all => sentence![all.len(), " threads", received, "; they lost ", lost, " in all."],
    }
}

fn elapsed(run: &Run, thread: &ThreadSummary) -> Nanos {
    thread.end.since(thread.start).to_nanos(run.clock.hz)
}

/// A part of the time of a thread.
fn share(run: &Run, thread: &ThreadSummary, part: Nanos) -> f64 {
    part.0 as f64 / (elapsed(run, thread).0 as f64).max(1.0)
}

fn received(run: &Run) -> Table {
    let mut all: Vec<&ThreadSummary> = run.threads.iter().collect();
    if all.len() > IN_ORDER {
        let lost = |thread: &ThreadSummary| share(run, thread, thread.lost);
        all.sort_by(|a, b| lost(b).total_cmp(&lost(a)));
    }
    let mut table =
        Table::new("", &["CPU time", "received", "waited", "lost", "lost, of its time"]);
    for thread in all {
        table.row([
            Cell::from(format!("{}  {}", Printable(&thread.name), Printable(&thread.workload))),
            thread.received.into(),
            thread.waited.into(),
            thread.lost.into(),
            Value::Share(share(run, thread, thread.lost)).into(),
        ]);
    }
    table
}
