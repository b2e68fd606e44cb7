//! ONNX, which has PyTorch's table.

use super::super::{Mode, System};
use super::{frontend, frontend_mode, torch};

const MODES: &[Mode] = &[frontend_mode(torch::TABLE)];

pub(in super::super) const IVY_ONNX: System = frontend("ivy_onnx", MODES);
