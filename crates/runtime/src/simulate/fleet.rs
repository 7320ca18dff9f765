//! What is simulated: machines, models and requests.

use std::fmt;

use crate::cost::{ComputeUnit, CostModel, DecoderWork, GraphWork};
use crate::power::{MachineModel, PowerSettings};

/// How a machine gets rid of heat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cooling {
    /// A fan, which keeps it from throttling at full work.
    #[default]
    Fan,
    /// None: half of what full work draws is what it bears for long.
    Fanless,
}

/// Degrees of the air around machines, and from which they lower their clocks.
const CELSIUS: [f64; 2] = [25.0, 95.0];
/// What machines bear for long, as shares of what full work draws: with a fan and without.
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
    /// How many there are.
    pub count: usize,
    /// Its chip.
    pub cost: CostModel,
    /// Bytes of its memory.
    pub memory_bytes: f64,
    /// How it gets rid of heat.
    pub cooling: Cooling,
}

impl MachineKind {
    /// The machine as a lump of heat. Apart from watts its figures are estimates.
    #[must_use]
    pub fn thermal(&self) -> MachineModel {
        let (idle, full) = (self.cost.idle_watts, self.cost.full_watts());
        let bears = BEARS[usize::from(self.cooling == Cooling::Fanless)];
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

/// All machines, and what their servers were told.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// The machines.
    pub kinds: Vec<MachineKind>,
    /// Power and heat, as every server holds them.
    pub power: PowerSettings,
}

/// What a model has to do.
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
    /// What it has to do.
    pub work: ModelWork,
    /// Rows of a batch, or texts at once, on a unit at most.
    pub max_batch: u32,
    /// The units that can run it.
    pub units: Vec<ComputeUnit>,
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

/// What a request asks for.
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
pub struct Request {
    /// When it comes, in nanoseconds from the start.
    pub at: u64,
    /// The model, by its place in the list.
    pub model: u32,
    /// What it asks for.
    pub kind: RequestKind,
}

/// Why nothing can be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationFault(pub(super) String);

impl fmt::Display for SimulationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SimulationFault {}

/// The most machines of a fleet.
pub(super) const MOST_MACHINES: usize = 10_000;

/// Refuses what has no answer.
pub(super) fn check(
    fleet: &Fleet,
    models: &[SimulatedModel],
    requests: &[Request],
) -> Result<(), SimulationFault> {
    let fault = |text: String| Err(SimulationFault(text));
    let machines = fleet.kinds.iter().fold(0_usize, |sum, kind| sum.saturating_add(kind.count));
    if machines == 0 || machines > MOST_MACHINES {
        return fault(format!("{machines} machines, expected 1 to {MOST_MACHINES}"));
    }
    if let Some(kind) = fleet.kinds.iter().find(|kind| kind.cost.units.is_empty()) {
        return fault(format!("{}: too little is known of its units", kind.name));
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
