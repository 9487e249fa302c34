//! What actually left: how far apart, and whether that is the process that was asked for.

use whylate_model::{Nanos, Ticks};
use whylate_port::PortError;
use whylate_stats::histogram::Histogram;
use whylate_stats::uniformity::Uniformity;

use crate::conversation::Scale;
use crate::schedule::{Arrivals, Plan};

/// Requests that left, as the sending side saw it.
#[derive(Debug)]
pub struct Departures {
    /// Requests that left.
    pub sent: u64,
    /// Of them, those that left before the end of the measured time.
    pub in_time: u64,
    /// Requests intended before the end of the measured time.
    pub intended: u64,
    /// Requests that the kernel did not take: none of those that left.
    pub refused: u64,
    /// Why the first of them was not taken.
    pub why_refused: Option<PortError>,
    /// Distances of neighbours, in nanoseconds.
    pub gaps: Histogram,
    /// For Poisson arrivals: the distances through their distribution function, which are uniform
    /// when the process is the one asked for.
    pub uniformity: Option<Uniformity>,
    mean_ns: f64,
    previous: Option<Ticks>,
}

impl Departures {
    pub(super) fn new(plan: &Plan) -> Self {
        let poisson = matches!(plan.arrivals, Arrivals::Poisson);
        Self {
            sent: 0,
            in_time: 0,
            intended: 0,
            refused: 0,
            why_refused: None,
            gaps: Histogram::new(),
            uniformity: poisson.then(Uniformity::new),
            mean_ns: 1e9 / plan.mean_rate(),
            previous: None,
        }
    }

    /// The kernel did not take one.
    #[cold]
    pub(super) fn refused(&mut self, why: Option<PortError>) {
        self.refused += 1;
        self.why_refused = self.why_refused.take().or(why);
    }

    /// One left.
    #[inline]
    pub(super) fn left(&mut self, at: Ticks, in_time: bool, scale: Scale) {
        self.sent += 1;
        self.in_time += u64::from(in_time);
        if let Some(previous) = self.previous.replace(at) {
            let Nanos(gap) = scale.nanos(previous, at);
            self.gaps.record(gap);
            if let Some(uniformity) = &mut self.uniformity {
                // Half a nanosecond on: a gap is known to its nanosecond only.
                uniformity.push(-(-(gap as f64 + 0.5) / self.mean_ns).exp_m1());
            }
        }
    }

    /// Departures in the measured time over those intended in it.
    #[must_use]
    pub fn share_in_time(&self) -> Option<f64> {
        (self.intended > 0).then(|| self.in_time as f64 / self.intended as f64)
    }
}
