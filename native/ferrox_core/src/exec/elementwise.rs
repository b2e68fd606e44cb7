//! Runs a kernel over tiles of up to three operands.
//!
//! Problem: supporting every mix of types and every broadcast without compiling a loop for each.
//! Technique: vectorized interpretation, as in column stores (Boncz, Zukowski and Nes 2005,
//! "MonetDB/X100: Hyper-Pipelining Query Execution"). The kernel and the conversions before and
//! after it are function pointers, which are called once for each tile of the result. Operands with
//! the layout of the result and the type that the kernel computes with are passed to it in place.
//! Other operands are gathered and converted one tile at a time, into memory that stays in the
//! first-level cache. The layouts are collapsed together first, so that rows are long.

pub(crate) mod scratch;
mod source;
mod tiles;
mod value_narrowing;

use self::scratch::{aligned, take, with_scratch};
pub use self::source::Source;
use self::tiles::{Tiles, converted};
use self::value_narrowing::Narrowed;
pub use self::value_narrowing::ValueNarrowing;
use crate::Fault;
use crate::cost::{Cost, MIN_BYTES_TO_ALIGN};
use crate::exec::convert::Conversion;
use crate::exec::memory::streaming_stores;
use crate::exec::threads::parallel;

use crate::cost::TILE_ELEMENTS;

/// The number of elements that a kernel with several steps computes together, so that the results
/// of one step are in the first-level cache for the next step. (`kernels`: exp_f32, exp_f64.)
pub const KERNEL_CHUNK_ELEMENTS: usize = 256;

/// The maximum number of operands of a kernel.
pub const MAX_OPERANDS: usize = 3;

/// The number of bytes in the largest element of a tensor or lane.
pub const MAX_ELEMENT_BYTES: usize = 16;

