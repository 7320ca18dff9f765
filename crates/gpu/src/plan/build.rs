//! Making a plan.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use galatea_graph::{Fact, Graph, GraphError, Node, OpError, ValueId};
use galatea_runtime::plan::{MemoryPlan, PlanStep, PlanValue, plan};
use galatea_runtime::{RuntimeError, needed_nodes};
use galatea_tensor::{DataType, Tensor, f16};

use super::cuts::cuts;
use super::{
    BindingPlace, DeviceAction, DispatchShare, GpuPlan, InputPlace, OutputPlace, PlanWork,
    work::most_work,
};
use crate::choices::TuningChoices;
use crate::device::GpuDevice;
use crate::kernel::{DispatchStep, GpuKernel, ShaderBinding};
use crate::memory::{BufferReach, DeviceBlock, STEP};
use crate::stream::ConstantPages;
use crate::throughput::ThroughputModel;
use galatea_runtime::NodeShapes;

/// Inputs from which a plan is made.
pub(crate) struct PlanInputs<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) kernels: &'a [Option<Box<dyn GpuKernel>>],
    pub(crate) facts: Vec<Option<Fact>>,
    /// For each output, whether somebody asks for it.
    pub(crate) wanted: &'a [bool],
    /// For each input, whether it lies on the device.
    pub(crate) resident: &'a [bool],
    /// True if values between kernels are stored as FP16.
    pub(crate) halves: bool,
    /// Choices that kernels ask for.
    pub(crate) choices: &'a TuningChoices,
}

/// Target of a plan: the device and its constants.
pub(crate) struct PlanTarget<'a> {
    pub(crate) device: &'a Arc<GpuDevice>,
    /// Rates from which times are predicted.
    pub(crate) pace: &'a ThroughputModel,
    /// The constants of the graph that were brought to the device before.
    pub(crate) constants: &'a mut HashMap<(ValueId, DataType), Arc<DeviceBlock>>,
}

/// Place of a value, once that is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValuePlacement {
    Nowhere,
    Constant,
    Slot(usize),
    Arena(usize),
    /// From this byte on in the block of outputs.
    Output(u64),
}

/// A node with its dispatches.
struct LoweredNode {
    node: usize,
    step: DispatchStep,
    /// Arena values that are its own memory.
    scratch: Vec<usize>,
    /// Copies that come first: of an input to an output that is to lie over it.
    copies: Vec<(ValueId, ValueId)>,
}

struct PlanBuilder<'a, 'b> {
    graph: &'a Graph,
    wanted: &'a [bool],
    facts: Vec<Option<Fact>>,
    root: Vec<usize>,
    home: Vec<ValuePlacement>,
    arena: Vec<PlanValue>,
    slots: usize,
    /// Inputs whose slot a step changes.
    changed: Vec<bool>,
    /// True if outputs are computed in the memory from which they are read.
    in_place: bool,
    /// Bytes of the block of outputs so far.
    output_bytes: u64,
    target: PlanTarget<'b>,
}

fn failed(text: impl std::fmt::Display) -> RuntimeError {
    RuntimeError::provider(crate::NAME, text)
}

/// Plans a run.
///
/// # Errors
/// Fails when a kernel refuses the shapes, a shader does not compile, or the device has no memory.
pub(crate) fn build(
    given: PlanInputs<'_>,
    target: PlanTarget<'_>,
) -> Result<GpuPlan, RuntimeError> {
    let PlanInputs { graph, kernels, facts, wanted, resident, halves, choices } = given;
    let facts = device_facts(graph, facts, halves);
    let mut builder = PlanBuilder::new(graph, wanted, facts, target);
    let mut drafts = builder.drafts(kernels, choices)?;
    builder.place(&mut drafts, resident);
    builder.finish(drafts)
}

/// Returns the facts of values with the types in which they are stored on the device.
pub(crate) fn device_facts(
    graph: &Graph,
    mut facts: Vec<Option<Fact>>,
    halves: bool,
) -> Vec<Option<Fact>> {
    if halves && facts.len() == graph.values().len() {
        narrow(graph, &mut facts);
    }
    facts
}

