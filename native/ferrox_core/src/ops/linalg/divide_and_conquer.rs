//! Eigenvalues and eigenvectors of symmetric tridiagonal matrices, and singular values and vectors
//! of bidiagonal matrices, by divide and conquer: each half of a matrix is solved, and the two
//! solutions are merged (Gu and Eisenstat, "A Divide-and-Conquer Algorithm for the Symmetric
//! Tridiagonal Eigenproblem" and "A Divide-and-Conquer Algorithm for the Bidiagonal SVD", 1995;
//! LAPACK's `dstedc` and `dbdsdc`).
//!
//! Both merge with the roots of the secular equation `1 + rho sum(z² / (poles - x)) = 0`, whose
//! poles are the eigenvalues of the halves, or the squares of their singular values.

mod bidiagonal;
mod tridiagonal;

pub use self::bidiagonal::singular_vectors;
pub use self::tridiagonal::eigenvectors;

use std::marker::PhantomData;
use std::ops::Range;

use crate::Error;
use crate::cost::{self, SECULAR_TERM_COST};
use crate::exec::gemm::blocked::{Update, View};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::{cooperative_yield, parallel};
use crate::ops::linalg::matrix::{
    Matrix, divide, filled_vector, hypotenuse, max_abs, multiply, norm, rotate, vector,
};

/// The size up to which QL or QR steps are faster than divide and conquer.
const DIVIDE_AND_CONQUER_LEAF_SIZE: usize = 32;

/// The limit of steps for a root of the secular equation. A few are usual; halving the interval at
/// each step converges within the limit as well.
const MAX_SECULAR_STEPS: usize = 200;

/// The halves of the matrix in which a vector has elements that are not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Support {
    First,
    Both,
    Second,
}

/// How the poles of the secular equation follow from values, which are eigenvalues or singular
/// values.
trait Poles {
    /// The difference of the poles of two values, without cancellation.
    fn difference(a: f64, b: f64) -> f64;
    /// The value whose pole is at a distance from the pole of `from`.
    fn shifted(from: f64, distance: f64) -> f64;
}

/// The poles are the eigenvalues.
struct Eigenvalues;

impl Poles for Eigenvalues {
    #[inline(always)]
    fn difference(a: f64, b: f64) -> f64 {
        a - b
    }

    fn shifted(from: f64, distance: f64) -> f64 {
        from + distance
    }
}

/// The poles are the squares of the singular values.
struct SingularValues;

impl Poles for SingularValues {
    #[inline(always)]
    fn difference(a: f64, b: f64) -> f64 {
        (a - b) * (a + b)
    }

    fn shifted(from: f64, distance: f64) -> f64 {
        (from * from + distance).sqrt()
    }
}

/// The rounding error of values `d` and components `z` of this magnitude, below which a value is
/// deflated.
fn deflation_tolerance(d: &[f64], z: &[f64]) -> f64 {
    8.0 * f64::EPSILON * max_abs(d).max(max_abs(z))
}

/// Rotates two vectors, which are rows of a matrix, within a block on its diagonal.
fn rotate_rows(rows: &mut Matrix<f64>, block: Range<usize>, [i, j]: [usize; 2], c: f64, s: f64) {
    let (first, second) = rows.two_rows(block.start + i, block.start + j);
    rotate(&mut first[block.clone()], &mut second[block], c, s);
}

