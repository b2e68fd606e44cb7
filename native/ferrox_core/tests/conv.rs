//! Convolutions against sums of products, one by one.

mod common;

use common::number::{Number, sum_of_products};
use common::{Bound, Random, Source, check_numbers, contiguous, indices, merge, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::Error;
use ferrox_core::exec::simd::{self, Level};
use ferrox_core::ops::conv::{Options, conv};

/// The sizes in the order of batch, channels, space; and all options.
#[derive(Clone, Debug)]
struct Spec {
    input: Vec<usize>,
    kernel: Vec<usize>,
    strides: Vec<usize>,
    padding: Vec<(i64, i64)>,
    input_dilation: Vec<usize>,
    kernel_dilation: Vec<usize>,
    feature_groups: usize,
    batch_groups: usize,
    permutations: [Vec<usize>; 3],
}

/// The shape whose axes `permutation` puts into the order of `shape`.
fn permuted(shape: &[usize], permutation: &[usize]) -> Vec<usize> {
    let mut result = vec![0; shape.len()];
    for (&axis, &dim) in permutation.iter().zip(shape) {
        result[axis] = dim;
    }
    result
}

impl Spec {
    /// Without anything unusual.
    fn plain(input: &[usize], kernel: &[usize]) -> Self {
        let ones = vec![1; input.len() - 2];
        let axes: Vec<usize> = (0..input.len()).collect();
        Spec {
            input: input.to_vec(),
            kernel: kernel.to_vec(),
            strides: ones.clone(),
            padding: ones.iter().map(|_| (0, 0)).collect(),
            input_dilation: ones.clone(),
            kernel_dilation: ones,
            feature_groups: 1,
            batch_groups: 1,
            permutations: [axes.clone(), axes.clone(), axes],
        }
    }

    /// Channels, and filters, last.
    fn channels_last(self) -> Self {
        let rank = self.input.len();
        let last: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        let kernel: Vec<usize> = [rank - 1, rank - 2].into_iter().chain(0..rank - 2).collect();
        Spec { permutations: [last.clone(), kernel, last], ..self }
    }

    fn options(&self) -> Options<'_> {
        Options {
            strides: &self.strides,
            padding: &self.padding,
            input_dilation: &self.input_dilation,
            kernel_dilation: &self.kernel_dilation,
            feature_groups: self.feature_groups,
            batch_groups: self.batch_groups,
            input_permutation: &self.permutations[0],
            kernel_permutation: &self.permutations[1],
            output_permutation: &self.permutations[2],
        }
    }

    /// The result's shape in the order of batch, filters, space.
    fn result(&self) -> Option<Vec<usize>> {
        let spatial = (0..self.strides.len()).map(|a| {
            let input = (self.input[a + 2] as i64 - 1) * self.input_dilation[a] as i64 + 1;
            let padded = input + self.padding[a].0 + self.padding[a].1;
            let extent = (self.kernel[a + 2] as i64 - 1) * self.kernel_dilation[a] as i64 + 1;
            (padded >= extent).then(|| ((padded - extent) as usize) / self.strides[a] + 1)
        });
        [Some(self.input[0] / self.batch_groups), Some(self.kernel[0])].into_iter().chain(spatial).collect()
    }

    /// The elements of the input and the kernel that a result is made of.
    fn met(&self, at: &[usize]) -> Vec<(Vec<usize>, Vec<usize>)> {
        let (batch, filter) = (at[0], at[1]);
        let group = filter / (self.kernel[0] / self.feature_groups);
        let of_batch = filter / (self.kernel[0] / self.batch_groups);
        let batch = of_batch * (self.input[0] / self.batch_groups) + batch;
        let mut met = Vec::new();
        for place in indices(&self.kernel[1..]) {
            let element = |a: usize| {
                let at = (at[a + 2] * self.strides[a] + place[a + 1] * self.kernel_dilation[a]) as i64
                    - self.padding[a].0;
                let dilation = self.input_dilation[a] as i64;
                (at >= 0 && at % dilation == 0 && at / dilation < self.input[a + 2] as i64)
                    .then_some((at / dilation) as usize)
            };
            let Some(spatial) = (0..self.strides.len()).map(element).collect::<Option<Vec<usize>>>() else {
                continue;
            };
            let input = [vec![batch, group * self.kernel[1] + place[0]], spatial].concat();
            let kernel = [vec![filter], place].concat();
            met.push((permuted(&input, &self.permutations[0]), permuted(&kernel, &self.permutations[1])));
        }
        met
    }
}

