//! `cbrt` of f64: an approximation, and a correction computed from its exact residual.

use crate::ops::math::f32_functions::{Arithmetic, INF, inverse_cbrt};

/// 2^300 and its cube root. Numbers below one are scaled up and others are scaled down, so that no
/// product is out of range or subnormal.
const CBRT_SCALE: f64 = f64::from_bits((1023 + 300) << 52);
const CBRT_OF_CBRT_SCALE: f64 = f64::from_bits((1023 + 100) << 52);

/// Cube root: `a w^2`, where `w` is the inverse cube root of the scaled magnitude `a`, and one step
/// of Newton's method.
#[inline(always)]
#[must_use]
pub fn cbrt<A: Arithmetic>(x: f64) -> f64 {
    let magnitude = x.abs();
    let small = magnitude < 1.0;
    let a = magnitude * if small { CBRT_SCALE } else { 1.0 / CBRT_SCALE };
    let w = inverse_cbrt::<A>(a);
    let square = w * w;
    let root = a * square;
    let power = root * root;
    let power_low = A::fma(root, root, -power);
    let residual = A::fma(-power_low, root, A::fma(-power, root, a));
    let root = A::fma(residual * square, 1.0 / 3.0, root);
    let result = (root * if small { 1.0 / CBRT_OF_CBRT_SCALE } else { CBRT_OF_CBRT_SCALE }).copysign(x);
    if magnitude > 0.0 && magnitude < INF { result } else { x }
}
