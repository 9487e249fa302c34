//! The gap loop and its recording path.
//!
//! The loops never allocate, lock, log, format or make a system call; the one exception is stated:
//! after a gap in which the kernel cleared the rseq word, the recording path asks getrusage how
//! often the thread was switched out. Recording is timed, is a class of its own, and is never
//! part of a gap.
//!
//! The inner loop of [`chain`] on x86-64, as `cargo xtask asm chain` prints it: eleven instructions,
//! one branch that is not taken, and no access to memory. It takes as long as the `rdtsc` in it.
//!
//! ```text
//! again: rdtsc
//!        shl   rdx, 32
//!        or    rdx, rax           ; now
//!        mov   rax, rdx
//!        sub   rax, r8            ; now - previous
//!        cmp   rax, r13           ; threshold
//!        jg    gap
//!        inc   rbp
//!        mov   r8, rdx            ; previous = now
//!        cmp   rbp, 4097
//!        jne   again
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use whylate_clock::Counter;
use whylate_model::gap::{Evidence, Gap, GapKind, RseqWord};
use whylate_model::{CpuId, Ticks, TicksDelta};
use whylate_sys::rseq::RseqArea;
use whylate_sys::switches;

use crate::blocks::Blocks;
use crate::ring::Producer;
use crate::table::{Direct, LogLinear};
use crate::workload::Workload;

/// Gaps found in a row inside one recording before the rest is called recording after all: a
/// calibrated cost that is too low must not keep the thread here for ever.
const RECORDINGS_IN_A_ROW: u32 = 16;

/// Counters of one measuring thread, written by it alone, readable by all.
#[derive(Debug, Default)]
pub struct Live {
    /// First reading of the loop, or the begin of the measurement where a gap lasted beyond that; zero before.
    pub start: AtomicU64,
    /// Latest reading at the end of a block.
    pub now: AtomicU64,
    /// Iterations in completed blocks.
    pub iterations: AtomicU64,
    /// Gaps seen.
    pub gaps: AtomicU64,
    /// Gaps seen but not kept one by one.
    pub dropped: AtomicU64,
    /// Ticks in gaps.
    pub gap_ticks: AtomicU64,
    /// Of these, ticks in which the thread waited of its own accord.
    pub wait_ticks: AtomicU64,
    /// Ticks recording them, and between them where they came before the first reading.
    pub recording_ticks: AtomicU64,
    /// Gaps with a change of CPU.
    pub migrations: AtomicU64,
    /// Below-threshold ticks inside pairs; `chain` leaves it at zero.
    pub inside_ticks: AtomicU64,
    /// End of the first gap above the stop limit; zero while there was none.
    pub tripped: AtomicU64,
}

#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

/// Fixed limits of a measurement, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A delta above this is a gap.
    pub threshold: TicksDelta,
    /// Calibrated cost of recording without getrusage.
    pub recording: TicksDelta,
    /// Calibrated cost of recording with it.
    pub recording_with_switches: TicksDelta,
    /// A gap longer than this stops the measurement.
    pub stop_at: TicksDelta,
    /// The measurement begins here, of a loop that runs before that already; zero of one that begins as it may.
    pub begin: Ticks,
    /// It ends at the first block after this reading.
    pub end: Ticks,
}

/// A wait that has ended, in readings of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// What kind of wait.
    pub kind: GapKind,
    /// Where it began.
    pub start: Ticks,
    /// The instant waited for.
    pub due: Ticks,
    /// When its timer was to fire, where that is later by design.
    pub fires: Ticks,
    /// First reading of the running thread.
    pub wake: Ticks,
}

/// What one thread needs to record gaps.
pub struct Recorder<'a> {
    /// Where records go.
    pub ring: Producer,
    /// Where gaps go that find the ring full.
    pub overflow: &'a LogLinear,
    /// Counters.
    pub live: &'a Live,
    /// Set by anyone to end the measurement.
    pub stop: &'a AtomicBool,
    /// The rseq word, where its self-test passed.
    pub rseq: Option<RseqArea>,
    /// Limits.
    pub limits: Limits,
    /// Counters of the measurement while the loop runs towards it: a gap that lasts beyond its begin is counted
    /// there, from the begin on.
    ahead: Option<&'a Live>,
    cpu: CpuId,
    involuntary: u64,
}

