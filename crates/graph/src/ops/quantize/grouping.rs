//! Which scale and zero point belong to an element.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::operator::ParseContext;
use crate::ops::bounds;

/// The attributes that say what shares a scale: everything, a position of an axis, or a block of
/// positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleGrouping {
    /// The axis, where the scale is no scalar; may count from the end.
    pub axis: i64,
    /// How many positions of the axis share a scale; 0 means that the scale is a vector.
    pub block_size: usize,
}

/// The scale's place for every element of a shape.
pub(super) struct ScalePlaces {
    /// Elements of one step along the axis.
    inner: usize,
    /// Length of the axis.
    len: usize,
    /// Positions of the axis that share a scale; 0 for one scale for everything.
    block: usize,
    /// True if scales also differ along the other axes.
    blocked: bool,
}

impl ScaleGrouping {
    /// Reads the attributes (`axis` from opset 13 on, `block_size` from 21 on).
    pub(super) fn read(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let axis = context.attributes.int_or("axis", 1)?;
        let block_size = context.attributes.int_or("block_size", 0)?;
        Ok(Self { axis, block_size: bounds::length(block_size, "attribute 'block_size'")? })
    }

    /// Checks the scale's shape against the data's.
    pub(super) fn places(&self, shape: &[usize], scale: &Tensor) -> Result<ScalePlaces, OpError> {
        if scale.elements() == 1 && self.block_size == 0 {
            return Ok(ScalePlaces { inner: 1, len: 1, block: 0, blocked: false });
        }
        let axis = bounds::axis(self.axis, shape.len())?;
        let inner = shape[axis + 1..].iter().product();
        let len = shape[axis];
        let blocked = self.block_size > 0;
        let mut expected = if blocked { shape.to_vec() } else { vec![len] };
        if blocked {
            expected[axis] = len.div_ceil(self.block_size);
        }
        if scale.shape() != expected {
            return Err(OpError::new(format!(
                "a scale of shape {:?} for data of shape {shape:?}, expected {expected:?}",
                scale.shape()
            )));
        }
        Ok(ScalePlaces { inner, len, block: self.block_size.max(1), blocked })
    }
}

impl ScalePlaces {
    /// The scale's number for an element's.
    pub(super) fn of(&self, element: usize) -> usize {
        if self.block == 0 {
            return 0;
        }
        let place = (element / self.inner) % self.len;
        if !self.blocked {
            return place;
        }
        let outer = element / (self.inner * self.len);
        (outer * self.len.div_ceil(self.block) + place / self.block) * self.inner
            + element % self.inner
    }
}
