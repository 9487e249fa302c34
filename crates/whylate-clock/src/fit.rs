//! Slope of the raw clock over the counter, with a bound that does not rest on luck.
//!
//! A sandwich says that the raw clock stood between two values when the counter was read: its
//! middle is wrong by at most half its width, and half a step of the counter. A slope fitted by
//! least squares is a weighted sum of the middles, so its error is at most the sum of the weights'
//! sizes times the half-widths. That is a bound, not a standard error: nothing is assumed about how
//! the errors are distributed or whether they depend on each other.
//!
//! Two things can make it wrong, and both are measured. The frequency may drift: with enough
//! sandwiches a parabola is fitted, and the bound covers its slope from one end of the run to the
//! other. And readings may scatter beyond their sandwiches, or follow a curve that is no parabola:
//! then some middle lies further from the fit than its half-width, and twice the largest such
//! excess is added to every half-width.
//!
//! What it does not see: a wander that turns many times in the run and stays inside the sandwiches,
//! some tens of nanoseconds; and any scatter when there are only two or three sandwiches.

use whylate_model::TicksDelta;

use crate::sandwich::{Narrowest, Sandwich};

/// With fewer sandwiches there is no telling drift from scatter.
const SANDWICHES_FOR_DRIFT: usize = 8;

/// With a hole longer than this share of the run a parabola would be guessed inside it.
const LONGEST_HOLE: f64 = 0.5;

/// Excess over half-widths is seen in residuals, and a fit makes residuals smaller than the errors
/// behind them; sandwiches that are spread over the run it leaves more than half of.
const EXCESS_FACTOR: f64 = 2.0;

/// A fitted slope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    /// Nanoseconds of the raw clock per tick over the whole run.
    pub(crate) ns_per_tick: f64,
    /// Bound of its relative error: at every moment of the run if `drift` is there, as the mean
    /// over the run if not.
    pub(crate) bound: f64,
    /// Relative change of the frequency per second.
    pub(crate) drift: Option<Drift>,
    /// The residual furthest beyond its half-width, in nanoseconds.
    pub(crate) excess_ns: f64,
    /// The largest residual with its half-width, in nanoseconds.
    pub(crate) scatter_ns: f64,
    /// Sandwiches behind the fit.
    pub(crate) sandwiches: usize,
}

/// A change of frequency over the run, with its bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drift {
    /// Relative change per second.
    pub(crate) per_second: f64,
    /// Bound of its error.
    pub(crate) bound: f64,
}

/// Fits the kept sandwiches of a counter that moves by `step`; none if they do not span any time.
pub(crate) fn fit(store: &Narrowest, step: TicksDelta) -> Option<Fit> {
    let sandwiches: Vec<Sandwich> = store.kept().copied().collect();
    let axes = Axes::through(sandwiches.first()?, sandwiches.last()?, step)?;
    let points: Vec<Point> = sandwiches.iter().map(|sandwich| axes.point(sandwich)).collect();
    let basis = Basis::over(&points);
    let parabola = has_room_for_drift(&points);

    let curve = basis.curve(&points, parabola);
    let residual = |point: &Point| (point.ns - basis.value(&curve, point.u)).abs();
    let excess_ns = points.iter().map(|p| residual(p) - p.half).fold(0.0, f64::max);
    let scatter_ns = points.iter().map(|p| residual(p) + p.half).fold(0.0, f64::max);

    // From nanoseconds per unit of `u` to a relative slope.
    let mean = basis.slope(0.0, false);
    let mean_slope = mean.of(&points);
    let ns_per_tick = axes.ns_per_tick + mean_slope / axes.ticks_per_unit;
    let relative = 1.0 / (axes.ticks_per_unit * ns_per_tick);
    let error = |weights: &Weights| relative * weights.error(&points, EXCESS_FACTOR * excess_ns);

    let (bound, drift) = if parabola {
        let (start, end) = store.ends();
        let ends = [&start, &end].map(|sandwich| axes.point(sandwich).u);
        let slopes = ends.map(|u| basis.slope(u, true));
        let off =
            |slope: &Weights| relative * (slope.of(&points) - mean_slope).abs() + error(slope);
        let change = slopes[1].minus(&slopes[0]);
        let seconds = (ends[1] - ends[0]) * axes.ticks_per_unit * ns_per_tick / 1e9;
        let drift = Drift {
            // A slope that grows is nanoseconds that take fewer ticks: the frequency falls.
            per_second: -relative * change.of(&points) / seconds,
            bound: error(&change) / seconds,
        };
        (slopes.iter().map(off).fold(0.0, f64::max), Some(drift))
    } else {
        (error(&mean), None)
    };
    // A bound on the slope as one on its inverse.
    let bound = if bound < 1.0 { bound / (1.0 - bound) } else { f64::INFINITY };
    Some(Fit { ns_per_tick, bound, drift, excess_ns, scatter_ns, sandwiches: points.len() })
}

/// Axes that lose no precision: position in the run, -1 at the first sandwich kept and 1 at the
/// last, and nanoseconds above the straight line between the two.
struct Axes {
    origin: Sandwich,
    ticks_per_unit: f64,
    ns_per_tick: f64,
    /// A reading stands for any time until the counter's next step: as far to either side of the
    /// middle as this.
    half_step_ns: f64,
}

