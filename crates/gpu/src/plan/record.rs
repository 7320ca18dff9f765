//! A plan with the buffers of one run, ready to be replayed.

use std::sync::Arc;
use std::time::Instant;

use galatea_tensor::HostBuffer;
use wgpu::BufferUsages;

use super::{Action, OutputPlace, Place, Plan};
use crate::device::{Counters, Device};
use crate::error::GpuError;
use crate::memory::Block;
use crate::stream::{Held, Slots};
use crate::timing::{Stamps, Watch};

/// The buffers and bindings that runs of a plan use, one run at a time.
#[derive(Debug)]
pub(crate) struct Recording {
    arena: Arc<Block>,
    slots: Vec<Arc<Block>>,
    /// For each dispatch; none where it reads weights that are now here, now there.
    groups: Vec<Option<wgpu::BindGroup>>,
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
        let places = Places { arena: &arena, slots: &slots, stream: None, held: None };
        let dispatch = |action: &&Action| matches!(action, Action::Dispatch { .. });
        let group = |action: &Action| match action.streamed().next() {
            Some(_) => Ok(None),
            None => places.group(device, plan, action),
        };
        let groups = plan.actions.iter().filter(dispatch).map(group).collect::<Result<_, _>>()?;
        let (arena, slots) = (Arc::clone(&arena), slots.clone());
        Ok(Recording { groups, staging, reads, arena, slots, replayed: false, ahead: None })
    })?
}

/// What is left to encode.
struct Rest<'a> {
    actions: std::iter::Peekable<std::slice::Iter<'a, Action>>,
    groups: std::slice::Iter<'a, Option<wgpu::BindGroup>>,
    marks: Marks<'a>,
}

/// The buffers behind places.
struct Places<'a, 's> {
    arena: &'a Block,
    slots: &'a [Arc<Block>],
    stream: Option<&'s Slots>,
    held: Option<Held<'s>>,
}

