//! `ReduceSum` and its kin: all elements along some axes become one.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs};
use crate::ops::bounds::{advance, axes as find_axes, bounded};
use crate::ops::values::{TensorValues, expect_number, expect_type, integer_range, is_number};

/// Function of the reduced elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceKind {
    /// The sum.
    Sum,
    /// The mean; of integers truncated towards zero.
    Mean,
    /// The largest; also of booleans. A NaN wins.
    Max,
    /// The smallest; also of booleans. A NaN wins.
    Min,
    /// The product.
    Prod,
    /// The sum of absolute values.
    L1,
    /// The square root of the sum of squares.
    L2,
    /// The logarithm of the sum.
    LogSum,
    /// The logarithm of the sum of `eˣ`.
    LogSumExp,
    /// The sum of squares.
    SumSquare,
}

/// A function of all elements along some axes. The result has the input's type.
///
/// Shapes: reduced axes have length 1 with `keepdims`, else they are left out. The axes are an
/// attribute or, in later versions, an optional second input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// The function.
    pub kind: ReduceKind,
    /// The axes, where they are an attribute.
    pub axes: Option<Vec<i64>>,
    /// True if reduced axes stay, with length 1.
    pub keepdims: bool,
    /// True if no axes means none, rather than all.
    pub noop_with_empty_axes: bool,
}

/// The value of no integers, and the fold of one more.
type IntegerFold = (i128, fn(i128, i128) -> i128);

impl ReduceKind {
    fn check(self, dtype: DataType) -> Result<(), OpError> {
        if matches!(self, Self::Max | Self::Min) {
            let ordered = |found| is_number(found) || found == DataType::Bool;
            return expect_type("the input", dtype, ordered, "a float, integer or BOOL type");
        }
        expect_number(dtype)
    }

    /// The value of no elements, and the fold of one more.
    fn float(self) -> (f64, fn(f64, f64) -> f64) {
        match self {
            Self::Sum | Self::Mean | Self::LogSum => (0.0, |a, x| a + x),
            Self::Prod => (1.0, |a, x| a * x),
            Self::Max => (f64::NEG_INFINITY, |a, x| if x > a || x.is_nan() { x } else { a }),
            Self::Min => (f64::INFINITY, |a, x| if x < a || x.is_nan() { x } else { a }),
            Self::L1 => (0.0, |a, x| a + x.abs()),
            Self::L2 | Self::SumSquare => (0.0, |a, x| a + x * x),
            // Needs the largest first; see `log_sum_exp`.
            Self::LogSumExp => (0.0, |a, x| a + x.exp()),
        }
    }

    fn finish(self, total: f64, count: usize) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a count of elements divides their sum")]
        let count = count as f64;
        match self {
            Self::Mean => total / count,
            Self::L2 => total.sqrt(),
            Self::LogSum | Self::LogSumExp => total.ln(),
            _ => total,
        }
    }

    /// Returns the value and fold of [`ReduceKind::float`] for integers; `None` for a kind that is
    /// computed as a float. Results that the type cannot hold become its ends, as in ONNX Runtime.
    fn integer(self, range: (i128, i128)) -> Option<IntegerFold> {
        Some(match self {
            Self::Sum | Self::Mean => (0, |a, x| a.saturating_add(x)),
            Self::Prod => (1, |a, x| a.saturating_mul(x)),
            Self::Max => (range.0, |a, x| a.max(x)),
            Self::Min => (range.1, |a, x| a.min(x)),
            Self::L1 => (0, |a, x| a.saturating_add(x.abs())),
            Self::SumSquare => (0, |a, x| a.saturating_add(x.saturating_mul(x))),
            Self::L2 | Self::LogSum | Self::LogSumExp => return None,
        })
    }
}

/// For each element, which element of the reduced shape it falls into.
struct ReducedBuckets {
    of: Vec<usize>,
    count: usize,
    /// Elements of one bucket.
    size: usize,
}

impl ReducedBuckets {
    fn new(shape: &[usize], reduced: &[usize]) -> Self {
        let mut steps = vec![0; shape.len()];
        let mut count = 1_usize;
        for axis in (0..shape.len()).rev().filter(|axis| !reduced.contains(axis)) {
            steps[axis] = count;
            count *= shape[axis];
        }
        let total: usize = shape.iter().product();
        let mut index = vec![0; shape.len()];
        let mut of = Vec::with_capacity(total);
        for _ in 0..total {
            of.push(index.iter().zip(&steps).map(|(at, step)| at * step).sum());
            advance(&mut index, shape);
        }
        Self { of, count, size: reduced.iter().map(|&axis| shape[axis]).product() }
    }

