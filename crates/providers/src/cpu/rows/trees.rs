//! Ensembles of decision trees.

use std::any::Any;
use std::sync::Arc;

use galatea_graph::ops::ml::{
    BranchComparison, BranchLink, CheckedForest, ClassifierLabels, ForestBranch, PostTransform,
    RowScores, ScorePrecision, TreeEnsembleClassifier, TreeRegression, VoteAggregate,
};
use galatea_graph::{ML_DOMAIN, OpError, Operator};
use galatea_kernels::trees::{GivenTreeNode, PreparedTrees};
use galatea_tensor::DataType;

use crate::cpu::{CpuKernel, CpuKernelRow, CpuStep, NodeShapes, StepCall, WeightBytes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[CpuKernelRow {
    name: "trees-f32",
    domain: ML_DOMAIN,
    ops: &["TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"],
    supports: |view| {
        let ensemble = TreeEnsembleKernel::of(&*view.node.operator)?;
        view.floats(&[0]).and_then(|()| ensemble.is_summed())
    },
    build: |view| {
        let operator = Arc::clone(&view.node.operator);
        let forest = TreeEnsembleKernel::of(&*operator)?.forest();
        let trees = PreparedTrees::new(&trees(forest)?, forest.targets)?;
        Ok(Box::new(TreesKernel { trees: Arc::new(trees), operator }))
    },
}];

/// Kind of the ensemble, which decides what becomes of the sums.
#[derive(Clone, Copy)]
enum TreeEnsembleKernel<'a> {
    Classifier(&'a TreeEnsembleClassifier),
    Regression(&'a TreeRegression),
}

impl<'a> TreeEnsembleKernel<'a> {
    fn of(operator: &'a dyn Operator) -> Result<Self, String> {
        let any: &dyn Any = operator;
        let classifier = any.downcast_ref().map(Self::Classifier);
        let found = classifier.or_else(|| any.downcast_ref().map(Self::Regression));
        found.ok_or_else(|| "no ensemble of trees".to_owned())
    }

    /// Refuses what is more than a sum with something behind it.
    fn is_summed(self) -> Result<(), String> {
        match self {
            Self::Classifier(TreeEnsembleClassifier {
                labels: ClassifierLabels::Strings(_),
                ..
            }) => Err("the kernel gives no labels that are texts".into()),
            Self::Regression(TreeRegression {
                aggregate: VoteAggregate::Min | VoteAggregate::Max,
                ..
            }) => Err("the kernel sums what trees say".into()),
            Self::Classifier(_) | Self::Regression(_) => Ok(()),
        }
    }

    fn forest(self) -> &'a CheckedForest {
        match self {
            Self::Classifier(classifier) => &classifier.forest,
            Self::Regression(regression) => &regression.forest,
        }
    }

    /// The output that holds scores.
    fn scores_at(self) -> usize {
        match self {
            Self::Classifier(_) => 1,
            Self::Regression(_) => 0,
        }
    }

    /// Returns whether sums are the result.
    fn is_only_sum(self) -> bool {
        match self {
            Self::Classifier(_) => false,
            Self::Regression(one) => {
                one.aggregate == VoteAggregate::Sum
                    && one.base_values.is_empty()
                    && one.post_transform == PostTransform::None
            }
        }
    }
}

/// The largest `f32` that is at most `value`, or less than it; NaN where there is none.
#[allow(clippy::cast_possible_truncation, reason = "rounded down afterwards")]
fn below(value: f64, or_equal: bool) -> f32 {
    let near = value as f32;
    let fits = f64::from(near) < value || (or_equal && f64::from(near) == value);
    match near {
        near if fits || value.is_nan() => near,
        f32::NEG_INFINITY => f32::NAN,
        near => near.next_down(),
    }
}

/// The forest's trees as the kernel takes them: every question is whether a feature is in a range.
fn trees(forest: &CheckedForest) -> Result<Vec<Vec<GivenTreeNode>>, String> {
    let mut seen = vec![false; forest.branches().len()];
    forest.roots().iter().map(|&root| tree(forest, root, &mut seen)).collect()
}

fn tree(
    forest: &CheckedForest,
    root: BranchLink,
    seen: &mut [bool],
) -> Result<Vec<GivenTreeNode>, String> {
    // Branches are put in when their places are known.
    let mut nodes = vec![GivenTreeNode::Leaf(Vec::new())];
    let mut open = vec![(root, 0)];
    while let Some((link, at)) = open.pop() {
        if link.is_leaf() {
            let votes = forest.votes(link.index()).iter();
            nodes[at] =
                GivenTreeNode::Leaf(votes.map(|vote| (vote.target, single(vote.weight))).collect());
            continue;
        }
        if std::mem::replace(&mut seen[link.index()], true) {
            return Err("trees share nodes".into());
        }
        let branch = &forest.branches()[link.index()];
        let first = nodes.len();
        nodes.extend([GivenTreeNode::Leaf(Vec::new()), GivenTreeNode::Leaf(Vec::new())]);
        nodes[at] = question(branch, first, first + 1)?;
        open.extend([(branch.yes, first), (branch.no, first + 1)]);
    }
    Ok(nodes)
}

#[allow(clippy::cast_possible_truncation, reason = "features of single precision are summed in it")]
fn single(value: f64) -> f32 {
    value as f32
}

fn question(branch: &ForestBranch, yes: usize, no: usize) -> Result<GivenTreeNode, String> {
    let t = branch.threshold;
    if t.is_nan() {
        return Err("a threshold is NaN".into());
    }
    let up_to = |or_equal| (f32::NEG_INFINITY, below(t, or_equal));
    let just = || if f64::from(single(t)) == t { single(t) } else { f32::NAN };
    // The range, whether the question is the other way round, and how it answers a missing feature.
    let (range, turned, of_missing) = match branch.comparison {
        BranchComparison::LessOrEqual => (up_to(true), false, false),
        BranchComparison::Less => (up_to(false), false, false),
        BranchComparison::Greater => (up_to(true), true, false),
        BranchComparison::GreaterOrEqual => (up_to(false), true, false),
        BranchComparison::Equal => ((just(), just()), false, false),
        BranchComparison::NotEqual => ((just(), just()), true, true),
        BranchComparison::Member(_) => {
            return Err("the kernel does not ask for members of sets".into());
        }
    };
    Ok(GivenTreeNode::Branch {
        feature: branch.feature,
        range,
        yes: if turned { no } else { yes },
        no: if turned { yes } else { no },
        missing_is_yes: (branch.missing_is_yes || of_missing) != turned,
    })
}

struct TreesKernel {
    trees: Arc<PreparedTrees>,
    operator: Arc<dyn Operator>,
}

impl CpuKernel for TreesKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (count, width) = match *shapes.input(0)? {
            [width] => (1, width),
            [count, width] => (count, width),
            ref other => return Err(format!("rows of shape {other:?}")),
        };
        if shapes.dtype(0)? != DataType::Fp32 || width < self.trees.features() {
            return Err(format!("rows of {width} features of another type"));
        }
        let trees = Arc::clone(&self.trees);
        let operator = Arc::clone(&self.operator);
        Ok(CpuStep::new(move |call| {
            let ensemble = TreeEnsembleKernel::of(&*operator).map_err(OpError::new)?;
            run(call, &trees, ensemble, count, width)
        }))
    }

    fn weight_bytes(&self) -> WeightBytes {
        WeightBytes::new(self.trees.bytes(), false)
    }
}

