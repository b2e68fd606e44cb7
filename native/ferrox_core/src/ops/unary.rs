//! Elementwise operations on one tensor.
//!
//! Functions of f32 and narrower types are evaluated in f64 by `f32_functions`, in the
//! loops of `f32_loops`, and rounded once. Functions of f64 are those of `f64_functions`, or else the C
//! library's, of some of which `f64_glibc` has loops. Many elements of f16 and bf16 are looked up.

use num_complex::Complex;

use crate::cost::{Cost, MEMORY_BYTE_COST};
use crate::dtype::minifloat::BF16;
use crate::dtype::{Lane, sub_byte};
use crate::exec::convert::Compute;
use crate::exec::elementwise::{self, Kernel, Operand, Plan, Source};
use crate::exec::memory::scratch;
use crate::exec::simd::{Vectorized, dispatch as vectorize, vector_cost};
use crate::ops::math::f16_lookup::LookupTable;
use crate::ops::math::f32_functions::{Arithmetic, SoftwareFma};
use crate::ops::math::{complex, f16_lookup, f32_functions, f32_loops, f64_functions, f64_glibc};
use crate::ops::plan::{self, PlanCache};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, Fault, dispatch};

/// A function of `f32_functions`, maybe with a shorter form of it for plain arguments.
macro_rules! single {
    ($name:ident, log) => {
        single!($name, log, |x| (0.0 < x) & (x < f32::INFINITY), log_regular);
    };
    ($name:ident, tanh) => {
        single!($name, tanh, |x| x.abs() <= f32_functions::TANH_REGULAR_LIMIT, tanh_regular);
    };
    ($name:ident, $function:ident) => {
        single!($name, $function, |x, results, function| f32_loops::map_elements(x, results, function));
    };
    ($name:ident, $function:ident, $plain:expr, $shorter:ident) => {
        single!($name, $function, |x, results, function| {
            f32_loops::map_elements_or_plain(x, results, function, $plain, f32_functions::$shorter::<A>);
        });
    };
    ($name:ident, $function:ident, |$x:ident, $results:ident, $f:ident| $many:expr) => {
        impl f32_loops::Function for $name {
            #[inline(always)]
            fn compute_chunk<A: Arithmetic>(
                $x: &[[u8; 4]],
                _: &[[u8; 4]],
                $results: &mut [f64],
                _: &mut f32_loops::Scratch,
            ) {
                let $f = f32_functions::$function::<A>;
                $many;
            }
            fn compute_element(x: f64, _: f64) -> f64 {
                f32_functions::$function::<SoftwareFma>(x)
            }
        }
    };
}

/// `functions` have an f32 version in `f32_functions`, an f64 and a complex one; those
/// of `real` numbers have no complex one.
macro_rules! unary_ops {
    (
        operations { $($variant:ident, $name:literal;)* }
        functions {
            $($function:ident, $fname:literal, $f32:ident, $ps:literal, |$x:ident| $f64:expr, $ps64:expr, $complex:path;)*
        }
        real { $($real:ident, $rname:literal, $rf32:ident, $rps:literal, |$rx:ident| $rf64:expr, $rps64:expr;)* }
    ) => {
        named! {
            /// A unary operation, named as Nx names it.
            pub enum UnaryOp {
                $($variant, $name;)*
                $($function, $fname;)*
                $($real, $rname;)*
            }
        }

        /// The kernel of a function of floats and its cost; `None` for operations.
        fn function(op: UnaryOp, out: DType, input: DType) -> Option<(Compute, Kernel, Compute, Cost)> {
            $(
                struct $function;
                impl f64_functions::Function for $function {
                    #[inline(always)]
                    fn apply<A: Arithmetic>($x: f64) -> f64 { $f64 }
                }
                impl Unary<Complex<f64>> for $function {
                    type Out = Complex<f64>;
                    #[inline(always)]
                    fn apply(z: Complex<f64>) -> Complex<f64> { $complex(z) }
                }
                single!($function, $f32);
            )*
            $(
                struct $real;
                impl f64_functions::Function for $real {
                    #[inline(always)]
                    fn apply<A: Arithmetic>($rx: f64) -> f64 { $rf64 }
                }
                single!($real, $rf32);
            )*
            let lane = function_lane(out, input);
            let ((kernel, result), cost): ((Kernel, DType), Cost) = match (op, lane) {
                $(
                    (UnaryOp::$real, Compute::Single) => (f32_loops::kernel::<$real>(out), vector_cost($rps)),
                    (UnaryOp::$real, Compute::As(DType::F64)) => ((f64_functions::tile::<$real>, DType::F64), $rps64),
                )*
                $(
                    (UnaryOp::$function, Compute::Single) => (f32_loops::kernel::<$function>(out), vector_cost($ps)),
                    (UnaryOp::$function, Compute::As(DType::C128)) => {
                        ((tile::<$function, Complex<f64>>, DType::C128), 40_000)
                    }
                    (UnaryOp::$function, _) => ((f64_functions::tile::<$function>, DType::F64), $ps64),
                )*
                _ => return None,
            };
            Some((lane, kernel, Compute::As(result), cost))
        }
    };
}

