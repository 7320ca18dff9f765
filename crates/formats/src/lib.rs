//! Untrusted bytes to values and back: ONNX, protobuf text, NumPy archives.

#![forbid(unsafe_code)]

pub mod npy;
pub mod onnx;
pub mod prototext;
pub mod stored;
