//! Jobs beside the gaps that they fell into: what each job did not have, and what a miss is named
//! after.
//!
//! Jobs are judged as soon as they are done; the causes of their gaps are known a little later. A
//! job waits until the gaps of its thread are attributed up to its end.

use std::collections::{BTreeMap, VecDeque};

use whylate_cause::{Attributed, Basis, naming};
use whylate_model::cause::{Cause, Part, PriorityClass};
use whylate_model::execution::StoredJob;
use whylate_model::gap::{GapKind, RseqWord};
use whylate_model::threads::{Miss, MissGap, TakenFrom};
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::outcomes::Outcomes;
use whylate_threads::ledger::{Job, Verdict};

use super::wakes::Wakes;

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

/// A thread's claim to a CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Claim {
    /// It runs before every ordinary thread.
    pub(super) above_ordinary: bool,
    /// What a deadline's reservation grants it in each period.
    pub(super) budget: Option<Nanos>,
}

/// What is added up for one thread.
#[derive(Debug, Default)]
pub(super) struct Tally {
    recent: VecDeque<Taken>,
    waiting: VecDeque<Job>,
    /// Hits and misses so far.
    hits: u64,
    misses: u64,
    /// Misses among the judged jobs, in their order.
    pub(super) outcomes: Outcomes,
    /// Misses by cause.
    pub(super) causes: BTreeMap<Cause, u64>,
    /// The first misses.
    pub(super) first: Vec<Miss>,
    claim: Claim,
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
    pub(super) wakes: Wakes,
}

/// A gap in which a thread did not have what it wanted.
#[derive(Debug)]
struct Taken {
    start: Ticks,
    end: Ticks,
    kind: GapKind,
    parts: Vec<Piece>,
}

