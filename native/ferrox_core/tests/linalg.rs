//! Tests of linear algebra: the factors of a matrix are multiplied and compared with it, and
//! solutions of systems of equations are tested by their residuals.

mod common;

use common::number::{Number, cast, value};
use common::{Random, Source, contiguous, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::linalg::{self, MatrixTransform, Method, NxAlgorithm, Triangular};
use ferrox_core::{Error, Output, Tensor};

type C = (f64, f64);

/// A matrix of complex numbers, in row-major order.
#[derive(Clone, Debug)]
struct M {
    rows: usize,
    columns: usize,
    data: Vec<C>,
}

fn times((a, b): C, (c, d): C) -> C {
    (a * c - b * d, a * d + b * c)
}

impl M {
    fn new(rows: usize, columns: usize, data: Vec<C>) -> M {
        assert_eq!(data.len(), rows * columns);
        M { rows, columns, data }
    }

    fn from(rows: usize, columns: usize, at: impl Fn(usize, usize) -> C) -> M {
        let data = (0..rows * columns).map(|i| at(i / columns, i % columns)).collect();
        M { rows, columns, data }
    }

    fn at(&self, i: usize, j: usize) -> C {
        self.data[i * self.columns + j]
    }

    fn eye(rows: usize, columns: usize) -> M {
        M::from(rows, columns, |i, j| (f64::from(u8::from(i == j)), 0.0))
    }

    fn dot(&self, other: &M) -> M {
        M::from(self.rows, other.columns, |i, j| {
            (0..self.columns).fold((0.0, 0.0), |sum, k| {
                let p = times(self.at(i, k), other.at(k, j));
                (sum.0 + p.0, sum.1 + p.1)
            })
        })
    }

    fn transpose(&self) -> M {
        M::from(self.columns, self.rows, |i, j| self.at(j, i))
    }

    fn conj(&self) -> M {
        M::from(self.rows, self.columns, |i, j| (self.at(i, j).0, -self.at(i, j).1))
    }

    fn adjoint(&self) -> M {
        self.transpose().conj()
    }

    fn minus(&self, other: &M) -> M {
        let data = self.data.iter().zip(&other.data).map(|(a, b)| (a.0 - b.0, a.1 - b.1)).collect();
        M::new(self.rows, self.columns, data)
    }

    fn norm(&self) -> f64 {
        self.data.iter().map(|z| z.0 * z.0 + z.1 * z.1).sum::<f64>().sqrt()
    }

    fn triangle(&self, lower: bool) -> M {
        M::from(
            self.rows,
            self.columns,
            |i, j| {
                if i == j || (i > j) == lower { self.at(i, j) } else { (0.0, 0.0) }
            },
        )
    }
}

fn random(dtype: DType, rows: usize, columns: usize, random: &mut Random) -> M {
    let whole = dtype.is_integer();
    let mut one = || if whole { (random.unit() * 3.0).round().abs() } else { random.unit() };
    let data = (0..rows * columns).map(|_| (one(), if dtype.is_complex() { one() } else { 0.0 })).collect();
    M::new(rows, columns, data)
}

fn source(dtype: DType, shape: &[usize], matrices: &[M]) -> Source {
    let numbers: Vec<Number> = matrices
        .iter()
        .flat_map(|m| &m.data)
        .map(|&(re, im)| match dtype {
            C64 | C128 => Number::Complex(re, im),
            _ if dtype.is_integer() => Number::Integer(re as i128),
            _ => Number::Real(re),
        })
        .collect();
    Source::new(dtype, contiguous(shape), &numbers)
}

/// The matrices in a tensor, rounded to its type.
fn matrices(source: &Source, rows: usize, columns: usize) -> Vec<M> {
    let elements: Vec<C> = source.elements().iter().map(|e| (e.re(), e.im())).collect();
    elements.chunks(rows * columns).map(|c| M::new(rows, columns, c.to_vec())).collect()
}

fn decoded(bits: &[u128], dtype: DType, rows: usize, columns: usize) -> Vec<M> {
    let values: Vec<C> = bits.iter().map(|&b| value(b, dtype)).map(|n| (n.re(), n.im())).collect();
    values.chunks(rows * columns).map(|c| M::new(rows, columns, c.to_vec())).collect()
}

/// Runs an operation with several results, given by their types and shapes, and returns the bits of
/// each.
fn outputs<const N: usize>(
    specs: [(DType, &[usize]); N],
    op: impl FnOnce([Output<'_>; N]) -> Result<(), Error>,
) -> Result<[Vec<u128>; N], Error> {
    let mut bytes =
        specs.map(|(dtype, shape)| vec![0xa5; ferrox_core::tensor::byte_size("test", dtype, shape).unwrap()]);
    let mut slots = bytes.iter_mut().zip(specs);
    op(std::array::from_fn(|_| {
        let (bytes, (dtype, shape)) = slots.next().expect("as many");
        Output::new("test", dtype, shape, bytes).expect("as long")
    }))?;
    let mut parts = bytes.iter().zip(specs);
    Ok(std::array::from_fn(|_| {
        let (bytes, (dtype, shape)) = parts.next().expect("as many");
        common::number::from_bytes(bytes, dtype, shape.iter().product())
    }))
}

fn floating(dtype: DType) -> DType {
    if dtype.is_integer() { F32 } else { dtype }
}

/// The unit roundoff.
fn unit(dtype: DType) -> f64 {
    2f64.powi(-(dtype.precision() as i32))
}

const TYPES: [DType; 10] = [F64, C128, F32, C64, F16, BF16, S32, U8, S64, U2];

fn close(what: &str, dtype: DType, residual: f64, scale: f64, n: usize) {
    let bound = 12.0 * unit(dtype) * (n as f64).max(1.0) * scale;
    assert!(residual <= bound, "{what} of {dtype}: {residual:e} is more than {bound:e}");
}

const SIZES: [usize; 8] = [1, 2, 3, 5, 8, 13, 70, 131];

#[test]
fn lu_multiplies_to_the_matrix() {
    let mut draw = Random(1);
    for dtype in TYPES {
        for n in SIZES {
            let shape = [2, n, n];
            let drawn: Vec<M> = (0..2).map(|_| random(dtype, n, n, &mut draw)).collect();
            let source = source(dtype, &shape, &drawn);
            let out = floating(dtype);
            let specs = [(dtype, &shape[..]), (out, &shape[..]), (out, &shape[..])];
            let [p, l, u] = outputs(specs, |outs| linalg::lu(outs, &source.buffer(), NxAlgorithm::Current))
                .expect("an LU");
            let ps = decoded(&p, dtype, n, n);
            let (ls, us) = (decoded(&l, out, n, n), decoded(&u, out, n, n));
            for (i, a) in matrices(&source, n, n).iter().enumerate() {
                let product = ps[i].dot(&ls[i]).dot(&us[i]);
                // The elements of a result of a narrow type are rounded one by one.
                let scale = ls[i].norm() * us[i].norm();
                close("P L U", out, product.minus(a).norm(), scale, n);
                assert_eq!(ls[i].minus(&ls[i].triangle(true)).norm(), 0.0);
                assert_eq!(us[i].minus(&us[i].triangle(false)).norm(), 0.0);
                assert!(ls[i].data.iter().all(|z| z.0.hypot(z.1) <= 1.0 + 4.0 * unit(out)));
                assert_eq!(ps[i].dot(&ps[i].transpose()).minus(&M::eye(n, n)).norm(), 0.0);
            }
        }
    }
}

#[test]
fn cholesky_multiplies_to_the_matrix() {
    let mut draw = Random(2);
    for dtype in [F64, C128, F32, C64] {
        for n in SIZES {
            let root = random(dtype, n, n, &mut draw);
            let a = root.dot(&root.adjoint());
            let source = source(dtype, &[n, n], &[a]);
            let a = &matrices(&source, n, n)[0];
            let got = output(dtype, &[n, n], |out| linalg::cholesky(out, &source.buffer())).expect("an L");
            let l = &decoded(&got, dtype, n, n)[0];
            close("L Lᴴ", dtype, l.dot(&l.adjoint()).minus(a).norm(), a.norm(), n);
            assert_eq!(l.minus(&l.triangle(true)).norm(), 0.0);
        }
    }
}

#[test]
fn what_is_not_positive_definite_has_no_root() {
    let a = M::new(2, 2, vec![(1.0, 0.0), (2.0, 0.0), (2.0, 0.0), (1.0, 0.0)]);
    for dtype in [F32, F64, C64] {
        let source = source(dtype, &[2, 2], std::slice::from_ref(&a));
        let got = output(dtype, &[2, 2], |out| linalg::cholesky(out, &source.buffer())).expect("NaN");
        assert!(value(got[3], dtype).is_nan());
    }
}

#[test]
fn qr_multiplies_to_the_matrix() {
    let mut draw = Random(3);
    for dtype in TYPES {
        for (m, n) in
            [(1, 1), (2, 2), (3, 2), (2, 3), (5, 3), (3, 8), (8, 8), (12, 9), (9, 12), (70, 40), (40, 70)]
        {
            for columns in [m.min(n), m] {
                let drawn: Vec<M> = (0..2).map(|_| random(dtype, m, n, &mut draw)).collect();
                let source = source(dtype, &[2, m, n], &drawn);
                let out = floating(dtype);
                let shapes = [[2, m, columns], [2, columns, n]];
                let specs = [(out, &shapes[0][..]), (out, &shapes[1][..])];
                let [q, r] =
                    outputs(specs, |outs| linalg::qr(outs, &source.buffer(), 1e-10, NxAlgorithm::Current))
                        .expect("a QR");
                let (qs, rs) = (decoded(&q, out, m, columns), decoded(&r, out, columns, n));
                for (i, a) in matrices(&source, m, n).iter().enumerate() {
                    close("Q R", out, qs[i].dot(&rs[i]).minus(a).norm(), a.norm() + 1.0, m.max(n));
                    let gram = qs[i].adjoint().dot(&qs[i]);
                    close("Qᴴ Q", out, gram.minus(&M::eye(columns, columns)).norm(), 2.0, m);
                    close("R", out, rs[i].minus(&rs[i].triangle(false)).norm(), a.norm(), m.max(n));
                }
            }
        }
    }
}

#[test]
fn eigenvectors_are_stretched_by_their_values() {
    let mut draw = Random(4);
    for dtype in TYPES {
        for n in SIZES {
            let root = random(dtype, n, n, &mut draw);
            let other = root.adjoint();
            let a = M::from(n, n, |i, j| {
                let (x, y) = (root.at(i, j), other.at(i, j));
                if dtype.is_integer() {
                    return if i >= j { x } else { root.at(j, i) };
                }
                ((x.0 + y.0) / 2.0, (x.1 + y.1) / 2.0)
            });
            let source = source(dtype, &[n, n], &[a]);
            let a = &matrices(&source, n, n)[0];
            let out = floating(dtype);
            let specs = [(out, &[n][..]), (out, &[n, n][..])];
            let [w, v] =
                outputs(specs, |outs| linalg::eigh(outs, &source.buffer(), 1e-4, NxAlgorithm::Current))
                    .expect("values");
            let (w, v) = (&decoded(&w, out, 1, n)[0], &decoded(&v, out, n, n)[0]);
            let stretched = M::from(n, n, |i, j| times(v.at(i, j), w.at(0, j)));
            close("A V - V D", out, a.dot(v).minus(&stretched).norm(), 2.0 * a.norm() + 1e-300, n);
            close("Vᴴ V", out, v.adjoint().dot(v).minus(&M::eye(n, n)).norm(), 2.0, n);
            let sizes: Vec<f64> = w.data.iter().map(|z| z.0.abs()).collect();
            assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
        }
    }
}

#[test]
fn singular_vectors_multiply_to_the_matrix() {
    let small =
        [(1, 1), (2, 2), (3, 2), (2, 3), (4, 4), (7, 3), (3, 7), (9, 4), (20, 20), (50, 17), (17, 50)];
    // Sizes that divide and conquer splits.
    let large = [(32, 32), (33, 33), (65, 66), (70, 50), (131, 60), (70, 131)];
    for dtype in [F64, F32, F16, BF16, S32, U8] {
        singular_vectors_multiply(dtype, 2, &small);
        if matches!(dtype, F64 | F32) {
            singular_vectors_multiply(dtype, 2, &large);
        }
    }
    // A single matrix, so large that threads share its products.
    singular_vectors_multiply(F64, 1, &[(210, 210)]);
}

fn singular_vectors_multiply(dtype: DType, count: usize, sizes: &[(usize, usize)]) {
    let mut draw = Random(5);
    for &(m, n) in sizes {
        for (full, steps) in
            [(true, NxAlgorithm::Current), (false, NxAlgorithm::ThinSvd), (false, NxAlgorithm::Current)]
        {
            let drawn: Vec<M> = (0..count).map(|_| random(dtype, m, n, &mut draw)).collect();
            let source = source(dtype, &[count, m, n], &drawn);
            let (out, k) = (floating(dtype), m.min(n));
            let (c, r) = if full { (m, n) } else { (k, k) };
            let shapes = [vec![count, m, c], vec![count, k], vec![count, r, n]];
            let specs = [(out, &shapes[0][..]), (out, &shapes[1][..]), (out, &shapes[2][..])];
            let [u, s, vt] =
                outputs(specs, |outs| linalg::svd(outs, &source.buffer(), steps)).expect("values");
            let (us, ss, vts) = (decoded(&u, out, m, c), decoded(&s, out, 1, k), decoded(&vt, out, r, n));
            // The thin algorithm takes small singular values of integers from their squares.
            let scale = if steps == NxAlgorithm::ThinSvd && out == F32 && k <= 2 { 16.0 } else { 2.0 };
            for (i, a) in matrices(&source, m, n).iter().enumerate() {
                let diagonal =
                    M::from(c, r, |x, y| if x == y && x < k { ss[i].at(0, x) } else { (0.0, 0.0) });
                let product = us[i].dot(&diagonal).dot(&vts[i]);
                close("U S Vᵀ", out, product.minus(a).norm(), a.norm() + 1e-300, m + n);
                let (ut, v) = (us[i].adjoint(), vts[i].adjoint());
                close("Uᵀ U", out, ut.dot(&us[i]).minus(&M::eye(c, c)).norm(), scale, m);
                close("V Vᵀ", out, vts[i].dot(&v).minus(&M::eye(r, r)).norm(), scale, n);
                assert!(ss[i].data.is_sorted_by(|a, b| a.0 >= b.0) && ss[i].data[k - 1].0 >= 0.0);
            }
        }
    }
}

/// Nx 0.9 stops before convergence; its results are used only for few rows and columns.
#[test]
fn the_steps_of_nx_0_9_are_near() {
    let mut draw = Random(11);
    for (n, most) in [(2, 4e-3), (3, 4e-3), (4, 1e-6), (9, 2e-6)] {
        for _ in 0..200 {
            let root = random(F32, n, n, &mut draw);
            let a = M::from(n, n, |i, j| root.at(i.max(j), i.min(j)));
            let source = source(F32, &[n, n], &[a]);
            let a = &matrices(&source, n, n)[0];
            let specs = [(F32, &[n][..]), (F32, &[n, n][..])];
            let [w, v] = outputs(specs, |o| linalg::eigh(o, &source.buffer(), 1e-4, NxAlgorithm::V0_9))
                .expect("values");
            let (w, v) = (&decoded(&w, F32, 1, n)[0], &decoded(&v, F32, n, n)[0]);
            let stretched = M::from(n, n, |i, j| times(v.at(i, j), w.at(0, j)));
            assert!(a.dot(v).minus(&stretched).norm() <= 2.0 * most * a.norm(), "{a:?} {w:?} {v:?}");
            let specs = [(F32, &[n, n][..]), (F32, &[n][..]), (F32, &[n, n][..])];
            let [u, s, vt] =
                outputs(specs, |o| linalg::svd(o, &source.buffer(), NxAlgorithm::V0_9)).expect("values");
            let (u, s) = (&decoded(&u, F32, n, n)[0], &decoded(&s, F32, 1, n)[0]);
            let diagonal = M::from(n, n, |i, j| if i == j { s.at(0, i) } else { (0.0, 0.0) });
            let product = u.dot(&diagonal).dot(&decoded(&vt, F32, n, n)[0]);
            assert!(product.minus(a).norm() <= 2.0 * most * a.norm(), "{a:?} {s:?}");
        }
    }
}

/// Nx 0.9 takes pivots from the matrix itself, and not from what elimination leaves of it.
#[test]
fn other_pivots_are_taken_where_those_of_nx_0_9_grow() {
    let matrix = |rows: [[f64; 3]; 3]| M::from(3, 3, |i, j| (rows[i][j], 0.0));
    let pivots = |a: &M, steps: NxAlgorithm| {
        let source = source(F32, &[3, 3], std::slice::from_ref(a));
        let specs = [(U8, &[3, 3][..]), (F32, &[3, 3][..]), (F32, &[3, 3][..])];
        let [p, l, u] = outputs(specs, |o| linalg::lu(o, &source.buffer(), steps)).expect("an LU");
        let p = &decoded(&p, U8, 3, 3)[0];
        let product = p.dot(&decoded(&l, F32, 3, 3)[0]).dot(&decoded(&u, F32, 3, 3)[0]);
        close("P L U", F32, product.minus(a).norm(), a.norm(), 3);
        p.data.iter().map(|z| z.0 as u8).collect::<Vec<u8>>()
    };
    let counting = matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]);
    assert_eq!(pivots(&counting, NxAlgorithm::V0_9), [0, 0, 1, 0, 1, 0, 1, 0, 0]);
    assert_eq!(pivots(&counting, NxAlgorithm::Current), [0, 1, 0, 0, 0, 1, 1, 0, 0]);
    // These pivots would divide by zero.
    let vanishing = matrix([[1.0, 2.0, 3.0], [2.0, 4.0, 1.0], [0.0, 1.0, 1.0]]);
    assert_eq!(pivots(&vanishing, NxAlgorithm::V0_9), pivots(&vanishing, NxAlgorithm::Current));
}

/// Matrices that are rank-deficient, graded, zero, or not zero only in one row and column, and
/// matrices of huge and tiny elements.
#[test]
fn awkward_matrices_decompose_too() {
    // Sizes that are solved whole, in halves, and in halves of halves.
    for n in [12, 33, 67, 100] {
        awkward_matrices_decompose(n);
    }
}

fn less(value: f64, bound: f64, what: String) {
    assert!(value <= bound, "{what}: {value:e} is more than {bound:e}");
}

#[test]
fn what_is_apart_keeps_its_singular_value() {
    let diagonal = |n: usize, at: &dyn Fn(usize) -> f64| {
        let a = M::from(n, n, |i, j| (if i == j { at(i) } else { 0.0 }, 0.0));
        let source = source(F64, &[n, n], &[a]);
        let specs = [(F64, &[n, n][..]), (F64, &[n][..]), (F64, &[n, n][..])];
        let [_, s, _] =
            outputs(specs, |outs| linalg::svd(outs, &source.buffer(), NxAlgorithm::Current)).expect("values");
        decoded(&s, F64, 1, n)[0].data.iter().map(|z| z.0).collect::<Vec<f64>>()
    };
    assert_eq!(diagonal(33, &|i| if i == 16 { 0.0 } else { 1.0 })[32], 0.0);
    let powers = diagonal(40, &|i| 10f64.powi(-(i as i32)));
    for (i, s) in powers.into_iter().enumerate() {
        assert!((s * 10f64.powi(i as i32) - 1.0).abs() < 1e-14, "{i}: {s:e}");
    }
}

/// The magnitude of the diagonal grows towards both ends.
fn wilkinson(n: usize, i: usize, j: usize) -> f64 {
    match i.abs_diff(j) {
        0 => (i as f64 - (n - 1) as f64 / 2.0).abs(),
        1 => 1.0,
        _ => 0.0,
    }
}

fn bidiagonal((i, j): (usize, usize), at: impl Fn(usize) -> f64, beside: impl Fn(usize) -> f64) -> f64 {
    match j.wrapping_sub(i) {
        0 => at(i),
        1 => beside(i),
        _ => 0.0,
    }
}

fn awkward_matrices_decompose(n: usize) {
    let mut draw = Random(6);
    let few = 1e-13 * n as f64 / 12.0;
    let real = |at: &dyn Fn(usize, usize) -> f64| M::from(n, n, |i, j| (at(i, j), 0.0));
    let small = random(F64, n, 3, &mut draw);
    let symmetric = |i: usize, j: usize| 1.0 / (i + j + 1) as f64;
    let cases = [
        real(&|_, _| 0.0),
        real(&|_, _| 1.0),
        real(&|i, j| f64::from(u8::from(i == j))),
        real(&symmetric),
        real(&|i, j| symmetric(i, j) * 1e300),
        real(&|i, j| symmetric(i, j) * 1e-300),
        real(&|i, j| symmetric(i, j) * 1e-310),
        real(&|i, j| 10f64.powi(-2 * (i.max(j) as i32))),
        real(&|i, j| 10f64.powi(-20 * (i.max(j) as i32))),
        real(&|i, j| if i.abs_diff(j) == 1 { 1.0 } else { 0.0 }),
        real(&|i, j| if i + j == n - 1 { (i.min(j) + 1) as f64 } else { 0.0 }),
        small.dot(&small.transpose()),
        real(&|i, j| if i == 0 || j == 0 { 1.0 } else { 0.0 }),
        // Wilkinson's matrix, whose eigenvalues come in close pairs, and several copies of it with
        // weak links between them.
        real(&|i, j| wilkinson(n, i, j)),
        real(&|i, j| match (i / 10 == j / 10, i.abs_diff(j)) {
            (true, _) => wilkinson(10, i % 10, j % 10),
            (false, 1) => 1e-8,
            _ => 0.0,
        }),
        real(&|i, j| match i.abs_diff(j) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        }),
        // Bidiagonal matrices: with zeros on and above the diagonal, and with rows of descending
        // magnitude.
        real(&|i, j| if i == j && i % 3 > 0 || i + 1 == j && i % 7 > 0 { 1.0 } else { 0.0 }),
        real(&|i, j| bidiagonal((i, j), |_| 0.0, |_| 1.0)),
        real(&|i, j| {
            let power = |i: usize| 0.5f64.powi(20 * i as i32);
            bidiagonal((i, j), power, power)
        }),
        real(&|i, j| bidiagonal((i, j), |_| 1.0, |_| 1e-9)),
        real(&|i, j| bidiagonal((i, j), |_| 1e-9, |_| 1.0)),
        // Bidiagonal matrices whose middle row is almost zero, or zero.
        real(&|i, j| {
            let at = |i: usize| if i + 1 == n / 2 { 1e-20 } else { 1.0 };
            let beside = |i: usize| if i + 1 == n / 2 { 1e-20 } else { 0.0 };
            bidiagonal((i, j), |i| if i == n / 2 { 5e-324 } else { at(i) }, beside)
        }),
        real(&|i, j| bidiagonal((i, j), |i| if i == n / 4 { 0.0 } else { 1.0 }, |_| 0.0)),
    ];
    for (case, a) in cases.iter().enumerate() {
        let what = |op: &str| format!("{op} of case {case} of {n} rows");
        let source = source(F64, &[n, n], std::slice::from_ref(a));
        let unit = |m: &M| m.data.iter().fold(0.0, |m: f64, z| m.max(z.0.abs())).max(1e-320);
        let scale = unit(a);
        let over = |m: &M| M::from(m.rows, m.columns, |i, j| (m.at(i, j).0 / scale, 0.0));
        let scaled = over(a);
        let bound = few * scaled.norm().max(1.0) + if scale < 1e-300 { 1e-8 } else { 0.0 };
        let specs = [(F64, &[n][..]), (F64, &[n, n][..])];
        let [w, v] = outputs(specs, |outs| linalg::eigh(outs, &source.buffer(), 1e-4, NxAlgorithm::Current))
            .unwrap_or_else(|error| panic!("{}: {error}", what("eigh")));
        let (w, v) = (over(&decoded(&w, F64, 1, n)[0]), &decoded(&v, F64, n, n)[0]);
        let stretched = M::from(n, n, |i, j| times(v.at(i, j), w.at(0, j)));
        // The symmetric part, which is what `eigh` decomposes.
        let mean = M::from(n, n, |i, j| ((scaled.at(i, j).0 + scaled.at(j, i).0) / 2.0, 0.0));
        let residual = mean.dot(v).minus(&stretched).norm();
        less(residual, bound, what("eigh"));
        less(v.adjoint().dot(v).minus(&M::eye(n, n)).norm(), few, what("eigh"));
        let specs = [(F64, &[n, n][..]), (F64, &[n][..]), (F64, &[n, n][..])];
        let [u, s, vt] =
            outputs(specs, |outs| linalg::svd(outs, &source.buffer(), NxAlgorithm::Current)).expect("values");
        let (u, s, vt) =
            (&decoded(&u, F64, n, n)[0], over(&decoded(&s, F64, 1, n)[0]), &decoded(&vt, F64, n, n)[0]);
        let us = M::from(n, n, |i, j| times(u.at(i, j), s.at(0, j)));
        less(us.dot(vt).minus(&scaled).norm(), bound, what("svd"));
        less(u.adjoint().dot(u).minus(&M::eye(n, n)).norm(), few, what("svd"));
        less(vt.adjoint().dot(vt).minus(&M::eye(n, n)).norm(), few, what("svd"));
        let specs = [(F64, &[n, n][..]), (F64, &[n, n][..])];
        let [q, r] = outputs(specs, |outs| linalg::qr(outs, &source.buffer(), 0.0, NxAlgorithm::Current))
            .expect("a QR");
        let (q, r) = (&decoded(&q, F64, n, n)[0], over(&decoded(&r, F64, n, n)[0]));
        less(q.dot(&r).minus(&scaled).norm(), bound, what("qr"));
        less(q.adjoint().dot(q).minus(&M::eye(n, n)).norm(), few, what("qr"));
    }
}

