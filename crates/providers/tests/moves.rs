//! Operators that move, pick, order and reduce elements, on their kernels and beside the reference.

use galatea_graph::AttributeValue;
use galatea_tensor::{DataType, Tensor, f16};

use crate::support::{Maker, assert_kernel, check_node, check_outputs, floats, ints};

fn int(value: i64) -> AttributeValue {
    AttributeValue::Int(value)
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::String(value.into())
}

/// The same elements in several types.
fn typed(shape: &[usize]) -> Vec<Tensor> {
    let count = shape.iter().product::<usize>();
    let bytes: Vec<u8> = (0..count).map(|at| (at * 37 % 251) as u8).collect();
    let halves = bytes.iter().map(|&b| f16::from_f32(f32::from(b))).collect();
    vec![
        floats(shape, 3),
        Tensor::from_vec(shape, bytes.iter().map(|&b| i64::from(b)).collect()).unwrap(),
        Tensor::from_vec(shape, bytes.iter().map(|&b| b % 2 == 1).collect()).unwrap(),
        Tensor::from_vec(shape, halves).unwrap(),
        Tensor::from_vec(shape, bytes).unwrap(),
    ]
}

#[test]
fn tiles_repeat_every_axis() {
    let cases: &[(&[usize], &[i64])] = &[
        (&[2, 3, 4], &[2, 1, 3]),
        (&[1, 64, 16], &[3, 2, 4]),
        (&[5], &[0]),
        (&[4, 1], &[1, 1]),
        (&[], &[]),
    ];
    for (shape, repeats) in cases {
        for x in typed(shape) {
            let repeats = ints(&[repeats.len()], repeats);
            check_node("Tile", &[], &[x], &[repeats], "tile-any");
        }
    }
}

#[test]
fn frames_of_every_mode_have_kernels() {
    let cases: &[(&[usize], &[i64])] = &[
        (&[1, 2, 5, 6], &[0, 0, 3, 2, 0, 0, 1, 4]),
        (&[3, 4, 8], &[0, 1, 0, 0, 2, 0]),
        (&[6], &[-1, 3]),
        (&[4, 5], &[-2, 2, 1, -3]),
        (&[3, 4], &[0, 0, 0, 0]),
    ];
    for mode in ["constant", "reflect", "edge", "wrap"] {
        for (shape, pads) in cases {
            for x in typed(shape) {
                let mut maker = Maker::new();
                // The mode `wrap` came with this version.
                maker.graph.opsets.insert(String::new(), 19);
                let x = maker.input("x", x);
                let pads = maker.constant(ints(&[pads.len()], pads));
                let y = maker.node("Pad", &[("mode", text(mode))], &[x, pads], 1);
                assert_kernel(&maker.check(&y, 1).1, "pad-any");
            }
        }
    }
    // The filling and the axes are inputs.
    let axes = [ints(&[2], &[1, 2]), floats(&[1], 8).reshape(&[]).unwrap(), ints(&[1], &[-1])];
    let mut maker = Maker::new();
    maker.graph.opsets.insert(String::new(), 18);
    let x = maker.input("x", floats(&[3, 4], 1));
    let [pads, fill, axis] = axes.map(|tensor| maker.constant(tensor));
    let y = maker.node("Pad", &[], &[x, pads, fill, axis], 1);
    assert_kernel(&maker.check(&y, 1).1, "pad-any");
}

#[test]
fn a_filling_may_come_with_the_run() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[3, 4], 1));
    let fill = maker.input("fill", floats(&[1], 2).reshape(&[]).unwrap());
    let pads = maker.constant(ints(&[4], &[1, 0, 0, 2]));
    let y = maker.node("Pad", &[], &[x, pads, fill], 1);
    assert_kernel(&maker.check(&y, 1).1, "pad-any");
}

#[test]
fn triangles_have_kernels() {
    for x in typed(&[3, 5, 7]) {
        for upper in [0, 1] {
            check_node("Trilu", &[("upper", int(upper))], &[x.clone()], &[], "trilu-any");
            let shifted = [ints(&[], &[upper * 4 - 2])];
            check_node("Trilu", &[("upper", int(upper))], &[x.clone()], &shifted, "trilu-any");
        }
    }
}

