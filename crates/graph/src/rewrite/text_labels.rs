//! A tree ensemble whose classes are texts gives their positions, and a `Gather` the texts: what
//! computes trees then need not know texts.

use std::sync::Arc;

use galatea_tensor::Tensor;

use super::ValueMaps;
use super::match_graph::make_node;
use crate::ONNX_DOMAIN;
use crate::attribute::AttributeValue;
use crate::error::GraphError;
use crate::graph::{Graph, Node};
use crate::ops::index::Gather;
use crate::ops::ml::{ClassifierLabels, TreeEnsembleClassifier};

pub(super) fn apply(
    graph: &mut Graph,
    _maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = &graph.nodes[index];
    let Some(ensemble) = node.operator::<TreeEnsembleClassifier>() else { return Ok(None) };
    let ClassifierLabels::Strings(texts) = &ensemble.labels else { return Ok(None) };
    // Of one class there is yes and no, which are no positions.
    let count = i64::try_from(texts.len()).unwrap_or(0);
    if count < 2 {
        return Ok(None);
    }
    let texts = Tensor::vector(texts.clone());
    let positions: Vec<i64> = (0..count).collect();
    let labels = ClassifierLabels::Integers(positions.clone());
    let numbered = TreeEnsembleClassifier { labels, ..ensemble.clone() };
    let mut trees = node.clone();
    trees.replace_operator(Arc::new(numbered), |attributes| {
        attributes.remove("classlabels_strings");
        attributes.insert("classlabels_int64s".to_owned(), AttributeValue::Ints(positions));
    });
    let Some(label) = node.output(0) else { return Ok(Some(vec![trees])) };
    let positions = graph.fresh_value("label.position");
    let table = graph.add_constant("labels", texts);
    trees.outputs[0] = Some(positions);
    let inputs = vec![Some(table), Some(positions)];
    let mut pick = make_node(ONNX_DOMAIN, "Gather", &trees, Gather { axis: 0 }, inputs);
    pick.outputs = vec![Some(label)];
    Ok(Some(vec![trees, pick]))
}

#[cfg(test)]
mod tests {

    use super::super::{RewriteLevel, optimise};
    use crate::attribute::{AttributeValue, Attributes};
    use crate::{Fact, Graph, ML_DOMAIN, evaluate};
    use galatea_tensor::{ByteString, DataType, OrderedMap, Tensor};

    /// One tree of one branch, which votes for the first or the last class.
    fn model(classes: &[&str]) -> Graph {
        let texts = |all: &[&str]| {
            AttributeValue::Strings(all.iter().map(|&one| ByteString::from(one)).collect())
        };
        let ints = |all: &[i64]| AttributeValue::Ints(all.to_vec());
        let list: [(&str, AttributeValue); 13] = [
            ("classlabels_strings", texts(classes)),
            ("nodes_modes", texts(&["BRANCH_LEQ", "LEAF", "LEAF"])),
            ("nodes_treeids", ints(&[0, 0, 0])),
            ("nodes_nodeids", ints(&[0, 1, 2])),
            ("nodes_featureids", ints(&[0, 0, 0])),
            ("nodes_truenodeids", ints(&[1, 0, 0])),
            ("nodes_falsenodeids", ints(&[2, 0, 0])),
            ("nodes_values", AttributeValue::Floats(vec![0.5, 0.0, 0.0])),
            ("class_ids", ints(&[0, classes.len() as i64 - 1])),
            ("class_nodeids", ints(&[1, 2])),
            ("class_treeids", ints(&[0, 0])),
            ("class_weights", AttributeValue::Floats(vec![-0.75, 0.75])),
            ("post_transform", AttributeValue::String(ByteString::from("SOFTMAX"))),
        ];
        let list: Attributes =
            list.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut graph = Graph::new("g");
        graph.opsets = OrderedMap::from([(ML_DOMAIN.to_owned(), 3)]);
        let names = ["x", "label", "scores"];
        let [x, label, scores] = names.map(|name| graph.value_named(name));
        graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[2, 1]));
        graph.inputs.push(x);
        let outputs = vec![Some(label), Some(scores)];
        let operator = "TreeEnsembleClassifier";
        graph.add_node(ML_DOMAIN, operator, "trees", &list, vec![Some(x)], outputs).unwrap();
        graph.outputs.extend([label, scores]);
        graph
    }

    #[test]
    fn texts_are_picked_by_position() {
        for (classes, nodes) in [(&["a", "b", "c"][..], 2), (&["no", "yes"], 2), (&["only"], 1)] {
            let plain = model(classes);
            let mut rewritten = plain.clone();
            optimise(&mut rewritten, RewriteLevel::O1).unwrap();
            assert_eq!(rewritten.nodes.len(), nodes, "{classes:?}");
            let x = Tensor::from_slice(&[2, 1], &[0.0_f32, 1.0]).unwrap();
            let run = |graph: &Graph| evaluate::run(graph, std::slice::from_ref(&x)).unwrap();
            assert_eq!(run(&rewritten), run(&plain), "{classes:?}");
            let node = &rewritten.nodes[0];
            let (opset, attributes) = node.attributes().unwrap();
            let name = "TreeEnsembleClassifier";
            let parsed = crate::ops::parse(ML_DOMAIN, name, opset, &attributes, 1, 2).unwrap();
            assert_eq!(format!("{parsed:?}"), format!("{:?}", node.operator));
        }
    }
}
