//! Copies of elements that don't lie next to each other.
//!
//! Problem: an element at a time, a copy is bound by instructions where the next
//! element is near. Technique: rows of a small step are loops that the compiler
//! makes vectors of.

use std::convert::Infallible;

use crate::exec::copy::transpose;
use crate::exec::memory::streaming_stores;
use crate::exec::simd;
use crate::exec::simd::{Vectorized, dispatch};
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::{BYTE, Cost};
use crate::layout::{Layout, Shape, collapse, gather, next_row, unit};

/// Steps up to this one have loops of their own.
pub const NEAR: usize = 4;

/// What it costs where the next element lies far away.
pub const FAR_COST: Cost = 600;

/// So few elements are copied before it is known whether their axes are fewer.
const FEW: usize = 256;

/// Copies all elements of a layout, `width` bytes each, in row-major order.
pub fn arrange(width: usize, bytes: &[u8], layout: &Layout, out: &mut [u8]) {
    let size = layout.size();
    if size == 0 {
        return;
    }
    if size <= FEW {
        return gather(width, bytes, layout, 0, out);
    }
    let (shape, strides) = collapse(&layout.shape, &layout.strides);
    let layout = Layout { shape, strides, offset: layout.offset };
    let step = layout.strides.last().map_or(1, |step| step.unsigned_abs());
    let unit = unit(&layout);
    if unit == 1 && step <= NEAR {
        // What lies between the elements is read with them.
        let cost = BYTE * ((step.max(1) + 1) * width) as Cost;
        let Ok(()) = streaming_stores::try_fill::<Infallible>(out, size, cost, 0, |start, part| {
            gather(width, bytes, &layout, start, part);
            Ok(())
        });
        return;
    }
    if unit == 1 {
        return parallel::fill(out, size, FAR_COST, |start, part| gather(width, bytes, &layout, start, part));
    }
    let together = (simd::CACHE_LINE_BYTES / width).max(1);
    parallel::fill_together(
        out,
        size / unit,
        parallel::work(unit, transpose::COST),
        together,
        |start, part| {
            gather(width, bytes, &layout, start * unit, part);
        },
    );
}

/// Copies elements `start..` of a layout, in row-major order, until `out` is full.
pub fn rows<const N: usize>(source: &[[u8; N]], layout: &Layout, start: usize, out: &mut [[u8; N]]) {
    if !out.is_empty() {
        dispatch(Rows { source, layout, start, out });
    }
}

struct Rows<'a, const N: usize> {
    source: &'a [[u8; N]],
    layout: &'a Layout,
    start: usize,
    out: &'a mut [[u8; N]],
}

impl<const N: usize> Vectorized for Rows<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Rows { source, layout, start, mut out } = self;
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
        while !out.is_empty() {
            let run = out.len().min(shape[last] - column);
            let (head, tail) = out.split_at_mut(run);
            row(source, (first + column as isize * step) as usize, step, head);
            out = tail;
            column = 0;
            next_row(layout, &mut counts, &mut first);
        }
    }
}

/// Copies every `step`-th element from the first one on, backwards if `step` is
/// negative.
#[inline(always)]
fn row<const N: usize>(source: &[[u8; N]], first: usize, step: isize, out: &mut [[u8; N]]) {
    match step {
        1 => out.copy_from_slice(&source[first..first + out.len()]),
        0 => out.fill(source[first]),
        // What is written upwards is twice as fast as what is written downwards.
        -1 => {
            let source = &source[first + 1 - out.len()..=first];
            for (slot, &element) in out.iter_mut().zip(source.iter().rev()) {
                *slot = element;
            }
        }
        2 => every::<N, 2>(&source[first..], out),
        3 => every::<N, 3>(&source[first..], out),
        4 => every::<N, 4>(&source[first..], out),
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
fn every<const N: usize, const STEP: usize>(source: &[[u8; N]], out: &mut [[u8; N]]) {
    let (groups, _) = source.as_chunks::<STEP>();
    let (whole, rest) = out.split_at_mut(groups.len().min(out.len()));
    for (slot, group) in whole.iter_mut().zip(groups) {
        *slot = group[0];
    }
    // The last group may lack what comes after its first element.
    for (slot, element) in rest.iter_mut().zip(source[whole.len() * STEP..].iter().step_by(STEP)) {
        *slot = *element;
    }
}
