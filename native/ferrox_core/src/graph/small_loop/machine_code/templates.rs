//! The templates of instructions on numbers.

use super::super::super::operand::REGISTER_BYTES;
use super::super::code::{Array, Bytes, Code, NumberOperation, Part, Register, Truth};
use super::register_cache::{Cached, float};
use super::translator::{ARRAYS, Computed, FLOAT, OTHER_FLOAT, SMALL, Translator, Truths, location, memory};
use super::x86_64::{Arithmetic, Condition, Float, Gpr, Integer, Operand, RAX, RCX, RDX, Size, Xmm};
use crate::ops::binary::BinaryOp;
use crate::{DType, Kind};

impl Translator {
    /// Computes an instruction, if there is a template for it.
    pub(super) fn template(&mut self, code: &Code) -> Option<()> {
        match *code {
            Code::Move { from, to } => {
                if let Cached::Float(from) = self.cached(from) {
                    self.store_float(to, from);
                } else {
                    self.load(RAX, from);
                    self.store(to, RAX);
                }
            }
            Code::Binary { by, operands, to } => match self.compute(by, operands)? {
                Computed::Integer => self.store(to, RAX),
                Computed::Float => self.store_float(to, FLOAT),
            },
            Code::SquareRoot { dtype, from, to } => {
                let float = float(dtype)?;
                self.load_float(FLOAT, from);
                self.assembler.arithmetic(Arithmetic::SquareRoot, float, FLOAT, Operand::Xmm(FLOAT));
                self.store_float(to, FLOAT);
            }
            Code::Convert { dtypes, from, to, .. } => match self.convert(dtypes, from.register)? {
                Computed::Integer => self.store(to.register, RAX),
                Computed::Float => self.store_float(to.register, FLOAT),
            },
            Code::Select { truth, operands: [a, b], to } => {
                self.test(truth);
                self.load(RDX, a);
                self.load(RCX, b);
                self.assembler.load_if(Condition::Equal, RDX, RCX);
                self.store(to, RDX);
            }
            Code::Load(ref load) if is_number(&load.from.bytes) => {
                let Part { array, bytes } = &load.from;
                let first = self.address(*array, bytes)?;
                self.load_element(bytes.length, first, load.to);
            }
            Code::Store(ref store) if is_number(&store.bytes) => {
                let first = self.changed(store.array, &store.bytes)?;
                self.load(RCX, store.from);
                self.assembler.store(store.bytes.length, (RAX, first), RCX);
            }
            _ => return None,
        }
        Some(())
    }

    /// A number as an operand of an integer instruction. One in a register of floats is read from memory.
    fn operand(&self, register: Register) -> Operand {
        match self.cached(register) {
            Cached::Integer(cached) => Operand::Gpr(cached),
            _ => memory(register),
        }
    }

    /// A number as an operand of an instruction on floats.
    fn float_operand(&self, register: Register) -> Operand {
        match self.cached(register) {
            Cached::Float(cached) => Operand::Xmm(cached),
            _ => memory(register),
        }
    }

    /// A number where it is nearest, as an operand of what loads all eight bytes.
    fn nearest(&self, register: Register) -> Operand {
        match self.cached(register) {
            Cached::No => memory(register),
            Cached::Integer(cached) => Operand::Gpr(cached),
            Cached::Float(cached) => Operand::Xmm(cached),
        }
    }

    /// Loads a number.
    pub(super) fn load(&mut self, to: Gpr, from: Register) {
        let from = self.nearest(from);
        self.assembler.load(Size::Eight, to, from);
    }

    /// Loads a number as a float.
    pub(super) fn load_float(&mut self, to: Xmm, from: Register) {
        let from = self.nearest(from);
        self.assembler.load_float(to, from);
    }

    /// Stores a number.
    pub(super) fn store(&mut self, to: Register, from: Gpr) {
        self.assembler.store(REGISTER_BYTES, location(to), from);
        self.cache(to, Operand::Gpr(from));
    }

