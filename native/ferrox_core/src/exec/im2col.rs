//! The loops of convolutions.
//!
//! Problem: a convolution is a product of matrices whose one side, the patches
//! of the input that the kernel meets, is as many times larger than the input
//! as the kernel has places. Technique: patches are laid out for a block of the
//! result at a time, in whichever order reads the input in runs: a row for each
//! channel and place where positions lie side by side, a row for each position
//! where channels do. Where a product would have next to nothing to do with a
//! patch, as in depthwise convolutions, the input is multiplied where it lies.
//! Floats whose positions lie side by side have no patches: see `ops/conv/planes.rs`.

use crate::exec::gemm::ring::Ring;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::layout::Shape;

/// A spatial axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Elements of the input.
    pub size: usize,
    /// Elements of the result.
    pub positions: usize,
    /// Places of the kernel.
    pub places: usize,
    /// From one position to the next, in elements of the padded input.
    pub stride: usize,
    /// From one place of the kernel to the next.
    pub kernel_dilation: usize,
    /// From one element of the input to the next.
    pub input_dilation: usize,
    /// Padding before the first element, negative where some are left out.
    pub low: isize,
    /// From one element of the input to the next in memory.
    pub step: isize,
}

/// Some positions, and the elements of the input that they meet:
/// `positions` from `position` on, `every` so many, elements `skip` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    position: usize,
    every: usize,
    count: usize,
    element: usize,
    skip: usize,
}

