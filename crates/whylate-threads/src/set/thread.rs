//! One thread of a set: takes its seat, waits for the begin, runs its model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use whylate_clock::Counter;
use whylate_gap::hot::{Limits, Recorder};
use whylate_gap::{ring, selftest_rseq};
use whylate_model::warning::Warning;
use whylate_model::{Nanos, Ticks, TicksDelta};
use whylate_sys::rseq::RseqArea;
use whylate_sys::switches::{Switches, thread_switches};
use whylate_sys::{affinity, memory, process, thread_clock};

use super::{Ended, Ends, Member, MemberFacts, Orders, Ready, Shared};
use crate::error::ThreadsError;
use crate::ring as marks;
use crate::stage::{End, Stage, Term};

pub(super) struct Task<C> {
    pub(super) counter: C,
    pub(super) orders: Orders,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) ready: SyncSender<Ready>,
    pub(super) begins: Receiver<Term>,
}

/// What a thread needs from its set-up on.
struct SetUp {
    shared: Arc<Shared>,
    gaps: ring::Producer,
    marks: marks::Producer,
    rseq: Option<RseqArea>,
}

impl<C: Counter> Task<C> {
    pub(super) fn run(mut self, mut member: Member<C>) -> Ended {
        let set_up = match self.set_up(&mut member) {
            Ok((ready, set_up)) => {
                if self.ready.send(Ok(ready)).is_err() {
                    return Ended::unknown();
                }
                set_up
            }
            Err(error) => {
                let _ = self.ready.send(Err(error));
                return Ended::unknown();
            }
        };
        let Ok(term) = self.begins.recv() else { return Ended::unknown() };
        self.measure(member, set_up, term)
    }

    fn set_up(&mut self, member: &mut Member<C>) -> Result<(Ends, SetUp), ThreadsError> {
        if let Some(cpus) = &member.cpus {
            affinity::set(cpus)
                .map_err(|source| ThreadsError::Seat { thread: member.name.clone(), source })?;
        }
        memory::prefault_stack();
        let mut rseq_warning = None;
        let rseq = RseqArea::of_thread()
            .map_err(|refusal| refusal.to_string())
            .and_then(|area| selftest_rseq::check(&mut self.counter, self.orders.rate, area))
            .inspect_err(|reason| {
                rseq_warning = Some(Warning::RseqUnusable { reason: reason.clone() });
            })
            .ok();
        member.timer.prepare()?;
        let (gaps, gaps_out) = ring::ring_of(self.orders.ring);
        let (marks, marks_out) = marks::ring_of(self.orders.ring);
        let seat = std::mem::replace(&mut member.seat, Box::new(|| Err(ThreadsError::Died)));
        let mut seated = seat()?;
        seated.warnings.extend(rseq_warning);
        let facts = MemberFacts {
            tid: process::tid(),
            cpu: self.counter.cpu(),
            seated,
            rseq: rseq.is_some(),
            timer: member.timer.facts(),
        };
        let shared = Arc::new(Shared::default());
        let set_up = SetUp { shared: Arc::clone(&shared), gaps, marks, rseq };
        Ok(((facts, shared, gaps_out, marks_out), set_up))
    }

    fn measure(self, member: Member<C>, set_up: SetUp, term: Term) -> Ended {
        let Member { mut model, mut timer, limits, .. } = member;
        let SetUp { shared, gaps, marks, rseq } = set_up;
        let mut counter = self.counter;
        let now = timer.now();
        let left = term.end.since(now).to_ticks(self.orders.rate);
        let limits = Limits {
            threshold: limits.threshold,
            recording: limits.recording,
            recording_with_switches: limits.recording_with_switches,
            stop_at: TicksDelta(u64::MAX),
            begin: Ticks(0),
            end: Ticks(counter.read().0.saturating_add(left.0)),
        };
        let recorder =
            Recorder::new(gaps, &shared.overflow, &shared.live, &self.stop, rseq, limits);
        let look = || (thread_switches(), thread_clock::cpu_time());
        let mut stage = Stage::new(counter, timer, recorder, marks, self.orders.rate, term);
        let before = stage.open(look);
        let end = match stage.await_start() {
            Ok(_) => model.body(&mut stage),
            Err(end) => end,
        };
        let after = stage.close(look);
        let failure = match end {
            End::Over => None,
            End::Failed(error) => {
                // The others need not go on with a set that lacks a thread.
                self.stop.store(true, Ordering::Relaxed);
                Some(error)
            }
        };
        Ended {
            switches: since(before.0, after.0),
            cpu_time: Some(Nanos(after.1.0.saturating_sub(before.1.0))),
            marks_dropped: stage.marks_dropped(),
            failure,
        }
    }
}

fn since(before: Switches, after: Switches) -> Switches {
    Switches {
        voluntary: after.voluntary.saturating_sub(before.voluntary),
        involuntary: after.involuntary.saturating_sub(before.involuntary),
    }
}
