//! Attributes of convolutions, and the lengths of their runs.

use std::sync::Arc;

use galatea_graph::ops::convolution::{
    Conv, ConvInteger, ConvTranspose, FusedConv, QLinearConv, QLinearConvAdd,
};
use galatea_runtime::NodeShapes;

use super::geometry::{ConvLengths, resolved, spatial};
use crate::kernel::GpuNodeView;
use crate::matmul::ProductActivation;

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
