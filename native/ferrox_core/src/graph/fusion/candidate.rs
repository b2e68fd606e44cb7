//! Operations that clusters can have.

use smallvec::SmallVec;

use super::MIN_REPEATS_OF_CHEAP;
use crate::DType;
use crate::cost::{Cost, MAX_CLUSTER_ROW_BYTES, MIN_CLUSTER_FOLD_BLOCKS};
use crate::exec::convert;
use crate::graph::cluster::{Call, Fold, RowsFold};
use crate::graph::operation::Operation;
use crate::graph::rows::{Extent, InputRows, leading_axes};
use crate::graph::source::{Operand, Place, Slot, Target};
use crate::graph::views::Views;
use crate::layout::{self, Shape};
use crate::ops;
use crate::ops::binary::BinaryOp;
use crate::ops::reduce::Accumulation;
use crate::tensor::byte_size;

/// An operation that a cluster can have.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) operation: Operation,
    pub(super) inputs: Vec<Operand>,
    pub(super) output: Target,
    /// The fold of rows, if it is one.
    pub(super) accumulation: Option<Accumulation>,
    /// The slot of the value that it computes again, if it does.
    pub(super) again: Option<Slot>,
}

impl Candidate {
    pub(super) fn new(operation: &Operation, inputs: &[Operand], output: &Target) -> Self {
        let accumulation = match (operation, inputs) {
            (Operation::Reduce(op, axes), [input]) => {
                ops::reduce::accumulation(*op, (input.dtype, &input.shape), axes, MIN_CLUSTER_FOLD_BLOCKS)
            }
            _ => None,
        };
        let (operation, inputs, output) = (operation.clone(), inputs.to_vec(), output.clone());
        Candidate { operation, inputs, output, accumulation, again: None }
    }

    /// Whether the operation takes less time than to read its result from memory, and reads one tensor of
    /// this size at most.
    pub(super) fn is_cheap(&self) -> bool {
        let Some(bytes) = self.output_bytes() else { return false };
        let mut large: SmallVec<[Place; 2]> = SmallVec::new();
        for operand in &self.inputs {
            let Ok(read) = byte_size(self.operation.name(), operand.dtype, &operand.shape) else {
                return false;
            };
            if read > bytes {
                return false;
            }
            if read > bytes / MIN_REPEATS_OF_CHEAP && !large.contains(&operand.place) {
                large.push(operand.place);
            }
        }
        is_cheap_operation(&self.operation) && large.len() == 1 && self.again.is_none()
    }

    /// The shape whose leading axes are the rows.
    pub(super) fn shape(&self) -> &[usize] {
        match &self.operation {
            Operation::Reduce(..) | Operation::ArgReduce(..) => {
                self.inputs.first().map_or(&[], |input| &input.shape)
            }
            _ => &self.output.shape,
        }
    }

    /// The axes that the operation folds; `None` if it is not a fold.
    fn folded(&self) -> Option<Shape> {
        match &self.operation {
            Operation::Reduce(_, axes) => Some(axes.clone()),
            Operation::ArgReduce(_, Some(axis), _) => Some(Shape::from_elem(*axis, 1)),
            Operation::ArgReduce(..) => Some((0..self.shape().len()).collect()),
            _ => None,
        }
    }

    /// The number of elements that the operation folds to one; `None` if it is not a fold.
    fn reduced(&self) -> Option<usize> {
        Some(self.folded()?.iter().map(|&axis| self.shape()[axis]).product())
    }

    /// Whether the operation is one that clusters have.
    pub(super) fn is_possible(&self) -> bool {
        let fits = match &self.operation {
            Operation::Binary(_) | Operation::Unary(..) | Operation::Select | Operation::Clip => true,
            // A number is converted where it is used.
            Operation::AsType => true,
            Operation::Reduce(..) | Operation::ArgReduce(..) => {
                // The last axes, in order.
                let (rank, axes) = (self.shape().len(), self.folded().unwrap_or_default());
                !axes.is_empty()
                    && axes.iter().rev().enumerate().all(|(i, &axis)| axis.checked_add(i + 1) == Some(rank))
                    || self.accumulation.is_some()
            }
            _ => false,
        };
        fits && !self.dtypes().any(DType::is_packed)
    }

    /// The number of rows in a block, if it is a fold of rows whose blocks don't end within one.
    pub(super) fn folded_rows(&self, rows: usize) -> Option<usize> {
        let elements = layout::size(self.shape())? / rows.max(1);
        RowsFold::rows(self.accumulation.as_ref()?, elements)
    }

    /// The number of bytes of the largest value if all were of one shape. Small operations don't begin
    /// clusters, but join others.
    pub(super) fn bytes(&self) -> usize {
        let widest = self.dtypes().map(DType::width).max().unwrap_or(0);
        self.shape().iter().product::<usize>() * widest
    }

