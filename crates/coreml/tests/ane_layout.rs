//! Graphs in the forms that the Neural Engine favours, as packages of Core ML beside the graphs
//! themselves, and what the programs consist of.

use crate::agreement::agree_at;
use galatea_coreml::{ConvertOptions, CoreMlProvider, convert};
use galatea_graph::rewrite::RewriteLevel;
use galatea_graph::{AttributeValue, Fact, Graph, ValueId};
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::{DataType, OrderedMap, Tensor};
use galatea_testkit::graph_maker::{GraphMaker, floats, ints, values};

/// FP16 has 11 bits, and sums of a few dozen products of values below 1 lose some of them.
const HALF: f64 = 6e-3;

fn list(all: &[i64]) -> AttributeValue {
    AttributeValue::Ints(all.to_vec())
}

/// How often each operation stands in a program, but for constants and casts.
fn operations(graph: &Graph, options: &ConvertOptions) -> OrderedMap<String, usize> {
    let package = convert(graph, options).unwrap();
    let mut counts = OrderedMap::new();
    for operation in &package.program.functions["main"].block.operations {
        let name = operation.operator.as_str();
        if !["const", "cast", "identity"].contains(&name) {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Compares the favoured package with the graph, in FP32 and in FP16; gives its operations as
/// `name count` words.
fn favoured(mut maker: GraphMaker, outputs: &[Option<ValueId>]) -> String {
    maker.graph.outputs = outputs.iter().flatten().copied().collect();
    let shapes = maker.inputs.iter().map(|(name, one)| (name.clone(), one.shape().to_vec()));
    let options = ConvertOptions {
        shapes: shapes.collect(),
        level: RewriteLevel::O3,
        ..ConvertOptions::default()
    };
    let counts = operations(&maker.graph, &options);
    agree_at(maker, outputs, HALF, options, false);
    let words = counts.iter().map(|(name, count)| format!("{name} {count}"));
    words.collect::<Vec<_>>().join(", ")
}

/// A linear layer with a bias.
fn linear(
    maker: &mut GraphMaker,
    x: Option<ValueId>,
    [inputs, outputs]: [usize; 2],
    seed: u32,
) -> Option<ValueId> {
    let scaled: Vec<f32> = values(inputs * outputs, seed).iter().map(|x| x * 0.3).collect();
    let weight = maker.constant(Tensor::from_vec(&[inputs, outputs], scaled).unwrap());
    let bias = maker.constant(floats(&[outputs], seed + 1));
    let product = maker.node("MatMul", &[], &[x, weight], 1)[0];
    maker.node("Add", &[], &[product, bias], 1)[0]
}

fn norm(maker: &mut GraphMaker, x: Option<ValueId>, width: usize) -> Option<ValueId> {
    let scale = maker.constant(floats(&[width], 91));
    let bias = maker.constant(floats(&[width], 92));
    maker.node("LayerNormalization", &[("axis", (-1).into())], &[x, scale, bias], 1)[0]
}

#[test]
fn a_feed_forward_block_is_turned_once_in_and_once_out() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[2, 5, 8], 1));
    let normed = norm(&mut maker, x, 8);
    let wide = linear(&mut maker, normed, [8, 16], 3);
    let bent = maker.node("Relu", &[], &[wide], 1)[0];
    let narrow = linear(&mut maker, bent, [16, 8], 5);
    let half = maker.constant(Tensor::scalar(0.5_f32));
    let scaled = maker.node("Mul", &[], &[narrow, half], 1)[0];
    let sum = maker.node("Add", &[], &[scaled, normed], 1)[0];
    let position = maker.constant(floats(&[5, 8], 8));
    let moved = maker.node("Sub", &[], &[sum, position], 1)[0];
    let last = norm(&mut maker, moved, 8);
    assert_eq!(
        favoured(maker, &[last]),
        "add 1, conv 2, expand_dims 1, layer_norm 2, mul 1, relu 1, squeeze 1, sub 1, transpose 2"
    );
}

