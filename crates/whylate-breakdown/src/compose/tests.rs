//! Planted requests: their parts, sums, sources and events are known.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whylate_model::breakdown::{Composition, Station};
use whylate_model::event::{EventKind, Softirq};
use whylate_model::{CpuId, Pid, Ticks};

use super::*;
use crate::Instants;

const BEGIN: Point = Point::there(Station::Sent);
const END: Point = Point::back(Station::Read);

/// Points that stamps and tracepoints tell of both ways.
const STATIONS: [Station; 7] = [
    Station::Queued,
    Station::Driver,
    Station::Arrived,
    Station::Delivered,
    Station::Woken,
    Station::Running,
    Station::Read,
];

fn points() -> Vec<(Point, Source)> {
    let there = STATIONS.map(|station| (Point::there(station), Source::Trace));
    let back = STATIONS[..6].iter().map(|station| (Point::back(*station), Source::Trace));
    let mut all = vec![(BEGIN, Source::Own)];
    all.extend(there);
    all.push((Point::back(Station::Sent), Source::Trace));
    all.extend(back);
    all.push((END, Source::Own));
    all
}

/// A tick is a nanosecond; stamps of the kernel may be 50 of them off.
fn settings() -> Settings {
    let bounds = Bounds::default().with(Source::Software, Nanos(1), Nanos(49));
    Settings {
        rate: Hertz(1e9),
        whole: Part { from: BEGIN, to: END },
        bounds,
        expected: points(),
        slow_percent: 99.9,
        slowest: 2,
        name: "rtt".to_owned(),
    }
}

/// A request whose points lie so many ticks behind one another.
fn met(number: u64, begin: u64, steps: &[u64]) -> Met {
    let mut instants = Instants::default();
    let mut at = begin;
    for ((point, source), step) in points().iter().zip(std::iter::once(&0).chain(steps)) {
        at += step;
        instants.set(*point, Ticks(at), *source);
    }
    Met { number, instants, beside: Vec::new(), twice: Vec::new() }
}

/// Fifteen steps of a way on which every point came.
const STEPS: [u64; 15] = [100, 20, 300, 40, 50, 60, 70, 5_000, 110, 20, 310, 40, 50, 600, 80];

fn composed(requests: &[Met]) -> Composed {
    let mut composer = Composer::new(settings());
    for met in requests {
        composer.take(met);
    }
    composer.finish()
}

fn share(of: &Composition, from: Point, to: Point) -> (u64, f64) {
    let part = Part { from, to };
    let share = of.parts.iter().find(|share| share.part == part);
    share.map_or((0, 0.0), |share| (share.requests, share.mean_ns))
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6 * other.abs().max(1.0)
}

#[test]
fn planted_steps_are_the_parts_and_their_sum_is_the_whole() {
    let mut slower = STEPS;
    slower[7] += 3_000;
    let Composed { breakdown, histograms, identities, .. } =
        composed(&[met(0, 1_000, &STEPS), met(1, 50_000, &slower)]);
    let total: u64 = STEPS.iter().sum();
    let all = &breakdown.all;
    assert_eq!((breakdown.requests, all.requests, all.parts.len()), (2, 2, 15));
    assert!(near(all.total_mean_ns, total as f64 + 1_500.0), "{all:?}");
    let server = share(all, Point::there(Station::Read), Point::back(Station::Sent));
    assert_eq!(server.0, 2);
    assert!(near(server.1, 6_500.0), "{server:?}");
    let wait = share(all, Point::back(Station::Woken), Point::back(Station::Running));
    assert!(near(wait.1, 600.0), "{wait:?}");
    assert!(near(all.residual_ns, 0.0) && near(all.not_told_apart_ns, 0.0), "{all:?}");
    let shares: f64 = all.parts.iter().map(|part| part.share).sum();
    assert!(near(shares, 1.0), "{shares}");
    assert!(breakdown.points.iter().all(|facts| (facts.came, facts.missing) == (2, 0)));
    // The whole, and each part, with a series each that the flow knows as its own.
    assert_eq!((histograms.len(), identities.len()), (16, 16));
    assert_eq!(histograms[0].0, "rtt-whole");
    assert!(histograms.iter().zip(&identities).all(|((name, ..), of)| *name == of.name));
    assert!(histograms.iter().all(|(name, ..)| breakdown.has_series(name)));
    assert!(!breakdown.has_series("rtt-service"));
    let (_, _, values) = histograms
        .iter()
        .find(|(name, ..)| name == "rtt-part-request-read-reply-sent")
        .expect("the server's part has a series");
    assert_eq!((values.len(), values.min(), values.max()), (2, Some(5_000), Some(8_000)));
}

