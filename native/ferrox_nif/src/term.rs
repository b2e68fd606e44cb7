//! Elixir terms to the core's types and back.

use std::ops::Deref;

use ferrox_core::exec::elementwise::Operand as Elements;
use ferrox_core::layout::{self, Shape};
use ferrox_core::ops::reduce::Along;
use ferrox_core::{DType, Error, Kind, Tensor};
use rustler::{Atom, Decoder, Encoder, Env, ListIterator, NifResult, Term};

use crate::atom_table::AtomTable;
use crate::entry::{Tuple, bad_argument, bytes, natural};

mod atoms {
    rustler::atoms! { u, s, f, bf, c, f8_e4m3fn }
}

/// A type as Nx writes it: `{:f, 32}`.
#[derive(Clone, Copy)]
pub struct Type(pub DType);

impl<'a> Decoder<'a> for Type {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        dtype(term).map(Type).ok_or_else(bad_argument)
    }
}

/// What `Type` decodes, in a byte.
#[inline(always)]
pub fn dtype(term: Term<'_>) -> Option<DType> {
    TYPES.find(Tuple::of(term)?.array()?)
}

static TYPES: AtomTable<DType> = AtomTable::new();

/// Runs when the VM loads the library.
pub fn load(env: Env<'_>) -> bool {
    let terms = |dtype: DType| [atom(dtype).to_term(env), dtype.bits().encode(env)];
    TYPES.fill(DType::ALL.iter().map(|&dtype| Ok((terms(dtype), dtype))))
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
        let Some(dims) = Tuple::of(term) else {
            return Ok(Dims(one(term)?));
        };
        if let Some([a]) = dims.array() {
            return Ok(Dims(one(a)?));
        }
        if let Some([a, b]) = dims.array() {
            return Ok(Dims(two(a, b)?));
        }
        dims.terms().map(size).collect::<NifResult<_>>().map(Dims)
    }
}

// Shapes as most are, made at once: what is pushed is read in other pieces than it was written,
// when it is moved, and for that the processor waits.

#[inline(always)]
fn one(a: Term<'_>) -> NifResult<Shape> {
    Ok(Shape::from_buf_and_len([size(a)?, 0, 0, 0], 1))
}

#[inline(always)]
fn two(a: Term<'_>, b: Term<'_>) -> NifResult<Shape> {
    Ok(Shape::from_buf_and_len([size(a)?, size(b)?, 0, 0], 2))
}

#[inline(always)]
fn size(term: Term<'_>) -> NifResult<usize> {
    natural(term).ok_or_else(bad_argument)
}

/// A shape as `Dims` takes it, of which few elements need no more than how many they are.
#[derive(Clone, Copy)]
pub struct Extent<'a>(Term<'a>);

impl<'a> Decoder<'a> for Extent<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        Ok(Extent(term))
    }
}

impl Extent<'_> {
    /// Its rank and the number of its elements; none where that is none or too many, or it is no
    /// shape.
    #[inline(always)]
    pub fn rank_and_size(self) -> Option<(usize, usize)> {
        let at_least_one = |dim| natural(dim).filter(|&dim| dim > 0);
        let Some(dims) = Tuple::of(self.0) else { return Some((1, at_least_one(self.0)?)) };
        let mut sizes = dims.terms().map(at_least_one);
        let size = sizes.try_fold(1, |size: usize, dim| size.checked_mul(dim?))?;
        Some((dims.terms().len(), size))
    }

    /// The shape.
    pub fn dims(self) -> NifResult<Shape> {
        self.0.decode().map(|Dims(shape)| shape)
    }
}

/// A list of non-negative integers, such as axes.
pub struct Axes(Shape);

impl<'a> Decoder<'a> for Axes {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        if term.is_empty_list() {
            return Ok(Axes(Shape::new()));
        }
        let (a, rest) = term.list_get_cell()?;
        if rest.is_empty_list() {
            return Ok(Axes(one(a)?));
        }
        let (b, rest) = rest.list_get_cell()?;
        if rest.is_empty_list() {
            return Ok(Axes(two(a, b)?));
        }
        term.decode::<ListIterator<'a>>()?.map(size).collect::<NifResult<_>>().map(Axes)
    }
}

impl Deref for Axes {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

/// The data of a binary.
#[inline(always)]
pub fn whole_bytes(term: Term<'_>) -> NifResult<&[u8]> {
    bytes(term).ok_or_else(bad_argument)
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
        let [dtype, shape, data] = Tuple::of(term).and_then(Tuple::array).ok_or_else(bad_argument)?;
        let (Type(dtype), Dims(shape)) = (dtype.decode()?, shape.decode()?);
        Ok(Operand { dtype, shape, data: whole_bytes(data)? })
    }
}

impl<'a> Operand<'a> {
    /// With three axes.
    pub fn along(dtype: DType, Along { before, reduced, after }: Along, data: &'a [u8]) -> Self {
        Operand { dtype, shape: Shape::from_slice(&[before, reduced, after]), data }
    }
}

/// `{type, data}`, the data in whole bytes.
#[inline(always)]
fn whole(term: Term<'_>) -> NifResult<(DType, &[u8])> {
    let [dtype, data] = Tuple::of(term).and_then(Tuple::array).ok_or_else(bad_argument)?;
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

/// The data, if they are of so many elements, and these in whole bytes.
#[inline(always)]
pub fn fits(dtype: DType, size: usize, data: &[u8]) -> Option<&[u8]> {
    let bits = dtype.bits().checked_mul(size)?;
    (data.len().checked_mul(8)? == bits).then_some(data)
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
    if let Some(data) = bytes(term) {
        return Some((result, Elements::Slice(fits(result, size, data)?)));
    }
    let tuple = Tuple::of(term)?;
    if let Some([dtype, data]) = tuple.array() {
        let dtype = self::dtype(dtype)?;
        return Some((dtype, Elements::Slice(fits(dtype, size, bytes(data)?)?)));
    }
    let [dtype, shape, data] = tuple.array()?;
    let mut dims = Tuple::of(shape)?.terms();
    let one = dims.by_ref().take(rank).all(|dim| natural(dim) == Some(1));
    if !one || dims.next().is_some() {
        return None;
    }
    let dtype = self::dtype(dtype)?;
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