    fn dtypes(&self) -> impl Iterator<Item = DType> {
        self.inputs.iter().map(|input| input.dtype).chain([self.output.dtype])
    }

    /// The number of bytes of the result, if it has rows.
    pub(super) fn row_bytes(&self) -> Option<usize> {
        self.output_bytes().filter(|_| self.accumulation.is_none())
    }

    /// The number of bytes of the result.
    fn output_bytes(&self) -> Option<usize> {
        byte_size(self.operation.name(), self.output.dtype, &self.output.shape).ok()
    }

    /// The number of operands that are gathered if the operation is computed by rows, given the slots that
    /// are computed with it, with the bytes of those that have rows, and the views that it may read; `None` if
    /// it can't be.
    pub(super) fn gathered(
        &self,
        rows: usize,
        produced: impl Fn(Slot) -> Option<Option<usize>>,
        views: &Views,
    ) -> Option<usize> {
        let shape = self.shape();
        let leading = leading_axes(shape, rows)?;
        let elements: usize = shape[leading..].iter().product();
        let width = self.inputs.iter().map(|input| input.dtype.width()).max().unwrap_or(1);
        let row_bytes = elements * width.max(self.output.dtype.width());
        if elements == 0 || row_bytes > MAX_CLUSTER_ROW_BYTES {
            return None;
        }
        let folds_rows = self.accumulation.is_some();
        if let Some(axes) = self.folded()
            && !folds_rows
            && axes.first().is_none_or(|&first| first < leading)
        {
            return None;
        }
        let reads_rows =
            matches!(self.operation, Operation::AsType | Operation::Unary(..)) || self.folded().is_some();
        let gathered = self.inputs.iter().map(|input| {
            let (extent, rows) = views.rows(input, shape, leading)?;
            let produced = match input.place {
                Place::Slot(slot) => produced(slot),
                Place::Literal(_) => None,
            };
            // The result of a fold of rows is not there before the end of the cluster.
            let bytes = byte_size(self.operation.name(), input.dtype, &input.shape).ok();
            if produced.is_some_and(|produced| produced != bytes) {
                return None;
            }
            // The rows of a value of the cluster are those of the block.
            let is_produced = produced.is_some();
            let fits = (extent == Extent::Row || !reads_rows)
                && (is_produced || !folds_rows)
                && (!is_produced || rows.as_ref().is_some_and(InputRows::are_adjacent));
            fits.then(|| usize::from(rows.is_some_and(|rows| rows.is_gathered)))
        });
        gathered.sum()
    }

    /// The kernel, and the cost of an element of the shape that is divided into rows.
    pub(super) fn call(&self) -> Option<(Call, Cost)> {
        let dtypes: SmallVec<[_; 3]> = self.inputs.iter().map(|input| input.dtype).collect();
        let to = self.output.dtype;
        Some(match (&self.operation, &dtypes[..]) {
            (Operation::Binary(op), &[a, b]) => {
                let plan = ops::binary::plan(*op, to, [a, b]).ok()?;
                (Call::Binary(*op, plan), plan.cost)
            }
            (Operation::Unary(op, math), &[a]) => {
                let plan = ops::unary::plan(*op, *math, to, a).ok()?;
                (Call::Unary(*op, *math, plan), plan.cost)
            }
            (Operation::Select, &[p, a, b]) => {
                let plan = ops::ternary::select_plan(to, [p, a, b]);
                let cost = plan.cost;
                (Call::Ternary("select", Box::new(plan)), cost)
            }
            (Operation::Clip, &[a, b, c]) => {
                let plan = ops::ternary::clip_plan(to, [a, b, c]).ok()?;
                let cost = plan.cost;
                (Call::Ternary("clip", Box::new(plan)), cost)
            }
            (Operation::AsType, &[a]) => (Call::Convert, convert::cost(a, to)),
            (&Operation::Reduce(op, _), &[a]) => {
                (Call::Reduce { fold: Fold::Value(op), reduced: self.reduced()? }, ops::reduce::cost(a))
            }
            (&Operation::ArgReduce(op, _, tie_break), &[a]) if !a.is_complex() && !to.is_complex() => {
                let (fold, reduced) = (Fold::Index(op, tie_break), self.reduced()?);
                (Call::Reduce { fold, reduced }, ops::reduce::arg_cost(a, reduced))
            }
            _ => return None,
        })
    }
}

/// Whether an operation takes less time than to read an element of its result from memory. It can't fail.
pub(super) fn is_cheap_operation(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Binary(
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Max | BinaryOp::Min
        )
    )
}
