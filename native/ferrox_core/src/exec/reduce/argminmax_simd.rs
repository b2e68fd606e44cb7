//! Argmin and argmax of rows of floats in one pass.
//!
//! Problem: finding the minimum or maximum first and then its index takes two passes, and the
//! compiler does not vectorize a loop that carries the index along. Technique: two vectors
//! accumulate the best value of each lane; two more hold the number of the vector that the value
//! came from, as a float, and are blended with the same mask. The last elements of a row are read
//! as a vector that overlaps the one before it. Limit: rows with NaN and short rows, which
//! `argminmax` searches.

use std::arch::x86_64::{_CMP_EQ_OQ, _CMP_GE_OQ, _CMP_GT_OQ, _CMP_LE_OQ, _CMP_LT_OQ, _CMP_UNORD_Q};
use std::marker::PhantomData;
use std::slice::ChunksExact;

use crate::cost::MIN_VECTORS_FOR_AVX512_ARGMINMAX;
use crate::dtype::{Element, Lane};
use crate::exec::reduce::fold::fold_halves;
use crate::exec::simd::{
    Avx2, Avx512, CompareVector, InstructionSet, MulAddVector, Vectorized, prefetch_ahead,
};

/// Finds the index of the largest or smallest element of each row of `length` floats, as u64.
/// `largest_last` says whether the largest element is searched, and whether the last of several
/// equal ones. `fallback` finds the index in a row with NaN. Returns false, and does nothing, if
/// the rows are too short or too long, or the processor has no such vectors. `LANES` is the number
/// of lanes of a vector of 64 bytes, `AVX2_LANES` of a vector of 32 bytes.
pub fn rows<T: ArgFloat, const LANES: usize, const AVX2_LANES: usize>(
    elements: &[u8],
    length: usize,
    largest_last: (bool, bool),
    indices: &mut [u8],
    fallback: impl Fn(&[u8], &mut [u8]),
) -> bool {
    let wide = Avx512::detect().filter(|_| length >= MIN_VECTORS_FOR_AVX512_ARGMINMAX * LANES);
    if let Some(set) = wide {
        rows_with::<Avx512, T, LANES>(set, elements, length, largest_last, indices, fallback)
    } else if let Some(set) = Avx2::detect() {
        rows_with::<Avx2, T, AVX2_LANES>(set, elements, length, largest_last, indices, fallback)
    } else {
        false
    }
}

/// A float whose indices are found.
pub trait ArgFloat: Element + PartialOrd + CompareVector<Avx2> + CompareVector<Avx512> {
    /// All integers up to this one are exact in the float, so that it may hold an index.
    const MAX_EXACT_INTEGER: u64;
}
impl ArgFloat for f32 {
    const MAX_EXACT_INTEGER: u64 = 1 << f32::MANTISSA_DIGITS;
}
impl ArgFloat for f64 {
    const MAX_EXACT_INTEGER: u64 = 1 << f64::MANTISSA_DIGITS;
}

fn rows_with<S: InstructionSet, T: ArgFloat + CompareVector<S>, const LANES: usize>(
    set: S,
    elements: &[u8],
    length: usize,
    largest_last: (bool, bool),
    indices: &mut [u8],
    fallback: impl Fn(&[u8], &mut [u8]),
) -> bool {
    const { assert!(LANES == <T as MulAddVector<S>>::LANES) };
    if length < LANES || length as u64 > T::MAX_EXACT_INTEGER {
        return false;
    }
    macro_rules! run {
        ($largest:literal, $last:literal) => {
            set.run(ArgFloatRowLoop::<S, T, _, LANES, $largest, $last> {
                set,
                rows: elements.chunks_exact(length * size_of::<T>()),
                indices: u64::view_mut(indices),
                fallback,
                kind: PhantomData,
            })
        };
    }
    match largest_last {
        (true, false) => run!(true, false),
        (true, true) => run!(true, true),
        (false, false) => run!(false, false),
        (false, true) => run!(false, true),
    }
    true
}

struct ArgFloatRowLoop<'a, S, T, O, const LANES: usize, const LARGEST: bool, const LAST: bool> {
    set: S,
    rows: ChunksExact<'a, u8>,
    indices: &'a mut [[u8; 8]],
    fallback: O,
    kind: PhantomData<T>,
}

impl<S, T, O, const LANES: usize, const LARGEST: bool, const LAST: bool> Vectorized
    for ArgFloatRowLoop<'_, S, T, O, LANES, LARGEST, LAST>
