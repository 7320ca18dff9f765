//! Operators that move elements, through Core ML packages: shapes that are known and that each run
//! brings.

use crate::package::node;
use galatea_graph::AttributeValue;
use galatea_tensor::Tensor;
use galatea_testkit::graph_maker::{floats, ints};

fn list(all: &[i64]) -> Tensor {
    Tensor::vector(all.to_vec())
}

fn int(value: i64) -> AttributeValue {
    value.into()
}

fn word(value: &str) -> AttributeValue {
    AttributeValue::String(value.into())
}

#[test]
fn reshapes_keep_lengths_that_a_run_brings() {
    let x = floats(&[2, 3, 4], 1);
    node("Reshape", &[], std::slice::from_ref(&x), &[list(&[0, -1])], 1).fixed().flexible();
    node("Reshape", &[], std::slice::from_ref(&x), &[list(&[0, 0, 2, -1])], 1).fixed().flexible();
    node("Reshape", &[], std::slice::from_ref(&x), &[list(&[-1])], 1).fixed().flexible();
    node("Reshape", &[], &[x.clone(), list(&[4, -1])], &[], 1).fixed();
    node("Reshape", &[], &[floats(&[1, 1], 2)], &[list(&[])], 1).fixed();
    node("Flatten", &[("axis", int(2))], std::slice::from_ref(&x), &[], 1).fixed().flexible();
    node("Flatten", &[("axis", int(0))], &[x], &[], 1).fixed().flexible();
}

#[test]
fn axes_come_go_and_change_places() {
    let x = floats(&[1, 3, 1, 4], 3);
    let one = std::slice::from_ref(&x);
    node("Squeeze", &[], one, &[list(&[0, -2])], 1).fixed().flexible();
    node("Squeeze", &[], one, &[], 1).fixed().refused_flexible("axes of length 1");
    node("Unsqueeze", &[], one, &[list(&[-1])], 1).fixed().flexible();
    node("Unsqueeze", &[], one, &[list(&[2, 0])], 1).refused("more than 5 axes");
    node("Transpose", &[("perm", [3_usize, 0, 2, 1].as_slice().into())], one, &[], 1)
        .fixed()
        .flexible();
    node("Transpose", &[], one, &[], 1).fixed().flexible();
}

#[test]
fn values_are_joined_and_cut_apart() {
    let (x, y) = (floats(&[2, 3], 4), floats(&[2, 5], 5));
    node("Concat", &[("axis", int(-1))], &[x.clone(), y], &[], 1).fixed();
    let x = floats(&[6, 2], 6);
    let one = std::slice::from_ref(&x);
    node("Split", &[], one, &[list(&[1, 2, 3])], 3).fixed().flexible();
    node("Split", &[("num_outputs", int(3))], one, &[], 3).fixed();
    node("Split", &[("num_outputs", int(4))], one, &[], 4)
        .refused("which Core ML does not have")
        .refused_flexible("the last part");
}

#[test]
fn slices_go_both_ways_and_end_where_the_axis_does() {
    let x = floats(&[7, 5], 7);
    let one = std::slice::from_ref(&x);
    let slice = |starts: &[i64], ends: &[i64], axes: &[i64], steps: &[i64]| {
        node("Slice", &[], one, &[list(starts), list(ends), list(axes), list(steps)], 1)
    };
    slice(&[1, -3], &[100, i64::MAX], &[0, 1], &[2, 1]).fixed().flexible();
    slice(&[-1], &[i64::MIN], &[0], &[-1]).fixed().flexible();
    slice(&[5, 3], &[0, -100], &[0, 1], &[-2, -1]).fixed().refused_flexible("backwards");
    slice(&[0], &[-2], &[1], &[1]).fixed().flexible();
    // Bounds that a run brings.
    node("Slice", &[], &[x.clone(), list(&[1]), list(&[-1])], &[list(&[1])], 1).fixed();
}

#[test]
fn values_are_repeated_and_spread() {
    let x = floats(&[2, 1, 3], 8);
    let one = std::slice::from_ref(&x);
    node("Expand", &[], one, &[list(&[4, 1])], 1).fixed().flexible();
    node("Expand", &[], one, &[list(&[2, 2, 5, 3])], 1).fixed().flexible();
    node("Expand", &[], &[x.clone(), list(&[2, 4, 3])], &[], 1).fixed();
    node("Tile", &[], one, &[list(&[1, 3, 2])], 1).fixed().flexible();
    node("Tile", &[], &[x.clone(), list(&[1, 2, 1])], &[], 1).fixed();
}

