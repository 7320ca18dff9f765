//! Rotary position embeddings.

mod turn;

use crate::kernel::GpuKernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] =
    &[turn::ROTARY, turn::EMBEDDING, turn::PAIR, turn::CONTRIB];
