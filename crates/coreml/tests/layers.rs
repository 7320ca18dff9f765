//! Convolutions, pools, normalisations and products as packages of Core ML, beside the graphs that
//! they are made of.

use crate::agreement::{agree, agree_fixed, refused};
use galatea_graph::AttributeValue;
use galatea_tensor::Tensor;
use galatea_testkit::graph_maker::{GraphMaker, floats, values};

/// FP16 has 11 bits, and sums of a few dozen products of values below 1 lose some of them.
const HALF: f64 = 4e-3;

fn list(all: &[i64]) -> AttributeValue {
    AttributeValue::Ints(all.to_vec())
}

fn word(text: &str) -> AttributeValue {
    AttributeValue::String(text.into())
}

/// Numbers above zero.
fn positive(shape: &[usize], seed: u32) -> Tensor {
    let all = values(shape.iter().product(), seed);
    Tensor::from_vec(shape, all.into_iter().map(|value| value.abs() + 0.5).collect()).unwrap()
}

/// One node over inputs and constants.
fn one(
    op: &str,
    attributes: &[(&str, AttributeValue)],
    inputs: &[Tensor],
    constants: &[Tensor],
) -> (GraphMaker, Vec<Option<galatea_graph::ValueId>>) {
    let mut maker = GraphMaker::new();
    let mut ids = Vec::new();
    for (index, tensor) in inputs.iter().enumerate() {
        ids.push(maker.input(&format!("x{index}"), tensor.clone()));
    }
    for tensor in constants {
        ids.push(maker.constant(tensor.clone()));
    }
    let made = maker.node(op, attributes, &ids, 1);
    (maker, made)
}

fn check(op: &str, attributes: &[(&str, AttributeValue)], inputs: &[Tensor], constants: &[Tensor]) {
    let (maker, made) = one(op, attributes, inputs, constants);
    agree(maker, &made, HALF);
}

fn check_fixed(
    op: &str,
    attributes: &[(&str, AttributeValue)],
    inputs: &[Tensor],
    constants: &[Tensor],
) {
    let (maker, made) = one(op, attributes, inputs, constants);
    agree_fixed(maker, &made, HALF);
}

#[test]
fn convolutions_of_one_to_three_axes() {
    let image = |rank: usize| floats(&[&[2, 4][..], &[7, 6, 5][..rank]].concat(), 1);
    let window = |rank: usize| floats(&[&[6, 4][..], &[3, 2, 3][..rank]].concat(), 2);
    let bias = floats(&[6], 3);
    for rank in 1..=3 {
        check("Conv", &[], &[image(rank)], &[window(rank), bias.clone()]);
        let pads: Vec<i64> = (0..2 * rank).map(|at| i64::try_from(at % 3).unwrap()).collect();
        let strides = vec![2; rank];
        let moved = [("pads", list(&pads)), ("strides", list(&strides))];
        check("Conv", &moved, &[image(rank)], &[window(rank)]);
        let gaps = [("dilations", list(&vec![2; rank]))];
        check("Conv", &gaps, &[image(rank)], &[window(rank)]);
    }
}

#[test]
fn convolutions_in_groups_and_with_pads_of_a_kind() {
    let x = floats(&[1, 4, 7, 6], 1);
    check("Conv", &[("group", 2.into())], &[x.clone()], &[floats(&[6, 2, 3, 3], 2)]);
    check("Conv", &[("group", 4.into())], &[x.clone()], &[floats(&[8, 1, 3, 3], 2)]);
    for kind in ["SAME_UPPER", "SAME_LOWER", "VALID"] {
        let attributes = [("auto_pad", word(kind)), ("strides", list(&[2, 2]))];
        check("Conv", &attributes, &[x.clone()], &[floats(&[3, 4, 2, 3], 2)]);
    }
}

#[test]
fn convolutions_whose_weights_and_biases_are_brought_by_the_run() {
    let inputs = [floats(&[1, 4, 7, 6], 1), floats(&[3, 4, 3, 3], 2), floats(&[3], 3)];
    check_fixed("Conv", &[], &inputs, &[]);
}

#[test]
fn convolutions_with_a_residual_and_an_activation() {
    let x = floats(&[1, 4, 6, 6], 1);
    let constants = [floats(&[4, 4, 3, 3], 2), floats(&[4], 3), floats(&[1, 4, 6, 6], 4)];
    let attributes = [("pads", list(&[1, 1, 1, 1])), ("activation", word("Relu"))];
    check_fixed("com.microsoft:FusedConv", &attributes, &[x], &constants);
    let constants = [floats(&[4, 4, 3, 3], 2), floats(&[4], 3)];
    check("ai.galatea:ConvNhwc", &[], &[floats(&[1, 6, 5, 4], 1)], &constants);
}

