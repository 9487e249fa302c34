//! What a gap is named after.
//!
//! METHOD: the cause of a gap is the part with the largest share. Parts of equal cause are added
//! up first. One refinement: the residuals are shown as parts, but a gap with a named part is
//! named after the largest *named* part as long as no residual is longer than
//! [`Context::residual_limit`]. The cost of entering and leaving the kernel belongs to what made
//! it necessary, and on a virtual machine it is often larger than the handler itself: without the
//! refinement, timer interrupts there would be called entry residuals.
//!
//! Above that limit a residual is no longer the price of an event beside it ([`unclaimed`]): a gap
//! of 60 ms that ends with a timer interrupt of 10 us was not taken by the timer. It is the host's
//! way to stop a CPU; the tick that came due meanwhile fires when it goes on.

use whylate_model::TicksDelta;
use whylate_model::cause::{Cause, Part};

use crate::context::Context;

/// Is this a stretch beside events that no event claims?
#[must_use]
pub fn is_residual(cause: &Cause) -> bool {
    matches!(cause, Cause::EntryResidual | Cause::InnerResidual | Cause::ExitResidual)
}

/// Did another thread have the CPU, of the set that is measured or not?
#[must_use]
pub fn is_thread(cause: &Cause) -> bool {
    matches!(cause, Cause::Thread { .. } | Cause::Member { .. })
}

/// Does a kernel event say so, at both ends of the stretch?
#[must_use]
pub fn is_named_by_events(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Interrupt { .. }
            | Cause::Softirq { .. }
            | Cause::Thread { .. }
            | Cause::Member { .. }
            | Cause::Whylate
            | Cause::PageFault
            | Cause::Nmi
            | Cause::Signal { .. }
            | Cause::TimerLate
            | Cause::IdleExit
    )
}

/// What a residual of this length is.
///
/// Up to the limit it is what it is called. Above it nothing ran there that the kernel records, so
/// it is what a gap without any event is (R8). On bare metal only before the first event: behind
/// one the kernel may do work for the thread that it records nowhere, such as moving its pages.
#[must_use]
pub fn unclaimed(residual: Cause, length: TicksDelta, context: &Context) -> Cause {
    if length <= context.residual_limit {
        return residual;
    }
    match (context.virtualised, &residual) {
        (true, _) => Cause::Host,
        (false, Cause::EntryResidual) => Cause::Firmware,
        (false, _) => residual,
    }
}

/// Name under which threads and interrupts are added up that found a list of names full.
pub const OTHERS: &str = "(others)";

/// The same kind of cause under the name [`OTHERS`]; names are all that can be endless.
#[must_use]
pub fn without_name(cause: &Cause) -> Cause {
    match cause {
        Cause::Thread { class, .. } => Cause::Thread { comm: OTHERS.to_owned(), class: *class },
        Cause::Member { class, .. } => Cause::Member { comm: OTHERS.to_owned(), class: *class },
        Cause::Interrupt { .. } => Cause::Interrupt { name: OTHERS.to_owned() },
        other => other.clone(),
    }
}

