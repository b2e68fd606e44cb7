//! Transposes of matrices in vector registers.

use crate::exec::simd::{Avx512, InstructionSet, IntVector, arch};

/// Transposes a matrix of `ROWS` vectors in registers: exchanges the bits of the row number with
/// those of the lane number, one pair of bits in each step (J. O. Eklundh, "A Fast Computer Method
/// for Matrix Transposing", 1972). With more rows than lanes, transposes each group of as many rows
/// as a vector has lanes.
#[inline(always)]
pub fn transpose_vectors<S: InstructionSet, K: IntVector<S>, const ROWS: usize>(
    set: S,
    v: &mut [K::Vector; ROWS],
) {
    const { assert!(ROWS <= 16 && K::LANES <= 16) };
    let (rows, lanes) = (ROWS.ilog2(), K::LANES.ilog2());
    exchange_bits::<S, K, ROWS, 8>(set, v);
    exchange_bits::<S, K, ROWS, 4>(set, v);
    exchange_bits::<S, K, ROWS, 2>(set, v);
    exchange_bits::<S, K, ROWS, 1>(set, v);
    if rows < lanes {
        // Moves the bits of the row number to the lowest bits of the lane number.
        let order = &K::ROTATED_LANES[rows as usize];
        for v in v {
            *v = K::permute(set, *v, order);
        }
    }
}

/// Exchanges a bit of the row number with a bit of the lane number. The bit is a constant, so that
/// the rows stay in registers.
#[inline(always)]
fn exchange_bits<S: InstructionSet, K: IntVector<S>, const ROWS: usize, const BIT: usize>(
    set: S,
    v: &mut [K::Vector; ROWS],
) {
    if BIT >= ROWS.min(K::LANES) {
        return;
    }
    let lane = K::LANES.ilog2() - ROWS.min(K::LANES).ilog2() + BIT.ilog2();
    let [first, second] = &K::TRANSPOSE_LANES[lane as usize];
    for pair in 0..ROWS / 2 {
        let row = pair / BIT * 2 * BIT + pair % BIT;
        let (a, b) = (v[row], v[row + BIT]);
        v[row] = K::permute_two(set, a, b, first);
        v[row + BIT] = K::permute_two(set, a, b, second);
    }
}

/// Transposes sixteen rows of up to 64 bytes. Column `16 * i + j` of the input becomes the bytes
/// `16 * i..16 * (i + 1)` of row `j` of the result.
#[inline(always)]
pub fn transpose_bytes<'a>(_: Avx512, row: impl Fn(usize) -> &'a [u8]) -> [[u8; 64]; 16] {
    type Vector = arch::__m512i;

    // SAFETY of each call: an `Avx512` exists only if the processor has the instructions.
    #[inline(always)]
    fn load(row: &[u8]) -> Vector {
        assert!(row.len() <= 64);
        let mask = u64::MAX.checked_shr(64 - row.len() as u32).unwrap_or(0);
        // SAFETY: as above; bytes outside the mask are not read.
        unsafe { arch::_mm512_maskz_loadu_epi8(mask, row.as_ptr().cast()) }
    }
    // Four steps transpose. One step moves the highest bit of the row number to the lowest
    // bit of the byte number, and the highest bit of the byte number, within each quarter of a
    // vector, to the lowest bit of the row number.
    #[inline(always)]
    fn low(v: &[Vector; 16], i: usize) -> Vector {
        // SAFETY: as above.
        unsafe { arch::_mm512_unpacklo_epi8(v[i], v[i + 8]) }
    }
    #[inline(always)]
    fn high(v: &[Vector; 16], i: usize) -> Vector {
        // SAFETY: as above.
        unsafe { arch::_mm512_unpackhi_epi8(v[i], v[i + 8]) }
    }
    // Unrolled, so that all sixteen vectors stay in registers.
    macro_rules! interleave {
        ($v:expr, $($i:literal)*) => {{
            let v = $v;
            [$(low(&v, $i), high(&v, $i)),*]
        }};
    }
    macro_rules! rows {
        ($($i:literal)*) => { [$(load(row($i))),*] };
    }

    let v = rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    let v = interleave!(v, 0 1 2 3 4 5 6 7);
    let v = interleave!(v, 0 1 2 3 4 5 6 7);
    let v = interleave!(v, 0 1 2 3 4 5 6 7);
    let v = interleave!(v, 0 1 2 3 4 5 6 7);
    // SAFETY: both types are sixteen times 64 bytes, and every bit pattern is valid.
    unsafe { std::mem::transmute(v) }
}
