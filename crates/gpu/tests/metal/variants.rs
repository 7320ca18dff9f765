//! Variants of kernels that no length of a specimen selects: every configuration that a tuner may choose, every
//! quantized format, every type of cache.

use std::sync::Arc;

use galatea_gpu::attention::{
    DenseAttentionMethod, FLASH_CONFIGS, PAGED_CONFIGS, PagedSizes, TILES_CONFIGS, paged, whole,
};
use galatea_gpu::blocks::{self, BlockKernelChoice, GEMV_CONFIGS, TILED_CONFIGS};
use galatea_gpu::conv::GpuConvKernel;
use galatea_gpu::matmul::{MatMulVariant, TransposedOperands};
use galatea_gpu::{DispatchStep, GpuDevice, GpuKernel, StepTrial};
use galatea_graph::blocks::BlockWeights;
use galatea_graph::ops::convolution::{Conv, FusedConv, WindowPadding};
use galatea_graph::ops::fused::{
    BlockGather, BlockMatMul, FusedActivation, FusedAttention, PagedAttention, RotaryPair,
};
use galatea_graph::ops::transformer::RotaryEmbedding;
use galatea_graph::{Dim, Fact, GALATEA_DOMAIN, Graph, Operator};
use galatea_runtime::Precision;
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_tensor::{DataType, Tensor};

use crate::Subject;
use crate::matrices::{Made, formats};

const TYPES: [DataType; 2] = [DataType::Fp32, DataType::Fp16];