#[test]
fn transposed_convolutions() {
    let x = floats(&[2, 4, 5, 6], 1);
    let weights = floats(&[4, 3, 3, 2], 2);
    let bias = floats(&[3], 3);
    check("ConvTranspose", &[], &[x.clone()], &[weights.clone(), bias.clone()]);
    let cut = [("pads", list(&[1, 0, 2, 1])), ("strides", list(&[2, 3]))];
    check("ConvTranspose", &cut, &[x.clone()], &[weights.clone(), bias.clone()]);
    // Results beyond what the windows cover are the bias.
    let longer = [("strides", list(&[2, 3])), ("output_padding", list(&[1, 2]))];
    check("ConvTranspose", &longer, &[x.clone()], &[weights.clone(), bias.clone()]);
    let both = [
        ("strides", list(&[2, 3])),
        ("pads", list(&[1, 1, 1, 0])),
        ("output_padding", list(&[1, 1])),
    ];
    check("ConvTranspose", &both, &[x.clone()], &[weights.clone(), bias.clone()]);
    for kind in ["SAME_UPPER", "SAME_LOWER"] {
        let same = [("strides", list(&[2, 3])), ("auto_pad", word(kind))];
        check_fixed("ConvTranspose", &same, &[x.clone()], &[weights.clone(), bias.clone()]);
        let shaped = [
            ("strides", list(&[2, 3])),
            ("output_shape", list(&[12, 14])),
            ("auto_pad", word(kind)),
        ];
        check_fixed("ConvTranspose", &shaped, &[x.clone()], &[weights.clone(), bias.clone()]);
    }
    let grouped = [("group", 2.into()), ("dilations", list(&[2, 2]))];
    check("ConvTranspose", &grouped, &[x], &[weights]);
    check("ConvTranspose", &[], &[floats(&[1, 2, 5], 1)], &[floats(&[2, 3, 4], 2)]);
}

#[test]
fn pools_of_every_kind() {
    let x = floats(&[2, 3, 7, 8], 1);
    let window = ("kernel_shape", list(&[3, 2]));
    for op in ["MaxPool", "AveragePool", "LpPool"] {
        check(op, &[window.clone()], &[x.clone()], &[]);
        let moved = [window.clone(), ("strides", list(&[2, 3])), ("pads", list(&[1, 0, 1, 1]))];
        check(op, &moved, &[x.clone()], &[]);
        let up = [moved.as_slice(), &[("ceil_mode", 1.into())]].concat();
        check_fixed(op, &up, &[x.clone()], &[]);
        let same = [window.clone(), ("strides", list(&[2, 2])), ("auto_pad", word("SAME_UPPER"))];
        check(op, &same, &[x.clone()], &[]);
    }
    for (name, rank) in [("MaxPool", 1), ("AveragePool", 1), ("MaxPool", 3), ("AveragePool", 3)] {
        let x = floats(&[&[1, 2][..], &[6, 5, 7][..rank]].concat(), 4);
        check(name, &[("kernel_shape", list(&vec![2; rank]))], &[x], &[]);
    }
}

#[test]
fn means_that_count_their_pads() {
    let x = floats(&[1, 2, 6, 7], 1);
    for ceil in [0, 1] {
        let attributes = [
            ("kernel_shape", list(&[3, 3])),
            ("strides", list(&[2, 2])),
            ("pads", list(&[1, 1, 1, 1])),
            ("count_include_pad", 1.into()),
            ("ceil_mode", ceil.into()),
        ];
        check_fixed("AveragePool", &attributes, &[x.clone()], &[]);
    }
}

#[test]
fn pools_of_whole_planes() {
    let x = floats(&[2, 3, 7, 8], 1);
    for op in ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"] {
        check(op, &[], &[x.clone()], &[]);
    }
    check("GlobalLpPool", &[("p", 1.into())], &[x], &[]);
}

#[test]
fn pools_whose_windows_have_gaps() {
    let gaps = [("kernel_shape", list(&[3, 2])), ("dilations", list(&[2, 3]))];
    let x = floats(&[2, 3, 9, 11], 1);
    check_fixed("MaxPool", &gaps, &[x.clone()], &[]);
    let moved = [("strides", list(&[2, 3])), ("pads", list(&[1, 0, 2, 1]))];
    let moved = [&gaps[..], &moved].concat();
    check_fixed("MaxPool", &moved, &[x.clone()], &[]);
    let up = [moved.as_slice(), &[("ceil_mode", 1.into())]].concat();
    check_fixed("MaxPool", &up, &[x.clone()], &[]);
    let same = [&gaps[..], &[("auto_pad", word("SAME_LOWER"))]].concat();
    check_fixed("MaxPool", &same, &[x], &[]);
    let line = [("kernel_shape", list(&[4])), ("dilations", list(&[3]))];
    check_fixed("MaxPool", &line, &[floats(&[1, 2, 20], 2)], &[]);
}

