//! A faster kernel where all values of a tile are values of a narrower type.
//!
//! An operation on integers and floats that must round once is computed in f64, or in pairs of f64,
//! though most integers that people use are small enough for f32, where it gives the same results.
//! So each tile is converted to the narrower type first, and only if a value is too large computed
//! in the wider one.

use super::{Kernel, MAX_ELEMENT_BYTES, MAX_OPERANDS, Operand, Source};
use crate::Fault;
use crate::exec::convert::ConvertExactly;

/// A kernel in a narrower type, and how operands become values of that type.
#[derive(Clone, Copy, Debug)]
pub struct ValueNarrowing {
    /// Computes in the narrower type. Its results are the result's elements: no store follows.
    pub kernel: Kernel,
    /// Bytes of an element of the narrower type.
    pub lane: usize,
    /// To the narrower type; `None` for an operand that is of it.
    pub loads: [Option<ConvertExactly>; MAX_OPERANDS],
}

/// Memory for scalars in the narrower type.
pub(super) type NarrowedScalars = [[u8; MAX_ELEMENT_BYTES]; MAX_OPERANDS];

/// A `ValueNarrowing` with its operands, of which scalars have been converted.
pub(super) struct Narrowed<'a> {
    narrowing: &'a ValueNarrowing,
    operands: [Source<'a>; MAX_OPERANDS],
    arity: usize,
}

impl<'a> Narrowed<'a> {
    /// Returns `None` if a scalar is no value of the narrower type.
    pub(super) fn new<'s: 'a>(
        narrowing: &'a ValueNarrowing,
        sources: &[Source<'s>],
        scalars: &'a mut NarrowedScalars,
    ) -> Option<Self> {
        let mut operands = [Source::Scalar(&[]); MAX_OPERANDS];
        for (((operand, source), load), scalar) in
            operands.iter_mut().zip(sources).zip(narrowing.loads).zip(scalars)
        {
            *operand = match (source, load) {
                (Source::Scalar(element), Some(load)) => {
                    let converted = &mut scalar[..narrowing.lane];
                    if !load(element, converted) {
                        return None;
                    }
                    Source::Scalar(converted)
                }
                (source, _) => *source,
            };
        }
        Some(Narrowed { narrowing, operands, arity: sources.len() })
    }

    /// Computes `length` elements from `position` if their operands are values of the narrower
    /// type; returns whether they are. `buffers` hold a tile of each operand.
    pub(super) fn run<'b>(
        &self,
        position: usize,
        length: usize,
        buffers: impl Iterator<Item = &'b mut [u8]>,
        out: &mut [u8],
    ) -> Result<bool, Fault> {
        let mut operands = [Operand::Scalar(&[]); MAX_OPERANDS];
        let sources = &self.operands[..self.arity];
        for (((source, load), buffer), operand) in
            sources.iter().zip(self.narrowing.loads).zip(buffers).zip(&mut operands)
        {
            *operand = match (source, load) {
                (Source::Scalar(element), _) => Operand::Scalar(element),
                (Source::Dense { bytes, width }, None) => {
                    Operand::Slice(&bytes[position * width..][..length * width])
                }
                (Source::Dense { bytes, width }, Some(load)) => {
                    let converted = &mut buffer[..length * self.narrowing.lane];
                    if !load(&bytes[position * width..][..length * width], converted) {
                        return Ok(false);
                    }
                    Operand::Slice(converted)
                }
                _ => return Ok(false),
            };
        }
        (self.narrowing.kernel)(out, &operands[..sources.len()]).map(|()| true)
    }
}
