//! Functions of f64 that look up tables, have two arguments, or leave some arguments to branches, in
//! loops that vectorize. `f64_functions` has the others.
//!
//! Problem: a table and a branch both keep a loop from being vectorized. Technique: a chunk of
//! elements goes through loops that vectorize. One finds the index of each element's table row, a
//! scalar loop copies the rows, and another one computes the results. If an argument needs a branch,
//! its result is NaN, and the function is then computed for this element alone.
//!
//! `exp`, `log`, `pow`, `sin` and `cos` take the same steps in the same order as glibc's, with fused
//! multiply-add where glibc fuses on a processor that has it. So their results are those of `:math`
//! where Erlang runs on such a glibc, as of `Nx.BinaryBackend`. As in `f64_functions`, all is plain
//! arithmetic: no C library is called, and the bits are the same on every processor and system.

#![allow(clippy::inline_always, reason = "the loops vectorize only when the whole function is in their body")]

mod exponential;
mod large_angle;
mod sine;
mod tables;

use std::marker::PhantomData;

pub(in crate::ops) use self::exponential::{Exp, Log, Pow};
pub(in crate::ops) use self::sine::{Cos, Sin};
use crate::Fault;
use crate::cost::MIN_ELEMENTS_FOR_F64_CHUNKS;
use crate::dtype::Lane;
use crate::exec::elementwise::{KERNEL_CHUNK_ELEMENTS, Operand};
use crate::exec::simd::{Aligned, Vectorized, dispatch as vectorize, dispatch_element};
use crate::ops::math::f32_functions::{Arithmetic, HardwareFma, SoftwareFma, TWO_52};
use crate::ops::math::f64_functions::circular;
use crate::ops::scalar::{element_of, word_of};

/// An f64 as tensors store it.
type F64Bytes = <f64 as Lane>::Bytes;

/// A function of one or two f64. A function of one argument ignores the second one.
pub(in crate::ops) trait Function: Sized + 'static {
    /// Computes the function of any arguments.
    fn apply<A: Arithmetic>(x: f64, y: f64) -> f64;

    /// Computes the same results for all elements, on a processor with fused multiply-add.
    fn compute_chunks(chunks: Chunks<'_, Self>);
}

/// The arguments and the results of a loop. A scalar argument has an empty slice in `x` or `y`, and
/// fills a chunk in `repeated`.
pub(in crate::ops) struct Chunks<'a, F> {
    x: &'a [F64Bytes],
    y: &'a [F64Bytes],
    repeated: [&'a [F64Bytes; KERNEL_CHUNK_ELEMENTS]; 2],
    out: &'a mut [F64Bytes],
    function: PhantomData<F>,
}

/// A chunk of `x`, of `y` and of `out`.
type Chunk<'a> = (&'a [F64Bytes], &'a [F64Bytes], &'a mut [F64Bytes]);

impl<'a, F: Function> Chunks<'a, F> {
    /// Iterates over the chunks of `x`, `y` and `out`. When a chunk is computed, the caller calls
    /// [`replace_nans`]. Loops over elements can't be in closures, because a closure is not
    /// compiled for the instruction set of its caller.
    #[inline(always)]
    fn into_chunks(self) -> impl Iterator<Item = Chunk<'a>> {
        let Chunks { x, y, repeated, out, .. } = self;
        out.chunks_mut(KERNEL_CHUNK_ELEMENTS).enumerate().map(move |(k, out)| {
            let range = k * KERNEL_CHUNK_ELEMENTS..k * KERNEL_CHUNK_ELEMENTS + out.len();
            let [x, y] = [(x, repeated[0]), (y, repeated[1])]
                .map(|(x, repeated)| x.get(range.clone()).unwrap_or(&repeated[..out.len()]));
            (x, y, out)
        })
    }
}

