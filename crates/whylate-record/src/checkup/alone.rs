//! Parts of the check-up that one thread measures by itself: two readings of the counter, and
//! timer wake-ups.

use std::sync::atomic::Ordering;
use std::time::Duration;

use whylate_clock::{Counter, HardwareCounter};
use whylate_gap::{GapError, Session, State, Totals};
use whylate_host::watch::Watched;
use whylate_model::Nanos;
use whylate_model::run::LoopKind;
use whylate_model::series::Definition;
use whylate_model::warning::Warning;
use whylate_threads::lat_abs::WakeOutcome;
use whylate_threads::{ClockNanosleep, LatAbs, Measured, Placement};

use super::{Checkup, PARTS_OF_TIME};
use crate::RecordError;
use crate::attend::Part;
use crate::deltas::{Deltas, Found};
use crate::gaps::Request as GapsRequest;
use crate::intervals::Intervals;
use crate::progress::Step;
use crate::summary::{self, Description, Setting};

/// Distance of two timer wake-ups: four thousand a second, so that a tenth of the check-up's time
/// still has the 3 688 that a p99.9 needs, and the whole of it ten times as many, of which
/// dependence may take a good part.
const WAKE_PERIOD: Nanos = Nanos(250_000);
/// Priority of the woken thread where SCHED_FIFO is allowed; the convention of the field's tools.
const WAKE_PRIORITY: u8 = 80;
/// Time between two looks whether the readings have ended.
const TURN: Duration = Duration::from_millis(20);

impl Checkup<'_> {
    /// Every delta of two readings back to back: the paper's row 1c.
    pub(super) fn deltas(&mut self, gaps_request: &GapsRequest) -> Result<(), RecordError> {
        let (what, duration) = ("two readings of the counter", self.request.times.deltas);
        let mut plan = gaps_request.plan.clone();
        plan.loop_kind = LoopKind::Pair;
        plan.counting = true;
        self.progress.step(&Step::of("warm-up", plan.warmup));
        let (mut counter, rate, stop) = (self.bench.counter, self.bench.rate, self.stop);
        let mut session = Session::prepare_unless(&plan, &counter, rate, stop)?;
        let cpus = [self.request.cpu];
        let watched: Vec<Watched> = session
            .threads()
            .map(|facts| Watched { tid: facts.tid, cpus: cpus.to_vec() })
            .collect();
        let part = Part { what, duration, cpus: &cpus, watched: &watched };
        let measuring = &mut session;
        let mut deltas = self.attend(&part, move || {
            let mut deltas = Deltas::new(Intervals::width_for(duration).to_ticks(rate), rate);
            measuring.start(&mut counter, rate, duration);
            while measuring.drain(|_, _| {}) == State::Running {
                let Totals { start, end, .. } = measuring.totals(0);
                deltas.look(end.since(start), measuring.deltas(0));
                if stop.load(Ordering::Relaxed) {
                    measuring.stop();
                }
                std::thread::sleep(TURN);
            }
            measuring.finish()?;
            deltas.look_now(measuring.deltas(0));
            Ok::<_, GapError>(deltas)
        })??;
        let setting = Setting {
            plan: &plan,
            rate,
            resolution_ns: self.run.clock.resolution_ns,
            counter: HardwareCounter::KIND,
            seed: self.request.seed,
        };
        let cpu = self.request.cpu;
        let (gaps, label) = (format!("gap-cpu{cpu}"), format!("gaps, CPU {cpu}"));
        let description = summary::delta_description(&setting, &gaps, &label);
        for Found { start, length, values } in deltas.take_found() {
            self.storage.interval(&description.name, &values, start, length);
        }
        let intervals = Some(deltas.intervals());
        let series = summary::delta_series(session.deltas(0), intervals, &description, rate);
        self.run.series.insert(0, series);
        Ok(())
    }

    /// How late a timer wakes a thread.
    pub(super) fn wake(&mut self) -> Result<(), RecordError> {
        let duration = self.request.times.wake;
        let interval = Nanos(duration.0 / PARTS_OF_TIME);
        let model = LatAbs { interval, ..LatAbs::new(WAKE_PERIOD, duration) };
        let placement = Placement { cpu: Some(self.request.cpu), fifo: Some(WAKE_PRIORITY) };
        let (mut raw, mut corrected) = (Vec::new(), Vec::new());
        let (counter, stop) = (self.bench.counter, self.stop);
        let cpus = [self.request.cpu];
        // Where its thread wakes is counted by the measurement itself, for each wake-up.
        let part = Part { what: "timer wake-ups", duration, cpus: &cpus, watched: &[] };
        let measured = self.attend(&part, || {
            let timer = ClockNanosleep::default();
            whylate_threads::run(&model, placement, counter, timer, stop, &mut |interval| {
                raw.push(interval.raw);
                corrected.push(interval.corrected);
            })
        })??;
        let description = self.note_wake(&measured);
        let outcome = measured.outcome;
        self.add(&outcome.raw, &raw, model.interval, &description, None);
        if outcome.skipped > 0 {
            let corrected_row = Description {
                name: "wake-corrected".to_owned(),
                label: format!("  and {} skipped", outcome.skipped),
                ..description
            };
            self.add(&outcome.corrected, &corrected, model.interval, &corrected_row, None);
        }
        Ok(())
    }

    fn note_wake(&mut self, measured: &Measured<WakeOutcome>) -> Description {
        let (facts, outcome) = (&measured.facts, &measured.outcome);
        for warning in &measured.warnings {
            self.warn(warning.clone());
        }
        if outcome.early > 0 {
            let (early, of, earliest) = (outcome.early, outcome.n(), outcome.earliest);
            self.warn(Warning::WokeEarly { early, of, earliest });
        }
        self.sample_recording_ns = Some(facts.sample_recording_ns);
        let policy = if facts.seat.fifo.is_some() { "FIFO" } else { "not FIFO" };
        Description {
            name: "wake".to_owned(),
            label: format!("wake-up, {policy}"),
            paper_row: None,
            from: "scheduled instant of the timer",
            to: "first reading of the woken thread",
            clock: format!("{}, tied to {}", HardwareCounter::KIND, facts.timer.clock),
            definition: Definition::DispatchLatency,
            resolution_ns: self.run.clock.resolution_ns + facts.relation.bound_ns(),
            lost: facts.dropped,
        }
    }
}
