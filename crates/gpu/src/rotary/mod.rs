//! Rotary position embeddings.

mod turn;

use crate::kernel::KernelRow;

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] = &[turn::ROTARY, turn::EMBEDDING, turn::PAIR, turn::CONTRIB];
