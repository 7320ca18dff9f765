//! Lengths of a convolution, with three spatial axes whatever the image has.

use galatea_graph::ops::convolution::ConvGeometry;

use crate::kernel::param;

/// Three lengths, the last axis last; those that an image lacks are 1 (or 0, for pads).
pub(super) type SpatialLengths = [usize; 3];

/// Lengths behind as many ones as are missing.
pub(super) fn spatial(lengths: &[usize], absent: usize) -> Result<SpatialLengths, String> {
    let mut all = [absent; 3];
    let start = all.len().checked_sub(lengths.len());
    let start = start.ok_or_else(|| format!("{} spatial axes, at most 3", lengths.len()))?;
    all[start..].copy_from_slice(lengths);
    Ok(all)
}

/// Lengths that both kernels of convolutions take.
#[derive(Clone, Debug)]
pub(super) struct ConvLengths {
    pub(super) images: usize,
    pub(super) groups: usize,
    /// Channels of a group: of the image and of the result.
    pub(super) channels: usize,
    pub(super) m: usize,
    pub(super) input: SpatialLengths,
    pub(super) output: SpatialLengths,
    pub(super) window: SpatialLengths,
    pub(super) strides: SpatialLengths,
    pub(super) dilations: SpatialLengths,
    pub(super) pads: SpatialLengths,
    /// True if the channels are the last axis.
    pub(super) channels_last: bool,
}

impl ConvLengths {
    /// Elements of a channel of the result.
    pub(super) fn pixels(&self) -> usize {
        self.output.iter().product()
    }

    /// Parameters from the lengths of the image to the steps between pixels of the result.
    pub(super) fn params(&self) -> Result<Vec<u32>, String> {
        let steps = |channels: usize, pixels: usize| match self.channels_last {
            true => [channels * pixels, 1, channels],
            false => [channels * pixels, pixels, 1],
        };
        let inputs = steps(self.groups * self.channels, self.input.iter().product());
        let outputs = steps(self.groups * self.m, self.pixels());
        let lists: [&[usize]; 7] = [
            &self.input,
            &self.output[1..],
            &self.strides,
            &self.pads,
            &self.dilations,
            &inputs,
            &outputs,
        ];
        lists.concat().into_iter().map(param).collect()
    }
}

/// Pads and lengths as three axes.
pub(super) fn resolved(
    geometry: &ConvGeometry,
) -> Result<(SpatialLengths, SpatialLengths), String> {
    Ok((spatial(&geometry.pads_begin, 0)?, spatial(&geometry.output, 1)?))
}
