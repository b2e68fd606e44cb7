//! Reductions whose elements come in parts, such as those of a value that is computed block by block.
//!
//! Problem: a sum must have the bits of the sum of all elements at once, which has a fixed order
//! (`exec::reduce::fold`). Technique: columns are folded one row after the other anyway. A block of a row
//! is folded in stripes, which are columns of a matrix with as many columns; what is left after its last
//! whole row is kept until the stripes have been folded.

use super::{FoldKernels, ReduceOp, ReductionSizes};
use crate::DType;
use crate::exec::reduce::fold::{FoldColumns, MIN_STRIPED_ELEMENTS, STRIPES};

/// A reduction along the first axes of a tensor, or along all axes.
#[derive(Clone, Debug)]
pub(crate) struct Accumulation {
    op: ReduceOp,
    dtype: DType,
    lane: DType,
    /// Sets lanes to the neutral element, given no elements.
    columns: FoldColumns,
    /// Folds columns further from what is in the lanes.
    columns_onto: FoldColumns,
    /// Folds the stripes of a row further.
    stripes_onto: FoldColumns,
    /// Folds columns of lanes further.
    lanes_onto: FoldColumns,
    /// The number of columns of which each is folded; of one column all elements are stripes.
    width: usize,
    /// The number of elements of a column in a block.
    block: usize,
}

impl Accumulation {
    /// The reduction of elements of some type; `None` if their order is not one in which they could come
    /// in parts, or if there are fewer than `least` blocks.
    pub(crate) fn new(op: ReduceOp, dtype: DType, sizes: ReductionSizes, least: usize) -> Option<Self> {
        // Which zero is the largest depends on the order in which a loop compares.
        let is_exact = !matches!(op, ReduceOp::ReduceMax | ReduceOp::ReduceMin) || dtype.is_integer();
        let kernels = FoldKernels::new(op, dtype)?;
        let lanes = FoldKernels::new(op, kernels.lane)?;
        let block = sizes.block()?;
        if !is_exact
            || sizes.before != 1
            || lanes.lane != kernels.lane
            || sizes.reduced.div_ceil(block) < least
        {
            return None;
        }
        let ([columns_onto, stripes_onto], [lanes_onto, _]) = (kernels.loops.onto?, lanes.loops.onto?);
        Some(Accumulation {
            op,
            dtype,
            lane: kernels.lane,
            columns: kernels.loops.columns,
            columns_onto,
            stripes_onto,
            lanes_onto,
            width: sizes.after,
            block,
        })
    }

    /// The operation.
    pub(crate) fn op(&self) -> ReduceOp {
        self.op
    }

    /// The type of the results of blocks, which the same operation folds to the result.
    pub(crate) fn lane(&self) -> DType {
        self.lane
    }

    /// The number of columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The number of elements of a column in a block.
    pub(crate) fn block(&self) -> usize {
        self.block
    }

    /// The number of bytes of the result of a block.
    pub(crate) fn result_bytes(&self) -> usize {
        self.width * self.lane.width()
    }

    /// The number of bytes that are kept while a block is folded.
    pub(crate) fn state_bytes(&self) -> usize {
        if self.width > 1 {
            return self.result_bytes();
        }
        self.stripe_bytes() + MIN_STRIPED_ELEMENTS * self.dtype.width()
    }

    fn stripe_bytes(&self) -> usize {
        STRIPES * self.lane.width()
    }

    /// The number of elements of a block that are folded in stripes.
    fn striped(length: usize) -> usize {
        if length < MIN_STRIPED_ELEMENTS { 0 } else { length - length % STRIPES }
    }

    /// Begins a block.
    pub(crate) fn begin(&self, state: &mut [u8]) {
        let lanes = if self.width > 1 { state } else { &mut state[..self.stripe_bytes()] };
        (self.columns)(&[], 1, lanes);
    }

