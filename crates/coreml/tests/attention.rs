//! Attention, recurrent layers and quantised values as packages of Core ML, beside the graphs that they
//! are made of.

use crate::agreement::{agree, agree_at, agree_fixed, refused, through_package};
use galatea_coreml::ConvertOptions;
use galatea_graph::AttributeValue;
use galatea_tensor::{DataType, Tensor};
use galatea_testkit::graph_maker::{GraphMaker, floats, ints, values};

/// FP16 has 11 bits, and sums of a few dozen products of values below 1 lose some of them.
const HALF: f64 = 4e-3;

fn list(all: &[i64]) -> AttributeValue {
    AttributeValue::Ints(all.to_vec())
}

fn word(text: &str) -> AttributeValue {
    AttributeValue::String(text.into())
}

/// A fused attention over stored orders of axes.
fn fused(heads: [usize; 2], mask: Option<Tensor>, more: &[(&str, AttributeValue)], fixed: bool) {
    let mut maker = GraphMaker::new();
    let q = maker.input("q", floats(&[2, 3, heads[0], 8], 1));
    let k = maker.input("k", floats(&[2, heads[1], 5, 8], 2));
    let v = maker.input("v", floats(&[2, heads[1], 5, 6], 3));
    let mut ids = vec![q, k, v];
    ids.extend(mask.map(|mask| maker.constant(mask)));
    for (id, heads) in [(0, heads[0]), (1, heads[1]), (2, heads[1])] {
        // Heads are known; batch and positions need not be.
        let axis = if id == 0 { 2 } else { 1 };
        let value = maker.graph.inputs[id];
        let declared = &mut maker.graph.value_mut(value).declared;
        let dims = declared.as_mut().unwrap().shape.as_mut().unwrap();
        dims[axis] = galatea_graph::Dim::Known(heads);
        dims[3] = galatea_graph::Dim::Known(if id == 2 { 6 } else { 8 });
        dims[0] = galatea_graph::Dim::symbol("batch");
        dims[3 - axis] = galatea_graph::Dim::symbol(if id == 0 { "queries" } else { "keys" });
    }
    let attributes = [
        &[
            ("scale", AttributeValue::Float(0.35)),
            ("q_perm", list(&[0, 2, 1, 3])),
            ("out_perm", list(&[0, 2, 1, 3])),
        ],
        more,
    ]
    .concat();
    let made = maker.node("ai.galatea:Attention", &attributes, &ids, 1);
    if fixed { agree_fixed(maker, &made, HALF) } else { agree(maker, &made, HALF) }
}

#[test]
fn attention_over_any_order_of_axes() {
    fused([4, 4], None, &[], false);
    fused([4, 2], None, &[], false);
    fused([4, 1], Some(floats(&[3, 5], 7)), &[], true);
    fused([4, 4], Some(floats(&[1, 1, 3, 5], 7)), &[], true);
}

#[test]
fn attention_to_what_came_before() {
    fused([4, 2], None, &[("causal", 1.into())], true);
}

#[test]
fn queries_that_see_nothing_give_zeros() {
    let mut mask = vec![0.0_f32; 15];
    mask[..5].fill(f32::NEG_INFINITY);
    mask[7] = f32::NEG_INFINITY;
    let mask = Tensor::from_vec(&[3, 5], mask).unwrap();
    fused([2, 2], Some(mask), &[("masked_to_zero", 1.into())], true);
}

#[test]
fn attention_as_exporters_write_it() {
    let mut maker = GraphMaker::new();
    let q = maker.input("q", floats(&[1, 2, 3, 8], 1));
    let k = maker.input("k", floats(&[1, 2, 5, 8], 2));
    let v = maker.input("v", floats(&[1, 2, 5, 8], 3));
    let turned = maker.node("Transpose", &[("perm", list(&[0, 1, 3, 2]))], &[k], 1)[0];
    let scores = maker.node("MatMul", &[], &[q, turned], 1)[0];
    let root = maker.constant(Tensor::scalar(8.0_f32.sqrt()));
    let scaled = maker.node("Div", &[], &[scores, root], 1)[0];
    let hidden = vec![0.0, f32::MIN, 0.0, f32::NEG_INFINITY, 0.0];
    let mask = maker.constant(Tensor::from_vec(&[1, 1, 1, 5], hidden).unwrap());
    let sum = maker.node("Add", &[], &[scaled, mask], 1)[0];
    let shares = maker.node("Softmax", &[("axis", (-1).into())], &[sum], 1)[0];
    let made = maker.node("MatMul", &[], &[shares, v], 1);
    agree_fixed(maker, &made, HALF);
}

