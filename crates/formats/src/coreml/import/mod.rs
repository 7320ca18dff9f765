//! Programs to graphs: every operator of the Model Intermediate Language as nodes of ONNX's
//! operators.
//!
//! [`FAMILIES`] lists the operators. A row lowers one operation: it reads the inputs by name, adds
//! nodes, and gives the outputs their values; inputs that nobody read are refused, and what the
//! program says of types and shapes is compared with what the nodes give. Constants stay constants
//! until a node reads them, so that parameters cost nothing.

mod activation;
mod classify;
mod constant;
mod control;
mod convolution;
mod create;
mod crop_resize;
mod elementwise;
mod index;
mod list;
mod lowering;
mod matrix;
mod normalize;
mod operation;
mod pool;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod resample;
mod resize;
mod scatter;
mod shape;
mod slice;
mod sort;
mod state;
mod suppress;

use galatea_graph::{Dim, Fact, Graph};

use super::error::{CoreMlError, CoreMlErrorKind};
use super::mil::{MilBlock, MilFunction, MilOperation, MilTensorType, MilType};
pub(super) use lowering::ProgramLowering;
use lowering::{BoundName, Result};
use operation::LoweredOperation;

/// How an operator becomes nodes.
struct LoweringRow {
    /// The operator.
    name: &'static str,
    /// The first set of operators that has it: 5 for `CoreML5`.
    since: u32,
    /// Lowers one operation.
    lower: fn(&mut ProgramLowering, &LoweredOperation<'_>) -> Result<()>,
}

impl LoweringRow {
    /// A row of an operator that every set has.
    const fn new(
        name: &'static str,
        lower: fn(&mut ProgramLowering, &LoweredOperation<'_>) -> Result<()>,
    ) -> Self {
        Self { name, since: OLDEST_OPSET, lower }
    }

    /// A row of an operator that came later.
    const fn since(
        since: u32,
        name: &'static str,
        lower: fn(&mut ProgramLowering, &LoweredOperation<'_>) -> Result<()>,
    ) -> Self {
        Self { name, since, lower }
    }
}

/// Every operator, by family.
const FAMILIES: &[&[LoweringRow]] = &[
    activation::ROWS,
    classify::ROWS,
    constant::ROWS,
    control::ROWS,
    convolution::ROWS,
    create::ROWS,
    crop_resize::ROWS,
    elementwise::ROWS,
    index::ROWS,
    list::ROWS,
    matrix::ROWS,
    normalize::ROWS,
    pool::ROWS,
    quantize::ROWS,
    random::ROWS,
    recurrent::ROWS,
    reduce::ROWS,
    resample::ROWS,
    resize::ROWS,
    scatter::ROWS,
    shape::ROWS,
    slice::ROWS,
    sort::ROWS,
    state::ROWS,
    suppress::ROWS,
];

/// The oldest set of operators.
const OLDEST_OPSET: u32 = 5;
/// The newest set of operators whose meanings are known.
const NEWEST_OPSET: u32 = 9;

/// The names of all operators that are lowered.
pub fn operators() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|family| family.iter().map(|row| row.name))
}

/// Lowers a function, and gives the names of its states. The graph's inputs are those of the function
/// that are no states, then the states, all under their names; its outputs those of the function, then
/// the states as a run leaves them, whose names end in `@after`.
///
/// # Errors
/// Fails when the function uses an operator, a type or a form that is not known, or says what is
/// not so.
pub(super) fn function(name: &str, function: &MilFunction) -> Result<(Graph, Vec<String>)> {
    let opset = opset(&function.opset)?;
    let mut lowering = ProgramLowering::new(name);
    let mut states = Vec::new();
    let mut fed = Vec::new();
    for (name, stated) in &function.inputs {
        let place = || format!("input '{name}'");
        match stated {
            MilType::State(found) => fed.push((name, found)),
            MilType::Tensor(found) => {
                lowering.declare(name, found).map_err(|error| error.at(place()))?;
            }
            other => {
                let text = format!("it is {other}, expected a tensor or a state");
                return Err(CoreMlError::unsupported(text).at(place()));
            }
        }
    }
    for (name, found) in fed {
        lowering.declare_state(name, found).map_err(|error| error.at(format!("state '{name}'")))?;
        states.push(name.clone());
    }
    block(&mut lowering, &function.block, opset)?;
    for name in &function.block.outputs {
        let given = lowering.value_of(name).and_then(|id| lowering.named_output(name, id));
        given.map_err(|error| error.at(format!("output '{name}'")))?;
    }
    for state in &states {
        let Some(id) = lowering.state(state) else { continue };
        lowering.named_output(&format!("{state}@after"), id)?;
    }
    let mut graph = lowering.into_graph();
    graph.sort()?;
    Ok((graph, states))
}

impl ProgramLowering {
    /// Adds an input of the function.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub(super) fn declare(&mut self, name: &str, found: &MilTensorType) -> Result<()> {
        let id = self.named_input(name, fact(found))?;
        self.define(name, BoundName::Value(id))
    }

