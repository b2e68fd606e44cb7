//! The templates of instructions on numbers.

use super::super::super::machine_code::processor::{
    ARRAYS, Arithmetic, Comparison, Condition, Extreme, FLOAT, Float, Fpr, Gpr, Integer, OTHER_FLOAT,
    OTHER_WORD, Operand, SMALL, Size, THIRD_WORD, WORD,
};
use super::super::super::operand::REGISTER_BYTES;
use super::super::code::{Array, Bytes, Code, NumberFunction, NumberOperation, Part, Register, Truth};
use super::register_allocation::Cached;
use super::translator::{Clamp, Computed, Kept, Translator, memory};
use crate::ops::binary::BinaryOp;
use crate::ops::unary::UnaryOp;
use crate::{DType, Kind};

impl Translator {
    /// Computes an instruction, if there is a template for it.
    pub(super) fn template(&mut self, code: &Code) -> Option<()> {
        match *code {
            Code::Move { from, to } => {
                if let Cached::Float(from) = self.cached(from) {
                    self.store_float(to, from);
                } else {
                    self.load(WORD, from);
                    self.store(to, WORD);
                }
            }
            Code::Binary { by, operands, to } => match self.compute(by, operands)? {
                Computed::Integer => self.store(to, WORD),
                Computed::Float => self.store_float(to, FLOAT),
            },
            Code::Function { by: NumberFunction { op: UnaryOp::Sqrt, dtype, .. }, from, to } => {
                let float = Float::of(dtype)?;
                self.load_float(FLOAT, from);
                self.assembler.arithmetic(Arithmetic::SquareRoot, float, FLOAT, Operand::Fpr(FLOAT));
                self.store_float(to, FLOAT);
            }
            Code::Convert { dtypes, from, to, .. } => match self.convert(dtypes, from.register)? {
                Computed::Integer => self.store(to.register, WORD),
                Computed::Float => self.store_float(to.register, FLOAT),
            },
            Code::Select { truth, operands: [a, b], to } => {
                self.test(truth);
                self.load(THIRD_WORD, a);
                self.load(OTHER_WORD, b);
                self.assembler.load_if(Condition::Equal, THIRD_WORD, OTHER_WORD);
                self.store(to, THIRD_WORD);
            }
            Code::Load(ref load) if is_number(&load.from.bytes) => {
                let Part { array, bytes } = &load.from;
                let first = self.address(*array, bytes)?;
                self.load_element(bytes.length, first, load.to);
            }
            Code::Store(ref store) if is_number(&store.bytes) => {
                let first = self.changed(store.array, &store.bytes)?;
                self.load(OTHER_WORD, store.from);
                self.assembler.store(store.bytes.length, (WORD, first), OTHER_WORD);
            }
            _ => return None,
        }
        Some(())
    }

    /// A number as an operand of an integer instruction. One in a register of floats is read from memory.
    fn operand(&mut self, register: Register) -> Operand {
        match self.cached(register) {
            Cached::Integer(cached) => Operand::Gpr(cached),
            _ => self.in_memory(register),
        }
    }

    /// A number as an operand of an instruction on floats.
    fn float_operand(&mut self, register: Register) -> Operand {
        match self.cached(register) {
            Cached::Float(cached) => Operand::Fpr(cached),
            _ => self.in_memory(register),
        }
    }

    /// A number where it is nearest, as an operand of what loads all eight bytes.
    fn nearest(&self, register: Register) -> Operand {
        match self.cached(register) {
            Cached::No => memory(register),
            Cached::Integer(cached) => Operand::Gpr(cached),
            Cached::Float(cached) => Operand::Fpr(cached),
        }
    }

    /// A number in the register of floats that keeps it, or in one that it is loaded into.
    fn float_register(&mut self, register: Register, into: Fpr) -> Fpr {
        if let Cached::Float(cached) = self.cached(register) {
            return cached;
        }
        self.load_float(into, register);
        into
    }

    /// Loads a number.
    pub(super) fn load(&mut self, to: Gpr, from: Register) {
        let from = self.nearest(from);
        self.assembler.load(to, from);
    }

    /// Loads a number as a float.
    pub(super) fn load_float(&mut self, to: Fpr, from: Register) {
        let from = self.nearest(from);
        self.assembler.load_float(to, from);
    }

