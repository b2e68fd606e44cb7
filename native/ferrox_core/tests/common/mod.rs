//! Code that the tests of all families share: views of every kind, values that are worth testing,
//! and an output buffer that detects stray writes.

#![allow(dead_code, reason = "every family is a crate of its own and uses a part")]

pub mod any_program;
pub mod any_promotion;
pub mod any_view;
pub mod choices;
pub mod exact;
pub mod number;
pub mod programs;
pub mod real_functions;

use ferrox_core::layout::{Layout, row_major};
use ferrox_core::ops::binary::BinaryOp;
use ferrox_core::promotion::System;
use ferrox_core::{DType, Error, Output, Tensor};
use number::{Number, cast, from_bytes, landmarks, same, to_bytes, to_floating, value};

/// The type that Nx gives to two types together.
pub fn merge(left: DType, right: DType) -> DType {
    System::named("nx").expect("the default system").merge(left, right).expect("every pair")
}

/// The type that Nx gives to the result of an operation on two tensors.
pub fn result_type(op: BinaryOp, left: DType, right: DType) -> DType {
    let merged = merge(left, right);
    match op {
        _ if op.is_predicate() => DType::U8,
        BinaryOp::Divide | BinaryOp::Atan2 => to_floating(merged),
        _ => merged,
    }
}

/// A process that runs one test of this file again. `FERROX_TEST_RUNNER` is what runs programs of
/// the tests' architecture where the system itself can't: an emulator and its options.
pub fn process_of(test: &str) -> std::process::Command {
    let this = std::env::current_exe().expect("a test binary");
    let runner = std::env::var("FERROX_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = match words.next() {
        Some(emulator) => {
            let mut command = std::process::Command::new(emulator);
            command.args(words).arg(this);
            command
        }
        None => std::process::Command::new(this),
    };
    command.args(["--exact", test]);
    command
}

/// The SplitMix64 generator. It gives the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A number from -1 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() as i64) as f64 / 2f64.powi(63)
    }

    pub fn bits(&mut self, dtype: DType) -> u128 {
        let bits = u128::from(self.next()) | u128::from(self.next()) << 64;
        if dtype.bits() == 128 { bits } else { bits & ((1 << dtype.bits()) - 1) }
    }
}

/// The values of a type for which arithmetic is most likely to be wrong, without duplicates.
pub fn special(dtype: DType) -> Vec<Number> {
    let mut numbers: Vec<Number> = Vec::new();
    let integers =
        [0, 1, 2, 3, 7, 63, 64, 127, 1 << 24 | 1, 1 << 53 | 1, (1 << 62) + (1 << 54) + 1, i64::MAX];
    for i in integers.map(i128::from).into_iter().chain([1 << 63, u64::MAX.into()]) {
        numbers.extend([Number::Integer(i), Number::Integer(-i)]);
    }
    if dtype.is_integer() {
        let (min, max) = number::bounds(dtype);
        numbers.extend([min, min + 1, max - 1, max].map(Number::Integer));
    } else {
        let [largest, normal, smallest] = landmarks(dtype);
        let odd = [
            0.5,
            1.5,
            2.5,
            1.0 / 3.0,
            1e-3,
            0.1 + 0.2,
            largest,
            largest / 2.0,
            normal,
            normal * 0.75,
            smallest,
        ];
        let reals: Vec<f64> = odd.into_iter().chain([0.0, f64::INFINITY]).flat_map(|x| [x, -x]).collect();
        numbers.extend(reals.iter().map(|&x| Number::Real(x)));
        numbers.push(Number::Real(f64::NAN));
        if dtype.is_complex() {
            for (i, &re) in reals.iter().enumerate() {
                numbers.extend(
                    [(re, reals[(i * 7 + 3) % reals.len()]), (0.0, re)]
                        .map(|(re, im)| Number::Complex(re, im)),
                );
            }
            numbers.push(Number::Complex(1.0, f64::NAN));
        }
    }
    distinct(numbers, dtype)
}

