//! Divided nodes compute what the whole ones do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use galatea_tensor::{DataType, Tensor};

use super::*;
use crate::{Dim, evaluate, infer};

fn weights(shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    let values = (0..count).map(|at| f32::from(u8::try_from(at * 7 % 11).unwrap()) - 5.0);
    Tensor::from_vec(shape, values.collect()).unwrap()
}

/// One node of an operator over `x` with these constants behind it.
fn graph(
    domain: &str,
    op_type: &str,
    x: &[usize],
    constants: &[&[usize]],
    attributes: &[(&str, AttributeValue)],
) -> Graph {
    let mut graph = Graph::new("one");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 17);
    let id = graph.value_named("x");
    let dims = x.iter().map(|&len| Dim::Known(len)).collect();
    graph.value_mut(id).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.inputs.push(id);
    let mut inputs = vec![Some(id)];
    for shape in constants {
        let own = graph.add_constant("w", weights(shape));
        inputs.push(Some(own));
    }
    let y = graph.value_named("y");
    let attributes: crate::Attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    graph.add_node(domain, op_type, "", &attributes, inputs, vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    graph
}

/// Computes a graph's only output for its only input.
fn computed(graph: &Graph, x: &Tensor) -> Vec<f32> {
    evaluate::run(graph, std::slice::from_ref(x)).unwrap()[0].to_vec().unwrap()
}

#[test]
fn divided_channels_are_those_of_the_whole() {
    let yes = || AttributeValue::Int(1);
    let galatea = crate::GALATEA_DOMAIN;
    let cases = [
        graph("", "MatMul", &[2, 3, 4], &[&[4, 5]], &[]),
        graph("", "Gemm", &[3, 4], &[&[5, 4], &[5]], &[("transB", yes())]),
        graph("", "Gemm", &[3, 4], &[&[4, 5], &[1, 5]], &[]),
        graph("", "Gemm", &[3, 4], &[&[4, 5], &[1]], &[]),
        graph(galatea, "FusedMatMul", &[2, 4], &[&[5, 4], &[5]], &[("trans_b", yes())]),
        graph("", "Conv", &[1, 2, 4, 4], &[&[5, 2, 3, 3], &[5]], &[]),
    ];
    for whole in cases {
        let name = whole.nodes[0].op_type.clone();
        assert_eq!(divisible(&whole, 0), Some(5), "{name}");
        let facts = infer::facts(&whole, &HashMap::new()).unwrap();
        let shape = facts[whole.inputs[0].index()].as_ref().unwrap().known_shape().unwrap();
        let x = weights(&shape);
        for first in [1, 2, 4] {
            let cut = DividedNode { node: 0, first };
            let (both, origins) = divided(&whole, &facts, &[cut]).unwrap();
            assert_eq!(
                origins,
                [NodeOrigin::First(0), NodeOrigin::Second(0), NodeOrigin::Joined(0)]
            );
            assert_eq!(computed(&both, &x), computed(&whole, &x), "{name} after {first}");
        }
        for first in [0, 5] {
            let error = divided(&whole, &facts, &[DividedNode { node: 0, first }]).unwrap_err();
            assert!(error.to_string().contains("of 5 found"), "{error}");
        }
    }
}

#[test]
fn what_is_not_of_single_channels_is_not_divided() {
    let grouped =
        graph("", "Conv", &[1, 4, 4, 4], &[&[6, 2, 3, 3]], &[("group", AttributeValue::Int(2))]);
    let added = graph("", "Gemm", &[3, 4], &[&[4, 5], &[3, 5]], &[]);
    let rows = graph("", "Gemm", &[3, 4], &[&[4, 5], &[3, 1]], &[]);
    let batched = graph("", "MatMul", &[2, 3, 4], &[&[2, 4, 5]], &[]);
    let other = graph("", "Add", &[5], &[&[5]], &[]);
    for graph in [grouped, added, rows, batched, other] {
        assert_eq!(divisible(&graph, 0), None, "{}", graph.nodes[0].op_type);
    }
}
