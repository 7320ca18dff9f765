//! Quantised graphs as ONNX Runtime's quantiser writes them, in operators of integers.
//!
//! A value that lies between two integers may become the other one: a product of floats rounds at
//! other places than one of integers. So results may be one step apart.

#![allow(clippy::cast_possible_truncation, reason = "the numbers of these tests are small")]

use galatea_graph::evaluate;
use proptest::prelude::*;

use super::*;

/// A graph whose opset has every type of quantised values.
fn builder() -> Builder {
    let mut b = Builder::new();
    b.graph.opsets.insert(String::new(), 21);
    b.graph.opsets.insert("com.microsoft".into(), 1);
    b
}

/// Integers that look random and are the same in every run, as bytes of one type.
pub(crate) fn bytes(shape: &[usize], dtype: DataType, seed: u32) -> Tensor {
    let all = noise(shape, seed).to_vec::<f32>().unwrap();
    match dtype {
        DataType::Int8 => {
            Tensor::from_vec(shape, all.iter().map(|v| (v * 127.0) as i8).collect()).unwrap()
        }
        _ => Tensor::from_vec(shape, all.iter().map(|v| (v * 127.0 + 128.0) as u8).collect())
            .unwrap(),
    }
}

fn zero(dtype: DataType, value: i32) -> Tensor {
    match dtype {
        DataType::Int8 => Tensor::scalar(value as i8),
        _ => Tensor::scalar(value as u8),
    }
}

/// Scale and zero point of a tensor.
type Params = (f32, DataType, i32);

const ACT: Params = (0.02, DataType::Uint8, 120);
const WIDE: Params = (0.09, DataType::Uint8, 131);
const SIGNED: Params = (0.03, DataType::Int8, -5);

impl Builder {
    fn params(&mut self, (scale, dtype, value): Params) -> [ValueId; 2] {
        [self.number(scale), self.constant(zero(dtype, value))]
    }

    fn quantize(&mut self, x: ValueId, params: Params) -> ValueId {
        let [scale, zero] = self.params(params);
        self.op("QuantizeLinear", &[x, scale, zero], &[])
    }

    fn dequantize(&mut self, x: ValueId, params: Params) -> ValueId {
        let [scale, zero] = self.params(params);
        self.op("DequantizeLinear", &[x, scale, zero], &[])
    }

    /// Quantised and dequantised again.
    fn through(&mut self, x: ValueId, params: Params) -> ValueId {
        let quantized = self.quantize(x, params);
        self.dequantize(quantized, params)
    }

    /// Dequantised weights with a scale for each position of an axis, or one for all.
    fn weights(&mut self, shape: &[usize], axis: Option<i64>, seed: u32) -> ValueId {
        let weights = self.constant(bytes(shape, DataType::Int8, seed));
        let Some(axis) = axis else { return self.dequantize(weights, (0.01, DataType::Int8, 0)) };
        let count = shape[axis as usize];
        let scales: Vec<f32> = (0..count).map(|at| 0.005 + at as f32 * 0.001).collect();
        let scale = self.constant(Tensor::vector(scales));
        let zero = self.constant(Tensor::vector(vec![0_i8; count]));
        let attributes = [("axis", AttributeValue::Int(axis))];
        self.op("DequantizeLinear", &[weights, scale, zero], &attributes)
    }
}

/// Rewrites, checks the operators, and checks that results are at most one step apart.
fn check_steps(graph: &Graph, inputs: &[Tensor], expected: &[&str], step: f64) -> Graph {
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::O3).unwrap();
    assert_eq!(op_types(&rewritten), expected);
    // So that the rewritten graph can be stored.
    assert!(rewritten.nodes.iter().all(|node| node.attributes().is_some()));
    near(graph, &rewritten, inputs, step);
    let mut last = rewritten.clone();
    channels_last(&mut last).unwrap();
    last.sort().unwrap();
    near(graph, &last, inputs, step);
    rewritten
}

pub(crate) fn near(graph: &Graph, rewritten: &Graph, inputs: &[Tensor], step: f64) {
    let before = evaluate::run(graph, inputs).unwrap();
    let after = evaluate::run(rewritten, inputs).unwrap();
    for (found, expected) in after.iter().zip(&before) {
        compare(found, expected, Tolerance::Within(step * 1.001)).unwrap();
    }
}

const QDQ: [&str; 2] = ["QuantizeLinear", "DequantizeLinear"];

