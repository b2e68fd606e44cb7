//! Powers: `e^(y log x)`, where the logarithm and the product are double-double numbers, because
//! the exponential loses as many digits as the product has before the point. Powers with small
//! integers as exponents are computed by repeated squaring.

use std::f64::consts::SQRT_2;

use crate::ops::math::complex::double_double::{
    DoubleDouble, MAX_REDUCIBLE_ANGLE, expm1_small, multiple_of_ln_2, sin_cos,
};
use crate::ops::math::complex::{C, abs_scaled, divide, exp, real, scale, sqrt, times_exp};
use crate::ops::math::f64_functions::exponent_of_two;

/// Exponents that are integers of at most this magnitude are computed by repeated squaring.
pub const MAX_INTEGER_EXPONENT: f64 = 64.0;

/// The principal power. If the base is zero, the power is one for the exponent zero, zero for an
/// exponent with a positive real part, infinite for one with a negative real part, and otherwise
/// NaN.
pub fn pow(x: C, y: C) -> C {
    let zero = |z: C| z.re == 0.0 && z.im == 0.0;
    if ![x.re, x.im, y.re, y.im].iter().all(|part| part.is_finite()) {
        return if zero(x) && y.re == f64::INFINITY && y.im == 0.0 {
            C::new(0.0, 0.0)
        } else {
            C::new(f64::NAN, f64::NAN)
        };
    }
    if zero(x) {
        return if zero(y) {
            C::new(1.0, 0.0)
        } else if y.re > 0.0 {
            C::new(0.0, 0.0)
        } else {
            C::new(if y.re < 0.0 { f64::INFINITY } else { f64::NAN }, f64::NAN)
        };
    }
    match y {
        C { re: 1.0, im: 0.0 } => x,
        C { re: -1.0, im: 0.0 } => divide(C::new(1.0, 0.0), x),
        C { re: 0.5, im: 0.0 } => sqrt(x),
        C { re, im: 0.0 } if re.abs() <= MAX_INTEGER_EXPONENT && re.fract() == 0.0 => {
            integer_power(x, re as i32)
        }
        _ => general_power(x, y),
    }
}

/// Returns the binary exponent of the larger part.
fn exponent(z: C) -> i32 {
    exponent_of_two(z.re.abs().max(z.im.abs()))
}

#[derive(Clone, Copy)]
struct ComplexDoubleDouble {
    re: DoubleDouble,
    im: DoubleDouble,
}

impl std::ops::Mul for ComplexDoubleDouble {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// Returns the power by repeated squaring.
fn integer_power(x: C, n: i32) -> C {
    /// If the magnitude of the power's binary exponent is at most this number, the square of the
    /// magnitude and its inverse are in range, and the base is not scaled.
    const MAX_UNSCALED_EXPONENT: i32 = 300;
    let exponent = exponent(x);
    let exponent = if (exponent * n).abs() > MAX_UNSCALED_EXPONENT { exponent } else { 0 };
    let x = scale(x, -exponent);
    let mut square = ComplexDoubleDouble { re: x.re.into(), im: x.im.into() };
    let mut product: Option<ComplexDoubleDouble> = None;
    let mut rest = n.unsigned_abs();
    while rest > 0 {
        if rest % 2 == 1 {
            product = Some(product.map_or(square, |product| product * square));
        }
        rest /= 2;
        if rest > 0 {
            square = square * square;
        }
    }
    let Some(product) = product else { return C::new(1.0, 0.0) };
    let power = C::new(product.re.value(), product.im.value());
    if n > 0 {
        return scale(power, exponent * n);
    }
    let norm_sqr = power.re * power.re + power.im * power.im;
    scale(C::new(power.re / norm_sqr, -power.im / norm_sqr), exponent * n)
}

fn general_power(x: C, y: C) -> C {
    /// The largest magnitude for which Veltkamp's splitting in a product doesn't overflow.
    const MAX_SPLITTABLE: f64 = 1e100;
    let (logarithm, angle) = log(x);
    let re = y.re * logarithm.high - y.im * angle.high;
    let im = y.re * angle.high + y.im * logarithm.high;
    if y.re.abs().max(y.im.abs()) > MAX_SPLITTABLE || im.abs() > MAX_REDUCIBLE_ANGLE {
        return exp(C::new(re, im));
    }
    let re = logarithm * y.re - angle * y.im;
    let im = angle * y.re + logarithm * y.im;
    let (sin, cos) = real::sin_cos(im.high);
    let factor = 1.0 + re.low;
    let (sin, cos) = (sin + cos * im.low, cos - sin * im.low);
    C::new(times_exp(re.high, factor, cos), times_exp(re.high, factor, sin))
}

/// Returns the logarithm of the magnitude, and the angle. The high part is the f64 result, the low
/// part its rounding error to first order.
fn log(x: C) -> (DoubleDouble, DoubleDouble) {
    /// Smaller angles are not corrected: the part that they come from may be lost by scaling, and
    /// they have no digits beyond those of an f64.
    const MIN_CORRECTED_ANGLE: f64 = 1e-280;
    let exponent = exponent(x);
    let scaled = scale(x, -exponent);
    let (re, im) = (DoubleDouble::from(scaled.re), DoubleDouble::from(scaled.im));
    let norm_sqr = re * re + im * im;
    // Half of the logarithm of the squared magnitude, which is scaled by a power of two to be near
    // one.
    let twos = [SQRT_2, 2.0 * SQRT_2, 4.0 * SQRT_2].iter().filter(|&&bound| norm_sqr.high > bound).count();
    let norm_sqr = norm_sqr.scale(1.0 / f64::from(1 << twos));
    let twice = real::log(norm_sqr.high);
    let rest = ((norm_sqr - 1.0.into()) + norm_sqr * expm1_small(-twice)).value();
    let twos = multiple_of_ln_2(f64::from(2 * exponent + twos as i32));
    let logarithm = (twos + twice.into() + rest.into()).scale(0.5);
    let angle = real::atan2(x.im, x.re);
    if angle.abs() < MIN_CORRECTED_ANGLE {
        return (logarithm, angle.into());
    }
    let (sin, cos) = sin_cos(angle);
    let rest = (cos * scaled.im - sin * scaled.re).value() / abs_scaled(scaled);
    (logarithm, DoubleDouble::from(angle) + rest.into())
}
