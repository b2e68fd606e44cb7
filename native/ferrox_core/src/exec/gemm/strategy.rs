//! Which loops compute a product of matrices, decided in one place: both the estimate of its work
//! and what runs it ask `Strategy::choose`.

use crate::DType;
use crate::cost::{self, Cost, Work};
use crate::exec::gemm::blocked::product_cost;
use crate::exec::gemm::{blocked, mixed};

/// Products of at most this many multiplications are added up in order, in f64 for floats, and
/// rounded once: blocks would not be faster. (`kernels`: dot_f32.)
pub const MAX_ORDERED_PRODUCTS: usize = 4096;

/// Cost of writing an element of the result. (`kernels`: dot_of_tall_f32, conv_f32.)
pub const PRODUCT_WRITE_COST: Cost = 200;

/// Cost of an element of an operand that may have to be moved first.
const OPERAND_MOVE_COST: Cost = 100;

/// Cost of an element of an operand that is converted first.
const OPERAND_CONVERT_COST: Cost = 500;

/// Cost of a matrix of a batch apart from its elements.
const BATCH_MATRIX_COST: Cost = 100_000;

/// The loops of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Few products of floats, each element of the result added up in order.
    InOrder,
    /// Integers, in tiles: the order makes no difference.
    Integers,
    /// A matrix with a vector: each element of the matrix is read once.
    MatrixVector,
    /// The larger operand is converted part by part while it is multiplied.
    Mixed,
    /// Many products of floats, in blocks that fit the caches.
    Blocked,
}

/// How matrices of `[m, k]` by `[k, n]` of some types are multiplied.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// What the products are added up in, and the type of what is written.
    pub lane: DType,
    /// What each operand is converted to before.
    pub reads: [DType; 2],
    /// The loops, where the layout of the operands allows for them.
    pub method: Method,
    /// `m`, `k` and `n`.
    pub sizes: [usize; 3],
}

impl Strategy {
    /// The strategy for a result of type `out`; `None` if there is no product of the types.
    #[must_use]
    pub fn choose(out: DType, dtypes: [DType; 2], sizes: [usize; 3]) -> Option<Self> {
        // Few products of f32 are widened on the way.
        let lane = match lane(out, dtypes, sizes)? {
            DType::F64 if [out, dtypes[0], dtypes[1]] == [DType::F32; 3] => DType::F32,
            lane => lane,
        };
        let reads = reads(lane, dtypes, sizes);
        let [m, _, n] = sizes;
        let method = match is_large(sizes) {
            large if (large || lane.is_integer()) && (m == 1 || n == 1) => Method::MatrixVector,
            _ if reads != [lane; 2] => Method::Mixed,
            _ if lane.is_integer() => Method::Integers,
            true => Method::Blocked,
            false => Method::InOrder,
        };
        Some(Strategy { lane, reads, method, sizes })
    }

    /// The method where no operand's rows or columns lie densely.
    #[must_use]
    pub fn without_vectors(&self) -> Method {
        match self.method {
            Method::MatrixVector if self.reads != [self.lane; 2] => Method::Mixed,
            Method::MatrixVector if self.lane.is_integer() => Method::Integers,
            Method::MatrixVector => Method::Blocked,
            method => method,
        }
    }

    /// Cost of a multiplication and addition, at most.
    #[must_use]
    pub fn product_cost(&self) -> Cost {
        product_cost(self.lane)
    }

    /// Cost of an element of the result.
    #[must_use]
    pub fn element_cost(&self) -> Cost {
        let [_, k, _] = self.sizes;
        match self.method {
            // Written while others are multiplied.
            Method::Blocked | Method::Mixed | Method::MatrixVector if !self.lane.is_integer() => {
                blocked_cost(self.lane).saturating_mul(k as Cost).max(PRODUCT_WRITE_COST)
            }
            _ => product_cost(self.lane).saturating_mul(k as Cost).saturating_add(PRODUCT_WRITE_COST),
        }
    }

    /// The work of a batch of products, of operands of some types.
    #[must_use]
    pub fn work(&self, batches: usize, dtypes: [DType; 2]) -> Work {
        let [m, k, n] = self.sizes;
        let size = |[rows, columns]: [usize; 2]| batches.saturating_mul(rows).saturating_mul(columns);
        let mut work = cost::work(size([m, n]), self.element_cost())
            .saturating_add(cost::work(batches, BATCH_MATRIX_COST));
        for ((dtype, read), sizes) in dtypes.into_iter().zip(self.reads).zip([[m, k], [k, n]]) {
            // What is multiplied a few times only is converted on the way.
            let conversion = match () {
                () if dtype == self.lane => 0,
                () if read != self.lane => mixed::MIXED_ELEMENT_COST,
                () => OPERAND_CONVERT_COST,
            };
            work = work.saturating_add(cost::work(size(sizes), OPERAND_MOVE_COST + conversion));
        }
        work
    }
}

/// Cost of a multiplication and addition in blocks.
fn blocked_cost(dtype: DType) -> Cost {
    match dtype {
        DType::F32 | DType::F64 => blocked::float_cost(dtype.width()),
        // Four products of real numbers.
        DType::C64 | DType::C128 => 4 * blocked::float_cost(dtype.width() / 2),
        other => product_cost(other),
    }
}

/// Whether the sums of a product needn't be added up in order.
fn is_large([m, k, n]: [usize; 3]) -> bool {
    m.saturating_mul(k).saturating_mul(n) > MAX_ORDERED_PRODUCTS
}

/// What each operand is converted to before it is multiplied: the lane, but for the larger operand
/// if it is much larger and takes less memory than f32.
fn reads(lane: DType, dtypes: [DType; 2], [m, k, n]: [usize; 3]) -> [DType; 2] {
    let mut reads = [lane; 2];
    let (larger, few, many) = if m > n { (0, n, m) } else { (1, m, n) };
    let dtype = dtypes[larger];
    let is_narrower = lane == DType::F32 && !dtype.is_packed() && dtype.width() < lane.width();
    if is_narrower && mixed::pays([few, k, many]) {
        reads[larger] = dtype;
    }
    reads
}

/// What products of some types are added up in; `None` if they have no meaning.
#[must_use]
pub fn lane(out: DType, dtypes: [DType; 2], sizes: [usize; 3]) -> Option<DType> {
    let complex = dtypes.iter().any(|d| d.is_complex());
    let integers = dtypes.iter().all(|d| d.is_integer());
    let small = !is_large(sizes);
    match out {
        _ if out.is_integer() => integers.then(|| match out.width() {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        }),
        _ if complex && !out.is_complex() => None,
        DType::C64 if small => Some(DType::C128),
        DType::C64 | DType::C128 | DType::F64 => Some(out),
        _ if small || dtypes.iter().any(|d| d.precision() > 24) => Some(DType::F64),
        _ => Some(DType::F32),
    }
}
