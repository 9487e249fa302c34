//! What the paper's text claims, held against this host: it holds, it does not, or it cannot be told here.

use crate::spelled::in_unit;
use whylate_model::paper::{Agreement, Effect, EffectVerdict, Here, Row, Unit};
use whylate_stats::ratio::Ratio;

use super::accuracy::Judged;
use super::measured::Measured;
use crate::rows::{Filled, row};

/// Spread of the paper's switch over all its packets is below this.
const SPREAD_NS: f64 = 300.0;
/// "Less than a us away from the ground truth."
const NEAR_NS: f64 = 1_000.0;
/// "TRex introduces 5 us to 10 us overhead."
const BYPASS_NS: (f64, f64) = (5_000.0, 10_000.0);
/// "Netperf is at least 17 us off the ground truth."
const BLOCKING_NS: f64 = 17_000.0;
/// "... and have a 50 us long tail."
const BLOCKING_TAIL_NS: f64 = 50_000.0;
/// "At the 99.99th percentile, the appropriate power settings reduce tail latency by a factor of 2.6."
const POWER: f64 = 2.6;
/// At which the claims on tails are.
const TAIL: f64 = 99.99;

/// Does a claim hold?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    Holds,
    Fails,
    NotTold,
}

impl Claim {
    fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }

    /// A row of it: what it is, why it holds or not, and the same in few words with the paper's figure.
    fn row(self, what: impl Into<String>, why: &str, brief: (&str, &str)) -> Row {
        let agreement = match self {
            Self::Holds => Some(Agreement::Agrees),
            Self::Fails => Some(Agreement::Differs),
            Self::NotTold => None,
        };
        row(what, self.told(why)).agrees(agreement).brief(brief.0, brief.1)
    }

    fn told(self, why: &str) -> String {
        let verdict = match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold here",
            Self::NotTold => "cannot be told here",
        };
        format!("{verdict}: {why}")
    }
}

fn ns(value: f64) -> String {
    in_unit(value, Unit::Nanoseconds)
}

/// "Spread across more than 400 million measurements less than 300 ns."
pub(super) fn spread(truth: &Measured) -> Row {
    let what = "spread of the reference, largest less smallest";
    let brief = ("spread of the reference", "280 ns");
    let values = truth.histogram();
    let Some((min, max)) = values.min().zip(values.max()) else {
        return Claim::NotTold
            .row(what, "no frame passed it", brief)
            .paper("280ns (2.24us to 2.52us)");
    };
    let all = (max - min) as f64;
    let at = |percent| values.value_at(percent).map_or(0.0, |value| (value - min) as f64);
    let why = format!(
        "{} to {} over {} frames, where the paper's switch had more than 400 million; to p99.9 it is {}, to \
         p99.99 {}: a thread that spins is interrupted, a switch is not",
        ns(min as f64),
        ns(max as f64),
        in_unit(values.len() as f64, Unit::Count),
        ns(at(99.9)),
        ns(at(99.99))
    );
    let here = Here { value: all, unit: Unit::Nanoseconds, interval: None, n: Some(values.len()) };
    Claim::of(all < SPREAD_NS).row(what, &why, brief).paper("280ns (2.24us to 2.52us)").here(here)
}

/// "MoonGen-HW is less than a us away from the ground truth up to the 99.99th percentile."
pub(super) fn near(judged: &[Judged], seed: u64) -> Vec<Row> {
    let stamped = Claim::NotTold
        .row(
            "within 1us of the truth up to p99.99, by stamps of a card (MoonGen-HW)",
            "virtual links have no card that stamps: what its stamps are worth is measured by whylate calibrate \
             where there is one",
            ("error, p99.99, card's stamps", "below 1 µs"),
        )
        .paper("up to p99.99");
    let best = judged
        .iter()
        .filter(|of| !of.halved)
        .min_by_key(|of| of.measured.histogram().value_at(50.0));
    let Some(best) = best else { return vec![stamped] };
    let errors = best.errors(seed);
    let held: Vec<f64> = errors
        .iter()
        .map_while(|(percent, error)| {
            let between = error.as_ref()?.headline();
            (between.low > -NEAR_NS && between.high < NEAR_NS).then_some(*percent)
        })
        .collect();
    let why = match held.last() {
        Some(last) => format!("{} is, up to p{last}, with its whole interval", best.label),
        None => format!("{} is not even at the median: stamps of a CPU", best.label),
    };
    let reaches = held.iter().any(|percent| (percent - TAIL).abs() < 1e-9);
    let here = errors.iter().find(|(percent, _)| (percent - TAIL).abs() < 1e-9);
    let here = here.and_then(|(_, error)| error_here(best, error.as_ref()?));
    let claim = if here.is_none() && !reaches { Claim::NotTold } else { Claim::of(reaches) };
    let what = format!("the same of the nearest tool here, {}: its error at p99.99", best.label);
    vec![stamped, claim.row(what, &why, ("error, p99.99, nearest tool", "below 1 µs")).here(here)]
}

