//! Analysis, a second analysis by others, and simulation: three answers to the same question.
//!
//! The crate `response-time-analysis` implements bounds that were verified in Coq. Ours must agree
//! with it to the nanosecond, and no schedule that the simulator comes to may be slower.

use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_priority::floating_nonpreemptive;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::{edf as others_edf, wcet};
use whylate_model::prediction::PREDICTION_VERSION;
use whylate_model::{Nanos, RunDir};
use whylate_report::{Style, first_prediction};
use whylate_rta::analysis::of_set::{OfSet, Policy};
use whylate_rta::analysis::{
    Bound, Releases, Response, Task, Undecided, cbs, edf, fixed_priority, utilisation,
};
use whylate_rta::prediction::{Asked, predict};
use whylate_rta::simulate::{
    Patterns, Scheduling, simulate, simulate_interrupted, simulate_reserved,
};
use whylate_stats::rng::Rng;

use crate::{directories, program};

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

/// The responses that the other crate finds. Its deadlines count from the arrival, so this is for
/// sets without jitter.
fn edf_by_others(tasks: &[Task]) -> Option<Vec<u64>> {
    let curves: Vec<Curve> = tasks.iter().map(curve).collect();
    let with = |index: usize| others_edf::fully_preemptive::Task {
        rbf: &curves[index],
        deadline: Duration::from(tasks[index].deadline.0),
    };
    let of = |index: usize| {
        let others: Vec<_> = (0..tasks.len()).filter(|o| *o != index).map(with).collect();
        let (own, limit) = (with(index), Duration::from(LIMIT));
        let found = others_edf::fully_preemptive::dedicated_uniproc_rta(&own, &others, limit);
        found.ok().map(u64::from)
    };
    (0..tasks.len()).map(of).collect()
}

/// The sets of [`SETS`] that are also compared with the other analysis, which takes its time.
const BY_OTHERS: u64 = SETS / 5;
/// And those that are simulated with every way for deadlines to meet.
const ALIGNED: u64 = SETS / 10;

/// What earliest deadline first makes of one set.
#[derive(Default)]
struct Deadlines {
    feasible: u64,
    infeasible: u64,
    /// Responses longer than after a release of all tasks at once.
    longer_moved: u64,
}

fn by_deadlines(tasks: &[Task], number: u64, jitter: bool, count: &mut Deadlines) {
    let Some(feasible) = edf::analyse(tasks, &[]).unwrap().is_feasible() else { return };
    let responses = edf::respond(tasks, &[]).unwrap();
    let bounds: Vec<_> = responses.iter().filter_map(Response::bound).collect();
    if bounds.is_empty() {
        // A CPU that is exactly full, with jitter.
        let full = |response: &Response| *response == Response::Undecided(Undecided::Full);
        assert!(responses.iter().all(full), "{responses:?} of {tasks:?}");
        return;
    }
    let within = |(task, bound): (&Task, &&Bound)| bound.nominal <= task.deadline;
    assert_eq!(tasks.iter().zip(&bounds).all(within), feasible, "{bounds:?} of {tasks:?}");
    if number < BY_OTHERS
        && !jitter
        && let Some(others) = edf_by_others(tasks)
    {
        let ours: Vec<u64> = bounds.iter().map(|bound| bound.nominal.0).collect();
        assert_eq!(ours, others, "{tasks:?}");
    }
    let aligned = if number < ALIGNED { 1_000 } else { 0 };
    let patterns = Patterns { random: 1, seed: number, aligned };
    let of = |patterns| simulate_interrupted(tasks, &[], Scheduling::EarliestDeadline, patterns);
    let seen = of(patterns).unwrap();
    for (index, (bound, seen)) in bounds.iter().zip(&seen.tasks).enumerate() {
        let (nominal, actual) = (seen.nominal.unwrap(), seen.actual.unwrap());
        assert!(nominal <= bound.nominal, "task {index} of {tasks:?}: {seen:?} {bound:?}");
        assert!(actual <= bound.actual, "task {index} of {tasks:?}: {seen:?} {bound:?}");
        if aligned > 0 {
            assert_eq!(nominal, bound.nominal, "task {index} of {tasks:?}");
        }
    }
    if aligned > 0 {
        let at_once = of(Patterns::default()).unwrap();
        let pairs = at_once.tasks.iter().zip(&seen.tasks);
        count.longer_moved += pairs.filter(|(one, all)| one.nominal < all.nominal).count() as u64;
    }
    let misses: u64 = seen.tasks.iter().map(|seen| seen.misses).sum();
    assert_eq!(misses == 0, feasible, "{tasks:?}: {seen:?}");
    *if feasible { &mut count.feasible } else { &mut count.infeasible } += 1;
}

