//! A plan with the buffers of one run, ready to be replayed.

use std::sync::Arc;
use std::time::Instant;

use galatea_tensor::{Allocation, HostBuffer, MemoryKind};
use wgpu::{BufferTransition, BufferUses};

use super::pieces::{EncodedPieces, MAX_PASSES, StampMarks};
use super::{BindingPlace, DeviceAction, GpuPlan, InputPlace, OutputPlace};
use crate::completion::{ArmedMarks, MarkedParts, PassMarks};
use crate::device::{DeviceCounters, DeviceFault, GpuDevice, QueuedSubmission, RunCommands};
use crate::error::GpuError;
use crate::memory::{DeviceBlock, OutputMemory};
use crate::stream::{HeldRegions, StreamSlots};
use crate::timing::{RunStamps, TimingLevel};
use crate::workspace::RunBlocks;

/// Outputs of fewer bytes are copied: while one is held, the next run needs bindings of its own.
const WORTH_HOLDING: usize = 64 << 10;

/// The buffers and bindings that runs of a plan use, one run at a time.
#[derive(Debug)]
pub(crate) struct PlanRecording {
    blocks: RunBlocks,
    slots: Vec<Arc<DeviceBlock>>,
    /// For each dispatch; none where it reads weights that are now here, now there.
    groups: Vec<Option<wgpu::BindGroup>>,
    /// Copy commands of a run, and bytes that they bring back.
    copies: u64,
    download_bytes: u64,
    /// True if it has run before, which makes another run likely.
    replayed: bool,
    /// Marks of the passes of the next run.
    completion: Option<Arc<PassMarks>>,
    /// The commands of the next run.
    ahead: Option<EncodedRun>,
}

/// Bytes of an output that are read, and where they start in the block of outputs.
fn read(output: &OutputPlace) -> Option<(u64, usize)> {
    match output {
        OutputPlace::Read { start, dtype, shape, .. } => {
            Some((*start, shape.iter().product::<usize>() * dtype.size_bytes().unwrap_or(0)))
        }
        OutputPlace::Constant(_) | OutputPlace::Stays { .. } | OutputPlace::Unwanted => None,
    }
}

/// Copy commands of a run in these blocks, and bytes that they bring back.
fn copied(plan: &GpuPlan, blocks: &RunBlocks) -> (u64, u64) {
    let staged =
        |place: &&InputPlace| blocks.inputs.is_some() && matches!(place, InputPlace::Arena { .. });
    let actions = plan.actions.iter().filter(|action| matches!(action, DeviceAction::Copy { .. }));
    let elsewhere =
        |output: &&OutputPlace| matches!(output, OutputPlace::Read { from: Some(_), .. });
    let bytes = plan.outputs.iter().filter(elsewhere).filter_map(read).map(|(_, bytes)| bytes);
    let read: Vec<usize> = bytes.filter(|&bytes| bytes > 0).collect();
    let count = plan.inputs.iter().filter(staged).count() + actions.count() + read.len();
    (count as u64, read.into_iter().sum::<usize>() as u64)
}

/// Returns the most passes that a run of a plan may have.
fn most_passes(plan: &GpuPlan, watch: TimingLevel) -> usize {
    match watch {
        TimingLevel::Off | TimingLevel::Whole if plan.streamed.is_empty() => plan.passes(),
        // Each dispatch may have a pass of its own.
        _ => plan.dispatches(),
    }
}

