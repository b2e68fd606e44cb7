//! Copies of many rows of a few elements, and rows that repeat one element.
//!
//! Problem: a call for each row, or a loop over its elements, takes longer than to move them.
//! Technique: a separate loop for each length, whose rows the compiler unrolls. It vectorizes the loops
//! that interleave columns, repeat elements, and reverse rows.

use crate::exec::simd::{Vectorized, dispatch};

/// The maximum number of elements in a short row.
pub const MAX_LENGTH: usize = 16;

/// The minimum number of short rows that are copied together.
pub const MIN_ROWS: usize = 4;

/// The maximum number of bytes of rows that are written piece by piece, so that they stay in the cache of a
/// core meanwhile.
const BLOCK_BYTES: usize = 1 << 13;

/// Rows of a source.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The index of the first element.
    pub first: isize,
    /// The distance from a row to the next.
    pub stride: isize,
    /// The distance from an element of a row to the next.
    pub step: isize,
}

/// Copies rows of `length` elements, at most [`MAX_LENGTH`], to `out`, where they begin `pitch` elements
/// apart.
#[inline(always)]
pub fn copy<const N: usize>(
    source: &[[u8; N]],
    rows: Rows,
    length: usize,
    out: &mut [[u8; N]],
    pitch: usize,
) {
    match length {
        1 => copy_rows::<N, 1>(source, rows, out, pitch),
        2 => copy_rows::<N, 2>(source, rows, out, pitch),
        3 => copy_rows::<N, 3>(source, rows, out, pitch),
        4 => copy_rows::<N, 4>(source, rows, out, pitch),
        8 => copy_rows::<N, 8>(source, rows, out, pitch),
        _ => copy_in_pieces(source, rows, length, out, pitch),
    }
}

/// Copies eight, four or fewer elements of each row at a time.
#[inline(always)]
fn copy_in_pieces<const N: usize>(
    source: &[[u8; N]],
    mut rows: Rows,
    length: usize,
    out: &mut [[u8; N]],
    pitch: usize,
) {
    let block_rows = (BLOCK_BYTES / (pitch * N)).max(1);
    for out in out.chunks_mut(block_rows * pitch) {
        let mut done = 0;
        while done < length {
            let part = Rows { first: rows.first + done as isize * rows.step, ..rows };
            let out = &mut out[done..];
            done += match length - done {
                8.. => {
                    copy_rows::<N, 8>(source, part, out, pitch);
                    8
                }
                4..8 => {
                    copy_rows::<N, 4>(source, part, out, pitch);
                    4
                }
                3 => {
                    copy_rows::<N, 3>(source, part, out, pitch);
                    3
                }
                2 => {
                    copy_rows::<N, 2>(source, part, out, pitch);
                    2
                }
                _ => {
                    copy_rows::<N, 1>(source, part, out, pitch);
                    1
                }
            };
        }
        rows.first += block_rows as isize * rows.stride;
    }
}

#[inline(always)]
fn copy_rows<const N: usize, const L: usize>(
    source: &[[u8; N]],
    Rows { first, stride, step }: Rows,
    out: &mut [[u8; N]],
    pitch: usize,
) {
    if pitch == L && stride == 1 {
        let column = |column: usize| &source[(first + column as isize * step) as usize..];
        return interleave::<N, L>(std::array::from_fn(column), out);
    }
    if pitch == L && step == -1 && stride == L as isize {
        let rows = source[(first + 1 - L as isize) as usize..].as_chunks::<L>().0;
        for (out, row) in out.as_chunks_mut::<L>().0.iter_mut().zip(rows) {
            for (column, slot) in out.iter_mut().enumerate() {
                *slot = row[L - 1 - column];
            }
        }
        return;
    }
    let mut place = first;
    for out in out.chunks_mut(pitch) {
        if step == 1 {
            out[..L].copy_from_slice(&source[place as usize..][..L]);
        } else {
            for (column, slot) in out[..L].iter_mut().enumerate() {
                *slot = source[(place + column as isize * step) as usize];
            }
        }
        place += stride;
    }
}

