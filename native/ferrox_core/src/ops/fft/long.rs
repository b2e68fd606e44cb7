//! Transforms of long rows, on all threads.
//!
//! Problem: a transform of one row runs on one thread, over more memory than its cache holds.
//! Technique: the six-step algorithm (D. H. Bailey, FFTs in External or Hierarchical Memory,
//! 1990). A row of `a b` elements is a matrix of `a` rows and `b` columns: its columns are
//! transformed, each element is turned by a root of unity, the rows are transformed, and the result
//! is read column by column. Each step reads some columns at a time and writes densely, and is
//! shared out. The length alone decides on the steps, so that the bits are the same for any number
//! of threads.

use std::f64::consts::TAU;
use std::sync::Arc;

use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};

use crate::Error;
use crate::cost::Cost;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::parallel;

/// Shorter rows are transformed at once: in `benches/kernels.rs`, `fft_c128` of 2^16 elements takes
/// two threads as long in steps as it takes one at once, of 2^18 two thirds, and of 2^20 less. One
/// thread takes a fifth longer for these.
const LEAST: usize = 1 << 18;

/// Nor are those whose matrix has fewer rows.
const LEAST_ROWS: usize = 64;

/// Columns that are read side by side.
pub(super) const TOGETHER: usize = 8;

/// Elements of a line of the result that are written at a time.
pub(super) const TILE: usize = 64;

/// Elements of a column whose roots come from one.
const STEPS: usize = 8;

type Elements = [Complex<f64>];

/// A row to be transformed, and its result.
pub(super) trait Row: Sync {
    /// Elements from one on; those after the last are anything.
    fn read(&self, first: usize) -> [Complex<f64>; TOGETHER];
    /// Bytes of an element of the result.
    fn width(&self) -> usize;
    /// Writes elements of the result, at most `TILE`.
    fn write(&self, elements: &Elements, out: &mut [u8]);
    /// So many elements to compute with.
    fn memory(&self, length: usize) -> Result<Vec<Complex<f64>>, Error>;
}

/// How to transform rows of a length.
pub(super) struct Long {
    /// `a` and `b`.
    sizes: [usize; 2],
    plans: [Arc<dyn Fft<f64>>; 2],
    roots: Roots,
}

impl Long {
    /// None for a length that is short, or has no divisors for it.
    pub fn new(planner: &mut FftPlanner<f64>, length: usize, direction: FftDirection) -> Option<Self> {
        if length < LEAST {
            return None;
        }
        let a = (LEAST_ROWS..=length.isqrt()).rev().find(|a| length.is_multiple_of(*a))?;
        let sizes = [a, length / a];
        let plans = sizes.map(|size| planner.plan_fft(size, direction));
        Some(Long { sizes, plans, roots: Roots::new(length, direction) })
    }

