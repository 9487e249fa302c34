//! The sections of what a context switch costs.

use whylate_model::execution;
use whylate_model::switch_cost::{
    Between, Direct, DirectRow, How, IndirectRow, Outcome, SwitchCost, SwitchTimes,
};
use whylate_model::{Bytes, Nanos};
use whylate_stats::Histogram;

use crate::doc::{Block, Picture, Section, Table};
use crate::execution::bins;
use crate::numbers::{ABSENT, Cell, Value, between, count, number, percent, rate, time, with_ends};
use crate::svg::switches::Panel;

mod growth;

use growth::{GROWTH, growth, growth_remarks};

/// Columns of the table of times for which a terminal has no room: the percentiles of all of them stand in the
/// table of series.
const PERCENTILES: [usize; 3] = [6, 7, 8];

/// How the table of times is to be read.
const TIMES: &str = "From the last reading of one runner to the first of the next, \
     without tracing. The cost to expect is the median of the dense cluster near the shortest; its 95% \
     interval is that over repetitions of all kinds in turns (Student's t), or by order statistics \
     within the cluster where that is wider; contaminated are those over twice that. By \
     evidence: of a part with the kernel's trace on, which costs something itself, those that the \
     events say were what was asked for, with nothing else in them.";
/// The same for that of the evidence.
const EVIDENCE: &str = "Kernel's count: nvcsw / nivcsw of the runners without tracing; the \
     kernel counts sched_yield as involuntary. The other columns are of the part with the kernel's \
     trace: how each switch went by its sched_switch (the runner before was still runnable, or \
     slept), by a tick before it, and by others or other interrupts inside it.";
/// The same for that of working sets.
const PENALTY: &str = "C = ((W1 - W10) / W1) x (T / N10): work that ten runners do less \
     than one, for each of their switches; mean of paired trials with its 95% interval by Student's t. \
     Refill: what filling the caches again should take, by the size of the set and the read \
     bandwidths of this machine. C includes the switch itself, which the refill does not.";
/// The same for that of what filling the caches again should take.
const REFILL: &str = "Warm and cold: the bytes of a set by the read bandwidth of the smallest \
     cache that holds it, and of the smallest that holds the sets of all runners, or of memory. \
     Refill: their difference, for C is work that is lost, and a runner alone reads its set, too. \
     Timed: passes over such sets, again and after those of the others; they contain what is to be \
     predicted, and predict nothing.";

/// Pictures of what was found, which the page has.
#[derive(Debug, Default)]
pub(crate) struct Pictures {
    /// Times by kind: Figure 4 of Hourglass.
    pub(crate) times: Option<String>,
    /// What a switch costs by working set: Figure 5.
    pub(crate) caches: Option<String>,
}

/// The sections of what switches cost: by kind and by evidence, and by working set.
pub(crate) fn sections(found: &SwitchCost, pictures: Pictures) -> Vec<Section> {
    let picture = |svg: Option<String>| svg.map(|svg| Block::Figure(Picture::still(svg, "")));
    let mut direct: Vec<Block> = picture(pictures.times).into_iter().collect();
    let known = [
        times(found).map(|table| Block::explained(table.page_columns(&PERCENTILES), TIMES)),
        evidence(found).map(|table| Block::explained(table, EVIDENCE)),
    ];
    direct.extend(known.into_iter().flatten().flatten());
    direct.extend(Block::items(remarks(found)));

    let mut caches: Vec<Block> = picture(pictures.caches).into_iter().collect();
    if let Some(penalties) = penalties(found) {
        caches.extend(Block::explained(penalties, PENALTY));
        caches.push(Block::Items(penalty_remarks(found)));
    }
    caches.extend(refills(found).into_iter().flat_map(|table| Block::explained(table, REFILL)));
    caches.extend(Block::items(refill_remarks(found)));
    if let Some(growth) = growth(found) {
        caches.extend(Block::explained(growth, GROWTH));
        caches.push(Block::Items(growth_remarks(found)));
    }
    let both = [
        Section::new("switch-times", "Context switches", direct),
        Section::new("working-sets", "Through the caches", caches),
    ];
    both.into_iter().filter(|of| !of.blocks.is_empty()).map(Section::headed).collect()
}

/// Times by kind; none where they were left out.
pub(crate) fn times(found: &SwitchCost) -> Option<Table> {
    let head =
        ["switch", "n", "shortest", "expected", "95% interval", "contam.", "p50", "p99", "max"];
    let mut table = Table::new("Times of context switches", &head);
    for (row, direct) in measured(found) {
        let (times, n) = (&direct.times, direct.times.n);
        table.row(times_row(name(row), times, direct.interval(), n));
        if let Some(traced) = direct.traced
            && let Some(times) = traced.times
        {
            let name = "  by evidence".to_owned();
            table.row(times_row(name, &times, times.cluster_interval, traced.switches));
        }
    }
    table.filled()
}

