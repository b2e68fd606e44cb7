//! Views: values that only have elements of others, and that a cluster reads there instead of from memory of their own.
//!
//! Slices, transposes and reversals are layouts of their operand; concatenations and paddings are assembled. A view
//! is held back until something reads it that is no cluster, or that has to copy it where other readers will have to
//! as well; then it becomes a step.

use std::sync::Arc;

use smallvec::SmallVec;

use super::assembled::{Assembled, Part};
use super::operation::Operation;
use super::rows::{Extent, InputRows};
use super::source::{Operand, Place, Slot, Step, Target};
use crate::cost::MIN_CLUSTER_BYTES;
use crate::layout::{self, Layout, Shape};

/// The views that are held back.
#[derive(Clone, Default)]
pub(super) struct Views(Vec<View>);

/// A value that has elements of others.
#[derive(Clone)]
pub(super) struct View {
    operation: Operation,
    inputs: Vec<Operand>,
    output: Target,
    elements: Elements,
    /// How often it is still read.
    reads: usize,
}

/// The elements of a view.
#[derive(Clone)]
pub(super) enum Elements {
    /// Those that a layout gives of an operand.
    Of(Operand, Layout),
    /// Those of several operands.
    Assembled(Arc<Assembled>, Vec<Operand>),
}

impl View {
    /// The slot of the value.
    pub(super) fn slot(&self) -> Slot {
        self.output.slot
    }

    /// The elements.
    pub(super) fn elements(&self) -> &Elements {
        &self.elements
    }

    /// The operands of the operation.
    pub(super) fn inputs(&self) -> &[Operand] {
        &self.inputs
    }

    /// The operation as a step.
    pub(super) fn step(self) -> Step {
        Step::Operation { operation: self.operation, inputs: self.inputs, outputs: vec![self.output] }
    }

    /// Whether the elements are adjacent in an operand, so that they need not be copied.
    fn is_adjacent(&self) -> bool {
        match &self.elements {
            Elements::Of(_, layout) => layout.is_contiguous(),
            Elements::Assembled(..) => false,
        }
    }
}

impl Views {
    /// The view that an operation is, which is read `reads` times; `None` if it is better copied. Other values are only
    /// assembled if that `may_assemble`.
    pub(super) fn view(
        &self,
        (operation, inputs, outputs): (&Operation, &[Operand], &[Target]),
        reads: usize,
        may_assemble: bool,
    ) -> Option<View> {
        let [output] = outputs else { return None };
        if inputs.iter().any(|input| input.dtype != output.dtype || layout::size(&input.shape).is_none())
            || output.dtype.is_packed()
            || layout::size(&output.shape).is_none_or(|size| size < 2)
        {
            return None;
        }
        let elements = match (operation, inputs) {
            (Operation::Concatenate(_) | Operation::Pad(_), _) if may_assemble => {
                self.assembled(operation, inputs, output)?
            }
            // The columns of a large matrix are far apart: a transpose by tiles is faster than gathering them.
            (Operation::Transpose(axes), _) if axes.last().is_some_and(|&last| last + 1 != axes.len()) => {
                return None;
            }
            (_, [input]) => {
                let layout = operation.view(&input.shape).filter(|layout| layout.shape == output.shape)?;
                Elements::Of(input.clone(), layout)
            }
            _ => return None,
        };
        let (operation, inputs, output) = (operation.clone(), inputs.to_vec(), output.clone());
        Some(View { operation, inputs, output, elements, reads })
    }

