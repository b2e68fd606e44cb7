//! Complex functions in f64. The functions of c64 are the same, with rounded results.
//!
//! Branch cuts, signed zeros, infinities and NaN are as in Annex G of C99. Functions that C99
//! doesn't have follow from others: the sine from the hyperbolic sine, `log1p` from `log`. Where
//! C99 doesn't specify a sign, neither does this module. Elsewhere each part has an error of a few
//! units in its last place, even if the other part is far greater: no formula subtracts rounded
//! numbers that nearly cancel. Where a part is zero along a curve, it is computed in double-double
//! arithmetic near the curve.
//!
//! After Kahan, "Branch Cuts for Complex Elementary Functions" (1987).

mod double_double;
mod inverse;
mod power;
mod real;

use std::f64::consts::LN_2;

use num_complex::Complex;

use crate::ops::math::f64_functions;
use double_double::{exp_cos_m1, two_product};
pub use inverse::{acos, acosh, asin, asinh, atan, atanh};
pub use power::{MAX_INTEGER_EXPONENT, pow};

type C = Complex<f64>;

/// Returns the quotient by the textbook formula. If an intermediate result of finite operands is
/// out of the range of f64, the operands are scaled by powers of two.
#[inline(always)]
pub fn divide(a: C, b: C) -> C {
    let denominator = norm_sqr(b);
    let result = textbook_quotient(a, b, denominator);
    if denominator.is_normal() && result.is_finite() {
        return result;
    }
    if !a.is_finite() || !b.is_finite() || b.re == 0.0 && b.im == 0.0 {
        return result;
    }
    divide_scaled(a, b)
}

#[cold]
#[inline(never)]
fn divide_scaled(a: C, b: C) -> C {
    let greatest = b.re.abs().max(b.im.abs());
    // Subnormal numbers are treated like the smallest normal one.
    let exponent = ((greatest.to_bits() >> 52) as i32 - 1023).max(-1022);
    let b = scale(b, -exponent);
    let denominator = norm_sqr(b);
    // Products of subnormal numbers would lose digits.
    let up = if a.re.abs().max(a.im.abs()) < 1e-280 { 200 } else { 0 };
    let result = textbook_quotient(scale(a, up), b, denominator);
    // A product of a number near the largest one and a number below two may overflow.
    let small = textbook_quotient(scale(a, -4), b, denominator);
    let part = |x: f64, small: f64| {
        if x.is_finite() { scale_part(x, -exponent - up) } else { scale_part(small, 4 - exponent) }
    };
    C::new(part(result.re, small.re), part(result.im, small.im))
}

fn scale(z: C, exponent: i32) -> C {
    C::new(scale_part(z.re, exponent), scale_part(z.im, exponent))
}

/// Returns `x * 2^exponent`, by factors that are in range.
fn scale_part(mut x: f64, mut exponent: i32) -> f64 {
    while exponent.abs() > 1000 {
        let step = 1000 * exponent.signum();
        x *= power_of_two(step);
        exponent -= step;
    }
    x * power_of_two(exponent)
}

#[inline(always)]
fn norm_sqr(z: C) -> f64 {
    z.re * z.re + z.im * z.im
}

/// Returns the product of two complex f32. Each part is rounded once.
#[inline(always)]
pub fn multiply_single(a: Complex<f32>, b: Complex<f32>) -> Complex<f32> {
    rounded(widened(a) * widened(b))
}

/// Returns the quotient of two complex f32. No intermediate result is out of the range of f64.
#[inline(always)]
pub fn divide_single(a: Complex<f32>, b: Complex<f32>) -> Complex<f32> {
    let (a, b) = (widened(a), widened(b));
    rounded(textbook_quotient(a, b, norm_sqr(b)))
}

/// Returns the power of two complex f32. Each part is rounded once.
pub fn pow_single(x: Complex<f32>, y: Complex<f32>) -> Complex<f32> {
    rounded(pow(widened(x), widened(y)))
}

#[inline(always)]
fn widened(z: Complex<f32>) -> C {
    C::new(f64::from(z.re), f64::from(z.im))
}

