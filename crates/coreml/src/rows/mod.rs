//! The operators of graphs as operations of programs, a table for each family.

pub(super) mod activation;
mod attention;
mod bodies;
mod cache;
mod contrib_attention;
mod control;
pub(super) mod convolution;
mod create;
mod decompositions;
mod dilated_pools;
mod einsum;
mod elementwise;
mod image;
mod index;
mod integers;
mod join;
mod low_bit_weights;
mod matrix;
mod normalize;
mod pad;
mod parts;
mod pool;
mod quantize;
mod quantized;
mod recurrent;
mod reduce;
mod refused;
mod regions;
mod resize;
mod shape;
pub(super) mod slice;
mod take;
mod unrolled;

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::Node;

use super::emit::ProgramEmitter;
use super::unwritable::{Result, refuse};

/// How an operator is written.
pub(super) struct EmitRow {
    /// The operator's domain; empty for ONNX's default one.
    domain: &'static str,
    /// Its name.
    name: &'static str,
    /// Why its floats are computed in FP32 even where those around it are FP16.
    wide: Option<&'static str>,
    /// Adds its operations and gives its outputs.
    emit: fn(&mut ProgramEmitter<'_>, &Node) -> Result<Vec<MilVar>>,
}

impl EmitRow {
    /// A row of an operator of ONNX's default domain.
    const fn onnx(
        name: &'static str,
        emit: fn(&mut ProgramEmitter<'_>, &Node) -> Result<Vec<MilVar>>,
    ) -> Self {
        Self { domain: "", name, wide: None, emit }
    }

    /// The same of an operator whose results exceed what FP16 holds, or lose too much there.
    const fn wide(self, reason: &'static str) -> Self {
        Self { wide: Some(reason), ..self }
    }

    /// The same in another domain.
    const fn of(self, domain: &'static str) -> Self {
        Self { domain, ..self }
    }

    /// Returns whether floats are computed in FP32 whatever their values are.
    pub(super) fn is_wide(&self) -> bool {
        self.wide.is_some()
    }

    /// Begins a node of this row.
    pub(super) fn begin(&self, emit: &mut ProgramEmitter<'_>, node: &Node) {
        emit.begin(node, self.is_wide());
    }

    /// Adds the operations of a node that has begun, and gives the values of its outputs.
    pub(super) fn results(
        &self,
        emit: &mut ProgramEmitter<'_>,
        node: &Node,
    ) -> Result<Vec<MilVar>> {
        (self.emit)(emit, node)
    }

    /// Adds the operations of a node that has begun, and ends it.
    pub(super) fn write(&self, emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<()> {
        let results = self.results(emit, node)?;
        emit.end(node, results)
    }
}

/// Every operator that is written, by family.
const FAMILIES: &[&[EmitRow]] = &[
    activation::ROWS,
    attention::ROWS,
    cache::ROWS,
    control::ROWS,
    convolution::ROWS,
    create::ROWS,
    einsum::ROWS,
    elementwise::ROWS,
    low_bit_weights::ROWS,
    contrib_attention::ROWS,
    image::ROWS,
    index::ROWS,
    integers::ROWS,
    join::ROWS,
    matrix::ROWS,
    normalize::ROWS,
    pad::ROWS,
    pool::ROWS,
    quantize::ROWS,
    quantized::ROWS,
    recurrent::ROWS,
    reduce::ROWS,
    regions::ROWS,
    resize::ROWS,
    shape::ROWS,
    slice::ROWS,
    decompositions::ROWS,
    unrolled::ROWS,
];

/// Domain and name of every operator that is written.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    FAMILIES.iter().flat_map(|family| family.iter().map(|row| (row.domain, row.name)))
}

/// Returns whether a node is computed in FP32 whatever its values are.
pub(super) fn is_wide(node: &Node) -> bool {
    of(node).is_ok_and(EmitRow::is_wide)
}

/// Writes a node in plain forms.
///
/// # Errors
/// Fails when it has no form in a program, with the reason.
pub(super) fn emit(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<()> {
    if emit.is_known(node) {
        return Ok(());
    }
    let row = of(node)?;
    row.begin(emit, node);
    row.write(emit, node)
}

/// Returns the row of a node's operator.
///
/// # Errors
/// Fails when it has none, with the reason.
pub(super) fn of(node: &Node) -> Result<&'static EmitRow> {
    let mut rows = FAMILIES.iter().flat_map(|family| family.iter());
    match rows.find(|row| row.name == node.op_type && row.domain == node.domain) {
        Some(row) => Ok(row),
        None => refuse(refused::reason(node)),
    }
}