    /// Adds an input of a block that is being written.
    ///
    /// # Errors
    /// Fails when the name is taken.
    pub(super) fn declare_inner(&mut self, name: &str, found: &MilTensorType) -> Result<()> {
        let id = self.input(fact(found));
        self.define(name, BoundName::Value(id))
    }

    /// Adds a state of the function.
    ///
    /// # Errors
    /// Fails when the name is taken, or the shape is not known.
    pub(super) fn declare_state(&mut self, name: &str, found: &MilTensorType) -> Result<()> {
        let known = |shape: &Vec<Option<usize>>| shape.iter().all(Option::is_some);
        if !found.shape.as_ref().is_some_and(known) {
            return Err(CoreMlError::unsupported(format!("it is {found}, expected a known shape")));
        }
        let id = self.named_input(name, fact(found))?;
        self.define(name, BoundName::State(name.to_owned()))?;
        self.set_state(name, id);
        Ok(())
    }

    /// Reads an operation of a program that is being written, and gives the types of its outputs.
    ///
    /// # Errors
    /// Fails when the operator is not known, or refuses its inputs.
    pub(super) fn add(&mut self, operation: &MilOperation, opset: u32) -> Result<Vec<MilType>> {
        self.given = Some(Vec::new());
        one(self, operation, opset).map_err(|error| error.at(operation.place()))?;
        let mut all = self.given.take().unwrap_or_default();
        // Those of the operations in its blocks come first.
        let inner = all.len().saturating_sub(operation.outputs.len());
        Ok(all.split_off(inner))
    }
}

/// Returns the fact that a type states about a value.
fn fact(found: &MilTensorType) -> Fact {
    let dim = |len: &Option<usize>| len.map_or(Dim::Unknown, Dim::Known);
    let shape = found.shape.as_ref().map(|shape| shape.iter().map(dim).collect());
    Fact::shaped(found.element.stored_as(), shape)
}

/// The number of a set of operators.
fn opset(name: &str) -> Result<u32> {
    let number = name.strip_prefix("CoreML").and_then(|number| number.parse().ok());
    match number {
        Some(number) if (OLDEST_OPSET..=NEWEST_OPSET).contains(&number) => Ok(number),
        _ => Err(CoreMlError::new(CoreMlErrorKind::Version(format!(
            "the opset is '{name}', CoreML{OLDEST_OPSET} to CoreML{NEWEST_OPSET} are supported"
        )))),
    }
}

/// Lowers the operations of a block in their order.
fn block(lowering: &mut ProgramLowering, block: &MilBlock, opset: u32) -> Result<()> {
    for operation in &block.operations {
        one(lowering, operation, opset).map_err(|error| error.at(operation.place()))?;
    }
    Ok(())
}

fn one(lowering: &mut ProgramLowering, operation: &MilOperation, opset: u32) -> Result<()> {
    let mut rows = FAMILIES.iter().flat_map(|family| family.iter());
    let Some(row) = rows.find(|row| row.name == operation.operator) else {
        let text = format!("there is no operator '{}'", operation.operator);
        return Err(CoreMlError::unsupported(text));
    };
    if row.since > opset {
        let text =
            format!("the operator came with CoreML{}, the function is CoreML{opset}", row.since);
        return Err(CoreMlError::invalid(text));
    }
    lowering.begin(operation.outputs.first().map_or("", |(name, _)| name));
    let op = LoweredOperation::new(operation, opset);
    (row.lower)(lowering, &op)?;
    op.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_operator_has_one_row() {
        let mut seen = HashSet::new();
        for name in operators() {
            assert!(seen.insert(name), "{name} is there twice");
        }
    }
}
