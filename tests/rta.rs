//! Analysis, a second analysis by others, and simulation: three answers to the same question.
//!
//! The crate `response-time-analysis` implements bounds that were verified in Coq. Ours must agree
//! with it to the nanosecond, and no schedule that the simulator comes to may be slower.

use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_priority::floating_nonpreemptive;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::{edf as others_edf, wcet};
use whylate_model::Nanos;
use whylate_rta::analysis::{Response, Task, Undecided, cbs, edf, fixed_priority, utilisation};
use whylate_rta::simulate::{Scheduling, simulate};
use whylate_stats::rng::Rng;

/// Sets that are compared.
const SETS: u64 = 10_000;
/// Where the other crate gives up. Above 100 000, or its debug build searches by trial.
const LIMIT: u64 = 1_000_000;
/// Any seed would do.
const SEED: u64 = 2002;

type Curve = RBF<Sporadic, wcet::Scalar>;

fn curve(task: &Task) -> Curve {
    let (period, jitter) = (Duration::from(task.period.0), Duration::from(task.jitter.0));
    RBF::new(Sporadic::new(period, jitter), wcet::Scalar::new(Service::from(task.execution.0)))
}

/// What is to be different between sets.
#[derive(Clone, Copy)]
struct Kind {
    jitter: bool,
    ties: bool,
    blocking: bool,
}

/// Up to six tasks that use the CPU up to the whole of it.
fn set(rng: &mut Rng, kind: Kind) -> Vec<Task> {
    let count = 1 + rng.below(6);
    let mut left = 0.3 + 0.7 * rng.unit();
    let mut tasks = Vec::new();
    for number in 0..count {
        let period = 5 + rng.below(96);
        // Whole times: a share may round down, and a task of nothing has one unit.
        let share = left * (1.0 - rng.unit().powf(1.0 / (count - number) as f64));
        let share = if number + 1 == count { left } else { share };
        let execution = ((share * period as f64) as u64).max(1);
        left = (left - execution as f64 / period as f64).max(0.0);
        let jitter = match rng.below(4) {
            _ if !kind.jitter => 0,
            0 => 0,
            // Up to three periods.
            1 => rng.below(3 * period + 1),
            _ => rng.below(period),
        };
        let deadline = 1 + rng.below(3 * period);
        let blocking = if kind.blocking { rng.below(20) } else { 0 };
        tasks.push(Task {
            deadline: Nanos(deadline),
            jitter: Nanos(jitter),
            blocking: Nanos(blocking),
            ..Task::new(number.to_string(), Nanos(execution), Nanos(period))
        });
    }
    let mut priorities: Vec<u32> = (1..=count as u32).collect();
    rng.shuffle(&mut priorities);
    for (task, priority) in tasks.iter_mut().zip(priorities) {
        task.priority = if kind.ties { priority.div_ceil(2) } else { priority };
    }
    tasks
}

/// Sets that ask for no more than the CPU.
fn sets(kind: Kind, count: u64, stream: u64) -> impl Iterator<Item = Vec<Task>> {
    let mut rng = Rng::stream(SEED, stream);
    let all = std::iter::from_fn(move || Some(set(&mut rng, kind)));
    all.filter(|tasks| utilisation(tasks) < 1.0 + 1e-9).take(count as usize)
}

/// The bound of the other crate, from the actual arrival; none where it gave up.
fn by_others(tasks: &[Task], index: usize) -> Option<u64> {
    let own = &tasks[index];
    let more_urgent =
        |(other, task): &(usize, &Task)| *other != index && task.priority >= own.priority;
    let others: Vec<Curve> =
        tasks.iter().enumerate().filter(more_urgent).map(|(_, task)| curve(task)).collect();
    let rbf = curve(own);
    let blocking_bound = Service::from(own.blocking.0);
    let under = floating_nonpreemptive::TaskUnderAnalysis { rbf: &rbf, blocking_bound };
    let found =
        floating_nonpreemptive::dedicated_uniproc_rta(&under, &others, Duration::from(LIMIT));
    found.ok().map(u64::from)
}

/// How the answers to one set compare.
#[derive(Default)]
struct Count {
    bounded: u64,
    several_jobs: u64,
    late: u64,
}

