//! Operands of any bytes, whose type together each promotion system is asked for.

#![no_main]

#[path = "../../native/ferrox_core/tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    common::any_promotion::compare(bytes);
});
