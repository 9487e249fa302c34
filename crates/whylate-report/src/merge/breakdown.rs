//! Where requests of several recordings spent their time, as one: counts and sums of time add up.
//!
//! Slow requests stay those that were slow in their own recording. How two sources agree, what probes
//! found, how messages were paired and what looking costs are of one recording each, and are absent from a
//! sum.

use whylate_model::breakdown::{
    Aside, Breakdown, Composition, Journey, LeftOut, Part, PartShare, PointFacts, Slow,
};
use whylate_model::{Hertz, Nanos, Ticks};

/// Slowest requests that a sum keeps.
const MOST_JOURNEYS: usize = 20;

/// What a sum has of a recording's: ticks are nanoseconds from then on, since the request began.
pub(super) fn of_recording(breakdown: &Breakdown, rate: Hertz) -> Breakdown {
    let slowest = breakdown.slowest.iter().map(|journey| since_its_begin(journey, rate));
    Breakdown {
        probes: Vec::new(),
        stamps: Vec::new(),
        card: None,
        dropped: Vec::new(),
        far_stamps: Vec::new(),
        part_agreements: Vec::new(),
        pairs: None,
        agreements: Vec::new(),
        tap: None,
        cost: None,
        slowest: slowest.collect(),
        ..breakdown.clone()
    }
}

/// Adds another; none where they are not from and to the same point.
pub(super) fn add(sum: Breakdown, more: Breakdown) -> Option<Breakdown> {
    if sum.whole != more.whole {
        return None;
    }
    let mut left_out = sum.left_out;
    more.left_out.into_iter().for_each(|more| add_left_out(&mut left_out, more));
    let mut points = sum.points;
    more.points.into_iter().for_each(|more| add_point(&mut points, more));
    points.sort_by_key(|facts| facts.point);
    let mut asides = sum.asides;
    more.asides.into_iter().for_each(|more| add_aside(&mut asides, more));
    let mut slowest = sum.slowest;
    slowest.extend(more.slowest);
    slowest.sort_by_key(|journey| std::cmp::Reverse(took(journey)));
    slowest.truncate(MOST_JOURNEYS);
    Some(Breakdown {
        whole: sum.whole,
        series: sum.series.or(more.series),
        points,
        probes: Vec::new(),
        stamps: Vec::new(),
        card: None,
        dropped: Vec::new(),
        far_stamps: Vec::new(),
        part_agreements: Vec::new(),
        pairs: None,
        requests: sum.requests.saturating_add(more.requests),
        left_out,
        all: compositions(&sum.all, &more.all),
        slow: slow(sum.slow, more.slow),
        agreements: Vec::new(),
        slowest,
        asides,
        tap: None,
        cost: None,
    })
}

fn add_left_out(all: &mut Vec<LeftOut>, more: LeftOut) {
    match all.iter_mut().find(|of| of.reason == more.reason) {
        Some(of) => of.requests = of.requests.saturating_add(more.requests),
        None => all.push(more),
    }
}

fn add_point(all: &mut Vec<PointFacts>, more: PointFacts) {
    let same = |of: &&mut PointFacts| (of.point, of.source) == (more.point, more.source);
    let Some(of) = all.iter_mut().find(same) else { return all.push(more) };
    for (sum, more) in [
        (&mut of.came, more.came),
        (&mut of.missing, more.missing),
        (&mut of.not_asked, more.not_asked),
        (&mut of.twice, more.twice),
        (&mut of.unordered, more.unordered),
        (&mut of.contradicted, more.contradicted),
    ] {
        *sum = sum.saturating_add(more);
    }
    of.resolution = of.resolution.max(more.resolution);
    of.bound = of.bound.max(more.bound);
}

/// Counts add up, and the longest is the longest of both; quantiles of both together are those of the
/// series.
fn add_aside(all: &mut Vec<Aside>, more: Aside) {
    let Some(of) = all.iter_mut().find(|of| of.stamp == more.stamp) else { return all.push(more) };
    for (sum, more) in [
        (&mut of.requests, more.requests),
        (&mut of.came, more.came),
        (&mut of.missing, more.missing),
        (&mut of.not_asked, more.not_asked),
        (&mut of.unknown, more.unknown),
        (&mut of.unordered, more.unordered),
        (&mut of.contradicted, more.contradicted),
    ] {
        *sum = sum.saturating_add(more);
    }
    of.resolution = of.resolution.max(more.resolution);
    of.bound = of.bound.max(more.bound);
    (of.median, of.p99, of.most) = (None, None, of.most.max(more.most));
    of.series = of.series.take().or(more.series);
}

fn slow(sum: Option<Slow>, more: Option<Slow>) -> Option<Slow> {
    let (sum, more) = (sum?, more?);
    let alike = (sum.percent - more.percent).abs() < 1e-9;
    alike.then(|| Slow {
        percent: sum.percent,
        from: sum.from.min(more.from),
        composition: compositions(&sum.composition, &more.composition),
    })
}

