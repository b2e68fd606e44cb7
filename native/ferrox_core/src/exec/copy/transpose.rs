//! Transposes planes: the elements of a row are far apart in the source, the elements of a column
//! near.
//!
//! Problem: a transpose of one element at a time is bound by cache misses.
//! Technique: cache blocking, and within the cache blocks in-register transposes by recursive block
//! swaps: vectors (or words of eight bytes) exchange halves, then quarters, and so on. For bytes
//! and pairs of bytes in words, this is the method for 8x8 bit matrices, applied to bytes (Warren,
//! "Hacker's Delight", section 7-3).

use std::ops::Range;

use smallvec::SmallVec;

use crate::cost::{
    self, MAX_DIRECT_PLANE_BYTES, STRIP_COLUMN_BYTES, STRIP_ROW_BYTES, TRANSPOSE_TILE_SIDE,
    TRANSPOSED_ELEMENT_COST,
};
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{self, Avx2, Avx512, InstructionSet, IntVector};
use crate::exec::simd::{CACHE_LINE_BYTES, Vectorized, dispatch};
use crate::exec::threads::cooperative_yield;

/// A plane of the source: its shape after transposing, its first element, and the distances between
/// rows and between columns, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    /// The number of rows and of columns.
    pub shape: (usize, usize),
    /// The index of the first element.
    pub first: isize,
    /// The distance from a row to the next, which is small.
    pub row: isize,
    /// The distance from a column to the next, which is large.
    pub column: isize,
}

impl Plane {
    /// The part of the plane from row `top` and column `left` on, with at most `high` rows and
    /// `across` columns.
    fn part(self, top: usize, left: usize, (high, across): (usize, usize)) -> Self {
        let (rows, columns) = self.shape;
        let first = self.first + top as isize * self.row + left as isize * self.column;
        Plane { shape: (high.min(rows - top), across.min(columns - left)), first, ..self }
    }
}

/// Copies a plane row by row; the rows of `out` begin `pitch` elements apart.
pub fn plane<const N: usize>(source: &[[u8; N]], plane: Plane, out: &mut [[u8; N]], pitch: usize) {
    let (rows, columns) = plane.shape;
    let (high, across) = (STRIP_COLUMN_BYTES / N, STRIP_ROW_BYTES / N);
    // Padding, so that the rows of the strip don't share one set of the cache.
    let padded = across.min(columns) + CACHE_LINE_BYTES / N;
    let mut strip = Vec::new();
    if rows * columns * N <= MAX_DIRECT_PLANE_BYTES || strip.try_reserve_exact(high * padded).is_err() {
        transpose(source, plane, out, pitch);
        return cooperative_yield::after(cost::work(rows * columns, TRANSPOSED_ELEMENT_COST));
    }
    strip.resize(high * padded, [0; N]);
    for left in (0..columns).step_by(across) {
        for top in (0..rows).step_by(high) {
            let part = plane.part(top, left, (high, across));
            transpose(source, part, &mut strip, padded);
            let (high, across) = part.shape;
            let rows = out[top * pitch + left..].chunks_mut(pitch);
            for (row, transposed) in rows.zip(strip.chunks(padded)).take(high) {
                row[..across].copy_from_slice(&transposed[..across]);
            }
            cooperative_yield::after(cost::work(high * across, TRANSPOSED_ELEMENT_COST));
        }
    }
}

/// The number of short rows that are transposed at a time.
pub const ROWS_PER_BLOCK: usize = 64;

/// Transposes blocks of short rows, so that loops over the lanes of SIMD vectors have elements of
/// different rows. The rows have `length` elements of `width` bytes, and begin `stride` elements apart.
/// Calls `each` with the numbers of the rows of a block and their columns, which begin `ROWS_PER_BLOCK`
/// elements apart.
#[inline(always)]
pub fn for_blocks_of_rows(
    width: usize,
    bytes: &[u8],
    (rows, length, stride): (usize, usize, usize),
    mut each: impl FnMut(Range<usize>, &[u8]),
) {
    let mut columns = SmallVec::<[u8; 1 << 13]>::from_elem(0, length * ROWS_PER_BLOCK * width);
    for first in (0..rows).step_by(ROWS_PER_BLOCK) {
        let block = first..rows.min(first + ROWS_PER_BLOCK);
        let plane = Plane {
            shape: (length, block.len()),
            first: (first * stride) as isize,
            row: 1,
            column: stride as isize,
        };
        crate::dispatch!(width width, N => {
            self::plane::<N>(bytes.as_chunks().0, plane, columns.as_chunks_mut().0, ROWS_PER_BLOCK);
        });
        each(block, &columns);
    }
}

