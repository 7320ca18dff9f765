//! Sessions of several models on one unit, which has one run under way at a time: who waits, and for how long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use galatea_graph::{Attributes, Dim, Fact, Graph, ONNX_DOMAIN};
use galatea_runtime::device_selector::{ComputeDevice, ComputeDevices, DeviceLanes, ExecutionGoal};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, NodeClaim, OptimiseLevel,
    PartitionRun, PlacementOptions, ProviderClaims, ProviderTraits, Run, RunFence, RuntimeError,
    Session, SessionOptions, TurnSource,
};
use galatea_tensor::{DataType, Tensor};

const INPUT: f32 = 1.5;

/// Record of the runs on a device with so many lanes.
#[derive(Debug, Default)]
struct Seen {
    lanes: usize,
    now: AtomicUsize,
    most: AtomicUsize,
    begun: AtomicUsize,
    panics: AtomicBool,
}

/// A model's door to the unit, on which a run takes so long.
#[derive(Clone, Debug)]
struct Busy {
    seen: Arc<Seen>,
    takes: Duration,
}

impl ExecutionProvider for Busy {
    fn traits(&self) -> ProviderTraits {
        let lanes = DeviceLanes { runs: self.seen.lanes, short: Duration::ZERO };
        ProviderTraits { lanes, ..ProviderTraits::named("unit") }
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let graph = request.graph;
        let claim = |node| NodeClaim { nodes: vec![node], cost_ns: 1e6, kernel: String::new() };
        let claims = (0..graph.nodes.len()).map(claim).collect();
        ProviderClaims { claims, launch_ns: 1e3, ..ProviderClaims::default() }
    }

    fn compile(&self, _request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(self.clone()))
    }
}

impl Executable for Busy {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let inputs = run.inputs;
        let seen = &self.seen;
        seen.begun.fetch_add(1, Ordering::SeqCst);
        seen.most.fetch_max(seen.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(self.takes);
        seen.now.fetch_sub(1, Ordering::SeqCst);
        assert!(!seen.panics.load(Ordering::SeqCst), "the test asks for a panic");
        RunFence::ready(Ok(inputs))
    }
}

struct Bed {
    seen: Arc<Seen>,
    units: Arc<ComputeDevices>,
}

impl Bed {
    fn new(lanes: usize) -> Self {
        Self { seen: Arc::new(Seen { lanes, ..Seen::default() }), units: Arc::default() }
    }

    fn model(&self, takes: Duration, divided: bool) -> Session {
        let mut graph = Graph::new("nothing");
        graph.opsets.insert(ONNX_DOMAIN.to_owned(), 17);
        let [x, y] = ["x", "y"].map(|name| graph.value_named(name));
        graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, vec![Dim::symbol("n")]));
        let none = Attributes::default();
        graph.add_node(ONNX_DOMAIN, "Softmax", "", &none, vec![Some(x)], vec![Some(y)]).unwrap();
        (graph.inputs, graph.outputs) = (vec![x], vec![y]);
        let routing =
            PlacementOptions { units: Arc::clone(&self.units), goal: ExecutionGoal::Latency };
        let options = SessionOptions {
            routing: divided.then_some(routing),
            turns: TurnSource(Some(Arc::clone(&self.units))),
            optimise: OptimiseLevel::O0,
            ..SessionOptions::default()
        };
        let provider: Arc<dyn ExecutionProvider> =
            Arc::new(Busy { seen: Arc::clone(&self.seen), takes });
        Session::new(graph, &[provider], &options).unwrap()
    }

    fn unit(&self) -> Arc<ComputeDevice> {
        self.units.named("unit")
    }

    /// Returns whether all owed work is done.
    fn rests(&self) -> bool {
        let report = self.unit().report();
        report.owed == Duration::ZERO && report.running == 0 && report.waiting == 0
    }
}

fn run(session: &Session, goal: Option<Duration>) {
    let deadline = goal.map(|goal| Instant::now() + goal);
    let input = [("x", Tensor::from_vec(&[1], vec![INPUT]).unwrap())];
    let outputs = session.run_tensors(Run { deadline, ..Run::named(&input) }).unwrap();
    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), [INPUT]);
}

/// Returns the largest number of runs of another model that begin between a model's request and its own run.
/// The other model keeps the device busy.
fn passed(goal: Option<Duration>, divided: bool) -> usize {
    const CALLERS: usize = 6;
    let bed = Bed::new(1);
    let (heavy, light) =
        (bed.model(Duration::from_millis(4), divided), bed.model(Duration::ZERO, divided));
    let over = AtomicBool::new(false);
    let mut most = 0;
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    run(&heavy, None);
                }
            });
        }
        for _ in 0..5 {
            while bed.unit().report().waiting < 5 {
                std::thread::yield_now();
            }
            let before = bed.seen.begun.load(Ordering::SeqCst);
            run(&light, goal);
            // Less its own, and what begins while this thread looks is counted with it.
            most = most.max(bed.seen.begun.load(Ordering::SeqCst) - before - 1);
        }
        over.store(true, Ordering::SeqCst);
    });
    assert_eq!(bed.seen.most.load(Ordering::SeqCst), 1);
    assert!(bed.rests());
    most
}

#[test]
fn a_model_with_a_goal_passes_the_queue_of_one_without() {
    for divided in [false, true] {
        let without = passed(None, divided);
        assert!(without >= 4, "{without} runs of the other model came first");
        let with = passed(Some(Duration::from_millis(12)), divided);
        assert!(with <= 2, "{with} runs of the other model came first");
    }
}

#[test]
fn a_unit_has_as_many_runs_under_way_as_it_is_good_for() {
    for (lanes, divided) in [(1, true), (2, false), (3, true)] {
        let bed = Bed::new(lanes);
        let models = [1, 2].map(|ms| bed.model(Duration::from_millis(ms), divided));
        std::thread::scope(|scope| {
            for at in 0..8_u64 {
                let goal = (at % 3 > 0).then(|| Duration::from_millis(at));
                let model = &models[usize::from(at % 2 == 0)];
                scope.spawn(move || (0..10).for_each(|_| run(model, goal)));
            }
        });
        assert_eq!(bed.seen.most.load(Ordering::SeqCst), lanes);
        assert_eq!(bed.seen.begun.load(Ordering::SeqCst), 80, "each ran once");
        assert!(bed.rests());
    }
}

#[test]
fn a_model_without_a_goal_is_not_starved_by_one_with() {
    let bed = Bed::new(1);
    let (eager, patient) =
        (bed.model(Duration::from_millis(2), false), bed.model(Duration::ZERO, false));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    run(&eager, Some(Duration::from_millis(5)));
                }
            });
        }
        while bed.unit().report().waiting < 3 {
            std::thread::yield_now();
        }
        run(&patient, None);
        over.store(true, Ordering::SeqCst);
    });
    assert!(bed.rests());
}

#[test]
fn a_run_that_panics_gives_its_turn_back() {
    let bed = Bed::new(1);
    let model = bed.model(Duration::ZERO, false);
    bed.seen.panics.store(true, Ordering::SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| run(&model, None))).is_err());
    bed.seen.panics.store(false, Ordering::SeqCst);
    run(&model, None);
    assert!(bed.rests());
}
