//! Will these tasks meet their deadlines, by analysis?

use whylate_model::prediction::{
    DemandTest, PredictedPolicy, PredictedResponse, PredictedTask, Prediction,
};
use whylate_model::trust::{Level, Reason, Trust};
use whylate_model::{Nanos, Printable};

use super::trusted::upper;
use super::{Screen, steps};
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::prediction::{self, fits};
use crate::render::shorter;
use crate::spans::{Name, Sentence, sentence};

/// Letters of a task's name, so that its row fits.
const NAME: usize = 16;
/// Sets of more tasks show those first that have least to spare.
const IN_ORDER: usize = 8;

pub(super) fn screen(of: &Prediction) -> Screen {
    let mut screen = Screen {
        answer: vec![answer(of)],
        tables: vec![table(of)],
        notes: notes(of),
        change: fits::told(of, |time| Value::from(time).to_string(), name).map(|said| said + "."),
        whole: super::whole(|| prediction::document(of).sections),
        ..Screen::default()
    };
    let left_out = match &of.overheads {
        _ if of.feasible == Some(false) => None,
        None => Some("context switches, interrupts and the hypervisor are left out"),
        Some(_) => Some("interrupts other than the tick, and the hypervisor, are left out"),
    };
    let doubt = of.overheads.as_ref().and_then(|of| of.doubt.as_deref());
    let reason = |level, what: &str| Reason { level, what: what.to_owned() };
    let reasons = doubt.map(|what| reason(Level::Poor, what));
    let reasons = reasons.into_iter().chain(left_out.map(|what| reason(Level::Limited, what)));
    screen.trust = Some(Trust { reasons: reasons.collect() });
    if let (Some(what), None) = (left_out, &of.overheads) {
        let advice = "--overhead measured adds what this machine costs.";
        screen.advice.push((what.to_owned(), advice.to_owned()));
    }
    screen
}

/// What becomes of a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// The response grows without end.
    Unbounded,
    /// The response ends by so much before the deadline, in ns; behind it where that is negative.
    Spare(i64),
    Unknown,
}

impl Fate {
    fn of(task: &PredictedTask) -> Self {
        match (task.response, task.slack_ns) {
            (Some(PredictedResponse::Unbounded), _) => Self::Unbounded,
            (_, Some(slack)) => Self::Spare(slack),
            _ => Self::Unknown,
        }
    }

    fn is_missed(self) -> bool {
        matches!(self, Self::Unbounded | Self::Spare(..0))
    }
}

fn name(task: &PredictedTask) -> String {
    shorter(&Printable(&task.name).to_string(), NAME)
}

/// The same in a sentence.
fn short(task: &PredictedTask) -> Name {
    Name::cut(&task.name, NAME)
}

pub(super) fn answer(of: &Prediction) -> Sentence {
    let load = load(of.utilisation);
    if let Some(test) = of.admission.filter(|test| !test.admitted) {
        let [reserved, limit] = [test.reserved, test.limit].map(self::load);
        let takes = sentence!["they take ", reserved, " of a CPU, and it grants ", limit, "."];
        return sentence!["No: the kernel refuses these reservations: ", takes];
    }
    let missed = of.tasks.iter().filter(|task| Fate::of(task).is_missed());
    let worst = missed.clone().min_by_key(|task| Fate::of(task));
    let many = missed.count();
    if of.utilisation > 1.0 {
        let who = match (worst, many) {
            (Some(task), 1) => sentence![short(task), " cannot meet its deadline"],
            (Some(_), many) => {
                sentence![many, " of ", of.tasks.len(), " tasks cannot meet their deadlines"]
            }
            (None, _) => "deadlines will be missed".into(),
        };
        return sentence!["No: ", who, ". The tasks need ", load, " of the CPU."];
    }
    let load = sentence![" (CPU load ", load, ")."];
    match of.feasible {
        Some(true) => {
            let spare = of.tasks.iter().filter_map(|task| u64::try_from(task.slack_ns?).ok());
            let spare = spare.min().map(|ns| sentence![", ", Nanos(ns), " or more to spare"]);
            sentence!["Yes, in theory: all deadlines are met", spare, load]
        }
        Some(false) => sentence!["No: ", missing(of, worst, many), load],
        None => sentence!["Not known: the analysis ended at its limit", load],
    }
}

/// Which tasks of a set that the CPU has time for may be late, and by how much.
fn missing(of: &Prediction, worst: Option<&PredictedTask>, many: usize) -> Sentence {
    let Some(worst) = worst else { return "deadlines may be missed".into() };
    let by = match Fate::of(worst) {
        Fate::Spare(slack) => sentence![" by up to ", Nanos(slack.unsigned_abs())],
        _ => " without a bound".into(),
    };
    let name = short(worst);
    match many {
        1 => sentence![name, " may miss its deadline", by],
        many => {
            let all = of.tasks.len();
            sentence![many, " of ", all, " tasks may miss their deadlines, ", name, by]
        }
    }
}

