//! Choices of types, shapes and options by given bytes.

use ferrox_core::DType::{self, *};
use ferrox_core::layout::Shape;

/// Bytes that choices are made by; zeros at their end.
pub struct Choices<'a> {
    pub bytes: &'a [u8],
    /// Whether the program may be wrong.
    pub wrong: bool,
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut choices = Choices { bytes, wrong: false };
        choices.wrong = choices.byte() % 2 == 1;
        choices
    }

    pub fn byte(&mut self) -> usize {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first.into()
    }

    pub fn below(&mut self, n: usize) -> usize {
        let choice = if n > 256 { self.byte() << 8 | self.byte() } else { self.byte() };
        choice.checked_rem(n).unwrap_or(0)
    }

    pub fn pick<'b, T>(&mut self, items: &'b [T]) -> &'b T {
        &items[self.below(items.len())]
    }

    /// True for one choice of `n`, but not for zero.
    pub fn seldom(&mut self, n: usize) -> bool {
        self.below(n) + 1 == n
    }

    /// True for one choice of `n` in programs that may be wrong.
    pub fn wrong(&mut self, n: usize) -> bool {
        self.wrong && self.seldom(n)
    }

    /// A number that is small, or seldom as large as numbers are.
    pub fn number(&mut self) -> usize {
        if self.wrong(64) {
            return *self.pick(&[
                0,
                1 << 16,
                1 << 31,
                1 << 32,
                isize::MAX as usize,
                usize::MAX,
                usize::MAX / 2,
            ]);
        }
        self.below(5)
    }

    pub fn dtype(&mut self) -> DType {
        if self.below(2) == 0 { *self.pick(&[F32, S32, F64, U8]) } else { *self.pick(DType::ALL) }
    }

    pub fn shape(&mut self) -> Shape {
        let rank = *self.pick(&[0, 1, 1, 2, 2, 2, 3, 4]);
        let mut size = |_| match self.below(8) {
            0..4 => self.below(6) + 1,
            4 | 5 => 1,
            6 => self.below(70) + 1,
            _ => self.number().max(if self.wrong { 0 } else { 1 }),
        };
        (0..rank).map(&mut size).collect()
    }

    pub fn axis(&mut self, rank: usize) -> usize {
        if self.wrong(64) { self.number() } else { self.below(rank) }
    }

    /// Some axes, each once and in order, or seldom any.
    pub fn axes(&mut self, rank: usize) -> Shape {
        if self.wrong(64) {
            return (0..self.below(4)).map(|_| self.number()).collect();
        }
        (0..rank).filter(|_| self.below(2) == 1).collect()
    }

    /// All axes in some order.
    pub fn permutation(&mut self, rank: usize) -> Shape {
        let mut axes: Shape = (0..rank).collect();
        for axis in (1..rank).rev() {
            axes.swap(axis, self.below(axis + 1));
        }
        axes
    }

    /// A list with an entry for each axis, or seldom another number of them.
    pub fn each<L: FromIterator<T>, T>(&mut self, rank: usize, mut entry: impl FnMut(&mut Self) -> T) -> L {
        let count = if self.wrong(64) { self.below(5) } else { rank };
        (0..count).map(|_| entry(self)).collect()
    }

    pub fn step(&mut self) -> usize {
        if self.wrong(64) { self.number() } else { self.below(3) + 1 }
    }

    pub fn padding(&mut self) -> i64 {
        if self.wrong(64) {
            return *self.pick(&[i64::MIN, i64::MAX, -1, 1 << 33, -(1 << 33)]);
        }
        *self.pick(&[0, 0, 1, 2, -1])
    }
}
