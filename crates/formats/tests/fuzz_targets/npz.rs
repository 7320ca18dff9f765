//! Any bytes as a NumPy archive.

use std::io::Cursor;

/// Runs the fuzz target of this name on an input, and panics on a finding.
pub(super) fn run(data: &[u8]) {
    let _ = galatea_formats::npy::read_npz_from(Cursor::new(data));
}
