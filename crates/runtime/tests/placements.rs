//! Sessions that divide their runs between units, with providers that take as long as a test says.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_graph::{Dim, Fact, Graph, Node, OpError, Operator, OperatorInputs};
use galatea_runtime::device_selector::{
    ComputeDevices, DeviceLanes, ExecutionGoal, PlacementHistory, PlacementHistorySource,
    PlacementRecordKey, PlacementTime,
};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, NodeClaim, PartitionRun,
    PlacementOptions, ProviderClaims, ProviderTraits, Run, RunFence, RuntimeError, Session,
    SessionOptions, TuningStep,
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

/// Three copies in a row of n elements, under the name of an operator.
fn graph((domain, op_type): (&str, &str)) -> Graph {
    let mut graph = Graph::new("copies");
    let ids = ["x", "a", "b", "y"].map(|name| graph.value_named(name));
    graph.value_mut(ids[0]).declared = Some(Fact::new(DataType::Fp32, vec![Dim::symbol("n")]));
    (graph.inputs, graph.outputs) = (vec![ids[0]], vec![ids[3]]);
    graph.nodes = ids
        .windows(2)
        .map(|pair| Node {
            name: String::new(),
            domain: domain.into(),
            op_type: op_type.into(),
            inputs: vec![Some(pair[0])],
            outputs: vec![Some(pair[1])],
            operator: Arc::new(Copy),
            parsed: None,
        })
        .collect();
    graph
}

/// Speed of a device: predicted and real nanoseconds of a node for each element.
#[derive(Debug)]
struct Speed {
    predicted: f64,
    real: AtomicU64,
    runs: AtomicUsize,
    lost: AtomicBool,
    /// Held while it computes: a unit does one thing at a time.
    alone: Mutex<()>,
    /// Units that compute now, and at most so far.
    working: Arc<[AtomicUsize; 2]>,
}

#[derive(Debug)]
struct Slow {
    name: &'static str,
    /// The nodes that it can run.
    nodes: &'static [usize],
    speed: Arc<Speed>,
}

impl ExecutionProvider for Slow {
    fn traits(&self) -> ProviderTraits {
        let lanes = DeviceLanes { runs: 1, short: Duration::ZERO };
        ProviderTraits { lanes, ..ProviderTraits::named(self.name) }
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let ClaimRequest { graph, typical: facts, .. } = *request;
        let fact = facts[graph.inputs[0].index()].as_ref();
        let count = fact.and_then(|fact| fact.shape.as_ref()?.first()?.known()).unwrap_or(1);
        let cost_ns = self.speed.predicted * f64::from(u32::try_from(count).unwrap());
        let claim = |&node: &usize| NodeClaim { nodes: vec![node], cost_ns, kernel: "copy".into() };
        let claims = self.nodes.iter().map(claim).collect();
        ProviderClaims { claims, launch_ns: 1000.0, ..ProviderClaims::default() }
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        let (speed, nodes) = (Arc::clone(&self.speed), request.graph.nodes.len());
        Ok(Box::new(SlowExecutable { name: self.name, speed, nodes }))
    }
}

struct SlowExecutable {
    name: &'static str,
    speed: Arc<Speed>,
    nodes: usize,
}

impl Executable for SlowExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let inputs = run.inputs;
        if self.speed.lost.load(Ordering::SeqCst) {
            return RunFence::failed(RuntimeError::provider(self.name, "the unit is gone"));
        }
        self.speed.runs.fetch_add(1, Ordering::SeqCst);
        let count = inputs[0].as_tensor().unwrap().elements() * self.nodes;
        let ns = self.speed.real.load(Ordering::SeqCst) * u64::try_from(count).unwrap();
        let alone = self.speed.alone.lock().unwrap();
        let [now, most] = &*self.speed.working;
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_nanos(ns));
        now.fetch_sub(1, Ordering::SeqCst);
        drop(alone);
        RunFence::ready(Ok(inputs))
    }
}

struct Bed {
    session: Session,
    speeds: Vec<Arc<Speed>>,
    units: Arc<ComputeDevices>,
}

/// A session on units of these names, nodes, and predicted and real nanoseconds for each element of a node.
fn bed(rows: &[(&'static str, &'static [usize], f64, u64)]) -> Bed {
    // Nothing is known of its rows.
    bed_of(("test", "Copy"), rows)
}

fn bed_of(name: (&str, &str), rows: &[(&'static str, &'static [usize], f64, u64)]) -> Bed {
    bed_with(name, rows, PlacementHistorySource::default())
}

