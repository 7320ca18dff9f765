//! Running the dispatches of one node outside of a plan: to time them, and to compare variants.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::completion::SinglePassMark;
use crate::device::{GpuDevice, KernelPipeline};
use crate::error::GpuError;
use crate::kernel::{DispatchStep, ShaderBinding};
use crate::memory::DeviceBlock;
use crate::timers::StampPair;

/// Time of a batch after which what submitting costs is little of it.
const LONG_BATCH: Duration = Duration::from_millis(5);

/// The most times that a step is repeated in one submit because its time is that of the host's clock.
const MAX_BATCH: usize = 4096;

/// Time of some repetitions together.
struct BatchTime {
    /// Nanoseconds by the device's clock, if it was read.
    device_ns: Option<f64>,
    /// Time from handing over to the end, by the host's clock.
    wall: Duration,
}

#[allow(clippy::cast_precision_loss, reason = "a small count")]
fn float(times: usize) -> f64 {
    times as f64
}

/// A step with buffers of its own.
#[derive(Debug)]
pub struct StepTrial {
    device: Arc<GpuDevice>,
    outputs: Vec<Arc<DeviceBlock>>,
    /// The dispatches with each copy of the inputs.
    copies: Vec<Vec<BoundDispatch>>,
}

/// A dispatch that is ready to be started.
#[derive(Debug)]
pub(crate) struct BoundDispatch {
    pipeline: Arc<KernelPipeline>,
    group: wgpu::BindGroup,
    groups: [u32; 3],
    /// Blocks in use, which must not be reused before the last run is over.
    _held: Vec<Arc<DeviceBlock>>,
}

/// Buffers that the bindings of a trial name.
pub(crate) struct TrialBuffers<'a> {
    pub(crate) inputs: &'a [Option<Arc<DeviceBlock>>],
    pub(crate) outputs: &'a [Arc<DeviceBlock>],
    pub(crate) scratch: &'a [Arc<DeviceBlock>],
    /// Copies of what a kernel keeps, by the address of the original: it is bound itself where it has none.
    pub(crate) weights: &'a HashMap<usize, Arc<DeviceBlock>>,
}

impl TrialBuffers<'_> {
    fn weight<'b>(&'b self, block: &'b Arc<DeviceBlock>) -> &'b Arc<DeviceBlock> {
        self.weights.get(&Arc::as_ptr(block).addr()).unwrap_or(block)
    }

    fn find(&self, binding: &ShaderBinding) -> Result<(Arc<DeviceBlock>, u64, u64), GpuError> {
        let missing = || GpuError::Refusal(format!("a trial lacks {binding:?}"));
        let whole = |block: &Arc<DeviceBlock>| (Arc::clone(block), 0, block.bytes());
        match binding {
            ShaderBinding::Input(at) => {
                self.inputs.get(*at).and_then(Option::as_ref).map(whole).ok_or_else(missing)
            }
            ShaderBinding::InputPart(at, start, bytes) => {
                let block = self.inputs.get(*at).and_then(Option::as_ref);
                block.map(|block| (Arc::clone(block), *start, *bytes)).ok_or_else(missing)
            }
            ShaderBinding::Output(at) => self.outputs.get(*at).map(whole).ok_or_else(missing),
            ShaderBinding::Scratch(at) => self.scratch.get(*at).map(whole).ok_or_else(missing),
            ShaderBinding::Weights(block) | ShaderBinding::Part(block, ..)
                if block.is_outside() =>
            {
                Err(GpuError::Refusal("weights outside the GPU cannot be tried".into()))
            }
            ShaderBinding::Weights(block) => Ok(whole(self.weight(block))),
            ShaderBinding::Part(block, start, bytes) => {
                Ok((Arc::clone(self.weight(block)), *start, *bytes))
            }
        }
    }
}

