//! Tensors made of a type and a shape alone: `Nx.iota/2` and `Nx.eye/2`.

use crate::cost::{self, DIAGONAL_ELEMENT_COST, IOTA_ELEMENT_COST, TILE_ELEMENTS, Work};
use crate::exec::convert::{conversion, convert_all};
use crate::exec::threads::parallel;
use crate::layout;
use crate::tensor::Output;
use crate::{DType, Error};

/// Fills `out` with integers, which `count` writes from a position on.
fn write_integers(out: Output<'_>, count: impl Fn(usize, &mut [[u8; 8]]) + Sync) -> Result<(), Error> {
    let (dtype, size) = (out.dtype, out.shape.iter().product());
    let width = dtype.width();
    let convert = conversion(DType::U64, dtype);
    out.write("iota", |out| {
        parallel::fill(out, size, IOTA_ELEMENT_COST, |start, part| {
            let mut lanes = [[0; 8]; TILE_ELEMENTS];
            for (tile, part) in part.chunks_mut(TILE_ELEMENTS * width).enumerate() {
                let lanes = &mut lanes[..part.len() / width];
                count(start + tile * TILE_ELEMENTS, lanes);
                match convert {
                    Some(convert) => convert(lanes.as_flattened(), part),
                    None => part.copy_from_slice(lanes.as_flattened()),
                }
            }
        });
        Ok(())
    })
}

/// Writes `first`, `first + 1` and so on.
fn count_up(first: usize, lanes: &mut [[u8; 8]]) {
    for (i, lane) in lanes.iter_mut().enumerate() {
        *lane = ((first + i) as u64).to_ne_bytes();
    }
}

/// `Nx.iota/2`: counts along `axis`, or through the whole tensor without one.
///
/// # Errors
///
/// `Error::Argument` if the axis is out of range.
pub fn iota(out: Output<'_>, axis: Option<usize>) -> Result<(), Error> {
    let Some(axis) = axis else {
        return write_integers(out, count_up);
    };
    let Some(&dim) = out.shape.get(axis) else {
        let problem = format!("axis {axis} is out of range for rank {}", out.shape.len());
        return Err(Error::Argument { op: "iota", problem });
    };
    let inner: usize = out.shape[axis + 1..].iter().product();
    write_integers(out, |position, mut lanes| {
        let (mut value, mut written) = (position / inner % dim, position % inner);
        while !lanes.is_empty() {
            // The rest of the axis, or of the elements with one index.
            let run = if inner == 1 { dim - value } else { inner - written };
            let (part, rest) = lanes.split_at_mut(run.min(lanes.len()));
            if inner == 1 {
                count_up(value, part);
                value = 0;
            } else {
                part.fill((value as u64).to_ne_bytes());
                value = (value + 1) % dim;
            }
            (lanes, written) = (rest, 0);
        }
    })
}

/// The work of `eye` for a shape.
#[must_use]
pub fn eye_work(shape: &[usize]) -> Work {
    let size = |shape: &[usize]| layout::size(shape).unwrap_or(usize::MAX);
    let ones = match shape {
        [batch @ .., rows, columns] => size(batch).saturating_mul(*rows.min(columns)),
        _ => 0,
    };
    cost::work(size(shape), IOTA_ELEMENT_COST).saturating_add(cost::work(ones, DIAGONAL_ELEMENT_COST))
}

/// `Nx.eye/2`: ones where the last two indices are equal, else zeros.
///
/// # Errors
///
/// `Error::Argument` if there are fewer than two axes.
pub fn eye(out: Output<'_>) -> Result<(), Error> {
    let &[.., rows, columns] = out.shape else {
        let problem = format!("needs at least two axes, got {}", out.shape.len());
        return Err(Error::Argument { op: "eye", problem });
    };
    let width = out.dtype.width();
    let mut one = [0; 16];
    let one = &mut one[..width];
    convert_all(DType::U64, &1u64.to_ne_bytes(), out.dtype, 1, one);
    out.write("eye", |out| {
        // Zero has no bits set in any type.
        out.fill(0);
        // An empty matrix has no chunks.
        for matrix in out.chunks_exact_mut((rows * columns * width).max(1)) {
            for row in 0..rows.min(columns) {
                matrix[row * (columns + 1) * width..][..width].copy_from_slice(one);
            }
        }
        Ok(())
    })
}
