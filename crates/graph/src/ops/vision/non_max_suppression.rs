//! `NonMaxSuppression`: of boxes that overlap, the one with the best score.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::{expect_float, floats};

/// ONNX `NonMaxSuppression`.
///
/// Inputs: boxes `[N, B, 4]`, scores `[N, classes, B]`; optionally the most boxes for a class (none
/// if absent), how much of their union two boxes may share, and the score that a box must exceed.
/// Output: `[found, 3]` of batch, class and box, best first in each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonMaxSuppression {
    /// True if boxes are `x, y, width, height` around their centres, not `y1, x1, y2, x2`.
    pub center_point_box: bool,
}

/// A box by its corners.
#[derive(Clone, Copy, Debug)]
struct BoxCorners {
    low: [f64; 2],
    high: [f64; 2],
}

impl BoxCorners {
    fn area(&self) -> f64 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// Shared area relative to the area that both cover together.
    fn overlap(&self, other: &Self) -> f64 {
        let side = |axis: usize| {
            self.high[axis].min(other.high[axis]) - self.low[axis].max(other.low[axis])
        };
        let height = side(0);
        let width = side(1);
        let a = self.area();
        let b = other.area();
        if height <= 0.0 || width <= 0.0 || a <= 0.0 || b <= 0.0 {
            return 0.0;
        }
        height * width / (a + b - height * width)
    }
}

impl NonMaxSuppression {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { center_point_box: context.attributes.flag("center_point_box", false)? }))
    }

    fn corners(&self, numbers: &[f64]) -> BoxCorners {
        let [a, b, c, d] = [numbers[0], numbers[1], numbers[2], numbers[3]];
        if self.center_point_box {
            return BoxCorners {
                low: [b - d / 2.0, a - c / 2.0],
                high: [b + d / 2.0, a + c / 2.0],
            };
        }
        BoxCorners { low: [a.min(c), b.min(d)], high: [a.max(c), b.max(d)] }
    }

    fn check(boxes: &[usize], scores: &[usize]) -> Result<(), OpError> {
        let fits = boxes.len() == 3
            && scores.len() == 3
            && boxes[2] == 4
            && boxes[0] == scores[0]
            && boxes[1] == scores[2];
        if fits {
            return Ok(());
        }
        Err(OpError::new(format!(
            "boxes of shape {boxes:?} with scores of shape {scores:?}, expected [N, B, 4] and \
             [N, classes, B]"
        )))
    }
}

/// A number given as a scalar or a vector of one element; absent where there is none.
fn number(input: Option<&Tensor>, what: &str) -> Result<Option<f64>, OpError> {
    match input.map(floats).transpose()?.as_deref() {
        None | Some([]) => Ok(None),
        Some([one]) => Ok(Some(*one)),
        Some(all) => Err(OpError::new(format!("{what} has {} elements, expected 1", all.len()))),
    }
}

/// Boxes of one class in the order they are kept: best first, of equal ones the first.
fn select(
    boxes: &[BoxCorners],
    scores: &[f64],
    most: usize,
    iou: f64,
    least: Option<f64>,
) -> Vec<usize> {
    let passes = |at: &usize| least.is_none_or(|least| scores[*at] > least);
    let mut candidates: Vec<usize> = (0..boxes.len()).filter(passes).collect();
    candidates.sort_by(|&a, &b| {
        scores[b].partial_cmp(&scores[a]).unwrap_or_else(|| {
            // A box whose score is no number comes last.
            scores[a].is_nan().cmp(&scores[b].is_nan())
        })
    });
    let mut kept: Vec<usize> = Vec::new();
    for at in candidates {
        if kept.len() == most {
            break;
        }
        if kept.iter().all(|&other| boxes[at].overlap(&boxes[other]) <= iou) {
            kept.push(at);
        }
    }
    kept
}

