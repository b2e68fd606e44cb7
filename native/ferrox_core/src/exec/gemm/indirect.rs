//! Products of matrices of floats whose right side is read where it lies.
//!
//! Problem: gemm packs both sides first, which pays where each is used many times, and not
//! where one is small, or is a convolution's patches, which are many times their input.
//! Technique: the right side's rows are wherever a table says, and may overlap; the sums of a
//! few rows and vectors of columns stay in registers, and of long sums a part is added up for
//! all rows while what it reads of those columns is in the first-level cache. Columns that
//! stand for nothing, such as those where a patch wraps around, are left out when sums are
//! written. Each sum is added up in order, products and sums rounded as one, so that the bits
//! don't depend on how the work is split, nor on the instruction set.

use crate::dtype::Lane;
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{Avx512, FloatVector, InstructionSet, MulAddVector};
use crate::exec::simd::{Vectorized, dispatch, has_fma, vector_cost};
use crate::exec::threads::parallel::Cost;

/// Rows and vectors of columns whose sums are in registers: of 32 with 64 bytes, or of 16 with 32.
#[cfg(target_arch = "x86_64")]
const WIDE: [usize; 2] = [8, 3];
const NARROW: [usize; 2] = [6, 2];

/// Rows of the result are best split at multiples of this.
pub const HEIGHT: usize = 24;

/// Products that are added up for all rows before the next.
const DEPTH: usize = 256;

/// Some rows and columns of a product.
pub struct Panel<'a, 'b, T: Lane> {
    /// The left side's rows, dense, of as many elements as there are steps.
    pub left: &'a [T::Bytes],
    /// Where the right side's rows begin.
    pub steps: &'a [usize],
    /// The right side, from the first column on. All vectors of each row must lie within.
    pub right: &'a [T::Bytes],
    /// Which columns of each vector there are.
    pub lanes: &'a [u16],
    /// The rows of the result, as long as there are columns.
    pub out: &'a mut [&'b mut [T::Bytes]],
}

/// How a processor multiplies panels.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Elements of a vector.
    pub vector: usize,
    /// Vectors of columns that are multiplied at a time.
    pub strip: usize,
    #[cfg(target_arch = "x86_64")]
    wide: Option<Avx512>,
}

impl Kernel {
    /// `None` where there are no instructions for it.
    #[must_use]
    pub fn of<T: Panels>() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = Avx512::detect() {
            return Some(Kernel {
                vector: <T as MulAddVector<Avx512>>::LANES,
                strip: WIDE[1],
                wide: Some(wide),
            });
        }
        has_fma().then_some(Kernel {
            vector: T::NARROW,
            strip: NARROW[1],
            #[cfg(target_arch = "x86_64")]
            wide: None,
        })
    }

    /// Multiplies.
    pub fn run<T: Panels>(self, panel: Panel<'_, '_, T>) {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = self.wide {
            return wide.run(With::<_, _, { WIDE[0] }, { WIDE[1] }> { arms: wide, panel });
        }
        T::narrow(panel);
    }
}

/// What so many products of a type of so many bytes cost.
#[must_use]
pub fn cost(width: usize, products: usize) -> Cost {
    // By the bytes.
    vector_cost(3).saturating_mul(products.saturating_mul(width) as Cost)
}

/// What a processor with vectors of 64 bytes can do more.
#[cfg(target_arch = "x86_64")]
pub trait Best: FloatVector<Avx512> {}
#[cfg(target_arch = "x86_64")]
impl<T: FloatVector<Avx512>> Best for T {}
#[cfg(not(target_arch = "x86_64"))]
use Lane as Best;

/// Floats that panels are made of.
pub trait Panels: Best + Default {
    /// Elements of a vector of 32 bytes.
    const NARROW: usize;
    /// `self * a + b`, rounded once.
    #[must_use]
    fn fused(self, a: Self, b: Self) -> Self;
    /// Multiplies with vectors of 32 bytes.
    fn narrow(panel: Panel<'_, '_, Self>);
}

macro_rules! panels {
    ($($t:ty, $lanes:literal;)*) => {$(
        impl Panels for $t {
            const NARROW: usize = $lanes;
            #[inline(always)]
            fn fused(self, a: $t, b: $t) -> $t {
                self.mul_add(a, b)
            }
            fn narrow(panel: Panel<'_, '_, $t>) {
                dispatch(With::<_, _, { NARROW[0] }, { NARROW[1] }> { arms: Portable::<$lanes>, panel });
            }
        }
    )*};
}
panels! {
    f32, 8;
    f64, 4;
}

