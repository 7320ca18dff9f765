//! `TreeEnsembleRegressor`: what decision trees say of targets, from lists of nodes.

use galatea_tensor::DataType;

use super::forest::VoteAggregate;
use super::node_lists::{self, VoteNames};
use super::post_transform::PostTransform;
use super::tree_ensemble::TreeRegression;
use crate::error::OpError;
use crate::operator::{Operator, ParseContext};
use crate::ops::bounds;

const VOTES: VoteNames = VoteNames {
    targets: "target_ids",
    nodes: "target_nodeids",
    trees: "target_treeids",
    weights: "target_weights",
    weights_tensor: "target_weights_as_tensor",
};

/// Reads the attributes of ONNX `TreeEnsembleRegressor` and lays out the trees.
pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
    let attributes = &mut context.attributes;
    let names = ["SUM", "AVERAGE", "MIN", "MAX"];
    let all = [VoteAggregate::Sum, VoteAggregate::Average, VoteAggregate::Min, VoteAggregate::Max];
    let aggregate = all[attributes.choice("aggregate_function", &names, 0)?];
    let post_transform = PostTransform::parse(attributes)?;
    let targets = bounds::length(attributes.int_or("n_targets", 1)?, "n_targets")?;
    let base_values = node_lists::doubles(context, "base_values", "base_values_as_tensor")?;
    let base_values = base_values.unwrap_or_default();
    if !base_values.is_empty() && base_values.len() != targets {
        let found = base_values.len();
        let text = format!("'base_values' has {found} entries for {targets} targets");
        return Err(OpError::new(text));
    }
    let forest = node_lists::parse(context, VOTES, targets)?;
    let result = Some(DataType::Fp32);
    Ok(Box::new(TreeRegression { forest, aggregate, base_values, post_transform, result }))
}

#[cfg(test)]
mod tests {
    use super::super::node_lists::tests::stumps;
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{int, run, tensor, text};
    use galatea_tensor::Tensor;

    fn regress(aggregate: &str, base: &[f32], transform: &str) -> Result<Tensor, String> {
        let mut list = stumps(&[&[(0, 0.5), (0, 0.25)], &[(1, -1.0)]], "target");
        list.insert("n_targets".to_owned(), int(2));
        list.insert("aggregate_function".to_owned(), text(aggregate));
        list.insert("post_transform".to_owned(), text(transform));
        list.insert("base_values".to_owned(), AttributeValue::Floats(base.to_vec()));
        let x = tensor(&[2, 1], &[0.0_f64, 1.0]);
        Ok(run("ai.onnx.ml:TreeEnsembleRegressor", 1, &list, &[Some(&x)], 1)?.remove(0))
    }

    #[test]
    fn votes_are_put_together() {
        let two = |all: [f32; 4]| tensor(&[2, 2], &all);
        assert_eq!(regress("SUM", &[], "NONE").unwrap(), two([0.75, 0.0, 0.0, -1.0]));
        assert_eq!(regress("AVERAGE", &[1.0, 2.0], "NONE").unwrap(), two([1.75, 2.0, 1.0, 1.0]));
        assert_eq!(regress("MIN", &[], "NONE").unwrap(), two([0.25, 0.0, 0.0, -1.0]));
        assert_eq!(regress("MAX", &[], "NONE").unwrap(), two([0.5, 0.0, 0.0, -1.0]));
        let softmax = regress("MAX", &[-0.5, 0.0], "SOFTMAX").unwrap();
        assert_eq!(softmax.to_vec::<f32>().unwrap()[..2], [0.5, 0.5]);
    }

    #[test]
    fn other_functions_and_lengths_are_refused() {
        assert!(regress("MEDIAN", &[], "NONE").unwrap_err().contains("MEDIAN"));
        assert!(regress("SUM", &[1.0], "NONE").unwrap_err().contains("'base_values'"));
    }
}
