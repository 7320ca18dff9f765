//! Ensembles of decision trees.
//!
//! A tree is an array in which the children of a node lie side by side, so that a step down is one
//! load of a node, one of a feature, a comparison and an addition, without a branch to mispredict;
//! eight rows (or eight trees, where there are few rows) go down together, so that the loads of one
//! hide the latency of another. Rows go down in blocks, one tree after the other: the tree stays in
//! the nearest cache for a whole block. Sums are made in the order of the trees, whatever the block.

mod node;

use std::ops::Range;

use self::node::{BranchlessNode, CompactNode, WideNode};
use crate::KernelContext;
use crate::memory::DisjointSlice;

/// Rows or trees that go down together.
const LANES: usize = 8;
/// Bytes of features in a block of rows.
const BLOCK_BYTES: usize = 64 << 10;
/// Groups of rows that are worth reading all trees for.
const FEW_GROUPS: usize = 8;
/// Steps down that are worth the time to hand them to another thread.
const GRAIN_STEPS: usize = 16_384;

/// A range without numbers.
const ALWAYS_NO: (f32, f32) = (f32::NEG_INFINITY, f32::NAN);

/// A node of a tree as it is given: the root comes first, and links are positions in the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum GivenTreeNode {
    /// Asks whether a feature lies in a range.
    Branch {
        /// The feature.
        feature: u32,
        /// The first and the last number of the range; a NaN where no number is in it.
        range: (f32, f32),
        /// The node for yes.
        yes: usize,
        /// The node for no.
        no: usize,
        /// True if NaN is answered with yes.
        missing_is_yes: bool,
    },
    /// Adds these weights to these targets.
    Leaf(Vec<(usize, f32)>),
}

/// Trees prepared for any number of rows.
#[derive(Debug)]
pub struct PreparedTrees {
    form: TreeNodeForm,
    roots: Vec<TreeRoot>,
    leaves: LeafValues,
    targets: usize,
    features: usize,
    missing: bool,
    /// Steps down for one row, at most.
    steps: usize,
}

enum TreeNodeForm {
    Compact(Vec<CompactNode>),
    Wide(Vec<WideNode>),
}

impl std::fmt::Debug for TreeNodeForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Compact(nodes) => write!(f, "Compact({})", nodes.len()),
            Self::Wide(nodes) => write!(f, "Wide({})", nodes.len()),
        }
    }
}

/// Where a tree lies and how deep it is.
#[derive(Clone, Copy, Debug)]
struct TreeRoot {
    first: usize,
    /// Steps to the nearest and to the farthest leaf.
    shortest: usize,
    longest: usize,
}

/// Votes of the leaves, by the position of the node among all nodes.
#[derive(Debug)]
enum LeafValues {
    /// Every leaf of a tree has one weight, for the same target.
    One { weights: Vec<f32>, targets: Vec<usize> },
    /// Any number of weights: those of a leaf lie from `starts[node]` to `starts[node + 1]`.
    Many { starts: Vec<usize>, votes: Vec<(usize, f32)> },
}

/// A tree's nodes in their new order: children side by side, the one for no first.
struct LaidTree<'a> {
    nodes: Vec<&'a GivenTreeNode>,
    /// Where the children of a branch begin; a leaf's own position.
    children: Vec<usize>,
    shortest: usize,
    longest: usize,
}

impl<'a> LaidTree<'a> {
    fn new(tree: &'a [GivenTreeNode]) -> Result<Self, String> {
        let root = tree.first().ok_or("a tree without nodes")?;
        let mut laid = Self { nodes: vec![root], children: Vec::new(), shortest: 0, longest: 0 };
        let mut depths = vec![0_usize];
        let mut shortest = usize::MAX;
        while let Some(&node) = laid.nodes.get(laid.children.len()) {
            let at = laid.children.len();
            let depth = depths[at];
            laid.longest = laid.longest.max(depth);
            match node {
                GivenTreeNode::Leaf(_) => {
                    shortest = shortest.min(depth);
                    laid.children.push(at);
                }
                GivenTreeNode::Branch { yes, no, .. } => {
                    laid.children.push(laid.nodes.len());
                    for &child in [no, yes] {
                        laid.nodes.push(tree.get(child).ok_or("a link leads out of its tree")?);
                        depths.push(depth + 1);
                    }
                    // In a tree each node is laid once.
                    if laid.nodes.len() > tree.len() {
                        return Err("a node has two parents".to_owned());
                    }
                }
            }
        }
        laid.shortest = shortest;
        Ok(laid)
    }

