//! Attention and rotary embeddings beside their reference evaluation.

use crate::support;
use galatea_gpu::attention::{self, PAGED_CONFIGS, PagedSizes};
use galatea_gpu::{DispatchStep, StepTrial};
use galatea_graph::ops::fused::PagedAttention;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, evaluate};
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_runtime::{OptimiseLevel, Run, SessionOptions};
use galatea_tensor::{DataType, Tensor, bf16, f16};

fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(u16::try_from(state >> 16).unwrap()) / 32_768.0 - 1.0
    };
    (0..count).map(next).collect()
}

fn random(dtype: DataType, shape: &[usize], seed: u32) -> Tensor {
    let values = noise(shape.iter().product(), seed);
    match dtype {
        DataType::Fp32 => Tensor::from_vec(shape, values).unwrap(),
        DataType::Fp16 => {
            let halves: Vec<f16> = values.into_iter().map(f16::from_f32).collect();
            Tensor::from_vec(shape, halves).unwrap()
        }
        other => panic!("no noise of {other}"),
    }
}

fn int(value: usize) -> AttributeValue {
    AttributeValue::Int(i64::try_from(value).unwrap())
}

fn named(all: &[(&str, AttributeValue)]) -> Attributes {
    all.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// A graph of one node with inputs like these. Lengths along axes that `open` names are not known.
fn graph(
    (domain, op): (&str, &str),
    attributes: &Attributes,
    inputs: &[Option<Tensor>],
    outputs: usize,
    open: &dyn Fn(usize, usize) -> bool,
) -> Graph {
    let mut graph = Graph::new("one");
    let version = if domain.is_empty() { 25 } else { 1 };
    graph.opsets.insert(domain.to_owned(), version);
    let mut ids = Vec::new();
    for (at, tensor) in inputs.iter().enumerate() {
        let Some(tensor) = tensor else {
            ids.push(None);
            continue;
        };
        let dim = |(axis, &len): (usize, &usize)| match open(at, axis) {
            true => Dim::symbol(&format!("n{at}_{axis}")),
            false => Dim::Known(len),
        };
        let dims: Vec<Dim> = tensor.shape().iter().enumerate().map(dim).collect();
        let id = graph.value_named(&format!("x{at}"));
        graph.value_mut(id).declared = Some(Fact::new(tensor.dtype(), dims));
        graph.inputs.push(id);
        ids.push(Some(id));
    }
    let results: Vec<_> = (0..outputs).map(|at| graph.value_named(&format!("y{at}"))).collect();
    let wanted = results.iter().copied().map(Some).collect();
    graph.add_node(domain, op, "", attributes, ids, wanted).unwrap();
    graph.outputs.extend(results);
    graph
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    match tensor.dtype() {
        DataType::Fp16 => tensor.to_vec::<f16>().unwrap().into_iter().map(f16::to_f32).collect(),
        DataType::Bf16 => tensor.to_vec::<bf16>().unwrap().into_iter().map(bf16::to_f32).collect(),
        DataType::Int8 => tensor.to_vec::<i8>().unwrap().into_iter().map(f32::from).collect(),
        _ => tensor.to_vec().unwrap(),
    }
}

/// Checks that two tensors are alike, up to a distance relative to the larger of 1 and the number.
fn near(found: &Tensor, expected: &Tensor, distance: f32, what: &str) {
    assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()), "{what}");
    for (at, (a, b)) in floats(found).into_iter().zip(floats(expected)).enumerate() {
        let off = (a - b).abs();
        let same = a.is_nan() && b.is_nan() || a == b;
        assert!(same || off <= distance * b.abs().max(1.0), "{what} {at}: {a}, not {b}");
    }
}

/// Runs a node on the device and by its reference.
fn check(
    node: (&str, &str),
    attributes: &Attributes,
    inputs: &[Option<Tensor>],
    distances: &[f32],
    open: &dyn Fn(usize, usize) -> bool,
    what: &str,
) -> Option<Vec<Tensor>> {
    let device = support::device()?;
    let graph = graph(node, attributes, inputs, distances.len(), open);
    // As it stands: a rewrite may make other nodes of it.
    let options = SessionOptions { optimise: OptimiseLevel::O0, ..SessionOptions::default() };
    let session = support::session(&device, &graph, &options).unwrap();
    let given: Vec<Tensor> = inputs.iter().flatten().cloned().collect();
    let expected = evaluate::run(&graph, &given).unwrap();
    let found = session.run_tensors(Run::owned(given)).unwrap();
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        near(found, expected, distances[at], &format!("{what}, output {at}"));
    }
    Some(found)
}