/// Shapes of inputs and outputs.
pub(crate) type Lens<'a> = &'a [(DataType, &'a [usize])];

pub(crate) fn shapes(inputs: Lens, outputs: Lens) -> NodeShapes {
    let all = |list: Lens| {
        list.iter().map(|(dtype, shape)| Some(ValueShape::new(*dtype, shape.to_vec()))).collect()
    };
    NodeShapes { inputs: all(inputs), outputs: all(outputs), constants: vec![None; inputs.len()] }
}

/// Has the shaders of a step compiled.
fn compile(device: &Arc<GpuDevice>, step: &DispatchStep, shapes: &NodeShapes) {
    let bytes = |of: &Option<ValueShape>| {
        let ValueShape { dtype, shape } = of.as_ref().unwrap();
        shape.iter().product::<usize>() * dtype.size_bytes().unwrap()
    };
    let inputs: Vec<Vec<u8>> = shapes.inputs.iter().map(|of| vec![0; bytes(of)]).collect();
    let inputs: Vec<Option<&[u8]>> = inputs.iter().map(|bytes| Some(&bytes[..])).collect();
    let outputs: Vec<u64> = shapes.outputs.iter().map(|of| bytes(of) as u64 + 16).collect();
    StepTrial::new(device, step, &inputs, &outputs, 1).unwrap();
}

fn bound(device: &Arc<GpuDevice>, kernel: &dyn GpuKernel, shapes: &NodeShapes) {
    let mut step = DispatchStep::default();
    kernel.bind(shapes, &mut step).unwrap();
    compile(device, &step, shapes);
}

/// Products of dense matrices.
pub(crate) fn products(device: &Arc<GpuDevice>) {
    let capabilities = device.capabilities();
    let types = |dtype: &DataType| *dtype == DataType::Fp32 || capabilities.f16;
    for dtype in TYPES.into_iter().filter(types) {
        for (turned, lens) in [(false, [36, 96, 64]), (true, [36, 96, 64]), (false, [37, 75, 35])] {
            let [m, n, k] = lens;
            let b = if turned { [n, k] } else { [k, n] };
            let turns = TransposedOperands { b: turned, ..TransposedOperands::default() };
            let of = shapes(&[(dtype, &[m, k]), (dtype, &b)], &[(dtype, &[m, n])]);
            for variant in MatMulVariant::all(capabilities) {
                compile(device, &variant.step(&of, turns, capabilities).unwrap(), &of);
            }
            let of = shapes(&[(dtype, &[3, k]), (dtype, &b)], &[(dtype, &[3, n])]);
            for variant in MatMulVariant::few(&of, turns, capabilities).unwrap() {
                compile(device, &variant.step(&of, turns, capabilities).unwrap(), &of);
            }
        }
    }
}

/// A format's number.
pub(crate) fn number(name: &str) -> usize {
    formats().iter().position(|(own, ..)| *own == name).unwrap()
}

pub(crate) fn made(rows: usize, columns: usize, at: usize) -> Arc<dyn BlockWeights> {
    let (_, format, scales) = formats()[at];
    Arc::new(Made { rows, columns, format, scales, seed: 1, at: None })
}

/// Makes a graph of one operator of the house.
pub(crate) fn graph_of(
    op: &str,
    operator: Arc<dyn Operator>,
    inputs: &[Tensor],
    outputs: usize,
) -> Graph {
    let mut graph = Graph::new("specimen");
    graph.opsets.insert(GALATEA_DOMAIN.into(), 1);
    for (at, input) in inputs.iter().enumerate() {
        let id = graph.value_named(&format!("x{at}"));
        let dims = input.shape().iter().map(|&length| Dim::Known(length)).collect();
        graph.value_mut(id).declared = Some(Fact::new(input.dtype(), dims));
        graph.inputs.push(id);
    }
    let given = graph.inputs.iter().copied().map(Some).collect();
    let results: Vec<_> = (0..outputs).map(|at| graph.value_named(&format!("y{at}"))).collect();
    graph.outputs.clone_from(&results);
    let results = results.into_iter().map(Some).collect();
    graph.add_operator(GALATEA_DOMAIN, op, operator, given, results);
    graph
}

/// Runs an operator of the house in a session, in both precisions.
fn run(
    subject: &mut Subject<'_>,
    op: &str,
    operator: Arc<dyn Operator>,
    inputs: &[Tensor],
    outputs: usize,
) {
    let graph = graph_of(op, operator, inputs, outputs);
    for precision in [Precision::Fp32, Precision::Fp16] {
        subject.run(&graph, inputs.to_vec(), precision).unwrap();
    }
}

/// Products with matrices of few bits, and rows of these.
pub(crate) fn few_bits(subject: &mut Subject<'_>) {
    for at in 0..formats().len() {
        let weights = made(72, 512, at);
        for rows in [1, 5, 40] {
            let x = Tensor::zeros(DataType::Fp32, &[rows, 512]).unwrap();
            let one = BlockMatMul::new(vec![Arc::clone(&weights)]).unwrap();
            run(subject, "BlockMatMul", Arc::new(one), std::slice::from_ref(&x), 1);
            if at == number("q4_0") {
                let two = [Arc::clone(&weights), made(72, 512, at)];
                let gated = BlockMatMul::gated(two, FusedActivation::Silu).unwrap();
                run(subject, "BlockMatMul", Arc::new(gated), std::slice::from_ref(&x), 1);
                let zeros = |shape: &[usize]| Tensor::zeros(DataType::Fp32, shape).unwrap();
                let more = BlockMatMul::new(vec![Arc::clone(&weights)]).unwrap();
                let inputs = [x, zeros(&[72]), zeros(&[rows, 72])];
                run(subject, "BlockMatMul", Arc::new(more), &inputs, 1);
            }
        }
        let gather = BlockGather::new(weights);
        run(subject, "BlockGather", Arc::new(gather), &[Tensor::vector(vec![3_i64, 0])], 1);
    }
    let device = subject.device;
    for (at, rows, choice) in choices(device) {
        let op = BlockMatMul::new(vec![made(72, 512, at)]).unwrap();
        let kernel = blocks::kernel(device, &op, Precision::Fp32, choice).unwrap();
        let of = shapes(&[(DataType::Fp32, &[rows, 512])], &[(DataType::Fp32, &[rows, 72])]);
        bound(device, &kernel, &of);
    }
}

/// Formats by number, rows, and what is chosen for them.
pub(crate) fn choices(device: &GpuDevice) -> Vec<(usize, usize, BlockKernelChoice)> {
    let mut all = Vec::new();
    for name in ["q4_0", "f16"] {
        let at = number(name);
        for config in GEMV_CONFIGS.iter().filter(|one| one.is_valid(device.capabilities())) {
            let choice = BlockKernelChoice {
                gemv: Some(*config),
                many: Some(usize::MAX),
                ..BlockKernelChoice::default()
            };
            all.push((at, 3, choice));
        }
        for config in TILED_CONFIGS.iter().filter(|one| one.is_valid(device.capabilities())) {
            let choice = BlockKernelChoice {
                tiled: Some(*config),
                many: Some(0),
                ..BlockKernelChoice::default()
            };
            all.push((at, 37, choice));
        }
    }
    all
}

/// Queries and keys that turn at once.
pub(crate) fn rotations(subject: &mut Subject<'_>) {
    let turn = |heads: usize| RotaryEmbedding {
        interleaved: false,
        rotary_dim: 0,
        num_heads: Some(heads),
    };
    let zeros = |shape: &[usize]| Tensor::zeros(DataType::Fp32, shape).unwrap();
    let op = Arc::new(RotaryPair { first: turn(5), second: turn(2) });
    let positions = Tensor::zeros(DataType::Int64, &[1, 3]).unwrap();
    let tables = [zeros(&[10, 4]), zeros(&[10, 4])];
    let [cosines, sines] = tables;
    let inputs = [zeros(&[1, 3, 40]), cosines, sines, positions, zeros(&[1, 3, 16])];
    run(subject, "RotaryPair", op, &inputs, 2);
}

/// Attention of every configuration, and over caches of every type.
pub(crate) fn attention(subject: &mut Subject<'_>) {
    let device = subject.device;
    let capabilities = device.capabilities();
    let plain = || FusedAttention {
        scale: 1.0,
        q_perm: FusedAttention::IN_ORDER,
        k_perm: FusedAttention::IN_ORDER,
        v_perm: FusedAttention::IN_ORDER,
        out_perm: FusedAttention::IN_ORDER,
        masked_to_zero: false,
        causal: true,
    };
    for width in [64, 128] {
        let of = |dtype| {
            let (q, k) = ((dtype, &[1, 2, 64, width][..]), (dtype, &[1, 1, 128, width][..]));
            shapes(&[q, k, k], &[(dtype, &[1, 2, 64, width])])
        };
        for config in TILES_CONFIGS {
            bound(
                device,
                &*whole(device, plain(), DenseAttentionMethod::Tiles(*config)),
                &of(DataType::Fp32),
            );
        }
        for config in FLASH_CONFIGS.iter().filter(|one| one.fits(capabilities, [width; 2])) {
            bound(
                device,
                &*whole(device, plain(), DenseAttentionMethod::Flash(*config)),
                &of(DataType::Fp16),
            );
        }
    }
    let caches = [DataType::Fp32, DataType::Fp16, DataType::Bf16, DataType::Int8];
    let rows = |dtype: &DataType| *dtype == DataType::Fp32 || capabilities.f16;
    for cache in caches {
        for rows in TYPES.into_iter().filter(rows) {
            // Rows by themselves and in tiles, with whole vectors and without, and few positions and many.
            for sizes in
                [(2, 64, 16, 8), (2, 64, 16, 300), (70, 64, 16, 8), (2, 33, 5, 8), (70, 33, 5, 8)]
            {
                caches_of(subject, cache, rows, sizes);
            }
        }
    }
}

/// Attention of rows over caches: rows, lengths of keys and values, positions of a block, and blocks.
fn caches_of(
    subject: &mut Subject<'_>,
    cache: DataType,
    dtype: DataType,
    (rows, width, block, most): (usize, usize, usize, usize),
) {
    let op = PagedAttention { num_heads: 4, kv_num_heads: 2, scale: None, window: 0, softcap: 0.0 };
    let keys = (cache, &[most, 2, width, block][..]);
    let values = (cache, &[most, 2, block, width][..]);
    let scales = (DataType::Fp32, &[most, 2, block][..]);
    let mut inputs = vec![(dtype, vec![rows, 4 * width])];
    inputs.extend([(dtype, vec![rows, 2 * width]), (dtype, vec![rows, 2 * width])]);
    let mut inputs: Vec<(DataType, &[usize])> = inputs.iter().map(|(t, s)| (*t, &s[..])).collect();
    let (starts, lengths, table) = ([2], [1], [1, most]);
    inputs.extend([keys, values, (DataType::Int64, &starts), (DataType::Int64, &lengths)]);
    inputs.push((DataType::Int64, &table));
    let result = [rows, 4 * width];
    let mut outputs = vec![(dtype, &result[..]), keys, values];
    if cache == DataType::Int8 {
        inputs.extend([scales, scales]);
        outputs.extend([scales, scales]);
    }
    let of = shapes(&inputs, &outputs);
    let given = inputs.iter().map(|(dtype, shape)| Tensor::zeros(*dtype, shape).unwrap());
    let given: Vec<Tensor> = given.collect();
    run(subject, "PagedAttention", Arc::new(op), &given, outputs.len());
    let device = subject.device;
    let sizes = PagedSizes { shared_heads: 2, key_width: width, value_width: width };
    for config in PAGED_CONFIGS.iter().filter(|one| one.fits(device.capabilities(), &sizes)) {
        bound(device, &*paged(device, op, *config), &of);
    }
}

/// Shapes of an image and of the windows of a convolution, and of its result.
pub(crate) const CONVOLVED: [[usize; 4]; 2] = [[1, 16, 32, 32], [128, 16, 3, 3]];
pub(crate) const CONVOLUTION_RESULT: [usize; 4] = [1, 128, 32, 32];

/// A convolution of windows of 3 × 3.
pub(crate) fn convolution() -> FusedConv {
    let conv = Conv {
        kernel_shape: None,
        strides: Vec::new(),
        dilations: Vec::new(),
        pads: WindowPadding::Explicit(vec![1; 4]),
        group: 1,
        channels_last: false,
    };
    FusedConv { conv, activation: FusedActivation::None }
}

/// Convolutions of windows of 3 × 3, in every way.
pub(crate) fn convolutions(device: &Arc<GpuDevice>) {
    let fused = convolution();
    let halves = device.capabilities().f16;
    for dtype in TYPES.into_iter().filter(|dtype| *dtype == DataType::Fp32 || halves) {
        let precision = if dtype == DataType::Fp16 { Precision::Fp16 } else { Precision::Fp32 };
        let [image, windows] = CONVOLVED;
        let bytes = vec![0; windows.iter().product::<usize>() * dtype.size_bytes().unwrap()];
        let weights = Tensor::from_bytes(dtype, &windows, &bytes).unwrap();
        let of = shapes(&[(dtype, &image), (dtype, &windows)], &[(dtype, &CONVOLUTION_RESULT)]);
        let kernel = || GpuConvKernel::new(&fused, &weights, device, precision);
        for (way, _) in kernel().ways(&of).unwrap() {
            bound(device, &kernel().forcing(way), &of);
        }
    }
}
