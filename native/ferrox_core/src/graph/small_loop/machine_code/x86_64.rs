//! An assembler for the few instructions of x86-64 that loops over numbers need.
//!
//! Reference: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 (the formats
//! of instructions) and the opcodes of the instructions that the functions name. All of them are in the
//! baseline of the architecture (SSE2).

/// A general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gpr(u8);

/// A register of floats, of which the first element is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Xmm(pub(super) u8);

pub(super) const RAX: Gpr = Gpr(0);
pub(super) const RCX: Gpr = Gpr(1);
pub(super) const RDX: Gpr = Gpr(2);
pub(super) const RBX: Gpr = Gpr(3);
pub(super) const RSP: Gpr = Gpr(4);
pub(super) const RBP: Gpr = Gpr(5);
pub(super) const RSI: Gpr = Gpr(6);
pub(super) const RDI: Gpr = Gpr(7);
pub(super) const R8: Gpr = Gpr(8);
pub(super) const R9: Gpr = Gpr(9);
pub(super) const R10: Gpr = Gpr(10);
pub(super) const R11: Gpr = Gpr(11);
pub(super) const R12: Gpr = Gpr(12);
pub(super) const R13: Gpr = Gpr(13);
pub(super) const R14: Gpr = Gpr(14);
pub(super) const R15: Gpr = Gpr(15);

/// What an instruction reads or writes besides its first register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Gpr(Gpr),
    Xmm(Xmm),
    /// The memory at a register and a distance in bytes.
    Memory(Gpr, i32),
}

/// The number of bytes that an integer instruction computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Four,
    Eight,
}

/// The type of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Float {
    F32,
    F64,
}

/// A condition that a comparison has left, by its number in opcodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Below = 0x2,
    AboveOrEqual = 0x3,
    Equal = 0x4,
    NotEqual = 0x5,
    BelowOrEqual = 0x6,
    Above = 0x7,
    /// Of floats, one is not a number.
    Parity = 0xa,
    NoParity = 0xb,
    Less = 0xc,
    GreaterOrEqual = 0xd,
    LessOrEqual = 0xe,
    Greater = 0xf,
}

/// An operation on integers, by its opcode for a register and an operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Integer {
    Add = 0x03,
    Or = 0x0b,
    And = 0x23,
    Subtract = 0x2b,
    Xor = 0x33,
    Compare = 0x3b,
}

/// An operation on floats, by its opcode.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    SquareRoot = 0x51,
    Add = 0x58,
    Multiply = 0x59,
    Subtract = 0x5c,
    Min = 0x5d,
    Divide = 0x5e,
    Max = 0x5f,
}

/// A place in the code that jumps go to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label(usize);

/// Instructions as bytes.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    bytes: Vec<u8>,
    /// Where labels are.
    labels: Vec<Option<usize>>,
    /// The places of distances to labels.
    jumps: Vec<(usize, Label)>,
}

impl Condition {
    /// The condition that holds where this one does not.
    pub(super) fn not(self) -> Self {
        use Condition::*;
        match self {
            Below => AboveOrEqual,
            AboveOrEqual => Below,
            Equal => NotEqual,
            NotEqual => Equal,
            BelowOrEqual => Above,
            Above => BelowOrEqual,
            Parity => NoParity,
            NoParity => Parity,
            Less => GreaterOrEqual,
            GreaterOrEqual => Less,
            LessOrEqual => Greater,
            Greater => LessOrEqual,
        }
    }
}

impl Float {
    /// The number of bytes of an element.
    pub(super) fn bytes(self) -> usize {
        match self {
            Float::F32 => 4,
            Float::F64 => 8,
        }
    }

    /// The prefix of an instruction on one element.
    fn prefix(self) -> u8 {
        match self {
            Float::F32 => 0xf3,
            Float::F64 => 0xf2,
        }
    }
}

