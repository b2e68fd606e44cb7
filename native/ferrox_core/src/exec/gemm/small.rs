//! Products of small matrices of floats, added up in order, in f64.
//!
//! Problem: converting, packing and allocating take longer than the few products.
//! Technique: both operands are read in place and converted while they are multiplied, and the sums
//! of a register tile (a few rows by a few vectors of columns) stay in registers. Products are
//! rounded before they are added, as in `Nx.BinaryBackend`; products of f32 are exact in f64.

use crate::cost::MIN_RIGHT_ELEMENTS_TO_WIDEN;
use crate::dtype::Lane;
use crate::exec::gemm::gemv::striped;
use crate::exec::gemm::in_order::multiply_in_order;
use crate::exec::gemm::ring::Sum;
#[cfg(target_arch = "x86_64")]
use crate::exec::simd::{self, AsF64Vector, Avx512, FloatVector, InstructionSet, IntVector, MulAddVector};
use crate::exec::simd::{Aligned, Vectorized, dispatch};

/// The register tile, as rows and SIMD vectors of columns, for 32 registers of 64 bytes.
#[cfg(target_arch = "x86_64")]
const SMALL_TILE_AVX512: [usize; 2] = [8, 2];
/// The register tile for processors without AVX-512.
const SMALL_TILE_PORTABLE: [usize; 2] = [4, 1];
/// The number of vectors of columns for a single row: enough independent sums to hide the latency
/// of an addition.
const VECTORS_FOR_ONE_ROW: usize = 8;

/// The number of f64 in a vector of AVX-512, and in the array that replaces it.
const F64_LANES: usize = 8;

#[cfg(not(target_arch = "x86_64"))]
use Lane as AsF64Vector;

/// Floats that are multiplied in f64.
pub trait SmallFloat: AsF64Vector {
    /// Whether products of two values are exact in f64, such that fused additions give the same
    /// bits.
    const EXACT: bool;
    /// The same value as an f64.
    fn widen(self) -> f64;
    /// The value that is nearest to an f64.
    fn round(value: f64) -> Self;
}
impl SmallFloat for f32 {
    const EXACT: bool = true;
    #[inline(always)]
    fn widen(self) -> f64 {
        self.into()
    }
    #[inline(always)]
    fn round(value: f64) -> f32 {
        value as f32
    }
}
impl SmallFloat for f64 {
    const EXACT: bool = false;
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
    #[inline(always)]
    fn round(value: f64) -> f64 {
        value
    }
}

/// `out = left * right` for dense matrices of `[m, k]` and `[k, n]`, one pair after the other until
/// `out` is full, on the calling thread.
pub fn multiply<T: SmallFloat>(sizes: [usize; 3], left: &[u8], right: &[u8], out: &mut [u8]) {
    let (left, right, out) = (T::view(left), T::view(right), T::view_mut(out));
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = Avx512::detect() {
        return wide.run(SmallProductLoop::<_, T, { SMALL_TILE_AVX512[0] }, { SMALL_TILE_AVX512[1] }> {
            set: wide,
            sizes,
            left,
            right,
            out,
        });
    }
    dispatch(SmallProductLoop::<_, T, { SMALL_TILE_PORTABLE[0] }, { SMALL_TILE_PORTABLE[1] }> {
        set: Portable,
        sizes,
        left,
        right,
        out,
    });
}

