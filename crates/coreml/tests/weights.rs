//! Packages whose weights are stored with fewer bits: what they take, and how near results stay.

use std::path::Path;

use galatea_coreml::{ConvertOptions, WeightCompression, convert};
use galatea_formats::coreml::{load, write_package};
use galatea_graph::{AttributeValue, Attributes, Fact, Graph, ONNX_DOMAIN, evaluate};
use galatea_tensor::{DataType, Tensor};

/// Numbers that look like weights: a bell around zero.
fn weights(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f32::from(u16::try_from(state >> 48).unwrap()) / 65536.0 - 0.5
    };
    (0..count).map(|_| (0..4).map(|_| uniform()).sum::<f32>() * 0.1).collect()
}

/// Two layers, each `[outputs, inputs]`, with a step between them.
fn layers() -> Graph {
    let mut graph = Graph::new("layers");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let x = graph.value_named("x");
    graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[4, 64]));
    graph.inputs.push(x);
    let transposed = Attributes::from([("transB".to_owned(), AttributeValue::Int(1))]);
    let none = Attributes::new();
    let mut at = x;
    for (layer, (outputs, inputs)) in [(96, 64), (32, 96)].into_iter().enumerate() {
        let seed = u64::try_from(layer).unwrap() + 1;
        let all = Tensor::from_vec(&[outputs, inputs], weights(seed, outputs * inputs)).unwrap();
        let weight = graph.add_constant("weight", all);
        let to = graph.fresh_value("product");
        let (from, slot) = (vec![Some(at), Some(weight)], vec![Some(to)]);
        graph.add_node(ONNX_DOMAIN, "Gemm", "", &transposed, from, slot).unwrap();
        let y = graph.value_named(["hidden", "y"][layer]);
        let operator = ["Relu", "Tanh"][layer];
        let slots = (vec![Some(to)], vec![Some(y)]);
        graph.add_node(ONNX_DOMAIN, operator, "", &none, slots.0, slots.1).unwrap();
        at = y;
    }
    graph.outputs.push(at);
    graph
}

