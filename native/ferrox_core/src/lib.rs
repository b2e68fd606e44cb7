//! Types, promotion and tensor kernels of Ferrox, without the BEAM.
//!
//! * `dtype`: the types, and the dispatch from a type at run time to a Rust type;
//! * `promotion`: the type that results from two types, in a file for each system;
//! * `layout`: shapes and strides; `tensor`: bytes with a type and a layout;
//! * `cost`: estimated costs and machine-tuned thresholds;
//! * `ops`: the families of operations;
//! * `graph`: whole programs of operations, conditions and loops;
//! * `exec`: loops, threads, memory and instruction sets.

pub mod cost;
pub mod dtype;
mod error;
pub mod exec;
pub mod graph;
pub mod layout;
pub mod ops;
pub mod promotion;
pub mod tensor;

pub use dtype::{DType, Element, Kind, Lane};
pub use error::{Error, Fault};
pub use tensor::{Output, Tensor};
