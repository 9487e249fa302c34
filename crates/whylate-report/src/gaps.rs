//! CPU time that busy threads lost.

use whylate_model::run::{Closure, CountingCost, GapSummary, LoopKind, Rate, Run, TimeShare};
use whylate_model::{Hertz, Nanos};

use crate::doc::{Block, Table, Where};
use crate::numbers::{Cell, Value, between, count, time};

/// Threads with a row each; the others are in run.json.
const MOST_ON_A_TERMINAL: usize = 256;
const MOST_ON_THE_PAGE: usize = 64;
/// Up to so many threads have a column of rates with intervals, and a paragraph each.
const FEW: usize = 2;
const SEVERAL: usize = 4;
/// The same of the page, which is wider.
const FEW_ON_THE_PAGE: usize = 8;

/// How the table is to be read.
const LOST: &str = "lost: share of the elapsed time in stalls, less the loop's own period; below: noise too \
                    short to be a stall, as a share of the elapsed time.";

/// What there is to say; nothing where no thread was busy.
pub(crate) fn blocks(run: &Run, to: Where) -> Vec<Block> {
    if run.gaps.is_empty() {
        return Vec::new();
    }
    let most = if to == Where::Page { MOST_ON_THE_PAGE } else { MOST_ON_A_TERMINAL };
    let shown = &shown(run, most);
    let mut blocks = vec![Block::Table(table(run, shown))];
    let more = run.gaps.len() - shown.len();
    blocks.extend((more > 0).then(|| Block::Items(vec![format!("{more} more are in run.json")])));
    blocks.push(Block::How(LOST.to_owned()));
    blocks.extend(rates(run, shown, to));
    blocks.extend(time_shares(run, shown));
    let told = |gaps: &&GapSummary| {
        shown.len() <= SEVERAL
            || gaps.closure != Closure::Holds
            || gaps.dropped > 0
            || gaps.migrations > 0
    };
    let mut details: Vec<String> =
        shown.iter().filter(told).map(|gaps| details(run, gaps)).collect();
    let quiet = shown.iter().filter(|gaps| !told(gaps)).count();
    if quiet > 0 {
        details.push(format!(
            "{quiet} threads: the closure holds; 0 migrations, 0 records dropped (each in run.json)"
        ));
    }
    blocks.extend(Block::items(details));
    blocks
}

/// Threads that have a row, in the order of the run: where there are more, those that lost most, for the answer
/// names the one of them that lost most of all.
fn shown(run: &Run, most: usize) -> Vec<GapSummary> {
    let mut shown: Vec<usize> = (0..run.gaps.len()).collect();
    shown.sort_by(|a, b| run.gaps[*b].lost_share.total_cmp(&run.gaps[*a].lost_share));
    shown.truncate(most);
    shown.sort_unstable();
    shown.into_iter().map(|at| run.gaps[at].clone()).collect()
}

fn table(run: &Run, shown: &[GapSummary]) -> Table {
    let head = [
        "thread",
        "elapsed",
        "stalls",
        "lost",
        "95% interval",
        "threshold",
        "period",
        "below",
        "closure",
    ];
    let mut table = Table::new("Lost CPU time", &head)
        .words(&[8])
        .page_columns(&[8])
        .most(MOST_ON_A_TERMINAL + 1);
    for gaps in shown {
        table.row(row(run, gaps));
    }
    table.rows.extend(all_cpus(run));
    table
}

fn row(run: &Run, gaps: &GapSummary) -> [Cell; 9] {
    let period_ns = gaps.period_ticks * 1e9 / run.clock.hz.0;
    let ends = gaps.lost_share_interval.map(|(low, high)| (Value::Share(low), Value::Share(high)));
    let lost = Cell::from(Value::Share(gaps.lost_share)).within(ends);
    [
        run.thread_name(gaps).into(),
        gaps.end.since(gaps.start).to_nanos(run.clock.hz).into(),
        Value::Count(gaps.gaps).into(),
        lost.alone(),
        lost.ends(),
        gaps.threshold.to_nanos(run.clock.hz).into(),
        Value::Time(period_ns).into(),
        // The estimate may come out below nothing, noise cannot.
        Value::Share(gaps.noise_below_threshold.max(0.0)).into(),
        gaps.closure.to_string().into(),
    ]
}

