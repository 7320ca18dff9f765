//! Tools: what a model may call, which calls a request wants, and calls in what a model writes.

mod definition;
mod object;
mod parser;

pub use definition::{ToolChoice, ToolDefinition};
pub use parser::{ToolCall, ToolDelta, ToolFormat, ToolParser, parse};
