//! Products of matrices that a cluster computes with its rows.
//!
//! Problem: the scores of an attention are a product, and the left operand of another one. They are larger than
//! the caches, and both products and what is between them move all of them through memory. Technique:
//! back-to-back products (B2B GEMM in CUTLASS): for some rows at a time, which are rows of one matrix, the first
//! product is computed into memory that stays in the second-level cache, the cluster computes from it by its
//! smaller blocks, and the second product multiplies what it gives.
//!
//! Only products that add up each sum in the order of its terms are computed so, which those of some rows
//! do as well ([`Strategy::adds_in_order`]): results stay the same.

use std::cell::Cell;

use smallvec::SmallVec;

use super::Cluster;
use super::member_loop::MemberLoop;
use super::run::Part;
use crate::DType;
use crate::Error;
use crate::cost::{
    Cost, JOINED_PRODUCT_BLOCK_BYTES, MAX_PACKED_FOR_JOINED_ELEMENT, MIN_JOINED_PRODUCT_BLOCKS,
    MIN_JOINED_PRODUCT_BYTES, MIN_JOINED_PRODUCT_ROWS,
};
use crate::exec::elementwise::scratch::{aligned, take, with_kept};
use crate::exec::gemm::matrix::{MatrixBytes, TypedMatrix};
use crate::exec::gemm::product;
use crate::exec::gemm::strategy::{Method, Strategy};
use crate::exec::threads::parallel;
use crate::graph::operand::{Operand, Target};
use crate::graph::operation::Operation;
use crate::ops;

