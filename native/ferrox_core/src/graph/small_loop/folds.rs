//! Sums and products of matrices with few elements, as instructions on these.
//!
//! Problem: a kernel that adds up three numbers takes twenty times longer than three additions. Technique: the
//! instructions do what the kernels do with few elements: they widen floats to f64, add them up in order from
//! zero on, and round the total once (`exec::reduce::fold`, `exec::gemm`). A product of two f32 is exact in f64,
//! and that of two f64 is rounded before it is added.

use super::super::operand::Operand;
use super::super::operation::Operation;
use super::code::{Code, Elements, NumberOperation, Register};
use super::homes::{Assembler, Scope};
use super::operations::Calculation;
use crate::DType;
use crate::layout::{self, Shape};
use crate::ops;
use crate::ops::binary::BinaryOp;
use crate::ops::reduce::ReduceOp;

impl Assembler<'_> {
    /// A sum or a product of floats with few elements and operands of few.
    pub(super) fn fold(&mut self, scope: &mut Scope, calculation: Calculation<'_>) -> Option<()> {
        let Calculation { operation, inputs, output } = calculation;
        let is_float = |dtype: DType| matches!(dtype, DType::F32 | DType::F64);
        if !is_float(output.dtype) || inputs.iter().any(|input| input.dtype != output.dtype) {
            return None;
        }
        let totals = match (operation, inputs) {
            (Operation::Reduce(ReduceOp::Sum, axes), [input]) => self.sums(scope, input, axes)?,
            (Operation::Dot { contract, batch }, [left, right])
                if batch.iter().all(|axes| axes.is_empty()) =>
            {
                self.products(scope, [left, right], contract)?
            }
            _ => return None,
        };
        if layout::size(&output.shape) != Some(totals.len()) {
            return None;
        }
        let results = totals.into_iter().map(|total| self.converted(total, DType::F64, output.dtype));
        let results = results.collect::<Option<Elements>>()?;
        self.alias(scope, output, results)
    }

    /// The sums along some axes, as f64.
    fn sums(&mut self, scope: &Scope, input: &Operand, axes: &[usize]) -> Option<Vec<Register>> {
        let sizes = ops::reduce::dense_sizes(&input.shape, axes)?;
        let elements = self.widened(scope, input)?;
        let lines = lines([sizes.before, sizes.reduced, sizes.after]).into_iter();
        lines
            .map(|line| {
                let terms = line.into_iter().map(|at| elements.get(at).copied());
                self.total(&terms.collect::<Option<Vec<_>>>()?)
            })
            .collect()
    }

    /// The elements of a product of matrices or vectors, as f64.
    fn products(
        &mut self,
        scope: &Scope,
        operands: [&Operand; 2],
        contract: &[Shape; 2],
    ) -> Option<Vec<Register>> {
        let ([&[left_axis], &[right_axis]], [left, right]) = ([&contract[0][..], &contract[1][..]], operands)
        else {
            return None;
        };
        let [left_lines, right_lines] =
            [lines(around(&left.shape, left_axis)?), lines(around(&right.shape, right_axis)?)];
        let [left, right] = [self.widened(scope, left)?, self.widened(scope, right)?];
        let multiply = NumberOperation::new(BinaryOp::Multiply, DType::F64)?;
        let mut totals = Vec::new();
        for left_line in &left_lines {
            for right_line in &right_lines {
                if left_line.len() != right_line.len() {
                    return None;
                }
                let mut terms = Vec::new();
                for (&a, &b) in left_line.iter().zip(right_line) {
                    let operands = [*left.get(a)?, *right.get(b)?];
                    terms.push(self.computed(Code::Binary { by: multiply, operands, to: 0 })?);
                }
                totals.push(self.total(&terms)?);
            }
        }
        Some(totals)
    }

    /// The sum of f64, in order.
    fn total(&mut self, terms: &[Register]) -> Option<Register> {
        let by = NumberOperation::new(BinaryOp::Add, DType::F64)?;
        let mut total = self.constant(0.0_f64.to_bits())?;
        for &term in terms {
            total = self.computed(Code::Binary { by, operands: [total, term], to: 0 })?;
        }
        Some(total)
    }

    /// The elements of a value as f64.
    fn widened(&mut self, scope: &Scope, operand: &Operand) -> Option<Vec<Register>> {
        let elements = self.elements(scope, operand)?;
        elements.iter().map(|&register| self.converted(register, operand.dtype, DType::F64)).collect()
    }
}

/// The places of the elements of each line along the middle axis of a dense array of three.
fn lines([before, length, after]: [usize; 3]) -> Vec<Vec<usize>> {
    let line =
        |before: usize, start: usize| (0..length).map(move |at| (before * length + at) * after + start);
    let firsts = (0..before).flat_map(|before| (0..after).map(move |start| (before, start)));
    firsts.map(|(before, start)| line(before, start).collect()).collect()
}

/// The sizes of a shape before an axis, along it and after it.
fn around(shape: &[usize], axis: usize) -> Option<[usize; 3]> {
    let length = *shape.get(axis)?;
    Some([layout::size(&shape[..axis])?, length, layout::size(&shape[axis + 1..])?])
}
