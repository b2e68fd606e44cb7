//! Results that are large enough for streaming stores, at aligned and unaligned addresses.

use ferrox_core::exec::memory::streaming_stores;
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::ops::cast::as_type;
use ferrox_core::ops::shape::{concatenate, reverse};
use ferrox_core::{DType, Error, Output, Tensor};

const ROWS: usize = 2_801;
const COLUMNS: usize = 3_001;
const SHAPE: [usize; 2] = [ROWS, COLUMNS];

/// Returns a number that f32 holds exactly, a different one for almost every index.
fn number(i: usize) -> f32 {
    (i % 8_388_593) as f32 - 4e6
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).flat_map(|i| number(i).to_ne_bytes()).collect()
}

/// Checks every element of a result at several addresses.
fn check<E: PartialEq + Copy + std::fmt::Debug>(
    dtype: DType,
    shape: &[usize],
    load: impl Fn(&[u8]) -> E,
    op: impl Fn(Output<'_>) -> Result<(), Error>,
    expected: impl Fn(usize) -> E,
) {
    let length = shape.iter().product::<usize>() * dtype.width();
    for start in [0, 16, 1] {
        let mut memory = vec![0xff; length + 1 + 16];
        let out = &mut memory[start..start + length];
        assert!(streaming_stores::is_large(out.len()), "too small to be written past the caches");
        op(Output::new("test", dtype, shape, out).expect("as long")).expect("sound");
        for (i, element) in out.chunks_exact(dtype.width()).enumerate() {
            assert_eq!(load(element), expected(i), "at {i}, from {start}");
        }
    }
}

fn f32_of(bytes: &[u8]) -> f32 {
    f32::from_ne_bytes(bytes.try_into().expect("four"))
}

#[test]
fn elementwise_operations() {
    let (all, row) = (bytes(ROWS * COLUMNS), bytes(COLUMNS));
    let tensor = Tensor::new("test", DType::F32, &SHAPE, &all).expect("as long");
    let row = Tensor::new("test", DType::F32, &[1, COLUMNS], &row).expect("as long");
    let twice = |out: Output<'_>| binary(BinaryOp::Add, out, &tensor, &tensor);
    check(DType::F32, &SHAPE, f32_of, twice, |i| 2.0 * number(i));
    let with_row = |out: Output<'_>| binary(BinaryOp::Subtract, out, &tensor, &row);
    check(DType::F32, &SHAPE, f32_of, with_row, |i| number(i) - number(i % COLUMNS));
    let f64_of = |bytes: &[u8]| f64::from_ne_bytes(bytes.try_into().expect("eight"));
    check(DType::F64, &SHAPE, f64_of, |out| as_type(out, &tensor), |i| f64::from(number(i)));
}

#[test]
fn moved_elements() {
    let all = bytes(ROWS * COLUMNS);
    let tensor = Tensor::new("test", DType::F32, &SHAPE, &all).expect("as long");
    let backwards = |out: Output<'_>| reverse(out, &tensor, &[0, 1]);
    check(DType::F32, &SHAPE, f32_of, backwards, |i| number(ROWS * COLUMNS - 1 - i));
    let mirrored = |out: Output<'_>| reverse(out, &tensor, &[1]);
    let mirror = |i: usize| number(i / COLUMNS * COLUMNS + (COLUMNS - 1 - i % COLUMNS));
    check(DType::F32, &SHAPE, f32_of, mirrored, mirror);
    let side_by_side = |out: Output<'_>| concatenate(out, &[tensor.clone(), tensor.clone()], 1);
    let half = |i: usize| number(i / (2 * COLUMNS) * COLUMNS + i % COLUMNS);
    check(DType::F32, &[ROWS, 2 * COLUMNS], f32_of, side_by_side, half);
}
