//! Loops that convert elements: to the type that a kernel computes with, and to the type of a
//! result.

use std::convert::Infallible;

use crate::cost::{CAST_BYTE_COST, CAST_CHUNK_ELEMENTS, Cost, MIN_BYTES_TO_ALIGN};
use crate::dtype::minifloat::{F8, F8E4M3FN, F16};
use crate::dtype::{Class, Element, Exact, Lane, bits_to_odd, cast, sub_byte};
use crate::exec::memory::{scratch, streaming_stores};
use crate::exec::simd::{self, Level, Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;
use crate::{DType, Error, Kind, dispatch};

/// Converts elements of one type (first argument) to another (second argument).
pub type Convert = fn(&[u8], &mut [u8]);

/// Converts elements to a type that may not hold all their values; returns whether it holds every
/// one. If not, the converted elements are unspecified.
pub type ConvertExactly = fn(&[u8], &mut [u8]) -> bool;

/// A conversion to or from the type that a kernel computes with.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// The number of bytes in an element of the kernel's type.
    pub lane: usize,
    /// The loop.
    pub convert: Convert,
}

/// The type that a kernel computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// A storage type.
    As(DType),
    /// Values of f32 for functions that are computed in f64, see `ops::math::f32_loops`.
    Single,
    /// 128-bit integers, which hold all values of signed and of unsigned 64-bit integers.
    Wide,
    /// `Exact` values, which hold all values of 64-bit integers and of floats.
    Exact,
    /// One byte, 1 where the element is not zero.
    Truth,
}

impl Compute {
    /// The number of bytes in a value.
    #[inline]
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            Compute::As(dtype) => dtype.width(),
            Compute::Single => 4,
            Compute::Wide | Compute::Exact => 16,
            Compute::Truth => 1,
        }
    }

    /// The conversion of elements of `dtype` to lanes; `None` if they need none.
    #[inline]
    #[must_use]
    pub fn load(self, dtype: DType) -> Option<Conversion> {
        let convert: Convert = match self {
            Compute::As(to) => conversion(dtype, to)?,
            Compute::Single => conversion(dtype, DType::F32)?,
            Compute::Wide => {
                dispatch!(integer dtype, T => convert::<T, i128, WideOf>, else => unreachable!("wide lanes are for integers"))
            }
            Compute::Exact => {
                dispatch!(real dtype, T => convert::<T, Exact, ExactOf>, else => unreachable!("exact lanes are for reals"))
            }
            Compute::Truth => dispatch!(all dtype, T => convert::<T, u8, TruthOf>),
        };
        Some(Conversion { lane: self.width(), convert })
    }

    /// The conversion of lanes to elements of `dtype`; `None` if they need none.
    #[inline]
    #[must_use]
    pub fn store(self, dtype: DType) -> Option<Conversion> {
        let convert: Convert = match self {
            Compute::As(from) => conversion(from, dtype)?,
            Compute::Wide => {
                dispatch!(integer dtype, T => convert::<i128, T, LowBits>, else => unreachable!("wide lanes are for integers"))
            }
            Compute::Single | Compute::Exact | Compute::Truth => return None,
        };
        Some(Conversion { lane: self.width(), convert })
    }
}

/// The loop that converts elements of one storage type to another as `cast` does; `None` if the
/// bits stay the same.
#[inline]
#[must_use]
pub fn conversion(from: DType, to: DType) -> Option<Convert> {
    let (source, target) = (from.storage(), to.storage());
    let integers = from.is_integer() && to.is_integer();
    let same = source as u8 == target as u8 || integers && source.width() == target.width();
    if same { None } else { Some(convert_of(from, to)) }
}

/// Converts `size` dense elements, in parallel if that pays.
pub fn convert_all(from: DType, bytes: &[u8], to: DType, size: usize, out: &mut [u8]) {
    let (width, lane) = (from.width(), to.width());
    let convert_part = |start: usize, part: &mut [u8]| {
        let source = &bytes[start * width..][..part.len() / lane * width];
        match conversion(from, to) {
            Some(convert) => convert(source, part),
            None => part.copy_from_slice(source),
        }
    };
    if out.len() < MIN_BYTES_TO_ALIGN && !parallel::is_worth_sharing(size, cost(from, to)) {
        return convert_part(0, out);
    }
    let head_length = streaming_stores::elements_before_line([(&*out, lane), (bytes, width)]);
    let Ok(()) =
        streaming_stores::try_fill::<Infallible>(out, size, cost(from, to), head_length, |start, part| {
            convert_part(start, part);
            Ok(())
        });
}

