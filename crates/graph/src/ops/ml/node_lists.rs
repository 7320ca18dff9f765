//! Trees as the lists of `TreeEnsembleClassifier` and `TreeEnsembleRegressor`.

use std::collections::{HashMap, HashSet};

use galatea_tensor::ByteString;

use super::forest::{
    BranchComparison, BranchLink, CheckedForest, ForestBranch, ForestParts, LeafVote,
};
use crate::collect::collected;
use crate::error::OpError;
use crate::operator::ParseContext;
use crate::ops::values::floats;

/// The names of the lists of votes.
#[derive(Clone, Copy, Debug)]
pub(super) struct VoteNames {
    pub(super) targets: &'static str,
    pub(super) nodes: &'static str,
    pub(super) trees: &'static str,
    pub(super) weights: &'static str,
    pub(super) weights_tensor: &'static str,
}

/// Floats as a list or, from version 3 on, as a tensor that may be of doubles.
pub(super) fn doubles(
    context: &mut ParseContext<'_>,
    list: &'static str,
    tensor: &'static str,
) -> Result<Option<Vec<f64>>, OpError> {
    let found = context.attributes.floats(list)?.filter(|found| !found.is_empty());
    let wide = if context.opset < 3 { None } else { context.attributes.tensor(tensor)? };
    match (found, wide) {
        (Some(_), Some(_)) => Err(OpError::new(format!("both '{list}' and '{tensor}' are given"))),
        (Some(found), None) => Ok(Some(found.into_iter().map(f64::from).collect())),
        (None, Some(wide)) => floats(&wide).map(Some),
        (None, None) => Ok(None),
    }
}