impl Axis {
    /// The element of the input that a place of the kernel meets.
    #[inline]
    fn element(&self, position: usize, place: usize) -> Option<usize> {
        let at = (position * self.stride + place * self.kernel_dilation) as isize - self.low;
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

    /// The positions `from..to` where a place of the kernel meets an element.
    fn run(&self, from: usize, to: usize, place: usize) -> Run {
        let none = Run { position: to, every: 1, count: 0, element: 0, skip: 1 };
        if self.size == 0 {
            return none;
        }
        let common = gcd(self.stride, self.input_dilation);
        // Positions meet elements every so many.
        let every = self.input_dilation / common;
        let start = (place * self.kernel_dilation) as isize - self.low;
        let least = (-start).max(0).cast_unsigned().div_ceil(self.stride).max(from);
        let last = ((self.size - 1) * self.input_dilation) as isize - start;
        if last < 0 {
            return none;
        }
        let end = (last.cast_unsigned() / self.stride + 1).min(to);
        let meets = |position: &usize| {
            ((position * self.stride) as isize + start).cast_unsigned().is_multiple_of(self.input_dilation)
        };
        let Some(position) = (least..end.min(least.saturating_add(every))).find(meets) else {
            return none;
        };
        let at = ((position * self.stride) as isize + start).cast_unsigned();
        Run {
            position,
            every,
            count: (end - position).div_ceil(every),
            element: at / self.input_dilation,
            skip: self.stride / common,
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The input that a group of filters meets, of one element of the batch.
#[derive(Clone, Copy, Debug)]
pub struct Patches<'a> {
    /// The spatial axes.
    pub axes: &'a [Axis],
    /// Channels, and the distance from one to the next in memory.
    pub channels: (usize, isize),
    /// The bytes that hold the input.
    pub bytes: &'a [u8],
    /// The index of the first element.
    pub offset: usize,
}

/// The index of a place or position, from its number in row-major order.
#[inline]
fn index_in(axes: &[Axis], dim: fn(&Axis) -> usize, mut number: usize, index: &mut [usize]) {
    for (axis, slot) in axes.iter().zip(index).rev() {
        let size = dim(axis);
        *slot = number % size;
        number /= size;
    }
}

impl Patches<'_> {
    /// Places of the kernel.
    #[must_use]
    pub fn places(&self) -> usize {
        self.axes.iter().map(|axis| axis.places).product()
    }

    /// Fills rows from `first` on, one a channel and place, with the elements
    /// that positions `from..to` meet.
    pub fn by_place(&self, width: usize, first: usize, positions: (usize, usize), out: &mut [u8]) {
        match width {
            1 => self.by_place_of::<1>(first, positions, out),
            2 => self.by_place_of::<2>(first, positions, out),
            4 => self.by_place_of::<4>(first, positions, out),
            8 => self.by_place_of::<8>(first, positions, out),
            16 => self.by_place_of::<16>(first, positions, out),
            _ => unreachable!("no type is {width} bytes wide"),
        }
    }

    fn by_place_of<const N: usize>(&self, first: usize, (from, to): (usize, usize), out: &mut [u8]) {
        let input = self.bytes.as_chunks::<N>().0;
        let places = self.places();
        let mut place = vec![0; self.axes.len()];
        for (row, out) in out.as_chunks_mut::<N>().0.chunks_exact_mut(to - from).enumerate() {
            let (channel, number) = ((first + row) / places, (first + row) % places);
            index_in(self.axes, |axis| axis.places, number, &mut place);
            let start = self.offset as isize + channel as isize * self.channels.1;
            self.row(&place, start, (from, to), |stretch, meeting| {
                let out = &mut out[stretch.0 - from..stretch.1 - from];
                let Some((run, start, step)) = meeting else {
                    out.fill([0; N]);
                    return;
                };
                let Run { position, every, count, .. } = run;
                let lead = position.min(out.len());
                out[..lead].fill([0; N]);
                let out = &mut out[lead..];
                if every == 1 && step == 1 {
                    let (met, rest) = out.split_at_mut(count);
                    met.copy_from_slice(&input[start as usize..][..count]);
                    rest.fill([0; N]);
                    return;
                }
                if every == 1 {
                    let (met, rest) = out.split_at_mut(count);
                    rest.fill([0; N]);
                    // Of a known length, pairs are taken apart in vectors.
                    let pairs = if step == 2 { input[start as usize..].as_chunks::<2>().0 } else { &[] };
                    if pairs.len() >= count {
                        met.iter_mut().zip(pairs).for_each(|(slot, pair)| *slot = pair[0]);
                        return;
                    }
                } else {
                    out.fill([0; N]);
                }
                for (i, slot) in out.iter_mut().step_by(every).take(count).enumerate() {
                    *slot = input[(start + i as isize * step) as usize];
                }
            });
        }
    }

    /// Calls `visit` for each stretch of positions `from..to` along the last
    /// axis: its bounds, and the run that a place of the kernel meets, its
    /// positions counted from the stretch's first, with the index of its first
    /// element and the distance to the next.
    #[inline]
    fn row(
        &self,
        place: &[usize],
        start: isize,
        (from, to): (usize, usize),
        mut visit: impl FnMut((usize, usize), Option<(Run, isize, isize)>),
    ) {
        let Some((last, outer)) = self.axes.split_last() else {
            let run = Run { position: 0, every: 1, count: 1, element: 0, skip: 1 };
            visit((from, to), Some((run, start, 1)));
            return;
        };
        let (mut position, mut index) = (from, Shape::from_elem(0, outer.len()));
        index_in(outer, |axis| axis.positions, from / last.positions, &mut index);
        let mut column = from % last.positions;
        let whole = last.run(0, last.positions, place[outer.len()]);
        while position < to {
            let length = (last.positions - column).min(to - position);
            let base = outer.iter().zip(&index).zip(place).try_fold(start, |base, ((axis, &i), &place)| {
                Some(base + axis.element(i, place)? as isize * axis.step)
            });
            let meeting = base.and_then(|base| {
                let run = if length == last.positions {
                    whole
                } else {
                    last.run(column, column + length, place[outer.len()])
                };
                let first = base + run.element as isize * last.step;
                let run = Run { position: run.position - column, ..run };
                (run.count > 0).then_some((run, first, run.skip as isize * last.step))
            });
            visit((position, position + length), meeting);
            position += length;
            column = 0;
            count_up(outer, |axis| axis.positions, &mut index);
        }
    }

    /// Fills rows, one a position from `first` on, with the elements that the
    /// places of the kernel meet: the channels of each place side by side.
    pub fn by_position(&self, width: usize, first: usize, out: &mut [u8]) {
        match width {
            1 => self.by_position_of::<1>(first, out),
            2 => self.by_position_of::<2>(first, out),
            4 => self.by_position_of::<4>(first, out),
            8 => self.by_position_of::<8>(first, out),
            16 => self.by_position_of::<16>(first, out),
            _ => unreachable!("no type is {width} bytes wide"),
        }
    }

    fn by_position_of<const N: usize>(&self, first: usize, out: &mut [u8]) {
        let input = self.bytes.as_chunks::<N>().0;
        let (channels, step) = self.channels;
        let rank = self.axes.len();
        let (mut position, mut place) = (vec![0; rank], vec![0; rank]);
        index_in(self.axes, |axis| axis.positions, first, &mut position);
        for out in out.as_chunks_mut::<N>().0.chunks_exact_mut(self.places() * channels) {
            place.fill(0);
            for out in out.chunks_exact_mut(channels) {
                let met = self.axes.iter().zip(&position).zip(&place).try_fold(
                    self.offset as isize,
                    |index, ((axis, &position), &place)| {
                        Some(index + axis.element(position, place)? as isize * axis.step)
                    },
                );
                match met {
                    Some(start) if step == 1 => {
                        out.copy_from_slice(&input[start as usize..][..channels]);
                    }
                    Some(start) => {
                        for (channel, slot) in out.iter_mut().enumerate() {
                            *slot = input[(start + channel as isize * step) as usize];
                        }
                    }
                    None => out.fill([0; N]),
                }
                count_up(self.axes, |axis| axis.places, &mut place);
            }
            count_up(self.axes, |axis| axis.positions, &mut position);
        }
    }
}

/// The next index in row-major order.
#[inline]
pub fn count_up(axes: &[Axis], dim: fn(&Axis) -> usize, index: &mut [usize]) {
    for (axis, slot) in axes.iter().zip(index).rev() {
        *slot += 1;
        if *slot < dim(axis) {
            return;
        }
        *slot = 0;
    }
}

/// Multiplies one filter, a dense row, with the input where it lies: one lane
/// for each position. The sum of a position is added up in the order of the
/// filter.
pub fn direct<T: Ring>(patches: &Patches<'_>, filter: &[u8], out: &mut [u8]) {
    let (input, out) = (T::view(patches.bytes), T::view_mut(out));
    out.fill(T::ZERO.store());
    let places = patches.places();
    let positions = out.len();
    let mut place = vec![0; patches.axes.len()];
    for (number, &weight) in T::view(filter).iter().enumerate() {
        let (channel, number) = (number / places, number % places);
        index_in(patches.axes, |axis| axis.places, number, &mut place);
        let start = patches.offset as isize + channel as isize * patches.channels.1;
        patches.row(&place, start, (0, positions), |stretch, meeting| {
            if let Some((run, first, step)) = meeting {
                let out = &mut out[stretch.0 + run.position..stretch.1];
                let Run { every, count, .. } = run;
                vectorize(Axpy::<T> { out, every, count, input, first, step, weight });
            }
        });
        let padded = T::ZERO.add_product(T::load(weight), T::ZERO);
        if !padded.is_zero() {
            spoil(patches, &place, T::load(weight), out);
        }
    }
}

/// Padding is zero, and gives NaN with an infinite or NaN weight.
#[cold]
fn spoil<T: Ring>(patches: &Patches<'_>, place: &[usize], weight: T, out: &mut [T::Bytes]) {
    let mut position = vec![0; patches.axes.len()];
    for slot in out {
        let mut axes = patches.axes.iter().zip(&position).zip(place);
        if axes.any(|((axis, &position), &place)| axis.element(position, place).is_none()) {
            *slot = T::load(*slot).add_product(weight, T::ZERO).store();
        }
        count_up(patches.axes, |axis| axis.positions, &mut position);
    }
}

/// Adds a multiple of elements of the input.
struct Axpy<'a, T: Ring> {
    out: &'a mut [T::Bytes],
    every: usize,
    count: usize,
    input: &'a [T::Bytes],
    first: isize,
    step: isize,
    weight: T::Bytes,
}

impl<T: Ring> Vectorized for Axpy<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let weight = T::load(self.weight);
        if self.step == 1 && self.every == 1 {
            let input = &self.input[self.first as usize..][..self.count];
            for (sum, &x) in self.out.iter_mut().zip(input) {
                *sum = T::load(*sum).add_product(weight, T::load(x)).store();
            }
            return;
        }
        for (i, sum) in self.out.iter_mut().step_by(self.every).take(self.count).enumerate() {
            let x = self.input[(self.first + i as isize * self.step) as usize];
            *sum = T::load(*sum).add_product(weight, T::load(x)).store();
        }
    }
}

