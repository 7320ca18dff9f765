//! Tasks with the library `galatea`, each a program of its own: `cargo run -p galatea-examples --example NAME`.

#![forbid(unsafe_code)]

/// Result of an example.
pub type ExampleResult<T> = Result<T, Box<dyn std::error::Error>>;

/// Returns the arguments of the program, or these where none are given.
#[must_use]
pub fn arguments_or(usual: &[&str]) -> Vec<String> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    match given.is_empty() {
        true => usual.iter().map(|&text| text.to_owned()).collect(),
        false => given,
    }
}
