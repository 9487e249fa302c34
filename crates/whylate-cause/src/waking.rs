//! What a late wake-up waited for before the thread could run.
//!
//! A dispatch gap begins at the instant at which the thread's timer was to fire. Until the kernel
//! records that it woke the thread, whoever had the CPU had it rightly: the wake-up itself was
//! late. On an idle CPU that is the exit from idle, the hardware's and the host's part and the
//! kernel's own up to the switch away from its idle thread; on a busy one the timer's interrupt had
//! not come. Where the kernel may let a timer wait to save wake-ups, it is late until that slack is
//! over, also on an idle CPU. Interrupts keep their names. After the wake-up, another thread's time is
//! that thread's.
//!
//! Says nothing where the trace lost events: the wake-up may be among them.

use whylate_model::cause::{Cause, PriorityClass};
use whylate_model::event::{Event, EventKind};
use whylate_model::gap::{Gap, GapKind};
use whylate_model::{Pid, Ticks};

use crate::overlay::{Claim, Piece, lay};
use crate::split::{Setting, Span};

/// Pieces of a wake-up are merged across what they replace; ids of the walk count from 1.
const TIMER_LATE: u32 = u32::MAX;
const IDLE_EXIT: u32 = u32::MAX - 1;

/// Names what came before the thread's wake-up in a dispatch gap; `followed` are the events along
/// the thread, in time order.
pub(crate) fn name_wake_up(
    pieces: &mut Vec<Piece>,
    gap: &Gap,
    followed: &[&Event],
    setting: &Setting<'_>,
    lost: &[Span],
) {
    let (late, idle) = (Claim::Named(Cause::TimerLate, None), Claim::Named(Cause::IdleExit, None));
    if gap.kind == GapKind::LateTimer {
        lay(pieces, (gap.start, gap.end), (&late, TIMER_LATE), |claim| {
            *claim == Claim::Residual || class(claim).is_some()
        });
    }
    if gap.kind != GapKind::Dispatch || !lost.is_empty() {
        return;
    }
    let woken = woken_at(gap, followed, setting).unwrap_or(gap.start);
    let may_fire = (gap.start + setting.slack).min(woken);
    lay(pieces, (gap.start, may_fire), (&late, TIMER_LATE), |claim| class(claim).is_some());
    lay(pieces, (gap.start, woken), (&late, TIMER_LATE), |claim| {
        class(claim).is_some_and(|class| class != PriorityClass::Idle)
    });
    let left_idle = followed.iter().find(|event| matches!(event.kind, EventKind::Switch { .. }));
    let left_idle = left_idle.map_or(woken, |event| event.ticks).max(woken);
    lay(pieces, (gap.start, left_idle), (&idle, IDLE_EXIT), |claim| {
        class(claim) == Some(PriorityClass::Idle)
    });
}

/// When the kernel woke the thread; none where that was before the gap.
fn woken_at(gap: &Gap, followed: &[&Event], setting: &Setting<'_>) -> Option<Ticks> {
    let within = |event: &&Event| gap.start <= event.ticks && event.ticks <= gap.end;
    let here = followed.iter().copied().filter(|event| wakes(event, setting.own));
    let elsewhere = setting.sends.iter().filter(|event| wakes(event, setting.own));
    here.chain(elsewhere).filter(within).map(|event| event.ticks).min()
}

fn wakes(event: &Event, own: Pid) -> bool {
    matches!(&event.kind, EventKind::Wakeup { task, .. } if task.pid == own)
}

fn class(claim: &Claim) -> Option<PriorityClass> {
    match claim {
        Claim::Named(Cause::Thread { class, .. }, _) => Some(*class),
        _ => None,
    }
}
