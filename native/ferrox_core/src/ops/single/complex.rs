//! Powers of c64: `complex::pow` in vectors, by the functions of `math`, rounded once.
//!
//! Products and sums are rounded separately at every level, so that all have the same bits.

use num_complex::Complex;

use crate::Fault;
use crate::dtype::Lane;
use crate::exec::elementwise::Operand;
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::ops::complex;
use crate::ops::math::{self, Separate};

/// Elements that are computed together.
const CHUNK: usize = 64;

type C = Complex<f32>;
type Bytes = <C as Lane>::Bytes;

/// What has a way of its own: numbers that aren't finite, a base of zero, and exponents of one
/// and minus one.
#[inline(always)]
fn is_special(x: C, y: C) -> bool {
    let finite = x.re.is_finite() & x.im.is_finite() & y.re.is_finite() & y.im.is_finite();
    !finite | (x.re == 0.0) & (x.im == 0.0) | (y.im == 0.0) & (y.re.abs() == 1.0)
}

/// Whether a power is within the range of an f64, and its angle one that `math` takes.
#[inline(always)]
fn is_plain(logarithm: f64, angle: f64) -> bool {
    (logarithm <= 700.0) & (angle.abs() <= f64::from(math::SMALL_ANGLE))
}

struct Loop<'a, 'b> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
}

impl Vectorized for Loop<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let operands = [self.operands[0], self.operands[self.operands.len() - 1]];
        let scalars = operands.map(|operand| match operand {
            Operand::Slice(_) => [[0; 8]; CHUNK],
            Operand::Scalar(bytes) => [C::view(bytes)[0]; CHUNK],
        });
        for (k, out) in C::view_mut(self.out).chunks_mut(CHUNK).enumerate() {
            let [x, y] = [0, 1].map(|i| match operands[i] {
                Operand::Slice(bytes) => &C::view(bytes)[k * CHUNK..][..out.len()],
                Operand::Scalar(_) => &scalars[i][..out.len()],
            });
            chunk(x, y, out);
        }
    }
}

/// In steps, since a processor overlaps few passes of a long loop.
#[inline(always)]
fn chunk(x: &[Bytes], y: &[Bytes], out: &mut [Bytes]) {
    let n = out.len();
    let (mut logarithms, mut angles) = ([0.0; CHUNK], [0.0; CHUNK]);
    let (logarithms, angles) = (&mut logarithms[..n], &mut angles[..n]);
    for ((logarithm, angle), &x) in logarithms.iter_mut().zip(&mut *angles).zip(x) {
        let Complex { re, im } = C::load(x);
        let (re, im) = (f64::from(re), f64::from(im));
        *logarithm = 0.5 * math::log_regular::<Separate>(re * re + im * im);
        *angle = math::atan2(im, re);
    }
    // Now those of the power.
    let mut plain = true;
    for (((logarithm, angle), &x), &y) in logarithms.iter_mut().zip(&mut *angles).zip(x).zip(y) {
        let (x, y) = (C::load(x), C::load(y));
        let (re, im) = (f64::from(y.re), f64::from(y.im));
        (*logarithm, *angle) = (re * *logarithm - im * *angle, re * *angle + im * *logarithm);
        plain &= !is_special(x, y) & is_plain(*logarithm, *angle);
    }
    for ((out, &logarithm), &angle) in out.iter_mut().zip(&*logarithms).zip(&*angles) {
        let magnitude = math::exp_wide::<Separate>(logarithm);
        let (re, im) = (math::cos::<Separate>(angle), math::sin::<Separate>(angle));
        *out = Complex::new((magnitude * re) as f32, (magnitude * im) as f32).store();
    }
    if !plain {
        let powers = logarithms.iter().zip(&*angles);
        for (((out, &x), &y), (&logarithm, &angle)) in out.iter_mut().zip(x).zip(y).zip(powers) {
            let (x, y) = (C::load(x), C::load(y));
            if is_special(x, y) || !is_plain(logarithm, angle) {
                *out = complex::pow_single(x, y).store();
            }
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as kernels are")]
pub(in crate::ops) fn pow(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(Loop { out, operands });
    Ok(())
}
