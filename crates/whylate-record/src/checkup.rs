//! The one-minute check-up: what this host does to a thread, a wake-up, a message.
//!
//! Rows in the layout of Table 1 of the PAM paper: two readings of the counter (1c), gaps of a
//! busy thread with their causes, timer wake-ups, messages between two processes on the same and on
//! another core (2a, 2b), and UDP round trips.
//!
//! One workbench stands under all parts: guards are held, the host is watched, and the recording's
//! own thread stays on its housekeeping CPU from the first part to the last. A part that cannot be
//! measured is left out by name, and costs no other part.

mod alone;
mod messages;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::facts::RecordingCost;
use whylate_gap::{Placement as GapPlacement, Plan, Policy, Threshold, Work};
use whylate_model::directory::RunDir;
use whylate_model::run::{LoopKind, Run, RunState};
use whylate_model::series::{Censored, Series};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Nanos};
use whylate_stats::Histogram;
use whylate_sys::memory;

use crate::attend::{Attendant, LOOK_EVERY, Part};
use crate::gaps::{self, Request as GapsRequest};
use crate::intervals::Interval;
use crate::progress::Progress;
use crate::storage::{self, Storage};
use crate::summary::{self, Description};
use crate::verdict;
use crate::workbench::Workbench;
use crate::{RecordError, Recorded};

/// Intervals of time of a part, from which its trend and its effective sample size are computed.
const PARTS_OF_TIME: u64 = 10;

/// How long each part takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Warm-up of the gap measurements.
    pub warmup: Nanos,
    /// Gaps with causes.
    pub gaps: Nanos,
    /// Every delta of two readings.
    pub deltas: Nanos,
    /// Timer wake-ups.
    pub wake: Nanos,
    /// Each kind of message.
    pub message: Nanos,
}

impl Times {
    /// A minute in all, with what lies between the parts.
    #[must_use]
    pub fn minute() -> Self {
        let seconds = |n| Nanos(n * Nanos::SECOND.0);
        Self {
            warmup: seconds(1),
            gaps: seconds(16),
            deltas: seconds(5),
            wake: seconds(10),
            message: seconds(4),
        }
    }

    /// A tenth of that.
    #[must_use]
    pub fn quick() -> Self {
        let Self { warmup, gaps, deltas, wake, message } = Self::minute();
        let tenth = |time: Nanos| Nanos(time.0 / 10);
        Self {
            warmup: tenth(warmup),
            gaps: tenth(gaps),
            deltas: tenth(deltas),
            wake: tenth(wake),
            message: tenth(message),
        }
    }
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The CPU to check up.
    pub cpu: CpuId,
    /// How long each part takes.
    pub times: Times,
    /// CPUs of the recording's own thread, where the user chose some.
    pub housekeeping: Option<Vec<CpuId>>,
    /// Hold `/dev/cpu_dma_latency` at 0.
    pub hold_idle_states: bool,
    /// Use the kernel's trace where it is to be had.
    pub trace: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// The command line, for the record.
    pub command_line: Vec<String>,
    /// This program: its hidden command `reflect-stdin` is the other end of the messages.
    pub program: PathBuf,
}

/// Records the check-up into `directory`.
///
/// # Errors
/// What is asked for cannot be measured on this host, an instrument failed meanwhile, or the run directory
/// cannot be written.
pub fn record(
    request: &Request,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let gaps_request = gaps_request(request);
    let (run, storage, bench) = gaps::record_open(&gaps_request, directory, stop, progress)?;
    // The gap part has said what is to be said when this is refused.
    let _ = memory::lock_all();
    let sample_recording_ns = None;
    let mut checkup = Checkup { request, bench, run, storage, stop, progress, sample_recording_ns };
    checkup.part("two readings of the counter", |checkup| checkup.deltas(&gaps_request));
    checkup.part("timer wake-ups", Checkup::wake);
    checkup.messages();
    Ok(checkup.conclude())
}

struct Checkup<'a> {
    request: &'a Request,
    bench: Workbench,
    run: Run,
    storage: Storage,
    stop: &'a AtomicBool,
    progress: &'a mut dyn Progress,
    sample_recording_ns: Option<f64>,
}

