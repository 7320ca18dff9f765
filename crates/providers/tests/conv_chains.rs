//! Depthwise convolutions with the dense ones around them, on `cpu` beside `reference`.

use crate::support;
use crate::support::{Maker, floats};
use galatea_graph::{AttributeValue, ValueId};
use galatea_providers::by_name;
use galatea_runtime::{OptimiseLevel, Precision, Run, Session, SessionOptions};
use galatea_tensor::{Tensor, Tolerance, compare};

const CHAIN: &str = "conv_chain-f32-bands";

/// Values that keep sums over `terms` near 1.
fn weights(shape: &[usize], seed: u32) -> Tensor {
    let terms = shape[1..].iter().product::<usize>() as f32;
    let values = support::values(shape.iter().product(), seed);
    let values = values.into_iter().map(|value| value * 2.0 / terms.sqrt()).collect();
    Tensor::from_vec(shape, values).unwrap()
}

/// A convolution with a bias.
fn conv(
    maker: &mut Maker,
    x: Option<ValueId>,
    shape: [usize; 3],
    window: [i64; 3],
) -> Option<ValueId> {
    let [cin, cout, group] = shape;
    let [kernel, stride, pad] = window;
    let side = usize::try_from(kernel).unwrap();
    let w = maker.constant(weights(&[cout, cin / group, side, side], 3));
    let bias = maker.constant(floats(&[cout], 4));
    let attributes = [
        ("group", AttributeValue::Int(i64::try_from(group).unwrap())),
        ("strides", AttributeValue::Ints(vec![stride; 2])),
        ("pads", AttributeValue::Ints(vec![pad; 4])),
    ];
    maker.node("Conv", &attributes, &[x, w, bias], 1)[0]
}

fn relu6(maker: &mut Maker, x: Option<ValueId>) -> Option<ValueId> {
    let bounds = [0.0_f32, 6.0].map(|bound| maker.constant(Tensor::scalar(bound)));
    maker.node("Clip", &[], &[x, bounds[0], bounds[1]], 1)[0]
}

/// A block of MobileNetV2: wider, each channel by itself, narrower, and where it can be the sum with
/// the image.
fn inverted(
    maker: &mut Maker,
    x: Option<ValueId>,
    [cin, wide, cout]: [usize; 3],
    window: [i64; 3],
) -> Option<ValueId> {
    let first = conv(maker, x, [cin, wide, 1], [1, 1, 0]);
    let first = relu6(maker, first);
    let second = conv(maker, first, [wide, wide, wide], window);
    let second = relu6(maker, second);
    let y = conv(maker, second, [wide, cout, 1], [1, 1, 0]);
    if window[1] == 1 && cin == cout { maker.node("Add", &[], &[x, y], 1)[0] } else { y }
}

fn maker() -> Maker {
    let mut maker = Maker::new();
    maker.level = OptimiseLevel::O3;
    maker
}

#[test]
fn blocks_of_mobile_models_equal_the_reference_in_bands_and_apart() {
    // The wide values of the first image are worth bands.
    for (side, batch) in [(48, 1), (12, 2), (30, 3)] {
        let mut maker = maker();
        let x = maker.input("x", floats(&[batch, 3, 2 * side, 2 * side], 1));
        let stem = conv(&mut maker, x, [3, 24, 1], [3, 2, 1]);
        let stem = relu6(&mut maker, stem);
        let filtered = conv(&mut maker, stem, [24, 24, 24], [3, 1, 1]);
        let filtered = relu6(&mut maker, filtered);
        let image = conv(&mut maker, filtered, [24, 12, 1], [1, 1, 0]);
        let same = inverted(&mut maker, image, [12, 72, 12], [3, 1, 1]);
        let y = inverted(&mut maker, same, [12, 72, 20], [5, 2, 2]);
        let (_, rows) = maker.check(&[y], 400);
        assert_eq!(rows.iter().filter(|row| row.kernel == CHAIN).count(), 3, "{rows:?}");
        assert!(!rows.iter().any(|row| row.op.contains("FusedConv")), "{rows:?}");
    }
}

#[test]
fn what_others_read_stays() {
    // The wide image is a result of the model too, so the chain begins behind it.
    let mut maker = maker();
    let x = maker.input("x", floats(&[1, 6, 9, 9], 1));
    let wide = conv(&mut maker, x, [6, 30, 1], [1, 1, 0]);
    let filtered = conv(&mut maker, wide, [30, 30, 30], [3, 1, 1]);
    let y = conv(&mut maker, filtered, [30, 8, 1], [1, 1, 0]);
    let (_, rows) = maker.check(&[y, wide], 64);
    let count = |kernel: &str| rows.iter().filter(|row| row.kernel == kernel).count();
    assert_eq!((count(CHAIN), count("fused_conv-f32-packed")), (1, 1), "{rows:?}");
}

#[test]
fn a_gate_behind_the_filter_ends_the_chain() {
    // As in EfficientNet: the filtered image is read by its own gate.
    let mut maker = maker();
    let x = maker.input("x", floats(&[2, 6, 17, 16], 1));
    let wide = conv(&mut maker, x, [6, 30, 1], [1, 1, 0]);
    let wide = maker.node("HardSwish", &[], &[wide], 1)[0];
    let filtered = conv(&mut maker, wide, [30, 30, 30], [5, 2, 2]);
    let filtered = maker.node("HardSwish", &[], &[filtered], 1)[0];
    let pooled = maker.node("GlobalAveragePool", &[], &[filtered], 1)[0];
    let gate = maker.node("Sigmoid", &[], &[pooled], 1)[0];
    let gated = maker.node("Mul", &[], &[filtered, gate], 1)[0];
    let y = conv(&mut maker, gated, [30, 8, 1], [1, 1, 0]);
    let (_, rows) = maker.check(&[y], 128);
    support::assert_kernel(&rows, CHAIN);
}

#[test]
fn other_precisions_keep_their_convolutions() {
    let mut maker = maker();
    maker.precision = Precision::Bf16;
    let x = maker.input("x", floats(&[1, 16, 9, 9], 1));
    let y = inverted(&mut maker, x, [16, 32, 16], [3, 1, 1]);
    let rows = maker.check_within(&[y], 0.2);
    assert!(!rows.iter().any(|row| row.kernel == CHAIN), "{rows:?}");
}

#[test]
fn bands_need_no_room_for_the_wide_image_and_are_the_same_on_any_threads() {
    let mut maker = maker();
    let (side, wide) = (64, 80);
    let image = floats(&[2, 8, side, side], 1);
    let x = maker.input("x", image.clone());
    let y = inverted(&mut maker, x, [8, wide, 8], [3, 1, 1]);
    maker.graph.outputs.extend(y);
    let run = |threads: usize, image: Tensor| {
        let options = SessionOptions { threads, ..SessionOptions::default() };
        let cpu = by_name("cpu").unwrap();
        let session = Session::new(maker.graph.clone(), &[cpu], &options).unwrap();
        let outputs = session.run_tensors(Run::named(&[("x", image)])).unwrap();
        assert!(session.report().plans.arena_bytes < side * side * wide * size_of::<f32>());
        outputs
    };
    let together = run(1, image.clone());
    for threads in [2, 3] {
        compare(&run(threads, image.clone())[0], &together[0], Tolerance::Exact).unwrap();
    }
    for row in 0..2 {
        let alone = run(2, image.slice_axis(0, row, 1, 1).unwrap());
        let of_batch = together[0].slice_axis(0, row, 1, 1).unwrap();
        compare(&alone[0], &of_batch, Tolerance::Exact).unwrap();
    }
}
