//! The tangent and the inverse circular functions of f64.
//!
//! All are computed from an odd series `u + u^3 (c + u^2 q(u^2))` of a small `u`. Its first two terms
//! are sums of two numbers each, so that only `q` has rounding errors that count, and these are less
//! than a thousandth of the result. The errors are below 0.52 units in the last place, and below 0.65 if
//! the result is so small that its rounding error is subnormal.

use crate::ops::math::f32_functions::{Arithmetic, INF};
use crate::ops::math::f64_functions::{IDENTITY_LIMIT, fast_two_sum, quotient};

/// `pi`, `pi / 2`, `pi / 4` and `atan(1 / 2)` as sums of two numbers.
const PI: [f64; 2] = [std::f64::consts::PI, 1.2246467991473532e-16];
pub(in crate::ops::math) const HALF_PI: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17];
const QUARTER_PI: [f64; 2] = [std::f64::consts::FRAC_PI_4, 3.061616997868383e-17];
const ATAN_OF_HALF: [f64; 2] = [0.4636476090008061, 2.2698777452961687e-17];

/// The coefficient `c` of an odd series as the sum of two numbers, and those of `q`.
struct OddSeries<const N: usize> {
    cubic: [f64; 2],
    others: [f64; N],
}

/// The arc tangent for `|u| <= 1/4`; the error is 2^-64.
const ATAN: OddSeries<9> = OddSeries {
    cubic: [-0.3333333333333333, -1.850371707708594e-17],
    others: [
        0.19999999999999998,
        -0.14285714285713313,
        0.11111111110695758,
        -0.09090909022445623,
        0.07692302027248786,
        -0.06666402518037572,
        0.058750795422291675,
        -0.05145219993485,
        0.037041539375752906,
    ],
};

/// The tangent for `|u| <= pi / 8`; the error is 2^-64.
const TAN: OddSeries<11> = OddSeries {
    cubic: [0.3333333333333333, 1.850371707708594e-17],
    others: [
        0.13333333333333333,
        0.05396825396825396,
        0.021869488536157288,
        0.008863235529691637,
        0.0035921280474535424,
        0.0014558340596226619,
        0.0005900335677525559,
        0.00023905577383866628,
        9.747564111951926e-05,
        3.665495731392513e-05,
        2.263790837153305e-05,
    ],
};

/// The arc sine for `|u| <= 1/2`; the error is 2^-62.
const ASIN: OddSeries<14> = OddSeries {
    cubic: [0.16666666666666666, 9.25185853854297e-18],
    others: [
        0.075,
        0.044642857142858226,
        0.030381944444163943,
        0.02237215911947595,
        0.01735276290932625,
        0.013964891636551516,
        0.011550823577337352,
        0.009775076110986592,
        0.008261951665512903,
        0.008165934640582937,
        0.002528669035232747,
        0.017771033255193115,
        -0.017764251137523158,
        0.027072149944273302,
    ],
};

impl<const N: usize> OddSeries<N> {
    /// Returns the value of `q`. Its even and its odd powers don't wait for each other.
    #[inline(always)]
    fn others<A: Arithmetic>(&self, square: f64) -> f64 {
        let fourth = square * square;
        let mut sums = [0.0; 2];
        for i in (N - 2..N).rev() {
            sums[i % 2] = self.others[i];
        }
        for i in (0..N - 2).rev() {
            sums[i % 2] = A::fma(sums[i % 2], fourth, self.others[i]);
        }
        A::fma(sums[1], square, sums[0])
    }

    /// Returns the value for `u + u_low` as the sum of two numbers.
    #[inline(always)]
    fn value<A: Arithmetic>(&self, u: f64, u_low: f64) -> (f64, f64) {
        let [cubic, cubic_low] = self.cubic;
        let square = u * u;
        let square_low = A::fma(u, u, -square);
        let (c, c_low) = fast_two_sum(cubic, square * self.others::<A>(square));
        let p = square * c;
        let p_low = A::fma(square, c, -p) + A::fma(square, c_low + cubic_low, square_low * c);
        let w = u * p;
        let w_low = A::fma(u, p, -w) + u * p_low;
        // The derivative is near 1 + 3 c u^2.
        let u_low = A::fma(u_low, 3.0 * p, u_low);
        let (sum, rest) = fast_two_sum(u, w);
        (sum, rest + (w_low + u_low))
    }
}

/// Selects each number by itself, so that a vector loop selects with a mask.
#[inline(always)]
fn select(is: bool, yes: [f64; 2], no: [f64; 2]) -> [f64; 2] {
    [if is { yes[0] } else { no[0] }, if is { yes[1] } else { no[1] }]
}

/// Returns `-x` if `negative`.
#[inline(always)]
fn negate_if(negative: bool, x: f64) -> f64 {
    if negative { -x } else { x }
}

/// Returns the sum of a constant and a number of at most its magnitude, or of zero and any number.
#[inline(always)]
fn add([high, low]: [f64; 2], (x, x_low): (f64, f64)) -> f64 {
    let (sum, rest) = fast_two_sum(high, x);
    sum + (rest + (low + x_low))
}

