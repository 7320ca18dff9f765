//! The Galatea program.

fn main() {}
