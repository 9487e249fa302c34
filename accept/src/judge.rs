//! What the rounds of a figure say together of each of its rows.

use whylate_stats::dependence;
use whylate_stats::quantile;
use whylate_stats::ratio::Ratio;
use whylate_stats::share;

use crate::figure::{Bound, Reading, Row};

/// Half of the control's interval at most, for a claim against a peer (METHOD: every ratio comes with the
/// peer against itself).
pub const CLOSE: f64 = 0.03;

/// What a row comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What is known of it; none without a reading.
    pub found: Option<Found>,
    /// The peer against itself, where there is one.
    pub control: Option<Found>,
    /// Whether it is as promised.
    pub verdict: Verdict,
}

/// A value with its 95 % interval, of so many readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Median, geometric mean of ratios, or share.
    pub value: f64,
    /// The interval; none where so few give none.
    pub interval: Option<(f64, f64)>,
    /// Rounds, or for shares what was counted in all of them.
    pub n: u64,
}

/// Whether a row is as promised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is inside the bound; of [`Bound::Always`], each one that was counted held, however few.
    Met,
    /// The whole interval is outside, one of [`Bound::Always`] did not hold, or a round failed, and why.
    NotMet(Option<String>),
    /// Neither, and why.
    NotShown(String),
    /// Nothing is promised.
    Told,
}

impl Verdict {
    /// As the table says it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet(_) => "not met",
            Self::NotShown(_) => "not shown",
            Self::Told => "told",
        }
    }

    /// The reason, where there is one.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::NotMet(why) => why.as_deref(),
            Self::NotShown(why) => Some(why),
            Self::Met | Self::Told => None,
        }
    }
}

/// Judges a row by the readings of the rounds that count, in their order.
#[must_use]
pub fn judge(row: &Row, readings: &[Reading]) -> Judged {
    let absent = readings.iter().find_map(|reading| match reading {
        Reading::Absent(why) => Some(why.clone()),
        _ => None,
    });
    let mut values = Vec::new();
    let mut shares = Vec::new();
    let mut beside = Vec::new();
    for reading in readings {
        match reading {
            Reading::Value(value) => values.push(*value),
            Reading::Share { hits, of } => shares.push((*hits, *of)),
            Reading::Beside { peer, ours, again } => beside.push((*peer, *ours, *again)),
            Reading::Absent(_) => {}
        }
    }
    // No such round counts (see [`Reading::fault`]); where one got here, nothing is known of the row.
    if let Some(fault) = readings.iter().find_map(Reading::fault) {
        return Judged { found: None, control: None, verdict: Verdict::NotShown(fault) };
    }
    if !beside.is_empty() {
        return of_pairs(row, &beside);
    }
    let found = if shares.is_empty() { of_values(&values) } else { of_shares(&shares) };
    let Some(found) = found else {
        let why = absent.unwrap_or_else(|| "no round counts".to_owned());
        return Judged { found: None, control: None, verdict: Verdict::NotShown(why) };
    };
    let verdict = match row.bound {
        Bound::Always if shares.is_empty() => {
            Verdict::NotShown("only what is counted can hold always".to_owned())
        }
        Bound::Always if shares.iter().all(|(hits, of)| hits == of) => Verdict::Met,
        Bound::Always => Verdict::NotMet(None),
        bound => held(bound, &found),
    };
    Judged { found: Some(found), control: None, verdict }
}

/// The median of values, and the order statistics that enclose it.
fn of_values(values: &[f64]) -> Option<Found> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let lower = sorted.get(n.checked_sub(1)? / 2)?;
    let value = f64::midpoint(*lower, sorted[n / 2]);
    let ranks = quantile::ranks(n as u64, 0.5);
    let at = |rank: u64| sorted[rank as usize - 1];
    let interval = ranks.low.zip(ranks.high).map(|(low, high)| (at(low), at(high)));
    Some(Found { value, interval, n: n as u64 })
}

/// The share over all rounds, whose interval is as wide as the rounds differ.
fn of_shares(shares: &[(u64, u64)]) -> Option<Found> {
    let (hits, n) = shares.iter().fold((0, 0), |(hits, n), of| (hits + of.0, n + of.1));
    if n == 0 {
        return None;
    }
    let value = hits as f64 / n as f64;
    let worth = dependence::effective_n(n, shares);
    let interval = share::interval(value * worth, worth);
    Some(Found { value, interval: Some(interval), n })
}