#[test]
fn a_point_that_never_came_merges_two_parts_which_are_not_told_apart() {
    let mut one = met(0, 1_000, &STEPS);
    one.instants.forget(Point::there(Station::Driver));
    let breakdown = composed(&[one, met(1, 90_000, &STEPS)]).breakdown;
    let all = &breakdown.all;
    let merged = share(all, Point::there(Station::Queued), Point::there(Station::Arrived));
    assert_eq!(merged.0, 1);
    // 320 ns of one of two requests.
    assert!(near(merged.1, 160.0) && near(all.not_told_apart_ns, 160.0), "{all:?}");
    let driver = breakdown.points.iter().find(|of| of.point == Point::there(Station::Driver));
    let driver = driver.expect("it was looked for");
    assert_eq!((driver.came, driver.missing), (1, 1));
    let sum: f64 = all.parts.iter().map(|part| part.mean_ns).sum();
    assert!(near(sum, all.total_mean_ns), "{sum}");
}

#[test]
fn a_reader_that_was_awake_is_told_apart_and_one_whose_delivery_is_missing_is_not() {
    let mut awake = met(0, 1_000, &STEPS);
    awake.instants.forget(Point::there(Station::Woken));
    awake.instants.forget(Point::there(Station::Running));
    let breakdown = composed(&[awake.clone()]).breakdown;
    assert!(near(breakdown.all.not_told_apart_ns, 0.0), "{:?}", breakdown.all);
    awake.instants.forget(Point::there(Station::Delivered));
    let breakdown = composed(&[awake]).breakdown;
    assert!(near(breakdown.all.not_told_apart_ns, 40.0 + 50.0 + 60.0 + 70.0));
}

#[test]
fn without_stamps_and_tracepoints_there_is_the_total_alone() {
    let mut instants = Instants::default();
    instants.set(BEGIN, Ticks(10), Source::Own);
    instants.set(END, Ticks(5_010), Source::Own);
    let met = Met { number: 0, instants, beside: Vec::new(), twice: Vec::new() };
    let mut composer = Composer::new(Settings {
        expected: vec![(BEGIN, Source::Own), (END, Source::Own)],
        ..settings()
    });
    composer.take(&met);
    let all = composer.finish().breakdown.all;
    assert_eq!(all.parts.len(), 1);
    assert!(near(all.parts[0].share, 1.0) && near(all.not_told_apart_ns, 0.0), "{all:?}");
}

#[test]
fn a_point_before_its_predecessor_is_moved_within_the_bounds_and_dropped_beyond() {
    let with = |early: u64| {
        let mut met = met(0, 1_000, &STEPS);
        let queued = Point::there(Station::Queued);
        met.instants.forget(queued);
        met.instants.set(queued, Ticks(1_000 - early), Source::Software);
        let breakdown = composed(&[met]).breakdown;
        let of = |facts: &&whylate_model::breakdown::PointFacts| {
            (facts.point, facts.source) == (queued, Source::Software)
        };
        let facts = breakdown.points.iter().find(of).expect("it came").clone();
        assert_eq!((facts.came, facts.bound), (1, Nanos(49)));
        (facts.unordered, facts.contradicted, share(&breakdown.all, BEGIN, queued).0)
    };
    assert_eq!(with(0), (0, 0, 1));
    assert_eq!(with(50), (1, 0, 1), "bound and resolution of both");
    assert_eq!(with(51), (0, 1, 0));
}

#[test]
fn a_point_after_the_end_is_moved_or_dropped_too() {
    let end = 1_000 + STEPS.iter().sum::<u64>();
    for (late, wanted) in [(30, (1, 0)), (500, (0, 1))] {
        let mut met = met(0, 1_000, &STEPS);
        let running = Point::back(Station::Running);
        met.instants.forget(running);
        met.instants.set(running, Ticks(end + late), Source::Software);
        let fitted = fit(&met.instants, settings().whole, |one, other| {
            settings().bounds.apart(one, other).to_ticks(Hertz(1e9))
        });
        let fitted = fitted.expect("begin and end are known");
        assert_eq!((fitted.unordered.len(), fitted.contradicted.len()), wanted, "{late}");
        assert_eq!(fitted.whole(), TicksDelta(end - 1_000));
    }
}

