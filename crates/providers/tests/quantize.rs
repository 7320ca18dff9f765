//! Models that are quantised on the `cpu` provider: what they become, what runs them, what they lose.

use std::sync::Arc;

use crate::support::{floats, values};
use bytes::Bytes;
use galatea_formats::onnx;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId};
use galatea_providers::{all, by_name};
use galatea_runtime::quantize::{
    AccuracyBound, NamedInputs, QuantizeContext, QuantizeMode, QuantizeOptions, QuantizedModel,
    RangeMethod, RoundingAlgorithm, quantize,
};
use galatea_runtime::{ExecutionProvider, Run, RuntimeError, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};

struct Net {
    graph: Graph,
}

impl Net {
    fn new(dims: Vec<Dim>) -> (Self, ValueId) {
        let mut graph = Graph::new("net");
        graph.opsets.insert(String::new(), 17);
        let x = graph.value_named("x");
        graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
        graph.inputs.push(x);
        (Self { graph }, x)
    }

    fn weights(&mut self, shape: &[usize], scale: f32, seed: u32) -> ValueId {
        let all = values(shape.iter().product(), seed).iter().map(|value| value * scale).collect();
        self.graph.add_constant("w", Tensor::from_vec(shape, all).unwrap())
    }

    fn change(&mut self, id: ValueId, change: impl Fn(&mut Vec<f32>)) {
        let tensor = self.graph.constant(id).unwrap();
        let (shape, mut values) = (tensor.shape().to_vec(), tensor.to_vec::<f32>().unwrap());
        change(&mut values);
        self.graph.value_mut(id).initializer = Some(Tensor::from_vec(&shape, values).unwrap());
    }

    fn node(
        &mut self,
        op: &str,
        attributes: &[(&str, AttributeValue)],
        inputs: &[ValueId],
    ) -> ValueId {
        let output = self.graph.value_named(&format!("{op}{}", self.graph.nodes.len()));
        let attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let inputs = inputs.iter().copied().map(Some).collect();
        let name = format!("{}/{op}", self.graph.nodes.len());
        self.graph.add_node("", op, &name, &attributes, inputs, vec![Some(output)]).unwrap();
        output
    }
}

/// Two convolutions around a residual, pooling, a product and a softmax.
fn picture_net() -> Graph {
    let known = |len: usize| Dim::Known(len);
    let (mut net, x) = Net::new(vec![Dim::symbol("n"), known(3), known(8), known(8)]);
    let pads = [("pads", AttributeValue::Ints(vec![1; 4]))];
    let (w, b) = (net.weights(&[8, 3, 3, 3], 0.3, 1), net.weights(&[8], 0.2, 2));
    let first = net.node("Conv", &pads, &[x, w, b]);
    let first = net.node("Relu", &[], &[first]);
    let (w, b) = (net.weights(&[8, 8, 3, 3], 0.2, 3), net.weights(&[8], 0.2, 4));
    let second = net.node("Conv", &pads, &[first, w, b]);
    let sum = net.node("Add", &[], &[second, first]);
    let sum = net.node("Relu", &[], &[sum]);
    let kernel = |len: i64| AttributeValue::Ints(vec![len; 2]);
    let pool = [("kernel_shape", kernel(2)), ("strides", kernel(2))];
    let pooled = net.node("MaxPool", &pool, &[sum]);
    let flat = net.node("Flatten", &[], &[pooled]);
    let (w, b) = (net.weights(&[10, 128], 0.5, 5), net.weights(&[10], 0.5, 6));
    let logits = net.node("Gemm", &[("transB", AttributeValue::Int(1))], &[flat, w, b]);
    let classes = net.node("Softmax", &[("axis", AttributeValue::Int(-1))], &[logits]);
    net.graph.outputs.push(classes);
    net.graph
}

/// Three products with an activation. The middle one has a row of weights of this size for a feature
/// that is always zero: it matters to roundings only.
fn text_net(outlier: f32) -> Graph {
    let (mut net, x) = Net::new(vec![Dim::symbol("n"), Dim::symbol("s"), Dim::Known(48)]);
    let (w, b) = (net.weights(&[48, 64], 0.3, 11), net.weights(&[64], 0.1, 12));
    net.change(w, |values| values.iter_mut().skip(5).step_by(64).for_each(|value| *value = 0.0));
    net.change(b, |values| values[5] = 0.0);
    let y = net.node("MatMul", &[], &[x, w]);
    let y = net.node("Add", &[], &[y, b]);
    let y = net.node("Tanh", &[], &[y]);
    let w = net.weights(&[64, 64], 0.3, 13);
    net.change(w, |values| values[5 * 64..6 * 64].fill(outlier));
    let y = net.node("MatMul", &[], &[y, w]);
    let w = net.weights(&[64, 32], 0.3, 14);
    let y = net.node("MatMul", &[], &[y, w]);
    net.graph.outputs.push(y);
    net.graph
}

