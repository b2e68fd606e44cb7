//! Indirect products of matrices of floats: the right operand is read in place through a table of
//! row offsets (Dukhan 2019, "The Indirect Convolution Algorithm").
//!
//! Problem: gemm packs both operands first. That pays if each is used many times, but not if one is
//! small, or holds the patches of a convolution, which are many times as large as its input.
//! Technique: a table says where each row of the right operand begins; rows may overlap. The sums
//! of a register tile (a few rows by a few SIMD vectors of columns) stay in registers. A long sum
//! is split into blocks of steps: each block is added up for all rows while the columns that it
//! reads are in the first-level cache. Columns that aren't part of the result, such as those where
//! a patch wraps around, are masked off when sums are written. Each sum is added up in order by
//! fused multiplications and additions, so that the bits depend neither on the split nor on the
//! instruction set.

use crate::cost::{Cost, INDIRECT_BLOCK_STEPS, INDIRECT_PRODUCT_BYTE_COST};
use crate::dtype::Lane;
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{Avx512, FloatVector, InstructionSet, MulAddVector};
use crate::exec::simd::{Vectorized, dispatch, has_fma, vector_cost};

/// The register tile, as rows and SIMD vectors of columns, for 32 registers of 64 bytes.
#[cfg(target_arch = "x86_64")]
const INDIRECT_TILE_AVX512: [usize; 2] = [8, 3];
/// The register tile for 16 registers of 32 bytes.
const INDIRECT_TILE_32_BYTES: [usize; 2] = [6, 2];

/// The rows of a result are best split at multiples of this number, which is a multiple of the rows
/// of each register tile.
pub const PANEL_ROW_MULTIPLE: usize = 24;

/// The product of some rows and columns.
pub struct Panel<'a, 'b, T: Lane> {
    /// The rows of the left operand, without gaps, one element for each step.
    pub left: &'a [T::Bytes],
    /// For each step, the index in `right` of the first element of the row.
    pub steps: &'a [usize],
    /// The right operand, from the first column on. It must hold all vectors of each row.
    pub right: &'a [T::Bytes],
    /// For each vector, the mask of the lanes that are columns of the result.
    pub lanes: &'a [u16],
    /// The rows of the result, one element for each column.
    pub out: &'a mut [&'b mut [T::Bytes]],
}

/// The kernel that multiplies panels on this processor.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The number of elements in a SIMD vector.
    pub vector: usize,
    /// The number of vectors of columns that are multiplied at a time.
    pub strip: usize,
    #[cfg(target_arch = "x86_64")]
    wide: Option<Avx512>,
}

impl Kernel {
    /// Returns `None` if the processor has no fused multiplication and addition.
    #[must_use]
    pub fn of<T: PanelFloat>() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = Avx512::detect() {
            return Some(Kernel {
                vector: <T as MulAddVector<Avx512>>::LANES,
                strip: INDIRECT_TILE_AVX512[1],
                wide: Some(wide),
            });
        }
        has_fma().then_some(Kernel {
            vector: T::LANES_OF_32_BYTES,
            strip: INDIRECT_TILE_32_BYTES[1],
            #[cfg(target_arch = "x86_64")]
            wide: None,
        })
    }

    /// Computes a panel.
    pub fn run<T: PanelFloat>(self, panel: Panel<'_, '_, T>) {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = self.wide {
            return wide.run(PanelLoop::<_, _, { INDIRECT_TILE_AVX512[0] }, { INDIRECT_TILE_AVX512[1] }> {
                set: wide,
                panel,
            });
        }
        T::narrow(panel);
    }
}

/// The cost of `products` multiplications and additions of floats of `width` bytes.
#[must_use]
pub fn cost(width: usize, products: usize) -> Cost {
    // The cost is proportional to the bytes.
    vector_cost(INDIRECT_PRODUCT_BYTE_COST).saturating_mul(products.saturating_mul(width) as Cost)
}

/// A float for which there are vector instructions of AVX-512, where the processor is an x86-64.
#[cfg(target_arch = "x86_64")]
pub trait WideFloat: FloatVector<Avx512> {}
#[cfg(target_arch = "x86_64")]
impl<T: FloatVector<Avx512>> WideFloat for T {}
#[cfg(not(target_arch = "x86_64"))]
use Lane as WideFloat;

