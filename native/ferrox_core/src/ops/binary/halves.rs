//! Operations on two tensors of f16, or two of bf16.
//!
//! Problem: to bring tiles of both to f32, and the result back, takes several times what
//! the operation does. Technique: elements are widened, computed and rounded in registers;
//! those of bf16 by a loop that the compiler makes vectors of, those of f16 by the
//! instructions that processors have for it.

use super::{Add, Binary, BinaryOp, Divide, Max, Min, Multiply, Subtract};
use crate::dtype::Lane;
use crate::exec::elementwise::{Kernel, Operand};
use crate::narrow::BF16;
use crate::ops::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use crate::{DType, Fault};

#[cfg(target_arch = "x86_64")]
use self::wide::vectors;

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
    match dtype {
        DType::BF16 => kernels!(rounded),
        #[cfg(target_arch = "x86_64")]
        DType::F16 if wide::available() => kernels!(vectors),
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
    use crate::exec::simd::{Avx512, HALVES, Halves, InstructionSet, Singles, Vectorized};
    use crate::narrow::F16;

    /// Whether this processor has `vectors`.
    pub fn available() -> bool {
        Avx512::detect().is_some()
    }

    pub fn vectors<F: OnSingles>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
        let [left, right] = operands else { unreachable!("two operands") };
        let (left, right) = (Source::new(left), Source::new(right));
        let Some(wide) = Avx512::detect() else { unreachable!("`available` has found one") };
        wide.run(HalfLoop::<F> { wide, out, left, right, op: std::marker::PhantomData });
        Ok(())
    }

    /// An operation on vectors of f32.
    pub trait OnSingles: 'static {
        type Out: Stored;
        fn apply(wide: Avx512, left: Singles, right: Singles) -> Self::Out;
    }

    macro_rules! on_singles {
        ($($Op:ident($wide:ident, $a:ident, $b:ident): $Out:ty => $body:expr;)*) => {$(
            impl OnSingles for $Op {
                type Out = $Out;
                #[inline(always)]
                fn apply($wide: Avx512, $a: Singles, $b: Singles) -> $Out {
                    $body
                }
            }
        )*};
    }
    on_singles! {
        Add(wide, a, b): Singles => wide.add(a, b);
        Subtract(wide, a, b): Singles => wide.subtract(a, b);
        Multiply(wide, a, b): Singles => wide.multiply(a, b);
        Divide(wide, a, b): Singles => wide.divide(a, b);
        Min(wide, a, b): Singles => wide.choose(wide.less(b, a) | !wide.equal(b, b), b, a);
        Max(wide, a, b): Singles => wide.choose(wide.less(a, b) | !wide.equal(b, b), b, a);
        Equal(wide, a, b): u16 => wide.equal(a, b);
        NotEqual(wide, a, b): u16 => !wide.equal(a, b);
        Greater(wide, a, b): u16 => wide.less(b, a);
        Less(wide, a, b): u16 => wide.less(a, b);
        GreaterEqual(wide, a, b): u16 => wide.less_equal(b, a);
        LessEqual(wide, a, b): u16 => wide.less_equal(a, b);
    }

    /// What an operation gives, as it is stored.
    pub trait Stored {
        type Bytes: Copy;
        fn view(out: &mut [u8]) -> &mut [Self::Bytes];
        fn store(self, wide: Avx512) -> [Self::Bytes; HALVES];
    }

    impl Stored for Singles {
        type Bytes = [u8; 2];
        #[inline(always)]
        fn view(out: &mut [u8]) -> &mut [[u8; 2]] {
            F16::view_mut(out)
        }
        #[inline(always)]
        fn store(self, wide: Avx512) -> Halves {
            wide.round(self)
        }
    }

    /// A bit for each.
    impl Stored for u16 {
        type Bytes = u8;
        #[inline(always)]
        fn view(out: &mut [u8]) -> &mut [u8] {
            out
        }
        #[inline(always)]
        fn store(self, wide: Avx512) -> [u8; HALVES] {
            wide.truths(self)
        }
    }

    /// An operand as vectors and what is left; a scalar is one vector, again and again.
    struct Source<'a> {
        vectors: &'a [Halves],
        rest: &'a [[u8; 2]],
        scalar: Option<Halves>,
    }

    impl<'a> Source<'a> {
        fn new(operand: &Operand<'a>) -> Self {
            match operand {
                Operand::Slice(bytes) => {
                    let (vectors, rest) = F16::view(bytes).as_chunks();
                    Source { vectors, rest, scalar: None }
                }
                Operand::Scalar(bytes) => {
                    Source { vectors: &[], rest: &[], scalar: Some([F16::view(bytes)[0]; HALVES]) }
                }
            }
        }

        /// The vectors, and by how many to go on after one.
        #[inline(always)]
        fn vectors(&self) -> (&[Halves], usize) {
            match &self.scalar {
                None => (self.vectors, 1),
                Some(scalar) => (std::slice::from_ref(scalar), 0),
            }
        }

        /// The `count` elements after so many vectors, and zeros.
        #[inline(always)]
        fn rest(&self, vectors: usize, count: usize) -> Halves {
            self.scalar.unwrap_or_else(|| {
                let mut last = [[0; 2]; HALVES];
                let from = self.vectors.get(vectors).map_or(self.rest, |vector| &vector[..]);
                last[..count].copy_from_slice(&from[..count]);
                last
            })
        }
    }

    struct HalfLoop<'a, F> {
        wide: Avx512,
        out: &'a mut [u8],
        left: Source<'a>,
        right: Source<'a>,
        op: std::marker::PhantomData<F>,
    }

    impl<F: OnSingles> Vectorized for HalfLoop<'_, F> {
        type Output = ();

        #[inline(always)]
        fn run(self) {
            let wide = self.wide;
            let one = |left: &Halves, right: &Halves| {
                F::apply(wide, wide.widen(left), wide.widen(right)).store(wide)
            };
            let (vectors, rest) = F::Out::view(self.out).as_chunks_mut::<HALVES>();
            let ((left, left_step), (right, right_step)) = (self.left.vectors(), self.right.vectors());
            for (i, out) in vectors.iter_mut().enumerate() {
                *out = one(&left[i * left_step], &right[i * right_step]);
            }
            if !rest.is_empty() {
                let [left, right] =
                    [&self.left, &self.right].map(|side| side.rest(vectors.len(), rest.len()));
                rest.copy_from_slice(&one(&left, &right)[..rest.len()]);
            }
        }
    }
}
