//! Marks by which every compute pass of a run, and every series of copies, says that it came to its end.
//!
//! Metal reports a command buffer that it aborted as done, and each pass is a command buffer of its own. So the
//! last dispatch of a pass copies the run's number beside it in memory that the host reads, and the host
//! compares both once the run is over. Behind copies a copy does the same.

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
    /// Marks of copies; `None` where a run copies nothing.
    copies: Option<MarkWords>,
}

/// Memory with a word for each series of copies of a run.
#[derive(Debug)]
struct MarkWords {
    buffer: wgpu::Buffer,
    host: HostBytes,
    count: usize,
}

/// Bytes of such a word.
const WORD_BYTES: usize = 4;

impl MarkWords {
    fn new(device: &GpuDevice, count: usize) -> Result<Self, GpuError> {
        let SharedBuffer { buffer, host, .. } = made(device, (count * WORD_BYTES) as u64)?;
        let hidden = || GpuError::Refusal("the host does not see marks of copies".to_owned());
        Ok(Self { buffer, host: host.ok_or_else(hidden)?, count })
    }
}

fn made(device: &GpuDevice, bytes: u64) -> Result<SharedBuffer, GpuError> {
    let wanted = BufferRequest { bytes, reach: BufferReach::Passing };
    device.make_buffer(wanted, POOLED_USAGES)
}

/// Parts of a run that leave marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkedParts {
    pub(crate) passes: usize,
    /// Series of copies.
    pub(crate) copies: usize,
}

/// Marks of a run that was handed over, with the number that its passes write.
#[derive(Debug)]
pub(crate) struct ArmedMarks {
    pub(crate) marks: Arc<PassMarks>,
    /// Parts of the run.
    pub(crate) parts: MarkedParts,
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
    /// Makes marks for at least so many passes and series of copies; `None` on a device that computes nothing.
    ///
    /// # Errors
    /// Fails when the device has no memory for them, or is lost.
    pub(crate) fn new(
        device: &GpuDevice,
        parts: MarkedParts,
    ) -> Result<Option<Arc<Self>>, GpuError> {
        if !device.computes() {
            return Ok(None);
        }
        let passes = parts.passes.max(1).next_power_of_two();
        let alignment = device.device.limits().min_storage_buffer_offset_alignment;
        let stride = u64::from(alignment).max(MARK_BYTES);
        let bytes = stride * passes as u64;
        let memory = made(device, bytes)?;
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
        let copies =
            (parts.copies > 0).then(|| MarkWords::new(device, parts.copies)).transpose()?;
        Ok(Some(Arc::new(Self { memory, host, pipeline, groups, stride, copies })))
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

    /// Ends a series of copies by the copy that writes its mark, and says whether there was a mark left for it.
    pub(crate) fn end_copies(&self, encoder: &mut wgpu::CommandEncoder, at: usize) -> bool {
        let Some(words) = self.copies.as_ref().filter(|words| at < words.count) else {
            return false;
        };
        // All passes have the run's number; this is the first one's.
        let size = WORD_BYTES as u64;
        let to = (at * WORD_BYTES) as u64;
        encoder.copy_buffer_to_buffer(&self.memory.buffer, 0, &words.buffer, to, size);
        true
    }

    /// Makes the marks visible to the host behind what was encoded.
    pub(crate) fn show(&self, encoder: &mut wgpu::CommandEncoder) {
        let words = self.copies.as_ref().map(|words| &words.buffer);
        let state = BufferUses::MAP_READ;
        let all = std::iter::once(&self.memory.buffer).chain(words);
        let shown = all.map(|buffer| BufferTransition { buffer, state });
        encoder.transition_resources(shown, std::iter::empty());
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
        // Numbers differ from run to run, so words of copies keep that of an earlier one.
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
        let parts = MarkedParts { passes: 1, copies: 0 };
        let armed = PassMarks::new(device, parts)?.map(|marks| {
            // SAFETY: nothing was handed over that writes marks made just now.
            let number = unsafe { marks.arm() };
            ArmedMarks { marks, parts, number }
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
    /// Checks that every part of the run came to its end, and gives the device up where one did not: what it was to
    /// write still holds what was there before.
    ///
    /// # Errors
    /// Returns [`GpuError::Lost`] if a part did not end.
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
        let MarkedParts { passes, copies } = self.parts;
        if let Some(at) = (0..passes).find(|at| !ended(at)) {
            let reason = format!("pass {} of {passes} did not come to its end", at + 1);
            return Err(device.lose(reason));
        }
        let copied = |at: usize| {
            marks.copies.as_ref().is_some_and(|words| {
                // SAFETY: the run that wrote the mark is over.
                let word = unsafe { words.host.bytes(at * WORD_BYTES, WORD_BYTES) };
                word == self.number.0.to_le_bytes()
            })
        };
        match (0..copies).all(copied) {
            true => Ok(()),
            false => Err(device.lose("a copy of a run did not come to its end".to_owned())),
        }
    }
}
