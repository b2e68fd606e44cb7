//! Copies of elements that don't lie next to each other.
//!
//! Problem: an element at a time, a copy is bound by instructions where the next
//! element is near, and by misses of the cache where it is far. Technique: rows
//! of a small step are loops that the compiler makes vectors of; planes whose
//! rows are far apart, but whose columns are near, are turned in tiles that fit
//! into the cache, and within them in tiles that fit into registers.

#[cfg(target_arch = "x86_64")]
use super::quick;
#[cfg(target_arch = "x86_64")]
use super::simd::{Lanes, Wide};
use super::simd::{Vectorized, dispatch};

/// Steps up to this one have loops of their own.
pub const NEAR: usize = 4;

/// Rows and columns of a tile of a plane.
const TILE: usize = 64;

/// Copies every `step`-th element from the first one on, backwards if `step` is
/// negative.
pub fn row<const N: usize>(source: &[[u8; N]], first: usize, step: isize, out: &mut [[u8; N]]) {
    if out.is_empty() {
        return;
    }
    match step {
        1 => out.copy_from_slice(&source[first..first + out.len()]),
        0 => out.fill(source[first]),
        -1 => dispatch(Reversed { source: &source[first + 1 - out.len()..=first], out }),
        2 => dispatch(Every::<N, 2> { source: &source[first..], out }),
        3 => dispatch(Every::<N, 3> { source: &source[first..], out }),
        4 => dispatch(Every::<N, 4> { source: &source[first..], out }),
        _ => {
            let mut place = first as isize;
            for slot in out {
                *slot = source[place as usize];
                place += step;
            }
        }
    }
}

struct Reversed<'a, const N: usize> {
    source: &'a [[u8; N]],
    out: &'a mut [[u8; N]],
}

impl<const N: usize> Vectorized for Reversed<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (slot, &element) in self.out.iter_mut().rev().zip(self.source) {
            *slot = element;
        }
    }
}

struct Every<'a, const N: usize, const STEP: usize> {
    source: &'a [[u8; N]],
    out: &'a mut [[u8; N]],
}

impl<const N: usize, const STEP: usize> Vectorized for Every<'_, N, STEP> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (groups, _) = self.source.as_chunks::<STEP>();
        let whole = groups.len().min(self.out.len());
        for (slot, group) in self.out[..whole].iter_mut().zip(groups) {
            *slot = group[0];
        }
        // The last group may lack what comes after its first element.
        for (slot, element) in
            self.out[whole..].iter_mut().zip(self.source[whole * STEP..].iter().step_by(STEP))
        {
            *slot = *element;
        }
    }
}

/// A plane of a source: the first element, and the distances between rows and
/// between columns.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    /// Of rows and columns.
    pub shape: (usize, usize),
    /// The first element.
    pub first: isize,
    /// From a row to the next; columns are far.
    pub row: isize,
    /// From a column to the next.
    pub column: isize,
}

/// Copies a plane to rows that begin `pitch` elements apart.
pub fn plane<const N: usize>(source: &[[u8; N]], plane: Plane, out: &mut [[u8; N]], pitch: usize) {
    let (rows, columns) = plane.shape;
    for left in (0..columns).step_by(TILE) {
        for top in (0..rows).step_by(TILE) {
            let part = Plane {
                shape: (TILE.min(rows - top), TILE.min(columns - left)),
                first: plane.first + top as isize * plane.row + left as isize * plane.column,
                ..plane
            };
            tile(source, part, &mut out[top * pitch + left..], pitch);
        }
    }
}

