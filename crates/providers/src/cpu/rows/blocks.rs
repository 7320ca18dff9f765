//! Products with weights of few bits, which stay packed.

use std::sync::Arc;

use galatea_graph::ops::contrib::MatMulNBits;
use galatea_kernels::blocks::{BlockAccuracy, BlockFormat, PackedBlocks, StoredZeros, gemm_blocks};
use galatea_kernels::{GemmEpilogue, MatrixSize, StridedMatrix};
use galatea_runtime::Precision;

use super::CONTRIB_DOMAIN;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, WeightBytes, pool};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[CpuKernelRow {
    name: "matmul_n_bits-f32",
    domain: CONTRIB_DOMAIN,
    ops: &["MatMulNBits"],
    supports: |view| {
        view.floats(&[0, 2, 5])?;
        let op = view.operator::<MatMulNBits>()?;
        format(op)?;
        for index in (1..=3).filter(|&index| view.has(index)) {
            view.constant(index).ok_or_else(|| format!("input {index} is no constant"))?;
        }
        if view.has(4) {
            return Err("positions that name their blocks".into());
        }
        Ok(())
    },
    build: |view| Ok(Box::new(BlocksKernel::new(view, view.operator::<MatMulNBits>()?)?)),
}];

fn format(op: &MatMulNBits) -> Result<BlockFormat, String> {
    BlockFormat::new(op.bits, op.block_size)
        .ok_or_else(|| format!("{} bits in blocks of {}", op.bits, op.block_size))
}

/// The numbers of a row of packed bytes.
fn number(row: &[u8], bits: u32, at: usize) -> u8 {
    let per_byte = 8 / bits as usize;
    row[at / per_byte] >> (at % per_byte * bits as usize) & (u8::MAX >> (8 - bits))
}

struct BlocksKernel {
    packed: Arc<PackedBlocks>,
    accuracy: BlockAccuracy,
}

impl BlocksKernel {
    fn new(view: &CpuNodeView<'_>, op: &MatMulNBits) -> Result<Self, String> {
        let format = format(op)?;
        let bits = op.bits;
        let blocks = op.k.div_ceil(op.block_size);
        let row = blocks * op.block_size * bits as usize / 8;
        let constant = |index: usize| -> Result<Vec<u8>, String> {
            let tensor = view.constant(index).ok_or("the weights are no constant")?;
            tensor.to_vec::<u8>().map_err(|error| error.to_string())
        };
        let bytes = constant(1)?;
        let scales = view.constant_floats(2)?;
        if bytes.len() != op.n * row || scales.len() != op.n * blocks {
            return Err(format!("{} bytes and {} scales for {op:?}", bytes.len(), scales.len()));
        }
        let points = match view.constant(3).filter(|_| view.has(3)) {
            None => None,
            Some(tensor) if tensor.dtype().is_float() => Some(view.constant_floats(3)?),
            Some(_) => {
                let all = constant(3)?;
                let row = (blocks * bits as usize).div_ceil(8);
                if all.len() != op.n * row {
                    return Err(format!("{} bytes of zero points for {op:?}", all.len()));
                }
                let of = |at: usize| number(&all[at / blocks * row..], bits, at % blocks).into();
                Some((0..op.n * blocks).map(of).collect())
            }
        };
        let zeros = match &points {
            Some(all) if all.len() != scales.len() => {
                return Err(format!("{} zero points for {op:?}", all.len()));
            }
            Some(all) => StoredZeros::Each(all),
            None => StoredZeros::One((1_u32 << (bits - 1)) as f32),
        };
        let at = |i: usize, j: usize| number(&bytes[j * row..], bits, i);
        let size = MatrixSize { rows: op.k, columns: op.n };
        let packed = PackedBlocks::pack(&pool(0), format, size, at, &scales, zeros);
        // Fewer bits of the rows are for those who ask for speed.
        let reduced = view.precision == Precision::Bf16;
        let accuracy = if reduced { BlockAccuracy::Reduced } else { BlockAccuracy::Full };
        Ok(Self { packed: Arc::new(packed), accuracy })
    }
}

impl CpuKernel for BlocksKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let k = self.packed.k();
        let n = self.packed.n();
        let m: usize = match shapes.input(0)?.split_last() {
            Some((&columns, lead)) if columns == k => lead.iter().product(),
            _ => return Err(format!("input 0 has shape {:?} for {k} rows", shapes.input(0)?)),
        };
        if let Ok(bias) = shapes.input(5)
            && *bias != [n]
        {
            return Err(format!("a bias of shape {bias:?}"));
        }
        let packed = Arc::clone(&self.packed);
        let accuracy = self.accuracy;
        let step = CpuStep::new(move |call| {
            let a = call.input::<f32>(0)?;
            let bias = call.optional::<f32>(5)?;
            let epilogue = GemmEpilogue { bias, ..GemmEpilogue::default() };
            let mut c = call.output::<f32>(0)?;
            let a = StridedMatrix::new(a, k);
            let c = StridedMatrix::new(c.slice(), n);
            gemm_blocks(call.exec, m, a, &packed, c, &epilogue, accuracy);
            Ok(())
        });
        Ok(step.without(&[1, 2, 3]))
    }

    fn weight_bytes(&self) -> WeightBytes {
        WeightBytes::new(self.packed.size_bytes(), false)
    }
}