#[test]
fn a_norm_by_the_root_of_squares_is_that_of_a_value_beside_its_opposite() {
    let mut maker = GraphMaker::new();
    maker.graph.opsets.insert(String::new(), 23);
    let x = maker.input("x", floats(&[1, 7, 12], 1));
    let scale = maker.constant(floats(&[12], 2));
    let normed = maker.node("RMSNormalization", &[("axis", (-1).into())], &[x, scale], 1)[0];
    let y = linear(&mut maker, normed, [12, 4], 3);
    assert_eq!(
        favoured(maker, &[y]),
        "concat 1, conv 1, expand_dims 1, layer_norm 1, mul 2, split 1, squeeze 1, transpose 2"
    );
}

#[test]
fn rows_without_a_batch_and_single_vectors_have_the_form_too() {
    for shape in [&[6, 8][..], &[1, 8], &[8], &[2, 3, 4, 8]] {
        let mut maker = GraphMaker::new();
        let x = maker.input("x", floats(shape, 1));
        let y = linear(&mut maker, x, [8, 3], 3);
        let y = maker.node("Tanh", &[], &[y], 1);
        let found = favoured(maker, &y);
        assert!(found.contains("conv 1"), "{shape:?}: {found}");
    }
}

#[test]
fn more_results_than_the_engine_has_channels_are_computed_in_parts() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[1, 3, 4], 1));
    let y = linear(&mut maker, x, [4, 66_000], 2);
    let found = favoured(maker, &[y]);
    assert!(found.contains("conv 5") && found.contains("concat 1"), "{found}");
}

#[test]
fn one_matrix_serves_layers_in_both_directions() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[3, 4], 1));
    let weight = maker.constant(floats(&[4, 4], 2));
    let a = maker.node("Gemm", &[], &[x, weight], 1)[0];
    let b = maker.node("Gemm", &[("transB", 1.into())], &[a, weight], 1);
    let found = favoured(maker, &b);
    assert!(found.contains("conv 2"), "{found}");
}

#[test]
fn parts_of_positions_and_of_channels_are_slices() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[2, 5, 8], 1));
    let token = maker.constant(floats(&[2, 1, 12], 7));
    let y = linear(&mut maker, x, [8, 12], 3);
    let y = maker.node("Concat", &[("axis", 1.into())], &[token, y], 1)[0];
    let parts = maker.node("Split", &[("axis", (-1).into())], &[y], 3);
    let sum = maker.node("Mul", &[], &[parts[0], parts[2]], 1)[0];
    let first = maker.constant(ints(&[], &[0]));
    let one = maker.node("Gather", &[("axis", 1.into())], &[sum, first], 1)[0];
    let last = linear(&mut maker, one, [4, 2], 9);
    let bounds = [[1], [-1], [1]].map(|bound| maker.constant(ints(&[1], &bound)));
    let [start, end, axis] = bounds;
    let inner = maker.node("Slice", &[], &[parts[1], start, end, axis], 1)[0];
    let found = favoured(maker, &[last, inner]);
    assert!(found.contains("conv 2") && found.contains("transpose 2"), "{found}");
}

#[test]
fn what_no_row_computes_is_turned_back() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[2, 5, 8], 1));
    let y = linear(&mut maker, x, [8, 6], 3);
    let flat = maker.constant(ints(&[2], &[2, 30]));
    let all = maker.node("Reshape", &[], &[y, flat], 1)[0];
    let last = maker.node("Softmax", &[("axis", (-1).into())], &[all], 1);
    let found = favoured(maker, &last);
    assert!(found.contains("conv 1") && found.contains("softmax 1"), "{found}");
}

/// Heads of a value `[1, positions, width]`, as exporters take them apart.
fn heads(
    maker: &mut GraphMaker,
    x: Option<ValueId>,
    shape: [i64; 3],
    perm: &[i64],
) -> Option<ValueId> {
    let [positions, count, width] = shape;
    let shape = maker.constant(ints(&[4], &[1, positions, count, width]));
    let apart = maker.node("Reshape", &[], &[x, shape], 1)[0];
    maker.node("Transpose", &[("perm", list(perm))], &[apart], 1)[0]
}

