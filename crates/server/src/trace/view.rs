//! Settings of traces that are in force.

use galatea_serving::trace::TraceLevel;

/// Settings in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceView {
    /// Level of detail of a trace.
    pub level: TraceLevel,
    /// Sampling rate: one in this many requests is traced.
    pub rate: u32,
    /// Number of traces still to make; -1 for no limit.
    pub count: i32,
    /// Number of traces in a file; 0 for all.
    pub log_frequency: u32,
}