/// Gives the dispatches of a step their buffers.
///
/// # Errors
/// Fails when a shader does not compile, or something is bound that is not there.
pub(crate) fn bound(
    device: &GpuDevice,
    step: &DispatchStep,
    buffers: &TrialBuffers<'_>,
) -> Result<Vec<BoundDispatch>, GpuError> {
    let mut all = Vec::new();
    for dispatch in &step.dispatches {
        let pipeline = device.pipeline(&dispatch.shader)?;
        let found = dispatch.bindings.iter().map(|binding| buffers.find(binding));
        let mut found = found.collect::<Result<Vec<_>, _>>()?;
        if !dispatch.params.is_empty() {
            let mut bytes: Vec<u8> =
                dispatch.params.iter().flat_map(|word| word.to_le_bytes()).collect();
            bytes.resize(bytes.len().next_multiple_of(16), 0);
            let block = Arc::new(DeviceBlock::params(device, &bytes)?);
            found.push((block, 0, bytes.len() as u64));
        }
        let entries: Vec<wgpu::BindGroupEntry<'_>> = (0_u32..)
            .zip(&found)
            .map(|(binding, (block, offset, bytes))| wgpu::BindGroupEntry {
                binding,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: &block.buffer,
                    offset: *offset,
                    size: std::num::NonZeroU64::new(*bytes),
                }),
            })
            .collect();
        let group = device.checked(|| {
            device.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(&*dispatch.shader.name),
                layout: &pipeline.layout,
                entries: &entries,
            })
        })?;
        let held = found.into_iter().map(|(block, ..)| block).collect();
        all.push(BoundDispatch { pipeline, group, groups: dispatch.groups, _held: held });
    }
    Ok(all)
}

impl StepTrial {
    /// Gives a step the bytes of its inputs, in so many copies that a repetition does not find them in a
    /// cache, and outputs of these sizes.
    ///
    /// # Errors
    /// Fails when a shader does not compile or the device has no memory.
    pub fn new(
        device: &Arc<GpuDevice>,
        step: &DispatchStep,
        inputs: &[Option<&[u8]>],
        output_bytes: &[u64],
        copies: usize,
    ) -> Result<Self, GpuError> {
        let steps = vec![step; copies.max(1)];
        Self::of_steps(device, &steps, inputs, output_bytes)
    }

    /// Gives each of several steps the same bytes of inputs in a copy of its own, and all the same outputs:
    /// a repetition runs the next step.
    ///
    /// # Errors
    /// Returns the same errors as [`StepTrial::new`].
    pub fn of_steps(
        device: &Arc<GpuDevice>,
        steps: &[&DispatchStep],
        inputs: &[Option<&[u8]>],
        output_bytes: &[u64],
    ) -> Result<Self, GpuError> {
        let blocks = |sizes: &[u64]| -> Result<Vec<Arc<DeviceBlock>>, GpuError> {
            sizes.iter().map(|&bytes| Ok(Arc::new(DeviceBlock::new(device, bytes)?))).collect()
        };
        let outputs = blocks(output_bytes)?;
        let mut trial = Self { device: Arc::clone(device), outputs, copies: Vec::new() };
        for step in steps {
            let scratch = blocks(&step.scratch)?;
            let inputs = inputs.iter().map(|bytes| bytes.map(|b| DeviceBlock::with(device, b)));
            let inputs = inputs.map(Option::transpose).collect::<Result<Vec<_>, _>>()?;
            let outputs = &trial.outputs[..];
            let scratch = &scratch[..];
            let weights = &HashMap::new();
            let buffers = TrialBuffers { inputs: &inputs, outputs, scratch, weights };
            let bound = bound(device, step, &buffers)?;
            trial.copies.push(bound);
        }
        Ok(trial)
    }

    /// A trial of dispatches that were bound before: for each copy of the inputs.
    pub(crate) fn of_bound(device: &Arc<GpuDevice>, copies: Vec<Vec<BoundDispatch>>) -> Self {
        Self { device: Arc::clone(device), outputs: Vec::new(), copies }
    }

    /// Runs the step at least so many times and waits. Gives nanoseconds of one time: by the device's clock where it
    /// has one, otherwise by the host's, of so many times that what submitting costs is little of it.
    ///
    /// # Errors
    /// Fails when the device is lost or hangs.
    pub fn run(&self, times: usize) -> Result<f64, GpuError> {
        self.run_from(0, times)
    }

    /// The same, beginning with the copy of this number.
    ///
    /// # Errors
    /// Returns the same errors as [`StepTrial::run`].
    pub(crate) fn run_from(&self, first: usize, times: usize) -> Result<f64, GpuError> {
        let mut times = times.max(1);
        loop {
            let took = self.batch(first, times)?;
            if let Some(nanoseconds) = took.device_ns {
                return Ok(nanoseconds / float(times));
            }
            let wall = took.wall.max(Duration::from_nanos(1));
            if wall >= LONG_BATCH || times >= MAX_BATCH {
                return Ok(wall.as_secs_f64() * 1e9 / float(times));
            }
            let factor = LONG_BATCH.as_secs_f64() / wall.as_secs_f64();
            times *= if factor > 8.0 { 8 } else { 2 };
        }
    }

