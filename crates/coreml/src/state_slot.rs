//! Places of values in states.

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::ValueId;

/// Place of a value of the graph in a state.
#[derive(Clone, Debug)]
pub(crate) struct StateSlot {
    pub(crate) state: MilVar,
    pub(crate) part: usize,
    pub(crate) parts: usize,
    /// Lengths of the state.
    pub(crate) shape: Vec<usize>,
    /// The value that the next run finds there.
    pub(crate) after: ValueId,
}