fn samples(shape: &[usize], count: u32) -> Vec<NamedInputs> {
    (0..count).map(|seed| vec![("x".to_owned(), floats(shape, 100 + seed))]).collect()
}

fn quantised(
    graph: &Graph,
    samples: &[NamedInputs],
    options: &QuantizeOptions,
) -> Result<QuantizedModel, RuntimeError> {
    let providers = all();
    let session = SessionOptions { threads: 1, ..SessionOptions::default() };
    let context = QuantizeContext {
        providers: &providers,
        session: &session,
        calibration: samples,
        evaluation: samples,
    };
    quantize(graph, &context, options, &mut |_| {})
}

/// The graph after a way through a file.
fn stored(graph: &Graph) -> Graph {
    let bytes = onnx::to_bytes(graph, &onnx::OnnxModelInfo::default()).unwrap();
    onnx::parse(Bytes::from(bytes), None).unwrap()
}

/// Kernels that run the nodes of a graph, and its outputs.
fn ran(graph: &Graph, provider: &str, sample: &NamedInputs) -> (Vec<String>, Vec<Tensor>) {
    let providers: [Arc<dyn ExecutionProvider>; 1] = [by_name(provider).unwrap()];
    let options = SessionOptions { threads: 1, ..SessionOptions::default() };
    let session = Session::new(graph.clone(), &providers, &options).unwrap();
    let named: Vec<(&str, Tensor)> =
        sample.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let profiled = session.run(Run::named(&named).profiled()).unwrap();
    let kernels = profiled.rows.iter().map(|row| row.kernel.clone()).collect();
    (kernels, profiled.tensors().unwrap())
}

#[test]
fn a_static_model_runs_on_integers_from_its_first_layer_to_its_last() {
    let (graph, samples) = (picture_net(), samples(&[4, 3, 8, 8], 16));
    for method in [RangeMethod::MinMax, RangeMethod::Entropy, RangeMethod::Percentile(99.9)] {
        for (symmetric, per_channel) in [(false, true), (true, true), (false, false)] {
            let mut options = QuantizeOptions::new(QuantizeMode::Static);
            (options.method, options.symmetric, options.per_channel) =
                (method, symmetric, per_channel);
            // Classes of random weights are near each other.
            options.agreement = AccuracyBound::Cosine;
            let done = quantised(&graph, &samples, &options).unwrap();
            let report = &done.report;
            assert_eq!((report.measure, report.layers.len()), ("cosine", 3));
            assert!(report.holds() && report.agreement.unwrap() >= 0.992, "{report:?}");
            assert!(
                report.layers.iter().all(|l| l.form == "INT8"),
                "{method:?} {symmetric} {report:?}"
            );
            assert!(report.bytes_after * 3 < report.bytes_before, "{report:?}");
            let (kernels, outputs) = ran(&stored(&done.graph), "cpu", &samples[0]);
            let count = |part: &str| kernels.iter().filter(|kernel| kernel.contains(part)).count();
            assert_eq!((count("qlinear_conv"), count("qgemm")), (2, 1), "{kernels:?}");
            // The sum is made with the later convolution.
            assert_eq!((count("qlinear_conv_add"), count("relu")), (1, 0), "{kernels:?}");
            assert_eq!(count("quantize_linear-f32"), 1, "{kernels:?}");
            let (_, expected) = ran(&done.graph, "reference", &samples[0]);
            let pairs = outputs[0].to_vec::<f32>().unwrap();
            let pairs = pairs.iter().zip(expected[0].to_vec::<f32>().unwrap());
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 0.05, "{a} {b}"));
        }
    }
}

#[test]
fn a_dynamic_model_multiplies_integers_and_needs_no_data() {
    let graph = text_net(0.3);
    let options = QuantizeOptions::new(QuantizeMode::Dynamic);
    let done = quantised(&graph, &[], &options).unwrap();
    assert_eq!((done.report.agreement, done.report.holds()), (None, true));
    assert!(done.report.layers.iter().all(|layer| layer.form == "dynamic INT8"));
    let samples = samples(&[2, 5, 48], 4);
    let (kernels, outputs) = ran(&stored(&done.graph), "cpu", &samples[0]);
    let products = kernels.iter().filter(|kernel| *kernel == "matmul_integer-int8_f32").count();
    assert_eq!(products, 3, "{kernels:?}");
    let (_, expected) = ran(&graph, "cpu", &samples[0]);
    let (a, b) = (outputs[0].to_vec::<f32>().unwrap(), expected[0].to_vec::<f32>().unwrap());
    let most = b.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() < 0.05 * most, "{a} {b}"));
    let report = quantised(&graph, &samples, &options).unwrap().report;
    assert_eq!(report.measure, "cosine");
    assert!(report.agreement.unwrap() > 0.999, "{report:?}");
    let error =
        quantised(&picture_net(), &[], &QuantizeOptions::new(QuantizeMode::Static)).unwrap_err();
    assert!(error.to_string().contains("needs samples"), "{error}");
}

