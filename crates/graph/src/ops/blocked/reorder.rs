//! `ReorderInput` and `ReorderOutput`: where images go into blocks of channels and come out of them.

use galatea_tensor::Tensor;

use super::channel_block;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::shape::join_tensors;

/// `ReorderInput`: `[N, C, H, W]`, or `[N, H, W, C]`, with channels of zeros up to the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderInput {
    /// True if the channels of the input are the last axis.
    pub channels_last: bool,
    /// Channels of a block.
    pub block: usize,
}

/// `ReorderOutput`: the first channels, as `[N, C, H, W]` or `[N, H, W, C]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderOutput {
    /// True if the channels of the output are the last axis.
    pub channels_last: bool,
    /// How many there are.
    pub channels: usize,
}

const TO_FIRST: [usize; 4] = [0, 3, 1, 2];
const TO_LAST: [usize; 4] = [0, 2, 3, 1];

fn expect_image(rank: usize) -> Result<(), OpError> {
    if rank == 4 { Ok(()) } else { Err(OpError::new(format!("rank {rank}, expected 4"))) }
}

impl ReorderInput {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let channels_last = context.attributes.flag("channels_last", false)?;
        Ok(Box::new(Self { channels_last, block: channel_block() }))
    }
}

impl Operator for ReorderInput {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let Some(dims) = &x.shape else { return Ok(vec![Fact::unranked(x.dtype)]) };
        expect_image(dims.len())?;
        let order = if self.channels_last { TO_FIRST } else { [0, 1, 2, 3] };
        let mut dims: Vec<Dim> = order.iter().map(|&axis| dims[axis].clone()).collect();
        dims[1] = match dims[1].known().and_then(|c| c.checked_next_multiple_of(self.block)) {
            Some(channels) => Dim::Known(channels),
            None => Dim::Unknown,
        };
        Ok(vec![Fact::new(x.dtype, dims)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_image(x.rank())?;
        let x = if self.channels_last { x.permute(&TO_FIRST)? } else { x.clone() };
        let mut missing = x.shape().to_vec();
        let wanted = missing[1].checked_next_multiple_of(self.block).unwrap_or(usize::MAX);
        missing[1] = wanted - missing[1];
        if missing[1] == 0 {
            return Ok(vec![bounds::owned(&x)?]);
        }
        bounds::bounded(x.dtype(), &missing)?;
        let zeros = Tensor::zeros(x.dtype(), &missing)?;
        Ok(vec![join_tensors(&[&x, &zeros], 1)?])
    }
}

impl ReorderOutput {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let channels_last = context.attributes.flag("channels_last", false)?;
        let channels = context.attributes.int("channels")?;
        let channels = channels.ok_or_else(|| OpError::new("attribute 'channels' is missing"))?;
        let channels = bounds::length(channels, "attribute 'channels'")?;
        Ok(Box::new(Self { channels_last, channels }))
    }
}

impl Operator for ReorderOutput {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let Some(dims) = &x.shape else { return Ok(vec![Fact::unranked(x.dtype)]) };
        expect_image(dims.len())?;
        let mut dims = dims.clone();
        dims[1] = Dim::Known(self.channels);
        let order = if self.channels_last { TO_LAST } else { [0, 1, 2, 3] };
        Ok(vec![Fact::new(x.dtype, order.iter().map(|&axis| dims[axis].clone()).collect())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        expect_image(x.rank())?;
        let found = x.shape()[1];
        if found < self.channels {
            let text = format!("{found} channels, expected {} or more", self.channels);
            return Err(OpError::new(text));
        }
        let kept = x.slice_axis(1, 0, self.channels, 1)?;
        let kept = if self.channels_last { kept.permute(&TO_LAST)? } else { kept };
        Ok(vec![bounds::owned(&kept)?])
    }
}
