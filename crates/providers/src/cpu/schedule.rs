//! The plan of a run for one set of input shapes: which values are computed, by what, and where
//! they lie.

use std::ops::Range;
use std::sync::Arc;

use galatea_graph::{Fact, Graph, GraphError, OpError, ValueId, limits};
use galatea_kernels::ThreadPool;
use galatea_runtime::plan::{MemoryPlan, PlanStep, PlanValue, plan};
use galatea_runtime::{
    ArithmeticWork, NodeShapes, NodeWork, Precision, RuntimeError, needed_nodes, product_operations,
};
use galatea_tensor::{DataType, Tensor};

use super::halves::narrow;
use super::kernel::{CpuKernel, CpuStep, KernelChoices};
use super::late::LateKernels;
use super::stage::{StageDivision, StageEnd, StageStart};
use crate::reference;

/// Where a step finds an input.
#[derive(Debug)]
pub(super) enum StepSource {
    /// An absent optional input, one that the output lies over, or one that the step does not read.
    Absent,
    /// A window of the arena.
    Arena { dtype: DataType, shape: Vec<usize> },
    /// A tensor that the run holds, under this shape (its own, where it is known only then).
    Held { slot: usize, shape: Option<Vec<usize>> },
    /// A constant of the plan.
    Constant(usize),
}

/// Where a step puts an output.
#[derive(Debug)]
pub(super) enum StepTarget {
    /// Nobody wants it.
    Unwanted,
    /// A window of the arena.
    Arena { dtype: DataType, shape: Vec<usize> },
    /// A tensor that the run holds.
    Held { slot: usize, dtype: DataType, shape: Vec<usize> },
}

/// Computation of a step.
#[derive(Debug)]
pub(super) enum StepAction {
    /// A kernel over slices.
    Kernel(CpuStep),
    /// The operator's reference evaluation, over held tensors.
    Reference,
}

/// A step with the places of its values. Arena windows are in `reads` and `writes`, in the order
/// of the sources and targets that lie there.
#[derive(Debug)]
pub(super) struct PlannedStep {
    pub(super) node: usize,
    pub(super) action: StepAction,
    /// Name of the row of the kernel; of the reference where there is none.
    pub(super) row: &'static str,
    pub(super) inputs: Vec<StepSource>,
    pub(super) outputs: Vec<StepTarget>,
    pub(super) reads: Vec<Range<usize>>,
    pub(super) writes: Vec<Range<usize>>,
    /// `(input, output)` positions: an output that the run holds may be written over an input that it
    /// holds, where nobody else knows that.
    pub(super) over: Vec<(usize, usize)>,
    /// Slots whose tensors nobody needs after this step.
    pub(super) release: Vec<usize>,
    /// The threads for this step where they are not those of the session.
    pub(super) pool: Option<Arc<ThreadPool>>,
    /// The least work that it does.
    pub(super) work: ArithmeticWork,
}

/// A run for one set of input shapes, or a stage of one.
#[derive(Debug, Default)]
pub(super) struct CpuSchedule {
    pub(super) steps: Vec<PlannedStep>,
    pub(super) constants: Vec<Tensor>,
    /// How many tensors a run holds; the inputs come first.
    pub(super) slots: usize,
    /// The outputs: held, or constant, or absent where nobody asks for them. Of a stage that others follow, what it
    /// hands on.
    pub(super) outputs: Vec<StepSource>,
    /// Beginning of the next stage; `None` for the last one.
    pub(super) end: Option<StageEnd>,
    pub(super) arena_bytes: usize,
    /// The least bytes of an arena for these steps.
    pub(super) live_bytes: usize,
    /// Multiplications and additions of products and convolutions.
    pub(super) operations: u64,
}

/// Where a value lies, once that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecidedPlace {
    Nowhere,
    Constant(usize),
    Held(usize),
    Arena(usize),
}

