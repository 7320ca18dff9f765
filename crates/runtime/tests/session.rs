//! Sessions over small graphs, with providers made for the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use galatea_graph::{Dim, Fact, Graph, Node, OpError, Operator, OperatorInputs, ValueId, evaluate};
use galatea_runtime::{
    ClaimRefusal, ClaimRequest, CompileRequest, Executable, ExecutionProvider, MemoryReport,
    NodeClaim, PartitionReport, PartitionRun, ProviderClaims, ProviderTraits, Run, RunFence,
    RuntimeError, Session, SessionOptions, compile_fallback,
};
use galatea_tensor::{DataType, Tensor};

/// `a · x + y` where y may be absent.
#[derive(Debug)]
struct Scale(f32);

impl Operator for Scale {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let fact = inputs.required(0)?;
        Ok(vec![Fact { value: None, ..fact.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let mut out = x.to_vec::<f32>()?;
        out.iter_mut().for_each(|v| *v *= self.0);
        if let Some(y) = inputs.optional(1) {
            out.iter_mut().zip(y.to_vec::<f32>()?).for_each(|(v, y)| *v += y);
        }
        Ok(vec![Tensor::from_vec(x.shape(), out)?])
    }
}

fn scale(by: f32, inputs: &[ValueId], output: ValueId) -> Node {
    Node {
        name: format!("scale{by}"),
        domain: "test".into(),
        op_type: "Scale".into(),
        inputs: inputs.iter().copied().map(Some).collect(),
        outputs: vec![Some(output)],
        operator: Arc::new(Scale(by)),
        parsed: None,
    }
}

/// x, y → a = 2x, b = 3a + y, c = 5b; outputs c, a, and y as it came.
fn graph() -> Graph {
    let mut graph = Graph::new("test");
    let ids = ["x", "y", "a", "b", "c"].map(|name| graph.value_named(name));
    let [x, y, a, b, c] = ids;
    for id in [x, y] {
        graph.value_mut(id).declared =
            Some(Fact::new(DataType::Fp32, vec![Dim::symbol("n"), Dim::Known(2)]));
    }
    graph.inputs = vec![x, y];
    graph.outputs = vec![c, a, y];
    // Not in topological order: the session sorts.
    graph.nodes = vec![scale(5.0, &[b], c), scale(2.0, &[x], a), scale(3.0, &[a, y], b)];
    graph
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Compile,
    Run,
}

/// Claims the nodes whose name is in the list.
#[derive(Debug)]
struct TestProvider {
    name: &'static str,
    nodes: &'static [&'static str],
    cost_ns: f64,
    fault: Fault,
    compiled: AtomicUsize,
}

impl TestProvider {
    fn new(
        name: &'static str,
        nodes: &'static [&'static str],
        cost_ns: f64,
        fault: Fault,
    ) -> Arc<Self> {
        Arc::new(Self { name, nodes, cost_ns, fault, compiled: AtomicUsize::new(0) })
    }
}

struct TestExecutable {
    graph: Arc<Graph>,
    fault: Fault,
}

impl ExecutionProvider for TestProvider {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named(self.name)
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let graph = request.graph;
        let mut claims = ProviderClaims::default();
        for (index, node) in graph.nodes.iter().enumerate() {
            if self.nodes.contains(&node.name.as_str()) {
                let nodes = vec![index];
                claims.claims.push(NodeClaim { nodes, cost_ns: self.cost_ns, kernel: "k".into() });
            } else {
                claims.refusals.push(ClaimRefusal { node: index, reason: "not mine".into() });
            }
        }
        claims
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::Compile {
            return Err(RuntimeError::provider(self.name, "cannot compile"));
        }
        Ok(Box::new(TestExecutable { graph: request.graph, fault: self.fault }))
    }
}

impl Executable for TestExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let inputs = run.inputs;
        if self.fault == Fault::Run {
            return RunFence::failed(RuntimeError::provider("test", "cannot run"));
        }
        let graph = Arc::clone(&self.graph);
        RunFence::pending(move || Ok(evaluate::run_values(&graph, inputs)?))
    }

    fn report(&self) -> PartitionReport {
        let memory = MemoryReport { initializer_bytes: 1, mapped_bytes: 0, arena_bytes: 2 };
        PartitionReport { memory, ..PartitionReport::default() }
    }
}

const ALL: &[&str] = &["scale2", "scale3", "scale5"];

fn session(providers: &[Arc<dyn ExecutionProvider>]) -> Session {
    Session::new(graph(), providers, &SessionOptions::default()).unwrap()
}

fn run(session: &Session, n: usize) -> Result<Vec<Tensor>, RuntimeError> {
    let ones = Tensor::from_vec(&[n, 2], vec![1.0_f32; 2 * n])?;
    let sevens = Tensor::from_vec(&[n, 2], vec![7.0_f32; 2 * n])?;
    session.run_tensors(Run::named(&[("y", sevens), ("x", ones)]))
}

