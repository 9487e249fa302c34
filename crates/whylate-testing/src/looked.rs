//! Recordings whose requests are kept one by one with the points that they passed: times between any two
//! of them, and what a plant makes longer.

use whylate_model::Ticks;
use whylate_model::breakdown::{Breakdown, Part, Point, Source, StoredJourney};
use whylate_model::directory::RunDir;
use whylate_model::segments::read_journeys;

use crate::program;
use crate::requests::flow;

/// A point counts where so many of ten requests have it.
const MOST: usize = 9;

/// Requests with their points, in the order of sending; what a tick is in nanoseconds.
#[derive(Debug, Clone)]
pub struct Looked {
    pub journeys: Vec<StoredJourney>,
    pub breakdown: Breakdown,
    pub tick_ns: f64,
}

/// Records with these words, and checks what holds of every recording.
pub fn look(words: &str) -> Looked {
    let recorded = program::recorded(&format!("rtt {words} --log-packets"));
    let said = program::said(&recorded.output);
    let run = &recorded.run;
    let breakdown = flow(run).breakdown.as_deref().unwrap_or_else(|| panic!("no parts: {said}"));
    closes(breakdown);
    let directory = RunDir::open(&recorded.directory).unwrap();
    let mut journeys: Vec<StoredJourney> =
        read_journeys(&directory).unwrap().collect::<Result<_, _>>().unwrap();
    journeys.sort_by_key(|of| of.number);
    assert!(!journeys.is_empty(), "{said}");
    Looked { journeys, breakdown: breakdown.clone(), tick_ns: 1e9 / run.clock.hz.0 }
}

/// The parts sum to the total, of all requests and of the slow ones.
fn closes(breakdown: &Breakdown) {
    let slow = breakdown.slow.iter().map(|slow| &slow.composition);
    for of in slow.chain([&breakdown.all]) {
        let parts: f64 = of.parts.iter().map(|part| part.mean_ns).sum();
        let left = of.total_mean_ns - parts;
        assert!((left - of.residual_ns).abs() <= 1.0, "{of:#?}");
        assert!(of.residual_ns.abs() <= 1.0, "parts do not sum to the whole: {of:#?}");
    }
}

impl Looked {
    /// The same of some of the requests.
    pub fn only(&self, wanted: impl Fn(&StoredJourney) -> bool) -> Self {
        let journeys = self.journeys.iter().filter(|of| wanted(of)).copied().collect();
        Self { journeys, ..self.clone() }
    }

    /// Nanoseconds that requests took between two points, of those that have both.
    pub fn times(&self, part: Part) -> Vec<f64> {
        let time = |of: &StoredJourney| {
            let [(from, _), (to, _)] = [at(of, part.from)?, at(of, part.to)?];
            Some((to.0 as f64 - from.0 as f64) * self.tick_ns)
        };
        self.journeys.iter().filter_map(time).collect()
    }

    fn has(&self, point: Point) -> bool {
        let with = self.journeys.iter().filter(|of| at(of, point).is_some()).count();
        !self.journeys.is_empty() && 10 * with >= MOST * self.journeys.len()
    }
}

/// When a request passed a point, and who says so.
fn at(of: &StoredJourney, point: Point) -> Option<(Ticks, Source)> {
    of.passed[point.index()]
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How much longer each part is in the second of two, in nanoseconds: the median over rounds of the
/// differences of medians. Parts lie between the points that all of them have.
pub fn growth(rounds: &[[Looked; 2]]) -> Vec<(Part, f64)> {
    let all = || rounds.iter().flatten();
    let points: Vec<Point> = (0..Point::COUNT)
        .filter_map(Point::at)
        .filter(|point| all().all(|looked| looked.has(*point)))
        .collect();
    let parts = points.windows(2).map(|two| Part { from: two[0], to: two[1] });
    let grown = |part: Part| {
        let of = |looked: &Looked| median(looked.times(part));
        median(rounds.iter().map(|[before, after]| of(after) - of(before)).collect())
    };
    parts.map(|part| (part, grown(part))).collect()
}

/// By how much parts grew, as shares of what was planted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The part that was planted; 0 where there is no such part, or more than one.
    pub planted: f64,
    /// Of the others the one that grew, or shrank, most.
    pub elsewhere: f64,
}

/// Where a plant is found again.
pub fn found(growth: &[(Part, f64)], planted_ns: f64, is_planted: impl Fn(Part) -> bool) -> Found {
    let (own, others): (Vec<_>, Vec<_>) = growth.iter().partition(|(part, _)| is_planted(*part));
    let planted = if let [(_, ns)] = own[..] { ns / planted_ns } else { 0.0 };
    let elsewhere = others.iter().map(|(_, ns)| ns.abs() / planted_ns).fold(0.0, f64::max);
    Found { planted, elsewhere }
}

#[test]
fn a_growth_is_found_in_its_part_alone_and_a_plant_of_another_size_or_place_is_not() {
    use whylate_model::breakdown::{Composition, Station};

    let whole = Part { from: Point::there(Station::Sent), to: Point::back(Station::Read) };
    let breakdown = Breakdown {
        whole,
        series: None,
        points: Vec::new(),
        probes: Vec::new(),
        stamps: Vec::new(),
        asides: Vec::new(),
        card: None,
        dropped: Vec::new(),
        far_stamps: Vec::new(),
        part_agreements: Vec::new(),
        pairs: None,
        requests: 0,
        left_out: Vec::new(),
        all: Composition::default(),
        slow: None,
        agreements: Vec::new(),
        slowest: Vec::new(),
        tap: None,
        cost: None,
    };
    let looked = |server: u64| {
        let one = |number: u64| {
            let mut passed = [None; Point::COUNT];
            let at = number * 10_000_000;
            for (point, after) in [
                (whole.from, 0),
                (Point::there(Station::Read), 20_000),
                (Point::back(Station::Queued), 20_000 + server + number),
                (whole.to, 50_000 + server + number),
            ] {
                passed[point.index()] = Some((Ticks(at + after), Source::Trace));
            }
            // A point that one in two has is none of theirs.
            if number.is_multiple_of(2) {
                passed[Point::there(Station::Woken).index()] = Some((Ticks(at + 7), Source::Trace));
            }
            StoredJourney { flow: 0, number, passed }
        };
        let journeys = (0..101).map(one).collect();
        Looked { journeys, breakdown: breakdown.clone(), tick_ns: 1.0 }
    };
    let rounds = [[looked(1_000), looked(3_001_000)], [looked(2_000), looked(3_002_000)]];
    let growth = growth(&rounds);
    assert_eq!(growth.len(), 3, "{growth:?}");
    let crossing = |part: Part| part.from.leg != part.to.leg;
    let in_its_part = found(&growth, 3e6, crossing);
    assert!((in_its_part.planted - 1.0).abs() < 1e-9 && in_its_part.elsewhere.abs() < 1e-9);
    assert!((found(&growth, 6e6, crossing).planted - 0.5).abs() < 1e-9);
    let elsewhere = found(&growth, 3e6, |part| part.from == whole.from);
    assert!(elsewhere.planted.abs() < 1e-9 && (elsewhere.elsewhere - 1.0).abs() < 1e-9);
    assert_eq!(found(&growth, 3e6, |_| false), Found { planted: 0.0, elsewhere: 1.0 });
    assert_eq!(found(&growth, 3e6, |_| true), Found { planted: 0.0, elsewhere: 0.0 });
}
