//! One generic loop, compiled for several instruction sets, chosen at run time.
//!
//! The levels are those of the x86-64 psABI; other architectures run the
//! baseline they are compiled for. Loops only use operations whose result
//! IEEE 754 fixes, so that every level gives the same bits.

#![allow(unsafe_code, reason = "calls what is compiled for an instruction set")]

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
#[inline]
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

/// Runs a loop with the best instructions that the processor has.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn dispatch<V: Vectorized>(v: V) -> V::Output {
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt")]
    fn v3<V: Vectorized>(v: V) -> V::Output {
        v.run()
    }

    #[target_feature(
        enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
    )]
    fn v4<V: Vectorized>(v: V) -> V::Output {
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
