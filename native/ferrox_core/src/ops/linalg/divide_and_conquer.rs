//! Eigenvalues and eigenvectors of symmetric tridiagonal matrices, and singular ones of
//! bidiagonal matrices: halves are solved, and their solutions joined (Gu and Eisenstat, "A
//! Divide-and-Conquer Algorithm for the Symmetric Tridiagonal Eigenproblem" and "A
//! Divide-and-Conquer Algorithm for the Bidiagonal SVD", 1995).
//!
//! Both are joined by the roots of one equation, `1 + rho sum(z² / (poles - x)) = 0`, whose
//! poles are the eigenvalues of the halves, or the squares of their singular values.

mod bidiagonal;
mod tridiagonal;

pub use self::bidiagonal::singular_vectors;
pub use self::tridiagonal::eigenvectors;

use std::marker::PhantomData;
use std::ops::Range;

use crate::Error;
use crate::cost::{self, Cost};
use crate::exec::gemm::blocked::{Update, View, multiply};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::exec::threads::{cooperative_yield, parallel};
use crate::ops::linalg::matrix::{Matrix, divide, hypotenuse, largest, norm, rotate};

/// Up to this size steps that rotate are faster.
const LEAF: usize = 32;

/// Steps for a root; a few are the rule, and to halve an interval so often is enough.
const STEPS: usize = 200;

/// Picoseconds for an element of a vector: half a dozen divisions.
const ELEMENT: Cost = 5_000;

/// Which halves a vector is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    First,
    Both,
    Second,
}

/// What the poles of the equation are to the values that are looked for.
trait Poles {
    /// The difference of the poles of two values, with all its digits.
    fn apart(a: f64, b: f64) -> f64;
    /// The value whose pole is so far from that of another.
    fn moved(from: f64, by: f64) -> f64;
}

/// Eigenvalues are poles.
struct Eigenvalues;

impl Poles for Eigenvalues {
    #[inline(always)]
    fn apart(a: f64, b: f64) -> f64 {
        a - b
    }

    fn moved(from: f64, by: f64) -> f64 {
        from + by
    }
}

/// The squares of singular values are.
struct SingularValues;

impl Poles for SingularValues {
    #[inline(always)]
    fn apart(a: f64, b: f64) -> f64 {
        (a - b) * (a + b)
    }

    fn moved(from: f64, by: f64) -> f64 {
        (from * from + by).sqrt()
    }
}

/// What rounding leaves of values and shares of that magnitude.
fn tiny(d: &[f64], z: &[f64]) -> f64 {
    8.0 * f64::EPSILON * largest(d).max(largest(z))
}

/// Rotates two vectors of a block on the diagonal of a matrix whose rows they are.
fn rotate_rows(rows: &mut Matrix<f64>, block: Range<usize>, [i, j]: [usize; 2], c: f64, s: f64) {
    let (first, second) = rows.two_rows(block.start + i, block.start + j);
    rotate(&mut first[block.clone()], &mut second[block], c, s);
}

/// Which values change, in ascending order. Others have no share in `z`, or are made so that
/// they haven't, where two are all but the same, by a rotation of their vectors. The first of
/// `kept`, where there is one, stays.
fn deflate(
    d: &mut [f64],
    z: &mut [f64],
    rho: f64,
    halves: &mut [Half],
    mut kept: Vec<usize>,
    mut rotate: impl FnMut(usize, usize, f64, f64),
) -> Vec<usize> {
    let tiny = tiny(d, z);
    let stays = kept.first().copied();
    let mut order: Vec<usize> =
        (0..d.len()).filter(|&j| Some(j) != stays && rho * z[j].abs() > tiny).collect();
    order.sort_by(|&i, &j| d[i].total_cmp(&d[j]));
    for j in order {
        if let Some(&i) = kept.last().filter(|&&i| Some(i) != stays) {
            let length = hypotenuse(z[i], z[j]);
            let (c, s) = (z[j] / length, -z[i] / length);
            if ((d[j] - d[i]) * c * s).abs() <= tiny {
                (z[i], z[j]) = (0.0, length);
                rotate(i, j, c, s);
                (d[i], d[j]) = (d[i] * c * c + d[j] * s * s, d[i] * s * s + d[j] * c * c);
                if halves[i] != halves[j] {
                    (halves[i], halves[j]) = (Half::Both, Half::Both);
                }
                kept.pop();
            }
        }
        kept.push(j);
    }
    kept
}

