//! Every kernel row against the reference evaluation, node by node.

use crate::support;
use crate::support::{Maker, check_node, check_outputs, floats, ints};
use galatea_graph::AttributeValue;
use galatea_runtime::{Precision, Run};
use galatea_tensor::Tensor;

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
    let shapes: [(&[usize], &[usize]); 10] = [
        (&[2, 1, 3], &[4, 1]),
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
fn functions_of_many_tensors_equal_the_reference_for_every_broadcast() {
    let shapes: [&[&[usize]]; 6] = [
        &[&[2, 3, 4], &[4], &[2, 3, 4]],
        &[&[4], &[2, 3, 4], &[3, 1], &[]],
        &[&[2, 1, 4], &[3, 1], &[1, 3, 1]],
        &[&[2, 3, 5, 7], &[2, 1, 1, 7], &[5, 1]],
        &[&[3, 5]],
        &[&[0, 3], &[3], &[1]],
    ];
    for op in ["Sum", "Mean", "Max", "Min"] {
        for all in shapes {
            let inputs: Vec<Tensor> =
                all.iter().zip(1..).map(|(shape, seed)| floats(shape, seed)).collect();
            check_node(op, &[], &inputs, &[], "variadic-f32");
        }
    }
}

#[test]
fn integers_wrap_as_the_reference_wraps() {
    let (a, b) = (ints(&[2, 3], &[1, -2, 3, i64::MAX, 5, 6]), ints(&[3], &[7, 8, i64::MAX]));
    for op in ["Add", "Sub", "Mul"] {
        check_node(op, &[], &[a.clone(), b.clone()], &[], "binary-integer");
        let narrow = Tensor::from_slice(&[2], &[100_i8, -128]).unwrap();
        check_node(op, &[], &[narrow.clone(), narrow], &[], "binary-integer");
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
fn factors_of_products_and_of_what_is_added_are_part_of_the_kernel() {
    let number = |name, value| (name, AttributeValue::Float(value));
    let factors = [number("alpha", 0.5), number("beta", -2.0)];
    let constants = [floats(&[64, 33], 2), floats(&[33], 3)];
    for rows in [1, 9] {
        let x = floats(&[rows, 64], 1);
        check_node("Gemm", &factors, std::slice::from_ref(&x), &constants, "gemm-f32-packed");
        // What is added need not be a constant.
        let mut maker = support::Maker::new();
        let (x, w) = (maker.input("x", x), maker.constant(floats(&[64, 33], 2)));
        let c = maker.input("c", floats(&[1, 33], 3));
        let y = maker.node("Gemm", &factors, &[x, w, c], 1);
        support::assert_kernel(&maker.check(&y, 64).1, "gemm-f32-packed");
    }
    for (precision, kernel) in
        [(Precision::Bf16, "gemm-bf16-packed"), (Precision::Fp16, "gemm-fp16-packed")]
    {
        let mut maker = support::Maker::new();
        maker.precision = precision;
        let x = maker.input("x", floats(&[9, 64], 1));
        let (w, c) = (maker.constant(floats(&[64, 33], 2)), maker.constant(floats(&[33], 3)));
        let y = maker.node("Gemm", &factors, &[x, w, c], 1);
        support::assert_kernel(&maker.check_within(&y, 0.1), kernel);
    }
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
fn a_gate_multiplies_the_product() {
    let (x, w, bias) = (floats(&[2, 5, 16], 1), floats(&[16, 24], 2), floats(&[24], 3));
    let mut maker = support::Maker::new();
    let (x, gate) = (maker.input("x", x), maker.input("gate", floats(&[2, 5, 24], 4)));
    let (w, bias) = (maker.constant(w), maker.constant(bias));
    let gated = [("gated", AttributeValue::Int(1))];
    let y = maker.node("ai.galatea:FusedMatMul", &gated, &[x, w, bias, gate], 1);
    let (_, rows) = maker.check(&y, 16);
    support::assert_kernel(&rows, "fused_matmul-f32-packed");
}

#[test]
fn chains_of_elements_equal_the_reference_for_every_broadcast() {
    let names = ["Sub", "Sigmoid", "Mul", "Clip", "Div", "Add"];
    let names = AttributeValue::Strings(names.iter().map(|&name| name.into()).collect());
    let attributes = [
        ("functions", names),
        ("operands", AttributeValue::Ints(vec![0, 1, -1, -2, 0, -3, -4, 2, 1, -5])),
        ("parameters", AttributeValue::Floats(vec![-0.5, 0.5])),
        ("parameter_counts", AttributeValue::Ints(vec![0, 0, 0, 2, 0, 0])),
    ];
    let shapes: [[&[usize]; 3]; 6] = [
        [&[2, 3, 700], &[2, 3, 700], &[2, 3, 700]],
        [&[2, 3, 700], &[700], &[1]],
        [&[2, 3, 7, 7], &[3, 1, 1], &[2, 1, 7, 7]],
        [&[3, 1], &[1, 5], &[2, 1, 1]],
        [&[4, 1, 6], &[5, 6], &[4, 5, 1]],
        [&[0, 3], &[3], &[1]],
    ];
    for inputs in shapes {
        let inputs: Vec<Tensor> =
            inputs.iter().zip(0..).map(|(shape, seed)| floats(shape, seed)).collect();
        let name = "elementwise-f32-chain";
        check_node("ai.galatea:FusedElementwise", &attributes, &inputs, &[], name);
    }
}

#[test]
fn heads_turn_as_the_reference_turns_them() {
    for (perm, x) in [([0, 1, 2, 3], [2, 3, 5, 8]), ([0, 2, 1, 3], [2, 5, 3, 8])] {
        for table in [&[1, 1, 5, 8][..], &[5, 4], &[2, 1, 5, 4], &[8]] {
            let perm = [("perm", AttributeValue::Ints(perm.to_vec()))];
            let inputs = [floats(&x, 1), floats(table, 2), floats(table, 3)];
            check_node("ai.galatea:Rotary", &perm, &inputs, &[], "rotary-f32");
        }
    }
}

#[test]
fn rows_of_tables_turn_heads_as_the_reference_turns_them() {
    let check = |op: &str, attributes: &[(&str, AttributeValue)], inputs: &[Tensor]| {
        let mut maker = Maker::new();
        maker.graph.opsets.insert(String::new(), 23);
        let named = inputs.iter().enumerate();
        let ids: Vec<_> = named.map(|(at, x)| maker.input(&format!("x{at}"), x.clone())).collect();
        let made = maker.node(op, attributes, &ids, 1);
        let (_, rows) = maker.check(&made, 4);
        assert_eq!(rows[0].kernel, "rotary_embedding-f32");
    };
    let (cos, sin) = (floats(&[9, 3], 2), floats(&[9, 3], 3));
    let positions = ints(&[2, 4], &[0, 8, 3, 3, 1, 2, 7, 5]);
    for interleaved in [0, 1] {
        let number = |name, value| (name, AttributeValue::Int(value));
        let own = [
            number("interleaved", interleaved),
            number("num_heads", 5),
            number("rotary_embedding_dim", 6),
        ];
        for x in [floats(&[2, 4, 5 * 8], 1), floats(&[2, 5, 4, 8], 1)] {
            let named = [x.clone(), cos.clone(), sin.clone(), positions.clone()];
            check("RotaryEmbedding", &own, &named);
            let in_turn = [x.clone(), floats(&[1, 4, 3], 2), floats(&[1, 4, 3], 3)];
            check("RotaryEmbedding", &own, &in_turn);
            for positions in [positions.clone(), ints(&[1], &[4])] {
                let inputs = [x.clone(), positions, cos.clone(), sin.clone()];
                check("com.microsoft:RotaryEmbedding", &own, &inputs);
            }
        }
    }
}

#[test]
fn channels_are_normalised_as_the_reference_does() {
    let x = floats(&[2, 6, 5, 3], 1);
    let parameters: Vec<Tensor> = (2..5).map(|seed| floats(&[6], seed)).collect();
    let variance = floats(&[6], 5).to_vec::<f32>().unwrap().iter().map(|v| v * v + 0.1).collect();
    let variance = Tensor::vector::<f32>(variance);
    let inputs = [x.clone(), parameters[0].clone(), parameters[1].clone()];
    check_node("InstanceNormalization", &[], &inputs, &[], "instance_norm-f32");
    let mut maker = support::Maker::new();
    maker.graph.opsets.insert(String::new(), 21);
    let given = [("x", 0), ("scale", 1), ("bias", 2)];
    let values = given.map(|(name, at)| maker.input(name, inputs[at].clone()));
    let groups = [("num_groups", AttributeValue::Int(3))];
    let y = maker.node("GroupNormalization", &groups, &values, 1);
    let (_, rows) = maker.check(&y, 16);
    support::assert_kernel(&rows, "group_norm-f32");
    let inputs = [&inputs[..], &[parameters[2].clone(), variance]].concat();
    check_node("BatchNormalization", &[], &inputs, &[], "batch_norm-f32");
}

#[test]
fn softmax_equals_the_reference() {
    check_node("Softmax", &[], &[floats(&[2, 3, 17], 1)], &[], "softmax-f32");
    check_node("LogSoftmax", &[], &[floats(&[2, 17], 1)], &[], "softmax-f32");
}

#[test]
fn elements_move_as_the_reference_moves_them() {
    let perm = |order: &[i64]| [("perm", AttributeValue::Ints(order.to_vec()))];
    for order in [[0, 2, 1, 3], [0, 2, 3, 1], [3, 1, 0, 2], [0, 1, 3, 2]] {
        check_node("Transpose", &perm(&order), &[floats(&[2, 3, 4, 5], 1)], &[], "transpose-any");
        let whole = ints(&[2, 3, 4, 5], &(0..120).collect::<Vec<_>>());
        check_node("Transpose", &perm(&order), &[whole], &[], "transpose-any");
    }
    let axis = |at: i64| [("axis", AttributeValue::Int(at))];
    let parts = [floats(&[2, 1, 4], 1), floats(&[2, 3, 4], 2), floats(&[2, 2, 4], 3)];
    check_node("Concat", &axis(1), &parts, &[], "concat-any");
    let lengths = [ints(&[2], &[1, 3])];
    check_outputs("Split", &axis(-1), &[floats(&[2, 3, 4], 1)], &lengths, 2, "split-any");
    check_node("Expand", &[], &[floats(&[3, 1], 1)], &[ints(&[3], &[2, 1, 4])], "expand-any");
}

#[test]
fn slices_take_the_reference_elements() {
    // Starts, ends, axes and steps.
    let cases: [[&[i64]; 4]; 4] = [
        [&[1], &[3], &[1], &[1]],
        [&[0, -1], &[10, -9], &[0, 2], &[1, -2]],
        [&[5], &[0], &[1], &[-1]],
        [&[2], &[2], &[0], &[1]],
    ];
    for case in cases {
        let constants = case.map(|values| ints(&[values.len()], values));
        check_node("Slice", &[], &[floats(&[3, 4, 5], 1)], &constants, "slice-any");
    }
}

#[test]
fn rows_are_gathered_and_wrong_indices_are_errors() {
    let table = floats(&[10, 8], 1);
    let mut maker = support::Maker::new();
    let indices = maker.input("i", ints(&[2, 3], &[0, 9, -1, 4, 4, -10]));
    let table = maker.constant(table);
    let y = maker.node("Gather", &[], &[table, indices], 1);
    maker.graph.outputs = y.iter().flatten().copied().collect();
    let error =
        maker.session("cpu").run_tensors(Run::named(&[("i", ints(&[1, 1], &[10]))])).unwrap_err();
    assert!(error.to_string().contains("index 10"), "{error}");
    let (_, rows) = maker.check(&y, 1);
    support::assert_kernel(&rows, "gather-any");
    let axis = [("axis", AttributeValue::Int(1))];
    let data = [floats(&[2, 5, 3], 1)];
    check_node("Gather", &axis, &data, &[ints(&[2], &[4, 1])], "gather-any");
}

#[test]
fn masks_are_made_as_the_reference_makes_them() {
    let mask = |shape: &[usize]| {
        let count: usize = shape.iter().product();
        Tensor::from_vec(shape, (0..count).map(|at| at % 3 != 1).collect::<Vec<bool>>()).unwrap()
    };
    let (a, b) = (floats(&[3, 4], 1), Tensor::scalar(-1.0_f32));
    check_node("Where", &[], &[mask(&[2, 1, 4]), a, b], &[], "where-any");
    check_node("And", &[], &[mask(&[2, 1, 4]), mask(&[3, 1])], &[], "logical-bool");
    check_node("Not", &[], &[mask(&[2, 5])], &[], "not-bool");
    let (a, b) = (ints(&[4], &[1, 2, 3, 4]), ints(&[2, 1], &[2, 4]));
    for op in ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"] {
        check_node(op, &[], &[a.clone(), b.clone()], &[], "compare-number");
    }
    let to = |number: i64| [("to", AttributeValue::Int(number))];
    check_node("Cast", &to(1), &[mask(&[2, 5])], &[], "cast-number");
    check_node("Cast", &to(9), &[ints(&[3], &[0, 1, -7])], &[], "cast-number");
}

#[test]
fn layer_normalisation_equals_the_reference() {
    let constants = [floats(&[33], 2), floats(&[33], 3)];
    check_node("LayerNormalization", &[], &[floats(&[2, 5, 33], 1)], &constants, "layer_norm-f32");
}

#[test]
fn attention_equals_the_reference_in_every_storage_order() {
    let orders: [(&[i64], [usize; 3]); 2] =
        [(&[0, 1, 2, 3], [3, 7, 5]), (&[0, 2, 1, 3], [7, 3, 5])];
    for (order, [one, two, size]) in orders {
        let stored = AttributeValue::Ints(order.to_vec());
        let attributes = [
            ("scale", AttributeValue::Float(0.5)),
            ("q_perm", stored.clone()),
            ("k_perm", stored.clone()),
            ("v_perm", stored.clone()),
            ("out_perm", stored),
        ];
        let shape = [2, one, two, size];
        let qkv = [floats(&shape, 1), floats(&shape, 2), floats(&shape, 3)];
        let name = "attention-f32-online";
        check_node("ai.galatea:Attention", &attributes, &qkv, &[], name);
        let heads_first = order == [0, 1, 2, 3];
        let keys = if heads_first { two } else { one };
        for mask in [vec![2, 1, 1, keys], vec![keys], vec![2, 1, keys, keys]] {
            let inputs = [&qkv[..], &[floats(&mask, 4)]].concat();
            check_node("ai.galatea:Attention", &attributes, &inputs, &[], name);
        }
    }
}

fn list(values: &[i64]) -> AttributeValue {
    AttributeValue::Ints(values.to_vec())
}

#[test]
fn convolutions_equal_the_reference_in_both_layouts() {
    let same = [("auto_pad", text("SAME_UPPER")), ("strides", list(&[2, 2]))];
    let padded = [("pads", list(&[1, 0, 1, 2])), ("dilations", list(&[1, 2]))];
    for attributes in [&same[..], &padded, &[]] {
        let constants = [floats(&[6, 3, 3, 2], 2), floats(&[6], 3)];
        let image = [floats(&[2, 3, 9, 8], 1)];
        check_node("Conv", attributes, &image, &constants, "conv-f32-packed");
        let image = [floats(&[2, 9, 8, 3], 1)];
        check_node("ai.galatea:ConvNhwc", attributes, &image, &constants, "conv-f32-packed");
    }
    let depthwise = [("group", AttributeValue::Int(5)), ("pads", list(&[1, 1, 1, 1]))];
    let weights = [floats(&[5, 1, 3, 3], 2)];
    check_node("Conv", &depthwise, &[floats(&[1, 5, 7, 6], 1)], &weights, "conv-f32-packed");
    let line = [floats(&[2, 4, 11], 1)];
    check_node("Conv", &[], &line, &[floats(&[3, 4, 5], 2)], "conv-f32-packed");
}

#[test]
fn fused_convolutions_equal_the_reference_in_both_layouts() {
    for (last, x, z) in [(0, [2, 3, 5, 4], [2, 6, 5, 4]), (1, [2, 5, 4, 3], [2, 5, 4, 6])] {
        let mut maker = support::Maker::new();
        let (x, z) = (maker.input("x", floats(&x, 1)), maker.input("z", floats(&z, 2)));
        let weights = maker.constant(floats(&[6, 3, 1, 1], 3));
        let bias = maker.constant(floats(&[6], 4));
        let attributes =
            [("channels_last", AttributeValue::Int(last)), ("activation", text("Relu"))];
        let y = maker.node("ai.galatea:FusedConv", &attributes, &[x, weights, bias, z], 1);
        let (_, rows) = maker.check(&y, 16);
        support::assert_kernel(&rows, "fused_conv-f32-packed");
    }
}

#[test]
fn every_form_of_a_convolution_equals_the_reference() {
    let padded = [("pads", list(&[1, 1, 1, 1]))];
    let narrow = [("pads", list(&[1, 1, 1, 1])), ("strides", list(&[2, 2]))];
    let groups = [("pads", list(&[1, 1, 1, 1])), ("group", AttributeValue::Int(6))];
    // Minimal filtering, an image read in place, groups that share a matrix.
    for (attributes, x, w) in [
        (&padded[..], [1, 64, 20, 21], [48, 64, 3, 3]),
        (&narrow, [2, 3, 33, 40], [20, 3, 3, 3]),
        (&groups, [1, 24, 9, 8], [24, 4, 3, 3]),
    ] {
        let constants = [floats(&w, 2), floats(&w[..1], 3)];
        check_node("Conv", attributes, &[floats(&x, 1)], &constants, "conv-f32-packed");
    }
}

#[test]
fn images_grow_as_the_reference_grows_them() {
    let x = [floats(&[2, 3, 5, 4], 1)];
    let scales = |scales: &[f32]| [Tensor::vector::<f32>(vec![]), Tensor::vector(scales.to_vec())];
    for mode in ["nearest", "linear", "cubic"] {
        let attributes = [("mode", text(mode))];
        for factors in [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 0.6, 2.5], [1.0, 2.0, 1.5, 1.0], [1.0; 4]]
        {
            check_node("Resize", &attributes, &x, &scales(&factors), "resize-f32");
        }
    }
    let transposed = [
        ("strides", list(&[2, 3])),
        ("pads", list(&[1, 0, 0, 1])),
        ("output_padding", list(&[1, 0])),
    ];
    let constants = [floats(&[3, 6, 3, 2], 2), floats(&[6], 3)];
    check_node("ConvTranspose", &transposed, &x, &constants, "conv_transpose-f32-packed");
    let groups = [("group", AttributeValue::Int(3))];
    let weights = [floats(&[3, 2, 4, 4], 2)];
    check_node("ConvTranspose", &groups, &x, &weights, "conv_transpose-f32-packed");
    let line = [floats(&[2, 4, 11], 1)];
    let weights = [floats(&[4, 3, 5], 2)];
    check_node("ConvTranspose", &[], &line, &weights, "conv_transpose-f32-packed");
}

#[test]
fn images_between_convolutions_grow_as_the_reference_grows_them() {
    let mut maker = support::Maker::new();
    let x = maker.input("x", floats(&[1, 3, 6, 5], 1));
    let [first, second] = [[8, 3, 3, 3], [4, 8, 1, 1]].map(|w| maker.constant(floats(&w, 2)));
    let roi = maker.constant(Tensor::vector::<f32>(vec![]));
    let scales = maker.constant(Tensor::vector(vec![1.0_f32, 1.0, 2.0, 3.0]));
    let y = maker.node("Conv", &[], &[x, first], 1);
    let y = maker.node("Resize", &[], &[y[0], roi, scales], 1);
    let y = maker.node("Conv", &[], &[y[0], second], 1);
    let (_, rows) = maker.check(&y, 16);
    support::assert_kernel(&rows, "resize-f32");
}

#[test]
fn pooling_equals_the_reference_in_both_layouts() {
    let attributes = [
        ("kernel_shape", list(&[3, 2])),
        ("strides", list(&[2, 2])),
        ("pads", list(&[1, 0, 1, 1])),
    ];
    let (first, last) = ([floats(&[2, 3, 9, 8], 1)], [floats(&[2, 9, 8, 3], 1)]);
    check_node("MaxPool", &attributes, &first, &[], "max_pool-f32");
    check_node("ai.galatea:MaxPoolNhwc", &attributes, &last, &[], "max_pool-f32");
    check_node("AveragePool", &attributes, &first, &[], "average_pool-f32");
    check_node("ai.galatea:AveragePoolNhwc", &attributes, &last, &[], "average_pool-f32");
    check_node("GlobalAveragePool", &[], &first, &[], "global_average_pool-f32");
    let op = "ai.galatea:GlobalAveragePoolNhwc";
    check_node(op, &[], &last, &[], "global_average_pool-f32");
}

#[test]
fn general_products_equal_the_reference() {
    let trans = [("transB", AttributeValue::Int(1)), ("alpha", AttributeValue::Float(0.5))];
    let constants = [floats(&[7, 20], 2), floats(&[7], 3)];
    check_node("Gemm", &trans, &[floats(&[7, 20], 1)], &constants, "gemm-f32-packed");
    // A column of C is no bias of the columns: it is added behind the sums.
    let constants = [floats(&[7, 20], 2), floats(&[7, 1], 3)];
    check_node("Gemm", &trans, &[floats(&[7, 20], 1)], &constants, "gemm-f32-packed");
}

#[test]
fn reductions_equal_the_reference() {
    for op in ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare"] {
        for axes in [&[-1][..], &[1], &[0, 1], &[]] {
            let attributes = if axes.is_empty() { vec![] } else { vec![("axes", list(axes))] };
            check_node(op, &attributes, &[floats(&[3, 4, 5], 1)], &[], "reduce-f32");
        }
    }
    let keep = [("keepdims", AttributeValue::Int(0))];
    check_node("ReduceSum", &keep, &[floats(&[3, 4, 5], 1)], &[ints(&[1], &[1])], "reduce-f32");
}

#[test]
fn an_lstm_equals_the_reference_in_every_direction() {
    for (direction, passes) in [("forward", 1), ("reverse", 1), ("bidirectional", 2)] {
        let mut maker = support::Maker::new();
        let x = maker.input("x", floats(&[5, 3, 7], 1));
        let [w, r] = [7, 6].map(|size| maker.constant(floats(&[passes, 24, size], 2)));
        let bias = maker.constant(floats(&[passes, 48], 3));
        let [h, c] = ["h", "c"].map(|name| maker.input(name, floats(&[passes, 3, 6], 4)));
        let attributes = [("direction", text(direction)), ("hidden_size", AttributeValue::Int(6))];
        let y = maker.node("LSTM", &attributes, &[x, w, r, bias, None, h, c], 3);
        let (_, rows) = maker.check(&y, 32);
        support::assert_kernel(&rows, "lstm-f32-packed");
    }
}

/// Complete trees of two levels over three features; every leaf votes for these targets.
fn trees(prefix: &str, mode: &str, votes: &[i64]) -> Vec<(String, AttributeValue)> {
    let (trees, weights) = (11_i64, support::values(11 * 4 * votes.len(), 7));
    let branch = |node: i64| node < 3;
    let all = || (0..trees).flat_map(|tree| (0..7_i64).map(move |node| (tree, node)));
    let each =
        |of: &dyn Fn(i64, i64) -> i64| list(&all().map(|(t, n)| of(t, n)).collect::<Vec<_>>());
    let modes = all().map(|(_, node)| (if branch(node) { mode } else { "LEAF" }).into());
    let cast: Vec<(i64, i64, i64)> = all()
        .filter(|(_, node)| !branch(*node))
        .flat_map(|(tree, node)| votes.iter().map(move |&target| (tree, node, target)))
        .collect();
    let of_votes =
        |of: &dyn Fn(&(i64, i64, i64)) -> i64| list(&cast.iter().map(of).collect::<Vec<_>>());
    [
        ("nodes_treeids".to_owned(), each(&|tree, _| tree)),
        ("nodes_nodeids".to_owned(), each(&|_, node| node)),
        (
            "nodes_featureids".to_owned(),
            each(&|tree, node| (tree + node) % 3 * i64::from(branch(node))),
        ),
        ("nodes_truenodeids".to_owned(), each(&|_, node| (2 * node + 1) * i64::from(branch(node)))),
        (
            "nodes_falsenodeids".to_owned(),
            each(&|_, node| (2 * node + 2) * i64::from(branch(node))),
        ),
        ("nodes_missing_value_tracks_true".to_owned(), each(&|tree, node| (tree + node) % 2)),
        ("nodes_values".to_owned(), AttributeValue::Floats(support::values(77, 5))),
        ("nodes_modes".to_owned(), AttributeValue::Strings(modes.collect())),
        (format!("{prefix}_treeids"), of_votes(&|vote| vote.0)),
        (format!("{prefix}_nodeids"), of_votes(&|vote| vote.1)),
        (format!("{prefix}_ids"), of_votes(&|vote| vote.2)),
        (format!("{prefix}_weights"), AttributeValue::Floats(weights)),
    ]
    .into()
}

#[test]
fn tree_ensembles_equal_the_reference() {
    let check =
        |op: &str, given: &[(&str, AttributeValue)], mode, votes: &[i64], outputs, kernel| {
            let prefix = if op == "TreeEnsembleClassifier" { "class" } else { "target" };
            let made = trees(prefix, mode, votes);
            let mut attributes: Vec<_> =
                made.iter().map(|(name, value)| (&**name, value.clone())).collect();
            attributes.extend_from_slice(given);
            for rows in [1, 9, 50] {
                let mut x = support::values(rows * 3, 1);
                x[2] = f32::NAN;
                // Some features are thresholds.
                let thresholds = support::values(77, 5);
                x.iter_mut().zip(thresholds).skip(3).step_by(2).for_each(|(x, t)| *x = t);
                let x = [Tensor::from_vec(&[rows, 3], x).unwrap()];
                check_outputs(&format!("ai.onnx.ml:{op}"), &attributes, &x, &[], outputs, kernel);
            }
        };
    let modes = ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"].map(|mode| format!("BRANCH_{mode}"));
    for mode in modes.iter().map(String::as_str) {
        for (count, votes) in [(1, &[0][..]), (2, &[0]), (2, &[1]), (2, &[0, 1]), (4, &[3, 0, 2])] {
            let labels = ("classlabels_int64s", list(&[5, 6, 7, 8][..count]));
            for transform in ["NONE", "SOFTMAX"] {
                let given = [labels.clone(), ("post_transform", text(transform))];
                check("TreeEnsembleClassifier", &given, mode, votes, 2, "trees-f32");
            }
            let targets = ("n_targets", AttributeValue::Int(count as i64));
            for aggregate in ["SUM", "AVERAGE"] {
                let given = [targets.clone(), ("aggregate_function", text(aggregate))];
                check("TreeEnsembleRegressor", &given, mode, votes, 1, "trees-f32");
            }
        }
    }
    let one = ("n_targets", AttributeValue::Int(1));
    let least = [one, ("aggregate_function", text("MIN"))];
    check("TreeEnsembleRegressor", &least, "BRANCH_LT", &[0], 1, "reference");
}
