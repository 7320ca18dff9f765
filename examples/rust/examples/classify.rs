//! Classifies an image of a digit: `classify [MODEL]`.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use galatea::{Engine, Tensor};
use galatea_examples::{ExampleResult, arguments_or};

/// A seven of 8 × 8 pixels with 17 shades.
const SEVEN: [u8; 64] = [
    0, 0, 9, 15, 16, 15, 4, 0, //
    0, 3, 16, 11, 8, 16, 6, 0, //
    0, 1, 4, 0, 4, 16, 2, 0, //
    0, 0, 0, 3, 13, 15, 8, 0, //
    0, 0, 5, 16, 16, 10, 3, 0, //
    0, 0, 0, 14, 9, 0, 0, 0, //
    0, 0, 6, 15, 1, 0, 0, 0, //
    0, 0, 12, 10, 0, 0, 0, 0,
];

fn main() -> ExampleResult<()> {
    let arguments = arguments_or(&["examples/models/digits"]);
    let model = Engine::new().model(&arguments[0])?;
    let pixels = SEVEN.map(f32::from).to_vec();
    let input = &model.inputs()[0].name;
    let outputs = model.run(&[(input, Tensor::from_vec(&[1, 1, 8, 8], pixels)?)])?;
    let scores = outputs[0].1.to_vec::<f32>()?;
    let best = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    println!("devices {}, digit {:?}", model.devices().join("+"), best.map(|(digit, _)| digit));
    Ok(())
}
