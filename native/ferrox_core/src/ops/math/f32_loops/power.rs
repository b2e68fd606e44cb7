//! Powers of f32.
//!
//! A power whose exponent is a small multiple of 1/2 is a product of factors, in f64, by squaring and
//! multiplying: its relative error is at most 2^-47, as that of the other powers, and squares are exact. A
//! program's exponents are mostly such numbers. What an element's power is depends on this element alone.

use super::{F32Bytes, Function, Scratch, load};
use crate::dtype::Lane;
use crate::ops::math::f32_functions::{self, Arithmetic, INF, Log2, ROUNDING_SHIFT};

/// The maximum magnitude of an exponent whose power is a product. Those that are not integers take twice as many
/// factors, which are square roots.
const MAX_PRODUCT_EXPONENT: f32 = 16.0;

/// Whether the power is a product of factors.
#[inline(always)]
fn is_product(exponent: f32) -> bool {
    // Adding this number, 1.5 * 2^23, rounds to an integer.
    const SHIFT: f32 = 12582912.0;
    let twice = exponent + exponent;
    (twice.abs() <= 2.0 * MAX_PRODUCT_EXPONENT) & (twice + SHIFT - SHIFT == twice)
}

/// The magnitude of an exponent of a product as an integer; `None` if it is not one.
#[inline(always)]
fn whole_magnitude(exponent: f64) -> Option<u64> {
    /// The bits of all magnitudes, and of twice as large ones.
    const MASK: u64 = 4 * MAX_PRODUCT_EXPONENT as u64 - 1;
    let shifted = exponent.abs() + ROUNDING_SHIFT;
    let count = shifted.to_bits() & MASK;
    (shifted - ROUNDING_SHIFT == exponent.abs()).then_some(count)
}

/// The factor of which a power is a product, and the number of factors, for an exponent for which [`is_product`]
/// holds. The power of a negative exponent is the inverse of the product.
#[inline(always)]
fn factors(x: f64, exponent: f64) -> (f64, u64) {
    if let Some(count) = whole_magnitude(exponent) {
        return (x, count);
    }
    (root(x), whole_magnitude(2.0 * exponent).unwrap_or(0))
}

/// The square root. That of minus infinity is infinite, and that of -0 is 0, as IEEE 754 has it for powers.
#[inline(always)]
fn root(x: f64) -> f64 {
    let root = x.abs().sqrt();
    if x < 0.0 && x > -INF { f64::NAN } else { root }
}

/// The power of one number, of the same steps as [`products`].
fn product(x: f64, exponent: f64) -> f64 {
    let (mut base, mut count) = factors(x, exponent);
    let mut power = 1.0;
    while count > 0 {
        power *= if count & 1 == 1 { base } else { 1.0 };
        base *= base;
        count >>= 1;
    }
    if exponent < 0.0 { 1.0 / power } else { power }
}

/// The powers of a chunk with one exponent, for which [`is_product`] holds.
#[inline(always)]
fn products(x: &[F32Bytes], exponent: f64, powers: &mut [f64], scratch: &mut Scratch) {
    let (_, count) = factors(0.0, exponent);
    match (whole_magnitude(exponent).is_some(), count) {
        (true, 1) => few_factors::<1, false>(x, powers),
        (true, 2) => few_factors::<2, false>(x, powers),
        (true, 3) => few_factors::<3, false>(x, powers),
        (true, 4) => few_factors::<4, false>(x, powers),
        (false, 1) => few_factors::<1, true>(x, powers),
        (false, 3) => few_factors::<3, true>(x, powers),
        _ => many_factors(x, exponent, powers, scratch),
    }
    if exponent < 0.0 {
        for power in powers {
            *power = 1.0 / *power;
        }
    }
}

/// The products of `COUNT` factors, at most four, which are `x` or its square root.
#[inline(always)]
fn few_factors<const COUNT: u64, const ARE_ROOTS: bool>(x: &[F32Bytes], powers: &mut [f64]) {
    for (power, &x) in powers.iter_mut().zip(x) {
        let base = if ARE_ROOTS { root(load(x)) } else { load(x) };
        let square = base * base;
        *power = match COUNT {
            1 => base,
            2 => square,
            3 => base * square,
            _ => square * square,
        };
    }
}

/// The products of any number of factors.
#[inline(always)]
fn many_factors(x: &[F32Bytes], exponent: f64, powers: &mut [f64], [bases, ..]: &mut Scratch) {
    let bases = &mut bases[..powers.len()];
    let mut count = 0;
    for (base, &x) in bases.iter_mut().zip(x) {
        (*base, count) = factors(load(x), exponent);
    }
    powers.fill(1.0);
    while count > 0 {
        if count & 1 == 1 {
            for (power, base) in powers.iter_mut().zip(&*bases) {
                *power *= *base;
            }
        }
        for base in &mut *bases {
            *base *= *base;
        }
        count >>= 1;
    }
}

/// The powers of a chunk by logarithms.
#[inline(always)]
fn exponentials<A: Arithmetic>(x: &[F32Bytes], y: &[F32Bytes], results: &mut [f64], scratch: &mut Scratch) {
    let [exponents, highs, lows] = scratch.each_mut().map(|part| &mut part[..results.len()]);
    // The work is split into two loops, because a processor overlaps only few iterations of a
    // long loop.
    for (((exponent, high), low), &x) in exponents.iter_mut().zip(&mut *highs).zip(&mut *lows).zip(x) {
        let logarithm = f32_functions::log2::<A>(load(x));
        (*exponent, *high, *low) = (logarithm.exponent, logarithm.high, logarithm.low);
    }
    let logarithms = || {
        let parts = exponents.iter().zip(&*highs).zip(&*lows);
        parts.map(|((&exponent, &high), &low)| Log2 { exponent, high, low })
    };
    let mut plain =
        x.iter().fold(true, |all, &x| all & (0.0 < f32::load(x)) & (f32::load(x) < f32::INFINITY));
    for ((result, logarithm), &y) in results.iter_mut().zip(logarithms()).zip(y) {
        let (power, regular) = f32_functions::pow_regular::<A>(load(y), logarithm);
        *result = power;
        plain &= regular;
    }
    if !plain {
        for (((result, &x), &y), logarithm) in results.iter_mut().zip(x).zip(y).zip(logarithms()) {
            *result = f32_functions::pow_with_log2::<A>(load(x), load(y), logarithm);
        }
    }
}

/// The power.
pub(in crate::ops) struct Pow;

impl Function for Pow {
    #[inline(always)]
    fn compute_chunk<A: Arithmetic>(
        x: &[F32Bytes],
        y: &[F32Bytes],
        results: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let first = f32::load(y[0]);
        if is_product(first) && y.iter().fold(true, |all, &y| all & (f32::load(y) == first)) {
            products(x, f64::from(first), results, scratch);
            return;
        }
        exponentials::<A>(x, y, results, scratch);
        if y.iter().fold(false, |any, &y| any | is_product(f32::load(y))) {
            for ((result, &x), &y) in results.iter_mut().zip(x).zip(y) {
                if is_product(f32::load(y)) {
                    *result = product(load(x), load(y));
                }
            }
        }
    }

    #[inline(always)]
    fn compute_element<A: Arithmetic>(x: f64, y: f64) -> f64 {
        if is_product(y as f32) { product(x, y) } else { f32_functions::pow::<A>(x, y) }
    }
}
