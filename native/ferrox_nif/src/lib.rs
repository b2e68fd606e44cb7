//! The NIF library of Ferrox: Elixir's terms in, `ferrox_core` called, terms out.

#![allow(unsafe_code, reason = "what the macros of rustler expand to")]

mod call;
mod entry;
mod families;
mod known;
mod linalg;
mod nifs;
mod promotion;
mod support;
mod term;

#[global_allocator]
static MEMORY: ferrox_core::exec::memory::Recycler = ferrox_core::exec::memory::Recycler::new();

rustler::init!("Elixir.Ferrox.Native", load = families::load);
