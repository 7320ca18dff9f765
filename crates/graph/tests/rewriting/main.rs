//! A rewritten graph computes what the model's own graph computes, with fewer nodes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contrib;
mod einsum;
mod folding;
mod generated;
mod quantized;
mod shapes;
mod transformer;

use galatea_graph::rewrite::{RewriteLevel, channels_last, conv_chains, optimise};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId, evaluate};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

/// Builds a graph over FP32 inputs.
struct Builder {
    graph: Graph,
    next: usize,
}

impl Builder {
    fn new() -> Self {
        let mut graph = Graph::new("test");
        graph.opsets.insert(String::new(), 17);
        Self { graph, next: 0 }
    }

    fn input(&mut self, name: &str, shape: &[Dim]) -> ValueId {
        let id = self.graph.value_named(name);
        self.graph.value_mut(id).declared = Some(Fact::new(DataType::Fp32, shape.to_vec()));
        self.graph.inputs.push(id);
        id
    }

    fn constant(&mut self, tensor: Tensor) -> ValueId {
        self.graph.add_constant("c", tensor)
    }

    fn number(&mut self, value: f32) -> ValueId {
        self.constant(Tensor::scalar(value))
    }

    fn op(
        &mut self,
        op_type: &str,
        inputs: &[ValueId],
        attributes: &[(&str, AttributeValue)],
    ) -> ValueId {
        self.next += 1;
        let output = self.graph.value_named(&format!("{op_type}{}", self.next));
        let attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let inputs = inputs.iter().copied().map(Some).collect();
        let name = format!("n{}", self.next);
        self.graph.add_node("", op_type, &name, &attributes, inputs, vec![Some(output)]).unwrap();
        output
    }

    fn finish(mut self, output: ValueId) -> Graph {
        self.graph.outputs.push(output);
        self.graph.sort().unwrap();
        self.graph
    }
}

/// Numbers in -1..1 that look random and are the same in every run.
fn noise(shape: &[usize], seed: u32) -> Tensor {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    let count: usize = shape.iter().product();
    Tensor::from_vec(shape, (0..count).map(|_| next()).collect::<Vec<f32>>()).unwrap()
}

fn known(shape: &[usize]) -> Vec<Dim> {
    shape.iter().map(|&len| Dim::Known(len)).collect()
}

fn op_types(graph: &Graph) -> Vec<&str> {
    graph.nodes.iter().map(|node| node.op_type.as_str()).collect()
}

/// Rewrites the graph and checks its operators and its results. The operators are those before
/// chains of element-wise functions become one.
fn check(graph: Graph, inputs: &[Tensor], expected: &[&str]) -> Graph {
    let [rewritten, chained] = [RewriteLevel::O2, RewriteLevel::O3].map(|level| {
        let mut rewritten = graph.clone();
        optimise(&mut rewritten, level).unwrap();
        check_equal(&graph, &rewritten, inputs);
        rewritten
    });
    assert_eq!(op_types(&rewritten), expected);
    assert!(chained.nodes.len() <= rewritten.nodes.len());
    rewritten
}

fn check_equal(graph: &Graph, rewritten: &Graph, inputs: &[Tensor]) {
    let before = evaluate::run(graph, inputs).unwrap();
    let after = evaluate::run(rewritten, inputs).unwrap();
    // Intermediate results that are rounded to FP32 in one graph are not in the other.
    let tolerance = Tolerance::Accumulated { terms: 64, accumulator: DataType::Fp32 };
    for (found, expected) in after.iter().zip(&before) {
        compare(found, expected, tolerance).unwrap();
    }
}

fn ints(values: &[i64]) -> AttributeValue {
    AttributeValue::Ints(values.to_vec())
}

#[test]
fn gelu_is_found_in_each_grouping_of_its_factors() {
    for grouping in 0..3 {
        let mut b = Builder::new();
        let x = b.input("x", &known(&[2, 5]));
        let (root, one, half) = (b.number(2.0_f32.sqrt()), b.number(1.0), b.number(0.5));
        let scaled = b.op("Div", &[x, root], &[]);
        let erf = b.op("Erf", &[scaled], &[]);
        let gate = b.op("Add", &[erf, one], &[]);
        let y = match grouping {
            0 => {
                let product = b.op("Mul", &[x, gate], &[]);
                b.op("Mul", &[product, half], &[])
            }
            1 => {
                let scaled = b.op("Mul", &[x, half], &[]);
                b.op("Mul", &[scaled, gate], &[])
            }
            _ => {
                let scaled = b.op("Mul", &[half, gate], &[]);
                b.op("Mul", &[x, scaled], &[])
            }
        };
        check(b.finish(y), &[noise(&[2, 5], 1)], &["Gelu"]);
    }
}