/// A float that panels are made of.
pub trait PanelFloat: WideFloat + Default {
    /// The number of elements in a vector of 32 bytes.
    const LANES_OF_32_BYTES: usize;
    /// `self * a + b`, rounded once.
    #[must_use]
    fn fused(self, a: Self, b: Self) -> Self;
    /// Computes a panel with vectors of 32 bytes.
    fn narrow(panel: Panel<'_, '_, Self>);
}

macro_rules! panels {
    ($($t:ty, $lanes:literal;)*) => {$(
        impl PanelFloat for $t {
            const LANES_OF_32_BYTES: usize = $lanes;
            #[inline(always)]
            fn fused(self, a: $t, b: $t) -> $t {
                self.mul_add(a, b)
            }
            fn narrow(panel: Panel<'_, '_, $t>) {
                dispatch(PanelLoop::<_, _, { INDIRECT_TILE_32_BYTES[0] }, { INDIRECT_TILE_32_BYTES[1] }> { set: Portable::<$lanes>, panel });
            }
        }
    )*};
}
panels! {
    f32, 8;
    f64, 4;
}

/// Vectors with fused multiplication and addition, of AVX-512 or of arrays.
trait FusedVectors<T: Lane>: Copy {
    const LANES: usize;
    type Vector: Copy;
    fn splat(self, value: T) -> Self::Vector;
    /// Reads the first vector of a slice; panics if the slice is shorter.
    fn read(self, from: &[T::Bytes]) -> Self::Vector;
    fn load(self, from: &[T]) -> Self::Vector;
    fn store(self, vector: Self::Vector, to: &mut [T]);
    /// `sum + a * b`, rounded once.
    fn add_product(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Writes the lanes of the mask side by side. The slice must have an element for each of them.
    fn write_where(self, mask: u16, vector: Self::Vector, to: &mut [T::Bytes]);
}

#[cfg(target_arch = "x86_64")]
impl<T: PanelFloat> FusedVectors<T> for Avx512 {
    const LANES: usize = <T as MulAddVector<Avx512>>::LANES;
    type Vector = T::Vector;
    #[inline(always)]
    fn splat(self, value: T) -> T::Vector {
        T::splat(self, value)
    }
    #[inline(always)]
    fn read(self, from: &[T::Bytes]) -> T::Vector {
        T::read(self, from)
    }
    #[inline(always)]
    fn load(self, from: &[T]) -> T::Vector {
        <T as MulAddVector<Avx512>>::load(self, from)
    }
    #[inline(always)]
    fn store(self, vector: T::Vector, to: &mut [T]) {
        <T as MulAddVector<Avx512>>::store(self, vector, to);
    }
    #[inline(always)]
    fn add_product(self, sum: T::Vector, a: T::Vector, b: T::Vector) -> T::Vector {
        T::add_fused(self, sum, a, b)
    }
    #[inline(always)]
    fn write_where(self, mask: u16, vector: T::Vector, to: &mut [T::Bytes]) {
        T::write_where(self, mask, vector, to);
    }
}

/// Arrays of `N` lanes, whose loops the compiler vectorizes.
#[derive(Clone, Copy)]
struct Portable<const N: usize>;

impl<T: PanelFloat, const N: usize> FusedVectors<T> for Portable<N> {
    const LANES: usize = N;
    type Vector = [T; N];
    #[inline(always)]
    fn splat(self, value: T) -> [T; N] {
        [value; N]
    }
    #[inline(always)]
    fn read(self, from: &[T::Bytes]) -> [T; N] {
        let from = &from[..N];
        let mut vector = [T::default(); N];
        for i in 0..N {
            vector[i] = <T as Lane>::load(from[i]);
        }
        vector
    }
    #[inline(always)]
    fn load(self, from: &[T]) -> [T; N] {
        let mut vector = [T::default(); N];
        vector.copy_from_slice(&from[..N]);
        vector
    }
    #[inline(always)]
    fn store(self, vector: [T; N], to: &mut [T]) {
        to[..N].copy_from_slice(&vector);
    }
    #[inline(always)]
    fn add_product(self, mut sum: [T; N], a: [T; N], b: [T; N]) -> [T; N] {
        for i in 0..N {
            sum[i] = a[i].fused(b[i], sum[i]);
        }
        sum
    }
    #[inline(always)]
    fn write_where(self, mask: u16, vector: [T; N], to: &mut [T::Bytes]) {
        let mut slots = to.iter_mut();
        for (i, value) in vector.into_iter().enumerate() {
            if mask >> i & 1 == 1
                && let Some(slot) = slots.next()
            {
                *slot = value.store();
            }
        }
    }
}

/// A panel that is computed in register tiles of `R` rows and `S` vectors.
struct PanelLoop<'a, 'b, A, T: Lane, const R: usize, const S: usize> {
    set: A,
    panel: Panel<'a, 'b, T>,
}

impl<A: FusedVectors<T>, T: Lane + Default, const R: usize, const S: usize> Vectorized
    for PanelLoop<'_, '_, A, T, R, S>
{
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let Panel { steps, right, lanes, .. } = self.panel;
        let rows =
            if steps.len() > INDIRECT_BLOCK_STEPS { self.panel.out.len().next_multiple_of(R) } else { R };
        let mut memory = vec![T::default(); rows * S * A::LANES];
        let mut at = 0;
        for (i, lanes) in lanes.chunks(S).enumerate() {
            let right = &right[i * S * A::LANES..];
            match lanes.len() {
                1 => self.strip::<1>(right, lanes, at, &mut memory),
                2 => self.strip::<2>(right, lanes, at, &mut memory),
                _ => self.strip::<S>(right, lanes, at, &mut memory),
            }
            at += columns(lanes);
        }
    }
}

