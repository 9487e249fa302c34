//! Tail probabilities of the binomial, Poisson, normal and chi-squared distributions.
//!
//! Guarantees: both tails, each computed directly where it is the small one, so that a probability
//! of 1e-30 keeps its digits; a relative error below 1e-10 up to a sample size of 1e10 and a cost
//! of microseconds at any size. Checked against SciPy and mpmath vectors (tests/vectors).
//!
//! Why not a library: statrs evaluates the incomplete beta function by 140 steps of a continued
//! fraction that needs about sqrt(n) of them, with a prefactor from differences of log-gammas that
//! are 1e11 at n = 1e10. Here the prefactor is the saddle-point form (Loader, "Fast and accurate
//! computation of binomial probabilities", 2000), in which nothing large cancels, and the tail is
//! a continued fraction for small parameters and an integral of the density for large ones.

use std::f64::consts::{SQRT_2, TAU};

/// From this value of the smaller parameter on, the tail is integrated: fractions need about the
/// square root of the parameter in steps, the integral always the same number.
const LARGE: f64 = 1000.0;

/// Steps after which a fraction or series is given up; below [`LARGE`] some hundred suffice.
const STEPS_MAX: u32 = 20_000;

/// The two tails of a distribution at one point; they sum to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tails {
    /// Probability of the point and below.
    pub lower: f64,
    /// Probability above the point.
    pub upper: f64,
}

impl Tails {
    fn from_lower(lower: f64) -> Self {
        let lower = lower.clamp(0.0, 1.0);
        Self { lower, upper: 1.0 - lower }
    }

    fn from_upper(upper: f64) -> Self {
        Self::from_lower(upper).swapped()
    }

    fn swapped(self) -> Self {
        Self { lower: self.upper, upper: self.lower }
    }
}

/// Binomial distribution of `trials` with success probability `p`, `q = 1 - p`, at `successes`:
/// lower is `P(X <= successes)`, by `I_q(trials - successes, successes + 1)` (DLMF 8.17.5).
///
/// Both `p` and `q` are asked for because `1 - 0.999999` has already lost six digits.
#[must_use]
pub fn binomial(trials: u64, successes: u64, p: f64, q: f64) -> Tails {
    if successes >= trials {
        return Tails { lower: 1.0, upper: 0.0 };
    }
    beta((trials - successes) as f64, successes as f64 + 1.0, q, p)
}

/// Poisson distribution of a mean at `count`: lower is `P(X <= count)`.
#[must_use]
pub fn poisson(mean: f64, count: u64) -> Tails {
    gamma(count as f64 + 1.0, mean).swapped()
}

/// Upper tail of the chi-squared distribution.
#[must_use]
pub fn chi_squared_upper(statistic: f64, degrees: u32) -> f64 {
    gamma(f64::from(degrees) / 2.0, statistic / 2.0).upper
}

/// Probability that a standard normal value lies at least `|z|` from 0.
#[must_use]
pub fn normal_two_sided(z: f64) -> f64 {
    let z = z.abs() / SQRT_2;
    gamma(0.5, z * z).upper
}

/// Regularised incomplete beta function: lower is `I_x(a, b)`, upper `I_y(b, a)`; `y = 1 - x`.
///
/// For `a, b > 0`; NaN in gives NaN out.
#[must_use]
pub fn beta(a: f64, b: f64, x: f64, y: f64) -> Tails {
    if x <= 0.0 {
        return Tails { lower: 0.0, upper: 1.0 };
    }
    if y <= 0.0 {
        return Tails { lower: 1.0, upper: 0.0 };
    }
    if b * x <= a * y {
        Tails::from_lower(beta_left(a, b, x, y))
    } else {
        Tails::from_upper(beta_left(b, a, y, x))
    }
}

/// Regularised incomplete gamma functions: lower is `P(a, x)`, upper `Q(a, x)`. For `a > 0`.
#[must_use]
pub fn gamma(a: f64, x: f64) -> Tails {
    if x <= 0.0 {
        return Tails { lower: 0.0, upper: 1.0 };
    }
    if x.is_infinite() {
        return Tails { lower: 1.0, upper: 0.0 };
    }
    // x^a e^-x / Gamma(a + 1)
    let front = (-deviance(a, x, x - a) - stirling_error(a)).exp() / (TAU * a).sqrt();
    // Of ln(density(x -+ d) / density(x)): -d * slope + curve(d).
    let slope = (a - 1.0 - x) / x;
    let spread = a.sqrt();
    match (x <= a, a >= LARGE) {
        (true, true) => {
            let curve = |d: f64| (a - 1.0) * ln_1p_minus(-d / x);
            Tails::from_lower(front * a / x * tail_integral(slope, spread, curve))
        }
        (false, true) => {
            let curve = |d: f64| (a - 1.0) * ln_1p_minus(d / x);
            Tails::from_upper(front * a / x * tail_integral(-slope, spread, curve))
        }
        // The series converges fast up to a little above the mean and has no subtraction.
        (_, false) if x < a + 1.0 => Tails::from_lower(front * gamma_series(a, x)),
        (_, false) => Tails::from_upper(front * a * gamma_fraction(a, x)),
    }
}