impl Operator for NonMaxSuppression {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let boxes = inputs.required(0)?;
        let scores = inputs.required(1)?;
        expect_float(boxes.dtype)?;
        expect_float(scores.dtype)?;
        if let (Some(boxes), Some(scores)) = (boxes.known_shape(), scores.known_shape()) {
            Self::check(&boxes, &scores)?;
        }
        Ok(vec![Fact::new(DataType::Int64, vec![Dim::Unknown, Dim::Known(3)])])
    }

    #[allow(clippy::cast_possible_wrap, reason = "positions in a tensor")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let boxes = inputs.required(0)?;
        let scores = inputs.required(1)?;
        Self::check(boxes.shape(), scores.shape())?;
        let most = match inputs.optional(2).map(Tensor::to_i64_vec).transpose()?.as_deref() {
            None | Some([]) => 0,
            Some([most]) => usize::try_from(*most).unwrap_or(0),
            Some(all) => {
                return Err(OpError::new(format!(
                    "max_output_boxes_per_class has {} elements, expected 1",
                    all.len()
                )));
            }
        };
        let iou = number(inputs.optional(3), "iou_threshold")?.unwrap_or(0.0);
        let least = number(inputs.optional(4), "score_threshold")?;
        let classes = scores.shape()[1];
        let count = boxes.shape()[1];
        let corners: Vec<BoxCorners> =
            floats(boxes)?.chunks(4).map(|numbers| self.corners(numbers)).collect();
        let scores = floats(scores)?;
        let mut found: Vec<i64> = Vec::new();
        for (row, scores) in scores.chunks(count.max(1)).enumerate() {
            let batch = row / classes;
            let class = row % classes;
            let boxes = &corners[batch * count..(batch + 1) * count];
            for at in select(boxes, scores, most, iou, least) {
                found.extend([batch as i64, class as i64, at as i64]);
            }
        }
        Ok(vec![Tensor::from_vec(&[found.len() / 3, 3], found)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, run, tensor};

    fn select(center: i64, most: i64, iou: f32, least: f32) -> Vec<i64> {
        let boxes = [0.0_f32, 0.0, 2.0, 2.0, 2.0, 2.2, 0.0, 0.2, 8.0, 8.0, 9.0, 9.0];
        let boxes = tensor(&[1, 3, 4], &boxes);
        let scores = tensor(&[1, 1, 3], &[0.5_f32, 0.9, 0.7]);
        let most = Tensor::scalar(most);
        let iou = Tensor::scalar(iou);
        let least = Tensor::scalar(least);
        let inputs = [Some(&boxes), Some(&scores), Some(&most), Some(&iou), Some(&least)];
        let list = attributes([("center_point_box", int(center))]);
        let found = run("NonMaxSuppression", 11, &list, &inputs, 1).unwrap().remove(0);
        assert_eq!(found.shape()[1], 3);
        found.to_i64_vec().unwrap().chunks(3).map(|row| row[2]).collect()
    }

    #[test]
    fn boxes_that_overlap_a_better_one_are_left_out() {
        assert_eq!(select(0, 10, 0.5, 0.0), [1, 2]);
        assert_eq!(select(0, 10, 0.9, 0.0), [1, 2, 0]);
        assert_eq!(select(0, 1, 0.9, 0.0), [1]);
        assert_eq!(select(0, 10, 0.9, 0.6), [1, 2]);
        assert_eq!(select(0, 0, 0.9, 0.0), Vec::<i64>::new());
        assert_eq!(select(1, 10, 0.5, 0.0), [1, 2, 0]);
    }

    #[test]
    fn without_a_limit_nothing_is_found_and_misfits_are_errors() {
        let boxes = tensor(&[1, 1, 4], &[0.0_f32; 4]);
        let scores = tensor(&[1, 1, 1], &[1.0_f32]);
        let list = attributes([]);
        let found = run("NonMaxSuppression", 10, &list, &[Some(&boxes), Some(&scores)], 1).unwrap();
        assert_eq!(found[0].shape(), [0, 3]);
        let inputs = [Some(&scores), Some(&scores)];
        assert!(run("NonMaxSuppression", 10, &list, &inputs, 1).is_err());
    }
}
