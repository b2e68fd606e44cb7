//! Exact sums, differences, products, quotients and remainders in 128-bit integers. Tests round
//! them once to get the expected result.

use super::number::Number;

/// `significand * 2^exponent`
#[derive(Clone, Copy)]
struct Scaled {
    significand: i128,
    exponent: i32,
}

/// Returns `None` if the number isn't finite.
fn scaled(number: Number) -> Option<Scaled> {
    match number {
        Number::Integer(significand) => Some(Scaled { significand, exponent: 0 }),
        Number::Real(x) if x.is_finite() => {
            let (bits, field) = (x.to_bits(), (x.to_bits() >> 52 & 0x7ff) as i32);
            let fraction = (bits & ((1 << 52) - 1)) as i128;
            let magnitude = if field == 0 { fraction } else { fraction | 1 << 52 };
            let significand = if x < 0.0 { -magnitude } else { magnitude };
            let zeros = if significand == 0 { 0 } else { significand.trailing_zeros() };
            Some(Scaled { significand: significand >> zeros, exponent: field.max(1) - 1075 + zeros as i32 })
        }
        _ => None,
    }
}

/// Returns an f64 that rounds to the same value as the number, for any type of at most 51 bits
/// (rounding to odd). If `lost`, the number had more bits below the last one, and these were not
/// zero.
fn odd(Scaled { significand, exponent }: Scaled, lost: bool) -> f64 {
    let magnitude = significand.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let rest = magnitude & ((1 << excess) - 1) != 0;
    let kept = magnitude >> excess | u128::from(rest || lost);
    let size = kept as f64 * 2f64.powi(exponent + excess as i32);
    if significand < 0 { -size } else { size }
}

/// Returns the sum. A zero is positive.
pub fn add(left: Number, right: Number) -> Option<f64> {
    let (mut high, mut low) = (scaled(left)?, scaled(right)?);
    if high.significand == 0 || low.significand != 0 && high.exponent < low.exponent {
        std::mem::swap(&mut high, &mut low);
    }
    // The numbers are aligned by shifting the larger one as far as there is room. Bits of the
    // smaller one below that only matter for whether they are zero.
    let room = high.significand.unsigned_abs().leading_zeros() as i32 - 2;
    let apart = if low.significand == 0 { 0 } else { high.exponent - low.exponent };
    let up = apart.min(room);
    let sum =
        |low: i128| Scaled { significand: (high.significand << up) + low, exponent: high.exponent - up };
    let beyond = (apart - up).min(127);
    let kept = low.significand >> beyond;
    let (mut sum, lost) = (sum(kept), kept << beyond != low.significand);
    // The lost bits are positive, but a magnitude must be truncated towards zero.
    if lost && sum.significand < 0 {
        sum.significand += 1;
    }
    Some(odd(sum, lost))
}

/// The product.
pub fn multiply(left: Number, right: Number) -> Option<f64> {
    let (left, right) = (scaled(left)?, scaled(right)?);
    let significand = left.significand.checked_mul(right.significand)?;
    Some(odd(Scaled { significand, exponent: left.exponent + right.exponent }, false))
}

/// The quotient, or `None` for zeros.
pub fn divide(left: Number, right: Number) -> Option<f64> {
    let (left, right) = (scaled(left)?, scaled(right)?);
    if left.significand == 0 || right.significand == 0 {
        return None;
    }
    let up = left.significand.unsigned_abs().leading_zeros() as i32 - 1;
    let up = up.min(126);
    let (whole, rest) =
        ((left.significand << up) / right.significand, (left.significand << up) % right.significand);
    Some(odd(Scaled { significand: whole, exponent: left.exponent - right.exponent - up }, rest != 0))
}

/// The remainder with the sign of the left operand.
pub fn remainder(left: Number, right: Number) -> Option<f64> {
    let (left, right) = (scaled(left)?, scaled(right)?);
    if left.significand == 0 || right.significand == 0 {
        return None;
    }
    let divisor = right.significand.unsigned_abs();
    let apart = left.exponent - right.exponent;
    let (significand, exponent) = if apart >= 0 {
        let doubled = |rest: u128, _| rest * 2 % divisor;
        ((0..apart).fold(left.significand.unsigned_abs() % divisor, doubled), right.exponent)
    } else if divisor.leading_zeros() as i32 <= -apart {
        (left.significand.unsigned_abs(), left.exponent)
    } else {
        (left.significand.unsigned_abs() % (divisor << -apart), left.exponent)
    };
    let size = odd(Scaled { significand: significand as i128, exponent }, false);
    Some(if left.significand < 0 { -size } else { size })
}
