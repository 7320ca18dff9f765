//! A compiled partition: prepared kernels, plans by input shapes, and a pool of arenas.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use galatea_apple::qos::{RaisedQos, ThreadQos};
use galatea_graph::{Datum, Fact, Graph, GraphError, OpError};
use galatea_kernels::{Isa, KernelContext, TaskPriority, ThreadPool};
use galatea_runtime::power::ThreadClass;
use galatea_runtime::tune::TuningProblem;
use galatea_runtime::{
    ArithmeticUnit, BufferExchange, Executable, ExecutableTraits, IntervalKind, MemoryReport,
    NodeShapes, PartitionReport, PartitionResult, PartitionRun, PlanReport, ProfileRow, RunFence,
    RuntimeError, SessionOptions, TunableKernels,
};
use galatea_tensor::{Arena, DataType, OwnedTensor, Tensor, TensorMut, TensorRef, is_interrupted};

use super::kernel::{CpuBuildContext, CpuKernel, KernelChoices, StepCall, WeightBytes};
use super::late::LateKernels;
use super::route::BlasRoute;
use super::schedule::{
    CpuSchedule, PlannedStep, ScheduleSource, StepAction, StepSource, StepTarget, schedule,
};
use super::stage::{StageEnd, StageStart};
use super::tune;

/// A node's kernel and the name of its row.
pub(super) type BuiltCpuKernel = (Option<Box<dyn CpuKernel>>, &'static str);

/// Graph with what was built of its nodes.
pub(super) struct BuiltGraph {
    pub(super) graph: Arc<Graph>,
    pub(super) kernels: Vec<BuiltCpuKernel>,
    /// Nodes without a kernel that may have one when their shapes are known.
    pub(super) open: Vec<bool>,
    /// The bodies of the graph's control-flow operators.
    pub(super) bodies: Vec<Arc<CpuExecutable>>,
}

/// Key of a plan: what it begins with.
struct ScheduleKey {
    /// Number of the plan that it follows; 0 for the first stage of a run.
    after: u64,
    /// Shapes of all values that it begins with. What is no tensor has no shape.
    shapes: Vec<Option<Vec<usize>>>,
    /// Values that say lengths.
    lengths: Vec<Tensor>,
    wanted: Vec<bool>,
}

/// A schedule, its number from 1 on, and what it is for.
#[derive(Clone)]
struct NumberedSchedule {
    number: u64,
    schedule: Arc<CpuSchedule>,
}

/// A plan that is kept.
struct KeptSchedule {
    key: ScheduleKey,
    planned: NumberedSchedule,
    /// Facts of its values, for those that measure kernels; of later stages only.
    facts: Option<Arc<Vec<Option<Fact>>>>,
}

/// Beginning of a stage of a run.
struct StageRequest<'a> {
    after: u64,
    inputs: &'a [Datum],
    lengths: Vec<Tensor>,
    wanted: &'a [bool],
}

impl ScheduleKey {
    fn fits(&self, request: &StageRequest<'_>) -> bool {
        self.after == request.after
            && self.wanted == request.wanted
            && self.shapes.len() == request.inputs.len()
            && self.shapes.iter().zip(request.inputs).all(|(k, input)| k.as_deref() == shape(input))
            && self.lengths.len() == request.lengths.len()
            && self.lengths.iter().zip(&request.lengths).all(|(a, b)| same_elements(a, b))
    }
}

/// Returns whether short tensors have the same bytes.
fn same_elements(a: &Tensor, b: &Tensor) -> bool {
    let bytes = |tensor: &Tensor| tensor.as_bytes().map(<[u8]>::to_vec);
    a.dtype() == b.dtype() && matches!((bytes(a), bytes(b)), (Ok(a), Ok(b)) if a == b)
}

fn shape(input: &Datum) -> Option<&[usize]> {
    input.as_tensor().map(Tensor::shape)
}

/// Plans that were made.
#[derive(Default)]
struct ScheduleCache {
    /// Plans that are kept; the latest used is the last.
    kept: Vec<KeptSchedule>,
    made: usize,
    time: Duration,
    /// Most stages of a run so far, but for the first: each stage may keep as many plans as the options allow.
    later_stages: usize,
}

