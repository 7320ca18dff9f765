//! Every parameter of the accelerator `apple_neural_engine`: a right value has an effect, or a reason why it has none
//! here; a wrong one is refused.

use galatea_formats::npy;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ONNX_DOMAIN};
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::{
    CompileMode, CompileRequest, ExecutionProvider, ProviderWish, Run, Session, SessionOptions,
};
use galatea_tensor::{DataType, OrderedMap, OrderedSet, Tensor};

use super::tests::host;
use super::*;
use crate::CoreMlProvider;

type Settings = [(&'static str, String)];

fn map(settings: &Settings) -> OrderedMap<String, String> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn provider(settings: &Settings) -> Result<Arc<dyn ExecutionProvider>, String> {
    let settings = map(settings);
    let wish = ProviderWish { settings: Some(&settings), forced: true };
    Ok(CoreMlProvider::new().variant(&wish)?.expect("the provider has settings"))
}

/// The settings, with partitions in this process where they say nothing of it: a worker's results are always compared.
fn here(settings: &Settings) -> Vec<(&'static str, String)> {
    let mut all = settings.to_vec();
    if settings.iter().all(|(name, _)| *name != "worker") {
        all.push(("worker", "off".to_owned()));
    }
    all
}

/// A session on the provider with these settings, and the CPU behind it.
fn session(graph: Graph, settings: &Settings) -> Session {
    let providers: [Arc<dyn ExecutionProvider>; 2] =
        [provider(&here(settings)).unwrap(), Arc::new(CpuProvider::new())];
    Session::new(graph, &providers, &SessionOptions::default()).unwrap()
}

fn run(session: &Session, x: Tensor) -> Vec<f32> {
    session.run_tensors(Run::named(&[("x", x)])).unwrap()[0].to_vec().unwrap()
}

fn noise(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let all = (0..count).map(|at| ((at * 37 % 23) as f32 - 11.0) / 7.3).collect();
    Tensor::from_vec(shape, all).unwrap()
}

/// `x` times weights, and then an operator. The first length is open where no number is given.
fn product(rows: Option<usize>, operator: &str) -> Graph {
    let mut graph = Graph::new("product");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let x = graph.value_named("x");
    let first = rows.map_or_else(|| Dim::symbol("batch"), Dim::Known);
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, vec![first, Dim::Known(64)]));
    graph.inputs.push(x);
    let w = graph.add_constant("w", noise(&[64, 64]));
    let (a, b) = (graph.value_named("a"), graph.value_named("b"));
    let none = Attributes::new();
    let node = (vec![Some(x), Some(w)], vec![Some(a)]);
    graph.add_node(ONNX_DOMAIN, "MatMul", "", &none, node.0, node.1).unwrap();
    let axis = Attributes::from([("axis".to_owned(), AttributeValue::Int(1))]);
    let attributes = if operator == "Softmax" { &axis } else { &none };
    graph.add_node(ONNX_DOMAIN, operator, "", attributes, vec![Some(a)], vec![Some(b)]).unwrap();
    graph.outputs.push(b);
    graph
}

/// `x` in `exp(x)`, of which FP16 holds those of small numbers only.
fn exponential() -> Graph {
    let mut graph = Graph::new("exponential");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let x = graph.value_named("x");
    graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[2, 3]));
    graph.inputs.push(x);
    let y = graph.value_named("y");
    let none = Attributes::new();
    graph.add_node(ONNX_DOMAIN, "Exp", "", &none, vec![Some(x)], vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    graph
}

/// Whether a parameter with this value does something that is not done without it.
type SettingEffect = fn(&str) -> bool;

struct SettingProof {
    name: &'static str,
    value: String,
    acts: SettingEffect,
}

/// Results of a product, which precision and limits change.
fn product_of(settings: &Settings) -> Vec<f32> {
    run(&session(product(Some(2), "Relu"), settings), noise(&[2, 64]))
}

/// Bytes of the weights of all programs that runs of one to three rows need.
fn weights_of(settings: &Settings) -> usize {
    let own = provider(&here(settings)).unwrap();
    let options = SessionOptions::default();
    let graph = Arc::new(product(None, "Softmax"));
    let made = own.compile(CompileRequest::alone(graph, &options)).unwrap();
    for rows in 1..=3 {
        made.submit(vec![galatea_graph::Datum::Tensor(noise(&[rows, 64]))].into())
            .outputs()
            .unwrap();
    }
    made.report().memory.initializer_bytes
}