/// Sequences of a step: new rows, positions before them.
struct Paged {
    heads: usize,
    kv_heads: usize,
    widths: [usize; 2],
    block: usize,
    window: usize,
    softcap: f32,
    cache: DataType,
    rows: DataType,
    sequences: Vec<(usize, usize)>,
}

impl Paged {
    fn plain(widths: [usize; 2], block: usize, sequences: &[(usize, usize)]) -> Self {
        Self {
            heads: 4,
            kv_heads: 2,
            widths,
            block,
            window: 0,
            softcap: 0.0,
            cache: DataType::Fp32,
            rows: DataType::Fp32,
            sequences: sequences.to_vec(),
        }
    }

    fn attributes(&self) -> Attributes {
        named(&[
            ("num_heads", int(self.heads)),
            ("kv_num_heads", int(self.kv_heads)),
            ("window", int(self.window)),
            ("softcap", AttributeValue::Float(self.softcap)),
        ])
    }

    fn caches(&self, count: usize) -> Vec<Tensor> {
        let [width, value_width] = self.widths;
        let keys = [count, self.kv_heads, width, self.block];
        let values = [count, self.kv_heads, self.block, value_width];
        let bytes = |shape: &[usize], seed| {
            let all = noise(shape.iter().product(), seed);
            #[allow(clippy::cast_possible_truncation, reason = "bytes")]
            let all: Vec<i8> = all.into_iter().map(|x| (x * 127.0) as i8).collect();
            Tensor::from_vec(shape, all).unwrap()
        };
        let brief = |shape: &[usize], seed| {
            let all = noise(shape.iter().product(), seed).into_iter().map(bf16::from_f32);
            Tensor::from_vec(shape, all.collect()).unwrap()
        };
        match self.cache {
            DataType::Int8 => {
                let scales = |seed| {
                    let all = noise(values[..3].iter().product(), seed);
                    let all = all.into_iter().map(|x| x.abs() / 100.0).collect();
                    Tensor::from_vec(&values[..3], all).unwrap()
                };
                vec![bytes(&keys, 4), bytes(&values, 5), scales(6), scales(7)]
            }
            DataType::Bf16 => vec![brief(&keys, 4), brief(&values, 5)],
            dtype => vec![random(dtype, &keys, 4), random(dtype, &values, 5)],
        }
    }

    fn inputs(&self) -> Vec<Option<Tensor>> {
        let rows: usize = self.sequences.iter().map(|(rows, _)| rows).sum();
        let [width, value_width] = self.widths;
        let (mut starts, mut lengths, mut all, mut used) = (vec![0_i64], vec![], vec![], 0_i64);
        for &(rows, before) in &self.sequences {
            starts.push(starts.last().unwrap() + i64::try_from(rows).unwrap());
            lengths.push(i64::try_from(rows + before).unwrap());
            let blocks = (rows + before).div_ceil(self.block);
            all.push((used..used + i64::try_from(blocks).unwrap()).rev().collect::<Vec<_>>());
            used += i64::try_from(blocks).unwrap();
        }
        // More room than any sequence needs, and what is behind its blocks means nothing.
        let most = all.iter().map(Vec::len).max().unwrap_or(0) + 3;
        let blocks: Vec<i64> = all
            .into_iter()
            .flat_map(|own| own.into_iter().chain(std::iter::repeat(-1)).take(most))
            .collect();
        let count = usize::try_from(used).unwrap() + 2;
        let mut caches = self.caches(count);
        let scales = caches.split_off(2);
        let mut inputs = vec![
            random(self.rows, &[rows, self.heads * width], 1),
            random(self.rows, &[rows, self.kv_heads * width], 2),
            random(self.rows, &[rows, self.kv_heads * value_width], 3),
        ];
        inputs.extend(caches);
        inputs.push(Tensor::vector(starts));
        inputs.push(Tensor::vector(lengths));
        inputs.push(Tensor::from_vec(&[self.sequences.len(), most], blocks).unwrap());
        inputs.extend(scales);
        inputs.into_iter().map(Some).collect()
    }

