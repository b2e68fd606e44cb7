//! Clusters: operations that are computed together, some rows at a time.
//!
//! Problem: a chain of cheap operations on large tensors moves every intermediate result through
//! memory. Technique: loop fusion by strip-mining. All values of a cluster have the same number of
//! rows, and each row of a result depends on the same row of the operands alone: elementwise operations
//! do, and folds along the axes of a row. So the kernels are called for a block of rows after the
//! other, whose intermediate results stay in the cache, and threads share the blocks. This is vectorized
//! interpretation (Kersten et al. 2018, "Everything You Always Wanted to Know About Compiled and
//! Vectorized Queries But Were Afraid to Ask"). What a kernel computes for a row does not depend on the
//! other rows, so that results are those of the operations one by one. Folds of all rows are computed beside
//! them by blocks of a fixed number of rows, whose results another operation folds.

#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "cluster/no_vector_kernel.rs")]
mod vector_kernel;

pub(super) mod products;

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use smallvec::SmallVec;

use self::products::Product;
use self::vector_kernel::VectorKernel;
use super::assembled::Assembled;
use super::operand::{self, Place, REGISTER_BYTES, Slot};
use super::operation::Operation;
use super::rows::{Extent, InputRows};
use crate::cost::{
    self, CACHED_BYTE_COST, CLUSTER_BLOCK_BYTES, CLUSTER_BLOCKS_PER_PART, COPIED_ROW_ELEMENTS, Cost,
    MAX_CACHED_CLUSTER_BYTES, MEMORY_BYTE_COST, MIN_CLUSTER_BYTES, MIN_OVERWRITTEN_BYTES,
    MIN_SINGLE_ROW_ELEMENTS, Work,
};
use crate::exec::convert::{self, Conversion, Convert};
use crate::exec::copy;
use crate::exec::elementwise::scratch::{aligned, take, with_kept};
use crate::exec::elementwise::{self, MAX_ELEMENT_BYTES, MAX_OPERANDS, Operand, Plan, Source};
use crate::exec::memory::streaming_stores;
use crate::exec::threads::parallel;
use crate::layout::Shape;
use crate::ops;
use crate::ops::binary::BinaryOp;
use crate::ops::math::Math;
use crate::ops::reduce::{Accumulation, ReduceOp, ReductionSizes, TieBreak};
use crate::ops::unary::UnaryOp;
use crate::tensor::{Tensor, byte_size};
use crate::{DType, Error, Fault, dispatch};

/// What a cluster computes.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The number of rows.
    pub(super) rows: usize,
    pub(super) inputs: Vec<Input>,
    pub(super) members: Vec<Member>,
    /// The number of bytes of a row in each buffer.
    pub(super) buffers: Vec<usize>,
    /// The number of bytes of a row of each result that has rows.
    pub(super) outputs: Vec<usize>,
    /// Folds of rows, whose results come after the others.
    pub(super) folds: Vec<RowsFold>,
    /// The number of a result, and the product whose left operand it is, which takes its place.
    pub(super) product: Option<(usize, Box<Product>)>,
    /// The cost of a row.
    pub(super) cost: Cost,
    /// Members that machine code computes together, in their order.
    pub(super) kernels: Vec<VectorKernel>,
    /// Whether one call of a kernel computes all rows.
    pub(super) runs_at_once: bool,
}

/// A fold of the first axes or of all axes of a value.
#[derive(Clone, Debug)]
pub(super) struct RowsFold {
    pub(super) accumulation: Accumulation,
    pub(super) operand: Register,
    /// The number of elements of a row that belong to a column.
    pub(super) elements: usize,
    /// The number of bytes in a row.
    pub(super) width: usize,
    /// The number of rows that are folded to one result.
    pub(super) rows: usize,
}

impl RowsFold {
    /// The fold of a value whose rows have some elements; `None` if blocks of the fold end within a row.
    pub(super) fn new(
        accumulation: Accumulation,
        operand: Register,
        dtype: DType,
        row_elements: usize,
    ) -> Option<Self> {
        let rows = Self::rows(&accumulation, row_elements)?;
        let elements = row_elements / accumulation.width();
        Some(RowsFold { accumulation, operand, elements, width: row_elements * dtype.width(), rows })
    }

    /// The number of rows of some elements that are folded to one result, if no result ends within a row.
    pub(super) fn rows(accumulation: &Accumulation, row_elements: usize) -> Option<usize> {
        let (block, columns) = (accumulation.block(), accumulation.width());
        let elements = row_elements / columns;
        let fits = elements * columns == row_elements
            && (elements == 1 || columns == 1)
            && block.is_multiple_of(elements.max(1));
        fits.then(|| block / elements.max(1))
    }

    /// Adds rows from the row `first` of `all` rows on, and ends a result after its last row.
    fn add(
        &self,
        bytes: &[u8],
        (first, rows, all): (usize, usize, usize),
        state: &mut [u8],
        out: &mut &mut [u8],
    ) {
        let begin = first - first % self.rows;
        let length = self.rows.min(all - begin) * self.elements;
        if first == begin {
            self.accumulation.begin(state);
        }
        let position = (first - begin) * self.elements;
        self.accumulation.add(state, (position, length), &bytes[..rows * self.width]);
        if position + rows * self.elements == length {
            let (result, rest) = std::mem::take(out).split_at_mut(self.accumulation.result_bytes());
            self.accumulation.finish(state, length, result);
            *out = rest;
        }
    }
}

/// An operand from outside.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) operand: operand::Operand,
    /// Its rows, unless all rows have the same.
    pub(super) rows: Option<InputRows>,
    /// The number of bytes of the row that is the same for all; zero if there is none.
    pub(super) same_bytes: usize,
    /// What the rows are assembled from, if they are; the operand is one of its sources.
    pub(super) assembled: Option<AssembledInput>,
    /// The product whose rows the input has, and whose left operand is the one from outside.
    pub(super) product: Option<Box<Product>>,
    /// Whether kernels read runs of rows where they are.
    pub(super) in_runs: bool,
}

impl Input {
    /// An input that no member reads.
    pub(super) fn whole(operand: operand::Operand) -> Self {
        Input { operand, rows: None, same_bytes: 0, assembled: None, product: None, in_runs: false }
    }

    /// How many times the row that is the same for all rows of a block is copied, for kernels that read it beside
    /// several rows; `None` if it is read in place.
    fn row_copies(&self) -> Option<usize> {
        let rows = self.rows.as_ref().filter(|rows| rows.are_one_in_block())?;
        let copies = copies_of_row(rows.width / self.operand.dtype.width().max(1));
        (copies > 1).then_some(copies)
    }

    /// The number of bytes of memory for the rows that are gathered or copied for a block of some rows.
    fn gathered_bytes(&self, block: usize) -> Option<usize> {
        let rows = self.rows.as_ref().filter(|_| !self.in_runs)?;
        let count = if rows.is_gathered { block } else { self.row_copies()? };
        Some(rows.width * count)
    }
}

/// An input whose rows are assembled.
#[derive(Clone, Debug)]
pub(super) struct AssembledInput {
    pub(super) value: Arc<Assembled>,
    /// The input that each source is.
    pub(super) sources: SmallVec<[usize; 4]>,
}