/// A part of such a gap.
#[derive(Debug)]
struct Piece {
    start: Ticks,
    end: Ticks,
    bin: Bin,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bin {
    Thread,
    Waking,
    Interrupt,
    Host,
    /// Interrupts and the host while the thread was off the CPU: not charged to it.
    Away,
    Blocked,
    Unknown,
}

/// Where a bin's time is added up.
type Place = fn(&mut TakenFrom) -> &mut f64;

/// The bins of what was taken, each with its place in the sums.
const BINS: [(Bin, Place); 7] = [
    (Bin::Thread, |of| &mut of.threads_ns),
    (Bin::Waking, |of| &mut of.waking_ns),
    (Bin::Interrupt, |of| &mut of.interrupts_ns),
    (Bin::Host, |of| &mut of.host_ns),
    (Bin::Blocked, |of| &mut of.blocked_ns),
    (Bin::Away, |of| &mut of.away_ns),
    (Bin::Unknown, |of| &mut of.unknown_ns),
];

/// What belongs into a bin.
fn of_bin(taken: &mut TakenFrom, bin: Bin) -> &mut f64 {
    let at = BINS.iter().position(|(of, _)| *of == bin).unwrap_or(BINS.len() - 1);
    BINS[at].1(taken)
}

impl Tallies {
    /// Tallies of threads with these claims.
    pub(super) fn of(claims: impl Iterator<Item = Claim>) -> Self {
        let tally = |claim| Tally { traced: true, claim, ..Tally::default() };
        Self { threads: claims.map(tally).collect() }
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
    pub(super) fn gap(&mut self, of: &Attributed, rate: Hertz) {
        let tally = &mut self.threads[of.thread as usize];
        tally.count(of);
        tally.wakes.gap(of, rate);
        let blocked = matches!(of.gap.kind, GapKind::Blocked | GapKind::HandOff);
        if of.gap.kind.is_wait() && !blocked {
            return;
        }
        let (start, end, kind) = (of.gap.start, of.gap.end, of.gap.kind);
        let parts = tally.pieces(of);
        tally.recent.push_back(Taken { start, end, kind, parts });
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
        tally.outcomes.add(job.verdict != Verdict::Hit);
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
        (self.ordinary_jobs > 0).then(|| {
            let mut mean = self.ordinary;
            for (_, of) in BINS {
                *of(&mut mean) /= jobs;
            }
            mean
        })
    }

    /// The parts of a gap, each in its bin. Between the first and the last part that is another
    /// thread's, or the wake-up's, the thread was off the CPU: an interrupt there is not charged to
    /// it. A thread above the ordinary ones that can run, and sees them run, is throttled.
    fn pieces(&self, of: &Attributed) -> Vec<Piece> {
        let off = |part: &Part| matches!(bin(&part.cause), Bin::Thread | Bin::Waking);
        let woken_late = matches!(of.gap.kind, GapKind::Dispatch | GapKind::LateTimer);
        let last = of.parts.iter().rposition(off);
        let first = if woken_late { Some(0) } else { of.parts.iter().position(off) };
        let away = |at: usize| first.is_some_and(|from| from <= at) && Some(at) <= last;
        let piece = |(at, part): (usize, &Part)| {
            let bin = match bin(&part.cause) {
                _ if of.gap.kind.is_wait() => Bin::Blocked,
                Bin::Interrupt | Bin::Host if away(at) => Bin::Away,
                own => own,
            };
            let lower = matches!(
                part.cause,
                Cause::Thread { class: PriorityClass::Ordinary | PriorityClass::Idle, .. }
            );
            let throttled = self.claim.above_ordinary && lower && !of.gap.kind.is_wait();
            let cause = if throttled { Cause::Throttled } else { part.cause.clone() };
            Piece { start: part.start, end: part.start + part.length, bin, cause }
        };
        of.parts.iter().enumerate().map(piece).collect()
    }

    fn count(&mut self, of: &Attributed) {
        self.traced &= of.basis == Basis::Trace;
        self.switched_out += of.switched_out;
        let evidence = &of.gap.evidence;
        let by_itself = evidence.rseq != RseqWord::Set
            && evidence.involuntary_switches.is_some_and(|count| count > 0);
        // The kernel counts a yield among the involuntary switches, if there was one at all; and who
        // found what it waited for has kept the CPU.
        let left = of.gap.kind.leaves_cpu() && evidence.rseq != RseqWord::Set;
        self.inferred += u64::from(left)
            + if by_itself { u64::from(evidence.involuntary_switches.unwrap_or(0)) } else { 0 };
        let woken_late = matches!(of.gap.kind, GapKind::Dispatch | GapKind::LateTimer);
        let switched = match of.switched {
            Some(switched) => switched || woken_late,
            None => left || by_itself || woken_late,
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
        if all {
            self.wakes.close(rate);
        }
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
        for gap in self.recent.iter().take_while(|gap| gap.start < until) {
            for piece in &gap.parts {
                let ns = window(piece.start, piece.end).0 as f64 * 1e9 / rate.0;
                *of_bin(&mut taken, piece.bin) += ns;
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
            blocked: whole(taken.blocked_ns),
            away: whole(taken.away_ns),
            unknown: whole(taken.unknown_ns),
        });
        if job.done.is_some() && self.jobs.len() < MOST_JOBS {
            let taken = whole(taken.interrupts_ns + taken.host_ns);
            self.jobs.push((job.received.to_nanos(rate), taken));
        }
        if job.verdict == Verdict::Hit {
            self.ordinary_jobs += 1;
            for (_, of) in BINS {
                *of(&mut self.ordinary) += *of(&mut taken);
            }
            return;
        }
        let mut gap = self.blamed(job, until, taken, rate);
        // Whoever had the CPU then, it had used up what was reserved for it.
        let charged = job.received.to_nanos(rate).0 + whole(taken.interrupts_ns + taken.host_ns).0;
        let overran = self.claim.budget.is_some_and(|budget| charged > budget.0);
        if let Some(gap) = gap.as_mut().filter(|gap| overran && is_thread(&gap.cause)) {
            gap.cause = Cause::Throttled;
        }
        let cause = gap.as_ref().map_or(Cause::Unknown, |gap| match gap.kind {
            GapKind::Blocked | GapKind::HandOff => Cause::Blocked,
            _ => gap.cause.clone(),
        });
        *self.causes.entry(cause).or_default() += 1;
        if self.first.len() < MOST_MISSES {
            self.first.push(Miss {
                job: job.index,
                release: job.release,
                deadline: job.deadline,
                done: job.done,
                skipped: job.verdict == Verdict::Skipped,
                taken,
                gap,
            });
        }
    }

    /// The gap that a miss is named after: of what took more from this job than from the ordinary
    /// one, the largest excess; and the gap that holds most of that.
    fn blamed(
        &self,
        job: &Job,
        until: Ticks,
        mut taken: TakenFrom,
        rate: Hertz,
    ) -> Option<MissGap> {
        let mut ordinary = self.ordinary().unwrap_or_default();
        let excess = BINS.map(|(bin, of)| (bin, *of(&mut taken) - *of(&mut ordinary)));
        let (most, _) = excess.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let within = |piece: &Piece| piece.end.min(until).since(piece.start.max(job.release));
        let of_most = |gap: &Taken| {
            let pieces = gap.parts.iter().filter(|piece| piece.bin == most);
            pieces.map(|piece| within(piece).0).sum::<u64>()
        };
        let gaps = self.recent.iter().take_while(|gap| gap.start < until);
        let gap = gaps.filter(|gap| of_most(gap) > 0).max_by_key(|gap| of_most(gap))?;
        let pieces = gap.parts.iter().filter(|piece| piece.bin == most);
        // The way into the kernel belongs to what made it necessary.
        let named = |piece: &&Piece| (!naming::is_residual(&piece.cause), within(piece));
        Some(MissGap {
            start: gap.start,
            length: gap.end.since(gap.start).to_nanos(rate),
            cause: pieces.max_by_key(named)?.cause.clone(),
            kind: gap.kind,
        })
    }
}

fn is_thread(cause: &Cause) -> bool {
    matches!(cause, Cause::Thread { .. })
}

fn bin(cause: &Cause) -> Bin {
    match cause {
        Cause::Thread { .. }
        | Cause::Whylate
        | Cause::Throttled
        | Cause::ContextSwitch
        | Cause::Migration => Bin::Thread,
        Cause::TimerLate | Cause::IdleExit => Bin::Waking,
        Cause::Blocked | Cause::Stopped => Bin::Blocked,
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

    fn of_one(above_ordinary: bool, budget: Option<Nanos>) -> Tallies {
        Tallies::of(std::iter::once(Claim { above_ordinary, budget }))
    }

    fn timer() -> Cause {
        Cause::Interrupt { name: "local_timer".to_owned() }
    }

    /// A hit that lost 40 to interrupts, and a miss that lost 900 to a thread, 60 to interrupts and
    /// 500 to the host, of which 100 lie behind its end; a sleep between them is nobody's doing.
    fn planted(above_ordinary: bool) -> Tallies {
        let mut tallies = of_one(above_ordinary, None);
        tallies.job(0, job(0, 1_000, 1_400, Verdict::Hit));
        tallies.gap(&attributed(1_100, GapKind::Interruption, &[(40, timer())]), HZ);
        tallies.gap(&attributed(1_400, GapKind::Sleep, &[(600, other(PriorityClass::Idle))]), HZ);
        tallies.job(0, job(1, 2_000, 4_000, Verdict::Late));
        let preempted = [(60, timer()), (900, other(PriorityClass::Ordinary))];
        tallies.gap(&attributed(2_100, GapKind::Interruption, &preempted), HZ);
        tallies.gap(&attributed(3_600, GapKind::Interruption, &[(500, Cause::Host)]), HZ);
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
        let mut tallies = of_one(true, None);
        tallies.job(0, job(0, 1_000, 2_400, Verdict::Late));
        let late = [(700, Cause::TimerLate), (40, timer()), (9, other(PriorityClass::RealTime))];
        tallies.gap(&attributed(1_000, GapKind::Dispatch, &late), HZ);
        tallies.settle(true, HZ);
        let miss = &tallies.thread(0).first[0];
        assert_eq!((miss.taken.waking_ns, miss.taken.threads_ns), (700.0, 9.0));
        assert_eq!(miss.gap.as_ref().unwrap().cause, Cause::TimerLate);
    }

    #[test]
    fn interrupts_of_the_time_that_another_thread_had_are_not_charged_to_the_job() {
        let mut tallies = of_one(false, None);
        tallies.job(0, job(0, 1_000, 2_400, Verdict::Late));
        let away =
            [(5, timer()), (300, other(PriorityClass::RealTime)), (70, Cause::Host), (9, timer())];
        let back = (200, other(PriorityClass::RealTime));
        let parts: Vec<_> = away.into_iter().chain([back, (3, timer())]).collect();
        tallies.gap(&attributed(1_100, GapKind::Interruption, &parts), HZ);
        tallies.settle(true, HZ);
        let taken = tallies.thread(0).first[0].taken;
        assert_eq!((taken.threads_ns, taken.away_ns), (500.0, 79.0));
        assert_eq!((taken.interrupts_ns, taken.host_ns), (8.0, 0.0));
    }

    #[test]
    fn a_job_that_waited_for_a_lock_is_late_for_that() {
        let mut tallies = of_one(true, None);
        tallies.job(0, job(0, 1_000, 2_400, Verdict::Late));
        let low = [(20, timer()), (800, other(PriorityClass::RealTime))];
        tallies.gap(&attributed(1_100, GapKind::Blocked, &low), HZ);
        tallies.gap(&attributed(2_100, GapKind::Interruption, &[(40, timer())]), HZ);
        tallies.settle(true, HZ);
        let miss = &tallies.thread(0).first[0];
        assert_eq!((miss.taken.blocked_ns, miss.taken.interrupts_ns), (820.0, 40.0));
        let gap = miss.gap.as_ref().unwrap();
        assert_eq!((gap.kind, &gap.cause), (GapKind::Blocked, &other(PriorityClass::RealTime)));
        assert_eq!(tallies.thread(0).causes, BTreeMap::from([(Cause::Blocked, 1)]));
    }

    #[test]
    fn a_thread_that_used_up_its_budget_was_throttled_whoever_ran_then() {
        for (budget, cause) in [(330, Cause::Throttled), (350, other(PriorityClass::Deadline))] {
            let mut tallies = of_one(true, Some(Nanos(budget)));
            tallies.job(0, job(0, 1_000, 2_400, Verdict::Late));
            tallies.gap(&attributed(1_100, GapKind::Interruption, &[(40, timer())]), HZ);
            let away = [(800, other(PriorityClass::Deadline))];
            tallies.gap(&attributed(1_200, GapKind::Interruption, &away), HZ);
            tallies.settle(true, HZ);
            assert_eq!(tallies.thread(0).causes, BTreeMap::from([(cause, 1)]));
        }
    }

    #[test]
    fn a_miss_is_named_after_what_took_more_than_it_takes_from_the_ordinary_job() {
        let mut tallies = of_one(false, None);
        let planned = [(500, other(PriorityClass::RealTime))];
        for index in 0..3 {
            let release = 1_000 * (index + 1);
            tallies.job(0, job(index, release, release + 900, Verdict::Hit));
            tallies.gap(&attributed(release + 10, GapKind::Interruption, &planned), HZ);
        }
        tallies.job(0, job(3, 4_000, 5_300, Verdict::Late));
        tallies.gap(&attributed(4_010, GapKind::Interruption, &planned), HZ);
        tallies.gap(&attributed(4_700, GapKind::Interruption, &[(400, Cause::Host)]), HZ);
        tallies.settle(true, HZ);
        let miss = &tallies.thread(0).first[0];
        let gap = miss.gap.as_ref().unwrap();
        assert_eq!((gap.cause.clone(), gap.length), (Cause::Host, Nanos(400)));
    }

    #[test]
    fn a_job_waits_until_its_gaps_are_known() {
        let mut tallies = of_one(false, None);
        tallies.job(0, job(0, 1_000, 1_400, Verdict::Late));
        tallies.gap(&attributed(1_100, GapKind::Interruption, &[(40, timer())]), HZ);
        tallies.settle(false, HZ);
        assert!(tallies.take_fresh().is_empty());
        tallies.gap(&attributed(1_500, GapKind::Interruption, &[(40, timer())]), HZ);
        tallies.settle(false, HZ);
        assert_eq!(tallies.take_fresh().len(), 1);
    }
}
