//! Sine and cosine of f64, with the steps of the IBM Accurate Mathematical Library as glibc has had
//! them since 2.28, but for angles from 10^8 on, which `large_angle` reduces. A multiple of `pi / 2` is
//! subtracted from the angle, and the difference is the sum of two numbers. For the nearest multiple of
//! 1/128 to this reduced angle, a table has the sine and the cosine. Short series give the sine and the
//! cosine of the residual angle, and the addition theorem combines them. Small angles have a series
//! without a table.

#![allow(
    clippy::excessive_precision,
    clippy::unreadable_literal,
    reason = "coefficients are written as the shortest digits that give back the same f64"
)]
#![allow(clippy::inline_always, reason = "the loops vectorize only when the whole function is in their body")]

use super::{Chunks, Function, TableRows, large_angle, replace_nans, row};
use crate::dtype::Lane;
use crate::exec::elementwise::KERNEL_CHUNK_ELEMENTS;
use crate::exec::simd::{Aligned, Vectorized};
use crate::ops::math::f32_functions::{Arithmetic, HardwareFma, ROUNDING_SHIFT, SoftwareFma};
use crate::ops::math::f64_functions::circular::HALF_PI;

/// `2 / pi`.
const TWO_OVER_PI: f64 = std::f64::consts::FRAC_2_PI;

/// `pi / 2` as the sum of four numbers. The products of the first ones with the multiples that
/// occur are exact.
const HALF_PI_GLIBC_PARTS: [f64; 4] =
    [1.5707963407039642, -1.3909067564377153e-08, -4.97899623147991e-17, -1.9034889620193266e-25];

/// Limits of the magnitude of an angle. Below the first one, nothing is subtracted. Below the
/// second one, the reduced angle is the distance to `pi / 2`. From the third one on, the reduction is
/// that of `large_angle`, and the loop gives NaN.
const REDUCTION_LIMITS: [f64; 3] = [0.85546875, 2.4262638092041016, 105414336.0];

/// The sine of a reduced angle of smaller magnitude is computed by a series of its own.
const SINE_SERIES_LIMIT: f64 = 0.126;

/// Coefficients of `(sin(x) - x) / x^3` in powers of `x^2`, for magnitudes below
/// `SINE_SERIES_LIMIT`.
const SINE_SERIES: [f64; 5] = [
    -0.16666666666666666,
    0.008333333333332329,
    -0.00019841269834414642,
    2.755729806860771e-06,
    -2.5022014848318398e-08,
];

/// Coefficients of `(sin(x) - x) / x^3` and `(1 - cos(x)) / x^2` in powers of `x^2`, for the
/// residual angle `|x| < 1/256`.
const RESIDUAL_SINE: [f64; 2] = [-0.16666666666666488, 0.008333332142857223];
const RESIDUAL_COSINE: [f64; 3] = [0.5, -0.04166666666666644, 0.001388888740079376];

/// Adding this number rounds to a multiple of 1/128, whose numerator is then in the low bits of the
/// sum.
const ROUND_TO_128THS: f64 = ROUNDING_SHIFT / 128.0;

/// The sign bit of an f64.
const F64_SIGN_BIT: u64 = 1 << 63;

/// A reduced angle as the sum of two numbers, and how the result is computed from it: if bit 0 is
/// set it is the cosine of the angle, otherwise the sine; if `F64_SIGN_BIT` is set, the sign is
/// changed.
type ReducedAngle = (f64, f64, u64);

/// Selects each field by itself, so that a vector loop selects with a mask.
#[inline(always)]
fn select(is: bool, yes: ReducedAngle, no: ReducedAngle) -> ReducedAngle {
    (if is { yes.0 } else { no.0 }, if is { yes.1 } else { no.1 }, if is { yes.2 } else { no.2 })
}

/// Returns `(r, r_low, k)` with `x = (k + 4n) pi / 2 + r + r_low` for some integer `n` and `|r| <= pi
/// / 4`, or NaN if the magnitude of `x` reaches the last of [`REDUCTION_LIMITS`].
#[inline(always)]
pub(super) fn reduce_angle<A: Arithmetic>(x: f64) -> (f64, f64, u64) {
    let q = HALF_PI_GLIBC_PARTS;
    let shifted = A::fma(x, TWO_OVER_PI, ROUNDING_SHIFT);
    let k = -(shifted - ROUNDING_SHIFT);
    let y = A::fma(k, q[1], A::fma(k, q[0], x));
    let upper = A::fma(k, q[2], y);
    let r = A::fma(k, q[3], upper);
    let r_low = A::fma(k, q[2], y - upper) + A::fma(k, q[3], upper - r);
    (if x.abs() < REDUCTION_LIMITS[2] { r } else { f64::NAN }, r_low, shifted.to_bits())
}

