//! Triton's core without a wire: repository, configuration, schedulers, instances, statistics.

#![forbid(unsafe_code)]
