//! Loops that convert elements: to what a kernel computes with, and to the type of a result.

use std::convert::Infallible;

use crate::cost::Cost;
use crate::dtype::minifloat::{F8, F8E4M3FN, F16};
use crate::dtype::{Class, Element, Exact, Lane, bits_to_odd, cast, sub_byte};
use crate::exec::memory::streaming_stores;
use crate::exec::simd::{self, Level, Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;
use crate::{DType, Kind, dispatch};

/// Converts elements of one type to another: from, to.
pub type Convert = fn(&[u8], &mut [u8]);

/// Converts elements if every one of them is a value of the other type; returns whether it did.
pub type ConvertExactly = fn(&[u8], &mut [u8]) -> bool;

/// A conversion to or from the type that a kernel computes with.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// Bytes of an element in the kernel's type.
    pub lane: usize,
    /// The loop.
    pub convert: Convert,
}

/// The type a kernel computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// A storage type.
    As(DType),
    /// Values of f32, for functions that are computed in f64, see `ops::math::f32_loops`.
    Single,
    /// 128-bit integers: unsigned and signed 64-bit ones together.
    Wide,
    /// `Exact` values: 64-bit integers and floats together.
    Exact,
    /// One byte, 1 where the element is not zero.
    Truth,
}

impl Compute {
    /// Bytes of one value.
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

    /// How elements of `dtype` become lanes; `None` if they are that already.
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

