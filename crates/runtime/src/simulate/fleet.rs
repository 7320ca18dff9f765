//! Inputs of a simulation: machines, models and requests.

use std::fmt;

use crate::cost::{ComputeUnit, CostModel, DecoderWork, GraphWork};
use crate::power::{MachineModel, PowerSettings};

/// Cooling of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MachineCooling {
    /// A fan, which keeps it from throttling at full work.
    #[default]
    Fan,
    /// None: half of what full work draws is what it bears for long.
    Fanless,
}

/// Degrees of the air around machines, and from which they lower their clocks.
const CELSIUS: [f64; 2] = [25.0, 95.0];
/// Heat that machines bear for long, as shares of what full work draws: with a fan and without.
const BEARS: [f64; 2] = [1.5, 0.5];
/// Joules that warm a machine by a kelvin, for each watt of its full work.
const JOULES_PER_KELVIN: f64 = 2.0;
/// The share of its clocks that a throttled machine keeps at least.
const LOWEST_CLOCKS: f64 = 0.4;

/// Machines that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineKind {
    /// Its name in reports.
    pub name: String,
    /// Number of machines.
    pub count: usize,
    /// Its chip.
    pub cost: CostModel,
    /// Bytes of its memory.
    pub memory_bytes: f64,
    /// Cooling of the machine.
    pub cooling: MachineCooling,
    /// Its Neural Engines: two on Ultra chips, each of which runs programs of its own.
    pub engines: usize,
    /// Bytes a second that it reads from its disk.
    pub disk_bytes: f64,
}

/// Bytes a second from the disk of a Mac of which nothing else is said: an estimate; those of the M1 read some
/// 3 · 10⁹, later and larger ones up to twice as many.
pub const USUAL_DISK_BYTES: f64 = 3e9;

impl MachineKind {
    /// The machine as a lump of heat. Apart from watts its figures are estimates.
    #[must_use]
    pub fn thermal(&self) -> MachineModel {
        let engine = self.cost.unit(ComputeUnit::NeuralEngine).map_or(0.0, |unit| unit.watts);
        let more = if self.engines > 1 { engine } else { 0.0 };
        let idle = self.cost.idle_watts;
        let full = self.cost.full_watts() + more;
        let bears = BEARS[usize::from(self.cooling == MachineCooling::Fanless)];
        let [ambient, limit] = CELSIUS;
        MachineModel {
            idle_watts: idle,
            full_watts: full,
            ambient,
            kelvin_per_watt: (limit - ambient) / (idle + bears * (full - idle)),
            joules_per_kelvin: JOULES_PER_KELVIN * full,
            limit,
            lowest_clocks: LOWEST_CLOCKS,
        }
    }
}

/// Time that it takes to load a model, besides reading its weights from the disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelLoading {
    /// Seconds of any load.
    pub start_seconds: f64,
    /// Seconds for each byte of weights until a Neural Engine can run a model that its machine never had before.
    pub compile_seconds_per_byte: f64,
}

impl Default for ModelLoading {
    /// Estimates. Compiling parts of language models for Neural Engines is reported to take tens of seconds to
    /// minutes for parts of 10⁹ bytes and more.
    fn default() -> Self {
        Self { start_seconds: 0.2, compile_seconds_per_byte: 20e-9 }
    }
}

/// Network between clients and machines. Each machine has a link of its own, which carries one request after
/// the other, and one answer after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetNetwork {
    /// Seconds from a client to a machine, and back again.
    pub seconds: f64,
    /// Bytes a second of a machine's link, each way.
    pub bytes: f64,
}

/// All machines, and what their servers were told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// The machines.
    pub kinds: Vec<MachineKind>,
    /// Power and heat, as every server holds them.
    pub power: PowerSettings,
    /// Cost of loading models; if absent, all are loaded from the start.
    pub loading: Option<ModelLoading>,
    /// The way to clients; where this is absent, it takes no time.
    pub network: Option<FleetNetwork>,
}