    fn check(&self, what: &str) {
        // Sums of FP32 in another order; where something is stored as FP16, its rounding.
        let rows: f32 = if self.rows == DataType::Fp16 { 2e-3 } else { 2e-5 };
        let result = if self.cache == DataType::Int8 { rows.max(2e-2) } else { rows };
        let mut distances = vec![result, 1e-6, 1e-6];
        if self.cache == DataType::Int8 {
            // A quotient near the middle of two bytes may become either.
            distances = vec![result, 1.0, 1.0, 1e-6, 1e-6];
        }
        let open = |at: usize, axis: usize| match at {
            3 => axis == 0 || axis == 3,
            4 | 8 | 9 => axis == 0 || axis == 2,
            0..=2 => axis == 0,
            _ => true,
        };
        let node = ("ai.galatea", "PagedAttention");
        check(node, &self.attributes(), &self.inputs(), &distances, &open, what);
    }
}

#[test]
fn rows_over_blocks_are_those_of_the_reference() {
    for (widths, block) in [([64, 64], 16), ([6, 3], 4), ([80, 96], 8), ([5, 7], 3), ([1, 1], 1)] {
        let sequences = [(1, 0), (1, 40), (3, 9), (0, 5), (7, 0)];
        Paged::plain(widths, block, &sequences).check(&format!("{widths:?} in blocks of {block}"));
    }
    Paged::plain([16, 16], 4, &[]).check("no sequence");
    Paged::plain([16, 16], 4, &[(0, 3)]).check("no row");
}

#[test]
fn positions_are_divided_among_workgroups_and_put_together() {
    Paged::plain([32, 32], 16, &[(1, 1000), (1, 3), (2, 300)]).check("long");
    Paged::plain([32, 7], 16, &[(1, 600)]).check("long, of odd values");
    let window = Paged { window: 200, ..Paged::plain([32, 32], 16, &[(1, 1000), (2, 130)]) };
    window.check("long, with a window");
}

#[test]
fn heads_share_keys_in_any_number() {
    for (heads, kv_heads) in [(1, 1), (7, 1), (14, 2), (9, 1), (16, 1), (3, 3)] {
        let plain = Paged::plain([32, 64], 16, &[(2, 20), (1, 200)]);
        Paged { heads, kv_heads, ..plain }.check(&format!("{heads} heads of {kv_heads}"));
    }
    let wide = Paged { heads: 8, kv_heads: 1, ..Paged::plain([256, 256], 16, &[(1, 30)]) };
    wide.check("256");
    Paged { heads: 2, kv_heads: 1, ..Paged::plain([320, 512], 16, &[(1, 30)]) }.check("512");
    Paged { heads: 2, kv_heads: 1, ..Paged::plain([33, 131], 16, &[(1, 30)]) }.check("131");
}

#[test]
fn caches_may_be_of_every_type() {
    for cache in [DataType::Fp16, DataType::Bf16, DataType::Int8] {
        for (widths, block) in [([64, 64], 16), ([6, 3], 5)] {
            let plain = Paged::plain(widths, block, &[(1, 0), (1, 140), (9, 7)]);
            Paged { cache, ..plain }.check(&format!("{cache} {widths:?} in blocks of {block}"));
        }
    }
    let Some(device) = support::device() else { return };
    if device.capabilities().f16 {
        for cache in [DataType::Fp16, DataType::Int8] {
            let plain = Paged::plain([64, 64], 16, &[(1, 300), (3, 7)]);
            Paged { cache, rows: DataType::Fp16, ..plain }.check(&format!("rows of FP16, {cache}"));
        }
    }
}

#[test]
fn windows_and_caps_are_those_of_the_reference() {
    for window in [1, 3, 16, 100] {
        let plain = Paged::plain([16, 16], 4, &[(5, 30), (1, 200), (2, 0)]);
        Paged { window, ..plain }.check(&format!("window {window}"));
    }
    Paged { softcap: 0.2, ..Paged::plain([16, 16], 4, &[(5, 30), (1, 0)]) }.check("cap");
}