    /// Stores a number that is in a register of floats, with zeros after it in eight bytes.
    pub(super) fn store_float(&mut self, to: Register, from: Xmm) {
        self.assembler.store_float(location(to), from);
        self.cache(to, Operand::Xmm(from));
    }

    /// Compares a number with zero; the condition `Equal` holds if it is false.
    pub(super) fn test(&mut self, truth: Truth) {
        self.load(RAX, truth.register);
        if truth.mask == u64::MAX {
            self.assembler.test(RAX, RAX);
        } else {
            self.assembler.constant(RCX, truth.mask);
            self.assembler.integer(Integer::And, Size::Eight, RAX, Operand::Gpr(RCX));
        }
    }

    /// Loads an integer with copies of its sign, or zeros, after it.
    fn load_integer(&mut self, to: Gpr, from: Register, width: usize, is_signed: bool) {
        let operand = self.operand(from);
        match (width, is_signed) {
            (1 | 2, true) => self.assembler.load_narrow(width, true, to, operand),
            (4, true) => self.assembler.load_signed(to, operand),
            _ => self.load(to, from),
        }
    }

    /// Compares two numbers, and says when the comparison is true, if the operation is one.
    pub(super) fn compare(&mut self, by: NumberOperation, [a, b]: [Register; 2]) -> Option<Truths> {
        use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        if !matches!(by.op, Equal | NotEqual | Greater | GreaterEqual | Less | LessEqual) {
            return None;
        }
        if let Some(float) = float(by.dtype) {
            // Below and equal hold for what is not a number, above does not.
            let ([left, right], truths) = match by.op {
                Greater => ([a, b], Truths::If(Condition::Above)),
                GreaterEqual => ([a, b], Truths::If(Condition::AboveOrEqual)),
                Less => ([b, a], Truths::If(Condition::Above)),
                LessEqual => ([b, a], Truths::If(Condition::AboveOrEqual)),
                Equal => ([a, b], Truths::Equal),
                _ => ([a, b], Truths::NotEqual),
            };
            self.load_float(FLOAT, left);
            let right = self.float_operand(right);
            self.assembler.compare_floats(float, FLOAT, right);
            return Some(truths);
        }
        let is_signed = is_signed_integer(by.dtype)?;
        let width = by.dtype.width();
        self.load_integer(RAX, a, width, is_signed);
        let right = if is_signed && width < REGISTER_BYTES {
            self.load_integer(RCX, b, width, is_signed);
            Operand::Gpr(RCX)
        } else {
            self.operand(b)
        };
        self.assembler.integer(Integer::Compare, Size::Eight, RAX, right);
        Some(Truths::If(match (by.op, is_signed) {
            (Equal, _) => Condition::Equal,
            (NotEqual, _) => Condition::NotEqual,
            (Greater, true) => Condition::Greater,
            (GreaterEqual, true) => Condition::GreaterOrEqual,
            (Less, true) => Condition::Less,
            (LessEqual, true) => Condition::LessOrEqual,
            (Greater, false) => Condition::Above,
            (GreaterEqual, false) => Condition::AboveOrEqual,
            (Less, false) => Condition::Below,
            _ => Condition::BelowOrEqual,
        }))
    }

    /// One in `RAX` if a comparison is true, zero if not.
    fn truth(&mut self, truths: Truths) {
        let assembler = &mut self.assembler;
        match truths {
            Truths::If(condition) => assembler.set_if(condition, RAX),
            Truths::Equal => {
                assembler.set_if(Condition::Equal, RAX);
                assembler.set_if(Condition::NoParity, RCX);
                assembler.integer(Integer::And, Size::Four, RAX, Operand::Gpr(RCX));
            }
            Truths::NotEqual => {
                assembler.set_if(Condition::NotEqual, RAX);
                assembler.set_if(Condition::Parity, RCX);
                assembler.integer(Integer::Or, Size::Four, RAX, Operand::Gpr(RCX));
            }
        }
        assembler.load_narrow(1, false, RAX, Operand::Gpr(RAX));
    }

