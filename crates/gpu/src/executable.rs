//! A compiled partition: prepared kernels, plans by input shapes, and arenas for runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use galatea_graph::{Datum, Graph, ValueId};
use galatea_runtime::tune::TuningProblem;
use galatea_runtime::{
    ArithmeticWork, BufferExchange, Executable, ExecutableTraits, IntervalKind, MemoryReport,
    PartitionReport, PartitionResult, PartitionRun, PlanReport, Precision, ProfileRow, RunFence,
    RuntimeError, SessionOptions, TunableKernels,
};
use galatea_tensor::{Allocation, DataType, HostBuffer, Tensor};

use crate::buffers::WeightStream;
use crate::choices::TuningChoices;
use crate::device::{DeviceCounters, GpuDevice, QueuedSubmission};
use crate::error::GpuError;
use crate::kernel::GpuKernel;
use crate::memory::{DeviceBlock, DeviceMemory, is_elsewhere, not_stranded, resident};
use crate::plan::{
    DeviceAction, GpuPlan, HandedRun, InputPlace, OutputPlace, PlanInputs, PlanRecording,
    PlanTarget, build, device_facts, facts_of, record,
};
use crate::stream::WeightStreamer;
use crate::throughput::ThroughputModel;
use crate::timers::StampPair;
use crate::timing::{
    ClockPair, HostTimes, KernelLabel, KernelRun, RunRecord, RunStamps, TimingLevel,
};
use crate::tune::TunablePartition;
use crate::workspace::{RunWorkspace, WorkspaceBytes};

