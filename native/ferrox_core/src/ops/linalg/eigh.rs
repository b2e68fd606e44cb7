//! Eigenvalues and eigenvectors of Hermitian matrices: reflections to
//! tridiagonal form, then implicit QL steps.

use super::matrix::{Matrix, add_rows, reflector, rotate};
use super::qr::apply_left;
use super::scalar::Scalar;
use crate::Error;

const OP: &str = "eigh";

/// Steps for each eigenvalue; a few are the rule.
const STEPS: usize = 60;

/// The eigenvalues, and the eigenvectors as rows.
pub type Eigh<T> = (Vec<f64>, Matrix<T>);

/// The eigenvalues in no order, and the conjugates of the eigenvectors as rows, of
/// the Hermitian part of a finite matrix.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if the steps don't
/// converge.
pub fn eigh<T: Scalar>(a: &Matrix<T>) -> Result<Eigh<T>, Error> {
    let n = a.rows;
    // Scaled by a power of two, so that no square over- or underflows.
    let largest = a.data.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    if largest == 0.0 || n == 0 {
        return Ok((vec![0.0; n], Matrix::eye(OP, n, n)?));
    }
    let exponent = exponent(largest);
    let (down, up) = (half_power(-exponent), half_power(exponent));
    let mut h = a.copy(OP)?;
    for i in 0..n {
        for j in 0..=i {
            let (x, y) = (a.at(i, j).scale(down.0).scale(down.1), a.at(j, i).scale(down.0).scale(down.1));
            let mean = (x + y.conj()).scale(0.5);
            *h.at_mut(i, j) = mean;
            *h.at_mut(j, i) = mean.conj();
        }
    }
    let (mut d, mut e, q) = tridiagonal(h)?;
    let mut vectors = q.transpose(OP)?;
    ql(&mut d, &mut e, &mut vectors)?;
    d.iter_mut().for_each(|d| *d = *d * up.0 * up.1);
    Ok((d, vectors))
}

/// The exponent of two of a positive number.
pub fn exponent(value: f64) -> i32 {
    value.log2().floor() as i32
}

/// Two factors whose product is a power of two, each in the range of f64.
pub fn half_power(exponent: i32) -> (f64, f64) {
    (2f64.powi(exponent / 2), 2f64.powi(exponent - exponent / 2))
}

/// A diagonal, what is beside it, and `Q`.
type Tridiagonal<T> = (Vec<f64>, Vec<f64>, Matrix<T>);

/// `A = Q T Qᴴ`: the diagonal and what is beside it, real, and `Q`.
fn tridiagonal<T: Scalar>(mut a: Matrix<T>) -> Result<Tridiagonal<T>, Error> {
    let n = a.rows;
    let mut beside = vec![T::ZERO; n];
    let mut reflectors = Vec::with_capacity(n);
    let mut pair = Matrix::<T>::zeros(OP, 2, n)?;
    for (k, beside) in beside.iter_mut().enumerate().take(n.saturating_sub(1)) {
        let top = k + 1;
        let size = n - top;
        let mut v: Vec<T> = (top..n).map(|row| a.at(row, k)).collect();
        let beta = |first: T, norm: f64| {
            let size = first.abs();
            if size == 0.0 { T::real(-norm) } else { -first.scale(norm / size) }
        };
        let reflector = if v[1..].iter().all(|&v| v == T::ZERO) { None } else { reflector(&mut v, beta) };
        let Some((tau, beta)) = reflector else {
            *beside = a.at(top, k);
            continue;
        };
        *beside = beta;
        // p = tau A v, by rows: the conjugate of tau vᴴ A.
        let conjugates: Vec<T> = v.iter().map(|v| v.conj()).collect();
        let (w, rest) = pair.data.split_at_mut(n);
        let w = &mut w[..size];
        w.fill(T::ZERO);
        add_rows(w, &conjugates, &a.data[top * n + top..], n);
        w.iter_mut().for_each(|w| *w = w.conj() * tau);
        // w = p - tau / 2 (vᴴ p) v, and A - v wᴴ - w vᴴ.
        let along = w.iter().zip(&conjugates).fold(T::ZERO, |sum, (&p, &v)| sum + v * p);
        let half = (tau * along).scale(0.5);
        for (w, &v) in w.iter_mut().zip(&v) {
            *w = *w - half * v;
        }
        let factors: Vec<[T; 2]> = v.iter().zip(w.iter()).map(|(&v, &w)| [-v, -w]).collect();
        w.iter_mut().for_each(|w| *w = w.conj());
        rest[..size].copy_from_slice(&conjugates);
        for (row, factors) in a.data[top * n..].chunks_exact_mut(n).zip(&factors) {
            add_rows(&mut row[top..], factors, &pair.data, n);
        }
        reflectors.push((top, v, tau));
    }
    let mut q = Matrix::eye(OP, n, n)?;
    let mut work = vec![T::ZERO; n];
    for (top, v, tau) in reflectors.iter().rev() {
        apply_left(&mut q, v, *tau, *top, *top, &mut work);
    }
    // What is beside the diagonal becomes real by turning the columns of Q.
    let d = (0..n).map(|i| a.at(i, i).re()).collect();
    let mut turn = T::ONE;
    let mut turns = vec![T::ONE; n];
    let mut e = vec![0.0; n];
    for k in 0..n.saturating_sub(1) {
        let size = beside[k].abs();
        e[k] = if T::COMPLEX { size } else { beside[k].re() };
        if T::COMPLEX && size != 0.0 {
            turn = turn * beside[k].scale(1.0 / size);
        }
        turns[k + 1] = turn;
    }
    if T::COMPLEX {
        for row in q.data.chunks_exact_mut(n.max(1)) {
            row.iter_mut().zip(&turns).for_each(|(value, &turn)| *value = *value * turn);
        }
    }
    Ok((d, e, q))
}

/// Implicit QL steps; rotates the rows of `vectors` along.
fn ql<T: Scalar>(d: &mut [f64], e: &mut [f64], vectors: &mut Matrix<T>) -> Result<(), Error> {
    let n = d.len();
    for l in 0..n {
        let mut steps = 0;
        loop {
            let small = |i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs()) * 0.5;
            let m = (l..n - 1).find(|&i| e[i] == 0.0 || small(i)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            steps += 1;
            if steps > STEPS {
                return Err(Error::Argument { op: OP, problem: "the steps do not converge".to_string() });
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let r = g.hypot(1.0);
            let mut g = d[m] - d[l] + e[l] / (g + r.copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut split = None;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    split = Some(i);
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                let (first, second) = vectors.two_rows(i, i + 1);
                // (first, second) = (c first - s second, s first + c second)
                rotate(first, second, c, -s);
            }
            if split.is_none() {
                d[l] -= p;
                e[l] = g;
            }
            e[m] = 0.0;
        }
    }
    Ok(())
}
