//! Numbers that no recording comes to: each is refused, and the message names its field.

use std::path::Path;

use whylate_model::directory::parse_run;
use whylate_model::flow::OutOf;
use whylate_model::run::{Run, RunState};
use whylate_model::series::{Denominator, Tail};
use whylate_model::{Nanos, Ticks};

use crate::samples::run;

/// What is said of a run that was changed so; nothing where it is read.
fn refused(change: impl FnOnce(&mut Run)) -> Option<String> {
    let mut changed = run();
    change(&mut changed);
    let json = serde_json::to_vec(&changed).unwrap();
    parse_run(Path::new("run.json"), &json).err().map(|error| error.to_string())
}

#[test]
fn a_number_that_contradicts_another_is_refused_with_the_name_of_its_field() {
    type Change = fn(&mut Run);
    let cases: [(&str, Change); 23] = [
        ("series gap-cpu1: n is 18000000000000000000", |run| {
            run.series[0].n = 18_000_000_000_000_000_000;
        }),
        ("series gap-cpu1: min 64.0ms is above p99.9 120us", |run| {
            run.series[0].min = Some(Nanos(64_000_000));
        }),
        ("series gap-cpu1: p99.9 120us is above max 7ns", |run| run.series[0].max = Some(Nanos(7))),
        ("series gap-cpu1: low of p99.9 is 121us, above 120us", |run| {
            run.series[0].quantiles[0].low = Some(Nanos(121_000));
        }),
        ("series gap-cpu1: the share of its tail is 7e300", |run| {
            let denominator = Denominator::Elapsed;
            run.series[0].tail = Some(Tail { count: 2, share: 7e300, denominator });
        }),
        ("series gap-cpu1: the count of its tail is 2, above n", |run| {
            (run.series[0].n, run.series[0].censored) = (1, None);
        }),
        ("series gap-cpu1: censored is 10001, above n", |run| {
            run.series[0].censored.as_mut().unwrap().count = 10_001;
        }),
        ("series gap-cpu1: a percentile of 1e300", |run| {
            run.series[0].quantiles[0].percent = 1e300;
        }),
        ("series gap-cpu1: n_eff of p99.9 is -1e0", |run| run.series[0].quantiles[0].n_eff = -1.0),
        ("series gap-cpu1: mean_ns is -2e0", |run| run.series[0].mean_ns = Some(-2.0)),
        ("gaps of CPU 1: lost_share is 7e300", |run| run.gaps[0].lost_share = 7e300),
        ("gaps of CPU 1: lost_share is 1.7e0, and a share is from 0 to 1", |run| {
            run.gaps[0].lost_share = 1.7;
        }),
        ("gaps of CPU 1: the upper end of lost_share is 7e1", |run| {
            run.gaps[0].lost_share_interval = Some((0.5, 70.0));
        }),
        ("gaps of CPU 1: the count of gaps of 1.00us or more is 24, above gaps", |run| {
            run.gaps[0].rates[0].count = 24;
        }),
        ("gaps of CPU 1: the measurement ends before it starts", |run| run.gaps[0].end = Ticks(0)),
        ("share_of_elapsed is 7e300", |run| run.causes[0].share_of_elapsed = 7e300),
        ("lost_ns is -1e0, and it is never negative", |run| run.causes[0].lost_ns = -1.0),
        ("the sum of share_of_lost is 1.8e0", |run| {
            let one = run.causes[0].clone();
            run.causes = vec![one; 2];
            run.causes.iter_mut().for_each(|of| of.share_of_lost = 0.9);
        }),
        ("coverage: its sum is 1.8e0", |run| {
            let of = run.coverage.as_mut().unwrap();
            (of.by_events, of.by_residuals, of.by_nothing) = (0.9, 0.9, 0.0);
        }),
        ("coverage: by_nothing is -3e0", |run| run.coverage.as_mut().unwrap().by_nothing = -3.0),
        ("self-test, ipi: found is 504, above injected", |run| {
            run.selftest.as_mut().unwrap().kinds[0].found = 504;
        }),
        ("from is 201, above to", |run| run.segments[0].from = Ticks(201)),
        ("trace: events_in_gaps is 1, above events_measured", |run| {
            run.evidence.trace.as_mut().unwrap().events_in_gaps = 1;
        }),
    ];
    assert_eq!(refused(|_| ()), None);
    for (expected, change) in cases {
        let said = refused(change).unwrap_or_else(|| panic!("accepted: {expected}"));
        assert!(said.contains("run.json") && said.contains("damaged"), "{said}");
        assert!(said.contains(expected), "not `{expected}`: {said}");
    }
}

