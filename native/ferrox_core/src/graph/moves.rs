//! Small operations that only move elements, such as slices and concatenations, prepared for their shapes.
//!
//! Problem: to find out how a few elements are copied takes longer than to copy them. Technique: where
//! the elements of a result lie in an operand depends on the shapes, except for the starts of slices that
//! are computed. So the nest of loops is made when the program is, and a run only reads the starts.

use smallvec::{SmallVec, smallvec};

use super::operand::{Operand, integer, word};
use super::operation::{Operation, Start, Typed};
use crate::DType;
use crate::cost::{MAX_PREPARED_MOVE_BYTES, MAX_PREPARED_MOVE_RUNS};
use crate::layout::{self, Layout, Shape};
use crate::ops::shape::{broadcast_layout, slice_layout};

/// The copies that make a result.
#[derive(Debug)]
pub(super) struct Moves {
    moves: SmallVec<[Move; 1]>,
    /// Whether the result has the elements of the first operand where nothing is copied to.
    is_update: bool,
}

/// A copy of elements of an operand to a result.
#[derive(Debug)]
pub(super) struct Move {
    operand: usize,
    /// The first byte in the operand and in the result, if all starts are zero.
    first: [usize; 2],
    starts: SmallVec<[ComputedStart; 2]>,
    /// Whether the starts are in the result rather than in the operand.
    starts_in_result: bool,
    axes: SmallVec<[Axis; 3]>,
    /// The number of bytes that are copied at once.
    run: usize,
}

/// A loop around the bytes that are copied at once.
#[derive(Clone, Copy, Debug)]
struct Axis {
    count: usize,
    /// The distance of the bytes in the operand and in the result.
    from: isize,
    to: usize,
}

/// A start along an axis that an operand of the operation has.
#[derive(Clone, Copy, Debug)]
struct ComputedStart {
    operand: usize,
    is_signed: bool,
    last: usize,
    /// The number of bytes in a step along the axis.
    step: usize,
}

impl Moves {
    /// The copies of an operation with one result, if it is one that moves a few elements.
    pub(super) fn new(operation: &Operation, (dtype, shape): Typed<'_>, inputs: &[Operand]) -> Option<Self> {
        let moved = match operation {
            Operation::PutSlice(_) => &inputs[..inputs.len().min(2)],
            Operation::Concatenate(_) => inputs,
            _ => &inputs[..inputs.len().min(1)],
        };
        if dtype.is_packed() || moved.iter().any(|operand| operand.dtype != dtype) {
            return None;
        }
        let first = inputs.first()?;
        let (own, width) = (Layout::contiguous(&first.shape), dtype.width());
        let whole = || Layout::contiguous(shape);
        let mut moves = SmallVec::new();
        match operation {
            Operation::Slice { starts, lengths, strides } => {
                let (known, computed) = split_starts(starts, &own, lengths, inputs, width)?;
                let from = slice_layout(&own, &known, lengths, strides).ok()?;
                moves.push(Move { starts: computed, ..Move::new(0, width, &from, &whole())? });
            }
            Operation::PutSlice(starts) => {
                let [target, slice, ..] = inputs else { return None };
                if *target.shape != *shape {
                    return None;
                }
                let (known, computed) = split_starts(starts, &own, &slice.shape, inputs, width)?;
                let ones = Shape::from_elem(1, shape.len());
                let to = slice_layout(&own, &known, &slice.shape, &ones).ok()?;
                let part = Move::new(1, width, &Layout::contiguous(&slice.shape), &to)?;
                moves.push(Move { starts: computed, starts_in_result: true, ..part });
            }
            Operation::Concatenate(axis) => {
                let (axis, ones) = (*axis, Shape::from_elem(1, shape.len()));
                let mut starts = Shape::from_elem(0, shape.len());
                for (index, operand) in inputs.iter().enumerate() {
                    let to = slice_layout(&whole(), &starts, &operand.shape, &ones).ok()?;
                    moves.push(Move::new(index, width, &Layout::contiguous(&operand.shape), &to)?);
                    *starts.get_mut(axis)? += *operand.shape.get(axis)?;
                }
                let is_whole = |(other, (&start, &dim)): (usize, (&usize, &usize))| {
                    if other == axis {
                        start == dim
                    } else {
                        inputs.iter().all(|operand| operand.shape[other] == dim)
                    }
                };
                if !starts.iter().zip(shape).enumerate().all(is_whole) {
                    return None;
                }
            }
            Operation::Broadcast(axes) => {
                moves.push(Move::new(0, width, &broadcast_layout(&own, shape, axes).ok()?, &whole())?);
            }
            Operation::Transpose(_) | Operation::Reverse(_) => {
                moves.push(Move::new(0, width, &operation.view(&first.shape)?, &whole())?);
            }
            _ => return None,
        }
        Some(Moves { moves, is_update: matches!(operation, Operation::PutSlice(_)) })
    }

