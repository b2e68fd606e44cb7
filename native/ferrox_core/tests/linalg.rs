//! Factorizations against what they must multiply to, and systems of equations
//! against their residuals.

mod common;

use common::number::{Number, cast, value};
use common::{Random, Source, contiguous, output, views};
use ferrox_core::DType::{self, *};
use ferrox_core::ops::linalg::{self, Method, Steps, Transform, Triangular};
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

/// The matrices that a tensor holds, as it rounded them.
fn matrices(source: &Source, rows: usize, columns: usize) -> Vec<M> {
    let elements: Vec<C> = source.elements().iter().map(|e| (e.re(), e.im())).collect();
    elements.chunks(rows * columns).map(|c| M::new(rows, columns, c.to_vec())).collect()
}

fn decoded(bits: &[u128], dtype: DType, rows: usize, columns: usize) -> Vec<M> {
    let values: Vec<C> = bits.iter().map(|&b| value(b, dtype)).map(|n| (n.re(), n.im())).collect();
    values.chunks(rows * columns).map(|c| M::new(rows, columns, c.to_vec())).collect()
}

/// Several results: their types and shapes, and what each holds.
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
            let [p, l, u] =
                outputs(specs, |outs| linalg::lu(outs, &source.buffer(), Steps::Current)).expect("an LU");
            let ps = decoded(&p, dtype, n, n);
            let (ls, us) = (decoded(&l, out, n, n), decoded(&u, out, n, n));
            for (i, a) in matrices(&source, n, n).iter().enumerate() {
                let product = ps[i].dot(&ls[i]).dot(&us[i]);
                // A narrow result is rounded element by element.
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
                let [q, r] = outputs(specs, |outs| linalg::qr(outs, &source.buffer(), 1e-10, Steps::Current))
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
            let [w, v] = outputs(specs, |outs| linalg::eigh(outs, &source.buffer(), 1e-4, Steps::Current))
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
    // Of which halves are joined.
    let large = [(32, 32), (33, 33), (65, 66), (70, 50), (131, 60), (70, 131)];
    for dtype in [F64, F32, F16, BF16, S32, U8] {
        singular_vectors_multiply(dtype, 2, &small);
        if matches!(dtype, F64 | F32) {
            singular_vectors_multiply(dtype, 2, &large);
        }
    }
    // Alone, and so large that its products are shared.
    singular_vectors_multiply(F64, 1, &[(210, 210)]);
}

fn singular_vectors_multiply(dtype: DType, count: usize, sizes: &[(usize, usize)]) {
    let mut draw = Random(5);
    for &(m, n) in sizes {
        for (full, steps) in [(true, Steps::Current), (false, Steps::Thin), (false, Steps::Current)] {
            let drawn: Vec<M> = (0..count).map(|_| random(dtype, m, n, &mut draw)).collect();
            let source = source(dtype, &[count, m, n], &drawn);
            let (out, k) = (floating(dtype), m.min(n));
            let (c, r) = if full { (m, n) } else { (k, k) };
            let shapes = [vec![count, m, c], vec![count, k], vec![count, r, n]];
            let specs = [(out, &shapes[0][..]), (out, &shapes[1][..]), (out, &shapes[2][..])];
            let [u, s, vt] =
                outputs(specs, |outs| linalg::svd(outs, &source.buffer(), steps)).expect("values");
            let (us, ss, vts) = (decoded(&u, out, m, c), decoded(&s, out, 1, k), decoded(&vt, out, r, n));
            // Small ones are found by way of squares.
            let scale = if steps == Steps::Thin && out == F32 && k <= 3 { 16.0 } else { 2.0 };
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

/// Nx 0.9 stops early; what it gives is taken only for few rows and columns.
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
            let [w, v] =
                outputs(specs, |o| linalg::eigh(o, &source.buffer(), 1e-4, Steps::Former)).expect("values");
            let (w, v) = (&decoded(&w, F32, 1, n)[0], &decoded(&v, F32, n, n)[0]);
            let stretched = M::from(n, n, |i, j| times(v.at(i, j), w.at(0, j)));
            assert!(a.dot(v).minus(&stretched).norm() <= 2.0 * most * a.norm(), "{a:?} {w:?} {v:?}");
            let specs = [(F32, &[n, n][..]), (F32, &[n][..]), (F32, &[n, n][..])];
            let [u, s, vt] =
                outputs(specs, |o| linalg::svd(o, &source.buffer(), Steps::Former)).expect("values");
            let (u, s) = (&decoded(&u, F32, n, n)[0], &decoded(&s, F32, 1, n)[0]);
            let diagonal = M::from(n, n, |i, j| if i == j { s.at(0, i) } else { (0.0, 0.0) });
            let product = u.dot(&diagonal).dot(&decoded(&vt, F32, n, n)[0]);
            assert!(product.minus(a).norm() <= 2.0 * most * a.norm(), "{a:?} {s:?}");
        }
    }
}

