//! Parts of a value by their places, which rows of several families take.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::Dim;

use crate::emit::ProgramEmitter;
use crate::lengths::SliceTake;
use crate::unwritable::{Result, small, small_all};

/// The rows of an axis at places that count from the front.
pub(super) fn gather_rows(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    places: &MilVar,
    axis: usize,
) -> Result<MilVar> {
    let mut inputs =
        vec![("x", x.into()), ("indices", places.into()), ("axis", MilArg::Int(small(axis)?))];
    if emit.opset() >= 6 {
        inputs.push(("batch_dims", MilArg::Int(0)));
    }
    checked(emit, &mut inputs);
    emit.op("gather", inputs)
}

/// For each place, the element there along an axis.
pub(super) fn gather_elements_of(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    places: &MilVar,
    axis: usize,
) -> Result<MilVar> {
    let mut inputs =
        vec![("x", x.into()), ("indices", places.into()), ("axis", MilArg::Int(small(axis)?))];
    checked(emit, &mut inputs);
    emit.op("gather_along_axis", inputs)
}

/// Newer sets of operators say whether places are compared with lengths.
pub(super) fn checked(emit: &ProgramEmitter<'_>, inputs: &mut Vec<(&str, MilArg)>) {
    if emit.opset() >= 7 {
        inputs.push(("validate_indices", MilArg::Bool(false)));
    }
}

/// The positions `start..end` of one axis.
pub(super) fn part_of(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    rank: usize,
    axis: usize,
    start: usize,
    end: usize,
) -> Result<MilVar> {
    emit.cut(x, SliceTake::whole(rank).range(axis, start, end)?)
}

/// Rows of an axis at places that are all known.
pub(super) fn looked_up(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    axis: usize,
    places: &[usize],
) -> Result<MilVar> {
    let table = emit.table(&[places.len()], small_all(places)?)?;
    emit.as_numbers(x, |emit, x| gather_rows(emit, x, &table, axis))
}

/// Returns whether every length is known.
pub(super) fn all_known(dims: &[Dim]) -> bool {
    dims.iter().all(|dim| dim.known().is_some())
}
