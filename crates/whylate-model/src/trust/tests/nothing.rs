//! What a run must have to have measured anything, by its kind.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::series::Series;
use crate::wake::WakeSummary;

fn nothing(run: &Run) -> bool {
    poor(run) == ["nothing was measured"]
}

#[test]
fn nothing_was_measured_where_no_figure_of_its_kind_is() {
    let mut run = clean(include_str!("../../../../../tests/runs/switch-cost/run.json"));
    assert!(!nothing(&run));
    let costs = run.switch_cost.as_mut().unwrap();
    let direct = std::mem::take(&mut costs.direct);
    assert!(!nothing(&run), "there is the cost through the caches");
    let costs = run.switch_cost.as_mut().unwrap();
    costs.indirect.clear();
    assert!(nothing(&run));
    run.switch_cost.as_mut().unwrap().direct = direct;
    assert!(!nothing(&run));

    let mut run = clean(include_str!("../../../../../tests/runs/backends/run.json"));
    assert!(!nothing(&run));
    run.backends.as_mut().unwrap().rows.iter_mut().for_each(|row| row.measured = None);
    assert!(nothing(&run));

    let mut run = clean(include_str!("../../../../../tests/runs/calibrate/run.json"));
    assert!(!nothing(&run));
    run.calibration.as_mut().unwrap().backends.clear();
    assert!(nothing(&run));

    let mut run = clean(include_str!("../../../../../tests/runs/wake/run.json"));
    assert!(!nothing(&run));
    run.wakes[0].woken = 0;
    assert!(nothing(&run));

    let mut run = requests();
    run.flows[0].packets = Packets { sent: 1, received: 1, ..Packets::default() };
    assert!(!nothing(&run));
    run.flows[0].packets = Packets::default();
    assert!(nothing(&run));

    let mut run = gaps();
    run.series.clear();
    assert!(!nothing(&run), "a loop ran");
    run.gaps[0].end = run.gaps[0].start;
    assert!(nothing(&run));
    run.series = gaps().series;
    assert!(!nothing(&run));

    let mut run = clean(include_str!("../../../../../tests/runs/threads/run.json"));
    run.series.clear();
    assert!(!nothing(&run));
    run.threads.iter_mut().for_each(|thread| thread.blocks = 0);
    assert!(nothing(&run));
}

#[test]
fn one_of_several_that_measured_something_is_enough() {
    let mut run = clean(include_str!("../../../../../tests/runs/wake/run.json"));
    let empty = WakeSummary { woken: 0, ..run.wakes[0].clone() };
    run.wakes.push(empty);
    run.threads.push(run.threads[0].clone());
    assert!(run.only_wakes() && !nothing(&run));

    let mut run = requests();
    let mut empty = run.flows[0].clone();
    empty.packets = Packets::default();
    run.flows.push(empty);
    assert!(!nothing(&run));

    let mut run = gaps();
    run.series.clear();
    let mut empty = run.gaps[0].clone();
    empty.end = empty.start;
    run.gaps.push(empty);
    assert!(!nothing(&run));
    run.gaps.remove(0);
    assert!(nothing(&run));
    run.series = [0, 7].map(|n| Series { n, ..gaps().series[0].clone() }).into();
    assert!(!nothing(&run));
    run.series.pop();
    assert!(nothing(&run));

    let mut run = clean(include_str!("../../../../../tests/runs/threads/run.json"));
    run.series.clear();
    run.threads[0].blocks = 0;
    assert!(!nothing(&run));
}

fn set<T: DeserializeOwned>(of: &mut Option<Box<T>>, json: Value) {
    *of = Some(Box::new(serde_json::from_value(json).unwrap()));
}

/// A run with one kind of answer and nothing else.
type OfKind = (&'static str, fn(&mut Run));

#[test]
fn for_whom_nobody_asked_anything_nothing_is_an_answer() {
    let kinds: [OfKind; 5] = [
        ("reflected", |run| {
            set(
                &mut run.reflected,
                json!({"format_version": 1, "protocol": "raw", "backend": "udp",
                "listening": "", "wait": "", "busy_polling": null, "cpu": null, "since_ns": 0,
                "lasted_ns": 0, "ended": "stopped", "answered": 0, "warm_ups": 0, "unasked": 0,
                "foreign": 0, "unsent": 0, "first_unsent": null, "connections": null,
                "residence": null, "clients": [], "clients_replaced": 0, "without_account": 0,
                "warnings": []}),
            );
        }),
        ("forward", |run| {
            set(
                &mut run.forward,
                json!({"format_version": 1, "backend": "udp", "wait": "",
                "busy_polling": null, "stamps": "off", "stamping": null, "work_ns": 0,
                "since_ns": 0, "lasted_ns": 0, "ended": "stopped", "ports": [],
                "directions": [], "threads": [], "warnings": []}),
            );
        }),
        ("delay", |run| {
            set(
                &mut run.delay,
                json!({"format_version": 1, "transport": "packet", "wait": "",
                "ports": ["a", "b"], "ends": [], "directions": [], "base": {"base_ns": 0,
                "error_ns": 0, "error_median_ns": 0, "error_max_ns": 0, "at_ns": 0, "frames": 0,
                "resolution_ns": 1}, "capacity_frames": 0, "capacity_bytes": 0, "seed": 0,
                "since_ns": 0, "lasted_ns": 0, "ended": "stopped", "changes": [], "truths": null,
                "cpu": null, "looks": 0, "in_vain": 0, "warnings": []}),
            );
        }),
        ("watched", |run| {
            let point = |station: &str| json!({"leg": "request", "station": station});
            set(
                &mut run.watched,
                json!({"process": {"pid": 1, "name": "init", "threads": []},
                "breakdown": {"whole": {"from": point("delivered"), "to": point("read")},
                "points": [], "requests": 0, "all": {"requests": 0, "total_mean_ns": 0.0,
                "parts": [], "not_told_apart_ns": 0.0, "residual_ns": 0.0}}}),
            );
        }),
        ("device", |run| {
            set(
                &mut run.device,
                json!({"name": "bridge", "description": "", "backend": "packet spin",
                "error": null, "sizes": [], "forwarding": []}),
            );
        }),
    ];
    let mut run = gaps();
    (run.gaps, run.series) = (Vec::new(), Vec::new());
    assert!(nothing(&run));
    for (name, answered) in kinds {
        let mut run = run.clone();
        answered(&mut run);
        assert!(!nothing(&run), "{name}");
    }
}

#[test]
fn a_watch_that_saw_no_request_is_poor_once_it_has_ended() {
    let mut run = clean(include_str!("../../../../../tests/runs/watch/run.json"));
    assert_eq!(poor(&run), Vec::<String>::new());
    let watched = run.watched.as_mut().unwrap();
    (watched.breakdown.requests, watched.breakdown.series) = (0, None);
    run.series.clear();
    assert_eq!(poor(&run), [NO_REQUEST]);
    run.state = RunState::Running;
    assert_eq!(poor(&run), Vec::<String>::new(), "it goes on");
}
