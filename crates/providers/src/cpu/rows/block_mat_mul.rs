//! Products with weights that stay as a checkpoint stores them until they are packed, and rows of them.

use std::sync::Arc;

use galatea_graph::GALATEA_DOMAIN;
use galatea_graph::blocks::{BlockRow, BlockWeights, CodeMeaning, SuperScales};
use galatea_graph::ops::fused::{BlockGather, BlockMatMul};
use galatea_kernels::blocks::{
    BlockAccuracy, BlockColumn, BlockFormat, BlockGate, BlockProduct, BlockStorage, FactorForm,
    HalfKind, PackedBlocks, StoredShift, gemm_blocks_each, gemm_blocks_gated,
};
use galatea_kernels::{ActivationFunction, GemmEpilogue, StridedMatrix};
use galatea_runtime::Precision;
use galatea_tensor::DataType;

use super::elementwise::fused;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuStep, NodeShapes, WeightBytes, pool};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "block_mat_mul-f32",
        domain: GALATEA_DOMAIN,
        ops: &["BlockMatMul"],
        supports: |view| {
            let op = view.operator::<BlockMatMul>()?;
            let inputs: Vec<usize> = (0..=op.weights().len()).collect();
            view.floats(&inputs)?;
            op.weights().iter().try_for_each(|weights| storage(&**weights).map(|_| ()))?;
            Ok(())
        },
        build: |view| {
            Ok(Box::new(PackedBlockMatrix::new(view.operator::<BlockMatMul>()?, view.precision)?))
        },
    },
    CpuKernelRow {
        name: "block_gather-f32",
        domain: GALATEA_DOMAIN,
        ops: &["BlockGather"],
        supports: |view| view.operator::<BlockGather>().map(|_| ()),
        build: |view| Ok(Box::new(view.operator::<BlockGather>()?.clone())),
    },
];

/// How weights are packed: as small as the checkpoint has them, and exactly.
fn storage(weights: &dyn BlockWeights) -> Result<BlockStorage, String> {
    let of = weights.format();
    let (format, shift) = match of.meaning() {
        CodeMeaning::Zero(zero) => {
            (BlockFormat::new(of.bits(), of.block()), StoredShift::Zero(zero))
        }
        CodeMeaning::Offset => (BlockFormat::new(of.bits(), of.block()), StoredShift::Offsets),
        CodeMeaning::Table(table) => {
            let whole = table_of(table).ok_or("a table whose entries are no bytes")?;
            (BlockFormat::with_table(whole.entries, of.block()), StoredShift::Zero(0.0))
        }
        CodeMeaning::Float(DataType::Fp16) => {
            (Some(BlockFormat::halves(HalfKind::Fp16)), StoredShift::Zero(0.0))
        }
        CodeMeaning::Float(DataType::Bf16) => {
            (Some(BlockFormat::halves(HalfKind::Bf16)), StoredShift::Zero(0.0))
        }
        CodeMeaning::Float(other) => return Err(format!("floats of {other}")),
    };
    let format = format.ok_or_else(|| format!("{} bits in blocks of {}", of.bits(), of.block()))?;
    let factors = match (weights.superblock(), weights.factors()) {
        (Some(superblock), _) => FactorForm::Nested(superblock),
        (None, DataType::Fp16) => FactorForm::Fp16,
        (None, DataType::Bf16) => FactorForm::Bf16,
        _ => FactorForm::Fp32,
    };
    Ok(BlockStorage { format, factors, shift })
}

/// The entries of a table as bytes, and what they were multiplied by to become whole.
struct ByteTable {
    entries: [i8; 16],
    times: f32,
}

#[allow(clippy::cast_possible_truncation, reason = "compared with what it came from")]
fn table_of(table: &[f32; 16]) -> Option<ByteTable> {
    [1.0, 2.0, 4.0, 8.0, 16.0].into_iter().find_map(|times| {
        let entries = table.map(|entry| (entry * times) as i8);
        let exact = entries.iter().zip(table).all(|(&a, &b)| f32::from(a) == b * times);
        exact.then_some(ByteTable { entries, times })
    })
}

