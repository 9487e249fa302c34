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
        for gap in &of.gaps {
            self.add_one(*gap, &of.causes, &mut slots);
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

    fn slot(&mut self, stored: &str, cpu: CpuId) -> usize {
        let cause = self.shown.of_stored(stored, cpu);
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

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use whylate_model::cause::Cause;
    use whylate_model::directory::parse_run;
    use whylate_model::gap::{Evidence, Gap, GapKind};
    use whylate_model::run::CpuSteal;
    use whylate_model::segments::StoredGap;

    use super::*;

    /// A recorded run, to be changed.
    pub(crate) fn recorded() -> Run {
        let json = include_bytes!("../../../tests/runs/gaps/run.json");
        parse_run(Path::new("run.json"), json).unwrap()
    }

    /// A run of one thread from tick 1000 on for a million ticks of a nanosecond, without a gap.
    pub(crate) fn quiet() -> Run {
        let mut run = recorded();
        run.clock.hz = Hertz(1e9);
        run.clock.epoch = Ticks(0);
        run.gaps[0].start = Ticks(1_000);
        run.gaps[0].end = Ticks(1_001_000);
        run.causes.clear();
        run.worst.clear();
        run
    }

    pub(crate) fn gap(start: u64, length: u64, cause: Option<&str>) -> StoredGap {
        let gap = Gap {
            start: Ticks(start),
            end: Ticks(start.saturating_add(length)),
            resumed: Ticks(start.saturating_add(length)),
            cpu_before: CpuId(1),
            cpu_after: CpuId(1),
            kind: GapKind::Interruption,
            evidence: Evidence::default(),
        };
        StoredGap { thread: 0, gap, cause: cause.map(Arc::from) }
    }

    pub(crate) fn add(builder: &mut Builder, stored: &StoredGap) {
        let StoredGap { thread, gap, cause } = stored;
        let brief = BriefGap {
            thread: *thread,
            start: gap.start,
            end: gap.end,
            cpu: gap.cpu_before,
            cause: cause.is_some().then_some(0),
        };
        builder.add(&BriefGaps { causes: cause.iter().cloned().collect(), gaps: vec![brief] });
    }

    fn sum(timeline: &Timeline, slot: usize) -> f64 {
        timeline.lanes.iter().flat_map(|lane| &lane.cells).map(|cell| cell[slot]).sum()
    }

    #[test]
    fn time_lies_in_the_bins_it_was_lost_in_and_under_its_cause() {
        let mut builder = Builder::new(&quiet(), Start::OfAll);
        // 245 ticks a bin: this one covers the end of the first, all of the second, half the third.
        add(&mut builder, &gap(1_200, 400, Some("host")));
        add(&mut builder, &gap(900_000, 50, None));
        let timeline = builder.finish();
        let cells = &timeline.lanes[0].cells;
        let host = timeline.slot_of("no kernel event").unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(timeline.bin_ns(), 245.0), "{}", timeline.bin_ns());
        assert!(near(cells[0][host], 45.0) && near(cells[1][host], 245.0));
        assert!(near(cells[2][host], 110.0) && near(sum(&timeline, NOT_ATTRIBUTED), 50.0));
        assert_eq!(timeline.longest.len(), 2);
        assert!(near(timeline.longest[0].start_ns, 200.0) && timeline.complete_from_ns == 0.0);
    }

    #[test]
    fn the_timeline_names_time_without_an_event_as_the_table_of_its_cpu_does() {
        let mut run = recorded();
        let total = run.causes[0].clone();
        let without = |cpu: Option<u32>, lost_ns| CauseTotal {
            cause: Cause::Host,
            cpu: cpu.map(CpuId),
            lost_ns,
            ..total.clone()
        };
        run.causes = vec![without(None, 200.0), without(Some(1), 100.0), without(Some(2), 100.0)];
        let stolen = |cpu, steal_ns| CpuSteal { cpu: CpuId(cpu), steal_ns };
        run.evidence.steal_by_cpu = vec![stolen(1, 60.0), stolen(2, 0.0)];
        run.clock.hz = Hertz(1e9);
        run.gaps[0].start = Ticks(1_000);
        run.gaps[0].end = Ticks(1_001_000);
        let mut builder = Builder::new(&run.as_shown(), Start::OfAll);
        add(&mut builder, &gap(1_200, 30, Some("host")));
        let mut other = gap(1_300, 7, Some("host"));
        other.gap.cpu_before = CpuId(2);
        add(&mut builder, &other);
        let timeline = builder.finish();
        let taken = |name| sum(&timeline, timeline.slot_of(name).unwrap());
        assert!((taken("hypervisor") - 30.0).abs() < 1e-6);
        assert!((taken("no kernel event") - 7.0).abs() < 1e-6);
    }

    #[test]
    fn a_run_without_its_summary_grows_its_bins_and_names_its_threads() {
        let mut run = quiet();
        run.gaps.clear();
        run.segments.clear();
        let mut builder = Builder::new(&run, Start::OfAll);
        for n in 0..20_000_u64 {
            add(&mut builder, &gap(n * 1_000_000, 1_000, Some("host")));
        }
        let timeline = builder.finish();
        assert_eq!((timeline.lanes.len(), timeline.gaps), (1, 20_000));
        assert_eq!(timeline.lanes[0].label, "thread 0");
        assert!((sum(&timeline, 0) - 2e7).abs() < 1.0);
        assert!(timeline.bins() <= BINS && timeline.bins() > BINS / 4);
    }

    #[test]
    fn time_counts_from_the_start_of_the_measurement_or_of_each_thread() {
        let mut run = quiet();
        run.gaps.push(GapSummary {
            start: Ticks(501_000),
            end: Ticks(1_501_000),
            ..run.gaps[0].clone()
        });
        for (start, wanted, length) in
            [(Start::OfAll, 600_000.0, 1_500_000.0), (Start::OfEach, 100_000.0, 1_000_000.0)]
        {
            let mut builder = Builder::new(&run, start);
            add(&mut builder, &StoredGap { thread: 1, ..gap(601_000, 50, None) });
            let timeline = builder.finish();
            assert!((timeline.longest[0].start_ns - wanted).abs() < 1e-6, "{timeline:?}");
            assert!((timeline.length_ns() - length).abs() < 1e-6);
        }
    }

    #[test]
    fn more_causes_than_colours_are_added_up() {
        let mut builder = Builder::new(&quiet(), Start::OfAll);
        for n in 0..100_u64 {
            add(&mut builder, &gap(2_000 + n * 100, 10, Some(&format!("thread {n}"))));
        }
        let timeline = builder.finish();
        assert_eq!(timeline.names.len(), SLOTS);
        assert!((sum(&timeline, OTHERS) - 10.0 * (100 - NAMED) as f64).abs() < 1e-6);
    }

    #[test]
    fn only_the_longest_gaps_are_kept_one_by_one() {
        let mut run = quiet();
        run.gaps[0].end = Ticks(1_000_000_000);
        let mut builder = Builder::new(&run, Start::OfAll);
        for n in 0..30_000_u64 {
            add(&mut builder, &gap(2_000 + n * 10_000, 1 + n % 5_000, None));
        }
        let timeline = builder.finish();
        assert_eq!(timeline.longest.len(), MOST_SINGLE);
        let shortest = timeline.longest.iter().map(|g| g.length_ns).fold(f64::MAX, f64::min);
        assert!((shortest - timeline.complete_from_ns).abs() < 1e-9);
        let as_long = (0..30_000_u64).filter(|n| (1 + n % 5_000) as f64 > shortest).count();
        assert!(as_long <= MOST_SINGLE, "{as_long} are longer than the shortest kept");
    }

    #[test]
    fn coarser_bins_hold_the_same_time() {
        let mut builder = Builder::new(&quiet(), Start::OfAll);
        for n in 0..900_u64 {
            add(&mut builder, &gap(2_000 + n * 1_000, n, Some("host")));
        }
        let fine = builder.finish();
        let coarse = fine.coarsened(100);
        assert!(coarse.bins() <= 100 && coarse.cells() < fine.cells());
        assert!((sum(&fine, 0) - sum(&coarse, 0)).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_whatever_a_damaged_file_holds(
            gaps in prop::collection::vec((any::<u64>(), any::<u64>(), 0u16..3), 0..60)
        ) {
            let run = quiet();
            let mut builder = Builder::new(&run, Start::OfAll);
            for (start, length, thread) in &gaps {
                add(&mut builder, &StoredGap { thread: *thread, ..gap(*start, *length, Some("x")) });
            }
            let timeline = builder.finish();
            prop_assert_eq!(timeline.gaps + timeline.left_out, gaps.len() as u64);
            prop_assert!(timeline.lanes[0].cells.len() <= BINS);
            prop_assert!(timeline.largest_share() <= 1.0);
        }
    }
}
