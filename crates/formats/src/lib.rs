//! Untrusted bytes to values and back: ONNX, checkpoints (safetensors), protobuf text, NumPy
//! archives.

#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod npy;
pub mod onnx;
pub mod prototext;
pub mod safetensors;
pub mod stored;