fn tile<const N: usize>(source: &[[u8; N]], plane: Plane, out: &mut [[u8; N]], pitch: usize) {
    #[cfg(target_arch = "x86_64")]
    if plane.row == 1
        && let Some(wide) = Wide::detect()
    {
        if let (Some(source), Some(out)) = (same_width::<N, 4>(source), same_width_mut::<N, 4>(&mut *out)) {
            return dispatch(Turned::<u32, 16> { wide, source, plane, out, pitch });
        }
        if let (Some(source), Some(out)) = (same_width::<N, 8>(source), same_width_mut::<N, 8>(&mut *out)) {
            return dispatch(Turned::<u64, 8> { wide, source, plane, out, pitch });
        }
    }
    let Plane { shape: (rows, columns), first, row, column } = plane;
    // Whole groups of eight by eight bytes or four by four pairs.
    let group = if row == 1 && N <= 2 { 8 / N } else { 0 };
    let (down, across) = match group {
        0 => (0, 0),
        _ => (rows / group * group, columns / group * group),
    };
    if group > 0 {
        for left in (0..across).step_by(group) {
            let from = first + left as isize * column;
            let (from, out) = ((from, column), &mut out[left..]);
            dispatch(Swapped {
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

fn same_width<const N: usize, const M: usize>(elements: &[[u8; N]]) -> Option<&[[u8; M]]> {
    (N == M).then_some(elements.as_flattened().as_chunks().0)
}

fn same_width_mut<const N: usize, const M: usize>(elements: &mut [[u8; N]]) -> Option<&mut [[u8; M]]> {
    (N == M).then_some(elements.as_flattened_mut().as_chunks_mut().0)
}

/// Turns bytes or pairs of them, eight bytes at a time: words of two rows swap
/// halves, then quarters, then bytes.
struct Swapped<'a> {
    source: &'a [u8],
    /// The first element and the distance between columns.
    from: (isize, isize),
    rows: usize,
    out: &'a mut [u8],
    pitch: usize,
    width: usize,
}

/// Words that are turned side by side.
const WORDS: usize = 8;

impl Vectorized for Swapped<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.width {
            1 => self.turn::<8>(),
            _ => self.turn::<4>(),
        }
    }
}

impl Swapped<'_> {
    /// In groups of so many columns, as there are elements in a word.
    #[inline(always)]
    fn turn<const GROUP: usize>(self) {
        let width = 8 / GROUP;
        let (first, column) = self.from;
        let mut top = 0;
        while top < self.rows {
            let count = WORDS.min((self.rows - top) / GROUP);
            let mut words = [[0u64; WORDS]; GROUP];
            for (i, words) in words.iter_mut().enumerate() {
                let place = (first + i as isize * column) as usize + top;
                let bytes = &self.source[place * width..][..count * 8];
                if let Ok(bytes) = <&[u8; WORDS * 8]>::try_from(bytes) {
                    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                        *word = u64::from_le_bytes(*bytes);
                    }
                } else {
                    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                        *word = u64::from_le_bytes(*bytes);
                    }
                }
            }
            swap::<GROUP>(&mut words, GROUP / 2, 32, 0x0000_0000_ffff_ffff);
            swap::<GROUP>(&mut words, GROUP / 4, 16, 0x0000_ffff_0000_ffff);
            if GROUP == 8 {
                swap::<GROUP>(&mut words, 1, 8, 0x00ff_00ff_00ff_00ff);
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
fn swap<const GROUP: usize>(words: &mut [[u64; WORDS]; GROUP], by: usize, shift: u32, mask: u64) {
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

/// Turns a plane in squares of vectors.
#[cfg(target_arch = "x86_64")]
struct Turned<'a, K: Lanes, const LANES: usize> {
    wide: Wide,
    source: &'a [K::Bytes],
    plane: Plane,
    out: &'a mut [K::Bytes],
    pitch: usize,
}

#[cfg(target_arch = "x86_64")]
impl<K: Lanes, const LANES: usize> Vectorized for Turned<'_, K, LANES> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Turned { wide, source, plane, out, pitch } = self;
        let (rows, columns) = plane.shape;
        for top in (0..rows).step_by(LANES) {
            let high = LANES.min(rows - top);
            for left in (0..columns).step_by(LANES) {
                let across = LANES.min(columns - left);
                let mut v = [K::splat(wide, K::LAST); LANES];
                let mut place = plane.first + top as isize + left as isize * plane.column;
                if high == LANES && across == LANES {
                    for v in &mut v {
                        *v = K::read(wide, &source[place as usize..][..LANES]);
                        place += plane.column;
                    }
                } else {
                    for v in &mut v[..across] {
                        *v = K::read(wide, &source[place as usize..][..high]);
                        place += plane.column;
                    }
                }
                quick::turn::<K, LANES>(wide, &mut v);
                let out = &mut out[top * pitch + left..];
                for (i, &v) in v[..high].iter().enumerate() {
                    K::write(wide, v, &mut out[i * pitch..][..across]);
                }
            }
        }
    }
}
