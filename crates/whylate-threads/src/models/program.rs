//! PROGRAM: phases of steps in loops, as an rt-app file has them.
//!
//! A *pass* is one turn of a phase. A *job* is what lies before a `timer` step in a pass: released at
//! the timer's instant before, due at its next; passes without a timer have no deadline. A timer
//! that is used for the first time begins with that pass. A relative timer whose instant is over
//! begins its next period at once, an absolute one keeps its instants, however many are over.
//!
//! `run` receives CPU time by gap accounting. `runtime` keeps busy for a time by the counter, whatever
//! it receives of it: how long it was, how far it went beyond its end and what it received are told
//! apart. `mem` writes a cache line in each interval; `iorun` is a wait. A thread to be forked waits for its
//! semaphore before each turn of the program.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use whylate_clock::Counter;
use whylate_gap::workload::Nothing;
use whylate_model::gap::GapKind;
use whylate_model::{CpuId, Nanos, TicksDelta};
use whylate_rta::call::{Call, CallError};
use whylate_rta::task_set::{Step, TimerMode};
use whylate_sys::affinity;

use super::action::{Action, Held};
use super::program_load::{Device, Lines};
use crate::ledger::{Busy, Ledger, PassLedger};
use crate::mark::Mark;
use crate::model::{Model, Setting, ended};
use crate::resources::Semaphore;
use crate::stage::{End, Stage};
use crate::timer::TimerNanos;

const NAME: &str = "PROGRAM";
/// A thread that keeps busy by the clock looks at it this often: a gap in the last piece makes it
/// late by no more.
const PIECE: Nanos = Nanos(5_000);

/// The phases of a thread, ready to run.
pub(super) struct RunProgram {
    turns: Option<u64>,
    forked_by: Option<Arc<Semaphore>>,
    phases: Vec<Ready>,
    lines: Option<Lines>,
    device: Option<Device>,
    deadline: Option<Nanos>,
    at: Place,
}

/// Where the thread is in its program.
#[derive(Default)]
struct Place {
    /// Number of the next job that ends with a timer.
    job: u64,
    /// What its run steps asked for so far.
    asked: Nanos,
    /// What its steps that keep busy by the clock received so far.
    received: TicksDelta,
    /// What the run steps of this pass received.
    run: TicksDelta,
    /// What the steps of this pass that keep busy by the clock came to; none where it has none.
    busy: Option<Busy>,
    /// What the thread had lost when this pass began.
    lost: TicksDelta,
    held: Held,
    /// The thread has done nothing since its start.
    fresh: bool,
    /// Where it runs, where its phases say so.
    cpus: Option<Vec<CpuId>>,
}

/// A phase with its steps.
struct Ready {
    passes: Option<u64>,
    cpus: Option<Vec<CpuId>>,
    steps: Vec<Doing>,
}

enum Doing {
    Act(Action),
    Busy(Nanos),
    Timer(Timer),
    Write(u64),
    Put(u64),
}

struct Timer {
    /// Its number in the program.
    number: u64,
    last: Arc<AtomicU64>,
    period: Nanos,
    mode: TimerMode,
}

impl<C: Counter> Model<C> for RunProgram {
    fn name() -> &'static str {
        NAME
    }

    fn usage() -> &'static str {
        NAME
    }

    fn about() -> &'static str {
        "the phases of a task of an rt-app file; not to be written by hand"
    }

    fn read(call: &Call, setting: &Setting<'_>) -> Result<Self, CallError> {
        call.takes(0, NAME)?;
        let Some(program) = setting.program else {
            return Err(
                call.refused("phases", "they come from an rt-app file: name one".to_owned())
            );
        };
        let unknown = |step: &Step| call.refused("step", format!("`{step}` names nothing known"));
        let mut seeds = setting.seed..;
        let mut phases = Vec::new();
        let mut timers = Vec::new();
        for phase in &program.phases {
            let steps = phase.steps.iter().zip(&mut seeds);
            let steps = steps.map(|(step, seed)| {
                Doing::of(step, setting, seed, &mut timers).ok_or_else(|| unknown(step))
            });
            let steps = steps.collect::<Result<_, _>>()?;
            let own = setting.cpus.map(<[CpuId]>::to_vec);
            let cpus = phase.cpus.clone().or(own);
            phases.push(Ready { passes: phase.repeat, cpus, steps });
        }
        let forked_by = match &program.forked_by {
            Some(name) => Some(
                setting
                    .resources
                    .semaphore(name)
                    .ok_or_else(|| call.refused("semaphore", format!("there is no `{name}`")))?,
            ),
            None => None,
        };
        let uses = |is: fn(&Step) -> bool| program.phases.iter().flat_map(|p| &p.steps).any(is);
        let lines = uses(|step| matches!(step, Step::Mem(_))).then(|| Lines::new(program.buffer));
        let device = uses(|step| matches!(step, Step::IoRun(_)))
            .then(|| Device::new(&program.device, program.buffer))
            .transpose()
            .map_err(|reason| call.refused("io_device", reason))?;
        Ok(Self {
            turns: program.repeat,
            lines,
            device,
            deadline: setting.deadline,
            at: Place {
                cpus: program.moves().then(Vec::new),
                fresh: forked_by.is_none(),
                ..Place::default()
            },
            forked_by,
            phases,
        })
    }

    fn ledger(&self) -> Ledger {
        Ledger::Passes(PassLedger::new(self.phases.len()))
    }

    fn body(&mut self, stage: &mut Stage<'_, C>) -> End {
        ended(self.turns(stage))
    }
}

