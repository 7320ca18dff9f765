//! Steps whose inputs and results are known: those of specimens, and of variants without weights of their own.

use std::sync::Arc;

use galatea_gpu::blocks;
use galatea_gpu::conv::GpuConvKernel;
use galatea_gpu::matmul::{MatMulVariant, TransposedOperands};
use galatea_gpu::{DispatchStep, GpuDevice, GpuKernel};
use galatea_graph::ops::fused::{BlockGather, BlockMatMul, PagedAttention};
use galatea_graph::{AttributeValue, Attributes, Operator};
use galatea_runtime::Precision;
use galatea_tensor::{DataType, Tensor, bf16, f16};

use crate::computed::TextCase;
use crate::support::node::{Node, floats};
use crate::{specimens, variants};

/// Every case.
pub(crate) fn all(device: &Arc<GpuDevice>) -> Vec<TextCase> {
    let mut all = Vec::new();
    for specimens::Specimen { node, family } in
        specimens::all().into_iter().chain(specimens::composed())
    {
        let cases = [
            of_specimen(device, &node, Precision::Fp32),
            of_specimen(device, &node, Precision::Fp16),
            of_specimen(device, &node.narrowed(), Precision::Fp16),
            (family == "quantise").then(|| of_halves(device, &node)).flatten(),
        ];
        // Each operator on elements has texts of its own.
        let own = |case: TextCase| if family == "elementwise" { case.whole() } else { case };
        all.extend(cases.into_iter().flatten().map(own));
    }
    products(device, &mut all);
    few_bits(device, &mut all);
    convolutions(device, &mut all);
    for cache in [DataType::Fp32, DataType::Fp16, DataType::Bf16, DataType::Int8] {
        for rows in [DataType::Fp32, DataType::Fp16] {
            for precision in [Precision::Fp32, Precision::Fp16] {
                let case = |sizes: &PagedLengths| sizes.case(device, [cache, rows], precision);
                all.extend(PAGED.iter().filter_map(case));
            }
        }
    }
    all
}

fn given(node: &Node) -> (galatea_graph::Graph, Vec<Tensor>) {
    let (graph, fed) = node.graph(false);
    (graph, fed.into_iter().map(|(_, tensor)| tensor).collect())
}

fn of_specimen(device: &Arc<GpuDevice>, node: &Node, precision: Precision) -> Option<TextCase> {
    let (graph, given) = given(node);
    TextCase::of_node(device, &graph, &given, precision)
}

fn of_halves(device: &Arc<GpuDevice>, node: &Node) -> Option<TextCase> {
    let (graph, given) = given(node);
    TextCase::of_halves(device, &graph, &given)
}

/// Formats of few bits whose texts are kept, and one of floats.
const FORMATS: &[&str] = &["q4_0", "q6_k", "f16"];

/// Products with matrices of few bits, with what may be added, and rows of these matrices.
fn few_bits(device: &Arc<GpuDevice>, all: &mut Vec<TextCase>) {
    for name in FORMATS {
        let at = variants::number(name);
        let weights = variants::made(72, 512, at);
        for rows in [1, 5, 40] {
            let x = floats(&[rows, 512], 1.0);
            let op = BlockMatMul::new(vec![Arc::clone(&weights)]).unwrap();
            of_operator(device, "BlockMatMul", Arc::new(op), &[x], all);
        }
        let op = BlockGather::new(weights);
        let rows = Tensor::vector(vec![3_i64, 0, 71]);
        of_operator(device, "BlockGather", Arc::new(op), &[rows], all);
    }
    for (at, rows, choice) in variants::choices(device) {
        let op = BlockMatMul::new(vec![variants::made(72, 512, at)]).unwrap();
        let kernel = blocks::kernel(device, &op, Precision::Fp32, choice).unwrap();
        let x = floats(&[rows, 512], 1.0);
        let of =
            variants::shapes(&[(DataType::Fp32, &[rows, 512])], &[(DataType::Fp32, &[rows, 72])]);
        let mut step = DispatchStep::default();
        kernel.bind(&of, &mut step).unwrap();
        let graph = variants::graph_of("BlockMatMul", Arc::new(op), std::slice::from_ref(&x), 1);
        // Sums of FP16 weights in another order.
        let case = TextCase::of_step(&step, &graph, &[x], Precision::Fp32);
        all.extend(case.map(|case| case.within(HALF_SUMS)));
    }
}

