//! Eigenvalues of symmetric tridiagonal matrices by implicit QL and QR steps (Dubrulle, Martin and
//! Wilkinson, "The Implicit QL Algorithm", 1968; LAPACK's `dsteqr`).

use super::matrix::{Scaling, UNDERFLOW_THRESHOLD, givens_rotation, hypotenuse, max_abs};
use super::rotations::RotatedMatrix;
use crate::Error;

const OP: &str = "eigh";

/// The limit of steps for each eigenvalue, after which the remaining ones are computed from the
/// other end of the matrix. A few are usual.
const MAX_QL_STEPS: usize = 30;

/// The limit of attempts, each from the other end of the matrix than the one before.
const MAX_QL_ATTEMPTS: usize = 8;
/// The number of attempts before a rounding error of the whole matrix counts as zero.
const ACCURATE_QL_ATTEMPTS: usize = 4;

/// Products in this range keep all their digits when they are multiplied by the square of a
/// rounding error.
const QL_SAFE_PRODUCT_RANGE: std::ops::RangeInclusive<f64> = 1e-200..=1e200;

/// Whether an off-diagonal element can't be told from a rounding error of the two diagonal elements
/// beside it.
///
/// It is compared with the geometric mean of the two. This keeps the small eigenvalues of a graded
/// matrix, which a comparison with the larger one would lose.
pub fn is_negligible(off_diagonal: f64, first: f64, second: f64) -> bool {
    let (first, second) = (first.abs(), second.abs());
    let product = first * second;
    if QL_SAFE_PRODUCT_RANGE.contains(&product) {
        off_diagonal * off_diagonal <= f64::EPSILON * f64::EPSILON * product
    } else {
        off_diagonal.abs() <= f64::EPSILON * (first.sqrt() * second.sqrt())
    }
}

/// Overwrites `d` with the eigenvalues and the off-diagonal elements `e` with zeros, by implicit QL
/// or QR steps, and rotates the columns of `vectors` with them. The last element of `e` is not
/// read.
///
/// # Errors
///
/// `Error::Argument` if the steps don't converge, `Error::TooLarge` if there is no memory.
pub fn implicit_ql(d: &mut [f64], e: &mut [f64], vectors: &mut RotatedMatrix<f64>) -> Result<(), Error> {
    let n = d.len();
    let mut start = 0;
    while start < n {
        let end = (start + 1..n).find(|&i| is_negligible(e[i - 1], d[i - 1], d[i])).unwrap_or(n);
        if end > start + 1 {
            solve_unreduced_block(&mut d[start..end], &mut e[start..end], vectors, start)?;
        }
        e[end - 1] = 0.0;
        start = end;
    }
    Ok(())
}

/// `implicit_ql` for a block in which no off-diagonal element is negligible; `start` is its first
/// column.
///
/// QL steps find the eigenvalues from the first on and need the large end of a graded matrix to be
/// the last. If it is the first, rows and columns are taken in reverse order, which makes them QR
/// steps. Otherwise products of small sines underflow before they reach the large end.
fn solve_unreduced_block(
    d: &mut [f64],
    e: &mut [f64],
    vectors: &mut RotatedMatrix<f64>,
    start: usize,
) -> Result<(), Error> {
    let last = d.len() - 1;
    let scaling = Scaling::to_unit(max_abs(d).max(max_abs(&e[..last])));
    d.iter_mut().chain(&mut e[..last]).for_each(|x| *x = scaling.down(*x));
    let mut reversed = false;
    let mut reverse = d[last].abs() < d[0].abs();
    for attempt in 0..MAX_QL_ATTEMPTS {
        if reverse {
            d.reverse();
            e[..last].reverse();
            reversed = !reversed;
        }
        // A rounding error of the whole block is always reached, but is less accurate.
        let floor = if attempt < ACCURATE_QL_ATTEMPTS { UNDERFLOW_THRESHOLD } else { f64::EPSILON };
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

/// QL steps for a matrix with magnitudes up to about one. Off-diagonal elements up to `floor` count
/// as zero. Returns whether the steps converge; if they don't, further steps may start from the
/// result.
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
            let is_small = |i: usize| e[i].abs() <= floor || is_negligible(e[i], d[i], d[i + 1]);
            let m = (l..n - 1).find(|&i| is_small(i)).unwrap_or(n - 1);
            if let Some(e) = e.get_mut(m) {
                *e = 0.0;
            }
            if m == l {
                break;
            }
            if m == l + 1 {
                let ([first, second], c, s) = eigen_2x2(d[l], e[l], d[m]);
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
                (c, s, r) = givens_rotation(g, f);
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

/// The eigenvalues of `[[a, b], [b, c]]`, the one with the larger magnitude first, and the
/// eigenvector of the first one; as accurate as the elements allow (LAPACK's `dlaev2`).
fn eigen_2x2(a: f64, b: f64, c: f64) -> ([f64; 2], f64, f64) {
    let (sum, difference, twice) = (a + c, a - c, b + b);
    let root = hypotenuse(difference, twice);
    let (greater, less) = if a.abs() > c.abs() { (a, c) } else { (c, a) };
    let first = 0.5 * (sum + root.copysign(sum));
    let second = if sum == 0.0 { -0.5 * root } else { (greater / first) * less - (b / first) * b };
    let first = if sum == 0.0 { 0.5 * root } else { first };
    let cs = if difference < 0.0 { difference - root } else { difference + root };
    let (c, s) = if cs.abs() > twice.abs() {
        let cotangent = -twice / cs;
        let s = 1.0 / (1.0 + cotangent * cotangent).sqrt();
        (cotangent * s, s)
    } else if twice == 0.0 {
        (1.0, 0.0)
    } else {
        let tangent = -cs / twice;
        let c = 1.0 / (1.0 + tangent * tangent).sqrt();
        (c, tangent * c)
    };
    // If both signs agree, `c` and `s` belong to the second eigenvector.
    if (sum < 0.0) == (difference < 0.0) { ([first, second], -s, c) } else { ([first, second], c, s) }
}
