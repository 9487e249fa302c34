//! What became of the limits, in a sentence.

use whylate_model::Printable;

use crate::compare::{Comparison, Excess, Judged, Outcome};
use crate::numbers::{Cell, Value, count};

/// The worst first: what was exceeded, what cannot be judged, and how many held; none without limits.
pub(super) fn sentence(of: &Comparison) -> Option<String> {
    let all = of.limits.len();
    let of_kind = |is: fn(&Outcome) -> bool| {
        let judged = of.limits.iter().filter(move |judged| is(&judged.outcome));
        judged.collect::<Vec<&Judged>>()
    };
    let exceeded = of_kind(|outcome| matches!(outcome, Outcome::Exceeded { .. }));
    let unjudged = of_kind(|outcome| matches!(outcome, Outcome::CannotBeJudged { .. }));
    let unshown = of_kind(|outcome| matches!(outcome, Outcome::NotShown { .. }));
    if all == 0 {
        return None;
    }
    let several = |number: usize| count(number as u64);
    if let Some(first) = exceeded.first() {
        let more = match exceeded.len() - 1 {
            0 => String::new(),
            more => format!(" and {} more", several(more)),
        };
        let (which, by) = (which(first, of), by(&first.outcome));
        return Some(format!("Limit exceeded: {which}{by}{more}."));
    }
    if let Some(first) = unjudged.first() {
        let why = match &first.outcome {
            Outcome::CannotBeJudged { reason } => Printable(reason).to_string(),
            _ => String::new(),
        };
        let more = match unjudged.len() - 1 {
            0 => String::new(),
            more => format!("; and {} more", several(more)),
        };
        return Some(format!("Limit {} cannot be judged: {why}{more}.", which(first, of)));
    }
    Some(match (all, unshown.len()) {
        (1, 0) => "The limit was held.".to_owned(),
        (_, 0) => format!("All {} limits were held.", several(all)),
        (1, _) => "The limit is not shown to be exceeded, nor to be held.".to_owned(),
        (_, unshown) => format!(
            "No limit is shown to be exceeded; {} of {} are not shown to be held either.",
            several(unshown),
            several(all)
        ),
    })
}

/// The limit, and what it was judged for.
fn which(judged: &Judged, of: &Comparison) -> String {
    let limit = Printable(&judged.limit).to_string();
    let named = limit.starts_with(&format!("{}:", judged.series));
    let pair = of.pairs.iter().find(|pair| pair.series == judged.series);
    match pair.filter(|_| !named) {
        Some(pair) => format!("{limit} of {}", super::name(pair)),
        None => limit,
    }
}

/// By how much it is exceeded.
fn by(of: &Outcome) -> String {
    let Outcome::Exceeded { excess } = of else { return String::new() };
    let value = |(low, high): (f64, f64), of: fn(f64) -> Value| {
        let middle = f64::midpoint(low, high);
        Cell::from(of(middle)).within(Some((of(low), of(high)))).ends().said()
    };
    match excess {
        Excess::Ns(interval) => format!(" (by {})", value(*interval, Value::Time)),
        Excess::Share(interval) => {
            let points = value(*interval, Value::Share);
            format!(" (by {} points)", points.trim_end_matches('%'))
        }
    }
}