#[inline(always)]
fn rounded(z: C) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}

#[inline(always)]
fn textbook_quotient(a: C, b: C, denominator: f64) -> C {
    if b.re.is_infinite() && b.im == 0.0 && a.re.is_finite() && a.im.is_finite() {
        return C::new(0.0, 0.0);
    }
    C::new((a.re * b.re + a.im * b.im) / denominator, (a.im * b.re - a.re * b.im) / denominator)
}

/// Squares of larger numbers than `MAX_SQUARABLE` and of smaller numbers than `MIN_SQUARABLE` are
/// out of the range of f64, or lose digits.
const MAX_SQUARABLE: f64 = power_of_two(510);
const MIN_SQUARABLE: f64 = power_of_two(-450);
/// The exponent of the power of two that scales such numbers into that range. Half and a third of
/// it are integers.
const SQUARABLE_SCALE_EXPONENT: i32 = 600;

const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Returns the exponent of a power of two. The product of this power with a number of the given
/// magnitude has a square that is neither too large nor too small. Zeros, infinities and NaN stay
/// the same when they are scaled.
#[inline(always)]
fn scaling(magnitude: f64) -> i32 {
    if magnitude > MAX_SQUARABLE {
        -SQUARABLE_SCALE_EXPONENT
    } else if magnitude < MIN_SQUARABLE {
        SQUARABLE_SCALE_EXPONENT
    } else {
        0
    }
}

/// The magnitude, without overflow of intermediate results.
#[inline]
pub fn abs(z: C) -> f64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    let exponent = scaling(x.max(y));
    let (up, down) = (power_of_two(exponent), power_of_two(-exponent));
    let (x, y) = (x * up, y * up);
    // If one part is infinite, the result is infinite even if the other part is NaN.
    let infinite = (x == f64::INFINITY) | (y == f64::INFINITY);
    if infinite { f64::INFINITY } else { (x * x + y * y).sqrt() * down }
}

/// The angle, from -pi to pi.
#[inline]
pub fn phase(z: C) -> f64 {
    real::atan2(z.im, z.re)
}

// Exponentials

/// Returns `c factor e^x`, also if `e^x` alone overflows.
#[inline]
fn times_exp(x: f64, factor: f64, c: f64) -> f64 {
    /// The exponential of `EXP_SPLIT` is very close to an f64, `EXP_OF_SPLIT`. `EXP_SPLIT` has few
    /// bits, so that its difference from `x` is exact.
    const EXP_SPLIT: f64 = 698.591796875;
    const EXP_OF_SPLIT: f64 = 2.480632822040546e303;
    if x <= 709.0 {
        return real::exp(x) * factor * c;
    }
    let once = c * EXP_OF_SPLIT * factor;
    if x <= 2.0 * EXP_SPLIT {
        real::exp(x - EXP_SPLIT) * once
    } else {
        real::exp(x - 2.0 * EXP_SPLIT) * (once * EXP_OF_SPLIT)
    }
}

/// The exponential.
#[inline]
pub fn exp(z: C) -> C {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        return C::new(real::exp(x), y);
    }
    if !y.is_finite() && x.is_infinite() {
        return if x > 0.0 { C::new(x, f64::NAN) } else { C::new(0.0, 0f64.copysign(y)) };
    }
    let (sin, cos) = real::sin_cos(y);
    if x <= 709.0 {
        let r = real::exp(x);
        return C::new(r * cos, r * sin);
    }
    C::new(times_exp(x, 1.0, cos), times_exp(x, 1.0, sin))
}

