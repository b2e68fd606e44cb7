//! Inverse circular and hyperbolic functions, after Hull, Fairgrieve and Tang, "Implementing the
//! complex arcsine and arccosine functions using exception handling" (1997), and Kahan (1987).

use std::f64::consts::{FRAC_PI_2, LN_2};

use crate::ops::math::complex::{C, abs, log_abs, real, rotated};
use crate::ops::math::f64_functions::circular::HALF_PI;

/// Above `ONE_NEGLIGIBLE_ABOVE`, one is negligible beside squares. Below
/// `SQUARES_NEGLIGIBLE_BELOW`, squares are negligible beside one.
const ONE_NEGLIGIBLE_ABOVE: f64 = 1e17;
const SQUARES_NEGLIGIBLE_BELOW: f64 = 1e-9;

/// Returns `(sqrt(a^2 + b^2) - b) / 2`, given the square root, without cancellation.
#[inline]
fn half_excess(a: f64, b: f64, root: f64) -> f64 {
    if b < 0.0 {
        (root - b) / 2.0
    } else if b == 0.0 {
        a / 2.0
    } else {
        a * a / (root + b) / 2.0
    }
}

/// Returns the inverse hyperbolic sine of `x + i y`, a number of moderate magnitude in the first
/// quadrant. The second result has the two arguments whose `atan2` is the imaginary part.
///
/// The inverse hyperbolic sine is `arcosh(a) + i arcsin(y / a)`, where `a` is half of the sum of
/// the distances from `i` and `-i`.
fn asinh_quadrant(x: f64, y: f64) -> (f64, (f64, f64)) {
    let (r, s) = (abs(C::new(x, y + 1.0)), abs(C::new(x, y - 1.0)));
    let a = ((r + s) / 2.0).max(1.0);
    // Whether x is not negligible beside the distance of y from one.
    let x_matters = x >= f64::EPSILON * (y - 1.0).abs();
    let re = if a >= 10.0 {
        real::log(a + (a * a - 1.0).sqrt())
    } else if y == 1.0 && x < f64::EPSILON * f64::EPSILON {
        x.sqrt()
    } else if x_matters {
        let m1 = half_excess(x, 1.0 + y, r) + half_excess(x, 1.0 - y, s);
        real::log1p(m1 + (m1 * (a + 1.0)).sqrt())
    } else if y < 1.0 {
        x / ((1.0 - y) * (1.0 + y)).sqrt()
    } else {
        real::log1p((y - 1.0) + ((y - 1.0) * (y + 1.0)).sqrt())
    };
    // The side is sqrt(a^2 - y^2).
    let side = if y == 1.0 && x < f64::EPSILON {
        return (re, (y, x.sqrt() * ((a + y) / 2.0).sqrt()));
    } else if x_matters {
        let difference = half_excess(x, y + 1.0, r) + half_excess(x, y - 1.0, s);
        (difference * (a + y)).sqrt()
    } else if y > 1.0 {
        // The side is proportional to x, which may have few digits. So both sides are scaled.
        const SIDE_SCALE: f64 = 1e100;
        return (re, (y * SIDE_SCALE, x * SIDE_SCALE * y / ((y + 1.0) * (y - 1.0)).sqrt()));
    } else {
        ((1.0 - y) * (1.0 + y)).sqrt()
    };
    (re, (y, side))
}

/// The inverse hyperbolic sine.
pub fn asinh(z: C) -> C {
    let C { re: x, im: y } = z;
    let (a, b) = (x.abs(), y.abs());
    if x.is_nan() || y.is_nan() {
        return if x.is_infinite() || y == 0.0 {
            z
        } else if y.is_infinite() {
            C::new(y, x)
        } else {
            C::new(f64::NAN, f64::NAN)
        };
    }
    if a.max(b) > ONE_NEGLIGIBLE_ABOVE {
        return C::new((log_abs(a, b) + LN_2).copysign(x), real::atan2(b, a).copysign(y));
    }
    if a.max(b) < SQUARES_NEGLIGIBLE_BELOW {
        return z;
    }
    let (re, (opposite, adjacent)) = asinh_quadrant(a, b);
    C::new(re.copysign(x), real::atan2(opposite, adjacent).copysign(y))
}

/// The principal inverse sine.
pub fn asin(z: C) -> C {
    rotated(asinh, z)
}

/// The inverse cosine.
pub fn acos(z: C) -> C {
    let C { re: x, im: y } = z;
    let (a, b) = (x.abs(), y.abs());
    if x.is_nan() || y.is_nan() {
        return if x.is_infinite() {
            C::new(f64::NAN, f64::NEG_INFINITY)
        } else if y.is_infinite() {
            C::new(f64::NAN, -y)
        } else if x == 0.0 {
            C::new(FRAC_PI_2, f64::NAN)
        } else {
            C::new(f64::NAN, f64::NAN)
        };
    }
    if a.max(b) > ONE_NEGLIGIBLE_ABOVE {
        return C::new(real::atan2(b, x), (log_abs(a, b) + LN_2).copysign(-y));
    }
    if a.max(b) < SQUARES_NEGLIGIBLE_BELOW {
        return C::new(FRAC_PI_2 - (x - HALF_PI[1]), -y);
    }
    let (im, (adjacent, opposite)) = asinh_quadrant(b, a);
    C::new(real::atan2(opposite, adjacent.copysign(x)), im.copysign(-y))
}

/// The inverse hyperbolic cosine.
pub fn acosh(z: C) -> C {
    let C { re, im } = acos(z);
    // The inverse cosine times i or -i, so that the real part is not negative.
    if im.is_nan() && !re.is_nan() {
        C::new(im, re.copysign(z.im))
    } else {
        C::new(im.abs(), re.copysign(z.im))
    }
}

/// The inverse hyperbolic tangent.
pub fn atanh(z: C) -> C {
    let C { re: x, im: y } = z;
    let (a, b) = (x.abs(), y.abs());
    if a == f64::INFINITY || b == f64::INFINITY {
        let im = if y.is_nan() { y } else { FRAC_PI_2.copysign(y) };
        return C::new(0f64.copysign(x), im);
    }
    if x.is_nan() || y.is_nan() {
        return C::new(if x == 0.0 { x } else { f64::NAN }, f64::NAN);
    }
    if a.max(b) > ONE_NEGLIGIBLE_ABOVE {
        // The real part is that of 1 / z. The scaling loses at most the smaller part.
        let greater = a.max(b);
        let (u, v) = (a / greater, b / greater);
        return C::new((u / (u * u + v * v) / greater).copysign(x), FRAC_PI_2.copysign(y));
    }
    if a.max(b) < SQUARES_NEGLIGIBLE_BELOW {
        return z;
    }
    let distance = (a - 1.0) * (a - 1.0) + b * b;
    let re = if a == 1.0 && b < SQUARES_NEGLIGIBLE_BELOW {
        // Squares are negligible beside two.
        (LN_2 - real::log(b)) / 2.0
    } else {
        real::log1p(4.0 * a / distance) / 4.0
    };
    let im = real::atan2(2.0 * b, (1.0 - a) * (1.0 + a) - b * b) / 2.0;
    C::new(re.copysign(x), im.copysign(y))
}

/// The principal inverse tangent.
pub fn atan(z: C) -> C {
    rotated(atanh, z)
}