fn bytes(folder: &Path) -> u64 {
    std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| match entry.path().is_dir() {
            true => bytes(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

/// Writes the layers and runs what was written: bytes of the package, and the largest difference.
fn written(compression: WeightCompression, specification: i32, half: bool) -> (u64, f32) {
    let graph = layers();
    let options = ConvertOptions { compression, specification, half, ..ConvertOptions::default() };
    let package = convert(&graph, &options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layers.mlpackage");
    write_package(&path, &package).unwrap();
    let model = load(&path).unwrap();
    let x =
        Tensor::from_vec(&[4, 64], weights(99, 256).iter().map(|x| x * 10.0).collect()).unwrap();
    let found = evaluate::run(&model.functions[0].graph, std::slice::from_ref(&x)).unwrap();
    let expected = evaluate::run(&graph, &[x]).unwrap();
    let pairs =
        found[0].to_vec::<f32>().unwrap().into_iter().zip(expected[0].to_vec::<f32>().unwrap());
    let worst = pairs
        .map(|(a, b)| (a - b).abs())
        .fold(0.0_f32, |worst, far| if far.is_nan() { f32::INFINITY } else { worst.max(far) });
    (bytes(&path), worst)
}

#[test]
fn fewer_bits_take_less_room_and_stay_near() {
    let (whole, exact) = written(WeightCompression::None, 9, false);
    assert!(exact < 1e-5, "{exact}");
    let (half, near) = written(WeightCompression::None, 9, true);
    assert!(near < 4e-3 && half < whole * 6 / 10, "{near}, {half} of {whole} bytes");
    let palette = |bits, group| WeightCompression::Palette { bits, group };
    for (compression, specification, largest, distance) in [
        (WeightCompression::Int8, 7, 0.65, 0.02),
        (WeightCompression::Int8, 9, 0.65, 0.02),
        (WeightCompression::Int4 { block: 32 }, 9, 0.45, 0.2),
        // A divisor of the channels is taken: smaller blocks have more scales.
        (WeightCompression::Int4 { block: 7 }, 9, 0.5, 0.3),
        (palette(8, 0), 7, 0.7, 0.02),
        (palette(6, 0), 7, 0.55, 0.06),
        (palette(4, 0), 9, 0.45, 0.2),
        (palette(4, 8), 9, 0.5, 0.2),
        (palette(3, 0), 9, 0.4, 0.4),
        (palette(2, 0), 7, 0.35, 0.8),
        (palette(1, 0), 9, 0.3, 1.2),
        (WeightCompression::Sparse { share: 0.5 }, 7, 0.75, 0.6),
        (WeightCompression::Sparse { share: 0.1 }, 9, 1.05, 0.1),
    ] {
        let (bytes, worst) = written(compression, specification, true);
        let room = bytes as f64 / half as f64;
        assert!(room <= largest, "{compression:?} in {specification}: {room} of the bytes");
        assert!(worst <= distance, "{compression:?} in {specification}: {worst} off");
    }
}

/// A convolution with a window of 3 x 3, whose input channels differ in size by a factor of 50.
fn window(channels: usize) -> Graph {
    let mut graph = Graph::new("window");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let x = graph.value_named("x");
    graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[1, channels, 5, 5]));
    graph.inputs.push(x);
    let mut all = weights(7, 16 * channels * 9);
    for (at, weight) in all.iter_mut().enumerate() {
        if at / 9 % channels < channels / 2 {
            *weight *= 50.0;
        }
    }
    let all = Tensor::from_vec(&[16, channels, 3, 3], all).unwrap();
    let weight = graph.add_constant("weight", all);
    let y = graph.value_named("y");
    let slots = (vec![Some(x), Some(weight)], vec![Some(y)]);
    graph.add_node(ONNX_DOMAIN, "Conv", "", &Attributes::new(), slots.0, slots.1).unwrap();
    graph.outputs.push(y);
    graph
}

/// The largest difference where only the channels with small weights are not zero.
fn far_by_small_channels(channels: usize, compression: WeightCompression) -> f32 {
    let graph = window(channels);
    let options = ConvertOptions { compression, specification: 9, ..ConvertOptions::default() };
    let package = convert(&graph, &options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("window.mlpackage");
    write_package(&path, &package).unwrap();
    let model = load(&path).unwrap();
    let mut values = weights(9, channels * 25);
    values[..channels / 2 * 25].fill(0.0);
    let x = Tensor::from_vec(&[1, channels, 5, 5], values).unwrap();
    let found = evaluate::run(&model.functions[0].graph, std::slice::from_ref(&x)).unwrap();
    let expected = evaluate::run(&graph, &[x]).unwrap();
    let pairs =
        found[0].to_vec::<f32>().unwrap().into_iter().zip(expected[0].to_vec::<f32>().unwrap());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max)
}

#[test]
fn blocks_of_channels_have_scales_of_their_own_in_windows_too() {
    // One scale for all would round every small weight to zero.
    let whole = far_by_small_channels(32, WeightCompression::Int4 { block: 32 });
    for (channels, block) in [(32, 16), (32, 8), (48, 7), (36, 16), (40, 20)] {
        let far = far_by_small_channels(channels, WeightCompression::Int4 { block });
        assert!(far * 3.0 < whole, "{channels} {block}: {far} of {whole}");
    }
}

#[test]
fn blocks_of_nothing_are_refused() {
    let options = ConvertOptions {
        compression: WeightCompression::Int4 { block: 0 },
        specification: 9,
        ..ConvertOptions::default()
    };
    let error = convert(&layers(), &options).unwrap_err().to_string();
    assert!(error.contains("blocks of no channels"), "{error}");
}

#[test]
fn a_form_that_the_format_lacks_is_refused_by_version() {
    let refused = |compression, specification| {
        let options = ConvertOptions { compression, specification, ..ConvertOptions::default() };
        convert(&layers(), &options).unwrap_err().to_string()
    };
    let error = refused(WeightCompression::Int4 { block: 32 }, 8);
    assert!(error.contains("came with CoreML8, the package is CoreML7"), "{error}");
    let error = refused(WeightCompression::Int8, 6);
    assert!(error.contains("came with CoreML6, the package is CoreML5"), "{error}");
}
