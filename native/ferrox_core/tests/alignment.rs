//! Results don't depend on the alignment of the operands and the result to cache lines.

use ferrox_core::DType::{self, *};
use ferrox_core::ops::binary::{BinaryOp, binary};
use ferrox_core::ops::cast::as_type;
use ferrox_core::ops::dot::{Side, dot};
use ferrox_core::{Error, Fault, Output, Tensor};

const SIZE: usize = 20_011;
const LINE: usize = 64;

/// Memory that holds some bytes a given number of bytes after the start of a cache line.
struct Placed {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Placed {
    fn new(bytes: &[u8], after: usize) -> Self {
        let mut memory = vec![0xA5; bytes.len() + 2 * LINE];
        let start = memory.as_ptr().align_offset(LINE) + after;
        memory[start..start + bytes.len()].copy_from_slice(bytes);
        Placed { memory, start, length: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

fn numbers(dtype: DType) -> Vec<u8> {
    // Sums of these numbers depend on the order of addition.
    let number = |i: usize| (((i * 7919) % 251) as f64 - 100.5) / 3.0;
    let wide: Vec<u8> = (0..SIZE).flat_map(|i| number(i).to_ne_bytes()).collect();
    let mut bytes = vec![0; SIZE * dtype.width()];
    let wide = Tensor::new("test", F64, &[SIZE], &wide).expect("as long");
    as_type(Output::new("test", dtype, &[SIZE], &mut bytes).expect("as long"), &wide).expect("defined");
    bytes
}

/// Calls `run` for several alignments of two operands and the result, and compares the results.
fn everywhere(
    dtypes: [DType; 2],
    out: DType,
    run: impl Fn(Output<'_>, &Tensor<'_>, &Tensor<'_>) -> Result<(), Error>,
) {
    let operands = dtypes.map(numbers);
    let mut first: Option<Vec<u8>> = None;
    for (left_after, right_after, out_after) in
        [(0, 0, 0), (8, 16, 24), (16, 16, 16), (0, 56, 8), (1, 3, 5), (40, 8, 1), (3, 0, 32)]
    {
        let [left, right] = [left_after, right_after];
        let [left, right] = [Placed::new(&operands[0], left), Placed::new(&operands[1], right)];
        let mut placed = Placed::new(&vec![0x5A; SIZE * out.width()], out_after);
        let [left, right] = [(dtypes[0], &left), (dtypes[1], &right)]
            .map(|(dtype, placed)| Tensor::new("test", dtype, &[SIZE], placed.bytes()).expect("as long"));
        let range = placed.start..placed.start + placed.length;
        let bytes = &mut placed.memory[range];
        run(Output::new("test", out, &[SIZE], bytes).expect("as long"), &left, &right).expect("defined");
        let around = [&placed.memory[..placed.start], &placed.memory[placed.start + placed.length..]];
        assert!(around.concat().iter().all(|&byte| byte == 0xA5), "wrote past its result");
        match &first {
            None => first = Some(placed.bytes().to_vec()),
            Some(first) => assert!(first == placed.bytes(), "{dtypes:?} to {out} at {out_after}"),
        }
    }
}

#[test]
fn operations_of_two() {
    for (dtype, out) in [(F32, F32), (F64, U8), (U8, U8), (BF16, BF16), (C64, C64), (S64, S64)] {
        let op = if out == dtype { BinaryOp::Multiply } else { BinaryOp::Less };
        everywhere([dtype; 2], out, |out, left, right| binary(op, out, left, right));
    }
    everywhere([U8, F32], F32, |out, left, right| binary(BinaryOp::Add, out, left, right));
}

#[test]
fn casts() {
    for (from, to) in [(F32, F64), (F64, F32), (F32, U8), (F32, S32), (BF16, F32), (F16, F32), (U8, S64)] {
        everywhere([from; 2], to, |out, input, _| as_type(out, input));
    }
}

/// Tests rows with and without whole cache lines, with and without elements after the last stripe,
/// and fewer and more rows than are multiplied side by side.
#[test]
fn matrices_with_vectors() {
    for dtype in [F32, F64, C64, S32] {
        for [m, k] in [[1, 4_160], [7, 608], [90, 64], [131, 96], [64, 80], [41, 101], [17, 1_024]] {
            let numbers = numbers(dtype);
            let width = dtype.width();
            let [matrix, vector] = [&numbers[..m * k * width], &numbers[numbers.len() - k * width..]];
            let mut first: Option<Vec<u8>> = None;
            for (matrix_after, vector_after) in
                [(0, 0), (16, 16), (16, 8), (56, 0), (4, 60), (3, 16), (48, 1)]
            {
                let (matrix, vector) = (Placed::new(matrix, matrix_after), Placed::new(vector, vector_after));
                let shapes = [[1, m, k], [1, k, 1], [1, m, 1]];
                let [left, right] = [(&shapes[0], &matrix), (&shapes[1], &vector)].map(|(shape, placed)| {
                    Tensor::new("test", dtype, shape, placed.bytes()).expect("as long")
                });
                let mut result = vec![0x5A; m * width];
                let out = Output::new("test", dtype, &shapes[2], &mut result).expect("as long");
                let left = Side { tensor: &left, contract: &[2], batch: &[0] };
                dot(out, left, Side { tensor: &right, contract: &[1], batch: &[0] }).expect("defined");
                let first = first.get_or_insert_with(|| result.clone());
                assert!(*first == result, "{dtype}, {m} by {k}, at {matrix_after} and {vector_after}");
            }
        }
    }
}

#[test]
fn faults_before_the_first_line() {
    let mut zero = vec![1; SIZE * 4];
    zero[..4].fill(0);
    let placed = Placed::new(&zero, 8);
    let tensor = Tensor::new("test", S32, &[SIZE], placed.bytes()).expect("as long");
    let mut out = Placed::new(&zero, 8);
    let (start, length) = (out.start, out.length);
    let bytes = &mut out.memory[start..start + length];
    let out = Output::new("test", S32, &[SIZE], bytes).expect("as long");
    let divided = binary(BinaryOp::Quotient, out, &tensor, &tensor);
    assert!(matches!(divided, Err(Error::Element { fault: Fault::DivisionByZero, .. })), "{divided:?}");
}
