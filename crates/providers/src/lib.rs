//! Execution providers: reference and cpu.

#![forbid(unsafe_code)]