/// Packs a matrix.
fn pack(weights: &dyn BlockWeights) -> Result<PackedBlocks, String> {
    let storage = storage(weights)?;
    let times = match weights.format().meaning() {
        CodeMeaning::Table(table) => table_of(table).map_or(1.0, |table| table.times),
        _ => 1.0,
    };
    PackedBlocks::pack_columns(&pool(0), storage, weights.columns(), weights.rows(), |row, to| {
        let BlockColumn { numbers: codes, scales, shifts, super_scales, super_shifts } = to;
        weights.unpack_row(row, BlockRow { codes, scales: &mut *scales, offsets: shifts })?;
        if !super_scales.is_empty() {
            let all = SuperScales { scales: super_scales, offsets: super_shifts };
            weights.super_scales(row, all)?;
        }
        if times != 1.0 {
            scales.iter_mut().for_each(|scale| *scale /= times);
        }
        Ok(())
    })
    .map_err(|error: galatea_graph::OpError| error.to_string())
}

struct PackedBlockMatrix {
    all: Arc<Vec<PackedBlocks>>,
    gate: Option<ActivationFunction>,
    accuracy: BlockAccuracy,
}

impl PackedBlockMatrix {
    fn new(op: &BlockMatMul, precision: Precision) -> Result<Self, String> {
        let all = op.weights().iter().map(|weights| pack(&**weights)).collect::<Result<_, _>>()?;
        let gate = op.gate().map(fused);
        // Fewer bits of the rows are also for those who ask for speed.
        let reduced = op.rounds_rows() || precision == Precision::Bf16;
        let accuracy = if reduced { BlockAccuracy::Reduced } else { BlockAccuracy::Full };
        Ok(Self { all: Arc::new(all), gate, accuracy })
    }
}

impl CpuKernel for PackedBlockMatrix {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let k = self.all.first().map_or(0, PackedBlocks::k);
        let m: usize = match shapes.input(0)?.split_last() {
            Some((&columns, lead)) if columns == k => lead.iter().product(),
            _ => return Err(format!("input 0 has shape {:?} for {k} rows", shapes.input(0)?)),
        };
        let all = Arc::clone(&self.all);
        let accuracy = self.accuracy;
        if let Some(activation) = self.gate {
            return Ok(CpuStep::new(move |call| {
                let a = call.input::<f32>(0)?;
                let mut c = call.output::<f32>(0)?;
                if let [matrix, b] = &all[..] {
                    let a = StridedMatrix::new(a, k);
                    let gate = BlockGate { matrix, activation };
                    let c = StridedMatrix::new(c.slice(), b.n());
                    gemm_blocks_gated(call.exec, m, a, gate, b, c, accuracy);
                }
                Ok(())
            }));
        }
        Ok(CpuStep::new(move |call| {
            let a = call.input::<f32>(0)?;
            let mut outputs =
                (0..all.len()).map(|at| call.output::<f32>(at)).collect::<Result<Vec<_>, _>>()?;
            let mut products = Vec::with_capacity(all.len());
            for (at, (b, c)) in all.iter().zip(&mut outputs).enumerate() {
                let bias = call.optional::<f32>(at + 1)?;
                let epilogue = GemmEpilogue { bias, ..GemmEpilogue::default() };
                products.push(BlockProduct { b, c: c.slice(), ldc: b.n(), epilogue });
            }
            let a = StridedMatrix::new(a, k);
            gemm_blocks_each(call.exec, m, a, &mut products, accuracy);
            Ok(())
        }))
    }

    fn weight_bytes(&self) -> WeightBytes {
        WeightBytes::new(self.all.iter().map(PackedBlocks::size_bytes).sum(), false)
    }
}

impl CpuKernel for BlockGather {
    fn bind(&self, _: &NodeShapes) -> Result<CpuStep, String> {
        let this = self.clone();
        Ok(CpuStep::new(move |call| {
            let indices = call.input::<i64>(0)?;
            let mut y = call.output::<f32>(0)?;
            this.rows(indices, y.slice())
        }))
    }
}
