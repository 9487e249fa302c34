//! Jobs beside the gaps that they fell into: what each job did not have, and what a miss is named
//! after.
//!
//! Jobs are judged as soon as they are done; the causes of their gaps are known a little later. A
//! job waits until the gaps of its thread are attributed up to its end.

use std::collections::{BTreeMap, VecDeque};

use whylate_cause::{Attributed, Basis};
use whylate_model::cause::{Cause, PriorityClass};
use whylate_model::execution::StoredJob;
use whylate_model::gap::{GapKind, RseqWord};
use whylate_model::threads::{Miss, MissGap, TakenFrom};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_threads::ledger::{Job, Verdict};

/// Attributed gaps kept per thread for the jobs to come; the oldest go first.
const MOST_GAPS: usize = 65_536;
/// Jobs whose times are kept one by one, per thread: what a proposal is made from.
const MOST_JOBS: usize = 1 << 20;
/// Misses kept one by one, per thread; the rest are counted by cause.
const MOST_MISSES: usize = 100;

/// What is added up for the threads of a set.
pub(super) struct Tallies {
    threads: Vec<Tally>,
}

/// What is added up for one thread.
#[derive(Debug, Default)]
pub(super) struct Tally {
    recent: VecDeque<Taken>,
    waiting: VecDeque<Job>,
    /// Hits and misses so far.
    hits: u64,
    misses: u64,
    /// Misses by cause.
    pub(super) causes: BTreeMap<Cause, u64>,
    /// The first misses.
    pub(super) first: Vec<Miss>,
    /// It runs before every ordinary thread.
    above_ordinary: bool,
    jobs: Vec<(Nanos, Nanos)>,
    fresh: Vec<StoredJob>,
    ordinary: TakenFrom,
    ordinary_jobs: u64,
    /// Switches by the trace; whether it was complete over every gap.
    pub(super) switched_out: u64,
    pub(super) traced: bool,
    /// Switches by the gaps alone.
    pub(super) inferred: u64,
    /// Ticks in gaps without a switch.
    pub(super) unswitched: u64,
    /// Of all that the thread is taken to be charged for, ticks without a kernel event.
    pub(super) host: u64,
    /// Of gaps with one, ticks around it that are the thread's own.
    pub(super) around: u64,
}

/// A gap in which a thread did not have what it wanted.
#[derive(Debug)]
struct Taken {
    start: Ticks,
    end: Ticks,
    kind: GapKind,
    cause: Cause,
    parts: Vec<(Ticks, Ticks, Bin)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bin {
    Thread,
    Waking,
    Interrupt,
    Host,
    Unknown,
}

impl Tallies {
    /// Tallies of threads, of which it is known whether they run before every ordinary one.
    pub(super) fn of(above_ordinary: impl Iterator<Item = bool>) -> Self {
        let tally = |above_ordinary| Tally { traced: true, above_ordinary, ..Tally::default() };
        Self { threads: above_ordinary.map(tally).collect() }
    }

    /// Hits and misses of all threads so far.
    pub(super) fn deadlines(&self) -> (u64, u64) {
        self.threads
            .iter()
            .fold((0, 0), |(hits, misses), tally| (hits + tally.hits, misses + tally.misses))
    }

    pub(super) fn thread(&self, index: usize) -> &Tally {
        &self.threads[index]
    }

    /// A gap has been attributed.
    pub(super) fn gap(&mut self, of: &Attributed) {
        let tally = &mut self.threads[of.thread as usize];
        tally.count(of);
        if of.gap.kind.is_wait() {
            return;
        }
        let parts = of.parts.iter();
        let parts = parts.map(|part| (part.start, part.start + part.length, bin(&part.cause)));
        tally.recent.push_back(Taken {
            start: of.gap.start,
            end: of.gap.end,
            kind: of.gap.kind,
            cause: tally.named(of),
            parts: parts.collect(),
        });
        if tally.recent.len() > MOST_GAPS {
            tally.recent.pop_front();
        }
    }

    /// A job has been judged.
    pub(super) fn job(&mut self, thread: usize, job: Job) {
        let tally = &mut self.threads[thread];
        match job.verdict {
            Verdict::Hit => tally.hits += 1,
            _ => tally.misses += 1,
        }
        tally.waiting.push_back(job);
    }

