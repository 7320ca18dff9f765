//! The provider `coreml`: what it claims runs as a program of FP16, the rest elsewhere.

use std::sync::Arc;

use galatea_coreml::{CoreMlProvider, CoreMlSettings, FloatType, NeuralEngine};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ONNX_DOMAIN, ValueId};
use galatea_providers::reference::ReferenceProvider;
use galatea_runtime::{
    ExecutionProvider, OptimiseLevel, ProviderWish, Run, Session, SessionOptions,
};
use galatea_tensor::{DataType, OrderedMap, Tensor, f16};

fn graph(dtype: DataType, operators: &[&str]) -> Graph {
    let mut graph = Graph::new("chain");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 26);
    let mut at: ValueId = graph.value_named("x");
    graph.value_mut(at).declared = Some(Fact::fixed(dtype, &[2, 3]));
    graph.inputs.push(at);
    for (index, operator) in operators.iter().enumerate() {
        let to = graph.value_named(&format!("{operator}_{index}"));
        let inputs = match *operator {
            "Add" | "Mul" => vec![Some(at), Some(at)],
            "CumProd" => vec![Some(at), Some(graph.add_constant("axis", Tensor::scalar(1_i64)))],
            _ => vec![Some(at)],
        };
        let none = Attributes::new();
        graph.add_node(ONNX_DOMAIN, operator, "", &none, inputs, vec![Some(to)]).unwrap();
        at = to;
    }
    graph.outputs.push(at);
    graph
}

/// Returns a provider with settings of its own.
fn with_settings(
    provider: &CoreMlProvider,
    settings: &OrderedMap<String, String>,
) -> Result<Option<Arc<dyn ExecutionProvider>>, String> {
    provider.variant(&ProviderWish { settings: Some(settings), forced: false })
}

fn session(graph: Graph, provider: CoreMlProvider) -> Session {
    let first = provider.forced();
    let providers: Vec<Arc<dyn ExecutionProvider>> = vec![first, Arc::new(ReferenceProvider)];
    let options = SessionOptions { optimise: OptimiseLevel::O1, ..SessionOptions::default() };
    Session::new(graph, &providers, &options).unwrap()
}

#[test]
fn each_operation_rounds_to_halves_unless_told_otherwise() {
    let x = Tensor::from_vec(&[2, 3], vec![0.1_f32, 0.2, 0.3, 0.7, 1.1, 2.3]).unwrap();
    let run = |provider| {
        let session = session(graph(DataType::Fp32, &["Exp", "Mul"]), provider);
        assert_eq!(session.partition_providers(), ["coreml"]);
        session.run_tensors(Run::named(&[("x", x.clone())])).unwrap()[0].to_vec::<f32>().unwrap()
    };
    let half = |value: f32| f16::from_f32(value).to_f32();
    let halves = |value: f32| {
        let exp = half(half(value).exp());
        half(exp * exp)
    };
    let values = x.to_vec::<f32>().unwrap();
    let rounded: Vec<f32> = values.iter().copied().map(halves).collect();
    assert_eq!(run(CoreMlProvider::new()), rounded);
    let settings = CoreMlSettings { float: FloatType::Fp32, ..CoreMlSettings::default() };
    let single = CoreMlProvider::new().with_settings(settings);
    for (found, value) in run(single).into_iter().zip(values) {
        assert!((found - (2.0 * value).exp()).abs() < 1e-4 * found, "{found} of {value}");
    }
}

#[test]
fn what_has_no_operation_runs_elsewhere() {
    let session =
        session(graph(DataType::Fp32, &["Tanh", "CumProd", "Exp"]), CoreMlProvider::new());
    assert_eq!(session.partition_providers(), ["coreml", "reference", "coreml"]);
    let x = Tensor::from_vec(&[2, 3], vec![0.5_f32; 6]).unwrap();
    let found = session.run_tensors(Run::named(&[("x", x)])).unwrap()[0].to_vec::<f32>().unwrap();
    let expected = [1, 2, 3].map(|power| 0.5_f32.tanh().powi(power).exp());
    let near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 2e-3;
    assert!(found.iter().zip(expected.iter().cycle()).all(near), "{found:?}, {expected:?}");
}

#[test]
fn integers_of_64_bits_are_refused_when_32_do_not_hold_them() {
    let session = session(graph(DataType::Int64, &["Add"]), CoreMlProvider::new());
    let small = Tensor::from_vec(&[2, 3], vec![1_i64, 2, 3, -4, 5, 6]).unwrap();
    let found = session.run_tensors(Run::named(&[("x", small)])).unwrap();
    assert_eq!(found[0].to_vec::<i64>().unwrap(), [2, 4, 6, -8, 10, 12]);
    let large = Tensor::from_vec(&[2, 3], vec![1_i64 << 40; 6]).unwrap();
    let error = session.run_tensors(Run::named(&[("x", large)])).unwrap_err().to_string();
    assert!(error.contains("1099511627776 is beyond the 32 bits that a program has"), "{error}");
}

#[test]
fn a_models_settings_are_its_own() {
    let provider = CoreMlProvider::new();
    let set = |name: &str, value: &str| {
        with_settings(&provider, &OrderedMap::from([(name.to_owned(), value.to_owned())]))
    };
    let single = set("precision", "fp32").unwrap().unwrap();
    let settings = |provider: &dyn std::fmt::Debug| format!("{provider:?}");
    assert!(settings(&single).contains("float: Fp32"));
    assert!(settings(&single.forced().unwrap()).contains("float: Fp32"));
    assert!(settings(&provider).contains("float: Fp16"));
    assert!(set("speed", "high").unwrap_err().contains("'speed' found, expected one of"));
}

