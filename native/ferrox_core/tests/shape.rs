//! Operations that only move elements.

mod common;

use common::number::Number;
use common::{Bound, Random, Source, check_numbers, contiguous, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::shape::{broadcast, concatenate, reverse, slice, transpose};
use ferrox_core::{Error, Output, Tensor};

const SHAPES: &[&[usize]] =
    &[&[], &[1], &[7], &[2, 3, 4], &[3, 1, 2, 5], &[0, 3], &[2, 0, 4], &[9, 131], &[3, 1030], &[40, 2, 5]];

/// Runs an operation and compares each element with the element of the source at the index from
/// `from`.
fn run(
    what: &str,
    source: &Source,
    shape: &[usize],
    op: impl FnOnce(Output<'_>, &Tensor<'_>) -> Result<(), Error>,
    from: impl Fn(&[usize]) -> Vec<usize>,
) -> usize {
    let buffer = source.buffer();
    let what = || format!("{what} of {source}");
    let got = output(source.dtype, shape, |out| op(out, &source.see(&buffer)));
    check_numbers(what, source.dtype, shape, got, |index| source.at(&from(&index)), Bound::Bits)
}

/// Calls `test` with every view of every shape, in random types of all widths.
fn each_source(random: &mut Random, mut test: impl FnMut(&Source, &mut Random)) {
    for shape in SHAPES {
        for view in views(shape) {
            for dtype in [*random.pick(DType::ALL), *random.pick(&[U8, F16, F32, C64, C128, S4])] {
                let source = Source::random(dtype, view.clone(), random);
                test(&source, random);
            }
        }
    }
}

fn shuffled(rank: usize, random: &mut Random) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..rank).collect();
    (1..rank).for_each(|i| axes.swap(i, random.below(i + 1)));
    axes
}

fn run_transpose(source: &Source, axes: &[usize]) -> usize {
    let shape: Vec<usize> = axes.iter().map(|&axis| source.shape()[axis]).collect();
    let op = |out: Output<'_>, tensor: &Tensor<'_>| transpose(out, tensor, axes);
    run(&format!("transpose by {axes:?}"), source, &shape, op, |index| {
        let mut source_index = vec![0; index.len()];
        axes.iter().zip(index).for_each(|(&axis, &i)| source_index[axis] = i);
        source_index
    })
}

#[test]
fn transposes() {
    let mut compared = 0;
    each_source(&mut Random(1), |source, random| {
        for _ in 0..4 {
            compared += run_transpose(source, &shuffled(source.shape().len(), random));
        }
    });
    // The tensors are large enough for several threads.
    for dtype in [U2, U8, F32, C128] {
        compared +=
            run_transpose(&Source::random(dtype, contiguous(&[40, 50, 60]), &mut Random(2)), &[2, 0, 1]);
        compared += run_transpose(&Source::random(dtype, contiguous(&[700, 900]), &mut Random(2)), &[1, 0]);
    }
    println!("transpose: {compared} elements compared");
}

#[test]
fn broadcasts() {
    let mut compared = 0;
    each_source(&mut Random(3), |source, random| {
        // The result has new axes between those of the tensor, whose axes of size one may grow.
        let (mut shape, mut axes) = (Vec::new(), Vec::new());
        for &dim in source.shape() {
            (0..random.below(2)).for_each(|_| shape.push(1 + random.below(3)));
            axes.push(shape.len());
            shape.push(if dim == 1 { 1 + random.below(4) } else { dim });
        }
        let op = |out: Output<'_>, tensor: &Tensor<'_>| broadcast(out, tensor, &axes);
        compared += run(&format!("broadcast along {axes:?}"), source, &shape, op, |index| {
            axes.iter()
                .zip(source.shape())
                .map(|(&axis, &dim)| if dim == 1 { 0 } else { index[axis] })
                .collect()
        });
    });
    println!("broadcast: {compared} elements compared");
}

#[test]
fn reverses() {
    let mut compared = 0;
    each_source(&mut Random(4), |source, random| {
        let shape = source.shape();
        let axes: Vec<usize> =
            shuffled(shape.len(), random).into_iter().filter(|_| random.below(2) == 0).collect();
        let op = |out: Output<'_>, tensor: &Tensor<'_>| reverse(out, tensor, &axes);
        compared += run(&format!("reverse along {axes:?}"), source, shape, op, |index| {
            let source_axis_index =
                |(axis, &i): (usize, &usize)| if axes.contains(&axis) { shape[axis] - 1 - i } else { i };
            index.iter().enumerate().map(source_axis_index).collect()
        });
    });
    println!("reverse: {compared} elements compared");
}

