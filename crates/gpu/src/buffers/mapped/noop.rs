//! Memory of a device that is not there.

use std::sync::Arc;

use wgpu::hal::api::Noop;
use wgpu::hal::noop::{Buffer, Context};

use super::{MappedApi, MappedMemory, allocated};
use crate::buffers::shared::MappedOwner;

impl MappedOwner for Buffer {}

impl MappedApi for Noop {
    fn make(
        _device: &wgpu::Device,
        below: &Context,
        size: u64,
    ) -> Result<MappedMemory<Self>, String> {
        let (buffer, start) = allocated::<Self>(below, size)?;
        let owner: Arc<dyn MappedOwner> = Arc::new(buffer.clone());
        Ok(MappedMemory { buffer, start, owner, member: None })
    }
}
