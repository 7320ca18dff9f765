//! `NonMaximumSuppression`: the best boxes that do not overlap.

use galatea_graph::ValueId;
use galatea_tensor::{DataType, Tensor};

use super::lower::{LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, int, size};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::NonMaximumSuppression;

/// Most images of a batch: each is nodes of its own.
const MAX_BATCH: usize = 256;

/// Most classes that boxes are told apart by.
const MAX_CLASSES: usize = 1 << 16;

/// Criteria by which boxes are chosen.
pub(super) struct NmsThresholds {
    /// Boxes that overlap more are one.
    pub(super) overlap: ValueId,
    /// Boxes with a lower score are none.
    pub(super) score: ValueId,
    /// Number of boxes at most: a vector of one integer.
    pub(super) count: ValueId,
    /// True if boxes of different classes may overlap.
    pub(super) by_class: bool,
    /// True if the best box stays even if its score is too low.
    pub(super) never_empty: bool,
}

/// The positions of the boxes of one image that are left, best first.
///
/// Shapes: boxes `[N, 4]` with centers and sizes, scores `[N, classes]`.
pub(super) fn survivors(
    cx: &mut NetworkLowering,
    boxes: ValueId,
    scores: ValueId,
    by: &NmsThresholds,
) -> Result<ValueId, CoreMlError> {
    let last = cx.longs(&[-1]);
    let best = cx.node("ReduceMax", &[scores, last], &[("keepdims", false.into())])?;
    let row = cx.unsqueeze(best, &[0])?;
    let rows = if by.by_class { class_rows(cx, scores, row)? } else { row };
    let one_image = (cx.unsqueeze(boxes, &[0])?, cx.unsqueeze(rows, &[0])?);
    let inputs = [one_image.0, one_image.1, by.count, by.overlap];
    let found = cx.node("NonMaxSuppression", &inputs, &[("center_point_box", 1_i64.into())])?;
    let places = cx.slice(found, &[(1, 1, 3, 1)])?;
    // No box was refused by its score yet, so that one at the threshold stays.
    let reached = cx.node("GatherND", &[rows, places], &[])?;
    let enough = cx.node("GreaterOrEqual", &[reached, by.score], &[])?;
    let found = cx.slice(places, &[(1, 1, 2, 1)])?;
    let found = cx.squeeze(found, &[1])?;
    let kept = cx.node("Compress", &[found, enough], &[("axis", 0_i64.into())])?;
    let kept = if by.by_class { best_of_classes(cx, best, kept, by)? } else { kept };
    if !by.never_empty {
        return Ok(kept);
    }
    // Where no box is left, the one with the highest score is.
    let top = cx.node("ArgMax", &[best], &[("axis", 0_i64.into())])?;
    let all = cx.node("Concat", &[kept, top], &[("axis", 0_i64.into())])?;
    let count = cx.shape(kept)?;
    let zero = cx.longs(&[0]);
    let one = cx.longs(&[1]);
    let count = cx.node("Max", &[count, one], &[])?;
    cx.node("Slice", &[all, zero, count], &[])
}

/// The best score of every box in the row of its class, `[classes, N]`, and nothing elsewhere.
fn class_rows(
    cx: &mut NetworkLowering,
    scores: ValueId,
    best: ValueId,
) -> Result<ValueId, CoreMlError> {
    let classes = match cx.dim(scores, -1)? {
        Some(classes @ ..=MAX_CLASSES) => classes,
        found => return Err(CoreMlError::unsupported(format!("boxes of {found:?} classes"))),
    };
    let numbers = (0..classes).map(int).collect();
    let numbers = cx.constant(Tensor::from_vec(&[classes, 1], numbers)?);
    let own =
        cx.node("ArgMax", &[scores], &[("axis", 1_i64.into()), ("keepdims", false.into())])?;
    let own = cx.unsqueeze(own, &[0])?;
    let matches = cx.node("Equal", &[numbers, own], &[])?;
    let nothing = cx.scalar(f32::NEG_INFINITY);
    cx.node("Where", &[matches, best, nothing], &[])
}

