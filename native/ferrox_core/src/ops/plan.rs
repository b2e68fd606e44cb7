//! What operations on a few elements run, looked up.
//!
//! Problem: what an operation on certain types means takes some twenty decisions to find out, and
//! to plan how its operands are brought together as many again, longer than a few elements take.
//! Technique: a table of what has been found for operands of one type, and operands that lie as
//! the result does, or are one element.

use std::sync::OnceLock;

use crate::exec::elementwise::{self, Conversion, Kernel, Operand, Target};
use crate::exec::simd;
use crate::exec::threads::parallel::Cost;
use crate::{DType, Fault};

/// What computes a result from `N` operands of certain types.
#[derive(Clone, Copy, Debug)]
pub struct Direct<const N: usize> {
    pub(super) kernel: Kernel,
    /// To what the kernel computes with.
    pub(super) loads: [Option<Conversion>; N],
    /// From what it computes.
    pub(super) store: Option<Conversion>,
    /// The type of the result.
    pub(super) out: DType,
    pub(super) cost: Cost,
}

impl<const N: usize> Direct<N> {
    /// What an element costs.
    #[inline]
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Whether results of so many elements can be computed: few, where something is converted.
    #[inline]
    #[must_use]
    pub fn takes(&self, size: usize) -> bool {
        let converts = self.store.is_some() || self.loads.iter().any(Option::is_some);
        !converts || size <= elementwise::FEW
    }

    /// Computes `size` elements.
    ///
    /// # Errors
    ///
    /// What is wrong with an element.
    #[inline(always)]
    pub fn run(&self, size: usize, out: &mut [u8], operands: [Operand<'_>; N]) -> Result<(), Fault> {
        let target = Target { bytes: out, store: self.store };
        elementwise::few(size, target, &operands, &self.loads, self.kernel)
    }
}

const TYPES: usize = DType::ALL.len();

/// What has been found for an operation, by the types of its operands.
type Row<const N: usize> = Box<[OnceLock<Direct<N>>]>;

/// Rows of operations that have been asked for, by the instruction set, which tests change and some
/// kernels are for one of.
pub(super) struct Table<const N: usize, const OPS: usize>([[OnceLock<Row<N>>; OPS]; LEVELS]);

const LEVELS: usize = simd::Level::V4 as usize + 1;

impl<const N: usize, const OPS: usize> Table<N, OPS> {
    pub(super) const fn new() -> Self {
        Table([const { [const { OnceLock::new() }; OPS] }; LEVELS])
    }

    /// What `find` answers, for a result of type `out`. There is one such type for each operation
    /// on types, the first that it finds something for: others have none.
    #[inline(always)]
    pub(super) fn get(
        &self,
        op: usize,
        out: DType,
        operands: [DType; N],
        find: impl FnOnce() -> Option<Direct<N>>,
    ) -> Option<&Direct<N>> {
        let row = &self.0[simd::level() as usize][op];
        let row = row.get_or_init(|| (0..TYPES.pow(N as u32)).map(|_| OnceLock::new()).collect());
        let place = operands.iter().fold(0, |place, &dtype| place * TYPES + dtype as usize);
        let entry = &row[place];
        let direct = match entry.get() {
            Some(direct) => direct,
            None => find().map(|direct| entry.get_or_init(|| direct))?,
        };
        (direct.out == out).then_some(direct)
    }
}