/// Binds a plan to its buffers.
///
/// # Errors
/// Fails when the device refuses a binding.
pub(crate) fn record(
    device: &Arc<GpuDevice>,
    plan: &GpuPlan,
    blocks: RunBlocks,
    slots: Vec<Arc<DeviceBlock>>,
) -> Result<PlanRecording, GpuError> {
    let groups = device.checked(|| {
        let places = PlaceBuffers { blocks: &blocks, slots: &slots, stream: None, held: None };
        let dispatch = |action: &&DeviceAction| matches!(action, DeviceAction::Dispatch { .. });
        let group = |action: &DeviceAction| match action.streamed().next() {
            Some(_) => Ok(None),
            None => places.group(device, plan, action),
        };
        plan.actions.iter().filter(dispatch).map(group).collect::<Result<_, GpuError>>()
    })??;
    let (copies, download_bytes) = copied(plan, &blocks);
    let replayed = false;
    let ahead = None;
    let parts = MarkedParts { passes: plan.passes(), copies: plan.copies() };
    let completion = PassMarks::new(device, parts)?;
    Ok(PlanRecording { blocks, slots, groups, copies, download_bytes, replayed, completion, ahead })
}

/// Actions that are left to encode.
struct UnencodedRest<'a> {
    actions: std::iter::Peekable<std::slice::Iter<'a, DeviceAction>>,
    groups: std::slice::Iter<'a, Option<wgpu::BindGroup>>,
    marks: StampMarks<'a>,
    completion: Option<&'a PassMarks>,
    /// Series of copies so far.
    copies: usize,
    /// Dispatches before which a new submission begins.
    cuts: &'a [usize],
}

impl UnencodedRest<'_> {
    /// Ends a pass by its mark.
    ///
    /// # Errors
    /// Fails when the run has more passes than marks.
    fn end_pass(
        &self,
        device: &GpuDevice,
        pass: &mut wgpu::ComputePass<'_>,
    ) -> Result<(), GpuError> {
        let Some(completion) = self.completion.filter(|_| !device.acts(DeviceFault::LastDispatch))
        else {
            return Ok(());
        };
        if completion.end_pass(pass, self.marks.last_pass()) {
            return Ok(());
        }
        Err(GpuError::Refusal("a run has more passes than it has marks for".into()))
    }

    /// Ends a series of copies by its mark.
    ///
    /// # Errors
    /// Fails when the run has more of them than marks.
    fn end_copies(
        &mut self,
        device: &GpuDevice,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), GpuError> {
        let Some(completion) = self.completion else { return Ok(()) };
        self.copies += 1;
        if !device.copies() || completion.end_copies(encoder, self.copies - 1) {
            return Ok(());
        }
        Err(GpuError::Refusal("a run has more copies than it has marks for".into()))
    }

    /// Returns whether a new submission begins before the next action.
    fn is_cut(&self) -> bool {
        self.cuts.first() == Some(&usize::try_from(self.marks.dispatch).unwrap_or(usize::MAX))
    }

    /// Begins a new submission where one is due.
    fn cut(&mut self, device: &GpuDevice, pieces: &mut EncodedPieces) {
        let passes = self.marks.passes();
        let dispatch = matches!(self.actions.peek(), Some(DeviceAction::Dispatch { .. }));
        let due = dispatch && self.is_cut();
        if due {
            self.cuts = &self.cuts[1..];
        }
        if due || passes - pieces.passes >= MAX_PASSES {
            pieces.cut(device, passes);
        }
    }

    /// Returns whether the device acts out that it leaves the current pass out.
    fn leaves_out(&self, device: &GpuDevice) -> bool {
        self.marks.last_pass() == 1 && device.acts(DeviceFault::MiddlePass)
    }
}

/// The buffers behind places.
struct PlaceBuffers<'a, 's> {
    blocks: &'a RunBlocks,
    slots: &'a [Arc<DeviceBlock>],
    stream: Option<&'s StreamSlots>,
    held: Option<HeldRegions<'s>>,
}

