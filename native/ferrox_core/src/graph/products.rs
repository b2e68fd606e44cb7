//! Products of transposed matrices: a transpose that only products read becomes their axes, and so does a
//! transpose of a product.
//!
//! Technique: the axes that a product sums over, and those of its batch, are renamed to the axes of the
//! transpose's operand, which the product reads in place. The transpose of a product is the product of the
//! operands in the other order. Only products that add up each sum in the order of its terms
//! ([`Strategy::adds_in_order`]) change, so that results stay the same.

use std::collections::HashMap;

use super::operand::{Operand, Place, Slot, Target};
use super::operation::Operation;
use super::source::{Region, Step, reads, with_inner};
use crate::exec::gemm::strategy::Strategy;
use crate::layout::{Layout, Shape, check_axes};
use crate::ops;

/// The regions without transposes that products don't need.
pub(super) fn fold_transposes(regions: &[Region]) -> Vec<Region> {
    let fold = |region: &Region| {
        let reads = reads(region);
        Region { steps: Folding { reads: &reads }.steps(&region.steps), ..region.clone() }
    };
    regions.iter().map(fold).collect()
}

struct Folding<'a> {
    /// How often each slot of the region is read.
    reads: &'a [usize],
}

impl Folding<'_> {
    fn steps(&self, steps: &[Step]) -> Vec<Step> {
        let inner = |steps: &[Step]| self.steps(steps);
        let mut steps: Vec<Option<Step>> = steps.iter().map(|step| Some(with_inner(step, &inner))).collect();
        self.fold_operands(&mut steps);
        self.fold_results(&mut steps);
        steps.into_iter().flatten().collect()
    }

    /// Products read the operands of transposes, where all that read the transpose can.
    fn fold_operands(&self, steps: &mut [Option<Step>]) {
        let products: Vec<usize> = (0..steps.len()).filter(|&at| Product::of(&steps[at]).is_some()).collect();
        for at in 0..steps.len() {
            if let Some(transpose) = Transpose::of(&steps[at])
                && let Some(folded) = self.reading(steps, &products, &transpose)
            {
                steps[at] = None;
                folded.into_iter().for_each(|(index, product)| steps[index] = Some(product.step()));
            }
        }
    }

    /// The products that read a transpose, as they read its operand in its place; `None` if one of them can't,
    /// or something else reads it.
    fn reading(
        &self,
        steps: &[Option<Step>],
        products: &[usize],
        transpose: &Transpose,
    ) -> Option<Vec<(usize, Product)>> {
        let slot = transpose.output.slot;
        let (mut folded, mut reads) = (Vec::new(), 0);
        for &index in products {
            let mut product = Product::of(&steps[index])?;
            let before = reads;
            for side in 0..2 {
                if product.inputs[side].place == Place::Slot(slot) {
                    product = product.reading(side, transpose)?;
                    reads += 1;
                }
            }
            if reads > before {
                folded.push((index, product));
            }
        }
        (reads > 0 && reads == self.reads[slot]).then_some(folded)
    }

    /// Products that only a transpose reads are computed transposed.
    fn fold_results(&self, steps: &mut [Option<Step>]) {
        let mut products: HashMap<Slot, usize> = HashMap::new();
        for index in 0..steps.len() {
            if let Some(product) = Product::of(&steps[index]) {
                products.insert(product.output.slot, index);
            } else if let Some(transpose) = Transpose::of(&steps[index])
                && let Place::Slot(slot) = transpose.input.place
                && self.reads[slot] == 1
                && let Some(&at) = products.get(&slot)
                && let Some(product) =
                    Product::of(&steps[at]).and_then(|product| product.transposed(&transpose))
            {
                steps[index] = Some(product.step());
                steps[at] = None;
            }
        }
    }
}

/// A transpose.
struct Transpose {
    axes: Shape,
    input: Operand,
    output: Target,
}

impl Transpose {
    fn of(step: &Option<Step>) -> Option<Self> {
        let Some(Step::Operation { operation: Operation::Transpose(axes), inputs, outputs }) = step else {
            return None;
        };
        let ([input], [output]) = (&inputs[..], &outputs[..]) else { return None };
        let is_valid = input.dtype == output.dtype
            && axes.len() == input.shape.len()
            && axes.iter().map(|&axis| input.shape.get(axis)).eq(output.shape.iter().map(Some));
        is_valid.then(|| Transpose { axes: axes.clone(), input: input.clone(), output: output.clone() })
    }
}