/// Vectors of f64, of AVX-512 or as arrays.
trait F64Vectors<T: SmallFloat>: Copy {
    type Vector: Copy;
    fn splat(self, value: f64) -> Self::Vector;
    /// Reads at most a vector of elements; lanes after the last element have any value.
    fn read(self, from: &[T::Bytes]) -> Self::Vector;
    fn write(self, vector: Self::Vector, to: &mut [T::Bytes]);
    /// `sum + a * b`; the product is rounded to f64 first.
    fn add_product(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

#[cfg(target_arch = "x86_64")]
impl<T: SmallFloat> F64Vectors<T> for Avx512 {
    type Vector = <f64 as MulAddVector<Avx512>>::Vector;
    #[inline(always)]
    fn splat(self, value: f64) -> Self::Vector {
        <f64 as MulAddVector<Avx512>>::splat(self, value)
    }
    #[inline(always)]
    fn read(self, from: &[T::Bytes]) -> Self::Vector {
        T::load_first(self, from)
    }
    #[inline(always)]
    fn write(self, vector: Self::Vector, to: &mut [T::Bytes]) {
        T::store_first(self, vector, to);
    }
    #[inline(always)]
    fn add_product(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        if T::EXACT {
            <f64 as FloatVector<Avx512>>::add_fused(self, sum, a, b)
        } else {
            <f64 as MulAddVector<Avx512>>::add_product(self, sum, a, b)
        }
    }
}

/// Arrays of `F64_LANES` lanes, whose loops the compiler vectorizes.
#[derive(Clone, Copy)]
struct Portable;

impl<T: SmallFloat> F64Vectors<T> for Portable {
    type Vector = [f64; F64_LANES];
    #[inline(always)]
    fn splat(self, value: f64) -> [f64; F64_LANES] {
        [value; F64_LANES]
    }
    #[inline(always)]
    fn read(self, from: &[T::Bytes]) -> [f64; F64_LANES] {
        let mut vector = [0.0; F64_LANES];
        if from.len() == F64_LANES {
            for i in 0..F64_LANES {
                vector[i] = T::load(from[i]).widen();
            }
        } else {
            vector.iter_mut().zip(from).for_each(|(slot, &x)| *slot = T::load(x).widen());
        }
        vector
    }
    #[inline(always)]
    fn write(self, vector: [f64; F64_LANES], to: &mut [T::Bytes]) {
        to.iter_mut().zip(vector).for_each(|(slot, x)| *slot = T::round(x).store());
    }
    #[inline(always)]
    fn add_product(
        self,
        mut sum: [f64; F64_LANES],
        a: [f64; F64_LANES],
        b: [f64; F64_LANES],
    ) -> [f64; F64_LANES] {
        for i in 0..F64_LANES {
            sum[i] += a[i] * b[i];
        }
        sum
    }
}

struct SmallProductLoop<'a, A, T: Lane, const ROWS: usize, const VECTORS: usize> {
    set: A,
    sizes: [usize; 3],
    left: &'a [T::Bytes],
    right: &'a [T::Bytes],
    out: &'a mut [T::Bytes],
}

impl<A: F64Vectors<T>, T: SmallFloat, const ROWS: usize, const VECTORS: usize> Vectorized
    for SmallProductLoop<'_, A, T, ROWS, VECTORS>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [m, k, n] = self.sizes;
        match m {
            1 => self.rows::<1, 0>(),
            _ if !T::EXACT || k * n < MIN_RIGHT_ELEMENTS_TO_WIDEN => self.rows::<ROWS, 0>(),
            // The smaller buffer takes less time to fill with zeros.
            _ if ROWS * k <= MAX_WIDENED_ELEMENTS / 4 => self.rows::<ROWS, { MAX_WIDENED_ELEMENTS / 4 }>(),
            _ if ROWS * k <= MAX_WIDENED_ELEMENTS => self.rows::<ROWS, MAX_WIDENED_ELEMENTS>(),
            _ => self.rows::<ROWS, 0>(),
        }
    }
}

impl<A: F64Vectors<T>, T: SmallFloat, const ROWS: usize, const VECTORS: usize>
    SmallProductLoop<'_, A, T, ROWS, VECTORS>
{
    /// Computes `R` rows at a time. Their elements are widened once, to a buffer of `W` elements,
    /// or for each vector of columns if `W` is zero.
    #[inline(always)]
    fn rows<const R: usize, const W: usize>(self) {
        let [m, k, n] = self.sizes;
        let Aligned(widened) = &mut Aligned([[0; 8]; W]);
        let operands = self.left.chunks_exact(m * k).zip(self.right.chunks_exact(k * n));
        for ((left, right), out) in operands.zip(self.out.chunks_exact_mut(m * n)) {
            for row in (0..m).step_by(R) {
                let count = R.min(m - row);
                let (left, out) = (&left[row * k..][..count * k], &mut out[row * n..]);
                // The last row stands for missing rows of the tile, whose results aren't written.
                let first = |i: usize| i.min(count - 1) * k;
                if W > 0 {
                    for (widened, &x) in widened.iter_mut().zip(left) {
                        *widened = T::load(x).widen().store();
                    }
                    let rows = std::array::from_fn(|i| &widened[first(i)..][..k]);
                    columns::<A, T, f64, R, VECTORS>(self.set, n, rows, right, out);
                } else {
                    let rows = std::array::from_fn(|i| &left[first(i)..][..k]);
                    columns::<A, T, T, R, VECTORS>(self.set, n, rows, right, out);
                }
            }
        }
    }
}

