//! Any bytes as a NumPy array; what can be read is written and read again as the same array.

use galatea_formats::npy::{read_npy, write_npy};

/// Runs the fuzz target of this name on an input, and panics on a finding.
pub(super) fn run(data: &[u8]) {
    if let Ok(tensor) = read_npy(data) {
        let mut bytes = Vec::new();
        write_npy(&tensor, &mut bytes).expect("an array that was read can be written");
        let again = read_npy(&bytes).expect("an array that was written can be read");
        assert_eq!((tensor.dtype(), tensor.shape()), (again.dtype(), again.shape()));
    }
}
