//! Periods are planted among gaps without order, and each figure is held against one worked out beside it.

use super::*;

const HZ: Hertz = Hertz(2.5e9);

/// A small generator, so that the tests are the same on every run.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn ticks(mut ns: Vec<f64>) -> Vec<Ticks> {
    ns.sort_by(f64::total_cmp);
    ns.into_iter().map(|ns| Ticks(1_000_000 + (ns * 2.5) as u64)).collect()
}

fn disordered(dice: &mut Dice, per_s: f64, span_ns: f64) -> Vec<f64> {
    let mut at = 0.0;
    let mut starts = Vec::new();
    while at < span_ns {
        at -= dice.unit().max(1e-12).ln() * 1e9 / per_s;
        starts.push(at);
    }
    starts
}

fn tick(dice: &mut Dice, period_ns: f64, jitter_ns: f64, span_ns: f64) -> Vec<f64> {
    let n = (span_ns / period_ns) as usize;
    (0..n).map(|k| 7e5 + k as f64 * period_ns + dice.unit() * jitter_ns).collect()
}

#[test]
fn a_planted_tick_is_found_among_disordered_gaps_with_its_share() {
    for (rate, noise) in [(250.0, 450.0), (1000.0, 300.0), (100.0, 100.0), (300.0, 0.1)] {
        let mut dice = Dice(42);
        let mut starts = tick(&mut dice, 1e9 / rate, 5e3, 10e9);
        let planted = starts.len() as f64;
        starts.extend(disordered(&mut dice, noise, 10e9));
        let planted = planted / starts.len() as f64;
        let found = r9_period(&ticks(starts), HZ).expect("a tick");
        assert_eq!(found.tick_hz(), Some(rate as u32), "{found:?}");
        assert!((found.share - planted).abs() < 0.1, "{found:?}, planted {planted}");
    }
}

#[test]
fn gaps_without_order_have_no_period() {
    for seed in 1..20 {
        let starts = disordered(&mut Dice(seed), 700.0, 10e9);
        assert_eq!(r9_period(&ticks(starts), HZ), None, "seed {seed}");
    }
}

#[test]
fn the_echo_of_each_tick_is_not_taken_for_a_period() {
    let mut dice = Dice(7);
    let mut starts = tick(&mut dice, 4e6, 1e3, 10e9);
    let echoes: Vec<f64> = starts.iter().map(|start| start + 3e5).collect();
    starts.extend(echoes);
    let found = r9_period(&ticks(starts), HZ).expect("a tick");
    assert_eq!(found.tick_hz(), Some(250), "{found:?}");
}

#[test]
fn a_period_that_is_no_kernels_tick_is_told_as_it_is() {
    let starts = tick(&mut Dice(3), 7.3e6, 1e3, 5e9);
    let found = r9_period(&ticks(starts), HZ).expect("a period");
    assert_eq!(found.tick_hz(), None);
    assert!((found.period_ns / 7.3e6 - 1.0).abs() < 0.001, "{found:?}");
    let finding = r9_finding(&found, Among::NoEventVirtual, CpuId(1), 684);
    assert_eq!(finding.confidence, Confidence::Possible);
    assert!(finding.text.contains("hypervisor"), "{}", finding.text);
}

#[test]
fn few_gaps_or_none_have_no_period() {
    assert_eq!(r9_period(&[], HZ), None);
    assert_eq!(r9_period(&[Ticks(1); 100], HZ), None);
    let few = tick(&mut Dice(3), 4e6, 0.0, 0.1e9);
    assert_eq!(r9_period(&ticks(few), HZ), None);
}

