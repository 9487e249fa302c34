//! Words, orders, rounds, and a backend that fails halfway: nothing here opens a port.

use whylate_model::Nanos;

use super::*;

#[test]
fn each_round_has_every_backend_that_is_left_once_in_an_order_that_the_seed_draws() {
    let all = [true; 5];
    let orders: Vec<_> = (0..40).map(|round| in_turns(&all, 7, round)).collect();
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4]);
    }
    assert!(orders.iter().any(|order| *order != orders[0]), "always the same order");
    // Each is the first of its round now and then, the first backend and its control among them.
    let firsts = |slot: usize| orders.iter().filter(|order| order[0] == slot).count();
    assert!((0..5).all(|slot| firsts(slot) > 0), "{orders:?}");
    assert_eq!(in_turns(&all, 7, 3), orders[3], "a seed has one order");
    let mut left = in_turns(&[true, true, false, true], 7, 1);
    left.sort_unstable();
    assert_eq!(left, [0, 1, 3]);
}

#[test]
fn every_transport_that_carries_datagrams_to_an_address_is_there_with_a_way_that_spins() {
    let all = Backend::all();
    let words: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(words[0], "udp spin", "the others are set against it");
    for transport in Transport::ALL {
        let spins = Backend { transport, wait: Wait::Spin };
        let there = Backend::carries(transport) && transport != Transport::Dpdk;
        assert_eq!(all.contains(&spins), there, "{transport}");
    }
    for (index, one) in all.iter().enumerate() {
        assert!(!all[..index].contains(one), "{one} is there twice");
    }
}

#[test]
fn what_was_given_up_is_no_percentile_of_a_round() {
    let values: Histogram = (1..=200).map(|of| of * 1_000).collect();
    assert_eq!(known(&values, 50.0, None).map(|of| of.0 / 1_000), Some(100));
    let above = Some(Nanos(150_000));
    assert_eq!(known(&values, 50.0, above).map(|of| of.0 / 1_000), Some(100));
    assert_eq!(known(&values, 99.0, above), None);
    assert_eq!(known(&Histogram::new(), 50.0, None), None);
}

fn row(role: BackendRole, rounds: u32) -> BackendRow {
    let way = whylate_model::flow::Way {
        frames: None,
        costs: None,
        backend: "af_xdp".to_owned(),
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
    let time = Some(Nanos(5_000));
    let of = |round| BackendRound { round, n: 500, per_second: 1e3, p50: time, p99: time };
    let measured = (rounds > 0).then(|| BackendMeasured {
        service: "xdp-spin-service".to_owned(),
        response: None,
        way,
        packets: Packets::default(),
        rounds: (0..rounds).map(of).collect(),
        trust: None,
    });
    BackendRow { backend: "xdp spin".to_owned(), role, measured, reason: None, saved: Vec::new() }
}

#[test]
fn a_backend_that_fails_in_its_third_round_keeps_two_and_the_reason_and_the_first_ends_the_run() {
    let error =
        || RecordError::Flow { flow: "xdp-spin".to_owned(), reason: "it went down".to_owned() };
    let mut failing = row(BackendRole::Compared, 2);
    assert_eq!(give_up(&mut failing, error()).unwrap(), "it went down");
    assert_eq!(failing.reason.as_deref(), Some("it went down"));
    assert_eq!(failing.measured.unwrap().rounds.len(), 2);
    // It is not tried again.
    assert_eq!(in_turns(&[true, true, failing.reason.is_none()], 1, 3).len(), 2);

    let mut refused = row(BackendRole::Compared, 0);
    assert!(give_up(&mut refused, error()).is_ok() && refused.measured.is_none());
    for role in [BackendRole::First, BackendRole::Control] {
        assert!(give_up(&mut row(role, 0), error()).is_err(), "nothing to set others against");
        assert!(give_up(&mut row(role, 2), error()).is_ok(), "what there is stays");
    }
}