impl<'a> Recorder<'a> {
    /// A recorder for the calling thread, which must be the one that measures.
    pub fn new(
        ring: Producer,
        overflow: &'a LogLinear,
        live: &'a Live,
        stop: &'a AtomicBool,
        rseq: Option<RseqArea>,
        limits: Limits,
    ) -> Self {
        let (ahead, cpu, involuntary) = (None, CpuId(0), 0);
        Self { ring, overflow, live, stop, rseq, limits, ahead, cpu, involuntary }
    }

    /// Takes the state that the next gap is compared with. Call right before a loop.
    pub fn arm<C: Counter>(&mut self, counter: &mut C) {
        self.cpu = counter.cpu();
        self.involuntary = switches::thread_switches().involuntary;
        if let Some(rseq) = &self.rseq {
            rseq.arm();
        }
    }

    /// Stores the gap from `start` to `end` and returns the reading after it was stored.
    ///
    /// A recording that is itself interrupted is cut where its calibrated cost ends; the rest is a
    /// gap of its own.
    #[cold]
    #[inline(never)]
    pub fn record<C: Counter>(&mut self, counter: &mut C, start: Ticks, end: Ticks) -> Ticks {
        self.record_as(GapKind::Interruption, counter, start, end)
    }

    /// As [`Recorder::record`], for a thread that may have waited of its own accord.
    pub fn record_as<C: Counter>(
        &mut self,
        kind: GapKind,
        counter: &mut C,
        start: Ticks,
        end: Ticks,
    ) -> Ticks {
        let mut gap = self.without_evidence(kind, start, end);
        for _ in 0..RECORDINGS_IN_A_ROW {
            gap.cpu_after = counter.cpu();
            self.take_evidence(&mut gap.evidence);
            let kept = self.ring.has_room();
            if kept {
                self.ring.store(&gap);
            } else {
                self.overflow.count(gap.length());
            }
            let resumed = counter.read();
            let cost = match gap.evidence.involuntary_switches {
                Some(_) => self.limits.recording_with_switches,
                None => self.limits.recording,
            };
            let interrupted = resumed.since(gap.end) > cost + self.limits.threshold;
            let cut = if interrupted { gap.end + cost } else { resumed };
            if kept {
                self.ring.publish(cut);
            }
            self.account(&gap, cut, kept);
            if !interrupted {
                return resumed;
            }
            gap.start = cut;
            gap.end = resumed;
            gap.kind = GapKind::Interruption;
            gap.evidence = Evidence { in_recording: true, ..Evidence::default() };
        }
        add(&self.live.recording_ticks, gap.length().0);
        gap.end
    }

    /// Stores a wait: the part up to its instant as a wait of its kind, from there to where its timer
    /// was to fire as a late timer, the rest as dispatch. A thread that waited busily was there all
    /// the time: what it did not notice within the threshold and the cost of a recording was its own
    /// look at the clock, and the rest an interruption. Returns the reading after it was stored.
    pub fn record_wait<C: Counter>(&mut self, counter: &mut C, wait: &Wait) -> Ticks {
        let Wait { kind, start, wake, .. } = *wait;
        let due = wait.due.max(start);
        let busy = kind == GapKind::Spin;
        let look = self.limits.threshold + self.limits.recording;
        if due >= wake || (busy && wake.since(due) <= look) {
            return self.record_as(kind, counter, start, wake);
        }
        self.record_part(kind, start, due);
        let fires = wait.fires.max(due).min(wake);
        self.record_part(GapKind::LateTimer, due, fires);
        let rest = if busy { GapKind::Interruption } else { GapKind::Dispatch };
        self.record_as(rest, counter, fires, wake)
    }

    /// A gap on this CPU of which nothing else is known yet.
    #[inline]
    fn without_evidence(&self, kind: GapKind, start: Ticks, end: Ticks) -> Gap {
        Gap {
            start,
            end,
            resumed: end,
            cpu_before: self.cpu,
            cpu_after: self.cpu,
            kind,
            evidence: Evidence::default(),
        }
    }

    /// Stores a part of a wait: the evidence is taken with its last part.
    fn record_part(&mut self, kind: GapKind, start: Ticks, end: Ticks) {
        if end <= start {
            return;
        }
        let gap = self.without_evidence(kind, start, end);
        self.keep(&gap);
    }

