//! The Rust types that kernels compute with, and conversions of elements.

use num_complex::Complex;

use crate::dtype::minifloat::{BF16, F8, F8E4M3FN, F16};

/// The class of an element type, which decides how elements convert to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An integer, which wraps around.
    Integer,
    /// A float, which rounds to nearest, ties to even.
    Float,
    /// A pair of floats.
    Complex,
}

/// A Rust type that kernels compute with.
///
/// Values are read and written as arrays of bytes, so that the data of a tensor may begin at any
/// address.
pub trait Lane: Copy + Send + Sync + 'static {
    /// The native-endian bytes of one value.
    type Bytes: Copy + Send + Sync + 'static;

    /// Reads a value.
    fn load(bytes: Self::Bytes) -> Self;
    /// Writes a value.
    fn store(self) -> Self::Bytes;
    /// The bytes as values, without an incomplete value at the end.
    fn view(bytes: &[u8]) -> &[Self::Bytes];
    /// The mutable bytes as values, without an incomplete value at the end.
    fn view_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
}

/// A lane that tensors store: the Rust type of a `DType`.
pub trait Element: Lane {
    /// The class of the type.
    const CLASS: Class;
    /// Whether an `f32` holds every value.
    const FITS_F32: bool;
    /// Whether the type has negative values.
    const SIGNED: bool;
    /// Whether the type is an `f64` or a complex number of two `f64`.
    const DOUBLE: bool;

    /// The value modulo 2^64; floats are truncated towards zero first.
    /// Infinities and NaN follow `Nx.as_type/2`, see `cast`.
    fn to_i64(self) -> i64;
    /// The nearest `f32`.
    fn to_f32(self) -> f32;
    /// The nearest `f64`.
    fn to_f64(self) -> f64;
    /// The imaginary part, which is zero for reals.
    fn imag(self) -> f64;

    /// The low bits of an integer.
    fn from_i64(value: i64) -> Self;
    /// The value of an `f32`, rounded once.
    fn from_f32(value: f32) -> Self;
    /// The value of an `f64`, rounded once.
    fn from_f64(value: f64) -> Self;
    /// A complex number, each part rounded once; for reals, the real part.
    fn from_parts(re: f64, im: f64) -> Self;
    /// The bounds that infinities are cast to, as in Nx; zeros for floats.
    fn bounds() -> (i64, i64);
}

macro_rules! lane {
    ($t:ty, $width:literal, $load:expr, $store:expr) => {
        impl Lane for $t {
            type Bytes = [u8; $width];

            #[inline(always)]
            fn load(bytes: Self::Bytes) -> Self {
                ($load)(bytes)
            }
            #[inline(always)]
            fn store(self) -> Self::Bytes {
                ($store)(self)
            }
            #[inline(always)]
            fn view(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks::<$width>().0
            }
            #[inline(always)]
            fn view_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
                bytes.as_chunks_mut::<$width>().0
            }
        }
    };
}

macro_rules! integer {
    ($($t:ty, $width:literal, $fits:literal;)*) => {$(
        lane!($t, $width, <$t>::from_ne_bytes, <$t>::to_ne_bytes);

        impl Element for $t {
            const CLASS: Class = Class::Integer;
            const FITS_F32: bool = $fits;
            #[allow(unused_comparisons)]
            const SIGNED: bool = <$t>::MIN < 0;
            const DOUBLE: bool = false;

            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn imag(self) -> f64 { 0.0 }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { value as $t }
            #[inline(always)]
            fn from_f32(value: f32) -> Self { Self::from_f64(f64::from(value)) }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { float_to_integer(value, Self::bounds()) as $t }
            #[inline(always)]
            fn from_parts(re: f64, _im: f64) -> Self { Self::from_f64(re) }
            #[inline(always)]
            fn bounds() -> (i64, i64) { (<$t>::MIN as i64, <$t>::MAX as i64) }
        }
    )*};
}

integer! {
    u8, 1, true;
    u16, 2, true;
    u32, 4, false;
    u64, 8, false;
    i8, 1, true;
    i16, 2, true;
    i32, 4, false;
    i64, 8, false;
}

/// Truncates a float towards zero and wraps it, as `Nx.BinaryBackend` casts a float to an integer.
/// NaN becomes zero, and infinities become the bounds of the type.
#[inline(always)]
fn float_to_integer(value: f64, (min, max): (i64, i64)) -> i64 {
    // Below 2^63 in magnitude the cast is exact.
    if value.abs() < 9_223_372_036_854_775_808.0 {
        return value as i64;
    }
    if value.is_nan() {
        return 0;
    }
    if value.is_infinite() {
        return if value > 0.0 { max } else { min };
    }
    // A finite value of this size is an integer: its significand shifted left.
    let bits = value.to_bits();
    let shift = ((bits >> 52) & 0x7ff) as u32 - 1075;
    let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
    let magnitude = significand.checked_shl(shift).unwrap_or(0);
    if value < 0.0 { magnitude.wrapping_neg() as i64 } else { magnitude as i64 }
}