    /// Computes an operation on two numbers, if there is a template for it.
    pub(super) fn compute(&mut self, by: NumberOperation, operands: [Register; 2]) -> Option<Computed> {
        if let Some(truths) = self.compare(by, operands) {
            self.truth(truths);
            return Some(Computed::Integer);
        }
        match float(by.dtype) {
            Some(float) => self.compute_floats(by.op, float, operands).map(|()| Computed::Float),
            None => self.compute_integers(by, operands).map(|()| Computed::Integer),
        }
    }

    fn compute_floats(&mut self, op: BinaryOp, float: Float, [a, b]: [Register; 2]) -> Option<()> {
        let op = arithmetic(op)?;
        if let Arithmetic::Max | Arithmetic::Min = op {
            // The processor's result is the second operand, unless the first is above or below it. That is
            // right with the operands exchanged, but if `b` is not a number.
            self.load_float(FLOAT, b);
            self.load_float(OTHER_FLOAT, a);
            let assembler = &mut self.assembler;
            let past = assembler.label();
            assembler.compare_floats(float, FLOAT, Operand::Xmm(FLOAT));
            assembler.jump_if(Condition::Parity, past);
            assembler.arithmetic(op, float, FLOAT, Operand::Xmm(OTHER_FLOAT));
            assembler.bind(past);
        } else {
            self.load_float(FLOAT, a);
            let right = self.float_operand(b);
            self.assembler.arithmetic(op, float, FLOAT, right);
        }
        Some(())
    }

    fn compute_integers(&mut self, by: NumberOperation, [a, b]: [Register; 2]) -> Option<()> {
        let is_signed = is_signed_integer(by.dtype)?;
        let width = by.dtype.width();
        let size = if width == REGISTER_BYTES { Size::Eight } else { Size::Four };
        match by.op {
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply => {
                self.load(RAX, a);
                let right = self.operand(b);
                match by.op {
                    BinaryOp::Add => self.assembler.integer(Integer::Add, size, RAX, right),
                    BinaryOp::Subtract => self.assembler.integer(Integer::Subtract, size, RAX, right),
                    _ => self.assembler.multiply(size, RAX, right),
                }
                self.narrow(width);
            }
            BinaryOp::BitwiseAnd | BinaryOp::BitwiseOr | BinaryOp::BitwiseXor => {
                self.load(RAX, a);
                let right = self.operand(b);
                self.assembler.integer(bitwise(by.op)?, Size::Eight, RAX, right);
            }
            BinaryOp::LogicalAnd | BinaryOp::LogicalOr | BinaryOp::LogicalXor => {
                self.load(RDX, a);
                self.assembler.test(RDX, RDX);
                self.assembler.set_if(Condition::NotEqual, RAX);
                self.load(RDX, b);
                self.assembler.test(RDX, RDX);
                self.assembler.set_if(Condition::NotEqual, RCX);
                self.assembler.integer(bitwise(by.op)?, Size::Four, RAX, Operand::Gpr(RCX));
                self.assembler.load_narrow(1, false, RAX, Operand::Gpr(RAX));
            }
            BinaryOp::Max | BinaryOp::Min => {
                self.load_integer(RAX, a, width, is_signed);
                self.load_integer(RCX, b, width, is_signed);
                self.assembler.integer(Integer::Compare, Size::Eight, RCX, Operand::Gpr(RAX));
                let condition = match (by.op, is_signed) {
                    (BinaryOp::Max, true) => Condition::Greater,
                    (BinaryOp::Max, false) => Condition::Above,
                    (_, true) => Condition::Less,
                    (_, false) => Condition::Below,
                };
                self.assembler.load_if(condition, RAX, RCX);
                self.narrow(width);
            }
            BinaryOp::LeftShift | BinaryOp::RightShift if !is_signed => {
                self.load(RCX, b);
                self.load(RAX, a);
                let assembler = &mut self.assembler;
                assembler.shift(by.op == BinaryOp::LeftShift, RAX);
                // The processor takes the count modulo 64.
                assembler.constant(RDX, 63);
                assembler.integer(Integer::Compare, Size::Eight, RCX, Operand::Gpr(RDX));
                assembler.constant(RDX, 0);
                assembler.load_if(Condition::Above, RAX, RDX);
                self.narrow(width);
            }
            _ => return None,
        }
        Some(())
    }

