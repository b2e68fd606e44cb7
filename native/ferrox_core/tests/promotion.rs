//! Every cell of the golden tables, and the laws that the tables keep.

use ferrox_core::DType;
use ferrox_core::promotion::{Number, SYSTEMS, System};

/// A system, and the version that its golden files are named after.
const GOLDEN: &[(&str, &str)] = &[("nx", "0.13.1"), ("nx_0_9", "0.9.2")];

fn system(name: &str) -> &'static System {
    System::named(name).unwrap_or_else(|| panic!("no system {name}"))
}

fn dtype(name: &str) -> DType {
    *DType::ALL.iter().find(|d| d.name() == name).unwrap_or_else(|| panic!("no type {name}"))
}

/// Calls `check(row, column, cell)` for every cell and returns their number.
fn each_cell(file: &str, mut check: impl FnMut(&str, &str, &str)) -> usize {
    let path = format!("{}/../../test/fixtures/promotion/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut lines = text.lines().map(|line| line.split(','));
    let header: Vec<&str> = lines.next().expect("a header").skip(1).collect();
    let mut cells = 0;
    for mut line in lines {
        let row = line.next().expect("the row's name");
        let values: Vec<&str> = line.collect();
        assert_eq!(values.len(), header.len(), "{file}, row {row}");
        for (column, cell) in header.iter().zip(values) {
            check(row, column, cell);
            cells += 1;
        }
    }
    cells
}

/// How the golden files write a number, with bignums clamped as Elixir does.
fn number(text: &str) -> Option<Number> {
    if let Ok(integer) = text.parse::<i128>() {
        return Some(Number::Integer(integer.clamp(i64::MIN.into(), u64::MAX.into())));
    }
    if text.parse::<f64>().is_ok() {
        return Some(Number::Float);
    }
    text.starts_with("complex").then_some(Number::Complex)
}

#[test]
fn every_system_has_golden_files() {
    let golden: Vec<&str> = GOLDEN.iter().map(|(name, _)| *name).collect();
    let systems: Vec<&str> = SYSTEMS.iter().map(|system| system.name).collect();
    assert_eq!(systems, golden);
}

#[test]
fn merges_are_golden() {
    for (name, version) in GOLDEN {
        let system = system(name);
        let cells = each_cell(&format!("nx_merge_{version}.csv"), |left, right, expected| {
            let merged = system.merge(dtype(left), dtype(right)).map(DType::name);
            assert_eq!(merged, Ok(expected), "{name}: {left} with {right}");
        });
        assert_eq!(cells, system.types().count().pow(2), "{name}");
    }
}

#[test]
fn merges_with_numbers_are_golden() {
    for (name, version) in GOLDEN {
        let mut skipped = 0;
        let cells = each_cell(&format!("nx_merge_number_{version}.csv"), |value, left, expected| {
            // Atoms are Elixir's to judge.
            let Some(number) = number(value) else {
                skipped += 1;
                return;
            };
            let merged = system(name).merge_number(dtype(left), number).map_or("undefined", DType::name);
            let expected = if expected.starts_with("ERR") { "undefined" } else { expected };
            assert_eq!(merged, expected, "{name}: {left} with {value}");
        });
        assert_eq!(skipped, 6 * system(name).types().count(), "{name}");
        assert_eq!(cells, 80 * system(name).types().count(), "{name}");
    }
}

/// Integers beyond 64 bits change nothing, clamped or not.
#[test]
fn numbers_never_overflow() {
    for system in SYSTEMS {
        for dtype in system.types() {
            for (clamped, beyond) in [(i128::from(u64::MAX), i128::MAX), (i64::MIN.into(), i128::MIN)] {
                assert_eq!(
                    system.merge_number(dtype, Number::Integer(clamped)),
                    system.merge_number(dtype, Number::Integer(beyond)),
                    "{}: {dtype} with {beyond}",
                    system.name
                );
            }
        }
    }
}

#[test]
fn merging_a_type_with_itself_keeps_it() {
    for system in SYSTEMS {
        for dtype in system.types() {
            assert_eq!(system.merge(dtype, dtype), Ok(dtype), "{}", system.name);
        }
    }
}

/// Operands commute, but for `f8_e4m3fn` with another float, where the left
/// one wins.
#[test]
fn merge_commutes() {
    for (name, exceptions) in [("nx", 4), ("nx_0_9", 0)] {
        let system = system(name);
        let mut found = 0;
        for a in system.types() {
            for b in system.types().filter(|&b| (b as usize) < a as usize) {
                let (left, right) = (system.merge(a, b), system.merge(b, a));
                if left != right {
                    assert!(a == DType::F8E4M3FN || b == DType::F8E4M3FN, "{name}: {a} with {b}");
                    assert_eq!((left, right), (Ok(a), Ok(b)), "{name}: {a} with {b}");
                    found += 1;
                }
            }
        }
        assert_eq!(found, exceptions, "{name}");
    }
}

/// Grouping doesn't matter, but where `f8_e4m3fn` is among the operands.
#[test]
fn merge_associates() {
    for (name, exceptions) in [("nx", 8), ("nx_0_9", 0)] {
        let system = system(name);
        let mut found = 0;
        for a in system.types() {
            for b in system.types() {
                for c in system.types() {
                    let left = system.merge(a, b).and_then(|ab| system.merge(ab, c));
                    let right = system.merge(b, c).and_then(|bc| system.merge(a, bc));
                    if left != right {
                        assert!([a, b, c].contains(&DType::F8E4M3FN), "{name}: {a}, {b}, {c}");
                        found += 1;
                    }
                }
            }
        }
        assert_eq!(found, exceptions, "{name}");
    }
}

#[test]
fn what_a_system_leaves_open_is_an_error() {
    let old = system("nx_0_9");
    assert!(!old.knows(DType::F8E4M3FN));
    let error = old.merge(DType::F8E4M3FN, DType::F32).unwrap_err();
    assert_eq!(
        error.to_string(),
        "nx_0_9 does not define the promotion of f8_e4m3fn with f32: it has no type f8_e4m3fn"
    );
    assert!(old.merge(DType::F32, DType::F8E4M3FN).is_err());
    assert!(old.merge(DType::F8E4M3FN, DType::F8E4M3FN).is_err());
    let error = old.merge_number(DType::F8E4M3FN, Number::Float).unwrap_err();
    let message = "nx_0_9 does not define the promotion of f8_e4m3fn with a number: it has no type f8_e4m3fn";
    assert_eq!(error.to_string(), message);
    let error = system("nx").merge_number(DType::F32, Number::Complex).unwrap_err();
    assert_eq!(error.to_string(), "nx does not define the promotion of f32 with a number that is not real");
}
