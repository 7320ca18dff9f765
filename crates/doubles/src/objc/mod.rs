//! A small Objective-C runtime, and doubles of the classes that Galatea uses.
//!
//! The classes of [`foundation`] are written on the runtime, and those of Core ML on them, by the same bindings that
//! Galatea uses. [`runtime::live_objects`] and [`runtime::live_blocks`] count what has an owner.

mod classes;
pub mod core_ml;
mod core_video;
mod foundation;
pub mod runtime;
mod version;

pub use foundation::raise;
