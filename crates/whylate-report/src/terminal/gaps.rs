//! What busy threads did not get.

use whylate_model::run::{Closure, CountingCost, GapSummary, LoopKind, Rate, Run, TimeShare};
use whylate_model::{Hertz, Nanos};

use crate::numbers::{Cell, Value, count, percent, rate};
use crate::render::terminal::Page;

/// Threads with a row each; the others are in run.json.
const MOST_ROWS: usize = 256;
/// Up to so many threads have a column of rates with intervals, and a paragraph each.
const FEW: usize = 2;
const SEVERAL: usize = 4;

pub(super) fn sections(page: &mut Page, run: &Run) {
    if run.gaps.is_empty() {
        return;
    }
    let shown = &run.gaps[..run.gaps.len().min(MOST_ROWS)];
    page.section("What a busy thread did not get");
    let mut rows: Vec<Vec<String>> = shown.iter().map(|gaps| row(run, gaps)).collect();
    rows.extend(all_cpus(run));
    let head =
        ["thread", "elapsed", "gaps", "lost", "95 % interval", "threshold", "period", "below"];
    page.table(&head, &rows, &[]);
    if run.gaps.len() > shown.len() {
        page.item(&format!("{} more are in run.json", run.gaps.len() - shown.len()));
    }
    page.paragraph(
        "lost: share of the elapsed time in gaps, less the loop's own period; below: noise too \
         short to be a gap, as a share of the elapsed time.",
    );
    rates(page, run, shown);
    time_shares(page, run, shown);
    let told = |gaps: &&GapSummary| {
        shown.len() <= SEVERAL
            || gaps.closure != Closure::Holds
            || gaps.dropped + gaps.migrations > 0
    };
    for gaps in shown.iter().filter(told) {
        details(page, run, gaps);
    }
    let quiet = shown.iter().filter(|gaps| !told(gaps)).count();
    if quiet > 0 {
        page.item(&format!(
            "{quiet} threads: the closure holds; 0 migrations, 0 records dropped (each in run.json)"
        ));
    }
}

fn row(run: &Run, gaps: &GapSummary) -> Vec<String> {
    let elapsed = gaps.end.since(gaps.start).to_nanos(run.clock.hz);
    let period_ns = gaps.period_ticks * 1e9 / run.clock.hz.0;
    let interval = gaps
        .lost_share_interval
        .map_or("-".to_owned(), |(low, high)| format!("{} .. {}", percent(low), percent(high)));
    vec![
        run.thread_name(gaps),
        elapsed.to_string(),
        count(gaps.gaps),
        percent(gaps.lost_share),
        interval,
        gaps.threshold.to_nanos(run.clock.hz).to_string(),
        format!("{period_ns:.2}ns"),
        percent(gaps.noise_below_threshold),
    ]
}

/// The sum over the CPUs of one measurement, where there are several.
fn all_cpus(run: &Run) -> Option<Vec<String>> {
    let pinned = |gaps: &GapSummary| run.thread_name(gaps) == format!("CPU {}", gaps.cpu);
    if run.gaps.len() < 2 || !run.gaps.iter().all(pinned) {
        return None;
    }
    let elapsed = |gaps: &GapSummary| gaps.end.since(gaps.start).to_nanos(run.clock.hz).0;
    let all: u64 = run.gaps.iter().map(elapsed).sum();
    let lost: f64 = run.gaps.iter().map(|gaps| gaps.lost_share * elapsed(gaps) as f64).sum();
    let mut cells = vec![
        format!("{} CPUs", run.gaps.len()),
        Nanos(all).to_string(),
        count(run.gaps.iter().map(|gaps| gaps.gaps).sum()),
        percent(lost / (all as f64).max(1.0)),
    ];
    cells.resize(8, String::new());
    Some(cells)
}

fn rates(page: &mut Page, run: &Run, shown: &[GapSummary]) {
    let most = shown.iter().max_by_key(|gaps| gaps.rates.len());
    let Some(most) = most.filter(|gaps| !gaps.rates.is_empty()) else { return };
    let lengths: Vec<Nanos> = most.rates.iter().map(|wanted| wanted.at_least).collect();
    page.blank();
    if shown.len() <= FEW {
        rates_in_columns(page, run, shown, &lengths);
    } else {
        rates_in_rows(page, run, shown, &lengths);
    }
}