    /// Writes the whole result, given the bytes of operands. Returns whether it has: a large tensor of
    /// which a part is replaced is not copied here.
    pub(super) fn run<'b>(&self, operand: impl Fn(usize) -> &'b [u8], out: &mut [u8]) -> bool {
        if self.is_update {
            if out.len() > MAX_PREPARED_MOVE_BYTES {
                return false;
            }
            out.copy_from_slice(operand(0));
        }
        self.update(operand, out);
        true
    }

    /// Writes the part of the result that is not the first operand's, which `out` has already.
    pub(super) fn update<'b>(&self, operand: impl Fn(usize) -> &'b [u8], out: &mut [u8]) {
        for part in &self.moves {
            part.run(&operand, out);
        }
    }
}

impl Move {
    /// The copy of the elements of a layout in an operand to those of a layout in the result, if they are
    /// few.
    fn new(operand: usize, width: usize, from: &Layout, to: &Layout) -> Option<Self> {
        let size = layout::size(&to.shape).filter(|&size| size > 0)?;
        if from.shape != to.shape || size.checked_mul(width)? > MAX_PREPARED_MOVE_BYTES {
            return None;
        }
        let (dims, strides) = layout::collapse_all(&from.shape, &[&from.strides, &to.strides]);
        let [from_strides, to_strides] = &strides[..] else { return None };
        let mut axes: SmallVec<[Axis; 3]> = smallvec![];
        for ((&count, &from), &to) in dims.iter().zip(from_strides).zip(to_strides) {
            let to = usize::try_from(to).ok()?.checked_mul(width)?;
            axes.push(Axis { count, from: from.checked_mul(width as isize)?, to });
        }
        let mut run = width;
        if let Some(&Axis { count, from, to }) = axes.last()
            && [from, to as isize] == [width as isize; 2]
        {
            run *= count;
            axes.pop();
        }
        let runs = axes.iter().map(|axis| axis.count).product::<usize>();
        let first = [from.offset * width, to.offset * width];
        let (starts, starts_in_result) = (smallvec![], false);
        let few = runs <= MAX_PREPARED_MOVE_RUNS;
        few.then_some(Move { operand, first, starts, starts_in_result, axes, run })
    }

    /// The copy of an operand that is broadcast to a shape, aligned at the last axis.
    pub(super) fn broadcast(operand: usize, dtype: DType, from: &[usize], shape: &[usize]) -> Option<Self> {
        let from = Layout::contiguous(from).broadcast_right(shape)?;
        Move::new(operand, dtype.width(), &from, &Layout::contiguous(shape))
    }

    /// Copies the elements, given the bytes of operands.
    pub(super) fn run<'b>(&self, operand: impl Fn(usize) -> &'b [u8], out: &mut [u8]) {
        let [mut from, mut to] = self.first;
        for start in &self.starts {
            let bytes = operand(start.operand);
            let at = integer(word(bytes), start.is_signed, bytes.len() as u8).min(start.last) * start.step;
            *if self.starts_in_result { &mut to } else { &mut from } += at;
        }
        let source = operand(self.operand);
        match self.run {
            1 => self.copy_elements::<1>(source, from, out, to),
            2 => self.copy_elements::<2>(source, from, out, to),
            4 => self.copy_elements::<4>(source, from, out, to),
            8 => self.copy_elements::<8>(source, from, out, to),
            16 => self.copy_elements::<16>(source, from, out, to),
            run => nest(&self.axes, from, to, &mut |from, to| {
                out[to..to + run].copy_from_slice(&source[from..from + run]);
            }),
        }
    }

    /// Copies runs of `N` bytes.
    fn copy_elements<const N: usize>(&self, source: &[u8], from: usize, out: &mut [u8], to: usize) {
        if let Some((&Axis { count, from: 0, to: step }, axes)) = self.axes.split_last()
            && step == N
        {
            return nest(axes, from, to, &mut |from, to| {
                let run = &source[from..from + N];
                out[to..to + count * N].chunks_exact_mut(N).for_each(|out| out.copy_from_slice(run));
            });
        }
        nest(&self.axes, from, to, &mut |from, to| {
            out[to..to + N].copy_from_slice(&source[from..from + N]);
        });
    }
}

