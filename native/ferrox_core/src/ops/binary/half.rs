//! Operations on two tensors of f16, or two of bf16.
//!
//! Problem: converting tiles of both operands to f32, and the result back, takes several times as
//! long as the operation. Technique: elements are widened, computed and rounded in registers. For
//! bf16 this is a plain loop where the compiler vectorizes it well, for f16 it uses the conversion
//! instructions of the processor.

use super::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use crate::dtype::Lane;
use crate::dtype::minifloat::BF16;
use crate::exec::elementwise::{Kernel, Operand};
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::Level;
use crate::exec::simd::level;
use crate::ops::binary::{Add, Binary, BinaryOp, Divide, Max, Min, Multiply, Subtract};
use crate::{DType, Fault};

#[cfg(target_arch = "x86_64")]
use self::simd_kernels::{bf16_v3, f16_v3, f16_v4};

/// Returns a kernel that computes half-precision numbers, or truth values, from half-precision
/// numbers. Returns `None` where computing tiles of f32 is as fast.
pub fn kernel(op: BinaryOp, dtype: DType) -> Option<Kernel> {
    macro_rules! kernels {
        ($kernel:ident) => {
            Some(match op {
                BinaryOp::Add => $kernel::<Add>,
                BinaryOp::Subtract => $kernel::<Subtract>,
                BinaryOp::Multiply => $kernel::<Multiply>,
                BinaryOp::Divide => $kernel::<Divide>,
                BinaryOp::Min => $kernel::<Min>,
                BinaryOp::Max => $kernel::<Max>,
                BinaryOp::Equal => $kernel::<Equal>,
                BinaryOp::NotEqual => $kernel::<NotEqual>,
                BinaryOp::Greater => $kernel::<Greater>,
                BinaryOp::Less => $kernel::<Less>,
                BinaryOp::GreaterEqual => $kernel::<GreaterEqual>,
                BinaryOp::LessEqual => $kernel::<LessEqual>,
                _ => return None,
            })
        };
    }
    match (dtype, level()) {
        #[cfg(target_arch = "x86_64")]
        (DType::F16, Level::V4) => kernels!(f16_v4),
        #[cfg(target_arch = "x86_64")]
        (DType::F16, Level::V3) => kernels!(f16_v3),
        // For AVX-512, the compiler vectorizes the plain loop as well.
        #[cfg(target_arch = "x86_64")]
        (DType::BF16, Level::V3) => kernels!(bf16_v3),
        (DType::BF16, _) => kernels!(bf16_via_f32),
        _ => None,
    }
}

fn bf16_via_f32<F: Binary<f32>>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault>
where
    F::Out: RoundToBf16,
{
    super::tile::<Bf16ViaF32<F>, BF16>(out, operands)
}

/// An operation on bf16 that is computed in f32 and rounded once.
struct Bf16ViaF32<F>(std::marker::PhantomData<F>);

impl<F: Binary<f32>> Binary<BF16> for Bf16ViaF32<F>
where
    F::Out: RoundToBf16,
{
    type Out = <F::Out as RoundToBf16>::Out;

    #[inline(always)]
    fn apply(left: BF16, right: BF16) -> Self::Out {
        F::apply(left.to_f32(), right.to_f32()).round()
    }
}

/// The result of an operation on f32: a number that is rounded to bf16, or a truth value.
trait RoundToBf16 {
    type Out: Lane;
    fn round(self) -> Self::Out;
}

impl RoundToBf16 for f32 {
    type Out = BF16;
    #[inline(always)]
    fn round(self) -> BF16 {
        BF16::from_f32(self)
    }
}

impl RoundToBf16 for u8 {
    type Out = u8;
    #[inline(always)]
    fn round(self) -> u8 {
        self
    }
}

#[cfg(target_arch = "x86_64")]
mod simd_kernels {
    use super::*;
    use crate::dtype::minifloat::F16;
    use crate::exec::simd::{Avx2, Avx512, F32VectorOps, HALF_LANES, HalfVector, Vectorized, WidenToF32};