#[test]
fn caches_stay_on_the_device_from_step_to_step() {
    let Some(device) = support::own_device() else { return };
    let paged = Paged::plain([16, 16], 4, &[(3, 5), (1, 2)]);
    let inputs = paged.inputs();
    let node = ("ai.galatea", "PagedAttention");
    let graph = graph(node, &paged.attributes(), &inputs, 3, &|at, axis| at > 4 || axis == 0);
    let session = support::session(&device, &graph, &SessionOptions::default()).unwrap();
    let mut given: Vec<Tensor> = inputs.into_iter().flatten().collect();
    let mut expected = given.clone();
    for step in 0..3 {
        let moved = device.counters.download_bytes.load(std::sync::atomic::Ordering::Relaxed);
        let mut found = session.run_tensors(Run::owned(given.clone())).unwrap();
        let mut wanted = evaluate::run(&graph, &expected).unwrap();
        let after = device.counters.download_bytes.load(std::sync::atomic::Ordering::Relaxed);
        if step == 0 {
            assert_eq!(after - moved, found[0].size_bytes() as u64, "only rows are read back");
        }
        near(&found[0], &wanted[0], 2e-5, &format!("step {step}"));
        let (own, other) = (found.split_off(1), wanted.split_off(1));
        for (at, (own, other)) in own.into_iter().zip(other).enumerate() {
            given[3 + at] = own;
            expected[3 + at] = other;
        }
    }
    for at in [3, 4] {
        near(&given[at], &expected[at], 1e-6, "the caches");
    }
}

#[test]
fn halves_turn_by_tables_in_any_order_of_axes() {
    let types = [(DataType::Fp32, 1e-5), (DataType::Fp16, 2e-3)];
    let Some(device) = support::device() else { return };
    for (dtype, distance) in
        types.into_iter().filter(|t| t.0 == DataType::Fp32 || device.capabilities().f16)
    {
        let x = random(dtype, &[2, 5, 3, 8], 1);
        let perm = |axes: &[i64]| named(&[("perm", AttributeValue::Ints(axes.to_vec()))]);
        for (axes, table) in [
            ([0, 1, 2, 3], vec![3, 4]),
            ([0, 2, 1, 3], vec![1, 1, 5, 8]),
            ([0, 2, 1, 3], vec![2, 3, 5, 4]),
            ([0, 2, 1, 3], vec![1]),
        ] {
            let tables = [2, 3].map(|seed| Some(random(dtype, &table, seed)));
            let inputs: Vec<_> = std::iter::once(Some(x.clone())).chain(tables).collect();
            let node = ("ai.galatea", "Rotary");
            let what = format!("{dtype} {axes:?} {table:?}");
            check(node, &perm(&axes), &inputs, &[distance], &|at, axis| at == 0 && axis < 3, &what);
        }
    }
}

#[test]
fn embeddings_turn_by_position() {
    let positions = Tensor::from_vec(&[2, 3], vec![0_i64, 4, 9, 1, 1, 2]).unwrap();
    for (interleaved, dim) in [(0, 0), (1, 0), (0, 4), (1, 6)] {
        let pairs = if dim == 0 { 4 } else { dim / 2 };
        let attributes = named(&[
            ("interleaved", int(interleaved)),
            ("rotary_embedding_dim", int(dim)),
            ("num_heads", int(5)),
        ]);
        let tables = [2, 3].map(|seed| Some(random(DataType::Fp32, &[10, pairs], seed)));
        let direct = [2, 3].map(|seed| Some(random(DataType::Fp32, &[2, 3, pairs], seed)));
        for x in [vec![2, 3, 40], vec![2, 5, 3, 8]] {
            let x = Some(random(DataType::Fp32, &x, 1));
            let what = format!("{x:?} {interleaved} {dim}");
            let open = |at: usize, axis: usize| at == 0 && axis == 0;
            let by_row = [vec![x.clone()], tables.to_vec(), vec![Some(positions.clone())]].concat();
            check(("", "RotaryEmbedding"), &attributes, &by_row, &[1e-5], &open, &what);
            let plain = [vec![x.clone()], direct.to_vec()].concat();
            check(("", "RotaryEmbedding"), &attributes, &plain, &[1e-5], &open, &what);
            let node = ("com.microsoft", "RotaryEmbedding");
            for positions in [positions.clone(), Tensor::vector(vec![6_i64])] {
                let contrib = [vec![x.clone(), Some(positions)], tables.to_vec()].concat();
                check(node, &attributes, &contrib, &[1e-5], &open, &what);
            }
        }
    }
}

