//! Buffers of a device: pools of them, memory that the CPU addresses too, pages of files, and weights for which
//! there is no room.

mod budget;
mod import;
mod mapped;
mod metal_config;
mod pool;
mod residency;
mod resident;
mod shared;

use wgpu::BufferUsages;

pub(crate) use import::{MappedPages, import, takes_pages};
pub(crate) use mapped::make;
pub(crate) use pool::{BufferClassKey, BufferPool, BufferRequest, TakenBuffer};
pub use pool::{
    BufferReach, ClassStatistics, MemoryLimit, MemoryStatistics, PoolClass, PoolConfig,
};
pub use residency::StreamStatistics;
pub(crate) use residency::{ResidencyPolicy, WeightResidency, WeightStream};
pub(crate) use resident::{DeviceKeeper, ResidentBuffer, keeper};
pub(crate) use shared::{HostBytes, SharedBuffer};

/// Lengths of buffers are multiples of this.
pub(crate) const STEP: u64 = 256;

/// Usages of every buffer that a pool keeps.
pub(crate) const POOLED_USAGES: BufferUsages =
    BufferUsages::STORAGE.union(BufferUsages::COPY_DST).union(BufferUsages::COPY_SRC);
