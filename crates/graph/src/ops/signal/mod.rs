//! Signals in time and their frequencies.

mod dft;
mod fourier;
mod mel_weight_matrix;
mod stft;
mod window;

pub use dft::Dft;
pub use mel_weight_matrix::MelWeightMatrix;
pub use stft::Stft;
pub use window::CosineWindow;

use crate::operator::{Arity, OpDef};

const ONE: Arity = Arity::exactly(1);

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("DFT", 17, Arity::between(1, 2), ONE, Dft::parse_17).accumulating(),
    OpDef::onnx("DFT", 20, Arity::between(1, 3), ONE, Dft::parse).accumulating(),
    OpDef::onnx("STFT", 17, Arity::between(2, 4), ONE, Stft::parse).accumulating(),
    OpDef::onnx("HannWindow", 17, ONE, ONE, CosineWindow::hann).accumulating(),
    OpDef::onnx("HammingWindow", 17, ONE, ONE, CosineWindow::hamming).accumulating(),
    OpDef::onnx("BlackmanWindow", 17, ONE, ONE, CosineWindow::blackman).accumulating(),
    OpDef::onnx("MelWeightMatrix", 17, Arity::exactly(5), ONE, MelWeightMatrix::parse)
        .accumulating(),
];
