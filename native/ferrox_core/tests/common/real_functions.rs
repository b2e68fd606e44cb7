//! Real functions that the standard library lacks, as references with an error of about two ulps.

pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let root = 1.0 + (a * a + 1.0).sqrt();
    let result = if a > 1.0e10 { a.ln() + std::f64::consts::LN_2 } else { (a + a * (a / root)).ln_1p() };
    result.copysign(x)
}

pub fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    if x > 1.0e10 {
        x.ln() + std::f64::consts::LN_2
    } else if x < 1.0 {
        f64::NAN
    } else {
        (t + (t * (x + 1.0)).sqrt()).ln_1p()
    }
}

pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}

/// `2 / sqrt(pi) exp(-x^2)`, the derivative of `erf`.
fn erf_slope(x: f64) -> f64 {
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp()
}

/// Sums the series of positive terms, unless 1 is the f64 nearest to the result.
pub fn erf(x: f64) -> f64 {
    let square = x * x;
    if square.is_nan() || square > 36.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let (mut sum, mut term, mut odd) = (0.0, x, 1.0);
    while sum + term != sum {
        sum += term;
        odd += 2.0;
        term *= 2.0 * square / odd;
    }
    (sum * erf_slope(x)).copysign(x)
}

/// `1 - erf`, or from 1/2 on the continued fraction, with sufficient depth for the smallest
/// argument.
pub fn erfc(x: f64) -> f64 {
    if x.is_nan() || x < 0.5 {
        return 1.0 - erf(x);
    }
    if x > 28.0 {
        return 0.0;
    }
    let depth = (200.0 / (x * x)) as u32 + 20;
    let tail = (1..=depth).rev().fold(x, |tail, k| x + 0.5 * f64::from(k) / tail);
    0.5 * erf_slope(x) / tail
}

/// Halley's method, starting from an approximation for the nearer end.
pub fn erf_inv(x: f64) -> f64 {
    let a = x.abs();
    if a == 0.0 || a >= 1.0 || a.is_nan() {
        let past = if a == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
        return if a == 0.0 { x } else { past };
    }
    let mut y = if a < 0.5 { a } else { (-(1.0 - a).ln()).sqrt() };
    for _ in 0..12 {
        let residual = if a < 0.5 { a - erf(y) } else { erfc(y) - (1.0 - a) };
        let step = residual / erf_slope(y);
        y += step / (1.0 - y * step);
    }
    y.copysign(x)
}
