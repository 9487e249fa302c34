//! One prediction from all there is: overheads added, analysis, simulation, feasibility and slack.
//!
//! Times without overheads stay in the rows that a reader sees; what is computed includes them.

use whylate_model::prediction::{
    Admission, PredictedOverheads, PredictedPolicy, PredictedResponse, PredictedTask, Prediction,
    ScheduleSlot, Simulation,
};
use whylate_model::{Nanos, percent_of};

use crate::analysis::assign::Assignment;
use crate::analysis::of_set::{OfSet, Policy};
use crate::analysis::{
    AnalysisError, Overheads, Releases, Response, Task, cbs, edf, fixed_priority, utilisation,
};
use crate::simulate::{
    Patterns, Scheduling, Simulated, Slot, simulate_interrupted, simulate_reserved,
};

mod fits;

/// Stretches of the simulated schedule that are stored: some pages of a figure.
const MOST_SLOTS: usize = 512;
/// Ways for each task to be moved so that deadlines meet: those of periods in proportion are fewer.
const MOST_ALIGNED: u64 = 256;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The tasks.
    pub tasks: &'a OfSet,
    /// How the CPU is given away.
    pub policy: Policy,
    /// How priorities were given out, and how that is told; none: as the set says.
    pub assignment: Option<(Assignment, &'a str)>,
    /// What the operating system takes, and where that comes from.
    pub overheads: Option<(Overheads, &'a str)>,
    /// By how much all releases of each task are late; empty for none.
    pub delays: &'a [Nanos],
    /// Random patterns to simulate beside the worst one, and their seed; none: no simulation.
    pub simulation: Option<(u64, u64)>,
    /// What is given away as reservations.
    pub limit: cbs::Limit,
}

/// Predicts.
pub fn predict(asked: &Asked<'_>) -> Result<Prediction, AnalysisError> {
    let tasks = &asked.tasks.tasks;
    let (overheads, _) = asked.overheads.unwrap_or_default();
    let loaded = overheads.added_to(tasks)?;
    let ticks: Vec<Task> = loaded.tick.iter().cloned().collect();
    let all: Vec<Task> = loaded.tasks.iter().chain(&ticks).cloned().collect();
    let mut charged = Vec::new();
    let mut prediction = Prediction {
        policy: policy(asked.policy),
        assignment: asked.assignment.map(|(_, told)| told.to_owned()),
        overheads: asked.overheads.map(|(overheads, from)| taken(overheads, from)),
        utilisation: utilisation(&all),
        feasible: None,
        tasks: tasks.iter().zip(&asked.tasks.threads).map(|(t, n)| row(t, *n, asked)).collect(),
        fits: None,
        demand: None,
        admission: None,
        simulation: None,
        notes: notes(asked.tasks, utilisation(&all)),
        with_measured_jitter: None,
    };
    for (task, delay) in prediction.tasks.iter_mut().zip(asked.delays) {
        task.delay = *delay;
    }
    match asked.policy {
        Policy::FixedPriority => {
            respond(&mut prediction, &fixed_priority::analyse(&all)?);
            if prediction.feasible == Some(false) {
                prediction.fits = fits::one_task(asked);
            }
        }
        Policy::EarliestDeadline => {
            let verdict = edf::analyse(&loaded.tasks, &ticks)?;
            respond(&mut prediction, &edf::respond(&loaded.tasks, &ticks)?);
            // Where one of the two gave up, the other may know.
            prediction.feasible = match verdict.is_feasible() {
                Some(false) => Some(false),
                by_demand => prediction.feasible.or(by_demand),
            };
            prediction.demand = Some(verdict);
        }
        Policy::Reservations => {
            charged = charge(&loaded.tasks, &overheads)?;
            reserve(&mut prediction, &charged, asked.limit)?;
        }
    }
    if let Some((random, seed)) = asked.simulation {
        let patterns = Patterns { random, seed, aligned: MOST_ALIGNED };
        let among = |scheduling| simulate_interrupted(&loaded.tasks, &ticks, scheduling, patterns);
        let refused = prediction.admission.is_some_and(|test| !test.admitted);
        let found = match asked.policy {
            Policy::FixedPriority => Some(among(Scheduling::FixedPriority)?),
            Policy::EarliestDeadline => Some(among(Scheduling::EarliestDeadline)?),
            Policy::Reservations if refused => None,
            Policy::Reservations => Some(simulate_reserved(&charged, patterns)?),
        };
        if let Some(found) = found {
            simulated(&mut prediction, found, seed);
        }
    }
    Ok(prediction)
}

/// The response of one task when so much more is taken from it as the tasks are said to take: by blocking
/// under fixed priorities, as work of its own inside a reservation. None where that is not answered.
#[must_use]
pub fn response_with_lost(
    asked: &Asked<'_>,
    task: usize,
    lost: Nanos,
) -> Option<PredictedResponse> {
    let (overheads, _) = asked.overheads.unwrap_or_default();
    let loaded = overheads.added_to(&asked.tasks.tasks).ok()?;
    let mut own = loaded.tasks.get(task)?.clone();
    let delay = asked.delays.get(task).copied().unwrap_or_default();
    let found = match asked.policy {
        Policy::FixedPriority => {
            own.blocking = Nanos(own.blocking.0.checked_add(lost.0)?);
            let others = loaded
                .tasks
                .iter()
                .enumerate()
                .filter(|(index, other)| *index != task && other.priority >= own.priority);
            let others = others.map(|(_, other)| other).chain(&loaded.tick).cloned();
            let level: Vec<Task> = std::iter::once(own.clone()).chain(others).collect();
            fixed_priority::analyse(&level)
        }
        Policy::Reservations => {
            own.execution = Nanos(own.execution.0.checked_add(lost.0)?);
            with_ticks(&own, &overheads).and_then(|own| cbs::analyse(&[own]))
        }
        Policy::EarliestDeadline => return None,
    };
    Some(stored(found.ok()?.first()?, delay))
}

fn policy(policy: Policy) -> PredictedPolicy {
    match policy {
        Policy::FixedPriority => PredictedPolicy::FixedPriority,
        Policy::EarliestDeadline => PredictedPolicy::EarliestDeadline,
        Policy::Reservations => PredictedPolicy::Reservations,
    }
}

fn taken(overheads: Overheads, from: &str) -> PredictedOverheads {
    PredictedOverheads {
        switch: overheads.switch,
        tick: overheads.tick.map(|(cost, _)| cost),
        tick_period: overheads.tick.map(|(_, period)| period),
        from: from.to_owned(),
        doubt: None,
    }
}

fn row(task: &Task, thread: usize, asked: &Asked<'_>) -> PredictedTask {
    let by_priority = asked.policy == Policy::FixedPriority;
    PredictedTask {
        name: task.name.clone(),
        thread: thread as u32,
        priority: by_priority.then_some(task.priority),
        execution: task.execution,
        period: task.period,
        deadline: task.deadline,
        jitter: task.jitter,
        delay: Nanos(0),
        blocking: task.blocking,
        response: None,
        slack_ns: None,
        simulated: None,
        simulated_misses: 0,
        measured: None,
    }
}

fn notes(of_set: &OfSet, load: f64) -> Vec<String> {
    let mut notes = Vec::new();
    if load > 1.0 {
        notes.push(format!(
            "the tasks need {} of the CPU: the task of the lowest priority never catches up",
            percent_of(load, 1)
        ));
    }
    if !of_set.cut.is_empty() {
        notes.push(format!(
            "the execution time of {} is taken where its distribution is cut; what it stands for \
             may be longer",
            listed(&of_set.cut)
        ));
    }
    if !of_set.left_out.is_empty() {
        notes.push(format!(
            "left out, for without a real-time priority it runs when no task wants to: {}",
            listed(&of_set.left_out)
        ));
    }
    if of_set.tasks.iter().any(|task| task.releases == Releases::AfterTheLast) {
        notes.push(
            "a task that never blocks asks for no share of its own: it takes what is left"
                .to_owned(),
        );
    }
    let longer = |task: &&Task| task.jitter > task.period;
    if let Some(task) = of_set.tasks.iter().find(longer) {
        notes.push(format!(
            "the jitter of {} is longer than its period: jobs come several at once",
            task.name
        ));
    }
    notes
}

/// Names of threads, of which a line has room for some.
fn listed(names: &[String]) -> String {
    /// Names in one line.
    const MOST: usize = 8;
    let shown = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A response of releases that are all late by so much.
fn stored(of: &Response, delay: Nanos) -> PredictedResponse {
    match of {
        Response::Bounded(bound) => PredictedResponse::Bounded {
            nominal: Nanos(bound.nominal.0.saturating_add(delay.0)),
            actual: bound.actual,
        },
        Response::Unbounded => PredictedResponse::Unbounded,
        Response::Undecided(_) => PredictedResponse::Undecided,
    }
}

/// Takes the responses of the tasks; what follows them is the tick's.
fn respond(prediction: &mut Prediction, responses: &[Response]) {
    let mut feasible = Some(true);
    for (task, response) in prediction.tasks.iter_mut().zip(responses) {
        let delay = task.delay.0;
        task.response = Some(stored(response, task.delay));
        task.slack_ns = response.bound().map(|bound| {
            let slack = bound.slack_ns(task.deadline) - i128::from(delay);
            i64::try_from(slack).unwrap_or(if slack < 0 { i64::MIN } else { i64::MAX })
        });
        let meets = match task.slack_ns {
            Some(slack) => Some(slack >= 0),
            None => response.meets(task.deadline),
        };
        feasible = match (feasible, meets) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), meets) => meets,
            (None, _) => None,
        };
    }
    prediction.feasible = feasible;
}