fn run(
    call: &mut StepCall<'_>,
    trees: &PreparedTrees,
    ensemble: TreeEnsembleKernel<'_>,
    count: usize,
    width: usize,
) -> Result<(), OpError> {
    let targets = ensemble.forest().targets;
    let mut wanted = call.output::<f32>(ensemble.scores_at()).ok();
    let mut unwanted = Vec::new();
    let scores = match &mut wanted {
        Some(wanted) => wanted.slice(),
        None => {
            unwanted.resize(count * targets, 0.0);
            &mut unwanted[..]
        }
    };
    let always = trees.always_voted();
    let mut voted = vec![false; if always.is_some() { 0 } else { scores.len() }];
    trees.sum(call.exec, call.input::<f32>(0)?, width, scores, &mut voted);
    if ensemble.is_only_sum() {
        return Ok(());
    }
    let mut tally = RowScores::new(targets, ScorePrecision::Single);
    for &target in always.unwrap_or_default() {
        tally.voted[target] = true;
    }
    let mut numbers = Vec::with_capacity(count);
    for (row, scores) in scores.chunks_exact_mut(targets).enumerate() {
        for (score, sum) in tally.scores.iter_mut().zip(scores.iter()) {
            *score = f64::from(*sum);
        }
        if always.is_none() {
            tally.voted.copy_from_slice(&voted[row * targets..][..targets]);
        }
        match ensemble {
            TreeEnsembleKernel::Regression(regression) => regression.finish(&mut tally),
            TreeEnsembleKernel::Classifier(classifier) => {
                let choice = classifier.choose(&mut tally);
                numbers.extend(classifier.labels.number(choice));
            }
        }
        for (score, found) in scores.iter_mut().zip(&tally.scores) {
            *score = single(*found);
        }
    }
    if let (TreeEnsembleKernel::Classifier(_), Ok(mut labels)) = (ensemble, call.output::<i64>(0)) {
        labels.slice().copy_from_slice(&numbers);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_rounded_so_that_answers_stay() {
        let between = f64::from(1.0_f32) + 1e-12;
        assert_eq!(below(between, true), 1.0);
        assert_eq!(below(1.0, true), 1.0);
        assert_eq!(below(1.0, false), 1.0_f32.next_down());
        assert_eq!(below(1.0 - 1e-12, true), 1.0_f32.next_down());
        assert_eq!(below(1e300, true), f32::MAX);
        assert_eq!(below(-1e300, true), f32::NEG_INFINITY);
        assert_eq!(below(f64::INFINITY, true), f32::INFINITY);
        assert!(below(f64::NEG_INFINITY, false).is_nan());
        let number = f32::from_bits(0x3dcc_cccd);
        assert!(number <= below(f64::from(number), true));
    }
}
