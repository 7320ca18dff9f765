//! Operator semantics: definitions, shape inference, reference evaluation, rewrites.

#![forbid(unsafe_code)]
