//! In the place of `machine_code` for other processors: there is none.

use super::code::{Code, Context, Register, Stop};
use crate::Error;

/// A loop as a function of machine code.
#[derive(Debug)]
pub(super) enum MachineCode {}

impl MachineCode {
    /// `None`: the loop is interpreted.
    pub(super) fn new(_: &mut [Code], _: &[Register], _: [usize; 2], _: usize) -> Option<Self> {
        None
    }

    /// Runs from an instruction on.
    pub(super) fn run(
        &self,
        _: &[Code],
        _: &mut usize,
        _: Context<'_, '_, '_>,
        _: isize,
    ) -> Option<Result<Stop, Error>> {
        match *self {}
    }
}
