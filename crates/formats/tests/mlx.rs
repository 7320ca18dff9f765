//! Checkpoints of MLX: golden layers of every width, and configurations that do not fit.

use std::path::{Path, PathBuf};

use galatea_formats::blocks::CodeMeaning;
use galatea_formats::checkpoint::CheckpointErrorKind;
use galatea_formats::mlx::{LayerFormat, MlxQuantization};
use galatea_formats::safetensors::{self, SafeTensors};
use galatea_tensor::{OrderedMap, Tensor, bf16};
use proptest::prelude::*;
use serde_json::{Value, json};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/mlx").join(name)
}

fn quantization(entry: Value) -> MlxQuantization {
    MlxQuantization::from_config(&json!({ "quantization": entry })).unwrap().unwrap()
}

fn checkpoint(tensors: &[(&str, Tensor)]) -> SafeTensors {
    let mut bytes = Vec::new();
    let tensors = tensors.iter().map(|(name, tensor)| (*name, tensor));
    safetensors::write(tensors, &OrderedMap::new(), &mut bytes).unwrap();
    safetensors::parse(bytes.into()).unwrap()
}

#[test]
fn layers_of_every_width_are_the_floats_that_mlx_computes() {
    let all = safetensors::open(&golden("model.safetensors")).unwrap();
    let text = std::fs::read_to_string(golden("config.json")).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    let quantization = MlxQuantization::from_config(&config).unwrap().unwrap();
    for bits in [2, 3, 4, 5, 6, 8] {
        for group_size in [32, 64, 128] {
            let layer = format!("bits{bits}.group{group_size}");
            let format = quantization.layer(&layer).unwrap();
            assert_eq!(format, LayerFormat { bits, group_size });
            let matrix = quantization.matrix(&all, &layer).unwrap().unwrap();
            let floats = all.tensor(&format!("{layer}.floats")).unwrap();
            assert_eq!(matrix.shape(), floats.shape());
            assert_eq!((matrix.format().bits(), matrix.format().block()), (bits, group_size));
            assert_eq!(matrix.format().meaning(), CodeMeaning::Offset);
            let found = matrix.dequantize().unwrap();
            let found = found.as_slice::<f32>().unwrap();
            // MLX may round the product before it adds the bias, or not.
            for (at, (found, expected)) in
                found.iter().zip(floats.as_slice::<f32>().unwrap()).enumerate()
            {
                assert!((found - expected).abs() <= 4e-7, "{layer}: {at}: {found}, {expected}");
            }
            let (mut codes, blocks) = (vec![0; matrix.columns()], matrix.blocks());
            let (mut scales, mut offsets) = (vec![0.0; blocks], vec![0.0; blocks]);
            matrix.unpack_row(1, &mut codes, &mut scales, &mut offsets).unwrap();
            for (at, &code) in codes.iter().enumerate() {
                let block = at / group_size;
                let number = scales[block] * f32::from(code) + offsets[block];
                assert_eq!(number.to_bits(), found[matrix.columns() + at].to_bits());
            }
        }
    }
    assert_eq!(all.tensors().len(), 72);
}

#[test]
fn layers_have_their_own_formats_and_some_have_none() {
    let words = || Tensor::from_vec(&[2, 8], vec![0x7654_3210_u32; 16]).unwrap();
    let bytes = || Tensor::from_vec(&[2, 16], vec![0x0302_0100_u32; 32]).unwrap();
    let ones = || Tensor::from_vec(&[2, 1], vec![bf16::from_f32(0.5); 2]).unwrap();
    let all = checkpoint(&[
        ("a.weight", words()),
        ("a.scales", ones()),
        ("a.biases", ones()),
        ("b.weight", bytes()),
        ("b.scales", ones()),
        ("b.biases", ones()),
        ("c.weight", ones()),
    ]);
    let quantization =
        quantization(json!({"group_size": 64, "bits": 4, "b": {"bits": 8}, "c": false}));
    let a = quantization.matrix(&all, "a").unwrap().unwrap();
    assert_eq!(a.shape(), [2, 64]);
    let mut out = vec![0.0; 64];
    a.dequantize_row(1, &mut out).unwrap();
    assert_eq!(out[..9], [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 0.5]);
    let b = quantization.matrix(&all, "b").unwrap().unwrap();
    b.dequantize_row(0, &mut out).unwrap();
    assert_eq!((b.shape(), &out[..5]), (&[2, 64][..], &[0.5, 1.0, 1.5, 2.0, 0.5][..]));
    assert!(quantization.matrix(&all, "c").unwrap().is_none());
    assert_eq!(quantization.layer("c"), None);
    assert!(b.dequantize_row(2, &mut out).is_err() && b.dequantize_row(0, &mut out[1..]).is_err());
}