/// The maximum number of elements in the rows of a tile that are widened once.
const MAX_WIDENED_ELEMENTS: usize = 512;

/// Computes all columns of some rows.
#[inline(always)]
fn columns<A: F64Vectors<T>, T: SmallFloat, L: SmallFloat, const R: usize, const VECTORS: usize>(
    set: A,
    n: usize,
    left: [&[L::Bytes]; R],
    right: &[T::Bytes],
    out: &mut [T::Bytes],
) {
    let mut column = 0;
    macro_rules! add {
        ($vectors:expr, $last:expr) => {
            add::<A, T, L, R, { $vectors }>(set, n, left, &right[column..], &mut out[column..], $last)
        };
    }
    // The constant length of whole vectors is known to the compiler.
    while R == 1 && n - column >= VECTORS_FOR_ONE_ROW * F64_LANES {
        add!(VECTORS_FOR_ONE_ROW, F64_LANES);
        column += VECTORS_FOR_ONE_ROW * F64_LANES;
    }
    while n - column >= VECTORS * F64_LANES {
        add!(VECTORS, F64_LANES);
        column += VECTORS * F64_LANES;
    }
    match n - column {
        0 => (),
        last @ ..=F64_LANES => add!(1, last),
        more => add!(VECTORS, more - F64_LANES),
    }
}

/// `multiply` of f64 with a matrix of one column.
pub fn with_vector_in_order([m, k, n]: [usize; 3], matrix: &[u8], vector: &[u8], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if m >= F64_LANES
        && k >= F64_LANES
        && n == 1
        && let Some(wide) = Avx512::detect()
    {
        let (matrix, vector) = (&f64::view(matrix)[..m * k], &f64::view(vector)[..k]);
        return wide.run(InOrderGemvLoop { wide, matrix, vector, out: f64::view_mut(out) });
    }
    multiply_in_order::<f64>([m, k, n], matrix, vector, out);
}

/// A product with a vector in which each lane is the sum of one row: square blocks of the matrix
/// are transposed in registers.
#[cfg(target_arch = "x86_64")]
struct InOrderGemvLoop<'a> {
    wide: Avx512,
    matrix: &'a [[u8; 8]],
    vector: &'a [[u8; 8]],
    out: &'a mut [[u8; 8]],
}

#[cfg(target_arch = "x86_64")]
impl Vectorized for InOrderGemvLoop<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let InOrderGemvLoop { wide, matrix, vector, out } = self;
        let (m, k) = (out.len(), vector.len());
        let (chunks, rest) = vector.as_chunks::<F64_LANES>();
        for row in (0..m).step_by(F64_LANES) {
            // The last block may overlap the block before.
            let row = row.min(m - F64_LANES);
            let mut rows = [matrix; F64_LANES];
            for (i, slot) in rows.iter_mut().enumerate() {
                *slot = &matrix[(row + i) * k..][..k];
            }
            let mut sums = <f64 as MulAddVector<Avx512>>::splat(wide, 0.0);
            for (i, factors) in chunks.iter().enumerate() {
                let columns = columns_of(wide, &rows, i * F64_LANES, F64_LANES);
                for j in 0..F64_LANES {
                    sums = add_column(wide, sums, columns[j], factors[j]);
                }
            }
            if !rest.is_empty() {
                let columns = columns_of(wide, &rows, k - rest.len(), rest.len());
                for j in 0..F64_LANES {
                    if j < rest.len() {
                        sums = add_column(wide, sums, columns[j], rest[j]);
                    }
                }
            }
            f64::store_first(wide, sums, &mut out[row..][..F64_LANES]);
        }
    }
}