/// An operation of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) call: Call,
    pub(super) operands: SmallVec<[MemberOperand; 3]>,
    /// The type of the result.
    pub(super) dtype: DType,
    /// The number of elements in a row of the result.
    pub(super) elements: usize,
    pub(super) to: Register,
    /// The cost of a row.
    pub(super) cost: Cost,
}

#[derive(Clone, Debug)]
pub(super) enum Call {
    Binary(BinaryOp, &'static Plan),
    Unary(UnaryOp, Math, &'static Plan),
    /// `select` or `clip`.
    Ternary(&'static str, Box<Plan>),
    Convert,
    /// A fold of the last elements of rows.
    Reduce {
        fold: Fold,
        reduced: usize,
    },
}

/// What a fold gives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fold {
    Value(ReduceOp),
    /// The index of an extreme.
    Index(ReduceOp, TieBreak),
}

impl Call {
    /// The name of the operation.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Call::Binary(op, _) => op.name(),
            Call::Unary(op, ..) => op.name(),
            Call::Ternary(op, _) => op,
            Call::Convert => "as_type",
            Call::Reduce { fold: Fold::Value(op), .. } => op.name(),
            Call::Reduce { fold: Fold::Index(op, _), .. } => ops::reduce::arg_name(*op),
        }
    }
}

/// Where the rows of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Register {
    Input(usize),
    Buffer(usize),
    Output(usize),
}

/// An operand of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberOperand {
    pub(super) register: Register,
    pub(super) dtype: DType,
    pub(super) extent: Extent,
}

/// An input whose memory a result takes: the rows of the result are written over those of the input, block by
/// block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overwritten {
    pub(super) input: usize,
    pub(super) output: usize,
    /// Whether rows are written there at once: machine code reads each element before it writes the new one.
    pub(super) at_once: bool,
}

