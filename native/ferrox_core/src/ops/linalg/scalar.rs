//! The numbers that factorizations compute with: f64 and complex numbers of two f64.

use num_complex::Complex;
use std::ops::{Add, Mul, Neg, Sub};

use crate::DType;
use crate::dtype::Lane;
use crate::exec::gemm::blocked::Number;
use crate::ops::math::complex;

/// An element of a matrix during a computation.
pub trait Scalar:
    Lane + Number + PartialEq + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// The type that tensors are converted to.
    const DTYPE: DType;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Whether the type has an imaginary part.
    const COMPLEX: bool;

    /// A real number.
    fn real(value: f64) -> Self;
    /// The real part.
    fn re(self) -> f64;
    /// The imaginary part.
    fn im(self) -> f64;
    /// The number with these parts; a real type ignores the imaginary part.
    fn from_parts(re: f64, im: f64) -> Self;
    /// The complex conjugate.
    fn conj(self) -> Self;
    /// The magnitude.
    fn abs(self) -> f64;
    /// The square of the magnitude.
    fn abs_sq(self) -> f64;
    /// The quotient, computed as Nx divides.
    fn divided_by(self, by: Self) -> Self;
    /// The product with a real number.
    fn scale(self, by: f64) -> Self;
    /// The number with each part rounded to f32.
    fn round_to_f32(self) -> Self;
    /// Whether every part is finite.
    fn is_finite(self) -> bool;
    /// The number, or zero if its magnitude is at most `eps`. Zeros become positive.
    fn flush_to_zero(self, eps: f64) -> Self {
        if self.abs() <= eps { Self::ZERO } else { self }
    }
}

impl Scalar for f64 {
    const DTYPE: DType = DType::F64;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const COMPLEX: bool = false;

    #[inline(always)]
    fn real(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn re(self) -> f64 {
        self
    }
    #[inline(always)]
    fn im(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn from_parts(re: f64, _: f64) -> Self {
        re
    }
    #[inline(always)]
    fn conj(self) -> Self {
        self
    }
    #[inline(always)]
    fn abs(self) -> f64 {
        f64::abs(self)
    }
    #[inline(always)]
    fn abs_sq(self) -> f64 {
        self * self
    }
    #[inline(always)]
    fn divided_by(self, by: Self) -> Self {
        self / by
    }
    #[inline(always)]
    fn scale(self, by: f64) -> Self {
        self * by
    }
    #[inline(always)]
    fn round_to_f32(self) -> Self {
        f64::from(self as f32)
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
}

impl Scalar for Complex<f64> {
    const DTYPE: DType = DType::C128;
    const ZERO: Self = Complex::ZERO;
    const ONE: Self = Complex::ONE;
    const COMPLEX: bool = true;

    #[inline(always)]
    fn real(value: f64) -> Self {
        Complex::new(value, 0.0)
    }
    #[inline(always)]
    fn re(self) -> f64 {
        self.re
    }
    #[inline(always)]
    fn im(self) -> f64 {
        self.im
    }
    #[inline(always)]
    fn from_parts(re: f64, im: f64) -> Self {
        Complex::new(re, im)
    }
    #[inline(always)]
    fn conj(self) -> Self {
        Complex::new(self.re, -self.im)
    }
    #[inline(always)]
    fn abs(self) -> f64 {
        complex::abs(self)
    }
    #[inline(always)]
    fn abs_sq(self) -> f64 {
        self.re * self.re + self.im * self.im
    }
    #[inline(always)]
    fn divided_by(self, by: Self) -> Self {
        complex::divide(self, by)
    }
    #[inline(always)]
    fn scale(self, by: f64) -> Self {
        Complex::new(self.re * by, self.im * by)
    }
    #[inline(always)]
    fn round_to_f32(self) -> Self {
        Complex::new(self.re.round_to_f32(), self.im.round_to_f32())
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }
}

/// Where a computation rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Computes in f64 throughout; only the result is rounded to its type.
    Double,
    /// Rounds to single precision after each step, as Nx's own implementation does.
    Single,
}

impl Precision {
    /// The value rounded as it is after a step.
    #[inline(always)]
    pub fn round<T: Scalar>(self, value: T) -> T {
        if self == Precision::Single { value.round_to_f32() } else { value }
    }
}
