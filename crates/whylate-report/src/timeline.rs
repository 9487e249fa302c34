//! Lost time by measuring thread, bin of time and cause, from one pass over single gaps.
//!
//! Memory is constant, however many gaps there are: bins double their width when time goes on, causes
//! beyond the first few are added up, and of single gaps only the longest are kept. Nothing is left
//! out of the sums without a count. A gap counts whole for the cause it is named after. Time
//! counts from the start of the measurement.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use whylate_model::cause::CauseTotal;
use whylate_model::run::{GapSummary, Run};
use whylate_model::segments::{BriefGap, BriefGaps};
use whylate_model::{CpuId, Hertz, Ticks};

use crate::execution::recorded::beginning;

mod shown_names;
#[cfg(test)]
pub(crate) mod tests;

use shown_names::ShownNames;

/// Bins of each lane: four for each pixel of a wide screen. Even, so that they pair up.
pub const BINS: usize = 4096;
/// Lanes: a picture of more is no picture. Those with the most lost time are kept.
pub const MOST_LANES: usize = 32;
/// Causes with a colour of their own.
pub const NAMED: usize = crate::svg::COLOURS;
/// Slot of all other causes.
pub const OTHERS: usize = NAMED;
/// Slot of gaps that nobody looked at.
pub const NOT_ATTRIBUTED: usize = NAMED + 1;
/// Slots of a bin.
pub const SLOTS: usize = NAMED + 2;
/// Single gaps kept: 2000 take some 50 kB of a page.
pub const MOST_SINGLE: usize = 2_000;
/// On which CPU a gap of a name was, and the slot that it had.
type Known = Option<(CpuId, usize)>;
/// Width of a bin where the length of the run is not known, in ticks.
const FIRST_WIDTH: u64 = 1 << 10;

/// Lost time over time.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Names of the causes by slot; those beyond the named ones are fixed.
    pub names: Vec<String>,
    /// One for each measuring thread shown.
    pub lanes: Vec<Lane>,
    /// The longest gaps one by one, by their start.
    pub longest: Vec<Single>,
    /// Gaps of at least this length are all in `longest`; zero when all gaps are.
    pub complete_from_ns: f64,
    /// Gaps taken in.
    pub gaps: u64,
    /// Gaps of lanes that are not shown, or outside the run.
    pub left_out: u64,
    start: Start,
    /// From the start to the end, in ticks.
    length: u64,
    /// Ticks of a bin.
    width: u64,
    bins: usize,
    ns_per_tick: f64,
}

/// What the time of a lane counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The first thread's start: all measured at the same time.
    OfAll,
    /// Its own thread's start: they measured one after another.
    OfEach,
}

/// One measuring thread.
#[derive(Debug, Clone)]
pub struct Lane {
    /// Index of the thread, as in `gaps` of `run.json`.
    pub thread: u16,
    /// For people.
    pub label: String,
    /// Lost time of each bin and slot, ns.
    pub cells: Vec<[f64; SLOTS]>,
    start: Ticks,
    /// End of its last gap after that.
    last: u64,
}

/// One gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Single {
    /// Index into [`Timeline::lanes`].
    pub lane: usize,
    /// Since the start of the measurement.
    pub start_ns: f64,
    /// How long.
    pub length_ns: f64,
    /// Slot of its cause.
    pub slot: usize,
}

/// Takes in gaps one by one.
#[derive(Debug)]
pub struct Builder {
    timeline: Timeline,
    lanes: HashMap<u16, Option<usize>>,
    /// The thread of the gap before, and its lane: the next is nearly always of the same.
    recent: Option<(u16, Option<usize>)>,
    single: BinaryHeap<Reverse<(u64, u64, usize, usize)>>,
    overflowed: bool,
    /// Where lanes of threads that the run does not list start.
    first: Ticks,
    /// May threads and causes that the run does not list have lanes and slots?
    open: bool,
    /// What causes are called.
    shown: ShownNames,
    /// Is it a set of threads? Its threads may have waited for the CPU since before it began.
    set: bool,
}

