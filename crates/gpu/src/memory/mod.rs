//! Memory on the device: blocks, and tensors that stay there.

mod block;
mod device_tensor;
mod import;
mod metal_config;
mod output;
mod parts;
mod pool;
mod shared;
mod shelf;

pub use block::Block;
pub(crate) use block::STEP;
pub(crate) use device_tensor::{DeviceMemory, is_elsewhere, not_stranded, resident};
pub(crate) use import::takes_pages;
pub(crate) use output::OutputMemory;
pub(crate) use pool::Pool;
pub use pool::{ClassStatistics, MemoryLimit, MemoryStatistics, PoolClass, PoolConfig, Reach};
pub(crate) use shared::Memory;
pub(crate) use shelf::{Shelf, Shelves};
