//! What a program is built from.
//!
//! A region is a list of steps with slots of its own: a program's first region is the whole
//! function, others are the conditions and bodies of loops. Its parameters are in its first slots.
//! The branches of a condition belong to the region around them and write to its slots.

use smallvec::{SmallVec, smallvec};

use super::cluster::Cluster;
use super::operand::Memory;
pub use super::operand::{Operand, Place, Slot, Target};
use super::operation::Operation;
use crate::DType;
use crate::layout::Shape;

/// A step of a region.
#[derive(Clone, Debug)]
pub enum Step {
    /// An operation.
    Operation {
        /// The operation.
        operation: Operation,
        /// Its operands.
        inputs: Vec<Operand>,
        /// Its results.
        outputs: Vec<Target>,
    },
    /// The branch of the first clause whose predicate is not zero, else the last branch.
    Cond {
        /// The clauses.
        clauses: Vec<Clause>,
        /// The branch if every predicate is zero.
        otherwise: Branch,
        /// The slots of the results of the branch.
        outputs: Vec<Slot>,
    },
    /// Steps that run unless a slot has a value already, because an earlier branch computed it.
    Unless {
        /// The slot.
        computed: Slot,
        /// The steps, which give the slot its value.
        steps: Vec<Step>,
    },
    /// A loop: the values are passed to the region `condition`, and as long as its result is not
    /// zero to the region `body`, whose results take their place.
    While {
        /// The number of the region of the condition.
        condition: usize,
        /// The number of the region of the body.
        body: usize,
        /// The values at the start.
        initial: Vec<Operand>,
        /// The slots of the values at the end.
        outputs: Vec<Slot>,
    },
    /// The gradient of a loop.
    ReverseLoop(Box<ReverseLoop>),
    /// A fold of each row of a matrix from left to right: the region `body` is passed an element and
    /// the accumulator, and its result is the next accumulator.
    Fold {
        /// The number of the region of the body.
        body: usize,
        /// The rows, of shape `[results, elements of each]`.
        input: Operand,
        /// The accumulator at the start of each row.
        initial: Operand,
        /// The accumulators at the end of the rows.
        output: Target,
    },
    /// Operations that are computed together, which fusion makes of other steps.
    Cluster {
        /// The operations.
        cluster: Box<Cluster>,
        /// The results.
        outputs: Vec<Target>,
    },
    /// A pause in which the host computes something from values.
    Call {
        /// The host's number of the call.
        callback: usize,
        /// The values.
        inputs: Vec<Operand>,
        /// What the host gives.
        outputs: Vec<Target>,
    },
}

/// The gradient of a loop: its trips in reverse order, from the last one to the first. In each, the region
/// `backward` is passed the values that the loop had before the trip and the gradients, and its results
/// take the place of the gradients.
#[derive(Clone, Debug)]
pub struct ReverseLoop {
    /// The number of the region that computes the values after a trip from those before it.
    pub forward: usize,
    /// The number of the region that computes the gradients before a trip.
    pub backward: usize,
    /// The number of trips, a scalar integer. A negative one counts as zero.
    pub trips: Operand,
    /// The loop's values before its first trip.
    pub initial: Vec<Operand>,
    /// The gradients after the last trip.
    pub gradients: Vec<Operand>,
    /// Values that both regions are passed after the others.
    pub invariants: Vec<Operand>,
    /// The slots of the gradients before the first trip.
    pub outputs: Vec<Slot>,
}

impl ReverseLoop {
    /// The values that the loop reads.
    pub fn inputs(&self) -> impl Iterator<Item = &Operand> {
        let values = self.initial.iter().chain(&self.gradients).chain(&self.invariants);
        values.chain([&self.trips])
    }
}

/// A clause of a condition.
#[derive(Clone, Debug)]
pub struct Clause {
    /// The steps that compute the predicate.
    pub steps: Vec<Step>,
    /// The predicate, a scalar.
    pub predicate: Operand,
    /// The branch that it guards.
    pub branch: Branch,
}

/// A branch of a condition.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Its steps.
    pub steps: Vec<Step>,
    /// Its results.
    pub results: Vec<Operand>,
}

/// A region.
#[derive(Clone, Debug)]
pub struct Region {
    /// The types and shapes of its parameters, which are in the first slots.
    pub parameters: Vec<(DType, Shape)>,
    /// The number of slots.
    pub slots: usize,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Its results.
    pub results: Vec<Operand>,
}