impl Builder {
    /// A timeline for the threads and causes of a run.
    #[must_use]
    pub fn new(run: &Run, start: Start) -> Self {
        let first = start_of(run);
        let begin = |gaps: &GapSummary| if start == Start::OfEach { gaps.start } else { first };
        let length =
            run.gaps.iter().map(|gaps| gaps.end.since(begin(gaps)).0).max().unwrap_or_default();
        let width = match length {
            0 => FIRST_WIDTH,
            length => length / BINS as u64 + 1,
        };
        let mut builder = Self {
            timeline: Timeline {
                names: named(&run.causes),
                lanes: Vec::new(),
                longest: Vec::new(),
                complete_from_ns: 0.0,
                gaps: 0,
                left_out: 0,
                start,
                length,
                width,
                bins: 0,
                ns_per_tick: ns_per_tick(run.clock.hz),
            },
            lanes: HashMap::new(),
            recent: None,
            single: BinaryHeap::new(),
            overflowed: false,
            first,
            shown: ShownNames::of(run),
            open: run.gaps.is_empty() && run.threads.is_empty(),
            set: run.gaps.is_empty() && !run.threads.is_empty(),
        };
        for thread in threads_of(run) {
            let gaps = &run.gaps[usize::from(thread)];
            builder.add_lane(thread, run.thread_name(gaps), begin(gaps));
        }
        // Gaps of a set are numbered as its threads are.
        for (thread, of_set) in run.threads.iter().enumerate().take(MOST_LANES) {
            if let (true, Ok(thread)) = (builder.set, u16::try_from(thread)) {
                builder.add_lane(thread, of_set.name.clone(), first);
            }
        }
        builder
    }