/// A product of matrices.
struct Product {
    /// The axes to sum over, of each operand.
    contract: [Shape; 2],
    /// The axes of the batch, of each operand.
    batch: [Shape; 2],
    inputs: [Operand; 2],
    output: Target,
    strategy: Strategy,
}

impl Product {
    /// The product of a step, if it is one that adds up each sum in the order of its terms.
    fn of(step: &Option<Step>) -> Option<Self> {
        let Some(Step::Operation { operation, inputs, outputs }) = step else { return None };
        let Operation::Dot { contract, batch } = operation else { return None };
        let ([left, right], [output]) = (&inputs[..], &outputs[..]) else { return None };
        // Axes that an operand hasn't are reported where the product runs.
        for (side, input) in inputs.iter().enumerate() {
            let axes = contract[side].iter().chain(&batch[side]);
            check_axes(operation.name(), axes, input.shape.len()).ok()?;
        }
        let size = |operand: &Operand, axes: &[usize]| -> Option<usize> {
            axes.iter().try_fold(1_usize, |size, &axis| size.checked_mul(*operand.shape.get(axis)?))
        };
        let [m, n] =
            [0, 1].map(|side| size(&inputs[side], &free(&inputs[side], &contract[side], &batch[side])));
        let sizes = [m?, size(left, &contract[0])?, n?];
        let strategy = Strategy::choose(output.dtype, [left.dtype, right.dtype], sizes)?;
        let (contract, batch) = (contract.clone(), batch.clone());
        let inputs = [left.clone(), right.clone()];
        let product = Product { contract, batch, inputs, output: output.clone(), strategy };
        product.adds_in_order().then_some(product)
    }

    fn adds_in_order(&self) -> bool {
        let adjacent = [0, 1].map(|side| {
            let (input, contract) = (&self.inputs[side], &self.contract[side]);
            let layout = Layout::contiguous(&input.shape);
            let stride = |axes: &[usize]| ops::dot::collapsed_stride(&layout, axes);
            match (stride(contract), stride(&free(input, contract, &self.batch[side]))) {
                (Some(stride), Some(_)) => stride == 1,
                // The operand is copied row by row.
                _ => side == 0,
            }
        });
        self.strategy.adds_in_order(adjacent)
    }

    fn step(self) -> Step {
        let Product { contract, batch, inputs, output, .. } = self;
        let operation = Operation::Dot { contract, batch };
        Step::Operation { operation, inputs: inputs.into(), outputs: vec![output] }
    }

    /// The product that reads the operand of a transpose in its place; `None` if its elements are not those
    /// of matrices then, with rows and columns at equal distances.
    fn reading(mut self, side: usize, transpose: &Transpose) -> Option<Self> {
        let Operand { dtype, shape, .. } = &self.inputs[side];
        if *dtype != transpose.output.dtype || *shape != transpose.output.shape {
            return None;
        }
        let rename = |axes: &[usize]| -> Option<Shape> {
            axes.iter().map(|&axis| transpose.axes.get(axis).copied()).collect()
        };
        let free = rename(&free(&self.inputs[side], &self.contract[side], &self.batch[side]))?;
        self.contract[side] = rename(&self.contract[side])?;
        self.batch[side] = rename(&self.batch[side])?;
        let are_adjacent = |axes: &[usize]| axes.windows(2).all(|pair| pair[1] == pair[0] + 1);
        self.inputs[side] = transpose.input.clone();
        (are_adjacent(&free) && are_adjacent(&self.contract[side]) && self.adds_in_order()).then_some(self)
    }

    /// The product that is a transpose of this one; `None` if it is not that of the matrices, or has other
    /// bits.
    fn transposed(mut self, transpose: &Transpose) -> Option<Self> {
        let batches = self.batch[0].len();
        let columns = batches + free(&self.inputs[0], &self.contract[0], &self.batch[0]).len();
        let axes = (0..batches).chain(columns..self.output.shape.len()).chain(batches..columns);
        let is_swap = transpose.axes.iter().copied().eq(axes) && transpose.input.shape == self.output.shape;
        if !is_swap || !self.strategy.commutes() {
            return None;
        }
        self.contract.swap(0, 1);
        self.batch.swap(0, 1);
        self.inputs.swap(0, 1);
        self.output = transpose.output.clone();
        self.adds_in_order().then_some(self)
    }
}

/// The axes of an operand that a product has after those of the batch.
fn free(operand: &Operand, contract: &[usize], batch: &[usize]) -> Shape {
    (0..operand.shape.len()).filter(|axis| !contract.contains(axis) && !batch.contains(axis)).collect()
}
