//! Attention by cooperative matrices beside its reference evaluation.

use crate::support;
use galatea_gpu::attention::{DenseAttentionMethod, FLASH_CONFIGS, FlashConfig, whole};
use galatea_gpu::{DispatchStep, GpuDevice, StepTrial};
use galatea_graph::ops::fused::FusedAttention;
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, evaluate};
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_runtime::{OptimiseLevel, Precision, Run, SessionOptions};
use galatea_tensor::{DataType, Tensor, f16};

/// Weights and results are rounded to FP16; operands have been from the start.
const DISTANCE: f32 = 2e-3;

fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(u16::try_from(state >> 16).unwrap()) / 32_768.0 - 1.0
    };
    (0..count).map(next).collect()
}

fn halves(shape: &[usize], values: Vec<f32>) -> Tensor {
    Tensor::from_vec(shape, values.into_iter().map(f16::from_f32).collect()).unwrap()
}

fn random(shape: &[usize], seed: u32) -> Tensor {
    halves(shape, noise(shape.iter().product(), seed))
}

/// Keys `[B, H, T, D]` that grow from one to the next, so that the greatest score of a row does too.
fn growing(shape: [usize; 4], seed: u32) -> Tensor {
    let [_, _, t, d] = shape;
    let values = noise(shape.iter().product(), seed).into_iter().enumerate();
    let growth = |at: usize| f32::from(u16::try_from(at / d % t).unwrap()) / 20.0;
    halves(&shape, values.map(|(at, x)| x * growth(at)).collect())
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    match tensor.dtype() {
        DataType::Fp16 => tensor.to_vec::<f16>().unwrap().into_iter().map(f16::to_f32).collect(),
        _ => tensor.to_vec().unwrap(),
    }
}

fn near(found: &Tensor, expected: &Tensor, what: &str) {
    assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()), "{what}");
    for (at, (a, b)) in floats(found).into_iter().zip(floats(expected)).enumerate() {
        let same = a.is_nan() && b.is_nan() || a == b;
        let off = (a - b).abs();
        assert!(same || off <= DISTANCE * b.abs().max(1.0), "{what} {at}: {a}, not {b}");
    }
}