    /// Adds elements to a block of `length` elements of each column, those that come after the first
    /// `position` elements; of several columns whole rows.
    pub(crate) fn add(&self, state: &mut [u8], (position, length): (usize, usize), elements: &[u8]) {
        if self.width > 1 {
            (self.columns_onto)(elements, self.width, state);
            return;
        }
        let (stripes, kept) = state.split_at_mut(self.stripe_bytes());
        let (size, lane) = (self.dtype.width(), self.lane.width());
        let striped = Self::striped(length);
        let mut position = position;
        let (mut elements, rest) =
            elements.split_at((striped.saturating_sub(position) * size).min(elements.len()));
        while !elements.is_empty() {
            let (first, count) = (position % STRIPES, elements.len() / size);
            let (onto, columns, now) = match first {
                0 if count >= STRIPES => (self.stripes_onto, STRIPES, count - count % STRIPES),
                _ => (self.columns_onto, count.min(STRIPES - first), count.min(STRIPES - first)),
            };
            let (folded, later) = elements.split_at(now * size);
            onto(folded, columns, &mut stripes[first * lane..][..columns * lane]);
            (elements, position) = (later, position + now);
        }
        let after = position.saturating_sub(striped) * size;
        kept[after..][..rest.len()].copy_from_slice(rest);
    }

    /// Ends a block of `length` elements of each column, and writes its result.
    pub(crate) fn finish(&self, state: &mut [u8], length: usize, out: &mut [u8]) {
        if self.width == 1 {
            let (stripes, kept) = state.split_at_mut(self.stripe_bytes());
            let lane = self.lane.width();
            let mut half = STRIPES / 2;
            while half > 0 {
                let (first, second) = stripes[..2 * half * lane].split_at_mut(half * lane);
                (self.lanes_onto)(second, half, first);
                half /= 2;
            }
            let rest = (length - Self::striped(length)) * self.dtype.width();
            (self.columns_onto)(&kept[..rest], 1, &mut stripes[..lane]);
        }
        out.copy_from_slice(&state[..out.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::reduce_dense;
    use super::*;

    /// The reduction of elements that come in parts of these sizes, over and over.
    fn in_parts(op: ReduceOp, bytes: &[u8], sizes: ReductionSizes, parts: &[usize]) -> Option<Vec<u8>> {
        let accumulation = Accumulation::new(op, DType::F32, sizes, 2)?;
        let row = accumulation.width() * 4;
        let (block, mut state) = (accumulation.block(), vec![0xa5; accumulation.state_bytes()]);
        let mut lanes = Vec::new();
        let mut parts = parts.iter().cycle();
        for bytes in bytes.chunks(block * row) {
            let (length, mut position) = (bytes.len() / row, 0);
            accumulation.begin(&mut state);
            while position < length {
                let count = (*parts.next()?).min(length - position);
                accumulation.add(&mut state, (position, length), &bytes[position * row..][..count * row]);
                position += count;
            }
            let mut result = vec![0; accumulation.result_bytes()];
            accumulation.finish(&mut state, length, &mut result);
            lanes.extend(result);
        }
        let reduced = lanes.len() / accumulation.result_bytes();
        let mut out = vec![0; accumulation.width() * 4];
        let sizes = ReductionSizes { reduced, ..sizes };
        reduce_dense(op, (accumulation.lane(), &lanes), sizes, DType::F32, &mut out).ok()?;
        Some(out)
    }

    #[test]
    fn parts_have_the_bits_of_the_whole() {
        for (reduced, after) in
            [(200_000, 1), (131_072, 1), (131_073, 1), (131_135, 1), (131_171, 1), (9_000, 10), (200, 1_000)]
        {
            let sizes = ReductionSizes { before: 1, reduced, after };
            let numbers = (0..sizes.size()).map(|i| (i * 7_919 % 10_007) as f32 * 1e-3 - 4.0);
            let bytes: Vec<u8> = numbers.flat_map(f32::to_ne_bytes).collect();
            for op in [ReduceOp::Sum, ReduceOp::Product] {
                let mut expected = vec![0; after * 4];
                reduce_dense(op, (DType::F32, &bytes), sizes, DType::F32, &mut expected).expect("a sum");
                for parts in [&[1_000_000][..], &[1, 31, 32, 33, 64, 700], &[5461], &[7, 1]] {
                    assert_eq!(
                        in_parts(op, &bytes, sizes, parts),
                        Some(expected.clone()),
                        "{reduced} {after}"
                    );
                }
            }
        }
    }
}