/// Writes the first elements of all columns, then the second ones, and so on.
#[inline(always)]
fn interleave<const N: usize, const L: usize>(columns: [&[[u8; N]]; L], out: &mut [[u8; N]]) {
    let out = out.as_chunks_mut::<L>().0;
    let columns = columns.map(|column| &column[..out.len()]);
    for (row, out) in out.iter_mut().enumerate() {
        for (slot, column) in out.iter_mut().zip(columns) {
            *slot = column[row];
        }
    }
}

/// Copies the rows of several sources beside each other: a row of `out` has a row of each source, whose
/// rows are dense, have these numbers of elements, and are short.
pub fn join<const N: usize>(parts: &[(&[[u8; N]], usize)], out: &mut [[u8; N]]) {
    dispatch(JoinLoop { parts, out });
}

struct JoinLoop<'a, const N: usize> {
    parts: &'a [(&'a [[u8; N]], usize)],
    out: &'a mut [[u8; N]],
}

impl<const N: usize> Vectorized for JoinLoop<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let JoinLoop { parts, out } = self;
        match *parts {
            [(a, 1), (b, 1)] => return interleave([a, b], out),
            [(a, 1), (b, 1), (c, 1)] => return interleave([a, b, c], out),
            [(a, 1), (b, 1), (c, 1), (d, 1)] => return interleave([a, b, c, d], out),
            _ => {}
        }
        let pitch: usize = parts.iter().map(|part| part.1).sum();
        let block_rows = (BLOCK_BYTES / (pitch * N)).max(1);
        for (block, out) in out.chunks_mut(block_rows * pitch).enumerate() {
            let mut left = 0;
            for &(source, length) in parts {
                let rows =
                    Rows { first: (block * block_rows * length) as isize, stride: length as isize, step: 1 };
                copy(source, rows, length, &mut out[left..], pitch);
                left += length;
            }
        }
    }
}

/// Copies dense rows of `length` elements to rows of `out` that begin `pitch` elements apart.
pub fn copy_apart<const N: usize>(source: &[[u8; N]], length: usize, out: &mut [[u8; N]], pitch: usize) {
    let rows = Rows { first: 0, stride: length as isize, step: 1 };
    dispatch(CopyLoop { source, rows, length, out, pitch });
}

/// Copies each element to `count` adjacent ones.
pub fn repeat_each<const N: usize>(elements: &[[u8; N]], count: usize, out: &mut [[u8; N]]) {
    dispatch(RepeatLoop { elements, count, out });
}

struct RepeatLoop<'a, const N: usize> {
    elements: &'a [[u8; N]],
    count: usize,
    out: &'a mut [[u8; N]],
}

impl<const N: usize> Vectorized for RepeatLoop<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.count {
            0 => {}
            1 => self.in_pieces::<1>(),
            2 => self.in_pieces::<2>(),
            3 => self.in_pieces::<3>(),
            4..8 => self.in_pieces::<4>(),
            8..16 => self.in_pieces::<8>(),
            _ => self.in_pieces::<16>(),
        }
    }
}

impl<const N: usize> RepeatLoop<'_, N> {
    /// Writes the copies piece by piece, of which the last overlaps the one before if they don't fit. There are at
    /// least as many copies as a piece has.
    #[inline(always)]
    fn in_pieces<const L: usize>(self) {
        for (out, &element) in self.out.chunks_exact_mut(self.count).zip(self.elements) {
            if let Some(last) = out.last_chunk_mut() {
                *last = [element; L];
            }
            for piece in out.as_chunks_mut::<L>().0 {
                *piece = [element; L];
            }
        }
    }
}

/// Fills `out` with copies of a short row; returns whether it has.
pub fn try_repeat_row<const N: usize>(row: &[[u8; N]], out: &mut [[u8; N]]) -> bool {
    let fits = !row.is_empty() && row.len() <= MAX_LENGTH && out.len().is_multiple_of(row.len());
    if fits {
        let rows = Rows { first: 0, stride: 0, step: 1 };
        dispatch(CopyLoop { source: row, rows, length: row.len(), out, pitch: row.len() });
    }
    fits
}

struct CopyLoop<'a, const N: usize> {
    source: &'a [[u8; N]],
    rows: Rows,
    length: usize,
    out: &'a mut [[u8; N]],
    pitch: usize,
}

impl<const N: usize> Vectorized for CopyLoop<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        copy(self.source, self.rows, self.length, self.out, self.pitch);
    }
}