/// Distance of products whose factors are rounded to FP16 on the way.
const HALF_SUMS: f64 = 4e-3;

/// Cases of an operator of the house, in both precisions and with floats that are stored as FP16.
fn of_operator(
    device: &Arc<GpuDevice>,
    name: &str,
    operator: Arc<dyn Operator>,
    given: &[Tensor],
    all: &mut Vec<TextCase>,
) {
    let graph = variants::graph_of(name, operator, given, 1);
    for precision in [Precision::Fp32, Precision::Fp16] {
        let case = TextCase::of_node(device, &graph, given, precision);
        all.extend(case.map(|case| case.within(HALF_SUMS)));
    }
    all.extend(TextCase::of_halves(device, &graph, given));
}

/// Distance of convolutions that are computed of transformed tiles, and of those with FP16 in between.
const TRANSFORMED: f64 = 1e-3;
const TRANSFORMED_HALVES: f64 = 5e-2;

/// Convolutions of windows of 3 × 3, in every way.
fn convolutions(device: &Arc<GpuDevice>, all: &mut Vec<TextCase>) {
    for precision in [Precision::Fp32, Precision::Fp16] {
        let halves = precision == Precision::Fp16;
        let dtype = if halves { DataType::Fp16 } else { DataType::Fp32 };
        let [x, weights] = variants::CONVOLVED.map(|shape| stored(&floats(&shape, 1.0), dtype));
        let result = variants::CONVOLUTION_RESULT;
        let of =
            variants::shapes(&[(dtype, x.shape()), (dtype, weights.shape())], &[(dtype, &result)]);
        let fused = variants::convolution();
        let given = [x, weights];
        let graph = variants::graph_of("FusedConv", Arc::new(fused.clone()), &given, 1);
        let kernel = || GpuConvKernel::new(&fused, &given[1], device, precision);
        for (way, _) in kernel().ways(&of).unwrap() {
            let mut step = DispatchStep::default();
            kernel().forcing(way).bind(&of, &mut step).unwrap();
            let case = TextCase::of_step(&step, &graph, &given, precision);
            let distance = if halves { TRANSFORMED_HALVES } else { TRANSFORMED };
            let transformed =
                step.dispatches().iter().any(|one| one.shader.name.contains("winograd"));
            all.extend(case.map(|case| if transformed { case.within(distance) } else { case }));
        }
    }
}

/// Products of every variant.
fn products(device: &Arc<GpuDevice>, all: &mut Vec<TextCase>) {
    let capabilities = device.capabilities();
    for precision in [Precision::Fp32, Precision::Fp16] {
        for turned in [false, true] {
            for [m, n, k] in [[36, 96, 64], [37, 75, 35], [3, 96, 64], [3, 75, 35]] {
                let b = if turned { [n, k] } else { [k, n] };
                let turn = Attributes::from_iter([(
                    "transB".to_owned(),
                    AttributeValue::Int(i64::from(turned)),
                )]);
                let node = Node::new("", "Gemm").with(turn);
                let node = node.input(floats(&[m, k], 1.0)).input(floats(&b, 1.0));
                let halves = precision == Precision::Fp16;
                let node = if halves { node.narrowed() } else { node };
                let dtype = if halves { DataType::Fp16 } else { DataType::Fp32 };
                let of = variants::shapes(&[(dtype, &[m, k]), (dtype, &b)], &[(dtype, &[m, n])]);
                let turns = TransposedOperands { b: turned, ..TransposedOperands::default() };
                let variants = match m {
                    3 => MatMulVariant::few(&of, turns, capabilities).unwrap(),
                    _ => MatMulVariant::all(capabilities),
                };
                let (graph, given) = given(&node);
                let case = |variant: MatMulVariant| {
                    let step = variant.step(&of, turns, capabilities).unwrap();
                    TextCase::of_step(&step, &graph, &given, precision)
                };
                all.extend(variants.into_iter().filter_map(case));
            }
        }
    }
}

