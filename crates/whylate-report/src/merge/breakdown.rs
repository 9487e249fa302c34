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

/// Adds another, both as [`of_recording`] has them; none where they are not from and to the same point.
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
        series: sum.series.or(more.series),
        points,
        requests: sum.requests.saturating_add(more.requests),
        left_out,
        all: compositions(&sum.all, &more.all),
        slow: slow(sum.slow, more.slow),
        slowest,
        asides,
        ..sum
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

    /// Each count of a stamp a multiple of its own.
    fn point(station: Station, n: u64) -> PointFacts {
        PointFacts {
            point: Point::there(station),
            source: Source::Trace,
            came: n,
            missing: 2 * n,
            not_asked: 3 * n,
            twice: 4 * n,
            unordered: 5 * n,
            contradicted: 6 * n,
            resolution: Nanos(7),
            bound: Nanos(8),
        }
    }

    fn aside(stamp: &str, n: u64, most: Option<u64>, series: Option<&str>) -> Aside {
        Aside {
            stamp: stamp.to_owned(),
            requests: n,
            came: 2 * n,
            missing: 3 * n,
            not_asked: 4 * n,
            unknown: 5 * n,
            unordered: 6 * n,
            contradicted: 7 * n,
            resolution: Nanos(8),
            bound: Nanos(9),
            median: None,
            p99: None,
            most: most.map(Nanos),
            series: series.map(str::to_owned),
        }
    }

    fn left_out(reason: &str, requests: u64) -> LeftOut {
        LeftOut { reason: reason.to_owned(), requests }
    }

    #[test]
    fn every_count_of_a_stamp_adds_up_and_its_clock_is_as_good_as_the_worse() {
        let mut one = of_recording(&planted(1_000), Hertz(1e9));
        let mut other = one.clone();
        one.points = vec![point(Station::Read, 10), point(Station::Sent, 10)];
        let by_stamp = PointFacts { source: Source::Software, ..point(Station::Sent, 1) };
        let coarser = PointFacts { resolution: Nanos(70), ..point(Station::Sent, 100) };
        other.points = vec![
            by_stamp.clone(),
            coarser,
            PointFacts { bound: Nanos(80), ..point(Station::Read, 100) },
        ];
        one.asides = vec![aside("tx ack", 10, Some(5), None)];
        let median = Some(Nanos(1));
        let finer = Aside {
            resolution: Nanos(1),
            median,
            p99: median,
            ..aside("tx ack", 100, None, Some("acks"))
        };
        other.asides = vec![finer, Aside { median, ..aside("tx completion", 1, Some(1), None) }];
        one.left_out = vec![left_out("given up", 3)];
        other.left_out = vec![left_out("unpaired", 4), left_out("given up", 5)];
        let sum = add(one, other).expect("one question");
        let points = [
            PointFacts { resolution: Nanos(70), ..point(Station::Sent, 110) },
            by_stamp,
            PointFacts { bound: Nanos(80), ..point(Station::Read, 110) },
        ];
        assert_eq!(sum.points, points);
        let acks = aside("tx ack", 110, Some(5), Some("acks"));
        let alone = Aside { median, ..aside("tx completion", 1, Some(1), None) };
        assert_eq!(sum.asides, [acks, alone]);
        assert_eq!(sum.left_out, [left_out("given up", 8), left_out("unpaired", 4)]);
    }

    fn composed(requests: u64, total: f64, of: &[(Part, f64, bool)]) -> Composition {
        let part = |(part, mean_ns, told_apart): &(Part, f64, bool)| PartShare {
            part: *part,
            requests,
            mean_ns: *mean_ns,
            share: if total > 0.0 { mean_ns / total } else { 0.0 },
            told_apart: *told_apart,
            series: told_apart.then(|| "told".to_owned()),
        };
        Composition {
            requests,
            total_mean_ns: total,
            parts: of.iter().map(part).collect(),
            not_told_apart_ns: 2.0,
            residual_ns: 4.0,
        }
    }

    #[test]
    fn a_part_that_one_recording_lacks_took_no_time_there() {
        let part = |from, to| Part { from: Point::there(from), to: Point::there(to) };
        let (out, read) =
            (part(Station::Sent, Station::Driver), part(Station::Arrived, Station::Read));
        let one = composed(1, 80.0, &[(read, 80.0, false)]);
        let other = Composition {
            not_told_apart_ns: 6.0,
            residual_ns: 0.0,
            ..composed(3, 40.0, &[(read, 24.0, true), (out, 16.0, true)])
        };
        let mut expected = composed(4, 50.0, &[(out, 12.0, true), (read, 38.0, false)]);
        (expected.not_told_apart_ns, expected.residual_ns) = (5.0, 1.0);
        expected.parts[0].requests = 3;
        expected.parts[1].series = Some("told".to_owned());
        assert_eq!(compositions(&one, &other), expected);
        assert_eq!(compositions(&other, &one), expected);
        let nothing = composed(0, 0.0, &[(read, 0.0, true)]);
        assert_eq!(compositions(&nothing, &nothing).parts, nothing.parts);
    }

    #[test]
    fn slow_requests_add_up_where_both_recordings_call_the_same_slow() {
        let of = |percent, from| {
            Some(Slow { percent, from: Nanos(from), composition: composed(1, 80.0, &[]) })
        };
        let both = Slow { percent: 99.9, from: Nanos(3), composition: composed(2, 80.0, &[]) };
        assert_eq!(slow(of(99.9, 7), of(99.9, 3)), Some(both));
        assert_eq!(slow(of(99.9, 7), of(99.0, 3)), None);
        assert_eq!(slow(of(99.0, 7), of(99.9, 3)), None);
        assert_eq!((slow(None, of(99.9, 3)), slow(of(99.9, 3), None)), (None, None));
    }

    #[test]
    fn the_slowest_twenty_of_all_recordings_are_kept_the_slowest_first() {
        let journey = |took: u64| {
            let mut journey = planted(1).slowest[0].clone();
            journey.passed.truncate(2);
            (journey.passed[0].at, journey.passed[1].at) = (Ticks(100 + took), Ticks(100));
            journey
        };
        let mut one = of_recording(&planted(1_000), Hertz(1e9));
        let mut other = one.clone();
        one.slowest = (0..15).map(|n| journey(2 * n)).collect();
        other.slowest = (0..15).map(|n| journey(2 * n + 1)).collect();
        let sum = add(one, other).expect("one question");
        let took: Vec<u64> = sum.slowest.iter().map(|journey| took(journey).0).collect();
        assert_eq!(took, (10..30).rev().collect::<Vec<u64>>());
        // A tick of half a nanosecond; what lay beside counts from the same beginning.
        let mut faster = planted(1);
        faster.slowest = vec![journey(40)];
        faster.slowest[0].beside.truncate(1);
        faster.slowest[0].beside[0].event.ticks = Ticks(120);
        let of = of_recording(&faster, Hertz(2e9));
        let passed: Vec<u64> = of.slowest[0].passed.iter().map(|passed| passed.at.0).collect();
        assert_eq!((passed, of.slowest[0].beside[0].event.ticks), (vec![20, 0], Ticks(10)));
    }
}