/// The same with somebody who remembers what ways took.
fn bed_with(
    name: (&str, &str),
    rows: &[(&'static str, &'static [usize], f64, u64)],
    ways: PlacementHistorySource,
) -> Bed {
    let (mut providers, mut speeds) = (Vec::new(), Vec::new());
    let working = Arc::new([const { AtomicUsize::new(0) }; 2]);
    for &(name, nodes, predicted, real) in rows {
        let speed = Arc::new(Speed {
            predicted,
            real: AtomicU64::new(real),
            runs: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
            alone: Mutex::default(),
            working: Arc::clone(&working),
        });
        speeds.push(Arc::clone(&speed));
        let provider: Arc<dyn ExecutionProvider> = Arc::new(Slow { name, nodes, speed });
        providers.push(provider);
    }
    let units = Arc::new(ComputeDevices::new());
    let routing = PlacementOptions { units: Arc::clone(&units), goal: ExecutionGoal::Latency };
    let options = SessionOptions { routing: Some(routing), ways, ..SessionOptions::default() };
    Bed { session: Session::new(graph(name), &providers, &options).unwrap(), speeds, units }
}

impl Bed {
    fn input(count: usize) -> Tensor {
        Tensor::from_vec(&[count], vec![1.5_f32; count]).unwrap()
    }

    fn run(&self, count: usize) {
        let outputs = self.session.run_tensors(Run::named(&[("x", Self::input(count))])).unwrap();
        assert_eq!(outputs[0].to_vec::<f32>().unwrap(), vec![1.5; count]);
    }

    fn settle(&self, count: usize) -> TuningStep {
        self.session.try_placements(&[("x", Self::input(count))], Duration::from_secs(60)).unwrap()
    }

    /// The unit that a run goes to.
    fn goes_to(&self, count: usize) -> Vec<usize> {
        let before: Vec<usize> = self.runs();
        self.run(count);
        let after = self.runs();
        (0..after.len()).filter(|&unit| after[unit] > before[unit]).collect()
    }

    fn runs(&self) -> Vec<usize> {
        self.speeds.iter().map(|speed| speed.runs.load(Ordering::SeqCst)).collect()
    }
}

const ALL: &[usize] = &[0, 1, 2];

#[test]
fn a_wrong_prediction_is_found_out_by_a_trial() {
    let bed = bed(&[("gpu", ALL, 10.0, 4000), ("cpu", ALL, 20.0, 400)]);
    assert_eq!(bed.goes_to(1000), [0]);
    assert_eq!(bed.settle(1000), TuningStep::Measured);
    assert_eq!(bed.goes_to(1000), [1]);
    assert_eq!(bed.settle(1000), TuningStep::Settled);
    let ways = bed.session.placements(&[("x", Bed::input(1000))]).unwrap();
    assert!(ways[0].measured && ways[0].providers == ["cpu"], "{ways:?}");
}

#[test]
fn a_prediction_that_is_far_off_hides_no_other_unit() {
    let bed = bed(&[("gpu", ALL, 0.01, 4000), ("cpu", ALL, 200.0, 400)]);
    assert_eq!(bed.settle(1000), TuningStep::Measured);
    assert_eq!(bed.goes_to(1000), [1]);
}

#[test]
fn small_inputs_go_elsewhere_than_large_ones() {
    // The first is far off: a start, and then next to nothing for each element.
    let bed = bed(&[("gpu", ALL, 0.0, 0), ("cpu", ALL, 1.0, 1)]);
    assert_eq!(bed.goes_to(100_000), [0]);
    let small = bed.session.placements(&[("x", Bed::input(1))]).unwrap();
    assert_eq!(small[0].providers, ["gpu"]);
    let times: Vec<Duration> = small.iter().map(|way| way.time).collect();
    assert!(times[1] - times[0] < Duration::from_micros(1), "{times:?}");
}

#[test]
fn idle_time_finds_out_what_requests_need() {
    let bed = bed(&[("gpu", ALL, 10.0, 4000), ("cpu", ALL, 20.0, 400)]);
    assert_eq!(bed.session.tune_placements(Duration::from_secs(60)).unwrap(), TuningStep::Settled);
    bed.run(500);
    assert_eq!(bed.session.tune_placements(Duration::from_secs(60)).unwrap(), TuningStep::Measured);
    assert_eq!(bed.session.tune_placements(Duration::from_secs(60)).unwrap(), TuningStep::Settled);
    assert_eq!(bed.goes_to(500), [1]);
}

#[derive(Debug, Default)]
struct Memory(Mutex<HashMap<PlacementRecordKey, Vec<PlacementTime>>>);

impl PlacementHistory for Memory {
    fn find(&self, key: &PlacementRecordKey) -> Vec<PlacementTime> {
        self.0.lock().unwrap().get(key).cloned().unwrap_or_default()
    }

    fn keep(&self, key: &PlacementRecordKey, times: &[PlacementTime]) {
        self.0.lock().unwrap().insert(key.clone(), times.to_vec());
    }
}

