//! Copies of planes whose rows are far apart, but whose columns are near.
//!
//! Problem: an element at a time, a copy is bound by misses of the cache. Technique:
//! planes are turned in tiles that fit into the cache, and within them in tiles that
//! fit into registers.

#[cfg(target_arch = "x86_64")]
use crate::exec::simd;
use crate::exec::simd::{Avx2, Avx512, CACHE_LINE_BYTES, InstructionSet, IntVector, Vectorized, dispatch};
#[cfg(target_arch = "x86_64")]
use crate::exec::sort::simd_quicksort;
use crate::exec::threads::parallel::Cost;
use crate::exec::threads::{cooperative_yield, parallel};

/// What copying an element costs.
pub const COST: Cost = 250;

/// A plane of more bytes is turned in strips, so that its rows are written in longer runs
/// than registers hold.
const DIRECT: usize = 1 << 15;

/// Bytes of a column of a strip: what is read at once.
const HIGH: usize = 128;

/// Bytes of a row of a strip.
const ACROSS: usize = 1024;

/// Rows and columns of a tile.
const TILE: usize = 64;

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

impl Plane {
    /// At most so many rows and columns from one of each on.
    fn part(self, top: usize, left: usize, (high, across): (usize, usize)) -> Self {
        let (rows, columns) = self.shape;
        let first = self.first + top as isize * self.row + left as isize * self.column;
        Plane { shape: (high.min(rows - top), across.min(columns - left)), first, ..self }
    }
}

/// Copies a plane to rows that begin `pitch` elements apart.
pub fn plane<const N: usize>(source: &[[u8; N]], plane: Plane, out: &mut [[u8; N]], pitch: usize) {
    let (rows, columns) = plane.shape;
    let (high, across) = (HIGH / N, ACROSS / N);
    // Rows of the strip don't begin at one place of the cache.
    let padded = across.min(columns) + CACHE_LINE_BYTES / N;
    let mut strip = Vec::new();
    if rows * columns * N <= DIRECT || strip.try_reserve_exact(high * padded).is_err() {
        turn(source, plane, out, pitch);
        return cooperative_yield::after(parallel::work(rows * columns, COST));
    }
    strip.resize(high * padded, [0; N]);
    for left in (0..columns).step_by(across) {
        for top in (0..rows).step_by(high) {
            let part = plane.part(top, left, (high, across));
            turn(source, part, &mut strip, padded);
            let (high, across) = part.shape;
            let rows = out[top * pitch + left..].chunks_mut(pitch);
            for (row, turned) in rows.zip(strip.chunks(padded)).take(high) {
                row[..across].copy_from_slice(&turned[..across]);
            }
            cooperative_yield::after(parallel::work(high * across, COST));
        }
    }
}

fn turn<const N: usize>(source: &[[u8; N]], plane: Plane, out: &mut [[u8; N]], pitch: usize) {
    let (rows, columns) = plane.shape;
    #[cfg(target_arch = "x86_64")]
    if plane.row == 1 {
        if let Some(wide) = Avx512::detect() {
            if turn_by::<_, N, 16, 8>(wide, source, plane, out, pitch) {
                return;
            }
            if N == 1 && columns >= BYTES && rows >= BYTES {
                let (source, out) = (source.as_flattened(), out.as_flattened_mut());
                return wide.run(TurnedBytes { wide, source, plane, out, pitch });
            }
        } else if let Some(set) = Avx2::detect()
            && turn_by::<_, N, 8, 4>(set, source, plane, out, pitch)
        {
            return;
        }
    }
    for left in (0..columns).step_by(TILE) {
        for top in (0..rows).step_by(TILE) {
            tile(source, plane.part(top, left, (TILE, TILE)), &mut out[top * pitch + left..], pitch);
        }
    }
}

/// Turns elements of 4 and 8 bytes with vectors that hold so many of them; whether they are.
#[cfg(target_arch = "x86_64")]
fn turn_by<S: InstructionSet, const N: usize, const FOURS: usize, const EIGHTS: usize>(
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
        set.run(Turned::<S, u32, FOURS> { set, source, plane, out, pitch });
        return true;
    }
    if let (Some(source), Some(out)) = (same_width::<N, 8>(source), same_width_mut::<N, 8>(&mut *out)) {
        set.run(Turned::<S, u64, EIGHTS> { set, source, plane, out, pitch });
        return true;
    }
    false
}

fn tile<const N: usize>(source: &[[u8; N]], plane: Plane, out: &mut [[u8; N]], pitch: usize) {
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

#[cfg(target_arch = "x86_64")]
fn same_width<const N: usize, const M: usize>(elements: &[[u8; N]]) -> Option<&[[u8; M]]> {
    (N == M).then_some(elements.as_flattened().as_chunks().0)
}

#[cfg(target_arch = "x86_64")]
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
struct Turned<'a, S: InstructionSet, K: IntVector<S>, const LANES: usize> {
    set: S,
    source: &'a [K::Bytes],
    plane: Plane,
    out: &'a mut [K::Bytes],
    pitch: usize,
}

#[cfg(target_arch = "x86_64")]
impl<S: InstructionSet, K: IntVector<S>, const LANES: usize> Vectorized for Turned<'_, S, K, LANES> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (rows, columns) = self.plane.shape;
        if rows >= LANES && columns >= LANES {
            // The last squares lie over those before.
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
impl<S: InstructionSet, K: IntVector<S>, const LANES: usize> Turned<'_, S, K, LANES> {
    #[inline(always)]
    fn square(&mut self, top: usize, left: usize, (high, across): (usize, usize)) {
        let Plane { first, column, .. } = self.plane;
        let first = first + top as isize + left as isize * column;
        let mut v = [K::splat(self.set, K::LARGEST); LANES];
        for (i, v) in v.iter_mut().enumerate() {
            let place = first + i.min(across - 1) as isize * column;
            *v = K::read(self.set, &self.source[place as usize..][..high]);
        }
        simd_quicksort::transpose::<S, K, LANES>(self.set, &mut v);
        let out = &mut self.out[top * self.pitch + left..];
        for (i, &v) in v.iter().enumerate() {
            if i < high {
                K::write(self.set, v, &mut out[i * self.pitch..][..across]);
            }
        }
    }
}

/// Bytes of a vector's quarter.
#[cfg(target_arch = "x86_64")]
const BYTES: usize = 16;

/// Turns a plane of bytes, sixteen columns of up to 64 rows at a time.
#[cfg(target_arch = "x86_64")]
struct TurnedBytes<'a> {
    wide: Avx512,
    source: &'a [u8],
    plane: Plane,
    out: &'a mut [u8],
    pitch: usize,
}

#[cfg(target_arch = "x86_64")]
impl Vectorized for TurnedBytes<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let TurnedBytes { wide, source, plane, out, pitch } = self;
        let (rows, columns) = plane.shape;
        let high = rows.min(64);
        for left in (0..columns).step_by(BYTES) {
            // The last lie over those before.
            let left = left.min(columns - BYTES);
            for top in (0..rows).step_by(high) {
                let top = top.min(rows - high);
                let first = plane.first + top as isize + left as isize * plane.column;
                let turned = simd::transpose_bytes(wide, |i| {
                    let place = first + i as isize * plane.column;
                    &source[place as usize..][..high]
                });
                let out = &mut out[top * pitch + left..];
                for row in 0..high {
                    let turned = &turned[row % BYTES][row / BYTES * BYTES..][..BYTES];
                    out[row * pitch..][..BYTES].copy_from_slice(turned);
                }
            }
        }
    }
}
