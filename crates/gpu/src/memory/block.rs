//! Blocks of device memory.

use std::sync::Arc;

use wgpu::BufferUsages;

use galatea_tensor::Tensor;

use crate::buffers::{
    BufferClassKey, BufferPool, BufferReach, BufferRequest, HostBytes, MappedPages, POOLED_USAGES,
    ResidentBuffer, STEP, SharedBuffer, TakenBuffer, WeightResidency, import,
};
use crate::device::{DeviceCounters, GpuDevice};
use crate::error::GpuError;

/// Bytes of one upload at a time: what waits for the device lies in memory twice.
const PIECE: usize = 32 << 20;

/// Memory on a device, which goes back to its pool when nobody has it any more.
///
/// Whoever submits work that uses a block holds the block until that work is done, unless the block goes to no
/// pool ([`DeviceBlock::lasting`]) or is never the processor's ([`DeviceBlock::private`]).
#[derive(Debug)]
pub struct DeviceBlock {
    pub(crate) buffer: wgpu::Buffer,
    host: Option<HostBytes>,
    resident: Option<Arc<ResidentBuffer>>,
    /// Offset of the bytes in the buffer.
    start: u64,
    place: BufferClassKey,
    pool: Arc<BufferPool<SharedBuffer>>,
    /// Place of the bytes if the device has no room for them; the buffer is empty then.
    shelf: Option<WeightResidency>,
}

impl Drop for DeviceBlock {
    fn drop(&mut self) {
        let host = self.host.take();
        let resident = self.resident.take();
        let memory = SharedBuffer { buffer: self.buffer.clone(), host, resident };
        self.pool.give_back(memory, self.place);
    }
}

impl DeviceBlock {
    /// Memory of at least so many bytes, which may hold anything: for what is written before it is read.
    ///
    /// # Errors
    /// Fails when the device has none left or no buffer can be that large.
    pub fn new(device: &GpuDevice, bytes: u64) -> Result<Self, GpuError> {
        Self::pooled(device, bytes, device.reach(bytes))
    }

    /// Works like [`DeviceBlock::new`], with memory that only the device addresses.
    ///
    /// # Errors
    /// Returns the same errors as [`DeviceBlock::new`].
    pub(crate) fn private(device: &GpuDevice, bytes: u64) -> Result<Self, GpuError> {
        Self::pooled(device, bytes, BufferReach::Device)
    }

    /// Works like [`DeviceBlock::new`], with memory that the CPU addresses too, whether or not it is the device's
    /// own.
    ///
    /// # Errors
    /// Returns the same errors as [`DeviceBlock::new`].
    pub(crate) fn shared(device: &GpuDevice, bytes: u64) -> Result<Self, GpuError> {
        Self::pooled(device, bytes, BufferReach::Passing)
    }

    /// Memory of so many bytes, which are zero, for long: no more than they take is held.
    ///
    /// # Errors
    /// Returns the same errors as [`DeviceBlock::new`].
    pub fn lasting(device: &GpuDevice, bytes: u64) -> Result<Self, GpuError> {
        Self::exact(device, bytes, POOLED_USAGES)
    }

    fn pooled(device: &GpuDevice, bytes: u64, reach: BufferReach) -> Result<Self, GpuError> {
        let wanted = BufferRequest { bytes: Self::size(device, bytes)?, reach };
        let taken = device.pool.take(wanted, |wanted| device.make_buffer(wanted, POOLED_USAGES))?;
        Ok(Self::taken(device, taken))
    }

    fn taken(device: &GpuDevice, taken: TakenBuffer<SharedBuffer>) -> Self {
        let TakenBuffer { buffer: SharedBuffer { buffer, host, resident }, place } = taken;
        let pool = Arc::clone(&device.pool);
        Self { buffer, host, resident, start: 0, place, pool, shelf: None }
    }

    fn exact(device: &GpuDevice, bytes: u64, usage: BufferUsages) -> Result<Self, GpuError> {
        let wanted =
            BufferRequest { bytes: Self::size(device, bytes)?, reach: device.reach(bytes) };
        let make = |wanted| device.make_buffer(wanted, usage);
        let taken = device.pool.take_exact(wanted, make)?;
        Ok(Self::taken(device, taken))
    }

