//! The templates of instructions on small arrays: of elementwise arithmetic on floats, in vectors of 16 bytes,
//! and of copies. What follows the last vector is computed element by element.

use super::super::super::kernel::Kernel;
use super::super::super::machine_code::processor::{
    Arithmetic, FLOAT, Float, Fpr, Gpr, OTHER_ADDRESS, OTHER_FLOAT, OTHER_WORD, Operand, SMALL, THIRD_FLOAT,
    WORD,
};
use super::super::super::operation::Operation;
use super::super::code::{
    Array, Bytes, Code, Copying, Destination, KernelCall, Location, Small, Typed, Write,
};
use super::templates::arithmetic;
use super::translator::Translator;
use crate::ops::unary::UnaryOp;

/// The number of bytes in a vector.
const VECTOR_BYTES: usize = 16;

/// The most bytes of an array for which there is an instruction for each vector.
const MAX_BYTES: usize = 32 * VECTOR_BYTES;

/// An operand of elementwise arithmetic.
#[derive(Clone, Copy)]
enum Source {
    /// One number, in all elements of a vector.
    Number(Fpr),
    /// An array at an address and a distance.
    Array(Gpr, i32),
}

impl Translator {
    /// Computes an instruction on arrays, if there is a template for it.
    pub(super) fn array_template(&mut self, at: usize, code: &Code) -> Option<()> {
        match code {
            Code::Kernel(call) => {
                self.arithmetic(call)?;
                self.count(at + 1, call.codes);
                Some(())
            }
            Code::Copy(copying) if copying.to.bytes <= MAX_BYTES => {
                let Copying { from, to } = &**copying;
                let length = to.bytes;
                let to = self.small(*to)?;
                let from = self.array(from, length, WORD)?;
                self.copy(from, to, length);
                Some(())
            }
            Code::Write(write) if write.bytes.length <= MAX_BYTES => {
                let Write { array, bytes, from } = &**write;
                let from = self.array(from, bytes.length, OTHER_ADDRESS)?;
                let distance = self.changed(*array, bytes)?;
                self.copy(from, (WORD, distance), bytes.length);
                Some(())
            }
            _ => None,
        }
    }

    /// Elementwise arithmetic on floats.
    fn arithmetic(&mut self, KernelCall { kernel, operands, to, .. }: &KernelCall) -> Option<()> {
        let Kernel { operation, inputs, outputs, .. } = kernel;
        let ([output], &Destination::Small(to)) = (&outputs[..], to) else { return None };
        let float = Float::of(output.dtype)?;
        let op = match operation {
            Operation::Binary(op) => arithmetic(*op)?,
            Operation::Unary(UnaryOp::Sqrt, _) => Arithmetic::SquareRoot,
            _ => return None,
        };
        let is_array = |index: usize| inputs[index].shape == output.shape;
        let is_number = |index: usize| matches!(operands[index], Location::Register(_));
        let fits = (0..inputs.len()).all(|index| is_array(index) != is_number(index));
        let has_array = (0..inputs.len()).any(is_array);
        if !fits
            || !has_array
            || inputs.iter().any(|input| input.dtype != output.dtype)
            || to.bytes != output.bytes
        {
            return None;
        }
        let result = self.small(to)?;
        if to.bytes > MAX_BYTES {
            return None;
        }
        match &operands[..] {
            [from] => {
                let from = self.array(from, to.bytes, WORD)?;
                let from = Source::Array(from.0, from.1);
                self.elements(float, to.bytes, result, |translator, lanes| {
                    translator.lanes(lanes, OTHER_FLOAT, from);
                    translator.operation(op, lanes, OTHER_FLOAT);
                });
            }
            [left, right] => {
                let left = self.source(float, left, to.bytes, OTHER_ADDRESS)?;
                let right = self.source(float, right, to.bytes, WORD)?;
                self.elements(float, to.bytes, result, |translator, lanes| {
                    translator.lanes(lanes, FLOAT, left);
                    let right = match right {
                        Source::Number(number) => number,
                        Source::Array(..) => {
                            translator.lanes(lanes, THIRD_FLOAT, right);
                            THIRD_FLOAT
                        }
                    };
                    translator.operation(op, lanes, right);
                });
            }
            _ => return None,
        }
        Some(())
    }

