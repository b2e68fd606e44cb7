//! The processor that machine code is for: what the assemblers of all processors have in common.
//!
//! Each processor's file names its registers and adds the instructions that templates use to [`Assembler`],
//! all under the same names. Instructions have two operands, the first of which is replaced by the result,
//! as on x86-64; a processor with three simply repeats the first one. Those on wide vectors, as wide as the
//! processor has them, have three (`avx2`, `neon`).

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(in crate::graph) use self::aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(in crate::graph) use self::x86_64::*;
use crate::DType;
use crate::ops::binary::BinaryOp;

/// A general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) struct Gpr(u8);

/// A register of floats or of a vector of 16 bytes. Of a float, it has the bytes in the first element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) struct Fpr(u8);

/// Registers of floats that a function may change, from one on.
const fn float_registers<const COUNT: usize>(first: u8) -> [Fpr; COUNT] {
    let [saved, end] = SAVED_FLOATS;
    let mut registers = [Fpr(first); COUNT];
    let (mut index, mut number) = (0, first);
    while index < COUNT {
        if number == saved {
            number = end;
        }
        registers[index] = Fpr(number);
        (index, number) = (index + 1, number + 1);
    }
    registers
}

// The registers for the steps of a template.
pub(in crate::graph) const FLOAT: Fpr = Fpr(0);
pub(in crate::graph) const OTHER_FLOAT: Fpr = Fpr(1);
pub(in crate::graph) const THIRD_FLOAT: Fpr = Fpr(2);

/// What an instruction reads or writes besides its first register.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum Operand {
    Gpr(Gpr),
    Fpr(Fpr),
    /// The memory at a register and a distance in bytes.
    Memory(Gpr, i32),
}

/// The number of bytes that an integer instruction computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Size {
    Four,
    Eight,
}

/// The type of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Float {
    F32,
    F64,
}

/// A condition that a comparison has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Condition {
    Equal,
    NotEqual,
    /// Of unsigned integers, as the next three.
    Below,
    AboveOrEqual,
    BelowOrEqual,
    Above,
    /// Of signed integers, as the next three.
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Greater,
    /// Of the last result.
    Negative,
    NotNegative,
    /// Of floats.
    FloatsEqual,
    /// Of floats.
    FloatsNotEqual,
}

/// A comparison of two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An operation on integers.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum Integer {
    Add,
    Subtract,
    And,
    Or,
    Xor,
    Compare,
}

/// An operation on floats.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Of the second operand.
    SquareRoot,
}

/// One of two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Extreme {
    Max,
    Min,
}

/// The elements of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Element {
    Float(Float),
    /// A signed integer of four bytes.
    Signed,
    /// An unsigned integer of four bytes.
    Unsigned,
}

/// An operation on the elements of two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum ElementOperation {
    Add,
    Subtract,
    Multiply,
    /// Of floats.
    Divide,
    And,
    Or,
    Xor,
}

/// What changes the signs of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Sign {
    Negate,
    Clear,
}

/// A place in the code that jumps go to.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) struct Label(usize);

/// Instructions as bytes.
#[derive(Debug, Default)]
pub(in crate::graph) struct Assembler {
    bytes: Vec<u8>,
    /// Where labels are.
    labels: Vec<Option<usize>>,
    /// The places of distances to labels.
    jumps: Vec<(usize, Label)>,
}

impl Condition {
    /// The condition that holds where this one does not.
    pub(in crate::graph) fn not(self) -> Self {
        use Condition::*;
        match self {
            Equal => NotEqual,
            NotEqual => Equal,
            Below => AboveOrEqual,
            AboveOrEqual => Below,
            BelowOrEqual => Above,
            Above => BelowOrEqual,
            Less => GreaterOrEqual,
            GreaterOrEqual => Less,
            LessOrEqual => Greater,
            Greater => LessOrEqual,
            Negative => NotNegative,
            NotNegative => Negative,
            FloatsEqual => FloatsNotEqual,
            FloatsNotEqual => FloatsEqual,
        }
    }
}

impl Comparison {
    /// The comparison that an operation is.
    pub(in crate::graph) fn of(op: BinaryOp) -> Option<Self> {
        Some(match op {
            BinaryOp::Equal => Comparison::Equal,
            BinaryOp::NotEqual => Comparison::NotEqual,
            BinaryOp::Less => Comparison::Less,
            BinaryOp::LessEqual => Comparison::LessOrEqual,
            BinaryOp::Greater => Comparison::Greater,
            BinaryOp::GreaterEqual => Comparison::GreaterOrEqual,
            _ => return None,
        })
    }
}

impl Float {
    /// The floats of a type.
    pub(in crate::graph) fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::F32 => Some(Float::F32),
            DType::F64 => Some(Float::F64),
            _ => None,
        }
    }

    /// The number of bytes of an element.
    pub(in crate::graph) fn bytes(self) -> usize {
        match self {
            Float::F32 => 4,
            Float::F64 => 8,
        }
    }
}

impl Element {
    /// The number of bytes of an element.
    pub(in crate::graph) fn bytes(self) -> usize {
        match self {
            Element::Float(float) => float.bytes(),
            Element::Signed | Element::Unsigned => 4,
        }
    }
}

impl Assembler {
    /// A label that is not in the code yet.
    pub(in crate::graph) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Puts a label here.
    pub(in crate::graph) fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.bytes.len());
    }

    /// The distance of a label from the first byte.
    pub(in crate::graph) fn place(&self, label: Label) -> Option<usize> {
        self.labels[label.0]
    }

    /// Begins the loop over wide vectors.
    pub(in crate::graph) fn begin_wide(&mut self) {
        self.constant(DISTANCE, 0);
    }

    /// Goes on with an address to the next bytes, one for each element of four bytes.
    pub(in crate::graph) fn next_bytes(&mut self, address: Gpr) {
        self.subtract_number(address, -(WIDE_BYTES as i32 / 4));
    }

    /// Goes to the next wide vectors, and sets conditions: `Below` if there are some.
    pub(in crate::graph) fn next_wide(&mut self) {
        self.subtract_number(DISTANCE, -(WIDE_BYTES as i32));
        self.integer(Integer::Compare, Size::Eight, DISTANCE, Operand::Gpr(ALL_BYTES));
    }

    /// Compares two floats. Returns the condition that holds if the comparison is true.
    pub(in crate::graph) fn compare_floats(
        &mut self,
        comparison: Comparison,
        float: Float,
        [left, right]: [Fpr; 2],
    ) -> Condition {
        // Where one is not a number, it is not greater, but may count as less.
        let (operands, condition) = match comparison {
            Comparison::Equal => ([left, right], Condition::FloatsEqual),
            Comparison::NotEqual => ([left, right], Condition::FloatsNotEqual),
            Comparison::Less => ([right, left], FLOAT_GREATER),
            Comparison::LessOrEqual => ([right, left], FLOAT_GREATER_OR_EQUAL),
            Comparison::Greater => ([left, right], FLOAT_GREATER),
            Comparison::GreaterOrEqual => ([left, right], FLOAT_GREATER_OR_EQUAL),
        };
        self.set_conditions(float, operands);
        condition
    }

    /// The bytes, with the distances of all jumps. `None` if a label is nowhere, or too far away.
    pub(in crate::graph) fn finish(mut self) -> Option<Vec<u8>> {
        for (at, label) in std::mem::take(&mut self.jumps) {
            let distance = self.place(label)? as i64 - at as i64;
            self.set_distance(at, distance)?;
        }
        Some(self.bytes)
    }
}
