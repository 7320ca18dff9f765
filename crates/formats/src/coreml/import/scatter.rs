//! Operators that write elements at given places, or combine them with what is there.

use galatea_graph::{Attributes, ValueId};
use galatea_tensor::DataType;

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes, text};
use super::operation::LoweredOperation;
use super::shape::signed;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("scatter", scatter),
    LoweringRow::new("scatter_along_axis", scatter_along_axis),
    LoweringRow::new("scatter_nd", scatter_nd),
];

/// Places and values of the elements to write, and the way to combine them.
struct ScatterUpdates {
    data: ValueId,
    /// Places, of INT64; those below zero count from the end.
    indices: ValueId,
    updates: ValueId,
    /// The mode as ONNX calls it.
    reduction: &'static str,
    /// True if the data are divided by the product of the updates.
    divides: bool,
}

impl ScatterUpdates {
    fn read(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<Self> {
        let data = low.required(op, "data")?;
        let indices = low.required(op, "indices")?;
        let mut updates = low.required(op, "updates")?;
        let indices = low.cast(indices, DataType::Int64)?;
        if op.opset >= 7 {
            // Places outside are errors in any case.
            low.flag(op, "validate_indices", false)?;
        }
        let modes = ["add", "div", "max", "min", "mul", "sub", "update"];
        let names = ["add", "mul", "max", "min", "mul", "add", "none"];
        let mode = low.choice(op, "mode", &modes)?;
        let found = modes.get(mode).copied().unwrap_or("add");
        if found == "sub" {
            updates = low.plain("Neg", &[updates])?;
        }
        let reduction = names.get(mode).copied().unwrap_or("add");
        Ok(Self { data, indices, updates, reduction, divides: found == "div" })
    }

    /// Adds the node and gives the result.
    fn write(
        self,
        low: &mut ProgramLowering,
        op: &LoweredOperation<'_>,
        operator: &str,
        mut named: Attributes,
    ) -> Result<()> {
        named.insert("reduction".to_owned(), text(self.reduction));
        let result = match self.divides {
            false => low.node(operator, &named, &[self.data, self.indices, self.updates])?,
            true => {
                let dtype = low.dtype(self.data)?;
                let one = low.number(1.0, dtype)?;
                let shape = low.shape_of(self.data)?;
                let ones = low.plain("Expand", &[one, shape])?;
                let divisors = low.node(operator, &named, &[ones, self.indices, self.updates])?;
                low.plain("Div", &[self.data, divisors])?
            }
        };
        low.give(op, &[result])
    }
}

/// Whole rows of an axis: a shape of places, in whose stead the updates have the axis. Without axes it is one place.
fn scatter(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let mut found = ScatterUpdates::read(low, op)?;
    let rank = low.rank(found.data)?;
    let axis = low.int(op, "axis")?.unwrap_or(0);
    let axis = low.axis(axis, rank)?;
    if axis == 0 {
        found.indices = low.unsqueeze(found.indices, &[-1])?;
        return found.write(low, op, "ScatterND", Attributes::new());
    }
    match low.rank(found.indices)? {
        0 => {
            found.indices = low.unsqueeze(found.indices, &[0])?;
            found.updates = low.unsqueeze(found.updates, &[signed(axis)])?;
        }
        1 => {}
        places => {
            let text = format!("input 'indices' has {places} axes where axis is {axis}");
            return Err(CoreMlError::unsupported(text));
        }
    }
    // The same place for all elements of a row.
    let mut shape = vec![1; rank];
    if let Some(len) = shape.get_mut(axis) {
        *len = -1;
    }
    let places = low.reshape(found.indices, &shape)?;
    let wanted = low.shape_of(found.updates)?;
    found.indices = low.plain("Expand", &[places, wanted])?;
    found.write(low, op, "ScatterElements", attributes([("axis", signed(axis).into())]))
}

/// Elements of an axis, each at a place of its own.
fn scatter_along_axis(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let found = ScatterUpdates::read(low, op)?;
    let axis = low.int(op, "axis")?.unwrap_or(0);
    found.write(low, op, "ScatterElements", attributes([("axis", axis.into())]))
}

/// Parts whose first positions are the last axis of `indices`.
fn scatter_nd(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let found = ScatterUpdates::read(low, op)?;
    found.write(low, op, "ScatterND", Attributes::new())
}
