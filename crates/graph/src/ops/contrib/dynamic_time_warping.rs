//! `DynamicTimeWarping`: the cheapest path through a matrix of costs.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs};
use crate::ops::bounds::bounded;
use crate::ops::values::{expect_type, floats};

/// `DynamicTimeWarping` of domain `com.microsoft`.
///
/// Input: costs `[M, N]` or `[1, M, N]`. Output: rows and columns `[2, length]` of the path from the first
/// element to the last one, each a step down, to the right, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicTimeWarping;

/// Rows and columns of a matrix of costs.
fn extents(shape: &[usize]) -> Result<(usize, usize), OpError> {
    match *shape {
        [rows, columns] | [1, rows, columns] if rows > 0 && columns > 0 => Ok((rows, columns)),
        _ => Err(OpError::new(format!("costs of shape {shape:?}, expected [M, N] or [1, M, N]"))),
    }
}

impl Operator for DynamicTimeWarping {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let costs = inputs.required(0)?;
        expect_type("costs", costs.dtype, |dtype| dtype == DataType::Fp32, "FP32")?;
        if let Some(shape) = costs.known_shape() {
            extents(&shape)?;
        }
        Ok(vec![Fact::new(DataType::Int32, vec![Dim::Known(2), Dim::Unknown])])
    }

    #[allow(clippy::cast_possible_truncation, reason = "ONNX Runtime adds costs in FP32")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let costs = inputs.required(0)?;
        expect_type("costs", costs.dtype(), |dtype| dtype == DataType::Fp32, "FP32")?;
        let (rows, columns) = extents(costs.shape())?;
        let width = columns + 1;
        let count = bounded(DataType::Fp64, &[rows + 1, width])?;
        let all = floats(costs)?;
        let mut sums = vec![f32::MAX; count];
        sums[0] = 0.0;
        // Where a path comes from: both above and left, above, left.
        let mut steps = vec![2_u8; count];
        (1..=rows).for_each(|row| steps[row * width] = 1);
        for column in 1..=columns {
            for row in 1..=rows {
                let at = row * width + column;
                let (both, above, left) = (sums[at - width - 1], sums[at - width], sums[at - 1]);
                let (sum, step) = if both < above && both < left {
                    (both, 0)
                } else if above < both && above < left {
                    (above, 1)
                } else {
                    (left, 2)
                };
                sums[at] = sum + all[(row - 1) * columns + column - 1] as f32;
                steps[at] = step;
            }
        }
        let (mut row, mut column) = (rows, columns);
        let mut path: Vec<(usize, usize)> = Vec::with_capacity(rows + columns);
        while row > 0 && column > 0 {
            path.push((row - 1, column - 1));
            let step = steps[row * width + column];
            row -= usize::from(step < 2);
            column -= usize::from(step != 1);
        }
        let number = |at: usize| i32::try_from(at).unwrap_or(i32::MAX);
        let mut found: Vec<i32> = path.iter().rev().map(|place| number(place.0)).collect();
        found.extend(path.iter().rev().map(|place| number(place.1)));
        Ok(vec![Tensor::from_vec(&[2, path.len()], found)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};

    // Expected values are those of ONNX Runtime.
    #[test]
    fn paths_go_down_before_they_go_right_where_costs_are_equal() {
        let name = "com.microsoft:DynamicTimeWarping";
        let expected = tensor(&[2, 6], &[0, 1, 2, 2, 2, 2, 0, 0, 0, 1, 2, 3]);
        for shape in [&[3, 4][..], &[1, 3, 4]] {
            let costs = tensor(shape, &[0.0_f32; 12]);
            assert_eq!(one(name, 1, &attributes([]), &[&costs]), expected);
        }
        let costs = [0.0_f32, 9.0, 9.0, 9.0, 0.0, 9.0, 9.0, 9.0, 0.0];
        let found = one(name, 1, &attributes([]), &[&tensor(&[3, 3], &costs)]);
        assert_eq!(found, tensor(&[2, 3], &[0, 1, 2, 0, 1, 2]));
        let none = tensor::<f32>(&[0, 3], &[]);
        assert!(run(name, 1, &attributes([]), &[Some(&none)], 1).is_err());
    }
}
