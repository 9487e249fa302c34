//! Any number of run directories, added up to one: hosts, CPUs, hours.
//!
//! Guarantees: counts are added and percentiles are those of the sum, never averages; series that
//! are not one ([`whylate_model::identity`]) are refused with all they differ in, unless that was allowed
//! by name; a recording is never counted twice; the order of the
//! directories does not matter, nor whether they were merged in steps; each recording keeps its
//! clock, its host and its tables ([`whylate_model::origin`] says how they are read); no interval is
//! narrower than the spread between the recordings allows. The memory
//! grows with the number of series and by some kilobytes for each recording, not with their length:
//! everything is read one interval and one segment at a time.
//!
//! Gaps count from the largest threshold of all recordings on: below it some saw none. What lies
//! below it is noise below the threshold in the sum, as it would be had all been recorded with that
//! threshold; how many gaps that were is said. Causes and longest gaps are cut with them (`above`); tables
//! and senders of interrupts are of all gaps that were recorded. Wake-ups add up by thread; load and costs of context switches stay with their
//! recording.
//!
//! Every directory is read once before anything is written, so that what cannot be added up is
//! found while there is nothing to undo.

pub(crate) mod above;
mod breakdown;
mod causes;
pub(crate) mod flows;
mod host;
mod inputs;
mod skipped;
mod spread;
mod sum;
mod wakes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use whylate_model::directory::RunDir;
use whylate_model::hlog::{HistogramLog, tag_of};
use whylate_model::identity::Component;
use whylate_model::origin::Origin;
use whylate_model::run::{Beginning, GapSummary, Run, RunState, Segment, Verdict};
use whylate_model::segments;
use whylate_model::wake::WakeSummary;
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos, Printable};

use crate::ReportError;
use inputs::{Input, Inputs};
use sum::{Finished, Sums};

/// Most recordings in a merged run: its `run.json` takes some ten kilobytes for each.
pub const MOST_ORIGINS: usize = 4_096;
/// Most series: the histogram of each takes a quarter of a megabyte of memory.
pub const MOST_SERIES: usize = 1_024;
/// Bytes of tables that are copied unless told otherwise.
pub const TABLE_BYTES: u64 = 16 << 30;
/// Longest gaps kept, over all recordings.
const MOST_WORST: usize = 20;
/// Different warnings shown for the whole; each recording keeps its own.
const MOST_WARNINGS: usize = 64;
/// Reasons for distrust that are repeated; the others are counted.
const MOST_REASONS: usize = 8;

/// Noise below the threshold that is warned of, as a share of the elapsed time: as in a recording.
const NOISE_LIMIT: f64 = 0.01;

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Run directories, merged ones among them or not.
    pub directories: Vec<PathBuf>,
    /// Add up the CPUs of a host, too: `gap-cpu1` and `gap-cpu2` become `gap`.
    pub across_cpus: bool,
    /// What series may differ in and still be added up.
    pub across: Vec<Component>,
    /// Leave out directories that cannot be read whole, and say so.
    pub skip_damaged: bool,
    /// Copy the tables of gaps and events.
    pub tables: bool,
    /// Most bytes of tables to copy.
    pub table_bytes: u64,
    /// The command line, for the record.
    pub command_line: Vec<String>,
}

/// What came of it.
#[derive(Debug)]
pub struct Merged {
    /// The sum, as it is stored.
    pub run: Run,
    /// What was left out and why, one sentence each.
    pub left_out: Vec<String>,
}

/// Adds the directories up into a new one at `into`, of which nothing is left where that fails.
pub fn merge(request: &Request, into: &Path) -> Result<Merged, ReportError> {
    let inputs = Inputs::check(request)?;
    let directory = RunDir::create(into)?;
    let undo = directory.undo();
    let mut merging = Merging::new(request, inputs, directory);
    let merged = merging.add_all().and_then(|log| merging.conclude(&log));
    if merged.is_err() {
        undo.remove();
    }
    merged
}

struct Merging<'a> {
    request: &'a Request,
    directory: RunDir,
    inputs: Vec<Input>,
    origins: Vec<Origin>,
    sums: Sums,
    causes: causes::Sums,
    flows: flows::Sums,
    wakes: Vec<WakeSummary>,
    left_out: Vec<String>,
    /// The number of the next segment of each kind.
    numbers: BTreeMap<String, u64>,
    /// Wall time that the intervals of the sum count from.
    base_ns: Option<u64>,
}

impl<'a> Merging<'a> {
    fn new(request: &'a Request, inputs: Inputs, directory: RunDir) -> Self {
        let Inputs { directories: inputs, origins, left_out, floors } = inputs;
        let base_ns = origins.iter().filter_map(Origin::began).min();
        Self {
            request,
            directory,
            inputs,
            origins,
            sums: Sums::new(floors),
            causes: causes::Sums::default(),
            flows: flows::Sums::across(&request.across),
            wakes: Vec::new(),
            left_out,
            numbers: BTreeMap::new(),
            base_ns,
        }
    }