#[test]
fn tiles_of_rows_over_blocks_are_those_of_the_reference() {
    for (widths, block) in [([64, 64], 16), ([6, 3], 4), ([5, 70], 3), ([24, 130], 8)] {
        let sequences = [(70, 0), (1, 40), (33, 91), (0, 5), (17, 0)];
        Paged::plain(widths, block, &sequences).check(&format!("{widths:?} in blocks of {block}"));
    }
    for cache in [DataType::Fp16, DataType::Bf16, DataType::Int8] {
        for block in [16, 5] {
            let plain = Paged::plain([40, 24], block, &[(40, 30), (21, 0)]);
            Paged { cache, ..plain }.check(&format!("{cache} in blocks of {block}"));
        }
    }
    for (heads, kv_heads, window) in [(7, 1, 0), (3, 3, 20), (4, 2, 1), (1, 1, 70)] {
        let plain = Paged::plain([16, 16], 16, &[(50, 100), (20, 0)]);
        Paged { heads, kv_heads, window, ..plain }.check(&format!("{heads} heads, {window}"));
    }
    Paged { softcap: 0.2, ..Paged::plain([16, 260], 4, &[(50, 3)]) }.check("cap");
}

#[test]
fn prompts_go_through_matrices_where_all_is_narrow() {
    let rows = DataType::Fp16;
    let sequences = [(70, 0), (20, 140), (0, 5), (17, 0)];
    for (cache, widths, block) in [
        (DataType::Fp16, [16, 16], 4),
        (DataType::Fp16, [32, 16], 16),
        (DataType::Int8, [8, 32], 8),
    ] {
        let plain = Paged::plain(widths, block, &sequences);
        Paged { cache, rows, ..plain }.check(&format!("{cache} {widths:?} in blocks of {block}"));
    }
    for (heads, kv_heads, window, softcap) in [(7, 1, 0, 0.0), (4, 4, 20, 0.0), (4, 2, 70, 0.3)] {
        let plain = Paged::plain([16, 16], 4, &[(50, 100), (20, 0)]);
        let cache = DataType::Fp16;
        let paged = Paged { heads, kv_heads, window, softcap, rows, cache, ..plain };
        paged.check(&format!("{heads} heads, window {window}, {cache}"));
    }
}

#[test]
fn single_rows_and_prompts_share_a_step() {
    let sequences = [(1, 300), (40, 3), (1, 0), (0, 9), (3, 70), (1, 17)];
    let (narrow, wide) = (DataType::Fp16, DataType::Fp32);
    for (heads, kv_heads, value_width, window, rows, cache) in [
        (4, 2, 16, 0, wide, wide),
        (8, 1, 7, 50, wide, DataType::Int8),
        (2, 2, 16, 50, narrow, narrow),
    ] {
        let plain = Paged::plain([16, value_width], 16, &sequences);
        let paged = Paged { heads, kv_heads, window, rows, cache, ..plain };
        paged.check(&format!("{heads} heads of {kv_heads}, {rows} and {cache}"));
    }
    // So short that positions are not divided.
    Paged::plain([16, 16], 4, &[(1, 2), (30, 0)]).check("short");
}

#[test]
fn the_attention_of_contributed_operators_is_that_of_the_reference() {
    let open = |_: usize, _: usize| false;
    for (s, t, e, causal) in [(5, 9, 6, 0), (20, 33, 16, 1), (1, 1, 4, 1), (3, 2, 4, 0)] {
        let attributes = named(&[("num_heads", int(2)), ("unidirectional", int(causal))]);
        let node = ("com.microsoft", "MultiHeadAttention");
        let plain = operands(DataType::Fp32, &[2, s, 8], &[2, t, 8], &[2, t, 2 * e]);
        check(node, &attributes, &plain, &[1e-5], &open, &format!("{s} {t} {e}"));
        // Keys by heads, and a bias on the scores with more keys than there are.
        let mut more = operands(DataType::Fp32, &[2, s, 8], &[2, 2, t, 4], &[2, 2, t, e]);
        more.extend([None, None, Some(random(DataType::Fp32, &[1, 2, s, t + 3], 6))]);
        check(node, &attributes, &more, &[1e-5], &open, &format!("by heads, {s} {t} {e}"));
    }
}

