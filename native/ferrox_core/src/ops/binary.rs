//! Elementwise operations on two tensors, broadcast together.
//!
//! The caller has chosen the type of the result. This file chooses the type that an operation is
//! computed in, so that the result is rounded once, as if computed in exact integers and f64, the
//! arithmetic of `Nx.BinaryBackend`. Kernels of f16 and bf16 are in `half`; operations with
//! integers of more bits than the result are in `round_to_odd`, and operations on single elements in
//! `scalar`.

mod compare;
mod division;
mod half;
mod round_to_odd;
mod scalar;

use num_complex::Complex;

use self::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
pub use self::scalar::{IsFaulty, scalar_kernel};
use crate::cost::{
    C64_POW_COST, COMPLEX_DIVIDE_COST, COMPLEX_MULTIPLY_COST, COMPLEX_POW_COST, Cost, F32_POW_COST,
    F64_POW_COST, FLOAT_REMAINDER_COST, INTEGER_DIVISION_COST, INTEGER_POW_BYTE_COST, MEMORY_BYTE_COST,
    OPERAND_CONVERT_BYTE_COST,
};
use crate::dtype::{Element, Exact, Lane, sub_byte};
use crate::exec::convert;
use crate::exec::convert::{Compute, Conversion};
use crate::exec::elementwise::{self, Kernel, MAX_ELEMENT_BYTES, Operand, Plan, Source, ValueNarrowing};
use crate::exec::simd::{self, Vectorized, dispatch as vectorize, vector_cost};
use crate::ops::math::{complex, f32_loops, f64_loops};
use crate::ops::plan::{self, PlanCache};
use crate::tensor::{Output, Tensor};
use crate::{DType, Error, Fault, dispatch};

named! {
    /// A binary operation, named as Nx names it.
    pub enum BinaryOp {
        Add, "add";
        Subtract, "subtract";
        Multiply, "multiply";
        Divide, "divide";
        Pow, "pow";
        Remainder, "remainder";
        Quotient, "quotient";
        Atan2, "atan2";
        Min, "min";
        Max, "max";
        BitwiseAnd, "bitwise_and";
        BitwiseOr, "bitwise_or";
        BitwiseXor, "bitwise_xor";
        LeftShift, "left_shift";
        RightShift, "right_shift";
        Equal, "equal";
        NotEqual, "not_equal";
        Greater, "greater";
        Less, "less";
        GreaterEqual, "greater_equal";
        LessEqual, "less_equal";
        LogicalAnd, "logical_and";
        LogicalOr, "logical_or";
        LogicalXor, "logical_xor";
    }
}

impl BinaryOp {
    /// Whether the result is a truth value, 0 or 1.
    #[must_use]
    pub const fn is_predicate(self) -> bool {
        use BinaryOp::*;
        matches!(
            self,
            Equal
                | NotEqual
                | Greater
                | Less
                | GreaterEqual
                | LessEqual
                | LogicalAnd
                | LogicalOr
                | LogicalXor
        )
    }
}

/// Applies `op` to every pair of elements. The shapes must broadcast to the shape of `out`.
///
/// # Errors
///
/// `Error::Shape`, `Error::UnsupportedType`, or `Error::Element` for an integer division by zero, a
/// negative exponent or a negative shift.
pub fn binary(op: BinaryOp, out: Output<'_>, left: &Tensor<'_>, right: &Tensor<'_>) -> Result<(), Error> {
    run_tensors(op, plan(op, out.dtype, [left.dtype(), right.dtype()])?, out, left, right)
}

/// [`binary`] by the plan for the types of the result and the operands.
///
/// # Errors
///
/// `Error::Shape` and `Error::Element`, as `binary`.
pub fn run_tensors(
    op: BinaryOp,
    plan: &Plan,
    out: Output<'_>,
    left: &Tensor<'_>,
    right: &Tensor<'_>,
) -> Result<(), Error> {
    let (name, dtype, shape, dtypes) = (op.name(), out.dtype, out.shape, [left.dtype(), right.dtype()]);
    let tensors = [left, right];
    let [left, right] =
        [plan::source(name, left, shape, &tensors)?, plan::source(name, right, shape, &tensors)?];
    let operands = [(dtypes[0], left), (dtypes[1], right)];
    out.write(name, |bytes| run(op, plan, (dtype, shape), bytes, operands))
}

/// The plan for `op` on operands of some types, with a result of type `out`.
///
/// # Errors
///
/// `Error::UnsupportedType` if the operation is not defined for the types.
#[inline(always)]
pub fn plan(op: BinaryOp, out: DType, operands: [DType; 2]) -> Result<&'static Plan, Error> {
    static PLANS: PlanCache<2, { BinaryOp::ALL.len() }> = PlanCache::new();
    PLANS
        .get(op as usize, out, operands, || find(op, out, operands))
        .ok_or_else(|| Error::UnsupportedType { op: op.name(), dtypes: operands.to_vec() })
}

