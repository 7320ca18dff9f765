//! Ensembles of decision trees.

use std::any::Any;
use std::sync::Arc;

use galatea_graph::ops::ml::{
    Aggregate, Branch, Comparison, Forest, Labels, Link, PostTransform, Precision, Regression,
    Tally, TreeEnsembleClassifier,
};
use galatea_graph::{ML_DOMAIN, OpError, Operator};
use galatea_kernels::trees::{TreeNode, Trees};
use galatea_tensor::DataType;

use crate::cpu::{Call, Kernel, KernelRow, Shapes, Step, WeightBytes};

/// The family's rows.
pub(super) const ROWS: &[KernelRow] = &[KernelRow {
    name: "trees-f32",
    domain: ML_DOMAIN,
    ops: &["TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"],
    supports: |view| {
        let ensemble = Ensemble::of(&*view.node.operator)?;
        view.floats(&[0]).and_then(|()| ensemble.is_summed())
    },
    build: |view| {
        let operator = Arc::clone(&view.node.operator);
        let forest = Ensemble::of(&*operator)?.forest();
        let trees = Trees::new(&trees(forest)?, forest.targets)?;
        Ok(Box::new(TreesKernel { trees: Arc::new(trees), operator }))
    },
}];

/// What becomes of the sums.
#[derive(Clone, Copy)]
enum Ensemble<'a> {
    Classifier(&'a TreeEnsembleClassifier),
    Regression(&'a Regression),
}

impl<'a> Ensemble<'a> {
    fn of(operator: &'a dyn Operator) -> Result<Self, String> {
        let any: &dyn Any = operator;
        let classifier = any.downcast_ref().map(Self::Classifier);
        let found = classifier.or_else(|| any.downcast_ref().map(Self::Regression));
        found.ok_or_else(|| "no ensemble of trees".to_owned())
    }

    /// Refuses what is more than a sum with something behind it.
    fn is_summed(self) -> Result<(), String> {
        match self {
            Self::Classifier(TreeEnsembleClassifier { labels: Labels::Strings(_), .. }) => {
                Err("the kernel gives no labels that are texts".into())
            }
            Self::Regression(Regression { aggregate: Aggregate::Min | Aggregate::Max, .. }) => {
                Err("the kernel sums what trees say".into())
            }
            Self::Classifier(_) | Self::Regression(_) => Ok(()),
        }
    }

    fn forest(self) -> &'a Forest {
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

    /// Whether sums are the result.
    fn is_only_sum(self) -> bool {
        match self {
            Self::Classifier(_) => false,
            Self::Regression(one) => {
                one.aggregate == Aggregate::Sum
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
fn trees(forest: &Forest) -> Result<Vec<Vec<TreeNode>>, String> {
    let mut seen = vec![false; forest.branches().len()];
    forest.roots().iter().map(|&root| tree(forest, root, &mut seen)).collect()
}

fn tree(forest: &Forest, root: Link, seen: &mut [bool]) -> Result<Vec<TreeNode>, String> {
    // Branches are put in when their places are known.
    let (mut nodes, mut open) = (vec![TreeNode::Leaf(Vec::new())], vec![(root, 0)]);
    while let Some((link, at)) = open.pop() {
        if link.is_leaf() {
            let votes = forest.votes(link.index()).iter();
            nodes[at] =
                TreeNode::Leaf(votes.map(|vote| (vote.target, single(vote.weight))).collect());
            continue;
        }
        if std::mem::replace(&mut seen[link.index()], true) {
            return Err("trees share nodes".into());
        }
        let branch = &forest.branches()[link.index()];
        let first = nodes.len();
        nodes.extend([TreeNode::Leaf(Vec::new()), TreeNode::Leaf(Vec::new())]);
        nodes[at] = question(branch, first, first + 1)?;
        open.extend([(branch.yes, first), (branch.no, first + 1)]);
    }
    Ok(nodes)
}

#[allow(clippy::cast_possible_truncation, reason = "features of single precision are summed in it")]
fn single(value: f64) -> f32 {
    value as f32
}

fn question(branch: &Branch, yes: usize, no: usize) -> Result<TreeNode, String> {
    let t = branch.threshold;
    if t.is_nan() {
        return Err("a threshold is NaN".into());
    }
    let up_to = |or_equal| (f32::NEG_INFINITY, below(t, or_equal));
    let just = || if f64::from(single(t)) == t { single(t) } else { f32::NAN };
    // The range, whether the question is the other way round, and how it answers a missing feature.
    let (range, turned, of_missing) = match branch.comparison {
        Comparison::LessOrEqual => (up_to(true), false, false),
        Comparison::Less => (up_to(false), false, false),
        Comparison::Greater => (up_to(true), true, false),
        Comparison::GreaterOrEqual => (up_to(false), true, false),
        Comparison::Equal => ((just(), just()), false, false),
        Comparison::NotEqual => ((just(), just()), true, true),
        Comparison::Member(_) => return Err("the kernel does not ask for members of sets".into()),
    };
    Ok(TreeNode::Branch {
        feature: branch.feature,
        range,
        yes: if turned { no } else { yes },
        no: if turned { yes } else { no },
        missing_is_yes: (branch.missing_is_yes || of_missing) != turned,
    })
}

struct TreesKernel {
    trees: Arc<Trees>,
    operator: Arc<dyn Operator>,
}

impl Kernel for TreesKernel {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        let (count, width) = match *shapes.input(0)? {
            [width] => (1, width),
            [count, width] => (count, width),
            ref other => return Err(format!("rows of shape {other:?}")),
        };
        if shapes.dtype(0)? != DataType::Fp32 || width < self.trees.features() {
            return Err(format!("rows of {width} features of another type"));
        }
        let (trees, operator) = (Arc::clone(&self.trees), Arc::clone(&self.operator));
        Ok(Step::new(move |call| {
            let ensemble = Ensemble::of(&*operator).map_err(OpError::new)?;
            run(call, &trees, ensemble, (count, width))
        }))
    }

    fn weight_bytes(&self) -> WeightBytes {
        WeightBytes::new(self.trees.bytes(), false)
    }
}

fn run(
    call: &mut Call<'_>,
    trees: &Trees,
    ensemble: Ensemble<'_>,
    (count, width): (usize, usize),
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
    trees.sum(call.exec, (call.input::<f32>(0)?, width), scores, &mut voted);
    if ensemble.is_only_sum() {
        return Ok(());
    }
    let mut tally = Tally::new(targets, Precision::Single);
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
            Ensemble::Regression(regression) => regression.finish(&mut tally),
            Ensemble::Classifier(classifier) => {
                let choice = classifier.choose(&mut tally);
                numbers.extend(classifier.labels.number(choice));
            }
        }
        for (score, found) in scores.iter_mut().zip(&tally.scores) {
            *score = single(*found);
        }
    }
    if let (Ensemble::Classifier(_), Ok(mut labels)) = (ensemble, call.output::<i64>(0)) {
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
