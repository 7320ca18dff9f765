//! Lengths that are known in a run only: shapes of values, and vectors that are put together of them.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::{Dim, Node, ValueId};

use super::emit::ProgramEmitter;
use super::unwritable::{Result, UnwritableNode, refuse, small, small_all};

/// One element of a vector of integers.
#[derive(Clone, Debug)]
pub(crate) enum LengthElement {
    /// A number.
    Known(i32),
    /// A vector of one element.
    Found(MilVar),
}

/// Ranges of a slice: an entry for each axis.
#[derive(Clone, Debug)]
pub(crate) struct SliceTake {
    /// First positions, and those behind the last ones.
    pub(crate) begin: Vec<LengthElement>,
    pub(crate) end: Vec<LengthElement>,
    pub(crate) stride: Vec<i32>,
    /// True for each axis that is taken to its end, whatever `end` says.
    pub(crate) to_last: Vec<bool>,
    /// True for each axis that is cut to one element and absent from the result.
    pub(crate) single: Vec<bool>,
}

impl SliceTake {
    /// Everything of a value of so many axes.
    pub(crate) fn whole(rank: usize) -> Self {
        Self {
            begin: vec![LengthElement::Known(0); rank],
            end: vec![LengthElement::Known(0); rank],
            stride: vec![1; rank],
            to_last: vec![true; rank],
            single: vec![false; rank],
        }
    }

    /// The positions `start..end` of an axis.
    pub(crate) fn range(mut self, axis: usize, start: usize, end: usize) -> Result<Self> {
        self.begin[axis] = LengthElement::Known(small(start)?);
        self.end[axis] = LengthElement::Known(small(end)?);
        self.to_last[axis] = false;
        Ok(self)
    }
}

impl ProgramEmitter<'_> {
    /// The lengths of a value of the graph.
    ///
    /// # Errors
    /// Fails when their number is not known before a run.
    pub(crate) fn dims(&self, id: ValueId) -> Result<Vec<Dim>> {
        let found = self.fact(id)?.shape.clone();
        found.ok_or_else(|| UnwritableNode("the number of axes is known in a run only".to_owned()))
    }

    /// The lengths of an output of a node.
    pub(crate) fn output_dims(&self, node: &Node, at: usize) -> Result<Vec<Dim>> {
        match node.output(at) {
            Some(id) => self.dims(id),
            None => refuse(format!("output {at} is absent")),
        }
    }

    /// The shape of a value, as a vector of integers.
    pub(crate) fn lengths(&mut self, x: &MilVar) -> Result<MilVar> {
        self.op("shape", vec![("x", x.into())])
    }

    /// One element of a vector, as a vector. Converters write lengths so, and coremltools' loader takes
    /// nothing else for one.
    pub(crate) fn element(&mut self, vector: &MilVar, at: usize) -> Result<MilVar> {
        let mut inputs = vec![
            ("x", vector.into()),
            ("indices", MilArg::Ints(vec![small(at)?])),
            ("axis", MilArg::Int(0)),
        ];
        if self.opset() >= 6 {
            inputs.push(("batch_dims", MilArg::Int(0)));
        }
        if self.opset() >= 7 {
            inputs.push(("validate_indices", MilArg::Bool(false)));
        }
        self.op("gather", inputs)
    }

    /// The length of an axis of a value, whose fact is `dim`.
    pub(crate) fn length(&mut self, x: &MilVar, axis: usize, dim: &Dim) -> Result<LengthElement> {
        if let Some(len) = dim.known() {
            return Ok(LengthElement::Known(small(len)?));
        }
        let lengths = self.lengths(x)?;
        Ok(LengthElement::Found(self.element(&lengths, axis)?))
    }

    /// A vector of integers; a constant where all of it is known.
    pub(crate) fn vector(&mut self, parts: Vec<LengthElement>) -> Result<MilArg> {
        let known = |part: &LengthElement| match part {
            LengthElement::Known(value) => Some(*value),
            LengthElement::Found(_) => None,
        };
        if let Some(all) = parts.iter().map(known).collect::<Option<Vec<i32>>>() {
            return Ok(MilArg::Ints(all));
        }
        let mut vars = Vec::with_capacity(parts.len());
        let mut numbers = Vec::new();
        for part in parts {
            match part {
                LengthElement::Known(value) => numbers.push(value),
                LengthElement::Found(var) => {
                    self.flush(&mut numbers, &mut vars)?;
                    vars.push(var);
                }
            }
        }
        self.flush(&mut numbers, &mut vars)?;
        Ok(MilArg::Var(self.concat(vars, 0)?))
    }

    /// Numbers that stand next to each other become one constant.
    fn flush(&mut self, numbers: &mut Vec<i32>, vars: &mut Vec<MilVar>) -> Result<()> {
        if !numbers.is_empty() {
            let all = std::mem::take(numbers);
            vars.push(self.table(&[all.len()], all)?);
        }
        Ok(())
    }

    /// Values side by side.
    pub(crate) fn concat(&mut self, values: Vec<MilVar>, axis: usize) -> Result<MilVar> {
        self.joined(values, small(axis)?)
    }

    /// A part of a value.
    pub(crate) fn cut(&mut self, x: &MilVar, cut: SliceTake) -> Result<MilVar> {
        let none = vec![false; cut.stride.len()];
        let begin = self.vector(cut.begin)?;
        let end = self.vector(cut.end)?;
        let inputs = vec![
            ("x", x.into()),
            ("begin", begin),
            ("end", end),
            ("stride", MilArg::Ints(cut.stride)),
            ("begin_mask", MilArg::Bools(none)),
            ("end_mask", MilArg::Bools(cut.to_last)),
            ("squeeze_mask", MilArg::Bools(cut.single)),
        ];
        self.op("slice_by_index", inputs)
    }

    /// The value with new axes of length 1 at these places of the result.
    pub(crate) fn unsqueeze(&mut self, x: &MilVar, axes: &[usize]) -> Result<MilVar> {
        if axes.is_empty() {
            return Ok(x.clone());
        }
        let axes = MilArg::Ints(small_all(axes)?);
        self.op("expand_dims", vec![("x", x.into()), ("axes", axes)])
    }

    /// The value without these axes of length 1.
    pub(crate) fn squeeze(&mut self, x: &MilVar, axes: &[usize]) -> Result<MilVar> {
        if axes.is_empty() {
            return Ok(x.clone());
        }
        let axes = MilArg::Ints(small_all(axes)?);
        self.op("squeeze", vec![("x", x.into()), ("axes", axes)])
    }

    /// The one element of a vector, as a number.
    pub(crate) fn scalar(&mut self, x: &MilVar) -> Result<MilVar> {
        match self.builder().shape(x)?.len() {
            0 => Ok(x.clone()),
            rank => {
                let axes: Vec<usize> = (0..rank).collect();
                self.squeeze(x, &axes)
            }
        }
    }

    /// Applies operations that take numbers only: truth values are numbers while they do.
    pub(crate) fn as_numbers(
        &mut self,
        x: &MilVar,
        operations: impl FnOnce(&mut Self, &MilVar) -> Result<MilVar>,
    ) -> Result<MilVar> {
        if self.element_of(x)? != MilElement::Bool {
            return operations(self, x);
        }
        let numbers = self.cast(x, MilElement::Int32)?;
        let result = operations(self, &numbers)?;
        self.cast(&result, MilElement::Bool)
    }

    /// A value of a type of elements everywhere in a shape.
    pub(crate) fn fill(&mut self, shape: MilArg, value: MilArg) -> Result<MilVar> {
        self.op("fill", vec![("shape", shape), ("value", value)])
    }
}