#[test]
fn earliest_deadline_first_agrees_with_another_analysis_and_with_simulated_schedules() {
    let mut count = Deadlines::default();
    for (stream, jitter) in [(10, false), (11, true)] {
        let kind = Kind { jitter, ties: false, blocking: false };
        for (number, tasks) in sets(kind, SETS / 2, stream).enumerate() {
            by_deadlines(&tasks, number as u64, jitter, &mut count);
        }
    }
    // The interesting cases are there.
    let Deadlines { feasible, infeasible, longer_moved } = count;
    assert!(feasible > SETS / 10 && infeasible > SETS / 10, "{feasible} and {infeasible}");
    assert!(longer_moved > ALIGNED / 2, "{longer_moved}");
}

/// Up to five tasks with reservations of the whole CPU at most. A few ask for more than they reserved,
/// and a few never block.
fn reserved_set(rng: &mut Rng) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut left = 1.0;
    for number in 0..=rng.below(5) {
        let every = 4 + rng.below(37);
        let budget = 1 + (left * rng.unit() * (every - 1) as f64) as u64;
        left -= budget as f64 / every as f64;
        if left < -1e-9 {
            break;
        }
        let period = 5 + rng.below(96);
        let fits = period * budget / every;
        let execution = 1 + rng.below(fits + fits / 8 + 1);
        let jitter = if rng.below(2) == 0 { 0 } else { rng.below(2 * period) };
        let endless = rng.below(12) == 0;
        tasks.push(Task {
            jitter: Nanos(if endless { 0 } else { jitter }),
            server: Some(cbs::Server { budget: Nanos(budget), period: Nanos(every) }),
            releases: if endless { Releases::AfterTheLast } else { Releases::Periodic },
            ..Task::new(number.to_string(), Nanos(execution), Nanos(period))
        });
    }
    tasks
}

