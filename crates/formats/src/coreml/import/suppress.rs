//! `non_maximum_suppression`: of boxes that overlap, the one with the best score.

use galatea_graph::{AttributeValue, ONNX_DOMAIN, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::LoweringRow;
use super::activation::single;
use super::lowering::{ProgramLowering, Result, attributes};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[LoweringRow::new("non_maximum_suppression", suppress)];

/// Boxes `[n, boxes, 4]` by their centres and sizes, with scores `[n, boxes, classes]`.
struct ScoredBoxes {
    boxes: ValueId,
    scores: ValueId,
    /// The best score of each box, `[n, boxes]` of FP32.
    best: ValueId,
    /// How many are chosen.
    most: i64,
}

/// From CoreML7 on boxes are the last axis, there is no least score, and nothing says how many
/// boxes there are.
fn suppress(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let mut boxes = low.required(op, "boxes")?;
    let mut scores = low.required(op, "scores")?;
    if low.rank(boxes)? != 3 || low.rank(scores)? != 3 {
        let boxes = low.fact(boxes)?;
        let scores = low.fact(scores)?;
        let text = format!("boxes are {boxes} and scores {scores}, expected three axes");
        return Err(CoreMlError::invalid(text));
    }
    let newer = op.opset >= 7;
    if newer {
        boxes = low.transpose(boxes, &[0, 2, 1])?;
        scores = low.transpose(scores, &[0, 2, 1])?;
    }
    let most = low.int(op, "max_boxes")?;
    let most = most.filter(|&most| most > 0);
    let most = most.ok_or_else(|| CoreMlError::invalid("input 'max_boxes' must be 1 or more"))?;
    let axes = low.integers(&[2]);
    let named = attributes([("keepdims", false.into())]);
    let best = low.node("ReduceMax", &named, &[scores, axes])?;
    let best = low.cast(best, DataType::Fp32)?;
    let found = ScoredBoxes { boxes, scores, best, most };
    let kept = found.kept(low, op)?;
    let (places, chosen) = found.first(low, kept)?;
    let mut results = found.results(low, places, chosen)?;
    if newer {
        results.pop();
        for result in results.iter_mut().take(2) {
            *result = low.transpose(*result, &[0, 2, 1])?;
        }
    }
    low.give(op, &results)
}

impl ScoredBoxes {
    /// The best score of boxes that are kept, and a score below all others elsewhere.
    fn kept(&self, low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<ValueId> {
        let iou = low.float(op, "iou_threshold")?;
        let iou = iou.ok_or_else(|| CoreMlError::invalid("input 'iou_threshold' is missing"))?;
        let least = match op.opset {
            ..7 => low.float(op, "score_threshold")?,
            _ => None,
        };
        let least = single(least.unwrap_or(f64::NEG_INFINITY)).max(f32::MIN);
        let rivals = match low.flag(op, "per_class_suppression", false)? {
            true => self.by_class(low)?,
            false => low.unsqueeze(self.best, &[1])?,
        };
        let boxes = low.cast(self.boxes, DataType::Fp32)?;
        let most = low.scalar(self.most);
        let iou = low.scalar(single(iou));
        let least = low.scalar(least);
        let named = attributes([("center_point_box", true.into())]);
        let found = low.node("NonMaxSuppression", &named, &[boxes, rivals, most, iou, least])?;
        let columns = low.integers(&[0, 2]);
        let places =
            low.node("Gather", &attributes([("axis", 1_i64.into())]), &[found, columns])?;
        let scores = low.plain("GatherND", &[self.best, places])?;
        let shape = low.shape_of(self.best)?;
        let nothing = AttributeValue::Tensor(Tensor::vector(vec![f32::NEG_INFINITY]));
        let nothing = low.node("ConstantOfShape", &attributes([("value", nothing)]), &[shape])?;
        let kept = low.plain("ScatterND", &[nothing, places, scores])?;
        self.at_least_one(low, kept)
    }

    /// Each box competes in the class of its best score alone: elsewhere it has none.
    fn by_class(&self, low: &mut ProgramLowering) -> Result<ValueId> {
        let named = attributes([("axis", 2_i64.into()), ("keepdims", false.into())]);
        let class = low.node("ArgMax", &named, &[self.scores])?;
        let class = low.unsqueeze(class, &[1])?;
        let named = attributes([("start", 2_i64.into())]);
        let classes = low.node("Shape", &named, &[self.scores])?;
        let classes = low.squeeze(classes, &[0])?;
        let zero = low.scalar(0_i64);
        let one = low.scalar(1_i64);
        let all = low.plain("Range", &[zero, classes, one])?;
        let all = low.unsqueeze(all, &[1])?;
        let own = low.plain("Equal", &[class, all])?;
        let best = low.unsqueeze(self.best, &[1])?;
        let nothing = low.scalar(f32::NEG_INFINITY);
        low.plain("Where", &[own, best, nothing])
    }

    /// Where no box is kept, the one with the best score is.
    fn at_least_one(&self, low: &mut ProgramLowering, kept: ValueId) -> Result<ValueId> {
        let nothing = low.scalar(f32::NEG_INFINITY);
        let axes = low.integers(&[1]);
        let named = attributes([("keepdims", true.into())]);
        let highest = low.node("ReduceMax", &named, &[kept, axes])?;
        let none = low.plain("Equal", &[highest, nothing])?;
        let named = attributes([("axis", 1_i64.into()), ("keepdims", true.into())]);
        let first = low.node("ArgMax", &named, &[self.best])?;
        let named = attributes([("start", 1_i64.into())]);
        let count = low.node("Shape", &named, &[self.best])?;
        let count = low.squeeze(count, &[0])?;
        let zero = low.scalar(0_i64);
        let one = low.scalar(1_i64);
        let all = low.plain("Range", &[zero, count, one])?;
        let is_first = low.plain("Equal", &[first, all])?;
        let instead = low.plain("And", &[none, is_first])?;
        low.plain("Where", &[instead, self.best, kept])
    }

    /// The places of kept boxes by falling score, and which of them are some: the others fill up.
    fn first(&self, low: &mut ProgramLowering, kept: ValueId) -> Result<(ValueId, ValueId)> {
        let amounts = low.integers(&[0, 0, 0, self.most]);
        let nothing = low.scalar(f32::NEG_INFINITY);
        let padded = low.plain("Pad", &[kept, amounts, nothing])?;
        let most = low.integers(&[self.most]);
        let named = attributes([("axis", 1_i64.into())]);
        let inputs = [Some(padded), Some(most)];
        match low.node_of((ONNX_DOMAIN, "TopK"), &named, &inputs, 2)?.as_slice() {
            &[scores, places] => Ok((places, low.plain("Greater", &[scores, nothing])?)),
            _ => Err(CoreMlError::invalid("a sort without results")),
        }
    }

    /// Boxes, scores, places and numbers of boxes. What fills up is 0, at place -1.
    fn results(
        &self,
        low: &mut ProgramLowering,
        places: ValueId,
        chosen: ValueId,
    ) -> Result<Vec<ValueId>> {
        let zero = low.scalar(0_i64);
        let none = low.scalar(-1_i64);
        let inside = low.plain("Where", &[chosen, places, zero])?;
        let inside = low.unsqueeze(inside, &[-1])?;
        let some = low.unsqueeze(chosen, &[-1])?;
        let mut results = Vec::with_capacity(4);
        for all in [self.boxes, self.scores] {
            let named = attributes([("batch_dims", 1_i64.into())]);
            let found = low.node("GatherND", &named, &[all, inside])?;
            let dtype = low.dtype(all)?;
            let zero = low.number(0.0, dtype)?;
            results.push(low.plain("Where", &[some, found, zero])?);
        }
        let shown = low.plain("Where", &[chosen, places, none])?;
        results.push(low.cast(shown, DataType::Int32)?);
        let counted = low.cast(chosen, DataType::Int32)?;
        let axes = low.integers(&[1]);
        let named = attributes([("keepdims", false.into())]);
        results.push(low.node("ReduceSum", &named, &[counted, axes])?);
        Ok(results)
    }
}
