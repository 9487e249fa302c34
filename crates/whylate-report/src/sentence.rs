//! The answer to a run's question in one sentence, the same on a terminal and on a page.

use whylate_model::cause::{Cause, CauseTotal};
use whylate_model::run::{GapSummary, Run, RunState, Verdict};
use whylate_model::series::{Definition, Series};
use whylate_model::threads::ThreadSummary;
use whylate_model::trust::Trust;
use whylate_model::wake::WakeSummary;
use whylate_model::{Nanos, Printable};

use crate::numbers::{count, percent};

/// Series of wake-ups as measured, and with those passed over, before the names of their threads.
const RAW: &str = "wake-";
const CORRECTED: &str = "wake-corrected-";

/// What came out, with the numbers that matter and how far they go.
///
/// True of every run: one that was killed, that saw no gap, that cannot be trusted. Causes have the names that
/// the tables give them, however the run was read.
#[must_use]
pub fn answer(run: &Run) -> String {
    let run = &run.as_shown();
    let said = match (most_lost(run), slowest(run)) {
        _ if run.only_wakes() => of_wakes(run),
        _ if !run.threads.is_empty() => of_threads(&run.threads),
        _ if run.calibration.is_some() => {
            run.calibration.as_deref().map_or_else(String::new, crate::calibration::answer)
        }
        _ if run.device.is_some() => {
            run.device.as_deref().map_or_else(String::new, crate::device::answer)
        }
        _ if run.backends.is_some() => {
            run.backends.as_deref().map_or_else(String::new, crate::backends::answer)
        }
        _ if !run.flows.is_empty() => crate::flows::answer(run),
        _ if run.watched.is_some() => {
            run.watched.as_deref().map_or_else(String::new, crate::breakdown::watched_answer)
        }
        _ if run.reflected.is_some() => run
            .reflected
            .as_deref()
            .map_or_else(String::new, |of| crate::reflected::answer(run, of)),
        _ if run.forward.is_some() => {
            run.forward.as_deref().map_or_else(String::new, crate::forward::answer)
        }
        _ if run.delay.is_some() => {
            run.delay.as_deref().map_or_else(String::new, crate::delay::answer)
        }
        _ if run.switch_cost.is_some() => crate::switch_cost::answer(run),
        (Some(gaps), _) => of_gaps(run, gaps),
        (None, Some(series)) => of_series(run, series),
        (None, None) => "Nothing was measured.".to_owned(),
    };
    let said = match run.state {
        RunState::Complete => said,
        RunState::Stopped => format!("Until it was stopped: {}", lower(&said)),
        RunState::Running => {
            format!("Up to the last checkpoint of a run that did not end: {}", lower(&said))
        }
    };
    if let Verdict::LimitExceeded { what } = &run.verdict {
        return with(&said, &format!("a limit was exceeded: {}", Printable(what)));
    }
    match Trust::of(run).poor().first() {
        Some(why) if !said.trim_end_matches('.').eq_ignore_ascii_case(why) => {
            with(&said, &format!("do not rely on this: {}", Printable(why)))
        }
        _ => said,
    }
}

/// On which machine, and by which tool.
pub(crate) fn machine(run: &Run) -> String {
    let host = &run.host;
    let machine = match &host.hypervisor {
        Some(name) => format!("virtual machine ({name})"),
        None => "bare metal".to_owned(),
    };
    format!(
        "{}, {}, {} CPUs, {machine}, Linux {}; whylate {}",
        host.hostname,
        host.cpu_model,
        host.cpus_online.len(),
        host.kernel,
        run.tool_version,
    )
}

/// What a reader has to know of how it was recorded.
pub(crate) fn notes(run: &Run) -> Vec<String> {
    let quick =
        run.command_line.iter().any(|word| word == "--quick").then_some(match run.switch_cost {
            Some(_) => "a quick run: shorter and fewer trials than usual, so intervals are wider",
            None => "a quick run: a tenth of the usual time, so less is known about the tail",
        });
    let state = match run.state {
        RunState::Complete => None,
        RunState::Stopped => Some("stopped early: everything up to then is here"),
        RunState::Running => Some(
            "this run did not end: it was killed, or is still going on; what follows is its last \
             checkpoint",
        ),
    };
    quick.into_iter().chain(state).map(str::to_owned).collect()
}

