//! The numbers of METHOD and of the literature, exactly; what must hold for any set; and inputs that
//! must neither panic nor go on for ever.

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

/// Tasks in falling order of priority: execution, period, jitter, ms.
fn set(times: &[(u64, u64, u64)]) -> Vec<Task> {
    let tasks = times.iter().zip((0..times.len() as u32).rev());
    tasks
        .map(|(&(execution, period, jitter), priority)| Task {
            priority,
            jitter: Nanos(jitter * MS),
            ..Task::new("t", Nanos(execution * MS), Nanos(period * MS))
        })
        .collect()
}

/// Responses from the nominal release and from the actual arrival, ms.
fn responses(tasks: &[Task]) -> Vec<(u64, u64)> {
    let all = analyse(tasks).unwrap();
    all.iter()
        .map(|response| {
            let bound = response.bound().unwrap();
            assert!(bound.nominal.0.is_multiple_of(MS) && bound.actual.0.is_multiple_of(MS));
            (bound.nominal.0 / MS, bound.actual.0 / MS)
        })
        .collect()
}

#[test]
fn the_numbers_of_hourglass_are_exact() {
    for (task, expected) in [
        ((17, 33, 0), (29, 29)),
        ((19, 33, 8), (39, 37)),
        ((12, 33, 8), (29, 21)),
        ((17, 33, 8), (37, 30)),
    ] {
        assert_eq!(responses(&set(&[(3, 8, 0), task])), [(3, 3), expected], "{task:?}");
    }
}

#[test]
fn the_numbers_of_the_literature_are_exact() {
    let of = |times: &[(u64, u64)]| -> Vec<u64> {
        let times: Vec<_> = times.iter().map(|&(c, t)| (c, t, 0)).collect();
        responses(&set(&times)).into_iter().map(|(nominal, _)| nominal).collect()
    };
    assert_eq!(of(&[(1, 4), (1, 5), (3, 9), (3, 18)]), [1, 2, 7, 18]);
    // Lehoczky 1990, examples 2 and 3: the first job of a busy period is not the slowest.
    assert_eq!(of(&[(52, 100), (52, 140)]), [52, 156]);
    assert_eq!(of(&[(26, 70), (62, 100)]), [26, 118]);
}

#[test]
fn deadlines_decide_and_slack_is_what_is_left() {
    let mut tasks = set(&[(3, 8, 0), (19, 33, 8)]);
    let all = analyse(&tasks).unwrap();
    assert_eq!(all[1].meets(tasks[1].deadline), Some(false));
    assert_eq!(all[1].bound().unwrap().slack_ns(tasks[1].deadline), -6 * i128::from(MS));
    tasks[1].deadline = Nanos(39 * MS);
    assert_eq!(all[1].meets(tasks[1].deadline), Some(true));
}

#[test]
fn jitter_of_several_periods_brings_as_many_jobs_at_once() {
    // Four jobs of 1 at once, each third ms another: the fourth waits for three.
    let tasks = set(&[(1, 3, 9)]);
    assert_eq!(responses(&tasks), [(10, 4)]);
    // A less urgent task waits for all of them and those that come meanwhile.
    assert_eq!(responses(&set(&[(1, 3, 9), (1, 100, 0)]))[1], (6, 6));
}

#[test]
fn blocking_delays_once_and_equals_delay_each_other() {
    let mut tasks = set(&[(3, 8, 0), (17, 33, 0)]);
    tasks[0].blocking = Nanos(2 * MS);
    assert_eq!(responses(&tasks), [(5, 5), (29, 29)]);
    let mut equals = set(&[(3, 10, 0), (4, 12, 0)]);
    equals[1].priority = equals[0].priority;
    assert_eq!(responses(&equals), [(7, 7), (7, 7)]);
}

#[test]
fn more_than_the_cpu_is_unbounded_before_anything_is_searched() {
    let all = analyse(&set(&[(1, 2, 0), (2, 3, 0), (1, 100, 0)])).unwrap();
    assert_eq!(all[0].bound().unwrap().nominal, Nanos(MS));
    assert_eq!(all[1..], [Response::Unbounded, Response::Unbounded]);
    assert_eq!(all[1].meets(Nanos(u64::MAX)), Some(false));
    // A CPU that is exactly full works off no backlog.
    assert_eq!(responses(&set(&[(1, 2, 0), (1, 3, 0), (1, 6, 0)])).last(), Some(&(6, 6)));
    let full = analyse(&set(&[(1, 2, 1), (1, 2, 0)])).unwrap();
    assert_eq!(full[1], Response::Undecided(Undecided::Full));
    assert_eq!(full[1].meets(Nanos(u64::MAX)), None);
}

#[test]
fn what_never_blocks_is_answered_below_all_others_and_leaves_nothing_below_itself() {
    let mut tasks = set(&[(3, 8, 0), (17, 33, 0), (1, 100, 0)]);
    tasks[1].releases = Releases::AfterTheLast;
    let all = analyse(&tasks).unwrap();
    assert_eq!(all[1].bound().unwrap().nominal, Nanos(29 * MS));
    assert_eq!(all[2], Response::Unbounded);
}