/// Contaminated ones are a share of `all` switches that were looked at.
fn times_row(
    name: String,
    times: &SwitchTimes,
    within: Option<(Nanos, Nanos)>,
    all: u64,
) -> Vec<String> {
    let within = within.map(|(low, high)| (low.into(), high.into()));
    let [expected, within] = with_ends(times.cluster_median.into(), within);
    vec![
        name,
        count(times.n),
        Value::from(times.shortest).to_string(),
        expected,
        within,
        share(times.contaminated, all),
        or_absent(times.p50),
        or_absent(times.p99),
        Value::from(times.max).to_string(),
    ]
}

/// What the kernel says of the switches; none where there is nothing.
fn evidence(found: &SwitchCost) -> Option<Table> {
    let head = ["switch", "kernel's count", "traced", "runnable", "slept", "tick", "others"];
    let rows = measured(found).map(|(row, direct)| {
        let counted = direct.kernel;
        let kernel = format!("{} / {}", count(counted.voluntary), count(counted.involuntary));
        let traced = direct.traced.map(|of| {
            let others = of.with_others + of.with_interrupt;
            [of.switches, of.runnable, of.sleeping, of.with_tick, others].map(Value::Count)
        });
        let traced = traced.unwrap_or([const { Value::Absent }; 5]);
        [name(row).into(), kernel.into()].into_iter().chain(traced)
    });
    Table::new("Context switches by evidence", &head).with(rows).filled()
}

/// What is to be said beside the times.
fn remarks(found: &SwitchCost) -> Vec<String> {
    let mut said: Vec<String> = found
        .direct
        .iter()
        .filter_map(|row| match &row.outcome {
            Outcome::Refused { reason } => {
                Some(format!("{} was not measured: {}", name(row), reason))
            }
            Outcome::Measured(_) => None,
        })
        .collect();
    for between in [Between::Threads, Between::Processes] {
        if let Some(direct) = found.measured(between, How::Involuntary)
            && let Some(quantum) = direct.quantum
        {
            let interval = match quantum.interval {
                Some((low, high)) => format!(" (95% interval {})", ends(low, high)),
                None => String::new(),
            };
            said.push(format!(
                "the kernel lets {} of normal priority run for {}{interval}: {} switches",
                between.name(),
                Value::from(quantum.median),
                rate(quantum.per_second)
            ));
        }
    }
    if !found.direct.is_empty() {
        said.push(quanta(found));
    }
    if let Some(tick) = found.tick {
        said.push(format!(
            "a timer tick without a switch takes {} every {} (median of {}, traced)",
            Value::from(tick.cost),
            Value::from(tick.period),
            count(tick.n)
        ));
    }
    said.extend(in_turns(found));
    said
}

