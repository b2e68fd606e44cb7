//! Products of a matrix of narrower elements than f32 with a vector of f32.
//!
//! Problem: to convert a matrix takes longer than to multiply it, and twice or four times its
//! memory. Technique: a few rows at a time are converted and multiplied, before they leave the
//! cache. The bits are those of a matrix that is converted before.

use std::collections::TryReserveError;

use crate::dtype::Lane;
use crate::exec::elementwise::Convert;
use crate::exec::matmul::{self, STEPS};
use crate::exec::matvec::{self, ROWS};
use crate::exec::parallel::{self, Cost};
use crate::exec::simd::{Vectorized, dispatch as vectorize};

const WIDTH: usize = size_of::<f32>();

/// Bytes of a line of memory: rows that begin with one are read faster.
const LINE: usize = 64;

/// Elements that are converted at a time, rows permitting: half of a first-level cache.
const TOGETHER: usize = 4096;

/// Elements of a row that are converted before those of the next.
const PIECE: usize = 512;

/// What converting and multiplying an element costs.
const ELEMENT: Cost = 100;

/// A matrix to convert.
#[derive(Clone, Copy)]
pub struct Narrow<'a> {
    /// From the first element on.
    pub bytes: &'a [u8],
    /// Bytes of an element.
    pub width: usize,
    /// Elements from a row or a column, which lies densely, to the next.
    pub stride: usize,
    /// Makes f32 of its elements.
    pub convert: Convert,
}

impl Narrow<'_> {
    /// Converts as many elements as `out` holds.
    fn load(&self, first: usize, out: &mut [u8]) {
        (self.convert)(&self.bytes[first * self.width..][..out.len() / WIDTH * self.width], out);
    }
}

/// `out[i]` is the sum of `matrix[i, j] * vector[j]`, for a matrix whose rows lie densely. `alone`
/// if others run beside it.
///
/// # Errors
///
/// If there is no memory for a few rows.
pub fn rows(matrix: Narrow<'_>, vector: &[u8], out: &mut [u8], alone: bool) -> Result<(), TryReserveError> {
    let (length, apart) = (vector.len(), vector.len().next_multiple_of(LINE));
    let together = (TOGETHER * WIDTH / apart).max(1).next_multiple_of(ROWS);
    parallel::try_fill(out, out.len() / WIDTH, cost(vector, alone), |first, out| {
        let mut memory = Vec::new();
        memory.try_reserve_exact(together * apart + LINE)?;
        memory.resize(together * apart + LINE, 0);
        let start = memory.as_ptr().align_offset(LINE).min(LINE);
        let buffer = &mut memory[start..][..together * apart];
        for (group, out) in out.chunks_mut(together * WIDTH).enumerate() {
            let first = first + group * together;
            for (i, row) in buffer.chunks_exact_mut(apart).take(out.len() / WIDTH).enumerate() {
                matrix.load((first + i) * matrix.stride, &mut row[..length]);
            }
            matvec::rows_alone::<f32>(apart / WIDTH, buffer, vector, out);
        }
        Ok(())
    })
}

/// As `rows`, for a matrix whose columns lie densely.
///
/// # Errors
///
/// As `rows`.
pub fn columns(
    matrix: Narrow<'_>,
    vector: &[u8],
    out: &mut [u8],
    alone: bool,
) -> Result<(), TryReserveError> {
    matvec::in_chunks::<f32>(vector, out, cost(vector, alone), |first, factors, column, out| {
        let mut buffer = [[0; PIECE * WIDTH]; STEPS];
        out.fill(0);
        for (group, factors) in factors.chunks(STEPS * WIDTH).enumerate() {
            for (piece, out) in out.chunks_mut(PIECE * WIDTH).enumerate() {
                for (i, row) in buffer.iter_mut().take(factors.len() / WIDTH).enumerate() {
                    let start = (first + group * STEPS + i) * matrix.stride;
                    matrix.load(start + column + piece * PIECE, &mut row[..out.len()]);
                }
                vectorize(Add { factors, rows: buffer.as_flattened(), out });
            }
        }
    })
}

/// What an element of the result costs.
fn cost(vector: &[u8], alone: bool) -> Cost {
    if alone { 0 } else { ELEMENT * (vector.len() / WIDTH) as Cost }
}

/// Adds up rows `PIECE` elements apart, each times its factor.
struct Add<'a> {
    factors: &'a [u8],
    rows: &'a [u8],
    out: &'a mut [u8],
}

impl Vectorized for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (factors, rows, out) = (f32::view(self.factors), f32::view(self.rows), f32::view_mut(self.out));
        matmul::add_to::<f32>(factors, rows, PIECE, out);
    }
}
