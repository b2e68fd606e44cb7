//! The elements of every window over a tensor, one window after the other:
//! what `Nx.window_reduce/5` hands to its function.

use crate::cost::{self, Cost};
use crate::dtype::sub_byte;
use crate::exec::copy;
use crate::exec::threads::parallel;
use crate::layout::row_major;
use crate::tensor::{Output, Tensor};
use crate::{DType, Error};

const OP: &str = "window_reduce";

/// Windows over the axes of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    /// Elements of a window along each axis.
    pub sizes: &'a [usize],
    /// From one window to the next.
    pub strides: &'a [usize],
    /// From one element of a window to the next.
    pub dilations: &'a [usize],
    /// Elements before and after each axis; fewer than none cut some off.
    pub padding: &'a [(isize, isize)],
}

/// What an element of a window costs.
#[must_use]
pub fn cost(dtype: DType) -> Cost {
    3_000 + sub_byte::cost(&[dtype])
}

/// Writes the elements of each window in row-major order, `pad` where a window
/// reaches past the tensor. The shape of `out` is that of the windows' places
/// followed by that of a window.
///
/// # Errors
///
/// `Error::Argument` if the windows are not given for each axis or don't fit,
/// `Error::Shape` if `out` has another shape, `Error::UnsupportedType` if types
/// differ.
pub fn window_elements(
    out: Output<'_>,
    input: &Tensor<'_>,
    pad: &Tensor<'_>,
    windows: Windows<'_>,
) -> Result<(), Error> {
    let shape = input.shape();
    let (Some(pad), true) = (pad.scalar(), pad.dtype() == input.dtype() && out.dtype == input.dtype()) else {
        return Err(Error::UnsupportedType { op: OP, dtypes: vec![input.dtype(), pad.dtype()] });
    };
    let places = (0..shape.len())
        .map(|axis| places(shape, axis, windows))
        .collect::<Option<Vec<_>>>()
        .filter(|places| windows.fit(places.len()))
        .ok_or_else(|| Error::Argument {
            op: OP,
            problem: format!("{windows:?} don't go together with a tensor of {} axes", shape.len()),
        })?;
    if !out.shape.iter().eq(places.iter().chain(windows.sizes)) {
        let shapes = vec![shape.to_vec(), out.shape.to_vec()];
        return Err(Error::Shape { op: OP, shapes, problem: "don't go together with the windows".into() });
    }
    let window: usize = windows.sizes.iter().product();
    let count: usize = places.iter().product();
    if window * count == 0 {
        return Ok(());
    }
    let strides = row_major(shape);
    let steps: Vec<Steps> = (0..shape.len())
        .map(|axis| Steps::new(shape[axis], places[axis], strides[axis], axis, windows))
        .collect();
    let bytes = copy::dense(OP, input)?;
    let fill = gather_of(input.dtype());
    out.write(OP, |out| {
        let cost = cost::work(window, cost(input.dtype()));
        parallel::fill(out, count, cost, |first, out| fill(&bytes, pad, &steps, first, out));
        Ok(())
    })
}

impl Windows<'_> {
    fn fit(&self, rank: usize) -> bool {
        [self.sizes.len(), self.strides.len(), self.dilations.len(), self.padding.len()] == [rank; 4]
    }
}

/// How many windows fit along an axis.
fn places(shape: &[usize], axis: usize, windows: Windows<'_>) -> Option<usize> {
    let (low, high) = *windows.padding.get(axis)?;
    let (size, stride) = (*windows.sizes.get(axis)?, *windows.strides.get(axis)?);
    let dilation = *windows.dilations.get(axis)?;
    let padded = isize::try_from(shape[axis]).ok()?.checked_add(low)?.checked_add(high)?;
    let reach = size.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    if stride == 0 || dilation == 0 {
        return None;
    }
    Some(usize::try_from(padded).ok()?.checked_sub(reach)? / stride + 1)
}

/// Where the elements of the windows lie along an axis: for each place, the
/// offset of each element of the window, or `OUTSIDE`.
struct Steps {
    size: usize,
    places: usize,
    offsets: Vec<usize>,
}

const OUTSIDE: usize = usize::MAX;

impl Steps {
    fn new(dim: usize, places: usize, distance: isize, axis: usize, windows: Windows<'_>) -> Self {
        let (size, low) = (windows.sizes[axis], windows.padding[axis].0);
        let offset = |place: usize, step: usize| {
            let index = (place * windows.strides[axis] + step * windows.dilations[axis]) as isize - low;
            let inside = (0..dim as isize).contains(&index);
            if inside { (index * distance) as usize } else { OUTSIDE }
        };
        let offsets = (0..places).flat_map(|place| (0..size).map(move |step| offset(place, step))).collect();
        Steps { size, places, offsets }
    }

    fn at(&self, place: usize) -> &[usize] {
        &self.offsets[place * self.size..(place + 1) * self.size]
    }
}

/// Elements, the one outside, where they are, the first window, what to fill.
type Gather = fn(&[u8], &[u8], &[Steps], usize, &mut [u8]);

fn gather_of(dtype: DType) -> Gather {
    match dtype.width() {
        1 => gather::<1>,
        2 => gather::<2>,
        4 => gather::<4>,
        8 => gather::<8>,
        _ => gather::<16>,
    }
}

fn gather<const N: usize>(bytes: &[u8], pad: &[u8], steps: &[Steps], first: usize, out: &mut [u8]) {
    let (elements, pad) = (bytes.as_chunks::<N>().0, pad.as_chunks::<N>().0[0]);
    let out = out.as_chunks_mut::<N>().0;
    let Some((last, outer)) = steps.split_last() else {
        out.fill(elements[0]);
        return;
    };
    let window: usize = steps.iter().map(|steps| steps.size).product();
    for (number, out) in out.chunks_exact_mut(window).enumerate() {
        let mut rest = first + number;
        let inner = last.at(rest % last.places);
        rest /= last.places;
        // Of the other axes, the last first.
        let rows: Vec<&[usize]> = outer
            .iter()
            .rev()
            .map(|steps| {
                let place = rest % steps.places;
                rest /= steps.places;
                steps.at(place)
            })
            .collect();
        for (row, out) in out.chunks_exact_mut(last.size).enumerate() {
            let mut rest = row;
            let start = rows.iter().try_fold(0, |start, offsets| {
                let offset = offsets[rest % offsets.len()];
                rest /= offsets.len();
                (offset != OUTSIDE).then(|| start + offset)
            });
            match start {
                None => out.fill(pad),
                Some(start) => {
                    for (slot, &offset) in out.iter_mut().zip(inner) {
                        *slot = if offset == OUTSIDE { pad } else { elements[start + offset] };
                    }
                }
            }
        }
    }
}