#[test]
fn what_is_not_finite_stays_so() {
    for bad in [f64::NAN, f64::INFINITY] {
        let mut a = M::eye(5, 5);
        a.data[7].0 = bad;
        let source = source(F32, &[5, 5], &[a]);
        let buffer = source.buffer();
        let square = &[5, 5][..];
        let [w, v] = outputs([(F32, &[5][..]), (F32, square)], |o| {
            linalg::eigh(o, &buffer, 1e-4, NxAlgorithm::Current)
        })
        .expect("NaN");
        let specs = [(F32, square), (F32, &[5][..]), (F32, square)];
        let [u, s, vt] = outputs(specs, |o| linalg::svd(o, &buffer, NxAlgorithm::Current)).expect("NaN");
        let [q, r] =
            outputs([(F32, square), (F32, square)], |o| linalg::qr(o, &buffer, 1e-10, NxAlgorithm::Current))
                .expect("NaN");
        for bits in [w, v, u, s, vt, q, r] {
            assert!(bits.iter().all(|&b| value(b, F32).is_nan()));
        }
        outputs([(F32, square); 3], |o| linalg::lu(o, &buffer, NxAlgorithm::Current)).expect("an answer");
        output(F32, square, |o| linalg::cholesky(o, &buffer)).expect("an answer");
        output(F32, square, |o| linalg::solve(o, &buffer, &buffer, Method::Lu)).expect("an answer");
        output(F32, &[], |o| linalg::determinant(o, &buffer)).expect("an answer");
    }
}

