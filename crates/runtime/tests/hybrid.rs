//! Sessions that divide a big product between two units.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use galatea_graph::{Attributes, Datum, Dim, Fact, Graph, Node, ONNX_DOMAIN, channels, evaluate};
use galatea_runtime::device_selector::{ComputeDevices, ExecutionGoal};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, NodeClaim, OptimiseLevel,
    PartitionRun, PlacementOptions, PlacementReport, ProviderClaims, ProviderTraits, Run, RunFence,
    RuntimeError, Session, SessionOptions,
};
use galatea_tensor::{DataType, Tensor};

const COLUMNS: usize = 64;

/// The largest of 0 and a product with a constant matrix, of `x` `[1, 8]`.
fn graph() -> Graph {
    let mut graph = Graph::new("product");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 17);
    let x = graph.value_named("x");
    graph.value_mut(x).declared =
        Some(Fact::new(DataType::Fp32, vec![Dim::Known(1), Dim::Known(8)]));
    let weights: Vec<f32> =
        (0..8 * COLUMNS).map(|at| f32::from(u8::try_from(at * 7 % 23).unwrap()) - 11.0).collect();
    let weights = graph.add_constant("w", Tensor::from_vec(&[8, COLUMNS], weights).unwrap());
    let [product, y] = ["product", "y"].map(|name| graph.value_named(name));
    let none = Attributes::default();
    let both = vec![Some(x), Some(weights)];
    graph.add_node(ONNX_DOMAIN, "MatMul", "", &none, both, vec![Some(product)]).unwrap();
    graph.add_node(ONNX_DOMAIN, "Relu", "", &none, vec![Some(product)], vec![Some(y)]).unwrap();
    (graph.inputs, graph.outputs) = (vec![x], vec![y]);
    graph
}

/// Computes by definition, and takes so many milliseconds for a product of all columns.
#[derive(Clone, Debug)]
struct Steady {
    name: &'static str,
    ms: u64,
    launch_ns: f64,
    products: Arc<AtomicUsize>,
}

impl Steady {
    fn new(name: &'static str, ms: u64, launch_ns: f64) -> Self {
        Self { name, ms, launch_ns, products: Arc::default() }
    }

    fn compute(&self, graph: &Graph, inputs: Vec<Datum>) -> Vec<Datum> {
        for node in graph.nodes.iter().filter(|node| node.op_type == "MatMul") {
            self.products.fetch_add(1, Ordering::SeqCst);
            let weights = graph.constant(node.input(1).unwrap()).unwrap();
            let columns = u64::try_from(weights.shape()[1]).unwrap();
            let us = self.ms * 1000 * columns / u64::try_from(COLUMNS).unwrap();
            std::thread::sleep(Duration::from_micros(us));
        }
        evaluate::run_values(graph, inputs).unwrap()
    }
}

impl ExecutionProvider for Steady {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named(self.name)
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let graph = request.graph;
        let cost = |node: &Node| if node.op_type == "MatMul" { self.ms * 1_000_000 } else { 1000 };
        let claim = |(at, node): (usize, &Node)| NodeClaim {
            nodes: vec![at],
            cost_ns: f64::from(u32::try_from(cost(node)).unwrap()),
            kernel: String::new(),
        };
        let claims = graph.nodes.iter().enumerate().map(claim).collect();
        ProviderClaims { claims, launch_ns: self.launch_ns, ..ProviderClaims::default() }
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(SteadyExecutable { unit: self.clone(), graph: request.graph }))
    }
}

struct SteadyExecutable {
    unit: Steady,
    graph: Arc<Graph>,
}

impl Executable for SteadyExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let inputs = run.inputs;
        RunFence::ready(Ok(self.unit.compute(&self.graph, inputs)))
    }
}

fn input() -> [(&'static str, Tensor); 1] {
    let values = (0..8_u8).map(|at| f32::from(at) - 3.5).collect();
    [("x", Tensor::from_vec(&[1, 8], values).unwrap())]
}

fn settled(units: &[&Steady]) -> (Session, Vec<PlacementReport>) {
    let providers: Vec<Arc<dyn ExecutionProvider>> =
        units.iter().map(|unit| Arc::new((*unit).clone()) as Arc<dyn ExecutionProvider>).collect();
    let routing =
        PlacementOptions { units: Arc::new(ComputeDevices::new()), goal: ExecutionGoal::Latency };
    let optimise = OptimiseLevel::O0;
    let options = SessionOptions { routing: Some(routing), optimise, ..SessionOptions::default() };
    let session = Session::new(graph(), &providers, &options).unwrap();
    session.try_placements(&input(), Duration::from_secs(60)).unwrap();
    let ways = session.placements(&input()).unwrap();
    (session, ways)
}

#[test]
fn a_big_product_is_divided_and_gives_the_same() {
    assert_eq!(channels::divisible(&graph(), 0), Some(COLUMNS));
    let (one, two) = (Steady::new("one", 60, 1000.0), Steady::new("two", 120, 1000.0));
    let (session, ways) = settled(&[&one, &two]);
    assert_eq!(ways[0].providers, ["one", "two", "one"], "{ways:?}");
    assert!(ways[0].measured && ways[0].time < ways[1].time, "{ways:?}");
    let before = [&one, &two].map(|unit| unit.products.load(Ordering::SeqCst));
    let found = session.run_tensors(Run::named(&input())).unwrap();
    let after = [&one, &two].map(|unit| unit.products.load(Ordering::SeqCst));
    assert_eq!(after, before.map(|count| count + 1), "each has computed its part");
    let [(_, x)] = input();
    let whole = Steady::new("whole", 0, 0.0).compute(&graph(), vec![Datum::Tensor(x)]);
    let expected = whole[0].as_tensor().unwrap().to_vec::<f32>().unwrap();
    assert_eq!(found[0].to_vec::<f32>().unwrap(), expected);
}

#[test]
fn a_product_that_is_not_worth_two_starts_stays_whole() {
    let (one, two) = (Steady::new("one", 2, 1e6), Steady::new("two", 2, 1e6));
    let (_, ways) = settled(&[&one, &two]);
    assert!(ways.iter().all(|way| way.providers.len() == 1), "{ways:?}");
}
