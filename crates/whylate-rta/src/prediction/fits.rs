//! Which change of one task alone lets all deadlines be met.
//!
//! It is looked for with the analysis itself, which knows more than the load: what the CPU has time for may
//! still be late. What that cannot decide counts as not met, so what is found is enough, and may be more than
//! that where a search ends at its limit.

use whylate_model::Nanos;
use whylate_model::prediction::FittingTask;

use super::Asked;
use crate::analysis::assign::assign;
use crate::analysis::{Releases, Task, fixed_priority};

/// Terms of one analysis: some milliseconds, of which there are up to some hundred.
const MOST_TERMS: u64 = 1_000_000;
/// Tasks that are tried.
const MOST_TRIED: usize = 8;
/// A time that is changed by more than this is that of another task.
const MOST_TIMES: u64 = 64;

/// The task whose change is enough, under fixed priorities: the most urgent of those that miss their deadlines,
/// for nothing less urgent takes time from it, or else one above it.
pub(super) fn one_task(asked: &Asked<'_>) -> Option<FittingTask> {
    // The releases of a run that was measured are nothing to change.
    if !asked.delays.is_empty() {
        return None;
    }
    let tasks = &asked.tasks.tasks;
    let met = met(asked, tasks)?;
    let missed = |at: &usize| met[*at] == Some(false);
    let first = (0..tasks.len()).filter(missed).map(|at| tasks[at].priority).max()?;
    let may_help =
        |at: &usize| tasks[*at].priority >= first && tasks[*at].releases == Releases::Periodic;
    let mut tried: Vec<usize> = (0..tasks.len()).filter(may_help).collect();
    tried.sort_by_key(|at| (!missed(at), tasks[*at].priority));
    tried.into_iter().take(MOST_TRIED).find_map(|at| {
        let (execution, period) = (execution(asked, at), period(asked, at));
        let found = FittingTask { task: u32::try_from(at).ok()?, execution, period };
        (execution.is_some() || period.is_some()).then_some(found)
    })
}

/// The longest execution time of a task with which all deadlines are met.
fn execution(asked: &Asked<'_>, task: usize) -> Option<Nanos> {
    let own = asked.tasks.tasks[task].execution.0;
    let least = (own / MOST_TIMES).max(1);
    let enough = |ns: u64| all_met(asked, &changed(asked, task, |of| of.execution = Nanos(ns)));
    (least < own && enough(least)).then(|| Nanos(next_to(least, own, enough)))
}

/// The shortest period of a task with which all deadlines are met, among those with which priorities that were
/// given out by periods or deadlines stay in their order: what is blocked by whom hangs on that.
fn period(asked: &Asked<'_>, task: usize) -> Option<Nanos> {
    let own = asked.tasks.tasks[task].period.0;
    let with = |ns: u64| {
        changed(asked, task, |of| {
            if of.deadline == of.period {
                of.deadline = Nanos(ns);
            }
            of.period = Nanos(ns);
        })
    };
    let in_order = |ns: u64| {
        let tasks = with(ns);
        asked.assignment.is_none_or(|(by, _)| {
            let mut again = tasks.clone();
            assign(&mut again, by);
            again == tasks
        })
    };
    let most = own.saturating_mul(MOST_TIMES);
    let most = if in_order(most) { most } else { next_to(own, most, in_order) };
    let enough = |ns: u64| all_met(asked, &with(ns));
    (most > own && enough(most)).then(|| Nanos(next_to(most, own, enough)))
}

/// The tasks, of which one is changed.
fn changed(asked: &Asked<'_>, task: usize, change: impl FnOnce(&mut Task)) -> Vec<Task> {
    let mut tasks = asked.tasks.tasks.clone();
    change(&mut tasks[task]);
    tasks
}

/// The value next to that which is not enough, from one that is.
fn next_to(enough: u64, not: u64, is_enough: impl Fn(u64) -> bool) -> u64 {
    let (mut enough, mut not) = (enough, not);
    while enough.abs_diff(not) > 1 {
        let between = enough.midpoint(not);
        *if is_enough(between) { &mut enough } else { &mut not } = between;
    }
    enough
}

fn all_met(asked: &Asked<'_>, tasks: &[Task]) -> bool {
    met(asked, tasks).is_some_and(|met| met.iter().all(|met| *met == Some(true)))
}

