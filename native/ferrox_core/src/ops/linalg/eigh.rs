//! Eigenvalues and eigenvectors of Hermitian matrices: Householder reflections to tridiagonal form,
//! and divide and conquer from there (LAPACK's `zheevd`).

use super::matrix::{
    Matrix, Scaling, descending_order, direction, filled_vector, max_abs, reflector, update_and_multiply,
    vector, yield_after,
};
use crate::Error;
use crate::ops::linalg::divide_and_conquer::eigenvectors;
use crate::ops::linalg::reflectors::Reflectors;
use crate::ops::linalg::scalar::Scalar;

const OP: &str = "eigh";

/// The eigenvalues, and the eigenvectors as rows.
pub type Eigh<T> = (Vec<f64>, Matrix<T>);

/// The eigenvalues in no order, and the eigenvectors as rows, of the Hermitian part of a finite
/// matrix.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory, `Error::Argument` if the steps don't converge.
pub fn eigh<T: Scalar>(a: &Matrix<T>) -> Result<Eigh<T>, Error> {
    let n = a.rows;
    let sizes = vector(OP, (0..n).map(|i| max_abs(a.row(i))))?;
    let max_abs = max_abs(&sizes);
    if max_abs == 0.0 || n == 0 {
        return Ok((filled_vector(OP, n, 0.0)?, Matrix::eye(OP, n, n)?));
    }
    let scaling = Scaling::to_high(max_abs);
    let order = descending_order(OP, &sizes)?;
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
            // Only the upper triangle, which is all that is read.
            for (y, &x) in h.row_mut(i).iter_mut().zip(a.row(i)).skip(i) {
                *y = mean(x, *y);
            }
        }
    }
    let Tridiagonal { mut d, mut e, phases, reflectors } = tridiagonalize(h)?;
    let rows = eigenvectors(&mut d, &mut e)?;
    let mut vectors = Matrix::zeros(OP, n, n)?;
    for (row, real) in vectors.data.chunks_exact_mut(n).zip(rows.data.chunks_exact(n)) {
        for ((value, &real), phase) in row.iter_mut().zip(real).zip(&phases) {
            *value = phase.scale(real);
        }
    }
    reflectors.apply_to_rows(OP, &mut vectors)?;
    if let Some(order) = order {
        let mut row = filled_vector(OP, n, T::ZERO)?;
        for vector in vectors.data.chunks_exact_mut(n) {
            order.iter().zip(&*vector).for_each(|(&i, &value)| row[i] = value);
            vector.copy_from_slice(&row);
        }
    }
    d.iter_mut().for_each(|d| *d = scaling.up(*d));
    Ok((d, vectors))
}

/// `A = Q T Qᴴ` with a real tridiagonal `T`: its diagonal and off-diagonal elements, and `Q` as the
/// product of reflections, whose columns are multiplied by phases.
struct Tridiagonal<T> {
    d: Vec<f64>,
    e: Vec<f64>,
    phases: Vec<T>,
    reflectors: Reflectors<T>,
}

/// Reduces a Hermitian matrix to tridiagonal form.
///
/// The update by a reflection is written in the same pass that multiplies the matrix by the next
/// reflection.
fn tridiagonalize<T: Scalar>(mut a: Matrix<T>) -> Result<Tridiagonal<T>, Error> {
    let n = a.rows;
    let mut d = filled_vector(OP, n, 0.0)?;
    let mut off_diagonal = filled_vector(OP, n, T::ZERO)?;
    let mut reflectors = Reflectors::new(OP, n - 1, n, 1)?;
    // The updated matrix is A - v wᴴ - w vᴴ; `old` holds v, w and their conjugates.
    let mut old = Matrix::<T>::zeros(OP, 4, n)?;
    let mut new = Matrix::<T>::zeros(OP, 4, n)?;
    for k in 0..n {
        let (v, w) = (old.row(0), old.row(1));
        // Only the upper triangle is stored; its rows are the conjugates of columns.
        let row = a.row(k).iter().zip(old.row(2).iter().zip(old.row(3))).skip(k);
        let column = row.map(|(&a, (&v_conj, &w_conj))| (a - v[k] * w_conj - w[k] * v_conj).conj());
        let mut x = vector(OP, column)?;
        d[k] = x[0].re();
        let top = k + 1;
        let Some((first, _)) = x[1..].split_first() else { break };
        off_diagonal[k] = *first;
        let x = &mut x[1..];
        let beta = |first: T, norm: f64| {
            if first == T::ZERO { T::real(-norm) } else { -direction(first).scale(norm) }
        };
        let found = if x[1..].iter().all(|&v| v == T::ZERO) { None } else { reflector(x, beta) };
        let tau = found.map_or(T::ZERO, |(tau, beta)| {
            off_diagonal[k] = beta;
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
        yield_after(n - k, n - k);
    }
    // Multiplying the columns of Q by phases makes the off-diagonal elements real.
    let mut phase = T::ONE;
    let mut phases = filled_vector(OP, n, T::ONE)?;
    let mut e = filled_vector(OP, n, 0.0)?;
    for k in 0..n.saturating_sub(1) {
        let size = off_diagonal[k].abs();
        e[k] = if T::COMPLEX { size } else { off_diagonal[k].re() };
        if T::COMPLEX && size != 0.0 {
            phase = phase * direction(off_diagonal[k]);
        }
        phases[k + 1] = phase;
    }
    Ok(Tridiagonal { d, e, phases, reflectors })
}