/// The exponential minus one.
pub fn expm1(z: C) -> C {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        return C::new(real::expm1(x), y);
    }
    if !z.is_finite() || x > 100.0 {
        let w = exp(z);
        return C::new(w.re - 1.0, w.im);
    }
    let (exp, (sin, cos)) = (real::exp(x), real::sin_cos(y));
    let im = exp * sin;
    if cos < 0.0 {
        return C::new(exp * cos - 1.0, im);
    }
    // A difference of two terms that are zero where z is zero. The real part is zero along curves
    // through zero and the other multiples of 2 pi i.
    let half = real::sin(0.5 * y);
    let (plus, minus) = (real::expm1(x) * cos, 2.0 * half * half);
    let mut re = plus - minus;
    if re.abs() < 0.5 * minus && plus > 0.0 && y.abs() <= double_double::MAX_REDUCIBLE_ANGLE {
        re = exp_cos_m1(x, y, 0);
    }
    C::new(re, im)
}

/// From this number on, `e^-x` is negligible beside `e^x`.
const EXP_MINUS_NEGLIGIBLE_FROM: f64 = 20.0;

/// Returns the hyperbolic sine of `x` times `of_sinh`, and the hyperbolic cosine times `of_cosh`.
#[inline]
fn times_sinh_cosh(x: f64, of_sinh: f64, of_cosh: f64) -> (f64, f64) {
    let a = x.abs();
    if a > EXP_MINUS_NEGLIGIBLE_FROM {
        let (sinh, cosh) = (times_exp(a, 0.5, of_sinh), times_exp(a, 0.5, of_cosh));
        return (if x < 0.0 { -sinh } else { sinh }, cosh);
    }
    let m1 = real::expm1(a);
    let exp = m1 + 1.0;
    let sinh = 0.5 * (m1 + m1 / exp);
    (sinh.copysign(x) * of_sinh, 0.5 * (exp + 1.0 / exp) * of_cosh)
}

/// The hyperbolic sine.
pub fn sinh(z: C) -> C {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        return C::new(times_sinh_cosh(x, 1.0, 1.0).0, y);
    }
    if !y.is_finite() && (x == 0.0 || x.is_infinite()) {
        return C::new(x, f64::NAN);
    }
    let (sin, cos) = real::sin_cos(y);
    let (re, im) = times_sinh_cosh(x, cos, sin);
    C::new(re, im)
}

/// The hyperbolic cosine.
pub fn cosh(z: C) -> C {
    let Complex { re: x, im: y } = z;
    // A zero with the sign of the product of the parts.
    let zero = if x.is_sign_negative() { -0f64 } else { 0.0 } * 1f64.copysign(y);
    if y == 0.0 {
        return C::new(times_sinh_cosh(x, 1.0, 1.0).1, zero);
    }
    if !y.is_finite() && x == 0.0 {
        return C::new(f64::NAN, zero);
    }
    if !y.is_finite() && x.is_infinite() {
        return C::new(f64::INFINITY, f64::NAN);
    }
    let (sin, cos) = real::sin_cos(y);
    let (im, re) = times_sinh_cosh(x, sin, cos);
    C::new(re, im)
}

/// The hyperbolic tangent.
pub fn tanh(z: C) -> C {
    let Complex { re: x, im: y } = z;
    let a = x.abs();
    if x.is_infinite() && !y.is_finite() {
        return C::new(1f64.copysign(x), 0f64.copysign(y));
    }
    if y == 0.0 && x.is_nan() || x == 0.0 && !y.is_finite() {
        return C::new(x, if y == 0.0 { y } else { f64::NAN });
    }
    let (sin, cos) = real::sin_cos(y);
    if a > EXP_MINUS_NEGLIGIBLE_FROM && y.is_finite() {
        // The other term of the denominator, 2 cos(2 y) e^(-2 a), is negligible beside one.
        let exp = real::exp(-a);
        return C::new(1f64.copysign(x), 4.0 * sin * cos * exp * exp);
    }
    // (sinh a cosh a + i sin y cos y) / (sinh^2 a + cos^2 y), where the numerator and the
    // denominator are multiplied by 4 e^(2 a).
    let m1 = real::expm1(2.0 * a);
    let exp = m1 + 1.0;
    let denominator = m1 * m1 + 4.0 * exp * (cos * cos);
    C::new((m1 * (m1 + 2.0) / denominator).copysign(x), 4.0 * exp * (sin * cos) / denominator)
}