#[test]
fn requests_without_an_end_and_those_of_others_are_left_out_with_the_reason() {
    let mut composer = Composer::new(settings());
    let mut endless = met(0, 1_000, &STEPS);
    endless.instants.forget(END);
    composer.take(&endless);
    let mut backwards = met(1, 1_000, &STEPS);
    backwards.instants.forget(END);
    backwards.instants.set(END, Ticks(999), Source::Own);
    composer.take(&backwards);
    composer.left_out("given up", 7);
    composer.left_out("given up", 1);
    composer.left_out("nothing", 0);
    (0..40).for_each(|n| composer.left_out(&format!("reason {n}"), 1));
    let breakdown = composer.finish().breakdown;
    let of = |reason: &str| {
        breakdown.left_out.iter().find(|of| of.reason.contains(reason)).map(|of| of.requests)
    };
    assert_eq!((of("when it ended"), of("before it began")), (Some(1), Some(1)));
    assert_eq!((of("given up"), of("nothing"), of(OTHER_REASONS)), (Some(8), None, Some(11)));
    assert_eq!((breakdown.requests, breakdown.series, breakdown.slow), (0, None, None));
    assert_eq!(breakdown.left_out.iter().map(|of| of.requests).sum::<u64>(), 50);
}

#[test]
fn slow_requests_are_those_above_the_percentile_and_have_a_composition_of_their_own() {
    let request = |number: u64| {
        let mut steps = STEPS;
        // Two of 2000 wait for a CPU, each time as long as no other.
        steps[4] += if number % 1_000 == 17 { 70_000 + number } else { number % 7 };
        met(number, 1_000 + number * 100_000, &steps)
    };
    let requests: Vec<Met> = (0..2_000).map(request).collect();
    let breakdown = composed(&requests).breakdown;
    let slow = breakdown.slow.expect("2 of 2000");
    assert_eq!((slow.percent, slow.composition.requests), (99.9, 2));
    let total: u64 = STEPS.iter().sum();
    assert_eq!(slow.from, Nanos(total + 70_017));
    let call =
        share(&slow.composition, Point::there(Station::Delivered), Point::there(Station::Woken));
    assert!(near(call.1, 50.0 + 70_000.0 + f64::midpoint(17.0, 1_017.0)), "{call:?}");
    assert_eq!(breakdown.slowest.iter().map(|of| of.number).collect::<Vec<_>>(), [1_017, 17]);
    let few = composed(&requests[..999]).breakdown;
    assert_eq!(few.slow, None, "a thousandth of 999 is none");
}

#[test]
fn where_too_many_are_slow_the_percentile_that_fits_is_named() {
    let mut slowest = Slowest::default();
    let most = slowest::MOST_SLOW as u64;
    for number in 0..2 * most {
        slowest.add(number, number, &[]);
    }
    let (percent, slow) = slowest.slow(2 * most, 10.0);
    assert!(near(percent, 50.0), "{percent}");
    assert_eq!((slow.len() as u64, slow[0].0), (most, 2 * most - 1));
    assert!(slow.iter().all(|(took, _)| *took >= most));
}

#[test]
fn two_sources_of_a_point_are_set_beside_each_other() {
    let mut composer = Composer::new(settings());
    let driver = Point::there(Station::Driver);
    for (number, late) in [-200_i64, -30, -10, 0, 20].into_iter().enumerate() {
        let number = number as u64;
        let mut met = met(number, 1_000 + 10_000 * number, &STEPS);
        let (at, _) = met.instants.get(driver).expect("it was set");
        met.beside.push((driver, Ticks(at.0.saturating_add_signed(late)), Source::Software));
        met.twice.push(driver);
        composer.take(&met);
    }
    let breakdown = composer.finish().breakdown;
    let [of] = &breakdown.agreements[..] else { panic!("{:?}", breakdown.agreements) };
    assert_eq!((of.point, of.told.used, of.told.beside), (driver, Source::Trace, Source::Software));
    assert_eq!((of.told.least_ns, of.told.median_ns, of.told.most_ns), (-200, -10, 20));
    assert_eq!(
        (of.told.requests, of.told.within, of.told.agree, of.told.in_order),
        (5, Nanos(50), 4, 4)
    );
    assert_eq!(of.told.disagree(), 1);
    let facts: Vec<_> = breakdown.points.iter().filter(|of| of.point == driver).collect();
    assert_eq!((facts[0].source, facts[0].came, facts[0].twice), (Source::Trace, 5, 5));
    assert_eq!((facts[1].source, facts[1].came, facts[1].missing), (Source::Software, 5, 0));
}

