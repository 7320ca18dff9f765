//! `FusedMatMul`: a matrix product with what usually follows it.

use galatea_tensor::Tensor;

use super::FusedActivation;
use super::widened::{narrowed, widened};
use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// `activation(A·B + bias + residual)`, with NumPy's batching over leading axes; where it is gated
/// `activation((A·B + bias) ⊙ residual)`.
///
/// Inputs: `A` `[…, M, K]` (rank 1 counts as a row); `B` `[…, K, N]`, or `[…, N, K]` with
/// `trans_b`; optional `bias` `[N]`; optional `residual` that broadcasts with the product.
/// Types: FP32, FP64, FP16, BF16; sums are kept in f64.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FusedMatMul {
    /// True if the last two axes of `B` are swapped.
    pub trans_b: bool,
    /// True if `residual` multiplies, as the gate of a gated MLP does, instead of being added.
    pub gated: bool,
    /// The activation applied last.
    pub activation: FusedActivation,
}

impl FusedMatMul {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let trans_b = context.attributes.flag("trans_b", false)?;
        let gated = context.attributes.flag("gated", false)?;
        Ok(Box::new(Self { trans_b, gated, activation: FusedActivation::parse(context)? }))
    }

    /// Rows of `B`'s matrix and its columns, as (K, N).
    fn b_axes<T: Clone>(&self, shape: &[T]) -> Result<(T, T), OpError> {
        let [.., first, second] = shape else {
            return Err(OpError::new("input B must have two axes or more"));
        };
        let (k, n) = if self.trans_b { (second, first) } else { (first, second) };
        Ok((k.clone(), n.clone()))
    }
}

