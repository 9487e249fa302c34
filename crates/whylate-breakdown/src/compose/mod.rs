//! What requests consist of: parts that sum to the whole.
//!
//! Each request is taken apart by the points that are known of it. Parts lie between neighbouring
//! points, in whole ticks, so that their sum is the whole time exactly; that is checked for each
//! request, and one for which it did not hold would be left out with that reason. Means are sums in
//! 128 bits over the number of requests.
//!
//! Memory does not grow with the run: sums and histograms by part, the slowest requests by number,
//! recent events by number.

mod agree;
mod between;
mod facts;
mod fit;
mod slowest;
mod sums;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use whylate_model::breakdown::{
    Breakdown, LeftOut, Part, Passed, Point, Slow, Source, StoredJourney,
};
use whylate_model::event::Event;
use whylate_model::series::Definition;
use whylate_model::series::summary::Identity;
use whylate_model::tail::End;
use whylate_model::tap::TapBetween;
use whylate_model::{Hertz, Nanos, Ticks, TicksDelta};
use whylate_stats::Histogram;

use crate::Met;
use agree::{Agreements, Both};
use between::Between;
use facts::Facts;
use fit::{Fitted, fit};
use slowest::{Journeys, Slowest};
use sums::Sums;

/// Parts with a histogram of their own, of a quarter of a megabyte each; a way has 22 at most where
/// every point comes for every request.
const MOST_HISTOGRAMS: usize = 64;
/// Requests that are still to be taken, and of which it is known that a point was not asked for.
const MOST_NOT_ASKED: usize = 1 << 16;
/// Reasons that are told apart.
const MOST_REASONS: usize = 32;
/// What all others are counted by.
const OTHER_REASONS: &str = "other reasons";
/// A reason that cannot be, and would be said.
const NO_SUM: &str = "its parts did not add up to its time";

/// How sure an instant of a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Certainty {
    /// Smallest step of its clock.
    pub resolution: Nanos,
    /// How far it may lie from the counter's timeline.
    pub bound: Nanos,
}

/// How sure the instants of each source are; of one that was not told, exact to the tick.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    of: [Certainty; Source::ALL.len()],
}

impl Bounds {
    /// Sets those of a source.
    #[must_use]
    pub fn with(mut self, source: Source, resolution: Nanos, bound: Nanos) -> Self {
        self.of[source as usize] = Certainty { resolution, bound };
        self
    }

    /// Those of a source.
    #[must_use]
    pub fn of(&self, source: Source) -> Certainty {
        self.of[source as usize]
    }

    /// Instants of two sources that differ by no more may be the same. An end reads its counter on one
    /// CPU: two of its readings are as far from the timeline as each other.
    #[must_use]
    pub fn apart(&self, one: Source, other: Source) -> Nanos {
        let of_one_end = one == other && matches!(one, Source::Own | Source::Told);
        let sum = |of: Certainty| {
            let bound = if of_one_end { 0 } else { of.bound.0 };
            of.resolution.0.saturating_add(bound)
        };
        Nanos(sum(self.of(one)).saturating_add(sum(self.of(other))))
    }
}

/// What requests are taken apart by.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Frequency of the counter.
    pub rate: Hertz,
    /// From where to where.
    pub whole: Part,
    /// How sure each source is.
    pub bounds: Bounds,
    /// Points that are looked for, and who is to tell them, in any order.
    pub expected: Vec<(Point, Source)>,
    /// The percentile of the whole time above which a request is slow: 99.9.
    pub slow_percent: f64,
    /// Of so many of the slowest requests the kernel's events are kept.
    pub slowest: usize,
    /// Name of the flow, for those of the series.
    pub name: String,
}

