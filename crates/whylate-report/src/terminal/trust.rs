//! How far the numbers can be trusted: the clock, the evidence, the warnings.

use whylate_model::run::{ClockFacts, Run, TraceFacts};
use whylate_model::trust::Level;

use crate::numbers::{count, percent};
use crate::render::terminal::Page;

/// Rows of /proc counters shown.
const MOST_COUNTERS: usize = 8;

pub(super) fn sections(page: &mut Page, run: &Run) {
    page.section("How far to trust it");
    clock(page, &run.clock);
    match &run.evidence.trace {
        Some(trace) => evidence_a(page, trace),
        None => page.item("causes from what the thread knows by itself; no kernel trace"),
    }
    let rseq = if run.evidence.rseq { "passed its self-test" } else { "not used" };
    page.item(&format!("rseq word: {rseq}"));
    if let Some(steal) = run.evidence.steal_ns {
        page.item(&format!(
            "steal time of the measured CPUs: {:.0}ms, in steps of the kernel's tick",
            steal / 1e6
        ));
    }
    if let Some(smi) = run.evidence.smi_count {
        page.item(&format!("system management interrupts: {smi}"));
    }
    counters(page, run);
    for warning in &run.warnings {
        match warning.level() {
            // Nothing to act on: a property of the machine.
            Level::Good => page.item(&warning.to_string()),
            Level::Limited | Level::Poor => page.note(&warning.to_string()),
        }
        page.advice(&warning.advice());
    }
}

/// Files of which nobody can say whether they are as they were recorded.
pub(super) fn undigested(page: &mut Page, run: &Run) {
    let files = &run.files.undigested;
    if let Some(last) = files.last() {
        let those = match files.len() {
            1 => last.clone(),
            2 => files.join(" and "),
            several => format!("{} and {} more", files[0], several - 1),
        };
        page.item(&format!("no digest was kept of {those}: a change of them is not noticed"));
    }
}

fn clock(page: &mut Page, clock: &ClockFacts) {
    page.item(&format!(
        "clock: {} at {:.6} MHz +- {:.3} ppm; resolution {:.2}ns; one read costs {:.1}ns (min \
         {:.1}ns)",
        clock.counter,
        clock.hz.0 / 1e6,
        clock.hz_bound_ppm,
        clock.resolution_ns,
        clock.read_cost_median_ns,
        clock.read_cost_min_ns,
    ));
    for source in &clock.sources {
        let independent = if source.independent { "independent" } else { "not independent" };
        page.item(&format!(
            "frequency by {}: {:.6} MHz, {:+.3} ppm, {independent}",
            source.name,
            source.hz.0 / 1e6,
            source.difference_ppm,
        ));
    }
    if let Some(drift) = clock.drift {
        page.item(&format!(
            "drift of the frequency: {:+.4} +- {:.4} ppm per second",
            drift.ppm_per_s, drift.bound_ppm_per_s
        ));
    }
    for offset in &clock.cross_cpu {
        page.item(&format!(
            "CPU {} against CPU {}: {:+} ticks +- {} ({:.0}ns): closer stamps have no order",
            offset.cpu,
            offset.reference,
            offset.offset_ticks,
            offset.bound.0,
            offset.bound.0 as f64 * 1e9 / clock.hz.0,
        ));
    }
    if let Some(cost) = clock.gap_recording_ns {
        page.item(&format!("recording one gap costs {cost:.0}ns (median), outside the gap"));
    }
}

fn evidence_a(page: &mut Page, trace: &TraceFacts) {
    let inside = match trace.events_measured {
        0 => "none".to_owned(),
        all => percent(trace.events_in_gaps as f64 / all as f64),
    };
    page.item(&format!(
        "kernel trace on clock {}: {} events of measured CPUs, {inside} inside recorded gaps, {} \
         lost; {} events elsewhere",
        trace.clock,
        count(trace.events_measured),
        trace.lost,
        count(trace.events_elsewhere),
    ));
    if trace.lost_elsewhere > 0 {
        page.item(&format!("of the senders' events {} or more were lost", trace.lost_elsewhere));
    }
    if let (Some(with), Some(without)) = (trace.lost_share_with, trace.lost_share_without) {
        page.item(&format!(
            "tracing itself: lost share {} with, {} without, interleaved{}",
            percent(with),
            percent(without),
            difference(trace),
        ));
    }
    if !trace.missing.is_empty() {
        page.item(&format!("not on this kernel: {}", trace.missing.join(", ")));
    }
}

/// What tracing costs by the pairs, or that they do not show it; empty where there are none.
pub(crate) fn difference(trace: &TraceFacts) -> String {
    let Some(found) = trace.lost_share_difference else { return String::new() };
    let (low, high) = found.interval;
    let points = |share: f64| format!("{:+.3}", share * 100.0);
    let (low, mean, high) = (points(low), points(found.mean), points(high));
    if found.is_shown() {
        format!("; difference {mean} points ({low} .. {high} at 95 %, {} pairs)", found.pairs)
    } else {
        format!("; no difference shown ({low} .. {high} points at 95 %, {} pairs)", found.pairs)
    }
}

fn counters(page: &mut Page, run: &Run) {
    let mut deltas: Vec<_> =
        run.evidence.proc_deltas.iter().filter(|delta| delta.count > 0).collect();
    deltas.sort_by_key(|delta| std::cmp::Reverse(delta.count));
    if deltas.is_empty() {
        return;
    }
    let words: Vec<String> = deltas
        .iter()
        .take(MOST_COUNTERS)
        .map(|delta| format!("{} {} (CPU {})", count(delta.count), delta.name, delta.cpu))
        .collect();
    page.item(&format!("/proc counted: {}", words.join(", ")));
}

#[cfg(test)]
mod tests {
    use whylate_model::run::PairedDifference;

    use super::*;

    #[test]
    fn the_cost_of_tracing_is_a_difference_with_its_interval_or_not_shown() {
        let told = |mean: f64, interval| {
            let found = PairedDifference { pairs: 20, mean, interval };
            difference(&TraceFacts { lost_share_difference: Some(found), ..TraceFacts::default() })
        };
        assert_eq!(
            told(0.004, (0.003, 0.005)),
            "; difference +0.400 points (+0.300 .. +0.500 at 95 %, 20 pairs)"
        );
        assert_eq!(
            told(-0.002, (-0.006, 0.002)),
            "; no difference shown (-0.600 .. +0.200 points at 95 %, 20 pairs)"
        );
        assert_eq!(difference(&TraceFacts::default()), "");
    }
}
