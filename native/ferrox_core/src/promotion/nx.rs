//! Nx, as it is (0.13.1) and as it was (0.9).
//!
//! Types stand on ladders, narrow to wide. On one ladder the wider type wins.
//! Of two ladders the higher one wins whole, however narrow its type, with two
//! exceptions: an unsigned type pulls a signed one up to twice its own size,
//! and a float does so with a complex type since 0.11. Two ladders may share a
//! rank; then the left operand wins, which is why Nx does not commute where
//! `f8_e4m3fn` meets another float.

use super::node::{NODES, Node, Number};
use super::table::{EMPTY, Table};
use super::{Absent, Fit, Fold, Mode, System};
use crate::DType;

/// Types of one sort.
struct Ladder {
    /// From narrow to wide.
    types: &'static [DType],
    rank: u8,
    /// The ladder where these types count with twice their size.
    doubled_on: Option<usize>,
    /// What a plain number makes of these types.
    number: OnNumber,
}

/// What a plain number makes of a type.
#[derive(Clone, Copy)]
enum OnNumber {
    /// An integer widens the type until it fits; a float makes it `f32`.
    Fit { signed: bool },
    /// Reals leave it as it is.
    Keep,
    /// Every number leaves it as it is.
    KeepAny,
    /// Reals make it `f32`.
    F32,
}

const UNSIGNED: Ladder = Ladder {
    types: &[DType::U2, DType::U4, DType::U8, DType::U16, DType::U32, DType::U64],
    rank: 0,
    doubled_on: Some(1),
    number: OnNumber::Fit { signed: false },
};

const SIGNED: Ladder = Ladder {
    types: &[DType::S2, DType::S4, DType::S8, DType::S16, DType::S32, DType::S64],
    rank: 1,
    doubled_on: None,
    number: OnNumber::Fit { signed: true },
};

const BFLOAT: Ladder = Ladder { types: &[DType::BF16], rank: 2, doubled_on: None, number: OnNumber::Keep };

const FLOAT: Ladder = Ladder {
    types: &[DType::F8, DType::F16, DType::F32, DType::F64],
    rank: 3,
    doubled_on: Some(4),
    number: OnNumber::Keep,
};

const COMPLEX: Ladder =
    Ladder { types: &[DType::C64, DType::C128], rank: 4, doubled_on: None, number: OnNumber::KeepAny };

const E4M3FN: Ladder = Ladder { types: &[DType::F8E4M3FN], rank: 3, doubled_on: None, number: OnNumber::F32 };

/// `doubled_on` is an index into this list and the next.
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

const fn mode(table: Table, numbers: fn(&Mode, Node, Number) -> Option<Node>) -> Mode {
    Mode {
        table,
        lattice: None,
        fold: Fold::Left,
        numbers,
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
    }
}

const fn table(ladders: &[Ladder]) -> Table {
    let mut table = EMPTY;
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
    let (Some(on_left), Some(on_right)) = (find(ladders, left), find(ladders, right)) else {
        return None;
    };
    if on_left == on_right {
        return Some(if left.bits() < right.bits() { right } else { left });
    }
    let (low, low_ladder, high, high_ladder) = if ladders[on_left].rank < ladders[on_right].rank {
        (left, on_left, right, on_right)
    } else {
        (right, on_right, left, on_left)
    };
    match ladders[low_ladder].doubled_on {
        Some(ladder) if ladder == high_ladder => {
            let bits = if low.bits() * 2 > high.bits() { low.bits() * 2 } else { high.bits() };
            Some(climb(&ladders[high_ladder], bits))
        }
        _ => Some(high),
    }
}

fn merge_number(ladders: &[Ladder], node: Node, number: Number) -> Option<Node> {
    let Node::Type(dtype) = node else { return None };
    let ladder = &ladders[find(ladders, dtype)?];
    Some(Node::Type(match (ladder.number, number) {
        (OnNumber::Fit { signed }, Number::Integer(integer)) => {
            if integer < 0 && !signed {
                let signed = &ladders[ladder.doubled_on?];
                climb(signed, needed(integer, true).max(dtype.bits() * 2))
            } else {
                climb(ladder, needed(integer, signed).max(dtype.bits()))
            }
        }
        (OnNumber::Fit { .. } | OnNumber::F32, Number::Integer(_) | Number::Float(_)) => DType::F32,
        (OnNumber::Keep, Number::Integer(_) | Number::Float(_)) | (OnNumber::KeepAny, _) => dtype,
        // Nx gives such a number its own type first.
        (_, Number::Complex(..)) => merge(ladders, dtype, DType::C64)?,
    }))
}

/// The bits that Nx finds an integer to need. Its count knows no sizes between
/// 1 and 8 bits, and a 1 bit integer takes no sign: 2 widens `u2` and `s2` to 8
/// bits, 1 and -2 leave them.
fn needed(integer: i128, signed: bool) -> usize {
    let magnitude = if integer < 0 { -(integer + 1) } else { integer };
    let bits = (i128::BITS - magnitude.leading_zeros()) as usize;
    if bits <= 1 { 1 } else { (bits + usize::from(signed)).max(8) }
}

/// The narrowest type of at least that size, or the widest there is.
const fn climb(ladder: &Ladder, bits: usize) -> DType {
    let mut i = 0;
    while i + 1 < ladder.types.len() && ladder.types[i].bits() < bits {
        i += 1;
    }
    ladder.types[i]
}

/// The index of the ladder that the type stands on.
const fn find(ladders: &[Ladder], dtype: DType) -> Option<usize> {
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
