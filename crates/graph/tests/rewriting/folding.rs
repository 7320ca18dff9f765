//! Folding of constants keeps within bounds of memory and time.

use galatea_graph::Graph;
use galatea_graph::rewrite::{RewriteLevel, optimise};
use galatea_tensor::Tensor;

use super::{Builder, check_equal, known, noise, op_types};

/// Elements of all constants of a graph.
fn held(graph: &Graph) -> usize {
    let constants = graph.values().iter().filter_map(|value| value.initializer.as_ref());
    constants.map(Tensor::elements).sum()
}

#[test]
fn a_chain_of_functions_of_one_weight_is_folded_to_its_end() {
    let mut b = Builder::new();
    let x = b.input("x", &known(&[2, 64]));
    let mut weight = b.constant(noise(&[64, 64], 5));
    for _ in 0..40 {
        weight = b.op("Tanh", &[weight], &[]);
    }
    let y = b.op("MatMul", &[x, weight], &[]);
    let graph = b.finish(y);
    let mut folded = graph.clone();
    optimise(&mut folded, RewriteLevel::O1).unwrap();
    assert_eq!(op_types(&folded), ["MatMul"]);
    assert_eq!(held(&folded), 64 * 64, "what only folded nodes read is let go");
    check_equal(&graph, &folded, &[noise(&[2, 64], 7)]);
}

#[test]
fn a_constant_that_another_node_or_the_caller_reads_stays() {
    let mut b = Builder::new();
    let x = b.input("x", &known(&[3]));
    let weight = b.constant(noise(&[3], 1));
    let folded = b.op("Tanh", &[weight], &[]);
    let sum = b.op("Add", &[x, weight], &[]);
    let y = b.op("Mul", &[sum, folded], &[]);
    b.graph.outputs.push(weight);
    let graph = b.finish(y);
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::O1).unwrap();
    assert_eq!(op_types(&rewritten), ["Add", "Mul"]);
    check_equal(&graph, &rewritten, &[noise(&[3], 2)]);
}

#[test]
fn a_chain_of_tens_of_thousands_of_nodes_becomes_chains_of_the_longest_length() {
    let mut b = Builder::new();
    let x = b.input("x", &known(&[1]));
    let mut y = x;
    for _ in 0..12_000 {
        y = b.op("Add", &[y, x], &[]);
    }
    let mut graph = b.finish(y);
    optimise(&mut graph, RewriteLevel::O3).unwrap();
    assert_eq!(graph.nodes.len(), 500);
}
