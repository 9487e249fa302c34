//! Points of requests one by one: written in segments, read back in order, never trusted; and what a
//! run says of where they spent their time.

use std::path::Path;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whylate_model::breakdown::{
    Agreement, Aside, Beside, Breakdown, CardTold, Composition, CountedStamps, Differences,
    FarStamps, Journey, LeftOut, LookedAt, LookingCost, More, Pairs, Part, PartAgreement,
    PartShare, Passed, Point, PointFacts, Probed, Reasoned, Slow, Source, Station, StoredJourney,
    ThreadsFound, Untold, Watched, WatchedProcess,
};
use whylate_model::directory::parse_run;
use whylate_model::event::{Event, EventKind, Softirq};
use whylate_model::segments::{
    Limits, Writer, decode_journeys, decode_packets, import, read_journeys,
};
use whylate_model::tail::End;
use whylate_model::{CpuId, Nanos, Pid, RunDir, Ticks};

use crate::samples;
use crate::segments::segment_files;

fn new_run() -> (tempfile::TempDir, RunDir) {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDir::create_with_room(place.path().join("run"), 0).unwrap();
    (place, directory)
}

fn any_journey() -> impl Strategy<Value = StoredJourney> {
    let passed = option::of((any::<u64>(), 0..Source::ALL.len()));
    (any::<u16>(), any::<u64>(), vec(passed, Point::COUNT)).prop_map(|(flow, number, told)| {
        let mut passed = [None; Point::COUNT];
        for (place, told) in passed.iter_mut().zip(told) {
            *place = told.map(|(at, source)| (Ticks(at), Source::ALL[source]));
        }
        StoredJourney { flow, number, passed }
    })
}

/// A segment with a few rows.
fn whole_segment() -> Vec<u8> {
    let (_place, directory) = new_run();
    let mut writer = Writer::new(&directory, Ticks(5), Limits::default());
    for number in 0..40 {
        let mut passed = [None; Point::COUNT];
        passed[Point::there(Station::Sent).index()] = Some((Ticks(number * 10), Source::Own));
        passed[Point::back(Station::Read).index()] = Some((Ticks(number * 10 + 5), Source::Own));
        writer.push_journey(&StoredJourney { flow: 0, number, passed }).unwrap();
    }
    writer.checkpoint().unwrap();
    std::fs::read(&segment_files(&directory)[0]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_journeys_come_back_as_they_were_pushed_and_are_taken_over_by_a_sum(
        journeys in vec(any_journey(), 1..60),
        rows in 4_usize..80,
    ) {
        let (_place, directory) = new_run();
        let limits = Limits { gap_rows: rows, ..Limits::default() };
        let mut writer = Writer::new(&directory, Ticks(7), limits);
        for journey in &journeys {
            writer.push_journey(journey).unwrap();
        }
        writer.checkpoint().unwrap();
        let back: Vec<_> = read_journeys(&directory).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&back, &journeys);
        let (_other, sum) = new_run();
        for (number, segment) in (1..).zip(writer.segments()) {
            let taken = import(&directory, &segment, &sum, number).unwrap();
            prop_assert_eq!(taken.rows, segment.rows);
        }
        prop_assert_eq!(read_journeys(&sum).unwrap().count(), journeys.len());
    }

    #[test]
    fn changed_bytes_of_journeys_give_rows_or_an_error(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut content = whole_segment();
        for (place, value) in &changes {
            let at = place.index(content.len());
            content[at] = *value;
        }
        let _ = decode_journeys(Path::new("journeys"), content);
    }
}

#[test]
fn a_segment_of_journeys_is_told_from_others_and_one_that_is_cut_is_refused() {
    let content = whole_segment();
    let path = Path::new("journeys-0001.parquet");
    assert_eq!(decode_journeys(path, content.clone()).unwrap().len(), 40);
    assert!(decode_packets(path, content.clone()).is_err());
    for length in (0..content.len()).step_by(11) {
        assert!(decode_journeys(path, content[..length].to_vec()).is_err(), "{length} bytes");
    }
}

fn composition(part: Part) -> Composition {
    Composition {
        requests: 9,
        total_mean_ns: 1_000.5,
        parts: vec![PartShare {
            part,
            requests: 9,
            mean_ns: 1_000.5,
            share: 1.0,
            told_apart: true,
            series: Some(part.series("rtt")),
        }],
        not_told_apart_ns: 0.25,
        residual_ns: 0.0,
    }
}