/// A node's kernel and the name of its row.
pub(crate) type BuiltKernel = (Option<Box<dyn GpuKernel>>, &'static str);

/// Key of a plan.
#[derive(PartialEq, Eq)]
struct PlanKey {
    /// Shapes of all inputs, and whether they lie on the device.
    inputs: Vec<(Vec<usize>, bool)>,
    /// The outputs that are asked for.
    wanted: Vec<bool>,
}

/// A plan with what recordings of it are free.
struct PlannedRun {
    plan: GpuPlan,
    recordings: Mutex<Vec<PlanRecording>>,
    /// Labels of its dispatches, for observers of runs.
    labels: OnceLock<Arc<Vec<KernelLabel>>>,
}

#[derive(Default)]
struct PlanCache {
    /// The latest used last.
    kept: Vec<(PlanKey, Arc<PlannedRun>)>,
    made: usize,
    time: Duration,
}

/// A partition on a device.
pub(crate) struct GpuExecutable {
    shared: Arc<GpuPartition>,
}

struct GpuPartition {
    device: Arc<GpuDevice>,
    graph: Arc<Graph>,
    kernels: Vec<Option<Box<dyn GpuKernel>>>,
    names: Vec<&'static str>,
    options: SessionOptions,
    choices: TuningChoices,
    halves: bool,
    /// Rates from which the times of its dispatches are predicted.
    pace: ThroughputModel,
    plans: Mutex<PlanCache>,
    constants: Mutex<HashMap<(ValueId, DataType), Arc<DeviceBlock>>>,
    /// Rooms that no run uses at present.
    rooms: Mutex<Vec<RunWorkspace>>,
    stream: Arc<WeightStreamer>,
    /// True if the model's weights exceed the room that the device had.
    beyond: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(text: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::provider(crate::NAME, text)
}

/// Recordings of a plan that wait for their next run.
const MAX_RECORDINGS: usize = 8;

/// Work that was handed over. What it uses is not used by anybody else before it is done, even where nobody asks
/// for its end.
struct SubmittedRun {
    device: Arc<GpuDevice>,
    work: Option<QueuedSubmission>,
}

impl SubmittedRun {
    fn wait(&mut self) -> Result<(), GpuError> {
        self.work.take().map_or(Ok(()), |work| self.device.wait(&work))
    }
}

impl Drop for SubmittedRun {
    fn drop(&mut self) {
        if let Err(error) = self.wait() {
            tracing::warn!(%error, "a run that nobody waited for failed");
        }
    }
}

/// A run that was handed over.
struct RunningPlan {
    /// Dropped before what the run uses.
    submitted: SubmittedRun,
    planned: Arc<PlannedRun>,
    recording: PlanRecording,
    room: RunWorkspace,
    slots: Vec<Arc<DeviceBlock>>,
    /// Inputs that must live until the device is done.
    inputs: Vec<Datum>,
    begin: Instant,
    handed: HandedRun,
}

impl RunningPlan {
    /// Returns the time that the host took to encode the commands and to submit them.
    fn handing(&self) -> Duration {
        self.handed.submitted - self.handed.encode
    }
}

impl GpuExecutable {
    pub(crate) fn new(
        device: &Arc<GpuDevice>,
        graph: Arc<Graph>,
        built: Vec<BuiltKernel>,
        options: &SessionOptions,
        pace: ThroughputModel,
    ) -> Self {
        let (kernels, names) = built.into_iter().unzip();
        let halves = options.precision == Precision::Fp16 && device.capabilities().f16;
        let shared = GpuPartition {
            device: Arc::clone(device),
            graph,
            kernels,
            names,
            options: options.clone(),
            choices: TuningChoices::known(&options.choices, device.capabilities()),
            halves,
            pace,
            plans: Mutex::default(),
            constants: Mutex::default(),
            rooms: Mutex::default(),
            stream: WeightStreamer::new(device, options.prefetch),
            beyond: device.shelves.is_beyond(),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl GpuPartition {
    /// The plan for such inputs and these outputs, made if there is none.
    fn plan(&self, inputs: &[Datum], wanted: &[bool]) -> Result<Arc<PlannedRun>, RuntimeError> {
        let shapes = inputs.iter().map(|input| {
            let tensor = input.as_tensor();
            let tensor = tensor.ok_or_else(|| failed("an input is no tensor"))?;
            Ok((tensor.shape().to_vec(), resident(&self.device, tensor).is_some()))
        });
        let shapes = shapes.collect::<Result<_, RuntimeError>>()?;
        let key = PlanKey { inputs: shapes, wanted: wanted.to_vec() };
        let mut plans = lock(&self.plans);
        if let Some(found) = plans.kept.iter().rposition(|(known, _)| *known == key) {
            plans.kept[found..].rotate_left(1);
            return plans
                .kept
                .last()
                .map(|(_, plan)| Arc::clone(plan))
                .ok_or_else(|| failed("lost"));
        }
        drop(plans);
        let start = Instant::now();
        let _beyond = self.beyond.then(|| self.device.shelves.begin());
        let residency: Vec<bool> = key.inputs.iter().map(|(_, resident)| *resident).collect();
        let plan = build(
            PlanInputs {
                graph: &self.graph,
                kernels: &self.kernels,
                facts: facts_of(&self.graph, inputs)?,
                wanted,
                resident: &residency,
                halves: self.halves,
                choices: &self.choices,
            },
            PlanTarget {
                device: &self.device,
                pace: &self.pace,
                constants: &mut lock(&self.constants),
            },
        )?;
        self.check_limit(&plan)?;
        tracing::debug!(
            model = %self.graph.name,
            inputs = ?key.inputs,
            dispatches = plan.dispatches(),
            submissions = plan.cuts.len() + 1,
            arena = plan.arena_bytes,
            streamed = plan.streamed.len(),
            "made a plan in {:.1} ms",
            start.elapsed().as_secs_f64() * 1e3
        );
        let planned =
            Arc::new(PlannedRun { plan, recordings: Mutex::default(), labels: OnceLock::new() });
        let mut plans = lock(&self.plans);
        plans.made += 1;
        plans.time += start.elapsed();
        if plans.kept.len() >= self.options.plan_cache.max(1) {
            plans.kept.remove(0);
        }
        plans.kept.push((key, Arc::clone(&planned)));
        Ok(planned)
    }

    fn check_limit(&self, plan: &GpuPlan) -> Result<(), RuntimeError> {
        let needed_bytes = usize::try_from(plan.arena_bytes).unwrap_or(usize::MAX);
        match self.options.memory_limit_bytes {
            Some(limit_bytes) if needed_bytes > limit_bytes => {
                Err(RuntimeError::MemoryLimit { needed_bytes, limit_bytes })
            }
            _ => Ok(()),
        }
    }

    /// The free room with the smallest arena that is large enough, or a new one in place of that with the largest.
    fn take_room(&self, needs: WorkspaceBytes) -> Result<RunWorkspace, GpuError> {
        let mut rooms = lock(&self.rooms);
        let fitting = (0..rooms.len()).filter(|&at| rooms[at].arena_bytes() >= needs.arena);
        let found = fitting.min_by_key(|&at| rooms[at].arena_bytes());
        let largest = (0..rooms.len()).max_by_key(|&at| rooms[at].arena_bytes());
        let taken = found.or(largest).map(|at| rooms.swap_remove(at));
        drop(rooms);
        let mut room = match (taken, found) {
            (Some(room), Some(_)) => room,
            (small, _) => {
                small.iter().flat_map(RunWorkspace::all).for_each(|block| self.forget(block));
                drop(small);
                match RunWorkspace::new(&self.device, needs) {
                    // Slots for weights may be in the way.
                    Err(GpuError::Memory { .. }) if self.stream.clear() => {
                        RunWorkspace::new(&self.device, needs)?
                    }
                    made => made?,
                }
            }
        };
        for gone in room.prepare(&self.device, needs)? {
            self.forget(&gone);
        }
        Ok(room)
    }

    /// Hands the commands of a recording over.
    fn hand_over(
        &self,
        recording: &mut PlanRecording,
        plan: &GpuPlan,
        watch: TimingLevel,
    ) -> Result<HandedRun, GpuError> {
        if plan.streamed.is_empty() {
            return recording.submit(&self.device, plan, watch, None);
        }
        let running = self.stream.ready(&plan.streamed)?;
        let submitted = recording.submit(&self.device, plan, watch, running.slots());
        if submitted.is_err() {
            running.abandon();
        }
        submitted
    }

    /// Drops what is bound to a block, which would keep it alive.
    fn forget(&self, block: &Arc<DeviceBlock>) {
        let plans: Vec<Arc<PlannedRun>> =
            lock(&self.plans).kept.iter().map(|(_, planned)| Arc::clone(planned)).collect();
        for planned in plans {
            lock(&planned.recordings).retain(|recording| !recording.uses(block));
        }
    }

    /// The blocks of the slots: those of inputs that lie on the device, new ones for the others and for
    /// what somebody else still reads while the run changes it.
    fn take_slots(
        &self,
        plan: &GpuPlan,
        inputs: &mut [Datum],
    ) -> Result<Vec<Arc<DeviceBlock>>, RuntimeError> {
        let mut slots: Vec<Option<Arc<DeviceBlock>>> = vec![None; plan.slots];
        for (input, place) in inputs.iter_mut().zip(&plan.inputs) {
            let InputPlace::Slot { slot, changed } = place else { continue };
            let Some(tensor) = input.as_tensor() else { continue };
            slots[*slot] = Some(match resident(&self.device, tensor) {
                Some((block, alone)) if alone || !changed => block,
                Some((block, _)) => self.copied(&block)?,
                None => {
                    self.count_peer(tensor);
                    let tensor = tensor.contiguous().map_err(failed)?;
                    DeviceBlock::with(&self.device, tensor.as_bytes().map_err(failed)?)?
                }
            });
        }
        slots.into_iter().map(|slot| slot.ok_or_else(|| failed("a slot is empty"))).collect()
    }

    fn copied(&self, block: &DeviceBlock) -> Result<Arc<DeviceBlock>, GpuError> {
        // Nobody waits for this copy by itself: it goes to no pool.
        let copy = DeviceBlock::lasting(&self.device, block.bytes())?;
        let mut encoder = self.device.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&block.buffer, 0, &copy.buffer, 0, block.bytes());
        DeviceCounters::add(&self.device.counters.copies, 1);
        self.device.submit_copies(encoder);
        Ok(Arc::new(copy))
    }

    /// Returns the cause of an error: on a device that is gone, every error is caused by the loss.
    fn cause(&self, error: RuntimeError) -> RuntimeError {
        match (self.device.alive(), error) {
            (Ok(()), error) | (Err(_), error @ RuntimeError::Lost { .. }) => error,
            (Err(lost), _) => lost.into(),
        }
    }

    /// All outputs.
    fn all(&self) -> Vec<bool> {
        vec![true; self.graph.outputs.len()]
    }

    /// Hands a run over that gives the wanted outputs.
    fn start(
        &self,
        mut inputs: Vec<Datum>,
        wanted: &[bool],
        watch: TimingLevel,
    ) -> Result<RunningPlan, RuntimeError> {
        let begin = Instant::now();
        self.device.alive()?;
        inputs.iter().filter_map(Datum::as_tensor).try_for_each(not_stranded)?;
        let planned = self.plan(&inputs, wanted)?;
        let plan = &planned.plan;
        let slots = self.take_slots(plan, &mut inputs)?;
        let room = self.take_room(plan.needs())?;
        let mut recording = self.take_recording(&planned, &room, &slots)?;
        for (input, place) in inputs.iter().zip(&plan.inputs) {
            if let (InputPlace::Arena { .. }, Some(tensor)) = (place, input.as_tensor()) {
                let tensor = tensor.contiguous().map_err(failed)?;
                let bytes = tensor.as_bytes().map_err(failed)?;
                self.count_peer(&tensor);
                // SAFETY: a room is put aside only when the run that used it is over, and this one is ours.
                unsafe { recording.write(&self.device, place, bytes) };
            }
        }
        let handed = self.hand_over(&mut recording, plan, watch);
        let handed = handed.inspect_err(|_| self.device.settle())?;
        let work = Some(handed.submission.clone());
        let submitted = SubmittedRun { device: Arc::clone(&self.device), work };
        Ok(RunningPlan { submitted, planned, recording, room, slots, inputs, begin, handed })
    }

    /// A recording of a plan in a room.
    fn take_recording(
        &self,
        planned: &PlannedRun,
        room: &RunWorkspace,
        slots: &[Arc<DeviceBlock>],
    ) -> Result<PlanRecording, GpuError> {
        let blocks = room.blocks(planned.plan.needs());
        let mut recordings = lock(&planned.recordings);
        let found = recordings.iter().position(|recording| recording.is_of(&blocks, slots));
        if let Some(index) = found {
            return Ok(recordings.swap_remove(index));
        }
        // Those of other slots would keep these alive.
        recordings.retain(|recording| recording.is_with(slots));
        drop(recordings);
        record(&self.device, &planned.plan, blocks, slots.to_vec())
    }

    /// Puts a recording and its room aside for the next run.
    fn put_aside(&self, planned: &PlannedRun, recording: PlanRecording, room: RunWorkspace) {
        lock(&self.rooms).push(room);
        let mut recordings = lock(&planned.recordings);
        if recordings.len() >= MAX_RECORDINGS {
            recordings.remove(0);
        }
        recordings.push(recording);
    }

    /// Returns what is timed of every run.
    fn watch(&self) -> TimingLevel {
        match (self.device.observers.get(), self.device.meter.is_on()) {
            _ if !self.device.trusts_stamps() => TimingLevel::Off,
            (Some(_), _) => TimingLevel::Kernels,
            (None, true) => TimingLevel::Whole,
            (None, false) => TimingLevel::Off,
        }
    }

    fn count_peer(&self, tensor: &Tensor) {
        if is_elsewhere(&self.device, tensor) {
            let counters = &self.device.counters;
            DeviceCounters::add(&counters.peer_copies, 1);
            DeviceCounters::add(&counters.peer_copy_bytes, tensor.size_bytes() as u64);
        }
    }

    /// Waits for a run and takes its outputs.
    fn finish(
        &self,
        running: RunningPlan,
        rows: Option<&mut Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let RunningPlan {
            mut submitted,
            planned,
            mut recording,
            mut room,
            slots,
            inputs,
            begin,
            handed,
        } = running;
        recording.encode_ahead(&self.device, &planned.plan, self.watch());
        let wait = Instant::now();
        submitted.wait()?;
        if let Some(marks) = &handed.completion {
            // SAFETY: the run is over.
            unsafe { marks.check(&self.device) }?;
        }
        let done = Instant::now();
        let held = room.hold();
        // SAFETY: the run is over, and the room gives this block to no other while it is held.
        let read = unsafe { recording.outputs(&self.device, &planned.plan, held.as_ref()) }?;
        drop(held);
        if let Some(stamps) = handed.stamps {
            let HandedRun { encode, submit, submitted, .. } = handed;
            let end = Instant::now();
            let host = HostTimes { begin, encode, submit, submitted, wait, done, end };
            self.note(&planned, &inputs, stamps, host, rows)?;
        }
        self.put_aside(&planned, recording, room);
        self.device.capture.ran();
        drop(inputs);
        let outputs = planned.plan.outputs.iter().zip(read);
        let outputs = outputs.filter(|(output, _)| !matches!(output, OutputPlace::Unwanted));
        outputs.map(|(output, bytes)| self.output(output, bytes, &slots)).collect()
    }

    fn output(
        &self,
        output: &OutputPlace,
        bytes: Option<Arc<dyn Allocation>>,
        slots: &[Arc<DeviceBlock>],
    ) -> Result<Datum, RuntimeError> {
        let tensor = match output {
            OutputPlace::Unwanted => return Err(failed("an output that nobody asked for")),
            OutputPlace::Constant(tensor) => Ok(tensor.clone()),
            OutputPlace::Read { dtype, shape, .. } => {
                let bytes = bytes.unwrap_or_else(|| Arc::new(HostBuffer::zeroed(0)));
                Tensor::from_allocation(*dtype, shape, bytes, 0)
            }
            OutputPlace::Stays { slot, dtype, shape } => {
                let len = shape.iter().product::<usize>() * dtype.size_bytes().unwrap_or(0);
                let memory = DeviceMemory::new(&self.device, Arc::clone(&slots[*slot]), len);
                Tensor::from_remote(*dtype, shape, Arc::new(memory))
            }
        };
        Ok(Datum::Tensor(tensor.map_err(failed)?))
    }

    /// Reads the stamps of a run, and tells everybody who wants to know.
    fn note(
        &self,
        planned: &PlannedRun,
        inputs: &[Datum],
        stamps: RunStamps,
        host: HostTimes,
        rows: Option<&mut Vec<ProfileRow>>,
    ) -> Result<(), RuntimeError> {
        let device = &self.device;
        let plan = &planned.plan;
        let of = stamps.of;
        let Some(ticks) = stamps.ticks(device)? else { return Ok(()) };
        let times: Vec<(u64, u64)> = ticks
            .into_iter()
            .map(|StampPair { begin, end }| (device.nanoseconds(begin), device.nanoseconds(end)))
            .collect();
        let first = times.iter().map(|(begin, _)| *begin).min().unwrap_or(0);
        let last = times.iter().map(|(_, end)| *end).max().unwrap_or(first);
        if of == TimingLevel::Whole {
            device.meter.add(last - first, plan.work.total(&self.graph, &plan.actions, inputs));
            return Ok(());
        }
        let works = plan.work.of_run(&self.graph, &plan.actions, inputs);
        device.meter.add(
            last - first,
            works.iter().copied().fold(ArithmeticWork::default(), ArithmeticWork::plus),
        );
        if rows.is_none() && device.observers.get().is_none() {
            return Ok(());
        }
        let labels = planned.labels.get_or_init(|| Arc::new(self.labels(plan, inputs)));
        if let Some(rows) = rows {
            let measured = labels.iter().zip(&times).zip(&works);
            rows.extend(measured.map(|((label, &(begin, end)), &work)| ProfileRow {
                node: label.node.clone(),
                op: label.op.clone(),
                kernel: label.kernel.to_string(),
                provider: crate::NAME,
                time: Duration::from_nanos(end - begin),
                work,
                unit: label.unit,
                estimated: false,
            }));
        }
        if let Some(observer) = device.observers.get() {
            let both = ClockPair { handed: host.submit, over: host.done, device: (first, last) };
            let ahead = device.clock.ahead(&both);
            let kernels = times.iter().zip(works).map(|(&(begin, end), work)| KernelRun {
                begin: device.clock.moment(begin, ahead),
                time: Duration::from_nanos(end - begin),
                work,
            });
            observer.ran(RunRecord {
                device: device.index,
                model: self.graph.name.clone(),
                host,
                begin: device.clock.moment(first, ahead),
                time: Duration::from_nanos(last - first),
                labels: Arc::clone(labels),
                kernels: kernels.collect(),
            });
        }
        Ok(())
    }

    /// Returns descriptions of a plan's dispatches, for people.
    fn labels(&self, plan: &GpuPlan, inputs: &[Datum]) -> Vec<KernelLabel> {
        let facts = device_facts(
            &self.graph,
            facts_of(&self.graph, inputs).unwrap_or_default(),
            self.halves,
        );
        let operands = |ids: &[Option<ValueId>]| {
            let text = |id: &ValueId| {
                let fact = facts.get(id.index()).and_then(Option::as_ref)?;
                let shape: Vec<String> = fact.known_shape()?.iter().map(usize::to_string).collect();
                Some(format!("{}[{}]", fact.dtype, shape.join(",")))
            };
            ids.iter().flatten().filter_map(text).collect::<Vec<_>>().join(" ")
        };
        let label = |action: &DeviceAction| {
            let DeviceAction::Dispatch { node, name, share, .. } = action else { return None };
            let node = &self.graph.nodes[*node];
            let output = node.outputs.iter().flatten().next();
            Some(KernelLabel {
                kernel: Arc::clone(name),
                node: match output {
                    Some(&id) if node.name.is_empty() => self.graph.value(id).name.clone(),
                    _ => node.name.clone(),
                },
                op: node.operator_name(),
                shapes: format!("{} → {}", operands(&node.inputs), operands(&node.outputs)),
                unit: share.unit,
            })
        };
        plan.actions.iter().filter_map(label).collect()
    }
}

/// Returns the profile row of host work around the dispatches.
fn host_row(what: &str, time: Duration) -> ProfileRow {
    let op = "host".to_owned();
    let kernel = what.to_owned();
    ProfileRow { op, kernel, provider: crate::NAME, time, ..ProfileRow::default() }
}

impl GpuExecutable {
    /// Runs twice: without timestamps for the host's own time, and with them.
    fn profile(
        &self,
        inputs: Vec<Datum>,
        wanted: &[bool],
    ) -> Result<PartitionResult, RuntimeError> {
        // Timestamps cost the host time too: its own is that of a run without them.
        let running = self.shared.start(inputs.clone(), wanted, TimingLevel::Off)?;
        let handing = running.handing();
        let waiting = Instant::now();
        self.shared.finish(running, None)?;
        let mut rows = vec![host_row("submit", handing), host_row("wait", waiting.elapsed())];
        let running = self.shared.start(inputs, wanted, TimingLevel::Kernels)?;
        let outputs = self.shared.finish(running, Some(&mut rows))?;
        Ok(PartitionResult { outputs, rows })
    }
}

impl Executable for GpuExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let all;
        let wanted = match run.wanted {
            Some(wanted) => wanted,
            None => {
                all = self.shared.all();
                &all
            }
        };
        let recorded = self.shared.options.watch.interval(IntervalKind::GpuRun);
        if run.profile {
            return RunFence::ready(self.profile(run.inputs, wanted));
        }
        match self.shared.start(run.inputs, wanted, self.shared.watch()) {
            Err(error) => RunFence::ready::<PartitionResult>(Err(self.shared.cause(error))),
            Ok(running) => {
                let shared = Arc::clone(&self.shared);
                RunFence::pending(move || {
                    let _recorded = recorded;
                    shared.finish(running, None).map_err(|error| shared.cause(error))
                })
            }
        }
    }

    fn report(&self) -> PartitionReport {
        PartitionReport { memory: self.memory(), plans: self.plan_report(), placed: Vec::new() }
    }

    fn traits(&self) -> ExecutableTraits<'_> {
        ExecutableTraits { times_steps: false, buffers: Some(self), tuning: Some(self) }
    }
}

impl BufferExchange for GpuExecutable {
    fn allocate_input(
        &self,
        _input: usize,
        dtype: DataType,
        shape: &[usize],
    ) -> Result<Option<Tensor>, RuntimeError> {
        self.shared.device.alive()?;
        let element = dtype.size_bytes().ok_or_else(|| failed(format!("an input of {dtype}")))?;
        let bytes = shape.iter().try_fold(element, |bytes, &len| bytes.checked_mul(len));
        let bytes = bytes.ok_or_else(|| failed("an input larger than any memory"))?;
        let block = DeviceBlock::lasting(&self.shared.device, bytes as u64)?;
        let memory = DeviceMemory::new(&self.shared.device, Arc::new(block), bytes);
        Ok(Some(Tensor::from_remote(dtype, shape, Arc::new(memory)).map_err(failed)?))
    }
}

impl TunableKernels for GpuExecutable {
    fn problems(
        &self,
        inputs: &[Datum],
        pause: &dyn Fn(),
    ) -> Result<Vec<TuningProblem>, RuntimeError> {
        let shared = &self.shared;
        shared.device.alive()?;
        let facts = device_facts(&shared.graph, facts_of(&shared.graph, inputs)?, shared.halves);
        let own = Arc::clone(shared);
        let part = TunablePartition {
            device: &shared.device,
            graph: &shared.graph,
            kernels: &shared.kernels,
            facts: &facts,
            choices: &shared.choices,
            bind: Arc::new(move |index, shapes, step| {
                let kernel = own.kernels.get(index).and_then(Option::as_ref);
                kernel.ok_or("there is no kernel")?.bind(shapes, step)
            }),
        };
        Ok(part.problems(pause))
    }
}

impl GpuExecutable {
    fn memory(&self) -> MemoryReport {
        let narrow = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let packed: u64 = self.shared.kernels.iter().flatten().map(|k| k.weight_bytes()).sum();
        let plain: u64 = lock(&self.shared.constants).values().map(|block| block.bytes()).sum();
        let arenas: u64 = lock(&self.shared.rooms).iter().map(RunWorkspace::bytes).sum();
        let stream = self.shared.stream.statistics();
        let own = (packed + plain).saturating_sub(stream.streamed_bytes) + stream.slot_bytes;
        MemoryReport {
            initializer_bytes: narrow(own),
            mapped_bytes: narrow(stream.streamed_bytes),
            arena_bytes: narrow(arenas),
        }
    }

    fn plan_report(&self) -> PlanReport {
        let plans = lock(&self.shared.plans);
        let last = plans.kept.last().map(|(_, planned)| &planned.plan);
        let narrow = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        PlanReport {
            plans: plans.kept.len(),
            made: plans.made,
            time: plans.time,
            arena_bytes: last.map_or(0, |plan| narrow(plan.arena_bytes)),
            live_bytes: last.map_or(0, |plan| narrow(plan.live_bytes)),
            operations: 0,
        }
    }
}

impl std::fmt::Debug for GpuExecutable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GpuExecutable")
            .field("names", &self.shared.names.len())
            .finish_non_exhaustive()
    }
}