/// Casts the numbers to a type, and removes duplicates.
fn distinct(numbers: Vec<Number>, dtype: DType) -> Vec<Number> {
    let mut seen = std::collections::HashSet::new();
    numbers
        .into_iter()
        .map(|n| cast(n, dtype))
        .filter(|&bits| seen.insert(bits))
        .map(|bits| value(bits, dtype))
        .collect()
}

/// Returns `count` values: special values, values of moderate magnitude, and random bits.
pub fn values(dtype: DType, count: usize, random: &mut Random) -> Vec<Number> {
    let special = special(dtype);
    let one = |i: usize| match i % 4 {
        0 | 1 => *random.pick(&special),
        2 => {
            let mut moderate =
                || if dtype.is_integer() { random.unit() * 100.0 } else { random.unit() * 8.0 };
            value(cast(Number::Complex(moderate(), moderate()), dtype), dtype)
        }
        _ => value(random.bits(dtype), dtype),
    };
    (0..count).map(one).collect()
}

/// Returns all values of a type of at most 16 bits.
pub fn all_values(dtype: DType) -> Vec<Number> {
    (0..1u128 << dtype.bits()).map(|bits| value(bits, dtype)).collect()
}

/// Returns the special values, and all values of a type of at most 16 bits or `count` of another.
pub fn all_or_some_values(dtype: DType, count: usize, random: &mut Random) -> Vec<Number> {
    let more = if dtype.bits() <= 16 { all_values(dtype) } else { values(dtype, count, random) };
    [special(dtype), more].concat()
}

/// The layout of a tensor in the memory of its buffer.
#[derive(Clone, Debug)]
pub struct View {
    pub name: &'static str,
    /// The shape of the buffer.
    pub base: Vec<usize>,
    pub layout: Layout,
}

/// Returns a view of each kind for a shape.
pub fn views(shape: &[usize]) -> Vec<View> {
    let rank = shape.len();
    let size: usize = shape.iter().product();
    let dense = Layout::contiguous(shape);
    let mut views = vec![
        View { name: "contiguous", base: shape.to_vec(), layout: dense.clone() },
        View { name: "offset", base: vec![size + 5], layout: Layout { offset: 3, ..dense.clone() } },
    ];
    let zero = |layout: Layout, axis: usize| {
        let mut strides = layout.strides;
        strides[axis] = 0;
        Layout { strides, ..layout }
    };
    if rank == 0 {
        return views;
    }
    let all: Vec<usize> = (0..rank).collect();
    let with = |axis: usize, dim: usize| {
        let mut base = shape.to_vec();
        base[axis] = dim;
        base
    };
    let permuted = |name, axes: &[usize]| {
        let mut base = vec![0; rank];
        for (i, &axis) in axes.iter().enumerate() {
            base[axis] = shape[i];
        }
        let layout = Layout::contiguous(&base).transpose(axes);
        View { name, base, layout }
    };
    views.push(View { name: "reversed", base: shape.to_vec(), layout: dense.reverse(&all) });
    let doubled: Vec<usize> = shape.iter().map(|d| d * 2 + 1).collect();
    let (starts, steps) = (vec![1; rank], vec![2; rank]);
    let layout = Layout::contiguous(&doubled).slice(&starts, shape, &steps);
    views.push(View { name: "stepped", base: doubled, layout });
    let wider = with(rank - 1, shape[rank - 1] + 3);
    let mut starts = vec![0; rank];
    starts[rank - 1] = 2;
    let layout = Layout::contiguous(&wider).slice(&starts, shape, &vec![1; rank]);
    views.push(View { name: "narrowed", base: wider, layout });
    let first = with(0, 1);
    let layout = zero(Layout { shape: shape.into(), strides: row_major(&first), offset: 0 }, 0);
    views.push(View { name: "first axis broadcast", base: first, layout });
    let last = with(rank - 1, 1);
    let layout = zero(Layout { shape: shape.into(), strides: row_major(&last), offset: 0 }, rank - 1);
    views.push(View { name: "last axis broadcast", base: last, layout });
    // The buffer has as many elements as the view, but the view has only one of its rows.
    let base = with(0, shape[0].max(2));
    let mut layout = zero(Layout { shape: shape.into(), strides: row_major(&base), offset: 0 }, 0);
    layout.offset = shape[1..].iter().product();
    views.push(View { name: "narrowed, then broadcast", base, layout });
    let strides = all.iter().map(|_| 0).collect();
    views.push(View {
        name: "one element broadcast",
        base: vec![3],
        layout: Layout { shape: shape.into(), strides, offset: 1 },
    });
    if rank > 1 {
        views.push(permuted("transposed", &all.iter().rev().copied().collect::<Vec<_>>()));
    }
    if rank > 2 {
        let rotated: Vec<usize> = (0..rank).map(|i| (i + 1) % rank).collect();
        views.push(permuted("rotated", &rotated));
    }
    views
}