    /// Gives the first colours to the causes with most lost time of these; to be called first.
    pub fn name<'a>(&mut self, causes: impl IntoIterator<Item = &'a CauseTotal>) {
        self.timeline.names = named(causes);
    }

    /// Adds the gaps of a segment.
    pub fn add(&mut self, of: &BriefGaps) {
        // Which slot each name had last, and of a gap on which CPU.
        let mut slots = vec![None; of.causes.len()];
        let names = self.shown.of_table(&of.causes);
        for gap in &of.gaps {
            self.add_one(*gap, &names, &mut slots);
        }
    }

    fn add_one(&mut self, mut gap: BriefGap, names: &[Arc<str>], slots: &mut [Known]) {
        let lane = self.lane(gap.thread);
        if let (true, Some(lane)) = (self.set, lane) {
            gap.start = gap.start.max(self.timeline.lanes[lane].start);
        }
        let inside =
            |lane: &usize| gap.start >= self.timeline.lanes[*lane].start && gap.end > gap.start;
        let Some(lane) = lane.filter(inside) else {
            self.timeline.left_out += 1;
            return;
        };
        let slot = match gap.cause.map(|cause| cause as usize) {
            None => NOT_ATTRIBUTED,
            Some(cause) => match slots[cause] {
                Some((cpu, slot)) if cpu == gap.cpu => slot,
                _ => {
                    let slot = self.slot(&names[cause], gap.cpu);
                    slots[cause] = Some((gap.cpu, slot));
                    slot
                }
            },
        };
        self.timeline.gaps += 1;
        let offset = gap.start.since(self.timeline.lanes[lane].start).0;
        let length = gap.end.since(gap.start).0;
        let stop = offset + length;
        self.timeline.length = self.timeline.length.max(stop);
        self.spread(lane, slot, offset, stop);
        let candidate = Reverse((length, offset, lane, slot));
        if self.single.len() < MOST_SINGLE {
            self.single.push(candidate);
        } else {
            self.overflowed = true;
            if let Some(mut least) = self.single.peek_mut()
                && candidate < *least
            {
                *least = candidate;
            }
        }
    }

    /// The timeline.
    #[must_use]
    pub fn finish(mut self) -> Timeline {
        let mut timeline = self.timeline;
        let per_tick = timeline.ns_per_tick;
        if let (true, Some(Reverse(least))) = (self.overflowed, self.single.peek()) {
            timeline.complete_from_ns = least.0 as f64 * per_tick;
        }
        timeline.longest = self
            .single
            .drain()
            .map(|Reverse((length, start, lane, slot))| Single {
                lane,
                start_ns: start as f64 * per_tick,
                length_ns: length as f64 * per_tick,
                slot,
            })
            .collect();
        timeline.longest.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
        timeline.bins = (timeline.length.div_ceil(timeline.width) as usize).clamp(1, BINS);
        for lane in &mut timeline.lanes {
            lane.cells.truncate(timeline.bins);
        }
        timeline.names.resize(NAMED, String::new());
        timeline.names.push("other causes".to_owned());
        timeline.names.push("not attributed".to_owned());
        timeline
    }

    fn add_lane(&mut self, thread: u16, label: String, start: Ticks) {
        let lanes = &mut self.timeline.lanes;
        let place = (lanes.len() < MOST_LANES).then_some(lanes.len());
        if place.is_some() {
            let cells = vec![[0.0; SLOTS]; BINS];
            lanes.push(Lane { thread, label, cells, start, last: 0 });
        }
        self.lanes.insert(thread, place);
        self.recent = None;
    }

    fn lane(&mut self, thread: u16) -> Option<usize> {
        if self.open
            && self.recent.is_none_or(|(recent, _)| recent != thread)
            && !self.lanes.contains_key(&thread)
        {
            self.add_lane(thread, format!("thread {thread}"), self.first);
        }
        if let Some((_, lane)) = self.recent.filter(|(recent, _)| *recent == thread) {
            return lane;
        }
        let lane = self.lanes.get(&thread).copied().flatten();
        self.recent = Some((thread, lane));
        lane
    }

    fn slot(&mut self, name: &str, cpu: CpuId) -> usize {
        let cause = self.shown.on(name, cpu);
        // A handful of names: to look through them is quicker than to hash one.
        let names = &mut self.timeline.names;
        if let Some(slot) = names.iter().position(|name| name == cause) {
            return slot;
        }
        if names.len() >= NAMED {
            return OTHERS;
        }
        names.push(cause.to_owned());
        names.len() - 1
    }

    /// Adds the time from `start` to `stop` after the start of the lane to the bins it lies in.
    fn spread(&mut self, lane: usize, slot: usize, start: u64, mut stop: u64) {
        while (stop - 1) / self.timeline.width >= BINS as u64 {
            self.merge_neighbours();
        }
        let (width, per_tick) = (self.timeline.width, self.timeline.ns_per_tick);
        let lane = &mut self.timeline.lanes[lane];
        // Gaps of a thread do not overlap. Where a damaged file says so, its gaps must not cost more
        // than others: they count where they begin.
        let disjoint = start >= lane.last;
        lane.last = lane.last.max(stop);
        if !disjoint {
            stop = start + 1;
        }
        let mut at = start;
        while at < stop {
            let bin = at / width;
            let next = bin.saturating_add(1).saturating_mul(width).min(stop);
            lane.cells[bin as usize][slot] += (next - at) as f64 * per_tick;
            at = next;
        }
    }

    fn merge_neighbours(&mut self) {
        self.timeline.width = self.timeline.width.saturating_mul(2);
        for lane in &mut self.timeline.lanes {
            for bin in 0..BINS / 2 {
                let (left, right) = (lane.cells[2 * bin], lane.cells[2 * bin + 1]);
                lane.cells[bin] = std::array::from_fn(|slot| left[slot] + right[slot]);
            }
            lane.cells[BINS / 2..].fill([0.0; SLOTS]);
        }
    }
}

