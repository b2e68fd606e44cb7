//! The NIFs of Fourier transforms and linear algebra, which have options or several results.

use ferrox_core::Error;
use ferrox_core::ops::fft::{self, Transform};
use ferrox_core::ops::linalg::{self, MatrixTransform, Method, NxAlgorithm, Problem, Triangular};
use rustler::{Atom, NifResult, Term};

use crate::entry::bad_argument;
use crate::families::size;
use crate::scheduling::family;
use crate::term::{Dims, List, Operand, Type};

mod atoms {
    rustler::atoms! {
        fft, ifft, rfft, irfft, lu, lu_0_9, qr, qr_0_9, eigh, eigh_0_9, svd, thin_svd, svd_0_9, none, transpose, conjugate, cholesky, determinant
    }
}

/// The value with this name in a list.
fn by_name<T: Copy>(name: Atom, all: &[(Atom, T)]) -> NifResult<T> {
    all.iter().find(|(atom, _)| *atom == name).map(|&(_, value)| value).ok_or_else(bad_argument)
}

/// The Fourier transform with this name.
pub fn transform(name: Atom) -> NifResult<Transform> {
    let transforms = [
        (atoms::fft(), Transform::Forward),
        (atoms::ifft(), Transform::Inverse),
        (atoms::rfft(), Transform::RealForward),
        (atoms::irfft(), Transform::RealInverse),
    ];
    by_name(name, &transforms)
}

type AxisLengths = List<(usize, usize)>;

// `axes` has one `{axis, length}`, or two for a two-dimensional transform.
family!(fourier, |call,
                  name: Atom,
                  dtype: Type,
                  shape: Dims,
                  axes: AxisLengths,
                  eps: f64,
                  input: Operand| {
    let transform = transform(name)?;
    let call = call.named(transform.name());
    let lengths: Vec<usize> = axes.iter().map(|axis| axis.1).collect();
    let work = fft::work(size(&shape.0).max(input.size()), &lengths);
    call.tensor(work, dtype.0, &shape.0, |out| {
        let input = input.tensor(call.op)?;
        match axes[..] {
            [axis] => fft::fft(transform, out, &input, axis, eps),
            [first, second] => fft::fft2(transform, out, &input, [first, second], eps),
            _ => {
                let problem = format!("needs one axis or two, not {}", axes.len());
                Err(Error::Argument { op: call.op, problem })
            }
        }
    })
});

/// The way to solve a system of linear equations.
pub enum Solver {
    General(Method),
    Triangular(Triangular),
}

/// Decodes `:lu`, `:qr`, or `{lower, left_side, transform_a}` for a triangular system.
pub fn solver(term: Term<'_>) -> NifResult<Solver> {
    if let Ok((lower, left_side, transform)) = term.decode() {
        let transforms = [
            (atoms::none(), MatrixTransform::None),
            (atoms::transpose(), MatrixTransform::Transpose),
            (atoms::conjugate(), MatrixTransform::Conjugate),
        ];
        let transform = by_name(transform, &transforms)?;
        return Ok(Solver::Triangular(Triangular { lower, left_side, transform }));
    }
    by_name(term.decode()?, &[(atoms::lu(), Method::Lu), (atoms::qr(), Method::Qr)]).map(Solver::General)
}

// Solves a system of linear equations. The result has the shape of `b`.
family!(solve, |call, how: Term, dtype: Type, a: Operand, b: Operand| {
    let solver = solver(how)?;
    let right = linalg::right_size(a.shape(), b.size());
    let (op, problem) = match solver {
        Solver::General(_) => ("solve", Problem::Solve(right)),
        Solver::Triangular(_) => ("triangular_solve", Problem::Triangular(right)),
    };
    call.named(op).tensor(problem.work(dtype.0, a.shape()), dtype.0, b.shape(), |out| {
        let (a, b) = (a.tensor(op)?, b.tensor(op)?);
        match solver {
            Solver::General(method) => linalg::solve(out, &a, &b, method),
            Solver::Triangular(triangular) => linalg::triangular_solve(out, &a, &b, triangular),
        }
    })
});

/// The factorization with this name: the name in Nx, and the algorithm.
pub fn factorization(name: Atom) -> NifResult<(&'static str, Problem, NxAlgorithm)> {
    let (current, former) = (NxAlgorithm::Current, NxAlgorithm::V0_9);
    let factorizations = [
        (atoms::cholesky(), ("cholesky", Problem::Cholesky, current)),
        (atoms::determinant(), ("determinant", Problem::Determinant, current)),
        (atoms::lu(), ("lu", Problem::Lu, current)),
        (atoms::lu_0_9(), ("lu", Problem::Lu, former)),
        (atoms::qr(), ("qr", Problem::Qr, current)),
        (atoms::qr_0_9(), ("qr", Problem::Qr, former)),
        (atoms::eigh(), ("eigh", Problem::Eigh, current)),
        (atoms::eigh_0_9(), ("eigh", Problem::Eigh, former)),
        (atoms::svd(), ("svd", Problem::Svd, current)),
        (atoms::thin_svd(), ("svd", Problem::Svd, NxAlgorithm::ThinSvd)),
        (atoms::svd_0_9(), ("svd", Problem::Svd, former)),
    ];
    by_name(name, &factorizations)
}

type Results = List<(Type, Dims)>;

// A factorization, by the algorithm of the current Nx or of Nx 0.9. `results` are the types and
// shapes of its results; their number depends on the factorization.
family!(factor, |call, name: Atom, results: Results, eps: f64, input: Operand| {
    let (op, problem, algorithm) = factorization(name)?;
    let (call, work) = (call.named(op), problem.work(input.dtype(), input.shape()));
    let input = || input.tensor(op);
    let results: Vec<_> = results.iter().map(|(dtype, shape)| (dtype.0, &shape.0[..])).collect();
    match (problem, &results[..]) {
        (Problem::Cholesky, &[l]) => call.tensors(work, [l], |[out]| linalg::cholesky(out, &input()?)),
        (Problem::Determinant, &[d]) => call.tensors(work, [d], |[out]| linalg::determinant(out, &input()?)),
        (Problem::Lu, &[p, l, u]) => {
            call.tensors(work, [p, l, u], |outs| linalg::lu(outs, &input()?, algorithm))
        }
        (Problem::Qr, &[q, r]) => {
            call.tensors(work, [q, r], |outs| linalg::qr(outs, &input()?, eps, algorithm))
        }
        (Problem::Eigh, &[w, v]) => {
            call.tensors(work, [w, v], |outs| linalg::eigh(outs, &input()?, eps, algorithm))
        }
        (Problem::Svd, &[u, s, vt]) => {
            call.tensors(work, [u, s, vt], |outs| linalg::svd(outs, &input()?, algorithm))
        }
        (_, other) => {
            let problem = format!("has another number of results than {}", other.len());
            Err(Error::Argument { op: "factor", problem }.into())
        }
    }
});