    /// Jobs settled since the last call, thread by thread.
    pub(super) fn take_fresh(&mut self) -> Vec<StoredJob> {
        let threads = self.threads.iter_mut().enumerate();
        let jobs = threads.flat_map(|(index, tally)| {
            let named = move |job| StoredJob { thread: index as u16, ..job };
            std::mem::take(&mut tally.fresh).into_iter().map(named)
        });
        jobs.collect()
    }

    /// Of each thread, its jobs in order: execution time, and what interrupts and the host took.
    pub(super) fn into_jobs(self) -> Vec<Vec<(Nanos, Nanos)>> {
        self.threads.into_iter().map(|tally| tally.jobs).collect()
    }

    /// Puts the jobs whose gaps are known beside them; all that are left when `all`.
    pub(super) fn settle(&mut self, all: bool, rate: Hertz) {
        self.threads.iter_mut().for_each(|tally| tally.settle(all, rate));
    }
}

impl Tally {
    /// What an ordinary job did not have, on average.
    pub(super) fn ordinary(&self) -> Option<TakenFrom> {
        let jobs = self.ordinary_jobs as f64;
        (self.ordinary_jobs > 0).then(|| TakenFrom {
            threads_ns: self.ordinary.threads_ns / jobs,
            waking_ns: self.ordinary.waking_ns / jobs,
            interrupts_ns: self.ordinary.interrupts_ns / jobs,
            host_ns: self.ordinary.host_ns / jobs,
            unknown_ns: self.ordinary.unknown_ns / jobs,
        })
    }

    /// What a gap of this thread is named after. A thread above the ordinary ones that can run, and
    /// sees them run, is throttled.
    fn named(&self, of: &Attributed) -> Cause {
        let lower = matches!(
            of.cause,
            Cause::Thread { class: PriorityClass::Ordinary | PriorityClass::Idle, .. }
        );
        if self.above_ordinary && lower && !of.gap.kind.is_wait() {
            return Cause::Throttled;
        }
        of.cause.clone()
    }

    fn count(&mut self, of: &Attributed) {
        self.traced &= of.basis == Basis::Trace;
        self.switched_out += of.switched_out;
        let evidence = &of.gap.evidence;
        let waited = of.gap.kind.is_wait();
        let by_itself = evidence.rseq != RseqWord::Set
            && evidence.involuntary_switches.is_some_and(|count| count > 0);
        // The kernel counts a yield among the involuntary switches, if there was one at all.
        let blocked = waited && of.gap.kind != GapKind::Yield;
        self.inferred += u64::from(blocked)
            + if by_itself { u64::from(evidence.involuntary_switches.unwrap_or(0)) } else { 0 };
        let switched = match of.switched {
            Some(switched) => switched || of.gap.kind == GapKind::Dispatch,
            None => waited || by_itself || of.gap.kind == GapKind::Dispatch,
        };
        let host = of.parts.iter().filter(|part| bin(&part.cause) == Bin::Host);
        let host: u64 = host.map(|part| part.length.0).sum();
        if switched {
            self.around += of.own.0;
            self.host += host.min(of.own.0);
        } else {
            self.unswitched += of.gap.length().0;
            self.host += host;
        }
    }

    fn settle(&mut self, all: bool, rate: Hertz) {
        let known_to = self.recent.back().map_or(Ticks(0), |gap| gap.end);
        while let Some(job) = self.waiting.front().copied() {
            let until = job.done.unwrap_or(job.deadline);
            if !all && known_to < until {
                return;
            }
            self.waiting.pop_front();
            while self.recent.front().is_some_and(|gap| gap.end <= job.release) {
                self.recent.pop_front();
            }
            self.judge(&job, until, rate);
        }
    }

