//! The section of a set that was predicted: bounds, what was simulated and measured beside them, and the gap
//! behind each job that took longer.

use whylate_model::Nanos;
use whylate_model::prediction::{
    DemandTest, PredictedPolicy, PredictedResponse, PredictedTask, Prediction, WorstJob,
};
use whylate_model::run::Run;

use super::told::{
    LONGEST_GAPS, Violations, beside_measured, how_beside, told_exceeded, told_jobs, violations,
};
use crate::doc::{Block, Document, Section, Table};
use crate::first;
use crate::numbers::{ABSENT, Value, count, percent, time};

/// Tasks with a row each; the others are in the JSON.
const MOST_ROWS: usize = 256;
/// Slow jobs that are told one by one.
const MOST_JOBS: usize = 16;

/// What the columns of the first table mean.
const PREDICTED: &str = "C: the longest execution time of a job; T: period; D: deadline; R: the longest \
                         response, from the nominal release and from the actual arrival; slack: D \
                         less R.";

/// The section; none for a run that was not predicted.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let first = run.prediction.as_ref()?;
    let mut blocks = blocks(first);
    if let Some(again) = &first.with_measured_jitter {
        blocks.extend(jitter(first));
        let heading = "Predicted again with the release jitter that was measured";
        blocks.push(Block::Heading(heading.to_owned()));
        blocks.extend(self::blocks(again));
    }
    Some(Section::new("predicted", TITLE, blocks).headed())
}

/// A prediction without a run.
pub(crate) fn document(of: &Prediction) -> Document {
    let title = match of.tasks.len() {
        1 => "Response-time analysis of 1 task on one CPU".to_owned(),
        more => format!("Response-time analysis of {more} tasks on one CPU"),
    };
    Document::new(title).naming(of).about(TITLE, blocks(of))
}

/// The title of the section.
const TITLE: &str = "Predicted response times";

/// A prediction, and what was simulated and measured beside it.
fn blocks(of: &Prediction) -> Vec<Block> {
    let by = match of.policy {
        PredictedPolicy::FixedPriority => "with fixed priorities",
        PredictedPolicy::EarliestDeadline => "under earliest deadline first",
        PredictedPolicy::Reservations => "inside their reservations",
    };
    let load = first::load_of_cpu(of.utilisation);
    let mut blocks = vec![
        Block::Text(first::of_prediction(of)),
        Block::Text(format!("Analysed {by}; the tasks need {load} of the CPU.")),
    ];
    blocks.extend(predicted(of));
    blocks.extend(Block::items(particulars(of)));
    let doubt = of.overheads.as_ref().and_then(|of| of.doubt.clone());
    blocks.extend(of.notes.iter().cloned().chain(doubt).map(Block::Note));
    if of.tasks.iter().any(|task| task.simulated.is_some() || task.measured.is_some()) {
        let measured = of.tasks.iter().any(|task| task.measured.is_some());
        blocks.push(Block::Heading(
            if measured { "Predicted beside measured" } else { "Predicted beside simulated" }
                .to_owned(),
        ));
        blocks.extend(beside(of));
        blocks.extend(longest_gaps(of));
    }
    blocks
}

/// A column that is there only where some task has it.
type Get = fn(&PredictedTask) -> Nanos;

/// The bounds, and how to read them.
fn predicted(of: &Prediction) -> Vec<Block> {
    let shown = &of.tasks[..of.tasks.len().min(MOST_ROWS)];
    let any = |get: Get| shown.iter().any(|task| get(task).0 > 0);
    let optional: [(&str, Get); 3] = [
        ("jitter", |task| task.jitter),
        ("delay", |task| task.delay),
        ("blocking", |task| task.blocking),
    ];
    let optional: Vec<_> = optional.into_iter().filter(|(_, get)| any(*get)).collect();
    let by_priority = shown.iter().any(|task| task.priority.is_some());
    let each = shown.iter().any(|task| task.response.is_some());
    let mut head = vec!["task"];
    head.extend(by_priority.then_some("priority"));
    head.extend(["C", "T", "D"]);
    head.extend(optional.iter().map(|(name, _)| *name));
    if each {
        head.extend(["R nominal", "R actual", "slack"]);
    }
    let row = |task: &PredictedTask| {
        let mut row = vec![task.name.clone()];
        if by_priority {
            row.push(task.priority.map_or(ABSENT.to_owned(), |priority| priority.to_string()));
        }
        row.extend(
            [task.execution, task.period, task.deadline].map(|time| Value::from(time).to_string()),
        );
        row.extend(optional.iter().map(|(_, get)| Value::from(get(task)).to_string()));
        if each {
            row.extend(response(task));
        }
        row
    };
    let mut table = Table::new("", &head).most(MOST_ROWS);
    for task in &of.tasks {
        table.row(row(task));
    }
    let how = each.then(|| Block::How(PREDICTED.to_owned()));
    [Block::Table(table)].into_iter().chain(how).collect()
}

