//! `Where`: elements of one of two tensors.

use galatea_tensor::{DataType, Element, Tensor, broadcast_shapes, with_carrier};

use super::logical::expect_bool;
use crate::attribute::Attributes;
use crate::collect::collected_some;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs};
use crate::ops::bounds::carried;
use crate::ops::values::{broadcast, expect_same};

/// The element of the second input where the first input is true, else of the third.
///
/// Shapes: any three that broadcast; the result has the common shape. The second and third have
/// one type, which may be any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Where;

fn check(condition: DataType, a: DataType, b: DataType) -> Result<(), OpError> {
    expect_bool(condition)?;
    expect_same(a, b)
}

/// Elements of the result as lengths, where the condition is known.
fn lengths(condition: &Fact, a: &Fact, b: &Fact) -> Option<Vec<Dim>> {
    let condition = condition.value.as_ref().filter(|value| value.rank() <= 1)?;
    let condition = condition.to_vec::<bool>().ok()?;
    let a = carried(a)?;
    let b = carried(b)?;
    let count = condition.len().max(a.len()).max(b.len());
    let at = |len: usize, index: usize| if len == 1 { 0 } else { index };
    collected_some(&mut (0..count).map(|index| {
        let from = if *condition.get(at(condition.len(), index))? { &a } else { &b };
        from.get(at(from.len(), index)).cloned()
    }))
}

fn chosen<T: Element>(condition: Vec<bool>, a: &Tensor, b: &Tensor) -> Result<Tensor, OpError> {
    let mut all = a.to_carriers::<T>()?;
    for ((slot, first), other) in all.iter_mut().zip(condition).zip(b.to_carriers::<T>()?) {
        let own = std::mem::take(slot);
        *slot = if first { own } else { other };
    }
    Ok(Tensor::from_carriers(a.dtype(), a.shape(), all)?)
}

impl Operator for Where {
    fn attributes(&self) -> Option<Attributes> {
        Some(Attributes::new())
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let condition = inputs.required(0)?;
        let a = inputs.required(1)?;
        let b = inputs.required(2)?;
        check(condition.dtype, a.dtype, b.dtype)?;
        let shape = Fact::broadcast(&[condition, a, b])?;
        let elements = lengths(condition, a, b);
        let fact = Fact::shaped(a.dtype, shape);
        Ok(vec![fact.with_elements(elements)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let condition = inputs.required(0)?;
        let a = inputs.required(1)?;
        let b = inputs.required(2)?;
        check(condition.dtype(), a.dtype(), b.dtype())?;
        let shape = broadcast_shapes(condition.shape(), a.shape())?;
        let shape = broadcast_shapes(&shape, b.shape())?;
        let condition = broadcast(condition, &shape)?.to_vec::<bool>()?;
        let a = broadcast(a, &shape)?;
        let b = broadcast(b, &shape)?;
        Ok(vec![with_carrier!(a.dtype(), T => chosen::<T>(condition, &a, &b))?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::ByteString;

    use super::*;
    use crate::ops::testing::{attributes, inferred, one};

    #[test]
    fn three_shapes_broadcast_and_strings_are_chosen_too() {
        let condition = Tensor::from_vec(&[2, 1], vec![true, false]).unwrap();
        let a = Tensor::vector(vec![ByteString::from("a"), ByteString::from("b")]);
        let b = Tensor::scalar(ByteString::from("-"));
        let found = one("Where", 9, &attributes([]), &[&condition, &a, &b]);
        let expected = ["a", "b", "-", "-"].map(ByteString::from).to_vec();
        assert_eq!(found, Tensor::from_vec(&[2, 2], expected).unwrap());
    }

    #[test]
    fn lengths_are_chosen_where_the_condition_is_known() {
        let condition = Fact::constant(Tensor::vector(vec![true, false]));
        let batch = Dim::symbol("batch");
        let a = Fact::fixed(DataType::Int64, &[2])
            .with_elements(Some(vec![batch.clone(), Dim::Known(9)]));
        let b = Fact::constant(Tensor::scalar(4_i64));
        let fact = inferred("Where", 16, &attributes([]), &[&condition, &a, &b]).unwrap();
        assert_eq!(fact.elements.unwrap(), [batch, Dim::Known(4)]);
    }
}
