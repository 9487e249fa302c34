//! Jobs by cause and task: causes in rows, tasks in columns, and each job in one place.

use whylate_model::Printable;

use super::layout::{APART, COLUMNS, LABEL};
use super::taken::OTHER;
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::render::shorter;

/// Rows of the table; what has less stands in one row more.
const MOST: usize = 5;
/// Letters of a task's name above its column.
const NAME: usize = 12;

/// Jobs of one task by cause.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    name: String,
    by: Vec<(String, u64)>,
    /// A cause that cannot be one of this task.
    never: Option<String>,
}

impl Counted {
    /// Of a task by its name, of which nothing is counted yet.
    pub(super) fn of(name: &str) -> Self {
        Self { name: shorter(&Printable(name).to_string(), NAME), ..Self::default() }
    }

    /// With a cause that cannot be one of it, so that it has a dash there.
    pub(super) fn never(self, cause: String) -> Self {
        Self { never: Some(cause), ..self }
    }

    /// So many jobs more by this cause.
    pub(super) fn add(&mut self, cause: &str, jobs: u64) {
        match self.by.iter_mut().find(|(known, _)| known == cause) {
            Some((_, known)) => *known = known.saturating_add(jobs),
            None if jobs > 0 => self.by.push((cause.to_owned(), jobs)),
            None => {}
        }
    }

    /// All of them.
    pub(super) fn sum(&self) -> u64 {
        self.by.iter().map(|(_, jobs)| *jobs).fold(0, u64::saturating_add)
    }

    /// The cause of most of them; of several the one that was counted first.
    pub(super) fn main(&self) -> Option<&(String, u64)> {
        self.by.iter().rev().max_by_key(|(_, jobs)| *jobs)
    }

    fn get(&self, cause: &str) -> u64 {
        self.by.iter().find(|(known, _)| known == cause).map_or(0, |(_, jobs)| *jobs)
    }

    /// Those by causes without a row of their own count as others.
    fn told(&self, rows: &[String]) -> Self {
        let mut told = Self { by: Vec::new(), ..self.clone() };
        for (cause, jobs) in &self.by {
            told.add(if rows.contains(cause) { cause } else { OTHER }, *jobs);
        }
        told
    }

    fn cell(&self, cause: &str) -> Cell {
        match self.get(cause) {
            0 if self.never.as_deref() == Some(cause) => Value::Absent.into(),
            jobs => Value::Count(jobs).into(),
        }
    }

    /// Columns that it takes.
    fn width(&self) -> usize {
        APART + self.name.chars().count().max(count(self.sum()).len())
    }
}

/// The table of tasks of which some jobs are counted: where not all have room, those with most of them and
/// the sum of the others. The main cause of the task with most jobs has a row in any case.
pub(super) fn table(head: &str, tasks: &[Counted]) -> Table {
    let mut tasks: Vec<Counted> = tasks.iter().filter(|task| task.sum() > 0).cloned().collect();
    let rows = rows(&tasks);
    let mut label = head.chars().count();
    for task in &mut tasks {
        *task = task.told(&rows);
        let causes = task.by.iter().map(|(cause, _)| cause.chars().count().min(LABEL));
        label = causes.fold(label, usize::max);
    }
    let tasks = fitting(tasks, COLUMNS.saturating_sub(label));
    let heads = std::iter::once(head).chain(tasks.iter().map(|task| task.name.as_str()));
    let mut table = Table::new("", &heads.collect::<Vec<_>>()).whole();
    let others = tasks.iter().any(|task| task.get(OTHER) > 0).then(|| OTHER.to_owned());
    for cause in rows.into_iter().chain(others) {
        let cells = tasks.iter().map(|task| task.cell(&cause));
        table.row(std::iter::once(Cell::from(cause.as_str())).chain(cells));
    }
    table
}

/// The jobs of all tasks together.
pub(super) fn all(tasks: &[Counted]) -> Counted {
    let mut all = Counted::default();
    for (cause, jobs) in tasks.iter().flat_map(|task| &task.by) {
        all.add(cause, *jobs);
    }
    all
}

/// Causes with a row of their own, the most frequent first.
fn rows(tasks: &[Counted]) -> Vec<String> {
    let mut all = all(tasks);
    let main = worst(tasks).and_then(Counted::main).map(|(cause, _)| cause);
    all.by.sort_by_key(|(cause, jobs)| std::cmp::Reverse((Some(cause) == main, *jobs)));
    let others = all.by.iter().any(|(cause, _)| cause == OTHER) || all.by.len() > MOST;
    all.by.retain(|(cause, _)| cause != OTHER);
    all.by.truncate(if others { MOST - 1 } else { MOST });
    all.by.sort_by_key(|(_, jobs)| std::cmp::Reverse(*jobs));
    all.by.into_iter().map(|(cause, _)| cause).collect()
}

/// The task with most jobs; of several the first.
fn worst(tasks: &[Counted]) -> Option<&Counted> {
    tasks.iter().rev().max_by_key(|task| task.sum())
}

/// All of them where they fit into so many columns, else those with most jobs and the sum of the others.
fn fitting(mut tasks: Vec<Counted>, room: usize) -> Vec<Counted> {
    let width = |tasks: &[Counted]| tasks.iter().map(Counted::width).sum::<usize>();
    if width(&tasks) <= room {
        return tasks;
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(task.sum()));
    let others = |few: usize| {
        let name = format!("{} others", count((tasks.len() - few) as u64));
        Counted { name, ..all(&tasks[few..]) }
    };
    let fits = |few: &usize| width(&tasks[..*few]) + others(*few).width() <= room;
    let few = (0..tasks.len()).rev().find(fits).unwrap_or(0);
    let others = others(few);
    tasks.truncate(few);
    tasks.push(others);
    tasks
}
