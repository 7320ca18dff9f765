//! JSON as Triton's clients meet it: RapidJSON's grammar, error texts, number types and number printing.
//!
//! A general JSON library differs where clients can see it: `NaN` and `Infinity` are read and written bare, strings
//! need not be UTF-8, duplicate keys are legal, and an error says what and at which byte in RapidJSON's words.

mod access;
mod number;
mod powers;
mod reader;
mod shortest;
mod writer;

pub use access::WrongType;
pub use reader::{JsonDocument, JsonKind, JsonValue, MAX_DEPTH, ParseError};
pub use writer::{write_array, write_f64, write_i64, write_str, write_u64};