    fn fits<N: BranchlessNode>(&self) -> bool {
        let mut all = self.nodes.iter().zip(&self.children);
        all.all(|(node, &child)| match node {
            GivenTreeNode::Branch { feature, range, .. } => N::fits(*feature, range.0, child),
            GivenTreeNode::Leaf(_) => N::fits(0, ALWAYS_NO.0, child),
        })
    }

    fn packed<N: BranchlessNode>(&self) -> impl Iterator<Item = N> {
        self.nodes.iter().zip(&self.children).map(|(node, &child)| match **node {
            GivenTreeNode::Branch { feature, range, missing_is_yes, .. } => {
                N::new(feature, range.0, range.1, child, missing_is_yes)
            }
            GivenTreeNode::Leaf(_) => N::new(0, ALWAYS_NO.0, ALWAYS_NO.1, child, false),
        })
    }
}

/// The one target of all leaves of a tree, if each has one weight.
fn only_target(tree: &[GivenTreeNode]) -> Option<usize> {
    let mut leaves = tree.iter().filter_map(|node| match node {
        GivenTreeNode::Leaf(votes) => Some(votes),
        GivenTreeNode::Branch { .. } => None,
    });
    let &[(target, _)] = leaves.next()?.as_slice() else { return None };
    leaves.all(|votes| matches!(votes[..], [(other, _)] if other == target)).then_some(target)
}

impl LeafValues {
    fn new(trees: &[Vec<GivenTreeNode>], laid: &[LaidTree<'_>]) -> Self {
        let votes = |node: &&GivenTreeNode| match node {
            GivenTreeNode::Leaf(votes) => votes.clone(),
            GivenTreeNode::Branch { .. } => Vec::new(),
        };
        let all = laid.iter().flat_map(|tree| tree.nodes.iter().map(votes));
        let targets: Option<Vec<usize>> = trees.iter().map(|tree| only_target(tree)).collect();
        if let Some(targets) = targets {
            let weights = all.map(|votes| votes.first().map_or(0.0, |vote| vote.1)).collect();
            return Self::One { weights, targets };
        }
        let mut starts = vec![0];
        let mut list = Vec::new();
        for votes in all {
            list.extend(votes);
            starts.push(list.len());
        }
        Self::Many { starts, votes: list }
    }
}

impl PreparedTrees {
    /// Prepares trees that vote for `targets` targets.
    ///
    /// # Errors
    /// Fails when something is no tree, or a leaf votes for a target that does not exist.
    pub fn new(trees: &[Vec<GivenTreeNode>], targets: usize) -> Result<Self, String> {
        let mut features = 0;
        let mut missing = false;
        for node in trees.iter().flatten() {
            match node {
                GivenTreeNode::Branch { feature, missing_is_yes, .. } => {
                    features = features.max(*feature as usize + 1);
                    missing |= missing_is_yes;
                }
                GivenTreeNode::Leaf(votes) => {
                    if let Some((target, _)) = votes.iter().find(|vote| vote.0 >= targets) {
                        return Err(format!("a leaf votes for target {target} of {targets}"));
                    }
                }
            }
        }
        let laid = trees.iter().map(|tree| LaidTree::new(tree)).collect::<Result<Vec<_>, _>>()?;
        let form = if laid.iter().all(LaidTree::fits::<CompactNode>) {
            TreeNodeForm::Compact(laid.iter().flat_map(LaidTree::packed).collect())
        } else if laid.iter().all(LaidTree::fits::<WideNode>) {
            TreeNodeForm::Wide(laid.iter().flat_map(LaidTree::packed).collect())
        } else {
            return Err("a tree of more than 2^32 nodes".to_owned());
        };
        let mut first = 0;
        let root = |tree: &LaidTree<'_>| {
            let root = TreeRoot { first, shortest: tree.shortest, longest: tree.longest };
            first += tree.nodes.len();
            root
        };
        let roots: Vec<TreeRoot> = laid.iter().map(root).collect();
        let steps = roots.iter().map(|root| root.longest + 1).sum();
        let leaves = LeafValues::new(trees, &laid);
        Ok(Self { form, roots, leaves, targets, features, missing, steps })
    }

    /// How many features rows must have at least.
    #[must_use]
    pub fn features(&self) -> usize {
        self.features
    }

    /// The targets that every row has votes for, where leaves need not be looked at to know it; a
    /// target may occur more than once.
    #[must_use]
    pub fn always_voted(&self) -> Option<&[usize]> {
        match &self.leaves {
            LeafValues::One { targets, .. } => Some(targets),
            LeafValues::Many { .. } => None,
        }
    }

