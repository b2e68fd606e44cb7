//! Singular values of bidiagonal matrices by implicit QR steps (Golub and Kahan), without a shift
//! where it would cost small singular values their digits (Demmel and Kahan).

use super::matrix::{UNDERFLOW_THRESHOLD, givens_rotation, max_abs};
use super::rotations::RotatedMatrix;
use crate::Error;

const OP: &str = "svd";

/// The limit of steps for each singular value. A few are usual.
const MAX_QR_STEPS: usize = 300;

/// The number of steps after which superdiagonal elements are compared with a rounding error of the
/// whole matrix, and no longer only with their neighbors.
const ACCURATE_QR_STEPS: usize = 60;

/// The number of steps after which the direction changes.
const QR_STEPS_PER_DIRECTION: usize = 100;

/// The ratio of the least to the greatest singular value, times their number, up to which steps
/// have no shift.
const MAX_UNSHIFTED_RATIO: f64 = 0.03;

/// The relative error of a singular value that is accepted when a superdiagonal element is set to
/// zero.
const SINGULAR_VALUE_TOLERANCE: f64 = 16.0 * f64::EPSILON;

/// Diagonalizes an upper bidiagonal matrix with magnitudes up to about one: `e[k]` is the
/// superdiagonal element in the row of `d[k]`; the last element of `e` is zero. A zero at the end
/// of `d` stays there. Rotates the columns of `u` and `v` along.
///
/// All singular values are as accurate as the elements (Demmel and Kahan, "Accurate Singular Values
/// of Bidiagonal Matrices", 1990; LAPACK's `dbdsqr`).
///
/// # Errors
///
/// `Error::Argument` if the steps don't converge, `Error::TooLarge` if there is no memory.
pub fn diagonalize(
    d: &mut [f64],
    e: &mut [f64],
    u: &mut RotatedMatrix<f64>,
    v: &mut RotatedMatrix<f64>,
) -> Result<(), Error> {
    let norm = max_abs(d).max(max_abs(e));
    let mut step_count = 0;
    let mut end = d.len();
    // The unreduced block that the steps work on, and whether they go from its first row to its
    // last.
    let (mut block, mut forward) = (0..0, true);
    while end > 1 {
        let last = end - 1;
        let threshold =
            if step_count > ACCURATE_QR_STEPS { 4.0 * f64::EPSILON * norm } else { UNDERFLOW_THRESHOLD };
        // No superdiagonal element from `start` on is zero.
        let start = (0..last).rev().find(|&k| e[k].abs() <= threshold).map_or(0, |k| k + 1);
        if start > 0 {
            e[start - 1] = 0.0;
        }
        if start == last {
            end -= 1;
            step_count = 0;
            continue;
        }
        if let Some(k) = (start..end).rev().find(|&k| d[k].abs() <= UNDERFLOW_THRESHOLD) {
            d[k] = 0.0;
            if k == last {
                // Rotations with the other columns make the last column zero.
                let mut f = e[last - 1];
                e[last - 1] = 0.0;
                for j in (start..last).rev() {
                    let (c, s, r) = givens_rotation(d[j], f);
                    d[j] = r;
                    if j > start {
                        f = -s * e[j - 1];
                        e[j - 1] *= c;
                    }
                    v.rotate(j, last, c, s)?;
                }
            } else {
                // Rotations with the rows below make the row of the zero zero.
                let mut f = e[k];
                e[k] = 0.0;
                for j in k + 1..end {
                    let (c, s, r) = givens_rotation(d[j], f);
                    d[j] = r;
                    f = -s * e[j];
                    e[j] *= c;
                    u.rotate(j, k, c, s)?;
                }
            }
            continue;
        }
        step_count += 1;
        if step_count > MAX_QR_STEPS {
            return Err(Error::Argument { op: OP, problem: "the steps do not converge".to_string() });
        }
        if block != (start..end) {
            if start >= block.end || end <= block.start {
                // From the large end to the small one.
                forward = d[start].abs() >= d[last].abs();
            }
            (block, step_count) = (start..end, 0);
        } else if step_count % QR_STEPS_PER_DIRECTION == 0 {
            forward = !forward;
        }
        let (d, e) = (&mut d[start..end], &mut e[start..last]);
        if forward {
            qr_step(d, e, |i| start + i, [&mut *u, &mut *v])?;
        } else {
            // The transpose with its rows and columns in reverse order is upper bidiagonal as well.
            d.reverse();
            e.reverse();
            qr_step(d, e, |i| last - i, [&mut *v, &mut *u])?;
            d.reverse();
            e.reverse();
        }
    }
    Ok(())
}