fn transpose<const N: usize>(source: &[[u8; N]], plane: Plane, out: &mut [[u8; N]], pitch: usize) {
    let (rows, columns) = plane.shape;
    #[cfg(target_arch = "x86_64")]
    if plane.row == 1 {
        if let Some(wide) = Avx512::detect() {
            if transpose_by_vectors::<_, N, 16, 8>(wide, source, plane, out, pitch) {
                return;
            }
            if N == 1 && columns >= BYTE_TILE_COLUMNS && rows >= BYTE_TILE_COLUMNS {
                let (source, out) = (source.as_flattened(), out.as_flattened_mut());
                return wide.run(ByteTransposeLoop { wide, source, plane, out, pitch });
            }
        } else if let Some(set) = Avx2::detect()
            && transpose_by_vectors::<_, N, 8, 4>(set, source, plane, out, pitch)
        {
            return;
        }
    }
    for left in (0..columns).step_by(TRANSPOSE_TILE_SIDE) {
        for top in (0..rows).step_by(TRANSPOSE_TILE_SIDE) {
            tile(
                source,
                plane.part(top, left, (TRANSPOSE_TILE_SIDE, TRANSPOSE_TILE_SIDE)),
                &mut out[top * pitch + left..],
                pitch,
            );
        }
    }
}

/// Transposes elements of 4 or 8 bytes with vectors of `FOURS` or `EIGHTS` elements. Returns
/// whether the elements have one of these widths.
#[cfg(target_arch = "x86_64")]
fn transpose_by_vectors<S: InstructionSet, const N: usize, const FOURS: usize, const EIGHTS: usize>(
    set: S,
    source: &[[u8; N]],
    plane: Plane,
    out: &mut [[u8; N]],
    pitch: usize,
) -> bool
where
    u32: IntVector<S, Bytes = [u8; 4]>,
    u64: IntVector<S, Bytes = [u8; 8]>,
{
    if let (Some(source), Some(out)) = (same_width::<N, 4>(source), same_width_mut::<N, 4>(&mut *out)) {
        set.run(VectorTransposeLoop::<S, u32, FOURS> { set, source, plane, out, pitch });
        return true;
    }
    if let (Some(source), Some(out)) = (same_width::<N, 8>(source), same_width_mut::<N, 8>(&mut *out)) {
        set.run(VectorTransposeLoop::<S, u64, EIGHTS> { set, source, plane, out, pitch });
        return true;
    }
    false
}

fn tile<const N: usize>(source: &[[u8; N]], plane: Plane, out: &mut [[u8; N]], pitch: usize) {
    let Plane { shape: (rows, columns), first, row, column } = plane;
    // The number of rows and columns in a square block: 8 for bytes, 4 for pairs of bytes.
    let group = if row == 1 && N <= 2 { 8 / N } else { 0 };
    let (down, across) = match group {
        0 => (0, 0),
        _ => (rows / group * group, columns / group * group),
    };
    if group > 0 {
        for left in (0..across).step_by(group) {
            let from = first + left as isize * column;
            let (from, out) = ((from, column), &mut out[left..]);
            dispatch(WordTransposeLoop {
                source: source.as_flattened(),
                from,
                rows: down,
                out: out.as_flattened_mut(),
                pitch,
                width: N,
            });
        }
    }
    for i in 0..rows {
        let skipped = if i < down { across } else { 0 };
        let mut place = first + i as isize * row + skipped as isize * column;
        for slot in &mut out[i * pitch..][skipped..columns] {
            *slot = source[place as usize];
            place += column;
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn same_width<const N: usize, const M: usize>(elements: &[[u8; N]]) -> Option<&[[u8; M]]> {
    (N == M).then_some(elements.as_flattened().as_chunks().0)
}

#[cfg(target_arch = "x86_64")]
fn same_width_mut<const N: usize, const M: usize>(elements: &mut [[u8; N]]) -> Option<&mut [[u8; M]]> {
    (N == M).then_some(elements.as_flattened_mut().as_chunks_mut().0)
}

/// Transposes bytes or pairs of bytes in words of eight bytes: the words of two rows swap halves,
/// then quarters, then bytes (Warren, "Hacker's Delight", section 7-3).
struct WordTransposeLoop<'a> {
    source: &'a [u8],
    /// The index of the first element and the distance between columns.
    from: (isize, isize),
    rows: usize,
    out: &'a mut [u8],
    pitch: usize,
    width: usize,
}

/// The number of words of each row that are transposed side by side, so that loops over them are
/// vectorized.
const WORDS_SIDE_BY_SIDE: usize = 8;

impl Vectorized for WordTransposeLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.width {
            1 => self.transpose::<8>(),
            _ => self.transpose::<4>(),
        }
    }
}

impl WordTransposeLoop<'_> {
    /// Transposes square blocks of `GROUP` rows and columns, where a word has `GROUP` elements.
    #[inline(always)]
    fn transpose<const GROUP: usize>(self) {
        let width = 8 / GROUP;
        let (first, column) = self.from;
        let mut top = 0;
        while top < self.rows {
            let count = WORDS_SIDE_BY_SIDE.min((self.rows - top) / GROUP);
            let mut words = [[0u64; WORDS_SIDE_BY_SIDE]; GROUP];
            for (i, words) in words.iter_mut().enumerate() {
                let place = (first + i as isize * column) as usize + top;
                let bytes = &self.source[place * width..][..count * 8];
                if let Ok(bytes) = <&[u8; WORDS_SIDE_BY_SIDE * 8]>::try_from(bytes) {
                    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                        *word = u64::from_le_bytes(*bytes);
                    }
                } else {
                    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                        *word = u64::from_le_bytes(*bytes);
                    }
                }
            }
            swap_blocks::<GROUP>(&mut words, GROUP / 2, 32, 0x0000_0000_ffff_ffff);
            swap_blocks::<GROUP>(&mut words, GROUP / 4, 16, 0x0000_ffff_0000_ffff);
            if GROUP == 8 {
                swap_blocks::<GROUP>(&mut words, 1, 8, 0x00ff_00ff_00ff_00ff);
            }
            for k in 0..count {
                for (i, words) in words.iter().enumerate() {
                    let place = (top + k * GROUP + i) * self.pitch * width;
                    self.out[place..place + 8].copy_from_slice(&words[k].to_le_bytes());
                }
            }
            top += count * GROUP;
        }
    }
}