#[test]
fn the_approximation_of_gelu_is_found_with_either_cube() {
    for power in [true, false] {
        let mut b = Builder::new();
        let x = b.input("x", &known(&[2, 5]));
        let (half, one, three) = (b.number(0.5), b.number(1.0), b.number(3.0));
        let (slope, root) = (b.number(0.044715), b.number(0.797_884_6));
        let cube = if power {
            b.op("Pow", &[x, three], &[])
        } else {
            let square = b.op("Mul", &[x, x], &[]);
            b.op("Mul", &[square, x], &[])
        };
        let scaled = b.op("Mul", &[cube, slope], &[]);
        let sum = b.op("Add", &[x, scaled], &[]);
        let inner = b.op("Mul", &[sum, root], &[]);
        let tanh = b.op("Tanh", &[inner], &[]);
        let gate = b.op("Add", &[tanh, one], &[]);
        let halved = b.op("Mul", &[x, half], &[]);
        let y = b.op("Mul", &[halved, gate], &[]);
        check(b.finish(y), &[noise(&[2, 5], 3)], &["Gelu"]);
    }
}

#[test]
fn rms_norm_is_found_with_each_inverse_root() {
    for form in 0..4 {
        let mut b = Builder::new();
        let x = b.input("x", &[Dim::symbol("rows"), Dim::Known(6)]);
        let (two, epsilon, one) = (b.number(2.0), b.number(1e-6), b.number(1.0));
        let scale = b.constant(noise(&[6], 4));
        let square = b.op("Pow", &[x, two], &[]);
        let mean = b.op("ReduceMean", &[square], &[("axes", ints(&[-1]))]);
        let sum = b.op("Add", &[mean, epsilon], &[]);
        let root = b.op("Sqrt", &[sum], &[]);
        let normal = match form {
            0 => {
                let inverse = b.op("Div", &[one, root], &[]);
                b.op("Mul", &[x, inverse], &[])
            }
            1 => {
                let inverse = b.op("Reciprocal", &[root], &[]);
                b.op("Mul", &[inverse, x], &[])
            }
            2 => b.op("Div", &[x, root], &[]),
            _ => {
                let power = b.number(-0.5);
                let inverse = b.op("Pow", &[sum, power], &[]);
                b.op("Mul", &[x, inverse], &[])
            }
        };
        let y = b.op("Mul", &[scale, normal], &[]);
        check(b.finish(y), &[noise(&[3, 6], 5)], &["RMSNormalization"]);
    }
}

#[test]
fn a_gate_of_another_value_is_no_gelu() {
    let mut b = Builder::new();
    let x = b.input("x", &known(&[3]));
    let z = b.input("z", &known(&[3]));
    let (root, one, half) = (b.number(2.0_f32.sqrt()), b.number(1.0), b.number(0.5));
    let scaled = b.op("Div", &[x, root], &[]);
    let erf = b.op("Erf", &[scaled], &[]);
    let gate = b.op("Add", &[erf, one], &[]);
    let product = b.op("Mul", &[z, gate], &[]);
    let y = b.op("Mul", &[product, half], &[]);
    check(b.finish(y), &[noise(&[3], 1), noise(&[3], 2)], &["Div", "Erf", "Add", "Mul", "Mul"]);
}

#[test]
fn layer_norm_is_found_in_its_parts() {
    let mut b = Builder::new();
    let x = b.input("x", &[Dim::symbol("batch"), Dim::Known(8)]);
    let axes = [("axes", ints(&[-1]))];
    let mean = b.op("ReduceMean", &[x], &axes);
    let centred = b.op("Sub", &[x, mean], &[]);
    let two = b.number(2.0);
    let squared = b.op("Pow", &[centred, two], &[]);
    let variance = b.op("ReduceMean", &[squared], &axes);
    let epsilon = b.number(1e-5);
    let sum = b.op("Add", &[variance, epsilon], &[]);
    let deviation = b.op("Sqrt", &[sum], &[]);
    let normal = b.op("Div", &[centred, deviation], &[]);
    let scale = b.constant(noise(&[8], 3));
    let bias = b.constant(noise(&[8], 4));
    let scaled = b.op("Mul", &[normal, scale], &[]);
    let y = b.op("Add", &[scaled, bias], &[]);
    check(b.finish(y), &[noise(&[3, 8], 5)], &["LayerNormalization"]);
}

