//! Elixir terms to the core's types and back.

use std::ops::Deref;

use ferrox_core::layout::{self, Shape};
use ferrox_core::{DType, Error, Kind, Tensor};
use rustler::types::tuple::get_tuple;
use rustler::{Atom, Binary, Decoder, Encoder, Env, ListIterator, NifResult, Term};

mod atoms {
    rustler::atoms! { u, s, f, bf, c, f8_e4m3fn }
}

/// A type as Nx writes it: `{:f, 32}`.
#[derive(Clone, Copy)]
pub struct Type(pub DType);

impl<'a> Decoder<'a> for Type {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let (tag, bits): (Atom, usize) = term.decode()?;
        // In the order of how common they are.
        let dtype = match bits {
            32 if tag == atoms::f() => DType::F32,
            64 if tag == atoms::f() => DType::F64,
            32 if tag == atoms::s() => DType::S32,
            64 if tag == atoms::s() => DType::S64,
            8 if tag == atoms::u() => DType::U8,
            16 if tag == atoms::bf() => DType::BF16,
            64 if tag == atoms::c() => DType::C64,
            _ => return other(tag, bits).map(Type),
        };
        Ok(Type(dtype))
    }
}

#[cold]
fn other(tag: Atom, bits: usize) -> NifResult<DType> {
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
        if let Ok(size) = term.decode::<usize>() {
            return Ok(Dims(Shape::from_slice(&[size])));
        }
        // Small ranks without an allocation.
        if let Ok((a, b)) = term.decode::<(usize, usize)>() {
            return Ok(Dims(Shape::from_slice(&[a, b])));
        }
        if let Ok((a,)) = term.decode::<(usize,)>() {
            return Ok(Dims(Shape::from_slice(&[a])));
        }
        if let Ok((a, b, c)) = term.decode::<(usize, usize, usize)>() {
            return Ok(Dims(Shape::from_slice(&[a, b, c])));
        }
        if let Ok((a, b, c, d)) = term.decode::<(usize, usize, usize, usize)>() {
            return Ok(Dims(Shape::from_slice(&[a, b, c, d])));
        }
        let mut shape = Shape::new();
        for dim in get_tuple(term)? {
            shape.push(dim.decode()?);
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

/// `{type, shape, data}`, the data in whole bytes.
pub struct Operand<'a> {
    dtype: DType,
    shape: Shape,
    data: Binary<'a>,
}

impl<'a> Decoder<'a> for Operand<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        // Terms first: tuples of what they mean are large to move.
        let (dtype, shape, data): (Term<'a>, Term<'a>, Term<'a>) = term.decode()?;
        let (Type(dtype), Dims(shape)) = (dtype.decode()?, shape.decode()?);
        Ok(Operand { dtype, shape, data: data.decode()? })
    }
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
        Tensor::new(op, self.dtype, &self.shape, &self.data)
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
    Alike(Binary<'a>),
    /// Of the result's shape.
    Typed(DType, Binary<'a>),
    /// Of another; boxed, so that the frequent cases are small to move.
    Other(Box<Operand<'a>>),
}

impl<'a> Decoder<'a> for Elementwise<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        if let Ok(data) = term.decode() {
            return Ok(Elementwise::Alike(data));
        }
        if let Ok((Type(dtype), data)) = term.decode() {
            return Ok(Elementwise::Typed(dtype, data));
        }
        term.decode().map(|operand| Elementwise::Other(Box::new(operand)))
    }
}

impl Elementwise<'_> {
    /// Its type and data, where it has the result's shape, of so many elements.
    #[inline(always)]
    pub fn whole(&self, result: DType, size: usize) -> Option<(DType, &[u8])> {
        let (dtype, data) = match self {
            Elementwise::Alike(data) => (result, data),
            Elementwise::Typed(dtype, data) => (*dtype, data),
            Elementwise::Other(_) => return None,
        };
        (size.checked_mul(dtype.bits())? == data.len().checked_mul(8)?).then(|| (dtype, data.as_slice()))
    }

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