/// Points that the trace and stamps tell, both ways.
const BY_BOTH: [Point; 6] = [
    Point::there(Station::Queued),
    Point::there(Station::Driver),
    Point::there(Station::Arrived),
    Point::back(Station::Queued),
    Point::back(Station::Driver),
    Point::back(Station::Arrived),
];

/// Ten requests whose stamps lie behind the trace by as much as is said of their place among these.
fn stamped(behind: impl Fn(usize) -> i64) -> Breakdown {
    let requests = (0..10).map(|number| {
        let mut met = met(number, 1_000 + 100_000 * number, &STEPS);
        for (place, point) in BY_BOTH.into_iter().enumerate() {
            let (at, _) = met.instants.get(point).expect("it was set");
            let at = Ticks(at.0.saturating_add_signed(behind(place)));
            met.beside.push((point, at, Source::Software));
        }
        met
    });
    composed(&requests.collect::<Vec<_>>()).breakdown
}

#[test]
fn a_trace_that_is_shifted_is_found_both_ways_and_its_parts_stay_as_long() {
    for (shift, agree) in [(0, 10), (50, 10), (-50, 10), (51, 0), (-51, 0), (500, 0), (-500, 0)] {
        let of = stamped(|_| shift);
        assert_eq!(of.agreements.len(), BY_BOTH.len());
        for at in of.agreements.iter().map(|at| &at.told) {
            assert_eq!((at.requests, at.agree, at.within), (10, agree, Nanos(50)), "{shift}");
            assert_eq!((at.least_ns, at.median_ns, at.most_ns), (shift, shift, shift));
        }
        assert_eq!(of.part_agreements.len(), BY_BOTH.len() - 1);
        for part in of.part_agreements.iter().map(|part| &part.told) {
            assert_eq!((part.used, part.beside), (Source::Trace, Source::Software));
            assert_eq!((part.requests, part.agree, part.within), (10, 10, Nanos(100)), "{shift}");
            assert_eq!((part.least_ns, part.most_ns), (0, 0), "{shift}");
        }
        // The order of their places is one way's matter alone: that was found before.
        let in_order: Vec<bool> = of.agreements.iter().map(|of| of.told.in_order == 10).collect();
        assert_eq!(in_order.contains(&false), shift.abs() > 50, "{shift}");
        assert!(of.agreements.iter().all(|of| of.told.in_order >= of.told.agree));
        // Beyond the neighbouring points it is out of order everywhere, whichever way.
        let nowhere = of.agreements.iter().all(|of| of.told.in_order == 0);
        assert_eq!(nowhere, shift.abs() == 500, "{shift}");
    }
}

#[test]
fn a_part_that_one_source_makes_longer_or_shorter_is_found_both_ways_and_no_other() {
    for (longer, agree) in [(100, 10), (-100, 10), (101, 0), (-101, 0), (400, 0), (-400, 0)] {
        // All points from the arrival on are later, or earlier.
        let of = stamped(|place| if place < 2 { 0 } else { longer });
        for part in &of.part_agreements {
            let stretched = part.part.from == BY_BOTH[1];
            let wanted = if stretched { (agree, longer) } else { (10, 0) };
            assert_eq!((part.told.agree, part.told.median_ns), wanted, "{longer}: {part:?}");
            if longer.abs() == 400 {
                assert_eq!(part.told.in_order, part.told.agree, "{longer}: {part:?}");
                assert_eq!(part.told.is_contradiction(), stretched, "{longer}: {part:?}");
            }
        }
    }
}