/// Operators between the first quantisation and the last way back to floats.
fn between(inner: &[&'static str]) -> Vec<&'static str> {
    let mut all = vec![QDQ[0]];
    all.extend(inner);
    all.push(QDQ[1]);
    all
}

#[test]
fn a_convolution_with_bias_and_relu_is_one_of_integers() {
    for (axis, out) in
        [(None, ACT), (Some(0), ACT), (Some(0), (0.02, DataType::Uint8, 0)), (None, SIGNED)]
    {
        let mut b = builder();
        let x = b.input("x", &known(&[2, 3, 6, 5]));
        let x = b.through(x, ACT);
        let w = b.weights(&[4, 3, 3, 3], axis, 1);
        let bias = b.constant(Tensor::vector(vec![1000_i32, -2000, 0, 500]));
        let bias_scale = b.number(0.0002);
        let bias = b.op("DequantizeLinear", &[bias, bias_scale], &[]);
        let y = b.op("Conv", &[x, w, bias], &[("pads", ints(&[1, 1, 1, 1]))]);
        let y = b.op("Relu", &[y], &[]);
        let y = b.through(y, out);
        // An unsigned zero point of 0 limits by itself.
        let inner: &[&str] = if out.2 == 0 { &["QLinearConv"] } else { &["QLinearConv", "Clip"] };
        let step = f64::from(out.0);
        check_steps(&b.finish(y), &[noise(&[2, 3, 6, 5], 3)], &between(inner), step);
    }
}

#[test]
fn a_sum_behind_convolutions_is_made_with_the_later_one() {
    for (out, group) in [(SIGNED, 1), (ACT, 1), (ACT, 3)] {
        let mut b = builder();
        let x = b.input("x", &known(&[2, 3, 6, 5]));
        let x = b.through(x, ACT);
        let attributes = [("pads", ints(&[1, 1, 1, 1])), ("group", AttributeValue::Int(group))];
        let w = b.weights(&[3, 3 / group as usize, 3, 3], Some(0), 1);
        let first = b.op("Conv", &[x, w], &attributes);
        let first = b.through(first, WIDE);
        let w = b.weights(&[3, 3 / group as usize, 3, 3], None, 2);
        let second = b.op("Conv", &[x, w], &attributes);
        let second = b.through(second, SIGNED);
        let y = b.op("Add", &[first, second], &[]);
        let y = b.through(y, out);
        let inner = ["QLinearConv", "QLinearConv", "QLinearAdd"];
        let graph = b.finish(y);
        let image = [noise(&[2, 3, 6, 5], 3)];
        let mut last = check_steps(&graph, &image, &between(&inner), 0.09);
        channels_last(&mut last).unwrap();
        let found = op_types(&last);
        let fused = found.iter().filter(|op| **op == "QLinearConvAdd").count();
        // The kernel that sums takes one group.
        assert_eq!(fused, usize::from(group == 1), "{found:?}");
        let sums = last.nodes.iter().filter(|node| node.op_type == "QLinearConvAdd");
        assert!(sums.into_iter().all(|node| node.attributes().is_some()));
    }
}

#[test]
fn products_are_products_of_integers() {
    for (input, output) in [(ACT, WIDE), (SIGNED, SIGNED), (ACT, SIGNED)] {
        for axis in [None, Some(1)] {
            let mut b = builder();
            let x = b.input("x", &[Dim::symbol("rows"), Dim::Known(7), Dim::Known(6)]);
            let x = b.through(x, input);
            let w = b.weights(&[6, 5], axis, 1);
            let y = b.op("MatMul", &[x, w], &[]);
            let y = b.through(y, output);
            let step = f64::from(output.0);
            check_steps(&b.finish(y), &[noise(&[3, 7, 6], 3)], &between(&["QLinearMatMul"]), step);
        }
    }
}

#[test]
fn a_product_of_two_values_of_the_run_is_one_of_integers() {
    let mut b = builder();
    let x = b.input("x", &known(&[2, 4, 6]));
    let z = b.input("z", &known(&[2, 6, 3]));
    let (x, z) = (b.through(x, ACT), b.through(z, SIGNED));
    let y = b.op("MatMul", &[x, z], &[]);
    let y = b.through(y, WIDE);
    let expected = ["QuantizeLinear", "QuantizeLinear", "QLinearMatMul", "DequantizeLinear"];
    check_steps(&b.finish(y), &[noise(&[2, 4, 6], 3), noise(&[2, 6, 3], 4)], &expected, 0.09);
}

#[test]
fn a_product_that_stays_a_float_takes_its_bias() {
    let mut b = builder();
    let x = b.input("x", &known(&[4, 6]));
    let x = b.through(x, ACT);
    let w = b.weights(&[6, 5], Some(1), 1);
    let y = b.op("MatMul", &[x, w], &[]);
    let bias = b.constant(noise(&[5], 2));
    let y = b.op("Add", &[bias, y], &[]);
    let y = b.op("Tanh", &[y], &[]);
    let expected = ["QuantizeLinear", "MatMulIntegerToFloat", "Tanh"];
    check_steps(&b.finish(y), &[noise(&[4, 6], 3)], &expected, 1e-5);
}

#[test]
fn gemms_are_gemms_of_integers_with_their_bias() {
    for quantized in [true, false] {
        let mut b = builder();
        let x = b.input("x", &known(&[4, 6]));
        let x = b.through(x, SIGNED);
        let w = b.weights(&[5, 6], Some(0), 1);
        let bias = b.constant(noise(&[5], 2));
        let flags = [("transB", AttributeValue::Int(1)), ("alpha", AttributeValue::Float(0.5))];
        let mut y = b.op("Gemm", &[x, w, bias], &flags);
        if quantized {
            y = b.through(y, WIDE);
        }
        let last: &[&str] = if quantized { &["QGemm", "DequantizeLinear"] } else { &["QGemm"] };
        let expected = [&["QuantizeLinear"], last].concat();
        // Half a unit of the bias beside the rounding.
        let step = if quantized { 0.09 } else { 1e-3 };
        check_steps(&b.finish(y), &[noise(&[4, 6], 3)], &expected, step);
    }
}

#[test]
fn dynamic_quantisation_is_one_product() {
    let mut b = builder();
    let x = b.input("x", &[Dim::symbol("rows"), Dim::Known(6)]);
    let names = ["q", "scale", "zero"].map(|name| b.graph.value_named(name));
    let outputs = names.map(Some).to_vec();
    let none = Attributes::new();
    b.graph.add_node("", "DynamicQuantizeLinear", "dq", &none, vec![Some(x)], outputs).unwrap();
    let [q, scale, zero_point] = names;
    let w = b.constant(bytes(&[6, 5], DataType::Int8, 1));
    let w_zero = b.constant(zero(DataType::Int8, 0));
    let product = b.op("MatMulInteger", &[q, w, zero_point, w_zero], &[]);
    let product = b.op("Cast", &[product], &[("to", AttributeValue::Int(1))]);
    let w_scale = b.number(0.01);
    let scales = b.op("Mul", &[scale, w_scale], &[]);
    let y = b.op("Mul", &[product, scales], &[]);
    let bias = b.constant(noise(&[5], 2));
    let y = b.op("Add", &[y, bias], &[]);
    let expected = ["DynamicQuantizeLinear", "MatMulIntegerToFloat"];
    check_steps(&b.finish(y), &[noise(&[4, 6], 3)], &expected, 1e-5);
}

#[test]
fn dynamic_products_of_one_value_share_its_quantisation() {
    let mut b = builder();
    let x = b.input("x", &[Dim::symbol("rows"), Dim::Known(6)]);
    let w_scale = b.number(0.01);
    let bias = b.constant(noise(&[5], 2));
    let made = [1, 2].map(|seed| {
        let w = b.constant(bytes(&[6, 5], DataType::Int8, seed));
        let zero = b.constant(zero(DataType::Int8, 0));
        let output = b.graph.fresh_value("product");
        let mut inputs = vec![Some(x), Some(w), Some(w_scale), Some(zero)];
        inputs.extend((seed == 2).then_some(Some(bias)));
        let op = "DynamicQuantizeMatMul";
        let none = Attributes::new();
        b.graph.add_node("com.microsoft", op, "", &none, inputs, vec![Some(output)]).unwrap();
        output
    });
    let y = b.op("Mul", &made, &[]);
    let expected = ["DynamicQuantizeLinear", "MatMulIntegerToFloat", "MatMulIntegerToFloat", "Mul"];
    check_steps(&b.finish(y), &[noise(&[4, 6], 3)], &expected, 1e-5);
}

#[test]
fn moves_and_limits_between_quantised_values_are_exact() {
    let mut b = builder();
    let x = b.input("x", &known(&[2, 4, 6, 6]));
    let x = b.through(x, ACT);
    let pool = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    let y = b.op("MaxPool", &[x], &pool);
    let y = b.through(y, ACT);
    let z = b.op("Transpose", &[y], &[("perm", ints(&[0, 1, 3, 2]))]);
    let z = b.through(z, ACT);
    let y = b.op("Concat", &[y, z], &[("axis", AttributeValue::Int(1))]);
    let y = b.through(y, ACT);
    let limits = [b.number(-0.1), b.number(0.4)];
    let y = b.op("Clip", &[y, limits[0], limits[1]], &[]);
    let y = b.through(y, ACT);
    let shape = b.constant(Tensor::vector(vec![2_i64, -1]));
    let y = b.op("Reshape", &[y, shape], &[]);
    let y = b.through(y, ACT);
    let expected = between(&["MaxPool", "Transpose", "Concat", "Clip", "Reshape"]);
    check_steps(&b.finish(y), &[noise(&[2, 4, 6, 6], 3)], &expected, 0.0);
}

#[test]
fn a_move_into_another_scale_stays_between_floats() {
    let mut b = builder();
    let x = b.input("x", &known(&[4, 6]));
    let x = b.through(x, ACT);
    let y = b.op("Transpose", &[x], &[]);
    let y = b.through(y, WIDE);
    let expected =
        ["QuantizeLinear", "DequantizeLinear", "Transpose", "QuantizeLinear", "DequantizeLinear"];
    check_steps(&b.finish(y), &[noise(&[4, 6], 3)], &expected, 0.0);
}

#[test]
fn pairs_are_pairs_of_integers_where_a_kernel_takes_their_shapes() {
    let shapes: [&[usize]; 2] = [&[2, 3, 4, 4], &[3, 1, 1]];
    for (op, name) in [("Add", "QLinearAdd"), ("Mul", "QLinearMul")] {
        for shape in shapes {
            let mut b = builder();
            let x = b.input("x", &known(shapes[0]));
            let z = b.input("z", &known(shape));
            let (x, z) = (b.through(x, ACT), b.through(z, SIGNED));
            let y = b.op(op, &[x, z], &[]);
            let y = b.op("Relu", &[y], &[]);
            let y = b.through(y, (0.03, DataType::Uint8, 0));
            let inputs = [noise(shapes[0], 3), noise(shape, 4)];
            let graph = b.finish(y);
            let mut rewritten = graph.clone();
            optimise(&mut rewritten, RewriteLevel::O3).unwrap();
            assert_eq!(op_types(&rewritten).contains(&name), shape == shapes[0]);
            assert_eq!(op_types(&rewritten).contains(&op), shape != shapes[0]);
            near(&graph, &rewritten, &inputs, 0.03);
        }
        let mut b = builder();
        let x = b.input("x", &[Dim::symbol("rows"), Dim::Known(4)]);
        let x = b.through(x, ACT);
        let vector = b.constant(bytes(&[4], DataType::Int8, 2));
        let vector = b.dequantize(vector, SIGNED);
        let y = b.op(op, &[vector, x], &[]);
        let y = b.through(y, WIDE);
        check_steps(&b.finish(y), &[noise(&[3, 4], 3)], &between(&[name]), 0.09);
    }
}

#[test]
fn weights_that_no_rule_takes_are_folded() {
    let mut b = builder();
    let x = b.input("x", &known(&[4, 6]));
    let w = b.weights(&[6, 5], Some(1), 1);
    let y = b.op("MatMul", &[x, w], &[]);
    let graph = b.finish(y);
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::O1).unwrap();
    assert_eq!(op_types(&rewritten), ["MatMul"]);
    check_steps(&graph, &[noise(&[4, 6], 3)], &["FusedMatMul"], 1e-5);
}

#[test]
fn a_result_that_others_read_too_stays_a_float() {
    let mut b = builder();
    let x = b.input("x", &known(&[4, 6]));
    let x = b.through(x, ACT);
    let w = b.weights(&[6, 6], None, 1);
    let y = b.op("MatMul", &[x, w], &[]);
    let q = b.through(y, ACT);
    let y = b.op("Mul", &[q, y], &[]);
    let graph = b.finish(y);
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::O3).unwrap();
    assert!(op_types(&rewritten).contains(&"MatMulIntegerToFloat"));
    assert!(!op_types(&rewritten).contains(&"QLinearMatMul"));
}