fn random_spec(random: &mut Random) -> Spec {
    loop {
        let spatial = *random.pick(&[1, 2, 2, 2, 3]);
        let (feature_groups, batch_groups) = *random.pick(&[(1, 1), (1, 1), (1, 1), (2, 1), (3, 1), (1, 2)]);
        let channels = 1 + random.below(3);
        let groups = feature_groups.max(batch_groups);
        let mut list = |most: usize| -> Vec<usize> { (0..spatial).map(|_| 1 + random.below(most)).collect() };
        let (size, places) = (list(6), list(3));
        let ones = vec![1; spatial];
        let strides = list(3);
        let (input_dilation, kernel_dilation) = (list(3), list(2));
        let padding =
            (0..spatial).map(|_| (random.below(4) as i64 - 1, random.below(4) as i64 - 1)).collect();
        let batch = batch_groups * (1 + random.below(3));
        let filters = groups * (1 + random.below(5));
        let rank = spatial + 2;
        let mut permutation = || {
            let mut axes: Vec<usize> = (0..rank).collect();
            if random.below(2) == 0 {
                for i in (1..rank).rev() {
                    axes.swap(i, random.below(i + 1));
                }
            }
            axes
        };
        let permutations = [permutation(), permutation(), permutation()];
        let simple =
            |list: Vec<usize>, random: &mut Random| if random.below(2) == 0 { list } else { ones.clone() };
        let spec = Spec {
            input: [vec![batch, channels * feature_groups], size].concat(),
            kernel: [vec![filters, channels], places].concat(),
            strides: simple(strides, random),
            padding,
            input_dilation: simple(input_dilation, random),
            kernel_dilation: simple(kernel_dilation, random),
            feature_groups,
            batch_groups,
            permutations,
        };
        if spec.result().is_some_and(|result| result.iter().product::<usize>() < 1500) {
            return spec;
        }
    }
}

/// Whole numbers, so that every sum is exact; integers of any size if the
/// result is one.
fn numbers(dtype: DType, any: bool, random: &mut Random) -> Vec<Number> {
    let mut one = || {
        let mut whole = || (random.unit() * 3.0).round();
        match dtype {
            C64 | C128 => Number::Complex(whole(), whole()),
            _ if dtype.is_integer() && any => common::number::value(random.bits(dtype), dtype),
            _ if dtype.is_integer() => common::number::value(random.bits(dtype) % 2, dtype),
            _ => Number::Real(whole()),
        }
    };
    (0..997).map(|_| one()).collect()
}

fn run(input: &Source, kernel: &Source, spec: &Spec, out: DType, bound: Bound) -> usize {
    let canonical = spec.result().expect("a kernel that fits");
    let shape = permuted(&canonical, &spec.permutations[2]);
    let (input_buffer, kernel_buffer) = (input.buffer(), kernel.buffer());
    let (x, k) = (input.see(&input_buffer), kernel.see(&kernel_buffer));
    let what = || format!("conv of {input} and {kernel}, {spec:?}");
    let got = output(out, &shape, |out| conv(out, &x, &k, spec.options()));
    let expected = |index: Vec<usize>| {
        let at: Vec<usize> = spec.permutations[2].iter().map(|&axis| index[axis]).collect();
        sum_of_products(spec.met(&at).iter().map(|(i, k)| (input.at(i), kernel.at(k))), out)
    };
    check_numbers(what, out, &shape, got, expected, bound)
}