#[test]
fn pools_with_norms_of_any_order() {
    let x = floats(&[1, 2, 7, 8], 1);
    let pool = [("kernel_shape", list(&[3, 2])), ("p", 3.into())];
    check_fixed("LpPool", &pool, &[x.clone()], &[]);
    check_fixed("GlobalLpPool", &[("p", 3.into())], &[x], &[]);
}

#[test]
fn normalisations_by_channel() {
    for shape in [&[2, 3][..], &[2, 3, 5], &[2, 3, 5, 4], &[1, 3, 2, 4, 3]] {
        let x = floats(shape, 1);
        let [scale, bias, mean] = [2, 3, 4].map(|seed| floats(&[3], seed));
        let all = [scale.clone(), bias.clone(), mean, positive(&[3], 5)];
        check("BatchNormalization", &[("epsilon", 1e-3_f32.into())], &[x.clone()], &all);
        if shape.len() > 2 {
            check("InstanceNormalization", &[], &[x.clone()], &[scale.clone(), bias.clone()]);
            check_fixed("InstanceNormalization", &[], &[x, scale, bias], &[]);
        }
    }
}

#[test]
fn variances_beyond_fp16_are_part_of_the_scale() {
    let x = Tensor::from_vec(&[1, 2, 3], vec![100.0_f32, -200.0, 300.0, 50.0, 0.0, 20.0]).unwrap();
    let pair = |a: f32, b: f32| Tensor::vector(vec![a, b]);
    let all = [pair(1.0, 2.0), pair(0.0, 1.0), pair(1.0, 2.0), pair(1e6, 1e-9)];
    check("BatchNormalization", &[("epsilon", 1e-3_f32.into())], &[x], &all);
}

#[test]
fn normalisations_of_the_last_axes() {
    let x = floats(&[2, 3, 4, 6], 1);
    check("LayerNormalization", &[], &[x.clone()], &[floats(&[6], 2), floats(&[6], 3)]);
    check("LayerNormalization", &[], &[x.clone()], &[floats(&[6], 2)]);
    let axis = [("axis", 2.into())];
    check("LayerNormalization", &axis, &[x.clone()], &[floats(&[4, 6], 2), floats(&[4, 6], 3)]);
    check_fixed("LayerNormalization", &axis, &[x.clone()], &[floats(&[6], 2)]);
    check_fixed("LayerNormalization", &[], &[x.clone(), floats(&[6], 2), floats(&[6], 3)], &[]);
    let mut maker = GraphMaker::new();
    maker.graph.opsets.insert(String::new(), 23);
    let ids = [maker.input("x", x), maker.constant(floats(&[6], 2))];
    let made = maker.node("RMSNormalization", &[], &ids, 1);
    agree(maker, &made, HALF);
}

#[test]
fn squares_beyond_fp16_are_not_computed() {
    let all = values(24, 1).into_iter().map(|value| value * 1000.0).collect();
    let x = Tensor::from_vec(&[1, 4, 6], all).unwrap();
    check("SimplifiedLayerNormalization", &[], &[x], &[floats(&[6], 2)]);
}

#[test]
fn normalisations_of_groups_of_channels() {
    let x = floats(&[2, 6, 4, 3], 1);
    for version in [18, 21] {
        let mut maker = GraphMaker::new();
        maker.graph.opsets.insert(String::new(), version);
        let count = if version == 18 { 3 } else { 6 };
        let ids = [
            maker.input("x", x.clone()),
            maker.constant(floats(&[count], 2)),
            maker.constant(floats(&[count], 3)),
        ];
        let made = maker.node("GroupNormalization", &[("num_groups", 3.into())], &ids, 1);
        agree_fixed(maker, &made, HALF);
    }
}

#[test]
fn normalisations_behind_a_residual() {
    let (x, skip) = (floats(&[2, 3, 8], 1), floats(&[2, 3, 8], 2));
    let constants = [floats(&[8], 3), floats(&[8], 4), floats(&[8], 5)];
    for (op, count) in [("SkipLayerNormalization", 3), ("SkipSimplifiedLayerNormalization", 2)] {
        let mut maker = GraphMaker::new();
        let mut ids = vec![maker.input("x", x.clone()), maker.input("skip", skip.clone())];
        ids.extend(constants.iter().take(count).map(|one| maker.constant(one.clone())));
        let made = maker.node(&format!("com.microsoft:{op}"), &[], &ids, 4);
        agree_fixed(maker, &[made[0], made[3]], HALF);
    }
}