/// The roots of `1 + rho sum(z² / (poles - x))`, whose poles are of ascending values.
struct Roots {
    /// The values.
    poles: Vec<f64>,
    /// The `z` of which the roots are exact.
    z: Vec<f64>,
    /// Row i: the poles minus the i-th root.
    distances: Matrix<f64>,
}

/// How vectors become sums of each other: those of some values, in a block on the diagonal of a
/// matrix whose rows they are.
struct Turn {
    op: &'static str,
    /// Which of the vectors, from `at` on.
    kept: Vec<usize>,
    at: usize,
    /// The same as places in `kept`: what is in the first half only first, and what is in the
    /// second half only last.
    order: Vec<usize>,
    /// How many are in the first half at all, and how many in the second.
    halves: [usize; 2],
}

/// Overwrites those of the values `d` that are `kept` by what the roots say, given their shares
/// `z`.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
fn solve<P: Poles>(
    op: &'static str,
    at: usize,
    (d, z): (&mut [f64], &[f64]),
    rho: f64,
    kept: Vec<usize>,
    halves: &[Half],
) -> Result<(Turn, Roots), Error> {
    let k = kept.len();
    let poles: Vec<f64> = kept.iter().map(|&j| d[j]).collect();
    let z: Vec<f64> = kept.iter().map(|&j| z[j]).collect();
    let mut distances = Matrix::zeros(op, k, k)?;
    let mut values = vec![0.0; k];
    let parts = distances.data.chunks_exact_mut(k).zip(&mut values).enumerate();
    parallel::try_each(k * k, ELEMENT, parts, |(i, (distances, value))| {
        *value = root::<P>(i, &poles, &z, rho, distances);
        Ok::<(), Error>(())
    })?;
    for (&j, value) in kept.iter().zip(values) {
        d[j] = value;
    }
    let z = adjusted::<P>(&poles, &z, &distances);
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by_key(|&j| halves[kept[j]]);
    let count = |half: Half| kept.iter().filter(|&&j| halves[j] != half).count();
    let halves = [count(Half::Second), count(Half::First)];
    Ok((Turn { op, kept, at, order, halves }, Roots { poles, z, distances }))
}

impl Turn {
    /// The matrix to multiply with: each row is made of distances, and has the norm one.
    fn matrix(
        &self,
        distances: &Matrix<f64>,
        element: impl Fn(usize, f64) -> f64,
    ) -> Result<Matrix<f64>, Error> {
        let k = self.kept.len();
        let mut matrix = Matrix::zeros(self.op, k, k)?;
        for (row, distances) in matrix.data.chunks_exact_mut(k).zip(distances.data.chunks_exact(k)) {
            for (value, &j) in row.iter_mut().zip(&self.order) {
                *value = element(j, distances[j]);
            }
            let length = norm(row);
            divide(row, length);
        }
        Ok(matrix)
    }

    /// Multiplies; the first half of a vector has `middle` elements, all of it `end`.
    fn vectors(
        &self,
        rows: &mut Matrix<f64>,
        [middle, end]: [usize; 2],
        by: &Matrix<f64>,
    ) -> Result<(), Error> {
        let &Turn { op, ref kept, at, ref order, halves: [above, below] } = self;
        let k = kept.len();
        let part = |from: &[usize], columns: Range<usize>| -> Result<Matrix<f64>, Error> {
            let mut part = Matrix::zeros(op, from.len(), columns.len())?;
            for (i, &j) in from.iter().enumerate() {
                part.row_mut(i).copy_from_slice(&rows.row(at + kept[j])[at..][columns.clone()]);
            }
            Ok(part)
        };
        let (first, second) = (part(&order[..above], 0..middle)?, part(&order[k - below..], middle..end)?);
        let mut joined = Matrix::zeros(op, k, end)?;
        let (left, out) = (View::rows(&by.data, k), &mut joined.data);
        multiply([k, above, middle], Update::Replace, left, first.view(), (out, [end, 1]));
        let (left, out) = (View::rows(&by.data[k - below..], k), &mut out[middle..]);
        multiply([k, below, end - middle], Update::Replace, left, second.view(), (out, [end, 1]));
        for (i, &j) in kept.iter().enumerate() {
            rows.row_mut(at + j)[at..at + end].copy_from_slice(joined.row(i));
        }
        Ok(())
    }
}

