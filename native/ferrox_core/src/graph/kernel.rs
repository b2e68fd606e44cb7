//! An operation on certain types and shapes, prepared so that a run only finds the bytes.

use smallvec::SmallVec;

use super::elementwise::Elementwise;
use super::moves::Moves;
use super::operand::{Memory, Operand, Slot};
use super::operation::{Operation, Outputs, Typed};
use crate::Error;
use crate::cost::{INSTRUCTION_WORK, Work};
use crate::exec::gemm::strategy::Strategy;
use crate::layout;
use crate::ops;
use crate::ops::reduce::{ReduceOp, ReductionSizes, reduce_dense};
use crate::tensor::{Output, Tensor};

/// An operation on certain types and shapes.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) operation: Operation,
    pub(super) inputs: Box<[Operand]>,
    pub(super) outputs: Box<[Memory]>,
    pub(super) work: Work,
    prepared: Prepared,
    /// The slot of the first operand, if the result may be written over it.
    pub(super) over: Option<Slot>,
}

/// What is known of an operation for its types and shapes before it runs.
#[derive(Debug)]
enum Prepared {
    Elementwise(Elementwise),
    Moves(Box<Moves>),
    /// A fold of the middle axis of dense elements.
    Reduce(ReduceOp, ReductionSizes),
    /// A product of two dense matrices.
    Product(Box<Strategy>),
    /// Nothing that is kept.
    Unprepared,
}

impl Kernel {
    /// An operation on operands of these types and shapes.
    ///
    /// # Errors
    ///
    /// `Error::UnsupportedType` if there is no kernel for the types.
    pub(super) fn new(
        operation: &Operation,
        inputs: &[Operand],
        outputs: Box<[Memory]>,
        over: Option<Slot>,
    ) -> Result<Self, Error> {
        let typed_outputs: Vec<Typed<'_>> = outputs.iter().map(|out| (out.dtype, &out.shape[..])).collect();
        let typed_inputs: Vec<Typed<'_>> =
            inputs.iter().map(|input| (input.dtype, &input.shape[..])).collect();
        let work = operation.work(&typed_outputs, &typed_inputs)?.saturating_add(INSTRUCTION_WORK);
        let work = outputs.iter().fold(work, |work, memory| work.saturating_add(memory.work()));
        let prepared = Prepared::new(operation, &typed_outputs, inputs)?;
        Ok(Kernel { operation: operation.clone(), inputs: inputs.into(), outputs, work, prepared, over })
    }

    /// Computes the only result, given the bytes of operands.
    ///
    /// # Errors
    ///
    /// Those of the operation.
    #[inline]
    pub(super) fn compute<'b>(
        &self,
        operand: impl Fn(usize) -> &'b [u8],
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        let Memory { dtype, shape, .. } = self.result()?;
        match &self.prepared {
            Prepared::Elementwise(elementwise) => {
                return elementwise.run((*dtype, shape), &self.inputs, operand, bytes);
            }
            Prepared::Moves(moves) if moves.run(&operand, bytes) => return Ok(()),
            Prepared::Reduce(op, sizes) => {
                return reduce_dense(*op, (self.inputs[0].dtype, operand(0)), *sizes, *dtype, bytes);
            }
            Prepared::Product(strategy) => {
                let operands = [0, 1].map(|index| (self.inputs[index].dtype, operand(index)));
                return ops::dot::matmul(strategy, *dtype, bytes, 1, operands);
            }
            Prepared::Moves(_) | Prepared::Unprepared => {}
        }
        self.compute_all(operand, Outputs::from_buf([Output { dtype: *dtype, shape, bytes }]))
    }

    /// Computes all results, given the bytes of operands.
    ///
    /// # Errors
    ///
    /// Those of the operation.
    pub(super) fn compute_all<'b>(
        &self,
        operand: impl Fn(usize) -> &'b [u8],
        outputs: Outputs<'_>,
    ) -> Result<(), Error> {
        self.operation.run(outputs, &self.tensors(operand, 0)?)
    }

    /// Computes the only result over the first operand, whose bytes `bytes` has, given those of the others.
    ///
    /// # Errors
    ///
    /// Those of the operation.
    pub(super) fn update<'b>(
        &self,
        operand: impl Fn(usize) -> &'b [u8],
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        if let Prepared::Moves(moves) = &self.prepared {
            moves.update(operand, bytes);
            return Ok(());
        }
        let Memory { dtype, shape, .. } = self.result()?;
        let output = Output { dtype: *dtype, shape, bytes };
        self.operation.update(output, &self.tensors(operand, 1)?)
    }

    fn result(&self) -> Result<&Memory, Error> {
        match &self.outputs[..] {
            [result] => Ok(result),
            _ => Err(Error::Argument { op: self.operation.name(), problem: "has not one result".into() }),
        }
    }

    /// The operands from the one with the number `first` on.
    fn tensors<'t, 'b: 't>(
        &'t self,
        operand: impl Fn(usize) -> &'b [u8],
        first: usize,
    ) -> Result<SmallVec<[Tensor<'t>; 3]>, Error> {
        let op = self.operation.name();
        let inputs = self.inputs.iter().enumerate().skip(first);
        inputs.map(|(index, input)| Tensor::new(op, input.dtype, &input.shape, operand(index))).collect()
    }
}

impl Prepared {
    fn new(operation: &Operation, outputs: &[Typed<'_>], inputs: &[Operand]) -> Result<Self, Error> {
        let &[output] = outputs else { return Ok(Prepared::Unprepared) };
        if let Some(elementwise) = Elementwise::new(operation, output, inputs)? {
            return Ok(Prepared::Elementwise(elementwise));
        }
        if let Some(moves) = Moves::new(operation, output, inputs) {
            return Ok(Prepared::Moves(Box::new(moves)));
        }
        if output.0.is_packed() || inputs.iter().any(|input| input.dtype.is_packed()) {
            return Ok(Prepared::Unprepared);
        }
        Ok(match (operation, inputs) {
            (Operation::Reduce(op, axes), [input]) => match ops::reduce::dense_sizes(&input.shape, axes) {
                Some(sizes) if Some(sizes.results()) == layout::size(output.1) => {
                    Prepared::Reduce(*op, sizes)
                }
                _ => Prepared::Unprepared,
            },
            (Operation::Dot { contract, batch }, [left, right]) => {
                let is_matmul = batch.iter().all(|axes| axes.is_empty())
                    && contract[0][..] == [left.shape.len().wrapping_sub(1)]
                    && contract[1][..] == [0]
                    && left.shape.last() == right.shape.first();
                match (left.shape.split_last(), right.shape.split_first()) {
                    (Some((&k, rows)), Some((_, columns)))
                        if is_matmul && output.1.iter().eq(rows.iter().chain(columns)) =>
                    {
                        let [m, n] = [rows, columns].map(|shape| layout::size(shape).unwrap_or(0));
                        let strategy = ops::dot::strategy(output.0, [left.dtype, right.dtype], [m, k, n])?;
                        Prepared::Product(Box::new(strategy))
                    }
                    _ => Prepared::Unprepared,
                }
            }
            _ => Prepared::Unprepared,
        })
    }
}
