//! Nx, in version 0.13.1 and in version 0.9.
//!
//! Types are on ladders, from narrow to wide. Of two types on one ladder, the wider one is the
//! result. Of two types on different ladders, the type on the ladder with the higher rank is the
//! result, however narrow it is, with two exceptions: an unsigned type widens a signed one to at
//! least twice the size of the unsigned type; and since 0.11 a float widens a complex type in the
//! same way. If two ladders have the same rank, the left type is the result: so Nx does not commute
//! for `f8_e4m3fn` and another float.

use super::node::{NODES, Node, Number};
use super::table::{EMPTY_TABLE, Table};
use super::{Absent, Fit, FoldOrder, Mode, Rules, Scalars, System};
use crate::DType;

/// The types of one kind.
struct Ladder {
    /// The types, from narrow to wide.
    types: &'static [DType],
    rank: u8,
    /// The index of the ladder on which these types count with twice their size.
    doubled_on: Option<usize>,
    /// The result of one of these types and a plain number.
    number: NumberRule,
}

/// The rule for the result of a type and a plain number.
#[derive(Clone, Copy)]
enum NumberRule {
    /// With an integer, the type is widened until it holds the integer; with a float, the result is
    /// `f32`.
    Fit { signed: bool },
    /// With a real number, the result is the type itself.
    Keep,
    /// With any number, the result is the type itself.
    KeepAny,
    /// With a real number, the result is `f32`.
    F32,
}

const UNSIGNED: Ladder = Ladder {
    types: &[DType::U2, DType::U4, DType::U8, DType::U16, DType::U32, DType::U64],
    rank: 0,
    doubled_on: Some(1),
    number: NumberRule::Fit { signed: false },
};

const SIGNED: Ladder = Ladder {
    types: &[DType::S2, DType::S4, DType::S8, DType::S16, DType::S32, DType::S64],
    rank: 1,
    doubled_on: None,
    number: NumberRule::Fit { signed: true },
};

const BFLOAT: Ladder = Ladder { types: &[DType::BF16], rank: 2, doubled_on: None, number: NumberRule::Keep };

const FLOAT: Ladder = Ladder {
    types: &[DType::F8, DType::F16, DType::F32, DType::F64],
    rank: 3,
    doubled_on: Some(4),
    number: NumberRule::Keep,
};

const COMPLEX: Ladder =
    Ladder { types: &[DType::C64, DType::C128], rank: 4, doubled_on: None, number: NumberRule::KeepAny };

const E4M3FN: Ladder =
    Ladder { types: &[DType::F8E4M3FN], rank: 3, doubled_on: None, number: NumberRule::F32 };

/// The ladders of Nx 0.13.1. `doubled_on` is an index into this list, and into the list of 0.9.
const LADDERS: &[Ladder] = &[UNSIGNED, SIGNED, BFLOAT, FLOAT, COMPLEX, E4M3FN];

const LADDERS_0_9: &[Ladder] = &[UNSIGNED, SIGNED, BFLOAT, Ladder { doubled_on: None, ..FLOAT }, COMPLEX];

/// Nx 0.13.1.
pub(super) const NX: System = System {
    name: "nx",
    options: &[],
    modes: &[mode(table(LADDERS), |_, node, number| merge_number(LADDERS, node, number))],
};

/// Nx 0.9.0 to 0.9.2.
pub(super) const NX_0_9: System = System {
    name: "nx_0_9",
    options: &[],
    modes: &[mode(table(LADDERS_0_9), |_, node, number| merge_number(LADDERS_0_9, node, number))],
};

const fn mode(table: Table, with_number: fn(&Mode, Node, Number) -> Option<Node>) -> Mode {
    Mode {
        table,
        lattice: None,
        fold: FoldOrder::Left,
        with_number,
        alone: |number| {
            Some(Node::Type(match number {
                Number::Integer(_) => DType::S32,
                Number::Float(_) => DType::F32,
                Number::Complex(..) => DType::C64,
            }))
        },
        defaults: [DType::S32, DType::F32, DType::C64],
        fit: Fit::Any,
        absent: Absent::Refused,
        rules: Rules::Nx,
        scalars: Scalars::Types,
    }
}

