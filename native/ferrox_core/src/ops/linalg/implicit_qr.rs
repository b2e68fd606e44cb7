//! Singular values of bidiagonal matrices by implicit QR steps (Golub and Kahan), without a shift
//! where that would cost small values their digits (Demmel and Kahan).

use super::matrix::{TINY, largest, rotation};
use super::rotations::Rotated;
use crate::Error;

const OP: &str = "svd";

/// Steps for each singular value; a few are the rule.
const MAX_QR_STEPS: usize = 300;

/// After so many of them, what is beside the diagonal is compared with the whole
/// matrix and no longer with its neighbours only.
const ACCURATE_STEPS: usize = 60;

/// After so many of them they go on from the other end.
const STEPS_PER_DIRECTION: usize = 100;

/// The least singular value over the greatest, times how many there are, up to which shifts are done without.
const MAX_UNSHIFTED_RATIO: f64 = 0.03;

/// The share of a singular value that may be neglected.
const TOLERANCE: f64 = 16.0 * f64::EPSILON;

/// Diagonalizes what has magnitudes up to about one; `e[k]` is beside `d[k]`, its last element is
/// zero. A zero at the end of `d` stays there.
///
/// All singular values are as accurate as the elements (Demmel and Kahan, "Accurate Singular Values of
/// Bidiagonal Matrices", 1990; LAPACK's `dbdsqr`).
///
/// # Errors
///
/// `Error::Argument` if the steps don't converge, `Error::TooLarge` if there is no memory.
pub fn diagonalize(
    d: &mut [f64],
    e: &mut [f64],
    u: &mut Rotated<f64>,
    v: &mut Rotated<f64>,
) -> Result<(), Error> {
    let norm = largest(d).max(largest(e));
    let mut count = 0;
    let mut end = d.len();
    // Which part the steps are in, and whether they go from its first row to its last.
    let (mut part, mut forward) = (0..0, true);
    while end > 1 {
        let last = end - 1;
        let tiny = if count > ACCURATE_STEPS { 4.0 * f64::EPSILON * norm } else { TINY };
        // From `start` on nothing beside the diagonal is zero.
        let start = (0..last).rev().find(|&k| e[k].abs() <= tiny).map_or(0, |k| k + 1);
        if start > 0 {
            e[start - 1] = 0.0;
        }
        if start == last {
            end -= 1;
            count = 0;
            continue;
        }
        if let Some(k) = (start..end).rev().find(|&k| d[k].abs() <= TINY) {
            d[k] = 0.0;
            if k == last {
                // The last column is turned away.
                let mut f = e[last - 1];
                e[last - 1] = 0.0;
                for j in (start..last).rev() {
                    let (c, s, r) = rotation(d[j], f);
                    d[j] = r;
                    if j > start {
                        f = -s * e[j - 1];
                        e[j - 1] *= c;
                    }
                    v.rotate(j, last, c, s)?;
                }
            } else {
                // The row of the zero is turned away.
                let mut f = e[k];
                e[k] = 0.0;
                for j in k + 1..end {
                    let (c, s, r) = rotation(d[j], f);
                    d[j] = r;
                    f = -s * e[j];
                    e[j] *= c;
                    u.rotate(j, k, c, s)?;
                }
            }
            continue;
        }
        count += 1;
        if count > MAX_QR_STEPS {
            return Err(Error::Argument { op: OP, problem: "the steps do not converge".to_string() });
        }
        if part != (start..end) {
            if start >= part.end || end <= part.start {
                // From the large end to the small one.
                forward = d[start].abs() >= d[last].abs();
            }
            (part, count) = (start..end, 0);
        } else if count % STEPS_PER_DIRECTION == 0 {
            forward = !forward;
        }
        let (d, e) = (&mut d[start..end], &mut e[start..last]);
        if forward {
            step(d, e, |i| start + i, [&mut *u, &mut *v])?;
        } else {
            // The transpose with rows and columns in reverse order is of the same form.
            d.reverse();
            e.reverse();
            step(d, e, |i| last - i, [&mut *v, &mut *u])?;
            d.reverse();
            e.reverse();
        }
    }
    Ok(())
}

/// A step for a part without zeros, or the last of it if something beside the diagonal is negligible;
/// `place` says which columns of the vectors are turned.
fn step(
    d: &mut [f64],
    e: &mut [f64],
    place: impl Fn(usize) -> usize,
    [u, v]: [&mut Rotated<f64>; 2],
) -> Result<(), Error> {
    let last = d.len() - 1;
    if e[last - 1].abs() <= TOLERANCE * d[last].abs() {
        e[last - 1] = 0.0;
        return Ok(());
    }
    // What is no greater than the least singular value of the rows up to there.
    let mut bound = d[0].abs();
    let mut least = bound;
    for k in 0..last {
        if e[k].abs() <= TOLERANCE * bound {
            e[k] = 0.0;
            return Ok(());
        }
        bound = d[k + 1].abs() * (bound / (bound + e[k].abs()));
        least = least.min(bound);
    }
    let most = largest(d).max(largest(e));
    // A shift would cost small values their digits where it is nothing beside the large ones.
    let mut shift = 0.0;
    if d.len() as f64 * (least / most) > MAX_UNSHIFTED_RATIO {
        shift = least_of_two(d[last - 1].abs(), e[last - 1].abs(), d[last].abs());
        if (shift / d[0]).powi(2) < f64::EPSILON / 2.0 {
            shift = 0.0;
        }
    }
    if shift == 0.0 {
        let (mut c, mut old_c, mut old_s) = (1.0, 1.0, 0.0);
        for i in 0..last {
            let (new_c, s, r) = rotation(d[i] * c, e[i]);
            if i > 0 {
                e[i - 1] = old_s * r;
            }
            v.rotate(place(i), place(i + 1), new_c, s)?;
            (old_c, old_s, d[i]) = rotation(old_c * r, d[i + 1] * s);
            u.rotate(place(i), place(i + 1), old_c, old_s)?;
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
        let (c, s, r) = rotation(f, g);
        if i > 0 {
            e[i - 1] = r;
        }
        f = c * d[i] + s * e[i];
        e[i] = c * e[i] - s * d[i];
        g = s * d[i + 1];
        d[i + 1] *= c;
        v.rotate(place(i), place(i + 1), c, s)?;
        let (c, s, r) = rotation(f, g);
        d[i] = r;
        f = c * e[i] + s * d[i + 1];
        d[i + 1] = c * d[i + 1] - s * e[i];
        if i + 1 < last {
            g = s * e[i + 1];
            e[i + 1] *= c;
        }
        u.rotate(place(i), place(i + 1), c, s)?;
    }
    e[last - 1] = f;
    Ok(())
}

/// The least singular value of `[[f, g], [0, h]]`, none of which is negative (LAPACK's `dlas2`).
fn least_of_two(f: f64, g: f64, h: f64) -> f64 {
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
