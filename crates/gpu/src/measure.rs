//! Timing kernels on their own: dispatches bound to given memory, run one after the other in one pass.

use std::sync::Arc;
use std::time::Instant;

use wgpu::BufferUsages;

use crate::device::Device;
use crate::error::GpuError;
use crate::kernel::{Binding, Step};
use crate::memory::Block;

/// The dispatches of a node, and the memory of its values.
#[derive(Clone, Debug)]
pub struct Job {
    /// What a kernel bound.
    pub step: Step,
    /// The node's inputs.
    pub inputs: Vec<Arc<Block>>,
    /// The node's outputs.
    pub outputs: Vec<Arc<Block>>,
}

/// How long jobs took together.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// From handing the work over to its end.
    pub wall_ns: f64,
    /// On the device, where it tells.
    pub device_ns: Option<f64>,
}

fn refusal(text: impl std::fmt::Display) -> GpuError {
    GpuError::Refusal(text.to_string())
}

/// One dispatch, ready to be encoded.
struct Bound {
    pipeline: Arc<crate::device::Pipeline>,
    group: wgpu::BindGroup,
    groups: [u32; 3],
}

fn bind(device: &Device, jobs: &[Job]) -> Result<Vec<Bound>, GpuError> {
    let mut all = Vec::new();
    for job in jobs {
        let scratch = job.step.scratch.iter().map(|&bytes| Block::new(device, bytes).map(Arc::new));
        let scratch: Vec<Arc<Block>> = scratch.collect::<Result<_, _>>()?;
        for dispatch in &job.step.dispatches {
            let bytes: Vec<u8> =
                dispatch.params.iter().flat_map(|word| word.to_le_bytes()).collect();
            let params = (!bytes.is_empty()).then(|| Block::params(device, &bytes)).transpose()?;
            let pipeline = device.pipeline(&dispatch.shader)?;
            let mut places = Vec::new();
            for binding in &dispatch.bindings {
                places.push(match binding {
                    Binding::Input(at) => (job.inputs.get(*at), 0, None),
                    Binding::Output(at) => (job.outputs.get(*at), 0, None),
                    Binding::Scratch(at) => (scratch.get(*at), 0, None),
                    Binding::Weights(block) => (Some(block), 0, None),
                    Binding::Part(block, start, bytes) => (Some(block), *start, Some(*bytes)),
                });
            }
            let mut entries = Vec::new();
            let own = params.as_ref().map(|block| (Some(block), 0, None));
            let places =
                places.into_iter().map(|(block, at, size)| (block.map(|b| &**b), at, size));
            for (at, (block, offset, bytes)) in places.chain(own).enumerate() {
                let block = block.ok_or_else(|| refusal("a value has no memory"))?;
                let size = std::num::NonZeroU64::new(bytes.unwrap_or_else(|| block.bytes()));
                entries.push(wgpu::BindGroupEntry {
                    binding: u32::try_from(at).map_err(refusal)?,
                    resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: &block.buffer,
                        offset,
                        size,
                    }),
                });
            }
            let descriptor = wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.layout,
                entries: &entries,
            };
            let group = device.checked(|| device.device.create_bind_group(&descriptor))?;
            all.push(Bound { pipeline, group, groups: dispatch.groups });
        }
    }
    Ok(all)
}

/// Room for the start and the end of a pass.
struct Clock {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    read: wgpu::Buffer,
}

impl Clock {
    fn new(device: &Device) -> Option<Self> {
        let buffer = |usage| {
            device.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 16,
                usage,
                mapped_at_creation: false,
            })
        };
        device.capabilities().timestamps.then(|| Self {
            set: device.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: 2,
            }),
            resolved: buffer(BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC),
            read: buffer(BufferUsages::COPY_DST | BufferUsages::MAP_READ),
        })
    }

    fn nanoseconds(&self, device: &Device) -> Result<f64, GpuError> {
        let view = self.read.slice(..).get_mapped_range().map_err(refusal)?;
        let mut ticks = view
            .chunks_exact(8)
            .map(|bytes| bytes.iter().rev().fold(0_u64, |all, &byte| all << 8 | u64::from(byte)));
        let (start, end) = (ticks.next().unwrap_or(0), ticks.next().unwrap_or(0));
        #[allow(clippy::cast_precision_loss, reason = "a difference of short times")]
        let time = end.saturating_sub(start) as f64;
        drop(view);
        self.read.unmap();
        Ok(time * f64::from(device.queue.get_timestamp_period()))
    }
}

/// Runs all jobs, one after the other, so many times; each time all of them are handed over at once.
///
/// # Errors
/// When a shader does not compile, memory is missing, or the device fails.
pub fn times(device: &Device, jobs: &[Job], runs: usize) -> Result<Vec<Times>, GpuError> {
    let bound = bind(device, jobs)?;
    let clock = Clock::new(device);
    let mut all = Vec::with_capacity(runs);
    for _ in 0..runs {
        let mut encoder = device.device.create_command_encoder(&Default::default());
        let writes = clock.as_ref().map(|clock| wgpu::ComputePassTimestampWrites {
            query_set: &clock.set,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        });
        let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes: writes };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        for Bound { pipeline, group, groups: [x, y, z] } in &bound {
            pass.set_pipeline(&pipeline.pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(*x, *y, *z);
        }
        drop(pass);
        if let Some(clock) = &clock {
            encoder.resolve_query_set(&clock.set, 0..2, &clock.resolved, 0);
            encoder.copy_buffer_to_buffer(&clock.resolved, 0, &clock.read, 0, 16);
        }
        let commands = encoder.finish();
        let start = Instant::now();
        let submission = device.submit(commands);
        if let Some(clock) = &clock {
            clock.read.map_async(wgpu::MapMode::Read, .., |_| ());
        }
        device.wait(submission)?;
        let wall_ns = start.elapsed().as_secs_f64() * 1e9;
        let device_ns = clock.as_ref().map(|clock| clock.nanoseconds(device)).transpose()?;
        all.push(Times { wall_ns, device_ns });
    }
    Ok(all)
}

/// Runs jobs once, one after the other, and reads bytes of one block afterwards.
///
/// # Errors
/// As [`times`].
pub fn run(device: &Device, jobs: &[Job], read: &Block, out: &mut [u8]) -> Result<(), GpuError> {
    times(device, jobs, 1)?;
    read.read(device, out)
}
