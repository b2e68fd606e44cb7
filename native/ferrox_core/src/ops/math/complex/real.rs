//! The functions of real numbers that complex functions are made of: those of tensors of f64, for one
//! number.

#![allow(clippy::inline_always, reason = "the functions are compiled for an instruction set")]

use crate::ops::math::f32_functions::Arithmetic;
use crate::ops::math::f64_loops::{Atan2, Cos, Exp, Log, Sin};
use crate::ops::math::{f64_functions, f64_loops};

#[inline]
pub fn exp(x: f64) -> f64 {
    f64_loops::element::<Exp>(x, 0.0)
}

#[inline]
pub fn log(x: f64) -> f64 {
    f64_loops::element::<Log>(x, 0.0)
}

#[inline]
pub fn sin(x: f64) -> f64 {
    f64_loops::element::<Sin>(x, 0.0)
}

#[inline]
pub fn cos(x: f64) -> f64 {
    f64_loops::element::<Cos>(x, 0.0)
}

#[inline]
pub fn sin_cos(x: f64) -> (f64, f64) {
    f64_loops::sin_cos(x)
}

#[inline]
pub fn atan2(y: f64, x: f64) -> f64 {
    f64_loops::element::<Atan2>(y, x)
}

#[inline]
pub fn expm1(x: f64) -> f64 {
    f64_functions::element::<Expm1>(x)
}

#[inline]
pub fn log1p(x: f64) -> f64 {
    f64_functions::element::<Log1p>(x)
}

struct Expm1;

impl f64_functions::Function for Expm1 {
    #[inline(always)]
    fn apply<A: Arithmetic>(x: f64) -> f64 {
        f64_functions::expm1::<A>(x)
    }
}

struct Log1p;

impl f64_functions::Function for Log1p {
    #[inline(always)]
    fn apply<A: Arithmetic>(x: f64) -> f64 {
        f64_functions::log1p::<A>(x)
    }
}
