//! How late timers wake threads, and why.

use whylate_model::Printable;
use whylate_model::cause::Cause;
use whylate_model::run::Run;
use whylate_model::series::Series;
use whylate_model::wake::{WakeStage, WakeSummary};
use whylate_model::{CpuId, CpuList};

use super::layout::short;
use super::{COMPARE, Screen, series};
use crate::doc::Table;
use crate::numbers::{Cell, Value, count};
use crate::spans::{Sentence, Told, sentence};
use crate::terminal::Style;

/// A part of the latency with a smaller share is named in no sentence.
const LEAST_SAID: f64 = 0.1;

/// Is it a recording of threads that only wake?
pub(super) fn is_it(run: &Run) -> bool {
    run.only_wakes() && !run.is_merged() && run.wakes.iter().any(|of| all_due(run, of).is_some())
}

pub(super) fn screen(run: &Run, style: Style) -> Screen {
    match run.wakes.as_slice() {
        [wake] => of_one(run, wake, style),
        all => of_several(run, all, style),
    }
}

/// Wake-ups as they were measured: a thread that was late over several counts once.
fn uncorrected<'a>(run: &'a Run, wake: &WakeSummary) -> Option<&'a Series> {
    series::named(run, &format!("wake-{}", wake.thread))
}

/// Each due wake-up at its own latency, the skipped ones among them.
fn all_due<'a>(run: &'a Run, wake: &WakeSummary) -> Option<&'a Series> {
    let corrected = series::named(run, &format!("wake-corrected-{}", wake.thread));
    corrected.or_else(|| uncorrected(run, wake))
}

/// On which CPUs, as the end of a sentence.
fn on(cpus: &[CpuId]) -> Told {
    match cpus {
        [cpu] => Told::of(format_args!("CPU {cpu}")),
        several => Told::of(format_args!("CPUs {}", CpuList(several))),
    }
}

fn of_one(run: &Run, wake: &WakeSummary, style: Style) -> Screen {
    let Some(due) = all_due(run, wake) else { return Screen::default() };
    let latency =
        sentence!["Timer wake-up latency on ", on(&wake.cpus), ": ", series::said(due), "."];
    let answer = std::iter::once(latency).chain(main_causes(run, wake)).collect();
    let percents: Vec<f64> = style.percentiles.percents().collect();
    let mut head = vec!["latency".to_owned(), "min".to_owned()];
    for percent in &percents {
        head.push(series::name(*percent));
        if is_p99(*percent) {
            head.push("95% CI, p99".to_owned());
        }
    }
    head.extend(["max", "n"].map(str::to_owned));
    let heads: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new("", &heads);
    let mut row = |label: &str, of: &Series| {
        let mut cells = vec![Cell::from(label), series::min(of)];
        for percent in &percents {
            cells.push(series::at(of, *percent));
            if is_p99(*percent) {
                cells.push(series::ends(of, *percent));
            }
        }
        cells.extend([series::max(of), Value::Count(of.n).into()]);
        table.row(cells);
    };
    row("all due wake-ups", due);
    let skipped = wake.skipped.unwrap_or(0);
    let mut notes = Vec::new();
    if skipped > 0
        && let Some(raw) = uncorrected(run, wake)
    {
        row("uncorrected", raw);
        notes.push(format!(
            "{} wake-ups were skipped while the thread was still late. The first row counts them at \
             their own latency; the second leaves them out (coordinated omission).",
            count(skipped)
        ));
    }
    let tables = [table].into_iter().chain(causes(run, wake)).collect();
    let more = if run.evidence.trace.is_none() { AS_ROOT } else { NEXT };
    Screen { answer, tables, notes, more: vec![more.to_owned()], ..Screen::default() }
}

fn is_p99(percent: f64) -> bool {
    (percent - 99.0).abs() < 1e-9
}

const NEXT: &str = "whylate wake --timers all  compares timers";
/// Without the kernel's trace causes are not known.
const AS_ROOT: &str = "sudo \"$(command -v whylate)\" wake  names the causes";