/// [`reduce_angle`] for any `x`.
#[inline(always)]
pub(super) fn reduce_any_angle<A: Arithmetic>(x: f64) -> (f64, f64, u64) {
    if x.abs() < REDUCTION_LIMITS[2] { reduce_angle::<A>(x) } else { large_angle::reduce::<A>(x) }
}

/// Returns the reduced angle of the sine or the cosine, given that of [`reduce_angle`].
#[inline(always)]
fn reduce<const COSINE: bool>(x: f64, (r, r_low, k): (f64, f64, u64)) -> ReducedAngle {
    let a = x.abs();
    let quadrant = k.wrapping_add(u64::from(COSINE));
    let far = (r, r_low, quadrant & 1 | (quadrant & 2) << 62);
    // The cosine of the angle is the sine of the difference between pi / 2 and the angle. The sine
    // of the angle is the cosine of the difference.
    let [half_pi, half_pi_low] = HALF_PI;
    let deficit = half_pi - a;
    let near = if COSINE {
        (deficit + half_pi_low, deficit - (deficit + half_pi_low) + half_pi_low, 0)
    } else {
        (deficit, half_pi_low, x.to_bits() & F64_SIGN_BIT | 1)
    };
    let itself = (x, 0.0, u64::from(COSINE));
    select(a < REDUCTION_LIMITS[0], itself, select(a < REDUCTION_LIMITS[1], near, far))
}

/// Returns the sine of `x + rest`, for a small angle.
#[inline(always)]
fn sine_by_series<A: Arithmetic>(x: f64, rest: f64) -> f64 {
    let c = SINE_SERIES;
    let square = x * x;
    let p = A::fma(square, c[4], c[3]);
    let p = A::fma(square, p, c[2]);
    let p = A::fma(square, p, c[1]);
    let p = A::fma(square, p, c[0]);
    x + A::fma(square, A::fma(p, x, -(0.5 * rest)), rest)
}

/// Returns the magnitude of the sine or the cosine of `x + rest`. The row belongs to the nearest
/// multiple of 1/128, and has the value of the sine or the cosine there, and of its derivative.
#[inline(always)]
fn sine_with_row<A: Arithmetic>(
    x: f64,
    rest: f64,
    kind: u64,
    [value, value_low, slope, slope_low]: [f64; 4],
) -> f64 {
    let is_cosine = kind & 1 != 0;
    let a = x.abs();
    let rest = f64::from_bits(rest.to_bits() ^ x.to_bits() & F64_SIGN_BIT);
    let x = a - (a + ROUND_TO_128THS - ROUND_TO_128THS);
    let x = if is_cosine { x + rest } else { x };
    let rest = if is_cosine { 0.0 } else { rest };
    let square = x * x;
    let (cube, p) = (x * square, A::fma(square, RESIDUAL_SINE[1], RESIDUAL_SINE[0]));
    let sine = x + A::fma(cube, p, rest);
    let sine = if is_cosine { A::fma(cube, p, x) } else { sine };
    let p = A::fma(square, A::fma(square, RESIDUAL_COSINE[2], RESIDUAL_COSINE[1]), RESIDUAL_COSINE[0]);
    let deficit = A::fma(x, rest, square * p);
    let low = A::fma(-value, deficit, A::fma(sine, slope_low, value_low));
    value + A::fma(slope, sine, low)
}

/// Returns the index of the table row of a reduced angle, in the low bits.
#[inline(always)]
fn row_index(x: f64, kind: u64) -> u64 {
    (x.abs() + ROUND_TO_128THS).to_bits() % 128 + 128 * (kind & 1)
}

/// Returns the sine or the cosine of a reduced angle, given its row.
#[inline(always)]
fn sine_of_reduced<A: Arithmetic>((x, low, kind): ReducedAngle, row: [f64; 4]) -> f64 {
    let long = sine_with_row::<A>(x, low, kind, row).abs();
    let short = sine_by_series::<A>(x, low).abs();
    let is_cosine = kind & 1 != 0;
    let is_short = !is_cosine & (x.abs() < SINE_SERIES_LIMIT);
    let size = if is_short { short } else { long };
    let sign = if is_cosine { 0 } else { x.to_bits() };
    f64::from_bits(size.to_bits() | (sign ^ kind) & F64_SIGN_BIT)
}

