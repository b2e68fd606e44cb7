//! Elementwise operations on one tensor.
//!
//! Functions of f32 and narrower types are those of `f32_functions`, evaluated in f64 by the loops
//! of `f32_loops`, and rounded once. Functions of f64 are those of `f64_functions` and `f64_loops`.
//! With `Math::Fast`, some functions of f32 are those of `f32_fast`. Large tensors of f16 and bf16 are
//! mapped by lookup tables.

use num_complex::Complex;

use crate::cost::{
    BF16_UNARY_COST, COMPLEX_ABS_COST, COMPLEX_FUNCTION_COST, Cost, F32_TRIGONOMETRIC_COST, F64_EXP_COST,
    F64_LOG_COST, F64_SINE_COST, LOGICAL_NOT_COST, MEMORY_BYTE_COST, PHASE_COST, UNARY_CONVERSION_COST,
    UNARY_TEST_COST,
};
use crate::dtype::minifloat::BF16;
use crate::dtype::{Lane, sub_byte};
use crate::exec::convert::Compute;
use crate::exec::elementwise::{self, Kernel, Operand, Plan, Source};
use crate::exec::memory::scratch;
use crate::exec::simd::{Vectorized, dispatch as vectorize, vector_cost};
use crate::ops::math::f16_lookup::LookupTable;
use crate::ops::math::f32_functions::Arithmetic;
use crate::ops::math::plain_range::PlainRange;
use crate::ops::math::{
    Math, complex, f16_lookup, f32_fast, f32_functions, f32_loops, f64_functions, f64_loops,
};
use crate::ops::plan::{self, PlanCache};
use crate::ops::scalar::{ScalarKernel, element_of, word_of};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, Fault, dispatch};