/// Refuses lists that belong together and differ in length.
pub(super) fn expect_lengths(
    expected: usize,
    lists: &[(&'static str, usize)],
) -> Result<(), OpError> {
    match lists.iter().find(|(_, len)| *len != expected) {
        None => Ok(()),
        Some((name, len)) => {
            Err(OpError::new(format!("'{name}' has {len} entries, expected {expected}")))
        }
    }
}

/// The question of a mode; `None` for a leaf.
fn comparison(mode: &ByteString) -> Result<Option<BranchComparison>, OpError> {
    const MODES: &[(&[u8], Option<BranchComparison>)] = &[
        (b"LEAF", None),
        (b"BRANCH_LEQ", Some(BranchComparison::LessOrEqual)),
        (b"BRANCH_LT", Some(BranchComparison::Less)),
        (b"BRANCH_GTE", Some(BranchComparison::GreaterOrEqual)),
        (b"BRANCH_GT", Some(BranchComparison::Greater)),
        (b"BRANCH_EQ", Some(BranchComparison::Equal)),
        (b"BRANCH_NEQ", Some(BranchComparison::NotEqual)),
    ];
    let found = MODES.iter().find(|(name, _)| *name == mode.as_bytes());
    found.map(|(_, comparison)| *comparison).ok_or_else(|| {
        OpError::new(format!("node mode {mode:?}, expected BRANCH_(LEQ|LT|GTE|GT|EQ|NEQ) or LEAF"))
    })
}

/// A list of integers; empty where it is absent.
fn list(context: &mut ParseContext<'_>, name: &'static str) -> Result<Vec<i64>, OpError> {
    Ok(context.attributes.ints(name)?.unwrap_or_default())
}

/// Where the nodes are: by tree and number, as a link to a branch or a leaf.
struct NodePositions {
    links: Vec<BranchLink>,
    by_name: HashMap<(i64, i64), usize>,
    roots: Vec<BranchLink>,
}

impl NodePositions {
    fn new(trees: &[i64], nodes: &[i64], leaf: &[bool]) -> Result<Self, OpError> {
        let mut branches = 0;
        let mut leaves = 0;
        let mut links = Vec::with_capacity(nodes.len());
        let mut roots = Vec::new();
        let mut by_name = HashMap::new();
        let mut known = HashSet::new();
        for (at, (&tree, &node)) in trees.iter().zip(nodes).enumerate() {
            let count = if leaf[at] { &mut leaves } else { &mut branches };
            let link =
                if leaf[at] { BranchLink::leaf(*count)? } else { BranchLink::branch(*count)? };
            *count += 1;
            links.push(link);
            if by_name.insert((tree, node), at).is_some() {
                return Err(OpError::new(format!("node {node} of tree {tree} occurs twice")));
            }
            // The first node of a tree is its root.
            if known.insert(tree) {
                roots.push(link);
            }
        }
        Ok(Self { links, by_name, roots })
    }

    fn find(&self, tree: i64, node: i64, what: &str) -> Result<usize, OpError> {
        self.by_name
            .get(&(tree, node))
            .copied()
            .ok_or_else(|| OpError::new(format!("{what}: there is no node {node} in tree {tree}")))
    }
}

/// The votes of each leaf in the order of leaves.
fn votes(
    context: &mut ParseContext<'_>,
    names: VoteNames,
    places: &NodePositions,
    leaf: &[bool],
) -> Result<Vec<Vec<LeafVote>>, OpError> {
    let targets = list(context, names.targets)?;
    let nodes = list(context, names.nodes)?;
    let trees = list(context, names.trees)?;
    let weights = doubles(context, names.weights, names.weights_tensor)?.unwrap_or_default();
    let lists =
        [(names.nodes, nodes.len()), (names.trees, trees.len()), (names.weights, weights.len())];
    expect_lengths(targets.len(), &lists)?;
    let mut all = vec![Vec::new(); leaf.len()];
    for (at, &target) in targets.iter().enumerate() {
        let target = usize::try_from(target)
            .map_err(|_| OpError::new(format!("'{}' names target {target}", names.targets)))?;
        let place = places.find(trees[at], nodes[at], names.nodes)?;
        all[place].push(LeafVote { target, weight: weights[at] });
    }
    // Votes of branches have no effect, as in ONNX Runtime.
    Ok(all.into_iter().zip(leaf).filter_map(|(votes, leaf)| leaf.then_some(votes)).collect())
}

/// Reads the lists of nodes and votes.
pub(super) fn parse(
    context: &mut ParseContext<'_>,
    names: VoteNames,
    targets: usize,
) -> Result<CheckedForest, OpError> {
    let nodes = list(context, "nodes_nodeids")?;
    let trees = list(context, "nodes_treeids")?;
    let features = list(context, "nodes_featureids")?;
    let yes = list(context, "nodes_truenodeids")?;
    let no = list(context, "nodes_falsenodeids")?;
    let missing = list(context, "nodes_missing_value_tracks_true")?;
    let modes = context.attributes.strings("nodes_modes")?.unwrap_or_default();
    let thresholds = doubles(context, "nodes_values", "nodes_values_as_tensor")?;
    let thresholds = thresholds.unwrap_or_default();
    // How often a node is visited matters to nobody here.
    doubles(context, "nodes_hitrates", "nodes_hitrates_as_tensor")?;
    let lists = [
        ("nodes_treeids", trees.len()),
        ("nodes_featureids", features.len()),
        ("nodes_truenodeids", yes.len()),
        ("nodes_falsenodeids", no.len()),
        ("nodes_modes", modes.len()),
        ("nodes_values", thresholds.len()),
        ("nodes_missing_value_tracks_true", missing.len()),
    ];
    let optional = usize::from(missing.is_empty());
    expect_lengths(nodes.len(), &lists[..lists.len() - optional])?;
    let modes = collected(&mut modes.iter().map(comparison))?;
    let leaf: Vec<bool> = modes.iter().map(Option::is_none).collect();
    let places = NodePositions::new(&trees, &nodes, &leaf)?;
    let mut branches = Vec::new();
    for (at, mode) in modes.iter().enumerate() {
        let Some(comparison) = *mode else { continue };
        let to = |node, what| places.find(trees[at], node, what).map(|found| places.links[found]);
        branches.push(ForestBranch {
            threshold: thresholds[at],
            comparison,
            feature: feature(features[at])?,
            yes: to(yes[at], "nodes_truenodeids")?,
            no: to(no[at], "nodes_falsenodeids")?,
            missing_is_yes: missing.get(at) == Some(&1),
        });
    }
    let leaves = votes(context, names, &places, &leaf)?;
    ForestParts { branches, sets: Vec::new(), leaves, roots: places.roots, targets }.build()
}

/// The number of a feature.
pub(super) fn feature(number: i64) -> Result<u32, OpError> {
    u32::try_from(number)
        .map_err(|_| OpError::new(format!("'nodes_featureids' names feature {number}")))
}

#[cfg(test)]
pub(super) mod tests {
    use crate::attribute::{AttributeValue, Attributes};
    use crate::ops::testing::{attributes, ints, run, tensor};
    use galatea_tensor::{ByteString, Tensor};

    /// One tree that asks whether feature 0 is at most 0.5, and the votes of its two leaves.
    pub(crate) fn stumps(votes: &[&[(i64, f32)]], prefix: &str) -> Attributes {
        let modes = ["BRANCH_LEQ", "LEAF", "LEAF"].map(ByteString::from).to_vec();
        let mut list = attributes([
            ("nodes_treeids", ints(&[4, 4, 4])),
            ("nodes_nodeids", ints(&[0, 1, 2])),
            ("nodes_featureids", ints(&[0, 0, 0])),
            ("nodes_truenodeids", ints(&[1, 0, 0])),
            ("nodes_falsenodeids", ints(&[2, 0, 0])),
            ("nodes_values", AttributeValue::Floats(vec![0.5, 0.0, 0.0])),
            ("nodes_modes", AttributeValue::Strings(modes)),
        ]);
        let flat =
            || votes.iter().zip(1..).flat_map(|(all, leaf)| all.iter().map(move |v| (leaf, v)));
        let mut put = |name: &str, value| list.insert(format!("{prefix}_{name}"), value);
        put("ids", ints(&flat().map(|(_, vote)| vote.0).collect::<Vec<_>>()));
        put("nodeids", ints(&flat().map(|(leaf, _)| leaf).collect::<Vec<_>>()));
        put("treeids", ints(&flat().map(|_| 4).collect::<Vec<_>>()));
        put("weights", AttributeValue::Floats(flat().map(|(_, vote)| vote.1).collect()));
        list
    }

    fn regress(list: &Attributes) -> Result<Tensor, String> {
        let x = tensor(&[2, 1], &[0.0_f32, f32::NAN]);
        let name = "ai.onnx.ml:TreeEnsembleRegressor";
        Ok(run(name, 3, list, &[Some(&x)], 1)?.remove(0))
    }

    fn changed(name: &str, value: AttributeValue) -> Result<Tensor, String> {
        let mut list = stumps(&[&[(0, 1.0)], &[(0, 2.0)]], "target");
        list.insert("n_targets".to_owned(), AttributeValue::Int(1));
        list.insert(name.to_owned(), value);
        regress(&list)
    }

    #[test]
    fn lists_that_are_no_trees_are_refused() {
        let modes = |first: &str| {
            let all = [first, "LEAF", "LEAF"].map(ByteString::from);
            AttributeValue::Strings(all.to_vec())
        };
        for (name, value, expected) in [
            ("nodes_values", AttributeValue::Floats(vec![0.5, 0.0]), "'nodes_values' has 2"),
            ("nodes_nodeids", ints(&[0, 1, 1]), "node 1 of tree 4 occurs twice"),
            ("nodes_truenodeids", ints(&[7, 0, 0]), "no node 7 in tree 4"),
            ("nodes_falsenodeids", ints(&[0, 0, 0]), "back"),
            ("nodes_treeids", ints(&[4, 4, 5]), "no node 2 in tree 4"),
            ("nodes_featureids", ints(&[-1, 0, 0]), "feature -1"),
            ("nodes_featureids", ints(&[9, 0, 0]), "feature 9"),
            ("nodes_modes", modes("BRANCH_IN"), "BRANCH_IN"),
            ("target_nodeids", ints(&[1, 9]), "no node 9"),
            ("target_ids", ints(&[0, -1]), "target -1"),
            ("target_ids", ints(&[0, 1]), "target 1 of 1"),
            ("n_targets", AttributeValue::Int(0), "at least one target"),
            ("nodes_missing_value_tracks_true", ints(&[1]), "tracks_true' has 1"),
        ] {
            let error = changed(name, value).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }

    #[test]
    fn missing_values_go_where_the_node_says() {
        let tracks = |first| ints(&[first, 0, 0]);
        let name = "nodes_missing_value_tracks_true";
        assert_eq!(changed(name, tracks(0)).unwrap(), tensor(&[2, 1], &[1.0_f32, 2.0]));
        assert_eq!(changed(name, tracks(1)).unwrap(), tensor(&[2, 1], &[1.0_f32, 1.0]));
    }

    #[test]
    fn doubles_come_as_tensors_from_version_3_on() {
        let mut list = stumps(&[&[(0, 1.0)], &[(0, 2.0)]], "target");
        list.insert("n_targets".to_owned(), AttributeValue::Int(1));
        let wide = AttributeValue::Tensor(Tensor::vector(vec![0.25_f64, 3.0]));
        list.insert("target_weights_as_tensor".to_owned(), wide);
        assert!(regress(&list).unwrap_err().contains("both"));
        list.remove("target_weights");
        assert_eq!(regress(&list).unwrap(), tensor(&[2, 1], &[0.25_f32, 3.0]));
        let x = tensor(&[1, 1], &[0.0_f32]);
        let old = run("ai.onnx.ml:TreeEnsembleRegressor", 1, &list, &[Some(&x)], 1);
        assert!(old.is_err());
    }
}
