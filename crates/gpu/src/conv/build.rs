//! From a node to the kernel that fits it.

use std::sync::Arc;

use galatea_graph::Dim;
use galatea_graph::ops::convolution::{
    Conv, ConvInteger, ConvTranspose, FusedConv, QLinearConv, QLinearConvAdd,
};
use galatea_runtime::Precision;
use galatea_tensor::DataType;

use super::geometry::{ConvLengths, resolved, spatial};
use super::kernel::GpuConvKernel;
use crate::kernel::{GpuKernel, GpuNodeView};
use crate::matmul::ProductActivation;
use galatea_runtime::{NodeShapes, ValueShape};

/// Attributes of a convolution node, whatever operator it is.
#[derive(Clone, Debug)]
pub(super) struct ConvNode {
    way: ConvBuild,
    group: usize,
    pub(super) activation: ProductActivation,
    channels_last: bool,
}

#[derive(Clone, Debug)]
enum ConvBuild {
    Forward(Arc<Conv>),
    Back(Arc<ConvTranspose>),
}

impl ConvNode {
    pub(super) fn fused(fused: &FusedConv) -> Self {
        Self {
            activation: ProductActivation::fused(fused.activation),
            ..Self::forward(&fused.conv)
        }
    }

    fn forward(conv: &Conv) -> Self {
        Self {
            group: conv.group,
            channels_last: conv.channels_last,
            way: ConvBuild::Forward(Arc::new(conv.clone())),
            activation: ProductActivation::NONE,
        }
    }

    pub(super) fn of(view: &GpuNodeView<'_>) -> Result<Self, String> {
        if let Ok(conv) = view.operator::<Conv>() {
            return Ok(Self::forward(conv));
        }
        if let Ok(fused) = view.operator::<FusedConv>() {
            return Ok(Self::fused(fused));
        }
        let integers = view.operator::<ConvInteger>().map(|op| &op.conv);
        let quantised = view.operator::<QLinearConv>().map(|op| &op.conv);
        let added = view.operator::<QLinearConvAdd>().map(|op| &op.conv);
        if let Ok(conv) = integers.or(quantised).or(added) {
            return Ok(Self::forward(conv));
        }
        view.operator::<ConvTranspose>().map(Self::back)
    }

    pub(super) fn back(back: &ConvTranspose) -> Self {
        Self {
            group: back.group,
            channels_last: false,
            way: ConvBuild::Back(Arc::new(back.clone())),
            activation: ProductActivation::NONE,
        }
    }

    /// Returns whether the window moves by single pixels over all channels, and its elements are neighbours.
    pub(super) fn is_plain(&self) -> bool {
        let ones = |steps: &[usize]| steps.iter().all(|&step| step == 1);
        let ConvBuild::Forward(conv) = &self.way else { return false };
        self.group == 1 && ones(&conv.strides) && ones(&conv.dilations)
    }

    /// Returns whether the convolution is transposed: the window is laid on the result, and images grow.
    pub(super) fn is_transposed(&self) -> bool {
        matches!(self.way, ConvBuild::Back(_))
    }

    /// The lengths of a run.
    ///
    /// # Errors
    /// Fails when an image has more than three spatial axes, or the shapes do not fit each other.
    pub(super) fn lengths(&self, shapes: &NodeShapes) -> Result<ConvLengths, String> {
        self.lengths_of(shapes.input(0)?, shapes.input(1)?)
    }

    /// The lengths for an image and weights of these shapes.
    ///
    /// # Errors
    /// Returns the same errors as [`ConvNode::lengths`].
    pub(super) fn lengths_of(&self, x: &[usize], w: &[usize]) -> Result<ConvLengths, String> {
        let [images, rest @ ..] = x else { return Err(format!("an image of shape {x:?}")) };
        let (all, image) = match (self.channels_last, rest) {
            (true, [image @ .., all]) | (false, [all, image @ ..]) => (*all, image),
            _ => return Err(format!("an image of shape {x:?}")),
        };
        let (Some(&first), Some(&second)) = (w.first(), w.get(1)) else {
            return Err(format!("weights of shape {w:?}"));
        };
        let window = w.get(2..).unwrap_or_default();
        let (strides, dilations, geometry, m) = match &self.way {
            ConvBuild::Forward(conv) => {
                let geometry = conv.geometry(image, window);
                (&conv.strides, &conv.dilations, geometry, first / self.group)
            }
            ConvBuild::Back(back) => {
                (&back.strides, &back.dilations, back.geometry(image, window), second)
            }
        };
        let geometry = geometry.map_err(|error| error.to_string())?;
        let (pads, output) = resolved(&geometry)?;
        Ok(ConvLengths {
            images: *images,
            groups: self.group,
            channels: all / self.group,
            m,
            input: spatial(image, 1)?,
            output,
            window: spatial(window, 1)?,
            strides: spatial(strides, 1)?,
            dilations: spatial(dilations, 1)?,
            pads,
            channels_last: self.channels_last,
        })
    }
}

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
    let m = shape.first().copied().unwrap_or(0) / convolution.group.max(1);
    Ok(!convolution.is_transposed() && convolution.group > 1 && m * channels <= 64)
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

impl ConvNode {
    /// Channels of the result in a group, terms of a sum, and places of the window, from the weights.
    pub(super) fn product(&self, w: &[usize]) -> Result<(usize, usize, usize), String> {
        let [first, second, window @ ..] = w else { return Err(format!("weights of shape {w:?}")) };
        let places: usize = window.iter().product();
        let group = self.group.max(1);
        Ok(match self.way {
            ConvBuild::Forward(_) => (first / group, second * places, places),
            ConvBuild::Back(_) => (*second, first / group * places, places),
        })
    }

    /// Returns the number of groups.
    pub(super) fn groups(&self) -> usize {
        self.group
    }
}
