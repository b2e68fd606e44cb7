//! Double-double arithmetic (Dekker 1971): the unevaluated sum of two f64 has some 106 bits. The
//! module has the elementary functions that complex functions need where terms cancel.
//!
//! Products are split by Veltkamp's method and not fused, so that they have the same bits on every
//! processor.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, LOG2_E};

/// The number `high + low`, where `high` is the nearest f64.
#[derive(Clone, Copy)]
pub(super) struct DoubleDouble {
    pub high: f64,
    pub low: f64,
}

/// Returns `a + b` and its rounding error (Knuth's TwoSum).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_virtual = sum - a;
    (sum, (a - (sum - b_virtual)) + (b - b_virtual))
}

/// Returns `a + b` and its rounding error, if the magnitude of `a` is not smaller than that of `b`
/// (Dekker's Fast2Sum).
#[inline(always)]
fn fast_two_sum(a: f64, b: f64) -> DoubleDouble {
    let high = a + b;
    DoubleDouble { high, low: b - (high - a) }
}

/// Splits the significand of `a` into two halves (Veltkamp's splitting).
#[inline(always)]
fn veltkamp_split(a: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * a;
    let high = scaled - (scaled - a);
    (high, a - high)
}

/// Returns `a b` and its rounding error (Dekker's product).
#[inline(always)]
pub(super) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((a1, a2), (b1, b2)) = (veltkamp_split(a), veltkamp_split(b));
    (product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2)
}

/// Returns the sum as if it were computed in three times the precision (Ogita, Rump and Oishi,
/// "Accurate sum and dot product", 2005).
#[inline(always)]
pub(super) fn sum<const N: usize>(mut terms: [f64; N]) -> DoubleDouble {
    for _ in 0..2 {
        for i in 1..N {
            (terms[i], terms[i - 1]) = two_sum(terms[i], terms[i - 1]);
        }
    }
    let errors = terms[..N - 1].iter().sum();
    let (high, low) = two_sum(terms[N - 1], errors);
    DoubleDouble { high, low }
}

impl From<f64> for DoubleDouble {
    #[inline(always)]
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl std::ops::Add for DoubleDouble {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (high, error) = two_sum(self.high, other.high);
        let (low, rest) = two_sum(self.low, other.low);
        let sum = fast_two_sum(high, error + low);
        fast_two_sum(sum.high, sum.low + rest)
    }
}

impl std::ops::Neg for DoubleDouble {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl std::ops::Sub for DoubleDouble {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        std::ops::Add::add(self, -other)
    }
}

impl std::ops::Mul for DoubleDouble {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (high, error) = two_product(self.high, other.high);
        fast_two_sum(high, error + (self.high * other.low + self.low * other.high))
    }
}

impl std::ops::Mul<f64> for DoubleDouble {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: f64) -> Self {
        let (high, error) = two_product(self.high, other);
        fast_two_sum(high, error + self.low * other)
    }
}

impl DoubleDouble {
    /// Returns the product with a power of two.
    #[inline(always)]
    pub(super) fn scale(self, power: f64) -> Self {
        Self { high: self.high * power, low: self.low * power }
    }

    /// Returns the sum with a number of smaller magnitude.
    #[inline(always)]
    fn plus_lesser(self, other: Self) -> Self {
        let sum = fast_two_sum(self.high, other.high);
        fast_two_sum(sum.high, sum.low + (self.low + other.low))
    }

    #[inline(always)]
    pub(super) fn value(self) -> f64 {
        self.high + self.low
    }
}

