//! Output of a worker, line by line.

use std::io::{BufRead, BufReader, Read};

/// Longest line of output that is relayed in one piece.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Gives each line that a worker writes to `line`, until nobody holds the other end any more.
///
/// The end of a line is cut off. What is no UTF-8 is replaced, and a line that is too long comes in pieces.
pub fn relay_lines(output: impl Read, mut line: impl FnMut(&str)) {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match output.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => line(String::from_utf8_lossy(&bytes).trim_end()),
        }
    }
}
