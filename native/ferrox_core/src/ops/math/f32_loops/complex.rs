//! Powers of c64: `complex::pow` in vectors, by the functions of `f32_functions` or by repeated
//! squaring, rounded once.
//!
//! Products and sums are rounded separately at every instruction set level, so that all have the
//! same bits.

use num_complex::Complex;

use crate::Fault;
use crate::dtype::Lane;
use crate::exec::elementwise::Operand;
use crate::exec::simd::{Vectorized, dispatch as vectorize, truncate_f32};
use crate::ops::math::f32_functions::SeparateRounding;
use crate::ops::math::{complex, f32_functions};

/// The number of elements that are computed together.
const COMPLEX_POW_CHUNK: usize = 64;

type C64 = Complex<f32>;
type C64Bytes = <C64 as Lane>::Bytes;

/// Returns whether `complex::pow` must compute the power: for parts that aren't finite, a base of
/// zero, and the exponents 1, -1 and 1/2.
#[inline(always)]
fn is_special(x: C64, y: C64) -> bool {
    let finite = x.re.is_finite() & x.im.is_finite() & y.re.is_finite() & y.im.is_finite();
    !finite | (x.re == 0.0) & (x.im == 0.0) | (y.im == 0.0) & ((y.re.abs() == 1.0) | (y.re == 0.5))
}

/// Returns whether the power is computed by repeated squaring.
#[inline(always)]
fn is_integer(y: C64) -> bool {
    (y.im == 0.0) & (y.re.abs() <= complex::MAX_INTEGER_EXPONENT as f32) & (y.re == y.re.trunc())
}

/// Returns whether the power is in the range of f64, and `f32_functions` accepts its angle.
#[inline(always)]
fn is_plain(logarithm: f64, angle: f64) -> bool {
    (logarithm <= 700.0) & (angle.abs() <= f64::from(f32_functions::MAX_SMALL_ANGLE))
}

struct ComplexPowLoop<'a, 'b> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
}

impl Vectorized for ComplexPowLoop<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let operands = [self.operands[0], self.operands[self.operands.len() - 1]];
        let scalars = operands.map(|operand| match operand {
            Operand::Slice(_) => [[0; 8]; COMPLEX_POW_CHUNK],
            Operand::Scalar(bytes) => [C64::view(bytes)[0]; COMPLEX_POW_CHUNK],
        });
        for (k, out) in C64::view_mut(self.out).chunks_mut(COMPLEX_POW_CHUNK).enumerate() {
            let [x, y] = [0, 1].map(|i| match operands[i] {
                Operand::Slice(bytes) => &C64::view(bytes)[k * COMPLEX_POW_CHUNK..][..out.len()],
                Operand::Scalar(_) => &scalars[i][..out.len()],
            });
            compute_chunk(x, y, out);
        }
    }
}

#[inline(always)]
fn compute_chunk(x: &[C64Bytes], y: &[C64Bytes], out: &mut [C64Bytes]) {
    let n = out.len();
    let (mut re, mut im) = ([0.0; COMPLEX_POW_CHUNK], [0.0; COMPLEX_POW_CHUNK]);
    let (re, im) = (&mut re[..n], &mut im[..n]);
    let (mut any_integer, mut all_integers, mut greatest) = (false, true, 0_f32);
    for &y in y {
        let y = C64::load(y);
        any_integer |= is_integer(y);
        all_integers &= is_integer(y);
        greatest = greatest.max(if is_integer(y) { y.re.abs() } else { 0.0 });
    }
    if !all_integers {
        pow_polar(x, y, re, im);
    }
    if any_integer {
        pow_by_squaring(x, y, re, im, u32::BITS - (greatest as u32).leading_zeros());
    }
    let mut plain = true;
    for (((out, &re), &im), (&x, &y)) in out.iter_mut().zip(&*re).zip(&*im).zip(x.iter().zip(y)) {
        plain &= !re.is_nan() & !is_special(C64::load(x), C64::load(y));
        *out = Complex::new(re as f32, im as f32).store();
    }
    if !plain {
        for ((out, &re), (&x, &y)) in out.iter_mut().zip(&*re).zip(x.iter().zip(y)) {
            let (x, y) = (C64::load(x), C64::load(y));
            if re.is_nan() | is_special(x, y) {
                *out = complex::pow_single(x, y).store();
            }
        }
    }
}

