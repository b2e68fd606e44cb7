//! Where the extremes of rows of floats are, in one pass.
//!
//! Problem: to find an extreme first and then where it is takes two passes, and of lanes that
//! have their place with them the compiler makes no vectors. Technique: each lane of two vectors has
//! the extreme of what came in it, and the number of the vector it came in, as a float that is
//! chosen as the elements are. What is left at the end of a row comes in a vector that begins
//! among elements that had their turn.

use std::arch::x86_64::{_CMP_EQ_OQ, _CMP_GE_OQ, _CMP_GT_OQ, _CMP_LE_OQ, _CMP_LT_OQ, _CMP_UNORD_Q};
use std::marker::PhantomData;
use std::slice::ChunksExact;

use crate::dtype::{Element, Lane};
use crate::exec::reduce::fold::by_halves;
use crate::exec::simd::{Avx2, Avx512, Compared, InstructionSet, Products, Vectorized, read_ahead};

/// Rows of so many vectors of 64 bytes are searched with these.
/// (`kernels`: argmax_of_rows_f32, argmax_of_rows_f64.)
const WIDE: usize = 8;

/// Finds the place of the largest or smallest of each row of `length` floats, as u64: the first of
/// several, or the last. `otherwise` finds it of a row with NaN. False, and nothing done, where this
/// doesn't pay. `LANES` are those of vectors of 64 bytes, `HALF` of those of 32.
pub fn rows<T: Place, const LANES: usize, const HALF: usize>(
    elements: &[u8],
    length: usize,
    largest_last: (bool, bool),
    places: &mut [u8],
    otherwise: impl Fn(&[u8], &mut [u8]),
) -> bool {
    let wide = Avx512::detect().filter(|_| length >= WIDE * LANES);
    if let Some(set) = wide {
        rows_with::<Avx512, T, LANES>(set, elements, length, largest_last, places, otherwise)
    } else if let Some(set) = Avx2::detect() {
        rows_with::<Avx2, T, HALF>(set, elements, length, largest_last, places, otherwise)
    } else {
        false
    }
}

/// Floats whose places are found.
pub trait Place: Element + PartialOrd + Compared<Avx2> + Compared<Avx512> {
    /// Integers up to this one are exact.
    const EXACT: u64;
}
impl Place for f32 {
    const EXACT: u64 = 1 << f32::MANTISSA_DIGITS;
}
impl Place for f64 {
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
}

