//! The states before the first step, and those behind the last one.

use galatea_tensor::DataType;

use super::input;
use super::lengths::RecurrentLengths;
use super::node::{RecurrentCell, RecurrentSpec};
use crate::element::{DispatchParams, entry, shader};
use crate::kernel::{DispatchStep, ShaderBinding, fold, wgsl_float};
use galatea_runtime::NodeShapes;

/// A vector of the states, and the value of the node that it comes from or goes to.
struct StateVector {
    /// Number among those that are kept.
    number: usize,
    value: Option<(ShaderBinding, DataType)>,
}

/// States of a layer in the memory of its node.
pub(super) struct LayerStates<'a> {
    pub(super) layer: &'a RecurrentSpec,
    pub(super) lengths: &'a RecurrentLengths,
    pub(super) shapes: &'a NodeShapes,
    /// The memory's number.
    pub(super) memory: usize,
}

impl LayerStates<'_> {
    fn has_cell(&self) -> bool {
        matches!(self.layer.cell, RecurrentCell::Lstm { .. })
    }

    /// Brings the states that the node is given to memory, zeros where it is given none.
    ///
    /// # Errors
    /// Fails when lengths are beyond the device.
    pub(super) fn begin(&self, step: &mut DispatchStep) -> Result<(), String> {
        let given = |number: usize, index: usize| -> Result<StateVector, String> {
            let value = match self.shapes.has(index) {
                true => Some((ShaderBinding::Input(index), self.shapes.dtype(index)?)),
                false => None,
            };
            Ok(StateVector { number, value })
        };
        let mut all = vec![given(0, input::HIDDEN)?];
        if self.has_cell() {
            all.push(given(2, input::CELL)?);
        }
        self.copy(&all, true, step)
    }

    /// Brings the states behind the last step to the node's outputs.
    ///
    /// # Errors
    /// Fails when lengths are beyond the device.
    pub(super) fn end(&self, step: &mut DispatchStep) -> Result<(), String> {
        let mut all = Vec::new();
        let numbers = [(1, self.lengths.steps % 2), (2, 2)];
        for (output, number) in numbers {
            if self.shapes.wants(output) {
                let dtype = self.shapes.output_dtype(output)?;
                let value = Some((ShaderBinding::Output(output), dtype));
                all.push(StateVector { number, value });
            }
        }
        self.copy(&all, false, step)
    }

    fn copy(
        &self,
        vectors: &[StateVector],
        begins: bool,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        if vectors.is_empty() {
            return Ok(());
        }
        let RecurrentLengths { batch, hidden, passes, .. } = *self.lengths;
        let count = self.lengths.state();
        let mut words = DispatchParams::default();
        let count_word = words.length(count)?;
        let [hidden, batch, passes] =
            [words.length(hidden)?, words.length(batch)?, words.length(passes)?];
        let place = match self.layer.attributes.batch_first {
            true => format!(
                "((at / {hidden} % {batch}) * {passes} + at / {hidden} / {batch}) * {hidden} + at % {hidden}"
            ),
            false => "at".to_owned(),
        };
        let mut bindings = vec![ShaderBinding::Scratch(self.memory)];
        let mut declared =
            "@group(0) @binding(0) var<storage, read_write> states: array<f32>;\n".to_owned();
        let mut body = format!("let place = {place};\n");
        for vector in vectors {
            let own = words.length(vector.number * count)?;
            let Some((binding, dtype)) = &vector.value else {
                body.push_str(&format!("states[{own} + at] = 0.0;\n"));
                continue;
            };
            let float = wgsl_float(*dtype)?;
            let number = bindings.len();
            declared.push_str(&format!(
                "@group(0) @binding({number}) var<storage, read_write> v{number}: array<{float}>;\n"
            ));
            body.push_str(&match begins {
                true => format!("states[{own} + at] = f32(v{number}[place]);\n"),
                false => format!("v{number}[place] = {float}(states[{own} + at]);\n"),
            });
            bindings.push(binding.clone());
        }
        let params = words.declare(bindings.len());
        let text = format!("{declared}{params}{}{body}}}\n", entry(&count_word));
        let name = if begins { "recurrent-begin" } else { "recurrent-end" };
        let groups = fold(count.div_ceil(crate::element::THREADS))?;
        step.dispatch(shader(name, &text).proved(), bindings, words.into_params(), groups);
        Ok(())
    }
}
