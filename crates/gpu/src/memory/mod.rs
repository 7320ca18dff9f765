//! Memory on the device: blocks, and tensors that stay there.

mod block;
mod device_tensor;
mod parts;
mod pool;
mod shelf;

pub use block::Block;
pub(crate) use block::STEP;
pub(crate) use device_tensor::{DeviceMemory, not_stranded, resident};
pub(crate) use pool::Pool;
pub use pool::{MemoryStatistics, PoolClass, PoolConfig};
pub(crate) use shelf::{Shelf, Shelves};
