//! Doubles of macOS's C functions.
