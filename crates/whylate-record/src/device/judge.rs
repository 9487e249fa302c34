//! From what was measured to what is told of a box: quantiles, bounds, the slope over size, what a
//! configuration buys. A pure function of the ledger.

use std::collections::BTreeMap;

use whylate_model::Nanos;
use whylate_model::calibration::{SignedQuantile, Slope as ToldSlope, Trust};
use whylate_model::device::{
    Bought, BoundsAtPercent, DeviceAtSize, ErrorSource, Forwarding, ForwardingKind, ResidenceLog,
};
use whylate_model::flow::Direction;
use whylate_model::series::Quantile;
use whylate_model::series::summary::order_ends;
use whylate_stats::Histogram;
use whylate_stats::bounds::{BoundsAt, Side, bounds};
use whylate_stats::by_run::ByRun;
use whylate_stats::difference::Differences;
use whylate_stats::order::{SignedHistogram, WithLost, limits};
use whylate_stats::quantile::{CONFIDENCE, PERCENTS, estimate, smallest_n};
use whylate_stats::sample::{Blocks, Sample, counts};
use whylate_stats::slope::{Forwarding as Judged, Slope, WhyNot, forwarding, theil_sen};

use super::place::Missing;
use super::plan::Slot;
use super::seen::{POINT, SeenWay};

/// Rates that differ by more than this are not those of one state of the host.
const SAME_RATE: f64 = 0.01;
/// Percentiles at which configurations are set against each other.
const BOUGHT_AT: [f64; 4] = [50.0, 99.0, 99.9, 99.99];
/// Draws behind the interval of such a difference.
const RESAMPLES: usize = 400;
/// Blocks of time of a run's errors.
const BLOCKS: usize = 20;
/// What may lie outside of an interval of one quantile, on each side.
const TAIL: f64 = 0.025;
/// Runs of each: fewer say nothing of how runs differ, and E is measured in other runs than the box.
pub(super) const FEWEST_RUNS: u32 = 3;

/// Where one number belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) slot: Slot,
    pub(super) frame_bytes: u32,
    /// Back, not there.
    pub(super) back: bool,
}

impl Place {
    pub(super) fn direction(self) -> Direction {
        if self.back { Direction::Back } else { Direction::There }
    }

    /// The same with something else in the place of the box, under the same configuration.
    fn beside(self, slot: fn(usize) -> Slot) -> Self {
        Self { slot: slot(self.slot.configuration()), ..self }
    }
}

/// What was measured in one place, over all rounds.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) sample: Sample,
    sent: u64,
    received: u64,
    lost: u64,
    /// Sum of the rates of its runs.
    per_second: f64,
    runs: u32,
    from: String,
    to: String,
    /// Of its last run: the others are of the same client, rate and size.
    trust: Option<Trust>,
}

/// Errors of frames through the delay line.
#[derive(Debug, Default)]
pub(super) struct Errors {
    values: SignedHistogram,
    /// The same with what is below zero at zero, run by run: for how they depend on each other.
    sample: Sample,
}

/// All that was measured.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) cells: BTreeMap<Place, Cell>,
    /// By the place of the delay line that tells them.
    pub(super) errors: BTreeMap<Place, Errors>,
    /// What the box itself wrote down.
    pub(super) own: BTreeMap<Place, Sample>,
}

/// What names the parts of what is told.
#[derive(Clone, Copy)]
pub(super) struct Naming<'a> {
    /// Configurations by their numbers; empty where none was asked for.
    pub(super) configurations: &'a [String],
    /// Frames a second that were asked for, by the size of the frame.
    pub(super) asked_pps: &'a dyn Fn(u32) -> f64,
    /// Why there are bounds on one side only, or none.
    pub(super) missing: &'a [Missing],
    /// What the series of the box at a place is called.
    pub(super) series: &'a dyn Fn(Place) -> String,
    /// Who keeps the box's own log, and of what.
    pub(super) logged_by: &'a str,
    /// Bits a second of the link, where it is a real one.
    pub(super) link_bps: Option<f64>,
    pub(super) seed: u64,
}