    /// Writes the transform of a row to `out`, as much of it as that holds. `cost` is that of an
    /// element, nothing if the other threads have rows of their own.
    pub fn run(&self, row: &impl Row, out: &mut [u8], cost: Cost) -> Result<(), Error> {
        let ([a, b], [along_a, along_b]) = (self.sizes, &self.plans);
        let scratch = |plan: &Arc<dyn Fft<f64>>| row.memory(plan.get_inplace_scratch_len());
        let (mut columns, mut rows) = (row.memory(a * b)?, row.memory(a * b)?);

        let parts = columns.chunks_mut(TOGETHER * a).enumerate();
        parallel::try_each(a * b, cost, parts, |(i, part)| {
            let first = i * TOGETHER;
            turn(part, a, |place| row.read(place * b + first));
            let mut scratch = scratch(along_a)?;
            for (line, column) in part.chunks_exact_mut(a).zip(first..) {
                along_a.process_with_scratch(line, &mut scratch);
                vectorize(Turned { line, roots: &self.roots, column });
            }
            Ok(())
        })?;

        let parts = rows.chunks_mut(TOGETHER * b).enumerate();
        parallel::try_each(a * b, cost, parts, |(i, part)| {
            turn(part, b, |place| some(&columns[place * a + i * TOGETHER..]));
            let mut scratch = scratch(along_b)?;
            part.chunks_exact_mut(b).for_each(|line| along_b.process_with_scratch(line, &mut scratch));
            Ok(())
        })?;

        let width = row.width();
        let parts = out.chunks_mut(TOGETHER * a * width).enumerate();
        parallel::try_each(a * b, cost, parts, |(i, part)| {
            let mut tile = [Complex::ZERO; TOGETHER * TILE];
            for start in (0..a).step_by(TILE) {
                let count = TILE.min(a - start);
                turn(&mut tile, TILE, |k| some(&rows[(start + k.min(count - 1)) * b + i * TOGETHER..]));
                for (tile, out) in tile.chunks_exact(TILE).zip(part.chunks_mut(a * width)) {
                    let out = out.get_mut(start * width..).unwrap_or_default();
                    let count = count.min(out.len() / width);
                    row.write(&tile[..count], &mut out[..count * width]);
                }
            }
            Ok(())
        })
    }
}

/// The elements that others start with; zeros after the last.
#[inline(always)]
fn some(elements: &Elements) -> [Complex<f64>; TOGETHER] {
    match elements.first_chunk() {
        Some(some) => *some,
        None => std::array::from_fn(|i| elements.get(i).copied().unwrap_or_default()),
    }
}

/// Fills lines of `length`, at most `TOGETHER`, of which `read(place)` gives the elements of one
/// place.
#[inline(always)]
fn turn(all: &mut Elements, length: usize, read: impl Fn(usize) -> [Complex<f64>; TOGETHER]) {
    let mut lines: [&mut Elements; TOGETHER] = Default::default();
    let mut count = 0;
    for (line, chunk) in lines.iter_mut().zip(all.chunks_exact_mut(length)) {
        *line = chunk;
        count += 1;
    }
    if count < TOGETHER {
        for place in 0..length {
            lines[..count].iter_mut().zip(read(place)).for_each(|(line, z)| line[place] = z);
        }
        return;
    }
    let lines = lines.map(|line| &mut line[..length]);
    #[expect(clippy::needless_range_loop, reason = "of several lines")]
    for place in 0..length {
        let elements = read(place);
        for i in 0..TOGETHER {
            lines[i][place] = elements[i];
        }
    }
}

/// Roots of unity, as products of one of few and one of few others.
struct Roots {
    coarse: Vec<Complex<f64>>,
    fine: Vec<Complex<f64>>,
}

impl Roots {
    fn new(length: usize, direction: FftDirection) -> Self {
        let sign = if direction == FftDirection::Forward { -1.0 } else { 1.0 };
        let step = length.isqrt().next_power_of_two();
        let root = |i: usize| Complex::cis(sign * TAU * (i as f64 / length as f64));
        let coarse = (0..length.div_ceil(step)).map(|i| root(i * step)).collect();
        Roots { coarse, fine: (0..step).map(root).collect() }
    }

    /// The root of a power below the length.
    #[inline(always)]
    fn power(&self, i: usize) -> Complex<f64> {
        let step = self.fine.len();
        self.coarse[i / step] * self.fine[i % step]
    }
}

/// Multiplies each element of a column by the root of its row times the column.
struct Turned<'a> {
    line: &'a mut Elements,
    roots: &'a Roots,
    column: usize,
}

impl Vectorized for Turned<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Turned { line, roots, column } = self;
        let steps: [Complex<f64>; STEPS] = std::array::from_fn(|i| roots.power(i * column));
        for (i, part) in line.chunks_mut(STEPS).enumerate() {
            let first = roots.power(i * STEPS * column);
            for (z, step) in part.iter_mut().zip(steps) {
                *z *= first * step;
            }
        }
    }
}
