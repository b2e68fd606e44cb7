//! Complex functions in f64, by the formulas of Elixir's `complex` package,
//! which `Nx.BinaryBackend` computes with.

use num_complex::Complex;

use super::double;

type C = Complex<f64>;

/// The textbook quotient; of finite numbers where something in between leaves
/// the range of an f64, that of operands scaled by powers of two.
#[inline(always)]
pub fn divide(a: C, b: C) -> C {
    let denominator = norm(b);
    let result = quotient_by(a, b, denominator);
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
    // Subnormal numbers count as the smallest normal one.
    let exponent = ((greatest.to_bits() >> 52) as i32 - 1023).max(-1022);
    let b = scale(b, -exponent);
    let denominator = norm(b);
    // Products of subnormal numbers would lose what precision they have.
    let up = if a.re.abs().max(a.im.abs()) < 1e-280 { 200 } else { 0 };
    let result = quotient_by(scale(a, up), b, denominator);
    // A product of the greatest numbers and one less than two may overflow.
    let small = quotient_by(scale(a, -4), b, denominator);
    let part = |x: f64, small: f64| {
        if x.is_finite() { scale_part(x, -exponent - up) } else { scale_part(small, 4 - exponent) }
    };
    C::new(part(result.re, small.re), part(result.im, small.im))
}

fn scale(z: C, exponent: i32) -> C {
    C::new(scale_part(z.re, exponent), scale_part(z.im, exponent))
}

/// `x * 2^exponent`, in steps that are in range.
fn scale_part(mut x: f64, mut exponent: i32) -> f64 {
    while exponent.abs() > 1000 {
        let step = 1000 * exponent.signum();
        x *= 2f64.powi(step);
        exponent -= step;
    }
    x * 2f64.powi(exponent)
}

#[inline(always)]
fn norm(z: C) -> f64 {
    z.re * z.re + z.im * z.im
}

/// The product of pairs of f32, each part rounded once.
#[inline(always)]
pub fn multiply_single(a: Complex<f32>, b: Complex<f32>) -> Complex<f32> {
    rounded(widened(a) * widened(b))
}

/// Their quotient: nothing in between leaves the range of f64.
#[inline(always)]
pub fn divide_single(a: Complex<f32>, b: Complex<f32>) -> Complex<f32> {
    let (a, b) = (widened(a), widened(b));
    rounded(quotient_by(a, b, norm(b)))
}

/// Their power, each part rounded once.
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
fn quotient_by(a: C, b: C, denominator: f64) -> C {
    if b.re.is_infinite() && b.im == 0.0 && a.re.is_finite() && a.im.is_finite() {
        return C::new(0.0, 0.0);
    }
    C::new((a.re * b.re + a.im * b.im) / denominator, (a.im * b.re - a.re * b.im) / denominator)
}

/// The magnitude, without overflow in between.
#[inline]
pub fn abs(z: C) -> f64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    if x.is_infinite() || y.is_infinite() {
        f64::INFINITY
    } else if x == 0.0 {
        y
    } else if y == 0.0 {
        x
    } else if x > y {
        x * (1.0 + y / x * (y / x)).sqrt()
    } else {
        y * (1.0 + x / y * (x / y)).sqrt()
    }
}

/// The angle, from -pi to pi.
#[inline]
pub fn phase(z: C) -> f64 {
    z.im.atan2(z.re)
}

/// The exponential.
#[inline]
pub fn exp(z: C) -> C {
    if z.re == f64::NEG_INFINITY {
        return C::new(0.0, 0.0);
    }
    let r = z.re.exp();
    C::new(r * z.im.cos(), r * z.im.sin())
}

/// The exponential minus one.
#[inline]
pub fn expm1(z: C) -> C {
    exp(z) - 1.0
}

/// The principal logarithm.
#[inline]
pub fn log(z: C) -> C {
    C::new(abs(z).ln(), phase(z))
}

/// The principal logarithm of one plus the argument.
#[inline]
pub fn log1p(z: C) -> C {
    // As a complex sum: a negative zero becomes a positive one.
    log(z + C::new(1.0, 0.0))
}

