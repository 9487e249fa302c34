//! The self-test's verdict: what was injected against what was found and how it was named.
//!
//! What was injected is kept with the run, so that the same verdict can be reached from its directory alone.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;

use whylate_cause::Attributed;
use whylate_gap::Session;
use whylate_gap::inject::{self, Injected, Kind, Outcome, Target};
use whylate_model::cause::{Cause, Part, Sender};
use whylate_model::injection::Injection;
use whylate_model::run::{SelfTest, SelfTestKind};
use whylate_model::{Hertz, Nanos, Pid, Ticks};

use crate::gaps::Request;
use crate::workbench::Workbench;

/// Injections are judged where they are at least this long, or of a length not known.
pub const SHORTEST_JUDGED: Nanos = Nanos(2_000);

/// A running injector.
pub(crate) struct Injector {
    handle: JoinHandle<Vec<Outcome>>,
    /// Whom it interrupts.
    thread: Pid,
    sender: Arc<AtomicI32>,
    stop: Arc<AtomicBool>,
}

impl Injector {
    /// Starts to inject into the session's first thread, where the request asks for it.
    pub(crate) fn start(
        request: &Request,
        session: &Session,
        workbench: &Workbench,
    ) -> Option<Self> {
        let (Some(facts), Some(from), Some(part)) =
            (session.threads().next(), workbench.housekeeping.first().copied(), request.selftest)
        else {
            return None;
        };
        let target = Target { cpu: facts.cpu, tid: facts.tid, from };
        let (counter, rate, seed) = (workbench.counter, workbench.rate, request.seed);
        let sender = Arc::new(AtomicI32::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, stopped) = (Arc::clone(&sender), Arc::clone(&stop));
        let settle = std::time::Duration::from_nanos(whylate_gap::session::SETTLE.0 * 2);
        let handle = std::thread::Builder::new()
            .name("whylate-inject".to_owned())
            .spawn(move || {
                tell.store(inject::sender().0, Ordering::Relaxed);
                std::thread::sleep(settle);
                inject::run(target, counter, rate, seed, |kind| number(kind, part), &stopped)
            })
            .ok()?;
        Some(Self { handle, thread: target.tid, sender, stop })
    }

    /// Is everything injected?
    pub(crate) fn has_ended(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits for the injector and judges what was found. `keep` sees everything that was injected.
    pub(crate) fn judge(
        self,
        attributed: &[Attributed],
        with_trace: bool,
        rate: Hertz,
        mut keep: impl FnMut(&Injection),
    ) -> SelfTest {
        self.stop.store(true, Ordering::Relaxed);
        let outcomes = self.handle.join().unwrap_or_default();
        let sender = Pid(self.sender.load(Ordering::Relaxed));
        let made: Vec<Injected> = outcomes
            .iter()
            .flat_map(|outcome| match outcome {
                Outcome::Made(injected) => injected.as_slice(),
                Outcome::Skipped(..) => &[],
            })
            .copied()
            .collect();
        made.iter().map(stored).for_each(|made| keep(&made));
        let skipped = outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Skipped(kind, why) => Some((kind.name().to_owned(), why.to_string())),
            Outcome::Made(_) => None,
        });
        SelfTest {
            kinds: score(attributed, &made, &Scored { sender, with_trace, rate }),
            skipped: skipped.collect(),
            thread: Some(self.thread),
            sender: Some(sender),
        }
    }
}

/// How many of a kind are injected where it is one of so many of the usual number.
fn number(kind: Kind, part: NonZeroU32) -> usize {
    kind.count().div_ceil(part.get() as usize)
}

/// As the run keeps it.
fn stored(made: &Injected) -> Injection {
    let Injected { kind, since, start, end, asked } = *made;
    Injection { kind: kind.name().to_owned(), since, start, end, asked }
}

/// What the judgement knows beside gaps and injections.
#[derive(Debug, Clone, Copy)]
struct Scored {
    /// The injector's thread.
    sender: Pid,
    with_trace: bool,
    rate: Hertz,
}

/// One row for each kind that was injected, of the gaps of the first thread.
fn score(attributed: &[Attributed], made: &[Injected], of: &Scored) -> Vec<SelfTestKind> {
    let found = attributed.iter().filter(|attributed| attributed.thread == 0).collect();
    let judge = Judge { found, sender: of.sender, with_trace: of.with_trace, rate: of.rate };
    let of_kind = |kind: Kind| -> Vec<Injected> {
        made.iter().filter(|one| one.kind == kind).copied().collect()
    };
    Kind::ALL.into_iter().filter_map(|kind| judge.kind(&of_kind(kind), made)).collect()
}

struct Judge<'a> {
    /// Gaps of the interrupted thread, in order.
    found: Vec<&'a Attributed>,
    sender: Pid,
    with_trace: bool,
    rate: Hertz,
}

