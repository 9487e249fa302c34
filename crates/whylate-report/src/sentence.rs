//! The answer to a run's question in one sentence, the same on a terminal and on a page.

use whylate_model::cause::Cause;
use whylate_model::run::{GapSummary, Run, RunState, Verdict};
use whylate_model::series::{Definition, Series};
use whylate_model::threads::ThreadSummary;
use whylate_model::trust::Trust;
use whylate_model::wake::WakeSummary;
use whylate_model::{Nanos, Printable};

use crate::numbers::respelled::respelled;
use crate::numbers::{Cell, Value};
use crate::series::ON_THE_PAGE;
use crate::series::at_percent;
use crate::spans::{Name, Sentence, assert_stand, sentence};
use crate::{causes, terminal};

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
    let said = found(run);
    let said = match run.state {
        RunState::Complete => said,
        RunState::Stopped => sentence!["Until it was stopped: ", said.lower()],
        RunState::Running => {
            sentence!["Up to the last checkpoint of a run that did not end: ", said.lower()]
        }
    };
    if cfg!(test) {
        assert_stand(std::slice::from_ref(&said), &[], &terminal::sections(run, &ON_THE_PAGE));
    }
    let said = said.to_string();
    if let Verdict::LimitExceeded { what } = &run.verdict {
        return with(&said, &format!("a limit was exceeded: {}", Printable(what)));
    }
    match Trust::of(run).poor().first() {
        Some(why) if !said.trim_end_matches('.').eq_ignore_ascii_case(why) => {
            let why = respelled(&Printable(why).to_string());
            with(&said, &format!("do not rely on this: {why}"))
        }
        _ => said,
    }
}