/// Copies a dense matrix of `columns` to where its elements go.
pub fn scatter(width: usize, matrix: &[u8], columns: usize, out: &mut [u8], strides: [usize; 2]) {
    match width {
        1 => scatter_of::<1>(matrix, columns, out, strides),
        2 => scatter_of::<2>(matrix, columns, out, strides),
        4 => scatter_of::<4>(matrix, columns, out, strides),
        8 => scatter_of::<8>(matrix, columns, out, strides),
        16 => scatter_of::<16>(matrix, columns, out, strides),
        _ => unreachable!("no type is {width} bytes wide"),
    }
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
                    for place in 0..3 {
                        let axis = Axis {
                            size,
                            positions: 9,
                            places: 3,
                            stride,
                            kernel_dilation: 2,
                            input_dilation: dilation,
                            low,
                            step: 1,
                        };
                        for (from, to) in [(0, 9), (2, 7), (8, 9)] {
                            let run = axis.run(from, to, place);
                            let got: Vec<(usize, usize)> = (0..run.count)
                                .map(|i| (run.position + i * run.every, run.element + i * run.skip))
                                .collect();
                            let expected: Vec<(usize, usize)> = (from..to)
                                .filter_map(|position| Some((position, axis.element(position, place)?)))
                                .collect();
                            assert_eq!(got, expected, "{axis:?} {from}..{to}, place {place}");
                        }
                    }
                }
            }
        }
    }
}