/// What 0 hides and 1 does not, as exporters write it for scores.
fn hiding(maker: &mut GraphMaker, seen: Tensor) -> Option<ValueId> {
    let seen = maker.input("seen", seen);
    let (one, least) =
        (maker.constant(Tensor::scalar(1.0_f32)), maker.constant(Tensor::scalar(f32::MIN)));
    let not = maker.node("Sub", &[], &[one, seen], 1)[0];
    maker.node("Mul", &[], &[not, least], 1)[0]
}

/// An encoder's attention over 5 positions with 3 heads of 4 elements, whose queries and keys grow by a
/// factor, and a mask of truth numbers.
fn encoder(growth: f32, seen: Tensor) -> String {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[1, 5, 12], 1));
    let factor = maker.constant(Tensor::scalar(growth));
    let grown = maker.node("Mul", &[], &[x, factor], 1)[0];
    let mask = hiding(&mut maker, seen);
    let [q, k, v] = [(grown, 3), (grown, 5), (x, 7)]
        .map(|(from, seed)| linear(&mut maker, from, [12, 12], seed));
    let q = heads(&mut maker, q, [5, 3, 4], &[0, 2, 1, 3]);
    let k = heads(&mut maker, k, [5, 3, 4], &[0, 2, 3, 1]);
    let v = heads(&mut maker, v, [5, 3, 4], &[0, 2, 1, 3]);
    let scores = maker.node("MatMul", &[], &[q, k], 1)[0];
    let root = maker.constant(Tensor::scalar(2.0_f32));
    let scaled = maker.node("Div", &[], &[scores, root], 1)[0];
    let masked = maker.node("Add", &[], &[scaled, mask], 1)[0];
    let shares = maker.node("Softmax", &[("axis", (-1).into())], &[masked], 1)[0];
    let mixed = maker.node("MatMul", &[], &[shares, v], 1)[0];
    let turned = maker.node("Transpose", &[("perm", list(&[0, 2, 1, 3]))], &[mixed], 1)[0];
    let shape = maker.constant(ints(&[3], &[1, 5, 12]));
    let together = maker.node("Reshape", &[], &[turned, shape], 1)[0];
    let out = linear(&mut maker, together, [12, 12], 9);
    let sum = maker.node("Add", &[], &[out, x], 1)[0];
    let last = norm(&mut maker, sum, 12);
    favoured(maker, &[last])
}

