//! The instructions on vectors of 32 bytes (AVX2), which have three operands.
//!
//! Reference: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, section 2.3 (the VEX
//! prefix) and the opcodes of the instructions that the functions name.

use super::super::{
    Assembler, Comparison, Element, ElementOperation, Extreme, Float, Fpr, Gpr, Sign, float_registers,
};
use super::{R8, R9, R10, R11, R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDI, RDX, RSI};
use crate::exec::simd::{Level, level};

/// The number of bytes in a vector.
pub(in crate::graph) const WIDE_BYTES: usize = 32;

/// The registers of vectors that a function may use.
pub(in crate::graph) const WIDE_REGISTERS: [Fpr; 14] = float_registers(0);

/// Registers for addresses.
pub(in crate::graph) const POINTERS: [Gpr; 12] = [RCX, RDX, R8, R9, R10, R11, RBX, RBP, R12, R13, R14, R15];

/// The number of these, from the first on, that a function need not leave as they were. `save_registers` saves
/// the others.
pub(in crate::graph) const UNSAVED_POINTERS: usize = 6;

// The registers of the loop of a function on vectors: its arguments, and the distance of the next vectors.
pub(in crate::graph) const POINTER_MEMORY: Gpr = RDI;
pub(in crate::graph) const ALL_BYTES: Gpr = RSI;
pub(in super::super) const DISTANCE: Gpr = RAX;

// The registers for the steps of an instruction that takes several.
const STEP: Fpr = Fpr(14);
const OTHER_STEP: Fpr = Fpr(15);

// The prefixes that are part of an opcode.
const NONE: u8 = 0;
const P66: u8 = 1;
const PF3: u8 = 2;

// The opcodes' tables.
const MAP_0F: u8 = 1;
const MAP_0F38: u8 = 2;
const MAP_0F3A: u8 = 3;

/// The comparison that is true if one of two floats is not a number.
const UNORDERED: u8 = 0x03;

/// The opcode of an instruction on vectors, with its prefix and its table.
type Opcode = (u8, u8, u8);

/// Where the last operand of an instruction is.
#[derive(Clone, Copy)]
enum Wide {
    Register(Fpr),
    /// At an address and the distance of the loop.
    Elements(Gpr),
    /// At an address.
    Bytes(Gpr),
    /// At an address and a distance.
    Number(Gpr, i32),
}

/// Whether this processor has the instructions.
pub(in crate::graph) fn has_wide_vectors() -> bool {
    level() >= Level::V3
}

impl Float {
    /// The prefix of an instruction on vectors of floats.
    fn wide_prefix(self) -> u8 {
        match self {
            Float::F32 => NONE,
            Float::F64 => P66,
        }
    }
}

impl Assembler {
    /// An instruction with the VEX prefix: a register, or a part of the opcode in its place, and two operands.
    fn vex(&mut self, (prefix, map, opcode): Opcode, is_wide: bool, to: u8, Fpr(left): Fpr, right: Wide) {
        let base = match right {
            Wide::Register(Fpr(base))
            | Wide::Elements(Gpr(base))
            | Wide::Bytes(Gpr(base))
            | Wide::Number(Gpr(base), _) => base,
        };
        // The high bits of registers, and all bits of the second one, are inverted.
        let high = u8::from(to < 8) << 7 | 1 << 6 | u8::from(base < 8) << 5;
        self.bytes.extend([0xc4, high | map, (!left & 0xf) << 3 | u8::from(is_wide) << 2 | prefix, opcode]);
        let (to, base) = ((to & 7) << 3, base & 7);
        match right {
            Wide::Register(_) => self.bytes.push(0xc0 | to | base),
            // A base, an index, and a distance of zero, which bases of some numbers need.
            Wide::Elements(_) => self.bytes.extend([0x44 | to, DISTANCE.0 << 3 | base, 0]),
            // No index, which bases of some numbers need too.
            Wide::Bytes(_) => self.bytes.extend([0x44 | to, 0x20 | base, 0]),
            Wide::Number(_, distance) => {
                debug_assert!(base != 4, "a base that needs an index");
                self.bytes.push(0x80 | to | base);
                self.bytes.extend(distance.to_le_bytes());
            }
        }
    }

    fn wide(&mut self, opcode: Opcode, to: Fpr, left: Fpr, right: Fpr) {
        self.vex(opcode, true, to.0, left, Wide::Register(right));
    }

    /// An instruction on one vector.
    fn wide_of_one(&mut self, opcode: Opcode, to: Fpr, from: Wide) {
        self.vex(opcode, true, to.0, Fpr(0), from);
    }

    /// Ends the use of vectors.
    pub(in crate::graph) fn end_wide(&mut self) {
        // VZEROUPPER.
        self.bytes.extend([0xc5, 0xf8, 0x77]);
    }