#[test]
fn a_number_without_a_value_is_refused() {
    let json = serde_json::to_string(&run()).unwrap();
    for other in ["1e999", "NaN", "-1e999", "Infinity", "null"] {
        let changed = json.replace("\"lost_share\":0.001", &format!("\"lost_share\":{other}"));
        assert_ne!(changed, json);
        let error = parse_run(Path::new("run.json"), changed.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("run.json"), "{other}: {error}");
    }
}

/// A change of a kept run, and what is said of it.
type OfKept = (&'static str, fn(&mut Run));

#[test]
fn threads_wake_ups_and_departures_count_no_more_than_there_were() {
    let threads = include_str!("../../../../tests/runs/threads/run.json");
    let wake = include_str!("../../../../tests/runs/wake/run.json");
    let rtt = include_str!("../../../../tests/runs/rtt/run.json");
    let of_threads: [OfKept; 4] = [
        ("thread audio: misses is 18446744073709551615", |run| {
            run.threads[0].deadlines.as_mut().unwrap().misses = u64::MAX;
        }),
        ("thread audio: the upper end of miss_share_interval is 7e1", |run| {
            run.threads[0].deadlines.as_mut().unwrap().miss_share_interval = Some((0.5, 70.0));
        }),
        ("thread audio: unexplained is 9000, above misses", |run| {
            run.threads[0].deadlines.as_mut().unwrap().unexplained = Some(9_000);
        }),
        ("thread video: those because of ", |run| {
            run.threads[1].deadlines.as_mut().unwrap().causes[0].misses = 9_000;
        }),
    ];
    let of_wake: [OfKept; 2] = [
        ("is 18446744073709551615, above woken", |run| run.wakes[0].later[0].raw = u64::MAX),
        ("above woken and skipped", |run| run.wakes[0].later[0].corrected = Some(u64::MAX)),
    ];
    let of_rtt: [OfKept; 1] =
        [("flow rtt: in_time is 1000000000000000, above intended and sent", |run| {
            run.flows[0].departures.in_time = 1_000_000_000_000_000;
        })];
    for (text, cases) in [(threads, &of_threads[..]), (wake, &of_wake), (rtt, &of_rtt)] {
        for (expected, change) in cases {
            let mut run = parse_run(Path::new("run.json"), text.as_bytes()).unwrap();
            change(&mut run);
            let json = serde_json::to_vec(&run).unwrap();
            let said = parse_run(Path::new("run.json"), &json).unwrap_err().to_string();
            assert!(said.contains(expected), "not `{expected}`: {said}");
        }
    }
}

#[test]
fn requests_of_a_run_that_ended_add_up_and_those_of_one_that_goes_on_need_not() {
    let text = include_str!("../../../../tests/runs/rtt/run.json");
    let mut run = parse_run(Path::new("run.json"), text.as_bytes()).unwrap();
    run.flows[0].packets.sent += 1;
    let said = |run: &Run| {
        let json = serde_json::to_vec(run).unwrap();
        parse_run(Path::new("run.json"), &json).err().map(|error| error.to_string())
    };
    assert!(said(&run).is_some_and(|said| said.contains("counts of packets do not add up")));
    run.state = RunState::Running;
    assert_eq!(said(&run), None);
    let process = &mut run.flows[0].departures.process;
    process.beyond_tolerance = Some(OutOf { count: 300, of: 300 });
    assert_eq!(said(&run), None);
    run.flows[0].departures.process.beyond_tolerance = Some(OutOf { count: 301, of: 300 });
    assert!(
        said(&run).is_some_and(|said| said.contains("the count of beyond_tolerance is 301, above")),
        "{:?}",
        said(&run)
    );
}
