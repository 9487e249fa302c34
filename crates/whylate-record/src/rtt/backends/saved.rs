//! What each backend saves against the first, from the rounds that both have.
//!
//! Pure: rounds in, differences and ratios with their intervals out. What differs between rounds is the
//! host's; within a round all were measured next to each other, so a pair is of one round. The first
//! is in every round twice: what it is in that round is the mean of both, and what it differs from
//! itself by, in the same way, is the control. Where that is wide, or the rounds are few, nothing is
//! claimed, whatever the ratio is.

use whylate_model::backends::{
    BackendMeasured, BackendRole, BackendRound, BackendRow, Claim, Saved,
};
use whylate_stats::bootstrap;
use whylate_stats::ratio::Ratio;

/// Half of the width of the control's interval at most, for a claim.
const CLOSE: f64 = 0.03;
/// Fewer rounds say nothing of how they spread.
const FEWEST: usize = 4;
/// Achieved rates further apart are of different traffic.
const RATES_APART: f64 = 0.01;

/// Where a round has a percentile.
type OfRound = fn(&BackendRound) -> Option<f64>;

/// The percentiles that are compared.
const PERCENTS: [(f64, OfRound); 2] = [
    (50.0, |round| round.p50.map(|value| value.0 as f64)),
    (99.0, |round| round.p99.map(|value| value.0 as f64)),
];

/// A round of two sides: the first twice, and another.
#[derive(Debug, Clone, Copy)]
struct Pair {
    first: [f64; 2],
    other: f64,
}

/// Fills in what each row saves. `paced` says that all were to send at one rate, as they are but in a
/// closed loop.
pub(super) fn fill(rows: &mut [BackendRow], paced: bool, seed: u64) {
    for (percent, of) in PERCENTS {
        let (Some(first), Some(control)) =
            (of_role(rows, BackendRole::First), of_role(rows, BackendRole::Control))
        else {
            return;
        };
        let name = first.backend.clone();
        let rate = first.measured.as_ref().and_then(BackendMeasured::per_second);
        let (first, control) = (values(first, of), values(control, of));
        let itself = pairs(&first, &first, &control);
        let own = against(percent, &itself.iter().map(own_pair).collect::<Vec<_>>(), seed);
        for row in rows.iter_mut() {
            match row.role {
                BackendRole::First => (),
                BackendRole::Control => row.saved.extend(own.clone()),
                BackendRole::Compared => {
                    let pairs = pairs(&first, &control, &values(row, of));
                    let pairs: Vec<_> = pairs.iter().map(pair_of_means).collect();
                    let Some(mut saved) = against(percent, &pairs, seed) else { continue };
                    let achieved = row.measured.as_ref().and_then(BackendMeasured::per_second);
                    let apart = rate.zip(achieved).filter(|_| paced);
                    saved.claim = Some(claim(&saved, (&name, own.as_ref()), apart));
                    row.saved.push(saved);
                }
            }
        }
    }
}

fn of_role(rows: &[BackendRow], role: BackendRole) -> Option<&BackendRow> {
    rows.iter().find(|row| row.role == role)
}

/// The values that are known, by their rounds.
fn values(row: &BackendRow, of: fn(&BackendRound) -> Option<f64>) -> Vec<(u32, f64)> {
    let rounds = row.measured.iter().flat_map(|measured| &measured.rounds);
    let known = |round: &BackendRound| Some((round.round, of(round)?));
    rounds.filter_map(known).filter(|(_, value)| *value > 0.0).collect()
}

/// The rounds that all three have.
fn pairs(first: &[(u32, f64)], again: &[(u32, f64)], other: &[(u32, f64)]) -> Vec<Pair> {
    let at = |of: &[(u32, f64)], round: u32| {
        of.iter().find(|(number, _)| *number == round).map(|(_, value)| *value)
    };
    let pair = |(round, value): &(u32, f64)| {
        Some(Pair { first: [*value, at(again, *round)?], other: at(other, *round)? })
    };
    first.iter().filter_map(pair).collect()
}

/// The first in one measurement and in the other: for the difference, for the ratio.
type Sides = ([f64; 2], [f64; 2]);

fn own_pair(of: &Pair) -> Sides {
    let sides = [of.first[0], of.other];
    (sides, sides)
}

/// Differences are of the mean, ratios of the geometric one: which of both was first does not matter.
fn pair_of_means(of: &Pair) -> Sides {
    let [a, b] = of.first;
    ([f64::midpoint(a, b), of.other], [(a * b).sqrt(), of.other])
}

/// None without two rounds.
fn against(percent: f64, pairs: &[Sides], seed: u64) -> Option<Saved> {
    let ratios: Vec<(f64, f64)> =
        pairs.iter().map(|(_, [first, other])| (*first, *other)).collect();
    let ratio = Ratio::of_pairs(&ratios, seed)?;
    let differences: Vec<f64> = pairs.iter().map(|([first, other], _)| first - other).collect();
    let bounded = |interval: bootstrap::Interval| {
        interval.is_bounded().then_some((interval.low, interval.high))
    };
    Some(Saved {
        percent,
        rounds: pairs.len() as u32,
        mean_ns: bootstrap::mean(&differences),
        interval_ns: bounded(bootstrap::of_mean(&differences, seed)),
        ratio: ratio.mean,
        ratio_interval: bounded(ratio.interval),
        claim: None,
    })
}

/// What may be claimed. `first` is what the first is called, and how it differs from itself; `rates` are those
/// achieved by the first and by this one, where they were to be the same.
fn claim(
    saved: &Saved,
    (first, control): (&str, Option<&Saved>),
    rates: Option<(f64, f64)>,
) -> Claim {
    let nothing = |why: String| Claim::Nothing { why };
    if let Some((usual, other)) = rates
        && (other / usual - 1.0).abs() > RATES_APART
    {
        return nothing(format!(
            "it sent {other:.0} requests a second and the first {usual:.0}: not the same traffic"
        ));
    }
    let rounds = saved.rounds.min(control.map_or(0, |control| control.rounds)) as usize;
    if rounds < FEWEST {
        return nothing(format!("only {rounds} rounds have both, and {FEWEST} are needed"));
    }
    match control.and_then(Saved::half_width) {
        Some(width) if width <= CLOSE => (),
        Some(width) => {
            return nothing(format!(
                "{first} differs from itself by up to +-{:.0}% (at most {:.0}% is allowed)",
                width * 100.0,
                CLOSE * 100.0
            ));
        }
        None => {
            return nothing("how far two measurements of the first differ is not known".to_owned());
        }
    }
    match saved.ratio_interval {
        Some((_, high)) if high < 1.0 => Claim::Saves,
        Some((low, _)) if low > 1.0 => Claim::Costs,
        Some(_) => Claim::NoDifference,
        None => nothing("its ratio has no interval".to_owned()),
    }
}

#[cfg(test)]
mod tests;