#[test]
fn attention_is_computed_head_by_head_with_one_transpose() {
    let seen = Tensor::from_slice(&[1, 1, 1, 5], &[1.0_f32, 1.0, 0.0, 1.0, 0.0]).unwrap();
    let found = encoder(1.0, seen);
    for part in ["conv 4", "einsum 6", "softmax 3", "layer_norm 1", "concat 1"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    // The way in, keys, and the way out. The one reshape is that of the mask.
    assert!(found.contains("transpose 3"), "{found}");
    assert!(found.contains("reshape 1"), "{found}");
}

#[test]
fn a_query_that_sees_nothing_shares_equally_however_large_its_scores_are() {
    let nothing = Tensor::from_slice(&[1, 1, 1, 5], &[0.0_f32; 5]).unwrap();
    encoder(1.0, nothing.clone());
    encoder(8.0, nothing);
    let mut rows = vec![1.0_f32; 25];
    rows[5..10].fill(0.0);
    rows[12] = 0.0;
    encoder(1.0, Tensor::from_vec(&[1, 1, 5, 5], rows).unwrap());
}

/// A fused attention over stored orders of axes.
fn fused(
    heads: [usize; 2],
    mask: Option<(Tensor, bool)>,
    more: &[(&str, AttributeValue)],
) -> String {
    let mut maker = GraphMaker::new();
    let q = maker.input("q", floats(&[2, 3, heads[0], 8], 1));
    let k = maker.input("k", floats(&[2, heads[1], 5, 8], 2));
    let v = maker.input("v", floats(&[2, heads[1], 5, 6], 3));
    let mut ids = vec![q, k, v];
    if let Some((mask, constant)) = mask {
        ids.push(if constant { maker.constant(mask) } else { maker.input("mask", mask) });
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
    favoured(maker, &made)
}

#[test]
fn heads_share_keys_and_masks_are_those_of_all_heads_or_of_each() {
    let causal = [("causal", 1.into())];
    for (heads, more) in [([4, 4], &[][..]), ([4, 2], &[]), ([4, 1], &causal), ([1, 1], &causal)] {
        assert!(fused(heads, None, more).contains(&format!("einsum {}", 2 * heads[0])));
    }
    for constant in [true, false] {
        fused([4, 2], Some((floats(&[3, 5], 7), constant)), &[]);
        fused([4, 4], Some((floats(&[1, 4, 3, 5], 7), constant)), &[]);
        fused([4, 4], Some((floats(&[2, 1, 1, 5], 7), constant)), &causal);
    }
}

#[test]
fn queries_that_see_nothing_give_zeros_where_the_operator_says_so() {
    let to_zero = [("masked_to_zero", 1.into())];
    let mut one = vec![0.0_f32; 15];
    one[..5].fill(f32::NEG_INFINITY);
    one[7] = f32::NEG_INFINITY;
    let mut each = vec![0.25_f32; 30];
    each[20..25].fill(f32::NEG_INFINITY);
    each[3] = f32::NEG_INFINITY;
    for constant in [true, false] {
        let mask = Tensor::from_slice(&[3, 5], &one).unwrap();
        fused([2, 2], Some((mask, constant)), &to_zero);
        let mask = Tensor::from_slice(&[1, 2, 3, 5], &each).unwrap();
        fused([2, 2], Some((mask, constant)), &to_zero);
    }
}

#[test]
fn many_queries_are_computed_some_at_a_time() {
    let mut maker = GraphMaker::new();
    let q = maker.input("q", floats(&[1, 1, 1030, 1], 1));
    let k = maker.input("k", floats(&[1, 1, 16384, 1], 2));
    let made = maker.node("ai.galatea:Attention", &[], &[q, k, k], 1);
    maker.graph.outputs = made.iter().flatten().copied().collect();
    let shapes = maker.inputs.iter().map(|(name, one)| (name.clone(), one.shape().to_vec()));
    let options = ConvertOptions {
        shapes: shapes.collect(),
        level: RewriteLevel::O3,
        ..ConvertOptions::default()
    };
    let found = operations(&maker.graph, &options);
    // 512 queries beside 16,384 keys are 32 MiB of scores and shares.
    assert_eq!((found["einsum"], found["slice_by_index"], found["concat"]), (6, 3, 1));
}

#[test]
fn sound_goes_through_convolutions_into_layers_without_a_turn() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[1, 6, 20], 1));
    let first = maker.constant(floats(&[8, 6, 3], 2));
    let bias = maker.constant(floats(&[8], 3));
    let second = maker.constant(floats(&[8, 4, 3], 4));
    let same = [("pads", list(&[1, 1]))];
    let y = maker.node("Conv", &same, &[x, first, bias], 1)[0];
    let y = maker.node("Tanh", &[], &[y], 1)[0];
    let half = [("pads", list(&[1, 1])), ("strides", list(&[2])), ("group", 2.into())];
    let y = maker.node("Conv", &half, &[y, second], 1)[0];
    let rows = maker.node("Transpose", &[("perm", list(&[0, 2, 1]))], &[y], 1)[0];
    let position = maker.constant(floats(&[10, 8], 5));
    let moved = maker.node("Add", &[], &[rows, position], 1)[0];
    let last = linear(&mut maker, moved, [8, 4], 7);
    assert_eq!(
        favoured(maker, &[last]),
        "add 1, conv 3, expand_dims 1, squeeze 1, tanh 1, transpose 1"
    );
}

/// Queries and keys of 2 heads that turn by angles of this many elements, constants or not.
fn turning(width: usize, constant: bool) -> String {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", floats(&[1, 5, 12], 1));
    let angle = |maker: &mut GraphMaker, name: &str, seed: u32| {
        let all = floats(&[1, 1, 5, width], seed);
        if constant { maker.constant(all) } else { maker.input(name, all) }
    };
    let (cos, sin) = (angle(&mut maker, "cos", 11), angle(&mut maker, "sin", 12));
    let shape = maker.constant(ints(&[4], &[1, 5, 2, 6]));
    let turned = [3, 5].map(|seed| {
        let y = linear(&mut maker, x, [12, 12], seed);
        let y = maker.node("Reshape", &[], &[y, shape], 1)[0];
        let perm = [("perm", list(&[0, 2, 1, 3]))];
        maker.node("ai.galatea:Rotary", &perm, &[y, cos, sin], 1)[0]
    });
    let made = maker.node("ai.galatea:Attention", &[], &[turned[0], turned[1], turned[0]], 1);
    favoured(maker, &made)
}

