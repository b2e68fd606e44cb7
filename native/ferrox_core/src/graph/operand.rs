//! The slots of regions, and what steps read from them and write to them.

use crate::DType;
use crate::layout::Shape;

/// The number of a slot of a region.
pub type Slot = usize;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a slot of the region.
    Slot(Slot),
    /// Among the literals of the program.
    Literal(usize),
}

/// A value that a step reads, with the type and shape that it is read with.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Where the value is.
    pub place: Place,
    /// The type of its elements.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
}

/// A slot that a step writes, with the type and shape of the value.
#[derive(Clone, Debug)]
pub struct Target {
    /// The slot.
    pub slot: Slot,
    /// The type of its elements.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
}

/// The memory of a result.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) slot: Slot,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) bytes: usize,
    /// Whether the value becomes a result of the program.
    pub(super) is_result: bool,
}

/// The number of bytes of a number that is kept in a register.
pub(super) const REGISTER_BYTES: usize = 8;
