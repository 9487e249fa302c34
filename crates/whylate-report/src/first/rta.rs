//! Do tasks take no longer than was predicted?

use whylate_model::prediction::{
    GIVEN, MachineCause, PredictedResponse, PredictedTask, Prediction,
};
use whylate_model::run::Run;
use whylate_model::{Nanos, Printable};

use super::by_task::{self, Counted};
use super::taken::UNKNOWN;
use super::{COMPARE, Screen, series, steps, threads};
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::prediction::{Exceeded, exceeded};
use crate::spans::{Sentence, Told, sentence};
use crate::threads::share;

/// Sets of more tasks show those first of which most jobs took longer.
const IN_ORDER: usize = 4;

/// What predicts with the overheads and the release jitter of this machine.
const MEASURED: (&str, &str) =
    ("--overhead measured --jitter measured", "predict with this machine's costs");

/// Is it a recording of tasks that were predicted?
pub(super) fn is_it(run: &Run) -> bool {
    run.prediction.is_some() && !run.threads.is_empty() && !run.is_merged()
}

pub(super) fn screen(run: &Run) -> Screen {
    let Some(of) = &run.prediction else { return Screen::default() };
    let counted: Vec<Counted> = of.tasks.iter().filter_map(counted).collect();
    let mut answer = vec![headline(run, of)];
    answer.extend(longer(of, &counted));
    let head = ["response time of task", "predicted", "deadline", "p50", "max", "above", "missed"];
    let mut table = Table::new("", &head);
    let mut tasks: Vec<&PredictedTask> = of.tasks.iter().collect();
    if tasks.len() > IN_ORDER {
        let over = |task: &PredictedTask| task.measured.as_ref().map_or(0, |of| of.over);
        tasks.sort_by_key(|task| std::cmp::Reverse(over(task)));
    }
    for task in tasks {
        table.row(row(run, task));
    }
    let why = by_task::table("jobs above predicted, by cause", &counted);
    let mut notes =
        vec!["Predicted: worst-case response time. Above: jobs that took longer.".to_owned()];
    notes.extend(most_lost(of));
    if of.overheads.is_none() {
        notes.push(
            "Overheads (switches, interrupts, wake-ups) are left out of the prediction.".to_owned(),
        );
    }
    let more = if has_measured_overheads(of) {
        vec![COMPARE.to_owned()]
    } else {
        steps::with(&run.command_line, &[MEASURED])
    };
    let tables = vec![table, why];
    Screen { answer, tables, notes, more, ..Screen::default() }
}

/// Overheads that somebody gave are those of no machine.
fn has_measured_overheads(of: &Prediction) -> bool {
    of.overheads.as_ref().is_some_and(|of| of.from != GIVEN)
}

/// The jobs of a task that took longer than was predicted, each by one cause; none in a run before jobs were
/// judged.
fn counted(task: &PredictedTask) -> Option<Counted> {
    let measured = task.measured.as_ref()?;
    let judged = measured.judged.as_ref()?;
    let mut counted = Counted::of(&called(&task.name));
    for of in &judged.machine_by {
        counted.add(cause(of.cause), of.jobs);
    }
    // A run before these were counted has none.
    let told = counted.sum();
    counted.add(UNKNOWN, judged.machine.saturating_sub(told));
    counted.add(VIOLATED, judged.violated);
    let known = judged.machine.saturating_add(judged.violated);
    counted.add(NOT_JUDGED, measured.over.saturating_sub(known));
    Some(counted)
}

/// Jobs that took longer than even what was lost lets them, and those of which that is not known.
const VIOLATED: &str = "not explained by lost time";
const NOT_JUDGED: &str = "not judged";

/// What took most of what the machine took, in the words of the field.
fn cause(of: MachineCause) -> &'static str {
    match of {
        MachineCause::LateWakeUp => "late wake-up",
        MachineCause::Interrupts => "interrupts",
        MachineCause::NoEvent => "no kernel event",
        MachineCause::Hypervisor => "hypervisor",
        MachineCause::OffCpu => "blocked or asleep",
        MachineCause::OtherThreads => "other tasks",
        MachineCause::Throttled => "throttling",
        MachineCause::Unknown => UNKNOWN,
    }
}

