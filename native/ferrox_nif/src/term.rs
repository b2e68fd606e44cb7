//! Elixir terms to the core's types and back.

use ferrox_core::layout::Shape;
use ferrox_core::{DType, Error, Output, Tensor, tensor};
use rustler::types::tuple::get_tuple;
use rustler::{Atom, Binary, Decoder, Encoder, Env, NewBinary, NifResult, OwnedBinary, Term};

mod atoms {
    rustler::atoms! { u, s, f, bf, c, f8_e4m3fn, error }
}

/// A type as Nx writes it: `{:f, 32}`.
#[derive(Clone, Copy)]
pub struct Type(pub DType);

impl<'a> Decoder<'a> for Type {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let (tag, bits): (Atom, usize) = term.decode()?;
        // In the order of how common they are.
        let dtype = match bits {
            32 if tag == atoms::f() => DType::F32,
            64 if tag == atoms::f() => DType::F64,
            32 if tag == atoms::s() => DType::S32,
            64 if tag == atoms::s() => DType::S64,
            8 if tag == atoms::u() => DType::U8,
            _ => return other(tag, bits).map(Type),
        };
        Ok(Type(dtype))
    }
}

fn other(tag: Atom, bits: usize) -> NifResult<DType> {
    let find = |dtypes: &[DType]| dtypes.iter().copied().find(|dtype| dtype.bits() == bits);
    use DType::{BF16, C64, C128, F8, F8E4M3FN, F16, S2, S4, S8, S16, U2, U4, U16, U32, U64};
    let dtype = if tag == atoms::u() {
        find(&[U2, U4, U16, U32, U64])
    } else if tag == atoms::s() {
        find(&[S2, S4, S8, S16])
    } else if tag == atoms::f() {
        find(&[F8, F16])
    } else if tag == atoms::bf() {
        find(&[BF16])
    } else if tag == atoms::c() {
        find(&[C64, C128])
    } else if tag == atoms::f8_e4m3fn() {
        find(&[F8E4M3FN])
    } else {
        None
    };
    dtype.ok_or(rustler::Error::BadArg)
}

impl Encoder for Type {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        use ferrox_core::Kind;
        let tag = match self.0.kind() {
            Kind::Unsigned => atoms::u(),
            Kind::Signed => atoms::s(),
            Kind::BFloat => atoms::bf(),
            Kind::Complex => atoms::c(),
            Kind::Float if self.0 == DType::F8E4M3FN => atoms::f8_e4m3fn(),
            Kind::Float => atoms::f(),
        };
        (tag, self.0.bits()).encode(env)
    }
}

/// A shape, or another tuple of non-negative integers: `{2, 3}`. A size stands
/// for one axis.
pub struct Dims(pub Shape);

impl<'a> Decoder<'a> for Dims {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        if let Ok(size) = term.decode::<usize>() {
            return Ok(Dims(Shape::from_slice(&[size])));
        }
        // Small ranks without an allocation.
        if let Ok((a, b)) = term.decode::<(usize, usize)>() {
            return Ok(Dims(Shape::from_slice(&[a, b])));
        }
        if let Ok((a,)) = term.decode::<(usize,)>() {
            return Ok(Dims(Shape::from_slice(&[a])));
        }
        let mut shape = Shape::new();
        for dim in get_tuple(term)? {
            shape.push(dim.decode()?);
        }
        Ok(Dims(shape))
    }
}

/// `{type, shape, data}`, the data in whole bytes.
pub struct Operand<'a> {
    dtype: DType,
    shape: Shape,
    data: Binary<'a>,
}

impl<'a> Decoder<'a> for Operand<'a> {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let (Type(dtype), Dims(shape), data) = term.decode()?;
        Ok(Operand { dtype, shape, data })
    }
}

impl Operand<'_> {
    /// Its type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its shape, as given.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The tensor, if the data are as many as type and shape ask for.
    pub fn tensor(&self, op: &'static str) -> Result<Tensor<'_>, Error> {
        Tensor::new(op, self.dtype, &self.shape, &self.data)
    }
}

/// An operand of an elementwise operation. One of the result's type and shape,
/// as most are, may be its data alone, which is the quickest to decode.
pub enum Elementwise<'a> {
    /// Of the result's type and shape.
    Alike(Binary<'a>),
    /// Of another; boxed, so that the frequent case is small to move.
    Other(Box<Operand<'a>>),
}

impl<'a> Decoder<'a> for Elementwise<'a> {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        match term.decode() {
            Ok(data) => Ok(Elementwise::Alike(data)),
            Err(_) => term.decode().map(|operand| Elementwise::Other(Box::new(operand))),
        }
    }
}

impl Elementwise<'_> {
    /// The tensor, given the result's type and shape.
    pub fn tensor<'b>(
        &'b self,
        op: &'static str,
        dtype: DType,
        shape: &'b [usize],
    ) -> Result<Tensor<'b>, Error> {
        match self {
            Elementwise::Alike(data) => Tensor::new(op, dtype, shape, data),
            Elementwise::Other(operand) => operand.tensor(op),
        }
    }
}

/// Results up to this size live on the heap of the calling process.
const HEAP_BINARY: usize = 64;

/// A binary of the VM that `fill` writes a result into, or `{:error, message}`.
pub fn result<'a>(
    env: Env<'a>,
    op: &'static str,
    dtype: DType,
    shape: &[usize],
    fill: impl FnOnce(Output<'_>) -> Result<(), Error>,
) -> Term<'a> {
    allocate(env, op, dtype, shape, fill).unwrap_or_else(|e| error(env, &e))
}

fn allocate<'a>(
    env: Env<'a>,
    op: &'static str,
    dtype: DType,
    shape: &[usize],
    fill: impl FnOnce(Output<'_>) -> Result<(), Error>,
) -> Result<Term<'a>, Error> {
    let length = tensor::byte_size(op, dtype, shape)?;
    if length <= HEAP_BINARY {
        let mut binary = NewBinary::new(env, length);
        fill(Output::new(op, dtype, shape, binary.as_mut_slice())?)?;
        return Ok(binary.into());
    }
    // Allocating at once would take the VM down when there is no memory;
    // growing from nothing answers false.
    let mut binary = OwnedBinary::new(0);
    if !binary.realloc(length) {
        return Err(Error::TooLarge { op, dtype, shape: shape.to_vec() });
    }
    fill(Output::new(op, dtype, shape, binary.as_mut_slice())?)?;
    Ok(binary.release(env).into())
}

/// `{:error, message}`, which `Ferrox.Native.unwrap!/1` raises as an ArgumentError.
pub fn error<'a>(env: Env<'a>, error: &Error) -> Term<'a> {
    (atoms::error(), error.to_string()).encode(env)
}