/// Work of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelWork {
    /// A graph, whose requests may run in one batch.
    Graph(GraphWork),
    /// A decoder, which writes many texts at once.
    Decoder(DecoderWork),
}

/// A model that requests ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedModel {
    /// Its name.
    pub name: String,
    /// Work of the model.
    pub work: ModelWork,
    /// Rows of a batch, or texts at once, on a unit at most.
    pub max_batch: u32,
    /// The units that can run it.
    pub units: Vec<ComputeUnit>,
    /// Bytes of a request and of its answer, for each row or token.
    pub wire_bytes: [f64; 2],
}

impl SimulatedModel {
    /// Bytes of its weights.
    #[must_use]
    pub fn weight_bytes(&self) -> f64 {
        match &self.work {
            ModelWork::Graph(work) => work.weight_bytes(),
            ModelWork::Decoder(work) => work.weight_bytes,
        }
    }
}

/// Kind and size of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Results for so many rows.
    Infer {
        /// Rows.
        batch: u32,
    },
    /// A text.
    Generate {
        /// Tokens of the prompt, at least one.
        prompt: u32,
        /// Tokens that are written, at least one.
        output: u32,
    },
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedRequest {
    /// Time of arrival, in nanoseconds from the start.
    pub at: u64,
    /// The model, by its place in the list.
    pub model: u32,
    /// Kind and size of the request.
    pub kind: RequestKind,
}

/// Reason why nothing can be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationFault(pub(super) String);

impl fmt::Display for SimulationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SimulationFault {}

/// The most machines of a fleet.
pub(super) const MAX_MACHINES: usize = 10_000;

/// Refuses what has no answer.
pub(super) fn check(
    fleet: &Fleet,
    models: &[SimulatedModel],
    requests: &[SimulatedRequest],
) -> Result<(), SimulationFault> {
    let fault = |text: String| Err(SimulationFault(text));
    let machines = fleet.kinds.iter().fold(0_usize, |sum, kind| sum.saturating_add(kind.count));
    if machines == 0 || machines > MAX_MACHINES {
        return fault(format!("{machines} machines, expected 1 to {MAX_MACHINES}"));
    }
    if let Some(kind) = fleet.kinds.iter().find(|kind| kind.cost.units.is_empty()) {
        return fault(format!("{}: too little is known of its units", kind.name));
    }
    let sane = |number: f64| number.is_finite() && number >= 0.0;
    let positive = |number: f64| number > 0.0;
    if let Some(loading) = fleet.loading {
        let ModelLoading { start_seconds: start, compile_seconds_per_byte: compile } = loading;
        if !sane(start) || !sane(compile) {
            return fault(format!("loading: {start} s and {compile} s a byte, expected 0 or more"));
        }
        if let Some(kind) = fleet.kinds.iter().find(|kind| !positive(kind.disk_bytes)) {
            return fault(format!("{}: {} bytes/s of its disk", kind.name, kind.disk_bytes));
        }
    }
    if let Some(FleetNetwork { seconds, bytes }) = fleet.network
        && !(sane(seconds) && positive(bytes))
    {
        return fault(format!("network: {seconds} s and {bytes} bytes/s, expected more than 0"));
    }
    if requests.len() > u32::MAX as usize {
        return fault(format!("{} requests, expected fewer than 2³²", requests.len()));
    }
    for (at, request) in requests.iter().enumerate() {
        let Some(model) = models.get(request.model as usize) else {
            return fault(format!("request {at}: there is no model {}", request.model));
        };
        let problem = match (request.kind, &model.work) {
            (RequestKind::Infer { batch: 1.. }, ModelWork::Graph(_))
            | (RequestKind::Generate { prompt: 1.., output: 1.. }, ModelWork::Decoder(_)) => {
                continue;
            }
            (RequestKind::Infer { .. }, ModelWork::Decoder(_)) => "a decoder generates",
            (RequestKind::Generate { .. }, ModelWork::Graph(_)) => "a graph infers",
            _ => "nothing is asked for",
        };
        return fault(format!("request {at} for {}: {problem}", model.name));
    }
    Ok(())
}
