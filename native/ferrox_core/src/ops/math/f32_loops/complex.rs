//! Powers of c64: `complex::pow` in vectors, by the functions of `f32_functions` or as products, rounded
//! once.
//!
//! Products and sums are rounded separately at every level, so that all have the same bits.

use num_complex::Complex;

use crate::Fault;
use crate::dtype::Lane;
use crate::exec::elementwise::Operand;
use crate::exec::simd::{Vectorized, dispatch as vectorize, truncate_f32};
use crate::ops::math::f32_functions::Separate;
use crate::ops::math::{complex, f32_functions};

/// Elements that are computed together.
const CHUNK: usize = 64;

type C = Complex<f32>;
type Bytes = <C as Lane>::Bytes;

/// What `complex::pow` computes: numbers that aren't finite, a base of zero, and exponents of one,
/// minus one and a half.
#[inline(always)]
fn is_special(x: C, y: C) -> bool {
    let finite = x.re.is_finite() & x.im.is_finite() & y.re.is_finite() & y.im.is_finite();
    !finite | (x.re == 0.0) & (x.im == 0.0) | (y.im == 0.0) & ((y.re.abs() == 1.0) | (y.re == 0.5))
}

/// Whether a power is a product.
#[inline(always)]
fn is_integer(y: C) -> bool {
    (y.im == 0.0) & (y.re.abs() <= complex::LARGEST_INTEGER as f32) & (y.re == y.re.trunc())
}

/// Whether a power is within the range of an f64, and its angle one that `f32_functions` takes.
#[inline(always)]
fn is_plain(logarithm: f64, angle: f64) -> bool {
    (logarithm <= 700.0) & (angle.abs() <= f64::from(f32_functions::SMALL_ANGLE))
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

#[inline(always)]
fn chunk(x: &[Bytes], y: &[Bytes], out: &mut [Bytes]) {
    let n = out.len();
    let (mut re, mut im) = ([0.0; CHUNK], [0.0; CHUNK]);
    let (re, im) = (&mut re[..n], &mut im[..n]);
    let (mut any_product, mut all_products, mut greatest) = (false, true, 0_f32);
    for &y in y {
        let y = C::load(y);
        any_product |= is_integer(y);
        all_products &= is_integer(y);
        greatest = greatest.max(if is_integer(y) { y.re.abs() } else { 0.0 });
    }
    if !all_products {
        polar(x, y, re, im);
    }
    if any_product {
        products(x, y, re, im, u32::BITS - (greatest as u32).leading_zeros());
    }
    let mut plain = true;
    for (((out, &re), &im), (&x, &y)) in out.iter_mut().zip(&*re).zip(&*im).zip(x.iter().zip(y)) {
        plain &= !re.is_nan() & !is_special(C::load(x), C::load(y));
        *out = Complex::new(re as f32, im as f32).store();
    }
    if !plain {
        for ((out, &re), (&x, &y)) in out.iter_mut().zip(&*re).zip(x.iter().zip(y)) {
            let (x, y) = (C::load(x), C::load(y));
            if re.is_nan() | is_special(x, y) {
                *out = complex::pow_single(x, y).store();
            }
        }
    }
}

/// `e^(y log x)`; a real part of NaN where that leaves what is plain. In steps, since a processor
/// overlaps few passes of a long loop.
#[inline(always)]
fn polar(x: &[Bytes], y: &[Bytes], re: &mut [f64], im: &mut [f64]) {
    let (logarithms, angles) = (re, im);
    for ((logarithm, angle), &x) in logarithms.iter_mut().zip(&mut *angles).zip(x) {
        let Complex { re, im } = C::load(x);
        let (re, im) = (f64::from(re), f64::from(im));
        *logarithm = 0.5 * f32_functions::log_regular::<Separate>(re * re + im * im);
        *angle = f32_functions::atan2(im, re);
    }
    // Now those of the power.
    for ((logarithm, angle), &y) in logarithms.iter_mut().zip(&mut *angles).zip(y) {
        let y = C::load(y);
        let (re, im) = (f64::from(y.re), f64::from(y.im));
        (*logarithm, *angle) = (re * *logarithm - im * *angle, re * *angle + im * *logarithm);
    }
    for (re, im) in logarithms.iter_mut().zip(angles) {
        let (logarithm, angle) = (*re, *im);
        let magnitude = f32_functions::exp_wide::<Separate>(logarithm);
        let plain = is_plain(logarithm, angle);
        *re = if plain { magnitude * f32_functions::cos::<Separate>(angle) } else { f64::NAN };
        *im = magnitude * f32_functions::sin::<Separate>(angle);
    }
}

/// Where the exponent is an integer of so many bits, the power by repeated squaring; a real part of
/// NaN where that may leave the range of an f64.
#[inline(always)]
fn products(x: &[Bytes], y: &[Bytes], re: &mut [f64], im: &mut [f64], bits: u32) {
    /// Whose inverse is ordinary too.
    const ORDINARY: std::ops::RangeInclusive<f64> = 1e-300..=1e300;
    type Wide = Complex<f64>;
    let mut squares = [Wide::ZERO; CHUNK];
    let mut powers = [Wide::ONE; CHUNK];
    let (squares, powers) = (&mut squares[..x.len()], &mut powers[..x.len()]);
    for (square, &x) in squares.iter_mut().zip(x) {
        let x = C::load(x);
        *square = Complex::new(f64::from(x.re), f64::from(x.im));
    }
    for bit in 0..bits {
        for ((square, power), &y) in squares.iter_mut().zip(&mut *powers).zip(y) {
            let factor = truncate_f32(C::load(y).re.abs()) >> bit & 1 == 1;
            let product = *power * *square;
            power.re = if factor { product.re } else { power.re };
            power.im = if factor { product.im } else { power.im };
            *square = *square * *square;
        }
    }
    for ((re, im), (power, &y)) in re.iter_mut().zip(im).zip(powers.iter().zip(y)) {
        let y = C::load(y);
        let norm = power.re * power.re + power.im * power.im;
        let inverse = y.re < 0.0;
        let (above, below) = if inverse { (Complex::new(power.re, -power.im), norm) } else { (*power, 1.0) };
        let value = if ORDINARY.contains(&norm) { above.re / below } else { f64::NAN };
        *re = if is_integer(y) { value } else { *re };
        *im = if is_integer(y) { above.im / below } else { *im };
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as kernels are")]
pub(in crate::ops) fn pow(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(Loop { out, operands });
    Ok(())
}
