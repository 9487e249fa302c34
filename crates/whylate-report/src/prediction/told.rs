//! What is said of a set that was run, for a terminal and for a page: the same cells and sentences.

use whylate_model::Nanos;
use whylate_model::prediction::{
    AboveJob, Comparison, JudgedJobs, MachineTime, MeasuredTask, OverCause, OverJob, PredictedTask,
    Prediction, WorstJobGap,
};

use crate::doc::Table;
use crate::numbers::{ABSENT, Value, count, percent};

/// Tasks with a row each; the others are in run.json.
const MOST_ROWS: usize = 256;
/// Tasks whose slow jobs are told.
const MOST_TASKS: usize = 16;

/// What the columns of the table of measured tasks mean.
const JUDGED: &str = "measured: the longest response, from the nominal release. within: jobs that took R or \
                      less; machine: jobs above R, but not above the R that adds L to their blocking, where \
                      L is what the machine took of their busy period; exceeded: jobs above even that, so \
                      that the theory, the task set or the measurement is wrong; not judged: jobs never \
                      done, or near a lost record.";
/// The same for a run before its jobs were judged one by one.
const COMPARED: &str = "measured: the longest response, from the nominal release. consistent: no job took \
                        longer than R; pessimistic: none came near it; above R: some were longer; not \
                        known: none of those that were done, and others never were.";
/// What those of the tables of slow jobs mean.
pub(super) const LONGEST_GAPS: &str = "Each job that took longer than R is counted under the stall that took most of \
                                       its time from its release to its end, or to its deadline where it was never \
                                       done.";

/// What the columns of [`beside_measured`] mean.
pub(super) fn how_beside(of: &Prediction) -> &'static str {
    if of.tasks.iter().any(|task| judged(task).is_some()) { JUDGED } else { COMPARED }
}

fn judged(task: &PredictedTask) -> Option<&JudgedJobs> {
    task.measured.as_ref()?.judged.as_ref()
}

/// How many jobs of all tasks took longer than was predicted, and how much longer.
pub(crate) struct Exceeded {
    /// Jobs that are bounded, with those that were never done.
    pub(crate) jobs: u64,
    pub(crate) over: u64,
    /// Those of which lost time does not account for it.
    pub(crate) violated: u64,
    /// How much longer the worst of them took; none where none that was done took longer.
    pub(crate) beyond: Option<Nanos>,
}

/// Jobs of all tasks above their bounds.
pub(crate) fn exceeded(of: &Prediction) -> Exceeded {
    let bounded = of.tasks.iter().filter_map(|task| {
        task.measured.as_ref().and_then(|measured| Some((task.nominal()?, measured)))
    });
    let sum = |what: fn(&MeasuredTask) -> u64| {
        bounded.clone().map(|(_, of)| what(of)).fold(0, u64::saturating_add)
    };
    Exceeded {
        jobs: sum(|of| of.jobs.saturating_add(of.never_done)),
        over: sum(|of| of.over),
        violated: of
            .tasks
            .iter()
            .filter_map(judged)
            .fold(0, |sum, of| sum.saturating_add(of.violated)),
        beyond: bounded.filter_map(|(bound, of)| of.max?.0.checked_sub(bound.0)).max().map(Nanos),
    }
}

/// The same in words; none where no job took longer.
pub(super) fn told_exceeded(of: &Prediction) -> Option<String> {
    let Exceeded { jobs, over, violated, beyond } = exceeded(of);
    let beyond = beyond.map_or_else(String::new, |by| format!(", by up to {by}"));
    let judged = of.tasks.iter().any(|task| judged(task).is_some());
    let violated = if judged { format!("; {} exceeded", count(violated)) } else { String::new() };
    (over > 0).then(|| {
        format!("{} of {} jobs took longer than R{beyond}{violated}", count(over), count(jobs))
    })
}

/// What was simulated and measured beside the bound of each task.
pub(super) fn beside_measured(of: &Prediction) -> Table {
    let shown = &of.tasks[..of.tasks.len().min(MOST_ROWS)];
    let simulated = shown.iter().any(|task| task.simulated.is_some());
    let measured = shown.iter().any(|task| task.measured.is_some());
    let bounded = shown.iter().any(|task| task.nominal().is_some());
    let one_by_one = shown.iter().any(|task| judged(task).is_some());
    let unjudged = shown.iter().filter_map(judged).any(|of| of.not_judged > 0);
    let mut head = vec!["task"];
    head.extend(bounded.then_some("R"));
    head.extend(simulated.then_some("simulated"));
    let mut left = Vec::new();
    if measured {
        head.push("measured");
        if one_by_one {
            head.extend(["within", "machine", "exceeded"]);
            head.extend(unjudged.then_some("not judged"));
        } else {
            head.extend(["jobs", "over R", "verdict"]);
            left.push(head.len() - 1);
        }
    }
    let time = |time: Option<Nanos>| Value::from(time).to_string();
    let row = |task: &PredictedTask| {
        let mut row = vec![task.name.clone()];
        if bounded {
            row.push(time(task.nominal()));
        }
        if simulated {
            row.push(time(task.simulated));
        }
        if let Some(of) = &task.measured {
            row.push(time(of.max));
            match &of.judged {
                Some(of) => row.extend([of.within, of.machine, of.violated].map(count)),
                None if !one_by_one => {
                    row.extend([count(of.jobs), count(of.over), verdict(task, of)]);
                }
                None => {}
            }
            row.extend(of.judged.as_ref().filter(|_| unjudged).map(|of| count(of.not_judged)));
        }
        row.resize(head.len(), ABSENT.to_owned());
        row
    };
    Table::new("The largest response of each task", &head).words(&left).with(shown.iter().map(row))
}