impl Timeline {
    /// From the start of the measurement to its end, ns.
    #[must_use]
    pub fn length_ns(&self) -> f64 {
        self.length.max(1) as f64 * self.ns_per_tick
    }

    /// What the time counts from, for an axis.
    #[must_use]
    pub fn time_label(&self) -> &'static str {
        match self.start {
            Start::OfAll => "time since the start of the measurement",
            Start::OfEach => "time since the start of each measurement",
        }
    }

    /// Width of a bin, ns.
    #[must_use]
    pub fn bin_ns(&self) -> f64 {
        self.width as f64 * self.ns_per_tick
    }

    /// Bins of each lane.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Cells with time in them.
    #[must_use]
    pub fn cells(&self) -> usize {
        let of = |lane: &Lane| lane.cells.iter().flatten().filter(|ns| **ns > 0.0).count();
        self.lanes.iter().map(of).sum()
    }

    /// The same with bins twice as wide as often as it takes for at most so many.
    #[must_use]
    pub fn coarsened(&self, most_bins: usize) -> Self {
        let mut coarse = self.clone();
        while coarse.bins > most_bins.max(1) {
            for lane in &mut coarse.lanes {
                let pairs = lane.cells.chunks(2).map(|pair| match pair {
                    [left, right] => std::array::from_fn(|slot| left[slot] + right[slot]),
                    [only, ..] => *only,
                    [] => [0.0; SLOTS],
                });
                lane.cells = pairs.collect();
            }
            coarse.bins = coarse.bins.div_ceil(2);
            coarse.width = coarse.width.saturating_mul(2);
        }
        coarse
    }

    /// The slot of a cause by its name.
    #[must_use]
    pub fn slot_of(&self, name: &str) -> Option<usize> {
        self.names[..NAMED].iter().position(|known| known == name && !name.is_empty())
    }

    /// The largest share of a bin that one lane lost.
    #[must_use]
    pub fn largest_share(&self) -> f64 {
        let sums = self.lanes.iter().flat_map(|lane| &lane.cells).map(|c| c.iter().sum::<f64>());
        (sums.fold(0.0, f64::max) / self.bin_ns()).min(1.0)
    }
}

/// The causes with most lost time, over all CPUs.
fn named<'a>(causes: impl IntoIterator<Item = &'a CauseTotal>) -> Vec<String> {
    let mut sums: HashMap<String, f64> = HashMap::new();
    for total in causes.into_iter().filter(|total| total.cpu.is_none()) {
        *sums.entry(total.cause.to_string()).or_default() += total.lost_ns;
    }
    let mut sums: Vec<(String, f64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums.truncate(NAMED);
    sums.into_iter().map(|(name, _)| name).collect()
}

/// What the times of a report count from: the first measuring thread's start.
pub(crate) fn start_of(run: &Run) -> Ticks {
    let of_set = (!run.threads.is_empty()).then(|| beginning(run));
    let starts = run.gaps.iter().map(|gaps| gaps.start).chain(of_set);
    let segments = run.segments.iter().map(|segment| segment.from);
    starts.min().or(segments.min()).unwrap_or(run.clock.epoch)
}

/// The threads of a run that lost most, in the run's order.
fn threads_of(run: &Run) -> Vec<u16> {
    let mut threads: Vec<(usize, f64)> =
        run.gaps.iter().map(|gaps| gaps.lost_share).enumerate().collect();
    threads.sort_by(|a, b| b.1.total_cmp(&a.1));
    threads.truncate(MOST_LANES);
    threads.sort_by_key(|(thread, _)| *thread);
    threads.into_iter().filter_map(|(thread, _)| u16::try_from(thread).ok()).collect()
}

fn ns_per_tick(hz: Hertz) -> f64 {
    if hz.0.is_finite() && hz.0 > 0.0 { 1e9 / hz.0 } else { 1.0 }
}
