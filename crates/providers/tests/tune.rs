//! Choices of the `cpu` provider: who is asked, what is measured, what comes of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::floats;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph};
use galatea_providers::{by_name, machine};
use galatea_runtime::tune::{
    ChoiceSource, ConfigSpace, MachineTuning, SearchEnd, SearchLimits, StrategyKind, TuningCache,
    TuningGate, TuningGateState, TuningKey, TuningProblem, TuningRecord, TuningSearch,
};
use galatea_runtime::{KernelTuningLimits, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

/// A convolution of images that are large enough for minimal filtering.
fn graph() -> Graph {
    let mut graph = Graph::new("test");
    graph.opsets.insert(String::new(), 17);
    let [x, w, y] = ["x", "w", "y"].map(|name| graph.value_named(name));
    let dims = [1, 16, 14, 14].map(Dim::Known).to_vec();
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.value_mut(w).initializer = Some(floats(&[16, 16, 3, 3], 3));
    graph.inputs.push(x);
    graph.outputs.push(y);
    let pads = [("pads".to_owned(), AttributeValue::Ints(vec![1; 4]))];
    let inputs = vec![Some(x), Some(w)];
    graph.add_node("", "Conv", "conv", &Attributes::from(pads), inputs, vec![Some(y)]).unwrap();
    graph
}

fn session(choices: Option<Arc<dyn TuningCache>>) -> Session {
    let choices = ChoiceSource(choices);
    let options = SessionOptions { threads: 2, choices, ..SessionOptions::default() };
    Session::new(graph(), &[by_name("cpu").unwrap()], &options).unwrap()
}

fn run(session: &Session) -> Tensor {
    session.run_tensors(Run::named(&[("x", floats(&[1, 16, 14, 14], 1))])).unwrap().remove(0)
}

/// Answers with the last candidate, and notes the questions.
#[derive(Debug, Default)]
struct Last(Mutex<Vec<String>>);

impl TuningCache for Last {
    fn choose(&self, family: &str, bucket: &str, space: &ConfigSpace) -> Option<usize> {
        let last = space.len() - 1;
        let mut asked = self.0.lock().unwrap();
        asked.push(format!("{family} | {bucket} | {}", space.name(last)));
        Some(last)
    }
}

#[test]
fn kernels_ask_and_every_answer_computes_the_same() {
    let last = Arc::new(Last::default());
    let chosen = session(Some(Arc::clone(&last) as Arc<dyn TuningCache>));
    let tolerance = Tolerance::Within(1e-4);
    compare(&run(&chosen), &run(&session(None)), tolerance).unwrap();
    let asked = last.0.lock().unwrap();
    let conv = asked.iter().find(|question| question.starts_with("conv-f32")).unwrap();
    assert!(conv.contains("| n1 pixels256 in16 out16 |"), "{conv}");
    assert!(conv.contains("algorithm="), "{conv}");
    let threads = asked.iter().find(|question| question.starts_with("threads ")).unwrap();
    assert!(threads.ends_with("threads=1"), "{threads}");
}

#[test]
fn what_is_measured_is_chosen() {
    let plain = session(None);
    let problems = plain.problems(&[("x", floats(&[1, 16, 14, 14], 1))]).unwrap();
    let families: Vec<&str> = problems.iter().map(|problem| problem.family.as_str()).collect();
    assert!(families.iter().any(|family| family.starts_with("conv-f32")), "{families:?}");
    let mut tuning = MachineTuning { machine: machine(), ..MachineTuning::default() };
    for mut problem in problems {
        let start = Instant::now();
        let outcome = TuningSearch {
            space: &problem.space,
            device: &mut *problem.device,
            limits: SearchLimits {
                samples: 2,
                time: Duration::from_secs(5),
                ..SearchLimits::default()
            },
            clock: &mut || start.elapsed(),
            progress: &mut |_, _| {},
        };
        let outcome = outcome.run(&mut *StrategyKind::Exhaustive.start(1)).unwrap();
        assert_eq!((outcome.ended, outcome.refused.len()), (SearchEnd::Searched, 0));
        assert_eq!(outcome.trials.len(), problem.space.len());
        let key = TuningKey::new(&problem.family, problem.bucket, &tuning.machine, &problem.space);
        let record = TuningRecord::new(&problem.space, &outcome);
        tuning.database.insert(key.clone(), record);
        assert_eq!(tuning.database.choose(&key, &problem.space), Some(outcome.best));
    }
    let tuned = session(Some(Arc::new(tuning)));
    compare(&run(&tuned), &run(&plain), Tolerance::Within(1e-4)).unwrap();
}

/// Records that grow, of which each says that the last candidate is the fastest, whatever was measured.
#[derive(Debug, Default)]
struct Growing(Mutex<Vec<(String, String)>>);

impl TuningCache for Growing {
    fn choose(&self, family: &str, bucket: &str, space: &ConfigSpace) -> Option<usize> {
        let known = self.0.lock().unwrap();
        let found = known.iter().any(|one| one.0 == family && one.1 == bucket);
        found.then_some(space.len() - 1)
    }

    fn keep(&self, problem: &TuningProblem, record: TuningRecord) {
        assert!(record.trials > 1, "{record:?}");
        let key = (problem.family.clone(), problem.bucket.clone());
        self.0.lock().unwrap().push(key);
    }
}

/// A gate that is open, or closed.
struct Fixed(TuningGateState);

impl TuningGate for Fixed {
    fn wait(&self) -> TuningGateState {
        self.0
    }

    fn is_open(&self) -> bool {
        self.0 == TuningGateState::Open
    }

    fn spent(&self, _: Duration, _: usize) {}
}

const LIMITS: KernelTuningLimits = KernelTuningLimits { time: Duration::from_secs(20), cores: 2 };

#[test]
fn a_session_that_serves_takes_what_was_measured() {
    let growing = Arc::new(Growing::default());
    let session = session(Some(Arc::clone(&growing) as Arc<dyn TuningCache>));
    let before = run(&session);
    session.watch_shapes();
    assert!(session.seen_shapes().is_empty());
    run(&session);
    let [shapes] = &*session.seen_shapes() else { panic!("one set of shapes") };
    assert_eq!(session.usual_shapes(1).as_ref(), Some(shapes));
    let closed = session.tune_kernels(shapes, &Fixed(TuningGateState::Closed), LIMITS).unwrap();
    assert!(closed.closed && closed.measured == 0 && growing.0.lock().unwrap().is_empty());
    let ended = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        // Requests go on while the kernels are replaced.
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                compare(&run(&session), &before, Tolerance::Within(1e-4)).unwrap();
            }
        });
        let report = session.tune_kernels(shapes, &Fixed(TuningGateState::Open), LIMITS);
        ended.store(true, Ordering::Relaxed);
        report.unwrap()
    });
    assert_eq!((report.measured, report.left), (growing.0.lock().unwrap().len(), 0), "{report:?}");
    assert!(report.measured >= 2 && report.spent > Duration::ZERO, "{report:?}");
    compare(&run(&session), &before, Tolerance::Within(1e-4)).unwrap();
    // What has a record is not measured again.
    let again = session.tune_kernels(shapes, &Fixed(TuningGateState::Open), LIMITS).unwrap();
    assert_eq!((again.measured, again.renewed), (0, false));
}

#[test]
fn kernels_are_not_measured_beyond_their_time() {
    let session = session(Some(Arc::new(Growing::default())));
    let shapes = session.usual_shapes(1).unwrap();
    let limits = KernelTuningLimits { time: Duration::ZERO, cores: 1 };
    let report = session.tune_kernels(&shapes, &Fixed(TuningGateState::Open), limits).unwrap();
    assert!(report.measured == 0 && report.left > 0 && !report.renewed, "{report:?}");
}