const fn table(ladders: &[Ladder]) -> Table {
    let mut table = EMPTY_TABLE;
    let mut left = 0;
    while left < NODES {
        let mut right = 0;
        while right < NODES {
            if let (Node::Type(l), Node::Type(r)) = (Node::ALL[left], Node::ALL[right])
                && let Some(merged) = merge(ladders, l, r)
            {
                table[left][right] = Some(Node::Type(merged));
            }
            right += 1;
        }
        left += 1;
    }
    table
}

const fn merge(ladders: &[Ladder], left: DType, right: DType) -> Option<DType> {
    let (Some(left_ladder), Some(right_ladder)) = (ladder_index(ladders, left), ladder_index(ladders, right))
    else {
        return None;
    };
    if left_ladder == right_ladder {
        return Some(if left.bits() < right.bits() { right } else { left });
    }
    let (low, low_ladder, high, high_ladder) = if ladders[left_ladder].rank < ladders[right_ladder].rank {
        (left, left_ladder, right, right_ladder)
    } else {
        (right, right_ladder, left, left_ladder)
    };
    match ladders[low_ladder].doubled_on {
        Some(ladder) if ladder == high_ladder => {
            let bits = if low.bits() * 2 > high.bits() { low.bits() * 2 } else { high.bits() };
            Some(narrowest_type(&ladders[high_ladder], bits))
        }
        _ => Some(high),
    }
}

fn merge_number(ladders: &[Ladder], node: Node, number: Number) -> Option<Node> {
    let Node::Type(dtype) = node else { return None };
    let ladder = &ladders[ladder_index(ladders, dtype)?];
    Some(Node::Type(match (ladder.number, number) {
        (NumberRule::Fit { signed }, Number::Integer(integer)) => {
            if integer < 0 && !signed {
                let signed = &ladders[ladder.doubled_on?];
                narrowest_type(signed, needed_bits(integer, true).max(dtype.bits() * 2))
            } else {
                narrowest_type(ladder, needed_bits(integer, signed).max(dtype.bits()))
            }
        }
        (NumberRule::Fit { .. } | NumberRule::F32, Number::Integer(_) | Number::Float(_)) => DType::F32,
        (NumberRule::Keep, Number::Integer(_) | Number::Float(_)) | (NumberRule::KeepAny, _) => dtype,
        // Nx first gives a complex number its own type.
        (_, Number::Complex(..)) => merge(ladders, dtype, DType::C64)?,
    }))
}

/// The number of bits that an integer needs according to Nx. Nx knows no sizes between 1 and 8
/// bits, and counts no sign for an integer of 1 bit: 2 widens `u2` and `s2` to 8 bits, 1 and -2 do
/// not widen them.
fn needed_bits(integer: i128, signed: bool) -> usize {
    let magnitude = if integer < 0 { -(integer + 1) } else { integer };
    let bits = (i128::BITS - magnitude.leading_zeros()) as usize;
    if bits <= 1 { 1 } else { (bits + usize::from(signed)).max(8) }
}

/// The narrowest type of at least `bits` bits, or the widest type of the ladder if there is none.
const fn narrowest_type(ladder: &Ladder, bits: usize) -> DType {
    let mut i = 0;
    while i + 1 < ladder.types.len() && ladder.types[i].bits() < bits {
        i += 1;
    }
    ladder.types[i]
}

/// The index of the ladder that the type is on.
const fn ladder_index(ladders: &[Ladder], dtype: DType) -> Option<usize> {
    let mut i = 0;
    while i < ladders.len() {
        let mut j = 0;
        while j < ladders[i].types.len() {
            if ladders[i].types[j] as usize == dtype as usize {
                return Some(i);
            }
            j += 1;
        }
        i += 1;
    }
    None
}
