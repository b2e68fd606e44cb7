//! `erf_inv` of f64.

use crate::ops::math::f32_functions::{Arithmetic, INF, polynomial};
use crate::ops::math::f64_functions::logarithm::minus_log;
use crate::ops::math::f64_functions::{SUBNORMAL_SCALE, fast_two_sum};

/// Arguments of at least this magnitude are in the tails.
const ERF_INV_CENTRAL_LIMIT: f64 = 0.7;

/// `sqrt(pi) / 2`, and its rounding error.
const ERF_INV_SLOPE_AT_ZERO: f64 = 0.886226925452758;
const ERF_INV_SLOPE_AT_ZERO_LOW: f64 = -3.8332932499128993e-17;

/// `(erf_inv(x) / x - sqrt(pi) / 2) / x^2` as a quotient of polynomials in `x^2 -
/// CENTRAL_SQUARE_LIMIT`, for `|x| <= ERF_INV_CENTRAL_LIMIT`; the error of `erf_inv(x)` is 2^-57.
const CENTRAL_SQUARE_LIMIT: f64 = 0.49;
const CENTRAL_NUMERATOR: [f64; 7] = [
    0.3280181636801348,
    -1.5762998889726085,
    2.733489228458886,
    -2.0701676475780233,
    0.6521211558683518,
    -0.06361222101621052,
    0.00023088728828939928,
];
const CENTRAL_DENOMINATOR: [f64; 7] = [
    1.0,
    -5.744803299927753,
    12.565959886985532,
    -13.071213723695939,
    6.579910509587272,
    -1.4378317087531045,
    0.09692154643938014,
];

/// From this number on, `s = sqrt(-log(2 (1 - |x|)))` is in the remote part of a tail.
const REMOTE_TAIL_START: f64 = 1.75;

/// `s - erf_inv(x)` minus a line in `s`, as a quotient of polynomials in `s - TAIL_ORIGIN`, for
/// `0.71 <= s <= REMOTE_TAIL_START`; the error of `erf_inv(x)` is 2^-58. The magnitude of the
/// quotient is at most 0.02.
const TAIL_LINE: [f64; 2] = [-7.0 / 64.0, 5.0 / 32.0];
const TAIL_ORIGIN: f64 = 0.75;
const TAIL_NUMERATOR: [f64; 9] = [
    -0.013989438253417407,
    0.1373807621667295,
    0.10869633209703161,
    -0.05063357751195348,
    -0.17293065077997152,
    -0.13401041531920346,
    -0.05213509707297977,
    -0.009138594486015747,
    -0.00046739445096650605,
];
const TAIL_DENOMINATOR: [f64; 8] = [
    1.0,
    2.5366557023911134,
    3.2433058486852664,
    2.497731853888914,
    1.223652307348047,
    0.3666564442267248,
    0.05854508350633888,
    0.0029913244861856387,
];

/// `s - erf_inv(x)` minus a constant, as a quotient of polynomials in `s - REMOTE_TAIL_START`, for
/// `REMOTE_TAIL_START <= s <= 6.01`. The `s` of the last number below one is less than that. The
/// error of `erf_inv(x)` is 2^-57.
const REMOTE_TAIL_CONSTANT: f64 = 5.0 / 32.0;
const REMOTE_TAIL_NUMERATOR: [f64; 10] = [
    -0.00931796461250615,
    0.03114756288311398,
    0.046271964912495175,
    0.019451036946743366,
    -0.000722994918869653,
    -0.002788401396460946,
    -0.0007904065676214183,
    -8.389302778551624e-05,
    -3.191201268888933e-06,
    -3.038675342671908e-08,
];
const REMOTE_TAIL_DENOMINATOR: [f64; 10] = [
    1.0,
    2.2825052816754705,
    2.3053917401965727,
    1.3235814073234498,
    0.4646363831600111,
    0.10007856989260527,
    0.012605881347781142,
    0.0008346915476257134,
    2.3948569740265533e-05,
    1.9668761908657231e-07,
];

/// Inverse of `erf`. The results are infinities at -1 and 1, and NaN outside.
///
/// Near 1, `1 - erf(y)` is about `exp(-y^2) / 2`. So the square root of a logarithm, computed as
/// the sum of two numbers, is within 3% of the result.
#[inline(always)]
#[must_use]
pub fn erf_inv<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs();
    let is_central = a < ERF_INV_CENTRAL_LIMIT;
    let rest = 1.0 - a;
    let (log, log_low) = minus_log::<A>(rest + rest);
    let s = log.sqrt();
    let s_low = (A::fma(-s, s, log) + log_low) * (0.5 / s);

    let z = x * x;
    let remote = s >= REMOTE_TAIL_START;
    let [t, u, v] = [A::fma(x, x, -CENTRAL_SQUARE_LIMIT), s - TAIL_ORIGIN, s - REMOTE_TAIL_START];
    let numerator = polynomial::<A, _>(u, TAIL_NUMERATOR);
    let numerator = if remote { polynomial::<A, _>(v, REMOTE_TAIL_NUMERATOR) } else { numerator };
    let numerator = if is_central { polynomial::<A, _>(t, CENTRAL_NUMERATOR) } else { numerator };
    let denominator = polynomial::<A, _>(u, TAIL_DENOMINATOR);
    let denominator = if remote { polynomial::<A, _>(v, REMOTE_TAIL_DENOMINATOR) } else { denominator };
    let denominator = if is_central { polynomial::<A, _>(t, CENTRAL_DENOMINATOR) } else { denominator };
    let quotient = numerator / denominator;

    let small = a < 1.0 / SUBNORMAL_SCALE;
    let scaled = x * if small { SUBNORMAL_SCALE } else { 1.0 };
    let rise = z * quotient;
    let rise_low = A::fma(A::fma(x, x, -z), quotient, A::fma(z, quotient, -rise));
    let (slope, slope_low) = fast_two_sum(ERF_INV_SLOPE_AT_ZERO, rise);
    let slope_low = slope_low + (ERF_INV_SLOPE_AT_ZERO_LOW + rise_low);
    let line = scaled * slope;
    let line_low = A::fma(scaled, slope_low, A::fma(scaled, slope, -line));
    let line = (line + line_low) * if small { 1.0 / SUBNORMAL_SCALE } else { 1.0 };

    let factor = if remote { 1.0 } else { 1.0 - TAIL_LINE[1] };
    let product = factor * s;
    let product_low = A::fma(factor, s_low, A::fma(factor, s, -product));
    let (tail, rest) = fast_two_sum(product, if remote { -REMOTE_TAIL_CONSTANT } else { -TAIL_LINE[0] });
    let tail = (tail + (rest + product_low - quotient)).copysign(x);
    let result = if is_central { line.copysign(x) } else { tail };
    let result = if a == 1.0 { INF.copysign(x) } else { result };
    if a > 1.0 { f64::NAN } else { result }
}
