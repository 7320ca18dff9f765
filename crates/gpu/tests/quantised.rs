//! Integers of 8 bits with scales and zero points on the device, compared with their reference.

use crate::support::node::{Node, bytes, floats};
use galatea_graph::{AttributeValue, Attributes};
use galatea_tensor::{Tensor, Tolerance};

const CONTRIB: &str = "com.microsoft";

fn int(name: &str, value: i64) -> Attributes {
    Attributes::from([(name.to_owned(), AttributeValue::Int(value))])
}

/// Bytes with a sign that differ.
fn signed(shape: &[usize]) -> Tensor {
    let all = bytes(shape).to_vec::<u8>().unwrap().into_iter().map(u8::cast_signed);
    Tensor::from_vec(shape, all.collect::<Vec<i8>>()).unwrap()
}

/// Integers of 32 bits that differ.
fn words(shape: &[usize]) -> Tensor {
    let count = i32::try_from(shape.iter().product::<usize>()).unwrap();
    Tensor::from_vec(shape, (0..count).map(|at| (at - 9) * 1234).collect::<Vec<i32>>()).unwrap()
}

/// Scales whose quotients are exact or far from a tie.
fn scales(count: usize) -> Tensor {
    let powers = [0.25_f32, 0.125, 0.5, 1.0, 0.0625];
    Tensor::vector((0..count).map(|at| powers[at % 5]).collect::<Vec<f32>>())
}

const SHAPES: &[&[usize]] = &[&[1], &[3], &[4], &[5, 7], &[2, 3, 8], &[0, 4], &[257, 5]];

#[test]
fn floats_are_quantised_and_back_with_one_scale() {
    let scale = || Tensor::scalar(0.25_f32);
    for shape in SHAPES {
        let quantise = Node::new("", "QuantizeLinear").input(floats(shape, 60.0));
        quantise.clone().constant(scale()).exact();
        quantise.clone().input(scale()).input(Tensor::scalar(100_u8)).exact();
        quantise.constant(scale()).constant(Tensor::scalar(-3_i8)).exact();
        let back = |x: Tensor| Node::new("", "DequantizeLinear").input(x);
        back(bytes(shape)).input(scale()).input(Tensor::scalar(7_u8)).near(0.0, 2e-2);
        back(signed(shape)).constant(scale()).near(0.0, 2e-2);
        back(words(shape)).constant(Tensor::scalar(1e-5_f32)).near(1e-6, 1e-2);
    }
}

#[test]
fn scales_go_along_an_axis() {
    for (shape, axis) in [(&[5, 7][..], 1), (&[5, 7], 0), (&[2, 3, 8], 1), (&[2, 8, 3, 4], -3)] {
        let place = usize::try_from(if axis < 0 { axis + 4 } else { axis }).unwrap();
        let len = shape[place];
        let node = |op: &'static str, x: Tensor| {
            Node::new("", op).with(int("axis", axis)).input(x).constant(scales(len))
        };
        node("QuantizeLinear", floats(shape, 9.0)).constant(signed(&[len])).exact();
        node("DequantizeLinear", bytes(shape)).constant(bytes(&[len])).near(0.0, 2e-2);
        node("DequantizeLinear", signed(shape)).near(0.0, 2e-2);
    }
}

#[test]
fn blocks_along_an_axis_share_scales() {
    for (shape, axis, block) in [
        (&[6, 5][..], 0, 3),
        (&[5, 8], -1, 4),
        (&[2, 6, 5], 1, 2),
        (&[3, 1], 1, 1),
        (&[0, 4], 1, 2),
    ] {
        let mut counts = shape.to_vec();
        let rank = i64::try_from(shape.len()).unwrap();
        let place = usize::try_from(if axis < 0 { axis + rank } else { axis }).unwrap();
        counts[place] /= usize::try_from(block).unwrap();
        let scale = || {
            let all = scales(counts.iter().product()).to_vec::<f32>().unwrap();
            Tensor::from_vec(&counts, all).unwrap()
        };
        // The second input of the run makes the lengths known.
        let node = |op: &'static str, x: Tensor| {
            let node = Node::new("", op).with(int("axis", axis)).with(int("block_size", block));
            node.input(x).input(scale())
        };
        node("QuantizeLinear", floats(shape, 9.0)).constant(signed(&counts)).exact();
        node("DequantizeLinear", bytes(shape)).constant(bytes(&counts)).near(0.0, 2e-2);
        node("DequantizeLinear", signed(shape)).near(0.0, 2e-2);
    }
}

