//! Sessions in BF16 keep values as BF16 where kernels give and take them so.

use crate::support;
use crate::support::{Maker, floats, values};
use galatea_graph::{AttributeValue, ValueId};
use galatea_kernels::Isa;
use galatea_kernels::isa::Bf16Isa;
use galatea_runtime::{OptimiseLevel, Precision, Run, Session};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

type Value = Option<ValueId>;

fn ints(values: &[i64]) -> AttributeValue {
    AttributeValue::Ints(values.to_vec())
}

/// Weights whose products with `terms` values are about as large as these.
fn weights(shape: &[usize], terms: usize, seed: u32) -> Tensor {
    let mut found = values(shape.iter().product(), seed);
    let factor = 1.7 / f32::from(u16::try_from(terms).unwrap()).sqrt();
    found.iter_mut().for_each(|value| *value *= factor);
    Tensor::from_vec(shape, found).unwrap()
}

/// A block of a transformer over rows of 32, with two heads.
fn transformer(maker: &mut Maker, rows: usize) -> Vec<Value> {
    let x = maker.input("x", floats(&[2, rows, 32], 1));
    let matrix = |maker: &mut Maker, from: Value, sizes: [usize; 2], residual: Value, seed: u32| {
        let w = maker.constant(weights(&sizes, sizes[0], seed));
        let bias = maker.constant(weights(&[sizes[1]], sizes[0], seed + 1));
        let inputs = [from, w, bias, residual];
        let taken = if residual.is_some() { 4 } else { 3 };
        maker.node("ai.galatea:FusedMatMul", &[], &inputs[..taken], 1)[0]
    };
    let norm = |maker: &mut Maker, from: Value| {
        let scale = maker.constant(floats(&[32], 50));
        maker.node("LayerNormalization", &[], &[from, scale], 1)[0]
    };
    let x = norm(maker, x);
    let heads = maker.constant(support::ints(&[4], &[0, 0, 2, 16]));
    let [q, k, v] = [10, 12, 14].map(|seed| {
        let made = matrix(maker, x, [32, 32], None, seed);
        maker.node("Reshape", &[], &[made, heads], 1)[0]
    });
    let order = ints(&[0, 2, 1, 3]);
    let names = ["q_perm", "k_perm", "v_perm", "out_perm"];
    let mut attributes: Vec<_> = names.map(|name| (name, order.clone())).into();
    attributes.push(("scale", AttributeValue::Float(0.25)));
    let made = maker.node("ai.galatea:Attention", &attributes, &[q, k, v], 1)[0];
    let flat = maker.constant(support::ints(&[3], &[0, 0, 32]));
    let made = maker.node("Reshape", &[], &[made, flat], 1)[0];
    let made = matrix(maker, made, [32, 32], x, 20);
    let made = norm(maker, made);
    let inner = matrix(maker, made, [32, 64], None, 22);
    let made = matrix(maker, inner, [64, 32], made, 24);
    vec![norm(maker, made)]
}

/// A small image network with a depthwise convolution, a residual and poolings. One of these keeps
/// FP32 from computing the depthwise convolution and the next one in bands, which needs less memory.
fn images(maker: &mut Maker) -> Vec<Value> {
    let x = maker.input("x", floats(&[2, 3, 21, 17], 1));
    let pads = [("pads", ints(&[1, 1, 1, 1]))];
    let conv = |maker: &mut Maker, from: Value, shape: [usize; 4], group: usize, seed: u32| {
        let w = maker.constant(weights(&shape, shape[1] * shape[2] * shape[3], seed));
        let bias = maker.constant(floats(&[shape[0]], seed + 1));
        let mut attributes = vec![("group", AttributeValue::Int(group as i64))];
        if shape[2] == 3 {
            attributes.extend(pads.clone());
        }
        maker.node("Conv", &attributes, &[from, w, bias], 1)[0]
    };
    let relu = |maker: &mut Maker, from: Value| maker.node("Relu", &[], &[from], 1)[0];
    let made = conv(maker, x, [24, 3, 3, 3], 1, 10);
    let first = relu(maker, made);
    let made = conv(maker, first, [24, 1, 3, 3], 24, 12);
    let made = relu(maker, made);
    let mut window = vec![("kernel_shape", ints(&[3, 3]))];
    window.extend(pads.clone());
    let made = maker.node("MaxPool", &window, &[made], 1)[0];
    let made = conv(maker, made, [24, 24, 1, 1], 1, 14);
    let made = maker.node("Add", &[], &[made, first], 1)[0];
    let kernel = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    let made = maker.node("MaxPool", &kernel, &[made], 1)[0];
    let made = conv(maker, made, [32, 24, 3, 3], 1, 16);
    let made = maker.node("GlobalAveragePool", &[], &[made], 1)[0];
    let made = maker.node("Flatten", &[], &[made], 1)[0];
    let w = maker.constant(weights(&[32, 10], 32, 18));
    maker.node("MatMul", &[], &[made, w], 1)
}