/// A column with intervals for each thread.
fn rates_in_columns(page: &mut Page, run: &Run, shown: &[GapSummary], lengths: &[Nanos]) {
    let mut head = vec!["gaps of at least".to_owned()];
    head.extend(shown.iter().map(|gaps| format!("{} (95 % interval)", run.thread_name(gaps))));
    let with_interval = |found: &Rate| {
        let (low, high) = found.interval;
        let interval = Some((Value::Rate(low), Value::Rate(high)));
        Cell::from(Value::Rate(found.per_second)).within(interval).to_string()
    };
    let row = |length: &Nanos| {
        let found = shown.iter().map(|gaps| rate_of(gaps, *length));
        let cells = found.map(|found| found.map_or("-".to_owned(), with_interval));
        [length.to_string()].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = lengths.iter().map(row).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    page.table(&head, &rows, &[]);
}

/// A row for each thread.
fn rates_in_rows(page: &mut Page, run: &Run, shown: &[GapSummary], lengths: &[Nanos]) {
    let mut head = vec!["gaps of at least".to_owned()];
    head.extend(lengths.iter().map(ToString::to_string));
    let row = |gaps: &GapSummary| {
        let found = lengths.iter().map(|length| rate_of(gaps, *length));
        let cells = found.map(|found| found.map_or("-".to_owned(), |found| rate(found.per_second)));
        [run.thread_name(gaps)].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    page.table(&head, &rows, &[]);
    page.item("their intervals are on the page and in run.json");
}

fn rate_of(gaps: &GapSummary, at_least: Nanos) -> Option<&Rate> {
    gaps.rates.iter().find(|rate| rate.at_least == at_least)
}

/// The time-weighted view: two rows for each thread, for a share of time names its denominator.
fn time_shares(page: &mut Page, run: &Run, shown: &[GapSummary]) {
    let most = shown.iter().max_by_key(|gaps| gaps.time_shares.len());
    let Some(most) = most.filter(|gaps| !gaps.time_shares.is_empty()) else { return };
    let lengths: Vec<Nanos> = most.time_shares.iter().map(|share| share.at_least).collect();
    let mut head = vec!["share of time in gaps of at least".to_owned()];
    head.extend(lengths.iter().map(ToString::to_string));
    let cells = |gaps: &GapSummary, of: &str, share: fn(&TimeShare) -> f64| {
        let mut cells = vec![format!("{}, of the {of}", run.thread_name(gaps))];
        cells.extend(lengths.iter().map(|length| {
            let found = gaps.time_shares.iter().find(|share| share.at_least == *length);
            found.map_or("-".to_owned(), |found| percent(share(found)))
        }));
        cells
    };
    let rows: Vec<Vec<String>> = shown
        .iter()
        .flat_map(|gaps| {
            let inside = cells(gaps, "time inside readings", |share| share.of_inside);
            let elapsed = cells(gaps, "elapsed time", |share| share.of_elapsed);
            [Some(elapsed), (shown.len() <= SEVERAL).then_some(inside)]
        })
        .flatten()
        .collect();
    page.blank();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    page.table(&head, &rows, &[]);
    if shown.len() > SEVERAL {
        page.item("shares of the time inside readings are in run.json");
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
    let ns = |ticks: f64| ticks * 1e9 / run.clock.hz.0;
    let counting = gaps.counting.map_or(String::new(), |cost| counting(cost, run.clock.hz));
    page.item(&format!(
        "{}: {kind} loop, {} iterations, period {:.2}ns ({:.2}ns .. {:.2}ns over {} quiet \
         blocks), threshold {}; {closure}; {} migrations, {} records dropped, {recording} spent \
         recording ({each} a gap){unseen}{counting}",
        run.thread_name(gaps),
        count(gaps.iterations),
        ns(gaps.period_ticks),
        ns(gaps.period_spread_ticks.0),
        ns(gaps.period_spread_ticks.1),
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
