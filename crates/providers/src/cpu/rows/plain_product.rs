//! Matrix products of FP64 and of integers.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::matrix::MatMul;
use galatea_kernels::ProductSize;
use galatea_kernels::plain_product::{PlainElement, multiply_plain};
use galatea_tensor::{DataType, Element};

use super::batched::batch_offsets;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[CpuKernelRow {
    name: "matmul-plain",
    domain: ONNX_DOMAIN,
    ops: &["MatMul"],
    supports: |view| match view.input(0).map(|fact| fact.dtype) {
        Some(dtype) if is_plain(dtype) => Ok(()),
        other => Err(format!("the kernel takes FP64 and long integers, not {other:?}")),
    },
    build: |view| view.operator::<MatMul>().map(|_| Box::new(PlainProduct) as Box<dyn CpuKernel>),
}];

fn is_plain(dtype: DataType) -> bool {
    use DataType::{Fp64, Int32, Int64, Uint32, Uint64};
    matches!(dtype, Fp64 | Int32 | Int64 | Uint32 | Uint64)
}

/// `MatMul` of matrices, and of stacks of them.
struct PlainProduct;

/// Lengths of a product, and where its matrices start.
struct PlainLayout {
    size: ProductSize,
    a_offsets: Vec<usize>,
    b_offsets: Vec<usize>,
}

impl PlainLayout {
    fn of(shapes: &NodeShapes) -> Result<Self, String> {
        let ([a_lead @ .., m, k], [b_lead @ .., rows, n]) = (shapes.input(0)?, shapes.input(1)?)
        else {
            return Err("an operand has fewer than two axes".into());
        };
        if rows != k {
            return Err(format!("input 0 has {k} columns for {rows} rows"));
        }
        let lead = galatea_tensor::broadcast_shapes(a_lead, b_lead).map_err(|e| e.to_string())?;
        let a_offsets = batch_offsets(a_lead, &lead, m * k).ok_or("input 0 does not broadcast")?;
        let b_offsets = batch_offsets(b_lead, &lead, k * n).ok_or("input 1 does not broadcast")?;
        Ok(Self { size: ProductSize { m: *m, k: *k, n: *n }, a_offsets, b_offsets })
    }

    fn step<T: Element + PlainElement>(self) -> CpuStep {
        CpuStep::new(move |call| {
            let (a, b) = (call.input::<T>(0)?, call.input::<T>(1)?);
            let mut y = call.output::<T>(0)?;
            let ProductSize { m, k, n } = self.size;
            if m * n == 0 {
                return Ok(());
            }
            let starts = self.a_offsets.iter().zip(&self.b_offsets);
            for (y, (&from_a, &from_b)) in y.slice().chunks_exact_mut(m * n).zip(starts) {
                let (a, b) = (&a[from_a..from_a + m * k], &b[from_b..from_b + k * n]);
                multiply_plain(call.exec, self.size, a, b, y);
            }
            Ok(())
        })
    }
}

impl CpuKernel for PlainProduct {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let layout = PlainLayout::of(shapes)?;
        Ok(match shapes.dtype(0)? {
            DataType::Fp64 => layout.step::<f64>(),
            DataType::Int32 => layout.step::<i32>(),
            DataType::Int64 => layout.step::<i64>(),
            DataType::Uint32 => layout.step::<u32>(),
            DataType::Uint64 => layout.step::<u64>(),
            other => return Err(format!("no product of {other}")),
        })
    }
}