#[test]
fn the_sentence_names_what_the_gaps_say() {
    let periodic = Periodic { period_ns: 4e6, share: 0.36, gaps: 1000, skips: false };
    let finding = r9_finding(&periodic, Among::Timer, CpuId(2), 1000);
    assert_eq!(
        finding.text,
        "36 % of 1000 gaps with a timer interrupt come every 4 ms (250 Hz): the kernel's tick"
    );
    assert_eq!(finding.confidence, Confidence::Likely);
    let skipping = Periodic { skips: true, ..periodic };
    assert_eq!(
        r9_finding(&skipping, Among::Timer, CpuId(2), 4_000_000).text,
        "36 % of the first 1000 of 4000000 gaps with a timer interrupt come at multiples of \
         4 ms (250 Hz): the kernel's tick"
    );
}

/// A thread that is switched out at a tick and comes back at another: gaps are mostly three
/// ticks apart, sometimes two or five.
#[test]
fn gaps_some_ticks_apart_are_the_ticks_and_no_period_of_their_own() {
    let mut dice = Dice(11);
    let (mut at, mut starts) = (7e5, Vec::new());
    for _ in 0..1_000 {
        let ticks = match dice.unit() {
            x if x < 0.05 => 2.0,
            x if x < 0.1 => 5.0,
            _ => 3.0,
        };
        at += ticks * 4e6;
        starts.push(at + dice.unit() * 5e3);
    }
    let found = r9_period(&ticks(starts), HZ).expect("the tick");
    assert_eq!(found.tick_hz(), Some(250), "{found:?}");
    assert!(found.skips && found.share > 0.9, "{found:?}");
}

#[test]
fn the_tick_is_found_however_often_its_multiples_stand_out() {
    // Work after every third tick makes the multiple the higher peak.
    let mut dice = Dice(12);
    let mut starts = tick(&mut dice, 4e6, 5e3, 10e9);
    for later in [2e5, 5e5, 9e5, 1.4e6] {
        starts.extend(tick(&mut dice, 12e6, 5e3, 10e9).iter().map(|start| start + later));
    }
    let found = r9_period(&ticks(starts), HZ).expect("a tick");
    assert_eq!(found.tick_hz(), Some(250), "{found:?}");
}

#[test]
fn a_period_is_held_against_its_parts_and_multiples_up_to_five_within_what_is_looked_for() {
    let mut of = with_parts_and_multiples(&[4.5e6]);
    of.sort_by(f64::total_cmp);
    let us: Vec<u64> = of.iter().map(|period| (period / 1e3).round() as u64).collect();
    assert_eq!(us, [900, 1_125, 1_500, 2_250, 4_500, 9_000, 13_500, 18_000]);
    let of = with_parts_and_multiples(&[100_000.0, 99_999.0, 20e6, 19.9e6]);
    assert!(of.contains(&100_000.0) && !of.contains(&99_999.0), "{of:?}");
    assert!(of.contains(&19.9e6) && !of.contains(&20e6), "{of:?}");
    assert_eq!(with_parts_and_multiples(&[2e5]).len(), 6, "a part of 100 us is, one of 67 is not");
}

#[test]
fn beats_and_a_minority_at_some_period_are_not_told() {
    for (period, planted, noise) in [(9.681e6, 0.1, 500.0), (2.64e5, 0.19, 3_000.0)] {
        for seed in 1..6 {
            let mut dice = Dice(seed);
            let mut starts = disordered(&mut dice, noise, 5e9);
            let wanted = (starts.len() as f64 * planted / (1.0 - planted)) as usize;
            let mut train = tick(&mut dice, period, 1e3, 5e9);
            train.truncate(wanted);
            starts.extend(train);
            assert_eq!(r9_period(&ticks(starts), HZ), None, "{period} ns, seed {seed}");
        }
    }
    // Two trains whose beat comes round every 9.68 ms.
    let mut dice = Dice(21);
    let mut starts = tick(&mut dice, 4.4e6, 1e3, 10e9);
    starts.extend(tick(&mut dice, 8.07e6, 1e3, 10e9));
    starts.extend(disordered(&mut dice, 300.0, 10e9));
    assert_eq!(r9_period(&ticks(starts), HZ), None);
}