/// Takes requests apart, one by one.
#[derive(Debug, Clone)]
pub struct Composer {
    settings: Settings,
    all: Sums,
    whole: Histogram,
    parts: BTreeMap<Part, Histogram>,
    facts: Facts,
    agreements: Agreements,
    between: Between,
    slowest: Slowest,
    journeys: Journeys,
    left_out: Vec<LeftOut>,
    /// Points of requests that have not come yet, which nobody was asked for.
    not_asked: BTreeMap<u64, Vec<(Point, Source)>>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Composed {
    /// For the run; without what probes found and what looking costs.
    pub breakdown: Breakdown,
    /// Name and label of each series with its values: the whole first, then the parts.
    pub histograms: Vec<(String, String, Histogram)>,
    /// The same series as a run describes them, in the same order.
    pub identities: Vec<Identity>,
    /// How a tap's times lie to the kernel's stamps; none where there are not both.
    pub between: Option<TapBetween>,
}

impl Composer {
    /// Nothing is taken apart yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            all: Sums::default(),
            whole: Histogram::new(),
            parts: BTreeMap::new(),
            facts: Facts::new(&settings.expected, &settings.bounds),
            agreements: Agreements::default(),
            between: Between::default(),
            slowest: Slowest::default(),
            journeys: Journeys::new(settings.slowest),
            left_out: Vec::new(),
            not_asked: BTreeMap::new(),
            settings,
        }
    }

    /// Takes a request apart. Events of its time are best given before, by [`Composer::events`].
    pub fn take(&mut self, met: &Met) {
        let Settings { rate, whole, .. } = self.settings;
        let not_asked = self.not_asked.remove(&met.number).unwrap_or_default();
        self.facts.count(met, &not_asked, &self.settings.bounds);
        self.compare(met);
        let bounds = &self.settings.bounds;
        let apart = |one, other| bounds.apart(one, other).to_ticks(rate);
        let fitted = match fit(&met.instants, whole, apart) {
            Ok(fitted) => fitted,
            Err(why) => return self.left_out(why.reason(), 1),
        };
        self.facts.unordered(&fitted.unordered, bounds);
        self.facts.contradicted(&fitted.contradicted, bounds);
        let took = fitted.whole();
        let sum: u128 = fitted.parts().map(|(_, took)| u128::from(took.0)).sum();
        if sum != u128::from(took.0) {
            return self.left_out(NO_SUM, 1);
        }
        self.between.take(met, rate, bounds);
        self.all.add(&fitted.points);
        self.record(&fitted, took);
        self.slowest.add(met.number, took.0, &fitted.points);
        if self.journeys.wants(took.0, met.number)
            && let [(_, begin), .., (_, end)] = &fitted.points[..]
        {
            let span = (*begin, *end);
            self.journeys.add(met.number, span, passed(met, &fitted, whole));
        }
    }

    /// Nobody was asked to tell this point of the request with this number, which is still to be taken.
    pub fn not_asked(&mut self, number: u64, point: Point, source: Source) {
        if self.not_asked.len() >= MOST_NOT_ASKED && !self.not_asked.contains_key(&number) {
            // The lowest number is the oldest: a request that is never taken.
            self.not_asked.pop_first();
        }
        let points = self.not_asked.entry(number).or_default();
        if !points.contains(&(point, source)) {
            points.push((point, source));
        }
    }

    /// The smallest step of a source's clock, where that is known only now, before the first request.
    pub fn set_resolution(&mut self, source: Source, resolution: Nanos) {
        let Certainty { bound, .. } = self.settings.bounds.of(source);
        self.sure(source, Certainty { resolution, bound });
    }

    /// How sure a source is by now: of clocks that are related again and again that is known better, or
    /// is worse, as a run goes on. It counts from here on, and is what is said of all in the end.
    pub fn sure(&mut self, source: Source, certainty: Certainty) {
        if self.settings.bounds.of(source) == certainty {
            return;
        }
        let Certainty { resolution, bound } = certainty;
        let bounds = std::mem::take(&mut self.settings.bounds).with(source, resolution, bound);
        self.facts.sure(source, certainty);
        self.agreements.sure(&bounds);
        self.settings.bounds = bounds;
    }

    /// The same of how far a source may lie from the counter's timeline by now; the step of its clock
    /// stays what it is.
    pub fn bounded(&mut self, source: Source, bound: Nanos) {
        let Certainty { resolution, .. } = self.settings.bounds.of(source);
        self.sure(source, Certainty { resolution, bound });
    }

    /// How sure each source is by now.
    #[must_use]
    pub fn bounds(&self) -> &Bounds {
        &self.settings.bounds
    }

    /// Counts requests that ended and cannot be taken apart.
    pub fn left_out(&mut self, reason: &str, requests: u64) {
        if requests == 0 {
            return;
        }
        let full = self.left_out.len() >= MOST_REASONS;
        let known = |reason: &str| self.left_out.iter().position(|of| of.reason == reason);
        let place = known(reason).or_else(|| full.then(|| known(OTHER_REASONS)).flatten());
        if let Some(place) = place {
            let of = &mut self.left_out[place];
            of.requests = of.requests.saturating_add(requests);
        } else {
            let reason = if full { OTHER_REASONS } else { reason }.to_owned();
            self.left_out.push(LeftOut { reason, requests });
        }
    }

    /// What the kernel did on CPUs of an end, or of one that is not known. Kept for a while, for the
    /// slowest requests.
    pub fn events(&mut self, end: Option<End>, events: &[Event]) {
        self.journeys.events(end, events);
    }

    /// Requests that were taken apart so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.all.requests()
    }

    /// What they consist of.
    #[must_use]
    pub fn finish(self) -> Composed {
        let between = self.between.finish(&self.settings.bounds);
        let Self { settings, all, whole, parts, facts, agreements, slowest, journeys, .. } = self;
        let Settings { rate, name, expected, .. } = &settings;
        let apart = |part: Part| told_apart(part, expected);
        let series = |part: Part| parts.contains_key(&part).then(|| part.series(name));
        let composition = all.composition(*rate, apart, series);
        let (percent, slow) = slowest.slow(all.requests(), settings.slow_percent);
        let from = slow.last().map(|(took, _)| TicksDelta(*took).to_nanos(*rate));
        let mut sums = Sums::default();
        for (_, points) in &slow {
            sums.add(points);
        }
        let slow = from.map(|from| Slow {
            percent,
            from,
            composition: sums.composition(*rate, apart, series),
        });
        let identities = identities(&settings, &facts, &whole, &parts);
        let own = std::iter::once(whole).filter(|whole| !whole.is_empty());
        let values = own.chain(parts.into_values());
        let histograms = identities.iter().zip(values);
        let histograms: Vec<_> =
            histograms.map(|(of, values)| (of.name.clone(), of.label.clone(), values)).collect();
        let requests = all.requests();
        let (agreements, part_agreements) = agreements.finish();
        let breakdown = Breakdown {
            whole: settings.whole,
            series: (requests > 0).then(|| whole_series(name)),
            points: facts.finish(),
            probes: Vec::new(),
            stamps: Vec::new(),
            card: None,
            dropped: Vec::new(),
            far_stamps: Vec::new(),
            part_agreements,
            pairs: None,
            requests,
            left_out: self.left_out,
            all: composition,
            slow,
            agreements,
            slowest: journeys.finish(),
            asides: Vec::new(),
            tap: None,
            cost: None,
        };
        Composed { breakdown, histograms, identities, between }
    }

    /// Sets what other sources say of points, and of parts between them, beside what is used.
    fn compare(&mut self, met: &Met) {
        let both = met.beside.iter().filter_map(|(point, beside_at, beside)| {
            let (used_at, used) = met.instants.get(*point)?;
            let neighbours = neighbours(met, *point);
            Some(Both::new(*point, (used, used_at), (*beside, *beside_at), neighbours))
        });
        self.agreements.add(both.collect(), (self.settings.rate, &self.settings.bounds));
    }

    fn record(&mut self, fitted: &Fitted, took: TicksDelta) {
        let rate = self.settings.rate;
        self.whole.record(took.to_nanos(rate).0);
        for (part, took) in fitted.parts() {
            if self.parts.len() < MOST_HISTOGRAMS || self.parts.contains_key(&part) {
                self.parts.entry(part).or_default().record(took.to_nanos(rate).0);
            }
        }
    }
}