thread_local! {
    /// The memory of the buffers of a thread's last cluster.
    static BUFFERS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The memory of the copies of rows of a thread's last cluster.
    static COPIES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Cluster {
    pub(super) fn work(&self) -> Work {
        cost::work(self.rows, self.cost)
    }

    /// Whether there are operands for which a member fails.
    pub(super) fn can_fail(&self) -> bool {
        self.members.iter().any(Member::can_fail)
    }

    /// Keeps a result, which nothing reads, in a buffer. The cluster isn't compiled yet.
    pub(super) fn keep_in_buffer(&mut self, output: usize) {
        self.buffers.push(self.outputs.remove(output));
        let buffer = self.buffers.len() - 1;
        let moved = |register: &mut Register| {
            if let Register::Output(index) = register {
                match (*index).cmp(&output) {
                    Ordering::Less => {}
                    Ordering::Equal => *register = Register::Buffer(buffer),
                    Ordering::Greater => *index -= 1,
                }
            }
        };
        for member in &mut self.members {
            member.operands.iter_mut().for_each(|operand| moved(&mut operand.register));
            moved(&mut member.to);
        }
        self.folds.iter_mut().for_each(|fold| moved(&mut fold.operand));
    }

    /// Lets machine code compute members together where it can.
    pub(super) fn compile(&mut self) {
        if !self.kernels.is_empty() {
            return;
        }
        self.kernels = VectorKernel::all(self);
        // Values that are in registers of the processor only need no buffers.
        let mut used: HashSet<Register> = self.kernels.iter().flat_map(VectorKernel::registers).collect();
        used.extend(self.folds.iter().map(|fold| fold.operand));
        for (at, member) in self.members.iter().enumerate() {
            if self.kernel(at).is_none() {
                used.extend(member.operands.iter().map(|operand| operand.register));
                used.insert(member.to);
            }
        }
        for (index, width) in self.buffers.iter_mut().enumerate() {
            if !used.contains(&Register::Buffer(index)) {
                *width = 0;
            }
        }
        self.runs_at_once = self.is_one_call();
        self.cost = self.compiled_cost();
    }

    /// The cost of a row with members in kernels.
    fn compiled_cost(&self) -> Cost {
        let arrays: Cost = self.kernels.iter().map(VectorKernel::array_bytes).sum();
        let is_cached = arrays.saturating_mul(self.rows as Cost) <= MAX_CACHED_CLUSTER_BYTES as Cost;
        let byte_cost = if is_cached { CACHED_BYTE_COST } else { MEMORY_BYTE_COST };
        self.kernels.iter().fold(self.cost, |cost, kernel| {
            let before: Cost = self.members[kernel.members()].iter().map(|member| member.cost).sum();
            let after =
                kernel.array_bytes().saturating_mul(byte_cost).saturating_add(kernel.instruction_cost());
            cost.saturating_sub(before).saturating_add(after.min(before))
        })
    }

    /// Whether one call of machine code computes the whole cluster, whose values are small.
    fn is_one_call(&self) -> bool {
        let [kernel] = &self.kernels[..] else { return false };
        let widths = self.inputs.iter().filter_map(|input| Some(input.rows.as_ref()?.width));
        let mut widths = widths.chain(self.outputs.iter().copied());
        if widths.any(|width| width.saturating_mul(self.rows) > MIN_CLUSTER_BYTES) {
            return false;
        }
        let is_in_place = |input: &Input| {
            let are_rows_in_place =
                |rows: &InputRows| !rows.is_gathered && rows.rows_in_place(0) >= self.rows;
            input.product.is_none() && !input.in_runs && input.rows.as_ref().is_none_or(are_rows_in_place)
        };
        self.is_one_kernel() && kernel.is_one_call() && self.inputs.iter().all(is_in_place)
    }

    /// Computes the results by one call of machine code, without blocks and buffers.
    fn run_at_once<'b>(
        &self,
        kernel: &VectorKernel,
        inputs: &[&'b [u8]],
        outputs: &'b mut [&mut [u8]],
    ) -> Result<(), Error> {
        let in_place = self.inputs.iter().zip(inputs).map(|(input, bytes)| {
            let start = input.rows.as_ref().map_or(0, |rows| rows.start(0));
            BlockInput::InPlace(bytes.get(start..).unwrap_or_default())
        });
        let mut registers = Registers {
            inputs: in_place.collect(),
            buffers: SmallVec::new(),
            outputs: outputs.iter_mut().map(|rest| Rows { rest, stage: None, is_streamed: false }).collect(),
        };
        kernel.run(self.rows, &mut registers, &mut [])
    }

    /// Lets kernels read long runs of rows where they are.
    pub(super) fn read_in_runs(&mut self) {
        for (index, input) in self.inputs.iter_mut().enumerate() {
            let register = Register::Input(index);
            let Some(rows) = input.rows.as_ref().filter(|rows| rows.have_long_runs()) else { continue };
            if input.assembled.is_some() {
                continue;
            }
            let is_read =
                |member: &Member| member.operands.iter().any(|operand| operand.register == register);
            let in_kernel = |at: usize| self.kernels.iter().any(|kernel| kernel.members().contains(&at));
            let by_kernels =
                self.members.iter().enumerate().all(|(at, member)| !is_read(member) || in_kernel(at))
                    && self.kernels.iter().all(|kernel| kernel.reads_rows_alone(register))
                    && self.folds.iter().all(|fold| fold.operand != register);
            if by_kernels {
                self.kernels.iter_mut().for_each(|kernel| kernel.read_in_runs(register, rows));
                input.in_runs = true;
            }
        }
    }

    /// Inputs that results may be written over: each row of a large result over the same row of an input as large
    /// that `dies`. After an error the inputs are read again, so that no member may fail.
    pub(super) fn overwritten(&self, dies: impl Fn(Slot) -> bool) -> Box<[Overwritten]> {
        let mut pairs: SmallVec<[Overwritten; 2]> = SmallVec::new();
        if self.product_rows().is_some() || self.can_fail() {
            return Box::default();
        }
        for (output, &width) in self.outputs.iter().enumerate() {
            let bytes = width * self.rows;
            let fits = |(index, input): (usize, &Input)| {
                let Place::Slot(slot) = input.operand.place else { return false };
                let mut same = self.inputs.iter().filter(|other| other.operand.place == input.operand.place);
                input.rows.as_ref().is_some_and(|rows| rows.width == width && rows.are_adjacent())
                    && byte_size("program", input.operand.dtype, &input.operand.shape) == Ok(bytes)
                    && dies(slot)
                    && same.nth(1).is_none()
                    && pairs.iter().all(|pair| pair.input != index)
            };
            if bytes >= MIN_OVERWRITTEN_BYTES
                && let Some(input) = self.inputs.iter().enumerate().position(fits)
            {
                let at_once = self.is_one_kernel()
                    && self.kernels[0].can_overwrite(Register::Input(input), Register::Output(output));
                pairs.push(Overwritten { input, output, at_once });
            }
        }
        pairs.into_iter().collect()
    }

    /// Whether one kernel computes all members, and nothing else is to be done.
    fn is_one_kernel(&self) -> bool {
        let [kernel] = &self.kernels[..] else { return false };
        kernel.members() == (0..self.members.len()) && self.folds.is_empty() && self.product.is_none()
    }

    /// The kernel that a member belongs to.
    pub(super) fn kernel(&self, member: usize) -> Option<&VectorKernel> {
        self.kernels.iter().find(|kernel| kernel.members().contains(&member))
    }

    /// The number of rows in a block: as many as the cache has room for in all registers.
    pub(super) fn block_rows(&self) -> usize {
        let inputs = self.inputs.iter().filter_map(|input| Some(input.rows.as_ref()?.width));
        let row_bytes: usize = inputs.chain(self.buffers.iter().chain(&self.outputs).copied()).sum();
        self.rows_of_block(CLUSTER_BLOCK_BYTES / row_bytes.max(1), 0, self.rows)
    }

    /// The number of rows, at least one, of the block that begins with row `first`, before `end`, of at most
    /// `block` rows. Inputs that are not gathered can be read in place.
    fn rows_of_block(&self, block: usize, first: usize, end: usize) -> usize {
        let inputs = self.inputs.iter().filter_map(|input| Some(input.rows.as_ref()?.rows_in_place(first)));
        let folds = self.folds.iter().map(|fold| fold.rows - first % fold.rows);
        inputs.chain(folds).fold(block.min(end - first), usize::min).max(1)
    }

    /// Memory for the inputs that are gathered.
    fn gathered<'m: 'b, 'b>(&self, block: usize, memory: &mut &'m mut [u8]) -> SmallVec<[BlockInput<'b>; 8]> {
        self.inputs
            .iter()
            .map(|input| match input.gathered_bytes(block) {
                Some(bytes) => BlockInput::Gathered(take(memory, bytes)),
                None => BlockInput::InPlace(&[]),
            })
            .collect()
    }

    /// The number of bytes that [`Cluster::gathered`] takes.
    fn gathered_bytes(&self, block: usize) -> usize {
        self.inputs.iter().filter_map(|input| input.gathered_bytes(block)).map(aligned).sum()
    }

    /// Calls `run` with the bytes of the inputs, of which those of one row that kernels read beside several rows
    /// are copied as often.
    fn with_copies<T>(&self, inputs: &[&[u8]], run: impl FnOnce(&[&[u8]]) -> T) -> T {
        // The number of each such input, with the bytes of its row and of all copies.
        let mut copied: SmallVec<[(usize, usize, usize); 4]> = SmallVec::new();
        for member in &self.members {
            for operand in &member.operands {
                if let (Register::Input(index), Extent::SameRow) = (operand.register, operand.extent)
                    && operand.is_repeated(member.elements)
                    && copied.iter().all(|&(known, ..)| known != index)
                {
                    let bytes = member.elements * operand.dtype.width();
                    copied.push((index, bytes, bytes * copies_of_row(member.elements)));
                }
            }
        }
        if copied.is_empty() {
            return run(inputs);
        }
        let length = copied.iter().map(|&(_, _, all)| aligned(all)).sum();
        with_kept(&COPIES, length, |mut memory| {
            let mut inputs: SmallVec<[&[u8]; 8]> = inputs.iter().copied().collect();
            for &(index, row, all) in &copied {
                let rows = take(&mut memory, all);
                rows.chunks_exact_mut(row).for_each(|copy| copy.copy_from_slice(&inputs[index][..row]));
                inputs[index] = rows;
            }
            run(&inputs)
        })
    }

    /// Goes to the block of some rows from the row `first` on. Products have rows from the row `origin` on.
    fn begin_block<'b>(
        &self,
        inputs: &[&'b [u8]],
        (origin, first, rows): (usize, usize, usize),
        to: &mut [BlockInput<'b>],
    ) {
        for ((input, &bytes), to) in self.inputs.iter().zip(inputs).zip(to) {
            let first = if input.product.is_some() { first - origin } else { first };
            match (&input.rows, to) {
                (_, BlockInput::Overwritten(_)) => {}
                (Some(of), BlockInput::Gathered(out)) if of.is_gathered => {
                    let out = &mut out[..rows * of.width];
                    match &input.assembled {
                        None => of.gather(bytes, first, out),
                        Some(AssembledInput { value, sources }) => {
                            let sources = sources.iter().map(|&source| inputs[source]);
                            value.gather(&sources.collect::<SmallVec<[&[u8]; 4]>>(), first * of.width, out);
                        }
                    }
                }
                (Some(of), BlockInput::Gathered(copies)) => {
                    let row = &bytes[of.start(first)..][..of.width];
                    copies.chunks_exact_mut(of.width).for_each(|copy| copy.copy_from_slice(row));
                }
                (Some(_), to) if input.in_runs => *to = BlockInput::InRuns(Run { bytes, first }),
                (Some(of), to) => *to = BlockInput::InPlace(&bytes[of.start(first)..]),
                (None, to) => *to = BlockInput::InPlace(bytes),
            }
        }
    }

    /// Computes the results from the bytes of the inputs. Those of inputs that are overwritten are in `outputs`.
    pub(super) fn run(
        &self,
        inputs: &[&[u8]],
        overwritten: &[Overwritten],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        if self.runs_at_once
            && let [kernel] = &self.kernels[..]
        {
            return self.run_at_once(kernel, inputs, outputs);
        }
        let loops = self.loops(inputs, |_| true);
        let block = self.block_rows();
        self.with_copies(inputs, |inputs| {
            let mut run = |_, members: usize| match self.product_rows() {
                Some(rows) => self.in_product_parts(rows, &mut *outputs, |part| {
                    self.run_product_part(&loops[..members], inputs, block, part)
                }),
                None => self.in_parts(block * CLUSTER_BLOCKS_PER_PART, self.cost, &mut *outputs, |part| {
                    self.run_part(&loops[..members], (inputs, overwritten), block, part)
                }),
            };
            run(1, self.members.len()).or_else(|error| self.first_error(error, 1, run))
        })
    }

    /// The error of the first member that fails in the first trip in which one does, given the first error that a
    /// block of rows came to. `run` computes some trips, in the last of them only the first members.
    #[cold]
    fn first_error(
        &self,
        error: Error,
        trips: usize,
        mut run: impl FnMut(usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let can_fail = |&at: &usize| self.members[at].can_fail();
        let failing: SmallVec<[usize; 4]> = (0..self.members.len()).filter(can_fail).collect();
        if failing.len() > 1 {
            (1..=trips).try_for_each(|trips| failing.iter().try_for_each(|at| run(trips, at + 1)))?;
        }
        Err(error)
    }

    /// Computes the results of several trips of a loop, those of the last trip, all trips for some rows
    /// before the next rows. `inputs` has the bytes of the first trip, but for those of carried inputs whose
    /// results are in `overwritten`: `outputs` has them.
    pub(super) fn run_trips(
        &self,
        inputs: &[&[u8]],
        overwritten: &[usize],
        outputs: &mut [&mut [u8]],
        trips: Trips<'_>,
    ) -> Result<(), Error> {
        let cost = self.cost.saturating_mul(trips.count as Cost);
        let block = self.block_rows();
        let first: SmallVec<[&[u8]; 8]> =
            inputs.iter().enumerate().map(|(index, bytes)| trips.input(index, 0, bytes)).collect();
        let loops = self.loops(&first, |_| true);
        let has_number = |member: &Member| {
            member.operands.iter().any(|operand| match operand.register {
                Register::Input(index) => matches!(trips.inputs[index], TripInput::Number(_)),
                _ => false,
            })
        };
        let varies: SmallVec<[bool; 16]> = self.members.iter().map(has_number).collect();
        let of_trips = (0..trips.count).map(|trip| -> Loops<'_> {
            let inputs = inputs.iter().enumerate().map(|(index, bytes)| trips.input(index, trip, bytes));
            let inputs: SmallVec<[&[u8]; 8]> = inputs.collect();
            self.loops(&inputs, |at| varies[at])
        });
        let of_trips = of_trips.collect();
        let loops = TripLoops { loops, varies, of_trips };
        self.with_copies(inputs, |inputs| {
            let mut run = |count: usize, last_members: usize| {
                self.in_parts(block, cost, &mut *outputs, |part| {
                    self.run_part_trips(
                        &loops,
                        (inputs, overwritten),
                        block,
                        part,
                        (trips, count, last_members),
                    )
                })
            };
            let (count, all) = (trips.count, self.members.len());
            run(count, all).or_else(|error| self.first_error(error, count, run))
        })
    }

    /// How the members that are `wanted` are computed.
    fn loops(&self, inputs: &[&[u8]], wanted: impl Fn(usize) -> bool) -> Loops<'_> {
        let mut loops = Loops::new();
        for (at, member) in self.members.iter().enumerate().filter(|(at, _)| wanted(*at)) {
            loops.push(match self.kernel(at) {
                Some(kernel) if kernel.members().start == at => MemberLoop::Vectors(kernel),
                Some(_) => MemberLoop::Computed,
                None => MemberLoop::new(member, inputs),
            });
        }
        loops
    }

    /// Calls `run` for parts of some rows, which threads share, or for all rows if that pays more.
    fn in_parts<'a>(
        &self,
        part_rows: usize,
        cost: Cost,
        outputs: &'a mut [&mut [u8]],
        run: impl Fn(Part<'a>) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let parts = parallel::parts(cost::work(self.rows, cost), false);
        let part_rows = part_rows.min(self.rows.div_ceil(parts)).max(1);
        // A result of a fold belongs to one part.
        let part_rows = self.folds.first().map_or(part_rows, |fold| part_rows.next_multiple_of(fold.rows));
        if self.rows <= part_rows || !parallel::pays(self.rows, cost) {
            let outputs = outputs.iter_mut().map(|output| &mut **output);
            return run(Part { first: 0, rows: self.rows, outputs: outputs.collect() });
        }
        let parts = self.parts(outputs, |first| part_rows.min(self.rows - first));
        parallel::try_each(self.rows, cost, parts.into_iter(), run)
    }

    /// The parts of all rows; `rows_from` gives the number of rows of the part that begins with a row.
    fn parts<'a>(&self, outputs: &'a mut [&mut [u8]], rows_from: impl Fn(usize) -> usize) -> Vec<Part<'a>> {
        let mut rests: SmallVec<[&'a mut [u8]; 4]> = outputs.iter_mut().map(|output| &mut **output).collect();
        let mut parts = Vec::new();
        let mut first = 0;
        while first < self.rows {
            let rows = rows_from(first);
            let outputs = rests.iter_mut().enumerate().map(|(index, rest)| {
                let (part, after) = std::mem::take(rest).split_at_mut(self.result_bytes(index, rows));
                *rest = after;
                part
            });
            parts.push(Part { first, rows, outputs: outputs.collect() });
            first += rows;
        }
        parts
    }

    /// The number of bytes of a result, of those of rows or of a fold, for some rows from the start of a part on.
    fn result_bytes(&self, result: usize, rows: usize) -> usize {
        match result.checked_sub(self.outputs.len()) {
            None => rows * self.result_row_bytes(result),
            Some(fold) => {
                let fold = &self.folds[fold];
                rows.div_ceil(fold.rows) * fold.accumulation.result_bytes()
            }
        }
    }

    /// Computes a part, one block after the other.
    fn run_part(
        &self,
        loops: &[MemberLoop<'_>],
        (inputs, overwritten): (&[&[u8]], &[Overwritten]),
        block: usize,
        part: Part<'_>,
    ) -> Result<(), Error> {
        // Results that are too large to stay in a cache are computed in buffers too, and copied past it, but for
        // the left operand of a product. So are those whose memory an input still has.
        let result = self.product.as_ref().map(|(result, _)| *result);
        let over = |index: usize| overwritten.iter().find(|pair| pair.output == index);
        let is_over = |index: usize| over(index).is_some();
        let is_staged = |(index, width): (usize, &usize)| match over(index) {
            Some(pair) => !pair.at_once,
            None => result != Some(index) && streaming_stores::is_large(width * self.rows),
        };
        // Where no value is kept for another member, rows need not stay in a cache.
        let is_one_pass = self.is_one_kernel()
            && !self.outputs.iter().enumerate().any(is_staged)
            && self.gathered_bytes(1) == 0
            && self.kernels.iter().all(|kernel| kernel.copied_bytes(part.rows) <= CLUSTER_BLOCK_BYTES);
        let block = if is_one_pass { part.rows } else { block };
        let buffered = |width: &usize| width * block;
        let staged = self.outputs.iter().enumerate().filter(|&output| is_staged(output));
        let staged = staged.map(|(_, width)| buffered(width));
        let states = self.folds.iter().map(|fold| fold.accumulation.state_bytes());
        let lengths = self.buffers.iter().map(buffered).chain(staged).chain(states);
        let length = lengths.map(aligned).sum::<usize>() + self.gathered_bytes(block);
        with_kept(&BUFFERS, length + self.lane_bytes(loops, block), |mut memory| {
            let mut block_inputs = self.gathered(block, &mut memory);
            for pair in overwritten {
                block_inputs[pair.input] = BlockInput::Overwritten(pair.output);
            }
            let buffers = self.buffers.iter().map(|width| take(&mut memory, buffered(width))).collect();
            let mut outputs = part.outputs.into_iter();
            let rows = outputs.by_ref().take(self.outputs.len());
            let outputs_of_rows = rows
                .zip(self.outputs.iter().enumerate())
                .map(|(rest, output)| {
                    let stage = is_staged(output).then(|| take(&mut memory, buffered(output.1)));
                    Rows { rest, stage, is_streamed: !is_over(output.0) }
                })
                .collect();
            let mut folds: SmallVec<[(&mut [u8], &mut [u8]); 2]> = outputs
                .zip(&self.folds)
                .map(|(out, fold)| (out, take(&mut memory, fold.accumulation.state_bytes())))
                .collect();
            let mut registers = Registers { inputs: block_inputs, buffers, outputs: outputs_of_rows };
            let mut done = 0;
            while done < part.rows {
                let rows = self.rows_of_block(block, part.first + done, part.first + part.rows);
                self.begin_block(inputs, (part.first, part.first + done, rows), &mut registers.inputs);
                for (member, member_loop) in self.members.iter().zip(loops) {
                    self.run_member(member, member_loop, rows, &mut registers, memory)
                        .map_err(|error| *error)?;
                }
                let block_rows = (part.first + done, rows, self.rows);
                for (fold, (out, state)) in self.folds.iter().zip(&mut folds) {
                    fold.add(registers.bytes(fold.operand), block_rows, state, out);
                }
                for (output, width) in registers.outputs.iter_mut().zip(&self.outputs) {
                    output.advance(rows * width);
                }
                done += rows;
            }
            Ok(())
        })
    }

    /// Computes `count` of the trips of a part, in the last of them the first members only, one block after the
    /// other. What a trip computes of a block, the next trip reads while it is in the cache.
    fn run_part_trips<'m>(
        &'m self,
        TripLoops { loops, varies, of_trips }: &TripLoops<'m>,
        (inputs, overwritten): (&[&[u8]], &[usize]),
        block: usize,
        part: Part<'_>,
        (trips, count, last_members): (Trips<'_>, usize, usize),
    ) -> Result<(), Error> {
        let buffered = |width: &usize| width * block;
        let buffers = self.buffers.iter().map(buffered);
        let carried = self.outputs.iter().map(buffered);
        let length = buffers.chain(carried.clone()).chain(carried).map(aligned).sum::<usize>();
        let length = length + self.gathered_bytes(block) + self.lane_bytes(loops, block);
        with_kept(&BUFFERS, length, |mut memory| {
            let mut block_inputs = self.gathered(block, &mut memory);
            for (input, of) in block_inputs.iter_mut().zip(trips.inputs) {
                if let TripInput::Carried(output) = of
                    && overwritten.contains(output)
                {
                    *input = BlockInput::Overwritten(*output);
                }
            }
            let mut buffers: SmallVec<[&mut [u8]; 16]> =
                self.buffers.iter().map(|width| take(&mut memory, buffered(width))).collect();
            let mut next: SmallVec<[&mut [u8]; 4]> =
                self.outputs.iter().map(|width| take(&mut memory, buffered(width))).collect();
            let mut previous: SmallVec<[&mut [u8]; 4]> =
                self.outputs.iter().map(|width| take(&mut memory, buffered(width))).collect();
            let mut outputs: SmallVec<[&mut [u8]; 4]> =
                part.outputs.into_iter().map(|output| -> &mut [u8] { output }).collect();
            let mut done = 0;
            while done < part.rows {
                let rows = self.rows_of_block(block, part.first + done, part.first + part.rows);
                self.begin_block(inputs, (part.first, part.first + done, rows), &mut block_inputs);
                // What the first trip reads is as what a trip before it would have written.
                for &output in overwritten {
                    let bytes = rows * self.outputs[output];
                    next[output][..bytes].copy_from_slice(&outputs[output][..bytes]);
                }
                for (trip, of_trip) in of_trips.iter().enumerate().take(count) {
                    std::mem::swap(&mut next, &mut previous);
                    let is_last = trip + 1 == count;
                    let members = if is_last { last_members } else { self.members.len() };
                    let results = if is_last { &mut outputs } else { &mut next };
                    let inputs = block_inputs.iter().enumerate();
                    let inputs = inputs.map(|(index, input)| match trips.inputs[index] {
                        TripInput::Carried(output) if trip > 0 || overwritten.contains(&output) => {
                            &*previous[output]
                        }
                        _ => trips.input(index, trip, input.bytes()),
                    });
                    let inputs: SmallVec<[&[u8]; 8]> = inputs.collect();
                    let mut registers = Registers {
                        inputs: inputs.iter().map(|bytes| BlockInput::InPlace(bytes)).collect(),
                        buffers: buffers.iter_mut().map(|buffer| &mut **buffer).collect(),
                        outputs: results
                            .iter_mut()
                            .map(|rest| Rows { rest, stage: None, is_streamed: false })
                            .collect(),
                    };
                    let mut of_trip = of_trip.iter();
                    for ((member, member_loop), &varies) in
                        self.members.iter().zip(loops).zip(varies).take(members)
                    {
                        let of_trip = if varies { of_trip.next() } else { None };
                        let member_loop = of_trip.unwrap_or(member_loop);
                        self.run_member(member, member_loop, rows, &mut registers, memory)
                            .map_err(|error| *error)?;
                    }
                }
                for (output, width) in outputs.iter_mut().zip(&self.outputs) {
                    *output = &mut std::mem::take(output)[rows * width..];
                }
                done += rows;
            }
            Ok(())
        })
    }

    /// The number of bytes for conversions and copies of elements in a block.
    fn lane_bytes(&self, loops: &[MemberLoop<'_>], block: usize) -> usize {
        let bytes = self.members.iter().zip(loops).map(|(member, member_loop)| match member_loop {
            MemberLoop::Vectors(kernel) => kernel.copied_bytes(block),
            _ => member_loop.lane_bytes(block * member.elements),
        });
        bytes.max().unwrap_or(0)
    }

    /// Computes a member. The error is boxed: a large result would wait for what the kernel has stored.
    fn run_member(
        &self,
        member: &Member,
        member_loop: &MemberLoop<'_>,
        rows: usize,
        registers: &mut Registers<'_>,
        lanes: &mut [u8],
    ) -> Result<(), Box<Error>> {
        match member_loop {
            MemberLoop::Vectors(kernel) => return Ok(kernel.run(rows, registers, lanes)?),
            MemberLoop::Computed => return Ok(()),
            _ => {}
        }
        let bytes = rows * member.elements * member.dtype.width();
        // The result is taken out, so that the operands can be borrowed beside it.
        let out = std::mem::take(registers.memory(member.to)?);
        let result = self.compute(member, member_loop, rows, registers, lanes, &mut out[..bytes]);
        *registers.memory(member.to)? = out;
        result
    }

    /// The bytes of `rows` rows of an operand from the row `first` of the block on.
    #[inline]
    fn rows<'r>(
        &self,
        operand: &MemberOperand,
        elements: usize,
        (first, rows): (usize, usize),
        registers: &'r Registers<'_>,
    ) -> &'r [u8] {
        let (all, width) = (registers.bytes(operand.register), operand.dtype.width());
        match operand.extent {
            Extent::Row => &all[first * elements * width..][..rows * elements * width],
            Extent::Element => &all[first * width..][..rows * width],
            Extent::SameRow | Extent::BlockRow => &all[..elements * width],
            Extent::SameElement => &all[..width],
        }
    }

    fn compute(
        &self,
        member: &Member,
        member_loop: &MemberLoop<'_>,
        rows: usize,
        registers: &Registers<'_>,
        lanes: &mut [u8],
        out: &mut [u8],
    ) -> Result<(), Box<Error>> {
        let elements = member.elements;
        match (member_loop, &member.operands[..]) {
            (&MemberLoop::Fold { fold, reduced }, [operand]) => {
                let sizes = ReductionSizes { before: rows * elements, reduced, after: 1 };
                let length = sizes.size() * operand.dtype.width();
                let input = (operand.dtype, &registers.bytes(operand.register)[..length]);
                match fold {
                    Fold::Value(op) => ops::reduce::reduce_dense(op, input, sizes, member.dtype, out)?,
                    Fold::Index(op, tie_break) => {
                        ops::reduce::arg_reduce_dense(op, input, sizes, tie_break, member.dtype, out)?;
                    }
                }
                Ok(())
            }
            (MemberLoop::Convert(convert), [operand]) => {
                let source = self.rows(operand, elements, (0, rows), registers);
                match convert {
                    Some(convert) => convert(source, out),
                    None => out.copy_from_slice(source),
                }
                Ok(())
            }
            (MemberLoop::Kernel(kernel @ KernelLoop { rows_at_once: None, .. }), _) => {
                let source = |operand: &MemberOperand| self.rows(operand, elements, (0, rows), registers);
                kernel.run(rows * elements, source, lanes, out).map_err(|fault| member.error(fault).into())
            }
            (MemberLoop::Kernel(kernel @ KernelLoop { rows_at_once: Some(at_once), .. }), _) => {
                let row_bytes = elements * member.dtype.width();
                for (index, out) in out.chunks_mut((at_once * row_bytes).max(1)).enumerate() {
                    let at = (index * at_once, out.len() / row_bytes);
                    let source = |operand: &MemberOperand| match operand.extent {
                        // As many copies of the row.
                        Extent::SameRow | Extent::BlockRow => {
                            &registers.bytes(operand.register)[..at.1 * elements * operand.dtype.width()]
                        }
                        _ => self.rows(operand, elements, at, registers),
                    };
                    kernel.run(at.1 * elements, source, lanes, out).map_err(|fault| member.error(fault))?;
                }
                Ok(())
            }
            (MemberLoop::General, _) => Ok(self.compute_tensors(member, rows, registers, out)?),
            _ => Err(misplaced().into()),
        }
    }

    /// Computes a member whose operands have to be broadcast, or whose kernel is chosen by their values.
    fn compute_tensors(
        &self,
        member: &Member,
        rows: usize,
        registers: &Registers<'_>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let elements = member.elements;
        if !member.operands.iter().any(|operand| operand.is_repeated(elements)) {
            let sources = member.operands.iter().map(|operand| {
                let bytes = self.rows(operand, elements, (0, rows), registers);
                let is_number = !matches!(operand.extent, Extent::Row | Extent::Element);
                source(bytes, operand, is_number)
            });
            return call(member, &[rows * elements], out, &sources.collect::<Sources<'_>>());
        }
        let shape = [rows, elements];
        let mut shapes: SmallVec<[[usize; 2]; 3]> = SmallVec::new();
        for operand in &member.operands {
            shapes.push(match operand.extent {
                Extent::Row => [rows, elements],
                Extent::Element => [rows, 1],
                Extent::SameRow | Extent::BlockRow => [1, elements],
                Extent::SameElement => [1, 1],
            });
        }
        let mut tensors: SmallVec<[Tensor<'_>; 3]> = SmallVec::new();
        for (operand, shape) in member.operands.iter().zip(&shapes) {
            let bytes = self.rows(operand, elements, (0, rows), registers);
            tensors.push(Tensor::new("program", operand.dtype, shape, bytes)?);
        }
        let sources = tensors.iter().map(|tensor| Source::new(tensor, &shape).ok_or_else(misplaced));
        call(member, &shape, out, &sources.collect::<Result<Sources<'_>, Error>>()?)
    }
}

/// Trips of a loop.
#[derive(Clone, Copy)]
pub(super) struct Trips<'a> {
    pub(super) count: usize,
    /// Where each input comes from.
    pub(super) inputs: &'a [TripInput],
    /// The numbers of each trip, as many for each.
    pub(super) numbers: &'a [[u8; REGISTER_BYTES]],
}

impl Trips<'_> {
    /// The bytes of an input that is not carried, given those of the first trip.
    fn input<'b>(&'b self, index: usize, trip: usize, first: &'b [u8]) -> &'b [u8] {
        match self.inputs[index] {
            TripInput::Number(number) => &self.numbers[trip * (self.numbers.len() / self.count) + number],
            _ => first,
        }
    }
}