impl Assembler {
    /// A label that is not in the code yet.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts a label here.
    pub(super) fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.bytes.len());
    }

    /// The distance of a label from the first byte.
    pub(super) fn place(&self, label: Label) -> Option<usize> {
        self.labels[label.0]
    }

    /// The bytes, with the distances of all jumps. `None` if a label is nowhere, or too far away.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        for (at, label) in std::mem::take(&mut self.jumps) {
            let target = self.place(label)? as i64;
            // Distances begin after the instruction, which ends with them.
            let distance = i32::try_from(target - (at as i64 + 4)).ok()?;
            self.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        Some(self.bytes)
    }

    /// An instruction with a register, or a part of the opcode in its place, and an operand.
    fn instruction(&mut self, prefix: Option<u8>, size: Size, opcode: &[u8], register: u8, operand: Operand) {
        let base = match operand {
            Operand::Gpr(Gpr(base)) | Operand::Xmm(Xmm(base)) | Operand::Memory(Gpr(base), _) => base,
        };
        self.bytes.extend(prefix);
        let rex = u8::from(size == Size::Eight) << 3 | (register >> 3) << 2 | base >> 3;
        if rex != 0 {
            self.bytes.push(0x40 | rex);
        }
        self.bytes.extend(opcode);
        let [register, low] = [register, base].map(|number| number & 7);
        match operand {
            Operand::Gpr(_) | Operand::Xmm(_) => self.bytes.push(0xc0 | register << 3 | low),
            Operand::Memory(_, distance) => {
                self.bytes.push(0x80 | register << 3 | low);
                if low == RSP.0 {
                    // A base without an index.
                    self.bytes.push(0x24);
                }
                self.bytes.extend(distance.to_le_bytes());
            }
        }
    }

    // Integers.

    pub(super) fn push(&mut self, Gpr(register): Gpr) {
        self.instruction(None, Size::Four, &[0xff], 6, Operand::Gpr(Gpr(register)));
    }

    pub(super) fn pop(&mut self, register: Gpr) {
        self.instruction(None, Size::Four, &[0x8f], 0, Operand::Gpr(register));
    }

    /// Eight bytes to a register; four fill it with zeros.
    pub(super) fn load(&mut self, size: Size, to: Gpr, from: Operand) {
        match from {
            Operand::Gpr(from) if from == to && size == Size::Eight => {}
            Operand::Xmm(Xmm(from)) => {
                self.instruction(Some(0x66), Size::Eight, &[0x0f, 0x7e], from, Operand::Gpr(to));
            }
            _ => self.instruction(None, size, &[0x8b], to.0, from),
        }
    }

    /// An integer of some bytes to a register, filled with zeros.
    pub(super) fn load_unsigned(&mut self, bytes: usize, to: Gpr, from: Operand) {
        match bytes {
            1 | 2 => self.load_narrow(bytes, false, to, from),
            4 => self.load(Size::Four, to, from),
            _ => self.load(Size::Eight, to, from),
        }
    }

    /// One or two bytes to a register, filled with zeros or copies of the sign.
    pub(super) fn load_narrow(&mut self, bytes: usize, is_signed: bool, to: Gpr, from: Operand) {
        // A register's low byte has a name for all registers only with the prefix that Size::Eight gives.
        let opcode = 0xb6 | u8::from(is_signed) << 3 | u8::from(bytes == 2);
        self.instruction(None, Size::Eight, &[0x0f, opcode], to.0, from);
    }

    /// Four bytes to a register, filled with copies of the sign.
    pub(super) fn load_signed(&mut self, to: Gpr, from: Operand) {
        self.instruction(None, Size::Eight, &[0x63], to.0, from);
    }

    pub(super) fn store(&mut self, bytes: usize, (base, distance): (Gpr, i32), from: Gpr) {
        let to = Operand::Memory(base, distance);
        match bytes {
            // All registers' low bytes have names with the prefix of a size of eight, which has no other
            // effect.
            1 => self.instruction(None, Size::Eight, &[0x88], from.0, to),
            2 => self.instruction(Some(0x66), Size::Four, &[0x89], from.0, to),
            4 => self.instruction(None, Size::Four, &[0x89], from.0, to),
            _ => self.instruction(None, Size::Eight, &[0x89], from.0, to),
        }
    }

    /// A number to a register.
    pub(super) fn constant(&mut self, Gpr(to): Gpr, value: u64) {
        let wide = u32::try_from(value).is_err();
        let rex = u8::from(wide) << 3 | to >> 3;
        if rex != 0 {
            self.bytes.push(0x40 | rex);
        }
        self.bytes.push(0xb8 | to & 7);
        match u32::try_from(value) {
            Ok(value) => self.bytes.extend(value.to_le_bytes()),
            Err(_) => self.bytes.extend(value.to_le_bytes()),
        }
    }

    pub(super) fn integer(&mut self, op: Integer, size: Size, to: Gpr, from: Operand) {
        self.instruction(None, size, &[op as u8], to.0, from);
    }

    pub(super) fn multiply(&mut self, size: Size, to: Gpr, from: Operand) {
        self.instruction(None, size, &[0x0f, 0xaf], to.0, from);
    }

    /// The product of a register and a number, of eight bytes.
    pub(super) fn multiply_by(&mut self, to: Gpr, factor: i32) {
        self.instruction(None, Size::Eight, &[0x69], to.0, Operand::Gpr(to));
        self.bytes.extend(factor.to_le_bytes());
    }

    /// Adds a number to a register of eight bytes.
    pub(super) fn add_number(&mut self, to: Gpr, number: i32) {
        self.instruction(None, Size::Eight, &[0x81], 0, Operand::Gpr(to));
        self.bytes.extend(number.to_le_bytes());
    }

    /// Subtracts a number from a register of eight bytes.
    pub(super) fn subtract_number(&mut self, to: Gpr, number: i32) {
        self.instruction(None, Size::Eight, &[0x81], 5, Operand::Gpr(to));
        self.bytes.extend(number.to_le_bytes());
    }

    /// Shifts eight bytes by the count in `RCX`, modulo 64, to the left, or to the right with zeros.
    pub(super) fn shift(&mut self, is_left: bool, to: Gpr) {
        self.instruction(None, Size::Eight, &[0xd3], if is_left { 4 } else { 5 }, Operand::Gpr(to));
    }

    /// Compares a register of eight bytes with zero.
    pub(super) fn test(&mut self, register: Gpr, other: Gpr) {
        self.instruction(None, Size::Eight, &[0x85], other.0, Operand::Gpr(register));
    }

    /// Eight bytes to a register if a condition holds.
    pub(super) fn load_if(&mut self, condition: Condition, to: Gpr, from: Gpr) {
        self.instruction(None, Size::Eight, &[0x0f, 0x40 | condition as u8], to.0, Operand::Gpr(from));
    }

    /// Eight bytes to a register if the last result was negative.
    pub(super) fn load_if_negative(&mut self, to: Gpr, from: Gpr) {
        self.instruction(None, Size::Eight, &[0x0f, 0x48], to.0, Operand::Gpr(from));
    }

    /// One or zero in the low byte of `RAX`, `RCX`, `RDX` or `RBX`.
    pub(super) fn set_if(&mut self, condition: Condition, to: Gpr) {
        self.instruction(None, Size::Four, &[0x0f, 0x90 | condition as u8], 0, Operand::Gpr(to));
    }

    // Floats.

    /// The first eight bytes of a register of floats, with zeros after them, or all of another one.
    pub(super) fn load_float(&mut self, Xmm(to): Xmm, from: Operand) {
        match from {
            Operand::Xmm(Xmm(from)) if from == to => {}
            // MOVAPS.
            Operand::Xmm(_) => self.instruction(None, Size::Four, &[0x0f, 0x28], to, from),
            // MOVQ from a general register.
            Operand::Gpr(_) => self.instruction(Some(0x66), Size::Eight, &[0x0f, 0x6e], to, from),
            Operand::Memory(..) => self.instruction(Some(0xf3), Size::Four, &[0x0f, 0x7e], to, from),
        }
    }

    /// One element, with zeros after it, from memory.
    pub(super) fn load_element(&mut self, float: Float, Xmm(to): Xmm, (base, distance): (Gpr, i32)) {
        let from = Operand::Memory(base, distance);
        self.instruction(Some(float.prefix()), Size::Four, &[0x0f, 0x10], to, from);
    }

    /// The first eight bytes of a register of floats to memory.
    pub(super) fn store_float(&mut self, (base, distance): (Gpr, i32), Xmm(from): Xmm) {
        self.instruction(Some(0x66), Size::Four, &[0x0f, 0xd6], from, Operand::Memory(base, distance));
    }

    pub(super) fn arithmetic(&mut self, op: Arithmetic, float: Float, Xmm(to): Xmm, from: Operand) {
        self.instruction(Some(float.prefix()), Size::Four, &[0x0f, op as u8], to, from);
    }

    /// An operation on vectors of 16 bytes.
    pub(super) fn vector_arithmetic(&mut self, op: Arithmetic, float: Float, Xmm(to): Xmm, from: Xmm) {
        let prefix = (float == Float::F64).then_some(0x66);
        self.instruction(prefix, Size::Four, &[0x0f, op as u8], to, Operand::Xmm(from));
    }

    /// The first element as all elements of a vector.
    pub(super) fn repeat(&mut self, float: Float, register: Xmm) {
        let operand = Operand::Xmm(register);
        match float {
            Float::F32 => {
                self.instruction(None, Size::Four, &[0x0f, 0xc6], register.0, operand);
                self.bytes.push(0);
            }
            Float::F64 => self.instruction(Some(0x66), Size::Four, &[0x0f, 0x14], register.0, operand),
        }
    }

    /// A vector from memory.
    pub(super) fn load_vector(&mut self, Xmm(to): Xmm, (base, distance): (Gpr, i32)) {
        self.instruction(None, Size::Four, &[0x0f, 0x10], to, Operand::Memory(base, distance));
    }

    /// A vector to memory.
    pub(super) fn store_vector(&mut self, (base, distance): (Gpr, i32), Xmm(from): Xmm) {
        self.instruction(None, Size::Four, &[0x0f, 0x11], from, Operand::Memory(base, distance));
    }

    /// One element to memory.
    pub(super) fn store_element(&mut self, float: Float, (base, distance): (Gpr, i32), Xmm(from): Xmm) {
        let to = Operand::Memory(base, distance);
        self.instruction(Some(float.prefix()), Size::Four, &[0x0f, 0x11], from, to);
    }

    /// Compares two floats as unsigned integers are compared; where one is not a number, the first counts as
    /// below the second as well as equal to it, and there is parity.
    pub(super) fn compare_floats(&mut self, float: Float, Xmm(left): Xmm, right: Operand) {
        let prefix = (float == Float::F64).then_some(0x66);
        self.instruction(prefix, Size::Four, &[0x0f, 0x2e], left, right);
    }

    /// Zeros in a register of floats.
    pub(super) fn clear(&mut self, register: Xmm) {
        self.instruction(None, Size::Four, &[0x0f, 0x57], register.0, Operand::Xmm(register));
    }

    /// A signed integer of eight bytes as a float.
    pub(super) fn integer_to_float(&mut self, float: Float, Xmm(to): Xmm, from: Gpr) {
        self.instruction(Some(float.prefix()), Size::Eight, &[0x0f, 0x2a], to, Operand::Gpr(from));
    }

    /// A float of the type `from` as one of the other type.
    pub(super) fn float_to_float(&mut self, from: Float, Xmm(to): Xmm, operand: Operand) {
        self.instruction(Some(from.prefix()), Size::Four, &[0x0f, 0x5a], to, operand);
    }

    // Jumps.

    fn distance(&mut self, label: Label) {
        self.jumps.push((self.bytes.len(), label));
        self.bytes.extend([0; 4]);
    }

    pub(super) fn jump(&mut self, label: Label) {
        self.bytes.push(0xe9);
        self.distance(label);
    }

    pub(super) fn jump_if(&mut self, condition: Condition, label: Label) {
        self.bytes.extend([0x0f, 0x80 | condition as u8]);
        self.distance(label);
    }

    pub(super) fn jump_if_negative(&mut self, label: Label) {
        self.bytes.extend([0x0f, 0x88]);
        self.distance(label);
    }

    /// Jumps to the address in a register.
    pub(super) fn jump_to(&mut self, register: Gpr) {
        self.instruction(None, Size::Four, &[0xff], 4, Operand::Gpr(register));
    }

    /// Calls the function whose address is in a register.
    pub(super) fn call(&mut self, register: Gpr) {
        self.instruction(None, Size::Four, &[0xff], 2, Operand::Gpr(register));
    }

    pub(super) fn return_(&mut self) {
        self.bytes.push(0xc3);
    }
}
