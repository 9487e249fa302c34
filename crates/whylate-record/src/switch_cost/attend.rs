//! What goes on beside a trial: the host is watched, the trace drained, the user told.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_cause::{Attributor, Context};
use whylate_clock::{Counter, HardwareCounter};
use whylate_host::watch::{HostWatch, Watched};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos, Pid, Ticks};

use super::evidence::{MOST_EVENTS, Note};
use crate::kernel_trace::KernelTrace;
use crate::progress::{Progress, Step};
use crate::workbench::Workbench;

/// Looks at the crew between two drains of the trace, and between two looks at the host.
const DRAIN_EVERY: u32 = 5;
const LOOK_EVERY: u32 = 25;

/// A trace whose events are kept as notes.
pub(super) struct Notes {
    trace: KernelTrace,
    // Drains hand events on to one; with no thread of its own it lets all of them go.
    attributor: Attributor,
    pub(super) kept: Vec<Note>,
    /// When each event of the CPU was, of whatever kind.
    pub(super) events: Vec<Ticks>,
    cpu: CpuId,
}

impl Notes {
    pub(super) fn new(trace: KernelTrace, rate: Hertz, cpu: CpuId) -> Self {
        let context = Context::new(false, rate);
        let attributor = Attributor::new(context, whylate_cause::attribute::Limits::default());
        Self { trace, attributor, kept: Vec::new(), events: Vec::new(), cpu }
    }

    /// Forgets what was recorded so far.
    pub(super) fn clear(&mut self) {
        self.trace.discard();
        self.kept.clear();
        self.events.clear();
    }

    pub(super) fn drain(&mut self, now: Ticks, rate: Hertz) {
        let (notes, events, cpu) = (&mut self.kept, &mut self.events, self.cpu);
        self.trace.poll(now, rate, &mut self.attributor, |event| {
            events.extend((event.cpu == cpu).then_some(event.ticks));
            notes.extend(Note::of(event, cpu));
        });
    }

    pub(super) fn into_trace(self) -> KernelTrace {
        self.trace
    }
}

/// Attends a trial.
pub(super) struct Attendance<'a> {
    pub(super) bench: &'a mut Workbench,
    pub(super) notes: Option<&'a mut Notes>,
    pub(super) warnings: &'a mut Vec<Warning>,
    pub(super) stop: &'a AtomicBool,
    pub(super) progress: &'a mut dyn Progress,
    watch: HostWatch,
    step: Step,
    begin: Ticks,
    turns: u32,
}

/// What a trial is attended with.
pub(super) struct With<'a> {
    pub(super) bench: &'a mut Workbench,
    pub(super) notes: Option<&'a mut Notes>,
    pub(super) warnings: &'a mut Vec<Warning>,
    pub(super) stop: &'a AtomicBool,
    pub(super) progress: &'a mut dyn Progress,
}

impl<'a> Attendance<'a> {
    pub(super) fn begin(with: With<'a>, watched: &[(Pid, CpuId)], step: Step) -> Self {
        let cpus: Vec<CpuId> = watched.iter().map(|(_, cpu)| *cpu).take(1).collect();
        let threads: Vec<Watched> =
            watched.iter().map(|(tid, cpu)| Watched { tid: *tid, cpus: vec![*cpu] }).collect();
        let watch = HostWatch::start(Path::new("/"), &cpus, &threads);
        let With { bench, notes, warnings, stop, progress } = with;
        let begin = bench.counter.read();
        Self { bench, notes, warnings, stop, progress, watch, step, begin, turns: 0 }
    }

    /// One look; false ends the trial.
    pub(super) fn look(&mut self) -> bool {
        let (rate, mut full) = (self.bench.rate, false);
        let now = self.bench.counter.read();
        if self.turns.is_multiple_of(DRAIN_EVERY)
            && let Some(notes) = &mut self.notes
        {
            notes.drain(now, rate);
            full = notes.events.len() >= MOST_EVENTS;
        }
        if self.turns.is_multiple_of(LOOK_EVERY) {
            self.bench.sample();
            self.watched();
            self.step.elapsed = now.since(self.begin).to_nanos(rate);
            self.progress.step(&self.step);
        }
        self.turns = self.turns.wrapping_add(1);
        !full && !self.stop.load(Ordering::Relaxed)
    }

    /// The trial is over: what is still under way is drained. Were there more events than are kept?
    pub(super) fn end(&mut self, counter: &mut HardwareCounter) -> bool {
        self.watched();
        let Some(notes) = &mut self.notes else { return false };
        let full = notes.events.len() >= MOST_EVENTS;
        std::thread::sleep(std::time::Duration::from_millis(5));
        notes.drain(counter.read(), self.bench.rate);
        full
    }

    fn watched(&mut self) {
        for warning in self.watch.poll() {
            self.progress.say(&warning.to_string());
            self.warnings.push(warning);
        }
    }
}

/// A step of progress without numbers yet.
pub(super) fn step(what: String, duration: Nanos, so_far: String) -> Step {
    Step { what, elapsed: Nanos(0), duration, so_far }
}