impl ScheduleCache {
    /// Returns the plans of the latest run, its last stage first.
    fn latest(&self) -> Vec<&CpuSchedule> {
        let mut plans = Vec::new();
        let mut next = self.kept.last();
        while let Some(kept) = next {
            plans.push(&*kept.planned.schedule);
            let before = |plan: &&KeptSchedule| plan.planned.number == kept.key.after;
            next = self.kept.iter().find(before);
        }
        plans
    }
}

pub(super) struct CpuExecutable {
    graph: Arc<Graph>,
    kernels: Vec<Option<Box<dyn CpuKernel>>>,
    /// The bodies of the graph's control-flow operators.
    bodies: Vec<Arc<CpuExecutable>>,
    names: Vec<&'static str>,
    /// Nodes without a kernel that may have one when their shapes are known.
    open: Vec<bool>,
    pool: Arc<ThreadPool>,
    /// Pools of fewer threads, for steps that are faster with them.
    smaller: Mutex<Vec<Arc<ThreadPool>>>,
    isa: Isa,
    /// The libraries that multiply matrices beside the kernels.
    blas: Option<BlasRoute>,
    options: SessionOptions,
    plans: Mutex<ScheduleCache>,
    arenas: Mutex<Vec<Arena>>,
    /// The memory of outputs, by their places, that later runs may write them into.
    spare: Mutex<Vec<(usize, OwnedTensor)>>,
    /// The number of operations of all runs so far.
    operations: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of one run.
struct RunningSchedule<'a> {
    schedule: &'a CpuSchedule,
    held: Vec<Option<Datum>>,
    arena: Arena,
    exec: KernelContext<'a>,
    /// Memory for what some slots will hold.
    spare: Vec<(usize, OwnedTensor)>,
}

/// The class of threads that compute.
fn qos(class: ThreadClass) -> ThreadQos {
    match class {
        ThreadClass::Urgent => ThreadQos::Initiated,
        ThreadClass::Usual => ThreadQos::Default,
        ThreadClass::Thrifty => ThreadQos::Utility,
    }
}

/// The word that workers of pools hear of a class.
fn word(class: ThreadClass) -> u8 {
    1 + class as u8
}

/// Gives the calling worker the class that a word stands for.
pub(super) fn take_class(heard: u8) {
    if let Some(class) = ThreadClass::ALL.into_iter().find(|class| word(*class) == heard) {
        // Where the front end is closed the system's own choice stays.
        let _ = qos(class).set();
    }
}

impl CpuExecutable {
    pub(super) fn new(
        built: BuiltGraph,
        isa: Isa,
        blas: Option<BlasRoute>,
        pool: Arc<ThreadPool>,
        options: &SessionOptions,
    ) -> Self {
        let BuiltGraph { graph, kernels, open, bodies } = built;
        let (kernels, names) = kernels.into_iter().unzip();
        let plans = Mutex::default();
        let arenas = Mutex::default();
        let smaller = Mutex::default();
        let options = options.clone();
        let operations = AtomicU64::new(0);
        let spare = Mutex::default();
        Self {
            graph,
            kernels,
            bodies,
            names,
            open,
            pool,
            smaller,
            isa,
            blas,
            options,
            plans,
            arenas,
            spare,
            operations,
        }
    }

    /// The plan of a stage, made by `begin` if there is none.
    fn plan(
        &self,
        request: StageRequest<'_>,
        begin: &dyn Fn() -> Result<StageStart, RuntimeError>,
    ) -> Result<NumberedSchedule, RuntimeError> {
        let planned = match self.known_plan(&request) {
            Some(planned) => planned,
            None => self.new_plan(request, begin)?,
        };
        match self.options.memory_limit_bytes {
            Some(limit_bytes) if planned.schedule.arena_bytes > limit_bytes => {
                let needed_bytes = planned.schedule.arena_bytes;
                Err(RuntimeError::MemoryLimit { needed_bytes, limit_bytes })
            }
            _ => Ok(planned),
        }
    }

    fn known_plan(&self, request: &StageRequest<'_>) -> Option<NumberedSchedule> {
        let kept = &mut lock(&self.plans).kept;
        let found = kept.iter().rposition(|plan| plan.key.fits(request))?;
        kept[found..].rotate_left(1);
        kept.last().map(|plan| plan.planned.clone())
    }