/// The elements of a tensor of some shape, dense and in row-major order, in another type.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for them.
pub(crate) fn converted(
    op: &'static str,
    (from, bytes): (DType, &[u8]),
    to: DType,
    shape: &[usize],
) -> Result<Vec<u8>, Error> {
    let size = shape.iter().product();
    let mut out = scratch(op, to, shape, size * to.width())?;
    convert_all(from, bytes, to, size, &mut out);
    Ok(out)
}

/// The cost of converting an element.
#[must_use]
pub fn cost(from: DType, to: DType) -> Cost {
    CAST_BYTE_COST * (from.width() + to.width()) as Cost + sub_byte::cost(&[from, to])
}

fn convert_of(from: DType, to: DType) -> Convert {
    // Infinities become the bounds of the packed type, not of its storage type.
    if !from.is_integer() && to.kind() == Kind::Signed && to.is_packed() {
        return match to.bits() {
            2 => dispatch!(all from, S => convert::<S, i8, Within<2>>),
            _ => dispatch!(all from, S => convert::<S, i8, Within<4>>),
        };
    }
    // With AVX-512, the compiler vectorizes these conversions itself.
    let avx2 = simd::level() == Level::V3;
    match (from, to) {
        (DType::F16, DType::F32) => widen_halves,
        (DType::F32, DType::F16) => round_to_halves,
        (DType::F32, DType::U8) if avx2 => truncate_to_bytes::<u8>,
        (DType::F32, DType::S8) if avx2 => truncate_to_bytes::<i8>,
        (DType::S64, _) if avx2 && to.is_float() => {
            dispatch!(float to, D => i64_to_floats::<D>, else => unreachable!("{to} is a float"))
        }
        _ => dispatch!(all from, S => dispatch!(all to, D => convert::<S, D, CastOf>)),
    }
}

/// `convert` from f16 to f32, of most elements by the processor's instruction if it has one.
fn widen_halves(from: &[u8], to: &mut [u8]) {
    let done = simd::widen_halves(F16::view(from), f32::view_mut(to));
    convert::<F16, f32, CastOf>(&from[2 * done..], &mut to[4 * done..]);
}

/// `convert` from f32 to f16, of most elements by the processor's instruction if it has one.
fn round_to_halves(from: &[u8], to: &mut [u8]) {
    let done = simd::round_to_halves(f32::view(from), F16::view_mut(to));
    convert::<f32, F16, CastOf>(&from[4 * done..], &mut to[2 * done..]);
}

/// `convert` from f32 to bytes by vector instructions, except for elements that are too large for
/// them.
fn truncate_to_bytes<D: Element>(mut from: &[u8], mut to: &mut [u8]) {
    loop {
        let done = simd::truncate_to_bytes(f32::view(from), u8::view_mut(to));
        let further = (done + CAST_CHUNK_ELEMENTS).min(to.len());
        convert::<f32, D, CastOf>(&from[4 * done..4 * further], &mut to[done..further]);
        (from, to) = (&from[4 * further..], &mut to[further..]);
        if to.is_empty() {
            return;
        }
    }
}

/// A float that is narrower than f32 and converted to f32 before it is folded.
pub(crate) trait NarrowFloat: Element {
    /// Converts elements to f32.
    fn widen(from: &[Self::Bytes], to: &mut [[u8; 4]]);
}
impl NarrowFloat for F16 {
    fn widen(from: &[[u8; 2]], to: &mut [[u8; 4]]) {
        widen_halves(from.as_flattened(), to.as_flattened_mut());
    }
}
macro_rules! narrow {
    ($($t:ty),*) => {$(
        impl NarrowFloat for $t {
            #[inline(always)]
            fn widen(from: &[Self::Bytes], to: &mut [[u8; 4]]) {
                for (to, &from) in to.iter_mut().zip(from) {
                    *to = <$t>::load(from).to_f32().store();
                }
            }
        }
    )*};
}
narrow!(F8, F8E4M3FN);

/// A conversion of one value to another.
pub(crate) trait Map<S, D>: 'static {
    /// The converted value.
    fn map(value: S) -> D;

    /// Whether `map` has special cases that keep it from being vectorized. Values that aren't
    /// special cases are `plain`.
    const BRANCHES: bool = false;

    /// Returns whether `map_plain` gives the same result as `map`.
    #[inline(always)]
    fn plain(_value: S) -> bool {
        true
    }

    /// `map` of a plain value.
    #[inline(always)]
    fn map_plain(value: S) -> D {
        Self::map(value)
    }
}