impl Checkup<'_> {
    /// Measures one part. A failure is that part's alone.
    fn part(&mut self, what: &str, measure: impl FnOnce(&mut Self) -> Result<(), RecordError>) {
        if self.stopped() {
            return;
        }
        if let Err(error) = measure(self)
            && !self.stopped()
        {
            let (part, reason) = (what.to_owned(), error.to_string());
            self.warn(Warning::PartLeftOut { part, reason });
        }
    }

    /// Adds a series with its intervals of time, to the run and to the histogram log.
    fn add(
        &mut self,
        values: &Histogram,
        by_time: &[Histogram],
        width: Nanos,
        description: &Description,
        censored: Option<Censored>,
    ) {
        if values.is_empty() {
            return;
        }
        for (index, histogram) in by_time.iter().enumerate() {
            let start = Nanos(index as u64 * width.0);
            self.storage.interval(&description.name, histogram, start, width);
        }
        let intervals: Vec<Interval> = by_time.iter().map(Interval::of).collect();
        let mut series: Series = summary::of_histogram(values, &intervals, description);
        if let Some(censored) = censored {
            series.censor(values, censored);
        }
        self.run.series.push(series);
    }

    /// Does `work` on a thread of its own and looks after the host meanwhile.
    fn attend<T: Send>(
        &mut self,
        part: &Part<'_>,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, RecordError> {
        let (bench, progress) = (&mut self.bench, &mut *self.progress);
        let (warnings, beside) = (&mut self.run.warnings, &mut |_| ());
        let (every, host_every) = (LOOK_EVERY, LOOK_EVERY);
        Attendant { bench, progress, warnings, every, host_every, beside }.attend(part, work)
    }

    /// A warning of a part, told at once.
    fn warn(&mut self, warning: Warning) {
        self.progress.say(&warning.to_string());
        self.run.warnings.push(warning);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn conclude(mut self) -> Recorded {
        // Harmless where it was never locked.
        let _ = memory::unlock_all();
        let mut clock = self.bench.final_clock_facts(RecordingCost::default());
        clock.gap_recording_ns = self.run.clock.gap_recording_ns;
        clock.sample_recording_ns = self.sample_recording_ns;
        self.run.clock = clock;
        let counted = self.bench.evidence();
        let evidence = &mut self.run.evidence;
        evidence.counted_over = counted.counted_over;
        evidence.proc_deltas = counted.proc_deltas;
        (evidence.steal_ns, evidence.smi_count) = (counted.steal_ns, counted.smi_count);
        self.storage.close();
        let mut found = self.bench.warnings.clone();
        found.extend(self.storage.warnings());
        if self.stopped() {
            self.run.state = RunState::Stopped;
            found.push(Warning::Interrupted);
        }
        judge(&mut self.run, found);
        self.storage.conclude(&mut self.run);
        Recorded { run: self.run }
    }
}

/// Adds what was found at the end, and judges the run with all that any part has found.
fn judge(run: &mut Run, found: Vec<Warning>) {
    // The clock was judged anew, over all parts.
    run.warnings.retain(|warning| !matches!(warning, Warning::FrequencyDisagreement { .. }));
    for warning in found {
        if !run.warnings.contains(&warning) {
            run.warnings.push(warning);
        }
    }
    verdict::judge(run, None);
}

fn gaps_request(request: &Request) -> GapsRequest {
    GapsRequest {
        cgroup: None,
        plan: Plan {
            placement: GapPlacement::Pinned(vec![request.cpu]),
            loop_kind: LoopKind::Chain,
            counting: false,
            work: Work::Nothing,
            threshold: Threshold::Automatic,
            warmup: request.times.warmup,
            policy: Policy::Ordinary,
            competitors: 0,
            stop_at: None,
        },
        duration: request.times.gaps,
        housekeeping: request.housekeeping.clone(),
        lock_memory: true,
        hold_idle_states: request.hold_idle_states,
        trace: request.trace,
        validate: false,
        selftest: None,
        worst: 5,
        move_tasks: false,
        move_interrupts: false,
        on_threshold: Vec::new(),
        storage: storage::Limits { max_bytes: 256 << 20, checkpoint: Nanos(10 * Nanos::SECOND.0) },
        seed: request.seed,
        command_line: request.command_line.clone(),
        question: format!(
            "Is anything on CPU {} of this machine slow, and what is it?",
            request.cpu
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use whylate_model::directory::parse_run;
    use whylate_model::run::Verdict;

    use super::*;

    /// A recorded run with nothing left that could be doubted.
    fn recorded() -> Run {
        let json = include_bytes!("../../../tests/runs/gaps/run.json");
        let mut run = parse_run(Path::new("run.json"), json).unwrap();
        run.warnings.clear();
        run.gaps.clear();
        (run.state, run.verdict) = (RunState::Complete, Verdict::Trustworthy);
        run
    }

    #[test]
    fn a_warning_found_after_the_gap_part_reaches_the_verdict() {
        let mut run = recorded();
        judge(&mut run, vec![Warning::Interrupted]);
        assert_eq!(run.verdict, Verdict::Trustworthy);
        // Found by a later part, and put beside those of the gap part.
        let moved = Warning::HostChanged { what: "the woken thread was moved".to_owned() };
        run.warnings.push(moved.clone());
        judge(&mut run, Vec::new());
        let reasons = vec![moved.to_string()];
        assert_eq!(run.verdict, Verdict::Untrustworthy { reasons });
    }

    #[test]
    fn the_clock_of_the_end_takes_the_place_of_that_of_the_gap_part() {
        let mut run = recorded();
        let apart = |ppm| Warning::FrequencyDisagreement { ppm };
        judge(&mut run, vec![apart(900.0)]);
        judge(&mut run, vec![apart(700.0), apart(700.0)]);
        assert_eq!(run.warnings, [apart(700.0)]);
        judge(&mut run, Vec::new());
        assert_eq!((run.warnings, run.verdict), (vec![], Verdict::Trustworthy));
    }
}