    // Memory.

    /// The next vector at an address.
    pub(in crate::graph) fn wide_load(&mut self, to: Fpr, from: Gpr) {
        self.wide_of_one((NONE, MAP_0F, 0x10), to, Wide::Elements(from));
    }

    /// A vector to the place of the next one at an address.
    pub(in crate::graph) fn wide_store(&mut self, to: Gpr, from: Fpr) {
        self.wide_of_one((NONE, MAP_0F, 0x11), from, Wide::Elements(to));
    }

    /// The bytes at an address, one for each element, as integers of four bytes.
    pub(in crate::graph) fn wide_load_bytes(&mut self, to: Fpr, from: Gpr) {
        // VPMOVZXBD.
        self.wide_of_one((P66, MAP_0F38, 0x31), to, Wide::Bytes(from));
    }

    /// Truths of elements of four bytes as bytes, ones or zeros, to an address.
    pub(in crate::graph) fn wide_store_truths(&mut self, to: Gpr, from: Fpr) {
        // VEXTRACTI128 of the upper half, VPACKSSDW, VPACKSSWB, VPABSB and VMOVQ.
        self.vex((P66, MAP_0F3A, 0x39), true, from.0, Fpr(0), Wide::Register(STEP));
        self.bytes.push(1);
        self.vex((P66, MAP_0F, 0x6b), false, STEP.0, from, Wide::Register(STEP));
        self.vex((P66, MAP_0F, 0x63), false, STEP.0, STEP, Wide::Register(STEP));
        self.vex((P66, MAP_0F38, 0x1c), false, STEP.0, Fpr(0), Wide::Register(STEP));
        self.vex((P66, MAP_0F, 0xd6), false, STEP.0, Fpr(0), Wide::Bytes(to));
    }

    /// A number in all elements.
    pub(in crate::graph) fn wide_number(&mut self, element: Element, to: Fpr, (base, distance): (Gpr, i32)) {
        let opcode = if element.bytes() == 4 { 0x18 } else { 0x19 };
        self.wide_of_one((P66, MAP_0F38, opcode), to, Wide::Number(base, distance));
    }

    /// The count of a shift, of eight bytes in memory.
    pub(in crate::graph) fn wide_count(&mut self, _is_left: bool, to: Fpr, (base, distance): (Gpr, i32)) {
        self.vex((PF3, MAP_0F, 0x7e), false, to.0, Fpr(0), Wide::Number(base, distance));
    }

    // Elements.

    /// An operation on two vectors.
    pub(in crate::graph) fn wide_operation(
        &mut self,
        op: ElementOperation,
        element: Element,
        to: Fpr,
        [left, right]: [Fpr; 2],
    ) {
        let of_floats = |opcode| match element {
            Element::Float(float) => Some((float.wide_prefix(), MAP_0F, opcode)),
            _ => None,
        };
        let of_integers = |map, opcode| (P66, map, opcode);
        let opcode = match op {
            ElementOperation::Add => of_floats(0x58).unwrap_or(of_integers(MAP_0F, 0xfe)),
            ElementOperation::Subtract => of_floats(0x5c).unwrap_or(of_integers(MAP_0F, 0xfa)),
            ElementOperation::Multiply => of_floats(0x59).unwrap_or(of_integers(MAP_0F38, 0x40)),
            ElementOperation::Divide => of_floats(0x5e).unwrap_or((NONE, MAP_0F, 0x5e)),
            ElementOperation::And => of_floats(0x54).unwrap_or(of_integers(MAP_0F, 0xdb)),
            ElementOperation::Or => of_floats(0x56).unwrap_or(of_integers(MAP_0F, 0xeb)),
            ElementOperation::Xor => of_floats(0x57).unwrap_or(of_integers(MAP_0F, 0xef)),
        };
        self.wide(opcode, to, left, right);
    }

    /// The square roots of floats.
    pub(in crate::graph) fn wide_square_root(&mut self, float: Float, to: Fpr, from: Fpr) {
        self.wide_of_one((float.wide_prefix(), MAP_0F, 0x51), to, Wide::Register(from));
    }

    /// Floats with other signs.
    pub(in crate::graph) fn wide_sign(&mut self, sign: Sign, float: Float, to: Fpr, from: Fpr) {
        self.all_bits(STEP);
        let (opcode, bits) = match float {
            Float::F32 => (0x72, 31),
            Float::F64 => (0x73, 63),
        };
        // PSLLD or PSLLQ, and PSRLD or PSRLQ, by a number.
        let (extension, count, op) = match sign {
            Sign::Negate => (6, bits, ElementOperation::Xor),
            Sign::Clear => (2, 1, ElementOperation::And),
        };
        self.vex((P66, MAP_0F, opcode), true, extension, STEP, Wide::Register(STEP));
        self.bytes.push(count);
        self.wide_operation(op, Element::Float(float), to, [from, STEP]);
    }