/// Computes each result that is NaN again, by branches.
#[inline(always)]
fn replace_nans<F: Function>(x: &[F64Bytes], y: &[F64Bytes], out: &mut [F64Bytes]) {
    // The loop has no early exit, so that it vectorizes.
    if out.iter().fold(false, |any, &out| any | f64::load(out).is_nan()) {
        for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
            if f64::load(*out).is_nan() {
                *out = element::<F>(f64::load(x), f64::load(y)).store();
            }
        }
    }
}

/// The table rows for the elements of a chunk, and the index of each row.
struct TableRows<R> {
    rows: Aligned<[R; KERNEL_CHUNK_ELEMENTS]>,
    indices: Aligned<[u32; KERNEL_CHUNK_ELEMENTS]>,
}

impl<R: Copy> TableRows<R> {
    #[inline(always)]
    fn new(row: R) -> Self {
        TableRows {
            rows: Aligned([row; KERNEL_CHUNK_ELEMENTS]),
            indices: Aligned([0; KERNEL_CHUNK_ELEMENTS]),
        }
    }

    /// Copies the rows of `table` whose indices are the low bits of `needed`.
    #[inline(always)]
    fn look_up<const ROWS: usize>(
        &mut self,
        table: &[R; ROWS],
        needed: impl ExactSizeIterator<Item = u64>,
    ) -> &[R] {
        let n = needed.len();
        let (indices, rows) = (&mut self.indices.0[..n], &mut self.rows.0[..n]);
        for (to, index) in indices.iter_mut().zip(needed) {
            *to = (index % ROWS as u64) as u32;
        }
        for (row, &i) in rows.iter_mut().zip(&*indices) {
            *row = table[i as usize % ROWS];
        }
        rows
    }
}

/// Returns the row of `table` whose index is the low bits of `needed`.
#[inline(always)]
fn row<R: Copy, const ROWS: usize>(table: &[R; ROWS], needed: u64) -> R {
    table[needed as usize % ROWS]
}

/// The computation of a function for one element.
struct Element<F> {
    x: f64,
    y: f64,
    function: PhantomData<F>,
}

impl<F: Function> Vectorized for Element<F> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        F::apply::<HardwareFma>(self.x, self.y)
    }

    #[inline(always)]
    fn run_unfused(self) -> f64 {
        F::apply::<SoftwareFma>(self.x, self.y)
    }
}

/// Computes a function of one element.
#[inline]
pub(in crate::ops) fn element<F: Function>(x: f64, y: f64) -> f64 {
    dispatch_element(Element::<F> { x, y, function: PhantomData })
}

/// Computes the sine and the cosine of one element.
pub(in crate::ops) fn sin_cos(x: f64) -> (f64, f64) {
    dispatch_element(sine::SineAndCosine(x))
}

/// The kernel of a function of one element.
pub(in crate::ops) fn scalar<F: Function>(x: u64, y: u64) -> u64 {
    word_of(element::<F>(element_of(x), element_of(y)))
}

struct ChunkLoop<'a, 'b, F> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
    function: PhantomData<F>,
}

