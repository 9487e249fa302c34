//! The verdict on a run: can its numbers be trusted, and was a stated limit exceeded?
//!
//! A pure function of everything that a run has found, called once everything is there. Whoever
//! adds warnings or series to a run afterwards asks again.

use whylate_model::Nanos;
use whylate_model::run::{Closure, GapSummary, RunState, SelfTest, SelfTestKind, Verdict};
use whylate_model::threads::ThreadSummary;
use whylate_model::warning::Warning;

use crate::actions::Trigger;

/// Of what the self-test found or ascribed, this share must be right: a busy machine puts others'
/// work beside what is injected.
const RIGHT: f64 = 0.99;

/// A limit that a gap exceeded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exceeded {
    /// The gap.
    pub(crate) by: Trigger,
    /// The limit.
    pub(crate) limit: Nanos,
}

/// Judges a run by what it found. A limit that was exceeded comes before doubts.
pub(crate) fn verdict(
    state: RunState,
    gaps: &[GapSummary],
    warnings: &[Warning],
    selftest: Option<&SelfTest>,
    tripped: Option<Exceeded>,
) -> Verdict {
    if state == RunState::Running {
        return Verdict::Pending;
    }
    if let Some(Exceeded { by, limit }) = tripped {
        let what = format!("a gap of {} on CPU {}, limit {limit}", by.length, by.cpu);
        return Verdict::LimitExceeded { what };
    }
    let spoiling = warnings.iter().filter(|warning| warning.spoils_trust());
    let mut reasons: Vec<String> = spoiling.map(ToString::to_string).collect();
    for summary in gaps {
        if let Closure::Broken(why) = &summary.closure {
            reasons.push(format!("the closure of CPU {} is broken: {why}", summary.cpu));
        }
    }
    reasons.extend(selftest.into_iter().flat_map(failures));
    if reasons.is_empty() { Verdict::Trustworthy } else { Verdict::Untrustworthy { reasons } }
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

/// Judges a run of a set of threads.
/// A thread with less is mostly the kernel's own work around its wake-ups.
const LEAST_CPU_TIME: Nanos = Nanos(100_000_000);
/// The kernel's clock and the gaps lie no further apart for what the kernel does around switches.
const FAR_APART: f64 = 0.25;

/// What a set of threads is worth.
pub(crate) fn verdict_on_threads(
    state: RunState,
    threads: &[ThreadSummary],
    warnings: &[Warning],
) -> Verdict {
    if state == RunState::Running {
        return Verdict::Pending;
    }
    let spoiling = warnings.iter().filter(|warning| warning.spoils_trust());
    let mut reasons: Vec<String> = spoiling.map(ToString::to_string).collect();
    for thread in threads {
        if let Closure::Broken(why) = &thread.closure {
            reasons.push(format!("the closure of thread {} is broken: {why}", thread.name));
        }
        if let Some(time) = thread.cpu_time.filter(|time| time.kernel >= LEAST_CPU_TIME)
            && !time.agrees(FAR_APART)
        {
            reasons.push(format!(
                "the kernel's CPU time of thread {} and that of its gaps differ by {:.0} %",
                thread.name,
                time.residual * 100.0
            ));
        }
    }
    if reasons.is_empty() { Verdict::Trustworthy } else { Verdict::Untrustworthy { reasons } }
}

/// Where the self-test fell short: everything injected must be found, and nearly everything found
/// must be named right.
fn failures(test: &SelfTest) -> Vec<String> {
    if test.kinds.iter().all(|kind| kind.injected == 0) {
        return vec!["the self-test could not judge a single interruption".to_owned()];
    }
    test.kinds.iter().flat_map(failures_of).collect()
}

fn failures_of(kind: &SelfTestKind) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut say = |what: String| reasons.push(format!("self-test, {}: {what}", kind.kind));
    if kind.found < kind.injected {
        say(format!("{} of {} interruptions were found", kind.found, kind.injected));
    }
    let too_few = |right: u64, of: u64| (right as f64) < RIGHT * of as f64;
    if kind.with_trace && too_few(kind.named_right, kind.found) {
        say(format!("{} of {} found were named right", kind.named_right, kind.found));
    }
    if kind.with_trace && too_few(kind.ascribed_rightly, kind.ascribed) {
        let (rightly, ascribed) = (kind.ascribed_rightly, kind.ascribed);
        say(format!("{rightly} of {ascribed} gaps ascribed to the injector were made by it"));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;

    use super::*;

    fn tested(kind: SelfTestKind) -> Verdict {
        let test = SelfTest { kinds: vec![kind], ..SelfTest::default() };
        verdict(RunState::Complete, &[], &[], Some(&test), None)
    }

    fn perfect() -> SelfTestKind {
        SelfTestKind {
            kind: "ipi".to_owned(),
            injected: 500,
            found: 500,
            ascribed: 600,
            ascribed_rightly: 600,
            named_right: 500,
            with_trace: true,
            length_error_ns: None,
            length_error_p99_ns: None,
        }
    }

    fn reasons(verdict: Verdict) -> Vec<String> {
        match verdict {
            Verdict::Untrustworthy { reasons } => reasons,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_warning_that_spoils_trust_makes_a_run_untrustworthy_and_others_do_not() {
        let changed = Warning::HostChanged { what: "cpu 1 went offline".to_owned() };
        let judge = |warnings: &[Warning]| verdict(RunState::Complete, &[], warnings, None, None);
        assert_eq!(judge(&[]), Verdict::Trustworthy);
        assert_eq!(judge(&[Warning::Interrupted]), Verdict::Trustworthy);
        let why = reasons(judge(&[Warning::Interrupted, changed.clone()]));
        assert_eq!(why, [changed.to_string()]);
        assert_eq!(verdict(RunState::Running, &[], &[changed], None, None), Verdict::Pending);
    }

    #[test]
    fn a_limit_that_was_exceeded_comes_before_doubts() {
        let by = Trigger { length: Nanos(70_000), cpu: CpuId(3) };
        let changed = Warning::HostChanged { what: "clock".to_owned() };
        let tripped = Some(Exceeded { by, limit: Nanos(50_000) });
        let Verdict::LimitExceeded { what } =
            verdict(RunState::Stopped, &[], &[changed], None, tripped)
        else {
            panic!("not exceeded")
        };
        assert!(what.contains("CPU 3") && what.contains("limit 50.0us"), "{what}");
    }

    #[test]
    fn a_self_test_that_misses_one_interruption_names_its_kind() {
        assert_eq!(tested(perfect()), Verdict::Trustworthy);
        let why = reasons(tested(SelfTestKind { found: 499, ..perfect() }));
        assert_eq!(why, ["self-test, ipi: 499 of 500 interruptions were found"]);
    }

    #[test]
    fn a_self_test_with_less_than_99_percent_right_is_not_trusted() {
        let just = SelfTestKind { named_right: 495, ascribed_rightly: 594, ..perfect() };
        assert_eq!(tested(just.clone()), Verdict::Trustworthy);
        let why = reasons(tested(SelfTestKind { named_right: 494, ..just.clone() }));
        assert_eq!(why, ["self-test, ipi: 494 of 500 found were named right"]);
        let why = reasons(tested(SelfTestKind { ascribed_rightly: 593, ..just }));
        assert!(why[0].contains("593 of 600 gaps ascribed"), "{why:?}");
    }

    #[test]
    fn without_a_trace_only_the_recall_is_judged() {
        let blind = SelfTestKind {
            with_trace: false,
            named_right: 0,
            ascribed: 0,
            ascribed_rightly: 0,
            ..perfect()
        };
        assert_eq!(tested(blind), Verdict::Trustworthy);
    }

    #[test]
    fn a_self_test_that_judged_nothing_is_not_trusted() {
        let nothing = SelfTestKind {
            injected: 0,
            found: 0,
            ascribed: 0,
            ascribed_rightly: 0,
            named_right: 0,
            ..perfect()
        };
        assert!(reasons(tested(nothing))[0].contains("not judge a single interruption"));
    }
}