#[test]
fn tensors_that_do_not_fit_are_refused_by_name() {
    let words = Tensor::from_vec(&[2, 8], vec![0_u32; 16]).unwrap();
    let halves = Tensor::from_vec(&[2, 1], vec![bf16::ZERO; 2]).unwrap();
    let wide = Tensor::from_vec(&[2, 2], vec![bf16::ZERO; 4]).unwrap();
    let refusal = |entry: Value, tensors: &[(&str, &Tensor)]| {
        let tensors: Vec<(&str, Tensor)> =
            tensors.iter().map(|(name, tensor)| (*name, (*tensor).clone())).collect();
        quantization(entry).matrix(&checkpoint(&tensors), "x").unwrap_err().to_string()
    };
    let four = || json!({"group_size": 64, "bits": 4});
    let full = [("x.weight", &words), ("x.scales", &halves), ("x.biases", &halves)];
    assert!(refusal(four(), &full[..2]).contains("tensor 'x.biases'"));
    assert!(refusal(four(), &full[1..]).contains("tensor 'x.weight'"));
    let text = refusal(four(), &[("x.weight", &words), ("x.scales", &wide), full[2]]);
    assert!(text.contains("tensor 'x.scales'") && text.contains("[2, 1]"), "{text}");
    let text = refusal(json!({"group_size": 64, "bits": 3}), &full);
    assert!(text.contains("tensor 'x.weight'") && text.contains("3 bits"), "{text}");
    let text = refusal(four(), &[("x.weight", &halves), full[1], full[2]]);
    assert!(text.contains("expected UINT32"), "{text}");
    let excepted = json!({"group_size": 64, "bits": 4, "x": false});
    assert!(refusal(excepted, &full).contains("layer 'x'"));
    let demanded = json!({"group_size": 64, "bits": 4, "x": {"bits": 8}});
    assert!(refusal(demanded, &full[..1]).contains("tensor 'x.scales'"));
}

#[test]
fn configurations_that_say_something_else_are_refused() {
    let read = |entry: Value| MlxQuantization::from_config(&json!({ "quantization": entry }));
    assert_eq!(MlxQuantization::from_config(&json!({})).unwrap(), None);
    assert_eq!(read(Value::Null).unwrap(), None);
    for (entry, part) in [
        (json!(4), "found 4"),
        (json!({"bits": 4}), "'group_size' is nothing"),
        (json!({"bits": 7, "group_size": 64}), "'bits' is 7"),
        (json!({"bits": 4, "group_size": -1}), "'group_size' is -1"),
        (json!({"bits": 4, "group_size": 64, "x": {"bits": "8"}}), "layer 'x': 'bits' is \"8\""),
    ] {
        let text = read(entry).unwrap_err().to_string();
        assert!(text.contains("quantization") && text.contains(part), "{text}");
    }
    let error = read(json!({"bits": 4, "group_size": 32, "mode": "mxfp4"})).unwrap_err();
    assert_eq!(error.kind(), CheckpointErrorKind::Unsupported);
}

proptest! {
    #[test]
    fn codes_are_a_stream_of_bits(
        width in 0_usize..6,
        words in prop::collection::vec(any::<u32>(), 48),
    ) {
        let bits = [2, 3, 4, 5, 6, 8][width];
        let columns = 32 * bits;
        // As many words as 32 columns times the bits need.
        let words: Vec<u32> = words.into_iter().cycle().take(columns * bits / 32).collect();
        let groups = columns / 32;
        let ones = Tensor::from_vec(&[1, groups], vec![1_f32; groups]).unwrap();
        let zeros = Tensor::from_vec(&[1, groups], vec![0_f32; groups]).unwrap();
        let weight = Tensor::from_vec(&[1, words.len()], words.clone()).unwrap();
        let all = checkpoint(&[("x.weight", weight), ("x.scales", ones), ("x.biases", zeros)]);
        let quantization = quantization(json!({"group_size": 32, "bits": bits}));
        let matrix = quantization.matrix(&all, "x").unwrap().unwrap();
        let mut out = vec![0.0; columns];
        matrix.dequantize_row(0, &mut out).unwrap();
        let bit = |at: usize| (words[at / 32] >> (at % 32)) & 1;
        for (at, found) in out.into_iter().enumerate() {
            let code = (0..bits).map(|low| bit(at * bits + low) << low).sum::<u32>();
            prop_assert_eq!(found, f32::from(u8::try_from(code).unwrap()));
        }
    }
}
