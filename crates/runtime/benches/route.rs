//! Benchmarks the cost that choosing a placement and taking a turn on a device add to an uncontended run. The
//! runs compute nothing. Compared are a session with one device and undivided runs, the same with turns, and
//! sessions with two and with four devices, also with turns.
//!
//! `cargo bench --bench route`

#![allow(clippy::print_stdout, reason = "figures are what a bench is for")]
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_graph::{Attributes, Dim, Fact, Graph, ONNX_DOMAIN};
use galatea_runtime::device_selector::{ComputeDevices, ExecutionGoal};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, NodeClaim, OptimiseLevel,
    PartitionRun, PlacementOptions, ProviderClaims, ProviderTraits, Run, RunFence, RuntimeError,
    Session, SessionOptions, TurnSource,
};
use galatea_tensor::{DataType, Tensor};

/// Runs of a session in a round, and rounds.
const RUNS: u32 = 2_000;
const ROUNDS: usize = 51;

/// Gives what it is given.
#[derive(Debug)]
struct Idle(&'static str);

struct IdleExecutable;

impl ExecutionProvider for Idle {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named(self.0)
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let graph = request.graph;
        let claim = |node| NodeClaim { nodes: vec![node], cost_ns: 1e3, kernel: String::new() };
        let claims = (0..graph.nodes.len()).map(claim).collect();
        ProviderClaims { claims, launch_ns: 1e3, ..ProviderClaims::default() }
    }

    fn compile(&self, _request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(IdleExecutable))
    }
}

impl Executable for IdleExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let inputs = run.inputs;
        RunFence::ready(Ok(inputs))
    }
}

fn session(units: &[&'static str], divided: bool, turns: bool) -> Session {
    let mut graph = Graph::new("nothing");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 17);
    let [x, y] = ["x", "y"].map(|name| graph.value_named(name));
    let dims = ["batch", "n", "c"].map(Dim::symbol).to_vec();
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    let none = Attributes::default();
    graph.add_node(ONNX_DOMAIN, "Softmax", "", &none, vec![Some(x)], vec![Some(y)]).unwrap();
    (graph.inputs, graph.outputs) = (vec![x], vec![y]);
    let providers: Vec<Arc<dyn ExecutionProvider>> =
        units.iter().map(|&name| Arc::new(Idle(name)) as Arc<dyn ExecutionProvider>).collect();
    let routing =
        PlacementOptions { units: Arc::new(ComputeDevices::new()), goal: ExecutionGoal::Latency };
    let turns = TurnSource(turns.then(Arc::default));
    let options = SessionOptions {
        turns,
        routing: divided.then_some(routing),
        optimise: OptimiseLevel::O0,
        ..SessionOptions::default()
    };
    Session::new(graph, &providers, &options).unwrap()
}

fn main() {
    let units = ["a", "b", "c", "d"];
    let sessions = [
        ("one unit", session(&units[..1], false, false)),
        ("one unit with turns", session(&units[..1], false, true)),
        ("two units", session(&units[..2], true, true)),
        ("four units", session(&units, true, true)),
    ];
    let input = [("x", Tensor::from_vec(&[2, 24, 3], vec![1.0_f32; 144]).unwrap())];
    let mut times = vec![Vec::new(); sessions.len()];
    for (_, session) in &sessions {
        session.try_placements(&input, Duration::from_secs(5)).unwrap();
    }
    for _ in 0..ROUNDS {
        for ((_, session), times) in sessions.iter().zip(&mut times) {
            let begin = Instant::now();
            for _ in 0..RUNS {
                session.run_tensors(Run::named(&input)).unwrap();
            }
            times.push(begin.elapsed().as_secs_f64() / f64::from(RUNS));
        }
    }
    let medians: Vec<f64> = times
        .iter_mut()
        .map(|times| {
            times.sort_unstable_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect();
    for ((name, _), median) in sessions.iter().zip(&medians) {
        let more = (median - medians[0]) * 1e6;
        println!("{name}: {:.2} us a run, {more:.2} us of it for turn and choice", median * 1e6);
    }
}