#[test]
fn what_was_measured_is_known_to_sessions_that_are_made_later() {
    let memory = Arc::new(Memory::default());
    // The first two nodes are fast on one unit and the last on the other, against what is predicted.
    let rows: &[(&str, &[usize], f64, u64)] =
        &[("gpu", &[0, 1, 2], 10.0, 4000), ("cpu", ALL, 20.0, 400)];
    let new = || bed_with(("test", "Copy"), rows, PlacementHistorySource(Some(memory.clone())));
    let first = new();
    assert_eq!(first.settle(1000), TuningStep::Measured);
    let kept = memory.0.lock().unwrap().clone();
    let (key, times) = kept.iter().next().unwrap();
    assert_eq!((kept.len(), key.bucket.as_str()), (1, "1024"));
    let names: Vec<&str> = times.iter().map(|one| one.way.as_str()).collect();
    assert!(names.contains(&"gpu 0..3") && names.contains(&"cpu 0..3"), "{names:?}");

    let second = new();
    let ways = second.session.placements(&[("x", Bed::input(1000))]).unwrap();
    assert!(ways[0].measured && ways[0].providers == ["cpu"], "{ways:?}");
    // The way is compiled when nobody waits.
    assert_eq!(second.settle(1000), TuningStep::Measured);
    assert_eq!(second.goes_to(1000), [1]);

    // What is written of another graph, or is broken, is left alone.
    for way in ["cpu 0..2", "npu 0..3", "cpu 0..9", "cpu 1..3", "cpu", "", "cpu a..b"] {
        let wrong = vec![PlacementTime { way: way.to_owned(), ns: 1.0 }];
        memory.0.lock().unwrap().insert(key.clone(), wrong);
        let third = new();
        let ways = third.session.placements(&[("x", Bed::input(1000))]).unwrap();
        assert!(ways.iter().all(|way| !way.measured), "{way}: {ways:?}");
    }
}

#[test]
fn a_unit_that_is_closed_gets_no_more_requests() {
    let bed = bed(&[("gpu", ALL, 10.0, 400), ("cpu", ALL, 20.0, 4000)]);
    bed.settle(1000);
    assert_eq!(bed.goes_to(1000), [0]);
    bed.units.named("gpu").set_open(false);
    let ways = bed.session.placements(&[("x", Bed::input(1000))]).unwrap();
    assert_eq!(bed.goes_to(1000), [1], "{ways:?}");
    bed.units.named("gpu").set_open(true);
    assert_eq!(bed.goes_to(1000), [0]);
}

#[test]
fn a_unit_that_is_lost_costs_no_request() {
    let bed = bed(&[("gpu", ALL, 10.0, 400), ("cpu", ALL, 20.0, 4000)]);
    bed.settle(1000);
    assert_eq!(bed.goes_to(1000), [0]);
    bed.speeds[0].lost.store(true, Ordering::SeqCst);
    assert_eq!(bed.goes_to(1000), [1]);
    assert_eq!(bed.goes_to(1000), [1]);
}

#[test]
fn a_way_that_fails_is_left_and_the_first_one_goes_on() {
    let bed = bed(&[("cpu", ALL, 10.0, 4000), ("gpu", ALL, 20.0, 40)]);
    bed.settle(1000);
    assert_eq!(bed.goes_to(1000), [1]);
    bed.speeds[1].lost.store(true, Ordering::SeqCst);
    assert_eq!(bed.goes_to(1000), [0]);
    let ways = bed.session.placements(&[("x", Bed::input(1000))]).unwrap();
    assert!(ways.iter().any(|way| way.failed.as_ref().is_some_and(|why| why.contains("gone"))));
}

#[test]
fn concurrent_runs_are_divided_between_units() {
    let bed = bed(&[("gpu", ALL, 10.0, 4000), ("cpu", ALL, 10.0, 5000)]);
    bed.settle(1000);
    let before = bed.runs();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..4).for_each(|_| bed.run(1000)));
        }
    });
    let after = bed.runs();
    let counts: Vec<usize> =
        after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(counts.iter().sum::<usize>(), 16);
    assert!(counts.iter().all(|&count| count >= 4), "{counts:?}");
    assert!(bed.units.all().iter().all(|unit| unit.report().owed == Duration::ZERO));
}

#[test]
fn a_request_says_where_it_is_run() {
    let bed = bed(&[("gpu", &[1], 10.0, 40), ("cpu", ALL, 20.0, 40)]);
    let on = |name: &str| {
        let before = bed.runs();
        bed.session.run_tensors(Run::named(&[("x", Bed::input(10))]).on(name))?;
        let after = bed.runs();
        Ok((0..2).filter(|&unit| after[unit] > before[unit]).collect::<Vec<usize>>())
    };
    assert_eq!(on("gpu").unwrap(), [0, 1], "the GPU has a node only");
    assert_eq!(on("cpu").unwrap(), [1]);
    let error: RuntimeError = on("npu").unwrap_err();
    assert!(error.is_input() && error.to_string().contains("'npu' here, there are gpu, cpu"));
}