/// Where an input of a trip comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TripInput {
    /// The same bytes in all trips.
    Fixed,
    /// A result of the trip before, by its number.
    Carried(usize),
    /// A number of the trip.
    Number(usize),
}

/// The results of some rows.
struct Part<'a> {
    first: usize,
    rows: usize,
    outputs: SmallVec<[&'a mut [u8]; 4]>,
}

/// Where the values of a block are.
struct Registers<'a> {
    inputs: SmallVec<[BlockInput<'a>; 8]>,
    buffers: SmallVec<[&'a mut [u8]; 16]>,
    outputs: SmallVec<[Rows<'a>; 4]>,
}

impl<'a> Registers<'a> {
    /// The bytes of a value from the first row of the block on.
    #[inline]
    fn bytes(&self, register: Register) -> &[u8] {
        match register {
            Register::Input(index) => match &self.inputs[index] {
                BlockInput::Overwritten(output) => &*self.outputs[*output].rest,
                input => input.bytes(),
            },
            Register::Buffer(index) => &*self.buffers[index],
            Register::Output(index) => self.outputs[index].bytes(),
        }
    }

    /// The result that is written over an input without a copy.
    fn overwriting(&self, register: Register) -> Option<Register> {
        let Register::Input(index) = register else { return None };
        match self.inputs.get(index)? {
            &BlockInput::Overwritten(output) if self.outputs[output].stage.is_none() => {
                Some(Register::Output(output))
            }
            _ => None,
        }
    }

    /// What is read in runs.
    fn run(&self, register: Register) -> Option<Run<'_>> {
        match register {
            Register::Input(index) => match self.inputs.get(index)? {
                BlockInput::InRuns(run) => Some(*run),
                _ => None,
            },
            _ => None,
        }
    }

    /// The memory of a result.
    #[inline]
    fn memory(&mut self, register: Register) -> Result<&mut &'a mut [u8], Error> {
        match register {
            Register::Buffer(index) => Ok(&mut self.buffers[index]),
            Register::Output(index) => Ok(self.outputs[index].memory()),
            Register::Input(_) => Err(misplaced()),
        }
    }
}

