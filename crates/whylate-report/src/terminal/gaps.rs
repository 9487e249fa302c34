//! What busy threads did not get.

use whylate_model::Nanos;
use whylate_model::run::{Closure, GapSummary, LoopKind, Run};

use super::text::{Page, count, percent, rate};

pub(super) fn sections(page: &mut Page, run: &Run) {
    if run.gaps.is_empty() {
        return;
    }
    page.section("What a busy thread did not get");
    let rows: Vec<Vec<String>> = run.gaps.iter().map(|gaps| row(run, gaps)).collect();
    let head = ["CPU", "elapsed", "gaps", "lost", "95 % interval", "threshold", "period", "below"];
    page.table(&head, &rows, &[]);
    page.paragraph(
        "lost: share of the elapsed time in gaps, less the loop's own period; below: noise too \
         short to be a gap, as a share of the elapsed time.",
    );
    rates(page, run);
    for gaps in &run.gaps {
        details(page, run, gaps);
    }
}

fn row(run: &Run, gaps: &GapSummary) -> Vec<String> {
    let elapsed = gaps.end.since(gaps.start).to_nanos(run.clock.hz);
    let period_ns = gaps.period_ticks * 1e9 / run.clock.hz.0;
    let interval = gaps
        .lost_share_interval
        .map_or("-".to_owned(), |(low, high)| format!("{} .. {}", percent(low), percent(high)));
    vec![
        gaps.cpu.to_string(),
        elapsed.to_string(),
        count(gaps.gaps),
        percent(gaps.lost_share),
        interval,
        gaps.threshold.to_nanos(run.clock.hz).to_string(),
        format!("{period_ns:.2}ns"),
        percent(gaps.noise_below_threshold),
    ]
}

fn rates(page: &mut Page, run: &Run) {
    let Some(first) = run.gaps.iter().find(|gaps| !gaps.rates.is_empty()) else { return };
    let mut head = vec!["gaps of at least".to_owned()];
    head.extend(run.gaps.iter().map(|gaps| format!("CPU {} (95 % interval)", gaps.cpu)));
    let rows: Vec<Vec<String>> = first
        .rates
        .iter()
        .map(|wanted| {
            let mut cells = vec![wanted.at_least.to_string()];
            for gaps in &run.gaps {
                let found = gaps.rates.iter().find(|rate| rate.at_least == wanted.at_least);
                cells.push(found.map_or("-".to_owned(), |found| {
                    let (low, high) = found.interval;
                    format!("{} ({} .. {})", rate(found.per_second), rate(low), rate(high))
                }));
            }
            cells
        })
        .collect();
    // More CPUs than columns hold are in the JSON.
    if head.len() <= 3 {
        page.blank();
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        page.table(&head, &rows, &[]);
    }
}

fn details(page: &mut Page, run: &Run, gaps: &GapSummary) {
    let kind = match gaps.loop_kind {
        LoopKind::Chain => "chain",
        LoopKind::Pair => "pair",
    };
    let closure = match &gaps.closure {
        Closure::Holds => "the closure holds".to_owned(),
        Closure::SumsOnly => "records were dropped: only the sums close".to_owned(),
        Closure::Broken(why) => format!("THE CLOSURE IS BROKEN: {why}"),
    };
    let recording = gaps.recording_ticks.to_nanos(run.clock.hz);
    let each =
        recording.0.checked_div(gaps.gaps).map_or("-".to_owned(), |ns| Nanos(ns).to_string());
    let unseen = match gaps.unseen_ticks.to_nanos(run.clock.hz) {
        Nanos(0) => String::new(),
        unseen => format!(", {unseen} between pairs not seen"),
    };
    page.item(&format!(
        "CPU {}: {kind} loop, {} iterations, period {:.2} ticks ({:.2} .. {:.2} over {} quiet \
         blocks), threshold {}; {closure}; {} migrations, {} records dropped, {recording} spent \
         recording ({each} a gap){unseen}",
        gaps.cpu,
        count(gaps.iterations),
        gaps.period_ticks,
        gaps.period_spread_ticks.0,
        gaps.period_spread_ticks.1,
        count(gaps.blocks),
        gaps.threshold_rule,
        gaps.migrations,
        gaps.dropped,
    ));
}
