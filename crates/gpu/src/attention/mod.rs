//! Attention: over blocks of cached keys and values, and over whole tensors.

mod dense;
mod flash;
mod paged;
mod paged_config;
mod paged_operands;
mod paged_tiles;
mod tiles;

use crate::kernel::GpuKernelRow;
pub use dense::{DenseAttentionMethod, whole};
pub use flash::{CONFIGS as FLASH_CONFIGS, FlashConfig};
pub use paged::paged;
pub use paged_config::{CONFIGS as PAGED_CONFIGS, PagedConfig};
pub use paged_operands::PagedSizes;
pub use tiles::{CONFIGS as TILES_CONFIGS, TilesConfig};

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[dense::FUSED, dense::ONNX, dense::CONTRIB, paged::ROW];
