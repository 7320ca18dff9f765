//! Convolutions with activations that no kernel of convolutions applies.

use galatea_tensor::Tensor;

use super::conv::Conv;
use super::fused_conv::FusedConv;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::activation::{Activation, ActivationKind};
use crate::ops::fused::FusedActivation;

/// `FusedConv` of domain `com.microsoft`, whose activation may also be `HardSigmoid`.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivatedConv {
    /// The convolution, the residual, and an activation that kernels know.
    pub fused: FusedConv,
    /// An activation behind it.
    pub behind: Option<Activation>,
}

impl ActivatedConv {
    /// Reads the attributes of `Conv` and the activation.
    pub(crate) fn read(
        context: &mut ParseContext<'_>,
        channels_last: bool,
    ) -> Result<Self, OpError> {
        let conv = Conv::read(context, channels_last)?;
        let name = context.attributes.string("activation")?;
        if name.as_deref() != Some("HardSigmoid") {
            let activation = FusedActivation::parse(context)?;
            return Ok(Self { fused: FusedConv { conv, activation }, behind: None });
        }
        let parameters = context.attributes.floats("activation_params")?.unwrap_or_default();
        let &[alpha, beta] = &parameters[..] else {
            return Err(OpError::new(format!(
                "activation 'HardSigmoid' cannot have parameters {parameters:?}"
            )));
        };
        let behind = Some(Activation { kind: ActivationKind::HardSigmoid { alpha, beta } });
        Ok(Self { fused: FusedConv { conv, activation: FusedActivation::None }, behind })
    }

    /// Parses `FusedConv` of domain `com.microsoft`.
    pub(crate) fn parse_channels_first(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Ok(Self::read(context, false)?.boxed())
    }

    /// Parses `NhwcFusedConv` of domain `com.microsoft`.
    pub(crate) fn parse_channels_last(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Ok(Self::read(context, true)?.boxed())
    }

    /// The plain operator where there is no activation behind it.
    fn boxed(self) -> Box<dyn Operator> {
        if self.behind.is_some() { Box::new(self) } else { Box::new(self.fused) }
    }
}

impl Operator for ActivatedConv {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.fused.infer(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let result = self.fused.reference(inputs)?;
        match (&self.behind, result.first()) {
            (Some(behind), Some(sum)) => behind.reference(OperatorInputs::new(&[Some(sum)])),
            _ => Ok(result),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, counting, parse, run, tensor, text};

    #[test]
    fn hard_sigmoid_comes_behind_the_sum() {
        let x = counting(&[1, 1, 1, 3]);
        let w = tensor(&[1, 1, 1, 1], &[2_f32]);
        let list = attributes([
            ("activation", text("HardSigmoid")),
            ("activation_params", AttributeValue::Floats(vec![0.25, 0.25])),
        ]);
        let found = run("com.microsoft:FusedConv", 1, &list, &[Some(&x), Some(&w)], 1).unwrap();
        assert_eq!(found[0].to_vec::<f32>().unwrap(), [0.25, 0.75, 1.0]);
        let none = attributes([("activation", text("HardSigmoid"))]);
        assert!(parse("com.microsoft:FusedConv", 1, &none, 2, 1).is_err());
    }
}