/// A session on `cpu` and the arena that it needs for a run, in bytes.
fn run(maker: &Maker, provider: &str, precision: Precision) -> (Vec<Tensor>, usize) {
    let options = galatea_runtime::SessionOptions {
        threads: 2,
        optimise: OptimiseLevel::O3,
        precision,
        ..galatea_runtime::SessionOptions::default()
    };
    let providers = [galatea_providers::by_name(provider).unwrap()];
    let session = Session::new(maker.graph.clone(), &providers, &options).unwrap();
    let inputs: Vec<(&str, Tensor)> =
        maker.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let found = session.run_tensors(Run::named(&inputs)).unwrap();
    let again = session.run_tensors(Run::named(&inputs)).unwrap();
    for (found, again) in found.iter().zip(&again) {
        assert_eq!(found.dtype(), DataType::Fp32);
        compare(again, found, Tolerance::Exact).unwrap();
    }
    (found, session.report().plans.live_bytes)
}

/// Checks that a session in BF16 needs no more than so many percent of the memory of one in FP32, and stays near the
/// reference.
fn check(make: impl FnOnce(&mut Maker) -> Vec<Value>, roundings: f64, percent: usize) {
    let mut maker = Maker::new();
    let outputs = make(&mut maker);
    maker.graph.outputs = outputs.into_iter().flatten().collect();
    let (expected, _) = run(&maker, "reference", Precision::Fp32);
    let (_, wide) = run(&maker, "cpu", Precision::Fp32);
    let (found, narrow) = run(&maker, "cpu", Precision::Bf16);
    for (found, expected) in found.iter().zip(&expected) {
        // Values of up to about 4 are rounded so many times one after the other, by 2^-9 each.
        compare(found, expected, Tolerance::Within(roundings * 4.0 / 512.0)).unwrap();
    }
    assert!(narrow <= wide * percent / 100, "{narrow} bytes in BF16, {wide} in FP32");
}

#[test]
fn a_transformer_keeps_its_rows_in_half_the_memory() {
    // Products, their operands and normalisations: twelve roundings in a row.
    // Attention is in BF16 only on processors that multiply such numbers; elsewhere what it reads stays wide.
    let percent = if Bf16Isa::of(Isa::detect()).has_products() { 75 } else { 90 };
    check(|maker| transformer(maker, 40), 12.0, percent);
}

#[test]
fn a_few_rows_are_near_the_reference_too() {
    let mut maker = Maker::new();
    let outputs = transformer(&mut maker, 3);
    maker.graph.outputs = outputs.into_iter().flatten().collect();
    let (expected, _) = run(&maker, "reference", Precision::Fp32);
    let (found, _) = run(&maker, "cpu", Precision::Bf16);
    compare(&found[0], &expected[0], Tolerance::Within(12.0 * 4.0 / 512.0)).unwrap();
}

#[test]
fn images_stay_in_half_the_memory() {
    check(images, 10.0, 75);
}

#[test]
fn what_is_asked_for_or_read_by_others_stays_fp32() {
    // The first product is an output and goes into an operator without a kernel for BF16.
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[9, 32], 1));
    let w = maker.constant(weights(&[32, 32], 32, 2));
    let first = maker.node("MatMul", &[], &[x, w], 1)[0];
    let second = maker.node("MatMul", &[], &[first, w], 1)[0];
    let third = maker.node("Sin", &[], &[second], 1)[0];
    let fourth = maker.node("MatMul", &[], &[second, w], 1)[0];
    maker.graph.outputs = [first, third, fourth].into_iter().flatten().collect();
    let (expected, _) = run(&maker, "reference", Precision::Fp32);
    let (found, _) = run(&maker, "cpu", Precision::Bf16);
    for (found, expected) in found.iter().zip(&expected) {
        compare(found, expected, Tolerance::Within(4.0 * 4.0 / 512.0)).unwrap();
    }
}
