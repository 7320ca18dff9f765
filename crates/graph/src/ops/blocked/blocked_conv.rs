//! `Conv` of domain `com.microsoft.nchwc`: a convolution whose weights lie in blocks of channels.

use galatea_tensor::{DataType, Tensor};

use super::channel_block;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::convolution::ActivatedConv;

/// `Conv` of domain `com.microsoft.nchwc`: the inputs of `FusedConv`, with weights in blocks.
///
/// Weights `[M, C / group, h, w]` lie as `[M / b, C / b, h, w, b, b]`, input channels before output channels. Where
/// each group has one channel, or all channels of an image fit into one block, they lie as `[M / b, C, h, w, b]`.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockedConv {
    /// The convolution by weights in order.
    pub conv: ActivatedConv,
    /// Channels of a block.
    pub block: usize,
}

impl BlockedConv {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let conv = ActivatedConv::read(context, false)?;
        Ok(Box::new(Self { conv, block: channel_block() }))
    }

    /// Puts weights into ONNX's order `[M, C / group, h, w]`.
    ///
    /// # Errors
    /// Fails where the weights do not lie in blocks.
    pub fn plain_weights(&self, weights: &Tensor) -> Result<Tensor, OpError> {
        let &[outputs, inputs, height, width] = weights.shape() else {
            return Err(OpError::new(format!(
                "weights of shape {:?}, expected rank 4",
                weights.shape()
            )));
        };
        // Weights that do not fill blocks of 16 come from a machine with blocks of 8.
        let block = if outputs.is_multiple_of(self.block) { self.block } else { 8 };
        let group = self.conv.fused.conv.group;
        let whole = inputs < block && (group == 1 || inputs == 1);
        if !outputs.is_multiple_of(block) || (!whole && !inputs.is_multiple_of(block)) {
            return Err(OpError::new(format!(
                "weights of shape {:?} do not lie in blocks of {block} channels",
                weights.shape()
            )));
        }
        bounds::bounded(DataType::Fp32, weights.shape())?;
        let inner = if whole { 1 } else { block };
        let blocks = [outputs / block, inputs / inner, height, width, inner, block];
        let laid = bounds::owned(weights)?.reshape(&blocks)?.permute(&[0, 5, 1, 4, 2, 3])?;
        Ok(bounds::owned(&laid)?.reshape(weights.shape())?)
    }
}

impl Operator for BlockedConv {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.conv.infer(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let weights = self.plain_weights(inputs.required(1)?)?;
        let at = |index: usize| inputs.optional(index);
        let inputs = [at(0), Some(&weights), at(2), at(3)];
        self.conv.reference(OperatorInputs::new(&inputs))
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use super::BlockedConv;
    use crate::ops::blocked::channel_block;
    use crate::ops::convolution::ActivatedConv;
    use crate::ops::testing::{attributes, counting, int, ints, one, run, text};
    use crate::{Attributes, ParseContext};

    const DOMAIN: &str = "com.microsoft.nchwc:";

    fn conv(attributes: &Attributes) -> BlockedConv {
        let mut context = ParseContext::new(attributes, 2, 1, 1);
        BlockedConv { conv: ActivatedConv::read(&mut context, false).unwrap(), block: 8 }
    }

    /// Weights of a convolution in blocks of 8, made by the definition.
    fn blocked(plain: &Tensor) -> Tensor {
        let &[m, c, h, w] = plain.shape() else { panic!("rank 4") };
        let all = plain.to_vec::<f32>().unwrap();
        let mut result = vec![0.0; all.len()];
        let inner = if c < 8 { 1 } else { 8 };
        let mut place = 0;
        for index in crate::ops::bounds::indices(&[m / 8, c / inner, h, w, inner, 8]) {
            let [o, i, y, x, within, lane] = index[..] else { continue };
            result[place] = all[(((o * 8 + lane) * c + i * inner + within) * h + y) * w + x];
            place += 1;
        }
        Tensor::from_vec(plain.shape(), result).unwrap()
    }

    #[test]
    fn weights_come_out_of_their_blocks() {
        for (shape, group) in
            [([16, 3, 2, 1], 1), ([16, 16, 1, 2], 1), ([24, 1, 1, 1], 24), ([16, 8, 1, 1], 2)]
        {
            let plain = counting(&shape);
            let conv = conv(&attributes([("group", int(group))]));
            assert_eq!(conv.plain_weights(&blocked(&plain)).unwrap(), plain, "{shape:?}");
        }
        assert!(conv(&attributes([])).plain_weights(&counting(&[12, 3, 1, 1])).is_err());
        assert!(conv(&attributes([])).plain_weights(&counting(&[16, 12, 1, 1])).is_err());
    }

    #[test]
    fn channels_are_padded_and_dropped_again() {
        let x = counting(&[1, 2, 3, 5]);
        let last = attributes([("channels_last", int(1))]);
        let inside = one(&format!("{DOMAIN}ReorderInput"), 1, &last, &[&x]);
        assert_eq!(inside.shape(), [1, channel_block(), 2, 3]);
        let back = attributes([("channels_last", int(1)), ("channels", int(5))]);
        assert_eq!(one(&format!("{DOMAIN}ReorderOutput"), 1, &back, &[&inside]), x);
        let many = attributes([("channels", int(99))]);
        assert!(run(&format!("{DOMAIN}ReorderOutput"), 1, &many, &[Some(&inside)], 1).is_err());
    }

    #[test]
    fn pools_and_upsamplings_are_those_of_onnx() {
        let x = counting(&[1, 1, 2, 2]);
        let window = attributes([("kernel_shape", ints(&[2, 2]))]);
        let largest = one(&format!("{DOMAIN}MaxPool"), 1, &window, &[&x]);
        assert_eq!(largest.to_vec::<f32>().unwrap(), [3.0]);
        let mean = one(&format!("{DOMAIN}GlobalAveragePool"), 1, &attributes([]), &[&x]);
        assert_eq!(mean.to_vec::<f32>().unwrap(), [1.5]);
        let twice = attributes([("scales", ints(&[1, 1, 1, 2])), ("mode", text("nearest"))]);
        let wide = one(&format!("{DOMAIN}Upsample"), 1, &twice, &[&x]);
        assert_eq!(wide.to_vec::<f32>().unwrap(), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    }
}
