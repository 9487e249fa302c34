//! Schedules that can be drawn by hand, and the limit of events.

use super::*;

fn task(priority: u32, execution: u64, period: u64) -> Task {
    Task { priority, ..Task::new("t", Nanos(execution), Nanos(period)) }
}

fn responses(simulated: &Simulated) -> Vec<(u64, u64)> {
    let of = |seen: &Seen| (seen.nominal.unwrap().0, seen.actual.unwrap().0);
    simulated.tasks.iter().map(of).collect()
}

#[test]
fn the_schedule_of_the_paper_is_the_one_drawn_by_hand() {
    let tasks = [task(2, 3, 8), task(1, 17, 33)];
    let simulated = simulate(&tasks, Scheduling::FixedPriority, 0, 0).unwrap();
    let slots: Vec<_> =
        simulated.schedule.iter().map(|slot| (slot.task, slot.start.0, slot.end.0)).collect();
    let by_hand = [
        (0, 0, 3),
        (1, 3, 8),
        (0, 8, 11),
        (1, 11, 16),
        (0, 16, 19),
        (1, 19, 24),
        (0, 24, 27),
        (1, 27, 29),
    ];
    assert_eq!(slots, by_hand);
    assert_eq!(responses(&simulated), [(3, 3), (29, 29)]);
    assert!(!simulated.cut);
}

#[test]
fn jitter_delays_the_first_job_and_brings_the_next_sooner() {
    let tasks = [task(2, 3, 8), Task { jitter: Nanos(8), ..task(1, 19, 33) }];
    let simulated = simulate(&tasks, Scheduling::FixedPriority, 0, 0).unwrap();
    assert_eq!(responses(&simulated)[1], (39, 37));
    assert!(simulated.tasks[1].misses > 0);
}

#[test]
fn blocking_comes_before_its_own_task_alone() {
    let tasks = [Task { blocking: Nanos(2), ..task(2, 3, 8) }, task(1, 17, 33)];
    let simulated = simulate(&tasks, Scheduling::FixedPriority, 0, 0).unwrap();
    assert_eq!(responses(&simulated), [(5, 5), (29, 29)]);
}

#[test]
fn the_earliest_deadline_runs_first_and_fills_the_cpu() {
    let tasks = [task(1, 1, 2), task(2, 1, 3), task(3, 1, 6)];
    let simulated = simulate(&tasks, Scheduling::EarliestDeadline, 0, 0).unwrap();
    assert!(simulated.tasks.iter().all(|seen| seen.misses == 0));
    let slots: Vec<_> = simulated.schedule.iter().map(|slot| slot.task).collect();
    assert_eq!(slots, [0, 1, 0, 2, 1, 0]);
    assert_eq!(simulated.schedule[5].end, Nanos(6), "the busy period ends where the next begins");
    let late = [Task { deadline: Nanos(1), ..task(1, 1, 4) }, task(1, 1, 4)];
    let late = [late[0].clone(), Task { deadline: Nanos(1), ..late[1].clone() }];
    let simulated = simulate(&late, Scheduling::EarliestDeadline, 0, 0).unwrap();
    assert_eq!(simulated.tasks[1].misses, 1);
}

#[test]
fn equals_run_in_the_order_of_their_arrival() {
    let tasks = [task(1, 4, 100), Task { jitter: Nanos(0), ..task(1, 2, 3) }];
    let simulated = simulate(&tasks, Scheduling::FixedPriority, 0, 0).unwrap();
    assert_eq!(simulated.schedule[0].end, Nanos(4), "an equal does not preempt");
}

#[test]
fn what_never_blocks_takes_the_rest_and_ends_with_its_first_frame() {
    let endless = Task { releases: Releases::AfterTheLast, ..task(1, 17, 33) };
    let simulated = simulate(&[task(2, 3, 8), endless], Scheduling::FixedPriority, 5, 1).unwrap();
    assert!(simulated.tasks[1].nominal.unwrap().0 >= 29);
    assert!(!simulated.cut && simulated.tasks[1].jobs > 5);
}

#[test]
fn an_overload_and_the_largest_times_end_at_the_limit_of_events() {
    let simulated =
        simulate(&[task(2, 2, 3), task(1, 2, 3)], Scheduling::FixedPriority, 3, 0).unwrap();
    assert!(simulated.cut && simulated.events <= MOST_EVENTS + 10);
    let most = u64::MAX;
    let huge = Task { jitter: Nanos(most), ..task(1, most, most) };
    for scheduling in [Scheduling::FixedPriority, Scheduling::EarliestDeadline] {
        let both = [huge.clone(), Task { jitter: Nanos(0), ..task(2, 1, most) }];
        let simulated = simulate(&both, scheduling, 2, 0).unwrap();
        assert!(simulated.events <= MOST_EVENTS + 10);
    }
    assert_eq!(simulate(&[], Scheduling::FixedPriority, 0, 0), Err(AnalysisError::Empty));
}