fn sources(spec: &Spec, dtypes: [DType; 2], any: bool, random: &mut Random) -> (Source, Source) {
    let input = permuted(&spec.input, &spec.permutations[0]);
    let kernel = permuted(&spec.kernel, &spec.permutations[1]);
    (
        Source::new(dtypes[0], contiguous(&input), &numbers(dtypes[0], any, random)),
        Source::new(dtypes[1], contiguous(&kernel), &numbers(dtypes[1], any, random)),
    )
}

fn run_random(spec: &Spec, dtypes: [DType; 2], out: DType, random: &mut Random) -> usize {
    let (input, kernel) = sources(spec, dtypes, out.is_integer(), random);
    run(&input, &kernel, spec, out, Bound::Value)
}

#[test]
fn every_type_with_random_options() {
    let (mut compared, mut random) = (0, Random(1));
    for &left in DType::ALL {
        for &right in DType::ALL {
            for _ in 0..2 {
                let spec = random_spec(&mut random);
                let merged = merge(left, right);
                let integers = left.is_integer() && right.is_integer();
                // As Nx calls it, and with a result that is an integer.
                let out = if integers && random.below(3) > 0 { F32 } else { merged };
                compared += run_random(&spec, [left, right], out, &mut random);
            }
        }
    }
    println!("conv, types: {compared} elements compared");
}

/// Ones that are not small: products of matrices, with several blocks.
fn large() -> Vec<Spec> {
    let grouped = |spec: Spec, feature_groups: usize| Spec { feature_groups, ..spec };
    let base = Spec::plain(&[2, 5, 9, 11], &[6, 5, 3, 2]);
    let dilated = Spec {
        strides: vec![2, 1],
        padding: vec![(2, 1), (-1, 3)],
        input_dilation: vec![3, 2],
        kernel_dilation: vec![1, 2],
        ..base.clone()
    };
    let depthwise = grouped(Spec::plain(&[2, 6, 9, 11], &[6, 1, 3, 3]), 6);
    let multiplied = grouped(Spec::plain(&[1, 4, 9, 11], &[12, 1, 3, 3]), 4);
    let groups = grouped(Spec::plain(&[2, 6, 9, 11], &[10, 3, 3, 3]), 2);
    let batches = Spec { batch_groups: 3, ..Spec::plain(&[6, 3, 9, 11], &[15, 3, 3, 3]) };
    let strided = Spec { strides: vec![2, 3], padding: vec![(1, 1), (2, 0)], ..base.clone() };
    let one_place = Spec::plain(&[3, 20, 7, 7], &[16, 20, 1, 1]);
    let line = Spec { padding: vec![(4, 4)], ..Spec::plain(&[2, 3, 200], &[7, 3, 9]) };
    let space = Spec::plain(&[1, 2, 6, 7, 8], &[5, 2, 2, 3, 2]);
    let shared = Spec::plain(&[9, 5, 8, 8], &[8, 5, 3, 3]);
    let points = Spec::plain(&[3, 40, 4, 4], &[30, 40, 4, 4]);
    let all = [
        base, dilated, depthwise, multiplied, groups, batches, strided, one_place, line, space, shared,
        points,
    ];
    all.into_iter().flat_map(|spec| [spec.clone(), spec.channels_last()]).collect()
}

#[test]
fn large_ones_of_several_types() {
    let (mut compared, mut random) = (0, Random(2));
    let types = [F32, S32, F64, BF16, U8, C64, S64, C128, U4, F8];
    for (i, spec) in large().into_iter().enumerate() {
        for dtype in [types[i % 2], types[2 + i % 8], types[2 + (i + 3) % 8]] {
            compared += run_random(&spec, [dtype, dtype], dtype, &mut random);
        }
        // Output axes that are neither order.
        let rank = spec.input.len();
        let turned = Spec {
            permutations: [
                spec.permutations[0].clone(),
                spec.permutations[1].clone(),
                (0..rank).rev().collect(),
            ],
            ..spec
        };
        compared += run_random(&turned, [F32, S8], F32, &mut random);
    }
    println!("conv, large: {compared} elements compared");
}

