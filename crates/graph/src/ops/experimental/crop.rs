//! `Crop`: a part of each image.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// `Crop`: images `[batch, channels, rows, columns]` without their borders, or a part of a given size behind the
/// upper and left ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageCrop {
    /// Rows that go above and below, and columns that go left and right.
    pub rows: CroppedBorders,
    /// Columns that go left and right.
    pub columns: CroppedBorders,
}

/// Part of an axis that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CroppedBorders {
    /// Positions before the part.
    pub before: usize,
    /// Positions behind it, where no length is given.
    pub behind: usize,
    /// Length of the part.
    pub length: Option<usize>,
}

impl CroppedBorders {
    /// The length of the part of an axis.
    fn left(&self, axis: &str, len: usize) -> Result<usize, OpError> {
        let taken = self.before + self.behind;
        let rest = len.checked_sub(taken);
        let part = match self.length {
            None => rest,
            Some(part) => len.checked_sub(self.before).filter(|&rest| rest >= part).map(|_| part),
        };
        part.filter(|_| rest.is_some())
            .ok_or_else(|| OpError::new(format!("images of {len} {axis} have no part {self:?}")))
    }
}

impl ImageCrop {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut pixels = |name: &'static str| -> Result<Option<Vec<usize>>, OpError> {
            let found = context.attributes.ints(name)?;
            let found = found.map(|all| bounds::lengths(&all, name)).transpose()?;
            // Sums of them are made later.
            match found.iter().flatten().find(|&&one| one > usize::MAX / 4) {
                Some(one) => Err(OpError::new(format!("attribute '{name}' has {one}"))),
                None => Ok(found),
            }
        };
        let border = pixels("border")?.unwrap_or_default();
        let &[left, top, right, bottom] = &border[..] else {
            let text = "attribute 'border' has";
            return Err(OpError::new(format!("{text} {} numbers, expected 4", border.len())));
        };
        let scale = pixels("scale")?.unwrap_or_default();
        let part = match scale[..] {
            [] => [None, None],
            [rows, columns] => [Some(rows), Some(columns)],
            _ => {
                let text = "attribute 'scale' has";
                return Err(OpError::new(format!("{text} {} numbers, expected 2", scale.len())));
            }
        };
        Ok(Box::new(Self {
            rows: CroppedBorders { before: top, behind: bottom, length: part[0] },
            columns: CroppedBorders { before: left, behind: right, length: part[1] },
        }))
    }
}

impl Operator for ImageCrop {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let Some(dims) = &x.shape else { return Ok(vec![Fact::unranked(x.dtype)]) };
        let [batch, channels, rows, columns] = &dims[..] else {
            return Err(OpError::new(format!("images of {} axes, expected 4", dims.len())));
        };
        let left = |borders: &CroppedBorders, axis: &str, dim: &Dim| match dim.known() {
            Some(len) => borders.left(axis, len).map(Dim::Known),
            None => Ok(borders.length.map_or(Dim::Unknown, Dim::Known)),
        };
        let rows = left(&self.rows, "rows", rows)?;
        let columns = left(&self.columns, "columns", columns)?;
        Ok(vec![Fact::new(x.dtype, vec![batch.clone(), channels.clone(), rows, columns])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let &[_, _, rows, columns] = x.shape() else {
            return Err(OpError::new(format!("images of {} axes, expected 4", x.rank())));
        };
        let rows = self.rows.left("rows", rows)?;
        let columns = self.columns.left("columns", columns)?;
        let part = x.slice_axis(2, self.rows.before, rows, 1)?;
        Ok(vec![bounds::owned(&part.slice_axis(3, self.columns.before, columns, 1)?)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, ints, one, run, tensor};

    #[test]
    fn images_lose_their_borders() {
        let x = counting(&[1, 1, 3, 4]);
        let border = || ("border", ints(&[1, 0, 2, 1]));
        let found = one("Crop", 1, &attributes([border()]), &[&x]);
        assert_eq!(found, tensor(&[1, 1, 2, 1], &[1.0_f32, 5.0]));
        let part = attributes([border(), ("scale", ints(&[1, 3]))]);
        assert_eq!(one("Crop", 1, &part, &[&x]), tensor(&[1, 1, 1, 3], &[1.0_f32, 2.0, 3.0]));
        for list in [
            attributes([("border", ints(&[1, 0]))]),
            attributes([("border", ints(&[-1, 0, 0, 0]))]),
            attributes([("border", ints(&[3, 0, 2, 0]))]),
            attributes([("border", ints(&[0, 0, 0, 0])), ("scale", ints(&[4, 1]))]),
            attributes([("border", ints(&[0, i64::MAX, 0, i64::MAX]))]),
        ] {
            assert!(run("Crop", 1, &list, &[Some(&x)], 1).is_err(), "{list:?}");
        }
        assert!(run("Crop", 1, &attributes([border()]), &[Some(&counting(&[3]))], 1).is_err());
    }
}