/// Calls `copy` with the first bytes of each run.
fn nest(axes: &[Axis], mut from: usize, mut to: usize, copy: &mut impl FnMut(usize, usize)) {
    let Some((axis, inner)) = axes.split_first() else { return copy(from, to) };
    for _ in 0..axis.count {
        if inner.is_empty() {
            copy(from, to);
        } else {
            nest(inner, from, to, copy);
        }
        from = from.wrapping_add_signed(axis.from);
        to += axis.to;
    }
}

/// The starts that are known, moved so that a slice of some lengths lies in the tensor, with zero for those
/// that are computed; and these.
fn split_starts(
    starts: &[Start],
    tensor: &Layout,
    lengths: &[usize],
    inputs: &[Operand],
    width: usize,
) -> Option<(Shape, SmallVec<[ComputedStart; 2]>)> {
    let (mut known, mut computed) = (Shape::new(), SmallVec::new());
    for (((&start, &dim), &length), &stride) in
        starts.iter().zip(&tensor.shape).zip(lengths).zip(&tensor.strides)
    {
        let last = dim.checked_sub(length)?;
        known.push(match start {
            Start::At(start) => start.min(last),
            Start::Input(operand) => {
                let Operand { dtype, shape, .. } = inputs.get(operand)?;
                if !dtype.is_integer() || dtype.is_packed() || layout::size(shape) != Some(1) {
                    return None;
                }
                let is_signed = dtype.kind() == crate::Kind::Signed;
                let step = usize::try_from(stride).ok()?.checked_mul(width)?;
                computed.push(ComputedStart { operand, is_signed, last, step });
                0
            }
        });
    }
    Some((known, computed))
}

#[cfg(test)]
mod tests {
    use super::super::operand::Place;
    use super::*;
    use crate::tensor::{Output, Tensor};

    /// Numbers that don't repeat, as the bytes of a tensor.
    fn numbers(dtype: DType, shape: &[usize], seed: usize) -> Vec<u8> {
        let size = shape.iter().product::<usize>() * dtype.width();
        (0..size).map(|i| (i * 31 + i / 251 + seed) as u8).collect()
    }

    /// Compares the copies of an operation with the operation, given the values of starts; returns whether
    /// it is one that is prepared.
    fn check(
        operation: &Operation,
        dtype: DType,
        shape: &[usize],
        moved: &[&[usize]],
        starts: &[i64],
    ) -> bool {
        for start in [DType::S64, DType::S8, DType::U16] {
            let operand =
                |dtype, shape: &[usize]| Operand { place: Place::Slot(0), dtype, shape: shape.into() };
            let mut inputs: Vec<Operand> = moved.iter().map(|shape| operand(dtype, shape)).collect();
            let mut bytes: Vec<Vec<u8>> =
                (0..).zip(moved).map(|(seed, shape)| numbers(dtype, shape, seed * 100)).collect();
            for &value in starts {
                inputs.push(operand(start, &[]));
                bytes.push(match start {
                    DType::S64 => value.to_ne_bytes().to_vec(),
                    DType::S8 => (value as i8).to_ne_bytes().to_vec(),
                    _ => (value as u16).to_ne_bytes().to_vec(),
                });
            }
            let Some(moves) = Moves::new(operation, (dtype, shape), &inputs) else { return false };
            let tensors: Vec<Tensor<'_>> = (inputs.iter().zip(&bytes))
                .map(|(input, bytes)| Tensor::new("test", input.dtype, &input.shape, bytes).expect("fits"))
                .collect();
            let length = numbers(dtype, shape, 0).len();
            let (mut got, mut expected) = (vec![1; length], vec![2; length]);
            let output = Output { dtype, shape, bytes: &mut expected };
            operation.run(smallvec![output], &tensors).expect("is well-formed");
            assert!(moves.run(|index| &bytes[index], &mut got));
            assert_eq!(got, expected, "{operation:?} of {moved:?} from {starts:?} as {start}");
            if moves.is_update {
                let mut over = bytes[0].clone();
                moves.update(|index| &bytes[index], &mut over);
                assert_eq!(over, expected, "{operation:?} in place");
            }
        }
        true
    }

