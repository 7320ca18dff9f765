//! Operands that are added to the sums of windows.

use galatea_runtime::NodeShapes;

use crate::kernel::{ShaderBinding, wgsl_float};

/// The bindings of bias and residual behind image, weights and result, and their types.
pub(super) struct ConvExtras {
    pub(super) bindings: Vec<ShaderBinding>,
    pub(super) bias: Option<&'static str>,
    pub(super) residual: Option<&'static str>,
}

/// Operands that are added, where a node has them.
pub(super) fn more(shapes: &NodeShapes) -> Result<ConvExtras, String> {
    let mut bindings = Vec::new();
    let mut added = |input: usize| -> Result<Option<&'static str>, String> {
        if !shapes.has(input) {
            return Ok(None);
        }
        bindings.push(ShaderBinding::Input(input));
        wgsl_float(shapes.dtype(input)?).map(Some)
    };
    let bias = added(2)?;
    let residual = added(3)?;
    Ok(ConvExtras { bindings, bias, residual })
}