    /// Bytes of the prepared trees.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let nodes = match &self.form {
            TreeNodeForm::Compact(nodes) => size_of_val(&nodes[..]),
            TreeNodeForm::Wide(nodes) => size_of_val(&nodes[..]),
        };
        nodes
            + match &self.leaves {
                LeafValues::One { weights, .. } => size_of_val(&weights[..]),
                LeafValues::Many { starts, votes } => {
                    size_of_val(&starts[..]) + size_of_val(&votes[..])
                }
            }
    }

    /// Sums the weights of the leaves that each row comes to. `voted` says for which targets there
    /// was a vote; it stays as it is where [`PreparedTrees::always_voted`] knows, and may then be empty.
    ///
    /// Shapes: `x` is `[rows, width]`, `scores` and `voted` are `[rows, targets]`.
    ///
    /// # Panics
    /// Panics when a length is another, or rows have less than [`PreparedTrees::features`] features.
    pub fn sum(
        &self,
        exec: KernelContext<'_>,
        x: &[f32],
        width: usize,
        scores: &mut [f32],
        voted: &mut [bool],
    ) {
        let rows = scores.len().checked_div(self.targets).unwrap_or(0);
        assert!(width >= self.features, "trees: {width} features, expected {}", self.features);
        assert_eq!(Some(x.len()), rows.checked_mul(width), "trees: features");
        assert_eq!(scores.len(), rows * self.targets, "trees: scores");
        let many = matches!(self.leaves, LeafValues::Many { .. });
        assert!(!many || voted.len() == scores.len(), "trees: votes");
        let block = BLOCK_BYTES / size_of::<f32>() / width.max(1);
        let block = block.max(1).next_multiple_of(LANES);
        // Ranges are whole groups of lanes, and few where there are few rows: every range reads all
        // trees.
        let groups = rows.div_ceil(LANES);
        let even = (groups / exec.pool.threads()).min(FEW_GROUPS);
        let grain = (GRAIN_STEPS / self.steps.max(1) / LANES).max(even).max(1);
        let scores = DisjointSlice::new(scores);
        let voted = DisjointSlice::new(voted);
        exec.pool.run_ranges(groups, grain, |range| {
            let range = range.start * LANES..(range.end * LANES).min(rows);
            for first in range.clone().step_by(block) {
                let last = (first + block).min(range.end);
                let part = first * self.targets..last * self.targets;
                // SAFETY: ranges of rows are disjoint.
                let scores = unsafe { scores.range(part.clone()) };
                // SAFETY: as above.
                let voted = if many { unsafe { voted.range(part) } } else { &mut [] };
                let rows =
                    TreeRows { x: &x[first * width..last * width], width, count: last - first };
                self.block(rows, scores, voted);
            }
        });
    }

    fn block(&self, rows: TreeRows<'_>, scores: &mut [f32], voted: &mut [bool]) {
        scores.fill(0.0);
        voted.fill(false);
        let mut add = |row: usize, tree: usize, node: usize| match &self.leaves {
            LeafValues::One { weights, targets } => {
                scores[row * self.targets + targets[tree]] += weights[node];
            }
            LeafValues::Many { starts, votes } => {
                for &(target, weight) in &votes[starts[node]..starts[node + 1]] {
                    scores[row * self.targets + target] += weight;
                    voted[row * self.targets + target] = true;
                }
            }
        };
        match (&self.form, self.missing) {
            (TreeNodeForm::Compact(nodes), false) => {
                walk::<_, false>(nodes, &self.roots, rows, &mut add)
            }
            (TreeNodeForm::Compact(nodes), true) => {
                walk::<_, true>(nodes, &self.roots, rows, &mut add)
            }
            (TreeNodeForm::Wide(nodes), false) => {
                walk::<_, false>(nodes, &self.roots, rows, &mut add)
            }
            (TreeNodeForm::Wide(nodes), true) => {
                walk::<_, true>(nodes, &self.roots, rows, &mut add)
            }
        }
    }
}

/// Rows of a block.
#[derive(Clone, Copy)]
struct TreeRows<'a> {
    x: &'a [f32],
    width: usize,
    count: usize,
}

/// Sends every row down every tree and shows row, tree and the leaf's position among all nodes: for
/// each row in the order of the trees.
fn walk<N: BranchlessNode, const MISSING: bool>(
    nodes: &[N],
    roots: &[TreeRoot],
    rows: TreeRows<'_>,
    add: &mut impl FnMut(usize, usize, usize),
) {
    let whole = rows.count / LANES * LANES;
    if whole > 0 {
        for (tree, root) in roots.iter().enumerate() {
            for first in (0..whole).step_by(LANES) {
                let row = std::array::from_fn(|lane| (first + lane) * rows.width);
                let found = descend::<N, MISSING>(nodes, [*root; LANES], rows.x, row);
                for (lane, node) in found.into_iter().enumerate() {
                    add(first + lane, tree, node);
                }
            }
        }
    }
    for row in whole..rows.count {
        few::<N, MISSING>(nodes, roots, rows, row, add);
    }
}

