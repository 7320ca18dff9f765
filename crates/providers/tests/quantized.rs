//! The kernels of bytes against the reference evaluation, node by node.
//!
//! Where the reference divides in `f64` and a kernel multiplies in `f32`, a tie may fall to the
//! other side: bytes may differ by one.

use crate::support::{Maker, assert_kernel, floats, values};
use galatea_graph::AttributeValue;
use galatea_tensor::{DataType, Tensor};

/// Repeatable bytes.
fn bytes(shape: &[usize], dtype: DataType, seed: u32) -> Tensor {
    let all = values(shape.iter().product(), seed);
    match dtype {
        DataType::Int8 => {
            let all = all.iter().map(|v| (v * 128.0) as i8).collect();
            Tensor::from_vec(shape, all).unwrap()
        }
        _ => Tensor::from_vec(shape, all.iter().map(|v| (v * 127.9 + 128.0) as u8).collect())
            .unwrap(),
    }
}

fn zero(dtype: DataType, value: i32) -> Tensor {
    match dtype {
        DataType::Int8 => Tensor::scalar(i8::try_from(value - 128).unwrap()),
        _ => Tensor::scalar(u8::try_from(value).unwrap()),
    }
}

fn scales(count: usize) -> Tensor {
    Tensor::vector((0..count).map(|at| 0.01 + at as f32 * 0.001).collect::<Vec<_>>())
}

const FORMS: [(DataType, DataType); 4] = [
    (DataType::Uint8, DataType::Int8),
    (DataType::Int8, DataType::Int8),
    (DataType::Uint8, DataType::Uint8),
    (DataType::Int8, DataType::Uint8),
];

/// One node, of which some inputs are constant; runs on both providers, of which bytes may be
/// `apart` and floats as far as rounding goes.
fn check(
    op: &str,
    attributes: &[(&str, AttributeValue)],
    inputs: &[(Tensor, bool)],
    (outputs, apart): (usize, f64),
    kernel: &str,
) {
    let mut maker = Maker::new();
    maker.graph.opsets.insert(String::new(), 21);
    maker.graph.opsets.insert("com.microsoft".into(), 1);
    let made: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(at, (tensor, constant))| match constant {
            true => maker.constant(tensor.clone()),
            false => maker.input(&format!("x{at}"), tensor.clone()),
        })
        .collect();
    let outputs = maker.node(op, attributes, &made, outputs);
    let rows = maker.check_within(&outputs, apart);
    assert_kernel(&rows, kernel);
}

#[test]
fn floats_become_bytes_and_come_back() {
    for dtype in [DataType::Uint8, DataType::Int8] {
        let (x, scale, zero) = (floats(&[3, 47], 1), Tensor::scalar(0.007_f32), zero(dtype, 100));
        let inputs = [(x, false), (scale.clone(), true), (zero.clone(), true)];
        check("QuantizeLinear", &[], &inputs, (1, 0.0), "quantize_linear-f32_int8");
        let inputs = [(bytes(&[3, 47], dtype, 2), false), (scale, true), (zero, true)];
        check("DequantizeLinear", &[], &inputs, (1, 0.0), "dequantize_linear-int8_f32");
    }
    let inputs = [(floats(&[5, 33], 3), false)];
    check("DynamicQuantizeLinear", &[], &inputs, (3, 0.0), "dynamic_quantize_linear-f32_uint8");
}

#[test]
fn pairs_of_bytes_equal_the_reference() {
    for op in ["com.microsoft:QLinearAdd", "com.microsoft:QLinearMul"] {
        for other in [&[2, 3, 5][..], &[5], &[], &[1, 3, 5]] {
            let inputs = [
                (bytes(&[2, 3, 5], DataType::Uint8, 1), false),
                (Tensor::scalar(0.02_f32), true),
                (zero(DataType::Uint8, 30), true),
                (bytes(other, DataType::Int8, 2), false),
                (Tensor::scalar(0.03_f32), true),
                (zero(DataType::Int8, 100), true),
                (Tensor::scalar(0.04_f32), true),
                (zero(DataType::Uint8, 90), true),
            ];
            check(op, &[], &inputs, (1, 1.0), "qlinear_pair-int8");
        }
    }
}

