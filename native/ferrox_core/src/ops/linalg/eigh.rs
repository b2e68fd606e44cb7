//! Eigenvalues and eigenvectors of Hermitian matrices: reflections to
//! tridiagonal form, and for what is small implicit QL steps.

use super::matrix::{
    Matrix, Scaling, TINY, descending, direction, hypotenuse, largest, pause_after, reflector, rotation,
    update_and_multiply,
};
use crate::Error;
use crate::ops::linalg::divide_and_conquer::eigenvectors;
use crate::ops::linalg::reflectors::Reflectors;
use crate::ops::linalg::rotations::Rotated;
use crate::ops::linalg::scalar::Scalar;

const OP: &str = "eigh";

/// Steps for each eigenvalue, after which those left are looked for from the other end; a few are the
/// rule.
const STEPS: usize = 30;

/// How often the end may change ...
const ATTEMPTS: usize = 8;
/// ... and how often it does before a rounding of the whole matrix counts as zero.
const PATIENT: usize = 4;

/// Products between these keep all their digits if they are multiplied with a small square.
const PRODUCTS: std::ops::RangeInclusive<f64> = 1e-200..=1e200;

/// The eigenvalues, and the eigenvectors as rows.
pub type Eigh<T> = (Vec<f64>, Matrix<T>);

/// The eigenvalues in no order, and the eigenvectors as rows, of the Hermitian part
/// of a finite matrix.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if the steps don't
/// converge.
pub fn eigh<T: Scalar>(a: &Matrix<T>) -> Result<Eigh<T>, Error> {
    let n = a.rows;
    let sizes: Vec<f64> = (0..n).map(|i| largest(a.row(i))).collect();
    let largest = largest(&sizes);
    if largest == 0.0 || n == 0 {
        return Ok((vec![0.0; n], Matrix::eye(OP, n, n)?));
    }
    let scaling = Scaling::high(largest);
    let order = descending(&sizes);
    let mean = |x: T, y: T| (scaling.down(x) + scaling.down(y).conj()).scale(0.5);
    let mut h;
    if let Some(order) = &order {
        h = Matrix::zeros(OP, n, n)?;
        for (i, &row) in order.iter().enumerate() {
            for (y, &column) in h.row_mut(i).iter_mut().zip(order).skip(i) {
                *y = mean(a.at(row, column), a.at(column, row));
            }
        }
    } else {
        h = a.transpose(OP)?;
        for i in 0..n {
            // Of the upper triangle, which is all that is read.
            for (y, &x) in h.row_mut(i).iter_mut().zip(a.row(i)).skip(i) {
                *y = mean(x, *y);
            }
        }
    }
    let Tridiagonal { mut d, mut e, turns, reflectors } = tridiagonal(h)?;
    let rows = eigenvectors(&mut d, &mut e)?;
    let mut vectors = Matrix::zeros(OP, n, n)?;
    for (row, real) in vectors.data.chunks_exact_mut(n).zip(rows.data.chunks_exact(n)) {
        for ((value, &real), turn) in row.iter_mut().zip(real).zip(&turns) {
            *value = turn.scale(real);
        }
    }
    reflectors.apply_to_rows(OP, &mut vectors)?;
    if let Some(order) = order {
        let mut row = vec![T::ZERO; n];
        for vector in vectors.data.chunks_exact_mut(n) {
            order.iter().zip(&*vector).for_each(|(&i, &value)| row[i] = value);
            vector.copy_from_slice(&row);
        }
    }
    d.iter_mut().for_each(|d| *d = scaling.up(*d));
    Ok((d, vectors))
}

/// `A = Q T Qᴴ`: the diagonal of `T` and what is beside it, real, and `Q` as reflections,
/// the columns of whose product are multiplied with numbers of magnitude one.
struct Tridiagonal<T> {
    d: Vec<f64>,
    e: Vec<f64>,
    turns: Vec<T>,
    reflectors: Reflectors<T>,
}