#[test]
fn triangular_systems_in_all_options() {
    let mut draw = Random(7);
    for dtype in [F64, C128, F32, C64, S32, BF16] {
        for n in [1, 2, 3, 9, 33] {
            let mut a = random(dtype, n, n, &mut draw);
            for i in 0..n {
                a.data[i * n + i].0 = 4.0;
                // Small elements beside the diagonal, so that the solution doesn't grow.
                for j in 0..n {
                    if i != j && !dtype.is_integer() {
                        a.data[i * n + j].0 /= n as f64;
                        a.data[i * n + j].1 /= n as f64;
                    }
                }
            }
            let a_source = source(dtype, &[n, n], &[a]);
            let a = &matrices(&a_source, n, n)[0];
            for lower in [true, false] {
                for left_side in [true, false] {
                    for transform in
                        [MatrixTransform::None, MatrixTransform::Transpose, MatrixTransform::Conjugate]
                    {
                        for other in [n, 0, 5] {
                            let (rows, columns) = match (other, left_side) {
                                (0, true) => (n, 1),
                                (0, false) => (1, n),
                                (k, true) => (n, k),
                                (k, false) => (k, n),
                            };
                            let b = random(dtype, rows, columns, &mut draw);
                            let shape = if other == 0 { vec![n] } else { vec![rows, columns] };
                            let b_source = source(dtype, &shape, &[b]);
                            let b = &matrices(&b_source, rows, columns)[0];
                            let out = floating(dtype);
                            let how = Triangular { lower, left_side, transform };
                            let got = output(out, &shape, |out| {
                                linalg::triangular_solve(out, &a_source.buffer(), &b_source.buffer(), how)
                            });
                            let x = &decoded(&got.expect("a solution"), out, rows, columns)[0];
                            let t = a.triangle(lower);
                            let t = match transform {
                                MatrixTransform::None => t,
                                MatrixTransform::Transpose => t.transpose(),
                                MatrixTransform::Conjugate => t.conj(),
                            };
                            let product = if left_side { t.dot(x) } else { x.dot(&t) };
                            let scale = t.norm() * x.norm() + 1e-300;
                            close(&format!("{how:?}"), out, product.minus(b).norm(), scale, n);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn systems_of_equations() {
    let mut draw = Random(8);
    for dtype in [F64, C128, F32, C64, S32] {
        for n in SIZES {
            for method in [Method::Lu, Method::Qr] {
                let mut a = random(dtype, n, n, &mut draw);
                (0..n).for_each(|i| a.data[i * n + i].0 += 3.0 * n as f64);
                let b = random(dtype, n, 3, &mut draw);
                let (a_source, b_source) = (source(dtype, &[1, n, n], &[a]), source(dtype, &[1, n, 3], &[b]));
                let (a, b) = (&matrices(&a_source, n, n)[0], &matrices(&b_source, n, 3)[0]);
                let out = floating(dtype);
                let got = output(out, &[1, n, 3], |out| {
                    linalg::solve(out, &a_source.buffer(), &b_source.buffer(), method)
                });
                let x = &decoded(&got.expect("a solution"), out, n, 3)[0];
                close("A X", out, a.dot(x).minus(b).norm(), a.norm() * x.norm(), n);
            }
        }
    }
}

#[test]
fn determinants() {
    let determinant = |dtype, n: usize, numbers: &[f64]| {
        let a = M::new(n, n, numbers.iter().map(|&x| (x, 0.0)).collect());
        let source = source(dtype, &[n, n], &[a]);
        let out = floating(dtype);
        let got = output(out, &[], |out| linalg::determinant(out, &source.buffer())).expect("a number");
        value(got[0], out).re()
    };
    assert_eq!(determinant(S32, 1, &[7.0]), 7.0);
    assert_eq!(determinant(S32, 2, &[1.0, 2.0, 3.0, 4.0]), -2.0);
    assert_eq!(determinant(F32, 3, &[1.0, 2.0, 3.0, 1.0, -2.0, 3.0, 7.0, 8.0, 9.0]), 48.0);
    let four = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 1.0, -2.0, 3.0, 0.0, 7.0, 8.0, 9.0];
    assert!((determinant(F64, 4, &four) - 48.0).abs() < 1e-12);
    let mut swapped = four;
    swapped.rotate_left(4);
    assert!((determinant(F64, 4, &swapped) + 48.0).abs() < 1e-12);
    assert_eq!(determinant(F64, 4, &[1.0; 16]), 0.0);
    // Products in 32-bit integers would overflow.
    assert_eq!(determinant(S64, 2, &[3e6, 1e6, 1e6, 3e6]), (8e12f64 as f32).into());
}

#[test]
fn every_view_is_read_as_it_is() {
    let mut draw = Random(9);
    for view in views(&[2, 3, 3]) {
        let numbers: Vec<Number> = (0..997).map(|_| Number::Real(draw.unit())).collect();
        let seen = Source::new(F64, view, &numbers);
        let shape = [2, 3, 3];
        let run = |tensor: &Tensor<'_>| {
            outputs([(F64, &shape[..]); 3], |outs| linalg::lu(outs, tensor, NxAlgorithm::Current))
                .expect("an LU")
        };
        let buffer = seen.buffer();
        let dense = source(F64, &shape, &matrices(&seen, 3, 3));
        assert_eq!(run(&seen.see(&buffer)), run(&dense.buffer()));
    }
}

#[test]
fn batches_of_none_and_matrices_of_nothing() {
    for shape in [[0, 3, 3], [2, 0, 0]] {
        let source = source(F32, &shape, &[M::eye(1, 1)]);
        let buffer = source.buffer();
        outputs([(F32, &shape[..]); 3], |o| linalg::lu(o, &buffer, NxAlgorithm::Current)).expect("nothing");
        outputs([(F32, &shape[..]); 2], |o| linalg::qr(o, &buffer, 0.0, NxAlgorithm::Current))
            .expect("nothing");
        outputs([(F32, &shape[..2]), (F32, &shape)], |o| {
            linalg::eigh(o, &buffer, 1e-4, NxAlgorithm::Current)
        })
        .expect("nothing");
        outputs([(F32, &shape[..]), (F32, &shape[..2]), (F32, &shape)], |o| {
            linalg::svd(o, &buffer, NxAlgorithm::Current)
        })
        .expect("nothing");
        output(F32, &shape, |o| linalg::cholesky(o, &buffer)).expect("nothing");
        output(F32, &shape, |o| linalg::solve(o, &buffer, &buffer, Method::Lu)).expect("nothing");
        output(F32, &shape[..1], |o| linalg::determinant(o, &buffer)).expect("nothing");
    }
}

#[test]
fn bad_arguments_are_errors() {
    let wide = source(F32, &[2, 3], &[M::eye(2, 3)]);
    let zero = source(F32, &[2, 2], &[M::from(2, 2, |_, _| (0.0, 0.0))]);
    let complex = source(C64, &[2, 2], &[M::eye(2, 2)]);
    let (wide, zero, complex) = (wide.buffer(), zero.buffer(), complex.buffer());
    let square = &[2, 2][..];
    let how = Triangular { lower: true, left_side: true, transform: MatrixTransform::None };
    let solved = output(F32, square, |o| linalg::triangular_solve(o, &zero, &zero, how));
    assert_eq!(solved, Err(Error::Singular));
    assert_eq!(solved.unwrap_err().to_string(), "can't solve for singular matrix");
    for method in [Method::Lu, Method::Qr] {
        assert_eq!(output(F32, square, |o| linalg::solve(o, &zero, &zero, method)), Err(Error::Singular));
    }
    let shapes = |result: Result<Vec<u128>, Error>| assert!(matches!(result, Err(Error::Shape { .. })));
    shapes(output(F32, &[2, 3], |o| linalg::cholesky(o, &wide)));
    shapes(output(F32, square, |o| linalg::cholesky(o, &wide)));
    shapes(output(F32, &[], |o| linalg::determinant(o, &wide)));
    shapes(output(F32, &[2, 3], |o| linalg::triangular_solve(o, &wide, &wide, how)));
    shapes(output(F32, &[3, 2], |o| linalg::solve(o, &zero, &wide, Method::Lu)));
    let bad = outputs([(F32, square), (F32, &[2, 2])], |o| linalg::qr(o, &wide, 0.0, NxAlgorithm::Current));
    assert!(matches!(bad, Err(Error::Shape { .. })));
    let bad = outputs([(C64, square), (C64, &[2]), (C64, square)], |o| {
        linalg::svd(o, &complex, NxAlgorithm::Current)
    });
    assert!(matches!(bad, Err(Error::UnsupportedType { .. })));
    let bad = output(S32, square, |o| linalg::cholesky(o, &zero));
    assert!(matches!(bad, Err(Error::UnsupportedType { .. })));
    assert_eq!(cast(Number::Real(1.0), F32), 0x3f80_0000);
}

/// Hermitian matrices that are hard to decompose: products over- or underflow, steps start at the
/// wrong end, or small elements are taken for zero. The magnitudes are up to about one and spread
/// over `spread` powers of ten.
fn hard_matrices(n: usize, spread: f64, complex: bool, draw: &mut Random) -> Vec<(String, M)> {
    let power = |share: f64| 10f64.powf(-spread * share);
    let last = (n - 1).max(1) as f64;
    let noise: Vec<f64> = (0..n * n).map(|_| draw.unit()).collect();
    let symmetric = |i: usize, j: usize| noise[i.max(j) * n + i.min(j)];
    let exponents: Vec<f64> = (0..n).map(|_| draw.unit().abs()).collect();
    let place: Vec<usize> = {
        let mut place: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| place.swap(i, draw.below(i + 1)));
        place
    };
    let phases: Vec<C> = (0..n).map(|_| (draw.unit() * 3.0).sin_cos()).collect();
    let phase = |i: usize, j: usize| {
        if complex { times(phases[i], (phases[j].0, -phases[j].1)) } else { (1.0, 0.0) }
    };
    let down = |i: usize| i as f64 / last / 2.0;
    let up = |i: usize| 0.5 - i as f64 / last / 2.0;
    let ends = |i: usize| (2.0 * i as f64 / last - 1.0).abs() / 2.0;
    let middle = |i: usize| 0.5 - ends(i);
    let arrow = |head: usize| {
        move |i: usize, j: usize| match (i == head || j == head, i == j) {
            (true, _) => 1.0,
            (_, true) => power(1.0) * i as f64,
            _ => 0.0,
        }
    };
    let tridiagonal = |share: &dyn Fn(usize) -> f64, diagonal: f64, i: usize, j: usize| match i.abs_diff(j) {
        0 => diagonal * power(2.0 * share(i)),
        1 => power(share(i) + share(j)),
        _ => 0.0,
    };
    let mut found: Vec<(String, M)> = Vec::new();
    let mut add = |name: &str, at: &dyn Fn(usize, usize) -> f64| {
        let a = M::from(n, n, |i, j| times(phase(i, j), (at(i, j), 0.0)));
        found.push((format!("{name} of {n} rows over 1e{spread}"), a));
    };
    add("an arrow", &arrow(0));
    add("an arrow from the last row", &arrow(n - 1));
    add("an arrow from the middle", &arrow(n / 2));
    add("a Gaussian's square", &|i, j| {
        let w = |i: usize| power((2.0 * i as f64 / last - 1.0).powi(2) / 2.0);
        w(i) * w(j)
    });
    add("a Gaussian", &|i, j| power(((i as f64 - j as f64) / last).powi(2)));
    for (name, share) in [
        ("descending", &down as &dyn Fn(usize) -> f64),
        ("ascending", &up),
        ("large ends", &middle),
        ("a large middle", &ends),
        ("scaled rows and columns", &|i| exponents[i] / 2.0),
    ] {
        add(name, &|i, j| symmetric(i, j) * power(share(i) + share(j)));
        add(&format!("{name}, positive definite"), &|i, j| {
            (if i == j { n as f64 } else { 0.5 * symmetric(i, j) }) * power(share(i) + share(j)) / n as f64
        });
        add(&format!("{name}, tridiagonal"), &|i, j| tridiagonal(share, 2.0, i, j));
        add(&format!("{name}, zeros on the diagonal"), &|i, j| tridiagonal(share, 0.0, i, j));
        add(&format!("{name}, once beside the diagonal"), &|i, j| match i.abs_diff(j) {
            0 => power(2.0 * share(i)),
            1 => power(2.0 * share(i.min(j))),
            _ => 0.0,
        });
    }
    add("Wilkinson's", &|i, j| wilkinson(n, i, j));
    add("Wilkinson's, glued", &|i, j| match (i / 7 == j / 7, i.abs_diff(j)) {
        (true, _) => wilkinson(7, i % 7, j % 7),
        (false, 1) => power(1.0),
        _ => 0.0,
    });
    // Blocks of two rows, each block with its own magnitude, whose rows are at random places.
    add("blocks", &|i, j| {
        let (i, j) = (place[i], place[j]);
        match (i / 2 == j / 2, i == j) {
            (true, true) => 2.0 * power(i as f64 / 2.0 / last),
            (true, false) => power((i / 2) as f64 / last),
            _ => 0.0,
        }
    });
    found
}

/// Tests the residuals and the orthonormality of the vectors for the eigenvalue decompositions and
/// the singular value decompositions of a batch.
fn decomposes(dtype: DType, n: usize, cases: &[(String, M)], huge: f64) {
    let drawn: Vec<M> =
        cases.iter().map(|(_, a)| M::from(n, n, |i, j| times(a.at(i, j), (huge, 0.0)))).collect();
    let count = drawn.len();
    let source = source(dtype, &[count, n, n], &drawn);
    let over = |m: &M, by: f64| M::from(m.rows, m.columns, |i, j| (m.at(i, j).0 / by, m.at(i, j).1 / by));
    let matrices: Vec<M> = matrices(&source, n, n);
    let scales: Vec<f64> = matrices
        .iter()
        .map(|a| a.data.iter().fold(0.0, |most: f64, z| most.max(z.0.abs()).max(z.1.abs())).max(1e-320))
        .collect();
    let least = if matches!(dtype, F64 | C128) { 5e-324 } else { 1e-45 };
    // Small matrices of f32 go through Nx's algorithms, which round more often.
    let few = if matches!(dtype, F32) && n <= 3 { 16.0 } else { 8.0 };
    let check = |what: &str, case: usize, residual: f64, scale: f64| {
        let lost = n as f64 * least / scales[case];
        let bound = few * unit(dtype) * (n as f64 + 2.0) * scale + lost;
        let name = &cases[case].0;
        assert!(
            residual <= bound,
            "{what} of {name} in {dtype} times {huge:e}: {residual:e} is more than {bound:e}"
        );
    };
    let specs = [(dtype, &[count, n][..]), (dtype, &[count, n, n][..])];
    let [w, v] = outputs(specs, |outs| linalg::eigh(outs, &source.buffer(), 1e-4, NxAlgorithm::Current))
        .unwrap_or_else(|error| panic!("{dtype}, {n} rows, times {huge:e}: {error}"));
    let (ws, vs) = (decoded(&w, dtype, 1, n), decoded(&v, dtype, n, n));
    for (case, a) in matrices.iter().enumerate() {
        let (a, w, v) = (over(a, scales[case]), over(&ws[case], scales[case]), &vs[case]);
        let stretched = M::from(n, n, |i, j| times(v.at(i, j), w.at(0, j)));
        check("A V - V D", case, a.dot(v).minus(&stretched).norm(), a.norm().max(1.0));
        check("Vᴴ V", case, v.adjoint().dot(v).minus(&M::eye(n, n)).norm(), 1.0);
    }
    if dtype.is_complex() {
        return;
    }
    for steps in [NxAlgorithm::Current, NxAlgorithm::ThinSvd] {
        let specs = [(dtype, &[count, n, n][..]), (dtype, &[count, n][..]), (dtype, &[count, n, n][..])];
        let [u, s, vt] = outputs(specs, |outs| linalg::svd(outs, &source.buffer(), steps))
            .unwrap_or_else(|error| panic!("{dtype}, {n} rows, times {huge:e}: {error}"));
        let (us, ss, vts) = (decoded(&u, dtype, n, n), decoded(&s, dtype, 1, n), decoded(&vt, dtype, n, n));
        for (case, a) in matrices.iter().enumerate() {
            let (a, u, s, vt) = (over(a, scales[case]), &us[case], over(&ss[case], scales[case]), &vts[case]);
            let stretched = M::from(n, n, |i, j| times(u.at(i, j), s.at(0, j)));
            check("A - U S Vᵀ", case, stretched.dot(vt).minus(&a).norm(), a.norm().max(1.0));
            check("Uᵀ U", case, u.adjoint().dot(u).minus(&M::eye(n, n)).norm(), 1.0);
            check("V Vᵀ", case, vt.dot(&vt.adjoint()).minus(&M::eye(n, n)).norm(), 1.0);
        }
    }
}

#[test]
fn hard_matrices_decompose() {
    let mut draw = Random(12);
    for n in [1, 2, 3, 4, 5, 8, 9, 20, 33, 40, 67] {
        for spread in [0.0, 8.0, 20.0, 40.0, 100.0, 150.0, 200.0, 300.0, 400.0] {
            for dtype in [F64, F32, C128, C64] {
                let wide = matches!(dtype, F64 | C128);
                if !wide && spread > 40.0 || n > 40 && spread % 100.0 > 0.0 {
                    continue;
                }
                let cases = hard_matrices(n, spread, dtype.is_complex(), &mut draw);
                for huge in
                    if wide { [1.0, 1e150, 1e-150, 1e300, 1e-300] } else { [1.0, 1e15, 1e-15, 1e36, 1e-30] }
                {
                    if huge == 1.0 || n <= 9 {
                        decomposes(dtype, n, &cases, huge);
                    }
                }
            }
        }
    }
}

fn eigenvalues(dtype: DType, a: &M) -> Vec<f64> {
    let n = a.rows;
    let source = source(dtype, &[n, n], std::slice::from_ref(a));
    let specs = [(dtype, &[n][..]), (dtype, &[n, n][..])];
    let [w, _] = outputs(specs, |outs| linalg::eigh(outs, &source.buffer(), 1e-4, NxAlgorithm::Current))
        .expect("values");
    decoded(&w, dtype, 1, n)[0].data.iter().map(|z| z.0).collect()
}

fn near(got: &[f64], expected: &[f64], bound: f64) {
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() <= bound * e.abs(), "{got:?} instead of {expected:?}");
    }
}

fn diagonal(values: &[f64]) -> M {
    M::from(values.len(), values.len(), |i, j| (if i == j { values[i] } else { 0.0 }, 0.0))
}

fn rows<const N: usize>(values: [[f64; N]; N]) -> M {
    M::from(N, N, |i, j| (values[i][j], 0.0))
}

#[test]
fn small_eigenvalues_stay() {
    for dtype in [F64, C128] {
        near(&eigenvalues(dtype, &diagonal(&[1.0, 1e-20, 1e-30, 2.0])), &[2.0, 1.0, 1e-20, 1e-30], 1e-15);
        near(&eigenvalues(dtype, &diagonal(&[1e300, 1e-20, -1e-90])), &[1e300, 1e-20, -1e-90], 1e-15);
        let block = rows([[1.0, 0.0, 0.0], [0.0, 2e-20, 1e-20], [0.0, 1e-20, 2e-20]]);
        near(&eigenvalues(dtype, &block), &[1.0, 3e-20, 1e-20], 1e-14);
        let apart = rows([[2e-20, 0.0, 1e-20], [0.0, 1.0, 0.0], [1e-20, 0.0, 2e-20]]);
        near(&eigenvalues(dtype, &apart), &[1.0, 3e-20, 1e-20], 1e-14);
        near(&eigenvalues(dtype, &rows([[1.0, 1e-16], [1e-16, 2e-32]])), &[1.0, 1e-32], 1e-14);
        near(&eigenvalues(dtype, &rows([[1.0, 1.0], [1.0, 1.0]])), &[2.0, 0.0], 1e-15);
    }
    for dtype in [F32, C64] {
        near(&eigenvalues(dtype, &diagonal(&[1.0, 1e-6])), &[1.0, 1e-6], 1e-7);
        near(&eigenvalues(dtype, &diagonal(&[1.0, 1e-20, 1e-30, 2.0])), &[2.0, 1.0, 1e-20, 1e-30], 1e-7);
        let block = rows([[1.0, 0.0, 0.0], [0.0, 2e-20, 1e-20], [0.0, 1e-20, 2e-20]]);
        near(&eigenvalues(dtype, &block), &[1.0, 3e-20, 1e-20], 1e-6);
    }
    for n in [5, 20, 40] {
        let arrow = |i: usize, j: usize| match (i == 0 || j == 0, i == j) {
            (true, _) => 1.0,
            (_, true) => 1e-200 * i as f64,
            _ => 0.0,
        };
        let values = eigenvalues(F64, &M::from(n, n, |i, j| (arrow(i, j), 0.0)));
        let root = (1.0 + 4.0 * (n - 1) as f64).sqrt();
        near(&values[..2], &[0.5 + root / 2.0, 0.5 - root / 2.0], 1e-14);
        assert!(values[2..].iter().all(|value| value.abs() < 1e-14), "{values:?}");
    }
}

#[test]
fn small_pivots_stay() {
    let cholesky = |dtype, a: &M| {
        let n = a.rows;
        let source = source(dtype, &[n, n], std::slice::from_ref(a));
        let got = output(dtype, &[n, n], |out| linalg::cholesky(out, &source.buffer())).expect("an L");
        decoded(&got, dtype, n, n)[0].data.iter().map(|z| z.0).collect::<Vec<f64>>()
    };
    for dtype in [F64, C128, F32, C64] {
        let few = 4.0 * unit(dtype);
        near(&cholesky(dtype, &diagonal(&[1.0, 1e-36])), &[1.0, 0.0, 0.0, 1e-18], few);
        near(&cholesky(dtype, &rows([[1.0, 1.0], [1.0, 1.0]])), &[1.0, 0.0, 1.0, 0.0], 0.0);
        let none = cholesky(dtype, &rows([[0.0, 1e-9], [1e-9, 1.0]]));
        assert!(none[2].is_nan() && none[3].is_nan(), "{none:?}");
    }
    assert_eq!(cholesky(F64, &diagonal(&[1.0, 1e-36])), [1.0, 0.0, 0.0, 1e-36f64.sqrt()]);
    let graded = cholesky(F64, &rows([[1.0, 1e-18], [1e-18, 1e-34]]));
    near(&graded, &[1.0, 0.0, 1e-18, 1e-17 * 0.99f64.sqrt()], 1e-15);
    // Semidefinite, with zero rows in each half and among the rows between the halves.
    for n in [40, 100] {
        let l = cholesky(F64, &M::from(n, n, |i, j| (f64::from(u8::from(i == j && i % 7 > 0)), 0.0)));
        assert!(
            l.iter().enumerate().all(|(k, &l)| l == f64::from(u8::from(k % (n + 1) == 0 && k / n % 7 > 0)))
        );
    }
    for dtype in [F64, C128, F32, C64] {
        for method in [Method::Lu, Method::Qr] {
            for a in
                [diagonal(&[1.0, 1e-20]), rows([[1.0, 1.0], [0.0, 1e-20]]), diagonal(&[1e-20, 1.0, 1e-30])]
            {
                let n = a.rows;
                let (a, ones) =
                    (source(dtype, &[n, n], &[a]), source(dtype, &[n], &[M::new(1, n, vec![(1.0, 0.0); n])]));
                let x = output(dtype, &[n], |out| linalg::solve(out, &a.buffer(), &ones.buffer(), method));
                let x = decoded(&x.expect("a solution"), dtype, 1, n)[0].clone();
                assert!(
                    (x.at(0, n - 1).0 / if n == 2 { 1e20 } else { 1e30 } - 1.0).abs() < 8.0 * unit(dtype)
                );
            }
        }
        for eps in [1e-10, 1e-4] {
            for steps in [NxAlgorithm::Current, NxAlgorithm::V0_9] {
                let a = source(dtype, &[2, 2], &[diagonal(&[1.0, 1e-20])]);
                let specs = [(dtype, &[2, 2][..]); 2];
                let [_, r] = outputs(specs, |o| linalg::qr(o, &a.buffer(), eps, steps)).expect("a QR");
                assert!((value(r[3], dtype).re().abs() * 1e20 - 1.0).abs() < 4.0 * unit(dtype));
            }
        }
    }
}

#[test]
fn determinants_of_all_magnitudes() {
    let determinant = |dtype, a: &M| {
        let n = a.rows;
        let source = source(dtype, &[n, n], std::slice::from_ref(a));
        let got = output(dtype, &[], |out| linalg::determinant(out, &source.buffer())).expect("a number");
        (value(got[0], dtype).re(), value(got[0], dtype).im())
    };
    let (a, b) = (52_000.5, 51_996.25);
    let all_but_singular = rows([[a, b, b], [b, a, b], [b, b, a]]);
    for dtype in [F32, F64, C64, C128] {
        near(&[determinant(dtype, &all_but_singular).0], &[2_817_623.562_5], 2.0 * unit(dtype));
        near(&[determinant(dtype, &rows([[4097.0, 4098.0], [4096.0, 4097.0]])).0], &[1.0], 0.0);
        near(&[determinant(dtype, &rows([[1.0, 2.0], [3.0, 4.0]])).0], &[-2.0], 0.0);
    }
    // Nx's documentation shows the digits that its algorithm gives in f32.
    let four = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, -2.0, 3.0], [0.0, 7.0, 8.0, 9.0]];
    assert_eq!(determinant(F32, &rows(four)).0, f64::from(47.999_996_f32));
    let four = [[2.0, 5.0, 1.0, 3.0], [4.0, 1.0, 7.0, 9.0], [6.0, 8.0, 3.0, 2.0], [7.0, 8.0, 1.0, 4.0]];
    assert_eq!(determinant(F32, &rows(four)).0, f64::from(630.000_06_f32));
    // That algorithm is not followed where it loses more than a few digits.
    let near_ones = |i: usize, j: usize| if i == j { 52_000.5 } else { 51_996.25 };
    let expected = 4.25f64.powi(4) * (52_000.5 + 4.0 * 51_996.25);
    near(&[determinant(F32, &M::from(5, 5, |i, j| (near_ones(i, j), 0.0))).0], &[expected], 1e-6);
    let large = (1u64 << 26) as f64 + 1.0;
    near(&[determinant(F64, &rows([[large, large + 1.0], [large - 1.0, large]])).0], &[1.0], 0.0);
    for dtype in [F32, C64] {
        near(&[determinant(dtype, &diagonal(&[1e20, 1e20, 1e-20])).0], &[1e20], 1e-6);
        near(&[determinant(dtype, &diagonal(&[1e30, 1e30, 1e-30, 1e-30])).0], &[1.0], 1e-6);
    }
    for dtype in [F64, C128] {
        near(&[determinant(dtype, &diagonal(&[1e200, 1e200, 1e-200])).0], &[1e200], 1e-14);
        near(&[determinant(dtype, &diagonal(&[1e-200, 1e-200, 1e200, 1e200])).0], &[1.0], 1e-14);
        near(&[determinant(dtype, &diagonal(&[1e-200, 1e200])).0], &[1.0], 1e-14);
        assert_eq!(determinant(dtype, &diagonal(&[1e200; 4])).0, f64::INFINITY);
        assert_eq!(determinant(dtype, &diagonal(&[1e-200; 4])).0, 0.0);
    }
    // If rows and columns are multiplied by powers of two, the determinant is multiplied by all of
    // them.
    let mut draw = Random(13);
    for dtype in [F64, C128] {
        for n in [1, 2, 3, 4, 5, 8, 20, 33, 67] {
            for _ in 0..10 {
                let a = random(dtype, n, n, &mut draw);
                let plain = determinant(dtype, &a);
                let mut powers: Vec<i32> = (0..2 * n).map(|_| (draw.unit() * 480.0) as i32).collect();
                let total: i32 = powers.iter().sum();
                powers[0] -= total;
                if powers[0].abs() > 480 {
                    // Spreads the powers evenly, so that no element leaves the range.
                    (0..2 * n).for_each(|i| powers[i] = if i % 2 == 0 { 400 } else { -400 });
                    powers.rotate_left(n % 2);
                }
                let total: i32 = powers.iter().sum();
                let by = |i: usize, j: usize| 2f64.powi(powers[i]) * 2f64.powi(powers[n + j]);
                let scaled = M::from(n, n, |i, j| times(a.at(i, j), (by(i, j), 0.0)));
                let (got, by) = (determinant(dtype, &scaled), 2f64.powi(total));
                let size = plain.0.hypot(plain.1);
                let distance = (got.0 / by - plain.0).hypot(got.1 / by - plain.1);
                assert!(
                    distance <= 1e-10 * size,
                    "{n} rows of {dtype}: {got:?} over {by:e} instead of {plain:?}"
                );
            }
        }
    }
    // The determinants of integer matrices are integers of up to 128 bits.
    for _ in 0..2_000 {
        let n = 2 + draw.below(2);
        let most = 2f64.powi(1 + draw.below(26) as i32);
        let a: Vec<i128> = (0..n * n).map(|_| (draw.unit() * most).round() as i128).collect();
        let at = |i: usize, j: usize| a[i * n + j];
        let exact = if n == 2 {
            at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0)
        } else {
            (0..3)
                .map(|j| {
                    at(0, j)
                        * (at(1, (j + 1) % 3) * at(2, (j + 2) % 3) - at(1, (j + 2) % 3) * at(2, (j + 1) % 3))
                })
                .sum()
        };
        let matrix = M::from(n, n, |i, j| (at(i, j) as f64, 0.0));
        near(&[determinant(F64, &matrix).0], &[exact as f64], 2.0 * unit(F64));
    }
}