/// The rows of an input from the first one of the block on.
enum BlockInput<'a> {
    InPlace(&'a [u8]),
    /// Copied to memory that is kept from block to block.
    Gathered(&'a mut [u8]),
    InRuns(Run<'a>),
    /// Where the result with this number is not written yet.
    Overwritten(usize),
}

/// All bytes of an input that is read in runs of rows, and the number of the block's first row.
#[derive(Clone, Copy)]
struct Run<'a> {
    bytes: &'a [u8],
    first: usize,
}

impl BlockInput<'_> {
    /// The bytes of an input that has memory of its own.
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            BlockInput::InPlace(bytes) => bytes,
            BlockInput::Gathered(bytes) => bytes,
            BlockInput::InRuns(run) => run.bytes,
            BlockInput::Overwritten(_) => &[],
        }
    }
}

/// The rows of a result.
struct Rows<'a> {
    /// The rows from the first one of the block on.
    rest: &'a mut [u8],
    /// A buffer for the block, if the rows are copied from there.
    stage: Option<&'a mut [u8]>,
    /// Whether they are copied past the cache.
    is_streamed: bool,
}

impl<'a> Rows<'a> {
    #[inline]
    fn memory(&mut self) -> &mut &'a mut [u8] {
        self.stage.as_mut().unwrap_or(&mut self.rest)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.stage.as_deref().unwrap_or(self.rest)
    }

    /// Ends a block.
    fn advance(&mut self, length: usize) {
        let (rows, rest) = std::mem::take(&mut self.rest).split_at_mut(length);
        match &self.stage {
            Some(stage) if self.is_streamed => streaming_stores::copy(&stage[..length], rows),
            Some(stage) => rows.copy_from_slice(&stage[..length]),
            None => {}
        }
        self.rest = rest;
    }
}