    fn fold<T: Copy>(&self, all: &[T], start: T, join: impl Fn(T, T) -> T) -> Vec<T> {
        let mut totals = vec![start; self.count];
        for (&bucket, &value) in self.of.iter().zip(all) {
            totals[bucket] = join(totals[bucket], value);
        }
        totals
    }
}

impl Reduce {
    /// The reduced axes as positions, from the attribute or the second input.
    fn positions(&self, input: Option<Vec<i64>>, rank: usize) -> Result<Vec<usize>, OpError> {
        let axes = input.or_else(|| self.axes.clone()).unwrap_or_default();
        if axes.is_empty() && !self.noop_with_empty_axes {
            return Ok((0..rank).collect());
        }
        find_axes(&axes, rank)
    }

    fn shape<D: Clone>(&self, shape: &[D], reduced: &[usize], one: &D) -> Vec<D> {
        let all = shape.iter().enumerate();
        if self.keepdims {
            let kept =
                |(axis, dim): (usize, &D)| if reduced.contains(&axis) { one } else { dim }.clone();
            return all.map(kept).collect();
        }
        all.filter(|(axis, _)| !reduced.contains(axis)).map(|(_, dim)| dim.clone()).collect()
    }

    fn floats(&self, all: &[f64], buckets: &ReducedBuckets) -> Vec<f64> {
        if self.kind == ReduceKind::LogSumExp {
            return log_sum_exp(all, buckets);
        }
        let (start, join) = self.kind.float();
        let totals = buckets.fold(all, start, join);
        totals.into_iter().map(|total| self.kind.finish(total, buckets.size)).collect()
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "roots and logarithms of integers are computed as floats and truncated"
    )]
    fn integers(
        &self,
        all: &[i128],
        dtype: DataType,
        buckets: &ReducedBuckets,
    ) -> Result<Vec<i128>, OpError> {
        let range = integer_range(dtype).unwrap_or_default();
        let Some((start, join)) = self.kind.integer(range) else {
            let floats: Vec<f64> = all.iter().map(|&v| v as f64).collect();
            let results = self.floats(&floats, buckets).into_iter();
            return Ok(results.map(|v| (v as i128).clamp(range.0, range.1)).collect());
        };
        let mut totals = buckets.fold(all, start, join);
        if self.kind == ReduceKind::Mean && !totals.is_empty() {
            let size = i128::try_from(buckets.size).unwrap_or(i128::MAX);
            let empty = || OpError::new("the mean of no integers does not exist");
            for total in &mut totals {
                *total = total.checked_div(size).ok_or_else(empty)?;
            }
        }
        Ok(totals.into_iter().map(|total| total.clamp(range.0, range.1)).collect())
    }
}

/// Computed relative to the largest element of each bucket, so that nothing overflows.
fn log_sum_exp(all: &[f64], buckets: &ReducedBuckets) -> Vec<f64> {
    let (start, join) = ReduceKind::Max.float();
    let largest = buckets.fold(all, start, join);
    let mut sums = vec![0.0; buckets.count];
    for (&bucket, &value) in buckets.of.iter().zip(all) {
        if largest[bucket].is_finite() {
            sums[bucket] += (value - largest[bucket]).exp();
        }
    }
    let join = |(sum, largest): (f64, f64)| {
        if largest.is_finite() { largest + f64::ln(sum) } else { largest }
    };
    sums.into_iter().zip(largest).map(join).collect()
}

