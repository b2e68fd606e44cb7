//! The loops of convolutions: im2col and direct convolution.
//!
//! Problem: a convolution is a product of matrices, of the filters and of the patches of the input
//! that the kernel covers at each position; patches are larger than the input by the number of
//! taps (elements of the kernel). Technique: im2col (K. Chellapilla, S. Puri, P. Simard, High
//! Performance Convolutional Neural Networks for Document Processing, 2006) for a block of the
//! result at a time, in the order that reads adjacent elements of the input: a row for each channel
//! and tap where positions are adjacent, a row for each position where channels are, or where there
//! are more taps than positions, as in the gradient of a kernel. Where a patch is multiplied by few filters, as in depthwise convolutions, the input is multiplied where it is
//! in memory, without patches (direct convolution). Limit: patches of floats whose positions are
//! adjacent are avoided where possible, see `ops/conv/planes.rs`.

use crate::dispatch;
use crate::exec::gemm::ring::Ring;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::layout::Shape;

/// A spatial axis of a convolution.
#[derive(Clone, Copy, Debug)]
pub struct ConvAxis {
    /// The number of elements of the input.
    pub size: usize,
    /// The number of positions of the kernel: the elements of the result.
    pub positions: usize,
    /// The number of taps: the elements of the kernel.
    pub taps: usize,
    /// The distance from one position to the next, in elements of the padded input.
    pub stride: usize,
    /// The distance from one tap to the next, in elements of the padded input.
    pub kernel_dilation: usize,
    /// The distance from one element of the input to the next, in elements of the padded input.
    pub input_dilation: usize,
    /// The padding before the first element; a negative number removes elements.
    pub low: isize,
    /// The distance from one element of the input to the next in memory, in elements.
    pub memory_stride: isize,
}

/// Positions where a tap covers an element of the input, and these elements: `count` positions
/// from `position` on, `position_step` apart; the elements start at `element`, `element_step`
/// apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PositionRun {
    position: usize,
    position_step: usize,
    count: usize,
    element: usize,
    element_step: usize,
}

impl ConvAxis {
    /// Returns the element of the input that a tap covers, or `None` if it covers padding.
    #[inline]
    fn element(&self, position: usize, tap: usize) -> Option<usize> {
        let at = (position * self.stride + tap * self.kernel_dilation) as isize - self.low;
        if at < 0 {
            return None;
        }
        let at = at.cast_unsigned();
        let (element, rest) = match self.input_dilation {
            1 => (at, 0),
            dilation => (at / dilation, at % dilation),
        };
        (rest == 0 && element < self.size).then_some(element)
    }

    /// Returns the axis whose positions are the taps of this one, and whose taps its positions.
    fn exchange(&self) -> Self {
        ConvAxis {
            positions: self.taps,
            taps: self.positions,
            stride: self.kernel_dilation,
            kernel_dilation: self.stride,
            ..*self
        }
    }

