//! Pace that clients must keep, whatever they speak.

use std::time::Duration;

/// Time by default in which a client must send or take [`MIN_PACE_BYTES`].
pub const CLIENT_STALL: Duration = Duration::from_secs(60);
/// Bytes of a request or an answer that must go on in that time, or all that is left where that is less.
pub const MIN_PACE_BYTES: usize = 16 * 1024;
