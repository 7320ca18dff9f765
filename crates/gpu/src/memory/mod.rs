//! Memory of a device: blocks, and tensors that stay there.

mod block;
mod device_tensor;
mod output;
mod parts;

pub use block::DeviceBlock;
pub(crate) use device_tensor::{DeviceMemory, is_elsewhere, not_stranded, resident};
pub(crate) use output::OutputMemory;

pub(crate) use crate::buffers::STEP;
pub use crate::buffers::{
    BufferReach, ClassStatistics, MemoryLimit, MemoryStatistics, PoolClass, PoolConfig,
};
