//! Products of small matrices of floats, added up in order, in f64.
//!
//! Problem: to convert, to lay out and to allocate takes longer than the few products do.
//! Technique: both sides are read where they lie and converted on the way, and the sums of a
//! few rows and vectors of columns stay in registers. Products are rounded before they are
//! added, as `Nx.BinaryBackend` has it, those of f32 being exact.

use crate::dtype::Lane;
use crate::exec::gemm::gemv::{Sum, striped};
use crate::exec::gemm::in_order::ordered;
#[cfg(target_arch = "x86_64")]
use crate::exec::simd;
use crate::exec::simd::{
    Aligned, AsF64Vector, Avx512, FloatVector, InstructionSet, IntVector, MulAddVector, Vectorized, dispatch,
};
#[cfg(target_arch = "x86_64")]
use crate::exec::sort::simd_quicksort;

/// Rows and vectors of columns whose sums are in registers, of 32 or of 16; more of these where
/// there is one row, so that the processor doesn't wait for each sum.
#[cfg(target_arch = "x86_64")]
const WIDE: [usize; 2] = [8, 2];
const NARROW: [usize; 2] = [4, 1];
const MANY_VECTORS: usize = 8;

/// Lanes of a vector, or of what stands for it.
const LANES: usize = 8;

#[cfg(not(target_arch = "x86_64"))]
use Lane as AsF64Vector;

