//! Products of dense matrices.
//!
//! A node becomes a [`Spec`](spec::Spec), with the lengths of a run a [`Problem`](problem::Problem), and a
//! [`Variant`] computes it: tiles in workgroup memory, or a kernel for few rows. The operands' layouts, the
//! axes of stacks and what follows the product are the same in all of them.

mod activation;
mod cooperative;
mod estimate;
mod integer;
mod launch;
mod parts;
mod problem;
mod spec;
mod stack;
mod tiled;
mod variant;
mod vector;

pub(crate) use activation::Activation;
pub use cooperative::CooperativeConfig;
pub(crate) use cooperative::Shape;
pub(crate) use parts::supports as multiplies_parts;
pub(crate) use problem::{Operand, Problem, Windows};
pub(crate) use spec::Spec;
pub(crate) use stack::{Stack, place};
pub use tiled::TiledConfig;
pub use variant::{Turns, Variant};
pub use vector::VectorConfig;

use crate::device::Capabilities;
use crate::kernel::{Kernel, KernelRow, NodeView, Shapes, Step};

const fn row(name: &'static str, domain: &'static str, ops: &'static [&'static str]) -> KernelRow {
    KernelRow { name, domain, ops, supports, build }
}

/// This family's kernels.
pub(crate) const ROWS: &[KernelRow] = &[
    row("matmul-f32", "", &["MatMul", "Gemm"]),
    row("matmul-f32-fused", "ai.galatea", &["FusedMatMul"]),
    row("matmul-f32-turned", "com.microsoft", &["FusedMatMul", "TransposeMatMul", "FusedGemm"]),
    integer::ROW,
    integer::CONTRIB,
];

fn supports(view: &NodeView<'_>) -> Result<(), String> {
    view.floats(&[0, 1, 2, 3])?;
    view.rank(0)?;
    view.rank(1)?;
    Spec::of(view).map(|_| ())
}

struct Product {
    spec: Spec,
    capabilities: Capabilities,
}

fn build(view: &NodeView<'_>) -> Result<Box<dyn Kernel>, String> {
    let capabilities = view.device.capabilities().clone();
    Ok(Box::new(Product { spec: Spec::of(view)?, capabilities }))
}

impl Kernel for Product {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let problem = Problem::new(self.spec, shapes)?;
        if parts::beyond(shapes, self.capabilities.binding_bytes).is_some() {
            return parts::run(&problem, &self.capabilities, step);
        }
        Variant::tuned(&problem, &self.capabilities, step).run(&problem, &self.capabilities, step)
    }
}
