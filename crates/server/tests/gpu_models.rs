//! Models on the GPU provider beside the processor.

#![cfg(any(target_os = "macos", feature = "gpu"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use galatea::units;
use galatea_graph::Dim;
use galatea_runtime::{IoInfo, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models")
}

/// The providers with a GPU first; none where the host has not even a software one, which is said.
fn with_gpu() -> Option<units::Providers> {
    let providers = units::named(Some("gpu"));
    if let Err(error) = &providers {
        eprintln!("skipped: {error}");
    }
    providers.ok()
}

/// An input of numbers between 0 and 1, or of small integers.
fn made_up(info: &IoInfo, batch: usize) -> Option<Tensor> {
    let len = |dim: &Dim| match dim {
        Dim::Known(len) => *len,
        Dim::Symbol(name) if name.contains("batch") => batch,
        _ => 24,
    };
    let shape: Vec<usize> = info.dims.iter().map(len).collect();
    let count: usize = shape.iter().product();
    let number = |at: usize| (at * 37 + 11) % 101;
    match info.dtype {
        DataType::Fp32 => {
            let values = (0..count).map(|at| f32::from(u8::try_from(number(at)).unwrap()) / 101.0);
            Tensor::from_vec(&shape, values.collect()).ok()
        }
        DataType::Int64 => {
            let values = (0..count).map(|at| i64::try_from(number(at)).unwrap());
            Tensor::from_vec(&shape, values.collect()).ok()
        }
        _ => None,
    }
}

#[test]
fn sample_models_give_on_the_gpu_what_they_give_on_the_processor() {
    let Some(gpu) = with_gpu() else { return };
    let (mut tried, mut on_it) = (0, 0);
    for entry in std::fs::read_dir(samples()).unwrap() {
        let path = entry.unwrap().path().join("1/model.onnx");
        if !path.exists() {
            continue;
        }
        let graph = galatea_formats::onnx::load(&path).unwrap();
        let options = SessionOptions { threads: 2, ..SessionOptions::default() };
        let on_gpu = Session::new(graph.clone(), &gpu, &options).unwrap();
        let processor = Session::new(graph, &units::processor(), &options).unwrap();
        on_it += usize::from(on_gpu.partition_providers().contains(&"gpu"));
        for batch in [1, 3] {
            let made = processor.inputs().iter().map(|info| made_up(info, batch));
            let Some(inputs) = made.collect::<Option<Vec<Tensor>>>() else { continue };
            let names = processor.inputs().iter().map(|info| info.name.as_str());
            let inputs: Vec<(&str, Tensor)> = names.zip(inputs).collect();
            let tolerance = Tolerance::Accumulated { terms: 1024, accumulator: DataType::Fp32 };
            let (found, expected) = (on_gpu.run(&inputs).unwrap(), processor.run(&inputs).unwrap());
            for (found, expected) in found.iter().zip(&expected) {
                compare(found, expected, tolerance).unwrap();
            }
            tried += 1;
        }
    }
    assert!(tried > 0 && on_it > 0, "{tried} runs, {on_it} models on the GPU");
}
