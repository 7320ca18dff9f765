//! Messages and clients, generated from `proto/` by `codegen/`.

#![allow(
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]

/// Package `inference`.
pub mod inference {
    include!("proto/inference.rs");
}

/// Package `grpc.health.v1`.
pub mod health {
    include!("proto/grpc.health.v1.rs");
}
