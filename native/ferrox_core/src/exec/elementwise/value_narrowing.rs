//! Value narrowing: a faster kernel for tiles whose values all fit into a narrower type.
//!
//! Problem: an operation on integers and floats that must round only once is computed in f64 or in
//! pairs of f64, although most integers in practice are small enough for f32, which gives the same
//! results.
//! Technique: each tile is converted to the narrower type first. Only if a value is too large, the
//! tile and all tiles after it are computed in the wider type.

use super::{Kernel, MAX_ELEMENT_BYTES, MAX_OPERANDS, Operand, Source};
use crate::Fault;
use crate::exec::convert::ConvertExactly;

/// A kernel in a narrower type, and the conversions of operands to this type.
#[derive(Clone, Copy, Debug)]
pub struct ValueNarrowing {
    /// Computes in the narrower type, and writes elements of the result's type.
    pub kernel: Kernel,
    /// The number of bytes in an element of the narrower type.
    pub lane: usize,
    /// The conversion of each operand to the narrower type; `None` for an operand of this type.
    pub loads: [Option<ConvertExactly>; MAX_OPERANDS],
}

/// Memory for scalars in the narrower type.
pub(super) type NarrowedScalars = [[u8; MAX_ELEMENT_BYTES]; MAX_OPERANDS];

/// A `ValueNarrowing` with its operands, whose scalars have been converted.
pub(super) struct Narrowed<'a> {
    narrowing: &'a ValueNarrowing,
    operands: [Source<'a>; MAX_OPERANDS],
    arity: usize,
}

impl<'a> Narrowed<'a> {
    /// Converts the scalars. Returns `None` if a scalar isn't a value of the narrower type.
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

    /// Computes the `length` elements from `position` on if all operands' values are values of the
    /// narrower type; returns whether they are. `buffers` have room for a tile of each operand.
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
