//! Jobs beside the gaps that they fell into: what each job did not have, and what a miss is named
//! after.
//!
//! Jobs are judged as soon as they are done; the causes of their gaps are known a little later. A
//! job waits until the gaps of its thread are attributed up to its end.

use std::collections::{BTreeMap, VecDeque};

use whylate_cause::lateness::{LateJob, Reason, Share, Shares, Why, why};
use whylate_cause::{Attributed, Basis, naming};
use whylate_model::cause::{Cause, Part, PriorityClass};
use whylate_model::execution::StoredJob;
use whylate_model::gap::{GapKind, RseqWord};
use whylate_model::threads::{JobDemand, Miss, MissGap, TakenFrom};
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
    /// What each of its jobs asks for, where all ask for the same.
    pub(super) asked: Option<Nanos>,
    /// The threads that it shares its CPUs with ask for more than these have.
    pub(super) overcommitted: bool,
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
    ordinary: Shares,
    ordinary_jobs: u64,
    /// Misses whose parts do not reach their lateness.
    pub(super) unexplained: u64,
    /// When the last job that was done was done.
    done: Option<Ticks>,
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
    took: Took,
    cause: Cause,
}

/// Who had a part of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Took {
    /// Nobody took it: the thread waited of its own accord.
    Itself,
    /// It was taken.
    From(Share),
}

/// Time of a job by what had it, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Time {
    taken: Shares,
    waited_ns: f64,
}