#[test]
fn values_beyond_the_type_are_limited() {
    let all = vec![300.0_f32, -300.0, f32::INFINITY, f32::NEG_INFINITY, 0.5, 1.5, 2.5];
    let x = || Tensor::vector(all.clone());
    let node = || Node::new("", "QuantizeLinear").input(x()).input(Tensor::scalar(1.0_f32));
    node().input(Tensor::scalar(128_u8)).exact();
    node().input(Tensor::scalar(0_i8)).exact();
}

#[test]
fn operators_between_quantised_values_agree() {
    let scale = |value: f32| Tensor::scalar(value);
    for (a, b) in [(&[5, 7][..], &[7][..]), (&[6, 8], &[6, 1]), (&[3], &[3]), (&[0, 2], &[1])] {
        for op in ["QLinearAdd", "QLinearMul"] {
            let node = Node::new(CONTRIB, op).input(bytes(a)).constant(scale(0.03));
            let node = node.constant(Tensor::scalar(120_u8)).input(bytes(b)).constant(scale(0.11));
            let node = node.constant(Tensor::scalar(3_u8)).constant(scale(0.17));
            node.constant(Tensor::scalar(9_u8)).compare(Tolerance::Within(1.0));
        }
    }
    for op in ["QLinearSigmoid", "QLinearLeakyRelu"] {
        let node = Node::new(CONTRIB, op).input(signed(&[5, 9])).constant(scale(0.07));
        let node = node.constant(Tensor::scalar(4_i8)).constant(scale(0.008));
        node.constant(Tensor::scalar(-100_i8)).compare(Tolerance::Within(1.0));
    }
}

#[test]
fn floats_are_quantised_with_the_scale_that_they_need() {
    for shape in [&[3][..], &[1], &[5, 7], &[4096, 3], &[2, 9001]] {
        for size in [3.0, 1e-3] {
            let node = Node::new("", "DynamicQuantizeLinear").input(floats(shape, size));
            node.outputs(3).compare(Tolerance::Within(1.0));
        }
    }
    // Of one sign, and nothing but zeros.
    for all in [vec![2.0_f32, 5.1, 1.0], vec![-2.0, -5.1, -1.0], vec![0.0; 5]] {
        let node = Node::new("", "DynamicQuantizeLinear").input(Tensor::vector(all));
        node.outputs(3).compare(Tolerance::Within(1e-6));
    }
}

#[test]
fn bytes_are_looked_up() {
    let table = (0..256).map(|at| (at * 7 + 3) % 256).collect();
    for number in [2, 3] {
        let with =
            Attributes::from([("table".to_owned(), AttributeValue::Ints(Clone::clone(&table)))]);
        let node = Node::new("ai.galatea", "LookUp").with(with).with(int("dtype", number));
        for shape in SHAPES {
            node.clone().input(bytes(shape)).exact();
            node.clone().input(signed(shape)).exact();
        }
    }
}

#[test]
fn products_of_bytes_become_floats() {
    for (m, k, n) in [(1, 9, 5), (70, 68, 72), (3, 300, 1), (5, 33, 130)] {
        let scale = |value: f32| Tensor::scalar(value);
        let row = |size: f32| floats(&[n], size);
        let node = || Node::new(CONTRIB, "MatMulIntegerToFloat").input(bytes(&[m, k]));
        let plain = node().input(signed(&[k, n])).constant(scale(0.01)).constant(scale(0.02));
        plain.clone().near(1e-3, 0.5);
        let zeros = plain.constant(Tensor::scalar(77_u8)).constant(signed(&[n]));
        zeros.constant(row(2.0)).near(3e-3, 1.0);
        let node = node().constant(bytes(&[k, n])).constant(scale(0.01)).constant(row(0.02));
        node.absent().absent().constant(row(1.0)).near(3e-3, 1.0);
        let node = Node::new(CONTRIB, "DynamicQuantizeMatMul").input(floats(&[2, m, k], 2.0));
        let node = node.constant(signed(&[k, n])).constant(row(0.02));
        // An element that rounds to the byte beside moves a sum by its step times a weight.
        node.clone().near(0.1, 2.0);
        node.constant(signed(&[n])).constant(row(1.0)).near(0.1, 2.0);
    }
}