/// Graph and kernels that schedules are made of.
pub(super) struct ScheduleSource<'a> {
    pub(super) graph: &'a Graph,
    pub(super) kernels: &'a [Option<Box<dyn CpuKernel>>],
    /// Names of the rows of the kernels.
    pub(super) rows: &'a [&'static str],
    pub(super) late: LateKernels<'a>,
    pub(super) precision: Precision,
    pub(super) choices: KernelChoices<'a>,
}

struct ScheduleBuilder<'a> {
    source: &'a ScheduleSource<'a>,
    graph: &'a Graph,
    /// Which outputs are asked for.
    wanted: &'a [bool],
    /// Nodes to compute.
    now: &'a [bool],
    /// Values that the run holds at the end.
    leaving: Vec<ValueId>,
    facts: Vec<Option<Fact>>,
    /// For each value, the one whose elements it shares.
    root: Vec<usize>,
    place: Vec<DecidedPlace>,
    constants: Vec<Tensor>,
    slots: usize,
    arena: Vec<PlanValue>,
}

/// A step before places are known.
struct DraftStep {
    node: usize,
    action: StepAction,
    row: &'static str,
    /// The arena value that is the step's own memory.
    scratch: Option<usize>,
}

/// Plans a stage of a run: all of it, where every length follows from the shapes of the inputs.
///
/// # Errors
/// Fails when an operator refuses the shapes.
pub(super) fn schedule(
    source: &ScheduleSource<'_>,
    start: &StageStart,
    wanted: &[bool],
) -> Result<CpuSchedule, RuntimeError> {
    let graph = source.graph;
    check_sizes(graph, &start.facts)?;
    let needed = needed_nodes(graph, wanted);
    let gains: Vec<bool> = (0..graph.nodes.len()).map(|index| source.gains(index)).collect();
    let StageDivision { now, end } = start.divide(graph, &needed, wanted, &gains);
    let leaving: Vec<ValueId> = match &end {
        Some(end) => end.carried.iter().map(|carried| carried.id).collect(),
        None => {
            let outputs = graph.outputs.iter().zip(wanted);
            outputs.filter_map(|(&id, wanted)| wanted.then_some(id)).collect()
        }
    };
    let begin = || ScheduleBuilder::new(source, start, wanted, &now, leaving.clone());
    let mut builder = begin();
    let halves = source.precision == Precision::Bf16
        && narrow(graph, &mut builder.facts, &builder.root, source.kernels, &now);
    let mut drafts = builder.drafts();
    if halves && builder.references_see_halves(&drafts) {
        // A kernel refused its shapes after all, and what runs instead knows no other type.
        builder = begin();
        drafts = builder.drafts();
    }
    builder.place_values(&drafts);
    builder.place_scratch(&mut drafts);
    builder.finish(drafts, end)
}

impl ScheduleSource<'_> {
    /// Returns whether a node can have a kernel once its shapes are known.
    fn gains(&self, index: usize) -> bool {
        self.kernels[index].is_some() || self.late.is_open(index)
    }
}

impl<'a> ScheduleBuilder<'a> {
    fn new(
        source: &'a ScheduleSource<'a>,
        start: &StageStart,
        wanted: &'a [bool],
        now: &'a [bool],
        leaving: Vec<ValueId>,
    ) -> Self {
        let graph = source.graph;
        let count = graph.values().len();
        let mut builder = Self {
            source,
            graph,
            wanted,
            now,
            leaving,
            facts: start.facts.clone(),
            root: (0..count).collect(),
            place: vec![DecidedPlace::Nowhere; count],
            constants: Vec::new(),
            slots: 0,
            arena: Vec::new(),
        };
        for &input in &start.inputs {
            builder.hold(input.index());
        }
        for (node, _) in graph.nodes.iter().zip(now).filter(|(_, now)| **now) {
            if let (true, Some(from), Some(to)) = (node.is_view(), node.input(0), node.output(0))
                && !builder.is_constant(to)
                && builder.same_size(from, to)
            {
                builder.root[to.index()] = builder.root[from.index()];
            }
        }
        builder
    }

