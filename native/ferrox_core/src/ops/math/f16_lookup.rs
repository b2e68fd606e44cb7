//! Functions of f16 and bf16 by table.
//!
//! There are 65,536 arguments, so a function whose results come from f64 lanes can be looked up in
//! 128 KB, of which the results for numbers of like size share the first-level cache. A table is
//! made by the loop that it replaces, and so has the same bits, once the function has seen as many
//! elements as it takes to make one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cost::Cost;
use crate::exec::elementwise::{self, Operand, Plan, Source};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::ops::unary::UnaryOp;
use crate::{DType, Error, Fault};

/// What an element costs.
const COST: Cost = 300;

/// Every argument.
const ARGUMENTS: usize = 1 << 16;

type Bytes = [u8; 2];

struct Table {
    /// Elements that were computed without it.
    seen: AtomicUsize,
    results: OnceLock<Vec<u8>>,
}

/// For each operation those of f16 and of bf16.
static TABLES: [[Table; 2]; UnaryOp::ALL.len()] =
    [const { [const { Table { seen: AtomicUsize::new(0), results: OnceLock::new() } }; 2] };
        UnaryOp::ALL.len()];

/// The table of a function, if it has seen enough elements, these included; `compute` gives
/// the results for arguments in memory.
pub(in crate::ops) fn table(
    op: UnaryOp,
    dtype: DType,
    elements: usize,
    compute: impl FnOnce(&[u8]) -> Result<Vec<u8>, Error>,
) -> Option<&'static [u8]> {
    let column = match dtype {
        DType::F16 => 0,
        DType::BF16 => 1,
        _ => return None,
    };
    let Table { seen, results } = &TABLES[op as usize][column];
    let results = match results.get() {
        Some(results) => results,
        None if seen.fetch_add(elements, Ordering::Relaxed).saturating_add(elements) < ARGUMENTS => {
            return None;
        }
        None => {
            let arguments: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
            let made = compute(&arguments).ok()?;
            results.get_or_init(|| made)
        }
    };
    Some(results)
}

struct Lookup<'a, 'b> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
}

impl Vectorized for Lookup<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [arguments, Operand::Scalar(table)] = self.operands else { unreachable!("a table") };
        let results: &[Bytes; ARGUMENTS] =
            table.as_chunks().0.try_into().expect("a result for each argument");
        let out: &mut [Bytes] = self.out.as_chunks_mut().0;
        let look_up = |argument: Bytes| results[usize::from(u16::from_ne_bytes(argument))];
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
    const PLAN: Plan = Plan { kernel: tile, loads: [None; 3], store: None, narrowing: None, cost: COST };
    elementwise::run(&PLAN, shape, out, &[input, Source::Scalar(table)])
}

/// Looks up the first operand in the second.
fn tile(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(Lookup { out, operands });
    Ok(())
}
