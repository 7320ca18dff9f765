//! The library for C and C++: its header, its packages, and the programs that use it.

mod examples;
mod header;
mod package;

pub(crate) use examples::test;
pub(crate) use header::write as write_header;
pub(crate) use package::build as build_package;
