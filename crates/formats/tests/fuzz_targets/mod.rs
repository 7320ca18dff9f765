//! Fuzz targets of the decoders of files, which `fuzz/fuzz_targets` names by their paths. Here their committed inputs run
//! through them: whole, cut off and with fixed changes.

mod core_ml;
mod core_ml_compiled;
mod gguf;
mod mlx;
mod npy;
mod npz;
mod onnx;
mod prototext;
mod safetensors;

use galatea_testkit::fuzz_corpus::hold;

/// Function of a target.
type TargetFunction = fn(&[u8]);

/// Each target with the least number of its committed inputs.
const TARGETS: &[(&str, usize, TargetFunction)] = &[
    ("core_ml", 1, core_ml::run),
    ("core_ml_compiled", 1, core_ml_compiled::run),
    ("gguf", 2, gguf::run),
    ("mlx", 18, mlx::run),
    ("npy", 1, npy::run),
    ("npz", 1, npz::run),
    ("onnx", 1, onnx::run),
    ("prototext", 1, prototext::run),
    ("safetensors", 1, safetensors::run),
];

#[test]
fn committed_inputs_of_the_decoders_hold() {
    for (target, least, run) in TARGETS {
        hold(target, *least, *run);
    }
}