    fn new_plan(
        &self,
        request: StageRequest<'_>,
        begin: &dyn Fn() -> Result<StageStart, RuntimeError>,
    ) -> Result<NumberedSchedule, RuntimeError> {
        let began = Instant::now();
        let StageRequest { after, inputs, lengths, wanted } = request;
        let start = begin()?;
        let mut schedule = schedule(&self.source(), &start, wanted)?;
        self.choose_threads(&mut schedule, &start.facts);
        let schedule = Arc::new(schedule);
        let shapes = inputs.iter().map(|input| shape(input).map(<[usize]>::to_vec)).collect();
        let key = ScheduleKey { after, shapes, lengths, wanted: wanted.to_vec() };
        let facts = (after > 0).then(|| Arc::new(start.facts));
        let mut plans = lock(&self.plans);
        plans.made += 1;
        plans.time += began.elapsed();
        let most = self.options.plan_cache.max(1).saturating_mul(1 + plans.later_stages);
        if plans.kept.len() >= most {
            plans.kept.remove(0);
        }
        let planned = NumberedSchedule { number: plans.made as u64, schedule };
        plans.kept.push(KeptSchedule { key, planned: planned.clone(), facts });
        Ok(planned)
    }

    /// Returns the graph and the kernels that schedules are made of.
    fn source(&self) -> ScheduleSource<'_> {
        let chooser = self.options.choices.0.as_deref();
        let precision = self.options.precision;
        let (isa, blas) = (self.isa, self.blas);
        let device = CpuBuildContext { isa, packed: None, choices: chooser, blas };
        ScheduleSource {
            graph: &self.graph,
            kernels: &self.kernels,
            rows: &self.names,
            late: LateKernels { open: &self.open, precision, device },
            precision,
            choices: KernelChoices { chooser, threads: self.pool.threads() },
        }
    }

    /// Gives steps that are known to be faster with fewer threads their own.
    fn choose_threads(&self, schedule: &mut CpuSchedule, facts: &[Option<Fact>]) {
        let Some(choices) = &self.options.choices.0 else { return };
        let all = self.pool.threads();
        let space = tune::thread_space(all);
        for step in &mut schedule.steps {
            let node = &self.graph.nodes[step.node];
            let Some(shapes) = NodeShapes::known(node, facts) else { continue };
            let (family, bucket) = tune::thread_key(step.row, self.options.precision, &shapes);
            let chosen = choices.choose(&family, &bucket, &space);
            let threads = chosen.and_then(|candidate| tune::threads_of(&space, candidate));
            step.pool = threads.filter(|&threads| threads < all).map(|n| self.smaller_pool(n));
        }
    }

    /// A pool of fewer threads than the session's.
    fn smaller_pool(&self, threads: usize) -> Arc<ThreadPool> {
        let mut pools = lock(&self.smaller);
        if let Some(pool) = pools.iter().find(|pool| pool.threads() == threads) {
            return Arc::clone(pool);
        }
        let pool = Arc::new(self.pool.sharing(threads));
        pools.push(Arc::clone(&pool));
        pool
    }

    /// The smallest free arena that is large enough, or a new one in place of the largest.
    fn take_arena(&self, bytes: usize) -> Result<Arena, RuntimeError> {
        let mut arenas = lock(&self.arenas);
        let large = |arena: &Arena| arena.len_bytes() >= bytes;
        let fitting = (0..arenas.len()).filter(|&i| large(&arenas[i]));
        if let Some(found) = fitting.min_by_key(|&i| arenas[i].len_bytes()) {
            return Ok(arenas.swap_remove(found));
        }
        let largest = (0..arenas.len()).max_by_key(|&i| arenas[i].len_bytes());
        let small = largest.map(|index| arenas.swap_remove(index));
        drop(arenas);
        drop(small);
        Ok(Arena::with_len(bytes)?)
    }

    /// The memory that was given back, by the slots of the outputs that it is for.
    fn take_spare(&self, schedule: &CpuSchedule) -> Vec<(usize, OwnedTensor)> {
        let spare = std::mem::take(&mut *lock(&self.spare));
        let of_slot = |(output, tensor)| match schedule.outputs.get(output) {
            Some(StepSource::Held { slot, .. }) => Some((*slot, tensor)),
            _ => None,
        };
        spare.into_iter().filter_map(of_slot).collect()
    }

    pub(super) fn run(
        &self,
        inputs: Vec<Datum>,
        rows: Option<&mut Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        self.run_wanted(inputs, &vec![true; self.graph.outputs.len()], rows)
    }

    /// The class of the calling thread while it computes, and of the workers that help it: where power is saved, one
    /// that macOS runs at lower clocks.
    fn class(&self) -> (RaisedQos, TaskPriority) {
        let class = self.options.pace.class();
        let own = match class {
            ThreadClass::Urgent => RaisedQos::to(qos(class)),
            _ => RaisedQos::exactly(qos(class)),
        };
        (own, TaskPriority::word(word(class)))
    }

    /// Computes the outputs that are wanted.
    fn run_wanted(
        &self,
        inputs: Vec<Datum>,
        wanted: &[bool],
        rows: Option<&mut Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let inputs: Result<Vec<Datum>, OpError> =
            inputs.into_iter().map(Datum::contiguous).collect();
        let inputs = inputs.map_err(|error| RuntimeError::provider(super::NAME, error))?;
        // The thread that calls computes too: on a fast core, and counted with the pool's workers.
        let _class = self.class();
        let _seat = self.pool.seat();
        self.run_stages(inputs, wanted, rows)
    }

    /// Runs one stage after the other: the plan of each begins with what the one before has found.
    fn run_stages(
        &self,
        mut inputs: Vec<Datum>,
        wanted: &[bool],
        mut rows: Option<&mut Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let first = StageRequest { after: 0, inputs: &inputs, lengths: Vec::new(), wanted };
        let mut planned = self.plan(first, &|| StageStart::first(&self.graph, &inputs))?;
        let mut later_stages = 0;
        loop {
            inputs = self.run_stage(&planned.schedule, inputs, rows.as_deref_mut())?;
            let Some(end) = &planned.schedule.end else { return Ok(inputs) };
            later_stages += 1;
            let (after, lengths) = (planned.number, end.lengths(&inputs));
            let request = StageRequest { after, inputs: &inputs, lengths, wanted };
            planned = self.later_plan(request, end, later_stages)?;
        }
    }

    fn later_plan(
        &self,
        request: StageRequest<'_>,
        end: &StageEnd,
        later_stages: usize,
    ) -> Result<NumberedSchedule, RuntimeError> {
        let mut plans = lock(&self.plans);
        plans.later_stages = plans.later_stages.max(later_stages);
        drop(plans);
        let inputs = request.inputs;
        self.plan(request, &|| end.next(&self.graph, inputs))
    }

    /// Runs a stage, and returns its outputs.
    fn run_stage(
        &self,
        schedule: &CpuSchedule,
        inputs: Vec<Datum>,
        rows: Option<&mut Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let mut held: Vec<Option<Datum>> = inputs.into_iter().map(Some).collect();
        held.resize(schedule.slots, None);
        let spare = if schedule.end.is_none() { self.take_spare(schedule) } else { Vec::new() };
        let mut running = RunningSchedule {
            schedule,
            held,
            arena: self.take_arena(schedule.arena_bytes)?,
            exec: KernelContext { pool: &self.pool, isa: self.isa },
            spare,
        };
        let result = self.run_steps(&mut running, rows).and_then(|()| running.outputs());
        self.operations.fetch_add(schedule.operations, Ordering::Relaxed);
        lock(&self.arenas).push(running.arena);
        result
    }

    fn run_steps(
        &self,
        running: &mut RunningSchedule<'_>,
        mut rows: Option<&mut Vec<ProfileRow>>,
    ) -> Result<(), RuntimeError> {
        // Asked once for all steps.
        let watch = Some(&self.options.watch).filter(|watch| watch.is_recording());
        for step in &running.schedule.steps {
            if is_interrupted() {
                return Err(RuntimeError::Interrupted);
            }
            let start = rows.is_some().then(Instant::now);
            let recorded = watch
                .and_then(|watch| watch.interval_of(IntervalKind::Operator, &self.step_name(step)));
            let done = match &step.action {
                StepAction::Kernel(kernel) => running.run_kernel(step, &kernel.run),
                StepAction::Reference => {
                    running.run_reference(step, &*self.graph.nodes[step.node].operator)
                }
            };
            drop(recorded);
            done.map_err(|error| GraphError::at(self.graph.place(step.node), error))?;
            for &slot in &step.release {
                running.held[slot] = None;
            }
            if let (Some(rows), Some(start)) = (rows.as_deref_mut(), start) {
                rows.push(self.profile_row(step, start));
            }
        }
        Ok(())
    }

    /// Returns the name of the code that runs a step.
    fn kernel_name(&self, step: &PlannedStep) -> &'static str {
        match step.action {
            StepAction::Kernel(_) => step.row,
            StepAction::Reference if !self.graph.nodes[step.node].operator.bodies().is_empty() => {
                super::BODIES
            }
            StepAction::Reference => crate::reference::NAME,
        }
    }

    /// Returns the name of a step for a recorder: that of its node, or of its first output, and its kernel.
    fn step_name(&self, step: &PlannedStep) -> String {
        format!("{} ({})", self.node_name(step), self.kernel_name(step))
    }

    fn node_name(&self, step: &PlannedStep) -> &str {
        let node = &self.graph.nodes[step.node];
        match node.outputs.iter().flatten().next() {
            Some(&id) if node.name.is_empty() => &self.graph.value(id).name,
            _ => &node.name,
        }
    }

    fn profile_row(&self, step: &PlannedStep, start: Instant) -> ProfileRow {
        let node = &self.graph.nodes[step.node];
        let name = self.node_name(step).to_owned();
        let kernel = self.kernel_name(step);
        let op = node.operator_name();
        let time = start.elapsed();
        let provider = super::NAME;
        let work = step.work;
        let unit = arithmetic_unit(kernel);
        let kernel = kernel.into();
        ProfileRow { node: name, op, kernel, provider, time, work, unit, estimated: false }
    }
}