#[test]
fn products_take_bias_residual_and_activation() {
    let mut b = Builder::new();
    let x = b.input("x", &[Dim::symbol("batch"), Dim::Known(6)]);
    let w = b.constant(noise(&[6, 6], 1));
    let bias = b.constant(noise(&[6], 2));
    let product = b.op("MatMul", &[x, w], &[]);
    let biased = b.op("Add", &[bias, product], &[]);
    let sum = b.op("Add", &[biased, x], &[]);
    let first = b.op("Relu", &[sum], &[]);
    let flags = [("transB", AttributeValue::Int(1))];
    let gemm = b.op("Gemm", &[first, w, bias], &flags);
    let y = b.op("Tanh", &[gemm], &[]);
    check(b.finish(y), &[noise(&[4, 6], 7)], &["FusedMatMul", "FusedMatMul"]);
}

#[test]
fn a_product_that_is_read_twice_keeps_its_own_result() {
    let mut b = Builder::new();
    let x = b.input("x", &known(&[2, 3]));
    let w = b.constant(noise(&[3, 3], 1));
    let product = b.op("MatMul", &[x, w], &[]);
    let active = b.op("Relu", &[product], &[]);
    let y = b.op("Mul", &[active, product], &[]);
    check(b.finish(y), &[noise(&[2, 3], 2)], &["FusedMatMul", "Relu", "Mul"]);
}

/// Self-attention as PyTorch exports it, with transposes, scale and mask.
fn attention(guarded: bool) -> (Graph, Vec<Tensor>) {
    let mut b = Builder::new();
    let shape = known(&[2, 3, 4, 5]);
    let (q, k, v) = (b.input("q", &shape), b.input("k", &shape), b.input("v", &shape));
    let mask = b.input("mask", &known(&[2, 1, 1, 3]));
    let heads_first = [("perm", ints(&[0, 2, 1, 3]))];
    let q = b.op("Transpose", &[q], &heads_first);
    let k = b.op("Transpose", &[k], &[("perm", ints(&[0, 2, 3, 1]))]);
    let v = b.op("Transpose", &[v], &heads_first);
    let factor = b.number(0.4);
    let q = b.op("Mul", &[q, factor], &[]);
    let scores = b.op("MatMul", &[q, k], &[]);
    let masked = b.op("Add", &[scores, mask], &[]);
    let mut weights = b.op("Softmax", &[masked], &[("axis", AttributeValue::Int(-1))]);
    if guarded {
        let is_nan = b.op("IsNaN", &[weights], &[]);
        let zero = b.number(0.0);
        weights = b.op("Where", &[is_nan, zero, weights], &[]);
    }
    let mixed = b.op("MatMul", &[weights, v], &[]);
    let y = b.op("Transpose", &[mixed], &heads_first);
    let mut inputs: Vec<Tensor> = (1..4).map(|seed| noise(&[2, 3, 4, 5], seed)).collect();
    let off = f32::NEG_INFINITY;
    let mask =
        if guarded { [off, off, off, 0.0, 0.0, off] } else { [0.0, -1.0, 1.0, 0.0, 0.0, off] };
    inputs.push(Tensor::from_slice(&[2, 1, 1, 3], &mask).unwrap());
    (b.finish(y), inputs)
}

#[test]
fn attention_absorbs_transposes_scale_mask_and_guard() {
    for guarded in [false, true] {
        let (graph, inputs) = attention(guarded);
        check(graph, &inputs, &["Attention"]);
    }
}

