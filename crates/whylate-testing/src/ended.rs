//! How a recording of a test may end: its closures hold and its losses are counted, and what makes its numbers
//! useless is the noise of the machine, or what the test itself planted.

use whylate_model::flow::Flow;
use whylate_model::run::{Closure, Run, Verdict};
use whylate_model::switch_cost::{DirectRow, IndirectRow, Outcome};
use whylate_model::warning::Warning;

/// What is said of a run without one figure that answers its question.
const NOTHING: &str = "nothing was measured";

/// Every closure of a run that has ended holds as far as its records go, its counts add up, and what was lost is
/// counted and named.
pub fn closes(run: &Run) {
    let mut dropped = 0;
    let gaps = run.gaps.iter().map(|of| (format!("CPU {}", of.cpu), &of.closure, of.dropped));
    let threads = run.threads.iter().map(|of| (of.name.clone(), &of.closure, of.dropped));
    for (name, closure, lost) in gaps.chain(threads) {
        match closure {
            Closure::Holds => assert_eq!(lost, 0, "{name}: dropped, and the closure holds"),
            Closure::SumsOnly => assert!(lost > 0, "{name}: sums alone, and nothing dropped"),
            Closure::Broken(why) => panic!("{name}: {why}"),
        }
        dropped += lost;
    }
    let any = |is: fn(&Warning) -> bool| run.warnings.iter().map(innermost).any(is);
    let named = |of: &Warning| matches!(of, Warning::RecordsDropped { dropped: 1.., .. });
    assert!(dropped == 0 || any(named), "{dropped} records dropped, and no warning names them");
    let broken = |of: &Warning| {
        matches!(of, Warning::AccountBroken { .. } | Warning::FramesUncounted { .. })
    };
    assert!(!any(broken), "{:?}", run.warnings);
    // What was on its way as a port failed is in no account.
    let whole = !any(|of| matches!(of, Warning::PartEndedEarly { .. }));
    let open = |flow: &&Flow| whole && !flow.packets.add_up();
    if let Some(flow) = run.flows.iter().find(open) {
        panic!("{}: {:?}", flow.name, flow.packets);
    }
    for of in run.forward.iter().flat_map(|of| &of.directions) {
        assert!(of.closes(), "{of:?}");
    }
    for of in run.delay.iter().flat_map(|of| &of.directions) {
        assert!(of.counts.closes(), "{of:?}");
    }
}

/// A recording [`closes`] and ended with 0; or with 4 for the noise of the machine alone.
pub fn ended(status: Option<i32>, run: &Run) {
    ended_but_for(status, run, &[]);
}

/// The same of one to which the test itself gave these reasons for poor trust: each reason that is not noise has
/// one of these in it.
pub fn ended_but_for(status: Option<i32>, run: &Run, planted: &[&str]) {
    closes(run);
    if status == Some(0) {
        return;
    }
    assert_eq!(status, Some(4), "{:?}", run.verdict);
    let Verdict::Untrustworthy { reasons } = &run.verdict else { panic!("{:?}", run.verdict) };
    assert!(!reasons.is_empty(), "untrustworthy without a reason");
    for reason in reasons {
        let told = planted.iter().any(|of| reason.contains(of))
            || within(reason).any(|reason| is_by_noise(reason, run));
        assert!(told, "not by noise: {reason}");
    }
}

/// The same of what has no run: it ended with 0, or with 4, and none of its warnings makes its numbers useless but
/// by noise, or with one of these in it.
pub fn doubted(status: Option<i32>, warnings: &[Warning], planted: &[&str]) {
    assert!(matches!(status, Some(0 | 4)), "{status:?}: {warnings:?}");
    for warning in warnings.iter().filter(|warning| warning.spoils_trust()) {
        let text = warning.to_string();
        let told = is_noise(warning) || planted.iter().any(|of| text.contains(of));
        assert!(told && status == Some(4), "not by noise, or not with 4 but {status:?}: {text}");
    }
}

/// A reason as it is, and without the names of the parts that it is a reason of.
fn within(reason: &str) -> impl Iterator<Item = &str> {
    let inner = reason.match_indices(": ").map(|(at, colon)| &reason[at + colon.len()..]);
    std::iter::once(reason).chain(inner)
}