/// The `count` elements from `first` on of each row, at most a vector of them, transposed: one
/// vector for each column.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn columns_of(
    wide: Avx512,
    rows: &[&[[u8; 8]]; F64_LANES],
    first: usize,
    count: usize,
) -> [<u64 as IntVector<Avx512>>::Vector; F64_LANES] {
    let mut words = [<u64 as IntVector<Avx512>>::splat(wide, 0); F64_LANES];
    for i in 0..F64_LANES {
        words[i] = u64::read(wide, &rows[i][first..][..count]);
    }
    simd::transpose_vectors::<Avx512, u64, F64_LANES>(wide, &mut words);
    words
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn add_column(
    wide: Avx512,
    sums: <f64 as MulAddVector<Avx512>>::Vector,
    column: <u64 as IntVector<Avx512>>::Vector,
    factor: [u8; 8],
) -> <f64 as MulAddVector<Avx512>>::Vector {
    let factor = <f64 as MulAddVector<Avx512>>::splat(wide, f64::from_ne_bytes(factor));
    <f64 as MulAddVector<Avx512>>::add_product(wide, sums, simd::bitcast_to_f64(wide, column), factor)
}

/// `multiply` with a matrix of one column, by striped sums: each row of `k` elements is added up in
/// several accumulators, which are combined in a fixed order.
pub fn with_vector<T: SmallFloat>(k: usize, matrix: &[u8], vector: &[u8], out: &mut [u8]) {
    let (matrix, vector) = (T::view(matrix), &T::view(vector)[..k]);
    dispatch(StripedGemvLoop::<T> { matrix, vector, out: T::view_mut(out) });
}

struct StripedGemvLoop<'a, T: Lane> {
    matrix: &'a [T::Bytes],
    vector: &'a [T::Bytes],
    out: &'a mut [T::Bytes],
}

/// The number of accumulators for the sum of a row.
const F64_SUM_STRIPES: usize = 16;

impl<T: SmallFloat> Vectorized for StripedGemvLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        striped::<T, F64Sum, F64_SUM_STRIPES>(self.matrix, self.vector, self.vector.len(), self.out);
    }
}

/// A sum of products in f64.
#[derive(Clone, Copy)]
struct F64Sum(f64);

impl<T: SmallFloat> Sum<T> for F64Sum {
    const EMPTY: Self = F64Sum(0.0);
    #[inline(always)]
    fn add_product(self, a: T, b: T) -> Self {
        F64Sum(self.0 + a.widen() * b.widen())
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        F64Sum(self.0 + other.0)
    }
    #[inline(always)]
    fn element(self) -> T {
        T::round(self.0)
    }
}

/// The micro-kernel: computes `R` rows and `V` vectors of columns, the last vector with `last`
/// columns. `right` and `out` begin with the first column, and their rows are `n` elements apart.
#[inline(always)]
fn add<A: F64Vectors<T>, T: SmallFloat, L: SmallFloat, const R: usize, const V: usize>(
    set: A,
    n: usize,
    left: [&[L::Bytes]; R],
    right: &[T::Bytes],
    out: &mut [T::Bytes],
    last: usize,
) {
    let (zero, steps) = (set.splat(0.0), left[0].len());
    let mut rows = left;
    for row in &mut rows {
        *row = &row[..steps];
    }
    let mut sums = [[zero; V]; R];
    let columns = (V - 1) * F64_LANES + last;
    for step in 0..steps {
        let right = &right[step * n..][..columns];
        let mut vectors = [zero; V];
        for i in 0..V {
            let length = if i + 1 < V { F64_LANES } else { last };
            vectors[i] = set.read(&right[i * F64_LANES..][..length]);
        }
        for row in 0..R {
            let factor = set.splat(L::load(rows[row][step]).widen());
            for i in 0..V {
                sums[row][i] = set.add_product(sums[row][i], factor, vectors[i]);
            }
        }
    }
    #[expect(clippy::needless_range_loop, reason = "an iterator leaves the sums in memory")]
    for row in 0..R {
        if let Some(out) = out.get_mut(row * n..).filter(|out| !out.is_empty()) {
            for i in 0..V {
                let length = if i + 1 < V { F64_LANES } else { last };
                set.write(sums[row][i], &mut out[i * F64_LANES..][..length]);
            }
        }
    }
}