fn serves(graph: Graph, settings: &Settings) -> bool {
    session(graph, settings).partition_providers() == ["coreml"]
}

fn proofs(samples: String) -> Vec<SettingProof> {
    let proof = |name, value: &str, acts| SettingProof { name, value: value.to_owned(), acts };
    vec![
        proof("precision", "fp32", |value| {
            product_of(&[("precision", value.into())]) != product_of(&[])
        }),
        proof("precision", "int8", |value| {
            product_of(&[("precision", value.into())]) != product_of(&[])
        }),
        proof("buckets", "4", |value| {
            weights_of(&[("buckets", value.into())]) < weights_of(&[("buckets", "1,2,3".into())])
        }),
        proof("sequence_buckets", "24,8", |value| {
            let lengths = |settings: &Settings| provider(settings).unwrap().traits().padded_lengths;
            lengths(&[("sequence_buckets", value.into())]) == [8, 24] && lengths(&[]).is_empty()
        }),
        proof("accuracy_probe", "true", |value| {
            // Results beyond the limit are found when the model is loaded, and else when it runs.
            let limit = ("accuracy_limit", "1e-9".to_owned());
            let probed = [limit.clone(), ("accuracy_probe", value.to_owned())];
            serves(product(Some(2), "Relu"), &[limit]) && !serves(product(Some(2), "Relu"), &probed)
        }),
        SettingProof {
            name: "accuracy_samples",
            value: samples,
            // No other parameter has to ask for the comparison.
            acts: |value| {
                serves(exponential(), &[])
                    && !serves(exponential(), &[("accuracy_samples", value.into())])
            },
        },
        proof("accuracy_limit", "1e-9", |value| {
            let exact = product_of(&[("precision", "fp32".into())]);
            let is_exact = |worker: &str, limit: Option<&str>| {
                let mut settings = vec![("worker", worker.to_owned())];
                settings.extend(limit.map(|limit| ("accuracy_limit", limit.to_owned())));
                let found = product_of(&settings);
                found.iter().zip(&exact).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0))
            };
            // FP32 serves as soon as results of FP16 are not near enough, in a worker and here.
            ["off", "on"]
                .iter()
                .all(|worker| is_exact(worker, Some(value)) && !is_exact(worker, None))
        }),
        proof("worker", "on", |value| {
            let session = session(product(Some(3), "Tanh"), &[("worker", value.into())]);
            let before = counts().predictions;
            run(&session, noise(&[3, 64]));
            counts().predictions > before
        }),
        proof("power_mode", "low_power", |value| {
            let mut choice = EngineChoice::default();
            choice.set("power_mode", value).unwrap().unwrap();
            choice.load_options() != EngineChoice::default().load_options()
        }),
        proof("compile", "background", |value| {
            let mut choice = EngineChoice::default();
            choice.set("compile", value).unwrap().unwrap();
            choice.mode(&SessionOptions::default()) == CompileMode::Background
                && EngineChoice::default().mode(&SessionOptions::default()) == CompileMode::Wait
        }),
    ]
}

