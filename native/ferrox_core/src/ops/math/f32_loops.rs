//! Loops over the functions of `f32_functions`: from f32 values, through f64, to f32, or to the f64
//! that is rounded to a narrower type.
//!
//! A loop computes a chunk of f64 results and then writes them as f32 or as f64. One loop does
//! both, because its code is long. Chunks without special cases take a shorter loop.

pub(in crate::ops) mod complex;
mod power;

use std::marker::PhantomData;

pub(in crate::ops) use self::power::Pow;
use crate::dtype::Lane;
use crate::exec::elementwise::{KERNEL_CHUNK_ELEMENTS, Kernel, Operand};
use crate::exec::simd::{Vectorized, dispatch as vectorize, dispatch_element};
use crate::ops::math::f32_functions;
use crate::ops::math::f32_functions::{Arithmetic, HardwareFma, SeparateRounding, SoftwareFma};
use crate::ops::math::plain_range::PlainRange;
use crate::ops::scalar::{element_of, word_of};
use crate::{DType, Fault};

/// An f32 as tensors store it.
type F32Bytes = <f32 as Lane>::Bytes;

/// A function of one or two f32 values. A function of one argument ignores the second one.
pub(in crate::ops) trait Function: 'static {
    /// Whether the function uses fused multiply-add, so that results with `SeparateRounding` may
    /// differ.
    const FUSES: bool = true;

    /// Computes the results of up to a chunk of elements. `scratch` has room for three more values
    /// for each element.
    fn compute_chunk<A: Arithmetic>(
        x: &[F32Bytes],
        y: &[F32Bytes],
        results: &mut [f64],
        scratch: &mut Scratch,
    );

    /// Returns the result that `compute_chunk` gives for one element.
    fn compute_element<A: Arithmetic>(x: f64, y: f64) -> f64;
}

/// Memory that is kept between chunks, because filling it with zeros takes time.
pub(in crate::ops) type Scratch = [[f64; KERNEL_CHUNK_ELEMENTS]; 3];

#[inline(always)]
fn load(bytes: F32Bytes) -> f64 {
    f64::from(f32::load(bytes))
}

/// Computes a function of one argument for each element.
#[inline(always)]
pub(in crate::ops) fn map_elements(x: &[F32Bytes], results: &mut [f64], function: impl Fn(f64) -> f64) {
    for (result, &x) in results.iter_mut().zip(x) {
        *result = function(load(x));
    }
}

/// Computes a function of one argument for each element, with `shorter` if all arguments are in the
/// range `plain`.
#[inline(always)]
pub(in crate::ops) fn map_elements_or_plain(
    x: &[F32Bytes],
    results: &mut [f64],
    function: impl Fn(f64) -> f64,
    plain: PlainRange,
    shorter: impl Fn(f64) -> f64,
) {
    if plain.contains_all(x) {
        map_elements(x, results, shorter);
    } else {
        map_elements(x, results, function);
    }
}

pub(in crate::ops) struct Atan2;
impl Function for Atan2 {
    const FUSES: bool = false;

    #[inline(always)]
    fn compute_chunk<A: Arithmetic>(y: &[F32Bytes], x: &[F32Bytes], results: &mut [f64], _: &mut Scratch) {
        for ((result, &y), &x) in results.iter_mut().zip(y).zip(x) {
            *result = f32_functions::atan2(load(y), load(x));
        }
    }

    #[inline(always)]
    fn compute_element<A: Arithmetic>(y: f64, x: f64) -> f64 {
        f32_functions::atan2(y, x)
    }
}

struct F32FunctionLoop<'a, 'b, F> {
    out: &'a mut [u8],
    /// Whether results are rounded to f32.
    rounded: bool,
    operands: &'a [Operand<'b>],
    function: PhantomData<F>,
}