    /// The elements of a concatenation or a padding, where those of its operands are. `None` if these don't make up the
    /// result.
    fn assembled(&self, operation: &Operation, inputs: &[Operand], output: &Target) -> Option<Elements> {
        let (width, rank) = (output.dtype.width(), output.shape.len());
        if layout::size(&output.shape)?.checked_mul(width)? < MIN_CLUSTER_BYTES {
            return None;
        }
        let mut starts = Shape::from_elem(0, rank);
        let (mut sources, mut parts) = (Vec::new(), SmallVec::new());
        let mut add = |input: &Operand, starts: &[usize], shape: &[usize]| {
            let (source, layout) = match self.read_through(input) {
                Some((source, layout)) => (source, layout.clone()),
                None => (input, Layout::contiguous(&input.shape)),
            };
            let layout = layout.broadcast_right(shape)?;
            if layout.size() > 0 {
                parts.push(Part::new(sources.len(), starts.into(), layout));
                sources.push(source.clone());
            }
            Some(())
        };
        match (operation, inputs) {
            (&Operation::Concatenate(axis), _) => {
                for input in inputs {
                    let others = (0..rank).filter(|&other| other != axis);
                    if input.shape.len() != rank
                        || others.clone().any(|other| input.shape[other] != output.shape[other])
                    {
                        return None;
                    }
                    add(input, &starts, &input.shape)?;
                    *starts.get_mut(axis)? += *input.shape.get(axis)?;
                }
                if starts.get(axis) != output.shape.get(axis) {
                    return None;
                }
            }
            (Operation::Pad(padding), [input, number]) => {
                if [input.shape.len(), padding.len()] != [rank; 2] || layout::size(&number.shape) != Some(1) {
                    return None;
                }
                for (axis, (start, padding)) in starts.iter_mut().zip(padding).enumerate() {
                    let [low, high] = [padding.low, padding.high].map(usize::try_from);
                    let (low, high) = (low.ok()?, high.ok()?);
                    let size = input.shape[axis].checked_add(low)?.checked_add(high)?;
                    if padding.interior > 0 || size != output.shape[axis] {
                        return None;
                    }
                    *start = low;
                }
                add(number, &Shape::from_elem(0, rank), &output.shape)?;
                add(input, &starts, &input.shape)?;
            }
            _ => return None,
        }
        let assembled = Assembled::new(&output.shape, width, parts)?;
        Some(Elements::Assembled(Arc::new(assembled), sources))
    }

    /// The operand of the view that gives an operand its value, and its elements there, if others can be assembled from
    /// these.
    pub(super) fn read_through(&self, operand: &Operand) -> Option<(&Operand, &Layout)> {
        match self.of(operand)?.elements() {
            Elements::Of(source, layout) if layout.shape == operand.shape => Some((source, layout)),
            _ => None,
        }
    }

    /// Holds a view back.
    pub(super) fn push(&mut self, view: View) {
        self.0.push(view);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The view that gives an operand its value, if one does.
    pub(super) fn of(&self, operand: &Operand) -> Option<&View> {
        self.0.iter().find(|view| operand.place == Place::Slot(view.slot()))
    }

    /// Whether a view gives a slot its value.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.0.iter().any(|view| view.slot() == slot)
    }

    /// The rows of an operand of an operation whose shape is that of its rows: what belongs to a row, and where it is
    /// unless all rows read the same. `None` if the elements of a row would have to be copied.
    pub(super) fn rows(
        &self,
        operand: &Operand,
        shape: &[usize],
        leading: usize,
    ) -> Option<(Extent, Option<InputRows>)> {
        let width = operand.dtype.width();
        let layout = match self.of(operand) {
            None => Layout::contiguous(&operand.shape),
            Some(view) if view.output.dtype.width() != width => return None,
            Some(View { elements: Elements::Of(_, layout), .. }) => layout.reshape(&operand.shape)?,
            Some(View { elements: Elements::Assembled(..), .. }) => {
                // Its elements are in the order of the shape if none is repeated.
                let size = layout::size(&operand.shape);
                let rows = shape[..leading].iter().product();
                let row_bytes = shape[leading..].iter().product::<usize>() * width;
                return (size == layout::size(shape))
                    .then(|| (Extent::Row, Some(InputRows::gathered(row_bytes, rows))));
            }
        };
        InputRows::of(&layout, shape, leading, width)
    }

    /// Takes the views that a cluster reads in their operands, given how often it reads each slot, and those that have
    /// to become steps before it.
    pub(super) fn read_by(&mut self, reads: impl Fn(Slot) -> usize) -> (Views, Vec<Slot>) {
        let (mut in_place, mut steps) = (Views::default(), Vec::new());
        for view in &self.0 {
            match reads(view.slot()) {
                0 => {}
                count if count >= view.reads || view.is_adjacent() => in_place.push(view.clone()),
                _ => steps.push(view.slot()),
            }
        }
        (in_place, steps)
    }

    /// Notes that a cluster has read a view in its operands.
    pub(super) fn release(&mut self, slot: Slot, count: usize) {
        let Some(index) = self.0.iter().position(|view| view.slot() == slot) else { return };
        self.0[index].reads = self.0[index].reads.saturating_sub(count);
        if self.0[index].reads == 0 {
            for input in self.0.remove(index).inputs {
                if let Place::Slot(slot) = input.place {
                    self.release(slot, 1);
                }
            }
        }
    }

    /// Takes a view.
    pub(super) fn take(&mut self, slot: Slot) -> Option<View> {
        let index = self.0.iter().position(|view| view.slot() == slot)?;
        Some(self.0.remove(index))
    }

    /// The slots of all views, in order.
    pub(super) fn slots(&self) -> Vec<Slot> {
        self.0.iter().map(View::slot).collect()
    }
}
