//! Elixir terms to the core's types and back.

use std::ops::Deref;

use ferrox_core::exec::elementwise::Source;
use ferrox_core::layout::{self, Shape};
use ferrox_core::ops::reduce::ReductionSizes;
use ferrox_core::{DType, Error, Kind, Tensor};
use rustler::{Atom, Decoder, Encoder, Env, NifResult, Term};

use crate::atom_table::AtomTable;
use crate::entry::{Tuple, bad_argument, bytes, list_cell, natural, no_memory};

mod atoms {
    rustler::atoms! { u, s, f, bf, c, f8_e4m3fn, nil }
}

/// A type as Nx writes it: `{:f, 32}`.
#[derive(Clone, Copy)]
pub struct Type(pub DType);

static TYPES: AtomTable<DType> = AtomTable::new();

/// Runs when the VM loads the library.
pub fn load(env: Env<'_>) -> bool {
    TYPES.fill(DType::ALL.iter().map(|&dtype| Ok((type_terms(env, dtype), dtype))))
}

/// The elements of the tuple of a type.
pub fn type_terms(env: Env<'_>, dtype: DType) -> [Term<'_>; 2] {
    [atom(dtype).to_term(env), dtype.bits().encode(env)]
}

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

/// The type that `Type` decodes.
#[inline(always)]
pub fn dtype(term: Term<'_>) -> Option<DType> {
    TYPES.find(Tuple::of(term)?.array()?)
}

impl<'a> Decoder<'a> for Type {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        dtype(term).map(Type).ok_or_else(bad_argument)
    }
}

impl Encoder for Type {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        (atom(self.0), self.0.bits()).encode(env)
    }
}

/// A shape, or another tuple of non-negative integers: `{2, 3}`. A size stands for a shape of one
/// axis.
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
        shape(dims.terms().map(size)).map(Dims)
    }
}

// Most shapes have one or two axes. They are written as a whole: the processor waits where a value
// that is written in several parts is moved as a whole.

#[inline(always)]
fn one(a: Term<'_>) -> NifResult<Shape> {
    Ok(Shape::from_buf_and_len([size(a)?, 0, 0, 0], 1))
}

#[inline(always)]
fn two(a: Term<'_>, b: Term<'_>) -> NifResult<Shape> {
    Ok(Shape::from_buf_and_len([size(a)?, size(b)?, 0, 0], 2))
}

/// A shape of any rank.
#[inline(always)]
fn shape(sizes: impl Iterator<Item = NifResult<usize>>) -> NifResult<Shape> {
    let mut shape = Shape::new();
    for size in sizes {
        shape.try_reserve(1).map_err(|_| no_memory())?;
        shape.push(size?);
    }
    Ok(shape)
}

#[inline(always)]
fn size(term: Term<'_>) -> NifResult<usize> {
    natural(term).ok_or_else(bad_argument)
}

/// The rank and the number of elements of a shape that `Dims` decodes. Returns `None` if there are
/// no elements or too many, or if the term is not a shape.
#[inline(always)]
pub fn rank_and_size(term: Term<'_>) -> Option<(usize, usize)> {
    let Some(dims) = Tuple::of(term) else {
        return Some((1, natural(term).filter(|&size| size > 0)?));
    };
    let mut size = 1_usize;
    for dim in dims.terms() {
        size = size.checked_mul(natural(dim)?)?;
    }
    (size > 0).then_some((dims.terms().len(), size))
}

/// The elements of a list. Where the list ends in another term than the empty list, or the term is no
/// list, the last item is an error.
pub fn elements<'a>(list: Term<'a>) -> impl Iterator<Item = NifResult<Term<'a>>> {
    let mut rest = Some(list);
    std::iter::from_fn(move || {
        let list = rest.take()?;
        match list_cell(list) {
            Some((element, others)) => {
                rest = Some(others);
                Some(Ok(element))
            }
            None if list.is_empty_list() => None,
            None => Some(Err(bad_argument())),
        }
    })
}