fn error_here(of: &Judged, error: &whylate_stats::difference::Intervals) -> Option<Here> {
    let between = error.headline();
    between.is_bounded().then(|| Here {
        value: error.difference,
        unit: Unit::Nanoseconds,
        interval: Some((between.low, between.high)),
        n: Some(of.measured.histogram().len()),
    })
}

/// The error of one tool at one percentile.
fn error_at(judged: &[Judged], label: &str, percent: f64, seed: u64) -> Option<Here> {
    let of = judged.iter().find(|of| of.label == label)?;
    let errors = of.errors(seed);
    let (_, error) = errors.iter().find(|(known, _)| (known - percent).abs() < 1e-9)?;
    error_here(of, error.as_ref()?)
}

/// "A tuned DPDK solution such as TRex introduces 5 us to 10 us overhead in readings."
pub(super) fn bypass(judged: &[Judged], label: &str, seed: u64) -> Row {
    let what =
        format!("overhead of stamps by the CPU past the kernel's stack (TRex; here {label}), p50");
    let here = error_at(judged, label, 50.0, seed);
    let (claim, why) = match here.as_ref().and_then(|here| here.interval) {
        None => (Claim::NotTold, "it was not measured".to_owned()),
        Some((low, high)) => {
            let (least, most) = BYPASS_NS;
            let stands = match () {
                () if high < least => {
                    "less than that: frames are handed over in memory, by no card"
                }
                () if low > most => {
                    "more than that: virtual links copy each frame, in software interrupts"
                }
                () if low >= least && high <= most => "within it",
                () => "its interval reaches beyond one of the ends",
            };
            let inside = low >= least && high <= most;
            let out = high < least || low > most;
            let claim = if inside || out { Claim::of(inside) } else { Claim::NotTold };
            (claim, stands.to_owned())
        }
    };
    let brief = ("overhead, kernel bypass, p50", "5 to 10 µs");
    claim.row(what, &why, brief).paper("5us to 10us").here(here)
}

/// "POSIX-based solutions that rely on blocking I/O introduce almost 20 us overhead at the 50th percentile
/// and have a 50 us long tail."
pub(super) fn blocking(judged: &[Judged], label: &str, seed: u64) -> Vec<Row> {
    let at_least = |here: &Option<Here>, least: f64| match here.as_ref().and_then(|of| of.interval)
    {
        None => (Claim::NotTold, "it was not measured, or too few frames show this percentile"),
        Some((low, _)) if low >= least => (Claim::Holds, "its whole interval lies above"),
        Some((_, high)) if high < least => (Claim::Fails, "its whole interval lies below"),
        Some(_) => (Claim::NotTold, "its interval holds the paper's figure"),
    };
    let one = |(percent, least, paper): (f64, f64, &str)| {
        let here = error_at(judged, label, percent, seed);
        let (claim, why) = at_least(&here, least);
        let what = format!("overhead of blocking sockets (netperf; here {label}), p{percent}");
        let why = format!("{why}; against at least {}", ns(least));
        let short = format!("overhead, blocking, p{percent}");
        let at_least = format!("at least {:.0} µs", least / 1e3);
        claim.row(what, &why, (&short, &at_least)).paper(paper.to_owned()).here(here)
    };
    [(50.0, BLOCKING_NS, "almost 20us; at least 17us"), (TAIL, BLOCKING_TAIL_NS, "a tail of 50us")]
        .map(one)
        .into()
}