fn of_threads(threads: &[ThreadSummary]) -> String {
    let judged: Vec<_> = threads.iter().filter_map(|thread| thread.deadlines.as_ref()).collect();
    // A file may state any count.
    let hits = saturating(judged.iter().map(|of| of.hits));
    let misses = saturating(judged.iter().map(|of| of.misses));
    if judged.is_empty() {
        let received = saturating(threads.iter().map(|thread| thread.received.0));
        let blocks = saturating(threads.iter().map(|thread| thread.blocks));
        return format!(
            "{} threads received {} of CPU time in {} blocks.",
            threads.len(),
            Nanos(received),
            count(blocks)
        );
    }
    if misses == 0 {
        return format!("All {} deadlines were met.", count(hits));
    }
    let worst = threads
        .iter()
        .max_by_key(|thread| thread.deadlines.as_ref().map_or(0, |deadlines| deadlines.misses));
    let worst = worst.map_or(String::new(), |thread| {
        let causes = thread.deadlines.iter().flat_map(|of| &of.causes);
        let most = causes.max_by_key(|of| of.misses).filter(|of| of.cause != Cause::Unknown);
        let named = most.map_or(String::new(), |of| {
            format!(", because of {} ({})", of.cause, count(of.misses))
        });
        format!("; most of them by thread {}{named}", Printable(&thread.name))
    });
    format!(
        "{} of {} deadlines were missed{worst}.",
        count(misses),
        count(hits.saturating_add(misses))
    )
}

fn saturating(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// The best and the worst of the threads that were woken, by the median. An activation that a late
/// thread passed over counts at its own lateness: without it a stall would be one late wake-up.
fn of_wakes(run: &Run) -> String {
    let series = |of: &WakeSummary| {
        let named = |prefix: &str| {
            let name = format!("{prefix}{}", of.thread);
            run.series.iter().find(move |series| series.name == name)
        };
        named(CORRECTED).or_else(|| named(RAW))
    };
    let median = |series: &&Series| series.at(50.0);
    let all: Vec<&Series> = run.wakes.iter().filter_map(series).collect();
    let known = all.iter().copied().filter(|series| median(series).is_some());
    let Some(best) = known.min_by_key(median) else {
        return "No thread was woken often enough for a median.".to_owned();
    };
    let worst = all.iter().copied().max_by_key(|series| series.max).unwrap_or(best);
    let skipped = saturating(run.wakes.iter().filter_map(|of| of.skipped));
    let named = |word: &str, series: &Series| match all.len() {
        1 => String::new(),
        several => {
            let name = series.name.strip_prefix(CORRECTED);
            let thread = Printable(name.unwrap_or(series.name.trim_start_matches(RAW)));
            format!(" ({word} of {several}: {thread})")
        }
    };
    let shown = |value: Option<Nanos>| value.map_or("-".to_owned(), |value| value.to_string());
    let counted = if skipped > 0 { ", and count at their own latency" } else { "" };
    format!(
        "Wake-up latency: p50 {}{}, worst {}{}; {} wake-ups were skipped{counted}.",
        shown(median(&best)),
        named("best", best),
        shown(worst.max),
        named("worst", worst),
        count(skipped)
    )
}

fn of_gaps(run: &Run, gaps: &GapSummary) -> String {
    let elapsed = gaps.end.since(gaps.start).to_nanos(run.clock.hz);
    if gaps.gaps == 0 {
        let threshold = gaps.threshold.to_nanos(run.clock.hz);
        return format!(
            "{} lost nothing in {elapsed} that the loop could see: no gap above {threshold}.",
            who(run, gaps),
        );
    }
    let interval = gaps.lost_share_interval.map_or(String::new(), |(low, high)| {
        format!(" (95% interval {} .. {})", percent(low), percent(high))
    });
    format!(
        "{} lost {} of {elapsed}{interval}{}{}.",
        who(run, gaps),
        percent(gaps.lost_share),
        taken_by(run, gaps),
        longest(run, gaps),
    )
}

/// The longest stall of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) length: Nanos,
    /// It lies between two readings of the counter without a pause, and is no gap.
    between_readings: bool,
}