#[test]
fn slices() {
    let mut compared = 0;
    each_source(&mut Random(5), |source, random| {
        for _ in 0..3 {
            let starts: Vec<usize> = source.shape().iter().map(|&d| random.below(d + 1)).collect();
            let lengths: Vec<usize> =
                source.shape().iter().zip(&starts).map(|(&d, &s)| random.below(d - s + 1)).collect();
            let strides: Vec<usize> = starts.iter().map(|_| 1 + random.below(3)).collect();
            let shape: Vec<usize> = lengths.iter().zip(&strides).map(|(&l, &s)| l.div_ceil(s)).collect();
            let op = |out: Output<'_>, tensor: &Tensor<'_>| slice(out, tensor, &starts, &lengths, &strides);
            let what = format!("slice from {starts:?} of {lengths:?} by {strides:?}");
            compared += run(&what, source, &shape, op, |index| {
                (0..index.len()).map(|a| starts[a] + index[a] * strides[a]).collect()
            });
        }
    });
    println!("slice: {compared} elements compared");
}

fn run_concatenate(sources: &[Source], axis: usize) -> usize {
    let (dtype, mut whole) = (sources[0].dtype, sources[0].shape().to_vec());
    whole[axis] = sources.iter().map(|s| s.shape()[axis]).sum();
    let buffers: Vec<Tensor<'_>> = sources.iter().map(Source::buffer).collect();
    let tensors: Vec<Tensor<'_>> = sources.iter().zip(&buffers).map(|(s, b)| s.see(b)).collect();
    let names = || sources.iter().map(Source::to_string).collect::<Vec<_>>().join(", ");
    let what = || format!("concatenate of {} along {axis}", names());
    let got = output(dtype, &whole, |out| concatenate(out, &tensors, axis));
    let element = |mut index: Vec<usize>| {
        let mut sources = sources.iter();
        let mut source = sources.next().expect("at least one");
        while index[axis] >= source.shape()[axis] {
            index[axis] -= source.shape()[axis];
            source = sources.next().expect("as long as all of them");
        }
        source.at(&index)
    };
    check_numbers(what, dtype, &whole, got, element, Bound::Bits)
}

#[test]
fn concatenates() {
    let (mut compared, mut random) = (0, Random(6));
    for shape in SHAPES.iter().filter(|shape| !shape.is_empty()) {
        for axis in 0..shape.len() {
            for count in 1..4 {
                let dtype = *random.pick(DType::ALL);
                let mut part = |_| {
                    let mut part_shape = shape.to_vec();
                    part_shape[axis] = random.below(5);
                    let view = random.pick(&views(&part_shape)).clone();
                    Source::random(dtype, view, &mut random)
                };
                let sources: Vec<Source> = (0..count).map(&mut part).collect();
                compared += run_concatenate(&sources, axis);
            }
        }
    }
    // The tensors are large enough for several threads.
    for view in views(&[301, 700]) {
        let sources = [(); 2].map(|()| Source::random(F32, view.clone(), &mut random));
        compared += run_concatenate(&sources, 0) + run_concatenate(&sources, 1);
    }
    println!("concatenate: {compared} elements compared");
}

/// Many rows of few elements, which have loops of their own.
#[test]
fn short_rows() {
    let (mut compared, mut random) = (0, Random(7));
    for length in 1..=17 {
        for dtype in [U8, BF16, F32, C64, C128] {
            for rows in [1, 5, 1_003, if length == 3 { 300_001 } else { 70 }] {
                let source = Source::random(dtype, contiguous(&[rows, length]), &mut random);
                compared += run_transpose(&source, &[1, 0]);
                let reversed = |out: Output<'_>, tensor: &Tensor<'_>| reverse(out, tensor, &[1]);
                compared += run("reverse of rows", &source, &[rows, length], reversed, |index| {
                    vec![index[0], length - 1 - index[1]]
                });
                let from_second = |out: Output<'_>, tensor: &Tensor<'_>| {
                    slice(out, tensor, &[rows / 2, 0], &[rows - rows / 2, length], &[1, 2])
                };
                let shape = [rows - rows / 2, length.div_ceil(2)];
                compared += run("slice of rows", &source, &shape, from_second, |index| {
                    vec![rows / 2 + index[0], 2 * index[1]]
                });
                let columns = Source::random(dtype, contiguous(&[length, rows]), &mut random);
                compared += run_transpose(&columns, &[1, 0]);
                for (axis, shape) in [(0, [rows]), (1, [length])] {
                    let line = Source::random(dtype, contiguous(&shape), &mut random);
                    let repeat = |out: Output<'_>, tensor: &Tensor<'_>| broadcast(out, tensor, &[axis]);
                    compared += run("broadcast", &line, &[rows, length], repeat, |index| vec![index[axis]]);
                }
                let mut part =
                    |length: usize| Source::random(dtype, contiguous(&[rows, length]), &mut random);
                let ones: Vec<Source> = (0..length).map(|_| part(1)).collect();
                compared += run_concatenate(&ones, 1) + run_concatenate(&[part(1), source, part(2)], 1);
            }
        }
    }
    println!("short rows: {compared} elements compared");
}