#[test]
fn frames_are_constants_or_the_elements_themselves() {
    let x = floats(&[1, 2, 3, 4], 9);
    let one = std::slice::from_ref(&x);
    let pads = list(&[0, 0, 1, 2, 0, 0, 2, 1]);
    node("Pad", &[], one, &[pads.clone(), Tensor::scalar(2.5_f32)], 1).fixed().flexible();
    for mode in ["reflect", "edge", "wrap"] {
        let case =
            node("Pad", &[("mode", word(mode))], one, std::slice::from_ref(&pads), 1).fixed();
        if mode != "wrap" {
            case.flexible();
        }
    }
    let far = list(&[0, 0, 5, 0, 0, 0, 0, 9]);
    node("Pad", &[("mode", word("edge"))], one, std::slice::from_ref(&far), 1).fixed();
    node("Pad", &[("mode", word("reflect"))], one, &[far], 1).fixed();
    let cut = list(&[0, -1, 1, 0, 0, 0, -1, 2]);
    node("Pad", &[], one, &[cut], 1).fixed();
    let whole = ints(&[2, 2], &[1, 2, 3, 4]);
    node(
        "Pad",
        &[],
        std::slice::from_ref(&whole),
        &[list(&[1, 0, 0, 2]), Tensor::scalar(7_i64)],
        1,
    )
    .fixed()
    .flexible();
    node("Pad", &[("mode", word("edge"))], &[whole], &[list(&[1, 0, 0, 2])], 1).fixed().flexible();
    node("Pad", &[], &[x, list(&[0; 8])], &[], 1).refused("known in a run only");
}

#[test]
fn blocks_triangles_and_sequences() {
    let x = floats(&[2, 8, 2, 3], 10);
    for mode in ["DCR", "CRD"] {
        let named = [("blocksize", int(2)), ("mode", word(mode))];
        node("DepthToSpace", &named, std::slice::from_ref(&x), &[], 1).fixed();
    }
    node("SpaceToDepth", &[("blocksize", int(2))], &[floats(&[1, 2, 4, 6], 11)], &[], 1).fixed();
    let square = floats(&[2, 4, 5], 12);
    for (upper, diagonal) in [(1, 0), (1, 2), (1, -2), (0, 0), (0, 1), (0, -1)] {
        let named = [("upper", int(upper))];
        let one = std::slice::from_ref(&square);
        let case = node("Trilu", &named, one, &[Tensor::scalar(i64::from(diagonal))], 1).fixed();
        match (upper == 1 && diagonal > 0) || (upper == 0 && diagonal < 0) {
            true => case.refused_flexible("beside the diagonal"),
            false => case.flexible(),
        };
    }
    let named = [("batch_axis", int(1)), ("time_axis", int(0))];
    let lengths = list(&[4, 2, 1]);
    node("ReverseSequence", &named, &[floats(&[4, 3, 2], 13)], &[lengths], 1).fixed().flexible();
    node("CenterCropPad", &[], &[floats(&[5, 2], 14)], &[list(&[2, 5])], 1).fixed();
}

#[test]
fn shapes_are_values() {
    let x = floats(&[2, 3, 4], 15);
    let one = std::slice::from_ref(&x);
    node("Shape", &[], one, &[], 1).fixed().flexible();
    node("Shape", &[("start", int(1)), ("end", int(-1))], one, &[], 1).fixed().flexible();
    node("Size", &[], one, &[], 1).fixed().flexible();
    let bounds = [Tensor::scalar(2_i64), Tensor::scalar(11_i64), Tensor::scalar(3_i64)];
    node("Range", &[], &bounds, &[], 1).fixed();
    let value = AttributeValue::Tensor(Tensor::vector(vec![3_i32]));
    node("ConstantOfShape", &[("value", value)], &[list(&[2, 3])], &[], 1).fixed();
    node("EyeLike", &[("k", int(1))], &[floats(&[3, 4], 16)], &[], 1).fixed();
}