/// "When considering minimum, or even median latency, it is necessary and sufficient to ensure that the
/// local socket is consistently used." `remote` is why there is none.
pub(super) fn local(effects: &[Effect], remote: Option<&str>) -> Row {
    let what =
        "the local memory node mends the median: local over remote, p50, by the box's own log";
    let brief = ("local less remote memory, p50", "faster");
    let found = effects.iter().find(|of| {
        let pair = [of.from.as_str(), of.to.as_str()];
        pair.contains(&"local") && pair.contains(&"remote") && (of.percent - 50.0).abs() < 1e-9
    });
    let Some((effect, size)) = found.and_then(|of| Some((of, of.truth?))) else {
        let why = remote.unwrap_or("it was not measured");
        return Claim::NotTold.row(what, why, brief).paper("necessary and sufficient");
    };
    // Local less remote.
    let (value, low, high) = if effect.to == "local" {
        (size.ns, size.low_ns, size.high_ns)
    } else {
        (-size.ns, -size.high_ns, -size.low_ns)
    };
    let claim = if low <= 0.0 && high >= 0.0 { Claim::NotTold } else { Claim::of(high < 0.0) };
    let here = Here { value, unit: Unit::Nanoseconds, interval: Some((low, high)), n: None };
    let why = "below 0 where local is faster; an interval that holds 0 tells nothing";
    claim.row(what, why, brief).paper("necessary and sufficient").here(here)
}

/// "At the 99.99th percentile, the appropriate power settings reduce tail latency by a factor of 2.6."
/// `runs` are the p99.99 of each run without and with them; `missing` says why there are none, or what of
/// power this host does not offer.
pub(super) fn power(runs: &[(f64, f64)], missing: Option<&str>, seed: u64) -> Row {
    let what = "power saving off divides the p99.99 of the box by, by its own log";
    let brief = ("p99.99 drop, power saving off", "2.6 times");
    let pairs: Vec<(f64, f64)> = runs.iter().map(|(without, with)| (*with, *without)).collect();
    let Some(ratio) = Ratio::of_pairs(&pairs, seed) else {
        let why = missing.unwrap_or("two rounds at least that show a p99.99 are needed");
        return Claim::NotTold.row(what, why, brief).paper("2.6");
    };
    let (low, high) = (ratio.interval.low, ratio.interval.high);
    let told = |low: f64, high: f64| match () {
        () if low <= 1.0 && high >= 1.0 => {
            (Claim::NotTold, "its interval holds 1: no effect is shown")
        }
        () if (low..=high).contains(&POWER) => (Claim::Holds, "its interval holds 2.6"),
        () if high < 1.0 => (Claim::Fails, "the tail is longer"),
        () if high < POWER => (Claim::Fails, "the tail is shortened, by less than 2.6"),
        () => (Claim::Fails, "the tail is shortened, by more than 2.6"),
    };
    let (claim, why) = if ratio.interval.is_bounded() {
        told(low, high)
    } else {
        (Claim::NotTold, "too few rounds for an interval")
    };
    let also = missing.map_or(String::new(), |missing| format!("; {missing}"));
    let here = Here {
        value: ratio.mean,
        unit: Unit::Ratio,
        interval: ratio.interval.is_bounded().then_some((low, high)),
        n: Some(ratio.pairs as u64),
    };
    claim.row(what, &format!("{why}{also}"), brief).paper("2.6").here(here)
}

/// "Both MoonGen-HW and TRex are accurate enough to capture the impact of the OS configuration", and
/// netperf and MoonGen-SW are not.
pub(super) fn captures(effects: &[Effect], tool: &str, paper: &str) -> Row {
    let what = format!(
        "{tool} captures what configurations do to the box: effects preserved, of those told"
    );
    let short = format!("effects captured by {tool}");
    let expected = paper == CAPTURES;
    let in_short = if expected { "all" } else { "none" };
    let count =
        |verdict| effects.iter().filter(|of| of.tool == tool && of.verdict == verdict).count();
    let (preserved, lost) = (count(EffectVerdict::Preserved), count(EffectVerdict::Lost));
    let told = preserved + lost;
    let untold = count(EffectVerdict::NotTold);
    if told == 0 {
        let why = format!(
            "no pair of configurations has an effect that these runs show ({untold} looked at)"
        );
        return Claim::NotTold.row(what, &why, (&short, in_short)).paper(paper.to_owned());
    }
    let here =
        Here { value: preserved as f64, unit: Unit::Count, interval: None, n: Some(told as u64) };
    let claim = match (lost == 0, preserved == 0) {
        (true, _) => Claim::of(expected),
        (_, true) => Claim::of(!expected),
        _ => Claim::NotTold,
    };
    let why =
        format!("{preserved} preserved, {lost} lost, {untold} not told; each is in the table");
    claim.row(what, &why, (&short, in_short)).paper(paper.to_owned()).here(here)
}

