//! `FlexAttention`: attention whose scores and weights pass through subgraphs.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use super::heads::{ScoreOptions, ScoreStage, WideHeads, attend, softmax};
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::graph::OperatorBody;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};
use crate::ops::values::{expect_float, floats, from_floats};

/// `FlexAttention` of domain `ai.onnx.preview`.
///
/// Inputs: `Q` `[B, H, S, D]`, `K` `[B, Hkv, T, D]`, `V` `[B, Hkv, T, E]`, and what the subgraphs
/// capture. Output: `[B, H, S, E]`. Each subgraph takes and gives `[B, H, S, T]`.
#[derive(Clone, Debug)]
pub struct FlexAttention {
    /// Factor on the scores; `1/√D` if absent.
    pub scale: Option<f32>,
    /// The type that the subgraphs see; if absent FP64 for FP64 inputs, else FP32.
    pub softmax_precision: Option<DataType>,
    /// The subgraph of scores and that of weights, as far as there are any.
    pub bodies: Vec<OperatorBody>,
    /// True if the first subgraph is that of scores.
    pub has_score_mod: bool,
}

impl FlexAttention {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut bodies = Vec::new();
        let has_score_mod = context.attributes.all().contains_key("score_mod");
        for name in ["score_mod", "prob_mod"] {
            if context.attributes.all().contains_key(name) {
                let body = context.body(name)?;
                body.check(1, 1)?;
                bodies.push(body);
            }
        }
        let softmax_precision = context.data_type("softmax_precision")?;
        softmax_precision.map_or(Ok(()), expect_float)?;
        let scale = context.attributes.float("scale")?;
        Ok(Box::new(Self { scale, softmax_precision, bodies, has_score_mod }))
    }

    fn score_mod(&self) -> Option<usize> {
        self.has_score_mod.then_some(0)
    }

    fn prob_mod(&self) -> Option<usize> {
        let at = usize::from(self.has_score_mod);
        (at < self.bodies.len()).then_some(at)
    }

    fn seen_type(&self, input: DataType) -> DataType {
        let default = if input == DataType::Fp64 { input } else { DataType::Fp32 };
        self.softmax_precision.unwrap_or(default)
    }

    /// Returns the fact of the tensor of scores that the subgraphs take.
    fn seen(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Fact, OpError> {
        let q = inputs.required(0)?;
        let k = inputs.required(1)?;
        let dim = |fact: &Fact, axis: usize| {
            let found = fact.shape.as_ref().and_then(|dims| dims.get(axis).cloned());
            found.unwrap_or(Dim::Unknown)
        };
        let shape = vec![dim(q, 0), dim(q, 1), dim(q, 2), dim(k, 2)];
        Ok(Fact::new(self.seen_type(q.dtype), shape))
    }

    /// A tensor after a subgraph, if there is one.
    fn modified(
        &self,
        body: Option<usize>,
        captured: &mut [Vec<Datum>],
        tensor: Tensor,
    ) -> Result<Tensor, OpError> {
        let Some(at) = body else { return Ok(tensor) };
        let shape = tensor.shape().to_vec();
        let dtype = tensor.dtype();
        let own = vec![Datum::Tensor(tensor)];
        let given = self.bodies[at].run(own, std::mem::take(&mut captured[at]))?;
        let missing = || OpError::new("a subgraph gave nothing");
        let result = given.into_iter().next().ok_or_else(missing)?.into_tensor()?;
        if result.shape() == shape && result.dtype() == dtype {
            return Ok(result);
        }
        Err(OpError::new(format!(
            "'{}' gave {}{:?}, expected {dtype}{shape:?}",
            self.bodies[at].name(),
            result.dtype(),
            result.shape()
        )))
    }
}

