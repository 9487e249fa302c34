//! What a late wake-up waited for before the thread could run.
//!
//! A dispatch gap begins at the instant at which the thread's timer was to fire. Until the kernel
//! records that it woke the thread, whoever had the CPU had it rightly: the wake-up itself was
//! late. On an idle CPU that is the exit from idle, the hardware's and the host's part and the
//! kernel's own up to the switch away from its idle thread; on a busy one the timer's interrupt had
//! not come. On a virtual machine whose busy CPU took no interrupt for longer than any kernel's
//! tick lasts, until that of its own timer came, the host had stopped it. Of an idle CPU nothing
//! tells the host's part. Where the kernel may let a timer wait to save wake-ups, it is late until
//! that slack is over, also on an idle CPU. Interrupts keep their names. After the wake-up, another
//! thread's time is that thread's.
//!
//! Says nothing where the trace lost events: the wake-up may be among them.

use whylate_model::cause::{Cause, PriorityClass};
use whylate_model::event::{Event, EventKind};
use whylate_model::gap::{Gap, GapKind};
use whylate_model::{Nanos, Pid, Ticks};

use crate::overlay::{Claim, Piece, lay};
use crate::split::{Setting, Span};

/// Pieces of a wake-up are merged across what they replace; ids of the walk count from 1.
const TIMER_LATE: u32 = u32::MAX;
const IDLE_EXIT: u32 = u32::MAX - 1;
const STOPPED: u32 = u32::MAX - 2;

/// The longest tick that a kernel can be built with: 100 a second. A CPU that is not idle takes an
/// interrupt of its timer at least as often, or once one is due; the kernel itself keeps interrupts
/// off for far shorter.
const LONGEST_TICK: Nanos = Nanos(10_000_000);

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
    let busy = |claim: &Claim| class(claim).is_some_and(|class| class != PriorityClass::Idle);
    let host = Claim::Named(Cause::Host, None);
    for (from, to) in stopped(gap, followed, woken, setting) {
        lay(pieces, (from, to), (&host, STOPPED), busy);
    }
    lay(pieces, (gap.start, woken), (&late, TIMER_LATE), busy);
    let left_idle = followed.iter().find(|event| matches!(event.kind, EventKind::Switch { .. }));
    let left_idle = left_idle.map_or(woken, |event| event.ticks).max(woken);
    lay(pieces, (gap.start, left_idle), (&idle, IDLE_EXIT), |claim| {
        class(claim) == Some(PriorityClass::Idle)
    });
}

/// Stretches up to the wake-up without any event, longer than any tick, that end with the interrupt of
/// the CPU's own timer; none on bare metal, where there is nobody to stop a CPU, and where the thread
/// changed its CPU on the way.
fn stopped(
    gap: &Gap,
    followed: &[&Event],
    woken: Ticks,
    setting: &Setting<'_>,
) -> Vec<(Ticks, Ticks)> {
    if !setting.context.virtualised || gap.migrated() {
        return Vec::new();
    }
    let longest = LONGEST_TICK.to_ticks(setting.context.hz).0;
    let (mut before, mut found) = (gap.start, Vec::new());
    for event in followed.iter().take_while(|event| event.ticks <= woken) {
        if is_own_timer(event) && event.ticks.since(before).0 > longest {
            found.push((before, event.ticks));
        }
        before = event.ticks;
    }
    found
}

/// The interrupt by which a CPU's own timer tells it the time, tick or not.
fn is_own_timer(event: &Event) -> bool {
    match &event.kind {
        EventKind::VectorEntry { name, .. } => name == "local_timer",
        EventKind::HandlerEntry { name, .. } => name == "arch_timer",
        _ => false,
    }
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
        Claim::Named(Cause::Thread { class, .. } | Cause::Member { class, .. }, _) => Some(*class),
        _ => None,
    }
}