/// The cause of a gap with these parts; `Unknown` when there are none.
#[must_use]
pub fn cause(parts: &[Part], context: &Context) -> Cause {
    let mut sums: Vec<(&Cause, TicksDelta)> = Vec::new();
    for part in parts {
        match sums.iter_mut().find(|(cause, _)| *cause == &part.cause) {
            Some((_, sum)) => *sum = *sum + part.length,
            None => sums.push((&part.cause, part.length)),
        }
    }
    // Of equals, the one that came first.
    let largest = |among: &dyn Fn(&Cause) -> bool| {
        sums.iter().rev().filter(|(cause, _)| among(cause)).max_by_key(|(_, sum)| *sum).copied()
    };
    let named = largest(&|cause| !is_residual(cause));
    let residual = largest(&is_residual);
    let of_gap = match (named, residual) {
        (Some(named), Some(residual)) => {
            let excessive = residual.1 > context.residual_limit && residual.1 > named.1;
            Some(if excessive { residual } else { named })
        }
        (named, residual) => named.or(residual),
    };
    of_gap.map_or(Cause::Unknown, |(cause, _)| cause.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use whylate_model::{Hertz, Ticks};

    fn part(length: u64, cause: Cause) -> Part {
        Part { start: Ticks(0), length: TicksDelta(length), cause, sender: None }
    }

    fn timer() -> Cause {
        Cause::Interrupt { name: "local_timer".into() }
    }

    /// One tick is one nanosecond; the limit is 50 us.
    fn virtual_machine() -> Context {
        Context::new(true, Hertz(1e9))
    }

    #[test]
    fn dear_entries_of_the_kernel_do_not_take_the_name_from_the_handler() {
        let parts = [part(9_000, Cause::EntryResidual), part(5_000, timer())];
        assert_eq!(cause(&parts, &virtual_machine()), timer());
    }

    #[test]
    fn a_long_stretch_before_the_first_event_is_not_the_work_of_that_event() {
        let parts = [part(60_000_000, Cause::EntryResidual), part(10_000, timer())];
        assert_eq!(cause(&parts, &virtual_machine()), Cause::EntryResidual);
    }

    #[test]
    fn a_residual_over_the_limit_still_has_to_be_the_largest() {
        let parts = [part(60_000, Cause::ExitResidual), part(70_000, timer())];
        assert_eq!(cause(&parts, &virtual_machine()), timer());
    }

    #[test]
    fn a_residual_takes_the_name_only_beyond_the_limit_and_beyond_every_named_part() {
        for (residual, named, takes_it) in [
            (50_000, 10_000, false),
            (50_001, 10_000, true),
            (60_000, 60_000, false),
            (60_001, 60_000, true),
        ] {
            let parts = [part(residual, Cause::InnerResidual), part(named, timer())];
            let expected = if takes_it { Cause::InnerResidual } else { timer() };
            assert_eq!(cause(&parts, &virtual_machine()), expected, "{residual} {named}");
        }
    }

    #[test]
    fn each_cause_is_a_thread_a_residual_or_named_by_events_or_none_of_these() {
        let class = whylate_model::cause::PriorityClass::Ordinary;
        let thread = Cause::Thread { comm: "a".to_owned(), class };
        let member = Cause::Member { comm: "a".to_owned(), class };
        for (cause, thread, residual, named) in [
            (thread.clone(), true, false, true),
            (member.clone(), true, false, true),
            (timer(), false, false, true),
            (Cause::Whylate, false, false, true),
            (Cause::EntryResidual, false, true, false),
            (Cause::Host, false, false, false),
            (Cause::TraceLost, false, false, false),
        ] {
            let found = (is_thread(&cause), is_residual(&cause), is_named_by_events(&cause));
            assert_eq!(found, (thread, residual, named), "{cause}");
        }
        let others = OTHERS.to_owned();
        for (cause, expected) in [
            (thread, Cause::Thread { comm: others.clone(), class }),
            (member, Cause::Member { comm: others.clone(), class }),
            (timer(), Cause::Interrupt { name: others }),
            (Cause::Host, Cause::Host),
        ] {
            assert_eq!(without_name(&cause), expected);
        }
    }

    #[test]
    fn a_long_residual_is_the_hosts_and_on_bare_metal_the_firmwares_before_the_first_event() {
        let (metal, guest) = (Context::new(false, Hertz(1e9)), virtual_machine());
        let named =
            |residual: Cause, length, on: &Context| unclaimed(residual, TicksDelta(length), on);
        for residual in [Cause::EntryResidual, Cause::InnerResidual, Cause::ExitResidual] {
            assert_eq!(named(residual.clone(), 50_000, &guest), residual);
            assert_eq!(named(residual.clone(), 50_001, &guest), Cause::Host);
            assert_eq!(named(residual.clone(), 10_000, &metal), residual);
        }
        assert_eq!(named(Cause::EntryResidual, 10_001, &metal), Cause::Firmware);
        assert_eq!(named(Cause::ExitResidual, 10_001, &metal), Cause::ExitResidual);
    }

    #[test]
    fn parts_of_equal_cause_are_added_up() {
        let parts = [part(6, timer()), part(10, Cause::PageFault), part(6, timer())];
        assert_eq!(cause(&parts, &virtual_machine()), timer());
    }

    #[test]
    fn of_equal_shares_the_earlier_names_the_gap() {
        let parts = [part(5, Cause::Nmi), part(5, timer())];
        assert_eq!(cause(&parts, &virtual_machine()), Cause::Nmi);
    }

    #[test]
    fn with_nothing_but_residuals_the_largest_is_the_cause() {
        let parts = [part(5, Cause::EntryResidual), part(6, Cause::ExitResidual)];
        assert_eq!(cause(&parts, &virtual_machine()), Cause::ExitResidual);
        assert_eq!(cause(&[], &virtual_machine()), Cause::Unknown);
    }
}
