//! The messages of OTLP that spans need (package `opentelemetry.proto.trace.v1` and what it refers to). Only the fields
//! that are written, or that a test reads, are here: protobuf lets the others be.

/// `ExportTraceServiceRequest`
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportRequest {
    /// Spans by the service that they are of.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// `ResourceSpans`
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceSpans {
    /// The service.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Its spans by the library that made them.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// `Resource`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// Attributes of the service.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// `ScopeSpans`
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeSpans {
    /// The library.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    /// Its spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

/// `InstrumentationScope`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scope {
    /// Name of the library.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// `Span`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Span {
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    /// Client's state of the trace for its vendor (W3C `tracestate`).
    #[prost(string, tag = "3")]
    pub trace_state: String,
    /// 8 bytes, or none for a root.
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    /// Name of the operation.
    #[prost(string, tag = "5")]
    pub name: String,
    /// Side of a call; see [`SERVER`].
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    /// Attributes of the span.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    /// Moments in it.
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<SpanEvent>,
}

/// Kind of a span that answers a call; recorded Triton gives it to all its spans.
pub const SERVER: i32 = 2;

/// `Span.Event`
#[derive(Clone, PartialEq, prost::Message)]
pub struct SpanEvent {
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "1")]
    pub time_unix_nano: u64,
    /// Name of the event.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Attributes of the event.
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

/// `KeyValue`
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValue {
    /// Name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// `AnyValue`
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    /// The value.
    #[prost(oneof = "Value", tags = "1, 3")]
    pub value: Option<Value>,
}

/// The choices of `AnyValue` that are used.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    /// A text.
    #[prost(string, tag = "1")]
    Text(String),
    /// A whole number.
    #[prost(int64, tag = "3")]
    Int(i64),
}

/// An attribute.
pub(super) fn text(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::Text(value.to_owned())) });
    KeyValue { key: key.to_owned(), value }
}

/// An attribute that is a number.
pub(super) fn int(key: &str, value: u64) -> KeyValue {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(Value::Int(value)) }) }
}