/// `x` of open first length through one operator with a constant, and then another.
fn open(first: (&str, Tensor), second: (&str, Attributes)) -> Graph {
    let mut graph = Graph::new("open");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let x = graph.value_named("x");
    let shape = vec![Dim::symbol("batch"), Dim::Known(3)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, shape));
    graph.inputs.push(x);
    let (w, a, b) = (graph.value_named("w"), graph.value_named("a"), graph.value_named("b"));
    graph.value_mut(w).initializer = Some(first.1);
    let none = Attributes::new();
    graph.add_node(ONNX_DOMAIN, first.0, "", &none, vec![Some(x), Some(w)], vec![Some(a)]).unwrap();
    graph.add_node(ONNX_DOMAIN, second.0, "", &second.1, vec![Some(a)], vec![Some(b)]).unwrap();
    graph.outputs.push(b);
    graph
}

fn noise(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let all = (0..count).map(|at| ((at * 37 % 23) as f32 - 11.0) / 8.0).collect();
    Tensor::from_vec(shape, all).unwrap()
}

fn axis(axis: i64) -> Attributes {
    Attributes::from([("axis".to_owned(), AttributeValue::Int(axis))])
}

#[test]
fn weights_of_8_bits_are_near_those_of_floats_and_others() {
    let run = |precision: &str| {
        let settings = OrderedMap::from([("precision".to_owned(), precision.to_owned())]);
        let provider = with_settings(&CoreMlProvider::new(), &settings).unwrap().unwrap();
        let provider = provider.forced().unwrap();
        let mut graph = open(("MatMul", noise(&[64, 64])), ("Relu", Attributes::new()));
        let x = graph.inputs[0];
        graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[2, 64]));
        let session = Session::new(graph, &[provider], &SessionOptions::default()).unwrap();
        session.run_tensors(Run::named(&[("x", noise(&[2, 64]))])).unwrap()[0]
            .to_vec::<f32>()
            .unwrap()
    };
    let (half, narrow) = (run("fp16"), run("int8"));
    assert_ne!(half, narrow);
    let largest = half.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let far = half
        .iter()
        .zip(&narrow)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0_f32, |worst, far| if far.is_nan() { f32::INFINITY } else { worst.max(far) });
    assert!(far < largest * 0.02, "{far} of {largest}");
}

#[test]
fn batches_of_any_size_give_what_each_row_gives() {
    for buckets in [vec![], vec![2, 4]] {
        // Along the first axis rows are padded where that changes nothing.
        for along in [1, 0] {
            let graph = open(("MatMul", noise(&[3, 3])), ("Softmax", axis(along)));
            let settings = CoreMlSettings { buckets: buckets.clone(), ..CoreMlSettings::default() };
            let engine = NeuralEngine::of("M4").unwrap();
            let provider = CoreMlProvider::new().with_engine(engine).with_settings(settings);
            let plain = Session::new(
                graph.clone(),
                &[Arc::new(ReferenceProvider) as Arc<dyn ExecutionProvider>],
                &SessionOptions::default(),
            );
            let (session, plain) = (session(graph, provider), plain.unwrap());
            assert_eq!(session.partition_providers(), ["coreml"], "{:?}", session.explain().notes);
            for rows in [1, 3, 4, 7, 3] {
                let x = noise(&[rows, 3]);
                let found = session.run_tensors(Run::named(&[("x", x.clone())])).unwrap();
                let expected = plain.run_tensors(Run::named(&[("x", x)])).unwrap();
                assert_eq!(found[0].shape(), [rows, 3]);
                let (found, expected) = (&found[0], expected[0].to_vec::<f32>().unwrap());
                let found = found.to_vec::<f32>().unwrap();
                let near = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 4e-3);
                assert!(near, "{rows} rows: {found:?}, expected {expected:?}");
            }
        }
    }
}

#[test]
fn a_partition_that_halves_cannot_hold_goes_to_others() {
    let run = |probe: Option<bool>| {
        let mut graph =
            open(("Mul", Tensor::vector(vec![60000.0_f32; 3])), ("Abs", Attributes::new()));
        let x = graph.inputs[0];
        graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[2, 3]));
        let twice = graph.value_named("twice");
        let b = graph.outputs[0];
        let none = Attributes::new();
        let both = vec![Some(b), Some(b)];
        graph.add_node(ONNX_DOMAIN, "Add", "", &none, both, vec![Some(twice)]).unwrap();
        graph.outputs = vec![twice];
        let settings = CoreMlSettings { probe, ..CoreMlSettings::default() };
        session(graph, CoreMlProvider::new().with_settings(settings))
    };
    assert_eq!(run(None).partition_providers(), ["coreml"]);
    let probed = run(Some(true));
    assert_eq!(probed.partition_providers(), ["reference"]);
    let explained = probed.explain().to_string();
    assert!(
        explained.contains("accuracy probe: 'twice' has no numbers where FP32 has some"),
        "{explained}"
    );
    // Known by now, and the same.
    assert_eq!(run(Some(true)).partition_providers(), ["reference"]);
}
