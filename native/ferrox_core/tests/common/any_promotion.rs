//! Operands of any bytes, and what must hold of the type that a promotion system gives to them.

use ferrox_core::DType;
use ferrox_core::promotion::{Mode, Node, Number, PromotionOperand, SYSTEMS};

use super::choices::Choices;

fn mode(choices: &mut Choices<'_>) -> (&'static str, &'static Mode) {
    let system = choices.pick(SYSTEMS);
    let options = choices.below(1 << system.options.len());
    (system.name, system.mode(options).expect("options below the number of modes"))
}

/// Any 64 bits.
fn bits(choices: &mut Choices<'_>) -> u64 {
    (0..8).fold(0, |bits, _| bits << 8 | choices.byte() as u64)
}

fn number(choices: &mut Choices<'_>) -> Number {
    match choices.below(6) {
        0 => Number::Integer(choices.below(600) as i128 - 300),
        1 => Number::Integer(bits(choices).into()),
        2 => Number::Integer(i128::from(bits(choices).cast_signed()) << choices.below(64)),
        3 => Number::Float(choices.below(600) as f64 - 300.0),
        4 => Number::Float(f64::from_bits(bits(choices))),
        _ => Number::Complex(f64::from_bits(bits(choices)), choices.byte() as f64),
    }
}

fn operand(choices: &mut Choices<'_>) -> PromotionOperand {
    match choices.below(8) {
        0 => PromotionOperand::Absent,
        1 | 2 => PromotionOperand::Number(number(choices)),
        3 | 4 => PromotionOperand::Array(*choices.pick(&Node::ALL)),
        5 => PromotionOperand::Type(Node::Type(*choices.pick(DType::ALL))),
        _ => PromotionOperand::Type(*choices.pick(&Node::ALL)),
    }
}

/// Asks a system for the type of some operands.
///
/// # Panics
/// If the result is no type of the system, depends on the order of operands of a lattice, or is another
/// one than that of the same pair or of the type alone.
pub fn compare(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let (name, mode) = mode(&mut choices);
    let operands: Vec<PromotionOperand> = (0..choices.below(6)).map(|_| operand(&mut choices)).collect();
    let result = mode.result_type(operands.iter().copied());
    if let Ok(node) = result {
        assert!(mode.knows(node), "{name}: {operands:?} give {node}");
    }
    let types: Option<Vec<Node>> = operands
        .iter()
        .map(|operand| match operand {
            PromotionOperand::Type(node) => Some(*node),
            _ => None,
        })
        .collect();
    match types.as_deref() {
        Some(&[node]) if mode.knows(node) => {
            assert_eq!(result, mode.merge(node, node), "{name}: {operands:?}")
        }
        Some(&[left, right]) if mode.lattice().is_some() => assert_eq!(result, mode.merge(left, right)),
        _ => {}
    }
    if let (Some(mut types), Some(_)) = (types, mode.lattice()) {
        let count = types.len();
        for at in 1..count {
            types.swap(at, choices.below(at + 1));
        }
        let shuffled = mode.result_type(types.into_iter().map(PromotionOperand::Type));
        assert_eq!(result.is_ok(), shuffled.is_ok(), "{name}: {operands:?}");
        if let (Ok(result), Ok(shuffled)) = (result, shuffled) {
            assert_eq!(result, shuffled, "{name}: {operands:?}");
        }
    }
}
