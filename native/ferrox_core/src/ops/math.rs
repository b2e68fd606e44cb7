//! Mathematical functions, by the type that they are evaluated in.

pub(super) mod complex;
pub(super) mod f16_lookup;
pub mod f32_fast;
pub mod f32_functions;
pub(super) mod f32_loops;
pub mod f64_functions;
pub(super) mod f64_loops;
pub mod plain_range;

/// How functions of f32 are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Math {
    /// In f64, and rounded once.
    Exact,
    /// In f32 where there is a form for it (`f32_fast`).
    Fast,
}