/// Kind of instructions of a kernel by its name, which tells the type of what it multiplies behind the first dash.
fn arithmetic_unit(kernel: &str) -> ArithmeticUnit {
    match kernel.split_once('-') {
        Some((_, types)) if types.starts_with("bf16") => ArithmeticUnit::Bf16,
        Some((_, types)) if types.starts_with("int8") => ArithmeticUnit::Int8,
        _ => ArithmeticUnit::Vector,
    }
}

impl Executable for CpuExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let all;
        let wanted = match run.wanted {
            Some(wanted) => wanted,
            None => {
                all = vec![true; self.graph.outputs.len()];
                &all
            }
        };
        let mut rows = run.profile.then(Vec::new);
        let outputs = self.run_wanted(run.inputs, wanted, rows.as_mut());
        let rows = rows.unwrap_or_default();
        RunFence::ready(outputs.map(|outputs| PartitionResult { outputs, rows }))
    }

    fn report(&self) -> PartitionReport {
        let own = PartitionReport {
            memory: self.memory(),
            plans: self.plan_report(),
            placed: Vec::new(),
        };
        self.bodies.iter().fold(own, |sum, body| {
            let inner = body.report();
            PartitionReport {
                memory: sum.memory.plus(inner.memory),
                plans: sum.plans.plus(inner.plans),
                placed: Vec::new(),
            }
        })
    }

    fn traits(&self) -> ExecutableTraits<'_> {
        ExecutableTraits { times_steps: true, buffers: Some(self), tuning: Some(self) }
    }
}