/// The pivots of Nx 0.9 come from the matrix itself, and not from what is left of it.
#[test]
fn other_pivots_are_taken_where_those_of_nx_0_9_grow() {
    let matrix = |rows: [[f64; 3]; 3]| M::from(3, 3, |i, j| (rows[i][j], 0.0));
    let pivots = |a: &M, steps: Steps| {
        let source = source(F32, &[3, 3], std::slice::from_ref(a));
        let specs = [(U8, &[3, 3][..]), (F32, &[3, 3][..]), (F32, &[3, 3][..])];
        let [p, l, u] = outputs(specs, |o| linalg::lu(o, &source.buffer(), steps)).expect("an LU");
        let p = &decoded(&p, U8, 3, 3)[0];
        let product = p.dot(&decoded(&l, F32, 3, 3)[0]).dot(&decoded(&u, F32, 3, 3)[0]);
        close("P L U", F32, product.minus(a).norm(), a.norm(), 3);
        p.data.iter().map(|z| z.0 as u8).collect::<Vec<u8>>()
    };
    let counting = matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]);
    assert_eq!(pivots(&counting, Steps::Former), [0, 0, 1, 0, 1, 0, 1, 0, 0]);
    assert_eq!(pivots(&counting, Steps::Current), [0, 1, 0, 0, 0, 1, 1, 0, 0]);
    // Here they would divide by zero.
    let vanishing = matrix([[1.0, 2.0, 3.0], [2.0, 4.0, 1.0], [0.0, 1.0, 1.0]]);
    assert_eq!(pivots(&vanishing, Steps::Former), pivots(&vanishing, Steps::Current));
}

/// Rank-deficient, graded, zero and one-sided matrices, and of huge and tiny
/// elements.
#[test]
fn awkward_matrices_decompose_too() {
    // Whole, in halves, and in halves of them.
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
            outputs(specs, |outs| linalg::svd(outs, &source.buffer(), Steps::Current)).expect("values");
        decoded(&s, F64, 1, n)[0].data.iter().map(|z| z.0).collect::<Vec<f64>>()
    };
    assert_eq!(diagonal(33, &|i| if i == 16 { 0.0 } else { 1.0 })[32], 0.0);
    let powers = diagonal(40, &|i| 10f64.powi(-(i as i32)));
    for (i, s) in powers.into_iter().enumerate() {
        assert!((s * 10f64.powi(i as i32) - 1.0).abs() < 1e-14, "{i}: {s:e}");
    }
}

