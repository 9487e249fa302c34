//! Ledgers with a planted box: its bounds, its slope, and what a configuration buys.

use whylate_stats::rng::Rng;

use super::*;

/// A client's run of one way with these latencies.
fn way(values: impl Iterator<Item = u64>) -> SeenWay {
    let values: Histogram = values.collect();
    let mut blocks = Blocks::new(1);
    blocks.add(0.0, 1.0, &counts(&values));
    let n = values.len();
    SeenWay {
        direction: Direction::There,
        values,
        blocks,
        sent: n + 5,
        received: n,
        lost: 5,
        per_second: 10_000.0,
        from: "client0".to_owned(),
        to: "server0".to_owned(),
        trust: None,
    }
}

/// What the client and its way take.
fn error(rng: &mut Rng) -> u64 {
    2_000 + rng.exponential(400.0) as u64
}

const SIZES: [u32; 5] = [128, 256, 512, 1_024, 1_518];
/// The second configuration makes the client and its way as much slower.
const SLOWER: u64 = 3_000;

/// A box that takes 10 us and a nanosecond for each byte, twice as long under the second configuration, in
/// which everything else takes longer as well.
fn ledger(seed: u64) -> Ledger {
    let mut ledger = Ledger::default();
    let mut rng = Rng::new(seed);
    for _ in 0..3 {
        for bytes in SIZES {
            for (number, times, slower) in [(0, 1, 0), (1, 2, SLOWER)] {
                let slot = Slot::Boxed(number);
                let own = times * (10_000 + u64::from(bytes));
                let truth: Vec<u64> = (0..5_000).map(|_| own + rng.below(300)).collect();
                let measured = truth.iter().map(|t| t + slower + error(&mut rng));
                ledger.take(slot, bytes, vec![way(measured)]);
                let own = way(truth.into_iter());
                let place = Place { slot, frame_bytes: bytes, back: false };
                ledger.own.entry(place).or_default().push(own.blocks, &own.values);
                let link: Vec<u64> = (0..5_000).map(|_| slower + error(&mut rng) - 100).collect();
                ledger.take(Slot::Link(number), bytes, vec![way(link.into_iter())]);
                let errors: Vec<i64> =
                    (0..5_000).map(|_| (slower + error(&mut rng)).cast_signed() + 150).collect();
                ledger.errors.entry(place.beside(Slot::Line)).or_default().take(&errors, 0);
            }
        }
    }
    ledger
}

fn naming(configurations: &[String]) -> Naming<'_> {
    Naming {
        configurations,
        asked_pps: &|_| 10_000.0,
        series: &|place| format!("box-{}", place.frame_bytes),
        missing: &[],
        logged_by: "the test",
        link_bps: Some(8e9),
        seed: 1,
    }
}

fn two() -> Vec<String> {
    vec!["unchanged".to_owned(), "remote".to_owned()]
}

#[test]
fn bounds_of_a_planted_box_contain_what_it_wrote_down_in_every_trial() {
    for seed in 0..10 {
        let names = two();
        let sizes = ledger(seed).sizes(naming(&names));
        assert_eq!(sizes.len(), 2 * SIZES.len());
        for at in &sizes {
            assert_eq!((at.runs, at.n, at.sent, at.lost), (3, 15_000, 15_015, 15), "{at:?}");
            let told: Vec<Option<bool>> =
                at.bounds.iter().map(|bounds| at.contained(bounds.percent)).collect();
            assert!(told[..3].iter().all(|one| *one == Some(true)), "{seed}: {at:?}");
            // What three runs are worth may be too little for the p99.9.
            assert!(told.iter().all(|one| *one != Some(false)), "{seed}: {at:?}");
            let median = at.bounds[0];
            let (low, high) = (median.low_ns.unwrap(), median.high_ns.unwrap());
            assert!(low > 0.7 * high && high < 1.3 * low, "{median:?} says nothing");
        }
    }
}