/// Returns the view that is the whole buffer.
pub fn contiguous(shape: &[usize]) -> View {
    views(shape).swap_remove(0)
}

/// Returns the index of the first byte at an odd address, which is not aligned for any type of more
/// than one byte.
fn odd_start(bytes: &[u8]) -> usize {
    usize::from((bytes.as_ptr() as usize).is_multiple_of(2))
}

/// The data of a tensor, at an odd address, and its view.
pub struct Source {
    pub dtype: DType,
    pub view: View,
    /// The numbers in the buffer.
    numbers: Vec<Number>,
    bytes: Vec<u8>,
    start: usize,
}

impl Source {
    /// Makes a buffer that is filled with the values again and again.
    pub fn new(dtype: DType, view: View, values: &[Number]) -> Self {
        let values: Vec<u128> = values.iter().map(|&n| cast(n, dtype)).collect();
        let elements: Vec<u128> = values.iter().cycle().take(view.base.iter().product()).copied().collect();
        let numbers = elements.iter().map(|&bits| value(bits, dtype)).collect();
        let data = to_bytes(&elements, dtype);
        let mut bytes = vec![0; data.len() + 1];
        let start = odd_start(&bytes);
        bytes[start..start + data.len()].copy_from_slice(&data);
        if start == 0 {
            bytes.pop();
        }
        Source { dtype, view, numbers, bytes, start }
    }

    /// Makes a buffer of random values.
    pub fn random(dtype: DType, view: View, random: &mut Random) -> Self {
        let count = view.base.iter().product::<usize>().min(5003);
        let values = values(dtype, count, random);
        Source::new(dtype, view, &values)
    }

    /// Returns the buffer as a tensor. `see` returns the view of it.
    pub fn buffer(&self) -> Tensor<'_> {
        Tensor::new("test", self.dtype, &self.view.base, &self.bytes[self.start..])
            .expect("a buffer of its shape")
    }

    /// Returns the view of the tensor that `buffer` has returned.
    pub fn see<'a>(&self, buffer: &'a Tensor<'_>) -> Tensor<'a> {
        buffer.view(self.view.layout.clone())
    }

    pub fn shape(&self) -> &[usize] {
        &self.view.layout.shape
    }

    /// Returns the element at an index.
    pub fn at(&self, index: &[usize]) -> Number {
        let Layout { strides, offset, .. } = &self.view.layout;
        let distance: isize = index.iter().zip(strides).map(|(&i, &stride)| i as isize * stride).sum();
        self.numbers[(*offset as isize + distance) as usize]
    }

    /// Returns the element at an index of the broadcast tensor. The index has at least the rank of
    /// the view.
    pub fn broadcast_at(&self, index: &[usize]) -> Number {
        let shape = self.shape();
        let own = &index[index.len() - shape.len()..];
        let own: Vec<usize> = own.iter().zip(shape).map(|(&i, &dim)| if dim == 1 { 0 } else { i }).collect();
        self.at(&own)
    }

    /// Returns `broadcast_at` for every index, in row-major order.
    pub fn broadcast_to(&self, shape: &[usize]) -> Vec<Number> {
        indices(shape).map(|index| self.broadcast_at(&index)).collect()
    }

    /// Returns the elements in row-major order.
    pub fn elements(&self) -> Vec<Number> {
        self.broadcast_to(self.shape())
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?} ({})", self.dtype, self.shape(), self.view.name)
    }
}