impl Doing {
    /// A step ready to run; `timers` are the names of those that were met so far.
    fn of<'a>(
        step: &'a Step,
        setting: &Setting<'_>,
        seed: u64,
        timers: &mut Vec<&'a str>,
    ) -> Option<Self> {
        Some(match step {
            Step::Runtime(time) => Self::Busy(*time),
            Step::Timer { name, period, mode } => {
                let known = timers.iter().position(|known| *known == name.as_str());
                let number = known.unwrap_or(timers.len());
                if known.is_none() {
                    timers.push(name);
                }
                let last = setting.resources.instant(name)?;
                Self::Timer(Timer { number: number as u64, last, period: *period, mode: *mode })
            }
            Step::Mem(bytes) => Self::Write(*bytes),
            Step::IoRun(bytes) => Self::Put(*bytes),
            step => Self::Act(Action::of(step, setting, seed)?),
        })
    }
}

impl RunProgram {
    fn turns<C: Counter>(&mut self, stage: &mut Stage<'_, C>) -> Result<Infallible, End> {
        if let Some(device) = &mut self.device {
            stage.wait_in(GapKind::Blocked, |_| device.open())?;
        }
        loop {
            if let Some(semaphore) = &self.forked_by {
                stage.wait_in(GapKind::Blocked, |over| semaphore.wait(over))?;
            }
            let at = stage.settle();
            stage.mark(Mark::Began { at });
            self.at.lost = stage.lost();
            let mut turn = 0;
            while self.turns.is_none_or(|turns| turn < turns) {
                for number in 0..self.phases.len() {
                    self.phase(number, stage)?;
                }
                turn += 1;
            }
            if self.forked_by.is_none() {
                return Err(End::Over);
            }
        }
    }

    fn phase<C: Counter>(&mut self, number: usize, stage: &mut Stage<'_, C>) -> Result<(), End> {
        let Self { phases, at, lines, device, deadline, .. } = self;
        let Ready { passes, cpus, steps } = &mut phases[number];
        if let (Some(here), Some(cpus)) = (&mut at.cpus, cpus.as_ref())
            && here != cpus
        {
            stage.wait_in(GapKind::Blocked, |_| affinity::set(cpus))?;
            here.clone_from(cpus);
        }
        let mut pass = 0;
        while passes.is_none_or(|passes| pass < passes) {
            at.announce(steps, stage, *deadline);
            at.fresh = false;
            for index in 0..steps.len() {
                match &mut steps[index] {
                    Doing::Act(action) => {
                        let ran = action.run(stage, &mut at.held)?;
                        at.ran(ran.asked, ran.received);
                    }
                    Doing::Busy(time) => at.was_busy(busy(*time, stage)?),
                    Doing::Timer(timer) => {
                        at.timer(timer, stage)?;
                        at.announce(&steps[index + 1..], stage, *deadline);
                    }
                    Doing::Write(bytes) => {
                        if let Some(lines) = lines {
                            lines.write(*bytes, stage)?;
                        }
                    }
                    Doing::Put(bytes) => {
                        if let Some(device) = device {
                            stage.wait_in(GapKind::Blocked, |over| device.put(*bytes, over))?;
                        }
                    }
                }
            }
            at.pass_ends(number, stage);
            // Not every step looks whether the run is over.
            stage.go_on()?;
            pass += 1;
        }
        Ok(())
    }
}

