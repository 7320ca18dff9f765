//! Products of dense matrices.
//!
//! A node becomes a [`MatMulSpec`](spec::Spec), with the lengths of a run a [`MatMulProblem`](problem::Problem), and a
//! [`MatMulVariant`] computes it: tiles in workgroup memory, or a kernel for few rows. The operands' layouts, the
//! axes of stacks and what follows the product are the same in all of them.

mod activation;
mod cooperative;
mod estimate;
mod integer;
mod launch;
mod parts;
mod problem;
mod sparse;
mod spec;
mod stack;
mod tiled;
mod variant;
mod vector;

pub(crate) use activation::ProductActivation;
pub use cooperative::CooperativeConfig;
pub(crate) use cooperative::MatrixUnitShape;
pub(crate) use parts::supports as multiplies_parts;
pub(crate) use problem::{ImageWindows, MatMulOperand, MatMulProblem};
pub(crate) use spec::MatMulSpec;
pub(crate) use stack::{ProductStack, place};
pub use tiled::TileSizes;
pub use variant::{MatMulVariant, TransposedOperands};
pub use vector::VectorConfig;

use crate::device::GpuCapabilities;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView};
use galatea_runtime::NodeShapes;
use sparse::SparseMatrix;

const fn row(
    name: &'static str,
    domain: &'static str,
    ops: &'static [&'static str],
) -> GpuKernelRow {
    GpuKernelRow { name, domain, ops, supports, build }
}

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[
    row("matmul-f32", "", &["MatMul", "Gemm"]),
    row("matmul-f32-fused", "ai.galatea", &["FusedMatMul"]),
    row("matmul-f32-turned", "com.microsoft", &["FusedMatMul", "TransposeMatMul", "FusedGemm"]),
    integer::ROW,
    integer::CONTRIB,
];

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    view.floats_throughout(&[0, 1, 2, 3])?;
    view.rank(0)?;
    view.rank(1)?;
    MatMulSpec::of(view).map(|_| ())
}

struct MatMulKernel {
    spec: MatMulSpec,
    /// Zeros of the constant matrix, where it has many.
    sparse: Option<SparseMatrix>,
    capabilities: GpuCapabilities,
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let capabilities = view.device.capabilities().clone();
    let spec = MatMulSpec::of(view)?;
    let sparse = SparseMatrix::of(view, &spec);
    Ok(Box::new(MatMulKernel { spec, sparse, capabilities }))
}

impl GpuKernel for MatMulKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let problem = MatMulProblem::new(self.spec, shapes)?;
        if parts::oversized_constant(shapes, self.capabilities.binding_bytes).is_some() {
            return parts::run(&problem, &self.capabilities, step);
        }
        if let Some(sparse) = &self.sparse
            && sparse.run(&problem, step)?
        {
            return Ok(());
        }
        MatMulVariant::tuned(&problem, &self.capabilities, step).run(
            &problem,
            &self.capabilities,
            step,
        )
    }

    fn weight_bytes(&self) -> u64 {
        self.sparse.as_ref().map_or(0, SparseMatrix::bytes)
    }
}