#[test]
fn heads_turn_by_a_convolution() {
    for width in [3, 6] {
        let found = turning(width, true);
        // In, keys and out; two layers and what turns their results.
        assert!(found.contains("transpose 3") && found.contains("conv 4"), "{found}");
        assert!(turning(width, false).contains("conv 4"));
    }
}

#[test]
fn a_classifier_of_images_ends_in_a_convolution_of_one_pixel() {
    for batch in [1, 2] {
        let mut maker = GraphMaker::new();
        let x = maker.input("x", floats(&[batch, 3, 6, 6], 1));
        let kernel = maker.constant(floats(&[8, 3, 3, 3], 2));
        let y = maker.node("Conv", &[], &[x, kernel], 1)[0];
        let y = maker.node("GlobalAveragePool", &[], &[y], 1)[0];
        let y = maker.node("Flatten", &[], &[y], 1)[0];
        let last = linear(&mut maker, y, [8, 4], 5);
        assert_eq!(favoured(maker, &[last]), "conv 2, reduce_mean 1, reshape 1");
    }
}

#[test]
fn large_windows_are_several_small_ones() {
    let pool = |op: &str, shape: &[usize], attributes: &[(&str, AttributeValue)]| {
        let mut maker = GraphMaker::new();
        let x = maker.input("x", floats(shape, 1));
        let made = maker.node(op, attributes, &[x], 1);
        favoured(maker, &made)
    };
    let kernel = |sides: &[i64]| ("kernel_shape", list(sides));
    let (pads, strides) = (("pads", list(&[3, 7, 2, 6])), ("strides", list(&[2, 3])));
    let found = pool("MaxPool", &[1, 2, 40, 30], &[kernel(&[27, 14]), pads, strides]);
    assert_eq!(found, "max_pool 3");
    let found = pool("AveragePool", &[1, 2, 14, 15], &[kernel(&[14, 15])]);
    assert_eq!(found, "reduce_mean 1");
    let side_by_side = [kernel(&[14, 2]), ("strides", list(&[14, 2]))];
    assert_eq!(pool("AveragePool", &[1, 2, 31, 5], &side_by_side), "avg_pool 2");
    // 17 has no parts.
    let prime = [kernel(&[17, 1]), ("strides", list(&[17, 1]))];
    assert_eq!(pool("AveragePool", &[1, 2, 31, 5], &prime), "avg_pool 1");
}

#[test]
fn the_provider_keeps_sums_of_halves_wide_and_rounds_what_comes_out() {
    let mut maker = GraphMaker::new();
    let x = maker.input("x", Tensor::from_vec(&[1, 2, 4096], vec![0.5_f32; 8192]).unwrap());
    let mut weight = vec![1.0_f32; 8192];
    weight[1] = 1.25;
    let weight = maker.constant(Tensor::from_vec(&[4096, 2], weight).unwrap());
    let made = maker.node("MatMul", &[], &[x, weight], 1);
    maker.graph.outputs = made.iter().flatten().copied().collect();
    let shape = maker.inputs[0].1.shape().to_vec();
    let id = maker.graph.inputs[0];
    maker.graph.value_mut(id).declared = Some(Fact::fixed(DataType::Fp32, &shape));
    let provider = CoreMlProvider::new().forced();
    let session =
        Session::new(maker.graph.clone(), &[provider], &SessionOptions::default()).unwrap();
    let found = session.run_tensors(Run::named(&[("x", maker.inputs[0].1.clone())])).unwrap();
    // 2048.125 lies between the halves 2048 and 2050; a sum of halves would have stopped at 1024.
    assert_eq!(found[0].to_vec::<f32>().unwrap(), [2048.0; 4]);
}