/// The tridiagonal form of a Hermitian matrix.
///
/// What a reflection changes is written in the same pass in which the next one is
/// multiplied with the matrix.
fn tridiagonal<T: Scalar>(mut a: Matrix<T>) -> Result<Tridiagonal<T>, Error> {
    let n = a.rows;
    let mut d = vec![0.0; n];
    let mut beside = vec![T::ZERO; n];
    let mut reflectors = Reflectors::new(OP, n - 1, n, 1)?;
    // A - v wᴴ - w vᴴ is what the matrix should be; `old` holds v, w and their conjugates.
    let mut old = Matrix::<T>::zeros(OP, 4, n)?;
    let mut new = Matrix::<T>::zeros(OP, 4, n)?;
    for k in 0..n {
        let (v, w) = (old.row(0), old.row(1));
        // Only the upper triangle is kept, whose rows are the conjugates of columns.
        let row = a.row(k).iter().zip(old.row(2).iter().zip(old.row(3))).skip(k);
        let mut x: Vec<T> =
            row.map(|(&a, (&v_conj, &w_conj))| (a - v[k] * w_conj - w[k] * v_conj).conj()).collect();
        d[k] = x[0].re();
        let top = k + 1;
        let Some((first, _)) = x[1..].split_first() else { break };
        beside[k] = *first;
        let x = &mut x[1..];
        let beta = |first: T, norm: f64| {
            if first == T::ZERO { T::real(-norm) } else { -direction(first).scale(norm) }
        };
        let found = if x[1..].iter().all(|&v| v == T::ZERO) { None } else { reflector(x, beta) };
        let tau = found.map_or(T::ZERO, |(tau, beta)| {
            beside[k] = beta;
            tau
        });
        if found.is_none() {
            x.fill(T::ZERO);
        }
        reflectors.push(found.map(|(tau, _)| (&*x, tau)));
        // vᴴ A, whose conjugate is A v.
        let (vs, ws) = new.data.split_at_mut(n);
        let (ws, conjugates) = ws.split_at_mut(n);
        let (v_conj, w_conj) = conjugates.split_at_mut(n);
        let (v, w) = (&mut vs[top..], &mut ws[top..]);
        let (v_conj, w_conj) = (&mut v_conj[top..], &mut w_conj[top..]);
        v.copy_from_slice(x);
        v_conj.iter_mut().zip(&*v).for_each(|(conj, v)| *conj = v.conj());
        w.fill(T::ZERO);
        let pairs = [(&old.row(0)[top..], &old.row(3)[top..]), (&old.row(1)[top..], &old.row(2)[top..])];
        update_and_multiply(&mut a.data[top * n + top..], n, pairs, (v, v_conj), w);
        // p = tau A v, and w = p - tau / 2 (vᴴ p) v.
        w.iter_mut().for_each(|w| *w = w.conj() * tau);
        let along = w.iter().zip(&*v_conj).fold(T::ZERO, |sum, (&p, &v)| sum + v * p);
        let half = (tau * along).scale(0.5);
        for ((w, w_conj), &v) in w.iter_mut().zip(w_conj).zip(&*v) {
            *w = *w - half * v;
            *w_conj = w.conj();
        }
        std::mem::swap(&mut old, &mut new);
        pause_after(n - k, n - k);
    }
    // What is beside the diagonal becomes real by turning the columns of Q.
    let mut turn = T::ONE;
    let mut turns = vec![T::ONE; n];
    let mut e = vec![0.0; n];
    for k in 0..n.saturating_sub(1) {
        let size = beside[k].abs();
        e[k] = if T::COMPLEX { size } else { beside[k].re() };
        if T::COMPLEX && size != 0.0 {
            turn = turn * direction(beside[k]);
        }
        turns[k + 1] = turn;
    }
    Ok(Tridiagonal { d, e, turns, reflectors })
}

/// Whether an element beside the diagonal can't be told from a rounding of both that it is beside.
///
/// Of a graded matrix this keeps the small eigenvalues; a rounding of the greater of both would
/// not.
pub fn negligible(beside: f64, first: f64, second: f64) -> bool {
    let (first, second) = (first.abs(), second.abs());
    let product = first * second;
    if PRODUCTS.contains(&product) {
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
    for attempt in 0..ATTEMPTS {
        if reverse {
            d.reverse();
            e[..last].reverse();
            reversed = !reversed;
        }
        // A rounding of the whole block is always small enough, if not as accurate.
        let floor = if attempt < PATIENT { TINY } else { f64::EPSILON };
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
            if steps > STEPS {
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
