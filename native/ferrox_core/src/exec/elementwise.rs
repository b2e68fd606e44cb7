//! Drives a kernel over tiles of up to three operands.
//!
//! Problem: every mix of types and every broadcast, without compiling a loop
//! for each. Technique: layouts are collapsed together; then each stretch of
//! the output is handed to the kernel as contiguous slices or scalars.
//! Operands that already lie so are passed on as they are; the others are
//! gathered and converted a tile at a time, into memory that stays in the
//! first-level cache. Kernels and conversions are function pointers, called
//! once a stretch.

use std::cell::Cell;

use smallvec::SmallVec;

use crate::Fault;
use crate::exec::memory::streaming_stores;
use crate::exec::simd::CACHE_LINE_BYTES;
use crate::exec::threads::parallel;
use crate::exec::threads::parallel::Cost;
use crate::layout::{self, Layout, Strides};

/// Elements of a tile: four buffers of 8-byte elements fill 32 KB.
pub const TILE: usize = 1024;

/// Elements that a kernel computes together which has results of steps in between: those lie in the
/// first-level cache, and few elements take the longer loop for the sake of one. (`kernels`: exp_f32,
/// exp_f64.)
pub const CHUNK: usize = 256;

/// Rows at least this long are handed to the kernel one by one; shorter ones
/// are gathered into tiles.
const MIN_ROW: usize = 128;

/// A pattern that repeats after at most this many elements is laid out once.
const MAX_PERIOD: usize = 8192;

/// Results of at most this many bytes may go to the kernel without planning, if
/// their operands are what it computes with.
pub const FEW_BYTES: usize = 4096;

/// What a kernel reads: as many elements as the output has, or one for all.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// One element for each of the output.
    Slice(&'a [u8]),
    /// One element for all.
    Scalar(&'a [u8]),
}

impl Operand<'_> {
    /// `size` elements or the one, converted into a buffer.
    fn converted<'b>(self, conversion: Conversion, size: usize, buffer: &'b mut Buffer) -> Operand<'b> {
        let Conversion { lane, convert } = conversion;
        match self {
            Operand::Slice(bytes) => {
                buffer.resize(size * lane, 0);
                convert(bytes, buffer);
                Operand::Slice(buffer)
            }
            Operand::Scalar(bytes) => {
                buffer.resize(lane, 0);
                convert(bytes, buffer);
                Operand::Scalar(buffer)
            }
        }
    }
}

/// Computes a stretch of the output.
pub type Kernel = fn(&mut [u8], &[Operand<'_>]) -> Result<(), Fault>;

/// Converts elements of one type to another: from, to.
pub type Convert = fn(&[u8], &mut [u8]);

/// `Convert` if every element is a value of the other type; answers whether it is.
pub type ConvertExactly = fn(&[u8], &mut [u8]) -> bool;

/// Computes the same sooner, where all elements of a tile are values of a narrower type than the
/// kernel's, and the results as well.
#[derive(Clone, Copy, Debug)]
pub struct Narrow {
    /// Computes with that type.
    pub kernel: Kernel,
    /// Bytes of an element of it.
    pub lane: usize,
    /// To that type; none for an operand that is of it.
    pub loads: [Option<ConvertExactly>; 2],
}

/// Converted to what the kernel computes with, unless it is that already.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// Bytes of an element before or after, the one in the kernel's type.
    pub lane: usize,
    /// How.
    pub convert: Convert,
}

/// An operand, broadcast to the output's shape.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The bytes that hold the elements.
    pub bytes: &'a [u8],
    /// Bytes of an element.
    pub width: usize,
    /// Where the elements are.
    pub access: Access,
    /// To the kernel's type.
    pub load: Option<Conversion>,
}

/// Where the elements of an operand are, one for each of the output.
#[derive(Clone, Debug)]
pub enum Access {
    /// In row-major order, from the first byte on.
    Dense,
    /// One element for all, the first.
    Scalar,
    /// By a layout of the output's shape.
    Strided(Box<Layout>),
}

impl Input<'_> {
    fn strides(&self, shape: &[usize]) -> Strides {
        match &self.access {
            Access::Dense => layout::row_major(shape),
            Access::Scalar => Strides::from_elem(0, shape.len()),
            Access::Strided(layout) => Strides::from_slice(&layout.strides),
        }
    }

    fn offset(&self) -> usize {
        if let Access::Strided(layout) = &self.access { layout.offset } else { 0 }
    }
}

