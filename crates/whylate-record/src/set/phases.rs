//! What came of the phases of programs, and what each kind of step received of the whole.

use whylate_model::run::Closure;
use whylate_model::threads::{ActivationSummary, PhaseSummary, RuntimeSummary, StepTime};
use whylate_model::{Hertz, Nanos, TicksDelta};
use whylate_rta::task_set::{Phase, Step, TaskSet, Thread};
use whylate_threads::ledger::{Account, PhaseAccount};

/// The phases of thread `index`; none where it has no program.
pub(super) fn of(
    set: &TaskSet,
    index: usize,
    account: Option<&Account>,
    rate: Hertz,
) -> Vec<PhaseSummary> {
    let phases = set.threads[index].program.iter().flat_map(|program| &program.phases);
    let accounts = account.into_iter().flat_map(|account| &account.phases);
    phases
        .zip(accounts)
        .map(|(phase, of)| summary(phase, of, shares(set, index, phase), rate))
        .collect()
}

/// Does a timer of this phase belong to other threads, too?
fn shares(set: &TaskSet, index: usize, phase: &Phase) -> bool {
    let timers = |step: &Step| match step {
        Step::Timer { name, .. } => Some(name.clone()),
        _ => None,
    };
    let own: Vec<String> = phase.steps.iter().filter_map(timers).collect();
    let others = set.threads.iter().enumerate().filter(|(other, _)| *other != index);
    others
        .flat_map(|(_, thread)| thread.written_steps())
        .filter_map(timers)
        .any(|timer| own.contains(&timer))
}

fn summary(phase: &Phase, of: &PhaseAccount, shared: bool, rate: Hertz) -> PhaseSummary {
    let mean = |ticks: TicksDelta| {
        (of.passes > 0).then(|| ticks.0 as f64 / rate.0 * 1e9 / of.passes as f64)
    };
    let period = phase.period();
    let timers = of.timers;
    PhaseSummary {
        name: phase.name.clone(),
        passes: of.passes,
        run_asked: phase.run(),
        run_ns: mean(of.run),
        runtime: (phase.runtime().0 > 0).then(|| RuntimeSummary {
            asked: phase.runtime(),
            lasted_ns: mean(of.busy.elapsed),
            received_ns: mean(of.busy.received),
            longest_over: of.busy.over.to_nanos(rate),
        }),
        period_asked: (period.0 > 0).then_some(period),
        activations: (period.0 > 0 && !shared).then(|| ActivationSummary {
            count: timers.count,
            distance_ns: (timers.count > 0).then(|| timers.between.0 as f64 / timers.count as f64),
            put_off: timers.put_off,
            put_off_by: timers.put_off_by,
            last_late: timers.last_late,
        }),
        length_asked: phase.length(),
        period_ns: mean(of.elapsed),
        lost_ns: mean(of.lost),
    }
}

/// What the steps of a program received of what its thread received, and why that cannot be where it
/// cannot.
pub(super) fn steps(
    thread: &Thread,
    account: Option<&Account>,
    received: TicksDelta,
    rate: Hertz,
) -> (Option<StepTime>, Option<Closure>) {
    let Some(account) = account.filter(|_| thread.program.is_some()) else { return (None, None) };
    let sum = |of: fn(&PhaseAccount) -> TicksDelta| -> TicksDelta {
        account.phases.iter().map(of).fold(TicksDelta(0), |sum, more| sum + more)
    };
    let (run, runtime) = (sum(|of| of.run), sum(|of| of.busy.received));
    let whole = received.to_nanos(rate);
    let [run_ns, runtime_ns] = [run, runtime].map(|ticks| ticks.to_nanos(rate));
    let other = Nanos(whole.0.saturating_sub(run_ns.0.saturating_add(runtime_ns.0)));
    let broken = (run + runtime > received).then(|| {
        Closure::Broken(format!(
            "its steps received {} and the thread {whole}",
            (run + runtime).to_nanos(rate)
        ))
    });
    (Some(StepTime { run: run_ns, runtime: runtime_ns, other }), broken)
}

#[cfg(test)]
mod tests {
    use whylate_rta::rtapp;
    use whylate_threads::ledger::{Activations, Busy};

    use super::*;

    const MS: u64 = 1_000_000;

    fn set() -> TaskSet {
        let text = r#"{ "tasks" : {
            "a" : { "phases" : {
                "p" : { "run" : 1000, "runtime" : 2000, "sleep" : 7000 },
                "q" : { "run" : 1000, "timer" : { "ref" : "t", "period" : 5000 } },
                "r" : { "run" : 1000, "timer" : { "ref" : "both", "period" : 5000 } } } },
            "b" : { "run" : 500, "timer" : { "ref" : "both", "period" : 5000 } } } }"#;
        rtapp::parse(text).unwrap().set
    }

    fn account() -> Account {
        let busy = Busy {
            elapsed: TicksDelta(9 * MS),
            received: TicksDelta(4 * MS),
            over: TicksDelta(3 * MS),
        };
        let timers = Activations {
            count: 4,
            between: Nanos(22 * MS),
            put_off: 1,
            put_off_by: Nanos(2 * MS),
            last_late: Nanos(7),
        };
        let of = |busy| PhaseAccount {
            passes: 2,
            run: TicksDelta(2 * MS),
            busy,
            elapsed: TicksDelta(30 * MS),
            lost: TicksDelta(6 * MS),
            timers,
        };
        let phases = vec![of(busy), of(Busy::default()), of(Busy::default())];
        Account { phases, ..Account::default() }
    }

    #[test]
    fn what_was_asked_for_stands_beside_what_came_of_it() {
        let (set, account) = (set(), account());
        let found = of(&set, 0, Some(&account), Hertz(1e9));
        let [p, q, r] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((p.run_asked, p.length_asked), (Nanos(MS), Some(Nanos(10 * MS))));
        let runtime = p.runtime.unwrap();
        assert_eq!((runtime.asked, runtime.longest_over), (Nanos(2 * MS), Nanos(3 * MS)));
        assert_eq!((runtime.lasted_ns, runtime.received_ns), (Some(4.5e6), Some(2e6)));
        assert_eq!((p.lost_ns, p.activations), (Some(3e6), None));
        assert_eq!((q.runtime, q.length_asked), (None, None));
        let activations = q.activations.unwrap();
        assert_eq!((activations.count, activations.distance_ns), (4, Some(5.5e6)));
        assert_eq!((activations.put_off, activations.put_off_by), (1, Nanos(2 * MS)));
        assert_eq!(activations.last_late, Nanos(7));
        assert_eq!((r.period_asked, r.activations), (Some(Nanos(5 * MS)), None), "two move it");
    }

    #[test]
    fn what_steps_received_adds_up_to_what_the_thread_did_or_is_broken() {
        let (set, account) = (set(), account());
        let of = |ticks| steps(&set.threads[0], Some(&account), TicksDelta(ticks), Hertz(1e9));
        let (found, broken) = of(11 * MS);
        let expected = StepTime { run: Nanos(6 * MS), runtime: Nanos(4 * MS), other: Nanos(MS) };
        assert_eq!((found, broken), (Some(expected), None));
        let (_, broken) = of(10 * MS - 1);
        assert!(matches!(broken, Some(Closure::Broken(_))), "{broken:?}");
        assert_eq!(steps(&Thread::new("c"), Some(&account), TicksDelta(1), Hertz(1e9)).0, None);
    }
}
