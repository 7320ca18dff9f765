//! Attention: over blocks of cached keys and values, and over whole tensors.

mod paged;

use crate::kernel::KernelRow;
pub use paged::{CONFIGS as PAGED_CONFIGS, PagedConfig, PagedSizes};

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] = &[paged::ROW];
