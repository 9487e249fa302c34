//! A watched process' run directory: its requests and what they consist of, readable while it goes on.
//!
//! One thread: it empties the trace's buffers fifty times a second, follows messages, pairs those that
//! the process read with those that it sent, composes them, and writes a checkpoint now and then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use whylate_breakdown::Met;
use whylate_breakdown::compose::{self, Bounds, Composed, Composer, Settings};
use whylate_breakdown::follow::{Follower, Limits as FollowLimits};
use whylate_breakdown::pairs;
use whylate_breakdown::watch::Watching;
use whylate_clock::Counter;
use whylate_clock::facts::RecordingCost;
use whylate_model::breakdown::{
    Part, Point, Source, Station, ThreadsFound, Watched, WatchedProcess,
};
use whylate_model::directory::RunDir;
use whylate_model::run::{Evidence, Run, RunState};
use whylate_model::series::Series;
use whylate_model::settings::{self, Setting};
use whylate_model::tail::End;
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Ticks};

use super::Request;
use super::queued::messages_wait;
use super::threads::{self, Changes, Threads};
use crate::progress::{Progress, Step};
use crate::storage::{Limits, Storage};
use crate::verdict::{judged, unique};
use crate::way_trace::{Came, WayTrace};
use crate::workbench::{Need, Workbench};
use crate::{RecordError, Recorded, composed, kernel_trace};

/// Buffers are emptied so often.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Progress is told so often.
const STEP_EVERY: Nanos = Nanos(1_000_000_000);
/// What is still on its way at the end has come after this.
const LAST_EVENTS: Duration = Duration::from_millis(5);
/// A message that nobody reads for so long is let go.
const PATIENCE: Nanos = Nanos(1_000_000_000);
/// Of so many of the slowest requests is kept what was beside them.
const SLOWEST: usize = 8;
/// Names of the series begin with it.
const NAME: &str = "watched";

pub(super) struct Recording<'a> {
    request: &'a Request,
    stop: &'a AtomicBool,
    bench: Workbench,
    storage: Storage,
    /// None when it has ended.
    trace: Option<WayTrace>,
    follower: Follower,
    watching: Watching,
    composer: Composer,
    threads: Threads,
    warnings: Vec<Warning>,
    ended_by_itself: bool,
    elapsed: Nanos,
    written: bool,
}

impl<'a> Recording<'a> {
    pub(super) fn begin(
        request: &'a Request,
        directory: RunDir,
        stop: &'a AtomicBool,
    ) -> Result<Self, RecordError> {
        let need = Need {
            measured: Vec::new(),
            housekeeping: request.housekeeping.clone(),
            // Whoever is watched runs as it would unwatched.
            hold_idle_states: false,
            real_time: false,
        };
        let bench = Workbench::set_up(&need)?;
        let threads = request.whom.process.threads();
        let trace = WayTrace::start(&bench.journal, bench.topology.online(), &threads)
            .map_err(RecordError::NotWatched)?;
        let storage = Storage::open(directory, bench.observer.epoch(), Limits::default())?;
        let online = bench.topology.online().to_vec();
        let resolution = Nanos(bench.resolution_ns().ceil() as u64);
        let composer = Composer::new(Settings {
            rate: bench.rate,
            whole: whole(),
            bounds: Bounds::default().with(Source::Trace, resolution, bench.cpu_bound()),
            expected: expected(),
            slow_percent: request.slow_from,
            slowest: SLOWEST,
            name: NAME.to_owned(),
        });
        let patience = PATIENCE.to_ticks(bench.rate);
        let mut follower = Follower::new(FollowLimits::usual(online, patience));
        if messages_wait(request.whom.process.pid) {
            follower.doubt();
        }
        Ok(Self {
            request,
            stop,
            bench,
            storage,
            trace: Some(trace),
            follower,
            threads: Threads::new(&threads),
            watching: Watching::new(threads, patience),
            composer,
            warnings: Vec::new(),
            ended_by_itself: false,
            elapsed: Nanos(0),
            written: false,
        })
    }