/// The points of a request as a segment holds them.
#[must_use]
pub fn stored(flow: u16, met: &Met) -> StoredJourney {
    let mut passed = [None; Point::COUNT];
    for (point, at, source) in met.instants.known() {
        passed[point.index()] = Some((at, source));
    }
    StoredJourney { flow, number: met.number, passed }
}

/// The points before and after this one that somebody tells by the counter itself.
fn neighbours(met: &Met, point: Point) -> [Option<Ticks>; 2] {
    let (mut before, mut after) = (None, None);
    for (of, at, source) in met.instants.known() {
        if !matches!(source, Source::Own | Source::Told | Source::Trace) || of == point {
            continue;
        }
        if of < point {
            before = Some(at);
        } else {
            after = after.or(Some(at));
        }
    }
    [before, after]
}

/// Are the points of a part neighbours among those that are looked for?
fn told_apart(part: Part, expected: &[(Point, Source)]) -> bool {
    let between = |(point, _): &(Point, Source)| *point > part.from && *point < part.to;
    part.is_reading_awake() || !expected.iter().any(between)
}

/// What is known of a request, in order: within the whole as its parts are made of it.
fn passed(met: &Met, fitted: &Fitted, whole: Part) -> Vec<Passed> {
    let known = met.instants.known().filter_map(|(point, told, source)| {
        let at = match fitted.points.iter().find(|(of, _)| *of == point) {
            Some((_, at)) => *at,
            None if point < whole.from || point > whole.to => told,
            None => return None,
        };
        Some(Passed { point, at, source })
    });
    known.collect()
}

