//! Untrusted bytes to values and back: ONNX, Core ML, checkpoints (safetensors, GGUF, MLX), protobuf text, NumPy
//! archives.

#![forbid(unsafe_code)]

pub mod blocks;
pub mod checkpoint;
pub mod coreml;
mod ggml_type;
pub mod gguf;
pub mod map_fields;
pub mod mlx;
pub mod npy;
pub mod onnx;
pub mod prototext;
pub mod safetensors;
pub mod stored;