fn graph((domain, op): (&str, &str), attributes: &Attributes, inputs: &[Tensor]) -> Graph {
    let mut graph = Graph::new("one");
    graph.opsets.insert(domain.to_owned(), if domain.is_empty() { 25 } else { 1 });
    for (at, tensor) in inputs.iter().enumerate() {
        let id = graph.value_named(&format!("x{at}"));
        let dims = tensor.shape().iter().map(|&len| Dim::Known(len)).collect::<Vec<_>>();
        graph.value_mut(id).declared = Some(Fact::new(tensor.dtype(), dims));
        graph.inputs.push(id);
    }
    let y = graph.value_named("y");
    let given = graph.inputs.iter().copied().map(Some).collect();
    graph.add_node(domain, op, "", attributes, given, vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    graph
}

fn named(all: &[(&str, AttributeValue)]) -> Attributes {
    all.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// The device, where it has matrices with which attention is computed.
fn device() -> Option<std::sync::Arc<GpuDevice>> {
    let device = support::device()?;
    let able = FLASH_CONFIGS.iter().any(|config| config.fits(device.capabilities(), [16, 16]));
    if !able {
        eprintln!("skipped: the device has no cooperative matrices");
    }
    able.then_some(device)
}

/// Runs a node in a session that computes in FP16.
fn check(node: (&str, &str), attributes: &Attributes, inputs: &[Tensor], what: &str) {
    let Some(device) = device() else { return };
    let graph = graph(node, attributes, inputs);
    let options = SessionOptions {
        optimise: OptimiseLevel::O0,
        precision: Precision::Fp16,
        ..SessionOptions::default()
    };
    let session = support::session(&device, &graph, &options).unwrap();
    let expected = evaluate::run(&graph, inputs).unwrap();
    let found = session.run_tensors(Run::owned(inputs.to_vec())).unwrap();
    near(&found[0], &expected[0], what);
}

fn plain(scale: f32) -> FusedAttention {
    FusedAttention {
        scale,
        q_perm: FusedAttention::IN_ORDER,
        k_perm: FusedAttention::IN_ORDER,
        v_perm: FusedAttention::IN_ORDER,
        out_perm: FusedAttention::IN_ORDER,
        masked_to_zero: false,
        causal: false,
    }
}

fn check_config(device: &std::sync::Arc<GpuDevice>, config: FlashConfig, lens: [usize; 4]) {
    let [s, t, d, e] = lens;
    let (h, kv) = (2, 1);
    let inputs = [random(&[1, h, s, d], 1), growing([1, kv, t, d], 2), random(&[1, kv, t, e], 3)];
    let shape = [1, h, s, e];
    let shapes = NodeShapes {
        inputs: inputs
            .iter()
            .map(|x| Some(ValueShape::new(x.dtype(), x.shape().to_vec())))
            .collect(),
        outputs: vec![Some(ValueShape::new(DataType::Fp16, shape.to_vec()))],
        constants: vec![None; 3],
    };
    let mut step = DispatchStep::default();
    whole(device, plain(1.5), DenseAttentionMethod::Flash(config))
        .bind(&shapes, &mut step)
        .unwrap();
    let bytes: Vec<Option<&[u8]>> = inputs.iter().map(|x| Some(x.as_bytes().unwrap())).collect();
    let size = shape.iter().product::<usize>() * 2;
    let trial = StepTrial::new(device, &step, &bytes, &[size as u64 + 16], 1).unwrap();
    trial.run(1).unwrap();
    let found = Tensor::from_bytes(DataType::Fp16, &shape, &trial.output(0, size).unwrap());
    let scale = named(&[("scale", AttributeValue::Float(1.5))]);
    let graph = graph(("ai.galatea", "Attention"), &scale, &inputs);
    let expected = evaluate::run(&graph, &inputs).unwrap();
    near(&found.unwrap(), &expected[0], &format!("{config:?} {lens:?}"));
}

#[test]
fn every_configuration_gives_the_attention_of_the_reference() {
    let Some(device) = device() else { return };
    let mut tried = 0;
    for widths in [[16, 16], [8, 32], [32, 16], [64, 64], [128, 128], [64, 128]] {
        for config in FLASH_CONFIGS {
            if !config.fits(device.capabilities(), widths) {
                continue;
            }
            // A processor that plays the GPU compiles for a while.
            if device.capabilities().software && widths != [16, 16] {
                continue;
            }
            tried += 1;
            for [s, t] in [[70, 133], [1, 1], [33, 64]] {
                check_config(&device, *config, [s, t, widths[0], widths[1]]);
            }
        }
    }
    assert!(tried > 1, "{tried} configurations");
}

#[test]
fn axes_lie_in_any_order_and_queries_may_see_only_what_is_before() {
    let order = |axes: &[i64]| AttributeValue::Ints(axes.to_vec());
    for (b, h, kv, s, t) in
        [(2, 4, 2, 37, 71), (1, 1, 1, 9, 200), (1, 2, 1, 0, 3), (1, 2, 1, 20, 0)]
    {
        for causal in [0, 1] {
            if causal == 1 && t < s {
                continue;
            }
            let inputs =
                [random(&[b, s, h, 16], 1), random(&[b, kv, 16, t], 2), random(&[b, t, kv, 16], 3)];
            let attributes = named(&[
                ("scale", AttributeValue::Float(0.4)),
                ("q_perm", order(&[0, 2, 1, 3])),
                ("k_perm", order(&[0, 1, 3, 2])),
                ("v_perm", order(&[0, 2, 1, 3])),
                ("out_perm", order(&[0, 2, 1, 3])),
                ("causal", AttributeValue::Int(causal)),
            ]);
            let what = format!("{b} {h} {kv} {s} {t} causal {causal}");
            check(("ai.galatea", "Attention"), &attributes, &inputs, &what);
        }
    }
}

#[test]
fn masks_hide_keys_and_rows_that_see_none_are_told() {
    let (b, h, s, t) = (2, 2, 20, 70);
    for (shape, lowest) in [
        (vec![b, h, s, t], f32::NEG_INFINITY),
        (vec![b, 1, 1, t], -65_504.0),
        (vec![s, t], f32::NEG_INFINITY),
        (vec![1, h, s, 1], -10_000.0),
    ] {
        let values = noise(shape.iter().product(), 9).into_iter();
        let mut values: Vec<f32> = values.map(|x| if x < -0.6 { lowest } else { x }).collect();
        // Nothing is seen at first, and one row sees nothing at all.
        if shape.len() == 2 {
            values.chunks_mut(t).for_each(|row| row[..40].fill(lowest));
            values[2 * t..3 * t].fill(lowest);
        }
        let mask = halves(&shape, values);
        let inputs =
            [random(&[b, h, s, 16], 1), random(&[b, h, t, 16], 2), random(&[b, h, t, 16], 3), mask];
        for zero in [0, 1] {
            let attributes = named(&[("masked_to_zero", AttributeValue::Int(zero))]);
            let what = format!("{shape:?} {lowest} {zero}");
            check(("ai.galatea", "Attention"), &attributes, &inputs, &what);
        }
    }
}

#[test]
fn the_attention_of_onnx_has_windows_caps_and_masks() {
    let packed = [random(&[2, 20, 64], 1), random(&[2, 70, 32], 2), random(&[2, 70, 32], 3)];
    let bools: Vec<bool> = noise(20 * 66, 5).into_iter().map(|x| x > -0.3).collect();
    let masks =
        [None, Some(random(&[2, 1, 20, 70], 6)), Some(Tensor::from_vec(&[20, 66], bools).unwrap())];
    for mask in masks {
        for (causal, cap, left, right) in
            [(0, 0.0, -1, -1), (1, 0.0, -1, -1), (0, 0.5, 4, 9), (1, 0.0, 3, 2)]
        {
            let int = AttributeValue::Int;
            let attributes = named(&[
                ("is_causal", int(causal)),
                ("softcap", AttributeValue::Float(cap)),
                ("q_num_heads", int(4)),
                ("kv_num_heads", int(2)),
                ("left_window_size", int(left)),
                ("right_window_size", int(right)),
            ]);
            let inputs: Vec<Tensor> = packed.iter().chain(&mask).cloned().collect();
            let what = format!("causal {causal}, cap {cap}, window {left} {right}");
            check(("", "Attention"), &attributes, &inputs, &what);
        }
    }
}