impl Operator for Reduce {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        self.kind.check(x.dtype)?;
        let axes = inputs.optional(1);
        let known = axes.and_then(Fact::integers);
        let shape = match &x.shape {
            None => None,
            Some(dims) if axes.is_some() && known.is_none() => {
                // Axes that only the run knows: they may be any, but their number is not changed.
                self.keepdims.then(|| vec![Dim::Unknown; dims.len()])
            }
            Some(dims) => {
                let reduced = self.positions(known, dims.len())?;
                Some(self.shape(dims, &reduced, &Dim::Known(1)))
            }
        };
        Ok(vec![Fact::shaped(x.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        self.kind.check(x.dtype())?;
        let axes = inputs.optional(1).map(Tensor::to_i64_vec).transpose()?;
        let reduced = self.positions(axes, x.rank())?;
        let shape = self.shape(x.shape(), &reduced, &1);
        bounded(x.dtype(), &shape)?;
        let buckets = ReducedBuckets::new(x.shape(), &reduced);
        let values = match TensorValues::read(x)? {
            TensorValues::Floats(all) => TensorValues::Floats(self.floats(&all, &buckets)),
            TensorValues::Integers(all) => {
                TensorValues::Integers(self.integers(&all, x.dtype(), &buckets)?)
            }
            TensorValues::Bools(all) if self.kind == ReduceKind::Max => {
                TensorValues::Bools(buckets.fold(&all, false, |a, b| a || b))
            }
            TensorValues::Bools(all) => {
                TensorValues::Bools(buckets.fold(&all, true, |a, b| a && b))
            }
            other @ TensorValues::Strings(_) => other,
        };
        Ok(vec![values.write(x.dtype(), &shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, ints, one, run, tensor};

    fn all(name: &str, x: &Tensor) -> f32 {
        let all = attributes([("keepdims", int(0))]);
        one(name, 13, &all, &[x]).item().unwrap()
    }

    #[test]
    fn every_function_of_one_and_minus_two() {
        let x = Tensor::vector(vec![1.0_f32, -2.0]);
        // ReduceSum 13 differs from the others only in where its axes come from.
        assert_eq!(all("ReduceSum", &x), -1.0);
        assert_eq!(all("ReduceMean", &x), -0.5);
        assert_eq!(all("ReduceMax", &x), 1.0);
        assert_eq!(all("ReduceMin", &x), -2.0);
        assert_eq!(all("ReduceProd", &x), -2.0);
        assert_eq!(all("ReduceL1", &x), 3.0);
        assert_eq!(all("ReduceL2", &x), 5.0_f32.sqrt());
        assert_eq!(all("ReduceSumSquare", &x), 5.0);
        assert!(all("ReduceLogSum", &x).is_nan());
        assert!((all("ReduceLogSumExp", &x) - 1.048_587_4).abs() < 1e-6);
        let large = Tensor::vector(vec![1000.0_f32, 1000.0]);
        assert!((all("ReduceLogSumExp", &large) - 1000.6931).abs() < 1e-3);
    }

    #[test]
    fn axes_come_from_the_attribute_or_the_input() {
        let x = tensor(&[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let by_attribute = attributes([("axes", ints(&[-1]))]);
        let expected = tensor(&[2, 1], &[6.0_f32, 15.0]);
        assert_eq!(one("ReduceSum", 11, &by_attribute, &[&x]), expected);
        let axes = Tensor::vector(vec![0_i64]);
        let flat = attributes([("keepdims", int(0))]);
        assert_eq!(
            one("ReduceSum", 13, &flat, &[&x, &axes]),
            Tensor::vector(vec![5.0_f32, 7.0, 9.0])
        );
        assert!(run("ReduceMax", 13, &flat, &[Some(&x), Some(&axes)], 1).is_err());
        assert!(run("ReduceSum", 13, &by_attribute, &[Some(&x)], 1).is_err());
    }

    #[test]
    fn no_axes_are_all_or_none() {
        let x = Tensor::vector(vec![2.0_f32, -3.0]);
        let none = Tensor::vector(Vec::<i64>::new());
        let noop = attributes([("noop_with_empty_axes", int(1))]);
        assert_eq!(one("ReduceSum", 13, &noop, &[&x, &none]), x);
        let squares = one("ReduceSumSquare", 18, &noop, &[&x]);
        assert_eq!(squares, Tensor::vector(vec![4.0_f32, 9.0]));
        assert_eq!(
            one("ReduceSum", 13, &attributes([]), &[&x, &none]),
            Tensor::vector(vec![-1.0_f32])
        );
    }

    #[test]
    fn integers_stay_integers_and_no_elements_have_a_result() {
        let x = Tensor::vector(vec![i64::MAX - 1, 1]);
        assert_eq!(one("ReduceSum", 13, &attributes([]), &[&x]), Tensor::vector(vec![i64::MAX]));
        let ends = Tensor::vector(vec![i32::MAX, 7]);
        for name in ["ReduceSum", "ReduceProd", "ReduceSumSquare", "ReduceL1"] {
            let found = one(name, 13, &attributes([]), &[&ends]);
            assert_eq!(found, Tensor::vector(vec![i32::MAX]), "{name}");
        }
        let empty = tensor::<i32>(&[0, 2], &[]);
        let axes = Tensor::vector(vec![0_i64]);
        let max = one("ReduceMax", 20, &attributes([]), &[&empty, &axes]);
        assert_eq!(max, tensor(&[1, 2], &[i32::MIN; 2]));
        let mean = run("ReduceMean", 18, &attributes([]), &[Some(&empty), Some(&axes)], 1);
        assert!(mean.unwrap_err().contains("no integers"));
        let truths = Tensor::vector(vec![true, false]);
        assert_eq!(one("ReduceMin", 20, &attributes([]), &[&truths]), Tensor::vector(vec![false]));
    }
}
