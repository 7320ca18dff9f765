//! Pools and images of another size, compared with the reference in both precisions.

use crate::support::node::{Node, floats};
use galatea_graph::{AttributeValue, Attributes};
use galatea_tensor::Tensor;

fn with<const N: usize>(all: [(&str, AttributeValue); N]) -> Attributes {
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn ints(all: &[i64]) -> AttributeValue {
    AttributeValue::Ints(all.to_vec())
}

fn window(kernel: &[i64], strides: &[i64], pads: &[i64]) -> Attributes {
    with([("kernel_shape", ints(kernel)), ("strides", ints(strides)), ("pads", ints(pads))])
}

#[test]
fn windows_of_any_size_are_pooled() {
    let cases: &[(&[usize], [&[i64]; 3])] = &[
        (&[2, 3, 7, 9], [&[3, 3], &[2, 2], &[1, 1, 1, 1]]),
        (&[1, 5, 8, 8], [&[2, 2], &[2, 2], &[0, 0, 0, 0]]),
        (&[1, 2, 11], [&[4], &[3], &[0, 2]]),
        (&[1, 2, 5, 6, 4], [&[2, 3, 1], &[1, 2, 1], &[0, 1, 0, 1, 0, 0]]),
    ];
    for (shape, [kernel, strides, pads]) in cases {
        let attributes = || window(kernel, strides, pads);
        let node = |op| Node::new("", op).with(attributes()).input(floats(shape, 2.0));
        node("MaxPool").outputs(2).near(1e-6, 2e-3);
        node("AveragePool").near(1e-6, 2e-3);
        let padded = with([("count_include_pad", AttributeValue::Int(1))]);
        node("AveragePool").with(padded).near(1e-6, 2e-3);
        node("LpPool").near(1e-5, 1e-2);
    }
}

#[test]
fn channels_may_be_last() {
    for channels in [3, 8] {
        let shape = &[2, 7, 9, channels];
        let node = |op| {
            let attributes = window(&[3, 3], &[2, 2], &[1, 1, 1, 1]);
            Node::new("ai.galatea", op).with(attributes).input(floats(shape, 2.0))
        };
        node("MaxPoolNhwc").near(1e-6, 2e-3);
        node("AveragePoolNhwc").near(1e-6, 2e-3);
        let node = Node::new("ai.galatea", "GlobalAveragePoolNhwc").input(floats(shape, 2.0));
        node.near(1e-6, 2e-3);
    }
}

#[test]
fn statistics_of_channels_scale_them() {
    let row = |size: f32| floats(&[3], size);
    let positive = Tensor::vector(vec![0.5_f32, 2.0, 1.5]);
    let node = Node::new("", "BatchNormalization").input(floats(&[2, 3, 5, 7], 2.0));
    let node = node.constant(row(1.0)).constant(row(2.0)).constant(row(0.5));
    node.constant(positive).near(1e-5, 1e-2);
}

#[test]
fn images_get_another_size() {
    let keyword = |text: &str| AttributeValue::String(text.into());
    for (shape, sizes) in [(&[1, 2, 5, 7][..], [1, 2, 9, 4]), (&[2, 4, 4, 3], [2, 8, 2, 3])] {
        let sizes =
            || Tensor::vector(sizes.iter().map(|&len| i64::from(len)).collect::<Vec<i64>>());
        for mode in ["nearest", "linear", "cubic"] {
            for place in ["half_pixel", "align_corners", "asymmetric"] {
                let attributes = with([
                    ("mode", keyword(mode)),
                    ("coordinate_transformation_mode", keyword(place)),
                ]);
                let node = Node::new("", "Resize").with(attributes).input(floats(shape, 2.0));
                node.absent().absent().constant(sizes()).near(1e-5, 1e-2);
            }
        }
    }
}
