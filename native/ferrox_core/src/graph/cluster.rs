//! Clusters: operations that are computed together, some rows at a time.
//!
//! Problem: a chain of cheap operations on large tensors moves every intermediate result through
//! memory. Technique: loop fusion by strip-mining. All values of a cluster have the same number of
//! rows, and each row of a result depends on the same row of the operands alone: elementwise operations
//! do, and folds along the axes of a row. So the kernels are called for a block of rows after the
//! other, whose intermediate results stay in the cache, and threads share the blocks. This is vectorized
//! interpretation (Kersten et al. 2018, "Everything You Always Wanted to Know About Compiled and
//! Vectorized Queries But Were Afraid to Ask"). What a kernel computes for a row does not depend on the
//! other rows, so that results are those of the operations one by one.

use std::cell::Cell;

use smallvec::SmallVec;

use super::operand::Operand;
use crate::cost::{self, CLUSTER_BLOCK_BYTES, CLUSTER_BLOCKS_PER_PART, Cost, MIN_SINGLE_ROW_ELEMENTS, Work};
use crate::exec::convert;
use crate::exec::elementwise::scratch::{aligned, take, with_kept};
use crate::exec::elementwise::{self, Plan, Source};
use crate::exec::memory::streaming_stores;
use crate::exec::threads::parallel;
use crate::layout::Shape;
use crate::ops;
use crate::ops::binary::BinaryOp;
use crate::ops::reduce::{ReduceOp, ReductionSizes};
use crate::ops::unary::UnaryOp;
use crate::tensor::Tensor;
use crate::{DType, Error};

/// What a cluster computes.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The number of rows.
    pub(super) rows: usize,
    /// The operands from outside, each with the number of bytes in a row if it has a row for each row.
    pub(super) inputs: Vec<(Operand, Option<usize>)>,
    pub(super) members: Vec<Member>,
    /// The number of bytes of a row in each buffer.
    pub(super) buffers: Vec<usize>,
    /// The number of bytes of a row of each result.
    pub(super) outputs: Vec<usize>,
    /// The cost of a row.
    pub(super) cost: Cost,
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
}

