//! What operations on a few elements run, looked up.
//!
//! Problem: what an operation on certain types means takes some twenty decisions to find out,
//! longer than a few elements take. Technique: a table of the kernels that read operands of one
//! type and write results as they are, each found when it is first asked for.

use std::sync::OnceLock;

use crate::exec::elementwise::{Kernel, Operand};
use crate::exec::parallel::Cost;
use crate::exec::simd;
use crate::{DType, Fault};

/// A kernel that takes operands of one type as they are.
#[derive(Clone, Copy, Debug)]
pub struct Direct {
    pub(super) kernel: Kernel,
    /// The type of the result.
    pub(super) out: DType,
    pub(super) cost: Cost,
}

impl Direct {
    /// What an element costs.
    #[inline]
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Computes all of `out`, with an element of each operand for each of it.
    ///
    /// # Errors
    ///
    /// What is wrong with an element.
    #[inline]
    pub fn run<const N: usize>(&self, out: &mut [u8], operands: [&[u8]; N]) -> Result<(), Fault> {
        (self.kernel)(out, &operands.map(Operand::Slice))
    }
}

const TYPES: usize = DType::ALL.len();

/// By whether loops fuse, which tests change, the number of the operation, and the operands' type.
pub(super) struct Table<const OPS: usize>([[[OnceLock<Option<Direct>>; TYPES]; OPS]; 2]);

impl<const OPS: usize> Table<OPS> {
    pub(super) const fn new() -> Self {
        Table([const { [const { [const { OnceLock::new() }; TYPES] }; OPS] }; 2])
    }

    /// The kernel for operands of a type and a result of type `out`, if there is one; `find`
    /// answers for a type of the result.
    #[inline]
    pub(super) fn get(
        &self,
        op: usize,
        out: DType,
        operands: DType,
        find: impl Fn(DType) -> Option<Direct>,
    ) -> Option<&Direct> {
        let entry = &self.0[usize::from(simd::fuses())][op][operands as usize];
        // One type of results has to do: for most operations that of the operands, else that of
        // predicates, or of quotients of integers.
        let first = || [operands, DType::U8, DType::F32].into_iter().find_map(&find);
        entry.get_or_init(first).as_ref().filter(|direct| direct.out == out)
    }
}