/// Computes `e^(y log x)`. The real part is NaN where [`is_plain`] is false. The work is split into
/// several loops, because a processor overlaps only few iterations of a long loop.
#[inline(always)]
fn pow_polar(x: &[C64Bytes], y: &[C64Bytes], re: &mut [f64], im: &mut [f64]) {
    let (logarithms, angles) = (re, im);
    for ((logarithm, angle), &x) in logarithms.iter_mut().zip(&mut *angles).zip(x) {
        let Complex { re, im } = C64::load(x);
        let (re, im) = (f64::from(re), f64::from(im));
        *logarithm = 0.5 * f32_functions::log_regular::<SeparateRounding>(re * re + im * im);
        *angle = f32_functions::atan2(im, re);
    }
    // The logarithm and the angle of the power.
    for ((logarithm, angle), &y) in logarithms.iter_mut().zip(&mut *angles).zip(y) {
        let y = C64::load(y);
        let (re, im) = (f64::from(y.re), f64::from(y.im));
        (*logarithm, *angle) = (re * *logarithm - im * *angle, re * *angle + im * *logarithm);
    }
    for (re, im) in logarithms.iter_mut().zip(angles) {
        let (logarithm, angle) = (*re, *im);
        let magnitude = f32_functions::exp_wide::<SeparateRounding>(logarithm);
        let plain = is_plain(logarithm, angle);
        *re = if plain { magnitude * f32_functions::cos::<SeparateRounding>(angle) } else { f64::NAN };
        *im = magnitude * f32_functions::sin::<SeparateRounding>(angle);
    }
}

/// Computes powers whose exponents are integers of at most `bits` bits, by repeated squaring. The
/// real part is NaN where the power may be out of the range of f64.
#[inline(always)]
fn pow_by_squaring(x: &[C64Bytes], y: &[C64Bytes], re: &mut [f64], im: &mut [f64], bits: u32) {
    /// The squared magnitudes whose inverse is in range too.
    const SAFE_NORM_SQR: std::ops::RangeInclusive<f64> = 1e-300..=1e300;
    type WideComplex = Complex<f64>;
    let mut squares = [WideComplex::ZERO; COMPLEX_POW_CHUNK];
    let mut powers = [WideComplex::ONE; COMPLEX_POW_CHUNK];
    let (squares, powers) = (&mut squares[..x.len()], &mut powers[..x.len()]);
    for (square, &x) in squares.iter_mut().zip(x) {
        let x = C64::load(x);
        *square = Complex::new(f64::from(x.re), f64::from(x.im));
    }
    for bit in 0..bits {
        for ((square, power), &y) in squares.iter_mut().zip(&mut *powers).zip(y) {
            let factor = truncate_f32(C64::load(y).re.abs()) >> bit & 1 == 1;
            let product = *power * *square;
            power.re = if factor { product.re } else { power.re };
            power.im = if factor { product.im } else { power.im };
            *square = *square * *square;
        }
    }
    for ((re, im), (power, &y)) in re.iter_mut().zip(im).zip(powers.iter().zip(y)) {
        let y = C64::load(y);
        let norm_sqr = power.re * power.re + power.im * power.im;
        let inverse = y.re < 0.0;
        let (numerator, denominator) =
            if inverse { (Complex::new(power.re, -power.im), norm_sqr) } else { (*power, 1.0) };
        let value = if SAFE_NORM_SQR.contains(&norm_sqr) { numerator.re / denominator } else { f64::NAN };
        *re = if is_integer(y) { value } else { *re };
        *im = if is_integer(y) { numerator.im / denominator } else { *im };
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as kernels are")]
pub(in crate::ops) fn pow(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(ComplexPowLoop { out, operands });
    Ok(())
}
