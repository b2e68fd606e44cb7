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

mod member_loop;
pub(super) mod products;
mod registers;
mod run;
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "cluster/no_vector_kernel.rs")]
mod vector_kernel;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use smallvec::SmallVec;

use self::products::Product;
pub(super) use self::run::{TripInput, Trips};
use self::vector_kernel::VectorKernel;
use super::assembled::Assembled;
use super::operand::{self, Place, Slot};
use super::operation::Operation;
use super::rows::{Extent, InputRows, copies_of_row};
use crate::cost::{
    self, CACHED_BYTE_COST, Cost, MAX_CACHED_CLUSTER_BYTES, MEMORY_BYTE_COST, MIN_CLUSTER_BYTES,
    MIN_OVERWRITTEN_BYTES, Work,
};
use crate::exec::elementwise::Plan;
use crate::ops;
use crate::ops::binary::BinaryOp;
use crate::ops::math::Math;
use crate::ops::reduce::{Accumulation, ReduceOp, TieBreak};
use crate::ops::unary::UnaryOp;
use crate::tensor::byte_size;
use crate::{DType, Error, Fault};

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

    /// Lets kernels read long runs of rows where they are.
    pub(super) fn read_in_runs(&mut self) {
        for (index, input) in self.inputs.iter_mut().enumerate() {
            let register = Register::Input(index);
            let is_part = |rows: &&InputRows| input.assembled.is_none() && rows.have_long_runs();
            let Some(rows) = input.rows.as_ref().filter(is_part) else { continue };
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
}

impl MemberOperand {
    /// Whether a kernel can't read the operand beside a result of several rows of `elements` elements.
    fn is_repeated(&self, elements: usize) -> bool {
        elements > 1 && matches!(self.extent, Extent::SameRow | Extent::BlockRow | Extent::Element)
    }
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

#[cold]
fn misplaced() -> Error {
    Error::Argument { op: "program", problem: "a cluster is not well-formed".into() }
}
