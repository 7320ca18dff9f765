//! Window over the planes of an image, which all pools share.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::ParseContext;
use crate::ops::bounds;
use crate::ops::convolution::{
    ConvGeometry, SlidingWindow, WindowPadding, list, to_channels_first, to_channels_last,
};

/// The window of a pool. As `…Nhwc` of domain `ai.galatea` input and output are
/// `[N, spatial…, C]` instead of `[N, C, spatial…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolWindow {
    /// Lengths of the window.
    pub kernel_shape: Vec<usize>,
    /// Steps of the window; empty means ones.
    pub strides: Vec<usize>,
    /// Distances of neighbours inside the window; empty means ones.
    pub dilations: Vec<usize>,
    /// How far the window may leave the image.
    pub pads: WindowPadding,
    /// True if a last window that leaves the image counts.
    pub ceil_mode: bool,
    /// True if the channels are the last axis of input and output.
    pub channels_last: bool,
}

/// One position of the window.
pub(super) struct WindowPosition {
    /// Offsets, in the plane, of the elements that the window sees.
    pub(super) seen: Vec<usize>,
    /// How many elements of the window lie in the image or its pads.
    pub(super) with_pads: usize,
}

impl PoolWindow {
    /// Reads the attributes.
    pub(super) fn read(
        context: &mut ParseContext<'_>,
        channels_last: bool,
    ) -> Result<Self, OpError> {
        let kernel_shape = list(context, "kernel_shape")?;
        if kernel_shape.is_empty() {
            return Err(OpError::new("attribute 'kernel_shape' is missing"));
        }
        Ok(Self {
            kernel_shape,
            strides: list(context, "strides")?,
            dilations: list(context, "dilations")?,
            pads: WindowPadding::parse(context)?,
            ceil_mode: context.attributes.flag("ceil_mode", false)?,
            channels_last,
        })
    }

    fn window(&self) -> SlidingWindow<'_> {
        SlidingWindow {
            kernel: &self.kernel_shape,
            strides: &self.strides,
            dilations: &self.dilations,
            pads: &self.pads,
            ceil: self.ceil_mode,
        }
    }

    /// Effective pads and output lengths for an image of these spatial lengths.
    ///
    /// # Errors
    /// Fails when the window does not fit the image, or a list has the wrong length.
    pub fn geometry(&self, input_spatial: &[usize]) -> Result<ConvGeometry, OpError> {
        self.window().geometry(input_spatial)
    }

    /// The shape of the output.
    pub(super) fn infer(&self, data: &Fact) -> Result<Fact, OpError> {
        let Some(dims) = &data.shape else { return Ok(Fact::unranked(data.dtype)) };
        check_rank(dims.len())?;
        let spatial = if self.channels_last { 1..dims.len() - 1 } else { 2..dims.len() };
        let output: Vec<Dim> = self.window().output_dims(&dims[spatial.clone()])?;
        let mut shape = dims.clone();
        shape.splice(spatial, output);
        Ok(Fact::new(data.dtype, shape))
    }

    /// Every position of the window over a plane, in output order.
    pub(super) fn places(
        &self,
        spatial: &[usize],
    ) -> Result<(Vec<usize>, Vec<WindowPosition>), OpError> {
        let window = self.window();
        let geometry = self.geometry(spatial)?;
        bounds::bounded(galatea_tensor::DataType::Int64, &geometry.output)?;
        let place = |position: Vec<usize>| WindowPosition {
            seen: window.taps(spatial, &geometry, &position).into_iter().map(|tap| tap.0).collect(),
            with_pads: window.padded_taps(spatial, &geometry, &position),
        };
        let places = bounds::indices(&geometry.output).map(place).collect();
        Ok((geometry.output, places))
    }

    /// The image with channels first, in adjacent memory.
    pub(super) fn image(&self, data: &Tensor) -> Result<Tensor, OpError> {
        check_rank(data.rank())?;
        channels_first(data, self.channels_last)
    }

    /// The result in the layout of the operator.
    pub(super) fn laid_out(&self, result: &Tensor) -> Result<Tensor, OpError> {
        laid_out(result, self.channels_last)
    }
}

/// Refuses inputs without spatial axes.
pub(super) fn check_rank(rank: usize) -> Result<(), OpError> {
    if rank >= 3 {
        return Ok(());
    }
    Err(OpError::new(format!("the input has rank {rank}, expected at least 3")))
}

/// An image with channels first, in adjacent memory.
pub(super) fn channels_first(data: &Tensor, channels_last: bool) -> Result<Tensor, OpError> {
    if channels_last {
        return bounds::owned(&data.permute(&to_channels_first(data.rank()))?);
    }
    bounds::owned(data)
}

/// A channels-first result in the layout of the operator.
pub(super) fn laid_out(result: &Tensor, channels_last: bool) -> Result<Tensor, OpError> {
    if channels_last {
        return bounds::owned(&result.permute(&to_channels_last(result.rank()))?);
    }
    Ok(result.clone())
}
