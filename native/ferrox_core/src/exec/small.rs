//! Products of small matrices of floats, added up in order, in f64.
//!
//! Problem: to convert, to lay out and to allocate takes longer than the few products do.
//! Technique: both sides are read where they lie and converted on the way, and the sums of a
//! few rows and vectors of columns stay in registers. Products are rounded before they are
//! added, as `Nx.BinaryBackend` has it, those of f32 being exact.

#[cfg(target_arch = "x86_64")]
use super::simd::{Part, Products, Wide};
use super::simd::{Vectorized, dispatch};
use crate::dtype::Lane;

/// Rows and vectors of columns whose sums are in registers.
const ROWS: usize = 8;
const VECTORS: usize = 2;

/// Lanes of a vector, or of what stands for it.
const LANES: usize = 8;

#[cfg(not(target_arch = "x86_64"))]
use Lane as Part;

/// Floats that are multiplied in f64.
pub trait Small: Part {
    /// The value.
    fn widen(self) -> f64;
    /// The nearest to it.
    fn round(value: f64) -> Self;
}
impl Small for f32 {
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
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
    #[inline(always)]
    fn round(value: f64) -> f64 {
        value
    }
}

/// `out = left * right` for dense matrices, `[m, k]` by `[k, n]`, on the calling thread.
pub fn multiply<T: Small>([m, k, n]: [usize; 3], left: &[u8], right: &[u8], out: &mut [u8]) {
    let (left, right, out) = (&T::view(left)[..m * k], &T::view(right)[..k * n], T::view_mut(out));
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = Wide::detect() {
        return wide.run(Product::<_, T> { arms: wide, sizes: [m, k, n], left, right, out });
    }
    dispatch(Product::<_, T> { arms: Portable, sizes: [m, k, n], left, right, out });
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
impl<T: Small> Arms<T> for Wide {
    type Vector = <f64 as Products>::Vector;
    #[inline(always)]
    fn splat(self, value: f64) -> Self::Vector {
        <f64 as Products>::splat(self, value)
    }
    #[inline(always)]
    fn read(self, from: &[T::Bytes]) -> Self::Vector {
        T::read_part(self, from)
    }
    #[inline(always)]
    fn write(self, vector: Self::Vector, to: &mut [T::Bytes]) {
        T::write_part(self, vector, to);
    }
    #[inline(always)]
    fn add_product(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        f64::add_product(self, sum, a, b)
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

struct Product<'a, A, T: Lane> {
    arms: A,
    sizes: [usize; 3],
    left: &'a [T::Bytes],
    right: &'a [T::Bytes],
    out: &'a mut [T::Bytes],
}

impl<A: Arms<T>, T: Small> Vectorized for Product<'_, A, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if self.sizes[0] == 1 { self.rows::<1>() } else { self.rows::<ROWS>() }
    }
}

impl<A: Arms<T>, T: Small> Product<'_, A, T> {
    /// `R` rows at a time.
    #[inline(always)]
    fn rows<const R: usize>(self) {
        let [m, k, n] = self.sizes;
        for row in (0..m).step_by(R) {
            // Where rows are missing, the last one stands for them, and isn't written.
            let mut rows = [self.left; R];
            for (i, left) in rows.iter_mut().enumerate() {
                *left = &self.left[(row + i).min(m - 1) * k..][..k];
            }
            let out = &mut self.out[row * n..];
            let mut column = 0;
            while n - column > LANES {
                add::<A, T, R, VECTORS>(self.arms, n, rows, &self.right[column..], &mut out[column..]);
                column = n.min(column + VECTORS * LANES);
            }
            if column < n {
                add::<A, T, R, 1>(self.arms, n, rows, &self.right[column..], &mut out[column..]);
            }
        }
    }
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
        let k = self.vector.len();
        let (chunks, rest) = self.vector.as_chunks::<STRIPES>();
        for (slot, row) in self.out.iter_mut().zip(self.matrix.chunks_exact(k)) {
            let (row_chunks, row_rest) = row.as_chunks::<STRIPES>();
            let mut sums = [0.0; STRIPES];
            for (row, vector) in row_chunks.iter().zip(chunks) {
                for ((sum, &a), &b) in sums.iter_mut().zip(row).zip(vector) {
                    *sum += T::load(a).widen() * T::load(b).widen();
                }
            }
            // From memory: the compiler would keep them in pairs otherwise.
            let mut sums = std::hint::black_box(sums);
            let mut half = STRIPES / 2;
            while half > 0 {
                for i in 0..half {
                    sums[i] += sums[i + half];
                }
                half /= 2;
            }
            let mut total = sums[0];
            for (&a, &b) in row_rest.iter().zip(rest) {
                total += T::load(a).widen() * T::load(b).widen();
            }
            *slot = T::round(total).store();
        }
    }
}

/// The sums of some rows and vectors of columns; of the last vector what there is of rows of `n`,
/// whose first column the slices begin with.
#[inline(always)]
fn add<A: Arms<T>, T: Small, const R: usize, const V: usize>(
    arms: A,
    n: usize,
    left: [&[T::Bytes]; R],
    right: &[T::Bytes],
    out: &mut [T::Bytes],
) {
    let (zero, steps) = (arms.splat(0.0), left[0].len());
    let mut rows = left;
    for row in &mut rows {
        *row = &row[..steps];
    }
    let mut sums = [[zero; V]; R];
    let columns = n.min(V * LANES).min(right.len() - (steps - 1) * n);
    let last = columns - (V - 1) * LANES;
    for step in 0..steps {
        let right = &right[step * n..][..columns];
        let mut vectors = [zero; V];
        for i in 0..V {
            let length = if i + 1 < V { LANES } else { last };
            vectors[i] = arms.read(&right[i * LANES..][..length]);
        }
        for row in 0..R {
            let factor = arms.splat(T::load(rows[row][step]).widen());
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
