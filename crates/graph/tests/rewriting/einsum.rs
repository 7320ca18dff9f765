//! `Einsum` as a product of matrices.

use super::*;

/// Rewrites an equation over inputs of these shapes, and compares; gives the operators that are left.
fn rewritten(equation: &str, left: &[Dim], right: &[Dim], values: &[Tensor; 2]) -> Vec<String> {
    let mut b = Builder::new();
    let inputs = [b.input("x", left), b.input("y", right)];
    let text = AttributeValue::String(equation.into());
    let z = b.op("Einsum", &inputs, &[("equation", text)]);
    b.graph.outputs = vec![z];
    let graph = b.graph;
    let mut product = graph.clone();
    optimise(&mut product, RewriteLevel::O2).unwrap();
    check_equal(&graph, &product, values);
    op_types(&product).into_iter().map(|name| name.to_string()).collect()
}

fn shape_of(term: &str, len: impl Fn(char) -> usize) -> Vec<usize> {
    term.chars().map(len).collect()
}

fn length(label: char) -> usize {
    2 + "bhqkdijklmn".find(label).unwrap_or(0) % 4
}

fn values(shape: &[usize], seed: usize) -> Tensor {
    let count = shape.iter().product::<usize>();
    let all = (0..count).map(|at| ((at * 7 + seed) % 11) as f32 / 4.0 - 1.0).collect();
    Tensor::from_vec(shape, all).unwrap()
}

/// Equations that are products: batches, several rows, columns and terms in any order, and none of them.
const PRODUCTS: &[(&str, &str, &str)] = &[
    ("ij", "jk", "ik"),
    ("ij", "kj", "ik"),
    ("ij", "jk", "ki"),
    ("bhqd", "bhkd", "bhqk"),
    ("bqhd", "bkhd", "bhqk"),
    ("bhqk", "bkhd", "bqhd"),
    ("bij", "bjk", "bik"),
    ("bij", "jk", "bik"),
    ("bijd", "dk", "bijk"),
    ("ijkd", "kdmn", "ijmn"),
    ("dkji", "mkdn", "njmi"),
    ("i", "j", "ij"),
    ("i", "i", ""),
    ("ij", "j", "i"),
    ("i", "ij", "j"),
    ("bi", "bi", "b"),
    ("bi", "bj", "ijb"),
    ("ij", "ij", ""),
    ("ij", "ij", "ji"),
];

#[test]
fn equations_of_two_inputs_become_products() {
    for (left, right, out) in PRODUCTS {
        let shapes = [shape_of(left, length), shape_of(right, length)];
        let values = [values(&shapes[0], 1), values(&shapes[1], 5)];
        let equation = format!("{left},{right}->{out}");
        let [a, b] = shapes.map(|shape| known(&shape));
        let left = rewritten(&equation, &a, &b, &values);
        assert!(!left.contains(&"Einsum".to_owned()), "{equation}: {left:?}");
    }
}

#[test]
fn symbolic_lengths_keep_their_axes() {
    let dim = Dim::symbol;
    let a = [dim("batch"), Dim::Known(2), dim("queries"), Dim::Known(3)];
    let b = [dim("batch"), Dim::Known(2), dim("keys"), Dim::Known(3)];
    let inputs = [values(&[2, 2, 4, 3], 1), values(&[2, 2, 5, 3], 2)];
    let left = rewritten("bhqd,bhkd->bhqk", &a, &b, &inputs);
    assert!(!left.contains(&"Einsum".to_owned()), "{left:?}");
    let turned = rewritten("bhqd,bhkd->bqhk", &a, &b, &inputs);
    assert!(!turned.contains(&"Einsum".to_owned()), "{turned:?}");
}

#[test]
fn an_ellipsis_is_a_batch() {
    let inputs = [values(&[2, 3, 4, 5], 1), values(&[2, 3, 5, 2], 2)];
    let (a, b) = (known(&[2, 3, 4, 5]), known(&[2, 3, 5, 2]));
    let left = rewritten("...ij,...jk->...ik", &a, &b, &inputs);
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn what_is_no_plain_product_stays() {
    let square = [values(&[3, 3], 1), values(&[3, 3], 2)];
    let dims = known(&[3, 3]);
    for equation in ["ii,ij->j", "ij,kl->ik", "ij,jk->k"] {
        assert_eq!(rewritten(equation, &dims, &dims, &square), ["Einsum"], "{equation}");
    }
    // Lengths that may differ broadcast.
    let (a, b) = ([Dim::symbol("n"), Dim::Known(3)], [Dim::symbol("m"), Dim::Known(3)]);
    assert_eq!(rewritten("ij,ij->ij", &a, &b, &square), ["Einsum"]);
}
