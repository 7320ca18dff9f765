//! Inputs that are made longer for providers that want few lengths.

use std::sync::{Arc, Mutex};

use galatea_coreml::{CoreMlProvider, CoreMlSettings, FloatType};
use galatea_graph::{AttributeValue, Attributes, Datum, Dim, Fact, Graph, ONNX_DOMAIN};
use galatea_providers::reference::ReferenceProvider;
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, PartitionReport, PartitionRun,
    ProviderClaims, ProviderTraits, Run, RunFence, RuntimeError, Session, SessionOptions,
};
use galatea_tensor::{DataType, Tensor};

/// Runs by reference at lengths of 4 and 8, and writes down what it was given.
#[derive(Debug, Default)]
struct Recorder(Arc<Mutex<Vec<Vec<usize>>>>);

struct RecordedRuns {
    inner: Box<dyn Executable>,
    shapes: Arc<Mutex<Vec<Vec<usize>>>>,
}

impl ExecutionProvider for Recorder {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits { padded_lengths: vec![8, 4], ..ProviderTraits::named("recorder") }
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        ReferenceProvider.claim(request)
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        let inner = ReferenceProvider.compile(request)?;
        Ok(Box::new(RecordedRuns { inner, shapes: Arc::clone(&self.0) }))
    }
}

impl Executable for RecordedRuns {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let inputs = run.inputs;
        let first = inputs.first().and_then(Datum::as_tensor).unwrap();
        self.shapes.lock().unwrap().push(first.shape().to_vec());
        self.inner.submit(inputs.into())
    }

    fn report(&self) -> PartitionReport {
        self.inner.report()
    }
}

/// Attention of one head over `ids` `[batch, n]`, whose mask `[batch, n]` hides keys.
fn encoder() -> Graph {
    let mut graph = Graph::new("encoder");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 17);
    for name in ["ids", "mask"] {
        let id = graph.value_named(name);
        let dims = vec![Dim::symbol("batch"), Dim::symbol("n")];
        graph.value_mut(id).declared = Some(Fact::new(DataType::Int64, dims));
        graph.inputs.push(id);
    }
    let table = (0..32_u8).map(|at| f32::from(at * 7 % 13) / 6.0 - 1.0).collect();
    let constants = [
        ("table", Tensor::from_vec(&[8, 4], table).unwrap()),
        ("one", Tensor::scalar(1.0_f32)),
        ("low", Tensor::scalar(-1e4_f32)),
        ("axis", Tensor::vector(vec![1_i64])),
    ];
    for (name, value) in constants {
        let id = graph.value_named(name);
        graph.value_mut(id).initializer = Some(value);
    }
    let int = |name: &str, value: i64| (name.to_owned(), AttributeValue::Int(value));
    let swap = ("perm".to_owned(), AttributeValue::Ints(vec![0, 2, 1]));
    let steps = [
        ("Gather", None, vec!["table", "ids"], "x"),
        ("Transpose", Some(swap), vec!["x"], "keys"),
        ("MatMul", None, vec!["x", "keys"], "scores"),
        ("Unsqueeze", None, vec!["mask", "axis"], "mask3"),
        ("Cast", Some(int("to", 1)), vec!["mask3"], "seen"),
        ("Sub", None, vec!["one", "seen"], "unseen"),
        ("Mul", None, vec!["unseen", "low"], "bias"),
        ("Add", None, vec!["scores", "bias"], "masked"),
        ("Softmax", Some(int("axis", -1)), vec!["masked"], "shares"),
        ("MatMul", None, vec!["shares", "x"], "y"),
    ];
    for (operator, attribute, reads, gives) in steps {
        let reads = reads.iter().map(|name| Some(graph.value_named(name))).collect();
        let gives = graph.value_named(gives);
        let own: Attributes = attribute.into_iter().collect();
        graph.add_node(ONNX_DOMAIN, operator, "", &own, reads, vec![Some(gives)]).unwrap();
    }
    graph.outputs.push(graph.find_value("y").unwrap());
    graph
}

fn inputs(rows: &[&[i64]], mask: &[&[i64]]) -> [(&'static str, Tensor); 2] {
    let tensor = |rows: &[&[i64]]| Tensor::from_vec(&[rows.len(), rows[0].len()], rows.concat());
    [("ids", tensor(rows).unwrap()), ("mask", tensor(mask).unwrap())]
}

fn session(first: Arc<dyn ExecutionProvider>) -> Session {
    let providers = [first, Arc::new(ReferenceProvider)];
    Session::new(encoder(), &providers, &SessionOptions::default()).unwrap()
}

#[test]
fn a_provider_sees_few_lengths_and_a_user_what_was_asked_for() {
    let recorder = Recorder::default();
    let shapes = Arc::clone(&recorder.0);
    let (padded, plain) = (session(Arc::new(recorder)), session(Arc::new(ReferenceProvider)));
    let cases = [
        (inputs(&[&[1, 2, 3]], &[&[1, 1, 1]]), vec![1, 4]),
        (inputs(&[&[1, 2, 3, 4]], &[&[1, 0, 0, 1]]), vec![1, 4]),
        (inputs(&[&[1; 5], &[7, 6, 5, 4, 3]], &[&[1; 5], &[0, 1, 1, 0, 0]]), vec![2, 8]),
        // Longer than all lengths; and a row that sees nothing, whose shares would be others.
        (inputs(&[&[2; 9]], &[&[1; 9]]), vec![1, 9]),
        (inputs(&[&[1, 2, 3], &[4, 5, 6]], &[&[1, 1, 1], &[0, 0, 0]]), vec![2, 3]),
    ];
    for (inputs, shape) in cases {
        let (found, expected) = (
            padded.run_tensors(Run::named(&inputs)).unwrap(),
            plain.run_tensors(Run::named(&inputs)).unwrap(),
        );
        assert_eq!(found[0].shape(), expected[0].shape());
        let pairs = found[0].to_vec::<f32>().unwrap().into_iter();
        for (found, expected) in pairs.zip(expected[0].to_vec::<f32>().unwrap()) {
            assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
        }
        assert_eq!(shapes.lock().unwrap().pop(), Some(shape));
    }
}

#[test]
fn programs_of_core_ml_are_padded_as_their_setting_says() {
    let settings = CoreMlSettings {
        float: FloatType::Fp32,
        sequence_buckets: Some(vec![6]),
        ..CoreMlSettings::default()
    };
    let provider = CoreMlProvider::new().with_settings(settings);
    assert_eq!(provider.traits().padded_lengths, [6]);
    assert!(CoreMlProvider::new().traits().padded_lengths.is_empty());
    let (padded, plain) = (session(provider.forced()), session(Arc::new(ReferenceProvider)));
    let inputs = inputs(&[&[3, 1, 4, 1], &[5, 2, 6, 0]], &[&[1, 1, 1, 1], &[1, 1, 1, 0]]);
    let (found, expected) = (
        padded.run_tensors(Run::named(&inputs)).unwrap(),
        plain.run_tensors(Run::named(&inputs)).unwrap(),
    );
    assert_eq!(found[0].shape(), expected[0].shape());
    let pairs = found[0].to_vec::<f32>().unwrap().into_iter();
    for (found, expected) in pairs.zip(expected[0].to_vec::<f32>().unwrap()) {
        assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
    }
}
