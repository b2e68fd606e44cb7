//! Numbers with an exponent of their own, whose products neither over- nor underflow.

use super::scalar::Scalar;

/// `mantissa * 2^exponent`
#[derive(Clone, Copy, Debug)]
pub struct Scaled<T> {
    mantissa: T,
    exponent: i64,
}

impl<T: Scalar> Scaled<T> {
    /// The product of numbers.
    pub fn product(factors: impl Iterator<Item = T>) -> Self {
        let one = Scaled { mantissa: T::ONE, exponent: 0 };
        factors.fold(one, |product, factor| {
            let factor = Scaled { mantissa: factor, exponent: 0 }.normal();
            let mantissa = product.mantissa * factor.mantissa;
            Scaled { mantissa, exponent: product.exponent + factor.exponent }.normal()
        })
    }

    /// With a mantissa of about one, if it is finite and not zero.
    fn normal(self) -> Self {
        let by = exponent(self.mantissa.abs());
        Scaled { mantissa: power(self.mantissa, -by), exponent: self.exponent + by }
    }

    /// The negative.
    pub fn negative(self) -> Self {
        Scaled { mantissa: -self.mantissa, ..self }
    }

    /// The number times a power of two.
    pub fn times_power(self, by: i64) -> Self {
        Scaled { exponent: self.exponent + by, ..self }
    }

    /// The number, as far as its range goes.
    pub fn number(self) -> T {
        power(self.mantissa, self.exponent)
    }
}

/// The exponent of a number, but for rounding; zero if it has none.
pub fn exponent(size: f64) -> i64 {
    if size > 0.0 && size.is_finite() { size.log2().floor() as i64 } else { 0 }
}

/// A number times a power of two.
pub fn power<T: Scalar>(mut value: T, mut exponent: i64) -> T {
    const STEP: i64 = 1_000;
    // More would make nothing else of it.
    exponent = exponent.clamp(-4 * STEP, 4 * STEP);
    while exponent.abs() > STEP {
        let step = STEP * exponent.signum();
        value = value.scale(2f64.powi(step as i32));
        exponent -= step;
    }
    value.scale(2f64.powi(exponent as i32))
}
