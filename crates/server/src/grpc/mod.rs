//! The gRPC front end: the KServe v2 service and the standard health check.

mod call;
mod codec;
mod compression;
mod counted_body;
mod decode;
mod encode;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod grpc_services;
mod http2;
mod methods;
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
pub use grpc_services::GrpcServices;
pub use http2::ConnectionSettings;
pub use serve::{GrpcSettings, serve};