/// A node's queries, keys and values.
fn operands(dtype: DataType, q: &[usize], k: &[usize], v: &[usize]) -> Vec<Option<Tensor>> {
    [(q, 1), (k, 2), (v, 3)].map(|(shape, seed)| Some(random(dtype, shape, seed))).into()
}

#[test]
fn whole_attention_is_that_of_the_reference_in_any_order_of_axes() {
    let Some(device) = support::device() else { return };
    let node = ("ai.galatea", "Attention");
    let open = |_: usize, axis: usize| axis == 0;
    let order = |axes: &[i64]| AttributeValue::Ints(axes.to_vec());
    for (b, h, kv, s, t, d, e) in [
        (2, 4, 2, 5, 7, 6, 3),
        (1, 2, 2, 1, 1, 1, 1),
        (1, 3, 1, 70, 65, 33, 64),
        (1, 1, 1, 130, 129, 64, 80),
        (2, 1, 1, 1, 200, 128, 128),
        (1, 2, 1, 17, 30, 20, 260),
        (1, 2, 1, 0, 3, 4, 4),
        (1, 2, 1, 3, 0, 4, 4),
    ] {
        for causal in [0, 1] {
            if causal == 1 && t < s {
                continue;
            }
            let inputs = operands(DataType::Fp32, &[b, s, h, d], &[b, kv, d, t], &[b, t, kv, e]);
            let attributes = named(&[
                ("scale", AttributeValue::Float(0.4)),
                ("q_perm", order(&[0, 2, 1, 3])),
                ("k_perm", order(&[0, 1, 3, 2])),
                ("v_perm", order(&[0, 2, 1, 3])),
                ("out_perm", order(&[0, 2, 1, 3])),
                ("causal", int(causal)),
            ]);
            let what = format!("{b} {h} {kv} {s} {t} {d} {e} causal {causal}");
            check(node, &attributes, &inputs, &[2e-5], &open, &what);
        }
    }
    if device.capabilities().f16 {
        let inputs = operands(DataType::Fp16, &[1, 2, 40, 32], &[1, 2, 70, 32], &[1, 2, 70, 24]);
        check(node, &named(&[]), &inputs, &[2e-3], &open, "FP16");
    }
}

#[test]
fn masks_hide_keys_and_queries_without_keys_are_told() {
    let node = ("ai.galatea", "Attention");
    let open = |_: usize, axis: usize| axis == 0;
    let (b, h, s, t) = (2, 3, 20, 70);
    for shape in [vec![b, h, s, t], vec![b, 1, 1, t], vec![s, t], vec![t], vec![1, h, s, 1]] {
        for lowest in [f32::NEG_INFINITY, f32::MIN, -10_000.0] {
            let count = shape.iter().product();
            let values = noise(count, 9).into_iter().map(|x| if x < -0.6 { lowest } else { x });
            let mut inputs = operands(DataType::Fp32, &[b, h, s, 8], &[b, h, t, 8], &[b, h, t, 8]);
            inputs.push(Some(Tensor::from_vec(&shape, values.collect()).unwrap()));
            // Ten thousand has three digits behind the point in FP32, the reference has more.
            let most = if lowest == -10_000.0 { 2e-3 } else { 2e-5 };
            check(node, &named(&[]), &inputs, &[most], &open, &format!("{shape:?} {lowest}"));
        }
    }
    for (zero, lowest) in [(0, f32::NEG_INFINITY), (1, f32::NEG_INFINITY), (1, f32::MIN)] {
        let mut inputs = operands(DataType::Fp32, &[1, 1, 3, 8], &[1, 1, 5, 8], &[1, 1, 5, 8]);
        let mut mask = vec![0.0; 15];
        mask[5..10].fill(lowest);
        inputs.push(Some(Tensor::from_vec(&[3, 5], mask).unwrap()));
        let attributes = named(&[("masked_to_zero", int(zero))]);
        check(node, &attributes, &inputs, &[2e-5], &open, &format!("{zero} {lowest}"));
    }
}