/// The number of columns of the result in some vectors, given their masks.
#[must_use]
pub fn columns(lanes: &[u16]) -> usize {
    lanes.iter().map(|mask| mask.count_ones() as usize).sum()
}

impl<A: FusedVectors<T>, T: Lane + Default, const R: usize, const S: usize> PanelLoop<'_, '_, A, T, R, S> {
    /// Computes `V` vectors of columns for all rows, and writes them from column `at` on. `memory`
    /// holds the sums between two blocks of steps.
    #[inline(always)]
    fn strip<const V: usize>(&mut self, right: &[T::Bytes], lanes: &[u16], at: usize, memory: &mut [T]) {
        let Panel { left, steps, ref mut out, .. } = self.panel;
        let (depth, rows, size) = (steps.len(), out.len(), R * V * A::LANES);
        for (part, steps) in steps.chunks(INDIRECT_BLOCK_STEPS).enumerate() {
            let (first, end) = (part * INDIRECT_BLOCK_STEPS, part * INDIRECT_BLOCK_STEPS + steps.len());
            for row in (0..rows).step_by(R) {
                // The last row stands for missing rows of the tile.
                let left: [&[T::Bytes]; R] =
                    std::array::from_fn(|i| &left[(row + i).min(rows - 1) * depth..][first..end]);
                let start = if depth > INDIRECT_BLOCK_STEPS { row * V * A::LANES } else { 0 };
                let sums = &mut memory[start..start + size];
                add::<A, T, R, V>(self.set, part == 0, left, right, steps, sums);
                if end < depth {
                    continue;
                }
                for (sums, out) in sums.chunks_exact(V * A::LANES).zip(&mut out[row..]) {
                    let mut at = at;
                    for (sum, &mask) in sums.chunks_exact(A::LANES).zip(lanes) {
                        self.set.write_where(mask, self.set.load(sum), &mut out[at..]);
                        at += mask.count_ones() as usize;
                    }
                }
            }
        }
    }
}

/// The micro-kernel: adds products to the sums of `R` rows and `V` vectors of columns. Only loops
/// over indices of constant length keep the sums in registers; with iterators, they stay in memory.
#[inline(always)]
fn add<A: FusedVectors<T>, T: Lane + Default, const R: usize, const V: usize>(
    set: A,
    starts: bool,
    left: [&[T::Bytes]; R],
    right: &[T::Bytes],
    steps: &[usize],
    memory: &mut [T],
) {
    let memory = &mut memory[..R * V * A::LANES];
    let zero = set.splat(T::default());
    let mut sums = [[zero; V]; R];
    if !starts {
        for row in 0..R {
            for i in 0..V {
                sums[row][i] = set.load(&memory[(row * V + i) * A::LANES..]);
            }
        }
    }
    let count = steps.len();
    let mut rows = left;
    for row in &mut rows {
        *row = &row[..count];
    }
    for step in 0..count {
        let right = &right[steps[step]..][..V * A::LANES];
        let mut vectors = [zero; V];
        for i in 0..V {
            vectors[i] = set.read(&right[i * A::LANES..]);
        }
        for row in 0..R {
            let factor = set.splat(T::load(rows[row][step]));
            for i in 0..V {
                sums[row][i] = set.add_product(sums[row][i], factor, vectors[i]);
            }
        }
    }
    for row in 0..R {
        for i in 0..V {
            set.store(sums[row][i], &mut memory[(row * V + i) * A::LANES..]);
        }
    }
}
