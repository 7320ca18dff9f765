//! `TreeEnsemble`: what decision trees say of targets, from branches and leaves.

use galatea_tensor::{DataType, Tensor};

use super::forest::{
    BranchComparison, BranchLink, CheckedForest, ForestBranch, ForestParts, LeafVote, RowScores,
    VoteAggregate,
};
use super::node_lists::{expect_lengths, feature};
use super::post_transform::{self, PostTransform};
use super::rows::{FeatureRows, expect_numbers};
use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{expect_type, floats, from_floats};

/// ONNX `TreeEnsemble` and `TreeEnsembleRegressor`.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeRegression {
    /// The trees.
    pub forest: CheckedForest,
    /// How the trees' votes are put together.
    pub aggregate: VoteAggregate,
    /// Constants added to the targets afterwards; empty for nothing.
    pub base_values: Vec<f64>,
    /// The transform of the targets.
    pub post_transform: PostTransform,
    /// The type of the result where it is not that of the input.
    pub result: Option<DataType>,
}

impl TreeRegression {
    /// Makes the result of what all trees have said about a row.
    pub fn finish(&self, tally: &mut RowScores) {
        if self.aggregate == VoteAggregate::Average {
            #[allow(clippy::cast_precision_loss, reason = "there are less than 2^31 trees")]
            let trees = self.forest.trees().max(1) as f64;
            tally.scores.iter_mut().for_each(|score| *score /= trees);
        }
        for (at, base) in self.base_values.iter().enumerate() {
            tally.add(at, *base);
        }
        self.post_transform.apply(&mut tally.scores);
    }

    fn result(&self, dtype: DataType) -> Result<DataType, OpError> {
        if let Some(result) = self.result {
            return expect_numbers(dtype).map(|()| result);
        }
        let allowed = |found| matches!(found, DataType::Fp16 | DataType::Fp32 | DataType::Fp64);
        expect_type("the input", dtype, allowed, "FP16, FP32 or FP64")?;
        Ok(dtype)
    }
}