    /// Stores a number.
    pub(super) fn store(&mut self, to: Register, from: Gpr) {
        self.keep(to, Kept::Integer(from));
    }

    /// Stores a number that is in a register of floats, with zeros after it in eight bytes.
    pub(super) fn store_float(&mut self, to: Register, from: Fpr) {
        self.keep(to, Kept::Float(from));
    }

    /// Compares a number with zero; the condition `Equal` holds if it is false.
    pub(super) fn test(&mut self, truth: Truth) {
        self.load(WORD, truth.register);
        if truth.mask == u64::MAX {
            self.assembler.test(WORD, WORD);
        } else {
            self.assembler.constant(OTHER_WORD, truth.mask);
            self.assembler.test(WORD, OTHER_WORD);
        }
    }

    /// Loads an integer with copies of its sign, or zeros, after it.
    fn load_integer(&mut self, to: Gpr, from: Register, width: usize, is_signed: bool) {
        if is_signed && width < REGISTER_BYTES {
            let operand = self.operand(from);
            self.assembler.load_signed(width, to, operand);
        } else {
            self.load(to, from);
        }
    }

    /// Compares two numbers, if the operation is a comparison. Returns the condition that holds if it is true.
    pub(super) fn compare(&mut self, by: NumberOperation, [a, b]: [Register; 2]) -> Option<Condition> {
        let comparison = Comparison::of(by.op)?;
        if let Some(float) = Float::of(by.dtype) {
            let operands = [self.float_register(a, FLOAT), self.float_register(b, OTHER_FLOAT)];
            return Some(self.assembler.compare_floats(comparison, float, operands));
        }
        let is_signed = is_signed_integer(by.dtype)?;
        let width = by.dtype.width();
        self.load_integer(WORD, a, width, is_signed);
        let right = if is_signed && width < REGISTER_BYTES {
            self.load_integer(OTHER_WORD, b, width, is_signed);
            Operand::Gpr(OTHER_WORD)
        } else {
            self.operand(b)
        };
        self.assembler.integer(Integer::Compare, Size::Eight, WORD, right);
        Some(match (comparison, is_signed) {
            (Comparison::Equal, _) => Condition::Equal,
            (Comparison::NotEqual, _) => Condition::NotEqual,
            (Comparison::Less, true) => Condition::Less,
            (Comparison::LessOrEqual, true) => Condition::LessOrEqual,
            (Comparison::Greater, true) => Condition::Greater,
            (Comparison::GreaterOrEqual, true) => Condition::GreaterOrEqual,
            (Comparison::Less, false) => Condition::Below,
            (Comparison::LessOrEqual, false) => Condition::BelowOrEqual,
            (Comparison::Greater, false) => Condition::Above,
            (Comparison::GreaterOrEqual, false) => Condition::AboveOrEqual,
        })
    }

    /// Computes an operation on two numbers, if there is a template for it.
    pub(super) fn compute(&mut self, by: NumberOperation, operands: [Register; 2]) -> Option<Computed> {
        if let Some(condition) = self.compare(by, operands) {
            self.assembler.set_if(condition, WORD);
            return Some(Computed::Integer);
        }
        match Float::of(by.dtype) {
            Some(float) => self.compute_floats(by.op, float, operands).map(|()| Computed::Float),
            None => self.compute_integers(by, operands).map(|()| Computed::Integer),
        }
    }

    fn compute_floats(&mut self, op: BinaryOp, float: Float, [a, b]: [Register; 2]) -> Option<()> {
        if let BinaryOp::Max | BinaryOp::Min = op {
            let op = if op == BinaryOp::Max { Extreme::Max } else { Extreme::Min };
            self.load_float(FLOAT, b);
            let other = self.float_register(a, OTHER_FLOAT);
            self.assembler.extreme(op, float, FLOAT, other);
            return Some(());
        }
        let op = arithmetic(op)?;
        self.load_float(FLOAT, a);
        let right = self.float_operand(b);
        self.assembler.arithmetic(op, float, FLOAT, right);
        Some(())
    }