#[test]
fn a_resolution_that_is_known_late_is_that_of_its_points_and_of_what_they_allow() {
    let tap = Point::there(Station::Tap);
    let mut expected = points();
    expected.push((tap, Source::Tap));
    let mut composer = Composer::new(Settings { expected, ..settings() });
    composer.set_resolution(Source::Tap, Nanos(1_000));
    let mut met = met(0, 1_000, &STEPS);
    met.instants.set(tap, Ticks(1_130), Source::Tap);
    met.beside.push((Point::there(Station::Driver), Ticks(1_200), Source::Software));
    composer.take(&met);
    let Composed { breakdown, between, .. } = composer.finish();
    let facts = breakdown.points.iter().find(|of| of.source == Source::Tap).expect("it came");
    assert_eq!((facts.came, facts.resolution), (1, Nanos(1_000)));
    let between = between.expect("a tap and a stamp");
    assert_eq!((between.agree, between.within, between.largest), (1, Nanos(1_050), Nanos(70)));
}

#[test]
fn instants_of_two_cpus_are_as_unsure_as_both_counters_and_those_of_one_as_its_steps() {
    let bounds = [Source::Own, Source::Told, Source::Trace]
        .into_iter()
        .fold(Bounds::default(), |bounds, source| bounds.with(source, Nanos(2), Nanos(30)));
    assert_eq!(bounds.apart(Source::Own, Source::Own), Nanos(4));
    assert_eq!(bounds.apart(Source::Told, Source::Told), Nanos(4));
    // Each event is by the CPU that it happened on.
    assert_eq!(bounds.apart(Source::Trace, Source::Trace), Nanos(64));
    assert_eq!(bounds.apart(Source::Own, Source::Told), Nanos(64));
    let with = |early: u64| {
        let mut composer = Composer::new(Settings { bounds: bounds.clone(), ..settings() });
        let mut met = met(0, 1_000, &STEPS);
        let queued = Point::there(Station::Queued);
        met.instants.forget(queued);
        met.instants.set(queued, Ticks(1_000 - early), Source::Trace);
        composer.take(&met);
        let breakdown = composer.finish().breakdown;
        let facts = breakdown.points.iter().find(|of| of.point == queued).expect("it came");
        assert_eq!((facts.came, facts.bound), (1, Nanos(30)));
        (facts.unordered, facts.contradicted)
    };
    assert_eq!((with(64), with(65)), ((1, 0), (0, 1)));
}

#[test]
fn what_was_not_asked_for_is_not_missing_and_every_request_is_one_of_the_three() {
    let driver = (Point::there(Station::Driver), Source::Software);
    let mut expected = points();
    expected.push(driver);
    let mut composer = Composer::new(Settings { expected, ..settings() });
    // One of four is asked for, and of ten of these one never comes.
    for number in 0..40 {
        let mut met = met(number, 1_000 + 10_000 * number, &STEPS);
        let (at, _) = met.instants.get(driver.0).expect("it was set");
        if number % 4 != 0 {
            composer.not_asked(number, driver.0, driver.1);
        } else if number != 20 {
            met.beside.push((driver.0, at, driver.1));
        }
        composer.take(&met);
    }
    // A note of a request that never ends is no request.
    composer.not_asked(77, driver.0, driver.1);
    let breakdown = composer.finish().breakdown;
    let of = breakdown.points.iter().find(|of| (of.point, of.source) == driver).expect("expected");
    assert_eq!((of.came, of.missing, of.not_asked), (9, 1, 30));
    let closes = |of: &whylate_model::breakdown::PointFacts| of.came + of.missing + of.not_asked;
    assert!(breakdown.points.iter().all(|of| closes(of) == breakdown.requests));
}

#[test]
fn a_bound_that_is_renewed_counts_from_then_on_and_is_what_is_said_in_the_end() {
    let mut composer = Composer::new(settings());
    let driver = Point::there(Station::Driver);
    for (number, bound) in [(0, 49), (1, 149), (2, 149)] {
        composer.bounded(Source::Software, Nanos(bound));
        let mut met = met(number, 1_000 + 10_000 * number, &STEPS);
        let (at, _) = met.instants.get(driver).expect("it was set");
        // Earlier than its place in the kernel allows.
        met.beside.push((driver, Ticks(at.0 - 100), Source::Software));
        composer.take(&met);
    }
    let breakdown = composer.finish().breakdown;
    let [of] = &breakdown.agreements[..] else { panic!("{:?}", breakdown.agreements) };
    assert_eq!((of.told.requests, of.told.agree, of.told.within), (3, 2, Nanos(150)));
    let facts = breakdown.points.iter().find(|of| of.source == Source::Software);
    let facts = facts.expect("it came");
    assert_eq!((facts.came, facts.resolution, facts.bound), (3, Nanos(1), Nanos(149)));
}