#[test]
fn attention_of_several_heads_in_one() {
    let mut maker = GraphMaker::new();
    let ids = [1, 2, 3].map(|seed| maker.input(&format!("x{seed}"), floats(&[2, 4, 12], seed)));
    let heads = [("num_heads", 3.into())];
    let made = maker.node("com.microsoft:MultiHeadAttention", &heads, &ids, 1);
    agree_fixed(maker, &made, HALF);
}

#[test]
fn attention_that_no_rewrite_has_changed() {
    let mut maker = GraphMaker::new();
    maker.graph.opsets.insert(String::new(), 23);
    let q = maker.input("q", floats(&[2, 3, 8], 1));
    let k = maker.input("k", floats(&[2, 3, 4], 2));
    let v = maker.input("v", floats(&[2, 3, 4], 3));
    let hides = [true, true, false, false, true, true, true, true, true];
    let mask = maker.constant(Tensor::from_slice(&[3, 3], &hides).unwrap());
    let attributes = [
        ("q_num_heads", 4.into()),
        ("kv_num_heads", 2.into()),
        ("softcap", 0.5_f32.into()),
        ("is_causal", 1.into()),
    ];
    let made = maker.node("Attention", &attributes, &[q, k, v, mask], 1);
    agree_fixed(maker, &made, HALF);
}

#[test]
fn heads_that_turn_by_their_position() {
    for width in [4, 8] {
        let mut maker = GraphMaker::new();
        let x = maker.input("x", floats(&[2, 3, 4, 8], 1));
        let cos = maker.constant(floats(&[1, 1, 3, width], 2));
        let sin = maker.constant(floats(&[1, 1, 3, width], 3));
        let order = [("perm", list(&[0, 2, 1, 3]))];
        let made = maker.node("ai.galatea:Rotary", &order, &[x, cos, sin], 1);
        agree_fixed(maker, &made, HALF);
    }
}

/// A recurrent layer with `gates` gates, of `passes` directions, whose outputs are all read.
fn layer(op: &str, gates: usize, direction: &str, more: &[(&str, AttributeValue)], state: bool) {
    let passes = if direction == "bidirectional" { 2 } else { 1 };
    let (steps, batch, width, hidden) = (5, 2, 3, 4);
    let mut maker = GraphMaker::new();
    let first = more.iter().any(|(name, _)| *name == "layout");
    let shape = if first { [batch, steps, width] } else { [steps, batch, width] };
    let x = maker.input("x", floats(&shape, 1));
    let w = maker.constant(floats(&[passes, gates * hidden, width], 2));
    let r = maker.constant(floats(&[passes, gates * hidden, hidden], 3));
    let b = maker.constant(floats(&[passes, 2 * gates * hidden], 4));
    let mut ids = vec![x, w, r, b, None];
    let outputs = if op == "LSTM" { 3 } else { 2 };
    if state {
        let shape = if first { [batch, passes, hidden] } else { [passes, batch, hidden] };
        ids.push(maker.input("h", floats(&shape, 5)));
        if op == "LSTM" {
            ids.push(maker.input("c", floats(&shape, 6)));
            ids.push(maker.constant(floats(&[passes, 3 * hidden], 7)));
        }
    }
    let size = i64::try_from(hidden).unwrap();
    let attributes =
        [&[("hidden_size", size.into()), ("direction", word(direction))], more].concat();
    let made = maker.node(op, &attributes, &ids, outputs);
    agree_at(maker, &made, 2e-2, ConvertOptions::default(), false);
}

#[test]
fn layers_that_remember() {
    for direction in ["forward", "reverse", "bidirectional"] {
        for (op, gates) in [("LSTM", 4), ("GRU", 3), ("RNN", 1)] {
            layer(op, gates, direction, &[], false);
            layer(op, gates, direction, &[], true);
            layer(op, gates, direction, &[("layout", 1.into())], true);
        }
        layer("GRU", 3, direction, &[("linear_before_reset", 1.into())], true);
    }
}