/// Floats that are multiplied in f64.
pub trait Small: AsF64Vector {
    /// Whether their products are exact in f64, so that it doesn't matter whether these are
    /// rounded before they are added.
    const EXACT: bool;
    /// The value.
    fn widen(self) -> f64;
    /// The nearest to it.
    fn round(value: f64) -> Self;
}
impl Small for f32 {
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
impl Small for f64 {
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

/// `out = left * right` for dense matrices, `[m, k]` by `[k, n]`, on the calling thread: as many
/// as `out` holds, one after the other.
pub fn multiply<T: Small>(sizes: [usize; 3], left: &[u8], right: &[u8], out: &mut [u8]) {
    let (left, right, out) = (T::view(left), T::view(right), T::view_mut(out));
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = Avx512::detect() {
        return wide.run(Product::<_, T, { WIDE[0] }, { WIDE[1] }> { arms: wide, sizes, left, right, out });
    }
    dispatch(Product::<_, T, { NARROW[0] }, { NARROW[1] }> { arms: Portable, sizes, left, right, out });
}

/// Vectors of f64.
trait Arms<T: Small>: Copy {
    type Vector: Copy;
    fn splat(self, value: f64) -> Self::Vector;
    /// At most a vector, and any value in lanes after it.
    fn read(self, from: &[T::Bytes]) -> Self::Vector;
    fn write(self, vector: Self::Vector, to: &mut [T::Bytes]);
    /// `sum + a * b`; the product is rounded first.
    fn add_product(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

#[cfg(target_arch = "x86_64")]
impl<T: Small> Arms<T> for Avx512 {
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

/// What the compiler makes of arrays.
#[derive(Clone, Copy)]
struct Portable;

impl<T: Small> Arms<T> for Portable {
    type Vector = [f64; LANES];
    #[inline(always)]
    fn splat(self, value: f64) -> [f64; LANES] {
        [value; LANES]
    }
    #[inline(always)]
    fn read(self, from: &[T::Bytes]) -> [f64; LANES] {
        let mut vector = [0.0; LANES];
        if from.len() == LANES {
            for i in 0..LANES {
                vector[i] = T::load(from[i]).widen();
            }
        } else {
            vector.iter_mut().zip(from).for_each(|(slot, &x)| *slot = T::load(x).widen());
        }
        vector
    }
    #[inline(always)]
    fn write(self, vector: [f64; LANES], to: &mut [T::Bytes]) {
        to.iter_mut().zip(vector).for_each(|(slot, x)| *slot = T::round(x).store());
    }
    #[inline(always)]
    fn add_product(self, mut sum: [f64; LANES], a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        for i in 0..LANES {
            sum[i] += a[i] * b[i];
        }
        sum
    }
}

struct Product<'a, A, T: Lane, const ROWS: usize, const VECTORS: usize> {
    arms: A,
    sizes: [usize; 3],
    left: &'a [T::Bytes],
    right: &'a [T::Bytes],
    out: &'a mut [T::Bytes],
}

impl<A: Arms<T>, T: Small, const ROWS: usize, const VECTORS: usize> Vectorized
    for Product<'_, A, T, ROWS, VECTORS>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [m, k, n] = self.sizes;
        match m {
            1 => self.rows::<1, 0>(),
            _ if !T::EXACT || k * n < MANY => self.rows::<ROWS, 0>(),
            // What is widened is zero at first, which takes a while.
            _ if ROWS * k <= WIDENED / 4 => self.rows::<ROWS, { WIDENED / 4 }>(),
            _ if ROWS * k <= WIDENED => self.rows::<ROWS, WIDENED>(),
            _ => self.rows::<ROWS, 0>(),
        }
    }
}

impl<A: Arms<T>, T: Small, const ROWS: usize, const VECTORS: usize> Product<'_, A, T, ROWS, VECTORS> {
    /// `R` rows at a time, whose elements are widened once, if they are at most `W`, or for each
    /// vector of columns.
    #[inline(always)]
    fn rows<const R: usize, const W: usize>(self) {
        let [m, k, n] = self.sizes;
        let Aligned(widened) = &mut Aligned([[0; 8]; W]);
        let operands = self.left.chunks_exact(m * k).zip(self.right.chunks_exact(k * n));
        for ((left, right), out) in operands.zip(self.out.chunks_exact_mut(m * n)) {
            for row in (0..m).step_by(R) {
                let count = R.min(m - row);
                let (left, out) = (&left[row * k..][..count * k], &mut out[row * n..]);
                // Where rows are missing, the last one stands for them, and isn't written.
                let first = |i: usize| i.min(count - 1) * k;
                if W > 0 {
                    for (widened, &x) in widened.iter_mut().zip(left) {
                        *widened = T::load(x).widen().store();
                    }
                    let rows = std::array::from_fn(|i| &widened[first(i)..][..k]);
                    columns::<A, T, f64, R, VECTORS>(self.arms, n, rows, right, out);
                } else {
                    let rows = std::array::from_fn(|i| &left[first(i)..][..k]);
                    columns::<A, T, T, R, VECTORS>(self.arms, n, rows, right, out);
                }
            }
        }
    }
}

/// Elements of rows that are widened at a time, and what makes that pay: so many elements of the
/// right matrix.
const WIDENED: usize = 512;
const MANY: usize = 64;

/// Some rows of a product, all vectors of columns.
#[inline(always)]
fn columns<A: Arms<T>, T: Small, L: Small, const R: usize, const VECTORS: usize>(
    arms: A,
    n: usize,
    left: [&[L::Bytes]; R],
    right: &[T::Bytes],
    out: &mut [T::Bytes],
) {
    let mut column = 0;
    macro_rules! add {
        ($vectors:expr, $last:expr) => {
            add::<A, T, L, R, { $vectors }>(arms, n, left, &right[column..], &mut out[column..], $last)
        };
    }
    // Of whole vectors, the compiler knows it.
    while R == 1 && n - column >= MANY_VECTORS * LANES {
        add!(MANY_VECTORS, LANES);
        column += MANY_VECTORS * LANES;
    }
    while n - column >= VECTORS * LANES {
        add!(VECTORS, LANES);
        column += VECTORS * LANES;
    }
    match n - column {
        0 => (),
        few @ ..=LANES => add!(1, few),
        more => add!(VECTORS, more - LANES),
    }
}

/// `multiply` of f64 with a matrix of one column.
pub fn with_vector_in_order([m, k, n]: [usize; 3], matrix: &[u8], vector: &[u8], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if m >= LANES
        && k >= LANES
        && n == 1
        && let Some(wide) = Avx512::detect()
    {
        let (matrix, vector) = (&f64::view(matrix)[..m * k], &f64::view(vector)[..k]);
        return wide.run(InOrder { wide, matrix, vector, out: f64::view_mut(out) });
    }
    ordered::<f64>([m, k, n], matrix, vector, out);
}

/// Rows are lanes of sums: squares of the matrix are turned in registers.
#[cfg(target_arch = "x86_64")]
struct InOrder<'a> {
    wide: Avx512,
    matrix: &'a [[u8; 8]],
    vector: &'a [[u8; 8]],
    out: &'a mut [[u8; 8]],
}