/// Computes a dense result in whole bytes, given its type and shape, by the plan for the types of the
/// result and the operands.
///
/// # Errors
///
/// `Error::Element`, as `binary`.
#[inline(always)]
pub fn run(
    op: BinaryOp,
    plan: &Plan,
    (dtype, shape): (DType, &[usize]),
    out: &mut [u8],
    operands: [(DType, Source<'_>); 2],
) -> Result<(), Error> {
    let [(left_dtype, left), (right_dtype, right)] = operands;
    let mut numbers = Default::default();
    let done = match simplified(op, dtype, operands, &mut numbers) {
        Some(simpler) => {
            // There is a plan for the new types wherever there is one for the given types.
            let plan = simpler.plan(dtype).unwrap_or(plan);
            elementwise::run(plan, shape, out, &simpler.operands.map(|operand| operand.source))
        }
        None => elementwise::run(plan, shape, out, &[left, right]),
    };
    done.map_err(|fault| Error::Element { op: op.name(), dtypes: vec![left_dtype, right_dtype], fault })
}

/// An operation that gives the same bits as another one, and takes less time.
#[derive(Clone, Copy, Debug)]
pub struct Simplified<'a> {
    /// The operation.
    pub op: BinaryOp,
    /// Its operands.
    pub operands: [SimplifiedOperand<'a>; 2],
}

/// An operand of a simplified operation.
#[derive(Clone, Copy, Debug)]
pub struct SimplifiedOperand<'a> {
    /// The number of the operand that it is, or that it was converted from.
    pub index: usize,
    /// The type of its elements.
    pub dtype: DType,
    /// Its elements.
    pub source: Source<'a>,
}

impl<'a> SimplifiedOperand<'a> {
    /// The number that an operand of type `from` has become; `None` if it is as it was.
    #[must_use]
    pub fn converted(&self, from: DType) -> Option<&'a [u8]> {
        self.source.scalar().filter(|_| self.dtype != from)
    }
}

impl Simplified<'_> {
    /// The plan for a result of type `out`.
    ///
    /// # Errors
    ///
    /// `Error::UnsupportedType` if the operation is not defined for the types.
    #[inline]
    pub fn plan(&self, out: DType) -> Result<&'static Plan, Error> {
        plan(self.op, out, self.operands.map(|operand| operand.dtype))
    }
}

/// Memory for operands that are numbers.
pub type Numbers = [[u8; MAX_ELEMENT_BYTES]; 2];

