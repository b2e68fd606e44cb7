//! Function multiversioning: one generic loop, compiled for several instruction sets, of which one
//! is chosen at run time.
//!
//! The levels are the microarchitecture levels of the x86-64 psABI; other architectures run the
//! baseline that they are compiled for. Loops only use operations whose results IEEE 754 fixes, so
//! that every level gives the same bits. The traits of vectors use the vocabulary of Google's
//! library Highway.

#![allow(unsafe_code, reason = "calls what is compiled for an instruction set")]

#[cfg(target_arch = "x86_64")]
mod compare;
mod f16;
#[cfg(target_arch = "x86_64")]
mod float;
#[cfg(target_arch = "x86_64")]
mod int;
mod intrinsics;
#[cfg(target_arch = "x86_64")]
mod transpose;

#[cfg(target_arch = "x86_64")]
pub use self::compare::CompareVector;
#[cfg(target_arch = "x86_64")]
pub use self::f16::{F32VectorOps, HALF_LANES, HalfVector, WidenToF32};
pub use self::f16::{round_to_halves, widen_halves};
#[cfg(target_arch = "x86_64")]
pub use self::float::{AsF64Vector, FloatVector, MulAddVector, bitcast_to_f64};
#[cfg(target_arch = "x86_64")]
pub use self::int::IntVector;
pub use self::intrinsics::{multiply_pairs, truncate_to_bytes};
#[cfg(target_arch = "x86_64")]
pub use self::transpose::{transpose_bytes, transpose_vectors};

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::cost::PREFETCH_DISTANCE_BYTES;

/// A loop that is compiled for each level. `run` must be `#[inline(always)]`, and so must all
/// functions that it calls: others are not compiled for the level.
pub trait Vectorized {
    /// The result of the loop.
    type Output;
    /// Runs the loop.
    fn run(self) -> Self::Output;

    /// Runs the loop at a level where `mul_add` would be a function call. Has the same results as
    /// `run`, but in loops of `f32_fast`.
    #[inline(always)]
    fn run_unfused(self) -> Self::Output
    where
        Self: Sized,
    {
        self.run()
    }
}

/// A value that starts at a cache line, so that none of its vectors crosses two lines.
#[repr(align(64))]
#[derive(Debug)]
pub struct Aligned<T>(pub T);

/// The environment variable that names the highest level that loops run at, read at the first call of
/// [`level`]. Products of matrices of floats and Fourier transforms are other crates', which choose
/// their instructions themselves.
pub const LEVEL_VARIABLE: &str = "FERROX_INSTRUCTION_SET";

/// A level of instruction sets; each level includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The instructions that the compilation target guarantees: SSE2 on x86-64, NEON on AArch64.
    Baseline = 1,
    /// x86-64-v3: AVX2, FMA, BMI, F16C.
    V3 = 2,
    /// x86-64-v4: AVX-512 F, BW, CD, DQ, VL.
    V4 = 3,
}

/// The levels of x86-64 by the names that the psABI gives them.
const LEVEL_NAMES: [(&str, Level); 3] =
    [("x86-64", Level::Baseline), ("x86-64-v3", Level::V3), ("x86-64-v4", Level::V4)];

/// The level that loops run at, as a number; zero before it is detected.
static CURRENT_LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level that loops run at. Detected on the first call.
#[inline(always)]
#[must_use]
pub fn level() -> Level {
    match CURRENT_LEVEL.load(Ordering::Relaxed) {
        0 => {
            let highest = highest();
            CURRENT_LEVEL.store(highest as u8, Ordering::Relaxed);
            highest
        }
        1 => Level::Baseline,
        2 => Level::V3,
        _ => Level::V4,
    }
}

/// The highest level that the processor has and [`LEVEL_VARIABLE`] allows. A name that is none of a
/// level is reported on the standard error, and limits nothing.
#[cold]
fn highest() -> Level {
    let detected = detect();
    let Some(name) = std::env::var_os(LEVEL_VARIABLE).filter(|name| !name.is_empty()) else {
        return detected;
    };
    match LEVEL_NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, allowed)) => detected.min(*allowed),
        None => {
            let known = LEVEL_NAMES.map(|(known, _)| known).join(", ");
            let name = name.display();
            eprintln!("{LEVEL_VARIABLE} must be one of {known}, got: {name}; going on with {detected:?}");
            detected
        }
    }
}

/// The instruction set of the level that loops run at, for people.
#[must_use]
pub fn instruction_set() -> &'static str {
    if cfg!(target_arch = "x86_64") {
        match level() {
            Level::Baseline => "x86-64 (SSE2)",
            Level::V3 => "x86-64-v3 (AVX2)",
            Level::V4 => "x86-64-v4 (AVX-512)",
        }
    } else if cfg!(target_arch = "aarch64") {
        "AArch64 (NEON)"
    } else {
        std::env::consts::ARCH
    }
}