    /// Ones in all bits.
    fn all_bits(&mut self, to: Fpr) {
        self.wide((P66, MAP_0F, 0x76), to, to, to);
    }

    /// Unsigned integers, shifted by the count that `wide_count` has loaded.
    pub(in crate::graph) fn wide_shift(&mut self, is_left: bool, to: Fpr, from: Fpr, count: Fpr) {
        self.wide((P66, MAP_0F, if is_left { 0xf2 } else { 0xd2 }), to, from, count);
    }

    /// Ones in all bits of the elements for which a comparison is true, zeros in others.
    pub(in crate::graph) fn wide_comparison(
        &mut self,
        comparison: Comparison,
        element: Element,
        to: Fpr,
        [left, right]: [Fpr; 2],
    ) {
        if let Element::Float(float) = element {
            let number = match comparison {
                Comparison::Equal => 0x00,
                Comparison::NotEqual => 0x04,
                Comparison::Less => 0x11,
                Comparison::LessOrEqual => 0x12,
                Comparison::GreaterOrEqual => 0x1d,
                Comparison::Greater => 0x1e,
            };
            return self.wide_float_comparison(number, float, to, [left, right]);
        }
        // The first is at least the second if it is the greater one of both.
        let (operands, extreme, is_opposite) = match comparison {
            Comparison::Equal => ([left, right], None, false),
            Comparison::NotEqual => ([left, right], None, true),
            Comparison::GreaterOrEqual => ([left, right], Some(Extreme::Max), false),
            Comparison::Less => ([left, right], Some(Extreme::Max), true),
            Comparison::LessOrEqual => ([left, right], Some(Extreme::Min), false),
            Comparison::Greater => ([left, right], Some(Extreme::Min), true),
        };
        let other = match extreme {
            Some(extreme) => {
                self.wide_extreme(extreme, element, STEP, operands);
                STEP
            }
            None => right,
        };
        self.wide((P66, MAP_0F, 0x76), to, left, other);
        if is_opposite {
            self.all_bits(STEP);
            self.wide_operation(ElementOperation::Xor, element, to, [to, STEP]);
        }
    }

    /// Ones in all bits of the integers, none of them negative, that are not zero.
    pub(in crate::graph) fn wide_truths(&mut self, to: Fpr, from: Fpr) {
        self.wide_operation(ElementOperation::Xor, Element::Signed, STEP, [STEP, STEP]);
        // VPCMPGTD.
        self.wide((P66, MAP_0F, 0x66), to, from, STEP);
    }

    fn wide_float_comparison(&mut self, number: u8, float: Float, to: Fpr, [left, right]: [Fpr; 2]) {
        self.wide((float.wide_prefix(), MAP_0F, 0xc2), to, left, right);
        self.bytes.push(number);
    }

    /// The elements of `yes` where a comparison was true, those of `no` elsewhere.
    pub(in crate::graph) fn wide_select(
        &mut self,
        element: Element,
        to: Fpr,
        truth: Fpr,
        [yes, no]: [Fpr; 2],
    ) {
        let opcode = if element.bytes() == 4 { 0x4a } else { 0x4b };
        self.wide((P66, MAP_0F3A, opcode), to, no, yes);
        self.bytes.push(truth.0 << 4);
    }

    /// The greater or the lesser elements. Of floats, those of `right` that are not numbers; else those of `left`
    /// that are not numbers or that are equal.
    pub(in crate::graph) fn wide_extreme(
        &mut self,
        op: Extreme,
        element: Element,
        to: Fpr,
        [left, right]: [Fpr; 2],
    ) {
        let is_max = op == Extreme::Max;
        match element {
            Element::Float(float) => {
                // MAXPS gives the second operand where one is not a number.
                let opcode = (float.wide_prefix(), MAP_0F, if is_max { 0x5f } else { 0x5d });
                self.wide(opcode, OTHER_STEP, right, left);
                self.wide_float_comparison(UNORDERED, float, STEP, [right, right]);
                self.wide_select(element, to, STEP, [right, OTHER_STEP]);
            }
            Element::Signed => self.wide((P66, MAP_0F38, if is_max { 0x3d } else { 0x39 }), to, left, right),
            Element::Unsigned => {
                self.wide((P66, MAP_0F38, if is_max { 0x3f } else { 0x3b }), to, left, right);
            }
        }
    }

    /// Signed integers as floats of four bytes.
    pub(in crate::graph) fn wide_to_floats(&mut self, to: Fpr, from: Fpr) {
        self.wide_of_one((NONE, MAP_0F, 0x5b), to, Wide::Register(from));
    }
}
