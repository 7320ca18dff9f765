//! Every kernel row against the reference evaluation, node by node.

mod support;

use galatea_graph::AttributeValue;
use galatea_tensor::Tensor;
use support::{check_node, floats};

fn text(value: &str) -> AttributeValue {
    AttributeValue::String(value.into())
}

#[test]
fn unary_functions_equal_the_reference() {
    for op in ["Relu", "LeakyRelu", "Sigmoid", "HardSwish", "Tanh", "Neg", "Exp", "Erf", "Sqrt"] {
        check_node(op, &[], &[floats(&[3, 5, 7], 1)], &[], "unary-f32");
    }
    let bounds = [Tensor::scalar(0.0_f32), Tensor::scalar(0.5_f32)];
    check_node("Clip", &[], &[floats(&[3, 50], 1)], &bounds, "unary-f32");
}

#[test]
fn binary_functions_equal_the_reference_for_every_broadcast() {
    let shapes: [(&[usize], &[usize]); 9] = [
        (&[2, 3, 4], &[2, 3, 4]),
        (&[2, 3, 4], &[4]),
        (&[2, 3, 4], &[]),
        (&[], &[2, 3]),
        (&[3, 1], &[2, 3, 4]),
        (&[2, 3, 5, 7], &[2, 1, 1, 7]),
        (&[2, 1, 5, 1], &[2, 3, 5, 7]),
        (&[5, 1, 1], &[2, 5, 3, 3]),
        (&[1, 1], &[1]),
    ];
    for op in ["Add", "Sub", "Mul", "Div"] {
        for (a, b) in shapes {
            check_node(op, &[], &[floats(a, 1), floats(b, 2)], &[], "binary-f32");
        }
    }
}

#[test]
fn products_with_constant_and_changing_matrices_equal_the_reference() {
    for shape in [&[1, 64][..], &[7, 64], &[2, 9, 64]] {
        let (x, w) = (floats(shape, 1), floats(&[64, 33], 2));
        check_node("MatMul", &[], std::slice::from_ref(&x), &[w], "matmul-f32-packed");
        let w = floats(&[64, 33], 2);
        let extra = [w, floats(&[33], 3)];
        let gelu = [("activation", text("Gelu"))];
        let name = "fused_matmul-f32-packed";
        check_node("ai.galatea:FusedMatMul", &gelu, &[x], &extra, name);
    }
    let (a, b) = (floats(&[2, 3, 5, 8], 1), floats(&[2, 1, 8, 6], 2));
    check_node("MatMul", &[], &[a.clone(), b], &[], "matmul-f32-batched");
    let trans = [("trans_b", AttributeValue::Int(1))];
    let b = floats(&[3, 6, 8], 2);
    check_node("ai.galatea:FusedMatMul", &trans, &[a, b], &[], "fused_matmul-f32-batched");
}

#[test]
fn a_residual_is_added_before_the_activation() {
    let (x, w, bias) = (floats(&[2, 5, 16], 1), floats(&[24, 16], 2), floats(&[24], 3));
    let mut maker = support::Maker::new();
    let (x, residual) = (maker.input("x", x), maker.input("r", floats(&[2, 5, 24], 4)));
    let (w, bias) = (maker.constant(w), maker.constant(bias));
    let attributes = [("trans_b", AttributeValue::Int(1)), ("activation", text("Relu"))];
    let y = maker.node("ai.galatea:FusedMatMul", &attributes, &[x, w, bias, residual], 1);
    let (_, rows) = maker.check(&y, 16);
    support::assert_kernel(&rows, "fused_matmul-f32-packed");
}

#[test]
fn softmax_equals_the_reference() {
    check_node("Softmax", &[], &[floats(&[2, 3, 17], 1)], &[], "softmax-f32");
    check_node("LogSoftmax", &[], &[floats(&[2, 17], 1)], &[], "softmax-f32");
}
