//! `ConvChain`: convolutions that follow each other in one.

use galatea_tensor::Tensor;

use super::fused_conv::FusedConv;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};

/// `ConvChain` of domain `ai.galatea`: each convolution takes the result of the one before it.
///
/// Inputs: the image `X`, optionally the residual `Z` of the last convolution, then for each
/// convolution its weights and optionally its bias, as for [`FusedConv`]. A provider makes it of
/// convolutions that it computes together, so it has no attributes: no stored graph holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvChain {
    /// The convolutions, in their order.
    pub convs: Vec<FusedConv>,
}

impl ConvChain {
    /// The position of the weights of a convolution among the inputs; its bias is behind them.
    #[must_use]
    pub fn weights(index: usize) -> usize {
        2 + 2 * index
    }

    /// Calls `apply` for each convolution on the result of the one before; returns the last result.
    fn fold<T: Clone>(
        &self,
        inputs: OperatorInputs<'_, T>,
        apply: impl Fn(&FusedConv, OperatorInputs<'_, T>) -> Result<Vec<T>, OpError>,
    ) -> Result<Vec<T>, OpError> {
        let mut result = vec![inputs.required(0)?.clone()];
        for (index, conv) in self.convs.iter().enumerate() {
            let at = Self::weights(index);
            let last = index + 1 == self.convs.len();
            let residual = inputs.optional(1).filter(|_| last);
            let own = [result.first(), inputs.optional(at), inputs.optional(at + 1), residual];
            let next = apply(conv, OperatorInputs::new(&own))
                .map_err(|error| OpError::new(format!("convolution {index}: {error}")))?;
            result = next;
        }
        Ok(result)
    }
}

impl Operator for ConvChain {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.fold(inputs, FusedConv::infer)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        self.fold(inputs, FusedConv::reference)
    }
}