/// Stamps of a card lie between driver and stack, and are as sure as its clock's relation is in the end.
#[test]
fn stamps_of_a_card_are_parts_whose_resolution_is_the_bound_of_its_clock() {
    let (out, back_in) = (Point::there(Station::WireOut), Point::back(Station::WireIn));
    let mut settings = settings();
    settings.expected.extend([(out, Source::Hardware), (back_in, Source::Hardware)]);
    let mut composer = Composer::new(settings);
    for number in 0..4 {
        let mut met = met(number, 1_000 + 10_000 * number, &STEPS);
        let (driver, _) = met.instants.get(Point::there(Station::Driver)).expect("it was set");
        let (arrived, _) = met.instants.get(Point::back(Station::Arrived)).expect("it was set");
        // One lies before the driver by more than a relation of 40 ns allows, and by less than 400.
        let early = if number == 3 { 300 } else { 0 };
        met.instants.set(out, Ticks(driver.0 + 170 - early), Source::Hardware);
        if number != 2 {
            met.instants.set(back_in, Ticks(arrived.0 - 90), Source::Hardware);
        }
        let bound = Nanos(if number < 3 { 40 } else { 400 });
        composer.sure(Source::Hardware, Certainty { resolution: Nanos(1), bound });
        composer.take(&met);
    }
    let Composed { breakdown, identities, .. } = composer.finish();
    let facts = |point: Point| {
        breakdown.points.iter().find(|of| of.point == point).expect("it was looked for")
    };
    let (sent, received) = (facts(out), facts(back_in));
    assert_eq!((sent.came, sent.missing, sent.unordered, sent.contradicted), (4, 0, 1, 0));
    assert_eq!((received.came, received.missing), (3, 1));
    assert_eq!((sent.resolution, sent.bound), (Nanos(1), Nanos(400)));
    // Driver to card: 170 ns in three requests, none in the one that was put at the driver's time.
    let to_wire = share(&breakdown.all, Point::there(Station::Driver), out);
    assert_eq!(to_wire.0, 4);
    assert!(near(to_wire.1, 170.0 * 3.0 / 4.0), "{to_wire:?}");
    let from_wire = share(&breakdown.all, back_in, Point::back(Station::Arrived));
    assert_eq!(from_wire.0, 3);
    assert!(near(from_wire.1, 90.0 * 3.0 / 4.0), "{from_wire:?}");
    let named = |name: &str| identities.iter().find(|of| of.name == name).expect("a series");
    let series = named("rtt-part-request-driver-wire-out");
    assert!((series.resolution_ns - 401.0).abs() < 1e-9, "{series:?}");
    assert!(near(breakdown.all.residual_ns, 0.0), "{:?}", breakdown.all);
}

fn softirq(at: u64, cpu: u32) -> Event {
    let kind = EventKind::SoftirqEntry { vector: Softirq::NetRx };
    Event { ticks: Ticks(at), cpu: CpuId(cpu), pid: Pid(1), kind }
}

#[test]
fn the_slowest_requests_have_the_events_of_their_time_whenever_these_came() {
    let mut composer = Composer::new(settings());
    let fault = EventKind::PageFault { user: true, address: 1, ip: 2 };
    let fault = Event { kind: fault, ..softirq(2_000, 0) };
    composer.events(Some(End::Other), &[softirq(999, 1), softirq(1_000, 1), fault]);
    composer.take(&met(0, 1_000, &STEPS));
    let end = 1_000 + STEPS.iter().sum::<u64>();
    composer.events(Some(End::Client), &[softirq(end, 0), softirq(end + 1, 0)]);
    let journey = &composer.finish().breakdown.slowest[0];
    let seen: Vec<_> = journey.beside.iter().map(|of| (of.end, of.event.ticks.0)).collect();
    assert_eq!(seen, [(Some(End::Other), 1_000), (Some(End::Client), end)]);
    assert_eq!((journey.events_left_out, journey.passed.len()), (0, 16));
}