/// Appends to `undeflated` the indices of the values that the merge changes, in ascending order of
/// the values, and returns them. A value is deflated, which means that it stays, if its component
/// of `z` is negligible. If two values are almost equal, a rotation of their vectors makes the
/// component of one of them zero. An index that `undeflated` holds already stays its first.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
fn deflate(
    op: &'static str,
    d: &mut [f64],
    z: &mut [f64],
    rho: f64,
    supports: &mut [Support],
    mut undeflated: Vec<usize>,
    mut rotate: impl FnMut(usize, usize, f64, f64),
) -> Result<Vec<usize>, Error> {
    let deflation_tolerance = deflation_tolerance(d, z);
    let stays = undeflated.first().copied();
    let mut order = vector(op, 0..d.len())?;
    order.retain(|&j| Some(j) != stays && rho * z[j].abs() > deflation_tolerance);
    order.sort_unstable_by(|&i, &j| d[i].total_cmp(&d[j]).then(i.cmp(&j)));
    for j in order {
        if let Some(&i) = undeflated.last().filter(|&&i| Some(i) != stays) {
            let length = hypotenuse(z[i], z[j]);
            let (c, s) = (z[j] / length, -z[i] / length);
            if ((d[j] - d[i]) * c * s).abs() <= deflation_tolerance {
                (z[i], z[j]) = (0.0, length);
                rotate(i, j, c, s);
                (d[i], d[j]) = (d[i] * c * c + d[j] * s * s, d[i] * s * s + d[j] * c * c);
                if supports[i] != supports[j] {
                    (supports[i], supports[j]) = (Support::Both, Support::Both);
                }
                undeflated.pop();
            }
        }
        undeflated.push(j);
    }
    Ok(undeflated)
}

/// The roots of the secular equation `1 + rho sum(z² / (poles - x))`, in ascending order.
struct SecularRoots {
    /// The values of the poles.
    poles: Vec<f64>,
    /// The `z` for which the computed roots are exact.
    z: Vec<f64>,
    /// Row i holds the poles minus the i-th root.
    distances: Matrix<f64>,
}

/// How a merge replaces undeflated vectors by linear combinations of them. The vectors are rows of
/// a matrix, in a block on its diagonal that starts at `block_start`.
struct VectorUpdate {
    op: &'static str,
    /// The undeflated vectors, counted from `block_start`.
    undeflated: Vec<usize>,
    block_start: usize,
    /// The positions in `undeflated`, sorted by support: first the vectors that are only in the
    /// first half, last the vectors that are only in the second half.
    order: Vec<usize>,
    /// The number of vectors with a part in the first half, and the number of vectors with a part
    /// in the second half.
    half_counts: [usize; 2],
}

/// Finds the roots for the `undeflated` values, whose components of the rank-one update are `z`,
/// and replaces these values in `d` by them.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
fn solve<P: Poles>(
    op: &'static str,
    block_start: usize,
    (d, z): (&mut [f64], &[f64]),
    rho: f64,
    undeflated: Vec<usize>,
    supports: &[Support],
) -> Result<(VectorUpdate, SecularRoots), Error> {
    let k = undeflated.len();
    let poles = vector(op, undeflated.iter().map(|&j| d[j]))?;
    let z = vector(op, undeflated.iter().map(|&j| z[j]))?;
    let mut distances = Matrix::zeros(op, k, k)?;
    let mut values = filled_vector(op, k, 0.0)?;
    let parts = distances.data.chunks_exact_mut(k).zip(&mut values).enumerate();
    parallel::try_each(k * k, SECULAR_TERM_COST, parts, |(i, (distances, value))| {
        *value = secular_root::<P>(i, &poles, &z, rho, distances);
        Ok::<(), Error>(())
    })?;
    for (&j, value) in undeflated.iter().zip(values) {
        d[j] = value;
    }
    let z = recomputed_z::<P>(op, &poles, &z, &distances)?;
    let mut order = vector(op, 0..k)?;
    order.sort_unstable_by_key(|&j| (supports[undeflated[j]], j));
    let count = |half: Support| undeflated.iter().filter(|&&j| supports[j] != half).count();
    let half_counts = [count(Support::Second), count(Support::First)];
    Ok((
        VectorUpdate { op, undeflated, block_start, order, half_counts },
        SecularRoots { poles, z, distances },
    ))
}

impl VectorUpdate {
    /// The matrix of the linear combinations. Each row comes from a row of distances and has the
    /// norm one.
    fn coefficients(
        &self,
        distances: &Matrix<f64>,
        element: impl Fn(usize, f64) -> f64,
    ) -> Result<Matrix<f64>, Error> {
        let k = self.undeflated.len();
        let mut coefficients = Matrix::zeros(self.op, k, k)?;
        for (row, distances) in coefficients.data.chunks_exact_mut(k).zip(distances.data.chunks_exact(k)) {
            for (value, &j) in row.iter_mut().zip(&self.order) {
                *value = element(j, distances[j]);
            }
            let length = norm(row);
            divide(row, length);
        }
        Ok(coefficients)
    }

