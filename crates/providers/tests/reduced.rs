//! Sessions that compute in less than FP32, beside the reference evaluation.

use crate::support;
use crate::support::{Maker, assert_kernel, check_node, floats};
use galatea_graph::AttributeValue;
use galatea_runtime::Precision;
use galatea_tensor::Tensor;

/// Runs a node in BF16 beside FP32. Each of `terms` products of values in -1..1, a quarter of one
/// in magnitude on average, is off by less than 2^-7 of itself, and half of that on average.
fn check(
    op: &str,
    attributes: &[(&str, AttributeValue)],
    inputs: &[Tensor],
    constants: &[Tensor],
    (terms, kernel): (usize, &str),
) {
    let mut maker = Maker::new();
    maker.precision = Precision::Bf16;
    let mut ids: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(at, x)| maker.input(&format!("x{at}"), x.clone()))
        .collect();
    ids.extend(constants.iter().map(|constant| maker.constant(constant.clone())));
    let made = maker.node(op, attributes, &ids, 1);
    let distance = terms as f64 * 0.25 / 256.0;
    assert_kernel(&maker.check_within(&made, distance), kernel);
}

#[test]
fn products_in_bf16_are_near_the_reference() {
    for shape in [&[1, 64][..], &[7, 64], &[2, 90, 64]] {
        let (x, w) = (floats(shape, 1), floats(&[64, 33], 2));
        check("MatMul", &[], std::slice::from_ref(&x), &[w], (64, "matmul-bf16-packed"));
        let (w, bias) = (floats(&[33, 64], 2), floats(&[33], 3));
        let gelu = [
            ("activation", AttributeValue::String("Gelu".into())),
            ("trans_b", AttributeValue::Int(1)),
        ];
        let name = "fused_matmul-bf16-packed";
        check("ai.galatea:FusedMatMul", &gelu, &[x], &[w, bias], (64, name));
    }
    let trans = [("transB", AttributeValue::Int(1)), ("alpha", AttributeValue::Float(0.5))];
    let constants = [floats(&[40, 50], 2), floats(&[40], 3)];
    check("Gemm", &trans, &[floats(&[9, 50], 1)], &constants, (50, "gemm-bf16-packed"));
}

#[test]
fn weights_in_fp16_are_near_the_reference() {
    let run = |op: &str, attributes: &[_], x: &Tensor, constants: &[Tensor], kernel: &str| {
        let mut maker = Maker::new();
        maker.precision = Precision::Fp16;
        let mut ids = vec![maker.input("x", x.clone())];
        ids.extend(constants.iter().map(|constant| maker.constant(constant.clone())));
        let made = maker.node(op, attributes, &ids, 1);
        // Each of 64 weights in -1..1 is off by at most 2^-12, and half of that on average.
        assert_kernel(&maker.check_within(&made, 64.0 / 8192.0), kernel);
    };
    for shape in [&[1, 64][..], &[7, 64], &[2, 90, 64]] {
        let (x, w) = (floats(shape, 1), floats(&[64, 33], 2));
        run("MatMul", &[], &x, &[w], "matmul-fp16-packed");
        let gate = [("activation", AttributeValue::String("Gelu".into()))];
        let constants = [floats(&[64, 40], 2), floats(&[40], 3)];
        run("ai.galatea:FusedMatMul", &gate, &x, &constants, "fused_matmul-fp16-packed");
    }
    let trans = [("transB", AttributeValue::Int(1))];
    let constants = [floats(&[40, 64], 2), floats(&[40], 3)];
    run("Gemm", &trans, &floats(&[9, 64], 1), &constants, "gemm-fp16-packed");
}

#[test]
fn convolutions_in_bf16_are_near_the_reference() {
    let pads = [("pads", AttributeValue::Ints(vec![1, 1, 1, 1]))];
    let (x, w, bias) = (floats(&[2, 12, 9, 7], 1), floats(&[20, 12, 3, 3], 2), floats(&[20], 3));
    check("Conv", &pads, std::slice::from_ref(&x), &[w, bias], (108, "conv-bf16-packed"));
    let w = floats(&[18, 12, 1, 1], 2);
    check("Conv", &[], &[x], &[w], (12, "conv-bf16-packed"));
}

#[test]
fn what_gains_nothing_stays_in_fp32() {
    let depthwise = [("group", AttributeValue::Int(12))];
    let (x, w) = (floats(&[2, 12, 9, 7], 1), floats(&[12, 1, 3, 3], 2));
    check("Conv", &depthwise, &[x], &[w], (9, "conv-f32-packed"));
}

#[test]
fn short_products_of_two_variables_are_those_of_fp32() {
    let mut maker = Maker::new();
    maker.precision = Precision::Bf16;
    let [a, b] = [floats(&[2, 3, 5, 8], 1), floats(&[2, 1, 8, 6], 2)];
    let ids = [maker.input("a", a), maker.input("b", b)];
    let made = maker.node("MatMul", &[], &ids, 1);
    // BF16 would be off by about 8 / 256.
    assert_kernel(&maker.check_within(&made, 1e-5), "matmul-bf16-batched");
}

#[test]
fn weights_of_few_bits_stay_packed() {
    for (bits, block) in [(2_u32, 32_usize), (4, 32), (4, 128), (8, 64)] {
        let (k, n) = (200_usize, 33_usize);
        let blocks = k.div_ceil(block);
        let count = n * blocks * block * bits as usize / 8;
        let bytes: Vec<u8> = (0..count).map(|at| (at * 97 % 251).to_le_bytes()[0]).collect();
        let weights = Tensor::from_vec(&[n, blocks, count / n / blocks], bytes).unwrap();
        let points = n * (blocks * bits as usize).div_ceil(8);
        let points: Vec<u8> = (0..points).map(|at| (at * 31 % 256).to_le_bytes()[0]).collect();
        let points = Tensor::from_vec(&[points.len()], points).unwrap();
        let length = |length: usize| AttributeValue::Int(length.try_into().unwrap());
        let attributes = [
            ("K", length(k)),
            ("N", length(n)),
            ("bits", AttributeValue::Int(bits.into())),
            ("block_size", length(block)),
        ];
        let mut scales = support::values(n * blocks, 5);
        scales.iter_mut().for_each(|scale| *scale /= f32::from(u8::MAX >> (8 - bits)));
        let scales = Tensor::from_vec(&[n * blocks], scales).unwrap();
        let op = "com.microsoft:MatMulNBits";
        for rows in [&[1, k][..], &[2, 9, k]] {
            let x = floats(rows, 1);
            for constants in [
                vec![weights.clone(), scales.clone()],
                vec![weights.clone(), scales.clone(), points.clone()],
            ] {
                let x = std::slice::from_ref(&x);
                check_node(op, &attributes, x, &constants, "matmul_n_bits-f32");
                check(op, &attributes, x, &constants, (k, "matmul_n_bits-f32"));
            }
        }
    }
}