/// Returns the tangent of `x = k pi / 2 + r + r_low`, given `(r, r_low, k)`.
#[inline(always)]
pub(in crate::ops::math) fn tan<A: Arithmetic>(x: f64, (r, r_low, k): (f64, f64, u64)) -> f64 {
    // With the tangent t of half of the angle, the result is 2t / (1 - t^2), or in odd quadrants the
    // negative inverse of that.
    let (t, t_low) = TAN.value::<A>(0.5 * r, 0.5 * r_low);
    let square = t * t;
    let (cosine, cosine_low) = fast_two_sum(1.0, -square);
    let cosine_low = cosine_low - A::fma(2.0 * t, t_low, A::fma(t, t, -square));
    let (sine, sine_low) = (2.0 * t, 2.0 * t_low);
    let is_odd = k & 1 != 0;
    let numerator = if is_odd { (-cosine, -cosine_low) } else { (sine, sine_low) };
    let denominator = if is_odd { (sine, sine_low) } else { (cosine, cosine_low) };
    let (high, low) = quotient::<A>(numerator, denominator);
    if x.abs() < IDENTITY_LIMIT { x } else { high + low }
}

/// Returns the part of an arc sine that is its series, as the sum of two numbers, and whether the
/// magnitude of `x` is above a half: then the arc sine is `pi / 2` minus twice that.
#[inline(always)]
fn asin_series<A: Arithmetic>(x: f64) -> (bool, (f64, f64)) {
    let is_large = x.abs() > 0.5;
    let square = 0.5 - 0.5 * x.abs();
    let root = square.sqrt();
    let root_low = if square == 0.0 { 0.0 } else { A::fma(-root, root, square) * (0.5 / root) };
    let (u, u_low) = if is_large { (root, root_low) } else { (x.abs(), 0.0) };
    (is_large, ASIN.value::<A>(u, u_low))
}

/// The arc sine.
#[inline(always)]
pub fn asin<A: Arithmetic>(x: f64) -> f64 {
    let (is_large, (value, low)) = asin_series::<A>(x);
    let far = add(HALF_PI, (-2.0 * value, -2.0 * low));
    (if is_large { far } else { value + low }).copysign(x)
}

/// The arc cosine.
#[inline(always)]
pub fn acos<A: Arithmetic>(x: f64) -> f64 {
    let (is_large, (value, low)) = asin_series::<A>(x);
    let is_negative = x < 0.0;
    let constant = select(is_large, select(is_negative, PI, [0.0; 2]), HALF_PI);
    let (value, low) = if is_large { (2.0 * value, 2.0 * low) } else { (value, low) };
    let subtract = is_large == is_negative;
    add(constant, (negate_if(subtract, value), negate_if(subtract, low)))
}

/// Returns the angle of the point `(x, y)`, for coordinates that are not negative and not both zero,
/// and whose greater one is between 2^-900 and 2^900. If `is_left`, it is the angle of `(-x, y)`.
#[inline(always)]
fn angle<A: Arithmetic>(y: f64, x: f64, is_left: bool) -> f64 {
    let is_steep = y > x;
    let (lesser, greater) = if is_steep { (x, y) } else { (y, x) };
    // The angle to the nearer axis is atan(c) + atan(u) with u = (t - c) / (1 + c t), where t is the
    // quotient and c is one of 0, 1/2 and 1. Products with c are exact, and so is the numerator.
    let (is_middle, is_far) = (lesser >= 0.25 * greater, lesser >= 0.75 * greater);
    let c = if is_far {
        1.0
    } else if is_middle {
        0.5
    } else {
        0.0
    };
    let near = select(is_far, QUARTER_PI, select(is_middle, ATAN_OF_HALF, [0.0; 2]));
    let denominator = fast_two_sum(greater, c * lesser);
    let (u, u_low) = quotient::<A>((lesser - c * greater, 0.0), denominator);
    let (value, low) = ATAN.value::<A>(u, u_low);
    // The nearer axis is at this angle, and the angle to it is added or subtracted.
    let axis = select(is_steep, HALF_PI, select(is_left, PI, [0.0; 2]));
    let subtract = is_steep != is_left;
    let [near, near_low] = near.map(|part| negate_if(subtract, part));
    let (sum, rest) = fast_two_sum(axis[0], near);
    let low = rest + (axis[1] + near_low) + negate_if(subtract, low);
    add([sum, 0.0], (negate_if(subtract, value), low))
}

/// The arc tangent.
#[inline(always)]
pub fn atan<A: Arithmetic>(x: f64) -> f64 {
    /// 2^60. For larger arguments the result is as for this one.
    const LIMIT: f64 = f64::from_bits((1023 + 60) << 52);
    let size = if x.abs() > LIMIT { LIMIT } else { x.abs() };
    angle::<A>(size, 1.0, false).copysign(x)
}

/// The angle of the point `(x, y)`.
#[inline(always)]
pub(in crate::ops::math) fn atan2<A: Arithmetic>(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let is_steep = a > b;
    let (lesser, greater) = if is_steep { (b, a) } else { (a, b) };
    // Infinity is as far as one, and finite numbers beside it are zero. NaN remains NaN.
    let lesser = if greater == INF { if lesser == INF { 1.0 } else { 0.0 * lesser } } else { lesser };
    let greater = if greater == INF || greater == 0.0 { 1.0 } else { greater };
    // Both are scaled by a power of two, so that the greater one is near 2^800 and neither is
    // subnormal if this can be seen in the result.
    let half = (2823 - (greater.to_bits() >> 52).min(2046)) >> 1;
    let scale = f64::from_bits((half + (1023 - 500)) << 52);
    let (lesser, greater) = (lesser * scale * scale, greater * scale * scale);
    let (a, b) = if is_steep { (greater, lesser) } else { (lesser, greater) };
    angle::<A>(a, b, x.is_sign_negative()).copysign(y)
}
