//! Memory on the device: blocks, and tensors that stay there.

mod block;
mod device_tensor;
mod parts;

pub use block::Block;
pub(crate) use block::STEP;
pub(crate) use device_tensor::{DeviceMemory, resident};
