//! The error of a backend that this server has not.

use std::sync::Arc;

use strsim::levenshtein;

use crate::backend::ModelBackend;

/// A backend of other servers, and what to write in its place.
struct ForeignBackend {
    names: &'static [&'static str],
    /// Ends a sentence.
    instead: &'static str,
}

/// Backends and formats of other servers.
const FOREIGN: &[ForeignBackend] = &[
    ForeignBackend {
        names: &["tensorrt", "tensorrt_plan", "trt"],
        instead: "engines of TensorRT run with NVIDIA's library only: export the model to ONNX and write backend: \
                  \"onnxruntime\"",
    },
    ForeignBackend {
        names: &[
            "tensorrtllm",
            "tensorrt_llm",
            "vllm",
            "sglang",
            "mlx",
            "mlx_lm",
            "llama.cpp",
            "llama_cpp",
            "gguf",
            "transformers",
            "ollama",
        ],
        instead: "write backend: \"llm\", which runs checkpoints of safetensors, GGUF and MLX",
    },
    ForeignBackend {
        names: &["onnx", "onnxruntime_onnx", "ort"],
        instead: "write backend: \"onnxruntime\"",
    },
    ForeignBackend {
        names: &["core_ml", "apple", "ane", "neural_engine", "mlmodel", "mlmodelc", "mlpackage"],
        instead: "write backend: \"coreml\"",
    },
    ForeignBackend {
        names: &["mps", "gpu", "vulkan", "metal_performance_shaders"],
        instead: "write backend: \"metal\", which runs graphs with the GPU preferred",
    },
    ForeignBackend {
        names: &["torch", "libtorch", "torchscript", "pytorch_libtorch"],
        instead: "write backend: \"pytorch\"",
    },
    ForeignBackend {
        names: &[
            "tf",
            "tflite",
            "litert",
            "armnn_tflite",
            "keras",
            "tensorflow_savedmodel",
            "tensorflow_graphdef",
        ],
        instead: "write backend: \"tensorflow\"",
    },
    ForeignBackend {
        names: &[
            "openvino",
            "fil",
            "xgboost",
            "lightgbm",
            "sklearn",
            "caffe2",
            "paddle",
            "paddlepaddle",
        ],
        instead: "export the model to ONNX and write backend: \"onnxruntime\"",
    },
    ForeignBackend {
        names: &["dali", "mlflow", "fastertransformer"],
        instead: "write its steps as a model in Python, backend: \"python\"",
    },
];

/// Differences of spelling that are taken for a mistake.
const MISSPELT: usize = 2;

/// Letters of a name that are compared.
const LONGEST: usize = 64;

/// Returns the sentence about a backend that none of these is.
///
/// Of a name that means something elsewhere, or nearly one here, it says what to write. Of others it is Triton's own
/// sentence, which clients compare; the log says what there is.
pub(super) fn unknown_backend(name: &str, backends: &[Arc<dyn ModelBackend>]) -> String {
    let mut known: Vec<&str> = backends.iter().map(|backend| backend.name()).collect();
    known.dedup();
    let here = known.join(", ");
    let sentence = format!(
        "unable to find backend library for backend '{name}', try specifying runtime on the model configuration."
    );
    let lower = name.to_ascii_lowercase();
    let short: String = lower.chars().take(LONGEST).collect();
    let foreign = FOREIGN.iter().find(|foreign| foreign.names.contains(&lower.as_str()));
    let instead = foreign.map(|foreign| foreign.instead.to_owned()).or_else(|| {
        let near = known.iter().map(|known| (levenshtein(&short, known), *known));
        let (_, near) = near.filter(|(distance, _)| *distance <= MISSPELT).min()?;
        Some(format!("write backend: \"{near}\""))
    });
    match instead {
        Some(instead) => format!("{sentence} This server has {here}; {instead}"),
        None => {
            tracing::warn!("there is no backend '{name}': this server has {here}");
            sentence
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::builtin;

    #[test]
    fn an_unknown_name_gives_tritons_sentence_and_a_foreign_one_what_to_write() {
        let backends = builtin::all();
        let plain = unknown_backend("nosuchbackend", &backends);
        assert!(plain.ends_with("runtime on the model configuration."), "{plain}");
        for (name, part) in [
            ("tensorrt", "write backend: \"onnxruntime\""),
            ("VLLM", "write backend: \"llm\""),
            ("tflite", "write backend: \"tensorflow\""),
            ("identitty", "This server has identity, "),
            ("idntity", "write backend: \"identity\""),
        ] {
            let text = unknown_backend(name, &backends);
            assert!(
                text.starts_with(&format!("unable to find backend library for backend '{name}'"))
            );
            assert!(text.contains(part), "{text}");
        }
    }
}