    /// Returns whether a reference evaluation touches a value that lies as BF16 but is FP32.
    fn references_see_halves(&self, drafts: &[DraftStep]) -> bool {
        let is_half = |id: &ValueId| {
            let fact = self.facts[id.index()].as_ref();
            fact.is_some_and(|fact| fact.dtype == DataType::Bf16)
        };
        drafts.iter().filter(|draft| matches!(draft.action, StepAction::Reference)).any(|draft| {
            let node = &self.graph.nodes[draft.node];
            node.inputs.iter().chain(&node.outputs).flatten().any(is_half)
        })
    }

    fn hold(&mut self, value: usize) {
        if !matches!(self.place[value], DecidedPlace::Held(_)) {
            self.place[value] = DecidedPlace::Held(self.slots);
            self.slots += 1;
        }
    }

    fn is_constant(&self, id: ValueId) -> bool {
        self.facts[id.index()].as_ref().is_some_and(|fact| fact.value.is_some())
    }

    /// Decides what computes each node; nodes with known results and views need nothing.
    fn drafts(&mut self) -> Vec<DraftStep> {
        let mut drafts = Vec::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let known = node.outputs.iter().flatten().all(|&id| self.is_constant(id));
            if known || !self.now[index] {
                continue;
            }
            if let (true, Some(from), Some(to)) = (node.is_view(), node.input(0), node.output(0))
                && self.root[to.index()] == self.root[from.index()]
            {
                continue;
            }
            let (action, row) = match self.bound(index) {
                Some((step, row)) => (StepAction::Kernel(step), row),
                None => (StepAction::Reference, reference::NAME),
            };
            drafts.push(DraftStep { node: index, action, row, scratch: None });
        }
        drafts
    }

    /// Returns whether both shapes are known and have the same number of elements. A constant's
    /// elements are not shared: they have no place of their own.
    fn same_size(&self, from: ValueId, to: ValueId) -> bool {
        let shape = |id: ValueId| {
            let fact = self.facts[id.index()].as_ref().filter(|fact| fact.is_tensor())?;
            Some((fact.dtype, fact.known_shape()?))
        };
        let (Some((a_type, a)), Some((b_type, b))) = (shape(from), shape(to)) else { return false };
        !self.is_constant(from)
            && a_type == b_type
            && a.iter().product::<usize>() == b.iter().product::<usize>()
    }

    /// Returns the kernel of a node for the shapes of this run, and the name of its row.
    fn bound(&self, index: usize) -> Option<(CpuStep, &'static str)> {
        let ScheduleSource { graph, kernels, rows, late, choices, .. } = self.source;
        let shapes = NodeShapes::known(&graph.nodes[index], &self.facts)?;
        let bind = |kernel: &dyn CpuKernel| {
            let bound = kernel.bind_chosen(&shapes, *choices).map_err(|reason| {
                let node = graph.place(index);
                tracing::debug!(%node, %reason, "runs by reference for these shapes");
            });
            bound.ok()
        };
        match &kernels[index] {
            Some(kernel) => Some((bind(kernel.as_ref())?, rows[index])),
            None => {
                let (kernel, row) = late.build(graph, index, &self.facts)?;
                Some((bind(kernel.as_ref())?, row))
            }
        }
    }

    /// Decides for each value whether it lies in the arena or is held as a tensor: held are the
    /// graph's outputs and what reference steps touch.
    fn place_values(&mut self, drafts: &[DraftStep]) {
        let mut held = vec![false; self.place.len()];
        for id in &self.leaving {
            held[self.root[id.index()]] = true;
        }
        for draft in drafts.iter().filter(|draft| matches!(draft.action, StepAction::Reference)) {
            let node = &self.graph.nodes[draft.node];
            for id in node.inputs.iter().chain(&node.outputs).flatten() {
                held[self.root[id.index()]] = true;
            }
        }
        for (index, held) in held.iter().enumerate() {
            let constant = self.facts[index].as_ref().and_then(|fact| fact.value.clone());
            match constant {
                Some(tensor) => {
                    self.place[index] = DecidedPlace::Constant(self.constants.len());
                    self.constants.push(tensor);
                }
                None if *held => self.hold(index),
                None => {}
            }
        }
        for draft in drafts {
            for id in self.graph.nodes[draft.node].outputs.iter().flatten() {
                let index = id.index();
                if self.place[index] == DecidedPlace::Nowhere && self.root[index] == index {
                    self.place[index] = DecidedPlace::Arena(self.arena.len());
                    let bytes = self.facts[index].as_ref().map_or(0, size_bytes);
                    self.arena.push(PlanValue { bytes, view_of: None });
                }
            }
        }
    }

    fn place_scratch(&mut self, drafts: &mut [DraftStep]) {
        for draft in drafts {
            if let StepAction::Kernel(step) = &draft.action
                && step.scratch > 0
            {
                draft.scratch = Some(self.arena.len());
                let bytes = step.scratch.saturating_mul(size_of::<f32>());
                self.arena.push(PlanValue { bytes, view_of: None });
            }
        }
    }

    fn place_of(&self, id: ValueId) -> DecidedPlace {
        match self.place[id.index()] {
            constant @ DecidedPlace::Constant(_) => constant,
            _ => self.place[self.root[id.index()]],
        }
    }

    fn shape_of(&self, id: ValueId) -> (DataType, Option<Vec<usize>>) {
        let fact = self.facts[id.index()].as_ref();
        let shape = |fact: &Fact| fact.known_shape().filter(|_| fact.is_tensor());
        fact.map_or((DataType::Uint8, None), |fact| (fact.dtype, shape(fact)))
    }

    fn finish(
        self,
        drafts: Vec<DraftStep>,
        end: Option<StageEnd>,
    ) -> Result<CpuSchedule, RuntimeError> {
        let steps: Vec<PlanStep> = drafts.iter().map(|draft| self.plan_step(draft)).collect();
        let memory = plan(&self.arena, &steps);
        let mut planned: Vec<PlannedStep> = Vec::with_capacity(drafts.len());
        for (index, draft) in drafts.into_iter().enumerate() {
            planned.push(self.planned(draft, &memory, memory.reused[index])?);
        }
        let outputs = self.outputs(end.is_some())?;
        release(&mut planned, &outputs, self.slots);
        let slots = self.slots;
        let arena_bytes = memory.len_bytes;
        let live_bytes = memory.live_bytes;
        let nodes = planned.iter().map(|step| &self.graph.nodes[step.node]);
        let operations = nodes.map(|node| product_operations(node, &self.facts)).sum();
        let steps = planned;
        let constants = self.constants;
        Ok(CpuSchedule {
            steps,
            constants,
            slots,
            outputs,
            end,
            arena_bytes,
            live_bytes,
            operations,
        })
    }

    /// Returns where what a stage hands on is found, or else the outputs of the graph.
    fn outputs(&self, is_handed_on: bool) -> Result<Vec<StepSource>, RuntimeError> {
        if is_handed_on {
            return self.leaving.iter().map(|&id| self.source(id)).collect();
        }
        let output = |(&id, wanted): (&ValueId, &bool)| match wanted {
            true => self.source(id),
            false => Ok(StepSource::Absent),
        };
        self.graph.outputs.iter().zip(self.wanted).map(output).collect()
    }

    fn plan_step(&self, draft: &DraftStep) -> PlanStep {
        let node = &self.graph.nodes[draft.node];
        let arena = |id: ValueId| match self.place_of(id) {
            DecidedPlace::Arena(value) => Some(value),
            _ => None,
        };
        let all = |slots: &[Option<ValueId>]| -> Vec<usize> {
            slots.iter().flatten().filter_map(|&id| arena(id)).collect()
        };
        let pairs: &[(usize, usize)] = match &draft.action {
            StepAction::Kernel(step) => &step.in_place,
            StepAction::Reference => &[],
        };
        let pair = |&(input, output): &(usize, usize)| {
            Some((arena(node.input(input)?)?, arena(node.output(output)?)?))
        };
        PlanStep {
            reads: all(&node.inputs),
            writes: all(&node.outputs).into_iter().chain(draft.scratch).collect(),
            reuse: pairs.iter().filter_map(pair).collect(),
        }
    }

    fn planned(
        &self,
        draft: DraftStep,
        memory: &MemoryPlan,
        reused: Option<(usize, usize)>,
    ) -> Result<PlannedStep, RuntimeError> {
        let node = &self.graph.nodes[draft.node];
        let mut reads = Vec::new();
        let mut writes = Vec::new();
        let window = |value: usize| {
            let start = memory.offsets[value];
            start..start + self.arena[value].bytes
        };
        let unread: &[usize] = match &draft.action {
            StepAction::Kernel(step) => &step.unread,
            StepAction::Reference => &[],
        };
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for slot in &node.inputs {
            let Some(id) = *slot else {
                inputs.push(StepSource::Absent);
                continue;
            };
            if let DecidedPlace::Arena(value) = self.place_of(id) {
                if reused.is_some_and(|(read, _)| read == value) {
                    inputs.push(StepSource::Absent);
                    continue;
                }
                reads.push(window(value));
            }
            let source = self.source(id)?;
            let is_unread =
                matches!(source, StepSource::Constant(_)) && unread.contains(&inputs.len());
            inputs.push(if is_unread { StepSource::Absent } else { source });
        }
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for slot in &node.outputs {
            let Some(id) = *slot else {
                outputs.push(StepTarget::Unwanted);
                continue;
            };
            let (dtype, shape) = self.shape_of(id);
            let shape = shape.unwrap_or_default();
            outputs.push(match self.place_of(id) {
                DecidedPlace::Held(slot) => StepTarget::Held { slot, dtype, shape },
                DecidedPlace::Arena(value) => {
                    writes.push(window(value));
                    StepTarget::Arena { dtype, shape }
                }
                // A result that is known beforehand; the step's other outputs are not.
                DecidedPlace::Constant(_) | DecidedPlace::Nowhere => StepTarget::Unwanted,
            });
        }
        if let Some(value) = draft.scratch {
            let shape = vec![self.arena[value].bytes / size_of::<f32>()];
            writes.push(window(value));
            outputs.push(StepTarget::Arena { dtype: DataType::Fp32, shape });
        }
        let DraftStep { action, row, .. } = draft;
        let release = Vec::new();
        let known = |id: ValueId| self.facts[id.index()].as_ref();
        let work = NodeWork::of(node, &known).total();
        let node = draft.node;
        let pool = None;
        let over = Vec::new();
        Ok(PlannedStep {
            node,
            action,
            row,
            inputs,
            outputs,
            reads,
            writes,
            over,
            release,
            pool,
            work,
        })
    }

    fn source(&self, id: ValueId) -> Result<StepSource, RuntimeError> {
        let (dtype, shape) = self.shape_of(id);
        match self.place_of(id) {
            DecidedPlace::Constant(index) => Ok(StepSource::Constant(index)),
            DecidedPlace::Held(slot) => Ok(StepSource::Held { slot, shape }),
            DecidedPlace::Arena(_) => {
                Ok(StepSource::Arena { dtype, shape: shape.unwrap_or_default() })
            }
            DecidedPlace::Nowhere => {
                let name = &self.graph.value(id).name;
                Err(GraphError::structure(format!("nothing computes '{name}'")).into())
            }
        }
    }
}