unary_ops! {
    operations {
        Negate, "negate";
        Abs, "abs";
        Sign, "sign";
        Floor, "floor";
        Ceil, "ceil";
        Round, "round";
        IsNan, "is_nan";
        IsInfinity, "is_infinity";
        LogicalNot, "logical_not";
        BitwiseNot, "bitwise_not";
        Conjugate, "conjugate";
        Real, "real";
        Imag, "imag";
        Phase, "phase";
        PopulationCount, "population_count";
        CountLeadingZeros, "count_leading_zeros";
        Sin, "sin";
        Cos, "cos";
        Tan, "tan";
    }
    functions {
        Exp, "exp", exp, 450, |x| x.exp(), CALL, complex::exp;
        Expm1, "expm1", expm1, 500, |x| f64_functions::expm1::<A>(x), vector_cost(1_500), complex::expm1;
        Log, "log", log, 500, |x| x.ln(), CALL, complex::log;
        Log1p, "log1p", log1p, 650, |x| f64_functions::log1p::<A>(x), vector_cost(1_500), complex::log1p;
        Sqrt, "sqrt", sqrt, 100, |x| x.sqrt(), 200, complex::sqrt;
        Rsqrt, "rsqrt", rsqrt, 500, |x| 1.0 / x.sqrt(), 200, complex::rsqrt;
        Tanh, "tanh", tanh, 600, |x| f64_functions::tanh::<A>(x), vector_cost(2_000), complex::tanh;
        Sigmoid, "sigmoid", sigmoid, 550, |x| f64_functions::sigmoid::<A>(x), vector_cost(1_900), complex::sigmoid;
        Cbrt, "cbrt", cbrt, 650, |x| f64_functions::cbrt_by::<A>(x), vector_cost(1_400), complex::cbrt;
        Asin, "asin", asin, 950, |x| x.asin(), CALL, complex::asin;
        Acos, "acos", acos, 900, |x| x.acos(), CALL, complex::acos;
        Atan, "atan", atan, 600, |x| x.atan(), CALL, complex::atan;
        Sinh, "sinh", sinh, 600, |x| f64_functions::sinh::<A>(x), vector_cost(1_900), complex::sinh;
        Cosh, "cosh", cosh, 550, |x| f64_functions::cosh::<A>(x), vector_cost(1_100), complex::cosh;
        Asinh, "asinh", asinh, 1_100, |x| f64_functions::asinh::<A>(x), vector_cost(3_000), complex::asinh;
        Acosh, "acosh", acosh, 900, |x| f64_functions::acosh::<A>(x), vector_cost(2_300), complex::acosh;
        Atanh, "atanh", atanh, 850, |x| f64_functions::atanh::<A>(x), vector_cost(3_200), complex::atanh;
    }
    real {
        Erf, "erf", erf, 600, |x| f64_functions::erf::<A>(x), vector_cost(5_600);
        Erfc, "erfc", erfc, 1_000, |x| f64_functions::erfc::<A>(x), vector_cost(8_000);
        ErfInv, "erf_inv", erf_inv, 1_800, |x| f64_functions::erf_inv::<A>(x), vector_cost(6_000);
    }
}

