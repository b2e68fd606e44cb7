//! Memory for intermediate results, and stores of large results.

pub mod recycling_allocator;
pub mod streaming_stores;