impl Place {
    fn ran(&mut self, asked: Nanos, received: TicksDelta) {
        self.asked = Nanos(self.asked.0 + asked.0);
        self.run = self.run + received;
    }

    fn was_busy(&mut self, more: Busy) {
        self.received = self.received + more.received;
        let so_far = self.busy.get_or_insert_default();
        so_far.elapsed = so_far.elapsed + more.elapsed;
        so_far.received = so_far.received + more.received;
        so_far.over = so_far.over.max(more.over);
    }

    fn pass_ends<C: Counter>(&mut self, number: usize, stage: &mut Stage<'_, C>) {
        let at = stage.settle();
        if let Some(Busy { elapsed, received, over }) = self.busy.take() {
            stage.mark(Mark::Busy { over, elapsed, received, at });
        }
        let run = std::mem::take(&mut self.run);
        let lost = stage.lost();
        let before = std::mem::replace(&mut self.lost, lost);
        let lost = TicksDelta(lost.0 - before.0);
        stage.mark(Mark::Passed { phase: number as u64, run, lost, at });
    }

    /// Says when the job that begins is due, where a timer ends it.
    fn announce<C: Counter>(
        &mut self,
        steps: &[Doing],
        stage: &mut Stage<'_, C>,
        deadline: Option<Nanos>,
    ) {
        let timers = steps.iter().find_map(|step| match step {
            Doing::Timer(timer) => Some(timer),
            _ => None,
        });
        let Some(timer) = timers else { return };
        (self.asked, self.received) = (Nanos(0), TicksDelta(0));
        let release = timer.begin(stage, self.fresh);
        let due = release + deadline.unwrap_or(timer.period);
        stage.mark(Mark::Due { index: self.job, release, due, at: stage.last() });
    }

    /// Ends a job and waits for the timer's next instant.
    fn timer<C: Counter>(&mut self, timer: &Timer, stage: &mut Stage<'_, C>) -> Result<(), End> {
        let (at, received) = (stage.settle(), stage.ticks(self.asked) + self.received);
        stage.mark(Mark::Done { index: self.job, received, at });
        self.job += 1;
        let intended = TimerNanos(timer.last.load(Ordering::Relaxed)) + timer.period;
        let now = stage.now();
        let (intended, put_off, at) = if now < intended {
            (intended, Nanos(0), stage.sleep_until(intended)?.at)
        } else if timer.mode == TimerMode::Absolute {
            (intended, Nanos(0), stage.last())
        } else {
            (now, now.since(intended), stage.last())
        };
        timer.last.store(intended.0, Ordering::Relaxed);
        stage.mark(Mark::Fired { timer: timer.number, intended, put_off, at });
        Ok(())
    }
}

impl Timer {
    /// The instant that its next period counts from. With its first use that is now, or the start of
    /// a thread that has done nothing yet, however late it got there.
    fn begin<C: Counter>(&self, stage: &mut Stage<'_, C>, fresh: bool) -> TimerNanos {
        let known = self.last.load(Ordering::Relaxed);
        if known > 0 {
            return TimerNanos(known);
        }
        let first = if fresh { stage.term().start } else { stage.now() };
        let set = self.last.compare_exchange(0, first.0, Ordering::Relaxed, Ordering::Relaxed);
        TimerNanos(set.err().unwrap_or(first.0))
    }
}

/// Keeps busy for so long by the counter, whatever is received of it.
fn busy<C: Counter>(time: Nanos, stage: &mut Stage<'_, C>) -> Result<Busy, End> {
    let begin = stage.settle();
    let before = stage.not_had();
    let goal = begin + stage.ticks(time);
    let piece = stage.ticks(PIECE);
    loop {
        let left = goal.since(stage.last());
        if left.0 == 0 {
            let (elapsed, over) = (stage.last().since(begin), stage.last().since(goal));
            let not_had = stage.not_had().0 - before.0;
            let received = TicksDelta(elapsed.0.saturating_sub(not_had));
            return Ok(Busy { elapsed, received, over });
        }
        let amount = if left < piece { Nanos(stage.time(left).0.max(1)) } else { PIECE };
        stage.receive(amount, &mut Nothing)?;
    }
}
