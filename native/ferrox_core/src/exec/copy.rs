//! Copies of elements that don't lie next to each other.
//!
//! Problem: an element at a time, a copy is bound by instructions where the next
//! element is near. Technique: rows of a small step are loops that the compiler
//! makes vectors of.

use super::simd::{Vectorized, dispatch};

/// Steps up to this one have loops of their own.
pub const NEAR: usize = 4;

/// Copies every `step`-th element from the first one on, backwards if `step` is
/// negative.
pub fn row<const N: usize>(source: &[[u8; N]], first: usize, step: isize, out: &mut [[u8; N]]) {
    if out.is_empty() {
        return;
    }
    match step {
        1 => out.copy_from_slice(&source[first..first + out.len()]),
        0 => out.fill(source[first]),
        -1 => dispatch(Reversed { source: &source[first + 1 - out.len()..=first], out }),
        2 => dispatch(Every::<N, 2> { source: &source[first..], out }),
        3 => dispatch(Every::<N, 3> { source: &source[first..], out }),
        4 => dispatch(Every::<N, 4> { source: &source[first..], out }),
        _ => {
            let mut place = first as isize;
            for slot in out {
                *slot = source[place as usize];
                place += step;
            }
        }
    }
}

struct Reversed<'a, const N: usize> {
    source: &'a [[u8; N]],
    out: &'a mut [[u8; N]],
}

impl<const N: usize> Vectorized for Reversed<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // What is written upwards is twice as fast as what is written downwards.
        for (slot, &element) in self.out.iter_mut().zip(self.source.iter().rev()) {
            *slot = element;
        }
    }
}

struct Every<'a, const N: usize, const STEP: usize> {
    source: &'a [[u8; N]],
    out: &'a mut [[u8; N]],
}

impl<const N: usize, const STEP: usize> Vectorized for Every<'_, N, STEP> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (groups, _) = self.source.as_chunks::<STEP>();
        let whole = groups.len().min(self.out.len());
        for (slot, group) in self.out[..whole].iter_mut().zip(groups) {
            *slot = group[0];
        }
        // The last group may lack what comes after its first element.
        for (slot, element) in
            self.out[whole..].iter_mut().zip(self.source[whole * STEP..].iter().step_by(STEP))
        {
            *slot = *element;
        }
    }
}
