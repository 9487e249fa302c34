//! Of a gap, the time that the kernel's clock of the thread counts as the thread's own.
//!
//! Gap accounting takes the whole gap as not received. The kernel's accounting goes on in it while
//! the thread is current: in interrupts, on the way into the kernel and out of it. Where a thread
//! is woken and the CPU is given to it at once, the scheduler does not read its clock a second time
//! (`rq_clock_skip_update`), and charges it from its wake-up on; the thread that it takes the CPU
//! from is charged up to there.

use whylate_model::event::{Event, EventKind};
use whylate_model::gap::{Gap, GapKind};
use whylate_model::{Pid, Ticks, TicksDelta};

/// Ticks of the gap that are charged to thread `own`, by the events inside it, in time order.
#[must_use]
pub fn own_time(gap: &Gap, own: Pid, events: &[Event]) -> TicksDelta {
    // A late wake-up begins while the thread is off the CPU.
    let away = matches!(gap.kind, GapKind::Dispatch | GapKind::LateTimer);
    let mut since = (!away).then_some(gap.start);
    let mut woken: Option<(Pid, Ticks)> = None;
    let mut total = 0;
    for event in events {
        match &event.kind {
            EventKind::Wakeup { task, .. } => woken = Some((task.pid, event.ticks)),
            // A CPU that has had another interrupt since was not given to it at once.
            EventKind::VectorEntry { .. } => woken = None,
            EventKind::Switch { from, from_runnable, to } => {
                // A thread that gave the CPU up itself has had the clock read when it did.
                let handed = match woken.take() {
                    Some((pid, at)) if pid == to.pid && *from_runnable => at,
                    _ => event.ticks,
                };
                if from.pid == own
                    && let Some(from) = since.take()
                {
                    total += handed.since(from).0;
                }
                if to.pid == own {
                    since = Some(handed);
                }
            }
            _ => {}
        }
    }
    if let Some(from) = since {
        total += gap.end.since(from).0;
    }
    TicksDelta(total)
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;
    use whylate_model::event::Task;
    use whylate_model::gap::Evidence;

    use super::*;

    const OWN: i32 = 7;

    fn gap(kind: GapKind) -> Gap {
        let (start, end) = (Ticks(100), Ticks(200));
        let (cpu_before, cpu_after) = (CpuId(1), CpuId(1));
        let evidence = Evidence::default();
        Gap { start, end, resumed: end, cpu_before, cpu_after, kind, evidence }
    }

    fn task(pid: i32) -> Task {
        Task { pid: Pid(pid), comm: String::new(), prio: 120 }
    }

    fn event(ticks: u64, kind: EventKind) -> Event {
        Event { ticks: Ticks(ticks), cpu: CpuId(1), pid: Pid(0), kind }
    }

    fn switch(ticks: u64, from: i32, from_runnable: bool, to: i32) -> Event {
        event(ticks, EventKind::Switch { from: task(from), from_runnable, to: task(to) })
    }

    fn vector() -> EventKind {
        EventKind::VectorEntry { name: "local_timer".into(), vector: 236 }
    }

    fn wakeup(ticks: u64, pid: i32) -> Event {
        event(ticks, EventKind::Wakeup { task: task(pid), target: CpuId(1) })
    }

    #[test]
    fn a_gap_without_a_switch_is_all_the_thread_s_own() {
        assert_eq!(own_time(&gap(GapKind::Interruption), Pid(OWN), &[]), TicksDelta(100));
    }

    #[test]
    fn a_sleep_is_own_up_to_the_switch_and_a_late_wake_up_from_the_wake_up_on() {
        let out = [switch(110, OWN, false, 0)];
        assert_eq!(own_time(&gap(GapKind::Sleep), Pid(OWN), &out), TicksDelta(10));
        let back = [wakeup(170, OWN), switch(180, 0, true, OWN)];
        assert_eq!(own_time(&gap(GapKind::Dispatch), Pid(OWN), &back), TicksDelta(30));
    }

    #[test]
    fn a_thread_that_waits_behind_another_is_charged_from_the_switch_on() {
        let events = [wakeup(110, OWN), switch(180, 9, false, OWN)];
        assert_eq!(own_time(&gap(GapKind::Dispatch), Pid(OWN), &events), TicksDelta(20));
    }

    #[test]
    fn a_thread_that_is_woken_and_not_let_run_is_charged_from_the_switch_on() {
        let timer = |ticks| event(ticks, vector());
        let events = [timer(105), wakeup(110, OWN), timer(170), switch(180, 0, true, OWN)];
        assert_eq!(own_time(&gap(GapKind::Dispatch), Pid(OWN), &events), TicksDelta(20));
    }

    #[test]
    fn a_preempted_thread_is_charged_up_to_the_wake_up_of_the_other() {
        let events = [wakeup(115, 9), switch(120, OWN, true, 9), switch(190, 9, false, OWN)];
        assert_eq!(own_time(&gap(GapKind::Interruption), Pid(OWN), &events), TicksDelta(25));
    }

    #[test]
    fn the_wake_up_of_a_third_thread_hands_the_cpu_to_nobody() {
        let events = [wakeup(115, 8), switch(120, OWN, true, 9), switch(190, 9, false, OWN)];
        assert_eq!(own_time(&gap(GapKind::Interruption), Pid(OWN), &events), TicksDelta(30));
    }

    #[test]
    fn of_a_late_wake_up_without_a_switch_nothing_is_the_thread_s_own() {
        for kind in [GapKind::Dispatch, GapKind::LateTimer] {
            assert_eq!(own_time(&gap(kind), Pid(OWN), &[]), TicksDelta(0), "{kind:?}");
        }
    }
}
