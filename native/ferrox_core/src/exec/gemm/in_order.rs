//! Products whose sums are added up in order, as in `Nx.BinaryBackend`: products of integers, and
//! small products of f64 and complex numbers, for which no other technique pays.

use std::convert::Infallible;
use std::marker::PhantomData;

use num_complex::Complex;

use crate::DType;
use crate::cost::INTEGER_ROWS_PER_PACKING;
#[cfg(target_arch = "x86_64")]
use crate::exec::gemm::integer;
use crate::exec::gemm::ring::{Ring, ordered_cost, sum_rows};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::{cooperative_yield, parallel};

/// A lane whose products may have a loop with register tiles.
pub trait InOrderLane: Ring {
    /// Multiplies several rows of `k` elements with a matrix whose rows have `n` elements, in
    /// register tiles; returns whether there is a loop for that.
    fn multiply_in_tiles(_sizes: [usize; 2], _left: &[u8], _right: &[u8], _out: &mut [u8]) -> bool {
        false
    }
}
impl InOrderLane for f64 {}
impl InOrderLane for Complex<f64> {}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl InOrderLane for $t {
            #[cfg(target_arch = "x86_64")]
            fn multiply_in_tiles(sizes: [usize; 2], left: &[u8], right: &[u8], out: &mut [u8]) -> bool {
                integer::multiply::<Self>(sizes, left, right, out)
            }
        }
    )*};
}
integers!(u8, u16, u32, u64);

/// `out = left * right` for dense matrices of `[m, k]` and `[k, n]`, each element added up in
/// order, on the calling thread.
pub fn multiply_in_order<T: InOrderLane>([_, k, n]: [usize; 3], left: &[u8], right: &[u8], out: &mut [u8]) {
    let width = size_of::<T>();
    for (i, out) in out.chunks_mut(INTEGER_ROWS_PER_PACKING * n * width).enumerate() {
        let left = &left[i * INTEGER_ROWS_PER_PACKING * k * width..][..out.len() / n * k];
        if n <= 1 || !T::multiply_in_tiles([k, n], left, right, out) {
            vectorize(InOrderLoop::<T> { k, n, left, right, out, lane: PhantomData });
        }
    }
}

/// `multiply_in_order` for unsigned integers of a type, in parallel if that pays. With `alone`, the
/// product keeps to the calling thread.
pub fn integers(lane: DType, sizes: [usize; 3], left: &[u8], right: &[u8], out: &mut [u8], alone: bool) {
    match lane {
        DType::U8 => integers_of::<u8>(sizes, left, right, out, alone),
        DType::U16 => integers_of::<u16>(sizes, left, right, out, alone),
        DType::U32 => integers_of::<u32>(sizes, left, right, out, alone),
        _ => integers_of::<u64>(sizes, left, right, out, alone),
    }
}

fn integers_of<T: InOrderLane>(
    [m, k, n]: [usize; 3],
    left: &[u8],
    right: &[u8],
    out: &mut [u8],
    alone: bool,
) {
    let rows = |first: usize, out: &mut [u8]| {
        let left = &left[first * k * size_of::<T>()..];
        multiply_in_order::<T>([out.len() / n / size_of::<T>(), k, n], left, right, out);
        Ok(())
    };
    let cost = if alone { 0 } else { ordered_cost::<T>(k, n) };
    let Ok(()) = parallel::try_fill_shares::<Infallible>(out, m, cost, rows);
}

struct InOrderLoop<'a, T> {
    k: usize,
    n: usize,
    left: &'a [u8],
    right: &'a [u8],
    out: &'a mut [u8],
    lane: PhantomData<T>,
}

/// The number of rows of the left matrix that are multiplied with a vector side by side: enough to
/// hide the latency of an addition.
const ROWS_SIDE_BY_SIDE: usize = 8;

impl<T: InOrderLane> Vectorized for InOrderLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (k, n) = (self.k, self.n);
        let (left, right) = (T::view(self.left), T::view(self.right));
        if n == 1 {
            return with_vector::<T>(left, &right[..k], T::view_mut(self.out));
        }
        for (left, out) in left.chunks_exact(k).zip(T::view_mut(self.out).chunks_exact_mut(n)) {
            sum_rows::<T>(left, right, n, out);
            cooperative_yield::after(ordered_cost::<T>(k, n));
        }
    }
}

/// `OrderedLoop` for a right matrix of one column.
#[inline(always)]
fn with_vector<T: InOrderLane>(matrix: &[T::Bytes], vector: &[T::Bytes], out: &mut [T::Bytes]) {
    let k = vector.len();
    for (matrix, out) in matrix.chunks(ROWS_SIDE_BY_SIDE * k).zip(out.chunks_mut(ROWS_SIDE_BY_SIDE)) {
        let mut sums = [T::ZERO; ROWS_SIDE_BY_SIDE];
        if out.len() == ROWS_SIDE_BY_SIDE {
            let rows: [&[T::Bytes]; ROWS_SIDE_BY_SIDE] = std::array::from_fn(|i| &matrix[i * k..][..k]);
            for (j, &x) in vector.iter().enumerate() {
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = sum.add_product(T::load(row[j]), T::load(x));
                }
            }
        } else {
            for (sum, row) in sums.iter_mut().zip(matrix.chunks_exact(k)) {
                for (&a, &x) in row.iter().zip(vector) {
                    *sum = sum.add_product(T::load(a), T::load(x));
                }
            }
        }
        for (slot, sum) in out.iter_mut().zip(sums) {
            *slot = sum.store();
        }
        cooperative_yield::after(ordered_cost::<T>(k, ROWS_SIDE_BY_SIDE));
    }
}
