//! The paper's last question: what a configuration does to a network function, by its own log and by a
//! tool that measures from outside. Does the tool preserve the effect?

use whylate_model::paper::{Effect, EffectSize, EffectVerdict};
use whylate_stats::difference::{Differences, RESAMPLES};

use super::measured::Measured;
use super::protocol::RATES_APART;

/// Percentiles at which effects are told, as in the paper's text.
pub(super) const PERCENTS: [f64; 4] = [50.0, 99.0, 99.9, 99.99];

/// One configuration, as a tool and as the box's own log have it.
#[derive(Debug, Clone)]
pub(super) struct Under {
    pub(super) name: String,
    pub(super) reported: Measured,
    pub(super) truth: Measured,
}

/// What a tool says of each pair of configurations at each percentile.
pub(super) fn of_tool(tool: &str, under: &[Under], seed: u64) -> Vec<Effect> {
    let pairs = under
        .iter()
        .enumerate()
        .flat_map(|(at, from)| under[at + 1..].iter().map(move |to| (from, to)));
    pairs.flat_map(|(from, to)| of_pair(tool, from, to, seed)).collect()
}

fn of_pair(tool: &str, from: &Under, to: &Under, seed: u64) -> Vec<Effect> {
    let reported = sizes(&from.reported, &to.reported, seed);
    let truth = sizes(&from.truth, &to.truth, seed);
    let of_one_load = rates_agree(&from.reported, &to.reported);
    let one = |((percent, reported), truth): ((f64, Option<EffectSize>), Option<EffectSize>)| {
        let (verdict, why) = if of_one_load {
            judge(truth.as_ref(), reported.as_ref())
        } else {
            (EffectVerdict::NotTold, "its rates differ by more than 1 %: it is not the same load")
        };
        Effect {
            tool: tool.to_owned(),
            percent,
            from: from.name.clone(),
            to: to.name.clone(),
            reported,
            truth,
            verdict,
            why: why.to_owned(),
        }
    };
    PERCENTS.into_iter().zip(reported).zip(truth).map(one).collect()
}

/// Were both loads the same? What has no rate of its own is of the same frames.
fn rates_agree(from: &Measured, to: &Measured) -> bool {
    let rates = from.rate().zip(to.rate());
    rates.is_none_or(|(from, to)| (to / from - 1.0).abs() <= RATES_APART)
}

/// The differences of the percentiles between two configurations, where both samples show them.
pub(super) fn sizes(from: &Measured, to: &Measured, seed: u64) -> [Option<EffectSize>; 4] {
    let all = Differences::new(&from.sample, &to.sample, &PERCENTS, seed, RESAMPLES);
    PERCENTS.map(|percent| {
        let found = all.quantile(percent, 1.0).intervals?;
        let between = found.headline();
        between.is_bounded().then_some(EffectSize {
            ns: found.difference,
            low_ns: between.low,
            high_ns: between.high,
        })
    })
}