    fn judge(&mut self, job: &Job, until: Ticks, rate: Hertz) {
        let window = |from: Ticks, to: Ticks| to.min(until).since(from.max(job.release));
        let mut taken = TakenFrom::default();
        let mut largest: Option<(TicksDelta, &Taken)> = None;
        for gap in self.recent.iter().take_while(|gap| gap.start < until) {
            for (start, end, bin) in &gap.parts {
                let ns = window(*start, *end).0 as f64 * 1e9 / rate.0;
                match bin {
                    Bin::Thread => taken.threads_ns += ns,
                    Bin::Waking => taken.waking_ns += ns,
                    Bin::Interrupt => taken.interrupts_ns += ns,
                    Bin::Host => taken.host_ns += ns,
                    Bin::Unknown => taken.unknown_ns += ns,
                }
            }
            let share = window(gap.start, gap.end);
            if share.0 > 0 && largest.is_none_or(|(most, _)| share > most) {
                largest = Some((share, gap));
            }
        }
        let whole = |ns: f64| Nanos(ns.round() as u64);
        self.fresh.push(StoredJob {
            thread: 0,
            index: job.index,
            release: job.release,
            deadline: job.deadline,
            woke: job.woke,
            done: job.done,
            received: job.received.to_nanos(rate),
            verdict: job.verdict,
            threads: whole(taken.threads_ns),
            waking: whole(taken.waking_ns),
            interrupts: whole(taken.interrupts_ns),
            host: whole(taken.host_ns),
            unknown: whole(taken.unknown_ns),
        });
        if job.done.is_some() && self.jobs.len() < MOST_JOBS {
            let taken = whole(taken.interrupts_ns + taken.host_ns);
            self.jobs.push((job.received.to_nanos(rate), taken));
        }
        if job.verdict == Verdict::Hit {
            self.ordinary_jobs += 1;
            self.ordinary.threads_ns += taken.threads_ns;
            self.ordinary.waking_ns += taken.waking_ns;
            self.ordinary.interrupts_ns += taken.interrupts_ns;
            self.ordinary.host_ns += taken.host_ns;
            self.ordinary.unknown_ns += taken.unknown_ns;
            return;
        }
        let gap = largest.map(|(_, gap)| MissGap {
            start: gap.start,
            length: gap.end.since(gap.start).to_nanos(rate),
            cause: gap.cause.clone(),
            kind: gap.kind,
        });
        let cause = gap.as_ref().map_or(Cause::Unknown, |gap| gap.cause.clone());
        *self.causes.entry(cause).or_default() += 1;
        if self.first.len() < MOST_MISSES {
            self.first.push(Miss {
                job: job.index,
                release: job.release,
                deadline: job.deadline,
                done: job.done,
                taken,
                gap,
            });
        }
    }
}

fn bin(cause: &Cause) -> Bin {
    match cause {
        Cause::Thread { .. } | Cause::Throttled | Cause::ContextSwitch | Cause::Migration => {
            Bin::Thread
        }
        Cause::TimerLate | Cause::IdleExit => Bin::Waking,
        Cause::Interrupt { .. }
        | Cause::Softirq { .. }
        | Cause::PageFault
        | Cause::Nmi
        | Cause::Signal { .. }
        | Cause::EntryResidual
        | Cause::InnerResidual
        | Cause::ExitResidual => Bin::Interrupt,
        Cause::Host | Cause::Firmware => Bin::Host,
        Cause::TraceLost | Cause::NotSwitched | Cause::Unknown => Bin::Unknown,
    }
}

/// A length in nanoseconds.
pub(super) fn nanos(ticks: u64, rate: Hertz) -> Nanos {
    TicksDelta(ticks).to_nanos(rate)
}

#[cfg(test)]
mod tests {
    use whylate_model::CpuId;
    use whylate_model::cause::Part;
    use whylate_model::gap::{Evidence, Gap};

    use super::*;

    const HZ: Hertz = Hertz(1e9);