/// Refuses values beyond the limit, so that products of lengths below cannot overflow. Lengths of 0
/// count as 1: a part of the shape is multiplied out at times. Inputs and constants that have
/// elements are there already.
fn check_sizes(graph: &Graph, facts: &[Option<Fact>]) -> Result<(), RuntimeError> {
    // The message, where the value is beyond the limit.
    let beyond = |id: ValueId, held: bool| {
        let limit = limits::get().value_bytes;
        let fact = facts[id.index()].as_ref()?;
        let shape = fact.known_shape()?;
        let size = fact.dtype.size_bytes().unwrap_or(1);
        let bytes = shape.iter().try_fold(size, |all, &len| all.checked_mul(len.max(1)));
        if bytes.is_some_and(|bytes| bytes <= limit) || (held && !shape.contains(&0)) {
            return None;
        }
        let bytes = bytes.map_or("more".to_owned(), |bytes| bytes.to_string());
        Some(format!(
            "'{}' of shape {shape:?} and type {} takes {bytes} bytes, the limit of a value is \
             {limit}",
            graph.value(id).name,
            fact.dtype
        ))
    };
    if let Some(text) = graph.inputs.iter().find_map(|&input| beyond(input, true)) {
        return Err(RuntimeError::Input(text));
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        let read = node.inputs.iter().flatten().filter(|&&id| graph.constant(id).is_some());
        let found =
            read.map(|&id| (id, true)).chain(node.outputs.iter().flatten().map(|&id| (id, false)));
        if let Some(text) = found.into_iter().find_map(|(id, held)| beyond(id, held)) {
            return Err(GraphError::at(graph.place(at), OpError::new(text)).into());
        }
    }
    Ok(())
}