/// ONNX's own attention between the transposes of exporters, with a mask of booleans.
fn onnx_attention(masked: bool) -> (Graph, Vec<Tensor>) {
    let mut b = Builder::new();
    b.graph.opsets.insert(String::new(), 23);
    let (batch, sequence) = (Dim::symbol("batch"), Dim::symbol("sequence"));
    let dims = [batch.clone(), sequence.clone(), Dim::Known(2), Dim::Known(3)];
    let turn = ("perm", ints(&[0, 2, 1, 3]));
    let [q, k, v] = ["q", "k", "v"].map(|name| {
        let stored = b.input(name, &dims);
        b.op("Transpose", &[stored], std::slice::from_ref(&turn))
    });
    let mut inputs = vec![q, k, v];
    let mut values: Vec<Tensor> = (0..3).map(|seed| noise(&[2, 4, 2, 3], seed)).collect();
    if masked {
        let keys = b.input("keys", &[batch, Dim::Known(1), Dim::Known(1), sequence]);
        let zero = b.number(0.0);
        inputs.push(b.op("Greater", &[keys, zero], &[]));
        values.push(noise(&[2, 1, 1, 4], 5));
    }
    let attended = b.op("Attention", &inputs, &[]);
    let y = b.op("Transpose", &[attended], &[turn]);
    (b.finish(y), values)
}

#[test]
fn onnx_attention_absorbs_transposes_and_takes_its_mask_as_numbers() {
    let (graph, inputs) = onnx_attention(false);
    check(graph, &inputs, &["Attention"]);
    let (graph, inputs) = onnx_attention(true);
    check(graph, &inputs, &["Greater", "Where", "Attention"]);
}

#[test]
fn onnx_attention_with_a_past_joins_it_first() {
    for causal in [0, 1] {
        let mut b = Builder::new();
        b.graph.opsets.insert(String::new(), 23);
        let dims = |heads: usize, rows: &str| {
            [Dim::symbol("batch"), Dim::Known(heads), Dim::symbol(rows), Dim::Known(3)]
        };
        let q = b.input("q", &dims(4, "sequence"));
        let [k, v] = ["k", "v"].map(|name| b.input(name, &dims(2, "sequence")));
        let past = ["past.k", "past.v"].map(|name| b.input(name, &dims(2, "past")));
        let outputs = ["y", "all.k", "all.v"].map(|name| b.graph.value_named(name));
        let attributes = [("is_causal".to_owned(), AttributeValue::Int(causal))].into();
        let inputs = vec![Some(q), Some(k), Some(v), None, Some(past[0]), Some(past[1])];
        let outs = outputs.map(Some).to_vec();
        b.graph.add_node("", "Attention", "n", &attributes, inputs, outs).unwrap();
        b.graph.outputs.extend(&outputs[1..]);
        let graph = b.finish(outputs[0]);
        let mut inputs = vec![noise(&[2, 4, 3, 3], 1)];
        inputs.extend([2, 3].map(|seed| noise(&[2, 2, 3, 3], seed)));
        inputs.extend([4, 5].map(|seed| noise(&[2, 2, 2, 3], seed)));
        check(graph, &inputs, &["Concat", "Concat", "Attention"]);
    }
}

/// An attention of `com.microsoft`: over rows that it projects itself, or over projections.
fn contrib_attention(projects: bool, masked: i32, causal: i64) -> (Graph, Vec<Tensor>) {
    let mut b = Builder::new();
    b.graph.opsets.insert("com.microsoft".into(), 1);
    let (batch, sequence) = (Dim::symbol("batch"), Dim::symbol("sequence"));
    let dims = [batch.clone(), sequence.clone(), Dim::Known(8)];
    let mut inputs = Vec::new();
    let mut values = Vec::new();
    let names = if projects { &["x"][..] } else { &["q", "k", "v"] };
    for (name, seed) in names.iter().zip(1..) {
        inputs.push(Some(b.input(name, &dims)));
        values.push(noise(&[2, 3, 8], seed));
    }
    if projects {
        inputs.push(Some(b.constant(noise(&[8, 20], 4))));
        inputs.push(Some(b.constant(noise(&[20], 5))));
    } else {
        inputs.push(None);
    }
    if masked == 1 {
        let mask = b.graph.value_named("mask");
        let fact = Fact::new(DataType::Int32, vec![batch, sequence]);
        b.graph.value_mut(mask).declared = Some(fact);
        b.graph.inputs.push(mask);
        inputs.push(Some(mask));
        values.push(Tensor::from_slice(&[2, 3], &[1_i32, 1, 0, 0, 1, 1]).unwrap());
    } else if masked == 2 {
        let dims = [Dim::Known(1), Dim::Known(2), sequence.clone(), sequence];
        inputs.extend(if projects { vec![None, None] } else { vec![None] });
        inputs.push(Some(b.input("bias", &dims)));
        values.push(noise(&[1, 2, 3, 3], 6));
    }
    let mut attributes: Attributes = [("unidirectional", causal), ("num_heads", 2)]
        .map(|(name, value)| (name.to_owned(), AttributeValue::Int(value)))
        .into();
    if projects {
        attributes.insert("qkv_hidden_sizes".into(), ints(&[6, 6, 8]));
    }
    let op = if projects { "Attention" } else { "MultiHeadAttention" };
    let y = b.graph.value_named("y");
    b.graph.add_node("com.microsoft", op, "n", &attributes, inputs, vec![Some(y)]).unwrap();
    (b.finish(y), values)
}