/// Sets the level, for tests and measurements, but never above that of the processor or of
/// [`LEVEL_VARIABLE`].
pub fn limit(level: Level) {
    CURRENT_LEVEL.store(level.min(highest()) as u8, Ordering::Relaxed);
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

/// The cost of a computation with the vectors of the current level, given its cost with vectors of
/// 64 bytes: the cost is inversely proportional to the vector width.
#[must_use]
pub fn vector_cost(cost: u64) -> u64 {
    match level() {
        Level::Baseline => 4 * cost,
        Level::V3 => 2 * cost,
        Level::V4 => cost,
    }
}

/// Whether `mul_add` is one instruction, and not a function call, in the loops that [`dispatch`]
/// runs.
#[inline]
#[must_use]
pub fn has_fma() -> bool {
    if cfg!(target_arch = "x86_64") { level() >= Level::V3 } else { cfg!(target_arch = "aarch64") }
}

/// Runs a loop with the best instructions of the current level.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn dispatch<V: Vectorized>(v: V) -> V::Output {
    match level() {
        Level::Baseline => v.run_unfused(),
        Level::V3 => Avx2(()).run(v),
        Level::V4 => Avx512(()).run(v),
    }
}

/// Runs a loop with the instructions of the compilation target.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn dispatch<V: Vectorized>(v: V) -> V::Output {
    if has_fma() { v.run() } else { v.run_unfused() }
}

/// Runs a computation on one element, which longer vectors don't make faster.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn dispatch_element<V: Vectorized>(v: V) -> V::Output {
    match level() {
        Level::Baseline => v.run_unfused(),
        Level::V3 | Level::V4 => Avx2(()).run(v),
    }
}

/// Runs a computation on one element.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn dispatch_element<V: Vectorized>(v: V) -> V::Output {
    dispatch(v)
}

macro_rules! truncate {
    ($($name:ident, $t:ty;)*) => {$(
        /// The float rounded towards zero, if its magnitude is below 2^31, else zero. Loops of it
        /// vectorize, while the compiler converts with `as` one element at a time.
        #[inline(always)]
        #[must_use]
        pub fn $name(x: $t) -> i32 {
            let x = if x.abs() < 2_147_483_648.0 { x } else { 0.0 };
            // SAFETY: `x` is finite, and its integer part fits into an i32.
            unsafe { x.to_int_unchecked() }
        }
    )*};
}
truncate! {
    truncate_f32, f32;
    truncate_f64, f64;
}

/// Prefetches the cache line of an element that will be read soon. The index may be out of bounds.
#[inline(always)]
pub fn prefetch<T>(elements: &[T], index: usize) {
    let address = elements.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is part of the baseline, and a prefetch of an invalid address is
    // ignored.
    unsafe {
        arch::_mm_prefetch::<{ arch::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The number of bytes in a cache line.
pub const CACHE_LINE_BYTES: usize = 64;

/// Prefetches for a loop that reads memory sequentially, and reads `elements` next: as many bytes
/// as these take, `PREFETCH_DISTANCE_BYTES` ahead.
#[inline(always)]
pub fn prefetch_ahead<T>(elements: &[T]) {
    let (width, lines) = (size_of::<T>().max(1), size_of_val(elements).div_ceil(CACHE_LINE_BYTES));
    for line in 0..lines {
        prefetch(elements, (PREFETCH_DISTANCE_BYTES + line * CACHE_LINE_BYTES) / width);
    }
}

/// Prefetches the elements `start..start + length`, as far as they are in the slice.
#[inline(always)]
pub fn prefetch_row<T>(elements: &[T], start: usize, length: usize) {
    for index in
        (start..elements.len().min(start + length)).step_by((CACHE_LINE_BYTES / size_of::<T>()).max(1))
    {
        prefetch(elements, index);
    }
}

/// An instruction set. A value of it proves that the processor has the instructions, so that safe
/// code may compute with their vectors.
#[cfg(target_arch = "x86_64")]
pub trait InstructionSet: Copy + Send + Sync + 'static {
    /// Returns the proof if the current level includes the instruction set, else `None`.
    fn detect() -> Option<Self>;

    /// Runs a loop that is compiled for this instruction set only.
    fn run<V: Vectorized>(self, v: V) -> V::Output;
}

#[cfg(target_arch = "x86_64")]
macro_rules! instruction_sets {
    ($($(#[$doc:meta])* $name:ident, $level:path, $features:literal;)*) => {$(
        $(#[$doc])*
        #[cfg(target_arch = "x86_64")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name(());

        #[cfg(target_arch = "x86_64")]
        impl InstructionSet for $name {
            #[inline]
            fn detect() -> Option<Self> {
                (level() >= $level).then_some($name(()))
            }

            #[inline]
            fn run<V: Vectorized>(self, v: V) -> V::Output {
                #[target_feature(enable = $features)]
                fn compiled<V: Vectorized>(v: V) -> V::Output {
                    v.run()
                }
                // SAFETY: `self` was made where `level()`, which is never above the detected
                // level, includes the level of these features.
                unsafe { compiled(v) }
            }
        }
    )*};
}
#[cfg(target_arch = "x86_64")]
instruction_sets! {
    /// The instruction set of `Level::V3`, with vectors of 32 bytes.
    Avx2, Level::V3, "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt";
    /// The instruction set of `Level::V4`, with vectors of 64 bytes.
    Avx512, Level::V4,
        "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl";
}
