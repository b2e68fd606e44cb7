//! The NIF library of Ferrox: decodes Elixir terms, calls `ferrox_core`, and encodes the results.

#![allow(unsafe_code, reason = "what the macros of rustler expand to")]

mod atom_table;
mod entry;
mod families;
mod graph;
mod linalg;
mod promotion;
mod scheduling;
mod supports;
mod term;

#[global_allocator]
static MEMORY: ferrox_core::exec::memory::recycling_allocator::Recycler =
    ferrox_core::exec::memory::recycling_allocator::Recycler::new();

rustler::init!("Elixir.Ferrox.Native", load = families::load);
