//! Copies of rows with small strides.
//!
//! Problem: if elements are near each other, a copy of one element at a time is bound by
//! instructions.
//! Technique: a separate loop for each small stride, which the compiler vectorizes. Rows of a few elements
//! have loops over many of them ([`super::short_rows`]).

use super::short_rows::{self, MAX_LENGTH, MIN_ROWS, Rows};
use crate::exec::simd::{Vectorized, dispatch};
use crate::layout::{Layout, Shape, next_row};

/// The largest stride that has a separate loop.
pub const MAX_STEP: usize = 4;

/// Copies the elements of a layout in row-major order, from the `start`-th on until `out` is full.
pub fn rows<const N: usize>(source: &[[u8; N]], layout: &Layout, start: usize, out: &mut [[u8; N]]) {
    if !out.is_empty() {
        dispatch(StridedRowsLoop { source, layout, start, out });
    }
}

struct StridedRowsLoop<'a, const N: usize> {
    source: &'a [[u8; N]],
    layout: &'a Layout,
    start: usize,
    out: &'a mut [[u8; N]],
}

impl<const N: usize> Vectorized for StridedRowsLoop<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let StridedRowsLoop { source, layout, start, mut out } = self;
        let Layout { shape, strides, offset } = layout;
        let Some(last) = shape.len().checked_sub(1) else {
            out.fill(source[*offset]);
            return;
        };
        let mut counts = Shape::from_elem(0, shape.len());
        let mut rest = start;
        for axis in (0..shape.len()).rev() {
            if rest == 0 {
                break;
            }
            counts[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        let mut first = *offset as isize + (0..last).map(|a| counts[a] as isize * strides[a]).sum::<isize>();
        let mut column = counts[last];
        let step = strides[last];
        let is_short = last > 0 && shape[last] <= MAX_LENGTH && shape[last - 1] >= MIN_ROWS;
        while !out.is_empty() {
            if is_short && column == 0 && shape[last] <= out.len() {
                let (axis, length) = (last - 1, shape[last]);
                let count = (shape[axis] - counts[axis]).min(out.len() / length);
                let (head, tail) = out.split_at_mut(count * length);
                let rows = Rows { first, stride: strides[axis], step };
                short_rows::copy(source, rows, length, head, length);
                out = tail;
                counts[axis] += count - 1;
                first += (count as isize - 1) * strides[axis];
                next_row(layout, &mut counts, &mut first);
                continue;
            }
            let run = out.len().min(shape[last] - column);
            let (head, tail) = out.split_at_mut(run);
            row(source, (first + column as isize * step) as usize, step, head);
            out = tail;
            column = 0;
            next_row(layout, &mut counts, &mut first);
        }
    }
}

/// Copies every `step`-th element from the first one on, backwards if `step` is negative.
#[inline(always)]
fn row<const N: usize>(source: &[[u8; N]], first: usize, step: isize, out: &mut [[u8; N]]) {
    match step {
        1 => out.copy_from_slice(&source[first..first + out.len()]),
        0 => out.fill(source[first]),
        // Writing upwards and reading downwards is faster than the other way around.
        -1 => {
            let source = &source[first + 1 - out.len()..=first];
            for (slot, &element) in out.iter_mut().zip(source.iter().rev()) {
                *slot = element;
            }
        }
        2 => copy_every::<N, 2>(&source[first..], out),
        3 => copy_every::<N, 3>(&source[first..], out),
        4 => copy_every::<N, 4>(&source[first..], out),
        _ => {
            let mut place = first as isize;
            for slot in out {
                *slot = source[place as usize];
                place += step;
            }
        }
    }
}

#[inline(always)]
fn copy_every<const N: usize, const STEP: usize>(source: &[[u8; N]], out: &mut [[u8; N]]) {
    let (groups, _) = source.as_chunks::<STEP>();
    let (whole, rest) = out.split_at_mut(groups.len().min(out.len()));
    for (slot, group) in whole.iter_mut().zip(groups) {
        *slot = group[0];
    }
    // The last group may have fewer than `STEP` elements.
    for (slot, element) in rest.iter_mut().zip(source[whole.len() * STEP..].iter().step_by(STEP)) {
        *slot = *element;
    }
}
