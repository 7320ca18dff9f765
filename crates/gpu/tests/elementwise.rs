//! Functions of elements on the device, compared with their reference over awkward shapes and in both
//! precisions.

use crate::support::node::{Node, bytes, floats, wide};
use galatea_graph::{AttributeValue, Attributes};
use galatea_tensor::{Tensor, Tolerance};

const SHAPES: &[&[usize]] = &[&[], &[1], &[3], &[4], &[5, 7], &[2, 3, 8], &[0, 4], &[257, 5]];

#[test]
fn functions_of_one_element_agree_for_every_length() {
    for op in ["Relu", "Sigmoid", "Tanh", "Erf", "Sin", "Softplus", "Mish", "Gelu", "HardSwish"] {
        for shape in SHAPES {
            Node::new("", op).input(floats(shape, 4.0)).near(2e-6, 2e-3);
        }
    }
}

#[test]
fn operands_broadcast_along_any_axes() {
    let pairs: &[(&[usize], &[usize])] = &[
        (&[5, 7], &[7]),
        (&[6, 8], &[8]),
        (&[6, 8], &[6, 1]),
        (&[2, 3, 4], &[3, 1]),
        (&[2, 3, 5], &[2, 1, 5]),
        (&[2, 1, 8], &[1, 3, 1]),
        (&[1, 5], &[4, 1]),
        (&[], &[3, 3]),
        (&[2, 1, 3, 1, 4], &[5, 1, 2, 1]),
        (&[2, 0], &[1, 1]),
    ];
    for (a, b) in pairs {
        for op in ["Add", "Mul", "Max"] {
            Node::new("", op).input(floats(a, 3.0)).input(floats(b, 5.0)).near(2e-6, 2e-2);
        }
    }
}

#[test]
fn the_same_value_may_be_both_operands() {
    let shape = [3, 5];
    let node = Node::new("", "Mul").input(floats(&shape, 2.0));
    node.again(0).near(1e-6, 4e-3);
}

#[test]
fn integers_and_truth_values_agree() {
    for (a, b) in [(&[3, 5][..], &[5][..]), (&[7], &[1]), (&[2, 4], &[2, 1])] {
        for op in ["Add", "Mul", "Sub", "Max"] {
            Node::new("", op).input(bytes(a)).input(bytes(b)).exact();
            Node::new("", op).input(wide(a)).input(wide(b)).exact();
        }
        Node::new("", "Less").input(bytes(a)).input(bytes(b)).exact();
        Node::new("", "Equal").input(wide(a)).input(wide(b)).exact();
    }
}

#[test]
fn casts_agree_between_all_types() {
    let to = |number: i64| Attributes::from([("to".to_owned(), AttributeValue::Int(number))]);
    for number in [1, 10, 6, 7, 9, 2, 3] {
        let odd = Tensor::from_vec(&[7], vec![0.0, -1.5, 2.5, 300.7, -3e9, 1e4, f32::NAN]).unwrap();
        let number_of = |x: Tensor| Node::new("", "Cast").with(to(number)).input(x);
        number_of(odd).exact();
        number_of(Tensor::from_vec(&[5], vec![0_i64, -1, 1 << 40, 255, 7]).unwrap()).exact();
        number_of(Tensor::from_vec(&[3], vec![true, false, true]).unwrap()).exact();
        number_of(Tensor::from_vec(&[6], vec![0_i8, -1, 127, -128, 5, 6]).unwrap()).exact();
    }
}

#[test]
fn powers_of_negative_numbers_exist_for_whole_exponents_only() {
    let base = Tensor::from_vec(&[9], vec![-2.0_f32, -2.0, -2.0, 0.0, 0.0, 4.0, -0.0, 1.0, 3.0]);
    let exponent = Tensor::from_vec(&[9], vec![3.0_f32, -2.0, 0.5, 0.0, -1.0, 0.5, -1.0, 9e9, 0.0]);
    let node = Node::new("", "Pow").input(base.unwrap()).input(exponent.unwrap());
    node.compare(Tolerance::Within(1e-5));
}

#[test]
fn what_is_no_number_or_infinite_stays_so() {
    let (none, all) = (f32::NAN, f32::INFINITY);
    let odd = || Tensor::from_vec(&[7], vec![none, all, -all, -1.0, 0.0, 1.0, none]).unwrap();
    for op in ["Exp", "Log", "Erf", "Tanh", "Sigmoid", "Softplus", "Sign", "HardSigmoid", "Relu"] {
        Node::new("", op).input(odd()).compare(Tolerance::Within(1e-5));
    }
    let other = || Tensor::from_vec(&[7], vec![0.0, none, 1.0, none, none, none, 2.0]).unwrap();
    for op in ["Min", "Max", "Pow"] {
        Node::new("", op).input(odd()).input(other()).compare(Tolerance::Within(1e-5));
    }
}
