//! Versions before 7, expressed by newer ones.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// An operator of two tensors whose second one lies along the axes of the first one from a given
/// axis on: before version 7 broadcasting did not align the last axes.
#[derive(Debug)]
pub(crate) struct AlongAxis {
    inner: Box<dyn Operator>,
    axis: i64,
}

impl AlongAxis {
    pub(crate) fn boxed(inner: Box<dyn Operator>, axis: i64) -> Box<dyn Operator> {
        Box::new(Self { inner, axis })
    }

    /// Reads the attributes `broadcast` and `axis`. Without an axis the last ones are aligned, as
    /// they are from version 7 on.
    pub(crate) fn parse(
        context: &mut ParseContext<'_>,
        inner: Result<Box<dyn Operator>, OpError>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let broadcast = context.attributes.flag("broadcast", false)?;
        let axis = context.attributes.int("axis")?.filter(|_| broadcast);
        Ok(match axis {
            Some(axis) => Self::boxed(inner?, axis),
            None => inner?,
        })
    }

    /// How many axes of length 1 the second operand lacks at its end.
    fn missing(&self, first: usize, second: usize) -> Result<usize, OpError> {
        let signed = i64::try_from(first).unwrap_or(i64::MAX);
        let axis = if self.axis < 0 { self.axis.saturating_add(signed) } else { self.axis };
        let end = usize::try_from(axis).ok().and_then(|axis| axis.checked_add(second));
        end.and_then(|end| first.checked_sub(end)).ok_or_else(|| {
            OpError::new(format!(
                "{second} axes from axis {} on leave a tensor of rank {first}",
                self.axis
            ))
        })
    }
}

impl Operator for AlongAxis {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let first = inputs.required(0)?;
        let second = inputs.required(1)?;
        let shape = match (&first.shape, &second.shape) {
            (Some(a), Some(b)) => {
                let missing = self.missing(a.len(), b.len())?;
                Some([&b[..], &vec![Dim::Known(1); missing]].concat())
            }
            _ => None,
        };
        let second = Fact { shape, value: None, elements: None, ..second.clone() };
        self.inner.infer(OperatorInputs::new(&[Some(first), Some(&second)]))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let first = inputs.required(0)?;
        let second = inputs.required(1)?;
        let missing = self.missing(first.rank(), second.rank())?;
        let second = second.reshape(&[second.shape(), &vec![1; missing]].concat())?;
        self.inner.reference(OperatorInputs::new(&[Some(first), Some(&second)]))
    }
}

/// An operator some of whose inputs were attributes: they come after the node's own.
#[derive(Debug)]
pub(crate) struct WithConstants {
    inner: Box<dyn Operator>,
    constants: Vec<Tensor>,
}

impl WithConstants {
    pub(crate) fn boxed(inner: Box<dyn Operator>, constants: Vec<Tensor>) -> Box<dyn Operator> {
        Box::new(Self { inner, constants })
    }
}

impl Operator for WithConstants {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let facts: Vec<Fact> = self.constants.iter().cloned().map(Fact::constant).collect();
        let own = (0..inputs.len()).map(|index| inputs.optional(index));
        let all: Vec<Option<&Fact>> = own.chain(facts.iter().map(Some)).collect();
        self.inner.infer(OperatorInputs::new(&all))
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let own = (0..inputs.len()).map(|index| inputs.optional(index));
        let all: Vec<Option<&Tensor>> = own.chain(self.constants.iter().map(Some)).collect();
        self.inner.reference(OperatorInputs::new(&all))
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, counting, int, ints, one, run, tensor, text};

    #[test]
    fn the_second_operand_lies_along_the_axes_that_are_named() {
        let a = counting(&[2, 2, 2]);
        let b = Tensor::vector(vec![10.0_f32, 20.0]);
        let of = |axis: i64| {
            let list = attributes([("broadcast", int(1)), ("axis", int(axis))]);
            one("Add", 6, &list, &[&a, &b]).to_vec::<f32>().unwrap()
        };
        assert_eq!(of(0), [10.0, 11.0, 12.0, 13.0, 24.0, 25.0, 26.0, 27.0]);
        assert_eq!(of(1), [10.0, 11.0, 22.0, 23.0, 14.0, 15.0, 26.0, 27.0]);
        assert_eq!(of(-1), [10.0, 21.0, 12.0, 23.0, 14.0, 25.0, 16.0, 27.0]);
        let last = attributes([("broadcast", int(1))]);
        assert_eq!(one("Add", 1, &last, &[&a, &b]).to_vec::<f32>().unwrap(), of(2));
        let beyond = attributes([("broadcast", int(1)), ("axis", int(3))]);
        assert!(run("Add", 6, &beyond, &[Some(&a), Some(&b)], 1).is_err());
        let slope = Tensor::vector(vec![1.0_f32, -1.0]);
        let found =
            one("PRelu", 6, &attributes([]), &[&tensor(&[1, 2, 1], &[-3.0_f32; 2]), &slope]);
        assert_eq!(found, tensor(&[1, 2, 1], &[-3.0_f32, 3.0]));
    }

    #[test]
    fn what_are_inputs_now_were_attributes() {
        let x = counting(&[2, 3]);
        let list = attributes([("shape", ints(&[3, -1])), ("consumed_inputs", ints(&[0]))]);
        assert_eq!(one("Reshape", 1, &list, &[&x]), counting(&[3, 2]));
        let list = attributes([("paddings", ints(&[0, 1, 0, 0]))]);
        assert_eq!(one("Pad", 1, &list, &[&x]).shape(), [2, 4]);
        let tiles = Tensor::scalar(2.0_f32);
        let axis = Tensor::scalar(0.0_f32);
        assert_eq!(one("Tile", 1, &attributes([]), &[&x, &tiles, &axis]).shape(), [4, 3]);
        let lengths = Tensor::vector(vec![1_i64, 2]);
        let list = attributes([("axis", int(1))]);
        let parts = run("Split", 1, &list, &[Some(&x), Some(&lengths)], 2).unwrap();
        assert_eq!((parts[0].shape(), parts[1].shape()), (&[2, 1][..], &[2, 2][..]));
        let scale = |value| AttributeValue::Float(value);
        let list = attributes([("height_scale", scale(2.0)), ("width_scale", scale(1.0))]);
        let image = counting(&[1, 1, 2, 1]);
        let expected = tensor(&[1, 1, 4, 1], &[0.0_f32, 0.0, 1.0, 1.0]);
        assert_eq!(one("Upsample", 1, &list, &[&image]), expected);
        assert_eq!(
            one("Cast", 1, &attributes([("to", text("INT32"))]), &[&x]).to_i64_vec().unwrap()[5],
            5
        );
        assert_eq!(one("Concat", 1, &attributes([]), &[&x, &x]).shape(), [2, 6]);
    }

    #[test]
    fn a_hint_of_old_versions_is_unknown_to_new_ones() {
        let x = counting(&[2]);
        let list = attributes([("consumed_inputs", ints(&[0]))]);
        assert_eq!(one("Relu", 1, &list, &[&x]), x);
        assert!(run("Relu", 6, &list, &[Some(&x)], 1).is_err());
    }
}