/// The verdict, by 95 % intervals alone.
pub(super) fn judge(
    truth: Option<&EffectSize>,
    reported: Option<&EffectSize>,
) -> (EffectVerdict, &'static str) {
    use EffectVerdict::{Lost, NotTold, Preserved};
    let Some((truth, reported)) = truth.zip(reported) else {
        return (NotTold, "the samples are too few for this percentile");
    };
    let sign = |of: &EffectSize| match () {
        () if of.low_ns > 0.0 => 1,
        () if of.high_ns < 0.0 => -1,
        () => 0,
    };
    let apart = reported.low_ns > truth.high_ns || reported.high_ns < truth.low_ns;
    match (sign(truth), sign(reported)) {
        (0, 0) => (NotTold, "neither shows an effect: there is none to preserve"),
        (0, _) if apart => (Lost, "the tool shows an effect that the box's own log does not have"),
        (0, _) => {
            (NotTold, "the box's own log shows none, and what the tool shows is not apart from it")
        }
        (_, 0) if apart => (Lost, "the tool shows no effect where there is one"),
        (_, 0) => (NotTold, "the tool's interval is too wide: it holds none and all of the effect"),
        (a, b) if a == b => (Preserved, "both show it, with the same sign"),
        _ => (Lost, "the tool shows the opposite"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::measured::tests::planted;
    use super::*;

    fn size(low_ns: f64, high_ns: f64) -> EffectSize {
        EffectSize { ns: f64::midpoint(low_ns, high_ns), low_ns, high_ns }
    }

    #[test]
    fn a_verdict_follows_from_the_intervals_alone() {
        use EffectVerdict::{Lost, NotTold, Preserved};
        for (truth, reported, verdict) in [
            ((-900.0, -700.0), (-1_500.0, -200.0), Preserved),
            ((-900.0, -700.0), (-100.0, 90.0), Lost),
            ((-900.0, -700.0), (100.0, 900.0), Lost),
            ((-900.0, -700.0), (-2_000.0, 300.0), NotTold),
            ((-50.0, 50.0), (-40.0, 80.0), NotTold),
            ((-50.0, 50.0), (200.0, 900.0), Lost),
            ((-50.0, 50.0), (20.0, 900.0), NotTold),
        ] {
            let (truth, reported) = (size(truth.0, truth.1), size(reported.0, reported.1));
            let (found, why) = judge(Some(&truth), Some(&reported));
            assert_eq!(found, verdict, "{truth:?} {reported:?}: {why}");
        }
        assert_eq!(judge(None, Some(&size(1.0, 2.0))).0, NotTold);
        assert_eq!(judge(Some(&size(1.0, 2.0)), None).0, NotTold);
    }

    /// A box whose frames stay so long, one in a hundred longer, and a tool with its own noise on top.
    fn under(name: &str, (body, tail): (u64, u64), noise: u64) -> Under {
        let stay = move |n: u64| if n.is_multiple_of(50) { tail } else { body };
        Under {
            name: name.to_owned(),
            truth: planted(3, 20, move |n, rng| stay(n) + rng.below(100)),
            reported: planted(3, 20, move |n, rng| stay(n) + 6_000 + rng.below(noise)),
        }
    }

    #[test]
    fn a_planted_effect_on_the_tail_is_preserved_by_a_quiet_tool_and_not_by_a_noisy_one() {
        let verdicts = |noise| -> Vec<(f64, EffectVerdict)> {
            let both = [under("a", (3_700, 30_000), noise), under("b", (3_700, 10_000), noise)];
            let effects = of_tool("x", &both, 1);
            assert_eq!(effects.len(), PERCENTS.len());
            assert!(effects.iter().all(|of| (of.from.as_str(), of.to.as_str()) == ("a", "b")));
            effects.iter().map(|of| (of.percent, of.verdict)).collect()
        };
        let quiet = verdicts(200);
        assert_eq!(quiet[1], (99.0, EffectVerdict::Preserved), "{quiet:?}");
        assert_eq!(
            quiet[0].1,
            EffectVerdict::NotTold,
            "nothing was planted at the median: {quiet:?}"
        );
        let truth = sizes(
            &under("a", (3_700, 30_000), 200).truth,
            &under("b", (3_700, 10_000), 200).truth,
            1,
        );
        assert!((truth[1].unwrap().ns + 20_000.0).abs() < 200.0, "{truth:?}");
        let noisy = verdicts(4_000_000);
        assert_ne!(noisy[1].1, EffectVerdict::Preserved, "{noisy:?}");
    }

    #[test]
    fn every_pair_is_told_once() {
        let three = ["a", "b", "c"].map(|name| under(name, (4_000, 9_000), 100));
        let effects = of_tool("x", &three, 1);
        let pairs: Vec<(&str, &str)> = effects
            .iter()
            .step_by(PERCENTS.len())
            .map(|of| (of.from.as_str(), of.to.as_str()))
            .collect();
        assert_eq!(pairs, [("a", "b"), ("a", "c"), ("b", "c")]);
        assert!(effects.iter().all(|of| !of.why.is_empty()));
    }
}