#[derive(Clone, Debug)]
pub(super) enum Call {
    Binary(BinaryOp, &'static Plan),
    Unary(UnaryOp, &'static Plan),
    /// `select` or `clip`.
    Ternary(&'static str, Box<Plan>),
    Convert,
    /// A fold of the last elements of rows.
    Reduce {
        op: ReduceOp,
        reduced: usize,
    },
}

/// Where the rows of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What of an operand belongs to a row of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A row of as many elements.
    Row,
    /// One element.
    Element,
    /// The same row for all rows.
    SameRow,
    /// The same element for all rows.
    SameElement,
}

thread_local! {
    /// The memory of the buffers of a thread's last cluster.
    static BUFFERS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The results of some rows.
struct Part<'a> {
    first: usize,
    rows: usize,
    outputs: SmallVec<[&'a mut [u8]; 4]>,
}

impl Cluster {
    pub(super) fn work(&self) -> Work {
        cost::work(self.rows, self.cost)
    }

    /// The number of rows in a block.
    pub(super) fn block_rows(&self) -> usize {
        let widest = self.buffers.iter().chain(&self.outputs).copied().max().unwrap_or(1);
        (CLUSTER_BLOCK_BYTES / widest.max(1)).clamp(1, self.rows.max(1))
    }

    /// Computes the results from the bytes of the inputs.
    pub(super) fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), Error> {
        let block = self.block_rows();
        let part_rows = block * CLUSTER_BLOCKS_PER_PART;
        if self.rows <= part_rows || !parallel::pays(self.rows, self.cost) {
            let outputs = outputs.iter_mut().map(|output| &mut **output).collect();
            return self.run_part(inputs, block, Part { first: 0, rows: self.rows, outputs });
        }
        let mut parts: Vec<Part<'_>> = (0..self.rows)
            .step_by(part_rows)
            .map(|first| {
                let rows = part_rows.min(self.rows - first);
                Part { first, rows, outputs: SmallVec::new() }
            })
            .collect();
        for (output, width) in outputs.iter_mut().zip(&self.outputs) {
            for (part, chunk) in parts.iter_mut().zip(output.chunks_mut(part_rows * width)) {
                part.outputs.push(chunk);
            }
        }
        parallel::try_each(self.rows, self.cost, parts.into_iter(), |part| self.run_part(inputs, block, part))
    }

    /// Computes a part, one block after the other.
    fn run_part(&self, inputs: &[&[u8]], block: usize, part: Part<'_>) -> Result<(), Error> {
        let buffered = |width: &usize| width * block;
        // Results that are too large to stay in a cache are computed in buffers too, and copied past it.
        let is_streamed = |width: &usize| streaming_stores::is_large(width * self.rows);
        let staged = |width: &usize| if is_streamed(width) { buffered(width) } else { 0 };
        let lengths = self.buffers.iter().map(buffered).chain(self.outputs.iter().map(staged));
        with_kept(&BUFFERS, lengths.map(aligned).sum(), |mut memory| {
            let mut buffers: SmallVec<[&mut [u8]; 16]> =
                self.buffers.iter().map(|width| take(&mut memory, buffered(width))).collect();
            let mut outputs: SmallVec<[(&mut [u8], &mut [u8]); 4]> = part
                .outputs
                .into_iter()
                .zip(&self.outputs)
                .map(|(output, width)| (output, take(&mut memory, staged(width))))
                .collect();
            let mut done = 0;
            while done < part.rows {
                let rows = block.min(part.rows - done);
                let mut registers = Registers {
                    inputs,
                    first: part.first + done,
                    buffers: buffers.iter_mut().map(|buffer| &mut **buffer).collect(),
                    outputs: outputs
                        .iter_mut()
                        .zip(&self.outputs)
                        .map(|((output, stage), width)| {
                            let length = rows * width;
                            if stage.is_empty() {
                                &mut output[done * width..][..length]
                            } else {
                                &mut stage[..length]
                            }
                        })
                        .collect(),
                };
                self.members.iter().try_for_each(|member| self.run_member(member, rows, &mut registers))?;
                drop(registers);
                for ((output, stage), width) in outputs.iter_mut().zip(&self.outputs) {
                    if !stage.is_empty() {
                        let length = rows * width;
                        streaming_stores::copy(&stage[..length], &mut output[done * width..][..length]);
                    }
                }
                done += rows;
            }
            Ok(())
        })
    }

    fn run_member(&self, member: &Member, rows: usize, registers: &mut Registers<'_>) -> Result<(), Error> {
        let bytes = rows * member.elements * member.dtype.width();
        // The result is taken out, so that the operands can be borrowed beside it.
        let out = match member.to {
            Register::Buffer(index) => std::mem::take(&mut registers.buffers[index]),
            Register::Output(index) => std::mem::take(&mut registers.outputs[index]),
            Register::Input(_) => return Err(misplaced()),
        };
        let result = self.compute(member, rows, registers, &mut out[..bytes]);
        match member.to {
            Register::Buffer(index) => registers.buffers[index] = out,
            Register::Output(index) => registers.outputs[index] = out,
            Register::Input(_) => {}
        }
        result
    }

    /// The bytes of an operand from the first row of the block on.
    fn bytes<'r>(&self, register: Register, registers: &'r Registers<'_>) -> &'r [u8] {
        match register {
            Register::Input(index) => match self.inputs[index].1 {
                Some(width) => &registers.inputs[index][registers.first * width..],
                None => registers.inputs[index],
            },
            Register::Buffer(index) => &*registers.buffers[index],
            Register::Output(index) => &*registers.outputs[index],
        }
    }

    fn compute(
        &self,
        member: &Member,
        rows: usize,
        registers: &Registers<'_>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let elements = member.elements;
        let bytes = |operand: &MemberOperand, first: usize, rows: usize| {
            let (all, width) = (self.bytes(operand.register, registers), operand.dtype.width());
            match operand.extent {
                Extent::Row => &all[first * elements * width..][..rows * elements * width],
                Extent::Element => &all[first * width..][..rows * width],
                Extent::SameRow => &all[..elements * width],
                Extent::SameElement => &all[..width],
            }
        };
        if let (Call::Reduce { op, reduced }, [operand]) = (&member.call, &member.operands[..]) {
            let sizes = ReductionSizes { before: rows * elements, reduced: *reduced, after: 1 };
            let length = sizes.size() * operand.dtype.width();
            let input = (operand.dtype, &self.bytes(operand.register, registers)[..length]);
            return ops::reduce::reduce_dense(*op, input, sizes, member.dtype, out);
        }
        let is_uniform = elements == 1
            || member
                .operands
                .iter()
                .all(|operand| matches!(operand.extent, Extent::Row | Extent::SameElement));
        if is_uniform {
            let size = rows * elements;
            let sources = member.operands.iter().map(|operand| {
                let bytes = bytes(operand, 0, rows);
                let is_one = matches!(operand.extent, Extent::SameRow | Extent::SameElement);
                source(bytes, operand, is_one)
            });
            return call(member, &[size], out, &sources.collect::<Sources<'_>>());
        }
        if elements >= MIN_SINGLE_ROW_ELEMENTS {
            let row_bytes = elements * member.dtype.width();
            for (row, out) in out.chunks_mut(row_bytes).enumerate() {
                let sources = member.operands.iter().map(|operand| {
                    let is_one = matches!(operand.extent, Extent::Element | Extent::SameElement);
                    source(bytes(operand, row, 1), operand, is_one)
                });
                call(member, &[elements], out, &sources.collect::<Sources<'_>>())?;
            }
            return Ok(());
        }
        let shape = [rows, elements];
        let mut shapes: SmallVec<[[usize; 2]; 3]> = SmallVec::new();
        for operand in &member.operands {
            shapes.push(match operand.extent {
                Extent::Row => [rows, elements],
                Extent::Element => [rows, 1],
                Extent::SameRow => [1, elements],
                Extent::SameElement => [1, 1],
            });
        }
        let mut tensors: SmallVec<[Tensor<'_>; 3]> = SmallVec::new();
        for (operand, shape) in member.operands.iter().zip(&shapes) {
            tensors.push(Tensor::new("program", operand.dtype, shape, bytes(operand, 0, rows))?);
        }
        let sources = tensors.iter().map(|tensor| Source::new(tensor, &shape).ok_or_else(misplaced));
        call(member, &shape, out, &sources.collect::<Result<Sources<'_>, Error>>()?)
    }
}

type Sources<'a> = SmallVec<[Source<'a>; 3]>;

fn source<'a>(bytes: &'a [u8], operand: &MemberOperand, is_one: bool) -> Source<'a> {
    if is_one { Source::Scalar(bytes) } else { Source::Dense { bytes, width: operand.dtype.width() } }
}

/// Calls the kernel of an elementwise member.
fn call(member: &Member, shape: &[usize], out: &mut [u8], sources: &[Source<'_>]) -> Result<(), Error> {
    let dtype_of = |index: usize| member.operands[index].dtype;
    match (&member.call, sources) {
        (Call::Binary(op, plan), &[left, right]) => {
            let operands = [(dtype_of(0), left), (dtype_of(1), right)];
            ops::binary::run(*op, plan, (member.dtype, shape), out, operands)
        }
        (Call::Unary(op, plan), &[input]) => {
            ops::unary::run(*op, plan, (member.dtype, shape), out, (dtype_of(0), input))
        }
        (Call::Ternary(op, plan), _) => elementwise::run(plan, shape, out, sources).map_err(|fault| {
            let dtypes = member.operands.iter().map(|operand| operand.dtype).collect();
            Error::Element { op, dtypes, fault }
        }),
        (Call::Convert, &[Source::Dense { bytes, .. }]) => {
            let size = shape.iter().product();
            convert::convert_all(dtype_of(0), bytes, member.dtype, size, out);
            Ok(())
        }
        _ => Err(misplaced()),
    }
}

/// Where the values of a block are.
struct Registers<'a> {
    inputs: &'a [&'a [u8]],
    /// The first row of the block.
    first: usize,
    buffers: SmallVec<[&'a mut [u8]; 16]>,
    outputs: SmallVec<[&'a mut [u8]; 4]>,
}

#[cold]
fn misplaced() -> Error {
    Error::Argument { op: "program", problem: "a cluster is not well-formed".into() }
}

/// What of an operand belongs to a row of a result of some shape, if the result has `rows` rows; `None`
/// if it is something else.
pub(super) fn extent(shape: &[usize], result: &[usize], rows: usize) -> Option<Extent> {
    let leading = leading_axes(result, rows)?;
    if shape.iter().product::<usize>() == 1 {
        return Some(if rows == 1 { Extent::Element } else { Extent::SameElement });
    }
    if shape.len() > result.len() {
        return None;
    }
    let missing = result.len() - shape.len();
    let size = |axis: usize| if axis < missing { 1 } else { shape[axis - missing] };
    let same = |mut axes: std::ops::Range<usize>| axes.all(|axis| size(axis) == result[axis]);
    let ones = |mut axes: std::ops::Range<usize>| axes.all(|axis| size(axis) == 1);
    let (outer, inner) = (0..leading, leading..result.len());
    match (same(outer.clone()), ones(outer), same(inner.clone()), ones(inner)) {
        (true, _, true, _) => Some(Extent::Row),
        (true, _, _, true) => Some(Extent::Element),
        (_, true, true, _) => Some(Extent::SameRow),
        _ => None,
    }
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
