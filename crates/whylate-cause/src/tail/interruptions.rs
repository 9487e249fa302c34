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
}
