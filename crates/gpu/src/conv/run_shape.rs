//! A convolution of a run, as the ways to compute it see it.

use galatea_tensor::DataType;

use super::geometry::ConvLengths;
use super::node::ConvNode;
use super::tiles::WeightPacking;
use crate::device::GpuCapabilities;
use crate::matmul::MatMulVariant;

/// The most bytes of memory of its own that a way may ask for.
const MAX_BYTES: u64 = 512 << 20;

/// A convolution of a run.
pub(super) struct ConvRunShape<'a> {
    pub(super) convolution: &'a ConvNode,
    pub(super) lengths: ConvLengths,
    /// Types of image, weights as they are kept, and result.
    pub(super) stored: [DataType; 3],
    pub(super) packing: WeightPacking,
    /// True if weights are known beforehand.
    pub(super) constant: bool,
    /// True if operands may be rounded to FP16.
    pub(super) halves: bool,
    pub(super) capabilities: &'a GpuCapabilities,
    /// Kernel for plain matrix multiplications that overrides the chosen one.
    pub(super) by: Option<MatMulVariant>,
}

impl ConvRunShape<'_> {
    /// Products of a run: one for each group of channels of each image.
    pub(super) fn products(&self) -> usize {
        self.lengths.images * self.lengths.groups
    }

    /// Returns whether an algorithm has room for so many intermediate elements.
    pub(super) fn has_room(&self, elements: usize, dtype: DataType) -> bool {
        let most = MAX_BYTES.min(self.capabilities.binding_bytes);
        let bytes = elements.checked_mul(dtype.size_bytes().unwrap_or(4));
        bytes.and_then(|bytes| u64::try_from(bytes).ok()).is_some_and(|bytes| bytes <= most)
    }
}