/// What a call of the C library costs.
const CALL: Cost = 8_000;

/// What a function of floats is evaluated in.
fn function_lane(out: DType, input: DType) -> Compute {
    if out.is_complex() || input.is_complex() {
        Compute::As(DType::C128)
    } else if out.width() <= 4 && input.precision() <= 24 {
        Compute::Single
    } else {
        Compute::As(DType::F64)
    }
}

/// What converting an element before or after an operation costs.
const CONVERSION: Cost = 200;

/// Applies `op` to every element. The shape of `out` is the tensor's.
///
/// # Errors
///
/// `Error::Shape`, `Error::UnsupportedType`, or `Error::TooLarge` if there is no memory for an
/// intermediate result.
pub fn unary(op: UnaryOp, out: Output<'_>, input: &Tensor<'_>) -> Result<(), Error> {
    run_tensor(op, plan(op, out.dtype, input.dtype())?, out, input)
}

/// `unary` by the plan for the types of the result and the operand.
///
/// # Errors
///
/// `Error::Shape` and `Error::Element`, as `unary`.
pub fn run_tensor(op: UnaryOp, plan: &Plan, out: Output<'_>, input: &Tensor<'_>) -> Result<(), Error> {
    let (name, dtype, shape) = (op.name(), out.dtype, out.shape);
    if input.shape() != shape {
        let shapes = vec![input.shape().to_vec(), shape.to_vec()];
        return Err(Error::Shape { op: name, shapes, problem: "differ".into() });
    }
    let source = plan::source(name, input, shape, &[input])?;
    out.write(name, |bytes| run(op, plan, (dtype, shape), bytes, (input.dtype(), source)))
}

/// How `op` on an operand of a type is computed, for a result of type `out`.
///
/// # Errors
///
/// `Error::UnsupportedType` if the operation has no meaning for the types.
#[inline(always)]
pub fn plan(op: UnaryOp, out: DType, input: DType) -> Result<&'static Plan, Error> {
    static PLANS: PlanCache<1, { UnaryOp::ALL.len() }> = PlanCache::new();
    PLANS
        .get(op as usize, out, [input], || find(op, out, input))
        .ok_or_else(|| Error::UnsupportedType { op: op.name(), dtypes: vec![input] })
}