/// Values that are neither inputs nor outputs of the partition lie as FP16.
fn narrow(graph: &Graph, facts: &mut [Option<Fact>]) {
    let mut edge = vec![false; facts.len()];
    for id in graph.inputs.iter().chain(&graph.outputs) {
        edge[id.index()] = true;
    }
    // Bytes that a view shares with an edge are the edge's.
    for node in graph.nodes.iter().filter(|node| node.is_view()) {
        if let (Some(from), Some(to)) = (node.input(0), node.output(0)) {
            edge[to.index()] |= edge[from.index()];
        }
    }
    for node in graph.nodes.iter().rev().filter(|node| node.is_view()) {
        if let (Some(from), Some(to)) = (node.input(0), node.output(0)) {
            edge[from.index()] |= edge[to.index()];
        }
    }
    for node in graph.nodes.iter().filter(|node| is_quantised(node, facts)) {
        // Scales may be too small for FP16, and are few.
        for id in node.inputs.iter().flatten() {
            edge[id.index()] |= facts[id.index()].as_ref().is_some_and(|fact| fact.value.is_some());
        }
    }
    for (fact, edge) in facts.iter_mut().zip(edge) {
        if let Some(fact) = fact
            && fact.dtype == DataType::Fp32
            && !edge
        {
            fact.dtype = DataType::Fp16;
        }
    }
}

/// Returns whether a node's constant floats are scales of integers.
fn is_quantised(node: &Node, facts: &[Option<Fact>]) -> bool {
    let byte = |id: &ValueId| {
        let dtype = facts[id.index()].as_ref().map(|fact| fact.dtype);
        matches!(dtype, Some(DataType::Int8 | DataType::Uint8))
    };
    let values = node.inputs.iter().chain(&node.outputs).flatten();
    node.op_type == "DequantizeLinear" || values.into_iter().any(byte)
}

/// Bytes of a value.
fn size_bytes(fact: &Fact) -> usize {
    let element = fact.dtype.size_bytes().unwrap_or(0);
    let shape = fact.known_shape().unwrap_or_default();
    shape.iter().fold(element, |bytes, &len| bytes.saturating_mul(len))
}

/// Bytes that a value takes in the arena.
fn padded(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(usize::try_from(STEP).unwrap_or(256))
}

fn wide(bytes: usize) -> u64 {
    bytes as u64
}

impl<'a, 'b> PlanBuilder<'a, 'b> {
    /// Cuts the dispatches into submissions that take no longer than the device's bound.
    fn cuts(&self, actions: &[DeviceAction]) -> Vec<usize> {
        let Some(bound) = self.target.device.submission_bound_ns() else { return Vec::new() };
        let works = most_work(self.graph, &self.facts, actions);
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let bound = bound as f64;
        cuts(works.into_iter().map(|work| self.target.pace.dispatch_time_ns(work)), bound)
    }

    fn new(
        graph: &'a Graph,
        wanted: &'a [bool],
        facts: Vec<Option<Fact>>,
        target: PlanTarget<'b>,
    ) -> Self {
        let count = graph.values().len();
        let mut root: Vec<usize> = (0..count).collect();
        for node in graph.nodes.iter().filter(|node| node.is_view()) {
            if let (Some(from), Some(to)) = (node.input(0), node.output(0)) {
                root[to.index()] = root[from.index()];
            }
        }
        let home = vec![ValuePlacement::Nowhere; count];
        let changed = vec![false; graph.inputs.len()];
        let asked = graph.outputs.iter().zip(wanted).filter(|(_, wanted)| **wanted);
        let bytes = asked.filter_map(|(id, _)| facts[id.index()].as_ref());
        let bytes = bytes.map(|fact| wide(padded(size_bytes(fact)))).fold(0, u64::saturating_add);
        let in_place = target.device.reach(bytes) == BufferReach::Host;
        let arena = Vec::new();
        Self {
            graph,
            wanted,
            facts,
            root,
            home,
            arena,
            slots: 0,
            changed,
            in_place,
            output_bytes: 0,
            target,
        }
    }

    fn is_constant(&self, id: ValueId) -> bool {
        self.facts[id.index()].as_ref().is_some_and(|fact| fact.value.is_some())
    }

