//! Elixir terms to the core's types and back.

use std::ops::Deref;

use ferrox_core::exec::elementwise::Operand as Elements;
use ferrox_core::layout::{self, Shape};
use ferrox_core::{DType, Error, Kind, Tensor};
use rustler::{Atom, Decoder, Encoder, Env, ListIterator, NifResult, Term};

use crate::entry::{Tuple, bytes};

mod atoms {
    rustler::atoms! { u, s, f, bf, c, f8_e4m3fn }
}

/// A type as Nx writes it: `{:f, 32}`.
#[derive(Clone, Copy)]
pub struct Type(pub DType);

impl<'a> Decoder<'a> for Type {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let [tag, bits] = Tuple::of(term).and_then(Tuple::array).ok_or(rustler::Error::BadArg)?;
        let bits: usize = bits.decode()?;
        // In the order of how common they are.
        let dtype = match bits {
            32 if atoms::f() == tag => DType::F32,
            64 if atoms::f() == tag => DType::F64,
            32 if atoms::s() == tag => DType::S32,
            64 if atoms::s() == tag => DType::S64,
            8 if atoms::u() == tag => DType::U8,
            16 if atoms::bf() == tag => DType::BF16,
            64 if atoms::c() == tag => DType::C64,
            _ => return other(tag, bits).map(Type),
        };
        Ok(Type(dtype))
    }
}

#[cold]
fn other(tag: Term<'_>, bits: usize) -> NifResult<DType> {
    let found = DType::ALL.iter().find(|dtype| dtype.bits() == bits && atom(**dtype) == tag);
    found.copied().ok_or(rustler::Error::BadArg)
}

/// The first element of the tuple.
fn atom(dtype: DType) -> Atom {
    match dtype.kind() {
        Kind::Unsigned => atoms::u(),
        Kind::Signed => atoms::s(),
        Kind::BFloat => atoms::bf(),
        Kind::Complex => atoms::c(),
        Kind::Float if dtype == DType::F8E4M3FN => atoms::f8_e4m3fn(),
        Kind::Float => atoms::f(),
    }
}

impl Encoder for Type {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        (atom(self.0), self.0.bits()).encode(env)
    }
}

/// A shape, or another tuple of non-negative integers: `{2, 3}`. A size stands
/// for one axis.
pub struct Dims(pub Shape);

impl<'a> Decoder<'a> for Dims {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let mut shape = Shape::new();
        match Tuple::of(term) {
            Some(dims) => {
                for dim in dims.terms() {
                    shape.push(dim.decode()?);
                }
            }
            None => shape.push(term.decode()?),
        }
        Ok(Dims(shape))
    }
}

/// A list of non-negative integers, such as axes.
pub struct Axes(Shape);

impl<'a> Decoder<'a> for Axes {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let mut axes = Shape::new();
        for axis in term.decode::<ListIterator<'a>>()? {
            axes.push(axis.decode()?);
        }
        Ok(Axes(axes))
    }
}

impl Deref for Axes {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

#[inline(always)]
fn whole_bytes(term: Term<'_>) -> NifResult<&[u8]> {
    bytes(term).ok_or(rustler::Error::BadArg)
}

/// `{type, shape, data}`, the data in whole bytes.
pub struct Operand<'a> {
    dtype: DType,
    shape: Shape,
    data: &'a [u8],
}

impl<'a> Decoder<'a> for Operand<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let [dtype, shape, data] = Tuple::of(term).and_then(Tuple::array).ok_or(rustler::Error::BadArg)?;
        let (Type(dtype), Dims(shape)) = (dtype.decode()?, shape.decode()?);
        Ok(Operand { dtype, shape, data: whole_bytes(data)? })
    }
}

impl<'a> Operand<'a> {
    /// All elements that data in whole bytes hold, as one axis.
    pub fn line(dtype: DType, data: &'a [u8]) -> Self {
        let size = data.len() * 8 / dtype.bits();
        Operand { dtype, shape: Shape::from_slice(&[size]), data }
    }
}