/// Tasks whose reservations are charged for the ticks that come while they run.
fn charge(tasks: &[Task], overheads: &Overheads) -> Result<Vec<Task>, AnalysisError> {
    tasks.iter().map(|task| with_ticks(task, overheads)).collect()
}

fn reserve(
    prediction: &mut Prediction,
    tasks: &[Task],
    limit: cbs::Limit,
) -> Result<(), AnalysisError> {
    respond(prediction, &cbs::analyse(tasks)?);
    let servers: Vec<cbs::Server> = tasks.iter().filter_map(|task| task.server).collect();
    let share = |part: Nanos, whole: Nanos| part.0 as f64 / whole.0 as f64;
    let admitted = cbs::admitted(&servers, limit);
    prediction.admission = Some(Admission {
        reserved: servers.iter().map(|server| share(server.budget, server.period)).sum(),
        limit: share(limit.runtime, limit.period),
        admitted,
    });
    if !admitted {
        // Nobody keeps a reservation that was refused: what it would have done is no prediction.
        prediction.feasible = Some(false);
        for task in &mut prediction.tasks {
            (task.response, task.slack_ns) = (None, None);
        }
    }
    Ok(())
}

/// A task whose reservation is charged for the ticks that come while it runs.
fn with_ticks(task: &Task, overheads: &Overheads) -> Result<Task, AnalysisError> {
    /// Rounds of the search, each of at least one more tick.
    const MOST_ROUNDS: u32 = 10_000;
    let overflow = || AnalysisError::Overflow { task: task.name.clone() };
    let Some((cost, period)) = overheads.tick else { return Ok(task.clone()) };
    let mut all = task.execution.0;
    for _ in 0..MOST_ROUNDS {
        let ticks = all.div_ceil(period.0).checked_mul(cost.0).ok_or_else(overflow)?;
        let next = task.execution.0.checked_add(ticks).ok_or_else(overflow)?;
        if next == all {
            return Ok(Task { execution: Nanos(all), ..task.clone() });
        }
        all = next;
    }
    Err(overflow())
}

