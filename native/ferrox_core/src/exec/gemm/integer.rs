//! Products of matrices of integers, each element added up in order, with vectors.
//!
//! Problem: a row of the result that is added to once a step is read and written once a step.
//! Technique: the sums of a few rows and vectors of columns stay in registers, while the
//! right matrix is read from a strip of those columns that fits the first-level cache. Bytes,
//! which have no products in vectors, are multiplied in 16 bits.

use crate::dtype::Lane;
use crate::exec::gemm::in_order::ordered_cost;
use crate::exec::simd::{Avx2, Avx512, InstructionSet, MulAddVector, Vectorized};
use crate::exec::threads::cooperative_yield;
use crate::exec::threads::parallel::work;

/// Rows and vectors of the result whose sums are in registers: of 32 with 64 bytes, or of 16 with
/// 32.
const WIDE: [usize; 2] = [8, 1];
const NARROW: [usize; 2] = [4, 2];

/// Rows of the right matrix in a strip.
const DEPTH: usize = 256;

/// An element, and what its products are added up in.
pub trait Tiled: Lane {
    /// As wide or wider.
    type Sum: MulAddVector<Avx512> + MulAddVector<Avx2>;
    /// The same value.
    fn widen(self) -> Self::Sum;
    /// Its low bits, where it is wider.
    fn narrow(sum: Self::Sum) -> Self;
}

macro_rules! tiled {
    ($($t:ty, $sum:ty, $sum_name:ident => $narrow:expr;)*) => {$(
        impl Tiled for $t {
            type Sum = $sum;
            #[inline(always)]
            fn widen(self) -> $sum {
                self.into()
            }
            #[inline(always)]
            fn narrow($sum_name: $sum) -> $t {
                $narrow
            }
        }
    )*};
}
tiled! {
    u8, u16, sum => sum as u8;
    u16, u16, sum => sum;
    u32, u32, sum => sum;
    u64, u64, sum => sum;
}

/// `out = left * right` for dense matrices, of rows of `k` and of `n`; `false` if there are no
/// vectors, or too few rows for a strip to pay.
pub fn multiply<T: Tiled>([k, n]: [usize; 2], left: &[u8], right: &[u8], out: &mut [u8]) -> bool {
    let (left, right, out) = (T::view(left), T::view(right), T::view_mut(out));
    if let Some(set) = Avx512::detect() {
        Product::<_, T, { WIDE[0] }, { WIDE[1] }> { set, k, n, left, right, out }.multiply()
    } else if let Some(set) = Avx2::detect() {
        Product::<_, T, { NARROW[0] }, { NARROW[1] }> { set, k, n, left, right, out }.multiply()
    } else {
        false
    }
}

/// `R` rows and `V` vectors of columns at a time.
struct Product<'a, S, T: Tiled, const R: usize, const V: usize> {
    set: S,
    k: usize,
    n: usize,
    left: &'a [T::Bytes],
    right: &'a [T::Bytes],
    out: &'a mut [T::Bytes],
}

impl<S: InstructionSet, T: Tiled, const R: usize, const V: usize> Product<'_, S, T, R, V>
where
    T::Sum: MulAddVector<S>,
{
    fn multiply(self) -> bool {
        let pays = self.out.len() >= R * self.n;
        if pays {
            self.set.run(self);
        }
        pays
    }
}

impl<S: InstructionSet, T: Tiled, const R: usize, const V: usize> Vectorized for Product<'_, S, T, R, V>
where
    T::Sum: MulAddVector<S>,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Product { set, k, n, left, right, out } = self;
        let lanes = V * <T::Sum as MulAddVector<S>>::LANES;
        let all_rows = out.len() / n;
        let mut strip = Vec::with_capacity(k.min(DEPTH) * lanes);
        for column in (0..n).step_by(lanes) {
            let columns = column..n.min(column + lanes);
            for step in (0..k).step_by(DEPTH) {
                strip.clear();
                let steps = DEPTH.min(k - step);
                strip.resize(steps * lanes, T::Sum::default());
                for (slots, row) in strip.chunks_exact_mut(lanes).zip(right[step * n..].chunks(n)) {
                    widen::<T>(lanes, &row[columns.clone()], slots);
                }
                let rows = k * R;
                let (mut left, mut out) = (&left[step..], &mut out[column..]);
                let tile = Tile { set, k, n, width: columns.len(), starts: step == 0 };
                while out.len() >= (R - 1) * n + columns.len() {
                    tile.add::<T, R, V>(left, &strip, out);
                    left = left.get(rows..).unwrap_or(&[]);
                    out = out.get_mut(R * n..).unwrap_or(&mut []);
                }
                while out.len() >= columns.len() {
                    tile.add::<T, 1, V>(left, &strip, out);
                    left = left.get(k..).unwrap_or(&[]);
                    out = out.get_mut(n..).unwrap_or(&mut []);
                }
                cooperative_yield::after(work(all_rows, ordered_cost::<T>(steps, columns.len())));
            }
        }
    }
}