impl Cell {
    fn take(&mut self, way: SeenWay) {
        self.sample.push(way.blocks, &way.values);
        self.sent += way.sent;
        self.received += way.received;
        self.lost += way.lost;
        self.per_second += way.per_second;
        self.runs += 1;
        (self.from, self.to) = (way.from, way.to);
        self.trust = way.trust;
    }

    /// Where its clock starts and stops.
    pub(super) fn ends(&self) -> (&str, &str) {
        (&self.from, &self.to)
    }

    /// Frames that did not come.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Frames a second, in the mean of its runs.
    fn rate(&self) -> f64 {
        self.per_second / f64::from(self.runs.max(1))
    }
}

impl Errors {
    /// Adds those of one run, and how many frames the line handed over that the client never had: their
    /// errors are beyond all others.
    pub(super) fn take(&mut self, run: &[i64], lost: u64) {
        self.values.record_lost(lost);
        let (mut all, mut block) = (Histogram::new(), Histogram::new());
        let mut blocks = Blocks::new(1);
        // They come in the order of time.
        for (number, errors) in run.chunks(run.len().div_ceil(BLOCKS).max(1)).enumerate() {
            for error in errors {
                self.values.record(*error);
                block.record(u64::try_from(*error).unwrap_or(0));
            }
            blocks.add(number as f64, 1.0, &counts(&block));
            all.add(&block);
            block.clear();
        }
        if !run.is_empty() {
            self.sample.push(blocks, &all);
        }
    }

    fn n_eff(&self, percent: f64) -> f64 {
        self.worth(percent, Sample::effective_n_over_runs)
    }

    /// What they are worth at a percentile, by this count of what lies above a value.
    fn worth(&self, percent: f64, by: impl Fn(&Sample, u64) -> f64) -> f64 {
        let n = self.sample.values().len() as f64;
        let at = limits(&self.values, percent, n, TAIL).value;
        at.map_or(n, |at| by(&self.sample, at.max(0.0) as u64))
    }
}

impl Ledger {
    /// Takes what one run of the client came to.
    pub(super) fn take(&mut self, slot: Slot, frame_bytes: u32, ways: Vec<SeenWay>) {
        for way in ways {
            let back = way.direction == Direction::Back;
            self.cells.entry(Place { slot, frame_bytes, back }).or_default().take(way);
        }
    }

    /// Everything of the box, by configuration, size and way.
    pub(super) fn sizes(&self, naming: Naming<'_>) -> Vec<DeviceAtSize> {
        let boxed = self.cells.iter().filter(|(place, _)| matches!(place.slot, Slot::Boxed(_)));
        boxed.map(|(place, cell)| self.at(*place, cell, naming)).collect()
    }

    fn link(&self, place: Place) -> Option<&Cell> {
        self.cells.get(&place.beside(Slot::Link))
    }