fn rows_with<S: InstructionSet, T: Place + Compared<S>, const LANES: usize>(
    set: S,
    elements: &[u8],
    length: usize,
    largest_last: (bool, bool),
    places: &mut [u8],
    otherwise: impl Fn(&[u8], &mut [u8]),
) -> bool {
    const { assert!(LANES == <T as Products<S>>::LANES) };
    if length < LANES || length as u64 > T::EXACT {
        return false;
    }
    macro_rules! run {
        ($largest:literal, $last:literal) => {
            set.run(Rows::<S, T, _, LANES, $largest, $last> {
                set,
                rows: elements.chunks_exact(length * size_of::<T>()),
                places: u64::view_mut(places),
                otherwise,
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

struct Rows<'a, S, T, O, const LANES: usize, const LARGEST: bool, const LAST: bool> {
    set: S,
    rows: ChunksExact<'a, u8>,
    places: &'a mut [[u8; 8]],
    otherwise: O,
    kind: PhantomData<T>,
}

impl<S, T, O, const LANES: usize, const LARGEST: bool, const LAST: bool> Vectorized
    for Rows<'_, S, T, O, LANES, LARGEST, LAST>
where
    S: InstructionSet,
    T: Element + PartialOrd + Compared<S>,
    O: Fn(&[u8], &mut [u8]),
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (place, row) in self.places.iter_mut().zip(self.rows) {
            match place_in::<S, T, LANES, LARGEST, LAST>(self.set, T::view(row)) {
                Some(found) => *place = (found as u64).store(),
                None => (self.otherwise)(row, place),
            }
        }
    }
}

/// None where an element is NaN, and of rows shorter than a vector.
#[inline(always)]
fn place_in<S, T, const LANES: usize, const LARGEST: bool, const LAST: bool>(
    set: S,
    row: &[T::Bytes],
) -> Option<usize>
where
    S: InstructionSet,
    T: Element + PartialOrd + Compared<S>,
{
    let further = |a, b| match (LARGEST, LAST) {
        (true, false) => T::compare::<_CMP_GT_OQ>(set, a, b),
        (true, true) => T::compare::<_CMP_GE_OQ>(set, a, b),
        (false, false) => T::compare::<_CMP_LT_OQ>(set, a, b),
        (false, true) => T::compare::<_CMP_LE_OQ>(set, a, b),
    };
    let pick = |a, b| if LARGEST { T::larger(set, a, b) } else { T::smaller(set, a, b) };
    let number = |i: usize| T::from_f64(i as f64);
    let all = |value| <T as Products<S>>::splat(set, value);
    let (vectors, _) = row.as_chunks::<LANES>();
    let (first, rest) = vectors.split_first()?;
    let first = T::read(set, first);
    let end = T::read(set, row.last_chunk::<LANES>()?);

    // Of a lane of each: its extreme, and the number of the vector it was in.
    let mut best = [first; 2];
    let mut at = [all(number(0)); 2];
    let mut nan = T::compare::<_CMP_UNORD_Q>(set, first, end);
    let mut now = at[0];
    let mut step = |lane: usize, x| {
        now = T::sum(set, now, all(number(1)));
        let found = further(x, best[lane]);
        best[lane] = pick(best[lane], x);
        at[lane] = T::choose(set, found, at[lane], now);
    };
    let (pairs, alone) = rest.as_chunks::<2>();
    for pair in pairs {
        read_ahead(pair);
        let [a, b] = [T::read(set, &pair[0]), T::read(set, &pair[1])];
        nan = T::or(set, nan, T::compare::<_CMP_UNORD_Q>(set, a, b));
        step(0, a);
        step(1, b);
    }
    if let [few] = alone {
        let x = T::read(set, few);
        nan = T::or(set, nan, T::compare::<_CMP_UNORD_Q>(set, x, x));
        step(0, x);
    }
    if T::any(set, nan) {
        return None;
    }

    let extreme = across::<S, T, LANES>(set, pick(pick(best[0], best[1]), end), LARGEST);
    let lanes: [T; LANES] = std::array::from_fn(number);
    let lanes = <T as Products<S>>::load(set, &lanes);
    let end_at = T::sum(set, lanes, all(number(row.len() - LANES)));
    // Where a lane has another extreme, a place that is none.
    let none = all(T::from_f64(if LAST { -1.0 } else { f64::INFINITY }));
    let place_of = |x, place| T::choose(set, T::compare::<_CMP_EQ_OQ>(set, x, all(extreme)), none, place);
    let later = |a, b| if LAST { T::larger(set, a, b) } else { T::smaller(set, a, b) };
    let [a, b] = at.map(|at| T::add_fused(set, lanes, at, all(number(LANES))));
    let places = later(later(place_of(best[0], a), place_of(best[1], b)), place_of(end, end_at));
    Some(across::<S, T, LANES>(set, places, LAST).to_f64() as usize)
}

/// The largest or the smallest of a vector's lanes.
#[inline(always)]
fn across<S, T, const LANES: usize>(set: S, vector: <T as Products<S>>::Vector, largest: bool) -> T
where
    S: InstructionSet,
    T: Element + PartialOrd + Compared<S>,
{
    let mut lanes = [T::from_f64(0.0); LANES];
    <T as Products<S>>::store(set, vector, &mut lanes);
    by_halves(lanes, |a, b| if (b > a) == largest { b } else { a })
}