/// Padded planes, and patches, with all vectors: the bits don't depend on which test runs when.
#[test]
fn every_instruction_set() {
    let (mut compared, mut random) = (0, Random(7));
    for level in [Level::Baseline, Level::V3, Level::V4] {
        simd::limit(level);
        for spec in [
            Spec { padding: vec![(1, 1), (2, 0)], ..Spec::plain(&[2, 5, 11, 13], &[9, 5, 3, 3]) },
            Spec { strides: vec![2, 3], ..Spec::plain(&[1, 3, 20, 31], &[26, 3, 5, 4]) },
            // A row of several vectors, planes of one, and sums of more than a part.
            Spec { input_dilation: vec![2], ..Spec::plain(&[1, 70, 90], &[13, 70, 5]) },
            Spec { kernel_dilation: vec![2, 1], ..Spec::plain(&[1, 33, 6, 5], &[8, 33, 2, 4]) },
            Spec { strides: vec![2, 1, 1], ..Spec::plain(&[1, 4, 6, 7, 8], &[7, 4, 3, 2, 2]) },
            // Where the input lies, whole and in groups.
            Spec::plain(&[1, 300, 7, 7], &[31, 300, 1, 1]),
            Spec { feature_groups: 3, ..Spec::plain(&[3, 12, 9, 5], &[18, 4, 1, 1]) },
            Spec::plain(&[40, 1, 7, 7], &[9, 1, 1, 1]).channels_last(),
            Spec { batch_groups: 2, ..Spec::plain(&[4, 12, 9, 5], &[18, 12, 1, 2]) },
        ] {
            for dtype in [F32, F64, F16] {
                compared += run_random(&spec, [dtype, dtype], dtype, &mut random);
            }
        }
    }
    println!("conv, instruction sets: {compared} elements compared");
}

/// The convolution that gives a kernel's gradient: more taps than positions, several elements of
/// the batch at a time, with results in several orders.
#[test]
fn more_taps_than_positions() {
    let (mut compared, mut random) = (0, Random(8));
    let padded = Spec { padding: vec![(1, 1), (1, 1)], ..Spec::plain(&[7, 8, 12, 13], &[5, 8, 12, 13]) };
    let line = Spec { input_dilation: vec![2], ..Spec::plain(&[50, 3, 30], &[6, 3, 55]) };
    let dilated = Spec {
        kernel_dilation: vec![2, 3],
        strides: vec![1, 2],
        padding: vec![(2, 1), (1, 3)],
        ..Spec::plain(&[4, 3, 13, 20], &[7, 3, 7, 7])
    };
    let groups = Spec { feature_groups: 2, ..Spec::plain(&[3, 6, 9, 11], &[10, 3, 8, 9]) };
    let batches = Spec { batch_groups: 2, ..Spec::plain(&[6, 4, 9, 11], &[10, 4, 8, 9]) };
    // The patches of some elements of the batch fill a block, and those of one fill several.
    let blocks = Spec { padding: vec![(1, 1), (1, 1)], ..Spec::plain(&[24, 9, 14, 14], &[4, 9, 14, 14]) };
    let long = Spec { padding: vec![(40, 30)], ..Spec::plain(&[1, 2, 2100], &[4, 2, 2100]) };
    let mut specs = vec![padded, line, dilated, groups, batches, blocks, long];
    let channels_last: Vec<Spec> = specs.iter().map(|spec| spec.clone().channels_last()).collect();
    specs.extend(channels_last);
    for (i, spec) in specs.into_iter().enumerate() {
        let rank = spec.input.len();
        let filters_first: Vec<usize> = [1, 0].into_iter().chain(2..rank).collect();
        for (out, dtype) in [
            (spec.permutations[2].clone(), F32),
            (filters_first, [F32, F64, S32, C64, U8][i % 5]),
            ((0..rank).rev().collect(), [BF16, F32][i % 2]),
        ] {
            let [input, kernel, _] = spec.permutations.clone();
            let spec = Spec { permutations: [input, kernel, out], ..spec.clone() };
            compared += run_random(&spec, [dtype, dtype], dtype, &mut random);
        }
    }
    println!("conv, more taps than positions: {compared} elements compared");
}

