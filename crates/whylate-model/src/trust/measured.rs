//! Was anything measured at all, and which series does a headline quote?

use crate::run::Run;
use crate::series::Series;
use crate::switch_cost::Outcome;

/// Did the run end without one figure that answers its question?
pub(super) fn nothing(run: &Run) -> bool {
    if let Some(costs) = &run.switch_cost {
        let direct = costs.direct.iter().any(|row| matches!(row.outcome, Outcome::Measured(_)));
        return !direct && costs.indirect.iter().all(|row| row.penalty.is_none());
    }
    if run.only_wakes() {
        return run.wakes.iter().all(|wake| wake.woken == 0);
    }
    if !run.flows.is_empty() {
        return run.flows.iter().all(|flow| flow.packets.sent == 0);
    }
    if let Some(backends) = &run.backends {
        return backends.rows.iter().all(|row| row.measured.is_none());
    }
    if let Some(calibration) = &run.calibration {
        return calibration.backends.is_empty();
    }
    if is_of_another_kind(run) {
        return false;
    }
    run.gaps.iter().all(|gaps| gaps.end <= gaps.start)
        && run.threads.iter().all(|thread| thread.blocks == 0)
        && run.series.iter().all(|series| series.n == 0)
}

/// Was a process watched of which no request was seen?
pub(super) fn is_unasked(run: &Run) -> bool {
    run.watched.as_deref().is_some_and(|watched| watched.breakdown.requests == 0)
}

/// The whole requests of a process that was watched, of which the headline quotes percentiles.
pub(super) fn watched(run: &Run) -> Option<&Series> {
    let name = run.watched.as_deref()?.breakdown.series.as_ref()?;
    run.series.iter().find(|series| series.name == *name)
}

/// Is it about something for which nothing is an answer: a server that nobody asked? Of a process that was watched
/// [`is_unasked`] says it.
fn is_of_another_kind(run: &Run) -> bool {
    run.reflected.is_some()
        || run.forward.is_some()
        || run.delay.is_some()
        || run.watched.is_some()
        || run.device.is_some()
}

/// The series that the headline quotes percentiles of, with what they are of: response times where requests were
/// scheduled, else their service; how late threads were woken; and each row of a check-up. Distances of gaps are no
/// such series.
pub(super) fn headlines(run: &Run) -> Vec<(&Series, &str)> {
    let named = |name: &str| run.series.iter().find(|series| series.name == name);
    let flows = run.flows.iter().filter(|flow| !flow.asked.one_way);
    let requests = flows.filter_map(|flow| flow.response.as_ref().or(flow.service.as_ref()));
    let requests = requests.filter_map(|name| named(name)).map(|of| (of, of.label.as_str()));
    let wakes = run.wakes.iter().filter(|_| run.only_wakes()).filter_map(|wake| {
        let of = |what: &str| named(&format!("{what}-{}", wake.thread));
        let measured = of("wake")?;
        // Those with the skipped ones are of the same.
        Some((of("wake-corrected").unwrap_or(measured), measured.label.as_str()))
    });
    let rows = if run.holds_latencies() { run.latencies() } else { Vec::new() };
    requests.chain(wakes).chain(rows).collect()
}