/// The magnitude of what is on the diagonal grows to both ends.
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
        // Wilkinson's, whose eigenvalues come in pairs, and several of it that all but fall
        // apart.
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
        // Already bidiagonal: with zeros on the diagonal and beside it, and with rows that are
        // ever smaller.
        real(&|i, j| if i == j && i % 3 > 0 || i + 1 == j && i % 7 > 0 { 1.0 } else { 0.0 }),
        real(&|i, j| bidiagonal((i, j), |_| 0.0, |_| 1.0)),
        real(&|i, j| {
            let power = |i: usize| 0.5f64.powi(20 * i as i32);
            bidiagonal((i, j), power, power)
        }),
        real(&|i, j| bidiagonal((i, j), |_| 1.0, |_| 1e-9)),
        real(&|i, j| bidiagonal((i, j), |_| 1e-9, |_| 1.0)),
        // With a middle row that is next to nothing, or nothing.
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
        let [w, v] = outputs(specs, |outs| linalg::eigh(outs, &source.buffer(), 1e-4, Steps::Current))
            .unwrap_or_else(|error| panic!("{}: {error}", what("eigh")));
        let (w, v) = (over(&decoded(&w, F64, 1, n)[0]), &decoded(&v, F64, n, n)[0]);
        let stretched = M::from(n, n, |i, j| times(v.at(i, j), w.at(0, j)));
        // Of the symmetric part.
        let mean = M::from(n, n, |i, j| ((scaled.at(i, j).0 + scaled.at(j, i).0) / 2.0, 0.0));
        let residual = mean.dot(v).minus(&stretched).norm();
        less(residual, bound, what("eigh"));
        less(v.adjoint().dot(v).minus(&M::eye(n, n)).norm(), few, what("eigh"));
        let specs = [(F64, &[n, n][..]), (F64, &[n][..]), (F64, &[n, n][..])];
        let [u, s, vt] =
            outputs(specs, |outs| linalg::svd(outs, &source.buffer(), Steps::Current)).expect("values");
        let (u, s, vt) =
            (&decoded(&u, F64, n, n)[0], over(&decoded(&s, F64, 1, n)[0]), &decoded(&vt, F64, n, n)[0]);
        let us = M::from(n, n, |i, j| times(u.at(i, j), s.at(0, j)));
        less(us.dot(vt).minus(&scaled).norm(), bound, what("svd"));
        less(u.adjoint().dot(u).minus(&M::eye(n, n)).norm(), few, what("svd"));
        less(vt.adjoint().dot(vt).minus(&M::eye(n, n)).norm(), few, what("svd"));
        let specs = [(F64, &[n, n][..]), (F64, &[n, n][..])];
        let [q, r] =
            outputs(specs, |outs| linalg::qr(outs, &source.buffer(), 0.0, Steps::Current)).expect("a QR");
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
        let [w, v] =
            outputs([(F32, &[5][..]), (F32, square)], |o| linalg::eigh(o, &buffer, 1e-4, Steps::Current))
                .expect("NaN");
        let specs = [(F32, square), (F32, &[5][..]), (F32, square)];
        let [u, s, vt] = outputs(specs, |o| linalg::svd(o, &buffer, Steps::Current)).expect("NaN");
        let [q, r] =
            outputs([(F32, square), (F32, square)], |o| linalg::qr(o, &buffer, 1e-10, Steps::Current))
                .expect("NaN");
        for bits in [w, v, u, s, vt, q, r] {
            assert!(bits.iter().all(|&b| value(b, F32).is_nan()));
        }
        outputs([(F32, square); 3], |o| linalg::lu(o, &buffer, Steps::Current)).expect("an answer");
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
                // So that the solution doesn't grow.
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
                    for transform in [Transform::None, Transform::Transpose, Transform::Conjugate] {
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
                                Transform::None => t,
                                Transform::Transpose => t.transpose(),
                                Transform::Conjugate => t.conj(),
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
    // Products of 32 bits would overflow.
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
            outputs([(F64, &shape[..]); 3], |outs| linalg::lu(outs, tensor, Steps::Current)).expect("an LU")
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
        outputs([(F32, &shape[..]); 3], |o| linalg::lu(o, &buffer, Steps::Current)).expect("nothing");
        outputs([(F32, &shape[..]); 2], |o| linalg::qr(o, &buffer, 0.0, Steps::Current)).expect("nothing");
        outputs([(F32, &shape[..2]), (F32, &shape)], |o| linalg::eigh(o, &buffer, 1e-4, Steps::Current))
            .expect("nothing");
        outputs([(F32, &shape[..]), (F32, &shape[..2]), (F32, &shape)], |o| {
            linalg::svd(o, &buffer, Steps::Current)
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
    let how = Triangular { lower: true, left_side: true, transform: Transform::None };
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
    let bad = outputs([(F32, square), (F32, &[2, 2])], |o| linalg::qr(o, &wide, 0.0, Steps::Current));
    assert!(matches!(bad, Err(Error::Shape { .. })));
    let bad =
        outputs([(C64, square), (C64, &[2]), (C64, square)], |o| linalg::svd(o, &complex, Steps::Current));
    assert!(matches!(bad, Err(Error::UnsupportedType { .. })));
    let bad = output(S32, square, |o| linalg::cholesky(o, &zero));
    assert!(matches!(bad, Err(Error::UnsupportedType { .. })));
    assert_eq!(cast(Number::Real(1.0), F32), 0x3f80_0000);
}
