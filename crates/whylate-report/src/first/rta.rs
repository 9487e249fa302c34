//! Do tasks take no longer than was predicted?

use whylate_model::prediction::{PredictedResponse, PredictedTask, Prediction};
use whylate_model::run::Run;
use whylate_model::{Nanos, Printable};

use super::{Screen, series, threads};
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};

/// Is it a recording of tasks that were predicted?
pub(super) fn is_it(run: &Run) -> bool {
    run.prediction.is_some() && !run.threads.is_empty() && !run.is_merged()
}

pub(super) fn screen(run: &Run) -> Screen {
    let Some(of) = &run.prediction else { return Screen::default() };
    let mut answer = vec![headline(run, of)];
    answer.extend(above(of));
    let head = ["response time of task", "predicted", "p50", "max", "above", "missed"];
    let mut table = Table::new("", &head);
    for task in &of.tasks {
        table.row(row(run, task));
    }
    let mut notes =
        vec!["Predicted: the longest response. Above: jobs that took longer than that.".to_owned()];
    if of.overheads.is_none() {
        notes.push(
            "Overheads (context switches, interrupts, wake-ups) are left out of the prediction."
                .to_owned(),
        );
    }
    let more = "whylate rta ... --run --overhead measured  predicts with them";
    Screen { answer, tables: vec![table], notes, more: vec![more.to_owned()], ..Screen::default() }
}

fn headline(run: &Run, of: &Prediction) -> String {
    let theory = match of.feasible {
        Some(true) => "In theory all deadlines are met",
        Some(false) => "In theory some deadlines are missed",
        None => "Theory does not decide whether deadlines are met",
    };
    let (missed, jobs) = threads::sums(run);
    let met = if jobs == 0 {
        "none was judged".to_owned()
    } else if missed == 0 {
        format!("all {} were met", count(jobs))
    } else {
        let share = Cell::from(Value::Share(missed as f64 / (jobs as f64).max(1.0)));
        format!("{} of {} were missed ({})", count(missed), count(jobs), share.in_table(None))
    };
    format!("{theory}; in this run {met}.")
}

/// How far jobs took longer than was predicted; none where nothing bounds them. A prediction without overheads is
/// one that no job can keep to, and says nothing of how many do.
fn above(of: &Prediction) -> Option<String> {
    let bounded =
        of.tasks.iter().filter_map(|task| Some((predicted(task)?, task.measured.as_ref()?)));
    let jobs: u64 = bounded
        .clone()
        .map(|(_, of)| of.jobs.saturating_add(of.never_done))
        .fold(0, u64::saturating_add);
    let over: u64 = bounded.clone().map(|(_, of)| of.over).fold(0, u64::saturating_add);
    let beyond = bounded.filter_map(|(bound, of)| of.max?.0.checked_sub(bound.0)).max();
    match (jobs, over, beyond) {
        (0, ..) => None,
        (_, 0, _) => Some("No job took longer than was predicted.".to_owned()),
        (_, _, Some(beyond)) if of.overheads.is_none() => {
            let beyond = Cell::from(Nanos(beyond)).said();
            Some(format!("Jobs took up to {beyond} longer than a prediction without overheads."))
        }
        _ => {
            Some(format!("{} of {} jobs took longer than was predicted.", count(over), count(jobs)))
        }
    }
}

fn predicted(task: &PredictedTask) -> Option<Nanos> {
    match task.response {
        Some(PredictedResponse::Bounded { nominal, .. }) => Some(nominal),
        _ => None,
    }
}

fn row(run: &Run, task: &PredictedTask) -> [Cell; 6] {
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
        measured.map_or(Value::Absent.into(), |of| series::at(of, 50.0)),
        measured.map_or(Value::Absent.into(), series::max),
        task.measured.as_ref().map(|of| Value::Count(of.over)).into(),
        missed.into(),
    ]
}
