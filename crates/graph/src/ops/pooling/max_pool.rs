//! `MaxPool`: the largest element under the window.

use galatea_tensor::{DataType, Tensor, with_number};

use super::window::PoolWindow;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::{bounds, picks};

/// ONNX `MaxPool`; `MaxPoolNhwc` of domain `ai.galatea` has the channels last and one output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaxPool {
    /// The window.
    pub window: PoolWindow,
    /// True if the second output numbers a plane's elements column by column.
    pub column_major: bool,
    /// True if there is a second output, where each maximum is.
    pub indices: bool,
}

impl MaxPool {
    /// Reads the attributes of `MaxPool`.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let window = PoolWindow::read(context, false)?;
        let column_major = context.attributes.flag("storage_order", false)?;
        Ok(Box::new(Self { window, column_major, indices: context.outputs > 1 }))
    }

    /// Reads the attributes of `MaxPoolNhwc`.
    pub(crate) fn parse_channels_last(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let window = PoolWindow::read(context, true)?;
        context.attributes.ignore("storage_order");
        Ok(Box::new(Self { window, column_major: false, indices: false }))
    }

    /// Reads the attributes of `MaxPool` of domain `com.microsoft.nchwc`, which has one output.
    pub(crate) fn parse_channels_first(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let window = PoolWindow::read(context, false)?;
        context.attributes.ignore("storage_order");
        Ok(Box::new(Self { window, column_major: false, indices: false }))
    }

    /// The number of an element of a plane in the second output.
    fn number(&self, at: usize, spatial: &[usize]) -> usize {
        if !self.column_major {
            return at;
        }
        let mut rest = at;
        let mut number = 0;
        let mut index = vec![0; spatial.len()];
        let mut step = 1;
        for (slot, &len) in index.iter_mut().zip(spatial).rev() {
            *slot = rest % len;
            rest /= len;
        }
        for (place, &len) in index.iter().zip(spatial) {
            number += place * step;
            step *= len;
        }
        number
    }

    fn pool(
        &self,
        data: &Tensor,
        winner: &dyn Fn(usize, &[usize]) -> Option<usize>,
    ) -> Result<[Tensor; 2], OpError> {
        let (planes, spatial) = data.shape().split_at(2);
        let (output, places) = self.window.places(spatial)?;
        let shape = [planes, &output].concat();
        let count = bounds::bounded(DataType::Int64, &shape)?;
        let mut winners = Vec::with_capacity(count);
        let mut indices = Vec::with_capacity(count);
        let pixels: usize = spatial.iter().product();
        for plane in 0..planes.iter().product() {
            for place in &places {
                let best = winner(plane * pixels, &place.seen).ok_or_else(|| {
                    OpError::new("a window lies wholly in the padding; it has no maximum")
                })?;
                winners.push(plane * pixels + best);
                indices.push((plane * pixels + self.number(best, spatial)) as i64);
            }
        }
        let values = picks::picked_runs(data, &shape, &winners, 1)?;
        Ok([values, Tensor::from_vec(&shape, indices)?])
    }
}

/// The position of the greatest of some elements of an image.
fn winner<T: PartialOrd>(image: &[T], seen: &[usize]) -> Option<usize> {
    let mut best: Option<usize> = None;
    for &at in seen {
        // Only a NaN differs from itself; the first one wins.
        #[allow(clippy::eq_op, reason = "only a NaN differs from itself")]
        let wins = |best: usize| {
            let is_nan = |at: usize| image[at] != image[at];
            !is_nan(best) && (image[at] > image[best] || is_nan(at))
        };
        if best.is_none_or(wins) {
            best = Some(at);
        }
    }
    best
}

impl Operator for MaxPool {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let values = self.window.infer(inputs.required(0)?)?;
        let indices = Fact { dtype: DataType::Int64, ..values.clone() };
        Ok(if self.indices { vec![values, indices] } else { vec![values] })
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = self.window.image(inputs.required(0)?)?;
        let [values, indices] = with_number!(data.dtype(), T => {
            let all = data.to_vec::<T>()?;
            self.pool(&data, &|start, seen| winner(&all[start..], seen))
        }, else {
            Err(OpError::new(format!("type {} has no maximum", data.dtype())))
        })?;
        let values = self.window.laid_out(&values)?;
        Ok(if self.indices { vec![values, indices] } else { vec![values] })
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, ints, one, run, tensor};

    #[test]
    fn maxima_and_where_they_are() {
        let data = counting(&[1, 1, 3, 3]);
        let list = [("kernel_shape", ints(&[2, 2])), ("storage_order", int(1))];
        let result = run("MaxPool", 12, &attributes(list), &[Some(&data)], 2).unwrap();
        assert_eq!(result[0], tensor(&[1, 1, 2, 2], &[4_f32, 5.0, 7.0, 8.0]));
        assert_eq!(result[1], tensor(&[1, 1, 2, 2], &[4_i64, 7, 5, 8]));
        let rows = attributes([("kernel_shape", ints(&[2, 2]))]);
        let result = run("MaxPool", 8, &rows, &[Some(&data)], 2).unwrap();
        assert_eq!(result[1], tensor(&[1, 1, 2, 2], &[4_i64, 5, 7, 8]));
    }

    #[test]
    fn pads_never_win_and_ceiling_adds_a_window() {
        let data = tensor(&[1, 1, 3], &[-3_f32, -1.0, -2.0]);
        let list = [("kernel_shape", ints(&[2])), ("pads", ints(&[1, 0]))];
        let result = one("MaxPool", 12, &attributes(list), &[&data]);
        assert_eq!(result, tensor(&[1, 1, 3], &[-3_f32, -1.0, -1.0]));
        let list = [("kernel_shape", ints(&[2])), ("strides", ints(&[2])), ("ceil_mode", int(1))];
        let result = one("MaxPool", 12, &attributes(list), &[&data]);
        assert_eq!(result, tensor(&[1, 1, 2], &[-1_f32, -2.0]));
    }

    #[test]
    fn a_nan_anywhere_in_the_window_wins() {
        let list = attributes([("kernel_shape", ints(&[2]))]);
        let data = tensor(&[1, 1, 4], &[1_f32, f32::NAN, 2.0, 3.0]);
        let result = run("MaxPool", 12, &list, &[Some(&data)], 2).unwrap();
        let values = result[0].to_vec::<f32>().unwrap();
        assert!(values[0].is_nan() && values[1].is_nan() && values[2] == 3.0, "{values:?}");
        assert_eq!(result[1], tensor(&[1, 1, 3], &[1_i64, 1, 3]));
    }

    #[test]
    fn channels_last_is_the_same_pool() {
        let data = counting(&[1, 2, 2, 2]);
        let list = attributes([("kernel_shape", ints(&[2, 2]))]);
        let result = one("ai.galatea:MaxPoolNhwc", 1, &list, &[&data]);
        assert_eq!(result, tensor(&[1, 1, 1, 2], &[6_f32, 7.0]));
    }

    #[test]
    fn a_window_in_the_padding_only_is_an_error() {
        let list = [("kernel_shape", ints(&[1])), ("pads", ints(&[1, 0]))];
        assert!(run("MaxPool", 12, &attributes(list), &[Some(&counting(&[1, 1, 2]))], 1).is_err());
    }
}
