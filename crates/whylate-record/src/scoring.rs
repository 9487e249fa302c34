//! The self-test's verdict: what was injected against what was found and how it was named.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;

use whylate_cause::Attributed;
use whylate_gap::Session;
use whylate_gap::inject::{self, Injected, Kind, Outcome, Target};
use whylate_model::cause::Cause;
use whylate_model::run::{SelfTest, SelfTestKind};
use whylate_model::{Hertz, Nanos, Pid, Ticks, TicksDelta};

use crate::collector::Collector;
use crate::gaps::Request;
use crate::workbench::Workbench;

/// Injections are judged where they are at least this long, or of a length not known.
const SHORTEST_JUDGED: Nanos = Nanos(2_000);

/// A running injector.
pub(crate) struct Injector {
    handle: JoinHandle<Vec<Outcome>>,
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
        let (Some(facts), Some(from), true) =
            (session.threads().next(), workbench.housekeeping, request.selftest)
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
                inject::run(target, counter, rate, seed, Kind::count, &stopped)
            })
            .ok()?;
        Some(Self { handle, sender, stop })
    }

    /// Is everything injected?
    pub(crate) fn has_ended(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits for the injector and judges what was found.
    pub(crate) fn judge(self, collector: &Collector, with_trace: bool, rate: Hertz) -> SelfTest {
        self.stop.store(true, Ordering::Relaxed);
        let outcomes = self.handle.join().unwrap_or_default();
        let found: Vec<&Attributed> =
            collector.kept().iter().filter(|attributed| attributed.thread == 0).collect();
        let sender = Pid(self.sender.load(Ordering::Relaxed));
        let judge = Judge { found, sender, with_trace, rate };
        let mut test = SelfTest::default();
        for outcome in &outcomes {
            match outcome {
                Outcome::Made(injected) => test.kinds.extend(judge.kind(injected)),
                Outcome::Skipped(kind, why) => {
                    test.skipped.insert(kind.name().to_owned(), why.to_string());
                }
            }
        }
        test
    }
}

struct Judge<'a> {
    /// Gaps of the interrupted thread, in order.
    found: Vec<&'a Attributed>,
    sender: Pid,
    with_trace: bool,
    rate: Hertz,
}

impl Judge<'_> {
    fn kind(&self, injected: &[Injected]) -> Option<SelfTestKind> {
        let kind = injected.first()?.kind;
        let shortest = SHORTEST_JUDGED.to_ticks(self.rate);
        let judged: Vec<&Injected> = injected
            .iter()
            .filter(|one| !kind.length_known() || one.end.since(one.start) >= shortest)
            .collect();
        let (mut found, mut named_right, mut errors) = (0, 0, Vec::new());
        for one in &judged {
            let overlapping = self.overlapping(one.start, one.end);
            if overlapping.is_empty() {
                continue;
            }
            found += 1;
            named_right += u64::from(overlapping.iter().any(|gap| self.ascribes(gap, kind)));
            if let ([only], true) = (overlapping.as_slice(), kind.length_known()) {
                let made = one.end.since(one.start).0 as f64;
                errors.push((only.gap.length().0 as f64 - made) * 1e9 / self.rate.0);
            }
        }
        let ascribed: Vec<&&Attributed> =
            self.found.iter().filter(|gap| self.ascribes(gap, kind)).collect();
        let rightly = ascribed
            .iter()
            .filter(|gap| injected.iter().any(|one| overlap(gap, one) > TicksDelta(0)))
            .count();
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

    /// Gaps that overlap the interval.
    fn overlapping(&self, start: Ticks, end: Ticks) -> Vec<&Attributed> {
        let first = self.found.partition_point(|gap| gap.gap.end <= start);
        self.found[first..].iter().take_while(|gap| gap.gap.start < end).copied().collect()
    }

    /// Is this gap named after the injector?
    fn ascribes(&self, attributed: &Attributed, kind: Kind) -> bool {
        match (&attributed.cause, kind) {
            (Cause::Thread { comm, .. }, Kind::FifoPreemption | Kind::CpuHog) => {
                Some(comm.as_str()) == kind.thread_name()
            }
            (Cause::Signal { signal }, Kind::Signal) => Some(*signal) == kind.signal(),
            (Cause::PageFault, Kind::PageFault) => true,
            (Cause::Interrupt { name }, Kind::Ipi) => {
                name.starts_with("call_function")
                    && attributed.arrivals.iter().any(|arrival| arrival.sender.pid == self.sender)
            }
            _ => false,
        }
    }
}

fn overlap(attributed: &Attributed, one: &Injected) -> TicksDelta {
    let start = attributed.gap.start.max(one.start);
    attributed.gap.end.min(one.end).since(start)
}

fn order_statistic(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.checked_sub(1)?).copied()
}
