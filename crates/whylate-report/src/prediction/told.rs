//! What is said of a set that was run, for a terminal and for a page: the same cells and sentences.

use whylate_model::prediction::{
    Comparison, MeasuredTask, OverCause, OverJob, PredictedTask, Prediction, WorstJobGap,
};
use whylate_model::{Nanos, Printable};

use crate::numbers::{count, percent};
use crate::svg::Table;

/// Tasks with a row each; the others are in run.json.
const MOST_ROWS: usize = 256;
/// Tasks whose slow jobs are told.
const MOST_TASKS: usize = 16;

/// What the columns of the table of measured tasks mean.
pub(crate) const BESIDE: &str = "The largest of each, from the nominal release. consistent: no job took longer than R; pessimistic: \
                                 none came near it; violated: some took longer; not known: none of those that \
                                 were done, and others never were.";
/// What those of the tables of slow jobs mean.
pub(crate) const LONGEST_GAPS: &str = "Each job that took longer than R is counted under the gap that took most of \
                                       its time from its release to its end, or to its deadline where it was never \
                                       done.";

/// What was simulated and measured beside the bound of each task.
pub(crate) fn beside_measured(of: &Prediction) -> Table {
    let shown = &of.tasks[..of.tasks.len().min(MOST_ROWS)];
    let simulated = shown.iter().any(|task| task.simulated.is_some());
    let measured = shown.iter().any(|task| task.measured.is_some());
    let bounded = shown.iter().any(|task| task.nominal().is_some());
    let mut head = vec!["task"];
    head.extend(bounded.then_some("R"));
    head.extend(simulated.then_some("simulated"));
    let mut left = Vec::new();
    if measured {
        head.extend(["measured", "jobs", "over R", "verdict"]);
        left.push(head.len() - 1);
    }
    let time = |time: Option<Nanos>| time.map_or("-".to_owned(), |time| time.to_string());
    let row = |task: &PredictedTask| {
        let mut row = vec![Printable(&task.name).to_string()];
        if bounded {
            row.push(time(task.nominal()));
        }
        if simulated {
            row.push(time(task.simulated));
        }
        if measured {
            row.extend(match &task.measured {
                Some(of) => [time(of.max), count(of.jobs), count(of.over), verdict(task, of)],
                None => ["-", "-", "-", "-"].map(str::to_owned),
            });
        }
        row
    };
    let mut table = Table::new("The largest response of each task", &head);
    table.rows = shown.iter().map(row).collect();
    table.left = left;
    table
}

fn verdict(task: &PredictedTask, of: &MeasuredTask) -> String {
    match of.comparison {
        Some(Comparison::Consistent) => "consistent".to_owned(),
        Some(Comparison::Pessimistic { by }) => format!("pessimistic by {by}"),
        Some(Comparison::Violated { by }) => format!("violated by {by}"),
        None if task.nominal().is_some() && of.never_done > 0 => {
            format!("not known: {} never done", count(of.never_done))
        }
        None => "-".to_owned(),
    }
}

/// The jobs that took longer than was predicted.
pub(crate) struct Violations {
    /// All of them, by what their longest gap is named after.
    pub(crate) by_cause: Table,
    /// The first of each task, one by one.
    pub(crate) first: Table,
    /// How many more there are, and what is left out.
    pub(crate) more: Vec<String>,
}

/// None where no job took longer.
pub(crate) fn violations(of: &Prediction) -> Option<Violations> {
    let over = |task: &'_ &PredictedTask| task.measured.as_ref().is_some_and(|of| of.over > 0);
    let violated: Vec<&PredictedTask> = of.tasks.iter().filter(over).collect();
    if violated.is_empty() {
        return None;
    }
    let head = ["task", "jobs", "share", "longest gap"];
    let mut by_cause = Table::new("Jobs that took longer than R, by their longest gap", &head);
    by_cause.left = vec![3];
    let head = ["task", "job", "took", "over R", "gap", "longest gap"];
    let mut first = Table::new("The first of them, one by one", &head);
    first.left = vec![5];
    let mut more = Vec::new();
    for task in violated.iter().take(MOST_TASKS) {
        let Some(measured) = &task.measured else { continue };
        let name = Printable(&task.name).to_string();
        by_cause.rows.extend(measured.over_by.iter().map(|by| {
            let share = by.jobs as f64 / measured.over as f64;
            vec![name.clone(), count(by.jobs), percent(share), cause(&by.cause)]
        }));
        first.rows.extend(measured.over_first.iter().map(|job| first_row(&name, job)));
        let others = measured.over.saturating_sub(measured.over_first.len() as u64);
        if others > 0 {
            let jobs = if others == 1 { "job" } else { "jobs" };
            more.push(format!("task {name}: {} more {jobs} took longer than R", count(others)));
        }
    }
    let untold = violated.len().saturating_sub(MOST_TASKS);
    if untold > 0 {
        more.push(format!("{untold} more tasks had jobs that took longer than R, in run.json"));
    }
    Some(Violations { by_cause, first, more })
}

fn first_row(task: &str, of: &OverJob) -> Vec<String> {
    let (took, by) = match of.response {
        Some(response) => (response.to_string(), of.by.to_string()),
        None => ("never done".to_owned(), format!(">= {}", of.by)),
    };
    let (length, gap) = match &of.gap {
        Some(gap) => (gap.length.to_string(), named(gap)),
        None => ("-".to_owned(), cause(&OverCause::NoGap)),
    };
    vec![task.to_owned(), of.job.to_string(), took, by, length, gap]
}

fn named(of: &WorstJobGap) -> String {
    of.cause
        .as_ref()
        .map_or_else(|| cause(&OverCause::NotNamed), |cause| Printable(cause).to_string())
}

fn cause(of: &OverCause) -> String {
    match of {
        OverCause::Named { cause } => Printable(cause).to_string(),
        OverCause::NotNamed => "nobody looked why".to_owned(),
        OverCause::NoGap => "no gap of it is stored".to_owned(),
        OverCause::Others { causes: 1 } => "1 other cause".to_owned(),
        OverCause::Others { causes } => format!("{} other causes", count(*causes)),
    }
}