/// What an operation is computed as, if not as itself: a square as a product, and operands that are numbers
/// of another type than the result in the result's type if this holds them. A comparison with a number is
/// made in the type of the other operand.
#[inline]
pub fn simplified<'a>(
    op: BinaryOp,
    dtype: DType,
    [left, right]: [(DType, Source<'a>); 2],
    numbers: &'a mut Numbers,
) -> Option<Simplified<'a>> {
    if op == BinaryOp::Pow && is_square(dtype, left.0, right) {
        let base = SimplifiedOperand { index: 0, dtype: left.0, source: left.1 };
        return Some(Simplified { op: BinaryOp::Multiply, operands: [base; 2] });
    }
    if op.is_predicate() {
        let operands = compared_in_one_type(op, [left, right], numbers)?;
        return Some(Simplified { op, operands });
    }
    let is_other = |(from, source): (DType, Source<'_>)| from != dtype && source.is_scalar();
    if !(is_other(left) || is_other(right)) || !counts_as_result_type(op, dtype, [left.0, right.0]) {
        return None;
    }
    let [left_number, right_number] = numbers;
    let operands =
        [convert_number(0, left, dtype, left_number), convert_number(1, right, dtype, right_number)];
    Some(Simplified { op, operands })
}

/// Whether [`simplified`] may find something simpler, for operands of some types, of which some are numbers.
#[must_use]
pub fn may_be_simpler(op: BinaryOp, out: DType, dtypes: [DType; 2], has_number: bool) -> bool {
    op == BinaryOp::Pow || has_number && (dtypes[0] != dtypes[1] || dtypes[0] != out && !op.is_predicate())
}

/// The operands of a comparison with a number of another type, in the type of the other operand, if this
/// holds the number.
fn compared_in_one_type<'a>(
    op: BinaryOp,
    [left, right]: [(DType, Source<'a>); 2],
    [left_number, right_number]: &'a mut Numbers,
) -> Option<[SimplifiedOperand<'a>; 2]> {
    use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    let dtypes = [left.0, right.0];
    if !matches!(op, Equal | NotEqual | Greater | Less | GreaterEqual | LessEqual)
        || left.0 == right.0
        || dtypes.iter().any(|dtype| dtype.is_packed() || dtype.is_complex())
    {
        return None;
    }
    let operands = if right.1.is_scalar() {
        let left_operand = SimplifiedOperand { index: 0, dtype: left.0, source: left.1 };
        [left_operand, convert_number(1, right, left.0, right_number)]
    } else if left.1.is_scalar() {
        let right_operand = SimplifiedOperand { index: 1, dtype: right.0, source: right.1 };
        [convert_number(0, left, right.0, left_number), right_operand]
    } else {
        return None;
    };
    (operands[0].dtype == operands[1].dtype).then_some(operands)
}

fn convert_number<'a>(
    index: usize,
    (from, source): (DType, Source<'a>),
    to: DType,
    buffer: &'a mut [u8; MAX_ELEMENT_BYTES],
) -> SimplifiedOperand<'a> {
    let (dtype, source) = match source.scalar().and_then(|number| exact(from, number, to, buffer)) {
        Some(value) => (to, Source::Scalar(value)),
        None => (from, source),
    };
    SimplifiedOperand { index, dtype, source }
}

/// Returns whether a number that is a value of the result's type is computed in that type: the integer
/// of `Nx.add(f32_tensor, 1)` needs no more precision than the tensor has.
#[inline]
fn counts_as_result_type(op: BinaryOp, out: DType, [left, right]: [DType; 2]) -> bool {
    !op.is_predicate() && (left != right || matches!(op, BinaryOp::Pow | BinaryOp::Atan2)) && !out.is_packed()
}

/// Whether a power is a square that a product gives with the same bits: squares are correctly rounded in both,
/// and integers wrap around in both.
fn is_square(out: DType, base: DType, (dtype, exponent): (DType, Source<'_>)) -> bool {
    if out != base || out.is_packed() || out.is_complex() || dtype.is_complex() {
        return false;
    }
    let mut buffer = [0; MAX_ELEMENT_BYTES];
    let two = 2_f64.store();
    exponent
        .scalar()
        .and_then(|number| exact(dtype, number, DType::F64, &mut buffer))
        .is_some_and(|number| number == &two[..])
}

/// Converts a number to another type. Returns `None` if the type doesn't hold its value.
#[must_use]
pub fn exact<'b>(
    dtype: DType,
    number: &[u8],
    to: DType,
    buffer: &'b mut [u8; MAX_ELEMENT_BYTES],
) -> Option<&'b [u8]> {
    let element = &mut buffer[..to.width()];
    match convert::conversion(dtype, to) {
        Some(convert) => convert(number, element),
        None => element.copy_from_slice(number),
    }
    // An integer becomes the real part.
    let real = match to {
        DType::C64 if dtype.is_integer() => DType::F32,
        DType::C128 if dtype.is_integer() => DType::F64,
        to => to,
    };
    let lane = match (dtype.is_integer(), real.is_integer()) {
        (true, true) => Compute::Wide,
        (false, false) => Compute::As(DType::C128),
        // An integer and a float are compared exactly.
        _ if dtype.is_complex() => return None,
        _ => Compute::Exact,
    };
    (value(lane, dtype, number) == value(lane, real, &element[..real.width()])).then_some(&*element)
}

/// Converts an element to a lane that holds every value of its class.
fn value(lane: Compute, dtype: DType, bytes: &[u8]) -> [u8; MAX_ELEMENT_BYTES] {
    let mut out = [0; MAX_ELEMENT_BYTES];
    match lane.load(dtype) {
        Some(Conversion { lane, convert }) => convert(bytes, &mut out[..lane]),
        None => out[..bytes.len()].copy_from_slice(bytes),
    }
    out
}

fn find(op: BinaryOp, out: DType, operands: [DType; 2]) -> Option<Plan> {
    let compute = compute(op, out, operands)?;
    let (kernel, result) = kernel(op, compute, out)?;
    let computed = if compute == Compute::Wide && !op.is_predicate() { compute } else { Compute::As(result) };
    let [left, right] = operands.map(|dtype| compute.load(dtype));
    Some(Plan {
        kernel,
        loads: [left, right, None],
        store: computed.store(out),
        width: out.width(),
        narrowing: narrowing(op, compute, out, operands),
        cost: cost(op, out, operands),
    })
}

/// The lane that the operands are computed in. Returns `None` if the operation is not defined for them.
fn compute(op: BinaryOp, out: DType, [l, r]: [DType; 2]) -> Option<Compute> {
    use BinaryOp::*;
    match op {
        LogicalAnd | LogicalOr | LogicalXor => Some(Compute::Truth),
        _ if l == r && (out == l || op.is_predicate()) && half::kernel(op, l).is_some() => {
            Some(Compute::As(l))
        }
        Equal | NotEqual | Greater | Less | GreaterEqual | LessEqual => Some(compare::compute(l, r)),
        // The result is modulo 2^n, so only the low bits of the operands count.
        Add | Subtract | Multiply | BitwiseAnd | BitwiseOr | BitwiseXor if out.is_integer() => {
            (l.is_integer() && r.is_integer()).then_some(Compute::As(out.storage()))
        }
        _ if out.is_integer() => {
            let fits = l.embeds_in(out) && r.embeds_in(out);
            let lane = if fits { Compute::As(out.storage()) } else { Compute::Wide };
            (l.is_integer() && r.is_integer()).then_some(lane)
        }
        BitwiseAnd | BitwiseOr | BitwiseXor | LeftShift | RightShift | Quotient => None,
        // Also computed in f64, but converted and divided in one loop.
        Divide if l == r && out == DType::F32 && matches!(l, DType::S32 | DType::S64) => Some(Compute::As(l)),
        _ => float(op, out, l, r),
    }
}