/// The elements of a list, decoded.
pub fn list<'a, T>(list: Term<'a>, decode: impl Fn(Term<'a>) -> NifResult<T>) -> NifResult<Vec<T>> {
    let mut items = Vec::new();
    for element in elements(list) {
        push(&mut items, decode(element?)?)?;
    }
    Ok(items)
}

/// Appends an item to a vector, if there is memory for it.
pub fn push<T>(items: &mut Vec<T>, item: T) -> NifResult<()> {
    items.try_reserve(1).map_err(|_| no_memory())?;
    items.push(item);
    Ok(())
}

/// A list with all its elements decoded. The lists of rustler panic at an improper list.
pub struct List<T>(pub Vec<T>);

impl<'a, T: Decoder<'a>> Decoder<'a> for List<T> {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        list(term, |element| element.decode()).map(List)
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
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
        let (a, rest) = list_cell(term).ok_or_else(bad_argument)?;
        if rest.is_empty_list() {
            return Ok(Axes(one(a)?));
        }
        let (b, rest) = list_cell(rest).ok_or_else(bad_argument)?;
        if rest.is_empty_list() {
            return Ok(Axes(two(a, b)?));
        }
        shape(elements(term).map(|element| size(element?))).map(Axes)
    }
}

impl Deref for Axes {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

/// The data of a tensor, in whole bytes.
pub struct Data<'a>(pub &'a [u8]);

impl<'a> Decoder<'a> for Data<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        bytes(term).map(Data).ok_or_else(bad_argument)
    }
}

impl<'a> Data<'a> {
    /// The bytes of `size` elements. Returns `None` if elements share bytes, or if the number of
    /// bytes is another.
    #[inline(always)]
    pub fn dense(&self, dtype: DType, size: usize) -> Option<&'a [u8]> {
        (!dtype.is_packed() && self.0.len() == size.checked_mul(dtype.width())?).then_some(self.0)
    }
}

/// An operand: `{type, shape, data}`.
pub struct Operand<'a> {
    dtype: DType,
    /// `None` if the operand has the shape of the result.
    own_shape: Option<Shape>,
    result_shape: &'a [usize],
    data: &'a [u8],
}

impl<'a> Decoder<'a> for Operand<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let [dtype, shape, data] = Tuple::of(term).and_then(Tuple::array).ok_or_else(bad_argument)?;
        let (Type(dtype), Dims(shape), Data(data)) = (dtype.decode()?, shape.decode()?, data.decode()?);
        Ok(Operand { dtype, own_shape: Some(shape), result_shape: &[], data })
    }
}

impl Operand<'_> {
    /// The type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    #[inline(always)]
    pub fn shape(&self) -> &[usize] {
        self.own_shape.as_deref().unwrap_or(self.result_shape)
    }

    /// The number of elements that the shape gives.
    pub fn size(&self) -> usize {
        layout::size(self.shape()).unwrap_or(usize::MAX)
    }

    /// The tensor. Returns an error if the data don't have the length that type and shape give.
    #[inline(always)]
    pub fn tensor(&self, op: &'static str) -> Result<Tensor<'_>, Error> {
        Tensor::new(op, self.dtype, self.shape(), self.data)
    }
}

/// An operand of an elementwise operation: `{type, shape, data}`, or `{type, data}` or `data`
/// without what is the same as in the result. The shape is decoded only if it is needed.
pub struct Elementwise<'a> {
    /// `None` if the operand has the type of the result.
    pub dtype: Option<DType>,
    shape: Option<Term<'a>>,
    data: Data<'a>,
}

impl<'a> Decoder<'a> for Elementwise<'a> {
    #[inline(always)]
    fn decode(term: Term<'a>) -> NifResult<Self> {
        if let Some(data) = bytes(term) {
            return Ok(Elementwise { dtype: None, shape: None, data: Data(data) });
        }
        let tuple = Tuple::of(term).ok_or_else(bad_argument)?;
        let (dtype, shape, data) = if let Some([dtype, data]) = tuple.array() {
            (dtype, None, data)
        } else {
            let [dtype, shape, data] = tuple.array().ok_or_else(bad_argument)?;
            (dtype, Some(shape), data)
        };
        Ok(Elementwise { dtype: Some(dtype.decode::<Type>()?.0), shape, data: data.decode()? })
    }
}

