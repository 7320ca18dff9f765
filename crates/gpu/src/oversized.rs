//! Nodes that read a constant in parts, since it is larger than what a device shows a kernel at once.

use galatea_graph::ops::contrib::MatMulNBits;
use galatea_graph::ops::index::Gather;

use crate::kernel::GpuNodeView;
use crate::{matmul, movement};

/// Checks that the kernels of a node read this input, a constant, in parts.
///
/// # Errors
/// Fails when they do not.
pub(crate) fn supports(view: &GpuNodeView<'_>, input: usize) -> Result<(), String> {
    if view.node.operator::<MatMulNBits>().is_some() && (1..=3).contains(&input) {
        // It packs its weights into pieces of its own.
        return Ok(());
    }
    if view.node.operator::<Gather>().is_some() && input == 0 {
        return movement::gathers_parts(view);
    }
    if input == 1 {
        return matmul::multiplies_parts(view);
    }
    Err("this node does not read it in parts".into())
}
