//! Thin safe doors to macOS; each has a body off macOS that says Unavailable.
