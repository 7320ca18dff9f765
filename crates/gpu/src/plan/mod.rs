//! The plan of a run for one set of input shapes: which dispatches compute it, and where values lie.
//!
//! Values between dispatches share one arena, laid out by [`galatea_runtime::plan`]. Inputs that come
//! from the host are written to the arena first; inputs that lie on the device, such as caches, are
//! bound where they are. What the plan knows beforehand lies in blocks of its own. Where the processor and the
//! device share memory, outputs are computed in the block that they are read from.

mod build;
mod cuts;
mod pieces;
mod record;
mod work;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use build::{PlanInputs, PlanTarget, build, device_facts, halved};
use galatea_graph::{Datum, Fact, Graph, ValueId, infer};
use galatea_runtime::RuntimeError;
use galatea_tensor::{DataType, Tensor};
pub(crate) use record::{HandedRun, PlanRecording, record};
pub(crate) use work::{DispatchShare, PlanWork};

use crate::device::KernelPipeline;
use crate::memory::DeviceBlock;
use crate::workspace::WorkspaceBytes;

/// Place of a binding's bytes.
#[derive(Clone, Debug)]
pub(crate) enum BindingPlace {
    /// In the arena of the run.
    Arena { offset: u64, bytes: u64 },
    /// In the block that the run holds in this slot.
    Slot { slot: usize, bytes: u64 },
    /// In the block that outputs are read from.
    Output { offset: u64, bytes: u64 },
    /// In a block of the model or of the plan.
    Fixed { block: Arc<DeviceBlock>, offset: u64, bytes: u64 },
    /// In a block of the model that is brought to the device when it is needed.
    Streamed { block: Arc<DeviceBlock>, offset: u64, bytes: u64 },
}

impl BindingPlace {
    /// In a block, wherever that lies.
    fn in_block(block: Arc<DeviceBlock>, offset: u64, bytes: u64) -> Self {
        match block.is_outside() {
            true => Self::Streamed { block, offset, bytes },
            false => Self::Fixed { block, offset, bytes },
        }
    }
}

impl DeviceAction {
    /// The blocks that must be brought for it.
    pub(crate) fn streamed(&self) -> impl Iterator<Item = &Arc<DeviceBlock>> {
        let (bindings, copied) = match self {
            Self::Dispatch { bindings, .. } => (&bindings[..], None),
            Self::Copy { from, .. } => (&[][..], Some(from)),
        };
        bindings.iter().chain(copied).filter_map(|place| match place {
            BindingPlace::Streamed { block, .. } => Some(block),
            _ => None,
        })
    }
}

/// One thing that the device does.
#[derive(Debug)]
pub(crate) enum DeviceAction {
    /// Starts a shader.
    Dispatch {
        /// The node, by its position in the graph.
        node: usize,
        /// The shader's name.
        name: Arc<str>,
        pipeline: Arc<KernelPipeline>,
        bindings: Vec<BindingPlace>,
        /// Start of its parameters among those of the plan, and their number of bytes.
        params: Option<(u64, u64)>,
        groups: [u32; 3],
        /// Share of its node's work.
        share: DispatchShare,
    },
    /// Copies bytes.
    Copy { from: BindingPlace, to: BindingPlace, bytes: u64 },
}

/// Path of an input to the device.
#[derive(Clone, Debug)]
pub(crate) enum InputPlace {
    /// Nothing reads it.
    Unread,
    /// Written to the arena, or to `start` of a block beside it where the processor does not address the arena.
    Arena { offset: u64, start: u64 },
    /// Held in a slot: bound where it lies, or brought to a block of its own.
    Slot { slot: usize, changed: bool },
}

/// Path of an output from the device.
#[derive(Clone, Debug)]
pub(crate) enum OutputPlace {
    /// Known beforehand.
    Constant(Tensor),
    /// Read from the block of outputs, where the run writes it, or brings it from elsewhere at its end.
    Read { start: u64, from: Option<BindingPlace>, dtype: DataType, shape: Vec<usize> },
    /// Nobody asks for it.
    Unwanted,
    /// It stays on the device: the block in this slot.
    Stays { slot: usize, dtype: DataType, shape: Vec<usize> },
}

/// A run for one set of input shapes.
#[derive(Debug)]
pub(crate) struct GpuPlan {
    pub(crate) actions: Vec<DeviceAction>,
    pub(crate) inputs: Vec<InputPlace>,
    pub(crate) outputs: Vec<OutputPlace>,
    pub(crate) slots: usize,
    /// Bytes of the inputs that are written to the arena.
    pub(crate) input_bytes: u64,
    /// Bytes of the block that outputs are read from.
    pub(crate) output_bytes: u64,
    pub(crate) arena_bytes: u64,
    pub(crate) live_bytes: u64,
    /// The parameters of all dispatches.
    pub(crate) params: Option<DeviceBlock>,
    /// Blocks that are brought to the device during a run, in the order in which it needs them.
    pub(crate) streamed: Vec<Arc<DeviceBlock>>,
    /// Work of its dispatches.
    pub(crate) work: PlanWork,
    /// Dispatches before which a new submission begins, by their numbers.
    pub(crate) cuts: Vec<usize>,
}

impl GpuPlan {
    /// Memory that a run needs.
    pub(crate) fn needs(&self) -> WorkspaceBytes {
        WorkspaceBytes {
            arena: self.arena_bytes,
            inputs: self.input_bytes,
            outputs: self.output_bytes,
        }
    }

    /// Returns the number of shaders that are started.
    pub(crate) fn dispatches(&self) -> usize {
        let dispatch = |action: &&DeviceAction| matches!(action, DeviceAction::Dispatch { .. });
        self.actions.iter().filter(dispatch).count()
    }

    /// Returns the most series of copies of a run: those between its dispatches, of its inputs and of its outputs.
    pub(crate) fn copies(&self) -> usize {
        let copy = |action: &&DeviceAction| matches!(action, DeviceAction::Copy { .. });
        self.actions.iter().filter(copy).count() + 2
    }

    /// Returns the number of passes in which they lie: copies separate them, and cuts.
    pub(crate) fn passes(&self) -> usize {
        let mut passes = 0;
        let mut dispatch = 0;
        let mut inside = false;
        let mut cuts = self.cuts.iter().copied().peekable();
        for action in &self.actions {
            let DeviceAction::Dispatch { .. } = action else {
                inside = false;
                continue;
            };
            let cut = cuts.next_if_eq(&dispatch).is_some();
            passes += usize::from(cut || !inside);
            inside = true;
            dispatch += 1;
        }
        passes
    }
}

/// Returns the facts of every value of a graph in a run with inputs of these shapes.
///
/// # Errors
/// Fails when an operator refuses them.
pub(crate) fn facts_of(graph: &Graph, inputs: &[Datum]) -> Result<Vec<Option<Fact>>, RuntimeError> {
    let fixed = |(&id, input): (&ValueId, &Datum)| {
        input.as_tensor().map(|tensor| (id, Fact::fixed(tensor.dtype(), tensor.shape())))
    };
    let known: HashMap<ValueId, Fact> = graph.inputs.iter().zip(inputs).filter_map(fixed).collect();
    Ok(infer::facts(graph, &known)?)
}
