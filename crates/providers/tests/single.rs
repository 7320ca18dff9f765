//! Graphs of 16-bit floats on `cpu`: kernels of FP32 compute them, and results are rounded as by the reference.

use crate::support::{Maker, floats, ints};
use galatea_graph::{AttributeValue, converted};
use galatea_runtime::OptimiseLevel;
use galatea_tensor::{DataType, Tensor};

/// A node: operator, attributes, shapes of the floats that it takes, and how many of these are constants.
struct HalfCase {
    op: &'static str,
    attributes: Vec<(&'static str, AttributeValue)>,
    shapes: Vec<Vec<usize>>,
    constants: usize,
}

fn case(op: &'static str, shapes: &[&[usize]], constants: usize) -> HalfCase {
    let shapes = shapes.iter().map(|shape| shape.to_vec()).collect();
    HalfCase { op, attributes: Vec::new(), shapes, constants }
}

fn with(case: HalfCase, attributes: &[(&'static str, AttributeValue)]) -> HalfCase {
    HalfCase { attributes: attributes.to_vec(), ..case }
}

fn integers(values: &[i64]) -> AttributeValue {
    AttributeValue::Ints(values.to_vec())
}

/// Operators of every family that has kernels of FP32.
fn cases() -> Vec<HalfCase> {
    let image: &[usize] = &[1, 4, 6, 5];
    let rows: &[usize] = &[3, 8];
    let mut all: Vec<HalfCase> = [
        "Abs",
        "Ceil",
        "Cos",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Neg",
        "Relu",
        "Round",
        "Sigmoid",
        "Sign",
        "Softplus",
        "Softsign",
        "Tanh",
        "Softmax",
        "LogSoftmax",
    ]
    .map(|op| case(op, &[rows], 0))
    .into();
    all.extend(
        [
            "Add",
            "Sub",
            "Mul",
            "Div",
            "Max",
            "Min",
            "Sum",
            "Mean",
            "Less",
            "GreaterOrEqual",
            "Equal",
        ]
        .map(|op| case(op, &[rows, &[8]], 0)),
    );
    all.extend([
        case("MatMul", &[rows, &[8, 5]], 1),
        case("MatMul", &[rows, &[8, 5]], 0),
        case("Gemm", &[rows, &[8, 5], &[5]], 2),
        case("com.microsoft:FusedMatMul", &[rows, &[8, 5]], 0),
        case("LayerNormalization", &[rows, &[8], &[8]], 2),
        case("InstanceNormalization", &[image, &[4], &[4]], 2),
        case("GlobalAveragePool", &[image], 0),
        with(case("ReduceMean", &[rows], 0), &[("axes", integers(&[1]))]),
        with(case("MaxPool", &[image], 0), &[("kernel_shape", integers(&[2, 2]))]),
        with(case("AveragePool", &[image], 0), &[("kernel_shape", integers(&[2, 2]))]),
        with(case("Conv", &[image, &[4, 4, 3, 3]], 1), &[("kernel_shape", integers(&[3, 3]))]),
        with(
            case("ConvTranspose", &[image, &[4, 3, 2, 2]], 1),
            &[("kernel_shape", integers(&[2, 2]))],
        ),
        with(
            case("LSTM", &[&[3, 1, 4], &[1, 8, 4], &[1, 8, 2]], 2),
            &[("hidden_size", AttributeValue::Int(2))],
        ),
        with(
            case("ai.galatea:FusedMatMul", &[rows, &[8, 5], &[5]], 2),
            &[("activation", AttributeValue::String("Relu".into()))],
        ),
    ]);
    all
}

fn of_type(shape: &[usize], seed: u32, dtype: DataType) -> Tensor {
    converted(&floats(shape, seed), dtype).unwrap()
}

#[test]
fn kernels_of_fp32_compute_what_is_given_in_16_bits() {
    for (dtype, distance) in [(DataType::Fp16, 0.004), (DataType::Bf16, 0.04)] {
        for case in cases() {
            let mut maker = Maker::new();
            maker.level = OptimiseLevel::O3;
            let given = case.shapes.len() - case.constants;
            let inputs = case.shapes.iter().enumerate().map(|(at, shape)| {
                let value = of_type(shape, u32::try_from(at).unwrap() + 1, dtype);
                if at < given {
                    maker.input(&format!("x{at}"), value)
                } else {
                    maker.constant(value)
                }
            });
            let inputs: Vec<_> = inputs.collect();
            let made = maker.node(case.op, &case.attributes, &inputs, 1);
            let rows = maker.check_within(&made, distance);
            let slow: Vec<_> = rows.iter().filter(|row| row.kernel == "reference").collect();
            assert!(slow.is_empty() && !rows.is_empty(), "{} in {dtype}: {rows:?}", case.op);
        }
    }
}

#[test]
fn operators_that_give_16_bits_by_an_attribute_or_move_data_stay_as_they_are() {
    let mut maker = Maker::new();
    maker.level = OptimiseLevel::O3;
    let x = maker.input("x", of_type(&[3, 4], 1, DataType::Fp16));
    let n = maker.input("n", ints(&[3, 4], &[1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]));
    let cast = maker.node("Cast", &[("to", AttributeValue::Int(10))], &[n], 1)[0];
    let turned = maker.node("Transpose", &[], &[x], 1)[0];
    let made = maker.node("MatMul", &[], &[turned, cast], 1);
    let rows = maker.check_within(&made, 0.02);
    assert!(rows.iter().any(|row| row.kernel == "transpose-any"), "{rows:?}");
}
