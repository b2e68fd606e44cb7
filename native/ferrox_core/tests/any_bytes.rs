//! Programs and views that random bytes choose.

mod common;

use common::Random;
use common::any_program::{AnyProgram, Fate};
use common::any_view;

/// The number that an environment variable has, if it is set.
fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_program_panics_and_fusion_keeps_the_bits() {
    let first = number("FERROX_SEED", 0);
    let count = number("FERROX_CASES", 20_000);
    let (mut fates, mut failed) = ([0; 4], Vec::new());
    for seed in first..first + count {
        let mut random = Random(seed);
        let length = random.below(400);
        let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        if count == 1 {
            println!("{:#?}", AnyProgram::of(&bytes));
        }
        match std::panic::catch_unwind(|| AnyProgram::of(&bytes).compare()) {
            Ok(fate) => fates[fate as usize] += 1,
            Err(_) => {
                println!("FERROX_CASES=1 FERROX_SEED={seed}");
                failed.push(seed);
            }
        }
        if failed.len() == 20 {
            break;
        }
    }
    println!("refused, failed, given up, finished: {fates:?}");
    assert!(failed.is_empty(), "programs {failed:?} failed");
    assert!(count < 100 || fates[Fate::Finished as usize] * 3 > count, "{fates:?}");
}

#[test]
fn views_have_their_elements() {
    let first = number("FERROX_SEED", 0);
    for seed in first..first + number("FERROX_CASES", 20_000) {
        let mut random = Random(seed);
        let bytes: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
        let compared = std::panic::catch_unwind(|| any_view::compare(&bytes));
        assert!(compared.is_ok(), "FERROX_CASES=1 FERROX_SEED={seed}");
    }
}