/// `I_x(a, b)` at or left of the mean `a / (a + b)`, where it is about a half at most.
fn beta_left(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let sum = a + b;
    let off = b * x - a * y; // = sum x - a = b - sum y, without their cancellation
    let exponent = stirling_error(sum)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, sum * x, off)
        - deviance(b, sum * y, -off);
    // x^a y^b / B(a, b)
    let front = (a / sum * b / TAU).sqrt() * exponent.exp();
    if a.min(b) < LARGE {
        return front / a * beta_fraction(a, b, x);
    }
    let slope = ((a - 1.0) * y - (b - 1.0) * x) / (x * y);
    let spread = (a / sum * (b / sum) / (sum + 1.0)).sqrt();
    let curve = |d: f64| (a - 1.0) * ln_1p_minus(-d / x) + (b - 1.0) * ln_1p_minus(d / y);
    front / (x * y) * tail_integral(slope, spread, curve)
}

/// The continued fraction of DLMF 8.17.22 by the modified Lentz method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut lentz = Lentz::new();
    for step in 1..STEPS_MAX {
        let m = f64::from(step / 2);
        let numerator = if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        if lentz.step(numerator, 1.0) {
            break;
        }
    }
    1.0 / lentz.value
}

/// `Gamma(a, x) / (x^a e^-x)` by the even part of the fraction of DLMF 8.9.2.
fn gamma_fraction(a: f64, x: f64) -> f64 {
    let mut lentz = Lentz::starting_with(x + 1.0 - a);
    for step in 1..STEPS_MAX {
        let m = f64::from(step);
        if lentz.step(-m * (m - a), x + 1.0 - a + 2.0 * m) {
            break;
        }
    }
    1.0 / lentz.value
}

/// `P(a, x) / (x^a e^-x / Gamma(a + 1))` by the series of DLMF 8.11.4.
fn gamma_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for step in 1..STEPS_MAX {
        term *= x / (a + f64::from(step));
        sum += term;
        if term < sum * f64::EPSILON / 2.0 {
            break;
        }
    }
    sum
}

/// A continued fraction `b0 + a1/(b1 + a2/(b2 + ...))`, front to back.
struct Lentz {
    value: f64,
    c: f64,
    d: f64,
}

impl Lentz {
    fn new() -> Self {
        Self::starting_with(1.0)
    }

    fn starting_with(b0: f64) -> Self {
        let value = away_from_zero(b0);
        Self { value, c: value, d: 0.0 }
    }

    /// Takes in one more level; true when it changed nothing any more.
    fn step(&mut self, numerator: f64, denominator: f64) -> bool {
        self.d = 1.0 / away_from_zero(denominator + numerator * self.d);
        self.c = away_from_zero(denominator + numerator / self.c);
        let change = self.c * self.d;
        self.value *= change;
        (change - 1.0).abs() <= f64::EPSILON
    }
}

fn away_from_zero(value: f64) -> f64 {
    const TINY: f64 = 1e-300;
    if value.abs() < TINY { TINY } else { value }
}

/// `integral of exp(-slope d + curve(d))` over d from 0 to infinity, where `curve` is about
/// `-(d/spread)^2 / 2`.
///
/// Double exponential quadrature: d = scale exp(u - exp(-u)), trapezoids in u (Takahasi and Mori
/// 1974). The integrand being nearly Gaussian, a step of 1/10 leaves an error far below f64's.
fn tail_integral(slope: f64, spread: f64, curve: impl Fn(f64) -> f64) -> f64 {
    const STEPS_PER_UNIT: i32 = 10;
    let step = 1.0 / f64::from(STEPS_PER_UNIT);
    let scale = 1.0 / (slope.max(0.0) + 1.0 / spread);
    let mut sum = 0.0;
    // Below u = -4, d is exp(-58) scales; above u = 4.5 the integrand is exp(-90).
    for node in -4 * STEPS_PER_UNIT..=9 * STEPS_PER_UNIT / 2 {
        let u = f64::from(node) * step;
        let fade = (-u).exp();
        let d = scale * (u - fade).exp();
        let height = (curve(d) - slope * d).exp();
        // Past the end of the density the logarithm is not a number, and the density is 0.
        if height.is_finite() {
            sum += height * d * (1.0 + fade);
        }
    }
    sum * step
}

/// `k ln(k/m) + m - k` with `off = m - k`: how far an observed k is from a mean m (Loader's bd0).
fn deviance(k: f64, m: f64, off: f64) -> f64 {
    let u = off / k;
    if u.abs() < 0.5 { -k * ln_1p_minus(u) } else { off - k * (m / k).ln() }
}

/// `ln(1 + u) - u` without the cancellation, by ln(1+u) = 2 atanh(r), r = u/(2+u).
fn ln_1p_minus(u: f64) -> f64 {
    if u.abs() >= 0.5 {
        return u.ln_1p() - u;
    }
    let r = u / (2.0 + u);
    let square = r * r;
    // |r| <= 1/3: each term is at most 1/9 of the one before; 17 reach below f64's last digit.
    let series = (1..=17).rev().fold(0.0, |sum, j| square * (1.0 / f64::from(2 * j + 1) + sum));
    r * (2.0 * series - u)
}

/// `ln Gamma(z + 1) - ((z + 1/2) ln z - z + ln(2 pi)/2)`, for z > 0: the rest of Stirling's formula
/// (DLMF 5.11.1), by its series from 16 on and by its recurrence below.
fn stirling_error(z: f64) -> f64 {
    let (mut z, mut below) = (z, 0.0);
    while z < 16.0 {
        below += (z + 0.5) * (1.0 / z).ln_1p() - 1.0;
        z += 1.0;
    }
    let s = 1.0 / (z * z);
    let series = 1.0 / 12.0
        - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s * (1.0 / 1188.0))));
    below + series / z
}