/// A share of the CPU; what is more than all of it does not read as all.
pub(super) fn load(share: f64) -> Sentence {
    let load = Cell::from(Value::Share(share));
    let is_more = share > 1.0 && load.said() == "100%";
    sentence![if is_more { "just over " } else { "" }, load]
}

/// A column that is there where some task has a time in it.
type Optional = (&'static str, fn(&PredictedTask) -> Nanos);
const OPTIONAL: [Optional; 3] = [
    ("jitter", |task| task.jitter),
    ("delay", |task| task.delay),
    ("blocking", |task| task.blocking),
];

fn table(of: &Prediction) -> Table {
    let any = |(_, get): &Optional| of.tasks.iter().any(|task| get(task).0 > 0);
    let optional: Vec<Optional> = OPTIONAL.into_iter().filter(any).collect();
    let by_priority = of.tasks.iter().any(|task| task.priority.is_some());
    let simulated = of.tasks.iter().any(|task| task.simulated.is_some());
    let mut head = vec!["task"];
    head.extend(by_priority.then_some("priority"));
    head.extend(["execution", "period", "deadline"]);
    head.extend(optional.iter().map(|(name, _)| *name));
    let has_room = optional.is_empty() && !simulated;
    head.extend([if has_room { "worst response" } else { "response" }, "slack"]);
    head.extend(simulated.then_some("simulated"));
    let mut table = Table::new("", &head);
    let mut tasks: Vec<&PredictedTask> = of.tasks.iter().collect();
    if tasks.len() > IN_ORDER {
        tasks.sort_by_key(|task| Fate::of(task));
    }
    for task in tasks {
        let mut row = vec![Cell::from(name(task))];
        if by_priority {
            row.push(task.priority.map(|of| Value::Count(of.into())).into());
        }
        row.extend([task.execution, task.period, task.deadline].map(Cell::from));
        row.extend(optional.iter().map(|(_, get)| Cell::from(get(task))));
        row.push(match task.response {
            Some(PredictedResponse::Bounded { nominal, .. }) => nominal.into(),
            Some(PredictedResponse::Unbounded) => "unbounded".into(),
            Some(PredictedResponse::Undecided) => "not found".into(),
            None => Value::Absent.into(),
        });
        row.push(task.slack_ns.map(|ns| Value::Time(ns as f64)).into());
        if simulated {
            row.push(task.simulated.into());
        }
        table.row(row);
    }
    table
}

fn notes(of: &Prediction) -> Vec<String> {
    let by = match (of.policy, of.demand, of.admission) {
        (PredictedPolicy::FixedPriority, ..) => match &of.assignment {
            Some(by) => format!("Priorities: {}.", Printable(by)),
            None => "Priorities: as stated.".to_owned(),
        },
        (PredictedPolicy::EarliestDeadline, Some(DemandTest::Infeasible { window, demand }), _) => {
            let [window, demand] = [window, demand].map(|time| Value::from(time).to_string());
            format!("Earliest deadline first: within {window} deadlines need {demand} of the CPU.")
        }
        (PredictedPolicy::EarliestDeadline, ..) => "Policy: earliest deadline first.".to_owned(),
        (PredictedPolicy::Reservations, _, Some(test)) if test.admitted => {
            let [reserved, limit] = [test.reserved, test.limit].map(|of| load(of).said());
            format!("Policy: reservations ({reserved} of {limit} that the kernel grants).")
        }
        (PredictedPolicy::Reservations, ..) => "Policy: reservations.".to_owned(),
    };
    let mut notes = vec![format!("{by} Response times count from a job's release.")];
    notes.extend(of.simulation.as_ref().map(|simulation| {
        let patterns = count(simulation.patterns);
        let missed = of.tasks.iter().map(|task| task.simulated_misses);
        let missed = count(missed.fold(0, u64::saturating_add));
        format!("Simulated: {patterns} patterns of releases, {missed} deadlines missed.")
    }));
    // The first says that they need more than the CPU, as the answer does.
    let others = of.notes.iter().skip(usize::from(of.utilisation > 1.0));
    notes.extend(others.map(|note| format!("{}.", upper(&Printable(note).to_string()))));
    notes
}

/// What the same command tells with one option more.
pub(super) fn steps(of: &Prediction, command_line: &[String]) -> Vec<String> {
    let next = match of.policy {
        _ if of.admission.is_some_and(|test| !test.admitted) => None,
        PredictedPolicy::EarliestDeadline if of.simulation.is_some() => None,
        PredictedPolicy::EarliestDeadline => Some(("--simulate", "checks the bound by simulation")),
        _ => Some(("--run", "runs the tasks and compares")),
    };
    let full = ("--full", "has all bounds and assumptions");
    let check = ("--check", "exits with 3 unless all are met");
    let all: Vec<_> = [Some(full), next, Some(check)].into_iter().flatten().collect();
    steps::with(command_line, &all)
}
