//! Vector kernels on other processors: none.

use std::ops::Range;

use super::{Cluster, Registers};
use crate::Error;

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

    /// Whether a buffer is read or written.
    pub(super) fn uses_buffer(&self, _: usize) -> bool {
        match *self {}
    }

    /// Computes the members for some rows.
    pub(super) fn run(&self, _: usize, _: &mut Registers<'_>) -> Result<(), Error> {
        match *self {}
    }
}