/// Where the results go: dense, row-major.
#[derive(Debug)]
pub struct Target<'a> {
    /// Overwritten, never read.
    pub bytes: &'a mut [u8],
    /// From the kernel's type.
    pub store: Option<Conversion>,
}

/// How an operand is brought before the kernel.
enum Source<'a> {
    /// Lies as the output does.
    Dense { bytes: &'a [u8], width: usize, load: Option<Conversion> },
    /// One element, converted.
    Scalar(SmallVec<[u8; 16]>),
    /// Repeats after `period` elements: that many, converted, and a tile more,
    /// so that a tile may start anywhere.
    Periodic { pattern: Vec<u8>, lane: usize, period: usize },
    /// Anything else.
    Strided { bytes: &'a [u8], width: usize, layout: Layout, load: Option<Conversion> },
}

/// Computes `target` by calling `kernel`, or that of `narrow`, on stretches of the inputs, which
/// have its shape, in parallel if that pays.
///
/// # Errors
///
/// What the kernel found wrong with an element.
pub fn run(
    shape: &[usize],
    target: Target<'_>,
    inputs: &[Input<'_>],
    kernel: Kernel,
    narrow: Option<Narrow>,
    cost: Cost,
) -> Result<(), Fault> {
    let size: usize = shape.iter().product();
    if size == 0 {
        return Ok(());
    }
    // By far the most frequent case, and the one where a microsecond counts.
    let mut operands = SmallVec::<[Operand<'_>; 3]>::new();
    if target.store.is_none() {
        for input in inputs {
            let Some(operand) = direct(input, size) else { break };
            operands.push(operand);
        }
    }
    if operands.len() == inputs.len() {
        if !parallel::is_worth_sharing(size, cost) && target.bytes.len() < streaming_stores::LINED {
            return kernel(target.bytes, &operands);
        }
        let dense = operands.iter().zip(inputs).filter_map(|(operand, input)| match operand {
            Operand::Slice(bytes) => Some((*bytes, input.width)),
            Operand::Scalar(_) => None,
        });
        let lead =
            streaming_stores::lead([(&*target.bytes, target.bytes.len() / size)].into_iter().chain(dense));
        return streaming_stores::try_fill(target.bytes, size, cost, lead, |start, out| {
            let part: SmallVec<[Operand<'_>; 3]> = operands
                .iter()
                .zip(inputs)
                .map(|(operand, input)| match operand {
                    Operand::Slice(bytes) => Operand::Slice(&bytes[start * input.width..]),
                    scalar => *scalar,
                })
                .collect();
            kernel(out, &part)
        });
    }
    if size <= FEW {
        let mut buffers: [Buffer; 3] = Default::default();
        let elements = inputs.iter().zip(&mut buffers).map(|(input, buffer)| gathered(input, size, buffer));
        let operands: SmallVec<[Operand<'_>; 3]> = elements.collect();
        let loads: SmallVec<[Option<Conversion>; 3]> = inputs.iter().map(|input| input.load).collect();
        return few(size, target, &operands, &loads, kernel);
    }
    let mut inner = size;
    let plain = inputs.iter().all(|input| !matches!(input.access, Access::Strided(_)));
    let sources: SmallVec<[Source<'_>; 3]> = if plain {
        inputs.iter().map(|input| plain_source(input, size)).collect()
    } else {
        let strides: SmallVec<[Strides; 3]> = inputs.iter().map(|i| i.strides(shape)).collect();
        let strides: SmallVec<[&[isize]; 3]> = strides.iter().map(|s| s.as_slice()).collect();
        let (dims, strides) = layout::collapse_all(shape, &strides);
        inner = dims.last().copied().unwrap_or(1);
        inputs
            .iter()
            .zip(strides)
            .map(|(input, strides)| {
                let layout = Layout { shape: dims.clone(), strides, offset: input.offset() };
                source(input, layout, size)
            })
            .collect()
    };
    let width = target.bytes.len() / size;
    let narrow = narrow.filter(|_| plain).and_then(|narrow| Narrowed::new(narrow, inputs, size));
    let plan = Plan::new(inner, sources, width, target.store, kernel, narrow);
    streaming_stores::try_fill(
        target.bytes,
        size,
        cost,
        streaming_stores::lead([(&*target.bytes, width)]),
        |start, out| plan.run(start, out),
    )
}

/// So few elements fit a buffer on the stack.
pub const FEW: usize = 32;
/// Memory for them.
pub(crate) type Buffer = SmallVec<[u8; 16 * FEW]>;

/// `run` for a few elements of operands that lie as the result does or are one, at most `FEW` where
/// something is converted: at once, since planning would take longer than the work.
///
/// # Errors
///
/// What the kernel found wrong with an element.
#[inline]
pub fn few(
    size: usize,
    target: Target<'_>,
    operands: &[Operand<'_>],
    loads: &[Option<Conversion>],
    kernel: Kernel,
) -> Result<(), Fault> {
    if target.store.is_none() && loads.iter().all(Option::is_none) {
        return kernel(target.bytes, operands);
    }
    let mut buffers: [Buffer; 3] = Default::default();
    let mut converted = SmallVec::<[Operand<'_>; 3]>::new();
    for ((operand, load), buffer) in operands.iter().zip(loads).zip(&mut buffers) {
        converted.push(load.map_or(*operand, |conversion| operand.converted(conversion, size, buffer)));
    }
    let operands = &converted;
    match target.store {
        None => kernel(target.bytes, operands),
        Some(Conversion { lane, convert }) => {
            let mut computed: Buffer = SmallVec::from_elem(0, size * lane);
            kernel(&mut computed, operands).map(|()| convert(&computed, target.bytes))
        }
    }
}

/// The elements of an operand, brought together in a buffer where they lie apart.
fn gathered<'a>(input: &'a Input<'_>, size: usize, buffer: &'a mut Buffer) -> Operand<'a> {
    match &input.access {
        Access::Dense => Operand::Slice(&input.bytes[..size * input.width]),
        Access::Scalar => Operand::Scalar(&input.bytes[..input.width]),
        Access::Strided(layout) => {
            buffer.resize(size * input.width, 0);
            layout::gather(input.width, input.bytes, layout, 0, buffer);
            Operand::Slice(buffer)
        }
    }
}

/// The operand as it is, if it lies as a dense output does or is a scalar, and
/// the kernel computes with its type.
#[inline]
fn direct<'a>(input: &Input<'a>, size: usize) -> Option<Operand<'a>> {
    match &input.access {
        _ if input.load.is_some() => None,
        Access::Dense => Some(Operand::Slice(&input.bytes[..size * input.width])),
        Access::Scalar => Some(Operand::Scalar(&input.bytes[..input.width])),
        Access::Strided(_) => None,
    }
}

/// That of an input without a layout.
fn plain_source<'a>(input: &Input<'a>, size: usize) -> Source<'a> {
    let Input { bytes, width, load, .. } = *input;
    if !matches!(input.access, Access::Scalar) {
        return Source::Dense { bytes: &bytes[..size * width], width, load };
    }
    let element = &bytes[..width];
    let Some(Conversion { lane, convert }) = load else {
        return Source::Scalar(SmallVec::from_slice(element));
    };
    let mut converted = SmallVec::from_elem(0, lane);
    convert(element, &mut converted);
    Source::Scalar(converted)
}

/// `layout` is collapsed.
fn source<'a>(input: &Input<'a>, layout: Layout, size: usize) -> Source<'a> {
    let Input { bytes, width, load, .. } = *input;
    let rank = layout.rank();
    let converted = |raw: &[u8]| match load {
        Some(Conversion { lane, convert }) => {
            let mut out = vec![0; raw.len() / width * lane];
            convert(raw, &mut out);
            out
        }
        None => raw.to_vec(),
    };
    if layout.strides.iter().all(|&s| s == 0) {
        let start = layout.offset * width;
        return Source::Scalar(SmallVec::from_vec(converted(&bytes[start..start + width])));
    }
    if layout.is_contiguous() {
        return Source::Dense { bytes: &bytes[layout.offset * width..][..size * width], width, load };
    }
    let repeated = layout.strides.iter().take_while(|&&s| s == 0).count();
    let inner = Layout {
        shape: layout.shape[repeated..].into(),
        strides: layout.strides[repeated..].into(),
        offset: layout.offset,
    };
    let period = inner.size();
    if (1..rank).contains(&repeated) && period <= MAX_PERIOD && period + TILE <= size {
        let mut raw = vec![0; (period + TILE) * width];
        let mut whole = inner;
        whole.shape.insert(0, TILE.div_ceil(period) + 1);
        whole.strides.insert(0, 0);
        layout::gather(width, bytes, &whole, 0, &mut raw);
        let lane = load.map_or(width, |l| l.lane);
        return Source::Periodic { pattern: converted(&raw), lane, period };
    }
    Source::Strided { bytes, width, layout, load }
}