#[inline(always)]
fn swap_blocks<const GROUP: usize>(
    words: &mut [[u64; WORDS_SIDE_BY_SIDE]; GROUP],
    by: usize,
    shift: u32,
    mask: u64,
) {
    for i in 0..GROUP {
        if i & by == 0 {
            let (head, tail) = words.split_at_mut(i + by);
            for (a, b) in head[i].iter_mut().zip(&mut tail[0]) {
                let changed = (*a >> shift ^ *b) & mask;
                *a ^= changed << shift;
                *b ^= changed;
            }
        }
    }
}

/// Transposes a plane in square blocks of `LANES` vectors.
#[cfg(target_arch = "x86_64")]
struct VectorTransposeLoop<'a, S: InstructionSet, K: IntVector<S>, const LANES: usize> {
    set: S,
    source: &'a [K::Bytes],
    plane: Plane,
    out: &'a mut [K::Bytes],
    pitch: usize,
}

#[cfg(target_arch = "x86_64")]
impl<S: InstructionSet, K: IntVector<S>, const LANES: usize> Vectorized
    for VectorTransposeLoop<'_, S, K, LANES>
{
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (rows, columns) = self.plane.shape;
        if rows >= LANES && columns >= LANES {
            // The last blocks overlap the blocks before.
            for top in (0..rows).step_by(LANES) {
                for left in (0..columns).step_by(LANES) {
                    self.square(top.min(rows - LANES), left.min(columns - LANES), (LANES, LANES));
                }
            }
            return;
        }
        for top in (0..rows).step_by(LANES) {
            for left in (0..columns).step_by(LANES) {
                self.square(top, left, (LANES.min(rows - top), LANES.min(columns - left)));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl<S: InstructionSet, K: IntVector<S>, const LANES: usize> VectorTransposeLoop<'_, S, K, LANES> {
    #[inline(always)]
    fn square(&mut self, top: usize, left: usize, (high, across): (usize, usize)) {
        let Plane { first, column, .. } = self.plane;
        let first = first + top as isize + left as isize * column;
        let mut v = [K::splat(self.set, K::LARGEST); LANES];
        for (i, v) in v.iter_mut().enumerate() {
            let place = first + i.min(across - 1) as isize * column;
            *v = K::read(self.set, &self.source[place as usize..][..high]);
        }
        simd::transpose_vectors::<S, K, LANES>(self.set, &mut v);
        let out = &mut self.out[top * self.pitch + left..];
        for (i, &v) in v.iter().enumerate() {
            if i < high {
                K::write(self.set, v, &mut out[i * self.pitch..][..across]);
            }
        }
    }
}

/// The number of columns in a tile of bytes: a quarter of an AVX-512 vector.
#[cfg(target_arch = "x86_64")]
const BYTE_TILE_COLUMNS: usize = 16;

/// Transposes a plane of bytes, sixteen columns of up to 64 rows at a time.
#[cfg(target_arch = "x86_64")]
struct ByteTransposeLoop<'a> {
    wide: Avx512,
    source: &'a [u8],
    plane: Plane,
    out: &'a mut [u8],
    pitch: usize,
}

#[cfg(target_arch = "x86_64")]
impl Vectorized for ByteTransposeLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let ByteTransposeLoop { wide, source, plane, out, pitch } = self;
        let (rows, columns) = plane.shape;
        let high = rows.min(64);
        for left in (0..columns).step_by(BYTE_TILE_COLUMNS) {
            // The last tiles overlap the tiles before.
            let left = left.min(columns - BYTE_TILE_COLUMNS);
            for top in (0..rows).step_by(high) {
                let top = top.min(rows - high);
                let first = plane.first + top as isize + left as isize * plane.column;
                let transposed = simd::transpose_bytes(wide, |i| {
                    let place = first + i as isize * plane.column;
                    &source[place as usize..][..high]
                });
                let out = &mut out[top * pitch + left..];
                for row in 0..high {
                    let transposed = &transposed[row % BYTE_TILE_COLUMNS]
                        [row / BYTE_TILE_COLUMNS * BYTE_TILE_COLUMNS..][..BYTE_TILE_COLUMNS];
                    out[row * pitch..][..BYTE_TILE_COLUMNS].copy_from_slice(transposed);
                }
            }
        }
    }
}