/// Lengths of attention of one sequence over a cache.
struct PagedLengths {
    /// New rows, and positions before them.
    rows: usize,
    before: usize,
    /// Elements of a key and of a value.
    width: usize,
    /// Positions of a block, and blocks.
    block: usize,
    blocks: usize,
}

/// Rows by themselves and in tiles, with whole vectors and without, and few positions and many.
const PAGED: &[PagedLengths] = &[
    PagedLengths { rows: 2, before: 41, width: 64, block: 16, blocks: 8 },
    PagedLengths { rows: 2, before: 900, width: 64, block: 16, blocks: 300 },
    PagedLengths { rows: 70, before: 9, width: 64, block: 16, blocks: 8 },
    PagedLengths { rows: 2, before: 20, width: 33, block: 5, blocks: 8 },
    PagedLengths { rows: 70, before: 9, width: 33, block: 5, blocks: 20 },
];

/// Heads of queries, and of keys and values.
const HEADS: [usize; 2] = [4, 2];

impl PagedLengths {
    /// The case of these types of the cache and of rows.
    fn case(
        &self,
        device: &Arc<GpuDevice>,
        types: [DataType; 2],
        precision: Precision,
    ) -> Option<TextCase> {
        let [cache, rows] = types;
        let [heads, shared] = HEADS;
        let Self { width, block, blocks, .. } = *self;
        let op = PagedAttention {
            num_heads: heads,
            kv_num_heads: shared,
            scale: None,
            window: 0,
            softcap: 0.0,
        };
        let row = |heads: usize| stored(&floats(&[self.rows, heads * width], 1.0), rows);
        let integer = |length: usize| i64::try_from(length).unwrap();
        let table = (0..integer(blocks)).rev().collect::<Vec<i64>>();
        let mut inputs = vec![
            row(heads),
            row(shared),
            row(shared),
            stored(&floats(&[blocks, shared, width, block], 1.0), cache),
            stored(&floats(&[blocks, shared, block, width], 1.0), cache),
            Tensor::vector(vec![0, integer(self.rows)]),
            Tensor::vector(vec![integer(self.rows + self.before)]),
            Tensor::from_vec(&[1, blocks], table).unwrap(),
        ];
        let bytes = cache == DataType::Int8;
        if bytes {
            let scales = Tensor::from_vec(
                &[blocks, shared, block],
                vec![1.0_f32 / 127.0; blocks * shared * block],
            );
            inputs.extend([scales.clone().unwrap(), scales.unwrap()]);
        }
        let outputs = if bytes { 5 } else { 3 };
        let graph = variants::graph_of("PagedAttention", Arc::new(op), &inputs, outputs);
        let case = TextCase::of_node(device, &graph, &inputs, precision)?;
        Some(if bytes { case.of_bytes() } else { case })
    }
}

/// Floats between -1 and 1 in another type; bytes are their 127th parts.
fn stored(tensor: &Tensor, dtype: DataType) -> Tensor {
    let all = tensor.to_vec::<f32>().unwrap().into_iter();
    let shape = tensor.shape();
    let made = match dtype {
        DataType::Fp16 => Tensor::from_vec(shape, all.map(f16::from_f32).collect()),
        DataType::Bf16 => Tensor::from_vec(shape, all.map(bf16::from_f32).collect()),
        #[allow(clippy::cast_possible_truncation, reason = "bytes")]
        DataType::Int8 => Tensor::from_vec(shape, all.map(|value| (value * 127.0) as i8).collect()),
        _ => Tensor::from_vec(shape, all.collect()),
    };
    made.unwrap()
}