/// Vectors of an instruction set.
trait Arms<T: Lane>: Copy {
    const LANES: usize;
    type Vector: Copy;
    fn splat(self, value: T) -> Self::Vector;
    /// What a slice starts with; panics if it is shorter.
    fn read(self, from: &[T::Bytes]) -> Self::Vector;
    fn load(self, from: &[T]) -> Self::Vector;
    fn store(self, vector: Self::Vector, to: &mut [T]);
    /// `sum + a * b`.
    fn add_product(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Writes the lanes of the mask side by side; panics if the slice is shorter.
    fn write_where(self, mask: u16, vector: Self::Vector, to: &mut [T::Bytes]);
}

#[cfg(target_arch = "x86_64")]
impl<T: Panels> Arms<T> for Avx512 {
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

/// What the compiler makes of arrays.
#[derive(Clone, Copy)]
struct Portable<const N: usize>;

impl<T: Panels, const N: usize> Arms<T> for Portable<N> {
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

/// A panel and the vectors it is multiplied with, `R` rows and `S` vectors at a time.
struct With<'a, 'b, A, T: Lane, const R: usize, const S: usize> {
    arms: A,
    panel: Panel<'a, 'b, T>,
}

impl<A: Arms<T>, T: Lane + Default, const R: usize, const S: usize> Vectorized for With<'_, '_, A, T, R, S> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let Panel { steps, right, lanes, .. } = self.panel;
        let rows = if steps.len() > DEPTH { self.panel.out.len().next_multiple_of(R) } else { R };
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

/// How many columns there are in some vectors.
#[must_use]
pub fn columns(lanes: &[u16]) -> usize {
    lanes.iter().map(|mask| mask.count_ones() as usize).sum()
}

impl<A: Arms<T>, T: Lane + Default, const R: usize, const S: usize> With<'_, '_, A, T, R, S> {
    /// All rows, in `V` vectors of columns, which are written from `at` on. Sums so far are in
    /// `memory`.
    #[inline(always)]
    fn strip<const V: usize>(&mut self, right: &[T::Bytes], lanes: &[u16], at: usize, memory: &mut [T]) {
        let Panel { left, steps, ref mut out, .. } = self.panel;
        let (depth, rows, size) = (steps.len(), out.len(), R * V * A::LANES);
        for (part, steps) in steps.chunks(DEPTH).enumerate() {
            let (first, end) = (part * DEPTH, part * DEPTH + steps.len());
            for row in (0..rows).step_by(R) {
                // Where rows are missing, the last one stands for them.
                let left: [&[T::Bytes]; R] =
                    std::array::from_fn(|i| &left[(row + i).min(rows - 1) * depth..][first..end]);
                let start = if depth > DEPTH { row * V * A::LANES } else { 0 };
                let sums = &mut memory[start..start + size];
                add::<A, T, R, V>(self.arms, part == 0, left, right, steps, sums);
                if end < depth {
                    continue;
                }
                for (sums, out) in sums.chunks_exact(V * A::LANES).zip(&mut out[row..]) {
                    let mut at = at;
                    for (sum, &mask) in sums.chunks_exact(A::LANES).zip(lanes) {
                        self.arms.write_where(mask, self.arms.load(sum), &mut out[at..]);
                        at += mask.count_ones() as usize;
                    }
                }
            }
        }
    }
}

/// Adds products to the sums of `R` rows and `V` vectors of columns. Loops over indices, all of
/// constant length, are what keeps the sums in registers: with iterators they stay in memory.
#[inline(always)]
fn add<A: Arms<T>, T: Lane + Default, const R: usize, const V: usize>(
    arms: A,
    starts: bool,
    left: [&[T::Bytes]; R],
    right: &[T::Bytes],
    steps: &[usize],
    memory: &mut [T],
) {
    let memory = &mut memory[..R * V * A::LANES];
    let zero = arms.splat(T::default());
    let mut sums = [[zero; V]; R];
    if !starts {
        for row in 0..R {
            for i in 0..V {
                sums[row][i] = arms.load(&memory[(row * V + i) * A::LANES..]);
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
            vectors[i] = arms.read(&right[i * A::LANES..]);
        }
        for row in 0..R {
            let factor = arms.splat(T::load(rows[row][step]));
            for i in 0..V {
                sums[row][i] = arms.add_product(sums[row][i], factor, vectors[i]);
            }
        }
    }
    for row in 0..R {
        for i in 0..V {
            arms.store(sums[row][i], &mut memory[(row * V + i) * A::LANES..]);
        }
    }
}