/// Weighted sums of values.
fn weigh(weights: &Tensor, v: &WideHeads) -> Result<WideHeads, OpError> {
    let Ok([b, h, s, t]) = <[usize; 4]>::try_from(weights.shape()) else {
        return Err(OpError::new("weights have four axes"));
    };
    let ([_, groups, _, e], all) = (v.shape, floats(weights)?);
    let mut values = Vec::with_capacity(b * h * s * e);
    for row in 0..b * h * s {
        let batch = row / (h * s);
        let head = row / s % h;
        let group = head / (h / groups);
        let mut sums = vec![0.0; e];
        for (key, weight) in all[row * t..(row + 1) * t].iter().enumerate() {
            let value = v.vector(batch, group, key);
            sums.iter_mut().zip(value).for_each(|(sum, x)| *sum += weight * x);
        }
        values.extend(sums);
    }
    Ok(WideHeads { shape: [b, h, s, e], values })
}

impl Operator for FlexAttention {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let q = inputs.required(0)?;
        let v = inputs.required(2)?;
        expect_float(q.dtype)?;
        for body in &self.bodies {
            body.infer(&[Some(self.seen(inputs)?)], inputs)?;
        }
        let mut shape = q.shape.clone().unwrap_or_else(|| vec![Dim::Unknown; 4]);
        if let Some(last) = shape.last_mut() {
            let width = v.shape.as_ref().and_then(|dims| dims.last().cloned());
            *last = width.unwrap_or(Dim::Unknown);
        }
        Ok(vec![Fact::new(q.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let captured = self.bodies.iter().map(|body| body.capture(&mut inputs));
        let mut captured = captured.collect::<Result<Vec<_>, _>>()?;
        let mut tensor = |at: usize| {
            let datum = inputs.get_mut(at).and_then(Option::take);
            datum.ok_or_else(|| OpError::new(format!("input {at} is missing")))?.into_tensor()
        };
        let q = tensor(0)?;
        let k = tensor(1)?;
        let v = tensor(2)?;
        let dtype = q.dtype();
        let read = |tensor: &Tensor, what: &str| WideHeads::read(tensor, None, what);
        let q = read(&q, "Q")?;
        let k = read(&k, "K")?;
        let v = read(&v, "V")?;
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        let scale = self.scale.map_or_else(|| 1.0 / (q.shape[3] as f64).sqrt(), f64::from);
        let bias = |_: [usize; 4]| 0.0;
        let stage = Some(ScoreStage::Raw);
        let scoring = ScoreOptions { scale, softcap: 0.0, bias: &bias, sink: None, stage };
        let scores = attend(&q, &k, &v, &scoring)?.scores;
        let scores = scores.write(self.seen_type(dtype))?;
        let scores = self.modified(self.score_mod(), &mut captured, scores)?;
        let mut weights = floats(&scores)?;
        weights.chunks_mut(k.shape[2].max(1)).for_each(|row| softmax(row, None));
        let weights = from_floats(scores.dtype(), scores.shape(), weights)?;
        let weights = self.modified(self.prob_mod(), &mut captured, weights)?;
        Ok(vec![Datum::Tensor(weigh(&weights, &v)?.write(dtype)?)])
    }

    /// Not folded: a subgraph may hold anything.
    fn is_deterministic(&self) -> bool {
        self.bodies.is_empty()
    }

    fn bodies(&self) -> &[OperatorBody] {
        &self.bodies
    }

    fn body_facts(
        &self,
        body: usize,
        inputs: OperatorInputs<'_, Fact>,
    ) -> Result<Vec<Option<Fact>>, OpError> {
        Ok(self.bodies[body].input_facts(&[Some(self.seen(inputs)?)], inputs))
    }

    fn with_bodies(&self, bodies: Vec<OperatorBody>) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(Self { bodies, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn without_subgraphs_it_is_attention() {
        let q = tensor(&[1, 2, 1, 1], &[0.0_f32, 0.0]);
        let k = tensor(&[1, 1, 2, 1], &[1.0_f32, 5.0]);
        let v = tensor(&[1, 1, 2, 2], &[1.0_f32, 2.0, 3.0, 6.0]);
        let found = one("ai.onnx.preview:FlexAttention", 1, &attributes([]), &[&q, &k, &v]);
        assert_eq!(found, tensor(&[1, 2, 1, 2], &[2.0_f32, 4.0, 2.0, 4.0]));
        let inputs = [Some(&k), Some(&q), Some(&v)];
        let wrong = run("ai.onnx.preview:FlexAttention", 1, &attributes([]), &inputs, 1);
        assert!(wrong.is_err());
    }
}
