//! Products with matrices of few bits, and rows of them, beside the reference.

use std::sync::Arc;

use crate::matrices::{Made, Random, Scales, formats};
use crate::support;
use crate::support::node::{self, Node};
use galatea_gpu::blocks::{self, BlockKernelChoice, GEMV_CONFIGS, GemvConfig, TILED_CONFIGS};
use galatea_gpu::{DispatchStep, GpuDevice, StepTrial};
use galatea_graph::blocks::{BlockWeights, CodeFormat, CodeMeaning};
use galatea_graph::ops::fused::{BlockGather, BlockMatMul, FusedActivation};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, Operator, evaluate};
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_runtime::{Precision, Run, SessionOptions};
use galatea_tensor::{DataType, Tensor, f16};

/// A graph of one node.
fn graph(op: &str, operator: Arc<dyn Operator>, inputs: &[Tensor], outputs: usize) -> Graph {
    let mut graph = Graph::new("test");
    graph.opsets.insert("ai.galatea".into(), 1);
    let ids = inputs.iter().enumerate().map(|(at, value)| {
        let id = graph.value_named(&format!("x{at}"));
        let dims = value.shape().iter().map(|&length| Dim::Known(length)).collect();
        graph.value_mut(id).declared = Some(Fact::new(value.dtype(), dims));
        graph.inputs.push(id);
        Some(id)
    });
    let ids: Vec<_> = ids.collect();
    let results: Vec<_> = (0..outputs).map(|at| graph.value_named(&format!("y{at}"))).collect();
    graph.outputs.clone_from(&results);
    let results = results.into_iter().map(Some).collect();
    graph.add_operator("ai.galatea", op, operator, ids, results);
    graph
}

fn random(shape: &[usize], seed: u64) -> Tensor {
    let mut random = Random(seed);
    Tensor::from_vec(shape, (0..shape.iter().product()).map(|_| random.unit()).collect()).unwrap()
}

fn made(rows: usize, columns: usize, (format, scales): (CodeFormat, Scales), seed: u64) -> Made {
    Made { rows, columns, format, scales, seed, at: None }
}

/// Returns the error allowed in each result: rounding to FP32 of terms as large as the largest number of a row.
fn slack(x: &Tensor, weights: &dyn BlockWeights) -> Vec<f32> {
    let columns = weights.columns();
    let mut row = vec![0.0; columns];
    let most: Vec<f32> = (0..weights.rows())
        .map(|at| {
            weights.dequantize_row(at, &mut row).unwrap();
            row.iter().fold(0.0_f32, |most, x| most.max(x.abs()))
        })
        .collect();
    let x = x.to_vec::<f32>().unwrap();
    let sums = x.chunks(columns.max(1)).map(|x| x.iter().map(|x| x.abs()).sum::<f32>());
    sums.flat_map(|sum| most.iter().map(move |most| 3e-6 * sum * most + 1e-6)).collect()
}

fn compare(what: &str, found: &Tensor, expected: &Tensor, slack: &[f32]) {
    assert_eq!(found.shape(), expected.shape(), "{what}");
    let (found, expected) = (found.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let near = (found - expected).abs() <= slack[at % slack.len()];
        assert!(near, "{what}: {found} for {expected} at {at}, slack {}", slack[at % slack.len()]);
    }
}

fn on_gpu(device: &Arc<GpuDevice>, graph: &Graph, inputs: &[Tensor]) -> Vec<Tensor> {
    let session = support::session(device, graph, &SessionOptions::default()).unwrap();
    session.run_tensors(Run::owned(inputs.to_vec())).unwrap()
}

#[test]
fn products_with_every_format_are_those_of_its_numbers() {
    let Some(device) = support::device() else { return };
    for (at, (name, format, scales)) in formats().into_iter().enumerate() {
        let two: Vec<Arc<dyn BlockWeights>> = [(37, 3), (18, 4)]
            .map(|(rows, seed)| Arc::new(made(rows, 512, (format, scales), seed)) as _)
            .to_vec();
        for m in [1, [2, 3, 9, 40][at % 4]] {
            let x = random(&[m, 512], 5);
            let bias = random(&[18], 6);
            let product = BlockMatMul::new(two.clone()).unwrap();
            let mut of = graph("BlockMatMul", Arc::new(product), &[x.clone(), bias.clone()], 2);
            of.nodes[0].inputs.insert(1, None);
            let inputs = [x.clone(), bias];
            let (found, expected) =
                (on_gpu(&device, &of, &inputs), evaluate::run(&of, &inputs).unwrap());
            for ((found, expected), weights) in found.iter().zip(&expected).zip(&two) {
                compare(&format!("{name}, {m} rows"), found, expected, &slack(&x, &**weights));
            }
        }
    }
}