#[cfg(target_arch = "x86_64")]
impl Vectorized for InOrder<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let InOrder { wide, matrix, vector, out } = self;
        let (m, k) = (out.len(), vector.len());
        let (chunks, rest) = vector.as_chunks::<LANES>();
        for row in (0..m).step_by(LANES) {
            // The last rows may be some of those before.
            let row = row.min(m - LANES);
            let mut rows = [matrix; LANES];
            for (i, slot) in rows.iter_mut().enumerate() {
                *slot = &matrix[(row + i) * k..][..k];
            }
            let mut sums = <f64 as MulAddVector<Avx512>>::splat(wide, 0.0);
            for (i, factors) in chunks.iter().enumerate() {
                let columns = columns_of(wide, &rows, i * LANES, LANES);
                for j in 0..LANES {
                    sums = add_column(wide, sums, columns[j], factors[j]);
                }
            }
            if !rest.is_empty() {
                let columns = columns_of(wide, &rows, k - rest.len(), rest.len());
                for j in 0..LANES {
                    if j < rest.len() {
                        sums = add_column(wide, sums, columns[j], rest[j]);
                    }
                }
            }
            f64::store_first(wide, sums, &mut out[row..][..LANES]);
        }
    }
}

/// So many elements of each row, at most a vector, as columns.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn columns_of(
    wide: Avx512,
    rows: &[&[[u8; 8]]; LANES],
    first: usize,
    count: usize,
) -> [<u64 as IntVector<Avx512>>::Vector; LANES] {
    let mut words = [<u64 as IntVector<Avx512>>::splat(wide, 0); LANES];
    for i in 0..LANES {
        words[i] = u64::read(wide, &rows[i][first..][..count]);
    }
    simd_quicksort::transpose::<Avx512, u64, LANES>(wide, &mut words);
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

/// `multiply` with a matrix of one column: each row of `k` in stripes, which are added up in a
/// fixed order.
pub fn with_vector<T: Small>(k: usize, matrix: &[u8], vector: &[u8], out: &mut [u8]) {
    let (matrix, vector) = (T::view(matrix), &T::view(vector)[..k]);
    dispatch(WithVector::<T> { matrix, vector, out: T::view_mut(out) });
}

struct WithVector<'a, T: Lane> {
    matrix: &'a [T::Bytes],
    vector: &'a [T::Bytes],
    out: &'a mut [T::Bytes],
}

/// Sums of a row side by side.
const STRIPES: usize = 16;

impl<T: Small> Vectorized for WithVector<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        striped::<T, Total, STRIPES>(self.matrix, self.vector, self.vector.len(), self.out);
    }
}

/// A sum in f64.
#[derive(Clone, Copy)]
struct Total(f64);

impl<T: Small> Sum<T> for Total {
    const NONE: Self = Total(0.0);
    #[inline(always)]
    fn add_product(self, a: T, b: T) -> Self {
        Total(self.0 + a.widen() * b.widen())
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Total(self.0 + other.0)
    }
    #[inline(always)]
    fn element(self) -> T {
        T::round(self.0)
    }
}

/// The sums of some rows and vectors of columns, the last of so many, of rows of `n`, whose first
/// column the slices begin with.
#[inline(always)]
fn add<A: Arms<T>, T: Small, L: Small, const R: usize, const V: usize>(
    arms: A,
    n: usize,
    left: [&[L::Bytes]; R],
    right: &[T::Bytes],
    out: &mut [T::Bytes],
    last: usize,
) {
    let (zero, steps) = (arms.splat(0.0), left[0].len());
    let mut rows = left;
    for row in &mut rows {
        *row = &row[..steps];
    }
    let mut sums = [[zero; V]; R];
    let columns = (V - 1) * LANES + last;
    for step in 0..steps {
        let right = &right[step * n..][..columns];
        let mut vectors = [zero; V];
        for i in 0..V {
            let length = if i + 1 < V { LANES } else { last };
            vectors[i] = arms.read(&right[i * LANES..][..length]);
        }
        for row in 0..R {
            let factor = arms.splat(L::load(rows[row][step]).widen());
            for i in 0..V {
                sums[row][i] = arms.add_product(sums[row][i], factor, vectors[i]);
            }
        }
    }
    #[expect(clippy::needless_range_loop, reason = "an iterator leaves the sums in memory")]
    for row in 0..R {
        if let Some(out) = out.get_mut(row * n..).filter(|out| !out.is_empty()) {
            for i in 0..V {
                let length = if i + 1 < V { LANES } else { last };
                arms.write(sums[row][i], &mut out[i * LANES..][..length]);
            }
        }
    }
}
