//! Graphs in the forms that the Neural Engine favours.
//!
//! The engine computes on four axes, (B, C, 1, S): batch, channels, nothing, positions. Values of models
//! on tokens are `[B, S, C]`, with heads `[B, S, H, D]`, so that Core ML would turn them around layer by
//! layer. Here a value of the graph has two forms, its plain one and that of the engine, and each is made
//! of the other when something asks for it. [`ROWS`] has the operators that compute in the engine's form:
//! layers become convolutions of one pixel, norms run over the channels, heads are computed one by one,
//! and reshapes and transposes only rename axes. What has no row computes in the plain form.
//!
//! All lengths must be known before a run; values of which some are not stay plain.

mod attention;
mod elementwise;
mod form;
mod image;
mod linear;
mod mask;
mod norm;
mod part;
mod plan;
mod pool;
mod rotary;
mod view;

pub(crate) use plan::plan;

use galatea_graph::Node;

use super::emit::ProgramEmitter;
use super::rows;
use super::unwritable::Result;

/// Writes a node in the engine's form; whether it did.
type AneWriter = fn(&mut ProgramEmitter<'_>, &Node) -> Result<bool>;

/// Operators by name, each with what writes it. They look at the operator themselves, so that those of
/// other domains with the same name stay plain.
const ROWS: &[(&str, AneWriter)] = &[
    ("MatMul", linear::layer),
    ("FusedMatMul", linear::layer),
    ("Gemm", linear::layer),
    ("LayerNormalization", norm::layer),
    ("RMSNormalization", norm::root_mean_square),
    ("SimplifiedLayerNormalization", norm::root_mean_square),
    ("Attention", attention::attention),
    ("Rotary", rotary::rotary),
    ("Conv", image::conv),
    ("MaxPool", pool::max_pool),
    ("AveragePool", pool::average_pool),
    ("Reshape", view::reshape),
    ("Flatten", view::reshape),
    ("Squeeze", view::reshape),
    ("Unsqueeze", view::reshape),
    ("Transpose", view::transpose),
    ("Concat", part::concat),
    ("Slice", part::slice),
    ("Gather", part::gather),
    ("Split", part::split),
];

/// Writes a node: in the engine's form where that is one for it, in plain forms otherwise.
///
/// # Errors
/// Fails when it has no form in a program, with the reason. Where an operation of the engine's form is refused,
/// the graph is written again in plain forms.
pub(super) fn emit(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<()> {
    if emit.is_known(node) {
        return Ok(());
    }
    let row = rows::of(node)?;
    row.begin(emit, node);
    if !row.is_wide() && !emit.is_island(node) && emit_favoured(emit, node)? {
        return Ok(());
    }
    row.write(emit, node)
}

/// Writes a node in the engine's form, where that is one for it; whether it did. Nothing has been added
/// otherwise that somebody reads.
fn emit_favoured(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    if emit.favoured.is_none() {
        return Ok(false);
    }
    if elementwise::slots(node).is_some() {
        return elementwise::emit(emit, node);
    }
    match ROWS.iter().find(|(name, _)| *name == node.op_type) {
        Some((_, write)) => write(emit, node),
        None => Ok(false),
    }
}