#[test]
fn attention_of_optimised_models_becomes_products_and_the_fused_one() {
    for projects in [true, false] {
        for masked in 0..3 {
            for causal in [0, 1] {
                let (graph, inputs) = contrib_attention(projects, masked, causal);
                let mut rewritten = graph.clone();
                optimise(&mut rewritten, RewriteLevel::O2).unwrap();
                check_equal(&graph, &rewritten, &inputs);
                let names = op_types(&rewritten);
                let plain = rewritten.nodes.iter().all(|node| node.domain != "com.microsoft");
                assert!(plain && names.contains(&"Attention"), "{names:?}");
                // So that the rewritten graph can be stored.
                assert!(rewritten.nodes.iter().all(|node| node.attributes().is_some()));
            }
        }
    }
}

/// A residual block: two convolutions, the first with batch normalisation and ReLU6, then a sum,
/// ReLU and global pooling.
fn residual_block() -> (Graph, Vec<Tensor>) {
    let mut b = Builder::new();
    let x = b.input("x", &[Dim::symbol("batch"), Dim::Known(4), Dim::Known(6), Dim::Known(5)]);
    let pads = [("pads", ints(&[1, 1, 1, 1]))];
    let weights = [b.constant(noise(&[4, 4, 3, 3], 1)), b.constant(noise(&[4, 4, 3, 3], 2))];
    let first = b.op("Conv", &[x, weights[0]], &pads);
    let parameters: Vec<ValueId> = (3..6).map(|seed| b.constant(noise(&[4], seed))).collect();
    let variance = b.constant(Tensor::from_slice(&[4], &[0.5_f32, 1.0, 2.0, 0.1]).unwrap());
    let normal = b.op(
        "BatchNormalization",
        &[first, parameters[0], parameters[1], parameters[2], variance],
        &[],
    );
    let (low, high) = (b.number(0.0), b.number(6.0));
    let active = b.op("Clip", &[normal, low, high], &[]);
    let second = b.op("Conv", &[active, weights[1]], &pads);
    let sum = b.op("Add", &[x, second], &[]);
    let relu = b.op("Relu", &[sum], &[]);
    let pooled = b.op("GlobalAveragePool", &[relu], &[]);
    let y = b.op("Flatten", &[pooled], &[]);
    (b.finish(y), vec![noise(&[2, 4, 6, 5], 9)])
}

#[test]
fn convolutions_take_normalisation_residual_and_activation() {
    let (graph, inputs) = residual_block();
    check(graph, &inputs, &["FusedConv", "FusedConv", "GlobalAveragePool", "Flatten"]);
}

#[test]
fn channels_move_last_once_for_a_whole_region() {
    let (graph, inputs) = residual_block();
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::O3).unwrap();
    assert_eq!(channels_last(&mut rewritten).unwrap(), 3);
    let expected =
        ["Transpose", "FusedConv", "FusedConv", "GlobalAveragePoolNhwc", "Transpose", "Flatten"];
    assert_eq!(op_types(&rewritten), expected);
    check_equal(&graph, &rewritten, &inputs);
}

