//! Begins and ends of what a session runs, as a recorder of the system hears of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use galatea_graph::{Attributes, Fact, Graph};
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::{
    ExecutionProvider, IntervalKind, IntervalNumber, IntervalRecorder, IntervalSource, Run,
    RunWatch, Session, SessionOptions, UnwatchedScope, WatchSource,
};
use galatea_tensor::{DataType, Tensor};

#[derive(Default)]
struct ListedIntervals {
    on: AtomicBool,
    told: Mutex<Vec<String>>,
}

impl IntervalRecorder for ListedIntervals {
    fn is_recording(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    fn begin(&self, kind: IntervalKind, what: &str) -> IntervalNumber {
        let mut told = self.told.lock().unwrap();
        told.push(format!("{kind:?} {what}"));
        told.len() as u64
    }

    fn end(&self, kind: IntervalKind, number: IntervalNumber) {
        self.told.lock().unwrap().push(format!("{kind:?} of {number} ends"));
    }
}

#[test]
fn operators_lie_inside_of_their_partition_while_somebody_records() {
    let mut graph = Graph::new("recorded");
    graph.opsets.insert(String::new(), 21);
    let [x, y, z] = ["x", "y", "z"].map(|name| graph.value_named(name));
    graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[2, 8]));
    let none = Attributes::new();
    graph.add_node("", "Softmax", "", &none, vec![Some(x)], vec![Some(y)]).unwrap();
    graph.add_node("", "Tanh", "", &none, vec![Some(y)], vec![Some(z)]).unwrap();
    (graph.inputs, graph.outputs) = (vec![x], vec![z]);
    let listed = Arc::new(ListedIntervals::default());
    let source = IntervalSource(Some(Arc::clone(&listed) as Arc<dyn IntervalRecorder>));
    let watch = Some(Arc::new(RunWatch::recorded(source)));
    let options = SessionOptions {
        watch: WatchSource { watch, model: "mine".into() },
        ..SessionOptions::default()
    };
    let cpu: Arc<dyn ExecutionProvider> = Arc::new(CpuProvider::new());
    let session = Session::new(graph, &[cpu], &options).unwrap();
    let given = Tensor::from_vec(&[2, 8], vec![0.5_f32; 16]).unwrap();
    let run = || drop(session.run_tensors(Run::named(&[("x", given.clone())])).unwrap());
    run();
    assert!(listed.told.lock().unwrap().is_empty(), "nobody records");
    listed.on.store(true, Ordering::Relaxed);
    let measured = UnwatchedScope::begin();
    run();
    drop(measured);
    assert!(listed.told.lock().unwrap().is_empty(), "a measurement is nobody's request");
    run();
    let told = listed.told.lock().unwrap();
    assert_eq!(told.len(), 6, "{told:?}");
    assert_eq!(
        (told[0].as_str(), told[5].as_str()),
        ("Partition mine on cpu", "Partition of 1 ends")
    );
    assert!(told[1].starts_with("Operator ") && told[1].contains("softmax"), "{told:?}");
    assert_eq!((told[2].as_str(), told[4].as_str()), ("Operator of 2 ends", "Operator of 4 ends"));
}
