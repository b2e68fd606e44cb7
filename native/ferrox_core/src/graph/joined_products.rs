//! Products join clusters: a product that only a cluster reads, and one that reads a result of a cluster which
//! nothing else does, become products of the cluster's rows, if that is faster.
//!
//! Technique: a product goes before the cluster that reads it, and one that reads a cluster has to be the next
//! step. `cluster::products` computes them.

use super::cluster::products::Product;
use super::cluster::{Cluster, Input};
use super::operand::{Operand, Place, Slot, Target};
use super::rows::InputRows;
use super::source::{Region, Step, reads, with_inner};

/// The region with products in its clusters.
pub(super) fn join(region: &Region) -> Region {
    let reads = reads(region);
    let steps = Joining { reads: &reads }.steps(&region.steps);
    Region { steps, ..region.clone() }
}

struct Joining<'a> {
    /// How often each slot of the region is read.
    reads: &'a [usize],
}

impl Joining<'_> {
    fn steps(&self, steps: &[Step]) -> Vec<Step> {
        let inner = |steps: &[Step]| self.steps(steps);
        let mut steps: Vec<Option<Step>> = steps.iter().map(|step| Some(with_inner(step, &inner))).collect();
        for at in 0..steps.len() {
            let (before, from) = steps.split_at_mut(at);
            let [Some(Step::Cluster { cluster, outputs }), after @ ..] = from else { continue };
            for input in 0..cluster.inputs.len() {
                self.join_input(cluster, input, before);
            }
            if let Some(next) = after.first_mut() {
                self.join_result(cluster, outputs, next);
            }
        }
        steps.into_iter().flatten().collect()
    }

    /// Joins the product among the steps before a cluster that only an input of it reads.
    fn join_input(&self, cluster: &mut Cluster, input: usize, before: &mut [Option<Step>]) {
        let Input { operand: Operand { place: Place::Slot(slot), .. }, rows: Some(rows), .. } =
            &cluster.inputs[input]
        else {
            return;
        };
        let Some(step) = before.iter_mut().rev().find(|step| writes(step, *slot)) else { return };
        let Some(Step::Operation { operation, inputs, outputs }) = step else { return };
        let right = cluster.inputs.len();
        let Some(product) = Product::of(operation, inputs, outputs, cluster.rows, right) else { return };
        if self.reads[*slot] != 1 || *rows != InputRows::adjacent(product.row_bytes(), cluster.rows) {
            return;
        }
        let mut joined = cluster.clone();
        joined.cost = joined.cost.saturating_add(product.cost());
        joined.inputs[input].operand = inputs[0].clone();
        joined.inputs[input].product = Some(Box::new(product));
        joined.inputs.push(Input::whole(inputs[1].clone()));
        if joined.products_fit() {
            *cluster = joined;
            *step = None;
        }
    }

    /// Joins the step after a cluster, if it is a product that reads a result of the cluster, which nothing else
    /// reads.
    fn join_result(&self, cluster: &mut Cluster, outputs: &mut [Target], next: &mut Option<Step>) {
        let Some(Step::Operation { operation, inputs, outputs: targets }) = next else { return };
        let ([left, right], [target]) = (&inputs[..], &targets[..]) else { return };
        let is_left = |output: &Target| left.place == Place::Slot(output.slot);
        let Some(result) = outputs.iter().position(is_left) else { return };
        let is_there = outputs.iter().all(|output| right.place != Place::Slot(output.slot));
        let Some(product) = Product::of(operation, inputs, targets, cluster.rows, cluster.inputs.len())
        else {
            return;
        };
        if !is_there
            || self.reads[outputs[result].slot] != 1
            || cluster.outputs.get(result) != Some(&product.left_row_bytes())
        {
            return;
        }
        let mut joined = cluster.clone();
        joined.cost = joined.cost.saturating_add(product.cost());
        joined.product = Some((result, Box::new(product)));
        joined.inputs.push(Input::whole(right.clone()));
        if joined.products_fit() {
            *cluster = joined;
            outputs[result] = target.clone();
            *next = None;
        }
    }
}

/// Whether a step is an operation that writes a slot.
fn writes(step: &Option<Step>, slot: Slot) -> bool {
    match step {
        Some(Step::Operation { outputs, .. }) => outputs.iter().any(|output| output.slot == slot),
        _ => false,
    }
}
