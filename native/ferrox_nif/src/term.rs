//! Elixir terms to the core's types and back.

use std::ops::Deref;

use ferrox_core::exec::elementwise::Source;
use ferrox_core::layout::{self, Shape};
use ferrox_core::ops::reduce::ReductionSizes;
use ferrox_core::{DType, Error, Kind, Tensor};
use rustler::{Atom, Decoder, Encoder, Env, ListIterator, NifResult, Term};

use crate::atom_table::AtomTable;
use crate::entry::{Tuple, bad_argument, bytes, natural};

mod atoms {
    rustler::atoms! { u, s, f, bf, c, f8_e4m3fn, nil }
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

/// The rank and the number of elements of a shape as `Dims` takes it; `None` if there are no
/// elements or too many, or it is no shape.
#[inline(always)]
pub fn rank_and_size(term: Term<'_>) -> Option<(usize, usize)> {
    let Some(dims) = Tuple::of(term) else {
        let size = natural(term)?;
        return (size > 0).then_some((1, size));
    };
    let mut size = 1_usize;
    for dim in dims.terms() {
        size = size.checked_mul(natural(dim)?)?;
    }
    (size > 0).then_some((dims.terms().len(), size))
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

impl Axes {
    pub fn into_inner(self) -> Shape {
        self.0
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

/// An operand: `{type, shape, data}`, the data in whole bytes.
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

/// An operand of an elementwise operation: `{type, shape, data}`, or without what it has in common
/// with the result, since the less there is, the sooner it is decoded: `{type, data}`, or `data`.
pub struct Elementwise<'a> {
    dtype: Option<DType>,
    shape: Option<Shape>,
    data: &'a [u8],
}

impl<'a> Decoder<'a> for Elementwise<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        if let Some(data) = bytes(term) {
            return Ok(Elementwise { dtype: None, shape: None, data });
        }
        let tuple = Tuple::of(term).ok_or_else(bad_argument)?;
        if let Some([dtype, data]) = tuple.array() {
            let Type(dtype) = dtype.decode()?;
            return Ok(Elementwise { dtype: Some(dtype), shape: None, data: whole_bytes(data)? });
        }
        let [dtype, shape, data] = tuple.array().ok_or_else(bad_argument)?;
        let (Type(dtype), Dims(shape)) = (dtype.decode()?, shape.decode()?);
        Ok(Elementwise { dtype: Some(dtype), shape: Some(shape), data: whole_bytes(data)? })
    }
}

impl<'a> Elementwise<'a> {
    /// The type, if the term has it.
    pub fn own_dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// The type, given that of the result.
    #[inline(always)]
    pub fn dtype(&self, result: DType) -> DType {
        self.dtype.unwrap_or(result)
    }

    /// The tensor, given the result's type and shape, if the data are as many as type and shape ask
    /// for.
    #[inline(always)]
    pub fn tensor<'b>(
        &'b self,
        op: &'static str,
        dtype: DType,
        shape: &'b [usize],
    ) -> Result<Tensor<'b>, Error> {
        Tensor::new(op, self.dtype(dtype), self.shape.as_deref().unwrap_or(shape), self.data)
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

/// The data, if they are `size` elements in whole bytes.
#[inline(always)]
pub fn dense(dtype: DType, size: usize, data: &[u8]) -> Option<&[u8]> {
    (!dtype.is_packed() && data.len() == size.checked_mul(dtype.width())?).then_some(data)
}

/// What `Elementwise` decodes, of an operand as most are: in whole bytes, with an element for each of
/// the `size` of the result, or one for all. `result` is the type of the result, if it is known.
#[inline(always)]
pub fn source<'a>(
    term: Term<'a>,
    result: Option<DType>,
    rank: usize,
    size: usize,
) -> Option<(DType, Source<'a>)> {
    if let Some(data) = bytes(term) {
        let dtype = result?;
        return Some((dtype, Source::Dense { bytes: dense(dtype, size, data)?, width: dtype.width() }));
    }
    let tuple = Tuple::of(term)?;
    if let Some([dtype, data]) = tuple.array() {
        let (dtype, data) = (self::dtype(dtype)?, bytes(data)?);
        return Some((dtype, Source::Dense { bytes: dense(dtype, size, data)?, width: dtype.width() }));
    }
    let [dtype, shape, data] = tuple.array()?;
    let mut dims = Tuple::of(shape)?.terms();
    let is_one = dims.by_ref().take(rank).all(|dim| natural(dim) == Some(1));
    if !is_one || dims.next().is_some() {
        return None;
    }
    let dtype = self::dtype(dtype)?;
    Some((dtype, Source::Scalar(dense(dtype, 1, bytes(data)?)?)))
}

/// The type and the data of `{type, shape, data}`, and its elements around the axes to reduce if these
/// are adjacent and ascending and the elements are in whole bytes. The axes are a list, one axis, or
/// `nil` for all.
#[inline(always)]
pub fn reduction<'a>(
    input: Term<'a>,
    axes: Term<'a>,
) -> NifResult<(DType, Option<ReductionSizes>, &'a [u8])> {
    let [dtype, shape, data] = Tuple::of(input).and_then(Tuple::array).ok_or_else(bad_argument)?;
    let (Type(dtype), data) = (dtype.decode()?, whole_bytes(data)?);
    let along = along(shape, axes).filter(|along| dense(dtype, along.size(), data).is_some());
    Ok((dtype, along, data))
}

#[inline(always)]
fn along(shape: Term<'_>, axes: Term<'_>) -> Option<ReductionSizes> {
    let dims = Tuple::of(shape)?.terms();
    let all = axes.is_atom();
    if all && axes.as_c_arg() != atoms::nil().as_c_arg() {
        return None;
    }
    let (mut next, mut rest) = if all { (None, None) } else { next_axis(axes)? };
    let mut along = ReductionSizes { before: 1, reduced: 1, after: 1 };
    let mut started = false;
    for (axis, dim) in dims.enumerate() {
        let sizes = if all || next == Some(axis) {
            if along.after != 1 {
                return None;
            }
            started = true;
            (next, rest) = rest.map_or(Some((None, None)), next_axis)?;
            &mut along.reduced
        } else if started {
            &mut along.after
        } else {
            &mut along.before
        };
        *sizes = sizes.checked_mul(natural(dim)?)?;
    }
    let results = along.before.checked_mul(along.after)?;
    (next.is_none() && results.checked_mul(along.reduced).is_some()).then_some(along)
}

/// The first axis of a list, or the only one, and the list of the others. Returns `None` for what is no
/// axis.
#[inline(always)]
fn next_axis<'a>(axes: Term<'a>) -> Option<(Option<usize>, Option<Term<'a>>)> {
    if let Ok((axis, rest)) = axes.list_get_cell() {
        return Some((Some(natural(axis)?), Some(rest)));
    }
    if axes.is_empty_list() { Some((None, None)) } else { Some((Some(natural(axes)?), None)) }
}