#[test]
fn layers_that_programs_do_not_have_are_refused() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[2, 1, 3], 1));
    let w = maker.constant(floats(&[1, 4, 3], 2));
    let r = maker.constant(floats(&[1, 4, 4], 3));
    let made = maker.node("RNN", &[("clip", 0.5_f32.into())], &[x, w, r], 2);
    let reason = refused(maker, &made[..1]);
    assert!(reason.contains("clip"), "{reason}");
}

fn bytes(shape: &[usize], seed: u32) -> Tensor {
    let all = values(shape.iter().product(), seed).into_iter().map(|value| value * 100.0);
    let wide = Tensor::from_vec(shape, all.collect()).unwrap();
    galatea_graph::converted(&wide, DataType::Int8).unwrap()
}

#[test]
fn weights_of_eight_bits_stay_so() {
    for (axis, scale) in [(0, Tensor::scalar(0.01_f32)), (0, floats(&[6], 3)), (1, floats(&[4], 3))]
    {
        let mut maker = GraphMaker::new();
        let x = maker.input("x", floats(&[1, 4, 5, 5], 1));
        let codes = maker.constant(bytes(&[6, 4, 3, 3], 2));
        let scale = maker.constant(scale);
        let weights =
            maker.node("DequantizeLinear", &[("axis", axis.into())], &[codes, scale], 1)[0];
        let made = maker.node("Conv", &[], &[x, weights], 1);
        agree_fixed(maker, &made, HALF);
    }
}

#[test]
fn weights_in_blocks_stay_so() {
    let mut maker = GraphMaker::new();
    maker.graph.opsets.insert(String::new(), 21);
    let x = maker.input("x", floats(&[3, 8], 1));
    let codes = maker.constant(bytes(&[8, 5], 2));
    let scale = maker.constant(floats(&[2, 5], 3));
    let attributes = [("axis", 0.into()), ("block_size", 4.into())];
    let weights = maker.node("DequantizeLinear", &attributes, &[codes, scale], 1)[0];
    let made = maker.node("MatMul", &[], &[x, weights], 1);
    agree_fixed(maker, &made, HALF);
}

#[test]
fn values_of_eight_bits_between_layers() {
    for specification in [7, 9] {
        for (zero, dtype) in [(3, DataType::Int8), (130, DataType::Uint8)] {
            let mut maker = GraphMaker::new();
            let x = maker.input("x", floats(&[2, 3, 4], 1));
            let scale = maker.constant(Tensor::scalar(1.0_f32 / 64.0));
            let zero = galatea_graph::converted(&Tensor::scalar(zero), dtype).unwrap();
            let zero = maker.constant(zero);
            let codes = maker.node("QuantizeLinear", &[], &[x, scale, zero], 1)[0];
            let made = maker.node("DequantizeLinear", &[], &[codes, scale, zero], 1);
            let options = ConvertOptions { specification, ..ConvertOptions::default() };
            // Where FP16 rounds a value to the other side, it is a code away.
            agree_at(maker, &[made[0], codes], 1.0 / 60.0, options, true);
        }
    }
}

#[test]
fn a_bias_of_thirty_two_bits_is_a_constant() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[1, 2, 4, 4], 1));
    let w = maker.constant(floats(&[2, 2, 3, 3], 2));
    let codes = galatea_graph::converted(&ints(&[2], &[40_000, -3]), DataType::Int32).unwrap();
    let (codes, scale) = (maker.constant(codes), maker.constant(Tensor::scalar(1e-5_f32)));
    let bias = maker.node("DequantizeLinear", &[], &[codes, scale], 1)[0];
    let made = maker.node("Conv", &[], &[x, w, bias], 1);
    maker.graph.outputs = made.iter().flatten().copied().collect();
    let options = ConvertOptions {
        shapes: [("x".to_owned(), vec![1, 2, 4, 4])].into(),
        ..ConvertOptions::default()
    };
    assert!(through_package(&maker.graph, &maker.inputs, &options).is_ok());
}