/// The lane in which a float or complex result is computed.
fn float(op: BinaryOp, out: DType, left: DType, right: DType) -> Option<Compute> {
    use BinaryOp::*;
    let is_single = left.precision() <= 24 && right.precision() <= 24;
    let is_exact = left.embeds_in(out) && right.embeds_in(out);
    let is_short = |dtype: DType| dtype.precision() <= DType::F16.precision() && dtype.embeds_in(DType::F32);
    let is_wide = |dtype: DType| dtype.precision() > DType::F64.precision();
    let lane = match out {
        DType::C128 => DType::C128,
        // Sums round each part once in either precision.
        DType::C64 if matches!(op, Add | Subtract) && is_single => DType::C64,
        // These loops convert to f64 themselves, see `complex` and `f32_loops::complex`.
        DType::C64 if matches!(op, Multiply | Divide | Pow) && is_single => DType::C64,
        DType::C64 => DType::C128,
        _ if left.is_complex() || right.is_complex() => return None,
        DType::F64 => DType::F64,
        _ if matches!(op, Pow | Atan2) && is_single => return Some(Compute::Single),
        _ if matches!(op, Pow | Atan2) => DType::F64,
        // A remainder of values of f32 is a value of f32, and the loops in f64 are faster.
        _ if op == Remainder && is_single && simd::has_fma() => DType::F64,
        // If the operands are values of the result's type, rounding twice gives the same as rounding
        // once if the lane has twice the precision of the result and two bits more (Figueroa, "When
        // is double rounding innocuous?", 1995).
        _ if is_exact => DType::F32,
        // The wider range of bf16 does no harm: where a sum is inexact in f32, f16 rounds it to the
        // larger operand.
        DType::F16 if is_short(left) && is_short(right) => DType::F32,
        // An f64 can't hold all integers of 64 bits.
        _ if is_wide(left) || is_wide(right) => return Some(Compute::Exact),
        _ => DType::F64,
    };
    Some(Compute::As(lane))
}

/// A kernel in f32 for operations that are computed in f64 or exactly because f32 doesn't hold all
/// integers. If it holds the operands at hand, as it mostly does, the results are the same, see
/// `float`.
fn narrowing(
    op: BinaryOp,
    compute: Compute,
    out: DType,
    [left, right]: [DType; 2],
) -> Option<ValueNarrowing> {
    use BinaryOp::*;
    let same = matches!(op, Add | Subtract | Multiply | Divide | Max | Min)
        && out == DType::F32
        && matches!(compute, Compute::As(DType::F64) | Compute::Exact)
        && [left, right].iter().all(|dtype| *dtype == DType::F32 || dtype.is_integer());
    if !same {
        return None;
    }
    let (kernel, _) = kernel(op, Compute::As(DType::F32), out)?;
    let loads = [convert::to_f32_exactly(left), convert::to_f32_exactly(right), None];
    Some(ValueNarrowing { kernel, lane: DType::F32.width(), loads })
}

/// The cost of an element.
fn cost(op: BinaryOp, out: DType, [left, right]: [DType; 2]) -> Cost {
    use BinaryOp::*;
    let width = left.width().max(right.width()).max(out.width()) as Cost;
    let bytes = (left.width() + right.width() + out.width()) as Cost;
    let halves = || half::kernel(op, left).is_some();
    let converts = left != right
        || left != out && !op.is_predicate()
        || left.is_float() && left.width() < 4 && !halves();
    let base = match op {
        Pow if out == DType::C64 && left.precision() <= 24 && right.precision() <= 24 => C64_POW_COST,
        Pow | Atan2 if out.is_complex() => COMPLEX_POW_COST,
        Pow if out.is_integer() => INTEGER_POW_BYTE_COST * width,
        Pow | Atan2 if width <= 4 => F32_POW_COST,
        Pow | Atan2 => F64_POW_COST,
        Remainder if !out.is_integer() => FLOAT_REMAINDER_COST,
        Quotient | Remainder => INTEGER_DIVISION_COST,
        Multiply if out.is_complex() => vector_cost(COMPLEX_MULTIPLY_COST),
        Divide if out.is_complex() => vector_cost(COMPLEX_DIVIDE_COST),
        _ => 0,
    };
    base + MEMORY_BYTE_COST * bytes
        + if converts { OPERAND_CONVERT_BYTE_COST * width } else { 0 }
        + sub_byte::cost(&[left, right, out])
}

