//! `Unique`: the distinct elements or slices of a tensor.

use std::cmp::Ordering;

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{self, TensorValues};

/// ONNX `Unique`: outputs the distinct ones, where each occurs first, which one every input is, and
/// how often each occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unique {
    /// The axis whose slices are compared, which may count from the end; elements if absent.
    pub axis: Option<i64>,
    /// True if the results ascend, instead of keeping the order of their first occurrence.
    pub sorted: bool,
}

impl Unique {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let axis = context.attributes.int("axis")?;
        Ok(Box::new(Self { axis, sorted: context.attributes.flag("sorted", true)? }))
    }

    fn groups(&self, rows: &Tensor) -> Result<EqualSlices, OpError> {
        let count = rows.shape().first().copied().unwrap_or(0);
        let run = rows.elements().checked_div(count).unwrap_or(0);
        let of = |at: usize| at * run..(at + 1) * run;
        Ok(match ordered(rows)? {
            TensorValues::Bools(all) => {
                self.distinct(count, &|a, b| all[of(a)].partial_cmp(&all[of(b)]))
            }
            TensorValues::Integers(all) => {
                self.distinct(count, &|a, b| all[of(a)].partial_cmp(&all[of(b)]))
            }
            TensorValues::Floats(all) => {
                self.distinct(count, &|a, b| all[of(a)].partial_cmp(&all[of(b)]))
            }
            TensorValues::Strings(all) => {
                self.distinct(count, &|a, b| all[of(a)].partial_cmp(&all[of(b)]))
            }
        })
    }

    /// Groups equal slices, given how two of them by number compare.
    fn distinct(
        &self,
        count: usize,
        order_of: &dyn Fn(usize, usize) -> Option<Ordering>,
    ) -> EqualSlices {
        let compare = |a: usize, b: usize| order_of(a, b).unwrap_or(Ordering::Less);
        let mut order: Vec<usize> = (0..count).collect();
        merge_sort(&mut order, &compare);
        // Neighbours in the order are equal or begin a new group; each group starts with its first
        // occurrence because the sort is stable.
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for at in order {
            match groups.last_mut() {
                Some(group) if order_of(group[0], at) == Some(Ordering::Equal) => group.push(at),
                _ => groups.push(vec![at]),
            }
        }
        if !self.sorted {
            groups.sort_by_key(|group| group[0]);
        }
        let mut inverse = vec![0; count];
        for (number, group) in groups.iter().enumerate() {
            for &at in group {
                inverse[at] = number as i64;
            }
        }
        let first = groups.iter().map(|group| group[0] as i64).collect();
        let counts = groups.iter().map(|group| group.len() as i64).collect();
        EqualSlices { first, inverse, counts }
    }
}

/// The elements in types that compare as the tensor's own does.
fn ordered(tensor: &Tensor) -> Result<TensorValues, OpError> {
    match tensor.dtype() {
        DataType::Small(_) => Ok(TensorValues::Floats(values::small(tensor)?)),
        _ => TensorValues::read(tensor),
    }
}

/// The groups of equal slices.
struct EqualSlices {
    first: Vec<i64>,
    inverse: Vec<i64>,
    counts: Vec<i64>,
}

/// A stable sort that accepts any comparison: elements that compare with nothing (NaN) make the
/// order partial, which the standard library's sort may refuse by panicking.
fn merge_sort(order: &mut Vec<usize>, compare: &dyn Fn(usize, usize) -> Ordering) {
    if order.len() < 2 {
        return;
    }
    let mut right = order.split_off(order.len() / 2);
    merge_sort(order, compare);
    merge_sort(&mut right, compare);
    let left = std::mem::take(order);
    let mut a = left.into_iter().peekable();
    let mut b = right.into_iter().peekable();
    while let (Some(&x), Some(&y)) = (a.peek(), b.peek()) {
        if compare(y, x) == Ordering::Less && compare(x, y) != Ordering::Less {
            order.extend(b.next());
        } else {
            order.extend(a.next());
        }
    }
    order.extend(a);
    order.extend(b);
}

impl Operator for Unique {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let values = match (self.axis, &data.shape) {
            (None, _) => Fact::new(data.dtype, vec![Dim::Unknown]),
            (Some(_), None) => Fact::unranked(data.dtype),
            (Some(axis), Some(dims)) => {
                let mut shape = dims.clone();
                shape[bounds::axis(axis, dims.len())?] = Dim::Unknown;
                Fact::new(data.dtype, shape)
            }
        };
        let numbers = Fact::new(DataType::Int64, vec![Dim::Unknown]);
        Ok(vec![values, numbers.clone(), numbers.clone(), numbers])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let (data, axis) = match self.axis {
            Some(axis) => (data.clone(), bounds::axis(axis, data.rank())?),
            None => (data.reshape(&[data.elements()])?, 0),
        };
        let mut axes: Vec<usize> = (0..data.rank()).collect();
        axes.remove(axis);
        axes.insert(0, axis);
        let rows = bounds::owned(&data.permute(&axes)?)?;
        let groups = self.groups(&rows)?;
        let first = Tensor::vector(groups.first);
        let gather = super::Gather { axis: axis as i64 };
        let mut results = gather.reference(OperatorInputs::new(&[Some(&data), Some(&first)]))?;
        results.extend([first, Tensor::vector(groups.inverse), Tensor::vector(groups.counts)]);
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, run, tensor};

    fn numbers(tensors: &[Tensor]) -> Vec<Vec<i64>> {
        tensors.iter().map(|one| one.to_vec().unwrap()).collect()
    }

    #[test]
    fn elements_ascend_or_keep_their_order() {
        let data = tensor(&[6], &[2_f32, 1.0, 1.0, 3.0, 4.0, 3.0]);
        let sorted = run("Unique", 11, &attributes([]), &[Some(&data)], 4).unwrap();
        assert_eq!(sorted[0].to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
        let [first, inverse, counts] = [vec![1, 0, 3, 4], vec![1, 0, 0, 2, 3, 2], vec![2, 1, 2, 1]];
        assert_eq!(numbers(&sorted[1..]), [first, inverse, counts]);
        let kept = attributes([("sorted", int(0))]);
        let kept = run("Unique", 11, &kept, &[Some(&data)], 4).unwrap();
        assert_eq!(kept[0].to_vec::<f32>().unwrap(), [2.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn slices_compare_as_a_whole_and_nan_does_no_harm() {
        let data = tensor(&[3, 2], &[1_i64, 0, 1, 0, 0, 5]);
        let rows = attributes([("axis", int(0))]);
        let result = run("Unique", 11, &rows, &[Some(&data)], 4).unwrap();
        assert_eq!(result[0], tensor(&[2, 2], &[0_i64, 5, 1, 0]));
        let odd: Vec<f32> = (0..40).map(|n| if n % 3 == 0 { f32::NAN } else { n as f32 }).collect();
        assert!(run("Unique", 11, &attributes([]), &[Some(&tensor(&[40], &odd))], 4).is_ok());
    }
}
