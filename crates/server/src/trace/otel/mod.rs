//! Traces for OpenTelemetry.

mod collector_url;
pub mod context;
mod export;
pub mod proto;
mod spans;

pub(super) use collector_url::CollectorUrl;
pub use context::TraceParent;
pub(super) use export::SpanExporter;

#[cfg(test)]
#[path = "otel_tests.rs"]
mod tests;