/// Of a run before its jobs were judged one by one.
fn verdict(task: &PredictedTask, of: &MeasuredTask) -> String {
    match of.comparison {
        Some(Comparison::Consistent) => "consistent".to_owned(),
        Some(Comparison::Pessimistic { by }) => format!("pessimistic by {}", Value::from(by)),
        Some(Comparison::Violated { by }) => format!("above R by {}", Value::from(by)),
        None if task.nominal().is_some() && of.never_done > 0 => {
            format!("not known: {} never done", count(of.never_done))
        }
        None => ABSENT.to_owned(),
    }
}

/// Of each task, by how much its bound is pessimistic, or how many jobs the machine accounts for, the one that it
/// took most from and the first that it does not account for.
pub(super) fn told_jobs(of: &Prediction) -> Vec<String> {
    let mut said = Vec::new();
    for task in of.tasks.iter().take(MOST_TASKS) {
        let Some(judged) = judged(task) else { continue };
        let name = &task.name;
        if let Some(by) = judged.pessimistic_by_ns {
            said.push(format!("task {name}: all jobs are within R, which is pessimistic by {by}"));
        }
        let counted = judged.machine_by.iter().map(|of| format!("{} {}", of.cause, count(of.jobs)));
        let counted: Vec<String> = counted.collect();
        if !counted.is_empty() {
            let counted = counted.join(", ");
            said.push(format!("task {name}: jobs that the machine accounts for: {counted}"));
        }
        if let Some(most) = &judged.most {
            let (job, machine) = (most.job, taken(&most.machine));
            let took = Value::from(most.response_ns);
            said.push(format!(
                "task {name}: the machine took most of job {job}, which took {took}: {machine}"
            ));
        }
        said.extend(judged.violated_first.iter().map(|of| {
            let AboveJob { job, response_ns, bound_ns, machine, .. } = of;
            let bound = bound_ns.map_or_else(String::new, |bound| format!(" of {}", Value::from(bound)));
            let (machine, took) = (taken(machine), Value::from(*response_ns));
            format!("task {name}: job {job} took {took}, above even the R{bound} with {machine}: exceeded")
        }));
        let more = judged.violated.saturating_sub(judged.violated_first.len() as u64);
        if more > 0 {
            said.push(format!("task {name}: {} more exceeded, in run.json", count(more)));
        }
    }
    said
}

fn taken(of: &MachineTime) -> String {
    let most = of.cause.map(|cause| format!(", of which {cause} {}", Value::from(of.cause_ns)));
    format!("L = {}{}", Value::from(of.lost_ns), most.unwrap_or_default())
}

/// The jobs that took longer than was predicted.
pub(super) struct Violations {
    /// All of them, by what their longest gap is named after.
    pub(super) by_cause: Table,
    /// The first of each task, one by one.
    pub(super) first: Table,
    /// How many more there are, and what is left out.
    pub(super) more: Vec<String>,
}

/// None where no job took longer.
pub(super) fn violations(of: &Prediction) -> Option<Violations> {
    let over = |task: &'_ &PredictedTask| task.measured.as_ref().is_some_and(|of| of.over > 0);
    let violated: Vec<&PredictedTask> = of.tasks.iter().filter(over).collect();
    if violated.is_empty() {
        return None;
    }
    let head = ["task", "jobs", "share", "longest stall"];
    let caption = "Jobs that took longer than R, by their longest stall";
    let mut by_cause = Table::new(caption, &head).words(&[3]);
    let judged = violated.iter().any(|task| judged(task).is_some());
    let (own, verdict): (&[_], &[_]) = if judged { (&["L"], &["judged"]) } else { (&[], &[]) };
    let head =
        [&["task", "job", "took", "over R"], own, verdict, &["stall", "longest stall"]].concat();
    let mut first = Table::new("The first of them, one by one", &head).words(&[head.len() - 1]);
    if judged {
        first = first.words(&[5]);
    }
    let mut more = Vec::new();
    for task in violated.iter().take(MOST_TASKS) {
        let Some(measured) = &task.measured else { continue };
        let name = task.name.clone();
        by_cause = by_cause.with(measured.over_by.iter().map(|by| {
            let share = by.jobs as f64 / measured.over as f64;
            [name.clone(), count(by.jobs), percent(share), cause(&by.cause)]
        }));
        first = first.with(measured.over_first.iter().map(|job| first_row(&name, job, judged)));
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

fn first_row(task: &str, of: &OverJob, judged: bool) -> Vec<String> {
    let (took, by) = match of.response {
        Some(response) => (Value::from(response).to_string(), Value::from(of.by).to_string()),
        None => ("never done".to_owned(), Value::AtLeast(of.by.0 as f64).to_string()),
    };
    let mut row = vec![task.to_owned(), of.job.to_string(), took, by];
    if judged {
        let lost = of.judged.as_ref().and_then(|of| of.machine()).map(|machine| machine.lost_ns);
        row.push(Value::from(lost).to_string());
        row.push(of.judged.map_or(ABSENT.to_owned(), |of| of.to_string()));
    }
    row.extend(match &of.gap {
        Some(gap) => [Value::from(gap.length).to_string(), named(gap)],
        None => [ABSENT.to_owned(), cause(&OverCause::NoGap)],
    });
    row
}

fn named(of: &WorstJobGap) -> String {
    of.cause.clone().unwrap_or_else(|| cause(&OverCause::NotNamed))
}

fn cause(of: &OverCause) -> String {
    match of {
        OverCause::Named { cause } => cause.clone(),
        OverCause::NotNamed => "nobody looked why".to_owned(),
        OverCause::NoGap => "no stall of it is stored".to_owned(),
        OverCause::Others { causes: 1 } => "1 other cause".to_owned(),
        OverCause::Others { causes } => format!("{} other causes", count(*causes)),
    }
}
