//! Programs, views and promotions that random bytes choose. `bin/fuzz` chooses the bytes by what they reach.

mod common;

use std::path::Path;

use common::Random;
use common::any_program::{AnyProgram, Fate};
use common::{any_promotion, any_view};

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

/// Calls `compare` with random bytes, again and again.
fn compare_random_bytes(compare: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let first = number("FERROX_SEED", 0);
    for seed in first..first + number("FERROX_CASES", 20_000) {
        let mut random = Random(seed);
        let bytes: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
        let compared = std::panic::catch_unwind(|| compare(&bytes));
        assert!(compared.is_ok(), "FERROX_CASES=1 FERROX_SEED={seed}");
    }
}

#[test]
fn views_have_their_elements() {
    compare_random_bytes(any_view::compare);
}

#[test]
fn promotion_systems_give_their_types() {
    compare_random_bytes(any_promotion::compare);
}

/// Calls `compare` with the inputs that the fuzzer begins with.
fn compare_seeds(target: &str, compare: impl Fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let seeds: Vec<_> = std::fs::read_dir(seeds).expect("a directory for each target").collect();
    assert!(seeds.len() >= 50);
    for seed in seeds {
        compare(&std::fs::read(seed.unwrap().path()).unwrap());
    }
}

#[test]
fn seeds_of_the_fuzzer_hold() {
    compare_seeds("programs", |bytes| _ = AnyProgram::of(bytes).compare());
    compare_seeds("views", any_view::compare);
    compare_seeds("promotion", any_promotion::compare);
}
