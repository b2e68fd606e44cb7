//! Transforms of long rows, on all threads.
//!
//! Problem: a transform of one row runs on one thread, over more memory than its cache holds.
//! Technique: the six-step algorithm (D. H. Bailey, FFTs in External or Hierarchical Memory, 1990).
//! A row of `a b` elements is a matrix of `a` rows and `b` columns: its columns are transformed,
//! each element is multiplied by a twiddle factor (a root of unity), the rows are transformed, and
//! the result is read column by column. Each step transposes some columns at a time and writes
//! densely, and is shared by the threads. The length alone decides on the steps, so that the bits
//! are the same for any number of threads.

use std::f64::consts::TAU;
use std::sync::Arc;

use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};

use crate::Error;
use crate::cost::Cost;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;

/// The length from which a row is transformed in six steps, which share it between threads. Another
/// length changes result bits. (`kernels`: fft_c128.)
const MIN_SIX_STEP_LENGTH: usize = 1 << 18;

/// The least number of rows of the matrix, for which rows are transformed in six steps.
const MIN_SIX_STEP_ROWS: usize = 64;

/// The number of columns that are transposed side by side.
pub(super) const FFT_COLUMNS: usize = 8;

/// The number of elements of a row of the result that are written at a time, from the stack.
pub(super) const FFT_TILE_ELEMENTS: usize = 64;

/// The number of consecutive twiddle factors that are products of one factor.
const TWIDDLES_PER_FACTOR: usize = 8;

type Elements = [Complex<f64>];

/// A row to be transformed, and its result.
pub(super) trait RowAccess: Sync {
    /// The elements from index `first` on; any values after the last element.
    fn read(&self, first: usize) -> [Complex<f64>; FFT_COLUMNS];
    /// The number of bytes in an element of the result.
    fn width(&self) -> usize;
    /// Writes elements of the result, at most `FFT_TILE_ELEMENTS`.
    fn write(&self, elements: &Elements, out: &mut [u8]);
    /// Allocates `length` elements.
    fn memory(&self, length: usize) -> Result<Vec<Complex<f64>>, Error>;
}

/// The plan for rows of a long length.
pub(super) struct SixStepPlan {
    /// The numbers of rows and columns, `a` and `b`.
    sizes: [usize; 2],
    plans: [Arc<dyn Fft<f64>>; 2],
    twiddles: Twiddles,
}

impl SixStepPlan {
    /// Returns `None` for a length that is too short or has no suitable divisors.
    pub fn new(planner: &mut FftPlanner<f64>, length: usize, direction: FftDirection) -> Option<Self> {
        if length < MIN_SIX_STEP_LENGTH {
            return None;
        }
        let a = (MIN_SIX_STEP_ROWS..=length.isqrt()).rev().find(|a| length.is_multiple_of(*a))?;
        let sizes = [a, length / a];
        let plans = sizes.map(|size| planner.plan_fft(size, direction));
        Some(SixStepPlan { sizes, plans, twiddles: Twiddles::new(length, direction) })
    }

    /// Writes the start of a row's transform to `out`, which it fills. `cost` is the cost of an
    /// element, or 0 if the other threads have rows of their own.
    pub fn run(&self, row: &impl RowAccess, out: &mut [u8], cost: Cost) -> Result<(), Error> {
        let ([a, b], [along_a, along_b]) = (self.sizes, &self.plans);
        let scratch = |plan: &Arc<dyn Fft<f64>>| row.memory(plan.get_inplace_scratch_len());
        let (mut columns, mut rows) = (row.memory(a * b)?, row.memory(a * b)?);

        let parts = columns.chunks_mut(FFT_COLUMNS * a).enumerate();
        parallel::try_each(a * b, cost, parts, |(part_index, part)| {
            let first = part_index * FFT_COLUMNS;
            transpose_into(part, a, |i| row.read(i * b + first));
            let mut scratch = scratch(along_a)?;
            for (line, column) in part.chunks_exact_mut(a).zip(first..) {
                along_a.process_with_scratch(line, &mut scratch);
                vectorize(TwiddleLoop { line, twiddles: &self.twiddles, column });
            }
            Ok(())
        })?;

        let parts = rows.chunks_mut(FFT_COLUMNS * b).enumerate();
        parallel::try_each(a * b, cost, parts, |(part_index, part)| {
            transpose_into(part, b, |i| first_elements(&columns[i * a + part_index * FFT_COLUMNS..]));
            let mut scratch = scratch(along_b)?;
            part.chunks_exact_mut(b).for_each(|line| along_b.process_with_scratch(line, &mut scratch));
            Ok(())
        })?;

        let width = row.width();
        let parts = out.chunks_mut(FFT_COLUMNS * a * width).enumerate();
        parallel::try_each(a * b, cost, parts, |(i, part)| {
            let mut tile = [Complex::ZERO; FFT_COLUMNS * FFT_TILE_ELEMENTS];
            for start in (0..a).step_by(FFT_TILE_ELEMENTS) {
                let count = FFT_TILE_ELEMENTS.min(a - start);
                transpose_into(&mut tile, FFT_TILE_ELEMENTS, |k| {
                    first_elements(&rows[(start + k.min(count - 1)) * b + i * FFT_COLUMNS..])
                });
                for (tile, out) in tile.chunks_exact(FFT_TILE_ELEMENTS).zip(part.chunks_mut(a * width)) {
                    let out = out.get_mut(start * width..).unwrap_or_default();
                    let count = count.min(out.len() / width);
                    row.write(&tile[..count], &mut out[..count * width]);
                }
            }
            Ok(())
        })
    }
}