    /// Parameters of dispatches.
    ///
    /// # Errors
    /// Returns the same errors as [`DeviceBlock::new`].
    pub(crate) fn params(device: &GpuDevice, bytes: &[u8]) -> Result<Self, GpuError> {
        let usage = BufferUsages::UNIFORM | BufferUsages::COPY_DST;
        let mut block = Self::exact(device, bytes.len() as u64, usage)?;
        block.fill(device, 0, bytes);
        Ok(block)
    }

    /// The length of a buffer for so many bytes.
    fn size(device: &GpuDevice, bytes: u64) -> Result<u64, GpuError> {
        let size = bytes.max(1).checked_next_multiple_of(STEP).unwrap_or(u64::MAX);
        let limit = device.capabilities().buffer_bytes;
        if size > limit {
            let reason = format!("a buffer of this device has at most {limit}");
            return Err(GpuError::Memory { bytes, reason });
        }
        Ok(size)
    }

    /// Memory that holds these bytes.
    ///
    /// # Errors
    /// Returns the same errors as [`DeviceBlock::new`].
    pub fn with(device: &GpuDevice, bytes: &[u8]) -> Result<Arc<Self>, GpuError> {
        let mut block = Self::lasting(device, bytes.len() as u64)?;
        block.fill(device, 0, bytes);
        Ok(Arc::new(block))
    }

    /// Room for weights of so many bytes, which are zero: on the device, or outside where it has no room for
    /// the whole model.
    ///
    /// # Errors
    /// Returns the same errors as [`DeviceBlock::new`], and fails when there is no room outside either.
    pub(crate) fn for_weights(device: &GpuDevice, bytes: u64) -> Result<Self, GpuError> {
        let shelves = &device.shelves;
        if !shelves.is_beyond() || !shelves.takes(bytes) {
            match Self::lasting(device, bytes) {
                Err(GpuError::Memory { .. }) if shelves.takes(bytes) => {}
                made => return made,
            }
        }
        Self::outside(device, shelves.spilled(bytes.next_multiple_of(STEP))?)
    }

    /// Weights that hold these bytes.
    ///
    /// # Errors
    /// Returns the same errors as [`DeviceBlock::for_weights`].
    pub(crate) fn weights(device: &GpuDevice, bytes: &[u8]) -> Result<Arc<Self>, GpuError> {
        let mut block = Self::for_weights(device, bytes.len() as u64)?;
        block.keep(device, 0, bytes)?;
        Ok(Arc::new(block))
    }

    /// The bytes of a tensor of the model, as they are: where the file has them, if the device reads them there.
    ///
    /// # Errors
    /// Returns the same errors as [`DeviceBlock::for_weights`].
    pub(crate) fn of_tensor(device: &GpuDevice, tensor: &Tensor) -> Result<Arc<Self>, GpuError> {
        let bytes = tensor.unaligned_bytes();
        let bytes = bytes.map_err(|error| GpuError::Shelf(error.to_string()))?;
        let takes = device.shelves.takes(bytes.len() as u64);
        if !device.shelves.is_beyond() || !takes {
            let imported = Self::imported(device, tensor);
            match imported.unwrap_or_else(|| Self::with(device, bytes)) {
                Err(GpuError::Memory { .. }) if takes => {}
                made => return made,
            }
        }
        Ok(Arc::new(Self::outside(device, WeightResidency::Tensor(tensor.clone()))?))
    }

    /// A tensor in a mapped file as memory of the device; nothing where that cannot be.
    fn imported(device: &GpuDevice, tensor: &Tensor) -> Option<Result<Arc<Self>, GpuError>> {
        let alignment = device.device.limits().min_storage_buffer_offset_alignment;
        let pages =
            MappedPages::of(tensor, u64::from(alignment)).filter(|_| device.reads_pages())?;
        let bytes = pages.bytes;
        let most = device.capabilities().buffer_bytes;
        if device.reach(bytes) != BufferReach::Host || bytes > most {
            return None;
        }
        let made = device
            .checked(|| import(&device.device, &pages, device.residents.as_ref()))
            .ok()
            .flatten()?;
        let taken = device
            .pool
            .take_exact(BufferRequest { bytes, reach: BufferReach::Host }, |_| Ok(made.clone()));
        Some(taken.map(|taken| {
            let mut own = Self::taken(device, taken);
            own.start = pages.offset;
            DeviceCounters::add(&device.counters.imported_bytes, tensor.size_bytes() as u64);
            Arc::new(own)
        }))
    }