/// The conversion of `cast`.
pub(crate) struct CastOf;
impl<S: Element, D: Element> Map<S, D> for CastOf {
    #[inline(always)]
    fn map(value: S) -> D {
        cast(value)
    }

    const BRANCHES: bool = !matches!(S::CLASS, Class::Integer) && matches!(D::CLASS, Class::Integer);

    /// Values whose truncation fits into 32 bits need no wrapping.
    #[inline(always)]
    fn plain(value: S) -> bool {
        if S::FITS_F32 {
            value.to_f32().abs() < 2_147_483_648.0
        } else {
            value.to_f64().abs() < 2_147_483_648.0
        }
    }

    #[inline(always)]
    fn map_plain(value: S) -> D {
        if !<Self as Map<S, D>>::BRANCHES {
            return cast(value);
        }
        let truncated =
            if S::FITS_F32 { simd::truncate_f32(value.to_f32()) } else { simd::truncate_f64(value.to_f64()) };
        D::from_i64(i64::from(truncated))
    }
}

/// Converts an integer to an `f64` with bit operations, which are vectorized: the upper word
/// becomes the low bits of a float whose last bit is 2^32, the lower word those of a float whose
/// last bit is 1, and only their sum is rounded.
#[inline(always)]
fn i64_to_f64(value: i64) -> f64 {
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    const TWO_84: u64 = 0x4530_0000_0000_0000;
    const SIGN: u64 = 1 << 31;
    let bits = value as u64;
    let high = f64::from_bits(bits >> 32 ^ (TWO_84 | SIGN));
    let low = f64::from_bits(bits & u64::from(u32::MAX) | TWO_52);
    // Subtracts 2^84, the offset 2^63 of the flipped sign, and 2^52.
    high - f64::from_bits(TWO_84 | SIGN | 1 << 20) + low
}

/// `convert` of 64-bit integers to floats, for instruction sets without a vector instruction for
/// it.
fn i64_to_floats<D: Element>(from: &[u8], to: &mut [u8]) {
    vectorize(I64ToFloatLoop::<D> { from, to, target: std::marker::PhantomData });
}

struct I64ToFloatLoop<'a, D> {
    from: &'a [u8],
    to: &'a mut [u8],
    target: std::marker::PhantomData<D>,
}

impl<D: Element> Vectorized for I64ToFloatLoop<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // 2^52 + 2^51: a float whose last bit is 1, in the middle of the floats with this property.
        const MIDDLE: f64 = (1_u64 << 52 | 1 << 51) as f64;
        for (to, from) in D::view_mut(self.to)
            .chunks_mut(CAST_CHUNK_ELEMENTS)
            .zip(i64::view(self.from).chunks(CAST_CHUNK_ELEMENTS))
        {
            let pairs = to.iter_mut().zip(from.iter().map(|&from| i64::load(from)));
            let above = from.iter().fold(0, |bits, &from| bits | i64::load(from).wrapping_add(1 << 51));
            if D::DOUBLE {
                pairs.for_each(|(to, value)| *to = D::from_f64(i64_to_f64(value)).store());
            } else if above as u64 >> 52 == 0 {
                for (to, value) in pairs {
                    let float = f64::from_bits(MIDDLE.to_bits().wrapping_add(value as u64));
                    *to = D::from_f64(float - MIDDLE).store();
                }
            } else {
                pairs.for_each(|(to, value)| *to = D::from_f64(i64_to_f64(bits_to_odd(value))).store());
            }
        }
    }
}

/// Returns whether all integers are at least -2^24 and below 2^24: an f32 holds each of these.
#[inline(always)]
pub(crate) fn fit_f32<S: Element>(integers: &[S::Bytes]) -> bool {
    const LIMIT: i32 = 1 << f32::MANTISSA_DIGITS;
    // The offset makes all of these integers unsigned numbers of `bits` bits.
    let (least, bits) = if S::SIGNED { (LIMIT, LIMIT.ilog2() + 1) } else { (0, LIMIT.ilog2()) };
    let values = integers.iter().map(|&from| S::load(from).to_i64());
    // The loop has no early exit, so that it is vectorized, and uses words of 32 bits if possible,
    // since a vector holds more of them.
    let above = if size_of::<S>() > size_of::<i32>() {
        values.fold(0, |all, value| all | value.wrapping_add(i64::from(least)) as u64)
    } else {
        u64::from(values.fold(0, |all, value| all | (value as i32).wrapping_add(least) as u32))
    };
    above >> bits == 0
}