impl<F: Function> F32FunctionLoop<'_, '_, F> {
    /// Computes all chunks. After each chunk, `correct` may change the results, given the
    /// arguments.
    #[inline(always)]
    fn run_with<A: Arithmetic>(self, correct: impl Fn(&[F32Bytes], &[F32Bytes], &mut [f64])) {
        let width = if self.rounded { 4 } else { 8 };
        let operands = [self.operands[0], self.operands[self.operands.len() - 1]];
        let slices = operands.map(|operand| match operand {
            Operand::Slice(bytes) => Some(f32::view(bytes)),
            Operand::Scalar(_) => None,
        });
        let scalars = operands.map(|operand| match operand {
            Operand::Slice(_) => [[0; 4]; KERNEL_CHUNK_ELEMENTS],
            Operand::Scalar(bytes) => [f32::view(bytes)[0]; KERNEL_CHUNK_ELEMENTS],
        });
        let (mut results, mut scratch) = ([0.0; KERNEL_CHUNK_ELEMENTS], [[0.0; KERNEL_CHUNK_ELEMENTS]; 3]);
        for (k, out) in self.out.chunks_mut(KERNEL_CHUNK_ELEMENTS * width).enumerate() {
            let results = &mut results[..out.len() / width];
            let [x, y] = [0, 1].map(|i| match slices[i] {
                Some(slice) => &slice[k * KERNEL_CHUNK_ELEMENTS..][..results.len()],
                None => &scalars[i][..results.len()],
            });
            F::compute_chunk::<A>(x, y, results, &mut scratch);
            correct(x, y, results);
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

impl<F: Function> Vectorized for F32FunctionLoop<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.run_with::<HardwareFma>(|_, _, _| ());
    }

    #[inline(always)]
    fn run_unfused(self) {
        self.run_with::<SeparateRounding>(|x, y, results| {
            if !F::FUSES {
                return;
            }
            for (i, result) in results.iter_mut().enumerate() {
                if !f32_functions::rounding_is_certain(*result) {
                    *result = F::compute_element::<SoftwareFma>(load(x[i]), load(y[i]));
                }
            }
        });
    }
}

/// The number of elements up to which a function is computed one by one: the memory of a chunk is filled in the
/// time of some of them. (`kernels`: exp_few_f32.)
const MAX_SINGLE_ELEMENTS: usize = 4;

/// One element.
struct F32Element<F> {
    x: f64,
    y: f64,
    function: PhantomData<F>,
}

impl<F: Function> Vectorized for F32Element<F> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        F::compute_element::<HardwareFma>(self.x, self.y)
    }

    #[inline(always)]
    fn run_unfused(self) -> f64 {
        let result = F::compute_element::<SeparateRounding>(self.x, self.y);
        if !F::FUSES || f32_functions::rounding_is_certain(result) {
            return result;
        }
        F::compute_element::<SoftwareFma>(self.x, self.y)
    }
}

fn tile<F: Function, const ROUNDED: bool>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    let width = if ROUNDED { 4 } else { 8 };
    if out.len() > MAX_SINGLE_ELEMENTS * width {
        vectorize(F32FunctionLoop::<F> { out, rounded: ROUNDED, operands, function: PhantomData });
        return Ok(());
    }
    let element = |operand: Operand<'_>, k: usize| match operand {
        Operand::Slice(bytes) => load(f32::view(bytes)[k]),
        Operand::Scalar(bytes) => load(f32::view(bytes)[0]),
    };
    for (k, out) in out.chunks_exact_mut(width).enumerate() {
        let (x, y) = (element(operands[0], k), element(operands[operands.len() - 1], k));
        let result = dispatch_element(F32Element::<F> { x, y, function: PhantomData });
        if ROUNDED {
            out.copy_from_slice(&(result as f32).store());
        } else {
            out.copy_from_slice(&result.store());
        }
    }
    Ok(())
}

/// Computes a function of one or two f32 for one element.
pub(in crate::ops) fn scalar<F: Function>(x: u64, y: u64) -> u64 {
    let [x, y] = [x, y].map(|word| f64::from(element_of::<f32>(word)));
    word_of(dispatch_element(F32Element::<F> { x, y, function: PhantomData }) as f32)
}

/// Returns the kernel of a function whose results have the type `out`, and the type that it writes.
pub(in crate::ops) fn kernel<F: Function>(out: DType) -> (Kernel, DType) {
    match out {
        DType::F32 => (tile::<F, true>, DType::F32),
        _ => (tile::<F, false>, DType::F64),
    }
}