    fn outside(device: &GpuDevice, shelf: WeightResidency) -> Result<Self, GpuError> {
        let mut block = Self::lasting(device, STEP)?;
        block.shelf = Some(shelf);
        Ok(block)
    }

    /// Returns whether the bytes lie outside the device.
    pub(crate) fn is_outside(&self) -> bool {
        self.shelf.is_some()
    }

    /// Hands the bytes over that lie outside, piece by piece with the place of each.
    ///
    /// # Errors
    /// Fails when they cannot be read.
    pub(crate) fn shelved(&self, put: impl FnMut(usize, &[u8])) -> Result<(), GpuError> {
        self.shelf.as_ref().map_or(Ok(()), |shelf| shelf.read(put))
    }

    /// A copy on the device of bytes that lie outside.
    ///
    /// # Errors
    /// Returns the same errors as [`DeviceBlock::new`], and fails when they cannot be read.
    pub(crate) fn brought(&self, device: &GpuDevice) -> Result<Self, GpuError> {
        let block = Self::lasting(device, self.bytes())?;
        self.shelved(|at, bytes| block.write(device, at as u64, bytes))?;
        Ok(block)
    }

    /// Writes bytes of weights, wherever they lie.
    ///
    /// # Errors
    /// Fails when bytes outside cannot be written.
    pub(crate) fn keep(
        &mut self,
        device: &GpuDevice,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), GpuError> {
        match &self.shelf {
            Some(shelf) => shelf.write(offset, bytes),
            None => {
                self.fill(device, offset, bytes);
                Ok(())
            }
        }
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shelf.as_ref().map_or(self.place.bytes - self.start, WeightResidency::bytes)
    }

    /// Returns the offset of the bytes in the buffer.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the address of the bytes for the CPU, if it has one.
    pub(crate) fn host(&self) -> Option<&HostBytes> {
        self.host.as_ref()
    }

    /// Writes bytes from `offset` on, a multiple of 4, to a block that nobody else has yet: straight to its memory
    /// where the processor addresses it.
    pub(crate) fn fill(&mut self, device: &GpuDevice, offset: u64, bytes: &[u8]) {
        let Some(host) = &self.host else { return self.write(device, offset, bytes) };
        // SAFETY: `&mut self` is the only handle, and whoever submits work holds one until it is done.
        unsafe { host.put(narrow(offset), bytes) };
        DeviceCounters::add(&device.counters.host_copies, 1);
        DeviceCounters::add(&device.counters.upload_bytes, bytes.len() as u64);
    }

    /// Writes bytes from `offset` on, a multiple of 4, before whatever is submitted next. The bytes behind
    /// them up to a multiple of 4 become zero.
    pub(crate) fn write(&self, device: &GpuDevice, offset: u64, bytes: &[u8]) {
        let mut at = offset;
        let whole = bytes.len() / 4 * 4;
        for piece in bytes[..whole].chunks(PIECE) {
            device.upload(&self.buffer, at, piece);
            at += piece.len() as u64;
            device.written(piece.len() as u64);
        }
        if whole < bytes.len() {
            let mut last = [0_u8; 4];
            last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
            device.upload(&self.buffer, at, &last);
        }
        DeviceCounters::add(&device.counters.upload_bytes, bytes.len() as u64);
        DeviceCounters::add(&device.counters.copies, 1);
    }

    /// Reads the first bytes back and waits for them. Work that is handed over is done before.
    ///
    /// # Errors
    /// Fails when the device is lost.
    pub fn read(&self, device: &GpuDevice, out: &mut [u8]) -> Result<(), GpuError> {
        for (piece, out) in out.chunks_mut(PIECE).enumerate() {
            let size = (out.len() as u64).next_multiple_of(4);
            let staging = device.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            });
            let mut encoder = device.device.create_command_encoder(&Default::default());
            let from = self.start + (piece * PIECE) as u64;
            encoder.copy_buffer_to_buffer(&self.buffer, from, &staging, 0, size);
            let submission = device.submit_copies(encoder);
            staging.map_async(wgpu::MapMode::Read, .., |_| ());
            device.wait(&submission)?;
            let view = staging.slice(..).get_mapped_range();
            let view = view.map_err(|error| GpuError::Refusal(error.to_string()))?;
            out.copy_from_slice(&view[..out.len()]);
            DeviceCounters::add(&device.counters.download_bytes, size);
            DeviceCounters::add(&device.counters.copies, 1);
        }
        Ok(())
    }
}

/// An offset in memory that the processor addresses.
fn narrow(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
