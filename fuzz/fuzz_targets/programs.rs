//! Programs of any bytes: each is refused, or gives the same bits with and without fusion.

#![no_main]

#[path = "../../native/ferrox_core/tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    common::any_program::AnyProgram::of(bytes).compare();
});