/// Returns `f(i z) / i` for an odd function `f` whose values for conjugate arguments are conjugate:
/// this is `f(y + i x)` with exchanged parts.
#[inline(always)]
fn rotated(f: impl Fn(C) -> C, z: C) -> C {
    let w = f(C::new(z.im, z.re));
    C::new(w.im, w.re)
}

/// The sine.
pub fn sin(z: C) -> C {
    rotated(sinh, z)
}

/// The cosine.
pub fn cos(z: C) -> C {
    cosh(C::new(-z.im, z.re))
}

/// The tangent.
pub fn tan(z: C) -> C {
    rotated(tanh, z)
}

/// The logistic function.
pub fn sigmoid(z: C) -> C {
    let Complex { re: x, im: y } = z;
    if y == 0.0 && x.is_nan() {
        return z;
    }
    if !y.is_finite() && x.is_infinite() {
        return C::new(if x > 0.0 { 1.0 } else { 0.0 }, 0f64.copysign(y));
    }
    let a = x.abs();
    let (exp, m1) = (real::exp(-a), -real::expm1(-a));
    let (sin, cos_half) = (real::sin(y), real::cos(0.5 * y));
    let square = cos_half * cos_half;
    // |1 + e^-z|^2, or |1 + e^z|^2 for negative x, is (1 - e)^2 + 4 e cos^2(y / 2) with e = e^-a.
    let denominator = m1 * m1 + 4.0 * exp * square;
    let im = exp * sin / denominator;
    if x >= 0.0 {
        return C::new((m1 + 2.0 * exp * square) / denominator, im);
    }
    // The real part is e (e + cos y) / |1 + e^z|^2, which is zero along curves between the poles.
    let (plus, minus) = if exp < 0.5 { (exp, -real::cos(y)) } else { (2.0 * square, m1) };
    let mut sum = plus - minus;
    if sum.abs() < 0.5 * minus && y.abs() <= double_double::MAX_REDUCIBLE_ANGLE {
        sum = -exp * exp_cos_m1(a, y, 2);
    }
    C::new(exp * sum / denominator, im)
}

// Logarithms

/// If the squared magnitude is in this range, the logarithm is computed from its difference to one.
const NORM_SQR_NEAR_ONE: std::ops::Range<f64> = 0.5..3.0;

/// The principal logarithm.
#[inline]
pub fn log(z: C) -> C {
    C::new(log_abs(z.re, z.im), phase(z))
}

/// The logarithm of the magnitude.
#[inline]
fn log_abs(x: f64, y: f64) -> f64 {
    let square = x * x + y * y;
    if NORM_SQR_NEAR_ONE.contains(&square) {
        let ((a, b), (c, d)) = (two_product(x, x), two_product(y, y));
        return 0.5 * real::log1p(double_double::sum([d, b, c, a, -1.0]).value());
    }
    let exponent = scaling(x.abs().max(y.abs()));
    if exponent == 0 && square.is_finite() {
        return 0.5 * real::log(square);
    }
    let scaled = abs(C::new(scale_part(x, exponent), scale_part(y, exponent)));
    real::log(scaled) - f64::from(exponent) * LN_2
}

/// The principal logarithm of one plus the argument.
pub fn log1p(z: C) -> C {
    let Complex { re: x, im: y } = z;
    if y == 0.0 && x > -1.0 {
        return C::new(real::log1p(x), y);
    }
    let im = real::atan2(y, 1.0 + x);
    let square = x * (2.0 + x) + y * y;
    if !(-0.5..2.0).contains(&square) {
        return C::new(log_abs(1.0 + x, y), im);
    }
    // |1 + z|^2 - 1, which is zero on a circle.
    let ((a, b), (c, d)) = (two_product(x, x), two_product(y, y));
    C::new(0.5 * real::log1p(double_double::sum([d, b, c, a, 2.0 * x]).value()), im)
}

// Roots

/// The principal square root.
#[inline]
pub fn sqrt(z: C) -> C {
    let exponent = scaling(z.re.abs().max(z.im.abs()));
    if exponent == 0 && z.re.is_finite() && z.im.is_finite() {
        return root_parts(z, greater_root(z.re, abs_scaled(z)));
    }
    sqrt_extreme(z, exponent)
}

