//! The standard normal distribution and its inverse.
//!
//! The inverse is algorithm AS 241, PPND16 (Wichura, "The percentage points of the normal
//! distribution", Applied Statistics 37, 1988): a relative error of 1e-16, a logarithm and a square
//! root at most. The distribution itself is that of `whylate_stats::special`.

use whylate_stats::special;

/// `P(X <= z)`.
pub(crate) fn below(z: f64) -> f64 {
    let outside = special::normal_two_sided(z);
    if z < 0.0 { outside / 2.0 } else { 1.0 - outside / 2.0 }
}

/// The `z` with `P(X <= z) = p`; infinite at 0 and 1.
pub(crate) fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRE);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-tail.ln()).sqrt();
    let z = if r <= 5.0 { ratio(r - 1.6, &MIDDLE) } else { ratio(r - 5.0, &FAR) };
    z.copysign(q)
}

/// Numerator and denominator, constant term first.
type Rational = [[f64; 8]; 2];

fn ratio(r: f64, [over, under]: &Rational) -> f64 {
    let at = |terms: &[f64; 8]| terms.iter().rev().fold(0.0, |sum, term| sum * r + term);
    at(over) / at(under)
}

const CENTRE: Rational = [
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
];

const MIDDLE: Rational = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];

const FAR: Rational = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_is_the_inverse_of_the_distribution() {
        for step in -80..=80 {
            let z = f64::from(step) / 10.0;
            // Above, 1 - 1e-16 has no digits left.
            let p = below(-z.abs());
            let back = quantile(p);
            assert!((back + z.abs()).abs() < 1e-9, "{z}: {back}");
        }
        // One or two of each of the three rational functions, to all digits.
        for (p, z) in [
            (0.6, 0.253_347_103_135_799_8),
            (0.75, 0.674_489_750_196_081_7),
            (0.9, 1.281_551_565_544_600_4),
            (0.975, 1.959_963_984_540_054),
            (0.01, -2.326_347_874_040_840_8),
            (1e-12, -7.034_483_825_301_132),
        ] {
            let error = quantile(p) / z - 1.0;
            assert!(error.abs() < 1e-14, "{p}: {error}");
        }
        assert!((quantile(0.5)).abs() < 1e-15);
        assert!(quantile(0.0).is_infinite() && quantile(1.0).is_infinite());
    }

    #[test]
    fn the_distribution_is_that_of_every_table() {
        for (z, p) in [(0.0, 0.5), (1.0, 0.841_344_746_068_543), (-4.0, 3.167_124_183_311_992e-5)] {
            assert!((below(z) - p).abs() < 1e-13, "{z}: {}", below(z));
        }
    }
}