#[test]
fn the_worst_layer_returns_to_single_precision_until_the_bound_holds() {
    let (graph, samples) = (text_net(400.0), samples(&[2, 5, 48], 4));
    let mut options = QuantizeOptions::new(QuantizeMode::Int4);
    (options.block, options.bound) = (64, 0.99);
    let report = quantised(&graph, &samples, &options).unwrap().report;
    assert!(report.holds(), "{report:?}");
    let left: Vec<&str> =
        report.layers.iter().filter(|l| l.form == "FP32").map(|l| l.name.as_str()).collect();
    assert_eq!(left, ["3/MatMul"], "{report:?}");
    let reason = report.layers[1].reason.as_deref().unwrap();
    assert!(reason.contains("worst"), "{reason}");
    let tried: Vec<usize> = report.attempts.iter().map(|attempt| attempt.left_out).collect();
    assert_eq!(tried, [0, 1], "{report:?}");
    let effects: Vec<f64> = report.layers.iter().map(|layer| layer.effect.unwrap()).collect();
    assert!(effects[1] > 10.0 * effects[0].max(effects[2]), "{effects:?}");
    options.bound = 0.0;
    let report = quantised(&graph, &samples, &options).unwrap().report;
    assert!(report.layers.iter().all(|layer| layer.form == "INT4"), "{report:?}");
}

/// Two paths to one sum: the first loses much and counts little, the second loses less and counts.
fn two_paths_net() -> Graph {
    let (mut net, x) = Net::new(vec![Dim::symbol("n"), Dim::Known(48)]);
    // The first feature never is anything but zero: its weights matter to roundings only.
    let mut mask = vec![1.0_f32; 48];
    mask[0] = 0.0;
    let mask = net.graph.add_constant("mask", Tensor::vector(mask));
    let x = net.node("Mul", &[], &[x, mask]);
    let mut path = |outlier: f32, scale: f32, seed: u32| {
        let w = net.weights(&[48, 32], 0.3, seed);
        net.change(w, |values| values[..32].fill(outlier));
        let y = net.node("MatMul", &[], &[x, w]);
        let scale = net.graph.add_constant("scale", Tensor::scalar(scale));
        net.node("Mul", &[], &[y, scale])
    };
    let (quiet, loud) = (path(20.0, 1e-3, 21), path(5.0, 1.0, 22));
    let sum = net.node("Add", &[], &[quiet, loud]);
    net.graph.outputs.push(sum);
    net.graph
}

#[test]
fn the_layer_that_matters_to_the_whole_returns_not_the_noisiest() {
    let (graph, samples) = (two_paths_net(), samples(&[64, 48], 4));
    let mut options = QuantizeOptions::new(QuantizeMode::Int4);
    (options.block, options.agreement) = (64, AccuracyBound::Cosine);
    options.bound = 0.0;
    let all = quantised(&graph, &samples, &options).unwrap().report;
    let noise = |at: usize| all.layers[at].likeness.unwrap().sqnr_db;
    assert!(noise(0) < noise(1), "{all:?}");
    // Between what both lose and none.
    options.bound = f64::midpoint(all.agreement.unwrap(), 1.0);
    let report = quantised(&graph, &samples, &options).unwrap().report;
    let forms: Vec<&str> = report.layers.iter().map(|layer| layer.form).collect();
    assert_eq!((report.holds(), &forms[..]), (true, &["INT4", "FP32"][..]), "{report:?}");
    // Without probes a layer's own noise is all that is known.
    options.probes = 0;
    let report = quantised(&graph, &samples, &options).unwrap().report;
    assert!(report.holds(), "{report:?}");
}

