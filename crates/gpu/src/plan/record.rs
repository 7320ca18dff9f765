//! A plan with the buffers of one run, ready to be replayed.

use std::sync::Arc;
use std::time::Instant;

use galatea_tensor::HostBuffer;
use wgpu::BufferUsages;

use super::{Action, OutputPlace, Place, Plan};
use crate::device::{Counters, Device};
use crate::error::GpuError;
use crate::memory::Block;
use crate::timing::{Stamps, Watch};

/// The buffers and bindings that runs of a plan use, one run at a time.
#[derive(Debug)]
pub(crate) struct Recording {
    arena: Arc<Block>,
    slots: Vec<Arc<Block>>,
    /// For each dispatch.
    groups: Vec<wgpu::BindGroup>,
    /// What outputs are read back through, and where each starts in it.
    staging: Option<wgpu::Buffer>,
    reads: Vec<Option<(u64, usize)>>,
    /// Whether it has run before, and so may run again.
    replayed: bool,
    /// The commands of the next run.
    ahead: Option<Encoded>,
}

/// Binds a plan to its buffers.
///
/// # Errors
/// When the device refuses a binding.
pub(crate) fn record(
    device: &Arc<Device>,
    plan: &Plan,
    arena: Arc<Block>,
    slots: Vec<Arc<Block>>,
) -> Result<Recording, GpuError> {
    let mut staged = 0;
    let mut read = |output: &OutputPlace| match output {
        OutputPlace::Read { dtype, shape, .. } => {
            let bytes = shape.iter().product::<usize>() * dtype.size_bytes().unwrap_or(0);
            let start = staged;
            staged += (bytes as u64).next_multiple_of(256);
            Some((start, bytes))
        }
        OutputPlace::Constant(_) | OutputPlace::Stays { .. } => None,
    };
    let reads: Vec<Option<(u64, usize)>> = plan.outputs.iter().map(&mut read).collect();
    device.checked(|| {
        let staging = (staged > 0).then(|| {
            device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("read back"),
                size: staged,
                usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        let places = Places { arena: &arena, slots: &slots };
        let groups = plan.actions.iter().filter_map(|action| places.group(device, plan, action));
        let groups = groups.collect();
        let (arena, slots) = (Arc::clone(&arena), slots.clone());
        Recording { groups, staging, reads, arena, slots, replayed: false, ahead: None }
    })
}

/// The buffers behind places.
struct Places<'a> {
    arena: &'a Block,
    slots: &'a [Arc<Block>],
}

impl Places<'_> {
    fn find<'a>(&'a self, place: &'a Place) -> (&'a wgpu::Buffer, u64, u64) {
        match place {
            Place::Arena { offset, bytes } => (&self.arena.buffer, *offset, *bytes),
            Place::Slot { slot, bytes } => (&self.slots[*slot].buffer, 0, *bytes),
            Place::Fixed { block, offset, bytes } => (&block.buffer, *offset, *bytes),
        }
    }

    fn group(&self, device: &Device, plan: &Plan, action: &Action) -> Option<wgpu::BindGroup> {
        let Action::Dispatch { pipeline, bindings, params, name, .. } = action else { return None };
        let own = params.as_ref().zip(plan.params.as_ref());
        let own = own.map(|((offset, bytes), block)| (&block.buffer, *offset, *bytes));
        let all = bindings.iter().map(|place| self.find(place)).chain(own);
        let entries: Vec<wgpu::BindGroupEntry<'_>> = all
            .enumerate()
            .map(|(binding, (buffer, offset, bytes))| wgpu::BindGroupEntry {
                binding: u32::try_from(binding).unwrap_or(u32::MAX),
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset,
                    size: std::num::NonZeroU64::new(bytes),
                }),
            })
            .collect();
        Some(device.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&**name),
            layout: &pipeline.layout,
            entries: &entries,
        }))
    }
}

/// The commands of a run.
#[derive(Debug)]
struct Encoded {
    commands: wgpu::CommandBuffer,
    stamps: Option<Stamps>,
    watch: Watch,
}

/// A run that was handed over, and when.
#[derive(Debug)]
pub(crate) struct Handed {
    pub(crate) submission: wgpu::SubmissionIndex,
    pub(crate) stamps: Option<Stamps>,
    /// Commands began to be written.
    pub(crate) encode: Instant,
    /// They began to be handed over.
    pub(crate) submit: Instant,
    /// They were.
    pub(crate) submitted: Instant,
}

/// Writes stamps down where they belong.
struct Marks<'a> {
    stamps: Option<&'a Stamps>,
    dispatch: u32,
    pass: u32,
}

impl Marks<'_> {
    /// Whether each dispatch has a pass of its own.
    fn apart(&self) -> bool {
        self.stamps.is_some_and(|stamps| stamps.apart && stamps.of == Watch::Kernels)
    }

    fn pass<'a>(&mut self, encoder: &'a mut wgpu::CommandEncoder) -> wgpu::ComputePass<'a> {
        let thing = if self.apart() { self.dispatch } else { self.pass };
        let whole = |stamps: &&Stamps| stamps.apart || stamps.of == Watch::Whole;
        let timestamp_writes = self.stamps.filter(whole).and_then(|stamps| stamps.writes(thing));
        self.pass += 1;
        encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes })
    }

    /// A stamp before or behind a dispatch, where the device writes them there.
    fn stamp(&self, pass: &mut wgpu::ComputePass<'_>, behind: u32) {
        let inside = |stamps: &&Stamps| !stamps.apart && stamps.of == Watch::Kernels;
        let place = self.stamps.filter(inside);
        if let Some((set, at)) = place.and_then(|stamps| stamps.place(self.dispatch * 2 + behind)) {
            pass.write_timestamp(set, at);
        }
    }
}