    fn at(&self, place: Place, cell: &Cell, naming: Naming<'_>) -> DeviceAtSize {
        let error_min = self.link(place).and_then(|link| link.sample.values().min());
        let errors = self.errors.get(&place.beside(Slot::Line));
        let apart = self.rates_apart(place, cell);
        let found = match &apart {
            Some(_) => Vec::new(),
            None => bounds_of((&cell.sample, cell.lost), error_min, errors),
        };
        let told = found.iter().map(|at: &BoundsAt| BoundsAtPercent {
            percent: at.percent,
            low_ns: at.low_ns,
            high_ns: at.high_ns,
        });
        let few =
            || format!("{} runs, and {FEWEST_RUNS} are needed to see how runs differ", cell.runs);
        let few = (cell.runs < FEWEST_RUNS).then(few);
        let number = place.slot.configuration();
        let missing = naming.missing.iter().filter(|of| of.is_of(number)).map(|of| &of.why);
        let missing: Vec<&str> =
            few.iter().chain(&apart).chain(missing).map(String::as_str).collect();
        let missing = missing.join("; ");
        DeviceAtSize {
            configuration: configuration(place.slot, naming),
            direction: place.direction(),
            frame_bytes: place.frame_bytes,
            point: POINT,
            from: cell.from.clone(),
            to: cell.to.clone(),
            asked_pps: Some((naming.asked_pps)(place.frame_bytes)),
            achieved_pps: cell.rate(),
            sent: cell.sent,
            received: cell.received,
            lost: cell.lost,
            runs: cell.runs,
            n: cell.sample.values().len(),
            min: cell.sample.values().min().map(Nanos),
            measured: quantiles(&cell.sample),
            error_min_ns: error_min.map(|min| min as f64),
            error_quantiles: errors.map(signed).unwrap_or_default(),
            bounds: told.collect(),
            no_bounds: (!missing.is_empty()).then_some(missing),
            residence: self.own.get(&place).map(|own| ResidenceLog {
                by: naming.logged_by.to_owned(),
                n: own.values().len(),
                quantiles: quantiles(own),
            }),
            series: Some((naming.series)(place)),
            trust: cell.trust.clone(),
        }
    }

    /// Why E is not that of the box here: it was measured at another rate. None where it was not.
    fn rates_apart(&self, place: Place, cell: &Cell) -> Option<String> {
        let rate = cell.rate();
        let beside = [
            (place.beside(Slot::Link), "the bare link"),
            (place.beside(Slot::Line), "the delay line"),
        ];
        let (what, other) = beside.into_iter().find_map(|(at, what)| {
            let other = self.cells.get(&at)?.rate();
            let apart = (other / rate - 1.0).abs() > SAME_RATE;
            apart.then_some((what, other))
        })?;
        Some(format!(
            "at {} bytes {what} was measured at {other:.0} frames a second, the box at {rate:.0}",
            place.frame_bytes
        ))
    }

    /// Where E comes from; none where its quantiles were not measured.
    pub(super) fn source(&self, quantiles_by: &str, least_by: &str) -> Option<ErrorSource> {
        if self.errors.is_empty() {
            return None;
        }
        let mut boxed = self.cells.iter().filter(|(place, _)| matches!(place.slot, Slot::Boxed(_)));
        let unfit = boxed.find_map(|(place, cell)| self.rates_apart(*place, cell));
        Some(ErrorSource {
            quantiles_by: quantiles_by.to_owned(),
            least_by: least_by.to_owned(),
            unfit,
        })
    }

    /// Whether the box waits for whole frames, by configuration and way.
    pub(super) fn forwarding(&self, naming: Naming<'_>) -> Vec<Forwarding> {
        let mut told: Vec<(Slot, bool)> =
            self.cells.keys().map(|place| (place.slot, place.back)).collect();
        told.retain(|(slot, _)| matches!(slot, Slot::Boxed(_)));
        told.sort_unstable();
        told.dedup();
        told.into_iter().map(|(slot, back)| self.forwarding_of(slot, back, naming)).collect()
    }

    fn forwarding_of(&self, slot: Slot, back: bool, naming: Naming<'_>) -> Forwarding {
        let own = self.cells.iter().filter(|(place, _)| (place.slot, place.back) == (slot, back));
        let points = own.filter_map(|(place, cell)| {
            let median = cell.sample.values().value_at(50.0)? as f64;
            // The client's own way grows with the size as well.
            let base = self.link(*place)?.sample.values().value_at(50.0)? as f64;
            Some((f64::from(place.frame_bytes), median - base))
        });
        let points: Vec<(f64, f64)> = points.collect();
        let slope = theil_sen(&points);
        let (kind, why) = verdict(slope.as_ref(), naming.link_bps);
        Forwarding {
            configuration: configuration(slot, naming),
            direction: Place { slot, frame_bytes: 0, back }.direction(),
            kind,
            slope: slope.map(|of| ToldSlope {
                of: "ns of the median beyond a bare link, over bytes of the frame".to_owned(),
                method: "Theil-Sen".to_owned(),
                value: of.value,
                low: of.low,
                high: of.high,
                intercept: of.intercept,
                points: u32::try_from(of.points).unwrap_or(u32::MAX),
            }),
            link_bps: naming.link_bps,
            why,
        }
    }