    /// Stores a gap behind which the thread goes on at once.
    fn keep(&mut self, gap: &Gap) {
        let kept = self.ring.has_room();
        if kept {
            self.ring.store(gap);
            self.ring.publish(gap.end);
        }
        self.account(gap, gap.end, kept);
    }

    /// Ticks that the thread did not have so far, waits included.
    #[must_use]
    #[inline]
    pub fn not_had(&self) -> TicksDelta {
        TicksDelta(self.live.gap_ticks.load(Ordering::Relaxed))
    }

    /// Of these, ticks that it waited of its own accord.
    #[must_use]
    pub fn waited(&self) -> TicksDelta {
        TicksDelta(self.live.wait_ticks.load(Ordering::Relaxed))
    }

    #[inline]
    fn take_evidence(&mut self, evidence: &mut Evidence) {
        let word = match &self.rseq {
            Some(rseq) if rseq.is_set() => RseqWord::Set,
            Some(rseq) => {
                rseq.arm();
                RseqWord::Cleared
            }
            None => RseqWord::Unarmed,
        };
        evidence.rseq = word;
        if word != RseqWord::Set {
            let involuntary = switches::thread_switches().involuntary;
            evidence.involuntary_switches = Some((involuntary - self.involuntary) as u32);
            self.involuntary = involuntary;
        }
    }

    /// What follows runs until the measurement begins, which is counted in `measured`. Where the thread slept and gets
    /// its CPU only after that, what it did not have is a gap, in which it was switched out.
    pub fn settles<C: Counter>(&mut self, counter: &mut C, measured: &'a Live, begin: Ticks) {
        self.ahead = Some(measured);
        (self.limits.begin, self.limits.end) = (begin, begin);
        self.arm(counter);
        let now = counter.read();
        if now <= begin {
            return;
        }
        let mut gap = self.without_evidence(GapKind::Interruption, begin, now);
        gap.cpu_after = counter.cpu();
        let rseq = if self.rseq.is_some() { RseqWord::Cleared } else { RseqWord::Unarmed };
        gap.evidence = Evidence { rseq, involuntary_switches: Some(1), ..gap.evidence };
        self.keep(&gap);
    }

    /// What follows is the measurement that [`Recorder::settles`] ran towards.
    pub fn measures(&mut self, overflow: &'a LogLinear, end: Ticks) {
        if let Some(measured) = self.ahead.take() {
            self.live = measured;
        }
        self.overflow = overflow;
        self.limits.end = end;
    }

