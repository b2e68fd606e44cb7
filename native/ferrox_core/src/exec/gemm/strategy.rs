//! Chooses the technique that computes a product of matrices, in one place: both the estimate of
//! work and `product` ask `Strategy::choose`.

use crate::DType;
use crate::cost::{
    self, BATCH_MATRIX_COST, COMPLEX_GEMV_BYTE_COST, Cost, MIXED_ELEMENT_COST, OPERAND_CONVERT_COST,
    OPERAND_MOVE_COST, PRODUCT_WRITE_COST, SEPARATED_BYTE_COST, Work,
};
use crate::exec::gemm::blocked::product_cost;
use crate::exec::gemm::{blocked, mixed};

/// Products with at most this many multiplications are added up in order, in f64 for floats, and
/// rounded once: a blocked product wouldn't be faster. (`kernels`: dot_f32.)
pub const MAX_ORDERED_PRODUCTS: usize = 4096;

/// The technique that computes a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A small product of floats: each element of the result is added up in order.
    InOrder,
    /// A product of integers in register tiles.
    Integers,
    /// A matrix with a vector, without packing: each element of the matrix is read once.
    MatrixVector,
    /// A product whose larger operand is converted part by part while it is multiplied.
    Mixed,
    /// A large product of floats, packed and in blocks that fit the caches.
    Blocked,
}

/// How matrices of `[m, k]` and `[k, n]` of certain types are multiplied.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// The type that products are added up in, and the type of the result.
    pub lane: DType,
    /// The types that the operands are converted to before they are multiplied.
    pub reads: [DType; 2],
    /// The technique, if the layouts of the operands allow for it.
    pub method: Method,
    /// `m`, `k` and `n`.
    pub sizes: [usize; 3],
}

impl Strategy {
    /// The strategy for a result of type `out`. Returns `None` if the types have no product.
    #[must_use]
    pub fn choose(out: DType, dtypes: [DType; 2], sizes: [usize; 3]) -> Option<Self> {
        // Small products of f32 are widened while they are multiplied.
        let lane = match lane(out, dtypes, sizes)? {
            DType::F64 if [out, dtypes[0], dtypes[1]] == [DType::F32; 3] => DType::F32,
            lane => lane,
        };
        let reads = reads(lane, dtypes, sizes);
        let [m, _, n] = sizes;
        let mut strategy = Strategy { lane, reads, method: Method::MatrixVector, sizes };
        let has_vector = m == 1 || n == 1;
        if !has_vector || !(lane.is_integer() || is_large(sizes)) {
            strategy.method = strategy.without_vectors();
        }
        Some(strategy)
    }

    /// The method for a matrix whose rows and columns aren't dense.
    #[must_use]
    pub fn without_vectors(&self) -> Method {
        if self.reads != [self.lane; 2] {
            Method::Mixed
        } else if self.lane.is_integer() {
            Method::Integers
        } else if is_large(self.sizes) {
            Method::Blocked
        } else {
            Method::InOrder
        }
    }

    /// Whether each sum is added up in the order of its terms, so that operands with other strides give the
    /// same bits, given for each operand whether the terms of a sum are next to each other in memory.
    #[must_use]
    pub fn adds_in_order(&self, adjacent: [bool; 2]) -> bool {
        let [m, _, n] = self.sizes;
        self.method == Method::Blocked && blocked::adds_in_order([m, n], adjacent)
    }

    /// Whether a product that adds in order, of the transposed operands in the other order, is the transposed
    /// product, bit for bit.
    #[must_use]
    pub fn commutes(&self) -> bool {
        // The terms of an imaginary part would be added in the other order.
        !self.lane.is_complex()
    }

    /// An upper bound for the cost of a multiplication and addition.
    #[must_use]
    pub fn product_cost(&self) -> Cost {
        product_cost(self.lane)
    }

    /// The cost of an element of the result.
    #[must_use]
    pub fn element_cost(&self) -> Cost {
        let [_, k, _] = self.sizes;
        match self.method {
            Method::MatrixVector if self.lane.is_complex() => {
                (COMPLEX_GEMV_BYTE_COST * self.lane.width() as Cost).saturating_mul(k as Cost)
            }
            Method::Blocked if self.lane.is_complex() => blocked_cost(self.lane)
                .saturating_mul(k as Cost)
                .saturating_add(SEPARATED_BYTE_COST * self.lane.width() as Cost),
            // Elements are written while others are multiplied.
            Method::Blocked | Method::Mixed | Method::MatrixVector if !self.lane.is_integer() => {
                blocked_cost(self.lane).saturating_mul(k as Cost).max(PRODUCT_WRITE_COST)
            }
            _ => product_cost(self.lane).saturating_mul(k as Cost).saturating_add(PRODUCT_WRITE_COST),
        }
    }

    /// The work of a batch of products of operands of the given types.
    #[must_use]
    pub fn work(&self, batches: usize, dtypes: [DType; 2]) -> Work {
        let [m, k, n] = self.sizes;
        let size = |[rows, columns]: [usize; 2]| batches.saturating_mul(rows).saturating_mul(columns);
        let mut work = cost::work(size([m, n]), self.element_cost())
            .saturating_add(cost::work(batches, BATCH_MATRIX_COST));
        for ((dtype, read), sizes) in dtypes.into_iter().zip(self.reads).zip([[m, k], [k, n]]) {
            // An operand that keeps its type is converted while it is multiplied.
            let conversion = if dtype == self.lane {
                0
            } else if read != self.lane {
                MIXED_ELEMENT_COST
            } else {
                OPERAND_CONVERT_COST
            };
            work = work.saturating_add(cost::work(size(sizes), OPERAND_MOVE_COST + conversion));
        }
        work
    }
}

/// The cost of a multiplication and addition in a blocked product.
fn blocked_cost(dtype: DType) -> Cost {
    match dtype {
        DType::F32 | DType::F64 => blocked::float_cost(dtype.width()),
        // A complex product is four real products.
        DType::C64 | DType::C128 => 4 * blocked::float_cost(dtype.width() / 2),
        other => product_cost(other),
    }
}

/// Returns whether a product is too large to be added up in order.
fn is_large([m, k, n]: [usize; 3]) -> bool {
    m.saturating_mul(k).saturating_mul(n) > MAX_ORDERED_PRODUCTS
}

/// The types that the operands are converted to before they are multiplied: the lane for both,
/// except that an operand of a narrower type than f32 keeps its type if it is much larger than the
/// other.
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

/// The type that products of the given types are added up in. Returns `None` if the types have no
/// product.
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
