//! Eigenvalues of symmetric tridiagonal matrices by implicit QL and QR steps (LAPACK's `dsteqr`).

use super::matrix::{Scaling, TINY, hypotenuse, largest, rotation};
use super::rotations::Rotated;
use crate::Error;

const OP: &str = "eigh";

/// Steps for each eigenvalue, after which those left are looked for from the other end; a few are the
/// rule.
const MAX_QL_STEPS: usize = 30;

/// How often the end may change ...
const MAX_REVERSALS: usize = 8;
/// ... and how often it does before a rounding of the whole matrix counts as zero.
const ACCURATE_ATTEMPTS: usize = 4;

/// Products between these keep all their digits if they are multiplied with a small square.
const SQUARABLE: std::ops::RangeInclusive<f64> = 1e-200..=1e200;

/// Whether an element beside the diagonal can't be told from a rounding of both that it is beside.
///
/// Of a graded matrix this keeps the small eigenvalues; a rounding of the greater of both would
/// not.
pub fn negligible(beside: f64, first: f64, second: f64) -> bool {
    let (first, second) = (first.abs(), second.abs());
    let product = first * second;
    if SQUARABLE.contains(&product) {
        beside * beside <= f64::EPSILON * f64::EPSILON * product
    } else {
        beside.abs() <= f64::EPSILON * (first.sqrt() * second.sqrt())
    }
}

/// Implicit QL or QR steps: `d` becomes the eigenvalues, and `e`, which is beside it, zero; rotates
/// the columns of `vectors` along. The last of `e` is not read.
///
/// # Errors
///
/// `Error::Argument` if they don't converge, `Error::TooLarge` if there is no memory.
pub fn implicit_ql(d: &mut [f64], e: &mut [f64], vectors: &mut Rotated<f64>) -> Result<(), Error> {
    let n = d.len();
    let mut start = 0;
    while start < n {
        let end = (start + 1..n).find(|&i| negligible(e[i - 1], d[i - 1], d[i])).unwrap_or(n);
        if end > start + 1 {
            unreduced_block(&mut d[start..end], &mut e[start..end], vectors, start)?;
        }
        e[end - 1] = 0.0;
        start = end;
    }
    Ok(())
}

/// The same for a block in which nothing beside the diagonal is negligible; `start` is the first of
/// its columns.
///
/// QL steps find the eigenvalues from the first on and need the large end of a graded matrix to be
/// the last. Where it is the first, rows and columns are taken in reverse order, which makes QR
/// steps of them. Otherwise products of small sines underflow before they reach the large end.
fn unreduced_block(
    d: &mut [f64],
    e: &mut [f64],
    vectors: &mut Rotated<f64>,
    start: usize,
) -> Result<(), Error> {
    let last = d.len() - 1;
    let scaling = Scaling::of(largest(d).max(largest(&e[..last])));
    d.iter_mut().chain(&mut e[..last]).for_each(|x| *x = scaling.down(*x));
    let mut reversed = false;
    let mut reverse = d[last].abs() < d[0].abs();
    for attempt in 0..MAX_REVERSALS {
        if reverse {
            d.reverse();
            e[..last].reverse();
            reversed = !reversed;
        }
        // A rounding of the whole block is always small enough, if not as accurate.
        let floor = if attempt < ACCURATE_ATTEMPTS { TINY } else { f64::EPSILON };
        let column = |i: usize| start + if reversed { last - i } else { i };
        if ql_steps(d, &mut e[..last], floor, |i, j, c, s| vectors.rotate(column(i), column(j), c, s))? {
            if reversed {
                d.reverse();
            }
            d.iter_mut().for_each(|d| *d = scaling.up(*d));
            return Ok(());
        }
        reverse = true;
    }
    Err(Error::Argument { op: OP, problem: "the steps do not converge".to_string() })
}

/// QL steps for a matrix of magnitudes up to about one; what is no greater than `floor` beside the
/// diagonal counts as zero. Whether they converge; if not, they may go on from there.
fn ql_steps(
    d: &mut [f64],
    e: &mut [f64],
    floor: f64,
    mut rotate: impl FnMut(usize, usize, f64, f64) -> Result<(), Error>,
) -> Result<bool, Error> {
    let n = d.len();
    for l in 0..n {
        let mut steps = 0;
        loop {
            let small = |i: usize| e[i].abs() <= floor || negligible(e[i], d[i], d[i + 1]);
            let m = (l..n - 1).find(|&i| small(i)).unwrap_or(n - 1);
            if let Some(e) = e.get_mut(m) {
                *e = 0.0;
            }
            if m == l {
                break;
            }
            if m == l + 1 {
                let ([first, second], c, s) = two_rows(d[l], e[l], d[m]);
                (d[l], d[m], e[l]) = (first, second, 0.0);
                rotate(l, m, c, s)?;
                break;
            }
            steps += 1;
            if steps > MAX_QL_STEPS {
                return Ok(false);
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let r = hypotenuse(g, 1.0);
            let mut g = d[m] - d[l] + e[l] / (g + r.copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut split = None;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r;
                (c, s, r) = rotation(g, f);
                if i + 1 < m {
                    e[i + 1] = r;
                }
                if r == 0.0 {
                    d[i + 1] -= p;
                    split = Some(i);
                    break;
                }
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                rotate(i + 1, i, c, s)?;
            }
            if split.is_none() {
                d[l] -= p;
                e[l] = g;
            }
        }
    }
    Ok(true)
}

/// The eigenvalues of `[[a, b], [b, c]]`, the greater in magnitude first, and the first eigenvector;
/// as accurate as the elements allow (LAPACK's `dlaev2`).
fn two_rows(a: f64, b: f64, c: f64) -> ([f64; 2], f64, f64) {
    let (sum, difference, twice) = (a + c, a - c, b + b);
    let root = difference.hypot(twice);
    let (greater, less) = if a.abs() > c.abs() { (a, c) } else { (c, a) };
    let first = 0.5 * (sum + root.copysign(sum));
    let second = if sum == 0.0 { -0.5 * root } else { (greater / first) * less - (b / first) * b };
    let first = if sum == 0.0 { 0.5 * root } else { first };
    let along = if difference < 0.0 { difference - root } else { difference + root };
    let (c, s) = if along.abs() > twice.abs() {
        let cotangent = -twice / along;
        let s = 1.0 / (1.0 + cotangent * cotangent).sqrt();
        (cotangent * s, s)
    } else if twice == 0.0 {
        (1.0, 0.0)
    } else {
        let tangent = -along / twice;
        let c = 1.0 / (1.0 + tangent * tangent).sqrt();
        (c, tangent * c)
    };
    // Of the second eigenvector, if both are of one sign.
    if (sum < 0.0) == (difference < 0.0) { ([first, second], -s, c) } else { ([first, second], c, s) }
}
