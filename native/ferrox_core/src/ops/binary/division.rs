//! Quotients and remainders of integers by one number.
//!
//! Problem: processors divide integers one at a time, in ten cycles and more.
//! Technique: a multiplication by a reciprocal that is rounded up, and two shifts, which give the quotient
//! of every dividend (Granlund and Montgomery 1994, "Division by Invariant Integers using
//! Multiplication", figure 4.1). The loops vectorize. Signs are those of the operands' magnitudes. Powers of two
//! take a shift alone, of a negative dividend after what rounds it towards zero (section 5).

use std::marker::PhantomData;

use super::{Binary, Quotient, Remainder};
use crate::Fault;
use crate::dtype::Lane;
use crate::exec::elementwise::Operand;
use crate::exec::simd::{Vectorized, dispatch};

/// The reciprocal of an integer of a type without sign.
#[derive(Clone, Copy, Debug)]
pub struct Reciprocal<U> {
    factor: U,
    first_shift: u32,
    second_shift: u32,
}

/// An integer that can be divided by a reciprocal.
pub trait Divisible: Lane {
    type Unsigned: Copy;

    /// The reciprocal of the magnitude; of zero, it has no meaning.
    fn reciprocal(self) -> Reciprocal<Self::Unsigned>;

    /// The quotient by `divisor`, rounded towards zero, given the divisor's reciprocal.
    fn quotient(self, divisor: Self, reciprocal: Reciprocal<Self::Unsigned>) -> Self;

    /// The remainder of that quotient.
    fn remainder(self, divisor: Self, reciprocal: Reciprocal<Self::Unsigned>) -> Self;

    /// The quotient by `divisor`, rounded towards zero, if its magnitude is a power of two.
    fn power_quotient(self, divisor: Self) -> Self;

    /// The remainder of that quotient.
    fn power_remainder(self, divisor: Self) -> Self;

    /// Whether the magnitude of the number is a power of two.
    fn is_power_of_two(self) -> bool;

    /// Whether the number is zero.
    fn is_zero(self) -> bool;
}

macro_rules! divisible {
    ($($unsigned:ty, $signed:ty, $wide:ty;)*) => {$(
        impl Reciprocal<$unsigned> {
            #[inline(always)]
            fn of(divisor: $unsigned) -> Self {
                const BITS: u32 = <$unsigned>::BITS;
                let length = BITS - divisor.saturating_sub(1).leading_zeros();
                let divisor = u128::from(divisor.max(1));
                let excess = (1 << length) - divisor;
                let factor = ((excess << BITS) / divisor) as $unsigned;
                Reciprocal {
                    factor: factor.wrapping_add(1),
                    first_shift: length.min(1),
                    second_shift: length.saturating_sub(1),
                }
            }

            #[inline(always)]
            fn quotient(self, dividend: $unsigned) -> $unsigned {
                let high = ((<$wide>::from(self.factor) * <$wide>::from(dividend)) >> <$unsigned>::BITS) as $unsigned;
                (high + ((dividend - high) >> self.first_shift)) >> self.second_shift
            }
        }

        impl Divisible for $unsigned {
            type Unsigned = $unsigned;

            #[inline(always)]
            fn reciprocal(self) -> Reciprocal<$unsigned> {
                Reciprocal::<$unsigned>::of(self)
            }

            #[inline(always)]
            fn quotient(self, _divisor: Self, reciprocal: Reciprocal<$unsigned>) -> Self {
                reciprocal.quotient(self)
            }

            #[inline(always)]
            fn remainder(self, divisor: Self, reciprocal: Reciprocal<$unsigned>) -> Self {
                self.wrapping_sub(reciprocal.quotient(self).wrapping_mul(divisor))
            }

            #[inline(always)]
            fn power_quotient(self, divisor: Self) -> Self {
                self >> divisor.trailing_zeros()
            }

            #[inline(always)]
            fn power_remainder(self, divisor: Self) -> Self {
                self & (divisor - 1)
            }

            #[inline(always)]
            fn is_power_of_two(self) -> bool {
                <$unsigned>::is_power_of_two(self)
            }

            #[inline(always)]
            fn is_zero(self) -> bool {
                self == 0
            }
        }

        impl Divisible for $signed {
            type Unsigned = $unsigned;

            #[inline(always)]
            fn reciprocal(self) -> Reciprocal<$unsigned> {
                Reciprocal::<$unsigned>::of(self.unsigned_abs())
            }

            #[inline(always)]
            fn quotient(self, divisor: Self, reciprocal: Reciprocal<$unsigned>) -> Self {
                let magnitude = reciprocal.quotient(self.unsigned_abs()) as $signed;
                if (self < 0) != (divisor < 0) { magnitude.wrapping_neg() } else { magnitude }
            }

            #[inline(always)]
            fn remainder(self, divisor: Self, reciprocal: Reciprocal<$unsigned>) -> Self {
                let quotient = Divisible::quotient(self, divisor, reciprocal);
                self.wrapping_sub(quotient.wrapping_mul(divisor))
            }

            #[inline(always)]
            fn power_quotient(self, divisor: Self) -> Self {
                let mask = (divisor.unsigned_abs() - 1) as $signed;
                let raised = self.wrapping_add((self >> (<$signed>::BITS - 1)) & mask);
                let quotient = raised >> divisor.trailing_zeros();
                if divisor < 0 { quotient.wrapping_neg() } else { quotient }
            }

            #[inline(always)]
            fn power_remainder(self, divisor: Self) -> Self {
                let mask = (divisor.unsigned_abs() - 1) as $signed;
                let raised = self.wrapping_add((self >> (<$signed>::BITS - 1)) & mask);
                self.wrapping_sub(raised & !mask)
            }

            #[inline(always)]
            fn is_power_of_two(self) -> bool {
                self.unsigned_abs().is_power_of_two()
            }

            #[inline(always)]
            fn is_zero(self) -> bool {
                self == 0
            }
        }
    )*};
}
divisible! {
    u8, i8, u16;
    u16, i16, u32;
    u32, i32, u64;
    u64, i64, u128;
}