/// Shapes of images and weights, and the convolution.
fn convolutions() -> Vec<(Vec<usize>, Vec<usize>, Attributes)> {
    let ints = |name: &str, all: &[i64]| {
        Attributes::from([(name.to_owned(), AttributeValue::Ints(all.to_vec()))])
    };
    let of = |x: &[usize], w: &[usize], parts: &[Attributes]| {
        (x.to_vec(), w.to_vec(), parts.iter().flat_map(Clone::clone).collect())
    };
    vec![
        of(&[1, 3, 9, 11], &[5, 3, 3, 3], &[ints("pads", &[1, 1, 1, 1])]),
        of(&[2, 4, 7, 5], &[70, 4, 1, 1], &[]),
        of(&[1, 6, 13, 9], &[4, 3, 3, 2], &[int("group", 2), ints("strides", &[2, 1])]),
        of(&[2, 5, 8, 8], &[5, 1, 3, 3], &[int("group", 5), ints("dilations", &[2, 2])]),
        of(&[1, 18, 5, 6], &[20, 9, 2, 2], &[int("group", 2)]),
        of(
            &[2, 6, 9, 7],
            &[12, 1, 3, 3],
            &[int("group", 6), ints("pads", &[1, 0, 2, 1]), ints("strides", &[2, 2])],
        ),
        of(&[2, 2, 40], &[3, 2, 5], &[ints("pads", &[4, 0])]),
        of(&[1, 2, 4, 5, 6], &[3, 2, 2, 3, 2], &[ints("pads", &[0, 1, 1, 1, 0, 0])]),
    ]
}

#[test]
fn convolutions_of_bytes_are_summed_exactly() {
    for (x, w, with) in convolutions() {
        let node = || Node::new("", "ConvInteger").with(with.clone());
        node().input(bytes(&x)).input(bytes(&w)).exact();
        node().input(bytes(&x)).input(signed(&w)).input(Tensor::scalar(128_u8)).exact();
        let node = node().input(signed(&x)).constant(bytes(&w)).constant(Tensor::scalar(-7_i8));
        node.constant(bytes(&[w[0]])).exact();
    }
}

/// A quantised convolution with a bias.
fn quantised(domain: &'static str, op: &'static str, x: Tensor, w: &[usize]) -> Node {
    let scale = |value: f32| Tensor::scalar(value);
    let zero = || Tensor::scalar(120_u8);
    let node = Node::new(domain, op).input(x).constant(scale(0.5)).constant(zero());
    let node = node.constant(signed(w)).constant(scales(w[0])).constant(signed(&[w[0]]));
    node.constant(scale(64.0)).constant(zero()).constant(words(&[w[0]]))
}

#[test]
fn convolutions_of_bytes_are_quantised_again() {
    for (x, w, with) in convolutions() {
        quantised("", "QLinearConv", bytes(&x), &w).with(with.clone()).exact();
        let last = [&x[..1], &x[2..], &x[1..2]].concat();
        let node = quantised(CONTRIB, "QLinearConv", bytes(&last), &w).with(with);
        node.with(int("channels_last", 1)).exact();
    }
}

#[test]
fn a_sum_behind_a_convolution_is_rounded_as_the_two_are() {
    for channels_last in [0, 1] {
        let (x, w) = ([1, 5, 6, 3], [4, 3, 1, 1]);
        let x = if channels_last == 1 { x } else { [1, 3, 5, 6] };
        let y = if channels_last == 1 { [1, 5, 6, 4] } else { [1, 4, 5, 6] };
        let node = quantised("ai.galatea", "QLinearConvAdd", bytes(&x), &w);
        let node = node.with(int("channels_last", channels_last)).constant(signed(&y));
        let node = node.constant(Tensor::scalar(32.0_f32));
        let (zeros, signed_zeros) = (Tensor::scalar(3_i8), Tensor::scalar(-4_i8));
        let scale = Tensor::scalar(128.0_f32);
        node.clone().constant(zeros).constant(scale.clone()).constant(signed_zeros.clone()).exact();
        node.absent().constant(scale).constant(signed_zeros).exact();
    }
}
