//! Elementwise operations on three tensors: `select` and `clip`.

use crate::cost::{CLIP_COST, Cost, SELECTED_BYTE_COST};
use crate::dtype::Lane;
use crate::exec::convert::Compute;
use crate::exec::elementwise::{Kernel, Operand, Plan};
use crate::exec::simd::{Vectorized, dispatch as vectorize};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, Fault, dispatch};

/// The plan of `select` for a result of type `out`.
#[must_use]
pub fn select_plan(out: DType, [predicate, on_true, on_false]: [DType; 3]) -> Plan {
    let compute = Compute::As(out);
    let kernel = dispatch!(width out.width(), N => tile::<Choose<N>> as Kernel);
    // The kernel takes any byte but zero as true.
    let is_byte = matches!(predicate, DType::U8 | DType::S8);
    let truth = if is_byte { None } else { Compute::Truth.load(predicate) };
    Plan {
        kernel,
        loads: [truth, compute.load(on_true), compute.load(on_false)],
        store: None,
        width: out.width(),
        narrowing: None,
        cost: SELECTED_BYTE_COST * out.width() as Cost,
    }
}

/// `Nx.select/3`: elements of `on_true` where `predicate` is not zero, elements of `on_false`
/// elsewhere, cast to the type of `out`.
///
/// # Errors
///
/// `Error::Shape` if a shape can't be broadcast to the shape of `out`.
pub fn select(
    out: Output<'_>,
    predicate: &Tensor<'_>,
    on_true: &Tensor<'_>,
    on_false: &Tensor<'_>,
) -> Result<(), Error> {
    let tensors = [predicate, on_true, on_false];
    select_plan(out.dtype, tensors.map(Tensor::dtype)).run("select", out, &tensors)
}

/// The plan of `clip` for a result of type `out`: elements and bounds are compared without
/// rounding, then cast.
///
/// # Errors
///
/// `Error::UnsupportedType` for complex numbers, and if a float would become an integer.
pub fn clip_plan(out: DType, dtypes: [DType; 3]) -> Result<Plan, Error> {
    let unsupported = || Error::UnsupportedType { op: "clip", dtypes: dtypes.to_vec() };
    let integers = dtypes.iter().all(|d| d.is_integer());
    let compute = match out.storage() {
        _ if out.is_complex() || dtypes.iter().any(|d| d.is_complex()) => return Err(unsupported()),
        storage if storage.is_integer() && dtypes.iter().all(|d| d.embeds_in(storage)) => {
            Compute::As(storage)
        }
        storage if storage.is_integer() && integers => Compute::Wide,
        DType::F32 if dtypes.iter().all(|d| d.precision() <= 24) => Compute::As(DType::F32),
        _ => Compute::As(DType::F64),
    };
    let kernel: Kernel = match compute {
        Compute::Wide => tile::<Clip<i128>>,
        Compute::As(DType::F32) => tile::<Clip<f32>>,
        Compute::As(DType::F64) => tile::<Clip<f64>>,
        Compute::As(dtype) => {
            dispatch!(integer dtype, T => tile::<Clip<T>> as Kernel, else => return Err(unsupported()))
        }
        _ => return Err(unsupported()),
    };
    let loads = dtypes.map(|dtype| compute.load(dtype));
    Ok(Plan {
        kernel,
        loads,
        store: compute.store(out),
        width: out.width(),
        narrowing: None,
        cost: CLIP_COST,
    })
}

/// `Nx.clip/3`: at least `min`, at most `max`; NaN stays NaN.
///
/// # Errors
///
/// The errors of [`clip_plan`], and `Error::Shape` if the bounds can't be broadcast to the tensor.
pub fn clip(out: Output<'_>, tensor: &Tensor<'_>, min: &Tensor<'_>, max: &Tensor<'_>) -> Result<(), Error> {
    let tensors = [tensor, min, max];
    clip_plan(out.dtype, tensors.map(Tensor::dtype))?.run("clip", out, &tensors)
}

/// An operation on three lanes.
trait Ternary: 'static {
    type A: Lane;
    type B: Lane;
    fn apply(a: Self::A, b: Self::B, c: Self::B) -> Self::B;
}

/// The choice between elements of `N` bytes by a truth value.
struct Choose<const N: usize>;

/// An element of `N` bytes that is only moved.
#[derive(Clone, Copy)]
struct Opaque<const N: usize>([u8; N]);

impl<const N: usize> Lane for Opaque<N> {
    type Bytes = [u8; N];

    #[inline(always)]
    fn load(bytes: Self::Bytes) -> Self {
        Opaque(bytes)
    }
    #[inline(always)]
    fn store(self) -> Self::Bytes {
        self.0
    }
    #[inline(always)]
    fn view(bytes: &[u8]) -> &[Self::Bytes] {
        bytes.as_chunks::<N>().0
    }
    #[inline(always)]
    fn view_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
        bytes.as_chunks_mut::<N>().0
    }
}

impl<const N: usize> Ternary for Choose<N> {
    type A = u8;
    type B = Opaque<N>;
    #[inline(always)]
    fn apply(a: u8, b: Opaque<N>, c: Opaque<N>) -> Opaque<N> {
        if a == 0 { c } else { b }
    }
}

struct Clip<T>(std::marker::PhantomData<T>);

macro_rules! clip {
    ($x:ident, $min:ident, $max:ident => $body:expr; $($t:ty),*) => {$(
        impl Ternary for Clip<$t> {
            type A = $t;
            type B = $t;
            #[inline(always)]
            fn apply($x: $t, $min: $t, $max: $t) -> $t { $body }
        }
    )*};
}
clip!(x, min, max => x.max(min).min(max); u8, u16, u32, u64, i8, i16, i32, i64, i128);
clip!(x, min, max => {
    // Between equal zeros, the bound is chosen.
    let raised = if x > min || x.is_nan() { x } else { min };
    if raised < max || raised.is_nan() { raised } else { max }
}; f32, f64);

struct TernaryLoop<'a, 'b, F> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
    op: std::marker::PhantomData<F>,
}

impl<F: Ternary> Vectorized for TernaryLoop<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let out = F::B::view_mut(self.out);
        let [a, b, c] = self.operands else { unreachable!("three operands") };
        // A scalar returns its element for every index.
        macro_rules! bind {
            ($T:ty, $operand:expr, $get:ident => $body:expr) => {
                match $operand {
                    Operand::Slice(bytes) => {
                        let elements = &<$T>::view(bytes)[..out.len()];
                        let $get = |i: usize| <$T>::load(elements[i]);
                        $body
                    }
                    Operand::Scalar(bytes) => {
                        let element = <$T>::load(<$T>::view(bytes)[0]);
                        let $get = |_: usize| element;
                        $body
                    }
                }
            };
        }
        bind!(F::A, a, a => bind!(F::B, b, b => bind!(F::B, c, c => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = F::apply(a(i), b(i), c(i)).store();
            }
        })));
    }
}

fn tile<F: Ternary>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(TernaryLoop::<F> { out, operands, op: std::marker::PhantomData });
    Ok(())
}