#[test]
fn of_too_many_events_those_with_the_longest_stretches_stay() {
    let mut composer = Composer::new(settings());
    // After every tenth one the CPU did something for 30 ticks.
    let at = |n: u64| 1_000 + n * 2 + (n / 10) * 30;
    let events: Vec<Event> = (0..200).map(|n| softirq(at(n), 1)).collect();
    composer.events(None, &events);
    composer.take(&met(0, 1_000, &STEPS));
    let journey = &composer.finish().breakdown.slowest[0];
    assert_eq!(journey.beside.len(), slowest::MOST_BESIDE);
    assert_eq!(journey.events_left_out, 200 - slowest::MOST_BESIDE as u64);
    let kept = |n: u64| journey.beside.iter().any(|of| of.event.ticks.0 == at(n));
    assert!((0..19).all(|tenth| kept(tenth * 10 + 9)), "the long stretches");
    assert!(journey.beside.is_sorted_by_key(|of| of.event.ticks));
}

#[test]
fn what_is_stored_of_a_request_is_what_was_told() {
    let met = met(3, 1_000, &STEPS);
    let stored = stored(2, &met);
    assert_eq!((stored.flow, stored.number), (2, 3));
    let known = stored.passed.iter().flatten().count();
    assert_eq!(known, points().len());
    assert_eq!(stored.passed[BEGIN.index()], Some((Ticks(1_000), Source::Own)));
}

fn any_instants() -> impl Strategy<Value = Instants> {
    let one = option::of((any::<u64>(), 0..Source::ALL.len()));
    let near = option::of((1_000_u64..1_200, 0..Source::ALL.len()));
    let place = prop_oneof![1 => one, 4 => near];
    vec(place, Point::COUNT).prop_map(|all| {
        let mut instants = Instants::default();
        for (index, told) in all.into_iter().enumerate() {
            if let Some((point, (at, source))) = Point::at(index).zip(told) {
                instants.set(point, Ticks(at), Source::ALL[source]);
            }
        }
        instants
    })
}

proptest! {
    #[test]
    fn parts_of_any_instants_are_ordered_adjacent_and_sum_to_the_whole(
        requests in vec(any_instants(), 1..40),
        from in 0..Point::COUNT,
        to in 0..Point::COUNT,
        bound in 0_u64..200,
    ) {
        let whole = Part { from: Point::at(from).unwrap(), to: Point::at(to).unwrap() };
        let bounds = Source::ALL.into_iter().fold(Bounds::default(), |bounds, source| {
            bounds.with(source, Nanos(1), Nanos(bound))
        });
        let mut composer = Composer::new(Settings { whole, bounds: bounds.clone(), ..settings() });
        let mut taken = 0_u64;
        for (number, instants) in (0..).zip(&requests) {
            let apart = |one, other| bounds.apart(one, other).to_ticks(Hertz(1e9));
            if let Ok(fitted) = fit(instants, whole, apart) {
                taken += 1;
                let sum: u128 = fitted.parts().map(|(_, took)| u128::from(took.0)).sum();
                let (begin, _) = instants.get(whole.from).unwrap();
                let (end, _) = instants.get(whole.to).unwrap();
                prop_assert_eq!(sum, u128::from(end.0 - begin.0));
                let parts: Vec<Part> = fitted.parts().map(|(part, _)| part).collect();
                prop_assert!(parts.windows(2).all(|two| two[0].to == two[1].from));
                prop_assert!(parts.iter().all(|part| part.from < part.to));
                prop_assert!(fitted.points.is_sorted_by_key(|(_, at)| *at));
            }
            let instants = *instants;
            composer.take(&Met { number, instants, beside: Vec::new(), twice: Vec::new() });
        }
        let breakdown = composer.finish().breakdown;
        prop_assert_eq!(breakdown.requests, taken);
        let left_out: u64 = breakdown.left_out.iter().map(|of| of.requests).sum();
        prop_assert_eq!(taken + left_out, requests.len() as u64);
        prop_assert!(breakdown.left_out.iter().all(|of| of.reason != NO_SUM));
        let all = &breakdown.all;
        prop_assert_eq!(all.residual_ns.to_bits(), 0.0_f64.to_bits());
        let sum: f64 = all.parts.iter().map(|part| part.mean_ns).sum();
        prop_assert!((sum - all.total_mean_ns).abs() <= 1e-9 * all.total_mean_ns.max(1.0));
        prop_assert!(all.not_told_apart_ns <= all.total_mean_ns * (1.0 + 1e-12));
        for facts in &breakdown.points {
            prop_assert!(facts.came + facts.missing <= requests.len() as u64);
            prop_assert!(facts.unordered + facts.contradicted <= facts.came);
        }
    }
}