    /// Watches until it is to end.
    pub(super) fn watch(&mut self, progress: &mut dyn Progress) {
        let whom = &self.request.whom;
        let what = format!("watching {} ({})", whom.process.name, whom.process.pid);
        let duration = self.request.duration.unwrap_or(Nanos(0));
        // Who waits for it, however short it is to be, can begin to send.
        progress.say(&format!("{what} from now on"));
        let (mut counter, rate) = (self.bench.counter, self.bench.rate);
        let began = counter.read();
        let (mut threads_due, mut step_due) = (threads::LOOK_EVERY, STEP_EVERY);
        self.bench.measurement_begins();
        while !self.is_over() {
            sleep(LOOK_EVERY);
            self.bench.sample();
            let now = counter.read();
            self.elapsed = now.since(began).to_nanos(rate);
            self.look(now);
            if self.elapsed >= threads_due {
                threads_due = Nanos(self.elapsed.0 + threads::LOOK_EVERY.0);
                self.find_threads();
            }
            if self.elapsed >= step_due {
                step_due = Nanos(self.elapsed.0 + STEP_EVERY.0);
                progress.step(&Step { elapsed: self.elapsed, ..Step::of(&what, duration) });
            }
            self.checkpoint();
        }
        sleep(LAST_EVENTS);
        self.look(counter.read());
        self.bench.measurement_ends();
        self.finish();
    }

    /// Writes what is there, if it is time: after the first request, and every ten seconds.
    fn checkpoint(&mut self) {
        let due = self.storage.checkpoint_is_due(self.elapsed) || !self.written;
        if due && self.composer.requests() > 0 {
            self.written = true;
            let mut run = self.run(RunState::Running);
            self.storage.checkpoint(&mut run);
        }
    }

    fn is_over(&mut self) -> bool {
        if !self.request.whom.process.lives() {
            self.ended_by_itself = true;
        }
        let long_enough = self.request.duration.is_some_and(|of| self.elapsed >= of);
        long_enough || self.ended_by_itself || self.stop.load(Ordering::Relaxed)
    }

    /// Those that it has started since are watched, too.
    fn find_threads(&mut self) {
        let now = self.request.whom.process.threads();
        let Changes { news, forgotten } = self.threads.look(&now, self.elapsed);
        for thread in forgotten {
            self.watching.forget(thread);
        }
        if news.is_empty() {
            return;
        }
        for thread in news {
            self.watching.thread(thread);
        }
        if let Some(trace) = &mut self.trace {
            // The kernel's filter names those that live.
            trace.look_at(&self.threads.live());
        }
    }

    fn look(&mut self, now: Ticks) {
        let Some(trace) = &mut self.trace else { return };
        let (follower, composer) = (&mut self.follower, &mut self.composer);
        trace.poll(now, self.bench.rate, &mut |came| match came {
            Came::Events(cpu, events) => {
                // Which CPUs are its own is the scheduler's choice: all of them may be.
                composer.events(Some(End::Other), &events);
                follower.push(cpu, events);
            }
            Came::Lost(cpu) => follower.lost(cpu),
            Came::Complete(cpu, to) => follower.complete(cpu, to),
        });
        self.pair();
        let mets = self.watching.complete(self.follower.settled());
        self.compose(&mets);
    }

    fn pair(&mut self) {
        for passage in self.follower.take() {
            for (thread, cpu) in
                [(passage.reader, passage.reader_cpu), (passage.sender, passage.sender_cpu)]
            {
                if let (Some(thread), Some(cpu)) = (thread, cpu) {
                    self.threads.ran(thread, cpu);
                }
            }
            self.watching.passage(passage);
        }
    }

    fn compose(&mut self, mets: &[Met]) {
        for met in mets {
            self.composer.take(met);
            if self.request.log_requests {
                self.storage.journey(&compose::stored(0, met));
            }
        }
    }

    /// Nothing more comes.
    fn finish(&mut self) {
        for cpu in self.bench.topology.online().to_vec() {
            self.follower.complete(cpu, Ticks(u64::MAX));
        }
        self.pair();
        let mets = self.watching.finish();
        self.compose(&mets);
        let counts = self.watching.counts();
        for (reason, requests) in [
            ("never answered by the thread that read them", counts.unanswered),
            ("several were open, and which one was answered is not known", counts.ambiguous),
        ] {
            self.composer.left_out(reason, requests);
        }
    }

