//! One generic loop, compiled for several instruction sets, chosen at run time.
//!
//! The levels are those of the x86-64 psABI; other architectures run the
//! baseline they are compiled for. Loops only use operations whose result
//! IEEE 754 fixes, so that every level gives the same bits.

#![allow(unsafe_code, reason = "calls what is compiled for an instruction set")]

mod halves;

#[cfg(target_arch = "x86_64")]
pub use self::halves::{HALVES, Halves, Singles};
pub use self::halves::{round_to_halves, widen_halves};

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;
use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(target_arch = "x86_64")]
use crate::dtype::Lane;

/// A loop to compile for each level. `run` must be `#[inline(always)]`, and so
/// must what it calls.
pub trait Vectorized {
    /// What the loop computes.
    type Output;
    /// Runs the loop.
    fn run(self) -> Self::Output;

    /// The same where `mul_add` would be a call.
    #[inline(always)]
    fn run_unfused(self) -> Self::Output
    where
        Self: Sized,
    {
        self.run()
    }
}

/// What starts with a line of the cache, so that no vector of it is on two.
#[repr(align(64))]
#[derive(Debug)]
pub struct Aligned<T>(pub T);

/// An instruction set, each including the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What the compiler's target guarantees: SSE2 on x86-64, NEON on AArch64.
    Baseline = 1,
    /// x86-64-v3: AVX2, FMA, BMI, F16C.
    V3 = 2,
    /// x86-64-v4: AVX-512 F, BW, CD, DQ, VL.
    V4 = 3,
}

/// Zero while unknown.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level that loops run at.
#[inline(always)]
#[must_use]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        0 => {
            let detected = detect();
            LEVEL.store(detected as u8, Ordering::Relaxed);
            detected
        }
        1 => Level::Baseline,
        2 => Level::V3,
        _ => Level::V4,
    }
}

/// Lowers the level, for tests and measurements; never raises it above what
/// the processor has.
pub fn limit(level: Level) {
    LEVEL.store(level.min(detect()) as u8, Ordering::Relaxed);
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let v3 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let v4 = v3
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    if v4 {
        Level::V4
    } else if v3 {
        Level::V3
    } else {
        Level::Baseline
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Baseline
}

/// Whether `mul_add` is one instruction in the loops that [`dispatch`] runs, and not a call.
#[inline]
#[must_use]
pub fn fuses() -> bool {
    if cfg!(target_arch = "x86_64") { level() >= Level::V3 } else { cfg!(target_arch = "aarch64") }
}

/// A loop at `Level::V4`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn v4<V: Vectorized>(v: V) -> V::Output {
    v.run()
}

/// Runs a loop with the best instructions that the processor has.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn dispatch<V: Vectorized>(v: V) -> V::Output {
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")]
    fn v3<V: Vectorized>(v: V) -> V::Output {
        v.run()
    }

    match level() {
        Level::Baseline => v.run_unfused(),
        // SAFETY: `level` is never above `detect`, which has found every
        // feature that the function is compiled with.
        Level::V3 => unsafe { v3(v) },
        // SAFETY: as above.
        Level::V4 => unsafe { v4(v) },
    }
}

/// Runs a loop with the instructions of the target.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn dispatch<V: Vectorized>(v: V) -> V::Output {
    if fuses() { v.run() } else { v.run_unfused() }
}

macro_rules! truncate {
    ($($name:ident, $t:ty;)*) => {$(
        /// What is before the point, of magnitudes below 2^31, and else zero: an instruction, while
        /// the compiler makes many of `as`, for one element at a time.
        #[inline(always)]
        #[must_use]
        pub fn $name(x: $t) -> i32 {
            let x = if x.abs() < 2_147_483_648.0 { x } else { 0.0 };
            // SAFETY: it is finite, and a truncated number of that magnitude is an i32.
            unsafe { x.to_int_unchecked() }
        }
    )*};
}
truncate! {
    truncate_f32, f32;
    truncate_f64, f64;
}

