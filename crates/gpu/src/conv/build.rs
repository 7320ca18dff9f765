//! From a node to the kernel that fits it.

use galatea_graph::Dim;
use galatea_runtime::Precision;
use galatea_tensor::DataType;

use super::kernel::GpuConvKernel;
use super::node::ConvNode;
use crate::kernel::{GpuKernel, GpuNodeView};
use galatea_runtime::{NodeShapes, ValueShape};

/// Refuses what no kernel here takes.
pub(super) fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    view.floats_throughout(&[0, 1, 2, 3])?;
    ConvNode::of(view)?;
    let rank = view.rank(0)?;
    if !(3..=5).contains(&rank) {
        return Err(format!("an image of {rank} axes, expected 3 to 5"));
    }
    window_of(view).map(drop)
}

/// The lengths of the window, and the channels that weights say: all must be known beforehand, as they
/// are part of the kernel's text.
fn window_of(view: &GpuNodeView<'_>) -> Result<Vec<usize>, String> {
    let shape = view.input(1).and_then(|fact| fact.known_shape());
    shape.ok_or_else(|| "the shape of the weights is known only in a run".to_owned())
}

/// Groups of so few channels that a product would compute mostly zeros.
pub(super) fn few_channels(view: &GpuNodeView<'_>) -> Result<(), String> {
    supports(view)?;
    is_direct(view)?.then_some(()).ok_or_else(|| "its groups are wide".to_owned())
}

fn is_direct(view: &GpuNodeView<'_>) -> Result<bool, String> {
    let convolution = ConvNode::of(view)?;
    let shape = window_of(view)?;
    let channels = shape.get(1).copied().unwrap_or(0);
    let m = shape.first().copied().unwrap_or(0) / convolution.groups().max(1);
    Ok(!convolution.is_transposed() && convolution.groups() > 1 && m * channels <= 64)
}

/// The kernel of a node.
pub(super) fn conv(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let convolution = ConvNode::of(view)?;
    let narrow = view.precision == Precision::Fp16 && view.is_float(DataType::Fp16);
    let stored = |input: usize| view.input(input).map(|fact| fact.dtype);
    let weights = view.constant(1).cloned();
    let known = weights.is_some();
    let mut kernel = GpuConvKernel::of(convolution, weights, view.device, narrow);
    // Matrices of FP16 where nothing that is wider is asked for.
    if [0, 1].iter().all(|&input| stored(input) == Some(DataType::Fp16)) {
        kernel = kernel.of_halves();
    }
    if let Some(shapes) = likely(view, narrow).filter(|_| known) {
        kernel.prepare(&shapes)?;
    }
    Ok(Box::new(kernel))
}

/// The image of a likely run: lengths that are not known yet are one image of so many pixels.
fn likely(view: &GpuNodeView<'_>, narrow: bool) -> Option<NodeShapes> {
    const PIXELS: usize = 56;
    let image = view.input(0)?;
    let dims = image.shape.as_ref()?.iter().enumerate();
    let len =
        |(axis, dim): (usize, &Dim)| dim.known().unwrap_or(if axis == 0 { 1 } else { PIXELS });
    let shape: Vec<usize> = dims.map(len).collect();
    let lies = |dtype| if narrow { DataType::Fp16 } else { dtype };
    let result = view.output(0)?.dtype;
    let weights = ValueShape::new(view.input(1)?.dtype, window_of(view).ok()?);
    let shapes = NodeShapes {
        inputs: vec![Some(ValueShape::new(lies(image.dtype), shape)), Some(weights)],
        outputs: vec![Some(ValueShape::new(lies(result), Vec::new()))],
        constants: Vec::new(),
    };
    // What does not fit together is for the run to say.
    ConvNode::of(view).ok()?.lengths(&shapes).is_ok().then_some(shapes)
}