#[test]
fn left_vectors_of_small_matrices_are_orthonormal() {
    let mut draw = Random(14);
    for (m, n) in [(2, 2), (3, 2), (4, 2), (3, 3), (4, 3)] {
        const COUNT: usize = 3_000;
        let drawn: Vec<M> = (0..COUNT)
            .map(|i| {
                // Condition numbers of all magnitudes: the columns become more and more alike.
                let apart = 10f64.powf(-(i as f64) / COUNT as f64 * 8.0);
                let base: Vec<f64> = (0..m).map(|_| draw.unit()).collect();
                let noise: Vec<f64> = (0..m * n).map(|_| draw.unit()).collect();
                M::from(m, n, |i, j| (base[i] + apart * noise[i * n + j], 0.0))
            })
            .collect();
        let source = source(F32, &[COUNT, m, n], &drawn);
        let specs = [(F32, &[COUNT, m, n][..]), (F32, &[COUNT, n][..]), (F32, &[COUNT, n, n][..])];
        let [u, _, _] =
            outputs(specs, |outs| linalg::svd(outs, &source.buffer(), NxAlgorithm::ThinSvd)).expect("values");
        for (u, a) in decoded(&u, F32, m, n).iter().zip(&drawn) {
            let oblique = u.adjoint().dot(u).minus(&M::eye(n, n)).norm();
            assert!(oblique <= 4.0 * (m + n) as f64 * f64::from(f32::EPSILON), "{oblique:e}: {a:?}");
        }
    }
}

