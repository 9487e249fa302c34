//! The points of one request in the order of its way.

use whylate_model::breakdown::{Part, Point, Source};
use whylate_model::{Ticks, TicksDelta};

use crate::Instants;

/// The points that a request is taken apart by, its begin and its end among them; instants never fall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fitted {
    pub(super) points: Vec<(Point, Ticks)>,
    /// Points that were put at the time of their neighbour.
    pub(super) unordered: Vec<(Point, Source)>,
    /// Points that are not used.
    pub(super) contradicted: Vec<(Point, Source)>,
}

/// Why a request is not taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    NoBegin,
    NoEnd,
    EndsFirst,
}

impl Unfit {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::NoBegin => "it is not known when it began",
            Self::NoEnd => "it is not known when it ended",
            Self::EndsFirst => "it ended before it began, by what is known of it",
        }
    }
}

/// Puts the points of `whole` in order. Two that are in the wrong order by no more than `apart` of
/// their sources are at the same time; a point that is so by more is left out.
pub(super) fn fit(
    instants: &Instants,
    whole: Part,
    apart: impl Fn(Source, Source) -> TicksDelta,
) -> Result<Fitted, Unfit> {
    let (begin, begin_by) = instants.get(whole.from).ok_or(Unfit::NoBegin)?;
    let (end, end_by) = instants.get(whole.to).ok_or(Unfit::NoEnd)?;
    if end < begin || whole.to <= whole.from {
        return Err(Unfit::EndsFirst);
    }
    let mut fitted = Fitted {
        points: vec![(whole.from, begin)],
        unordered: Vec::new(),
        contradicted: Vec::new(),
    };
    let (mut last, mut last_by) = (begin, begin_by);
    let between = |point: &Point| *point > whole.from && *point < whole.to;
    for (point, at, source) in instants.known().filter(|(point, ..)| between(point)) {
        let (placed, tolerance) = if at < last {
            (last, apart(last_by, source))
        } else if at > end {
            (end, apart(end_by, source))
        } else {
            (at, TicksDelta(0))
        };
        if placed.0.abs_diff(at.0) > tolerance.0 {
            fitted.contradicted.push((point, source));
            continue;
        }
        if placed != at {
            fitted.unordered.push((point, source));
        }
        fitted.points.push((point, placed));
        (last, last_by) = (placed, source);
    }
    fitted.points.push((whole.to, end));
    Ok(fitted)
}

impl Fitted {
    /// The parts between neighbours, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Part, TicksDelta)> + '_ {
        parts(&self.points)
    }

    /// From the first point to the last.
    pub(super) fn whole(&self) -> TicksDelta {
        match (self.points.first(), self.points.last()) {
            (Some((_, begin)), Some((_, end))) => end.since(*begin),
            _ => TicksDelta(0),
        }
    }
}

/// The parts between neighbouring points.
pub(super) fn parts(points: &[(Point, Ticks)]) -> impl Iterator<Item = (Part, TicksDelta)> + '_ {
    points.windows(2).filter_map(|pair| {
        let [(from, begin), (to, end)] = pair else { return None };
        Some((Part { from: *from, to: *to }, end.since(*begin)))
    })
}
