//! What must hold of the regions of a program before anything else reads them: that they have the slots
//! that steps write, and no more than can have a value, that parameters are not written, that steps for
//! when a slot has no value give it one, and that loops lead to later regions.
//!
//! The rest is checked where regions are ordered into instructions ([`super::program`]).

use super::source::{Branch, Clause, Region, Slot, Step, each};
use crate::Error;

/// The name of programs in errors.
pub(super) const OP: &str = "program";

/// The error of what is no program.
#[cold]
pub(super) fn invalid(problem: impl Into<String>) -> Error {
    Error::Argument { op: OP, problem: problem.into() }
}

/// Checks the slots and the loops of all regions.
pub(super) fn check(regions: &[Region]) -> Result<(), Error> {
    if regions.is_empty() {
        return Err(invalid("has no region"));
    }
    for (number, region) in regions.iter().enumerate() {
        let parameters = region.parameters.len();
        let mut walk = Walk { number, regions: regions.len(), parameters, slots: region.slots, written: 0 };
        walk.steps(&region.steps)?;
        if region.parameters.len() > region.slots {
            return Err(invalid("has more parameters than slots"));
        }
        // Memory for a slot is allocated before anything is written to it.
        if region.slots - region.parameters.len() > walk.written {
            return Err(invalid(format!("has {} slots, more than it writes", region.slots)));
        }
    }
    Ok(())
}

struct Walk {
    /// The number of the region.
    number: usize,
    /// The number of all regions.
    regions: usize,
    parameters: usize,
    slots: usize,
    /// How often a slot is written, at most.
    written: usize,
}

impl Walk {
    fn written(&mut self, slot: Slot) -> Result<(), Error> {
        self.written += 1;
        if slot < self.parameters {
            return Err(invalid(format!("slot {slot} is a parameter's, and is written")));
        }
        self.slot(slot)
    }

    fn slot(&self, slot: Slot) -> Result<(), Error> {
        if slot < self.slots { Ok(()) } else { Err(invalid(format!("there is no slot {slot}"))) }
    }

    /// A region that a step runs. It comes later, so that regions don't run themselves.
    fn inner(&self, region: usize) -> Result<(), Error> {
        if region >= self.regions {
            return Err(invalid(format!("there is no region {region}")));
        }
        if region <= self.number {
            return Err(invalid(format!(
                "region {} runs region {region}, which is not after it",
                self.number
            )));
        }
        Ok(())
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), Error> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Operation { outputs, .. } | Step::Call { outputs, .. } | Step::Cluster { outputs, .. } => {
                outputs.iter().try_for_each(|output| self.written(output.slot))
            }
            Step::Cond { clauses, otherwise: Branch { steps, .. }, outputs } => {
                for Clause { steps, branch, .. } in clauses {
                    self.steps(steps)?;
                    self.steps(&branch.steps)?;
                }
                self.steps(steps)?;
                outputs.iter().try_for_each(|&slot| self.written(slot))
            }
            Step::Unless { computed, steps } => {
                self.slot(*computed)?;
                if !writes(steps, *computed) {
                    return Err(invalid(format!(
                        "steps for when slot {computed} has no value don't write it"
                    )));
                }
                self.steps(steps)
            }
            Step::While { condition, body, outputs, .. } => {
                self.inner(*condition)?;
                self.inner(*body)?;
                outputs.iter().try_for_each(|&slot| self.written(slot))
            }
            Step::ReverseLoop(reverse) => {
                self.inner(reverse.forward)?;
                self.inner(reverse.backward)?;
                reverse.outputs.iter().try_for_each(|&slot| self.written(slot))
            }
            Step::Fold { body, output, .. } => {
                self.inner(*body)?;
                self.written(output.slot)
            }
        }
    }
}

/// Whether steps, or those of their branches, write a slot.
fn writes(steps: &[Step], slot: Slot) -> bool {
    let mut writes = false;
    each(steps, &mut |step| {
        writes |= match step {
            Step::Operation { outputs, .. } | Step::Call { outputs, .. } | Step::Cluster { outputs, .. } => {
                outputs.iter().any(|output| output.slot == slot)
            }
            Step::Cond { outputs, .. } | Step::While { outputs, .. } => outputs.contains(&slot),
            Step::ReverseLoop(reverse) => reverse.outputs.contains(&slot),
            Step::Fold { output, .. } => output.slot == slot,
            Step::Unless { .. } => false,
        };
    });
    writes
}