#[test]
fn what_is_lost_of_frames_has_no_bound_from_above_and_makes_no_bound_from_below_better() {
    let names = two();
    let (slot, frame_bytes) = (Slot::Boxed(0), 512);
    let place = Place { slot, frame_bytes, back: false };
    let told = |of: &Ledger| {
        let sizes = of.sizes(naming(&names));
        sizes
            .into_iter()
            .find(|at| at.frame_bytes == 512 && at.configuration.as_deref() == Some("unchanged"))
    };
    let whole = told(&ledger(5)).unwrap();
    // A twentieth of the frames is lost on the way, nobody knows where: p90 has both bounds, p99 one.
    let mut lossy = ledger(5);
    let cell = lossy.cells.get_mut(&place).unwrap();
    cell.lost = cell.sample.values().len() / 19;
    let lossy = told(&lossy).unwrap();
    let of = |at: &DeviceAtSize| {
        at.bounds[..3].iter().map(|of| of.high_ns.is_some()).collect::<Vec<_>>()
    };
    assert_eq!((of(&whole), of(&lossy)), (vec![true; 3], vec![true, true, false]));
    for (with, without) in lossy.bounds.iter().zip(&whole.bounds) {
        assert!(with.high_ns.is_none_or(|high| without.high_ns.unwrap() <= high), "{lossy:?}");
        assert!(with.low_ns.is_none_or(|low| low <= without.low_ns.unwrap()), "{lossy:?}");
    }
    // The client loses a twentieth behind the line: E beyond p95 is not known, and no bound rests on it.
    let mut deaf = ledger(5);
    deaf.errors.get_mut(&place.beside(Slot::Line)).unwrap().take(&[], 15_000 / 19);
    let deaf = told(&deaf).unwrap();
    let known = |at: usize| deaf.error_quantiles[at].high_ns.is_some();
    assert!(known(0) && known(1) && !known(2) && !known(3), "{:?}", deaf.error_quantiles);
    assert!(deaf.bounds[0].low_ns.unwrap() <= whole.bounds[0].low_ns.unwrap(), "{deaf:?}");
    assert_eq!(deaf.contained(50.0), Some(true));
}

#[test]
fn each_configuration_has_bounds_by_what_everything_else_takes_under_it() {
    let names = two();
    let median = |of: &Ledger, name: &str| {
        let sizes = of.sizes(naming(&names));
        let own = sizes.into_iter().filter(|at| at.configuration.as_deref() == Some(name));
        own.map(|at| at.contained(50.0)).collect::<Vec<_>>()
    };
    let mut whole = ledger(2);
    assert_eq!(median(&whole, "remote"), [Some(true); SIZES.len()]);
    // What everything else takes in the first is less: the lower bounds of the second would be false.
    for bytes in SIZES {
        let place = Place { slot: Slot::Line(0), frame_bytes: bytes, back: false };
        let first = whole.errors.remove(&place).expect("its errors");
        whole.errors.insert(Place { slot: Slot::Line(1), ..place }, first);
    }
    assert_eq!(median(&whole, "remote"), [Some(false); SIZES.len()]);
}

#[test]
fn what_is_missing_under_one_configuration_leaves_the_others_their_bounds() {
    let names = two();
    let mut whole = ledger(1);
    whole.errors.retain(|place, _| place.slot == Slot::Line(0));
    whole.cells.retain(|place, _| place.slot != Slot::Link(1));
    let missing = [Missing { configuration: Some(1), why: "no delay line remote".to_owned() }];
    for at in whole.sizes(Naming { missing: &missing, ..naming(&names) }) {
        let is_first = at.configuration.as_deref() == Some("unchanged");
        assert_eq!(at.bounds.is_empty(), !is_first, "{at:?}");
        assert_eq!(at.no_bounds.is_none(), is_first, "{at:?}");
    }
}

#[test]
fn two_runs_say_nothing_of_how_runs_differ_and_one_that_differs_widens_all() {
    let names = two();
    let place = Place { slot: Slot::Boxed(0), frame_bytes: 128, back: false };
    let mut few = ledger(1);
    few.cells.remove(&place);
    let mut rng = Rng::new(9);
    let mut run = |late: u64| {
        let values: Vec<u64> = (0..5_000).map(|_| 12_000 + late + error(&mut rng)).collect();
        vec![way(values.into_iter())]
    };
    few.take(place.slot, place.frame_bytes, run(0));
    few.take(place.slot, place.frame_bytes, run(0));
    let told = few.sizes(naming(&names));
    let at = told.iter().find(|at| at.frame_bytes == 128 && at.runs == 2).expect("two runs");
    assert!(at.bounds.is_empty(), "{at:?}");
    assert!(at.no_bounds.as_deref().is_some_and(|why| why.contains("3 are needed")), "{at:?}");
    // The host is slower by a microsecond during the third: what all of them are worth is little.
    few.take(place.slot, place.frame_bytes, run(1_000));
    let told = few.sizes(naming(&names));
    let at = told.iter().find(|at| at.frame_bytes == 128).expect("the size");
    let differ = n_eff(&few.cells[&place].sample, 50.0);
    assert!(at.runs == 3 && differ < 100.0, "{differ}");
}

