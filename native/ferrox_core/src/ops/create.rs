//! Tensors from nothing but their type and shape.

use crate::exec::elementwise::TILE;
use crate::exec::parallel::{self, Cost};
use crate::lane::conversion;
use crate::tensor::Output;
use crate::{DType, Error};

/// What an element costs.
pub const COST: Cost = 2_000;

/// Fills `out` with integers, the element at `position` being `value(position)`.
fn integers(op: &'static str, out: Output<'_>, value: impl Fn(usize) -> u64 + Sync) -> Result<(), Error> {
    let (dtype, size) = (out.dtype, out.shape.iter().product());
    let width = dtype.width();
    let convert = conversion(DType::U64, dtype);
    out.write(op, |out| {
        parallel::fill(out, size, COST, |start, part| {
            let mut lanes = [[0; 8]; TILE];
            for (tile, part) in part.chunks_mut(TILE * width).enumerate() {
                let lanes = &mut lanes[..part.len() / width];
                for (i, lane) in lanes.iter_mut().enumerate() {
                    *lane = value(start + tile * TILE + i).to_ne_bytes();
                }
                match convert {
                    Some(convert) => convert(lanes.as_flattened(), part),
                    None => part.copy_from_slice(lanes.as_flattened()),
                }
            }
        });
        Ok(())
    })
}

/// `Nx.iota/2`: counts along `axis`, or through the whole tensor.
///
/// # Errors
///
/// `Error::Argument` if the axis is out of range.
pub fn iota(out: Output<'_>, axis: Option<usize>) -> Result<(), Error> {
    let Some(axis) = axis else {
        return integers("iota", out, |position| position as u64);
    };
    let Some(&dim) = out.shape.get(axis) else {
        let problem = format!("axis {axis} is out of range for rank {}", out.shape.len());
        return Err(Error::Argument { op: "iota", problem });
    };
    let inner: usize = out.shape[axis + 1..].iter().product();
    integers("iota", out, |position| (position / inner % dim) as u64)
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
    integers("eye", out, |position| u64::from(position / columns % rows == position % columns))
}