    /// Runs the step so many times with one submit, beginning with the copy of this number.
    fn batch(&self, first: usize, times: usize) -> Result<BatchTime, GpuError> {
        let device = &self.device.device;
        let stamped = self.device.trusts_stamps();
        let stamps = stamped.then(|| {
            let set = device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: 2,
            });
            let buffer = |usage| {
                let size = 256;
                let mapped_at_creation = false;
                device.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size,
                    usage,
                    mapped_at_creation,
                })
            };
            let resolved = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
            (set, resolved, buffer(wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ))
        });
        let mark = SinglePassMark::new(&self.device)?;
        let mut encoder = device.create_command_encoder(&Default::default());
        let timestamp_writes = stamps.as_ref().map(|(set, ..)| wgpu::ComputePassTimestampWrites {
            query_set: set,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        });
        let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        let first = first % self.copies.len().max(1);
        for bound in self.copies.iter().cycle().skip(first).take(times).flatten() {
            pass.set_pipeline(&bound.pipeline.pipeline);
            pass.set_bind_group(0, &bound.group, &[]);
            let [x, y, z] = bound.groups;
            pass.dispatch_workgroups(x, y, z);
        }
        mark.end_pass(&self.device, &mut pass);
        drop(pass);
        mark.show(&mut encoder);
        if let Some((set, resolved, read)) = &stamps {
            encoder.resolve_query_set(set, 0..2, resolved, 0);
            encoder.copy_buffer_to_buffer(resolved, 0, read, 0, 256);
        }
        let start = Instant::now();
        let submission = self.device.submit(encoder.finish());
        if let Some((_, _, read)) = &stamps {
            read.map_async(wgpu::MapMode::Read, .., |_| ());
        }
        mark.wait(&self.device, &submission)?;
        let wall = start.elapsed();
        let mut device_ns = None;
        if let Some((_, _, read)) = &stamps {
            let view = read.slice(..).get_mapped_range();
            let view = view.map_err(|error| GpuError::Refusal(error.to_string()))?;
            let tick = |at: usize| {
                view[at..at + 8].iter().rev().fold(0_u64, |all, &byte| all << 8 | u64::from(byte))
            };
            let pair = StampPair { begin: tick(0), end: tick(8) };
            let period = f64::from(self.device.queue.get_timestamp_period());
            #[allow(clippy::cast_precision_loss, reason = "a difference of short times")]
            let nanoseconds = |ticks: u64| ticks as f64 * period;
            device_ns = self.device.told_stamps(pair).ticks().map(nanoseconds);
            if device_ns.is_none() {
                self.device.doubt_stamps();
            }
        }
        Ok(BatchTime { device_ns, wall })
    }

    /// Hands the first dispatches over without stamps and waits: what that takes on the host's clock.
    ///
    /// # Errors
    /// Fails when the device is lost or hangs.
    pub fn alone(&self) -> Result<Duration, GpuError> {
        let mark = SinglePassMark::new(&self.device)?;
        let start = Instant::now();
        let mut encoder = self.device.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        for bound in self.copies.iter().take(1).flatten() {
            pass.set_pipeline(&bound.pipeline.pipeline);
            pass.set_bind_group(0, &bound.group, &[]);
            let [x, y, z] = bound.groups;
            pass.dispatch_workgroups(x, y, z);
        }
        mark.end_pass(&self.device, &mut pass);
        drop(pass);
        mark.show(&mut encoder);
        let submission = self.device.submit(encoder.finish());
        mark.wait(&self.device, &submission)?;
        Ok(start.elapsed())
    }

    /// The bytes of an output.
    ///
    /// # Errors
    /// Fails when the device is lost, or there is no such output.
    pub fn output(&self, index: usize, bytes: usize) -> Result<Vec<u8>, GpuError> {
        let block = self.outputs.get(index);
        let block = block.ok_or_else(|| GpuError::Refusal(format!("no output {index}")))?;
        let mut out = vec![0; bytes];
        block.read(&self.device, &mut out)?;
        Ok(out)
    }
}