    #[test]
    fn copies_give_what_operations_give() {
        let slice = |starts: &[Start], lengths: &[usize], strides: &[usize]| Operation::Slice {
            starts: starts.to_vec(),
            lengths: lengths.into(),
            strides: strides.into(),
        };
        let (at, input) = (Start::At, Start::Input);
        let whole: &[usize] = &[3, 4, 5];
        for dtype in [DType::U8, DType::F16, DType::F32, DType::S64, DType::C128] {
            let is_prepared = |operation: &Operation, shape: &[usize], moved: &[&[usize]], starts: &[i64]| {
                assert!(check(operation, dtype, shape, moved, starts), "{operation:?}");
            };
            is_prepared(&slice(&[at(1), at(0), at(2)], &[2, 4, 3], &[1, 1, 1]), &[2, 4, 3], &[whole], &[]);
            is_prepared(&slice(&[at(0), at(1), at(0)], &[3, 3, 5], &[2, 2, 4]), &[2, 2, 2], &[whole], &[]);
            for starts in [[0, 0], [1, 2], [2, 4], [-3, 1], [9, -9], [100, 127]] {
                let part = slice(&[input(1), at(1), input(2)], &[1, 2, 1], &[1, 1, 1]);
                is_prepared(&part, &[1, 2, 1], &[whole], &starts);
                let put = Operation::PutSlice(vec![input(2), at(1), input(3)]);
                is_prepared(&put, whole, &[whole, &[2, 2, 3]], &starts);
            }
            for axis in 0..3 {
                let mut shape = whole.to_vec();
                shape[axis] = 3;
                let mut total = whole.to_vec();
                total[axis] += 6;
                let operands: [&[usize]; 3] = [&shape, whole, &shape];
                is_prepared(&Operation::Concatenate(axis), &total, &operands, &[]);
            }
            is_prepared(&Operation::Transpose(smallvec![2, 0, 1]), &[5, 3, 4], &[whole], &[]);
            is_prepared(&Operation::Reverse(smallvec![0, 2]), whole, &[whole], &[]);
            is_prepared(&Operation::Broadcast(smallvec![1, 2]), whole, &[&[4, 1]], &[]);
            is_prepared(&Operation::Broadcast(smallvec![]), whole, &[&[]], &[]);
            is_prepared(&Operation::Broadcast(smallvec![0, 1, 2]), whole, &[whole], &[]);
        }
        // Many bytes, and many stretches.
        let transpose = Operation::Transpose(smallvec![1, 0]);
        assert!(!check(&transpose, DType::U8, &[32, 33], &[&[33, 32]], &[]));
        let reverse = Operation::Reverse(smallvec![0]);
        assert!(!check(&reverse, DType::F64, &[3, 1000], &[&[3, 1000]], &[]));
    }

    #[test]
    fn what_does_not_fit_is_not_prepared() {
        let operand = |dtype, shape: &[usize]| Operand { place: Place::Slot(0), dtype, shape: shape.into() };
        let [a, b] = [operand(DType::F32, &[3]), operand(DType::F32, &[2])];
        let none = |operation: Operation, shape: &[usize], inputs: &[Operand]| {
            assert!(Moves::new(&operation, (DType::F32, shape), inputs).is_none(), "{operation:?}");
        };
        none(Operation::Concatenate(0), &[6], &[a.clone(), b.clone()]);
        none(Operation::Concatenate(0), &[4], &[a.clone(), b.clone()]);
        none(Operation::Concatenate(1), &[5], &[a.clone(), b.clone()]);
        none(Operation::Concatenate(0), &[5], &[]);
        none(Operation::PutSlice(vec![Start::At(0)]), &[3], &[a.clone(), operand(DType::F32, &[4])]);
        none(Operation::PutSlice(vec![Start::Input(7)]), &[3], &[a.clone(), b.clone()]);
        none(Operation::PutSlice(vec![Start::At(0)]), &[4], &[a.clone(), b.clone()]);
        none(Operation::Broadcast(smallvec![1]), &[2, 4], std::slice::from_ref(&a));
        none(Operation::Transpose(smallvec![0, 1]), &[3], std::slice::from_ref(&a));
        none(Operation::Reverse(smallvec![0]), &[0], &[operand(DType::F32, &[0])]);
        none(Operation::Reverse(smallvec![0]), &[3], &[operand(DType::S32, &[3])]);
    }
}