#[test]
fn tables_equal_the_reference() {
    let table = (0..256).map(|at| at * 7 % 256).collect();
    let list = [("table", AttributeValue::Ints(table)), ("dtype", AttributeValue::Int(3))];
    let inputs = [(bytes(&[3, 50], DataType::Uint8, 1), false)];
    check("ai.galatea:LookUp", &list, &inputs, (1, 0.0), "look_up-int8");
}

#[test]
fn products_of_bytes_equal_the_reference() {
    for (a, b) in FORMS {
        for (rows, count) in [(1, 33), (7, 1)] {
            let b_zero = bytes(&[count], b, 9);
            let left = (bytes(&[2, rows, 19], a, 1), false);
            let right = (bytes(&[19, 33], b, 2), true);
            let (a_scale, b_scale) = ((Tensor::scalar(0.02_f32), true), (scales(count), true));
            let (a_zero, b_zero) = ((zero(a, 120), true), (b_zero, true));
            let (y_scale, y_zero) = ((Tensor::scalar(9.0_f32), true), (zero(a, 140), true));
            let inputs = [
                left.clone(),
                a_scale.clone(),
                a_zero.clone(),
                right.clone(),
                b_scale.clone(),
                b_zero.clone(),
                y_scale.clone(),
                y_zero.clone(),
            ];
            check("QLinearMatMul", &[], &inputs, (1, 1.0), "qlinear_matmul-int8");
            let changing = (a_zero.0.clone(), false);
            let inputs = [left.clone(), right.clone(), changing.clone(), b_zero.clone()];
            check("MatMulInteger", &[], &inputs, (1, 0.0), "matmul_integer-int8_int32");
            let bias = (floats(&[33], 3), true);
            let a_scale = (a_scale.0, false);
            let inputs = [left.clone(), right, a_scale, b_scale, changing, b_zero, bias];
            let op = "com.microsoft:MatMulIntegerToFloat";
            check(op, &[], &inputs, (1, 1e-3), "matmul_integer-int8_f32");
        }
        let right = (bytes(&[2, 19, 8], b, 2), false);
        let (one, other) = (Tensor::scalar(0.02_f32), Tensor::scalar(0.05_f32));
        let inputs = [
            (bytes(&[3, 2, 5, 19], a, 1), false),
            (one, true),
            (zero(a, 120), true),
            right,
            (other.clone(), true),
            (zero(b, 131), true),
            (other, true),
            (zero(a, 140), true),
        ];
        check("QLinearMatMul", &[], &inputs, (1, 1.0), "qlinear_matmul-int8");
    }
}

#[test]
fn gemms_of_bytes_equal_the_reference() {
    for (a, b) in FORMS {
        for result in [0, 2] {
            let sums = Tensor::vector((0..9).map(|at| at * 1000 - 4000).collect::<Vec<i32>>());
            let inputs = [
                (bytes(&[6, 20], a, 1), false),
                (Tensor::scalar(0.02_f32), true),
                (zero(a, 120), true),
                (bytes(&[9, 20], b, 2), true),
                (scales(9), true),
                (bytes(&[9], b, 9), true),
                (sums, true),
                (Tensor::scalar(9.0_f32), true),
                (zero(DataType::Uint8, 77), true),
            ];
            let list = [("transB", AttributeValue::Int(1)), ("alpha", AttributeValue::Float(0.5))];
            let apart = if result == 2 { 1.0 } else { 1e-3 };
            check("com.microsoft:QGemm", &list, &inputs[..7 + result], (1, apart), "qgemm-int8");
        }
    }
}

