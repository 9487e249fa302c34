//! What became of the limits, in a sentence.

use whylate_model::Printable;

use super::Known;
use crate::compare::{Comparison, Excess, Judged, Outcome};
use crate::numbers::{Cell, Value};
use crate::spans::{Sentence, Told, sentence};

/// The worst first: what was exceeded, what cannot be judged, and how many held; none without limits.
pub(super) fn sentence(of: &Comparison, pairs: &[Known]) -> Option<Sentence> {
    let all = of.limits.len();
    // Those of what the headline is about come first.
    let place = |judged: &Judged| {
        pairs.iter().position(|(pair, _)| pair.series == judged.series).unwrap_or(usize::MAX)
    };
    let of_kind = |is: fn(&Outcome) -> bool| {
        let judged = of.limits.iter().filter(move |judged| is(&judged.outcome));
        let mut judged = judged.collect::<Vec<&Judged>>();
        judged.sort_by_key(|judged| place(judged));
        judged
    };
    let limits = |more: usize| if more == 1 { " more limit" } else { " more limits" };
    let exceeded = of_kind(|outcome| matches!(outcome, Outcome::Exceeded { .. }));
    let unjudged = of_kind(|outcome| matches!(outcome, Outcome::CannotBeJudged { .. }));
    let unshown = of_kind(|outcome| matches!(outcome, Outcome::NotShown { .. }));
    if all == 0 {
        return None;
    }
    if let Some(first) = exceeded.first() {
        let more = exceeded.len() - 1;
        let more = (more > 0).then(|| sentence![" and ", more, limits(more)]);
        return Some(sentence![
            "Limit exceeded: ",
            which(first, of),
            by(&first.outcome),
            more,
            "."
        ]);
    }
    if let Some(first) = unjudged.first() {
        let why = match &first.outcome {
            Outcome::CannotBeJudged { reason } => Printable(reason).to_string(),
            _ => String::new(),
        };
        let more = unjudged.len() - 1;
        let more = (more > 0).then(|| sentence!["; and ", more, limits(more)]);
        let limit = sentence!["Limit ", which(first, of), " cannot be judged: "];
        return Some(sentence![limit, Told::of(why), more, "."]);
    }
    Some(match (all, unshown.len()) {
        (1, 0) => "The limit was held.".into(),
        (_, 0) => sentence!["All ", all, " limits were held."],
        (1, _) => "The limit is not shown to be exceeded, nor to be held.".into(),
        (_, unshown) => sentence![
            "No limit is shown to be exceeded; ",
            unshown,
            " of ",
            all,
            " are not shown to be held either."
        ],
    })
}

/// The limit, and what it was judged for.
fn which(judged: &Judged, of: &Comparison) -> Told {
    let limit = Printable(&judged.limit).to_string();
    let named = limit.starts_with(&format!("{}:", judged.series));
    let pair = of.pairs.iter().find(|pair| pair.series == judged.series);
    match pair.filter(|_| !named) {
        Some(pair) => Told::of(format_args!("{limit} of {}", super::name(pair))),
        None => Told::of(limit),
    }
}

/// By how much it is exceeded.
fn by(of: &Outcome) -> Option<Sentence> {
    let Outcome::Exceeded { excess } = of else { return None };
    let value = |(low, high): (f64, f64), of: fn(f64) -> Value| {
        let middle = f64::midpoint(low, high);
        Cell::from(of(middle)).within(Some((of(low), of(high)))).ends()
    };
    Some(match excess {
        Excess::Ns(interval) => sentence![" (by ", value(*interval, Value::Time), ")"],
        Excess::Share(interval) => {
            let points = Sentence::unitless(value(*interval, Value::Share));
            sentence![" (by ", points, " points)"]
        }
    })
}
