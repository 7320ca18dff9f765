//! Traces for OpenTelemetry.

pub mod context;
mod export;
pub mod proto;
mod spans;

pub use context::TraceParent;
pub(super) use export::{CollectorUrl, SpanExporter};

#[cfg(test)]
#[path = "otel_tests.rs"]
mod tests;
