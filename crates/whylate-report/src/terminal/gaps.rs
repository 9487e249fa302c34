//! What busy threads did not get.

use whylate_model::run::{Closure, CountingCost, GapSummary, LoopKind, Run, TimeShare};
use whylate_model::{Hertz, Nanos};

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
    time_shares(page, run);
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

/// The time-weighted view: two rows for each CPU, for a share of time names its denominator.
fn time_shares(page: &mut Page, run: &Run) {
    let Some(first) = run.gaps.iter().find(|gaps| !gaps.time_shares.is_empty()) else { return };
    let lengths: Vec<Nanos> = first.time_shares.iter().map(|share| share.at_least).collect();
    let mut head = vec!["share of time in gaps of at least".to_owned()];
    head.extend(lengths.iter().map(ToString::to_string));
    let cells = |gaps: &GapSummary, of: &str, share: fn(&TimeShare) -> f64| {
        let mut cells = vec![format!("CPU {}, of the {of}", gaps.cpu)];
        cells.extend(lengths.iter().map(|length| {
            let found = gaps.time_shares.iter().find(|share| share.at_least == *length);
            found.map_or("-".to_owned(), |found| percent(share(found)))
        }));
        cells
    };
    let rows: Vec<Vec<String>> = run
        .gaps
        .iter()
        .flat_map(|gaps| {
            [
                cells(gaps, "elapsed time", |share| share.of_elapsed),
                cells(gaps, "time inside readings", |share| share.of_inside),
            ]
        })
        .collect();
    page.blank();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    page.table(&head, &rows, &[]);
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
    let counting = gaps.counting.map_or(String::new(), |cost| counting(cost, run.clock.hz));
    page.item(&format!(
        "CPU {}: {kind} loop, {} iterations, period {:.2} ticks ({:.2} .. {:.2} over {} quiet \
         blocks), threshold {}; {closure}; {} migrations, {} records dropped, {recording} spent \
         recording ({each} a gap){unseen}{counting}",
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

/// What `--distribution` costs, in the words of the sentence it ends.
fn counting(cost: CountingCost, hz: Hertz) -> String {
    let ns = |ticks: f64| ticks * 1e9 / hz.0;
    format!(
        "; counting every delta costs {:.1}ns an iteration ({:.1}ns with it, {:.1}ns without, in \
         the warm-up)",
        ns(cost.period_with - cost.period_without),
        ns(cost.period_with),
        ns(cost.period_without),
    )
}

#[cfg(test)]
mod tests {
    use whylate_model::run::TimeShare;

    use super::*;
    use crate::terminal::Style;

    fn drawn(gaps: impl Fn(&mut GapSummary)) -> String {
        let mut run = crate::timeline::tests::recorded();
        run.gaps.iter_mut().for_each(gaps);
        let mut page = Page::new(Style::default());
        sections(&mut page, &run);
        page.finish()
    }

    /// The text without its line breaks.
    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn shares_of_time_are_told_over_both_denominators() {
        let share = |at_least, of_elapsed, of_inside| TimeShare { at_least, of_elapsed, of_inside };
        let text = drawn(|gaps| {
            gaps.time_shares =
                vec![share(Nanos(1_000), 0.045, 0.09), share(Nanos(1_000_000), 0.001, 0.002)];
        });
        for wanted in ["1.00us", "1.00ms", "of the elapsed time", "of the time inside readings"] {
            assert!(text.contains(wanted), "no {wanted} in {text}");
        }
        for wanted in ["4.50%", "9.00%", "0.100%", "0.200%"] {
            assert!(text.contains(wanted), "no {wanted} in {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_cost_of_counting_is_told_where_every_delta_was_counted() {
        let with = drawn(|gaps| {
            gaps.counting = Some(CountingCost { period_with: 46.0, period_without: 28.0 });
        });
        assert!(words(&with).contains("counting every delta costs"), "{with}");
        let without = drawn(|gaps| gaps.counting = None);
        assert!(!words(&without).contains("counting every delta"), "{without}");
    }
}