impl Recording {
    /// Whether the recording is of these buffers.
    pub(crate) fn is_of(&self, arena: &Arc<Block>, slots: &[Arc<Block>]) -> bool {
        Arc::ptr_eq(&self.arena, arena)
            && self.slots.len() == slots.len()
            && self.slots.iter().zip(slots).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Whether values of the recording lie in this block.
    pub(crate) fn uses(&self, arena: &Arc<Block>) -> bool {
        Arc::ptr_eq(&self.arena, arena)
    }

    /// Hands the commands of the plan over, those that read outputs back included.
    pub(crate) fn submit(&mut self, device: &Device, plan: &Plan, watch: Watch) -> Handed {
        let encode = Instant::now();
        let ahead = self.ahead.take().filter(|ahead| ahead.watch == watch);
        let ahead = ahead.unwrap_or_else(|| self.encode(device, plan, watch));
        let Encoded { commands, stamps, .. } = ahead;
        Counters::add(&device.counters.dispatches, self.groups.len() as u64);
        let submit = Instant::now();
        let submission = device.submit(commands);
        let submitted = Instant::now();
        if let Some(stamps) = &stamps {
            stamps.map();
        }
        if let Some(staging) = &self.staging {
            staging.map_async(wgpu::MapMode::Read, .., |_| ());
        }
        Handed { submission, stamps, encode, submit, submitted }
    }

    /// Encodes the next run while the device is at work on this one: for steps that follow one another, where
    /// encoding takes as long as computing. What runs for the first time may be the only one of its shapes.
    pub(crate) fn encode_ahead(&mut self, device: &Device, plan: &Plan, watch: Watch) {
        if self.replayed && self.ahead.is_none() {
            self.ahead = Some(self.encode(device, plan, watch));
        }
        self.replayed = true;
    }

    fn encode(&self, device: &Device, plan: &Plan, watch: Watch) -> Encoded {
        let stamps = match watch {
            Watch::Off => None,
            Watch::Whole => Stamps::new(device, plan.passes(), watch),
            Watch::Kernels => Stamps::new(device, plan.dispatches(), watch),
        };
        let mut encoder = device.device.create_command_encoder(&Default::default());
        let places = Places { arena: &self.arena, slots: &self.slots };
        let mut groups = self.groups.iter();
        let mut actions = plan.actions.iter().peekable();
        let mut marks = Marks { stamps: stamps.as_ref(), dispatch: 0, pass: 0 };
        while let Some(action) = actions.peek() {
            if let Action::Copy { from, to, bytes } = action {
                let ((from, at, _), (to, onto, _)) = (places.find(from), places.find(to));
                encoder.copy_buffer_to_buffer(from, at, to, onto, *bytes);
                actions.next();
                continue;
            }
            let mut pass = marks.pass(&mut encoder);
            while let Some(Action::Dispatch { pipeline, groups: [x, y, z], .. }) = actions.peek() {
                pass.set_pipeline(&pipeline.pipeline);
                pass.set_bind_group(0, groups.next(), &[]);
                marks.stamp(&mut pass, 0);
                pass.dispatch_workgroups(*x, *y, *z);
                marks.stamp(&mut pass, 1);
                marks.dispatch += 1;
                actions.next();
                if marks.apart() {
                    break;
                }
            }
        }
        self.read_back(&mut encoder, plan, &places);
        if let Some(stamps) = &stamps {
            stamps.resolve(&mut encoder);
        }
        Encoded { commands: encoder.finish(), stamps, watch }
    }

    fn read_back(&self, encoder: &mut wgpu::CommandEncoder, plan: &Plan, places: &Places<'_>) {
        let Some(staging) = &self.staging else { return };
        for (output, read) in plan.outputs.iter().zip(&self.reads) {
            if let (OutputPlace::Read { from, .. }, Some((start, bytes))) = (output, read)
                && *bytes > 0
            {
                let (buffer, offset, _) = places.find(from);
                let size = (*bytes as u64).next_multiple_of(4);
                encoder.copy_buffer_to_buffer(buffer, offset, staging, *start, size);
            }
        }
    }

    /// The bytes of each output that was read back, once the run is over.
    pub(crate) fn outputs(&self, device: &Device) -> Result<Vec<Option<HostBuffer>>, GpuError> {
        let Some(staging) = &self.staging else {
            return Ok(self.reads.iter().map(|_| None).collect());
        };
        let view = staging.slice(..).get_mapped_range();
        let view = view.map_err(|error| GpuError::Refusal(error.to_string()))?;
        let copied = |read: &Option<(u64, usize)>| {
            let Some((start, bytes)) = read else { return Ok(None) };
            let start = usize::try_from(*start).unwrap_or(usize::MAX);
            let copy = HostBuffer::try_copy(&view[start..start + bytes])
                .map_err(|error| GpuError::Refusal(format!("an output cannot be kept: {error}")))?;
            Counters::add(&device.counters.download_bytes, *bytes as u64);
            Counters::add(&device.counters.copies, 1);
            Ok(Some(copy))
        };
        let all = self.reads.iter().map(copied).collect();
        drop(view);
        staging.unmap();
        all
    }
}
