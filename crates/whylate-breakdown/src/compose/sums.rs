//! Parts of many requests, added up exactly.

use std::collections::BTreeMap;

use whylate_model::breakdown::{Composition, Part, PartShare, Point};
use whylate_model::{Hertz, Ticks};

use super::fit::parts;

/// Ticks of requests and of their parts.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    requests: u64,
    total: u128,
    parts: BTreeMap<Part, Sum>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    requests: u64,
    ticks: u128,
}

impl Sums {
    /// Adds a request by its points.
    pub(super) fn add(&mut self, points: &[(Point, Ticks)]) {
        let (Some((_, begin)), Some((_, end))) = (points.first(), points.last()) else { return };
        self.requests += 1;
        self.total += u128::from(end.since(*begin).0);
        for (part, took) in parts(points) {
            let sum = self.parts.entry(part).or_default();
            sum.requests += 1;
            sum.ticks += u128::from(took.0);
        }
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// What they consist of. `apart` says whether a part's points are neighbours, `series` what the
    /// series of a part is called.
    pub(super) fn composition(
        &self,
        rate: Hertz,
        apart: impl Fn(Part) -> bool,
        series: impl Fn(Part) -> Option<String>,
    ) -> Composition {
        let mean = |ticks: u128| ns(ticks, rate) / self.requests.max(1) as f64;
        let share = |ticks: u128| {
            if self.total == 0 { 0.0 } else { ticks as f64 / self.total as f64 }
        };
        let all: u128 = self.parts.values().map(|sum| sum.ticks).sum();
        let merged = self.parts.iter().filter(|(part, _)| !apart(**part));
        let of_part = |(part, sum): (&Part, &Sum)| PartShare {
            part: *part,
            requests: sum.requests,
            mean_ns: mean(sum.ticks),
            share: share(sum.ticks),
            told_apart: apart(*part),
            series: series(*part),
        };
        Composition {
            requests: self.requests,
            total_mean_ns: mean(self.total),
            parts: self.parts.iter().map(of_part).collect(),
            not_told_apart_ns: mean(merged.map(|(_, sum)| sum.ticks).sum()),
            residual_ns: mean(self.total.saturating_sub(all))
                - mean(all.saturating_sub(self.total)),
        }
    }
}

fn ns(ticks: u128, rate: Hertz) -> f64 {
    ticks as f64 * 1e9 / rate.0
}
