//! How far the numbers can be trusted: the clock, the evidence, the warnings.

use whylate_model::Hertz;
use whylate_model::run::{ClockFacts, CpuOffset, Drift, ProcDelta, Run, TraceFacts};

use crate::doc::{Block, Section, Warning};
use crate::numbers::{Cell, Value, count, known_to, number, percent, signed, time};

/// Rows of /proc counters shown.
const MOST_COUNTERS: usize = 8;

/// The section of a terminal; the page has tables of the clock, and warnings in a place of their own.
pub(crate) fn section(run: &Run) -> Section {
    let mut said = clock(&run.clock);
    said.extend(evidence(run));
    said.extend(counters(run));
    Section::new("trust", "How far to trust it", vec![Block::Items(said), warnings(run)]).headed()
}

/// What to be warned of.
pub(crate) fn warnings(run: &Run) -> Block {
    Block::Warnings(run.warnings.iter().map(|of| Warning::of(of, run)).collect())
}

/// What is known of causes, and of what else happened.
pub(crate) fn evidence(run: &Run) -> Vec<String> {
    let recording = run.clock.gap_recording_ns;
    let mut said: Vec<String> = recording
        .map(|ns| format!("recording one stall costs {} (median), outside the stall", time(ns)))
        .into_iter()
        .collect();
    match &run.evidence.trace {
        Some(trace) => said.extend(traced(trace)),
        None if run.is_merged() => said.push(
            "causes are those of the recordings; each has its evidence in its own run".to_owned(),
        ),
        None => {
            said.push("causes from what the thread knows by itself; no kernel trace".to_owned());
        }
    }
    said.extend(run.evidence.messages.as_ref().map(followed));
    let moved = run.moved_off.iter().flat_map(|of| &of.told);
    said.extend(moved.cloned());
    if !run.is_merged() {
        let rseq = if run.evidence.rseq { "passed its self-test" } else { "not used" };
        said.push(format!("rseq word: {rseq}"));
    }
    said.extend(run.evidence.steal_ns.map(|ns| {
        let counted = if ns < 1.0 { "none counted".to_owned() } else { time(ns) };
        format!("steal time of the measured CPUs: {counted} (resolution: one tick of the kernel)")
    }));
    said.extend(run.evidence.smi_count.map(|n| format!("system management interrupts: {n}")));
    said
}

/// Files of which nobody can say whether they are as they were recorded.
pub(crate) fn undigested(run: &Run) -> Option<String> {
    let files = &run.files.undigested;
    let those = match files.as_slice() {
        [] => return None,
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
    };
    Some(format!("no checksum was kept of {those}: changes to them cannot be detected"))
}

fn clock(clock: &ClockFacts) -> Vec<String> {
    let mut said = vec![format!(
        "clock: {} at {} ({} ppm); resolution {}; one read costs {} (min {})",
        clock.counter,
        megahertz(clock.hz, clock.hz_bound_ppm),
        number(clock.hz_bound_ppm),
        time(clock.resolution_ns),
        time(clock.read_cost_median_ns),
        time(clock.read_cost_min_ns),
    )];
    for source in &clock.sources {
        let independent = if source.independent { "" } else { "no " };
        said.push(format!(
            "frequency by {}: {}, {} ppm from that of the clock ({independent}independent check)",
            source.name,
            megahertz(source.hz, source.bound_ppm.unwrap_or(clock.hz_bound_ppm)),
            signed(source.difference_ppm),
        ));
    }
    said.extend(clock.drift.map(|of| format!("drift of the frequency: {} per second", drift(of))));
    for of in &clock.cross_cpu {
        said.push(format!(
            "CPU {} against CPU {}: {}: events closer than this cannot be ordered",
            of.cpu,
            of.reference,
            offset(of, clock.hz),
        ));
    }
    said
}

/// A drift that cannot be told from none is told by the largest that its bound allows.
fn drift(of: Drift) -> String {
    let (ppm, bound) = (of.ppm_per_s, of.bound_ppm_per_s);
    let none = ppm.abs() <= bound;
    let largest = known_to(0.0, ppm.abs() + bound, "ppm");
    match largest.split_once(" ± ").filter(|_| none) {
        Some((_, largest)) => format!("within ±{largest}"),
        None => known_to(ppm, bound, "ppm"),
    }
}

/// A frequency with the digits that this bound of it supports.
pub(crate) fn megahertz(hz: Hertz, bound_ppm: f64) -> String {
    let mhz = hz.0 / 1e6;
    known_to(mhz, mhz * bound_ppm / 1e6, "MHz")
}

/// How far the counter of a CPU lies from another's: `−14 ± 72 ns`.
pub(crate) fn offset(of: &CpuOffset, hz: Hertz) -> String {
    let ns = |ticks: f64| ticks * 1e9 / hz.0;
    known_to(ns(of.offset_ticks as f64), ns(of.bound.0 as f64), "ns")
}