    macro_rules! kernels {
        ($($name:ident, $Set:ty, $Half:ty;)*) => {$(
            pub fn $name<F: VectorOp>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
                vectors::<$Set, $Half, F>(out, operands);
                Ok(())
            }
        )*};
    }
    kernels! {
        f16_v4, Avx512, F16;
        f16_v3, Avx2, F16;
        bf16_v3, Avx2, BF16;
    }

    fn vectors<S: F32VectorOps, H: WidenToF32<S>, F: VectorOp>(out: &mut [u8], operands: &[Operand<'_>]) {
        let [left, right] = operands else { unreachable!("two operands") };
        let (left, right) = (HalfOperand::new(left), HalfOperand::new(right));
        let Some(set) = S::detect() else { unreachable!("`kernel` has asked for the level") };
        set.run(HalfLoop::<S, H, F> { set, out, left, right, types: std::marker::PhantomData });
    }

    /// An operation on vectors of f32.
    pub trait VectorOp: 'static {
        type Out<S: F32VectorOps, H: WidenToF32<S>>: Stored<S, H>;
        fn apply<S: F32VectorOps, H: WidenToF32<S>>(
            set: S,
            left: S::Vector,
            right: S::Vector,
        ) -> Self::Out<S, H>;
    }

    /// The results of operations: numbers, or truth values.
    pub struct Numbers<S: F32VectorOps>(S::Vector);
    pub struct Truths<S: F32VectorOps>(S::Mask);

    macro_rules! vector_ops {
        ($($Op:ident($set:ident, $a:ident, $b:ident): $Out:ident => $body:expr;)*) => {$(
            impl VectorOp for $Op {
                type Out<S: F32VectorOps, H: WidenToF32<S>> = $Out<S>;
                #[inline(always)]
                fn apply<S: F32VectorOps, H: WidenToF32<S>>($set: S, $a: S::Vector, $b: S::Vector) -> $Out<S> {
                    $Out($body)
                }
            }
        )*};
    }
    vector_ops! {
        Add(set, a, b): Numbers => set.add(a, b);
        Subtract(set, a, b): Numbers => set.subtract(a, b);
        Multiply(set, a, b): Numbers => set.multiply(a, b);
        Divide(set, a, b): Numbers => set.divide(a, b);
        Min(set, a, b): Numbers => set.select(set.or(set.less(b, a), set.not_equal(b, b)), b, a);
        Max(set, a, b): Numbers => set.select(set.or(set.less(a, b), set.not_equal(b, b)), b, a);
        Equal(set, a, b): Truths => set.equal(a, b);
        NotEqual(set, a, b): Truths => set.not_equal(a, b);
        Greater(set, a, b): Truths => set.less(b, a);
        Less(set, a, b): Truths => set.less(a, b);
        GreaterEqual(set, a, b): Truths => set.less_equal(b, a);
        LessEqual(set, a, b): Truths => set.less_equal(a, b);
    }

    /// Stores the result of an operation on `H`.
    pub trait Stored<S: F32VectorOps, H: WidenToF32<S>> {
        type Bytes: Copy;
        fn view(out: &mut [u8]) -> &mut [Self::Bytes];
        fn store(self, set: S) -> [Self::Bytes; HALF_LANES];
    }

    impl<S: F32VectorOps, H: WidenToF32<S>> Stored<S, H> for Numbers<S> {
        type Bytes = [u8; 2];
        #[inline(always)]
        fn view(out: &mut [u8]) -> &mut [[u8; 2]] {
            F16::view_mut(out)
        }
        #[inline(always)]
        fn store(self, set: S) -> HalfVector {
            H::round(set, self.0)
        }
    }

    impl<S: F32VectorOps, H: WidenToF32<S>> Stored<S, H> for Truths<S> {
        type Bytes = u8;
        #[inline(always)]
        fn view(out: &mut [u8]) -> &mut [u8] {
            out
        }
        #[inline(always)]
        fn store(self, set: S) -> [u8; HALF_LANES] {
            H::mask_to_bytes(set, self.0)
        }
    }

    /// An operand as vectors and the elements after the last full vector. A scalar is one vector,
    /// which is used again and again.
    struct HalfOperand<'a> {
        vectors: &'a [HalfVector],
        rest: &'a [[u8; 2]],
        scalar: Option<HalfVector>,
    }

    impl<'a> HalfOperand<'a> {
        fn new(operand: &Operand<'a>) -> Self {
            match operand {
                Operand::Slice(bytes) => {
                    let (vectors, rest) = F16::view(bytes).as_chunks();
                    HalfOperand { vectors, rest, scalar: None }
                }
                Operand::Scalar(bytes) => {
                    HalfOperand { vectors: &[], rest: &[], scalar: Some([F16::view(bytes)[0]; HALF_LANES]) }
                }
            }
        }

        /// Returns the vectors, and the step from one vector to the next.
        #[inline(always)]
        fn vectors(&self) -> (&[HalfVector], usize) {
            match &self.scalar {
                None => (self.vectors, 1),
                Some(scalar) => (std::slice::from_ref(scalar), 0),
            }
        }

        /// Returns the `count` elements after the first `vectors` vectors, followed by zeros.
        #[inline(always)]
        fn rest(&self, vectors: usize, count: usize) -> HalfVector {
            self.scalar.unwrap_or_else(|| {
                let mut last = [[0; 2]; HALF_LANES];
                let from = self.vectors.get(vectors).map_or(self.rest, |vector| &vector[..]);
                last[..count].copy_from_slice(&from[..count]);
                last
            })
        }
    }

    type HalfResults<S, H, F> = [<<F as VectorOp>::Out<S, H> as Stored<S, H>>::Bytes; HALF_LANES];

    struct HalfLoop<'a, S, H, F> {
        set: S,
        out: &'a mut [u8],
        left: HalfOperand<'a>,
        right: HalfOperand<'a>,
        types: std::marker::PhantomData<(H, F)>,
    }

    /// Returns the results for one vector of each operand. This is not a closure, because a closure
    /// is not compiled for the instruction set of its caller.
    #[inline(always)]
    fn compute_vector<S: F32VectorOps, H: WidenToF32<S>, F: VectorOp>(
        set: S,
        left: &HalfVector,
        right: &HalfVector,
    ) -> HalfResults<S, H, F> {
        F::apply::<S, H>(set, H::widen(set, left), H::widen(set, right)).store(set)
    }

    impl<S: F32VectorOps, H: WidenToF32<S>, F: VectorOp> Vectorized for HalfLoop<'_, S, H, F> {
        type Output = ();

        #[inline(always)]
        fn run(self) {
            let set = self.set;
            let (vectors, rest) = F::Out::<S, H>::view(self.out).as_chunks_mut::<HALF_LANES>();
            let ((left, left_step), (right, right_step)) = (self.left.vectors(), self.right.vectors());
            for (i, out) in vectors.iter_mut().enumerate() {
                *out = compute_vector::<S, H, F>(set, &left[i * left_step], &right[i * right_step]);
            }
            if !rest.is_empty() {
                let [left, right] =
                    [&self.left, &self.right].map(|side| side.rest(vectors.len(), rest.len()));
                rest.copy_from_slice(&compute_vector::<S, H, F>(set, &left, &right)[..rest.len()]);
            }
        }
    }
}
