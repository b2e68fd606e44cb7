//! Numbers with a separate exponent, whose products neither over- nor underflow.

use super::scalar::Scalar;
use crate::ops::math::f64_functions::exponent_of_two;

/// `mantissa * 2^exponent`
#[derive(Clone, Copy, Debug)]
pub struct ScaledNumber<T> {
    mantissa: T,
    exponent: i64,
}

impl<T: Scalar> ScaledNumber<T> {
    /// The product of several numbers.
    pub fn product(factors: impl Iterator<Item = T>) -> Self {
        let one = ScaledNumber { mantissa: T::ONE, exponent: 0 };
        factors.fold(one, |product, factor| {
            let factor = ScaledNumber { mantissa: factor, exponent: 0 }.normalized();
            let mantissa = product.mantissa * factor.mantissa;
            ScaledNumber { mantissa, exponent: product.exponent + factor.exponent }.normalized()
        })
    }

    /// The same number with a mantissa of about one, if it is finite and not zero.
    fn normalized(self) -> Self {
        let shift = exponent(self.mantissa.abs());
        ScaledNumber {
            mantissa: scale_by_power_of_two(self.mantissa, -shift),
            exponent: self.exponent + shift,
        }
    }

    /// The negative number.
    pub fn negative(self) -> Self {
        ScaledNumber { mantissa: -self.mantissa, ..self }
    }

    /// The number times a power of two.
    pub fn times_power_of_two(self, shift: i64) -> Self {
        ScaledNumber { exponent: self.exponent + shift, ..self }
    }

    /// The number as a `T`, which may over- or underflow.
    pub fn to_number(self) -> T {
        scale_by_power_of_two(self.mantissa, self.exponent)
    }
}

/// The binary exponent of a number; zero if the number is zero or not finite.
pub fn exponent(size: f64) -> i64 {
    if size > 0.0 && size.is_finite() { i64::from(exponent_of_two(size)) } else { 0 }
}

/// A number times a power of two.
pub fn scale_by_power_of_two<T: Scalar>(mut value: T, mut exponent: i64) -> T {
    const EXPONENT_STEP: i64 = 1_000;
    // A larger exponent wouldn't change the result: it over- or underflows.
    exponent = exponent.clamp(-4 * EXPONENT_STEP, 4 * EXPONENT_STEP);
    while exponent.abs() > EXPONENT_STEP {
        let step = EXPONENT_STEP * exponent.signum();
        value = value.scale(2f64.powi(step as i32));
        exponent -= step;
    }
    value.scale(2f64.powi(exponent as i32))
}