/// Returns every index of a shape, in row-major order.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let size: usize = shape.iter().product();
    let mut next = vec![0; shape.len()];
    (0..size).map(move |_| {
        let index = next.clone();
        for axis in (0..shape.len()).rev() {
            next[axis] += 1;
            if next[axis] < shape[axis] {
                break;
            }
            next[axis] = 0;
        }
        index
    })
}

/// Returns the elements that an operation writes. The output is at an odd address, and is filled
/// with other bytes before. Panics if the operation writes outside of it.
pub fn output(
    dtype: DType,
    shape: &[usize],
    op: impl FnOnce(Output<'_>) -> Result<(), Error>,
) -> Result<Vec<u128>, Error> {
    const GUARD: usize = 32;
    const BEFORE: u8 = 0xa5;
    let length = ferrox_core::tensor::byte_size("test", dtype, shape)?;
    let mut bytes = vec![BEFORE; length + 2 * GUARD + 1];
    let start = GUARD + odd_start(&bytes);
    op(Output::new("test", dtype, shape, &mut bytes[start..start + length])?)?;
    let around = bytes[..start].iter().chain(&bytes[start + length..]);
    assert!(
        around.copied().all(|byte| byte == BEFORE),
        "an operation wrote past its result, {dtype}{shape:?}"
    );
    Ok(from_bytes(&bytes[start..start + length], dtype, shape.iter().product()))
}

/// The largest difference from the expected result.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// The same bits, except that the payload of a NaN doesn't matter.
    Bits,
    /// The same value. Zeros of different signs are the same.
    Value,
    /// At most this number of units in the last place, for real floats.
    Ulps(u128),
    /// An error relative to the magnitude.
    Relative(f64),
}

impl Bound {
    pub fn holds(self, got: u128, expected: u128, dtype: DType) -> bool {
        match self {
            Bound::Bits => same(got, expected, dtype),
            Bound::Value => same(got, expected, dtype) || value(got, dtype) == value(expected, dtype),
            Bound::Ulps(_) if dtype.is_integer() || dtype.is_complex() => same(got, expected, dtype),
            Bound::Ulps(ulps) => number::within(ulps, got, expected, dtype),
            Bound::Relative(bound) => number::near(bound, got, expected, dtype),
        }
    }
}

/// Compares every element of an `output` with `expected(position)`. Returns the number of elements.
///
/// # Panics
///
/// Panics at an error and at the first element that differs. The message has `what()` and the index.
pub fn check(
    what: impl Fn() -> String,
    dtype: DType,
    shape: &[usize],
    got: Result<Vec<u128>, Error>,
    expected: impl Fn(usize) -> u128,
    bound: Bound,
) -> usize {
    let got = got.unwrap_or_else(|e| panic!("{}: {e}", what()));
    for (position, &got) in got.iter().enumerate() {
        let expected = expected(position);
        if !bound.holds(got, expected, dtype) {
            let index = indices(shape).nth(position).expect("as many as elements");
            let (got_value, expected_value) = (value(got, dtype), value(expected, dtype));
            panic!(
                "{} -> {dtype}{shape:?} at {index:?}: expected {expected_value:?} ({expected:#x}), \
                 got {got_value:?} ({got:#x}), bound {bound:?}",
                what()
            );
        }
    }
    got.len()
}

/// `check` with the number that is expected at an index.
pub fn check_numbers(
    what: impl Fn() -> String,
    dtype: DType,
    shape: &[usize],
    got: Result<Vec<u128>, Error>,
    mut expected: impl FnMut(Vec<usize>) -> Number,
    bound: Bound,
) -> usize {
    let expected: Vec<u128> = indices(shape).map(|index| cast(expected(index), dtype)).collect();
    check(what, dtype, shape, got, |position| expected[position], bound)
}