#[test]
fn calibrated_rounding_loses_less_than_the_nearest_numbers() {
    let graph = text_net(0.3);
    // Positions that are mostly a few directions, as those of text are.
    let few = floats(&[4, 48], 7).to_vec::<f32>().unwrap();
    let sample = |seed: u32| {
        let mut x = floats(&[4, 16, 48], seed).to_vec::<f32>().unwrap();
        for (row, x) in x.chunks_mut(48).enumerate() {
            let direction = &few[row % 4 * 48..][..48];
            x.iter_mut().zip(direction).for_each(|(x, d)| *x = *x * 0.2 + d);
        }
        vec![("x".to_owned(), Tensor::from_vec(&[4, 16, 48], x).unwrap())]
    };
    let samples: Vec<NamedInputs> = (0..4).map(sample).collect();
    let noise = |algorithm: RoundingAlgorithm, symmetric: bool| {
        let mut options = QuantizeOptions::new(QuantizeMode::Int4);
        (options.algorithm, options.symmetric, options.bound) = (algorithm, symmetric, 0.0);
        let done = quantised(&graph, &samples, &options).unwrap();
        // What is stored computes what was measured.
        let (_, stored) = ran(&stored(&done.graph), "cpu", &samples[0]);
        assert!(done.graph.nodes.iter().any(|node| node.op_type == "MatMulNBits"));
        (done.report.outputs[0].likeness, stored)
    };
    let (_, exact) = ran(&graph, "cpu", &samples[0]);
    for symmetric in [false, true] {
        let (nearest, stored) = noise(RoundingAlgorithm::RoundToNearest, symmetric);
        let (calibrated, _) = noise(RoundingAlgorithm::Gptq, symmetric);
        assert!(calibrated.sqnr_db > nearest.sqnr_db + 1.0, "{calibrated:?} {nearest:?}");
        let (a, b) = (stored[0].to_vec::<f32>().unwrap(), exact[0].to_vec::<f32>().unwrap());
        let sums = a.iter().zip(&b).fold((0.0, 0.0), |(noise, signal), (a, b)| {
            (noise + (a - b) * (a - b), signal + b * b)
        });
        let found = 10.0 * (sums.1 / sums.0).log10();
        assert!((f64::from(found) - nearest.sqnr_db).abs() < 3.0, "{found} {nearest:?}");
    }
}

#[test]
fn weights_of_16_bits_halve_the_model_and_change_little() {
    let (graph, samples) = (picture_net(), samples(&[4, 3, 8, 8], 4));
    for (mode, decibels) in [(QuantizeMode::Fp16, 60.0), (QuantizeMode::Bf16, 40.0)] {
        for half_arithmetic in [false, true] {
            let mut options = QuantizeOptions::new(mode);
            (options.half_arithmetic, options.agreement) = (half_arithmetic, AccuracyBound::Cosine);
            let done = quantised(&graph, &samples, &options).unwrap();
            let report = &done.report;
            let least = if half_arithmetic { decibels - 20.0 } else { decibels };
            assert!(report.outputs[0].likeness.sqnr_db > least, "{report:?}");
            assert!(report.bytes_after * 100 < report.bytes_before * 55, "{report:?}");
            let again = stored(&done.graph);
            let (_, outputs) = ran(&again, "reference", &samples[0]);
            assert_eq!(outputs[0].dtype(), DataType::Fp32);
        }
    }
}

#[test]
fn mixed_models_have_integers_in_layers_and_16_bits_elsewhere() {
    let (graph, samples) = (picture_net(), samples(&[4, 3, 8, 8], 8));
    for half_arithmetic in [false, true] {
        let mut options = QuantizeOptions::new(QuantizeMode::Mixed);
        (options.agreement, options.half_arithmetic) = (AccuracyBound::Cosine, half_arithmetic);
        options.exclude = vec!["0/Conv".to_owned()];
        let done = quantised(&graph, &samples, &options).unwrap();
        let forms: Vec<&str> = done.report.layers.iter().map(|layer| layer.form).collect();
        assert_eq!(forms, ["FP16", "INT8", "INT8"]);
        let (kernels, _) = ran(&stored(&done.graph), "cpu", &samples[0]);
        assert!(kernels.iter().any(|kernel| kernel.contains("qlinear_conv")), "{kernels:?}");
        let halves = done.graph.values().iter().filter_map(|value| value.initializer.as_ref());
        assert!(halves.clone().any(|tensor| tensor.dtype() == DataType::Fp16));
    }
}

#[test]
fn mistakes_are_named() {
    let samples = samples(&[4, 3, 8, 8], 1);
    let error = |change: &dyn Fn(&mut QuantizeOptions), graph: &Graph| {
        let mut options = QuantizeOptions::new(QuantizeMode::Static);
        change(&mut options);
        quantised(graph, &samples, &options).unwrap_err().to_string()
    };
    let graph = picture_net();
    let text = error(&|options| options.exclude = vec!["nobody".into()], &graph);
    assert!(text.contains("no layer 'nobody'") && text.contains("0/Conv"), "{text}");
    let text = error(&|options| options.block = 24, &graph);
    assert!(text.contains("blocks of 24"), "{text}");
    let text = error(&|options| options.method = RangeMethod::Percentile(3.0), &graph);
    assert!(text.contains("percentile of 3"), "{text}");
    let text = error(&|options| options.agreement = AccuracyBound::Top1, &text_net(1.0));
    assert!(text.contains("sample 1") && text.contains("shape [4, 3, 8, 8]"), "{text}");
    let mut old = picture_net();
    old.opsets.insert(String::new(), 11);
    let text = error(&|_| {}, &old);
    assert!(text.contains("imports opset 11") && text.contains("13"), "{text}");
}
