//! Blobs in other forms: views, casts and shapes that most layers need.

use galatea_graph::ValueId;
use galatea_tensor::DataType;

use super::lower::{NetworkLowering, ScopeBlob, axis_of, int, ints, list, onnx_type};
use crate::coreml::error::CoreMlError;

/// How a blob became a batch, and so how the result becomes a blob.
#[derive(Clone, Copy, Debug)]
pub(super) enum BatchForm {
    /// It is one.
    Same,
    /// An axis of length 1 in front is hidden.
    Hidden,
    /// It has no batch.
    Single,
    /// Its leading axes, whose lengths these are, are one batch.
    Leading(ValueId),
}

impl NetworkLowering {
    /// A blob with all axes that the network sees.
    ///
    /// # Errors
    /// Fails when its rank is not known.
    pub(super) fn exact(&mut self, blob: ScopeBlob) -> Result<ValueId, CoreMlError> {
        if blob.hidden { self.unsqueeze(blob.id, &[0]) } else { Ok(blob.id) }
    }

    /// How many axes the network sees.
    ///
    /// # Errors
    /// Fails when the rank is not known.
    pub(super) fn seen_rank(&mut self, blob: ScopeBlob) -> Result<usize, CoreMlError> {
        Ok(self.rank(blob.id)? + usize::from(blob.hidden))
    }

    /// Blobs in one form, and whether that hides an axis.
    ///
    /// # Errors
    /// Fails when a rank is not known.
    pub(super) fn alike(
        &mut self,
        blobs: &[ScopeBlob],
    ) -> Result<(Vec<ValueId>, bool), CoreMlError> {
        let hidden = blobs.iter().all(|blob| blob.hidden) && !blobs.is_empty();
        if hidden {
            return Ok((blobs.iter().map(|blob| blob.id).collect(), true));
        }
        let exact = blobs.iter().map(|&blob| self.exact(blob)).collect::<Result<_, _>>()?;
        Ok((exact, false))
    }

    /// Aligns like [`NetworkLowering::alike`], for operators that broadcast: a blob of fewer axes fits a hidden one.
    ///
    /// # Errors
    /// Fails when a rank is not known.
    pub(super) fn broadcast(
        &mut self,
        blobs: &[ScopeBlob],
    ) -> Result<(Vec<ValueId>, bool), CoreMlError> {
        let mut fits = blobs.iter().any(|blob| blob.hidden);
        for &blob in blobs {
            fits = fits && (blob.hidden || self.rank(blob.id)? <= 4);
        }
        match fits {
            true => Ok((blobs.iter().map(|blob| blob.id).collect(), true)),
            false => self.alike(blobs),
        }
    }

    /// A blob as a batch of `rank` axes: leading axes beyond are one batch, and a missing one is
    /// added.
    ///
    /// # Errors
    /// Fails when the blob has less than `rank - 1` axes.
    pub(super) fn batched(
        &mut self,
        blob: ScopeBlob,
        rank: usize,
    ) -> Result<(ValueId, BatchForm), CoreMlError> {
        let physical = self.rank(blob.id)?;
        if blob.hidden && physical == rank {
            return Ok((blob.id, BatchForm::Hidden));
        }
        let exact = self.exact(blob)?;
        let seen = self.rank(exact)?;
        if seen == rank {
            return Ok((exact, BatchForm::Same));
        }
        if seen + 1 == rank {
            return Ok((self.unsqueeze(exact, &[0])?, BatchForm::Single));
        }
        if seen < rank {
            let text = format!("a blob of rank {seen}, expected at least {}", rank - 1);
            return Err(CoreMlError::invalid(text));
        }
        if seen == rank + 1 && rank == 4 && self.dim(exact, 0)? == Some(1) {
            return Ok((self.squeeze(exact, &[0])?, BatchForm::Hidden));
        }
        let shape = self.shape(exact)?;
        let cut = int(seen) - int(rank) + 1;
        let leading = self.part(shape, 0, cut)?;
        let trailing = self.part(shape, cut, int(seen))?;
        let any = self.longs(&[-1]);
        let target = self.node("Concat", &[any, trailing], &[("axis", 0_i64.into())])?;
        Ok((self.node("Reshape", &[exact, target], &[])?, BatchForm::Leading(leading)))
    }