/// Patches of more than one block.
#[test]
fn larger_than_a_block() {
    let (mut compared, mut random) = (0, Random(3));
    for spec in [
        Spec { padding: vec![(1, 1), (1, 1)], ..Spec::plain(&[1, 30, 33, 35], &[4, 30, 3, 3]) },
        // One element of the batch a thread.
        Spec::plain(&[9, 64, 10, 10], &[32, 64, 1, 1]),
    ] {
        for (spec, dtype) in [(spec.clone(), F32), (spec.channels_last(), BF16)] {
            compared += run_random(&spec, [dtype, dtype], dtype, &mut random);
        }
    }
    println!("conv, blocks: {compared} elements compared");
}

#[test]
fn every_view() {
    let (mut compared, mut random) = (0, Random(4));
    for spec in
        [Spec::plain(&[2, 3, 5, 4], &[4, 3, 2, 2]), Spec::plain(&[2, 4, 10], &[5, 4, 3]).channels_last()]
    {
        let input = permuted(&spec.input, &spec.permutations[0]);
        let kernel = permuted(&spec.kernel, &spec.permutations[1]);
        for view in views(&input) {
            for _ in 0..4 {
                let dtype = *random.pick(&[F32, F64, S32, F16, C64]);
                let other = random.pick(&views(&kernel)).clone();
                let x = Source::new(dtype, view.clone(), &numbers(dtype, false, &mut random));
                let k = Source::new(dtype, other, &numbers(dtype, false, &mut random));
                compared += run(&x, &k, &spec, dtype, Bound::Value);
            }
        }
    }
    println!("conv, views: {compared} elements compared");
}

/// Fractions: accumulated in f64 if they are few, else as gemm does.
#[test]
fn fractions_are_close() {
    let (mut compared, mut random) = (0, Random(5));
    for (spec, few) in large().into_iter().map(|spec| (spec, false)).chain([
        (Spec::plain(&[1, 3, 6, 6], &[2, 3, 2, 2]), true),
        (Spec::plain(&[1, 2, 9], &[3, 2, 4]).channels_last(), true),
    ]) {
        let rotated = [F32, F64, F16, C64][compared % 4];
        for dtype in if few { vec![F32, F64, F16, C64] } else { vec![F32, rotated] } {
            let fractions: Vec<Number> = (0..5003)
                .map(|_| match dtype {
                    C64 => Number::Complex(1.0 + random.unit(), 1.0),
                    _ => Number::Real(1.0 + random.unit()),
                })
                .collect();
            let input = permuted(&spec.input, &spec.permutations[0]);
            let kernel = permuted(&spec.kernel, &spec.permutations[1]);
            let x = Source::new(dtype, contiguous(&input), &fractions);
            let k = Source::new(dtype, contiguous(&kernel), &fractions[1000..]);
            let bound = match dtype {
                F64 => Bound::Relative(1e-14),
                F16 => Bound::Ulps(1),
                C64 => Bound::Relative(if few { 2e-7 } else { 1e-5 }),
                _ if few => Bound::Bits,
                _ => Bound::Relative(1e-5),
            };
            compared += run(&x, &k, &spec, dtype, bound);
        }
    }
    println!("conv, fractions: {compared} elements compared");
}