/// The principal square root.
pub fn sqrt(z: C) -> C {
    let (x, y) = (z.re.abs(), z.im.abs());
    if z.re.is_nan() || z.im.is_nan() {
        return C::new(f64::NAN, f64::NAN);
    }
    if y.is_infinite() {
        return C::new(f64::INFINITY, z.im);
    }
    if x.is_infinite() {
        return if z.re > 0.0 { C::new(f64::INFINITY, 0.0) } else { C::new(0.0, f64::INFINITY) };
    }
    if x == 0.0 && y == 0.0 {
        return z;
    }
    let w = if x >= y {
        x.sqrt() * (0.5 * (1.0 + (1.0 + y / x * (y / x)).sqrt())).sqrt()
    } else {
        y.sqrt() * (0.5 * (x / y + (1.0 + x / y * (x / y)).sqrt())).sqrt()
    };
    if z.re >= 0.0 {
        return C::new(w, z.im / (2.0 * w));
    }
    let w = if z.im >= 0.0 { w } else { -w };
    C::new(z.im / (2.0 * w), w)
}

/// One over the square root.
pub fn rsqrt(z: C) -> C {
    divide(C::new(1.0, 0.0), sqrt(z))
}

/// The sine.
pub fn sin(z: C) -> C {
    C::new(z.re.sin() * z.im.cosh(), z.re.cos() * z.im.sinh())
}

/// The cosine.
pub fn cos(z: C) -> C {
    C::new(z.re.cos() * z.im.cosh(), -z.re.sin() * z.im.sinh())
}

/// From here on, squares of what exponentials give overflow, and tangents are their limit.
const OVERFLOWING: f64 = 350.0;

/// The tangent.
pub fn tan(z: C) -> C {
    // Where both overflow, the limit is an imaginary unit.
    if z.im.abs() > OVERFLOWING && z.is_finite() {
        return C::new(0.0, 1f64.copysign(z.im));
    }
    divide(sin(z), cos(z))
}

/// The hyperbolic tangent.
pub fn tanh(z: C) -> C {
    // Where the exponentials overflow, the limit is a unit.
    if z.re.abs() > OVERFLOWING && z.im.is_finite() {
        return C::new(1f64.copysign(z.re), 0.0);
    }
    let (plus, minus) = (exp(z), exp(-z));
    divide((plus - minus) / 2.0, (plus + minus) / 2.0)
}

/// The hyperbolic sine.
pub fn sinh(z: C) -> C {
    (exp(z) - exp(-z)) / 2.0
}

/// The hyperbolic cosine.
pub fn cosh(z: C) -> C {
    (exp(z) + exp(-z)) / 2.0
}

const I: C = C::new(0.0, 1.0);
const MINUS_I: C = C::new(-0.0, -1.0);
const ONE: C = C::new(1.0, 0.0);
const NAN: C = C::new(f64::NAN, f64::NAN);

/// The principal inverse sine.
pub fn asin(z: C) -> C {
    if z.is_finite() { MINUS_I * log(I * z + sqrt(ONE - z * z)) } else { NAN }
}

/// The inverse cosine.
pub fn acos(z: C) -> C {
    if z.is_finite() { MINUS_I * log(z + sqrt(z * z - ONE)) } else { NAN }
}

/// The principal inverse tangent.
pub fn atan(z: C) -> C {
    C::new(0.0, 0.5) * (log(ONE - I * z) - log(ONE + I * z))
}

/// The inverse hyperbolic sine.
pub fn asinh(z: C) -> C {
    log(z + sqrt(z * z + ONE))
}

/// The inverse hyperbolic cosine.
pub fn acosh(z: C) -> C {
    log(z + sqrt(z * z - ONE))
}

/// The inverse hyperbolic tangent.
pub fn atanh(z: C) -> C {
    C::new(0.5, 0.0) * log(divide(ONE + z, ONE - z))
}

/// The principal cube root.
pub fn cbrt(z: C) -> C {
    let (r, angle) = (double::cbrt(abs(z)), phase(z) / 3.0);
    if angle == 0.0 {
        return C::new(r, 0.0);
    }
    C::new(r, 0.0) * C::new(angle.cos(), angle.sin())
}

/// The logistic function.
pub fn sigmoid(z: C) -> C {
    // Where the exponential overflows, its inverse is all that is left.
    if z.re < -700.0 && z.is_finite() {
        return exp(z);
    }
    divide(C::new(1.0, 0.0), exp(-z) + 1.0)
}

/// The principal power.
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
        return if zero(y) { C::new(1.0, 0.0) } else { C::new(0.0, 0.0) };
    }
    if y.im == 0.0 && y.re == 1.0 {
        return x;
    }
    if y.im == 0.0 && y.re == -1.0 {
        return divide(C::new(1.0, 0.0), x);
    }
    let (rho, theta) = (abs(x), phase(x));
    let scale = rho.powf(y.re) * (-y.im * theta).exp();
    let angle = y.re * theta + y.im * rho.ln();
    C::new(scale * angle.cos(), scale * angle.sin())
}