    fn add_all(&mut self) -> Result<HistogramLog, ReportError> {
        let mut log = self.directory.histogram_log()?;
        if let Some(base_ns) = self.base_ns {
            log.set_base_time(Nanos(base_ns))?;
        }
        for input in std::mem::take(&mut self.inputs) {
            let from = RunDir::open(&input.path)?;
            let mut run = from.read_run()?;
            if input.none_skipped {
                skipped::stand_for_both(&mut run);
            }
            self.sums.add_run(&run, self.request.across_cpus);
            self.flows.add(&run, &input.path.display().to_string());
            wakes::add(&mut self.wakes, &run.wakes);
            let shift_s = match (self.base_ns, input.began_ns) {
                (Some(base), Some(began)) => began.saturating_sub(base) as f64 / 1e9,
                _ => 0.0,
            };
            for interval in from.histograms_of(&run)? {
                let interval = interval?;
                let name = inputs::merged_name(&interval.tag, self.request.across_cpus);
                let mut names = vec![name];
                if input.none_skipped && interval.tag == skipped::RAW {
                    names.push(skipped::CORRECTED.to_owned());
                }
                let local = interval.origin.unwrap_or(0) as usize;
                let origin = input.origins.get(local).copied().unwrap_or(input.origins[0]);
                let (start_s, length_s) = (interval.start_s + shift_s, interval.length_s);
                for name in names {
                    if let Some(values) = self.sums.add_interval(&interval, &name, origin) {
                        log.append(&tag_of(&name, origin), &values, start_s, length_s)?;
                    }
                }
            }
            let across_cpus = self.request.across_cpus;
            if self.sums.cut_causes(&from, &mut run, across_cpus) {
                self.causes.add_cut(&run, across_cpus)?;
            } else {
                self.causes.add(&run, across_cpus)?;
            }
            if self.request.tables {
                self.copy_tables(&from, &input, &run)?;
            }
        }
        log.sync()?;
        Ok(log)
    }