/// Starts, in ns, of a train of so many gaps, and behind it of so many that have no neighbour within some periods.
fn train_and_alone(train: usize, alone: usize, period: f64) -> Vec<f64> {
    let of_train = (0..train).map(|k| k as f64 * period);
    let behind = train as f64 * period;
    of_train.chain((1..=alone).map(|k| behind + k as f64 * 100.37 * period)).collect()
}

const PERIOD: f64 = 4e6;

#[test]
fn the_share_is_that_of_members_beyond_what_chance_gives_at_this_rate() {
    let at = train_and_alone(600, 400, PERIOD);
    // At one gap in a millisecond chance makes members of 6.416 % of gaps without order.
    let found = judge(&at, 1e-6, PERIOD).expect("most are members");
    assert!((found.share - 0.572_576_027).abs() < 1e-9, "{found:?}");
    assert_eq!((found.gaps, found.skips), (1_000, false));
    assert!((found.period_ns - PERIOD).abs() < 1e-6, "{found:?}");
    // Where chance makes members of half of them, nothing is told.
    let all = train_and_alone(1_000, 0, PERIOD);
    assert!(judge(&all, 3.7e-6, PERIOD).is_some_and(|found| (found.share - 1.0).abs() < 1e-9));
    assert_eq!(judge(&all, 3.9e-6, PERIOD), None);
}

#[test]
fn so_many_members_as_chance_may_well_give_are_no_period_nor_are_forty_nine() {
    let of = |train, alone, rate| judge(&train_and_alone(train, alone, PERIOD), rate, PERIOD);
    // Six standard deviations above chance are 788.63 of 10 000.
    assert_eq!(of(788, 9_212, 1e-6), None);
    assert!(of(789, 9_211, 1e-6).is_some());
    assert_eq!(of(49, 0, 1e-12), None);
    assert!(of(50, 0, 1e-12).is_some());
}

#[test]
fn a_member_is_one_of_three_in_a_row_each_within_a_fiftieth_of_its_place() {
    // A train of four hundred says what the period is; groups of gaps follow, far apart.
    let with = |group: &[f64]| {
        let mut at = train_and_alone(400, 0, PERIOD);
        for k in 1..=300 {
            let begins = 400.0 * PERIOD + f64::from(k) * 100.37 * PERIOD;
            at.extend(group.iter().map(|start| begins + start * PERIOD));
        }
        let found = judge(&at, 1e-12, PERIOD).expect("the train");
        (found.share * at.len() as f64).round() as usize - 400
    };
    assert_eq!(with(&[0.0]), 0);
    assert_eq!(with(&[0.0, 1.0]), 0, "two are no row");
    assert_eq!(with(&[0.0, 2.0]), 0);
    assert_eq!(with(&[0.0, 1.0, 2.0]), 900, "the first, the middle and the last");
    assert_eq!(with(&[0.0, 1.0, 3.0]), 0);
    for (off, members) in [(0.0199, 900), (-0.0199, 900), (0.0201, 0), (-0.0201, 0)] {
        assert_eq!(with(&[0.0, 1.0 + off, 2.0]), members, "{off}");
    }
}

#[test]
fn the_period_is_the_lower_middle_one_of_the_differences_within_a_bin_of_it() {
    assert_eq!(median_difference(&[0.0, 99.0, 200.0, 299.0, 1_000.0], 100.0), Some(99.0));
    assert_eq!(median_difference(&[0.0, 101.0, 202.0, 301.0, 1_000.0], 100.0), Some(101.0));
    assert_eq!(median_difference(&[0.0, 99.0, 200.0], 100.0), Some(99.0), "the lower of two");
    assert_eq!(median_difference(&[0.0, 98.0], 100.0), Some(98.0));
    assert_eq!(median_difference(&[0.0, 102.0], 100.0), Some(102.0));
    assert_eq!(median_difference(&[0.0, 97.9], 100.0), None);
    assert_eq!(median_difference(&[0.0, 102.1], 100.0), None);
    // What lies between two does not hide the later one.
    assert_eq!(median_difference(&[0.0, 50.0, 100.0], 100.0), Some(100.0));
    assert_eq!(median_difference(&[], 100.0), None);
}