/// `1 / n!` for `n` from 2 on.
const INVERSE_FACTORIALS: [(f64, f64); 27] = [
    (0.5, 0.0),
    (0.16666666666666666, 9.25185853854297e-18),
    (0.041666666666666664, 2.3129646346357427e-18),
    (0.008333333333333333, 1.1564823173178714e-19),
    (0.001388888888888889, -5.300543954373577e-20),
    (0.0001984126984126984, 1.7209558293420705e-22),
    (2.48015873015873e-05, 2.1511947866775882e-23),
    (2.7557319223985893e-06, -1.858393274046472e-22),
    (2.755731922398589e-07, 2.3767714622250297e-23),
    (2.505210838544172e-08, -1.448814070935912e-24),
    (2.08767569878681e-09, -1.20734505911326e-25),
    (1.6059043836821613e-10, 1.2585294588752098e-26),
    (1.1470745597729725e-11, 2.0655512752830745e-28),
    (7.647163731819816e-13, 7.03872877733453e-30),
    (4.779477332387385e-14, 4.399205485834081e-31),
    (2.8114572543455206e-15, 1.6508842730861433e-31),
    (1.5619206968586225e-16, 1.1910679660273754e-32),
    (8.22063524662433e-18, 2.2141894119604265e-34),
    (4.110317623312165e-19, 1.4412973378659527e-36),
    (1.9572941063391263e-20, -1.3643503830087908e-36),
    (8.896791392450574e-22, -7.911402614872376e-38),
    (3.868170170630684e-23, -8.843177655482344e-40),
    (1.6117375710961184e-24, -3.6846573564509766e-41),
    (6.446950284384474e-26, -1.9330404233703465e-42),
    (2.4795962632247976e-27, -1.2953730964765229e-43),
    (9.183689863795546e-29, 1.4303150396787322e-45),
    (3.279889237069838e-30, 1.5117542744029879e-46),
];

#[inline(always)]
fn inverse_factorial(n: usize) -> DoubleDouble {
    let (high, low) = INVERSE_FACTORIALS[n - 2];
    DoubleDouble { high, low }
}

/// `ln(2)` and `pi / 2` as sums of f64. The parts of `ln(2)` have 40 bits, so that their multiples
/// are exact.
const LN_2_40_BIT_PARTS: [f64; 3] = [0.6931471805592082, 7.371002565161996e-13, 5.8029889835956905e-25];
const HALF_PI_53_BIT_PARTS: [f64; 4] =
    [FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33, 5.562271104316826e-50];

/// Returns `k ln(2)`, for integers `k` of at most 13 bits.
#[inline(always)]
pub(super) fn multiple_of_ln_2(k: f64) -> DoubleDouble {
    let sum = fast_two_sum(k * LN_2_40_BIT_PARTS[0], k * LN_2_40_BIT_PARTS[1]);
    fast_two_sum(sum.high, sum.low + k * LN_2_40_BIT_PARTS[2])
}

/// Returns `e^x - 1` for `|x| < 0.42`. The series has `terms` terms after the first one, and
/// `double_terms` of them are double-double numbers.
#[inline(always)]
fn expm1_reduced(x: DoubleDouble, double_terms: usize, terms: usize) -> DoubleDouble {
    /// The series is evaluated for `x / 8`, and the argument is then doubled three times.
    const EIGHTH: f64 = 0.125;
    let r = x.scale(EIGHTH);
    let tail = (double_terms..terms).rev().fold(0.0, |tail, i| tail * r.high + INVERSE_FACTORIALS[i].0);
    let series = (0..double_terms)
        .rev()
        .fold(tail.into(), |series: DoubleDouble, i| inverse_factorial(2 + i).plus_lesser(series * r));
    let mut m = r.plus_lesser(r * r * series);
    for _ in 0..3 {
        m = m.scale(2.0).plus_lesser(m * m);
    }
    m
}

/// Returns `e^x - 1` to 80 bits, for `|x| < 0.42`.
#[inline(always)]
pub(super) fn expm1_small(x: f64) -> DoubleDouble {
    expm1_reduced(x.into(), 4, 11)
}

