//! Where the values of a block of rows are.

use smallvec::SmallVec;

use super::{Register, misplaced};
use crate::Error;
use crate::exec::memory::streaming_stores;

/// Where the values of a block are.
pub(super) struct Registers<'a> {
    pub(super) inputs: SmallVec<[BlockInput<'a>; 8]>,
    pub(super) buffers: SmallVec<[&'a mut [u8]; 16]>,
    pub(super) outputs: SmallVec<[Rows<'a>; 4]>,
}

impl<'a> Registers<'a> {
    /// The bytes of a value from the first row of the block on.
    #[inline]
    pub(super) fn bytes(&self, register: Register) -> &[u8] {
        match register {
            Register::Input(index) => match &self.inputs[index] {
                BlockInput::Overwritten(output) => &*self.outputs[*output].rest,
                input => input.bytes(),
            },
            Register::Buffer(index) => &*self.buffers[index],
            Register::Output(index) => self.outputs[index].bytes(),
        }
    }

    /// The result that is written over an input without a copy.
    pub(super) fn overwriting(&self, register: Register) -> Option<Register> {
        let Register::Input(index) = register else { return None };
        match self.inputs.get(index)? {
            &BlockInput::Overwritten(output) if self.outputs[output].stage.is_none() => {
                Some(Register::Output(output))
            }
            _ => None,
        }
    }

    /// What is read in runs.
    pub(super) fn run(&self, register: Register) -> Option<Run<'_>> {
        match register {
            Register::Input(index) => match self.inputs.get(index)? {
                BlockInput::InRuns(run) => Some(*run),
                _ => None,
            },
            _ => None,
        }
    }

    /// The memory of a result.
    #[inline]
    pub(super) fn memory(&mut self, register: Register) -> Result<&mut &'a mut [u8], Error> {
        match register {
            Register::Buffer(index) => Ok(&mut self.buffers[index]),
            Register::Output(index) => Ok(self.outputs[index].memory()),
            Register::Input(_) => Err(misplaced()),
        }
    }
}

/// The rows of an input from the first one of the block on.
pub(super) enum BlockInput<'a> {
    InPlace(&'a [u8]),
    /// Copied to memory that is kept from block to block.
    Gathered(&'a mut [u8]),
    InRuns(Run<'a>),
    /// Where the result with this number is not written yet.
    Overwritten(usize),
}

/// All bytes of an input that is read in runs of rows, and the number of the block's first row.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) first: usize,
}

impl BlockInput<'_> {
    /// The bytes of an input that has memory of its own.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            BlockInput::InPlace(bytes) => bytes,
            BlockInput::Gathered(bytes) => bytes,
            BlockInput::InRuns(run) => run.bytes,
            BlockInput::Overwritten(_) => &[],
        }
    }
}

/// The rows of a result.
pub(super) struct Rows<'a> {
    /// The rows from the first one of the block on.
    pub(super) rest: &'a mut [u8],
    /// A buffer for the block, if the rows are copied from there.
    pub(super) stage: Option<&'a mut [u8]>,
    /// Whether they are copied past the cache.
    pub(super) is_streamed: bool,
}

impl<'a> Rows<'a> {
    #[inline]
    pub(super) fn memory(&mut self) -> &mut &'a mut [u8] {
        self.stage.as_mut().unwrap_or(&mut self.rest)
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.stage.as_deref().unwrap_or(self.rest)
    }

    /// Ends a block.
    pub(super) fn advance(&mut self, length: usize) {
        let (rows, rest) = std::mem::take(&mut self.rest).split_at_mut(length);
        match &self.stage {
            Some(stage) if self.is_streamed => streaming_stores::copy(&stage[..length], rows),
            Some(stage) => rows.copy_from_slice(&stage[..length]),
            None => {}
        }
        self.rest = rest;
    }
}