/// Samples that FP16 does not hold behind an exponential.
fn large_samples(folder: &Path) -> String {
    let path = folder.join("large.npz");
    npy::write_npz(&path, [("x", &Tensor::from_vec(&[2, 3], vec![20.0_f32; 6]).unwrap())]).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_parameter_of_the_neural_engine_has_an_effect() {
    let _host = host();
    let folder = tempfile::tempdir().unwrap();
    for SettingProof { name, value, acts } in proofs(large_samples(folder.path())) {
        assert!(acts(&value), "{name} '{value}' changes nothing");
    }
}

/// Names of all parameters, as the error of an unknown one lists them.
fn known_names() -> OrderedSet<String> {
    let error = provider(&[("speed", "high".into())]).unwrap_err();
    let (_, names) = error.split_once("expected one of ").unwrap();
    names.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_parameter_of_the_neural_engine_has_its_proof() {
    let proved: OrderedSet<String> =
        proofs(String::new()).iter().map(|proof| proof.name.to_owned()).collect();
    assert_eq!(proved, known_names());
}

#[test]
fn a_value_of_another_type_is_refused_with_what_was_found_and_expected() {
    for name in known_names() {
        for wrong in ["", "{}", "null", "[1]", "nonsense", "-3", "1e999"] {
            let settings = OrderedMap::from([(name.clone(), wrong.to_owned())]);
            let wish = ProviderWish { settings: Some(&settings), forced: false };
            let error = CoreMlProvider::new().variant(&wish).unwrap_err();
            let tells =
                error.starts_with(&name) && error.contains(wrong) && error.contains("expected");
            assert!(tells, "{name} '{wrong}': {error}");
        }
    }
}

#[test]
fn parameters_that_contradict_each_other_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let samples = large_samples(folder.path());
    let both = [("accuracy_probe", "false".to_owned()), ("accuracy_samples", samples)];
    let error = provider(&both).unwrap_err();
    assert!(error.contains("accuracy_samples found beside accuracy_probe 'false'"), "{error}");
}

#[test]
fn what_holds_for_workers_only_says_so_where_there_is_none() {
    let _host = host();
    let idle = |settings: &[(&str, &str)]| {
        let mut choice = EngineChoice::default();
        for (name, value) in settings {
            choice.set(name, value).unwrap().unwrap();
        }
        choice.idle().join("; ")
    };
    let said = idle(&[("worker", "off"), ("power_mode", "balanced"), ("compile", "wait")]);
    assert!(
        said.contains("power_mode has no effect") && said.contains("compile has no effect"),
        "{said}"
    );
    assert_eq!(idle(&[("worker", "on"), ("power_mode", "balanced"), ("compile", "wait")]), "");
    assert_eq!(idle(&[]), "");
}

#[test]
fn a_whole_package_takes_the_parameters_that_hold_for_it() {
    let _host = host();
    let of =
        |name: &str, value: &str| chosen(&OrderedMap::from([(name.to_owned(), value.to_owned())]));
    let (engine, _, options) = of("worker", "on").unwrap().unwrap();
    assert!(format!("{engine:?}").starts_with("WorkerEngine"), "{engine:?}");
    assert_eq!(options, EngineLoadOptions::default());
    assert_ne!(of("power_mode", "low_power").unwrap().unwrap().2, EngineLoadOptions::default());
    let error = of("compile", "wait").unwrap_err();
    assert!(error.starts_with("'compile' found, expected one of worker, power_mode"), "{error}");
    for name in ["precision", "buckets", "accuracy_probe"] {
        assert!(of(name, "fp16").unwrap_err().contains("expected one of worker, power_mode"));
    }
}

#[test]
fn predictions_are_recorded_and_their_operators_have_rows() {
    use galatea_runtime::{
        IntervalKind, IntervalNumber, IntervalRecorder, IntervalSource, RunWatch,
    };

    #[derive(Default)]
    struct RecordedIntervals(std::sync::Mutex<Vec<String>>);

    impl IntervalRecorder for RecordedIntervals {
        fn is_recording(&self) -> bool {
            true
        }

        fn begin(&self, kind: IntervalKind, what: &str) -> IntervalNumber {
            self.0.lock().unwrap().push(format!("{kind:?} {what}"));
            0
        }

        fn end(&self, kind: IntervalKind, _: IntervalNumber) {
            self.0.lock().unwrap().push(format!("{kind:?} ends"));
        }
    }

    let _host = host();
    let recorded = Arc::new(RecordedIntervals::default());
    let source = IntervalSource(Some(Arc::clone(&recorded) as Arc<dyn IntervalRecorder>));
    let watch = Some(Arc::new(RunWatch::recorded(source)));
    let options = SessionOptions {
        watch: galatea_runtime::WatchSource { watch, model: "squares".into() },
        ..SessionOptions::default()
    };
    let worker = provider(&[("worker", "on".into())]).unwrap();
    let session = Session::new(product(Some(5), "Relu"), &[worker], &options).unwrap();
    let x = noise(&[5, 64]);
    // The first runs are compared; those that follow are the program's alone.
    for _ in 0..2 {
        run(&session, x.clone());
    }
    recorded.0.lock().unwrap().clear();
    let rows = session.run(Run::named(&[("x", x)]).profiled()).unwrap().rows;
    let told = recorded.0.lock().unwrap().clone();
    let wanted =
        ["Partition squares on coreml", "Prediction squares", "Prediction ends", "Partition ends"];
    assert_eq!(told, wanted);
    assert!(!rows.is_empty() && rows.iter().all(|row| row.provider == "coreml"), "{rows:?}");
    // The interpreter's plan has no weights, and that of the doubles has.
    let weighs = cfg!(apple_doubles);
    assert!(rows.iter().all(|row| row.estimated == weighs && !row.time.is_zero()), "{rows:?}");
    assert_eq!(rows[0].op == "prediction", !weighs);
}
