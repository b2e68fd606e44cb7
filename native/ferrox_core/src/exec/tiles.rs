//! Products of matrices of integers, each element added up in order, with vectors of 64 bytes.
//!
//! Problem: a row of the result that is added to once a step is read and written once a step.
//! Technique: the sums of a few rows and of a vector of columns stay in registers, while the
//! right matrix is read from a strip of those columns that fits the first-level cache. Bytes,
//! which have no products in vectors, are multiplied in 16 bits.

use super::matmul::ordered_cost;
use super::parallel::work;
use super::pause;
use super::simd::{Avx512, InstructionSet, Products, Vectorized};
use crate::dtype::Lane;

/// Rows of the result whose sums are in registers.
const ROWS: usize = 8;

/// Rows of the right matrix in a strip.
const DEPTH: usize = 256;

/// An element, and what its products are added up in.
pub trait Tiled: Lane {
    /// As wide or wider.
    type Sum: Products;
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
    let Some(wide) = Avx512::detect() else { return false };
    let out = T::view_mut(out);
    if out.len() < ROWS * n {
        return false;
    }
    wide.run(Product::<T> { wide, k, n, left: T::view(left), right: T::view(right), out });
    true
}

struct Product<'a, T: Tiled> {
    wide: Avx512,
    k: usize,
    n: usize,
    left: &'a [T::Bytes],
    right: &'a [T::Bytes],
    out: &'a mut [T::Bytes],
}

impl<T: Tiled> Vectorized for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Product { wide, k, n, left, right, out } = self;
        let lanes = T::Sum::LANES;
        let all_rows = out.len() / n;
        let mut strip = Vec::with_capacity(k.min(DEPTH) * lanes);
        for column in (0..n).step_by(lanes) {
            let columns = column..n.min(column + lanes);
            for step in (0..k).step_by(DEPTH) {
                strip.clear();
                let steps = DEPTH.min(k - step);
                strip.resize(steps * lanes, T::Sum::default());
                for (slots, row) in strip.chunks_exact_mut(lanes).zip(right[step * n..].chunks(n)) {
                    widen::<T>(&row[columns.clone()], slots);
                }
                let rows = k * ROWS;
                let (mut left, mut out) = (&left[step..], &mut out[column..]);
                let tile = Tile { wide, k, n, width: columns.len(), starts: step == 0 };
                while out.len() >= (ROWS - 1) * n + columns.len() {
                    tile.add::<T, ROWS>(left, &strip, out);
                    left = left.get(rows..).unwrap_or(&[]);
                    out = out.get_mut(ROWS * n..).unwrap_or(&mut []);
                }
                while out.len() >= columns.len() {
                    tile.add::<T, 1>(left, &strip, out);
                    left = left.get(k..).unwrap_or(&[]);
                    out = out.get_mut(n..).unwrap_or(&mut []);
                }
                pause::after(work(all_rows, ordered_cost::<T>(steps, columns.len())));
            }
        }
    }
}

/// Some rows of the result, in the columns of a strip.
struct Tile {
    wide: Avx512,
    k: usize,
    n: usize,
    width: usize,
    /// Whether they are zero so far.
    starts: bool,
}

impl Tile {
    /// Adds the products of the steps of a strip.
    #[inline(always)]
    fn add<T: Tiled, const R: usize>(&self, left: &[T::Bytes], strip: &[T::Sum], out: &mut [T::Bytes]) {
        let &Tile { wide, k, n, width, starts } = self;
        let lanes = T::Sum::LANES;
        let steps = strip.len() / lanes;
        let mut values = [T::Sum::default(); 32];
        let mut sums = [T::Sum::splat(wide, T::Sum::default()); R];
        if !starts {
            for (sum, out) in sums.iter_mut().zip(out.chunks(n)) {
                widen::<T>(&out[..width], &mut values);
                *sum = T::Sum::load(wide, &values);
            }
        }
        let rows: [&[T::Bytes]; R] = std::array::from_fn(|i| &left[i * k..][..steps]);
        for step in 0..steps {
            let right = T::Sum::load(wide, &strip[step * lanes..]);
            for (sum, row) in sums.iter_mut().zip(&rows) {
                let factor = T::Sum::splat(wide, T::load(row[step]).widen());
                *sum = T::Sum::add_product(wide, *sum, factor, right);
            }
        }
        for (sum, out) in sums.into_iter().zip(out.chunks_mut(n)) {
            T::Sum::store(wide, sum, &mut values);
            narrow::<T>(&values, &mut out[..width]);
        }
    }
}

/// Elements as what they are added up in.
#[inline(always)]
fn widen<T: Tiled>(elements: &[T::Bytes], sums: &mut [T::Sum]) {
    convert(T::Sum::LANES, elements, sums, |element| T::load(element).widen());
}

/// The elements that sums give.
#[inline(always)]
fn narrow<T: Tiled>(sums: &[T::Sum], elements: &mut [T::Bytes]) {
    convert(T::Sum::LANES, sums, elements, |sum| T::narrow(sum).store());
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
