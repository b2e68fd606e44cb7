//! `cbrt` of f64: an approximation, and one step by what it lacks, exactly.

use crate::ops::math::f32_functions::{Arithmetic, INF, TWO_52, polynomial};

/// 2^300 and its cube root, which scale numbers below one up and others down, so that no product
/// leaves the range or is subnormal.
const SCALE: f64 = f64::from_bits((1023 + 300) << 52);
const CUBE_ROOT: f64 = f64::from_bits((1023 + 100) << 52);

/// Cube root: `a w^2`, where `w`, the inverse cube root of the magnitude `a`, starts from a third
/// of its exponent and fraction bits (3% off) and is refined twice by the first terms of
/// `(1 - h)^(-1/3)` with `h = 1 - a w^3`; then a step of Newton's.
#[inline(always)]
#[must_use]
pub fn cbrt<A: Arithmetic>(x: f64) -> f64 {
    /// `4 / 3` of the exponent bias, in the upper half of the bits, less what balances the error.
    const START: f64 = 1430186364.0;
    /// Binomial coefficients of `(1 - h)^(-1/3)`, after the first.
    const REFINE: [f64; 3] = [1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0];
    let magnitude = x.abs();
    let small = magnitude < 1.0;
    let a = magnitude * if small { SCALE } else { 1.0 / SCALE };
    let upper = f64::from_bits((a.to_bits() >> 32) | TWO_52.to_bits()) - TWO_52;
    let start = (START - upper * (1.0 / 3.0)) + TWO_52;
    let mut w = f64::from_bits(start.to_bits() << 32);
    for _ in 0..2 {
        let h = A::fma(-(a * w), w * w, 1.0);
        w = A::fma(w * h, polynomial::<A, _>(h, REFINE), w);
    }
    let square = w * w;
    let root = a * square;
    let power = root * root;
    let power_low = A::fma(root, root, -power);
    let lack = A::fma(-power_low, root, A::fma(-power, root, a));
    let root = A::fma(lack * square, 1.0 / 3.0, root);
    let result = (root * if small { 1.0 / CUBE_ROOT } else { CUBE_ROOT }).copysign(x);
    if magnitude > 0.0 && magnitude < INF { result } else { x }
}
