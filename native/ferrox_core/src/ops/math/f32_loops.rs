//! Loops over the functions of `f32_functions`: from values of f32, through f64, to an f32 or
//! to the f64 that a narrower type is rounded from.
//!
//! Both results come from one loop, since it is long: a chunk is computed as f64 and
//! then written as what it becomes. Chunks without special cases take a shorter loop.

pub(in crate::ops) mod complex;

use std::marker::PhantomData;

use crate::dtype::Lane;
use crate::exec::elementwise::{CHUNK, Kernel, Operand};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::ops::math::f32_functions;
use crate::ops::math::f32_functions::{Arithmetic, Fused, Separate, Software};
use crate::{DType, Fault};

/// An f32 as tensors hold it.
type Bytes = <f32 as Lane>::Bytes;

/// A function of one or two values of f32; the second argument of the former is ignored.
pub(in crate::ops) trait Function: 'static {
    /// Whether it fuses multiply-adds, so that the results of `Separate` may differ.
    const FUSES: bool = true;

    /// The results for up to a chunk, and memory for some more values of each.
    fn many<A: Arithmetic>(x: &[Bytes], y: &[Bytes], results: &mut [f64], scratch: &mut Scratch);

    /// What `many` gives with `Fused`, in many steps.
    fn one(x: f64, y: f64) -> f64;
}

/// Kept between chunks, since to fill it with zeros takes time.
pub(in crate::ops) type Scratch = [[f64; CHUNK]; 3];

#[inline(always)]
fn load(bytes: Bytes) -> f64 {
    f64::from(f32::load(bytes))
}

/// A function of one argument, each computed by itself.
#[inline(always)]
pub(in crate::ops) fn each(x: &[Bytes], results: &mut [f64], function: impl Fn(f64) -> f64) {
    for (result, &x) in results.iter_mut().zip(x) {
        *result = function(load(x));
    }
}

/// The same, by a shorter way where all arguments are `plain`.
#[inline(always)]
pub(in crate::ops) fn each_or_plain(
    x: &[Bytes],
    results: &mut [f64],
    function: impl Fn(f64) -> f64,
    plain: impl Fn(f32) -> bool,
    shorter: impl Fn(f64) -> f64,
) {
    // Without an early exit, so that it vectorizes.
    if x.iter().fold(true, |all, &x| all & plain(f32::load(x))) {
        each(x, results, shorter);
    } else {
        each(x, results, function);
    }
}

pub(in crate::ops) struct Pow;
impl Function for Pow {
    #[inline(always)]
    fn many<A: Arithmetic>(x: &[Bytes], y: &[Bytes], results: &mut [f64], scratch: &mut Scratch) {
        let [exponents, highs, lows] = scratch.each_mut().map(|part| &mut part[..results.len()]);
        // Two loops, since a processor overlaps few passes of a long one.
        for (((exponent, high), low), &x) in exponents.iter_mut().zip(&mut *highs).zip(&mut *lows).zip(x) {
            let logarithm = f32_functions::log2::<A>(load(x));
            (*exponent, *high, *low) = (logarithm.exponent, logarithm.high, logarithm.low);
        }
        let logarithms = || {
            let parts = exponents.iter().zip(&*highs).zip(&*lows);
            parts.map(|((&exponent, &high), &low)| f32_functions::Log2 { exponent, high, low })
        };
        let mut plain =
            x.iter().fold(true, |all, &x| all & (0.0 < f32::load(x)) & (f32::load(x) < f32::INFINITY));
        for ((result, logarithm), &y) in results.iter_mut().zip(logarithms()).zip(y) {
            let (power, regular) = f32_functions::pow_regular::<A>(load(y), logarithm);
            *result = power;
            plain &= regular;
        }
        if !plain {
            for (((result, &x), &y), logarithm) in results.iter_mut().zip(x).zip(y).zip(logarithms()) {
                *result = f32_functions::pow_by::<A>(load(x), load(y), logarithm);
            }
        }
    }

    fn one(x: f64, y: f64) -> f64 {
        f32_functions::pow::<Software>(x, y)
    }
}

pub(in crate::ops) struct Atan2;
impl Function for Atan2 {
    const FUSES: bool = false;

    #[inline(always)]
    fn many<A: Arithmetic>(y: &[Bytes], x: &[Bytes], results: &mut [f64], _: &mut Scratch) {
        for ((result, &y), &x) in results.iter_mut().zip(y).zip(x) {
            *result = f32_functions::atan2(load(y), load(x));
        }
    }

    fn one(y: f64, x: f64) -> f64 {
        f32_functions::atan2(y, x)
    }
}

struct Loop<'a, 'b, F> {
    out: &'a mut [u8],
    /// Whether results are rounded to f32.
    rounded: bool,
    operands: &'a [Operand<'b>],
    function: PhantomData<F>,
}

impl<F: Function> Loop<'_, '_, F> {
    /// `settle` changes results, given their arguments.
    #[inline(always)]
    fn run_by<A: Arithmetic>(self, settle: impl Fn(&[Bytes], &[Bytes], &mut [f64])) {
        let width = if self.rounded { 4 } else { 8 };
        let operands = [self.operands[0], self.operands[self.operands.len() - 1]];
        let slices = operands.map(|operand| match operand {
            Operand::Slice(bytes) => Some(f32::view(bytes)),
            Operand::Scalar(_) => None,
        });
        let scalars = operands.map(|operand| match operand {
            Operand::Slice(_) => [[0; 4]; CHUNK],
            Operand::Scalar(bytes) => [f32::view(bytes)[0]; CHUNK],
        });
        let (mut results, mut scratch) = ([0.0; CHUNK], [[0.0; CHUNK]; 3]);
        for (k, out) in self.out.chunks_mut(CHUNK * width).enumerate() {
            let results = &mut results[..out.len() / width];
            let [x, y] = [0, 1].map(|i| match slices[i] {
                Some(slice) => &slice[k * CHUNK..][..results.len()],
                None => &scalars[i][..results.len()],
            });
            F::many::<A>(x, y, results, &mut scratch);
            settle(x, y, results);
            if self.rounded {
                for (out, &result) in f32::view_mut(out).iter_mut().zip(&*results) {
                    *out = (result as f32).store();
                }
            } else {
                for (out, &result) in f64::view_mut(out).iter_mut().zip(&*results) {
                    *out = result.store();
                }
            }
        }
    }
}

impl<F: Function> Vectorized for Loop<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.run_by::<Fused>(|_, _, _| ());
    }

    #[inline(always)]
    fn run_unfused(self) {
        self.run_by::<Separate>(|x, y, results| {
            if !F::FUSES {
                return;
            }
            for (i, result) in results.iter_mut().enumerate() {
                if !f32_functions::settled(*result) {
                    *result = F::one(load(x[i]), load(y[i]));
                }
            }
        });
    }
}

fn tile<F: Function, const ROUNDED: bool>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(Loop::<F> { out, rounded: ROUNDED, operands, function: PhantomData });
    Ok(())
}

/// The kernel of a function with results of a type, and what it computes.
pub(in crate::ops) fn kernel<F: Function>(out: DType) -> (Kernel, DType) {
    match out {
        DType::F32 => (tile::<F, true>, DType::F32),
        _ => (tile::<F, false>, DType::F64),
    }
}
