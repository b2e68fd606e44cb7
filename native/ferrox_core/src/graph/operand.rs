//! The slots of regions, and what steps read from them and write to them.

use crate::cost::{self, MIN_NEW_MEMORY_BYTES, RESULT_BYTE_COST, Work};
use crate::layout::Shape;
use crate::{DType, Error};

/// The number of a slot of a region.
pub type Slot = usize;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

impl Memory {
    /// The work of the system, which provides large memory page by page.
    pub(super) fn work(&self) -> Work {
        if self.bytes < MIN_NEW_MEMORY_BYTES { 0 } else { cost::work(self.bytes, RESULT_BYTE_COST) }
    }

    /// The error of an operation without memory for this result.
    #[cold]
    pub(super) fn refused(&self, op: &'static str) -> Error {
        Error::TooLarge { op, dtype: self.dtype, shape: self.shape.to_vec() }
    }
}

/// The number of bytes of a number that is kept in a register.
pub(super) const REGISTER_BYTES: usize = 8;

/// The bytes of a number as a word, with zeros after them.
///
/// The bytes are read at once: a processor that has just written a part of what it reads waits until all that
/// it wrote before is in the cache.
#[inline]
pub(super) fn word(bytes: &[u8]) -> u64 {
    let low = match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().take(REGISTER_BYTES).rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    u64::from_ne_bytes(low.to_le_bytes())
}

/// An integer of `width` bytes in a word as an index, zero if it is negative.
#[inline]
pub(super) fn integer(word: u64, is_signed: bool, width: u8) -> usize {
    // The first bytes of the word as its low bits.
    let value = u64::from_le_bytes(word.to_ne_bytes());
    let bits = 64 - 8 * u32::from(width);
    let value = if cfg!(target_endian = "little") { value } else { value.swap_bytes() >> bits };
    if is_signed && (value << bits) as i64 >> bits < 0 {
        return 0;
    }
    usize::try_from(value).unwrap_or(usize::MAX)
}