impl Operator for TreeRegression {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let dtype = self.result(x.dtype)?;
        let (count, width) = FeatureRows::inferred(x)?;
        width.map_or(Ok(()), |width| self.forest.expect_width(width))?;
        Ok(vec![Fact::new(dtype, vec![count, Dim::Known(self.forest.targets)])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let dtype = self.result(x.dtype())?;
        let rows = FeatureRows::read(x)?;
        let mut scores = Vec::new();
        self.forest.each(&rows, self.aggregate, self.forest.targets, |tally| {
            self.finish(tally);
            scores.extend_from_slice(&tally.scores);
        })?;
        Ok(vec![from_floats(dtype, &[rows.count, self.forest.targets], scores)?])
    }
}

/// The questions by their numbers, but for membership.
const COMPARISONS: [BranchComparison; 6] = [
    BranchComparison::LessOrEqual,
    BranchComparison::Less,
    BranchComparison::GreaterOrEqual,
    BranchComparison::Greater,
    BranchComparison::Equal,
    BranchComparison::NotEqual,
];
/// The number of `BRANCH_MEMBER`.
const MEMBER: i64 = COMPARISONS.len() as i64;

/// Reads a list that must be there.
fn list(context: &mut ParseContext<'_>, name: &'static str) -> Result<Vec<i64>, OpError> {
    let found = context.attributes.ints(name)?;
    found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")))
}

/// Reads a tensor that must be there.
fn tensor(context: &mut ParseContext<'_>, name: &'static str) -> Result<Tensor, OpError> {
    let found = context.attributes.tensor(name)?;
    found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")))
}

/// The questions of all branches, where each membership asks for the next set.
fn comparisons(modes: &[i64], sets: usize) -> Result<Vec<BranchComparison>, OpError> {
    let mut next = 0;
    let mut comparison = |&mode: &i64| {
        if mode == MEMBER {
            next += 1;
            return Ok(BranchComparison::Member(next - 1));
        }
        let known = usize::try_from(mode).ok().and_then(|mode| COMPARISONS.get(mode));
        known.copied().ok_or_else(|| {
            OpError::new(format!("'nodes_modes' has mode {mode}, expected 0 to {MEMBER}"))
        })
    };
    let all = collected(&mut modes.iter().map(&mut comparison))?;
    if next as usize != sets {
        return Err(OpError::new(format!(
            "'membership_values' has {sets} sets for {next} nodes that ask for membership"
        )));
    }
    Ok(all)
}

/// Sets that end with a NaN each; the last may lack it.
fn sets(values: &[f64]) -> Vec<Vec<f64>> {
    let mut sets: Vec<Vec<f64>> = values.split(|value| value.is_nan()).map(<[_]>::to_vec).collect();
    if sets.last().is_some_and(Vec::is_empty) {
        sets.pop();
    }
    sets
}

/// The votes of all leaves, one each.
fn leaves(context: &mut ParseContext<'_>) -> Result<Vec<Vec<LeafVote>>, OpError> {
    let targets = list(context, "leaf_targetids")?;
    let weights = floats(&tensor(context, "leaf_weights")?)?;
    expect_lengths(targets.len(), &[("leaf_weights", weights.len())])?;
    let vote = |(target, &weight): (&i64, &f64)| {
        let target = bounds::length(*target, "an entry of 'leaf_targetids'")?;
        Ok(vec![LeafVote { target, weight }])
    };
    collected(&mut targets.iter().zip(&weights).map(vote))
}

fn branches(context: &mut ParseContext<'_>, sets: usize) -> Result<Vec<ForestBranch>, OpError> {
    let features = list(context, "nodes_featureids")?;
    let yes = list(context, "nodes_truenodeids")?;
    let no = list(context, "nodes_falsenodeids")?;
    let yes_is_leaf = list(context, "nodes_trueleafs")?;
    let no_is_leaf = list(context, "nodes_falseleafs")?;
    let modes = tensor(context, "nodes_modes")?.to_i64_vec()?;
    let thresholds = floats(&tensor(context, "nodes_splits")?)?;
    let missing = context.attributes.ints("nodes_missing_value_tracks_true")?.unwrap_or_default();
    // How often a node is visited matters to nobody here.
    context.attributes.ignore("nodes_hitrates");
    let lists = [
        ("nodes_truenodeids", yes.len()),
        ("nodes_falsenodeids", no.len()),
        ("nodes_trueleafs", yes_is_leaf.len()),
        ("nodes_falseleafs", no_is_leaf.len()),
        ("nodes_modes", modes.len()),
        ("nodes_splits", thresholds.len()),
        ("nodes_missing_value_tracks_true", missing.len()),
    ];
    let optional = usize::from(missing.is_empty());
    expect_lengths(features.len(), &lists[..lists.len() - optional])?;
    let link = |to: i64, leaf: i64, what| {
        let at = bounds::length(to, what)?;
        if leaf == 0 { BranchLink::branch(at) } else { BranchLink::leaf(at) }
    };
    let branch = |(at, comparison): (usize, BranchComparison)| {
        Ok(ForestBranch {
            threshold: thresholds[at],
            comparison,
            feature: feature(features[at])?,
            yes: link(yes[at], yes_is_leaf[at], "an entry of 'nodes_truenodeids'")?,
            no: link(no[at], no_is_leaf[at], "an entry of 'nodes_falsenodeids'")?,
            missing_is_yes: missing.get(at) == Some(&1),
        })
    };
    collected(&mut comparisons(&modes, sets)?.into_iter().enumerate().map(branch))
}

/// Reads the attributes of ONNX `TreeEnsemble` and lays out the trees.
pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
    let attributes = &mut context.attributes;
    let aggregates =
        [VoteAggregate::Average, VoteAggregate::Sum, VoteAggregate::Min, VoteAggregate::Max];
    let numbered = |name: &'static str, number: i64, count: usize| {
        let known = usize::try_from(number).ok().filter(|&number| number < count);
        let text = || format!("attribute '{name}' is {number}, expected 0 to {}", count - 1);
        known.ok_or_else(|| OpError::new(text()))
    };
    let name = "aggregate_function";
    let aggregate = aggregates[numbered(name, attributes.int_or(name, 1)?, aggregates.len())?];
    let name = "post_transform";
    let all = post_transform::ALL;
    let post_transform = all[numbered(name, attributes.int_or(name, 0)?, all.len())?];
    let targets = bounds::length(attributes.int_or("n_targets", 1)?, "n_targets")?;
    let members = attributes.tensor("membership_values")?.map(|members| floats(&members));
    let sets = sets(&members.transpose()?.unwrap_or_default());
    let branches = branches(context, sets.len())?;
    let leaves = leaves(context)?;
    let root = |root| BranchLink::branch(bounds::length(root, "an entry of 'tree_roots'")?);
    let roots = collected(&mut list(context, "tree_roots")?.into_iter().map(root))?;
    let forest = ForestParts { branches, sets, leaves, roots, targets }.build()?;
    let base_values = Vec::new();
    Ok(Box::new(TreeRegression { forest, aggregate, base_values, post_transform, result: None }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::attribute::{AttributeValue, Attributes};
    use crate::ops::testing::{attributes, int, ints, run, tensor};

    /// A branch on a member of {1, 3}, whose no is a branch on less than 7; a tree that is a leaf.
    pub(crate) fn ensemble() -> Attributes {
        let floats = |all: &[f32]| AttributeValue::Tensor(Tensor::vector(all.to_vec()));
        attributes([
            ("n_targets", int(2)),
            ("tree_roots", ints(&[0, 2])),
            ("nodes_featureids", ints(&[0, 0, 0])),
            ("nodes_modes", AttributeValue::Tensor(Tensor::vector(vec![6_u8, 1, 0]))),
            ("nodes_splits", floats(&[0.0, 7.0, 0.0])),
            ("nodes_truenodeids", ints(&[0, 1, 3])),
            ("nodes_falsenodeids", ints(&[1, 2, 3])),
            ("nodes_trueleafs", ints(&[1, 1, 1])),
            ("nodes_falseleafs", ints(&[0, 1, 1])),
            ("leaf_targetids", ints(&[0, 1, 0, 1])),
            ("leaf_weights", floats(&[1.0, 2.0, 4.0, 0.5])),
            ("membership_values", floats(&[3.0, 1.0, f32::NAN])),
        ])
    }

    fn regress(name: &str, value: AttributeValue) -> Result<Tensor, String> {
        let mut list = ensemble();
        list.insert(name.to_owned(), value);
        let x = tensor(&[4, 1], &[3.0_f32, 2.0, 8.0, f32::NAN]);
        Ok(run("ai.onnx.ml:TreeEnsemble", 5, &list, &[Some(&x)], 1)?.remove(0))
    }

    #[test]
    fn members_and_thresholds_lead_to_leaves() {
        let found = regress("post_transform", int(0)).unwrap();
        let sum = [1.0_f32, 0.5, 0.0, 2.5, 4.0, 0.5, 4.0, 0.5];
        assert_eq!(found, tensor(&[4, 2], &sum));
        let found = regress("aggregate_function", int(0)).unwrap();
        assert_eq!(found, tensor(&[4, 2], &sum.map(|one| one / 2.0)));
        let found = regress("aggregate_function", int(3)).unwrap();
        assert_eq!(found.to_vec::<f32>().unwrap()[3], 2.0);
        let found = regress("nodes_missing_value_tracks_true", ints(&[1, 0, 0])).unwrap();
        assert_eq!(found.to_vec::<f32>().unwrap()[6..], [1.0, 0.5]);
    }

    #[test]
    fn what_is_no_ensemble_is_refused() {
        let modes = |all: [u8; 3]| AttributeValue::Tensor(Tensor::vector(all.to_vec()));
        for (name, value, expected) in [
            ("nodes_modes", modes([6, 7, 0]), "mode 7"),
            ("nodes_modes", modes([6, 6, 0]), "1 sets for 2 nodes"),
            ("tree_roots", ints(&[3]), "no node 3"),
            ("tree_roots", ints(&[-1]), "is -1"),
            ("nodes_falseleafs", ints(&[0, 0, 1]), "back"),
            ("nodes_truenodeids", ints(&[0, 1, 4]), "no leaf 4"),
            ("leaf_targetids", ints(&[0, 1, 2, 1]), "target 2 of 2"),
            ("leaf_targetids", ints(&[0, 1]), "'leaf_weights' has 4"),
            ("aggregate_function", int(4), "expected 0 to 3"),
            ("post_transform", int(-1), "expected 0 to 4"),
            ("n_targets", int(i64::MAX), "takes more bytes"),
        ] {
            if name == "nodes_falseleafs" {
                let mut list = ensemble();
                list.insert(name.to_owned(), value);
                list.insert("nodes_falsenodeids".to_owned(), ints(&[1, 0, 3]));
                let x = tensor(&[1, 1], &[3.0_f32]);
                let error = run("ai.onnx.ml:TreeEnsemble", 5, &list, &[Some(&x)], 1).unwrap_err();
                assert!(error.contains(expected), "{error}");
                continue;
            }
            let error = regress(name, value).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