impl<'a> Elementwise<'a> {
    /// The type, given the type of the result.
    #[inline(always)]
    pub fn dtype(&self, result: DType) -> DType {
        self.dtype.unwrap_or(result)
    }

    /// The bytes of the elements, if the operand has `size` elements in whole bytes.
    #[inline(always)]
    pub fn dense(&self, dtype: DType, size: usize) -> Option<&'a [u8]> {
        if self.shape.is_none() { self.data.dense(dtype, size) } else { None }
    }

    /// The type and the elements, if the elements are in whole bytes, and one for each of the `size`
    /// elements of the result or one for all. `result` is the type of the result, if it is known, and
    /// `rank` is its rank.
    #[inline(always)]
    pub fn source(&self, result: Option<DType>, rank: usize, size: usize) -> Option<(DType, Source<'a>)> {
        let dtype = self.dtype.or(result)?;
        let Some(shape) = self.shape else {
            return Some((
                dtype,
                Source::Dense { bytes: self.data.dense(dtype, size)?, width: dtype.width() },
            ));
        };
        let dims = Tuple::of(shape)?.terms();
        if dims.len() > rank {
            return None;
        }
        for dim in dims {
            natural(dim).filter(|&dim| dim == 1)?;
        }
        Some((dtype, Source::Scalar(self.data.dense(dtype, 1)?)))
    }

    /// The operand, given the type and the shape of the result.
    #[inline(always)]
    pub fn operand<'b>(&'b self, dtype: DType, result_shape: &'b [usize]) -> NifResult<Operand<'b>> {
        let own_shape = self.shape.map(|shape| Ok(shape.decode::<Dims>()?.0)).transpose()?;
        Ok(Operand { dtype: self.dtype(dtype), own_shape, result_shape, data: self.data.0 })
    }
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
    let (Type(dtype), data): (Type, Data) = (dtype.decode()?, data.decode()?);
    let sizes = reduction_sizes(shape, axes).filter(|sizes| data.dense(dtype, sizes.size()).is_some());
    Ok((dtype, sizes, data.0))
}

#[inline(always)]
fn reduction_sizes(shape: Term<'_>, axes: Term<'_>) -> Option<ReductionSizes> {
    let dims = Tuple::of(shape)?.terms();
    let all = axes.is_atom();
    if all && axes.as_c_arg() != atoms::nil().as_c_arg() {
        return None;
    }
    let (mut next, mut rest) = if all { (None, None) } else { next_axis(axes)? };
    let mut sizes = ReductionSizes { before: 1, reduced: 1, after: 1 };
    let mut started = false;
    for (axis, dim) in dims.enumerate() {
        let axis_sizes = if all || next == Some(axis) {
            if sizes.after != 1 {
                return None;
            }
            started = true;
            (next, rest) = rest.map_or(Some((None, None)), next_in_list)?;
            &mut sizes.reduced
        } else if started {
            &mut sizes.after
        } else {
            &mut sizes.before
        };
        *axis_sizes = axis_sizes.checked_mul(natural(dim)?)?;
    }
    let results = sizes.before.checked_mul(sizes.after)?;
    (next.is_none() && results.checked_mul(sizes.reduced).is_some()).then_some(sizes)
}

/// The first axis of a list, or the only one, and the list of the others. Returns `None` for what is no
/// axis.
#[inline(always)]
fn next_axis<'a>(axes: Term<'a>) -> Option<(Option<usize>, Option<Term<'a>>)> {
    next_in_list(axes).or_else(|| Some((Some(natural(axes)?), None)))
}

/// `next_axis` of a list.
#[inline(always)]
fn next_in_list<'a>(axes: Term<'a>) -> Option<(Option<usize>, Option<Term<'a>>)> {
    match list_cell(axes) {
        Some((axis, rest)) => Some((Some(natural(axis)?), Some(rest))),
        None => axes.is_empty_list().then_some((None, None)),
    }
}
