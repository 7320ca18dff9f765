//! Memory on the device: blocks, and tensors that stay there.

mod block;
mod device_tensor;
mod import;
mod metal_config;
mod output;
mod parts;
mod pool;
mod residency;
mod shared;

pub use block::DeviceBlock;
pub(crate) use block::STEP;
pub(crate) use device_tensor::{DeviceMemory, is_elsewhere, not_stranded, resident};
pub(crate) use import::takes_pages;
pub(crate) use output::OutputMemory;
pub(crate) use pool::BufferPool;
pub use pool::{
    BufferReach, ClassStatistics, MemoryLimit, MemoryStatistics, PoolClass, PoolConfig,
};
pub(crate) use residency::{ResidencyPolicy, WeightResidency};
pub(crate) use shared::SharedBuffer;