/// An operation that divides.
pub trait Division {
    fn apply<T: Divisible>(dividend: T, divisor: T, reciprocal: Reciprocal<T::Unsigned>) -> T;

    /// The same for a divisor whose magnitude is a power of two.
    fn apply_power<T: Divisible>(dividend: T, divisor: T) -> T;
}

impl Division for Quotient {
    #[inline(always)]
    fn apply<T: Divisible>(dividend: T, divisor: T, reciprocal: Reciprocal<T::Unsigned>) -> T {
        dividend.quotient(divisor, reciprocal)
    }

    #[inline(always)]
    fn apply_power<T: Divisible>(dividend: T, divisor: T) -> T {
        dividend.power_quotient(divisor)
    }
}

impl Division for Remainder {
    #[inline(always)]
    fn apply<T: Divisible>(dividend: T, divisor: T, reciprocal: Reciprocal<T::Unsigned>) -> T {
        dividend.remainder(divisor, reciprocal)
    }

    #[inline(always)]
    fn apply_power<T: Divisible>(dividend: T, divisor: T) -> T {
        dividend.power_remainder(divisor)
    }
}

/// The kernel of a division.
pub fn tile<F, T>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault>
where
    F: Division + Binary<T, Out = T>,
    T: Divisible,
{
    if let [Operand::Slice(dividends), Operand::Scalar(divisor)] = *operands {
        let divisor = T::load(T::view(divisor)[0]);
        if !divisor.is_zero() {
            dispatch(DivisionLoop::<F, T> { out, dividends, divisor, op: PhantomData });
            return Ok(());
        }
    }
    super::tile::<F, T>(out, operands)
}

struct DivisionLoop<'a, F, T> {
    out: &'a mut [u8],
    dividends: &'a [u8],
    divisor: T,
    op: PhantomData<F>,
}

impl<F: Division, T: Divisible> Vectorized for DivisionLoop<'_, F, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let divisor = self.divisor;
        let elements = T::view_mut(self.out).iter_mut().zip(T::view(self.dividends));
        if divisor.is_power_of_two() {
            for (out, &dividend) in elements {
                *out = F::apply_power(T::load(dividend), divisor).store();
            }
            return;
        }
        let reciprocal = divisor.reciprocal();
        for (out, &dividend) in elements {
            *out = F::apply(T::load(dividend), divisor, reciprocal).store();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reciprocals_of_bytes_give_every_quotient() {
        for divisor in 1..=u8::MAX {
            for dividend in 0..=u8::MAX {
                let (quotient, remainder) = (dividend / divisor, dividend % divisor);
                assert_eq!(Divisible::quotient(dividend, divisor, divisor.reciprocal()), quotient);
                assert_eq!(dividend.remainder(divisor, divisor.reciprocal()), remainder);
                if Divisible::is_power_of_two(divisor) {
                    assert_eq!(dividend.power_quotient(divisor), quotient);
                    assert_eq!(dividend.power_remainder(divisor), remainder);
                }
                let (dividend, divisor) = (dividend as i8, divisor as i8);
                let (quotient, remainder) = (dividend.wrapping_div(divisor), dividend.wrapping_rem(divisor));
                assert_eq!(Divisible::quotient(dividend, divisor, divisor.reciprocal()), quotient);
                assert_eq!(dividend.remainder(divisor, divisor.reciprocal()), remainder);
            }
        }
    }

    macro_rules! check {
        ($($name:ident, $t:ty;)*) => {$(
            #[test]
            fn $name() {
                // Powers of two, their neighbours, and numbers between them.
                let edges = (0..<$t>::BITS).flat_map(|bit| {
                    let power = (1 as $t) << bit;
                    [power, power.wrapping_sub(1), power.wrapping_add(1), power.wrapping_mul(5) ^ 0x2b]
                });
                let numbers: Vec<$t> = edges.flat_map(|number| [number, (0 as $t).wrapping_sub(number)]).collect();
                for &divisor in numbers.iter().filter(|divisor| **divisor != 0) {
                    let reciprocal = divisor.reciprocal();
                    for &n in &numbers {
                        for dividend in [n, n.wrapping_mul(divisor), n.wrapping_mul(divisor).wrapping_sub(1)] {
                            let expected = (dividend.wrapping_div(divisor), dividend.wrapping_rem(divisor));
                            let quotient = Divisible::quotient(dividend, divisor, reciprocal);
                            let got = (quotient, dividend.remainder(divisor, reciprocal));
                            assert_eq!(got, expected, "{dividend} by {divisor}");
                            if Divisible::is_power_of_two(divisor) {
                                let got = (dividend.power_quotient(divisor), dividend.power_remainder(divisor));
                                assert_eq!(got, expected, "{dividend} by the power {divisor}");
                            }
                        }
                    }
                }
            }
        )*};
    }
    check! {
        reciprocals_of_u16, u16;
        reciprocals_of_i16, i16;
        reciprocals_of_u32, u32;
        reciprocals_of_i32, i32;
        reciprocals_of_u64, u64;
        reciprocals_of_i64, i64;
    }
}