/// A weight that isn't finite, and padding.
#[test]
fn padding_is_zeros() {
    let spec = Spec { padding: vec![(2, 0)], input_dilation: vec![2], ..Spec::plain(&[1, 1, 3], &[1, 1, 2]) };
    let x = Source::new(F32, contiguous(&[1, 1, 3]), &[1.0, 2.0, 3.0].map(Number::Real));
    let k = Source::new(F32, contiguous(&[1, 1, 2]), &[f64::INFINITY, 1.0].map(Number::Real));
    let (x, k) = (x.buffer(), k.buffer());
    let got = output(F32, &[1, 1, 6], |out| conv(out, &x, &k, spec.options())).expect("it fits");
    let got: Vec<f32> = got.into_iter().map(|bits| f32::from_bits(bits as u32)).collect();
    // 0 0 1 0 2 0 3: infinity times what comes first, plus what comes next.
    assert!(got[0].is_nan() && got[1].is_nan() && got[3].is_nan() && got[5].is_nan());
    assert_eq!([got[2], got[4]], [f32::INFINITY; 2]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let good = Spec::plain(&[2, 4, 5, 5], &[4, 4, 3, 3]);
    let refused = |spec: &Spec, shape: &[usize]| {
        let (x, k) = sources(spec, [F32, F32], false, &mut Random(1));
        let (x, k) = (x.buffer(), k.buffer());
        output(F32, shape, |out| conv(out, &x, &k, spec.options())).expect_err("refused")
    };
    assert!(matches!(refused(&good, &[2, 4, 3, 4]), Error::Shape { .. }));
    let channels = Spec { input: vec![2, 3, 5, 5], ..good.clone() };
    assert!(matches!(refused(&channels, &[2, 4, 3, 3]), Error::Shape { .. }));
    let ranks = Spec::plain(&[2, 4, 5], &[4, 4, 3]);
    let ranks = Spec { kernel: vec![4, 4, 3, 3], ..ranks };
    let ranks = Spec { permutations: good.permutations.clone(), ..ranks };
    let x = Source::new(F32, contiguous(&[2, 4, 5]), &[Number::Real(1.0)]);
    let x = x.buffer();
    let got = output(F32, &[2, 4, 3], |out| conv(out, &x, &x, ranks.options()));
    assert!(matches!(got, Err(Error::Argument { .. })));
    for spec in [
        Spec { kernel: vec![4, 4, 6, 3], ..good.clone() },
        Spec { kernel_dilation: vec![3, 1], ..good.clone() },
        Spec { kernel_dilation: vec![usize::MAX, 1], ..good.clone() },
        Spec { padding: vec![(-3, 0), (0, 0)], ..good.clone() },
        Spec { padding: vec![(i64::MAX, i64::MAX), (0, 0)], ..good.clone() },
        Spec { padding: vec![(i64::MIN, i64::MAX), (0, 0)], ..good.clone() },
        Spec { strides: vec![0, 1], ..good.clone() },
        Spec { input_dilation: vec![0, 1], ..good.clone() },
        Spec { strides: vec![1], ..good.clone() },
        Spec { batch_groups: 3, ..good.clone() },
        Spec { feature_groups: 0, ..good.clone() },
        Spec { feature_groups: 2, batch_groups: 2, ..good.clone() },
        Spec { permutations: [vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![0, 1, 2, 2]], ..good.clone() },
    ] {
        assert!(matches!(refused(&spec, &[2, 4, 3, 3]), Error::Argument { .. }), "{spec:?}");
    }
    let (x, k) = sources(&good, [C64, F32], false, &mut Random(1));
    let (x, k) = (x.buffer(), k.buffer());
    let got = output(F32, &[2, 4, 3, 3], |out| conv(out, &x, &k, good.options()));
    assert!(matches!(got, Err(Error::UnsupportedType { .. })));
    let (x, k) = sources(&good, [F32, S32], false, &mut Random(1));
    let (x, k) = (x.buffer(), k.buffer());
    let got = output(S32, &[2, 4, 3, 3], |out| conv(out, &x, &k, good.options()));
    assert!(matches!(got, Err(Error::UnsupportedType { .. })));
}
