//! The verdict on a run: can its headline be used, and was a stated limit exceeded?
//!
//! It follows from [`Trust`] and is asked for once everything is there. Whoever adds warnings or series to a
//! run afterwards asks again.

use whylate_model::Nanos;
use whylate_model::run::{Run, RunState, Verdict};
use whylate_model::trust;
use whylate_model::warning::Warning;

use crate::actions::Trigger;

/// A limit that a gap exceeded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exceeded {
    /// The gap.
    pub(crate) by: Trigger,
    /// The limit.
    pub(crate) limit: Nanos,
}

/// The run with its verdict.
pub(crate) fn judged(mut run: Run, tripped: Option<Exceeded>) -> Run {
    judge(&mut run, tripped);
    run
}

/// Judges a run by what it found, whatever was its verdict before. A limit that was exceeded comes before
/// doubts; of a run that goes on there is none.
pub(crate) fn judge(run: &mut Run, tripped: Option<Exceeded>) {
    run.verdict = Verdict::Pending;
    if run.state == RunState::Running {
        return;
    }
    run.verdict = match tripped {
        Some(Exceeded { by, limit }) => Verdict::LimitExceeded {
            what: format!("a stall of {} on CPU {}, limit {limit}", by.length, by.cpu),
            reasons: Vec::new(),
        },
        None => trust::verdict(run),
    };
}

/// The warnings, each once, in the order in which they were found.
pub(crate) fn unique(warnings: Vec<Warning>) -> Vec<Warning> {
    let mut unique: Vec<Warning> = Vec::new();
    for warning in warnings {
        if !unique.contains(&warning) {
            unique.push(warning);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use whylate_model::CpuId;
    use whylate_model::directory::parse_run;

    use super::*;

    /// A recorded run with nothing left that could be doubted, and these warnings.
    fn ended(warnings: &[Warning]) -> Run {
        let json = include_bytes!("../../../tests/runs/gaps/run.json");
        let mut run = parse_run(Path::new("run.json"), json).unwrap();
        run.state = RunState::Complete;
        run.warnings = warnings.to_vec();
        run
    }

    #[test]
    fn what_makes_trust_poor_makes_a_run_untrustworthy_and_what_limits_it_does_not() {
        let changed = Warning::HostChanged { what: "cpu 1 went offline".to_owned() };
        let of = |warnings: &[Warning]| judged(ended(warnings), None).verdict;
        assert_eq!(of(&[Warning::Interrupted]), Verdict::Trustworthy);
        let reasons = vec![changed.to_string()];
        assert_eq!(
            of(&[Warning::Interrupted, changed.clone()]),
            Verdict::Untrustworthy { reasons }
        );
        let mut running = ended(&[changed]);
        running.state = RunState::Running;
        assert_eq!(judged(running, None).verdict, Verdict::Pending);
        // Who asks again gets no reason that is over.
        let mut again = ended(&[]);
        again.verdict = Verdict::Untrustworthy { reasons: vec!["over".to_owned()] };
        assert_eq!(judged(again, None).verdict, Verdict::Trustworthy);
    }

    #[test]
    fn a_limit_that_was_exceeded_comes_before_doubts() {
        let by = Trigger { length: Nanos(70_000), cpu: CpuId(3) };
        let changed = Warning::HostChanged { what: "clock".to_owned() };
        let tripped = Some(Exceeded { by, limit: Nanos(50_000) });
        let Verdict::LimitExceeded { what, .. } = judged(ended(&[changed]), tripped).verdict else {
            panic!("not exceeded")
        };
        assert!(what.contains("CPU 3") && what.contains("limit 50.0us"), "{what}");
    }
}