/// The elements that a kernel reads for a tile of the result.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// One element for each element of the result.
    Slice(&'a [u8]),
    /// One element for all elements of the result.
    Scalar(&'a [u8]),
}

/// Computes a tile of the result from its operands.
pub type Kernel = fn(&mut [u8], &[Operand<'_>]) -> Result<(), Fault>;

/// How an operation on operands of certain types is computed.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Computes the operation.
    pub kernel: Kernel,
    /// The conversion of each operand to the kernel's type; `None` if it needs none.
    pub loads: [Option<Conversion>; MAX_OPERANDS],
    /// The conversion of the kernel's results to the type of the result; `None` if they need none.
    pub store: Option<Conversion>,
    /// The number of bytes in an element of the result.
    pub width: usize,
    /// A faster kernel for operands whose values fit into a narrower type.
    pub narrowing: Option<ValueNarrowing>,
    /// The cost of an element of the result.
    pub cost: Cost,
}

impl Plan {
    /// Computes some elements of the result from operands of the kernel's types. `memory` has room for
    /// results that are converted.
    ///
    /// # Errors
    ///
    /// The fault that the kernel found in an element.
    #[inline]
    pub fn compute(
        &self,
        size: usize,
        out: &mut [u8],
        operands: &[Operand<'_>],
        memory: &mut [u8],
    ) -> Result<(), Fault> {
        let Some(Conversion { lane, convert }) = self.store else { return (self.kernel)(out, operands) };
        let computed = &mut memory[..size * lane];
        (self.kernel)(computed, operands)?;
        convert(computed, out);
        Ok(())
    }
}

/// Computes `out`, a dense result of the given shape, in parallel if that pays.
///
/// # Errors
///
/// The fault that the kernel found in an element.
#[inline]
pub fn run(plan: &Plan, shape: &[usize], out: &mut [u8], sources: &[Source<'_>]) -> Result<(), Fault> {
    let size: usize = shape.iter().product();
    if size == 0 {
        return Ok(());
    }
    let mut operands = [Operand::Scalar(&[]); MAX_OPERANDS];
    if direct_operands(plan, sources, &mut operands) {
        let operands = &operands[..sources.len()];
        if !parallel::is_worth_sharing(size, plan.cost) && out.len() < MIN_BYTES_TO_ALIGN {
            return (plan.kernel)(out, operands);
        }
        return run_direct(plan, size, out, operands);
    }
    if size <= TILE_ELEMENTS {
        return run_one_tile(plan, shape, size, out, sources);
    }
    let mut prepared = Default::default();
    let tiles = Tiles::new(plan, shape, sources, &mut prepared);
    let head_length = streaming_stores::elements_before_line([(&*out, plan.width)]);
    streaming_stores::try_fill(out, size, plan.cost, head_length, |start, part| tiles.run(start, part))
}

/// Computes one element, given the bytes of each operand.
///
/// # Errors
///
/// The fault that the kernel found in it.
#[inline]
pub fn run_element(plan: &Plan, out: &mut [u8], elements: &[&[u8]]) -> Result<(), Fault> {
    let mut operands = [Operand::Scalar(&[]); MAX_OPERANDS];
    let mut buffers = [[0; MAX_ELEMENT_BYTES]; MAX_OPERANDS];
    for (((operand, element), load), buffer) in
        operands.iter_mut().zip(elements).zip(&plan.loads).zip(&mut buffers)
    {
        *operand = Operand::Slice(converted(element, 1, *load, buffer));
    }
    plan.compute(1, out, &operands[..elements.len()], &mut [0; MAX_ELEMENT_BYTES])
}

/// Returns whether the kernel can read all operands in place and write the result directly, and
/// sets `operands` if it can.
#[inline]
fn direct_operands<'a>(
    plan: &Plan,
    sources: &[Source<'a>],
    operands: &mut [Operand<'a>; MAX_OPERANDS],
) -> bool {
    if plan.store.is_some() {
        return false;
    }
    for ((source, load), operand) in sources.iter().zip(&plan.loads).zip(operands) {
        *operand = match (source, load) {
            (Source::Dense { bytes, .. }, None) => Operand::Slice(bytes),
            (Source::Scalar(element), None) => Operand::Scalar(element),
            _ => return false,
        };
    }
    true
}

/// `run` for many elements with operands that the kernel reads in place.
fn run_direct(plan: &Plan, size: usize, out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    let dense = operands.iter().filter_map(|operand| match operand {
        Operand::Slice(bytes) => Some((*bytes, bytes.len() / size)),
        Operand::Scalar(_) => None,
    });
    let head_length = streaming_stores::elements_before_line([(&*out, plan.width)].into_iter().chain(dense));
    streaming_stores::try_fill(out, size, plan.cost, head_length, |start, out| {
        let mut part = [Operand::Scalar(&[]); MAX_OPERANDS];
        for (part, operand) in part.iter_mut().zip(operands) {
            *part = match operand {
                Operand::Slice(bytes) => Operand::Slice(&bytes[start * (bytes.len() / size)..]),
                scalar => *scalar,
            };
        }
        (plan.kernel)(out, &part[..operands.len()])
    })
}

/// `run` for a result of at most one tile: operands that aren't dense are gathered, then every
/// operand is converted as a whole.
fn run_one_tile(
    plan: &Plan,
    shape: &[usize],
    size: usize,
    out: &mut [u8],
    sources: &[Source<'_>],
) -> Result<(), Fault> {
    let lanes = plan.loads.iter().chain([&plan.store]).flatten().map(|conversion| conversion.lane);
    let lane_bytes = lanes.map(|lane| aligned(size * lane)).sum::<usize>();
    let gathered_bytes = sources.iter().map(|source| source.gathered_bytes(size)).sum::<usize>();
    with_scratch(lane_bytes + gathered_bytes, |mut memory| {
        let mut dense = [Source::Scalar(&[]); MAX_OPERANDS];
        for (dense, source) in dense.iter_mut().zip(sources) {
            *dense = source.gathered(shape, take(&mut memory, source.gathered_bytes(size)));
        }
        let dense = &dense[..sources.len()];
        let mut buffers: [&mut [u8]; MAX_OPERANDS] = Default::default();
        for (buffer, load) in buffers.iter_mut().zip(&plan.loads) {
            *buffer = take(&mut memory, load.map_or(0, |load| size * load.lane));
        }
        if let Some(narrowing) = &plan.narrowing {
            let mut scalars = Default::default();
            let narrowed = Narrowed::new(narrowing, dense, &mut scalars);
            let buffers = buffers.iter_mut().map(|buffer| &mut **buffer);
            if let Some(narrowed) = narrowed
                && narrowed.run(0, size, buffers, out)?
            {
                return Ok(());
            }
        }
        let mut operands = [Operand::Scalar(&[]); MAX_OPERANDS];
        for (((operand, source), load), buffer) in
            operands.iter_mut().zip(dense).zip(&plan.loads).zip(&mut buffers)
        {
            *operand = match source {
                Source::Dense { bytes, .. } => Operand::Slice(converted(bytes, size, *load, buffer)),
                Source::Scalar(element) => Operand::Scalar(converted(element, 1, *load, buffer)),
                _ => unreachable!("broadcast tensors are gathered, and tiles make the others"),
            };
        }
        plan.compute(size, out, &operands[..dense.len()], memory)
    })
}