/// The first output of an operator with chosen kernels, X and the output being of given types.
fn chosen(
    device: &Arc<GpuDevice>,
    op: &BlockMatMul,
    x: &Tensor,
    halves: [bool; 2],
    choice: BlockKernelChoice,
) -> Tensor {
    let kernel = blocks::kernel(device, op, Precision::Fp16, choice).unwrap();
    let dtype = |half: bool| if half { DataType::Fp16 } else { DataType::Fp32 };
    let shape = [x.shape()[0], op.weights()[0].rows()];
    let shapes = NodeShapes {
        inputs: vec![Some(ValueShape::new(dtype(halves[0]), x.shape().to_vec()))],
        outputs: vec![Some(ValueShape::new(dtype(halves[1]), shape.to_vec()))],
        constants: vec![None],
    };
    let mut step = DispatchStep::default();
    kernel.bind_as(&shapes, &mut step, choice).unwrap();
    let values = x.to_vec::<f32>().unwrap();
    let bytes: Vec<u8> = match halves[0] {
        true => values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
        false => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    let count = shape[0] * shape[1];
    let width = if halves[1] { 2 } else { 4 };
    let trial = StepTrial::new(device, &step, &[Some(&bytes)], &[count as u64 * 4], 1).unwrap();
    trial.run(1).unwrap();
    let found = trial.output(0, count * width).unwrap();
    let values: Vec<f32> = match halves[1] {
        true => found.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
        false => {
            found.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
        }
    };
    Tensor::from_vec(&shape, values).unwrap()
}

/// Slack where operands were rounded to FP16: half a thousandth each.
fn rounded(slack: Vec<f32>) -> Vec<f32> {
    slack.into_iter().map(|slack| slack / 3e-6 * 1e-3).collect()
}

fn reference(op: &BlockMatMul, x: &Tensor) -> Tensor {
    let of = graph("BlockMatMul", Arc::new(op.clone()), std::slice::from_ref(x), 1);
    evaluate::run(&of, std::slice::from_ref(x)).unwrap().remove(0)
}

fn named(name: &str) -> (CodeFormat, Scales) {
    let all = formats();
    let found = all.into_iter().find(|(own, ..)| *own == name).unwrap();
    (found.1, found.2)
}

#[test]
fn every_way_to_multiply_few_rows_is_right() {
    let Some(device) = support::device() else { return };
    for (at, config) in GEMV_CONFIGS.iter().enumerate() {
        // The software device's compiler takes long, and rows of bytes and parts have tests of their own.
        let other = config.ahead || config.split > 1 || config.most != 8;
        let enough = device.capabilities().software && (other || at % 2 == 1 && config.subgroups);
        if !config.is_valid(device.capabilities()) || enough {
            continue;
        }
        let name = ["q4_0", "q6_k", "mlx8", "f16"][at % 4];
        let columns = if name == "f16" { 1027 } else { 1280 };
        let weights: Arc<dyn BlockWeights> = Arc::new(made(21, columns, named(name), 11));
        let op = BlockMatMul::new(vec![Arc::clone(&weights)]).unwrap();
        let x = random(&[3, columns], 12);
        let choice = BlockKernelChoice {
            gemv: Some(*config),
            many: Some(usize::MAX),
            ..BlockKernelChoice::default()
        };
        let found = chosen(&device, &op, &x, [false, false], choice);
        let what = format!("{name}, {config:?}");
        compare(&what, &found, &reference(&op, &x), &slack(&x, &*weights));
    }
}

#[test]
fn every_way_to_multiply_many_rows_is_right() {
    let Some(device) = support::device() else { return };
    for (at, config) in TILED_CONFIGS.iter().enumerate() {
        // Large tiles take the software device's compiler long, and are the same text.
        let large = device.capabilities().software && config.tile[0] > 64;
        if !config.is_valid(device.capabilities()) || large {
            eprintln!("skipped: {config:?}");
            continue;
        }
        let name = ["q4_0", "q5_k", "q8_0", "bf16", "q3_k"][at % 5];
        let columns = if name == "bf16" { 275 } else { 512 };
        let weights: Arc<dyn BlockWeights> = Arc::new(made(70, columns, named(name), 21));
        let x = random(&[37, columns], 22);
        let choice = BlockKernelChoice {
            tiled: Some(*config),
            many: Some(0),
            ..BlockKernelChoice::default()
        };
        let op = BlockMatMul::new(vec![Arc::clone(&weights)]).unwrap();
        let found = chosen(&device, &op, &x, [false, false], choice);
        let slack = slack(&x, &*weights);
        let slack = if config.cooperative { rounded(slack) } else { slack };
        compare(&format!("{name}, {config:?}"), &found, &reference(&op, &x), &slack);
    }
}

#[test]
fn rows_of_every_format_are_its_numbers() {
    let Some(device) = support::device() else { return };
    for (name, format, scales) in formats() {
        let columns = if name.ends_with("16") { 37 } else { 256 };
        let weights: Arc<dyn BlockWeights> = Arc::new(made(19, columns, (format, scales), 31));
        let indices = Tensor::from_vec(&[2, 3], vec![3_i64, 0, 18, 3, 7, 1]).unwrap();
        let of = graph(
            "BlockGather",
            Arc::new(BlockGather::new(weights)),
            std::slice::from_ref(&indices),
            1,
        );
        let found = on_gpu(&device, &of, std::slice::from_ref(&indices)).remove(0);
        let expected = evaluate::run(&of, &[indices]).unwrap().remove(0);
        // A scale and an offset may be rounded once more.
        compare(name, &found, &expected, &[1e-6]);
    }
}

#[test]
fn gates_multiply_whatever_their_formats() {
    let Some(device) = support::device() else { return };
    let pairs = [("q4_0", "q4_0"), ("q4_k", "q6_k"), ("f16", "f16")];
    for (first, second) in pairs {
        for m in [1, 5, 20] {
            let both = [(first, 41), (second, 42)].map(|(name, seed)| {
                Arc::new(made(33, 256, named(name), seed)) as Arc<dyn BlockWeights>
            });
            let x = random(&[m, 256], 43);
            let op = BlockMatMul::gated(both.clone(), FusedActivation::Silu).unwrap();
            let of = graph("BlockMatMul", Arc::new(op.clone()), std::slice::from_ref(&x), 1);
            let found = on_gpu(&device, &of, std::slice::from_ref(&x)).remove(0);
            let products = both.map(|weights| {
                let slack = slack(&x, &*weights);
                let op = BlockMatMul::new(vec![weights]).unwrap();
                (reference(&op, &x).to_vec::<f32>().unwrap(), slack)
            });
            let [(a, a_off), (b, b_off)] = products;
            let off = |i: usize| {
                2.0 * (a_off[i] * b[i].abs() + b_off[i] * a[i].abs() + a_off[i] * b_off[i]) + 1e-5
            };
            let slack: Vec<f32> = (0..a.len()).map(off).collect();
            compare(&format!("{first}, {second}, {m}"), &found, &reference(&op, &x), &slack);
        }
    }
}

#[test]
fn halves_come_and_go_with_every_kernel() {
    let Some(device) = support::device() else { return };
    if !device.capabilities().f16 {
        eprintln!("skipped: no FP16");
        return;
    }
    let weights: Arc<dyn BlockWeights> = Arc::new(made(21, 320, named("q4_0"), 51));
    let op = BlockMatMul::new(vec![Arc::clone(&weights)]).unwrap();
    for m in [1, 24] {
        let x = random(&[m, 320], 52);
        let slack = rounded(slack(&x, &*weights));
        for halves in [[false, true], [true, false], [true, true]] {
            let found = chosen(&device, &op, &x, halves, BlockKernelChoice::default());
            compare(&format!("{m}, {halves:?}"), &found, &reference(&op, &x), &slack);
        }
    }
}

#[test]
fn no_rows_and_no_columns_are_no_work() {
    let Some(device) = support::device() else { return };
    for (m, n, k) in [(0, 4, 64), (2, 0, 64)] {
        let weights: Arc<dyn BlockWeights> = Arc::new(made(n, k, named("q4_0"), 61));
        let op = BlockMatMul::new(vec![weights]).unwrap();
        let x = random(&[m, k], 62);
        let of = graph("BlockMatMul", Arc::new(op), std::slice::from_ref(&x), 1);
        let found = on_gpu(&device, &of, &[x]).remove(0);
        assert_eq!(found.shape(), [m, n]);
    }
}

/// Returns the largest change of each result if X changes by three quantization steps.
fn flips(weights: &dyn BlockWeights) -> Vec<f32> {
    let mut row = vec![0.0; weights.columns()];
    let most = |at: usize| {
        weights.dequantize_row(at, &mut row).unwrap();
        3.0 * row.iter().fold(0.0_f32, |most, x| most.max(x.abs()))
    };
    (0..weights.rows()).map(most).collect()
}

/// X as bytes with a scale for each 32 numbers, as numbers again; and the largest step.
fn in_bytes(x: &Tensor) -> (Tensor, f32) {
    let mut values = x.to_vec::<f32>().unwrap();
    let columns = x.shape()[1];
    let mut largest = 0.0_f32;
    for block in values.chunks_mut(columns).flat_map(|row| row.chunks_mut(32)) {
        let most = block.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let step = most / 127.0;
        largest = largest.max(step);
        block.iter_mut().for_each(|x| *x = (*x * (127.0 / most)).round_ties_even() * step);
    }
    (Tensor::from_vec(x.shape(), values).unwrap(), largest)
}

#[test]
fn rows_may_be_rounded_to_bytes() {
    let Some(device) = support::device() else { return };
    for (at, (name, format, scales)) in formats().into_iter().enumerate() {
        let integers = !matches!(format.meaning(), CodeMeaning::Table(_) | CodeMeaning::Float(_));
        if !integers || !device.capabilities().packed_dot {
            continue;
        }
        // 512 numbers are less than a tile, 2304 more than one of several rows.
        let (m, columns) = if at % 2 == 0 { (1, 512) } else { (3, 2304) };
        let weights: Arc<dyn BlockWeights> = Arc::new(made(9, columns, (format, scales), 71));
        let op = BlockMatMul::new(vec![Arc::clone(&weights)]).unwrap().with_rounded_rows(true);
        let x = random(&[m, columns], 72);
        let ahead = GEMV_CONFIGS.iter().find(|config| config.ahead).copied();
        let choices = [
            BlockKernelChoice::default(),
            BlockKernelChoice { gemv: ahead, ..BlockKernelChoice::default() },
        ];
        let found = choices.map(|choice| chosen(&device, &op, &x, [false, false], choice));
        let (near, step) = in_bytes(&x);
        // Two or three numbers may lie between two bytes and be rounded to the other one.
        let (slack, flips) = (slack(&x, &*weights), flips(&*weights));
        let slack: Vec<f32> =
            slack.iter().enumerate().map(|(i, s)| s + flips[i % flips.len()] * step).collect();
        for found in &found {
            compare(name, found, &reference(&op, &near), &slack);
        }
    }
}

/// Configurations of a row of X and of more than a workgroup takes, whose sums lie in several parts.
fn split_rows() -> [(&'static str, usize, GemvConfig); 5] {
    let of = |wanted: &dyn Fn(&GemvConfig) -> bool| {
        let mut all = GEMV_CONFIGS.iter().copied();
        all.find(|config| config.split > 1 && wanted(config)).unwrap()
    };
    let few = of(&|config| config.threads == 256 && config.split == 4 && !config.ahead);
    let ahead = of(&|config| config.ahead && config.split == 4);
    let plain = of(&|config| !config.subgroups);
    [
        ("q4_0", 1, GemvConfig { threads: 64, ..few }),
        ("q8_0", 3, GemvConfig { threads: 64, most: 2, ..ahead }),
        ("q6_k", 1, GemvConfig { lanes: 64, rows: 2, threads: 64, ..ahead }),
        ("q4_k", 5, GemvConfig { bytes: false, most: 4, ..few }),
        ("mlx4", 2, GemvConfig { threads: 64, ..plain }),
    ]
}

#[test]
fn parts_of_long_rows_add_up() {
    let Some(device) = support::device() else { return };
    for (name, m, config) in split_rows() {
        let of =
            |rows, seed| -> Arc<dyn BlockWeights> { Arc::new(made(rows, 2304, named(name), seed)) };
        let x = random(&[m, 2304], 111);
        let bytes = config.bytes && config.subgroups && device.capabilities().packed_dot;
        let (near, step) = if bytes { in_bytes(&x) } else { (x.clone(), 0.0) };
        let off = |weights: &dyn BlockWeights| -> Vec<f32> {
            let (slack, flips) = (slack(&near, weights), flips(weights));
            let all = slack.iter().enumerate();
            all.map(|(i, slack)| slack + flips[i % flips.len()] * step).collect()
        };
        let choice = BlockKernelChoice {
            gemv: Some(config),
            many: Some(usize::MAX),
            ..BlockKernelChoice::default()
        };
        let both = [of(21, 112), of(21, 113)];
        let products = both.clone().map(|weights| {
            let op = BlockMatMul::new(vec![Arc::clone(&weights)]).unwrap().with_rounded_rows(true);
            let expected = reference(&op, &near);
            let found = chosen(&device, &op, &x, [false, false], choice);
            compare(&format!("{name}, {config:?}"), &found, &expected, &off(&*weights));
            (expected.to_vec::<f32>().unwrap(), off(&*weights))
        });
        let [(a, a_off), (b, b_off)] = products;
        let slack = (0..a.len()).map(|i| {
            2.0 * (a_off[i] * b[i].abs() + b_off[i] * a[i].abs() + a_off[i] * b_off[i]) + 1e-5
        });
        let slack: Vec<f32> = slack.collect();
        let gated = BlockMatMul::gated(both, FusedActivation::Silu).unwrap();
        let gated = gated.with_rounded_rows(true);
        let found = chosen(&device, &gated, &x, [false, false], choice);
        compare(&format!("{name} gated, {config:?}"), &found, &reference(&gated, &near), &slack);
    }
}

#[test]
fn parts_of_several_matrices_add_up_with_their_biases() {
    let Some(device) = support::device() else { return };
    let two: Vec<Arc<dyn BlockWeights>> = [(37, 121), (18, 122)]
        .map(|(rows, seed)| Arc::new(made(rows, 2304, named("q4_0"), seed)) as _)
        .to_vec();
    let (x, bias) = (random(&[2, 2304], 123), random(&[18], 124));
    let op = BlockMatMul::new(two.clone()).unwrap();
    let mut of = graph("BlockMatMul", Arc::new(op.clone()), &[x.clone(), bias.clone()], 2);
    of.nodes[0].inputs.insert(1, None);
    let expected = evaluate::run(&of, &[x.clone(), bias.clone()]).unwrap();
    let (_, _, config) = split_rows()[0];
    let choice = BlockKernelChoice {
        gemv: Some(config),
        many: Some(usize::MAX),
        ..BlockKernelChoice::default()
    };
    // Pieces cut the first matrix, and the second one with the rest of it.
    for binding_bytes in [None, Some(20 * 72 * 16)] {
        let choice = BlockKernelChoice { binding_bytes, ..choice };
        let kernel = blocks::kernel(&device, &op, Precision::Fp32, choice).unwrap();
        let fact = |shape: &[usize]| Some(ValueShape::new(DataType::Fp32, shape.to_vec()));
        let shapes = NodeShapes {
            inputs: vec![fact(&[2, 2304]), None, fact(&[18])],
            outputs: vec![fact(&[2, 37]), fact(&[2, 18])],
            constants: vec![None, None, None],
        };
        let mut step = DispatchStep::default();
        kernel.bind_as(&shapes, &mut step, choice).unwrap();
        let bytes = |of: &Tensor| -> Vec<u8> {
            of.to_vec::<f32>().unwrap().iter().flat_map(|x| x.to_le_bytes()).collect()
        };
        let (x_bytes, bias_bytes) = (bytes(&x), bytes(&bias));
        let inputs = [Some(&x_bytes[..]), None, Some(&bias_bytes[..])];
        let trial = StepTrial::new(&device, &step, &inputs, &[2 * 37 * 4, 2 * 18 * 4], 1).unwrap();
        trial.run(1).unwrap();
        for (at, (expected, weights)) in expected.iter().zip(&two).enumerate() {
            let found = trial.output(at, 2 * weights.rows() * 4).unwrap();
            let found = found.chunks_exact(4);
            let found = found.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            let found = Tensor::from_vec(expected.shape(), found).unwrap();
            compare(&format!("output {at}"), &found, expected, &slack(&x, &**weights));
        }
    }
}

#[test]
fn weights_of_few_bits_in_constants_are_multiplied() {
    for (bits, block, halves) in
        [(2_u32, 32_usize, false), (4, 32, true), (4, 128, false), (8, 64, true)]
    {
        let (k, n) = (200_usize, 33_usize);
        let blocks = k.div_ceil(block);
        let count = blocks * block * bits as usize / 8;
        let weights = node::bytes(&[n, blocks, count / blocks]);
        let points = node::bytes(&[n * (blocks * bits as usize).div_ceil(8)]);
        let length = |length: usize| AttributeValue::Int(length.try_into().unwrap());
        let attributes = Attributes::from([
            ("K".into(), length(k)),
            ("N".into(), length(n)),
            ("bits".into(), AttributeValue::Int(bits.into())),
            ("block_size".into(), length(block)),
        ]);
        let mut random = Random(81);
        let mut scale = || random.unit() / f32::from(u8::MAX >> (8 - bits));
        let scales: Vec<f32> = (0..n * blocks).map(|_| scale()).collect();
        let scales = match halves {
            true => {
                let scales = scales.into_iter().map(f16::from_f32).collect::<Vec<_>>();
                Tensor::from_vec(&[n * blocks], scales).unwrap()
            }
            false => Tensor::from_vec(&[n * blocks], scales).unwrap(),
        };
        for (rows, zeros) in [(vec![1, k], false), (vec![2, 9, k], true)] {
            let x = node::floats(&rows, 1.0);
            let of = Node::new("com.microsoft", "MatMulNBits").with(attributes.clone()).input(x);
            let of = of.constant(weights.clone()).constant(scales.clone());
            let of = if zeros { of.constant(points.clone()) } else { of.absent() };
            let of = of.absent().constant(node::floats(&[n], 1.0));
            // 200 terms of at most 1, rounded to FP32 a few times each, or operands to FP16.
            of.near(1e-4, 0.1);
        }
    }
}

#[test]
fn matrices_larger_than_a_binding_lie_in_pieces() {
    let Some(device) = support::device() else { return };
    let both = [(37, 91), (18, 92)].map(|(rows, seed)| {
        Arc::new(made(rows, 512, named("q5_k"), seed)) as Arc<dyn BlockWeights>
    });
    let gates =
        [93, 94].map(|seed| Arc::new(made(37, 512, named("q5_k"), seed)) as Arc<dyn BlockWeights>);
    let gated = BlockMatMul::gated(gates, FusedActivation::GeluTanh).unwrap();
    for op in [BlockMatMul::new(both.to_vec()).unwrap(), gated] {
        for m in [1, 20] {
            let x = random(&[m, 512], 95);
            let whole = chosen(&device, &op, &x, [false, false], BlockKernelChoice::default());
            // Eleven rows of 16 units of 16 bytes, or ten where they come in pairs.
            let choice = BlockKernelChoice {
                binding_bytes: Some(11 * 16 * 16),
                ..BlockKernelChoice::default()
            };
            let found = chosen(&device, &op, &x, [false, false], choice);
            assert_eq!(found.to_vec::<f32>().unwrap(), whole.to_vec::<f32>().unwrap());
        }
    }
}

#[test]
fn a_table_and_the_matrix_of_logits_are_the_same_memory() {
    let Some(device) = support::device() else { return };
    let at = |at, format| Made { at, ..made(64, 512, named(format), 101) };
    let of = |matrix: Made| -> Arc<dyn BlockWeights> { Arc::new(matrix) };
    let (here, there) = (Some((4096, 18432)), Some((40960, 18432)));
    let weights = of(at(here, "q4_0"));
    let again = of(at(here, "q4_0"));
    let others = [of(at(there, "q4_0")), of(at(here, "mlx4")), of(at(None, "q4_0"))];
    let uploaded = || device.counters.upload_bytes.load(std::sync::atomic::Ordering::Relaxed);
    let kernel = |weights: &Arc<dyn BlockWeights>| {
        let op = BlockMatMul::new(vec![Arc::clone(weights)]).unwrap();
        blocks::kernel(&device, &op, Precision::Fp32, BlockKernelChoice::default()).unwrap()
    };
    // Tests that run beside this one upload too: only what must differ is compared.
    let first = kernel(&weights);
    let second = kernel(&again);
    assert!(first.shares(&second));
    for other in &others {
        assert!(!first.shares(&kernel(other)));
    }
    // What does not say where it lies is only itself.
    let nowhere = kernel(&others[2]);
    assert!(nowhere.shares(&kernel(&others[2])));
    assert!(!nowhere.shares(&kernel(&of(at(None, "q4_0")))));
    drop((first, second));
    let before = uploaded();
    let third = kernel(&weights);
    assert!(uploaded() > before);
    assert!(third.shares(&third));
}
