//! Sessions that learn from profiles which operators a unit is good at.

use std::sync::Arc;
use std::time::Duration;

use galatea_graph::{Dim, Fact, Graph, Node, OpError, Operator, OperatorInputs};
use galatea_runtime::device_selector::{ComputeDevices, ExecutionGoal};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, NodeClaim, PartitionResult,
    PartitionRun, PlacementOptions, ProfileRow, ProviderClaims, ProviderTraits, Run, RunFence,
    RuntimeError, Session, SessionOptions,
};
use galatea_tensor::{DataType, Tensor};

/// Gives what it is given.
#[derive(Debug)]
struct Copy;

impl Operator for Copy {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![Fact { value: None, ..inputs.required(0)?.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![inputs.required(0)?.clone()])
    }
}

/// Copies in a row, under the names of these operators.
fn graph(operators: &[&str]) -> Graph {
    let mut graph = Graph::new("copies");
    let mut last = graph.value_named("x");
    graph.value_mut(last).declared = Some(Fact::new(DataType::Fp32, vec![Dim::symbol("n")]));
    graph.inputs = vec![last];
    for (at, op_type) in operators.iter().enumerate() {
        let next = graph.value_named(&format!("y{at}"));
        graph.nodes.push(Node {
            name: String::new(),
            domain: "test".into(),
            op_type: (*op_type).into(),
            inputs: vec![Some(last)],
            outputs: vec![Some(next)],
            operator: Arc::new(Copy),
            parsed: None,
        });
        last = next;
    }
    graph.outputs = vec![last];
    graph
}

/// Is believed to take 25 ms for anything, and takes so many for each operator.
#[derive(Clone, Debug)]
struct Uneven {
    name: &'static str,
    ms: &'static [(&'static str, u64)],
}

impl ExecutionProvider for Uneven {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named(self.name)
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let graph = request.graph;
        let claim = |node| NodeClaim { nodes: vec![node], cost_ns: 25e6, kernel: "copy".into() };
        let claims = (0..graph.nodes.len()).map(claim).collect();
        ProviderClaims { claims, launch_ns: 1000.0, ..ProviderClaims::default() }
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(UnevenExecutable { unit: self.clone(), graph: request.graph }))
    }
}

struct UnevenExecutable {
    unit: Uneven,
    graph: Arc<Graph>,
}

impl UnevenExecutable {
    fn rows(&self) -> Vec<ProfileRow> {
        let row = |node: &Node| {
            let own = self.unit.ms.iter().find(|(op, _)| *op == node.op_type).unwrap();
            let time = Duration::from_millis(own.1);
            std::thread::sleep(time);
            ProfileRow {
                node: String::new(),
                op: node.operator_name(),
                kernel: "copy".into(),
                provider: self.unit.name,
                time,
                work: galatea_runtime::ArithmeticWork::default(),
                unit: galatea_runtime::ArithmeticUnit::Vector,
                estimated: false,
            }
        };
        self.graph.nodes.iter().map(row).collect()
    }
}

impl Executable for UnevenExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let rows = self.rows();
        RunFence::ready(Ok(PartitionResult { outputs: run.inputs, rows }))
    }
}

#[test]
fn parts_go_to_the_unit_that_is_good_at_their_operators() {
    let one = Uneven { name: "one", ms: &[("Near", 5), ("Far", 45)] };
    let two = Uneven { name: "two", ms: &[("Near", 45), ("Far", 5)] };
    let providers: Vec<Arc<dyn ExecutionProvider>> = vec![Arc::new(one), Arc::new(two)];
    let routing =
        PlacementOptions { units: Arc::new(ComputeDevices::new()), goal: ExecutionGoal::Latency };
    let options = SessionOptions { routing: Some(routing), ..SessionOptions::default() };
    let session = Session::new(graph(&["Near", "Far"]), &providers, &options).unwrap();
    let input = Tensor::from_vec(&[2], vec![1.5_f32, 2.5]).unwrap();
    session.try_placements(&[("x", input.clone())], Duration::from_secs(60)).unwrap();
    let ways = session.placements(&[("x", input.clone())]).unwrap();
    assert_eq!(ways[0].providers, ["one", "two"], "{ways:?}");
    assert!(ways[0].measured && ways[0].time < ways[1].time, "{ways:?}");
    let outputs = session.run_tensors(Run::named(&[("x", input.clone())])).unwrap();
    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), input.to_vec::<f32>().unwrap());
}