fn simulated(prediction: &mut Prediction, found: Simulated, seed: u64) {
    let Simulated { tasks: found, schedule, patterns, events, cut } = found;
    for (task, seen) in prediction.tasks.iter_mut().zip(&found) {
        let delay = task.delay.0;
        task.simulated = seen.nominal.map(|nominal| Nanos(nominal.0.saturating_add(delay)));
        task.simulated_misses = seen.misses;
    }
    let slot =
        |slot: &Slot| ScheduleSlot { task: slot.task as u32, start: slot.start, end: slot.end };
    let schedule = schedule.iter().take(MOST_SLOTS).map(slot).collect();
    prediction.simulation = Some(Simulation { patterns, events, cut, seed, schedule });
}

#[cfg(test)]
mod tests {
    use whylate_model::prediction::DemandTest;

    use super::*;

    pub(super) const MS: u64 = 1_000_000;

    pub(super) fn paper() -> OfSet {
        let mut tasks = vec![
            Task::new("audio", Nanos(3 * MS), Nanos(8 * MS)),
            Task::new("video", Nanos(17 * MS), Nanos(33 * MS)),
        ];
        tasks[0].priority = 2;
        tasks[1].priority = 1;
        OfSet { tasks, threads: vec![0, 1], left_out: Vec::new(), cut: Vec::new() }
    }