/// What is to be known about a part, whichever that is.
fn innermost(warning: &Warning) -> &Warning {
    match warning {
        Warning::Within { of, .. } => innermost(of),
        own => own,
    }
}

fn is_by_noise(reason: &str, run: &Run) -> bool {
    // The two accounts of a thread's CPU time part where the host took the CPU and no event tells it.
    let by_steal = reason.starts_with("the kernel's CPU time of thread ");
    let mut noise = run.warnings.iter().map(innermost).filter(|warning| is_noise(warning));
    by_steal
        || noise.any(|warning| warning.to_string() == reason)
        || is_of_late_requests(reason, run)
        || is_of_no_account(reason, run)
        // How close it came to the truth is the machine's of that time.
        || reason.starts_with("the calibration of ")
        || is_of_a_starved_client(reason, run)
        || is_of_spoilt_trials(reason, run)
}

/// Did a busy machine let the client's own requests leave late, or hold replies until too late? What is lost
/// must have been counted.
fn is_of_late_requests(reason: &str, run: &Run) -> bool {
    let of_flow = |flow: &Flow| (flow.name.clone(), flow.packets);
    let rows = run.backends.iter().flat_map(|of| &of.rows);
    let of_backends =
        rows.filter_map(|of| Some((of.backend.clone(), of.measured.as_ref()?.packets)));
    run.flows.iter().map(of_flow).chain(of_backends).any(|(name, packets)| {
        let sent = packets.sent;
        let unanswered = |count: u64, what: &str| {
            count > 0 && reason.starts_with(&format!("{count} of {sent} requests of {name} {what}"))
        };
        reason.starts_with(&format!("the send delay of {name} (p"))
            || unanswered(packets.lost, "got no reply")
            || unanswered(packets.answered_too_late(), "were answered after the timeout")
    })
}

/// Did a busy machine keep the other end from its account? Then a warning says that there is none.
fn is_of_no_account(reason: &str, run: &Run) -> bool {
    let none = |warning: &Warning| matches!(warning, Warning::NoAccount { .. });
    reason.ends_with(" came is unknown") && run.warnings.iter().map(innermost).any(none)
}

/// Did a busy machine keep the client from its CPU until all its requests were too late to be sent? Those are
/// counted.
fn is_of_a_starved_client(reason: &str, run: &Run) -> bool {
    let none = |flow: &Flow| flow.packets.sent == 0 && flow.packets.never_sent > 0;
    reason == NOTHING && !run.flows.is_empty() && run.flows.iter().all(none)
}

/// Did a busy machine get into each trial, or leave the runners no switch? Each must say so.
fn is_of_spoilt_trials(reason: &str, run: &Run) -> bool {
    let Some(costs) = &run.switch_cost else { return false };
    let is_starved = |row: &DirectRow| match &row.outcome {
        Outcome::Refused { reason } => reason.starts_with("there was no switch in "),
        Outcome::Measured(_) => false,
    };
    let is_spoilt = |row: &IndirectRow| {
        row.penalty.is_none() && row.discarded + row.empty > 0 && row.reason.is_some()
    };
    reason == NOTHING
        && costs.direct.len() + costs.indirect.len() > 0
        && costs.direct.iter().all(is_starved)
        && costs.indirect.iter().all(is_spoilt)
}