#[test]
fn functions_of_one_value_are_tables() {
    let mut b = builder();
    let x = b.input("x", &known(&[2, 5]));
    let x = b.through(x, ACT);
    let root = b.number(1.4);
    let y = b.op("Div", &[x, root], &[]);
    let y = b.op("Erf", &[y], &[]);
    let y = b.through(y, (0.008, DataType::Int8, 3));
    let one = b.constant(Tensor::scalar(100_u8));
    let one = b.dequantize(one, (0.01, DataType::Uint8, 0));
    let y = b.op("Add", &[y, one], &[]);
    let y = b.through(y, (0.01, DataType::Uint8, 0));
    // A change of parameters alone.
    let y = b.through(y, SIGNED);
    let both = b.op("Mul", &[y, x], &[]);
    let both = b.through(both, WIDE);
    let expected = between(&["LookUp", "LookUp", "LookUp", "QLinearMul"]);
    check_steps(&b.finish(both), &[noise(&[2, 5], 3)], &expected, 0.09);
}

/// A graph over `x: [batch, 4, 4, 4]` of quantised values of this shape.
fn build(steps: &[(u8, prop::sample::Index, prop::sample::Index)]) -> Graph {
    let mut b = builder();
    let x = b.input("x", &[Dim::symbol("batch"), Dim::Known(4), Dim::Known(4), Dim::Known(4)]);
    let all = [ACT, WIDE, SIGNED, (0.05, DataType::Uint8, 0)];
    let first = b.through(x, ACT);
    let mut values = vec![first];
    for (at, (kind, first, second)) in steps.iter().enumerate() {
        let (a, c) = (*first.get(&values), *second.get(&values));
        let params = *second.get(&all);
        let seed = at as u32;
        let made = match kind % 9 {
            0 => {
                let w = b.weights(&[4, 4, 3, 3], (seed.is_multiple_of(2)).then_some(0), seed);
                b.op("Conv", &[a, w], &[("pads", ints(&[1, 1, 1, 1]))])
            }
            1 => {
                let w = b.weights(&[4, 1, 3, 3], Some(0), seed);
                let group = AttributeValue::Int(4);
                b.op("Conv", &[a, w], &[("pads", ints(&[1, 1, 1, 1])), ("group", group)])
            }
            2 => {
                let w = b.weights(&[4, 4], (seed.is_multiple_of(2)).then_some(1), seed);
                b.op("MatMul", &[a, w], &[])
            }
            3 => b.op("MatMul", &[a, c], &[]),
            4 => b.op("Add", &[a, c], &[]),
            5 => b.op("Transpose", &[a], &[("perm", ints(&[0, 1, 3, 2]))]),
            6 => {
                let pool = [("kernel_shape", ints(&[3, 3])), ("pads", ints(&[1, 1, 1, 1]))];
                b.op("MaxPool", &[a], &pool)
            }
            7 => b.op("Identity", &[a], &[]),
            _ => b.op("Sigmoid", &[a], &[]),
        };
        let made = if second.index(3) == 0 { b.op("Relu", &[made], &[]) } else { made };
        values.push(if first.index(5) == 0 { made } else { b.through(made, params) });
    }
    let last = values[values.len() - 1];
    b.finish(last)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// A value that is rounded the other way moves the nine elements that a depthwise convolution computes of it, by
    /// more than a step where weights are above 1. So these, or a twentieth of all elements, may be far.
    #[test]
    fn quantised_graphs_compute_nearly_the_same(
        steps in prop::collection::vec(
            (any::<u8>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
        batch in 1_usize..3,
    ) {
        let graph = build(&steps);
        let x = noise(&[batch, 4, 4, 4], 7);
        let expected = evaluate::run(&graph, std::slice::from_ref(&x)).unwrap();
        for level in RewriteLevel::ALL {
            let mut rewritten = graph.clone();
            optimise(&mut rewritten, level).unwrap();
            rewritten.sort().unwrap();
            for last in [false, true] {
                if last {
                    channels_last(&mut rewritten).unwrap();
                    rewritten.sort().unwrap();
                }
                let found = evaluate::run(&rewritten, std::slice::from_ref(&x)).unwrap();
                let (a, b) = (found[0].to_vec::<f32>().unwrap(), expected[0].to_vec::<f32>().unwrap());
                prop_assert_eq!(found[0].shape(), expected[0].shape());
                let far = a.iter().zip(&b).filter(|(a, b)| (*a - *b).abs() > 0.091).count();
                let few = (a.len() / 20).max(9);
                prop_assert!(far <= few, "{far} of {} elements are far", a.len());
            }
        }
    }
}
