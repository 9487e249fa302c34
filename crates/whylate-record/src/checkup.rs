//! The one-minute check-up: what this host does to a thread, a wake-up, a message.
//!
//! Rows in the layout of Table 1 of the PAM paper: two readings of the counter (1c), gaps of a
//! busy thread with their causes, timer wake-ups, messages between two processes on the same and on
//! another core (2a, 2b), and UDP round trips.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use whylate_clock::{Counter, HardwareCounter};
use whylate_gap::{Placement as GapPlacement, Plan, Policy, Session, State, Threshold, Work};
use whylate_model::directory::RunDir;
use whylate_model::run::{LoopKind, Run, RunState};
use whylate_model::series::{Definition, Series};
use whylate_model::warning::Warning;
use whylate_model::{CpuId, Hertz, Nanos};
use whylate_net::{ClosedLoop, ReflectorProcess};
use whylate_port::port::{Setup, Wait};
use whylate_port::{Port, udp, unix};
use whylate_stats::Histogram;
use whylate_threads::{ClockNanosleep, LatAbs, Placement};

use crate::gaps::{self, Request as GapsRequest};
use crate::intervals::Interval;
use crate::progress::{Progress, Step};
use crate::storage::{self, Storage};
use crate::summary::{self, Description, Setting};
use crate::{RecordError, Recorded};

/// Distance of two timer wake-ups.
const WAKE_PERIOD: Nanos = Nanos(1_000_000);
/// Priority of the woken thread where SCHED_FIFO is allowed; the convention of the field's tools.
const WAKE_PRIORITY: u8 = 80;

/// The time ends a row of messages, not their number.
const MOST_REQUESTS: u64 = 1_000_000_000;

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
    /// CPU of the recording's own thread, where the user chose one.
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
pub fn record(
    request: &Request,
    directory: RunDir,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<Recorded, RecordError> {
    let gaps_request = gaps_request(request);
    let (run, storage) = gaps::record_open(&gaps_request, directory, stop, progress)?;
    let counter = HardwareCounter::open()?;
    let mut checkup =
        Checkup { request, counter, rate: run.clock.hz, run, storage, stop, progress };
    checkup.deltas(&gaps_request)?;
    checkup.wake()?;
    checkup.messages()?;
    checkup.conclude()
}

struct Checkup<'a> {
    request: &'a Request,
    counter: HardwareCounter,
    rate: Hertz,
    run: Run,
    storage: Storage,
    stop: &'a AtomicBool,
    progress: &'a mut dyn Progress,
}

/// Which way a message goes.
#[derive(Debug, Clone, Copy)]
enum Way {
    Unix,
    Udp,
}