#[test]
fn small_singular_values_stay() {
    let values = |dtype, a: &M| {
        let (m, n) = (a.rows, a.columns);
        let source = source(dtype, &[m, n], std::slice::from_ref(a));
        let specs = [(dtype, &[m, n][..]), (dtype, &[n][..]), (dtype, &[n, n][..])];
        let [_, s, _] =
            outputs(specs, |outs| linalg::svd(outs, &source.buffer(), NxAlgorithm::ThinSvd)).expect("values");
        decoded(&s, dtype, 1, n)[0].data.iter().map(|z| z.0).collect::<Vec<f64>>()
    };
    for dtype in [F64, F32] {
        let few = 16.0 * unit(dtype);
        for a in [[1.0, 1e-20, 1e-30, 2.0], [1e-30, 1e-20, 1.0, 2.0], [1.0, 2.0, 1e-30, 1e-20]] {
            near(&values(dtype, &diagonal(&a)), &[2.0, 1.0, 1e-20, 1e-30], few);
        }
        near(&values(dtype, &diagonal(&[1e-12, 1.0, 1e-6])), &[1.0, 1e-6, 1e-12], few);
        let apart = rows([[2e-20, 0.0, 1e-20], [0.0, 1.0, 0.0], [1e-20, 0.0, 2e-20]]);
        near(&values(dtype, &apart), &[1.0, 3e-20, 1e-20], few);
        // Singular values within rounding errors of zero become zero.
        for n in [4, 9, 40] {
            let rank_two = M::from(n, n, |i, j| ((i + 2 * j) as f64, 0.0));
            let s = values(dtype, &rank_two);
            assert!(s[2..].iter().all(|&s| if dtype == F32 {
                s == 0.0
            } else {
                s <= 1e-15 * (n * n) as f64
            }));
        }
    }
    // All digits of a graded bidiagonal matrix are right (Demmel and Kahan): the product of its
    // singular values equals the product of its diagonal.
    let n = 12;
    let a = M::from(n, n, |i, j| {
        let power = |i: usize| 10f64.powi(-(i as i32) * 3);
        (bidiagonal((i, j), power, power), 0.0)
    });
    let product: f64 = values(F64, &a).iter().map(|s| s.log10()).sum();
    assert!((product + 3.0 * (n * (n - 1) / 2) as f64).abs() < 1e-11, "{product}");
}