fn check(session: &Session) {
    for n in [1, 3] {
        let outputs = run(session, n).unwrap();
        let all = |value: f32| Tensor::from_vec(&[n, 2], vec![value; 2 * n]).unwrap();
        assert_eq!(outputs, [all(65.0), all(2.0), all(7.0)]);
    }
}

#[test]
fn a_graph_in_any_order_runs_on_one_provider() {
    let session = session(&[TestProvider::new("one", ALL, 1.0, Fault::None)]);
    check(&session);
    assert_eq!(session.partition_providers(), ["one"]);
    assert_eq!(session.inputs()[1].name, "y");
    assert_eq!(session.outputs()[0].dims, [Dim::symbol("n"), Dim::Known(2)]);
    assert_eq!(
        session.report().memory,
        MemoryReport { initializer_bytes: 1, mapped_bytes: 0, arena_bytes: 2 }
    );
}

#[test]
fn cheaper_claims_split_the_graph_and_values_cross() {
    let host = TestProvider::new("host", ALL, 10.0, Fault::None);
    let fast = TestProvider::new("fast", &["scale3"], 1.0, Fault::None);
    let session = session(&[host, fast]);
    check(&session);
    assert_eq!(session.partition_providers(), ["host", "fast", "host"]);
    let text = session.explain().to_string();
    assert!(text.contains("fast: not mine") && text.contains("scale3"), "{text}");
}

#[test]
fn a_failed_compile_or_first_run_gives_the_nodes_to_the_next_claim() {
    for fault in [Fault::Compile, Fault::Run] {
        let host = TestProvider::new("host", ALL, 10.0, Fault::None);
        let broken = TestProvider::new("broken", &["scale3", "scale5"], 1.0, fault);
        let session = session(&[host, Arc::clone(&broken) as _]);
        check(&session);
        check(&session);
        assert_eq!(session.partition_providers(), ["host"]);
        assert_eq!(broken.compiled.load(Ordering::Relaxed), 1);
        assert_eq!(session.explain().notes.len(), 1);
    }
}

#[test]
fn without_another_claim_the_failure_is_the_callers_answer() {
    let broken: Arc<dyn ExecutionProvider> = TestProvider::new("broken", ALL, 1.0, Fault::Compile);
    let error = Session::new(graph(), &[broken], &SessionOptions::default()).unwrap_err();
    assert!(error.to_string().contains("cannot compile"), "{error}");
    let half: Arc<dyn ExecutionProvider> = TestProvider::new("half", &["scale2"], 1.0, Fault::None);
    let error = Session::new(graph(), &[half], &SessionOptions::default()).unwrap_err();
    assert!(error.to_string().contains("half: not mine"), "{error}");
    let late = session(&[TestProvider::new("late", ALL, 1.0, Fault::Run)]);
    assert!(run(&late, 1).unwrap_err().to_string().contains("cannot run"));
}

/// Every set of outputs of the test's graph that a run may be asked for.
fn sets() -> impl Iterator<Item = [bool; 3]> {
    (0..8).map(|set| [0, 1, 2].map(|at| set >> at & 1 == 1))
}

#[test]
fn a_run_gives_the_outputs_that_are_wanted() {
    let only: &'static [&'static str] = &["scale3"];
    // Where a first run fails, the next provider is asked for the same.
    for (nodes, fault) in [(ALL, Fault::None), (only, Fault::None), (only, Fault::Run)] {
        let host = TestProvider::new("host", ALL, 10.0, Fault::None);
        let session = session(&[host, TestProvider::new("fast", nodes, 1.0, fault)]);
        for wanted in sets() {
            let all = |value: f32| Tensor::from_vec(&[2, 2], vec![value; 4]).unwrap();
            let found =
                session.run_tensors(Run::owned(vec![all(1.0), all(7.0)]).only(&wanted)).unwrap();
            let expected = [all(65.0), all(2.0), all(7.0)].into_iter().zip(wanted);
            let expected: Vec<Tensor> =
                expected.filter_map(|(tensor, wanted)| wanted.then_some(tensor)).collect();
            assert_eq!(found, expected, "{wanted:?}");
            let named = [("y", all(7.0)), ("x", all(1.0))];
            let profiled = session.run_tensors(Run::named(&named).only(&wanted).profiled());
            assert_eq!(profiled.unwrap(), expected);
        }
        let error = session.run_tensors(Run::owned(Vec::new()).only(&[true])).unwrap_err();
        assert!(error.is_input() && error.to_string().contains("the model has 3"), "{error}");
        assert!(!session.reads_back(0) && !session.reads_back(7));
    }
}

#[test]
fn a_partition_that_nobody_needs_does_not_run() {
    let host = TestProvider::new("host", ALL, 10.0, Fault::None);
    let broken = TestProvider::new("broken", &["scale3"], 1.0, Fault::Run);
    let session = session(&[host, broken]);
    let all = |value: f32| Tensor::from_vec(&[1, 2], vec![value; 2]).unwrap();
    let found = session
        .run_tensors(Run::owned(vec![all(1.0), all(7.0)]).only(&[false, true, true]))
        .unwrap();
    assert_eq!(found, [all(2.0), all(7.0)]);
    assert_eq!(session.partition_providers(), ["host", "broken", "host"]);
}

