//! Elements moved to other places: for that only their width matters, not their type.

use galatea_tensor::{Element, Tensor, with_carrier};

use crate::error::OpError;
use crate::ops::bounds::bounded;

/// A tensor of elements of another: each result's offset in row-major order, or `None` for zero,
/// false or the empty string.
pub(crate) fn picked(
    data: &Tensor,
    shape: &[usize],
    offsets: &mut dyn Iterator<Item = Option<usize>>,
) -> Result<Tensor, OpError> {
    let zero = Tensor::zeros(data.dtype(), &[])?;
    picked_or(data, &zero, shape, offsets)
}

/// A tensor like [`picked`], with the one element of `fill` where there is no offset.
pub(crate) fn picked_or(
    data: &Tensor,
    fill: &Tensor,
    shape: &[usize],
    offsets: &mut dyn Iterator<Item = Option<usize>>,
) -> Result<Tensor, OpError> {
    let count = bounded(data.dtype(), shape)?;
    with_carrier!(data.dtype(), T => {
        let all = data.to_carriers::<T>()?;
        let fill = fill.to_carriers::<T>()?;
        let result = placed(&all, &fill[0], offsets, count);
        Ok(Tensor::from_carriers(data.dtype(), shape, result)?)
    })
}

fn placed<T: Element>(
    all: &[T],
    fill: &T,
    offsets: &mut dyn Iterator<Item = Option<usize>>,
    count: usize,
) -> Vec<T> {
    let mut result = Vec::with_capacity(count);
    for offset in offsets {
        result.push(offset.map_or(fill, |offset| &all[offset]).clone());
    }
    result
}

/// A tensor of runs of adjacent elements of another, one after the other.
pub(crate) fn picked_runs(
    data: &Tensor,
    shape: &[usize],
    starts: &[usize],
    run: usize,
) -> Result<Tensor, OpError> {
    let count = bounded(data.dtype(), shape)?;
    with_carrier!(data.dtype(), T => {
        let all = data.to_carriers::<T>()?;
        let mut result = Vec::with_capacity(count);
        for &start in starts {
            result.extend_from_slice(&all[start..start + run]);
        }
        Ok(Tensor::from_carriers(data.dtype(), shape, result)?)
    })
}

/// A copy of a tensor with runs of adjacent elements overwritten by those of another tensor of the
/// same type, which follow one another there.
pub(crate) fn overwritten(
    data: &Tensor,
    updates: &Tensor,
    starts: &[usize],
    run: usize,
) -> Result<Tensor, OpError> {
    with_carrier!(data.dtype(), T => {
        let mut all = data.to_carriers::<T>()?;
        write_runs(&mut all, &updates.to_carriers::<T>()?, starts, run);
        Ok(Tensor::from_carriers(data.dtype(), data.shape(), all)?)
    })
}

fn write_runs<T: Element>(all: &mut [T], updates: &[T], starts: &[usize], run: usize) {
    if run == 1 {
        for (&start, value) in starts.iter().zip(updates) {
            all[start].clone_from(value);
        }
        return;
    }
    for (at, &start) in starts.iter().enumerate() {
        all[start..start + run].clone_from_slice(&updates[at * run..(at + 1) * run]);
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::{ByteString, DataType, SmallType};

    use super::*;

    #[test]
    fn elements_of_every_width_move_with_all_their_bits() {
        let odd_nan = f32::from_bits(0x7fc0_1234);
        let small = DataType::Small(SmallType::Int4);
        let all = [
            Tensor::vector(vec![true, false]),
            Tensor::from_bytes(small, &[2], &[15, 3]).unwrap(),
            Tensor::vector(vec![-2_i16, 5]),
            Tensor::vector(vec![odd_nan, -0.0]),
            Tensor::vector(vec![f64::MAX, 1.0]),
            Tensor::vector(vec![ByteString::from("a"), ByteString::from("b")]),
        ];
        for data in all {
            let turned = picked_runs(&data, &[2], &[1, 0], 1).unwrap();
            let back = picked(&turned, &[2], &mut [Some(1), Some(0)].into_iter()).unwrap();
            assert_eq!(back.dtype(), data.dtype());
            assert_eq!(back.as_bytes().ok(), data.as_bytes().ok());
            assert_eq!(format!("{back:?}"), format!("{data:?}"));
            let ends = overwritten(&data, &turned, &[0], 2).unwrap();
            assert_eq!(format!("{ends:?}"), format!("{turned:?}"));
        }
    }

    #[test]
    fn a_place_without_an_offset_is_filled() {
        let data = Tensor::vector(vec![1.5_f32, 2.5]);
        let zeros = picked(&data, &[2], &mut [None, Some(1)].into_iter()).unwrap();
        assert_eq!(zeros, Tensor::vector(vec![0.0_f32, 2.5]));
        let fill = Tensor::scalar(-1.0_f32);
        let filled = picked_or(&data, &fill, &[2], &mut [Some(0), None].into_iter()).unwrap();
        assert_eq!(filled, Tensor::vector(vec![1.5_f32, -1.0]));
    }
}