/// Of each task, whether its deadlines are met; none where a time does not fit.
fn met(asked: &Asked<'_>, tasks: &[Task]) -> Option<Vec<Option<bool>>> {
    let (overheads, _) = asked.overheads.unwrap_or_default();
    let loaded = overheads.added_to(tasks).ok()?;
    let all: Vec<Task> = loaded.tasks.into_iter().chain(loaded.tick).collect();
    let mut met = fixed_priority::meet(&all, MOST_TERMS).ok()?;
    met.truncate(tasks.len());
    Some(met)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{MS, asked, paper};
    use super::*;
    use crate::analysis::assign::Assignment;
    use crate::analysis::cbs;
    use crate::analysis::of_set::{OfSet, Policy};
    use crate::prediction::predict;

    const RM: Option<(Assignment, &str)> = Some((Assignment::RateMonotonic, "rate-monotonic"));

    /// What is asked without a simulation, which goes on for long where deadlines are missed.
    fn of(set: &OfSet, policy: Policy) -> Asked<'_> {
        Asked { simulation: None, ..asked(set, policy) }
    }

    fn fits(set: &OfSet) -> Option<FittingTask> {
        predict(&of(set, Policy::FixedPriority)).unwrap().fits
    }

    #[test]
    fn what_fits_is_found_by_the_analysis_and_not_by_the_load() {
        let mut set = paper();
        assert_eq!(fits(&set), None, "it fits as it is");
        set.tasks[0].execution = Nanos(5 * MS);
        // 12.3 ms would load the CPU by 99.8 %.
        let (execution, period) = (Some(Nanos(12 * MS)), Some(Nanos(47 * MS)));
        assert_eq!(fits(&set), Some(FittingTask { task: 1, execution, period }));
        let deadlines = predict(&of(&set, Policy::EarliestDeadline)).unwrap();
        assert_eq!((deadlines.feasible, deadlines.fits), (Some(false), None));
        let delays = [Nanos(0), Nanos(1)];
        let measured = Asked { delays: &delays, ..of(&set, Policy::FixedPriority) };
        assert_eq!(predict(&measured).unwrap().fits, None);
    }

    #[test]
    fn where_no_change_of_one_task_is_enough_there_is_none() {
        let mut set = paper();
        set.tasks[1].execution = Nanos(40 * MS);
        set.tasks[1].deadline = Nanos(30 * MS);
        let found = fits(&set).unwrap();
        let execution = Some(Nanos(18 * MS));
        let expected = FittingTask { task: 1, execution, period: None };
        assert_eq!(found, expected, "a deadline of its own stays");
        // Now each of the two misses, whatever the other does.
        set.tasks[0].deadline = Nanos(MS);
        assert_eq!(fits(&set), None);
    }

    #[test]
    fn a_task_above_is_changed_where_the_one_that_misses_cannot_be() {
        let mut set = paper();
        set.tasks[0].execution = Nanos(8 * MS);
        // Nothing is left for the second, whatever it asks for.
        let found = fits(&set).unwrap();
        let (execution, period) = (Some(Nanos(3_750_000)), Some(Nanos(16_500_000)));
        assert_eq!(found, FittingTask { task: 0, execution, period });
    }

    #[test]
    fn a_period_leaves_priorities_that_were_given_out_by_it_in_their_order() {
        let mut set = paper();
        set.tasks[0].execution = Nanos(8 * MS);
        (set.tasks[1].execution, set.tasks[1].deadline) = (Nanos(30 * MS), Nanos(100 * MS));
        let stated = of(&set, Policy::FixedPriority);
        let by_period = Asked { assignment: RM, ..stated };
        let period = |asked: &Asked<'_>| predict(asked).unwrap().fits.unwrap().period;
        assert_eq!(period(&stated), Some(Nanos(88 * MS)));
        assert_eq!(period(&by_period), None, "33 ms are not enough");
    }

    /// Sets of up to five tasks, the most urgent first, that load the CPU with all there is and more.
    fn sets() -> impl Strategy<Value = OfSet> {
        let task = (1_u64..40, 5_u64..100, 50_u64..150, 0_u64..4, 0_u64..8, any::<bool>());
        proptest::collection::vec(task, 1..6).prop_map(|drawn| {
            let many = drawn.len() as u32;
            let tasks = drawn.into_iter().enumerate().map(|(at, drawn)| {
                let (execution, period, deadline, jitter, blocking, implicit) = drawn;
                let deadline = if implicit { period } else { (period * deadline / 100).max(1) };
                Task {
                    priority: many - at as u32,
                    deadline: Nanos(deadline),
                    jitter: Nanos(jitter),
                    blocking: Nanos(blocking),
                    ..Task::new(at.to_string(), Nanos(execution), Nanos(period))
                }
            });
            let tasks: Vec<Task> = tasks.collect();
            let threads = (0..tasks.len()).collect();
            OfSet { tasks, threads, left_out: Vec::new(), cut: Vec::new() }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn with_the_time_that_is_told_all_deadlines_are_met_and_with_the_next_one_not(
            mut set in sets(),
            by_period in any::<bool>(),
        ) {
            let assignment = RM.filter(|_| by_period);
            if by_period {
                assign(&mut set.tasks, Assignment::RateMonotonic);
            }
            let answer = |tasks: &OfSet| {
                predict(&Asked {
                    tasks,
                    policy: Policy::FixedPriority,
                    assignment,
                    overheads: None,
                    delays: &[],
                    simulation: None,
                    limit: cbs::Limit::LINUX,
                })
                .unwrap()
            };
            let feasible = |task: usize, change: &dyn Fn(&mut Task)| {
                let mut set = set.clone();
                change(&mut set.tasks[task]);
                // As somebody who changes it would ask again.
                if by_period {
                    assign(&mut set.tasks, Assignment::RateMonotonic);
                }
                answer(&set).feasible == Some(true)
            };
            let now = answer(&set);
            let Some(found) = now.fits else {
                for task in 0..set.tasks.len() {
                    let least = |of: &mut Task| of.execution = Nanos(1);
                    prop_assert!(now.feasible != Some(false) || !feasible(task, &least), "{}", task);
                }
                return Ok(());
            };
            prop_assert_eq!(now.feasible, Some(false));
            let feasible = |change: &dyn Fn(&mut Task)| feasible(found.task as usize, change);
            if let Some(Nanos(most)) = found.execution {
                prop_assert!(feasible(&|task| task.execution = Nanos(most)), "{:?}", found);
                prop_assert!(!feasible(&|task| task.execution = Nanos(most + 1)), "{:?}", found);
            }
            if let Some(Nanos(least)) = found.period {
                let with = |ns: u64| {
                    feasible(&|task| {
                        if task.deadline == task.period {
                            task.deadline = Nanos(ns);
                        }
                        task.period = Nanos(ns);
                    })
                };
                prop_assert!(with(least), "{:?}", found);
                prop_assert!(!with(least - 1), "{:?}", found);
            }
        }
    }
}