/// Returns the sine or the cosine of a reduced angle.
#[inline(always)]
fn sine_of_any<A: Arithmetic>(angle: ReducedAngle) -> f64 {
    sine_of_reduced::<A>(angle, row(&SINE_TABLE.0, row_index(angle.0, angle.2)))
}

/// The sine and the cosine of one angle, for which it is reduced once.
pub(super) struct SineAndCosine(pub f64);

impl SineAndCosine {
    #[inline(always)]
    fn compute<A: Arithmetic>(self) -> (f64, f64) {
        let SineAndCosine(x) = self;
        if x.abs() < REDUCTION_LIMITS[0] {
            return (sine_of_any::<A>((x, 0.0, 0)), sine_of_any::<A>((x, 0.0, 1)));
        }
        let reduced = reduce_any_angle::<A>(x);
        (sine_of_any::<A>(reduce::<false>(x, reduced)), sine_of_any::<A>(reduce::<true>(x, reduced)))
    }
}

impl Vectorized for SineAndCosine {
    type Output = (f64, f64);

    #[inline(always)]
    fn run(self) -> (f64, f64) {
        self.compute::<HardwareFma>()
    }

    #[inline(always)]
    fn run_unfused(self) -> (f64, f64) {
        self.compute::<SoftwareFma>()
    }
}

/// The sine, or the cosine if `COSINE`.
pub(in crate::ops) struct SineOrCosine<const COSINE: bool>;

/// The sine.
pub(in crate::ops) type Sin = SineOrCosine<false>;

/// The cosine.
pub(in crate::ops) type Cos = SineOrCosine<true>;

impl<const COSINE: bool> Function for SineOrCosine<COSINE> {
    #[inline(always)]
    fn apply<A: Arithmetic>(x: f64, _: f64) -> f64 {
        if x.abs() < REDUCTION_LIMITS[0] {
            return sine_of_any::<A>((x, 0.0, u64::from(COSINE)));
        }
        sine_of_any::<A>(reduce::<COSINE>(x, reduce_any_angle::<A>(x)))
    }

    #[inline(always)]
    fn compute_chunks(chunks: Chunks<'_, Self>) {
        let mut rows = TableRows::new([0.0; 4]);
        let Aligned((high, low, kinds)) = &mut Aligned((
            [0.0; KERNEL_CHUNK_ELEMENTS],
            [0.0; KERNEL_CHUNK_ELEMENTS],
            [0; KERNEL_CHUNK_ELEMENTS],
        ));
        for (x, y, out) in chunks.into_chunks() {
            let n = x.len();
            let (high, low, kinds) = (&mut high[..n], &mut low[..n], &mut kinds[..n]);
            for (((high, low), kind), &x) in high.iter_mut().zip(&mut *low).zip(&mut *kinds).zip(x) {
                let x = f64::load(x);
                (*high, *low, *kind) = reduce::<COSINE>(x, reduce_angle::<HardwareFma>(x));
            }
            let needed = high.iter().zip(&*kinds).map(|(&x, &kind)| row_index(x, kind));
            let rows = rows.look_up(&SINE_TABLE.0, needed);
            let reduced = high.iter().zip(&*low).zip(&*kinds);
            for ((out, ((&x, &low), &kind)), &row) in out.iter_mut().zip(reduced).zip(rows) {
                *out = sine_of_reduced::<HardwareFma>((x, low, kind), row).store();
            }
            replace_nans::<Self>(x, y, out);
        }
    }
}

/// 128 rows for sines, then 128 rows for cosines. A row has the value as the sum of two numbers,
/// and the derivative as the sum of two numbers.
static SINE_TABLE: Aligned<[[f64; 4]; 256]> = {
    let (mut rows, mut i) = ([[0.0; 4]; 256], 0);
    while i < SINE_COSINE_128THS.len() {
        let [sine, sine_low, cosine, cosine_low] = SINE_COSINE_128THS[i];
        let [sine, sine_low] = [f64::from_bits(sine), f64::from_bits(sine_low)];
        let [cosine, cosine_low] = [f64::from_bits(cosine), f64::from_bits(cosine_low)];
        rows[i] = [sine, sine_low, cosine, cosine_low];
        rows[128 + i] = [cosine, cosine_low, -sine, -sine_low];
        i += 1;
    }
    Aligned(rows)
};