/// What `Narrow` computes with: a dense operand, or the element that is one for all.
enum Exactly<'a> {
    Dense { bytes: &'a [u8], width: usize, load: Option<ConvertExactly> },
    Scalar(SmallVec<[u8; 16]>),
}

/// `Narrow` with its operands.
struct Narrowed<'a> {
    kernel: Kernel,
    lane: usize,
    operands: SmallVec<[Exactly<'a>; 2]>,
}

impl<'a> Narrowed<'a> {
    /// None if an element that is one for all is no value of the narrower type.
    fn new(narrow: Narrow, inputs: &[Input<'a>], size: usize) -> Option<Box<Self>> {
        let Narrow { kernel, lane, loads } = narrow;
        let operand = |(input, load): (&Input<'a>, Option<ConvertExactly>)| {
            let Input { bytes, width, .. } = *input;
            if !matches!(input.access, Access::Scalar) {
                return Some(Exactly::Dense { bytes: &bytes[..size * width], width, load });
            }
            let element = &bytes[..width];
            let Some(load) = load else { return Some(Exactly::Scalar(SmallVec::from_slice(element))) };
            let mut converted = SmallVec::from_elem(0, lane);
            load(element, &mut converted).then_some(Exactly::Scalar(converted))
        };
        let operands = inputs.iter().zip(loads).map(operand).collect::<Option<_>>()?;
        Some(Box::new(Narrowed { kernel, lane, operands }))
    }

    /// Computes `length` elements from `position`, if their operands are values of the narrower type;
    /// answers whether they are.
    fn run(
        &self,
        position: usize,
        length: usize,
        buffers: &mut [Buffers<'_>],
        out: &mut [u8],
    ) -> Result<bool, Fault> {
        let mut operands = SmallVec::<[Operand<'_>; 2]>::new();
        for (operand, buffers) in self.operands.iter().zip(buffers) {
            operands.push(match *operand {
                Exactly::Scalar(ref element) => Operand::Scalar(element),
                Exactly::Dense { bytes, width, load } => {
                    let raw = &bytes[position * width..][..length * width];
                    match load {
                        None => Operand::Slice(raw),
                        Some(load) => {
                            let converted = &mut buffers.converted[..length * self.lane];
                            if !load(raw, converted) {
                                return Ok(false);
                            }
                            Operand::Slice(converted)
                        }
                    }
                }
            });
        }
        (self.kernel)(out, &operands).map(|()| true)
    }
}

struct Plan<'a> {
    /// Boxed, so that plans without are small to move.
    narrow: Option<Box<Narrowed<'a>>>,
    sources: SmallVec<[Source<'a>; 3]>,
    width: usize,
    store: Option<Conversion>,
    kernel: Kernel,
    /// The longest stretch: a tile, if anything has to be brought together.
    longest: usize,
    /// Stretches end with the rows of the collapsed shape, of this length.
    row: Option<usize>,
}

/// Memory for one tile of an operand: gathered, then converted.
struct Buffers<'b> {
    gathered: &'b mut [u8],
    converted: &'b mut [u8],
}

thread_local! {
    /// What a thread has last computed its tiles in: to fill new memory with zeros would take
    /// longer than many an operation.
    static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The first `length` bytes of some memory, at a multiple of a line from its start.
fn take<'b>(memory: &mut &'b mut [u8], length: usize) -> &'b mut [u8] {
    let (taken, rest) = std::mem::take(memory).split_at_mut(length.next_multiple_of(CACHE_LINE_BYTES));
    *memory = rest;
    &mut taken[..length]
}

impl<'a> Plan<'a> {
    /// `inner` is the length of rows.
    fn new(
        inner: usize,
        sources: SmallVec<[Source<'a>; 3]>,
        width: usize,
        store: Option<Conversion>,
        kernel: Kernel,
        narrow: Option<Box<Narrowed<'a>>>,
    ) -> Self {
        let strided = sources.iter().any(|s| matches!(s, Source::Strided { .. }));
        let row = (strided && inner >= MIN_ROW).then_some(inner);
        let tiled = store.is_some()
            || sources.iter().any(|source| match source {
                Source::Dense { load, .. } => load.is_some(),
                Source::Scalar(_) => false,
                Source::Periodic { .. } => true,
                Source::Strided { layout, load, .. } => {
                    row.is_none()
                        || load.is_some()
                        || layout.strides.last().is_some_and(|&s| s != 0 && s != 1)
                }
            });
        let longest = if tiled { TILE } else { usize::MAX };
        Plan { narrow, sources, width, store, kernel, longest, row }
    }

    /// Bytes of a tile that are gathered from a source, and that are converted.
    fn needs(source: &Source<'_>) -> [usize; 2] {
        let lane = |load: &Option<Conversion>| load.map_or(0, |load| TILE * load.lane);
        match source {
            Source::Dense { load, .. } => [0, lane(load)],
            Source::Scalar(_) | Source::Periodic { .. } => [0, 0],
            Source::Strided { width, load, .. } => [TILE * width, lane(load)],
        }
    }

    /// Computes the elements of the output from `start`, as many as fit `out`.
    fn run(&self, start: usize, out: &mut [u8]) -> Result<(), Fault> {
        let result = self.store.map_or(0, |store| TILE * store.lane);
        let needed = self.sources.iter().flat_map(Self::needs).chain([result]);
        let length =
            needed.map(|length| length.next_multiple_of(CACHE_LINE_BYTES)).sum::<usize>() + CACHE_LINE_BYTES;
        let mut kept = KEPT.take();
        if kept.len() < length {
            kept.resize(length, 0);
        }
        let first = kept.as_ptr().align_offset(CACHE_LINE_BYTES).min(CACHE_LINE_BYTES);
        let result = self.run_in(&mut kept[first..], start, out);
        KEPT.set(kept);
        result
    }

    /// `run` with memory for tiles.
    fn run_in(&self, mut memory: &mut [u8], start: usize, out: &mut [u8]) -> Result<(), Fault> {
        let mut buffers: SmallVec<[Buffers<'_>; 3]> = SmallVec::new();
        for source in &self.sources {
            let [gathered, converted] = Self::needs(source).map(|length| take(&mut memory, length));
            buffers.push(Buffers { gathered, converted });
        }
        let mut narrow = self.narrow.as_ref();
        let mut position = start;
        let mut rest = out;
        while !rest.is_empty() {
            let in_row = self.row.map_or(usize::MAX, |row| row - position % row);
            let length = (rest.len() / self.width).min(self.longest).min(in_row);
            let (head, tail) = rest.split_at_mut(length * self.width);
            rest = tail;
            if let Some(narrowed) = narrow {
                if narrowed.run(position, length, &mut buffers, head)? {
                    position += length;
                    continue;
                }
                // Where one element is large others will be.
                narrow = None;
            }
            let operands: SmallVec<[Operand<'_>; 3]> = self
                .sources
                .iter()
                .zip(&mut buffers)
                .map(|(source, buffers)| self.fetch(source, position, length, buffers))
                .collect();
            match self.store {
                None => (self.kernel)(head, &operands)?,
                Some(Conversion { lane, convert }) => {
                    let computed = &mut memory[..length * lane];
                    (self.kernel)(computed, &operands)?;
                    convert(computed, head);
                }
            }
            position += length;
        }
        Ok(())
    }

    /// Brings `length` elements from `position` before the kernel.
    fn fetch<'b>(
        &self,
        source: &'b Source<'a>,
        position: usize,
        length: usize,
        buffers: &'b mut Buffers<'_>,
    ) -> Operand<'b> {
        match source {
            Source::Scalar(bytes) => Operand::Scalar(bytes),
            Source::Dense { bytes, width, load } => {
                let raw = &bytes[position * width..][..length * width];
                Operand::Slice(converted(raw, *width, *load, buffers.converted))
            }
            Source::Periodic { pattern, lane, period } => {
                Operand::Slice(&pattern[position % period * lane..][..length * lane])
            }
            Source::Strided { bytes, width, layout, load } => {
                let step = if self.row.is_some() { layout.strides.last().copied() } else { None };
                if let Some(step @ (0 | 1)) = step {
                    let index = layout::index_of(&layout.shape, &layout.strides, layout.offset, position);
                    let count = if step == 1 { length } else { 1 };
                    let raw = &bytes[index as usize * width..][..count * width];
                    let raw = converted(raw, *width, *load, buffers.converted);
                    return if step == 1 { Operand::Slice(raw) } else { Operand::Scalar(raw) };
                }
                let raw = &mut buffers.gathered[..length * width];
                layout::gather(*width, bytes, layout, position, raw);
                Operand::Slice(converted(raw, *width, *load, buffers.converted))
            }
        }
    }
}

/// `raw` itself, or converted into `buffer`.
fn converted<'b>(raw: &'b [u8], width: usize, load: Option<Conversion>, buffer: &'b mut [u8]) -> &'b [u8] {
    let Some(Conversion { lane, convert }) = load else { return raw };
    let out = &mut buffer[..raw.len() / width * lane];
    convert(raw, out);
    out
}