/// Computes a dense result of some type and shape, in whole bytes, by the plan for its type and the
/// operand's.
///
/// # Errors
///
/// `Error::Element` for a fault that the kernel finds.
#[inline(always)]
pub fn run(
    op: UnaryOp,
    plan: &Plan,
    (dtype, shape): (DType, &[usize]),
    out: &mut [u8],
    (input_dtype, input): (DType, Source<'_>),
) -> Result<(), Error> {
    let error = |fault| Error::Element { op: op.name(), dtypes: vec![input_dtype], fault };
    if matches!(dtype, DType::F16 | DType::BF16)
        && dtype == input_dtype
        && is_looked_up(op)
        && let Some(table) = TABLES[op as usize][usize::from(dtype == DType::BF16)]
            .get(out.len() / 2, |arguments| compute(op, plan, dtype, arguments))
    {
        return f16_lookup::run(shape, out, input, table).map_err(error);
    }
    elementwise::run(plan, shape, out, &[input]).map_err(error)
}

/// For each operation, the table of f16 and the table of bf16.
static TABLES: [[LookupTable; 2]; UnaryOp::ALL.len()] =
    [const { [const { LookupTable::new() }; 2] }; UnaryOp::ALL.len()];

/// Whether a function of f16 and bf16 is evaluated in f64, so that a table is faster. `unary_ops!`
/// lists the functions after the other operations, and `Sin` is the first.
fn is_looked_up(op: UnaryOp) -> bool {
    op as usize >= UnaryOp::Sin as usize && op != UnaryOp::Sqrt
}

/// A function of elements in memory.
fn compute(op: UnaryOp, plan: &Plan, dtype: DType, elements: &[u8]) -> Result<Vec<u8>, Error> {
    let shape = [elements.len() / dtype.width()];
    let mut bytes = scratch(op.name(), dtype, &shape, elements.len())?;
    let source = Source::Dense { bytes: elements, width: dtype.width() };
    elementwise::run(plan, &shape, &mut bytes, &[source]).map_err(|fault| Error::Element {
        op: op.name(),
        dtypes: vec![dtype],
        fault,
    })?;
    Ok(bytes)
}

fn find(op: UnaryOp, out: DType, input: DType) -> Option<Plan> {
    let (lane, kernel, result, cost) = kernel(op, out, input)?;
    let (load, store) = (lane.load(input), result.store(out));
    let converts = lane == Compute::Single || store.is_some() || load.is_some();
    let conversion = if converts { CONVERSION } else { 0 };
    let cost = cost + conversion + sub_byte::cost(&[input, out]);
    Some(Plan { kernel, loads: [load, None, None], store, width: out.width(), narrowing: None, cost })
}

/// What the operand is computed as, the kernel, what it computes, and what an
/// element costs; `None` if the operation has no meaning for the types.
fn kernel(op: UnaryOp, out: DType, input: DType) -> Option<(Compute, Kernel, Compute, Cost)> {
    use UnaryOp::*;
    let storage = input.storage();
    // Floats are computed in f32 where that is exact.
    let lane = match storage {
        _ if input.is_integer() || input.is_complex() => storage,
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let same = |kernel: Kernel| {
        Some((Compute::As(lane), kernel, Compute::As(lane), 2 * MEMORY_BYTE_COST * lane.width() as Cost))
    };
    let truth = |kernel: Kernel| Some((Compute::As(lane), kernel, Compute::As(DType::U8), 100));
    macro_rules! float {
        ($F:ident) => {
            match lane {
                DType::F32 => tile::<$F, f32> as Kernel,
                DType::F64 => tile::<$F, f64>,
                _ => return None,
            }
        };
    }
    macro_rules! integer_or_float {
        ($F:ident) => {
            dispatch!(integer lane, T => tile::<$F, T> as Kernel, else => float!($F))
        };
    }
    if input == DType::BF16
        && out == input
        && let Some(kernel) = rounded(op)
    {
        return Some((Compute::As(input), kernel, Compute::As(input), 100));
    }
    match op {
        LogicalNot => Some((Compute::Truth, tile::<TruthNot, u8>, Compute::As(DType::U8), 50)),
        BitwiseNot if input.is_integer() => {
            same(dispatch!(integer lane, T => tile::<BitNot, T> as Kernel, else => return None))
        }
        Negate => same(match lane {
            DType::C64 => tile::<Minus, Complex<f32>>,
            DType::C128 => tile::<Minus, Complex<f64>>,
            _ => integer_or_float!(Minus),
        }),
        Abs if input.is_complex() => {
            Some((Compute::As(DType::C128), tile::<Magnitude, Complex<f64>>, Compute::As(DType::F64), 3_000))
        }
        Abs => same(integer_or_float!(Magnitude)),
        Sign => same(integer_or_float!(SignOf)),
        Floor | Ceil | Round if input.is_integer() => {
            same(dispatch!(integer lane, T => tile::<Same, T> as Kernel, else => return None))
        }
        Floor => same(float!(FloorOf)),
        // A root has twice the digits of f16 and bf16 or is that of f32: no need for more.
        Sqrt if out == input && input.is_float() && storage != DType::F64 => same(tile::<Root, f32>),
        Ceil => same(float!(CeilOf)),
        Round => same(float!(RoundOf)),
        IsNan | IsInfinity if input.is_integer() => {
            truth(dispatch!(integer lane, T => tile::<Never, T> as Kernel, else => return None))
        }
        IsNan => truth(match lane {
            DType::C64 => tile::<NanIn, Complex<f32>>,
            DType::C128 => tile::<NanIn, Complex<f64>>,
            _ => float!(NanIn),
        }),
        IsInfinity => truth(match lane {
            DType::C64 => tile::<InfinityIn, Complex<f32>>,
            DType::C128 => tile::<InfinityIn, Complex<f64>>,
            _ => float!(InfinityIn),
        }),
        Conjugate | Real | Imag | Phase => parts(op, out, input),
        PopulationCount | CountLeadingZeros if input.is_integer() => same(bits(op, input)?),
        BitwiseNot | PopulationCount | CountLeadingZeros => None,
        _ if out.is_integer() => None,
        function => {
            let plain = match op {
                Sin | Cos | Tan => trigonometric(op, out, input)?,
                _ => self::function(function, out, input)?,
            };
            // Asking compares results with the C library's, once, which other types don't need.
            if plain.0 != Compute::As(DType::F64) {
                return Some(plain);
            }
            let library = match function {
                Exp => f64_glibc::exp_kernel(),
                Log => f64_glibc::log_kernel(),
                Sin => f64_glibc::sin_kernel(),
                Cos => f64_glibc::cos_kernel(),
                _ => None,
            };
            match library {
                Some((kernel, cost)) => Some((plain.0, kernel, plain.2, cost)),
                None => Some(plain),
            }
        }
    }
}

/// The operations that f32 computes exactly enough for bf16, in one loop: to bring tiles to f32 and
/// the results back takes as long as a root, and several times what the others do.
fn rounded(op: UnaryOp) -> Option<Kernel> {
    Some(match op {
        UnaryOp::Negate => tile::<Rounded<Minus>, BF16>,
        UnaryOp::Abs => tile::<Rounded<Magnitude>, BF16>,
        UnaryOp::Sign => tile::<Rounded<SignOf>, BF16>,
        UnaryOp::Floor => tile::<Rounded<FloorOf>, BF16>,
        UnaryOp::Ceil => tile::<Rounded<CeilOf>, BF16>,
        UnaryOp::Round => tile::<Rounded<RoundOf>, BF16>,
        UnaryOp::Sqrt => tile::<Rounded<Root>, BF16>,
        _ => return None,
    })
}

struct Rounded<F>(std::marker::PhantomData<F>);

impl<F: Unary<f32, Out = f32>> Unary<BF16> for Rounded<F> {
    type Out = BF16;
    #[inline(always)]
    fn apply(x: BF16) -> BF16 {
        BF16::from_f32(F::apply(x.to_f32()))
    }
}

/// What takes complex numbers apart, of which reals have an imaginary part of zero.
fn parts(op: UnaryOp, out: DType, input: DType) -> Option<(Compute, Kernel, Compute, Cost)> {
    use UnaryOp::*;
    let [real, complex] = [DType::F64, DType::C128].map(Compute::As);
    let (load, kernel, store, cost): (_, Kernel, _, Cost) = match (op, input) {
        (Conjugate, _) if !out.is_complex() => return None,
        (Conjugate, DType::C64) => {
            (Compute::As(input), tile::<Mirror, Complex<f32>>, Compute::As(input), 200)
        }
        (Conjugate, DType::C128) => (complex, tile::<Mirror, Complex<f64>>, complex, 400),
        (Conjugate, _) => (real, tile::<Mirror, f64>, complex, 400),
        _ if !out.is_float() => return None,
        (Real, DType::C64) => {
            (Compute::As(input), tile::<RealPart, Complex<f32>>, Compute::As(DType::F32), 100)
        }
        (Real, DType::C128) => (complex, tile::<RealPart, Complex<f64>>, real, 200),
        (Imag, DType::C64) => {
            (Compute::As(input), tile::<ImaginaryPart, Complex<f32>>, Compute::As(DType::F32), 100)
        }
        (Imag, DType::C128) => (complex, tile::<ImaginaryPart, Complex<f64>>, real, 200),
        (Phase, DType::C64 | DType::C128) => (complex, tile::<Angle, Complex<f64>>, real, 20_000),
        (Phase, _) => (real, tile::<Angle, f64>, real, 200),
        _ => return None,
    };
    Some((load, kernel, store, cost))
}

/// Bits are counted in the width of the type, which for the types that share
/// a byte is less than that of the lane.
fn bits(op: UnaryOp, input: DType) -> Option<Kernel> {
    let zeros = op == UnaryOp::CountLeadingZeros;
    Some(match (input.bits(), zeros) {
        (2, false) => tile::<OnesIn<2>, u8>,
        (4, false) => tile::<OnesIn<4>, u8>,
        (2, true) => tile::<ZerosIn<2>, u8>,
        (4, true) => tile::<ZerosIn<4>, u8>,
        (_, false) => dispatch!(integer input, T => tile::<Ones, T> as Kernel, else => return None),
        (_, true) => dispatch!(integer input, T => tile::<Zeros, T> as Kernel, else => return None),
    })
}

/// Sine, cosine and tangent: large angles need a reduction that does not
/// vectorize, so a chunk with one of them takes the slow loop.
fn trigonometric(op: UnaryOp, out: DType, input: DType) -> Option<(Compute, Kernel, Compute, Cost)> {
    macro_rules! angle {
        ($($name:ident, $small:ident, $any:ident, |$x:ident| $f64:expr, $complex:path;)*) => {{
            $(
                struct $name;
                single!($name, $any, f32_functions::angle_is_small, $small);
                impl Unary<f64> for $name {
                    type Out = f64;
                    #[inline(always)]
                    fn apply($x: f64) -> f64 { $f64 }
                }
                impl Unary<Complex<f64>> for $name {
                    type Out = Complex<f64>;
                    #[inline(always)]
                    fn apply(z: Complex<f64>) -> Complex<f64> { $complex(z) }
                }
            )*
            let lane = function_lane(out, input);
            let ((kernel, result), cost): ((Kernel, DType), Cost) = match (op, lane) {
                _ if out.is_integer() => return None,
                $(
                    (UnaryOp::$name, Compute::Single) => (f32_loops::kernel::<$name>(out), vector_cost(600)),
                    (UnaryOp::$name, Compute::As(DType::C128)) => {
                        ((tile::<$name, Complex<f64>>, DType::C128), 40_000)
                    }
                    (UnaryOp::$name, _) => ((tile::<$name, f64>, DType::F64), 10_000),
                )*
                _ => return None,
            };
            Some((lane, kernel, Compute::As(result), cost))
        }};
    }
    angle! {
        Sin, sin, sin_any, |x| x.sin(), complex::sin;
        Cos, cos, cos_any, |x| x.cos(), complex::cos;
        Tan, tan, tan_any, |x| x.tan(), complex::tan;
    }
}

/// What an operation does to a lane.
trait Unary<T: Lane>: 'static {
    type Out: Lane;
    fn apply(x: T) -> Self::Out;
}

struct UnaryLoop<'a, 'b, F, T> {
    out: &'a mut [u8],
    operand: Operand<'b>,
    op: std::marker::PhantomData<(F, T)>,
}

impl<T: Lane, F: Unary<T>> Vectorized for UnaryLoop<'_, '_, F, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let out = F::Out::view_mut(self.out);
        match self.operand {
            Operand::Slice(input) => {
                for (out, &x) in out.iter_mut().zip(T::view(input)) {
                    *out = F::apply(T::load(x)).store();
                }
            }
            Operand::Scalar(input) => out.fill(F::apply(T::load(T::view(input)[0])).store()),
        }
    }
}

