//! `NegativeLogLikelihoodLoss` and `SoftmaxCrossEntropyLoss`.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::lanes::AxisLanes;
use crate::ops::values::{expect_float, floats, from_floats};

/// Reduction of the losses of all targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReduction {
    /// Nothing.
    None,
    /// They are summed.
    Sum,
    /// Their sum is divided by that of the weights.
    Mean,
}

/// ONNX `NegativeLogLikelihoodLoss`, or with `softmax` `SoftmaxCrossEntropyLoss`.
///
/// Inputs: logarithms of probabilities (scores of any size with `softmax`) `[N, C, d1 …]`, classes
/// `[N, d1 …]`, optionally a weight for each class. Outputs: the loss and, with `softmax`, the
/// logarithms of the probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegativeLogLikelihoodLoss {
    /// How losses are combined.
    pub reduction: LossReduction,
    /// A class that does not count.
    pub ignore_index: Option<i64>,
    /// True if the input is brought to logarithms of probabilities first.
    pub softmax: bool,
}

impl NegativeLogLikelihoodLoss {
    fn read(context: &mut ParseContext<'_>, softmax: bool) -> Result<Box<dyn Operator>, OpError> {
        let reductions = [LossReduction::None, LossReduction::Sum, LossReduction::Mean];
        let choice = context.attributes.choice("reduction", &["none", "sum", "mean"], 2)?;
        let ignore_index = context.attributes.int("ignore_index")?;
        Ok(Box::new(Self { reduction: reductions[choice], ignore_index, softmax }))
    }

    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Self::read(context, false)
    }

    pub(super) fn parse_softmax(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Self::read(context, true)
    }

    /// The class of a target, unless it does not count.
    fn class(&self, target: i64, classes: usize) -> Result<Option<usize>, OpError> {
        if self.ignore_index == Some(target) {
            return Ok(None);
        }
        let class = usize::try_from(target).ok().filter(|class| *class < classes);
        class.map(Some).ok_or_else(|| OpError::new(format!("class {target} of {classes} classes")))
    }

    /// Loss and weight of each target.
    fn losses(
        &self,
        logs: &[f64],
        lanes: AxisLanes,
        targets: &[i64],
        weights: Option<&[f64]>,
    ) -> Result<(Vec<f64>, Vec<f64>), OpError> {
        let mut all = (Vec::with_capacity(targets.len()), Vec::with_capacity(targets.len()));
        for (start, &target) in lanes.starts().zip(targets) {
            let class = self.class(target, lanes.len)?;
            let weight = class.map_or(0.0, |class| weights.map_or(1.0, |all| all[class]));
            all.0.push(class.map_or(0.0, |class| -weight * logs[start + class * lanes.inner]));
            all.1.push(weight);
        }
        Ok(all)
    }
}

/// Brings scores along lanes to logarithms of probabilities.
fn log_softmax(all: &mut [f64], lanes: AxisLanes) {
    for start in lanes.starts() {
        let max = lanes.lane(start).map(|at| all[at]).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = lanes.lane(start).map(|at| (all[at] - max).exp()).sum();
        lanes.lane(start).for_each(|at| all[at] -= max + sum.ln());
    }
}

/// The shape of the targets for one of the scores.
fn target_shape<T: Clone>(scores: &[T]) -> Result<Vec<T>, OpError> {
    match scores {
        [batch, _, spatial @ ..] => Ok([std::slice::from_ref(batch), spatial].concat()),
        _ => Err(OpError::new(format!("scores of rank {}, expected 2 or more", scores.len()))),
    }
}

impl Operator for NegativeLogLikelihoodLoss {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let scores = inputs.required(0)?;
        expect_float(scores.dtype)?;
        let each = scores.shape.as_deref().map(target_shape).transpose()?;
        let shape = if self.reduction == LossReduction::None { each } else { Some(Vec::new()) };
        let loss = Fact::shaped(scores.dtype, shape);
        let logs = Fact { value: None, elements: None, ..scores.clone() };
        Ok(if self.softmax { vec![loss, logs] } else { vec![loss] })
    }

    #[allow(clippy::cast_precision_loss, reason = "a tensor has fewer than 2^53 elements")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let scores = inputs.required(0)?;
        let targets = inputs.required(1)?;
        let shape = target_shape(scores.shape())?;
        if targets.shape() != shape {
            return Err(OpError::new(format!(
                "classes of shape {:?} for scores of shape {:?}",
                targets.shape(),
                scores.shape()
            )));
        }
        let lanes = AxisLanes::along(scores.shape(), 1);
        let mut logs = floats(scores)?;
        if self.softmax {
            log_softmax(&mut logs, lanes);
        }
        let weights = inputs.optional(2).map(floats).transpose()?;
        if let Some(weights) = &weights
            && weights.len() != lanes.len
        {
            return Err(OpError::new(format!(
                "{} weights for {} classes",
                weights.len(),
                lanes.len
            )));
        }
        let targets = targets.to_i64_vec()?;
        let (losses, weights) = self.losses(&logs, lanes, &targets, weights.as_deref())?;
        let sum: f64 = losses.iter().sum();
        let dtype: DataType = scores.dtype();
        let loss = match self.reduction {
            LossReduction::None => from_floats(dtype, &shape, losses)?,
            LossReduction::Sum => from_floats(dtype, &[], vec![sum])?,
            LossReduction::Mean => {
                let total: f64 = weights.iter().sum();
                from_floats(dtype, &[], vec![sum / total])?
            }
        };
        Ok(if self.softmax {
            vec![loss, from_floats(dtype, scores.shape(), logs)?]
        } else {
            vec![loss]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, run, tensor, text};

    #[test]
    fn losses_are_weighed_ignored_and_combined() {
        let logs = tensor(&[3, 2], &[-1.0_f32, -2.0, -3.0, -4.0, -5.0, -6.0]);
        let classes = Tensor::vector(vec![0_i64, 1, 7]);
        let weights = Tensor::vector(vec![1.0_f32, 3.0]);
        let of = |reduction: &str| {
            let list = attributes([("reduction", text(reduction)), ("ignore_index", int(7))]);
            one("NegativeLogLikelihoodLoss", 13, &list, &[&logs, &classes, &weights])
        };
        assert_eq!(of("none"), tensor(&[3], &[1.0_f32, 12.0, 0.0]));
        assert_eq!(of("sum"), Tensor::scalar(13.0_f32));
        assert_eq!(of("mean"), Tensor::scalar(3.25_f32));
        let none = attributes([]);
        let inputs = [Some(&logs), Some(&classes)];
        assert!(run("NegativeLogLikelihoodLoss", 13, &none, &inputs, 1).is_err());
    }

    #[test]
    fn scores_become_logarithms_of_probabilities() {
        let scores = tensor(&[1, 2, 1], &[1000.0_f32, 1000.0]);
        let classes = tensor(&[1, 1], &[1_i32]);
        let inputs = [Some(&scores), Some(&classes)];
        let all = run("SoftmaxCrossEntropyLoss", 13, &attributes([]), &inputs, 2).unwrap();
        let half = std::f32::consts::LN_2;
        assert_eq!(all[0], Tensor::scalar(half));
        assert_eq!(all[1], tensor(&[1, 2, 1], &[-half, -half]));
    }
}