    /// A gap of thread 0 with these parts behind each other.
    fn attributed(start: u64, kind: GapKind, parts: &[(u64, Cause)]) -> Attributed {
        let mut at = Ticks(start);
        let mut taken = Vec::new();
        for (length, cause) in parts {
            let (length, cause) = (TicksDelta(*length), cause.clone());
            taken.push(Part { start: at, length, cause, sender: None });
            at = at + length;
        }
        let (cpu_before, cpu_after) = (CpuId(1), CpuId(1));
        let (start, end, evidence) = (Ticks(start), at, Evidence::default());
        let largest = parts.iter().max_by_key(|(length, _)| *length).unwrap();
        Attributed {
            thread: 0,
            gap: Gap { start, end, resumed: end, cpu_before, cpu_after, kind, evidence },
            cause: largest.1.clone(),
            parts: taken,
            rule: None,
            basis: Basis::Trace,
            switched: Some(parts.iter().any(|(_, cause)| bin(cause) == Bin::Thread)),
            switched_out: 0,
            own: TicksDelta(0),
            events: Vec::new(),
            sends: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    fn job(index: u64, release: u64, done: u64, verdict: Verdict) -> Job {
        let (release, deadline) = (Ticks(release), Ticks(release + 1_000));
        let (woke, done) = (Some(release), Some(Ticks(done)));
        Job { index, release, deadline, woke, done, received: TicksDelta(300), verdict }
    }

    fn other(class: PriorityClass) -> Cause {
        Cause::Thread { comm: "other".to_owned(), class }
    }

    fn timer() -> Cause {
        Cause::Interrupt { name: "local_timer".to_owned() }
    }

    /// A hit that lost 40 to interrupts, and a miss that lost 900 to a thread, 60 to interrupts and
    /// 500 to the host, of which 100 lie behind its end; a sleep between them is nobody's doing.
    fn planted(above_ordinary: bool) -> Tallies {
        let mut tallies = Tallies::of(std::iter::once(above_ordinary));
        tallies.job(0, job(0, 1_000, 1_400, Verdict::Hit));
        tallies.gap(&attributed(1_100, GapKind::Interruption, &[(40, timer())]));
        tallies.gap(&attributed(1_400, GapKind::Sleep, &[(600, other(PriorityClass::Idle))]));
        tallies.job(0, job(1, 2_000, 4_000, Verdict::Late));
        let preempted = [(60, timer()), (900, other(PriorityClass::Ordinary))];
        tallies.gap(&attributed(2_100, GapKind::Interruption, &preempted));
        tallies.gap(&attributed(3_600, GapKind::Interruption, &[(500, Cause::Host)]));
        tallies.settle(true, HZ);
        tallies
    }

    #[test]
    fn a_miss_is_named_after_the_gap_that_took_most_of_it_and_what_was_taken_adds_up() {
        let mut tallies = planted(false);
        assert_eq!(tallies.deadlines(), (1, 1));
        let ordinary = tallies.thread(0).ordinary().unwrap();
        assert!((ordinary.interrupts_ns - 40.0).abs() < 1e-9);
        assert!((ordinary.total_ns() - 40.0).abs() < 1e-9, "a sleep takes nothing: {ordinary:?}");
        let miss = &tallies.thread(0).first[0];
        let taken = miss.taken;
        assert_eq!((miss.job, taken.threads_ns, taken.interrupts_ns), (1, 900.0, 60.0));
        assert!((taken.host_ns - 400.0).abs() < 1e-9, "what lies behind the end is not the job's");
        let gap = miss.gap.as_ref().unwrap();
        assert_eq!((gap.start, gap.length), (Ticks(2_100), Nanos(960)));
        assert_eq!(gap.cause, other(PriorityClass::Ordinary));
        let stored = tallies.take_fresh();
        assert_eq!(stored.len(), 2);
        assert_eq!((stored[1].threads, stored[1].host), (Nanos(900), Nanos(400)));
        assert_eq!(tallies.into_jobs()[0], [(Nanos(300), Nanos(40)), (Nanos(300), Nanos(460))]);
    }

    #[test]
    fn a_thread_above_the_ordinary_ones_that_sees_them_run_was_throttled() {
        let tallies = planted(true);
        assert_eq!(tallies.thread(0).causes, BTreeMap::from([(Cause::Throttled, 1)]));
    }

    #[test]
    fn a_wake_up_that_came_late_took_the_time_and_no_thread_did() {
        let mut tallies = Tallies::of(std::iter::once(true));
        tallies.job(0, job(0, 1_000, 2_400, Verdict::Late));
        let late = [(700, Cause::TimerLate), (40, timer()), (9, other(PriorityClass::RealTime))];
        tallies.gap(&attributed(1_000, GapKind::Dispatch, &late));
        tallies.settle(true, HZ);
        let miss = &tallies.thread(0).first[0];
        assert_eq!((miss.taken.waking_ns, miss.taken.threads_ns), (700.0, 9.0));
        assert_eq!(miss.gap.as_ref().unwrap().cause, Cause::TimerLate);
    }

    #[test]
    fn a_job_waits_until_its_gaps_are_known() {
        let mut tallies = Tallies::of(std::iter::once(false));
        tallies.job(0, job(0, 1_000, 1_400, Verdict::Late));
        tallies.gap(&attributed(1_100, GapKind::Interruption, &[(40, timer())]));
        tallies.settle(false, HZ);
        assert!(tallies.take_fresh().is_empty());
        tallies.gap(&attributed(1_500, GapKind::Interruption, &[(40, timer())]));
        tallies.settle(false, HZ);
        assert_eq!(tallies.take_fresh().len(), 1);
    }
}
