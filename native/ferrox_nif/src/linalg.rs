//! The NIFs of Fourier transforms and linear algebra, which have options or several results.

use ferrox_core::ops::fft::{self, Transform};
use ferrox_core::ops::linalg::{self, Method, NxAlgorithm, Problem, Triangular};
use rustler::{Atom, Decoder, NifResult, Term};

use crate::entry::bad_argument;
use crate::scheduling::Call;
use crate::term::{Dims, Operand, Type};

mod atoms {
    rustler::atoms! {
        fft, ifft, rfft, irfft, lu, lu_0_9, qr, qr_0_9, eigh, eigh_0_9, svd, thin_svd, svd_0_9, none, transpose, conjugate, cholesky, determinant
    }
}

/// A Fourier transform, decoded from the atom of its name.
pub struct FourierTransform(Transform);

impl<'a> Decoder<'a> for FourierTransform {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let name: Atom = term.decode()?;
        let transforms = [
            (atoms::fft(), Transform::Forward),
            (atoms::ifft(), Transform::Inverse),
            (atoms::rfft(), Transform::RealForward),
            (atoms::irfft(), Transform::RealInverse),
        ];
        by_name(name, &transforms).map(FourierTransform)
    }
}

/// The value with this name in a list.
fn by_name<T: Copy>(name: Atom, all: &[(Atom, T)]) -> NifResult<T> {
    all.iter().find(|(atom, _)| *atom == name).map(|&(_, value)| value).ok_or_else(bad_argument)
}

/// A Fourier transform. `axes` has one `{axis, length}`, or two for a two-dimensional transform.
pub fn fourier<'a>(
    call: Call<'a>,
    transform: FourierTransform,
    dtype: Type,
    shape: Dims,
    axes: Vec<(usize, usize)>,
    eps: f64,
    input: Operand<'a>,
) -> Term<'a> {
    let (transform, op) = (transform.0, transform.0.name());
    let lengths: Vec<usize> = axes.iter().map(|axis| axis.1).collect();
    let size = shape.0.iter().fold(1, |n: usize, &size| n.saturating_mul(size));
    let work = fft::work(size.max(input.size()), &lengths);
    call.tensor(work, op, dtype.0, &shape.0, |out| {
        let input = input.tensor(op)?;
        match axes[..] {
            [axis] => fft::fft(transform, out, &input, axis, eps),
            [first, second] => fft::fft2(transform, out, &input, [first, second], eps),
            _ => {
                let problem = format!("needs one axis or two, not {}", axes.len());
                Err(ferrox_core::Error::Argument { op, problem })
            }
        }
    })
}

/// The way to solve a system of linear equations: `:lu`, `:qr`, or `{lower, left_side, transform_a}`
/// for a triangular system.
pub enum Solver {
    General(Method),
    Triangular(Triangular),
}

impl<'a> Decoder<'a> for Solver {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        if let Ok((lower, left_side, transform)) = term.decode::<(bool, bool, Atom)>() {
            let transforms = [
                (atoms::none(), linalg::MatrixTransform::None),
                (atoms::transpose(), linalg::MatrixTransform::Transpose),
                (atoms::conjugate(), linalg::MatrixTransform::Conjugate),
            ];
            let transform = by_name(transform, &transforms)?;
            return Ok(Solver::Triangular(Triangular { lower, left_side, transform }));
        }
        let methods = [(atoms::lu(), Method::Lu), (atoms::qr(), Method::Qr)];
        by_name(term.decode()?, &methods).map(Solver::General)
    }
}

/// Solves a system of linear equations. The result has the shape of `b`.
pub fn solve<'a>(call: Call<'a>, solver: Solver, dtype: Type, a: Operand<'a>, b: Operand<'a>) -> Term<'a> {
    let batch: usize = a.shape().iter().rev().skip(2).product();
    let right = b.size() / batch.max(1);
    let (op, problem) = match solver {
        Solver::General(_) => ("solve", Problem::Solve(right)),
        Solver::Triangular(_) => ("triangular_solve", Problem::Triangular(right)),
    };
    call.tensor(problem.work(dtype.0, a.shape()), op, dtype.0, b.shape(), |out| {
        let (a, b) = (a.tensor(op)?, b.tensor(op)?);
        match solver {
            Solver::General(method) => linalg::solve(out, &a, &b, method),
            Solver::Triangular(triangular) => linalg::triangular_solve(out, &a, &b, triangular),
        }
    })
}

/// A factorization, decoded from the atom of its name, by the algorithm of the current Nx or of Nx
/// 0.9.
#[derive(Clone, Copy)]
pub struct Factorization(Problem, NxAlgorithm);

impl<'a> Decoder<'a> for Factorization {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        let (current, former) = (NxAlgorithm::Current, NxAlgorithm::V0_9);
        let problems = [
            (atoms::cholesky(), Factorization(Problem::Cholesky, current)),
            (atoms::determinant(), Factorization(Problem::Determinant, current)),
            (atoms::lu(), Factorization(Problem::Lu, current)),
            (atoms::lu_0_9(), Factorization(Problem::Lu, former)),
            (atoms::qr(), Factorization(Problem::Qr, current)),
            (atoms::qr_0_9(), Factorization(Problem::Qr, former)),
            (atoms::eigh(), Factorization(Problem::Eigh, current)),
            (atoms::eigh_0_9(), Factorization(Problem::Eigh, former)),
            (atoms::svd(), Factorization(Problem::Svd, current)),
            (atoms::thin_svd(), Factorization(Problem::Svd, NxAlgorithm::ThinSvd)),
            (atoms::svd_0_9(), Factorization(Problem::Svd, former)),
        ];
        by_name(term.decode()?, &problems)
    }
}

/// A factorization. `results` are the types and shapes of its results; their number depends on the
/// factorization.
pub fn factor<'a>(
    call: Call<'a>,
    op: Factorization,
    results: Vec<(Type, Dims)>,
    eps: f64,
    input: Operand<'a>,
) -> Term<'a> {
    let work = op.0.work(input.dtype(), input.shape());
    let results: Vec<_> = results.iter().map(|(dtype, shape)| (dtype.0, &shape.0[..])).collect();
    match (op.0, &results[..]) {
        (Problem::Cholesky, &[l]) => {
            call.tensors(work, "cholesky", [l], |[out]| linalg::cholesky(out, &input.tensor("cholesky")?))
        }
        (Problem::Determinant, &[d]) => call.tensors(work, "determinant", [d], |[out]| {
            linalg::determinant(out, &input.tensor("determinant")?)
        }),
        (Problem::Lu, &[p, l, u]) => {
            call.tensors(work, "lu", [p, l, u], |outs| linalg::lu(outs, &input.tensor("lu")?, op.1))
        }
        (Problem::Qr, &[q, r]) => {
            call.tensors(work, "qr", [q, r], |outs| linalg::qr(outs, &input.tensor("qr")?, eps, op.1))
        }
        (Problem::Eigh, &[w, v]) => {
            call.tensors(work, "eigh", [w, v], |outs| linalg::eigh(outs, &input.tensor("eigh")?, eps, op.1))
        }
        (Problem::Svd, &[u, s, vt]) => {
            call.tensors(work, "svd", [u, s, vt], |outs| linalg::svd(outs, &input.tensor("svd")?, op.1))
        }
        (_, other) => call.run(0, |_| {
            let problem = format!("has another number of results than {}", other.len());
            Err(ferrox_core::Error::Argument { op: "factor", problem })
        }),
    }
}
