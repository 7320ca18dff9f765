//! Shared steps of the lowering of simple models.

use bytes::Bytes;
use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::{DataType, OrderedMap, Tensor};

use super::activation::linear;
use super::border::label_table;
use super::lower::{NetworkLowering, int};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::ModelDescription;
use crate::coreml::proto::network::ClassLabels;

/// Values by the names of features.
pub(super) type FeatureValues = OrderedMap<String, ValueId>;

/// The labels of a classifier, if the model is one.
pub(super) type ClassifierNames = Option<Vec<String>>;

/// A simple model that is being lowered.
pub(super) struct SimpleModelStep<'s> {
    /// The bytes of its message.
    pub(super) message: &'s Bytes,
    /// The description of its inputs and outputs.
    pub(super) description: &'s ModelDescription,
    /// All values so far.
    pub(super) values: &'s mut FeatureValues,
}

impl SimpleModelStep<'_> {
    /// A feature's value.
    ///
    /// # Errors
    /// Fails when no model gives it.
    pub(super) fn value(&self, name: &str) -> Result<ValueId, CoreMlError> {
        let missing = || CoreMlError::invalid(format!("no model before gives '{name}'"));
        self.values.get(name).copied().ok_or_else(missing)
    }

    /// The value of the only input.
    ///
    /// # Errors
    /// Fails when there is another number of inputs, or nothing gives it.
    pub(super) fn input(&self) -> Result<ValueId, CoreMlError> {
        match &self.description.input[..] {
            [feature] => self.value(&feature.name),
            all => Err(CoreMlError::invalid(format!("it has {} inputs, expected 1", all.len()))),
        }
    }

    /// The value of the only input as a vector of floats.
    ///
    /// # Errors
    /// Fails like [`SimpleModelStep::input`].
    pub(super) fn floats(&self, cx: &mut NetworkLowering) -> Result<ValueId, CoreMlError> {
        let id = self.input()?;
        let id = cx.reshape(id, &[-1])?;
        cx.cast(id, DataType::Fp32)
    }

    /// The values of all inputs as one vector of floats, in the order of the description. Trees and linear models may
    /// have a number for each column.
    ///
    /// # Errors
    /// Fails when there is no input, or nothing gives one.
    pub(super) fn columns(&self, cx: &mut NetworkLowering) -> Result<ValueId, CoreMlError> {
        let mut columns = Vec::with_capacity(self.description.input.len());
        for feature in &self.description.input {
            let id = self.value(&feature.name)?;
            let id = cx.reshape(id, &[-1])?;
            columns.push(cx.cast(id, DataType::Fp32)?);
        }
        match columns[..] {
            [] => Err(CoreMlError::invalid("it has no input, expected at least 1")),
            [only] => Ok(only),
            _ => cx.node("Concat", &columns, &[("axis", 0_i64.into())]),
        }
    }

    /// Gives the only output.
    ///
    /// # Errors
    /// Fails when there is another number of outputs.
    pub(super) fn give(&mut self, id: ValueId) -> Result<ClassifierNames, CoreMlError> {
        match &self.description.output[..] {
            [feature] => self.values.insert(feature.name.clone(), id),
            all => {
                let text = format!("it has {} outputs, expected 1", all.len());
                return Err(CoreMlError::invalid(text));
            }
        };
        Ok(None)
    }

    /// Gives the label and the probabilities of a classifier.
    ///
    /// # Errors
    /// Fails when there are no labels, or another number of probabilities.
    pub(super) fn classify(
        &mut self,
        cx: &mut NetworkLowering,
        probabilities: ValueId,
        found: Option<&ClassLabels>,
    ) -> Result<ClassifierNames, CoreMlError> {
        let (names, table) = label_table(found)?;
        let probabilities = cx.reshape(probabilities, &[-1])?;
        if let Some(found) = cx.dim(probabilities, 0)?
            && found != names.len()
        {
            let text = format!("{found} probabilities of {} labels", names.len());
            return Err(CoreMlError::invalid(text));
        }
        let attributes = [("axis", 0_i64.into()), ("keepdims", false.into())];
        let best = cx.node("ArgMax", &[probabilities], &attributes)?;
        let table = cx.constant(table);
        let label = cx.node("Gather", &[table, best], &[])?;
        let description = self.description;
        let named = [
            (&description.predicted_feature_name, label),
            (&description.predicted_probabilities_name, probabilities),
        ];
        for (name, id) in named {
            if !name.is_empty() {
                self.values.insert(name.clone(), id);
            }
        }
        Ok(Some(names))
    }
}

/// Doubles of a file as floats.
pub(super) fn floats(all: &[f64]) -> Vec<f32> {
    // What a float does not hold of a double is what single precision leaves out.
    #[allow(clippy::cast_possible_truncation, reason = "computed in single precision")]
    all.iter().map(|&one| one as f32).collect()
}

/// A column of probabilities from that of the second of two labels.
pub(super) fn two_labels(
    cx: &mut NetworkLowering,
    second: ValueId,
) -> Result<ValueId, CoreMlError> {
    let first = linear(cx, second, -1.0, 1.0)?;
    cx.node("Concat", &[first, second], &[("axis", 0_i64.into())])
}

/// The softmax of a vector.
pub(super) fn softmax(cx: &mut NetworkLowering, x: ValueId) -> Result<ValueId, CoreMlError> {
    cx.node("Softmax", &[x], &[("axis", 0_i64.into())])
}

/// The softmax of a vector with a 0 in front.
pub(super) fn softmax_with_zero(
    cx: &mut NetworkLowering,
    x: ValueId,
) -> Result<ValueId, CoreMlError> {
    let zero = cx.constant(Tensor::vector(vec![0.0_f32]));
    let all = cx.node("Concat", &[zero, x], &[("axis", 0_i64.into())])?;
    softmax(cx, all)
}

/// A list of integers as an attribute.
pub(super) fn longs(all: &[usize]) -> AttributeValue {
    AttributeValue::Ints(all.iter().map(|&one| int(one)).collect())
}