#[test]
fn convolutions_of_bytes_equal_the_reference() {
    let pads = ("pads", AttributeValue::Ints(vec![1, 0, 1, 2]));
    for (x, w) in FORMS {
        for (channels, out, groups) in [(3, 5, 1), (6, 6, 6), (20, 20, 20), (4, 6, 2)] {
            let group = ("group", AttributeValue::Int(groups));
            let per_group = channels / usize::try_from(groups).unwrap();
            let list = [pads.clone(), group];
            let image = (bytes(&[2, channels, 7, 9], x, 1), false);
            let weights = (bytes(&[out, per_group, 3, 3], w, 2), true);
            let zeros = (bytes(&[out], w, 9), true);
            let bias = Tensor::vector((0..out).map(|at| at as i32 * 900).collect::<Vec<i32>>());
            let inputs = [
                image.clone(),
                (Tensor::scalar(0.02_f32), true),
                (zero(x, 100), true),
                weights.clone(),
                (scales(out), true),
                zeros.clone(),
                (Tensor::scalar(1.5_f32), true),
                (zero(DataType::Int8, 128), true),
                (bias, true),
            ];
            check("QLinearConv", &list, &inputs, (1, 1.0), "qlinear_conv-int8");
            let inputs = [image, weights, (zero(x, 100), false), zeros];
            check("ConvInteger", &list, &inputs, (1, 0.0), "conv_integer-int8_int32");
        }
    }
}

/// Constant inputs of a convolution behind its image, of `out` channels with windows of 3 x 3.
fn conv_constants(out: usize, channels: usize, x: DataType) -> Vec<Tensor> {
    let bias = Tensor::vector((0..out).map(|at| at as i32 * 900).collect::<Vec<i32>>());
    vec![
        Tensor::scalar(0.02_f32),
        zero(x, 100),
        bytes(&[out, channels, 3, 3], DataType::Int8, 2),
        scales(out),
        Tensor::vector(vec![0_i8; out]),
        Tensor::scalar(1.5_f32),
        zero(DataType::Uint8, 120),
        bias,
    ]
}

#[test]
fn convolutions_with_a_summand_equal_the_reference() {
    let list = [
        ("pads", AttributeValue::Ints(vec![1, 0, 1, 2])),
        ("channels_last", AttributeValue::Int(1)),
    ];
    for x in [DataType::Uint8, DataType::Int8] {
        for (channels, out) in [(3, 5), (64, 40)] {
            let mut inputs = vec![(bytes(&[2, 7, 9, channels], x, 1), false)];
            inputs.extend(conv_constants(out, channels, x).into_iter().map(|all| (all, true)));
            inputs.push((bytes(&[2, 7, 9, out], x, 4), false));
            inputs.push((Tensor::scalar(0.7_f32), true));
            inputs.push((zero(x, 90), true));
            inputs.push((Tensor::scalar(1.9_f32), true));
            inputs.push((zero(DataType::Int8, 130), true));
            let name = "ai.galatea:QLinearConvAdd";
            check(name, &list, &inputs, (1, 1.0), "qlinear_conv_add-int8");
        }
    }
}

#[test]
fn poolings_of_bytes_equal_the_reference() {
    for dtype in [DataType::Uint8, DataType::Int8] {
        let list = [
            ("kernel_shape", AttributeValue::Ints(vec![3, 2])),
            ("strides", AttributeValue::Ints(vec![2, 1])),
            ("pads", AttributeValue::Ints(vec![1, 0, 1, 1])),
        ];
        for channels in [9, 70] {
            let inputs = [(bytes(&[2, 5, 7, channels], dtype, 1), false)];
            check("MaxPool", &list, &inputs, (1, 0.0), "max_pool-int8");
            check("ai.galatea:MaxPoolNhwc", &list, &inputs, (1, 0.0), "max_pool-int8");
        }
    }
}