impl MemberOperand {
    /// Whether a kernel can't read the operand beside a result of several rows of `elements` elements.
    fn is_repeated(&self, elements: usize) -> bool {
        elements > 1 && matches!(self.extent, Extent::SameRow | Extent::BlockRow | Extent::Element)
    }
}

/// How a member is computed in each block of a run: what does not change from block to block.
enum MemberLoop<'a> {
    Kernel(KernelLoop<'a>),
    Convert(Option<Convert>),
    Fold {
        fold: Fold,
        reduced: usize,
    },
    /// By [`Cluster::compute_tensors`].
    General,
    /// The first member of a kernel, which computes all of its members.
    Vectors(&'a VectorKernel),
    /// Another member of a kernel: there is nothing left to do.
    Computed,
}

type Loops<'a> = SmallVec<[MemberLoop<'a>; 8]>;

/// How the members are computed in some trips of a loop.
struct TripLoops<'a> {
    /// In the first trip.
    loops: Loops<'a>,
    /// For each member, whether it reads numbers that change from trip to trip.
    varies: SmallVec<[bool; 16]>,
    /// For each trip, the loops of the members that do.
    of_trips: Vec<Loops<'a>>,
}

/// A kernel, called on the operands in place or converted.
struct KernelLoop<'a> {
    plan: &'a Plan,
    operands: SmallVec<[KernelOperand<'a>; MAX_OPERANDS]>,
    /// The number of elements in a row.
    elements: usize,
    /// The number of rows that the kernel is called for at once; `None` for all rows of a block.
    rows_at_once: Option<usize>,
}