fn taken_from(of: &Shares) -> TakenFrom {
    let threads = Share::ALL.into_iter().filter(|share| share.is_thread());
    TakenFrom {
        threads_ns: threads.map(|share| of.get(share)).sum(),
        waking_ns: of.get(Share::Waking),
        interrupts_ns: of.get(Share::Interrupts),
        host_ns: of.get(Share::NoEvent),
        blocked_ns: of.get(Share::Blocked),
        away_ns: of.get(Share::Away),
        unknown_ns: of.get(Share::Unknown),
    }
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
        (self.ordinary_jobs > 0).then(|| taken_from(&self.of_ordinary()))
    }

    fn of_ordinary(&self) -> Shares {
        self.ordinary.divided(self.ordinary_jobs.max(1) as f64)
    }

    /// The parts of a gap, each with who had it. Between the first and the last part that is another
    /// thread's, or the wake-up's, the thread was off the CPU: an interrupt there is not charged to
    /// it. A thread above the ordinary ones that can run, and sees them run, is throttled, unless they are
    /// the tool's own.
    fn pieces(&self, of: &Attributed) -> Vec<Piece> {
        let blocked = matches!(of.gap.kind, GapKind::Blocked | GapKind::HandOff);
        let off = |part: &Part| {
            let share = Share::of(&part.cause);
            share.is_thread() || share == Share::Waking
        };
        let woken_late = matches!(of.gap.kind, GapKind::Dispatch | GapKind::LateTimer);
        let last = of.parts.iter().rposition(off);
        let first = if woken_late { Some(0) } else { of.parts.iter().position(off) };
        let away = |at: usize| first.is_some_and(|from| from <= at) && Some(at) <= last;
        let piece = |(at, part): (usize, &Part)| {
            let throttled = self.claim.above_ordinary && is_lower(&part.cause);
            let cause = if throttled && !of.gap.kind.is_wait() {
                Cause::Throttled
            } else {
                part.cause.clone()
            };
            let took = match Share::of(&cause) {
                _ if blocked => Took::From(Share::Blocked),
                _ if of.gap.kind.is_wait() => Took::Itself,
                Share::Interrupts | Share::NoEvent if away(at) => Took::From(Share::Away),
                own => Took::From(own),
            };
            Piece { start: part.start, end: part.start + part.length, took, cause }
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
        let host = of.parts.iter().filter(|part| Share::of(&part.cause) == Share::NoEvent);
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

    /// What had the time of a job from this instant on.
    fn time(&self, from: Ticks, until: Ticks, rate: Hertz) -> Time {
        let mut time = Time::default();
        for gap in self.recent.iter().take_while(|gap| gap.start < until) {
            for piece in &gap.parts {
                let ticks = piece.end.min(until).since(piece.start.max(from));
                let ns = ticks.0 as f64 * 1e9 / rate.0;
                match piece.took {
                    Took::Itself => time.waited_ns += ns,
                    Took::From(share) => time.taken.add(share, ns),
                }
            }
        }
        time
    }

    fn judge(&mut self, job: &Job, until: Ticks, rate: Hertz) {
        let shares = self.time(job.release, until, rate).taken;
        let taken = taken_from(&shares);
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
            let charged = whole(taken.interrupts_ns + taken.host_ns);
            self.jobs.push((job.received.to_nanos(rate), charged));
        }
        if job.verdict == Verdict::Hit {
            self.ordinary_jobs += 1;
            self.ordinary.add_all(&shares);
        } else {
            self.miss(job, until, taken, rate);
        }
        self.done = job.done.or(self.done);
    }

    /// Names a miss.
    fn miss(&mut self, job: &Job, until: Ticks, taken: TakenFrom, rate: Hertz) {
        let (late, demand) = self.late(job, until, rate);
        let Why { reason, explained } = why(&late);
        self.unexplained += u64::from(!explained);
        let gap = match reason {
            Reason::Taken(share) => self.blamed(job, until, (share, late.over_budget), rate),
            _ => None,
        };
        let cause = match (reason, &gap) {
            (Reason::OwnDemand, _) => Cause::OwnDemand,
            (Reason::LeftOver, _) => Cause::LeftOver,
            (Reason::Taken(Share::Blocked), _) => Cause::Blocked,
            (_, Some(gap)) => gap.cause.clone(),
            _ => Cause::Unknown,
        };
        *self.causes.entry(cause.clone()).or_default() += 1;
        if self.first.len() < MOST_MISSES {
            self.first.push(Miss {
                job: job.index,
                release: job.release,
                deadline: job.deadline,
                done: job.done,
                skipped: job.verdict == Verdict::Skipped,
                cause: Some(cause),
                demand,
                taken,
                gap,
            });
        }
    }

    /// A miss as the rule for late jobs asks for it, and what the job asked for.
    fn late(&self, job: &Job, until: Ticks, rate: Hertz) -> (LateJob, Option<JobDemand>) {
        let ns = |ticks: TicksDelta| ticks.0 as f64 * 1e9 / rate.0;
        let begin = self.done.map_or(job.release, |done| done.max(job.release)).min(until);
        let left_over = begin.since(job.release);
        let Time { taken, waited_ns } = self.time(begin, until, rate);
        let executed = match job.done {
            Some(_) => Some(ns(job.received)),
            None => self.claim.asked.map(|asked| asked.0 as f64),
        };
        let charged = taken.get(Share::Interrupts) + taken.get(Share::NoEvent);
        let budget = self.claim.budget.map(|budget| budget.0 as f64);
        let asked_ns = executed.map(|executed| executed + waited_ns);
        let late = LateJob {
            deadline_ns: ns(job.deadline.since(job.release)),
            response_ns: job.done.map(|done| ns(done.since(job.release))),
            began: job.verdict != Verdict::Skipped,
            asked_ns,
            left_over_ns: ns(left_over),
            overcommitted: self.claim.overcommitted,
            over_budget: budget.is_some_and(|budget| ns(job.received) + charged > budget),
            taken,
            ordinary: self.of_ordinary(),
        };
        let demand = asked_ns.map(|asked| JobDemand {
            asked_ns: Nanos(asked.round() as u64),
            left_over_ns: left_over.to_nanos(rate),
        });
        (late, demand)
    }

    /// Of a share of a miss, the gap that holds most of it. A thread over its budget was throttled, whoever
    /// had the CPU then.
    fn blamed(
        &self,
        job: &Job,
        until: Ticks,
        (share, over_budget): (Share, bool),
        rate: Hertz,
    ) -> Option<MissGap> {
        let whoever = over_budget && share == Share::Throttled;
        let of_share = |piece: &&Piece| match piece.took {
            Took::From(of) => of == share || (whoever && of.is_thread()),
            Took::Itself => false,
        };
        let within = |piece: &Piece| piece.end.min(until).since(piece.start.max(job.release));
        let held = |gap: &Taken| {
            gap.parts.iter().filter(of_share).map(|piece| within(piece).0).sum::<u64>()
        };
        let gaps = self.recent.iter().take_while(|gap| gap.start < until);
        let gap = gaps.filter(|gap| held(gap) > 0).max_by_key(|gap| held(gap))?;
        // The way into the kernel belongs to what made it necessary.
        let named = |piece: &&Piece| (!naming::is_residual(&piece.cause), within(piece));
        let piece = gap.parts.iter().filter(of_share).max_by_key(named)?;
        Some(MissGap {
            start: gap.start,
            length: gap.end.since(gap.start).to_nanos(rate),
            cause: if whoever { Cause::Throttled } else { piece.cause.clone() },
            kind: gap.kind,
        })
    }
}

/// A thread that whoever runs before all ordinary ones does not wait for.
fn is_lower(cause: &Cause) -> bool {
    use PriorityClass::{Idle, Ordinary};
    matches!(
        cause,
        Cause::Thread { class: Ordinary | Idle, .. } | Cause::Member { class: Ordinary | Idle, .. }
    )
}

/// A length in nanoseconds.
pub(super) fn nanos(ticks: u64, rate: Hertz) -> Nanos {
    TicksDelta(ticks).to_nanos(rate)
}

#[cfg(test)]
mod tests;
