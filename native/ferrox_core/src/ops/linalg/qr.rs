//! The QR factorization by Householder's reflections.
//!
//! Signs are those of Nx: a real diagonal of R is positive, except where nothing
//! was left to eliminate; a complex one is opposite to what it comes from.

use super::factors::Qr;
use super::matrix::{
    Matrix, Scaling, add_scaled, clean, direction, dot, largest, norm, pause_after, reflector,
};
use super::reflectors::{Reflectors, TOGETHER};
use super::scalar::Scalar;
use crate::Error;

/// Factors a matrix; `columns` is how many columns of `Q` are wanted: all, or
/// the smaller of both sizes.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory.
pub fn qr<T: Scalar>(a: &Matrix<T>, columns: usize, eps: f64) -> Result<Qr<T>, Error> {
    const OP: &str = "qr";
    let (m, n) = (a.rows, a.columns);
    let mut r = a.copy(OP)?;
    // Scaled by a power of two, so that no square over- or underflows.
    let greatest = largest(&a.data);
    let scaling = Scaling::high(greatest);
    r.map(|value| scaling.down(value));
    // A complex column is turned even where nothing is left below, unless the
    // matrix is square.
    let last = if T::COMPLEX && m != n { m.min(n) } else { m.min(n.min(m.saturating_sub(1))) };
    let mut reflectors = Reflectors::new(OP, last, m, 0)?;
    let mut scratch = Matrix::zeros(OP, TOGETHER.min(last), m)?;
    for start in (0..last).step_by(TOGETHER) {
        let (end, rows) = ((start + TOGETHER).min(last), m - start);
        // With rows for columns, so that the elements of a column lie side by side.
        let turned = &mut scratch.data[..rows * (end - start)];
        for (i, row) in r.data[start * n..].chunks_exact(n).enumerate() {
            for (j, &value) in row[start..end].iter().enumerate() {
                turned[j * rows + i] = value;
            }
        }
        for j in 0..end - start {
            let (done, rest) = turned.split_at_mut((j + 1) * rows);
            let v = &mut done[j * rows + j..];
            let below = scaling.up(norm(&v[1..]));
            let beta = |first: T, norm: f64| {
                if T::COMPLEX {
                    return if first == T::ZERO { T::real(-norm) } else { -direction(first).scale(norm) };
                }
                T::real(if below * below < eps && first.re() < 0.0 { -norm } else { norm })
            };
            let nothing = !T::COMPLEX && v[1..].iter().all(|&v| v == T::ZERO);
            let found = if nothing { None } else { reflector(v, beta) };
            reflectors.push(found.map(|(tau, _)| (&*v, tau)));
            if let Some((tau, beta)) = found {
                for column in rest.chunks_exact_mut(rows) {
                    let along = dot(v, &column[j..]);
                    add_scaled(&mut column[j..], v, -(tau * along));
                }
                v[0] = beta;
            }
            v[1..].fill(T::ZERO);
            pause_after(rows, end - start - j);
        }
        for (i, row) in r.data[start * n..].chunks_exact_mut(n).enumerate() {
            for (j, value) in row[start..end].iter_mut().enumerate() {
                *value = turned[j * rows + i];
            }
        }
        reflectors.apply_from(OP, start, &mut r, end)?;
    }
    let mut q = reflectors.product(OP, columns)?;
    // Zeros without their signs.
    clean(&mut q.data, 0.0);
    r.map(|value| scaling.up(value).clean(0.0));
    r.data.truncate(columns * n);
    r.rows = columns.min(m);
    Ok((q, r))
}