    /// Fills `RAX` with zeros after an integer.
    fn narrow(&mut self, width: usize) {
        self.assembler.load_unsigned(width, RAX, Operand::Gpr(RAX));
    }

    /// Converts a number, if there is a template for it.
    fn convert(&mut self, [from, to]: [DType; 2], register: Register) -> Option<Computed> {
        match (float(from), float(to)) {
            (Some(from), Some(to)) if from != to => {
                let operand = self.float_operand(register);
                self.assembler.clear(FLOAT);
                self.assembler.float_to_float(from, FLOAT, operand);
                Some(Computed::Float)
            }
            (None, Some(to)) => {
                let is_signed = is_signed_integer(from)?;
                if !is_signed && from.width() == REGISTER_BYTES {
                    return None;
                }
                self.load_integer(RAX, register, from.width(), is_signed);
                self.assembler.clear(FLOAT);
                self.assembler.integer_to_float(to, FLOAT, RAX);
                Some(Computed::Float)
            }
            (None, None) => {
                let is_signed = is_signed_integer(from)?;
                is_signed_integer(to)?;
                self.load_integer(RAX, register, from.width(), is_signed);
                self.narrow(to.width());
                Some(Computed::Integer)
            }
            _ => None,
        }
    }

    /// Puts the address of a part of an array, but for a distance in bytes, into `RAX`, if all of it lies in
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
        self.assembler.load(Size::Eight, RAX, base);
        for index in &bytes.indices {
            self.load_integer(RCX, index.register, usize::from(index.width), index.is_signed);
            let assembler = &mut self.assembler;
            if index.is_signed {
                assembler.constant(RDX, 0);
                assembler.test(RCX, RCX);
                assembler.load_if_negative(RCX, RDX);
            }
            assembler.constant(RDX, index.last as u64);
            assembler.integer(Integer::Compare, Size::Eight, RCX, Operand::Gpr(RDX));
            assembler.load_if(Condition::Above, RCX, RDX);
            assembler.multiply_by(RCX, i32::try_from(index.stride).ok()?);
            assembler.integer(Integer::Add, Size::Eight, RAX, Operand::Gpr(RCX));
        }
        Some(distance)
    }

    /// [`Self::address`] of a part that is written.
    pub(super) fn changed(&mut self, array: Array, bytes: &Bytes) -> Option<i32> {
        if let Array::Tensor(_) = array { None } else { self.address(array, bytes) }
    }

    /// Loads an element at a distance from the address in `RAX`.
    fn load_element(&mut self, bytes: usize, distance: i32, to: Register) {
        let from = (RAX, distance);
        if let (4 | 8, Cached::Float(_)) = (bytes, self.cached(to)) {
            let float = if bytes == 4 { Float::F32 } else { Float::F64 };
            self.assembler.load_element(float, FLOAT, from);
            return self.store_float(to, FLOAT);
        }
        self.assembler.load_unsigned(bytes, RCX, Operand::Memory(RAX, distance));
        self.store(to, RCX);
    }
}

/// The operation of the processor on floats.
pub(super) fn arithmetic(op: BinaryOp) -> Option<Arithmetic> {
    Some(match op {
        BinaryOp::Add => Arithmetic::Add,
        BinaryOp::Subtract => Arithmetic::Subtract,
        BinaryOp::Multiply => Arithmetic::Multiply,
        BinaryOp::Divide => Arithmetic::Divide,
        BinaryOp::Max => Arithmetic::Max,
        BinaryOp::Min => Arithmetic::Min,
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