/// Bytes of a value of known shape.
fn size_bytes(fact: &Fact) -> usize {
    let element = fact.dtype.size_bytes().unwrap_or(0);
    let shape = fact.known_shape().unwrap_or_default();
    shape.iter().fold(element, |bytes, &len| bytes.saturating_mul(len))
}

/// Notes after which step each held tensor is not needed any more.
fn release(steps: &mut [PlannedStep], outputs: &[StepSource], slots: usize) {
    let mut done = vec![false; slots];
    for source in outputs {
        if let StepSource::Held { slot, .. } = source {
            done[*slot] = true;
        }
    }
    for step in steps.iter_mut().rev() {
        let read = step.inputs.iter().filter_map(|source| match source {
            StepSource::Held { slot, .. } => Some(*slot),
            _ => None,
        });
        let written = step.outputs.iter().filter_map(|target| match target {
            StepTarget::Held { slot, .. } => Some(*slot),
            _ => None,
        });
        let mut freed = Vec::new();
        for slot in read.chain(written) {
            if !std::mem::replace(&mut done[slot], true) {
                freed.push(slot);
            }
        }
        step.release = freed;
        step.over = over(step);
    }
}

/// Which outputs of a kernel may lie over inputs that nobody needs after the step.
fn over(step: &PlannedStep) -> Vec<(usize, usize)> {
    let StepAction::Kernel(kernel) = &step.action else { return Vec::new() };
    let reads = |slot: usize| {
        let same =
            |source: &&StepSource| matches!(source, StepSource::Held { slot: s, .. } if *s == slot);
        step.inputs.iter().filter(same).count()
    };
    let fits = |&&(input, output): &&(usize, usize)| {
        let (
            Some(StepSource::Held { slot, shape: Some(from) }),
            Some(StepTarget::Held { shape, .. }),
        ) = (step.inputs.get(input), step.outputs.get(output))
        else {
            return false;
        };
        from == shape && step.release.contains(slot) && reads(*slot) == 1
    };
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for &pair in kernel.in_place.iter().filter(fits) {
        if !pairs.iter().any(|&(_, output)| output == pair.1) {
            pairs.push(pair);
        }
    }
    pairs
}