#[test]
fn other_normalisations() {
    let x = floats(&[2, 5, 4, 3], 1);
    let numbers = [("size", 3.into()), ("alpha", 0.1_f32.into()), ("bias", 2.0_f32.into())];
    check("LRN", &numbers, &[x.clone()], &[]);
    for p in [1, 2] {
        check("LpNormalization", &[("p", p.into()), ("axis", 1.into())], &[x.clone()], &[]);
    }
    check("LpNormalization", &[], &[Tensor::from_vec(&[2, 2], vec![0.0_f32; 4]).unwrap()], &[]);
    check("MeanVarianceNormalization", &[], &[x], &[]);
    let (maker, made) = one("LRN", &[("size", 4.into())], &[floats(&[1, 5, 2, 2], 1)], &[]);
    assert!(refused(maker, &made).contains("odd"));
}

#[test]
fn products_of_matrices() {
    for shape in [&[5][..], &[3, 5], &[2, 3, 5], &[2, 2, 3, 5]] {
        check("MatMul", &[], &[floats(shape, 1)], &[floats(&[5, 4], 2)]);
        check("MatMul", &[], &[floats(shape, 1)], &[floats(&[5], 2)]);
    }
    check_fixed("MatMul", &[], &[floats(&[2, 3, 5], 1), floats(&[2, 5, 4], 2)], &[]);
    check_fixed("MatMul", &[], &[floats(&[2, 1, 3, 5], 1), floats(&[4, 5, 2], 2)], &[]);
    check_fixed("MatMul", &[], &[floats(&[5], 1), floats(&[4, 5, 2], 2)], &[]);
}

#[test]
fn scaled_products_with_a_third_matrix() {
    let a = floats(&[3, 5], 1);
    let turned = [("transB", 1.into())];
    check("Gemm", &turned, &[a.clone()], &[floats(&[4, 5], 2), floats(&[4], 3)]);
    check("Gemm", &[], &[a.clone()], &[floats(&[5, 4], 2), floats(&[1, 4], 3)]);
    let scaled = [("alpha", 0.5_f32.into()), ("beta", 2.0_f32.into()), ("transA", 1.into())];
    check_fixed("Gemm", &scaled, &[floats(&[5, 3], 1)], &[floats(&[5, 4], 2), floats(&[4], 3)]);
    let activated = [("activation", word("LeakyRelu")), ("transB", 1.into())];
    check("com.microsoft:FusedGemm", &activated, &[a], &[floats(&[4, 5], 2), floats(&[4], 3)]);
    let turns = [("transA", 1.into()), ("transB", 1.into()), ("alpha", 0.25_f32.into())];
    let pair = [floats(&[2, 5, 3], 1), floats(&[2, 4, 5], 2)];
    check_fixed("com.microsoft:FusedMatMul", &turns, &pair, &[]);
    let batches = [("transBatchA", 1.into())];
    let pair = [floats(&[3, 2, 5], 1), floats(&[2, 5, 4], 2)];
    check_fixed("com.microsoft:FusedMatMul", &batches, &pair, &[]);
}

#[test]
fn layers_with_a_bias_are_one_operation() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[2, 3, 8], 1));
    let w = maker.constant(floats(&[8, 5], 2));
    let b = maker.constant(floats(&[5], 3));
    let product = maker.node("MatMul", &[], &[x, w], 1)[0];
    let sum = maker.node("Add", &[], &[product, b], 1);
    agree(maker, &sum, HALF);
}

#[test]
fn sums_of_products_named_by_letters() {
    let equations: &[(&str, &[usize], &[usize])] = &[
        ("ij,jk->ik", &[3, 4], &[4, 5]),
        ("bij,bkj->bik", &[2, 3, 4], &[2, 5, 4]),
        ("bqhd,bkhd->bhqk", &[2, 3, 4, 5], &[2, 6, 4, 5]),
        ("abcd,cde->abe", &[2, 3, 4, 5], &[4, 5, 6]),
        ("i,j->ij", &[3], &[4]),
        ("ij,ij->j", &[3, 4], &[3, 4]),
    ];
    for &(equation, a, b) in equations {
        let named = [("equation", word(equation))];
        check_fixed("Einsum", &named, &[floats(a, 1), floats(b, 2)], &[]);
    }
    check_fixed("Einsum", &[("equation", word("abc->ca"))], &[floats(&[2, 3, 4], 1)], &[]);
}