fn tile<F: Unary<T>, T: Lane>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(UnaryLoop::<F, T> { out, operand: operands[0], op: std::marker::PhantomData });
    Ok(())
}

/// `impl Unary` for a list of lanes.
macro_rules! meaning {
    ($name:ident -> $out:ty, $x:ident; $($t:ty),* => $body:expr) => {$(
        impl Unary<$t> for $name {
            type Out = $out;
            #[inline(always)]
            fn apply($x: $t) -> $out { $body }
        }
    )*};
    ($name:ident, $x:ident; $($t:ty),* => $body:expr) => {
        $(meaning!($name -> $t, $x; $t => $body);)*
    };
}

struct Minus;
meaning!(Minus, x; u8, u16, u32, u64, i8, i16, i32, i64 => x.wrapping_neg());
meaning!(Minus, x; f32, f64, Complex<f32>, Complex<f64> => -x);

struct Magnitude;
meaning!(Magnitude, x; u8, u16, u32, u64 => x);
meaning!(Magnitude, x; i8, i16, i32, i64 => x.wrapping_abs());
meaning!(Magnitude, x; f32, f64 => x.abs());
meaning!(Magnitude -> f64, z; Complex<f64> => complex::abs(z));

/// Zeros and NaN are their own sign.
struct SignOf;
meaning!(SignOf, x; u8, u16, u32, u64 => x.min(1));
meaning!(SignOf, x; i8, i16, i32, i64 => x.signum());
meaning!(SignOf, x; f32, f64 => if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x });

