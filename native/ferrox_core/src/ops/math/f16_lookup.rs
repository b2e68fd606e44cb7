//! Functions of f16 and bf16 by table lookup.
//!
//! There are 65,536 arguments, so a table of 128 KB has all results of a function that is computed
//! in f64 lanes. The results for numbers of similar magnitude are close together, and stay in the
//! first-level cache. A table is computed by the loop that it replaces, and so has the same bits.
//! It is computed when the function has seen as many elements as the table has.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cost::F16_LOOKUP_COST;
use crate::exec::elementwise::{self, Operand, Plan, Source};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::{Error, Fault};

/// The number of arguments: one for each bit pattern of 16 bits.
const HALF_ARGUMENT_COUNT: usize = 1 << 16;

type HalfBytes = [u8; 2];

/// The results of a function for every argument, made when they are worth it.
pub(in crate::ops) struct LookupTable {
    /// The number of elements that were computed without the table.
    elements_seen: AtomicUsize,
    results: OnceLock<Vec<u8>>,
}

impl LookupTable {
    pub(in crate::ops) const fn new() -> Self {
        LookupTable { elements_seen: AtomicUsize::new(0), results: OnceLock::new() }
    }

    /// The results, if the function has seen enough elements, including `elements`. `compute` returns
    /// the results for the bytes of arguments.
    pub(in crate::ops) fn get(
        &self,
        elements: usize,
        compute: impl FnOnce(&[u8]) -> Result<Vec<u8>, Error>,
    ) -> Option<&[u8]> {
        if let Some(results) = self.results.get() {
            return Some(results);
        }
        let seen = self.elements_seen.fetch_add(elements, Ordering::Relaxed).saturating_add(elements);
        if seen < HALF_ARGUMENT_COUNT {
            return None;
        }
        let arguments: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
        let made = compute(&arguments).ok()?;
        Some(self.results.get_or_init(|| made))
    }
}

struct LookupLoop<'a, 'b> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
}

impl Vectorized for LookupLoop<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [arguments, Operand::Scalar(table)] = self.operands else { unreachable!("a table") };
        let results: &[HalfBytes; HALF_ARGUMENT_COUNT] =
            table.as_chunks().0.try_into().expect("a result for each argument");
        let out: &mut [HalfBytes] = self.out.as_chunks_mut().0;
        let look_up = |argument: HalfBytes| results[usize::from(u16::from_ne_bytes(argument))];
        match arguments {
            Operand::Slice(arguments) => {
                for (out, &argument) in out.iter_mut().zip(arguments.as_chunks().0) {
                    *out = look_up(argument);
                }
            }
            Operand::Scalar(argument) => out.fill(look_up(argument.as_chunks().0[0])),
        }
    }
}

/// Computes `out`, a dense result of some shape, by looking up its operand's elements in a table.
///
/// # Errors
///
/// None: no element has a fault.
pub(in crate::ops) fn run(
    shape: &[usize],
    out: &mut [u8],
    input: Source<'_>,
    table: &[u8],
) -> Result<(), Fault> {
    const PLAN: Plan = Plan {
        kernel: tile,
        loads: [None; 3],
        store: None,
        width: 2,
        narrowing: None,
        cost: F16_LOOKUP_COST,
    };
    elementwise::run(&PLAN, shape, out, &[input, Source::Scalar(table)])
}

/// Looks up each element of the first operand in the table, which is the second operand.
fn tile(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(LookupLoop { out, operands });
    Ok(())
}
