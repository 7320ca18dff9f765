//! Steps that compute elements.

use crate::element::ShaderKind;
use crate::kernel::GpuNodeView;

/// Steps that compute one element of the output from those of the inputs at the same position.
///
/// Operands are the names `a0`, `a1`… in the order of `inputs`, each four elements.
#[derive(Clone, Debug)]
pub(super) struct ElementProgram {
    /// The inputs of the node that are read.
    pub(super) inputs: Vec<usize>,
    /// Statements in front of the result.
    pub(super) lines: Vec<String>,
    /// The result, of the output's kind.
    pub(super) result: String,
    /// The axis of the first input that vectors among the others go along, where it is not the last.
    pub(super) axis: Option<i64>,
    /// The axis, and how many of its positions share a position of the inputs behind the first.
    pub(super) blocks: Option<(usize, usize)>,
}

impl ElementProgram {
    pub(super) fn of(inputs: Vec<usize>, result: String) -> Self {
        Self { inputs, lines: Vec::new(), result, axis: None, blocks: None }
    }
}

/// The program of a node; `None` where the node is not of the family that is asked.
pub(super) type ProgramMatch = Option<Result<ElementProgram, String>>;

/// The kind of an input's elements.
pub(super) fn kind(view: &GpuNodeView<'_>, index: usize) -> Result<ShaderKind, String> {
    let fact = view.input(index).ok_or_else(|| format!("input {index} is missing"))?;
    ShaderKind::of(view, fact.dtype)
}