/// A QR step for a block without zeros. If a superdiagonal element is negligible, the step only
/// sets it to zero. `column_of` maps a row of the block to the column of the vectors that is
/// rotated.
fn qr_step(
    d: &mut [f64],
    e: &mut [f64],
    column_of: impl Fn(usize) -> usize,
    [u, v]: [&mut RotatedMatrix<f64>; 2],
) -> Result<(), Error> {
    let last = d.len() - 1;
    if e[last - 1].abs() <= SINGULAR_VALUE_TOLERANCE * d[last].abs() {
        e[last - 1] = 0.0;
        return Ok(());
    }
    // A lower bound of the least singular value of the rows up to k.
    let mut bound = d[0].abs();
    let mut least = bound;
    for k in 0..last {
        if e[k].abs() <= SINGULAR_VALUE_TOLERANCE * bound {
            e[k] = 0.0;
            return Ok(());
        }
        bound = d[k + 1].abs() * (bound / (bound + e[k].abs()));
        least = least.min(bound);
    }
    let most = max_abs(d).max(max_abs(e));
    // A shift that is negligible next to the large values would cost small ones their digits.
    let mut shift = 0.0;
    if d.len() as f64 * (least / most) > MAX_UNSHIFTED_RATIO {
        shift = least_singular_value_2x2(d[last - 1].abs(), e[last - 1].abs(), d[last].abs());
        if (shift / d[0]).powi(2) < f64::EPSILON / 2.0 {
            shift = 0.0;
        }
    }
    if shift == 0.0 {
        let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
        for i in 0..last {
            let (new_c, s, r) = givens_rotation(d[i] * c, e[i]);
            if i > 0 {
                e[i - 1] = old_s * r;
            }
            v.rotate(column_of(i), column_of(i + 1), new_c, s)?;
            (old_c, old_s, d[i]) = givens_rotation(old_c * r, d[i + 1] * s);
            u.rotate(column_of(i), column_of(i + 1), old_c, old_s)?;
            c = new_c;
        }
        let rest = d[last] * c;
        d[last] = rest * old_c;
        e[last - 1] = rest * old_s;
        return Ok(());
    }
    let mut f = (d[0].abs() - shift) * (1f64.copysign(d[0]) + shift / d[0]);
    let mut g = e[0];
    for i in 0..last {
        let (c, s, r) = givens_rotation(f, g);
        if i > 0 {
            e[i - 1] = r;
        }
        f = c * d[i] + s * e[i];
        e[i] = c * e[i] - s * d[i];
        g = s * d[i + 1];
        d[i + 1] *= c;
        v.rotate(column_of(i), column_of(i + 1), c, s)?;
        let (c, s, r) = givens_rotation(f, g);
        d[i] = r;
        f = c * e[i] + s * d[i + 1];
        d[i + 1] = c * d[i + 1] - s * e[i];
        if i + 1 < last {
            g = s * e[i + 1];
            e[i + 1] *= c;
        }
        u.rotate(column_of(i), column_of(i + 1), c, s)?;
    }
    e[last - 1] = f;
    Ok(())
}

/// The least singular value of `[[f, g], [0, h]]`, whose elements are not negative (LAPACK's
/// `dlas2`).
fn least_singular_value_2x2(f: f64, g: f64, h: f64) -> f64 {
    let (less, greater) = (f.min(h), f.max(h));
    if less == 0.0 {
        return 0.0;
    }
    let (sum, difference) = (1.0 + less / greater, (greater - less) / greater);
    if g < greater {
        let square = (g / greater).powi(2);
        return less * (2.0 / ((sum * sum + square).sqrt() + (difference * difference + square).sqrt()));
    }
    let ratio = greater / g;
    if ratio == 0.0 {
        return less * greater / g;
    }
    let (sum, difference) = (sum * ratio, difference * ratio);
    2.0 * (less * (1.0 / ((1.0 + sum * sum).sqrt() + (1.0 + difference * difference).sqrt()))) * ratio
}
