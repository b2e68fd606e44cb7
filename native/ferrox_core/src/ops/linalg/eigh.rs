//! Eigenvalues and eigenvectors of Hermitian matrices: reflections to
//! tridiagonal form, and for what is small implicit QL steps.

use super::matrix::{
    Matrix, Scaling, descending, direction, largest, pause_after, reflector, update_and_multiply,
};
use crate::Error;
use crate::ops::linalg::divide_and_conquer::eigenvectors;
use crate::ops::linalg::reflectors::Reflectors;
use crate::ops::linalg::scalar::Scalar;

const OP: &str = "eigh";

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