/// The answer, however the run ended.
fn found(run: &Run) -> Sentence {
    match (most_lost(run), slowest(run)) {
        _ if run.only_wakes() => of_wakes(run),
        _ if !run.threads.is_empty() => of_threads(&run.threads),
        _ if run.calibration.is_some() => {
            run.calibration.as_deref().map(crate::calibration::answer).into()
        }
        _ if run.device.is_some() => run.device.as_deref().map(crate::device::answer).into(),
        _ if run.backends.is_some() => run.backends.as_deref().map(crate::backends::answer).into(),
        _ if !run.flows.is_empty() => crate::flows::answer(run),
        _ if run.watched.is_some() => {
            run.watched.as_deref().map(crate::breakdown::watched_answer).into()
        }
        _ if run.reflected.is_some() => {
            run.reflected.as_deref().map(|of| crate::reflected::answer(run, of)).into()
        }
        _ if run.forward.is_some() => run.forward.as_deref().map(crate::forward::answer).into(),
        _ if run.delay.is_some() => run.delay.as_deref().map(crate::delay::answer).into(),
        _ if run.switch_cost.is_some() => crate::switch_cost::answer(run),
        (Some(gaps), _) => of_gaps(run, gaps),
        (None, Some(series)) => of_series(run, series),
        (None, None) => "Nothing was measured.".into(),
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

fn of_threads(threads: &[ThreadSummary]) -> Sentence {
    let judged: Vec<_> = threads.iter().filter_map(|thread| thread.deadlines.as_ref()).collect();
    // A file may state any count.
    let hits = saturating(judged.iter().map(|of| of.hits));
    let misses = saturating(judged.iter().map(|of| of.misses));
    if judged.is_empty() {
        let received = Nanos(saturating(threads.iter().map(|thread| thread.received.0)));
        let blocks = Value::Count(saturating(threads.iter().map(|thread| thread.blocks)));
        let received = sentence![" threads received ", received, " of CPU time in "];
        return sentence![threads.len(), received, blocks, " blocks."];
    }
    if misses == 0 {
        return sentence!["All ", Value::Count(hits), " deadlines were met."];
    }
    let worst = threads
        .iter()
        .max_by_key(|thread| thread.deadlines.as_ref().map_or(0, |deadlines| deadlines.misses));
    let worst = worst.map(|thread| {
        let causes = thread.deadlines.iter().flat_map(|of| &of.causes);
        let most = causes.max_by_key(|of| of.misses).filter(|of| of.cause != Cause::Unknown);
        let named = most.map(|of| {
            let cause = Name::of(&of.cause);
            sentence![", because of ", cause, " (", Value::Count(of.misses), ")"]
        });
        sentence!["; most of them by thread ", Name::of(Printable(&thread.name)), named]
    });
    let all = Value::Count(hits.saturating_add(misses));
    sentence![Value::Count(misses), " of ", all, " deadlines were missed", worst, "."]
}

fn saturating(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// The best and the worst of the threads that were woken, by the median. An activation that a late
/// thread passed over counts at its own lateness: without it a stall would be one late wake-up.
fn of_wakes(run: &Run) -> Sentence {
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
        return "No thread was woken often enough for a median.".into();
    };
    let worst = all.iter().copied().max_by_key(|series| series.max).unwrap_or(best);
    let skipped = saturating(run.wakes.iter().filter_map(|of| of.skipped));
    let named = |word: &'static str, series: &Series| {
        let name = series.name.strip_prefix(CORRECTED);
        let thread = Name::of(Printable(name.unwrap_or(series.name.trim_start_matches(RAW))));
        (all.len() > 1).then(|| sentence![" (", word, " of ", all.len(), ": ", thread, ")"])
    };
    let p50 = sentence!["p50 ", Cell::from(median(&best)), named("best", best)];
    let max = sentence![", worst ", Cell::from(worst.max), named("worst", worst), "; "];
    let counted = if skipped > 0 { ", and count at their own latency." } else { "." };
    let skipped = sentence![Value::Count(skipped), " wake-ups were skipped", counted];
    sentence!["Wake-up latency: ", p50, max, skipped]
}

fn of_gaps(run: &Run, gaps: &GapSummary) -> Sentence {
    let elapsed = gaps.end.since(gaps.start).to_nanos(run.clock.hz);
    if gaps.gaps == 0 {
        let threshold = sentence!["no gap above ", gaps.threshold.to_nanos(run.clock.hz), "."];
        let lost = sentence![" lost nothing in ", elapsed, " that the loop could see: "];
        return sentence![who(run, gaps), lost, threshold];
    }
    let ends = gaps.lost_share_interval.map(|(low, high)| (Value::Share(low), Value::Share(high)));
    let share = Cell::from(Value::Share(gaps.lost_share)).within(ends);
    let interval =
        gaps.lost_share_interval.map(|_| sentence![" (95% interval ", share.ends(), ")"]);
    let lost = sentence![" lost ", share.alone(), " of ", elapsed, interval];
    sentence![who(run, gaps), lost, taken_by(run, gaps), longest(run, gaps), "."]
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

fn longest(run: &Run, gaps: &GapSummary) -> Option<Sentence> {
    longest_stall(run, gaps).map(|Stall { length, between_readings }| {
        let (what, met) = if between_readings {
            ("; the longest stall was ", ", between two readings of the counter")
        } else {
            ("; the longest gap was ", "")
        };
        sentence![what, length, met]
    })
}

fn who(run: &Run, gaps: &GapSummary) -> Sentence {
    let who = Name::of(run.thread_name(gaps));
    match run.gaps.len() {
        1 => who.into(),
        several => sentence!["Of ", several, " threads that of ", who, " fared worst: it"],
    }
}

/// Who took most of what a CPU lost; nothing where causes are not in this run.
fn taken_by(run: &Run, gaps: &GapSummary) -> Option<Sentence> {
    if run.causes.is_empty() {
        return None;
    }
    let Some(largest) = causes::largest(run, gaps.cpu) else {
        return Some(", to what is not known".into());
    };
    let share = largest.share_of_lost;
    let part = if share > 0.5 { ", most of it (" } else { ", the largest part of it (" };
    let to = match &largest.cause {
        Cause::Host => ") with no kernel event".into(),
        Cause::Hypervisor => ") to the hypervisor".into(),
        cause => sentence![") to ", Name::of(cause)],
    };
    Some(sentence![part, Value::Share(share), to])
}

fn of_series(run: &Run, series: &Series) -> Sentence {
    let unknown = || Sentence::from("an unknown time");
    let tail = match series.at(99.9) {
        Some(_) => sentence![Name::of("99.9%"), " within ", at_percent(series, 99.9)],
        None => "too few for a p99.9".into(),
    };
    let several = run.series.len();
    let others = (several > 1).then(|| sentence!["Of ", several, " quantities the slowest: "]);
    let label = sentence![Name::of(Printable(&series.label)), ": half of "];
    let half = sentence![label, Value::Count(series.n), " within "];
    let median = series.at(50.0).map_or_else(unknown, |_| at_percent(series, 50.0).into());
    let longest = series.max.map_or_else(unknown, Sentence::from);
    sentence![others, half, median, ", ", tail, ", the longest ", longest, "."]
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

#[cfg(test)]
mod tests;