fn response(task: &PredictedTask) -> [String; 3] {
    let same = |text: &str| [text.to_owned(), text.to_owned(), ABSENT.to_owned()];
    match task.response {
        Some(PredictedResponse::Bounded { nominal, actual }) => {
            let slack = task.slack_ns.map_or(ABSENT.to_owned(), |ns| time(ns as f64));
            [Value::from(nominal).to_string(), Value::from(actual).to_string(), slack]
        }
        Some(PredictedResponse::Unbounded) => same("unbounded"),
        Some(PredictedResponse::Undecided) => same("not found"),
        None => same(ABSENT),
    }
}

/// What there is to say of the whole set.
fn particulars(of: &Prediction) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(super::fits::told(of, |time| time.to_string(), |task| task.name.clone()));
    said.extend(of.assignment.as_ref().map(|by| format!("priorities: {by}")));
    said.extend(of.overheads.as_ref().map(|costs| {
        let tick = match (costs.tick, costs.tick_period) {
            (Some(cost), Some(period)) => format!(", a tick of {cost} each {period}"),
            _ => String::new(),
        };
        let from = &costs.from;
        format!("overheads: two switches of {} for each job{tick}; {from}", costs.switch)
    }));
    said.extend(of.demand.map(|test| match test {
        DemandTest::Feasible { busy, deadlines } => {
            let deadlines = count(deadlines);
            format!(
                "demand never exceeds the time: {deadlines} deadlines in a busy period of {busy}"
            )
        }
        DemandTest::Infeasible { window, demand } => {
            format!("in a window of {window} deadlines demand {demand}")
        }
        DemandTest::Overloaded => "demand exceeds the CPU in the long run".to_owned(),
        DemandTest::Undecided => "the demand test ended at its limit".to_owned(),
    }));
    said.extend(of.admission.map(|test| {
        let (reserved, limit) = (percent(test.reserved), percent(test.limit));
        let is = if test.admitted { "admitted" } else { "NOT admitted" };
        format!("reserved {reserved} of a limit of {limit}: {is}")
    }));
    said.extend(of.simulation.as_ref().map(|of| {
        let cut = if of.cut { "; it was ended by its limit" } else { "" };
        let (patterns, events) = (count(of.patterns), count(of.events));
        let s = if of.patterns == 1 { "" } else { "s" };
        let seed = of.seed;
        format!("simulated: {patterns} pattern{s} of releases, {events} events, seed {seed}{cut}")
    }));
    said
}

/// What was simulated and measured, and the slowest jobs.
fn beside(of: &Prediction) -> Vec<Block> {
    let mut blocks = vec![Block::Table(beside_measured(of).most(MOST_ROWS))];
    if of.tasks.iter().any(|task| task.measured.is_some()) {
        blocks.push(Block::How(how_beside(of).to_owned()));
    }
    let worst = |task: &'_ PredictedTask| {
        let job = task.measured.as_ref()?.worst.as_ref()?;
        Some(slowest(&task.name, job))
    };
    let never = |task: &'_ PredictedTask| {
        let never = task.measured.as_ref()?.never_done;
        let (name, n) = (&task.name, count(never));
        (never > 0)
            .then(|| format!("task {name}: jobs not done though their deadline was over: {n}"))
    };
    let slow = of.tasks.iter().filter_map(worst).take(MOST_JOBS);
    let never = of.tasks.iter().take(MOST_JOBS).filter_map(never);
    let told = told_exceeded(of).into_iter().chain(told_jobs(of));
    blocks.extend(Block::items(told.chain(slow).chain(never).collect()));
    blocks
}

/// The gap behind each job that took longer than was predicted.
fn longest_gaps(of: &Prediction) -> Vec<Block> {
    let Some(Violations { by_cause, first, more }) = violations(of) else { return Vec::new() };
    let tables = [by_cause, first].map(|table| table.most(MOST_ROWS));
    let mut blocks: Vec<Block> = tables.into_iter().map(Block::Table).collect();
    blocks.extend(Block::items(more));
    blocks.push(Block::How(LONGEST_GAPS.to_owned()));
    blocks
}

fn slowest(task: &str, of: &WorstJob) -> String {
    let gap = match &of.gap {
        Some(gap) => {
            let cause = gap.cause.as_deref().unwrap_or("nobody looked why");
            format!("; its longest stall took {}: {}", gap.length, cause)
        }
        None => "; no stall of it is stored".to_owned(),
    };
    format!(
        "task {}: job {} took {}; it lost {}{gap}",
        task,
        of.job,
        of.response,
        crate::threads::taken(&of.taken)
    )
}

/// How late releases were.
fn jitter(of: &Prediction) -> [Block; 2] {
    let head = ["task", "releases", "least late", "p99.9", "jitter"];
    let mut table = Table::new("Release jitter", &head).most(MOST_ROWS);
    for task in &of.tasks {
        let Some(of) = task.measured.as_ref().and_then(|of| of.releases) else { continue };
        table.row([
            task.name.as_str().into(),
            Value::Count(of.n),
            of.least.into(),
            of.p999.into(),
            of.jitter.into(),
        ]);
    }
    Block::explained(
        table,
        "How late each job arrived after its nominal release; p99.9 and jitter, the largest, count from \
         the least.",
    )
}

#[cfg(test)]
mod tests;
