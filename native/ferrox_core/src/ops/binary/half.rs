//! Operations on two tensors of f16, or two of bf16.
//!
//! Problem: to bring tiles of both to f32, and the result back, takes several times what
//! the operation does. Technique: elements are widened, computed and rounded in registers;
//! those of bf16 by a loop that the compiler makes vectors of where it makes good ones, those of
//! f16 by the instructions that processors have for it.

use crate::dtype::Lane;
use crate::dtype::minifloat::BF16;
use crate::exec::elementwise::{Kernel, Operand};
use crate::exec::simd::{Level, level};
use crate::ops::binary::{Add, Binary, BinaryOp, Divide, Max, Min, Multiply, Subtract};
use crate::ops::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use crate::{DType, Fault};

#[cfg(target_arch = "x86_64")]
use self::wide::{bf16_v3, f16_v3, f16_v4};

/// Computes halves from halves, or truth values; `None` where f32 is as good.
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
        // Of a wider set, the compiler makes as good use.
        #[cfg(target_arch = "x86_64")]
        (DType::BF16, Level::V3) => kernels!(bf16_v3),
        (DType::BF16, _) => kernels!(rounded),
        _ => None,
    }
}

fn rounded<F: Binary<f32>>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault>
where
    F::Out: Round,
{
    super::tile::<Rounded<F>, BF16>(out, operands)
}

/// An operation on bf16, computed in f32 and rounded once.
struct Rounded<F>(std::marker::PhantomData<F>);

impl<F: Binary<f32>> Binary<BF16> for Rounded<F>
where
    F::Out: Round,
{
    type Out = <F::Out as Round>::Out;

    #[inline(always)]
    fn apply(left: BF16, right: BF16) -> Self::Out {
        F::apply(left.to_f32(), right.to_f32()).round()
    }
}

/// What operations on f32 give.
trait Round {
    type Out: Lane;
    fn round(self) -> Self::Out;
}

impl Round for f32 {
    type Out = BF16;
    #[inline(always)]
    fn round(self) -> BF16 {
        BF16::from_f32(self)
    }
}

impl Round for u8 {
    type Out = u8;
    #[inline(always)]
    fn round(self) -> u8 {
        self
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::*;
    use crate::dtype::minifloat::F16;
    use crate::exec::simd::{Avx2, Avx512, F32VectorOps, HALF_LANES, HalfVector, Vectorized, WidenToF32};

    macro_rules! kernels {
        ($($name:ident, $Set:ty, $Half:ty;)*) => {$(
            pub fn $name<F: OnSingles>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
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

    fn vectors<S: F32VectorOps, H: WidenToF32<S>, F: OnSingles>(out: &mut [u8], operands: &[Operand<'_>]) {
        let [left, right] = operands else { unreachable!("two operands") };
        let (left, right) = (Source::new(left), Source::new(right));
        let Some(set) = S::detect() else { unreachable!("`kernel` has asked for the level") };
        set.run(HalfLoop::<S, H, F> { set, out, left, right, kinds: std::marker::PhantomData });
    }

    /// An operation on vectors of f32.
    pub trait OnSingles: 'static {
        type Out<S: F32VectorOps, H: WidenToF32<S>>: Stored<S, H>;
        fn apply<S: F32VectorOps, H: WidenToF32<S>>(
            set: S,
            left: S::Vector,
            right: S::Vector,
        ) -> Self::Out<S, H>;
    }

    /// What an operation gives: numbers, or truth values.
    pub struct Numbers<S: F32VectorOps>(S::Vector);
    pub struct Truths<S: F32VectorOps>(S::Mask);

    macro_rules! on_singles {
        ($($Op:ident($set:ident, $a:ident, $b:ident): $Out:ident => $body:expr;)*) => {$(
            impl OnSingles for $Op {
                type Out<S: F32VectorOps, H: WidenToF32<S>> = $Out<S>;
                #[inline(always)]
                fn apply<S: F32VectorOps, H: WidenToF32<S>>($set: S, $a: S::Vector, $b: S::Vector) -> $Out<S> {
                    $Out($body)
                }
            }
        )*};
    }
    on_singles! {
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

    /// What an operation on `H` gives, as it is stored.
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

    /// An operand as vectors and what is left; a scalar is one vector, again and again.
    struct Source<'a> {
        vectors: &'a [HalfVector],
        rest: &'a [[u8; 2]],
        scalar: Option<HalfVector>,
    }

    impl<'a> Source<'a> {
        fn new(operand: &Operand<'a>) -> Self {
            match operand {
                Operand::Slice(bytes) => {
                    let (vectors, rest) = F16::view(bytes).as_chunks();
                    Source { vectors, rest, scalar: None }
                }
                Operand::Scalar(bytes) => {
                    Source { vectors: &[], rest: &[], scalar: Some([F16::view(bytes)[0]; HALF_LANES]) }
                }
            }
        }

        /// The vectors, and by how many to go on after one.
        #[inline(always)]
        fn vectors(&self) -> (&[HalfVector], usize) {
            match &self.scalar {
                None => (self.vectors, 1),
                Some(scalar) => (std::slice::from_ref(scalar), 0),
            }
        }

        /// The `count` elements after so many vectors, and zeros.
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

    type Results<S, H, F> = [<<F as OnSingles>::Out<S, H> as Stored<S, H>>::Bytes; HALF_LANES];

    struct HalfLoop<'a, S, H, F> {
        set: S,
        out: &'a mut [u8],
        left: Source<'a>,
        right: Source<'a>,
        kinds: std::marker::PhantomData<(H, F)>,
    }

    /// The results for a vector of each. Not a closure, which would not have the instructions of its
    /// caller.
    #[inline(always)]
    fn one<S: F32VectorOps, H: WidenToF32<S>, F: OnSingles>(
        set: S,
        left: &HalfVector,
        right: &HalfVector,
    ) -> Results<S, H, F> {
        F::apply::<S, H>(set, H::widen(set, left), H::widen(set, right)).store(set)
    }

    impl<S: F32VectorOps, H: WidenToF32<S>, F: OnSingles> Vectorized for HalfLoop<'_, S, H, F> {
        type Output = ();

        #[inline(always)]
        fn run(self) {
            let set = self.set;
            let (vectors, rest) = F::Out::<S, H>::view(self.out).as_chunks_mut::<HALF_LANES>();
            let ((left, left_step), (right, right_step)) = (self.left.vectors(), self.right.vectors());
            for (i, out) in vectors.iter_mut().enumerate() {
                *out = one::<S, H, F>(set, &left[i * left_step], &right[i * right_step]);
            }
            if !rest.is_empty() {
                let [left, right] =
                    [&self.left, &self.right].map(|side| side.rest(vectors.len(), rest.len()));
                rest.copy_from_slice(&one::<S, H, F>(set, &left, &right)[..rest.len()]);
            }
        }
    }
}
