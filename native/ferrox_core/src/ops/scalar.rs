//! Operations on single elements, without tensors: what the loops of a program call (`graph::small_loop`). An
//! element is the first bytes of a word, and the others are zero.

use crate::dtype::Lane;

/// An operation on two elements. One on a single element ignores the second one. It is defined for all elements and
/// does not panic: machine code calls it.
pub type ScalarKernel = fn(u64, u64) -> u64;

/// The element of a word.
#[inline(always)]
pub(in crate::ops) fn element_of<T: Lane>(word: u64) -> T {
    T::load(T::view(&word.to_ne_bytes())[0])
}

/// The word of an element.
#[inline(always)]
pub(in crate::ops) fn word_of<T: Lane>(element: T) -> u64 {
    let mut bytes = [0; 8];
    T::view_mut(&mut bytes)[0] = element.store();
    u64::from_ne_bytes(bytes)
}