#[test]
fn channels_are_folded_into_images_and_back() {
    for mode in ["DCR", "CRD"] {
        let attributes = [("blocksize", int(2)), ("mode", text(mode))];
        for x in typed(&[2, 12, 3, 5]) {
            check_node("DepthToSpace", &attributes, &[x], &[], "depth_to_space-any");
        }
    }
    for x in typed(&[2, 3, 4, 6]) {
        check_node("SpaceToDepth", &[("blocksize", int(2))], &[x], &[], "space_to_depth-any");
    }
}

#[test]
fn elements_and_slices_are_picked() {
    let at = ints(&[2, 4, 2], &[0, 1, 2, -1, -3, 0, 1, 2, 2, 2, 0, 1, -2, 0, 1, 1]);
    for x in typed(&[3, 4, 3]) {
        let axis = [("axis", int(2))];
        check_node("GatherElements", &axis, &[x.clone(), at.clone()], &[], "gather_elements-any");
        let first = [("axis", int(-3))];
        check_node("GatherElements", &first, &[x.clone(), at.clone()], &[], "gather_elements-any");
        let narrow = Tensor::from_slice(&[2, 2], &[0_i32, 3, -1, -4]).unwrap();
        check_node(
            "GatherND",
            &[],
            &[x.clone(), ints(&[2, 2], &[0, 3, -1, -4])],
            &[],
            "gather_nd-any",
        );
        check_node(
            "GatherElements",
            &[],
            &[floats(&[4, 2], 1), narrow],
            &[],
            "gather_elements-any",
        );
        let whole = ints(&[2, 1, 3], &[0, 1, 2, 2, 3, 0]);
        check_node("GatherND", &[], &[x.clone(), whole], &[], "gather_nd-any");
        let batched = [("batch_dims", int(1))];
        let rows = ints(&[3, 2, 1], &[0, 1, -1, 3, 2, 2]);
        check_node("GatherND", &batched, &[x, rows], &[], "gather_nd-any");
    }
}

#[test]
fn elements_are_written_and_combined() {
    let at = ints(&[2, 3], &[0, 1, 1, -1, 2, 0]);
    let kernel = "scatter_elements-any";
    for x in typed(&[4, 3]) {
        let updates = typed(&[2, 3]).into_iter().find(|one| one.dtype() == x.dtype()).unwrap();
        for axis in [0, 1] {
            let inputs = [x.clone(), at.clone(), updates.clone()];
            check_node("ScatterElements", &[("axis", int(axis))], &inputs, &[], kernel);
        }
    }
    for reduction in ["add", "mul", "max", "min"] {
        let attributes = [("reduction", text(reduction)), ("axis", int(1))];
        let mut maker = Maker::new();
        maker.graph.opsets.insert(String::new(), 18);
        let x = maker.input("x", floats(&[4, 3], 1));
        let at = maker.constant(at.clone());
        let new = maker.input("new", floats(&[2, 3], 2));
        let y = maker.node("ScatterElements", &attributes, &[x, at, new], 1);
        assert_kernel(&maker.check(&y, 4).1, kernel);
    }
}

#[test]
fn wrong_indices_are_errors_of_the_node() {
    for (op, updates) in [("GatherElements", None), ("ScatterElements", Some(floats(&[1, 2], 2)))] {
        let mut maker = Maker::new();
        let x = maker.input("x", floats(&[2, 3], 1));
        let at = maker.input("at", ints(&[1, 2], &[0, 7]));
        let mut inputs = vec![x, at];
        inputs.extend(updates.map(|new| maker.input("new", new)));
        let y = maker.node(op, &[("axis", int(1))], &inputs, 1);
        maker.graph.outputs = y.into_iter().flatten().collect();
        let named: Vec<(&str, Tensor)> =
            maker.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let run = galatea_runtime::Run::named(&named);
        let error = maker.session("cpu").run_tensors(run).unwrap_err().to_string();
        assert!(error.contains("index 7") && error.contains("length 3"), "{error}");
    }
}

