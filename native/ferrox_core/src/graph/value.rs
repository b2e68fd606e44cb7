//! The values of slots.

use std::sync::Arc;

/// The number of bytes up to which a value is kept in its slot.
pub(super) const MAX_SMALL_BYTES: usize = 16;

/// A value: the bytes of a tensor, in memory blocks of type `B` where a run has allocated them.
#[derive(Debug, Default)]
pub enum Value<B> {
    /// None yet, or no longer.
    #[default]
    Empty,
    /// An argument of the run, by its number.
    Argument(usize),
    /// A literal of the program, by its number.
    Literal(usize),
    /// A few bytes.
    Small {
        /// The number of bytes.
        length: u8,
        /// The bytes, and zeros.
        bytes: [u8; MAX_SMALL_BYTES],
    },
    /// A block, which several slots may share.
    Block(Arc<B>),
}

impl<B> Clone for Value<B> {
    #[inline]
    fn clone(&self) -> Self {
        match self {
            Value::Empty => Value::Empty,
            Value::Argument(index) => Value::Argument(*index),
            Value::Literal(index) => Value::Literal(*index),
            Value::Small { length, bytes } => Value::Small { length: *length, bytes: *bytes },
            Value::Block(block) => Value::Block(Arc::clone(block)),
        }
    }
}

impl<B: AsRef<[u8]>> Value<B> {
    /// A value of at most [`MAX_SMALL_BYTES`] bytes.
    pub(super) fn small(bytes: &[u8]) -> Self {
        let mut all = [0; MAX_SMALL_BYTES];
        all[..bytes.len()].copy_from_slice(bytes);
        Value::Small { length: bytes.len() as u8, bytes: all }
    }

    /// The bytes, given the arguments and literals; none of an empty slot.
    #[inline]
    pub fn bytes<'a>(&'a self, arguments: &[&'a [u8]], literals: &'a [Vec<u8>]) -> &'a [u8] {
        match self {
            Value::Empty => &[],
            Value::Argument(index) => arguments[*index],
            Value::Literal(index) => &literals[*index],
            Value::Small { length, bytes } => &bytes[..usize::from(*length)],
            Value::Block(block) => (**block).as_ref(),
        }
    }

    /// A value with the bytes of a block, which is kept if they are more than a few.
    pub(super) fn of(block: B) -> Self {
        if block.as_ref().len() <= MAX_SMALL_BYTES {
            return Value::small(block.as_ref());
        }
        Value::Block(Arc::new(block))
    }

    /// Whether the slot has no value.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Value::Empty)
    }
}