    fn compute_integers(&mut self, by: NumberOperation, [a, b]: [Register; 2]) -> Option<()> {
        let is_signed = is_signed_integer(by.dtype)?;
        let width = by.dtype.width();
        let size = if width == REGISTER_BYTES { Size::Eight } else { Size::Four };
        match by.op {
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply => {
                self.load(WORD, a);
                let right = self.operand(b);
                match by.op {
                    BinaryOp::Add => self.assembler.integer(Integer::Add, size, WORD, right),
                    BinaryOp::Subtract => self.assembler.integer(Integer::Subtract, size, WORD, right),
                    _ => self.assembler.multiply(size, WORD, right),
                }
                self.narrow(width);
            }
            BinaryOp::BitwiseAnd | BinaryOp::BitwiseOr | BinaryOp::BitwiseXor => {
                self.load(WORD, a);
                let right = self.operand(b);
                self.assembler.integer(bitwise(by.op)?, Size::Eight, WORD, right);
            }
            BinaryOp::LogicalAnd | BinaryOp::LogicalOr | BinaryOp::LogicalXor => {
                self.load(THIRD_WORD, a);
                self.assembler.test(THIRD_WORD, THIRD_WORD);
                self.assembler.set_if(Condition::NotEqual, WORD);
                self.load(THIRD_WORD, b);
                self.assembler.test(THIRD_WORD, THIRD_WORD);
                self.assembler.set_if(Condition::NotEqual, OTHER_WORD);
                self.assembler.integer(bitwise(by.op)?, Size::Four, WORD, Operand::Gpr(OTHER_WORD));
            }
            BinaryOp::Max | BinaryOp::Min => {
                self.load_integer(WORD, a, width, is_signed);
                self.load_integer(OTHER_WORD, b, width, is_signed);
                self.assembler.integer(Integer::Compare, Size::Eight, OTHER_WORD, Operand::Gpr(WORD));
                let condition = match (by.op, is_signed) {
                    (BinaryOp::Max, true) => Condition::Greater,
                    (BinaryOp::Max, false) => Condition::Above,
                    (_, true) => Condition::Less,
                    (_, false) => Condition::Below,
                };
                self.assembler.load_if(condition, WORD, OTHER_WORD);
                self.narrow(width);
            }
            BinaryOp::LeftShift | BinaryOp::RightShift if !is_signed => {
                self.load(OTHER_WORD, b);
                self.load(WORD, a);
                let assembler = &mut self.assembler;
                assembler.shift(by.op == BinaryOp::LeftShift, WORD);
                // The processor takes the count modulo 64.
                assembler.constant(THIRD_WORD, 63);
                assembler.integer(Integer::Compare, Size::Eight, OTHER_WORD, Operand::Gpr(THIRD_WORD));
                assembler.constant(THIRD_WORD, 0);
                assembler.load_if(Condition::Above, WORD, THIRD_WORD);
                self.narrow(width);
            }
            _ => return None,
        }
        Some(())
    }

    /// Fills `WORD` with zeros after an integer.
    fn narrow(&mut self, width: usize) {
        self.assembler.load_unsigned(width, WORD, Operand::Gpr(WORD));
    }

    /// Converts a number, if there is a template for it.
    fn convert(&mut self, [from, to]: [DType; 2], register: Register) -> Option<Computed> {
        match (Float::of(from), Float::of(to)) {
            (Some(from), Some(to)) if from != to => {
                let operand = self.float_operand(register);
                self.assembler.float_to_float(from, FLOAT, operand);
                Some(Computed::Float)
            }
            (None, Some(to)) => {
                let is_signed = is_signed_integer(from)?;
                if !is_signed && from.width() == REGISTER_BYTES {
                    return None;
                }
                self.load_integer(WORD, register, from.width(), is_signed);
                self.assembler.integer_to_float(to, FLOAT, WORD);
                Some(Computed::Float)
            }
            (None, None) => {
                let is_signed = is_signed_integer(from)?;
                is_signed_integer(to)?;
                self.load_integer(WORD, register, from.width(), is_signed);
                self.narrow(to.width());
                Some(Computed::Integer)
            }
            _ => None,
        }
    }

