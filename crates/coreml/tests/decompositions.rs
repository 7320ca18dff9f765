//! Operators that are written as simpler ones, through Core ML packages: products of integers, weights of few
//! bits, attention with caches.

use crate::package;
use crate::package::Case;
use galatea_coreml::{ConvertOptions, convert};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, evaluate};
use galatea_tensor::Tensor;
use galatea_testkit::graph_maker::floats;

/// A node of another domain as a graph of its own; what is no input is a constant.
fn node(
    (domain, op): (&str, &str),
    attributes: &[(&str, AttributeValue)],
    slots: &[Option<(bool, Tensor)>],
    outputs: usize,
) -> Case {
    let mut graph = Graph::new("test");
    graph.opsets.insert(String::new(), 23);
    graph.opsets.insert("com.microsoft".to_owned(), 1);
    let (mut ids, mut inputs) = (Vec::new(), Vec::new());
    for (at, slot) in slots.iter().enumerate() {
        let Some((given, tensor)) = slot else {
            ids.push(None);
            continue;
        };
        if !given {
            ids.push(Some(graph.add_constant("c", tensor.clone())));
            continue;
        }
        let id = graph.value_named(&format!("x{at}"));
        let dims = tensor.shape().iter().map(|&len| Dim::Known(len)).collect();
        graph.value_mut(id).declared = Some(Fact::new(tensor.dtype(), dims));
        graph.inputs.push(id);
        inputs.push(tensor.clone());
        ids.push(Some(id));
    }
    let attributes: Attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let made: Vec<_> = (0..outputs).map(|_| graph.fresh_value("y")).collect();
    let slots = made.iter().copied().map(Some).collect();
    graph.add_node(domain, op, "", &attributes, ids, slots).unwrap();
    graph.outputs = made;
    Case { graph, inputs, name: format!("{op} {attributes:?}") }
}

fn given(tensor: Tensor) -> Option<(bool, Tensor)> {
    Some((true, tensor))
}

fn held(tensor: Tensor) -> Option<(bool, Tensor)> {
    Some((false, tensor))
}

/// The package in FP16 gives every integer as it is.
fn exact(case: &Case) {
    let expected = evaluate::run(&case.graph, &case.inputs).unwrap();
    let found = package::through(&case.graph, &ConvertOptions::default(), &case.inputs).unwrap();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.to_i64_vec().unwrap(), expected.to_i64_vec().unwrap(), "{}", case.name);
    }
}

#[test]
fn sums_of_products_of_integers_are_exact_however_long() {
    // 700 products of 255 and 255 exceed what FP32 counts by more than twice.
    let a = Tensor::from_vec(&[2, 700], vec![255_u8; 1400]).unwrap();
    let b =
        Tensor::from_vec(&[700, 3], (0..2100).map(|at| 255 - (at % 2) as u8).collect()).unwrap();
    for b in [given(b.clone()), held(b)] {
        exact(&node(("", "MatMulInteger"), &[], &[given(a.clone()), b], 1));
    }
    let zero = held(Tensor::scalar(3_u8));
    let image =
        Tensor::from_vec(&[1, 80, 3, 3], (0..720).map(|at| 200 + (at % 56) as u8).collect());
    let weight = Tensor::from_vec(&[2, 80, 3, 3], vec![-128_i8; 1440]).unwrap();
    let slots = [given(image.unwrap()), held(weight), zero];
    exact(&node(("", "ConvInteger"), &[], &slots, 1));
}

#[test]
fn weights_of_few_bits_stay_codes() {
    let (k, n, block) = (64_usize, 32_usize, 32_usize);
    for (bits, points) in [(4_i64, true), (4, false), (8, true), (2, false)] {
        let bytes = block * usize::try_from(bits).unwrap() / 8;
        let blob = (0..n * 2 * bytes).map(|at| (at * 37).to_le_bytes()[0]).collect();
        let codes = Tensor::from_vec(&[n, 2, bytes], blob).unwrap();
        // Weights up to about 1, however many bits they have.
        let unit = 1.0 / f32::from(1_u16 << bits);
        let scale: Vec<f32> = (0..n * 2).map(|at| unit * (1.0 + at as f32 / 64.0)).collect();
        let row = (2 * usize::try_from(bits).unwrap()).div_ceil(8);
        let zero = Tensor::vector((0..n * row).map(|at| (at * 91).to_le_bytes()[0]).collect());
        let slots = [
            given(floats(&[3, k], 1)),
            held(codes),
            held(Tensor::vector(scale)),
            points.then_some((false, zero)),
        ];
        let named = [
            ("K", (k as i64).into()),
            ("N", (n as i64).into()),
            ("bits", bits.into()),
            ("block_size", (block as i64).into()),
        ];
        let case = node(("com.microsoft", "MatMulNBits"), &named, &slots, 1).fixed();
        let made = convert(&case.graph, &ConvertOptions::default()).unwrap();
        let function = &made.program.functions["main"];
        let told = format!("{function:?}");
        assert!(told.contains("constexpr_blockwise_shift_scale"), "{}", case.name);
    }
}

/// Grouped attention with a cache of 12 positions; each of the batch has a past of its own length.
fn grouped(interleaved: bool, window: i64, shared: bool) -> Case {
    let (batch, new, heads, groups, width) = (2, 3, 4, 2, 8);
    let stored = if shared { 12 } else { 4 };
    let total = if shared { 9_i32 } else { 7 };
    let cache = |seed| given(floats(&[batch, groups, stored, width], seed));
    let slots = [
        given(floats(&[batch, new, heads * width], 1)),
        given(floats(&[batch, new, groups * width], 2)),
        given(floats(&[batch, new, groups * width], 3)),
        cache(4),
        cache(5),
        given(Tensor::vector(vec![total - 1, 4])),
        held(Tensor::scalar(total)),
        held(floats(&[16, width / 2], 6)),
        held(floats(&[16, width / 2], 7)),
    ];
    let named = [
        ("num_heads", (heads as i64).into()),
        ("kv_num_heads", (groups as i64).into()),
        ("do_rotary", 1_i64.into()),
        ("rotary_interleaved", i64::from(interleaved).into()),
        ("local_window_size", window.into()),
    ];
    node(("com.microsoft", "GroupQueryAttention"), &named, &slots, 3)
}

#[test]
fn grouped_attention_writes_behind_each_past() {
    for (interleaved, window, shared) in
        [(false, -1, false), (true, -1, true), (false, 2, true), (true, 3, false)]
    {
        grouped(interleaved, window, shared).fixed();
    }
}

#[test]
fn pairs_turn_as_neighbours_and_as_halves() {
    for (interleaved, turned) in [(0_i64, 0_i64), (1, 0), (0, 4), (1, 4)] {
        let pairs = if turned == 0 { 4 } else { 2 };
        let slots = [
            given(floats(&[2, 5, 24], 1)),
            given(floats(&[10, pairs], 2)),
            given(floats(&[10, pairs], 3)),
            given(Tensor::from_vec(&[2, 5], (0..10).rev().collect::<Vec<i64>>()).unwrap()),
        ];
        let named = [
            ("interleaved", interleaved.into()),
            ("rotary_embedding_dim", turned.into()),
            ("num_heads", 3_i64.into()),
        ];
        node(("", "RotaryEmbedding"), &named, &slots, 1).fixed();
    }
}
