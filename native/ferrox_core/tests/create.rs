//! `iota` and `eye`, and errors for bad sizes.

mod common;

use common::number::{Number, cast};
use common::{Bound, check, check_numbers, indices, output};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::create::{eye, iota};
use ferrox_core::{Error, Output, Tensor};

const SHAPES: &[&[usize]] =
    &[&[], &[1], &[7], &[2, 3, 4], &[0, 3], &[3, 0], &[5, 1, 5], &[3, 1030], &[2, 2049, 3], &[130, 129]];

#[test]
fn iota_of_every_type_along_every_axis() {
    let mut compared = 0;
    for &dtype in DType::ALL {
        for shape in SHAPES {
            for axis in (0..shape.len()).map(Some).chain([None]) {
                let got = output(dtype, shape, |out| iota(out, axis));
                let counts: Vec<usize> = indices(shape)
                    .enumerate()
                    .map(|(position, index)| axis.map_or(position, |axis| index[axis]))
                    .collect();
                let expected = |position: usize| cast(Number::Integer(counts[position] as i128), dtype);
                compared +=
                    check(|| format!("iota along {axis:?}"), dtype, shape, got, expected, Bound::Bits);
            }
        }
    }
    println!("iota: {compared} elements compared");
}

/// The tensors are large enough for several threads.
#[test]
fn large_iota() {
    for dtype in [U4, BF16, F32, S64, C128] {
        let shape = [7, 20_011];
        let got = output(dtype, &shape, |out| iota(out, None));
        let expected = |position: usize| cast(Number::Integer(position as i128), dtype);
        check(|| "iota".into(), dtype, &shape, got, expected, Bound::Bits);
        let got = output(dtype, &shape, |out| iota(out, Some(1)));
        let expected = |position: usize| cast(Number::Integer((position % 20_011) as i128), dtype);
        check(|| "iota along 1".into(), dtype, &shape, got, expected, Bound::Bits);
    }
}

#[test]
fn eye_of_every_type() {
    let mut compared = 0;
    for &dtype in DType::ALL {
        for shape in SHAPES.iter().filter(|shape| shape.len() >= 2) {
            let got = output(dtype, shape, eye);
            let expected = |i: Vec<usize>| Number::Integer(i128::from(i[i.len() - 2] == i[i.len() - 1]));
            compared += check_numbers(|| "eye".into(), dtype, shape, got, expected, Bound::Bits);
        }
    }
    println!("eye: {compared} elements compared");
}

#[test]
fn axes_out_of_range() {
    let message = |result: Result<Vec<u128>, Error>| result.expect_err("bad axis").to_string();
    assert_eq!(
        message(output(F32, &[2, 3], |out| iota(out, Some(2)))),
        "iota: axis 2 is out of range for rank 2"
    );
    assert_eq!(
        message(output(F32, &[], |out| iota(out, Some(0)))),
        "iota: axis 0 is out of range for rank 0"
    );
    assert_eq!(message(output(F32, &[3], eye)), "eye: needs at least two axes, got 1");
}

#[test]
fn sizes_that_overflow() {
    const BITS: u32 = usize::BITS;
    const ROOT: usize = 1 << (BITS / 2 - 1);
    for (dtype, shape) in [
        (U8, &[usize::MAX, 2][..]),
        (F32, &[1 << (BITS - 2)]),
        (C128, &[ROOT, ROOT]),
        (U8, &[1 << (BITS - 1)]),
        (U2, &[1 << (BITS - 1)]),
    ] {
        let sizes = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let message = format!("add: a tensor of type {dtype} and shape {{{sizes}}} does not fit into memory");
        let error = Tensor::new("add", dtype, shape, &[]).expect_err("too large");
        assert_eq!(error.to_string(), message);
        let error = Output::new("add", dtype, shape, &mut []).expect_err("too large");
        assert_eq!(error.to_string(), message);
    }
    // The product of the sizes overflows in spite of the empty axis.
    for shape in [[usize::MAX, 2, 0], [0, usize::MAX, 2]] {
        assert!(matches!(Tensor::new("add", F32, &shape, &[]), Err(Error::TooLarge { .. })), "{shape:?}");
    }
    // So does the number of bytes.
    for shape in [[0, ROOT, ROOT], [1 << (BITS - 2), 0, 1], [1 << (BITS - 4), 8, 0]] {
        assert!(matches!(Tensor::new("add", F32, &shape, &[]), Err(Error::TooLarge { .. })), "{shape:?}");
        assert!(matches!(output(F32, &shape, eye), Err(Error::TooLarge { .. })), "{shape:?}");
    }
    let large = [1 << (BITS - 6), 0, 1];
    assert_eq!(Tensor::new("add", F32, &large, &[]).map(|t| t.size()), Ok(0));
    assert_eq!(output(F32, &large, |out| iota(out, Some(0))), Ok(vec![]));
    assert_eq!(output(F32, &[0, ROOT / 4, ROOT / 4], eye), Ok(vec![]));
}

#[test]
fn data_of_the_wrong_size() {
    for (dtype, shape, expected, actual) in [
        (F32, &[2, 3][..], 24, 23),
        (U8, &[], 1, 0),
        (U2, &[5], 2, 1),
        (S4, &[2, 2], 2, 4),
        (C128, &[0], 0, 1),
    ] {
        let bytes = vec![0; actual];
        let shape_text = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let message = format!(
            "tensor: a tensor of type {dtype} and shape {{{shape_text}}} takes {expected} bytes, got {actual}"
        );
        let error = Tensor::new("tensor", dtype, shape, &bytes).expect_err("wrong size");
        assert_eq!(error.to_string(), message);
        let mut bytes = bytes;
        let error = Output::new("tensor", dtype, shape, &mut bytes).expect_err("wrong size");
        assert_eq!(error.to_string(), message);
    }
}
