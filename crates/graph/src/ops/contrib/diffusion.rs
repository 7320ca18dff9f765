//! `BiasSplitGelu` and `ContribGroupNorm`, which optimised diffusion models have.

use galatea_tensor::Tensor;

use super::skip_normalization::{normalise, row_vector};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::activation::ActivationKind;
use crate::ops::bounds;
use crate::ops::convolution::{to_channels_first, to_channels_last};
use crate::ops::values::{expect_float, floats, from_floats};

/// The left half of `x + bias` times the GELU of the right half, along the last axis, of domain
/// `com.microsoft`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BiasSplitGelu;

/// Group normalisation with an optional SiLU, of domain `com.microsoft`. Inputs: `x`, one `gamma`
/// and one `beta` for each channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContribGroupNorm {
    /// Added to the variance.
    pub epsilon: f32,
    /// How many groups the channels make.
    pub groups: usize,
    /// True if the channels are the last axis.
    pub channels_last: bool,
    /// True if the result goes through `x · sigmoid(x)`.
    pub silu: bool,
}

impl Operator for BiasSplitGelu {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let mut fact = Fact { value: None, elements: None, ..x.clone() };
        if let Some(last) = fact.shape.as_mut().and_then(|dims| dims.last_mut()) {
            *last = bounds::quotient([&*last], [&Dim::Known(2)]);
        }
        Ok(vec![fact])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let width = x.shape().last().copied().filter(|width| width.is_multiple_of(2));
        let width = width.ok_or_else(|| {
            OpError::new(format!("shape {:?} has no halves along its last axis", x.shape()))
        })?;
        let bias = row_vector(inputs.required(1)?, width, "the bias")?;
        let half = width / 2;
        let gelu = ActivationKind::Gelu { tanh: false };
        let mut result = Vec::with_capacity(x.elements() / 2);
        for row in floats(x)?.chunks(width.max(1)) {
            let at = |at: usize| row[at] + bias[at];
            result.extend((0..half).map(|left| at(left) * gelu.apply(at(left + half))));
        }
        let mut shape = x.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = half;
        }
        Ok(vec![from_floats(x.dtype(), &shape, result)?])
    }
}

impl ContribGroupNorm {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut needed = |name: &'static str| {
            let found = context.attributes.int(name)?;
            found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")))
        };
        let groups = needed("groups")?;
        let activation = needed("activation")?;
        let groups = bounds::length(groups, "attribute 'groups'")?;
        if groups == 0 || !(0..=1).contains(&activation) {
            return Err(OpError::new(format!("{groups} groups and activation {activation}")));
        }
        Ok(Box::new(Self {
            epsilon: context.attributes.float_or("epsilon", 1e-5)?,
            groups,
            channels_last: context.attributes.flag("channels_last", true)?,
            silu: activation == 1,
        }))
    }
}

impl Operator for ContribGroupNorm {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        if x.rank() < 3 {
            return Err(OpError::new(format!("rank {}, expected 3 or more", x.rank())));
        }
        let first =
            if self.channels_last { x.permute(&to_channels_first(x.rank()))? } else { x.clone() };
        let channels = first.shape()[1];
        let inner = first.shape()[2..].iter().product::<usize>();
        if !channels.is_multiple_of(self.groups) {
            return Err(OpError::new(format!("{channels} channels in {} groups", self.groups)));
        }
        let gamma = row_vector(inputs.required(1)?, channels, "gamma")?;
        let beta = row_vector(inputs.required(2)?, channels, "beta")?;
        let mut all = floats(&first)?;
        for group in all.chunks_mut((channels / self.groups * inner).max(1)) {
            normalise(group, self.epsilon, false);
        }
        for (index, value) in all.iter_mut().enumerate() {
            let channel = index / inner.max(1) % channels.max(1);
            let scaled = *value * gamma[channel] + beta[channel];
            *value = if self.silu { scaled / (1.0 + (-scaled).exp()) } else { scaled };
        }
        let result = from_floats(x.dtype(), first.shape(), all)?;
        if self.channels_last {
            return Ok(vec![bounds::owned(&result.permute(&to_channels_last(x.rank()))?)?]);
        }
        Ok(vec![result])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, one, tensor};

    #[test]
    fn halves_gate_each_other() {
        let x = tensor(&[1, 2, 2], &[1.0_f32, 50.0, 2.0, -60.0]);
        let bias = tensor(&[2], &[1.0_f32, 10.0]);
        let found = one("com.microsoft:BiasSplitGelu", 1, &attributes([]), &[&x, &bias]);
        assert_eq!(found, tensor(&[1, 2, 1], &[120.0_f32, -0.0]));
        let sum = one("com.microsoft:BiasAdd", 1, &attributes([]), &[&x, &bias, &x]);
        assert_eq!(sum, tensor(&[1, 2, 2], &[3.0_f32, 110.0, 5.0, -110.0]));
    }

    #[test]
    fn groups_are_those_of_onnx() {
        let x = tensor(&[1, 2, 4], &[1.0_f32, 3.0, 10.0, 30.0, 2.0, 5.0, 20.0, 40.0]);
        let gamma = tensor(&[4], &[1.0_f32, 2.0, 3.0, 4.0]);
        let beta = tensor(&[4], &[0.5_f32; 4]);
        let epsilon = ("epsilon", AttributeValue::Float(0.25));
        let list = attributes([
            ("groups", int(2)),
            ("activation", int(0)),
            ("channels_last", int(0)),
            epsilon.clone(),
        ]);
        let first = x.permute(&[0, 2, 1]).unwrap();
        let found = one("com.microsoft:GroupNorm", 1, &list, &[&first, &gamma, &beta]);
        let plain = attributes([("num_groups", int(2)), epsilon.clone()]);
        let expected = one("GroupNormalization", 21, &plain, &[&first, &gamma, &beta]);
        let near = |a: &galatea_tensor::Tensor, b: &galatea_tensor::Tensor| {
            let pairs = a.to_vec::<f32>().unwrap().into_iter().zip(b.to_vec::<f32>().unwrap());
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-5), "{a:?} {b:?}");
        };
        near(&found, &expected);
        let last = attributes([("groups", int(2)), ("activation", int(0)), epsilon]);
        let found = one("com.microsoft:GroupNorm", 1, &last, &[&x, &gamma, &beta]);
        near(&found, &expected.permute(&[0, 2, 1]).unwrap());
    }
}