/// The magnitude of a number whose square is neither too large nor too small.
#[inline(always)]
fn abs_scaled(z: C) -> f64 {
    (z.re * z.re + z.im * z.im).sqrt()
}

/// Returns the larger part of a square root, as a magnitude. It is the real part if `x` is
/// positive, otherwise the imaginary part.
#[inline(always)]
fn greater_root(x: f64, abs: f64) -> f64 {
    (0.5 * (abs + x.abs())).sqrt()
}

/// Returns the square root, given its larger part.
#[inline(always)]
fn root_parts(z: C, greater: f64) -> C {
    let lesser = z.im / (2.0 * greater);
    if z.re >= 0.0 { C::new(greater, lesser) } else { C::new(lesser.abs(), greater.copysign(z.im)) }
}

#[cold]
#[inline(never)]
fn sqrt_extreme(z: C, exponent: i32) -> C {
    let Complex { re: x, im: y } = z;
    if y.is_infinite() {
        return C::new(f64::INFINITY, y);
    }
    if x.is_infinite() {
        // NaN stays NaN, everything else becomes zero.
        let zero = if y.is_nan() { y } else { 0.0 };
        return if x > 0.0 { C::new(x, zero.copysign(y)) } else { C::new(zero, f64::INFINITY.copysign(y)) };
    }
    if x == 0.0 && y == 0.0 {
        return C::new(0.0, y);
    }
    if x.is_nan() || y.is_nan() {
        return C::new(f64::NAN, f64::NAN);
    }
    // The smaller part is computed from z itself, because scaling may lose the part of z that it
    // comes from.
    let scaled = scale(z, exponent);
    root_parts(z, scale_part(greater_root(scaled.re, abs_scaled(scaled)), -exponent / 2))
}

/// One divided by the square root.
pub fn rsqrt(z: C) -> C {
    if z.re.is_infinite() || z.im.is_infinite() {
        return C::new(0.0, 0f64.copysign(-z.im));
    }
    // The result of C's division for a zero.
    if z.re == 0.0 && z.im == 0.0 {
        return C::new(f64::INFINITY, f64::NAN);
    }
    let exponent = scaling(z.re.abs().max(z.im.abs()));
    // The conjugate of the square root, divided by the magnitude.
    let scaled = scale(z, exponent);
    let abs = abs_scaled(scaled);
    let root = greater_root(scaled.re, abs);
    let greater = scale_part(root / abs, exponent / 2);
    // The imaginary part is only scaled up, because scaling down may lose it.
    let up = exponent.max(0);
    let lesser = scale_part(scale_part(z.im, up) / (2.0 * root * abs), 3 * exponent / 2 - up);
    if z.re >= 0.0 { C::new(greater, -lesser) } else { C::new(lesser.abs(), greater.copysign(-z.im)) }
}

/// The principal cube root.
pub fn cbrt(z: C) -> C {
    let Complex { re: x, im: y } = z;
    if x == 0.0 && y == 0.0 {
        return C::new(0.0, y);
    }
    let exponent = scaling(x.abs().max(y.abs()));
    let abs = abs(scale(z, exponent));
    let root = f64_functions::cbrt(abs);
    // A step of Newton's method.
    let root = if abs.is_finite() { root + (abs / (root * root) - root) / 3.0 } else { abs };
    let root = scale_part(root, -exponent / 3);
    if abs.is_infinite() && (x.is_nan() || y.is_nan()) {
        return C::new(abs, f64::NAN);
    }
    // The imaginary part is a third of the tangent, which may be smaller than any f64.
    if x > 0.0 && y.is_finite() && y.abs() <= 1e-10 * x {
        return C::new(root, if y == 0.0 || x.is_infinite() { 0f64.copysign(y) } else { root / x * y / 3.0 });
    }
    let angle = phase(z) / 3.0;
    let (sin, cos) = real::sin_cos(angle);
    C::new(root * cos, root * sin)
}