/// Implements a function of `f32_functions`, some with a shorter form for arguments in a plain
/// range.
macro_rules! f32_function {
    ($name:ident, log) => {
        f32_function!($name, log, PlainRange::finite_from(f32::from_bits(1)), log_regular);
    };
    ($name:ident, tanh) => {
        f32_function!($name, tanh, PlainRange::up_to(f32_functions::TANH_REGULAR_LIMIT), tanh_regular);
    };
    ($name:ident, $function:ident) => {
        f32_function!($name, $function, |x, results, function| f32_loops::map_elements(x, results, function));
    };
    ($name:ident, $function:ident, $plain:expr, $shorter:ident) => {
        f32_function!($name, $function, |x, results, function| {
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
            #[inline(always)]
            fn compute_element<A: Arithmetic>(x: f64, _: f64) -> f64 {
                f32_functions::$function::<A>(x)
            }
        }
    };
}

/// Declares the unary operations. Rows of `functions` and `real` have the cost of an element in f32
/// by vectors of 64 bytes, and in f64, in picoseconds (`kernels`: exp, log, sin, tanh, erf);
/// functions of `real` have no complex version.
macro_rules! unary_ops {
    (
        operations { $($variant:ident, $name:literal;)* }
        functions {
            $($function:ident, $fname:literal, $f32:ident, $ps:literal, |$x:ident| $f64:expr, $ps64:expr, $complex:path;)*
        }
        real { $($real:ident, $rname:literal, $rf32:ident, $rps:literal, |$rx:ident| $rf64:expr, $rps64:expr;)* }
    ) => {
        named! {
            /// A unary operation, with its name in Nx.
            pub enum UnaryOp {
                $($variant, $name;)*
                $($function, $fname;)*
                $($real, $rname;)*
            }
        }

        /// The functions of floats.
        mod functions {
            use super::*;

            $(
                pub(super) struct $function;
                impl f64_functions::Function for $function {
                    #[inline(always)]
                    fn apply<A: Arithmetic>($x: f64) -> f64 { $f64 }
                }
                impl Unary<Complex<f64>> for $function {
                    type Out = Complex<f64>;
                    #[inline(always)]
                    fn apply(z: Complex<f64>) -> Complex<f64> { $complex(z) }
                }
                f32_function!($function, $f32);
            )*
            $(
                pub(super) struct $real;
                impl f64_functions::Function for $real {
                    #[inline(always)]
                    fn apply<A: Arithmetic>($rx: f64) -> f64 { $rf64 }
                }
                f32_function!($real, $rf32);
            )*
        }

        /// The kernel of a function of floats and its cost, or `None` for other operations.
        fn float_function(op: UnaryOp, out: DType, input: DType) -> Option<(Compute, Kernel, Compute, Cost)> {
            let lane = function_lane(out, input);
            let ((kernel, result), cost): ((Kernel, DType), Cost) = match (op, lane) {
                $(
                    (UnaryOp::$real, Compute::Single) => (f32_loops::kernel::<functions::$real>(out), vector_cost($rps)),
                    (UnaryOp::$real, Compute::As(DType::F64)) => ((f64_functions::tile::<functions::$real>, DType::F64), $rps64),
                )*
                $(
                    (UnaryOp::$function, Compute::Single) => (f32_loops::kernel::<functions::$function>(out), vector_cost($ps)),
                    (UnaryOp::$function, Compute::As(DType::C128)) => {
                        ((tile::<functions::$function, Complex<f64>>, DType::C128), COMPLEX_FUNCTION_COST)
                    }
                    (UnaryOp::$function, _) => ((f64_functions::tile::<functions::$function>, DType::F64), $ps64),
                )*
                _ => return None,
            };
            Some((lane, kernel, Compute::As(result), cost))
        }

        /// The kernel of a function of one element, whose result has the same type.
        fn scalar_function(op: UnaryOp, dtype: DType) -> Option<ScalarKernel> {
            Some(match (op, dtype) {
                $(
                    (UnaryOp::$function, DType::F32) => f32_loops::scalar::<functions::$function>,
                    (UnaryOp::$function, DType::F64) => f64_functions::scalar::<functions::$function>,
                )*
                $(
                    (UnaryOp::$real, DType::F32) => f32_loops::scalar::<functions::$real>,
                    (UnaryOp::$real, DType::F64) => f64_functions::scalar::<functions::$real>,
                )*
                _ => return None,
            })
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
        Exp, "exp", exp, 450, |x| f64_loops::element::<f64_loops::Exp>(x, 0.0), F64_EXP_COST, complex::exp;
        Expm1, "expm1", expm1, 500, |x| f64_functions::expm1::<A>(x), vector_cost(1_500), complex::expm1;
        Log, "log", log, 500, |x| f64_loops::element::<f64_loops::Log>(x, 0.0), F64_LOG_COST, complex::log;
        Log1p, "log1p", log1p, 650, |x| f64_functions::log1p::<A>(x), vector_cost(1_500), complex::log1p;
        Sqrt, "sqrt", sqrt, 100, |x| x.sqrt(), 200, complex::sqrt;
        Rsqrt, "rsqrt", rsqrt, 500, |x| 1.0 / x.sqrt(), 200, complex::rsqrt;
        Tanh, "tanh", tanh, 600, |x| f64_functions::tanh::<A>(x), vector_cost(2_000), complex::tanh;
        Sigmoid, "sigmoid", sigmoid, 550, |x| f64_functions::sigmoid::<A>(x), vector_cost(1_900), complex::sigmoid;
        Cbrt, "cbrt", cbrt, 650, |x| f64_functions::cbrt_by::<A>(x), vector_cost(1_400), complex::cbrt;
        Asin, "asin", asin, 950, |x| f64_functions::asin::<A>(x), vector_cost(2_000), complex::asin;
        Acos, "acos", acos, 900, |x| f64_functions::acos::<A>(x), vector_cost(2_100), complex::acos;
        Atan, "atan", atan, 600, |x| f64_functions::atan::<A>(x), vector_cost(2_200), complex::atan;
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

/// The lane that a function of floats is evaluated in.
fn function_lane(out: DType, input: DType) -> Compute {
    if out.is_complex() || input.is_complex() {
        Compute::As(DType::C128)
    } else if out.width() <= 4 && input.precision() <= 24 {
        Compute::Single
    } else {
        Compute::As(DType::F64)
    }
}

/// Applies `op` to every element. The shape of `out` is the tensor's.
///
/// # Errors
///
/// `Error::Shape`, `Error::UnsupportedType`, or `Error::TooLarge` if there is no memory for an
/// intermediate result.
pub fn unary(op: UnaryOp, out: Output<'_>, input: &Tensor<'_>) -> Result<(), Error> {
    run_tensor(op, plan(op, Math::Exact, out.dtype, input.dtype())?, out, input)
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

/// The plan of `op` on an operand of a type, for a result of type `out`.
///
/// # Errors
///
/// `Error::UnsupportedType` if the operation has no meaning for the types.
#[inline(always)]
pub fn plan(op: UnaryOp, math: Math, out: DType, input: DType) -> Result<&'static Plan, Error> {
    static PLANS: PlanCache<1, { UnaryOp::ALL.len() }> = PlanCache::new();
    static FAST_PLANS: PlanCache<1, { UnaryOp::ALL.len() }> = PlanCache::new();
    if is_fast(op, math, out, input)
        && let Some(plan) = FAST_PLANS.get(op as usize, out, [input], || make_fast_plan(op, input))
    {
        return Ok(plan);
    }
    PLANS
        .get(op as usize, out, [input], || make_plan(op, out, input))
        .ok_or_else(|| Error::UnsupportedType { op: op.name(), dtypes: vec![input] })
}

/// Computes a dense result of some type and shape, in whole bytes, by the plan for its type and the
/// operand's type.
///
/// # Errors
///
/// `Error::Element` if the operation is not defined on an element.
#[inline(always)]
pub fn run(
    op: UnaryOp,
    plan: &Plan,
    (dtype, shape): (DType, &[usize]),
    out: &mut [u8],
    (input_dtype, input): (DType, Source<'_>),
) -> Result<(), Error> {
    let error = |fault| Error::Element { op: op.name(), dtypes: vec![input_dtype], fault };
    if has_table(op, dtype, input_dtype)
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

/// Whether [`run`] looks results up in a table if there are many.
#[inline]
pub fn has_table(op: UnaryOp, dtype: DType, input: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16) && dtype == input && is_looked_up(op)
}

/// Whether a function of f16 and bf16 is evaluated in f64, so that a table is faster. `unary_ops!`
/// lists these functions after the other operations, from `Sin` on.
fn is_looked_up(op: UnaryOp) -> bool {
    op as usize >= UnaryOp::Sin as usize && op != UnaryOp::Sqrt
}

/// Computes a function of elements without a lookup table.
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

fn make_plan(op: UnaryOp, out: DType, input: DType) -> Option<Plan> {
    let (lane, kernel, result, cost) = kernel(op, out, input)?;
    let (load, store) = (lane.load(input), result.store(out));
    let converts = lane == Compute::Single || store.is_some() || load.is_some();
    let conversion = if converts { UNARY_CONVERSION_COST } else { 0 };
    let cost = cost + conversion + sub_byte::cost(&[input, out]);
    Some(Plan { kernel, loads: [load, None, None], store, width: out.width(), narrowing: None, cost })
}

/// Whether an operation is evaluated in f32 by `f32_fast`, as `Math::Fast` allows.
#[must_use]
pub fn is_fast(op: UnaryOp, math: Math, out: DType, input: DType) -> bool {
    let is_single = out == DType::F32 && !input.is_complex() && input.precision() <= 24;
    math == Math::Fast && is_single && fast_kernel(op).is_some()
}

/// The kernel of `f32_fast` for an operation, the cost of an element by vectors of 64 bytes, and the kernel of
/// one element.
fn fast_kernel(op: UnaryOp) -> Option<(Kernel, Cost, ScalarKernel)> {
    Some(match op {
        UnaryOp::Exp => (f32_fast::kernel::<f32_fast::Exp>, 200, f32_fast::scalar::<f32_fast::Exp>),
        UnaryOp::Log => (f32_fast::kernel::<f32_fast::Log>, 250, f32_fast::scalar::<f32_fast::Log>),
        UnaryOp::Tanh => (f32_fast::kernel::<f32_fast::Tanh>, 300, f32_fast::scalar::<f32_fast::Tanh>),
        UnaryOp::Sigmoid => {
            (f32_fast::kernel::<f32_fast::Sigmoid>, 250, f32_fast::scalar::<f32_fast::Sigmoid>)
        }
        UnaryOp::Erf => (f32_fast::kernel::<f32_fast::Erf>, 350, f32_fast::scalar::<f32_fast::Erf>),
        UnaryOp::Rsqrt => (f32_fast::kernel::<f32_fast::Rsqrt>, 150, f32_fast::scalar::<f32_fast::Rsqrt>),
        _ => return None,
    })
}

/// The kernel of an operation on one element of type f32 or f64, whose result has the same type: functions of
/// floats, and those that round or take the sign.
#[must_use]
pub fn scalar_kernel(op: UnaryOp, math: Math, dtype: DType) -> Option<ScalarKernel> {
    macro_rules! float {
        ($F:ident) => {
            match dtype {
                DType::F32 => scalar::<$F, f32>,
                DType::F64 => scalar::<$F, f64>,
                _ => return None,
            }
        };
    }
    Some(match op {
        _ if is_fast(op, math, dtype, dtype) => fast_kernel(op)?.2,
        UnaryOp::Sign => float!(SignOf),
        UnaryOp::Floor => float!(FloorOf),
        UnaryOp::Ceil => float!(CeilOf),
        UnaryOp::Round => float!(RoundOf),
        UnaryOp::Sqrt if dtype == DType::F32 => scalar::<Root, f32>,
        UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Tan => scalar_trigonometric(op, dtype)?,
        _ => scalar_function(op, dtype)?,
    })
}

fn scalar<F: Unary<T>, T: Lane>(x: u64, _: u64) -> u64 {
    word_of(F::apply(element_of(x)))
}

/// The plan of an operation for which [`is_fast`] holds.
fn make_fast_plan(op: UnaryOp, input: DType) -> Option<Plan> {
    let (kernel, cost, _) = fast_kernel(op)?;
    let load = Compute::As(DType::F32).load(input);
    let conversion = if load.is_some() { UNARY_CONVERSION_COST } else { 0 };
    let cost = vector_cost(cost) + conversion + sub_byte::cost(&[input]);
    Some(Plan { kernel, loads: [load, None, None], store: None, width: 4, narrowing: None, cost })
}

/// The lane of the operand, the kernel, the lane of its results, and the cost of an element; `None`
/// if the operation is not defined on the types.
fn kernel(op: UnaryOp, out: DType, input: DType) -> Option<(Compute, Kernel, Compute, Cost)> {
    use UnaryOp::*;
    let storage = input.storage();
    // These operations on floats other than f64 are exact in f32.
    let lane = match storage {
        _ if input.is_integer() || input.is_complex() => storage,
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let same_lane = |kernel: Kernel| {
        Some((Compute::As(lane), kernel, Compute::As(lane), 2 * MEMORY_BYTE_COST * lane.width() as Cost))
    };
    let truth = |kernel: Kernel| Some((Compute::As(lane), kernel, Compute::As(DType::U8), UNARY_TEST_COST));
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
        && let Some(kernel) = bf16_kernel(op)
    {
        return Some((Compute::As(input), kernel, Compute::As(input), BF16_UNARY_COST));
    }
    match op {
        LogicalNot => Some((Compute::Truth, tile::<TruthNot, u8>, Compute::As(DType::U8), LOGICAL_NOT_COST)),
        BitwiseNot if input.is_integer() => {
            same_lane(dispatch!(integer lane, T => tile::<BitNot, T> as Kernel, else => return None))
        }
        Negate => same_lane(match lane {
            DType::C64 => tile::<Minus, Complex<f32>>,
            DType::C128 => tile::<Minus, Complex<f64>>,
            _ => integer_or_float!(Minus),
        }),
        Abs if input.is_complex() => Some((
            Compute::As(DType::C128),
            tile::<Magnitude, Complex<f64>>,
            Compute::As(DType::F64),
            COMPLEX_ABS_COST,
        )),
        Abs => same_lane(integer_or_float!(Magnitude)),
        Sign => same_lane(integer_or_float!(SignOf)),
        Floor | Ceil | Round if input.is_integer() => {
            same_lane(dispatch!(integer lane, T => tile::<Identity, T> as Kernel, else => return None))
        }
        Floor => same_lane(float!(FloorOf)),
        // With p bits, a root in 2p + 2 bits can be rounded twice (S. Figueroa, When Is Double
        // Rounding Innocuous?, 1995).
        Sqrt if out == input && input.is_float() && storage != DType::F64 => same_lane(tile::<Root, f32>),
        Ceil => same_lane(float!(CeilOf)),
        Round => same_lane(float!(RoundOf)),
        IsNan | IsInfinity if input.is_integer() => {
            truth(dispatch!(integer lane, T => tile::<AlwaysFalse, T> as Kernel, else => return None))
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
        Conjugate | Real | Imag | Phase => complex_parts(op, out, input),
        PopulationCount | CountLeadingZeros if input.is_integer() => same_lane(bit_count(op, input)?),
        BitwiseNot | PopulationCount | CountLeadingZeros => None,
        _ if out.is_integer() => None,
        Sin | Cos | Tan => trigonometric(op, out, input),
        function => {
            let (load, kernel, store, cost) = float_function(function, out, input)?;
            let kernel = match function {
                Exp if load == Compute::As(DType::F64) => f64_loops::kernel::<f64_loops::Exp>,
                Log if load == Compute::As(DType::F64) => f64_loops::kernel::<f64_loops::Log>,
                _ => kernel,
            };
            Some((load, kernel, store, cost))
        }
    }
}

/// The kernel of an operation on bf16 that f32 computes exactly enough. Converting tiles to f32 and
/// back in separate loops would take as long as a root, and several times as long as the other
/// operations.
fn bf16_kernel(op: UnaryOp) -> Option<Kernel> {
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

/// The parts of complex numbers; real numbers have an imaginary part of zero.
fn complex_parts(op: UnaryOp, out: DType, input: DType) -> Option<(Compute, Kernel, Compute, Cost)> {
    use UnaryOp::*;
    let (load, kernel, store): (_, Kernel, _) = match (op, input) {
        (Conjugate, _) if !out.is_complex() => return None,
        (Conjugate, DType::C64) => (input, tile::<ConjugateOf, Complex<f32>>, input),
        (Conjugate, DType::C128) => (input, tile::<ConjugateOf, Complex<f64>>, input),
        (Conjugate, _) => (DType::F64, tile::<ConjugateOf, f64>, DType::C128),
        _ if !out.is_float() => return None,
        (Real, DType::C64) => (input, tile::<RealPart, Complex<f32>>, DType::F32),
        (Real, DType::C128) => (input, tile::<RealPart, Complex<f64>>, DType::F64),
        (Imag, DType::C64) => (input, tile::<ImaginaryPart, Complex<f32>>, DType::F32),
        (Imag, DType::C128) => (input, tile::<ImaginaryPart, Complex<f64>>, DType::F64),
        (Phase, DType::C64 | DType::C128) => (DType::C128, tile::<Angle, Complex<f64>>, DType::F64),
        (Phase, _) => (DType::F64, tile::<Angle, f64>, DType::F64),
        _ => return None,
    };
    let is_complex_phase = op == Phase && input.is_complex();
    let cost = if is_complex_phase { PHASE_COST } else { MEMORY_BYTE_COST * store.width() as Cost };
    Some((Compute::As(load), kernel, Compute::As(store), cost))
}

/// The kernel that counts bits. Types of less than a byte have fewer bits than their lane.
fn bit_count(op: UnaryOp, input: DType) -> Option<Kernel> {
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

/// Declares functions of angles. Large angles need an argument reduction that does not vectorize: a chunk with a
/// large angle is computed by a slower loop.
macro_rules! trigonometric {
    ($($name:ident, $small:ident, $any:ident, $f64_cost:expr, $complex:path;)*) => {
        $(
            struct $name;
            f32_function!($name, $any, PlainRange::up_to_or_infinite(f32_functions::MAX_SMALL_ANGLE), $small);
            impl Unary<Complex<f64>> for $name {
                type Out = Complex<f64>;
                #[inline(always)]
                fn apply(z: Complex<f64>) -> Complex<f64> { $complex(z) }
            }
        )*

        /// The kernel of a function of angles and its cost, or `None` for other operations.
        fn trigonometric(op: UnaryOp, out: DType, input: DType) -> Option<(Compute, Kernel, Compute, Cost)> {
            let lane = function_lane(out, input);
            let ((kernel, result), cost): ((Kernel, DType), Cost) = match (op, lane) {
                _ if out.is_integer() => return None,
                $(
                    (UnaryOp::$name, Compute::Single) => (f32_loops::kernel::<$name>(out), vector_cost(F32_TRIGONOMETRIC_COST)),
                    (UnaryOp::$name, Compute::As(DType::C128)) => {
                        ((tile::<$name, Complex<f64>>, DType::C128), COMPLEX_FUNCTION_COST)
                    }
                    (UnaryOp::$name, _) => ((f64_loops::kernel::<f64_loops::$name>, DType::F64), $f64_cost),
                )*
                _ => return None,
            };
            Some((lane, kernel, Compute::As(result), cost))
        }

        /// The kernel of a function of one angle of type f32 or f64.
        fn scalar_trigonometric(op: UnaryOp, dtype: DType) -> Option<ScalarKernel> {
            Some(match (op, dtype) {
                $(
                    (UnaryOp::$name, DType::F32) => f32_loops::scalar::<$name>,
                    (UnaryOp::$name, DType::F64) => f64_loops::scalar::<f64_loops::$name>,
                )*
                _ => return None,
            })
        }
    };
}

trigonometric! {
    Sin, sin, sin_any, F64_SINE_COST, complex::sin;
    Cos, cos, cos_any, F64_SINE_COST, complex::cos;
    Tan, tan, tan_any, vector_cost(2_300), complex::tan;
}

/// An operation on a lane.
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

/// Implements `Unary` for a list of lanes.
macro_rules! impl_unary {
    ($name:ident -> $out:ty, $x:ident; $($t:ty),* => $body:expr) => {$(
        impl Unary<$t> for $name {
            type Out = $out;
            #[inline(always)]
            fn apply($x: $t) -> $out { $body }
        }
    )*};
    ($name:ident, $x:ident; $($t:ty),* => $body:expr) => {
        $(impl_unary!($name -> $t, $x; $t => $body);)*
    };
}

struct Minus;
impl_unary!(Minus, x; u8, u16, u32, u64, i8, i16, i32, i64 => x.wrapping_neg());
impl_unary!(Minus, x; f32, f64, Complex<f32>, Complex<f64> => -x);

struct Magnitude;
impl_unary!(Magnitude, x; u8, u16, u32, u64 => x);
impl_unary!(Magnitude, x; i8, i16, i32, i64 => x.wrapping_abs());
impl_unary!(Magnitude, x; f32, f64 => x.abs());
impl_unary!(Magnitude -> f64, z; Complex<f64> => complex::abs(z));

/// The sign of zero and NaN is the number itself.
struct SignOf;
impl_unary!(SignOf, x; u8, u16, u32, u64 => x.min(1));
impl_unary!(SignOf, x; i8, i16, i32, i64 => x.signum());
impl_unary!(SignOf, x; f32, f64 => if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x });

struct Root;
impl_unary!(Root, x; f32 => x.sqrt());

struct FloorOf;
impl_unary!(FloorOf, x; f32, f64 => x.floor());
struct CeilOf;
impl_unary!(CeilOf, x; f32, f64 => x.ceil());
/// Rounds halves away from zero. A zero keeps its sign; other numbers that are rounded to zero
/// become a positive zero, as in Nx's documentation and in Erlang, which rounds to an integer.
struct RoundOf;
impl_unary!(RoundOf, x; f32, f64 => x.round() + if x == 0.0 { x } else { 0.0 });

struct Identity;
impl_unary!(Identity, x; u8, u16, u32, u64, i8, i16, i32, i64 => x);
struct BitNot;
impl_unary!(BitNot, x; u8, u16, u32, u64, i8, i16, i32, i64 => !x);
struct TruthNot;
impl_unary!(TruthNot, x; u8 => x ^ 1);

struct AlwaysFalse;
impl_unary!(AlwaysFalse -> u8, _x; u8, u16, u32, u64, i8, i16, i32, i64 => 0);
struct NanIn;
impl_unary!(NanIn -> u8, x; f32, f64 => u8::from(x.is_nan()));
impl_unary!(NanIn -> u8, z; Complex<f32>, Complex<f64> => u8::from(z.re.is_nan() || z.im.is_nan()));
struct InfinityIn;
impl_unary!(InfinityIn -> u8, x; f32, f64 => u8::from(x.is_infinite()));
impl_unary!(InfinityIn -> u8, z; Complex<f32>, Complex<f64> => u8::from(z.re.is_infinite() || z.im.is_infinite()));

/// The conjugate. A finite real number gets a negative zero as its imaginary part.
struct ConjugateOf;
impl_unary!(ConjugateOf, z; Complex<f32>, Complex<f64> => z.conj());
impl_unary!(ConjugateOf -> Complex<f64>, x; f64 => Complex::new(x, if x.is_finite() { -0.0 } else { 0.0 }));
struct RealPart;
impl_unary!(RealPart -> f32, z; Complex<f32> => z.re);
impl_unary!(RealPart -> f64, z; Complex<f64> => z.re);
struct ImaginaryPart;
impl_unary!(ImaginaryPart -> f32, z; Complex<f32> => z.im);
impl_unary!(ImaginaryPart -> f64, z; Complex<f64> => z.im);
struct Angle;
impl_unary!(Angle -> f64, z; Complex<f64> => complex::phase(z));
impl_unary!(Angle, x; f64 => {
    let angle = if x.is_sign_negative() { std::f64::consts::PI } else { 0.0 };
    if x.is_nan() { x } else { angle }
});

struct Ones;
impl_unary!(Ones, x; u8, u16, u32, u64, i8, i16, i32, i64 => x.count_ones() as _);
struct Zeros;
impl_unary!(Zeros, x; u8, u16, u32, u64, i8, i16, i32, i64 => x.leading_zeros() as _);

/// The number of ones among the low bits.
struct OnesIn<const BITS: u32>;
impl<const BITS: u32> Unary<u8> for OnesIn<BITS> {
    type Out = u8;
    #[inline(always)]
    fn apply(x: u8) -> u8 {
        (x << (8 - BITS)).count_ones() as u8
    }
}
/// The number of leading zeros among the low bits.
struct ZerosIn<const BITS: u32>;
impl<const BITS: u32> Unary<u8> for ZerosIn<BITS> {
    type Out = u8;
    #[inline(always)]
    fn apply(x: u8) -> u8 {
        (x << (8 - BITS)).leading_zeros().min(BITS) as u8
    }
}