fn compare(tasks: &[Task], kind: Kind, number: u64, count: &mut Count) {
    let ours = fixed_priority::analyse(tasks).unwrap();
    let seen = simulate(tasks, Scheduling::FixedPriority, 1, number).unwrap();
    for (index, (task, response)) in tasks.iter().zip(&ours).enumerate() {
        let others = by_others(tasks, index);
        let Response::Bounded(bound) = response else {
            // A CPU that is exactly full, with jitter: both give up.
            assert_eq!(*response, Response::Undecided(Undecided::Full), "{tasks:?}");
            assert_eq!(others, None, "task {index} of {tasks:?}");
            continue;
        };
        if bound.busy.0 < LIMIT {
            assert_eq!(others, Some(bound.actual.0), "task {index} of {tasks:?}");
        }
        count.bounded += 1;
        count.several_jobs += u64::from(bound.jobs > 1);
        count.late += u64::from(bound.nominal > task.deadline);
        let seen = &seen.tasks[index];
        let (nominal, actual) = (seen.nominal.unwrap(), seen.actual.unwrap());
        assert!(nominal <= bound.nominal, "task {index} of {tasks:?}: {seen:?}");
        assert!(actual <= bound.actual, "task {index} of {tasks:?}: {seen:?}");
        if !kind.ties {
            assert_eq!((nominal, actual), (bound.nominal, bound.actual), "{index} of {tasks:?}");
        }
        if bound.nominal <= task.deadline {
            assert_eq!(seen.misses, 0, "task {index} of {tasks:?}");
        }
    }
}

#[test]
fn ten_thousand_sets_agree_with_another_analysis_and_with_simulated_schedules() {
    let kinds =
        [(false, false, false), (true, false, false), (true, true, false), (true, false, true)];
    let mut count = Count::default();
    for (stream, (jitter, ties, blocking)) in kinds.into_iter().enumerate() {
        let kind = Kind { jitter, ties, blocking };
        let all = sets(kind, SETS / kinds.len() as u64, stream as u64);
        for (number, tasks) in all.enumerate() {
            compare(&tasks, kind, number as u64, &mut count);
        }
    }
    // The interesting cases are there.
    assert!(count.bounded > 2 * SETS, "{}", count.bounded);
    assert!(count.several_jobs > SETS / 2, "{}", count.several_jobs);
    assert!(count.late > SETS / 2, "{}", count.late);
}

/// Does the other crate find every response within its deadline? Its deadlines count from the
/// arrival, so this is for sets without jitter.
fn others_feasible(tasks: &[Task]) -> Option<bool> {
    let curves: Vec<Curve> = tasks.iter().map(curve).collect();
    let with = |index: usize| others_edf::fully_preemptive::Task {
        rbf: &curves[index],
        deadline: Duration::from(tasks[index].deadline.0),
    };
    (0..tasks.len())
        .map(|index| {
            let others: Vec<_> = (0..tasks.len()).filter(|o| *o != index).map(with).collect();
            let (own, limit) = (with(index), Duration::from(LIMIT));
            let found = others_edf::fully_preemptive::dedicated_uniproc_rta(&own, &others, limit);
            found.ok().map(|found| u64::from(found) <= tasks[index].deadline.0)
        })
        .try_fold(true, |all, one| one.map(|one| all && one))
}

#[test]
fn earliest_deadline_first_agrees_with_another_analysis_and_with_simulated_schedules() {
    let (mut feasible, mut infeasible) = (0, 0);
    for (stream, jitter) in [(10, false), (11, true)] {
        let kind = Kind { jitter, ties: false, blocking: false };
        for (number, tasks) in sets(kind, SETS / 5, stream).enumerate() {
            let Some(ours) = edf::analyse(&tasks, &[]).unwrap().is_feasible() else { continue };
            if !jitter && let Some(others) = others_feasible(&tasks) {
                assert_eq!(ours, others, "{tasks:?}");
            }
            let seen = simulate(&tasks, Scheduling::EarliestDeadline, 1, number as u64).unwrap();
            let misses: u64 = seen.tasks.iter().map(|seen| seen.misses).sum();
            assert_eq!(misses == 0, ours, "{tasks:?}: {seen:?}");
            *if ours { &mut feasible } else { &mut infeasible } += 1;
        }
    }
    assert!(feasible > SETS / 20 && infeasible > SETS / 20, "{feasible} and {infeasible}");
}

#[test]
fn what_a_server_supplies_agrees_with_another_model_of_it() {
    use response_time_analysis::supply::{Constrained, SupplyBound};
    for (budget, period) in [(3_u64, 8_u64), (1, 7), (5, 6), (4, 4)] {
        let ours = cbs::Server { budget: Nanos(budget), period: Nanos(period) };
        let whole = Duration::from(period);
        let others = Constrained::new(Service::from(budget), whole, whole);
        for window in 0..10 * period {
            let supplied = u64::from(others.provided_service(Duration::from(window)));
            assert_eq!(ours.supply(Nanos(window)).0, supplied, "{budget}/{period} in {window}");
        }
    }
}
