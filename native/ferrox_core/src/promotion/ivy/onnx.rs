//! Ivy's frontend of ONNX, which has PyTorch's table.

use super::super::{Mode, Scalars, System};
use super::{frontend, frontend_mode, torch};

const IVY_ONNX_MODES: &[Mode] = &[frontend_mode(torch::IVY_TORCH_TABLE, Scalars::Types)];

pub(in super::super) const IVY_ONNX: System = frontend("ivy_onnx", IVY_ONNX_MODES);