/// How often kinds took turns. With one turn each, what differs between them may be drift.
fn in_turns(found: &SwitchCost) -> Option<String> {
    let turns = measured(found)
        .map(|(_, direct)| direct.repetitions.as_ref().map_or(1, |of| of.medians.len()));
    let (fewest, most) = turns.fold((usize::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
    match (fewest, most) {
        (_, 0) => None,
        (..=1, ..=1) => Some(
            "kinds were measured one after the other, once: what differs between them may be drift"
                .to_owned(),
        ),
        (fewest, most) if fewest == most => {
            Some(format!("kinds took turns: {most} repetitions of each"))
        }
        (fewest, most) => Some(format!(
            "kinds took turns: {fewest} to {most} repetitions of each have a cost to expect"
        )),
    }
}

fn quanta(found: &SwitchCost) -> String {
    let slice = match found.kernel.base_slice {
        Some(slice) => {
            format!("the kernel's slice of normal threads is {}", Value::from(slice))
        }
        None => {
            "the kernel's slice of normal threads cannot be read (it lies in debugfs)".to_owned()
        }
    };
    match found.kernel.round_robin {
        Some(round_robin) => format!("{slice}; that of SCHED_RR is {}", Value::from(round_robin)),
        None => slice,
    }
}

/// Penalties by working set; none where they were left out.
pub(crate) fn penalties(found: &SwitchCost) -> Option<Table> {
    let head = ["working set", "pairs", "C", "95% interval", "C - switch", "refill", "not 0?"];
    let switch = switch_inside(found);
    Table::new("What a switch costs through the caches", &head)
        .with(found.indirect.iter().map(|row| penalty_row(row, switch)))
        .filled()
}

fn penalty_row(row: &IndirectRow, switch: Option<Nanos>) -> Vec<String> {
    let refill = row.refill.map_or(ABSENT.to_owned(), |refill| time(refill.predicted_ns));
    let mut cells = vec![size(row.bytes)];
    match &row.penalty {
        None => cells.extend([
            format!("{} of {}", row.tried - (row.discarded + row.empty).min(row.tried), row.tried),
            ABSENT.into(),
            ABSENT.into(),
            ABSENT.into(),
        ]),
        Some(penalty) => {
            let (low, high) = penalty.interval_ns;
            // Whatever is taken off, the interval is as wide, and supports as many digits.
            let less = |switch: f64| {
                let [mean, low, high] =
                    [penalty.mean_ns, low, high].map(|of| Value::Time(of - switch));
                Cell::from(mean).within(Some((low, high))).alone().to_string()
            };
            cells.extend([
                format!("{} of {}", penalty.pairs, row.tried),
                less(0.0),
                between(Some(Value::Time(low)), Some(Value::Time(high))),
                switch.map_or_else(|| ABSENT.to_owned(), |switch| less(switch.0 as f64)),
            ]);
        }
    }
    let shown = row.penalty.as_ref().map_or(ABSENT, |of| if of.is_shown() { "yes" } else { "no" });
    cells.extend([refill, shown.to_owned()]);
    cells
}

/// What filling the caches again should take, by its parts; none where nothing was predicted or timed.
fn refills(found: &SwitchCost) -> Option<Table> {
    let head = ["working set", "warm", "cold", "refill", "timed warm", "timed cold"];
    let from = |level: Option<u8>, ns: f64| format!("{} {}", level_name(level), time(ns));
    let known = found.indirect.iter().filter(|row| row.refill.is_some() || row.passes.is_some());
    let rows = known.map(|row| {
        let refill = row.refill.map(|of| {
            let (warm, cold) = (from(of.warm_from, of.warm_ns), from(of.cold_from, of.cold_ns));
            [warm.into(), cold.into(), Value::Time(of.predicted_ns)]
        });
        let refill = refill.unwrap_or([const { Value::Absent }; 3]);
        let passes = row.passes.map(|of| [of.warm_ns, of.cold_ns].map(Value::Time));
        let passes = passes.unwrap_or([const { Value::Absent }; 2]);
        [size(row.bytes).into()].into_iter().chain(refill).chain(passes)
    });
    Table::new("What filling the caches again should take", &head).with(rows).filled()
}

/// What is to be said beside that: how fast each level is read.
fn refill_remarks(found: &SwitchCost) -> Vec<String> {
    let rates: Vec<String> = found
        .bandwidths
        .iter()
        .filter_map(|of| {
            let (name, set) = (level_name(of.level), size(of.bytes));
            Some(format!("{name} {} GB/s (a set of {set})", number(of.gb_per_s?)))
        })
        .collect();
    let mut said = Vec::new();
    if !rates.is_empty() {
        said.push(format!(
            "read bandwidth, a word of each line and the whole line counted: {}",
            rates.join(", ")
        ));
    }
    let unknown = found.bandwidths.iter().filter_map(|of| Some((of.level, of.reason.as_ref()?)));
    said.extend(unknown.map(|(level, reason)| {
        format!("the read bandwidth of {} is not known: {}", level_name(level), reason)
    }));
    if found.bandwidths.is_empty() && !found.indirect.is_empty() {
        said.push("nothing is predicted: the kernel tells of no caches here".to_owned());
    }
    said
}

/// `L2`, or `memory`.
pub(crate) fn level_name(level: Option<u8>) -> String {
    level.map_or_else(|| "memory".to_owned(), |level| format!("L{level}"))
}

/// What of C is the switch itself: of the kind that the trials made.
fn switch_inside(found: &SwitchCost) -> Option<Nanos> {
    let how = match found.trials?.quantum {
        Some(_) => How::Yield,
        None => How::Involuntary,
    };
    found.measured(Between::Threads, how)?.times.cluster_median
}

/// What is to be said beside the penalties.
fn penalty_remarks(found: &SwitchCost) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(trials) = found.trials {
        let quantum = match trials.quantum {
            Some(quantum) => {
                format!("each yields after {} (the one alone to nobody)", Value::from(quantum))
            }
            None => "quanta are the kernel's".to_owned(),
        };
        said.push(format!(
            "pairs of trials of {}, one runner and {} on one CPU; {quantum}; a pair is discarded \
             where breaks of more than {}, in which none of the runners had the CPU, took more than {} \
             more of one trial than of the other",
            Value::from(trials.length),
            trials.runners,
            Value::from(trials.longest_break),
            percent(trials.breaks_apart)
        ));
        said.push(match trials.tick {
            Some(tick) => {
                let tick = Value::from(tick);
                format!("a tick takes {tick} of a busy thread here (median), at most half of that")
            }
            None => {
                "what a tick takes here was not found: long ones are among the breaks".to_owned()
            }
        });
    }
    let caches: Vec<String> = found
        .caches
        .iter()
        .map(|cache| match cache.shared_by {
            1 => format!("L{} {}", cache.level, size(cache.bytes)),
            shared => format!("L{} {} (of {shared} CPUs)", cache.level, size(cache.bytes)),
        })
        .collect();
    if !caches.is_empty() {
        said.push(format!("caches of CPU {}: {}", found.cpu, caches.join(", ")));
    }
    for row in &found.indirect {
        let of = size(row.bytes);
        if row.discarded + row.empty > 0 && row.penalty.is_some() {
            said.push(format!(
                "{of}: {} of {} pairs discarded: {}",
                row.discarded + row.empty,
                row.tried,
                discarded(row)
            ));
        }
        if let Some(reason) = &row.reason {
            said.push(format!("{of}: {reason}"));
        }
        if let Some(refill) = row.refill.filter(|refill| refill.reached < 1.0) {
            said.push(format!(
                "{of}: a turn reaches {} of a pass, which takes {} cold and {} warm",
                percent(refill.reached),
                time(refill.cold_ns),
                time(refill.warm_ns)
            ));
        }
    }
    said
}

/// Pairs that were discarded, by what is known of the reason.
pub(crate) fn discarded(row: &IndirectRow) -> String {
    let unnamed = row.discarded.saturating_sub(row.discarded_by_host);
    let parts = [
        (
            row.discarded_by_host,
            "for the hypervisor, which the kernel's count of stolen time bears out",
        ),
        (unnamed, "for longer breaks in which none of the runners had the CPU"),
        (row.empty, "without a switch or a pass"),
    ];
    let told = parts.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}"));
    told.collect::<Vec<_>>().join(", ")
}