/// Means of all requests, each recording's by how many it has.
fn compositions(one: &Composition, other: &Composition) -> Composition {
    let requests = one.requests.saturating_add(other.requests);
    let mean = |a: f64, b: f64| {
        (a * one.requests as f64 + b * other.requests as f64) / requests.max(1) as f64
    };
    let total = mean(one.total_mean_ns, other.total_mean_ns);
    let mut which: Vec<Part> = one.parts.iter().chain(&other.parts).map(|of| of.part).collect();
    which.sort_unstable();
    which.dedup();
    let of_part = |part: Part| {
        let of = |all: &Composition| all.parts.iter().find(|of| of.part == part).cloned();
        let (a, b) = (of(one), of(other));
        let time = |of: &Option<PartShare>| of.as_ref().map_or(0.0, |of| of.mean_ns);
        let count = |of: &Option<PartShare>| of.as_ref().map_or(0, |of| of.requests);
        let mean_ns = mean(time(&a), time(&b));
        let told_apart = a.iter().chain(&b).all(|of| of.told_apart);
        PartShare {
            part,
            requests: count(&a).saturating_add(count(&b)),
            mean_ns,
            share: if total > 0.0 { mean_ns / total } else { 0.0 },
            told_apart,
            series: a.and_then(|of| of.series).or_else(|| b.and_then(|of| of.series)),
        }
    };
    Composition {
        requests,
        total_mean_ns: total,
        parts: which.into_iter().map(of_part).collect(),
        not_told_apart_ns: mean(one.not_told_apart_ns, other.not_told_apart_ns),
        residual_ns: mean(one.residual_ns, other.residual_ns),
    }
}

fn began(journey: &Journey) -> Ticks {
    journey.passed.iter().map(|passed| passed.at).min().unwrap_or_default()
}

fn took(journey: &Journey) -> Nanos {
    let last = journey.passed.iter().map(|passed| passed.at).max().unwrap_or_default();
    Nanos(last.since(began(journey)).0)
}

fn since_its_begin(journey: &Journey, rate: Hertz) -> Journey {
    let begin = began(journey);
    let since = |at: &mut Ticks| *at = Ticks(at.since(begin).to_nanos(rate).0);
    let mut journey = journey.clone();
    journey.passed.iter_mut().for_each(|passed| since(&mut passed.at));
    journey.beside.iter_mut().for_each(|beside| since(&mut beside.event.ticks));
    journey
}

#[cfg(test)]
mod tests {
    use whylate_model::breakdown::{Agreement, Point, Source, Station};

    use super::*;
    use crate::breakdown::tests::planted;

    #[test]
    fn compositions_add_up_by_requests_and_time() {
        let one = of_recording(&planted(1_000), Hertz(1e9));
        let mut other = of_recording(&planted(3_000), Hertz(2e9));
        other.all.total_mean_ns *= 2.0;
        other.all.parts.iter_mut().for_each(|part| part.mean_ns *= 2.0);
        let [first, ..] = &one.all.parts[..] else { panic!("parts") };
        let (total, mean) = (one.all.total_mean_ns, first.mean_ns);
        let slow = one.slow.as_ref().map_or(0, |slow| slow.composition.requests);
        let sum = add(one.clone(), other).expect("one question");
        assert_eq!((sum.requests, sum.all.requests), (4_000, 4_000));
        assert!((sum.all.total_mean_ns - total * 1.75).abs() < 1e-6, "{:?}", sum.all);
        assert!((sum.all.parts[0].mean_ns - mean * 1.75).abs() < 1e-6, "{:?}", sum.all);
        let shares: f64 = sum.all.parts.iter().map(|part| part.share).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{shares}");
        let slow_of_both = sum.slow.expect("both have slow ones").composition.requests;
        assert_eq!(slow_of_both, slow * 4);
        let missing: u64 = sum.points.iter().map(|facts| facts.missing).sum();
        let of_one: u64 = one.points.iter().map(|facts| facts.missing).sum();
        assert_eq!(missing, of_one * 4);
        assert_eq!(sum.left_out[0].requests, 4 * one.left_out[0].requests);
        let [aside] = &sum.asides[..] else { panic!("{:?}", sum.asides) };
        assert_eq!((aside.requests, aside.came, aside.missing), (4_000, 3_600, 400));
        assert_eq!((aside.median, aside.most), (None, Some(Nanos(40_000))));
        let none: Vec<Agreement> = Vec::new();
        assert_eq!((sum.agreements, sum.cost, sum.probes.len()), (none, None, 0));
    }

    #[test]
    fn the_longest_requests_stay_in_nanoseconds_since_they_began() {
        let slower = of_recording(&planted(10), Hertz(1e9));
        let faster = of_recording(&planted(10), Hertz(4e9));
        assert_eq!(slower.slowest[0].passed[0].at, Ticks(0));
        assert_eq!(took(&slower.slowest[0]).0, 4 * took(&faster.slowest[0]).0);
        let most = took(&slower.slowest[0]);
        let sum = add(faster, slower).expect("one question");
        assert_eq!(took(&sum.slowest[0]), most);
        assert!(sum.slowest.len() <= MOST_JOURNEYS);
    }

    #[test]
    fn ways_that_begin_elsewhere_do_not_add_up() {
        let mut other = planted(10);
        other.whole.from = Point::there(Station::Intended);
        assert_eq!(add(planted(10), other), None);
        assert_eq!(planted(1).points[0].source, Source::Own);
    }
}