    /// Multiplies the vectors by the coefficients. A vector has `end` elements, of which the first
    /// `middle` belong to the first half.
    fn combine(
        &self,
        rows: &mut Matrix<f64>,
        [middle, end]: [usize; 2],
        coefficients: &Matrix<f64>,
    ) -> Result<(), Error> {
        let &VectorUpdate {
            op,
            ref undeflated,
            block_start,
            ref order,
            half_counts: [first_count, second_count],
        } = self;
        let k = undeflated.len();
        let gathered = |from: &[usize], columns: Range<usize>| -> Result<Matrix<f64>, Error> {
            let mut gathered = Matrix::zeros(op, from.len(), columns.len())?;
            for (i, &j) in from.iter().enumerate() {
                gathered
                    .row_mut(i)
                    .copy_from_slice(&rows.row(block_start + undeflated[j])[block_start..][columns.clone()]);
            }
            Ok(gathered)
        };
        let (first, second) =
            (gathered(&order[..first_count], 0..middle)?, gathered(&order[k - second_count..], middle..end)?);
        let mut joined = Matrix::zeros(op, k, end)?;
        let (left, out) = (View::rows(&coefficients.data, k), &mut joined.data);
        multiply(op, [k, first_count, middle], Update::Replace, left, first.view(), (out, [end, 1]))?;
        let (left, out) = (View::rows(&coefficients.data[k - second_count..], k), &mut out[middle..]);
        multiply(op, [k, second_count, end - middle], Update::Replace, left, second.view(), (out, [end, 1]))?;
        for (i, &j) in undeflated.iter().enumerate() {
            rows.row_mut(block_start + j)[block_start..block_start + end].copy_from_slice(joined.row(i));
        }
        Ok(())
    }
}

/// Finds the root of `1 + rho sum(z² / (poles - x))` between the i-th pole and the next, or above
/// the last pole, and returns the value whose pole it is. Writes the distances of all poles from
/// the root to `distances`, as accurately as if the root had twice the digits: they are measured
/// from the nearer pole, and not from zero.
fn secular_root<P: Poles>(i: usize, d: &[f64], z: &[f64], rho: f64, distances: &mut [f64]) -> f64 {
    let next = d.get(i + 1).copied();
    let width =
        next.map_or_else(|| rho * z.iter().map(|z| z * z).sum::<f64>(), |next| P::difference(next, d[i]));
    let split = i + 1;
    // `measure_from` writes the distances of the poles from an origin. `sums` returns the sum of
    // the terms up to the i-th pole and the sum of the terms above it, each with its derivative.
    let measure_from = |origin: f64, distances: &mut [f64]| {
        distances.iter_mut().zip(d).for_each(|(distance, &d)| *distance = P::difference(d, origin));
    };
    let sums = |distances: &[f64], x: f64| {
        let half = |range: Range<usize>| {
            let terms = SecularTermsLoop { distances: &distances[range.clone()], z: &z[range], x };
            vectorize(terms).map(|sum| rho * sum)
        };
        (half(0..split), half(split..d.len()))
    };
    // The origin is the nearer pole, so that the distance to it keeps its digits.
    measure_from(d[i], distances);
    let half = width / 2.0;
    let (below, above) = sums(distances, half);
    let f = 1.0 + below[0] + above[0];
    let (mut origin, mut low, mut high) = (d[i], 0.0, if next.is_some() { half } else { width });
    if f < 0.0 {
        match next {
            Some(next) => {
                (origin, low, high) = (next, -half, 0.0);
                measure_from(origin, distances);
            }
            None => low = half,
        }
    }
    let mut x = if low == 0.0 || high == 0.0 { (low + high) / 2.0 } else { high };
    if next.is_some() {
        // The first guess takes all terms to be constant, except the terms of the two neighboring
        // poles, with their values in the middle.
        let [(p, a), (q, b)] =
            [(distances[i], rho * z[i] * z[i]), (distances[split], rho * z[split] * z[split])];
        let c = f - a / -half - b / half;
        let guess = quadratic(c, c * (p + q) + a + b, c * p * q + a * q + b * p);
        if guess > low && guess < high {
            x = guess;
        }
    }
    for _ in 0..MAX_SECULAR_STEPS {
        let (below, above) = sums(distances, x);
        let ([f_below, slope_below], [f_above, slope_above]) = (below, above);
        let (f, slope) = (1.0 + f_below + f_above, slope_below + slope_above);
        let error = 1.0 + 8.0 * (f_below.abs() + f_above.abs()) + x.abs() * slope;
        if f.abs() <= f64::EPSILON * error {
            break;
        }
        if f < 0.0 {
            low = x;
        } else {
            high = x;
        }
        // Each step replaces each of the two sums by the term of its nearest pole plus a constant.
        let p = distances[i] - x;
        let step = match next {
            Some(_) => {
                let q = distances[split] - x;
                let c = f - p * slope_below - q * slope_above;
                quadratic(c, (p + q) * f - p * q * slope, p * q * f)
            }
            None => p + p * p * slope / (f - p * slope),
        };
        let mut new = x + step;
        if !(new > low && new < high) {
            new = low + (high - low) / 2.0;
        }
        if new == x || new <= low || new >= high {
            break;
        }
        x = new;
    }
    distances.iter_mut().for_each(|distance| *distance -= x);
    P::shifted(origin, x)
}

