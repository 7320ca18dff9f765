//! `DepthToSpace` and `SpaceToDepth`: channels folded into an image and back.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// ONNX `DepthToSpace` of an `[N, C, H, W]` input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepthToSpace {
    /// Side of the square that channels become.
    pub block_size: usize,
    /// True if the channel is the slower part of an input channel's number (`CRD`) instead of the
    /// block (`DCR`).
    pub column_row_depth: bool,
}

/// ONNX `SpaceToDepth` of an `[N, C, H, W]` input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceToDepth {
    /// Side of the square that becomes channels.
    pub block_size: usize,
    /// True if the channel is the slower part of an output channel's number (`CRD`) instead of the
    /// block (`DCR`, the only order of older opsets).
    pub column_row_depth: bool,
}

fn block_size(context: &mut ParseContext<'_>) -> Result<usize, OpError> {
    let size = context.attributes.int("blocksize")?;
    let size = size.ok_or_else(|| OpError::new("attribute 'blocksize' is missing"))?;
    match bounds::length(size, "attribute 'blocksize'")? {
        0 => Err(OpError::new("attribute 'blocksize' is 0")),
        size => Ok(size),
    }
}

/// The four lengths of an input.
fn image<T: Clone>(shape: &[T]) -> Result<[T; 4], OpError> {
    <[T; 4]>::try_from(shape.to_vec())
        .map_err(|other| OpError::new(format!("the input has rank {}, expected 4", other.len())))
}

/// A length divided by a factor that must divide it.
fn divide(dim: &Dim, factor: usize) -> Result<Dim, OpError> {
    match dim.known() {
        Some(len) if len % factor != 0 => {
            Err(OpError::new(format!("length {len} is no multiple of {factor}")))
        }
        Some(len) => Ok(Dim::Known(len / factor)),
        None => Ok(bounds::quotient([dim], [&Dim::Known(factor)])),
    }
}

impl DepthToSpace {
    /// Reads the attributes (`mode` from opset 11 on).
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let block_size = block_size(context)?;
        let newer = context.opset >= 11;
        let mode = if newer { context.attributes.choice("mode", &["DCR", "CRD"], 0)? } else { 0 };
        Ok(Box::new(Self { block_size, column_row_depth: mode == 1 }))
    }
}

impl Operator for DepthToSpace {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(shape) = &data.shape else { return Ok(vec![Fact::unranked(data.dtype)]) };
        let [n, c, h, w] = image(shape)?;
        let block = Dim::Known(self.block_size);
        let c = divide(&c, self.block_size.saturating_mul(self.block_size))?;
        let shape = vec![n, c, bounds::product([&h, &block]), bounds::product([&w, &block])];
        Ok(vec![Fact::new(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let [n, c, h, w] = image(data.shape())?;
        let b = self.block_size;
        let Some(Dim::Known(depth)) = divide(&Dim::Known(c), b.saturating_mul(b)).ok() else {
            return Err(OpError::new(format!("{c} channels do not divide into blocks of {b}")));
        };
        let (apart, order) = if self.column_row_depth {
            ([n, depth, b, b, h, w], [0, 1, 4, 2, 5, 3])
        } else {
            ([n, b, b, depth, h, w], [0, 3, 4, 1, 5, 2])
        };
        let moved = bounds::owned(&data.reshape(&apart)?.permute(&order)?)?;
        Ok(vec![moved.reshape(&[n, depth, h.saturating_mul(b), w.saturating_mul(b)])?])
    }
}

impl SpaceToDepth {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let block_size = block_size(context)?;
        let mode = context.attributes.choice("mode", &["DCR", "CRD"], 0)?;
        Ok(Box::new(Self { block_size, column_row_depth: mode == 1 }))
    }
}

impl Operator for SpaceToDepth {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(shape) = &data.shape else { return Ok(vec![Fact::unranked(data.dtype)]) };
        let [n, c, h, w] = image(shape)?;
        let block = Dim::Known(self.block_size);
        let c = bounds::product([&c, &block, &block]);
        let shape = vec![n, c, divide(&h, self.block_size)?, divide(&w, self.block_size)?];
        Ok(vec![Fact::new(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let [n, c, h, w] = image(data.shape())?;
        let b = self.block_size;
        if h % b != 0 || w % b != 0 {
            return Err(OpError::new(format!("an image of {h} × {w} is no multiple of {b}")));
        }
        let apart = data.reshape(&[n, c, h / b, b, w / b, b])?;
        let order = if self.column_row_depth { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
        let moved = bounds::owned(&apart.permute(&order)?)?;
        let channels = c.saturating_mul(b).saturating_mul(b);
        Ok(vec![moved.reshape(&[n, channels, h / b, w / b])?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, one, run, tensor, text};

    #[test]
    fn channels_become_blocks_in_either_order() {
        let data = counting(&[1, 8, 1, 1]);
        let attributes_of = |mode| attributes([("blocksize", int(2)), ("mode", text(mode))]);
        let dcr = one("DepthToSpace", 13, &attributes_of("DCR"), &[&data]);
        assert_eq!(dcr, tensor(&[1, 2, 2, 2], &[0_f32, 2.0, 4.0, 6.0, 1.0, 3.0, 5.0, 7.0]));
        let crd = one("DepthToSpace", 13, &attributes_of("CRD"), &[&data]);
        assert_eq!(crd, counting(&[1, 2, 2, 2]));
    }

    #[test]
    fn space_to_depth_undoes_depth_to_space() {
        let data = counting(&[2, 4, 2, 3]);
        let block = attributes([("blocksize", int(2))]);
        let wide = one("DepthToSpace", 13, &block, &[&data]);
        assert_eq!(one("SpaceToDepth", 13, &block, &[&wide]), data);
        let crd = attributes([("blocksize", int(2)), ("mode", text("CRD"))]);
        let wide = one("DepthToSpace", 13, &crd, &[&data]);
        assert_eq!(one("SpaceToDepth", 13, &crd, &[&wide]), data);
        assert!(run("SpaceToDepth", 13, &block, &[Some(&data)], 1).is_err());
    }
}
