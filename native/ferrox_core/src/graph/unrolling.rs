//! Loop unrolling: a loop of a few trips, whose number is known when the program is made, becomes the steps of
//! its trips.
//!
//! Its operations can be in one cluster then, also with those around the loop, and a loop around it can be one
//! over rows (`row_loop`). So the rounds of a random number generator are computed for some rows at a time.

use super::constants::Folding;
use super::fusion::MAX_MEMBERS;
use super::operand::{Operand, Place, Slot, Target};
use super::source::{Region, Step};
use crate::DType;
use crate::cost::MIN_CLUSTER_BYTES;
use crate::tensor::byte_size;

/// The maximum number of trips of a loop that is written out.
pub(super) const MAX_UNROLLED_TRIPS: usize = 32;

impl Folding<'_> {
    /// The steps of all trips of a loop, one trip after the other, if they are few. Its results are known
    /// then.
    pub(super) fn unrolled(
        &mut self,
        [condition, body]: [usize; 2],
        initial: &[Operand],
        outputs: &[Slot],
    ) -> Option<Vec<Step>> {
        let [condition, body] = [self.regions.get(condition)?, self.regions.get(body)?];
        // Loops over small arrays are another kind (`small_loop`).
        let is_large = |value: &Operand| {
            byte_size("while", value.dtype, &value.shape).is_ok_and(|bytes| bytes >= MIN_CLUSTER_BYTES)
        };
        if !initial.iter().any(is_large) || outputs.iter().any(|slot| self.guarded.contains(slot)) {
            return None;
        }
        let before = (self.literals.len(), self.slots);
        let trips = self.trips(condition, body, self.operands(initial));
        match &trips {
            Some((_, values)) => {
                let places = values.iter().map(|value| value.place);
                self.known.extend(outputs.iter().copied().zip(places));
            }
            // What is known of its slots is not of those that get their numbers next.
            None => {
                self.literals.truncate(before.0);
                self.slots = before.1;
                self.known.retain(|&slot, _| slot < before.1);
            }
        }
        trips.map(|(steps, _)| steps)
    }

    /// The steps of all trips, and the values after the last one.
    fn trips(
        &mut self,
        condition: &Region,
        body: &Region,
        mut values: Vec<Operand>,
    ) -> Option<(Vec<Step>, Vec<Operand>)> {
        let mut steps = Vec::new();
        for _ in 0..=MAX_UNROLLED_TRIPS {
            let predicate = self.written_out(condition, &values, &mut Vec::new())?;
            let [Operand { place: Place::Literal(literal), dtype: DType::U8, .. }] = predicate[..] else {
                return None;
            };
            if self.literals.get(literal)?.iter().all(|&byte| byte == 0) {
                return Some((steps, values));
            }
            values = self.written_out(body, &values, &mut steps)?;
            // A cluster has no more.
            if steps.len() > MAX_MEMBERS {
                return None;
            }
        }
        None
    }

    /// Adds the steps of a region to others, with these values for its parameters; returns its results.
    fn written_out(
        &mut self,
        region: &Region,
        values: &[Operand],
        to: &mut Vec<Step>,
    ) -> Option<Vec<Operand>> {
        // The slot of the region around for each slot that isn't a parameter.
        let mut slots: Vec<Option<Slot>> = vec![None; region.slots];
        for step in &region.steps {
            let Step::Operation { operation, inputs, outputs } = step else { return None };
            let inputs = inputs.iter().map(|input| self.renamed(input, values, &slots));
            let inputs = inputs.collect::<Option<Vec<_>>>()?;
            let mut targets = Vec::with_capacity(outputs.len());
            for output in outputs {
                *slots.get_mut(output.slot)? = Some(self.slots);
                targets.push(Target { slot: self.slots, ..output.clone() });
                self.slots += 1;
            }
            to.extend(self.operation(operation, inputs, targets));
        }
        region.results.iter().map(|result| self.renamed(result, values, &slots)).collect()
    }

    /// A value of a region that is written out, as one of the region around.
    fn renamed(&self, operand: &Operand, values: &[Operand], slots: &[Option<Slot>]) -> Option<Operand> {
        let place = match operand.place {
            Place::Slot(slot) => match values.get(slot) {
                Some(value) => value.place,
                None => Place::Slot((*slots.get(slot)?)?),
            },
            literal => literal,
        };
        Some(self.operand(&Operand { place, ..operand.clone() }))
    }
}