/// An operation on two lanes.
pub(super) trait Binary<T: Lane>: 'static {
    type Out: Lane;
    /// The error for `faulty` operands.
    const FAULT: Option<Fault> = None;

    fn apply(left: T, right: T) -> Self::Out;

    /// Whether the operation is undefined for this right operand, or for this operand on either side
    /// if `LEFT_TOO` is true.
    #[inline(always)]
    fn faulty(_operand: T) -> bool {
        false
    }
    /// Whether left operands may be `faulty`.
    const LEFT_TOO: bool = false;
}

struct BinaryLoop<'a, 'b, F, T> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
    op: std::marker::PhantomData<(F, T)>,
}

impl<T: Lane, F: Binary<T>> Vectorized for BinaryLoop<'_, '_, F, T> {
    type Output = Result<(), Fault>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let out = F::Out::view_mut(self.out);
        let [left, right] = self.operands else { unreachable!("two operands") };
        if let Some(fault) = F::FAULT {
            let operands = [right, left];
            for operand in &operands[..if F::LEFT_TOO { 2 } else { 1 }] {
                let elements = match operand {
                    Operand::Slice(elements) => &T::view(elements)[..out.len()],
                    Operand::Scalar(element) => T::view(element),
                };
                // The loop has no early exit, so that it vectorizes.
                if elements.iter().fold(false, |any, &x| any | F::faulty(T::load(x))) {
                    return Err(fault);
                }
            }
        }
        match (left, right) {
            (Operand::Slice(left), Operand::Slice(right)) => {
                for ((out, &l), &r) in out.iter_mut().zip(T::view(left)).zip(T::view(right)) {
                    *out = F::apply(T::load(l), T::load(r)).store();
                }
            }
            (Operand::Slice(left), Operand::Scalar(right)) => {
                let r = T::load(T::view(right)[0]);
                for (out, &l) in out.iter_mut().zip(T::view(left)) {
                    *out = F::apply(T::load(l), r).store();
                }
            }
            (Operand::Scalar(left), Operand::Slice(right)) => {
                let l = T::load(T::view(left)[0]);
                for (out, &r) in out.iter_mut().zip(T::view(right)) {
                    *out = F::apply(l, T::load(r)).store();
                }
            }
            (Operand::Scalar(left), Operand::Scalar(right)) => {
                let value = F::apply(T::load(T::view(left)[0]), T::load(T::view(right)[0]));
                out.fill(value.store());
            }
        }
        Ok(())
    }
}

fn tile<F: Binary<T>, T: Lane>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    vectorize(BinaryLoop::<F, T> { out, operands, op: std::marker::PhantomData })
}