#[test]
fn without_a_bare_link_there_is_no_upper_bound_and_without_the_line_no_lower_one() {
    let names = two();
    let bounded = |of: &Ledger| of.sizes(naming(&names));
    let mut whole = ledger(1);
    whole.cells.retain(|place, _| !matches!(place.slot, Slot::Link(_)));
    for at in bounded(&whole) {
        assert!(at.bounds.iter().all(|bounds| bounds.high_ns.is_none()), "{at:?}");
        assert!(at.bounds[0].low_ns.is_some());
    }
    let mut whole = ledger(1);
    whole.errors.clear();
    assert_eq!(whole.source("line", "link"), None);
    for at in bounded(&whole) {
        assert!(at.bounds.iter().all(|bounds| bounds.low_ns.is_none()), "{at:?}");
        assert!(at.bounds[0].high_ns.is_some());
    }
    let mut whole = ledger(1);
    whole.errors.clear();
    whole.cells.retain(|place, _| !matches!(place.slot, Slot::Link(_)));
    assert!(whole.sizes(naming(&names)).iter().all(|at| at.bounds.is_empty()));
}

#[test]
fn the_slope_over_the_size_is_that_of_the_box_and_tells_how_it_forwards() {
    let names = two();
    let ledger = ledger(3);
    let told = ledger.forwarding(naming(&names));
    assert_eq!(told.len(), 2);
    let slope = told[0].slope.as_ref().unwrap();
    assert!((slope.value - 1.0).abs() < 0.1, "{slope:?}");
    // A link of 8 Gbit/s takes a nanosecond for a byte.
    assert_eq!(told[0].kind, ForwardingKind::StoreAndForward, "{told:?}");
    let slow = Naming { link_bps: Some(1e8), ..naming(&names) };
    assert_eq!(ledger.forwarding(slow)[0].kind, ForwardingKind::CutThrough);
    let memory = Naming { link_bps: None, ..naming(&names) };
    assert_eq!(ledger.forwarding(memory)[0].kind, ForwardingKind::NotTold);
}

#[test]
fn what_a_configuration_costs_is_shown_with_its_sign() {
    let names = two();
    let bought = ledger(4).bought(naming(&names));
    let median: Vec<&Bought> =
        bought.iter().filter(|of| (of.percent - 50.0).abs() < 1e-9).collect();
    assert_eq!(median.len(), SIZES.len());
    for of in median {
        let saved = of.saved_ns.unwrap();
        let expected = -(10_000.0 + SLOWER as f64 + f64::from(of.frame_bytes));
        assert!((saved / expected - 1.0).abs() < 0.05, "{of:?}");
        assert!(of.is_shown() && of.high_ns.unwrap() < 0.0, "{of:?}");
        assert_eq!((of.configuration.as_str(), of.against.as_str()), ("remote", "unchanged"));
    }
}

#[test]
fn where_rates_differ_there_are_no_bounds_which_is_told_and_elsewhere_there_are() {
    let names = two();
    let mut whole = ledger(1);
    assert_eq!(whole.source("line", "link").unwrap().unfit, None);
    let place = Place { slot: Slot::Line(0), frame_bytes: 256, back: false };
    let mut slower = way([1_000_u64].into_iter());
    slower.per_second = 5_000.0;
    whole.cells.entry(place).or_default().take(slower);
    let unfit = whole.source("line", "link").unwrap().unfit.unwrap();
    assert!(unfit.contains("at 256 bytes the delay line") && unfit.contains("5000"), "{unfit}");
    // A rate that lies 1 % apart is the same one.
    let place = Place { slot: Slot::Link(1), frame_bytes: 512, back: false };
    let runs = f64::from(whole.cells[&place].runs);
    whole.cells.entry(place).or_default().per_second = 10_090.0 * runs;
    for at in whole.sizes(naming(&names)) {
        let is_apart = at.frame_bytes == 256 && at.configuration.as_deref() == Some("unchanged");
        assert_eq!(at.bounds.is_empty(), is_apart, "{at:?}");
        assert_eq!(at.no_bounds.as_ref(), is_apart.then_some(&unfit), "{at:?}");
        assert!(at.measured[0].value.is_some(), "what was measured is told all the same");
    }
}