/// Ours over the peer, and the peer over itself.
fn of_pairs(row: &Row, rounds: &[(f64, f64, f64)]) -> Judged {
    let ratio = |pair: fn(&(f64, f64, f64)) -> (f64, f64)| {
        let ratio = Ratio::of_pairs(&rounds.iter().map(pair).collect::<Vec<_>>(), 1)?;
        let interval = Some((ratio.interval.low, ratio.interval.high));
        Some(Found { value: ratio.mean, interval, n: ratio.pairs as u64 })
    };
    let control = ratio(|(peer, _, again)| (*peer, *again));
    let found = ratio(|(peer, ours, again)| ((peer * again).sqrt(), *ours));
    let width = control.and_then(|control| control.interval).map(|(low, high)| (high - low) / 2.0);
    let verdict = match (&found, width) {
        (None, _) | (_, None) => {
            Verdict::NotShown(format!("{} rounds give no ratio", rounds.len()))
        }
        (Some(_), Some(_)) if row.bound == Bound::Told => Verdict::Told,
        (Some(_), Some(width)) if width > CLOSE => {
            Verdict::NotShown(format!("the peer agrees with itself to ±{width:.3} alone"))
        }
        (Some(found), Some(_)) => held(row.bound, found),
    };
    Judged { found, control, verdict }
}

