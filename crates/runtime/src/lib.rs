//! The execution contract: providers, partitioning, memory plan, sessions.

#![forbid(unsafe_code)]
