//! A NIF that panics on either kind of scheduler, entered as those of `ferrox_nif` are: ExUnit loads
//! this library to see that a panic reaches Elixir as an exception.

#![allow(unsafe_code, reason = "what the macros of rustler expand to")]
#![allow(dead_code, reason = "one NIF needs a part of what enters them")]

#[path = "../../ferrox_nif/src/entry.rs"]
mod entry;

use rustler::{NifResult, Term};

use entry::nif;

nif!("panic_normal", Normal, |_env, [message]| panicked(message.decode()?));
nif!("panic_dirty", DirtyCpu, |_env, [message]| panicked(message.decode()?));

fn panicked<'a>(message: String) -> NifResult<Term<'a>> {
    std::panic::panic_any(message)
}

rustler::init!("Elixir.Ferrox.PanicNif");