/// Convolutions as MobileNet has them; gives the image behind each, one being a result of the graph.
fn depthwise_block(result: usize) -> (Graph, Vec<Tensor>) {
    let mut b = Builder::new();
    let x = b.input("x", &[Dim::symbol("batch"), Dim::Known(3), Dim::Known(8), Dim::Known(7)]);
    let pads = ("pads", ints(&[1, 1, 1, 1]));
    let group = ("group", AttributeValue::Int(6));
    let mut weight = |shape: &[usize], seed| b.constant(noise(shape, seed));
    let stem = weight(&[6, 3, 3, 3], 1);
    let filters = [weight(&[6, 1, 3, 3], 2), weight(&[6, 1, 3, 3], 3)];
    let dense = [weight(&[6, 6, 1, 1], 4), weight(&[6, 6, 1, 1], 5)];
    let mut images = vec![b.op("Conv", &[x, stem], std::slice::from_ref(&pads))];
    for (filter, dense) in filters.into_iter().zip(dense) {
        let filtered =
            b.op("Conv", &[images[images.len() - 1], filter], &[pads.clone(), group.clone()]);
        let active = b.op("Relu", &[filtered], &[]);
        images.extend([active, b.op("Conv", &[active, dense], &[])]);
    }
    let sum = b.op("Add", &[images[2], images[4]], &[]);
    images.push(sum);
    if result < 5 {
        b.graph.outputs.push(images[result]);
    }
    (b.finish(sum), vec![noise(&[2, 3, 8, 7], 9)])
}

#[test]
fn depthwise_convolutions_take_the_dense_ones_around_them() {
    // Nothing but the sum is a result; then the first image, that behind the first filter, and that
    // behind the second.
    let cases: [(usize, &[&str]); 4] = [
        (5, &["Transpose", "ConvChain", "ConvChain", "Transpose"]),
        (0, &["Transpose", "FusedConv", "ConvChain", "ConvChain", "Transpose", "Transpose"]),
        (1, &["Transpose", "ConvChain", "FusedConv", "ConvChain", "Transpose", "Transpose"]),
        (3, &["Transpose", "ConvChain", "FusedConv", "FusedConv", "Transpose", "Transpose"]),
    ];
    for (result, expected) in cases {
        let (graph, inputs) = depthwise_block(result);
        let mut rewritten = graph.clone();
        optimise(&mut rewritten, RewriteLevel::O3).unwrap();
        // Channels first there is nothing that it takes.
        assert_eq!(conv_chains(&mut rewritten).unwrap(), 0);
        channels_last(&mut rewritten).unwrap();
        conv_chains(&mut rewritten).unwrap();
        let mut found = op_types(&rewritten);
        // Where transposes of results stand does not matter.
        found.sort_by_key(|op| usize::from(*op == "Transpose"));
        let mut expected = expected.to_vec();
        expected.sort_by_key(|op| usize::from(*op == "Transpose"));
        assert_eq!(found, expected, "{result}");
        check_equal(&graph, &rewritten, &inputs);
    }
}

#[test]
fn transposes_around_a_convolution_go_with_its_order() {
    let mut b = Builder::new();
    let x = b.input("x", &[Dim::symbol("batch"), Dim::symbol("frames"), Dim::Known(4)]);
    let turn = [("perm", ints(&[0, 2, 1]))];
    let first = b.op("Transpose", &[x], &turn);
    let weights = b.constant(noise(&[4, 4, 1], 1));
    let conv = b.op("Conv", &[first, weights], &[]);
    let last = b.op("Transpose", &[conv], &turn);
    let y = b.op("Add", &[last, x], &[]);
    let graph = b.finish(y);
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::O3).unwrap();
    channels_last(&mut rewritten).unwrap();
    assert_eq!(op_types(&rewritten), ["FusedConv"]);
    check_equal(&graph, &rewritten, &[noise(&[2, 5, 4], 3)]);
}

#[test]
fn pieces_of_channels_stay_last_between_convolutions() {
    for axis in [1_i64, 2, -1] {
        let mut b = Builder::new();
        let x = b.input("x", &[Dim::symbol("batch"), Dim::Known(4), Dim::Known(6)]);
        let weights = b.constant(noise(&[4, 4, 1], 1));
        let conv = b.op("Conv", &[x, weights], &[]);
        let sizes = b.constant(Tensor::vector(vec![2_i64, if axis == 1 { 2 } else { 4 }]));
        let at = [("axis", AttributeValue::Int(axis))];
        let (first, second) = b.split(conv, sizes, &at);
        let gate = b.op("Sigmoid", &[second], &[]);
        let joined = b.op("Concat", &[gate, first], &at);
        let y = b.op("Conv", &[joined, weights], &[]);
        let graph = b.finish(y);
        let mut rewritten = graph.clone();
        optimise(&mut rewritten, RewriteLevel::O3).unwrap();
        channels_last(&mut rewritten).unwrap();
        let names =
            ["Transpose", "FusedConv", "Split", "Sigmoid", "Concat", "FusedConv", "Transpose"];
        assert_eq!(op_types(&rewritten), names, "{axis}");
        check_equal(&graph, &rewritten, &[noise(&[2, 4, 6], 3)]);
    }
}

