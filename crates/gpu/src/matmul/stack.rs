//! A stack of products as a part of another kernel.

use galatea_tensor::DataType;

use super::problem::MatMulProblem;
use super::spec::MatMulSpec;
use super::variant::MatMulVariant;
use crate::device::GpuCapabilities;
use crate::kernel::{DispatchStep, ShaderBinding};
use galatea_runtime::{NodeShapes, ValueShape};

/// `batch` products of contiguous `m × k` and `k × n`.
pub(crate) struct ProductStack {
    /// Bindings and types of A, B and the result.
    pub(crate) operands: [(ShaderBinding, DataType); 3],
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl ProductStack {
    /// Adds the dispatches of the products, in the way that was measured the fastest or fits their lengths.
    ///
    /// # Errors
    /// Fails when lengths are beyond the device.
    pub(crate) fn run(
        &self,
        capabilities: &GpuCapabilities,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let &Self { batch, m, n, k, .. } = self;
        let [a, b, out] = self.operands.each_ref().map(|(_, dtype)| *dtype);
        let shapes = NodeShapes {
            inputs: vec![
                Some(ValueShape::new(a, vec![batch, m, k])),
                Some(ValueShape::new(b, vec![batch, k, n])),
            ],
            outputs: vec![Some(ValueShape::new(out, vec![batch, m, n]))],
            constants: vec![None; 2],
        };
        let problem = MatMulProblem::new(MatMulSpec::PLAIN, &shapes)?;
        let [a, b, out] = self.operands.each_ref().map(|(binding, _)| binding.clone());
        place(&problem, &[a, b], &out, capabilities, None, step)
    }
}

/// Adds the dispatches of a product that is a part of another kernel, by this variant, or else by the one that was
/// measured the fastest or fits its lengths. Its inputs and its result are these; inputs beyond them are the kernel's.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(crate) fn place(
    problem: &MatMulProblem,
    inputs: &[ShaderBinding],
    out: &ShaderBinding,
    capabilities: &GpuCapabilities,
    variant: Option<MatMulVariant>,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let mut own = DispatchStep::default();
    let variant = variant.unwrap_or_else(|| MatMulVariant::tuned(problem, capabilities, step));
    variant.run(problem, capabilities, &mut own)?;
    adopt(own, inputs, out, step);
    Ok(())
}

/// Adds the dispatches of a product's own step to that of the kernel which it is a part of. Its inputs and its result
/// are these; inputs beyond them are the kernel's.
pub(super) fn adopt(
    own: DispatchStep,
    inputs: &[ShaderBinding],
    out: &ShaderBinding,
    step: &mut DispatchStep,
) {
    let first = step.scratch.len();
    for bytes in own.scratch {
        step.scratch(bytes);
    }
    for dispatch in own.dispatches {
        let meant = |binding: ShaderBinding| match binding {
            ShaderBinding::Input(number) => {
                inputs.get(number).cloned().unwrap_or(ShaderBinding::Input(number))
            }
            ShaderBinding::Output(_) => out.clone(),
            ShaderBinding::Scratch(number) => ShaderBinding::Scratch(first + number),
            other => other,
        };
        let bindings = dispatch.bindings.into_iter().map(meant).collect();
        step.dispatch(dispatch.shader, bindings, dispatch.params, dispatch.groups);
    }
}
