//! Chains of views of any bytes, beside indices that are computed one by one.

#![no_main]

#[path = "../../native/ferrox_core/tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    common::any_view::compare(bytes);
});