#[test]
fn images_between_convolutions_grow_channels_last() {
    let mut b = Builder::new();
    let x = b.input("x", &[Dim::symbol("batch"), Dim::Known(4), Dim::Known(6), Dim::Known(5)]);
    let weights = b.constant(noise(&[4, 4, 1, 1], 1));
    let conv = b.op("Conv", &[x, weights], &[]);
    let roi = b.constant(Tensor::vector(Vec::<f32>::new()));
    let scales = b.constant(Tensor::vector(vec![1.0_f32, 1.0, 2.0, 3.0]));
    let larger = b.op("Resize", &[conv, roi, scales], &[]);
    let y = b.op("Conv", &[larger, weights], &[]);
    let graph = b.finish(y);
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::O3).unwrap();
    channels_last(&mut rewritten).unwrap();
    let names = ["Transpose", "FusedConv", "Resize", "FusedConv", "Transpose"];
    assert_eq!(op_types(&rewritten), names);
    check_equal(&graph, &rewritten, &[noise(&[2, 4, 6, 5], 3)]);
}

#[test]
fn means_over_all_pixels_are_poolings_where_channels_are_last() {
    let cases: [(&[i64], bool, &[&str]); 4] = [
        (&[2, 3], true, &["Transpose", "FusedConv", "GlobalAveragePoolNhwc", "Transpose"]),
        (&[-1, -2], false, &["Transpose", "FusedConv", "GlobalAveragePoolNhwc", "Flatten"]),
        (&[2], true, &["Transpose", "FusedConv", "Transpose", "ReduceMean"]),
        (&[1, 2, 3], false, &["Transpose", "FusedConv", "Transpose", "ReduceMean"]),
    ];
    for (axes, keepdims, names) in cases {
        let mut b = Builder::new();
        let x = b.input("x", &[Dim::symbol("batch"), Dim::Known(4), Dim::Known(6), Dim::Known(5)]);
        let weights = b.constant(noise(&[4, 4, 1, 1], 1));
        let conv = b.op("Conv", &[x, weights], &[]);
        let kept = ("keepdims", AttributeValue::Int(i64::from(keepdims)));
        let y = b.op("ReduceMean", &[conv], &[("axes", ints(axes)), kept]);
        let graph = b.finish(y);
        let mut rewritten = graph.clone();
        optimise(&mut rewritten, RewriteLevel::O3).unwrap();
        channels_last(&mut rewritten).unwrap();
        assert_eq!(op_types(&rewritten), names, "{axes:?}");
        check_equal(&graph, &rewritten, &[noise(&[2, 4, 6, 5], 3)]);
    }
}

#[test]
fn basic_level_only_folds_and_removes() {
    let mut b = Builder::new();
    let x = b.input("x", &known(&[2, 3]));
    let w = b.constant(noise(&[3, 3], 1));
    let folded = b.op("Relu", &[w], &[]);
    let same = b.op("Identity", &[x], &[]);
    let product = b.op("MatMul", &[same, folded], &[]);
    let y = b.op("Relu", &[product], &[]);
    let graph = b.finish(y);
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::O1).unwrap();
    assert_eq!(op_types(&rewritten), ["MatMul", "Relu"]);
    check_equal(&graph, &rewritten, &[noise(&[2, 3], 2)]);
    let mut untouched = graph.clone();
    assert!(optimise(&mut untouched, RewriteLevel::O0).unwrap().applied.is_empty());
}

#[test]
fn a_product_of_constants_that_takes_long_is_left_to_the_run() {
    for (len, folded) in [(64, true), (2048, false)] {
        let mut b = Builder::new();
        let x = b.input("x", &known(&[len, len]));
        let zeros = || Tensor::zeros(DataType::Fp32, &[len, len]).unwrap();
        let (left, right) = (b.constant(zeros()), b.constant(zeros()));
        let weights = b.op("MatMul", &[left, right], &[]);
        let sum = b.op("Add", &[x, weights], &[]);
        let mut graph = b.finish(sum);
        optimise(&mut graph, RewriteLevel::O1).unwrap();
        assert_eq!(op_types(&graph).contains(&"MatMul"), !folded, "{len}");
    }
}
