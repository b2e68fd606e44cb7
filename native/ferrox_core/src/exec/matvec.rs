//! Products of a matrix with a vector.
//!
//! Problem: each element of the matrix is read once, so that memory sets the pace,
//! and packing, as gemm does it for whole matrices, takes longer than the product.
//! Technique: where the rows of the matrix lie densely, each is folded with the
//! vector in a fixed number of stripes, added up in order; where its columns do, they
//! are added up one after the other. The bits are the same for any number of threads
//! and any instruction set.

use std::marker::PhantomData;

use crate::exec::matmul::{self, Ring};
use crate::exec::parallel::{self, Cost};
use crate::exec::simd::{Vectorized, dispatch as vectorize};

/// Sums side by side: enough vectors to hide the latency of an addition.
const STRIPES: usize = 32;

/// What reading an element and multiplying it costs, by its bytes.
const BYTE: Cost = 10;

/// `out[i]` is the sum of `matrix[i, j] * vector[j]`, for a matrix whose rows lie
/// densely, `stride` elements apart. `alone` if others run beside it.
pub fn rows<T: Ring>(stride: usize, matrix: &[u8], vector: &[u8], out: &mut [u8], alone: bool) {
    multiply::<T, true>(stride, matrix, vector, out, alone);
}

/// As `rows`, for a matrix whose columns lie densely, `stride` elements apart.
pub fn columns<T: Ring>(stride: usize, matrix: &[u8], vector: &[u8], out: &mut [u8], alone: bool) {
    multiply::<T, false>(stride, matrix, vector, out, alone);
}

fn multiply<T: Ring, const BY_ROWS: bool>(
    stride: usize,
    matrix: &[u8],
    vector: &[u8],
    out: &mut [u8],
    alone: bool,
) {
    let width = size_of::<T>();
    let (k, m) = (vector.len() / width, out.len() / width);
    let cost = if alone { 0 } else { BYTE * (k * width) as Cost };
    parallel::fill(out, m, cost, |first, out| {
        let matrix = &matrix[first * if BY_ROWS { stride } else { 1 } * width..];
        vectorize(Product::<T, BY_ROWS> { stride, matrix, vector, out, lane: PhantomData });
    });
}

struct Product<'a, T, const BY_ROWS: bool> {
    stride: usize,
    matrix: &'a [u8],
    vector: &'a [u8],
    out: &'a mut [u8],
    lane: PhantomData<T>,
}

impl<T: Ring, const BY_ROWS: bool> Vectorized for Product<'_, T, BY_ROWS> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (matrix, vector) = (T::view(self.matrix), T::view(self.vector));
        let out = T::view_mut(self.out);
        if BY_ROWS {
            fold_rows::<T>(matrix, vector, self.stride, out);
        } else {
            matmul::add_rows::<T>(vector, matrix, self.stride, out);
        }
    }
}

#[inline(always)]
fn fold_rows<T: Ring>(matrix: &[T::Bytes], vector: &[T::Bytes], stride: usize, out: &mut [T::Bytes]) {
    if T::ANY_ORDER {
        // The compiler finds better stripes.
        for (slot, row) in out.iter_mut().zip(matrix.chunks(stride)) {
            let products = row.iter().zip(vector);
            *slot = products.fold(T::ZERO, |sum, (&a, &b)| sum.add_product(T::load(a), T::load(b))).store();
        }
        return;
    }
    let (chunks, rest) = vector.as_chunks::<STRIPES>();
    for (slot, row) in out.iter_mut().zip(matrix.chunks(stride)) {
        let (row_chunks, row_rest) = row[..vector.len()].as_chunks::<STRIPES>();
        let mut sums = [T::ZERO; STRIPES];
        for (row, vector) in row_chunks.iter().zip(chunks) {
            for ((sum, &a), &b) in sums.iter_mut().zip(row).zip(vector) {
                *sum = sum.add_product(T::load(a), T::load(b));
            }
        }
        // Halved, so that the stripes are added in a few steps, and from memory: the
        // compiler would keep them in pairs otherwise, which makes the loop slow.
        let mut sums = std::hint::black_box(sums);
        let mut half = STRIPES / 2;
        while half > 0 {
            for i in 0..half {
                sums[i] = sums[i].add(sums[i + half]);
            }
            half /= 2;
        }
        let mut total = sums[0];
        for (&a, &b) in row_rest.iter().zip(rest) {
            total = total.add_product(T::load(a), T::load(b));
        }
        *slot = total.store();
    }
}
