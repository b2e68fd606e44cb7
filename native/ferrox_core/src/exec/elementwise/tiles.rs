//! Computes a result tile by tile: operands are gathered and converted into buffers, the kernel
//! runs, and its results are converted to the type of the result.

use smallvec::SmallVec;

use super::scratch::{take, with_scratch};
use super::source::{Prepared, Strided};
use super::value_narrowing::{Narrowed, NarrowedScalars};
use super::{MAX_ELEMENT_BYTES, MAX_OPERANDS, Operand, Plan, Source};
use crate::Fault;
use crate::cost::{MIN_UNGATHERED_ROW_ELEMENTS, TILE_ELEMENTS};
use crate::exec::convert::Conversion;
use crate::exec::copy::gather;
use crate::layout::{self, Layout};

/// A plan with its operands.
pub(super) struct Tiles<'a> {
    plan: &'a Plan,
    sources: [Source<'a>; MAX_OPERANDS],
    arity: usize,
    narrowed: Option<Narrowed<'a>>,
    /// The maximum number of elements for one call of the kernel: a tile if an operand or the
    /// result needs a buffer, else unlimited.
    longest: usize,
    /// The number of elements in a row of the collapsed shape, if calls of the kernel must not go
    /// beyond a row.
    row: Option<usize>,
}

/// Memory for one tile of an operand.
#[derive(Default)]
struct Buffers<'b> {
    gathered: &'b mut [u8],
    converted: &'b mut [u8],
}

/// Memory for what `Tiles::new` prepares of each operand once.
pub(super) type AllPrepared<'a> = ([Prepared<'a>; MAX_OPERANDS], NarrowedScalars);