/// The best boxes of all classes, which come one after the other.
fn best_of_classes(
    cx: &mut NetworkLowering,
    best: ValueId,
    kept: ValueId,
    by: &NmsThresholds,
) -> Result<ValueId, CoreMlError> {
    let scores = cx.node("Gather", &[best, kept], &[])?;
    let found = cx.shape(kept)?;
    let count = cx.node("Min", &[found, by.count], &[])?;
    let sorted = cx.nodes("TopK", vec![Some(scores), Some(count)], &[], 2)?;
    let &[_, order] = &sorted[..] else { return Err(CoreMlError::invalid("no result")) };
    cx.node("Gather", &[kept, order], &[])
}

/// The rows of a matrix at positions, and rows of zeros up to a number.
fn padded_rows(
    cx: &mut NetworkLowering,
    matrix: ValueId,
    positions: ValueId,
    missing: ValueId,
) -> Result<ValueId, CoreMlError> {
    let rows = cx.node("Gather", &[matrix, positions], &[])?;
    let zeros = cx.longs(&[0, 0]);
    let zero = cx.longs(&[0]);
    let pads = cx.node("Concat", &[zeros, missing, zero], &[("axis", 0_i64.into())])?;
    let value = cx.scalar(0.0);
    let padded = cx.node("Pad", &[rows, pads, value], &[])?;
    cx.unsqueeze(padded, &[0])
}

/// `NonMaximumSuppression`.
pub(super) fn suppression(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: NonMaximumSuppression = call.read()?;
    let boxes = cx.exact(call.input(0)?)?;
    let scores = cx.exact(call.input(1)?)?;
    let number = |cx: &mut NetworkLowering, at: usize, field: f32| match call.inputs.get(at) {
        Some(&blob) => {
            let exact = cx.exact(blob)?;
            cx.reshape(exact, &[1])
        }
        None => Ok(cx.constant(Tensor::vector(vec![field]))),
    };
    let by = NmsThresholds {
        overlap: number(cx, 2, params.iou_threshold)?,
        score: number(cx, 3, params.score_threshold)?,
        count: match call.inputs.get(4) {
            Some(&count) => cx.whole_vector(count)?,
            None => cx.longs(&[int(size(params.max_boxes)?)]),
        },
        by_class: params.per_class_suppression,
        never_empty: true,
    };
    let batch = match cx.dim(boxes, 0)? {
        Some(batch @ 1..=MAX_BATCH) => batch,
        found => {
            let text = format!("boxes of {found:?} images, expected 1 to {MAX_BATCH}");
            return Err(CoreMlError::unsupported(text));
        }
    };
    let mut columns: [Vec<ValueId>; 4] = Default::default();
    for image in 0..int(batch) {
        let one = |cx: &mut NetworkLowering, id: ValueId| {
            let one = cx.slice(id, &[(0, image, image + 1, 1)])?;
            cx.squeeze(one, &[0])
        };
        let boxes = one(cx, boxes)?;
        let scores = one(cx, scores)?;
        let kept = survivors(cx, boxes, scores, &by)?;
        let count = cx.shape(kept)?;
        let missing = cx.node("Sub", &[by.count, count], &[])?;
        let zero = cx.longs(&[0]);
        let missing = cx.node("Max", &[missing, zero], &[])?;
        let pads = cx.node("Concat", &[zero, missing], &[("axis", 0_i64.into())])?;
        let none = cx.constant(Tensor::scalar(-1_i64));
        let positions = cx.node("Pad", &[kept, pads, none], &[])?;
        let positions = cx.unsqueeze(positions, &[0])?;
        let found = [
            padded_rows(cx, boxes, kept, missing)?,
            padded_rows(cx, scores, kept, missing)?,
            cx.cast(positions, DataType::Fp32)?,
            cx.cast(count, DataType::Fp32)?,
        ];
        for (column, id) in columns.iter_mut().zip(found) {
            column.push(id);
        }
    }
    let all = columns.iter().map(|column| {
        Ok(ScopeBlob::exact(cx.node("Concat", column, &[("axis", 0_i64.into())])?))
    });
    all.collect()
}
