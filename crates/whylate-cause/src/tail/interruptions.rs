//! From the attributed gap of one end to what took it.
//!
//! - What the thread did itself is no interruption: its own system calls, and the soft interrupts
//!   that a sending call runs on its way. They are told from those behind a hard interrupt by what the
//!   kernel recorded last before them.
//! - A gap without any event that is no longer than the price of entering the kernel is a system call
//!   that took a little longer, not the host's.
//! - The price of entering and leaving the kernel, short residuals, goes to what the gap is named
//!   after.
//! - From the moment a thread left the CPU and could not run until it was woken, nobody took the CPU
//!   from it, whoever had it: it was stopped or asleep.

use whylate_model::cause::{Cause, Part};
use whylate_model::event::{Event, EventKind};
use whylate_model::{Pid, Ticks, TicksDelta};

use super::Taken;
use crate::attribute::{Attributed, Basis};
use crate::context::Context;
use crate::naming;

/// A soft interrupt so soon after a hard one, or after another soft one behind it, belongs to that.
const BEHIND_NS: f64 = 5_000.0;

/// What took the time of a gap of thread `own`, in order and without what nobody took.
#[must_use]
pub fn taken(gap: &Attributed, own: Pid, context: &Context) -> Vec<Taken> {
    if gap.basis != Basis::Thread
        && gap.events.is_empty()
        && gap.gap.length() <= context.residual_limit
    {
        return Vec::new();
    }
    let absent = absences(gap, own);
    let parts: Vec<Part> = gap.parts.iter().flat_map(|part| apart(part, &absent)).collect();
    let own_work = |part: &Part| is_own(part, gap, context);
    let name = naming::cause(&parts, context);
    let largest_is_own = parts.iter().any(|part| part.cause == name && own_work(part));
    let mut taken: Vec<Taken> = Vec::new();
    for part in &parts {
        let residual = naming::is_residual(&part.cause);
        if own_work(part) || (residual && (largest_is_own || naming::is_residual(&name))) {
            continue;
        }
        let cause = if residual { &name } else { &part.cause };
        let (from, to) = (part.start, part.start + part.length);
        match taken.last_mut() {
            Some(last) if last.to == from && last.cause == *cause => last.to = to,
            _ => taken.push(Taken { from, to, cause: cause.clone() }),
        }
    }
    taken
}

/// From when to when the thread could not run.
fn absences(gap: &Attributed, own: Pid) -> Vec<(Ticks, Ticks)> {
    let mut absent = Vec::new();
    let mut since = None;
    for event in &gap.events {
        match &event.kind {
            EventKind::Switch { from, from_runnable: false, .. } if from.pid == own => {
                since = Some(event.ticks);
            }
            EventKind::Switch { to: task, .. } | EventKind::Wakeup { task, .. }
                if task.pid == own =>
            {
                absent.extend(since.take().map(|since| (since, event.ticks)));
            }
            _ => {}
        }
    }
    absent.extend(since.map(|since| (since, gap.gap.end)));
    absent
}

/// A part without the stretches in which the thread could not run, which are parts of their own.
/// Interrupts keep their names: a thread that is stopped is not the only one they keep waiting.
fn apart(part: &Part, absent: &[(Ticks, Ticks)]) -> Vec<Part> {
    let waits = matches!(part.cause, Cause::Thread { .. } | Cause::Member { .. } | Cause::Whylate)
        || naming::is_residual(&part.cause);
    if !waits || absent.is_empty() {
        return vec![part.clone()];
    }
    let (mut at, end) = (part.start, part.start + part.length);
    let mut parts = Vec::new();
    let mut push = |from: Ticks, to: Ticks, cause: &Cause| {
        if from < to {
            let length = to.since(from);
            parts.push(Part { start: from, length, cause: cause.clone(), sender: None });
        }
    };
    for (from, to) in absent {
        let (from, to) = ((*from).clamp(at, end.max(at)), (*to).clamp(at, end.max(at)));
        push(at, from, &part.cause);
        push(from, to, &Cause::Stopped);
        at = at.max(to);
    }
    push(at, end, &part.cause);
    parts
}

