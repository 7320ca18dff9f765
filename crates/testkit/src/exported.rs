//! Small models as exporters write them, with inputs for a run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use galatea_graph::{Dim, Fact, Graph, ValueId};
use galatea_tensor::{DataType, Tensor};

use crate::graph_maker::values;

/// Returns the file of a model.
#[must_use]
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("exports/{name}.onnx"))
}

/// The length of an axis of an input. The newer exporter names axes as it likes, so that the input
/// and the axis decide.
fn length(input: &str, axis: usize, with_past: bool) -> usize {
    match (input, axis) {
        (_, 0) => 2,
        ("input_values", _) => 1600,
        ("decoder_input_ids", _) => 4,
        (name, _) if name.starts_with("past.") => 3,
        ("attention_mask", _) if with_past => 3 + 5,
        _ => 5,
    }
}

/// Returns a file of the models with branches and loops.
#[must_use]
pub fn control_flow(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("control_flow").join(name)
}

/// Inputs of a run: words for indices, everything seen by masks but the first place of the last row.
#[must_use]
pub fn inputs(graph: &Graph) -> Vec<Tensor> {
    let named = |id: &ValueId| graph.value(*id).name.clone();
    let names: Vec<String> = graph.inputs.iter().map(named).collect();
    let with_past = names.iter().any(|name| name.starts_with("past."));
    let tensor = |(seed, name): (usize, &String)| {
        let id = graph.inputs[seed];
        let Some(Fact { shape: Some(dims), dtype, .. }) = &graph.value(id).declared else {
            panic!("input '{name}' has no shape")
        };
        let lengths = dims.iter().enumerate().map(|(axis, dim)| match dim {
            Dim::Known(len) => *len,
            _ => length(name, axis, with_past),
        });
        let shape: Vec<usize> = lengths.collect();
        let noise = values(shape.iter().product(), u32::try_from(seed).unwrap() + 1);
        if *dtype == DataType::Fp32 {
            return Tensor::from_vec(&shape, noise).unwrap();
        }
        let whole = noise.iter().enumerate().map(|(at, value)| match name.as_str() {
            mask if mask.contains("mask") => i64::from(at + shape[1] != noise.len()),
            types if types.contains("type") => i64::from(*value > 0.0),
            #[allow(clippy::cast_possible_truncation, reason = "a token below 64")]
            _ => ((value + 1.0) * 31.0) as i64,
        });
        Tensor::from_vec(&shape, whole.collect::<Vec<i64>>()).unwrap()
    };
    names.iter().enumerate().map(tensor).collect()
}
