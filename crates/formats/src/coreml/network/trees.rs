//! Ensembles of trees.

use bytes::Bytes;
use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::{ByteString, DataType};

use super::lower::{NetworkLowering, choice, int, size};
use super::simple_step::{
    ClassifierNames, SimpleModelStep, floats, longs, softmax, softmax_with_zero, two_labels,
};
use crate::coreml::decode;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::simple::{TreeEnsemble, TreeTransform, TreesProto};

/// How nodes branch, in the order of their numbers; the last is a leaf.
const MODES: [&str; 7] =
    ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF"];
const LEAF: i32 = 6;

/// The attributes of ONNX's ensemble.
fn attributes(
    trees: &TreesProto,
    outputs: usize,
) -> Result<Vec<(&'static str, AttributeValue)>, CoreMlError> {
    let mut ids: [Vec<usize>; 6] = Default::default();
    let [tree_ids, node_ids, features, then, other, tracks] = &mut ids;
    let mut modes = Vec::new();
    let mut thresholds = Vec::new();
    let mut leaves: [Vec<usize>; 3] = Default::default();
    let [leaf_trees, leaf_nodes, leaf_targets] = &mut leaves;
    let mut leaf_values = Vec::new();
    for node in &trees.nodes {
        let tree = size(node.tree_id)?;
        let id = size(node.node_id)?;
        let mode = usize::try_from(node.node_behavior).ok().and_then(|at| MODES.get(at));
        let unknown = || {
            let text = format!("node {id} of tree {tree} branches as {}", node.node_behavior);
            CoreMlError::invalid(text)
        };
        modes.push(ByteString::from(*mode.ok_or_else(unknown)?));
        tree_ids.push(tree);
        node_ids.push(id);
        features.push(size(node.branch_feature_index)?);
        then.push(size(node.true_child_node_id)?);
        other.push(size(node.false_child_node_id)?);
        tracks.push(usize::from(node.missing_value_tracks_true_child));
        thresholds.push(node.branch_feature_value);
        if node.node_behavior != LEAF {
            continue;
        }
        for found in &node.evaluation_info {
            leaf_trees.push(tree);
            leaf_nodes.push(id);
            leaf_targets.push(size(found.evaluation_index)?);
            leaf_values.push(found.evaluation_value);
        }
    }
    let [tree_ids, node_ids, features, then, other, tracks] = &ids;
    let [leaf_trees, leaf_nodes, leaf_targets] = &leaves;
    Ok(vec![
        ("n_targets", int(outputs).into()),
        ("nodes_treeids", longs(tree_ids)),
        ("nodes_nodeids", longs(node_ids)),
        ("nodes_featureids", longs(features)),
        ("nodes_truenodeids", longs(then)),
        ("nodes_falsenodeids", longs(other)),
        ("nodes_missing_value_tracks_true", longs(tracks)),
        ("nodes_modes", AttributeValue::Strings(modes)),
        ("nodes_values", AttributeValue::Floats(floats(&thresholds))),
        ("target_treeids", longs(leaf_trees)),
        ("target_nodeids", longs(leaf_nodes)),
        ("target_ids", longs(leaf_targets)),
        ("target_weights", AttributeValue::Floats(floats(&leaf_values))),
        ("base_values", AttributeValue::Floats(floats(&trees.base_prediction_value))),
    ])
}

/// The sums of all trees, a vector.
fn sums(
    cx: &mut NetworkLowering,
    step: &SimpleModelStep<'_>,
    params: &TreeEnsemble,
) -> Result<ValueId, CoreMlError> {
    let missing = || CoreMlError::invalid("it has no trees");
    let trees = params.tree_ensemble.as_ref().ok_or_else(missing)?;
    let outputs = size(trees.num_prediction_dimensions)?.max(1);
    let x = step.columns(cx)?;
    let row = cx.unsqueeze(x, &[0])?;
    let found = cx.ml_node("TreeEnsembleRegressor", &[row], &attributes(trees, outputs)?)?;
    let found = cx.cast(found, DataType::Fp32)?;
    cx.reshape(found, &[-1])
}

/// `treeEnsembleRegressor`.
pub(super) fn regressor(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: TreeEnsemble = decode(Bytes::clone(step.message))?;
    let x = sums(cx, step, &params)?;
    let id = match choice(params.post_evaluation_transform, "transform")? {
        TreeTransform::None => x,
        TreeTransform::Softmax => softmax(cx, x)?,
        TreeTransform::Logistic => cx.node("Sigmoid", &[x], &[])?,
        TreeTransform::SoftmaxWithZeroReference => softmax_with_zero(cx, x)?,
    };
    step.give(id)
}

/// `treeEnsembleClassifier`: with one sum for two labels, or one for each.
pub(super) fn classifier(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: TreeEnsemble = decode(Bytes::clone(step.message))?;
    let x = sums(cx, step, &params)?;
    let one = cx.dim(x, 0)? == Some(1);
    let probabilities = match choice(params.post_evaluation_transform, "transform")? {
        TreeTransform::None if one => two_labels(cx, x)?,
        TreeTransform::None => x,
        TreeTransform::Softmax if !one => softmax(cx, x)?,
        TreeTransform::SoftmaxWithZeroReference => softmax_with_zero(cx, x)?,
        TreeTransform::Softmax | TreeTransform::Logistic => {
            let found = cx.node("Sigmoid", &[x], &[])?;
            if one { two_labels(cx, found)? } else { found }
        }
    };
    step.classify(cx, probabilities, params.class_labels.as_ref())
}
