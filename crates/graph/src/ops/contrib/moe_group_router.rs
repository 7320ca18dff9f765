//! `MoEGroupRouter`: chooses experts within the best groups of them.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{expect_float, floats, from_floats};

/// Least probability whose logarithm is taken.
const LEAST: f64 = 1e-20;

/// `MoEGroupRouter` of domain `com.microsoft`, without its outputs of all scores.
///
/// Inputs: scores `[…, experts]`, and what is added to the probabilities of experts before they are chosen. Output:
/// logarithms of the probabilities of the chosen experts, and a fixed number for all others `[tokens, experts]`. A
/// probability is the sigmoid of a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertGroups {
    /// Experts of a token.
    pub experts: usize,
    /// Groups of experts.
    pub groups: usize,
    /// Groups that a token chooses from.
    pub chosen_groups: usize,
    /// Greatest experts of a group whose sum is its own score.
    pub best_of_group: usize,
    /// The number for experts that are not chosen.
    pub others: f32,
}

impl ExpertGroups {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        if context.outputs != 1 {
            return Err(OpError::new("the scores of all experts are wanted, which are not known"));
        }
        let mut positive = |name: &'static str, default: Option<i64>| -> Result<usize, OpError> {
            let found = context.attributes.int(name)?.or(default);
            let found = found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")));
            match bounds::length(found?, name)? {
                0 => Err(OpError::new(format!("attribute '{name}' is 0"))),
                count => Ok(count),
            }
        };
        Ok(Box::new(Self {
            experts: positive("top_k", None)?,
            groups: positive("n_group", Some(1))?,
            chosen_groups: positive("topk_group", Some(1))?,
            best_of_group: positive("group_topk", Some(2))?,
            others: context.attributes.float_or("router_sentinel", -1e4)?,
        }))
    }

    /// Chooses the experts of a token by their scores.
    fn choose(&self, scores: &[f64]) -> Vec<usize> {
        let size = scores.len() / self.groups;
        let of_group = |group: usize| {
            let best = greatest(scores, group * size..(group + 1) * size, self.best_of_group);
            best.into_iter().map(|expert| scores[expert]).sum::<f64>()
        };
        let sums: Vec<f64> = (0..self.groups).map(of_group).collect();
        let mut groups = greatest(&sums, 0..self.groups, self.chosen_groups);
        groups.sort_unstable();
        let candidates = groups.into_iter().flat_map(|group| group * size..(group + 1) * size);
        greatest(scores, candidates, self.experts)
    }
}

/// Places of the greatest scores, the greatest first and of equal ones the first.
fn greatest(scores: &[f64], among: impl Iterator<Item = usize>, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = among.collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order.truncate(count);
    order
}

impl Operator for ExpertGroups {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let logits = inputs.required(0)?;
        expect_float(logits.dtype)?;
        expect_float(inputs.required(1)?.dtype)?;
        let experts = logits.shape.as_ref().and_then(|dims| dims.last().cloned());
        let tokens = match logits.shape.as_deref() {
            Some([tokens, _]) => tokens.clone(),
            _ => Dim::Unknown,
        };
        Ok(vec![Fact::new(logits.dtype, vec![tokens, experts.unwrap_or(Dim::Unknown)])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let logits = inputs.required(0)?;
        let bias = floats(inputs.required(1)?)?;
        let experts = logits.shape().last().copied().unwrap_or(0);
        let sound = experts > 0
            && bias.len() == experts
            && experts.is_multiple_of(self.groups)
            && self.chosen_groups <= self.groups
            && self.experts <= experts / self.groups * self.chosen_groups;
        if !sound {
            let text = format!("{} of {experts} experts with {} biases", self.experts, bias.len());
            let groups = format!("in {} of {} groups", self.chosen_groups, self.groups);
            return Err(OpError::new(format!("{text} {groups}")));
        }
        let mut all = floats(logits)?;
        for row in all.chunks_mut(experts) {
            let shares: Vec<f64> = row.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect();
            let scores: Vec<f64> = shares.iter().zip(&bias).map(|(s, b)| s + b).collect();
            row.fill(f64::from(self.others));
            for expert in self.choose(&scores) {
                row[expert] = shares[expert].max(LEAST).ln();
            }
        }
        let shape = [all.len() / experts, experts];
        Ok(vec![from_floats(logits.dtype(), &shape, all)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::AttributeValue;
    use crate::attribute::Attributes;
    use crate::ops::testing::{int, one, run, tensor};

    fn list(numbers: &[(&str, i64)]) -> Attributes {
        numbers.iter().map(|&(name, value)| (name.to_owned(), int(value))).collect()
    }

    // Expected values are those of ONNX Runtime.
    #[test]
    fn experts_are_chosen_within_the_best_groups() {
        let scores = [0.1_f32, 2.0, -1.0, 0.5, 1.5, -0.5, 3.0, -2.0, 0.0, 1.0, 0.2, 0.3];
        let scores = tensor(&[2, 6], &scores);
        let bias = Tensor::vector(vec![0.0_f32, -0.5, 0.9, 0.0, 0.0, 0.1]);
        let name = "com.microsoft:MoEGroupRouter";
        let found = one(name, 1, &list(&[("top_k", 2)]), &[&scores, &bias]);
        let none = -10000.0;
        let expected = [
            none,
            none,
            -1.313_261_6,
            none,
            -0.201_413_32,
            none,
            -0.048_587_345,
            none,
            -std::f32::consts::LN_2,
            none,
            none,
            none,
        ];
        for (found, expected) in found.to_vec::<f32>().unwrap().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        let mut groups =
            list(&[("top_k", 2), ("n_group", 2), ("topk_group", 1), ("group_topk", 2)]);
        groups.insert("router_sentinel".to_owned(), AttributeValue::Float(-7.0));
        let found = one(name, 1, &groups, &[&scores, &bias]).to_vec::<f32>().unwrap();
        assert!((found[0] + 0.644_396_66).abs() < 1e-6 && found[1] == -7.0 && found[4] == -7.0);
        let inputs = [Some(&scores), Some(&bias)];
        for wrong in [
            list(&[]),
            list(&[("top_k", 0)]),
            list(&[("top_k", 7)]),
            list(&[("top_k", 1), ("n_group", 4)]),
            list(&[("top_k", 1), ("topk_group", 2)]),
        ] {
            assert!(run(name, 1, &wrong, &inputs, 1).is_err(), "{wrong:?}");
        }
    }
}
