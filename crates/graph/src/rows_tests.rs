//! Graphs whose rows are independent, and others that look alike.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use crate::{AttributeValue, Attributes, ONNX_DOMAIN, infer, rewrite};
use galatea_tensor::{DataType, Tensor};

use super::*;
use crate::GALATEA_DOMAIN;

fn dims(lengths: &[&str]) -> Vec<Dim> {
    let dim = |text: &&str| text.parse().map_or_else(|_| Dim::symbol(text), Dim::Known);
    lengths.iter().map(dim).collect()
}

/// A node: operator, attributes, inputs, output.
type Step<'a> = (&'a str, &'a [(&'a str, AttributeValue)], &'a [&'a str], &'a str);

/// The lengths that may be padded of a graph whose last node gives the output. Constants are those inputs
/// whose names are numbers: vectors of these integers, or a matrix for `w`.
fn found(inputs: &[(&str, &[&str])], steps: &[Step<'_>]) -> Vec<String> {
    lengths_of(&graph(inputs, steps))
}

fn lengths_of(graph: &Graph) -> Vec<String> {
    let facts = infer::facts(graph, &HashMap::new()).unwrap();
    independent(graph, &facts).into_iter().collect()
}

fn graph(inputs: &[(&str, &[&str])], steps: &[Step<'_>]) -> Graph {
    let mut graph = Graph::new("rows");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    for (name, shape) in inputs {
        let id = graph.value_named(name);
        graph.value_mut(id).declared = Some(Fact::new(DataType::Fp32, dims(shape)));
        graph.inputs.push(id);
    }
    for (operator, attributes, reads, gives) in steps {
        let reads = reads.iter().map(|name| {
            let id = graph.value_named(name);
            let numbers: Option<Vec<i64>> = name.split(',').map(|word| word.parse().ok()).collect();
            let constant = match numbers {
                Some(all) => Some(Tensor::vector(all)),
                None if *name == "w" => Some(Tensor::zeros(DataType::Fp32, &[4, 4]).unwrap()),
                None => None,
            };
            if constant.is_some() {
                graph.value_mut(id).initializer = constant;
            }
            Some(id)
        });
        let reads = reads.collect();
        let to = graph.value_named(gives);
        let own = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let own: Attributes = own.collect();
        graph.add_node(ONNX_DOMAIN, operator, "", &own, reads, vec![Some(to)]).unwrap();
        graph.outputs = vec![to];
    }
    graph
}

const X: &[(&str, &[&str])] = &[("x", &["batch", "seq", "4"])];

fn axis(axis: i64) -> [(&'static str, AttributeValue); 1] {
    [("axis", AttributeValue::Int(axis))]
}

#[test]
fn batches_are_independent_where_nothing_looks_along_them() {
    let layers: &[Step<'_>] = &[
        ("MatMul", &[], &["x", "w"], "a"),
        ("Softmax", &axis(-1), &["a"], "b"),
        ("Transpose", &[("perm", AttributeValue::Ints(vec![0, 2, 1]))], &["b"], "c"),
        ("MatMul", &[], &["b", "c"], "d"),
        ("ReduceMean", &[], &["d", "1"], "e"),
    ];
    assert_eq!(found(X, layers), ["batch"]);
}

#[test]
fn what_mixes_rows_is_found_out() {
    let float = [("to", AttributeValue::Int(1))];
    let whole = [("to", AttributeValue::Int(7))];
    let swap = [("perm", AttributeValue::Ints(vec![1, 0, 2]))];
    let first = axis(0);
    let third = axis(-3);
    let all: [&[Step<'_>]; 8] = [
        &[("Softmax", &first, &["x"], "a")],
        &[("Softmax", &third, &["x"], "a")],
        &[("ReduceMax", &[], &["x", "0"], "a")],
        &[("Transpose", &swap, &["x"], "a")],
        // Backwards along the batch.
        &[("Slice", &[], &["x", "-1", "-9223372036854775807", "0", "-1"], "a")],
        // All of it, divided by how much that is.
        &[
            ("Shape", &[], &["x"], "n"),
            ("Cast", &float, &["n"], "f"),
            ("ReduceSum", &[], &["f"], "s"),
            ("Div", &[], &["x", "s"], "a"),
        ],
        // Each row looks at a row that is told.
        &[("Cast", &whole, &["x"], "i"), ("Gather", &[], &["x", "i"], "a")],
        &[("Shape", &[], &["x"], "a")],
    ];
    for steps in all {
        assert_eq!(found(X, steps), Vec::<String>::new(), "{steps:?}");
    }
}

#[test]
fn shapes_that_are_computed_of_lengths_are_followed() {
    let steps: &[Step<'_>] = &[
        ("Shape", &[], &["x"], "n"),
        ("Gather", &[], &["n", "0"], "first"),
        ("Concat", &axis(0), &["first", "-1"], "to"),
        ("Reshape", &[], &["x", "to"], "a"),
    ];
    assert_eq!(found(&[("x", &["batch", "2", "4"])], steps), ["batch"]);
}

#[test]
fn inputs_without_the_length_are_the_same_for_all_rows() {
    let inputs: &[(&str, &[&str])] = &[("x", &["batch", "4"]), ("y", &["1", "4"])];
    assert_eq!(found(inputs, &[("Add", &[], &["x", "y"], "a")]), ["batch"]);
    // Elsewhere than in front it may be looked along.
    let inputs: &[(&str, &[&str])] = &[("x", &["batch", "4"]), ("y", &["4", "batch"])];
    assert_eq!(found(inputs, &[("MatMul", &[], &["x", "y"], "a")]), Vec::<String>::new());
}

#[test]
fn what_rewrites_make_of_independent_rows_keeps_them_apart() {
    let steps: &[Step<'_>] = &[
        ("MatMul", &[], &["x", "w"], "a"),
        ("Relu", &[], &["a"], "b"),
        ("Sigmoid", &[], &["b"], "c"),
        ("Mul", &[], &["b", "c"], "d"),
        ("Add", &[], &["d", "x"], "e"),
    ];
    let mut graph = graph(X, steps);
    rewrite::optimise(&mut graph, rewrite::RewriteLevel::O3).unwrap();
    graph.sort().unwrap();
    assert!(graph.nodes.iter().any(|node| node.domain == GALATEA_DOMAIN), "nothing is fused");
    assert_eq!(lengths_of(&graph), ["batch"]);
}
