//! Powers: `e^(y log x)`, where the logarithm and its product are double-double numbers, so that
//! the exponential has the digits that a factor takes from them. Powers of small integers are
//! products.

use std::f64::consts::SQRT_2;

use crate::ops::math::complex::double_double::{
    DoubleDouble, LARGEST_ANGLE, expm1_small, multiple_of_ln_2, sin_cos,
};
use crate::ops::math::complex::{C, abs_scaled, divide, exp, scale, sqrt, times_exp};

/// Integers up to this one are exponents of products.
pub const LARGEST_INTEGER: f64 = 64.0;

/// The principal power. That of zero is one to the power of zero, zero to one with a positive real
/// part, infinite to one with a negative one, and else not a number.
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
        C { re, im: 0.0 } if re.abs() <= LARGEST_INTEGER && re.fract() == 0.0 => integer(x, re as i32),
        _ => any(x, y),
    }
}

/// The exponent of the greater part.
fn exponent(z: C) -> i32 {
    let of = |x: f64| (x.to_bits() >> 52) as i32 - 1023;
    let greater = z.re.abs().max(z.im.abs());
    if greater.is_normal() { of(greater) } else { of(greater * 2f64.powi(64)) - 64 }
}

#[derive(Clone, Copy)]
struct Wide {
    re: DoubleDouble,
    im: DoubleDouble,
}

impl std::ops::Mul for Wide {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// By repeated squaring.
fn integer(x: C, n: i32) -> C {
    /// Squares of magnitudes are in range that are no greater a power of two, nor less than its
    /// inverse.
    const EXPONENT: i32 = 300;
    let exponent = exponent(x);
    let exponent = if (exponent * n).abs() > EXPONENT { exponent } else { 0 };
    let x = scale(x, -exponent);
    let mut square = Wide { re: x.re.into(), im: x.im.into() };
    let mut product: Option<Wide> = None;
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
    let norm = power.re * power.re + power.im * power.im;
    scale(C::new(power.re / norm, -power.im / norm), exponent * n)
}

fn any(x: C, y: C) -> C {
    /// What may be split.
    const LARGEST: f64 = 1e100;
    let (logarithm, angle) = log(x);
    let re = y.re * logarithm.high - y.im * angle.high;
    let im = y.re * angle.high + y.im * logarithm.high;
    if y.re.abs().max(y.im.abs()) > LARGEST || im.abs() > LARGEST_ANGLE {
        return exp(C::new(re, im));
    }
    let re = logarithm * y.re - angle * y.im;
    let im = angle * y.re + logarithm * y.im;
    let (sin, cos) = (im.high.sin(), im.high.cos());
    let factor = 1.0 + re.low;
    let (sin, cos) = (sin + cos * im.low, cos - sin * im.low);
    C::new(times_exp(re.high, factor, cos), times_exp(re.high, factor, sin))
}

/// The logarithm of the magnitude, and the angle: those in f64, and the first term of what they
/// lack.
fn log(x: C) -> (DoubleDouble, DoubleDouble) {
    /// Smaller angles may come from a part that is lost when scaled, and have no digits to lack.
    const SMALLEST_ANGLE: f64 = 1e-280;
    let exponent = exponent(x);
    let scaled = scale(x, -exponent);
    let (re, im) = (DoubleDouble::from(scaled.re), DoubleDouble::from(scaled.im));
    let norm = re * re + im * im;
    // Half the logarithm of the square, which a power of two brings near one.
    let twos = [SQRT_2, 2.0 * SQRT_2, 4.0 * SQRT_2].iter().filter(|&&bound| norm.high > bound).count();
    let norm = norm.scale(1.0 / f64::from(1 << twos));
    let twice = norm.high.ln();
    let rest = ((norm - 1.0.into()) + norm * expm1_small(-twice)).value();
    let twos = multiple_of_ln_2(f64::from(2 * exponent + twos as i32));
    let logarithm = (twos + twice.into() + rest.into()).scale(0.5);
    let angle = x.im.atan2(x.re);
    if angle.abs() < SMALLEST_ANGLE {
        return (logarithm, angle.into());
    }
    let (sin, cos) = sin_cos(angle);
    let rest = (cos * scaled.im - sin * scaled.re).value() / abs_scaled(scaled);
    (logarithm, DoubleDouble::from(angle) + rest.into())
}