    pub(super) fn conclude(mut self) -> Recorded {
        let whom = &self.request.whom;
        if self.ended_by_itself {
            let part = format!("watching {} ({})", whom.process.name, whom.process.pid);
            let reason = "the process ended".to_owned();
            self.warnings.push(Warning::PartEndedEarly { part, reason });
        }
        // To be told to end is how watching ends, where no time was given.
        let cut = self.request.duration.is_some() && self.stop.load(Ordering::Relaxed);
        let state = if cut { RunState::Stopped } else { RunState::Complete };
        if cut {
            self.warnings.push(Warning::Interrupted);
        }
        let composed = self.composer.clone().finish();
        composed::log(&composed, self.elapsed, &mut self.storage);
        self.storage.close();
        self.bench.measure_clock_again();
        let mut run = self.run_of(state, composed);
        if let Some(trace) = self.trace.take() {
            let (_, left) = trace.finish();
            run.warnings.extend(left);
        }
        self.storage.conclude(&mut run);
        Recorded { run }
    }

    fn run(&mut self, state: RunState) -> Run {
        let composed = self.composer.clone().finish();
        self.run_of(state, composed)
    }

    fn run_of(&mut self, state: RunState, mut composed: Composed) -> Run {
        let paired = pairs::of_watching(&self.watching.counts(), &self.follower.counts());
        composed.breakdown.pairs = Some(Box::new(paired));
        let clock = self.bench.clock_facts(RecordingCost::default());
        let series: Vec<Series> = composed::series(&composed);
        let trace = self.trace.as_ref().map(WayTrace::facts);
        let mut warnings = self.warnings.clone();
        warnings.extend(trace.iter().flat_map(kernel_trace::warnings));
        warnings.extend(self.bench.warnings.iter().cloned());
        warnings.extend(self.storage.warnings());
        warnings.extend(clock.wall_clock_stepped());
        let dropped = self.threads.dropped().into_iter();
        warnings.extend(
            dropped.map(|(part, why)| Warning::PartLeftOut { part, reason: why.to_owned() }),
        );
        let warnings = unique(warnings);
        let whom = &self.request.whom;
        let question = match whom.port {
            Some(port) => format!(
                "Where do requests of {} ({}) at port {port} spend their time?",
                whom.process.name, whom.process.pid
            ),
            None => format!(
                "Where do requests of {} ({}) spend their time?",
                whom.process.name, whom.process.pid
            ),
        };
        let asked = (&self.request.command_line[..], &*question, self.request.seed);
        let beginning = self.bench.beginning(asked, state, clock);
        let process = WatchedProcess {
            pid: whom.process.pid,
            name: whom.process.name.clone(),
            threads: self.threads.listed(),
            port: whom.port,
        };
        let run = Run {
            settings: settings(self.request),
            evidence: Evidence { trace, ..self.bench.evidence() },
            series,
            warnings,
            segments: self.storage.segments(),
            watched: Some(Box::new(Watched {
                process,
                breakdown: composed.breakdown,
                lasted: Some(self.elapsed),
                looking: Some(ThreadsFound {
                    every: threads::LOOK_EVERY,
                    threads: self.threads.seen(),
                }),
            })),
            ..Run::begun(beginning)
        };
        judged(run, None)
    }
}

fn settings(request: &Request) -> settings::Settings {
    let duration = match request.duration {
        Some(duration) => Setting::from(duration),
        None => "until it was told to end".into(),
    };
    settings::Settings::from([
        ("duration".to_owned(), duration),
        ("looked at by".to_owned(), "the kernel's tracepoints".into()),
    ])
}

/// From the driver in to the driver out: what this host can know of a request without asking anybody.
fn whole() -> Part {
    Part { from: Point::there(Station::Arrived), to: Point::back(Station::Driver) }
}

/// What the kernel is to tell: whether a reader slept is not known beforehand.
fn expected() -> Vec<(Point, Source)> {
    let there =
        [Station::Arrived, Station::Delivered, Station::Woken, Station::Running, Station::Read];
    let back = [Station::Sent, Station::Queued, Station::Driver];
    let there = there.into_iter().map(Point::there);
    there.chain(back.into_iter().map(Point::back)).map(|point| (point, Source::Trace)).collect()
}