impl TunableKernels for CpuExecutable {
    fn problems(
        &self,
        inputs: &[Datum],
        pause: &dyn Fn(),
    ) -> Result<Vec<TuningProblem>, RuntimeError> {
        let inputs: Result<Vec<Datum>, OpError> =
            inputs.iter().cloned().map(Datum::contiguous).collect();
        let inputs = inputs.map_err(|error| RuntimeError::provider(super::NAME, error))?;
        let part = tune::CpuTunablePart {
            graph: &self.graph,
            kernels: &self.kernels,
            names: &self.names,
            isa: self.isa,
            blas: self.blas,
            threads: self.pool.threads(),
            precision: self.options.precision,
            choices: self.options.choices.0.as_deref(),
            stages: self.later_facts(),
        };
        part.problems(&inputs, pause)
    }
}

impl BufferExchange for CpuExecutable {
    fn return_buffer(&self, output: usize, tensor: Tensor) {
        // What somebody else still reads is theirs.
        let Ok(tensor) = tensor.into_owned() else { return };
        let mut spare = lock(&self.spare);
        spare.retain(|(other, _)| *other != output);
        spare.push((output, tensor));
    }
}

impl CpuExecutable {
    /// Returns the memory held now, without that of bodies.
    fn memory(&self) -> MemoryReport {
        let weights = self.graph.values().iter().filter_map(|value| value.initializer.as_ref());
        let plain = weights.map(|tensor| WeightBytes::new(tensor.size_bytes(), tensor.is_mapped()));
        let packed = self.kernels.iter().flatten().map(|kernel| kernel.weight_bytes());
        let WeightBytes { own, mapped } = plain.chain(packed).sum();
        let arena_bytes = lock(&self.arenas).iter().map(Arena::len_bytes).sum();
        MemoryReport { initializer_bytes: own, mapped_bytes: mapped, arena_bytes }
    }