/// The first elements, and zeros after the last.
#[inline(always)]
fn first_elements(elements: &Elements) -> [Complex<f64>; FFT_COLUMNS] {
    match elements.first_chunk() {
        Some(first) => *first,
        None => std::array::from_fn(|i| elements.get(i).copied().unwrap_or_default()),
    }
}

/// Fills at most `FFT_COLUMNS` lines of `length` elements; `read(i)` returns the elements at
/// index `i` of the lines.
#[inline(always)]
fn transpose_into(all: &mut Elements, length: usize, read: impl Fn(usize) -> [Complex<f64>; FFT_COLUMNS]) {
    let mut lines: [&mut Elements; FFT_COLUMNS] = Default::default();
    let mut count = 0;
    for (line, chunk) in lines.iter_mut().zip(all.chunks_exact_mut(length)) {
        *line = chunk;
        count += 1;
    }
    if count < FFT_COLUMNS {
        for i in 0..length {
            lines[..count].iter_mut().zip(read(i)).for_each(|(line, z)| line[i] = z);
        }
        return;
    }
    let lines = lines.map(|line| &mut line[..length]);
    #[expect(clippy::needless_range_loop, reason = "of several lines")]
    for i in 0..length {
        let elements = read(i);
        for line in 0..FFT_COLUMNS {
            lines[line][i] = elements[line];
        }
    }
}

/// The roots of unity of a length: each is the product of a coarse and a fine one, so that about
/// twice the square root of the length are stored.
struct Twiddles {
    coarse: Vec<Complex<f64>>,
    fine: Vec<Complex<f64>>,
}

impl Twiddles {
    fn new(length: usize, direction: FftDirection) -> Self {
        let sign = if direction == FftDirection::Forward { -1.0 } else { 1.0 };
        let step = length.isqrt().next_power_of_two();
        let root = |i: usize| Complex::cis(sign * TAU * (i as f64 / length as f64));
        let coarse = (0..length.div_ceil(step)).map(|i| root(i * step)).collect();
        Twiddles { coarse, fine: (0..step).map(root).collect() }
    }

    /// The root to the power of `i`, which is less than the length.
    #[inline(always)]
    fn power(&self, i: usize) -> Complex<f64> {
        let step = self.fine.len();
        self.coarse[i / step] * self.fine[i % step]
    }
}

/// Multiplies each element of a column by its twiddle factor, the root to the power of row times
/// column.
struct TwiddleLoop<'a> {
    line: &'a mut Elements,
    twiddles: &'a Twiddles,
    column: usize,
}

impl Vectorized for TwiddleLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let TwiddleLoop { line, twiddles, column } = self;
        let steps: [Complex<f64>; TWIDDLES_PER_FACTOR] = std::array::from_fn(|i| twiddles.power(i * column));
        for (i, part) in line.chunks_mut(TWIDDLES_PER_FACTOR).enumerate() {
            let first = twiddles.power(i * TWIDDLES_PER_FACTOR * column);
            for (z, step) in part.iter_mut().zip(steps) {
                *z *= first * step;
            }
        }
    }
}