    /// Returns the positions among `from..to` where a tap covers an element.
    fn run(&self, from: usize, to: usize, tap: usize) -> PositionRun {
        let none = PositionRun { position: to, position_step: 1, count: 0, element: 0, element_step: 1 };
        if self.size == 0 {
            return none;
        }
        let common = gcd(self.stride, self.input_dilation);
        // Of positions that cover elements, one follows the other at this distance.
        let position_step = self.input_dilation / common;
        let start = (tap * self.kernel_dilation) as isize - self.low;
        let least = (-start).max(0).cast_unsigned().div_ceil(self.stride).max(from);
        let last = ((self.size - 1) * self.input_dilation) as isize - start;
        if last < 0 {
            return none;
        }
        let end = (last.cast_unsigned() / self.stride + 1).min(to);
        let covers_element = |position: &usize| {
            ((position * self.stride) as isize + start).cast_unsigned().is_multiple_of(self.input_dilation)
        };
        let Some(position) = (least..end.min(least.saturating_add(position_step))).find(covers_element)
        else {
            return none;
        };
        let at = ((position * self.stride) as isize + start).cast_unsigned();
        PositionRun {
            position,
            position_step,
            count: (end - position).div_ceil(position_step),
            element: at / self.input_dilation,
            element_step: self.stride / common,
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The input of one group of filters and one element of the batch.
#[derive(Clone, Copy, Debug)]
pub struct Patches<'a> {
    /// The spatial axes.
    pub axes: &'a [ConvAxis],
    /// The number of channels, and the distance from one channel to the next in memory.
    pub channels: (usize, isize),
    /// The bytes that hold the input.
    pub bytes: &'a [u8],
    /// The index of the first element.
    pub offset: usize,
}

/// Converts the number of a tap or position in row-major order into its index on each axis.
#[inline]
fn unravel_index(axes: &[ConvAxis], dim: fn(&ConvAxis) -> usize, mut number: usize, index: &mut [usize]) {
    for (axis, slot) in axes.iter().zip(index).rev() {
        let size = dim(axis);
        *slot = number % size;
        number /= size;
    }
}

impl Patches<'_> {
    /// The number of taps of the kernel.
    #[must_use]
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.taps).product()
    }

    /// Fills rows of the patch matrix from `first` on: there is a row for each channel and tap,
    /// with the elements that it covers at the positions `from..to`.
    pub fn by_tap(&self, width: usize, first: usize, positions: (usize, usize), out: &mut [u8]) {
        dispatch!(width width, N => self.by_tap_of::<N>(first, positions, out))
    }

    fn by_tap_of<const N: usize>(&self, first: usize, (from, to): (usize, usize), out: &mut [u8]) {
        let input = self.bytes.as_chunks::<N>().0;
        let taps = self.taps();
        let mut tap = vec![0; self.axes.len()];
        for (row, out) in out.as_chunks_mut::<N>().0.chunks_exact_mut(to - from).enumerate() {
            let (channel, number) = ((first + row) / taps, (first + row) % taps);
            unravel_index(self.axes, |axis| axis.taps, number, &mut tap);
            let start = self.offset as isize + channel as isize * self.channels.1;
            self.fill_row(input, &tap, start, (from, to), out);
        }
    }

    /// Fills `out` with the elements that a tap covers at the positions `from..to` of the channel
    /// that begins at `start`.
    #[inline]
    fn fill_row<const N: usize>(
        &self,
        input: &[[u8; N]],
        tap: &[usize],
        start: isize,
        (from, to): (usize, usize),
        out: &mut [[u8; N]],
    ) {
        self.for_each_segment(tap, start, (from, to), |segment, covered_run| {
            let out = &mut out[segment.0 - from..segment.1 - from];
            let Some((run, start, memory_stride)) = covered_run else {
                out.fill([0; N]);
                return;
            };
            let PositionRun { position, position_step, count, .. } = run;
            let leading = position.min(out.len());
            out[..leading].fill([0; N]);
            let out = &mut out[leading..];
            if position_step == 1 && memory_stride == 1 {
                let (covered, rest) = out.split_at_mut(count);
                covered.copy_from_slice(&input[start as usize..][..count]);
                rest.fill([0; N]);
                return;
            }
            if position_step == 1 {
                let (covered, rest) = out.split_at_mut(count);
                rest.fill([0; N]);
                // The compiler splits pairs with vector instructions; slices of pairs have a
                // known length.
                let pairs = if memory_stride == 2 { input[start as usize..].as_chunks::<2>().0 } else { &[] };
                if pairs.len() >= count {
                    covered.iter_mut().zip(pairs).for_each(|(slot, pair)| *slot = pair[0]);
                    return;
                }
            } else {
                out.fill([0; N]);
            }
            for (i, slot) in out.iter_mut().step_by(position_step).take(count).enumerate() {
                *slot = input[(start + i as isize * memory_stride) as usize];
            }
        });
    }

    /// Fills rows of the patch matrix from `first` on: there is a row for each position, with the
    /// elements that the taps cover; the taps of each channel are adjacent.
    pub fn by_position_and_channel(&self, width: usize, first: usize, out: &mut [u8]) {
        dispatch!(width width, N => self.by_position_and_channel_of::<N>(first, out))
    }

    fn by_position_and_channel_of<const N: usize>(&self, first: usize, out: &mut [u8]) {
        let input = self.bytes.as_chunks::<N>().0;
        let (channels, memory_stride) = self.channels;
        let (taps, mut position) = (self.taps(), vec![0; self.axes.len()]);
        unravel_index(self.axes, |axis| axis.positions, first, &mut position);
        // The elements that all taps cover at one position are those that one tap of the exchanged
        // convolution covers at all of its positions.
        let exchanged: Vec<ConvAxis> = self.axes.iter().map(ConvAxis::exchange).collect();
        let exchanged = Patches { axes: &exchanged, ..*self };
        for out in out.as_chunks_mut::<N>().0.chunks_exact_mut(taps * channels) {
            for (channel, out) in out.chunks_exact_mut(taps).enumerate() {
                let start = self.offset as isize + channel as isize * memory_stride;
                exchanged.fill_row(input, &position, start, (0, taps), out);
            }
            advance_index(self.axes, |axis| axis.positions, &mut position);
        }
    }

    /// Calls `visit` for each segment of the positions `from..to` along the last axis. Its
    /// arguments are the bounds of the segment and, if the tap covers any element there, the run of
    /// positions (counted from the start of the segment), the index of the run's first element, and
    /// the distance from one of its elements to the next.
    #[inline]
    fn for_each_segment(
        &self,
        tap: &[usize],
        start: isize,
        (from, to): (usize, usize),
        mut visit: impl FnMut((usize, usize), Option<(PositionRun, isize, isize)>),
    ) {
        let Some((last, outer)) = self.axes.split_last() else {
            let run = PositionRun { position: 0, position_step: 1, count: 1, element: 0, element_step: 1 };
            visit((from, to), Some((run, start, 1)));
            return;
        };
        let (mut position, mut index) = (from, Shape::from_elem(0, outer.len()));
        unravel_index(outer, |axis| axis.positions, from / last.positions, &mut index);
        let mut column = from % last.positions;
        let whole = last.run(0, last.positions, tap[outer.len()]);
        while position < to {
            let length = (last.positions - column).min(to - position);
            let base = outer.iter().zip(&index).zip(tap).try_fold(start, |base, ((axis, &i), &tap)| {
                Some(base + axis.element(i, tap)? as isize * axis.memory_stride)
            });
            let covered_run = base.and_then(|base| {
                let run = if length == last.positions {
                    whole
                } else {
                    last.run(column, column + length, tap[outer.len()])
                };
                let first = base + run.element as isize * last.memory_stride;
                let run = PositionRun { position: run.position - column, ..run };
                (run.count > 0).then_some((run, first, run.element_step as isize * last.memory_stride))
            });
            visit((position, position + length), covered_run);
            position += length;
            column = 0;
            advance_index(outer, |axis| axis.positions, &mut index);
        }
    }

    /// Fills rows of the patch matrix from `first` on: there is a row for each position, with the
    /// elements that the taps cover; the channels of each tap are adjacent.
    pub fn by_position(&self, width: usize, first: usize, out: &mut [u8]) {
        dispatch!(width width, N => self.by_position_of::<N>(first, out))
    }

    fn by_position_of<const N: usize>(&self, first: usize, out: &mut [u8]) {
        let input = self.bytes.as_chunks::<N>().0;
        let (channels, memory_stride) = self.channels;
        let rank = self.axes.len();
        let (mut position, mut tap) = (vec![0; rank], vec![0; rank]);
        unravel_index(self.axes, |axis| axis.positions, first, &mut position);
        for out in out.as_chunks_mut::<N>().0.chunks_exact_mut(self.taps() * channels) {
            tap.fill(0);
            for out in out.chunks_exact_mut(channels) {
                let covered = self.axes.iter().zip(&position).zip(&tap).try_fold(
                    self.offset as isize,
                    |index, ((axis, &position), &tap)| {
                        Some(index + axis.element(position, tap)? as isize * axis.memory_stride)
                    },
                );
                match covered {
                    Some(start) if memory_stride == 1 => {
                        out.copy_from_slice(&input[start as usize..][..channels]);
                    }
                    Some(start) => {
                        for (channel, slot) in out.iter_mut().enumerate() {
                            *slot = input[(start + channel as isize * memory_stride) as usize];
                        }
                    }
                    None => out.fill([0; N]),
                }
                advance_index(self.axes, |axis| axis.taps, &mut tap);
            }
            advance_index(self.axes, |axis| axis.positions, &mut position);
        }
    }
}