/// An operand of a kernel.
enum KernelOperand<'a> {
    /// A number, in the type of the kernel.
    Number(SmallVec<[u8; MAX_ELEMENT_BYTES]>),
    /// The elements of rows, with the conversion to the type of the kernel.
    Elements(&'a MemberOperand, Option<Conversion>),
    /// The element of a row.
    Element(&'a MemberOperand),
    /// The element of a row, or the same row for all rows, copied to each element of a block, with the
    /// conversion to the type of the kernel.
    Repeated(&'a MemberOperand, Option<Conversion>),
}

impl<'a> MemberLoop<'a> {
    fn new(member: &'a Member, inputs: &[&[u8]]) -> Self {
        let sources = member.operands.iter().map(|operand| {
            let width = operand.dtype.width();
            match (operand.register, operand.extent) {
                (Register::Input(index), Extent::SameElement) => Source::Scalar(&inputs[index][..width]),
                _ => Source::Dense { bytes: &[], width },
            }
        });
        let sources: Sources<'_> = sources.collect();
        let operands = &member.operands;
        let dtype_of = |index: usize| operands[index].dtype;
        match (&member.call, &sources[..]) {
            (Call::Binary(op, plan), &[left, right]) => {
                let given = [(dtype_of(0), left), (dtype_of(1), right)];
                let mut numbers = Default::default();
                match ops::binary::simplified(*op, member.dtype, given, &mut numbers) {
                    Some(simpler) => {
                        let plan = simpler.plan(member.dtype).unwrap_or(plan);
                        let simpler =
                            simpler.operands.map(|operand| (&operands[operand.index], operand.source));
                        KernelLoop::of(member, plan, &simpler)
                    }
                    None => KernelLoop::of(member, plan, &[(&operands[0], left), (&operands[1], right)]),
                }
            }
            (Call::Unary(op, ..), _) if ops::unary::has_table(*op, member.dtype, dtype_of(0)) => {
                MemberLoop::General
            }
            (Call::Unary(_, _, plan), &[source]) => KernelLoop::of(member, plan, &[(&operands[0], source)]),
            (Call::Ternary(_, plan), &[a, b, c]) => {
                KernelLoop::of(member, plan, &[(&operands[0], a), (&operands[1], b), (&operands[2], c)])
            }
            (Call::Convert, _) => MemberLoop::Convert(convert::conversion(dtype_of(0), member.dtype)),
            (&Call::Reduce { fold, reduced }, _) => MemberLoop::Fold { fold, reduced },
            _ => MemberLoop::General,
        }
    }

    /// The number of bytes for conversions of some elements.
    fn lane_bytes(&self, elements: usize) -> usize {
        let MemberLoop::Kernel(kernel) = self else { return 0 };
        let lane =
            |load: Option<Conversion>| load.map_or(0, |conversion| aligned(elements * conversion.lane));
        let loads = kernel.operands.iter().map(|operand| match *operand {
            KernelOperand::Elements(_, load) => lane(load),
            KernelOperand::Repeated(operand, load) => {
                let width = load.map_or(operand.dtype.width(), |conversion| conversion.lane);
                aligned(elements * width) + lane(load)
            }
            _ => 0,
        });
        loads.chain([lane(kernel.plan.store)]).sum()
    }
}

impl<'a> KernelLoop<'a> {
    /// The loop of a member over its operands, given as sources where they are numbers.
    fn of(
        member: &'a Member,
        plan: &'a Plan,
        operands: &[(&'a MemberOperand, Source<'_>)],
    ) -> MemberLoop<'a> {
        let is_repeated = |operand: &MemberOperand| operand.is_repeated(member.elements);
        let repeated = || operands.iter().map(|&(operand, _)| operand).filter(|operand| is_repeated(operand));
        if plan.narrowing.is_some() {
            return MemberLoop::General;
        }
        let rows_at_once = if repeated().next().is_none() {
            None
        } else if repeated().all(|operand| operand.extent != Extent::Element) {
            Some(copies_of_row(member.elements))
        } else {
            (member.elements >= MIN_SINGLE_ROW_ELEMENTS).then_some(1)
        };
        let is_copied = |operand: &MemberOperand, load: Option<Conversion>| match rows_at_once {
            None => is_repeated(operand),
            Some(_) => operand.extent == Extent::Element && is_repeated(operand) && load.is_some(),
        };
        let mut kernel_operands = SmallVec::new();
        for (&(operand, source), load) in operands.iter().zip(plan.loads) {
            kernel_operands.push(match (source, load) {
                (Source::Scalar(number), _) => KernelOperand::Number(match load {
                    Some(load) => {
                        let mut converted = SmallVec::from_elem(0, load.lane);
                        (load.convert)(number, &mut converted);
                        converted
                    }
                    None => SmallVec::from_slice(number),
                }),
                (_, load) if is_copied(operand, load) => KernelOperand::Repeated(operand, load),
                _ if operand.extent == Extent::Element && is_repeated(operand) => {
                    KernelOperand::Element(operand)
                }
                _ => KernelOperand::Elements(operand, load),
            });
        }
        let (operands, elements) = (kernel_operands, member.elements);
        MemberLoop::Kernel(KernelLoop { plan, operands, elements, rows_at_once })
    }

    /// Computes `size` elements; `rows` gives the bytes of an operand.
    #[inline]
    fn run<'r>(
        &'r self,
        size: usize,
        rows: impl Fn(&MemberOperand) -> &'r [u8],
        mut lanes: &'r mut [u8],
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let mut operands = [Operand::Scalar(&[]); MAX_OPERANDS];
        for (to, operand) in operands.iter_mut().zip(&self.operands) {
            *to = match operand {
                KernelOperand::Number(number) => Operand::Scalar(number),
                KernelOperand::Element(operand) => Operand::Scalar(rows(operand)),
                KernelOperand::Elements(operand, None) => Operand::Slice(rows(operand)),
                KernelOperand::Elements(operand, Some(Conversion { lane, convert })) => {
                    let converted = take(&mut lanes, size * lane);
                    convert(rows(operand), converted);
                    Operand::Slice(converted)
                }
                KernelOperand::Repeated(operand, load) => {
                    let (mut elements, mut width) = (rows(operand), operand.dtype.width());
                    if let Some(Conversion { lane, convert }) = *load {
                        let converted = take(&mut lanes, elements.len() / width * lane);
                        convert(elements, converted);
                        (elements, width) = (converted, lane);
                    }
                    let repeated = take(&mut lanes, size * width);
                    match operand.extent {
                        Extent::Element => repeat_elements(width, elements, self.elements, repeated),
                        _ => repeat_row(width, elements, repeated),
                    }
                    Operand::Slice(repeated)
                }
            };
        }
        self.plan.compute(size, out, &operands[..self.operands.len()], lanes)
    }
}