    pub(super) fn asked(tasks: &OfSet, policy: Policy) -> Asked<'_> {
        Asked {
            tasks,
            policy,
            assignment: None,
            overheads: None,
            delays: &[],
            simulation: Some((3, 1)),
            limit: cbs::Limit::LINUX,
        }
    }

    #[test]
    fn the_paper_s_set_is_feasible_with_four_milliseconds_of_slack() {
        let set = paper();
        let found = predict(&asked(&set, Policy::FixedPriority)).unwrap();
        assert_eq!(found.feasible, Some(true));
        let rows: Vec<_> = found.tasks.iter().map(|task| (task.nominal(), task.slack_ns)).collect();
        let ms = MS as i64;
        assert_eq!(
            rows,
            [(Some(Nanos(3 * MS)), Some(5 * ms)), (Some(Nanos(29 * MS)), Some(4 * ms))]
        );
        assert_eq!(found.tasks[1].simulated, Some(Nanos(29 * MS)));
        assert_eq!(found.simulation.unwrap().patterns, 4);
    }

    #[test]
    fn what_is_lost_lets_more_urgent_jobs_in_or_needs_another_budget() {
        let mut set = paper();
        let nominal = |asked: &Asked<'_>, task, lost| match response_with_lost(asked, task, lost) {
            Some(PredictedResponse::Bounded { nominal, .. }) => nominal.0,
            other => panic!("{other:?}"),
        };
        let fixed = asked(&set, Policy::FixedPriority);
        assert_eq!(nominal(&fixed, 0, Nanos(0)), 3 * MS);
        assert_eq!(nominal(&fixed, 0, Nanos(MS)), 4 * MS);
        assert_eq!(nominal(&fixed, 1, Nanos(0)), 29 * MS);
        // Done at 32 at the latest; then audio is released again.
        assert_eq!(nominal(&fixed, 1, Nanos(3 * MS)), 32 * MS);
        assert_eq!(nominal(&fixed, 1, Nanos(3 * MS + 1)), 35 * MS + 1);
        let late = [Nanos(0), Nanos(5 * MS)];
        let late = Asked { delays: &late, ..fixed };
        assert_eq!(nominal(&late, 1, Nanos(0)), 34 * MS);
        let deadlines = asked(&set, Policy::EarliestDeadline);
        assert_eq!(response_with_lost(&deadlines, 0, Nanos(0)), None);
        assert_eq!(response_with_lost(&fixed, 2, Nanos(0)), None);
        let server = cbs::Server { budget: Nanos(3 * MS), period: Nanos(8 * MS) };
        set.tasks[0].server = Some(server);
        set.tasks[0].period = Nanos(24 * MS);
        let reserved = asked(&set, Policy::Reservations);
        assert_eq!(nominal(&reserved, 0, Nanos(0)), 8 * MS);
        assert_eq!(nominal(&reserved, 0, Nanos(MS)), 14 * MS);
    }

    #[test]
    fn a_delay_of_all_releases_takes_from_the_slack_and_overheads_add_to_all() {
        let set = paper();
        let delays = [Nanos(0), Nanos(5 * MS)];
        let late =
            predict(&Asked { delays: &delays, ..asked(&set, Policy::FixedPriority) }).unwrap();
        assert_eq!(late.tasks[1].nominal(), Some(Nanos(34 * MS)));
        assert_eq!((late.tasks[1].slack_ns, late.feasible), (Some(-(MS as i64)), Some(false)));
        let overheads =
            Overheads { switch: Nanos(3_000), tick: Some((Nanos(15_000), Nanos(4 * MS))) };
        let overheads = Some((overheads, "a measurement"));
        let loaded = predict(&Asked { overheads, ..asked(&set, Policy::FixedPriority) }).unwrap();
        // Two switches of its own job and four of the other's, and eight ticks.
        let expected = 29 * MS + 5 * 6_000 + 8 * 15_000;
        assert_eq!(loaded.tasks[1].nominal(), Some(Nanos(expected)));
        assert_eq!(loaded.tasks[1].execution, Nanos(17 * MS), "the row says what was asked for");
    }

    #[test]
    fn reservations_and_deadlines_are_answered_for_all() {
        let mut set = paper();
        let found = predict(&asked(&set, Policy::EarliestDeadline)).unwrap();
        assert_eq!(found.feasible, Some(true));
        assert!(matches!(found.demand, Some(DemandTest::Feasible { .. })));
        // The simulator moves each until its deadline meets the other's, and comes to the same.
        let longest: Vec<_> = found.tasks.iter().map(|of| (of.nominal(), of.simulated)).collect();
        assert!(longest.iter().all(|(bound, simulated)| bound.is_some() && bound == simulated));
        assert!(longest[0].0 > Some(Nanos(3 * MS)), "it waits for what is due before: {longest:?}");
        let server =
            |budget, period| Some(cbs::Server { budget: Nanos(budget), period: Nanos(period) });
        set.tasks[0].server = server(3_100_000, 8 * MS);
        set.tasks[1].server = server(17_100_000, 33 * MS);
        let found = predict(&asked(&set, Policy::Reservations)).unwrap();
        assert_eq!((found.feasible, found.admission.unwrap().admitted), (Some(true), true));
        for task in &found.tasks {
            assert!(task.simulated.unwrap() <= task.nominal().unwrap(), "{task:?}");
        }
        let tick = Overheads { switch: Nanos(0), tick: Some((Nanos(150_000), Nanos(4 * MS))) };
        let overheads = Some((tick, "a measurement"));
        let short = predict(&Asked { overheads, ..asked(&set, Policy::Reservations) }).unwrap();
        assert_eq!(short.feasible, Some(false), "the margin is smaller than what ticks take");
        set.tasks[1].server = server(30 * MS, 33 * MS);
        let refused = predict(&asked(&set, Policy::Reservations)).unwrap();
        assert_eq!((refused.feasible, refused.admission.unwrap().admitted), (Some(false), false));
        // A set that is not admitted does not run: it has no responses and no slack.
        for task in &refused.tasks {
            let of = (task.response, task.slack_ns, task.simulated);
            assert_eq!(of, (None, None, None), "{task:?}");
        }
        assert_eq!(refused.simulation, None);
    }

    #[test]
    fn a_share_above_the_whole_cpu_never_reads_as_the_whole() {
        assert_eq!(percent_of(1.0004, 1), "just over 100 %");
        assert_eq!(percent_of(1.14, 1), "114.0 %");
        let mut set = paper();
        set.tasks.truncate(1);
        set.threads.truncate(1);
        set.tasks[0].execution = Nanos(8 * MS + 1);
        let asked = Asked { simulation: None, ..asked(&set, Policy::FixedPriority) };
        let notes = predict(&asked).unwrap().notes;
        assert!(notes[0].starts_with("the tasks need just over 100 % of the CPU"), "{notes:?}");
    }

    #[test]
    fn more_than_the_cpu_is_said_and_is_not_feasible() {
        let mut set = paper();
        set.tasks[1].execution = Nanos(25 * MS);
        let found =
            predict(&Asked { simulation: None, ..asked(&set, Policy::FixedPriority) }).unwrap();
        assert_eq!(found.feasible, Some(false));
        assert!(found.notes[0].contains("of the CPU"), "{:?}", found.notes);
        assert_eq!(found.tasks[1].response, Some(PredictedResponse::Unbounded));
    }
}