#[test]
fn long_busy_periods_are_given_up_at_a_named_limit() {
    // A load of 1 - 1e-12: the busy period has 1e12 jobs.
    let mut tasks = set(&[(1, 2, 0), (1, 2, 0)]);
    tasks[0].execution = Nanos(1_000_000_000_000 - 1);
    tasks[0].period = Nanos(2_000_000_000_000);
    tasks[1].execution = Nanos(500);
    tasks[1].period = Nanos(1_000);
    assert!(matches!(analyse(&tasks).unwrap()[1], Response::Undecided(_)));
    let jitter = Task { jitter: Nanos(u64::MAX / 4), ..Task::new("t", Nanos(1), Nanos(2)) };
    assert_eq!(analyse(&[jitter]).unwrap(), [Response::Undecided(Undecided::Jobs)]);
}

#[test]
fn zero_times_no_task_and_too_many_are_refused() {
    assert_eq!(analyse(&[]), Err(AnalysisError::Empty));
    let many = vec![Task::new("t", Nanos(1), Nanos(1_000_000)); 10_000];
    assert_eq!(analyse(&many), Err(AnalysisError::TooMany(10_000)));
    for zero in 0..3 {
        let mut task = Task::new("t", Nanos(1), Nanos(2));
        *[&mut task.execution, &mut task.period, &mut task.deadline][zero] = Nanos(0);
        assert!(matches!(analyse(&[task]), Err(AnalysisError::Zero { .. })));
    }
}

#[test]
fn the_most_tasks_there_may_be_are_answered() {
    let tasks: Vec<Task> = (0..task::MOST_TASKS as u32)
        .map(|priority| Task { priority, ..Task::new("t", Nanos(900), Nanos(1_000_000)) })
        .collect();
    let all = analyse(&tasks).unwrap();
    assert_eq!(all[0].bound().unwrap().nominal, Nanos(900 * task::MOST_TASKS as u64));
}

/// Execution, period, jitter, blocking, priority.
fn some_task() -> impl Strategy<Value = Task> {
    (1..60_u64, 1..200_u64, 0..400_u64, 0..30_u64, 0..4_u32).prop_map(
        |(execution, period, jitter, blocking, priority)| Task {
            jitter: Nanos(jitter),
            blocking: Nanos(blocking),
            priority,
            ..Task::new("t", Nanos(execution), Nanos(period))
        },
    )
}

/// Is nothing answered sooner by `after` than by `before`?
fn no_sooner(before: &[Response], after: &[Response]) -> bool {
    before.iter().zip(after).all(|pair| match pair {
        (Response::Bounded(before), Response::Bounded(after)) => {
            before.nominal <= after.nominal && before.actual <= after.actual
        }
        (Response::Unbounded, Response::Bounded(_)) => false,
        _ => true,
    })
}

proptest! {
    #[test]
    fn one_more_task_or_overhead_never_lowers_a_response(
        tasks in prop::collection::vec(some_task(), 1..6),
        more in some_task(),
        switch in 0..5_u64,
        tick in prop::option::of((1..5_u64, 20..100_u64)),
    ) {
        let before = analyse(&tasks).unwrap();
        let mut with = tasks.clone();
        with.push(more);
        prop_assert!(no_sooner(&before, &analyse(&with).unwrap()));
        let tick = tick.map(|(cost, period)| (Nanos(cost), Nanos(period)));
        let loaded = super::super::Overheads { switch: Nanos(switch), tick };
        let loaded = loaded.added_to(&tasks).unwrap();
        let all: Vec<Task> = loaded.tasks.into_iter().chain(loaded.tick).collect();
        prop_assert!(no_sooner(&before, &analyse(&all).unwrap()));
    }

    #[test]
    fn a_response_holds_its_own_equation(tasks in prop::collection::vec(some_task(), 1..6)) {
        for (task, response) in tasks.iter().zip(analyse(&tasks).unwrap()) {
            let Response::Bounded(bound) = response else { continue };
            prop_assert!(bound.nominal.0 >= task.execution.0 + task.jitter.0 + task.blocking.0);
            prop_assert!(bound.actual.0 >= task.execution.0 + task.blocking.0);
            prop_assert!(bound.actual <= bound.nominal);
            prop_assert!(bound.nominal.0 <= bound.actual.0 + task.jitter.0);
        }
    }

    #[test]
    fn no_times_panic_or_go_on_for_ever(
        times in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 1..5),
        shifts in prop::collection::vec(0..64_u32, 4),
    ) {
        let tasks: Vec<Task> = times.iter().map(|&(execution, period, jitter, blocking)| Task {
            jitter: Nanos(jitter >> shifts[2]),
            blocking: Nanos(blocking >> shifts[3]),
            ..Task::new("t", Nanos((execution >> shifts[0]).max(1)), Nanos((period >> shifts[1]).max(1)))
        }).collect();
        let _ = analyse_within(&tasks, 20_000);
    }
}

#[test]
fn the_largest_times_there_are_end_in_an_error_or_an_answer() {
    let most = u64::MAX;
    for [execution, period, jitter, blocking] in [
        [most, most, most, most],
        [1, most, most, 0],
        [most, most, 0, 0],
        [most - 1, most, 1, most],
        [1, most, 0, most],
    ] {
        let task = Task {
            jitter: Nanos(jitter),
            blocking: Nanos(blocking),
            ..Task::new("t", Nanos(execution), Nanos(period))
        };
        let _ = analyse(&[task.clone(), task.clone()]);
        if let Ok(all) = analyse(&[task]) {
            assert!(all[0].bound().is_none_or(|bound| bound.nominal.0 >= execution));
        }
    }
}