/// The sum over the CPUs of one measurement, where there are several.
fn all_cpus(run: &Run) -> Option<Vec<Cell>> {
    let pinned = |gaps: &GapSummary| run.thread_name(gaps) == format!("CPU {}", gaps.cpu);
    if run.gaps.len() < 2 || !run.gaps.iter().all(pinned) {
        return None;
    }
    let elapsed = |gaps: &GapSummary| gaps.end.since(gaps.start).to_nanos(run.clock.hz).0;
    let all: u64 = run.gaps.iter().map(elapsed).fold(0, u64::saturating_add);
    let lost: f64 = run.gaps.iter().map(|gaps| gaps.lost_share * elapsed(gaps) as f64).sum();
    let mut cells: Vec<Cell> = vec![
        format!("{} CPUs", run.gaps.len()).into(),
        Nanos(all).into(),
        Value::Count(run.gaps.iter().map(|gaps| gaps.gaps).fold(0, u64::saturating_add)).into(),
        Value::Share(lost / (all as f64).max(1.0)).into(),
    ];
    cells.resize(9, "".into());
    Some(cells)
}

/// Gaps per second of at least each length.
fn rates(run: &Run, shown: &[GapSummary], to: Where) -> Vec<Block> {
    let most = shown.iter().max_by_key(|gaps| gaps.rates.len());
    let Some(most) = most.filter(|gaps| !gaps.rates.is_empty()) else { return Vec::new() };
    let lengths: Vec<Nanos> = most.rates.iter().map(|wanted| wanted.at_least).collect();
    match to {
        Where::Page => {
            let few = &shown[..shown.len().min(FEW_ON_THE_PAGE)];
            vec![Block::Table(rates_in_columns(run, few, &lengths))]
        }
        _ if shown.len() <= FEW => vec![Block::Table(rates_in_columns(run, shown, &lengths))],
        _ => vec![
            Block::Table(rates_in_rows(run, shown, &lengths)),
            Block::Items(vec!["their intervals are on the page and in run.json".to_owned()]),
        ],
    }
}

/// A column with intervals for each thread.
fn rates_in_columns(run: &Run, shown: &[GapSummary], lengths: &[Nanos]) -> Table {
    let names = shown.iter().map(|gaps| format!("{} (95% interval)", run.thread_name(gaps)));
    let mut table = Table::new("Stalls per second", &["stalls of at least"])
        .columns(names)
        .captioned_on_the_page();
    let with_interval = |found: &Rate| {
        let (low, high) = found.interval;
        let interval = Some((Value::Rate(low), Value::Rate(high)));
        Cell::from(Value::Rate(found.per_second)).within(interval)
    };
    for length in lengths {
        let found = shown.iter().map(|gaps| rate_of(gaps, *length));
        let cells = found.map(|of| of.map_or(Value::Absent.into(), with_interval));
        table.row([Cell::from(*length)].into_iter().chain(cells));
    }
    table
}

/// A row for each thread.
fn rates_in_rows(run: &Run, shown: &[GapSummary], lengths: &[Nanos]) -> Table {
    let mut table = Table::new("Stalls per second", &["stalls of at least"])
        .columns(lengths.iter().map(|length| Value::from(*length).to_string()))
        .captioned_on_the_page();
    for gaps in shown {
        let found = lengths.iter().map(|length| rate_of(gaps, *length));
        let cells = found.map(|of| of.map(|of| Value::Rate(of.per_second)).into());
        table.row([Value::from(run.thread_name(gaps))].into_iter().chain(cells));
    }
    table
}

fn rate_of(gaps: &GapSummary, at_least: Nanos) -> Option<&Rate> {
    gaps.rates.iter().find(|rate| rate.at_least == at_least)
}

