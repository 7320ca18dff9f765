//! Shapes as messages show them.

use std::fmt::Write as _;

/// A shape as Triton prints it: `[-1,16]`.
pub(crate) fn shape_text(shape: &[i64]) -> String {
    let mut text = String::from("[");
    for (at, dim) in shape.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ok = write!(text, "{comma}{dim}");
    }
    text.push(']');
    text
}
