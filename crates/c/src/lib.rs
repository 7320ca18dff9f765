//! The library of Galatea for C and C++: engines, models, language models, encoders, servers, and what a machine can do.
//!
//! `cargo xtask c-header` writes `include/galatea.h` of the exported functions. `include/galatea.hpp` wraps them for
//! C++17. Four rules hold for each function:
//!
//! - It returns an [`ApiStatus`]. The sentence about a failure is kept for each thread (`galatea_last_error`).
//! - It never unwinds into C: a panic is [`ApiStatus::Internal`].
//! - It takes handles that a table resolves. A handle that was freed is an error, not memory of somebody else.
//! - It takes pointers as its text says: C promises their validity, which no library can check.
//!
//! The table of handles is the one state that is global to the process: C has nothing but a handle to find its object.

// An engine holds GPUs, whose types are nested deep.
#![recursion_limit = "256"]
#![allow(
    clippy::missing_safety_doc,
    reason = "one contract holds for all functions: pointers are valid as the text of the function says"
)]
#![allow(clippy::cast_precision_loss, reason = "figures for people are doubles")]

mod api_status;
mod buffer;
mod buffer_pool;
mod caller;
mod device;
mod encoder;
mod engine;
mod generation;
mod handle_table;
mod llm;
mod memory;
mod model;
mod monitor;
mod operation;
mod operation_cache;
mod owned_text;
mod power;
mod prefetch;
mod server;
mod tensor;
mod tuning;
mod unit;
mod value_type;
mod version;

pub use api_status::{ApiStatus, galatea_last_error, galatea_status_name};
pub use buffer::*;
pub use buffer_pool::PoolStatistics;
pub use device::*;
pub use encoder::*;
pub use engine::*;
pub use generation::*;
pub use llm::*;
pub use memory::*;
pub use model::*;
pub use monitor::*;
pub use operation::*;
pub use owned_text::{OpaqueText, galatea_text_data, galatea_text_free};
pub use power::*;
pub use prefetch::*;
pub use server::*;
pub use tensor::*;
pub use tuning::*;
pub use unit::ComputeUnitKind;
pub use value_type::{ValueType, galatea_type_size};
pub use version::*;