/// Brings an element near that will be read soon, wherever the index is.
#[inline(always)]
pub fn prefetch<T>(elements: &[T], index: usize) {
    let address = elements.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is in the baseline, and no address makes it fail.
    unsafe {
        arch::_mm_prefetch::<{ arch::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Brings a row near, of `length` elements from one on, as far as there are so many.
#[inline(always)]
pub fn prefetch_row<T>(elements: &[T], start: usize, length: usize) {
    const LINE: usize = 64;
    for index in (start..elements.len().min(start + length)).step_by((LINE / size_of::<T>()).max(1)) {
        prefetch(elements, index);
    }
}

/// Proof that the processor has `Level::V4`, which lets safe code compute with
/// its vectors.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Wide(());

#[cfg(target_arch = "x86_64")]
impl Wide {
    /// Where loops run at that level.
    #[inline]
    #[must_use]
    pub fn detect() -> Option<Wide> {
        (level() == Level::V4).then_some(Wide(()))
    }

    /// `dispatch` of a loop that only runs at that level, and is compiled for no other.
    #[inline]
    pub fn run<V: Vectorized>(self, v: V) -> V::Output {
        // SAFETY: a `Wide` is only made where the processor has every feature of `v4`.
        unsafe { v4(v) }
    }
}

/// Unsigned integers in vectors of 64 bytes. A mask has a bit for each lane, the
/// lowest for the first.
#[cfg(target_arch = "x86_64")]
pub trait Lanes: Copy + Ord + Default + Send + Sync + 'static {
    /// As many as a vector holds.
    type Array: Copy;
    /// One, as bytes at any address.
    type Bytes;
    /// The vector.
    type Vector: Copy;
    /// How many it holds.
    const LANES: usize;
    /// The largest.
    const LAST: Self;

    /// The array that a slice starts with; panics if the slice is shorter.
    fn load(wide: Wide, from: &[Self]) -> Self::Vector;
    /// Writes the first lanes of a slice; panics if it is shorter.
    fn store(wide: Wide, vector: Self::Vector, to: &mut [Self]);
    /// At most a vector of keys, and `LAST` in the lanes after them; panics if
    /// there are more.
    fn load_part(wide: Wide, from: &[Self]) -> Self::Vector;
    /// Fills a slice with the first lanes; panics if it has more.
    fn store_part(wide: Wide, vector: Self::Vector, to: &mut [Self]);
    /// `load_part` of bytes.
    fn read(wide: Wide, from: &[Self::Bytes]) -> Self::Vector;
    /// `store_part` of bytes.
    fn write(wide: Wide, vector: Self::Vector, to: &mut [Self::Bytes]);
    /// The same in all lanes.
    fn splat(wide: Wide, value: Self) -> Self::Vector;
    /// The smaller of each pair.
    fn smaller(wide: Wide, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The larger of each pair.
    fn larger(wide: Wide, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The smaller and the larger of each pair.
    fn sorted(wide: Wide, a: Self::Vector, b: Self::Vector) -> (Self::Vector, Self::Vector);
    /// The larger of each pair where the mask says so, else the smaller.
    fn min_or_max(wide: Wide, larger: u16, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Where `a < b`.
    fn less(wide: Wide, a: Self::Vector, b: Self::Vector) -> u16;
    /// The lanes of the mask, moved to the front.
    fn compress(wide: Wide, mask: u16, vector: Self::Vector) -> Self::Vector;
    /// Lane `i` is lane `from[i]` of `a`, or of `b` from `LANES` on.
    fn pick(wide: Wide, a: Self::Vector, b: Self::Vector, from: &Self::Array) -> Self::Vector;
    /// Lane `i` is lane `from[i]`.
    fn permute(wide: Wide, vector: Self::Vector, from: &Self::Array) -> Self::Vector;

    /// The next larger key.
    fn next(self) -> Option<Self>;
    /// In row `i`, the number of each lane with the bits of `i` flipped.
    const FLIPPED: [Self::Array; 16];
    /// What `pick` takes for the first and for the second of two vectors, so that
    /// lanes with a bit in their number go to the one and from the other: in row
    /// `i`, of bit `i`.
    const TURNED: [[Self::Array; 2]; 4];
    /// In row `i`, the number of each lane with its lowest `i` bits at the top.
    const ROTATED: [Self::Array; 4];
    /// Which lanes have a bit in their number.
    #[inline(always)]
    fn lanes_with(bit: usize) -> u16 {
        const { assert!(Self::LANES <= 16) };
        match bit {
            1 => 0xaaaa,
            2 => 0xcccc,
            4 => 0xf0f0,
            _ => 0xff00,
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! lanes {
    // `slow` where minima and maxima take several instructions each within many a processor.
    ($t:ty, $lanes:literal, $mask:ty, $splat:ident, $int:ty, $min:ident, $max:ident, $mask_max:ident, $blend:ident, $slow:literal, $less:ident,
     $compress:ident, $pick:ident, $permute:ident, $load_part:ident, $store_part:ident) => {
        // SAFETY, of each call: a `Wide` is only made where the processor has the
        // instructions. Loads and stores are of arrays that are borrowed.
        impl Lanes for $t {
            type Array = [$t; $lanes];
            type Bytes = [u8; 64 / $lanes];
            type Vector = arch::__m512i;
            const LANES: usize = $lanes;
            const LAST: $t = <$t>::MAX;

            #[inline(always)]
            fn next(self) -> Option<$t> {
                self.checked_add(1)
            }
            const FLIPPED: [[$t; $lanes]; 16] = {
                let mut table = [[0; $lanes]; 16];
                let mut i = 0;
                while i < 16 * $lanes {
                    table[i / $lanes][i % $lanes] = (i % $lanes ^ i / $lanes % $lanes) as $t;
                    i += 1;
                }
                table
            };
            const TURNED: [[[$t; $lanes]; 2]; 4] = {
                let mut table = [[[0; $lanes]; 2]; 4];
                let mut i = 0;
                while i < 4 * $lanes {
                    let (bit, lane) = (1 << (i / $lanes), i % $lanes);
                    let other = (lane ^ bit) % $lanes;
                    let (first, second) =
                        if lane & bit == 0 { (lane, other) } else { ($lanes + other, $lanes + lane) };
                    table[i / $lanes][0][lane] = first as $t;
                    table[i / $lanes][1][lane] = second as $t;
                    i += 1;
                }
                table
            };
            const ROTATED: [[$t; $lanes]; 4] = {
                let mut table = [[0; $lanes]; 4];
                let mut i = 0;
                while i < 4 * $lanes {
                    let (by, lane) = (i / $lanes, i % $lanes);
                    table[by][lane] = ((lane >> by | lane << ($lanes as usize).ilog2() >> by) % $lanes) as $t;
                    i += 1;
                }
                table
            };

            #[inline(always)]
            fn load(_: Wide, from: &[$t]) -> arch::__m512i {
                let from = &from[..$lanes];
                // SAFETY: as above.
                unsafe { arch::_mm512_loadu_si512(from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn store(_: Wide, vector: arch::__m512i, to: &mut [$t]) {
                let to = &mut to[..$lanes];
                // SAFETY: as above.
                unsafe { arch::_mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
            }
            #[inline(always)]
            fn load_part(wide: Wide, from: &[$t]) -> arch::__m512i {
                assert!(from.len() <= $lanes);
                let mask = ((1u32 << from.len()) - 1) as $mask;
                let last = <$t as Lanes>::splat(wide, <$t>::MAX);
                // SAFETY: as above; what the mask leaves out isn't read.
                unsafe { arch::$load_part(last, mask, from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn store_part(_: Wide, vector: arch::__m512i, to: &mut [$t]) {
                assert!(to.len() <= $lanes);
                let mask = ((1u32 << to.len()) - 1) as $mask;
                // SAFETY: as above; what the mask leaves out isn't written.
                unsafe { arch::$store_part(to.as_mut_ptr().cast(), mask, vector) }
            }
            #[inline(always)]
            fn read(wide: Wide, from: &[Self::Bytes]) -> arch::__m512i {
                if from.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe { arch::_mm512_loadu_si512(from.as_ptr().cast()) };
                }
                assert!(from.len() < $lanes);
                let mask = ((1u32 << from.len()) - 1) as $mask;
                let last = <$t as Lanes>::splat(wide, <$t>::MAX);
                // SAFETY: as above; what the mask leaves out isn't read.
                unsafe { arch::$load_part(last, mask, from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn write(_: Wide, vector: arch::__m512i, to: &mut [Self::Bytes]) {
                if to.len() == $lanes {
                    // SAFETY: as above.
                    return unsafe { arch::_mm512_storeu_si512(to.as_mut_ptr().cast(), vector) };
                }
                assert!(to.len() < $lanes);
                let mask = ((1u32 << to.len()) - 1) as $mask;
                // SAFETY: as above; what the mask leaves out isn't written.
                unsafe { arch::$store_part(to.as_mut_ptr().cast(), mask, vector) }
            }
            #[inline(always)]
            fn splat(_: Wide, value: $t) -> arch::__m512i {
                // SAFETY: as above.
                unsafe { arch::$splat(value as $int) }
            }
            #[inline(always)]
            fn smaller(_: Wide, a: arch::__m512i, b: arch::__m512i) -> arch::__m512i {
                // SAFETY: as above.
                unsafe { arch::$min(a, b) }
            }
            #[inline(always)]
            fn larger(_: Wide, a: arch::__m512i, b: arch::__m512i) -> arch::__m512i {
                // SAFETY: as above.
                unsafe { arch::$max(a, b) }
            }
            #[inline(always)]
            fn sorted(_: Wide, a: arch::__m512i, b: arch::__m512i) -> (arch::__m512i, arch::__m512i) {
                // SAFETY: as above.
                unsafe {
                    let smaller = arch::$min(a, b);
                    // The one that the smaller isn't.
                    let other = || arch::_mm512_ternarylogic_epi64::<0x96>(a, b, smaller);
                    (smaller, if $slow { other() } else { arch::$max(a, b) })
                }
            }
            #[inline(always)]
            fn min_or_max(_: Wide, larger: u16, a: arch::__m512i, b: arch::__m512i) -> arch::__m512i {
                let larger = larger as $mask;
                // SAFETY: as above.
                unsafe {
                    if $slow {
                        arch::$blend(arch::$less(a, b) ^ larger, b, a)
                    } else {
                        arch::$mask_max(arch::$min(a, b), larger, a, b)
                    }
                }
            }
            #[inline(always)]
            #[allow(clippy::useless_conversion, reason = "one of the masks has 16 bits")]
            fn less(_: Wide, a: arch::__m512i, b: arch::__m512i) -> u16 {
                // SAFETY: as above.
                u16::from(unsafe { arch::$less(a, b) })
            }
            #[inline(always)]
            fn compress(_: Wide, mask: u16, vector: arch::__m512i) -> arch::__m512i {
                // SAFETY: as above.
                unsafe { arch::$compress(mask as $mask, vector) }
            }
            #[inline(always)]
            fn pick(wide: Wide, a: arch::__m512i, b: arch::__m512i, from: &[$t; $lanes]) -> arch::__m512i {
                let from = <$t as Lanes>::load(wide, from);
                // SAFETY: as above.
                unsafe { arch::$pick(a, from, b) }
            }
            #[inline(always)]
            fn permute(wide: Wide, vector: arch::__m512i, from: &[$t; $lanes]) -> arch::__m512i {
                let from = <$t as Lanes>::load(wide, from);
                // SAFETY: as above.
                unsafe { arch::$permute(from, vector) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
lanes!(
    u32,
    16,
    u16,
    _mm512_set1_epi32,
    i32,
    _mm512_min_epu32,
    _mm512_max_epu32,
    _mm512_mask_max_epu32,
    _mm512_mask_blend_epi32,
    false,
    _mm512_cmplt_epu32_mask,
    _mm512_maskz_compress_epi32,
    _mm512_permutex2var_epi32,
    _mm512_permutexvar_epi32,
    _mm512_mask_loadu_epi32,
    _mm512_mask_storeu_epi32
);
#[cfg(target_arch = "x86_64")]
lanes!(
    u64,
    8,
    u8,
    _mm512_set1_epi64,
    i64,
    _mm512_min_epu64,
    _mm512_max_epu64,
    _mm512_mask_max_epu64,
    _mm512_mask_blend_epi64,
    true,
    _mm512_cmplt_epu64_mask,
    _mm512_maskz_compress_epi64,
    _mm512_permutex2var_epi64,
    _mm512_permutexvar_epi64,
    _mm512_mask_loadu_epi64,
    _mm512_mask_storeu_epi64
);

/// Turns sixteen rows of up to 64 bytes: column `16 * i + j` is in quarter `i` of row `j`
/// of the result.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn turn_bytes<'a>(_: Wide, row: impl Fn(usize) -> &'a [u8]) -> [[u8; 64]; 16] {
    type Vector = arch::__m512i;

    // SAFETY, of each call: a `Wide` is only made where the processor has the instructions.
    #[inline(always)]
    fn load(row: &[u8]) -> Vector {
        assert!(row.len() <= 64);
        let mask = u64::MAX.checked_shr(64 - row.len() as u32).unwrap_or(0);
        // SAFETY: as above; what the mask leaves out isn't read.
        unsafe { arch::_mm512_maskz_loadu_epi8(mask, row.as_ptr().cast()) }
    }
    // The highest bit of a row's number becomes the lowest of a byte's, and the highest of
    // that, in every quarter of a vector, the lowest of the row's.
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
    // Without a loop, so that all stays in registers.
    macro_rules! step {
        ($v:expr, $($i:literal)*) => {{
            let v = $v;
            [$(low(&v, $i), high(&v, $i)),*]
        }};
    }
    macro_rules! rows {
        ($($i:literal)*) => { [$(load(row($i))),*] };
    }

    let v = rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    let v = step!(v, 0 1 2 3 4 5 6 7);
    let v = step!(v, 0 1 2 3 4 5 6 7);
    let v = step!(v, 0 1 2 3 4 5 6 7);
    let v = step!(v, 0 1 2 3 4 5 6 7);
    // SAFETY: both are sixteen times 64 bytes, and any bytes will do.
    unsafe { std::mem::transmute(v) }
}

/// Numbers that are multiplied and added up in vectors of 64 bytes.
#[cfg(target_arch = "x86_64")]
pub trait Products: Copy + Default + Send + Sync + 'static {
    /// The vector.
    type Vector: Copy;
    /// How many it holds.
    const LANES: usize;

    /// The lanes that a slice starts with; panics if it is shorter.
    fn load(wide: Wide, from: &[Self]) -> Self::Vector;
    /// Writes the first lanes of a slice; panics if it is shorter.
    fn store(wide: Wide, vector: Self::Vector, to: &mut [Self]);
    /// The same in all lanes.
    fn splat(wide: Wide, value: Self) -> Self::Vector;
    /// `sum + a * b`: integers wrap, floats round the product first.
    fn add_product(wide: Wide, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

#[cfg(target_arch = "x86_64")]
macro_rules! products {
    ($($t:ty, $lanes:literal, $vector:ident, $load:ident, $store:ident, $splat:ident, $multiply:ident, $add:ident;)*) => {$(
        // SAFETY, of each call: a `Wide` is only made where the processor has the
        // instructions. Loads and stores are of arrays that are borrowed.
        impl Products for $t {
            type Vector = arch::$vector;
            const LANES: usize = $lanes;

            #[inline(always)]
            fn load(_: Wide, from: &[$t]) -> arch::$vector {
                let from = &from[..$lanes];
                // SAFETY: as above.
                unsafe { arch::$load(from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn store(_: Wide, vector: arch::$vector, to: &mut [$t]) {
                let to = &mut to[..$lanes];
                // SAFETY: as above.
                unsafe { arch::$store(to.as_mut_ptr().cast(), vector) }
            }
            #[inline(always)]
            fn splat(_: Wide, value: $t) -> arch::$vector {
                // SAFETY: as above.
                unsafe { arch::$splat(value as _) }
            }
            #[inline(always)]
            fn add_product(_: Wide, sum: arch::$vector, a: arch::$vector, b: arch::$vector) -> arch::$vector {
                // SAFETY: as above.
                unsafe { arch::$add(sum, arch::$multiply(a, b)) }
            }
        }
    )*};
}
#[cfg(target_arch = "x86_64")]
products! {
    u16, 32, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi16, _mm512_mullo_epi16, _mm512_add_epi16;
    u32, 16, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi32, _mm512_mullo_epi32, _mm512_add_epi32;
    u64, 8, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi64, _mm512_mullo_epi64, _mm512_add_epi64;
    f32, 16, __m512, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_mul_ps, _mm512_add_ps;
    f64, 8, __m512d, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_mul_pd, _mm512_add_pd;
}

/// Floats of products, as bytes at any address. A mask has a bit for each lane, the lowest
/// for the first.
#[cfg(target_arch = "x86_64")]
pub trait Fused: Products + Lane {
    /// `sum + a * b`, rounded once.
    fn add_fused(wide: Wide, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `add_product` in the lanes of the mask, and the sum in the others.
    fn add_product_where(
        wide: Wide,
        mask: u16,
        sum: Self::Vector,
        a: Self::Vector,
        b: Self::Vector,
    ) -> Self::Vector;
    /// The sum.
    fn sum(wide: Wide, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The lanes that a slice starts with; panics if it is shorter.
    fn read(wide: Wide, from: &[Self::Bytes]) -> Self::Vector;
    /// Writes the lanes of the mask side by side; panics if the slice is shorter.
    fn write_where(wide: Wide, mask: u16, vector: Self::Vector, to: &mut [Self::Bytes]);
}

#[cfg(target_arch = "x86_64")]
macro_rules! fused {
    ($($t:ty, $mask:ty, $fuse:ident, $multiply:ident, $add:ident, $add_where:ident, $load:ident, $compress:ident, $store:ident;)*) => {$(
        // SAFETY, of each call: as for `Products`.
        impl Fused for $t {
            #[inline(always)]
            fn add_fused(_: Wide, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: as above.
                unsafe { arch::$fuse(a, b, sum) }
            }
            #[inline(always)]
            fn add_product_where(
                _: Wide,
                mask: u16,
                sum: Self::Vector,
                a: Self::Vector,
                b: Self::Vector,
            ) -> Self::Vector {
                // SAFETY: as above.
                unsafe { arch::$add_where(sum, mask as $mask, sum, arch::$multiply(a, b)) }
            }
            #[inline(always)]
            fn sum(_: Wide, a: Self::Vector, b: Self::Vector) -> Self::Vector {
                // SAFETY: as above.
                unsafe { arch::$add(a, b) }
            }
            #[inline(always)]
            fn read(_: Wide, from: &[Self::Bytes]) -> Self::Vector {
                let from = &from[..Self::LANES];
                // SAFETY: as above; `Bytes` are as many bytes as a lane.
                unsafe { arch::$load(from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn write_where(_: Wide, mask: u16, vector: Self::Vector, to: &mut [Self::Bytes]) {
                let mask = mask as $mask;
                let count = mask.count_ones() as usize;
                let to = &mut to[..count];
                let first = ((1u32 << count) - 1) as $mask;
                // SAFETY: as above; only `count` lanes are written.
                unsafe { arch::$store(to.as_mut_ptr().cast(), first, arch::$compress(mask, vector)) }
            }
        }
    )*};
}
#[cfg(target_arch = "x86_64")]
fused! {
    f32, u16, _mm512_fmadd_ps, _mm512_mul_ps, _mm512_add_ps, _mm512_mask_add_ps, _mm512_loadu_ps, _mm512_maskz_compress_ps, _mm512_mask_storeu_ps;
    f64, u8, _mm512_fmadd_pd, _mm512_mul_pd, _mm512_add_pd, _mm512_mask_add_pd, _mm512_loadu_pd, _mm512_maskz_compress_pd, _mm512_mask_storeu_pd;
}

/// The floats whose bits these are.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn floats(_: Wide, bits: <u64 as Lanes>::Vector) -> <f64 as Products>::Vector {
    // SAFETY: as for `Products`.
    unsafe { arch::_mm512_castsi512_pd(bits) }
}

/// Floats in vectors of f64, at most as many as one holds; panics if there are more.
#[cfg(target_arch = "x86_64")]
pub trait Part: Lane {
    /// The values, and zero in the lanes after them.
    fn read_part(wide: Wide, from: &[Self::Bytes]) -> arch::__m512d;
    /// Rounds the first lanes.
    fn write_part(wide: Wide, vector: arch::__m512d, to: &mut [Self::Bytes]);
}

#[cfg(target_arch = "x86_64")]
const fn first_of_eight(lanes: usize) -> u8 {
    assert!(lanes <= 8);
    ((1 << lanes) - 1) as u8
}

// SAFETY, of each call: a `Wide` is only made where the processor has the instructions, and
// what the mask leaves out is not read or written.
#[cfg(target_arch = "x86_64")]
impl Part for f64 {
    #[inline(always)]
    fn read_part(_: Wide, from: &[Self::Bytes]) -> arch::__m512d {
        let mask = first_of_eight(from.len());
        // SAFETY: as above.
        unsafe { arch::_mm512_maskz_loadu_pd(mask, from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn write_part(_: Wide, vector: arch::__m512d, to: &mut [Self::Bytes]) {
        let mask = first_of_eight(to.len());
        // SAFETY: as above.
        unsafe { arch::_mm512_mask_storeu_pd(to.as_mut_ptr().cast(), mask, vector) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Part for f32 {
    #[inline(always)]
    fn read_part(_: Wide, from: &[Self::Bytes]) -> arch::__m512d {
        let mask = first_of_eight(from.len());
        // SAFETY: as above.
        unsafe { arch::_mm512_cvtps_pd(arch::_mm256_maskz_loadu_ps(mask, from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn write_part(_: Wide, vector: arch::__m512d, to: &mut [Self::Bytes]) {
        let mask = first_of_eight(to.len());
        // SAFETY: as above.
        unsafe { arch::_mm256_mask_storeu_ps(to.as_mut_ptr().cast(), mask, arch::_mm512_cvtpd_ps(vector)) }
    }
}