#[test]
fn the_attention_of_onnx_is_that_of_the_reference() {
    let open = |at: usize, axis: usize| axis == 0 && at < 3;
    let node = ("", "Attention");
    let packed = operands(DataType::Fp32, &[2, 20, 24], &[2, 70, 12], &[2, 70, 10]);
    let split = operands(DataType::Fp32, &[2, 4, 20, 6], &[2, 2, 70, 6], &[2, 2, 70, 5]);
    let bools: Vec<bool> = noise(20 * 66, 5).into_iter().map(|x| x > -0.3).collect();
    let masks = [
        None,
        Some(random(DataType::Fp32, &[2, 1, 20, 70], 6)),
        Some(Tensor::from_vec(&[20, 66], bools).unwrap()),
    ];
    for operands in [packed, split] {
        for mask in &masks {
            for (causal, cap, left, right) in
                [(0, 0.0, -1, -1), (1, 0.0, -1, -1), (0, 0.5, 4, 9), (1, 0.0, 3, 2)]
            {
                let window = |name, length| (name, AttributeValue::Int(length));
                let attributes = named(&[
                    ("is_causal", int(causal)),
                    ("softcap", AttributeValue::Float(cap)),
                    ("q_num_heads", int(4)),
                    ("kv_num_heads", int(2)),
                    window("left_window_size", left),
                    window("right_window_size", right),
                ]);
                let inputs = [operands.clone(), vec![mask.clone()]].concat();
                let what = format!("causal {causal}, cap {cap}, window {left} {right}");
                check(node, &attributes, &inputs, &[2e-5], &open, &what);
            }
        }
    }
}

#[test]
fn every_configuration_of_rows_gives_the_same() {
    let Some(device) = support::device() else { return };
    let paged = Paged { heads: 8, ..Paged::plain([32, 64], 16, &[(1, 700), (2, 250), (1, 0)]) };
    let inputs: Vec<Tensor> = paged.inputs().into_iter().flatten().collect();
    let typed = |tensor: &Tensor| Some(ValueShape::new(tensor.dtype(), tensor.shape().to_vec()));
    let shapes = NodeShapes {
        inputs: inputs.iter().map(typed).collect(),
        outputs: vec![
            Some(ValueShape::new(DataType::Fp32, vec![4, 8 * 64])),
            typed(&inputs[3]),
            typed(&inputs[4]),
        ],
        constants: vec![None; inputs.len()],
    };
    let sizes = PagedSizes { shared_heads: 4, key_width: 32, value_width: 64 };
    let op = PagedAttention { num_heads: 8, kv_num_heads: 2, scale: None, window: 0, softcap: 0.0 };
    let bytes: Vec<Option<&[u8]>> = inputs.iter().map(|x| Some(x.as_bytes().unwrap())).collect();
    let caches = [3, 4].map(|at| inputs[at].size_bytes() as u64);
    let mut first: Option<Vec<u8>> = None;
    for config in PAGED_CONFIGS.iter().filter(|c| c.fits(device.capabilities(), &sizes)) {
        let mut step = DispatchStep::default();
        attention::paged(&device, op, *config).bind(&shapes, &mut step).unwrap();
        // Caches begin as zeros: what is old weighs by its number alone.
        let sizes = [4 * 8 * 64 * 4, caches[0], caches[1]];
        let trial = StepTrial::new(&device, &step, &bytes, &sizes, 1).unwrap();
        trial.run(1).unwrap();
        let found = trial.output(0, 4 * 8 * 64 * 4).unwrap();
        let tensor = |bytes: &[u8]| Tensor::from_bytes(DataType::Fp32, &[4, 512], bytes).unwrap();
        let expected = first.get_or_insert_with(|| found.clone());
        near(&tensor(&found), &tensor(expected), 1e-5, &format!("{config:?}"));
        assert!(found.iter().any(|&byte| byte != 0));
    }
}
