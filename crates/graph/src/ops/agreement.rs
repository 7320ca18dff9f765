//! Inference gives what the reference computes, for random shapes and attributes of each family.
//!
//! [`run`] compares the two, with constant, shaped and unknown inputs; here it only has to be fed.
//! An input that an operator refuses is no failure, so each property also counts on the unit tests
//! of the operator to show that proper inputs are accepted.

use galatea_tensor::Tensor;
use proptest::prelude::*;

use super::testing::{attributes, counting, int, ints, run, text};

fn shapes(rank: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..5_usize, rank)
}

fn vector(values: &[i64]) -> Tensor {
    Tensor::vector(values.to_vec())
}

proptest! {
    #[test]
    fn shape_operators_agree(
        shape in shapes(0..4),
        list in prop::collection::vec(-5..6_i64, 0..4),
        axis in -4..4_i64,
        step in prop_oneof![-3..0_i64, 1..4_i64],
    ) {
        let data = counting(&shape);
        let list = vector(&list);
        let axis_of = attributes([("axis", int(axis))]);
        let none = attributes([]);
        for (name, opset, attributes, inputs) in [
            ("Reshape", 14, &none, vec![&data, &list]),
            ("Squeeze", 13, &none, vec![&data, &list]),
            ("Squeeze", 13, &none, vec![&data]),
            ("Unsqueeze", 13, &none, vec![&data, &list]),
            ("Flatten", 13, &axis_of, vec![&data]),
            ("Concat", 13, &axis_of, vec![&data, &data]),
            ("Expand", 13, &none, vec![&data, &list]),
            ("Tile", 13, &none, vec![&data, &list]),
            ("Pad", 13, &none, vec![&data, &list]),
            ("Transpose", 13, &none, vec![&data]),
            ("Shape", 13, &none, vec![&data]),
            ("Size", 13, &none, vec![&data]),
            ("Trilu", 14, &none, vec![&data]),
        ] {
            let inputs: Vec<Option<&Tensor>> = inputs.into_iter().map(Some).collect();
            let _ = run(name, opset, attributes, &inputs, 1);
        }
        let _ = run("Split", 18, &axis_of, &[Some(&data)], 2);
        let one = [vector(&[axis]), vector(&[axis + step]), vector(&[-1]), vector(&[step])];
        let inputs = [Some(&data), Some(&one[0]), Some(&one[1]), Some(&one[2]), Some(&one[3])];
        let sliced = run("Slice", 13, &none, &inputs, 1);
        prop_assert_eq!(sliced.is_ok(), !shape.is_empty());
    }

    #[test]
    fn index_operators_agree(
        shape in shapes(1..4),
        picks in shapes(1..3),
        axis in -3..3_i64,
        seed in 0..100_usize,
    ) {
        let data = counting(&shape);
        let count = picks.iter().product::<usize>();
        let numbers = (0..count).map(|at| ((at * 7 + seed) % 5) as i64 - 2).collect();
        let indices = Tensor::from_vec(&picks, numbers).unwrap();
        let axis_of = attributes([("axis", int(axis))]);
        for name in ["Gather", "GatherElements"] {
            let _ = run(name, 13, &axis_of, &[Some(&data), Some(&indices)], 1);
        }
        let _ = run("GatherND", 13, &attributes([]), &[Some(&data), Some(&indices)], 1);
        let updates = counting(&picks);
        let scatter = [Some(&data), Some(&indices), Some(&updates)];
        let _ = run("ScatterElements", 18, &axis_of, &scatter, 1);
        let depth = Tensor::scalar(3_i64);
        let values = vector(&[0, 1]);
        let one_hot = [Some(&indices), Some(&depth), Some(&values)];
        let _ = run("OneHot", 11, &axis_of, &one_hot, 1);
        prop_assert!(run("NonZero", 13, &attributes([]), &[Some(&data)], 1).is_ok());
        let _ = run("Unique", 11, &axis_of, &[Some(&data)], 4);
    }

    #[test]
    fn windows_agree(
        spatial in prop::collection::vec(1..7_usize, 1..3),
        kernel in 1..4_i64,
        stride in 1..4_i64,
        dilation in 1..3_i64,
        pads in prop::collection::vec(0..3_i64, 4),
        auto_pad in prop_oneof![Just("NOTSET"), Just("SAME_UPPER"), Just("SAME_LOWER"), Just("VALID")],
        ceil in 0..2_i64,
    ) {
        let rank = spatial.len();
        let data = counting(&[&[2, 2], &spatial[..]].concat());
        let each = |value: i64| ints(&vec![value; rank]);
        let window = attributes([
            ("kernel_shape", each(kernel)),
            ("strides", each(stride)),
            ("dilations", each(dilation)),
            ("auto_pad", text(auto_pad)),
            ("pads", ints(&pads[..2 * rank])),
        ]);
        let cells = vec![usize::try_from(kernel).unwrap(); rank];
        let weights = counting(&[&[2, 2], &cells[..]].concat());
        for name in ["Conv", "ConvTranspose", "ai.galatea:ConvNhwc"] {
            let _ = run(name, 11, &window, &[Some(&data), Some(&weights)], 1);
        }
        let mut pool = window;
        pool.insert("ceil_mode".to_owned(), int(ceil));
        for name in ["MaxPool", "AveragePool", "LpPool", "ai.galatea:MaxPoolNhwc"] {
            let _ = run(name, 19, &pool, &[Some(&data)], 1);
        }
        for name in ["GlobalAveragePool", "GlobalMaxPool", "ai.galatea:GlobalAveragePoolNhwc"] {
            prop_assert!(run(name, 2, &attributes([]), &[Some(&data)], 1).is_ok());
        }
    }

    #[test]
    fn resizing_agrees(
        shape in prop::collection::vec(1..5_usize, 1..3),
        scale in prop::collection::vec(0.1..3_f32, 2),
        mode in prop_oneof![Just("nearest"), Just("linear"), Just("cubic")],
    ) {
        let data = counting(&shape);
        let scales = Tensor::vector(scale[..shape.len()].to_vec());
        let list = attributes([("mode", text(mode))]);
        prop_assert!(run("Resize", 19, &list, &[Some(&data), None, Some(&scales)], 1).is_ok());
    }

    #[test]
    fn ranges_and_recurrences_agree(
        start in -9..9_i64,
        limit in -9..9_i64,
        delta in prop_oneof![-3..0_i64, 1..4_i64],
        sizes in prop::collection::vec(1..4_usize, 4),
        layout in 0..2_i64,
    ) {
        let all = [start, limit, delta].map(Tensor::scalar);
        let inputs = [Some(&all[0]), Some(&all[1]), Some(&all[2])];
        prop_assert!(run("Range", 11, &attributes([]), &inputs, 1).is_ok());
        let input = sizes[2];
        let hidden = sizes[3];
        let x = counting(&[sizes[0], sizes[1], input]);
        let list = attributes([("direction", text("bidirectional")), ("layout", int(layout))]);
        for (name, gates, outputs) in [("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2)] {
            let w = counting(&[2, gates * hidden, input]);
            let r = counting(&[2, gates * hidden, hidden]);
            let inputs = [Some(&x), Some(&w), Some(&r)];
            prop_assert!(run(name, 14, &list, &inputs, outputs).is_ok());
        }
    }
}