#[test]
fn what_stands_out_are_a_period_and_its_multiples_and_nothing_where_there_is_no_order() {
    let at = train_and_alone(1_000, 0, PERIOD);
    let found = candidates(&at, 1.0 / PERIOD);
    let mut us: Vec<u64> = found.iter().map(|period| (period / 1e3).round() as u64).collect();
    us.sort_unstable();
    us.dedup();
    // A difference of 20 ms is beyond what is looked at.
    assert_eq!(us, [4_000, 8_000, 12_000, 16_000]);
    assert!((found[0] - PERIOD).abs() < 1.0, "the highest first: {found:?}");
    for seed in 1..6 {
        let at = disordered(&mut Dice(seed), 3_000.0, 3e9);
        let rate = (at.len() - 1) as f64 / (at[at.len() - 1] - at[0]);
        assert_eq!(candidates(&at, rate), [0.0; 0], "seed {seed}");
        // A hundred and fifty gaps at 2.64 ms among nine thousand stand out.
        let mut among = at.clone();
        among.extend(tick(&mut Dice(seed), 2.64e6, 0.0, 3e9).iter().take(600));
        among.sort_by(f64::total_cmp);
        let found = candidates(&among, rate);
        let is_near = |period: &f64| (period / 2.64e6 - 1.0).abs() < 0.02;
        assert!(found.iter().any(is_near), "seed {seed}: {found:?}");
    }
    let at_most: Vec<f64> = (1..=5_000).map(|k| f64::from(k * k % 7_919) * 3e5).collect();
    let mut at_most = at_most;
    at_most.sort_by(f64::total_cmp);
    assert!(candidates(&at_most, 1e-9).len() <= CANDIDATES_MAX);
}

#[test]
fn of_more_gaps_than_are_looked_at_the_first_are() {
    // So far apart they have no period that is looked for; the tick behind them has.
    let mut starts = tick(&mut Dice(5), 30e6, 0.0, 30e6 * STARTS_MAX as f64);
    let behind = 30e6 * STARTS_MAX as f64;
    starts.extend(tick(&mut Dice(5), 1e6, 0.0, 2e9).iter().map(|start| behind + start));
    assert_eq!(r9_period(&ticks(starts.clone()), HZ), None);
    let found = r9_period(&ticks(starts.split_off(STARTS_MAX)), HZ).expect("a tick");
    assert_eq!((found.gaps, found.tick_hz()), (2_000, Some(1_000)));
}

#[test]
fn a_period_is_a_ticks_within_three_thousandths() {
    let of = |period_ns| Periodic { period_ns, share: 1.0, gaps: 100, skips: false }.tick_hz();
    for (ns, hz) in [(1e6, 1_000), (1e9 / 300.0, 300), (4e6, 250), (5e6, 200), (1e7, 100)] {
        assert_eq!(of(ns), Some(hz));
        assert_eq!((of(ns * 1.002_9), of(ns * 0.997_1)), (Some(hz), Some(hz)));
        assert_eq!((of(ns * 1.003_1), of(ns * 0.996_9)), (None, None));
    }
}