impl<'a> Tiles<'a> {
    /// The tiles of a result of the given shape. `prepared` keeps what is prepared of each operand.
    pub(super) fn new<'s: 'a>(
        plan: &'a Plan,
        shape: &[usize],
        sources: &[Source<'s>],
        (prepared, narrowed_scalars): &'a mut AllPrepared<'s>,
    ) -> Self {
        let size: usize = shape.iter().product();
        let mut resolved = [Source::Scalar(&[]); MAX_OPERANDS];
        let is_plain = !sources.iter().any(|source| matches!(source, Source::Broadcast(_)));
        let mut inner = size;
        let operands = resolved.iter_mut().zip(sources).zip(plan.loads).zip(prepared);
        if is_plain {
            for (((resolved, source), load), prepared) in operands {
                *resolved = source.converted(load, prepared);
            }
        } else {
            let layouts: SmallVec<[Layout; MAX_OPERANDS]> =
                sources.iter().map(|source| source.layout(shape)).collect();
            let strides: SmallVec<[&[isize]; MAX_OPERANDS]> =
                layouts.iter().map(|layout| &*layout.strides).collect();
            let (dims, strides) = layout::collapse_all(shape, &strides);
            for ((operand, layout), strides) in operands.zip(&layouts).zip(strides) {
                let (((resolved, source), load), prepared) = operand;
                let layout = Layout { shape: dims.clone(), strides, offset: layout.offset };
                *resolved = source.collapsed(layout, size, load, prepared);
            }
            inner = dims.last().copied().unwrap_or(1);
        }
        let narrowing = plan.narrowing.as_ref().filter(|_| is_plain);
        let narrowed = narrowing.and_then(|narrowing| Narrowed::new(narrowing, sources, narrowed_scalars));
        let used = &resolved[..sources.len()];
        let is_strided = used.iter().any(|source| matches!(source, Source::Strided(_)));
        let row = (is_strided && inner >= MIN_UNGATHERED_ROW_ELEMENTS).then_some(inner);
        let needs_buffers = plan.store.is_some()
            || used.iter().zip(&plan.loads).any(|(source, load)| match source {
                Source::Dense { .. } => load.is_some(),
                Source::Scalar(_) => false,
                Source::Strided(strided) => {
                    let step = strided.layout.strides.last();
                    row.is_none() || load.is_some() || !matches!(step, Some(0 | 1) | None)
                }
                Source::Periodic(_) | Source::Broadcast(_) => true,
            });
        let longest = if needs_buffers { TILE_ELEMENTS } else { usize::MAX };
        Tiles { plan, sources: resolved, arity: sources.len(), narrowed, longest, row }
    }

    /// Computes the elements of the result from `start` on until `out` is full.
    pub(super) fn run(&self, start: usize, out: &mut [u8]) -> Result<(), Fault> {
        let Plan { loads, store, .. } = self.plan;
        let lanes = loads.iter().chain([store]).flatten().map(|conversion| conversion.lane);
        let length = MAX_OPERANDS * TILE_ELEMENTS * MAX_ELEMENT_BYTES
            + lanes.map(|lane| TILE_ELEMENTS * lane).sum::<usize>();
        with_scratch(length, |memory| self.run_in(memory, start, out))
    }

    /// `run` in the given memory: a tile of each operand as it is stored and of its conversion, and
    /// of the results of the kernel.
    fn run_in(&self, mut memory: &mut [u8], start: usize, out: &mut [u8]) -> Result<(), Fault> {
        let Plan { loads, width, .. } = self.plan;
        // A power of two: dividing by it takes as long as a few elements.
        let elements = |bytes: usize| bytes >> width.trailing_zeros();
        let sources = &self.sources[..self.arity];
        let mut buffers: [Buffers<'_>; MAX_OPERANDS] = Default::default();
        for ((source, load), buffers) in sources.iter().zip(loads).zip(&mut buffers) {
            if let Source::Strided(strided) = source {
                buffers.gathered = take(&mut memory, TILE_ELEMENTS * strided.width);
            }
            if let Some(load) = load {
                buffers.converted = take(&mut memory, TILE_ELEMENTS * load.lane);
            }
        }
        let mut narrowed = self.narrowed.as_ref();
        let mut position = start;
        let mut rest = out;
        while !rest.is_empty() {
            let in_row = self.row.map_or(usize::MAX, |row| row - position % row);
            let length = elements(rest.len()).min(self.longest).min(in_row);
            let (head, tail) = rest.split_at_mut(length * width);
            rest = tail;
            if let Some(tile) = narrowed {
                let converted = buffers.iter_mut().map(|buffers| &mut *buffers.converted);
                if tile.run(position, length, converted, head)? {
                    position += length;
                    continue;
                }
                // If one value is too large, others probably are, too.
                narrowed = None;
            }
            let mut operands = [Operand::Scalar(&[]); MAX_OPERANDS];
            for (((source, load), buffers), operand) in
                sources.iter().zip(loads).zip(&mut buffers).zip(&mut operands)
            {
                *operand = self.fetch(source, *load, position, length, buffers);
            }
            self.plan.compute(length, head, &operands[..sources.len()], memory)?;
            position += length;
        }
        Ok(())
    }

    /// The `length` elements of an operand from `position` on, in the kernel's type.
    fn fetch<'b>(
        &self,
        source: &'b Source<'a>,
        load: Option<Conversion>,
        position: usize,
        length: usize,
        buffers: &'b mut Buffers<'_>,
    ) -> Operand<'b> {
        match source {
            Source::Scalar(element) => Operand::Scalar(element),
            Source::Dense { bytes, width } => {
                let elements = &bytes[position * width..][..length * width];
                Operand::Slice(converted(elements, length, load, buffers.converted))
            }
            Source::Periodic(pattern) => Operand::Slice(pattern.at(position, length)),
            Source::Strided(strided) => {
                let Strided { bytes, width, layout } = strided;
                let step = if self.row.is_some() { layout.strides.last().copied() } else { None };
                if let Some(step @ (0 | 1)) = step {
                    let index = layout::index_of(&layout.shape, &layout.strides, layout.offset, position);
                    let count = if step == 1 { length } else { 1 };
                    let elements = &bytes[index as usize * width..][..count * width];
                    let elements = converted(elements, count, load, buffers.converted);
                    return if step == 1 { Operand::Slice(elements) } else { Operand::Scalar(elements) };
                }
                let elements = &mut buffers.gathered[..length * width];
                gather(*width, bytes, layout, position, elements);
                Operand::Slice(converted(elements, length, load, buffers.converted))
            }
            Source::Broadcast(_) => unreachable!("`new` has resolved it"),
        }
    }
}

/// The first `length` elements themselves, or these elements converted into `buffer` if there is a
/// `load`.
#[inline]
pub(super) fn converted<'b>(
    elements: &'b [u8],
    length: usize,
    load: Option<Conversion>,
    buffer: &'b mut [u8],
) -> &'b [u8] {
    let Some(Conversion { lane, convert }) = load else { return elements };
    let out = &mut buffer[..length * lane];
    convert(elements, out);
    out
}
