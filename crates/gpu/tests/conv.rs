//! Convolutions on the device, compared with their reference over windows, strides, groups and layouts, with
//! weights that are known beforehand and such that are not, in both precisions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use galatea_graph::{AttributeValue, Attributes, GALATEA_DOMAIN};
use support::node::{Node, floats};

fn ints(values: &[i64]) -> AttributeValue {
    AttributeValue::Ints(values.to_vec())
}

fn attributes<const N: usize>(all: [(&str, AttributeValue); N]) -> Attributes {
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A convolution with weights as an input and as a constant.
fn both(node: &dyn Fn() -> Node, weights: &[usize]) {
    node().input(floats(weights, 1.0)).near(3e-5, 3e-2);
    node().constant(floats(weights, 1.0)).near(3e-5, 3e-2);
}

/// Shapes of image and weights, groups, strides, pads and dilations.
type Case<'a> = (&'a [usize], &'a [usize], i64, [i64; 2], [i64; 4], [i64; 2]);

#[test]
fn windows_strides_pads_and_groups_agree() {
    let cases: &[Case] = &[
        (&[1, 3, 9, 7], &[5, 3, 3, 3], 1, [1, 1], [1, 1, 1, 1], [1, 1]),
        (&[2, 17, 8, 8], &[33, 17, 1, 1], 1, [1, 1], [0, 0, 0, 0], [1, 1]),
        (&[1, 4, 13, 11], &[70, 4, 5, 3], 1, [2, 3], [2, 0, 1, 1], [1, 1]),
        (&[1, 6, 10, 10], &[128, 6, 3, 3], 1, [1, 2], [2, 2, 2, 2], [2, 2]),
        (&[2, 8, 7, 9], &[8, 1, 3, 3], 8, [1, 1], [1, 1, 1, 1], [1, 1]),
        (&[1, 6, 7, 9], &[12, 2, 3, 3], 3, [2, 1], [0, 1, 0, 1], [1, 1]),
        (&[1, 40, 6, 5], &[44, 20, 3, 3], 2, [1, 1], [1, 1, 1, 1], [1, 1]),
    ];
    for (x, w, group, strides, pads, dilations) in cases {
        let attributes = attributes([
            ("group", AttributeValue::Int(*group)),
            ("strides", ints(strides)),
            ("pads", ints(pads)),
            ("dilations", ints(dilations)),
        ]);
        let node = || Node::new("", "Conv").with(attributes.clone()).input(floats(x, 2.0));
        both(&node, w);
    }
}

#[test]
fn one_and_three_axes_agree() {
    both(&|| Node::new("", "Conv").input(floats(&[2, 3, 19], 1.0)), &[4, 3, 5]);
    both(&|| Node::new("", "Conv").input(floats(&[1, 2, 5, 6, 7], 1.0)), &[3, 2, 2, 3, 3]);
    both(&|| Node::new("", "ConvTranspose").input(floats(&[2, 3, 9], 1.0)), &[3, 4, 3]);
}

#[test]
fn images_grow_as_the_reference_says() {
    for (strides, pads, group) in [([1, 1], [0, 0, 0, 0], 1), ([2, 3], [1, 0, 1, 2], 2)] {
        let attributes = attributes([
            ("strides", ints(&strides)),
            ("pads", ints(&pads)),
            ("group", AttributeValue::Int(group)),
        ]);
        let node = || {
            let x = floats(&[2, 6, 5, 4], 1.0);
            Node::new("", "ConvTranspose").with(attributes.clone()).input(x)
        };
        both(&node, &[6, 5, 3, 3]);
    }
}

#[test]
fn bias_residual_and_activation_are_added_in_both_layouts() {
    for (last, image, result) in [(0, [2, 5, 6, 7], [2, 9, 6, 7]), (1, [2, 6, 7, 5], [2, 6, 7, 9])]
    {
        for activation in ["Relu", "Silu", ""] {
            let attributes = attributes([
                ("channels_last", AttributeValue::Int(last)),
                ("pads", ints(&[1, 1, 1, 1])),
                ("activation", AttributeValue::String(activation.into())),
            ]);
            Node::new(GALATEA_DOMAIN, "FusedConv")
                .with(attributes)
                .input(floats(&image, 2.0))
                .constant(floats(&[9, 5, 3, 3], 1.0))
                .constant(floats(&[9], 1.0))
                .input(floats(&result, 3.0))
                .near(3e-5, 3e-2);
        }
    }
}

/// In FP16 these go through cooperative matrices where the device has them, as the others do.
#[test]
fn images_of_many_pixels_agree() {
    for (x, w, strides) in [
        (&[1, 3, 33, 31], &[40, 3, 7, 7], [2, 2]),
        (&[2, 24, 19, 20], &[130, 24, 1, 1], [1, 1]),
        (&[1, 32, 21, 17], &[96, 32, 1, 1], [2, 2]),
    ] as [(&[usize], &[usize], [i64; 2]); 3]
    {
        let with = attributes([("strides", ints(&strides)), ("pads", ints(&[w[2] as i64 / 2; 4]))]);
        let node = Node::new("", "Conv").with(with).input(floats(x, 2.0));
        node.constant(floats(w, 0.2)).constant(floats(&w[..1], 1.0)).near(3e-5, 3e-2);
    }
}

/// Large tiles lose a digit in FP32: factors of their transforms are up to 8.
#[test]
fn windows_of_three_by_three_go_through_short_products() {
    let cases: &[(&[usize], &[usize], [i64; 4])] = &[
        (&[1, 64, 9, 13], &[64, 64, 3, 3], [1, 1, 1, 1]),
        (&[3, 67, 4, 5], &[71, 67, 3, 3], [1, 0, 2, 1]),
        (&[1, 65, 1, 1], &[64, 65, 3, 3], [1, 1, 1, 1]),
    ];
    for (x, w, pads) in cases {
        let with = attributes([("pads", ints(pads))]);
        let node = Node::new("", "Conv").with(with).input(floats(x, 2.0));
        node.constant(floats(w, 0.1)).constant(floats(&w[..1], 1.0)).near(1e-4, 3e-2);
    }
    for (last, image, result) in
        [(0, [2, 64, 9, 8], [2, 66, 9, 8]), (1, [2, 9, 8, 64], [2, 9, 8, 66])]
    {
        let attributes = attributes([
            ("channels_last", AttributeValue::Int(last)),
            ("pads", ints(&[1, 1, 1, 1])),
            ("activation", AttributeValue::String("Relu".into())),
        ]);
        Node::new(GALATEA_DOMAIN, "FusedConv")
            .with(attributes)
            .input(floats(&image, 2.0))
            .constant(floats(&[66, 64, 3, 3], 0.1))
            .constant(floats(&[66], 1.0))
            .input(floats(&result, 3.0))
            .near(1e-4, 3e-2);
    }
}
