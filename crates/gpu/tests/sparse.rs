//! Products with constant matrices of many zeros beside their reference, and which kernels compute them.

use galatea_graph::{AttributeValue, Attributes};
use galatea_tensor::Tensor;

use crate::support::device;
use crate::support::node::{Node, floats};

/// Rows and columns of the matrix: parts of k, and columns beyond whole tiles.
const K: usize = 520;
const N: usize = 268;

/// A matrix of which only these elements are left, by their places along k and along columns.
fn matrix(along: bool, left: impl Fn(usize, usize) -> bool) -> Tensor {
    let shape = if along { [N, K] } else { [K, N] };
    let mut all = floats(&shape, 1.0).to_vec::<f32>().unwrap();
    for (at, value) in all.iter_mut().enumerate() {
        let (k, n) = if along { (at % K, at / K) } else { (at / N, at % N) };
        if !left(k, n) {
            *value = 0.0;
        }
    }
    Tensor::from_vec(&shape, all).unwrap()
}

/// Blocks of 64 rows and 64 columns, of which a quarter is left.
fn blocks(k: usize, n: usize) -> bool {
    (k / 64 + n / 64).is_multiple_of(4)
}

/// Two of each four elements along k.
fn two_of_four(k: usize, n: usize) -> bool {
    (k % 4 + n).is_multiple_of(2)
}

fn product(rows: usize, weights: Tensor, along: bool) -> Node {
    let x = floats(&[rows, K], 1.0);
    if !along {
        return Node::new("", "MatMul").input(x).constant(weights);
    }
    let turned = Attributes::from([("transB".to_owned(), AttributeValue::Int(1))]);
    let node = Node::new("", "Gemm").with(turned).input(x).constant(weights);
    node.constant(floats(&[N], 2.0))
}

/// Names of the kernels that were compiled.
fn names() -> Vec<String> {
    let device = device().unwrap();
    device.shaders().iter().map(|shader| shader.name.to_string()).collect()
}

#[test]
fn blocks_of_zeros_are_left_out() {
    if device().is_none() {
        return;
    }
    for along in [false, true] {
        for rows in [1, 3, 8, 40, 130] {
            product(rows, matrix(along, blocks), along).near(1e-4, 3e-2);
        }
    }
    for name in ["matmul-f32-tiled-sparse", "matmul-f32-rows-sparse", "matmul-f32-columns-sparse"] {
        assert!(names().iter().any(|own| own == name), "{name} is not among {:?}", names());
    }
}

#[test]
fn two_of_four_are_read_alone() {
    if device().is_none() {
        return;
    }
    for along in [false, true] {
        for rows in [1, 2, 7] {
            product(rows, matrix(along, two_of_four), along).near(1e-4, 3e-2);
        }
        // One of four is a case of it; three are not.
        product(2, matrix(along, |k, n| (k + n).is_multiple_of(4)), along).near(1e-4, 3e-2);
        product(2, matrix(along, |k, n| !(k + n).is_multiple_of(4)), along).near(1e-4, 3e-2);
    }
    assert!(names().iter().any(|own| own == "matmul-f32-rows-half"), "{:?}", names());
}

#[test]
fn matrices_of_nothing_and_of_single_blocks_are_computed() {
    if device().is_none() {
        return;
    }
    for along in [false, true] {
        for rows in [1, 40] {
            product(rows, matrix(along, |_, _| false), along).near(1e-6, 1e-3);
            product(rows, matrix(along, |k, n| k == K - 1 && n == N - 1), along).near(1e-5, 1e-2);
        }
    }
}

#[test]
fn what_follows_a_product_follows_one_without_zeros() {
    if device().is_none() {
        return;
    }
    let scaled = Attributes::from([
        ("alpha".to_owned(), AttributeValue::Float(0.5)),
        ("beta".to_owned(), AttributeValue::Float(2.0)),
    ]);
    for left in [blocks, two_of_four] {
        for rows in [2, 70] {
            let node = Node::new("", "Gemm").with(scaled.clone()).input(floats(&[rows, K], 1.0));
            node.constant(matrix(false, left)).input(floats(&[rows, N], 1.0)).near(1e-4, 3e-2);
        }
    }
}