#[test]
fn rows_are_divided_between_units_where_that_is_faster() {
    // Rows of this operator are known to be independent.
    let bed = bed_of(("", "Abs"), &[("gpu", ALL, 10.0, 20_000), ("cpu", ALL, 10.0, 20_000)]);
    assert_eq!(bed.settle(1000), TuningStep::Measured);
    let ways = bed.session.placements(&[("x", Bed::input(1000))]).unwrap();
    assert_eq!(ways[0].providers.len(), 2, "{ways:?}");
    assert!(ways[0].measured && ways[0].time < ways[1].time, "{ways:?}");
    // The result is that of one unit, and both are busy.
    let values: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let input = Tensor::from_vec(&[1000], values.clone()).unwrap();
    let before = bed.runs();
    let outputs = bed.session.run_tensors(Run::named(&[("x", input)])).unwrap();
    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), values);
    assert!(bed.runs().iter().zip(before).all(|(after, before)| *after == before + 1));
    // One row cannot be divided.
    bed.settle(1);
    assert_eq!(bed.goes_to(1).len(), 1);
}

#[test]
fn runs_that_take_two_units_at_a_time_do_not_wait_for_each_other_for_ever() {
    let bed = bed_of(("", "Abs"), &[("gpu", ALL, 10.0, 20_000), ("cpu", ALL, 10.0, 20_000)]);
    bed.settle(100);
    let on = |name: &'static str| {
        let (bed, input) = (&bed, [("x", Bed::input(100))]);
        move || {
            (0..6).for_each(|_| drop(bed.session.run_tensors(Run::named(&input).on(name)).unwrap()))
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(on("gpu"));
        scope.spawn(on("cpu"));
        for _ in 0..4 {
            scope.spawn(|| (0..6).for_each(|_| bed.run(100)));
        }
    });
    assert!(bed.units.all().iter().all(|unit| unit.report().owed == Duration::ZERO));
    assert!(bed.units.all().iter().all(|unit| !unit.is_busy()));
}

#[test]
fn parts_of_runs_that_follow_each_other_go_on_at_the_same_time() {
    let bed = bed(&[("gpu", &[0], 4000.0, 4000), ("cpu", &[1, 2], 2000.0, 2000)]);
    let most = || bed.speeds[0].working[1].load(Ordering::SeqCst);
    bed.run(1000);
    assert_eq!(most(), 1, "one run has one part at a time");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..4).for_each(|_| bed.run(1000)));
        }
    });
    assert_eq!(most(), 2);
}

#[test]
fn requests_move_to_another_unit_under_load_and_none_is_lost() {
    let bed = bed(&[("gpu", ALL, 10.0, 300), ("cpu", ALL, 20.0, 500)]);
    bed.settle(1000);
    let gpu = bed.units.named("gpu");
    let done = AtomicUsize::new(0);
    let begin = Instant::now();
    let await_done = |count: usize| {
        while done.load(Ordering::SeqCst) < count {
            assert!(begin.elapsed() < Duration::from_secs(60), "{done:?} of {count} runs");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..30 {
                    bed.run(1000);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        await_done(20);
        gpu.set_open(false);
        // Those that had begun there end there.
        await_done(30);
        let before = bed.runs()[0];
        await_done(50);
        assert!(bed.runs()[0] <= before + 3, "a closed unit was given work");
        gpu.set_open(true);
        await_done(70);
        assert!(bed.runs()[0] > before, "an open unit was given none");
        bed.speeds[0].lost.store(true, Ordering::SeqCst);
    });
    assert_eq!(done.load(Ordering::SeqCst), 120);
    assert!(bed.units.all().iter().all(|unit| unit.report().owed == Duration::ZERO));
}

#[test]
fn a_unit_that_never_ran_is_left_when_ways_are_measured() {
    let bed =
        bed(&[("gpu", ALL, 10.0, 400), ("cpu", ALL, 20.0, 4000), ("slow", ALL, 30.0, 40_000)]);
    bed.speeds[0].lost.store(true, Ordering::SeqCst);
    assert_eq!(bed.settle(1000), TuningStep::Measured);
    assert_eq!(bed.goes_to(1000), [1]);
    let ways = bed.session.placements(&[("x", Bed::input(1000))]).unwrap();
    assert!(ways.iter().any(|way| way.measured && way.providers == ["cpu"]), "{ways:?}");
}