    fn copy_tables(&mut self, from: &RunDir, input: &Input, run: &Run) -> Result<(), ReportError> {
        let of_origins: Vec<(u32, &[Segment])> = if run.is_merged() {
            let origins = run.origins.iter().map(|origin| origin.segments.as_slice());
            input.origins.iter().copied().zip(origins).collect()
        } else {
            vec![(input.origins[0], run.segments.as_slice())]
        };
        for (origin, listed) in of_origins {
            for segment in listed {
                let Some(kind) = segments::kind_of(segment) else { continue };
                let number = self.numbers.entry(kind.to_owned()).or_insert(1);
                match segments::import(from, segment, &self.directory, *number) {
                    Ok(copied) => {
                        *number += 1;
                        self.origins[origin as usize].segments.push(copied);
                    }
                    Err(error) if self.request.skip_damaged => {
                        self.left_out.push(format!("a table: {error}"));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    fn conclude(self, log: &HistogramLog) -> Result<Merged, ReportError> {
        let mut origins = self.origins;
        let Finished { mut series, gaps, spreads } = self.sums.finish(&mut origins);
        skipped::label(&mut series);
        leave_out_short(&mut origins, &gaps);
        keep_the_longest(&mut origins);
        let totals = self.causes.finish(&gaps);
        inputs::trust(&mut series, &origins);
        let flows = self.flows.finish(&series);
        let hosts: Vec<&_> = origins.iter().map(|origin| &origin.host).collect();
        let clocks: Vec<&_> = origins.iter().map(|origin| &origin.clock).collect();
        let warnings = warnings(&origins, &gaps);
        let mut verdict = verdict(&origins);
        if !self.left_out.is_empty() {
            let mut what = self.left_out.clone();
            what.truncate(MOST_REASONS);
            let many = self.left_out.len();
            let things = if many == 1 { "thing" } else { "things" };
            let reason = format!("{many} {things} left out of the sum: {}", what.join("; "));
            distrust(&mut verdict, reason);
        }
        let beginning = Beginning {
            command_line: self.request.command_line.clone(),
            question: question(&origins),
            seed: 0,
            state: state(&origins),
            host: host::common(&hosts),
            clock: host::clock(&clocks),
        };
        let mut run = Run {
            settings: host::settings(&origins),
            series,
            gaps,
            causes: totals.causes,
            coverage: totals.coverage,
            senders: totals.senders,
            foreign_threads: totals.foreign_threads,
            evidence: totals.evidence,
            validation: totals.validation,
            verdict,
            warnings,
            segments: origins.iter().flat_map(|origin| origin.segments.iter().cloned()).collect(),
            origins,
            spreads,
            wakes: self.wakes,
            flows,
            ..Run::begun(beginning)
        };
        log.count_in(&mut run);
        self.directory.write_run(&run)?;
        Ok(Merged { run, left_out: self.left_out })
    }
}

/// The least of the recordings' states.
fn state(origins: &[Origin]) -> RunState {
    let any = |state| origins.iter().any(|origin| origin.state == state);
    match () {
        () if any(RunState::Running) => RunState::Running,
        () if any(RunState::Stopped) => RunState::Stopped,
        () => RunState::Complete,
    }
}

fn question(origins: &[Origin]) -> String {
    let mut questions: Vec<&str> = origins.iter().map(|origin| origin.question.as_str()).collect();
    questions.sort_unstable();
    questions.dedup();
    let question = match questions[..] {
        [one] => one.to_owned(),
        _ => format!("{} questions", questions.len()),
    };
    match origins.len() {
        1 => question,
        many => format!("The sum of {many} recordings, each of which asks: {question}"),
    }
}

/// Different warnings of all recordings, up to a limit, and of what the sum left below its threshold.
fn warnings(origins: &[Origin], gaps: &[GapSummary]) -> Vec<Warning> {
    let mut unique: Vec<Warning> = Vec::new();
    for warning in origins.iter().flat_map(|origin| &origin.warnings) {
        if unique.len() < MOST_WARNINGS && !unique.contains(warning) {
            unique.push(warning.clone());
        }
    }
    let noise = |warning: &Warning| matches!(warning, Warning::NoiseBelowThreshold { .. });
    if !unique.iter().any(noise) {
        let above = gaps.iter().filter(|gaps| gaps.noise_below_threshold.abs() > NOISE_LIMIT);
        unique.extend(above.map(|gaps| Warning::NoiseBelowThreshold {
            cpu: gaps.cpu,
            share: gaps.noise_below_threshold,
        }));
    }
    let unfinished = origins.iter().any(|origin| origin.state == RunState::Running);
    if unfinished && !unique.contains(&Warning::Interrupted) {
        unique.push(Warning::Interrupted);
    }
    unique
}

/// The sum is as trustworthy as the least of its parts.
fn verdict(origins: &[Origin]) -> Verdict {
    let (mut reasons, mut more, mut exceeded) = (Vec::new(), 0, None);
    for origin in origins {
        for reason in origin.verdict.reasons() {
            if reasons.len() < MOST_REASONS {
                reasons.push(format!("{}: {reason}", Printable(&origin.directory)));
            } else {
                more += 1;
            }
        }
        match &origin.verdict {
            Verdict::LimitExceeded { what, .. } => {
                exceeded.get_or_insert_with(|| format!("{}: {what}", Printable(&origin.directory)));
            }
            Verdict::Pending if reasons.len() < MOST_REASONS => reasons.push(format!(
                "{}: it did not end, and has no verdict",
                Printable(&origin.directory)
            )),
            Verdict::Pending => more += 1,
            Verdict::Trustworthy | Verdict::Untrustworthy { .. } => {}
        }
    }
    if more > 0 {
        reasons.push(format!("and {more} more reasons"));
    }
    match exceeded {
        Some(what) => Verdict::LimitExceeded { what, reasons },
        None if !reasons.is_empty() => Verdict::Untrustworthy { reasons },
        None => Verdict::Trustworthy,
    }
}

fn distrust(verdict: &mut Verdict, reason: String) {
    match verdict {
        Verdict::Untrustworthy { reasons } | Verdict::LimitExceeded { reasons, .. } => {
            reasons.push(reason);
        }
        _ => *verdict = Verdict::Untrustworthy { reasons: vec![reason] },
    }
}

/// Leaves out gaps among the longest that lie below the threshold of the sum on their CPU.
fn leave_out_short(origins: &mut [Origin], gaps: &[GapSummary]) {
    // Ticks of a sum are nanoseconds. CPUs may be added up: then one threshold is that of all.
    let least = gaps.iter().map(|gaps| Nanos(gaps.threshold.0)).min().unwrap_or_default();
    let floor = |cpu: CpuId| {
        let own = gaps.iter().find(|gaps| gaps.cpu == cpu);
        own.map_or(least, |gaps| Nanos(gaps.threshold.0))
    };
    for origin in origins {
        origin.worst.retain(|gap| gap.length >= floor(gap.cpu_before));
    }
}

/// Of the longest gaps of each recording, those that are among the longest of all.
fn keep_the_longest(origins: &mut [Origin]) {
    let mut lengths: Vec<Nanos> =
        origins.iter().flat_map(|origin| origin.worst.iter().map(|gap| gap.length)).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let Some(shortest) = lengths.get(MOST_WORST - 1).copied() else { return };
    let mut left = MOST_WORST;
    for origin in origins {
        origin.worst.retain(|gap| {
            let kept = gap.length >= shortest && left > 0;
            left -= usize::from(kept);
            kept
        });
    }
}

#[cfg(test)]
mod tests;
