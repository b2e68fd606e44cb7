//! The NIFs of padding, sorts and operations with indices.

use ferrox_core::ops::indexed::Update;
use ferrox_core::ops::pad::Padding;
use ferrox_core::ops::sort::Direction;
use ferrox_core::ops::{self, cast, indexed};
use rustler::{Decoder, ListIterator, NifResult, Term};

use super::work;
use crate::scheduling::Call;
use crate::term::{Axes, Dims, Operand, Type};

/// The padding of each axis, decoded from a list of `{low, high, interior}`.
pub struct Paddings(Vec<Padding>);

impl<'a> Decoder<'a> for Paddings {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let mut paddings = Vec::new();
        for padding in term.decode::<ListIterator<'a>>()? {
            let (low, high, interior) = padding.decode()?;
            paddings.push(Padding { low, high, interior });
        }
        Ok(Paddings(paddings))
    }
}

pub fn pad<'a>(
    call: Call<'a>,
    dtype: Type,
    shape: Dims,
    Paddings(paddings): Paddings,
    input: Operand<'a>,
    value: Operand<'a>,
) -> Term<'a> {
    const OP: &str = "pad";
    let moved = work(&shape.0, ops::pad::cost(dtype.0));
    let work = moved.saturating_add(work(input.shape(), cast::operand_cost(input.dtype(), dtype.0)));
    call.tensor(work, OP, dtype.0, &shape.0, |out| {
        ops::pad::pad(out, &input.tensor(OP)?, &value.tensor(OP)?, &paddings)
    })
}

fn direction(descending: bool) -> Direction {
    if descending { Direction::Descending } else { Direction::Ascending }
}

pub fn sort<'a>(call: Call<'a>, axis: usize, descending: bool, input: Operand<'a>) -> Term<'a> {
    const OP: &str = "sort";
    let work = work(input.shape(), ops::sort::cost(input.dtype()));
    call.tensor(work, OP, input.dtype(), input.shape(), |out| {
        ops::sort::sort(out, &input.tensor(OP)?, axis, direction(descending))
    })
}

pub fn argsort<'a>(
    call: Call<'a>,
    dtype: Type,
    axis: usize,
    descending: bool,
    input: Operand<'a>,
) -> Term<'a> {
    const OP: &str = "argsort";
    let work = work(input.shape(), ops::sort::cost(input.dtype()));
    call.tensor(work, OP, dtype.0, input.shape(), |out| {
        ops::sort::argsort(out, &input.tensor(OP)?, axis, direction(descending))
    })
}

/// The indices of the `k` largest elements; `k` is the last dimension of `shape`.
pub fn top_k<'a>(call: Call<'a>, dtype: Type, shape: Dims, input: Operand<'a>) -> Term<'a> {
    const OP: &str = "top_k";
    let k = shape.0.last().copied().unwrap_or(1);
    let work = work(input.shape(), ops::sort::top_cost(input.dtype()))
        .saturating_add(work(&shape.0, ops::sort::cost(input.dtype())));
    call.tensor(work, OP, dtype.0, &shape.0, |out| ops::sort::top_k(out, &input.tensor(OP)?, k))
}

pub fn gather<'a>(
    call: Call<'a>,
    shape: Dims,
    axes: Axes,
    input: Operand<'a>,
    indices: Operand<'a>,
) -> Term<'a> {
    const OP: &str = "gather";
    let work = indexed::read_work(input.dtype(), size(&shape), indices.size());
    call.tensor(work, OP, input.dtype(), &shape.0, |out| {
        indexed::gather(out, &input.tensor(OP)?, &indices.tensor(OP)?, &axes)
    })
}

pub fn take<'a>(
    call: Call<'a>,
    shape: Dims,
    axis: usize,
    input: Operand<'a>,
    indices: Operand<'a>,
) -> Term<'a> {
    const OP: &str = "take";
    let rows = input.shape().iter().take(axis).fold(indices.size(), |rows, &dim| rows.saturating_mul(dim));
    let work = indexed::read_work(input.dtype(), size(&shape), rows);
    call.tensor(work, OP, input.dtype(), &shape.0, |out| {
        indexed::take(out, &input.tensor(OP)?, &indices.tensor(OP)?, axis)
    })
}

pub fn take_along_axis<'a>(
    call: Call<'a>,
    axis: usize,
    input: Operand<'a>,
    indices: Operand<'a>,
) -> Term<'a> {
    const OP: &str = "take_along_axis";
    let work = indexed::read_work(input.dtype(), indices.size(), indices.size());
    call.tensor(work, OP, input.dtype(), indices.shape(), |out| {
        indexed::take_along_axis(out, &input.tensor(OP)?, &indices.tensor(OP)?, axis)
    })
}

/// `indexed_add` if `add`, else `indexed_put`.
pub fn indexed<'a>(
    call: Call<'a>,
    add: bool,
    dtype: Type,
    axes: Axes,
    target: Operand<'a>,
    indices: Operand<'a>,
    updates: Operand<'a>,
) -> Term<'a> {
    let update = if add { Update::Add } else { Update::Put };
    let op = update.name();
    let sizes = ((target.dtype(), target.size()), (updates.dtype(), updates.size()));
    let work = indexed::write_work(update, sizes.0, sizes.1, dtype.0);
    call.tensor(work, op, dtype.0, target.shape(), |out| {
        let (target, indices, updates) = (target.tensor(op)?, indices.tensor(op)?, updates.tensor(op)?);
        indexed::indexed(update, out, &target, &indices, &updates, &axes)
    })
}

pub fn put_slice<'a>(
    call: Call<'a>,
    dtype: Type,
    starts: Axes,
    input: Operand<'a>,
    slice: Operand<'a>,
) -> Term<'a> {
    const OP: &str = "put_slice";
    let sizes = ((input.dtype(), input.size()), (slice.dtype(), slice.size()));
    let work = indexed::write_work(Update::Put, sizes.0, sizes.1, dtype.0);
    call.tensor(work, OP, dtype.0, input.shape(), |out| {
        indexed::put_slice(out, &input.tensor(OP)?, &starts, &slice.tensor(OP)?)
    })
}

fn size(shape: &Dims) -> usize {
    ferrox_core::layout::size(&shape.0).unwrap_or(usize::MAX)
}
