//! Eigenvalues and eigenvectors of Hermitian matrices: reflections to
//! tridiagonal form, and for what is small implicit QL steps.

use super::conquer::eigenvectors;
use super::matrix::{
    Matrix, Scaling, TINY, hypotenuse, largest, pause_after, reflector, update_and_multiply,
};
use super::reflectors::Reflectors;
use super::rotations::Rotated;
use super::scalar::Scalar;
use crate::Error;

const OP: &str = "eigh";

/// Steps for each eigenvalue; a few are the rule.
const STEPS: usize = 60;

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
    // Scaled by a power of two, so that no square over- or underflows.
    let largest = largest(&a.data);
    if largest == 0.0 || n == 0 {
        return Ok((vec![0.0; n], Matrix::eye(OP, n, n)?));
    }
    let scaling = Scaling::of(largest);
    let mut h = a.transpose(OP)?;
    for i in 0..n {
        // Of the upper triangle, which is all that is read.
        for (y, &x) in h.row_mut(i).iter_mut().zip(a.row(i)).skip(i) {
            *y = (scaling.down(x) + scaling.down(*y).conj()).scale(0.5);
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
            let size = first.abs();
            if size == 0.0 { T::real(-norm) } else { -first.scale(norm / size) }
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
            turn = turn * beside[k].scale(1.0 / size);
        }
        turns[k + 1] = turn;
    }
    Ok(Tridiagonal { d, e, turns, reflectors })
}

/// Implicit QL steps for a matrix of magnitudes up to about one; rotates the columns of
/// `vectors` along.
///
/// # Errors
///
/// `Error::Argument` if they don't converge, `Error::TooLarge` if there is no memory.
pub fn ql(d: &mut [f64], e: &mut [f64], vectors: &mut Rotated<f64>) -> Result<(), Error> {
    let n = d.len();
    for l in 0..n {
        let mut steps = 0;
        loop {
            let beside = |i: usize| d[i].abs() + d[i + 1].abs();
            let small = |i: usize| e[i].abs() <= TINY + f64::EPSILON * beside(i) * 0.5;
            let m = (l..n - 1).find(|&i| small(i)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            steps += 1;
            if steps > STEPS {
                return Err(Error::Argument { op: OP, problem: "the steps do not converge".to_string() });
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let r = hypotenuse(g, 1.0);
            let mut g = d[m] - d[l] + e[l] / (g + r.copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut split = None;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = hypotenuse(f, g);
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
                vectors.rotate(i + 1, i, c, s)?;
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