/// The bits of the sine of `i / 128` and of its rounding error, and those of the cosine. As in
/// glibc, the last digit of some rounding errors isn't correctly rounded.
#[rustfmt::skip]
const SINE_COSINE_128THS: [[u64; 4]; 110] = [
    [0x0000_0000_0000_0000, 0x0000_0000_0000_0000, 0x3ff0_0000_0000_0000, 0x0000_0000_0000_0000],
    [0x3f7f_ffea_aaae_eeef, 0xbc1e_45e2_ec67_b77c, 0x3fef_ffc0_0015_5552, 0x3c8f_4a01_a019_6dae],
    [0x3f8f_ffaa_aaee_eed5, 0xbc02_ab63_9a9f_0777, 0x3fef_ff00_0155_549f, 0x3c82_8a28_a03a_5ef3],
    [0x3f97_ff70_0103_3255, 0x3bfe_fe2b_5152_7336, 0x3fef_fdc0_06bf_f7e6, 0x3c8a_e6da_e869_77bd],
    [0x3f9f_feaa_aeee_e86f, 0xbc3c_d406_fb22_4ae2, 0x3fef_fc00_1555_27d3, 0xbc83_b544_92d8_9b5b],
    [0x3fa3_feb2_b12d_45d5, 0x3c34_ec54_203d_1c11, 0x3fef_f9c0_3414_a7ba, 0x3c69_91f4_be6c_59bf],
    [0x3fa7_fdc0_1032_fba9, 0xbc45_99bd_f46e_997a, 0x3fef_f700_6bfd_f99f, 0xbc78_b3b5_6064_8d5f],
    [0x3fab_fc6d_7858_6dac, 0x3c18_e4fd_03db_f236, 0x3fef_f3c0_c810_3a31, 0x3c74_856d_bddc_0e66],
    [0x3faf_faaa_eeed_4edb, 0xbc42_d16d_3268_4b69, 0x3fef_f001_5549_f4d3, 0x3c83_2838_7b99_426f],
    [0x3fb1_fc34_3d80_8bef, 0xbc5f_3d32_e6f3_be4f, 0x3fef_ebc2_22a8_ef9f, 0x3c57_9349_34f5_4c77],
    [0x3fb3_facb_12d1_755b, 0xbc59_2191_5299_468c, 0x3fef_e703_4129_ef6f, 0xbc6c_bf43_37c9_6f97],
    [0x3fb5_f911_fd10_b737, 0xbc50_184f_02be_9102, 0x3fef_e1c4_c3c8_73eb, 0xbc35_a9c9_057c_4a02],
    [0x3fb7_f701_0325_50e4, 0x3c3a_fc2d_1800_501a, 0x3fef_dc06_bf7e_6b9b, 0x3c83_1902_b535_f8db],
    [0x3fb9_f490_2d55_d1f9, 0x3c52_696d_7eac_1dc1, 0x3fef_d5c9_4b43_e000, 0xbc62_e768_cb4f_92f9],
    [0x3fbb_f1b7_8568_391d, 0x3c5e_9184_1dea_4cc8, 0x3fef_cf0c_800e_99b1, 0x3c6e_a3d7_86d1_86ac],
    [0x3fbd_ee6f_16c1_cce6, 0xbc45_0f8e_2fb7_1673, 0x3fef_c7d0_78d1_bc88, 0x3c80_75d2_447d_b685],
    [0x3fbf_eaae_ee86_ee36, 0xbc4a_fcb2_bcc6_f03b, 0x3fef_c015_527d_5bd3, 0x3c8b_68f3_5094_efb8],
    [0x3fc0_f337_8ddd_71d1, 0x3c6d_8468_724f_0f9e, 0x3fef_b7db_2bfe_0695, 0x3c82_1dad_f4f6_5ab1],
    [0x3fc1_f0d3_d7af_ceaf, 0xbc66_ef95_0997_69a5, 0x3fef_af22_263c_4bd3, 0xbc55_2ace_133a_2769],
    [0x3fc2_ee28_5e4a_b88f, 0xbc6e_4d0f_05de_e058, 0x3fef_a5ea_641c_36f2, 0x3c40_4da6_ed17_cc7c],
    [0x3fc3_eb31_2c5d_66cb, 0x3c64_7d66_6b66_cb91, 0x3fef_9c34_0a7c_c428, 0x3c8c_5b6b_063b_7462],
    [0x3fc4_e7ea_4dc5_f27b, 0x3c59_49db_2ac0_72fc, 0x3fef_91ff_4037_4d01, 0xbc67_d03f_4d3a_9e4c],
    [0x3fc5_e44f_cfa1_26f3, 0xbc66_f443_063f_89b6, 0x3fef_874c_2e1e_ecf6, 0xbc8c_6514_e133_2b16],
    [0x3fc6_e05d_c05a_4d4c, 0xbbd3_2c5c_8b81_c940, 0x3fef_7c1a_feff_de24, 0xbc78_f55b_c475_40b1],
    [0x3fc7_dc10_2fba_f2b5, 0x3c45_ab50_e23c_97c3, 0x3fef_706b_df9e_ce1c, 0xbc86_98c8_0c36_dcb4],
    [0x3fc8_d763_2efa_a944, 0xbc62_0fa2_62cb_b953, 0x3fef_643e_feb8_2acd, 0x3c76_b00a_c1fe_28ac],
    [0x3fc9_d252_d0ce_c312, 0x3c59_c43d_80b1_137d, 0x3fef_5794_8cff_6797, 0x3c6e_3a0d_3e03_b1d5],
    [0x3fca_ccdb_297a_0765, 0xbc59_883b_57d6_cdeb, 0x3fef_4a6c_bd1e_3a79, 0x3c81_3df0_edae_bb57],
    [0x3fcb_c6f8_4edc_6199, 0x3c69_c1a5_6a7b_0cab, 0x3fef_3cc7_c3b3_d16e, 0xbc62_1a3a_d28a_3494],
    [0x3fcc_c0a6_5882_89a3, 0xbc68_68d0_9bc8_7c6b, 0x3fef_2ea5_d753_ffed, 0x3c8c_c421_5f56_d583],
    [0x3fcd_b9e1_5fb5_a5d0, 0xbc63_2e20_d6cc_6fc2, 0x3fef_2007_3086_649f, 0x3c7b_9404_16c1_984b],
    [0x3fce_b2a5_7f8a_e5a3, 0xbc60_be06_af57_2ceb, 0x3fef_10ec_09c5_873b, 0x3c8d_9072_762c_1283],
    [0x3fcf_aaee_d4f3_1577, 0xbc61_5d88_508e_32b8, 0x3fef_0154_9f7d_eea1, 0x3c8d_3c1e_99e5_cafd],
    [0x3fd0_515c_bf65_155c, 0xbc79_b8c2_9dfd_8ec8, 0x3fee_f141_300d_2f26, 0xbc82_aa1b_08de_d372],
    [0x3fd0_cd00_cef3_6436, 0xbc79_fb0a_0c93_e2b5, 0x3fee_e0b1_fbc0_f11c, 0xbc4b_fd23_80bb_c3b1],
    [0x3fd1_4861_aa94_ddeb, 0xbc6b_e881_b5b6_15a4, 0x3fee_cfa7_44d5_efa1, 0xbc55_6d0a_4af5_41d0],
    [0x3fd1_c37d_64c6_b876, 0x3c74_6076_fe0d_cff5, 0x3fee_be21_4f76_efa8, 0xbc80_2f9f_12ba_543e],
    [0x3fd2_3e52_111a_af36, 0xbc74_f080_334e_ff18, 0x3fee_ac20_61bb_af4f, 0x3c62_c1d5_3e94_658d],
    [0x3fd2_b8dd_c43e_b49f, 0x3c61_5538_99f2_d807, 0x3fee_99a4_c3a7_cd83, 0xbc82_264b_1bc5_3ce8],
    [0x3fd3_331e_9404_9f87, 0x3c7e_0cb6_b40c_302c, 0x3fee_86ae_bf29_a9ed, 0x3c89_397a_fdbb_58a7],
    [0x3fd3_ad12_9769_d3d8, 0x3c00_3d55_0487_8398, 0x3fee_733e_a019_3d40, 0xbc86_428b_3546_ce13],
    [0x3fd4_26b7_e69e_e697, 0xbc7f_09c7_5705_c59f, 0x3fee_5f54_b436_e9d0, 0x3c87_eb0f_d02f_c8bc],
    [0x3fd4_a00c_9b0f_3d20, 0x3c78_23ba_6bb0_8ead, 0x3fee_4af1_4b2a_449c, 0xbc86_8ca0_2e8a_6833],
    [0x3fd5_190e_cf68_a77a, 0x3c7b_3571_55ee_f0f3, 0x3fee_3614_b680_d6a5, 0xbc72_7793_aa01_5237],
    [0x3fd5_91bc_9fa2_f597, 0x3c67_c74b_ac3f_e0cb, 0x3fee_20bf_49ac_d6c1, 0xbc56_60ae_c7ef_636c],
    [0x3fd6_0a14_2907_8775, 0x3c5b_1fd8_0ba8_9133, 0x3fee_0af1_5a03_dbce, 0x3c5f_e8e7_0277_1ae6],
    [0x3fd6_8213_8a38_d7f7, 0xbc7d_8892_0244_4aad, 0x3fed_f4ab_3ebd_875e, 0xbc8e_2d8a_7e67_36c4],
    [0x3fd6_f9b8_e33a_0255, 0x3c74_2bc1_4ee9_da0d, 0x3fed_dded_50f2_28d6, 0xbc6e_80c8_d42b_a2bf],
    [0x3fd7_7102_5576_4214, 0xbc66_ead7_314b_b6ce, 0x3fed_c6b7_eb99_5912, 0x3c54_b364_776d_cd35],
    [0x3fd7_e7ee_03c8_6d4e, 0xbc7b_63bc_dabf_5af2, 0x3fed_af0b_6b88_8e83, 0x3c8a_249e_2b5e_5cea],
    [0x3fd8_5e7a_1282_6949, 0x3c78_a40e_9b5f_ace0, 0x3fed_96e8_2f71_a9dc, 0x3c8f_f61b_d5d2_039d],
    [0x3fd8_d4a4_a774_992f, 0x3c74_4a02_ea76_6326, 0x3fed_7e4e_97e1_7b4a, 0xbc63_b770_352b_ed94],
    [0x3fd9_4a6b_e9f5_46c5, 0xbc76_9ce1_3e68_3f58, 0x3fed_653f_073e_4040, 0xbc87_6236_434b_ec37],
    [0x3fd9_bfce_02e8_0510, 0x3c70_9e39_a320_b0a4, 0x3fed_4bb9_e1c6_19e0, 0x3c8f_34bb_7785_8f61],
    [0x3fda_34c9_1cc5_0cca, 0xbc5a_310e_3b50_cecd, 0x3fed_31bf_8d8d_7c06, 0x3c7e_60dd_3089_cbdd],
    [0x3fda_a95b_63a0_9277, 0xbc66_293e_b13c_0381, 0x3fed_1750_727d_94f0, 0x3c80_d52b_1ec1_a48e],
    [0x3fdb_1d83_0532_1617, 0xbc7a_e242_cb99_f519, 0x3fec_fc6c_fa52_ad9f, 0x3c88_b5b5_508f_2a0d],
    [0x3fdb_913e_30db_ac43, 0xbc7e_38ad_2f6c_3ff1, 0x3fec_e115_909a_82e5, 0x3c81_f139_bb31_109a],
    [0x3fdc_048b_17b1_40a3, 0x3c61_9fe6_757e_9fa7, 0x3fec_c54a_a2b2_972e, 0x3c64_ee16_2ba8_3a98],
    [0x3fdc_7767_ec7f_d19e, 0xbc5e_b14d_1a3d_5826, 0x3fec_a90c_9fc6_7d0b, 0xbc64_6a81_485e_3462],
    [0x3fdc_e9d2_e3d4_a51f, 0xbc62_fc8a_12da_e298, 0x3fec_8c5b_f8ce_1a84, 0x3c7a_b3d1_a159_0123],
    [0x3fdd_5bca_3404_7661, 0x3c72_8a44_a75f_c29c, 0x3fec_6f39_208b_e53b, 0xbc87_41db_fbaa_db42],
    [0x3fdd_cd4c_1532_9c9a, 0x3c70_d4c6_e171_fd9a, 0x3fec_51a4_8b8b_175e, 0xbc61_bbb4_3b9a_a880],
    [0x3fde_3e56_c158_2a69, 0xbc50_a482_1099_f88f, 0x3fec_339e_b01d_dd81, 0xbc8c_aaf5_ee82_c5c0],
    [0x3fde_aee8_744b_05f0, 0xbc57_89b4_3c9b_027d, 0x3fec_1528_065b_7d50, 0xbc88_9211_1312_e828],
    [0x3fdf_1eff_6bc4_f97b, 0x3c71_7212_f8a7_525c, 0x3feb_f641_081e_7536, 0x3c8b_7bd7_1628_a9a1],
    [0x3fdf_8e99_e76a_bc97, 0x3c59_d950_af2d_00a3, 0x3feb_d6ea_3102_94f5, 0x3c73_1bbc_c88c_109d],
    [0x3fdf_fdb6_28d2_f57a, 0x3c6f_4a99_2e90_5b6a, 0x3feb_b723_fe63_0f32, 0x3c77_2bd2_452d_0a39],
    [0x3fe0_3629_39c6_9955, 0xbc82_d8cd_7839_7b01, 0x3feb_96ee_ef58_840e, 0x3c54_5a3c_c78f_ade0],
    [0x3fe0_6d36_8694_6e5b, 0x3c83_f5ae_4538_ff1b, 0x3feb_764b_84b7_04c2, 0xbc8f_5848_c21b_389b],
    [0x3fe0_a402_1e9e_1001, 0xbc86_f643_a139_14f6, 0x3feb_553a_410c_104e, 0x3c58_ff79_4702_7a16],
    [0x3fe0_da8b_26b5_672e, 0xbc8a_58de_f0be_e909, 0x3feb_33bb_a89c_8948, 0x3c8e_a6a5_1d1f_6ca9],
    [0x3fe1_10d0_c4b6_9c3b, 0x3c8d_9189_9880_9981, 0x3feb_11d0_4162_a4c6, 0x3c71_dd56_1efb_c0c2],
    [0x3fe1_46d2_1f8b_7f82, 0x3c7b_f953_5e27_39a8, 0x3fea_ef78_930b_d275, 0xbc7f_8362_7974_6f94],
    [0x3fe1_7c8e_5f2e_edb0, 0x3c63_5e57_102e_2488, 0x3fea_ccb5_26f6_9de5, 0x3c88_fb6a_8dd6_b6cc],
    [0x3fe1_b204_acb0_2fdd, 0xbc5f_190c_70cb_b5ff, 0x3fea_a986_8830_8913, 0xbc0b_83d6_07cd_5070],
    [0x3fe1_e734_3236_574c, 0x3c72_2a3f_a4f4_1d5a, 0x3fea_85ed_4373_e02d, 0x3c69_be06_385e_c792],
    [0x3fe2_1c1c_1b03_94cf, 0x3c5e_5b32_4b23_aa31, 0x3fea_61e9_e725_86af, 0x3c85_8330_e2fd_453f],
    [0x3fe2_50bb_9378_8bbb, 0x3c7e_a3d0_2457_bcce, 0x3fea_3d7d_0352_bdcf, 0xbc86_8dba_eca1_9669],
    [0x3fe2_8511_c917_a067, 0xbc80_1df1_d9a1_6b70, 0x3fea_18a7_29ae_e445, 0x3c39_5e25_736c_0358],
    [0x3fe2_b91d_ea88_421e, 0xbc8f_a371_db21_6ab0, 0x3fe9_f368_ed91_2f85, 0xbc81_d200_c579_1606],
    [0x3fe2_ecdf_279a_3082, 0x3c8d_3557_e0e7_e37e, 0x3fe9_cdc2_e3f2_5e5c, 0x3c83_f991_1299_3f62],
    [0x3fe3_2054_b148_bc4f, 0x3c8f_6b42_095a_135b, 0x3fe9_a7b5_a36a_6514, 0x3c87_22cf_cc9f_a7a9],
    [0x3fe3_537d_b9be_0367, 0x3c6b_327e_7af0_40f0, 0x3fe9_8141_c42e_1310, 0x3c8d_1ff8_0488_f08d],
    [0x3fe3_8659_7456_282b, 0xbc71_0fad_a93b_07a8, 0x3fe9_5a67_e00c_b1fd, 0xbc80_befd_a21f_862d],
    [0x3fe3_b8e7_15a2_840a, 0xbc79_7653_a7d2_f07b, 0x3fe9_3328_926d_9e92, 0xbc8b_b770_0360_0cda],
    [0x3fe3_eb25_d36c_d53a, 0xbc5b_e570_e157_0fc0, 0x3fe9_0b84_784d_daf7, 0xbc70_feb1_0ab9_3b87],
    [0x3fe4_1d14_e4ba_6790, 0x3c84_608f_d287_ecf5, 0x3fe8_e37c_303d_9ad1, 0xbc64_63a4_b53d_4bf8],
    [0x3fe4_4eb3_81cf_386b, 0xbc83_ed6c_1e6a_5505, 0x3fe8_bb10_5a5d_c900, 0x3c88_63e0_3e94_74c1],
    [0x3fe4_8000_e431_159f, 0xbc8b_194a_7463_ed10, 0x3fe8_9241_985d_871f, 0x3c8c_48d9_c413_ed84],
    [0x3fe4_b0fc_46aa_b761, 0x3c20_da05_738c_c59a, 0x3fe8_6910_8d77_a6c6, 0x3c73_38ff_e2bf_e9dd],
    [0x3fe4_e1a4_e54e_d51b, 0xbc8a_492f_89b7_c76a, 0x3fe8_3f7d_de70_1ca0, 0xbc41_52cf_609b_c6e8],
    [0x3fe5_11f9_fd7b_351c, 0xbc85_c0e8_61c4_8831, 0x3fe8_158a_3191_6d5d, 0xbc6d_e8b9_0b82_28de],
    [0x3fe5_41fa_cddb_b724, 0x3c72_32c2_8520_d391, 0x3fe7_eb36_2eaa_1488, 0x3c5a_1d65_a4a5_959f],
    [0x3fe5_71a6_966d_59b3, 0x3c5c_843b_4d0f_b198, 0x3fe7_c082_7f09_e54f, 0xbc6c_73d6_d72a_ee68],
    [0x3fe5_a0fc_9881_3a12, 0xbc8d_82e2_b7d4_227b, 0x3fe7_956f_cd7f_6543, 0xbc8a_b276_e9d4_5ae4],
    [0x3fe5_cffc_16bf_8f0d, 0x3c89_6cb3_70eb_578a, 0x3fe7_69fe_c655_211f, 0xbc68_27d5_cf8c_68c5],
    [0x3fe5_fea4_552a_9e57, 0x3c80_b6ce_f7ee_20b7, 0x3fe7_3e30_174e_fba1, 0xbc65_d3ae_3d94_ad5f],
    [0x3fe6_2cf4_9921_ac79, 0xbc8e_dd98_55b6_241a, 0x3fe7_1204_6fa7_7678, 0x3c84_25b0_a502_9c81],
    [0x3fe6_5aec_2963_e755, 0x3c81_26f9_6b71_053c, 0x3fe6_e57c_800c_f55e, 0x3c86_0286_dedb_d0a6],
    [0x3fe6_888a_4e13_4b2f, 0xbc86_b7d3_7644_d5e6, 0x3fe6_b898_fa9e_fb5d, 0x3c71_5ac7_86cc_f4b2],
    [0x3fe6_b5ce_50b7_821a, 0xbc65_d515_8f70_2e0f, 0x3fe6_8b5a_92eb_6253, 0xbc89_a91a_d985_f89c],
    [0x3fe6_e2b7_7c40_bde1, 0xbc70_e729_857f_ad53, 0x3fe6_5dc1_fdeb_8cba, 0xbc59_7c1b_4733_7c77],
    [0x3fe7_0f45_1d0a_8c40, 0x3c69_7ede_3885_770d, 0x3fe6_2fcf_f201_91c7, 0x3c6d_9143_8957_56ef],
    [0x3fe7_3b76_80de_a578, 0xbc72_2483_06dc_12a2, 0x3fe6_0185_26f5_63df, 0x3c84_6ca5_e0e4_32d0],
    [0x3fe7_674a_f6f7_b524, 0x3c7e_9d3f_94ac_84a8, 0x3fe5_d2e2_55f1_f17a, 0x3c80_3141_04c8_892b],
    [0x3fe7_92c1_d004_1d52, 0xbc8a_bf05_eeb3_54eb, 0x3fe5_a3e8_3982_4077, 0x3c84_28aa_2759_be62],
    [0x3fe7_bdda_5e28_b3c2, 0x3c4a_d119_7ccd_0393, 0x3fe5_7497_8d8e_83f2, 0x3c8f_4714_af28_2d23],
    [0x3fe7_e893_f503_7959, 0x3c80_eefb_aa65_0c4c, 0x3fe5_44f1_0f59_2ca5, 0xbc8e_7ae8_e6c7_a62f],
    [0x3fe8_12ed_e9ae_4ba4, 0xbc87_830a_df40_2dda, 0x3fe5_14f5_7d7b_f3da, 0x3c74_7a10_8073_c259],
];