/// The time-weighted view: two rows for each thread, for a share of time names its denominator.
fn time_shares(run: &Run, shown: &[GapSummary]) -> Vec<Block> {
    let most = shown.iter().max_by_key(|gaps| gaps.time_shares.len());
    let Some(most) = most.filter(|gaps| !gaps.time_shares.is_empty()) else { return Vec::new() };
    let lengths: Vec<Nanos> = most.time_shares.iter().map(|share| share.at_least).collect();
    let cells = |gaps: &GapSummary, of: &str, share: fn(&TimeShare) -> f64| {
        let name = Value::from(format!("{}, of the {of}", run.thread_name(gaps)));
        let of_length = |length: &Nanos| {
            let found = gaps.time_shares.iter().find(|share| share.at_least == *length);
            Value::from(found.map(|found| Value::Share(share(found))))
        };
        [name].into_iter().chain(lengths.iter().map(of_length)).collect::<Vec<_>>()
    };
    let mut table = Table::new("Share of time in stalls", &["share of time in stalls of at least"])
        .columns(lengths.iter().map(|length| Value::from(*length).to_string()))
        .captioned_on_the_page();
    for gaps in shown {
        table.row(cells(gaps, "elapsed time", |share| share.of_elapsed));
        if shown.len() <= SEVERAL {
            table.row(cells(gaps, "time inside readings", |share| share.of_inside));
        }
    }
    let others = (shown.len() > SEVERAL).then(|| {
        Block::Items(vec!["shares of the time inside readings are in run.json".to_owned()])
    });
    [Block::Table(table)].into_iter().chain(others).collect()
}

fn details(run: &Run, gaps: &GapSummary) -> String {
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
    let each = Value::from(recording.0.checked_div(gaps.gaps).map(Nanos));
    let unseen = match gaps.unseen_ticks.to_nanos(run.clock.hz) {
        Nanos(0) => String::new(),
        unseen => format!(", {} between pairs not seen", Value::from(unseen)),
    };
    let ns = |ticks: f64| ticks * 1e9 / run.clock.hz.0;
    let (low, high) = gaps.period_spread_ticks;
    let counting = gaps.counting.map_or(String::new(), |cost| counting(cost, run.clock.hz));
    format!(
        "{}: {kind} loop, {} iterations, period {} ({} over {} quiet blocks), threshold {}; \
         {closure}; {} migrations, {} records dropped, {} spent recording \
         ({each} a stall){unseen}{counting}",
        run.thread_name(gaps),
        count(gaps.iterations),
        time(ns(gaps.period_ticks)),
        between(Some(Value::Time(ns(low))), Some(Value::Time(ns(high)))),
        count(gaps.blocks),
        threshold(gaps, &time(ns(gaps.threshold.0 as f64))),
        count(gaps.migrations),
        count(gaps.dropped),
        Value::from(recording),
    )
}

/// The shortest stall that was recorded, and the rule that it was found by, where it was not given.
fn threshold(gaps: &GapSummary, found: &str) -> String {
    let rule = gaps.threshold_rule.strip_prefix("max(").and_then(|rule| {
        let (floor, times) = rule.strip_suffix(" of the warm-up)")?.split_once(", ")?;
        let (factor, percentile) = times.split_once(" x ")?;
        Some(format!("{found}: the larger of {floor} and {factor} × the warm-up's {percentile}"))
    });
    rule.unwrap_or_else(|| gaps.threshold_rule.clone())
}

/// What `--distribution` costs, in the words of the sentence it ends.
fn counting(cost: CountingCost, hz: Hertz) -> String {
    let ns = |ticks: f64| ticks * 1e9 / hz.0;
    format!(
        "; counting every delta costs {} an iteration ({} with it, {} without, in \
         the warm-up)",
        time(ns(cost.period_with - cost.period_without)),
        time(ns(cost.period_with)),
        time(ns(cost.period_without)),
    )
}

#[cfg(test)]
mod tests;
