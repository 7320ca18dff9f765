//! Memory of a run besides weights and caches: an arena, and blocks through which inputs and outputs pass.

use std::sync::Arc;

use crate::device::GpuDevice;
use crate::error::GpuError;
use crate::memory::DeviceBlock;

/// Blocks of outputs that a room has at most: all but one may be held by whoever reads them.
const MAX_OUTPUTS: usize = 4;

/// Bytes of each kind that a run needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkspaceBytes {
    pub(crate) arena: u64,
    /// Bytes of inputs that go to the arena.
    pub(crate) inputs: u64,
    pub(crate) outputs: u64,
}

/// A block of outputs, and whether somebody reads it.
#[derive(Debug)]
struct OutputBlock {
    block: Arc<DeviceBlock>,
    held: Arc<()>,
}

impl OutputBlock {
    /// Returns whether the outputs of earlier runs in it are no longer read.
    fn is_free(&mut self) -> bool {
        Arc::get_mut(&mut self.held).is_some()
    }
}

/// The blocks of one run at a time.
#[derive(Debug)]
pub(crate) struct RunWorkspace {
    arena: Arc<DeviceBlock>,
    /// Block for inputs that a command copies to the arena, if the CPU does not address the arena.
    inputs: Option<Arc<DeviceBlock>>,
    /// The last one is that of the run.
    outputs: Vec<OutputBlock>,
}

/// The blocks that a run binds.
#[derive(Clone, Debug)]
pub(crate) struct RunBlocks {
    pub(crate) arena: Arc<DeviceBlock>,
    pub(crate) inputs: Option<Arc<DeviceBlock>>,
    pub(crate) outputs: Option<Arc<DeviceBlock>>,
}

fn same(one: Option<&Arc<DeviceBlock>>, other: Option<&Arc<DeviceBlock>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

impl RunBlocks {
    /// Returns whether all blocks are the same.
    pub(crate) fn are(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.arena, &other.arena)
            && same(self.inputs.as_ref(), other.inputs.as_ref())
            && same(self.outputs.as_ref(), other.outputs.as_ref())
    }

    /// Returns whether this block is among them.
    pub(crate) fn use_block(&self, block: &Arc<DeviceBlock>) -> bool {
        let all = [Some(&self.arena), self.inputs.as_ref(), self.outputs.as_ref()];
        all.into_iter().flatten().any(|own| Arc::ptr_eq(own, block))
    }
}

impl RunWorkspace {
    /// # Errors
    /// Fails when the device has no memory.
    pub(crate) fn new(device: &GpuDevice, needs: WorkspaceBytes) -> Result<Self, GpuError> {
        let arena = Arc::new(DeviceBlock::new(device, needs.arena)?);
        Ok(Self { arena, inputs: None, outputs: Vec::new() })
    }

    /// Bytes of all blocks.
    pub(crate) fn bytes(&self) -> u64 {
        let outputs = self.outputs.iter().map(|outputs| outputs.block.bytes());
        let inputs = self.inputs.iter().map(|block| block.bytes());
        self.arena.bytes() + inputs.chain(outputs).sum::<u64>()
    }

    /// Bytes of the arena.
    pub(crate) fn arena_bytes(&self) -> u64 {
        self.arena.bytes()
    }

    /// The blocks, whoever reads them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<DeviceBlock>> {
        let outputs = self.outputs.iter().map(|outputs| &outputs.block);
        std::iter::once(&self.arena).chain(&self.inputs).chain(outputs)
    }

    /// Sees to it that there are blocks as large as a run needs besides the arena, and gives those that had to go
    /// for them.
    ///
    /// # Errors
    /// Fails when the device has no memory.
    pub(crate) fn prepare(
        &mut self,
        device: &GpuDevice,
        needs: WorkspaceBytes,
    ) -> Result<Vec<Arc<DeviceBlock>>, GpuError> {
        let mut gone = Vec::new();
        let staged = if self.arena.host().is_some() { 0 } else { needs.inputs };
        if self.inputs.as_ref().is_none_or(|block| block.bytes() < staged) && staged > 0 {
            gone.extend(self.inputs.take());
            self.inputs = Some(Arc::new(DeviceBlock::shared(device, staged)?));
        }
        if needs.outputs == 0 {
            return Ok(gone);
        }
        let fits = |own: &mut OutputBlock| own.block.bytes() >= needs.outputs && own.is_free();
        if let Some(found) = self.outputs.iter_mut().rposition(fits) {
            let outputs = self.outputs.remove(found);
            self.outputs.push(outputs);
            return Ok(gone);
        }
        let free = self.outputs.iter_mut().position(OutputBlock::is_free);
        let oldest = (self.outputs.len() >= MAX_OUTPUTS).then_some(0);
        if let Some(small) = free.or(oldest) {
            gone.push(self.outputs.remove(small).block);
        }
        let block = Arc::new(DeviceBlock::shared(device, needs.outputs)?);
        self.outputs.push(OutputBlock { block, held: Arc::default() });
        Ok(gone)
    }

    /// The blocks of the run that the room was prepared for.
    pub(crate) fn blocks(&self, needs: WorkspaceBytes) -> RunBlocks {
        let last = self.outputs.last().map(|outputs| Arc::clone(&outputs.block));
        RunBlocks {
            arena: Arc::clone(&self.arena),
            inputs: self.inputs.clone().filter(|_| needs.inputs > 0),
            outputs: last.filter(|_| needs.outputs > 0),
        }
    }

    /// Returns the guard that a reader of the run's outputs in place must hold; `None` if too many are held.
    pub(crate) fn hold(&mut self) -> Option<Arc<()>> {
        let others = self.outputs.len().checked_sub(1)?;
        let held =
            self.outputs[..others].iter_mut().filter_map(|own| (!own.is_free()).then_some(()));
        let few = held.count() + 1 < MAX_OUTPUTS;
        self.outputs.last().filter(|_| few).map(|own| Arc::clone(&own.held))
    }
}
