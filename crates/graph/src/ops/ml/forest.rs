//! Decision trees as one flat array.

use crate::error::OpError;
use crate::ops::bounds::bounded;
use galatea_tensor::DataType;

use super::rows::{FeatureRows, ScorePrecision};

/// The question at a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchComparison {
    /// At most the threshold.
    LessOrEqual,
    /// Less than the threshold.
    Less,
    /// At least the threshold.
    GreaterOrEqual,
    /// More than the threshold.
    Greater,
    /// The threshold itself.
    Equal,
    /// Anything but the threshold.
    NotEqual,
    /// One of the set at this position.
    Member(u32),
}

/// Where a branch leads: to another branch or to a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchLink(u32);

impl BranchLink {
    /// The bit that tells leaves from branches.
    const LEAF: u32 = 1 << 31;

    fn position(at: usize) -> Result<u32, OpError> {
        let small = u32::try_from(at).ok().filter(|small| small & Self::LEAF == 0);
        small.ok_or_else(|| OpError::new("an ensemble of more than 2^31 nodes"))
    }

    /// The branch at a position.
    pub(super) fn branch(at: usize) -> Result<Self, OpError> {
        Self::position(at).map(Self)
    }

    /// The leaf at a position.
    pub(super) fn leaf(at: usize) -> Result<Self, OpError> {
        Ok(Self(Self::position(at)? | Self::LEAF))
    }

    /// Returns whether it leads to a leaf.
    #[must_use]
    pub fn is_leaf(self) -> bool {
        self.0 & Self::LEAF != 0
    }

    /// The position among the branches or among the leaves.
    #[must_use]
    pub fn index(self) -> usize {
        (self.0 & !Self::LEAF) as usize
    }
}

/// A node with two ways on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForestBranch {
    /// The number that the feature is compared with.
    pub threshold: f64,
    /// The question.
    pub comparison: BranchComparison,
    /// Which feature it is about.
    pub feature: u32,
    /// Where the answer yes leads.
    pub yes: BranchLink,
    /// Where the answer no leads.
    pub no: BranchLink,
    /// True if a missing feature (NaN) takes the way of yes whatever the question.
    pub missing_is_yes: bool,
}

/// Vote of a leaf for a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeafVote {
    /// The target or class.
    pub target: usize,
    /// Weight of the vote.
    pub weight: f64,
}

/// How the votes of all trees become one score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteAggregate {
    /// Their sum over the number of trees.
    Average,
    /// Their sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

/// Trees without cycles whose links, features and targets have been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedForest {
    branches: Vec<ForestBranch>,
    /// Sets of members, sorted.
    sets: Vec<Vec<f64>>,
    /// The votes of leaf `n` are those from `leaves[n]` to `leaves[n + 1]`.
    leaves: Vec<usize>,
    votes: Vec<LeafVote>,
    roots: Vec<BranchLink>,
    /// Number of targets or classes.
    pub targets: usize,
    /// Rows must have at least so many features.
    pub features: usize,
}

/// The parts of a forest before they have been checked.
#[derive(Clone, Debug, Default)]
pub(super) struct ForestParts {
    pub(super) branches: Vec<ForestBranch>,
    pub(super) sets: Vec<Vec<f64>>,
    pub(super) leaves: Vec<Vec<LeafVote>>,
    pub(super) roots: Vec<BranchLink>,
    pub(super) targets: usize,
}

/// The scores of one row and which of them a leaf has voted for.
#[derive(Clone, Debug, PartialEq)]
pub struct RowScores {
    /// A score for each target or class.
    pub scores: Vec<f64>,
    /// True for each target or class for which a leaf has voted.
    pub voted: Vec<bool>,
    /// The precision in which scores are summed.
    pub precision: ScorePrecision,
}

impl RowScores {
    /// Scores of 0 that nobody has voted for.
    #[must_use]
    pub fn new(targets: usize, precision: ScorePrecision) -> Self {
        Self { scores: vec![0.0; targets], voted: vec![false; targets], precision }
    }

    /// Adds to a score.
    pub(super) fn add(&mut self, target: usize, weight: f64) {
        self.scores[target] = self.precision.sum(self.scores[target], weight);
    }
}

impl ForestParts {
    /// Checks the parts.
    pub(super) fn build(self) -> Result<CheckedForest, OpError> {
        let Self { branches, mut sets, leaves: lists, roots, targets } = self;
        if targets == 0 {
            return Err(OpError::new("an ensemble needs at least one target"));
        }
        let links = branches.iter().flat_map(|branch| [branch.yes, branch.no]);
        for link in links.chain(roots.iter().copied()) {
            let (what, count) =
                if link.is_leaf() { ("leaf", lists.len()) } else { ("node", branches.len()) };
            if link.index() >= count {
                return Err(OpError::new(format!("there is no {what} {}", link.index())));
            }
        }
        if let Some(vote) = lists.iter().flatten().find(|vote| vote.target >= targets) {
            let text = format!("a leaf votes for target {} of {targets}", vote.target);
            return Err(OpError::new(text));
        }
        expect_no_cycle(&branches, &roots)?;
        // A negative zero is the same member as a positive one.
        sets.iter_mut().flatten().for_each(|member| *member += 0.0);
        sets.iter_mut().for_each(|set| set.sort_by(f64::total_cmp));
        let features = branches.iter().map(|branch| branch.feature as usize + 1).max();
        let mut leaves = vec![0];
        let mut votes = Vec::new();
        for list in lists {
            votes.extend(list);
            leaves.push(votes.len());
        }
        let features = features.unwrap_or(0);
        Ok(CheckedForest { branches, sets, leaves, votes, roots, targets, features })
    }
}