/// Holds an interval against a bound.
fn held(bound: Bound, found: &Found) -> Verdict {
    if bound == Bound::Told {
        return Verdict::Told;
    }
    let Some((low, high)) = found.interval else {
        return Verdict::NotShown(format!("{} rounds give no 95 % interval", found.n));
    };
    let (inside, outside) = match bound {
        Bound::AtLeast(limit) => (low >= limit, high < limit),
        Bound::AtMost(limit) => (high <= limit, low > limit),
        Bound::Within(least, most) => (low >= least && high <= most, high < least || low > most),
        Bound::Always | Bound::Told => (false, false),
    };
    match (inside, outside) {
        (true, _) => Verdict::Met,
        (_, true) => Verdict::NotMet(None),
        _ => Verdict::NotShown("the bound lies inside the interval".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, Judged, Verdict, judge};
    use crate::figure::{Bound, Reading, Row};

    fn row(bound: Bound) -> Row {
        Row { claim: "planted", unit: "ratio", bound }
    }

    fn values(of: &[f64]) -> Vec<Reading> {
        of.iter().copied().map(Reading::Value).collect()
    }

    fn shares(of: &[(u64, u64)]) -> Vec<Reading> {
        of.iter().map(|(hits, of)| Reading::Share { hits: *hits, of: *of }).collect()
    }

    #[test]
    fn six_values_have_an_interval_from_the_least_to_the_largest_and_five_have_none() {
        let six = judge(&row(Bound::AtMost(6.0)), &values(&[3.0, 1.0, 2.0, 6.0, 5.0, 4.0]));
        let found = Found { value: 3.5, interval: Some((1.0, 6.0)), n: 6 };
        assert_eq!(six, Judged { found: Some(found), control: None, verdict: Verdict::Met });
        let verdict = |bound, of: &[f64]| judge(&row(bound), &values(of)).verdict;
        let of = [3.0, 1.0, 2.0, 6.0, 5.0, 4.0];
        assert_eq!(verdict(Bound::AtLeast(6.5), &of), Verdict::NotMet(None));
        assert_eq!(verdict(Bound::Within(1.0, 6.0), &of), Verdict::Met);
        assert_eq!(verdict(Bound::Within(7.0, 9.0), &of), Verdict::NotMet(None));
        assert_eq!(verdict(Bound::AtMost(5.0), &of).word(), "not shown");
        let few = verdict(Bound::AtMost(9.0), &of[..5]);
        assert_eq!(few.why(), Some("5 rounds give no 95 % interval"));
    }

    #[test]
    fn a_bound_is_met_by_the_whole_interval_not_met_by_none_of_it_and_else_not_shown() {
        // From 2 to 4.
        let of = values(&[2.0, 3.0, 3.0, 3.0, 3.0, 4.0]);
        let met = [
            Bound::AtLeast(2.0),
            Bound::AtMost(4.0),
            Bound::Within(2.0, 4.0),
            Bound::Within(0.0, 9.0),
        ];
        let not_met = [
            Bound::AtLeast(4.1),
            Bound::AtMost(1.9),
            Bound::Within(4.1, 9.0),
            Bound::Within(0.0, 1.9),
        ];
        let not_shown = [
            Bound::AtLeast(2.1),
            Bound::AtLeast(4.0),
            Bound::AtMost(3.9),
            Bound::AtMost(2.0),
            Bound::Within(2.1, 9.0),
            Bound::Within(0.0, 3.9),
            Bound::Within(2.1, 3.9),
        ];
        for (bounds, word) in
            [(&met[..], "met"), (&not_met[..], "not met"), (&not_shown[..], "not shown")]
        {
            for bound in bounds {
                assert_eq!(judge(&row(*bound), &of).verdict.word(), word, "{bound}");
            }
        }
    }

    #[test]
    fn shares_of_rounds_that_differ_are_worth_less_than_those_of_rounds_that_agree() {
        let width = |of: &[(u64, u64)]| {
            let found = judge(&row(Bound::Told), &shares(of)).found.unwrap();
            assert!((found.value - 0.9).abs() < 1e-9);
            found.interval.map(|(low, high)| high - low).unwrap()
        };
        let agree = width(&[(90, 100), (91, 100), (89, 100), (90, 100)]);
        let differ = width(&[(100, 100), (100, 100), (100, 100), (60, 100)]);
        assert!(differ > 2.0 * agree, "{differ} {agree}");
    }

    #[test]
    fn always_is_broken_by_one_of_a_thousand_and_by_nothing_else() {
        let verdict = |of: &[(u64, u64)]| judge(&row(Bound::Always), &shares(of)).verdict;
        assert_eq!(verdict(&[(500, 500), (500, 500)]), Verdict::Met);
        assert_eq!(verdict(&[(500, 500), (499, 500)]), Verdict::NotMet(None));
        let of_values = judge(&row(Bound::Always), &values(&[1.0; 8])).verdict;
        assert_eq!(of_values.word(), "not shown");
    }

    #[test]
    fn a_ratio_is_claimed_only_where_the_peer_agrees_with_itself() {
        let round = |noise: f64| {
            move |index: u32| {
                let off = 1.0 + noise * f64::from(index % 5) / 5.0;
                Reading::Beside { peer: 1_000.0, ours: 800.0 * off.sqrt(), again: 1_000.0 * off }
            }
        };
        let of = |noise: f64| (0..20).map(round(noise)).collect::<Vec<_>>();
        let quiet = judge(&row(Bound::AtMost(0.9)), &of(0.02));
        assert_eq!(quiet.verdict, Verdict::Met);
        assert!((quiet.found.unwrap().value - 0.8).abs() < 0.001);
        assert!(quiet.control.is_some());
        let refuted = judge(&row(Bound::AtLeast(0.9)), &of(0.02));
        assert_eq!(refuted.verdict, Verdict::NotMet(None));
        let noisy = judge(&row(Bound::AtMost(0.9)), &of(0.8));
        assert_eq!(noisy.verdict.word(), "not shown");
        assert!(noisy.verdict.why().unwrap().starts_with("the peer agrees with itself to ±"));
        assert_eq!(judge(&row(Bound::Told), &of(0.8)).verdict, Verdict::Told);
        assert_eq!(judge(&row(Bound::Told), &of(0.8)[..1]).verdict.word(), "not shown");
    }

    #[test]
    fn what_is_no_number_is_never_left_out_in_silence() {
        let nan = [values(&[1.0; 6]), values(&[f64::NAN])].concat();
        let of = judge(&row(Bound::AtMost(2.0)), &nan);
        assert_eq!((of.found, of.verdict.why()), (None, Some("NaN is no number")));
        let endless = [values(&[1.0; 8]), values(&[f64::INFINITY])].concat();
        assert_eq!(judge(&row(Bound::AtMost(2.0)), &endless).verdict.word(), "not shown");
        let beside = |ours| Reading::Beside { peer: 1.0, ours, again: 1.0 };
        let nothing = [vec![beside(0.5); 9], vec![beside(0.0)]].concat();
        let why = judge(&row(Bound::AtMost(2.0)), &nothing).verdict;
        assert_eq!(why.why(), Some("10 rounds give no ratio"));
    }

    #[test]
    fn without_readings_there_is_the_reason_of_the_first_round_that_had_none() {
        let none = judge(&row(Bound::AtMost(1.0)), &[]);
        assert_eq!(none.verdict.why(), Some("no round counts"));
        let absent = [Reading::Absent("no card".into()), Reading::Absent("no luck".into())];
        assert_eq!(judge(&row(Bound::Always), &absent).verdict.why(), Some("no card"));
        let uncounted = judge(&row(Bound::Always), &shares(&[(0, 0), (0, 0)]));
        assert_eq!(uncounted.verdict.word(), "not shown");
    }
}