impl Judge<'_> {
    /// One kind, with everything that was injected of any kind beside it: what one kind did on the
    /// way to its interruption is no false alarm of another's.
    fn kind(&self, injected: &[Injected], everything: &[Injected]) -> Option<SelfTestKind> {
        let kind = injected.first()?.kind;
        let shortest = SHORTEST_JUDGED.to_ticks(self.rate);
        let judged: Vec<&Injected> = injected
            .iter()
            .filter(|one| !kind.length_known() || one.end.since(one.start) >= shortest)
            .filter(|one| self.was_delivered(one))
            .collect();
        let (mut found, mut named_right, mut errors) = (0, 0, Vec::new());
        for one in &judged {
            let overlapping = self.overlapping(one.start, one.end);
            if overlapping.is_empty() {
                continue;
            }
            found += 1;
            named_right += u64::from(self.named_right(&overlapping, one));
            if let ([only], true) = (overlapping.as_slice(), kind.length_known()) {
                let made = one.end.since(one.start).0 as f64;
                errors.push((only.gap.length().0 as f64 - made) * 1e9 / self.rate.0);
            }
        }
        let ascribed: Vec<&&Attributed> =
            self.found.iter().filter(|gap| self.ascribes(gap, kind)).collect();
        let rightly =
            ascribed.iter().filter(|gap| everything.iter().any(|one| acted_in(gap, one))).count();
        errors.sort_by(f64::total_cmp);
        let mut absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        absolute.sort_by(f64::total_cmp);
        Some(SelfTestKind {
            kind: kind.name().to_owned(),
            injected: judged.len() as u64,
            found,
            ascribed: ascribed.len() as u64,
            ascribed_rightly: rightly as u64,
            named_right,
            with_trace: self.with_trace,
            length_error_ns: order_statistic(&errors, 0.5),
            length_error_p99_ns: order_statistic(&absolute, 0.99),
        })
    }

    /// A membarrier interrupts the CPUs that run a thread of this process. Where the trace shows
    /// that another thread had the CPU all the while, nothing was interrupted.
    fn was_delivered(&self, one: &Injected) -> bool {
        let covers = |part: &Part| part.start <= one.start && part.start + part.length >= one.end;
        let switched_out = |part: &Part| matches!(part.cause, Cause::Thread { .. }) && covers(part);
        one.kind != Kind::Ipi
            || !self
                .overlapping(one.start, one.end)
                .iter()
                .any(|attributed| attributed.parts.iter().any(switched_out))
    }

    /// Gaps that overlap the interval.
    fn overlapping(&self, start: Ticks, end: Ticks) -> Vec<&Attributed> {
        let first = self.found.partition_point(|gap| gap.gap.end <= start);
        self.found[first..].iter().take_while(|gap| gap.gap.start < end).copied().collect()
    }

    /// Is the stretch of the injection named after the injector?
    ///
    /// The gap around it may well be longer and named after somebody else who took more of it. Where
    /// our code stamped both ends, the cause with the largest share of the stretch must be ours;
    /// where only the sender's stamps are known, an interrupt of ours must lie in it.
    fn named_right(&self, overlapping: &[&Attributed], one: &Injected) -> bool {
        let mut shares: Vec<(bool, u64)> = Vec::new();
        for attributed in overlapping {
            for part in &attributed.parts {
                let end = (part.start + part.length).min(one.end);
                let length = end.since(part.start.max(one.start)).0;
                let ours = self.is_ours(&part.cause, part.sender.as_ref(), one.kind);
                match shares.iter_mut().find(|(is_ours, _)| *is_ours == ours) {
                    Some((_, sum)) => *sum += length,
                    None => shares.push((ours, length)),
                }
            }
        }
        let of = |ours: bool| shares.iter().find(|(is, _)| *is == ours).map_or(0, |(_, sum)| *sum);
        if one.kind.length_known() { of(true) > of(false) } else { of(true) > 0 }
    }

    /// Is this gap named after the injector?
    fn ascribes(&self, attributed: &Attributed, kind: Kind) -> bool {
        let of_ours = |part: &&Part| part.cause == attributed.cause;
        attributed
            .parts
            .iter()
            .filter(of_ours)
            .any(|part| self.is_ours(&part.cause, part.sender.as_ref(), kind))
    }

    fn is_ours(&self, cause: &Cause, sender: Option<&Sender>, kind: Kind) -> bool {
        match (cause, kind) {
            (Cause::Thread { comm, .. }, Kind::FifoPreemption | Kind::CpuHog) => {
                Some(comm.as_str()) == kind.thread_name()
            }
            (Cause::Signal { signal }, Kind::Signal) => Some(*signal) == kind.signal(),
            (Cause::PageFault, Kind::PageFault) => true,
            (Cause::Interrupt { name }, Kind::Ipi) => {
                name.starts_with("call_function")
                    && sender.is_some_and(|sender| sender.pid == self.sender)
            }
            _ => false,
        }
    }
}

/// Did the injector act for this one within the gap?
fn acted_in(attributed: &Attributed, one: &Injected) -> bool {
    attributed.gap.start < one.end && one.since < attributed.gap.end
}

fn order_statistic(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod recorded;
