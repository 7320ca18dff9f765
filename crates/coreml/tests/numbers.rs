//! Operators that reduce, sort, look up and resample, through Core ML packages.

use crate::package::node;
use galatea_graph::AttributeValue;
use galatea_tensor::Tensor;
use galatea_testkit::graph_maker::{floats, ints, values};

fn list(all: &[i64]) -> Tensor {
    Tensor::vector(all.to_vec())
}

fn int(value: i64) -> AttributeValue {
    value.into()
}

fn word(value: &str) -> AttributeValue {
    AttributeValue::String(value.into())
}

/// Values from 0.5 to 1.5, of which there are logarithms.
fn positive(shape: &[usize]) -> Tensor {
    let all = values(shape.iter().product(), 77);
    Tensor::from_vec(shape, all.iter().map(|value| value / 2.0 + 1.0).collect()).unwrap()
}

#[test]
fn reductions_over_some_axes_and_all() {
    let x = positive(&[2, 3, 4]);
    let one = std::slice::from_ref(&x);
    for op in [
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceSumSquare",
    ] {
        node(op, &[("keepdims", int(0))], one, &[list(&[-1, 0])], 1).fixed().flexible();
        node(op, &[], one, &[list(&[1])], 1).fixed().flexible();
        node(op, &[("keepdims", int(0))], one, &[], 1).fixed().flexible();
        node(op, &[("noop_with_empty_axes", int(1))], one, &[], 1).fixed();
    }
    let whole = ints(&[2, 2], &[1, -2, 3, 4]);
    node("ReduceSum", &[], std::slice::from_ref(&whole), &[list(&[1])], 1).fixed().flexible();
    node("ReduceMean", &[], &[whole], &[list(&[1])], 1).refused("rounded");
    let truths = Tensor::from_vec(&[2, 2], vec![true, false, true, true]).unwrap();
    node("ReduceMin", &[], &[truths], &[list(&[0])], 1).fixed();
    // Squares of 400 exceed FP16, their root does not.
    node("ReduceL2", &[], &[Tensor::vector(vec![400.0_f32, 300.0])], &[], 1).fixed();
}

#[test]
fn places_of_extremes_and_order() {
    let x = Tensor::from_vec(&[2, 4], vec![3.0_f32, 7.0, 7.0, 1.0, 5.0, 1.0, 1.0, 5.0]).unwrap();
    let one = std::slice::from_ref(&x);
    for op in ["ArgMax", "ArgMin"] {
        for last in [0, 1] {
            let named = [("axis", int(1)), ("select_last_index", int(last))];
            node(op, &named, one, &[], 1).fixed().flexible();
        }
        node(op, &[("axis", int(-2)), ("keepdims", int(0))], one, &[], 1).fixed().flexible();
    }
    let x = floats(&[3, 5], 20);
    let one = std::slice::from_ref(&x);
    node("TopK", &[], one, &[list(&[3])], 2).fixed().flexible();
    node("TopK", &[("largest", int(0)), ("axis", int(0))], one, &[list(&[2])], 2).fixed();
    node("TopK", &[], &[x.clone(), list(&[2])], &[], 2).fixed();
    for (exclusive, reverse) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let named = [("exclusive", int(exclusive)), ("reverse", int(reverse))];
        node("CumSum", &named, one, &[Tensor::scalar(1_i64)], 1).fixed().flexible();
    }
}