impl PlaceBuffers<'_, '_> {
    fn find<'a>(
        &'a self,
        place: &'a BindingPlace,
    ) -> Result<(&'a wgpu::Buffer, u64, u64), GpuError> {
        let RunBlocks { arena, outputs, .. } = self.blocks;
        Ok(match place {
            // A plan that has outputs to read has a block for them.
            BindingPlace::Output { offset, bytes } => {
                (&outputs.as_ref().unwrap_or(arena).buffer, *offset, *bytes)
            }
            BindingPlace::Arena { offset, bytes } => (&arena.buffer, *offset, *bytes),
            BindingPlace::Slot { slot, bytes } => (&self.slots[*slot].buffer, 0, *bytes),
            BindingPlace::Fixed { block, offset, bytes } => {
                (&block.buffer, block.start() + offset, *bytes)
            }
            BindingPlace::Streamed { block, offset, bytes } => {
                let lost = || GpuError::Shelf("a weight was not brought to the GPU".into());
                let (buffer, start) = self.brought(block).ok_or_else(lost)?;
                (buffer, start + offset, *bytes)
            }
        })
    }

    fn brought(&self, block: &Arc<DeviceBlock>) -> Option<(&wgpu::Buffer, u64)> {
        self.stream?.find(block, self.held.as_ref())
    }

    /// Returns whether all weights of an action are where it can read them.
    fn have(&self, action: &DeviceAction) -> bool {
        action.streamed().all(|block| self.brought(block).is_some())
    }

    fn group(
        &self,
        device: &GpuDevice,
        plan: &GpuPlan,
        action: &DeviceAction,
    ) -> Result<Option<wgpu::BindGroup>, GpuError> {
        let DeviceAction::Dispatch { pipeline, bindings, params, name, .. } = action else {
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
struct EncodedRun {
    commands: RunCommands,
    stamps: Option<RunStamps>,
    watch: TimingLevel,
    completion: Option<Arc<PassMarks>>,
    parts: MarkedParts,
}

/// A run that was handed over, and when.
#[derive(Debug)]
pub(crate) struct HandedRun {
    pub(crate) submission: QueuedSubmission,
    pub(crate) stamps: Option<RunStamps>,
    /// Marks of its passes.
    pub(crate) completion: Option<ArmedMarks>,
    /// Commands began to be written.
    pub(crate) encode: Instant,
    /// They began to be handed over.
    pub(crate) submit: Instant,
    /// They were.
    pub(crate) submitted: Instant,
}

impl PlanRecording {
    /// Returns whether the recording is of these buffers.
    pub(crate) fn is_of(&self, blocks: &RunBlocks, slots: &[Arc<DeviceBlock>]) -> bool {
        self.blocks.are(blocks) && self.is_with(slots)
    }

    /// Returns whether the recording binds these slots, whatever its other blocks.
    pub(crate) fn is_with(&self, slots: &[Arc<DeviceBlock>]) -> bool {
        self.slots.len() == slots.len()
            && self.slots.iter().zip(slots).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Writes an input that goes to the arena.
    ///
    /// # Safety
    /// No run goes on in the blocks of this recording.
    pub(crate) unsafe fn write(&self, device: &GpuDevice, place: &InputPlace, bytes: &[u8]) {
        let InputPlace::Arena { offset, start } = place else { return };
        let (block, at) = match &self.blocks.inputs {
            Some(beside) => (beside, *start),
            None => (&self.blocks.arena, *offset),
        };
        let Some(host) = block.host() else { return };
        // SAFETY: the caller sees to it that nobody uses these blocks.
        unsafe { host.put(usize::try_from(at).unwrap_or(usize::MAX), bytes) };
        DeviceCounters::add(&device.counters.host_copies, 1);
        DeviceCounters::add(&device.counters.upload_bytes, bytes.len() as u64);
    }

    /// Returns whether values of the recording lie in this block.
    pub(crate) fn uses(&self, block: &Arc<DeviceBlock>) -> bool {
        self.blocks.use_block(block)
    }

    /// Hands the commands of the plan over, with those that bring inputs and outputs where they do not lie
    /// already; weights that are not on the device come to `stream`.
    ///
    /// # Errors
    /// Fails when weights cannot be brought to the device.
    pub(crate) fn submit(
        &mut self,
        device: &GpuDevice,
        plan: &GpuPlan,
        watch: TimingLevel,
        stream: Option<&StreamSlots>,
    ) -> Result<HandedRun, GpuError> {
        let encode = Instant::now();
        let ahead = self.ahead.take().filter(|ahead| ahead.watch == watch);
        if ahead.is_none() {
            self.make_marks(device, plan, watch)?;
        }
        // SAFETY: one run at a time uses the recording, and it begins here.
        let number = self.completion.as_ref().map(|marks| unsafe { marks.arm() });
        let (encoded, held) = match ahead {
            Some(ahead) => (ahead, None),
            None => self.encode(device, plan, watch, stream)?,
        };
        let EncodedRun { commands, stamps, completion, parts, .. } = encoded;
        let completion = completion.zip(number);
        let completion = completion.map(|(marks, number)| ArmedMarks { marks, parts, number });
        let counters = &device.counters;
        DeviceCounters::add(&counters.dispatches, self.groups.len() as u64);
        DeviceCounters::add(&counters.copies, self.copies);
        DeviceCounters::add(&counters.download_bytes, self.download_bytes);
        let submit = Instant::now();
        let submission = device.submit_pieces(commands);
        drop(held);
        let submitted = Instant::now();
        if let Some(stamps) = &stamps {
            stamps.map();
        }
        Ok(HandedRun { submission, stamps, completion, encode, submit, submitted })
    }

    /// Encodes the next run while the device is at work on this one: for steps that follow one another, where
    /// encoding takes as long as computing. What runs for the first time may be the only one of its shapes.
    pub(crate) fn encode_ahead(&mut self, device: &GpuDevice, plan: &GpuPlan, watch: TimingLevel) {
        let marked =
            || self.completion.as_ref().is_none_or(|marks| marks.fit(most_passes(plan, watch)));
        if self.replayed && self.ahead.is_none() && plan.streamed.is_empty() && marked() {
            // Only weights that are not on the device fail, and runs without them encode anew.
            self.ahead = self.encode(device, plan, watch, None).ok().map(|(encoded, _)| encoded);
        }
        self.replayed = true;
    }

    /// Makes more marks where the next run may have more passes than there are.
    fn make_marks(
        &mut self,
        device: &GpuDevice,
        plan: &GpuPlan,
        watch: TimingLevel,
    ) -> Result<(), GpuError> {
        let passes = most_passes(plan, watch);
        if self.completion.as_ref().is_some_and(|marks| !marks.fit(passes)) {
            let parts = MarkedParts { passes, copies: plan.copies() };
            self.completion = PassMarks::new(device, parts)?;
        }
        Ok(())
    }

    /// The commands of a run, or the last ones of it where it has weights that are brought to the device, with
    /// what these need until they are handed over.
    fn encode<'s>(
        &self,
        device: &GpuDevice,
        plan: &GpuPlan,
        watch: TimingLevel,
        stream: Option<&'s StreamSlots>,
    ) -> Result<(EncodedRun, Option<HeldRegions<'s>>), GpuError> {
        let stamps = match watch {
            TimingLevel::Off => None,
            TimingLevel::Whole if plan.streamed.is_empty() => {
                RunStamps::new(device, plan.passes(), watch)
            }
            // How many passes there are shows only when weights have come.
            TimingLevel::Whole | TimingLevel::Kernels => {
                RunStamps::new(device, plan.dispatches(), TimingLevel::Kernels)
            }
        };
        let mut pieces = EncodedPieces::new(device);
        let mut places =
            PlaceBuffers { blocks: &self.blocks, slots: &self.slots, stream, held: None };
        let actions = plan.actions.iter().peekable();
        let marks = StampMarks { stamps: stamps.as_ref(), dispatch: 0, pass: 0 };
        let completion = self.completion.as_deref();
        let groups = self.groups.iter();
        let cuts = &plan.cuts[..];
        let mut rest = UnencodedRest { actions, groups, marks, completion, copies: 0, cuts };
        if self.bring_inputs(device, &mut pieces.encoder, plan) {
            rest.end_copies(device, &mut pieces.encoder)?;
        }
        while let Some(action) = rest.actions.peek() {
            if let (Some(stream), false) = (stream, places.have(action)) {
                if let Some(held) = places.held.take() {
                    // What reads the regions that are held comes before whatever takes their place.
                    pieces.hand_over(device, rest.marks.passes());
                    drop(held);
                }
                places.held = Some(stream.hold(&stream.layout.regions_of(action.streamed()))?);
            }
            if !places.have(action) {
                return Err(GpuError::Shelf("a step has no way to its weights".into()));
            }
            rest.cut(device, &mut pieces);
            Self::encode_next(device, plan, &mut pieces.encoder, &places, &mut rest)?;
        }
        if Self::read_back(device, &mut pieces.encoder, plan, &places)? {
            rest.end_copies(device, &mut pieces.encoder)?;
        }
        self.show(&mut pieces.encoder, plan);
        if let Some(stamps) = &stamps {
            stamps.resolve(&mut pieces.encoder);
        }
        let parts = MarkedParts { passes: rest.marks.passes(), copies: rest.copies };
        let completion = self.completion.clone();
        let commands = pieces.finish();
        Ok((EncodedRun { commands, stamps, watch, completion, parts }, places.held))
    }

    /// Encodes the next copies, or the dispatches up to the next copy or to one that needs other weights.
    fn encode_next(
        device: &GpuDevice,
        plan: &GpuPlan,
        encoder: &mut wgpu::CommandEncoder,
        places: &PlaceBuffers<'_, '_>,
        rest: &mut UnencodedRest<'_>,
    ) -> Result<(), GpuError> {
        let mut copied = false;
        while let Some(DeviceAction::Copy { from, to, bytes }) = rest.actions.peek() {
            let ((from, at, _), (to, onto, _)) = (places.find(from)?, places.find(to)?);
            if device.copies() {
                encoder.copy_buffer_to_buffer(from, at, to, onto, *bytes);
            }
            rest.actions.next();
            copied = true;
        }
        if copied {
            return rest.end_copies(device, encoder);
        }
        let mut pass = rest.marks.pass(encoder);
        let left_out = rest.leaves_out(device);
        let UnencodedRest { actions, groups, marks, cuts, .. } = rest;
        while let Some(action) = actions.peek() {
            let DeviceAction::Dispatch { pipeline, groups: [x, y, z], .. } = action else { break };
            if !places.have(action) {
                break;
            }
            pass.set_pipeline(&pipeline.pipeline);
            match groups.next().and_then(Option::as_ref) {
                Some(group) => pass.set_bind_group(0, group, &[]),
                None => pass.set_bind_group(0, places.group(device, plan, action)?.as_ref(), &[]),
            }
            marks.stamp(&mut pass, 0);
            if !left_out {
                pass.dispatch_workgroups(*x, *y, *z);
            }
            marks.stamp(&mut pass, 1);
            marks.dispatch += 1;
            actions.next();
            let cut = cuts.first().is_some_and(|at| u32::try_from(*at) == Ok(marks.dispatch));
            if marks.apart() || cut {
                break;
            }
        }
        if left_out { Ok(()) } else { rest.end_pass(device, &mut pass) }
    }

    /// Copies inputs to the arena that were written beside it, and says whether there are any.
    fn bring_inputs(
        &self,
        device: &GpuDevice,
        encoder: &mut wgpu::CommandEncoder,
        plan: &GpuPlan,
    ) -> bool {
        let Some(beside) = &self.blocks.inputs else { return false };
        let mut copied = false;
        let places = plan.inputs.iter().filter_map(|place| match place {
            InputPlace::Arena { offset, start } => Some((*offset, *start)),
            _ => None,
        });
        let ends = places.clone().skip(1).map(|(_, start)| start).chain([plan.input_bytes]);
        for ((offset, start), end) in places.zip(ends) {
            let from = &beside.buffer;
            let to = &self.blocks.arena.buffer;
            if device.copies() {
                encoder.copy_buffer_to_buffer(from, start, to, offset, end - start);
            }
            copied = true;
        }
        copied
    }

    /// Copies outputs to where they are read, as far as they are not there, and says whether there are any.
    fn read_back(
        device: &GpuDevice,
        encoder: &mut wgpu::CommandEncoder,
        plan: &GpuPlan,
        places: &PlaceBuffers<'_, '_>,
    ) -> Result<bool, GpuError> {
        let Some(block) = &places.blocks.outputs else { return Ok(false) };
        let mut copied = false;
        for output in &plan.outputs {
            if let (OutputPlace::Read { from: Some(from), .. }, Some((start, bytes))) =
                (output, read(output))
                && bytes > 0
            {
                let (buffer, offset, _) = places.find(from)?;
                let size = (bytes as u64).next_multiple_of(4);
                if device.copies() {
                    encoder.copy_buffer_to_buffer(buffer, offset, &block.buffer, start, size);
                }
                copied = true;
            }
        }
        Ok(copied)
    }

    /// Makes what the run wrote visible to the processor, where that addresses it.
    fn show(&self, encoder: &mut wgpu::CommandEncoder, plan: &GpuPlan) {
        let changed = plan.inputs.iter().filter_map(|place| match place {
            InputPlace::Slot { slot, changed: true } => self.slots.get(*slot),
            _ => None,
        });
        let blocks = changed.chain(&self.blocks.outputs).filter(|block| block.host().is_some());
        let state = BufferUses::MAP_READ;
        let shown = blocks.map(|block| BufferTransition { buffer: &block.buffer, state });
        encoder.transition_resources(shown, std::iter::empty());
        if let Some(completion) = &self.completion {
            completion.show(encoder);
        }
    }

    /// Each output that is read, once the run is over: where it lies if it is large and may be held, otherwise a
    /// copy.
    ///
    /// # Errors
    /// Fails when there is no memory for a copy.
    ///
    /// # Safety
    /// The run is over, and no other begins in these blocks while `held` has a second owner.
    pub(crate) unsafe fn outputs(
        &self,
        device: &GpuDevice,
        plan: &GpuPlan,
        held: Option<&Arc<()>>,
    ) -> Result<Vec<Option<Arc<dyn Allocation>>>, GpuError> {
        let unified = device.capabilities().unified;
        let kind = if unified { MemoryKind::Unified } else { MemoryKind::Host };
        let counters = &device.counters;
        let taken = |output: &OutputPlace| {
            let Some((start, bytes)) = read(output) else { return Ok(None) };
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            let Some(block) = self.blocks.outputs.as_ref() else { return Ok(None) };
            if let Some(held) = held.filter(|_| bytes >= WORTH_HOLDING) {
                // SAFETY: the caller's promise.
                let memory = unsafe { OutputMemory::new(block, held, start, bytes, kind) };
                if let Some(memory) = memory {
                    DeviceCounters::add(&counters.outputs_in_place, 1);
                    return Ok(Some(Arc::new(memory) as Arc<dyn Allocation>));
                }
            }
            let Some(host) = block.host() else { return Ok(None) };
            // SAFETY: the run that wrote them is over, and the block is held here.
            let bytes = unsafe { host.bytes(start, bytes) };
            let copy = HostBuffer::try_copy(bytes)
                .map_err(|error| GpuError::Refusal(format!("an output cannot be kept: {error}")))?;
            DeviceCounters::add(&counters.host_copies, 1);
            if matches!(output, OutputPlace::Read { from: None, .. }) {
                DeviceCounters::add(&counters.download_bytes, bytes.len() as u64);
            }
            Ok(Some(Arc::new(copy) as Arc<dyn Allocation>))
        };
        plan.outputs.iter().map(taken).collect()
    }
}