/// The number of copies of a row of some elements, the same for all rows, that a kernel reads at once.
fn copies_of_row(elements: usize) -> usize {
    (COPIED_ROW_ELEMENTS / elements.max(1)).max(1)
}

/// Copies each element to `count` adjacent ones.
fn repeat_elements(width: usize, elements: &[u8], count: usize, out: &mut [u8]) {
    dispatch!(width width, N => {
        copy::short_rows::repeat_each(elements.as_chunks::<N>().0, count, out.as_chunks_mut::<N>().0);
    });
}

/// Fills `out` with copies of a row.
fn repeat_row(width: usize, row: &[u8], out: &mut [u8]) {
    dispatch!(width width, N => {
        copy::repeat_row(row.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    });
}

impl Member {
    /// Whether there are operands for which it fails.
    fn can_fail(&self) -> bool {
        match self.call {
            Call::Binary(op, _) => !Operation::Binary(op).is_total(self.dtype),
            _ => false,
        }
    }

    #[cold]
    fn error(&self, fault: Fault) -> Error {
        let op = self.call.name();
        Error::Element { op, dtypes: self.operands.iter().map(|operand| operand.dtype).collect(), fault }
    }
}

type Sources<'a> = SmallVec<[Source<'a>; 3]>;

fn source<'a>(bytes: &'a [u8], operand: &MemberOperand, is_number: bool) -> Source<'a> {
    if is_number { Source::Scalar(bytes) } else { Source::Dense { bytes, width: operand.dtype.width() } }
}

/// Calls the kernel of an elementwise member on sources of some shape.
fn call(member: &Member, shape: &[usize], out: &mut [u8], sources: &[Source<'_>]) -> Result<(), Error> {
    let dtype_of = |index: usize| member.operands[index].dtype;
    match (&member.call, sources) {
        (Call::Binary(op, plan), &[left, right]) => {
            let operands = [(dtype_of(0), left), (dtype_of(1), right)];
            ops::binary::run(*op, plan, (member.dtype, shape), out, operands)
        }
        (Call::Unary(op, _, plan), &[input]) => {
            ops::unary::run(*op, plan, (member.dtype, shape), out, (dtype_of(0), input))
        }
        (Call::Ternary(_, plan), _) => {
            elementwise::run(plan, shape, out, sources).map_err(|fault| member.error(fault))
        }
        _ => Err(misplaced()),
    }
}

#[cold]
fn misplaced() -> Error {
    Error::Argument { op: "program", problem: "a cluster is not well-formed".into() }
}

/// The number of leading axes whose elements are the rows.
pub(super) fn leading_axes(shape: &[usize], rows: usize) -> Option<usize> {
    let mut product = 1;
    for (axis, &size) in shape.iter().enumerate() {
        if product == rows {
            return Some(axis);
        }
        product *= size;
    }
    (product == rows).then_some(shape.len())
}

/// The numbers of rows that a shape can have, the largest first.
pub(super) fn possible_rows(shape: &[usize]) -> Shape {
    let mut products = Shape::new();
    let mut product = 1;
    for &size in shape {
        product *= size;
        if products.last() != Some(&product) {
            products.push(product);
        }
    }
    products.reverse();
    products
}