    /// What each configuration buys against the first.
    pub(super) fn bought(&self, naming: Naming<'_>) -> Vec<Bought> {
        let mut bought = Vec::new();
        let Some(against) = naming.configurations.first() else { return bought };
        for (place, cell) in &self.cells {
            let Slot::Boxed(number @ 1..) = place.slot else { continue };
            let first = self.cells.get(&Place { slot: Slot::Boxed(0), ..*place });
            let (Some(first), Some(name)) = (first, naming.configurations.get(number)) else {
                continue;
            };
            let seed = naming.seed;
            let of = Differences::new(&first.sample, &cell.sample, &BOUGHT_AT, seed, RESAMPLES);
            let of_one_load = (cell.rate() / first.rate() - 1.0).abs() <= SAME_RATE;
            for percent in BOUGHT_AT {
                let intervals = of.quantile(percent, 1.0).intervals.filter(|_| of_one_load);
                let headline = intervals.map(|of| of.headline());
                bought.push(Bought {
                    configuration: name.clone(),
                    against: against.clone(),
                    direction: place.direction(),
                    frame_bytes: place.frame_bytes,
                    percent,
                    // Less is better: what is saved is before less after.
                    saved_ns: intervals.map(|of| -of.difference),
                    low_ns: headline.map(|of| -of.high).filter(|ns| ns.is_finite()),
                    high_ns: headline.map(|of| -of.low).filter(|ns| ns.is_finite()),
                });
            }
        }
        bought
    }
}

/// The bounds at all percentiles that the sample supports. A side without its part of E has none. What was
/// lost may have stayed in the box for ever or not at all: it lies above all where a bound from above is
/// asked for, and below all where one from below is. So there is none from above beyond the share that came.
fn bounds_of(
    (measured, lost): (&Sample, u64),
    error_min: Option<u64>,
    errors: Option<&Errors>,
) -> Vec<BoundsAt> {
    if measured.runs().len() < FEWEST_RUNS as usize {
        return Vec::new();
    }
    let n = measured.values().len();
    let supported = |percent: &f64| smallest_n(percent / 100.0) <= n;
    let percents: Vec<f64> = PERCENTS.into_iter().filter(supported).collect();
    if percents.is_empty() || (error_min.is_none() && errors.is_none()) {
        return Vec::new();
    }
    // How far runs lie apart is in the limits where each run is long enough for a percentile; elsewhere runs
    // are the blocks by which samples are worth something.
    let measured_runs = ByRun::of(measured);
    let of_measured = |percent: f64| {
        if !measured_runs.is_told(percent) {
            return n_eff(measured, percent);
        }
        let value = measured.values().value_at(percent);
        value.map_or(0.0, |value| measured.effective_n(value))
    };
    let lost_above = WithLost::above(measured.values(), lost);
    let lost_below = WithLost::below(measured.values(), lost);
    let runs = Some(&measured_runs);
    let for_upper = Side { values: &lost_above, n_eff: &of_measured, runs };
    let for_lower = Side { values: &lost_below, n_eff: &of_measured, runs };
    let (none, nothing) = (SignedHistogram::new(), |_: f64| 0.0);
    let error_runs = errors.map(|errors| ByRun::of(&errors.sample)).unwrap_or_default();
    let of_errors = |percent: f64| match errors {
        Some(errors) if error_runs.is_told(percent) => errors.worth(percent, Sample::effective_n),
        Some(errors) => errors.n_eff(percent),
        None => 0.0,
    };
    let error = match errors {
        Some(errors) => Side { values: &errors.values, n_eff: &of_errors, runs: Some(&error_runs) },
        None => Side { values: &none, n_eff: &nothing, runs: None },
    };
    let least = error_min.map_or(0.0, |min| min as f64);
    let mut found = bounds(for_lower, least, error, &percents, CONFIDENCE);
    let from_above = bounds(for_upper, least, error, &percents, CONFIDENCE);
    // Without a smallest E no upper bound follows, whatever is taken off.
    for (at, upper) in found.iter_mut().zip(from_above) {
        at.high_ns = upper.high_ns.filter(|_| error_min.is_some());
    }
    // What nothing is below needs no bound from below.
    for at in &mut found {
        at.low_ns = at.low_ns.map(|low| low.max(0.0));
    }
    found
}