    /// Puts the address of a part of an array, but for a distance in bytes, into `WORD`, if all of it lies in
    /// an array whose length is known or can be checked. Returns the distance.
    pub(super) fn address(&mut self, array: Array, bytes: &Bytes) -> Option<i32> {
        let mut end = bytes.first.checked_add(bytes.length)?;
        for index in &bytes.indices {
            i32::try_from(index.stride).ok()?;
            end = end.checked_add(index.last.checked_mul(index.stride)?)?;
        }
        // All distances fit, with those of other elements.
        let distance = i32::try_from(bytes.first).ok()?;
        distance.checked_add(i32::try_from(bytes.length).ok()?)?;
        let (base, distance) = match array {
            Array::Tensor(_) | Array::Replaced(_) => {
                let number = match array {
                    Array::Tensor(index) if index < self.tensors => index,
                    Array::Replaced(index) => self.tensors + index,
                    _ => return None,
                };
                let length = self.lengths.get_mut(number)?;
                *length = end.max(*length);
                let pointer = i32::try_from(number * size_of::<*mut u8>()).ok()?;
                (Operand::Memory(ARRAYS, pointer), distance)
            }
            Array::Small(small) => {
                if end > small.bytes || small.at.checked_add(small.bytes)? > self.small_bytes {
                    return None;
                }
                (Operand::Gpr(SMALL), distance.checked_add(i32::try_from(small.at).ok()?)?)
            }
        };
        self.assembler.load(WORD, base);
        for index in &bytes.indices {
            self.load_integer(OTHER_WORD, index.register, usize::from(index.width), index.is_signed);
            self.clamp(index.last as u64, index.is_signed);
            self.assembler.multiply_by(OTHER_WORD, i32::try_from(index.stride).ok()?);
            self.assembler.integer(Integer::Add, Size::Eight, WORD, Operand::Gpr(OTHER_WORD));
        }
        Some(distance)
    }

    /// Moves the index in `OTHER_WORD` between zero and the last one. One that is there already, as most are, takes
    /// a comparison and a jump that is not taken.
    fn clamp(&mut self, last: u64, is_signed: bool) {
        let assembler = &mut self.assembler;
        let clamp = Clamp { outside: assembler.label(), back: assembler.label(), last, is_signed };
        assembler.constant(THIRD_WORD, last);
        assembler.integer(Integer::Compare, Size::Eight, OTHER_WORD, Operand::Gpr(THIRD_WORD));
        // A negative number is above all others.
        assembler.jump_if(Condition::Above, clamp.outside);
        assembler.bind(clamp.back);
        self.clamps.push(clamp);
    }

    /// [`Self::address`] of a part that is written.
    pub(super) fn changed(&mut self, array: Array, bytes: &Bytes) -> Option<i32> {
        if let Array::Tensor(_) = array { None } else { self.address(array, bytes) }
    }

    /// Loads an element at a distance from the address in `WORD`.
    fn load_element(&mut self, bytes: usize, distance: i32, to: Register) {
        let from = (WORD, distance);
        if let (4 | 8, Cached::Float(_)) = (bytes, self.cached(to)) {
            let float = if bytes == 4 { Float::F32 } else { Float::F64 };
            self.assembler.load_element(float, FLOAT, from);
            return self.store_float(to, FLOAT);
        }
        self.assembler.load_unsigned(bytes, OTHER_WORD, Operand::Memory(WORD, distance));
        self.store(to, OTHER_WORD);
    }
}

/// The operation of the processor on floats.
pub(super) fn arithmetic(op: BinaryOp) -> Option<Arithmetic> {
    Some(match op {
        BinaryOp::Add => Arithmetic::Add,
        BinaryOp::Subtract => Arithmetic::Subtract,
        BinaryOp::Multiply => Arithmetic::Multiply,
        BinaryOp::Divide => Arithmetic::Divide,
        _ => return None,
    })
}

/// The operation of the processor on all bits.
fn bitwise(op: BinaryOp) -> Option<Integer> {
    Some(match op {
        BinaryOp::BitwiseAnd | BinaryOp::LogicalAnd => Integer::And,
        BinaryOp::BitwiseOr | BinaryOp::LogicalOr => Integer::Or,
        BinaryOp::BitwiseXor | BinaryOp::LogicalXor => Integer::Xor,
        _ => return None,
    })
}

/// Whether bytes are those of one number.
fn is_number(bytes: &Bytes) -> bool {
    matches!(bytes.length, 1 | 2 | 4 | 8)
}

/// Whether numbers of a type are signed, if they are integers of whole bytes.
fn is_signed_integer(dtype: DType) -> Option<bool> {
    (dtype.is_integer() && !dtype.is_packed()).then(|| dtype.kind() == Kind::Signed)
}