where
    S: InstructionSet,
    T: Element + PartialOrd + CompareVector<S>,
    O: Fn(&[u8], &mut [u8]),
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (index, row) in self.indices.iter_mut().zip(self.rows) {
            match index_in_row::<S, T, LANES, LARGEST, LAST>(self.set, T::view(row)) {
                Some(found) => *index = (found as u64).store(),
                None => (self.fallback)(row, index),
            }
        }
    }
}

/// The index of the best element of a row. Returns `None` if an element is NaN, or if the row is
/// shorter than a vector.
#[inline(always)]
fn index_in_row<S, T, const LANES: usize, const LARGEST: bool, const LAST: bool>(
    set: S,
    row: &[T::Bytes],
) -> Option<usize>
where
    S: InstructionSet,
    T: Element + PartialOrd + CompareVector<S>,
{
    let is_better = |a, b| match (LARGEST, LAST) {
        (true, false) => T::compare::<_CMP_GT_OQ>(set, a, b),
        (true, true) => T::compare::<_CMP_GE_OQ>(set, a, b),
        (false, false) => T::compare::<_CMP_LT_OQ>(set, a, b),
        (false, true) => T::compare::<_CMP_LE_OQ>(set, a, b),
    };
    let better = |a, b| if LARGEST { T::larger(set, a, b) } else { T::smaller(set, a, b) };
    let float = |i: usize| T::from_f64(i as f64);
    let broadcast = |value| <T as MulAddVector<S>>::splat(set, value);
    let (vectors, _) = row.as_chunks::<LANES>();
    let (first, rest) = vectors.split_first()?;
    let first = T::read(set, first);
    let end = T::read(set, row.last_chunk::<LANES>()?);

    // For each lane of two accumulators: the best value, and the number of its vector.
    let mut best = [first; 2];
    let mut vector_index = [broadcast(float(0)); 2];
    let mut nan = T::compare::<_CMP_UNORD_Q>(set, first, end);
    let mut current = vector_index[0];
    let mut update = |accumulator: usize, x| {
        current = T::sum(set, current, broadcast(float(1)));
        let found = is_better(x, best[accumulator]);
        best[accumulator] = better(best[accumulator], x);
        vector_index[accumulator] = T::blend(set, found, vector_index[accumulator], current);
    };
    let (pairs, odd_vector) = rest.as_chunks::<2>();
    for pair in pairs {
        prefetch_ahead(pair);
        let [a, b] = [T::read(set, &pair[0]), T::read(set, &pair[1])];
        nan = T::or(set, nan, T::compare::<_CMP_UNORD_Q>(set, a, b));
        update(0, a);
        update(1, b);
    }
    if let [last] = odd_vector {
        let x = T::read(set, last);
        nan = T::or(set, nan, T::compare::<_CMP_UNORD_Q>(set, x, x));
        update(0, x);
    }
    if T::any(set, nan) {
        return None;
    }

    let best_value = reduce_lanes::<S, T, LANES>(set, better(better(best[0], best[1]), end), LARGEST);
    let lanes: [T; LANES] = std::array::from_fn(float);
    let lanes = <T as MulAddVector<S>>::load(set, &lanes);
    let end_index = T::sum(set, lanes, broadcast(float(row.len() - LANES)));
    // Lanes with another value than the best one get an index that is never chosen.
    let no_index = broadcast(T::from_f64(if LAST { -1.0 } else { f64::INFINITY }));
    let index_where =
        |x, index| T::blend(set, T::compare::<_CMP_EQ_OQ>(set, x, broadcast(best_value)), no_index, index);
    let better_index = |a, b| if LAST { T::larger(set, a, b) } else { T::smaller(set, a, b) };
    let [a, b] =
        vector_index.map(|vector_index| T::add_fused(set, lanes, vector_index, broadcast(float(LANES))));
    let indices = better_index(
        better_index(index_where(best[0], a), index_where(best[1], b)),
        index_where(end, end_index),
    );
    Some(reduce_lanes::<S, T, LANES>(set, indices, LAST).to_f64() as usize)
}

/// The largest or the smallest lane of a vector.
#[inline(always)]
fn reduce_lanes<S, T, const LANES: usize>(set: S, vector: <T as MulAddVector<S>>::Vector, largest: bool) -> T
where
    S: InstructionSet,
    T: Element + PartialOrd + CompareVector<S>,
{
    let mut lanes = [T::from_f64(0.0); LANES];
    <T as MulAddVector<S>>::store(set, vector, &mut lanes);
    fold_halves(lanes, |a, b| if (b > a) == largest { b } else { a })
}
