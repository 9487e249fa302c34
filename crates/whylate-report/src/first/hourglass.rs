//! What would Hourglass 0.5 have printed, and why were deadlines missed?

use whylate_model::run::Run;

use super::{Screen, received, threads};
use crate::doc::Table;
use crate::hourglass::summary;

/// Is it a recording of a command line of Hourglass, of more than wake-ups?
pub(super) fn is_it(run: &Run) -> bool {
    let asked = run.command_line.get(1).is_some_and(|word| word == "hourglass");
    asked && (threads::is_it(run) || received::is_it(run))
}

/// That of a set of threads, with the lines of the paper's program in place of the table of deadlines.
pub(super) fn screen(run: &Run) -> Screen {
    let lines = "{directory}/hourglass.txt  has the paper's trace (--raw)".to_owned();
    if !threads::is_it(run) {
        return Screen { more: vec![lines], ..received::screen(run) };
    }
    let shown = threads::shown_first(run);
    let mut deadlines = Table::new("", &["as Hourglass 0.5 prints it"]);
    for (thread, of) in &shown {
        let number = run.threads.iter().position(|other| std::ptr::eq(other, *thread));
        deadlines.row([summary(number.unwrap_or_default(), of)]);
    }
    let tables = std::iter::once(deadlines).chain(threads::behind(run, &shown)).collect();
    Screen { tables, more: vec![lines], ..threads::screen(run) }
}
