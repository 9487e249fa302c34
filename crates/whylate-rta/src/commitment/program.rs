//! What a program asks for and when, as far as its own timers say.
//!
//! A pass that waits for a timer asks for what was run since the timer before, in the period of its
//! timers; it begins when the pass before it is over. A step that waits for other threads, or takes a
//! time that is not written, ends what is known.

use whylate_model::CpuId;

use super::{Known, Stretch};
use crate::task_set::{Phase, Program, Step};

/// Passes that are gone through one by one.
const MOST_PASSES: u32 = 10_000;

/// Where a program is to be followed.
pub(super) struct Walk<'a> {
    pub(super) start: u64,
    pub(super) until: u64,
    /// CPUs of phases that name none.
    pub(super) cpus: &'a [CpuId],
    /// Stretches that may be made.
    pub(super) room: usize,
}

/// How far it was followed.
struct State {
    at: u64,
    /// What was run since the last timer.
    pending: u64,
    passes: u32,
    known: Known,
}

/// Nothing more is known.
struct Unknown;

impl Walk<'_> {
    pub(super) fn of(&self, program: &Program) -> Known {
        let (at, known) = (self.start, Known::default());
        let mut state = State { at, pending: 0, passes: 0, known };
        let all = program.forked_by.is_none() && self.turns(program, &mut state).is_ok();
        let asks = |phase: &Phase| phase.run().0 > 0 || phase.runtime().0 > 0;
        // Who asks for nothing is known, whatever it waits for.
        state.known.all = all || !program.phases.iter().any(asks);
        state.known
    }

    fn turns(&self, program: &Program, state: &mut State) -> Result<(), Unknown> {
        let mut turn = 0;
        while program.repeat.is_none_or(|turns| turn < turns) && state.at < self.until {
            let (begun, before) = (state.at, state.pending);
            for phase in &program.phases {
                self.phase(phase, state)?;
            }
            turn += 1;
            if state.at == begun {
                // No timer: it is not said in what time it wants what it runs.
                return Err(Unknown);
            }
            let same = state.pending == before && state.covers(begun);
            if same && program.repeat.is_none() {
                state.extend(self.until);
            }
        }
        // What is run behind the last timer has no period.
        if state.pending > 0 && state.at < self.until { Err(Unknown) } else { Ok(()) }
    }

    fn phase(&self, phase: &Phase, state: &mut State) -> Result<(), Unknown> {
        let (mut pass, period) = (0, phase.period().0);
        while phase.repeat.is_none_or(|passes| pass < passes) && state.at < self.until {
            let (begun, before) = (state.at, state.pending);
            self.pass(phase, state)?;
            pass += 1;
            if period == 0 {
                let Some(passes) = phase.repeat else { return Err(Unknown) };
                let each = state.pending - before;
                state.pending = state.pending.saturating_add(each.saturating_mul(passes - pass));
                return Ok(());
            }
            if state.pending == before && state.covers(begun) {
                // The others are like this one.
                let left = phase.repeat.map_or(u64::MAX, |passes| passes - pass);
                let end = state.at.saturating_add(left.saturating_mul(period));
                state.extend(end.min(self.until.max(state.at)));
                return Ok(());
            }
        }
        Ok(())
    }

    fn pass(&self, phase: &Phase, state: &mut State) -> Result<(), Unknown> {
        state.passes += 1;
        if state.passes > MOST_PASSES {
            return Err(Unknown);
        }
        let mut asked = state.pending;
        let mut behind = 0_u64;
        for step in &phase.steps {
            match step {
                Step::Run(demand) => behind = behind.saturating_add(super::mean(demand).0),
                Step::Runtime(time) => behind = behind.saturating_add(time.0),
                Step::Timer { .. } => asked = asked.saturating_add(std::mem::take(&mut behind)),
                Step::Sleep(_) | Step::Yield | Step::Lock(_) | Step::Unlock(_) => {}
                other if !other.takes_time() => {}
                _ => return Err(Unknown),
            }
        }
        let period = phase.period().0;
        if period == 0 {
            state.pending = asked.saturating_add(behind);
            return Ok(());
        }
        state.pending = behind;
        let cpus = phase.cpus.as_deref().unwrap_or(self.cpus);
        let (from, until) = (state.at, state.at.saturating_add(period));
        state.at = until;
        let cpus = cpus.iter().copied().collect();
        let stretch = Stretch { from, until, part: asked, whole: period, cpus };
        let stretches = &mut state.known.stretches;
        if let Some(last) = stretches.last_mut().filter(|last| last.continues(&stretch)) {
            last.until = stretch.until;
        } else if stretches.len() < self.room {
            stretches.push(stretch);
        } else {
            return Err(Unknown);
        }
        Ok(())
    }
}

impl State {
    /// Is all since then one stretch?
    fn covers(&self, since: u64) -> bool {
        self.known.stretches.last().is_some_and(|last| last.from <= since)
    }

    fn extend(&mut self, until: u64) {
        if let Some(last) = self.known.stretches.last_mut() {
            last.until = until;
            self.at = until;
        }
    }
}

impl Stretch {
    /// Is the other what comes after it, and like it?
    fn continues(&self, next: &Self) -> bool {
        let like = (self.part, self.whole) == (next.part, next.whole) && self.cpus == next.cpus;
        like && self.until == next.from
    }
}
