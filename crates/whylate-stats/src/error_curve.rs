//! The error of an instrument at each percentile: what it measured against the truth.
//!
//! `error(p) = Q_m(p) - Q_t(p)`, with `m` what was measured and `t` the truth of the same messages.
//! Both quantiles are uncertain, and the two samples depend on each other in a way nobody knows: a
//! message that the line kept long was measured long. So nothing is assumed about it: each quantile
//! gets the interval of exact order statistics at 97.5 %, and the error's interval reaches from the
//! lower end of the one minus the upper end of the other to the opposite. By Bonferroni's inequality it
//! holds the true error in at least 95 % of all samples, whatever the two distributions are and however
//! they depend on each other. It is wide where the truth itself scatters; with a constant delay it
//! hardly does. (A bootstrap of paired blocks would be narrower. It is not used: it covers too rarely
//! for quantiles of which a block holds a few values or none, and those are what this is for.)
//!
//! Dependence of neighbours in time is accounted for by the effective sample size, which the caller
//! knows: the smaller one of the two samples.

use crate::order::{Order, limits};

/// What each limit of each of the two quantiles may fail with: four of them make 5 %.
const TAIL: f64 = 0.0125;

/// The error at one percentile, ns. Positive: measured too slow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorAt {
    /// Which, in percent.
    pub percent: f64,
    /// The difference of the quantiles; none where one of the samples does not support them.
    pub error_ns: Option<f64>,
    /// Lower end of the interval; none where not supported.
    pub low_ns: Option<f64>,
    /// Upper end; none where not supported.
    pub high_ns: Option<f64>,
    /// Independent samples behind the interval: the smaller number of the two sides.
    pub n_eff: f64,
}

/// The error at each of `percents`.
///
/// `measured` and `truth` are those of the same messages. `n_eff` is asked for each percentile and
/// clamped to the samples there are; `|_| f64::INFINITY` for independent values.
///
/// # Panics
/// When a percentage is not inside 0..100.
#[must_use]
pub fn error_curve(
    measured: &(impl Order + ?Sized),
    truth: &(impl Order + ?Sized),
    percents: &[f64],
    mut n_eff: impl FnMut(f64) -> f64,
) -> Vec<ErrorAt> {
    let at = |&percent: &f64| {
        let worth = n_eff(percent);
        let (m, t) = (limits(measured, percent, worth, TAIL), limits(truth, percent, worth, TAIL));
        let minus = |a: Option<f64>, b: Option<f64>| Some(a? - b?);
        ErrorAt {
            percent,
            error_ns: minus(m.value, t.value),
            low_ns: minus(m.low, t.high),
            high_ns: minus(m.high, t.low),
            n_eff: m.n_eff.min(t.n_eff),
        }
    };
    percents.iter().map(at).collect()
}

/// The errors of results from which `base_ns` is taken off.
///
/// A constant that is subtracted from every result moves every quantile by itself exactly, whatever it
/// was taken for; so the intervals only shift. That it was measured, and how well, decides how much of
/// the error it removes, not how sure the rest is.
#[must_use]
pub fn compensated(curve: &[ErrorAt], base_ns: f64) -> Vec<ErrorAt> {
    let less = |value: Option<f64>| value.map(|value| value - base_ns);
    let at = |at: &ErrorAt| ErrorAt {
        error_ns: less(at.error_ns),
        low_ns: less(at.low_ns),
        high_ns: less(at.high_ns),
        ..*at
    };
    curve.iter().map(at).collect()
}