#[test]
fn refuses_invalid_arguments() {
    let one = |dtype, shape: &[usize]| Source::new(dtype, contiguous(shape), &[Number::Integer(1)]);
    let (a, b, c) = (one(F32, &[2, 3]), one(F32, &[3, 2]), one(S32, &[2, 3]));
    let (a, b, c) = (a.buffer(), b.buffer(), c.buffer());
    let refused = |shape: &[usize], op: &dyn Fn(Output<'_>) -> Result<(), Error>| {
        output(F32, shape, op).expect_err("refused").to_string()
    };
    let permutation = |axes: &str| format!("transpose: {axes} is not a permutation of the axes of rank 2");
    assert_eq!(refused(&[2, 2], &|out| transpose(out, &a, &[0, 0])), permutation("[0, 0]"));
    assert_eq!(refused(&[2], &|out| transpose(out, &a, &[0])), permutation("[0]"));
    assert_eq!(refused(&[2, 3], &|out| transpose(out, &a, &[1, 2])), permutation("[1, 2]"));
    assert_eq!(
        refused(&[2, 3], &|out| transpose(out, &a, &[1, 0])),
        "transpose: shapes {3, 2} and {2, 3} differ"
    );
    assert_eq!(
        refused(&[4, 3], &|out| broadcast(out, &a, &[0, 1])),
        "broadcast: shapes {2, 3} and {4, 3} don't go together with axes [0, 1]"
    );
    assert_eq!(
        refused(&[2, 3], &|out| broadcast(out, &a, &[1])),
        "broadcast: shapes {2, 3} and {2, 3} don't go together with axes [1]"
    );
    assert_eq!(
        refused(&[2, 3], &|out| broadcast(out, &a, &[0, 2])),
        "broadcast: shapes {2, 3} and {2, 3} don't go together with axes [0, 2]"
    );
    let square = Source::new(F32, contiguous(&[2, 2]), &[Number::Integer(1)]);
    let square = square.buffer();
    assert_eq!(refused(&[2, 2], &|out| broadcast(out, &square, &[0, 0])), "broadcast: axis 0 is named twice");
    assert_eq!(refused(&[2, 3], &|out| reverse(out, &a, &[2])), "reverse: axis 2 is out of range for rank 2");
    assert_eq!(refused(&[2, 3], &|out| reverse(out, &a, &[1, 0, 1])), "reverse: axis 1 is named twice");
    assert_eq!(refused(&[3, 2], &|out| reverse(out, &a, &[0])), "reverse: shapes {2, 3} and {3, 2} differ");
    let reaches = "slice: start 1 with length 3 and stride 1 reaches past axis 1 of size 3";
    assert_eq!(refused(&[2, 3], &|out| slice(out, &a, &[0, 1], &[2, 3], &[1, 1])), reaches);
    assert_eq!(
        refused(&[2, 3], &|out| slice(out, &a, &[0, usize::MAX], &[2, 3], &[1, 1])),
        format!("slice: start {} with length 3 and stride 1 reaches past axis 1 of size 3", usize::MAX)
    );
    assert_eq!(
        refused(&[2, 3], &|out| slice(out, &a, &[0, 0], &[2, 3], &[1, 0])),
        "slice: start 0 with length 3 and stride 0 reaches past axis 1 of size 3"
    );
    assert_eq!(
        refused(&[2, 3], &|out| slice(out, &a, &[0], &[2, 3], &[1, 1])),
        "slice: needs one start, length and stride for each of 2 axes"
    );
    let joined = |shape: &[usize], tensors: &[&Tensor<'_>], axis| {
        let tensors: Vec<Tensor<'_>> = tensors.iter().map(|&t| t.clone()).collect();
        refused(shape, &|out| concatenate(out, &tensors, axis))
    };
    assert_eq!(
        joined(&[5, 3], &[&a, &b], 0),
        "concatenate: shapes {2, 3} and {3, 2} can't be joined along axis 0 into {5, 3}"
    );
    assert_eq!(
        joined(&[3, 3], &[&a, &a], 0),
        "concatenate: shapes {2, 3} and {2, 3} can't be joined along axis 0 into {3, 3}"
    );
    assert_eq!(
        joined(&[4, 3], &[&a, &a], 2),
        "concatenate: shapes {2, 3} and {2, 3} can't be joined along axis 2 into {4, 3}"
    );
    assert_eq!(joined(&[4, 3], &[&a, &c], 0), "concatenate is not defined for f32 and s32");
    // The operations don't convert elements.
    assert_eq!(refused(&[2, 3], &|out| reverse(out, &c, &[0])), "reverse is not defined for s32 and f32");
}