    /// Asks every kernel for its dispatches.
    fn drafts(
        &self,
        kernels: &[Option<Box<dyn GpuKernel>>],
        choices: &TuningChoices,
    ) -> Result<Vec<LoweredNode>, RuntimeError> {
        let mut drafts = Vec::new();
        let needed = needed_nodes(self.graph, self.wanted);
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let known = || node.outputs.iter().flatten().all(|&id| self.is_constant(id));
            if node.is_view() || !needed[index] || known() {
                continue;
            }
            let refused = |reason: String| {
                RuntimeError::from(GraphError::at(self.graph.place(index), OpError::new(reason)))
            };
            let kernel = kernels.get(index).and_then(Option::as_ref);
            let kernel = kernel.ok_or_else(|| refused("no kernel takes this node".into()))?;
            let shapes =
                NodeShapes::known(&self.graph.nodes[index], &self.facts).ok_or_else(|| {
                    refused("a length of it is known only when the run has come so far".into())
                })?;
            let mut step = DispatchStep::asking(choices.clone());
            kernel.bind(&shapes, &mut step).map_err(refused)?;
            drafts.push(LoweredNode { node: index, step, scratch: Vec::new(), copies: Vec::new() });
        }
        Ok(drafts)
    }

    /// Decides where each value lies.
    fn place(&mut self, drafts: &mut [LoweredNode], resident: &[bool]) {
        for (index, fact) in self.facts.iter().enumerate() {
            if fact.as_ref().is_some_and(|fact| fact.value.is_some()) {
                self.home[index] = ValuePlacement::Constant;
            }
        }
        self.place_caches(drafts, resident);
        for &input in &self.graph.inputs {
            if self.home[input.index()] == ValuePlacement::Nowhere {
                self.in_arena(input.index());
            }
        }
        for draft in drafts.iter_mut() {
            self.place_over(draft);
            for &id in self.graph.nodes[draft.node].outputs.iter().flatten() {
                if self.root[id.index()] == id.index()
                    && self.home[id.index()] == ValuePlacement::Nowhere
                {
                    self.place_result(id.index());
                }
            }
            for &bytes in &draft.step.scratch {
                draft.scratch.push(self.arena.len());
                let bytes = padded(usize::try_from(bytes).unwrap_or(usize::MAX / 2));
                self.arena.push(PlanValue { bytes, view_of: None });
            }
        }
    }

    /// Inputs that lie on the device have slots, and so have those that a step changes into an output of
    /// the graph: they stay on the device from then on.
    fn place_caches(&mut self, drafts: &[LoweredNode], resident: &[bool]) {
        for (at, &input) in self.graph.inputs.iter().enumerate() {
            let changing = |draft: &LoweredNode| {
                let node = &self.graph.nodes[draft.node];
                draft.step.over.iter().any(|&(read, written)| {
                    let leaves = |id: ValueId| {
                        let same = |out: &ValueId| self.root[out.index()] == self.root[id.index()];
                        self.graph.outputs.iter().any(same)
                    };
                    node.input(read) == Some(input) && node.output(written).is_some_and(leaves)
                })
            };
            let changed = drafts.iter().any(changing);
            let listed_once = self.graph.inputs.iter().filter(|&&id| id == input).count() == 1;
            if listed_once && (changed || resident.get(at).copied().unwrap_or(false)) {
                self.home[input.index()] = ValuePlacement::Slot(self.slots);
                self.changed[at] = changed;
                self.slots += 1;
            }
        }
    }

    /// Lets outputs that are to lie over inputs do so, or copies the inputs to them.
    fn place_over(&mut self, draft: &mut LoweredNode) {
        let node = &self.graph.nodes[draft.node];
        for &(read, written) in &draft.step.over {
            let (Some(from), Some(to)) = (node.input(read), node.output(written)) else { continue };
            let own = |&&id: &&ValueId| id == from;
            let slot = self.graph.inputs.iter().position(|id| id == &from);
            let readers = self.graph.nodes.iter().flat_map(|n| n.inputs.iter().flatten());
            let alone = readers.filter(own).count() == 1 && !self.graph.outputs.contains(&from);
            match (slot, self.home[from.index()]) {
                (Some(at), ValuePlacement::Slot(_)) if self.changed[at] && alone => {
                    // Views of the output too.
                    for root in self.root.iter_mut().filter(|root| **root == to.index()) {
                        *root = from.index();
                    }
                }
                _ => draft.copies.push((from, to)),
            }
        }
    }

    /// Places what a step computes: where it is read, or in the arena.
    fn place_result(&mut self, index: usize) {
        let leaves = self.asked().any(|id| self.root[id.index()] == index);
        if leaves && self.in_place {
            let bytes = self.facts[index].as_ref().map_or(0, size_bytes);
            self.home[index] = ValuePlacement::Output(self.read_from(bytes));
        } else {
            self.in_arena(index);
        }
    }

    /// The outputs that somebody asks for.
    fn asked(&self) -> impl Iterator<Item = ValueId> {
        let outputs = self.graph.outputs.iter().zip(self.wanted);
        outputs.filter_map(|(&id, wanted)| wanted.then_some(id))
    }

    /// Takes bytes of the block of outputs.
    fn read_from(&mut self, bytes: usize) -> u64 {
        let start = self.output_bytes;
        self.output_bytes = start.saturating_add(wide(padded(bytes)));
        start
    }

    fn in_arena(&mut self, index: usize) {
        self.home[index] = ValuePlacement::Arena(self.arena.len());
        let bytes = padded(self.facts[index].as_ref().map_or(0, size_bytes));
        self.arena.push(PlanValue { bytes, view_of: None });
    }

    fn home_of(&self, id: ValueId) -> ValuePlacement {
        match self.home[id.index()] {
            ValuePlacement::Constant => ValuePlacement::Constant,
            _ => self.home[self.root[id.index()]],
        }
    }

    fn arena_of(&self, id: ValueId) -> Option<usize> {
        match self.home_of(id) {
            ValuePlacement::Arena(value) => Some(value),
            _ => None,
        }
    }

    fn finish(mut self, drafts: Vec<LoweredNode>) -> Result<GpuPlan, RuntimeError> {
        let memory = self.memory(&drafts);
        let mut actions = Vec::new();
        let mut params = Vec::new();
        let mut pages = ConstantPages::new(self.graph, self.target.device);
        for draft in &drafts {
            pages.reach(draft.node);
            for &(from, to) in &draft.copies {
                let bytes = self.facts[from.index()].as_ref().map_or(0, size_bytes);
                let bytes = wide(bytes).next_multiple_of(4);
                let from = self.bound(from, &memory)?;
                let to = self.bound(to, &memory)?;
                let both = (&from, &to);
                if let (BindingPlace::Arena { .. }, BindingPlace::Arena { .. })
                | (BindingPlace::Output { .. }, BindingPlace::Output { .. }) = both
                {
                    // No copy has its source and its target in one buffer.
                    let block = Arc::new(DeviceBlock::private(self.target.device, bytes)?);
                    let beside = BindingPlace::Fixed { block, offset: 0, bytes };
                    actions.push(DeviceAction::Copy { from, to: beside.clone(), bytes });
                    actions.push(DeviceAction::Copy { from: beside, to, bytes });
                    continue;
                }
                actions.push(DeviceAction::Copy { from, to, bytes });
            }
            self.dispatches(draft, &memory, &mut actions, &mut params)?;
        }
        let (inputs, input_bytes) = self.inputs(&memory);
        let graph = self.graph;
        let work = PlanWork::new(graph, &self.facts, &actions);
        let cuts = self.cuts(&actions);
        let outputs = graph.outputs.iter().zip(self.wanted).map(|(&id, wanted)| match wanted {
            true => self.output(id, &memory),
            false => Ok(OutputPlace::Unwanted),
        });
        let outputs: Result<Vec<OutputPlace>, RuntimeError> = outputs.collect();
        let params = match params.is_empty() {
            true => None,
            false => Some(self.uploaded(&params)?),
        };
        let mut seen = HashSet::new();
        let new = |block: &&Arc<DeviceBlock>| seen.insert(Arc::as_ptr(block));
        let streamed =
            actions.iter().flat_map(DeviceAction::streamed).filter(new).cloned().collect();
        Ok(GpuPlan {
            streamed,
            actions,
            inputs,
            outputs: outputs?,
            slots: self.slots,
            input_bytes,
            output_bytes: self.output_bytes,
            arena_bytes: wide(memory.len_bytes),
            live_bytes: wide(memory.live_bytes),
            params,
            work,
            cuts,
        })
    }

    fn uploaded(&self, params: &[u8]) -> Result<DeviceBlock, RuntimeError> {
        let block = DeviceBlock::params(self.target.device, params);
        block.map_err(RuntimeError::from)
    }

    /// Lays the arena out: inputs are written before the first step, outputs read after the last one.
    fn memory(&self, drafts: &[LoweredNode]) -> MemoryPlan {
        let all = |ids: &mut dyn Iterator<Item = ValueId>| -> Vec<usize> {
            ids.filter_map(|id| self.arena_of(id)).collect()
        };
        let mut steps = vec![PlanStep {
            writes: all(&mut self.graph.inputs.iter().copied()),
            ..PlanStep::default()
        }];
        for draft in drafts {
            let node = &self.graph.nodes[draft.node];
            let pair = |&(input, output): &(usize, usize)| {
                Some((self.arena_of(node.input(input)?)?, self.arena_of(node.output(output)?)?))
            };
            let mut writes = all(&mut node.outputs.iter().flatten().copied());
            writes.extend(&draft.scratch);
            steps.push(PlanStep {
                reads: all(&mut node.inputs.iter().flatten().copied()),
                writes,
                reuse: draft.step.in_place.iter().filter_map(pair).collect(),
            });
        }
        steps.push(PlanStep { reads: all(&mut self.asked()), ..PlanStep::default() });
        plan(&self.arena, &steps)
    }

    fn window(&self, value: usize, memory: &MemoryPlan) -> BindingPlace {
        let offset = wide(memory.offsets[value]);
        let bytes = wide(self.arena[value].bytes);
        BindingPlace::Arena { offset, bytes }
    }

    /// Returns the place at which a value is bound.
    fn bound(&mut self, id: ValueId, memory: &MemoryPlan) -> Result<BindingPlace, RuntimeError> {
        let bytes = self.facts[id.index()].as_ref().map_or(0, size_bytes);
        // Shaders may see a value as vectors of 16 bytes.
        let bytes = wide(bytes).max(16).next_multiple_of(16);
        self.check(bytes, || format!("'{}'", self.graph.value(id).name))?;
        match self.home_of(id) {
            ValuePlacement::Arena(value) => match self.window(value, memory) {
                BindingPlace::Arena { offset, .. } => Ok(BindingPlace::Arena { offset, bytes }),
                other => Ok(other),
            },
            ValuePlacement::Slot(slot) => Ok(BindingPlace::Slot { slot, bytes }),
            ValuePlacement::Output(offset) => Ok(BindingPlace::Output { offset, bytes }),
            ValuePlacement::Constant => {
                let block = self.constant(id)?;
                Ok(BindingPlace::in_block(block, 0, bytes))
            }
            ValuePlacement::Nowhere => {
                let name = &self.graph.value(id).name;
                Err(GraphError::structure(format!("nothing computes '{name}'")).into())
            }
        }
    }

    /// Refuses what is larger than a kernel can see at once.
    fn check(&self, bytes: u64, what: impl FnOnce() -> String) -> Result<(), RuntimeError> {
        let limit = self.target.device.capabilities().binding_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let what = what();
        Err(failed(format!(
            "{what} has {bytes} bytes, this device shows a kernel at most {limit} of a value"
        )))
    }

    /// Returns the place at which a part of a constant is bound.
    fn part(&mut self, id: ValueId, start: u64, bytes: u64) -> Result<BindingPlace, RuntimeError> {
        let name = &self.graph.value(id).name;
        if self.home_of(id) != ValuePlacement::Constant {
            return Err(failed(format!("'{name}' is bound in parts and is no constant")));
        }
        let bytes = bytes.max(16).next_multiple_of(16);
        self.check(bytes, || format!("a part of '{name}'"))?;
        Ok(BindingPlace::in_block(self.constant(id)?, start, bytes))
    }

    /// The block of a value that is known beforehand, as kernels read it.
    fn constant(&mut self, id: ValueId) -> Result<Arc<DeviceBlock>, RuntimeError> {
        let fact = self.facts[id.index()].as_ref();
        let Some((tensor, dtype)) = fact.and_then(|f| Some((f.value.clone()?, f.dtype))) else {
            return Err(failed("a constant has no value"));
        };
        // What only this plan knows is not kept for others.
        let shared = self.graph.constant(id).is_some();
        if let Some(found) = self.target.constants.get(&(id, dtype)).filter(|_| shared) {
            return Ok(Arc::clone(found));
        }
        let device = self.target.device;
        let tensor = tensor.contiguous().map_err(failed)?;
        let same = tensor.dtype() == dtype;
        let tensor = if same { tensor } else { halved(&tensor)? };
        let bytes = tensor.unaligned_bytes().map_err(failed)?;
        if !shared {
            return Ok(DeviceBlock::with(device, bytes)?);
        }
        let block = match same {
            true => DeviceBlock::of_tensor(device, &tensor)?,
            false => DeviceBlock::weights(device, bytes)?,
        };
        self.target.constants.insert((id, dtype), Arc::clone(&block));
        Ok(block)
    }

    fn dispatches(
        &mut self,
        draft: &LoweredNode,
        memory: &MemoryPlan,
        actions: &mut Vec<DeviceAction>,
        params: &mut Vec<u8>,
    ) -> Result<(), RuntimeError> {
        let node = &self.graph.nodes[draft.node];
        let missing = |what: &str, index: usize| failed(format!("{what} {index} is not there"));
        let shares = DispatchShare::of(&draft.step);
        for (dispatch, share) in draft.step.dispatches.iter().zip(shares) {
            let mut bindings = Vec::with_capacity(dispatch.bindings.len());
            for binding in &dispatch.bindings {
                bindings.push(match binding {
                    ShaderBinding::Input(index) => {
                        let id = node.input(*index).ok_or_else(|| missing("input", *index))?;
                        self.bound(id, memory)?
                    }
                    ShaderBinding::InputPart(index, start, bytes) => {
                        let id = node.input(*index).ok_or_else(|| missing("input", *index))?;
                        self.part(id, *start, *bytes)?
                    }
                    ShaderBinding::Output(index) => {
                        let id = node.output(*index).ok_or_else(|| missing("output", *index))?;
                        self.bound(id, memory)?
                    }
                    ShaderBinding::Scratch(index) => {
                        let value = draft.scratch.get(*index);
                        let value = *value.ok_or_else(|| missing("scratch", *index))?;
                        let bytes = wide(self.arena[value].bytes);
                        self.check(bytes, || format!("memory of {}", node.operator_name()))?;
                        self.window(value, memory)
                    }
                    ShaderBinding::Weights(block) => {
                        BindingPlace::in_block(Arc::clone(block), 0, block.bytes())
                    }
                    ShaderBinding::Part(block, offset, bytes) => {
                        BindingPlace::in_block(Arc::clone(block), *offset, *bytes)
                    }
                });
            }
            let start = wide(params.len());
            params.extend(dispatch.params.iter().flat_map(|word| word.to_le_bytes()));
            // A uniform takes whole vectors.
            let length = (wide(params.len()) - start).next_multiple_of(16);
            params.resize(params.len().next_multiple_of(256), 0);
            actions.push(DeviceAction::Dispatch {
                node: draft.node,
                name: Arc::clone(&dispatch.shader.name),
                pipeline: self.target.device.pipeline(&dispatch.shader)?,
                bindings,
                params: (length > 0).then_some((start, length)),
                groups: dispatch.groups,
                share,
            });
        }
        Ok(())
    }

    /// Returns the path of each input to the device, and the bytes that must go through a block beside the
    /// arena.
    fn inputs(&self, memory: &MemoryPlan) -> (Vec<InputPlace>, u64) {
        let mut staged = 0;
        let place = |(at, &id): (usize, &ValueId)| match self.home_of(id) {
            ValuePlacement::Slot(slot) => InputPlace::Slot { slot, changed: self.changed[at] },
            ValuePlacement::Arena(value) => {
                let start = staged;
                staged += wide(self.arena[value].bytes);
                InputPlace::Arena { offset: wide(memory.offsets[value]), start }
            }
            ValuePlacement::Constant | ValuePlacement::Nowhere | ValuePlacement::Output(_) => {
                InputPlace::Unread
            }
        };
        (self.graph.inputs.iter().enumerate().map(place).collect(), staged)
    }

    fn output(&mut self, id: ValueId, memory: &MemoryPlan) -> Result<OutputPlace, RuntimeError> {
        let fact = self.facts[id.index()].clone();
        let fact = fact.ok_or_else(|| failed("nothing is known of an output"))?;
        if let Some(value) = fact.value {
            return Ok(OutputPlace::Constant(value));
        }
        let shape = fact.known_shape().ok_or_else(|| failed("an output has no shape"))?;
        let dtype = fact.dtype;
        if let ValuePlacement::Slot(slot) = self.home_of(id) {
            let changes = |(at, input): (usize, &ValueId)| {
                self.changed[at] && self.home[input.index()] == ValuePlacement::Slot(slot)
            };
            if self.graph.inputs.iter().enumerate().any(changes) {
                return Ok(OutputPlace::Stays { slot, dtype, shape });
            }
        }
        if let ValuePlacement::Output(start) = self.home_of(id) {
            return Ok(OutputPlace::Read { start, from: None, dtype, shape });
        }
        let from = Some(self.bound(id, memory)?);
        let start = self.read_from(self.facts[id.index()].as_ref().map_or(0, size_bytes));
        Ok(OutputPlace::Read { start, from, dtype, shape })
    }
}

/// A constant as FP16.
pub(crate) fn halved(tensor: &Tensor) -> Result<Tensor, RuntimeError> {
    let values = tensor.to_vec::<f32>().map_err(failed)?;
    let halves: Vec<f16> = values.into_iter().map(f16::from_f32).collect();
    Tensor::from_vec(tensor.shape(), halves).map_err(failed)
}
