//! The gRPC front end: the KServe v2 service and the standard health check.

mod call;
pub mod client;
mod codec;
mod compression;
mod decode;
mod encode;
mod http2;
pub mod proto;
mod reflection;
mod repository;
mod serve;
mod service;
mod settings;
mod shm;
mod stream;
mod unary;

pub use compression::CompressionLevel;
pub use http2::ConnectionSettings;
pub use serve::{GrpcSettings, serve};
pub use service::GrpcServices;
