//! Steps whose inputs and results are known: those of specimens, and of variants without weights of their own.

use std::sync::Arc;

use galatea_gpu::GpuDevice;
use galatea_gpu::matmul::{MatMulVariant, TransposedOperands};
use galatea_graph::ops::fused::PagedAttention;
use galatea_graph::{AttributeValue, Attributes};
use galatea_runtime::Precision;
use galatea_tensor::{DataType, Tensor, bf16, f16};

use crate::computed::TextCase;
use crate::support::node::{Node, floats};
use crate::{specimens, variants};

/// Every case.
pub(crate) fn all(device: &Arc<GpuDevice>) -> Vec<TextCase> {
    let mut all = Vec::new();
    for specimens::Specimen { node, .. } in
        specimens::all().into_iter().chain(specimens::composed())
    {
        all.extend(of_specimen(device, &node, Precision::Fp32));
        all.extend(of_specimen(device, &node, Precision::Fp16));
        all.extend(of_specimen(device, &node.narrowed(), Precision::Fp16));
    }
    products(device, &mut all);
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