/// The job that lost most, with the largest part of that.
fn most_lost(of: &Prediction) -> Option<String> {
    let most = |task: &'_ PredictedTask| task.measured.as_ref()?.judged.as_ref()?.most.clone();
    let all = of.tasks.iter().filter_map(|task| Some((task, most(task)?)));
    let (task, job) = all.max_by_key(|(_, job)| job.machine.lost_ns)?;
    let [lost, part] = [job.machine.lost_ns, job.machine.cause_ns];
    let [lost, part] = [lost, part].map(|time| Cell::from(time).said());
    let part = job.machine.cause.map(|of| format!(", {part} of it to {}", cause(of)));
    let (name, number) = (called(&task.name), job.job);
    let name = Printable(&name);
    Some(format!("Job {number} of {name} lost the most: {lost}{}.", part.unwrap_or_default()))
}

fn headline(run: &Run, of: &Prediction) -> Sentence {
    let theory = match of.feasible {
        Some(true) => "In theory all deadlines are met",
        Some(false) => "In theory some deadlines are missed",
        None => "Theory does not decide whether deadlines are met",
    };
    let (missed, jobs) = threads::sums(run);
    let met = if jobs == 0 {
        "none was judged".into()
    } else if missed == 0 {
        sentence!["all ", Value::Count(jobs), " were met"]
    } else {
        sentence![threads::missed_of(missed, jobs), " were missed (", share(missed, jobs), ")"]
    };
    sentence![theory, "; in this run ", met, "."]
}

/// How far jobs took longer than was predicted; none where nothing bounds them. A prediction without overheads is
/// one that no job can keep to, and says nothing of how many do. What lost time does not account for comes first.
fn longer(of: &Prediction, counted: &[Counted]) -> Option<Sentence> {
    let Exceeded { jobs, over, violated, beyond } = exceeded(of);
    let main = main_cause(counted).map(|of| sentence!["; main cause: ", Told::of(of)]);
    match (jobs, over, beyond) {
        (0, ..) => None,
        (_, 0, _) => Some("No job took longer than was predicted.".into()),
        _ if violated > 0 => {
            let explains = " jobs took longer than lost time explains: check the task set.";
            Some(sentence![threads::missed_of(violated, jobs), explains])
        }
        (_, _, Some(beyond)) if of.overheads.is_none() => {
            let than = if main.is_some() { "predicted" } else { "a prediction without overheads" };
            Some(sentence!["Jobs took up to ", beyond, " longer than ", than, main, "."])
        }
        _ => {
            let longer =
                sentence![threads::missed_of(over, jobs), " jobs took longer than predicted"];
            Some(sentence![longer, main, "."])
        }
    }
}

/// A task without a name has a number, which says beside others of what it is.
fn called(name: &str) -> String {
    let is_number = !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit());
    if is_number { format!("task {name}") } else { name.to_owned() }
}

/// What took most of most jobs of all tasks; none where that is not known.
fn main_cause(counted: &[Counted]) -> Option<String> {
    let all = by_task::all(counted);
    let (cause, _) = all.main()?;
    let known = ![UNKNOWN, NOT_JUDGED].contains(&cause.as_str());
    known.then(|| cause.clone())
}

fn predicted(task: &PredictedTask) -> Option<Nanos> {
    match task.response {
        Some(PredictedResponse::Bounded { nominal, .. }) => Some(nominal),
        _ => None,
    }
}

fn row(run: &Run, task: &PredictedTask) -> [Cell; 7] {
    let response = match (predicted(task), &task.response) {
        (Some(bound), _) => bound.into(),
        (None, Some(PredictedResponse::Unbounded)) => "unbounded".into(),
        (None, _) => "unknown".into(),
    };
    let of_thread = usize::try_from(task.thread).ok().and_then(|at| run.threads.get(at));
    let deadlines = of_thread.and_then(|thread| thread.deadlines.as_ref());
    let name = of_thread.map_or(&task.name, |thread| &thread.name);
    let measured = series::named(run, &format!("response-{name}"));
    let missed =
        deadlines.map(|of| format!("{} of {}", count(of.misses), count(threads::judged(of))));
    [
        Cell::from(Printable(&task.name).to_string()),
        response,
        task.deadline.into(),
        measured.map_or(Value::Absent.into(), |of| series::at(of, 50.0)),
        measured.map_or(Value::Absent.into(), series::max),
        task.measured.as_ref().map(|of| Value::Count(of.over)).into(),
        missed.into(),
    ]
}