/// Advances an index to the next one in row-major order.
#[inline]
pub fn advance_index(axes: &[ConvAxis], dim: fn(&ConvAxis) -> usize, index: &mut [usize]) {
    for (axis, slot) in axes.iter().zip(index).rev() {
        *slot += 1;
        if *slot < dim(axis) {
            return;
        }
        *slot = 0;
    }
}

/// Multiplies one filter, a dense row, by the input where it is in memory, with one lane for each
/// position. The products of a position are added in the order of the filter.
pub fn direct<T: Ring>(patches: &Patches<'_>, filter: &[u8], out: &mut [u8]) {
    let (input, out) = (T::view(patches.bytes), T::view_mut(out));
    out.fill(T::ZERO.store());
    let taps = patches.taps();
    let positions = out.len();
    let mut tap = vec![0; patches.axes.len()];
    for (number, &weight) in T::view(filter).iter().enumerate() {
        let (channel, number) = (number / taps, number % taps);
        unravel_index(patches.axes, |axis| axis.taps, number, &mut tap);
        let start = patches.offset as isize + channel as isize * patches.channels.1;
        patches.for_each_segment(&tap, start, (0, positions), |segment, covered_run| {
            if let Some((run, first, memory_stride)) = covered_run {
                let out = &mut out[segment.0 + run.position..segment.1];
                let PositionRun { position_step, count, .. } = run;
                vectorize(Axpy::<T> { out, position_step, count, input, first, memory_stride, weight });
            }
        });
        let padded = T::ZERO.add_product(T::load(weight), T::ZERO);
        if !padded.is_zero() {
            add_products_with_padding(patches, &tap, T::load(weight), out);
        }
    }
}

