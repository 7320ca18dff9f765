//! Tensors whose bytes are on the device.

use std::any::Any;
use std::slice;
use std::sync::{Arc, OnceLock};

use galatea_runtime::RuntimeError;
use galatea_tensor::{
    Allocation, HostBuffer, MemoryKind, OwnedParts, Tensor, TensorError, TensorErrorKind,
};

use super::DeviceBlock;
use crate::device::GpuDevice;
use crate::error::GpuError;

/// Bytes on the device. Where the processor does not address them, they are copied to the host when somebody asks for
/// their address.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    device: Arc<GpuDevice>,
    block: Arc<DeviceBlock>,
    len: usize,
    host: OnceLock<HostBuffer>,
}

impl DeviceMemory {
    /// The first `len` bytes of a block.
    pub(crate) fn new(device: &Arc<GpuDevice>, block: Arc<DeviceBlock>, len: usize) -> Self {
        Self { device: Arc::clone(device), block, len, host: OnceLock::new() }
    }

    pub(crate) fn block(&self) -> &Arc<DeviceBlock> {
        &self.block
    }

    pub(super) fn device(&self) -> &Arc<GpuDevice> {
        &self.device
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Forgets the copy on the host, which the block is no longer like.
    pub(super) fn changed(&mut self) {
        self.host.take();
    }

    fn is_on(&self, device: &Arc<GpuDevice>) -> bool {
        Arc::ptr_eq(&self.device, device)
    }

    /// The bytes where they lie, to be changed, if the processor addresses them.
    pub(super) fn own_bytes(&mut self) -> Option<&mut [u8]> {
        let host = self.block.host()?;
        let start = host.address(0, self.len);
        // SAFETY: the value, and with it the block, has one owner, so neither a tensor nor a run that goes on uses
        // the bytes; the slice lives no longer than the borrow.
        Some(unsafe { slice::from_raw_parts_mut(start, self.len) })
    }

    /// The copy on the host, made the first time.
    ///
    /// # Errors
    /// Fails when the device is lost, and when there is no memory.
    fn copied(&self) -> Result<&HostBuffer, TensorError> {
        if let Some(copy) = self.host.get() {
            return Ok(copy);
        }
        let unread = |error: GpuError| -> TensorError {
            TensorErrorKind::Remote(format!("a tensor on the GPU cannot be read: {error}")).into()
        };
        self.device.alive().map_err(unread)?;
        let mut copy = HostBuffer::try_zeroed(self.len)?;
        self.block.read(&self.device, copy.as_bytes_mut()).map_err(unread)?;
        // Another thread may have brought the same bytes meanwhile.
        Ok(self.host.get_or_init(|| copy))
    }
}

// SAFETY: the copy is made once, never moves, is never written again and is dropped only by `changed`,
// whose caller is the only one to have the value; the block keeps its address and is written by a step
// only while the step owns this value alone.
unsafe impl Allocation for DeviceMemory {
    fn kind(&self) -> MemoryKind {
        match self.block.host() {
            Some(_) => MemoryKind::Unified,
            None => MemoryKind::Device,
        }
    }
    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        match self.block.host() {
            Some(host) => Ok(host.address(0, self.len).cast_const()),
            None => self.copied()?.as_ptr(),
        }
    }
    fn len_bytes(&self) -> usize {
        self.len
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
    fn as_parts_mut(&mut self) -> Option<&mut dyn OwnedParts> {
        Some(self)
    }
}

/// Refuses a tensor that lies on a device that is gone, whose bytes nobody has any more.
pub(crate) fn not_stranded(tensor: &Tensor) -> Result<(), RuntimeError> {
    let memory = tensor.whole_allocation().and_then(|(allocation, _)| allocation.as_any());
    match memory.and_then(|memory| memory.downcast_ref::<DeviceMemory>()) {
        Some(memory) if memory.host.get().is_none() => memory.device.alive().map_err(|lost| {
            RuntimeError::provider(crate::NAME, format!("an input lies where {lost}"))
        }),
        _ => Ok(()),
    }
}

/// The block of a tensor that lies on this device as a whole, and whether nobody else has it.
pub(crate) fn resident(
    device: &Arc<GpuDevice>,
    tensor: &Tensor,
) -> Option<(Arc<DeviceBlock>, bool)> {
    let (allocation, alone) = tensor.whole_allocation()?;
    let memory = allocation.as_any()?.downcast_ref::<DeviceMemory>()?;
    memory.is_on(device).then(|| (Arc::clone(memory.block()), alone))
}

/// Returns whether a tensor lies on another device than this one.
pub(crate) fn is_elsewhere(device: &Arc<GpuDevice>, tensor: &Tensor) -> bool {
    let memory = tensor.whole_allocation().and_then(|(allocation, _)| allocation.as_any());
    let memory = memory.and_then(|any| any.downcast_ref::<DeviceMemory>());
    memory.is_some_and(|memory| !memory.is_on(device))
}