/// `{type, data}`, the data in whole bytes.
#[inline(always)]
pub fn whole(term: Term<'_>) -> NifResult<(DType, &[u8])> {
    let [dtype, data] = Tuple::of(term).and_then(Tuple::array).ok_or(rustler::Error::BadArg)?;
    let Type(dtype) = dtype.decode()?;
    Ok((dtype, whole_bytes(data)?))
}

impl Operand<'_> {
    /// Its type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of its elements, as its shape has it.
    pub fn size(&self) -> usize {
        layout::size(&self.shape).unwrap_or(usize::MAX)
    }

    /// Its shape, as given.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The tensor, if the data are as many as type and shape ask for.
    #[inline(always)]
    pub fn tensor(&self, op: &'static str) -> Result<Tensor<'_>, Error> {
        Tensor::new(op, self.dtype, &self.shape, self.data)
    }
}

/// A list of operands.
pub struct Operands<'a>(pub Vec<Operand<'a>>);

impl<'a> Decoder<'a> for Operands<'a> {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let mut operands = Vec::new();
        for operand in term.decode::<ListIterator<'a>>()? {
            operands.push(operand.decode()?);
        }
        Ok(Operands(operands))
    }
}

/// An operand of an elementwise operation. One of the result's type and shape,
/// as most are, may be its data alone, and one of its shape `{type, data}`: the
/// less there is, the quicker it is decoded.
pub enum Elementwise<'a> {
    /// Of the result's type and shape.
    Alike(&'a [u8]),
    /// Of the result's shape.
    Typed(DType, &'a [u8]),
    /// Of another; boxed, so that the frequent cases are small to move.
    Other(Box<Operand<'a>>),
}

impl<'a> Decoder<'a> for Elementwise<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        if let Some(data) = bytes(term) {
            return Ok(Elementwise::Alike(data));
        }
        if let Ok((dtype, data)) = whole(term) {
            return Ok(Elementwise::Typed(dtype, data));
        }
        term.decode().map(|operand| Elementwise::Other(Box::new(operand)))
    }
}

/// The type and the elements of such a term, where the result has `size` elements and each is in
/// whole bytes: as many, or one for all. An `Elementwise` costs as much to move as to decode.
#[inline(always)]
pub fn elements<'a>(
    term: Term<'a>,
    result: DType,
    rank: usize,
    size: usize,
) -> Option<(DType, Elements<'a>)> {
    let fits = |dtype: DType, size: usize, data: &'a [u8]| {
        let bits = dtype.bits().checked_mul(size)?;
        (data.len().checked_mul(8)? == bits).then_some(data)
    };
    if let Some(data) = bytes(term) {
        return Some((result, Elements::Slice(fits(result, size, data)?)));
    }
    let tuple = Tuple::of(term)?;
    if let Some([dtype, data]) = tuple.array() {
        let Type(dtype) = dtype.decode().ok()?;
        return Some((dtype, Elements::Slice(fits(dtype, size, bytes(data)?)?)));
    }
    let [dtype, shape, data] = tuple.array()?;
    let mut dims = Tuple::of(shape)?.terms();
    let one = dims.by_ref().take(rank).all(|dim| matches!(dim.decode::<usize>(), Ok(1)));
    if !one || dims.next().is_some() {
        return None;
    }
    let Type(dtype) = dtype.decode().ok()?;
    Some((dtype, Elements::Scalar(fits(dtype, 1, bytes(data)?)?)))
}

impl Elementwise<'_> {
    /// Its type, given the result's.
    pub fn dtype(&self, result: DType) -> DType {
        match self {
            Elementwise::Alike(_) => result,
            Elementwise::Typed(dtype, _) => *dtype,
            Elementwise::Other(operand) => operand.dtype(),
        }
    }

    /// The tensor, given the result's type and shape.
    #[inline(always)]
    pub fn tensor<'b>(
        &'b self,
        op: &'static str,
        dtype: DType,
        shape: &'b [usize],
    ) -> Result<Tensor<'b>, Error> {
        match self {
            Elementwise::Alike(data) => Tensor::new(op, dtype, shape, data),
            Elementwise::Typed(dtype, data) => Tensor::new(op, *dtype, shape, data),
            Elementwise::Other(operand) => operand.tensor(op),
        }
    }
}