fn main_causes(run: &Run, wake: &WakeSummary) -> Option<Sentence> {
    let large = wake.shares().into_iter().filter(|(_, share, _)| *share >= LEAST_SAID).take(2);
    let said = |(of, share, _)| sentence![stage(run, wake, of), " (", Value::Share(share), ")"];
    let all: Vec<Sentence> = large.map(said).collect();
    let main = match all.len() {
        0 => return None,
        1 => "Main cause: ",
        _ => "Main causes: ",
    };
    Some(sentence![main, Sentence::joined(all, " and "), "."])
}

fn causes(run: &Run, wake: &WakeSummary) -> Option<Table> {
    let mut table = Table::new("", &["cause of latency", "share", "longest part"]);
    for (of, share, most) in wake.shares() {
        table.row([Cell::from(stage(run, wake, of)), Value::Share(share).into(), most.into()]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Where the time of a late wake-up goes, in the words of the field.
fn stage(run: &Run, wake: &WakeSummary, stage: WakeStage) -> &'static str {
    match stage {
        WakeStage::TimerLate => "timer fired late",
        WakeStage::IdleExit => "leaving idle",
        WakeStage::Interrupt => "interrupts",
        WakeStage::Softirq => "softirqs",
        WakeStage::OtherThread => "other tasks",
        WakeStage::Host => {
            let stolen = |cpu: &CpuId| run.no_event_on(*cpu) == Cause::Hypervisor;
            let is_borne_out = !wake.cpus.is_empty() && wake.cpus.iter().all(stolen);
            if is_borne_out { "hypervisor" } else { "no kernel event" }
        }
        WakeStage::Kernel => "kernel wake-up path",
        WakeStage::Unknown => "unknown",
    }
}

/// A row for each timer, the best first. The answer names the best and the worst, so both have their row.
fn of_several(run: &Run, all: &[WakeSummary], style: Style) -> Screen {
    let mut rows: Vec<(&WakeSummary, &Series)> =
        all.iter().filter_map(|wake| Some((wake, all_due(run, wake)?))).collect();
    let tail = |series: &Series| {
        let at = series.quantiles.iter().find(|of| is_p99(of.percent));
        at.and_then(|of| of.value.or(of.low)).or(series.max)
    };
    rows.sort_by_key(|(_, series)| tail(series));
    let mut cpus: Vec<CpuId> = all.iter().flat_map(|wake| wake.cpus.clone()).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let said = |(wake, of): &(&WakeSummary, &Series)| {
        sentence![short(&wake.thread), " (p99 ", series::at(of, 99.0), ")"]
    };
    let ends = rows.first().zip(rows.last());
    let answer = ends.map(|(best, worst)| {
        let ends = sentence!["best ", said(best), ", worst ", said(worst)];
        sentence!["Wake-up latency on ", on(&cpus), ": ", ends, "."]
    });
    let percents: Vec<f64> = style.percentiles.percents().collect();
    let names = percents.iter().map(|percent| series::name(*percent));
    let head: Vec<String> = ["latency".to_owned(), "min".to_owned()]
        .into_iter()
        .chain(names)
        .chain(["max", "skipped"].map(str::to_owned))
        .collect();
    let heads: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new("", &heads).with_last();
    for (wake, of) in &rows {
        let values = percents.iter().map(|percent| series::at(of, *percent));
        let skipped = Cell::from(wake.skipped.map(Value::Count));
        let label = Cell::from(Printable(&wake.thread).to_string());
        table.row(
            [label, series::min(of)].into_iter().chain(values).chain([series::max(of), skipped]),
        );
    }
    let notes =
        rows.iter().any(|(wake, _)| wake.skipped.is_some_and(|skipped| skipped > 0)).then(|| {
            "Skipped wake-ups count at their own latency (corrected for coordinated omission)."
                .to_owned()
        });
    Screen {
        answer: answer.into_iter().collect(),
        tables: vec![table],
        notes: notes.into_iter().collect(),
        more: vec![COMPARE.to_owned()],
        ..Screen::default()
    }
}
