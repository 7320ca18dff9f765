//! Finds the sentence nearest to another one: `embed [ENCODER]`.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use galatea::Engine;
use galatea_examples::{ExampleResult, arguments_or};

const QUERY: &str = "Where do cats sleep?";
const SENTENCES: [&str; 3] =
    ["Cats sleep in boxes.", "The train leaves at noon.", "Bread is baked in ovens."];

fn main() -> ExampleResult<()> {
    let arguments = arguments_or(&["examples/encoder"]);
    let encoder = Engine::new().encoder(&arguments[0])?;
    let vectors = encoder.embed(&SENTENCES)?;
    let query = encoder.embed(&[QUERY])?.remove(0);
    for (sentence, vector) in SENTENCES.iter().zip(&vectors) {
        println!("{:.3}  {sentence}", cosine(vector, &query));
    }
    Ok(())
}

/// Cosine of the angle between two vectors.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
