//! `cbrt` of f64: an approximation, and a correction computed from its exact residual.

use crate::ops::math::f32_functions::{Arithmetic, INF, TWO_52, polynomial};

/// 2^300 and its cube root. Numbers below one are scaled up and others are scaled down, so that no
/// product is out of range or subnormal.
const CBRT_SCALE: f64 = f64::from_bits((1023 + 300) << 52);
const CBRT_OF_CBRT_SCALE: f64 = f64::from_bits((1023 + 100) << 52);

/// Cube root: `a w^2`, where `w` is the inverse cube root of the magnitude `a`. The bits of the
/// first approximation of `w` (3% off) are computed from a third of the exponent and fraction bits
/// of `a`. Two steps refine it by the first terms of `(1 - h)^(-1/3)` with `h = 1 - a w^3`. The
/// last step is one of Newton's method.
#[inline(always)]
#[must_use]
pub fn cbrt<A: Arithmetic>(x: f64) -> f64 {
    /// The upper half of the bits that stand for `4 / 3` of the exponent bias, minus a correction
    /// that balances the errors of the approximation.
    const INVERSE_CBRT_SEED: f64 = 1430186364.0;
    /// The binomial coefficients of `(1 - h)^(-1/3)` after the first one.
    const INVERSE_CBRT_BINOMIALS: [f64; 3] = [1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0];
    let magnitude = x.abs();
    let small = magnitude < 1.0;
    let a = magnitude * if small { CBRT_SCALE } else { 1.0 / CBRT_SCALE };
    let upper = f64::from_bits((a.to_bits() >> 32) | TWO_52.to_bits()) - TWO_52;
    let start = (INVERSE_CBRT_SEED - upper * (1.0 / 3.0)) + TWO_52;
    let mut w = f64::from_bits(start.to_bits() << 32);
    for _ in 0..2 {
        let h = A::fma(-(a * w), w * w, 1.0);
        w = A::fma(w * h, polynomial::<A, _>(h, INVERSE_CBRT_BINOMIALS), w);
    }
    let square = w * w;
    let root = a * square;
    let power = root * root;
    let power_low = A::fma(root, root, -power);
    let residual = A::fma(-power_low, root, A::fma(-power, root, a));
    let root = A::fma(residual * square, 1.0 / 3.0, root);
    let result = (root * if small { 1.0 / CBRT_OF_CBRT_SCALE } else { CBRT_OF_CBRT_SCALE }).copysign(x);
    if magnitude > 0.0 && magnitude < INF { result } else { x }
}