/// [`tile`] for products of complex numbers of two f32.
fn multiply_tile(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault> {
    const PAIR: usize = 8;
    let [Operand::Slice(left), Operand::Slice(right)] = *operands else {
        return tile::<Multiply, Complex<f32>>(out, operands);
    };
    let [l, r] = [left, right].map(|pairs| pairs.as_chunks::<PAIR>().0);
    let done = PAIR * simd::multiply_pairs(l, r, out.as_chunks_mut::<PAIR>().0);
    let rest = [&left[done..], &right[done..]].map(Operand::Slice);
    tile::<Multiply, Complex<f32>>(&mut out[done..], &rest)
}

/// The kernel of an operation and the type of its results.
fn kernel(op: BinaryOp, compute: Compute, out: DType) -> Option<(Kernel, DType)> {
    macro_rules! ring {
        ($F:ident, $dtype:expr) => {
            dispatch!(bits $dtype, T => tile::<$F, T> as Kernel, else => return None)
        };
    }
    macro_rules! integer {
        ($F:ident, $dtype:expr) => {
            dispatch!(integer $dtype, T => tile::<$F, T> as Kernel, else => return None)
        };
    }
    macro_rules! wide {
        ($F:ident) => {
            match compute {
                Compute::Wide => tile::<$F, i128> as Kernel,
                Compute::As(dtype) => integer!($F, dtype),
                _ => return None,
            }
        };
    }
    macro_rules! number {
        ($F:ident) => {
            match compute {
                Compute::As(DType::F32) => tile::<$F, f32> as Kernel,
                Compute::As(DType::F64) => tile::<$F, f64>,
                Compute::As(DType::C64) => tile::<$F, Complex<f32>>,
                Compute::As(DType::C128) => tile::<$F, Complex<f64>>,
                Compute::As(dtype) if dtype.is_integer() => ring!($F, dtype),
                _ => return None,
            }
        };
    }
    macro_rules! real {
        ($F:ident) => {
            match compute {
                Compute::As(DType::F32) => tile::<$F, f32> as Kernel,
                Compute::As(DType::F64) => tile::<$F, f64>,
                _ => wide!($F),
            }
        };
    }
    macro_rules! equality {
        ($F:ident) => {
            match compute {
                Compute::As(DType::C128) => tile::<$F, Complex<f64>> as Kernel,
                Compute::Exact => tile::<$F, Exact>,
                Compute::As(dtype) if dtype.is_integer() => ring!($F, dtype),
                _ => real!($F),
            }
        };
    }
    macro_rules! order {
        ($F:ident) => {
            match compute {
                Compute::Exact => tile::<$F, Exact> as Kernel,
                _ => real!($F),
            }
        };
    }
    macro_rules! bits {
        ($F:ident) => {
            match compute {
                Compute::As(dtype) if dtype.is_integer() => ring!($F, dtype),
                _ => return None,
            }
        };
    }
    macro_rules! division {
        ($F:ident, $dtype:expr) => {
            dispatch!(integer $dtype, T => division::tile::<$F, T> as Kernel, else => return None)
        };
    }
    if out.is_float()
        && out.precision() <= DType::F32.precision()
        && let Some(kernel) = round_to_odd::kernel(op, compute)
    {
        return Some((kernel, DType::F64));
    }
    let result = match compute {
        Compute::As(dtype) if op == BinaryOp::Divide && dtype.is_integer() => DType::F32,
        Compute::As(dtype) if !op.is_predicate() => dtype,
        Compute::Wide if !op.is_predicate() => DType::S64,
        _ => DType::U8,
    };
    if let Compute::As(half @ (DType::F16 | DType::BF16)) = compute {
        return Some((half::kernel(op, half)?, result));
    }
    let kernel = match op {
        BinaryOp::Add => number!(Add),
        BinaryOp::Subtract => number!(Subtract),
        BinaryOp::Multiply if compute == Compute::As(DType::C64) => multiply_tile,
        BinaryOp::Multiply => number!(Multiply),
        BinaryOp::Divide => match compute {
            Compute::As(DType::S32) => divide_tile::<i32>,
            Compute::As(DType::S64) => divide_tile::<i64>,
            Compute::As(DType::F32) => tile::<Divide, f32>,
            Compute::As(DType::F64) => tile::<Divide, f64>,
            Compute::As(DType::C64) => tile::<Divide, Complex<f32>>,
            Compute::As(DType::C128) => tile::<Divide, Complex<f64>>,
            _ => return None,
        },
        BinaryOp::Pow => match compute {
            Compute::Single => return Some(f32_loops::kernel::<f32_loops::Pow>(out)),
            Compute::As(DType::F64) => f64_loops::kernel::<f64_loops::Pow>,
            Compute::As(DType::C64) => f32_loops::complex::pow,
            Compute::As(DType::C128) => tile::<Pow, Complex<f64>>,
            Compute::Wide => tile::<Pow, i128>,
            Compute::As(dtype) => {
                dispatch!(integer dtype, T => pow_tile::<T> as Kernel, else => return None)
            }
            _ => return None,
        },
        BinaryOp::Remainder => match compute {
            Compute::As(DType::F64) => f64_loops::kernel::<f64_loops::Remainder>,
            Compute::As(dtype) if dtype.is_integer() => division!(Remainder, dtype),
            _ => real!(Remainder),
        },
        BinaryOp::Quotient => match compute {
            Compute::As(dtype) if dtype.is_integer() => division!(Quotient, dtype),
            _ => wide!(Quotient),
        },
        BinaryOp::Atan2 => match compute {
            Compute::Single => return Some(f32_loops::kernel::<f32_loops::Atan2>(out)),
            Compute::As(DType::F64) => f64_loops::kernel::<f64_loops::Atan2>,
            Compute::As(DType::C128) => tile::<Atan2, Complex<f64>>,
            _ => return None,
        },
        BinaryOp::Min => real!(Min),
        BinaryOp::Max => real!(Max),
        BinaryOp::BitwiseAnd => bits!(BitwiseAnd),
        BinaryOp::BitwiseOr => bits!(BitwiseOr),
        BinaryOp::BitwiseXor => bits!(BitwiseXor),
        BinaryOp::LeftShift => wide!(LeftShift),
        BinaryOp::RightShift => wide!(RightShift),
        BinaryOp::Equal => equality!(Equal),
        BinaryOp::NotEqual => equality!(NotEqual),
        BinaryOp::Greater => order!(Greater),
        BinaryOp::Less => order!(Less),
        BinaryOp::GreaterEqual => order!(GreaterEqual),
        BinaryOp::LessEqual => order!(LessEqual),
        BinaryOp::LogicalAnd => tile::<BitwiseAnd, u8>,
        BinaryOp::LogicalOr => tile::<BitwiseOr, u8>,
        BinaryOp::LogicalXor => tile::<BitwiseXor, u8>,
    };
    Some((kernel, result))
}

/// Implements [`Binary`] for a list of lanes, and for another type of result if there is an `as`.
macro_rules! impl_binary {
    ($name:ident, $a:ident, $b:ident; $($t:ty),* as $out:ty => $body:expr) => {$(
        impl Binary<$t> for $name {
            type Out = $out;
            #[inline(always)]
            fn apply($a: $t, $b: $t) -> $out { $body }
        }
    )*};
    ($name:ident, $a:ident, $b:ident; $($t:ty),* => $body:expr) => {
        $(impl_binary!($name, $a, $b; $t as $t => $body);)*
    };
}

struct Add;
impl_binary!(Add, a, b; u8, u16, u32, u64 => a.wrapping_add(b));
impl_binary!(Add, a, b; f32, f64, Complex<f32>, Complex<f64> => a + b);

struct Subtract;
impl_binary!(Subtract, a, b; u8, u16, u32, u64 => a.wrapping_sub(b));
impl_binary!(Subtract, a, b; f32, f64, Complex<f32>, Complex<f64> => a - b);

struct Multiply;
impl_binary!(Multiply, a, b; u8, u16, u32, u64 => a.wrapping_mul(b));
impl_binary!(Multiply, a, b; f32, f64, Complex<f64> => a * b);
impl_binary!(Multiply, a, b; Complex<f32> => complex::multiply_single(a, b));

struct Divide;
impl_binary!(Divide, a, b; f32, f64 => a / b);
impl_binary!(Divide, a, b; Complex<f64> => complex::divide(a, b));
impl_binary!(Divide, a, b; Complex<f32> => complex::divide_single(a, b));

/// The quotient of integers that f32 holds: the same as of any integers, but faster.
struct DivideExactInF32;
impl_binary!(DivideExactInF32, a, b; i32, i64 as f32 => a as i32 as f32 / b as i32 as f32);

/// Returns whether the first `used` elements of all operands are integers that f32 holds.
struct FitsF32Loop<'a, 'b, T> {
    operands: &'a [Operand<'b>],
    used: usize,
    lane: std::marker::PhantomData<T>,
}