/// Is it a soft interrupt that the thread's own system call ran?
fn is_own(part: &Part, gap: &Attributed, context: &Context) -> bool {
    let Cause::Softirq { .. } = part.cause else { return false };
    let near = TicksDelta((BEHIND_NS * context.hz.0 / 1e9) as u64);
    let entered = |event: &Event| {
        event.ticks == part.start && matches!(event.kind, EventKind::SoftirqEntry { .. })
    };
    let Some(mut at) = gap.events.iter().position(entered) else { return false };
    while let Some(before) = at.checked_sub(1) {
        let (event, this) = (&gap.events[before], &gap.events[at]);
        if this.ticks.since(event.ticks) > near
            && matches!(this.kind, EventKind::SoftirqEntry { .. })
        {
            return true;
        }
        match event.kind {
            EventKind::VectorEntry { .. }
            | EventKind::VectorExit { .. }
            | EventKind::HandlerExit { .. }
            | EventKind::Switch { .. } => return false,
            _ => at = before,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use whylate_model::cause::PriorityClass;
    use whylate_model::event::{Softirq, Task};
    use whylate_model::gap::{Evidence, Gap, GapKind};
    use whylate_model::{CpuId, Hertz};

    use super::*;
    use crate::attribute::{Attributor, Limits};
    use crate::context::{Measured, Placement};

    const OWN: Pid = Pid(7);

    fn task(pid: i32, comm: &str, prio: i32) -> Task {
        Task { pid: Pid(pid), comm: comm.to_owned(), prio }
    }

    fn own() -> Task {
        task(7, "spinner", 120)
    }

    fn event(ticks: u64, pid: i32, kind: EventKind) -> Event {
        Event { ticks: Ticks(ticks), cpu: CpuId(0), pid: Pid(pid), kind }
    }

    fn switch(ticks: u64, from: Task, from_runnable: bool, to: Task) -> Event {
        event(ticks, from.pid.0, EventKind::Switch { from, from_runnable, to })
    }

    /// What took the gap from 1000 to `end`, one tick a nanosecond.
    fn of(end: u64, events: &[Event]) -> Vec<(u64, u64, Cause)> {
        of_own(end, events, &[])
    }

    /// The same where these are threads of whylate itself.
    fn of_own(end: u64, events: &[Event], whylate: &[i32]) -> Vec<(u64, u64, Cause)> {
        let mut context = Context::new(true, Hertz(1e9));
        context.own = whylate.iter().map(|pid| Pid(*pid)).collect();
        context.threads.push(Measured {
            index: 0,
            pid: OWN,
            cpu: CpuId(0),
            placement: Placement::Pinned,
            period_ticks: 0.0,
            always_runs: true,
            slack: TicksDelta(0),
        });
        let mut attributor = Attributor::new(context, Limits::default());
        attributor.trace_cpu(CpuId(0));
        let gap = Gap {
            start: Ticks(1_000),
            end: Ticks(end),
            resumed: Ticks(end),
            cpu_before: CpuId(0),
            cpu_after: CpuId(0),
            kind: GapKind::Interruption,
            evidence: Evidence::default(),
        };
        attributor.begin(0, Ticks(0)).unwrap();
        attributor.push_gaps(0, &[gap]).unwrap();
        attributor.push_events(CpuId(0), events.iter().cloned());
        let mut all = Vec::new();
        let mut gaps = Vec::new();
        attributor.finish(&mut |gap| gaps.push(gap));
        for gap in &gaps {
            let taken = taken(gap, OWN, attributor.context());
            all.extend(taken.into_iter().map(|of| (of.from.0, of.to.0, of.cause)));
        }
        all
    }

    fn fifo() -> Cause {
        Cause::Thread { comm: "hog".to_owned(), class: PriorityClass::RealTime }
    }

    #[test]
    fn another_thread_has_the_gap_with_the_price_of_the_switches() {
        let hog = task(9, "hog", 10);
        let events = [switch(1_010, own(), true, hog.clone()), switch(4_000, hog, false, own())];
        assert_eq!(of(4_020, &events), [(1_000, 4_020, fifo())]);
    }

    #[test]
    fn a_thread_of_whylate_is_named_apart_from_those_of_the_system() {
        let (hog, house) = (task(9, "hog", 10), task(12, "whylate", 120));
        let events = [
            switch(1_010, own(), true, house.clone()),
            switch(2_500, house, false, hog.clone()),
            switch(4_000, hog, false, own()),
        ];
        let taken = of_own(4_020, &events, &[12, 13]);
        // The price of the switches belongs to who had the most of the gap.
        let of = |wanted: Cause| -> u64 {
            taken.iter().filter(|(.., cause)| *cause == wanted).map(|(from, to, _)| to - from).sum()
        };
        assert_eq!((of(Cause::Whylate), of(fifo())), (1_490, 1_530), "{taken:?}");
    }

    #[test]
    fn a_stopped_thread_is_not_idle_time_and_not_the_time_of_who_had_the_cpu() {
        let (idle, hog) = (task(0, "swapper/0", 120), task(9, "hog", 10));
        let woken = |ticks| {
            let kind = EventKind::Wakeup { task: own(), target: CpuId(0) };
            event(ticks, 9, kind)
        };
        let events = [
            event(1_002, 7, EventKind::SignalDeliver { signal: 19 }),
            switch(1_010, own(), false, idle.clone()),
            switch(500_000, idle, true, hog.clone()),
            woken(900_000),
            switch(950_000, hog, false, own()),
        ];
        let taken = of(950_010, &events);
        let stopped: u64 = taken
            .iter()
            .filter(|(.., cause)| *cause == Cause::Stopped)
            .map(|(from, to, _)| to - from)
            .sum();
        assert!((898_990..=899_030).contains(&stopped), "{taken:?}");
        assert!(taken.contains(&(900_000, 950_000, fifo())), "woken, and not let: {taken:?}");
    }

    #[test]
    fn own_system_calls_are_no_interruption_and_soft_interrupts_behind_a_hard_one_are() {
        let soft = |ticks, vector| event(ticks, 7, EventKind::SoftirqEntry { vector });
        let left = |ticks, vector| event(ticks, 7, EventKind::SoftirqExit { vector });
        let own_send = [soft(3_000, Softirq::NetRx), left(9_000, Softirq::NetRx)];
        assert_eq!(of(12_000, &own_send), []);
        let name = "local_timer".to_owned();
        let behind = [
            event(3_000, 7, EventKind::VectorEntry { name: name.clone(), vector: 236 }),
            event(5_000, 7, EventKind::VectorExit { name, vector: 236 }),
            soft(5_300, Softirq::Timer),
            left(9_000, Softirq::Timer),
        ];
        let taken = of(12_000, &behind);
        assert!(
            taken.iter().any(|(.., cause)| matches!(cause, Cause::Softirq { .. })),
            "{taken:?}"
        );
        assert_eq!(taken.iter().map(|(from, to, _)| to - from).sum::<u64>(), 11_000, "{taken:?}");
    }

    #[test]
    fn a_gap_without_events_is_the_hosts_only_when_no_system_call_takes_so_long() {
        assert_eq!(of(41_000, &[]), []);
        assert_eq!(of(81_000, &[]), [(1_000, 81_000, Cause::Host)]);
    }

    #[test]
    fn the_longest_price_of_entering_the_kernel_is_no_interruption_and_a_tick_more_is() {
        assert_eq!(of(51_000, &[]), []);
        assert_eq!(of(51_001, &[]), [(1_000, 51_001, Cause::Host)]);
    }

    /// A gap from 1000 on with these parts, and events that the trace had in it.
    fn attributed(parts: &[(u64, Cause)], events: &[Event]) -> Attributed {
        let mut at = 1_000;
        let mut part = |(length, cause): &(u64, Cause)| {
            let start = Ticks(at);
            at += length;
            Part { start, length: TicksDelta(*length), cause: cause.clone(), sender: None }
        };
        let parts: Vec<Part> = parts.iter().map(&mut part).collect();
        Attributed {
            thread: 0,
            gap: crate::planted::gap(1_000, at),
            cause: parts[0].cause.clone(),
            parts,
            rule: None,
            basis: Basis::Trace,
            switched: None,
            switched_out: 0,
            own: TicksDelta(0),
            events: events.to_vec(),
            sends: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    fn of_parts(gap: &Attributed) -> Vec<(u64, u64, Cause)> {
        let taken = taken(gap, OWN, &Context::new(true, Hertz(1e9)));
        taken.into_iter().map(|of| (of.from.0, of.to.0, of.cause)).collect()
    }

    #[test]
    fn a_short_gap_of_a_thread_that_nobody_traced_is_one_all_the_same() {
        let traced = attributed(&[(100, Cause::Host)], &[]);
        assert_eq!(of_parts(&traced), []);
        let untraced = Attributed { basis: Basis::Thread, ..traced };
        assert_eq!(of_parts(&untraced), [(1_000, 1_100, Cause::Host)]);
    }

    #[test]
    fn the_price_of_entering_the_kernel_goes_to_what_a_gap_is_named_after_and_to_nobody_without_that()
     {
        let timer = || Cause::Interrupt { name: "local_timer".to_owned() };
        let point = [event(1_050, 7, EventKind::WorkStart { function: 0 })];
        let residuals = [(50, Cause::EntryResidual), (70, Cause::ExitResidual)];
        assert_eq!(of_parts(&attributed(&residuals, &point)), []);
        let parts = [
            (50, Cause::EntryResidual),
            (90, timer()),
            (10, Cause::InnerResidual),
            (40, Cause::Nmi),
            (20, Cause::ExitResidual),
        ];
        let expected =
            [(1_000, 1_150, timer()), (1_150, 1_190, Cause::Nmi), (1_190, 1_210, timer())];
        assert_eq!(of_parts(&attributed(&parts, &point)), expected);
    }

    #[test]
    fn a_thread_is_absent_from_where_it_slept_until_it_is_woken_or_has_the_cpu_or_the_gap_ends() {
        let hog = || task(9, "hog", 10);
        let woken = |ticks, task| event(ticks, 9, EventKind::Wakeup { task, target: CpuId(0) });
        let absent = |events: &[Event]| -> Vec<(u64, u64)> {
            let gap = attributed(&[(1_000, Cause::Host)], events);
            absences(&gap, OWN).iter().map(|(from, to)| (from.0, to.0)).collect()
        };
        let slept = || switch(1_100, own(), false, hog());
        assert_eq!(absent(&[slept(), woken(1_300, own())]), [(1_100, 1_300)]);
        assert_eq!(absent(&[slept(), switch(1_400, hog(), true, own())]), [(1_100, 1_400)]);
        assert_eq!(absent(&[slept(), woken(1_300, hog())]), [(1_100, 2_000)]);
        let others = [
            switch(1_100, own(), true, hog()),
            switch(1_200, hog(), false, task(8, "third", 120)),
            woken(1_300, own()),
        ];
        assert_eq!(absent(&others), []);
    }

    #[test]
    fn time_in_which_a_thread_could_not_run_is_apart_from_who_had_the_cpu_and_not_from_interrupts()
    {
        let absent =
            [(Ticks(900), Ticks(950)), (Ticks(1_020), Ticks(1_050)), (Ticks(1_090), Ticks(1_200))];
        let apart = |cause: Cause| -> Vec<(u64, u64, Cause)> {
            let part = Part { start: Ticks(1_000), length: TicksDelta(100), cause, sender: None };
            let parts = super::apart(&part, &absent).into_iter();
            parts.map(|part| (part.start.0, part.length.0, part.cause)).collect()
        };
        for waits in [fifo(), Cause::Whylate, Cause::InnerResidual] {
            let expected = [
                (1_000, 20, waits.clone()),
                (1_020, 30, Cause::Stopped),
                (1_050, 40, waits.clone()),
                (1_090, 10, Cause::Stopped),
            ];
            assert_eq!(apart(waits), expected);
        }
        assert_eq!(apart(Cause::Nmi), [(1_000, 100, Cause::Nmi)]);
    }

    #[test]
    fn a_soft_interrupt_is_behind_a_hard_one_within_five_microseconds_and_through_others_of_any_length()
     {
        let exit = |ticks| {
            let name = "local_timer".to_owned();
            event(ticks, 7, EventKind::VectorExit { name, vector: 236 })
        };
        let soft = |ticks| event(ticks, 7, EventKind::SoftirqEntry { vector: Softirq::Timer });
        let left = |ticks| event(ticks, 7, EventKind::SoftirqExit { vector: Softirq::Timer });
        let own_at = |events: &[Event], at: u64, hz: f64| {
            let gap = attributed(&[(90_000, Cause::Host)], events);
            let (start, cause) = (Ticks(at), Cause::Softirq { vector: Softirq::Timer });
            let part = Part { start, length: TicksDelta(5), cause, sender: None };
            is_own(&part, &gap, &Context::new(true, Hertz(hz)))
        };
        assert!(!own_at(&[exit(2_000), soft(7_000)], 7_000, 1e9));
        assert!(own_at(&[exit(2_000), soft(7_001)], 7_001, 1e9));
        assert!(!own_at(&[exit(2_000), soft(12_000)], 12_000, 2e9));
        assert!(own_at(&[exit(2_000), soft(12_001)], 12_001, 2e9));
        let through = [exit(2_000), soft(2_100), left(40_000), soft(40_100)];
        assert!(!own_at(&through, 40_100, 1e9));
        let after = [exit(2_000), soft(2_100), left(40_000), soft(45_001)];
        assert!(own_at(&after, 45_001, 1e9));
        // Nothing hard before it; and what no event began is not the thread's own.
        assert!(own_at(&[left(2_000), soft(2_100)], 2_100, 1e9));
        assert!(!own_at(&[left(2_000), soft(2_100)], 2_200, 1e9));
        let switched = switch(2_000, task(9, "hog", 10), false, own());
        assert!(!own_at(&[switched, soft(2_100)], 2_100, 1e9));
    }
}
