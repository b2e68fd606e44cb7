//! Machine code that is made for a program: of loops over small values (`small_loop`), and of elementwise
//! operations that are computed together (`cluster`).

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) mod executable;
#[cfg(target_arch = "aarch64")]
mod instruction_cache;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) mod processor;

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether programs get machine code where they can.
static IS_WANTED: AtomicBool = AtomicBool::new(true);

/// Sets whether programs that are made from now on get machine code, on processors for which there is one, or
/// are interpreted. Both give the same bits.
pub fn set_machine_code(wanted: bool) {
    IS_WANTED.store(wanted, Ordering::Relaxed);
}

/// Whether programs get machine code: `used`, `off` (by [`set_machine_code`]), `refused` (the system allows no
/// memory with new instructions) or `unsupported` (by Ferrox, for this processor).
#[must_use]
pub fn machine_code() -> &'static str {
    match is_possible() {
        None => "unsupported",
        Some(_) if !is_wanted() => "off",
        Some(true) => "used",
        Some(false) => "refused",
    }
}

/// Whether programs get machine code.
pub(super) fn is_used() -> bool {
    is_wanted() && is_possible() == Some(true)
}

fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Relaxed)
}

/// Whether the system allows memory with new instructions; `None` if there are none for this processor.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn is_possible() -> Option<bool> {
    // The system is asked once: this is part of each event of an operation.
    static IS_ALLOWED: std::sync::LazyLock<bool> =
        std::sync::LazyLock::new(|| executable::Executable::new(&[0; 4]).is_some());
    cfg!(target_endian = "little").then(|| *IS_ALLOWED)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn is_possible() -> Option<bool> {
    None
}