/// The root of `1 + rho sum(z² / (poles - x))` between the i-th pole and the next, or
/// above the last, as the value whose pole it is; how far it is from each pole is written to
/// `distances`, as accurate as if the root had twice the digits.
fn root<P: Poles>(i: usize, d: &[f64], z: &[f64], rho: f64, distances: &mut [f64]) -> f64 {
    let next = d.get(i + 1).copied();
    let width = next.map_or_else(|| rho * z.iter().map(|z| z * z).sum::<f64>(), |next| P::apart(next, d[i]));
    let split = i + 1;
    // The distances from one pole, and the two sums of terms and of their derivatives.
    let from = |origin: f64, distances: &mut [f64]| {
        distances.iter_mut().zip(d).for_each(|(distance, &d)| *distance = P::apart(d, origin));
    };
    let sums = |distances: &[f64], x: f64| {
        let half = |range: Range<usize>| {
            let terms = Terms { distances: &distances[range.clone()], z: &z[range], x };
            vectorize(terms).map(|sum| rho * sum)
        };
        (half(0..split), half(split..d.len()))
    };
    // From the nearer pole, so that the digits of the distance to it are not lost.
    from(d[i], distances);
    let half = width / 2.0;
    let (below, above) = sums(distances, half);
    let f = 1.0 + below[0] + above[0];
    let (mut origin, mut low, mut high) = (d[i], 0.0, if next.is_some() { half } else { width });
    if f < 0.0 {
        match next {
            Some(next) => {
                (origin, low, high) = (next, -half, 0.0);
                from(origin, distances);
            }
            None => low = half,
        }
    }
    let mut x = if low == 0.0 || high == 0.0 { (low + high) / 2.0 } else { high };
    if next.is_some() {
        // All terms but those of the two poles are taken for what they are in the middle.
        let [(p, a), (q, b)] =
            [(distances[i], rho * z[i] * z[i]), (distances[split], rho * z[split] * z[split])];
        let c = f - a / -half - b / half;
        let guess = quadratic(c, c * (p + q) + a + b, c * p * q + a * q + b * p);
        if guess > low && guess < high {
            x = guess;
        }
    }
    for _ in 0..STEPS {
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
        // Each sum as that of its nearest pole and of something constant.
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
    P::moved(origin, x)
}

/// The smaller root of `c x² - a x + b`.
fn quadratic(c: f64, a: f64, b: f64) -> f64 {
    let root = (a * a - 4.0 * b * c).abs().sqrt();
    if a <= 0.0 { (a - root) / (2.0 * c) } else { 2.0 * b / (a + root) }
}

/// The sum of `z² / (distances - x)`, and of its derivatives.
struct Terms<'a> {
    distances: &'a [f64],
    z: &'a [f64],
    x: f64,
}

impl Vectorized for Terms<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn run(self) -> [f64; 2] {
        const LANES: usize = 8;
        let Terms { distances, z, x } = self;
        let (mut sums, mut slopes) = ([0.0; LANES], [0.0; LANES]);
        let (distances, last_distances) = distances.as_chunks::<LANES>();
        let (z, last_z) = z.as_chunks::<LANES>();
        for (distances, z) in distances.iter().zip(z) {
            for k in 0..LANES {
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

/// The `z` of which the computed values are exact: so the vectors are orthogonal, however
/// near each other the values are.
fn adjusted<P: Poles>(d: &[f64], z: &[f64], distances: &Matrix<f64>) -> Vec<f64> {
    let mut squares = vec![-1.0; d.len()];
    for (i, (row, &from)) in distances.data.chunks_exact(d.len()).zip(d).enumerate() {
        let old = squares[i];
        vectorize(Adjust::<P> { squares: &mut squares, row, d, from, poles: PhantomData });
        squares[i] = old * row[i];
        cooperative_yield::after(cost::work(d.len(), ELEMENT));
    }
    squares.iter().zip(z).map(|(square, z)| square.abs().sqrt().copysign(*z)).collect()
}

struct Adjust<'a, P> {
    squares: &'a mut [f64],
    row: &'a [f64],
    d: &'a [f64],
    from: f64,
    poles: PhantomData<P>,
}

impl<P: Poles> Vectorized for Adjust<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Adjust { squares, row, d, from, .. } = self;
        for ((square, distance), &other) in squares.iter_mut().zip(row).zip(d) {
            *square *= distance / P::apart(other, from);
        }
    }
}
