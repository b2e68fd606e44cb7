//! The plans of operations, looked up by the types of operands and result.
//!
//! Problem: to find out what computes an operation on certain types takes some twenty decisions,
//! longer than an operation on a few elements. Technique: a table of the plans that have been found,
//! by instruction set, operation, and all types; an entry does not depend on what was asked before.

use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::exec::elementwise::{self, MAX_OPERANDS, Plan, Source};
use crate::exec::simd;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

const TYPE_COUNT: usize = DType::ALL.len();
const LEVEL_COUNT: usize = simd::Level::V4 as usize + 1;

/// What has been found for each type of the result.
type ByResult = Box<[OnceLock<Option<Plan>>]>;

/// What has been found for each combination of operand types.
type ByOperands = Box<[OnceLock<ByResult>]>;

/// The plans of a family of `OPS` operations on `N` operands. There is a table for each instruction
/// set, since some kernels are for one of them, and tests change it.
pub(super) struct PlanCache<const N: usize, const OPS: usize>([[OnceLock<ByOperands>; OPS]; LEVEL_COUNT]);

impl<const N: usize, const OPS: usize> PlanCache<N, OPS> {
    pub(super) const fn new() -> Self {
        PlanCache([const { [const { OnceLock::new() }; OPS] }; LEVEL_COUNT])
    }

    /// The plan of an operation for a result of type `out`, which `find` is asked for once; `None` if
    /// the operation is not defined for the types.
    #[inline(always)]
    pub(super) fn get(
        &self,
        op: usize,
        out: DType,
        operands: [DType; N],
        find: impl FnOnce() -> Option<Plan>,
    ) -> Option<&Plan> {
        let by_operands = self.0[simd::level() as usize][op].get_or_init(|| empty(TYPE_COUNT.pow(N as u32)));
        let index = operands.iter().fold(0, |index, &dtype| index * TYPE_COUNT + dtype as usize);
        let by_result = by_operands[index].get_or_init(|| empty(TYPE_COUNT));
        by_result[out as usize].get_or_init(find).as_ref()
    }
}

fn empty<T>(count: usize) -> Box<[OnceLock<T>]> {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl Plan {
    /// Computes `out` from tensors that broadcast to its shape.
    ///
    /// # Errors
    ///
    /// `Error::Shape` if a tensor doesn't, `Error::Element` for the fault that the kernel found, and
    /// `Error::TooLarge` if there is no memory for an intermediate result.
    pub fn run(&self, op: &'static str, out: Output<'_>, tensors: &[&Tensor<'_>]) -> Result<(), Error> {
        let mut sources = SmallVec::<[Source<'_>; MAX_OPERANDS]>::new();
        for tensor in tensors {
            sources.push(source(op, tensor, out.shape, tensors)?);
        }
        let shape = out.shape;
        out.write(op, |bytes| {
            elementwise::run(self, shape, bytes, &sources).map_err(|fault| {
                let dtypes = tensors.iter().map(|tensor| tensor.dtype()).collect();
                Error::Element { op, dtypes, fault }
            })
        })
    }
}

/// A tensor as the source of an operation on `tensors` with a result of some shape.
///
/// # Errors
///
/// `Error::Shape` if it doesn't broadcast to that.
#[inline]
pub(super) fn source<'a>(
    op: &'static str,
    tensor: &'a Tensor<'_>,
    shape: &[usize],
    tensors: &[&Tensor<'_>],
) -> Result<Source<'a>, Error> {
    Source::new(tensor, shape).ok_or_else(|| unfit(op, shape, tensors))
}

#[cold]
fn unfit(op: &'static str, out: &[usize], tensors: &[&Tensor<'_>]) -> Error {
    let mut shapes: Vec<Vec<usize>> = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
    let problem = if tensors.len() == 2 {
        "don't broadcast together: each axis, counted from the last, must be equal or one"
    } else {
        shapes.retain(|shape| shape != out);
        shapes.push(out.to_vec());
        "don't broadcast: each axis, counted from the last, must be equal or one"
    };
    Error::Shape { op, shapes, problem: problem.into() }
}