    /// A blob of what an operator made of a batch.
    ///
    /// # Errors
    /// Fails when the rank is not known.
    pub(super) fn unbatched(
        &mut self,
        id: ValueId,
        form: BatchForm,
    ) -> Result<ScopeBlob, CoreMlError> {
        Ok(match form {
            BatchForm::Same => ScopeBlob::exact(id),
            BatchForm::Hidden => ScopeBlob { id, hidden: true },
            BatchForm::Single => ScopeBlob::exact(self.squeeze(id, &[0])?),
            BatchForm::Leading(leading) => {
                let shape = self.shape(id)?;
                let rank = int(self.rank(id)?);
                let trailing = self.part(shape, 1, rank)?;
                let target =
                    self.node("Concat", &[leading, trailing], &[("axis", 0_i64.into())])?;
                ScopeBlob::exact(self.node("Reshape", &[id, target], &[])?)
            }
        })
    }

    /// A blob as images `[batch, channels, height, width]`.
    ///
    /// # Errors
    /// Fails when it has less than 3 axes.
    pub(super) fn image(&mut self, blob: ScopeBlob) -> Result<(ValueId, BatchForm), CoreMlError> {
        self.batched(blob, 4)
    }

    /// Another shape, in which -1 is what is left and 0 what is there.
    pub(super) fn reshape(&mut self, id: ValueId, shape: &[i64]) -> Result<ValueId, CoreMlError> {
        let shape = self.longs(shape);
        self.node("Reshape", &[id, shape], &[])
    }

    /// New axes of length 1.
    pub(super) fn unsqueeze(&mut self, id: ValueId, axes: &[i64]) -> Result<ValueId, CoreMlError> {
        let axes = self.longs(axes);
        self.node("Unsqueeze", &[id, axes], &[])
    }

    /// Without axes of length 1.
    pub(super) fn squeeze(&mut self, id: ValueId, axes: &[i64]) -> Result<ValueId, CoreMlError> {
        let axes = self.longs(axes);
        self.node("Squeeze", &[id, axes], &[])
    }

    /// Axes in another order.
    pub(super) fn transpose(
        &mut self,
        id: ValueId,
        order: &[usize],
    ) -> Result<ValueId, CoreMlError> {
        if order.iter().enumerate().all(|(at, &from)| at == from) {
            return Ok(id);
        }
        self.node("Transpose", &[id], &[("perm", list(ints(order)))])
    }

    /// Another type.
    pub(super) fn cast(&mut self, id: ValueId, dtype: DataType) -> Result<ValueId, CoreMlError> {
        if self.fact(id)?.dtype == dtype {
            return Ok(id);
        }
        self.node("Cast", &[id], &[("to", onnx_type(dtype)?.into())])
    }

    /// A blob of integers: a blob's numbers, cut off.
    pub(super) fn whole(&mut self, blob: ScopeBlob) -> Result<ValueId, CoreMlError> {
        let exact = self.exact(blob)?;
        self.cast(exact, DataType::Int64)
    }

    /// A blob of integers as a vector of rank 1.
    pub(super) fn whole_vector(&mut self, blob: ScopeBlob) -> Result<ValueId, CoreMlError> {
        let whole = self.whole(blob)?;
        if self.rank(whole)? == 1 { Ok(whole) } else { self.reshape(whole, &[-1]) }
    }

    /// A blob of floats, from what an operator made.
    pub(super) fn floats(&mut self, id: ValueId) -> Result<ScopeBlob, CoreMlError> {
        Ok(ScopeBlob::exact(self.cast(id, DataType::Fp32)?))
    }

    /// The lengths of a value.
    pub(super) fn shape(&mut self, id: ValueId) -> Result<ValueId, CoreMlError> {
        self.node("Shape", &[id], &[])
    }

    /// The length of one axis, as a vector of one integer.
    pub(super) fn length(&mut self, id: ValueId, axis: i64) -> Result<ValueId, CoreMlError> {
        let at = int(axis_of(axis, self.rank(id)?)?);
        self.node("Shape", &[id], &[("start", at.into()), ("end", (at + 1).into())])
    }

    /// Part of a vector.
    pub(super) fn part(&mut self, id: ValueId, from: i64, to: i64) -> Result<ValueId, CoreMlError> {
        self.slice(id, &[(0, from, to, 1)])
    }

    /// Parts of axes: `(axis, from, to, step)`.
    pub(super) fn slice(
        &mut self,
        id: ValueId,
        parts: &[(i64, i64, i64, i64)],
    ) -> Result<ValueId, CoreMlError> {
        let of =
            |pick: fn(&(i64, i64, i64, i64)) -> i64| parts.iter().map(pick).collect::<Vec<_>>();
        let from = self.longs(&of(|part| part.1));
        let to = self.longs(&of(|part| part.2));
        let axes = self.longs(&of(|part| part.0));
        let steps = self.longs(&of(|part| part.3));
        self.node("Slice", &[id, from, to, axes, steps], &[])
    }
}