/// Name of the series of the whole time.
fn whole_series(flow: &str) -> String {
    format!("{flow}-whole")
}

/// The whole, where there is one, and the parts.
fn identities(
    settings: &Settings,
    facts: &Facts,
    whole: &Histogram,
    parts: &BTreeMap<Part, Histogram>,
) -> Vec<Identity> {
    let identity = |part: Part, name: String, label: String| {
        let sources = [part.from, part.to].map(|point| facts.first_source(point));
        let clocks: Vec<&str> = sources.iter().flatten().map(|source| source.clock()).collect();
        let clock = match clocks[..] {
            [from, to] if from != to => format!("{from}; {to}"),
            [one, ..] => one.to_owned(),
            [] => "not known".to_owned(),
        };
        let steps = sources.iter().flatten().map(|source| step(*source, &settings.bounds));
        Identity {
            name,
            label,
            paper_row: None,
            from: part.from.to_string(),
            to: part.to.to_string(),
            clock,
            definition: Definition::PartOfRequest,
            resolution_ns: steps.max().map_or(0.0, |step| step.0 as f64),
            lost: 0,
        }
    };
    let name = &settings.name;
    let all = (!whole.is_empty())
        .then(|| identity(settings.whole, whole_series(name), format!("whole, {name}")));
    let of_parts = parts.keys().map(|part| {
        let label = format!("{}, {} of {name}", part.words(), leg(*part));
        identity(*part, part.series(name), label)
    });
    all.into_iter().chain(of_parts).collect()
}

/// What an instant of a source tells at best. A card's clock counts in steps of its own and is related to
/// the counter's through the system's: its stamps tell no more than that relation does.
fn step(source: Source, bounds: &Bounds) -> Nanos {
    let Certainty { resolution, bound } = bounds.of(source);
    match source {
        Source::Hardware => Nanos(resolution.0.saturating_add(bound.0)),
        _ => resolution,
    }
}

fn leg(part: Part) -> &'static str {
    if part.from.leg == part.to.leg { part.from.leg.word() } else { "between request and reply" }
}
