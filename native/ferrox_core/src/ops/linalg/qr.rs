//! The QR factorization by Householder reflections, in blocks of columns (LAPACK's `dgeqrf`).
//!
//! The signs are those of Nx: a real diagonal element of R is positive, except where the column has
//! nothing left to eliminate; a complex one is opposite in direction to the element that it comes
//! from.

use super::factors::Qr;
use super::matrix::{
    Matrix, Scaling, add_scaled, direction, dot, flush_to_zero, max_abs, norm, reflector, yield_after,
};
use super::reflectors::{REFLECTORS_PER_BLOCK, Reflectors};
use super::scalar::Scalar;
use crate::Error;

/// Factors a matrix. `columns` is the number of columns of `Q`: the number of rows of the matrix,
/// or the smaller of its numbers of rows and columns.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn qr<T: Scalar>(a: Matrix<T>, columns: usize, eps: f64) -> Result<Qr<T>, Error> {
    const OP: &str = "qr";
    let (m, n) = (a.rows, a.columns);
    // R takes the place of the matrix.
    let mut r = a;
    // Scaled by a power of two, so that no square over- or underflows.
    let magnitude = max_abs(&r.data);
    let scaling = Scaling::to_high(magnitude);
    r.map(|value| scaling.down(value));
    // A complex column is reflected even if it has no rows below the diagonal, unless the matrix is
    // square.
    let last = if T::COMPLEX && m != n { m.min(n) } else { m.min(n.min(m.saturating_sub(1))) };
    let mut reflectors = Reflectors::new(OP, last, m, 0)?;
    let mut scratch = Matrix::zeros(OP, REFLECTORS_PER_BLOCK.min(last), m)?;
    for start in (0..last).step_by(REFLECTORS_PER_BLOCK) {
        let (end, rows) = ((start + REFLECTORS_PER_BLOCK).min(last), m - start);
        // A transposed copy, in which the elements of a column are adjacent.
        let transposed = &mut scratch.data[..rows * (end - start)];
        for (i, row) in r.data[start * n..].chunks_exact(n).enumerate() {
            for (j, &value) in row[start..end].iter().enumerate() {
                transposed[j * rows + i] = value;
            }
        }
        for j in 0..end - start {
            let (done, rest) = transposed.split_at_mut((j + 1) * rows);
            let v = &mut done[j * rows + j..];
            let below = scaling.up(norm(&v[1..]));
            let beta = |first: T, norm: f64| {
                if T::COMPLEX {
                    return if first == T::ZERO { T::real(-norm) } else { -direction(first).scale(norm) };
                }
                T::real(if below * below < eps && first.re() < 0.0 { -norm } else { norm })
            };
            let is_reduced = !T::COMPLEX && v[1..].iter().all(|&v| v == T::ZERO);
            let found = if is_reduced { None } else { reflector(v, beta) };
            reflectors.push(found.map(|(tau, _)| (&*v, tau)));
            if let Some((tau, beta)) = found {
                for column in rest.chunks_exact_mut(rows) {
                    let projection = dot(v, &column[j..]);
                    add_scaled(&mut column[j..], v, -(tau * projection));
                }
                v[0] = beta;
            }
            v[1..].fill(T::ZERO);
            yield_after(rows, end - start - j);
        }
        for (i, row) in r.data[start * n..].chunks_exact_mut(n).enumerate() {
            for (j, value) in row[start..end].iter_mut().enumerate() {
                *value = transposed[j * rows + i];
            }
        }
        reflectors.apply_from(OP, start, &mut r, end)?;
    }
    let mut q = reflectors.product(OP, columns)?;
    // Makes negative zeros positive.
    flush_to_zero(&mut q.data, 0.0);
    r.map(|value| scaling.up(value).flush_to_zero(0.0));
    r.data.truncate(columns * n);
    r.rows = columns.min(m);
    Ok((q, r))
}
