//! The NIFs of padding, sorts and operations with indices.

use ferrox_core::cost::axes_work;
use ferrox_core::ops;
use ferrox_core::ops::indexed::{self, Update};
use ferrox_core::ops::pad::Padding;
use ferrox_core::ops::sort::Direction;

use super::size;
use crate::scheduling::family;
use crate::term::{Axes, Dims, List, Operand, Type};

/// `{low, high, interior}` for each axis.
type Paddings = List<(i64, i64, usize)>;

family!(pad, |call, dtype: Type, shape: Dims, paddings: Paddings, input: Operand, value: Operand| {
    let axes: Vec<_> =
        paddings.iter().map(|&(low, high, interior)| Padding { low, high, interior }).collect();
    let work = ops::pad::work((dtype.0, &shape.0), (input.dtype(), input.shape()));
    call.tensor(work, dtype.0, &shape.0, |out| {
        ops::pad::pad(out, &input.tensor(call.op)?, &value.tensor(call.op)?, &axes)
    })
});

fn direction(descending: bool) -> Direction {
    if descending { Direction::Descending } else { Direction::Ascending }
}

family!(sort, |call, axis: usize, descending: bool, input: Operand| {
    let work = ops::sort::work(input.dtype(), input.shape(), axis);
    call.tensor(work, input.dtype(), input.shape(), |out| {
        ops::sort::sort(out, &input.tensor(call.op)?, axis, direction(descending))
    })
});

family!(argsort, |call, dtype: Type, axis: usize, descending: bool, input: Operand| {
    let work = ops::sort::argsort_work(input.dtype(), input.shape(), axis);
    call.tensor(work, dtype.0, input.shape(), |out| {
        ops::sort::argsort(out, &input.tensor(call.op)?, axis, direction(descending))
    })
});

// The indices of the `k` largest elements; `k` is the last dimension of `shape`.
family!(top_k, |call, dtype: Type, shape: Dims, input: Operand| {
    let k = shape.0.last().copied().unwrap_or(1);
    let work = ops::sort::top_work(input.dtype(), input.shape(), k);
    call.tensor(work, dtype.0, &shape.0, |out| ops::sort::top_k(out, &input.tensor(call.op)?, k))
});

family!(gather, |call, shape: Dims, axes: Axes, input: Operand, indices: Operand| {
    let work = indexed::read_work(input.dtype(), size(&shape.0), indices.size())
        .saturating_add(axes_work(input.shape()));
    call.tensor(work, input.dtype(), &shape.0, |out| {
        indexed::gather(out, &input.tensor(call.op)?, &indices.tensor(call.op)?, &axes)
    })
});

family!(take, |call, shape: Dims, axis: usize, input: Operand, indices: Operand| {
    let work = indexed::take_work((input.dtype(), input.shape()), indices.size(), axis, size(&shape.0));
    call.tensor(work, input.dtype(), &shape.0, |out| {
        indexed::take(out, &input.tensor(call.op)?, &indices.tensor(call.op)?, axis)
    })
});

family!(take_along_axis, |call, axis: usize, input: Operand, indices: Operand| {
    let work = indexed::take_along_work(input.dtype(), indices.shape(), axis);
    call.tensor(work, input.dtype(), indices.shape(), |out| {
        indexed::take_along_axis(out, &input.tensor(call.op)?, &indices.tensor(call.op)?, axis)
    })
});

// `indexed_add` if `add`, else `indexed_put`.
family!(indexed, |call,
                  add: bool,
                  dtype: Type,
                  axes: Axes,
                  target: Operand,
                  indices: Operand,
                  updates: Operand| {
    let update = if add { Update::Add } else { Update::Put };
    let call = call.named(update.name());
    let sizes = [&target, &updates].map(|operand| (operand.dtype(), operand.size()));
    let work = indexed::write_work(update, sizes[0], sizes[1], dtype.0);
    call.tensor(work, dtype.0, target.shape(), |out| {
        let [target, indices, updates] = [&target, &indices, &updates].map(|operand| operand.tensor(call.op));
        indexed::indexed(update, out, &target?, &indices?, &updates?, &axes)
    })
});

family!(put_slice, |call, dtype: Type, starts: Axes, input: Operand, slice: Operand| {
    let sizes = [&input, &slice].map(|operand| (operand.dtype(), operand.size()));
    let work = indexed::write_work(Update::Put, sizes[0], sizes[1], dtype.0);
    call.tensor(work, dtype.0, input.shape(), |out| {
        indexed::put_slice(out, &input.tensor(call.op)?, &starts, &slice.tensor(call.op)?)
    })
});
