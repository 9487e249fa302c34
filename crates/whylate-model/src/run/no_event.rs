//! What time without a kernel event is called: the hypervisor's, where the steal time that was counted bears
//! that out, and nobody's else.

use crate::cause::{Cause, STORED_NO_EVENT};
use crate::prediction::{
    MachineCause, MeasuredTask, OverCause, PredictedTask, Prediction, WorstJobGap,
};
use crate::run::Run;
use crate::threads::Deadlines;
use crate::wake::WakeSummary;

/// Steal time bears a loss out when it makes up at least this part of it. (It is counted in whole clock
/// ticks, and what a hypervisor takes in shorter pieces it need not count.)
pub const BORNE_OUT: f64 = 0.5;

impl Run {
    /// What no kernel event accounts for, under the name that this run bears out.
    #[must_use]
    pub fn no_event(&self) -> Cause {
        // Each is there once for all CPUs, as a rule, and once for its own.
        let whole = self.causes.iter().any(|total| total.cpu.is_none());
        let counted = self.causes.iter().filter(|total| total.cpu.is_none() == whole);
        let lost: f64 =
            counted.filter(|total| is_no_event(&total.cause)).map(|total| total.lost_ns).sum();
        let borne_out = |steal: f64| lost > 0.0 && steal >= BORNE_OUT * lost;
        if self.evidence.steal_ns.is_some_and(borne_out) { Cause::Hypervisor } else { Cause::Host }
    }

    /// The run as reports show it: what no kernel event accounts for has the name that is borne out.
    #[must_use]
    pub fn as_shown(&self) -> Self {
        let name = self.no_event();
        let mut run = self.clone();
        let mut causes: Vec<&mut Cause> = Vec::new();
        causes.extend(run.causes.iter_mut().map(|total| &mut total.cause));
        for gap in &mut run.worst {
            causes.push(&mut gap.cause);
            causes.extend(gap.parts.iter_mut().map(|part| &mut part.cause));
        }
        causes.extend(run.wakes.iter_mut().flat_map(of_wakes));
        let deadlines = run.threads.iter_mut().filter_map(|thread| thread.deadlines.as_mut());
        causes.extend(deadlines.flat_map(of_deadlines));
        let tails = run.flows.iter_mut().filter_map(|flow| flow.tail.as_mut());
        causes.extend(tails.flat_map(|tail| &mut tail.causes).map(|of| &mut of.cause));
        for cause in causes.into_iter().filter(|cause| **cause == Cause::Host) {
            cause.clone_from(&name);
        }
        if let Some(prediction) = &mut run.prediction {
            predicted(prediction, &name);
        }
        run
    }
}

fn is_no_event(cause: &Cause) -> bool {
    matches!(cause, Cause::Host | Cause::Hypervisor)
}

fn of_wakes(of: &mut WakeSummary) -> Vec<&mut Cause> {
    let latest = of.latest.iter_mut().flat_map(|wake| {
        let parts = wake.parts.iter_mut().map(|part| &mut part.cause);
        std::iter::once(&mut wake.cause).chain(parts)
    });
    of.causes.iter_mut().map(|of| &mut of.cause).chain(latest).collect()
}

fn of_deadlines(of: &mut Deadlines) -> Vec<&mut Cause> {
    let first = of.first.iter_mut().flat_map(|miss| {
        let gap = miss.gap.as_mut().map(|gap| &mut gap.cause);
        miss.cause.as_mut().into_iter().chain(gap)
    });
    of.causes.iter_mut().map(|of| &mut of.cause).chain(first).collect()
}

/// The names that a prediction holds as they are stored.
fn predicted(of: &mut Prediction, name: &Cause) {
    let (text, machine) = match name {
        Cause::Hypervisor => (name.to_string(), MachineCause::Hypervisor),
        other => (other.to_string(), MachineCause::NoEvent),
    };
    let causes = of.tasks.iter_mut().flat_map(PredictedTask::machine_causes);
    causes.filter(|cause| **cause == MachineCause::NoEvent).for_each(|cause| *cause = machine);
    for measured in of.tasks.iter_mut().filter_map(|task| task.measured.as_mut()) {
        let stored = measured_names(measured).into_iter().filter(|cause| *cause == STORED_NO_EVENT);
        stored.for_each(|cause| text.clone_into(cause));
    }
    if let Some(again) = &mut of.with_measured_jitter {
        predicted(again, name);
    }
}

fn measured_names(of: &mut MeasuredTask) -> Vec<&mut String> {
    let MeasuredTask { worst, over_by, over_first, .. } = of;
    let by = over_by.iter_mut().filter_map(|of| match &mut of.cause {
        OverCause::Named { cause } => Some(cause),
        _ => None,
    });
    let worst = worst.iter_mut().filter_map(|of| of.gap.as_mut());
    let gaps = worst.chain(over_first.iter_mut().filter_map(|of| of.gap.as_mut()));
    by.chain(gaps.filter_map(|WorstJobGap { cause, .. }| cause.as_mut())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunDir;

    fn kept() -> Run {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/runs/rta");
        RunDir::open(path).unwrap().read_run().unwrap()
    }

    fn lost(run: &Run) -> f64 {
        let whole = run.causes.iter().filter(|total| total.cpu.is_none());
        whole.filter(|total| total.cause == Cause::Host).map(|total| total.lost_ns).sum()
    }

    #[test]
    fn time_without_an_event_is_the_hypervisors_only_where_steal_makes_up_half_of_it() {
        let mut run = kept();
        let lost = lost(&run);
        assert!(lost > 0.0);
        for (steal, name) in [
            (None, "no kernel event"),
            (Some(0.0), "no kernel event"),
            (Some(0.42 * lost), "no kernel event"),
            (Some(0.5 * lost), "hypervisor"),
        ] {
            run.evidence.steal_ns = steal;
            assert_eq!(run.no_event().to_string(), name, "{steal:?}");
            let shown = run.as_shown();
            assert_eq!(shown.no_event(), run.no_event(), "shown twice");
            assert!(shown.causes.iter().any(|total| total.cause.to_string() == name));
            let text = format!("{:?}", shown.prediction);
            assert!(!text.contains("\"host\"") && text.contains(name), "{text}");
        }
    }

    #[test]
    fn a_kind_that_was_stored_as_host_is_still_read() {
        let json = serde_json::to_string(&Cause::Host).unwrap();
        assert_eq!(json, r#"{"cause":"host"}"#);
        assert_eq!(serde_json::from_str::<Cause>(&json).unwrap().to_string(), "no kernel event");
        assert_eq!(Cause::Host.stored(), "host");
    }
}
