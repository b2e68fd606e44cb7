//! Products of vectors with a matrix that a loop leaves as it is.
//!
//! Problem: a linear model is trained by products of one matrix, whose rows are short, with a vector in each trip. To
//! add up short rows side by side, each product transposes them. Technique: the matrix is transposed once, before the
//! loop, which carries both; products of a vector and columns have the same bits (`exec::gemm::gemv`).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use smallvec::smallvec;

use super::branch_slots::{Access, operands, visit};
use super::operand::{Operand, Place, Slot, Target};
use super::operation::Operation;
use super::source::{Region, Step, owners, with_inner};
use crate::DType;
use crate::exec::gemm::gemv;
use crate::exec::gemm::strategy::{Method, Strategy};
use crate::layout::Shape;

/// The regions, with matrices of loops transposed before these.
pub(super) fn transpose_before_loops(mut regions: Vec<Region>) -> Vec<Region> {
    let owners = owners(&regions);
    for number in 0..regions.len() {
        let steps = std::mem::take(&mut regions[number].steps);
        let slots = regions[number].slots;
        let mut transposing = Transposing { slots, owners: &owners, regions: &mut regions };
        let steps = transposing.steps(steps);
        let slots = transposing.slots;
        (regions[number].steps, regions[number].slots) = (steps, slots);
    }
    regions
}

struct Transposing<'a> {
    /// The number of slots of the region around the loops.
    slots: usize,
    /// For each region, the number of steps that run it.
    owners: &'a [usize],
    regions: &'a mut [Region],
}

impl Transposing<'_> {
    fn steps(&mut self, steps: Vec<Step>) -> Vec<Step> {
        let mut all = Vec::with_capacity(steps.len());
        for step in steps {
            let step = match step {
                Step::While { condition, body, mut initial, mut outputs } => {
                    if [condition, body].iter().all(|&inner| self.owners[inner] == 1) {
                        all.extend(self.before([condition, body], &mut initial, &mut outputs));
                    }
                    Step::While { condition, body, initial, outputs }
                }
                step @ (Step::Cond { .. } | Step::Unless { .. }) => {
                    let this = RefCell::new(&mut *self);
                    with_inner(&step, &|steps| this.borrow_mut().steps(steps.to_vec()))
                }
                step => step,
            };
            all.push(step);
        }
        all
    }

    /// Has a loop carry the transposed matrices that its products read, and returns the steps that transpose them.
    fn before(
        &mut self,
        [condition, body]: [usize; 2],
        initial: &mut Vec<Operand>,
        outputs: &mut Vec<Slot>,
    ) -> Vec<Step> {
        let matrices = matrices(&self.regions[body]);
        if matrices.is_empty() {
            return Vec::new();
        }
        let mut steps = Vec::with_capacity(matrices.len());
        let mut added = Vec::with_capacity(matrices.len());
        // The columns of each matrix, as an operand in the body.
        let mut transposed: BTreeMap<Slot, Operand> = BTreeMap::new();
        for slot in matrices {
            let (dtype, rows) = self.regions[body].parameters[slot].clone();
            let shape: Shape = rows.iter().copied().rev().collect();
            let columns = |slot| Operand { place: Place::Slot(slot), dtype, shape: shape.clone() };
            transposed.insert(slot, columns(initial.len()));
            steps.push(Step::Operation {
                operation: Operation::Transpose(smallvec![1, 0]),
                inputs: vec![Operand { shape: rows, ..initial[slot].clone() }],
                outputs: vec![Target { slot: self.slots, dtype, shape: shape.clone() }],
            });
            initial.push(columns(self.slots));
            outputs.push(self.slots + 1);
            self.slots += 2;
            added.push((dtype, shape));
        }
        for number in [condition, body] {
            add_parameters(&mut self.regions[number], &added);
        }
        let body = &mut self.regions[body];
        for step in &mut body.steps {
            if let Some(slot) = matrix(step, &body.parameters)
                && let Some(columns) = transposed.get(&slot)
                && let Step::Operation { operation: Operation::Dot { contract, .. }, inputs, .. } = step
            {
                inputs[0] = columns.clone();
                contract[0] = smallvec![0];
            }
        }
        body.results.extend(transposed.into_values());
        steps
    }
}

/// Adds parameters after the others.
fn add_parameters(region: &mut Region, added: &[(DType, Shape)]) {
    let before = region.parameters.len();
    let mut renumber = |slot: &mut Slot, _: Access| {
        if *slot >= before {
            *slot += added.len();
        }
    };
    visit(&mut region.steps, &mut renumber);
    operands(&mut region.results, &mut renumber);
    region.slots += added.len();
    region.parameters.extend(added.iter().cloned());
}

/// The parameters of a body that stay as they are, and that are multiplied with vectors as matrices of short rows.
fn matrices(body: &Region) -> BTreeSet<Slot> {
    let stays = |&slot: &Slot| {
        let (dtype, shape) = &body.parameters[slot];
        let stays = body.results.get(slot).is_some_and(|result| {
            result.place == Place::Slot(slot) && result.dtype == *dtype && result.shape == *shape
        });
        stays && matches!(shape[..], [rows, columns] if has_short_rows(*dtype, [rows, columns]))
    };
    body.steps.iter().filter_map(|step| matrix(step, &body.parameters)).filter(stays).collect()
}

/// The parameter that is the matrix, if a step multiplies one, row by row, with a vector.
fn matrix(step: &Step, parameters: &[(DType, Shape)]) -> Option<Slot> {
    let Step::Operation { operation: Operation::Dot { contract, batch }, inputs, outputs } = step else {
        return None;
    };
    let ([matrix, vector], [output]) = (&inputs[..], &outputs[..]) else { return None };
    let Place::Slot(slot) = matrix.place else { return None };
    let is_product = (matrix.shape.len(), vector.shape.len()) == (2, 1)
        && (&contract[0][..], &contract[1][..]) == (&[1], &[0])
        && batch.iter().all(|axes| axes.is_empty())
        && [vector.dtype, output.dtype] == [matrix.dtype; 2]
        && parameters.get(slot).is_some_and(|parameter| *parameter == (matrix.dtype, matrix.shape.clone()));
    is_product.then_some(slot)
}

/// Whether the product of a matrix of some type and sizes with a vector takes more time than, and has the bits of, that
/// of the vector with the columns.
fn has_short_rows(dtype: DType, [rows, columns]: [usize; 2]) -> bool {
    let reads_each_once = |strategy: Strategy| {
        strategy.method == Method::MatrixVector && strategy.reads == [dtype; 2] && strategy.lane == dtype
    };
    dtype.is_float()
        && gemv::has_bits_of_columns([rows, columns])
        && Strategy::choose(dtype, [dtype; 2], [rows, columns, 1]).is_some_and(reads_each_once)
}
