//! One generic loop, compiled for several instruction sets, chosen at run time.
//!
//! The levels are those of the x86-64 psABI; other architectures run the
//! baseline they are compiled for. Loops only use operations whose result
//! IEEE 754 fixes, so that every level gives the same bits.

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
pub use self::compare::Compared;
#[cfg(target_arch = "x86_64")]
pub use self::f16::{HALVES, Halves, Singles, Widened};
pub use self::f16::{round_to_halves, widen_halves};
#[cfg(target_arch = "x86_64")]
pub use self::float::{Fused, Part, Products, floats};
#[cfg(target_arch = "x86_64")]
pub use self::int::{Lanes, turn_bytes};
pub use self::intrinsics::{multiply_pairs, truncate_to_bytes};

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;
use std::sync::atomic::{AtomicU8, Ordering};

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

/// What computing costs with the vectors that there are, of what it does with those of 64 bytes.
#[must_use]
pub fn by_vectors(cost: u64) -> u64 {
    match level() {
        Level::Baseline => 4 * cost,
        Level::V3 => 2 * cost,
        Level::V4 => cost,
    }
}

/// Whether `mul_add` is one instruction in the loops that [`dispatch`] runs, and not a call.
#[inline]
#[must_use]
pub fn fuses() -> bool {
    if cfg!(target_arch = "x86_64") { level() >= Level::V3 } else { cfg!(target_arch = "aarch64") }
}

/// Runs a loop with the best instructions that the processor has.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn dispatch<V: Vectorized>(v: V) -> V::Output {
    match level() {
        Level::Baseline => v.run_unfused(),
        Level::V3 => Avx2(()).run(v),
        Level::V4 => Avx512(()).run(v),
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

/// So many bytes ahead of what is read, memory is brought near: processors look ahead by
/// themselves, but not past the end of a page. (`kernels`: sum, max.)
const AHEAD: usize = 1 << 11;

/// Bytes of a line of the cache, which come together.
pub const LINE: usize = 64;

/// Brings near what a loop will read soon, which goes through memory from element to element
/// and has come to these.
#[inline(always)]
pub fn read_ahead<T>(elements: &[T]) {
    let (width, lines) = (size_of::<T>().max(1), size_of_val(elements).div_ceil(LINE));
    for line in 0..lines {
        prefetch(elements, (AHEAD + line * LINE) / width);
    }
}

/// Brings a row near, of `length` elements from one on, as far as there are so many.
#[inline(always)]
pub fn prefetch_row<T>(elements: &[T], start: usize, length: usize) {
    for index in (start..elements.len().min(start + length)).step_by((LINE / size_of::<T>()).max(1)) {
        prefetch(elements, index);
    }
}

/// Proof that the processor has an instruction set, which lets safe code compute with its
/// vectors.
#[cfg(target_arch = "x86_64")]
pub trait InstructionSet: Copy + Send + Sync + 'static {
    /// Where loops may run with it.
    fn detect() -> Option<Self>;

    /// `dispatch` of a loop that is compiled for it and for no other.
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
                // SAFETY: one of these is only made where `level`, which is never above what
                // `detect` has found, says that the processor has every one of the features.
                unsafe { compiled(v) }
            }
        }
    )*};
}
#[cfg(target_arch = "x86_64")]
instruction_sets! {
    /// That of `Level::V3`, with vectors of 32 bytes.
    Avx2, Level::V3, "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt";
    /// That of `Level::V4`, with vectors of 64 bytes.
    Avx512, Level::V4,
        "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl";
}