/// May the load of a machine, or its host, bring this about?
fn is_noise(warning: &Warning) -> bool {
    match warning {
        Warning::Within { of, .. } => is_noise(of),
        Warning::RecordsDropped { dropped: lost, .. }
        | Warning::JobsUnrecorded { records: lost, .. } => *lost > 0,
        Warning::TraceLost { events, .. } => *events != Some(0),
        Warning::Saturated { .. }
        | Warning::FrequencyDisagreement { .. }
        | Warning::AnotherRun { .. }
        | Warning::HostChanged { .. } => true,
        // A host that interrupts runners more often than there is room for, in their logs or in the kernel's
        // trace, ends a part of theirs.
        Warning::PartEndedEarly { reason, .. } => {
            reason.starts_with("there was room for ")
                || reason.starts_with("the kernel's trace of ")
                    && reason.ends_with(" has as many events as are kept")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use whylate_model::CpuId;
    use whylate_model::flow::Packets;

    use super::*;
    use crate::program::{file, read};

    fn kept(name: &str) -> Run {
        read(&file("runs").join(name))
    }

    type Plant = fn(&mut Run);

    fn is_refused(check: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(check)).is_err()
    }

    #[test]
    fn runs_that_were_kept_close_and_one_with_a_fault_in_a_closure_a_loss_or_an_account_does_not() {
        for name in ["gaps", "gaps-2", "hourglass", "flows", "forward", "delay", "matrix"] {
            closes(&kept(name));
        }
        let faults: [(&str, Plant); 7] = [
            ("gaps", |run| run.gaps[0].closure = Closure::Broken("planted".to_owned())),
            ("gaps", |run| run.gaps[0].closure = Closure::SumsOnly),
            // Counted, and in no warning.
            ("gaps", |run| (run.gaps[0].closure, run.gaps[0].dropped) = (Closure::SumsOnly, 3)),
            ("hourglass", |run| run.threads[1].closure = Closure::Broken("planted".to_owned())),
            ("flows", |run| run.flows[0].packets.received += 1),
            ("forward", |run| run.forward.as_mut().unwrap().directions[0].received += 1),
            ("delay", |run| run.delay.as_mut().unwrap().directions[1].counts.overflow += 1),
        ];
        for (number, (name, plant)) in faults.into_iter().enumerate() {
            let mut run = kept(name);
            plant(&mut run);
            assert!(is_refused(|| closes(&run)), "fault {number}, of {name}");
            assert!(is_refused(|| ended(Some(0), &run)), "fault {number}, of {name}");
        }
        let mut run = kept("gaps");
        (run.gaps[0].closure, run.gaps[0].dropped) = (Closure::SumsOnly, 3);
        run.warnings.push(Warning::RecordsDropped { cpu: run.gaps[0].cpu, dropped: 3 });
        closes(&run);
    }

    #[test]
    fn an_end_with_4_is_for_noise_or_for_what_was_planted_and_each_reason_is_asked() {
        let noise = Warning::HostChanged { what: "cpu 1 went offline".to_owned() };
        let fault = Warning::WritingFailed { reason: "no space left".to_owned() };
        let with = |warnings: &[&Warning]| {
            let reasons = warnings.iter().map(ToString::to_string).collect();
            let warnings = warnings.iter().map(|warning| (*warning).clone()).collect();
            Run { warnings, verdict: Verdict::Untrustworthy { reasons }, ..kept("gaps") }
        };
        ended(Some(4), &with(&[&noise]));
        assert!(is_refused(|| ended(Some(4), &with(&[]))), "no reason");
        assert!(is_refused(|| ended(Some(4), &with(&[&noise, &fault]))));
        ended_but_for(Some(4), &with(&[&noise, &fault]), &["no space left"]);
        assert!(is_refused(|| ended_but_for(Some(4), &with(&[&fault]), &["a full trace"])));
        assert!(is_refused(|| ended(Some(3), &with(&[&noise]))));
        // Of a cell, and of two cells that share it.
        let part =
            |part: &str| Warning::Within { part: part.to_owned(), of: Box::new(noise.clone()) };
        let mut cells = with(&[&part("pinned")]);
        ended(Some(4), &cells);
        cells.warnings = vec![part("pinned, floating")];
        ended(Some(4), &cells);
        // Of requests, too, only what is counted is by noise.
        let mut starved = kept("flows");
        starved.verdict = Verdict::Untrustworthy { reasons: vec![NOTHING.to_owned()] };
        assert!(is_refused(|| ended(Some(4), &starved)), "they were sent");
        for flow in &mut starved.flows {
            flow.packets = Packets { never_sent: 3, ..Packets::default() };
        }
        ended(Some(4), &starved);
        doubted(Some(4), &[noise.clone(), Warning::NoHousekeepingCpu], &[]);
        doubted(Some(4), std::slice::from_ref(&fault), &["no space left"]);
        assert!(is_refused(|| doubted(Some(4), &[noise.clone(), fault], &[])));
        assert!(is_refused(|| doubted(Some(0), &[noise], &[])), "0, and it is in doubt");
        let lost = Warning::RecordsDropped { cpu: CpuId(0), dropped: 0 };
        assert!(is_refused(|| doubted(Some(4), &[lost], &[])), "none was lost");
    }
}
