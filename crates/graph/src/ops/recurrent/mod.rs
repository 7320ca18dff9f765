//! Recurrent networks.

mod attention_lstm;
mod cell;
mod gru;
mod lstm;
mod rnn;

pub use attention_lstm::AttentionLstm;
pub use cell::{CellActivation, RecurrentAttributes, RecurrentDirection};
pub use gru::Gru;
pub use lstm::Lstm;
pub use rnn::Rnn;

use crate::operator::{Arity, OpDef};

/// The family's rows.
pub const OPS: &[OpDef] = &[
    OpDef::onnx("LSTM", 1, Arity::between(3, 8), Arity::between(0, 3), Lstm::parse).accumulating(),
    OpDef::onnx("GRU", 1, Arity::between(3, 6), Arity::between(0, 2), Gru::parse).accumulating(),
    OpDef::onnx("RNN", 1, Arity::between(3, 6), Arity::between(0, 2), Rnn::parse).accumulating(),
];