#[test]
fn one_seed_gives_one_result() {
    let tasks = [task(2, 3, 8), Task { jitter: Nanos(8), ..task(1, 12, 33) }];
    let of = |seed| simulate(&tasks, Scheduling::FixedPriority, 20, seed).unwrap();
    assert_eq!(of(4), of(4));
    assert_eq!(of(4).patterns, 21);
}

fn reserved(execution: u64, period: u64, budget: u64, every: u64) -> Task {
    let server = Server { budget: Nanos(budget), period: Nanos(every) };
    Task { server: Some(server), ..task(0, execution, period) }
}

fn slots(simulated: &Simulated) -> Vec<(usize, u64, u64)> {
    simulated.schedule.iter().map(|slot| (slot.task, slot.start.0, slot.end.0)).collect()
}

#[test]
fn a_task_is_moved_until_its_deadline_meets_that_of_another() {
    // Together the first is done at 2; moved by 1 it is due when the other is, and waits for it.
    let tasks = [
        Task { deadline: Nanos(4), ..task(0, 2, 6) },
        Task { deadline: Nanos(5), ..task(0, 4, 12) },
    ];
    let with = |aligned| {
        let patterns = Patterns { aligned, ..Patterns::default() };
        let found = simulate_interrupted(&tasks, &[], Scheduling::EarliestDeadline, patterns);
        responses(&found.unwrap())
    };
    assert_eq!(with(0), [(2, 2), (6, 6)]);
    assert_eq!(with(10), [(5, 5), (6, 6)]);
}

#[test]
fn interruptions_run_before_all_and_are_no_tasks() {
    let tasks = [task(1, 3, 10), task(2, 1, 20)];
    for scheduling in [Scheduling::FixedPriority, Scheduling::EarliestDeadline] {
        let tick = [task(0, 1, 3)];
        let found = simulate_interrupted(&tasks, &tick, scheduling, Patterns::default()).unwrap();
        assert_eq!(found.tasks.len(), 2);
        assert_eq!(found.schedule[0].task, 2, "the interruption is the first");
        assert!(found.tasks[0].nominal >= Some(Nanos(5)), "{found:?}");
    }
}

#[test]
fn a_budget_that_is_used_up_comes_back_at_its_deadline_which_is_postponed() {
    // 7 by a budget of 3 in 8: 0..3, then 8..11, then 1 more; the other has its own 2 in 4 by then.
    let tasks = [reserved(7, 40, 3, 8), reserved(2, 40, 2, 4)];
    let simulated = simulate_reserved(&tasks, Patterns::default()).unwrap();
    assert_eq!(slots(&simulated), [(1, 0, 2), (0, 2, 5), (0, 8, 11), (0, 16, 17)]);
    assert_eq!(responses(&simulated), [(17, 17), (2, 2)]);
    let alone = [reserved(4, 8, 3, 8)];
    let simulated = simulate_reserved(&alone, Patterns::default()).unwrap();
    assert!(simulated.tasks[0].misses > 100, "it asks for more than it has reserved");
}

#[test]
fn a_server_that_wakes_has_its_rest_or_a_new_deadline_by_the_share_that_is_left() {
    // After 1 of 4 in 8 at 0 the next job comes at 3: 3 are left for 5, which is more than a half, so
    // the deadline is 11 and not 8. The other, due at 10, goes first.
    let tasks = [reserved(1, 3, 4, 8), reserved(4, 40, 4, 10)];
    let simulated = simulate_reserved(&tasks, Patterns::default()).unwrap();
    assert_eq!(slots(&simulated)[..3], [(0, 0, 1), (1, 1, 5), (0, 5, 6)]);
}

#[test]
fn what_never_blocks_has_its_budget_in_each_period_and_no_more() {
    let endless = Task { releases: Releases::AfterTheLast, ..reserved(3, 8, 3, 8) };
    let simulated = simulate_reserved(&[endless], Patterns::default()).unwrap();
    assert_eq!(slots(&simulated)[..3], [(0, 0, 3), (0, 8, 11), (0, 16, 19)]);
    assert_eq!(simulated.tasks[0].nominal, Some(Nanos(8)));
}

#[test]
fn tasks_without_a_server_and_the_largest_times_end_in_an_error_or_at_the_limit() {
    let none = simulate_reserved(&[task(0, 1, 2)], Patterns::default());
    assert_eq!(none, Err(AnalysisError::NoServer { task: "t".to_owned() }));
    let most = u64::MAX;
    for (execution, budget) in [(most, 1), (1, most), (most, most), (most, most - 1)] {
        let huge = Task { jitter: Nanos(most), ..reserved(execution, most, budget, most) };
        let patterns = Patterns { random: 2, ..Patterns::default() };
        let simulated = simulate_reserved(&[huge, reserved(1, 1, 1, 1)], patterns).unwrap();
        assert!(simulated.events <= MOST_EVENTS + 10);
    }
}
