//! Language models of the tests on GPUs: checkpoints, models on one provider alone, and what they are asked.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use galatea_formats::safetensors;
use galatea_graph::Graph;
use galatea_llm::arch::{self, ModelShape, StepOptions};
use galatea_llm::config::JsonConfig;
use galatea_llm::engine::{
    GenerationEngine, GenerationEvent, GenerationRequest, RequestTicket, SessionModel,
};
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::weights::CheckpointWeights;
use galatea_runtime::{ExecutionProvider, Session, SessionOptions};
use serde_json::Value;

/// Positions of a block, so that a prompt lies in several, and the blocks.
const BLOCK: usize = 4;
const BLOCKS: usize = 96;

/// A checkpoint that was trained on books, and its recorded cases.
pub(crate) struct TrainedCheckpoint {
    pub(crate) folder: PathBuf,
    pub(crate) cases: Value,
}

/// Finds a trained checkpoint. None where the host has none, which is said.
pub(crate) fn trained(name: &str) -> Option<TrainedCheckpoint> {
    let Some(shared) = std::env::var_os("GALATEA_SHARED") else {
        eprintln!("skipped: GALATEA_SHARED does not say where the recorded checkpoints are");
        return None;
    };
    let folder = PathBuf::from(shared).join("models");
    let recorded = std::fs::read(folder.join("golden.json")).unwrap();
    let recorded: Value = serde_json::from_slice(&recorded).unwrap();
    Some(TrainedCheckpoint { folder: folder.join(name), cases: recorded[name]["cases"].clone() })
}

/// Tokens of a case.
pub(crate) fn ids(case: &Value, key: &str) -> Vec<u32> {
    let id = |id: &Value| u32::try_from(id.as_u64().unwrap()).unwrap();
    case[key].as_array().unwrap().iter().map(id).collect()
}

/// Reads the configuration of a checkpoint.
pub(crate) fn config(folder: &Path) -> JsonConfig {
    JsonConfig::read(&folder.join("config.json")).unwrap()
}

/// The graph of a step, and its shape.
pub(crate) struct StepGraph {
    graph: Graph,
    shape: ModelShape,
}

impl StepGraph {
    /// Makes the graph of these weights.
    pub(crate) fn new(config: &JsonConfig, weights: &dyn CheckpointWeights) -> Self {
        let row = arch::architecture(config).unwrap();
        let shape = row.shape(config).unwrap();
        let graph = row.graph_for(config, weights, &StepOptions::default()).unwrap();
        Self { graph, shape }
    }

    /// Makes the graph of a checkpoint.
    pub(crate) fn of(folder: &Path) -> Self {
        Self::new(&config(folder), &safetensors::open(folder).unwrap())
    }

    /// Adds outputs to choose from.
    pub(crate) fn with_choices(mut self) -> Self {
        arch::add_choices(&mut self.graph, self.shape.vocabulary).unwrap();
        self
    }

    /// Makes a model of it on a provider alone.
    pub(crate) fn on(self, provider: Arc<dyn ExecutionProvider>) -> SessionModel {
        let session = Session::new(self.graph, &[provider], &SessionOptions::default()).unwrap();
        SessionModel::new(session, self.shape, NonZeroUsize::new(BLOCK).unwrap(), BLOCKS).unwrap()
    }
}

/// Parameters of so many most probable tokens.
pub(crate) fn greedy(tokens: u32) -> SamplingParameters {
    SamplingParameters {
        temperature: 0.0,
        max_tokens: Some(tokens),
        ignore_eos: true,
        ..SamplingParameters::default()
    }
}

/// A request that is under way.
pub(crate) struct AskedRequest {
    /// Guard that keeps the request from being taken back.
    _ticket: RequestTicket,
    events: Receiver<GenerationEvent>,
}

/// Asks an engine to go on behind a prompt.
pub(crate) fn ask(
    engine: &GenerationEngine,
    prompt: &[u32],
    sampling: &SamplingParameters,
) -> AskedRequest {
    let request = GenerationRequest {
        id: String::new(),
        prompt: prompt.to_vec(),
        sampling: sampling.clone(),
        constraint: None,
        priority: 0,
        client: 0,
        salt: 0,
    };
    let (to, events) = mpsc::channel();
    let ticket = engine.submit(request, Box::new(move |event| drop(to.send(event)))).unwrap();
    AskedRequest { _ticket: ticket, events }
}

impl AskedRequest {
    /// Waits for the tokens of the answers, four at most.
    pub(crate) fn answers(self) -> Vec<Vec<u32>> {
        let mut answers = vec![Vec::new(); 4];
        loop {
            match self.events.recv().unwrap() {
                GenerationEvent::Started { .. } => {}
                GenerationEvent::Delta(delta) => answers[delta.index].extend(delta.tokens),
                GenerationEvent::Finished(_) => return answers,
                GenerationEvent::Failed(error) => panic!("{error}"),
            }
        }
    }

    /// Waits for the tokens of the only answer.
    pub(crate) fn answer(self) -> Vec<u32> {
        self.answers().swap_remove(0)
    }
}