impl Places<'_, '_> {
    fn find<'a>(&'a self, place: &'a Place) -> Result<(&'a wgpu::Buffer, u64, u64), GpuError> {
        Ok(match place {
            Place::Arena { offset, bytes } => (&self.arena.buffer, *offset, *bytes),
            Place::Slot { slot, bytes } => (&self.slots[*slot].buffer, 0, *bytes),
            Place::Fixed { block, offset, bytes } => (&block.buffer, *offset, *bytes),
            Place::Streamed { block, offset, bytes } => {
                let lost = || GpuError::Shelf("a weight was not brought to the GPU".into());
                let (buffer, start) = self.brought(block).ok_or_else(lost)?;
                (buffer, start + offset, *bytes)
            }
        })
    }

    fn brought(&self, block: &Arc<Block>) -> Option<(&wgpu::Buffer, u64)> {
        self.stream?.find(block, self.held.as_ref())
    }

    /// Whether all weights of an action are where it can read them.
    fn have(&self, action: &Action) -> bool {
        action.streamed().all(|block| self.brought(block).is_some())
    }

    fn group(
        &self,
        device: &Device,
        plan: &Plan,
        action: &Action,
    ) -> Result<Option<wgpu::BindGroup>, GpuError> {
        let Action::Dispatch { pipeline, bindings, params, name, .. } = action else {
            return Ok(None);
        };
        let own = params.as_ref().zip(plan.params.as_ref());
        let own = own.map(|((offset, bytes), block)| (&block.buffer, *offset, *bytes));
        let all = bindings.iter().map(|place| self.find(place)).collect::<Result<Vec<_>, _>>()?;
        let entries: Vec<wgpu::BindGroupEntry<'_>> = all
            .into_iter()
            .chain(own)
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
        Ok(Some(device.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&**name),
            layout: &pipeline.layout,
            entries: &entries,
        })))
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

    /// Hands the commands of the plan over, those that read outputs back included; weights that are not on
    /// the device come to `stream`.
    ///
    /// # Errors
    /// When weights cannot be brought to the device.
    pub(crate) fn submit(
        &mut self,
        device: &Device,
        plan: &Plan,
        watch: Watch,
        stream: Option<&Slots>,
    ) -> Result<Handed, GpuError> {
        let encode = Instant::now();
        let ahead = self.ahead.take().filter(|ahead| ahead.watch == watch);
        let (encoded, held) = match ahead {
            Some(ahead) => (ahead, None),
            None => self.encode(device, plan, watch, stream)?,
        };
        let Encoded { commands, stamps, .. } = encoded;
        Counters::add(&device.counters.dispatches, self.groups.len() as u64);
        let submit = Instant::now();
        let submission = device.submit(commands);
        drop(held);
        let submitted = Instant::now();
        if let Some(stamps) = &stamps {
            stamps.map();
        }
        if let Some(staging) = &self.staging {
            staging.map_async(wgpu::MapMode::Read, .., |_| ());
        }
        Ok(Handed { submission, stamps, encode, submit, submitted })
    }

    /// Encodes the next run while the device is at work on this one: for steps that follow one another, where
    /// encoding takes as long as computing. What runs for the first time may be the only one of its shapes.
    pub(crate) fn encode_ahead(&mut self, device: &Device, plan: &Plan, watch: Watch) {
        if self.replayed && self.ahead.is_none() && plan.streamed.is_empty() {
            // Only weights that are not on the device fail, and runs without them encode anew.
            self.ahead = self.encode(device, plan, watch, None).ok().map(|(encoded, _)| encoded);
        }
        self.replayed = true;
    }

    /// The commands of a run, or the last ones of it where it has weights that are brought to the device, with
    /// what these need until they are handed over.
    fn encode<'s>(
        &self,
        device: &Device,
        plan: &Plan,
        watch: Watch,
        stream: Option<&'s Slots>,
    ) -> Result<(Encoded, Option<Held<'s>>), GpuError> {
        let stamps = match watch {
            Watch::Off => None,
            Watch::Whole if plan.streamed.is_empty() => Stamps::new(device, plan.passes(), watch),
            // How many passes there are shows only when weights have come.
            Watch::Whole | Watch::Kernels => Stamps::new(device, plan.dispatches(), Watch::Kernels),
        };
        let begin = || device.device.create_command_encoder(&Default::default());
        let mut encoder = begin();
        let mut places = Places { arena: &self.arena, slots: &self.slots, stream, held: None };
        let actions = plan.actions.iter().peekable();
        let marks = Marks { stamps: stamps.as_ref(), dispatch: 0, pass: 0 };
        let mut rest = Rest { actions, groups: self.groups.iter(), marks };
        while let Some(action) = rest.actions.peek() {
            if let (Some(stream), false) = (stream, places.have(action)) {
                if let Some(held) = places.held.take() {
                    // What reads the regions that are held comes before whatever takes their place.
                    device.submit(std::mem::replace(&mut encoder, begin()).finish());
                    drop(held);
                }
                places.held = Some(stream.hold(&stream.layout.regions_of(action.streamed()))?);
            }
            if !places.have(action) {
                return Err(GpuError::Shelf("a step has no way to its weights".into()));
            }
            Self::encode_next(device, plan, &mut encoder, &places, &mut rest)?;
        }
        self.read_back(&mut encoder, plan, &places)?;
        if let Some(stamps) = &stamps {
            stamps.resolve(&mut encoder);
        }
        Ok((Encoded { commands: encoder.finish(), stamps, watch }, places.held))
    }

    /// Encodes the next copy, or the dispatches up to the next copy or to one that needs other weights.
    fn encode_next(
        device: &Device,
        plan: &Plan,
        encoder: &mut wgpu::CommandEncoder,
        places: &Places<'_, '_>,
        rest: &mut Rest<'_>,
    ) -> Result<(), GpuError> {
        let Rest { actions, groups, marks } = rest;
        if let Some(Action::Copy { from, to, bytes }) = actions.peek() {
            let ((from, at, _), (to, onto, _)) = (places.find(from)?, places.find(to)?);
            encoder.copy_buffer_to_buffer(from, at, to, onto, *bytes);
            actions.next();
            return Ok(());
        }
        let mut pass = marks.pass(encoder);
        while let Some(action) = actions.peek() {
            let Action::Dispatch { pipeline, groups: [x, y, z], .. } = action else { break };
            if !places.have(action) {
                break;
            }
            pass.set_pipeline(&pipeline.pipeline);
            match groups.next().and_then(Option::as_ref) {
                Some(group) => pass.set_bind_group(0, group, &[]),
                None => pass.set_bind_group(0, places.group(device, plan, action)?.as_ref(), &[]),
            }
            marks.stamp(&mut pass, 0);
            pass.dispatch_workgroups(*x, *y, *z);
            marks.stamp(&mut pass, 1);
            marks.dispatch += 1;
            actions.next();
            if marks.apart() {
                break;
            }
        }
        Ok(())
    }

    fn read_back(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        plan: &Plan,
        places: &Places<'_, '_>,
    ) -> Result<(), GpuError> {
        let Some(staging) = &self.staging else { return Ok(()) };
        for (output, read) in plan.outputs.iter().zip(&self.reads) {
            if let (OutputPlace::Read { from, .. }, Some((start, bytes))) = (output, read)
                && *bytes > 0
            {
                let (buffer, offset, _) = places.find(from)?;
                let size = (*bytes as u64).next_multiple_of(4);
                encoder.copy_buffer_to_buffer(buffer, offset, staging, *start, size);
            }
        }
        Ok(())
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