    /// Returns what was known when the later stages of runs were planned, the latest first.
    fn later_facts(&self) -> Vec<Arc<Vec<Option<Fact>>>> {
        lock(&self.plans).kept.iter().rev().filter_map(|plan| plan.facts.clone()).collect()
    }

    /// Returns statistics of the run plans, without those of bodies.
    fn plan_report(&self) -> PlanReport {
        let plans = lock(&self.plans);
        // Stages of a run follow each other and share an arena, so the largest of them counts.
        let last = plans.latest();
        let most = |bytes: fn(&CpuSchedule) -> usize| last.iter().map(|plan| bytes(plan)).max();
        PlanReport {
            plans: plans.kept.len(),
            made: plans.made,
            time: plans.time,
            arena_bytes: most(|plan| plan.arena_bytes).unwrap_or(0),
            live_bytes: most(|plan| plan.live_bytes).unwrap_or(0),
            operations: self.operations.load(Ordering::Relaxed),
        }
    }
}

/// A held tensor under the shape that the reader sees; other values as they are.
fn shaped(datum: Datum, shape: Option<&Vec<usize>>) -> Result<Datum, OpError> {
    match (datum, shape) {
        (Datum::Tensor(tensor), Some(shape)) if tensor.shape() != shape.as_slice() => {
            Ok(Datum::Tensor(tensor.reshape(shape)?))
        }
        (datum, _) => Ok(datum),
    }
}