#[test]
fn lines_are_searched_and_ordered() {
    for (shape, axis) in [(&[6, 70][..], 1), (&[3, 8, 20], 1), (&[40], 0), (&[2, 3, 4], -3)] {
        let x = floats(shape, 4);
        for op in ["ArgMax", "ArgMin"] {
            for (keep, last) in [(0, 0), (1, 1)] {
                let list = [
                    ("axis", int(axis)),
                    ("keepdims", int(keep)),
                    ("select_last_index", int(last)),
                ];
                check_node(op, &list, &[x.clone()], &[], "arg_reduce-f32");
            }
        }
        for largest in [0, 1] {
            let list = [("axis", int(axis)), ("largest", int(largest))];
            let k = [ints(&[1], &[2])];
            check_outputs("TopK", &list, &[x.clone()], &k, 2, "top_k-f32");
        }
    }
}

#[test]
fn every_reduction_has_a_kernel() {
    let ops = ["ReduceL1", "ReduceL2", "ReduceProd", "ReduceLogSum", "ReduceMax", "ReduceMean"];
    for op in ops {
        for axes in [&[1_i64][..], &[2], &[1, 2], &[-3]] {
            let x = floats(&[3, 4, 50], 2);
            // A logarithm needs a sum above zero.
            let x = if op == "ReduceLogSum" { absolute(&x) } else { x };
            let list = [("axes", AttributeValue::Ints(axes.to_vec()))];
            check_node(op, &list, &[x], &[], "reduce-f32");
        }
    }
}

fn absolute(x: &Tensor) -> Tensor {
    let all = x.to_vec::<f32>().unwrap().into_iter().map(|x| x.abs() + 0.1).collect();
    Tensor::from_vec(x.shape(), all).unwrap()
}

#[test]
fn fused_activations_and_sums_have_kernels() {
    let x = floats(&[2, 5, 48], 1);
    let bias = floats(&[48], 2);
    let kernel = "bias_activation-f32";
    for op in ["com.microsoft:BiasGelu", "com.microsoft:FastGelu"] {
        check_node(op, &[], &[x.clone()], &[bias.clone()], kernel);
    }
    check_node("com.microsoft:FastGelu", &[], &[x.clone()], &[], kernel);
    let alpha = [("alpha", AttributeValue::Float(1.3))];
    check_node("com.microsoft:QuickGelu", &alpha, &[x.clone()], &[], kernel);
    let skip = floats(&[2, 5, 48], 3);
    let (gamma, beta) = (floats(&[48], 4), floats(&[48], 5));
    for parameters in [1, 2, 3] {
        let all = [gamma.clone(), beta.clone(), bias.clone()];
        let mut maker = Maker::new();
        let mut inputs = vec![maker.input("x", x.clone()), maker.input("skip", skip.clone())];
        for parameter in &all[..parameters] {
            inputs.push(maker.constant(parameter.clone()));
        }
        let y = maker.node("com.microsoft:SkipLayerNormalization", &[], &inputs, 4);
        let wanted = [y[0], y[3]];
        maker.graph.nodes[0].outputs[1..3].fill(None);
        assert_kernel(&maker.check(&wanted, 100).1, "skip_norm-f32");
    }
    let inputs = [x, skip];
    let op = "com.microsoft:SkipSimplifiedLayerNormalization";
    check_node(op, &[], &inputs, &[gamma, bias], "skip_norm-f32");
}

#[test]
fn slopes_spread_over_what_they_bend() {
    for slope in [&[32, 1, 1][..], &[1], &[2, 32, 3, 4]] {
        let inputs = [floats(&[2, 32, 3, 4], 1)];
        check_node("PRelu", &[], &inputs, &[floats(slope, 2)], "binary-f32");
    }
}

#[test]
fn whole_numbers_round_to_even() {
    let x = Tensor::from_vec(&[6], vec![0.5_f32, 1.5, -2.5, 2.4999, -0.4, 7.0]).unwrap();
    for op in ["Round", "Floor", "Ceil", "Sign"] {
        check_node(op, &[], &[x.clone()], &[], "unary-f32");
    }
    assert_eq!(x.dtype(), DataType::Fp32);
}