impl Axes {
    fn through(first: &Sandwich, last: &Sandwich, step: TicksDelta) -> Option<Self> {
        let ticks = last.ticks.since(first.ticks).0 as f64;
        let ns = middle_ns(last, first);
        (ticks > 0.0 && ns > 0.0).then_some(Self {
            origin: *first,
            ticks_per_unit: ticks / 2.0,
            ns_per_tick: ns / ticks,
            half_step_ns: step.0 as f64 * ns / ticks / 2.0,
        })
    }

    fn point(&self, sandwich: &Sandwich) -> Point {
        let ticks = i128::from(sandwich.ticks.0) - i128::from(self.origin.ticks.0);
        Point {
            u: ticks as f64 / self.ticks_per_unit - 1.0,
            ns: middle_ns(sandwich, &self.origin) - self.ns_per_tick * ticks as f64,
            half: sandwich.width_ns() as f64 / 2.0 + self.half_step_ns,
        }
    }
}

/// One sandwich on the axes.
#[derive(Debug, Clone, Copy)]
struct Point {
    u: f64,
    ns: f64,
    half: f64,
}

/// Nanoseconds from the middle of one sandwich to the middle of another.
fn middle_ns(sandwich: &Sandwich, origin: &Sandwich) -> f64 {
    let twice_middle = |s: &Sandwich| i128::from(s.low_ns) + i128::from(s.high_ns);
    (twice_middle(sandwich) - twice_middle(origin)) as f64 / 2.0
}

fn has_room_for_drift(points: &[Point]) -> bool {
    let hole = points.windows(2).map(|pair| pair[1].u - pair[0].u).fold(0.0, f64::max);
    points.len() >= SANDWICHES_FOR_DRIFT && hole <= 2.0 * LONGEST_HOLE
}

/// Polynomials of degree 0, 1 and 2 that are orthogonal over the points, each point weighted by
/// the inverse square of its half-width: wide sandwiches hardly count. None counts for more than
/// one of half the median width, lest one that is narrow by a fault of the clock rule the fit.
struct Basis {
    weights: Vec<f64>,
    centre: f64,
    /// `p2(u) = (u - turn) p1(u) - fall`
    turn: f64,
    fall: f64,
    norm0: f64,
    norm1: f64,
    norm2: f64,
    p1: Vec<f64>,
    p2: Vec<f64>,
}

impl Basis {
    fn over(points: &[Point]) -> Self {
        let mut halves: Vec<f64> = points.iter().map(|p| p.half).collect();
        halves.sort_by(f64::total_cmp);
        let least = halves[halves.len() / 2] / 2.0;
        let weights: Vec<f64> = points.iter().map(|p| p.half.max(least).powi(-2)).collect();
        let sum = |term: &dyn Fn(usize) -> f64| -> f64 {
            (0..points.len()).map(|k| weights[k] * term(k)).sum()
        };
        let norm0 = sum(&|_| 1.0);
        let centre = sum(&|k| points[k].u) / norm0;
        let p1: Vec<f64> = points.iter().map(|p| p.u - centre).collect();
        let norm1 = sum(&|k| p1[k] * p1[k]);
        let turn = sum(&|k| points[k].u * p1[k] * p1[k]) / norm1;
        let fall = norm1 / norm0;
        let p2: Vec<f64> = points.iter().zip(&p1).map(|(p, p1)| (p.u - turn) * p1 - fall).collect();
        let norm2 = sum(&|k| p2[k] * p2[k]);
        Self { weights, centre, turn, fall, norm0, norm1, norm2, p1, p2 }
    }

    /// Coefficients of the fitted curve.
    fn curve(&self, points: &[Point], parabola: bool) -> [f64; 3] {
        let sum = |p: &dyn Fn(usize) -> f64| -> f64 {
            (0..points.len()).map(|k| self.weights[k] * p(k) * points[k].ns).sum()
        };
        let bend = if parabola { sum(&|k| self.p2[k]) / self.norm2 } else { 0.0 };
        [sum(&|_| 1.0) / self.norm0, sum(&|k| self.p1[k]) / self.norm1, bend]
    }

    /// The fitted curve at `u`.
    fn value(&self, curve: &[f64; 3], u: f64) -> f64 {
        let p1 = u - self.centre;
        curve[0] + curve[1] * p1 + curve[2] * ((u - self.turn) * p1 - self.fall)
    }

    /// The slope of the fitted curve at `u` as weights of the points.
    fn slope(&self, u: f64, parabola: bool) -> Weights {
        let bend = 2.0 * u - self.turn - self.centre;
        let weights = (0..self.weights.len()).map(|k| {
            let line = self.p1[k] / self.norm1;
            let curve = if parabola { bend * self.p2[k] / self.norm2 } else { 0.0 };
            self.weights[k] * (line + curve)
        });
        Weights(weights.collect())
    }
}

/// A quantity that is a weighted sum of the points.
struct Weights(Vec<f64>);

impl Weights {
    fn of(&self, points: &[Point]) -> f64 {
        self.0.iter().zip(points).map(|(weight, point)| weight * point.ns).sum()
    }

    /// The most it can be off if each point is off by its half-width and `more`.
    fn error(&self, points: &[Point], more: f64) -> f64 {
        self.0.iter().zip(points).map(|(weight, p)| weight.abs() * (p.half + more)).sum()
    }

    fn minus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a - b).collect())
    }
}