/// A loop of a region, with what its regions refer to.
#[derive(Clone, Copy)]
pub(super) struct Loop<'a> {
    /// All regions of the program.
    pub(super) regions: &'a [Region],
    /// The literals of the program.
    pub(super) literals: &'a [Vec<u8>],
    /// The number of the region of the condition.
    pub(super) condition: usize,
    /// The number of the region of the body.
    pub(super) body: usize,
    /// The values at the start.
    pub(super) initial: &'a [Operand],
    /// The slots of the values at the end.
    pub(super) outputs: &'a [Slot],
    /// The memory of the values at the end.
    pub(super) memories: &'a [Memory],
}

/// Calls a function with each step, those of branches too.
pub(super) fn each(steps: &[Step], visit: &mut impl FnMut(&Step)) {
    for step in steps {
        visit(step);
        match step {
            Step::Cond { clauses, otherwise, .. } => {
                for Clause { steps, branch, .. } in clauses {
                    each(steps, visit);
                    each(&branch.steps, visit);
                }
                each(&otherwise.steps, visit);
            }
            Step::Unless { steps, .. } => each(steps, visit),
            _ => {}
        }
    }
}

/// The regions that a step runs.
pub(super) fn inner_regions(step: &Step) -> SmallVec<[usize; 2]> {
    match step {
        Step::While { condition, body, .. } => smallvec![*condition, *body],
        Step::ReverseLoop(reverse) => smallvec![reverse.forward, reverse.backward],
        Step::Fold { body, .. } => smallvec![*body],
        _ => smallvec![],
    }
}

/// For each region, the number of steps that run it, one that does so in two ways counted twice.
pub(super) fn owners(regions: &[Region]) -> Vec<usize> {
    let mut owners = vec![0; regions.len()];
    for region in regions {
        each(&region.steps, &mut |step| {
            inner_regions(step).iter().for_each(|&inner| owners[inner] += 1);
        });
    }
    owners
}

/// The step with other steps in its own lists, given those that are there.
pub(super) fn with_inner(step: &Step, steps_of: &dyn Fn(&[Step]) -> Vec<Step>) -> Step {
    let branch = |branch: &Branch| Branch { steps: steps_of(&branch.steps), ..branch.clone() };
    match step {
        Step::Cond { clauses, otherwise, outputs } => {
            let clauses = clauses.iter().map(|clause| Clause {
                steps: steps_of(&clause.steps),
                predicate: clause.predicate.clone(),
                branch: branch(&clause.branch),
            });
            let clauses = clauses.collect();
            Step::Cond { clauses, otherwise: branch(otherwise), outputs: outputs.clone() }
        }
        Step::Unless { computed, steps } => Step::Unless { computed: *computed, steps: steps_of(steps) },
        _ => step.clone(),
    }
}

/// How often each slot of a region is read.
pub(super) fn reads(region: &Region) -> Vec<usize> {
    reads_from(region, 0)
}

/// How often each slot of a region is read by the step with a number and those after it, and as a result.
pub(super) fn reads_from(region: &Region, first: usize) -> Vec<usize> {
    let mut reads = vec![0; region.slots];
    count_reads(&region.steps[first..], &mut reads);
    region.results.iter().for_each(|operand| count(operand, &mut reads));
    reads
}

fn count(operand: &Operand, reads: &mut [usize]) {
    if let Place::Slot(slot) = operand.place
        && let Some(reads) = reads.get_mut(slot)
    {
        *reads += 1;
    }
}

fn count_reads(steps: &[Step], reads: &mut [usize]) {
    let branch = |branch: &Branch, reads: &mut [usize]| {
        count_reads(&branch.steps, reads);
        branch.results.iter().for_each(|operand| count(operand, reads));
    };
    for step in steps {
        match step {
            Step::Operation { inputs, .. } | Step::Call { inputs, .. } => {
                inputs.iter().for_each(|operand| count(operand, reads));
            }
            Step::Cond { clauses, otherwise, .. } => {
                for Clause { steps, predicate, branch: body } in clauses {
                    count_reads(steps, reads);
                    count(predicate, reads);
                    branch(body, reads);
                }
                branch(otherwise, reads);
            }
            Step::Unless { computed, steps } => {
                reads[*computed] += 1;
                count_reads(steps, reads);
            }
            Step::While { initial, .. } => initial.iter().for_each(|operand| count(operand, reads)),
            Step::ReverseLoop(reverse) => reverse.inputs().for_each(|operand| count(operand, reads)),
            Step::Fold { input, initial, .. } => {
                count(input, reads);
                count(initial, reads);
            }
            Step::Cluster { cluster, .. } => {
                cluster.inputs.iter().for_each(|input| count(&input.operand, reads));
            }
        }
    }
}