impl Operator for FusedMatMul {
    fn attributes(&self) -> Option<Attributes> {
        let mut all = named([("trans_b", self.trans_b.into()), ("gated", self.gated.into())]);
        all.extend(self.activation.attributes());
        Some(all)
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        let (Some(a_shape), Some(b_shape)) = (&a.shape, &b.shape) else {
            return Ok(vec![Fact::unranked(a.dtype)]);
        };
        let (k, n) = self.b_axes(b_shape)?;
        let Some((a_k, a_lead)) = a_shape.split_last() else {
            return Err(OpError::new("input A must have one axis or more"));
        };
        if let (Dim::Known(x), Dim::Known(y)) = (a_k, &k)
            && x != y
        {
            return Err(OpError::new(format!("A has {x} columns, B has {y} rows")));
        }
        let lead = |dims: &[Dim]| Fact::new(a.dtype, dims.to_vec());
        let rows = a_lead.last().cloned();
        let a_batch = lead(&a_lead[..a_lead.len().saturating_sub(1)]);
        let b_batch = lead(&b_shape[..b_shape.len() - 2]);
        let mut shape = Fact::broadcast(&[&a_batch, &b_batch])?.unwrap_or_default();
        shape.extend(rows);
        shape.push(n);
        let product = Fact::new(a.dtype, shape);
        let Some(residual) = inputs.optional(3) else { return Ok(vec![product]) };
        Ok(vec![match Fact::broadcast(&[&product, residual])? {
            Some(shape) => Fact::new(a.dtype, shape),
            None => Fact::unranked(a.dtype),
        }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let facts: Vec<Option<Fact>> = (0..inputs.len())
            .map(|at| inputs.optional(at).map(|t| Fact::fixed(t.dtype(), t.shape())))
            .collect();
        let facts: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
        let known = |facts: &[Option<&Fact>]| -> Result<Vec<usize>, OpError> {
            Ok(self.infer(OperatorInputs::new(facts))?.remove(0).known_shape().unwrap_or_default())
        };
        let shape = known(&facts)?;
        let product_shape = known(&facts[..facts.len().min(3)])?;
        let dtype = inputs.required(0)?.dtype();
        let product = self.product(inputs, &product_shape)?;
        let product = Tensor::from_vec(&product_shape, product)?.broadcast_to(&shape)?;
        let more = inputs
            .optional(3)
            .map(|residual| widened(&residual.broadcast_to(&shape)?, dtype))
            .transpose()?;
        let mut sums = product.to_vec::<f64>()?;
        for (at, sum) in sums.iter_mut().enumerate() {
            let joined = match more.as_ref().map(|more| more[at]) {
                None => *sum,
                Some(gate) if self.gated => *sum * gate,
                Some(more) => *sum + more,
            };
            *sum = self.activation.apply(joined);
        }
        Ok(vec![narrowed(dtype, &shape, sums)?])
    }
}

impl FusedMatMul {
    /// The biased product, of this shape.
    fn product(
        &self,
        inputs: OperatorInputs<'_, Tensor>,
        shape: &[usize],
    ) -> Result<Vec<f64>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        let dtype = a.dtype();
        let (k, n) = self.b_axes(b.shape())?;
        let rows = if a.rank() == 1 { 1 } else { a.shape()[a.rank() - 2] };
        let batch = &shape[..shape.len() - if a.rank() == 1 { 1 } else { 2 }];
        let full = |lead: &[usize], rows: usize, cols: usize| [lead, &[rows, cols]].concat();
        let a_rows = if a.rank() == 1 { a.reshape(&[1, k])? } else { a.clone() };
        let a = widened(&a_rows.broadcast_to(&full(batch, rows, k))?, dtype)?;
        let b = if self.trans_b {
            b.broadcast_to(&full(batch, n, k))?
        } else {
            b.broadcast_to(&full(batch, k, n))?
        };
        let b = widened(&b, dtype)?;
        let bias =
            inputs.optional(2).map(|bias| widened(&bias.broadcast_to(&[n])?, dtype)).transpose()?;
        let (k_step, n_step) = if self.trans_b { (1, k) } else { (n, 1) };
        let mut result = Vec::with_capacity(shape.iter().product());
        for row in 0..batch.iter().product::<usize>() * rows {
            let b_start = row / rows.max(1) * k * n;
            for col in 0..n {
                let mut sum = bias.as_ref().map_or(0.0, |bias| bias[col]);
                for at in 0..k {
                    let b_at = b_start + at * k_step + col * n_step;
                    sum += a[row * k + at] * b[b_at];
                }
                result.push(sum);
            }
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(shape: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(shape, values).unwrap()
    }

    #[test]
    fn bias_and_residual_are_added_before_the_activation() {
        let a = floats(&[1, 2], &[1.0, 2.0]);
        let b = floats(&[2, 2], &[1.0, -1.0, 1.0, -1.0]);
        let bias = floats(&[2], &[0.5, 0.5]);
        let residual = floats(&[1, 2], &[10.0, 2.0]);
        let op = FusedMatMul { activation: FusedActivation::Relu, ..FusedMatMul::default() };
        let all = [Some(&a), Some(&b), Some(&bias), Some(&residual)];
        let out = op.reference(OperatorInputs::new(&all)).unwrap();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), [13.5, 0.0]);
    }

    #[test]
    fn a_transposed_b_and_batches_broadcast() {
        let a = floats(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
        let b = floats(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        let op = FusedMatMul { trans_b: true, ..FusedMatMul::default() };
        let out = op.reference(OperatorInputs::new(&[Some(&a), Some(&b)])).unwrap();
        assert_eq!(out[0].shape(), [2, 1, 3]);
        assert_eq!(out[0].to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 3.0, 4.0, 7.0]);
    }

    #[test]
    fn unequal_inner_lengths_are_an_error() {
        let a = floats(&[1, 3], &[0.0; 3]);
        let b = floats(&[2, 2], &[0.0; 4]);
        let error = FusedMatMul::default()
            .reference(OperatorInputs::new(&[Some(&a), Some(&b)]))
            .unwrap_err();
        assert!(error.to_string().contains("3 columns"), "{error}");
    }
}