macro_rules! float {
    ($($t:ty, $width:literal, $fits:literal, $load:expr, $store:expr, $to_f32:expr, $to_f64:expr, $from_f32:expr, $from_f64:expr;)*) => {$(
        lane!($t, $width, $load, $store);

        impl Element for $t {
            const CLASS: Class = Class::Float;
            const FITS_F32: bool = $fits;
            const SIGNED: bool = true;
            const DOUBLE: bool = !$fits;

            #[inline(always)]
            fn to_i64(self) -> i64 { float_to_integer(self.to_f64(), i64::bounds()) }
            #[inline(always)]
            fn to_f32(self) -> f32 { ($to_f32)(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { ($to_f64)(self) }
            #[inline(always)]
            fn imag(self) -> f64 { 0.0 }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { Self::from_f64(value as f64) }
            #[inline(always)]
            fn from_f32(value: f32) -> Self { ($from_f32)(value) }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { ($from_f64)(value) }
            #[inline(always)]
            fn from_parts(re: f64, _im: f64) -> Self { Self::from_f64(re) }
            #[inline(always)]
            fn bounds() -> (i64, i64) { (0, 0) }
        }
    )*};
}

float! {
    f32, 4, true, f32::from_ne_bytes, f32::to_ne_bytes, |x| x, f64::from, |x| x, |x| x as f32;
    f64, 8, false, f64::from_ne_bytes, f64::to_ne_bytes, |x| x as f32, |x| x, f64::from, |x| x;
    F16, 2, true, |b| F16(u16::from_ne_bytes(b)), |x: F16| x.0.to_ne_bytes(),
        F16::to_f32, |x: F16| f64::from(x.to_f32()), F16::from_f32, F16::from_f64;
    BF16, 2, true, |b| BF16(u16::from_ne_bytes(b)), |x: BF16| x.0.to_ne_bytes(),
        BF16::to_f32, |x: BF16| f64::from(x.to_f32()), BF16::from_f32, BF16::from_f64;
    F8, 1, true, |b: [u8; 1]| F8(b[0]), |x: F8| [x.0],
        F8::to_f32, |x: F8| f64::from(x.to_f32()), F8::from_f32, F8::from_f64;
    F8E4M3FN, 1, true, |b: [u8; 1]| F8E4M3FN(b[0]), |x: F8E4M3FN| [x.0],
        F8E4M3FN::to_f32, |x: F8E4M3FN| f64::from(x.to_f32()), F8E4M3FN::from_f32, F8E4M3FN::from_f64;
}

macro_rules! complex {
    ($($t:ty, $width:literal, $half:literal;)*) => {$(
        lane!(
            Complex<$t>,
            $width,
            |bytes: [u8; $width]| {
                let parts = bytes.as_chunks::<$half>().0;
                Complex::new(<$t>::from_ne_bytes(parts[0]), <$t>::from_ne_bytes(parts[1]))
            },
            |value: Complex<$t>| {
                let mut bytes = [0; $width];
                let parts = bytes.as_chunks_mut::<$half>().0;
                parts[0] = value.re.to_ne_bytes();
                parts[1] = value.im.to_ne_bytes();
                bytes
            }
        );

        impl Element for Complex<$t> {
            const CLASS: Class = Class::Complex;
            const FITS_F32: bool = false;
            const SIGNED: bool = true;
            const DOUBLE: bool = $half == 8;

            #[inline(always)]
            fn to_i64(self) -> i64 { self.re.to_i64() }
            #[inline(always)]
            fn to_f32(self) -> f32 { self.re as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from(self.re) }
            #[inline(always)]
            fn imag(self) -> f64 { f64::from(self.im) }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { Self::from_f64(value as f64) }
            #[inline(always)]
            fn from_f32(value: f32) -> Self { Self::from_f64(f64::from(value)) }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { Complex::new(value as $t, 0.0) }
            #[inline(always)]
            fn from_parts(re: f64, im: f64) -> Self { Complex::new(re as $t, im as $t) }
            #[inline(always)]
            fn bounds() -> (i64, i64) { (0, 0) }
        }
    )*};
}

complex! {
    f32, 8, 4;
    f64, 16, 8;
}

lane!(i128, 16, i128::from_ne_bytes, i128::to_ne_bytes);

/// Converts an element as `Nx.as_type/2` does: integers wrap, floats round to nearest even, or
/// truncate towards zero if they become integers, reals get an imaginary part of zero, and complex
/// numbers lose their imaginary part.
#[inline(always)]
pub fn cast<S: Element, D: Element>(value: S) -> D {
    match (S::CLASS, D::CLASS) {
        (Class::Integer, Class::Integer) => D::from_i64(value.to_i64()),
        (Class::Complex, Class::Complex) => D::from_parts(value.to_f64(), value.imag()),
        _ if S::FITS_F32 => D::from_f32(value.to_f32()),
        (Class::Integer, _) if size_of::<S::Bytes>() <= 4 && size_of::<D::Bytes>() <= 2 => {
            D::from_f32(round_word_to_odd(value))
        }
        (Class::Integer, _) if !D::DOUBLE => D::from_f64(round_to_odd(value)),
        _ => D::from_f64(value.to_f64()),
    }
}

/// Converts an integer to an `f64`, rounded to odd, so that rounding the result to at most 51 bits
/// gives the same value as rounding the integer once (Boldo and Melquiond 2008, "Emulation of FMA
/// and Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd").
#[inline(always)]
fn round_to_odd<S: Element>(value: S) -> f64 {
    let nearest = value.to_f64();
    if size_of::<S::Bytes>() < 8 || nearest.abs() < 9_007_199_254_740_992.0 {
        return nearest;
    }
    let odd = truncate_to_odd::<11>(value.to_i64());
    if S::SIGNED { odd as f64 } else { odd as u64 as f64 }
}

/// Converts an integer of at most 32 bits to an `f32`, rounded to odd, so that rounding the result
/// to the significant bits of a type of 16 bits or fewer gives the same value as rounding the
/// integer once.
#[inline(always)]
fn round_word_to_odd<S: Element>(value: S) -> f32 {
    const LIMIT: u32 = 1 << f32::MANTISSA_DIGITS;
    let bits = value.to_i64() as u32;
    let exact = if S::SIGNED { bits.wrapping_add(LIMIT) <= 2 * LIMIT } else { bits <= LIMIT };
    let odd = if exact { bits } else { truncate_to_odd::<8>(value.to_i64()) as u32 };
    if S::SIGNED { odd.cast_signed() as f32 } else { odd as f32 }
}

/// Clears the `LOWEST` lowest bits, and sets the bit above them if one of them was set: rounding to
/// odd.
#[inline(always)]
fn truncate_to_odd<const LOWEST: u32>(bits: i64) -> i64 {
    let low = (1 << LOWEST) - 1;
    (bits | ((bits & low) + low)) & !low
}

/// The integer itself if its magnitude is below 2^53, else the integer rounded to odd, which an
/// `f64` holds.
#[inline(always)]
pub(crate) fn bits_to_odd(bits: i64) -> i64 {
    let exact = bits.wrapping_add(1 << 53) as u64 >> 54 == 0;
    if exact { bits } else { truncate_to_odd::<11>(bits) }
}

/// A 64-bit integer or a float without rounding: the sum of `high`, the value rounded to an `f64`,
/// and `low`, the rounding error. Values are ordered by `high`, then by `low`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Exact {
    /// The value, rounded to an `f64`.
    pub high: f64,
    /// The exact value minus `high`.
    pub low: f64,
}

impl Exact {
    /// The exact value of an integer.
    #[inline(always)]
    pub(crate) fn of(value: i64) -> Self {
        Self::of_words((value >> 32) as i32, value as u32)
    }

    /// The exact value of an integer of two words. An f64 holds each word, and the rounding error
    /// of their sum (Fast2Sum, Dekker 1971, "A Floating-Point Technique for Extending the Available
    /// Precision").
    #[inline(always)]
    pub(crate) fn of_words(upper: impl Into<f64>, lower: u32) -> Self {
        const TWO_32: f64 = (1_u64 << 32) as f64;
        let (upper, lower) = (upper.into() * TWO_32, f64::from(lower));
        let high = upper + lower;
        Exact { high, low: lower - (high - upper) }
    }

    /// Returns whether the value is NaN.
    #[must_use]
    pub fn is_nan(self) -> bool {
        self.high.is_nan()
    }
}

impl Lane for Exact {
    type Bytes = [u8; 16];

    #[inline(always)]
    fn load(bytes: Self::Bytes) -> Self {
        let Complex { re: high, im: low } = Complex::<f64>::load(bytes);
        Exact { high, low }
    }
    #[inline(always)]
    fn store(self) -> Self::Bytes {
        Complex::new(self.high, self.low).store()
    }
    #[inline(always)]
    fn view(bytes: &[u8]) -> &[Self::Bytes] {
        bytes.as_chunks::<16>().0
    }
    #[inline(always)]
    fn view_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
        bytes.as_chunks_mut::<16>().0
    }
}