    #[inline]
    fn account(&mut self, gap: &Gap, recorded_until: Ticks, kept: bool) {
        let begin = self.limits.begin;
        let (live, length) = match self.ahead {
            Some(measured) if gap.end > begin => (measured, gap.end.since(gap.start.max(begin))),
            _ => (self.live, gap.length()),
        };
        add(&live.gaps, 1);
        add(&live.dropped, u64::from(!kept));
        add(&live.gap_ticks, length.0);
        if gap.kind.is_wait() {
            add(&live.wait_ticks, length.0);
        }
        add(&live.recording_ticks, recorded_until.since(gap.end).0);
        add(&live.migrations, u64::from(gap.migrated()));
        self.cpu = gap.cpu_after;
        let is_measured = self.ahead.is_none() || gap.end > begin;
        if is_measured && length > self.limits.stop_at && !gap.kind.is_wait() {
            if live.tripped.load(Ordering::Relaxed) == 0 {
                live.tripped.store(gap.end.0, Ordering::Relaxed);
            }
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// The first reading of a loop. Where gaps were counted before it, the measurement began where it was to; what is
    /// in no gap since then is time that the thread had, and no iteration of this loop.
    fn begins(&self, first: Ticks) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (mut start, begin, live) = (first, self.limits.begin, self.live);
        if begin.0 != 0 && of(&live.gaps) > 0 {
            start = begin;
            let had = first.since(begin).0.saturating_sub(of(&live.gap_ticks));
            live.recording_ticks.store(had, Ordering::Relaxed);
        }
        live.start.store(start.0, Ordering::Relaxed);
    }

    /// Counts iterations done up to `now`; true when the measurement is over.
    #[inline]
    #[must_use]
    pub fn block_done(&self, iterations: u64, now: Ticks) -> bool {
        add(&self.live.iterations, iterations);
        self.live.now.store(now.0, Ordering::Relaxed);
        now >= self.limits.end || self.stop.load(Ordering::Relaxed)
    }
}

/// Is the distance of two plain readings a gap?
///
/// They may be executed out of order: a later one can be a few ticks smaller. As signed numbers
/// such deltas are small and negative, and make no gap.
#[must_use]
#[inline(always)]
pub fn exceeds(now: Ticks, before: Ticks, threshold: TicksDelta) -> bool {
    now.0.wrapping_sub(before.0) as i64 > threshold.0 as i64
}

/// One reading per iteration (Listing 1.2 of the PAM paper, Figure 2 of Hourglass): nothing that
/// happens between the first and the last reading is missed.
#[inline(never)]
pub fn chain<C: Counter, W: Workload>(
    counter: &mut C,
    workload: &mut W,
    recorder: &mut Recorder,
    blocks: &Blocks,
) {
    chain_with(counter, workload, recorder, blocks, |_, _| {});
}

/// As [`chain`], and every delta is counted.
#[inline(never)]
pub fn chain_counting<C: Counter, W: Workload>(
    counter: &mut C,
    workload: &mut W,
    recorder: &mut Recorder,
    blocks: &Blocks,
    small: &Direct,
    large: &LogLinear,
) {
    chain_with(counter, workload, recorder, blocks, |now, previous| {
        let delta = now.since(previous);
        if !small.count(delta.0) {
            large.count(delta);
        }
    });
}

#[inline(always)]
fn chain_with<C: Counter, W: Workload>(
    counter: &mut C,
    workload: &mut W,
    recorder: &mut Recorder,
    blocks: &Blocks,
    mut count: impl FnMut(Ticks, Ticks),
) {
    recorder.arm(counter);
    let threshold = recorder.limits.threshold;
    let mut previous = counter.read();
    recorder.begins(previous);
    loop {
        let block_start = previous;
        let mut clean = true;
        for _ in 0..W::BLOCK {
            workload.work();
            let now = counter.read();
            count(now, previous);
            if exceeds(now, previous, threshold) {
                previous = recorder.record(counter, previous, now);
                clean = false;
            } else {
                previous = now;
            }
        }
        if clean {
            blocks.count(previous.since(block_start).0);
        }
        if recorder.block_done(W::BLOCK, previous) {
            return;
        }
    }
}

/// Two ordered readings back to back (Listing 1.1 of the PAM paper): what falls between two pairs
/// is missed, and how much time that is is counted.
#[inline(never)]
pub fn pair<C: Counter, W: Workload>(
    counter: &mut C,
    workload: &mut W,
    recorder: &mut Recorder,
    blocks: &Blocks,
) {
    pair_with(counter, workload, recorder, blocks, |_| {});
}

/// As [`pair`], and every delta is counted.
#[inline(never)]
pub fn pair_counting<C: Counter, W: Workload>(
    counter: &mut C,
    workload: &mut W,
    recorder: &mut Recorder,
    blocks: &Blocks,
    small: &Direct,
    large: &LogLinear,
) {
    pair_with(counter, workload, recorder, blocks, |delta| {
        if !small.count(delta.0) {
            large.count(delta);
        }
    });
}

#[inline(always)]
fn pair_with<C: Counter, W: Workload>(
    counter: &mut C,
    workload: &mut W,
    recorder: &mut Recorder,
    blocks: &Blocks,
    mut count: impl FnMut(TicksDelta),
) {
    recorder.arm(counter);
    let threshold = recorder.limits.threshold;
    let (first, _) = counter.read_ordered();
    recorder.begins(first);
    loop {
        let mut inside = 0;
        let mut clean = true;
        let mut last = first;
        for _ in 0..W::BLOCK {
            workload.work();
            let (before, _) = counter.read_ordered();
            let (after, _) = counter.read_ordered();
            let delta = after.since(before);
            count(delta);
            if delta > threshold {
                last = recorder.record(counter, before, after);
                clean = false;
            } else {
                inside += delta.0;
                last = after;
            }
        }
        if clean {
            blocks.count(inside);
        }
        add(&recorder.live.inside_ticks, inside);
        if recorder.block_done(W::BLOCK, last) {
            return;
        }
    }
}