/// The conversion to f32 of integers that `fit_f32`; `None` if `from` isn't an integer type.
pub(crate) fn to_f32_exactly(from: DType) -> Option<ConvertExactly> {
    dispatch!(integer from, S => Some(integers_to_f32::<S> as ConvertExactly), else => None)
}

fn integers_to_f32<S: Element>(from: &[u8], to: &mut [u8]) -> bool {
    vectorize(IntegersToF32Loop::<S> { from, to, source: std::marker::PhantomData })
}

struct IntegersToF32Loop<'a, S> {
    from: &'a [u8],
    to: &'a mut [u8],
    source: std::marker::PhantomData<S>,
}

impl<S: Element> Vectorized for IntegersToF32Loop<'_, S> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let from = S::view(self.from);
        if !fit_f32::<S>(from) {
            return false;
        }
        for (to, &from) in f32::view_mut(self.to).iter_mut().zip(from) {
            *to = (S::load(from).to_i64() as i32 as f32).store();
        }
        true
    }
}

/// The conversion of `cast`, except that infinities become the bounds of a signed type of `BITS`
/// bits.
struct Within<const BITS: u32>;
impl<S: Element, const BITS: u32> Map<S, i8> for Within<BITS> {
    #[inline(always)]
    fn map(value: S) -> i8 {
        let bound = 1 << (BITS - 1);
        match value.to_f64() {
            f64::INFINITY => bound - 1,
            f64::NEG_INFINITY => -bound,
            _ => cast(value),
        }
    }
}

/// The conversion of integers to 128 bits.
struct WideOf;
impl<S: Element> Map<S, i128> for WideOf {
    #[inline(always)]
    fn map(value: S) -> i128 {
        if S::SIGNED { i128::from(value.to_i64()) } else { i128::from(value.to_i64() as u64) }
    }
}

/// The conversion of 128-bit integers to their low bits.
struct LowBits;
impl<D: Element> Map<i128, D> for LowBits {
    #[inline(always)]
    fn map(value: i128) -> D {
        D::from_i64(value as i64)
    }
}

/// The conversion of integers and floats to `Exact`.
struct ExactOf;
impl<S: Element> Map<S, Exact> for ExactOf {
    #[inline(always)]
    fn map(value: S) -> Exact {
        if S::CLASS != Class::Integer || size_of::<S>() < size_of::<i64>() {
            return Exact { high: value.to_f64(), low: 0.0 };
        }
        let bits = value.to_i64();
        if S::SIGNED { Exact::of(bits) } else { Exact::of_words((bits as u64 >> 32) as u32, bits as u32) }
    }
}

/// The conversion to 1 for values other than zero, and to 0 for zero.
pub(crate) struct TruthOf;
impl<S: Element> Map<S, u8> for TruthOf {
    #[inline(always)]
    fn map(value: S) -> u8 {
        match S::CLASS {
            Class::Integer => u8::from(value.to_i64() != 0),
            Class::Float => u8::from(value.to_f64() != 0.0),
            Class::Complex => u8::from(value.to_f64() != 0.0 || value.imag() != 0.0),
        }
    }
}

struct ConvertLoop<'a, S, D, M> {
    from: &'a [u8],
    to: &'a mut [u8],
    map: std::marker::PhantomData<(S, D, M)>,
}

impl<S: Lane, D: Lane, M: Map<S, D>> Vectorized for ConvertLoop<'_, S, D, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if !M::BRANCHES {
            for (to, &from) in D::view_mut(self.to).iter_mut().zip(S::view(self.from)) {
                *to = M::map(S::load(from)).store();
            }
            return;
        }
        for (to, from) in D::view_mut(self.to)
            .chunks_mut(CAST_CHUNK_ELEMENTS)
            .zip(S::view(self.from).chunks(CAST_CHUNK_ELEMENTS))
        {
            // The loop has no early exit, so that it is vectorized; chunks with special cases are
            // converted again.
            let mut plain = true;
            for (to, &from) in to.iter_mut().zip(from) {
                let value = S::load(from);
                plain &= M::plain(value);
                *to = M::map_plain(value).store();
            }
            if !plain {
                for (to, &from) in to.iter_mut().zip(from) {
                    *to = M::map(S::load(from)).store();
                }
            }
        }
    }
}

fn convert<S: Lane, D: Lane, M: Map<S, D>>(from: &[u8], to: &mut [u8]) {
    vectorize(ConvertLoop::<S, D, M> { from, to, map: std::marker::PhantomData });
}
