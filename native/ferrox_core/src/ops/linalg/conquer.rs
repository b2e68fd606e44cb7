//! Eigenvalues and eigenvectors of symmetric tridiagonal matrices: halves are solved, and
//! their solutions joined (Gu and Eisenstat, "A Divide-and-Conquer Algorithm for the
//! Symmetric Tridiagonal Eigenproblem", 1995).

use super::eigh::ql;
use super::matrix::{Matrix, divide, hypotenuse, norm, rotate};
use super::rotations::Rotated;
use crate::Error;
use crate::exec::blocks::{Update, View, multiply};
use crate::exec::parallel::{self, Cost};
use crate::exec::simd::{Vectorized, dispatch as vectorize};

const OP: &str = "eigh";

/// Up to this size QL steps are faster.
const LEAF: usize = 32;

/// Steps for a root; a few are the rule, and to halve an interval so often is enough.
const STEPS: usize = 200;

/// Picoseconds for an element of an eigenvector: half a dozen divisions.
const ELEMENT: Cost = 5_000;

/// Overwrites the diagonal `d` with the eigenvalues, in no order, and `e`, what is beside
/// it; the eigenvectors as rows.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if QL steps don't converge.
pub fn eigenvectors(d: &mut [f64], e: &mut [f64]) -> Result<Matrix<f64>, Error> {
    let mut rows = Matrix::zeros(OP, d.len(), d.len())?;
    conquer(d, e, &mut rows, 0)?;
    Ok(rows)
}

/// The same in a block of `rows` on its diagonal.
fn conquer(d: &mut [f64], e: &mut [f64], rows: &mut Matrix<f64>, at: usize) -> Result<(), Error> {
    let n = d.len();
    if n <= LEAF {
        let mut columns = Rotated::new(OP, Matrix::eye(OP, n, n)?)?;
        ql(d, e, &mut columns)?;
        let found = columns.finish()?.transpose(OP)?;
        for i in 0..n {
            rows.row_mut(at + i)[at..at + n].copy_from_slice(found.row(i));
        }
        return Ok(());
    }
    // Without what is beside the diagonal in the middle, and with as much taken from the
    // diagonal, the matrix falls apart.
    let middle = n / 2;
    let beside = std::mem::take(&mut e[middle - 1]);
    d[middle - 1] -= beside.abs();
    d[middle] -= beside.abs();
    let ((first, second), (e_first, e_second)) = (d.split_at_mut(middle), e.split_at_mut(middle));
    conquer(first, e_first, rows, at)?;
    conquer(second, e_second, rows, at + middle)?;
    if beside == 0.0 {
        return Ok(());
    }
    // What was taken is rho z zᵀ, in terms of the eigenvectors.
    let z = (0..n).map(|j| {
        let row = &rows.row(at + j)[at..at + n];
        let value = if j < middle { row[middle - 1] } else { row[middle] * beside.signum() };
        value * std::f64::consts::FRAC_1_SQRT_2
    });
    let z = z.collect();
    join(d, z, 2.0 * beside.abs(), rows, (at, middle))
}

/// Which halves an eigenvector is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    First,
    Both,
    Second,
}

/// Adds `rho z zᵀ` to what has the eigenvalues `d`, and the eigenvectors in the rows from
/// `at` on, the first `middle` of which are zero in the second half, the others in the
/// first.
fn join(
    d: &mut [f64],
    mut z: Vec<f64>,
    rho: f64,
    rows: &mut Matrix<f64>,
    (at, middle): (usize, usize),
) -> Result<(), Error> {
    let n = d.len();
    let mut halves: Vec<Half> = (0..n).map(|j| if j < middle { Half::First } else { Half::Second }).collect();
    let kept = deflate(d, &mut z, rho, &mut halves, |i, j, c, s| {
        let (first, second) = rows.two_rows(at + i, at + j);
        rotate(&mut first[at..at + n], &mut second[at..at + n], c, s);
    });
    let k = kept.len();
    let poles: Vec<f64> = kept.iter().map(|&j| d[j]).collect();
    let z: Vec<f64> = kept.iter().map(|&j| z[j]).collect();
    match kept[..] {
        [] => return Ok(()),
        [only] => {
            d[only] += rho * z[0] * z[0];
            return Ok(());
        }
        _ => (),
    }
    // Row i: the poles minus the i-th eigenvalue.
    let mut distances = Matrix::zeros(OP, k, k)?;
    let mut values = vec![0.0; k];
    let parts = distances.data.chunks_exact_mut(k).zip(&mut values).enumerate();
    parallel::try_each(k * k, ELEMENT, parts, |(i, (distances, value))| {
        *value = root(i, &poles, &z, rho, distances);
        Ok::<(), Error>(())
    })?;
    let z = adjusted(&poles, &z, &distances);
    // With what is in the first half only first, and in the second half only last.
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by_key(|&j| halves[kept[j]]);
    let count = |half: Half| kept.iter().filter(|&&j| halves[j] != half).count();
    let (above, below) = (count(Half::Second), count(Half::First));
    let mut turned = Matrix::zeros(OP, k, k)?;
    for (i, distances) in distances.data.chunks_exact(k).enumerate() {
        let row = turned.row_mut(i);
        for (value, &j) in row.iter_mut().zip(&order) {
            *value = z[j] / distances[j];
        }
        let length = norm(row);
        divide(row, length);
    }
    drop(distances);
    let part = |from: &[usize], columns: std::ops::Range<usize>| -> Result<Matrix<f64>, Error> {
        let mut part = Matrix::zeros(OP, from.len(), columns.len())?;
        for (i, &j) in from.iter().enumerate() {
            part.row_mut(i).copy_from_slice(&rows.row(at + kept[j])[at..][columns.clone()]);
        }
        Ok(part)
    };
    let (first, second) = (part(&order[..above], 0..middle)?, part(&order[k - below..], middle..n)?);
    let mut joined = Matrix::zeros(OP, k, n)?;
    let (left, out) = (View::rows(&turned.data, k), &mut joined.data);
    multiply([k, above, middle], Update::Add, left, first.view(), (out, [n, 1]));
    let (left, out) = (View::rows(&turned.data[k - below..], k), &mut out[middle..]);
    multiply([k, below, n - middle], Update::Add, left, second.view(), (out, [n, 1]));
    for (i, &j) in kept.iter().enumerate() {
        d[j] = values[i];
        rows.row_mut(at + j)[at..at + n].copy_from_slice(joined.row(i));
    }
    Ok(())
}