    /// Computes the elements of a result, each vector of them in `FLOAT`.
    fn elements(
        &mut self,
        float: Float,
        bytes: usize,
        (base, distance): (Gpr, i32),
        compute: impl Fn(&mut Self, Lanes),
    ) {
        let width = float.bytes();
        let vectors = bytes / VECTOR_BYTES * VECTOR_BYTES;
        for at in (0..vectors).step_by(VECTOR_BYTES) {
            compute(self, Lanes { float, at: at as i32, is_vector: true });
            self.assembler.store_vector((base, distance + at as i32), FLOAT);
        }
        for at in (vectors..bytes).step_by(width) {
            compute(self, Lanes { float, at: at as i32, is_vector: false });
            self.assembler.store_element(float, (base, distance + at as i32), FLOAT);
        }
    }

    /// Loads elements of an operand.
    fn lanes(&mut self, Lanes { float, at, is_vector }: Lanes, to: Fpr, from: Source) {
        match from {
            Source::Number(number) => self.assembler.load_float(to, Operand::Fpr(number)),
            Source::Array(base, distance) if is_vector => {
                self.assembler.load_vector(to, (base, distance + at));
            }
            Source::Array(base, distance) => self.assembler.load_element(float, to, (base, distance + at)),
        }
    }

    /// Computes elements in `FLOAT`.
    fn operation(&mut self, op: Arithmetic, Lanes { float, is_vector, .. }: Lanes, right: Fpr) {
        if is_vector {
            self.assembler.vector_arithmetic(op, float, FLOAT, right);
        } else {
            self.assembler.arithmetic(op, float, FLOAT, Operand::Fpr(right));
        }
    }

    /// An operand of arithmetic. The address of an array is in `base`, or that of small arrays.
    fn source(&mut self, float: Float, location: &Location, bytes: usize, base: Gpr) -> Option<Source> {
        if let Location::Register(Typed { register, .. }) = *location {
            self.load_float(OTHER_FLOAT, register);
            self.assembler.repeat(float, OTHER_FLOAT);
            return Some(Source::Number(OTHER_FLOAT));
        }
        self.array(location, bytes, base).map(|(base, distance)| Source::Array(base, distance))
    }

    /// The address of an array of some bytes, in `base` or in that of small arrays, and a distance.
    fn array(&mut self, location: &Location, bytes: usize, base: Gpr) -> Option<(Gpr, i32)> {
        let distance = match location {
            Location::Register(_) => return None,
            Location::Array(Array::Small(small)) => {
                return if small.bytes == bytes { self.small(*small) } else { None };
            }
            Location::Array(array) => {
                let all = Bytes { first: 0, length: bytes, indices: Default::default() };
                self.address(*array, &all)?
            }
            Location::Part(part) => {
                if part.bytes.length != bytes {
                    return None;
                }
                self.address(part.array, &part.bytes)?
            }
        };
        self.assembler.load(base, Operand::Gpr(WORD));
        Some((base, distance))
    }

    /// The address of a small array.
    fn small(&mut self, small: Small) -> Option<(Gpr, i32)> {
        let is_inside = small.at.checked_add(small.bytes)? <= self.small_bytes;
        let distance = i32::try_from(small.at).ok()?;
        is_inside.then_some((SMALL, distance))
    }

    /// Copies some bytes.
    fn copy(&mut self, (from, from_distance): (Gpr, i32), (to, to_distance): (Gpr, i32), length: usize) {
        let mut at = 0;
        while at < length {
            let places = [from_distance, to_distance].map(|distance| distance + at as i32);
            at += if length - at >= VECTOR_BYTES {
                self.assembler.load_vector(FLOAT, (from, places[0]));
                self.assembler.store_vector((to, places[1]), FLOAT);
                VECTOR_BYTES
            } else {
                let bytes = 1 << (length - at).min(8).ilog2();
                self.assembler.load_unsigned(bytes, OTHER_WORD, Operand::Memory(from, places[0]));
                self.assembler.store(bytes, (to, places[1]), OTHER_WORD);
                bytes
            };
        }
    }
}

/// Elements that are computed at once: a vector, or one.
#[derive(Clone, Copy)]
struct Lanes {
    float: Float,
    /// The distance in bytes from the first one.
    at: i32,
    is_vector: bool,
}