impl RunningSchedule<'_> {
    fn held(&self, slot: usize) -> Result<&Datum, OpError> {
        self.held[slot].as_ref().ok_or_else(|| OpError::new("a value was released too early"))
    }

    fn run_kernel(
        &mut self,
        step: &PlannedStep,
        run: &super::kernel::StepFunction,
    ) -> Result<(), OpError> {
        let mut owned: Vec<(usize, OwnedTensor)> = Vec::new();
        let mut taken: Vec<usize> = Vec::new();
        for (at, target) in step.outputs.iter().enumerate() {
            if let StepTarget::Held { slot, dtype, shape } = target {
                let over = step.over.iter().find(|(_, output)| *output == at);
                let tensor = match over.and_then(|&(input, _)| self.take(step, input, *dtype)) {
                    Some((input, tensor)) => {
                        taken.push(input);
                        tensor
                    }
                    None => self.fresh(*slot, *dtype, shape)?,
                };
                owned.push((*slot, tensor));
            }
        }
        {
            let (reads, writes) = self
                .arena
                .borrow(&step.reads, &step.writes)
                .map_err(|error| OpError::new(error.to_string()))?;
            let mut reads = reads.into_iter();
            let mut writes = writes.into_iter();
            let mut fresh = owned.iter_mut();
            let mut inputs = Vec::with_capacity(step.inputs.len());
            for (at, source) in step.inputs.iter().enumerate() {
                inputs.push(match source {
                    StepSource::Absent => None,
                    StepSource::Held { .. } if taken.contains(&at) => None,
                    StepSource::Constant(at) => Some(self.schedule.constants[*at].as_view()?),
                    StepSource::Arena { dtype, shape } => {
                        let bytes = reads.next().unwrap_or_default();
                        Some(TensorRef::from_bytes(*dtype, shape, bytes)?)
                    }
                    StepSource::Held { slot, shape } => {
                        let held = self.held[*slot].as_ref().and_then(Datum::as_tensor);
                        let held = held.ok_or_else(|| OpError::new("a value is missing"))?;
                        Some(match shape {
                            Some(shape) if held.shape() != shape.as_slice() => {
                                TensorRef::from_bytes(held.dtype(), shape, held.as_bytes()?)?
                            }
                            _ => held.as_view()?,
                        })
                    }
                });
            }
            let mut outputs = Vec::with_capacity(step.outputs.len());
            for target in &step.outputs {
                outputs.push(match target {
                    StepTarget::Unwanted => None,
                    StepTarget::Arena { dtype, shape } => {
                        let bytes = writes.next().unwrap_or_default();
                        Some(TensorMut::from_bytes(*dtype, shape, bytes)?)
                    }
                    StepTarget::Held { .. } => {
                        fresh.next().map(|(_, tensor)| tensor.as_view_mut()).transpose()?
                    }
                });
            }
            let pool = step.pool.as_deref().unwrap_or(self.exec.pool);
            run(&mut StepCall { exec: KernelContext { pool, ..self.exec }, inputs, outputs })?;
        }
        for (slot, tensor) in owned {
            self.held[slot] = Some(Datum::Tensor(tensor.freeze()));
        }
        Ok(())
    }

    /// Memory for a tensor that the run will hold: what was given back where that fits.
    fn fresh(
        &mut self,
        slot: usize,
        dtype: DataType,
        shape: &[usize],
    ) -> Result<OwnedTensor, OpError> {
        let fits = |(own, spare): &(usize, OwnedTensor)| *own == slot && spare.dtype() == dtype;
        let found = self.spare.iter().position(fits).map(|at| self.spare.swap_remove(at).1);
        match found.and_then(|spare| spare.reused(shape).ok()) {
            Some(spare) => Ok(spare),
            None => Ok(OwnedTensor::zeroed(dtype, shape)?),
        }
    }

    /// An input that the run holds and nobody else knows, to be written.
    fn take(
        &mut self,
        step: &PlannedStep,
        input: usize,
        dtype: DataType,
    ) -> Option<(usize, OwnedTensor)> {
        let Some(StepSource::Held { slot, .. }) = step.inputs.get(input) else { return None };
        let held = self.held.get_mut(*slot)?;
        match held.take() {
            Some(Datum::Tensor(tensor)) if tensor.dtype() == dtype => match tensor.into_owned() {
                Ok(owned) => return Some((input, owned)),
                Err(shared) => *held = Some(Datum::Tensor(shared)),
            },
            other => *held = other,
        }
        None
    }

    fn run_reference(
        &mut self,
        step: &PlannedStep,
        operator: &dyn galatea_graph::Operator,
    ) -> Result<(), OpError> {
        let mut inputs: Vec<Option<Datum>> = Vec::with_capacity(step.inputs.len());
        for source in &step.inputs {
            inputs.push(match source {
                StepSource::Absent => None,
                StepSource::Constant(at) => {
                    Some(Datum::Tensor(self.schedule.constants[*at].clone()))
                }
                StepSource::Held { slot, shape } => {
                    Some(shaped(self.held(*slot)?.clone(), shape.as_ref())?)
                }
                StepSource::Arena { .. } => return Err(OpError::new("an input is not held")),
            });
        }
        // The operator owns what nobody reads after it, and may change it in place.
        for &slot in &step.release {
            self.held[slot] = None;
        }
        let mut results = operator.evaluate(inputs)?.into_iter();
        for target in &step.outputs {
            let result = results.next();
            if let StepTarget::Held { slot, .. } = target {
                let datum =
                    result.ok_or_else(|| OpError::new("the operator gives too few outputs"))?;
                self.held[*slot] = Some(datum.contiguous()?);
            }
        }
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Datum>, RuntimeError> {
        let output = |source: &StepSource| match source {
            StepSource::Constant(at) => Ok(Datum::Tensor(self.schedule.constants[*at].clone())),
            StepSource::Held { slot, shape } => shaped(self.held(*slot)?.clone(), shape.as_ref()),
            StepSource::Absent | StepSource::Arena { .. } => {
                Err(OpError::new("an output is not held"))
            }
        };
        let wanted = |source: &&StepSource| !matches!(source, StepSource::Absent);
        let outputs = self.schedule.outputs.iter().filter(wanted).map(output);
        let outputs: Result<_, OpError> = outputs.collect();
        outputs.map_err(|error| RuntimeError::provider(super::NAME, error))
    }
}
