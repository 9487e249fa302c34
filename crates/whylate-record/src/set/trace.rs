//! The execution trace of a set: the blocks between the gaps of each thread.

use whylate_model::execution::Block;
use whylate_model::gap::Gap;
use whylate_model::{CpuId, Nanos, Ticks};

/// Blocks and latencies, up to a number of records in all; what comes after is counted.
pub(super) struct Execution {
    zero: Ticks,
    room: u64,
    seen: u64,
    overflow: u64,
    full_at: Option<Ticks>,
    open: Vec<Option<Open>>,
    counts: Vec<u64>,
    traced: Vec<bool>,
    blocks: Vec<Block>,
    latencies: Vec<(u16, Ticks, Nanos)>,
    /// Records since the last turn, thread by thread.
    fresh: Vec<Record>,
}

/// A record of the trace.
#[derive(Debug, Clone, Copy)]
enum Record {
    Block(Block),
    Latency(u16, Ticks, Nanos),
}

impl Record {
    /// When it was known.
    fn at(&self) -> Ticks {
        match self {
            Self::Block(block) => block.end,
            Self::Latency(_, at, _) => *at,
        }
    }
}

/// The block that a thread is in.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: Ticks,
    cpu: CpuId,
}

impl Execution {
    /// A trace of threads, of which some may have no part in it.
    pub(super) fn of(traced: &[bool], records: u64) -> Self {
        Self {
            zero: Ticks(0),
            room: records,
            seen: 0,
            overflow: 0,
            full_at: None,
            open: vec![None; traced.len()],
            counts: vec![0; traced.len()],
            traced: traced.to_vec(),
            blocks: Vec::new(),
            latencies: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// The set begins; what its threads did before is not part of it.
    pub(super) fn begins_at(&mut self, zero: Ticks) {
        self.zero = zero;
    }

    /// Thread `thread` made its first reading.
    pub(super) fn begin(&mut self, thread: usize, start: Ticks, cpu: CpuId) {
        if start.0 != 0 && self.open[thread].is_none() {
            self.open[thread] = Some(Open { start, cpu });
        }
    }

    /// Takes the next gap of a thread: it ends one block and begins another.
    pub(super) fn gap(&mut self, thread: usize, gap: &Gap) {
        if let Some(Open { start, cpu }) = self.open[thread] {
            self.block(Block { thread: thread as u16, cpu, start, end: gap.start });
        }
        self.open[thread] = Some(Open { start: gap.end, cpu: gap.cpu_after });
    }

    /// Thread `thread` made its last reading.
    pub(super) fn end(&mut self, thread: usize, end: Ticks) {
        if let Some(Open { start, cpu }) = self.open[thread].take() {
            self.block(Block { thread: thread as u16, cpu, start, end });
        }
    }

    /// A thread that measures its latency woke.
    pub(super) fn latency(&mut self, thread: usize, at: Ticks, late: Nanos) {
        self.fresh.push(Record::Latency(thread as u16, at, late));
    }

    /// Blocks that have ended since the last call, whether there is room for them or not. Room is
    /// given in the order of time, not in that of the threads.
    pub(super) fn take_fresh(&mut self) -> Vec<Block> {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.sort_by_key(Record::at);
        for record in &fresh {
            if !self.takes_one() {
                let at = record.at();
                self.full_at = Some(self.full_at.map_or(at, |known| known.min(at)));
                continue;
            }
            match *record {
                Record::Block(block) => self.blocks.push(block),
                Record::Latency(thread, at, late) => self.latencies.push((thread, at, late)),
            }
        }
        let blocks = fresh.into_iter().filter_map(|record| match record {
            Record::Block(block) => Some(block),
            Record::Latency(..) => None,
        });
        blocks.collect()
    }

    /// Blocks of a thread.
    pub(super) fn count(&self, thread: usize) -> u64 {
        self.counts[thread]
    }

    /// Blocks of all threads.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// Records that found no room.
    pub(super) fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Every block that ended before this found room; none where all did.
    pub(super) fn full_at(&self) -> Option<Ticks> {
        self.full_at
    }

    /// Blocks and latencies in the order of time.
    pub(super) fn in_order(&self) -> (Vec<Block>, Vec<(u16, Ticks, Nanos)>) {
        let (mut blocks, mut latencies) = (self.blocks.clone(), self.latencies.clone());
        blocks.sort_by_key(|block| (block.start, block.thread));
        latencies.sort_by_key(|(thread, at, _)| (*at, *thread));
        (blocks, latencies)
    }

    /// Blocks and latencies in the order of time, and how many found no room.
    pub(super) fn finish(mut self) -> (Vec<Block>, Vec<(u16, Ticks, Nanos)>, u64) {
        self.blocks.sort_by_key(|block| (block.start, block.thread));
        self.latencies.sort_by_key(|(thread, at, _)| (*at, *thread));
        (self.blocks, self.latencies, self.overflow)
    }

    /// A dispatch that follows a wait leaves no block between the two.
    fn block(&mut self, mut block: Block) {
        block.start = block.start.max(self.zero);
        if block.end <= block.start || !self.traced[block.thread as usize] {
            return;
        }
        self.seen += 1;
        self.counts[block.thread as usize] += 1;
        self.fresh.push(Record::Block(block));
    }

    fn takes_one(&mut self) -> bool {
        let room = self.room > 0;
        self.room -= u64::from(room);
        self.overflow += u64::from(!room);
        room
    }
}

#[cfg(test)]
mod tests {
    use whylate_model::gap::{Evidence, GapKind};

    use super::*;

    fn gap(start: u64, end: u64, kind: GapKind) -> Gap {
        let (start, end) = (Ticks(start), Ticks(end));
        let (cpu_before, cpu_after) = (CpuId(1), CpuId(2));
        let evidence = Evidence::default();
        Gap { start, end, resumed: end, cpu_before, cpu_after, kind, evidence }
    }

    fn traced(records: u64) -> (Vec<Block>, u64) {
        let mut execution = Execution::of(&[true], records);
        execution.begin(0, Ticks(10), CpuId(1));
        execution.gap(0, &gap(20, 30, GapKind::Interruption));
        execution.gap(0, &gap(50, 70, GapKind::Sleep));
        execution.gap(0, &gap(70, 75, GapKind::Dispatch));
        execution.end(0, Ticks(90));
        execution.take_fresh();
        let (blocks, _, overflow) = execution.finish();
        (blocks, overflow)
    }

    #[test]
    fn blocks_are_what_lies_between_gaps_and_a_late_wake_up_makes_none() {
        let (blocks, overflow) = traced(100);
        let spans: Vec<_> = blocks.iter().map(|b| (b.start.0, b.end.0, b.cpu.0)).collect();
        assert_eq!(spans, [(10, 20, 1), (30, 50, 2), (75, 90, 2)]);
        assert_eq!(overflow, 0);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (blocks, overflow) = traced(2);
        assert_eq!((blocks.len(), overflow), (2, 1));
    }

    #[test]
    fn room_is_given_in_the_order_of_time_and_not_in_that_of_the_threads() {
        let mut execution = Execution::of(&[true, true], 2);
        for thread in [0, 1] {
            execution.begin(thread, Ticks(10), CpuId(1));
            for turn in 0..2 {
                let start = 20 + 40 * turn + 20 * thread as u64;
                execution.gap(thread, &gap(start, start + 5, GapKind::Interruption));
            }
        }
        assert_eq!(execution.take_fresh().len(), 4);
        assert_eq!(execution.full_at(), Some(Ticks(60)));
        let (blocks, _, overflow) = execution.finish();
        let kept: Vec<_> = blocks.iter().map(|block| (block.thread, block.end.0)).collect();
        assert_eq!((kept, overflow), (vec![(0, 20), (1, 40)], 2));
    }
}