impl<T: Element> Vectorized for FitsF32Loop<'_, '_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        self.operands.iter().all(|operand| match operand {
            Operand::Slice(elements) => convert::fit_f32::<T>(&T::view(elements)[..self.used]),
            Operand::Scalar(element) => convert::fit_f32::<T>(T::view(element)),
        })
    }
}

fn divide_tile<T: Element>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault>
where
    round_to_odd::Quotient: Binary<T>,
    round_to_odd::QuotientUnfused: Binary<T>,
    DivideExactInF32: Binary<T>,
{
    let used = out.len() / size_of::<f32>();
    if vectorize(FitsF32Loop::<T> { operands, used, lane: std::marker::PhantomData }) {
        tile::<DivideExactInF32, T>(out, operands)
    } else if simd::has_fma() {
        tile::<round_to_odd::Quotient, T>(out, operands)
    } else {
        tile::<round_to_odd::QuotientUnfused, T>(out, operands)
    }
}

/// The larger operand, the left one if both are equal, and NaN if one of them is.
struct Max;
impl_binary!(Max, a, b; f32, f64 => if b > a || b.is_nan() { b } else { a });
impl_binary!(Max, a, b; u8, u16, u32, u64, i8, i16, i32, i64, i128 => a.max(b));

/// The smaller operand, the left one if both are equal, and NaN if one of them is.
struct Min;
impl_binary!(Min, a, b; f32, f64 => if b < a || b.is_nan() { b } else { a });
impl_binary!(Min, a, b; u8, u16, u32, u64, i8, i16, i32, i64, i128 => a.min(b));

struct BitwiseAnd;
impl_binary!(BitwiseAnd, a, b; u8, u16, u32, u64 => a & b);
struct BitwiseOr;
impl_binary!(BitwiseOr, a, b; u8, u16, u32, u64 => a | b);
struct BitwiseXor;
impl_binary!(BitwiseXor, a, b; u8, u16, u32, u64 => a ^ b);

struct Atan2;

/// The angle is defined for complex numbers without an imaginary part.
impl Binary<Complex<f64>> for Atan2 {
    type Out = Complex<f64>;
    const FAULT: Option<Fault> = Some(Fault::ImaginaryAngle);
    const LEFT_TOO: bool = true;
    #[inline(always)]
    fn apply(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
        Complex::new(f64_loops::element::<f64_loops::Atan2>(a.re, b.re), 0.0)
    }
    #[inline(always)]
    fn faulty(operand: Complex<f64>) -> bool {
        operand.im != 0.0
    }
}

/// Implements [`Binary`] for integer operations that are undefined for some right operands.
macro_rules! partial {
    ($name:ident, $fault:expr, $r:ident => $faulty:expr; $a:ident, $b:ident => $body:expr; $($t:ty),*) => {$(
        impl Binary<$t> for $name {
            type Out = $t;
            const FAULT: Option<Fault> = Some($fault);
            #[inline(always)]
            fn apply($a: $t, $b: $t) -> $t { $body }
            #[inline(always)]
            fn faulty($r: $t) -> bool { $faulty }
        }
    )*};
    ($name:ident, $fault:expr, $r:ident => $faulty:expr; $a:ident, $b:ident => $body:expr) => {
        partial!($name, $fault, $r => $faulty; $a, $b => $body; u8, u16, u32, u64, i8, i16, i32, i64, i128);
    };
}

/// The quotient, rounded towards zero.
struct Quotient;
partial!(Quotient, Fault::DivisionByZero, r => r == 0; a, b => a.wrapping_div(b));

