//! Where the values of a region die: after which step a slot is read for the last time.
//!
//! Steps are in blocks: the region's own list, and inside of a step the lists of its branches. A
//! value dies after the last step that reads or writes its slot, in the innermost block around all
//! of these steps. So a value that a branch reads dies after the whole condition, whichever branch is
//! taken, and what only one branch needs dies inside of it.

use super::source::{Branch, Clause, Operand, Place, Region, Slot, Step};

/// The number of a block, in the order in which [`super::program`] comes to them.
pub(super) type Block = usize;

/// A step: its block, and its number there.
type Position = (Block, usize);

/// The number of the step after which a block has ended.
const END: usize = usize::MAX;

/// The slots that die after each step.
pub(super) struct Deaths(Vec<(Position, Slot)>);

impl Deaths {
    /// Finds where the slots of a region die. Results don't, and parameters only if they aren't kept.
    pub(super) fn of(region: &Region, keeps_parameters: bool) -> Self {
        let mut walk = Walk { parents: vec![(0, 0)], last: vec![None; region.slots] };
        for slot in 0..region.parameters.len().min(region.slots) {
            walk.last[slot] = Some((0, if keeps_parameters { END } else { 0 }));
        }
        walk.steps(0, &region.steps);
        walk.operands(&region.results, (0, END));
        let positions = walk.last.into_iter().enumerate();
        let mut deaths: Vec<_> = positions.filter_map(|(slot, at)| Some((at?, slot))).collect();
        deaths.sort_unstable();
        Deaths(deaths)
    }

    /// The slots that die after a step.
    pub(super) fn after(&self, position: Position) -> impl Iterator<Item = Slot> {
        let start = self.0.partition_point(|death| death.0 < position);
        self.0[start..].iter().take_while(move |death| death.0 == position).map(|death| death.1)
    }
}

struct Walk {
    /// The step around each block.
    parents: Vec<Position>,
    /// The last step so far that reads or writes each slot, in the innermost common block.
    last: Vec<Option<Position>>,
}

impl Walk {
    fn block(&mut self, around: Position) -> Block {
        self.parents.push(around);
        self.parents.len() - 1
    }

    fn note(&mut self, slot: Slot, at: Position) {
        if let Some(last) = self.last.get(slot) {
            let position = last.map_or(at, |last| self.join(last, at));
            self.last[slot] = Some(position);
        }
    }

    /// The later of two steps in their innermost common block. A block has a higher number than the
    /// block around it.
    fn join(&self, mut a: Position, mut b: Position) -> Position {
        while a.0 != b.0 {
            if a.0 > b.0 {
                a = self.parents[a.0];
            } else {
                b = self.parents[b.0];
            }
        }
        a.max(b)
    }

    fn operands(&mut self, operands: &[Operand], at: Position) {
        operands.iter().for_each(|operand| self.operand(operand, at));
    }

    fn operand(&mut self, operand: &Operand, at: Position) {
        if let Place::Slot(slot) = operand.place {
            self.note(slot, at);
        }
    }

    fn branch(&mut self, branch: &Branch, around: Position) {
        let block = self.block(around);
        self.steps(block, &branch.steps);
        self.operands(&branch.results, (block, branch.steps.len()));
    }

    fn steps(&mut self, block: Block, steps: &[Step]) {
        for (index, step) in steps.iter().enumerate() {
            let at = (block, index);
            match step {
                Step::Operation { inputs, outputs, .. } | Step::Call { inputs, outputs, .. } => {
                    self.operands(inputs, at);
                    outputs.iter().for_each(|output| self.note(output.slot, at));
                }
                Step::Cluster { cluster, outputs } => {
                    cluster.inputs.iter().for_each(|input| self.operand(&input.operand, at));
                    outputs.iter().for_each(|output| self.note(output.slot, at));
                }
                Step::Cond { clauses, otherwise, outputs } => {
                    for Clause { steps, predicate, branch } in clauses {
                        let inner = self.block(at);
                        self.steps(inner, steps);
                        self.operand(predicate, at);
                        self.branch(branch, at);
                    }
                    self.branch(otherwise, at);
                    outputs.iter().for_each(|&slot| self.note(slot, at));
                }
                Step::Unless { computed, steps } => {
                    let inner = self.block(at);
                    self.steps(inner, steps);
                    self.note(*computed, at);
                }
                Step::While { initial, outputs, .. } => {
                    self.operands(initial, at);
                    outputs.iter().for_each(|&slot| self.note(slot, at));
                }
                Step::ReverseLoop(reverse) => {
                    reverse.inputs().for_each(|operand| self.operand(operand, at));
                    reverse.outputs.iter().for_each(|&slot| self.note(slot, at));
                }
                Step::Fold { input, initial, output, .. } => {
                    self.operand(input, at);
                    self.operand(initial, at);
                    self.note(output.slot, at);
                }
            }
        }
    }
}