/// Some rows of the result, in the columns of a strip.
struct Tile<S> {
    set: S,
    k: usize,
    n: usize,
    width: usize,
    /// Whether they are zero so far.
    starts: bool,
}

impl<S: InstructionSet> Tile<S> {
    /// Adds the products of the steps of a strip. Loops over indices, all of constant length, are
    /// what keeps the sums in registers.
    #[inline(always)]
    fn add<T: Tiled, const R: usize, const V: usize>(
        &self,
        left: &[T::Bytes],
        strip: &[T::Sum],
        out: &mut [T::Bytes],
    ) where
        T::Sum: MulAddVector<S>,
    {
        let &Tile { set, k, n, width, starts } = self;
        let vector = <T::Sum as MulAddVector<S>>::LANES;
        let lanes = V * vector;
        let steps = strip.len() / lanes;
        let mut values = [T::Sum::default(); 32];
        let zero = <T::Sum as MulAddVector<S>>::splat(set, T::Sum::default());
        let mut sums = [[zero; V]; R];
        if !starts {
            for row in 0..R {
                widen::<T>(lanes, &out[row * n..][..width], &mut values);
                for i in 0..V {
                    sums[row][i] = <T::Sum as MulAddVector<S>>::load(set, &values[i * vector..]);
                }
            }
        }
        let rows: [&[T::Bytes]; R] = std::array::from_fn(|i| &left[i * k..][..steps]);
        for (step, right) in strip.chunks_exact(lanes).enumerate() {
            let mut vectors = [zero; V];
            for i in 0..V {
                vectors[i] = <T::Sum as MulAddVector<S>>::load(set, &right[i * vector..]);
            }
            for row in 0..R {
                let factor = <T::Sum as MulAddVector<S>>::splat(set, T::load(rows[row][step]).widen());
                for i in 0..V {
                    sums[row][i] =
                        <T::Sum as MulAddVector<S>>::add_product(set, sums[row][i], factor, vectors[i]);
                }
            }
        }
        for row in 0..R {
            for i in 0..V {
                <T::Sum as MulAddVector<S>>::store(set, sums[row][i], &mut values[i * vector..]);
            }
            narrow::<T>(lanes, &values, &mut out[row * n..][..width]);
        }
    }
}

/// Elements as what they are added up in.
#[inline(always)]
fn widen<T: Tiled>(lanes: usize, elements: &[T::Bytes], sums: &mut [T::Sum]) {
    convert(lanes, elements, sums, |element| T::load(element).widen());
}

/// The elements that sums give.
#[inline(always)]
fn narrow<T: Tiled>(lanes: usize, sums: &[T::Sum], elements: &mut [T::Bytes]) {
    convert(lanes, sums, elements, |sum| T::narrow(sum).store());
}

#[inline(always)]
fn convert<A: Copy, B>(lanes: usize, from: &[A], to: &mut [B], element: impl Fn(A) -> B) {
    // A length that the compiler knows makes a copy one vector, but not a conversion.
    let whole = size_of::<A>() == size_of::<B>() && from.len() >= lanes && to.len() >= lanes;
    if whole {
        for (&from, to) in from[..lanes].iter().zip(&mut to[..lanes]) {
            *to = element(from);
        }
    } else {
        for (&from, to) in from.iter().zip(to) {
            *to = element(from);
        }
    }
}
