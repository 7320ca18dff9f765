//! Marks by which every compute pass of a run says that it came to its end.
//!
//! Metal reports a command buffer that it aborted as done, and each pass is a command buffer of its own. So the
//! last dispatch of a pass copies the run's number beside it in memory that the host reads, and the host
//! compares both once the run is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wgpu::{BufferTransition, BufferUses};

use crate::buffers::{BufferReach, BufferRequest, HostBytes, POOLED_USAGES, SharedBuffer};
use crate::device::{DeviceFault, GpuDevice, KernelPipeline, KernelShader, QueuedSubmission};
use crate::error::GpuError;

/// Bytes of a mark: the run's number, and the word that the pass writes.
const MARK_BYTES: u64 = 8;

/// Shader of the last dispatch of a pass.
const SHADER: &str = include_str!("completion.wgsl");

/// Marks of the passes of one run at a time.
#[derive(Debug)]
pub(crate) struct PassMarks {
    memory: SharedBuffer,
    host: HostBytes,
    pipeline: Arc<KernelPipeline>,
    groups: Vec<wgpu::BindGroup>,
    /// Bytes from one mark to the next.
    stride: usize,
}

/// Marks of a run that was handed over, with the number that its passes write.
#[derive(Debug)]
pub(crate) struct ArmedMarks {
    pub(crate) marks: Arc<PassMarks>,
    /// Passes of the run.
    pub(crate) passes: usize,
    pub(crate) number: RunNumber,
}

/// Number of a run, which no recent run had and which is never zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunNumber(u32);

impl RunNumber {
    fn next() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed).max(1))
    }
}

impl PassMarks {
    /// Makes marks for at least so many passes; `None` on a device that computes nothing.
    ///
    /// # Errors
    /// Fails when the device has no memory for them, or is lost.
    pub(crate) fn new(device: &GpuDevice, passes: usize) -> Result<Option<Arc<Self>>, GpuError> {
        if !device.computes() {
            return Ok(None);
        }
        let passes = passes.max(1).next_power_of_two();
        let alignment = device.device.limits().min_storage_buffer_offset_alignment;
        let stride = u64::from(alignment).max(MARK_BYTES);
        let bytes = stride * passes as u64;
        let wanted = BufferRequest { bytes, reach: BufferReach::Passing };
        let memory = device.make_buffer(wanted, POOLED_USAGES)?;
        let hidden = || GpuError::Refusal("the host does not see marks of passes".to_owned());
        let host = memory.host.clone().ok_or_else(hidden)?;
        let pipeline = device.pipeline(&KernelShader::new("pass-mark", SHADER).proved())?;
        let group = |at: usize| {
            let binding = wgpu::BufferBinding {
                buffer: &memory.buffer,
                offset: stride * at as u64,
                size: std::num::NonZeroU64::new(MARK_BYTES),
            };
            let resource = wgpu::BindingResource::Buffer(binding);
            device.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some("pass-mark"),
                layout: &pipeline.layout,
                entries: &[wgpu::BindGroupEntry { binding: 0, resource }],
            })
        };
        let groups = device.checked(|| (0..passes).map(group).collect())?;
        let stride = usize::try_from(stride).unwrap_or(usize::MAX);
        Ok(Some(Arc::new(Self { memory, host, pipeline, groups, stride })))
    }

    /// Returns whether there are marks for so many passes.
    pub(crate) fn fit(&self, passes: usize) -> bool {
        passes <= self.groups.len()
    }

    /// Ends a pass by the dispatch that writes its mark, and says whether there was a mark left for it.
    pub(crate) fn end_pass(&self, pass: &mut wgpu::ComputePass<'_>, at: usize) -> bool {
        let Some(group) = self.groups.get(at) else { return false };
        pass.set_pipeline(&self.pipeline.pipeline);
        pass.set_bind_group(0, group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
        true
    }

    /// Makes the marks visible to the host behind what was encoded.
    pub(crate) fn show(&self, encoder: &mut wgpu::CommandEncoder) {
        let shown = BufferTransition { buffer: &self.memory.buffer, state: BufferUses::MAP_READ };
        encoder.transition_resources(std::iter::once(shown), std::iter::empty());
    }

    /// Gives all passes of a run its number, before any of them is handed over.
    ///
    /// # Safety
    /// No run that writes these marks goes on.
    pub(crate) unsafe fn arm(&self) -> RunNumber {
        let number = RunNumber::next();
        let mut words = [0; 8];
        words[..4].copy_from_slice(&number.0.to_le_bytes());
        for at in 0..self.groups.len() {
            // SAFETY: the caller sees to it that the device does not use the marks.
            unsafe { self.host.put(at * self.stride, &words) };
        }
        number
    }
}

/// Mark of the only pass of commands that nobody repeats.
#[derive(Debug)]
pub(crate) struct SinglePassMark {
    /// `None` on a device that computes nothing.
    armed: Option<ArmedMarks>,
}

impl SinglePassMark {
    /// Makes a mark and arms it.
    ///
    /// # Errors
    /// Returns the same errors as [`PassMarks::new`].
    pub(crate) fn new(device: &GpuDevice) -> Result<Self, GpuError> {
        let armed = PassMarks::new(device, 1)?.map(|marks| {
            // SAFETY: nothing was handed over that writes marks made just now.
            let number = unsafe { marks.arm() };
            ArmedMarks { marks, passes: 1, number }
        });
        Ok(Self { armed })
    }

    /// Ends the pass by its mark.
    pub(crate) fn end_pass(&self, device: &GpuDevice, pass: &mut wgpu::ComputePass<'_>) {
        if let Some(armed) = self.armed.as_ref().filter(|_| !device.acts(DeviceFault::LastDispatch))
        {
            armed.marks.end_pass(pass, 0);
        }
    }

    /// Makes the mark visible to the host behind the pass.
    pub(crate) fn show(&self, encoder: &mut wgpu::CommandEncoder) {
        if let Some(armed) = &self.armed {
            armed.marks.show(encoder);
        }
    }

    /// Waits for the commands with the pass, and checks that it came to its end.
    ///
    /// # Errors
    /// Fails when the device is lost or hangs, or the pass did not end.
    pub(crate) fn wait(self, device: &GpuDevice, work: &QueuedSubmission) -> Result<(), GpuError> {
        device.wait(work)?;
        // SAFETY: the commands are done.
        self.armed.map_or(Ok(()), |armed| unsafe { armed.check(device) })
    }
}

impl ArmedMarks {
    /// Checks that every pass of the run came to its end, and gives the device up where one did not: what it was to
    /// write still holds what was there before.
    ///
    /// # Errors
    /// Returns [`GpuError::Lost`] if a pass did not end.
    ///
    /// # Safety
    /// The run is over.
    pub(crate) unsafe fn check(&self, device: &GpuDevice) -> Result<(), GpuError> {
        let marks = &self.marks;
        let ended = |at: &usize| {
            // SAFETY: the run that wrote the mark is over, and the next one is armed by whoever holds the marks.
            let word = unsafe { marks.host.bytes(at * marks.stride + 4, 4) };
            word == self.number.0.to_le_bytes()
        };
        match (0..self.passes).find(|at| !ended(at)) {
            None => Ok(()),
            Some(at) => {
                let passes = self.passes;
                Err(device.lose(format!("pass {} of {passes} did not come to its end", at + 1)))
            }
        }
    }
}
