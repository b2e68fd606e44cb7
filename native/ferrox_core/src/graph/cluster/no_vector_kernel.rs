//! Vector kernels on other processors: none.

use std::ops::Range;

use super::super::rows::InputRows;
use super::registers::Registers;
use super::{Cluster, Register};
use crate::Error;
use crate::cost::Cost;

/// Members of a cluster that are computed together.
#[derive(Clone, Debug)]
pub(in crate::graph) enum VectorKernel {}

impl VectorKernel {
    /// None.
    pub(super) fn all(_: &Cluster) -> Vec<Self> {
        Vec::new()
    }

    /// The members, by their numbers.
    pub(in crate::graph) fn members(&self) -> Range<usize> {
        match *self {}
    }

    /// The registers of the cluster that are read or written.
    pub(super) fn registers(&self) -> impl Iterator<Item = Register> {
        std::iter::empty()
    }

    /// Whether nothing else is read of a register than its rows.
    pub(super) fn reads_rows_alone(&self, _: Register) -> bool {
        match *self {}
    }

    /// Whether one call computes all rows, without copies of elements.
    pub(super) fn is_one_call(&self) -> bool {
        match *self {}
    }

    /// Whether a result may be written over the rows of an input without a copy.
    pub(super) fn can_overwrite(&self, _: Register, _: Register) -> bool {
        match *self {}
    }

    /// The number of bytes of arrays that a row reads and writes.
    pub(super) fn array_bytes(&self) -> Cost {
        match *self {}
    }

    /// The cost of the instructions for a row.
    pub(super) fn instruction_cost(&self) -> Cost {
        match *self {}
    }

    /// Reads the rows of an input where they are, one run of them after the other.
    pub(super) fn read_in_runs(&mut self, _: Register, _: &InputRows) {
        match *self {}
    }

    /// The number of bytes that [`VectorKernel::run`] needs for copies of elements of some rows.
    pub(super) fn copied_bytes(&self, _: usize) -> usize {
        match *self {}
    }

    /// Computes the members for some rows, given memory for copies of elements.
    pub(super) fn run(&self, _: usize, _: &mut Registers<'_>, _: &mut [u8]) -> Result<(), Error> {
        match *self {}
    }
}
