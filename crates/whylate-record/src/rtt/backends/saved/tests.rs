//! Planted rounds: known savings, wide controls, backends that end halfway.

use whylate_model::Nanos;
use whylate_model::flow::{Packets, Way};
use whylate_stats::rng::Rng;

use super::*;

/// Rounds of a backend whose p50 is `p50` and whose p99 is twice that, each value off by up to half of
/// `noise` while all drift by a factor of two.
fn rounds(p50: f64, noise: f64, number: u32, rng: &mut Rng) -> Vec<BackendRound> {
    let round = |round: u32| {
        let drift = 1.0 + f64::from(round) / 16.0;
        let mut off = || Nanos((drift * 1e3 * (1.0 + noise * (rng.unit() - 0.5))).round() as u64);
        let times = |of: Nanos, factor: f64| Some(Nanos((of.0 as f64 * factor / 1e3) as u64));
        let (p50, p99) = (times(off(), p50), times(off(), 2.0 * p50));
        BackendRound { round, n: 1_000, per_second: 1_000.0, p50, p99 }
    };
    (0..number).map(round).collect()
}

fn row(role: BackendRole, rounds: Vec<BackendRound>) -> BackendRow {
    let way = Way {
        frames: None,
        costs: None,
        backend: "udp over ipv4".to_owned(),
        path: "a -> b".to_owned(),
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
    let (service, packets) = ("udp-spin-service".to_owned(), Packets::default());
    let measured = BackendMeasured { service, response: None, way, packets, rounds, trust: None };
    BackendRow {
        backend: "udp spin".to_owned(),
        role,
        measured: Some(measured),
        reason: None,
        saved: Vec::new(),
    }
}

/// The first of 10 us, itself again, and another of `other` ns.
fn planted(other: f64, noise: f64, number: u32, rng: &mut Rng) -> Vec<BackendRow> {
    [(BackendRole::First, 1e4), (BackendRole::Control, 1e4), (BackendRole::Compared, other)]
        .map(|(role, p50)| row(role, rounds(p50, noise, number, rng)))
        .to_vec()
}

fn why(saved: &Saved) -> &str {
    match &saved.claim {
        Some(Claim::Nothing { why }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_planted_saving_is_found_whatever_the_host_drifts_and_its_interval_holds_it() {
    let mut rng = Rng::new(1);
    // 16 rounds drift from 1 to 1.94 times: what is saved in the mean is 4 us times their mean.
    let mean = 4_000.0 * (1.0 + 7.5 / 16.0);
    let (mut held, mut held_ratio) = (0, 0);
    for seed in 0..100 {
        let mut rows = planted(6_000.0, 0.02, 16, &mut rng);
        fill(&mut rows, true, seed);
        let saved = rows[2].saved_at(50.0).unwrap();
        assert_eq!((saved.rounds, &saved.claim), (16, &Some(Claim::Saves)), "{saved:?}");
        let within = |of: Option<(f64, f64)>, truth: f64| {
            let (low, high) = of.unwrap();
            u32::from(low <= truth && truth <= high)
        };
        assert!((saved.mean_ns / mean - 1.0).abs() < 0.05, "{saved:?}");
        held += within(saved.interval_ns, mean);
        held_ratio += within(saved.ratio_interval, 0.6);
        let control = rows[1].saved_at(50.0).unwrap();
        assert!(control.half_width().unwrap() <= CLOSE && control.claim.is_none());
        let tail = rows[2].saved_at(99.0).unwrap();
        assert!((tail.mean_ns / (2.0 * mean) - 1.0).abs() < 0.05, "{tail:?}");
    }
    // The drift widens the interval of the difference; that of the ratio is of the noise alone.
    assert!(held >= 88 && held_ratio >= 88, "{held} and {held_ratio} of 100");
    let mut rows = planted(6_000.0, 0.02, 8, &mut rng);
    fill(&mut rows, true, 1);
    assert_eq!(rows.iter().map(|row| row.saved.len()).collect::<Vec<_>>(), [0, 2, 2]);
}

#[test]
fn what_costs_more_is_said_to_and_what_is_the_same_is_no_difference() {
    let mut rng = Rng::new(3);
    let mut rows = planted(13_000.0, 0.02, 12, &mut rng);
    fill(&mut rows, true, 1);
    let slower = rows[2].saved_at(50.0).unwrap();
    assert_eq!(slower.claim, Some(Claim::Costs));
    assert!(slower.mean_ns < 0.0 && slower.ratio > 1.2, "{slower:?}");
    let mut rows = planted(10_000.0, 0.02, 12, &mut rng);
    let copy = rows[0].measured.clone();
    (rows[1].measured, rows[2].measured) = (copy.clone(), copy);
    fill(&mut rows, true, 1);
    let same = rows[2].saved_at(50.0).unwrap();
    assert_eq!((same.mean_ns, &same.claim), (0.0, &Some(Claim::NoDifference)));
}

#[test]
fn a_wide_control_few_rounds_and_another_rate_make_no_claim_and_say_why() {
    let mut rng = Rng::new(4);
    let mut rows = planted(5_000.0, 0.6, 8, &mut rng);
    fill(&mut rows, true, 1);
    let noisy = rows[2].saved_at(50.0).unwrap();
    assert!(rows[1].saved_at(50.0).unwrap().half_width().unwrap() > CLOSE);
    assert!(why(noisy).contains(" differs from itself by up to +-"), "{noisy:?}");
    assert!(noisy.interval_ns.is_some(), "the width is told all the same");

    let mut rows = planted(5_000.0, 0.001, 3, &mut rng);
    fill(&mut rows, true, 1);
    assert_eq!(why(rows[2].saved_at(50.0).unwrap()), "only 3 rounds have both, and 4 are needed");

    let slower = |rows: &mut Vec<BackendRow>| {
        let measured = rows[2].measured.as_mut().unwrap();
        measured.rounds.iter_mut().for_each(|round| round.per_second = 900.0);
    };
    for (paced, claimed) in [(true, false), (false, true)] {
        let mut rows = planted(5_000.0, 0.001, 8, &mut rng);
        slower(&mut rows);
        fill(&mut rows, paced, 1);
        let claim = rows[2].saved_at(50.0).unwrap().claim.clone();
        assert_eq!(claim == Some(Claim::Saves), claimed, "{claim:?}");
    }
}

#[test]
fn a_backend_that_ended_early_is_compared_over_the_rounds_it_has() {
    let mut rng = Rng::new(5);
    let mut rows = planted(5_000.0, 0.001, 8, &mut rng);
    rows[2].measured.as_mut().unwrap().rounds.truncate(2);
    fill(&mut rows, true, 1);
    let saved = rows[2].saved_at(50.0).unwrap();
    assert_eq!(saved.rounds, 2);
    assert_eq!(why(saved), "only 2 rounds have both, and 4 are needed");
    assert!((saved.ratio - 0.5).abs() < 0.01, "{saved:?}");
    // Five rounds are enough, with two of the others missing.
    let mut rows = planted(5_000.0, 0.001, 8, &mut rng);
    rows[2].measured.as_mut().unwrap().rounds.drain(..3);
    fill(&mut rows, true, 1);
    let saved = rows[2].saved_at(50.0).unwrap();
    assert_eq!((saved.rounds, &saved.claim), (5, &Some(Claim::Saves)));
}

#[test]
fn what_was_never_measured_and_what_is_not_known_saves_nothing() {
    let mut rng = Rng::new(6);
    let mut rows = planted(5_000.0, 0.001, 8, &mut rng);
    rows[2].measured = None;
    fill(&mut rows, true, 1);
    assert!(rows[2].saved.is_empty() && rows[1].saved.len() == 2);
    let mut rows = planted(5_000.0, 0.001, 8, &mut rng);
    let measured = rows[2].measured.as_mut().unwrap();
    measured.rounds.iter_mut().for_each(|round| round.p99 = None);
    fill(&mut rows, true, 1);
    assert!(rows[2].saved_at(99.0).is_none() && rows[2].saved_at(50.0).is_some());
    fill(&mut [], true, 1);
}
