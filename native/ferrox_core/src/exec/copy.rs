//! Copies of elements that don't lie next to each other.

pub mod strided;
pub mod transpose;