/// Returns `e^x - 1`, for `|x| < 709`.
fn expm1(x: f64) -> DoubleDouble {
    let k = (x * LOG2_E).round();
    if k == 0.0 {
        return expm1_reduced(x.into(), 7, 15);
    }
    let m = expm1_reduced(DoubleDouble::from(x) - multiple_of_ln_2(k), 7, 15);
    (DoubleDouble::from(1.0) + m).scale(2f64.powi(k as i32)) - 1.0.into()
}

/// The largest angle that is reduced without loss.
pub(super) const MAX_REDUCIBLE_ANGLE: f64 = 1e15;

/// Returns `(n modulo 4, r)` with `y = n pi / 2 + r`.
fn reduce(y: f64) -> (u8, DoubleDouble) {
    let n = (y * FRAC_2_PI).round();
    let [(a, b), (c, d), (e, f)] = [0, 1, 2].map(|i| two_product(-n, HALF_PI_53_BIT_PARTS[i]));
    (n.rem_euclid(4.0) as u8, sum([-n * HALF_PI_53_BIT_PARTS[3], f, e, d, c, b, a, y]))
}

/// Returns `1 / n! - square / (n + 2)! + square^2 / (n + 4)! ...`. The sum has `terms` terms, and
/// `double_terms` of them are double-double numbers.
#[inline(always)]
fn alternating_series(square: DoubleDouble, n: usize, double_terms: usize, terms: usize) -> DoubleDouble {
    let tail = (double_terms..terms)
        .rev()
        .fold(0.0, |tail, i| INVERSE_FACTORIALS[n - 2 + 2 * i].0 - tail * square.high);
    (0..double_terms).rev().fold(tail.into(), |series: DoubleDouble, i| {
        inverse_factorial(n + 2 * i).plus_lesser(-(series * square))
    })
}

/// The sine, for `|r| < pi / 4`.
#[inline(always)]
fn sin_reduced(r: DoubleDouble, double_terms: usize, terms: usize) -> DoubleDouble {
    let square = r * r;
    r.plus_lesser(-(r * square * alternating_series(square, 3, double_terms, terms)))
}

/// The cosine minus one, for `|r| < pi / 4`.
#[inline(always)]
fn cosm1_reduced(r: DoubleDouble, double_terms: usize, terms: usize) -> DoubleDouble {
    let square = r * r;
    -(square * alternating_series(square, 2, double_terms, terms))
}

/// Sine and cosine to 80 bits, of an angle from -pi to pi.
pub(super) fn sin_cos(y: f64) -> (DoubleDouble, DoubleDouble) {
    let n = (y * FRAC_2_PI).round();
    // The first product and the first difference are exact.
    let (high, low) = two_sum(y - n * HALF_PI_53_BIT_PARTS[0], -n * HALF_PI_53_BIT_PARTS[1]);
    let r = fast_two_sum(high, low - n * HALF_PI_53_BIT_PARTS[2]);
    let (sin, cosm1) = (sin_reduced(r, 4, 10), cosm1_reduced(r, 5, 10));
    let cos = DoubleDouble::from(1.0).plus_lesser(cosm1);
    match n.rem_euclid(4.0) as u8 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// Returns `e^x cos(y + quadrant pi / 2) - 1`, for `|x| < 709` and `|y|` of at most
/// [`MAX_REDUCIBLE_ANGLE`].
#[cold]
#[inline(never)]
pub(super) fn exp_cos_m1(x: f64, y: f64, quadrant: u8) -> f64 {
    let (n, r) = reduce(y);
    // The cosine minus one.
    let m1 = match (n + quadrant) % 4 {
        0 => cosm1_reduced(r, 8, 13),
        1 => -sin_reduced(r, 7, 13) - 1.0.into(),
        2 => -cosm1_reduced(r, 8, 13) - 2.0.into(),
        _ => sin_reduced(r, 7, 13) - 1.0.into(),
    };
    let cos = m1 + 1.0.into();
    (expm1(x) * cos + m1).value()
}