struct Root;
meaning!(Root, x; f32 => x.sqrt());

struct FloorOf;
meaning!(FloorOf, x; f32, f64 => x.floor());
struct CeilOf;
meaning!(CeilOf, x; f32, f64 => x.ceil());
/// Halves away from zero. A zero keeps its sign, and what is rounded to zero becomes a positive one,
/// as Nx's documentation shows and Erlang rounds to an integer.
struct RoundOf;
meaning!(RoundOf, x; f32, f64 => x.round() + if x == 0.0 { x } else { 0.0 });

struct Same;
meaning!(Same, x; u8, u16, u32, u64, i8, i16, i32, i64 => x);
struct BitNot;
meaning!(BitNot, x; u8, u16, u32, u64, i8, i16, i32, i64 => !x);
struct TruthNot;
meaning!(TruthNot, x; u8 => x ^ 1);

struct Never;
meaning!(Never -> u8, _x; u8, u16, u32, u64, i8, i16, i32, i64 => 0);
struct NanIn;
meaning!(NanIn -> u8, x; f32, f64 => u8::from(x.is_nan()));
meaning!(NanIn -> u8, z; Complex<f32>, Complex<f64> => u8::from(z.re.is_nan() || z.im.is_nan()));
struct InfinityIn;
meaning!(InfinityIn -> u8, x; f32, f64 => u8::from(x.is_infinite()));
meaning!(InfinityIn -> u8, z; Complex<f32>, Complex<f64> => u8::from(z.re.is_infinite() || z.im.is_infinite()));