thread_local! {
    /// The memory of the products of a thread's last cluster that has any.
    static PRODUCTS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A product of the rows of a matrix, which are rows of a cluster, by a matrix.
#[derive(Clone, Debug)]
pub(in crate::graph) struct Product {
    dtype: DType,
    /// The strategy for a whole matrix.
    strategy: Strategy,
    /// The number of the cluster's input that has the right matrices, one after the other.
    pub(in crate::graph) right: usize,
    /// Whether these are transposed.
    is_transposed: bool,
}

impl Product {
    /// The product that an operation computes, for the cluster's input `right`, if it is one of `rows` rows
    /// of dense matrices.
    pub(in crate::graph) fn of(
        operation: &Operation,
        inputs: &[Operand],
        outputs: &[Target],
        rows: usize,
        right: usize,
    ) -> Option<Self> {
        let (Operation::Dot { contract, batch }, [a, b], [output]) = (operation, inputs, outputs) else {
            return None;
        };
        let (&[row_axis], &[column_axis]) = (&contract[0][..], &contract[1][..]) else { return None };
        let leads = |axes: &[usize]| axes.iter().copied().eq(0..batch[0].len());
        let is_transposed = column_axis + 1 == b.shape.len();
        if !leads(&batch[0])
            || !leads(&batch[1])
            || row_axis + 1 != a.shape.len()
            || !is_transposed && column_axis != batch[1].len()
        {
            return None;
        }
        let k = *a.shape.get(row_axis)?;
        let all_rows: usize = a.shape[..row_axis].iter().product();
        let batches: usize = a.shape.get(..batch[0].len())?.iter().product();
        if all_rows != rows || batches == 0 || k == 0 || b.shape.get(column_axis) != Some(&k) {
            return None;
        }
        let n = b.shape.iter().product::<usize>() / k / batches;
        let dtypes = [a.dtype, b.dtype];
        let strategy = ops::dot::strategy(output.dtype, dtypes, [rows / batches, k, n]).ok()?;
        let dtype = output.dtype;
        let is_plain = strategy.method == Method::Blocked && strategy.lane == dtype && dtypes == [dtype; 2];
        (is_plain && strategy.reads == [dtype; 2]).then_some(Product {
            dtype,
            strategy,
            right,
            is_transposed,
        })
    }

    /// The number of rows of a matrix.
    fn matrix_rows(&self) -> usize {
        self.strategy.sizes[0]
    }

    /// The number of bytes of a row of the result.
    pub(in crate::graph) fn row_bytes(&self) -> usize {
        self.strategy.sizes[2] * self.dtype.width()
    }

    /// The number of bytes of a row of the left operand.
    pub(in crate::graph) fn left_row_bytes(&self) -> usize {
        self.strategy.sizes[1] * self.dtype.width()
    }

    /// The cost of a row.
    pub(in crate::graph) fn cost(&self) -> Cost {
        self.strategy.element_cost().saturating_mul(self.strategy.sizes[2] as Cost)
    }

    fn strategy_of(&self, rows: usize) -> Strategy {
        let [_, k, n] = self.strategy.sizes;
        Strategy { sizes: [rows, k, n], ..self.strategy }
    }

    /// Whether blocks of some rows give the results of whole matrices, and packing a matrix for each of them takes
    /// no longer than what is saved: to write and read the block, whose rows have some bytes.
    fn fits(&self, block: usize, row_bytes: usize) -> bool {
        let [m, k, n] = self.strategy.sizes;
        let sizes = [m, block, (m - 1) % block + 1];
        let adds_in_order =
            sizes.iter().all(|&rows| self.strategy_of(rows).adds_in_order([true, self.is_transposed]));
        let saved = block.saturating_mul(row_bytes / self.dtype.width());
        adds_in_order && k.saturating_mul(n) <= saved.saturating_mul(MAX_PACKED_FOR_JOINED_ELEMENT)
    }

    /// Multiplies the rows `left`, of which the first is the row `first` of the cluster.
    fn multiply(&self, left: &[u8], first: usize, right: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let (dtype, [m, k, n]) = (self.dtype, self.strategy.sizes);
        let matrix = first / m * k * n * dtype.width();
        let matrix_of = |bytes, strides| TypedMatrix { dtype, matrix: MatrixBytes { bytes, strides } };
        let right = matrix_of(&right[matrix..], if self.is_transposed { [1, k] } else { [n, 1] });
        let strategy = self.strategy_of(out.len() / self.row_bytes());
        product::multiply("dot", &strategy, matrix_of(left, [k, 1]), right, out, true)
    }
}

impl Cluster {
    /// The products of the inputs, with the numbers of these.
    fn input_products(&self) -> impl Iterator<Item = (usize, &Product)> {
        let products = self.inputs.iter().map(|input| input.product.as_deref());
        products.enumerate().filter_map(|(index, product)| Some((index, product?)))
    }

    fn products(&self) -> impl Iterator<Item = &Product> {
        let result = self.product.iter().map(|(_, product)| &**product);
        self.input_products().map(|(_, product)| product).chain(result)
    }

    /// The number of rows for which the products are computed at a time; `None` if there are none.
    pub(in crate::graph) fn product_rows(&self) -> Option<usize> {
        let inputs = self.input_products().map(|(_, product)| product.row_bytes());
        let result = self.product.iter().map(|(_, product)| product.left_row_bytes());
        let widest = inputs.chain(result).max()?.max(1);
        let m = self.products().next()?.matrix_rows();
        let fitting = (JOINED_PRODUCT_BLOCK_BYTES / widest).min(self.rows / MIN_JOINED_PRODUCT_BLOCKS);
        let fitting = fitting.max(MIN_JOINED_PRODUCT_ROWS);
        let even = m.div_ceil(m.div_ceil(fitting));
        Some(even.next_multiple_of(MIN_JOINED_PRODUCT_ROWS).min(m))
    }

    /// Whether the products give the same results beside the cluster's members as by themselves, and no later.
    pub(in crate::graph) fn products_fit(&self) -> bool {
        let Some(block) = self.product_rows() else { return true };
        let Some(m) = self.products().next().map(Product::matrix_rows) else { return true };
        let fits = |product: &Product, row_bytes: usize| {
            product.matrix_rows() == m
                && self.rows.saturating_mul(row_bytes) >= MIN_JOINED_PRODUCT_BYTES
                && product.fits(block, row_bytes)
        };
        self.folds.is_empty()
            && self.input_products().all(|(_, product)| fits(product, product.row_bytes()))
            && self.product.iter().all(|(_, product)| fits(product, product.left_row_bytes()))
    }

    /// The number of bytes of a row of a result.
    pub(super) fn result_row_bytes(&self, output: usize) -> usize {
        match &self.product {
            Some((result, product)) if *result == output => product.row_bytes(),
            _ => self.outputs[output],
        }
    }

    /// Calls `run` for blocks of rows, each of one matrix, which threads share.
    pub(super) fn in_product_parts<'a>(
        &self,
        block: usize,
        outputs: &'a mut [&mut [u8]],
        run: impl Fn(Part<'a>) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let m = self.products().next().map_or(self.rows, Product::matrix_rows);
        let parts = self.parts(outputs, |first| block.min(m - first % m));
        parallel::try_each(self.rows, self.cost, parts.into_iter(), run)
    }

    /// Computes a part with its products.
    pub(super) fn run_product_part(
        &self,
        loops: &[MemberLoop<'_>],
        inputs: &[&[u8]],
        block: usize,
        part: Part<'_>,
    ) -> Result<(), Error> {
        let Part { first, rows, outputs } = part;
        let of_inputs = self.input_products().map(|(_, product)| aligned(rows * product.row_bytes()));
        let of_result = self.product.iter().map(|(_, product)| aligned(rows * product.left_row_bytes()));
        with_kept(&PRODUCTS, of_inputs.chain(of_result).sum(), |mut memory| {
            let mut values: SmallVec<[&[u8]; 8]> = inputs.iter().copied().collect();
            for (index, product) in self.input_products() {
                let out = take(&mut memory, rows * product.row_bytes());
                let width = product.left_row_bytes();
                let left = &inputs[index][first * width..][..rows * width];
                product.multiply(left, first, inputs[product.right], out)?;
                values[index] = out;
            }
            let Some((result, product)) = &self.product else {
                return self.run_part(loops, (&values, &[]), block, Part { first, rows, outputs });
            };
            let left = take(&mut memory, rows * product.left_row_bytes());
            let mut outputs = outputs;
            let out = std::mem::take(&mut outputs[*result]);
            let mut outputs: SmallVec<[&mut [u8]; 4]> =
                outputs.into_iter().map(|output| -> &mut [u8] { output }).collect();
            outputs[*result] = &mut *left;
            self.run_part(loops, (&values, &[]), block, Part { first, rows, outputs })?;
            product.multiply(left, first, inputs[product.right], out)
        })
    }
}