/// The smaller root of `c x² - a x + b`.
fn quadratic(c: f64, a: f64, b: f64) -> f64 {
    let square_root = (a * a - 4.0 * b * c).abs().sqrt();
    if a <= 0.0 { (a - square_root) / (2.0 * c) } else { 2.0 * b / (a + square_root) }
}

/// The sum of `z² / (distances - x)`, and its derivative.
struct SecularTermsLoop<'a> {
    distances: &'a [f64],
    z: &'a [f64],
    x: f64,
}

impl Vectorized for SecularTermsLoop<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn run(self) -> [f64; 2] {
        const STRIPES: usize = 8;
        let SecularTermsLoop { distances, z, x } = self;
        let (mut sums, mut slopes) = ([0.0; STRIPES], [0.0; STRIPES]);
        let (distances, last_distances) = distances.as_chunks::<STRIPES>();
        let (z, last_z) = z.as_chunks::<STRIPES>();
        for (distances, z) in distances.iter().zip(z) {
            for k in 0..STRIPES {
                let ratio = z[k] / (distances[k] - x);
                sums[k] += z[k] * ratio;
                slopes[k] += ratio * ratio;
            }
        }
        for (distance, z) in last_distances.iter().zip(last_z) {
            let ratio = z / (distance - x);
            sums[0] += z * ratio;
            slopes[0] += ratio * ratio;
        }
        [sums.iter().sum(), slopes.iter().sum()]
    }
}

/// The `z` for which the computed roots are exact, by Löwner's formula: so the vectors are
/// orthogonal even if roots are close to each other.
fn recomputed_z<P: Poles>(
    op: &'static str,
    d: &[f64],
    z: &[f64],
    distances: &Matrix<f64>,
) -> Result<Vec<f64>, Error> {
    let mut squares = filled_vector(op, d.len(), -1.0)?;
    for (i, (row, &from)) in distances.data.chunks_exact(d.len()).zip(d).enumerate() {
        let old = squares[i];
        vectorize(LownerLoop::<P> { squares: &mut squares, row, d, from, poles: PhantomData });
        squares[i] = old * row[i];
        cooperative_yield::after(cost::work(d.len(), SECULAR_TERM_COST));
    }
    squares.iter_mut().zip(z).for_each(|(square, z)| *square = square.abs().sqrt().copysign(*z));
    Ok(squares)
}

struct LownerLoop<'a, P> {
    squares: &'a mut [f64],
    row: &'a [f64],
    d: &'a [f64],
    from: f64,
    poles: PhantomData<P>,
}

impl<P: Poles> Vectorized for LownerLoop<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let LownerLoop { squares, row, d, from, .. } = self;
        for ((square, distance), &other) in squares.iter_mut().zip(row).zip(d) {
            *square *= distance / P::difference(other, from);
        }
    }
}