    /// How lanes become elements of `dtype`; `None` if they are that already.
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

/// Converts elements of one storage type to another as `cast` does; `None` if
/// their bits are the same.
#[inline]
#[must_use]
pub fn conversion(from: DType, to: DType) -> Option<Convert> {
    let (source, target) = (from.storage(), to.storage());
    let integers = from.is_integer() && to.is_integer();
    let same = source as u8 == target as u8 || integers && source.width() == target.width();
    if same { None } else { Some(convert_of(from, to)) }
}

/// Converts `size` dense elements, in parallel where that pays.
pub fn convert_all(from: DType, bytes: &[u8], to: DType, size: usize, out: &mut [u8]) {
    let (width, lane) = (from.width(), to.width());
    let convert_part = |start: usize, part: &mut [u8]| {
        let source = &bytes[start * width..][..part.len() / lane * width];
        match conversion(from, to) {
            Some(convert) => convert(source, part),
            None => part.copy_from_slice(source),
        }
    };
    if out.len() < streaming_stores::MIN_BYTES_TO_ALIGN && !parallel::is_worth_sharing(size, cost(from, to)) {
        return convert_part(0, out);
    }
    let head_length = streaming_stores::elements_before_line([(&*out, lane), (bytes, width)]);
    let Ok(()) =
        streaming_stores::try_fill::<Infallible>(out, size, cost(from, to), head_length, |start, part| {
            convert_part(start, part);
            Ok(())
        });
}

/// Cost of converting an element.
#[must_use]
pub fn cost(from: DType, to: DType) -> Cost {
    40 * (from.width() + to.width()) as Cost + sub_byte::cost(&[from, to])
}

fn convert_of(from: DType, to: DType) -> Convert {
    // Infinities become the bounds of the type, not of its storage.
    if !from.is_integer() && to.kind() == Kind::Signed && to.is_packed() {
        return match to.bits() {
            2 => dispatch!(all from, S => convert::<S, i8, Within<2>>),
            _ => dispatch!(all from, S => convert::<S, i8, Within<4>>),
        };
    }
    // With AVX-512, the compiler finds instructions for these itself.
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

/// `convert`, of most by an instruction where there is one.
fn widen_halves(from: &[u8], to: &mut [u8]) {
    let done = simd::widen_halves(F16::view(from), f32::view_mut(to));
    convert::<F16, f32, CastOf>(&from[2 * done..], &mut to[4 * done..]);
}

/// The same, the other way.
fn round_to_halves(from: &[u8], to: &mut [u8]) {
    let done = simd::round_to_halves(f32::view(from), F16::view_mut(to));
    convert::<f32, F16, CastOf>(&from[4 * done..], &mut to[2 * done..]);
}

/// `convert`, by instructions for vectors but where an element is too large for them.
fn truncate_to_bytes<D: Element>(mut from: &[u8], mut to: &mut [u8]) {
    const SCALAR_ELEMENTS: usize = 256;
    loop {
        let done = simd::truncate_to_bytes(f32::view(from), u8::view_mut(to));
        let further = (done + SCALAR_ELEMENTS).min(to.len());
        convert::<f32, D, CastOf>(&from[4 * done..4 * further], &mut to[done..further]);
        (from, to) = (&from[4 * further..], &mut to[further..]);
        if to.is_empty() {
            return;
        }
    }
}

/// A float that is made an f32 before it is folded.
pub(crate) trait NarrowFloat: Element {
    /// All of them as f32.
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

/// How one value becomes another.
pub(crate) trait Map<S, D>: 'static {
    /// The other value.
    fn map(value: S) -> D;

    /// Whether `map` has cases that keep it from being vectorized, and `plain`
    /// values that are none of them.
    const BRANCHES: bool = false;

    /// Whether `map_plain` does what `map` does.
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

/// By `cast`.
pub(crate) struct CastOf;
impl<S: Element, D: Element> Map<S, D> for CastOf {
    #[inline(always)]
    fn map(value: S) -> D {
        cast(value)
    }

    const BRANCHES: bool = !matches!(S::CLASS, Class::Integer) && matches!(D::CLASS, Class::Integer);

    /// Within 32 bits, where the truncated value needs no wrapping.
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

/// An integer as an `f64`: its upper word lies where 2^32 is the last bit of a float, and the
/// lower one where 1 is, and only their sum is rounded.
#[inline(always)]
fn i64_to_f64(value: i64) -> f64 {
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    const TWO_84: u64 = 0x4530_0000_0000_0000;
    const SIGN: u64 = 1 << 31;
    let bits = value as u64;
    let high = f64::from_bits(bits >> 32 ^ (TWO_84 | SIGN));
    let low = f64::from_bits(bits & u64::from(u32::MAX) | TWO_52);
    // 2^84, 2^63 of the sign, 2^52.
    high - f64::from_bits(TWO_84 | SIGN | 1 << 20) + low
}

/// Elements that are converted in the way of most, and again if one of them needs another.
/// (`kernels`: cast.)
const CAST_CHUNK_ELEMENTS: usize = 256;

/// `convert`, for instruction sets that make floats of 64-bit integers one by one only.
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
        // 2^52 and 2^51: where 1 is the last bit of a float, with as many numbers below as above.
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

/// Whether all of some integers are from -2^24 on and below 2^24, which an f32 holds all of.
#[inline(always)]
pub(crate) fn fit_f32<S: Element>(integers: &[S::Bytes]) -> bool {
    const LIMIT: i32 = 1 << f32::MANTISSA_DIGITS;
    // Above the least, so that all are numbers of so many bits.
    let (least, bits) = if S::SIGNED { (LIMIT, LIMIT.ilog2() + 1) } else { (0, LIMIT.ilog2()) };
    let values = integers.iter().map(|&from| S::load(from).to_i64());
    // Without an early exit, so that it vectorizes, and in words of 32 bits where there are such,
    // since a vector holds more of them.
    let above = if size_of::<S>() > size_of::<i32>() {
        values.fold(0, |all, value| all | value.wrapping_add(i64::from(least)) as u64)
    } else {
        u64::from(values.fold(0, |all, value| all | (value as i32).wrapping_add(least) as u32))
    };
    above >> bits == 0
}

/// To f32, of integers that `fit_f32`; none for other types.
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

/// By `cast`, but infinities become the bounds of a signed type of so many bits.
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

struct WideOf;
impl<S: Element> Map<S, i128> for WideOf {
    #[inline(always)]
    fn map(value: S) -> i128 {
        if S::SIGNED { i128::from(value.to_i64()) } else { i128::from(value.to_i64() as u64) }
    }
}

struct LowBits;
impl<D: Element> Map<i128, D> for LowBits {
    #[inline(always)]
    fn map(value: i128) -> D {
        D::from_i64(value as i64)
    }
}

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

/// 1 where the value is not zero.
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
            // Without an early exit, so that it vectorizes; what is not plain is done again.
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
