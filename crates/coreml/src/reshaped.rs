//! Shapes of which some lengths are known in a run only.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::{Dim, ValueId};

use super::emit::ProgramEmitter;
use super::unwritable::{Result, UnwritableNode, refuse, small};

/// One length of a shape that is given to `reshape`.
enum ReshapeLength {
    /// A number, or one of the operator's words: 0 for the length that is there, -1 for the rest.
    Number(i32),
    /// The length of this axis of the value.
    Axis(usize),
}

impl ProgramEmitter<'_> {
    /// The length of an axis of a value of the graph.
    ///
    /// # Errors
    /// Fails when it is known in a run only.
    pub(crate) fn known_length(&self, id: ValueId, axis: usize) -> Result<usize> {
        let found = self.dims(id)?.get(axis).and_then(Dim::known);
        found.ok_or_else(|| {
            UnwritableNode(format!("the length of axis {axis} is known in a run only"))
        })
    }

    /// A value whose lengths are `from` with those of `to`, of which one may be unknown: the rest.
    pub(crate) fn reshape_dims(
        &mut self,
        var: &MilVar,
        from: &[Dim],
        to: &[Dim],
    ) -> Result<MilVar> {
        let same = |(a, b): (&Dim, &Dim)| a.same(b);
        if from.len() == to.len() && from.iter().zip(to).all(same) {
            return Ok(var.clone());
        }
        let mut rest = false;
        let mut pieces = Vec::with_capacity(to.len());
        for (at, dim) in to.iter().enumerate() {
            let kept = from.len() == to.len() && from.get(at).is_some_and(|own| own.same(dim));
            pieces.push(match (dim.known(), from.iter().position(|own| own.same(dim))) {
                (Some(len), _) => ReshapeLength::Number(small(len)?),
                _ if kept => ReshapeLength::Number(0),
                (None, Some(axis)) => ReshapeLength::Axis(axis),
                _ if !rest => {
                    rest = true;
                    ReshapeLength::Number(-1)
                }
                _ => return refuse(format!("lengths of {to:?} are known in a run only")),
            });
        }
        // One length need not be told.
        let axes = |pieces: &[ReshapeLength]| {
            let axis = |piece: &&ReshapeLength| matches!(piece, ReshapeLength::Axis(_));
            pieces.iter().filter(axis).count()
        };
        if !rest && axes(&pieces) == 1 {
            for piece in pieces.iter_mut().filter(|piece| matches!(piece, ReshapeLength::Axis(_))) {
                *piece = ReshapeLength::Number(-1);
            }
        }
        let shape = match axes(&pieces) {
            0 => MilArg::Ints(pieces.iter().map(numbered).collect()),
            _ => self.computed_shape(var, &pieces)?,
        };
        self.op("reshape", vec![("x", var.into()), ("shape", shape)])
    }

    /// A shape that is put together in a run.
    fn computed_shape(&mut self, var: &MilVar, pieces: &[ReshapeLength]) -> Result<MilArg> {
        let own = self.op("shape", vec![("x", var.into())])?;
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            parts.push(match piece {
                ReshapeLength::Number(number) => self.table(&[1], vec![*number])?,
                ReshapeLength::Axis(axis) => self.element(&own, *axis)?,
            });
        }
        let inputs = vec![
            ("values", MilArg::Vars(parts)),
            ("axis", MilArg::Int(0)),
            ("interleave", MilArg::Bool(false)),
        ];
        Ok(MilArg::Var(self.op("concat", inputs)?))
    }

    /// The length of an axis of a value of the program, as a scalar that is computed in a run.
    pub(crate) fn length_of(&mut self, var: &MilVar, axis: usize) -> Result<MilVar> {
        let own = self.op("shape", vec![("x", var.into())])?;
        let one = self.element(&own, axis)?;
        self.op("squeeze", vec![("x", MilArg::Var(one)), ("axes", MilArg::Ints(vec![0]))])
    }

    /// The value in the shape of another one.
    pub(crate) fn reshape_like(&mut self, var: &MilVar, like: &MilVar) -> Result<MilVar> {
        if let Ok(shape) = self.shape_of(like) {
            return self.reshape(var, &shape);
        }
        let shape = self.op("shape", vec![("x", like.into())])?;
        self.op("reshape", vec![("x", var.into()), ("shape", MilArg::Var(shape))])
    }

    /// The least number above zero that is worth adding to a variance: FP16 holds none below.
    pub(crate) fn epsilon(&self, epsilon: f32) -> MilArg {
        let least = if self.float_element() == MilElement::Fp16 { 6e-8 } else { f32::MIN_POSITIVE };
        self.float(if epsilon > 0.0 { epsilon.max(least) } else { epsilon })
    }

    /// Adds an operation of two values.
    pub(crate) fn pair(
        &mut self,
        operator: &str,
        x: impl Into<MilArg>,
        y: impl Into<MilArg>,
    ) -> Result<MilVar> {
        self.op(operator, vec![("x", x.into()), ("y", y.into())])
    }

    /// Values side by side along an axis.
    pub(crate) fn joined(&mut self, mut values: Vec<MilVar>, axis: i32) -> Result<MilVar> {
        if values.len() == 1 {
            return values.pop().ok_or_else(|| UnwritableNode("no values".to_owned()));
        }
        let inputs = vec![
            ("values", MilArg::Vars(values)),
            ("axis", MilArg::Int(axis)),
            ("interleave", MilArg::Bool(false)),
        ];
        self.op("concat", inputs)
    }

    /// A value for each channel as one that broadcasts over an image of this rank.
    pub(crate) fn by_channel(&mut self, var: &MilVar, rank: usize, count: usize) -> Result<MilVar> {
        let mut shape = vec![1; rank];
        if let Some(channels) = shape.get_mut(1) {
            *channels = count;
        }
        self.reshape(var, &shape)
    }
}

fn numbered(piece: &ReshapeLength) -> i32 {
    match piece {
        ReshapeLength::Number(number) => *number,
        ReshapeLength::Axis(_) => -1,
    }
}
