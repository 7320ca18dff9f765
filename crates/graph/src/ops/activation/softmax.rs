//! `Softmax`, `LogSoftmax` and `Hardmax`: functions of a row.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::bounds::axis as find_axis;
use crate::ops::lanes::AxisLanes;
use crate::ops::values::{expect_float, floats, from_floats};

/// The rows of a shape: along one axis, or with `flatten` over all axes from it on.
fn rows(shape: &[usize], axis: i64, flatten: bool) -> Result<AxisLanes, OpError> {
    let rank = shape.len();
    if !flatten {
        return Ok(AxisLanes::along(shape, find_axis(axis, rank)?));
    }
    // The axis behind the last one is allowed: rows of one element.
    let at = if usize::try_from(axis) == Ok(rank) { rank } else { find_axis(axis, rank)? };
    let (outer, row) = shape.split_at(at);
    Ok(AxisLanes { outer: outer.iter().product(), len: row.iter().product(), inner: 1 })
}

fn infer(x: &Fact, axis: i64, flatten: bool) -> Result<Vec<Fact>, OpError> {
    expect_float(x.dtype)?;
    if let Some(rank) = x.rank() {
        rows(&vec![1; rank], axis, flatten)?;
    }
    Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
}

/// Replaces every row by a function of it.
fn map_rows(
    x: &Tensor,
    axis: i64,
    flatten: bool,
    function: impl Fn(&[f64]) -> Vec<f64>,
) -> Result<Vec<Tensor>, OpError> {
    let lanes = rows(x.shape(), axis, flatten)?;
    let mut all = floats(x)?;
    for start in lanes.starts() {
        let row: Vec<f64> = lanes.lane(start).map(|index| all[index]).collect();
        for (index, value) in lanes.lane(start).zip(function(&row)) {
            all[index] = value;
        }
    }
    Ok(vec![from_floats(x.dtype(), x.shape(), all)?])
}

/// The largest element and the sum of all `e^(x − largest)`.
fn largest_and_sum(row: &[f64]) -> (f64, f64) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (largest, row.iter().map(|v| (v - largest).exp()).sum())
}

macro_rules! row_operator {
    ($(#[$doc:meta])* $name:ident, $function:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            /// The axis that is a row; negative ones count from the end.
            pub axis: i64,
            /// True if all axes from `axis` on are one row, as before version 13.
            pub flatten: bool,
        }

        impl Operator for $name {
            fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
                infer(inputs.required(0)?, self.axis, self.flatten)
            }

            fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
                map_rows(inputs.required(0)?, self.axis, self.flatten, $function)
            }
        }
    };
}

row_operator! {
    /// `eˣ` divided by the sum over the row.
    Softmax, |row| {
        let (largest, sum) = largest_and_sum(row);
        row.iter().map(|v| (v - largest).exp() / sum).collect()
    }
}

row_operator! {
    /// The logarithm of [`Softmax`].
    LogSoftmax, |row| {
        let (largest, sum) = largest_and_sum(row);
        row.iter().map(|v| v - largest - sum.ln()).collect()
    }
}

row_operator! {
    /// 1 for the first largest element of the row, 0 for the others.
    Hardmax, |row| {
        let mut best = 0;
        for (index, value) in row.iter().enumerate() {
            if *value > row[best] {
                best = index;
            }
        }
        (0..row.len()).map(|index| if index == best { 1.0 } else { 0.0 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(operator: &dyn Operator, shape: &[usize], x: &[f32]) -> Vec<f32> {
        let x = Tensor::from_slice(shape, x).unwrap();
        operator.reference(OperatorInputs::new(&[Some(&x)])).unwrap()[0].to_vec().unwrap()
    }

    #[test]
    fn large_values_do_not_overflow() {
        let found = run(&Softmax { axis: -1, flatten: false }, &[2], &[1000.0, 1000.0]);
        assert_eq!(found, [0.5, 0.5]);
        let found = run(&LogSoftmax { axis: 0, flatten: false }, &[2], &[0.0, -1000.0]);
        assert_eq!(found, [0.0, -1000.0]);
    }

    #[test]
    fn before_version_13_the_axes_behind_are_one_row() {
        let x = [0.0_f32, 0.0, 0.0, 0.0];
        assert_eq!(run(&Softmax { axis: 1, flatten: true }, &[1, 2, 2], &x), [0.25; 4]);
        assert_eq!(run(&Softmax { axis: 1, flatten: false }, &[1, 2, 2], &x), [0.5; 4]);
    }

    #[test]
    fn the_first_of_equal_elements_wins_in_hardmax() {
        let found = run(&Hardmax { axis: 0, flatten: false }, &[3], &[1.0, 3.0, 3.0]);
        assert_eq!(found, [0.0, 1.0, 0.0]);
    }

    #[test]
    fn an_axis_outside_is_an_error() {
        let x = Fact::fixed(galatea_tensor::DataType::Fp32, &[2]);
        assert!(
            Softmax { axis: 2, flatten: false }.infer(OperatorInputs::new(&[Some(&x)])).is_err()
        );
    }
}