/// One with something in every field.
fn breakdown() -> Breakdown {
    let point = Point::there(Station::Sent);
    let whole = Part { from: point, to: Point::back(Station::Read) };
    let event = Event {
        ticks: Ticks(7),
        cpu: CpuId(1),
        pid: Pid(9),
        kind: EventKind::SoftirqEntry { vector: Softirq::NetRx },
    };
    Breakdown {
        whole,
        series: Some("rtt-whole".to_owned()),
        points: vec![PointFacts {
            point,
            source: Source::Software,
            came: 8,
            missing: 1,
            not_asked: 2,
            twice: 2,
            unordered: 3,
            contradicted: 4,
            resolution: Nanos(1),
            bound: Nanos(70),
        }],
        probes: vec![Probed {
            stamp: "tx hardware".to_owned(),
            accepted: true,
            sent: 20,
            delivered: 0,
            step: None,
            read_cost: Some(Nanos(900)),
            reason: Some("no card has a clock".to_owned()),
        }],
        card: Some(CardTold {
            told: "card of eth0 stamps: nothing -> everything".to_owned(),
            changed: true,
            put_back: true,
        }),
        dropped: vec![Reasoned { reason: "stamps without room".to_owned(), count: 3 }],
        far_stamps: far_stamps(),
        part_agreements: part_agreements(whole),
        pairs: Some(Box::new(Pairs {
            requests: 9,
            by_socket: 6,
            by_order: 2,
            unpaired: vec![Reasoned { reason: "not answered yet".to_owned(), count: 1 }],
            messages: 20,
            read: 19,
            lost: vec![Reasoned { reason: "still under way".to_owned(), count: 1 }],
            ..Pairs::default()
        })),
        stamps: stamps(),
        requests: 9,
        left_out: vec![LeftOut { reason: "given up".to_owned(), requests: 1 }],
        all: composition(whole),
        slow: Some(Slow { percent: 99.9, from: Nanos(2_000), composition: composition(whole) }),
        agreements: vec![Agreement {
            point,
            told: Differences {
                used: Source::Own,
                beside: Source::Trace,
                requests: 9,
                least_ns: -5,
                median_ns: 1,
                most_ns: 90,
                within: Nanos(71),
                agree: 8,
                in_order: 9,
            },
        }],
        slowest: vec![Journey {
            number: 3,
            passed: vec![Passed { point, at: Ticks(5), source: Source::Own }],
            beside: vec![Beside { end: Some(End::Other), event }],
            events_left_out: 2,
            events_gone: true,
        }],
        asides: asides(),
        tap: None,
        cost: Some(LookingCost {
            rounds: 5,
            ways: vec![LookedAt {
                by: "stamps".to_owned(),
                median: Nanos(9_000),
                more: Some(More { median_ns: [1.0, -1.0, 3.5], p99_ns: [2.0, 1.0, 3.0] }),
            }],
            order: vec![vec!["stamps".to_owned(), "nothing".to_owned()]],
            untold: vec![Untold { by: "trace".to_owned(), why: "no trace".to_owned() }],
        }),
    }
}

fn far_stamps() -> Vec<FarStamps> {
    vec![FarStamps {
        stamp: "rx software".to_owned(),
        asked: 9,
        came: 8,
        missing: 1,
        twice: 2,
        unknown: 3,
    }]
}

fn stamps() -> Vec<CountedStamps> {
    vec![CountedStamps {
        stamp: "tx software".to_owned(),
        asked: 20,
        came: 17,
        missing: 3,
        not_asked: 2,
        skipped: 2,
        twice: 1,
        unknown: 4,
        zero: 5,
        merged: 6,
        split: 7,
    }]
}

fn part_agreements(whole: Part) -> Vec<PartAgreement> {
    vec![PartAgreement {
        part: whole,
        told: Differences {
            used: Source::Trace,
            beside: Source::Software,
            requests: 8,
            least_ns: -7,
            median_ns: 2,
            most_ns: 30,
            within: Nanos(140),
            agree: 7,
            in_order: 7,
        },
    }]
}

fn asides() -> Vec<Aside> {
    vec![Aside {
        stamp: "tx ack".to_owned(),
        requests: 9,
        came: 7,
        missing: 2,
        not_asked: 2,
        unknown: 1,
        unordered: 1,
        contradicted: 1,
        resolution: Nanos(1),
        bound: Nanos(70),
        median: Some(Nanos(5_000)),
        p99: None,
        most: Some(Nanos(6_000)),
        series: Some("rtt-tx-ack".to_owned()),
    }]
}

#[test]
fn what_is_known_of_a_watched_process_comes_back_from_run_json() {
    let process = WatchedProcess {
        pid: Pid(77),
        name: "server".to_owned(),
        threads: vec![(Pid(78), CpuId(1))],
        port: Some(7_000),
    };
    let mut run = samples::run();
    let looking = Some(ThreadsFound { every: Nanos(200_000_000), threads: 3 });
    let lasted = Some(Nanos::SECOND);
    run.watched = Some(Box::new(Watched { process, breakdown: breakdown(), lasted, looking }));
    let text = serde_json::to_vec(&run).unwrap();
    let back = parse_run(Path::new("run.json"), &text).unwrap();
    assert_eq!(back, run);
    let json = String::from_utf8(text).unwrap();
    for word in ["\"read\"", "\"software\"", "\"request\"", "\"other\""] {
        assert!(json.contains(word), "{word}");
    }
    assert!(breakdown().has_series("rtt-part-request-sent-reply-read"));
    assert!(breakdown().has_series("rtt-tx-ack"));
    assert!(!breakdown().has_series("rtt-service"));
}