#[test]
fn options_name_the_providers_to_use() {
    let both: [Arc<dyn ExecutionProvider>; 2] = [
        TestProvider::new("a", ALL, 1.0, Fault::None),
        TestProvider::new("b", ALL, 2.0, Fault::None),
    ];
    let with = |name: &str| {
        let options = SessionOptions { providers: vec![name.into()], ..SessionOptions::default() };
        Session::new(graph(), &both, &options)
    };
    assert_eq!(with("b").unwrap().partition_providers(), ["b"]);
    let error = with("c").unwrap_err().to_string();
    assert!(error.contains("'c'") && error.contains("there are a, b"), "{error}");
}

#[test]
fn wrong_inputs_are_told_apart_from_failures() {
    let session = session(&[TestProvider::new("one", ALL, 1.0, Fault::None)]);
    let error = session.run_tensors(Run::named(&[("x", Tensor::scalar(1.0_f32))])).unwrap_err();
    assert!(error.is_input(), "{error}");
    let x = Tensor::zeros(DataType::Fp32, &[2, 2]).unwrap();
    let y = Tensor::zeros(DataType::Fp32, &[3, 2]).unwrap();
    let error = session.run_tensors(Run::named(&[("x", x), ("y", y)])).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("'n'"), "{error}");
}

#[test]
fn threads_share_a_session() {
    let host = TestProvider::new("host", ALL, 10.0, Fault::None);
    let fast = TestProvider::new("fast", &["scale3"], 1.0, Fault::None);
    let session = session(&[host, fast]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| check(&session)));
        }
    });
}

/// Its output is as long as a value says.
#[derive(Debug)]
struct Stretch;

impl Operator for Stretch {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let fact = inputs.required(0)?;
        Ok(vec![Fact::new(fact.dtype, vec![Dim::Unknown])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![inputs.required(0)?.clone()])
    }
}

#[test]
fn the_time_follows_shapes_unless_a_length_comes_from_a_value() {
    let all: &[&str] = &["scale1", "scale2", "scale3", "scale5"];
    let provider: Arc<dyn ExecutionProvider> = TestProvider::new("all", all, 1.0, Fault::None);
    assert!(session(&[Arc::clone(&provider)]).time_follows_shapes());
    let mut stretched = graph();
    let s = stretched.value_named("s");
    let y = stretched.outputs[2];
    stretched.nodes.push(Node { operator: Arc::new(Stretch), ..scale(1.0, &[y], s) });
    stretched.outputs.push(s);
    let session = Session::new(stretched, &[provider], &SessionOptions::default()).unwrap();
    assert!(!session.time_follows_shapes());
}

/// Lets the others run what it claims.
#[derive(Debug)]
struct Late(Arc<TestProvider>);

impl ExecutionProvider for Late {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named("late")
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        self.0.claim(request)
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        compile_fallback(&request.others, &request.graph, request.options)
    }
}

#[test]
fn the_others_of_a_session_run_a_partition_in_a_providers_place() {
    let host = || TestProvider::new("host", ALL, 10.0, Fault::None);
    let late = || Arc::new(Late(TestProvider::new("late", ALL, 1.0, Fault::None)));
    let (before, fast) = (host(), TestProvider::new("fast", &["scale3"], 1.0, Fault::None));
    let all: [Arc<dyn ExecutionProvider>; 3] = [Arc::clone(&before) as _, late(), fast.clone()];
    // Whoever chooses the providers by name chooses the others too.
    let names = ["fast", "late", "host"].map(str::to_owned).to_vec();
    for names in [Vec::new(), names] {
        let options = SessionOptions { providers: names, ..SessionOptions::default() };
        let session = Session::new(graph(), &all, &options).unwrap();
        check(&session);
        assert!(session.partition_providers().contains(&"late"));
        for wanted in sets() {
            let all = |value: f32| Tensor::from_vec(&[1, 2], vec![value; 2]).unwrap();
            let found =
                session.run_tensors(Run::owned(vec![all(1.0), all(7.0)]).only(&wanted)).unwrap();
            let expected = [all(65.0), all(2.0), all(7.0)].into_iter().zip(wanted);
            let expected: Vec<Tensor> =
                expected.filter_map(|(tensor, wanted)| wanted.then_some(tensor)).collect();
            assert_eq!(found, expected, "{wanted:?}");
        }
        let named = [("x", Tensor::zeros(DataType::Fp32, &[1, 2]).unwrap())];
        assert!(session.run_tensors(Run::named(&named)).unwrap_err().is_input());
    }
    assert!(before.compiled.load(Ordering::Relaxed) > 0);
    // Without others nobody runs it.
    let alone = Session::new(graph(), &[late() as _], &SessionOptions::default());
    assert!(alone.is_err());
    // One that cannot compile leaves the nodes to those that are left.
    let broken = TestProvider::new("broken", ALL, 5.0, Fault::Compile);
    let session = session(&[late(), broken, host()]);
    check(&session);
    assert_eq!(session.partition_providers(), ["late"]);
}
