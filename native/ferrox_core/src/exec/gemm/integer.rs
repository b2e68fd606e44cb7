//! Vectorized products of matrices of integers.
//!
//! Problem: a loop that adds scaled rows to a row of the result reads and writes the result once
//! for every step.
//! Technique: register tiles and packing, as in BLIS and GotoBLAS (Goto and van de Geijn 2008,
//! "Anatomy of High-Performance Matrix Multiplication"). The sums of a few rows and vectors of
//! columns stay in registers, while the right matrix is read from a packed strip of these columns
//! that fits into the first-level cache. Bytes are multiplied in 16 bits, since there is no
//! instruction that multiplies vectors of bytes.

use crate::cost::{INTEGER_STRIP_ROWS, work};
use crate::dtype::Lane;
use crate::exec::gemm::ring::ordered_cost;
use crate::exec::simd::{Avx2, Avx512, InstructionSet, MulAddVector, Vectorized};
use crate::exec::threads::cooperative_yield;

/// The register tile, as rows and SIMD vectors of columns, for 32 registers of 64 bytes.
const INTEGER_TILE_AVX512: [usize; 2] = [8, 1];
/// The register tile for 16 registers of 32 bytes.
const INTEGER_TILE_AVX2: [usize; 2] = [4, 2];

/// An element type, and the type in which its products are added up.
pub trait Tiled: Lane {
    /// The type of sums, as wide as the element or wider.
    type Sum: MulAddVector<Avx512> + MulAddVector<Avx2>;
    /// The same value as a sum.
    fn widen(self) -> Self::Sum;
    /// The low bits of a sum.
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

/// `out = left * right` for dense matrices whose rows have `k` and `n` elements. Returns `false`,
/// without computing anything, if there are no vector instructions, too few rows for packing to pay, or no
/// memory for it.
pub fn multiply<T: Tiled>([k, n]: [usize; 2], left: &[u8], right: &[u8], out: &mut [u8]) -> bool {
    let (left, right, out) = (T::view(left), T::view(right), T::view_mut(out));
    if let Some(set) = Avx512::detect() {
        IntegerProductLoop::<_, T, { INTEGER_TILE_AVX512[0] }, { INTEGER_TILE_AVX512[1] }> {
            set,
            k,
            n,
            left,
            right,
            out,
            strip: Vec::new(),
        }
        .multiply()
    } else if let Some(set) = Avx2::detect() {
        IntegerProductLoop::<_, T, { INTEGER_TILE_AVX2[0] }, { INTEGER_TILE_AVX2[1] }> {
            set,
            k,
            n,
            left,
            right,
            out,
            strip: Vec::new(),
        }
        .multiply()
    } else {
        false
    }
}

/// A product in register tiles of `R` rows and `V` vectors of columns.
struct IntegerProductLoop<'a, S, T: Tiled, const R: usize, const V: usize> {
    set: S,
    k: usize,
    n: usize,
    left: &'a [T::Bytes],
    right: &'a [T::Bytes],
    out: &'a mut [T::Bytes],
    /// Memory for a packed strip of the right matrix.
    strip: Vec<T::Sum>,
}

impl<S: InstructionSet, T: Tiled, const R: usize, const V: usize> IntegerProductLoop<'_, S, T, R, V>
where
    T::Sum: MulAddVector<S>,
{
    fn multiply(mut self) -> bool {
        let strip = self.k.min(INTEGER_STRIP_ROWS) * V * <T::Sum as MulAddVector<S>>::LANES;
        let pays = self.out.len() >= R * self.n && self.strip.try_reserve_exact(strip).is_ok();
        if pays {
            self.set.run(self);
        }
        pays
    }
}

impl<S: InstructionSet, T: Tiled, const R: usize, const V: usize> Vectorized
    for IntegerProductLoop<'_, S, T, R, V>
where
    T::Sum: MulAddVector<S>,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let IntegerProductLoop { set, k, n, left, right, out, mut strip } = self;
        let lanes = V * <T::Sum as MulAddVector<S>>::LANES;
        let all_rows = out.len() / n;
        for column in (0..n).step_by(lanes) {
            let columns = column..n.min(column + lanes);
            for step in (0..k).step_by(INTEGER_STRIP_ROWS) {
                strip.clear();
                let steps = INTEGER_STRIP_ROWS.min(k - step);
                strip.resize(steps * lanes, T::Sum::default());
                for (slots, row) in strip.chunks_exact_mut(lanes).zip(right[step * n..].chunks(n)) {
                    widen::<T>(lanes, &row[columns.clone()], slots);
                }
                let rows = k * R;
                let (mut left, mut out) = (&left[step..], &mut out[column..]);
                let tile = RegisterTile { set, k, n, width: columns.len(), starts: step == 0 };
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

/// What register tiles of a strip have in common.
struct RegisterTile<S> {
    set: S,
    k: usize,
    n: usize,
    width: usize,
    /// Whether the sums begin at zero, rather than at the elements of the result.
    starts: bool,
}

impl<S: InstructionSet> RegisterTile<S> {
    /// The micro-kernel: adds the products of a strip's steps to `R` rows of the result. Only loops
    /// over indices of constant length keep the sums in registers.
    #[inline(always)]
    fn add<T: Tiled, const R: usize, const V: usize>(
        &self,
        left: &[T::Bytes],
        strip: &[T::Sum],
        out: &mut [T::Bytes],
    ) where
        T::Sum: MulAddVector<S>,
    {
        let &RegisterTile { set, k, n, width, starts } = self;
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

/// Converts elements to sums.
#[inline(always)]
fn widen<T: Tiled>(lanes: usize, elements: &[T::Bytes], sums: &mut [T::Sum]) {
    convert(lanes, elements, sums, |element| T::load(element).widen());
}

/// Converts sums to elements.
#[inline(always)]
fn narrow<T: Tiled>(lanes: usize, sums: &[T::Sum], elements: &mut [T::Bytes]) {
    convert(lanes, sums, elements, |sum| T::narrow(sum).store());
}

#[inline(always)]
fn convert<A: Copy, B>(lanes: usize, from: &[A], to: &mut [B], element: impl Fn(A) -> B) {
    // A constant length makes a copy one vector move; a conversion gains nothing from it.
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