/// The histograms of the kinds of switches, from the log; kinds without one are left out.
pub(crate) fn panels<'a>(
    found: &SwitchCost,
    histogram: impl Fn(&str) -> Option<&'a Histogram>,
) -> Vec<Panel> {
    let panel = |(row, direct): (&DirectRow, &Direct)| {
        let all = histogram(&direct.series)?;
        Some(Panel { label: name(row), times: drawn(direct, all) })
    };
    measured(found).filter_map(panel).collect()
}

/// Of switches whose cost is known all that are not contaminated are drawn, else 99 of 100.
fn drawn(direct: &Direct, all: &Histogram) -> execution::SwitchTimes {
    let times = &direct.times;
    let values: Vec<(Nanos, u64)> =
        all.bins().map(|(value, count)| (Nanos(value), count)).collect();
    let end = match times.cluster_median {
        Some(expected) => Nanos(expected.0.saturating_mul(2).min(times.max.0)),
        None => times.p99.unwrap_or(times.max),
    };
    let bins = bins(&values, end);
    let inside: u64 = bins.iter().map(|bin| bin.count).sum();
    execution::SwitchTimes {
        n: times.n,
        over: direct.over,
        shortest: times.shortest,
        expected: times.cluster_median,
        in_cluster: times.in_cluster,
        contaminated: times.contaminated,
        mean_ns: all.mean().unwrap_or_default(),
        longest: times.max,
        bins,
        beyond: all.len().saturating_sub(inside),
    }
}

fn measured(found: &SwitchCost) -> impl Iterator<Item = (&DirectRow, &Direct)> {
    found.direct.iter().filter_map(|row| match &row.outcome {
        Outcome::Measured(direct) => Some((row, direct.as_ref())),
        Outcome::Refused { .. } => None,
    })
}

fn name(row: &DirectRow) -> String {
    format!("{}, {}", row.between.name(), row.how.name())
}

fn or_absent(time: Option<Nanos>) -> String {
    Value::from(time).to_string()
}

fn ends(low: Nanos, high: Nanos) -> String {
    between(Some(low.into()), Some(high.into()))
}

fn share(part: Option<u64>, of: u64) -> String {
    part.map_or_else(|| ABSENT.to_owned(), |part| percent(part as f64 / of.max(1) as f64))
}

/// A size.
pub(crate) fn size(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

#[cfg(test)]
pub(crate) mod tests;