fn traced(trace: &TraceFacts) -> Vec<String> {
    let inside = match trace.events_measured {
        0 => "none".to_owned(),
        all => percent(trace.events_in_gaps as f64 / all as f64),
    };
    let mut said = vec![format!(
        "kernel trace on clock {}: {} events of measured CPUs, {inside} inside recorded stalls, {} \
         lost; {} events elsewhere",
        trace.clock,
        count(trace.events_measured),
        count(trace.lost),
        count(trace.events_elsewhere),
    )];
    if trace.lost_elsewhere > 0 {
        said.push(format!("of the senders' events {} or more were lost", trace.lost_elsewhere));
    }
    if let (Some(with), Some(without)) = (trace.lost_share_with, trace.lost_share_without) {
        said.push(format!(
            "tracing itself: lost share {} with, {} without, interleaved{}",
            percent(with),
            percent(without),
            difference(trace),
        ));
    }
    if !trace.missing.is_empty() {
        said.push(format!("not on this kernel: {}", trace.missing.join(", ")));
    }
    said
}

fn followed(trace: &TraceFacts) -> String {
    let missing = match &trace.missing[..] {
        [] => String::new(),
        missing => format!("; not on this kernel: {}", missing.join(", ")),
    };
    format!(
        "messages followed by {} events of {} tracepoints, {} lost{missing}",
        count(trace.events_measured),
        trace.events.len(),
        count(trace.lost),
    )
}

/// What tracing costs by the pairs, or that they do not show it; empty where there are none.
fn difference(trace: &TraceFacts) -> String {
    let Some(found) = trace.lost_share_difference else { return String::new() };
    let (low, high) = found.interval;
    let points = |share: f64| Value::Ratio(share * 100.0);
    let mean = Cell::from(points(found.mean)).within(Some((points(low), points(high)))).signed();
    let ends = mean.ends().said();
    if found.is_shown() {
        format!("; difference {} points ({ends} at 95%, {} pairs)", mean.said(), found.pairs)
    } else {
        format!("; no difference shown ({ends} points at 95%, {} pairs)", found.pairs)
    }
}

/// What was counted: one interrupt is no interrupts.
fn singular(of: &ProcDelta) -> String {
    match of.name.split_once(' ') {
        Some((what, which)) if of.count == 1 => format!("{} {which}", what.trim_end_matches('s')),
        _ => of.name.clone(),
    }
}

/// What the kernel counted meanwhile; none where it counted nothing.
fn counters(run: &Run) -> Option<String> {
    let mut deltas: Vec<_> =
        run.evidence.proc_deltas.iter().filter(|delta| delta.count > 0).collect();
    deltas.sort_by_key(|delta| std::cmp::Reverse(delta.count));
    let words: Vec<String> = deltas
        .iter()
        .take(MOST_COUNTERS)
        .map(|delta| format!("{} {} (CPU {})", count(delta.count), singular(delta), delta.cpu))
        .collect();
    (!words.is_empty()).then(|| format!("/proc counted: {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use whylate_model::run::{Moved, MovedOff, PairedDifference};

    use super::*;
    use crate::timeline::tests::recorded;

    #[test]
    fn a_drift_that_may_be_none_is_told_by_the_largest_that_it_may_be() {
        let said = |ppm_per_s, bound_ppm_per_s| drift(Drift { ppm_per_s, bound_ppm_per_s });
        for (ppm, bound, told) in [
            (0.0, 0.001, "within ±0.0010 ppm"),
            (0.0008, 0.001, "within ±0.0018 ppm"),
            (-0.001, 0.001, "within ±0.002 ppm"),
            (0.5, 0.1, "0.50 ± 0.10 ppm"),
            (-0.5, 0.1, "−0.50 ± 0.10 ppm"),
        ] {
            assert_eq!(said(ppm, bound), told, "{ppm} {bound}");
        }
    }

    #[test]
    fn what_was_moved_and_by_what_messages_were_followed_is_told_with_the_evidence() {
        let mut run = recorded();
        assert!(!evidence(&run).join("\n").contains("moved"), "{:?}", evidence(&run));
        let told = vec![
            "moved 2 tasks and 0 kernel threads off cpus 1".to_owned(),
            "not moved: \u{1b}[31m (77): it moved back".to_owned(),
        ];
        run.moved_off.push(MovedOff { what: Moved::Tasks, moved: 2, refused: 1, told });
        run.evidence.messages = Some(TraceFacts {
            events: vec!["net:netif_rx".to_owned()],
            missing: vec!["napi:napi_poll".to_owned()],
            events_measured: 12_345,
            lost: 2,
            ..TraceFacts::default()
        });
        let said = crate::render::terminal::told([Block::Items(evidence(&run))]);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in [
            "messages followed by 12,345 events of 1 tracepoints, 2 lost; not on this kernel: napi:napi_poll",
            "moved 2 tasks and 0 kernel threads off cpus 1",
            "not moved: \\u{1b}[31m (77): it moved back",
        ] {
            assert!(said.contains(&format!("- {line} -")), "{line}: {said:?}");
        }
    }

    #[test]
    fn the_cost_of_tracing_is_a_difference_with_its_interval_or_not_shown() {
        let told = |mean: f64, interval| {
            let found = PairedDifference { pairs: 20, mean, interval };
            difference(&TraceFacts { lost_share_difference: Some(found), ..TraceFacts::default() })
        };
        assert_eq!(
            told(0.004, (0.003, 0.005)),
            "; difference +0.40 points (+0.30 to +0.50 at 95%, 20 pairs)"
        );
        assert_eq!(
            told(-0.002, (-0.006, 0.002)),
            "; no difference shown (−0.6 to +0.2 points at 95%, 20 pairs)"
        );
        assert_eq!(difference(&TraceFacts::default()), "");
    }
}