/// The longest stall of the CPU that the run saw. A check-up reads the counter without a pause, too, before it
/// looks for gaps, and each of its parts may have met the longest.
pub(crate) fn longest_stall(run: &Run, gaps: &GapSummary) -> Option<Stall> {
    let of_gaps = run.series.iter().find(|series| series.name == gaps.series);
    let of_gaps = of_gaps.and_then(|series| series.max).or_else(|| {
        run.worst.iter().filter(|gap| gap.cpu_before == gaps.cpu).map(|gap| gap.length).max()
    });
    let readings = run.series.iter().filter(|series| {
        let thread = gaps.series.strip_prefix("gap-").unwrap_or(&gaps.series);
        series.definition == Definition::ReadDelta
            && series.name.strip_prefix("delta-") == Some(thread)
    });
    let reading = readings.filter_map(|series| series.max).max();
    let between_readings = reading > of_gaps;
    let length = if between_readings { reading } else { of_gaps }?;
    Some(Stall { length, between_readings })
}

fn longest(run: &Run, gaps: &GapSummary) -> String {
    match longest_stall(run, gaps) {
        Some(Stall { length, between_readings: true }) => {
            format!("; the longest stall was {length}, between two readings of the counter")
        }
        Some(Stall { length, .. }) => format!("; the longest gap was {length}"),
        None => String::new(),
    }
}

fn who(run: &Run, gaps: &GapSummary) -> String {
    match run.gaps.len() {
        1 => run.thread_name(gaps),
        several => {
            format!("Of {several} threads that of {} fared worst: it", run.thread_name(gaps))
        }
    }
}

/// Who took most of what a CPU lost; nothing where causes are not in this run.
fn taken_by(run: &Run, gaps: &GapSummary) -> String {
    if run.causes.is_empty() {
        return String::new();
    }
    let of = |cpu| run.causes.iter().filter(move |total: &&CauseTotal| total.cpu == cpu);
    let own: Vec<&CauseTotal> = of(Some(gaps.cpu)).collect();
    let totals = if own.is_empty() { of(None).collect() } else { own };
    let lost: f64 = totals.iter().map(|total| total.lost_ns).sum();
    let largest = totals.iter().max_by(|a, b| a.lost_ns.total_cmp(&b.lost_ns));
    let Some(largest) = largest.filter(|total| total.lost_ns > 0.0) else {
        return ", to what is not known".to_owned();
    };
    let share = largest.lost_ns / lost;
    let part = if share > 0.5 { "most of it" } else { "the largest part of it" };
    let to = match &largest.cause {
        Cause::Host => "with no kernel event".to_owned(),
        Cause::Hypervisor => "to the hypervisor".to_owned(),
        cause => format!("to {cause}"),
    };
    format!(", {part} ({}) {to}", percent(share))
}

fn of_series(run: &Run, series: &Series) -> String {
    let shown =
        |value: Option<Nanos>| value.map_or("an unknown time".to_owned(), |v| v.to_string());
    let tail = match series.at(99.9) {
        Some(value) => format!("99.9% within {value}"),
        None => "too few for a p99.9".to_owned(),
    };
    let others = match run.series.len() {
        1 => String::new(),
        several => format!("Of {several} quantities the slowest: "),
    };
    format!(
        "{others}{}: half of {} within {}, {tail}, the longest {}.",
        Printable(&series.label),
        count(series.n),
        shown(series.at(50.0)),
        shown(series.max),
    )
}

fn most_lost(run: &Run) -> Option<&GapSummary> {
    run.gaps.iter().max_by(|a, b| a.lost_share.total_cmp(&b.lost_share))
}

fn slowest(run: &Run) -> Option<&Series> {
    run.series.iter().filter(|series| series.n > 0).max_by_key(|series| series.max)
}

/// Adds what follows to a sentence.
fn with(sentence: &str, more: &str) -> String {
    format!("{}; {more}.", sentence.trim_end_matches('.'))
}

/// The sentence as the rest of another; names such as CPU keep their capitals.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests;