impl Checkup<'_> {
    /// Every delta of two readings back to back: the paper's row 1c.
    fn deltas(&mut self, gaps_request: &GapsRequest) -> Result<(), RecordError> {
        if self.stopped() {
            return Ok(());
        }
        self.step("two readings of the counter", self.request.times.deltas);
        let mut plan = gaps_request.plan.clone();
        plan.loop_kind = LoopKind::Pair;
        plan.counting = true;
        let mut session = Session::prepare(&plan, &self.counter, self.rate)?;
        session.start(&mut self.counter, self.rate, self.request.times.deltas);
        while session.drain(|_, _| {}) == State::Running {
            if self.stopped() {
                session.stop();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        session.finish()?;
        let setting = Setting {
            plan: &plan,
            rate: self.rate,
            resolution_ns: self.run.clock.resolution_ns,
            counter: HardwareCounter::KIND,
            seed: self.request.seed,
        };
        let description = summary::delta_description(&setting, self.request.cpu);
        let series = summary::delta_series(session.deltas(0), &description, self.rate);
        self.run.series.insert(0, series);
        Ok(())
    }

    fn wake(&mut self) -> Result<(), RecordError> {
        if self.stopped() {
            return Ok(());
        }
        self.step("timer wake-ups", self.request.times.wake);
        let model = LatAbs::new(WAKE_PERIOD, self.request.times.wake);
        let placement = Placement { cpu: Some(self.request.cpu), fifo: Some(WAKE_PRIORITY) };
        let (mut raw, mut corrected) = (Vec::new(), Vec::new());
        let measured = whylate_threads::run(
            &model,
            placement,
            self.counter,
            ClockNanosleep::default(),
            self.stop,
            &mut |interval| {
                raw.push(interval.raw);
                corrected.push(interval.corrected);
            },
        )?;
        self.run.warnings.extend(measured.warnings);
        self.run.clock.sample_recording_ns = Some(measured.facts.sample_recording_ns);
        let policy = if measured.facts.seat.fifo.is_some() { "FIFO" } else { "not FIFO" };
        let mut description = Description {
            name: "wake".to_owned(),
            label: format!("wake-up, {policy}"),
            paper_row: None,
            from: "scheduled instant of the timer",
            to: "first reading of the woken thread",
            clock: format!("{}, tied to {}", HardwareCounter::KIND, measured.facts.timer.clock),
            definition: Definition::DispatchLatency,
            resolution_ns: self.run.clock.resolution_ns + measured.facts.relation.bound_ns(),
            lost: measured.facts.dropped,
        };
        let outcome = measured.outcome;
        self.add(&outcome.raw, &raw, model.interval, &description);
        if outcome.skipped > 0 {
            "wake-corrected".clone_into(&mut description.name);
            description.label = format!("  and {} skipped", outcome.skipped);
            self.add(&outcome.corrected, &corrected, model.interval, &description);
        }
        Ok(())
    }

    fn messages(&mut self) -> Result<(), RecordError> {
        let here = self.request.cpu;
        let other = self.other_cpu();
        let mut rows = vec![(Way::Unix, here, "same core", Some("2a"))];
        rows.extend(other.map(|cpu| (Way::Unix, cpu, "other core", Some("2b"))));
        rows.push((Way::Udp, here, "same core", None));
        rows.extend(other.map(|cpu| (Way::Udp, cpu, "other core", None)));
        for (way, cpu, place, paper_row) in rows {
            if self.stopped() {
                break;
            }
            self.message(way, cpu, place, paper_row)?;
        }
        Ok(())
    }

    fn message(
        &mut self,
        way: Way,
        reflector_cpu: CpuId,
        place: &str,
        paper_row: Option<&'static str>,
    ) -> Result<(), RecordError> {
        let (name, label) = match way {
            Way::Unix => ("unix", format!("message, {place}")),
            Way::Udp => ("udp", format!("UDP, {place}")),
        };
        self.step(&label, self.request.times.message);
        let (near, far) = match way {
            Way::Unix => unix::pair()?,
            Way::Udp => udp::loopback_pair(udp::Family::V4)?,
        };
        let mut port = self.port(way, near)?;
        let arguments = ["reflect-stdin".to_owned(), "--cpu".to_owned(), reflector_cpu.to_string()];
        let reflector =
            ReflectorProcess::spawn(&self.request.program, arguments, far, reflector_cpu)?;
        let closed_loop = ClosedLoop {
            requests: MOST_REQUESTS,
            duration: self.request.times.message,
            interval: Nanos(self.request.times.message.0 / 10),
            ..ClosedLoop::new(self.rate)
        };
        let mut intervals = Vec::new();
        let placement = Placement { cpu: Some(self.request.cpu), fifo: None };
        let placed = closed_loop.run_placed(placement, &mut port, self.stop, &mut |interval| {
            intervals.push(interval.service);
        })?;
        drop(reflector);
        self.run.warnings.extend(placed.warnings);
        let outcome = placed.outcome;
        let description = Description {
            name: format!("{name}-{}", place.replace(' ', "-")),
            label,
            paper_row,
            from: "before the sending system call",
            to: "after the receiving system call",
            clock: HardwareCounter::KIND.to_owned(),
            definition: Definition::RoundTrip,
            resolution_ns: self.run.clock.resolution_ns,
            lost: outcome.accounting.lost + outcome.abandoned,
        };
        self.add(&outcome.service, &intervals, closed_loop.interval, &description);
        Ok(())
    }

    fn port(&self, way: Way, end: OwnedFd) -> Result<Box<dyn Port>, RecordError> {
        let setup = Setup { counter: self.counter, rate: self.rate, wait: Wait::Block };
        Ok(match way {
            Way::Unix => Box::new(unix::UnixDatagram::open(end, setup)?),
            Way::Udp => Box::new(udp::Udp::open(end, setup)?),
        })
    }

    /// Adds a series with its intervals of time, to the run and to the histogram log.
    fn add(
        &mut self,
        values: &Histogram,
        by_time: &[Histogram],
        width: Nanos,
        description: &Description,
    ) {
        for (index, histogram) in by_time.iter().enumerate() {
            let start = Nanos(index as u64 * width.0);
            self.storage.interval(&description.name, histogram, start, width);
        }
        let intervals: Vec<Interval> = by_time.iter().map(Interval::of).collect();
        let series: Series = summary::of_histogram(values, &intervals, description);
        self.run.series.push(series);
    }

    /// Another CPU for the far end: the one the recording itself runs on.
    fn other_cpu(&self) -> Option<CpuId> {
        whylate_sys::affinity::get().into_iter().find(|cpu| *cpu != self.request.cpu)
    }

    fn step(&mut self, what: &str, duration: Nanos) {
        let what = what.to_owned();
        self.progress.step(&Step { what, elapsed: Nanos(0), duration, so_far: String::new() });
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn conclude(mut self) -> Result<Recorded, RecordError> {
        if self.stopped() {
            self.run.state = RunState::Stopped;
            if !self.run.warnings.contains(&Warning::Interrupted) {
                self.run.warnings.push(Warning::Interrupted);
            }
        }
        self.storage.close();
        self.storage.conclude(&self.run)?;
        Ok(Recorded { run: self.run })
    }
}

fn gaps_request(request: &Request) -> GapsRequest {
    GapsRequest {
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
        selftest: false,
        worst: 5,
        move_tasks: false,
        move_interrupts: false,
        on_threshold: Vec::new(),
        storage: storage::Limits { max_bytes: 256 << 20, checkpoint: Nanos(10 * Nanos::SECOND.0) },
        seed: request.seed,
        command_line: request.command_line.clone(),
        question: format!(
            "What does this host do to a thread, a wake-up, a message? A check-up of CPU {}.",
            request.cpu
        ),
    }
}
