//! A recurrent node's cell, whatever operator it is.

use galatea_graph::Node;
use galatea_graph::ops::recurrent::{
    CellActivation, Gru, Lstm, RecurrentAttributes, RecurrentDirection, Rnn,
};

/// Function of a recurrent layer from one step to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecurrentCell {
    /// Long short-term memory. Gates: input, output, forget, cell.
    Lstm {
        /// True if the forget gate is one less the input gate.
        input_forget: bool,
    },
    /// Gated recurrent units. Gates: update, reset, hidden.
    Gru {
        /// True if the reset gate applies behind the product with the state's weights.
        linear_before_reset: bool,
    },
    /// The simple recurrent network, of one gate.
    Rnn,
}

/// Gates whose products with the state are computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellPhase {
    /// Name in the shader's template.
    pub(crate) name: &'static str,
    /// The first gate.
    pub(crate) first: usize,
    /// The number of gates.
    pub(crate) gates: usize,
    /// True if the gates are multiplied with the state as the reset gate leaves it.
    pub(crate) from_reset: bool,
    /// True if the step ends with it.
    pub(crate) last: bool,
}

impl CellPhase {
    const fn whole(name: &'static str, gates: usize) -> Self {
        Self { name, first: 0, gates, from_reset: false, last: true }
    }
}

const LSTM: &[CellPhase] = &[CellPhase::whole("lstm", 4)];
const GRU: &[CellPhase] = &[CellPhase::whole("gru", 3)];
const RESET_GRU: &[CellPhase] = &[
    CellPhase { name: "gru-gates", first: 0, gates: 2, from_reset: false, last: false },
    CellPhase { name: "gru-hidden", first: 2, gates: 1, from_reset: true, last: true },
];
const RNN: &[CellPhase] = &[CellPhase::whole("rnn", 1)];

impl RecurrentCell {
    /// Number of gates.
    pub(crate) fn gates(self) -> usize {
        match self {
            Self::Lstm { .. } => 4,
            Self::Gru { .. } => 3,
            Self::Rnn => 1,
        }
    }

    /// Number of functions of one direction.
    pub(crate) fn functions(self) -> usize {
        match self {
            Self::Lstm { .. } => 3,
            Self::Gru { .. } => 2,
            Self::Rnn => 1,
        }
    }

    /// Returns the phases of a step; each needs all of the one before it.
    pub(crate) fn phases(self) -> &'static [CellPhase] {
        match self {
            Self::Lstm { .. } => LSTM,
            Self::Gru { linear_before_reset: true } => GRU,
            Self::Gru { linear_before_reset: false } => RESET_GRU,
            Self::Rnn => RNN,
        }
    }

    /// Number of vectors that a sequence keeps: the hidden state twice, and the cell's state or what the gates of
    /// a first phase leave for the second.
    pub(crate) fn kept(self) -> usize {
        match self {
            Self::Lstm { .. } => 3,
            Self::Gru { linear_before_reset: false } => 4,
            Self::Gru { .. } | Self::Rnn => 2,
        }
    }
}

/// A recurrent node: its cell, and the attributes that all of them have.
#[derive(Clone, Debug)]
pub(crate) struct RecurrentSpec {
    pub(crate) cell: RecurrentCell,
    pub(crate) attributes: RecurrentAttributes,
}

impl RecurrentSpec {
    /// Reads a node.
    ///
    /// # Errors
    /// Fails when it is no recurrent layer.
    pub(crate) fn of(node: &Node) -> Result<Self, String> {
        let (cell, attributes) = if let Some(op) = node.operator::<Lstm>() {
            (RecurrentCell::Lstm { input_forget: op.input_forget }, &op.recurrence)
        } else if let Some(op) = node.operator::<Gru>() {
            let linear_before_reset = op.linear_before_reset;
            (RecurrentCell::Gru { linear_before_reset }, &op.recurrence)
        } else if let Some(op) = node.operator::<Rnn>() {
            (RecurrentCell::Rnn, &op.recurrence)
        } else {
            return Err(format!("{} is no recurrent layer", node.operator_name()));
        };
        Ok(Self { cell, attributes: attributes.clone() })
    }

    /// Refuses constants of functions that are no numbers of shaders.
    ///
    /// # Errors
    /// Names the function.
    pub(crate) fn check(&self) -> Result<(), String> {
        for function in &self.attributes.activations {
            let constants = match *function {
                CellActivation::Affine(a, b)
                | CellActivation::ScaledTanh(a, b)
                | CellActivation::HardSigmoid(a, b) => [a, b],
                CellActivation::LeakyRelu(a)
                | CellActivation::ThresholdedRelu(a)
                | CellActivation::Elu(a) => [a, 0.0],
                _ => [0.0, 0.0],
            };
            if constants.iter().any(|constant| !constant.is_finite()) {
                return Err(format!("constants of {function:?} are not finite"));
            }
        }
        Ok(())
    }

    /// Number of directions.
    pub(crate) fn passes(&self) -> usize {
        self.attributes.direction.count()
    }

    /// Returns whether a direction reads from the end.
    pub(crate) fn is_reversed(&self, pass: usize) -> bool {
        self.attributes.direction == RecurrentDirection::Reverse || pass == 1
    }
}
