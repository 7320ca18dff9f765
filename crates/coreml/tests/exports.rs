//! Small models as PyTorch's exporters write them, as packages of Core ML beside the graphs: in FP32 with
//! lengths that are known and with those that each run brings, and in FP16.

use crate::agreement::through_package;
use galatea_coreml::ConvertOptions;
use galatea_graph::evaluate;
use galatea_graph::rewrite::RewriteLevel;
use galatea_tensor::{DataType, Tensor};
use galatea_testkit::exported::{file, inputs};

/// Models that become packages.
const CONVERTED: &[&str] = &[
    "bert-base",
    "bert-base.dynamo",
    "vit",
    "vit.dynamo",
    "t5-encoder",
    "t5-decoder",
    "whisper-encoder",
    "whisper-decoder",
    "gpt2",
    "gpt2.dynamo",
    "llama",
    "llama.dynamo",
    "conformer",
    "conformer.dynamo",
];

/// Models of which some lengths must be known: these tell the mask of fewer keys than there are
/// from one of all keys.
const FIXED: &[&str] = &["conformer.dynamo"];

/// How far results are from each other against the largest one.
fn distance(found: &Tensor, expected: &Tensor) -> f32 {
    assert_eq!(found.shape(), expected.shape());
    let numbers = |tensor: &Tensor| {
        galatea_graph::converted(tensor, DataType::Fp32).unwrap().to_vec::<f32>().unwrap()
    };
    let (found, expected) = (numbers(found), numbers(expected));
    let largest = expected.iter().fold(1e-20_f32, |most, x| most.max(x.abs()));
    let apart = |(found, expected): (&f32, &f32)| (found - expected).abs() / largest;
    found
        .iter()
        .zip(&expected)
        .map(apart)
        .fold(0.0_f32, |worst, far| if far.is_nan() { f32::INFINITY } else { worst.max(far) })
}

#[test]
fn exports_compute_the_same_as_packages() {
    let mut wrong = Vec::new();
    for &name in CONVERTED {
        let mut graph = galatea_formats::onnx::load(&file(name)).unwrap();
        graph.sort().unwrap();
        let inputs = inputs(&graph);
        let expected = evaluate::run(&graph, &inputs).unwrap();
        let names = graph.inputs.iter().map(|&id| graph.value(id).name.clone());
        let named: Vec<(String, Tensor)> = names.zip(inputs).collect();
        let shapes = named.iter().map(|(name, one)| (name.clone(), one.shape().to_vec()));
        let shapes: galatea_tensor::OrderedMap<_, _> = shapes.collect();
        // Products of two layers in FP16 lose about three of its eleven bits.
        for (half, flexible, level, most) in [
            (false, false, RewriteLevel::O2, 2e-5),
            (false, true, RewriteLevel::O2, 2e-5),
            (true, false, RewriteLevel::O2, 2e-2),
            (false, false, RewriteLevel::O3, 2e-5),
            (true, false, RewriteLevel::O3, 2e-2),
        ] {
            if flexible && FIXED.contains(&name) {
                continue;
            }
            let shapes = if flexible { Default::default() } else { shapes.clone() };
            let options = ConvertOptions { half, shapes, level, ..ConvertOptions::default() };
            let what = format!("{name}, {level}, half {half}, flexible {flexible}");
            let found = match through_package(&graph, &named, &options) {
                Ok(found) => found,
                Err(error) => {
                    wrong.push(format!("{what}: {error}"));
                    continue;
                }
            };
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let apart = distance(found, expected);
                if apart.is_nan() || apart > most {
                    wrong.push(format!("{what}: output {at} is {apart} off"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