#[test]
fn up_to_sixteen_ticks_apart_is_the_ticks_where_most_gaps_come_whole_numbers_apart() {
    let of = |period_ns: f64, share: f64, at: &[f64]| {
        let period = Periodic { period_ns, share, gaps: at.len(), skips: false };
        ticks_apart(at, &period)
    };
    for (period, expected) in [
        (8e6, Some(4e6)),
        (15e6, Some(5e6)),
        (16e6, Some(4e6)),
        (13e6, Some(1e6)),
        (17e6, None),
        (6.5e6, None),
        (13.05e6, None),
        // A tick's own.
        (4e6, None),
    ] {
        let at = train_and_alone(100, 0, period);
        let found = of(period, 1.0, &at);
        let tick = found.map(|found| found.period_ns.round());
        assert_eq!(tick, expected, "{period}");
        let is_whole =
            |found: &Periodic| found.skips && found.gaps == 100 && (found.share - 1.0).abs() < 1e-9;
        assert!(found.iter().all(is_whole), "{found:?}");
    }
    // Sixty pairs of a hundred are whole, of which chance gives four in a hundred.
    let mut at = vec![0.0];
    for k in 0..100 {
        let apart = if k < 60 { 13e6 } else { 13.5e6 };
        at.push(at[k] + apart);
    }
    let found = of(13e6, 0.7, &at).expect("more than half");
    assert!((found.share - (0.6 - 0.04) / 0.96).abs() < 1e-9, "{found:?}");
    assert_eq!(of(13e6, 0.8, &at), None, "less than four fifths of what the period has");
    // Two in the same place are no tick apart.
    let doubled: Vec<f64> = (0..100).flat_map(|k| [f64::from(k) * 13e6; 2]).collect();
    assert!(of(13e6, 0.1, &doubled).is_none_or(|found| found.share < 0.5), "half are pairs");
}

#[test]
fn each_kind_of_gaps_has_its_words_and_how_sure_they_are() {
    let tick = |share| Periodic { period_ns: 1e6, share, gaps: 10, skips: false };
    let other = |share| Periodic { period_ns: 7.3e6, share, gaps: 10, skips: false };
    for (periodic, among, end, confidence) in [
        (tick(0.3), Among::Timer, "1 ms (1000 Hz): the kernel's tick", Confidence::Likely),
        (other(0.9), Among::Timer, "7.300 ms: a timer of the kernel", Confidence::Possible),
        (tick(0.5), Among::OtherEvents, "periodic work of the kernel", Confidence::Likely),
        (other(0.9), Among::OtherEvents, "periodic work of the kernel", Confidence::Possible),
        (tick(0.5), Among::NoEventVirtual, "the hypervisor's tick", Confidence::Likely),
        (tick(0.49), Among::NoEventVirtual, "the hypervisor's tick", Confidence::Possible),
        (
            other(0.9),
            Among::NoEventVirtual,
            "periodic work of the hypervisor",
            Confidence::Possible,
        ),
        (tick(0.49), Among::NoEventMetal, "periodic work of the firmware", Confidence::Possible),
        (
            tick(0.5),
            Among::Untraced,
            "10 gaps come every 1 ms (1000 Hz): the kernel's tick or a hypervisor's",
            Confidence::Likely,
        ),
        (
            other(0.9),
            Among::Untraced,
            "gaps come every 7.300 ms: periodic work",
            Confidence::Possible,
        ),
    ] {
        let finding = r9_finding(&periodic, among, CpuId(3), 10);
        assert!(finding.text.ends_with(end), "{}", finding.text);
        assert_eq!((finding.confidence, finding.cpu), (confidence, Some(CpuId(3))), "{end}");
    }
}

#[test]
fn the_rate_that_chance_is_told_by_is_that_of_the_distances_between_all_gaps() {
    let of_train = (0..600).map(|k| f64::from(k) * PERIOD);
    let alone = (1..=400).map(|k| (600.0 + f64::from(k) * 10.37) * PERIOD);
    let starts: Vec<f64> = of_train.chain(alone).collect();
    let rate = 999.0 / starts[999];
    let neighbour = 1.0 - (-0.04 * PERIOD * rate).exp();
    let chance = 1.0 - (1.0 - neighbour * neighbour).powi(3);
    let found = r9_period(&ticks(starts), HZ).expect("the train");
    let expected = (0.6 - chance) / (1.0 - chance);
    assert!(chance > 1e-4 && (found.share - expected).abs() < 1e-9, "{found:?}, {expected}");
}