/// Refuses a branch from which a way leads back to it.
fn expect_no_cycle(branches: &[ForestBranch], roots: &[BranchLink]) -> Result<(), OpError> {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitState {
        New,
        OnPath,
        Done,
    }
    let mut states = vec![VisitState::New; branches.len()];
    for root in roots.iter().filter(|root| !root.is_leaf()) {
        // Each entry is a branch and how many of its ways have been walked.
        let mut path = vec![(root.index(), 0)];
        while let Some((at, walked)) = path.last_mut() {
            let branch = *at;
            let step = *walked;
            *walked += 1;
            match (step, states[branch]) {
                (0, VisitState::Done) => drop(path.pop()),
                (0, VisitState::OnPath) => {
                    let text = format!("a way leads from node {branch} back to it: no tree");
                    return Err(OpError::new(text));
                }
                (0 | 1, _) => {
                    states[branch] = VisitState::OnPath;
                    let found = &branches[branch];
                    let next = if step == 0 { found.yes } else { found.no };
                    if !next.is_leaf() {
                        path.push((next.index(), 0));
                    }
                }
                _ => {
                    states[branch] = VisitState::Done;
                    path.pop();
                }
            }
        }
    }
    Ok(())
}

impl CheckedForest {
    /// The number of trees.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.roots.len()
    }

    /// The branches; links are positions among them.
    #[must_use]
    pub fn branches(&self) -> &[ForestBranch] {
        &self.branches
    }

    /// Where each tree begins.
    #[must_use]
    pub fn roots(&self) -> &[BranchLink] {
        &self.roots
    }

    /// Returns the votes of a leaf.
    #[must_use]
    pub fn votes(&self, leaf: usize) -> &[LeafVote] {
        &self.votes[self.leaves[leaf]..self.leaves[leaf + 1]]
    }

    /// The classes that leaves vote for, and whether no vote is negative.
    pub(super) fn summary(&self) -> (Vec<usize>, bool) {
        let mut targets: Vec<usize> = self.votes.iter().map(|vote| vote.target).collect();
        targets.sort_unstable();
        targets.dedup();
        (targets, self.votes.iter().all(|vote| vote.weight >= 0.0))
    }

    /// Returns whether a feature answers a branch's question with yes.
    fn answer(&self, branch: &ForestBranch, value: f64) -> bool {
        let yes = match branch.comparison {
            BranchComparison::LessOrEqual => value <= branch.threshold,
            BranchComparison::Less => value < branch.threshold,
            BranchComparison::GreaterOrEqual => value >= branch.threshold,
            BranchComparison::Greater => value > branch.threshold,
            #[allow(clippy::float_cmp, reason = "the question is equality")]
            BranchComparison::Equal => value == branch.threshold,
            #[allow(clippy::float_cmp, reason = "the question is equality")]
            BranchComparison::NotEqual => value != branch.threshold,
            BranchComparison::Member(set) => {
                let set = &self.sets[set as usize];
                let value = value + 0.0;
                set.binary_search_by(|member| member.total_cmp(&value)).is_ok()
            }
        };
        yes || (branch.missing_is_yes && value.is_nan())
    }

    /// The votes of the leaf that a row comes to; no way is longer than there are branches.
    fn leaf(&self, root: BranchLink, row: &[f64]) -> &[LeafVote] {
        let mut link = root;
        while !link.is_leaf() {
            let branch = &self.branches[link.index()];
            let yes = self.answer(branch, row[branch.feature as usize]);
            link = if yes { branch.yes } else { branch.no };
        }
        self.votes(link.index())
    }

    /// Puts together what all trees say of a row.
    fn tally(&self, row: &[f64], aggregate: VoteAggregate, tally: &mut RowScores) {
        tally.scores.fill(0.0);
        tally.voted.fill(false);
        for &root in &self.roots {
            for &LeafVote { target, weight } in self.leaf(root, row) {
                match aggregate {
                    VoteAggregate::Average | VoteAggregate::Sum => tally.add(target, weight),
                    VoteAggregate::Min | VoteAggregate::Max => {
                        let pick =
                            if aggregate == VoteAggregate::Min { f64::min } else { f64::max };
                        let score = &mut tally.scores[target];
                        *score = if tally.voted[target] { pick(*score, weight) } else { weight };
                    }
                }
                tally.voted[target] = true;
            }
        }
    }

    /// Shows what the trees say of each row, one after the other.
    ///
    /// # Errors
    /// Fails when rows are too short, or results of `columns` numbers a row have no memory.
    pub(super) fn each(
        &self,
        rows: &FeatureRows,
        aggregate: VoteAggregate,
        columns: usize,
        mut row: impl FnMut(&mut RowScores),
    ) -> Result<(), OpError> {
        self.expect_width(rows.width)?;
        bounded(DataType::Fp64, &[rows.count.max(1), columns.max(self.targets)])?;
        let mut tally = RowScores::new(self.targets, rows.precision);
        for features in rows.iter() {
            self.tally(features, aggregate, &mut tally);
            row(&mut tally);
        }
        Ok(())
    }

    /// Refuses rows that lack a feature which a branch asks for.
    pub(super) fn expect_width(&self, width: usize) -> Result<(), OpError> {
        if width >= self.features {
            return Ok(());
        }
        let last = self.features - 1;
        Err(OpError::new(format!("rows of {width} features, the trees ask for feature {last}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galatea_tensor::Tensor;

    fn branch(comparison: BranchComparison, threshold: f64) -> ForestBranch {
        let yes = BranchLink::leaf(0).unwrap();
        let no = BranchLink::leaf(1).unwrap();
        ForestBranch { threshold, comparison, feature: 0, yes, no, missing_is_yes: false }
    }

    fn parts(branches: Vec<ForestBranch>) -> ForestParts {
        let vote = |weight| vec![LeafVote { target: 0, weight }];
        let roots = vec![BranchLink::branch(0).unwrap()];
        let sets = vec![vec![4.0, -0.0, 1.0]];
        ForestParts { branches, sets, leaves: vec![vote(1.0), vote(2.0)], roots, targets: 1 }
    }

    fn scores(forest: &CheckedForest, x: &[f32]) -> Vec<f64> {
        let rows = FeatureRows::read(&Tensor::from_slice(&[x.len(), 1], x).unwrap()).unwrap();
        let mut found = Vec::new();
        forest.each(&rows, VoteAggregate::Sum, 1, |tally| found.push(tally.scores[0])).unwrap();
        found
    }

    #[test]
    fn every_question_is_answered() {
        let x = [0.0, 1.0, 2.0, f32::NAN];
        for (comparison, expected) in [
            (BranchComparison::LessOrEqual, [1.0, 1.0, 2.0, 2.0]),
            (BranchComparison::Less, [1.0, 2.0, 2.0, 2.0]),
            (BranchComparison::GreaterOrEqual, [2.0, 1.0, 1.0, 2.0]),
            (BranchComparison::Greater, [2.0, 2.0, 1.0, 2.0]),
            (BranchComparison::Equal, [2.0, 1.0, 2.0, 2.0]),
            (BranchComparison::NotEqual, [1.0, 2.0, 1.0, 1.0]),
            (BranchComparison::Member(0), [1.0, 1.0, 2.0, 2.0]),
        ] {
            let plain = branch(comparison, 1.0);
            let forest = parts(vec![plain]).build().unwrap();
            assert_eq!(scores(&forest, &x), expected, "{comparison:?}");
            let tracked = ForestBranch { missing_is_yes: true, ..plain };
            let forest = parts(vec![tracked]).build().unwrap();
            assert_eq!(scores(&forest, &x)[3], 1.0, "{comparison:?}");
        }
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let to = |at| BranchLink::branch(at).unwrap();
        let plain = branch(BranchComparison::Less, 1.0);
        let itself = ForestBranch { no: to(0), ..plain };
        assert!(parts(vec![itself]).build().unwrap_err().to_string().contains("node 0"));
        let circle =
            vec![ForestBranch { yes: to(1), ..plain }, ForestBranch { no: to(0), ..plain }];
        assert!(parts(circle).build().unwrap_err().to_string().contains("back"));
        let nowhere = ForestBranch { no: to(7), ..plain };
        assert!(parts(vec![nowhere]).build().unwrap_err().to_string().contains("no node 7"));
        let bare = ForestBranch { yes: BranchLink::leaf(2).unwrap(), ..plain };
        assert!(parts(vec![bare]).build().unwrap_err().to_string().contains("no leaf 2"));
        let shared = vec![ForestBranch { yes: to(1), no: to(1), ..plain }, plain];
        assert_eq!(scores(&parts(shared).build().unwrap(), &[0.0, 3.0]), [1.0, 2.0]);
        let mut many = parts(vec![plain]);
        many.leaves[0][0].target = 1;
        assert!(many.build().unwrap_err().to_string().contains("target 1 of 1"));
    }

    #[test]
    fn rows_must_have_the_features_asked_for() {
        let asks = ForestBranch { feature: 3, ..branch(BranchComparison::Less, 1.0) };
        let forest = parts(vec![asks]).build().unwrap();
        let error = forest.expect_width(3).unwrap_err().to_string();
        assert!(error.contains("feature 3"), "{error}");
        assert!(forest.expect_width(4).is_ok());
    }
}