/// What the paper says of TRex, and of netperf.
pub(super) const CAPTURES: &str = "it does";
pub(super) const DOES_NOT: &str = "it does not";

#[cfg(test)]
mod tests {
    use super::super::measured::tests::planted;
    use super::*;

    fn judged(label: &str, over: u64, tail: u64) -> Judged {
        Judged {
            label: label.to_owned(),
            measured: planted(3, 40, |n, rng| {
                2_260 + over + rng.below(50) + if n % 1_000 == 0 { tail } else { 0 }
            }),
            truth: planted(3, 40, |_, rng| 2_260 + rng.below(20)),
            halved: false,
        }
    }

    #[test]
    fn the_spread_of_the_reference_holds_below_300ns_and_not_above() {
        let quiet = spread(&planted(1, 10, |n, _| 2_240 + n % 280));
        assert!(quiet.why.starts_with("holds: 2.24us to"), "{quiet:?}");
        let noisy = spread(&planted(1, 10, |n, _| if n == 7 { 90_000 } else { 2_240 }));
        assert!(noisy.why.starts_with("does not hold here"), "{noisy:?}");
        assert!(spread(&Measured::default()).why.starts_with("cannot be told"));
    }

    #[test]
    fn overheads_hold_within_the_papers_ranges_and_not_outside() {
        let all = [judged("xdp spin", 7_000, 0), judged("udp block", 21_000, 90_000)];
        let row = bypass(&all, "xdp spin", 1);
        assert!(row.why.starts_with("holds: within it") && row.here.is_some(), "{row:?}");
        assert!(bypass(&all, "udp block", 1).why.starts_with("does not hold here: more"));
        assert!(bypass(&[judged("x", 900, 0)], "x", 1).why.contains("less than that"));
        assert!(bypass(&all, "dpdk spin", 1).why.starts_with("cannot be told here"));
        let rows = blocking(&all, "udp block", 1);
        assert!(rows[0].why.starts_with("holds"), "{rows:?}");
        let rows = blocking(&all, "xdp spin", 1);
        assert!(rows[0].why.starts_with("does not hold here"), "{rows:?}");
        let near = near(&all, 1);
        assert!(near[0].why.starts_with("cannot be told here") && near[0].here.is_none());
        assert!(near[1].why.contains("xdp spin is not even at the median"), "{near:?}");
        let near = super::near(&[judged("x", 200, 0)], 1);
        assert!(near[1].why.contains("x is, up to p99.99"), "{near:?}");
    }

    #[test]
    fn what_power_buys_is_a_factor_over_rounds_and_what_is_missing_is_said() {
        let rounds: Vec<(f64, f64)> = (0..8_u8).map(|n| (25.0 + f64::from(n % 3), 10.0)).collect();
        let row = power(&rounds, None, 1);
        assert!(row.why.starts_with("holds") && row.here.is_some(), "{row:?}");
        let none = power(&[], Some("no governor"), 1);
        assert_eq!(none.why, "cannot be told here: no governor");
        let same: Vec<(f64, f64)> = (0..8_u8).map(|n| (9.0 + f64::from(n % 3), 10.0)).collect();
        assert!(power(&same, None, 1).why.starts_with("cannot be told here"));
    }

    #[test]
    fn a_local_node_that_is_not_there_cannot_be_told_and_captured_effects_are_counted() {
        let row = local(&[], Some("one memory node"));
        assert_eq!(row.why, "cannot be told here: one memory node");
        let effect = |verdict| Effect {
            tool: "x".to_owned(),
            percent: 50.0,
            from: "remote".to_owned(),
            to: "local".to_owned(),
            reported: None,
            truth: Some(whylate_model::paper::EffectSize {
                ns: -80.0,
                low_ns: -90.0,
                high_ns: -70.0,
            }),
            verdict,
            why: String::new(),
        };
        let preserved = [effect(EffectVerdict::Preserved)];
        assert!(local(&preserved, None).why.starts_with("holds"));
        assert!(captures(&preserved, "x", CAPTURES).why.starts_with("holds: 1 preserved"));
        assert!(captures(&preserved, "x", DOES_NOT).why.starts_with("does not hold here"));
        let lost = [effect(EffectVerdict::Lost), effect(EffectVerdict::NotTold)];
        assert!(captures(&lost, "x", DOES_NOT).why.starts_with("holds: 0 preserved, 1 lost"));
        assert!(captures(&lost[1..], "x", CAPTURES).why.starts_with("cannot be told here"));
    }
}
