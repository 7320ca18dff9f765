//! Operators of `com.microsoft` that are ones of ONNX with other defaults.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::generate::Range;
use crate::ops::index::GatherND;
use crate::ops::shape::{Pad, Unsqueeze};
use crate::ops::transformer::{CausalConvWithState, LinearAttention};
use crate::ops::vision::GridSample;

type ParsedAlias = Result<Box<dyn Operator>, OpError>;

/// Refuses attributes that go beyond ONNX's operator.
fn only(context: &mut ParseContext<'_>, expected: &[(&'static str, i64)]) -> Result<(), OpError> {
    for &(name, value) in expected {
        let found = context.attributes.int_or(name, value)?;
        if found != value {
            let text = format!("attribute '{name}' is {found}, only {value} is supported");
            return Err(OpError::new(text));
        }
    }
    Ok(())
}

pub(super) fn grid_sample(context: &mut ParseContext<'_>) -> ParsedAlias {
    context.opset = 16;
    GridSample::parse(context)
}

pub(super) fn gather_nd(context: &mut ParseContext<'_>) -> ParsedAlias {
    GatherND::parse(context)
}

pub(super) fn pad(context: &mut ParseContext<'_>) -> ParsedAlias {
    context.opset = 11;
    Pad::parse(context)
}

pub(super) fn causal_conv(context: &mut ParseContext<'_>) -> ParsedAlias {
    let expected = [
        ("state_window", 0),
        ("ndim", 1),
        ("state_length", 0),
        ("state_channels_last", -1),
        ("state_update_capacity", 0),
        ("input_channels", 0),
        ("input_channel_offset", 0),
    ];
    only(context, &expected)?;
    CausalConvWithState::parse_layout(context)
}

pub(super) fn linear_attention(context: &mut ParseContext<'_>) -> ParsedAlias {
    only(context, &[("state_window", 0)])?;
    LinearAttention::parse(context)
}

/// `ExpandDims`: an axis of length 1 at the place that a scalar names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpandDims;

impl Operator for ExpandDims {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let Some(axes) = inputs.required(1)?.integers() else {
            let unknown = |dims: &Vec<Dim>| vec![Dim::Unknown; dims.len() + 1];
            return Ok(vec![Fact::shaped(x.dtype, x.shape.as_ref().map(unknown))]);
        };
        Unsqueeze { axes: Some(axes) }.infer(OperatorInputs::new(&[Some(x)]))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let axes = inputs.required(1)?.to_i64_vec()?;
        if axes.len() != 1 {
            return Err(OpError::new(format!("{} axes, expected 1", axes.len())));
        }
        Unsqueeze { axes: Some(axes) }.reference(OperatorInputs::new(&[inputs.optional(0)]))
    }
}

/// `Range` whose step is 1 where it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalStepRange;

impl Operator for OptionalStepRange {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let start = inputs.required(0)?;
        let step = match inputs.optional(2) {
            Some(step) => step.clone(),
            None => Fact::shaped(start.dtype, Some(Vec::new())),
        };
        let scalar = |fact: &Fact| Fact::shaped(fact.dtype, Some(Vec::new()));
        let all = [scalar(start), scalar(inputs.required(1)?), scalar(&step)];
        Range.infer(OperatorInputs::new(&all.each_ref().map(Some)))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let start = inputs.required(0)?;
        let one = crate::ops::cast::Cast::plain(start.dtype());
        let default =
            one.reference(OperatorInputs::new(&[Some(&Tensor::scalar(1_i64))]))?.remove(0);
        let step = inputs.optional(2).unwrap_or(&default);
        let scalar = |tensor: &Tensor| tensor.reshape(&[]);
        let all = [scalar(start)?, scalar(inputs.required(1)?)?, scalar(step)?];
        Range.reference(OperatorInputs::new(&all.each_ref().map(Some)))
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, one, parse, run};
    use galatea_tensor::Tensor;

    #[test]
    fn an_axis_is_inserted_and_a_range_steps_by_one() {
        let axis = Tensor::scalar(-1_i32);
        let found = one("com.microsoft:ExpandDims", 1, &attributes([]), &[&counting(&[2]), &axis]);
        assert_eq!(found, counting(&[2, 1]));
        let start = Tensor::vector(vec![2_i32]);
        let limit = Tensor::scalar(5_i32);
        let found = one("com.microsoft:Range", 1, &attributes([]), &[&start, &limit]);
        assert_eq!(found, Tensor::vector(vec![2_i32, 3, 4]));
    }

    #[test]
    fn what_onnx_has_not_is_refused() {
        let list = attributes([("ndim", int(2))]);
        let error = parse("com.microsoft:CausalConvWithState", 1, &list, 2, 2).unwrap_err();
        assert!(error.contains("ndim"), "{error}");
        let x = counting(&[1, 1, 2]);
        let w = counting(&[1, 1, 2]);
        let inputs = [Some(&x), Some(&w)];
        assert!(run("com.microsoft:CausalConvWithState", 1, &attributes([]), &inputs, 2).is_ok());
    }
}