/// Sends one row down all trees, several at a time.
fn few<N: BranchlessNode, const MISSING: bool>(
    nodes: &[N],
    roots: &[TreeRoot],
    rows: TreeRows<'_>,
    row: usize,
    add: &mut impl FnMut(usize, usize, usize),
) {
    for first in (0..roots.len()).step_by(LANES) {
        let range: Range<usize> = first..(first + LANES).min(roots.len());
        // The last trees are walked again where there are too few to fill the lanes.
        let group = std::array::from_fn(|lane| roots[(first + lane).min(roots.len() - 1)]);
        let start = [row * rows.width; LANES];
        let found = descend::<N, MISSING>(nodes, group, rows.x, start);
        for (tree, node) in range.zip(found) {
            add(row, tree, node);
        }
    }
}

/// Goes down from each root with the row that begins at `row` in `x`; gives the leaves' positions.
#[inline(always)]
fn descend<N: BranchlessNode, const MISSING: bool>(
    nodes: &[N],
    roots: [TreeRoot; LANES],
    x: &[f32],
    row: [usize; LANES],
) -> [usize; LANES] {
    let mut at = [0_u32; LANES];
    let step = |at: &mut [u32; LANES]| {
        let mut moved = 0;
        for lane in 0..LANES {
            let place = roots[lane].first + at[lane] as usize;
            // SAFETY: a tree's root and the children that its nodes name lie inside the tree, and
            // a leaf is its own child: `LaidTree::new` has laid every child that it numbered.
            let node = unsafe { *nodes.get_unchecked(place) };
            // SAFETY: `sum` has checked that rows are whole and have all features that nodes ask
            // for; where there is a step there is a branch, so there is a feature 0 too.
            let value = unsafe { *x.get_unchecked(row[lane] + node.feature()) };
            let next = node.next::<MISSING>(value);
            moved |= next ^ at[lane];
            at[lane] = next;
        }
        moved
    };
    let shortest = roots.iter().map(|root| root.shortest).min().unwrap_or(0);
    let longest = roots.iter().map(|root| root.longest).max().unwrap_or(0);
    for _ in 0..shortest {
        step(&mut at);
    }
    for _ in shortest..longest {
        if step(&mut at) == 0 {
            break;
        }
    }
    std::array::from_fn(|lane| roots[lane].first + at[lane] as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadPool;

    /// Numbers that look random.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % n
        }

        fn number(&mut self) -> f32 {
            self.below(9) as f32 / 2.0 - 2.0
        }
    }

    /// A tree of at most this depth, with leaves at any depth.
    fn grow(dice: &mut Dice, tree: &mut Vec<GivenTreeNode>, depth: usize, made: &Made) -> usize {
        let at = tree.len();
        if depth == 0 || dice.below(6) == 0 {
            let count = if made.many { dice.below(4) } else { 1 };
            let votes = (0..count).map(|_| (dice.below(made.targets), dice.number()));
            tree.push(GivenTreeNode::Leaf(votes.collect()));
            return at;
        }
        tree.push(GivenTreeNode::Leaf(Vec::new()));
        let yes = grow(dice, tree, depth - 1, made);
        let no = grow(dice, tree, depth - 1, made);
        let feature = made.features[dice.below(made.features.len())];
        let missing_is_yes = made.missing && dice.below(2) == 0;
        let from =
            if made.ranges && dice.below(3) == 0 { dice.number() } else { f32::NEG_INFINITY };
        let range = (from, dice.number());
        tree[at] = GivenTreeNode::Branch { feature, range, yes, no, missing_is_yes };
        at
    }

    struct Made {
        features: Vec<u32>,
        targets: usize,
        many: bool,
        missing: bool,
        ranges: bool,
    }

    fn forest(dice: &mut Dice, trees: usize, made: &Made) -> Vec<Vec<GivenTreeNode>> {
        let mut tree = || {
            let mut tree = Vec::new();
            grow(dice, &mut tree, 6, made);
            tree
        };
        (0..trees).map(|_| tree()).collect()
    }

    fn leaf<'a>(tree: &'a [GivenTreeNode], row: &[f32]) -> &'a [(usize, f32)] {
        let mut at = 0;
        loop {
            match &tree[at] {
                GivenTreeNode::Leaf(votes) => return votes,
                GivenTreeNode::Branch { feature, range, yes, no, missing_is_yes } => {
                    let x = row[*feature as usize];
                    let inside = range.0 <= x && x <= range.1;
                    let answer = inside || (x.is_nan() && *missing_is_yes);
                    at = if answer { *yes } else { *no };
                }
            }
        }
    }

    /// Sums as a reader would write them.
    fn plain(
        trees: &[Vec<GivenTreeNode>],
        rows: &[Vec<f32>],
        targets: usize,
    ) -> (Vec<f32>, Vec<bool>) {
        let mut scores = vec![0.0; rows.len() * targets];
        let mut voted = vec![false; rows.len() * targets];
        for (at, row) in rows.iter().enumerate() {
            for &(target, weight) in trees.iter().flat_map(|tree| leaf(tree, row)) {
                scores[at * targets + target] += weight;
                voted[at * targets + target] = true;
            }
        }
        (scores, voted)
    }

    fn check(trees: &[Vec<GivenTreeNode>], width: usize, targets: usize, dice: &mut Dice) {
        let pool = ThreadPool::new(2);
        let ready = PreparedTrees::new(trees, targets).unwrap();
        for count in [0, 1, 2, 7, 8, 9, 40, 300] {
            let mut number = || if dice.below(12) == 0 { f32::NAN } else { dice.number() };
            let rows: Vec<Vec<f32>> =
                (0..count).map(|_| (0..width).map(|_| number()).collect()).collect();
            let (expected, votes) = plain(trees, &rows, targets);
            let mut scores = vec![7.0; count * targets];
            let mut voted = vec![true; count * targets];
            ready.sum(KernelContext::new(&pool), &rows.concat(), width, &mut scores, &mut voted);
            assert_eq!(scores, expected, "{count} rows");
            match ready.always_voted() {
                None => assert_eq!(voted, votes),
                Some(always) => {
                    let row: Vec<bool> = (0..targets).map(|at| always.contains(&at)).collect();
                    assert!(votes.chunks(targets).all(|votes| votes == row));
                }
            }
        }
    }

    #[test]
    fn sums_are_those_of_a_plain_walk() {
        let mut dice = Dice(3);
        for (many, missing, targets) in
            [(false, false, 1), (false, true, 1), (true, false, 3), (true, true, 2)]
        {
            for (trees, width) in [(1, 2), (5, 3), (8, 3), (21, 4)] {
                let features = (0..u32::try_from(width).unwrap()).collect();
                let made = Made { features, targets, many, missing, ranges: width == 4 };
                check(&forest(&mut dice, trees, &made), width, targets, &mut dice);
            }
        }
    }

    #[test]
    fn many_features_take_the_wide_form() {
        let mut dice = Dice(5);
        let features = vec![3, 40_000];
        let made = Made { features, targets: 1, many: false, missing: true, ranges: false };
        let trees = forest(&mut dice, 9, &made);
        assert!(matches!(PreparedTrees::new(&trees, 1).unwrap().form, TreeNodeForm::Wide(_)));
        check(&trees, 40_001, 1, &mut dice);
    }

    #[test]
    fn a_tree_may_be_a_leaf_and_need_no_features() {
        let trees = vec![
            vec![GivenTreeNode::Leaf(vec![(0, 0.5)])],
            vec![GivenTreeNode::Leaf(vec![(1, 2.0)])],
        ];
        let ready = PreparedTrees::new(&trees, 2).unwrap();
        let mut scores = [0.0; 6];
        let pool = ThreadPool::new(1);
        ready.sum(KernelContext::new(&pool), &[], 0, &mut scores, &mut []);
        assert_eq!(scores, [0.5, 2.0, 0.5, 2.0, 0.5, 2.0]);
        assert_eq!(ready.always_voted(), Some(&[0, 1][..]));
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let branch = |yes, no| GivenTreeNode::Branch {
            feature: 0,
            range: (0.0, 0.0),
            yes,
            no,
            missing_is_yes: false,
        };
        let leaf = || GivenTreeNode::Leaf(vec![(0, 1.0)]);
        let error = |tree: Vec<GivenTreeNode>| PreparedTrees::new(&[tree], 1).unwrap_err();
        assert!(error(Vec::new()).contains("without nodes"));
        assert!(error(vec![branch(1, 2), leaf()]).contains("leads out"));
        assert!(error(vec![branch(0, 1), leaf()]).contains("two parents"));
        assert!(error(vec![GivenTreeNode::Leaf(vec![(1, 1.0)])]).contains("target 1 of 1"));
    }
}