/// A finite real becomes a number below the real axis.
struct Mirror;
meaning!(Mirror, z; Complex<f32>, Complex<f64> => z.conj());
meaning!(Mirror -> Complex<f64>, x; f64 => Complex::new(x, if x.is_finite() { -0.0 } else { 0.0 }));
struct RealPart;
meaning!(RealPart -> f32, z; Complex<f32> => z.re);
meaning!(RealPart -> f64, z; Complex<f64> => z.re);
struct ImaginaryPart;
meaning!(ImaginaryPart -> f32, z; Complex<f32> => z.im);
meaning!(ImaginaryPart -> f64, z; Complex<f64> => z.im);
struct Angle;
meaning!(Angle -> f64, z; Complex<f64> => complex::phase(z));
meaning!(Angle, x; f64 => {
    let angle = if x.is_sign_negative() { std::f64::consts::PI } else { 0.0 };
    if x.is_nan() { x } else { angle }
});

struct Ones;
meaning!(Ones, x; u8, u16, u32, u64, i8, i16, i32, i64 => x.count_ones() as _);
struct Zeros;
meaning!(Zeros, x; u8, u16, u32, u64, i8, i16, i32, i64 => x.leading_zeros() as _);

/// Of the low bits alone.
struct OnesIn<const BITS: u32>;
impl<const BITS: u32> Unary<u8> for OnesIn<BITS> {
    type Out = u8;
    #[inline(always)]
    fn apply(x: u8) -> u8 {
        (x << (8 - BITS)).count_ones() as u8
    }
}
struct ZerosIn<const BITS: u32>;
impl<const BITS: u32> Unary<u8> for ZerosIn<BITS> {
    type Out = u8;
    #[inline(always)]
    fn apply(x: u8) -> u8 {
        (x << (8 - BITS)).leading_zeros().min(BITS) as u8
    }
}
