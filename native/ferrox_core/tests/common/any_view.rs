//! A view of any bytes: transposes, slices, reversals, broadcasts and reshapes of each other, beside the
//! indices of the elements that it should have.

use ferrox_core::DType::{self, *};
use ferrox_core::layout::{self, Layout, Shape};
use ferrox_core::ops::reduce::{ReduceOp, reduce};
use ferrox_core::ops::{binary, cast};
use ferrox_core::{Output, Tensor};

use super::choices::Choices;
use super::indices;
use super::number::to_bytes;

/// The most elements of a view.
const MAX_ELEMENTS: usize = 1 << 12;

/// A view, and for each of its elements the index of the element of the buffer.
struct AnyView {
    layout: Layout,
    elements: Vec<usize>,
}

impl AnyView {
    fn of(choices: &mut Choices<'_>) -> (Shape, Self) {
        let rank = choices.below(5);
        let mut base: Shape = (0..rank).map(|_| choices.below(9) + 1).collect();
        if let (Some(size), 7) = (base.first_mut(), choices.below(8)) {
            *size = choices.below(200) + 1;
        }
        if layout::size(&base).is_none_or(|size| size > MAX_ELEMENTS) {
            base.truncate(2);
        }
        let size: usize = base.iter().product();
        let mut view = AnyView { layout: Layout::contiguous(&base), elements: (0..size).collect() };
        for _ in 0..choices.below(7) {
            view.step(choices);
        }
        (base, view)
    }

    /// The view with some shape, whose elements are these of the view.
    fn select(&mut self, layout: Layout, index: impl Fn(&[usize]) -> Vec<usize>) {
        let shape = self.layout.shape.clone();
        let elements = indices(&layout.shape).map(|of| {
            let index = index(&of);
            let position =
                index.iter().zip(&shape).fold(0, |position, (&index, &size)| position * size + index);
            self.elements[position]
        });
        self.elements = elements.collect();
        self.layout = layout;
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let shape = self.layout.shape.clone();
        let rank = shape.len();
        match choices.below(5) {
            0 => {
                let axes = choices.permutation(rank);
                self.select(self.layout.transpose(&axes), |of| {
                    let mut index = vec![0; rank];
                    axes.iter().zip(of).for_each(|(&axis, &at)| index[axis] = at);
                    index
                });
            }
            1 => {
                let starts: Vec<usize> = shape.iter().map(|&size| choices.below(size)).collect();
                let steps: Vec<usize> = shape.iter().map(|_| choices.below(3) + 1).collect();
                let lengths: Vec<usize> = (0..rank)
                    .map(|axis| choices.below((shape[axis] - starts[axis]).div_ceil(steps[axis])) + 1)
                    .collect();
                self.select(self.layout.slice(&starts, &lengths, &steps), |of| {
                    (0..rank).map(|axis| starts[axis] + of[axis] * steps[axis]).collect()
                });
            }
            2 => {
                let axes = choices.axes(rank);
                self.select(self.layout.reverse(&axes), |of| {
                    let at = |axis: usize| {
                        if axes.contains(&axis) { shape[axis] - 1 - of[axis] } else { of[axis] }
                    };
                    (0..rank).map(at).collect()
                });
            }
            3 => {
                // Each axis of the view goes to one of the result, in any order, with new ones between.
                let more = choices.below(3);
                let order = choices.permutation(rank + more);
                let axes = &order[..rank];
                let mut result: Vec<usize> = (0..rank + more).map(|_| choices.below(4) + 1).collect();
                for (&axis, &size) in axes.iter().zip(&shape) {
                    if size != 1 {
                        result[axis] = size;
                    }
                }
                if layout::size(&result).is_none_or(|size| size > MAX_ELEMENTS) {
                    return;
                }
                let layout = self.layout.broadcast(&result, axes).expect("sizes that match");
                self.select(layout, |of| {
                    axes.iter()
                        .zip(&shape)
                        .map(|(&axis, &size)| if size == 1 { 0 } else { of[axis] })
                        .collect()
                });
            }
            _ => {
                let mut rest: usize = shape.iter().product();
                let mut result = Shape::new();
                while rest > 1 && result.len() < 5 {
                    let factor = choices.below(rest.min(256)) + 1;
                    let factor = if rest.is_multiple_of(factor) { factor } else { rest };
                    result.push(factor);
                    rest /= factor;
                }
                if rest == 1
                    && let Some(layout) = self.layout.reshape(&result)
                {
                    self.layout = layout;
                }
            }
        }
    }
}

/// Compares the elements of the view that the bytes choose, and results of operations on it, with what they
/// should be.
///
/// # Panics
///
/// If they differ.
pub fn compare(bytes: &[u8]) {
    let choices = &mut Choices { bytes, wrong: false };
    let (base, view) = AnyView::of(choices);
    let AnyView { layout, elements } = &view;
    assert_eq!(layout.size(), elements.len());
    for (position, &element) in elements.iter().enumerate() {
        let index = layout::index_of(&layout.shape, &layout.strides, layout.offset, position);
        assert_eq!(index, element as isize, "{layout:?}, element {position}");
    }
    let dtype = *choices.pick(&[U8, S16, U32, F32, S64, C64, C128, U4, S2]);
    let modulus = 1_u128 << dtype.bits().min(64);
    // Numbers as bits: those of floats may be any.
    let stored: Vec<u128> = (0..base.iter().product()).map(|index: usize| index as u128 % modulus).collect();
    let bytes = to_bytes(&stored, dtype);
    let buffer = Tensor::new("test", dtype, &base, &bytes).expect("a buffer of its shape");
    let tensor = buffer.view(layout.clone());
    let of_view: Vec<u128> = elements.iter().map(|&element| stored[element]).collect();
    let result = |dtype: DType, shape: &[usize], run: &dyn Fn(Output<'_>)| -> Vec<u8> {
        let mut out = to_bytes(&vec![0; shape.iter().product()], dtype);
        run(Output::new("test", dtype, shape, &mut out).expect("memory of its shape"));
        out
    };
    let copied = result(dtype, &layout.shape, &|out| cast::as_type(out, &tensor).expect("a copy"));
    assert_eq!(copied, to_bytes(&of_view, dtype), "copy of {dtype} {layout:?} of {base:?}");
    if dtype.is_integer() && !dtype.is_packed() {
        let low = |numbers: Vec<u128>| numbers.into_iter().map(|number| number % modulus).collect::<Vec<_>>();
        let doubled = result(dtype, &layout.shape, &|out| {
            binary::binary(binary::BinaryOp::Add, out, &tensor, &tensor).expect("a sum");
        });
        let expected = low(of_view.iter().map(|number| number * 2).collect());
        assert_eq!(doubled, to_bytes(&expected, dtype), "sum of {dtype} {layout:?} of {base:?}");
        let axes = choices.axes(layout.rank());
        let kept: Vec<usize> = (0..layout.rank()).filter(|axis| !axes.contains(axis)).collect();
        let shape: Vec<usize> = kept.iter().map(|&axis| layout.shape[axis]).collect();
        let mut sums = vec![0_u128; shape.iter().product()];
        for (index, number) in indices(&layout.shape).zip(&of_view) {
            let at = kept.iter().zip(&shape).fold(0, |at, (&axis, &size)| at * size + index[axis]);
            sums[at] += number;
        }
        let folded =
            result(dtype, &shape, &|out| reduce(ReduceOp::Sum, out, &tensor, &axes).expect("a fold"));
        assert_eq!(folded, to_bytes(&low(sums), dtype), "fold of {dtype} {layout:?} of {base:?}, {axes:?}");
    }
}
