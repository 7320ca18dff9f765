//! Functions that are fused behind products and convolutions, beside the separate operators, on values
//! that are no ordinary numbers.

use crate::support::{Maker, floats};
use galatea_graph::{AttributeValue, ValueId};
use galatea_runtime::{OptimiseLevel, Precision, Run};
use galatea_tensor::Tensor;

type Value = Option<ValueId>;

const SPECIAL: [f32; 8] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, 1.5, -1.5, -90.0];

/// Every operator that a rewrite fuses, with its attributes.
fn functions() -> Vec<(&'static str, Vec<(&'static str, AttributeValue)>)> {
    let tanh = ("approximate", AttributeValue::String("tanh".into()));
    vec![
        ("Relu", vec![]),
        ("Clip", vec![]),
        ("LeakyRelu", vec![("alpha", AttributeValue::Float(0.25))]),
        ("Sigmoid", vec![]),
        ("Tanh", vec![]),
        ("HardSwish", vec![]),
        ("Gelu", vec![]),
        ("Gelu", vec![tanh]),
    ]
}

/// A product or a convolution of zeros, to which special values are added.
fn product(maker: &mut Maker, convolution: bool) -> Value {
    let special: Vec<f32> = (0..20).map(|at| SPECIAL[at % SPECIAL.len()]).collect();
    let bias = maker.constant(Tensor::vector(special));
    if convolution {
        let x =
            maker.input("x", Tensor::zeros(galatea_tensor::DataType::Fp32, &[1, 4, 5, 5]).unwrap());
        let w = maker.constant(floats(&[20, 4, 3, 3], 1));
        return maker.node("Conv", &[], &[x, w, bias], 1)[0];
    }
    let x = maker.input("x", Tensor::zeros(galatea_tensor::DataType::Fp32, &[3, 16]).unwrap());
    let w = maker.constant(floats(&[16, 20], 1));
    let product = maker.node("MatMul", &[], &[x, w], 1)[0];
    maker.node("Add", &[], &[product, bias], 1)[0]
}

fn outputs(provider: &str, level: OptimiseLevel, precision: Precision) -> Vec<(String, Vec<f32>)> {
    let mut found = Vec::new();
    for convolution in [false, true] {
        for (op, attributes) in functions() {
            let mut maker = Maker::new();
            // Gelu is an operator from then on.
            maker.graph.opsets.insert(String::new(), 20);
            let y = product(&mut maker, convolution);
            let mut inputs = vec![y];
            if op == "Clip" {
                inputs.push(maker.constant(Tensor::scalar(-2.0_f32)));
                inputs.push(maker.constant(Tensor::scalar(6.0_f32)));
            }
            let y = maker.node(op, &attributes, &inputs, 1);
            maker.graph.outputs = y.into_iter().flatten().collect();
            (maker.level, maker.precision) = (level, precision);
            let given: Vec<_> =
                maker.inputs.iter().map(|(name, x)| (name.as_str(), x.clone())).collect();
            let outputs = maker.session(provider).run_tensors(Run::named(&given)).unwrap();
            let what = format!("{op} {attributes:?} {convolution} {provider} {precision}");
            found.push((what, outputs[0].to_vec::<f32>().unwrap()));
        }
    }
    found
}

#[test]
fn fused_functions_keep_what_the_separate_ones_keep() {
    let separate = outputs("reference", OptimiseLevel::O0, Precision::Fp32);
    for provider in ["reference", "cpu"] {
        for precision in Precision::ALL {
            let fused = outputs(provider, OptimiseLevel::O3, precision);
            for ((what, fused), (_, separate)) in fused.iter().zip(&separate) {
                for (at, (x, y)) in fused.iter().zip(separate).enumerate() {
                    let near = (x - y).abs() <= 0.02 * y.abs().max(0.01);
                    assert!(x == y || near || x.is_nan() && y.is_nan(), "{what} at {at}: {x}, {y}");
                }
            }
        }
    }
}