/// What a sample is worth for bounds: E was measured in other runs than the box.
fn n_eff(sample: &Sample, percent: f64) -> f64 {
    let values = sample.values();
    values.value_at(percent).map_or(0.0, |value| sample.effective_n_over_runs(value))
}

/// Quantiles in the one order, as they are told.
pub(super) fn quantiles(sample: &Sample) -> Vec<Quantile> {
    let one = |percent: f64| {
        let values = sample.values();
        let n_eff = values.value_at(percent).map_or(0.0, |value| sample.effective_n(value));
        let found = estimate(sample.values(), percent, n_eff);
        Quantile {
            percent,
            value: found.value.map(Nanos),
            low: found.low.map(Nanos),
            high: found.high.map(Nanos),
            n_eff,
        }
    };
    let mut found = PERCENTS.map(one);
    order_ends(&mut found, sample.values().min().map(Nanos));
    found.to_vec()
}

fn signed(errors: &Errors) -> Vec<SignedQuantile> {
    let one = |percent: f64| {
        let n_eff = errors.n_eff(percent);
        let found = limits(&errors.values, percent, n_eff, TAIL);
        SignedQuantile {
            percent,
            value_ns: found.value,
            low_ns: found.low,
            high_ns: found.high,
            n_eff: found.n_eff,
        }
    };
    PERCENTS.map(one).to_vec()
}

fn configuration(slot: Slot, naming: Naming<'_>) -> Option<String> {
    match slot {
        Slot::Boxed(number) => naming.configurations.get(number).cloned(),
        _ => None,
    }
}

/// The verdict on how frames get through, and the sentence that says what it follows from.
fn verdict(slope: Option<&Slope>, link_bps: Option<f64>) -> (ForwardingKind, String) {
    let Some(slope) = slope else {
        let why = "a slope needs two frame sizes at least, and a bare link beside the box";
        return (ForwardingKind::NotTold, why.to_owned());
    };
    let value = slope.value;
    match forwarding(slope, link_bps) {
        Judged::StoreAndForward => (
            ForwardingKind::StoreAndForward,
            format!("latency grows by {value:.2}ns per byte, the time that the link takes for one"),
        ),
        Judged::CutThrough => (
            ForwardingKind::CutThrough,
            format!(
                "latency grows by {value:.2}ns per byte, much less than the link takes for one"
            ),
        ),
        Judged::NotTold(WhyNot::NoRate) => (
            ForwardingKind::NotTold,
            if value > 0.0 {
                format!(
                    "latency grows by {value:.2}ns per byte: a virtual link takes no time for a byte, so this \
                     is the time to copy it"
                )
            } else {
                format!(
                    "latency does not grow with the frame size ({value:.2}ns per byte): a virtual link takes \
                     no time for a byte"
                )
            },
        ),
        Judged::NotTold(WhyNot::TooFewSizes) => (
            ForwardingKind::NotTold,
            "fewer than five sizes give a slope without an interval: give more --sizes".to_owned(),
        ),
        Judged::NotTold(WhyNot::Between) => (
            ForwardingKind::NotTold,
            format!(
                "latency grows by {value:.2}ns per byte, and its interval fits neither store-and-forward nor \
                 cut-through"
            ),
        ),
    }
}

#[cfg(test)]
mod tests;
