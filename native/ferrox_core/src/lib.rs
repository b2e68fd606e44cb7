//! Types, promotion and tensor kernels of Ferrox; knows nothing of the BEAM.
//!
//! * `dtype`: the types, and the one dispatch from a runtime type to Rust's;
//! * `promotion`: which type results from two, one system a file;
//! * `layout`: shapes and strides; `tensor`: bytes with a type and a layout;
//! * `ops`: what each family of operations means;
//! * `exec`: how loops run: tiles, threads, instruction sets.

pub mod cost;
pub mod dtype;
mod error;
pub mod exec;
pub mod layout;
pub mod ops;
pub mod promotion;
pub mod tensor;

pub use dtype::{DType, Element, Kind, Lane};
pub use error::{Error, Fault};
pub use tensor::{Output, Tensor};