/// The remainder, with the sign of the left operand.
struct Remainder;
partial!(Remainder, Fault::DivisionByZero, r => r == 0; a, b => a.wrapping_rem(b));
impl_binary!(Remainder, a, b; f32, f64 => a % b);

struct Pow;
impl_binary!(Pow, a, b; Complex<f64> => complex::pow(a, b));

/// Powers modulo 2^n by repeated squaring.
macro_rules! integer_pow {
    ($($t:ty),*) => {$(
        partial!(Pow, Fault::NegativeExponent, r => is_negative(r); a, b => {
            let (mut base, mut exponent, mut power) = (a, b, 1 as $t);
            while exponent > 0 {
                if exponent & 1 == 1 {
                    power = power.wrapping_mul(base);
                }
                base = base.wrapping_mul(base);
                exponent >>= 1;
            }
            power
        }; $t);
    )*};
}
integer_pow!(i128);

/// Powers modulo 2^n of a chunk of integers at a time, by repeated squaring: every base is squared as
/// often as the largest exponent needs.
struct PowLoop<'a, 'b, T> {
    out: &'a mut [u8],
    operands: &'a [Operand<'b>],
    lane: std::marker::PhantomData<T>,
}

macro_rules! pow_loop {
    ($($t:ty as $unsigned:ty),*) => {$(
        impl Vectorized for PowLoop<'_, '_, $t> {
            type Output = Result<(), Fault>;

            #[inline(always)]
            fn run(self) -> Self::Output {
                const CHUNK: usize = 128;
                let [mut bases, mut exponents, mut powers] = [[0 as $unsigned; CHUNK]; 3];
                for (k, out) in <$t>::view_mut(self.out).chunks_mut(CHUNK).enumerate() {
                    let n = out.len();
                    let (bases, exponents) = (&mut bases[..n], &mut exponents[..n]);
                    for (operand, to) in self.operands.iter().zip([&mut *bases, &mut *exponents]) {
                        match operand {
                            Operand::Slice(from) => {
                                for (to, &from) in to.iter_mut().zip(&<$t>::view(from)[k * CHUNK..]) {
                                    *to = <$t>::load(from) as $unsigned;
                                }
                            }
                            Operand::Scalar(from) => to.fill(<$t>::load(<$t>::view(from)[0]) as $unsigned),
                        }
                    }
                    let any = exponents.iter().fold(0, |any, &exponent| any | exponent);
                    if is_negative(any as $t) {
                        return Err(Fault::NegativeExponent);
                    }
                    let powers = &mut powers[..n];
                    powers.fill(1);
                    for bit in 0..<$unsigned>::BITS - any.leading_zeros() {
                        for ((power, base), &exponent) in powers.iter_mut().zip(&mut *bases).zip(&*exponents) {
                            // The factor is the base if the bit is set, and else one.
                            let mask = ((exponent >> bit) & 1).wrapping_neg();
                            *power = power.wrapping_mul((*base & mask) | (!mask & 1));
                            *base = base.wrapping_mul(*base);
                        }
                    }
                    for (out, &power) in out.iter_mut().zip(&*powers) {
                        *out = (power as $t).store();
                    }
                }
                Ok(())
            }
        }
    )*};
}
pow_loop!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64);

fn pow_tile<T>(out: &mut [u8], operands: &[Operand<'_>]) -> Result<(), Fault>
where
    for<'a, 'b> PowLoop<'a, 'b, T>: Vectorized<Output = Result<(), Fault>>,
{
    vectorize(PowLoop::<T> { out, operands, lane: std::marker::PhantomData })
}

/// The left shift, modulo 2^n.
struct LeftShift;
/// The right shift, which keeps the sign of signed integers.
struct RightShift;

macro_rules! shifts {
    ($($t:ty),*) => {$(
        partial!(LeftShift, Fault::NegativeShift, r => is_negative(r); a, b => {
            if in_width::<$t>(b, <$t>::BITS) { a.wrapping_shl(b as u32) } else { 0 }
        }; $t);
        partial!(RightShift, Fault::NegativeShift, r => is_negative(r); a, b => {
            let count = if in_width::<$t>(b, <$t>::BITS) { b as u32 } else { <$t>::BITS - 1 };
            let shifted = a.wrapping_shr(count);
            // A shift by the width or more leaves only the sign.
            if in_width::<$t>(b, <$t>::BITS) || is_negative(a) { shifted } else { 0 }
        }; $t);
    )*};
}
shifts!(u8, u16, u32, u64, i8, i16, i32, i64, i128);

#[inline(always)]
fn is_negative<T: Default + PartialOrd>(value: T) -> bool {
    value < T::default()
}

/// Returns whether a shift count that is not negative is smaller than the width.
#[inline(always)]
fn in_width<T: TryInto<u32> + Copy>(count: T, width: u32) -> bool {
    matches!(count.try_into(), Ok(count) if count < width)
}