/// The elements of the first and the last operand, none of a scalar, and the value of the scalar.
#[inline(always)]
fn views<'a>(operands: &[Operand<'a>]) -> [(&'a [F64Bytes], F64Bytes); 2] {
    [operands[0], operands[operands.len() - 1]].map(|operand| match operand {
        Operand::Slice(bytes) => (f64::view(bytes), [0; 8]),
        Operand::Scalar(bytes) => (&[][..], f64::view(bytes)[0]),
    })
}

impl<F: Function> ChunkLoop<'_, '_, F> {
    fn run_one_by_one(self) {
        let [(x, scalar_x), (y, scalar_y)] = views(self.operands);
        let one = |x: F64Bytes, y: F64Bytes| element::<F>(f64::load(x), f64::load(y)).store();
        let out = f64::view_mut(self.out);
        if x.is_empty() && y.is_empty() {
            return out.fill(one(scalar_x, scalar_y));
        }
        for (i, out) in out.iter_mut().enumerate() {
            *out = one(*x.get(i).unwrap_or(&scalar_x), *y.get(i).unwrap_or(&scalar_y));
        }
    }
}

impl<F: Function> Vectorized for ChunkLoop<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let is_scalar = self.operands.iter().all(|operand| matches!(operand, Operand::Scalar(_)));
        if is_scalar || self.out.len() < 8 * MIN_ELEMENTS_FOR_F64_CHUNKS {
            return self.run_one_by_one();
        }
        let [(x, scalar_x), (y, scalar_y)] = views(self.operands);
        let repeated = [scalar_x, scalar_y].map(|value| [value; KERNEL_CHUNK_ELEMENTS]);
        F::compute_chunks(Chunks {
            x,
            y,
            repeated: [&repeated[0], &repeated[1]],
            out: f64::view_mut(self.out),
            function: PhantomData,
        });
    }

    /// Vectors gain nothing where a multiply-add is made of 40 operations.
    fn run_unfused(self) {
        self.run_one_by_one();
    }
}

/// The kernel of a function.
pub(in crate::ops) fn kernel<F: Function>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(ChunkLoop::<F> { out, operands, function: PhantomData });
    Ok(())
}

/// The tangent.
pub(in crate::ops) struct Tan;

impl Function for Tan {
    #[inline(always)]
    fn apply<A: Arithmetic>(x: f64, _: f64) -> f64 {
        let angle = sine::reduce_any_angle::<A>(x);
        circular::tan::<A>(x, angle)
    }

    #[inline(always)]
    fn compute_chunks(chunks: Chunks<'_, Self>) {
        for (x, y, out) in chunks.into_chunks() {
            for (out, &x) in out.iter_mut().zip(x) {
                let x = f64::load(x);
                *out = circular::tan::<HardwareFma>(x, sine::reduce_angle::<HardwareFma>(x)).store();
            }
            replace_nans::<Self>(x, y, out);
        }
    }
}

/// The angle of the point whose ordinate is the first number, and whose abscissa is the second one.
pub(in crate::ops) struct Atan2;

impl Function for Atan2 {
    #[inline(always)]
    fn apply<A: Arithmetic>(y: f64, x: f64) -> f64 {
        circular::atan2::<A>(y, x)
    }

    #[inline(always)]
    fn compute_chunks(chunks: Chunks<'_, Self>) {
        for (y, x, out) in chunks.into_chunks() {
            for ((out, &y), &x) in out.iter_mut().zip(y).zip(x) {
                *out = circular::atan2::<HardwareFma>(f64::load(y), f64::load(x)).store();
            }
        }
    }
}

/// The remainder of a division that is rounded towards zero, which is exact.
pub(in crate::ops) struct Remainder;

impl Function for Remainder {
    #[inline(always)]
    fn apply<A: Arithmetic>(x: f64, y: f64) -> f64 {
        x % y
    }

    #[inline(always)]
    fn compute_chunks(chunks: Chunks<'_, Self>) {
        for (x, y, out) in chunks.into_chunks() {
            for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
                *out = remainder(f64::load(x), f64::load(y)).store();
            }
            replace_nans::<Self>(x, y, out);
        }
    }
}

/// Returns the exact remainder of `x` divided by `y`, with the sign of `x`, or NaN if the truncated
/// quotient is not below 2^52.
#[inline(always)]
fn remainder(x: f64, y: f64) -> f64 {
    let (a, b) = (x.abs(), y.abs());
    // The count is too large by one if the quotient was rounded up to an integer.
    let count = (a / b).trunc();
    let rest = HardwareFma::fma(-count, b, a);
    let rest = if rest < 0.0 { rest + b } else { rest };
    let rest = if a < b { a } else { rest };
    if count < TWO_52 { rest.copysign(x) } else { f64::NAN }
}

/// The number of bits of the fraction of an f64.
const FRACTION_BITS: u32 = 52;