#[test]
fn no_job_of_ten_thousand_sets_takes_longer_than_its_reservation_allows() {
    const WHOLE: cbs::Limit = cbs::Limit { runtime: Nanos(1), period: Nanos(1) };
    let mut rng = Rng::stream(SEED, 12);
    let all = std::iter::from_fn(|| Some(reserved_set(&mut rng)));
    let admitted = |tasks: &Vec<Task>| {
        let servers: Vec<cbs::Server> = tasks.iter().filter_map(|task| task.server).collect();
        !servers.is_empty() && cbs::admitted(&servers, WHOLE)
    };
    let (mut bounded, mut unbounded, mut reached, mut postponed) = (0, 0, 0, 0);
    for (number, tasks) in all.filter(admitted).take(SETS as usize).enumerate() {
        let patterns = Patterns { random: number as u64 % 2, seed: number as u64, aligned: 0 };
        let seen = simulate_reserved(&tasks, patterns).unwrap();
        let responses = cbs::analyse(&tasks).unwrap();
        for ((task, response), seen) in tasks.iter().zip(&responses).zip(&seen.tasks) {
            let Response::Bounded(bound) = response else {
                assert_eq!(*response, Response::Unbounded, "{tasks:?}");
                unbounded += 1;
                continue;
            };
            let (nominal, actual) = (seen.nominal.unwrap(), seen.actual.unwrap());
            assert!(nominal <= bound.nominal, "{task:?} of {tasks:?}: {seen:?} {bound:?}");
            assert!(actual <= bound.actual, "{task:?} of {tasks:?}: {seen:?} {bound:?}");
            if bound.nominal <= task.deadline {
                assert_eq!(seen.misses, 0, "{task:?} of {tasks:?}");
            }
            bounded += 1;
            reached += u64::from(2 * actual.0 >= bound.actual.0);
            postponed += u64::from(task.execution > task.server.unwrap().budget);
        }
    }
    // The interesting cases are there.
    assert!(bounded > SETS && unbounded > SETS / 100, "{bounded} and {unbounded}");
    assert!(postponed > SETS / 2, "{postponed} jobs of several budgets");
    assert!(reached > bounded / 3, "{reached} of {bounded} come to half of the bound");
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

/// What a sentence names behind these words, and the next time that it could name: of three digits, one more of
/// the last.
fn told(sentence: &str, words: &str) -> Option<(Nanos, Nanos)> {
    let (_, behind) = sentence.split_once(words)?;
    let mut parts = behind.trim_start().split(' ');
    let (digits, unit) = (parts.next()?, parts.next()?);
    let time: Nanos = format!("{digits}{}", unit.replace('µ', "u")).parse().unwrap();
    Some((time, Nanos(10_u64.pow(time.0.max(100).ilog10() - 2))))
}

#[test]
fn with_the_change_that_is_told_all_deadlines_are_met_and_with_the_next_that_could_be_told_not() {
    let ask = |tasks: &[Task]| {
        let tasks = OfSet {
            tasks: tasks.to_vec(),
            threads: (0..tasks.len()).collect(),
            left_out: Vec::new(),
            cut: Vec::new(),
        };
        predict(&Asked {
            tasks: &tasks,
            policy: Policy::FixedPriority,
            assignment: None,
            overheads: None,
            delays: &[],
            simulation: None,
            limit: cbs::Limit::LINUX,
        })
        .unwrap()
    };
    let kind = Kind { jitter: true, ties: false, blocking: true };
    let (mut executions, mut periods) = (0, 0);
    for mut tasks in sets(kind, SETS / 10, 13) {
        for task in &mut tasks {
            let Task { execution, period, deadline, jitter, blocking, .. } = task;
            for time in [execution, period, deadline, jitter, blocking] {
                // No round number.
                time.0 *= 1_234_567;
            }
        }
        let found = ask(&tasks);
        let text = first_prediction(&found, &[], Style::default());
        let Some((_, sentence)) = text.split_once("it fits with") else {
            assert!(found.fits.is_none(), "{text}");
            continue;
        };
        let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
        let task = found.fits.unwrap().task as usize;
        let met = |change: &dyn Fn(&mut Task)| {
            let mut tasks = tasks.clone();
            change(&mut tasks[task]);
            ask(&tasks).feasible == Some(true)
        };
        if let Some((most, step)) = told(&sentence, "at most") {
            assert!(met(&|of| of.execution = most), "{text}");
            assert!(!met(&|of| of.execution.0 = most.0 + step.0), "{text}");
            executions += 1;
        }
        if let Some((least, step)) = told(&sentence, "a period of at least") {
            let with = |ns: u64| {
                met(&|of| {
                    if of.deadline == of.period {
                        of.deadline = Nanos(ns);
                    }
                    of.period = Nanos(ns);
                })
            };
            assert!(with(least.0), "{text}");
            assert!(!with(least.0 - step.0), "{text}");
            periods += 1;
        }
    }
    // The interesting cases are there.
    assert!(executions > SETS / 200 && periods > SETS / 1_000, "{executions} and {periods}");
}

#[test]
fn a_prediction_as_json_has_a_version_and_units() {
    let words = ["rta", "--task", "1ms 4ms", "--format", "json"];
    let output = program::whylate(words).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["format_version"], PREDICTION_VERSION);
    let task = &told["tasks"][0];
    assert_eq!(
        (&task["execution_ns"], &task["period_ns"]),
        (&1_000_000.into(), &4_000_000.into()),
        "{told}"
    );
}

#[test]
fn a_prediction_by_overheads_of_a_run_that_is_not_to_be_relied_on_is_not_either() {
    let home = tempfile::tempdir().unwrap();
    let costs = home.path().join("costs");
    directories::copy(&program::file("runs/switch-cost"), &costs);
    let mut run = program::read(&costs);
    let reasons = vec!["this machine changed during the run".to_owned()];
    run.verdict = whylate_model::run::Verdict::Untrustworthy { reasons };
    RunDir::open(&costs).unwrap().write_run(&run).unwrap();
    let of = |words: &[&str]| {
        let mut rta = program::as_used(["rta", "--task", "2ms 10ms"]);
        let output = rta.args(words).arg("--overhead").arg(&costs).output().unwrap();
        // Where lines end hangs on how long the path of the directory is.
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (status, screen) = of(&[]);
    assert_eq!(status, Some(4), "{screen}");
    assert!(screen.contains("Trust: poor. Trust in the overheads"), "{screen}");
    assert_eq!(screen.matches("changed during the run").count(), 1, "{screen}");
    let (status, whole) = of(&["--full"]);
    assert!(status == Some(4) && whole.contains("changed during the run"), "{whole}");
    let (status, json) = of(&["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let doubt = json["overheads"]["doubt"].as_str().unwrap();
    assert!(status == Some(4) && doubt.contains("changed during the run"), "{doubt}");
    // A deadline that may be missed comes before doubts.
    assert_eq!(of(&["--check"]).0, Some(4));
    assert_eq!(of(&["--task", "9ms 10ms", "--check"]).0, Some(3));
}