/// Adds the products with padding where they are not zero: zero times an infinite or NaN weight
/// is NaN.
#[cold]
fn add_products_with_padding<T: Ring>(patches: &Patches<'_>, tap: &[usize], weight: T, out: &mut [T::Bytes]) {
    let mut position = vec![0; patches.axes.len()];
    for slot in out {
        let mut axes = patches.axes.iter().zip(&position).zip(tap);
        if axes.any(|((axis, &position), &tap)| axis.element(position, tap).is_none()) {
            *slot = T::load(*slot).add_product(weight, T::ZERO).store();
        }
        advance_index(patches.axes, |axis| axis.positions, &mut position);
    }
}

/// Adds a multiple of elements of the input to sums.
struct Axpy<'a, T: Ring> {
    out: &'a mut [T::Bytes],
    position_step: usize,
    count: usize,
    input: &'a [T::Bytes],
    first: isize,
    memory_stride: isize,
    weight: T::Bytes,
}

impl<T: Ring> Vectorized for Axpy<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let weight = T::load(self.weight);
        if self.memory_stride == 1 && self.position_step == 1 {
            let input = &self.input[self.first as usize..][..self.count];
            for (sum, &x) in self.out.iter_mut().zip(input) {
                *sum = T::load(*sum).add_product(weight, T::load(x)).store();
            }
            return;
        }
        for (i, sum) in self.out.iter_mut().step_by(self.position_step).take(self.count).enumerate() {
            let x = self.input[(self.first + i as isize * self.memory_stride) as usize];
            *sum = T::load(*sum).add_product(weight, T::load(x)).store();
        }
    }
}

/// Copies a dense matrix with `columns` columns to `out`; `strides` are those of rows and columns.
pub fn scatter(width: usize, matrix: &[u8], columns: usize, out: &mut [u8], strides: [usize; 2]) {
    dispatch!(width width, N => scatter_of::<N>(matrix, columns, out, strides))
}

fn scatter_of<const N: usize>(matrix: &[u8], columns: usize, out: &mut [u8], [row, column]: [usize; 2]) {
    let out = out.as_chunks_mut::<N>().0;
    for (i, values) in matrix.as_chunks::<N>().0.chunks_exact(columns).enumerate() {
        let out = &mut out[i * row..];
        if column == 1 {
            out[..columns].copy_from_slice(values);
            continue;
        }
        for (slot, &value) in out.iter_mut().step_by(column).zip(values) {
            *slot = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_the_positions_that_meet_an_element() {
        for size in 0..5 {
            for (stride, dilation) in [(1, 1), (2, 1), (1, 2), (2, 3), (4, 6), (6, 4)] {
                for low in -3..6 {
                    for tap in 0..3 {
                        let axis = ConvAxis {
                            size,
                            positions: 9,
                            taps: 3,
                            stride,
                            kernel_dilation: 2,
                            input_dilation: dilation,
                            low,
                            memory_stride: 1,
                        };
                        for (from, to) in [(0, 9), (2, 7), (8, 9)] {
                            let run = axis.run(from, to, tap);
                            let got: Vec<(usize, usize)> = (0..run.count)
                                .map(|i| {
                                    (run.position + i * run.position_step, run.element + i * run.element_step)
                                })
                                .collect();
                            let expected: Vec<(usize, usize)> = (from..to)
                                .filter_map(|position| Some((position, axis.element(position, tap)?)))
                                .collect();
                            assert_eq!(got, expected, "{axis:?} {from}..{to}, place {tap}");
                        }
                    }
                }
            }
        }
    }
}
