//! Products of matrices and vectors: `strategy` chooses a technique, `product` runs it, and each of
//! the other files holds one technique or what the techniques share (`matrix`, `ring`).

pub mod blocked;
pub mod gemv;
#[cfg(target_arch = "x86_64")]
mod gemv_simd;
pub mod in_order;
pub mod indirect;
#[cfg(target_arch = "x86_64")]
mod integer;
pub mod matrix;
pub mod mixed;
pub mod product;
pub(in crate::exec) mod ring;
pub mod small;
pub mod strategy;