#[test]
fn elements_are_looked_up() {
    let x = floats(&[4, 3, 2], 21);
    let one = std::slice::from_ref(&x);
    for (axis, places) in [(0, list(&[-1, 2, 0])), (1, list(&[1, 2])), (2, Tensor::scalar(-1_i64))]
    {
        let known = std::slice::from_ref(&places);
        node("Gather", &[("axis", int(axis))], one, known, 1).fixed().flexible();
        node("Gather", &[("axis", int(axis))], &[x.clone(), places], &[], 1).fixed().flexible();
    }
    let truths = Tensor::vector(vec![true, false, true]);
    node("Gather", &[], &[truths], &[list(&[2, -2])], 1).fixed();
    let places = ints(&[2, 3, 1], &[0, -1, 2, 3, 1, -4]);
    node("GatherElements", &[], &[x.clone(), places], &[], 1).fixed();
    let places = ints(&[2, 2], &[1, -1, 3, 0]);
    node("GatherND", &[], &[x.clone(), places], &[], 1).fixed();
    let places = ints(&[4, 1, 1], &[1, 0, 2, -1]);
    node("GatherND", &[("batch_dims", int(1))], &[x], &[places], 1).fixed();
    let hot = node(
        "OneHot",
        &[("axis", int(1))],
        &[ints(&[2, 2], &[0, 2, -1, 7])],
        &[Tensor::scalar(3_i64), Tensor::vector(vec![-1.0_f32, 2.0])],
        1,
    );
    hot.fixed().flexible();
    let some = Tensor::from_vec(&[2, 3], vec![0.0_f32, 1.0, 0.0, 2.0, 0.0, 3.0]).unwrap();
    node("NonZero", &[], std::slice::from_ref(&some), &[], 1).fixed().flexible();
    let held = Tensor::vector(vec![false, true]);
    node("Compress", &[("axis", int(1))], &[some.clone(), held.clone()], &[], 1).fixed();
    node("Compress", &[], &[some, held], &[], 1).fixed();
}

#[test]
fn elements_are_written() {
    let x = floats(&[4, 3], 22);
    for mode in ["none", "add", "mul", "max", "min"] {
        let named = [("reduction", word(mode))];
        let places = ints(&[2, 1], &[-1, 1]);
        let updates = floats(&[2, 3], 23);
        node("ScatterND", &named, &[x.clone(), places, updates], &[], 1).fixed();
        let places = ints(&[2, 3], &[0, -1, 2, 3, 1, 0]);
        let updates = floats(&[2, 3], 24);
        node("ScatterElements", &named, &[x.clone(), places, updates], &[], 1).fixed();
        let places = ints(&[1, 2], &[0, -1]);
        let updates = floats(&[1, 2], 25);
        node("ScatterElements", &named, &[x.clone(), places, updates], &[], 1).fixed();
    }
}

#[test]
fn images_get_other_sizes() {
    let x = floats(&[1, 2, 4, 6], 26);
    let one = std::slice::from_ref(&x);
    let none = || Tensor::vector(Vec::<f32>::new());
    let sizes: [&[i64]; 3] = [&[1, 2, 8, 12], &[1, 2, 7, 4], &[1, 2, 2, 9]];
    for mode in ["nearest", "linear", "cubic"] {
        for place in ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"] {
            for sizes in sizes {
                let named = [("mode", word(mode)), ("coordinate_transformation_mode", word(place))];
                node("Resize", &named, one, &[none(), none(), list(sizes)], 1).fixed();
            }
        }
    }
    let named = [("mode", word("linear")), ("antialias", int(1))];
    node("Resize", &named, one, &[none(), none(), list(&[1, 2, 2, 3])], 1).fixed();
    let twice = Tensor::vector(vec![1.0_f32, 1.0, 2.0, 3.0]);
    let named = [
        ("mode", word("nearest")),
        ("nearest_mode", word("floor")),
        ("coordinate_transformation_mode", word("asymmetric")),
    ];
    node("Resize", &named, one, &[none(), twice.clone()], 1).fixed().flexible();
    let named = [("mode", word("linear"))];
    node("Resize", &named, one, &[none(), twice.clone()], 1).fixed().flexible();
    let named = [("mode", word("cubic"))];
    node("Resize", &named, one, &[none(), twice], 1).fixed().refused_flexible("only a run knows");
    let named = [
        ("mode", word("linear")),
        ("coordinate_transformation_mode", word("tf_crop_and_resize")),
        ("extrapolation_value", AttributeValue::Float(3.0)),
    ];
    let region = Tensor::vector(vec![0.0_f32, 0.0, -0.2, 0.3, 1.0, 1.0, 0.9, 1.4]);
    node("Resize", &named, one, &[region, none(), list(&[1, 2, 5, 5])], 1).fixed();
}

