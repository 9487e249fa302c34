//! A planted comparison, and what is said of it.

use whylate_model::Nanos;
use whylate_model::backends::{BackendMeasured, BackendRound};
use whylate_model::flow::{Asked, Direction, Packets, Way};

use super::*;
use crate::terminal::{Style, render};
use crate::timeline::tests::recorded;

/// A run of three backends and the control: one saves half, one is not measured.
pub(crate) fn planted() -> Run {
    let mut run = recorded();
    let sample = run.series[0].clone();
    run.gaps.clear();
    run.series.clear();
    let (mut rows, mut add) = (Vec::new(), |name: &str, times: (u64, u64)| {
        let mut series = sample.clone();
        series.name = format!("{name}-service");
        for (percent, value) in [(50.0, times.0), (99.0, times.1)] {
            if let Some(of) =
                series.quantiles.iter_mut().find(|of| (of.percent - percent).abs() < 1e-9)
            {
                of.value = Some(Nanos(value));
                (of.low, of.high) = (Some(Nanos(value * 9 / 10)), Some(Nanos(value * 11 / 10)));
            }
        }
        run.series.push(series);
    });
    for (backend, role, name, times, saved) in [
        ("udp spin", BackendRole::First, "udp-spin", (10_000, 20_000), None),
        (
            "udp spin",
            BackendRole::Control,
            "udp-spin-again",
            (10_100, 20_200),
            Some((-100.0, 1.01)),
        ),
        ("xdp spin", BackendRole::Compared, "xdp-spin", (5_000, 9_000), Some((5_000.0, 0.5))),
    ] {
        add(name, times);
        let saved = saved.map(|(mean_ns, ratio)| Saved {
            percent: 50.0,
            rounds: 8,
            mean_ns,
            interval_ns: Some((mean_ns - 50.0, mean_ns + 50.0)),
            ratio,
            ratio_interval: Some((ratio - 0.01, ratio + 0.01)),
            claim: (role == BackendRole::Compared).then_some(Claim::Saves),
        });
        rows.push(BackendRow {
            backend: backend.to_owned(),
            role,
            measured: Some(measured(name)),
            reason: None,
            saved: saved.into_iter().collect(),
        });
    }
    rows.push(BackendRow {
        backend: "packet spin".to_owned(),
        role: BackendRole::Compared,
        measured: None,
        reason: Some("it needs CAP_NET_RAW".to_owned()),
        saved: Vec::new(),
    });
    run.backends = Some(Box::new(Backends {
        other_end: "a reflector on CPU 0 through the bed lab".to_owned(),
        both_ends: true,
        asked: asked(),
        rounds: 8,
        length: Nanos(500_000_000),
        warmup: Nanos(20_000_000),
        order: vec![vec![1, 0, 2]; 8],
        rows,
    }));
    run
}

fn asked() -> Asked {
    Asked {
        arrivals: "constant".to_owned(),
        per_second: Some(1_000.0),
        bytes: 64,
        frame_bytes: Some(110),
        timeout: Some(Nanos::SECOND),
        most_under_way: None,
        one_way: false,
        direction: Direction::There,
        repeats_after: None,
    }
}

fn measured(name: &str) -> BackendMeasured {
    let way = Way {
        frames: None,
        costs: None,
        backend: name.to_owned(),
        path: "198.18.0.1:1 -> 198.18.0.2:2".to_owned(),
        wait: "spin".to_owned(),
        protocol: "raw".to_owned(),
        stamps: "tsc".to_owned(),
        resolution_ns: 1.0,
        read_cost_min_ns: 1.0,
        read_cost_median_ns: 1.0,
        precision_ns: 1.0,
        socket: None,
        resolved_in: None,
        across: None,
    };
    let time = Some(Nanos(1));
    let round = |round| BackendRound { round, n: 500, per_second: 1e3, p50: time, p99: time };
    BackendMeasured {
        service: format!("{name}-service"),
        response: None,
        way,
        packets: Packets::default(),
        rounds: (0..8).map(round).collect(),
        trust: None,
    }
}

#[test]
fn a_backend_is_grey_beyond_its_own_limit_and_others_are_not() {
    use crate::trusted::{is_beyond, said, tests::trust};
    let mut run = planted();
    let rows = run.backends.as_deref_mut().map(|of| &mut of.rows).unwrap();
    let mut measured = rows.iter_mut().filter_map(|row| row.measured.as_mut());
    let xdp = measured.find(|of| of.service.starts_with("xdp")).unwrap();
    xdp.trust = Some(trust(Some(50.0)));
    let service = xdp.service.clone();
    assert!(!is_beyond(&run, &service, 50.0) && is_beyond(&run, &service, 99.0));
    assert_eq!(said(&run).len(), 1);
    let of = run.backends.as_deref().unwrap();
    for (row, cells) in of.rows.iter().zip(&round_trips(&run, of).texts()[1..]) {
        let its = row.measured.as_ref().is_some_and(|of| of.service == service);
        assert!(!cells[2].starts_with('~') && !cells[3].starts_with('~'), "{cells:?}");
        let marked = [&cells[4], &cells[5]].map(|cell| cell.starts_with('~') || cell == "–");
        assert!(marked == [true; 2] || !its, "{cells:?}");
        assert!(its || !cells.iter().any(|cell| cell.starts_with('~')), "{cells:?}");
    }
}

#[test]
fn a_comparison_is_told_with_what_is_saved_its_control_and_why_a_backend_is_missing() {
    let run = planted();
    let of = run.backends.as_deref().unwrap();
    let text = render(&run, Style::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "xdp spin saves 5.00 µs (95% CI 4.95–5.05 µs) of udp spin's p50 (10 µs).",
        "packet spin was not measured: it needs CAP_NET_RAW",
        "control: p50 of udp spin again over that of udp spin: 1.01 (1.00–1.02), that is ±1.0%, 8 rounds",
        "xdp spin p50 5.00 µs",
        "udp spin again p50 −100 ns",
        "the same of each: 1,000/s (constant), 64 bytes, 500 ms after a warm-up of 20 ms in each of 8",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let rows = round_trips(&run, of).rows;
    assert_eq!(rows[2][2..], ["5 µs", "4.5–5.5 µs", "9 µs", "8.1–9.9 µs"]);
    assert_eq!(rows[3], ["packet spin", "–", "–", "–", "–", "–"]);
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    for line in render(&planted(), Style::default()).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn what_is_not_claimed_is_said_and_is_no_answer() {
    let mut run = planted();
    let of = run.backends.as_mut().unwrap();
    let why = "udp spin differs from itself by up to +-9% (at most 3% is allowed)".to_owned();
    of.rows[2].saved[0].claim = Some(Claim::Nothing { why });
    let of = run.backends.as_deref().unwrap();
    let said = remarks(&run, of).join("\n");
    assert!(
        said.contains("no claim of the p50 of xdp spin: udp spin differs from itself"),
        "{said}"
    );
    assert!(savings(&run, of).unwrap().rows.iter().any(|row| row[6] == "none"));
}