#[test]
fn casts_between_numbers_have_kernels() {
    let reals = [0.0_f32, -0.9, 1.5, -2.5, 300.7, -129.2, 1e10, -3e9, 65_536.5];
    let wide = reals.map(f64::from);
    let longs = [0_i64, -1, 1 << 33, i64::MIN, 255, -129, 16_777_217, 7, i64::MAX];
    let shorts = [0_i32, -1, i32::MIN, i32::MAX, 16_777_217, 5, 6, 7, 8];
    let bytes = [0_u8, 1, 127, 128, 255, 3, 4, 5, 6];
    let signed = [0_i8, -1, 127, -128, 5, 6, 7, 8, 9];
    let cases: &[(Tensor, &[i64])] = &[
        (Tensor::from_slice(&[9], &reals).unwrap(), &[7, 6, 2, 3, 11, 9]),
        (Tensor::from_slice(&[9], &wide).unwrap(), &[1, 7]),
        (Tensor::from_slice(&[9], &longs).unwrap(), &[6, 11, 1, 9]),
        (Tensor::from_slice(&[9], &shorts).unwrap(), &[7, 11, 1]),
        (Tensor::from_slice(&[9], &bytes).unwrap(), &[1, 6, 7, 9]),
        (Tensor::from_slice(&[9], &signed).unwrap(), &[1, 6]),
    ];
    for (x, targets) in cases {
        for &to in *targets {
            check_node("Cast", &[("to", int(to))], &[x.clone()], &[], "cast-number");
        }
    }
}

#[test]
fn products_of_doubles_and_integers_have_a_kernel() {
    let number = |at: usize| (at * 37 % 23) as i64 - 11;
    for (a, b) in [(&[5, 7][..], &[7, 20][..]), (&[2, 1, 3, 4], &[3, 4, 9]), (&[0, 4], &[4, 3])] {
        let count = |shape: &[usize]| shape.iter().product::<usize>();
        let longs = |shape: &[usize]| {
            Tensor::from_vec(shape, (0..count(shape)).map(number).collect()).unwrap()
        };
        let shorts = |shape: &[usize]| {
            let all = (0..count(shape)).map(|at| number(at) as i32).collect();
            Tensor::from_vec(shape, all).unwrap()
        };
        let doubles = |shape: &[usize]| {
            let all = (0..count(shape)).map(|at| number(at) as f64 / 3.0).collect();
            Tensor::from_vec(shape, all).unwrap()
        };
        check_node("MatMul", &[], &[longs(a), longs(b)], &[], "matmul-plain");
        check_node("MatMul", &[], &[shorts(a), shorts(b)], &[], "matmul-plain");
        check_node("MatMul", &[], &[doubles(a), doubles(b)], &[], "matmul-plain");
    }
}

#[test]
fn images_are_read_between_their_elements() {
    let x = floats(&[2, 3, 7, 5], 1);
    // Positions inside, at the edges and far outside.
    let grid: Vec<f32> = galatea_testkit::graph_maker::values(2 * 6 * 4 * 2, 7);
    let grid = grid.into_iter().map(|at| at * 1.6).collect();
    let grid = Tensor::from_vec(&[2, 6, 4, 2], grid).unwrap();
    for mode in ["bilinear", "nearest", "bicubic"] {
        for padding in ["zeros", "border", "reflection"] {
            for corners in [0, 1] {
                let list = [
                    ("mode", text(mode)),
                    ("padding_mode", text(padding)),
                    ("align_corners", int(corners)),
                ];
                let mut maker = Maker::new();
                let inputs = [maker.input("x", x.clone()), maker.input("grid", grid.clone())];
                let y = maker.node("GridSample", &list, &inputs, 1);
                assert_kernel(&maker.check_within(&y, 1e-5), "grid_sample-f32");
            }
        }
    }
}

#[test]
fn regions_are_averaged_on_a_kernel() {
    let x = floats(&[2, 3, 9, 8], 1);
    let all = [[0.0_f32, 0.0, 6.0, 5.0], [-3.0, 2.5, 4.0, 20.0], [5.0, 5.0, 5.0, 5.0]];
    let regions = Tensor::from_vec(&[3, 4], all.concat()).unwrap();
    let images = ints(&[3], &[0, 1, 1]);
    for ratio in [0, 2] {
        for mode in ["half_pixel", "output_half_pixel"] {
            let list = [
                ("output_height", int(3)),
                ("output_width", int(2)),
                ("sampling_ratio", int(ratio)),
                ("spatial_scale", AttributeValue::Float(0.75)),
                ("coordinate_transformation_mode", text(mode)),
            ];
            let inputs = [x.clone(), regions.clone()];
            check_node("RoiAlign", &list, &inputs, &[images.clone()], "roi_align-f32");
        }
    }
}