#[test]
fn images_are_read_at_points() {
    let x = floats(&[2, 3, 5, 4], 27);
    let points = values(2 * 3 * 3 * 2, 28).into_iter().map(|value| value * 1.4).collect();
    let grid: Tensor = Tensor::from_vec::<f32>(&[2, 3, 3, 2], points).unwrap();
    for padding in ["zeros", "border", "reflection"] {
        for aligned in [0, 1] {
            let named = [("padding_mode", word(padding)), ("align_corners", int(aligned))];
            node("GridSample", &named, &[x.clone(), grid.clone()], &[], 1).fixed32().flexible32();
        }
    }
    for padding in ["zeros", "border", "reflection"] {
        for aligned in [0, 1] {
            let named = [
                ("mode", word("cubic")),
                ("padding_mode", word(padding)),
                ("align_corners", int(aligned)),
            ];
            node("GridSample", &named, &[x.clone(), grid.clone()], &[], 1).fixed32();
        }
    }
    let matrices = floats(&[2, 2, 3], 29);
    node("AffineGrid", &[], &[matrices], &[list(&[2, 1, 4, 5])], 1).fixed();
    let matrices = floats(&[1, 3, 4], 30);
    let named = [("align_corners", int(1))];
    node("AffineGrid", &named, &[matrices], &[list(&[1, 1, 2, 3, 4])], 1).fixed();
}

#[test]
fn what_is_no_number_is_told() {
    let x = Tensor::vector(vec![1.0_f32, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -3.0]);
    let one = std::slice::from_ref(&x);
    node("IsNaN", &[], one, &[], 1).fixed().flexible();
    for (negative, positive) in [(1, 1), (0, 1), (1, 0), (0, 0)] {
        let named = [("detect_negative", int(negative)), ("detect_positive", int(positive))];
        node("IsInf", &named, one, &[], 1).fixed().flexible();
    }
}

#[test]
fn remainders_of_integers_have_the_sign_of_the_dividend_or_the_divisor() {
    let all = |values: &[i32]| Tensor::from_vec(&[values.len()], values.to_vec()).unwrap();
    let most = i32::MAX;
    let a = all(&[-7, 7, -7, 7, most, -most, -5, 6, 0, -1]);
    let b = all(&[3, -3, -3, 3, -2, 2, 5, -3, -4, most]);
    for fmod in [0, 1] {
        node("Mod", &[("fmod", int(fmod))], &[a.clone(), b.clone()], &[], 1).fixed().flexible();
    }
    // One divisor for rows, and rows for one dividend.
    let rows = Tensor::from_vec(&[2, 3], vec![-4_i32, -3, -2, 2, 3, 4]).unwrap();
    node("Mod", &[("fmod", int(1))], &[rows.clone(), all(&[-3])], &[], 1).fixed().flexible();
    node("Mod", &[("fmod", int(1))], &[all(&[-5]), rows], &[], 1).fixed().flexible();
}

#[test]
fn remainders_of_floats_are_those_of_exact_quotients() {
    let x = vec![0.3_f32, -0.3, 7.5, -7.5, 0.0, 1e6, 5.0, 0.7, 12_345.67];
    let y = vec![0.1_f32, 0.1, -2.0, 0.75, 3.0, 0.1, f32::INFINITY, 0.7, 0.001];
    let of = |values: Vec<f32>| Tensor::vector(values);
    let named = [("fmod", int(1))];
    node("Mod", &named, &[of(x), of(y)], &[], 1).fixed32().flexible32();
}
