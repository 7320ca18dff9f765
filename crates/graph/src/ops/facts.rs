//! Facts about operators: what rows say, and how they are found.

use std::collections::HashMap;
use std::sync::OnceLock;

use galatea_tensor::OrderedSet;

use crate::Node;
use crate::operator::OpDef;
use crate::ops::shape::{Dropout, DropoutMode};
use crate::traits::{DataMovement, ElementwiseInputs, NumericClass, OpTraits, RowIndependence};

/// Returns the facts about an operator; nothing about an unknown one.
#[must_use]
pub fn traits(domain: &str, name: &str) -> OpTraits {
    static ALL: OnceLock<HashMap<(&str, &str), OpTraits>> = OnceLock::new();
    let all =
        ALL.get_or_init(|| super::all().map(|def| ((def.domain, def.name), def.traits)).collect());
    all.get(&(domain, name)).copied().unwrap_or(OpTraits::NONE)
}

/// Returns the ONNX operators of [views](Node::is_view).
#[must_use]
pub fn views() -> OrderedSet<&'static str> {
    let keeps = super::all().filter(|def| def.traits.movement == DataMovement::Keeps);
    keeps.map(|def| def.name).chain(["Dropout"]).collect()
}

impl Node {
    /// Returns the facts about the node's operator.
    #[must_use]
    pub fn traits(&self) -> OpTraits {
        traits(&self.domain, &self.op_type)
    }

    /// Returns whether the first output has the elements of the first input under another shape, and nobody wants
    /// a further one. Both may then share memory.
    #[must_use]
    pub fn is_view(&self) -> bool {
        let passes = |dropout: &Dropout| dropout.training == DropoutMode::Never;
        let keeps = self.traits().movement == DataMovement::Keeps;
        (keeps || self.operator::<Dropout>().is_some_and(passes))
            && self.outputs.iter().skip(1).all(Option::is_none)
    }
}

/// Facts of a row, said behind it.
impl OpDef {
    /// Computes element by element on all inputs, which broadcast.
    pub(crate) const fn elementwise(mut self) -> Self {
        self.traits.elementwise = Some(ElementwiseInputs::All);
        self.rows_apart()
    }

    /// Computes element by element on the first input.
    pub(crate) const fn elementwise_of_first(mut self) -> Self {
        self.traits.elementwise = Some(ElementwiseInputs::First);
        self.rows_apart()
    }

    /// Keeps rows apart.
    pub(crate) const fn rows_apart(mut self) -> Self {
        self.traits.rows = RowIndependence::Apart;
        self
    }

    /// Keeps rows of the first input apart.
    pub(crate) const fn rows_apart_from_weights(mut self) -> Self {
        self.traits.rows = RowIndependence::ApartFromWeights;
        self
    }

    /// Keeps the elements of the first input and their order.
    pub(crate) const fn keeps(mut self) -> Self {
        self.traits.movement = DataMovement::Keeps;
        self
    }

    /// Gives elements of the first input other places.
    pub(crate) const fn moves(mut self) -> Self {
        self.traits.movement = DataMovement::Moves;
        self
    }

    /// Gives some elements of the first input other places, and reads no others.
    pub(crate) const fn moves_part(mut self) -> Self {
        self.traits.movement = DataMovement::MovesPart;
        self
    }

    /// Gives elements of several inputs, or a filling.
    pub(crate) const fn moves_several(mut self) -> Self {
        self.traits.movement = DataMovement::MovesSeveral;
        self
    }

    /// Gives elements another type.
    pub(crate) const fn converts(mut self) -> Self {
        self.traits.movement = DataMovement::Converts;
        self
    }

    /// Rounds as a transcendental function does.
    pub(crate) const fn transcendental(mut self) -> Self {
        self.traits.numeric = NumericClass::Transcendental;
        self
    }

    /// Rounds as sums of products do.
    pub(crate) const fn accumulating(mut self) -> Self {
        self.traits.numeric = NumericClass::Accumulating;
        self
    }

    /// Keeps lengths lengths.
    pub(crate) const fn on_lengths(mut self) -> Self {
        self.traits.on_lengths = true;
        self
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
