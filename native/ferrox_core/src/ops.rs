//! What each family of operations means, one file a family of Nx's
//! documentation. Each takes tensors and writes into the memory it is handed.

pub mod binary;
pub mod cast;
mod compare;
mod complex;
pub mod create;
pub mod dot;
pub mod math;
pub mod reduce;
pub mod shape;
pub mod ternary;
pub mod unary;