/// Which eigenvalues change, in ascending order. Others have no share in `z`, or are made
/// so that they haven't, where two are all but the same, by a rotation of their
/// eigenvectors.
fn deflate(
    d: &mut [f64],
    z: &mut [f64],
    rho: f64,
    halves: &mut [Half],
    mut rotate: impl FnMut(usize, usize, f64, f64),
) -> Vec<usize> {
    let largest = d.iter().chain(&*z).fold(0.0, |m: f64, x| m.max(x.abs()));
    let tiny = 8.0 * f64::EPSILON * largest;
    let mut order: Vec<usize> = (0..d.len()).collect();
    order.sort_by(|&i, &j| d[i].total_cmp(&d[j]));
    let mut kept: Vec<usize> = Vec::with_capacity(d.len());
    for j in order {
        if rho * z[j].abs() <= tiny {
            continue;
        }
        if let Some(&i) = kept.last() {
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

/// The root of `1 + rho sum(z² / (poles - x))` between the i-th pole and the next, or
/// above the last; how far it is from each pole is written to `distances`, as accurate
/// as if the root had twice the digits.
fn root(i: usize, poles: &[f64], z: &[f64], rho: f64, distances: &mut [f64]) -> f64 {
    let next = poles.get(i + 1).copied();
    let width = next.map_or_else(|| rho * z.iter().map(|z| z * z).sum::<f64>(), |next| next - poles[i]);
    let split = i + 1;
    // The distances from one pole, and the two sums of terms and of their derivatives.
    let from = |origin: f64, distances: &mut [f64]| {
        distances.iter_mut().zip(poles).for_each(|(distance, pole)| *distance = pole - origin);
    };
    let sums = |distances: &[f64], x: f64| {
        let half = |range: std::ops::Range<usize>| {
            let terms = Terms { distances: &distances[range.clone()], z: &z[range], x };
            vectorize(terms).map(|sum| rho * sum)
        };
        (half(0..split), half(split..poles.len()))
    };
    // From the nearer pole, so that the digits of the distance to it are not lost.
    from(poles[i], distances);
    let half = width / 2.0;
    let (below, above) = sums(distances, half);
    let f = 1.0 + below[0] + above[0];
    let (mut origin, mut low, mut high) = (poles[i], 0.0, if next.is_some() { half } else { width });
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
    origin + x
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

/// The `z` of which the computed eigenvalues are exactly those: so the eigenvectors are
/// orthogonal, however near each other the eigenvalues are.
fn adjusted(poles: &[f64], z: &[f64], distances: &Matrix<f64>) -> Vec<f64> {
    let mut squares = vec![-1.0; poles.len()];
    for (i, (row, &pole)) in distances.data.chunks_exact(poles.len()).zip(poles).enumerate() {
        vectorize(Adjust { squares: &mut squares, row, poles, pole, skipped: i });
    }
    squares.iter().zip(z).map(|(square, z)| square.abs().sqrt().copysign(*z)).collect()
}

struct Adjust<'a> {
    squares: &'a mut [f64],
    row: &'a [f64],
    poles: &'a [f64],
    pole: f64,
    skipped: usize,
}

impl Vectorized for Adjust<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Adjust { squares, row, poles, pole, skipped } = self;
        let old = squares[skipped];
        for ((square, distance), other) in squares.iter_mut().zip(row).zip(poles) {
            *square *= distance / (other - pole);
        }
        squares[skipped] = old * row[skipped];
    }
}
